//! The most important parts of a document, for a terminal. The page has everything.
//!
//! A narrow terminal drops columns in the order of [`super::Column::drop`], highest first. The best of a group is
//! marked `*`, so nothing depends on colour.

mod table;

pub use table::in_lines;

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::{Block, Document, Kind, List, Medium, Role, Section, Span, Text, Tone};
use throng_record::format::{cut, padded, printable};

const STRONG: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default();

/// Maximum width of text; only tables are wider.
const WIDEST_TEXT: usize = 100;

/// Words longer than this are cut.
const LONGEST_WORD: usize = 1000;

/// Lines reserved for the answer, even if a table gets no room.
const OF_ANSWER: usize = 6;

/// A table may be cut only if at least this many lines of it remain.
const FEWEST_OF_TABLE: usize = 5;

/// The width and colours of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    pub columns: usize,
    /// Number of rows; `None` to write everything.
    pub rows: Option<usize>,
    pub colour: bool,
}

/// The document as text of at most `width` columns, ending with a line break.
pub fn text(document: &Document, width: usize, colour: bool) -> String {
    within(
        document,
        Screen {
            columns: width,
            rows: None,
            colour,
        },
    )
}

/// The document as text: the question, the answer, and what it rests on. If there are few rows, tables and answer are
/// cut.
pub fn within(document: &Document, screen: Screen) -> String {
    let shown: Vec<&Section> = Section::shown(&document.sections, Medium::Terminal).collect();
    let (answers, mut others): (Vec<&Section>, Vec<&Section>) =
        shown.into_iter().partition(|one| one.kind == Kind::Answer);
    // Where there is not room for all, values matter more than their explanation.
    others.sort_by_key(|section| !has_table(section));
    let mut first = Writer::new(screen, None);
    if !document.question.is_empty() {
        first.wrap(&document.question.as_str().into(), STRONG);
    }
    let whole = answer(&answers, screen, true, None);
    let left = screen
        .rows
        .map(|rows| rows.saturating_sub(lines(&first.text) + 1));
    let most = left.map(|rows| {
        let of_first = whole.iter().position(|(_, is_table)| *is_table);
        let important = whole
            .len()
            .min(of_first.map_or(2, |table| table + 1).max(2));
        let kept = lines_of(&whole).min(OF_ANSWER.max(lines_of(&whole[..important])));
        rows.saturating_sub(kept)
    });
    let mut rest = Writer::new(screen, most);
    rest.sections(&others);
    let room = left.map_or(usize::MAX, |rows| rows.saturating_sub(lines(&rest.text)));
    let pieces = if lines_of(&whole) <= room {
        whole
    } else {
        answer(&answers, screen, false, Some(room))
    };
    let mut used = 0;
    for (place, (piece, _)) in pieces.iter().enumerate() {
        used += lines(piece);
        // The first two pieces always stay: the result, and how far it can be trusted.
        if used > room && place > 1 {
            break;
        }
        first.text += piece;
    }
    if !rest.text.is_empty() {
        first.gap();
    }
    first.text + &rest.text
}

fn has_table(section: &Section) -> bool {
    let blocks = Block::shown(&section.blocks, Medium::Terminal);
    blocks.iter().any(|block| matches!(block, Block::Table(_)))
        || section.sections.iter().any(has_table)
}

fn answer(sections: &[&Section], screen: Screen, whole: bool, room: Option<usize>) -> Vec<Piece> {
    let each = sections.iter();
    each.flat_map(|section| pieces(&section.blocks, screen, whole, room))
        .collect()
}

/// A part of the answer, and whether it is a table.
type Piece = (String, bool);

/// Each block and each list item as its own piece. If `whole`, items include the blocks that belong to them. A heading
/// is joined to the piece that follows it. Tables are cut to what the pieces before leave of the room.
fn pieces(blocks: &[Block], screen: Screen, whole: bool, room: Option<usize>) -> Vec<Piece> {
    let mut all = Vec::new();
    for block in Block::shown(blocks, Medium::Terminal) {
        match block {
            Block::List(list) => all.extend(list.items.iter().map(|(point, more)| {
                let more = if whole { more.clone() } else { Vec::new() };
                Block::List(List {
                    items: vec![(point.clone(), more)],
                    at_once: None,
                })
            })),
            block => all.push(block.clone()),
        }
    }
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut before, mut was_text) = (String::new(), true);
    for block in all {
        let is_text = !matches!(block, Block::List(_) | Block::Table(_));
        let is_heading = matches!(block, Block::Heading(_));
        let is_table = matches!(block, Block::Table(_));
        let parts = is_table && before.is_empty() && !pieces.is_empty();
        let used = lines_of(&pieces) + lines(&before) + usize::from(parts);
        let left = room.filter(|_| is_table);
        let mut writer = Writer::new(screen, left.map(|rows| rows.saturating_sub(used)));
        writer.blocks(&[block]);
        if !writer.text.is_empty() {
            let gap = if is_heading || parts || (is_text && !was_text) {
                "\n"
            } else {
                ""
            };
            before += &format!("{gap}{}", writer.text);
            was_text = is_text;
            if !is_heading {
                pieces.push((std::mem::take(&mut before), is_table));
            }
        }
    }
    pieces
}

fn lines_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|(piece, _)| lines(piece)).sum()
}

fn lines(text: &str) -> usize {
    text.matches('\n').count()
}

/// Blocks without a document, as text of at most `width` columns.
pub fn blocks(blocks: &[Block], width: usize) -> String {
    let screen = Screen {
        columns: width,
        rows: None,
        colour: true,
    };
    let mut writer = Writer::new(screen, None);
    writer.blocks(blocks);
    writer.text
}

struct Writer {
    text: String,
    width: usize,
    colour: bool,
    /// Maximum number of lines to write; `None` for no limit.
    most: Option<usize>,
    /// Columns left free at the start of a line.
    indent: usize,
    /// Position in the text at which the last heading ends.
    headed: usize,
}

impl Writer {
    fn new(screen: Screen, most: Option<usize>) -> Self {
        Self {
            text: String::new(),
            width: screen.columns,
            colour: screen.colour,
            most,
            indent: 0,
            headed: 0,
        }
    }

    /// Remaining lines.
    fn room(&self) -> usize {
        self.most
            .map_or(usize::MAX, |most| most.saturating_sub(lines(&self.text)))
    }

    fn sections(&mut self, sections: &[&Section]) {
        for section in sections {
            let before = self.text.len();
            self.heading(&section.title.as_str().into());
            let headed = self.text.len();
            self.blocks(&section.blocks);
            let inner: Vec<&Section> =
                Section::shown(&section.sections, Medium::Terminal).collect();
            self.sections(&inner);
            if self.text.len() == headed {
                self.text.truncate(before);
            }
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        let mut was_text = true;
        for block in Block::shown(blocks, Medium::Terminal) {
            // A heading alone is useless.
            let heads = matches!(block, Block::Heading(_));
            let least = match block {
                // Its rows, and two lines above them.
                Block::Table(table) => FEWEST_OF_TABLE.min(table.rows().count() + 2),
                _ => FEWEST_OF_TABLE,
            };
            if self.room() < least + 3 * usize::from(heads) {
                return;
            }
            let is_text = !matches!(block, Block::List(_) | Block::Table(_) | Block::Facts(_));
            if is_text && !was_text {
                self.gap();
            }
            was_text = is_text;
            match block {
                Block::Heading(title) => self.heading(title),
                Block::Paragraph(Role::Lead, text) => self.wrap(text, STRONG),
                Block::Paragraph(Role::Body, text) => self.wrap(text, Style::new()),
                Block::Paragraph(Role::Fine, text) => self.wrap(text, QUIET),
                Block::List(list) => {
                    for (point, inner) in &list.items {
                        self.indent += 2;
                        self.wrap(point, Style::new());
                        self.blocks(inner);
                        self.indent -= 2;
                    }
                }
                Block::Table(table) => self.table(table),
                Block::Warning(message, remedy) => {
                    self.wrap(&message.as_str().into(), BAD);
                    if !remedy.is_empty() {
                        self.wrap(&remedy.as_str().into(), QUIET);
                    }
                }
                Block::Code(lines) => lines
                    .lines()
                    .for_each(|line| self.line(&cut(&printable(line), LONGEST_WORD))),
                Block::Facts(facts) => {
                    let short = |text: &Text| cut(&printable(&text.words()), LONGEST_WORD);
                    let names = facts.iter().map(|(name, _)| short(name).chars().count());
                    let width = names.max().unwrap_or(0);
                    for (name, value) in facts {
                        let name = self.paint(QUIET, &padded(&short(name), width));
                        self.line(&format!("  {name}  {}", short(value)));
                    }
                }
                Block::Except(_, inner) => self.blocks(inner),
                Block::Paragraph(Role::Hint, _)
                | Block::Figures(_)
                | Block::Picture(_)
                | Block::Flame(_)
                | Block::Fold(..) => {}
            }
        }
    }

    fn heading(&mut self, title: &Text) {
        self.gap();
        self.wrap(title, STRONG);
        self.headed = self.text.len();
    }

    /// Writes an empty line, unless there is one already or a heading precedes.
    fn gap(&mut self) {
        self.text += &"\n".repeat(self.gaps());
    }

    /// The number of empty lines that [`Self::gap`] writes.
    fn gaps(&self) -> usize {
        let is_headed = self.headed == self.text.len();
        usize::from(!is_headed && !self.text.ends_with("\n\n"))
    }

    fn line(&mut self, line: &str) {
        let line = format!("{:1$}{line}", "", self.indent);
        let _ = writeln!(self.text, "{}", line.trim_end());
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && !style.is_plain() {
            format!("{}{text}{}", style.render(), style.render_reset())
        } else {
            text.to_owned()
        }
    }

    /// Writes text, broken into lines at spaces.
    fn wrap(&mut self, text: &Text, base: Style) {
        let room = self.width.clamp(20, WIDEST_TEXT) - self.indent;
        let mut line: Vec<(String, Style)> = Vec::new();
        let mut used = 0;
        for (word, style, is_new) in words(text, base) {
            let length = word.chars().count();
            if is_new && used > 0 && used + 1 + length > room {
                self.styled(&line);
                line.clear();
                used = 0;
            } else if is_new && used > 0 {
                line.push((" ".to_owned(), Style::new()));
                used += 1;
            }
            used += length;
            line.push((word, style));
        }
        self.styled(&line);
    }

    /// Writes a line of styled stretches; adjacent ones of the same style are painted together.
    fn styled(&mut self, line: &[(String, Style)]) {
        let mut painted = String::new();
        let mut rest = line;
        while let Some((_, style)) = rest.first() {
            let alike = |(text, other): &(String, Style)| other == style || text == " ";
            let mut length = rest.iter().take_while(|one| alike(one)).count();
            // A space at the end is not part of the stretch.
            if length > 1 && rest[length - 1].0 == " " {
                length -= 1;
            }
            let text: String = rest[..length]
                .iter()
                .map(|(text, _)| text.as_str())
                .collect();
            painted += &self.paint(*style, &text);
            rest = &rest[length..];
        }
        self.line(&painted);
    }
}

/// The words of a text, each with its style and whether there is a space before it.
fn words(text: &Text, base: Style) -> Vec<(String, Style, bool)> {
    let mut words: Vec<(String, Style, bool)> = Vec::new();
    for Span { text: shown, style } in &text.0 {
        let style = match style {
            super::Style::Strong => STRONG,
            super::Style::Tone(tone) => self::style(*tone),
            _ => base,
        };
        for (place, word) in printable(shown).split(' ').enumerate() {
            match words.last_mut() {
                // A line must not begin with the unit of a number.
                Some((before, ..)) if place > 0 && word.starts_with('%') => {
                    *before += &format!(" {word}");
                }
                _ if place > 0 || !word.is_empty() => {
                    words.push((cut(word, LONGEST_WORD), style, place > 0));
                }
                _ => {}
            }
        }
    }
    words
}

fn style(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Best | Tone::Good => GOOD,
        Tone::Worst | Tone::Bad => BAD,
        Tone::Quiet => QUIET,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::fixture::sample;

    #[test]
    fn every_block_in_a_terminal() {
        insta::assert_snapshot!(text(&sample("x & y"), 80, false));
    }

    #[test]
    fn colour_changes_nothing_but_colour() {
        let document = sample("x & y");
        let plain = anstream::adapter::strip_str(&text(&document, 40, true)).to_string();
        let trimmed = |text: &str| -> Vec<String> {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect()
        };
        assert_eq!(trimmed(&plain), trimmed(&text(&document, 40, false)));
    }

    #[test]
    fn names_of_any_length_are_cut() {
        let text = text(&sample(&"x".repeat(70_000)), 80, false);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest < Some(10 * LONGEST_WORD), "{longest:?}");
    }

    #[test]
    fn no_text_steers_the_terminal() {
        assert!(!text(&sample("\u{1b}[2Jx"), 80, false).contains('\u{1b}'));
    }
}
