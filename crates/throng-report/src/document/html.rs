//! A document as a self-contained HTML page.

mod figures;
mod flame;
mod style;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Block, Cell, Column, Document, Kind, List, Medium, Role, Row, Section, Style, Table, Text,
    Tone, address,
};
use crate::palette::look;
use crate::render::markers;
pub use style::{POLICY, STYLE};
use throng_record::format::{ABSENT, harmless};

/// The most parts of a study that are linked above its answer without a fold.
const MOST_PARTS: usize = 4;

/// The script of every page.
pub const SCRIPT: &str = include_str!("page.js");

/// The document as a page.
pub fn page(document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(*POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (document.title) " – throng" }
                meta property="og:title" content=(document.title);
                meta property="og:description" content=(document.question);
                meta property="og:image" content="card.png";
                link rel="icon" href="data:,";
                style { (PreEscaped(&*STYLE)) }
            }
            body {
                (PreEscaped(markers()))
                header.top {
                    p.brand { "throng" span { (document.tagline) } }
                    h1 { @if document.question.is_empty() { (document.title) } @else { (document.question) } }
                    p.facts {
                        @if !document.question.is_empty() { span { b { (document.title) } } }
                        @for badge in &document.badges { span { (text(badge)) } }
                    }
                    (contents(&document.sections))
                }
                main { (Scope::default().sections(&document.sections, 2)) }
                footer { "Made by throng " (document.version) "." }
                div #tip role="status" hidden {}
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    harmless(&page.into_string())
}

/// Blocks without a document, below a heading of level 2.
pub fn blocks(blocks: &[Block]) -> Markup {
    Scope::default().blocks(blocks, 2)
}

/// Links to the sections or parts.
fn contents(sections: &[Section]) -> Markup {
    let shown: Vec<&Section> = Section::shown(sections, Medium::Html).collect();
    let to = |section: &Section| match section.kind {
        Kind::Part => format!("#part-{}", section.id),
        Kind::Plain | Kind::Answer => format!("#{}", section.id),
    };
    let (parts, others): (Vec<&Section>, Vec<&Section>) =
        shown.iter().partition(|section| section.kind == Kind::Part);
    let links = |some: &[&Section]| html! { @for section in some { a href=(to(section)) { (section.title) } " " } };
    html! {
        @if shown.len() > 2 {
            nav aria-label="Sections" {
                @if parts.len() > MOST_PARTS {
                    (links(&others))
                    details { summary { (parts.len()) " parts" } (links(&parts)) }
                } @else {
                    (links(&shown))
                }
            }
        }
    }
}

/// A position on the page.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    /// The part; `None` outside of parts.
    part: Option<&'a Section>,
}

impl<'a> Scope<'a> {
    /// The prefix of all IDs of this part.
    fn prefix(self) -> String {
        self.part
            .map_or_else(String::new, |part| format!("{}-", part.id))
    }

    /// A label that is unique on the page.
    fn named(self, what: &str) -> String {
        self.part
            .map_or_else(|| what.to_owned(), |part| format!("{}: {what}", part.title))
    }

    fn sections(self, sections: &'a [Section], level: u8) -> Markup {
        html! { @for section in Section::shown(sections, Medium::Html) { (self.section(section, level)) } }
    }

    fn section(self, section: &'a Section, level: u8) -> Markup {
        let name = self.named(&section.title);
        let title = Text::from(section.title.as_str());
        if section.kind == Kind::Part {
            let scope = Self {
                part: Some(section),
            };
            return html! {
                article.part id=(format!("part-{}", section.id)) aria-label=(name) {
                    (heading(level, None, &title))
                    (scope.blocks(&section.blocks, level))
                    (scope.sections(&section.sections, level + 1))
                }
            };
        }
        let class = match section.kind {
            Kind::Answer => Some("answer"),
            // Paper has as much room as a terminal.
            _ if section.omit.contains(&Medium::Terminal) => Some("details"),
            _ => None,
        };
        html! {
            section class=[class] aria-label=(name) {
                (heading(level, Some(&format!("{}{}", self.prefix(), section.id)), &title))
                (self.blocks(&section.blocks, level))
            }
        }
    }

    fn blocks(self, blocks: &[Block], level: u8) -> Markup {
        html! { @for block in Block::shown(blocks, Medium::Html) { (self.block(block, level)) } }
    }

    fn block(self, block: &Block, level: u8) -> Markup {
        html! {
            @match block {
                Block::Heading(title) => (heading(level + 1, None, title)),
                Block::Paragraph(role, words) => p class=[class_of(*role)] { (text(words)) },
                Block::List(list) => (self.list(list, level)),
                Block::Table(table) => (self.table(table)),
                Block::Warning(message, remedy) => div.warning {
                    p { (message) }
                    @if !remedy.is_empty() { p.remedy { (remedy) } }
                },
                Block::Figures(all) => (figures::of_section(self, all, level)),
                Block::Picture(one) => (figures::picture(self, one)),
                Block::Flame(graph) => (flame::graph(self, graph, level)),
                Block::Code(lines) => pre { (lines) },
                Block::Fold(summary, blocks) => details {
                    summary { (text(summary)) }
                    (self.blocks(blocks, level))
                },
                Block::Facts(facts) => dl {
                    @for (name, value) in facts { div { dt { (text(name)) } dd { (text(value)) } } }
                },
                Block::Except(_, blocks) => (self.blocks(blocks, level)),
            }
        }
    }

    fn list(self, list: &List, level: u8) -> Markup {
        let at_once = list.at_once.unwrap_or(list.items.len());
        let (shown, more) = list.items.split_at(at_once.min(list.items.len()));
        let points = |items: &[(Text, Vec<Block>)]| {
            html! { ul { @for (point, blocks) in items { li { (text(point)) (self.blocks(blocks, level)) } } } }
        };
        html! {
            (points(shown))
            @if !more.is_empty() { details { summary { (more.len()) " more" } (points(more)) } }
        }
    }

    fn table(self, table: &Table) -> Markup {
        let name = self.named(&format!("{}, scrollable", table.caption));
        html! {
            @if let Some(best_of) = table.best() {
                p.hint { span.mark { "Marked" } " is the best of " (best_of) "." }
            }
            div.scroll tabindex="0" role="region" aria-label=(name) {
                table class=[is_prose(table).then_some("prose")] {
                    caption.hidden { (table.caption) }
                    thead {
                        tr {
                            @for column in &table.columns {
                                th class=[column.is_text.then_some("text")] scope="col" title=[Some(&column.note).filter(|note| !note.is_empty())] {
                                    @if column.title.is_empty() { span.hidden { "Name" } } @else { (column.title) }
                                }
                            }
                        }
                    }
                    @for group in &table.groups {
                        tbody {
                            @if !group.title.is_empty() {
                                tr.group { th scope="rowgroup" colspan=(table.columns.len()) { span { (group.title) } } }
                            }
                            @for row in &group.rows { (line(table, row)) }
                        }
                    }
                }
            }
            @if table.notes().next().is_some() {
                details.columns {
                    summary { "What the columns mean" }
                    dl { @for column in table.notes() { div { dt { (column.title) } dd { (column.note) } } } }
                }
            }
        }
    }
}

/// A heading of level 2 or deeper.
fn heading(level: u8, id: Option<&str>, title: &Text) -> Markup {
    html! {
        @match level {
            2 => h2 id=[id] { (text(title)) },
            3 => h3 id=[id] { (text(title)) },
            _ => h4 id=[id] { (text(title)) },
        }
    }
}

fn class_of(role: Role) -> Option<&'static str> {
    match role {
        Role::Lead => Some("lead"),
        Role::Body => None,
        Role::Fine => Some("fine"),
        Role::Hint => Some("hint"),
    }
}

fn text(text: &Text) -> Markup {
    html! {
        @for span in &text.0 {
            @match &span.style {
                Style::Plain => (unbroken(&span.text)),
                Style::Strong => b { (unbroken(&span.text)) },
                Style::Code => code { (span.text) },
                Style::Tone(tone) => span class=[class(*tone)] { (span.text) },
                Style::Server(place) => { (swatch(*place)) (span.text) },
                Style::Link(to) => a href=(address(to)) { (span.text) },
                Style::Page(to) => a href=(to) { (span.text) },
            }
        }
    }
}

/// A text in which no line begins with the unit of a number.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

fn class(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Best => Some("best"),
        Tone::Worst | Tone::Bad => Some("bad"),
        Tone::Good => Some("good"),
        Tone::Quiet => Some("quiet"),
    }
}

/// The marker of the server at this place of the palette, in its colour.
fn swatch(place: usize) -> Markup {
    let look = look(place);
    html! {
        svg.swatch.(look.class()) viewBox="-5 -5 10 10" aria-hidden="true" { use href=(format!("#{}", look.marker.id())) {} }
    }
}

fn line(table: &Table, row: &Row) -> Markup {
    html! {
        tr class=[row.is_quiet.then_some("partial")] data-s=[server(&row.name)] {
            th scope="row" {
                (text(&row.name))
                @for flag in &row.flags { small.flag { (flag) } }
            }
            @for (column, one) in table.columns.iter().skip(1).zip(&row.cells) {
                (cell(column, one, is_prose(table)))
            }
            @if !row.why.is_empty() { td.text.quiet colspan=(table.columns.len() - 1) { (row.why) } }
        }
    }
}

/// Whether all columns are text, so that a narrow screen shows each row as a list.
fn is_prose(table: &Table) -> bool {
    table.columns.len() > 2 && table.columns.iter().all(|column| column.is_text)
}

fn cell(column: &Column, cell: &Cell, is_prose: bool) -> Markup {
    let label = Some(&column.title).filter(|title| is_prose && !title.is_empty());
    let is_absent = is_prose && cell.text == ABSENT && cell.detail.is_empty();
    let classes = column
        .is_text
        .then_some("text")
        .into_iter()
        .chain(is_absent.then_some("absent"))
        .chain(class(cell.tone))
        .collect::<Vec<_>>()
        .join(" ");
    html! {
        td class=[Some(&classes).filter(|classes| !classes.is_empty())] data-label=[label] {
            @if cell.tone == Tone::Best { span.value { (cell.text) } } @else { (cell.text) }
            // Just small print: it gets no element of its own in the structure of a printed page.
            @if !cell.detail.is_empty() { small role="none" { (cell.detail) } }
            @if let Some(share) = cell.bar {
                i.(format!("bar w{:.0}", 100.0 * share.clamp(0.0, 1.0))) aria-hidden="true" {}
            }
        }
    }
}

/// The place of the server that a text names.
fn server(text: &Text) -> Option<usize> {
    text.0.iter().find_map(|span| match span.style {
        Style::Server(place) => Some(place),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::fixture::sample;

    #[test]
    fn nothing_from_outside_is_read_as_html() {
        let page = page(&sample("<script>alert(1)</script>\"'javascript:x"));
        assert_eq!(page.matches("<script").count(), 1, "its own");
        assert!(page.contains("&lt;script&gt;alert(1)"));
        assert!(!page.contains("href=\"javascript:"));
    }

    #[test]
    fn every_region_of_a_page_has_a_name_of_its_own() {
        let page = page(&sample("x"));
        let mut names: Vec<&str> = page
            .split("aria-label=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(names.len() > 4, "{names:?}");
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn a_page_of_every_block() {
        let page = page(&sample("x & y"));
        let (_, body) = page.split_once("</defs></svg>").expect("it has markers");
        let body = body.replace(SCRIPT, "");
        insta::assert_snapshot!(body.replace("><", ">\n<"));
    }
}
