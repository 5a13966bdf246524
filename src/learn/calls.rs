//! The system calls of one request in Markdown, both as quoted in a page and as the replacement after a new trace.

use super::words::{columns, padded};
use crate::record::format;
use crate::record::traced::{Call, ClientStep, Kind, Traced};

/// The trace, in lines of at most `width` columns. `when` begins its first sentence, like "Traced just now".
pub fn markdown(traced: &Traced, when: &str, width: usize) -> String {
    let options = match traced.options.as_str() {
        "" => String::new(),
        options => format!(" with `{options}`"),
    };
    let mut text = format!("{when} on {}{options}, {}.\n", traced.system, traced.asked);
    for step in &traced.steps {
        let lines = lines(&step.calls, width).join("\n");
        let heading = heading(step.about, &step.calls);
        text += &format!("\n**{heading}**\n\n```text\n{lines}\n```\n");
    }
    text
}

/// A step with this many calls counts as endless.
const WITHOUT_END: usize = 100;

/// The subject of a step, with the number of its calls.
fn heading(about: ClientStep, calls: &[Call]) -> String {
    let about = match about {
        ClientStep::Comes => "A client comes",
        ClientStep::Asks => "It asks",
        ClientStep::Leaves => "It leaves",
    };
    let counted = calls.iter().filter(|call| call.counts());
    match counted.map(|call| call.times).sum() {
        WITHOUT_END.. => format!("{about}: calls without end"),
        count => format!("{about}: {}", format::counted(count as u32, "system call")),
    }
}

/// The calls in columns, with their callers and results.
fn lines(calls: &[Call], width: usize) -> Vec<String> {
    const WIDEST_CALL: usize = 44;
    let who = calls
        .iter()
        .map(|call| columns(&call.who))
        .max()
        .unwrap_or(0);
    let widest = calls
        .iter()
        .map(|call| columns(&words(call)))
        .filter(|one| *one <= WIDEST_CALL)
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    let mut last_who = "";
    for call in calls {
        let is_same = last_who == call.who;
        last_who = &call.who;
        let shown = if is_same { "" } else { &call.who };
        let line = format!("{}  {}", padded(shown, who), words(call));
        let outcome = outcome(call);
        let place = who + 2 + widest + 2;
        let beside = format!("{}  {outcome}", padded(&line, place - 2));
        if outcome.is_empty() {
            lines.push(line);
        } else if columns(&beside) <= width {
            lines.push(beside);
        } else {
            lines.push(line);
            let column = place.min(width.saturating_sub(columns(&outcome)));
            lines.push(" ".repeat(column) + &outcome);
        }
    }
    lines
}

/// A call with its arguments.
fn words(call: &Call) -> String {
    let Call {
        name, arguments, ..
    } = call;
    let words = match call.kind {
        Kind::Event => format!("{name} {arguments}"),
        _ => format!("{name}({arguments})"),
    };
    match call.times {
        1 => words,
        times => format!("{words} ×{times}"),
    }
}

fn outcome(call: &Call) -> String {
    match (call.kind, call.outcome.as_str()) {
        (Kind::Sleeps, _) => "sleeps".to_owned(),
        (Kind::Woken, "") => "wakes".to_owned(),
        (Kind::Woken, outcome) => format!("wakes: {outcome}"),
        (_, outcome) => outcome.to_owned(),
    }
}
