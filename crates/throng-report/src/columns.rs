//! The columns of the tables of results and of costs: metrics of the catalogue as cells of a row.

use throng_record::metrics::{self, Absence, Combine, Detail, METRICS, Metric, Subject, Unit};

use super::summary::{Row, Summary};
use throng_record::format::{ABSENT, hundredths, or_absent, whole};

/// The note on the trials behind the costs.
pub(super) const COSTS_NOTE: &str = "Counts per request, medians over trials. They come from separate trials, because counting slows \
    system calls and wake-ups. Small print: the clients.";
/// The maximum number of system calls listed by name in a cell.
const MOST_CALLS: usize = 7;

/// One column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Column {
    /// A metric in the table of results.
    Result(&'static Metric, metrics::Column),
    /// A metric in the table of costs: the server's value, with the clients' in small print.
    Cost(&'static Metric),
    /// The server's system calls by name.
    Calls,
}

/// The columns of the table of results after the server's name, in reading order.
pub(super) fn results() -> Vec<Column> {
    let shown = |metric: &'static Metric| Some((metric, metric.shown.results?));
    let mut columns: Vec<_> = METRICS.iter().filter_map(shown).collect();
    columns.sort_by_key(|(_, column)| column.place);
    let sorted = columns.into_iter();
    sorted
        .map(|(metric, column)| Column::Result(metric, column))
        .collect()
}

/// The columns of the table of costs.
pub(super) fn costs() -> Vec<Column> {
    let metrics = METRICS.iter().filter(|metric| metric.shown.costs);
    metrics.map(Column::Cost).chain([Column::Calls]).collect()
}

/// The server's system calls per request by name, the most frequent first.
pub(super) fn calls(row: &Row) -> Vec<(&'static str, f64)> {
    let of_server = METRICS
        .iter()
        .filter(|metric| metric.subject == Subject::Server && metric.is_per_request());
    let mut calls: Vec<(&str, f64)> = of_server
        .filter_map(|metric| Some((metric.call()?, row.value(metric.name)?)))
        .collect();
    calls.sort_by(|one, other| other.1.total_cmp(&one.1));
    calls
}

impl Column {
    /// Its metric, if it has a single one.
    pub(super) fn metric(self) -> Option<&'static Metric> {
        match self {
            Self::Result(metric, _) | Self::Cost(metric) => Some(metric),
            Self::Calls => None,
        }
    }

    /// Heading.
    pub(super) fn title(self) -> &'static str {
        self.metric().map_or("Calls by name", |metric| metric.label)
    }

    pub(super) fn note(self) -> String {
        let Some(metric) = self.metric() else {
            return "the server's system calls per request, most frequent first".to_owned();
        };
        let combined = match metric.combine {
            Combine::Median => "",
            Combine::Merge => " (all requests of all trials)",
            Combine::Sum => " (sum over trials)",
            Combine::Greatest => " (worst trial)",
        };
        format!("{}{combined}", metric.help)
    }

    pub(super) fn text(self, row: &Row) -> String {
        let Some(metric) = self.metric() else {
            return calls_by_name(row);
        };
        let value = row.value(metric.name);
        match metric.unit {
            // Another column shows the number of finished clients.
            Unit::Clients if metric.name == "clients_served" && row.completion.is_some() => {
                ABSENT.to_owned()
            }
            Unit::Clients => or_absent(value, |value| {
                format!("{}/{}", whole(value), whole(f64::from(row.clients)))
            }),
            _ => match (value, row.absent.get(metric.name)) {
                (None, Some(why)) => why.text().to_owned(),
                _ => or_absent(value, |value| metric.bounded(value, row.is_bound(metric))),
            },
        }
    }

    /// Its small print: an interval, a share.
    pub(super) fn detail(self, row: &Row) -> String {
        let other = |(name, text): &(&str, &str)| {
            let value = row.value(name)?;
            let is_shown = value != 0.0 || !text.starts_with(',');
            is_shown.then_some(())?;
            Some(text.replace("{}", &metrics::named(name)?.text(value)))
        };
        match self {
            Self::Result(metric, column) => match column.detail {
                Detail::Interval => {
                    let quantity = row.quantity(metric.name);
                    quantity
                        .and_then(|quantity| metric.range(quantity))
                        .unwrap_or_default()
                }
                Detail::Others(others) => {
                    let named: Vec<String> = others.iter().filter_map(other).collect();
                    named.concat().trim_start_matches(", ").to_owned()
                }
                Detail::Errors => errors(row),
            },
            Self::Cost(metric) => {
                let of_clients = metric.of_other_side();
                let value = of_clients.and_then(|of_client| row.value(of_client.name));
                value.map_or_else(String::new, |value| {
                    format!("clients {}", metric.text(value))
                })
            }
            Self::Calls => String::new(),
        }
    }

    /// Whether a bar shows the value.
    pub(super) fn bar(self) -> bool {
        matches!(self, Self::Result(_, column) if column.bar)
    }

    /// The value that decides the best of a group and the length of the bar.
    pub(super) fn value(self, row: &Row) -> Option<f64> {
        row.value(self.metric()?.name)
    }

    /// Whether any row has anything to show in this column.
    pub(super) fn has_data(self, summary: &Summary) -> bool {
        let nothing = [ABSENT, Absence::NotHere.text()];
        let says = |row| !nothing.contains(&&*self.text(row));
        summary.rows.iter().any(says)
    }

    /// The greatest value over all rows, for bars.
    pub(super) fn greatest(self, summary: &Summary, clients: u32) -> f64 {
        summary
            .rows_at(clients)
            .filter_map(|row| self.value(row))
            .fold(0.0, f64::max)
    }
}

/// "reset 3, refused 1, 20 unanswered".
fn errors(row: &Row) -> String {
    let mut kinds: Vec<String> = row
        .errors
        .iter()
        .chain(&row.unexpected)
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    if row.requests > row.replies {
        let unanswered = (row.requests - row.replies) as f64;
        kinds.push(format!("{} unanswered", whole(unanswered)));
    }
    kinds.join(", ")
}

/// "recvfrom 1.00, sendto 1.00, epoll_pwait 0.03".
fn calls_by_name(row: &Row) -> String {
    let mut calls = calls(row);
    calls.retain(|(_, each)| *each >= 0.005);
    if calls.is_empty() {
        return ABSENT.to_owned();
    }
    let more = calls.len().saturating_sub(MOST_CALLS);
    calls.truncate(MOST_CALLS);
    let mut named: Vec<String> = calls
        .iter()
        .map(|(name, each)| format!("{name} {}", hundredths(*each)))
        .collect();
    if more > 0 {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use throng_record::Purpose;
    use throng_spec::registry::Unsupported;

    fn cost(name: &str) -> Column {
        Column::Cost(metrics::named(name).unwrap())
    }

    #[test]
    fn counts_that_this_machine_lacks_are_absent_and_never_0() {
        let (run, mut trials) = fixture::record();
        for trial in trials
            .iter_mut()
            .filter(|trial| trial.purpose == Purpose::Profiled)
        {
            let side = trial.server_side.as_mut().unwrap();
            side.metrics.remove("instructions");
            let why = Unsupported {
                reason: "no".to_owned(),
                remedy: "yes".to_owned(),
            };
            side.note_missing("counters", "instructions", why);
        }
        let summary = Summary::of(&run, &trials).unwrap();
        let row = summary.rows_at(100).next().unwrap();
        let instructions = cost("server_instructions_per_request");
        assert_eq!(instructions.text(row), Absence::NotHere.text());
        assert!(!instructions.has_data(&summary));
        assert!(cost("server_syscalls_per_request").has_data(&summary));
        trials.retain(|trial| trial.purpose.is_timed());
        let summary = Summary::of(&run, &trials).unwrap();
        assert!(costs().iter().all(|column| !column.has_data(&summary)));
    }

    #[test]
    fn calls_are_listed_by_name_most_frequent_first() {
        let (run, trials) = fixture::record();
        let summary = Summary::of(&run, &trials).unwrap();
        let row = summary
            .rows_at(100)
            .find(|row| row.server == "epoll")
            .unwrap();
        let text = Column::Calls.text(row);
        assert_eq!(text, "recvfrom 1.00, sendto 1.00, epoll_pwait 0.20");
        let sum: f64 = calls(row).iter().map(|(_, each)| each).sum();
        let all = row.value("server_syscalls_per_request").unwrap();
        assert!((sum - all).abs() < 1e-9);
    }
}
