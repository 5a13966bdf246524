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

/// With more loads, the table is too wide to stand beside the picture.
const MOST_BESIDE: usize = 5;
/// A value that is worse than the best by less than this factor is written as the same.
const SAME: f64 = 1.005;
/// The parts whose grade is explained; of more, only their number is given.
const MOST_GRADED: usize = 1;

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

    fn text(self) -> String {
        match self {
            Self::Best { is_tie: true } => "tie".to_owned(),
            Self::Best { is_tie: false } => "best".to_owned(),
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
            Self::Open { .. } => (1, "?: too few trials, or too noisy."),
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
        .chain(best_overall(scenes, servers))
        .chain(most_spread.and_then(headline))
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
    let table = Block::Table(matrix(scenes, servers, &all_marked));
    if scenes.len() > MOST_BESIDE {
        blocks.extend([Some(table), drawn].into_iter().flatten());
    } else {
        blocks.extend([drawn, Some(table)].into_iter().flatten());
    }
    blocks.push(Block::Except(&[Medium::Html, Medium::Markdown], legend));
    let section = Section::of("answer", "Which model when", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "io-uring and reactors are best or tie for CPU per request under all 4 loads.", or the server that is never far from
/// the best; by the first metric.
fn best_overall(scenes: &[SceneResult<'_>], servers: &[String]) -> Option<String> {
    let metric = scenes.first()?.metric();
    let loads: Vec<&SceneResult<'_>> = scenes
        .iter()
        .filter(|shown| shown.metric().name == metric.name)
        .collect();
    let of_server = |server: &String| -> Vec<&Place> {
        let places = loads.iter().filter_map(|shown| shown.place_of(server));
        places
            .filter(|place| place.standing != Standing::Unknown)
            .collect()
    };
    let mut ranked: Vec<Vec<&Place>> = servers.iter().map(of_server).collect();
    let most = ranked.iter().map(Vec::len).max().filter(|most| *most > 1)?;
    ranked.retain(|places| places.len() == most);
    let under = match most {
        all if all == loads.len() => format!("under all {all} loads"),
        some => format!("under {some} of {} loads", loads.len()),
    };
    let noun = metric.noun();
    let is_best = |places: &&Vec<&Place>| {
        let mut each = places.iter();
        each.all(|place| place.standing == Standing::Best)
    };
    let best: Vec<&str> = ranked
        .iter()
        .filter(is_best)
        .map(|places| places[0].server.as_str())
        .collect();
    let verb = match best.len() {
        0 => {
            let worst = |places: &Vec<&Place>| {
                let each = places.iter().map(|place| place.times.value);
                each.fold(1.0, f64::max)
            };
            let closest = ranked
                .iter()
                .min_by(|one, other| worst(one).total_cmp(&worst(other)))?;
            let (name, at_most) = (&closest[0].server, times(worst(closest)));
            return Some(format!(
                "{name} stays closest to the best {noun} {under}: at most {at_most}."
            ));
        }
        1 => "is best or ties for",
        _ => "are best or tie for",
    };
    let who = named_or_counted(&best);
    Some(format!("{who} {verb} {noun} {under}."))
}

/// "CPU per request (All busy, Short-lived) and memory per client (Memory), as multiples of the best in each column.", or
/// what the only metric means.
fn measured<'m>(
    scenes: &[SceneResult<'_>],
    mut marks: impl Iterator<Item = &'m Mark<'m>>,
) -> String {
    let mut metrics: Vec<(&Metric, Vec<&str>)> = Vec::new();
    for shown in scenes {
        let (metric, title) = (shown.metric(), &shown.scene.title);
        match metrics
            .iter_mut()
            .find(|(known, _)| known.name == metric.name)
        {
            Some((_, titles)) => titles.push(title),
            None => metrics.push((metric, vec![title])),
        }
    }
    let is_multiple = |mark: &Mark<'_>| matches!(mark, Mark::Behind(_) | Mark::Open { .. });
    let multiples = if marks.any(is_multiple) {
        ", as multiples of the best in each column"
    } else {
        ""
    };
    let mut words = match metrics.as_slice() {
        // An index means nothing without its definition.
        [(metric, _)] if metric.unit == Unit::Index => {
            format!("{}{multiples}: {}.", metric.noun(), metric.help)
        }
        [(metric, _)] => format!("{}{multiples}.", metric.noun()),
        several => {
            let each = several
                .iter()
                .map(|(metric, titles)| format!("{} ({})", metric.noun(), titles.join(", ")));
            format!("{}{multiples}.", list(&each.collect::<Vec<_>>()))
        }
    };
    if let Some(clients) = clients_of_all(scenes) {
        write!(words, " {} under each load.", counted(clients, "client")).expect("it is a string");
    }
    let of_one_trial = scenes.iter().filter(|shown| shown.is_one_trial);
    let once: Vec<&str> = of_one_trial.map(|shown| &*shown.scene.title).collect();
    if !once.is_empty() {
        let (titles, margin) = (once.join(", "), 100.0 * MARGIN_OF_TIES);
        write!(
            words,
            " Measured once, so values within {margin:.0} % tie: {titles}."
        )
        .expect("it is a string");
    }
    capitalized(&words)
}

/// "The choice matters most when many connections are idle: select uses 13x the CPU per request of epoll."
fn headline(widest: &SceneResult<'_>) -> Option<String> {
    let (last, ratio) = widest.spread()?;
    let best = &widest.places.first()?.server;
    let when = lowered(&widest.scene.when);
    let metric = widest.metric();
    let verb = if metric.is_cpu() { "uses" } else { "has" };
    Some(format!(
        "The choice matters most when {when}: {} {verb} {} the {} of {best}.",
        last.server,
        times(ratio),
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
    let each = groups
        .iter()
        .map(|(loads, names)| format!("{} ({})", named_or_counted(names), loads.join(", ")));
    let all: Vec<String> = each.collect();
    (!all.is_empty()).then(|| format!("Left clients unserved: {}.", all.join("; ")))
}

/// The worst grade of the parts, with its cause, in one line.
fn rough(report: &StudyReport<'_>) -> Option<Text> {
    let graded: Vec<(Level, String)> = report
        .parts
        .iter()
        .filter_map(|part| {
            let grade = &part.report.as_ref()?.grade;
            let cause = grade.cause().filter(|_| grade.level != Level::Good)?;
            Some((grade.level, format!("{}: {cause}", part.record.title)))
        })
        .collect();
    let worst = graded.iter().map(|(level, _)| *level).max()?;
    let tone = match worst {
        Level::Unusable => Tone::Bad,
        _ => Tone::Quiet,
    };
    let named = graded.iter().take(MOST_GRADED);
    let mut causes: Vec<String> = named.map(|(_, cause)| cause.clone()).collect();
    if graded.len() > MOST_GRADED {
        causes.push(match graded.len() - MOST_GRADED {
            1 => "1 other part has findings too".to_owned(),
            others => format!("{others} other parts have findings too"),
        });
    }
    let text = Text::default().plain("Grade: ").toned(worst.text(), tone);
    Some(text.plain(format!(" ({}).", causes.join("; "))))
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
fn matrix(
    scenes: &[SceneResult<'_>],
    servers: &[String],
    marked: &[(&String, Vec<Mark<'_>>)],
) -> Table {
    let mut ranked: Vec<(usize, f64, Row)> = Vec::new();
    for (server, marks) in marked {
        let places = || scenes.iter().filter_map(|shown| shown.place_of(server));
        let absent = scenes.len() - places().count();
        let worst = places().map(|place| place.times.value).fold(1.0, f64::max);
        let name = Text::default().then(*server, Style::Server(palette::place(server, servers)));
        let cells = marks
            .iter()
            .map(|mark| Cell::plain(mark.text()).toned(mark.tone()));
        ranked.push((absent, worst, Row::of(name, cells.collect())));
    }
    ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let is_of_one_size = clients_of_all(scenes).is_some();
    let mut columns = vec![Column::text("Model")];
    columns.extend(scenes.iter().map(|shown| Column {
        note: if is_of_one_size {
            String::new()
        } else {
            counted(shown.clients, "client")
        },
        ..Column::number(&shown.scene.title)
    }));
    let rows = ranked.into_iter().map(|(.., row)| row).collect();
    Table::of("Every model under every load", columns, rows)
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
