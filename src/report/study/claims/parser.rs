//! The parser of the language in which claims are checked.

use std::ops::Range;

use super::language::{
    ALIKE_WITHIN, AtClients, Check, Extreme, Operand, Relation, Trend, Value, What,
};
use super::token::{Kind, Token, Wrong, tokens};
use crate::report::metrics::Unit;
use crate::report::study::metric::{AnyMetric, read as read_number};

/// Reads a check.
pub(super) fn read(text: &str) -> Result<Check, Wrong> {
    let mut parser = Parser {
        tokens: tokens(text)?,
        place: 0,
        end: text.len(),
    };
    let what = parser.what()?;
    let mut at = Vec::new();
    if parser.takes_word("at") {
        at.push(parser.range()?);
        while parser.takes_word("and") {
            at.push(parser.range()?);
        }
    }
    match parser.peek() {
        None => Ok(Check { what, at }),
        Some(_) => Err(parser.wrong("nothing more can follow here but `at clients ...`")),
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    place: usize,
    end: usize,
}

/// An operand whose number has no unit yet.
enum Raw {
    Value(f64, Value),
    Number(f64, String, Range<usize>),
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Kind<'a>> {
        self.tokens.get(self.place).map(|token| token.kind)
    }

    fn here(&self) -> Range<usize> {
        let end = self.end..self.end;
        self.tokens
            .get(self.place)
            .map_or(end, |token| token.at.clone())
    }

    /// The error at the next token.
    fn wrong(&self, why: impl Into<String>) -> Wrong {
        Wrong::new(self.here(), why)
    }

    fn takes(&mut self, kind: Kind<'_>) -> bool {
        let found = self.peek() == Some(kind);
        self.place += usize::from(found);
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.takes(Kind::Word(word))
    }

    fn takes_sign(&mut self, sign: &str) -> bool {
        self.takes(Kind::Sign(sign))
    }

    fn needs(&mut self, sign: &str, where_: &str) -> Result<(), Wrong> {
        if self.takes_sign(sign) {
            return Ok(());
        }
        Err(self.wrong(format!("`{sign}` is missing {where_}")))
    }

    fn number(&mut self, of: &str) -> Result<f64, Wrong> {
        match self.peek() {
            Some(Kind::Number(number)) => {
                self.place += 1;
                Ok(number)
            }
            _ => Err(self.wrong(format!("{of} is missing"))),
        }
    }

    fn what(&mut self) -> Result<What, Wrong> {
        if self.takes_word("alike") {
            return self.alike();
        }
        let first = self.operand()?;
        if let (Raw::Value(factor, value), false) = (&first, self.at_relation()) {
            if factor.total_cmp(&1.0).is_ne() {
                return Err(self.wrong("a relation is missing: `<`, `<=`, `>` or `>=`"));
            }
            let value = value.clone();
            return self.about(value);
        }
        self.order(first)
    }

    fn at_relation(&self) -> bool {
        matches!(self.peek(), Some(Kind::Sign(sign)) if Relation::of(sign).is_some())
    }

    fn relation(&mut self) -> Option<Relation> {
        let Some(Kind::Sign(sign)) = self.peek() else {
            return None;
        };
        let relation = Relation::of(sign)?;
        self.place += 1;
        Some(relation)
    }

    fn order(&mut self, first: Raw) -> Result<What, Wrong> {
        let mut then = Vec::new();
        while let Some(relation) = self.relation() {
            then.push((relation, self.operand()?));
        }
        if then.is_empty() {
            return Err(self.wrong("a relation is missing: `<`, `<=`, `>` or `>=`"));
        }
        let all = std::iter::once(&first).chain(then.iter().map(|(_, operand)| operand));
        let units = all.filter_map(|operand| match operand {
            Raw::Value(_, value) => Some((value.metric.unit(), value.at.clone())),
            Raw::Number(..) => None,
        });
        let mut units = units.collect::<Vec<_>>().into_iter();
        let Some((unit, _)) = units.next() else {
            let why = "a metric of a server is missing, like p99(epoll)";
            return Err(Wrong::new(0..self.end, why));
        };
        if let Some((_, at)) = units.find(|(other, _)| *other != unit) {
            return Err(Wrong::new(
                at,
                "it is measured in something else than the one before it",
            ));
        }
        let numbers = std::iter::once(&first).chain(then.iter().map(|(_, operand)| operand));
        let mut beside = numbers.map(|operand| matches!(operand, Raw::Number(..)));
        let mut before = false;
        if beside.any(|number| std::mem::replace(&mut before, number) && number) {
            return Err(Wrong::new(
                0..self.end,
                "two numbers stand beside each other",
            ));
        }
        let then = then
            .into_iter()
            .map(|(relation, operand)| Ok((relation, operand.resolve(unit)?)));
        Ok(What::Order {
            first: first.resolve(unit)?,
            then: then.collect::<Result<_, Wrong>>()?,
        })
    }

    fn alike(&mut self) -> Result<What, Wrong> {
        self.needs("(", "after `alike`")?;
        let mut values = vec![self.value()?];
        while self.takes_sign(",") {
            values.push(self.value()?);
        }
        self.needs(")", "after the values that are alike")?;
        if let ([one], true) = (values.as_slice(), values[0].server.is_some()) {
            return Err(Wrong::new(
                one.at.clone(),
                "one value alone is alike to nothing; name others, or * for all servers",
            ));
        }
        let unit = values[0].metric.unit();
        if let Some(other) = values.iter().find(|value| value.metric.unit() != unit) {
            return Err(Wrong::new(
                other.at.clone(),
                "it is measured in something else than the first one",
            ));
        }
        let within = if self.takes_word("within") {
            let percent = self.number("a share in percent")?;
            self.needs("%", "after the share")?;
            percent
        } else {
            ALIKE_WITHIN
        };
        Ok(What::Alike { values, within })
    }

    /// What is said of one value.
    fn about(&mut self, value: Value) -> Result<What, Wrong> {
        let is = self.takes_word("is");
        let what = match (is, self.peek()) {
            (true, Some(Kind::Word("highest"))) => What::Extreme(value, Extreme::Highest),
            (true, Some(Kind::Word("lowest"))) => What::Extreme(value, Extreme::Lowest),
            (true, Some(Kind::Word("flat"))) => What::Trend(value, Trend::Flat),
            (false, Some(Kind::Word("grows"))) => What::Trend(value, Trend::Grows),
            (false, Some(Kind::Word("falls"))) => What::Trend(value, Trend::Falls),
            (true, _) => {
                return Err(self.wrong("it is `highest`, `lowest` or `flat`"));
            }
            (false, _) => {
                return Err(self.wrong(
                    "what is said of it is missing: a relation (<, <=, >, >=), `grows`, `falls`, \
                     `is flat`, `is highest` or `is lowest`",
                ));
            }
        };
        if let What::Trend(value, _) = &what
            && value.metric.is_over_clients()
        {
            let why = "it is one value over all clients, and cannot go with their number";
            return Err(Wrong::new(value.at.clone(), why));
        }
        self.place += 1;
        if matches!(what, What::Trend(..)) && self.takes_word("with") && !self.takes_word("clients")
        {
            return Err(self.wrong("it goes `with clients`"));
        }
        Ok(what)
    }

    fn operand(&mut self) -> Result<Raw, Wrong> {
        let from = self.here();
        if !matches!(self.peek(), Some(Kind::Number(_))) {
            return Ok(Raw::Value(1.0, self.value()?));
        }
        let number = self.number("a number")?;
        if self.takes_sign("*") {
            return Ok(Raw::Value(number, self.value()?));
        }
        let mut unit = String::new();
        let mut to = from.end;
        let of_unit = match self.peek() {
            Some(Kind::Word(word)) if !["at", "and", "within", "is"].contains(&word) => Some(word),
            Some(Kind::Sign("%")) => Some("%"),
            _ => None,
        };
        if let Some(word) = of_unit {
            word.clone_into(&mut unit);
            to = self.here().end;
            self.place += 1;
        }
        Ok(Raw::Number(number, unit, from.start..to))
    }

    fn value(&mut self) -> Result<Value, Wrong> {
        let at = self.here();
        let Some(Kind::Word(word)) = self.peek() else {
            return Err(self.wrong("a metric of a server is missing, like p99(epoll)"));
        };
        // A metric may have a dot in its name, and a part has none.
        let (part, metric) = match (AnyMetric::find(word), word.split_once('.')) {
            (Ok(metric), _) => (None, metric),
            (Err(_), Some((part, name))) => {
                let from = at.start + part.len() + 1;
                let metric = AnyMetric::find(name).map_err(|why| Wrong::new(from..at.end, why))?;
                (Some(part.to_owned()), metric)
            }
            (Err(why), None) => return Err(Wrong::new(at, why)),
        };
        self.place += 1;
        self.needs("(", &format!("after `{word}`, with the name of a server"))?;
        let server = match self.peek() {
            Some(Kind::Word(name) | Kind::Quoted(name)) => Some(name.to_owned()),
            Some(Kind::Sign("*")) => None,
            _ => return Err(self.wrong("the name of a server is missing, or * for all")),
        };
        self.place += 1;
        let mut clients = None;
        if self.takes_sign(",") {
            if metric.is_over_clients() {
                return Err(self.wrong("it is one value over all clients"));
            }
            let at = self.here();
            let number = self.number("a number of clients")?;
            if number < 1.0 || number.fract() != 0.0 || number > f64::from(u32::MAX) {
                return Err(Wrong::new(at, "it is no number of clients"));
            }
            clients = Some(number as u32);
        }
        let to = self.here().end;
        self.needs(")", "after the server")?;
        Ok(Value {
            part,
            metric,
            server,
            clients,
            at: at.start..to,
        })
    }

    fn range(&mut self) -> Result<AtClients, Wrong> {
        if !self.takes_word("clients") {
            return Err(self.wrong("`clients` is missing, as in `at clients >= 1000`"));
        }
        if self.takes_sign("=") {
            return self.number("a number of clients").map(AtClients::Exactly);
        }
        let Some(relation) = self.relation() else {
            return Err(self.wrong("a relation is missing: `<`, `<=`, `>`, `>=` or `=`"));
        };
        let number = self.number("a number of clients")?;
        Ok(AtClients::Related(relation, number))
    }
}

impl Raw {
    /// With its number in this unit.
    fn resolve(self, of: Unit) -> Result<Operand, Wrong> {
        match self {
            Self::Value(times, value) => Ok(Operand::Value(times, value)),
            Self::Number(number, unit, at) => {
                let number = read_number(of, number, &unit).map_err(|why| Wrong::new(at, why))?;
                Ok(Operand::Number(number))
            }
        }
    }
}
