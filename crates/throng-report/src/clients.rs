//! The clients of individual trials, read from `clients/*.csv` of a record.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context as _;

use super::lines::{Lines, number};
use throng_record::metrics::named;
use throng_record::{self as record, Purpose, Run, Trial};

/// Clients kept for plotting, over all servers; more are thinned out evenly.
const MOST_POINTS: usize = 20_000;

/// The clients of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientLog {
    /// Name of the server.
    pub server: String,
    /// Requested number of clients.
    pub clients: u32,
    /// Repetition, from 0.
    pub round: u32,
    /// Number of clients in the file.
    pub total: usize,
    /// The clients kept, in order of connection. Clients that never connected come last.
    pub rows: Vec<ClientRow>,
}

/// One client.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClientRow {
    /// Position in the order of connection, from 1.
    pub place: usize,
    /// When it connected, measured from the start of the load.
    pub connected_at_us: Option<f64>,
    /// From connect() to its first verified reply.
    pub first_reply_us: Option<f64>,
    /// Replies in the measured phase.
    pub window_replies: Option<u64>,
}

/// Reads the clients of each server's typical good trial at the largest number of clients. Servers without such a file
/// in the record are left out.
///
/// # Errors
/// When a file exists but cannot be read, naming it.
pub fn read_largest(dir: &Path, run: &Run, trials: &[Trial]) -> anyhow::Result<Vec<ClientLog>> {
    let share = MOST_POINTS / run.servers.len().max(1);
    let mut logs = Vec::new();
    for candidates in typical_at_largest(run, trials) {
        let Some((trial, name, file)) = first_kept(dir, "clients", &candidates)? else {
            continue;
        };
        let rows = parse(BufReader::new(file))
            .with_context(|| format!("cannot read {}", dir.join("clients").join(name).display()))?;
        logs.push(ClientLog {
            server: trial.server.clone(),
            clients: trial.clients,
            round: trial.round,
            total: rows.len(),
            rows: thin(rows, share),
        });
    }
    Ok(logs)
}

/// Everything recorded about one client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OneClient {
    /// Its ID, from 0.
    pub number: u32,
    /// When it connected, measured from the start of the load.
    pub connected_at_us: Option<f64>,
    /// Connect time.
    pub connect_us: Option<f64>,
    /// From connect() to its first verified reply.
    pub first_reply_us: Option<f64>,
    /// Whole replies.
    pub replies: u64,
    /// Whole replies in the measured phase.
    pub window_replies: Option<u64>,
    /// The error that ended it; empty if there was none.
    pub error: String,
}

/// Reads the clients of a trial; `None` if the trial left no client file.
///
/// # Errors
/// When the file cannot be read, naming it.
pub fn read_of(dir: &Path, trial: &Trial) -> anyhow::Result<Option<Vec<OneClient>>> {
    let Some((_, name, file)) = first_kept(dir, "clients", &[trial])? else {
        return Ok(None);
    };
    let clients = each(BufReader::new(file));
    let path = || dir.join("clients").join(&name);
    let clients = clients.with_context(|| format!("cannot read {}", path().display()))?;
    Ok(Some(clients))
}

fn each(reader: impl BufRead) -> anyhow::Result<Vec<OneClient>> {
    let mut lines = Lines::of(reader);
    let header = lines.header()?;
    let titles: Vec<&str> = header.split(',').collect();
    let mut all = Vec::new();
    while let Some((line, text)) = lines.next_line()? {
        // The error is the last field and may be any text.
        let fields: Vec<&str> = text.splitn(titles.len(), ',').collect();
        let field = |name: &str| {
            let place = titles.iter().position(|title| *title == name);
            place.and_then(|place| fields.get(place)).copied()
        };
        let number = |name: &'static str| value(field(name).unwrap_or_default(), line, name);
        all.push(OneClient {
            number: number("client")?.unwrap_or_default() as u32,
            connected_at_us: number("connected_at_us")?,
            connect_us: number("connect_us")?,
            first_reply_us: number("first_reply_us")?,
            replies: number("replies")?.unwrap_or_default() as u64,
            window_replies: number("window_replies")?.map(|replies| replies as u64),
            error: field("error").unwrap_or_default().to_owned(),
        });
    }
    Ok(all)
}

/// The first of `trials` that has a file in the directory `within` of the record, with the file and its name.
pub(super) fn first_kept<'a>(
    dir: &Path,
    within: &str,
    trials: &[&'a Trial],
) -> anyhow::Result<Option<(&'a Trial, String, File)>> {
    for trial in trials {
        let name = trial.file_stem() + ".csv";
        if let Some(file) = record::open_in(dir, within, &name)? {
            return Ok(Some((trial, name, file)));
        }
    }
    Ok(None)
}

/// The good trials of each server at the largest number of clients, if it has any. The typical trial, which has the
/// median fairness, comes first. For a search, only the last trial at the server's limit.
pub(super) fn typical_at_largest<'a>(
    run: &'a Run,
    trials: &'a [Trial],
) -> impl Iterator<Item = Vec<&'a Trial>> {
    let largest = trials.iter().map(|trial| trial.clients).max();
    run.servers.iter().filter_map(move |server| {
        let own = trials.iter().filter(|trial| trial.server == server.name);
        let mut good = own.filter(|trial| trial.failure.is_none() && trial.load.is_some());
        if run.limit.is_some() {
            let passed = run.limit_of(&server.name)?;
            let at_limit = good.rfind(|trial| {
                let attempt = trial.attempt.as_ref();
                attempt.is_some_and(|a| a.passed && a.share.is_none() && a.value == passed)
            });
            return at_limit.map(|trial| vec![trial]);
        }
        let mut timed: Vec<&Trial> = good
            .filter(|trial| Some(trial.clients) == largest)
            .filter(|trial| trial.purpose == Purpose::Timed)
            .collect();
        if timed.iter().any(|trial| trial.invalid().is_none()) {
            timed.retain(|trial| trial.invalid().is_none());
        }
        timed.sort_by(|one, other| {
            let by_fairness = fairness(one).total_cmp(&fairness(other));
            by_fairness.then(one.round.cmp(&other.round))
        });
        let middle = timed.len().saturating_sub(1) / 2;
        let mut nearest: Vec<(usize, &Trial)> = timed.into_iter().enumerate().collect();
        nearest.sort_by_key(|(place, _)| place.abs_diff(middle));
        let nearest: Vec<&Trial> = nearest.into_iter().map(|(_, trial)| trial).collect();
        (!nearest.is_empty()).then_some(nearest)
    })
}

fn fairness(trial: &Trial) -> f64 {
    let metric = named("fairness_jain");
    metric.and_then(|metric| metric.of(trial)).unwrap_or(0.0)
}

/// Parses the CSV. Columns are found by their names in the first line.
fn parse(reader: impl BufRead) -> anyhow::Result<Vec<ClientRow>> {
    let mut lines = Lines::of(reader);
    let header = lines.header()?;
    let column = |name: &'static str| {
        let found = header.split(',').position(|title| title == name);
        let place = found.with_context(|| format!("it has no column {name}"))?;
        Ok::<_, anyhow::Error>((name, place))
    };
    let connected_at = column("connected_at_us")?;
    let first_reply = column("first_reply_us")?;
    let window_replies = column("window_replies")?;
    let mut rows = Vec::new();
    while let Some((number, line)) = lines.next_line()? {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |(name, place): (&str, usize)| {
            let text = fields.get(place).copied().unwrap_or_default();
            value(text, number, name)
        };
        rows.push(ClientRow {
            place: 0,
            connected_at_us: field(connected_at)?,
            first_reply_us: field(first_reply)?,
            window_replies: field(window_replies)?.map(|replies| replies as u64),
        });
    }
    let connected_at = |row: &ClientRow| row.connected_at_us.unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| connected_at(a).total_cmp(&connected_at(b)));
    for (place, row) in rows.iter_mut().enumerate() {
        row.place = place + 1;
    }
    Ok(rows)
}

/// A field as a number; `None` if it is empty.
fn value(text: &str, line: usize, column: &str) -> anyhow::Result<Option<f64>> {
    if text.is_empty() {
        return Ok(None);
    }
    number(text, line, column).map(Some)
}

/// At most `most` rows, evenly spaced.
fn thin(rows: Vec<ClientRow>, most: usize) -> Vec<ClientRow> {
    let step = rows.len().div_ceil(most.max(1)).max(1);
    rows.into_iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "client,worker,source,connected_at_us,connect_us,first_reply_us,requests,replies,window_replies,bytes_sent,bytes_received,error";

    #[test]
    fn clients_come_in_order_of_connection_and_empty_fields_are_absent() {
        let text = format!(
            "{HEADER}\n0,0,127.0.0.1:1,,,,0,0,,0,0,refused\n1,0,127.0.0.1:2,50,5,70,9,9,8,9,9,\n2,0,127.0.0.1:3,20.5,5,30,4,4,0,4,4,\n"
        );
        let rows = parse(text.as_bytes()).unwrap();
        let seen: Vec<_> = rows
            .iter()
            .map(|row| (row.place, row.window_replies))
            .collect();
        assert_eq!(seen, [(1, Some(0)), (2, Some(8)), (3, None)]);
        assert_eq!(rows[2].first_reply_us, None);
    }

    #[test]
    fn every_client_has_all_that_is_recorded_of_it() {
        let text = format!(
            "{HEADER}\n0,0,127.0.0.1:1,,,,0,0,,0,0,refused, twice\n1,0,127.0.0.1:2,50,5,70,9,9,8,9,9,\n"
        );
        let all = each(text.as_bytes()).unwrap();
        assert_eq!(
            (all[0].error.as_str(), all[0].first_reply_us),
            ("refused, twice", None)
        );
        let expected = OneClient {
            number: 1,
            connected_at_us: Some(50.0),
            connect_us: Some(5.0),
            first_reply_us: Some(70.0),
            replies: 9,
            window_replies: Some(8),
            error: String::new(),
        };
        assert_eq!(all[1], expected);
    }

    #[test]
    fn a_bad_number_names_its_line() {
        let text = format!("{HEADER}\n0,0,x,many,,,,,,,,\n");
        let error = parse(text.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2, column connected_at_us: `many` is not a number"
        );
    }

    #[test]
    fn too_many_clients_are_thinned_out_evenly() {
        let rows: Vec<ClientRow> = (1..=100)
            .map(|place| ClientRow {
                place,
                ..ClientRow::default()
            })
            .collect();
        let places: Vec<usize> = thin(rows, 25).iter().map(|row| row.place).collect();
        assert_eq!(places.len(), 25);
        assert_eq!(places[..3], [1, 5, 9]);
    }
}
