//! A document as one page that works without a network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Block, Cell, Cells, Document, Figures, Kind, List, Medium, Role, Row, Section, Style, Table,
    Text, Tone, address,
};
use crate::figures::{self, Figure};
use crate::palette::{hex, look};
use crate::render::interactive;

/// What a browser is asked to refuse: to load anything, or send anything anywhere.
pub const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; base-uri 'none'; form-action 'none'";
/// The style sheet of every page.
pub const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document as a page.
pub fn page(document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (document.title) " – throng" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) (PreEscaped(colours(document.colours))) }
            }
            body {
                header.top {
                    p.brand { "throng" span { (document.tagline) } }
                    h1 { (document.title) }
                    p.question { (document.question) }
                    p.facts { @for badge in &document.badges { span { (text(badge)) } } }
                }
                main { (Scope::default().sections(&document.sections, 2)) }
                footer { "Made by throng " (document.version) "." }
                @if has_figures(&document.sections) {
                    script { (PreEscaped(interactive::script())) }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    };
    page.into_string()
}

/// One CSS variable a server, light and dark.
fn colours(servers: usize) -> String {
    let all = |hue: fn(usize) -> String| {
        let variables = (0..servers).map(|place| format!("--s{place}:{};", hue(place)));
        variables.collect::<Vec<_>>().concat()
    };
    format!(
        ":root{{{}}}@media (prefers-color-scheme:dark){{:root{{{}}}}}@media print{{:root{{{}}}}}",
        all(|place| hex(look(place).light)),
        all(|place| hex(look(place).dark)),
        all(|place| hex(look(place).light))
    )
}

fn has_figures(sections: &[Section]) -> bool {
    Section::shown(sections, Medium::Html).any(|section| {
        let blocks = Block::shown(&section.blocks, Medium::Html);
        let mut blocks = blocks.iter();
        blocks.any(|block| matches!(block, Block::Figures(_))) || has_figures(&section.sections)
    })
}

/// Where on the page something stands.
#[derive(Clone, Copy, Default)]
struct Scope<'a> {
    /// The part; none: outside of parts.
    part: Option<&'a Section>,
}

impl<'a> Scope<'a> {
    /// What all ids of this part begin with.
    fn prefix(self) -> String {
        self.part
            .map_or_else(String::new, |part| format!("{}-", part.id))
    }

    /// What names something, so that no two parts of the page have one name.
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
        let class = (section.kind == Kind::Answer).then_some("answer");
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
                Block::Figures(figures) => (self.figures(figures, level)),
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
        let name = self.named(&format!("{}, can be scrolled sideways", table.caption));
        html! {
            @if !table.best_of.is_empty() {
                p.hint { span.mark { "Marked" } " is the best of " (table.best_of) "." }
            }
            div.scroll tabindex="0" role="region" aria-label=(name) {
                table {
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

    fn figures(self, figures: &Figures, level: u8) -> Markup {
        let places = |places: &[usize]| {
            let places: Vec<String> = places.iter().map(usize::to_string).collect();
            places.join(" ")
        };
        let (later, first): (Vec<&Figure>, Vec<&Figure>) =
            figures.figures.iter().partition(|one| one.is_over_time());
        let plots = |plots: &[&Figure]| html! { div.figures { @for one in plots { (self.plot(figures, one, level)) } } };
        html! {
            div data-figures=(self.prefix()) {
                script type="application/json" { (PreEscaped(interactive::data(&figures.figures))) }
                p.hint { "Click a server to hide or show it everywhere, double-click to see it alone. Drag in a figure to zoom, double-click in it to go back." }
                div.key role="group" aria-label=(self.named("Servers shown in the figures")) {
                    @for (at, name) in &figures.key {
                        button type="button" aria-pressed="true" data-server=(places(at)) {
                            @for place in at { (swatch(*place)) }
                            (name)
                        }
                    }
                }
                (plots(&first))
                @if !later.is_empty() {
                    (heading(level + 1, None, &"Over time".into()))
                    p.hint { (figures.over_time) }
                    (plots(&later))
                }
            }
        }
    }

    fn plot(self, figures: &Figures, figure: &Figure, level: u8) -> Markup {
        let otherwise = match (figures.have_stills, self.part) {
            (true, Some(part)) => format!("{}/figures/{}.svg", part.id, figure.id),
            (true, None) => format!("figures/{}.svg", figure.id),
            (false, _) => String::new(),
        };
        let height = height(figure).map(|height| format!("height:{height}px"));
        let low = figure.kind == figures::Kind::Course;
        html! {
            figure.(if is_wide(figure) { "wide" } else { "half" }) {
                (heading(level + 1, None, &figure.title.as_str().into()))
                div.plot.low[low] id=(format!("{}plot-{}", self.prefix(), figure.id)) style=[height] role="img" aria-label=(figure.alternative) {
                    noscript {
                        "This figure needs JavaScript; "
                        @if otherwise.is_empty() { "the tables do not." } @else { (otherwise) " beside this page does not." }
                    }
                }
                figcaption { (figure.caption) }
            }
        }
    }
}

/// A heading of a level from 2 on.
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
                Style::Plain => (span.text),
                Style::Strong => b { (span.text) },
                Style::Code => code { (span.text) },
                Style::Tone(tone) => span class=[class(*tone)] { (span.text) },
                Style::Server(place) => { (swatch(*place)) (span.text) },
                Style::Link(to) => a href=(address(to)) { (span.text) },
            }
        }
    }
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

/// The square or stripe in the colour of the server at a place.
fn swatch(place: usize) -> Markup {
    html! { span.swatch.dashed[look(place).dashed] style=(format!("--hue:var(--s{place})")) aria-hidden="true" {} }
}

fn line(table: &Table, row: &Row) -> Markup {
    html! {
        tr class=[row.is_quiet.then_some("partial")] {
            th scope="row" {
                (text(&row.name))
                @for flag in &row.flags { small.flag { (flag) } }
            }
            @match &row.cells {
                Cells::Each(cells) => {
                    @for (column, one) in table.columns.iter().skip(1).zip(cells) { (cell(column.is_text, one)) }
                }
                Cells::None(why) => td.text.quiet colspan=(table.columns.len() - 1) { (why) },
            }
        }
    }
}

fn cell(is_text: bool, cell: &Cell) -> Markup {
    let classes = is_text
        .then_some("text")
        .into_iter()
        .chain(class(cell.tone));
    let classes = classes.collect::<Vec<_>>().join(" ");
    html! {
        td class=[Some(&classes).filter(|classes| !classes.is_empty())] {
            span.value { (cell.text) }
            @if !cell.detail.is_empty() { small { (cell.detail) } }
            @if let Some(share) = cell.bar {
                span.bar aria-hidden="true" { span style=(format!("width:{:.1}%", 100.0 * share)) {} }
            }
        }
    }
}

/// Whether it takes all the width: many points, and names beside or below each other.
fn is_wide(figure: &Figure) -> bool {
    match figure.kind {
        figures::Kind::Points | figures::Kind::Stacked | figures::Kind::Heat => true,
        figures::Kind::Bars => figure.y.log,
        figures::Kind::Lines | figures::Kind::Course => false,
    }
}

/// Lying bars and maps below each other need room by their number.
fn height(figure: &Figure) -> Option<usize> {
    match figure.kind {
        figures::Kind::Stacked => Some(140 + 27 * figure.series.len()),
        figures::Kind::Heat => Some(70 + 104 * figure.maps.len()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::fixture::sample;

    #[test]
    fn nothing_from_outside_is_read_as_html() {
        let page = page(&sample("<script>alert(1)</script>\"'javascript:x"));
        assert!(!page.contains("<script"), "it has no figures");
        assert!(page.contains("&lt;script&gt;alert(1)"));
        assert!(!page.contains("href=\"javascript:"));
    }

    #[test]
    fn every_region_of_a_page_has_a_name_of_its_own() {
        let page = page(&sample("x"));
        let names = page.split("aria-label=\"").skip(1);
        let mut names: Vec<&str> = names.filter_map(|rest| rest.split('"').next()).collect();
        assert!(names.len() > 4, "{names:?}");
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }

    #[test]
    fn a_page_of_every_block() {
        let page = page(&sample("x & y"));
        let (_, body) = page.split_once("<body>").expect("it has one");
        insta::assert_snapshot!(body.replace("><", ">\n<"));
    }
}
