//! The view on a terminal: the real program draws it there, takes it away again however it ends, and
//! writes plain lines everywhere else.

use std::io::{ErrorKind, Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::throng;
use crate::support::program::THRONG;
use crate::support::runs::json;

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_mins(3);

/// The program on a terminal of 80 columns, so high that nothing scrolls away.
struct OnTerminal {
    child: Child,
    terminal: std::fs::File,
    screen: vt100::Parser,
    finished: String,
    /// Read and not processed yet.
    pending: Vec<u8>,
}

const ROWS: u16 = 120;
const COLUMNS: u16 = 80;

impl OnTerminal {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(THRONG);
        command.args(arguments);
        Self::of(command, environment)
    }

    fn of(mut command: Command, environment: &[(&str, &str)]) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let terminal = openpt(flags).expect("a terminal");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it is ours");
        let size = Winsize {
            ws_row: ROWS,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).expect("it has a size");
        let other_side = || {
            // Not inherited by programs that other tests start meanwhile: they would keep it open.
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            Stdio::from(ioctl_tiocgptpeer(&terminal, flags).expect("its other side"))
        };
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "CI"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm");
        command.envs(environment.iter().copied());
        command
            .stdin(other_side())
            .stdout(other_side())
            .stderr(other_side());
        let child = command.spawn().expect("the program can be started");
        // Our own ends of its side, or its end would not be seen.
        drop(command);
        let size = |cells: u16| cells.try_into().expect("it has a size");
        Self {
            child,
            terminal: terminal.into(),
            screen: vt100::Parser::new(size(ROWS), size(COLUMNS), 0),
            finished: String::new(),
            pending: Vec::new(),
        }
    }

    /// Processes input up to the next carriage return, so that each view is seen however late it is read; false at the
    /// end.
    fn step(&mut self, deadline: Instant) -> bool {
        if self.pending.is_empty() && !self.read(deadline) {
            return false;
        }
        let end = self.pending.iter().position(|byte| *byte == b'\r');
        let end = end.map_or(self.pending.len(), |end| end + 1);
        let piece: Vec<u8> = self.pending.drain(..end).collect();
        self.screen.process(&piece);
        self.finished += &String::from_utf8_lossy(&piece);
        true
    }

    /// Reads input; false at the end.
    fn read(&mut self, deadline: Instant) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("it is short");
        let mut fds = [PollFd::new(&self.terminal, PollFlags::IN)];
        let ready = retry_on_intr(|| poll(&mut fds, Some(&left))).expect("it can be waited for");
        assert!(ready > 0, "nothing came any more:\n{}", self.shown());
        let mut buffer = [0; 4096];
        match self.terminal.read(&mut buffer) {
            Ok(0) => false,
            Ok(count) => {
                self.pending.extend_from_slice(&buffer[..count]);
                true
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            // A terminal without any open other side.
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "{error}");
                false
            }
        }
    }

    fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Waits until all of this is shown at once.
    fn shows(&mut self, all: &[&str]) {
        let deadline = Instant::now() + TIMEOUT;
        while !all.iter().all(|what| self.shown().contains(what)) {
            assert!(self.step(deadline), "not {all:?}:\n{}", self.shown());
        }
    }

    /// Closes the terminal, and waits for the end.
    fn is_closed(&mut self) -> Option<i32> {
        self.terminal = std::fs::File::open("/dev/null").expect("it is there");
        self.exit_code()
    }

    /// Stops its output, as Ctrl-S does.
    fn stall(&mut self) {
        self.terminal.write_all(b"\x13").expect("it takes input");
    }

    /// Waits for the end without reading.
    fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("it was started") {
                return status.code();
            }
            assert!(Instant::now() < deadline, "it did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it runs");
    }

    /// Waits for the end, and checks that the terminal is restored; returns the exit code.
    fn ends(&mut self) -> Option<i32> {
        let deadline = Instant::now() + TIMEOUT;
        while self.step(deadline) {}
        let status = self.child.wait().expect("it was started");
        let screen = self.screen.screen();
        assert!(!screen.hide_cursor() && !screen.alternate_screen());
        let count = |what: &str| self.finished.matches(what).count();
        // Lines do not wrap while the view changes, and then do again.
        assert_eq!(count("\x1b[?7l"), count("\x1b[?7h"));
        assert_eq!(count("\x1b[?"), 2 * count("\x1b[?7h"), "a mode was changed");
        let shown = self.shown();
        for of_view in ["client CPU", "p50, p99", "so far", "━"] {
            assert!(!shown.contains(of_view), "{of_view} is left:\n{shown}");
        }
        status.code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // Where a test failed; else it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether colours or other styles are set anywhere.
fn has_styles(finished: &str) -> bool {
    let mut sequences = finished.split("\x1b[").skip(1);
    sequences.any(|sequence| {
        let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';');
        end.is_some_and(|end| sequence[end..].starts_with('m'))
    })
}

/// A run of one server with three clients.
fn run<'a>(directory: &'a str, duration: &'a str) -> Vec<&'a str> {
    let options = "run --models epoll --clients 3 --warm-up 10ms --probes cpu,established --control none \
                   --no-ceiling --latency-at none --allow-rough --retries 0 --duration";
    let mut words: Vec<&str> = options.split_whitespace().collect();
    words.extend([duration, "--output", directory]);
    words
}

#[test]
fn a_terminal_shows_a_running_trial_and_keeps_its_result() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("record");
    let mut arguments = run(directory.to_str().unwrap(), "1s");
    arguments.extend(["--runs", "2"]);
    let mut terminal = OnTerminal::start(&arguments, &[]);
    terminal.shows(&["trial 1 of 2", "epoll with 3 clients, round 1", " left"]);
    // In whichever trial it is drawn first.
    terminal.shows(&["3 connected", "3 served", "server CPU", "█"]);
    terminal.shows(&["trial 2 of 2"]);
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.shown());
    let shown = terminal.shown();
    assert_eq!(
        shown.matches("epoll with 3 clients: ").count(),
        2,
        "{shown}"
    );
    assert_eq!(shown.matches("requests/s, p50 ").count(), 2, "{shown}");
    assert!(shown.contains("Report:"), "{shown}");
    assert!(has_styles(&terminal.finished));
}

#[test]
fn stopping_a_run_restores_the_terminal() {
    for (signal, no_colour) in [(Signal::INT, ""), (Signal::TERM, "1")] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("record");
        let mut arguments = run(directory.to_str().unwrap(), "600s");
        arguments.extend(["--runs", "1"]);
        let mut terminal = OnTerminal::start(&arguments, &[("NO_COLOR", no_colour)]);
        // A rate is known: the load reports live values.
        terminal.shows(&["measure", "█"]);
        terminal.signal(signal);
        assert_eq!(terminal.ends(), Some(130), "{}", terminal.shown());
        let shown = terminal.shown();
        assert!(shown.contains("interrupted: 0 of 1 trials"), "{shown}");
        assert!(shown.contains("run --resume /"), "{shown}");
        let has_styles = has_styles(&terminal.finished);
        assert_eq!(has_styles, no_colour.is_empty(), "{:?}", terminal.finished);
    }
}

/// Its last output is lost, but nothing else.
#[test]
fn a_terminal_that_is_closed_ends_a_run_like_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    // As the leader of a session with this controlling terminal; under nohup, the signal would be ignored.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", "setsid", "--ctty", "--wait", THRONG]);
    command.args(run(record.to_str().unwrap(), "600s"));
    let mut terminal = OnTerminal::of(command, &[]);
    terminal.shows(&["measure", "█"]);
    assert_eq!(terminal.is_closed(), Some(130));
    assert_complete_record(&record);
}

/// Output then waits for a reader that never reads.
#[test]
fn a_stalled_terminal_does_not_keep_a_run_from_ending() {
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let mut terminal = OnTerminal::start(&run(record.to_str().unwrap(), "600s"), &[]);
    terminal.shows(&["measure", "█"]);
    terminal.stall();
    terminal.signal(Signal::TERM);
    assert_eq!(terminal.exit_code(), Some(130));
    assert_complete_record(&record);
}

/// That a record of an interrupted run has its report.
fn assert_complete_record(record: &std::path::Path) {
    assert_eq!(json(&record.join("run.json"))["ending"], "interrupted");
    assert!(record.join("report.html").exists() && record.join("report.md").exists());
}

#[test]
fn plain_lines_without_a_capable_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let piped = directory.path().join("piped");
    let mut arguments = run(piped.to_str().unwrap(), "100ms");
    arguments.extend(["--runs", "1"]);
    let finished = throng(&arguments);
    assert_eq!(finished.code, 0, "{finished:?}");
    assert!(
        finished.err.contains("epoll with 3 clients: "),
        "{finished:?}"
    );
    assert!(
        !finished.err.contains('\x1b') && !finished.out.contains('\x1b'),
        "{finished:?}"
    );
    let dumb = directory.path().join("dumb");
    let mut arguments = run(dumb.to_str().unwrap(), "100ms");
    arguments.extend(["--runs", "1"]);
    let mut terminal = OnTerminal::start(&arguments, &[("TERM", "dumb")]);
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.shown());
    assert!(terminal.shown().contains("epoll with 3 clients: "));
    assert!(
        !terminal.finished.contains("\x1b["),
        "{:?}",
        terminal.finished
    );
}
