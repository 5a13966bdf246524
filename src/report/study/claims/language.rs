//! The language in which claims are checked.
//!
//! ```text
//! check    = what [ "at" range { "and" range } ]
//! what     = operand relation operand { relation operand }
//!          | "alike" "(" value "," value { "," value } ")" [ "within" NUMBER "%" ]
//!          | value ( "grows" | "falls" | "is" "flat" ) [ "with" "clients" ]
//!          | value "is" ( "highest" | "lowest" )
//! operand  = value | NUMBER "*" value | NUMBER [ unit ]
//! value    = [ part "." ] metric "(" server [ "," CLIENTS ] ")"
//! server   = name | "quoted name" | "*"
//! relation = "<" | "<=" | ">" | ">="
//! range    = "clients" ( relation | "=" ) NUMBER
//! ```
//!
//! `*` stands for every server of the part: what is said must be so of each. In `alike` it stands for
//! all of them at once.

use std::ops::Range;

use super::parser;
use super::token::Wrong;
use crate::report::study::metric::AnyMetric;

/// By how many percent values may differ that are alike, where nothing is said.
pub(super) const ALIKE_WITHIN: f64 = 10.0;

/// A statement about results that can be checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// What it says.
    pub what: What,
    /// With how many clients it says so; none: with any.
    pub at: Vec<AtClients>,
}

/// What a check says.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// Each is so beside the next.
    Order {
        /// The first.
        first: Operand,
        /// Each other, with how the one before stands to it.
        then: Vec<(Relation, Operand)>,
    },
    /// They do not differ by more than a share.
    Alike {
        /// The values.
        values: Vec<Value>,
        /// In percent.
        within: f64,
    },
    /// How it goes with the number of clients.
    Trend(Value, Trend),
    /// None of the other servers of the part has a higher value, or a lower one.
    Extreme(Value, Extreme),
}

/// How a value goes with the number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// It grows.
    Grows,
    /// It falls.
    Falls,
    /// It does neither by more than is alike.
    Flat,
}

/// Which end of a part's servers a value is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The highest.
    Highest,
    /// The lowest.
    Lowest,
}

/// How two numbers stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    /// So many times a value.
    Value(f64, Value),
    /// A number in the unit of the values beside it.
    Number(f64),
}

/// A metric of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The part of the study.
    pub part: Option<String>,
    /// The metric.
    pub metric: AnyMetric,
    /// The server; none: every one.
    pub server: Option<String>,
    /// The one number of clients it is about.
    pub clients: Option<u32>,
    /// Where it stands.
    pub at: Range<usize>,
}

/// Some numbers of clients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AtClients {
    /// Those that stand so to a number.
    Related(Relation, f64),
    /// This one.
    Exactly(f64),
}

impl Operand {
    fn value(&self) -> Option<&Value> {
        match self {
            Self::Value(_, value) => Some(value),
            Self::Number(_) => None,
        }
    }
}

impl AtClients {
    /// Whether a number of clients is among them.
    pub fn holds(self, clients: u32) -> bool {
        let clients = f64::from(clients);
        match self {
            Self::Related(relation, than) => relation.holds(clients, than),
            Self::Exactly(number) => clients.total_cmp(&number).is_eq(),
        }
    }
}

impl Relation {
    /// Whether two exact numbers stand so.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Below => left < right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::AtLeast => left >= right,
        }
    }

    pub(super) fn of(sign: &str) -> Option<Self> {
        Some(match sign {
            "<" => Self::Below,
            "<=" => Self::AtMost,
            ">" => Self::Above,
            ">=" => Self::AtLeast,
            _ => return None,
        })
    }
}

impl Check {
    /// Reads a check.
    ///
    /// # Errors
    /// The first place that is wrong, and why.
    pub fn parse(text: &str) -> Result<Self, Wrong> {
        parser::read(text)
    }

    /// Every value that it names.
    pub fn values(&self) -> Vec<&Value> {
        match &self.what {
            What::Order { first, then } => {
                let others = then.iter().map(|(_, operand)| operand);
                std::iter::once(first)
                    .chain(others)
                    .filter_map(Operand::value)
                    .collect()
            }
            What::Alike { values, .. } => values.iter().collect(),
            What::Trend(value, _) | What::Extreme(value, _) => vec![value],
        }
    }

    /// Whether it is about so many clients.
    pub fn is_about(&self, clients: u32) -> bool {
        self.at.iter().all(|at| at.holds(clients))
    }
}
