//! docs/reports: a page for each study of a published report, made from its reference run in `results/`.

use std::collections::BTreeMap;
use std::fs;

use throng::report::document::{Document, markdown};
use throng::report::render::still;
use throng::report::sections::of_study;

use super::findings::{records, rejudged, root};

/// Sections of the study's own report that its page has.
const SECTIONS: [&str; 3] = ["answer", "verdicts", "published"];
/// Maximum number of words outside tables and pictures.
const MOST_WORDS: usize = 400;

/// The pages and their pictures, by file name.
fn pages() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (name, record) in records() {
        let loaded = rejudged(&name, &record);
        if loaded.study.source.is_none() {
            continue;
        }
        let report = loaded.report().expect("histograms can be read");
        let whole = of_study(&report);
        let sections = whole
            .sections
            .into_iter()
            .filter(|section| SECTIONS.contains(&section.id.as_str()));
        let page = Document {
            sections: sections.collect(),
            ..whole
        };
        let (mut text, pictures) = markdown::elsewhere(&page, Some(&name));
        let path = record.strip_prefix(root()).expect("it is below").display();
        text += &format!(
            "\n## How to repeat\n\n```sh\nthrong run {name}\n```\n\nThis run is recorded in [{path}](../../{path}).\n"
        );
        files.insert(format!("{name}.md"), text);
        let drawn = pictures.into_iter();
        files.extend(drawn.map(|(file, figure)| (file, still::svg(&figure))));
    }
    files
}

#[test]
fn the_pages_of_the_reports_are_current_and_short() {
    let place = root().join("docs/reports");
    let files = pages();
    if std::env::var_os("UPDATE_README").is_some() {
        fs::remove_dir_all(&place).ok();
        fs::create_dir_all(&place).expect("a directory");
        for (name, text) in &files {
            fs::write(place.join(name), text).expect("it can be written");
        }
    }
    for (name, text) in &files {
        let kept = fs::read_to_string(place.join(name)).ok();
        assert!(
            kept.as_ref() == Some(text),
            "docs/reports/{name}: run UPDATE_README=1 cargo test --test pure readme"
        );
        let prose = text.lines().filter(|line| !line.starts_with(['|', '!']));
        let words = prose.flat_map(str::split_whitespace).count();
        assert!(
            text.starts_with("<svg") || words <= MOST_WORDS,
            "{name} has {words} words"
        );
    }
    let kept = fs::read_dir(&place).expect("the directory can be read");
    for entry in kept {
        let name = entry
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .into_owned();
        assert!(
            files.contains_key(&name),
            "docs/reports/{name} belongs to no study"
        );
    }
}
