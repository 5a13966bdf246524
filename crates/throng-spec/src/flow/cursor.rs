//! One line of a file of Hurl, read from left to right.

use super::Wrong;

/// A position in one line.
pub(super) struct Cursor<'a> {
    pub(super) line: usize,
    pub(super) text: &'a str,
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// The place of the next character, from 1.
    pub(super) fn column(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    pub(super) fn wrong<T>(&self, column: usize, why: &str) -> Result<T, Wrong> {
        Err(Wrong {
            line: self.line + 1,
            column,
            why: why.to_owned(),
        })
    }

    pub(super) fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Everything until a space.
    pub(super) fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// The next word, unless the line ends or a comment begins.
    pub(super) fn next_word(&mut self) -> Option<&'a str> {
        self.skip_spaces();
        let rest = self.rest();
        (!rest.is_empty() && !rest.starts_with('#')).then(|| self.word())
    }

    /// Everything until a space outside of `{{ }}`.
    pub(super) fn url(&mut self) -> &'a str {
        let rest = self.rest();
        let mut end = 0;
        while let Some(letter) = rest[end..].chars().next() {
            if letter.is_whitespace() {
                break;
            }
            if rest[end..].starts_with("{{")
                && let Some(close) = rest[end..].find("}}")
            {
                end += close + 2;
            } else {
                end += letter.len_utf8();
            }
        }
        self.at += end;
        &rest[..end]
    }

    /// Nothing but a comment may follow.
    pub(super) fn end(&mut self) -> Result<(), Wrong> {
        self.skip_spaces();
        let column = self.column();
        match self.next_word() {
            None => Ok(()),
            Some(_) => self.wrong(column, "nothing may follow the URL"),
        }
    }

    /// A text in quotes or backticks, with its escapes replaced; `None` if there is none here.
    pub(super) fn quoted(&mut self) -> Result<Option<String>, Wrong> {
        let column = self.column();
        let rest = self.rest();
        let Some(quote) = rest.chars().next().filter(|quote| "\"`".contains(*quote)) else {
            return Ok(None);
        };
        let mut is_escaped = false;
        for (at, letter) in rest.char_indices().skip(1) {
            match letter {
                _ if is_escaped => is_escaped = false,
                '\\' if quote == '"' => is_escaped = true,
                letter if letter == quote => {
                    self.at += at + 1;
                    let inner = &rest[1..at];
                    return Ok(Some(if quote == '"' {
                        unescaped(inner)
                    } else {
                        inner.to_owned()
                    }));
                }
                _ => {}
            }
        }
        self.wrong(column, "the text has no closing quote")
    }

    /// A text between slashes; `None` if there is none here.
    pub(super) fn slashed(&mut self) -> Result<Option<String>, Wrong> {
        let column = self.column();
        let Some(rest) = self.rest().strip_prefix('/') else {
            return Ok(None);
        };
        let mut text = String::new();
        let mut letters = rest.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '/' => {
                    self.at += at + 2;
                    return Ok(Some(text));
                }
                '\\' => match letters.next() {
                    Some((_, '/')) => text.push('/'),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => text.push('\\'),
                },
                _ => text.push(letter),
            }
        }
        self.wrong(column, "the regular expression has no closing /")
    }
}

/// A line without its comment. An escaped `#` does not begin one.
pub(super) fn uncommented(text: &str) -> &str {
    let mut is_escaped = false;
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' if quote == Some('"') => quote = None,
            '"' if quote.is_none() && text[..at].ends_with(' ') => quote = Some('"'),
            '#' if quote.is_none() => return &text[..at],
            _ => {}
        }
    }
    text
}

/// A text with its escapes replaced.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let rest = letters.as_str();
                let number = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let found = number.and_then(|(number, after)| {
                    let escaped = char::from_u32(u32::from_str_radix(number, 16).ok()?)?;
                    Some((escaped, after))
                });
                match found {
                    Some((escaped, after)) => {
                        out.push(escaped);
                        letters = after.chars();
                    }
                    None => out.push('u'),
                }
            }
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}
