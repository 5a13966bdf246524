//! Unserved and starved clients, in words.

use crate::summary::Row;
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
