//! Conditions that fail a run: `p99 > 10ms`, `node: errors > 0`.

use serde::Serialize;

use super::{Absence, Metric, Quantity, Unit, Values, find, named};
use crate::Trial;

/// A parsed condition.
#[derive(Debug)]
pub struct Condition {
    /// What it is for, before the colon: a server, a step of its sessions, or both as `SERVER:STEP`; `None` for all
    /// servers.
    pub name: Option<String>,
    /// Its metric.
    pub metric: &'static Metric,
    /// The metric that it is a share of, in percent.
    share_of: Option<&'static Metric>,
    operator: Operator,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
}

/// The result of a condition for one server and number of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConditionResult {
    /// The condition, as written.
    pub demand: String,
    /// The server.
    pub server: String,
    /// The number of clients.
    pub clients: u32,
    /// Whether it was missed. A condition that could not be checked counts as missed.
    pub missed: bool,
    /// The actual value, as text.
    pub seen: String,
}

impl ConditionResult {
    /// Whether it was missed, in a word.
    pub fn word(&self) -> &'static str {
        if self.missed { "missed" } else { "met" }
    }
}

/// An error, and where it is in the text.
struct ConditionError {
    from: usize,
    to: usize,
    why: String,
}

/// What a condition is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Named<'a> {
    /// Its server; `None` for all servers.
    pub server: Option<&'a str>,
    /// A step of its sessions; `None` for all requests.
    pub step: Option<&'a str>,
}

impl Condition {
    /// The server and the step that it is for, among these.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn named(&self, servers: &[&str], steps: &[&str]) -> Result<Named<'_>, String> {
        let Some(name) = self.name.as_deref() else {
            return Ok(Named::default());
        };
        let is_step = |word: &str| steps.contains(&word);
        if servers.contains(&name) {
            return Ok(Named {
                server: Some(name),
                step: None,
            });
        }
        if is_step(name) {
            return Ok(Named {
                server: None,
                step: Some(name),
            });
        }
        match name.rsplit_once(':') {
            Some((server, step)) if servers.contains(&server) && is_step(step) => Ok(Named {
                server: Some(server),
                step: Some(step),
            }),
            _ if steps.is_empty() => Err(format!(
                "unknown server `{name}`; expected one of: {}",
                servers.join(", ")
            )),
            _ => Err(format!(
                "unknown server or step `{name}`; expected one of: {}",
                [servers, steps].concat().join(", ")
            )),
        }
    }

    /// Parses `METRIC OPERATOR VALUE`, optionally with `NAME:` before it.
    ///
    /// # Errors
    /// The error, with its place marked.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text).map_err(|ConditionError { from, to, why }| {
            let before = text[..from].chars().count();
            let length = text[from..to].chars().count().max(1);
            format!(
                "{why}\n  {text}\n  {}{}",
                " ".repeat(before),
                "^".repeat(length)
            )
        })
    }

    fn read(text: &str) -> Result<Self, ConditionError> {
        // Neither a metric nor a value has a colon.
        let start = text.rfind(':').map_or(0, |colon| colon + 1);
        let server = text[..start].trim_end_matches(':').trim();
        if start > 0 && server.is_empty() {
            return Err(wrong(
                text,
                0,
                start,
                "the name of a server is missing before the colon",
            ));
        }
        let is_sign = |sign: char| "<>=!".contains(sign);
        let Some(sign) = text[start..].find(is_sign).map(|at| start + at) else {
            let why = "the operator is missing; expected >, >=, <, <= or =";
            return Err(wrong(text, text.len(), text.len(), why));
        };
        let after = text[sign..]
            .find(|c| !is_sign(c))
            .map_or(text.len(), |at| sign + at);
        let operator = match &text[sign..after] {
            ">" => Operator::Above,
            ">=" => Operator::AtLeast,
            "<" => Operator::Below,
            "<=" => Operator::AtMost,
            "=" => Operator::Equal,
            other => {
                let why = format!("`{other}` is not an operator; expected >, >=, <, <= or =");
                return Err(wrong(text, sign, after, &why));
            }
        };
        let metric = find(&text[start..sign])
            .map_err(|unknown| wrong(text, start, sign, &unknown.to_string()))?;
        if metric.is_over_clients() {
            let why = format!(
                "`{}` is a single value for all numbers of clients, which conditions do not support",
                metric.name
            );
            return Err(wrong(text, start, sign, &why));
        }
        let is_share = text[after..].trim_end().ends_with('%');
        let whole = metric.share_of.filter(|_| is_share);
        let unit = whole.map_or(metric.unit, |_| Unit::Percent);
        let limit = unit
            .parse(&text[after..])
            .map_err(|why| wrong(text, after, text.len(), &why))?;
        Ok(Self {
            name: (!server.is_empty()).then(|| server.to_owned()),
            metric,
            share_of: whole.and_then(named),
            operator,
            limit,
        })
    }

    /// Checks the condition, written as `text`, for a server and a number of clients, with these values, or with the
    /// reason why its own value is absent.
    pub fn judge(
        &self,
        text: &str,
        server: &str,
        clients: u32,
        (values, why): (&Values, Option<Absence>),
    ) -> ConditionResult {
        let judged = |missed, seen| ConditionResult {
            demand: text.to_owned(),
            server: server.to_owned(),
            clients,
            missed,
            seen,
        };
        let value = match self.share_of {
            None => values.quantity(self.metric.name),
            Some(whole) => self
                .share(|metric| values.value(metric.name), whole)
                .map(Quantity::bare),
        };
        let Some(value) = value else {
            let why = why.map_or_else(
                || "was not measured".to_owned(),
                |why| format!("has no value ({})", why.text()),
            );
            let seen = format!(
                "{} {why}, so the condition cannot be checked",
                self.metric.name
            );
            return judged(true, seen);
        };
        let mut seen = self.text(value.value);
        if let Some(range) = self.metric.range(value) {
            seen += &format!(" ({range})");
        }
        judged(self.holds(value.value), seen)
    }

    /// A condition that cannot be judged counts as missed.
    pub fn not_judged(text: &str, server: &str, clients: u32, why: &str) -> ConditionResult {
        ConditionResult {
            demand: text.to_owned(),
            server: server.to_owned(),
            clients,
            missed: true,
            seen: format!("not judged: {why}"),
        }
    }

    /// Whether it holds for a single trial, with the value as text; `None` if it was not measured.
    pub fn of_trial(&self, trial: &Trial) -> Option<(bool, String)> {
        let value = match self.share_of {
            None => self.metric.of(trial)?,
            Some(whole) => self.share(|metric| metric.of(trial), whole)?,
        };
        Some((self.holds(value), self.text(value)))
    }

    /// The metric as a share of another one, in percent.
    fn share(
        &self,
        value: impl Fn(&'static Metric) -> Option<f64>,
        whole: &'static Metric,
    ) -> Option<f64> {
        let (part, whole) = (value(self.metric)?, value(whole)?);
        (whole > 0.0).then(|| part / whole * 100.0)
    }

    fn text(&self, value: f64) -> String {
        match self.share_of {
            None => self.metric.text(value),
            Some(_) => Unit::Percent.text(value),
        }
    }

    fn holds(&self, value: f64) -> bool {
        match self.operator {
            Operator::Above => value > self.limit,
            Operator::AtLeast => value >= self.limit,
            Operator::Below => value < self.limit,
            Operator::AtMost => value <= self.limit,
            Operator::Equal => value.total_cmp(&self.limit).is_eq(),
        }
    }
}

/// Marks a part of a text, without surrounding spaces.
fn wrong(text: &str, from: usize, to: usize, why: &str) -> ConditionError {
    let part = &text[from..to];
    let trimmed = part.trim();
    let from = if trimmed.is_empty() {
        from
    } else {
        from + (part.len() - part.trim_start().len())
    };
    ConditionError {
        from,
        to: from + trimmed.len(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Load;

    #[test]
    fn conditions_are_read() {
        for (text, server, name, limit) in [
            ("p99 > 10ms", None, "latency_p99_us", 10_000.0),
            ("p99.9>=1.5s", None, "latency_p999_us", 1_500_000.0),
            (
                "a: b:memory<64 MiB",
                Some("a: b"),
                "server_pss_bytes",
                67_108_864.0,
            ),
            (
                "node server.js: errors > 0",
                Some("node server.js"),
                "errors",
                0.0,
            ),
            ("requests_per_s <= 10_000", None, "requests_per_s", 10_000.0),
        ] {
            let condition = Condition::parse(text).unwrap();
            assert_eq!(condition.name.as_deref(), server, "{text}");
            assert_eq!(condition.metric.name, name, "{text}");
            assert!((condition.limit - limit).abs() < 1e-6, "{text}");
        }
        let of = |text: &str| {
            let condition = Condition::parse(text).unwrap();
            let named = condition.named(&["a", "a: b"], &["login", "a"]);
            named.map(|named| {
                (
                    named.server.map(str::to_owned),
                    named.step.map(str::to_owned),
                )
            })
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("p99 > 1ms"), Ok((None, None)));
        assert_eq!(of("a:p99 > 1ms"), Ok((some("a"), None)));
        assert_eq!(of("login:p99 > 1ms"), Ok((None, some("login"))));
        assert_eq!(
            of("a: b:login:p99 > 1ms"),
            Ok((some("a: b"), some("login")))
        );
        assert!(
            of("b:p99 > 1ms")
                .unwrap_err()
                .contains("unknown server or step `b`")
        );
        let at_most = Condition::parse("errors <= 3").unwrap();
        assert!(at_most.holds(3.0) && !at_most.holds(4.0));
    }

    #[test]
    fn counts_may_be_given_as_shares() {
        let trial = |requests, unexpected| Trial {
            load: Some(Load {
                requests,
                errors: [("reset".to_owned(), 1)].into(),
                statuses: [("200".to_owned(), 5), ("503".to_owned(), unexpected)].into(),
                unexpected: [("503".to_owned(), unexpected)].into(),
                ..Load::default()
            }),
            ..Trial::default()
        };
        let trials = [trial(1000, 3), trial(3000, 0)];
        let values = Values::of(&trials).unwrap();
        for (text, missed, seen) in [
            ("errors > 0.1%", true, "0.125 %"),
            ("errors > 0.13 %", false, "0.125 %"),
            ("errors > 4", true, "5"),
            ("errors >= 5", true, "5"),
            ("status_5xx > 0", true, "3"),
            ("status_4xx > 0", false, "0"),
            ("status_2xx < 99%", true, "0.250 %"),
        ] {
            let condition = Condition::parse(text).unwrap();
            let judged = condition.judge(text, "node", 5, (&values, None));
            assert_eq!(
                (judged.missed, judged.seen.as_str()),
                (missed, seen),
                "{text}"
            );
        }
        let share = Condition::parse("errors > 0.3%").unwrap();
        assert_eq!(
            share.of_trial(&trials[0]),
            Some((true, "0.400 %".to_owned()))
        );
        assert_eq!(share.of_trial(&trial(0, 0)), None, "nothing was asked");
        let other = Condition::parse("status_5xx > 0").unwrap();
        let judged = other.judge("status_5xx > 0", "redis", 5, (&Values::default(), None));
        assert!(judged.missed, "what has no status cannot be judged by it");
    }

    #[test]
    fn errors_point_at_the_wrong_character() {
        for (text, why, place) in [
            ("p99", "the operator is missing", "     ^"),
            ("p99 => 10ms", "`=>` is not an operator", "      ^^"),
            ("p99 == 10ms", "`==` is not an operator", "      ^^"),
            ("p98 > 10ms", "metric `p98`; did you mean `p9", "  ^^^"),
            ("limit > 1", "for all numbers of clients", "  ^^^^^"),
            ("x:weight > 1", "unknown metric `weight`", "    ^^^^^^"),
            ("> 1", "unknown metric ``", "  ^"),
            ("p99 >", "a value is missing", "       ^"),
            ("p99 > fast", "`fast` is not a value", "        ^^^^"),
            ("p99 > 10", "`10` needs a unit: ns, us", "        ^^"),
            ("p99 > 10 days", "`days` is not a unit", "        ^^^^^^^"),
            ("errors > 1ms", "plain number", "           ^^^"),
            (
                "clients_served < 1%",
                "plain number",
                "                   ^^",
            ),
            (": p99 > 1s", "before the colon", "  ^"),
        ] {
            let error = Condition::parse(text).unwrap_err();
            let lines: Vec<&str> = error.lines().collect();
            assert!(lines[0].contains(why), "{text}: {error}");
            assert_eq!(lines[1], format!("  {text}"));
            assert_eq!(lines[2], place, "{text}: {error}");
        }
    }
}
