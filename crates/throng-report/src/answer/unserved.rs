//! Unserved and starved clients, in words.

use super::ranked_rows;
use crate::summary::{Row, Summary};
use throng_record::format::{list, whole};

pub(super) fn starved(rows: &[&Row]) -> Option<String> {
    let starving: Vec<String> = rows
        .iter()
        .filter(|row| row.paced_by.is_none())
        .filter_map(|row| Some((&row.server, row.value("clients_starved")?)))
        .filter(|(_, starved)| *starved > 0.0)
        .map(|(server, starved)| format!("up to {} with {server}", whole(starved)))
        .collect();
    (!starving.is_empty()).then(|| {
        format!(
            "Starved clients, with less than a tenth of the mean replies: {}.",
            list(&starving)
        )
    })
}

/// "iterative served 1 of 4,000 clients: it serves one client at a time."
pub(super) fn not_ranked(row: &Row) -> Option<String> {
    if row.served_all {
        let why = row.not_comparable()?;
        return Some(format!("{} is not ranked: {why}.", row.server));
    }
    if row.trials_ok == 0 {
        let reason = row
            .failures
            .first()
            .map_or("no measurements", String::as_str);
        return Some(format!("{} failed in every trial ({reason}).", row.server));
    }
    let reason = match (&row.unserved_because, row.why_not_all()) {
        (Some(limit), _) => format!(": {limit}"),
        (None, Some(errors)) => format!(" ({errors}) and is not ranked"),
        (None, None) => " and is not ranked".to_owned(),
    };
    let served = row.served_in_words()?;
    Some(format!("{} served {served}{reason}.", row.server))
}

/// Starved clients, and servers that did not serve all clients.
pub(super) fn unserved(summary: &Summary, clients: u32) -> Vec<String> {
    let ranked = ranked_rows(summary, clients);
    let mut sentences: Vec<String> = starved(&ranked).into_iter().collect();
    sentences.extend(summary.rows_at(clients).filter_map(not_ranked));
    sentences
}

/// Says that no server served all clients. If there is only one server, also says why.
pub(super) fn nobody(with: &str, summary: &Summary, clients: u32) -> String {
    let mut rows = summary.rows_at(clients);
    match (rows.next(), rows.next()) {
        (Some(only), None) if only.served_all => {
            let why = only.not_comparable().unwrap_or_default();
            format!("{with}, {} has no result: {why}.", only.server)
        }
        (Some(only), None) => {
            let why = only.why_not_all();
            let why = why.map_or_else(String::new, |why| format!(": {why}"));
            format!("{with}, {} did not serve all of them{why}.", only.server)
        }
        _ => format!("{with}, no server served all of them."),
    }
}
