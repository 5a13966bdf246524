//! The pages about models: their generated parts are current, and their notes are about lines of the source.

use std::collections::BTreeSet;
use std::path::Path;

use throng::learn::generated::parts;
use throng::serve::Model;
use throng::serve::models::MODELS;

use super::{demand_current, reference};

/// The directory of the source that pages quote.
const SOURCE: &str = "crates/throng-serve/src/models";

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The page about a model.
fn page(model: &Model) -> String {
    format!("docs/models/{}.md", model.info.name)
}

#[test]
fn the_pages_about_models_are_current() {
    let names = ["idea", "card", "calls", "source", "figures"];
    let mut pages = BTreeSet::from(["docs/models/README.md".to_owned()]);
    for model in MODELS.iter().copied() {
        demand_current(&page(model), &names, |part| match part.name {
            "idea" => idea(model),
            "card" => card(model),
            // Traced by tests/processes/book.rs.
            "calls" => part.text.to_owned(),
            "source" => source(part.about),
            _ => reference::of_model(model.info.name),
        });
        pages.insert(page(model));
    }
    demand_current(
        "docs/models/README.md",
        &["models", "figures"],
        |part| match part.name {
            "models" => models(),
            _ => reference::side_by_side(),
        },
    );
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/models");
    for entry in directory.read_dir().expect("the pages are there") {
        let name = entry.expect("it can be read").file_name();
        let name = format!("docs/models/{}", name.to_string_lossy());
        assert!(pages.contains(&name), "{name} is about no model");
    }
}

fn idea(model: &Model) -> String {
    let summary = reference::capital(model.info.summary);
    format!("{summary}.\n\n{}\n", model.card.idea)
}

fn card(model: &Model) -> String {
    let card = model.card;
    let terms = [
        ("consists of", card.processes),
        ("good at", card.good_at),
        ("weak when", card.breaks_when),
        ("limit", card.limit),
        ("to read", card.source),
    ];
    let terms = terms.iter().filter(|(_, text)| !text.is_empty());
    let rows = terms.map(|(term, text)| format!("| **{term}** | {text} |\n"));
    format!("| | |\n|---|---|\n{}", rows.collect::<String>())
}

/// The function of a file whose text after `fn` begins like this: "epoll.rs run(mut self".
fn source(about: &str) -> String {
    let (file, function) = about.split_once(' ').expect("a file and a function");
    let path = format!("{SOURCE}/{file}");
    let text = read(&path);
    let all: Vec<&str> = text.lines().collect();
    let opening = format!("fn {function}");
    let found = (0..all.len()).filter(|line| all[*line].contains(&opening));
    let [first] = found.collect::<Vec<usize>>()[..] else {
        panic!("`{opening}` is not found once in {path}");
    };
    let indent = all[first].len() - all[first].trim_start().len();
    let end = format!("{}}}", " ".repeat(indent));
    let length = all[first..].iter().position(|line| *line == end);
    let lines = &all[first..=first + length.expect("a function ends")];
    let lines = lines.iter().map(|line| line.get(indent..).unwrap_or(""));
    let name = function.split(['(', '<']).next().unwrap_or_default();
    let lines = lines.collect::<Vec<&str>>().join("\n");
    format!("## `{name}()` in `{path}`\n\n```rust\n{lines}\n```\n")
}

fn models() -> String {
    let rows = MODELS.iter().map(|model| {
        let (info, waits_in) = (model.info, model.card.waits_in);
        format!(
            "| [{0}]({0}.md) | {1} | {waits_in} |\n",
            info.name, info.summary
        )
    });
    let head = "| model | how it works | waits in |\n|---|---|---|\n";
    head.to_owned() + &rows.collect::<String>()
}

#[test]
fn every_note_is_about_one_line_of_source() {
    for model in MODELS {
        let page = read(&page(model));
        let mut rest = page.as_str();
        for part in parts(&page).iter().filter(|part| part.name == "source") {
            let (_, after) = rest.split_once(part.text).expect("it is in the page");
            rest = after;
            let notes = after.lines().skip(2);
            let notes = notes.take_while(|line| !line.is_empty());
            for note in notes.filter_map(|line| line.strip_prefix("- ")) {
                let at = note
                    .strip_prefix('`')
                    .and_then(|note| note.split_once("`: "));
                let (at, _) = at.unwrap_or_else(|| panic!("{}: {note}", part.about));
                let lines = part.text.lines().filter(|line| line.contains(at));
                assert_eq!(lines.count(), 1, "{}: `{at}`", part.about);
            }
        }
    }
}
