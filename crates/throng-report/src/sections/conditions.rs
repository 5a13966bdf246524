//! Settings, machine and servers, and how to repeat a run.

use crate::document::{Block, Role, Style, Text};
use crate::{Report, facts, provenance, warm_up};

pub(super) fn blocks(report: &Report<'_>) -> Vec<Block> {
    let warm_up = warm_up::reported(&report.summary).or_else(|| warm_up::why_not(report.run));
    let facts = facts::of_run(report.run, warm_up);
    let known = facts
        .iter()
        .filter(|fact| fact.value.as_deref() != Some(""));
    let shown = known.map(|fact| (Text::from(&fact.name), Text::from(fact.text())));
    let more = "More about the machine: kernel settings, limits, mitigations";
    vec![
        Block::Facts(shown.collect()),
        Block::Fold(more.into(), machine(report)),
        Block::Heading("Servers".into()),
        Block::Facts(servers(report)),
    ]
}

/// The command that repeats the run.
pub(super) fn repeat(report: &Report<'_>) -> Vec<Block> {
    command(
        &report.run.arguments,
        "The same seed gives the same order of trials. The data is in run.json and trials.jsonl next to this file, the \
         numbers in summary.json.",
    )
}

/// A command line, and what the report was made from.
pub(super) fn command(arguments: &[String], source: &str) -> Vec<Block> {
    let line = Block::Code(facts::command_line(arguments));
    vec![line, Block::paragraph(Role::Hint, source)]
}

/// Details that help to explain odd results and to compare two machines.
fn machine(report: &Report<'_>) -> Vec<Block> {
    let host = &report.run.host;
    let all = [
        ("Kernel settings", &host.sysctls),
        ("Limits", &host.limits),
        ("Mitigations", &host.mitigations),
    ];
    let line = host.kernel_command_line.iter().flat_map(|line| {
        let title = Block::Heading("Kernel command line".into());
        [title, Block::Code(line.clone())]
    });
    let groups = all.into_iter().filter(|(_, values)| !values.is_empty());
    let blocks = groups.flat_map(|(title, values)| {
        let texts = values
            .iter()
            .map(|(name, value)| (name.into(), value.into()));
        [Block::Heading(title.into()), Block::Facts(texts.collect())]
    });
    line.chain(blocks).collect()
}

fn servers(report: &Report<'_>) -> Vec<(Text, Text)> {
    let servers = report.run.servers.iter().map(|info| {
        let limit = info
            .structural_limit
            .as_ref()
            .map_or_else(String::new, |limit| format!("; limited to {limit}"));
        let what = Text::from(&info.summary).plain(limit);
        let started = if let Some(running) = info.running() {
            what.plain(format!(" at {}", provenance::running(running)))
        } else {
            let command = facts::command_line(&info.command);
            what.plain(" ").then(command, Style::Code)
        };
        let program = provenance::program_of(info);
        let files = program.map(|program| format!(": {}", provenance::files(program)));
        let text = started.plain(files.unwrap_or_default());
        (super::server(report, &info.name), text)
    });
    servers.collect()
}
