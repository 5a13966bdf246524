//! The file of a study, taken apart: what is the study's own, what its parts take from it, and what
//! they say themselves.

use std::borrow::Cow;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::part::Part;
use super::place::Source;
use super::{Study, StudyError, claim};

/// Keys that are the study's own. All others are defaults for its parts.
const OF_STUDY: [&str; 6] = ["name", "question", "summary", "source", "claim", "part"];
/// Keys that a part has for itself alone.
const OF_PART: [&str; 5] = ["name", "title", "question", "kind", "published"];
/// Keys that are tables of options, put together key by key, or hold such tables.
const TABLES: [&str; 3] = ["load", "limit", "quick"];
/// Keys that say something only where servers meet crowds.
const OF_CROWDS: [&str; 6] = [
    "clients",
    "repeats",
    "counted-repeats",
    "below",
    "control",
    "ceiling",
];
/// And only where their limit is searched for.
const OF_SEARCHES: [&str; 1] = ["limit"];
/// How a search goes where nothing is said, as with `throng limit`.
const OF_A_SEARCH: [(&str, &str); 2] = [("duration", "1s"), ("warm-up", "300ms")];

/// What is the study's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Own {
    #[serde(deserialize_with = "super::part::name")]
    name: String,
    question: String,
    summary: Option<String>,
    source: Option<String>,
    #[serde(default)]
    claim: Vec<claim::Claim>,
}

type Table<'a> = Spanned<DeTable<'a>>;

/// Reads a study.
pub(super) fn read(source: Source, text: &str) -> Result<Study, StudyError> {
    let whole = DeTable::parse(text)
        .map_err(|error| source.wrong(&error.span().unwrap_or(0..0), error.message()))?;
    let mut own = Spanned::new(whole.span(), DeTable::new());
    let mut common = Spanned::new(whole.span(), DeTable::new());
    let mut parts = None;
    for (key, value) in whole.into_inner() {
        match key.get_ref().as_ref() {
            "part" => parts = Some(value),
            name if OF_STUDY.contains(&name) => {
                own.get_mut().insert(key, value);
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
    let own: Own = from_table(&source, own)?;
    let flat = parts.is_none();
    let parts = match parts {
        None => {
            let nothing = Spanned::new(common.span(), DeTable::new());
            vec![complete(&source, one_part(&common, &own), &nothing)?]
        }
        Some(parts) => {
            let parts = tables(&source, parts)?.into_iter();
            let parts = parts.map(|part| complete(&source, part, &common));
            parts.collect::<Result<_, _>>()?
        }
    };
    let parts = parts.into_iter().map(|table| part(&source, table));
    let mut parts = parts.collect::<Result<Vec<Part>, _>>()?;
    for part in &mut parts {
        let figures = part
            .published
            .iter()
            .map(|published| published.resolve(part));
        let figures: Result<_, (std::ops::Range<usize>, String)> = figures.collect();
        part.figures = figures.map_err(|(at, why)| source.wrong(&at, &why))?;
        part.written_clients.clone_from(&part.clients);
        if let Some(quick) = &mut part.quick {
            quick.0.figures.clone_from(&part.figures);
            quick.0.written_clients.clone_from(&part.clients);
        }
    }
    let study = Study {
        name: own.name,
        question: own.question,
        summary: own.summary,
        source: own.source,
        parts,
        flat,
        claims: own.claim,
        file: source,
    };
    study.check()?;
    Ok(study)
}

fn parts_only(name: &str) -> bool {
    ["title", "published"].contains(&name)
}

/// The part that a study is which names none.
fn one_part<'a>(common: &Table<'a>, own: &Own) -> Table<'a> {
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
        let at = part.span();
        match part.into_inner() {
            DeValue::Table(table) => Ok(Spanned::new(at, table)),
            _ => Err(wrong()),
        }
    };
    parts.into_iter().map(table).collect()
}

/// A part with what it takes from the study, of which keys that say nothing to its kind are left out.
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
        (&OF_CROWDS, "a part that searches for a limit has no")
    } else {
        (&OF_SEARCHES, "only a part of `kind = \"limit\"` has a")
    };
    let refused = |table: &DeTable<'a>| {
        let found = table.keys().find(|key| idle.contains(&&**key.get_ref()));
        found.map(|key| source.wrong(&key.span(), &format!("{why} `{}`", key.get_ref())))
    };
    let quick = own.get_ref().get("quick");
    let quick = quick.and_then(|quick| quick.get_ref().as_table());
    if let Some(error) = std::iter::once(own.get_ref())
        .chain(quick)
        .find_map(refused)
    {
        return Err(error);
    }
    let mut common = common.clone();
    for key in idle {
        common.get_mut().remove(*key);
        let quick = common.get_mut().get_mut("quick").map(Spanned::get_mut);
        if let Some(DeValue::Table(quick)) = quick {
            quick.remove(*key);
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
        return Err(source.wrong(&whole.span(), "missing field `clients`"));
    }
    Ok(whole)
}

/// A table with what `others` has beside it. Tables of options and of a quick look are merged key by key,
/// everything else is taken whole.
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

/// Reads a part, and how it is for a quick look where it says so.
fn part(source: &Source, mut table: Table<'_>) -> Result<Part, StudyError> {
    let Some(quick) = table.get_mut().remove("quick") else {
        return from_table(source, table);
    };
    let at = quick.span();
    let DeValue::Table(quick) = quick.into_inner() else {
        return Err(source.wrong(&at, "`quick` is a table of keys of a part"));
    };
    let mut keys = Vec::new();
    for (key, value) in &quick {
        let name = key.get_ref().as_ref();
        if OF_PART.contains(&name) || name == "quick" {
            let why = format!("`{name}` stays the same for a quick look");
            return Err(source.wrong(&key.span(), &why));
        }
        keys.push(name.to_owned());
        if let DeValue::Table(options) = value.get_ref() {
            keys.extend(options.keys().map(|option| option.get_ref().to_string()));
        }
    }
    let mut part: Part = from_table(source, table.clone())?;
    let small = from_table(source, merged(Spanned::new(at, quick), &table))?;
    part.quick = Some(Box::new((small, keys)));
    Ok(part)
}

fn from_table<'a, T: Deserialize<'a>>(source: &Source, table: Table<'a>) -> Result<T, StudyError> {
    let whole = table.span();
    T::deserialize(toml::de::Deserializer::from(table))
        .map_err(|error| source.wrong(&error.span().unwrap_or(whole), error.message()))
}
