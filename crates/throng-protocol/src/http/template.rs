//! Bytes with variables that are filled in for each request: `{number}`, `{client}`, `{random:8}`, `{uuid}`.
//!
//! Only these exact forms, and similar words in braces, count as variables. Any other brace is literal, so JSON
//! remains unchanged.

use super::super::Settings;
use super::super::mix::scrambled;
use super::cookies::Jar;
use super::feed::{Feed, Known};

/// Maximum length of a random text in characters.
const LONGEST_RANDOM: u16 = 1024;

/// A part of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Constant bytes.
    Text(Vec<u8>),
    /// The number of the request.
    Number,
    /// The number of the client.
    Client,
    /// This many random letters and digits.
    Random(u16),
    /// A random UUID, version 4.
    Uuid,
    /// The value of a variable of a flow.
    Variable(Variable),
    /// The length of the body.
    BodyLength,
    /// The header with the client's cookies, if it has any.
    Cookies,
    /// The client's cookies before others in the same header.
    CookiesBefore,
}

/// A variable of a flow, and how its value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variable {
    /// Its place among the flow's variables.
    pub(super) place: u16,
    pub(super) encoding: Encoding,
}

/// How a value is written into a request, so that it is one value there whatever it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As it is: in a body of text.
    Plain,
    /// In a path: bytes that a path cannot have are written as %XX.
    Path,
    /// In a form or a query: all but letters, digits and `-._~` are written as %XX.
    Form,
    /// In a header: without control characters.
    Header,
    /// In a string of JSON: with escapes.
    Json,
}

impl Encoding {
    /// A byte as it is written, and its length.
    fn written(self, byte: u8) -> ([u8; 6], usize) {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let [high, low] = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 15)],
        ];
        let percent = ([b'%', high, low, 0, 0, 0], 3);
        let plain = ([byte, 0, 0, 0, 0, 0], 1);
        match self {
            Self::Path if byte.is_ascii_graphic() && byte != b'#' => plain,
            Self::Form if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => plain,
            Self::Path | Self::Form => percent,
            Self::Header if byte.is_ascii_control() => ([0; 6], 0),
            Self::Json if matches!(byte, b'"' | b'\\') => ([b'\\', byte, 0, 0, 0, 0], 2),
            Self::Json if byte.is_ascii_control() => ([b'\\', b'u', b'0', b'0', high, low], 6),
            Self::Plain | Self::Header | Self::Json => plain,
        }
    }

    fn push(self, value: &[u8], out: &mut Vec<u8>) {
        if self == Self::Plain {
            out.extend_from_slice(value);
            return;
        }
        for &byte in value {
            let (written, length) = self.written(byte);
            out.extend_from_slice(&written[..length]);
        }
    }

    fn length(self, value: &[u8]) -> u64 {
        let lengths = value.iter().map(|byte| self.written(*byte).1 as u64);
        lengths.sum()
    }
}

/// Splits a text at its variables, which may have these names too. Their values are written in this encoding.
///
/// # Errors
/// If a variable is unknown.
pub(super) fn pieces(
    text: &[u8],
    names: &[String],
    encoding: Encoding,
) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some(brace) = memchr::memchr(b'{', rest) {
        plain.extend_from_slice(&rest[..brace]);
        rest = &rest[brace + 1..];
        if rest.first() == Some(&b'{') {
            plain.push(b'{');
            rest = &rest[1..];
        } else if let Some(word) = word(rest) {
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            let place = names.iter().position(|name| name == word);
            pieces.push(match place {
                Some(place) => Piece::Variable(Variable {
                    place: place as u16,
                    encoding,
                }),
                None => variable(word).map_err(|why| match names {
                    [] => why,
                    names => format!("{why}; the data has {}", names.join(", ")),
                })?,
            });
            rest = &rest[word.len() + 1..];
        } else {
            plain.push(b'{');
        }
    }
    plain.extend_from_slice(rest);
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// With neighbouring texts in one piece.
pub(super) fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(text)), Piece::Text(more)) => text.extend(more),
            (_, other) => joined.push(other),
        }
    }
    joined
}

/// Whether a text has a variable.
pub fn has_variables(text: &[u8]) -> bool {
    let braces = memchr::memchr_iter(b'{', text);
    let mut words = braces.filter_map(|brace| word(&text[brace + 1..]));
    words.any(|word| variable(word).is_ok())
}

/// The text before the closing brace, if it looks like a variable: a word, optionally with a colon and a number.
fn word(text: &[u8]) -> Option<&str> {
    let end = text.iter().take(32).position(|&byte| byte == b'}')?;
    let word = str::from_utf8(&text[..end]).ok()?;
    let name = word.split(':').next()?;
    let mut letters = name.bytes();
    let is_name = letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let number = word[name.len()..].bytes();
    let is_number = number.skip(1).all(|byte| byte.is_ascii_digit());
    (is_name && is_number).then_some(word)
}

fn variable(word: &str) -> Result<Piece, String> {
    match (word, word.strip_prefix("random:")) {
        ("number", _) => Ok(Piece::Number),
        ("client", _) => Ok(Piece::Client),
        ("uuid", _) => Ok(Piece::Uuid),
        (_, Some(length)) => match length.parse() {
            Ok(length) if (1..=LONGEST_RANDOM).contains(&length) => Ok(Piece::Random(length)),
            _ => Err(format!(
                "`{{{word}}}` needs a length from 1 to {LONGEST_RANDOM}"
            )),
        },
        _ => Err(format!(
            "unknown variable `{{{word}}}`; expected {{number}}, {{client}}, {{random:8}} or {{uuid}} (write {{{{ for a \
             brace)"
        )),
    }
}

/// The values of the variables.
#[derive(Debug)]
pub(super) struct Values {
    /// The number of the next request among those of all clients.
    number: u64,
    /// The number of clients: the step between a client's numbers, so that no two requests have the same one.
    clients: u64,
    client: u64,
    random: Random,
    /// The rows, and the values of their variables.
    feed: Option<&'static Feed>,
    known: Box<[Known]>,
}

impl Values {
    /// A client's values before its first request.
    pub(super) fn new(settings: &Settings, client: u64) -> Self {
        let feed = settings.feed;
        let mut values = Self {
            number: client,
            clients: settings.clients,
            client,
            random: Random(scrambled(settings.seed) ^ scrambled(!client)),
            feed,
            known: feed.map_or_else(Box::default, Feed::no_values),
        };
        values.take_row();
        values
    }

    /// Goes on to the next request, or to the next session.
    pub(super) fn advance(&mut self) {
        self.number = self.number.wrapping_add(self.clients);
        self.take_row();
    }

    /// Takes the next row.
    fn take_row(&mut self) {
        if let Some(feed) = self.feed {
            feed.fill(self.number, self.random.0, &mut self.known);
        }
    }

    /// The values of the feed's variables.
    pub(super) fn known(&self) -> &[Known] {
        &self.known
    }

    /// The same, to capture others.
    pub(super) fn known_mut(&mut self) -> &mut [Known] {
        &mut self.known
    }

    /// Appends parts of a request to `out`.
    pub(super) fn write(
        &mut self,
        pieces: &[Piece],
        body: &[Piece],
        cookies: &Jar,
        out: &mut Vec<u8>,
    ) {
        for piece in pieces.iter().chain(body) {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Number => push_number(self.number, out),
                Piece::Client => push_number(self.client, out),
                Piece::Random(length) => self.random.push_text(*length, out),
                Piece::Uuid => self.random.push_uuid(out),
                Piece::Variable(variable) => {
                    let value = self.known[usize::from(variable.place)].bytes();
                    variable.encoding.push(value, out);
                }
                Piece::BodyLength => push_number(self.length(body), out),
                Piece::Cookies => cookies.push_header(out),
                Piece::CookiesBefore if cookies.is_empty() => {}
                Piece::CookiesBefore => {
                    cookies.push_value(out);
                    out.extend_from_slice(b"; ");
                }
            }
        }
    }

    /// The length of these parts.
    fn length(&self, pieces: &[Piece]) -> u64 {
        let lengths = pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.len() as u64,
            Piece::Number => digits(self.number),
            Piece::Client => digits(self.client),
            Piece::Random(length) => u64::from(*length),
            Piece::Uuid => 36,
            Piece::Variable(variable) => {
                let value = self.known[usize::from(variable.place)].bytes();
                variable.encoding.length(value)
            }
            Piece::BodyLength | Piece::Cookies | Piece::CookiesBefore => 0,
        });
        lengths.sum()
    }
}

fn digits(number: u64) -> u64 {
    u64::from(number.checked_ilog10().unwrap_or(0)) + 1
}

fn push_number(mut number: u64, out: &mut Vec<u8>) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

/// Random numbers that differ between clients and are the same for the same seed: SplitMix64 (Steele, Lea and Flood,
/// 2014).
#[derive(Debug, Clone)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        scrambled(self.0)
    }

    fn push_text(&mut self, length: u16, out: &mut Vec<u8>) {
        const LETTERS: &[u8; 62] =
            b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let mut word = 0;
        for place in 0..length {
            if place % 4 == 0 {
                word = self.next();
            }
            // 16 bits per letter. 65536 is not a multiple of 62, so some letters are 0.1 % more frequent.
            out.push(LETTERS[(((word & 0xffff) * 62) >> 16) as usize]);
            word >>= 16;
        }
    }

    fn push_uuid(&mut self, out: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let (high, low) = (self.next(), self.next());
        // Version 4, variant 10 (RFC 9562).
        let high = high & !0xf000 | 0x4000;
        let low = low & !(3 << 62) | 1 << 63;
        let bits = u128::from(high) << 64 | u128::from(low);
        for place in (0..32).rev() {
            if [23, 19, 15, 11].contains(&place) {
                out.push(b'-');
            }
            out.push(DIGITS[(bits >> (4 * place) & 0xf) as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn new_values(client: u64, clients: u64, seed: u64) -> Values {
        let settings = Settings {
            clients,
            seed,
            ..Settings::default()
        };
        Values::new(&settings, client)
    }

    fn pieces(text: &[u8]) -> Result<Vec<Piece>, String> {
        super::pieces(text, &[], Encoding::Plain)
    }

    fn text(text: &str) -> Piece {
        Piece::Text(text.as_bytes().to_vec())
    }

    fn filled(template: &str, values: &mut Values) -> String {
        let pieces = pieces(template.as_bytes()).unwrap();
        let mut out = Vec::new();
        let length = values.length(&pieces);
        values.write(&[], &pieces, &Jar::EMPTY, &mut out);
        values.advance();
        assert_eq!(out.len() as u64, length, "{template}");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn variables_are_exact_forms_and_json_stays() {
        assert_eq!(
            pieces(b"/a/{number}?c={client}").unwrap(),
            [text("/a/"), Piece::Number, text("?c="), Piece::Client]
        );
        assert_eq!(
            pieces(b"{random:8}{uuid}").unwrap(),
            [Piece::Random(8), Piece::Uuid]
        );
        for plain in [
            "{\"a\": {\"b\": [1, {}]}}",
            "{ n }",
            "{}",
            "{1,2}",
            "{",
            "{n",
            "{n:x}",
            "}n{",
            "{a b}",
            "{-n}",
        ] {
            assert_eq!(pieces(plain.as_bytes()).unwrap(), [text(plain)], "{plain}");
            assert!(!has_variables(plain.as_bytes()), "{plain}");
        }
        assert_eq!(pieces(b"{{number}").unwrap(), [text("{number}")]);
        assert_eq!(
            pieces(b"{\"id\": {number}}").unwrap(),
            [text("{\"id\": "), Piece::Number, text("}")]
        );
        assert!(has_variables(b"{\"id\": \"{uuid}\"}"));
    }

    #[test]
    fn unknown_variables_are_named_with_the_known_ones() {
        for (wrong, why) in [
            (
                "{Number}",
                "unknown variable `{Number}`; expected {number}, {client}, {random:8} or {uuid}",
            ),
            ("{n}", "unknown variable `{n}`"),
            ("{random}", "unknown variable `{random}`"),
            ("{number:5}", "unknown variable `{number:5}`"),
            ("{random:0}", "needs a length from 1 to 1024"),
            ("{random:1025}", "needs a length"),
            ("{random:99999999999}", "needs a length"),
        ] {
            let error = pieces(format!("/a{wrong}").as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn no_two_requests_have_the_same_number() {
        let mut seen = BTreeSet::new();
        for client in 0..7 {
            let mut values = new_values(client, 7, 1);
            for _ in 0..30 {
                assert!(seen.insert(filled("{number}", &mut values)));
            }
        }
        let numbers: BTreeSet<u64> = seen.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(numbers, (0..210).collect());
    }

    #[test]
    fn random_values_follow_from_the_seed() {
        let of = |client, seed| {
            filled(
                "{random:9} {uuid} {random:1024}",
                &mut new_values(client, 9, seed),
            )
        };
        assert_eq!(of(3, 5), of(3, 5));
        let all = [of(3, 5), of(4, 5), of(3, 6), of(5, 3), of(0, 0)];
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let words: Vec<&str> = all[0].split(' ').collect();
        assert!(words[0].bytes().all(|byte| byte.is_ascii_alphanumeric()));
        let letters: BTreeSet<u8> = words[2].bytes().collect();
        assert!(letters.len() > 55, "{letters:?}");
        let uuid: Vec<&str> = words[1].split('-').collect();
        let lengths: Vec<usize> = uuid.iter().map(|part| part.len()).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid:?}");
        assert!(
            uuid[2].starts_with('4') && "89ab".contains(&uuid[3][..1]),
            "{uuid:?}"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[{}n:a-c0-9]{0,40}") {
            for template in [&bytes[..], text.as_bytes()] {
                if let Ok(pieces) = pieces(template) {
                    let mut values = new_values(1, 2, 3);
                    let (length, mut out) = (values.length(&pieces), Vec::new());
                    values.write(&[], &pieces, &Jar::EMPTY, &mut out);
        values.advance();
                    prop_assert_eq!(out.len() as u64, length);
                    if !template.contains(&b'{') {
                        prop_assert_eq!(&out[..], template);
                    }
                }
            }
        }
    }
}
