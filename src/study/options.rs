//! Options of a command, written as a table: `{ think = "9s", eager = true }` means `--think=9s --eager`.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Deserializer};
use toml::Spanned;

/// Options in a table, which the command interprets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options(Vec<Choice>);

/// One option.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Its name, without leading dashes.
    pub name: String,
    /// Its value, or several for a repeated option.
    pub value: Value,
    /// Position of its name in the file.
    pub name_at: Range<usize>,
    /// Position of its value.
    pub value_at: Range<usize>,
}

impl PartialEq for Choice {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.value) == (&other.name, &other.value)
    }
}

impl Eq for Choice {}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Written")]
pub enum Value {
    /// A flag: whether it is set.
    Flag(bool),
    /// Values as typed on a command line.
    Typed(Vec<String>),
}

impl Options {
    /// The option of this name.
    pub fn get(&self, name: &str) -> Option<&Choice> {
        self.0.iter().find(|choice| choice.name == name)
    }

    /// All options.
    pub fn iter(&self) -> impl Iterator<Item = &Choice> {
        self.0.iter()
    }

    /// Replaces the value of an option, but keeps its position.
    pub(super) fn replace(&mut self, name: &str, value: &str) {
        let value = Value::Typed(vec![value.to_owned()]);
        match self.0.iter_mut().find(|choice| choice.name == name) {
            Some(choice) => choice.value = value,
            None => self.0.push(Choice {
                name: name.to_owned(),
                value,
                name_at: 0..0,
                value_at: 0..0,
            }),
        }
    }

    /// The options as typed on a command line.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for choice in &self.0 {
            match &choice.value {
                Value::Flag(false) => {}
                Value::Flag(true) => words.push(format!("--{}", choice.name)),
                // A single word, since a separate value that begins with a dash would be parsed as an option.
                Value::Typed(values) => {
                    let typed = values
                        .iter()
                        .map(|value| format!("--{}={value}", choice.name));
                    words.extend(typed);
                }
            }
        }
        words
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<Spanned<String>, Spanned<Value>>::deserialize(from)?;
        let choices = table.into_iter().map(|(name, value)| Choice {
            name_at: name.span(),
            value_at: value.span(),
            name: name.into_inner(),
            value: value.into_inner(),
        });
        Ok(Self(choices.collect()))
    }
}

/// A value as written.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected the value of an option: text, a number, true, false, or a list of texts"
)]
enum Written {
    Flag(bool),
    Whole(i64),
    Decimal(f64),
    Text(String),
    Several(Vec<String>),
}

impl From<Written> for Value {
    fn from(written: Written) -> Self {
        Self::Typed(match written {
            Written::Flag(is_set) => return Self::Flag(is_set),
            Written::Whole(number) => vec![number.to_string()],
            Written::Decimal(number) => vec![number.to_string()],
            Written::Text(text) => vec![text],
            Written::Several(texts) => texts,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_becomes_words() {
        let text = "eager = true\ndelay = false\nthink = \"9s\"\neach = 1\nprobe-rate = 0.5\npath = [\"/:3\", \"/a\"]";
        let options: Options = toml::from_str(text).unwrap();
        let words = options.words();
        let expected = [
            "--each=1",
            "--eager",
            "--path=/:3",
            "--path=/a",
            "--probe-rate=0.5",
            "--think=9s",
        ];
        assert_eq!(words, expected);
        let think = options.get("think").unwrap();
        assert_eq!(
            (&text[think.name_at.clone()], &text[think.value_at.clone()]),
            ("think", "\"9s\"")
        );
        assert!(toml::from_str::<Options>("a = { b = 1 }").is_err());
    }
}
