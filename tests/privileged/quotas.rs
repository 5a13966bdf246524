//! Quotas of control groups, which stop server and clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::program::THRONG;

/// A control group that ends with the test, once it is empty.
struct Group(PathBuf);

impl Group {
    /// A group with half a CPU, of either version; `None` if none can be made here.
    fn with_half_a_cpu() -> Option<Self> {
        let name = format!("throng-quota-{}", std::process::id());
        let version_1 = (
            "/sys/fs/cgroup/cpu",
            [
                ("cpu.cfs_period_us", "20000"),
                ("cpu.cfs_quota_us", "10000"),
            ]
            .as_slice(),
        );
        let version_2 = ("/sys/fs/cgroup", [("cpu.max", "10000 20000")].as_slice());
        [version_1, version_2]
            .into_iter()
            .find_map(|(mount, files)| {
                let group = Self(Path::new(mount).join(&name));
                fs::create_dir(&group.0).ok()?;
                let mut written = files
                    .iter()
                    .map(|(file, text)| fs::write(group.0.join(file), text));
                written.all(|written| written.is_ok()).then_some(group)
            })
    }

    /// Runs throng in it.
    fn throng(&self, arguments: &str) -> String {
        let enter = format!(
            "echo $$ > {}/cgroup.procs; exec \"$0\" {arguments}",
            self.0.display()
        );
        let output = Command::new("sh")
            .args(["-c", &enter, THRONG])
            .output()
            .expect("it runs");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Regression: throttled in 319 of 341 periods, `measure` was good, `compare` named no cause, and doctor was silent.
#[test]
fn half_a_cpu_by_a_quota_is_named_by_doctor_grade_and_answer() {
    let Some(group) = Group::with_half_a_cpu() else {
        return println!("skipped: no control group with a CPU quota can be made here");
    };
    let doctor = group.throng("doctor");
    assert!(doctor.contains("of which a quota allows 0.50"), "{doctor}");
    // A load generator that was stopped for half of a trial spoils the whole run, which then has no answer.
    let runs = (0..8).map(|_| {
        let directory = tempfile::tempdir().expect("a directory");
        let run = group.throng(&format!(
            "run --models epoll,thread --clients 4 --runs 2 --duration 1s --warm-up 50ms --warm-up-limit 50ms \
             --allow-rough --retries 0 --probes cpu --control none --no-ceiling -o {}",
            directory.path().join("record").display()
        ));
        run.split_whitespace().collect::<Vec<_>>().join(" ")
    });
    let mut texts: Vec<String> = Vec::new();
    for text in runs {
        let is_usable = !text.contains("Grade: unusable");
        texts.push(text);
        if is_usable {
            break;
        }
    }
    let text = texts.last().expect("one ran");
    assert!(
        text.contains("A CPU quota of 0.5 CPUs stopped processes in"),
        "{text}"
    );
    assert!(
        text.contains("a CPU quota of 0.5 CPUs stopped processes in"),
        "the grade: {text}"
    );
}
