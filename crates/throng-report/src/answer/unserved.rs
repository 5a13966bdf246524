//! Who was not served, or hardly, in words.

use crate::summary::Row;
use throng_record::format::{list, whole};

pub(super) fn starved(rows: &[&Row]) -> Option<String> {
    let starving: Vec<String> = rows
        .iter()
        .filter(|row| row.paced_by.is_none())
        .filter_map(|row| Some((&row.server, row.value("clients_starved")?)))
        .filter(|(_, starved)| *starved > 0.0)
        .map(|(server, starved)| format!("{server} up to {}", whole(starved)))
        .collect();
    (!starving.is_empty()).then(|| {
        format!(
            "Clients that got less than a tenth of the mean: {}.",
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
            .map_or("no figures were taken", String::as_str);
        return Some(format!("{} failed in every trial ({reason}).", row.server));
    }
    let reason = match (&row.structural_limit, row.why_not_all()) {
        (Some(limit), _) => format!(": {limit}"),
        (None, Some(errors)) => format!(" ({errors}), so it is not ranked here"),
        (None, None) => ", so it is not ranked here".to_owned(),
    };
    let served = row.served_in_words()?;
    Some(format!("{} served {served}{reason}.", row.server))
}
