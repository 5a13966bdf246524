//! The page about a model for a terminal.

use super::figures::{Figures, MEASURES, Row};
use super::traced::{About, Call, Kind, Traced};
use super::words::{BOLD, CALL, COMMAND, DIM, columns, lines, padded, styled};
use super::{Exercise, Lesson};
use crate::report::format;
use crate::serve::{Card, Model};

/// What there is to show of the system calls.
#[derive(Debug, Clone, Copy)]
pub enum Seen<'a> {
    /// Traced a moment ago.
    Now(&'a Traced),
    /// Not traced now, for this reason.
    Not(&'a str),
}

/// The page, with styles, for a terminal of so many columns.
pub fn page(model: &dyn Model, lesson: &Lesson, seen: Seen<'_>, width: usize) -> String {
    let width = width.clamp(40, 100);
    let mut page = Page {
        width,
        lines: Vec::new(),
    };
    page.head(model, lesson);
    page.heading("Who waits where", "");
    page.lines.extend(lesson.diagram.lines());
    page.system_calls(model, lesson, seen);
    for excerpt in lesson.excerpts {
        let function = excerpt
            .function
            .split(['(', '<'])
            .next()
            .unwrap_or_default();
        page.heading(&format!("{function}()"), excerpt.source.path);
        page.lines.extend(excerpt.shown(width));
    }
    page.figures(model.info().name, super::figures());
    page.heading("To try", "");
    for (place, exercise) in lesson.exercises.iter().enumerate() {
        page.exercise(place + 1, exercise);
    }
    page.lines.join("\n")
}

/// One line for each model.
pub fn contents(models: &[&'static dyn Model]) -> String {
    let mut text = String::new();
    for model in models {
        let info = model.info();
        let name = styled(BOLD, &padded(info.name, 18));
        text += &format!("  {name} {}\n", info.summary);
    }
    text
}

struct Page {
    width: usize,
    lines: Vec<String>,
}

impl Page {
    fn heading(&mut self, heading: &str, beside: &str) {
        self.lines.push(String::new());
        let beside = if beside.is_empty() {
            String::new()
        } else {
            format!("  {}", styled(DIM, beside))
        };
        self.lines.push(styled(BOLD, heading) + &beside);
    }

    /// A paragraph.
    fn says(&mut self, text: &str) {
        for line in lines(text, self.width - 2) {
            self.lines.push(format!("  {line}"));
        }
    }

    fn head(&mut self, model: &dyn Model, lesson: &Lesson) {
        let info = model.info();
        let whole = format!("{}: {}", info.name, info.summary);
        let mut title = lines(&whole, self.width);
        title[0] = title[0].replacen(info.name, &styled(BOLD, info.name), 1);
        self.lines.extend(title);
        let card = model.card();
        for paragraph in [card.idea, lesson.why] {
            self.lines.push(String::new());
            self.says(paragraph);
        }
        self.lines.push(String::new());
        for (title, text) in terms(&card) {
            for (row, line) in lines(text, self.width - 15).into_iter().enumerate() {
                let title = if row == 0 { title } else { "" };
                let title = styled(BOLD, &padded(title, 13));
                let title = if row == 0 { title } else { " ".repeat(13) };
                self.lines.push(format!("  {title}{line}"));
            }
        }
    }

    fn system_calls(&mut self, model: &dyn Model, lesson: &Lesson, seen: Seen<'_>) {
        let before = super::traced().get(model.info().name);
        let (traced, when) = match seen {
            Seen::Now(traced) => (Some(traced), "traced just now"),
            Seen::Not(_) => (before, "traced earlier"),
        };
        let beside = traced.map_or(String::new(), |traced| {
            format!("{when}, {}, {}", traced.system, traced.asked)
        });
        self.heading("System calls of one request", &beside);
        if let Seen::Not(why) = seen {
            self.says(&format!("Not traced here: {why}."));
        }
        self.says(lesson.calls);
        let Some(traced) = traced else { return };
        for step in &traced.steps {
            self.lines.push(String::new());
            self.lines.push(format!(
                "  {}",
                styled(BOLD, &step_heading(step.about, &step.calls))
            ));
            self.lines.extend(call_lines(&step.calls, self.width));
        }
    }

    fn figures(&mut self, model: &str, figures: &Figures) {
        let rows: Vec<&Row> = figures.of(model).collect();
        if rows.is_empty() {
            return;
        }
        let beside = format!("{}, {}", figures.host, figures.made_at);
        self.heading("Measured", &beside);
        let mut head = format!("{:>7}", "clients");
        for measure in MEASURES {
            head += &format!("{:>CELL$}", measure.title);
        }
        self.lines.push(styled(DIM, &head));
        for row in rows {
            let mut values = format!("{:>7}", format::whole(f64::from(row.clients)));
            let mut standings = " ".repeat(7);
            for measure in MEASURES {
                let value = format::or_absent((measure.value)(row), measure.in_words);
                values += &format!("{value:>CELL$}");
                let standing = figures.standing(row, measure);
                let standing = standing.map_or(String::new(), |standing| standing.to_string());
                standings += &format!("{standing:>CELL$}");
            }
            self.lines.push(values);
            if row.served < row.clients {
                let served = format::whole(f64::from(row.served));
                self.lines.push(styled(
                    DIM,
                    &format!("{:>7} only {served} of them served", ""),
                ));
            } else {
                self.lines.push(styled(DIM, standings.trim_end()));
            }
        }
        self.says("× is the value over that of the best of all models that served everybody, # the rank among them.");
    }

    fn exercise(&mut self, number: usize, exercise: &Exercise) {
        if number > 1 {
            self.lines.push(String::new());
        }
        let indent = "     ";
        for (row, line) in lines(exercise.question, self.width - 5).iter().enumerate() {
            let start = if row == 0 {
                format!("  {number}. ")
            } else {
                indent.to_owned()
            };
            self.lines.push(start + line);
        }
        // In one piece, to be copied.
        self.lines
            .push(format!("{indent}{}", styled(COMMAND, exercise.command)));
        for line in lines(exercise.look_for, self.width - 5) {
            self.lines.push(format!("{indent}{}", styled(DIM, &line)));
        }
    }
}

/// What of a card stands in a list.
pub(super) fn terms(card: &Card) -> Vec<(&'static str, &'static str)> {
    let terms = [
        ("consists of", card.processes),
        ("good at", card.good_at),
        ("breaks when", card.breaks_when),
        ("limit", card.limit),
        ("to read", card.source),
    ];
    terms
        .into_iter()
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

/// Columns of a figure.
const CELL: usize = 14;

/// What each call is indented by.
pub(super) const CALLS_INDENT: &str = "    ";

/// Calls from which on a step is said to have no end.
const WITHOUT_END: usize = 100;

/// What a step is about, with the number of its calls.
pub(super) fn step_heading(about: About, calls: &[Call]) -> String {
    let about = match about {
        About::Comes => "A client comes",
        About::Asks => "It asks",
        About::Leaves => "It leaves",
    };
    let counted: usize = calls
        .iter()
        .filter(|call| call.counts())
        .map(|call| call.times)
        .sum();
    match counted {
        WITHOUT_END.. => format!("{about}: calls without end"),
        count => format!("{about}: {}", format::counted(count as u32, "system call")),
    }
}

/// The calls, each with who makes it and what comes of it, in columns.
pub(super) fn call_lines(calls: &[Call], width: usize) -> Vec<String> {
    const WIDEST_CALL: usize = 44;
    let who = calls
        .iter()
        .map(|call| columns(&call.who))
        .max()
        .unwrap_or(0);
    let texts: Vec<(String, String)> = calls.iter().map(parts).collect();
    let lengths = texts
        .iter()
        .map(|(name, rest)| columns(name) + columns(rest));
    let call_width = lengths
        .filter(|length| *length <= WIDEST_CALL)
        .max()
        .unwrap_or(0);
    let mut found = Vec::new();
    let mut last_who = "";
    for (call, (name, rest)) in calls.iter().zip(texts) {
        let is_same = last_who == call.who;
        last_who = &call.who;
        let shown = if is_same { "" } else { &call.who };
        let start = format!("{CALLS_INDENT}{}  ", padded(shown, who));
        let used = columns(&name) + columns(&rest);
        let style = if call.kind == Kind::Event { DIM } else { CALL };
        let line = format!("{start}{}{rest}", styled(style, &name));
        let outcome = outcome(call);
        if outcome.is_empty() {
            found.push(line);
            continue;
        }
        let place = who + 6 + call_width.max(used) + 2;
        let end = place + columns(&outcome);
        if end <= width {
            let gap = " ".repeat(call_width.saturating_sub(used) + 2);
            found.push(format!("{line}{gap}{}", styled(DIM, &outcome)));
        } else {
            found.push(line);
            let place = (who + 6 + call_width + 2).min(width.saturating_sub(columns(&outcome)));
            found.push(" ".repeat(place) + &styled(DIM, &outcome));
        }
    }
    found
}

/// The name of a call, and its arguments.
fn parts(call: &Call) -> (String, String) {
    let arguments = match call.kind {
        Kind::Event => format!(" {}", call.arguments),
        _ => format!("({})", call.arguments),
    };
    let times = match call.times {
        1 => String::new(),
        times => format!(" ×{times}"),
    };
    (call.name.clone(), arguments + &times)
}

fn outcome(call: &Call) -> String {
    match (call.kind, call.outcome.as_str()) {
        (Kind::Sleeps, _) => "sleeps".to_owned(),
        (Kind::Woken, "") => "wakes".to_owned(),
        (Kind::Woken, outcome) => format!("wakes: {outcome}"),
        (_, outcome) => outcome.to_owned(),
    }
}
