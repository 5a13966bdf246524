//! A study in scenes: every server in every scene as a picture and a table, then the question, answer and picture of each
//! scene.

use crate::comparison::ranking::Standing;
use crate::comparison::size::times;
use crate::document::{
    Block, Cell, Column, Kind, List, Medium, Role, Row, Section, Style, Table, Text, Tone,
};
use crate::grade::Level;
use crate::palette;
use crate::study::picture::{deciding_picture, picture};
use crate::study::scenes::{FAR, SceneResult, named_or_counted, widest};
use crate::study::{PartReport, StudyReport};
use throng_record::LeftOut;
use throng_record::format::{ABSENT, capitalized, counted, list, lowered};

/// The parts whose grade is explained; of more, only their number is given.
const MOST_GRADED: usize = 1;

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
    let widest = widest(scenes);
    let words = report
        .scale_note()
        .into_iter()
        .chain(best_overall(scenes))
        .chain(widest.and_then(headline));
    let mut blocks: Vec<Block> = words
        .map(|words| Block::paragraph(Role::Lead, words))
        .collect();
    if let Some(rough) = rough(report) {
        blocks.push(Block::Paragraph(Role::Body, rough));
    }
    let drawn = deciding_picture(scenes, servers);
    blocks.extend(drawn.map(|figure| Block::Picture(Box::new(figure))));
    blocks.push(Block::Table(matrix(scenes, servers)));
    let mut legend = measured(scenes) + " Tie: no significant difference from the best.";
    let has = |standing: Standing| {
        let mut places = scenes.iter().flat_map(|shown| shown.places);
        places.any(|place| place.standing == standing)
    };
    if has(Standing::Unclear) {
        legend += " ?: too noisy to say.";
    }
    if has(Standing::Unknown) {
        legend += " A value: not ranked.";
    }
    blocks.push(Block::paragraph(Role::Fine, legend));
    let section = Section::of("answer", "Which model when", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "io-uring and reactors are best or tie for CPU per request under 3 of 4 loads.", by the first metric.
fn best_overall(scenes: &[SceneResult<'_>]) -> Option<String> {
    let metric = scenes.first()?.metric();
    let of_metric = scenes
        .iter()
        .filter(|shown| shown.metric().name == metric.name);
    let mut all: Vec<Vec<&str>> = of_metric.map(SceneResult::best).collect();
    let number = all.len();
    all.retain(|best| !best.is_empty());
    let count = |name: &&str| all.iter().filter(|best| best.contains(name)).count();
    let mut names: Vec<&str> = all.iter().flatten().copied().collect();
    let most = names.iter().map(count).max().filter(|most| *most > 1)?;
    names.retain(|name| count(name) == most);
    names.sort_unstable();
    names.dedup();
    let how_many = match (most, all.len()) {
        (most, every) if most == every => format!("all {every}"),
        (most, every) => format!("{most} of {every}"),
    };
    let loads = if all.len() < number {
        "ranked loads"
    } else {
        "loads"
    };
    let verb = match names.len() {
        1 => "is best or ties for",
        _ => "are best or tie for",
    };
    let who = named_or_counted(&names);
    Some(format!(
        "{who} {verb} {} under {how_many} {loads}.",
        metric.noun()
    ))
}

/// "CPU per request (All busy, Short-lived) and memory per client (Memory), as multiples of the best in each column."
fn measured(scenes: &[SceneResult<'_>]) -> String {
    let mut metrics: Vec<(String, Vec<&str>)> = Vec::new();
    for shown in scenes {
        let (noun, title) = (shown.metric().noun(), &shown.scene.title);
        match metrics.iter_mut().find(|(known, _)| *known == noun) {
            Some((_, titles)) => titles.push(title),
            None => metrics.push((noun, vec![title])),
        }
    }
    let several = metrics.len() > 1;
    let each = metrics.into_iter().map(|(noun, titles)| {
        if several {
            format!("{noun} ({})", titles.join(", "))
        } else {
            noun
        }
    });
    let all = list(&each.collect::<Vec<_>>());
    format!(
        "{}, as multiples of the best in each column.",
        capitalized(&all)
    )
}

/// "The choice matters most when many connections are idle: select uses 13x the CPU per request of epoll."
fn headline(widest: &SceneResult<'_>) -> Option<String> {
    let (last, ratio) = widest.spread()?;
    let best = &widest.places.first()?.server;
    let when = lowered(&widest.scene.when);
    Some(format!(
        "The choice matters most when {when}: {} uses {} the {} of {best}.",
        last.server,
        times(ratio),
        widest.metric().noun()
    ))
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
        let left = (graded.len() - MOST_GRADED) as u32;
        causes.push(format!("and {}", counted(left, "more part")));
    }
    let text = Text::default().plain("Grade: ").toned(worst.text(), tone);
    Some(text.plain(format!(" ({}).", causes.join("; "))))
}

/// A row for each server. Servers whose worst scene is the least bad come first.
fn matrix(scenes: &[SceneResult<'_>], servers: &[String]) -> Table {
    let mut ranked: Vec<(usize, f64, Row)> = Vec::new();
    for server in servers {
        let (mut absent, mut worst) = (0, 1.0_f64);
        let cells: Vec<Cell> = scenes
            .iter()
            .map(|shown| match shown.place_of(server) {
                None => {
                    absent += 1;
                    Cell::plain(ABSENT).toned(Tone::Quiet)
                }
                Some(place) => {
                    worst = worst.max(place.times.value);
                    let best = shown.best().len();
                    match place.standing {
                        Standing::Best if best > 1 => Cell::plain("tie").toned(Tone::Best),
                        Standing::Best => Cell::plain("best").toned(Tone::Best),
                        Standing::Unknown => {
                            Cell::plain(shown.metric().text(place.value)).toned(Tone::Quiet)
                        }
                        Standing::Unclear => {
                            let times = times(place.times.value);
                            Cell::plain(format!("{times}?")).toned(Tone::Quiet)
                        }
                        Standing::Worse if place.times.value >= FAR => {
                            Cell::plain(times(place.times.value)).toned(Tone::Bad)
                        }
                        Standing::Worse => Cell::plain(times(place.times.value)),
                    }
                }
            })
            .collect();
        if absent < scenes.len() {
            let name = Text::default().then(server, Style::Server(palette::place(server, servers)));
            ranked.push((absent, worst, Row::of(name, cells)));
        }
    }
    ranked.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let mut columns = vec![Column::text("Model")];
    let mut metrics = scenes.iter().map(|shown| shown.metric().name);
    let first = metrics.next();
    let is_one_metric = metrics.all(|name| Some(name) == first);
    columns.extend(scenes.iter().map(|shown| Column {
        note: if is_one_metric {
            counted(shown.clients, "client")
        } else {
            let clients = counted(shown.clients, "client");
            format!("{}, {clients}", shown.metric().noun())
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
