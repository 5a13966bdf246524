//! The pages about the models for the book, in Markdown.
//!
//! They say what the terminal does, with the system calls and figures that are carried along instead of new
//! ones, so that they are the same wherever they are made.

use super::figures::{Figures, MEASURES, Measure, Row};
use super::page::{CALLS_INDENT, call_lines, step_heading, terms};
use super::{Exercise, Lesson};
use crate::report::format;
use crate::serve::Model;

/// Columns of the lists of system calls; a page of the book has room for some more than a terminal.
const WIDTH: usize = 96;

/// The name of the page about a model.
pub fn file_name(model: &dyn Model) -> String {
    format!("{}.md", model.info().name)
}

/// The page about a model.
pub fn page(model: &dyn Model, lesson: &Lesson) -> String {
    let info = model.info();
    let mut page = format!("# {}\n\n{}.\n\n", info.name, capital(info.summary));
    page += &format!("{}\n\n{}\n\n", model.card().idea, squeezed(lesson.why));
    page += "| | |\n|---|---|\n";
    for (title, text) in terms(&model.card()) {
        page += &format!("| **{}** | {} |\n", title, text.replace('|', "\\|"));
    }
    page += "\n## Who waits where\n\n";
    page += &block("text", &plain(&lesson.diagram.lines()));
    page += &system_calls(info.name, lesson);
    page += "## Its source\n\n";
    for excerpt in lesson.excerpts {
        page += &source(excerpt);
    }
    page += &figures(info.name);
    page += "## To try\n\n";
    for (place, exercise) in lesson.exercises.iter().enumerate() {
        page += &exercise_of(place + 1, exercise);
    }
    page += &format!(
        "`throng explain {}` traces the calls anew, on your machine.\n",
        info.name
    );
    page
}

/// The page that lists all models, with their figures side by side.
pub fn contents(models: &[&'static dyn Model]) -> String {
    let mut page = String::from(
        "# The models\n\n\
         Fifteen ways to wait for many clients and to divide the work. Each page has the idea, a picture of who \
         waits where, the system calls of one request as they were traced, the heart of the real source with notes, \
         figures, and exercises. `throng explain NAME` shows the same on a terminal, with calls traced on your own \
         machine.\n\n\
         | model | how it works | waits in |\n|---|---|---|\n",
    );
    for model in models {
        let info = model.info();
        let waits_in = model.card().waits_in;
        page += &format!(
            "| [{0}]({0}.md) | {1} | {waits_in} |\n",
            info.name, info.summary
        );
    }
    let figures = super::figures();
    if figures.rows.is_empty() {
        return page;
    }
    page += &format!(
        "\n## Side by side\n\n\
         {} ({}, {}). The best of each column is in bold; in brackets stands a value of a server that left clients \
         unserved, which is not the same work.\n",
        reference(figures),
        figures.host,
        figures.made_at,
    );
    for measure in MEASURES {
        page += &format!(
            "\n### {}\n\n{}",
            capital(measure.title),
            side_by_side(figures, measure)
        );
    }
    page
}

fn reference(figures: &Figures) -> String {
    format!("Figures are of the reference run `{}`", figures.run)
}

fn system_calls(name: &str, lesson: &Lesson) -> String {
    let mut text = String::from("## The system calls of one request\n\n");
    text += &format!("{}\n\n", squeezed(lesson.calls));
    let Some(traced) = super::traced().get(name) else {
        return text;
    };
    let options = match traced.options.as_str() {
        "" => String::new(),
        options => format!(" with `{options}`"),
    };
    text += &format!(
        "Traced on {}{options}, {}.\n\n",
        traced.system, traced.asked
    );
    for step in &traced.steps {
        text += &format!("**{}**\n\n", step_heading(step.about, &step.calls));
        let lines = call_lines(&step.calls, WIDTH).into_iter();
        let lines: Vec<String> = lines
            .map(|line| line.strip_prefix(CALLS_INDENT).unwrap_or(&line).to_owned())
            .collect();
        text += &block("text", &plain(&lines));
    }
    text
}

fn source(excerpt: &super::excerpt::Excerpt) -> String {
    const SIGNS: [char; 10] = ['①', '②', '③', '④', '⑤', '⑥', '⑦', '⑧', '⑨', '⑩'];
    let (mut code, mut notes) = (String::new(), String::new());
    let mut signs = SIGNS.iter();
    let lines = excerpt.lines().unwrap_or_default();
    for line in lines {
        code += &line.text;
        if let Some(note) = line.note
            && let Some(sign) = signs.next()
        {
            code += &format!("  // {sign}");
            notes += &format!("- {sign} {note}\n");
        }
        code.push('\n');
    }
    let mut text = format!("`{}`:\n\n{}", excerpt.source.path, block("rust", &code));
    if !notes.is_empty() {
        text += &format!("{notes}\n");
    }
    text
}

fn figures(model: &str) -> String {
    let figures = super::figures();
    let rows: Vec<&Row> = figures.of(model).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "## Measured\n\n{} ({}, {}). × is the value over that of the best of all models that served everybody, # the \
         rank among them.\n\n| clients |",
        reference(figures),
        figures.host,
        figures.made_at,
    );
    for measure in MEASURES {
        text += &format!(" {} |", measure.title);
    }
    text += &format!("\n|---:|{}\n", "---:|".repeat(MEASURES.len()));
    for row in rows {
        let clients = format::whole(f64::from(row.clients));
        let served = if row.served == row.clients {
            String::new()
        } else {
            format!("<br>{} served", format::whole(f64::from(row.served)))
        };
        text += &format!("| {clients}{served} |");
        for measure in MEASURES {
            let value = format::or_absent((measure.value)(row), measure.in_words);
            let standing = figures.standing(row, measure);
            let standing = standing.map_or(String::new(), |standing| format!("<br>{standing}"));
            text += &format!(" {value}{standing} |");
        }
        text.push('\n');
    }
    text.push('\n');
    text
}

/// One measure of all models under all crowds.
fn side_by_side(figures: &Figures, measure: &Measure) -> String {
    let mut crowds: Vec<u32> = figures.rows.iter().map(|row| row.clients).collect();
    crowds.sort_unstable();
    crowds.dedup();
    let mut text = String::from("| model |");
    for clients in &crowds {
        text += &format!(" {} |", format::counted(*clients, "client"));
    }
    text += &format!("\n|---|{}\n", "---:|".repeat(crowds.len()));
    let mut models: Vec<&str> = Vec::new();
    for row in &figures.rows {
        if !models.contains(&row.model.as_str()) {
            models.push(&row.model);
        }
    }
    for model in models {
        text += &format!("| [{model}]({model}.md) |");
        for clients in &crowds {
            let row = figures.of(model).find(|row| row.clients == *clients);
            text += &format!(
                " {} |",
                row.map_or(String::new(), |row| cell(figures, row, measure))
            );
        }
        text.push('\n');
    }
    text
}

fn cell(figures: &Figures, row: &Row, measure: &Measure) -> String {
    let value = format::or_absent((measure.value)(row), measure.in_words);
    match figures.standing(row, measure) {
        Some(standing) if standing.rank == 1 => format!("**{value}**"),
        None if row.served < row.clients => format!("({value})"),
        _ => value,
    }
}

fn exercise_of(number: usize, exercise: &Exercise) -> String {
    let Exercise {
        question,
        command,
        look_for,
    } = exercise;
    format!("{number}. {question}\n\n   ```sh\n   {command}\n   ```\n\n   {look_for}\n\n")
}

fn block(language: &str, text: &str) -> String {
    format!("```{language}\n{}\n```\n\n", text.trim_end())
}

fn plain(lines: &[String]) -> String {
    anstream::adapter::strip_str(&lines.join("\n")).to_string()
}

/// A text whose runs of spaces are one each.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| {
        first.to_uppercase().chain(chars).collect()
    })
}
