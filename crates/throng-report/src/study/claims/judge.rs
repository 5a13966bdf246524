//! Checks expectations against the results of a study's parts.

use super::missing::{Missing, sentences};
use super::name::Name;
use super::repeats::Repeats;
use super::term::Term;
use super::weigh::{TestResult, weigh};
use super::words::{compared, compared_with_number, ended, expected, reasons};
use super::{ClaimVerdict, Evidence, JudgedCheck};
use crate::study::PartReport;
use throng_record::claim::{Baseline, Expectation, Reference, Relation};
use throng_record::findings::cause::UNKNOWN;
use throng_record::format::{list, whole};
use throng_record::metrics::{Metric, find};
use throng_record::{Method, Purpose};

/// The results against which claims are checked.
pub(super) struct Judge<'a> {
    pub(super) parts: &'a [PartReport<'a>],
}

impl<'a> Judge<'a> {
    /// Judges expectations, each in every part that it names.
    pub(super) fn expectations(&self, all: &[Expectation]) -> Vec<JudgedCheck> {
        all.iter()
            .flat_map(|expect| self.expectation(expect))
            .collect()
    }

    /// The parts that an expectation is about.
    pub(super) fn parts_of(&self, expect: &Expectation) -> Vec<&'a PartReport<'a>> {
        let named = |part: &&PartReport<'_>| {
            expect.parts.is_empty() || expect.parts.contains(&part.record.name)
        };
        let parts = self.parts.iter().filter(named);
        let most = if expect.parts.is_empty() {
            1
        } else {
            usize::MAX
        };
        parts.take(most).collect()
    }

    /// Judges an expectation in each part that it names.
    fn expectation(&self, expect: &Expectation) -> Vec<JudgedCheck> {
        match expect.parts.as_slice() {
            [] => vec![self.in_part(expect, None)],
            parts => parts
                .iter()
                .map(|part| self.in_part(expect, Some(part)))
                .collect(),
        }
    }

    fn in_part(&self, expect: &Expectation, part: Option<&str>) -> JudgedCheck {
        let (evidence, missing) = match self.check(expect, part) {
            Ok(mut check) => {
                check.weigh();
                (check.evidence, check.missing)
            }
            Err(why) => (Vec::new(), vec![why.into()]),
        };
        let of_nothing = if missing.iter().any(|one| one.is_censored) {
            ClaimVerdict::Censored
        } else {
            ClaimVerdict::NotTestable
        };
        let missing = sentences(&missing);
        let verdict =
            ClaimVerdict::of_all(evidence.iter().map(|one| one.verdict)).unwrap_or(of_nothing);
        JudgedCheck {
            text: expected(expect, part),
            verdict,
            sentence: reasons(
                verdict,
                &evidence.iter().collect::<Vec<_>>(),
                &missing.iter().collect::<Vec<_>>(),
            ),
            evidence,
            missing,
        }
    }

    /// The values to compare, or why there are none.
    fn check<'b>(
        &'b self,
        expect: &'b Expectation,
        part: Option<&str>,
    ) -> Result<Check<'b>, String> {
        let metric = find(&expect.metric).map_err(|unknown| unknown.to_string())?;
        let own = self.ran(part)?;
        let other = match &expect.baseline {
            Some(Baseline::Value(other)) => {
                let name = other.part.as_deref().or(part);
                Other::Value(self.ran(name)?, other)
            }
            Some(number) => {
                let number = metric.unit.parse(&number.number().unwrap_or_default())?;
                Other::Number(Box::new(Term::number(number, metric.unit.text(number))))
            }
            None => Other::None,
        };
        Ok(Check {
            parts: self.parts,
            expect,
            metric,
            part: own,
            other,
            evidence: Vec::new(),
            missing: Vec::new(),
        })
    }

    /// The index of the named part, or of the first one if `name` is `None`. An error says why the part has no results.
    fn ran(&self, name: Option<&str>) -> Result<usize, String> {
        let called = |part: &PartReport<'_>| name.is_none_or(|name| part.record.name == name);
        let Some(place) = self.parts.iter().position(called) else {
            return Err(format!("part {} was not run", name.unwrap_or_default()));
        };
        let part = &self.parts[place];
        match &part.record.skipped {
            Some(why) => {
                let name = &part.record.name;
                Err(format!("part {name} does not run on this machine: {why}"))
            }
            None => Ok(place),
        }
    }
}

/// An expectation in one part, and its results so far.
struct Check<'a> {
    parts: &'a [PartReport<'a>],
    expect: &'a Expectation,
    metric: &'static Metric,
    /// Index of its part.
    part: usize,
    other: Other<'a>,
    evidence: Vec<Evidence>,
    missing: Vec<Missing>,
}

/// What values are compared with.
#[derive(Clone)]
enum Other<'a> {
    /// With each other.
    None,
    Number(Box<Term>),
    /// A value of the part with this index.
    Value(usize, &'a Reference),
}

/// Values of one server in one part, by number of clients.
#[derive(Clone, Copy)]
struct Values<'a> {
    /// Index of the part.
    part: usize,
    server: &'a str,
    /// Their number of clients; `None` for all that the expectation covers.
    clients: Option<u32>,
    factor: f64,
}

impl<'a> Check<'a> {
    fn weigh(&mut self) {
        let expect = self.expect;
        let relation = match expect.relation {
            Relation::Highest | Relation::Grows => Relation::Greater,
            Relation::Lowest | Relation::Falls => Relation::Less,
            Relation::Flat => Relation::Alike,
            relation => relation,
        };
        for left_out in &self.parts[self.part].record.left_out {
            let is_meant = left_out
                .clients
                .iter()
                .any(|clients| expect.is_about(*clients));
            if left_out.server.is_none() && is_meant && !self.metric.is_of_search() {
                let clients = left_out.clients.iter().map(|one| whole(f64::from(*one)));
                let clients = list(&clients.collect::<Vec<_>>());
                let why = &left_out.reason;
                self.miss(Missing {
                    is_censored: true,
                    ..format!("{clients} clients did not run on this machine ({why})").into()
                });
            }
        }
        let named: Vec<&str> = expect.servers.iter().map(String::as_str).collect();
        let all = self.servers();
        let servers = if named.is_empty() { &all } else { &named };
        let values = servers.iter().map(|server| self.values(server));
        let values: Vec<Values<'_>> = values.collect();
        match self.other.clone() {
            Other::None if expect.relation == Relation::EndedBy => {
                for one in servers.clone() {
                    self.ended_by(one);
                }
            }
            Other::None if expect.relation.is_trend() => {
                for one in values {
                    self.trend(one, relation);
                }
            }
            Other::None if expect.relation.is_extreme() => {
                let others = all.iter().filter(|server| !servers.contains(server));
                for other in others.map(|server| self.values(server)).collect::<Vec<_>>() {
                    for one in &values {
                        self.pair(*one, relation, other);
                    }
                }
            }
            Other::None => {
                for (place, one) in values.iter().enumerate() {
                    for other in &values[place + 1..] {
                        self.pair(*one, relation, *other);
                    }
                }
            }
            Other::Number(number) => {
                for one in values {
                    self.compare_with_number(one, relation, &number);
                }
            }
            Other::Value(part, other) => {
                for one in values {
                    let other = Values {
                        part,
                        server: other.server.as_deref().unwrap_or(one.server),
                        clients: other.clients,
                        factor: other.factor.unwrap_or(1.0),
                    };
                    // When all servers are compared with one of them, skip comparing that server with itself.
                    let is_itself = (other.part, other.server, other.clients)
                        == (one.part, one.server, one.clients);
                    if !(named.is_empty() && is_itself) {
                        self.pair(one, relation, other);
                    }
                }
            }
        }
    }

    /// The servers of the part.
    fn servers(&self) -> Vec<&'a str> {
        let report = self.parts[self.part].report.as_ref();
        let servers = report.map_or(&[][..], |report| &report.run.servers);
        servers.iter().map(|server| server.name.as_str()).collect()
    }

    /// The values of a server in the part.
    fn values(&self, server: &'a str) -> Values<'a> {
        Values {
            part: self.part,
            server,
            clients: None,
            factor: 1.0,
        }
    }

    /// Weighs two values with each number of clients that both have.
    fn pair(&mut self, first: Values<'_>, relation: Relation, second: Values<'_>) {
        let (ours, theirs) = (self.clients(first), self.clients(second));
        let both = |ours: &&u32| theirs.contains(ours);
        let mut together: Vec<(u32, u32)> =
            ours.iter().filter(both).map(|one| (*one, *one)).collect();
        let alone = together.is_empty() && ours.len() == 1 && theirs.len() == 1;
        if second.clients.is_some() || alone {
            let theirs = theirs.first().copied().unwrap_or_default();
            together = ours.iter().map(|ours| (*ours, theirs)).collect();
        }
        if together.is_empty() && self.missing.is_empty() {
            self.miss("none of its numbers of clients ran");
        }
        for (ours, theirs) in together {
            match (self.term(first, ours), self.term(second, theirs)) {
                (Ok(a), Ok(b)) => {
                    let weighed = self.weighed(&a, relation, &b);
                    self.found(&a, &b, relation, weighed);
                }
                (a, b) => {
                    for why in [a.err(), b.err()].into_iter().flatten() {
                        self.miss(why);
                    }
                }
            }
        }
    }

    /// Checks whether the limit of a server has one of the expected causes.
    fn ended_by(&mut self, server: &str) {
        let part = &self.parts[self.part];
        let limit = part
            .report
            .as_ref()
            .and_then(|report| report.run.limit.as_ref());
        let found = limit.and_then(|limit| limit.found.iter().find(|found| found.server == server));
        let Some(found) = found else {
            self.miss(format!("no limit of {server} was found"));
            return;
        };
        match &found.cause {
            None => self.miss(Missing {
                is_censored: true,
                ..format!("{server} did not fail before the search ended").into()
            }),
            Some(cause) if cause.kind == UNKNOWN.kind() => {
                self.miss(format!("{server}: {}", cause.sentence));
            }
            Some(cause) => {
                let expected = &self.expect.causes;
                self.evidence
                    .push(ended(server, found.passed, cause, expected));
            }
        }
    }

    fn compare_with_number(&mut self, values: Values<'_>, relation: Relation, number: &Term) {
        for clients in self.clients(values) {
            match self.term(values, clients) {
                Err(why) => self.miss(why),
                Ok(term) => {
                    let weighed = self.weighed(&term, relation, number);
                    let evidence =
                        compared_with_number(&term, relation, number, weighed, self.repeats());
                    self.evidence.push(evidence);
                }
            }
        }
    }

    /// The trend of values with the number of clients: the last value against the first, and no step in the opposite
    /// direction. If they are expected to stay flat, each value against the first.
    fn trend(&mut self, values: Values<'_>, relation: Relation) {
        let mut terms = Vec::new();
        for clients in self.clients(values) {
            match self.term(values, clients) {
                Ok(term) => terms.push(term),
                Err(why) => self.miss(why),
            }
        }
        let [first, .., last] = terms.as_slice() else {
            self.miss("a trend needs two numbers of clients");
            return;
        };
        if relation == Relation::Alike {
            for other in &terms[1..] {
                let weighed = self.weighed(other, relation, first);
                self.found(other, first, relation, weighed);
            }
            return;
        }
        let weighed = self.weighed(last, relation, first);
        self.found(last, first, relation, weighed);
        let opposite = match relation {
            Relation::Greater => Relation::Less,
            _ => Relation::Greater,
        };
        for step in terms.windows(2) {
            let [before, after] = step else {
                continue;
            };
            let back = self.weighed(after, opposite, before);
            if back.finding() == ClaimVerdict::Confirmed {
                let back = TestResult {
                    shown: back.contrary,
                    contrary: back.shown,
                    ..back
                };
                self.found(after, before, relation, back);
            }
        }
    }

    fn weighed(&self, first: &Term, relation: Relation, second: &Term) -> TestResult {
        weigh(first, relation, second, self.expect.margin() / 100.0)
    }

    fn found(&mut self, first: &Term, second: &Term, relation: Relation, weighed: TestResult) {
        let evidence = compared(first, second, relation, weighed, self.repeats());
        self.evidence.push(evidence);
    }

    /// What is repeated to measure the metric.
    fn repeats(&self) -> Repeats {
        let report = self.parts[self.part].report.as_ref();
        let method = report.map(|report| report.run.settings.method);
        match (self.metric.purpose, method) {
            (Purpose::Profiled | Purpose::Captured, _) => Repeats::Profiled,
            (_, Some(Method::Slices { .. })) if self.metric.is_of_slices() => Repeats::Slices,
            _ => Repeats::Timed,
        }
    }

    fn miss(&mut self, what: impl Into<Missing>) {
        let what = what.into();
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// The numbers of clients that have values; 0 for a value over all numbers of clients.
    fn clients(&self, values: Values<'_>) -> Vec<u32> {
        if self.metric.is_over_clients() {
            return vec![0];
        }
        if let Some(clients) = values.clients {
            return vec![clients];
        }
        let ran = numbers_of_clients(&self.parts[values.part]).iter().copied();
        ran.filter(|clients| self.expect.is_about(*clients))
            .collect()
    }

    /// A value, or why there is none.
    fn term(&self, values: Values<'_>, clients: u32) -> Result<Term, Missing> {
        let part = &self.parts[values.part];
        let name = Name {
            metric: self.metric.noun(),
            server: values.server.to_owned(),
            part: (self.parts.len() > 1).then(|| part.record.name.clone()),
            clients: (!self.metric.is_over_clients()).then_some(clients),
        };
        let term = Term::of(part, values.part, self.metric, &name, clients);
        let term = term.map_err(|why| Missing {
            value: Some(name),
            why,
            is_censored: false,
        });
        term.map(|term| term.times(values.factor))
    }
}

/// The numbers of clients with which a part ran.
fn numbers_of_clients<'a>(part: &'a PartReport<'_>) -> &'a [u32] {
    let report = part.report.as_ref();
    report.map_or(&[][..], |report| &report.run.settings.clients)
}
