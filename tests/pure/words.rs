//! Texts read well: short sentences, the active voice, and the terms of the field.

mod comments;
mod pages;
mod reports;

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
/// Maximum words of a sentence that does not count as long.
const LONG: usize = 30;
/// Maximum words of a sentence on average.
const MEAN: f64 = 14.0;
/// Maximum shares of sentences that are long, and of those in the passive voice.
const MOST_LONG: f64 = 0.05;
const MOST_PASSIVE: f64 = 0.25;

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

/// Text without markup: code becomes one word, a link its text.
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

/// Whether a form of "to be" precedes a participle.
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

/// Fails if sentences, each with the name of its text, contain a banned phrase, or are too long or too often passive
/// on average.
fn read_well(all: &[(String, String)], banned: &[&str]) {
    let mut wrong = Vec::new();
    for (name, sentence) in all {
        let lower = format!("{} ", sentence.to_lowercase());
        for phrase in banned.iter().filter(|phrase| lower.contains(**phrase)) {
            wrong.push(format!("{name}: `{phrase}` in{sentence}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let count = all.len() as f64;
    let mean = all.iter().map(|(_, text)| words(text)).sum::<usize>() as f64 / count;
    let long: Vec<_> = all.iter().filter(|(_, text)| words(text) > LONG).collect();
    let passive = all.iter().filter(|(_, text)| is_passive(text)).count() as f64 / count;
    println!(
        "{count} sentences of {mean:.1} words; {} are long, a share of {passive:.2} is passive",
        long.len()
    );
    assert!(mean <= MEAN, "sentences have {mean:.1} words on average");
    assert!(
        long.len() as f64 <= MOST_LONG * count,
        "long sentences: {long:#?}"
    );
    assert!(
        passive <= MOST_PASSIVE,
        "a share of {passive:.2} is passive"
    );
}

/// Phrases that must not occur in help and messages either.
const BANNED_IN_MESSAGES: [&str; 13] = [
    " ask for ",
    " asked for ",
    " begun ",
    " broke ",
    " does least",
    " goes on",
    " held ",
    " code is no ",
    " is none",
    " run already",
    " stands ",
    " there are: ",
    " turned away",
];

#[test]
fn help_reads_well() {
    let mut all = Vec::new();
    let mut whole = throng::cli::command();
    whole.build();
    let commands = std::iter::once(&whole).chain(whole.get_subcommands());
    for command in commands.filter(|command| !command.is_hide_set()) {
        let notes = command.get_after_long_help().or(command.get_after_help());
        let notes = notes.map(ToString::to_string).unwrap_or_default();
        let listed = |paragraph: &&str| {
            !paragraph.starts_with("Examples:") && !paragraph.starts_with("Exit codes:")
        };
        let notes = notes.split("\n\n").filter(listed).map(str::to_owned);
        let options = command
            .get_arguments()
            .filter(|option| !option.is_hide_set());
        let options = options.filter_map(|option| option.get_long_help().or(option.get_help()));
        let abouts = command.get_about().into_iter();
        let texts = abouts.chain(options).map(ToString::to_string).chain(notes);
        for text in texts {
            // The contents of brackets and parentheses are not part of a sentence.
            let text = text
                .split(" [default:")
                .next()
                .unwrap_or_default()
                .to_owned()
                + ".";
            let found = sentences(&text).into_iter();
            all.extend(found.map(|sentence| (command.get_name().to_owned(), sentence)));
        }
    }
    assert!(all.len() > 200, "{} sentences", all.len());
    read_well(&all, &[&BANNED[..], &BANNED_IN_MESSAGES].concat());
}

#[test]
fn messages_read_well() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = "tests/processes/cli/snapshots/processes__cli__messages__messages.snap";
    let snapshot = std::fs::read_to_string(root.join(name)).expect("the snapshot can be read");
    let mut all = Vec::new();
    for line in snapshot.lines() {
        let Some(message) = line.strip_prefix("  error: ") else {
            continue;
        };
        // Clap's text before the reason has only names and values.
        let message = match message.split_once("invalid value '") {
            Some((_, rest)) => rest.split_once("': ").map_or("", |(_, reason)| reason),
            None => message,
        };
        for clause in message.split("; ") {
            let found = sentences(clause).into_iter();
            all.extend(found.map(|sentence| (line.to_owned(), sentence)));
        }
    }
    assert!(all.len() > 100, "{} clauses", all.len());
    read_well(&all, &[&BANNED[..], &BANNED_IN_MESSAGES].concat());
}

#[test]
fn sentences_are_found() {
    let page = "# No heading\n\nOne `a. b` is built here. throng [stops](x.md) it.\n\n- An item of three.\n\
                ```\nno code at all\n```\n| no | table |\n<!-- no\ncomment -->\n";
    let found = sentences(page);
    let expected = [
        " One code is built here.",
        " throng stops it.",
        " An item of three.",
    ];
    assert_eq!(found, expected);
    assert!(is_passive(&found[0]) && !is_passive(&found[1]));
    assert_eq!(words(&found[2]), 4);
}
