//! `top`: the client requests the processes that used the most CPU time, and the server reports them.
//!
//! Request: `top` and a line feed. Reply: one line for each of the two processes that used the most, in descending
//! order, then an empty line:
//!
//! ```text
//! PID NAME USER_TICKS KERNEL_TICKS TOTAL_TICKS
//! ```
//!
//! The total is the sum of the user and kernel ticks. A machine with fewer than two processes has fewer lines. A name
//! may contain spaces, so a line is parsed from both ends: the first field and the last three are numbers, and the
//! name is the rest. Control characters in a name, including line feeds, are sent as `?`.
//!
//! The server half only formats. Reading the processes of a machine is I/O, so the server provides [`Processes`].

use std::fmt;
use std::io::{self, Write as _};

use super::cycle::{self, Cycle};
use super::pattern::Interned;
use super::{
    Dialogue, OUTPUT_LIMIT, Offer, Protocol, ProtocolError, Replies, Requester, Session, Settings,
    Step,
};

/// The protocol `top`.
pub(super) struct Top;

impl Protocol for Top {
    fn name(&self) -> &'static str {
        "top"
    }

    fn summary(&self) -> &'static str {
        "the two processes of the server's machine that used most CPU time"
    }

    fn needs_linux(&self) -> bool {
        true
    }

    fn size(&self, _: usize) -> usize {
        REQUEST.len()
    }

    fn session(&self, offer: &Offer) -> Box<dyn Session> {
        Box::new(TopSession {
            processes: offer.processes,
            matched: 0,
        })
    }
}

impl Dialogue for Top {
    fn describe(&self, _: &Settings) -> String {
        self.name().to_owned()
    }

    fn requester(&self, _: &Settings, _: u64) -> Box<dyn Requester> {
        Box::new(TopRequester {
            requests: Cycle::new(requests(), 0),
            unanswered: 0,
            line: Vec::new(),
            lines: 0,
            above: u64::MAX,
        })
    }
}

const REQUEST: &[u8] = b"top\n";
/// Maximum number of processes in a reply.
const MOST_LINES: usize = 2;
/// Maximum length of a name: kernel threads can exceed the 15 bytes that other processes have.
const NAME_BYTES: usize = 64;

/// A view of the processes of a machine.
pub trait Processes: fmt::Debug + Sync {
    /// The processes that used the most CPU time.
    ///
    /// # Errors
    /// If the processes cannot be read. Processes that end in the meantime are left out.
    fn busiest(&self) -> io::Result<BusiestProcesses>;
}

/// A machine without processes, for the client half.
#[derive(Debug)]
pub(super) struct NoProcesses;

impl Processes for NoProcesses {
    fn busiest(&self) -> io::Result<BusiestProcesses> {
        Ok(BusiestProcesses::default())
    }
}

/// The CPU time of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessTimes {
    /// Its ID.
    pub pid: u32,
    /// Clock ticks in user mode.
    pub user_ticks: u64,
    /// Clock ticks in the kernel.
    pub kernel_ticks: u64,
    name: [u8; NAME_BYTES],
    name_bytes: usize,
}

impl ProcessTimes {
    /// A process; a long name is truncated.
    pub fn new(pid: u32, name: &[u8], user_ticks: u64, kernel_ticks: u64) -> Self {
        let name_bytes = name.len().min(NAME_BYTES);
        let mut used = Self {
            pid,
            user_ticks,
            kernel_ticks,
            name: [0; NAME_BYTES],
            name_bytes,
        };
        used.name[..name_bytes].copy_from_slice(&name[..name_bytes]);
        used
    }

    /// Its name, which may contain any byte.
    pub fn name(&self) -> &[u8] {
        &self.name[..self.name_bytes]
    }

    /// Total ticks.
    pub fn total_ticks(&self) -> u64 {
        self.user_ticks.saturating_add(self.kernel_ticks)
    }
}

/// The processes that used the most CPU time among those seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BusiestProcesses {
    ranked: [Option<ProcessTimes>; MOST_LINES],
}

impl BusiestProcesses {
    /// Adds a process if it ranks high enough. Of equals, the lower ID comes first.
    pub fn consider(&mut self, used: ProcessTimes) {
        let rank = |process: &ProcessTimes| (std::cmp::Reverse(process.total_ticks()), process.pid);
        let mut used = used;
        for place in &mut self.ranked {
            match place {
                Some(other) if rank(other) <= rank(&used) => {}
                Some(other) => std::mem::swap(other, &mut used),
                none => {
                    *none = Some(used);
                    return;
                }
            }
        }
    }

    /// The processes in descending order.
    pub fn iter(&self) -> impl Iterator<Item = &ProcessTimes> {
        self.ranked.iter().flatten()
    }
}

struct TopSession {
    processes: &'static dyn Processes,
    /// Received bytes of the current request.
    matched: usize,
}

impl Session for TopSession {
    fn receive(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Step, ProtocolError> {
        let (mut consumed, mut requests) = (0, 0);
        while consumed < input.len() && out.len() < OUTPUT_LIMIT {
            let wanted = &REQUEST[self.matched..];
            let length = wanted.len().min(input.len() - consumed);
            if input[consumed..consumed + length] != wanted[..length] {
                if requests > 0 {
                    break; // the requests before it are counted first; the bad one will be passed again
                }
                let what = "a request that is not `top` and a line feed".to_owned();
                return Err(ProtocolError { what });
            }
            consumed += length;
            self.matched = (self.matched + length) % REQUEST.len();
            if self.matched == 0 {
                let busiest = self.processes.busiest().map_err(|error| ProtocolError {
                    what: format!("cannot look at the processes here: {error}"),
                })?;
                write(&busiest, out);
                requests += 1;
            }
        }
        Ok(Step {
            consumed,
            requests,
            ..Step::default()
        })
    }

    fn is_within_request(&self) -> bool {
        self.matched > 0
    }
}

fn write(busiest: &BusiestProcesses, out: &mut Vec<u8>) {
    let failing = "writing to memory does not fail";
    for used in busiest.iter() {
        write!(out, "{} ", used.pid).expect(failing);
        let printed = |&byte: &u8| if byte.is_ascii_control() { b'?' } else { byte };
        out.extend(used.name().iter().map(printed));
        let (user, kernel) = (used.user_ticks, used.kernel_ticks);
        writeln!(out, " {user} {kernel} {}", used.total_ticks()).expect(failing);
    }
    out.push(b'\n');
}

/// The request, repeated as often as it may be sent at once.
fn requests() -> &'static [u8] {
    static REQUESTS: Interned<(), [u8]> = Interned::new();
    REQUESTS.get((), |()| cycle::repeat(REQUEST).into())
}

/// Maximum length of a line: four numbers of up to 20 digits, four spaces, and a name.
const LINE_BYTES: usize = 4 * 20 + 4 + NAME_BYTES;

struct TopRequester {
    requests: Cycle,
    /// Requests begun whose reply is not complete.
    unanswered: usize,
    /// The received part of the current line.
    line: Vec<u8>,
    /// Number of earlier lines of the current reply.
    lines: usize,
    /// The total in the last of these lines.
    above: u64,
}

impl Requester for TopRequester {
    fn begin(&mut self) -> &'static [u8] {
        self.requests.begin(REQUEST.len());
        self.unanswered += 1;
        self.pending()
    }

    fn pending(&self) -> &'static [u8] {
        self.requests.pending()
    }

    fn advance(&mut self, count: usize) -> &'static [u8] {
        self.requests.advance(count);
        self.pending()
    }

    fn drop_requests(&mut self) {
        self.requests.start_over(0);
        self.unanswered = 0;
        self.line.clear();
        (self.lines, self.above) = (0, u64::MAX);
    }

    fn receive(&mut self, input: &[u8]) -> Result<Replies, ProtocolError> {
        let mut completed = 0;
        for piece in input.split_inclusive(|&byte| byte == b'\n') {
            if self.unanswered == 0 {
                return wrong("bytes after the reply", piece);
            }
            if self.line.len() + piece.len() > LINE_BYTES + 1 {
                return wrong("a line has no end", &self.line);
            }
            self.line.extend_from_slice(piece);
            let Some(line) = self.line.strip_suffix(b"\n") else {
                break; // the rest of the line has not arrived yet
            };
            if line.is_empty() {
                completed += 1;
                self.unanswered -= 1;
                (self.lines, self.above) = (0, u64::MAX);
            } else {
                let Some(used) = parse(line) else {
                    return wrong("a line that is not PID NAME USER KERNEL TOTAL", line);
                };
                if used.user.checked_add(used.kernel) != Some(used.total) {
                    return wrong("a total that is not the sum", line);
                }
                if used.total > self.above {
                    return wrong("more than the line above it", line);
                }
                if self.lines == MOST_LINES {
                    return wrong("a line too many", line);
                }
                self.lines += 1;
                self.above = used.total;
            }
            self.line.clear();
        }
        Ok(Replies {
            completed,
            ..Replies::default()
        })
    }
}

struct Line {
    user: u64,
    kernel: u64,
    total: u64,
}

fn parse(line: &[u8]) -> Option<Line> {
    if line.iter().any(u8::is_ascii_control) {
        return None;
    }
    let mut fields = line.rsplitn(4, |&byte| byte == b' ');
    let (total, kernel, user) = (fields.next()?, fields.next()?, fields.next()?);
    let before = fields.next()?;
    let space = before.iter().position(|&byte| byte == b' ')?;
    number(&before[..space]).filter(|&pid| pid > 0)?;
    Some(Line {
        user: number(user)?,
        kernel: number(kernel)?,
        total: number(total)?,
    })
}

fn number(digits: &[u8]) -> Option<u64> {
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    str::from_utf8(digits).ok()?.parse().ok()
}

#[cold]
fn wrong(what: &str, place: &[u8]) -> Result<Replies, ProtocolError> {
    let place = &place[..place.len().min(LINE_BYTES)];
    let what = format!("{what}: `{}`", place.escape_ascii());
    Err(ProtocolError { what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A machine whose processes never change.
    #[derive(Debug)]
    struct Still(&'static [(u32, &'static [u8], u64, u64)]);

    impl Processes for Still {
        fn busiest(&self) -> io::Result<BusiestProcesses> {
            let mut busiest = BusiestProcesses::default();
            for &(pid, name, user, kernel) in self.0 {
                busiest.consider(ProcessTimes::new(pid, name, user, kernel));
            }
            Ok(busiest)
        }
    }

    const MACHINE: &dyn Processes = &Still(&[
        (1, b"init", 5, 10),
        (300, b"tmux: a (b) c", 100, 20),
        (20, b"two\nlines", 60, 60),
        (4, b"idle", 0, 0),
    ]);
    const REPLY: &[u8] = b"20 two?lines 60 60 120\n300 tmux: a (b) c 100 20 120\n\n";

    fn session(processes: &'static dyn Processes) -> Box<dyn Session> {
        Top.session(&Offer {
            processes,
            ..Offer::default()
        })
    }

    fn asked(requests: usize) -> Box<dyn Requester> {
        let mut requester = Top.requester(&Settings::default(), 0);
        let mut wire = Vec::new();
        for _ in 0..requests {
            requester.request(&mut wire);
        }
        assert_eq!(wire, b"top\n".repeat(requests));
        requester
    }

    #[test]
    fn the_two_that_used_most_cut_at_every_byte() {
        let wire = b"top\ntop\n";
        for cut in 0..=wire.len() {
            let mut session = session(MACHINE);
            let (mut out, mut requests) = (Vec::new(), 0);
            for piece in [&wire[..cut], &wire[cut..]] {
                let step = session.receive(piece, &mut out).unwrap();
                assert_eq!(step.consumed, piece.len());
                requests += step.requests;
            }
            assert_eq!(out, REPLY.repeat(2), "cut at {cut}");
            assert_eq!(requests, 2);
        }
    }

    #[test]
    fn a_machine_may_have_few_processes() {
        for (machine, reply) in [
            (&Still(&[]) as &dyn Processes, &b"\n"[..]),
            (&Still(&[(7, b"", 1, 2)]), b"7  1 2 3\n\n"),
        ] {
            let mut out = Vec::new();
            session(machine).receive(b"top\n", &mut out).unwrap();
            assert_eq!(out, reply);
            assert_eq!(asked(1).receive(reply).unwrap().completed, 1);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for wire in [&b"tpo\n"[..], b"top\r\n", b"t\0"] {
            assert!(session(MACHINE).receive(wire, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn requests_before_one_that_is_refused_are_counted() {
        let (mut session, mut out) = (session(MACHINE), Vec::new());
        let wire = b"top\ntop\nbad\n";
        let step = session.receive(wire, &mut out).unwrap();
        assert_eq!((step.consumed, step.requests), (8, 2));
        assert!(session.receive(&wire[8..], &mut out).is_err() && out == REPLY.repeat(2));
    }

    #[test]
    fn output_is_bounded_and_the_rest_is_taken_later() {
        let wire = REQUEST.repeat(OUTPUT_LIMIT / REPLY.len() + 100);
        let (mut session, mut out) = (session(MACHINE), Vec::new());
        let step = session.receive(&wire, &mut out).unwrap();
        assert!(step.consumed < wire.len());
        assert!(out.len() < OUTPUT_LIMIT + REPLY.len());
        out.clear();
        let step = session.receive(&wire[step.consumed..], &mut out).unwrap();
        assert_eq!(out, REPLY.repeat(step.requests as usize));
    }

    #[test]
    fn replies_are_checked_cut_at_every_byte() {
        let wire = REPLY.repeat(2);
        for cut in 0..=wire.len() {
            let mut requester = asked(2);
            let first = requester.receive(&wire[..cut]).unwrap().completed;
            let second = requester.receive(&wire[cut..]).unwrap().completed;
            assert_eq!(first + second, 2, "cut at {cut}");
        }
    }

    #[test]
    fn wrong_replies_are_refused_by_what_is_wrong() {
        for (reply, why) in [
            (&b"1 a 1 2 4\n\n"[..], "a total that is not the sum: `1 a"),
            (b"1 a 1 2 3\n2 b 2 2 4\n\n", "more than the line above it"),
            (b"1 a 1 2 3\n2 b 1 1 2\n3 c 1 0 1\n", "a line too many"),
            (b"a 1 2 3\n\n", "a line that is not"),
            (b"0 a 1 2 3\n\n", "a line that is not"),
            (b"1 a +1 2 3\n\n", "a line that is not"),
            (b"1 a\x07 1 2 3\n\n", "a line that is not"),
            (b"1 2 3\n\n", "a line that is not"),
            (b"1 a 18446744073709551615 1 0\n\n", "not the sum"),
            (b"\n1", "bytes after the reply"),
            (&[b'x'; 1000], "a line has no end"),
        ] {
            let error = asked(1).receive(reply).unwrap_err();
            assert!(error.what.contains(why), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_name_can_be_read_again(
            name in prop::collection::vec(any::<u8>(), 0..80),
            user in 0..u64::MAX / 2,
            kernel in 0..u64::MAX / 2,
        ) {
            let mut busiest = BusiestProcesses::default();
            busiest.consider(ProcessTimes::new(u32::MAX, &name, user, kernel));
            let mut out = Vec::new();
            write(&busiest, &mut out);
            prop_assert_eq!(asked(1).receive(&out).unwrap().completed, 1);
            // A long name is truncated, and a large total is capped.
            let used = ProcessTimes::new(1, &[b'n'; 100], u64::MAX, 1);
            prop_assert_eq!((used.name(), used.total_ticks()), (&[b'n'; NAME_BYTES][..], u64::MAX));
        }
    }
}
