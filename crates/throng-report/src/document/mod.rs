//! A report as blocks, independent of the medium.
//!
//! The [`crate::sections`] make documents; [`html`], [`markdown`] and [`terminal`] write them. A writer knows the
//! appearance of a block, not its meaning. Blocks hold unescaped text; writers escape it.

#[cfg(test)]
mod fixture;
pub mod html;
pub mod markdown;
pub mod terminal;

use crate::figures::Figure;

/// The medium of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Medium {
    /// A page.
    Html,
    /// A file next to it.
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
    /// Servers, each with a colour of its own.
    pub colours: usize,
    /// Everything else, in order.
    pub sections: Vec<Section>,
    /// The version of throng that measured.
    pub version: String,
}

/// A heading with what follows it.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Section {
    /// Its anchor, unique in its document or part.
    pub id: String,
    /// Its heading.
    pub title: String,
    pub kind: Kind,
    pub blocks: Vec<Block>,
    /// Of a part: its own sections.
    pub sections: Vec<Section>,
    /// The media that leave it out.
    pub omit: &'static [Medium],
}

/// The kind of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Under its heading.
    Plain,
    /// In a box. A terminal shows it without the heading.
    Answer,
    /// A part of a study, with sections of its own.
    Part,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading below the section's.
    Heading(Text),
    Paragraph(Role, Text),
    /// Points.
    List(List),
    Table(Table),
    /// Something to beware of, and what to do about it; that may be empty.
    Warning(String, String),
    /// Plots. Not for a terminal.
    Figures(Figures),
    /// One plot, in its place. Not for a terminal.
    Picture(Box<Figure>),
    /// Lines to be read or run as they are.
    Code(String),
    /// Details behind a summary. Not for a terminal.
    Fold(Text, Vec<Block>),
    /// Names and values.
    Facts(Vec<(Text, Text)>),
    /// Blocks that some media leave out.
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
    /// Reading instructions for what follows. Not for a terminal.
    Hint,
}

/// Points below each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct List {
    /// Each with what belongs to it.
    pub items: Vec<(Text, Vec<Block>)>,
    /// The number of items that a page shows before the others are folded; none: all.
    pub at_once: Option<usize>,
}

/// A table: its rows in groups under common columns.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// The content.
    pub caption: String,
    /// The columns, that of the rows' names first.
    pub columns: Vec<Column>,
    /// The rows.
    pub groups: Vec<Group>,
    /// The set of which the [`Tone::Best`] cells are the best; empty without such cells.
    pub best_of: &'static str,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Column {
    /// Its heading.
    pub title: String,
    /// The meaning; empty if the heading has it.
    pub note: String,
    /// Words rather than numbers.
    pub is_text: bool,
    /// A narrow terminal drops the column with the highest number first. 0 stays.
    pub drop: u8,
}

/// A column that is never shown in a terminal.
pub const NOT_IN_TERMINAL: u8 = u8::MAX;

/// Rows under one heading.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Group {
    /// The heading; empty: none.
    pub title: String,
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Row {
    pub name: Text,
    /// An anomaly of the row.
    pub flags: Vec<String>,
    /// Whether it is not to be compared with the others.
    pub is_quiet: bool,
    /// The cells after the name.
    pub cells: Cells,
}

/// The role of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cells {
    /// A cell for each column but the first.
    Each(Vec<Cell>),
    /// Why there are none.
    None(String),
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq)]
#[must_use]
pub struct Cell {
    pub text: String,
    /// Small print, which a terminal leaves out; empty where there is none.
    pub detail: String,
    /// Its comparison with the other cells.
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
    /// The best of some.
    Best,
    /// The worst of some.
    Worst,
    /// A good verdict.
    Good,
    Bad,
    /// None.
    Quiet,
}

/// Plots that share a key.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Each name, with the places that it has in the figures.
    pub key: Vec<(Vec<usize>, String)>,
    /// The plots.
    pub figures: Vec<Figure>,
    /// Reading instructions for the figures that are shown on demand.
    pub details: String,
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
    /// As the text around it.
    Plain,
    /// Bold.
    Strong,
    /// As something to type.
    Code,
    /// In the colour of a verdict.
    Tone(Tone),
    /// In front of it the colour of the server at this place.
    Server(usize),
    /// A link to an anchor or a file.
    Link(String),
}

impl Section {
    /// A section of these blocks; none if they are empty, or only say how to read what is not there.
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

    /// The same, left out by these media.
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

    /// Points of one line each.
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
            Self::Table(table) => table.groups.iter().all(|group| group.rows.is_empty()),
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
                Self::Except(_, blocks) => shown.extend(Self::shown(blocks, medium)),
                block => shown.push(block),
            }
        }
        shown
    }
}

impl Table {
    /// A table of rows without groups.
    pub fn of(caption: impl Into<String>, columns: Vec<Column>, rows: Vec<Row>) -> Self {
        Self {
            caption: caption.into(),
            columns,
            groups: vec![Group {
                title: String::new(),
                rows,
            }],
            best_of: "",
        }
    }

    /// The set of which its marked cells are the best, if it has any.
    fn best(&self) -> Option<&'static str> {
        let rows = || self.groups.iter().flat_map(|group| &group.rows);
        let marked = |row: &Row| matches!(&row.cells, Cells::Each(cells) if cells.iter().any(|cell| cell.tone == Tone::Best));
        (!self.best_of.is_empty() && rows().any(marked)).then_some(self.best_of)
    }

    /// The meaning of columns whose headings do not have it.
    fn notes(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.note.is_empty())
    }
}

impl Column {
    /// Of numbers, which always stays.
    pub fn number(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            ..Self::default()
        }
    }

    /// Of words, which always stays.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            is_text: true,
            ..Self::number(title)
        }
    }

    /// The same, dropped before those with a smaller number.
    pub fn dropped(self, drop: u8) -> Self {
        Self { drop, ..self }
    }
}

impl Row {
    /// A row with nothing odd.
    pub fn of(name: impl Into<Text>, cells: Vec<Cell>) -> Self {
        Self {
            name: name.into(),
            cells: Cells::Each(cells),
            ..Self::default()
        }
    }
}

impl Default for Cells {
    fn default() -> Self {
        Self::Each(Vec::new())
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

    /// The same with small print.
    pub fn with(self, detail: impl Into<String>) -> Self {
        Self {
            detail: detail.into(),
            ..self
        }
    }

    /// The same in another tone.
    pub fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }
}

impl Text {
    /// The same with this after it.
    pub fn then(mut self, text: impl Into<String>, style: Style) -> Self {
        let text = text.into();
        self.0.push(Span { text, style });
        self
    }

    /// The same with plain text after it.
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.then(text, Style::Plain)
    }

    /// The same with bold text after it.
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.then(text, Style::Strong)
    }

    /// The same with a verdict after it.
    pub fn toned(self, text: impl Into<String>, tone: Tone) -> Self {
        self.then(text, Style::Tone(tone))
    }

    /// Its text without styles.
    pub fn words(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::default().plain(text)
    }
}

/// The address that a link has in a file: nothing in it ends the link or leads elsewhere.
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
