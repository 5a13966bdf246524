//! Settings of a run as names and values.

use std::time::Duration;

use super::provenance;
use throng_record::format::{ABSENT, bytes, list, or_absent, whole};
use throng_record::{Host, Run, Settings};

/// The settings and the machine, as (name, value).
pub(crate) fn of_run(run: &Run) -> Vec<(&'static str, String)> {
    let mut facts = of_settings(run);
    facts.extend(of_host(run));
    facts
}

fn of_settings(run: &Run) -> Vec<(&'static str, String)> {
    let settings = &run.settings;
    let load = &settings.load;
    let cpus = |cpus: &[u32]| match cpus {
        [] => "not bound".to_owned(),
        some => list(&some.iter().map(ToString::to_string).collect::<Vec<_>>()),
    };
    let first_reply = seconds(load.first_reply_timeout) + " without a new first reply";
    let loss = settings.loss_percent;
    let loss = loss.map_or_else(String::new, |loss| format!("{loss} %, each way"));
    let mut facts = vec![
        ("Protocol", dialogue(run)),
        ("Load", options(settings)),
        ("Runs", settings.runs.to_string()),
        ("Measurement", measurement(settings)),
        ("Connect timeout", seconds(load.connect_timeout)),
        ("First-reply timeout", first_reply),
        ("listen() backlog", whole(settings.backlog.into())),
        ("Server CPUs", cpus(&settings.server_cpus)),
        ("Client CPUs", cpus(&settings.client_cpus)),
        ("Simulated packet loss", loss),
        ("Load threads", settings.load_threads.to_string()),
        ("Seed", run.seed.to_string()),
    ];
    facts.retain(|(_, value)| !value.is_empty());
    facts
}

/// When replies are counted.
fn measurement(settings: &Settings) -> String {
    if settings.load.has_jobs() {
        return "the whole load, until all clients finish".to_owned();
    }
    format!(
        "{}, after {} of warm-up",
        seconds(settings.load.duration.unwrap_or_default()),
        seconds(settings.load.warm_up)
    )
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

/// The requests of the clients, in words.
pub(crate) fn dialogue(run: &Run) -> String {
    let settings = &run.settings;
    if settings.dialogue.is_empty() {
        let load = &settings.load;
        return format!(
            "{}, {} bytes per request",
            load.protocol.as_deref().unwrap_or("custom"),
            whole(load.size.largest() as f64)
        );
    }
    settings.dialogue.clone()
}

/// The other options of the load.
fn options(settings: &Settings) -> String {
    let shown_by_itself = [
        "clients",
        "protocol",
        "size",
        "path",
        "send",
        "expect",
        "duration",
        "warm-up",
        "connect-timeout",
        "first-reply-timeout",
    ];
    settings.load.flags_without(&shown_by_itself).join(" ")
}

fn of_host(run: &Run) -> Vec<(&'static str, String)> {
    let host = &run.host;
    let load = or_absent(host.load_average_1min, |load| format!("{load:.2}"));
    let finished = run.finished_at.clone();
    let mut facts = of_machine(host);
    facts.extend([
        ("Load average at the start", load),
        ("Started", run.started_at.clone()),
        ("Finished", finished.unwrap_or_else(|| ABSENT.to_owned())),
    ]);
    let others = provenance::others(host);
    facts.extend((!others.is_empty()).then_some(("Other processes at the start", others)));
    facts.extend(provenance::of_throng(run));
    facts
}

/// A machine, as (name, value).
pub fn of_machine(host: &Host) -> Vec<(&'static str, String)> {
    let optional = |value: &Option<String>| value.clone().unwrap_or_else(|| ABSENT.to_owned());
    let count = |value: Option<u64>| or_absent(value.map(|value| value as f64), whole);
    let quota = host.cpu_quota.map_or_else(String::new, |quota| {
        let cpus = throng_record::format::cpus(quota);
        format!(", of which a quota allows {cpus}")
    });
    let model = optional(&host.cpu_model);
    let cpu = format!("{model}, {} usable{quota}", host.cpus);
    let memory = host.memory_bytes.map(|bytes| bytes as f64);
    let machine = host.virtual_machine.as_deref().unwrap_or("none detected");
    let threads = optional(&host.simultaneous_threads);
    let [soft, hard] = [host.descriptors_soft, host.descriptors_hard].map(count);
    let descriptors = format!("{soft} and {hard}");
    let ports = host.ephemeral_ports;
    let ports = ports.map(|(first, last)| format!("{first} to {last}"));
    let mut facts = vec![("Kernel", host.kernel.clone()), ("CPU", cpu)];
    facts.extend(provenance::of_cpu(host));
    facts.extend([
        ("Memory", or_absent(memory, bytes)),
        ("Virtual machine", machine.to_owned()),
        ("Governor", optional(&host.governor)),
        ("Simultaneous multithreading", threads),
        ("Clock source", optional(&host.clock_source)),
        ("Huge pages", optional(&host.huge_pages)),
        ("C library", optional(&host.libc)),
        ("somaxconn", count(host.somaxconn.map(u64::from))),
        ("Descriptor limits, soft and hard", descriptors),
        ("Ephemeral ports", optional(&ports)),
    ]);
    facts
}

/// The command line that repeats the run, quoted for a shell.
pub(crate) fn command_line(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|argument| quote(argument)).collect();
    quoted.join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_quoted_for_a_shell() {
        let arguments = ["throng", "compare", "node server.js {port}", "it's"].map(str::to_owned);
        assert_eq!(
            command_line(&arguments),
            r"throng compare 'node server.js {port}' 'it'\''s'"
        );
    }
}
