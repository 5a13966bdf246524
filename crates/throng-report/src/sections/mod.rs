//! The sections of a report, in order.
//!
//! To add a section, add a function that makes blocks from a record, or nothing without data, and its entry in `SECTIONS`.

mod answer;
mod between;
mod comparison;
mod conditions;
mod counters;
mod findings;
mod hosts;
mod latency_at_load;
mod limits;
mod price;
mod results;
mod scalability;
mod steps;
mod study;
mod why;

pub use between::of_between;
pub use study::of_study;

use crate::document::{Block, Document, Figures, Kind, Medium, Section, Style, Text, Tone};
use crate::figures::OfSection;
use crate::{Report, facts};
use throng_record::Ending;
use throng_record::format::counted;

/// The sections of a run, in order.
const SECTIONS: &[SectionKind] = &[
    SectionKind {
        kind: Kind::Answer,
        ..section("answer", "The answer", answer::blocks)
    },
    section("thresholds", "Thresholds", findings::thresholds),
    SectionKind {
        // The answer shows the table of a single pair.
        omit: |report| match comparison::of_one_pair(report) {
            Some(_) => &[Medium::Html],
            None => &[Medium::Terminal],
        },
        ..section("comparison", "Comparison", comparison::blocks)
    },
    section("why", "Why they differ", why::blocks),
    section("limits", "Limits", limits::blocks),
    SectionKind {
        // The table of a pair says the same.
        omit: |report| match comparison::of_one_pair(report) {
            Some(_) => &[Medium::Terminal],
            None => &[],
        },
        ..section("results", "Results", results::blocks)
    },
    section("steps", "Steps of a session", steps::blocks),
    section("price", "Price", price::blocks),
    section(
        "latency-at-load",
        "Latency at load",
        latency_at_load::blocks,
    ),
    details("scalability", "Scalability", scalability::blocks),
    details("figures", "Figures", figures),
    details("flame-graphs", "Flame graphs", why::flame_graphs),
    details("costs", "Cost per request", results::costs),
    details("counters", "Counters, both sides", counters::blocks),
    details("hosts", "Client hosts", hosts::blocks),
    details("warnings", "Warnings", findings::warnings),
    details("failed", "Failed and invalid trials", findings::failures),
    details("conditions", "Settings and machine", conditions::blocks),
    details("repeat", "How to repeat", conditions::repeat),
];

/// A kind of section.
struct SectionKind {
    id: &'static str,
    title: &'static str,
    kind: Kind,
    /// The media that do not show it.
    omit: fn(&Report<'_>) -> &'static [Medium],
    /// Its content; empty if the record lacks it.
    blocks: fn(&Report<'_>) -> Vec<Block>,
}

const fn section(
    id: &'static str,
    title: &'static str,
    blocks: fn(&Report<'_>) -> Vec<Block>,
) -> SectionKind {
    SectionKind {
        id,
        title,
        kind: Kind::Plain,
        omit: |_| &[],
        blocks,
    }
}

/// A section that a terminal does not show.
const fn details(
    id: &'static str,
    title: &'static str,
    blocks: fn(&Report<'_>) -> Vec<Block>,
) -> SectionKind {
    SectionKind {
        omit: |_| &[Medium::Terminal],
        ..section(id, title, blocks)
    }
}

/// The subject of every page.
const TAGLINE: &str = "network servers under many concurrent clients";

/// The document of a run.
pub fn of_run(report: &Report<'_>) -> Document {
    let run = report.run;
    let mut badges = vec![counted(run.servers.len() as u32, "server").into()];
    if !report.summary.clients.is_empty() {
        badges.push(counted(report.summary.clients.len() as u32, "load").into());
    }
    badges.extend([
        counted(report.summary.trials_run, "trial").into(),
        facts::dialogue(run).into(),
        host(report),
        run.started_at.as_str().into(),
    ]);
    badges.extend(ending(run.ending));
    Document {
        title: run.study.name.clone(),
        question: run.study.question.clone(),
        tagline: TAGLINE,
        badges,
        sections: sections(report),
        version: run.throng_version.clone(),
    }
}

fn sections(report: &Report<'_>) -> Vec<Section> {
    let made = SECTIONS.iter().filter_map(|one| {
        let made = Section::of(one.id, one.title, (one.blocks)(report))?;
        let (kind, omit) = (one.kind, (one.omit)(report));
        Some(Section { kind, omit, ..made })
    });
    made.collect()
}

/// All figures that the record has data for, except those of the answer.
fn figures(report: &Report<'_>) -> Vec<Block> {
    let servers = report.run.servers.iter();
    let figures = report
        .figures
        .iter()
        .filter(|figure| figure.section == OfSection::Figures);
    vec![Block::Figures(Figures {
        key: servers
            .map(|server| (vec![report.place(&server.name)], server.name.clone()))
            .collect(),
        figures: figures.cloned().collect(),
    })]
}

fn host(report: &Report<'_>) -> Text {
    let host = &report.run.host;
    format!("{}, {}", host.kernel, counted(host.cpus, "CPU")).into()
}

/// A badge for a run that is not complete.
fn ending(ending: Ending) -> Option<Text> {
    let word = match ending {
        Ending::Complete => return None,
        Ending::Interrupted => "interrupted",
        Ending::HostLost => "client host lost",
        Ending::ServerFailed => "server failed",
        Ending::Unfinished => "unfinished",
    };
    Some(Text::default().toned(word, Tone::Bad))
}

/// A server's name in its colour.
fn server(report: &Report<'_>, name: &str) -> Text {
    Text::default().then(name, Style::Server(report.place(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{html, markdown, terminal};
    use crate::{Logs, fixture};
    use throng_record::{Comparison, Run, Trial};

    const EVIL: &str = "<script>alert(1)</script>";

    fn document((run, trials): &(Run, Vec<Trial>)) -> Document {
        of_run(&Report::of(run, trials, &fixture::logs(run)).unwrap())
    }

    #[test]
    fn a_whole_record_in_markdown() {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        insta::assert_snapshot!(markdown::text(&of_run(&report)));
    }

    #[test]
    fn a_whole_record_in_a_terminal() {
        for width in [80, 160] {
            let text = terminal::text(&document(&fixture::record()), width, false);
            assert!(text.lines().all(|line| line.chars().count() <= width));
            insta::assert_snapshot!(format!("{width}_columns"), text);
        }
    }

    #[test]
    fn an_unusable_run_has_no_best_values() {
        let is_marked = |record: &(Run, Vec<Trial>)| {
            let document = document(record);
            let texts = [
                terminal::text(&document, 120, false).contains("* best of its group"),
                markdown::text(&document).contains("Bold is the best of its group"),
                html::page(&document).contains("is the best of its group"),
            ];
            assert!(texts.iter().all(|one| *one == texts[0]), "{texts:?}");
            texts[0]
        };
        let mut record = fixture::record();
        assert!(is_marked(&record));
        for trial in &mut record.1 {
            let network = trial.network.get_or_insert_default();
            let busy = ("machine_busy_percent".to_owned(), 300.0);
            network.metrics.extend([busy]);
        }
        fixture::examine(&record.0, &mut record.1);
        assert!(!is_marked(&record));
    }

    /// Uses as few rows as a terminal of 35 rows leaves for the report.
    #[test]
    fn a_terminal_begins_with_the_answer() {
        let within = |record: &(Run, Vec<Trial>), rows| {
            let screen = terminal::Screen {
                columns: 80,
                rows: Some(rows),
                colour: false,
            };
            let text = terminal::within(&document(record), screen);
            assert!(text.lines().count() <= rows, "{text}");
            text
        };
        let run = within(&fixture::record(), 30);
        insta::assert_snapshot!("few_rows", run);
        for (record, answer) in [
            (compared(), "With 1,000 clients"),
            (fixture::searched(), "Most clients: "),
        ] {
            let text = within(&record, 30);
            let lines: Vec<&str> = text.lines().collect();
            let answered = lines.iter().position(|line| line.starts_with(answer));
            assert_eq!(answered, Some(1), "{text}");
            within(&record, 19);
        }
    }

    fn compared() -> (Run, Vec<Trial>) {
        let (mut run, trials) = fixture::at_load();
        run.comparison = Some(Comparison {
            reference: "epoll".to_owned(),
            ..Comparison::default()
        });
        (run, trials)
    }

    #[test]
    fn every_section_has_a_name_of_its_own_and_something_to_show() {
        let (run, trials) = compared();
        let all = document(&(run, trials)).sections;
        let mut ids: Vec<&str> = all.iter().map(|section| section.id.as_str()).collect();
        assert!(ids.len() > 10, "{ids:?}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all.len());
        for section in &all {
            assert!(!section.blocks.is_empty(), "{}", section.id);
            assert!(
                !section.omit.contains(&Medium::Html),
                "the answer shows only a single pair"
            );
        }
    }

    #[test]
    fn nothing_from_outside_is_read_as_html() {
        let (mut run, mut trials) = fixture::record();
        let mut logs = fixture::logs(&run);
        run.servers[8].name = EVIL.to_owned();
        run.study.question = EVIL.to_owned();
        run.arguments.push(EVIL.to_owned());
        run.findings[0].text = EVIL.to_owned();
        logs.clients[8].server = EVIL.to_owned();
        for trial in trials.iter_mut().filter(|trial| trial.server == "io-uring") {
            trial.server = EVIL.to_owned();
        }
        trials[1].failure = Some(throng_record::Failure {
            output: EVIL.to_owned(),
            ..fixture::failure()
        });
        let page = html::page(&of_run(&Report::of(&run, &trials, &logs).unwrap()));
        assert!(!page.contains(EVIL));
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert_eq!(page.matches("<script").count(), 1, "its own");
        assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("@import"));
    }
}
