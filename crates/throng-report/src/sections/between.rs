//! Two runs compared, and a run with its repeat.

use super::comparison::{HINT, note, table, tables, tone};
use super::{ending, findings};
use crate::between::figures::places;
use crate::between::words::{made, notes};
use crate::between::{Between, Outcome, PartBetween, Question, Repeated, Subject};
use crate::document::{
    Block, Cell, Column, Document, Figures, Group, Kind, List, Medium, Role, Row, Section, Table,
    Text, Tone,
};
use crate::facts::{self, Fact};
use crate::figures::Figure;
use throng_record::format::{ABSENT, counted, hundredths, list};
use throng_record::metrics::Metric;
use throng_stats::Verdict;

/// Sentences that a page shows at once.
const AT_ONCE: usize = 6;

/// The most pairs of servers whose outcomes are shown with the answer.
const MOST_PAIRS: usize = 12;

/// How to read the verdicts of a reproduction.
const VERDICTS: &str = "Ratios compare the first server with the second, with 95 % intervals. A verdict is not reproduced if the \
    repeat contradicts it: the difference is in the other direction, or it is gone and the two intervals do not overlap. This \
    version of throng judges both runs.";

/// How to read limits.
const LIMITS: &str = "The highest value that passed. One limit is higher than the other if it passed a value that failed in the \
    other run; then it is not reproduced. The ratio has no interval, because a limit comes from one search.";

/// The document of two runs.
pub fn of_between(between: &Between) -> Document {
    let [earlier, later] = &between.runs;
    let is_diff = between.question == Question::Diff;
    let headings = headings(between);
    let mut sections: Vec<Section> = answer(between).into_iter().collect();
    if is_diff {
        sections.extend(runs(between));
    } else {
        sections.extend(claims(between));
    }
    for part in &between.parts {
        let own = if is_diff {
            vec![
                limits(between, part),
                comparison(part),
                figures(between, part),
                made_with(part),
            ]
        } else {
            vec![verdicts(part), limits(between, part)]
        };
        let shown = own.into_iter().flatten();
        if part.name.is_empty() {
            sections.extend(shown);
        } else {
            sections.push(Section {
                id: part.name.clone(),
                title: part.title.clone(),
                kind: Kind::Part,
                blocks: Vec::new(),
                sections: shown.collect(),
                omit: &[],
            });
        }
    }
    if is_diff {
        for (name, run) in headings.iter().zip(&between.runs) {
            let (id, title) = (format!("warnings-{name}"), format!("Warnings of {name}"));
            let section = Section::of(&id, &title, findings::of_run(&run.findings));
            sections.extend(section.map(|section| section.except(&[Medium::Terminal])));
        }
        sections.extend(repeat(between));
    } else {
        sections.extend(differences(between));
    }
    let (title, question, tagline) = if is_diff {
        (
            "diff",
            format!(
                "What changed from {} to {}?",
                earlier.directory, later.directory
            ),
            "two runs compared",
        )
    } else {
        (
            "reproduce",
            "Does the repeat reach the same verdicts?".to_owned(),
            "a run and its repeat",
        )
    };
    let badges = headings.iter().zip(&between.runs).flat_map(|(name, run)| {
        let badge = Text::default()
            .strong(*name)
            .plain(format!(" {}", run.directory));
        std::iter::once(badge).chain(ending(run.ending))
    });
    Document {
        title: title.to_owned(),
        question,
        tagline,
        badges: badges.collect(),
        sections,
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The names of the two runs in tables.
fn headings(between: &Between) -> [&'static str; 2] {
    match between.question {
        Question::Diff => ["A", "B"],
        Question::Reproduction => ["Original", "Repeat"],
    }
}

fn answer(between: &Between) -> Option<Section> {
    let roles = std::iter::once(Role::Lead).chain(std::iter::repeat(Role::Body));
    let headline = between.headline.iter().zip(roles);
    let mut blocks: Vec<Block> = headline
        .map(|(sentence, role)| Block::paragraph(role, sentence))
        .collect();
    let warning = |text: String| Block::Warning(text, String::new());
    let notes = notes(between);
    match between.question {
        Question::Diff => {
            if between.caveats.is_empty() {
                blocks.push(Block::Paragraph(Role::Body, made(between)));
            }
            blocks.extend(between.caveats.iter().cloned().map(warning));
            let picture =
                first_picture(between).map(|figure| Block::Picture(Box::new(figure.clone())));
            let no_files = &[Medium::Markdown, Medium::Terminal];
            blocks.push(Block::Except(no_files, picture.into_iter().collect()));
            let sentences = between.sentences.iter();
            blocks.push(Block::List(List {
                items: sentences.map(|text| (text.into(), Vec::new())).collect(),
                at_once: Some(AT_ONCE),
            }));
            blocks.extend(
                notes
                    .into_iter()
                    .map(|note| Block::paragraph(Role::Fine, note)),
            );
        }
        Question::Reproduction => {
            let table = outcomes(between).map(Block::Table);
            let shown = table.into_iter().collect();
            blocks.push(Block::Except(&[Medium::Markdown], shown));
            let failed = between.sentences.iter();
            blocks.extend(failed.map(|sentence| warning(format!("Not reproduced: {sentence}."))));
            blocks.extend(
                notes
                    .into_iter()
                    .map(|note| Block::paragraph(Role::Body, note)),
            );
        }
    }
    let section = Section::of("answer", "The answer", blocks)?;
    Some(Section {
        kind: Kind::Answer,
        ..section
    })
}

/// The outcomes of all pairs of a part, a row per pair and a column per metric, if they are few.
fn outcomes(between: &Between) -> Option<Table> {
    let [part] = between.parts.as_slice() else {
        return None;
    };
    let mut loads = part.pairs.iter().map(|pair| pair.clients);
    let first = loads.next();
    let is_one_load = loads.all(|clients| Some(clients) == first);
    let mut metrics: Vec<&Metric> = Vec::new();
    let mut of_pairs: Vec<(String, Vec<&Repeated>)> = Vec::new();
    for repeated in &part.verdicts {
        let Subject::Pair {
            clients,
            server,
            reference,
            metric,
        } = &repeated.subject
        else {
            continue;
        };
        if !metrics.contains(metric) {
            metrics.push(metric);
        }
        let with = if is_one_load {
            String::new()
        } else {
            format!(", {}", counted(*clients, "client"))
        };
        let pair = format!("{server} and {reference}{with}");
        match of_pairs.iter_mut().find(|(known, _)| *known == pair) {
            Some((_, own)) => own.push(repeated),
            None => of_pairs.push((pair, vec![repeated])),
        }
    }
    let row = |(pair, own): &(String, Vec<&Repeated>)| {
        let cell = |metric: &&Metric| {
            let mut all = own.iter();
            let found = all.find(|one| one.subject.title() == metric.label);
            let tone = found.map_or(Tone::Quiet, |one| tone_of(one.outcome));
            let text = match found.map(|one| one.outcome) {
                Some(Outcome::Held) => "yes",
                Some(Outcome::NotHeld) => "no",
                Some(Outcome::Undecided) => "undecided",
                Some(Outcome::NotComparable | Outcome::NoVerdict) | None => ABSENT,
            };
            let has_other_size = found.is_some_and(|one| one.other_size);
            let detail = if has_other_size { "other size" } else { "" };
            Cell::plain(text).toned(tone).with(detail)
        };
        Row::of(pair.as_str(), metrics.iter().map(cell).collect())
    };
    let labels = (1..).zip(&metrics);
    let of_metrics = labels.map(|(drop, metric)| Column::text(metric.label).dropped(drop));
    let columns = std::iter::once(Column::text("Reproduced?")).chain(of_metrics);
    let rows: Vec<Row> = of_pairs.iter().map(row).collect();
    let are_few = (1..=MOST_PAIRS).contains(&rows.len());
    are_few.then(|| Table::of("Outcomes", columns.collect(), rows))
}

/// The ratios shown with the answer, if there is a single part.
fn first_picture(between: &Between) -> Option<&Figure> {
    match between.parts.as_slice() {
        [only] => only.figures.first(),
        _ => None,
    }
}

fn runs(between: &Between) -> Option<Section> {
    let is_unequal = |fact: &&Fact| {
        let [a, b] = fact.texts();
        a != b
    };
    let unequal: Vec<Fact> = between.facts.iter().filter(is_unequal).cloned().collect();
    let mut blocks = vec![Block::Table(of_facts("The two runs", &unequal))];
    blocks.extend(only("Parts", &between.only_in));
    Section::of("runs", "The two runs", blocks)
}

/// Facts about both runs, with differences marked.
fn of_facts(caption: &str, facts: &[Fact]) -> Table {
    let row = |fact: &Fact| {
        let (word, tone) = if fact.differs() {
            ("differs", Tone::Bad)
        } else {
            ("", Tone::Plain)
        };
        let cells = fact.texts().map(Cell::plain).into_iter();
        Row::of(
            fact.title(),
            cells.chain([Cell::plain(word).toned(tone)]).collect(),
        )
    };
    let columns = ["", "A", "B", ""].map(Column::text).to_vec();
    Table::of(caption, columns, facts.iter().map(row).collect())
}

fn only(what: &str, only: &[Vec<String>; 2]) -> Vec<Block> {
    let both = ["A", "B"].into_iter().zip(only);
    let some = both.filter(|(_, names)| !names.is_empty());
    some.map(|(run, names)| {
        let text = format!("{what} only in {run}: {}.", list(names));
        Block::paragraph(Role::Fine, text)
    })
    .collect()
}

fn made_with(part: &PartBetween) -> Option<Section> {
    let title = "Settings and machines";
    let mut blocks = vec![Block::Table(of_facts(title, &part.facts))];
    blocks.extend(only("Servers and numbers of clients", &part.only_in));
    Some(Section::of("conditions", title, blocks)?.except(&[Medium::Terminal]))
}

fn comparison(part: &PartBetween) -> Option<Section> {
    let headings = ["A", "B"];
    let mut blocks = vec![Block::paragraph(Role::Hint, HINT)];
    for server in &part.servers {
        let own = part.pairs.iter().filter(|pair| pair.server == *server);
        let pairs: Vec<_> = own.collect();
        blocks.extend(tables(&pairs, headings));
        let rows = pairs
            .iter()
            .map(|pair| (pair.clients, pair.more.as_slice()));
        let caption = format!("More metrics of {server}");
        let more = Block::Table(table(&caption, headings, rows));
        blocks.push(Block::Fold(caption.into(), vec![more]));
    }
    blocks.push(note());
    Section::of("comparison", "Comparison", blocks)
}

/// All figures but the one that is shown with the answer.
fn figures(between: &Between, part: &PartBetween) -> Option<Section> {
    let shown = usize::from(first_picture(between).is_some());
    let key = part
        .servers
        .iter()
        .map(|name| (places(name, &part.servers).to_vec(), name.clone()));
    let figures = Figures {
        key: key.collect(),
        figures: part.figures.iter().skip(shown).cloned().collect(),
    };
    let section = Section::of("figures", "Figures", vec![Block::Figures(figures)])?;
    Some(section.except(&[Medium::Markdown, Medium::Terminal]))
}

fn repeat(between: &Between) -> Option<Section> {
    let both = headings(between).into_iter().zip(&between.runs);
    let commands = both.flat_map(|(name, run)| {
        let command = facts::command_line(&run.arguments);
        [Block::Heading(name.into()), Block::Code(command)]
    });
    let source = Block::paragraph(Role::Hint, "This page was made from both records.");
    let blocks = commands.chain([source]).collect();
    Some(Section::of("repeat", "How to repeat", blocks)?.except(&[Medium::Terminal]))
}

fn limits(between: &Between, part: &PartBetween) -> Option<Section> {
    let Subject::Limit { unit, .. } = part.limits.first()?.subject else {
        return None;
    };
    let is_diff = between.question == Question::Diff;
    let rows = part.limits.iter().map(|limit| {
        let last = if is_diff {
            direction(limit)
        } else {
            outcome(limit)
        };
        let ratio = limit.ratio.map_or_else(|| ABSENT.to_owned(), hundredths);
        let seen = limit.seen().map(Cell::plain).into_iter();
        let cells = seen.chain([Cell::plain(ratio), last]);
        Row::of(limit.subject.title(), cells.collect())
    });
    let [earlier, later] = headings(between);
    let [a, b, ratio] = [earlier, later, "Ratio"].map(Column::number);
    let server = Column::text(format!("Server, {unit}"));
    let last = Column::text(if is_diff { "B is" } else { "Outcome" });
    let columns = vec![server, a, b, ratio, last];
    let table = Table::of("Limits of both", columns, rows.collect());
    let blocks = vec![Block::paragraph(Role::Hint, LIMITS), Block::Table(table)];
    Section::of("limits", "Limits", blocks)
}

/// The verdict on the later limit.
fn direction(limit: &Repeated) -> Cell {
    let verdict = limit.verdict.unwrap_or(Verdict::NotComparable);
    let word = match verdict {
        Verdict::Better => "higher",
        Verdict::Worse => "lower",
        Verdict::Equivalent => "equal",
        Verdict::NotComparable => "not comparable",
        Verdict::Inconclusive => "inconclusive",
    };
    Cell::plain(word).toned(tone(verdict)).with(limit.why())
}

fn tone_of(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Held => Tone::Good,
        Outcome::NotHeld => Tone::Bad,
        Outcome::Undecided | Outcome::NotComparable | Outcome::NoVerdict => Tone::Quiet,
    }
}

/// Whether the earlier result held.
fn outcome(repeated: &Repeated) -> Cell {
    let tone = tone_of(repeated.outcome);
    let size = if repeated.other_size {
        ", other size"
    } else {
        ""
    };
    let words = repeated.outcome.text().to_owned() + size;
    Cell::plain(words).toned(tone).with(repeated.why())
}

fn row(repeated: &Repeated) -> Row {
    let seen = repeated.seen().map(Cell::plain).into_iter();
    Row::of(
        repeated.subject.title(),
        seen.chain([outcome(repeated)]).collect(),
    )
}

fn columns(first: &str) -> Vec<Column> {
    [first, "Original", "Repeat", "Outcome"]
        .map(Column::text)
        .to_vec()
}

/// One table per pair of servers.
fn verdicts(part: &PartBetween) -> Option<Section> {
    let mut of_pairs: Vec<([&str; 2], Vec<Group>)> = Vec::new();
    for repeated in &part.verdicts {
        let Subject::Pair {
            clients,
            server,
            reference,
            ..
        } = &repeated.subject
        else {
            continue;
        };
        let (names, title) = ([server.as_str(), reference], counted(*clients, "client"));
        if !of_pairs.iter().any(|(known, _)| *known == names) {
            of_pairs.push((names, Vec::new()));
        }
        let mut all = of_pairs.iter_mut();
        let Some((_, groups)) = all.find(|(known, _)| *known == names) else {
            continue;
        };
        match groups.last_mut() {
            Some(group) if group.title == title => group.rows.push(row(repeated)),
            _ => groups.push(Group {
                title,
                rows: vec![row(repeated)],
            }),
        }
    }
    let mut blocks = vec![Block::paragraph(Role::Hint, VERDICTS)];
    for ([server, reference], groups) in of_pairs {
        let caption = format!("{server} compared with {reference}");
        blocks.push(Block::Heading(caption.as_str().into()));
        blocks.push(Block::Table(Table {
            caption,
            columns: columns(""),
            groups,
            ..Table::default()
        }));
    }
    Section::of("verdicts", "Verdicts", blocks)
}

fn claims(between: &Between) -> Option<Section> {
    let rows = between.claims.iter().map(row).collect();
    let table = Table::of("Claims", columns("Claim"), rows);
    Section::of("claims", "Claims", vec![Block::Table(table)])
}

fn differences(between: &Between) -> Option<Section> {
    let title = "Differences between the runs";
    let rows = between
        .differences
        .iter()
        .map(|fact| Row::of(fact.title(), fact.texts().map(Cell::plain).to_vec()));
    let columns = ["", "Original", "Repeat"].map(Column::text).to_vec();
    let table = Block::Table(Table::of(title, columns, rows.collect()));
    let changed = between
        .repeated()
        .any(|(_, repeated)| matches!(repeated.outcome, Outcome::NotHeld | Outcome::Undecided));
    let why = changed.then_some("These differences may explain why a verdict changed.");
    let blocks = if between.differences.is_empty() {
        vec![Block::paragraph(
            Role::Body,
            "The records show no difference.",
        )]
    } else {
        let hint = why.map(|why| Block::paragraph(Role::Hint, why));
        hint.into_iter().chain([table]).collect()
    };
    Section::of("differences", title, blocks)
}
