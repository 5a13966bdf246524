//! Shows the page about a model on a terminal.
//!
//! It supports the Markdown that the pages use: headings, paragraphs, tables, fenced code, and lists whose items are
//! one paragraph or, if numbered, several blocks. A list directly below quoted source contains notes on its lines:
//! each item begins with a part of the line that it is about.

use anstyle::Style;

use super::words::{BOLD, CALL, COMMAND, DIM, columns, lines, padded, styled};
use crate::serve::Model;

/// The page for a terminal that is `width` columns wide (at least 40), with styles.
pub fn shown(page: &str, width: usize) -> String {
    let mut shown = Page {
        width,
        lines: Vec::new(),
        is_below_heading: true,
    };
    let mut blocks = blocks(page).into_iter().peekable();
    while let Some(block) = blocks.next() {
        let source = fenced(&block, "rust");
        if source.is_empty() {
            shown.block(&block);
        } else {
            let notes = blocks.next_if(|next| is_list(next)).unwrap_or_default();
            shown.source(source, &notes_of(&notes));
        }
    }
    shown.lines.join("\n")
}

/// A list of the models, one per line.
pub fn contents(models: &[&'static Model]) -> String {
    let mut text = String::new();
    for model in models {
        let info = model.info;
        let name = styled(BOLD, &padded(info.name, 18));
        text += &format!("  {name} {}\n", info.summary);
    }
    text
}

/// Splits a page into blocks at empty lines and marks. Fenced code is one block.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let mut blocks = vec![Vec::new()];
    let mut is_code = false;
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !is_code && (line.is_empty() || line.starts_with("<!--")) {
            blocks.push(Vec::new());
        } else if let Some(block) = blocks.last_mut() {
            block.push(line);
        }
        is_code ^= is_fence;
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// The lines of a code block in this language; empty for other blocks.
fn fenced<'a, 'b>(block: &'a [&'b str], language: &str) -> &'a [&'b str] {
    let fence = block[0].trim_start().strip_prefix("```");
    match block {
        [_, lines @ .., _] if fence == Some(language) => lines,
        _ => &[],
    }
}

/// A note on a line of source code.
struct Note<'a> {
    /// The part of the line that identifies it.
    at: &'a str,
    /// The note.
    says: String,
}

fn is_list(block: &[&str]) -> bool {
    block[0].starts_with("- `")
}

/// The notes in a list block.
fn notes_of<'a>(list: &[&'a str]) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'_>> = Vec::new();
    for line in list {
        let begun = line.strip_prefix("- `");
        if let Some((at, says)) = begun.and_then(|note| note.split_once("`: ")) {
            let owned = says.to_owned();
            notes.push(Note { at, says: owned });
        } else if let Some(note) = notes.last_mut() {
            note.says += &format!(" {}", line.trim_start());
        }
    }
    notes
}

/// The text of a paragraph that is entirely bold: the heading of the next block.
fn bold(text: &str) -> Option<&str> {
    text.strip_prefix("**")?.strip_suffix("**")
}

/// The style of prose.
const PLAIN: Style = Style::new();

struct Page {
    width: usize,
    lines: Vec<String>,
    /// Whether the next block follows without an empty line in between.
    is_below_heading: bool,
}

impl Page {
    fn block(&mut self, block: &[&str]) {
        let text = block.join(" ");
        let numbered = text
            .split_once(". ")
            .filter(|(number, _)| number.parse::<u32>().is_ok());
        let of_item = text.strip_prefix("   ");
        if of_item.is_none() {
            self.begin();
        }
        if let Some(title) = text.strip_prefix('#') {
            let title = title.trim_start_matches('#').trim_start();
            self.lines.push(styled(BOLD, &title.replace('`', "")));
            self.is_below_heading = text.starts_with("##");
        } else if let Some(title) = bold(&text) {
            self.lines.push(format!("  {}", styled(BOLD, title)));
            self.is_below_heading = true;
        } else if text.starts_with('|') {
            self.table(block);
        } else if text.starts_with("```") {
            self.drawing(fenced(block, "text"));
        } else if let Some((number, question)) = numbered {
            self.text(&format!("  {number}. "), question, PLAIN);
        } else if let Some(item) = of_item {
            for command in fenced(block, "sh") {
                // Not wrapped, so that it can be copied.
                let command = styled(COMMAND, command.trim_start());
                self.lines.push(format!("     {command}"));
            }
            if !item.starts_with("```") {
                self.text("     ", item, DIM);
            }
        } else {
            self.text("  ", &text, PLAIN);
        }
    }

    /// Starts a block with an empty line, except below a heading.
    fn begin(&mut self) {
        if !self.is_below_heading {
            self.lines.push(String::new());
        }
        self.is_below_heading = false;
    }

    /// A paragraph. Its first line begins with `start`; the remaining lines are indented by the width of `start`.
    fn text(&mut self, start: &str, text: &str, style: Style) {
        let mut start = start.to_owned();
        for line in lines(text, self.width - columns(&start)) {
            self.lines.push(start.clone() + &styled(style, &line));
            start = " ".repeat(columns(&start));
        }
    }

    /// A table: a list of terms if its head is empty, otherwise figures in columns.
    fn table(&mut self, block: &[&str]) {
        let cells = |row: &str| -> Vec<String> {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        };
        let rows: Vec<Vec<String>> = block.iter().map(|row| cells(row)).collect();
        let (head, rows) = (&rows[0], rows.get(2..).unwrap_or_default());
        if head.iter().all(String::is_empty) {
            for row in rows {
                self.term(&row[0], &row[1..].join(" "));
            }
            return;
        }
        // A cell may consist of several lines.
        let line = |row: &[String], number: usize| -> Vec<String> {
            let lines = row.iter().map(|cell| cell.split("<br>").nth(number));
            lines.map(|line| line.unwrap_or("").to_owned()).collect()
        };
        let widths: Vec<usize> = (0..head.len())
            .map(|place| {
                let column = rows.iter().filter_map(|row| row.get(place));
                let lines = column
                    .chain([&head[place]])
                    .flat_map(|cell| cell.split("<br>"));
                lines.map(columns).max().unwrap_or(0)
            })
            .collect();
        // Two spaces between columns, or one if that is needed to make the table fit.
        let fits = widths.iter().map(|width| width + 2).sum::<usize>() <= self.width;
        let gap = if fits { "  " } else { " " };
        let aligned = |row_cells: &[String]| -> String {
            let pairs = row_cells.iter().zip(&widths);
            pairs
                .map(|(cell, width)| format!("{gap}{cell:>width$}"))
                .collect()
        };
        self.lines.push(styled(DIM, &aligned(head)));
        for row in rows {
            self.lines.push(aligned(&line(row, 0)));
            let second = aligned(&line(row, 1));
            if !second.trim().is_empty() {
                self.lines.push(styled(DIM, second.trim_end()));
            }
        }
    }

    fn term(&mut self, term: &str, text: &str) {
        const WIDTH: usize = 13;
        let term = padded(bold(term).unwrap_or(term), WIDTH);
        let first = self.lines.len();
        self.text(&format!("  {term}"), text, PLAIN);
        self.lines[first] = self.lines[first].replacen(&term, &styled(BOLD, &term), 1);
    }

    /// A diagram, or the system calls of a step.
    fn drawing(&mut self, drawing: &[&str]) {
        let widest = drawing.iter().map(|line| columns(line)).max().unwrap_or(0);
        let indent = self.width.saturating_sub(widest).min(4);
        for line in drawing {
            let owned = with_calls(line);
            self.lines.push(format!("{}{owned}", " ".repeat(indent)));
        }
    }

    /// Source code, with each note below its line.
    fn source(&mut self, source: &[&str], notes: &[Note<'_>]) {
        self.begin();
        let room = self.width - 4;
        let gutter = styled(DIM, "  │ ");
        for line in source {
            for part in broken(line, room) {
                let part = format!("{gutter}{part}");
                self.lines.push(part.trim_end().to_owned());
            }
            let indent = (line.len() - line.trim_start().len()).min(room / 2);
            for note in notes.iter().filter(|note| line.contains(note.at)) {
                let parts = lines(&note.says, room - indent - 2);
                for (row, part) in parts.into_iter().enumerate() {
                    let sign = if row == 0 { "▲ " } else { "  " };
                    let remark = styled(CALL, &format!("{sign}{part}"));
                    self.lines
                        .push(format!("{gutter}{}{remark}", " ".repeat(indent)));
                }
            }
        }
    }
}

/// A line in which the names of calls and their results have their own styles.
fn with_calls(line: &str) -> String {
    let first = line.find('(').unwrap_or(line.len());
    let end = line[first..]
        .find("  ")
        .map_or(line.len(), |end| first + end);
    let (mut rest, outcome) = line.split_at(end);
    let mut styled_line = String::new();
    while let Some((before, after)) = rest.split_once('(') {
        let start = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_');
        let name = &before[start.len()..];
        styled_line += &format!("{start}{}(", styled(CALL, name));
        rest = after;
    }
    styled_line + rest + &styled(DIM, outcome)
}

/// Breaks a line of code into pieces of at most `width` columns. Later pieces are indented further.
fn broken(line: &str, width: usize) -> Vec<String> {
    let indent = line.len() - line.trim_start().len();
    let mut rest = line.to_owned();
    let mut pieces = Vec::new();
    while columns(&rest) > width {
        let head: String = rest.chars().take(width).collect();
        let at = head
            .rfind(' ')
            .filter(|at| *at > indent + 8)
            .unwrap_or(head.len());
        let tail = rest[at..].trim_start().to_owned();
        pieces.push(rest[..at].to_owned());
        rest = format!("{}{tail}", " ".repeat(indent + 8));
        if columns(&rest) <= width || pieces.len() > 8 {
            break;
        }
    }
    pieces.push(rest);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# loop

<!-- idea: of it -->
It goes round
and round.
<!-- end of idea -->

| | |
|---|---|
| **good at** | waiting |

## Who waits where

```text
client ─▶ the thread: sleeps in poll()  wakes
```

**It asks: 1 system call**

```text
server  recv(connection)  5 bytes
```

## `run()` in `loop.rs`

```rust
fn run() {

    wait();
}
```

- `wait(`: Sleeps until somebody
  comes.

## Measured

| clients | requests/s |
|---:|---:|
| 1<br>0 served | 12,000<br>×1.00 #1 |

## To try

1. What does it cost?

   ```sh
   throng run
   ```

   The time.

2. And then?
";

    #[test]
    fn a_page_is_shown() {
        let shown = shown(PAGE, 44);
        insta::assert_snapshot!(anstream::adapter::strip_str(&shown));
    }

    #[test]
    fn calls_are_distinguished() {
        let styled = with_calls("server  recv(connection)  5 bytes");
        let parts = [
            "server  ",
            &super::styled(CALL, "recv"),
            "(connection)",
            &super::styled(DIM, "  5 bytes"),
        ];
        assert_eq!(styled, parts.concat());
        assert_eq!(with_calls("client ─▶ queue"), "client ─▶ queue");
    }

    #[test]
    fn long_lines_of_code_are_broken() {
        let pieces = broken("    let value = first + second;", 24);
        assert_eq!(pieces, ["    let value = first +", "            second;"]);
        assert_eq!(broken("short", 24), ["short"]);
    }
}
