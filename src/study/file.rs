//! Reads the file of a study: keys of the study, defaults for its parts, and keys of the parts themselves.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::part::{Part, Places};
use super::place::Source;
use super::{Study, StudyError};
use crate::record::Claim;
use crate::registry;
use crate::spec::LoadSpec;

/// Keys of the study itself. All other keys are defaults for its parts.
const OF_STUDY: [&str; 8] = [
    "name",
    "question",
    "summary",
    "source",
    "changed",
    "custom-load",
    "claim",
    "part",
];
/// Keys that only a part can have.
const OF_PART: [&str; 7] = [
    "name",
    "title",
    "question",
    "answer",
    "kind",
    "published",
    "scene",
];
/// Keys that are, or contain, tables of options, which are merged key by key.
const TABLES: [&str; 4] = ["load", "limit", "quick", "full"];
/// Keys that only parts with trials can have.
const OF_TRIALS: [&str; 9] = [
    "clients",
    "slices",
    "without",
    "options",
    "runs",
    "profiled-runs",
    "latency-at",
    "control",
    "ceiling",
];
/// Keys that only searches for a limit can have.
const OF_SEARCHES: [&str; 1] = ["limit"];
/// Defaults of a search, which are the same as in `throng limit`.
const OF_A_SEARCH: [(&str, &str); 2] = [("duration", "1s"), ("warm-up", "300ms")];
/// Keys of a part's load. The first two may also be in its table `load`.
const OF_LOADS: [&str; 6] = [
    "protocol",
    "size",
    "duration",
    "warm-up",
    "connect-timeout",
    "first-reply-timeout",
];
/// Default duration of a measurement.
const USUAL_DURATION: &str = "5s";
/// Keys that are not allowed in the table `load`, and what to use instead.
const NOT_OF_A_LOAD: [(&str, &str); 10] = [
    ("clients", "use the key `clients` of the part"),
    ("duration", "use the key `duration` of the part"),
    ("warm-up", "use the key `warm-up` of the part"),
    (
        "connect-timeout",
        "use the key `connect-timeout` of the part",
    ),
    (
        "first-reply-timeout",
        "use the key `first-reply-timeout` of the part",
    ),
    ("requests", "use the key `duration` of the part"),
    ("bytes", "use the key `duration` of the part"),
    (
        "threads",
        "use --client-cpus, which sets one thread per CPU",
    ),
    ("cpus", "use --client-cpus"),
    ("files", "other keys name the files"),
];
/// The keys for short-lived clients, with their aliases.
const JOBS: [&str; 3] = ["requests-per-client", "each", "live"];

/// The study's own keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct StudyToml {
    #[serde(deserialize_with = "super::values::name")]
    name: String,
    question: String,
    summary: Option<String>,
    source: Option<String>,
    #[serde(default)]
    changed: Vec<String>,
    custom_load: Option<Spanned<String>>,
    #[serde(default)]
    claim: Vec<Claim>,
}

type Table<'a> = Spanned<DeTable<'a>>;

/// Reads a study.
pub(super) fn read(source: Source, text: &str) -> Result<Study, StudyError> {
    let whole = DeTable::parse(text)
        .map_err(|error| source.wrong(&error.span().unwrap_or(0..0), error.message()))?;
    let mut own_table = Spanned::new(whole.span(), DeTable::new());
    let mut common = Spanned::new(whole.span(), DeTable::new());
    let mut given = None;
    for (key, value) in whole.into_inner() {
        match key.get_ref().as_ref() {
            "part" => given = Some(value),
            name if OF_STUDY.contains(&name) => {
                own_table.get_mut().insert(key, value);
            }
            name if parts_only(name) => {
                let why = format!("`{name}` belongs to a [[part]]");
                return Err(source.wrong(&key.span(), &why));
            }
            _ => {
                common.get_mut().insert(key, value);
            }
        }
    }
    let own: StudyToml = from_table(&source, own_table)?;
    let flat = given.is_none();
    let tables = match given {
        None => {
            let nothing = Spanned::new(common.span(), DeTable::new());
            vec![complete(&source, one_part(&common, &own), &nothing)?]
        }
        Some(parts) => {
            let each = tables(&source, parts)?.into_iter();
            each.map(|part| complete(&source, part, &common))
                .collect::<Result<_, _>>()?
        }
    };
    let mut parts = tables
        .into_iter()
        .map(|table| part(&source, table))
        .collect::<Result<Vec<Part>, _>>()?;
    for part in &mut parts {
        let servers = part.server_names();
        let figures: Result<_, (std::ops::Range<usize>, String)> = part
            .published
            .iter()
            .map(|published| {
                published.resolve(&servers, &part.clients, |metric| part.measures(metric))
            })
            .collect();
        part.figures = figures.map_err(|(at, why)| source.wrong(&at, &why))?;
        part.written_clients.clone_from(&part.clients);
        if let Some(quick) = &mut part.quick {
            quick.0.figures.clone_from(&part.figures);
            quick.0.written_clients.clone_from(&part.clients);
        }
        if let Some(full) = &mut part.full {
            full.figures.clone_from(&part.figures);
            full.written_clients.clone_from(&full.clients);
        }
    }
    let study = Study {
        name: own.name,
        question: own.question,
        summary: own.summary,
        source: own.source,
        changed: own.changed,
        custom_load: own.custom_load,
        parts,
        flat,
        claims: own.claim,
        file: source,
    };
    study.check()?;
    Ok(study)
}

fn parts_only(name: &str) -> bool {
    ["title", "answer", "published", "scene"].contains(&name)
}

/// The only part of a study that names no parts.
fn one_part<'a>(common: &Table<'a>, own: &StudyToml) -> Table<'a> {
    let mut part = common.clone();
    let name = DeValue::String(Cow::Owned(own.name.clone()));
    let key = Spanned::new(0..0, Cow::Borrowed("name"));
    part.get_mut().insert(key, Spanned::new(0..0, name));
    part
}

fn tables<'a>(source: &Source, parts: Spanned<DeValue<'a>>) -> Result<Vec<Table<'a>>, StudyError> {
    let at = parts.span();
    let wrong = || source.wrong(&at, "parts are written as [[part]]");
    let DeValue::Array(parts) = parts.into_inner() else {
        return Err(wrong());
    };
    let table = |part: Spanned<DeValue<'a>>| {
        let span = part.span();
        match part.into_inner() {
            DeValue::Table(table) => Ok(Spanned::new(span, table)),
            _ => Err(wrong()),
        }
    };
    parts.into_iter().map(table).collect()
}

/// A part with its inherited keys, but without those that do not apply to its kind.
fn complete<'a>(
    source: &Source,
    own: Table<'a>,
    common: &Table<'a>,
) -> Result<Table<'a>, StudyError> {
    let kind = [&own, common]
        .into_iter()
        .find_map(|table| table.get_ref().get("kind"))
        .map(|kind| kind.get_ref().as_str().unwrap_or_default().to_owned());
    let is_search = kind.as_deref() == Some("limit");
    let (idle, why): (&[&str], _) = if is_search {
        (&OF_TRIALS, "a part that searches for a limit has no")
    } else {
        (&OF_SEARCHES, "only a part of `kind = \"limit\"` has a")
    };
    let refused = |table: &DeTable<'a>| {
        let found = table.keys().find(|key| idle.contains(&&**key.get_ref()));
        found.map(|key| source.wrong(&key.span(), &format!("{why} `{}`", key.get_ref())))
    };
    let others = ["quick", "full"]
        .map(|name| own.get_ref().get(name))
        .into_iter()
        .flatten()
        .filter_map(|other| other.get_ref().as_table());
    if let Some(error) = std::iter::once(own.get_ref())
        .chain(others)
        .find_map(refused)
    {
        return Err(error);
    }
    let mut common = common.clone();
    for key in idle {
        common.get_mut().remove(*key);
        for name in ["quick", "full"] {
            let other = common.get_mut().get_mut(name).map(Spanned::get_mut);
            if let Some(DeValue::Table(other)) = other {
                other.remove(*key);
            }
        }
    }
    let mut whole = merged(own, &common);
    if is_search {
        for (key, usual) in OF_A_SEARCH {
            if !whole.get_ref().contains_key(key) {
                let value = DeValue::String(Cow::Borrowed(usual));
                let key = Spanned::new(0..0, Cow::Borrowed(key));
                whole.get_mut().insert(key, Spanned::new(0..0, value));
            }
        }
    } else if kind.is_none_or(|kind| kind == "run") && !whole.get_ref().contains_key("clients") {
        let meant =
            |key: &&Spanned<Cow<'_, str>>| registry::closest(key.get_ref(), &["clients"]).is_some();
        return Err(match whole.get_ref().keys().find(meant) {
            Some(key) => {
                let reason = format!("unknown key `{}`; did you mean `clients`?", key.get_ref());
                source.wrong(&key.span(), &reason)
            }
            None => source.wrong(&whole.span(), "missing field `clients`"),
        });
    }
    Ok(whole)
}

/// Adds those keys of `others` that the table lacks. Tables of options and of scales are merged key by key; any other
/// value replaces the one in `others`.
fn merged<'a>(mut table: Table<'a>, others: &Table<'a>) -> Table<'a> {
    for (key, value) in others.get_ref() {
        let name = key.get_ref().as_ref();
        let mut old = table
            .get_mut()
            .iter_mut()
            .find(|(own, _)| own.get_ref() == name);
        match old.as_mut().map(|(_, own)| own) {
            None => {
                table.get_mut().insert(key.clone(), value.clone());
            }
            Some(own) if TABLES.contains(&name) => {
                if let (DeValue::Table(inner), DeValue::Table(more)) =
                    (own.get_ref().clone(), value.get_ref())
                {
                    let more = Spanned::new(value.span(), more.clone());
                    let inner = merged(Spanned::new(own.span(), inner), &more);
                    let at = own.span();
                    **own = Spanned::new(at, DeValue::Table(inner.into_inner()));
                }
            }
            Some(_) => {}
        }
    }
    table
}

/// Reads a part, and its variants at other scales if it has any.
fn part(source: &Source, mut table: Table<'_>) -> Result<Part, StudyError> {
    let [quick, full] = ["quick", "full"].map(|scale| table.get_mut().remove(scale));
    let mut part = of_table(source, table.clone())?;
    part.quick = quick
        .map(|quick| scaled(source, quick, "quick", &table))
        .transpose()?
        .map(Box::new);
    part.full = full
        .map(|full| scaled(source, full, "full", &table))
        .transpose()?
        .map(|(full, _)| Box::new(full));
    Ok(part)
}

/// A part at another scale: the table of this scale overrides the part's keys. Also returns the overridden keys.
fn scaled<'a>(
    source: &Source,
    other: Spanned<DeValue<'a>>,
    scale: &str,
    table: &Table<'a>,
) -> Result<(Part, Vec<String>), StudyError> {
    let at = other.span();
    let DeValue::Table(other) = other.into_inner() else {
        let why = format!("`{scale}` must be a table with keys of a part");
        return Err(source.wrong(&at, &why));
    };
    let mut keys = Vec::new();
    for (key, value) in &other {
        let name = key.get_ref().as_ref();
        if OF_PART.contains(&name) || ["quick", "full"].contains(&name) {
            let why = format!("`{name}` cannot differ in `{scale}`");
            return Err(source.wrong(&key.span(), &why));
        }
        keys.push(name.to_owned());
        if let DeValue::Table(options) = value.get_ref() {
            keys.extend(options.keys().map(|option| one_name(option.get_ref())));
        }
    }
    let part = of_table(source, merged(Spanned::new(at, other), table))?;
    Ok((part, keys))
}

/// The canonical name of a key that has aliases.
fn one_name(key: &str) -> String {
    let name = if JOBS.contains(&key) { JOBS[0] } else { key };
    name.to_owned()
}

fn of_table(source: &Source, mut table: Table<'_>) -> Result<Part, StudyError> {
    let (load, load_places) = load(source, &mut table)?;
    let mut part: Part = from_table(source, table)?;
    (part.load, part.load_places) = (load, load_places);
    Ok(part)
}

/// Takes the keys of the load out of a part's table.
fn load(source: &Source, table: &mut Table<'_>) -> Result<(LoadSpec, Places), StudyError> {
    let whole = table.span();
    let mut keys = match table.get_mut().remove("load") {
        None => Spanned::new(whole, DeTable::new()),
        Some(given) => {
            let at = given.span();
            let DeValue::Table(inner) = given.into_inner() else {
                return Err(source.wrong(&at, "`load` must be a table, like { think = \"1s\" }"));
            };
            Spanned::new(at, inner)
        }
    };
    for key in keys.get_ref().keys() {
        let name = key.get_ref().as_ref();
        if let Some((_, why)) = NOT_OF_A_LOAD.iter().find(|(other, _)| *other == name) {
            let why = format!("`{name}` does not belong in `load`; {why}");
            return Err(source.wrong(&key.span(), &why));
        }
    }
    let has_jobs = JOBS.iter().any(|name| keys.get_ref().contains_key(*name));
    for name in OF_LOADS {
        let taken = table.get_mut().remove_entry(name);
        // With short-lived clients there is no warm-up: everything counts.
        let is_idle = has_jobs && ["duration", "warm-up"].contains(&name);
        if let Some((key, value)) = taken.filter(|_| !is_idle)
            && !keys.get_ref().contains_key(name)
        {
            keys.get_mut().insert(key, value);
        }
    }
    if !has_jobs && !keys.get_ref().contains_key("duration") {
        let usual = DeValue::String(Cow::Borrowed(USUAL_DURATION));
        let key = Spanned::new(0..0, Cow::Borrowed("duration"));
        keys.get_mut().insert(key, Spanned::new(0..0, usual));
    }
    let places: Places = keys
        .get_ref()
        .iter()
        .map(|(key, value)| (one_name(key.get_ref()), (key.span(), value.span())))
        .collect();
    let load: LoadSpec = from_table(source, keys)?;
    match load.checked() {
        Ok(load) => Ok((load, places)),
        Err(error) => {
            let at = places.get(error.key).map_or(0..0, |(name, value)| {
                if error.is_value { value } else { name }.clone()
            });
            Err(source.wrong(&at, &error.why))
        }
    }
}

fn from_table<'a, T: Deserialize<'a>>(source: &Source, table: Table<'a>) -> Result<T, StudyError> {
    let names = table.get_ref().clone();
    let whole = table.span();
    T::deserialize(toml::de::Deserializer::from(table)).map_err(|error| {
        let at = error.span().unwrap_or(whole);
        source.wrong(&at, &in_our_words(error.message(), &names, &at))
    })
}

/// Rewords an error of serde about a value in a table, adding the key, or a suggestion for an unknown key.
fn in_our_words(message: &str, table: &DeTable<'_>, at: &Range<usize>) -> String {
    if let Some(rest) = message.strip_prefix("unknown field ") {
        let mut names: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
        let name = names.remove(0);
        if names.contains(&"servers") {
            names.extend(OF_LOADS);
        }
        return match registry::closest(name, &names) {
            Some(meant) => format!("unknown key `{name}`; did you mean `{meant}`?"),
            None => format!(
                "unknown key `{name}`; expected one of: {}",
                names.join(", ")
            ),
        };
    }
    match key_at(table, at) {
        Some(key) if message.starts_with("invalid ") => format!("`{key}`: {}", numbers(message)),
        _ => message.to_owned(),
    }
}

/// Describes types of numbers in a message in plain words.
fn numbers(message: &str) -> String {
    let names = [
        ("u8", format!("a whole number up to {}", u8::MAX)),
        ("u16", format!("a whole number up to {}", u16::MAX)),
        ("u32", format!("a whole number up to {}", u32::MAX)),
        ("u64", "a whole number".to_owned()),
        ("f64", "a number".to_owned()),
    ];
    let found = names
        .iter()
        .find_map(|(name, words)| Some((message.strip_suffix(name)?, words)));
    match found {
        Some((before, words)) => before.to_owned() + words,
        None => message.to_owned(),
    }
}

/// The key whose value is at this position.
fn key_at<'a>(table: &'a DeTable<'_>, at: &Range<usize>) -> Option<&'a str> {
    let is_there = |value: &Spanned<DeValue<'_>>| {
        let span = value.span();
        span.start <= at.start && at.end <= span.end
    };
    let (key, value) = table.iter().find(|(_, value)| is_there(value))?;
    let inner = value.get_ref().as_table();
    inner
        .and_then(|inner| key_at(inner, at))
        .or(Some(key.get_ref()))
}
