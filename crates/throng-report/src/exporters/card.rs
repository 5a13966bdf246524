//! A picture of the answer to share: 1200 x 630 pixels, as SVG.

use std::io::Write;

use super::Exporter;
use crate::document::{Block, Document, Role, Section, Text};
use crate::figures::Figure;
use crate::grade::Level;
use crate::render::Card;
use crate::sections::{of_run, of_study};
use crate::study::StudyReport;
use throng_record::format::cut;
use throng_spec::registry::Info;

pub(super) const CARD: Exporter = Exporter {
    info: Info {
        name: "card",
        summary: "a picture of the answer to share, 1200 x 630, as SVG, on request",
    },
    file_name: None,
    render: |report, to| svg(&of_run(report), Some(report.grade.level), to),
    render_study: |report, to| svg(&of_study(report), worst(report), to),
};

/// The worst grade of its parts.
fn worst(study: &StudyReport<'_>) -> Option<Level> {
    let reports = study.parts.iter().filter_map(|part| part.report.as_ref());
    reports.map(|report| report.grade.level).max()
}

fn svg(document: &Document, grade: Option<Level>, to: &mut dyn Write) -> anyhow::Result<()> {
    Ok(to.write_all(card(document, grade).svg().as_bytes())?)
}

/// Facts about the run at the foot, and their most characters.
const BADGES: usize = 3;
const LONGEST_FOOT: usize = 95;

/// The first sentence and the first picture of a document.
fn card(document: &Document, grade: Option<Level>) -> Card<'_> {
    let all = || blocks(&[], &document.sections);
    let mut answers = all().filter_map(|block| match block {
        Block::Paragraph(Role::Lead, text) => Some(text.words()),
        _ => None,
    });
    let mut figures = all().filter_map(figure);
    let graded = grade.map(|level| format!("grade {}", level.text()));
    // The dialogue or the trials, the machine, the date.
    let count = document.badges.len();
    let badges = document.badges.iter().skip(count.saturating_sub(BADGES));
    let foot: Vec<String> = graded.into_iter().chain(badges.map(Text::words)).collect();
    Card {
        answer: answers.next().unwrap_or_else(|| document.question.clone()),
        figure: figures.next(),
        foot: cut(&foot.join(" · "), LONGEST_FOOT),
    }
}

/// These blocks and those of the sections, with the blocks in them.
fn blocks<'a>(
    own: &'a [Block],
    sections: &'a [Section],
) -> Box<dyn Iterator<Item = &'a Block> + 'a> {
    let inner = sections
        .iter()
        .flat_map(|section| blocks(&section.blocks, &section.sections));
    let flat = own.iter().flat_map(|block| match block {
        Block::Except(_, within) => blocks(within, &[]),
        _ => Box::new(std::iter::once(block)),
    });
    Box::new(flat.chain(inner))
}

fn figure(block: &Block) -> Option<&Figure> {
    match block {
        Block::Picture(figure) => Some(figure),
        Block::Figures(figures) => figures.figures.first(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Logs, Report, fixture};

    #[test]
    fn a_card_has_the_answer_the_grade_and_a_picture() {
        let (run, trials) = fixture::record();
        let report = Report::of(&run, &trials, &Logs::default()).unwrap();
        let document = of_run(&report);
        let made = card(&document, Some(report.grade.level));
        assert!(made.figure.is_some());
        let text = made.svg();
        assert_eq!(made.answer, report.answer.first);
        let first = made.answer.split_whitespace().next().unwrap();
        assert!(text.contains(first) && text.contains("grade "), "{text}");
    }
}
