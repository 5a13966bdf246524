//! Rules for bodies of replies.

use std::fmt;

use super::super::custom::{Needle, Pattern, unescape};
use super::wrong::{Fault, WrongReply, wrong};

/// Maximum bytes shown of a wrong body.
const SHOWN: usize = 200;

/// A rule for the bodies of replies.
#[derive(Debug)]
pub struct BodyRule {
    /// As written by the user.
    spec: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// The same bytes each time, for each path.
    Same,
    /// Exactly this.
    Text(Vec<u8>),
    /// A body that contains this.
    Contains(Box<Needle>),
    /// A body that matches this.
    Pattern(Box<Pattern>),
}

/// The state of checking a body.
#[derive(Debug, Default)]
pub(super) struct BodyCheck {
    /// State of a search.
    state: usize,
    /// Whether something was found, or can no longer be found.
    found: bool,
    over: bool,
    /// Hash of the bytes so far.
    hash: u64,
    /// The beginning of the body.
    shown: Vec<u8>,
}

impl BodyRule {
    /// Parses `same`, `text:STRING`, `contains:STRING` or `regex:RE`.
    ///
    /// # Errors
    /// If `spec` is not a rule, or its text or expression is invalid.
    pub fn parse(spec: &str) -> Result<Self, String> {
        let kind = match spec.split_once(':') {
            None if spec == "same" => Kind::Same,
            Some(("text", text)) => Kind::Text(unescape(text)?),
            Some(("contains", text)) => match unescape(text)? {
                text if text.is_empty() => {
                    return Err("`contains:` needs a text".to_owned());
                }
                text => Kind::Contains(Box::new(Needle::new(&text))),
            },
            Some(("regex", expression)) => Kind::Pattern(Box::new(Pattern::new(expression)?)),
            _ => {
                return Err(format!(
                    "`{spec}` is not a rule for bodies; write same, text:STRING, contains:STRING or regex:RE"
                ));
            }
        };
        Ok(Self {
            spec: spec.to_owned(),
            kind,
        })
    }

    /// Whether all bodies of a path must be the same.
    pub(super) fn wants_same(&self) -> bool {
        matches!(self.kind, Kind::Same)
    }

    /// Prepares `check` for the first byte of a body.
    pub(super) fn begin(&self, check: &mut BodyCheck) {
        check.state = match &self.kind {
            Kind::Pattern(pattern) => pattern.start(),
            _ => 0,
        };
        (check.found, check.over) = (false, false);
        check.hash = FNV_OFFSET;
        check.shown.clear();
    }

    /// Processes the next bytes, which start at byte `at` of the body.
    pub(super) fn take(
        &self,
        check: &mut BodyCheck,
        at: u64,
        content: &[u8],
    ) -> Result<(), WrongReply> {
        let room = SHOWN - check.shown.len().min(SHOWN);
        check.shown.extend(content.iter().take(room));
        if check.found || check.over {
            return Ok(());
        }
        match &self.kind {
            Kind::Same => check.hash = fnv(check.hash, content),
            Kind::Text(text) => {
                let rest = text.get(at as usize..).unwrap_or_default();
                if !rest.starts_with(content) {
                    return self.wrong(check);
                }
            }
            Kind::Contains(needle) => {
                check.found = needle.find(&mut check.state, content).is_some();
            }
            Kind::Pattern(pattern) => match pattern.find(&mut check.state, content) {
                Ok(end) => check.found = end.is_some(),
                Err(_) => check.over = true, // it can no longer match
            },
        }
        Ok(())
    }

    /// Checks a complete body of `bytes` bytes. Returns its fingerprint.
    pub(super) fn end(&self, check: &BodyCheck, bytes: u64) -> Result<u64, WrongReply> {
        let right = match &self.kind {
            Kind::Same => true,
            Kind::Text(text) => bytes == text.len() as u64,
            Kind::Contains(_) | Kind::Pattern(_) => check.found,
        };
        if right {
            Ok(check.hash)
        } else {
            self.wrong(check)
        }
    }

    /// The expected and the received body, for a message.
    pub(super) fn wrong<T>(&self, check: &BodyCheck) -> Result<T, WrongReply> {
        let more = if check.shown.len() == SHOWN {
            " ..."
        } else {
            ""
        };
        let right = match self.kind {
            Kind::Same => "the same as before".to_owned(),
            _ => self.to_string(),
        };
        let what = format!(
            "the body is not {right} but `{}`{more}",
            check.shown.escape_ascii()
        );
        wrong(Fault::Reply, what)
    }
}

impl PartialEq for BodyRule {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl fmt::Display for BodyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spec)
    }
}

/// Parameters of the Fowler-Noll-Vo hash (64-bit FNV-1a).
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict of a rule on a body, cut at every byte.
    fn judge(spec: &str, body: &str) -> Result<u64, String> {
        let rule = BodyRule::parse(spec).unwrap();
        let mut check = BodyCheck::default();
        let mut judgements: Vec<_> = (0..=body.len())
            .map(|cut| {
                rule.begin(&mut check);
                let (head, tail) = body.as_bytes().split_at(cut);
                rule.take(&mut check, 0, head)?;
                rule.take(&mut check, cut as u64, tail)?;
                rule.end(&check, body.len() as u64)
            })
            .map(|judged| judged.map_err(|error| error.what))
            .collect();
        let all_right = judgements.iter().all(Result::is_ok);
        let all_wrong = judgements.iter().all(Result::is_err);
        assert!(all_right || all_wrong, "{judgements:?}");
        judgements.remove(0)
    }

    #[test]
    fn rules_hold_however_a_body_is_cut() {
        for (spec, right, not) in [
            (
                "text:abc\\n",
                "abc\n",
                &["", "abc", "abcd", "abc\nd", "xbc\n"][..],
            ),
            ("text:", "", &["a"]),
            ("contains:bc", "abcd", &["", "b", "cb"]),
            (
                "regex:\"ok\": ?true",
                "{\"ok\":true}",
                &["{\"ok\":false}", ""],
            ),
            ("regex:^a", "ab", &["ba"]),
        ] {
            assert!(judge(spec, right).is_ok(), "{spec}");
            for body in not {
                let why = judge(spec, body).unwrap_err();
                assert!(why.contains(spec), "{why}");
            }
        }
        assert_eq!(
            judge("text:a", "\u{1b}[31m").unwrap_err(),
            "the body is not text:a but `\\x1b[31m`"
        );
        assert_eq!(judge("same", "abc"), judge("same", "abc"));
        assert_ne!(judge("same", "abc"), judge("same", "abd"));
    }

    #[test]
    fn empty_rules_are_refused() {
        for spec in ["", "exactly", "contains:", "text", "regex:(", "regex:a*"] {
            assert!(BodyRule::parse(spec).is_err(), "{spec}");
        }
    }
}
