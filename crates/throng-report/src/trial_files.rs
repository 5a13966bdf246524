//! The CSV files of individual trials: `clients/*.csv` and `samples/*.csv` of a record, read with bounds against hostile
//! files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use anyhow::{Context as _, bail};

use throng_record::metrics::named;
use throng_record::{self as record, Load, Purpose, Run, Slice, Trial};

/// The maximum number of lines read from one file. No trial has more clients, and an hour-long trial has fewer
/// samples.
const MOST_LINES: usize = 2_000_000;
/// The maximum length of a line in bytes. The longest known line is a quarter of that.
const MOST_BYTES: u64 = 4096;
/// The maximum number of metrics in one file. The probes have a tenth as many.
const MOST_METRICS: usize = 1000;
/// Points kept per measurement; longer ones are thinned out evenly.
const MOST_POINTS: usize = 400;

/// Where a record keeps the clients of a trial: the directory, and the end of the file's name.
const CLIENTS: (&str, &str) = ("clients", ".csv");

/// Replies per second in each interval of the measured phase.
pub const RATE: (&str, &str) = ("client", "replies_per_s");
/// CPU usage, in percent of one CPU.
const CPU: &str = "cpu_percent";

/// The clients of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientLog {
    /// Name of the server.
    pub server: String,
    /// Requested number of clients.
    pub clients: u32,
    /// The replies that each client got in the measured phase.
    pub replies: Vec<u64>,
    /// All replies that each client got, in the order in which they connected. Those that never did are last.
    pub in_order: Vec<u64>,
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

/// Time series of one trial, by side ("server", "client", "network") and metric.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSeries(BTreeMap<(String, String), Vec<Sample>>);

/// One value at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Seconds since the measured phase began; negative before.
    pub at_s: f64,
    pub value: f64,
}

/// Reads the clients of each server's typical good trial at the largest number of clients. Servers without such a file
/// in the record are left out.
///
/// # Errors
/// When a file exists but cannot be read, naming it.
pub fn read_largest(dir: &Path, run: &Run, trials: &[Trial]) -> anyhow::Result<Vec<ClientLog>> {
    let mut logs = Vec::new();
    for candidates in typical_at_largest(run, trials) {
        let Some((trial, all)) = first_kept(dir, CLIENTS, &candidates, each_client)? else {
            continue;
        };
        let mut ordered: Vec<&OneClient> = all.iter().collect();
        let connected = |client: &&OneClient| client.connected_at_us.unwrap_or(f64::INFINITY);
        ordered.sort_by(|one, other| connected(one).total_cmp(&connected(other)));
        let replies = all
            .iter()
            .map(|client| client.window_replies.unwrap_or_default());
        logs.push(ClientLog {
            server: trial.server.clone(),
            clients: trial.clients,
            replies: replies.collect(),
            in_order: ordered.iter().map(|client| client.replies).collect(),
        });
    }
    Ok(logs)
}

/// Reads the clients of a trial; `None` if the trial left no client file.
///
/// # Errors
/// When the file cannot be read, naming it.
pub fn read_clients(dir: &Path, trial: &Trial) -> anyhow::Result<Option<Vec<OneClient>>> {
    let found = first_kept(dir, CLIENTS, &[trial], each_client)?;
    Ok(found.map(|(_, clients)| clients))
}

/// Parses a file of clients. Columns are found by their names in the first line.
fn each_client(reader: impl BufRead) -> anyhow::Result<Vec<OneClient>> {
    let mut lines = Lines::of(reader);
    let header = lines.header()?;
    let titles: Vec<&str> = header.split(',').collect();
    for name in ["connected_at_us", "first_reply_us", "window_replies"] {
        anyhow::ensure!(titles.contains(&name), "it has no column {name}");
    }
    let mut all = Vec::new();
    while let Some((line, text)) = lines.next_line()? {
        // The error is the last field and may be any text.
        let fields: Vec<&str> = text.splitn(titles.len(), ',').collect();
        let field = |name: &str| {
            let index = titles.iter().position(|title| *title == name);
            let found = index.and_then(|index| fields.get(index));
            found.copied().unwrap_or_default()
        };
        let value = |name: &str| match field(name) {
            "" => Ok(None),
            last => number(last, line, name).map(Some),
        };
        all.push(OneClient {
            number: value("client")?.unwrap_or_default() as u32,
            connected_at_us: value("connected_at_us")?,
            connect_us: value("connect_us")?,
            first_reply_us: value("first_reply_us")?,
            replies: value("replies")?.unwrap_or_default() as u64,
            window_replies: value("window_replies")?.map(|replies| replies as u64),
            error: field("error").to_owned(),
        });
    }
    Ok(all)
}

/// The stacks of a server with a number of clients, outermost function first, and how often each was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stacks {
    /// Name of the server.
    pub server: String,
    /// Number of clients.
    pub clients: u32,
    pub stacks: Vec<(String, u64)>,
}

/// Reads the stacks of all trials that kept them.
///
/// # Errors
/// When a file exists but cannot be read, naming it.
pub fn read_stacks(dir: &Path, trials: &[Trial]) -> anyhow::Result<Vec<Stacks>> {
    let mut all = Vec::new();
    for trial in trials.iter().filter(|trial| trial.profile.is_some()) {
        let found = first_kept(dir, ("profiles", ".folded"), &[trial], each_stack)?;
        all.extend(found.map(|(profiled, stacks)| Stacks {
            server: profiled.server.clone(),
            clients: profiled.clients,
            stacks,
        }));
    }
    Ok(all)
}

fn each_stack(reader: impl BufRead) -> anyhow::Result<Vec<(String, u64)>> {
    let mut stacks = Vec::new();
    let mut lines = Lines::of(reader);
    while let Some((line, text)) = lines.next_line()? {
        let parsed = text
            .rsplit_once(' ')
            .and_then(|(stack, count)| Some((stack.to_owned(), count.parse().ok()?)));
        match parsed {
            Some(parsed) => stacks.push(parsed),
            None => bail!("line {line}: `{}` is no stack with a count", shown(&text)),
        }
    }
    Ok(stacks)
}

/// The first of `trials` that has a file in the directory `within` of the record, and what the file says.
fn first_kept<'a, T>(
    dir: &Path,
    (within, ending): (&str, &str),
    trials: &[&'a Trial],
    parse: impl Fn(BufReader<File>) -> anyhow::Result<T>,
) -> anyhow::Result<Option<(&'a Trial, T)>> {
    for trial in trials {
        let name = trial.file_stem() + ending;
        if let Some(file) = record::open_in(dir, within, &name)? {
            let path = || dir.join(within).join(&name);
            let parsed = parse(BufReader::new(file))
                .with_context(|| format!("cannot read {}", path().display()))?;
            return Ok(Some((trial, parsed)));
        }
    }
    Ok(None)
}

/// The good trials of each server at the largest number of clients, if it has any. The typical trial, which has the
/// median fairness, comes first. For a search, only the last trial at the server's limit.
fn typical_at_largest<'a>(
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
        let mut by_distance: Vec<(usize, &Trial)> = timed.into_iter().enumerate().collect();
        by_distance.sort_by_key(|(place, _)| place.abs_diff(middle));
        let nearest: Vec<&Trial> = by_distance.into_iter().map(|(_, trial)| trial).collect();
        (!nearest.is_empty()).then_some(nearest)
    })
}

fn fairness(trial: &Trial) -> f64 {
    let metric = named("fairness_jain");
    metric.and_then(|metric| metric.of(trial)).unwrap_or(0.0)
}

impl TimeSeries {
    /// Reads the time series of a trial.
    ///
    /// # Errors
    /// When its file exists but cannot be read, naming it.
    pub fn read(dir: &Path, trial: &Trial) -> anyhow::Result<Self> {
        let read = first_kept(dir, ("samples", ".csv"), &[trial], Self::parsed)?;
        let mut series = read.map(|(_, series)| series).unwrap_or_default();
        series.count_slices(&trial.slices);
        if let Some(load) = &trial.load {
            series.add_rates(load);
        }
        series.0.values_mut().for_each(thin);
        Ok(series)
    }

    /// The samples of one side and metric, in chronological order; empty if there are none.
    pub fn of(&self, (side, metric): (&str, &str)) -> &[Sample] {
        let found = self.0.get(&(side.to_owned(), metric.to_owned()));
        found.map_or(&[], Vec::as_slice)
    }

    fn parsed(reader: impl BufRead) -> anyhow::Result<Self> {
        let mut series = Self::default();
        let mut lines = Lines::of(reader);
        let header = lines.header()?;
        if header != "at_s,side,metric,value" {
            bail!("its first line is `{}`", shown(&header));
        }
        while let Some((line, text)) = lines.next_line()? {
            let fields: Vec<&str> = text.split(',').collect();
            let &[at, side, metric, value] = fields.as_slice() else {
                bail!("line {line}: `{}` does not have four fields", shown(&text));
            };
            let sample = Sample {
                at_s: number(at, line, "at_s")?,
                value: number(value, line, "value")?,
            };
            series.add(side, metric, sample);
            if series.0.len() > MOST_METRICS {
                bail!(
                    "line {line}: more than {MOST_METRICS} metrics; the first beyond that is `{metric}`"
                );
            }
        }
        Ok(series)
    }

    fn add(&mut self, side: &str, metric: &str, sample: Sample) {
        let of = (side.to_owned(), metric.to_owned());
        self.0.entry(of).or_default().push(sample);
    }

    /// Replaces samples of CPU usage by that of each slice, at the time that the server's own slices had taken.
    /// Samples would include the pauses, when other servers have their turn.
    fn count_slices(&mut self, slices: &[Slice]) {
        if slices.is_empty() {
            return;
        }
        self.0.retain(|(_, metric), _| metric != CPU);
        let mut until_ns = 0;
        for slice in slices {
            until_ns += slice.took_ns;
            let usage = [
                ("server", slice.server_cpu_ns),
                ("client", Some(slice.client_cpu_ns)),
            ];
            for (side, cpu_ns) in usage {
                let Some(cpu_ns) = cpu_ns else { continue };
                let at_s = (until_ns - slice.took_ns / 2) as f64 / 1e9;
                let value = 100.0 * cpu_ns as f64 / slice.took_ns.max(1) as f64;
                self.add(side, CPU, Sample { at_s, value });
            }
        }
    }

    /// Adds the replies per second in each interval of the window.
    fn add_rates(&mut self, load: &Load) {
        let intervals = &load.window.intervals;
        let length = load.window.duration_s / intervals.len() as f64;
        for (index, replies) in intervals.iter().enumerate().filter(|_| length > 0.0) {
            let at_s = (index as f64 + 0.5) * length;
            let value = *replies as f64 / length;
            self.add(RATE.0, RATE.1, Sample { at_s, value });
        }
    }
}

/// Keeps about [`MOST_POINTS`] samples, evenly spaced, and always the last one.
fn thin(samples: &mut Vec<Sample>) {
    let step = samples.len().div_ceil(MOST_POINTS);
    let last = samples.len().saturating_sub(1);
    let mut index = 0;
    samples.retain(|_| {
        index += 1;
        (index - 1) % step == 0 || index - 1 == last
    });
}

/// The lines of a file, numbered from 1.
struct Lines<R> {
    reader: R,
    number: usize,
}

impl<R: BufRead> Lines<R> {
    fn of(reader: R) -> Self {
        Self { reader, number: 0 }
    }

    /// The first line, which has the names of the columns.
    fn header(&mut self) -> anyhow::Result<String> {
        let (_, line) = self.next_line()?.context("it is empty")?;
        Ok(line)
    }

    /// The next line with its number; `None` at the end of the file.
    ///
    /// # Errors
    /// When there are too many lines, or a line is too long or not text.
    fn next_line(&mut self) -> anyhow::Result<Option<(usize, String)>> {
        let mut bytes = Vec::new();
        self.number += 1;
        let number = self.number;
        let mut rest = self.reader.by_ref().take(MOST_BYTES);
        let read: io::Result<usize> = rest.read_until(b'\n', &mut bytes);
        if read.with_context(|| format!("line {number}"))? == 0 {
            return Ok(None);
        }
        if number > MOST_LINES + 1 {
            bail!("it has more than {MOST_LINES} lines");
        }
        if bytes.ends_with(b"\n") {
            bytes.pop();
            bytes.pop_if(|byte| *byte == b'\r');
        } else if bytes.len() as u64 == MOST_BYTES {
            bail!("line {number} has more than {MOST_BYTES} bytes");
        }
        let text = String::from_utf8(bytes)
            .ok()
            .with_context(|| format!("line {number} is not UTF-8 text"))?;
        Ok(Some((number, text)))
    }
}

/// A field as a number. Only a finite number can have been measured.
fn number(text: &str, line: usize, column: &str) -> anyhow::Result<f64> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => bail!(
            "line {line}, column {column}: `{}` is not a number",
            shown(text)
        ),
    }
}

/// The part of an invalid field that an error message shows.
fn shown(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "client,worker,source,connected_at_us,connect_us,first_reply_us,requests,replies,window_replies,bytes_sent,bytes_received,error";

    #[test]
    fn every_client_has_all_that_is_recorded_of_it() {
        let text = format!(
            "{HEADER}\n0,0,127.0.0.1:1,,,,0,0,,0,0,refused, twice\n1,0,127.0.0.1:2,50,5,70,9,9,8,9,9,\n"
        );
        let all = each_client(text.as_bytes()).unwrap();
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
        let error = each_client(text.as_bytes()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2, column connected_at_us: `many` is not a number"
        );
    }

    fn parsed(text: &str) -> anyhow::Result<TimeSeries> {
        TimeSeries::parsed(text.as_bytes())
    }

    #[test]
    fn samples_are_kept_by_what_they_measure() {
        let text = "at_s,side,metric,value\n-0.5,network,established,3\n0.1,server,cpu_percent,50.5\n0.2,network,established,10\n";
        let series = parsed(text).unwrap();
        let values = |side, metric| -> Vec<(f64, f64)> {
            let samples = series.of((side, metric)).iter();
            samples.map(|sample| (sample.at_s, sample.value)).collect()
        };
        assert_eq!(values("network", "established"), [(-0.5, 3.0), (0.2, 10.0)]);
        assert_eq!(values("server", "cpu_percent"), [(0.1, 50.5)]);
        assert_eq!(values("client", "cpu_percent"), []);
    }

    #[test]
    fn pauses_between_slices_are_no_part_of_the_cpu_usage_over_time() {
        let mut series = parsed("at_s,side,metric,value\n0.1,server,cpu_percent,40\n").unwrap();
        let slice = |server_cpu_ns| Slice {
            took_ns: 20_000_000,
            server_cpu_ns: Some(server_cpu_ns),
            client_cpu_ns: 5_000_000,
            ..Slice::default()
        };
        series.count_slices(&[slice(20_000_000), slice(19_000_000)]);
        let values = |side| -> Vec<(f64, f64)> {
            let samples = series.of((side, CPU)).iter();
            samples.map(|sample| (sample.at_s, sample.value)).collect()
        };
        assert_eq!(values("server"), [(0.01, 100.0), (0.03, 95.0)]);
        assert_eq!(values("client"), [(0.01, 25.0), (0.03, 25.0)]);
    }

    #[test]
    fn a_bad_line_is_named() {
        for (line, given) in [
            (
                "0.1,server,cpu_percent",
                "line 2: `0.1,server,cpu_percent` does not have",
            ),
            (
                "0.1,server,cpu_percent,much",
                "line 2, column value: `much` is not a number",
            ),
        ] {
            let error = parsed(&format!("at_s,side,metric,value\n{line}\n")).unwrap_err();
            assert!(error.to_string().starts_with(given), "{error}");
        }
        assert!(parsed("time,value\n").is_err());
    }

    #[test]
    fn many_samples_are_thinned_out_and_the_last_one_stays() {
        let mut samples: Vec<Sample> = (0..1001)
            .map(|place| Sample {
                at_s: f64::from(place),
                value: 0.0,
            })
            .collect();
        thin(&mut samples);
        assert!(samples.len() <= MOST_POINTS + 1, "{}", samples.len());
        assert!((samples.last().unwrap().at_s - 1000.0).abs() < 1e-9);
        thin(&mut Vec::new());
    }

    #[test]
    fn lines_are_numbered_and_bounded() {
        let mut lines = Lines::of(&b"a\nb"[..]);
        assert_eq!(lines.header().unwrap(), "a");
        assert_eq!(lines.next_line().unwrap(), Some((2, "b".to_owned())));
        assert_eq!(lines.next_line().unwrap(), None);
        let wrong = |bytes: &[u8]| Lines::of(bytes).header().unwrap_err().to_string();
        assert_eq!(wrong(b""), "it is empty");
        assert_eq!(wrong(b"\xff\n"), "line 1 is not UTF-8 text");
        assert!(wrong(&vec![b'x'; 1 << 20]).contains("more than 4096 bytes"));
        let mut many = Lines::of(io::BufReader::new(io::repeat(b'\n')));
        let error = loop {
            match many.next_line() {
                Ok(line) => assert!(line.is_some()),
                Err(error) => break error.to_string(),
            }
        };
        assert_eq!(error, "it has more than 2000000 lines");
    }

    #[test]
    fn infinite_and_missing_values_are_rejected() {
        assert!((number("-1.5e3", 7, "value").unwrap() + 1500.0).abs() < 1e-9);
        for text in ["NaN", "inf", "-infinity", "1e999", "", "0x1"] {
            let error = number(text, 7, "value").unwrap_err().to_string();
            assert!(error.starts_with("line 7, column value: "), "{error}");
        }
    }
}
