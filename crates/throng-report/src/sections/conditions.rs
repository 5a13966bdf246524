//! Settings, machine and servers.

use crate::document::{Block, Medium, Section, Style, Text};
use crate::{Report, facts, provenance, warm_up};

pub(super) fn section(report: &Report<'_>) -> Option<Section> {
    let mut facts = facts::of_run(report.run);
    if let Some(took) = warm_up::reported(&report.summary).or_else(|| warm_up::why_not(report.run))
    {
        let after = facts.iter().position(|(name, _)| *name == "Measurement");
        facts.insert(after.map_or(0, |at| at + 1), ("Warm-up until level", took));
    }
    let facts = facts
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()));
    let mut blocks = vec![Block::Facts(facts.collect())];
    let summary = "More about the machine: kernel settings, limits, mitigations";
    blocks.push(Block::Fold(summary.into(), machine(report)));
    blocks.push(Block::Heading("Servers".into()));
    blocks.push(Block::Facts(servers(report)));
    Some(Section::of("conditions", "Settings and machine", blocks)?.except(&[Medium::Terminal]))
}

/// Details that help to explain odd results and to compare two machines.
fn machine(report: &Report<'_>) -> Vec<Block> {
    let host = &report.run.host;
    let groups = [
        ("Kernel settings", &host.sysctls),
        ("Limits", &host.limits),
        ("Mitigations", &host.mitigations),
    ];
    let line = host.kernel_command_line.iter();
    let line = line.flat_map(|line| {
        let title = Block::Heading("Kernel command line".into());
        [title, Block::Code(line.clone())]
    });
    let groups = groups.into_iter().filter(|(_, values)| !values.is_empty());
    let blocks = groups.flat_map(|(title, values)| {
        let values = values.iter();
        let values = values.map(|(name, value)| (name.into(), value.into()));
        [Block::Heading(title.into()), Block::Facts(values.collect())]
    });
    line.chain(blocks).collect()
}

fn servers(report: &Report<'_>) -> Vec<(Text, Text)> {
    let servers = report.run.servers.iter();
    let servers = servers.map(|info| {
        let mut text = Text::from(&info.summary);
        if let Some(limit) = &info.structural_limit {
            text = text.plain(format!("; limited to {limit}"));
        }
        let mut text = match info.running() {
            Some(running) => text.plain(format!(" at {}", provenance::running(running))),
            None => text
                .plain(" ")
                .then(facts::command_line(&info.command), Style::Code),
        };
        if let Some(program) = provenance::program_of(info) {
            text = text.plain(format!(": {}", provenance::files(program)));
        }
        (super::server(report, &info.name), text)
    });
    servers.collect()
}
