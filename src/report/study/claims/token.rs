//! The words of the language in which claims are checked.

use std::ops::Range;

/// Where in a text something is wrong, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The bytes that are wrong.
    pub at: Range<usize>,
    /// Why, and what to do about it.
    pub why: String,
}

impl Wrong {
    pub(super) fn new(at: Range<usize>, why: impl Into<String>) -> Self {
        Self {
            at,
            why: why.into(),
        }
    }
}

/// One token and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    pub(super) at: Range<usize>,
}

/// A kind of token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind<'a> {
    /// A name or a word of the language, dots and dashes included.
    Word(&'a str),
    /// What stands between quotes.
    Quoted(&'a str),
    /// A number.
    Number(f64),
    /// `(`, `)`, `,`, `*`, `%`, `<`, `<=`, `>`, `>=` or `=`.
    Sign(&'a str),
}

/// Takes a text apart.
///
/// # Errors
/// The first character that belongs nowhere.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Wrong> {
    let mut tokens = Vec::new();
    let mut from = 0;
    while let Some(first) = text[from..].chars().next() {
        if first.is_whitespace() {
            from += first.len_utf8();
            continue;
        }
        let (kind, length) = token(text, from, first)?;
        tokens.push(Token {
            kind,
            at: from..from + length,
        });
        from += length;
    }
    Ok(tokens)
}

fn token(text: &str, from: usize, first: char) -> Result<(Kind<'_>, usize), Wrong> {
    let rest = &text[from..];
    let while_so = |is: fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
    if first == '"' || first == '\'' {
        let Some(length) = rest[1..].find(first) else {
            return Err(Wrong::new(from..text.len(), "the quote is not closed"));
        };
        return Ok((Kind::Quoted(&rest[1..=length]), length + 2));
    }
    if first.is_ascii_digit() {
        let length = while_so(|c| c.is_ascii_digit() || "._".contains(c));
        let digits = &rest[..length];
        let number = digits.replace('_', "").parse::<f64>();
        let number = number
            .map_err(|_| Wrong::new(from..from + length, format!("`{digits}` is no number")))?;
        return Ok((Kind::Number(number), length));
    }
    if first.is_alphabetic() || first == '_' || first == '/' {
        let length = while_so(|c| c.is_alphanumeric() || "_.-/".contains(c));
        return Ok((Kind::Word(&rest[..length]), length));
    }
    let signs = ["<=", ">=", "<", ">", "=", "(", ")", ",", "*", "%"];
    let sign = signs.into_iter().find(|sign| rest.starts_with(sign));
    sign.map(|sign| (Kind::Sign(sign), sign.len()))
        .ok_or_else(|| {
            let at = from..from + first.len_utf8();
            Wrong::new(at, format!("`{first}` belongs nowhere here"))
        })
}
