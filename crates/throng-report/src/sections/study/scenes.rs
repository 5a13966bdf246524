//! A study in scenes: every server in every scene as a picture and a table, then the question, answer and picture of each
//! scene.

use crate::comparison::ranking::{MARGIN_OF_TIES, Place, Standing};
use crate::comparison::size::times;
use crate::document::{
    Block, Cell, Column, Kind, List, Medium, Role, Row, Section, Style, Table, Text, Tone,
};
use crate::grade::Level;
use crate::palette;
use crate::study::picture::{deciding_picture, picture};
use crate::study::scenes::{FAR, SceneResult, named_or_counted, widest};
use crate::study::{PartReport, StudyReport};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use throng_record::LeftOut;
use throng_record::format::{ABSENT, capitalized, counted, list, lowered};
use throng_record::metrics::{Metric, Unit};

/// A table of more servers is too long to see at once what matters in it.
const MOST_SEEN: usize = 5;
const BEST_VALUE: &str = "Best value";
/// A value that is worse than the best by less than this factor is written as the same.
const SAME: f64 = 1.005;

/// What a cell of the table shows: a server under a load.
#[derive(Clone, Copy)]
enum Mark<'a> {
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
    fn legend<'m>(marks: impl Iterator<Item = &'m Self>) -> String
    where
        Self: 'm,
    {
        let found = marks.filter_map(|mark| mark.meaning());
        let meanings: BTreeMap<u8, &str> = found.collect();
        meanings.into_values().collect::<Vec<_>>().join(" ")
    }
}

/// The sections of a study that has scenes.
pub(super) fn sections(report: &StudyReport<'_>) -> Vec<Section> {
    let (scenes, servers) = (report.scenes(), &report.servers);
    let mut all: Vec<Section> = answer(report, &scenes, servers).into_iter().collect();
    let numbered = scenes.iter().enumerate();
    all.extend(numbered.filter_map(|(number, shown)| scene(shown, number, servers)));
    all.extend(parts(report));
    all
}

/// The first screen.
fn answer(
    report: &StudyReport<'_>,
    scenes: &[SceneResult<'_>],
    servers: &[String],
) -> Option<Section> {
    let most_spread = widest(scenes);
    let all_marked = marked(scenes, servers);
    let leads = report
        .scale_note()
        .into_iter()
        .chain(best_overall(scenes, &all_marked))
        .chain(
            most_spread
                .filter(|_| all_marked.len() > MOST_SEEN)
                .and_then(headline),
        )
        .chain(unserved(scenes, &all_marked));
    let mut blocks: Vec<Block> = leads
        .map(|words| Block::paragraph(Role::Lead, words))
        .collect();
    if let Some(rough) = rough(report) {
        blocks.push(Block::Paragraph(Role::Body, rough));
    }
    let marks = || all_marked.iter().flat_map(|(_, marks)| marks);
    let legend_words = format!("{} {}", measured(scenes, marks()), Mark::legend(marks()));
    let legend = vec![Block::paragraph(Role::Fine, legend_words)];
    // A terminal is read from its end.
    blocks.push(Block::Except(&[Medium::Terminal], legend.clone()));
    let picture = deciding_picture(scenes, servers);
    let drawn = picture.map(|figure| Block::Picture(Box::new(figure)));
    blocks.extend(drawn);
    blocks.push(Block::Table(matrix(scenes, servers, &all_marked)));
    blocks.push(Block::Except(&[Medium::Html, Medium::Markdown], legend));
    let section = Section::of("answer", "Which model when", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "io-uring and reactors are best or tie for CPU per request under all 3 loads and for memory.": the servers that are
/// never worse than another, or the one that is never far from the best.
fn best_overall(scenes: &[SceneResult<'_>], marked: &[(&String, Vec<Mark<'_>>)]) -> Option<String> {
    let ran = |marks: &[Mark<'_>]| marks.iter().filter(|mark| mark.times().is_some()).count();
    let of_each = marked.iter().map(|(_, marks)| ran(marks));
    let most = of_each.max().filter(|most| *most > 1)?;
    let in_most = marked.iter().filter(|(_, marks)| ran(marks) == most);
    let all: Vec<&(&String, Vec<Mark<'_>>)> = in_most.collect();
    let is_never_worse = |(_, marks): &&&(&String, Vec<Mark<'_>>)| {
        let has_best = marks.iter().any(|mark| matches!(mark, Mark::Best { .. }));
        has_best && !marks.iter().any(|mark| mark.is_worse())
    };
    let best: Vec<&(&String, Vec<Mark<'_>>)> = all.iter().filter(is_never_worse).copied().collect();
    let Some((_, first)) = best.first() else {
        return closest(&all);
    };
    let names: Vec<&str> = best.iter().map(|(name, _)| name.as_str()).collect();
    let of = |metric: &Metric| {
        let name = metric.name;
        let scenes_and_places = scenes.iter().enumerate();
        scenes_and_places.filter(move |(_, shown)| shown.metric().name == name)
    };
    let is_open = |metric: &&Metric| {
        of(metric).any(|(place, _)| {
            let mut marks = best.iter().map(|(_, marks)| &marks[place]);
            marks.any(|mark| matches!(mark, Mark::Open { .. }))
        })
    };
    let under = |metric: &Metric| {
        let loads = of(metric).count();
        let has_value = |(place, _): &(usize, _)| first[*place].times().is_some();
        match (of(metric).filter(has_value).count(), loads) {
            (1, 1) => String::new(),
            (some, total) if some < total => format!(
                " under the {some} loads that {} ran",
                if names.len() == 1 { "it" } else { "they" }
            ),
            (every, _) => format!(" under all {every} loads"),
        }
    };
    let for_each = |metrics: &[&'static Metric]| {
        let each = metrics
            .iter()
            .map(|metric| format!("for {}{}", metric.noun(), under(metric)));
        list(&each.collect::<Vec<_>>())
    };
    let (open, decided): (Vec<&Metric>, Vec<&Metric>) =
        metrics(scenes).into_iter().partition(is_open);
    let who = named_or_counted(&names);
    let is_one = names.len() == 1;
    if decided.is_empty() {
        return Some(format!(
            "No model is shown to beat {who} {}.",
            for_each(&open)
        ));
    }
    let verb = if is_one {
        "is best or ties"
    } else {
        "are best or tie"
    };
    let nouns: Vec<String> = open.iter().map(|metric| metric.noun()).collect();
    let undecided = if nouns.is_empty() {
        String::new()
    } else {
        format!("; {} is undecided", list(&nouns))
    };
    Some(format!("{who} {verb} {}{undecided}.", for_each(&decided)))
}

/// "epoll is never far from the best: at most 1.08x.", of servers that served every client.
fn closest(all: &[&(&String, Vec<Mark<'_>>)]) -> Option<String> {
    let worst = |(_, marks): &(&String, Vec<Mark<'_>>)| {
        let each = marks.iter().filter_map(|mark| mark.times());
        each.fold(1.0, f64::max)
    };
    let has_served = |(_, marks): &&&(&String, Vec<Mark<'_>>)| {
        let mut each = marks.iter();
        !each.any(|mark| matches!(mark, Mark::Unserved | Mark::Odd))
    };
    let served = all.iter().filter(has_served);
    let nearest = served.min_by(|one, other| worst(one).total_cmp(&worst(other)))?;
    let (name, at_most) = (nearest.0, times(worst(nearest)));
    Some(format!(
        "{name} is never far from the best: at most {at_most}."
    ))
}

/// The metrics of the scenes, each once.
fn metrics(scenes: &[SceneResult<'_>]) -> Vec<&'static Metric> {
    let mut all: Vec<&Metric> = Vec::new();
    for metric in scenes.iter().map(SceneResult::metric) {
        if all.iter().all(|known| known.name != metric.name) {
            all.push(metric);
        }
    }
    all
}

/// "CPU per request (All busy, Short-lived) and memory per client (Memory), as multiples of the best in each column.", or
/// what the only metric means.
fn measured<'m>(
    scenes: &[SceneResult<'_>],
    mut marks: impl Iterator<Item = &'m Mark<'m>>,
) -> String {
    let metrics = metrics(scenes);
    let titles = |metric: &Metric| -> String {
        let of_metric = scenes
            .iter()
            .filter(|shown| shown.metric().name == metric.name);
        let titles: Vec<&str> = of_metric.map(|shown| &*shown.scene.title).collect();
        titles.join(", ")
    };
    let is_multiple = |mark: &Mark<'_>| matches!(mark, Mark::Behind(_) | Mark::Open { .. });
    let multiples = if marks.any(is_multiple) {
        ", as multiples of the best (over pairs of trials)"
    } else {
        ""
    };
    let mut words = match metrics.as_slice() {
        // An index means nothing without its definition.
        [metric] if metric.unit == Unit::Index => {
            format!("{}{multiples}: {}.", metric.noun(), metric.help)
        }
        [metric] => format!("{}{multiples}.", metric.noun()),
        several => {
            let each = several.iter().map(|metric| {
                if several.len() == scenes.len() {
                    metric.noun()
                } else {
                    format!("{} ({})", metric.noun(), titles(metric))
                }
            });
            format!("{}{multiples}.", list(&each.collect::<Vec<_>>()))
        }
    };
    if let Some(clients) = clients_of_all(scenes) {
        write!(words, " {} under each load.", counted(clients, "client")).expect("it is a string");
    }
    let of_one_trial = scenes.iter().filter(|shown| shown.is_one_trial);
    let once: Vec<&str> = of_one_trial.map(|shown| &*shown.scene.title).collect();
    if !once.is_empty() {
        let (named, margin) = (once.join(", "), 100.0 * MARGIN_OF_TIES);
        write!(
            words,
            " {named}: measured once, so values within {margin:.0} % tie."
        )
        .expect("it is a string");
    }
    capitalized(&words)
}

/// "The choice matters most when many connections are idle: poll and select use 12x to 13x the CPU per request of the
/// best.", with all servers that are about as bad.
fn headline(widest: &SceneResult<'_>) -> Option<String> {
    let (_, most) = widest.spread()?;
    let is_last = |place: &Place| {
        place.standing == Standing::Worse && place.times.value * (1.0 + MARGIN_OF_TIES) >= most
    };
    let last = widest.names(is_last);
    let nearest = widest.place_of(last.first()?)?.times.value;
    let (from, to) = (times(nearest), times(most));
    let size = if from == to {
        to
    } else {
        format!("{from} to {to}")
    };
    let metric = widest.metric();
    let verb = match (metric.is_cpu(), last.len()) {
        (true, 1) => "uses",
        (true, _) => "use",
        (false, 1) => "has",
        (false, _) => "have",
    };
    Some(format!(
        "The choice matters most when {}: {} {verb} {size} the {} of the best.",
        lowered(&widest.scene.when),
        named_or_counted(&last),
        metric.noun()
    ))
}

/// "Left clients unserved: thread (Few threads); fork and prefork (Others)."
fn unserved(scenes: &[SceneResult<'_>], marked: &[(&String, Vec<Mark<'_>>)]) -> Option<String> {
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for (server, marks) in marked {
        let titles = scenes.iter().zip(marks).filter_map(|(shown, mark)| {
            matches!(mark, Mark::Unserved).then_some(&*shown.scene.title)
        });
        let loads: Vec<&str> = titles.collect();
        match groups.iter_mut().find(|(known, _)| *known == loads) {
            Some((_, names)) => names.push(server),
            None if loads.is_empty() => {}
            None => groups.push((loads, vec![server])),
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
    let all: Vec<String> = each.collect();
    (!all.is_empty()).then(|| format!("Left clients unserved: {}.", all.join("; ")))
}

/// The worst grade of the parts, with its cause, in one line.
fn rough(report: &StudyReport<'_>) -> Option<Text> {
    let with_scenes = report
        .parts
        .iter()
        .filter(|part| part.report.is_some() && !part.record.scenes.is_empty());
    with_scenes.clone().next()?;
    let graded: Vec<(Level, &str, &str)> = with_scenes
        .filter_map(|part| {
            let grade = &part.report.as_ref()?.grade;
            let cause = grade.cause().filter(|_| grade.level != Level::Good)?;
            let title = match part.record.scenes.as_slice() {
                [only] => &only.title,
                _ => &part.record.title,
            };
            Some((grade.level, title.as_str(), cause))
        })
        .collect();
    let text = Text::default().plain("Grade: ");
    let Some(worst) = graded.iter().map(|(level, ..)| *level).max() else {
        let good = Level::Good;
        return Some(text.toned(good.text(), Tone::Good).plain("."));
    };
    let tone = match worst {
        Level::Unusable => Tone::Bad,
        _ => Tone::Quiet,
    };
    let (_, title, cause) = graded.iter().find(|(level, ..)| *level == worst)?;
    let others = graded.iter().filter(|(_, other, _)| other != title);
    let also: Vec<&str> = others.map(|(_, other, _)| *other).collect();
    let more = match also.as_slice() {
        [] => String::new(),
        names => format!("; also {}: {}", worst.text(), named_or_counted(names)),
    };
    let graded_text = text.toned(worst.text(), tone);
    Some(graded_text.plain(format!(" ({title}: {cause}{more}).")))
}

/// The number of clients, if all loads have the same.
fn clients_of_all(scenes: &[SceneResult<'_>]) -> Option<u32> {
    let first = scenes.first()?.clients;
    let mut others = scenes.iter();
    others.all(|shown| shown.clients == first).then_some(first)
}

/// Each server that ran under any of the loads, with its mark under each.
fn marked<'a>(
    scenes: &[SceneResult<'a>],
    servers: &'a [String],
) -> Vec<(&'a String, Vec<Mark<'a>>)> {
    let ran = |server: &&String| scenes.iter().any(|shown| shown.row_of(server).is_some());
    let marks = |server: &'a String| {
        let each = scenes.iter().map(|shown| Mark::of(shown, server));
        (server, each.collect())
    };
    servers.iter().filter(ran).map(marks).collect()
}

/// A row for each server: first the servers that ran under most loads, of these those whose worst load is the least bad.
/// If there are more loads than servers, a row for each load.
fn matrix(
    scenes: &[SceneResult<'_>],
    servers: &[String],
    marked: &[(&String, Vec<Mark<'_>>)],
) -> Table {
    let mut ranked: Vec<(usize, f64, &String, &Vec<Mark<'_>>)> = Vec::new();
    for (server, marks) in marked {
        let places = || scenes.iter().filter_map(|shown| shown.place_of(server));
        let absent = scenes.len() - places().count();
        let worst = places().map(|place| place.times.value).fold(1.0, f64::max);
        ranked.push((absent, worst, server, marks));
    }
    ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let of_mark = |mark: &Mark<'_>| Cell::plain(mark.text()).toned(mark.tone());
    let best = |shown: &SceneResult<'_>| {
        let value = shown.places.first().map(|best| best.value);
        let text = value.map_or_else(|| ABSENT.to_owned(), |value| shown.metric().text(value));
        Cell::plain(text).toned(Tone::Quiet)
    };
    let caption = "Every model under every load";
    if scenes.len() > ranked.len() {
        let names = ranked
            .iter()
            .map(|(_, _, server, _)| Column::number(*server));
        let columns = std::iter::once(Column::text("Load")).chain(names);
        let all = columns.chain([Column::number(BEST_VALUE)]).collect();
        let row = |(number, shown): (usize, &SceneResult<'_>)| {
            let marks = ranked.iter().map(|(.., marks)| of_mark(&marks[number]));
            Row::of(&*shown.scene.title, marks.chain([best(shown)]).collect())
        };
        let rows = scenes.iter().enumerate().map(row).collect();
        return Table::of(caption, all, rows);
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
    let row = |(_, _, server, marks): &(usize, f64, &String, &Vec<Mark<'_>>)| {
        let name = Text::default().then(*server, Style::Server(palette::place(server, servers)));
        Row::of(name, marks.iter().map(of_mark).collect())
    };
    let last = Row::of(BEST_VALUE, scenes.iter().map(best).collect());
    let rows = ranked.iter().map(row).chain([last]).collect();
    Table::of(caption, columns, rows)
}

fn scene(shown: &SceneResult<'_>, number: usize, servers: &[String]) -> Option<Section> {
    let mut blocks = vec![
        Block::paragraph(Role::Hint, &shown.scene.question),
        Block::Paragraph(Role::Body, Text::default().strong(&shown.sentence)),
    ];
    let figure = picture(shown, number, servers);
    blocks.extend(figure.map(|figure| Block::Picture(Box::new(figure))));
    let left_out: Vec<String> = shown
        .part
        .record
        .left_out
        .iter()
        .map(LeftOut::words)
        .collect();
    if !left_out.is_empty() {
        let words = left_out.join("; ") + ".";
        blocks.push(Block::paragraph(Role::Fine, capitalized(&words)));
    }
    // In a terminal, the answer has all of it.
    let section = Section::of(&shown.scene.name, &shown.scene.title, blocks)?;
    Some(section.except(&[Medium::Terminal]))
}

/// The title, servers and loads of each part, and a link to its full report.
fn parts(report: &StudyReport<'_>) -> Option<Section> {
    let of_part = |part: &PartReport<'_>| -> (Text, Vec<Block>) {
        let record = part.record;
        let page = Style::Link(format!("{}/report.html", record.name));
        let title = match &part.report {
            Some(_) => Text::default().then(&record.title, page),
            None => record.title.as_str().into(),
        };
        let why = match (&record.skipped, &part.report) {
            (Some(why), _) => format!(": not run on this machine: {why}."),
            (None, None) => ": not run yet.".to_owned(),
            (None, Some(of_part)) => {
                let named = counted(of_part.run.servers.len() as u32, "server");
                let loads: Vec<String> = of_part
                    .summary
                    .clients
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                format!(
                    ": {named}, {} clients; figures, tables and settings.",
                    list(&loads)
                )
            }
        };
        let mut blocks = Vec::new();
        if !record.scaled.is_empty() {
            let scaled = format!("Changed settings: {}.", record.scaled_in_words());
            blocks.push(Block::paragraph(Role::Fine, scaled));
        }
        (title.plain(why), blocks)
    };
    let items = report.parts.iter().map(of_part).collect();
    let list = Block::List(List {
        items,
        at_once: None,
    });
    let mut blocks: Vec<Block> = super::claims::summary(report).into_iter().collect();
    blocks.push(list);
    Some(Section::of("parts", "All measurements", blocks)?.except(&[Medium::Terminal]))
}

#[cfg(test)]
mod tests {
    use crate::document::{html, markdown, terminal};
    use crate::sections::of_study;
    use crate::study::{LoadedStudy, fixture};

    #[test]
    fn a_study_in_scenes() {
        let (study, parts) = fixture::scenes();
        let loaded = LoadedStudy { study, parts };
        let report = loaded.report().unwrap();
        let document = of_study(&report);
        insta::assert_snapshot!(markdown::text(&document));
        insta::assert_snapshot!(terminal::text(&document, 100, false));
        let page = html::page(&document);
        let (picture, table) = (
            page.find("<figure"),
            page.find("Every model under every load"),
        );
        assert!(picture < table, "the picture comes first");
    }

    #[test]
    fn an_unusable_part_ranks_nobody() {
        let (study, mut parts) = fixture::scenes();
        for part in parts.iter_mut().flatten() {
            for trial in &mut part.trials {
                let network = trial.network.get_or_insert_default();
                let busy = ("machine_busy_percent".to_owned(), 350.0);
                network.metrics.extend([busy]);
            }
            crate::fixture::examine(&part.run, &mut part.trials);
        }
        let loaded = LoadedStudy { study, parts };
        let report = loaded.report().unwrap();
        let text = markdown::text(&of_study(&report));
        assert!(
            text.contains("not ranked (") && !text.contains(" tie for "),
            "{text}"
        );
    }
}
