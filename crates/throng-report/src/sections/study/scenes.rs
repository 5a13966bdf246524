//! A study in scenes: every server in every scene as a picture and a table, then the question, answer and picture of each
//! scene.

use super::marks::{self, Mark, Marked, clients_of_all, metrics};
use crate::comparison::ranking::{MARGIN_OF_TIES, Place, Standing};
use crate::comparison::size::times;
use crate::document::{Block, Kind, List, Medium, Role, Section, Style, Text, Tone};
use crate::grade::Level;
use crate::study::picture::{deciding_picture, picture};
use crate::study::scenes::{SceneResult, named_or_counted, widest};
use crate::study::{PartReport, StudyReport};
use std::fmt::Write as _;
use throng_record::LeftOut;
use throng_record::format::{capitalized, counted, list, lowered};
use throng_record::metrics::{Metric, Unit};

/// A table of more servers is too long to see at once what matters in it.
const MOST_SEEN: usize = 5;

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
    let marked = Marked::all(scenes, servers);
    let most_spread = widest(scenes).filter(|_| marked.len() > MOST_SEEN);
    let worst = most_spread.map_or_else(Vec::new, worst);
    let leads = report
        .scale_note()
        .into_iter()
        .chain(marks::best_overall(scenes, &marked))
        .chain(most_spread.and_then(|shown| headline(shown, &worst)))
        .chain(marks::unserved(scenes, &marked));
    let mut blocks: Vec<Block> = leads
        .map(|words| Block::paragraph(Role::Lead, words))
        .collect();
    blocks.extend(grade(report).map(|graded| Block::Paragraph(Role::Body, graded)));
    let each_mark = || marked.iter().flat_map(|one| &one.marks);
    let legend_words = format!(
        "{} {}",
        measured(scenes, each_mark()),
        Mark::legend(each_mark())
    );
    let legend = vec![Block::paragraph(Role::Fine, legend_words)];
    // A terminal is read from its end.
    blocks.push(Block::Except(&[Medium::Terminal], legend.clone()));
    let picture = deciding_picture(scenes, servers);
    let drawn = picture.map(|figure| Block::Picture(Box::new(figure)));
    blocks.extend(drawn);
    blocks.push(Block::Table(marks::matrix(
        scenes, servers, &marked, &worst,
    )));
    blocks.push(Block::Except(&[Medium::Html, Medium::Markdown], legend));
    let section = Section::of("answer", "Which model when", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// "CPU per request (All busy, Short-lived) and memory per client (Memory), as multiples of the best in each column.", or
/// what the only metric means.
fn measured<'m>(
    scenes: &[SceneResult<'_>],
    mut each_mark: impl Iterator<Item = &'m Mark<'m>>,
) -> String {
    let all_metrics = metrics(scenes);
    let titles = |metric: &Metric| -> String {
        let of_metric = scenes
            .iter()
            .filter(|shown| shown.metric().name == metric.name);
        let titles: Vec<&str> = of_metric.map(|shown| &*shown.scene.title).collect();
        titles.join(", ")
    };
    let multiples = if each_mark.any(|mark| mark.is_multiple()) {
        ", as multiples of the best (over pairs of trials)"
    } else {
        ""
    };
    let mut words = match all_metrics.as_slice() {
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

/// The server that is worst, and those that are about as bad.
fn worst<'a>(widest: &SceneResult<'a>) -> Vec<&'a str> {
    let most = widest.spread().map_or(f64::INFINITY, |(_, most)| most);
    widest.names(|place: &Place| {
        place.standing == Standing::Worse && place.times.value * (1.0 + MARGIN_OF_TIES) >= most
    })
}

/// "The choice matters most when many connections are idle: poll and select use 12x to 13x the CPU per request of the
/// best."
fn headline(widest: &SceneResult<'_>, last: &[&str]) -> Option<String> {
    let (_, most) = widest.spread()?;
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
        named_or_counted(last),
        metric.noun()
    ))
}

/// The worst grade of the parts, with its cause, in one line.
fn grade(report: &StudyReport<'_>) -> Option<Text> {
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
    let others = graded
        .iter()
        .filter(|(level, other, _)| *level == worst && other != title);
    let also: Vec<&str> = others.map(|(_, other, _)| *other).collect();
    let more = match also.as_slice() {
        [] => String::new(),
        names => format!("; also {}: {}", worst.text(), named_or_counted(names)),
    };
    let graded_text = text.toned(worst.text(), tone);
    Some(graded_text.plain(format!(" ({title}: {cause}{more}).")))
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
