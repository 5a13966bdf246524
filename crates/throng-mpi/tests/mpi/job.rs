//! An MPI job of throng-mpi, on this host or over a lab, always ended.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::Value;

/// The program.
pub(crate) const THRONG_MPI: &str = env!("CARGO_BIN_EXE_throng-mpi");
/// Its scripts are there.
pub(crate) const LAB: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../lab");

/// A longer job hangs.
const LIMIT: Duration = Duration::from_mins(4);
/// Poll interval.
const LOOK: Duration = Duration::from_millis(10);
/// Marks all processes of a job.
const MARK: &str = "THRONG_TEST_JOB";
/// A run longer than any test, for tests that lose a rank.
pub(crate) const LONG: &str = "run --models epoll --clients 20 --runs 200 --duration 300ms --warm-up 0s \
    --control none --no-ceiling --probes cpu";
/// A run of four long trials, to lose a rank and to resume it.
pub(crate) const FOUR: &str = "run --models epoll --clients 20 --runs 4 --duration 1500ms --warm-up 0s \
    --control none --no-ceiling --probes cpu";
/// Resumes such a run.
pub(crate) const RESUME: &str = "run --allow-rough --resume";
/// Silence limit of such a run.
const SILENCE_OF_LOST_S: &str = "5";
/// Silence limit of all others, since a busy machine can be silent for seconds.
const SILENCE_S: &str = "60";
/// Exit code of the scripts in `lab` if the machine lacks something.
const LACKING: i32 = 3;

/// A unique name.
fn unique() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("m{}x{number}", std::process::id())
}

/// A network of hosts, as `lab/lab` makes it.
pub(crate) struct Lab {
    pub(crate) name: String,
}

impl Lab {
    /// Creates one with client hosts; prints the reason and returns `None` if that is impossible.
    pub(crate) fn up(clients: u32) -> Option<Self> {
        let lab = Self { name: unique() };
        let made = lab
            .script("up")
            .args(["--clients", &clients.to_string()])
            .output();
        match made {
            Ok(made) if made.status.success() => Some(lab),
            Ok(made) if made.status.code() == Some(LACKING) => {
                println!("not tried: {}", String::from_utf8_lossy(&made.stderr));
                None
            }
            Ok(made) => panic!("{made:?}"),
            Err(error) => {
                println!("not tried: bash: {error}");
                None
            }
        }
    }

    /// A command of `lab/lab`.
    pub(crate) fn script(&self, command: &str) -> Command {
        let mut script = Command::new("bash");
        script
            .arg(format!("{LAB}/lab"))
            .args(["--name", &self.name, command]);
        script
    }

    /// Runs a line of shell on a host, and returns its output.
    pub(crate) fn run(&self, host: &str, line: &str) -> String {
        let done = self
            .script("exec")
            .args([host, "sh", "-c", line])
            .output()
            .expect("bash is there");
        assert!(done.status.success(), "{line}: {done:?}");
        String::from_utf8(done.stdout).expect("it is text")
    }

    /// `cut` and `join`.
    pub(crate) fn run_on(&self, command: &str, host: &str) {
        let done = self
            .script(command)
            .arg(host)
            .output()
            .expect("bash is there");
        assert!(done.status.success(), "{done:?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.script("down").output();
    }
}

/// A running job.
pub(crate) struct Job {
    child: Child,
    mark: String,
    pub(crate) record: PathBuf,
}

impl Job {
    /// Starts ranks on this host; prints the reason and returns `None` without a launcher.
    pub(crate) fn here(ranks: u32, directory: &Path, arguments: &str) -> Option<Self> {
        Self::launched(ranks, &["--enable-recovery"], directory, arguments)
    }

    /// The same with a launcher that ends all ranks when one has died.
    pub(crate) fn hasty(ranks: u32, directory: &Path, arguments: &str) -> Option<Self> {
        Self::launched(ranks, &[], directory, arguments)
    }

    fn launched(ranks: u32, options: &[&str], directory: &Path, arguments: &str) -> Option<Self> {
        let mut command = Command::new("mpirun");
        command.args([
            "-n",
            &ranks.to_string(),
            "--oversubscribe",
            "--bind-to",
            "none",
        ]);
        command
            .args(options)
            .args(["--mca", "btl", "vader,self", THRONG_MPI]);
        Self::spawn(command, directory, arguments)
    }

    /// A rank on each host of a lab, with the server's address as an option.
    pub(crate) fn over(lab: &Lab, directory: &Path, arguments: &str) -> Option<Self> {
        let mut command = Command::new("bash");
        command
            .arg(format!("{LAB}/mpirun"))
            .args(["--name", &lab.name, THRONG_MPI]);
        let arguments = format!("{arguments} --server-address 10.213.0.1 --allow-remote");
        Self::spawn(command, directory, &arguments)
    }

    pub(crate) fn spawn(mut command: Command, directory: &Path, arguments: &str) -> Option<Self> {
        let mark = unique();
        let record = directory.join("record");
        command.args(arguments.split_whitespace());
        if arguments != RESUME {
            // A busy machine must not change the number of trials or the exit code.
            command.args(["--allow-rough", "--retries", "0", "-o"]);
        }
        command.arg(&record);
        let silence = if [LONG, FOUR].iter().any(|run| arguments.contains(run)) {
            SILENCE_OF_LOST_S
        } else {
            SILENCE_S
        };
        command.env(MARK, &mark).env("THRONG_SILENCE", silence);
        // Jobs of one host otherwise share a directory, which the first to end removes.
        command.env("OMPI_MCA_orte_tmpdir_base", directory);
        command.envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.process_group(0);
        match command.spawn() {
            Ok(child) => Some(Self {
                child,
                mark,
                record,
            }),
            Err(error) => {
                println!("not tried: {command:?}: {error}");
                None
            }
        }
    }

    /// Waits for a condition.
    fn until<T>(&mut self, what: &str, mut there: impl FnMut(&mut Self) -> Option<T>) -> T {
        let deadline = Instant::now() + LIMIT;
        loop {
            if let Some(there) = there(self) {
                return there;
            }
            assert!(Instant::now() < deadline, "{what}: not within {LIMIT:?}");
            std::thread::sleep(LOOK);
        }
    }

    /// Waits until a trial is on disk.
    pub(crate) fn wait_for_a_trial(&mut self) {
        self.until("a trial", |job| {
            if let Ok(Some(status)) = job.child.try_wait() {
                let mut printed = String::new();
                if let Some(stderr) = &mut job.child.stderr {
                    let _ = stderr.read_to_string(&mut printed);
                }
                panic!("it ended before, with {status}: {printed}");
            }
            (!job.trials().is_empty()).then_some(())
        });
    }

    /// Waits for a condition while it runs.
    pub(crate) fn wait_for(&mut self, is_so: impl Fn(&Self) -> bool) {
        self.until("what is awaited", |job| is_so(job).then_some(()));
    }

    /// Waits until it has ended, and all its processes.
    pub(crate) fn end(mut self) -> (Output, PathBuf) {
        self.until("the end", |job| job.child.try_wait().ok().flatten());
        let mark = self.mark.clone();
        self.until("the end of all ranks", |_| {
            ours(&mark).is_empty().then_some(())
        });
        let record = self.record.clone();
        (self.take_output(), record)
    }

    /// As [`Job::end`], and asserts success.
    pub(crate) fn succeed(self) -> PathBuf {
        let (output, record) = self.end();
        assert!(output.status.success(), "{}", printed(&output));
        record
    }

    fn take_output(&mut self) -> Output {
        use std::io::Read as _;
        let mut output = Output {
            status: self.child.wait().expect("it has ended"),
            stdout: Vec::new(),
            stderr: Vec::new(),
        };
        if let Some(stream) = &mut self.child.stdout {
            stream.read_to_end(&mut output.stdout).expect("a pipe");
        }
        if let Some(stream) = &mut self.child.stderr {
            stream.read_to_end(&mut output.stderr).expect("a pipe");
        }
        output
    }

    /// The MPI process of a rank.
    pub(crate) fn relay(&self, rank: u32) -> Pid {
        let wanted = format!("OMPI_COMM_WORLD_RANK={rank}");
        let relays = marked(&self.mark).into_iter().filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == wanted.as_bytes())
        });
        let pid = relays.min().unwrap_or_else(|| panic!("no rank {rank}"));
        Pid::from_raw(pid as i32).expect("a process")
    }

    /// Its other process.
    pub(crate) fn worker(&self, rank: u32) -> Pid {
        let relay = self.relay(rank).as_raw_nonzero();
        let is_child = |pid: &u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat
                .rsplit(") ")
                .next()
                .and_then(|rest| rest.split(' ').nth(1));
            parent == Some(&relay.to_string())
        };
        let pid = marked(&self.mark).into_iter().find(is_child);
        Pid::from_raw(pid.expect("it has a worker") as i32).expect("a process")
    }

    /// Trials that are on disk.
    pub(crate) fn trials(&self) -> Vec<Value> {
        trials(&self.record)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
        for pid in marked(&self.mark) {
            if let Some(pid) = Pid::from_raw(pid as i32) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Processes of throng-mpi among those of a job. Of a host that was cut off, MPI's daemon stays until its lab goes.
fn ours(mark: &str) -> Vec<u32> {
    let is_ours = |pid: &u32| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end() == "throng-mpi"
    };
    marked(mark).into_iter().filter(is_ours).collect()
}

/// Processes of a job that are not just waiting to be reaped.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").expect("it is mounted").flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted.as_bytes())
    })
    .collect()
}

/// The standard error of a job.
pub(crate) fn printed(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    format!(
        "{}: {}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    )
}

/// Trials of a record.
pub(crate) fn trials(record: &Path) -> Vec<Value> {
    let text = fs::read_to_string(record.join("trials.jsonl")).unwrap_or_default();
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

/// `run.json`.
pub(crate) fn run(record: &Path) -> Value {
    let text = fs::read_to_string(record.join("run.json")).expect("there is a record");
    serde_json::from_str(&text).expect("it is JSON")
}
