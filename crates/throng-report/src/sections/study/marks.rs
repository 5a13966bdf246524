//! The table of a study in scenes: how each server does under each load, and what follows from all of it.

use std::collections::BTreeMap;

use crate::comparison::ranking::{Place, Standing};
use crate::comparison::size::times;
use crate::document::{Cell, Column, Row, Style, Table, Text, Tone};
use crate::palette;
use crate::study::scenes::{FAR, SceneResult, named_or_counted};
use throng_record::format::{ABSENT, counted, list, or_absent};
use throng_record::metrics::Metric;

const BEST_VALUE: &str = "Best value";
/// A value that is worse than the best by less than this factor is written as the same.
const SAME: f64 = 1.005;

/// What a cell of the table shows: a server under a load.
#[derive(Clone, Copy)]
pub(super) enum Mark<'a> {
    /// Best, alone or in a tie.
    Best {
        is_tie: bool,
    },
    /// Worse than the best.
    Behind(&'a Place),
    /// Not ranked; `is_first` if it has the best value.
    Open {
        place: &'a Place,
        is_first: bool,
    },
    Unserved,
    /// Its replies were not as expected, or it had not become level.
    Odd,
    NotRun,
}

impl<'a> Mark<'a> {
    fn of(shown: &SceneResult<'a>, server: &str) -> Self {
        let Some(place) = shown.place_of(server) else {
            return match shown.row_of(server) {
                Some(row) if row.served_all => Self::Odd,
                Some(_) => Self::Unserved,
                None => Self::NotRun,
            };
        };
        match place.standing {
            // Nobody is shown to be worse than it.
            Standing::Best if shown.best().len() == 1 && shown.spread().is_none() => Self::Open {
                place,
                is_first: true,
            },
            Standing::Best => Self::Best {
                is_tie: shown.best().len() > 1,
            },
            Standing::Worse => Self::Behind(place),
            Standing::Unclear | Standing::Unknown => Self::Open {
                place,
                is_first: shown.places.first() == Some(place),
            },
        }
    }

    /// Its cost relative to the best, if it has a value.
    fn times(self) -> Option<f64> {
        match self {
            Self::Best { .. } => Some(1.0),
            Self::Behind(place) | Self::Open { place, .. } => Some(place.times.value),
            Self::Unserved | Self::Odd | Self::NotRun => None,
        }
    }

    /// Whether it shows a multiple of the best.
    pub(super) fn is_multiple(self) -> bool {
        matches!(self, Self::Behind(_) | Self::Open { .. })
    }

    fn is_worse(self) -> bool {
        matches!(self, Self::Behind(_) | Self::Unserved | Self::Odd)
    }

    fn text(self) -> String {
        match self {
            Self::Best { is_tie: true } => "tie".to_owned(),
            Self::Best { is_tie: false } => "best".to_owned(),
            Self::Behind(place) if place.times.is_bound => {
                format!("≥{}", times(place.times.value))
            }
            Self::Behind(place) => times(place.times.value),
            Self::Open { is_first: true, .. } => "best?".to_owned(),
            Self::Open { place, .. } if place.times.value < SAME => "tie?".to_owned(),
            Self::Open { place, .. } => times(place.times.value) + "?",
            Self::Unserved => "unserved".to_owned(),
            Self::Odd => "odd".to_owned(),
            Self::NotRun => ABSENT.to_owned(),
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Best { .. } => Tone::Best,
            Self::Behind(place) if place.times.value < FAR => Tone::Plain,
            Self::Behind(_) | Self::Unserved => Tone::Bad,
            Self::Open { .. } | Self::Odd | Self::NotRun => Tone::Quiet,
        }
    }

    /// Its meaning, with its place in the legend.
    fn meaning(self) -> Option<(u8, &'static str)> {
        let meaning = match self {
            Self::Best { is_tie: true } => (0, "Tie: no significant difference."),
            Self::Best { is_tie: false } | Self::Behind(_) => return None,
            Self::Open { .. } => (1, "?: undecided (noise, few trials or the clients)."),
            Self::Unserved => (2, "Unserved: some clients got no reply."),
            Self::Odd => (3, "Odd: its replies or its pace were not as expected."),
            Self::NotRun => (4, "–: not run."),
        };
        Some(meaning)
    }

    /// The meanings of these marks, each once.
    pub(super) fn legend<'m>(marks: impl Iterator<Item = &'m Self>) -> String
    where
        Self: 'm,
    {
        let found = marks.filter_map(|mark| mark.meaning());
        let meanings: BTreeMap<u8, &str> = found.collect();
        meanings.into_values().collect::<Vec<_>>().join(" ")
    }
}

/// A server, with its mark under each load.
pub(super) struct Marked<'a> {
    server: &'a str,
    pub(super) marks: Vec<Mark<'a>>,
}

impl<'a> Marked<'a> {
    /// Each server that ran under any of the loads.
    pub(super) fn all(scenes: &[SceneResult<'a>], servers: &'a [String]) -> Vec<Self> {
        let ran = |server: &&String| scenes.iter().any(|shown| shown.row_of(server).is_some());
        let marked = |server: &'a String| {
            let marks = scenes.iter().map(|shown| Mark::of(shown, server));
            Self {
                server,
                marks: marks.collect(),
            }
        };
        servers.iter().filter(ran).map(marked).collect()
    }

    /// Its costs relative to the best, under the loads in which it has a value.
    fn values(&self) -> impl Iterator<Item = f64> {
        self.marks.iter().filter_map(|mark| mark.times())
    }

    fn worst(&self) -> f64 {
        self.values().fold(1.0, f64::max)
    }

    fn has(&self, is: impl Fn(Mark<'a>) -> bool) -> bool {
        self.marks.iter().any(|mark| is(*mark))
    }

    fn is_decided(&self) -> bool {
        !self.has(|mark| matches!(mark, Mark::Open { .. }))
    }

    fn is_never_worse(&self) -> bool {
        self.has(|mark| matches!(mark, Mark::Best { .. })) && !self.has(Mark::is_worse)
    }
}

/// The servers that are never worse than another, or the one that stays closest to the best.
fn best_of<'m, 'a>(all: &'m [Marked<'a>]) -> Vec<&'m Marked<'a>> {
    let of_each = all.iter().map(|one| one.values().count());
    let Some(most) = of_each.max().filter(|most| *most > 1) else {
        return Vec::new();
    };
    let in_most = || all.iter().filter(|one| one.values().count() == most);
    let mut best: Vec<&Marked<'_>> = in_most().filter(|one| one.is_never_worse()).collect();
    // Servers of which all is decided come before others.
    if best.iter().any(|one| one.is_decided()) {
        best.retain(|one| one.is_decided());
    }
    if best.is_empty() {
        let served =
            in_most().filter(|one| !one.has(|mark| matches!(mark, Mark::Unserved | Mark::Odd)));
        best.extend(served.min_by(|one, other| one.worst().total_cmp(&other.worst())));
    }
    best
}

/// "io-uring and reactors are best or tie for CPU per request under all 3 loads and for memory."
pub(super) fn best_overall(scenes: &[SceneResult<'_>], all: &[Marked<'_>]) -> Option<String> {
    let best = best_of(all);
    let first = best.first()?;
    if !first.is_never_worse() {
        let (name, at_most) = (first.server, times(first.worst()));
        return Some(format!(
            "{name} stays closest to the best: at most {at_most}."
        ));
    }
    let names: Vec<&str> = best.iter().map(|one| one.server).collect();
    let is_one = names.len() == 1;
    let of = |metric: &Metric| {
        let name = metric.name;
        let numbered = scenes.iter().enumerate();
        let of_metric = numbered.filter(move |(_, shown)| shown.metric().name == name);
        of_metric.map(|(number, _)| number)
    };
    // Of few loads, with the best values.
    let values = |metric: &Metric| {
        let firsts = of(metric).filter_map(|number| scenes[number].places.first());
        let texts: Vec<String> = firsts.map(|place| metric.text(place.value)).collect();
        match texts.len() {
            1 | 2 => format!(" ({})", texts.join(", ")),
            _ => String::new(),
        }
    };
    let is_open = |metric: &&Metric| {
        let open =
            |one: &&Marked<'_>, number: usize| matches!(one.marks[number], Mark::Open { .. });
        of(metric).any(|number| best.iter().any(|one| open(one, number)))
    };
    let for_all = |metrics: &[&'static Metric], every: fn(usize) -> String| {
        let each = metrics.iter().map(|metric| {
            let (loads, noun) = (of(metric).count(), metric.noun());
            let ran = of(metric).filter(|number| first.marks[*number].times().is_some());
            match (ran.count(), loads) {
                (1, 1) => format!("for {noun}{}", values(metric)),
                (some, total) if some < total => {
                    let they = if is_one { "it" } else { "they" };
                    format!("for {noun} under the {some} loads that {they} ran")
                }
                (total, _) => format!("for {noun} under {}{}", every(total), values(metric)),
            }
        });
        list(&each.collect::<Vec<_>>())
    };
    let (open, decided): (Vec<&Metric>, Vec<&Metric>) =
        metrics(scenes).into_iter().partition(is_open);
    let who = named_or_counted(&names);
    if decided.is_empty() {
        let verb = if is_one {
            "is best, ties or is undecided"
        } else {
            "are best, tie or are undecided"
        };
        let what = for_all(&open, all_loads);
        return Some(format!("{who} {verb} {what}."));
    }
    let verb = if is_one {
        "is best or ties"
    } else {
        "are best or tie"
    };
    let what = for_all(&decided, all_loads);
    let nouns: Vec<String> = open.iter().map(|metric| metric.noun()).collect();
    let undecided = match nouns.as_slice() {
        [] => String::new(),
        nouns => format!("; {} is undecided", list(nouns)),
    };
    Some(format!("{who} {verb} {what}{undecided}."))
}

/// "both loads", "all 3 loads".
fn all_loads(loads: usize) -> String {
    match loads {
        2 => "both loads".to_owned(),
        _ => format!("all {loads} loads"),
    }
}

/// "Left clients unserved: thread (Few threads); fork and prefork (Others)."
pub(super) fn unserved(scenes: &[SceneResult<'_>], all: &[Marked<'_>]) -> Option<String> {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for one in all {
        let titles = scenes.iter().zip(&one.marks).filter_map(|(shown, mark)| {
            matches!(mark, Mark::Unserved).then_some(&*shown.scene.title)
        });
        let loads: Vec<&str> = titles.collect();
        match groups.iter_mut().find(|(known, _)| *known == loads) {
            Some((_, names)) => names.push(one.server),
            None if loads.is_empty() => {}
            None => groups.push((loads, vec![one.server])),
        }
    }
    let each = groups.iter().map(|(loads, names)| {
        let who = named_or_counted(names);
        if loads.len() == scenes.len() {
            format!("{who} (all loads)")
        } else {
            format!("{who} ({})", loads.join(", "))
        }
    });
    let texts: Vec<String> = each.collect();
    (!texts.is_empty()).then(|| format!("Left clients unserved: {}.", texts.join("; ")))
}

/// The metrics of the scenes, each once.
pub(super) fn metrics(scenes: &[SceneResult<'_>]) -> Vec<&'static Metric> {
    let mut all: Vec<&Metric> = Vec::new();
    for metric in scenes.iter().map(SceneResult::metric) {
        if all.iter().all(|known| known.name != metric.name) {
            all.push(metric);
        }
    }
    all
}

/// The number of clients, if all loads have the same.
pub(super) fn clients_of_all(scenes: &[SceneResult<'_>]) -> Option<u32> {
    let first = scenes.first()?.clients;
    let mut others = scenes.iter();
    others.all(|shown| shown.clients == first).then_some(first)
}

/// A row for each server: first the servers that ran under most loads, of these those whose worst load is the least bad.
/// If there are more loads than servers, a row for each load. The best servers, the `worst` and those that left clients
/// unserved are in the words above it.
pub(super) fn matrix(
    scenes: &[SceneResult<'_>],
    servers: &[String],
    all: &[Marked<'_>],
    worst: &[&str],
) -> Table {
    let left_out = all
        .iter()
        .filter(|one| one.has(|mark| matches!(mark, Mark::Unserved)));
    let of_words = best_of(all).into_iter().chain(left_out);
    let named: Vec<&str> = of_words
        .map(|one| one.server)
        .chain(worst.iter().copied())
        .collect();
    let mut ranked: Vec<&Marked<'_>> = all.iter().collect();
    ranked.sort_by(|one, other| {
        let by_loads = other.values().count().cmp(&one.values().count());
        by_loads.then(one.worst().total_cmp(&other.worst()))
    });
    let of_mark = |mark: &Mark<'_>| Cell::plain(mark.text()).toned(mark.tone());
    let value = |shown: &SceneResult<'_>| {
        let best_value = shown.places.first().map(|best| best.value);
        let text = or_absent(best_value, |best_value| shown.metric().text(best_value));
        Cell::plain(text).toned(Tone::Quiet)
    };
    let caption = "Every model under every load";
    let each_mark = || all.iter().flat_map(|one| &one.marks);
    let multiples = if each_mark().any(|mark| mark.is_multiple()) {
        "x: multiples of the best. "
    } else {
        ""
    };
    let key = format!("{multiples}{}", Mark::legend(each_mark()));
    if scenes.len() > ranked.len() {
        let of_servers = ranked.iter().map(|one| Column::number(one.server));
        let columns = std::iter::once(Column::text("Load")).chain(of_servers);
        let columns_with_best = columns.chain([Column::number(BEST_VALUE)]).collect();
        let row = |(number, shown): (usize, &SceneResult<'_>)| {
            let marks = ranked.iter().map(|one| of_mark(&one.marks[number]));
            Row::of(&*shown.scene.title, marks.chain([value(shown)]).collect())
        };
        let rows = scenes.iter().enumerate().map(row).collect();
        return Table {
            key,
            ..Table::of(caption, columns_with_best, rows)
        };
    }
    let mut columns = vec![Column::text("Model")];
    let is_of_one_size = clients_of_all(scenes).is_some();
    columns.extend(scenes.iter().map(|shown| Column {
        note: if is_of_one_size {
            String::new()
        } else {
            counted(shown.clients, "client")
        },
        ..Column::number(&shown.scene.title)
    }));
    let row = |one: &&Marked<'_>| {
        let place = palette::place(one.server, servers);
        let name = Text::default().then(one.server, Style::Server(place));
        Row {
            is_named: named.contains(&one.server),
            ..Row::of(name, one.marks.iter().map(of_mark).collect())
        }
    };
    let last = Row {
        is_named: true,
        ..Row::of(BEST_VALUE, scenes.iter().map(value).collect())
    };
    let rows = ranked.iter().map(row).chain([last]).collect();
    Table {
        key,
        ..Table::of(caption, columns, rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{LoadedStudy, fixture};

    #[test]
    fn the_best_are_never_worse_and_what_is_undecided_is_said() {
        let (study, parts) = fixture::scenes();
        let loaded = LoadedStudy { study, parts };
        let report = loaded.report().unwrap();
        let scenes = report.scenes();
        let place = scenes[0].places.last().unwrap();
        let (best, open) = (
            Mark::Best { is_tie: true },
            Mark::Open {
                place,
                is_first: false,
            },
        );
        let of = |all: &[(&'static str, [Mark<'_>; 2])]| {
            let marked = all.iter().map(|(server, marks)| Marked {
                server,
                marks: marks.to_vec(),
            });
            best_overall(&scenes, &marked.collect::<Vec<_>>()).unwrap()
        };
        let behind = Mark::Behind(place);
        assert_eq!(
            of(&[
                ("a", [best, best]),
                ("b", [best, open]),
                ("c", [best, behind])
            ]),
            "a is best or ties for CPU per request (6.02 µs) and for memory (2.48 MiB)."
        );
        assert_eq!(
            of(&[
                ("a", [best, open]),
                ("b", [best, open]),
                ("c", [best, behind])
            ]),
            "a and b are best or tie for CPU per request (6.02 µs); memory is undecided."
        );
        assert_eq!(
            of(&[("a", [best, best]), ("b", [Mark::Unserved, best])]),
            "a is best or ties for CPU per request (6.02 µs) and for memory (2.48 MiB)."
        );
        let at_most = times(place.times.value);
        assert_eq!(
            of(&[("a", [best, behind]), ("b", [Mark::NotRun, best])]),
            format!("a stays closest to the best: at most {at_most}.")
        );
    }
}
