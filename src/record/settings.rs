//! What settings say to a load, and how those of two runs differ.

use super::Settings;

/// The option of a load that gives each client a job, by all its names.
pub const JOB_OPTIONS: [&str; 2] = ["requests-per-client", "each"];

impl Settings {
    /// What a load is told about what to say and when, as options of `throng load`.
    pub fn options_of_load(&self) -> Vec<String> {
        if !self.load_options.is_empty() {
            return self.load_options.clone();
        }
        let size = self.size_bytes.to_string();
        ["--protocol", &self.protocol, "--size", &size]
            .map(str::to_owned)
            .to_vec()
    }

    /// In which words the load of another run was another; empty when it was the same.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        self.differing(other)
            .into_iter()
            .map(|(what, now, then)| format!("{what} {then}, and now {now}"))
            .collect()
    }

    /// In what the load of another run was another: what, here, and there.
    pub fn differing(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let words = |options: &[String]| match options {
            [] => "nothing".to_owned(),
            options => options.join(" "),
        };
        let cpus = |cpus: &[u32]| format!("{cpus:?}");
        let mut options = [self.load_options.clone(), other.load_options.clone()];
        // The same protocol and size may be written out or not; they are compared by themselves.
        for options in &mut options {
            options.retain(|option| {
                let one_size = option.starts_with("--size=") && !option.contains(',');
                !option.starts_with("--protocol=") && !one_size
            });
        }
        let seconds = |seconds: f64| format!("{seconds} s");
        [
            ("protocol", self.protocol.clone(), other.protocol.clone()),
            (
                "size",
                self.size_bytes.to_string(),
                other.size_bytes.to_string(),
            ),
            (
                "options of the load",
                words(&options[0]),
                words(&options[1]),
            ),
            (
                "clients",
                format!("{:?}", self.clients),
                format!("{:?}", other.clients),
            ),
            (
                "duration",
                seconds(self.duration_s),
                seconds(other.duration_s),
            ),
            ("warm-up", seconds(self.warm_up_s), seconds(other.warm_up_s)),
            (
                "backlog",
                self.backlog.to_string(),
                other.backlog.to_string(),
            ),
            (
                "server CPUs",
                cpus(&self.server_cpus),
                cpus(&other.server_cpus),
            ),
            (
                "client CPUs",
                cpus(&self.client_cpus),
                cpus(&other.client_cpus),
            ),
            (
                "load threads",
                self.load_threads.to_string(),
                other.load_threads.to_string(),
            ),
        ]
        .into_iter()
        .filter(|(_, now, then)| now != then)
        .collect()
    }

    /// Whether requests come due by chance and not by the clock.
    pub fn arrives_by_chance(&self) -> bool {
        let mut options = self.load_options.iter();
        options.any(|option| option == "--arrival=poisson")
    }

    /// Whether each client has a job and is done then.
    pub fn has_jobs(&self) -> bool {
        let mut options = self.load_options.iter();
        options.any(|option| {
            let name = option.split('=').next().unwrap_or_default();
            JOB_OPTIONS.contains(&name.trim_start_matches('-'))
        })
    }

    /// Whether clients end their connections with a reset on purpose.
    pub fn resets_connections(&self) -> bool {
        // In one word or in two.
        self.load_options.join("=").contains("--close=reset")
    }

    /// Whether clients may have several requests out at once.
    pub fn pipelines(&self) -> bool {
        let mut options = self.load_options.iter();
        options.any(|option| option.starts_with("--pipeline"))
    }
}
