//! A report as blocks, independent of the medium.
//!
//! The [`crate::sections`] make documents; [`html`], [`markdown`] and [`terminal`] write them. A writer knows how a
//! block looks, not what it means. Blocks hold unescaped text; writers escape it.

#[cfg(test)]
mod fixture;
pub mod html;
pub mod markdown;
pub mod terminal;

use crate::figures::Figure;
use crate::flame::FlameGraph;
use throng_record::Finding;

/// The medium of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// An HTML page.
    Html,
    /// A Markdown file next to the page.
    Markdown,
    /// Output of the program.
    Terminal,
}

/// A whole report.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// The kind of document, in a few words.
    pub tagline: &'static str,
    /// Short facts below the title.
    pub badges: Vec<Text>,
    /// Everything else, in order.
    pub sections: Vec<Section>,
    /// The version of throng that took the measurements.
    pub version: String,
}

/// A heading and the content below it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Section {
    /// Its anchor, unique within its document or part.
    pub id: String,
    /// Its heading.
    pub title: String,
    pub kind: Kind,
    pub blocks: Vec<Block>,
    /// The sections of a part; empty for other kinds.
    pub sections: Vec<Section>,
    /// The media that omit it.
    pub omit: &'static [Medium],
}

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Content under a heading.
    Plain,
    /// Content in a box. A terminal shows it without the heading.
    Answer,
    /// A part of a study, with sections of its own.
    Part,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading one level below that of the section.
    Heading(Text),
    Paragraph(Role, Text),
    /// Bullet points.
    List(List),
    Table(Table),
    /// A warning and its remedy, which may be empty.
    Warning(String, String),
    /// Plots. Not shown in a terminal.
    Figures(Figures),
    /// One plot within the text. Not shown in a terminal.
    Picture(Box<Figure>),
    /// Where CPU time goes. Shown on pages only.
    Flame(Box<FlameGraph>),
    /// Lines to read or run verbatim.
    Code(String),
    /// Details folded behind a summary. Not shown in a terminal.
    Fold(Text, Vec<Block>),
    /// Names and values.
    Facts(Vec<(Text, Text)>),
    /// Blocks that some media omit.
    Except(&'static [Medium], Vec<Block>),
}

/// The importance of a paragraph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The first thing to read.
    Lead,
    /// An ordinary paragraph.
    Body,
    /// A caveat about the rest.
    Fine,
    /// How to read what follows. Not shown in a terminal.
    Hint,
}

/// A bulleted list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// Each item with the blocks that belong to it.
    pub items: Vec<(Text, Vec<Block>)>,
    /// The number of items that a page shows before it folds the rest; `None` for all.
    pub at_once: Option<usize>,
}

/// A table: rows in groups under common columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// What the table contains.
    pub caption: String,
    /// The columns; the first holds the row names.
    pub columns: Vec<Column>,
    /// The rows.
    pub groups: Vec<Group>,
    /// The set among which [`Tone::Best`] cells are the best; empty if there are no such cells.
    pub best_of: &'static str,
    /// The meaning of its marks, for a terminal that has no room for all of the table.
    pub key: String,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// The meaning; empty if the heading says it all.
    pub note: String,
    /// Words rather than numbers.
    pub is_text: bool,
    /// A narrow terminal drops columns with the highest number first. Columns with 0 stay.
    pub drop: u8,
}

/// A column that is never shown in a terminal.
pub const NOT_IN_TERMINAL: u8 = u8::MAX;

/// Rows under one heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// The heading; may be empty.
    pub title: String,
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub name: Text,
    /// Anomalies of the row.
    pub flags: Vec<String>,
    /// Whether it is named in the words above the table. If there is no room for all rows, it stays.
    pub is_named: bool,
    /// Whether it must not be compared with the other rows.
    pub is_quiet: bool,
    /// One cell for each column except the first.
    pub cells: Vec<Cell>,
    /// Why there are no cells; empty if there are.
    pub why: String,
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Cell {
    pub text: String,
    /// Small print, which a terminal omits; may be empty.
    pub detail: String,
    /// How it compares with the other cells.
    pub tone: Tone,
    /// The length of its bar, from 0 to 1.
    pub bar: Option<f64>,
}

/// The meaning of a colour or mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing.
    #[default]
    Plain,
    /// The best of a set.
    Best,
    /// The worst of a set.
    Worst,
    /// A good verdict.
    Good,
    Bad,
    /// No verdict.
    Quiet,
}

/// Plots that share a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Each name, with its indices in the figures.
    pub key: Vec<(Vec<usize>, String)>,
    /// The plots.
    pub figures: Vec<Figure>,
}

/// A line of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Text(pub Vec<Span>);

/// A stretch of text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub text: String,
    /// Its style.
    pub style: Style,
}

/// The style of a stretch of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Style {
    /// Like the surrounding text.
    Plain,
    /// Bold.
    Strong,
    /// Something to type.
    Code,
    /// In the colour of a verdict.
    Tone(Tone),
    /// Preceded by the colour of the server with this index.
    Server(usize),
    /// A link to an anchor or a file.
    Link(String),
    /// A link to a page of `throng view`, encoded.
    Page(String),
}

impl Section {
    /// A section of these blocks; `None` if they are empty, or only say how to read something that is missing.
    pub fn of(id: &str, title: &str, mut blocks: Vec<Block>) -> Option<Self> {
        blocks.retain(|block| !block.is_empty());
        let is_hint = |block: &Block| matches!(block, Block::Paragraph(Role::Hint, _));
        (!blocks.iter().all(is_hint)).then(|| Self {
            id: id.to_owned(),
            title: title.to_owned(),
            kind: Kind::Plain,
            blocks,
            sections: Vec::new(),
            omit: &[],
        })
    }

    /// The same section, omitted by these media.
    pub fn except(self, omit: &'static [Medium]) -> Self {
        Self { omit, ..self }
    }

    /// Sections that a medium shows.
    fn shown(sections: &[Self], medium: Medium) -> impl Iterator<Item = &Self> {
        let shown = move |section: &&Self| !section.omit.contains(&medium);
        sections.iter().filter(shown)
    }
}

impl Block {
    pub fn paragraph(role: Role, text: impl Into<Text>) -> Self {
        Self::Paragraph(role, text.into())
    }

    /// A finding with its name.
    pub fn of_finding(finding: &Finding) -> Self {
        let text = format!("{}: {}", finding.kind.name, finding.text);
        Self::Warning(text, finding.remedy.clone())
    }

    /// A list with items of one line each.
    pub fn list(items: impl IntoIterator<Item = impl Into<Text>>) -> Self {
        Self::List(List {
            items: items
                .into_iter()
                .map(|item| (item.into(), Vec::new()))
                .collect(),
            at_once: None,
        })
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::List(list) => list.items.is_empty(),
            Self::Table(table) => table.rows().next().is_none(),
            Self::Figures(figures) => figures.figures.is_empty(),
            Self::Facts(facts) => facts.is_empty(),
            Self::Fold(_, blocks) | Self::Except(_, blocks) => blocks.iter().all(Self::is_empty),
            _ => false,
        }
    }

    /// The blocks that a medium shows.
    fn shown(blocks: &[Self], medium: Medium) -> Vec<&Self> {
        let mut shown = Vec::new();
        for block in blocks {
            match block {
                Self::Except(omit, _) if omit.contains(&medium) => {}
                block if block.is_empty() => {}
                Self::Except(_, inner) => shown.extend(Self::shown(inner, medium)),
                block => shown.push(block),
            }
        }
        shown
    }
}

impl Table {
    /// A table of rows without groups.
    pub fn of(caption: impl Into<String>, columns: Vec<Column>, rows: Vec<Row>) -> Self {
        Self::in_groups(caption, columns, [(String::new(), rows)])
    }

    /// A table of rows in groups with titles. Empty groups are left out.
    pub fn in_groups(
        caption: impl Into<String>,
        columns: Vec<Column>,
        groups: impl IntoIterator<Item = (String, Vec<Row>)>,
    ) -> Self {
        let made = groups
            .into_iter()
            .map(|(title, rows)| Group { title, rows });
        Self {
            caption: caption.into(),
            columns,
            groups: made.filter(|group| !group.rows.is_empty()).collect(),
            ..Self::default()
        }
    }

    /// The rows of all groups.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.groups.iter().flat_map(|group| &group.rows)
    }

    /// The set among which its marked cells are the best, if it has any.
    fn best(&self) -> Option<&'static str> {
        let marked = |row: &Row| row.cells.iter().any(|cell| cell.tone == Tone::Best);
        (!self.best_of.is_empty() && self.rows().any(marked)).then_some(self.best_of)
    }

    /// The columns whose headings need an explanation.
    fn notes(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.note.is_empty())
    }
}

impl Column {
    /// A column of numbers that is never dropped.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// A column of words that is never dropped.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            is_text: true,
            ..Self::number(title)
        }
    }

    /// The same column, dropped before columns with a smaller number.
    pub fn dropped(self, drop: u8) -> Self {
        Self { drop, ..self }
    }
}

impl Row {
    /// A row without anomalies.
    pub fn of(name: impl Into<Text>, cells: Vec<Cell>) -> Self {
        Self {
            name: name.into(),
            cells,
            ..Self::default()
        }
    }
}

impl Cell {
    /// A cell without anything special.
    pub fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// The same cell with small print.
    pub fn with(self, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    /// The same cell in another tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Text {
    /// The same text followed by `text` in this style.
    pub fn then(mut self, text: impl Into<String>, style: Style) -> Self {
        let whole = text.into();
        self.0.push(Span { text: whole, style });
        self
    }

    /// The same text followed by plain text.
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.then(text, Style::Plain)
    }

    /// The same text followed by bold text.
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.then(text, Style::Strong)
    }

    /// The same text followed by a verdict.
    pub fn toned(self, text: impl Into<String>, tone: Tone) -> Self {
        self.then(text, Style::Tone(tone))
    }

    /// The text without styles.
    pub fn words(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}

/// The target of a link as written to a file, encoded so that it can neither end the link nor lead elsewhere.
fn address(to: &str) -> String {
    let mut address = String::with_capacity(to.len());
    for byte in to.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b'#' => {
                address.push(byte.into());
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}
