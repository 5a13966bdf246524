//! Thresholds, claims and test cases as JUnit XML, which every system for continuous integration shows.

use std::io::Write;

use super::Exporter;
use crate::Report;
use crate::study::StudyReport;
use crate::study::claims::{ClaimVerdict, JudgedClaim};
use throng_record::format::{counted, harmless};
use throng_spec::registry::Info;

pub(super) const JUNIT: Exporter = Exporter {
    info: Info {
        name: "junit",
        summary: "thresholds, claims and test cases as JUnit XML, on request",
    },
    file_name: None,
    render: |report, to| write(&[("throng", of_run(report))], to),
    render_study,
};

/// Something that passes, fails, or could not be tested.
struct Test {
    name: String,
    outcome: Outcome,
}

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

fn render_study(report: &StudyReport<'_>, to: &mut dyn Write) -> anyhow::Result<()> {
    let mut suites: Vec<(&str, Vec<Test>)> = Vec::new();
    suites.push(("claims", report.claims.iter().map(of_claim).collect()));
    let cases = report.cases();
    let of_cases = cases.iter().flat_map(|case| {
        case.servers.iter().map(|server| Test {
            name: format!("{}: {}", case.title, server.server),
            outcome: match (case.skipped, server.as_expected) {
                (Some(why), _) => Outcome::Skipped(why.to_owned()),
                (None, true) => Outcome::Passed,
                (None, false) => Outcome::Failed(format!(
                    "expected: {}; seen: {}",
                    case.expected, server.seen
                )),
            },
        })
    });
    suites.push(("cases", of_cases.collect()));
    for part in &report.parts {
        if let Some(of_part) = &part.report {
            suites.push((&part.record.name, of_run(of_part)));
        }
    }
    suites.retain(|(_, tests)| !tests.is_empty());
    write(&suites, to)
}

/// The thresholds of a run, and whether its results may be used.
fn of_run(report: &Report<'_>) -> Vec<Test> {
    let thresholds = report.thresholds.iter().map(|judged| Test {
        name: format!(
            "{}, {}: not {}",
            judged.server,
            counted(judged.clients, "client"),
            judged.demand
        ),
        outcome: if judged.missed {
            Outcome::Failed(judged.seen.clone())
        } else {
            Outcome::Passed
        },
    });
    let usable = Test {
        name: "the results can be used".to_owned(),
        outcome: report.rough().map_or(Outcome::Passed, Outcome::Failed),
    };
    std::iter::once(usable).chain(thresholds).collect()
}

fn of_claim(claim: &JudgedClaim) -> Test {
    let why = || claim.sentence.clone();
    Test {
        name: claim.text.clone(),
        outcome: match claim.verdict {
            ClaimVerdict::Yes => Outcome::Passed,
            ClaimVerdict::No | ClaimVerdict::Tie | ClaimVerdict::Partly => Outcome::Failed(why()),
            ClaimVerdict::Noisy | ClaimVerdict::NotMeasured => Outcome::Skipped(why()),
        },
    }
}

fn write(suites: &[(&str, Vec<Test>)], to: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(
        to,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>"
    )?;
    for (name, tests) in suites {
        let count = |is_one: fn(&Outcome) -> bool| {
            tests.iter().filter(|test| is_one(&test.outcome)).count()
        };
        let failures = count(|outcome| matches!(outcome, Outcome::Failed(_)));
        let skipped = count(|outcome| matches!(outcome, Outcome::Skipped(_)));
        let name = escaped(name);
        writeln!(
            to,
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">",
            tests.len()
        )?;
        for test in tests {
            let of_test = format!(
                "    <testcase classname=\"{name}\" name=\"{}\"",
                escaped(&test.name)
            );
            let (kind, why) = match &test.outcome {
                Outcome::Passed => {
                    writeln!(to, "{of_test}/>")?;
                    continue;
                }
                Outcome::Failed(why) => ("failure", why),
                Outcome::Skipped(why) => ("skipped", why),
            };
            let why = escaped(why);
            writeln!(to, "{of_test}><{kind} message=\"{why}\"/></testcase>")?;
        }
        writeln!(to, "  </testsuite>")?;
    }
    Ok(writeln!(to, "</testsuites>")?)
}

/// Text for an attribute.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for c in harmless(text).chars() {
        match c {
            '&' => all += "&amp;",
            '<' => all += "&lt;",
            '>' => all += "&gt;",
            '"' => all += "&quot;",
            '\n' | '\t' => all.push(' '),
            c => all.push(c),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_written_and_nothing_breaks_out_of_an_attribute() {
        let test = |name: &str, outcome| Test {
            name: name.to_owned(),
            outcome,
        };
        let tests = vec![
            test("a < b", Outcome::Passed),
            test("\"c\"", Outcome::Failed("p99 & more\n".to_owned())),
            test("d", Outcome::Skipped("too noisy".to_owned())),
        ];
        let mut written = Vec::new();
        write(&[("one", tests)], &mut written).unwrap();
        let xml = String::from_utf8(written).unwrap();
        for line in [
            "<testsuite name=\"one\" tests=\"3\" failures=\"1\" skipped=\"1\">",
            "<testcase classname=\"one\" name=\"a &lt; b\"/>",
            "name=\"&quot;c&quot;\"><failure message=\"p99 &amp; more \"/></testcase>",
            "name=\"d\"><skipped message=\"too noisy\"/></testcase>",
        ] {
            assert!(xml.contains(line), "{line} in {xml}");
        }
    }
}
