//! A regular expression for bytes that arrive in pieces, without keeping any.
//!
//! A reply ends at the first byte after which the expression matches anywhere in the reply. That is where an automaton
//! first accepts. So the end does not depend on how the bytes are cut, and a client keeps only the state of the
//! automaton.

use std::fmt;

use regex_automata::dfa::{Automaton as _, dense};
use regex_automata::nfa::thompson;
use regex_automata::util::primitives::StateID;
use regex_automata::util::{look::Look, start, syntax};
use regex_automata::{Anchored, MatchKind};

use super::super::ProtocolError;

/// Maximum memory of an expression's automaton, and of building it.
const MOST_MEMORY: usize = 4 * 1024 * 1024;

/// A regular expression.
pub struct Pattern {
    automaton: dense::DFA<Vec<u32>>,
    start: StateID,
}

impl Pattern {
    /// Compiles an expression in the syntax of the crate `regex`, for bytes.
    ///
    /// # Errors
    /// If it is invalid, matches the empty string, or depends on what follows a match.
    pub fn new(expression: &str) -> Result<Self, String> {
        let refused = |why: &dyn fmt::Display| {
            format!("`{expression}` cannot be used as a regular expression: {why}")
        };
        let syntax = syntax::Config::new().utf8(false);
        let nfa = thompson::NFA::compiler()
            .syntax(syntax)
            .configure(
                thompson::Config::new()
                    .utf8(false)
                    .nfa_size_limit(Some(MOST_MEMORY)),
            )
            .build(expression)
            .map_err(|error| refused(&causes(&error)))?;
        if nfa.look_set_any().iter().any(looks_ahead) {
            return Err(refused(
                &"$, \\z and \\b depend on what follows a match, which is the next reply",
            ));
        }
        let automaton = dense::Builder::new()
            .configure(
                dense::Config::new()
                    .match_kind(MatchKind::All)
                    .dfa_size_limit(Some(MOST_MEMORY))
                    .determinize_size_limit(Some(MOST_MEMORY)),
            )
            .build_from_nfa(&nfa)
            .map_err(|error| refused(&causes(&error)))?;
        let start = automaton
            .start_state(&start::Config::new().anchored(Anchored::No))
            .map_err(|error| refused(&error))?;
        if automaton.is_match_state(automaton.next_eoi_state(start)) {
            return Err(format!(
                "`{expression}` matches no bytes, so every reply would end at once"
            ));
        }
        Ok(Self { automaton, start })
    }

    /// Whether it matches anywhere in `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        matches!(self.find(&mut self.start(), text), Ok(Some(_)))
    }

    /// The automaton's state before a reply.
    pub(in super::super) fn start(&self) -> usize {
        self.start.as_usize()
    }

    /// The end of the first match in `input`, given the bytes before.
    pub(in super::super) fn find(
        &self,
        state: &mut usize,
        input: &[u8],
    ) -> Result<Option<usize>, ProtocolError> {
        let mut current = StateID::new_unchecked(*state);
        for (at, &byte) in input.iter().enumerate() {
            current = self.automaton.next_state(current, byte);
            if self.automaton.is_special_state(current) {
                // The automaton looks one byte ahead: a match ended before this byte.
                if self.automaton.is_match_state(current) {
                    return Ok(Some(at));
                }
                if self.automaton.is_dead_state(current) || self.automaton.is_quit_state(current) {
                    let what = "the expression can no longer match the reply".to_owned();
                    return Err(ProtocolError { what });
                }
            }
        }
        *state = current.as_usize();
        let ended = self.automaton.next_eoi_state(current);
        Ok(self.automaton.is_match_state(ended).then_some(input.len()))
    }
}

/// Whether a match depends on what follows it.
fn looks_ahead(look: Look) -> bool {
    !matches!(look, Look::Start | Look::StartLF | Look::StartCRLF)
}

/// An error with its causes, without the lines that point into the expression.
fn causes(error: &dyn std::error::Error) -> String {
    let last = std::iter::successors(Some(error), |error| error.source()).last();
    let text = last.map_or_else(String::new, ToString::to_string);
    let line = text.lines().last().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pattern")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of the first match, cut at every byte.
    fn ends(expression: &str, bytes: &[u8]) -> Option<usize> {
        let pattern = Pattern::new(expression).unwrap();
        let mut found: Vec<Option<usize>> = (0..=bytes.len())
            .map(|cut| {
                let mut state = pattern.start();
                let first = pattern.find(&mut state, &bytes[..cut]).unwrap();
                first.or_else(|| {
                    let second = pattern.find(&mut state, &bytes[cut..]).unwrap();
                    second.map(|at| cut + at)
                })
            })
            .collect();
        found.dedup();
        assert_eq!(found.len(), 1, "{expression}: {found:?}");
        found[0]
    }

    #[test]
    fn the_first_end_is_the_end_however_the_bytes_are_cut() {
        assert_eq!(ends("\\n", b"ab\ncd\n"), Some(3));
        assert_eq!(ends("a+", b"xaaa"), Some(2));
        assert_eq!(ends("^b|cd", b"abcd"), Some(4));
        assert_eq!(ends("foobar|foo", b"foobar"), Some(3));
        assert_eq!(ends("(?i)END\\r\\n", b"x end\r\nEND\r\n"), Some(7));
        assert_eq!(ends("\\d{3}[ -]", b"220-x"), Some(4));
        assert_eq!(ends("\u{e4}.", "x\u{e4}\u{f6}".as_bytes()), Some(5));
        assert_eq!(ends("(?m)^b", b"ab\nb"), Some(4));
        assert_eq!(ends("c", b"ab"), None);
    }

    #[test]
    fn patterns_that_never_match_are_rejected_at_once() {
        let pattern = Pattern::new("^\\+OK\\r\\n").unwrap();
        let mut state = pattern.start();
        assert_eq!(pattern.find(&mut state, b"+O").unwrap(), None);
        assert!(pattern.find(&mut state, b"X").is_err());
    }

    #[test]
    fn expressions_that_cannot_be_used_are_refused() {
        for (expression, why) in [
            ("(", "unclosed group"),
            ("[z-a]", "invalid"),
            ("\\bx", "what follows"),
            ("x$", "what follows"),
            ("(?m)x$", "what follows"),
            ("(?s).*a.{1000}", "limit"),
            ("a*", "matches no bytes"),
        ] {
            let error = Pattern::new(expression).unwrap_err();
            assert!(error.contains(why), "{expression}: {error}");
        }
    }
}
