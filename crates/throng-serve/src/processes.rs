//! The processes of the server's machine, for the protocol `top`.
//!
//! Reading them takes one open() and one read() per process, and no allocation. The server does this for every request
//! of the protocol `top`, so it should cost only what the kernel needs.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use memchr::{memchr, memrchr};
use rustix::fs::{CWD, Mode, OFlags, RawDir, openat};
use rustix::io::{Errno, read};

use throng_protocol::{BusiestProcesses, ProcessTimes, Processes};

/// A directory with the content of `/proc`.
#[derive(Debug)]
pub struct Proc {
    root: &'static CStr,
}

/// The processes of this machine.
pub static PROC: Proc = Proc { root: c"/proc" };

/// Number of attempts, 1 ms apart, before it gives up for lack of a free descriptor.
const TRIES: u32 = 1000;

/// Buffer sizes: for the names of some processes, and for the part of a process's file that is read.
const NAMES_BYTES: usize = 8 * 1024;
const STAT_BYTES: usize = 512;

impl Processes for Proc {
    fn busiest(&self) -> io::Result<BusiestProcesses> {
        match self.read_all() {
            Err(Errno::MFILE | Errno::NFILE) => self.read_all_in_turn(),
            looked => Ok(looked?),
        }
    }
}

impl Proc {
    fn read_all(&self) -> Result<BusiestProcesses, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = openat(CWD, self.root, flags, Mode::empty())?;
        let root = std::os::fd::AsFd::as_fd(&directory);
        let mut names = [const { MaybeUninit::uninit() }; NAMES_BYTES];
        let mut entries = RawDir::new(root, &mut names);
        let mut busiest = BusiestProcesses::default();
        while let Some(entry) = entries.next() {
            let found = entry?;
            let name = found.file_name().to_bytes();
            if let Some(pid) = number(name)
                && let Some(used) = read_times(root, pid as u32, name)?
            {
                busiest.consider(used);
            }
        }
        Ok(busiest)
    }

    /// The last free descriptors are reserved for this (the listening path withholds two from clients). But many
    /// threads may need them, so they take turns here.
    #[cold]
    fn read_all_in_turn(&self) -> io::Result<BusiestProcesses> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 1..TRIES {
            match self.read_all() {
                Err(Errno::MFILE | Errno::NFILE) => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                looked => return Ok(looked?),
            }
        }
        Ok(self.read_all()?)
    }
}

/// The CPU time of one process; `None` if it has ended or may not be read.
fn read_times(root: BorrowedFd<'_>, pid: u32, name: &[u8]) -> Result<Option<ProcessTimes>, Errno> {
    const FILE: &[u8] = b"/stat\0";
    let mut buffer = [0_u8; 32];
    let length = name.len() + FILE.len();
    if length > buffer.len() {
        return Ok(None);
    }
    buffer[..name.len()].copy_from_slice(name);
    buffer[name.len()..length].copy_from_slice(FILE);
    let path = CStr::from_bytes_with_nul(&buffer[..length]).map_err(|_| Errno::INVAL)?;
    let file = match openat(root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => file,
        Err(error @ (Errno::MFILE | Errno::NFILE)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut stat = [const { MaybeUninit::uninit() }; STAT_BYTES];
    // The kernel returns the whole file in one read.
    Ok(match read(&file, &mut stat) {
        Ok((stat, _)) => parse(pid, stat),
        Err(_) => None,
    })
}

/// Parses the line of a `stat` file: the process ID, the name in parentheses, the state, and then numbers. The
/// eleventh of these is the time in user mode, and the twelfth the time in the kernel. The name may contain anything,
/// even parentheses, so it ends at the last closing one (proc_pid_stat(5)).
pub fn parse(pid: u32, stat: &[u8]) -> Option<ProcessTimes> {
    const BETWEEN: usize = 10;
    let open = memchr(b'(', stat)?;
    let close = memrchr(b')', stat)?;
    let name = stat.get(open + 1..close)?;
    let after = stat.get(close + 2..)?;
    let mut fields = after.split(|&byte| byte == b' ').skip(1 + BETWEEN);
    let user_ticks = number(fields.next()?)?;
    let kernel_ticks = number(fields.next()?)?;
    Some(ProcessTimes::new(pid, name, user_ticks, kernel_ticks))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;

    use super::*;

    fn line(pid: u32, name: &str, user: u64, kernel: u64) -> String {
        format!(
            "{pid} ({name}) S 1 1 1 0 -1 4194560 16093 105 14 50 {user} {kernel} 17 38 20 0 1 0 4\n"
        )
    }

    #[test]
    fn names_may_hold_anything() {
        for name in [
            "cat",
            "tmux: server",
            "a) S 1 (b",
            "",
            "two\nlines",
            "(sd-pam)",
        ] {
            let used = parse(9, line(9, name, 3, 4).as_bytes());
            assert_eq!(used, Some(ProcessTimes::new(9, name.as_bytes(), 3, 4)));
        }
    }

    #[test]
    fn malformed_stat_lines_are_ignored() {
        let whole = line(9, "cat", 3, 45);
        let needed = whole.find(" 45 ").unwrap() + 2;
        for cut in 0..needed {
            assert_eq!(parse(9, &whole.as_bytes()[..cut]), None, "cut at {cut}");
        }
        assert_eq!(parse(9, b")("), None);
        assert_eq!(parse(9, b"9 (cat) S 1 2 3 4 5 6 7 8 9 10 -1 4 5 6"), None);
    }

    #[test]
    fn the_busiest_of_a_machine_are_found_and_what_vanishes_is_skipped() {
        let machine = tempfile::tempdir().unwrap();
        let put = |name: &str, stat: Option<String>| {
            let directory = machine.path().join(name);
            fs::create_dir(&directory).unwrap();
            if let Some(stat) = stat {
                fs::write(directory.join("stat"), stat).unwrap();
            }
        };
        put("7", Some(line(7, "seventh", 30, 30)));
        put("12", Some(line(12, "a b", 10, 70)));
        put("1", Some(line(1, "init", 1, 0)));
        put("13", None); // vanished since it was listed
        put("14", Some(String::new()));
        put(
            "99999999999999999999999999999999",
            Some(line(1, "x", 99, 99)),
        );
        put("sys", Some(line(2, "x", 99, 99)));
        put("acpi", None);
        let root = CString::new(machine.path().to_str().unwrap()).unwrap();
        let proc = Proc {
            root: Box::leak(root.into_boxed_c_str()),
        };
        let busiest: Vec<ProcessTimes> = proc.busiest().unwrap().iter().copied().collect();
        let expected = [
            ProcessTimes::new(12, b"a b", 10, 70),
            ProcessTimes::new(7, b"seventh", 30, 30),
        ];
        assert_eq!(busiest, expected);
        let nowhere = Proc { root: c"/nowhere" };
        assert!(nowhere.busiest().is_err());
    }

    #[test]
    fn this_machine_has_processes() {
        let busiest = PROC.busiest().unwrap();
        let ticks: Vec<u64> = busiest.iter().map(ProcessTimes::total_ticks).collect();
        assert!(!ticks.is_empty());
        assert!(ticks.is_sorted_by(|more, less| more >= less));
    }
}
