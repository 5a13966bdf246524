//! A check against the results of a study's parts.

use super::language::{AtClients, Check, Extreme, Operand, Relation, Trend, Value, What};
use super::missing::{Absent, Missing, told};
use super::weigh::{Term, Weighed, alike, below};
use super::words::{beside, beside_number, lowered, sentence};
use super::{Evidence, Finding, JudgedCheck};
use crate::report::format::counted;
use crate::report::metrics::RATE;
use crate::report::study::PartReport;
use crate::report::study::metric::AnyMetric;
use crate::report::summary::Row;

/// By what share values may differ that stay flat.
const FLAT: f64 = super::language::ALIKE_WITHIN / 100.0;

/// The results that claims are checked against.
pub(super) struct Judge<'a> {
    pub(super) parts: &'a [PartReport<'a>],
    pub(super) is_scaled: bool,
}

/// What a check has come to so far.
#[derive(Default)]
struct Findings {
    evidence: Vec<Evidence>,
    missing: Vec<Missing>,
}

impl Findings {
    fn miss(&mut self, what: impl Into<Missing>) {
        let what = what.into();
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }
}

impl Judge<'_> {
    /// Judges a check.
    pub(super) fn check(&self, text: &str) -> JudgedCheck {
        let mut findings = Findings::default();
        match Check::parse(text) {
            Err(wrong) => findings.miss(format!("this version cannot read it: {}", wrong.why)),
            Ok(check) => match self.refused(&check) {
                Some(why) => findings.miss(why),
                None => {
                    for check in self.of_each_server(&check) {
                        self.weigh(&check, &mut findings);
                    }
                }
            },
        }
        let Findings { evidence, missing } = findings;
        let missing = told(&missing);
        let verdict = Finding::of_all(evidence.iter().map(|one| one.verdict));
        JudgedCheck {
            text: text.to_owned(),
            verdict,
            sentence: sentence(verdict, &evidence, &missing),
            evidence,
            missing,
        }
    }

    fn part(&self, value: &Value) -> Option<(usize, &PartReport<'_>)> {
        let called = |part: &PartReport<'_>| match &value.part {
            None => true,
            Some(name) => part.record.name == *name,
        };
        let place = self.parts.iter().position(called)?;
        Some((place, &self.parts[place]))
    }

    /// Why a check says nothing about what was run.
    fn refused(&self, check: &Check) -> Option<String> {
        for value in check.values() {
            let Some((_, part)) = self.part(value) else {
                let name = value.part.as_deref().unwrap_or_default();
                return Some(format!("part {name} was not run"));
            };
            if let Some(why) = &part.record.skipped {
                return Some(format!(
                    "part {} does not run here: {why}",
                    part.record.name
                ));
            }
            let ran = part
                .report
                .as_ref()
                .map_or(&[][..], |report| &report.run.settings.clients);
            let meant = |clients: &&u32| match value.clients {
                Some(pinned) => **clients == pinned,
                None => check.is_about(**clients),
            };
            let lacking = |clients: &&u32| !ran.contains(clients);
            if self.is_scaled
                && let Some(clients) = part.record.clients.iter().filter(meant).find(lacking)
            {
                let clients = counted(*clients, "client");
                return Some(format!(
                    "not at this scale: it is about {clients} too, which were not run"
                ));
            }
        }
        None
    }

    /// The check for every server, where a `*` stands for each; one that says something of all of them
    /// together stays whole.
    fn of_each_server(&self, check: &Check) -> Vec<Check> {
        if let What::Alike { values, within } = &check.what {
            let all = values.iter().flat_map(|value| match value.server {
                Some(_) => vec![value.clone()],
                None => self.for_each(value),
            });
            let what = What::Alike {
                values: all.collect(),
                within: *within,
            };
            return vec![Check {
                what,
                at: check.at.clone(),
            }];
        }
        let Some(open) = check
            .values()
            .into_iter()
            .find(|value| value.server.is_none())
            .cloned()
        else {
            return vec![check.clone()];
        };
        let servers = self
            .for_each(&open)
            .into_iter()
            .filter_map(|value| value.server);
        servers.map(|server| with_server(check, &server)).collect()
    }

    fn for_each(&self, value: &Value) -> Vec<Value> {
        let servers = self.servers(value);
        servers
            .map(|server| Value {
                server: Some(server),
                ..value.clone()
            })
            .collect()
    }

    /// The servers of a value's part.
    fn servers(&self, value: &Value) -> impl Iterator<Item = String> + use<'_> {
        let report = self.part(value).and_then(|(_, part)| part.report.as_ref());
        let servers = report.map_or(&[][..], |report| &report.run.servers);
        servers.iter().map(|server| server.name.clone())
    }

    fn weigh(&self, check: &Check, findings: &mut Findings) {
        match &check.what {
            What::Order { first, then } => {
                let mut before = first;
                for (relation, operand) in then {
                    self.order(check, before, *relation, operand, findings);
                    before = operand;
                }
            }
            What::Alike { values, within } => {
                for (place, first) in values.iter().enumerate() {
                    for second in &values[place + 1..] {
                        let with = |a: &Term, b: &Term, seed| {
                            let weighed = alike(a, b, within / 100.0, seed);
                            (weighed, " alike".to_owned())
                        };
                        self.pair(check, first, second, &with, findings);
                    }
                }
            }
            What::Trend(value, trend) => self.trend(check, value, *trend, findings),
            What::Extreme(value, extreme) => {
                let relation = match extreme {
                    Extreme::Highest => Relation::Above,
                    Extreme::Lowest => Relation::Below,
                };
                let others = self
                    .for_each(value)
                    .into_iter()
                    .filter(|other| other != value);
                for other in others.filter(|other| other.server != value.server) {
                    let (first, second) = (
                        Operand::Value(1.0, value.clone()),
                        Operand::Value(1.0, other),
                    );
                    self.order(check, &first, relation, &second, findings);
                }
            }
        }
    }

    fn order(
        &self,
        check: &Check,
        first: &Operand,
        relation: Relation,
        second: &Operand,
        findings: &mut Findings,
    ) {
        let by = |a: &Term, b: &Term, seed| stands(a, relation, b, seed);
        match (first, second) {
            (Operand::Value(times, first), Operand::Value(more, second)) => {
                let by = |a: &Term, b: &Term, seed| {
                    (
                        by(&a.clone().times(*times), &b.clone().times(*more), seed),
                        String::new(),
                    )
                };
                self.pair(check, first, second, &by, findings);
            }
            (Operand::Value(times, value), Operand::Number(limit))
            | (Operand::Number(limit), Operand::Value(times, value)) => {
                let number_first = matches!(first, Operand::Number(_));
                for clients in self.clients(check, value) {
                    match self.term(value, clients) {
                        Err(why) => findings.miss(why),
                        Ok((term, seed)) => {
                            let text = value.metric.unit().text(*limit);
                            let limit = Term::number(*limit, text);
                            let term = term.times(*times);
                            let weighed = if number_first {
                                by(&limit, &term, seed)
                            } else {
                                by(&term, &limit, seed)
                            };
                            findings
                                .evidence
                                .push(beside_number(&term, &limit, clients, weighed));
                        }
                    }
                }
            }
            (Operand::Number(_), Operand::Number(_)) => {}
        }
    }

    /// Weighs two values with each number of clients that both have.
    fn pair(
        &self,
        check: &Check,
        first: &Value,
        second: &Value,
        by: &dyn Fn(&Term, &Term, u64) -> (Weighed, String),
        findings: &mut Findings,
    ) {
        let (ours, theirs) = (self.clients(check, first), self.clients(check, second));
        let mut together: Vec<(u32, u32)> = ours
            .iter()
            .filter(|clients| theirs.contains(clients))
            .map(|clients| (*clients, *clients))
            .collect();
        let (pinned, other_pinned) = (first.clients.is_some(), second.clients.is_some());
        if pinned || other_pinned || (together.is_empty() && ours.len() == 1 && theirs.len() == 1) {
            together = ours
                .iter()
                .flat_map(|ours| theirs.iter().map(|theirs| (*ours, *theirs)))
                .collect();
        }
        if together.is_empty() {
            findings.miss("no number of clients was run that it is about");
        }
        for (ours, theirs) in together {
            match (self.term(first, ours), self.term(second, theirs)) {
                (Ok((a, seed)), Ok((b, _))) => {
                    let (weighed, said) = by(&a, &b, seed);
                    let clients = if ours == theirs {
                        vec![ours]
                    } else {
                        vec![ours, theirs]
                    };
                    findings
                        .evidence
                        .push(beside(&a, &b, &clients, weighed, &said));
                }
                (a, b) => {
                    for why in [a.err(), b.err()].into_iter().flatten() {
                        findings.miss(why);
                    }
                }
            }
        }
    }

    fn trend(&self, check: &Check, value: &Value, trend: Trend, findings: &mut Findings) {
        let mut terms = Vec::new();
        for clients in self.clients(check, value) {
            match self.term(value, clients) {
                Ok((term, seed)) => terms.push((clients, term, seed)),
                Err(why) => findings.miss(why),
            }
        }
        let ([(fewest, first, seed), .., (most, last, _)], steps) =
            (terms.as_slice(), terms.windows(2))
        else {
            findings.miss("it takes two numbers of clients to see how it goes with them");
            return;
        };
        let ends = [*fewest, *most];
        if trend == Trend::Flat {
            for (clients, other, _) in &terms[1..] {
                let weighed = alike(other, first, FLAT, *seed);
                findings.evidence.push(beside(
                    other,
                    first,
                    &[*clients, *fewest],
                    weighed,
                    " alike",
                ));
            }
            return;
        }
        let relation = if trend == Trend::Grows {
            Relation::Above
        } else {
            Relation::Below
        };
        let mut weighed = stands(last, relation, first, *seed);
        if weighed.finding == Finding::NotDistinguishable
            && alike(last, first, FLAT, *seed).finding == Finding::Confirmed
        {
            // It is shown to stay as it is, which is not to grow.
            weighed.finding = Finding::Refuted;
        }
        findings
            .evidence
            .push(beside(last, first, &[ends[1], ends[0]], weighed, ""));
        for step in steps {
            let [(from, before, _), (to, after, _)] = step else {
                continue;
            };
            let back = stands(after, opposite(relation), before, *seed);
            if back.finding == Finding::Confirmed {
                let against = Weighed {
                    finding: Finding::Refuted,
                    ..back
                };
                findings
                    .evidence
                    .push(beside(after, before, &[*to, *from], against, ""));
            }
        }
    }

    /// The numbers of clients that were run which a check is about; 0 for a value over all of them.
    fn clients(&self, check: &Check, value: &Value) -> Vec<u32> {
        if value.metric.is_over_clients() {
            return vec![0];
        }
        if let Some(clients) = value.clients {
            return vec![clients];
        }
        let report = self.part(value).and_then(|(_, part)| part.report.as_ref());
        let ran = report.map_or(&[][..], |report| &report.run.settings.clients);
        ran.iter()
            .copied()
            .filter(|clients| check.is_about(*clients))
            .collect()
    }

    /// A value, and the seed for its intervals; or why there is none.
    fn term(&self, value: &Value, clients: u32) -> Result<(Term, u64), Missing> {
        let server = value.server.as_deref().unwrap_or_default();
        let (place, part) = self.part(value).ok_or("its part was not run")?;
        let seed = part.report.as_ref().map_or(1, |report| report.run.seed);
        let unit = value.metric.unit();
        let within = if self.parts.len() > 1 {
            format!(" ({})", part.record.name)
        } else {
            String::new()
        };
        let metric_name = lowered(value.metric.title());
        let name = format!("{metric_name} of {server}{within}");
        let absent = |why: String| Missing {
            value: Some(Absent {
                metric: metric_name.clone(),
                server: format!("{server}{within}"),
                clients: (!value.metric.is_over_clients()).then_some(clients),
            }),
            why,
        };
        let (sample, low, high, middle, noise, text) = match value.metric {
            AnyMetric::Trial(metric) => {
                let sample = part.sample(metric, server, clients).map_err(absent)?;
                let limited = part.row(server, clients).is_some_and(Row::client_limited);
                if metric.name == RATE.name && limited {
                    return Err(absent("the clients were the limit".to_owned()));
                }
                let (low, high) = match (sample.interval, sample.exact) {
                    (Some(interval), false) => interval,
                    _ => (sample.value, sample.value),
                };
                let noise = part.noise(metric, clients).unwrap_or(0.0).max(metric.least);
                let (value, text) = (sample.value, unit.text(sample.value));
                (Some(sample), low, high, value, noise, text)
            }
            AnyMetric::Over(over) => {
                let reach = part.over(over, server).map_err(absent)?;
                let middle = reach.value.unwrap_or(reach.high);
                (None, reach.low, reach.high, middle, 0.0, reach.evidence)
            }
        };
        let term = Term {
            name,
            text,
            sample,
            part: place,
            low,
            high,
            value: middle,
            noise,
        };
        if term.is_lonely() {
            return Err(absent("one trial has no interval".to_owned()));
        }
        Ok((term, seed))
    }
}

/// Whether the first stands so to the second. The ratio is always of the first to the second.
fn stands(first: &Term, relation: Relation, second: &Term, seed: u64) -> Weighed {
    let or_level = matches!(relation, Relation::AtMost | Relation::AtLeast);
    match relation {
        Relation::Below | Relation::AtMost => below(first, second, or_level, seed),
        Relation::Above | Relation::AtLeast => {
            let turned = below(second, first, or_level, seed);
            let ratio = turned.ratio.map(|ratio| crate::stats::Interval {
                estimate: 1.0 / ratio.estimate,
                low: 1.0 / ratio.high,
                high: 1.0 / ratio.low,
            });
            Weighed { ratio, ..turned }
        }
    }
}

fn opposite(relation: Relation) -> Relation {
    match relation {
        Relation::Above | Relation::AtLeast => Relation::Below,
        Relation::Below | Relation::AtMost => Relation::Above,
    }
}

/// The check with this server wherever a `*` stands.
fn with_server(check: &Check, server: &str) -> Check {
    let of = |value: &Value| Value {
        server: value.server.clone().or_else(|| Some(server.to_owned())),
        ..value.clone()
    };
    let operand = |operand: &Operand| match operand {
        Operand::Value(times, value) => Operand::Value(*times, of(value)),
        Operand::Number(number) => Operand::Number(*number),
    };
    let what = match &check.what {
        What::Order { first, then } => What::Order {
            first: operand(first),
            then: then
                .iter()
                .map(|(relation, next)| (*relation, operand(next)))
                .collect(),
        },
        What::Alike { values, within } => What::Alike {
            values: values.iter().map(of).collect(),
            within: *within,
        },
        What::Trend(value, trend) => What::Trend(of(value), *trend),
        What::Extreme(value, extreme) => What::Extreme(of(value), *extreme),
    };
    let at: Vec<AtClients> = check.at.clone();
    Check { what, at }
}
