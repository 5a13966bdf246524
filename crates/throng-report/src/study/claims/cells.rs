//! The cells of a claim: every pair of values that its relations compare.

use super::value::{Place, Value};
use super::weigh::{Weighed, weigh};
use super::{ClaimCell, ClaimVerdict, MissingValue, words};
use crate::study::PartReport;
use throng_record::claim::{Baseline, Clients, Expectation, Reference, Relation};
use throng_record::findings::cause::UNKNOWN;
use throng_record::metrics::{Metric, Unit, find};
use throng_record::{Cause, Purpose};
use throng_stats::{PValues, Shown};

/// Counts of events below this support no conclusion.
const FEWEST_EVENTS: f64 = 10.0;

/// A cell before its verdict.
pub(super) struct Draft<'a> {
    /// The name of the part, if the study has several.
    part: Option<&'a str>,
    /// The title of the part; empty if it is unknown.
    title: &'a str,
    metric: &'a str,
    server: &'a str,
    rival: &'a str,
    against: String,
    clients: Option<u32>,
    /// Differences up to this share do not matter.
    margin: f64,
    /// What the published values say by themselves, if both were published.
    published: Option<ClaimVerdict>,
    content: Content,
}

/// What a cell has to compare.
enum Content {
    Missing(MissingValue),
    /// The cause of a limit: whether it was expected, and a sentence about it.
    Ended(bool, String),
    Compared(Box<Weighed>),
}

/// What a value is compared with.
enum Other<'a> {
    Number(Box<Value>),
    Value(Place<'a>, f64),
}

/// The cells of an expectation.
pub(super) fn all<'a>(parts: &'a [PartReport<'a>], expect: &'a Expectation) -> Vec<Draft<'a>> {
    let named = expect
        .parts
        .iter()
        .map(|name| (name.as_str(), called(parts, name)));
    let first = [("", (!parts.is_empty()).then_some(0))];
    let wanted: Vec<(&str, Option<usize>)> = match expect.parts.as_slice() {
        [] => first.to_vec(),
        _ => named.collect(),
    };
    let of_part = wanted.into_iter().map(|(name, part)| {
        let metric = find(&expect.metric).map_err(|unknown| unknown.to_string())?;
        let found = part.ok_or_else(|| format!("part {name} was not run"))?;
        is_run(&parts[found])?;
        let cells = Cells {
            parts,
            expect,
            metric,
            part: found,
        };
        cells.of_part()
    });
    of_part
        .flat_map(|found| {
            found.unwrap_or_else(|why: String| {
                let server = String::new();
                vec![missing(expect, MissingValue { server, why })]
            })
        })
        .collect()
}

/// The index of the part with this name.
fn called(parts: &[PartReport<'_>], name: &str) -> Option<usize> {
    parts.iter().position(|part| part.record.name == name)
}

fn is_run(part: &PartReport<'_>) -> Result<(), String> {
    let name = &part.record.name;
    match &part.record.skipped {
        Some(why) => Err(format!("part {name} does not run on this machine: {why}")),
        None => Ok(()),
    }
}

/// The only cell of an expectation that has no values at all.
fn missing(expect: &Expectation, why: MissingValue) -> Draft<'_> {
    Draft {
        part: expect.parts.first().map(String::as_str),
        title: expect.parts.first().map_or("", String::as_str),
        metric: &expect.metric,
        server: expect.servers.first().map_or("", String::as_str),
        rival: "",
        against: String::new(),
        clients: None,
        margin: 0.0,
        published: None,
        content: Content::Missing(why),
    }
}

/// An expectation in one part.
struct Cells<'a> {
    parts: &'a [PartReport<'a>],
    expect: &'a Expectation,
    metric: &'static Metric,
    /// Index of the part.
    part: usize,
}

impl<'a> Cells<'a> {
    fn of_part(&self) -> Result<Vec<Draft<'a>>, String> {
        let expect = self.expect;
        let named: Vec<&str> = expect.servers.iter().map(String::as_str).collect();
        let present = self.servers();
        let servers = if named.is_empty() { &present } else { &named };
        let relation = expect.relation;
        match &expect.baseline {
            Some(Baseline::Value(reference)) => {
                let other_part = match &reference.part {
                    Some(name) => {
                        called(self.parts, name).ok_or(format!("part {name} was not run"))?
                    }
                    None => self.part,
                };
                is_run(&self.parts[other_part])?;
                let each = servers.iter();
                Ok(each
                    .flat_map(|server| self.with_reference(server, reference, other_part))
                    .collect())
            }
            Some(number) => {
                let text = number.number().unwrap_or_default();
                let value = self.metric.unit.parse(&text)?;
                let limit =
                    || Other::Number(Box::new(Value::number(value, self.metric.unit.text(value))));
                let places = servers.iter().flat_map(|server| self.places(server));
                Ok(places
                    .map(|place| self.cell(place, relation, limit()))
                    .collect())
            }
            None if relation == Relation::EndedBy => {
                Ok(servers.iter().map(|server| self.ended_by(server)).collect())
            }
            None if relation.is_trend() => Ok(servers
                .iter()
                .flat_map(|server| self.trend(server))
                .collect()),
            None => {
                let mut cells = Vec::new();
                for (index, server) in servers.iter().enumerate() {
                    let rivals: Vec<&str> = if relation.is_extreme() {
                        let others = present.iter().filter(|one| !servers.contains(one));
                        others.copied().collect()
                    } else {
                        servers[index + 1..].to_vec()
                    };
                    for rival in rivals {
                        cells.extend(self.places(server).into_iter().map(|place| {
                            let other = Place {
                                server: rival,
                                ..place
                            };
                            self.cell(place, relation, Other::Value(other, 1.0))
                        }));
                    }
                }
                Ok(cells)
            }
        }
    }

    /// A server with each number of clients, against another value.
    fn with_reference(
        &self,
        server: &'a str,
        reference: &'a Reference,
        part: usize,
    ) -> Vec<Draft<'a>> {
        let theirs = self.clients_in(part);
        let ours = self.places(server);
        let in_both = ours.iter().any(|place| theirs.contains(&place.clients));
        let mut cells = Vec::new();
        for place in ours {
            let clients = match (reference.clients, theirs.as_slice()) {
                (Some(clients), _) => Some(clients),
                // The only number of clients of either part.
                (None, [only]) if !in_both => *only,
                (None, _) if theirs.contains(&place.clients) || !in_both => place.clients,
                (None, _) => continue,
            };
            let rival = reference.server.as_deref().unwrap_or(server);
            let other = Place {
                part,
                server: rival,
                clients,
            };
            // When all servers are compared with one of them, that server is not compared with itself.
            if !(self.expect.servers.is_empty() && other == place) {
                let factor = reference.factor.unwrap_or(1.0);
                cells.push(self.cell(place, self.expect.relation, Other::Value(other, factor)));
            }
        }
        cells
    }

    /// The trend of a server with the number of clients: a cell per step, or if it must stay flat, each value against
    /// the first.
    fn trend(&self, server: &'a str) -> Vec<Draft<'a>> {
        let (known, lacking): (Vec<Place<'a>>, Vec<Place<'a>>) = self
            .places(server)
            .into_iter()
            .partition(|place| place.value(self.parts, self.metric).is_ok());
        let mut cells: Vec<Draft<'a>> = known
            .iter()
            .enumerate()
            .skip(1)
            .map(|(index, place)| {
                let is_flat = self.expect.relation == Relation::Flat;
                let before = known[if is_flat { 0 } else { index - 1 }];
                self.cell(*place, self.expect.relation, Other::Value(before, 1.0))
            })
            .collect();
        cells.extend(lacking.into_iter().map(|place| {
            let other = known.first().copied().unwrap_or(place);
            self.cell(place, self.expect.relation, Other::Value(other, 1.0))
        }));
        if cells.is_empty() {
            let why = "a trend needs two numbers of clients".to_owned();
            let server = server.to_owned();
            cells.push(missing(self.expect, MissingValue { server, why }));
        }
        cells
    }

    /// Whether the limit of a server has one of the expected causes.
    fn ended_by(&self, server: &'a str) -> Draft<'a> {
        let run = self.parts[self.part]
            .report
            .as_ref()
            .map(|report| report.run);
        let mut limits = run
            .and_then(|run| run.limit.as_ref())
            .into_iter()
            .flat_map(|limit| &limit.found);
        let lacking = |why: String| {
            Content::Missing(MissingValue {
                server: server.to_owned(),
                why,
            })
        };
        let content = match limits.find(|found| found.server == server) {
            None => lacking("no limit was found".to_owned()),
            Some(found) => match &found.cause {
                None => lacking("it did not fail before the search ended".to_owned()),
                Some(Cause { kind, sentence, .. }) if *kind == UNKNOWN.kind() => {
                    lacking(sentence.clone())
                }
                Some(cause) => {
                    let is_so = self
                        .expect
                        .causes
                        .iter()
                        .any(|name| name == cause.kind.name);
                    Content::Ended(
                        is_so,
                        words::ended(found, cause, is_so, &self.expect.causes),
                    )
                }
            },
        };
        let place = Place {
            part: self.part,
            server,
            clients: None,
        };
        Draft {
            content,
            ..self.draft(place)
        }
    }

    fn cell(&self, place: Place<'a>, relation: Relation, other: Other<'a>) -> Draft<'a> {
        let (rival, against) = match &other {
            Other::Number(number) => ("", number.text.clone()),
            Other::Value(rival, _) => (rival.server, words::against(self.parts, place, *rival)),
        };
        let published = self.by_published(place, relation, &other);
        let first = place.value(self.parts, self.metric);
        let second = match other {
            Other::Number(number) => Ok(*number),
            Other::Value(opponent, factor) => opponent
                .value(self.parts, self.metric)
                .map(|value| value.times(factor)),
        };
        let draft = self.draft(place);
        let content = match (first, second) {
            (Ok(first), Ok(second)) if self.is_of_too_few([&first, &second]) => {
                let why = format!("fewer than {FEWEST_EVENTS} events support no conclusion");
                let server = place.server.to_owned();
                Content::Missing(MissingValue { server, why })
            }
            (Ok(first), Ok(second)) => {
                let decided = self.decided(&first, &second);
                let weighed = weigh(
                    first,
                    relation,
                    second,
                    self.expect.margin() / 100.0,
                    decided,
                );
                Content::Compared(Box::new(weighed))
            }
            (Err(why), _) | (_, Err(why)) => Content::Missing(why),
        };
        let margin = match &content {
            Content::Compared(weighed) => weighed.margin,
            _ => 0.0,
        };
        let rival = if rival == place.server { "" } else { rival };
        Draft {
            rival,
            against,
            margin,
            published,
            content,
            ..draft
        }
    }

    /// The verdict of the published values, which have no trials.
    fn by_published(
        &self,
        place: Place<'a>,
        relation: Relation,
        other: &Other<'a>,
    ) -> Option<ClaimVerdict> {
        let number = |value| Value::number(value, String::new());
        let first = number(self.published(place)?);
        let second = match other {
            Other::Number(limit) => number(limit.low),
            Other::Value(rival, factor) => number(self.published(*rival)?).times(*factor),
        };
        let share = self.expect.margin() / 100.0;
        Some(weigh(first, relation, second, share, None).alone())
    }

    /// The published value of a place.
    fn published(&self, place: Place<'a>) -> Option<f64> {
        let name = self.expect.published.as_deref().unwrap_or(self.metric.name);
        let mut rows = self.parts[place.part]
            .published
            .rows
            .iter()
            .filter(|row| row.metric == name && row.system.is_none());
        rows.find_map(|row| {
            let is_of = row.clients.is_none() || row.clients == place.clients;
            let mut cells = row.cells.iter().filter(|_| is_of);
            let cell = cells.find(|cell| cell.server == place.server);
            cell?.published_value
        })
    }

    /// Whether both values count too few events.
    fn is_of_too_few(&self, both: [&Value; 2]) -> bool {
        let is_count = self.metric.unit == Unit::Count && self.metric.purpose == Purpose::Profiled;
        is_count && both.iter().all(|value| value.high < FEWEST_EVENTS)
    }

    /// Whether the first value differs from the second, if the run's own comparison says so: +1 above, -1 below, 0 not
    /// shown.
    fn decided(&self, first: &Value, second: &Value) -> Option<i8> {
        let (a, b) = (first.place.as_ref()?, second.place.as_ref()?);
        let is_plain = second.factor.total_cmp(&1.0).is_eq();
        let report = self.parts[a.part].report.as_ref()?;
        let is_same = is_plain && a.part == b.part && a.clients == b.clients;
        let clients = a.clients.filter(|_| is_same)?;
        report
            .comparison
            .direction(clients, self.metric, [&a.server, &b.server])
    }

    fn draft(&self, place: Place<'a>) -> Draft<'a> {
        let record = self.parts[place.part].record;
        Draft {
            part: (self.parts.len() > 1).then_some(record.name.as_str()),
            title: match record.title.as_str() {
                "" => &record.name,
                title => title,
            },
            metric: self.metric.name,
            server: place.server,
            rival: "",
            against: String::new(),
            clients: place.clients,
            margin: 0.0,
            published: None,
            content: Content::Ended(false, String::new()),
        }
    }

    /// The servers of the part.
    fn servers(&self) -> Vec<&'a str> {
        let report = self.parts[self.part].report.as_ref();
        let servers = report.map_or(&[][..], |report| &report.run.servers);
        servers.iter().map(|server| server.name.as_str()).collect()
    }

    /// A server with each number of clients that the expectation covers.
    fn places(&self, server: &'a str) -> Vec<Place<'a>> {
        let numbers = self.clients_in(self.part).into_iter();
        let place = |clients| Place {
            part: self.part,
            server,
            clients,
        };
        numbers.map(place).collect()
    }

    /// The numbers of clients of a part that the expectation covers, whether they ran or not; `None` stands for a value
    /// over all of them.
    fn clients_in(&self, part: usize) -> Vec<Option<u32>> {
        if self.metric.is_over_clients() {
            return vec![None];
        }
        if let Some(Clients::Numbers(numbers)) = &self.expect.clients {
            return numbers.iter().copied().map(Some).collect();
        }
        let own_part = &self.parts[part];
        let ran = own_part
            .report
            .as_ref()
            .map_or(&[][..], |report| &report.run.settings.clients);
        let planned = own_part
            .record
            .clients
            .iter()
            .filter(|clients| !ran.contains(clients));
        let mut all: Vec<u32> = ran.iter().chain(planned).copied().collect();
        all.retain(|clients| self.expect.is_about(*clients));
        all.sort_unstable();
        all.into_iter().map(Some).collect()
    }
}

impl Draft<'_> {
    /// What its family of tests is to decide.
    pub(super) fn p_values(&self) -> Option<PValues> {
        match &self.content {
            Content::Compared(weighed) => weighed.p_values(),
            _ => None,
        }
    }

    /// The cell with its verdict, from what the family shows.
    pub(super) fn judged(&self, shown: Shown) -> ClaimCell {
        let (verdict, ratio) = match &self.content {
            Content::Missing(_) => (ClaimVerdict::NotMeasured, None),
            Content::Ended(true, _) => (ClaimVerdict::Yes, None),
            Content::Ended(false, _) => (ClaimVerdict::No, None),
            Content::Compared(weighed) => (weighed.verdict(shown), weighed.ratio),
        };
        let missing = match &self.content {
            Content::Missing(missing) => Some(missing.clone()),
            _ => None,
        };
        let mut cell = ClaimCell {
            part: self.part.unwrap_or_default().to_owned(),
            title: self.title.to_owned(),
            metric: self.metric.to_owned(),
            server: self.server.to_owned(),
            rival: self.rival.to_owned(),
            against: self.against.clone(),
            clients: self.clients,
            verdict,
            seen: String::new(),
            ratio,
            margin: self.margin,
            published: self.published,
            missing,
        };
        cell.seen = match &self.content {
            Content::Ended(_, sentence) => sentence.clone(),
            Content::Missing(lack) => words::lacking(&cell, lack),
            Content::Compared(weighed) => words::compared(&cell, weighed),
        };
        cell
    }
}
