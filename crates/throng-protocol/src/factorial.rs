//! `factorial`: the client sends a number n, the server answers n!.
//!
//! Both are unsigned 64-bit integers, most significant byte first. 20! is the largest factorial that fits, so larger
//! numbers also get it as their reply.

use super::cycle::Cycle;
use super::number::Number;
use super::{
    Dialogue, OUTPUT_LIMIT, Offer, Protocol, ProtocolError, Replies, Requester, Session, Settings,
    Step,
};

/// The protocol `factorial`.
pub(super) struct Factorial;

impl Protocol for Factorial {
    fn name(&self) -> &'static str {
        "factorial"
    }

    fn summary(&self) -> &'static str {
        "a number n, answered with n! (20! for n above 20); 8 bytes each way"
    }

    fn size(&self, _: usize) -> usize {
        QUESTION_BYTES
    }

    fn session(&self, _: &Offer) -> Box<dyn Session> {
        Box::new(FactorialSession(Number::default()))
    }
}

impl Dialogue for Factorial {
    fn describe(&self, _: &Settings) -> String {
        format!("factorial of {QUESTION_BYTES} bytes")
    }

    fn requester(&self, _: &Settings, client: u64) -> Box<dyn Requester> {
        let first = (client % QUESTIONS as u64) as usize;
        Box::new(FactorialRequester {
            questions: Cycle::new(&WIRE, first * QUESTION_BYTES),
            next: first,
            oldest: first,
            unanswered: 0,
            reply: Number::default(),
        })
    }
}

/// Largest number whose factorial fits.
const GREATEST: u64 = 20;

fn factorial(n: u64) -> u64 {
    (1..=n.min(GREATEST)).product()
}

struct FactorialSession(Number);

impl Session for FactorialSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let mut left = input;
        let mut requests = 0;
        while !left.is_empty() && out.len() < OUTPUT_LIMIT {
            if let Some(n) = self.0.take(&mut left) {
                out.extend_from_slice(&factorial(n).to_be_bytes());
                requests += 1;
            }
        }
        Ok(Step {
            consumed: input.len() - left.len(),
            requests,
            ..Step::default()
        })
    }

    fn is_within_request(&self) -> bool {
        self.0.is_begun()
    }
}

/// Sends one number after another, starting with the client's own.
struct FactorialRequester {
    questions: Cycle,
    /// The next question.
    next: usize,
    /// The oldest question without a reply, or `next`.
    oldest: usize,
    unanswered: usize,
    reply: Number,
}

const QUESTION_BYTES: usize = size_of::<u64>();
/// The numbers of successive requests: from 0 to four above the largest (so that some are out of range), then the
/// largest integer.
const QUESTIONS: usize = GREATEST as usize + 6;

/// The number that a request sends.
const fn asked(question: usize) -> u64 {
    if question == QUESTIONS - 1 {
        u64::MAX
    } else {
        question as u64
    }
}

/// The next question.
fn following(question: usize) -> usize {
    if question == QUESTIONS - 1 {
        0
    } else {
        question + 1
    }
}

/// All questions.
static WIRE: [u8; QUESTIONS * QUESTION_BYTES] = {
    let mut wire = [0; QUESTIONS * QUESTION_BYTES];
    let mut at = 0;
    while at < wire.len() {
        wire[at] = asked(at / QUESTION_BYTES).to_be_bytes()[at % QUESTION_BYTES];
        at += 1;
    }
    wire
};

impl Requester for FactorialRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.questions.begin(QUESTION_BYTES);
        self.next = following(self.next);
        self.unanswered += 1;
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.questions.pending()
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.questions.advance(count);
        self.pending()
    }

    fn drop_requests(&mut self) {
        self.questions.start_over(self.next * QUESTION_BYTES);
        self.oldest = self.next;
        self.unanswered = 0;
        self.reply = Number::default();
    }

    fn receive(&mut self, mut input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut completed = 0;
        while !input.is_empty() {
            if self.unanswered == 0 {
                let what = format!("{} bytes came after the reply", input.len());
                return Err(ProtocolError { what });
            }
            if let Some(reply) = self.reply.take(&mut input) {
                let n = asked(self.oldest);
                let right = factorial(n);
                if reply != right {
                    let what = format!("{n}! came back as {reply} instead of {right}");
                    return Err(ProtocolError { what });
                }
                self.oldest = following(self.oldest);
                self.unanswered -= 1;
                completed += 1;
            }
        }
        Ok(Replies {
            completed,
            ..Replies::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// n! for every n that fits, from the table in OEIS A000142.
    const EXACT: [u64; 21] = [
        1,
        1,
        2,
        6,
        24,
        120,
        720,
        5_040,
        40_320,
        362_880,
        3_628_800,
        39_916_800,
        479_001_600,
        6_227_020_800,
        87_178_291_200,
        1_307_674_368_000,
        20_922_789_888_000,
        355_687_428_096_000,
        6_402_373_705_728_000,
        121_645_100_408_832_000,
        2_432_902_008_176_640_000,
    ];

    fn answer(request: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut session = Factorial.session(&Offer::default());
        let step = session.receive(request, &mut out).unwrap();
        assert_eq!(step.consumed, request.len());
        out
    }

    #[test]
    fn answers_are_exact() {
        for (n, right) in EXACT.iter().enumerate() {
            assert_eq!(answer(&(n as u64).to_be_bytes()), right.to_be_bytes());
        }
        for n in [21, 22, 1 << 32, u64::MAX] {
            assert_eq!(answer(&n.to_be_bytes()), EXACT[20].to_be_bytes());
        }
    }

    #[test]
    fn cut_at_every_byte() {
        for cut in 0..=24 {
            let mut requester = Factorial.requester(&Settings::default(), 18);
            let mut wire = Vec::new();
            (0..3).for_each(|_| requester.request(&mut wire));
            let mut session = Factorial.session(&Offer::default());
            let mut requests = 0;
            let mut completed = 0;
            for part in [&wire[..cut], &wire[cut..]] {
                let mut out = Vec::new();
                requests += session.receive(part, &mut out).unwrap().requests;
                let (head, tail) = out.split_at(out.len() / 3);
                completed += requester.receive(head).unwrap().completed;
                completed += requester.receive(tail).unwrap().completed;
            }
            assert_eq!((requests, completed), (3, 3), "cut at {cut}");
        }
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let mut requester = Factorial.requester(&Settings::default(), 5);
        requester.request(&mut Vec::new());
        let error = requester.receive(&119_u64.to_be_bytes()).unwrap_err();
        assert_eq!(error.what, "5! came back as 119 instead of 120");
    }

    #[test]
    fn output_is_bounded_and_the_rest_is_taken_later() {
        let mut session = Factorial.session(&Offer::default());
        let input = vec![0; 2 * OUTPUT_LIMIT];
        let mut out = Vec::new();
        let step = session.receive(&input, &mut out).unwrap();
        assert_eq!((step.consumed, out.len()), (OUTPUT_LIMIT, OUTPUT_LIMIT));
    }

    proptest! {
        #[test]
        fn garbage_never_breaks_the_server(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(answer(&garbage).len(), garbage.len() / 8 * 8);
        }
    }
}
