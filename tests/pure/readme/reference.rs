//! The reference run of all models, as tables for the pages about them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use serde_json::Value;
use throng::record::format;
use throng::record::metrics::{Better, Metric, named};

/// The directory of the run.
const RUN: &str = "results/2026-11-22-vm/models";

/// The metrics of each row; memory is divided by the clients after the first.
const METRICS: [&str; 5] = [
    "requests_per_s",
    "server_cpu_us_per_request",
    "server_syscalls_per_request",
    MEMORY,
    "fairness_jain",
];
const MEMORY: &str = "server_pss_bytes";

fn metric(place: usize) -> &'static Metric {
    named(METRICS[place]).expect("it is in the catalogue")
}

/// The label of a metric.
fn title(place: usize) -> String {
    let label = metric(place).label;
    match METRICS[place] {
        MEMORY => format!("{label}/client"),
        _ => label.to_owned(),
    }
}

/// A model with a number of clients.
struct Row {
    model: String,
    clients: u32,
    served: u32,
    /// One value per metric; `None` if it was not measured.
    values: [Option<f64>; 5],
}

struct Reference {
    /// The run, the machine and the day, as text.
    about: String,
    rows: Vec<Row>,
}

static REFERENCE: LazyLock<Reference> = LazyLock::new(reference);

/// The reference run, from its record and summary.
fn reference() -> Reference {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(RUN);
    let summary = super::summary(&directory);
    let run = throng::record::read(&directory).expect("it can be read");
    let rows = summary["rows"].as_array().expect("a summary has rows");
    let kernel: Vec<&str> = run.host.kernel.split('.').take(2).collect();
    Reference {
        about: format!(
            "From the reference run `{RUN}` ({}, {} CPUs, {}, {})",
            run.host.cpu_model.unwrap_or_default(),
            run.host.cpus,
            kernel.join("."),
            run.started_at.split('T').next().unwrap_or_default()
        ),
        rows: rows.iter().map(|row| row_of(row, rows)).collect(),
    }
}

/// A row of the summary.
fn row_of(row: &Value, rows: &[Value]) -> Row {
    let value = |row: &Value, metric: &str| row["metrics"][metric]["value"].as_f64();
    let memory = |row: &Value| value(row, "server_pss_bytes");
    let clients = row["clients"].as_u64().expect("a row has its clients") as u32;
    let model = row["server"].as_str().expect("and its server").to_owned();
    // The cost of the first client cannot be separated from the server's base memory, and a few pages are noise.
    let alone = rows
        .iter()
        .find(|other| other["clients"] == 1 && other["server"] == row["server"]);
    let more = memory(row)
        .zip(alone.and_then(memory))
        .map(|(all, alone)| all - alone);
    let more = more.filter(|more| clients > 1 && *more >= 64.0 * 1024.0);
    Row {
        model,
        clients,
        served: value(row, "clients_served")
            .expect("and how many were served")
            .round() as u32,
        values: [
            value(row, "requests_per_s"),
            value(row, "server_cpu_us_per_request"),
            value(row, "server_syscalls_per_request"),
            more.map(|more| more / f64::from(clients - 1)),
            value(row, "fairness_jain"),
        ],
    }
}

impl Row {
    /// The rank of a value among those of all models that served every client, 1 for the best, and its ratio to the
    /// best. `None` if this model left clients unserved, since that is not the same work.
    fn standing(&self, place: usize) -> Option<(usize, f64)> {
        let own = self.values[place].filter(|_| self.served == self.clients)?;
        let alike = REFERENCE
            .rows
            .iter()
            .filter(|other| other.clients == self.clients && other.served == other.clients);
        let values: Vec<f64> = alike.filter_map(|other| other.values[place]).collect();
        let is_better = |one: f64, other: f64| {
            if metric(place).better == Better::Higher {
                one > other
            } else {
                one < other
            }
        };
        let best = values
            .iter()
            .copied()
            .reduce(|best, value| if is_better(value, best) { value } else { best })?;
        let rank = 1 + values
            .iter()
            .filter(|value| is_better(**value, own))
            .count();
        (best != 0.0).then(|| (rank, own / best))
    }

    fn value(&self, place: usize) -> String {
        format::or_absent(self.values[place], |value| metric(place).text(value))
    }
}

/// The values of a model.
pub(crate) fn of_model(model: &str) -> String {
    let titles: Vec<String> = (0..METRICS.len()).map(title).collect();
    let mut text = format!(
        "{}. × is the ratio to the best model that served every client, # the rank among these.\n\n\
         | clients | {} |\n|---:|{}\n",
        REFERENCE.about,
        titles.join(" | "),
        "---:|".repeat(METRICS.len())
    );
    for row in REFERENCE.rows.iter().filter(|row| row.model == model) {
        let whole = |clients: u32| format::whole(f64::from(clients));
        text += &format!("| {}", whole(row.clients));
        if row.served < row.clients {
            text += &format!("<br>{} served", whole(row.served));
        }
        for place in 0..METRICS.len() {
            text += &format!(" | {}", row.value(place));
            if let Some((rank, of_best)) = row.standing(place) {
                text += &format!("<br>×{} #{rank}", format::hundredths(of_best));
            }
        }
        text += " |\n";
    }
    text
}

/// The values of all models, with one table per metric.
pub(crate) fn side_by_side() -> String {
    let rows = &REFERENCE.rows;
    let many_clients: BTreeSet<u32> = rows.iter().map(|row| row.clients).collect();
    let of_first = rows.iter().filter(|row| row.clients == rows[0].clients);
    let models: Vec<&str> = of_first.map(|row| row.model.as_str()).collect();
    let mut text = format!(
        "{}. The best value of each column is bold. Values in parentheses are from servers that left clients unserved, \
         and so did less work.\n",
        REFERENCE.about
    );
    for place in 0..METRICS.len() {
        let head = many_clients
            .iter()
            .map(|clients| format::counted(*clients, "client"));
        text += &format!(
            "\n### {}\n\n| model | {} |\n|---|{}\n",
            title(place),
            head.collect::<Vec<_>>().join(" | "),
            "---:|".repeat(many_clients.len())
        );
        for model in &models {
            text += &format!("| [{model}]({model}.md) |");
            for clients in &many_clients {
                let of_both = |row: &&Row| row.model == *model && row.clients == *clients;
                let cell = rows.iter().find(of_both).map(|row| cell(row, place));
                text += &format!(" {} |", cell.unwrap_or_default());
            }
            text.push('\n');
        }
    }
    text
}

fn cell(row: &Row, place: usize) -> String {
    let value = row.value(place);
    match row.standing(place) {
        Some((1, _)) => format!("**{value}**"),
        None if row.served < row.clients => format!("({value})"),
        _ => value,
    }
}

/// The text with a capital first letter, to begin a sentence.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.chain(chars).collect()
}
