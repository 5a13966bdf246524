//! Pages read well: short sentences, the active voice, the terms of the field, and answers where newcomers look.

use std::path::{Path, PathBuf};

/// Pages and directories of pages, all of which are checked.
const PAGES: [&str; 14] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "THREATS.md",
    "benches",
    "benches/generators",
    "benches/peers",
    "docs",
    "docs/how-to",
    "docs/models",
    "fuzz",
    "results",
    "tests",
];
/// Phrases that a native engineer would not use, or not in this sense.
const BANNED: [&str; 70] = [
    " a reply costs",
    " alike ",
    " anew",
    " are asked for",
    " be heard",
    " beside ",
    " besides ",
    " breaks when ",
    " by turns",
    " clients a second",
    " come to an end",
    " comes to no end",
    " costs an answer",
    " costs least",
    " costs most",
    " crowd",
    " dear ",
    " dearer",
    " for ever ",
    " for want of ",
    " gave way",
    " give way",
    " gives way",
    " goes on with",
    " gone on",
    " heard ",
    " heeded",
    " held against",
    " hence",
    " in vain",
    " is asked for",
    " is no number",
    " is no time",
    " is said",
    " lonely",
    " mended",
    " nobody",
    " none of which",
    " of which ",
    " of whom ",
    " of whose",
    " one a client",
    " put to ",
    " put together",
    " puts together",
    " replies a second",
    " requests a second",
    " said ",
    " so long as ",
    " somebody",
    " stands beside",
    " stands for",
    " stands in",
    " system calls a request",
    " tell of ",
    " tells of ",
    " that is there",
    " the other way round",
    " thereby",
    " those who",
    " times a second",
    " told",
    " turned away",
    " turns away",
    " what there is",
    " which way of ",
    " whoever",
    " whom",
    " with whom",
    " word for",
];
/// The most words that a sentence may have without counting as long.
const LONG: usize = 30;
/// The most words of a sentence on average.
const MEAN: f64 = 14.0;
/// The largest shares of sentences that are long, and in the passive voice.
const MOST_LONG: f64 = 0.05;
const MOST_PASSIVE: f64 = 0.25;

/// A page without the parts that are generated from the reference runs: their words are those of the records.
fn written(page: &str) -> String {
    let mut is_generated = false;
    let lines = page.lines().filter(|line| {
        is_generated |= line.starts_with("<!-- ") && line.contains("reference run");
        let is_kept = !is_generated;
        is_generated &= !line.starts_with("<!-- end of ");
        is_kept
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The sentences of a page, without code, tables, headings and the targets of links.
fn sentences(page: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let (mut is_code, mut is_comment) = (false, false);
    for line in page.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        is_comment |= line.starts_with("<!--");
        let is_fence = line.starts_with("```");
        let is_other = is_code || is_comment || is_fence || line.starts_with(['#', '|', '!']);
        is_comment &= !line.ends_with("-->");
        let item = line.strip_prefix("- ");
        if line.is_empty() || is_other || item.is_some() {
            blocks.push(String::new());
        }
        if !is_other {
            let last = blocks.last_mut().expect("there is always one");
            *last += item.unwrap_or(line);
            last.push(' ');
        }
    }
    let texts = blocks.iter().map(|block| plain(block));
    texts.flat_map(|text| split(&text)).collect()
}

/// Text without marks: code becomes one word, a link what it is called.
fn plain(text: &str) -> String {
    let without_code: String = text
        .split('`')
        .enumerate()
        .map(|(place, part)| if place % 2 == 0 { part } else { "code" })
        .collect();
    let mut plain = String::new();
    let mut rest = without_code.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        plain += before;
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain += rest;
    plain.replace(['*', '['], "")
}

fn split(text: &str) -> Vec<String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        let last = sentences.last_mut().expect("there is always one");
        *last += &format!(" {word}");
        let end = word.trim_end_matches(['"', ')']);
        if end.ends_with(['.', '!', '?', ':']) {
            sentences.push(String::new());
        }
    }
    sentences.retain(|sentence| words(sentence) >= 3);
    sentences
}

fn words(sentence: &str) -> usize {
    let words = sentence.split_whitespace();
    words
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
}

/// The cells of a page's tables, without what is quoted: throng or others print that.
fn cells(page: &str) -> Vec<String> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    let cells = rows.flat_map(|row| row.split('|')).map(plain);
    cells
        .map(|cell| cell.split('"').step_by(2).collect::<String>())
        .map(|cell| format!(" {}", cell.trim()))
        .collect()
}

/// Whether a form of "to be" stands before a participle.
fn is_passive(sentence: &str) -> bool {
    const IRREGULAR: [&str; 12] = [
        "built", "done", "given", "held", "kept", "known", "made", "put", "sent", "shown", "taken",
        "written",
    ];
    let words: Vec<&str> = sentence.split_whitespace().collect();
    words.windows(2).any(|pair| {
        let second = pair[1].trim_end_matches([',', '.', ';', ':']);
        let participle = second.ends_with("ed") && second.len() > 4 || IRREGULAR.contains(&second);
        participle && ["is", "are", "was", "were", "be", "been", "being"].contains(&pair[0])
    })
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = Vec::new();
    for page in PAGES.map(|page| root.join(page)) {
        if page.is_file() {
            pages.push(page);
            continue;
        }
        let entries = std::fs::read_dir(&page).expect("a directory of pages");
        let entries = entries.map(|entry| entry.expect("an entry").path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|kind| kind == "md")));
    }
    pages
}

fn text_of(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// How sentences read, in numbers.
struct Counts {
    sentences: usize,
    mean: f64,
    long: Vec<String>,
    passive: f64,
}

impl Counts {
    fn of(sentences: &[String]) -> Self {
        let count = sentences.len().max(1) as f64;
        let long = sentences.iter().filter(|text| words(text) > LONG);
        let passive = sentences.iter().filter(|text| is_passive(text)).count();
        Self {
            sentences: sentences.len(),
            mean: sentences.iter().map(|text| words(text)).sum::<usize>() as f64 / count,
            long: long.cloned().collect(),
            passive: passive as f64 / count,
        }
    }

    /// What is wrong. A page of few sentences may have one that is long, and three in the passive voice.
    fn faults(&self) -> Vec<String> {
        let count = self.sentences as f64;
        let (mean, passive) = (self.mean, self.passive);
        let mut faults = Vec::new();
        if mean > MEAN {
            faults.push(format!("sentences have {mean:.1} words on average"));
        }
        if self.long.len() as f64 > (MOST_LONG * count).max(1.0) {
            faults.push(format!("long sentences: {:#?}", self.long));
        }
        if passive * count > (MOST_PASSIVE * count).max(3.0) {
            faults.push(format!("a share of {passive:.2} is passive"));
        }
        faults
    }
}

#[test]
fn pages_read_well() {
    let mut all = Vec::new();
    let mut wrong = Vec::new();
    for page in pages() {
        let text = written(&text_of(&page));
        let name = page.display();
        let sentences = sentences(&text);
        for text in sentences.iter().chain(&cells(&text)) {
            let lower = format!("{} ", text.to_lowercase());
            let banned = BANNED.iter().filter(|phrase| lower.contains(**phrase));
            wrong.extend(banned.map(|phrase| format!("{name}: `{phrase}` in{text}")));
        }
        let faults = Counts::of(&sentences).faults();
        wrong.extend(faults.iter().map(|fault| format!("{name}: {fault}")));
        all.extend(sentences);
    }
    let counts = Counts::of(&all);
    println!(
        "{} sentences of {:.1} words; {} are long, a share of {:.2} is passive",
        counts.sentences,
        counts.mean,
        counts.long.len(),
        counts.passive
    );
    wrong.extend(counts.faults());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of tests are for developers.
#[test]
fn pages_for_users_name_no_tests() {
    for page in pages() {
        let place = page.strip_prefix(env!("CARGO_MANIFEST_DIR"));
        let place = place.expect("a page of the repository");
        let is_for_users = place.starts_with("docs") || place == Path::new("README.md");
        let named = text_of(&page).contains(".rs::");
        assert!(!(is_for_users && named), "{}", page.display());
    }
}

/// What a newcomer asks, and where the answer is: on the first two screens of the README, or at the top of a page
/// that these link to.
#[test]
fn a_newcomer_finds_answers() {
    const SCREENS: usize = 90;
    let answers = [
        (
            "What is it?",
            "README.md",
            "Benchmark network servers under many concurrent clients",
        ),
        ("Can it test my server?", "README.md", "Your server or ours"),
        (
            "How do I install it?",
            "README.md",
            "cargo install --path .",
        ),
        (
            "Is it faster than wrk?",
            "README.md",
            "as many requests](docs/comparison.md) per CPU-second as wrk",
        ),
        ("Does it do TLS?", "README.md", "for HTTP, HTTPS"),
        (
            "What is a model?",
            "README.md",
            "is a way to wait for many clients",
        ),
        ("How do I gate CI?", "docs/ci.md", "--fail-if-slower 10%"),
        (
            "What does inconclusive mean?",
            "README.md",
            "*inconclusive*: too much noise",
        ),
        ("Where is the data?", "README.md", "All data is in"),
        (
            "Can it hurt my machine?",
            "README.md",
            "throng needs no root",
        ),
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = |page: &str, lines| {
        let text = text_of(&root.join(page));
        let words = text.lines().take(lines).flat_map(str::split_whitespace);
        words.collect::<Vec<_>>().join(" ")
    };
    let readme = top("README.md", SCREENS);
    for (question, page, answer) in answers {
        let is_linked = page == "README.md" || readme.contains(&format!("]({page})"));
        let found = if page == "README.md" {
            readme.contains(answer)
        } else {
            top(page, SCREENS / 2).contains(answer)
        };
        assert!(is_linked && found, "{question} {page}");
    }
}

#[test]
fn the_readme_is_short() {
    let text = include_str!("../../README.md");
    let count = text.split_whitespace().count();
    assert!(count <= 1400, "README.md has {count} words");
    let first_screens: String = text.lines().take(40).collect();
    assert!(
        first_screens.contains("## Installation"),
        "it has to come early"
    );
}

#[test]
fn sentences_are_found() {
    let page = "# No heading\n\nOne `a. b` is built here. throng [stops](x.md) it.\n\n- An item of three.\n\
                ```\nno code at all\n```\n| no | table |\n<!-- no\ncomment -->\n<!-- a: of the reference run -->\n\
                Nothing of a record.\n<!-- end of a -->\n";
    let found = sentences(&written(page));
    let expected = [
        " One code is built here.",
        " throng stops it.",
        " An item of three.",
    ];
    assert_eq!(found, expected);
    assert!(is_passive(&found[0]) && !is_passive(&found[1]));
    assert_eq!(words(&found[2]), 4);
}
