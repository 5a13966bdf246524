//! Clients that did not finish their job, in words.

use std::fmt::Write as _;

use crate::summary::{FirstConnectFailure, Row, Summary};
use throng_record::format::{counted, list, whole};

/// "Clients that did not finish, of 64 clients in each trial: iterative 31 (connect-timeout); select 3 (reset)."
pub(super) fn failed(summary: &Summary, clients: u32) -> Option<String> {
    let of_row = |row: &Row| {
        let some = |metric| row.value(metric).filter(|count| *count > 0.0);
        let mut parts = Vec::new();
        if let Some(failed) = some("clients_failed") {
            let kinds: Vec<&str> = row.errors.keys().map(String::as_str).collect();
            parts.push(format!("{} ({})", whole(failed), list(&kinds)));
        }
        if let Some(unfinished) = some("clients_unfinished") {
            parts.push(format!("{} still waiting", whole(unfinished)));
        }
        (!parts.is_empty()).then(|| format!("{} {}", row.server, list(&parts)))
    };
    let failed: Vec<String> = summary.rows_at(clients).filter_map(of_row).collect();
    (!failed.is_empty()).then(|| {
        format!(
            "Clients that did not finish, of {} in each trial: {}.",
            counted(clients, "client"),
            failed.join("; ")
        )
    })
}

/// The number of clients at which some start failing to connect, and the role of the accept queue in that.
pub(super) fn connecting(summary: &Summary) -> Option<String> {
    let (failing, well): (Vec<_>, Vec<_>) = summary
        .first_connect_failures
        .iter()
        .partition(|first| first.clients.is_some());
    if failing.is_empty() {
        return None;
    }
    let parts = failing.iter().filter_map(|first| {
        let clients = first.clients?;
        let mut text = format!(
            "from {} on with {}",
            counted(clients, "client"),
            first.server
        );
        if let Some(none_with) = first.none_with {
            let _ = write!(text, " (none with {})", whole(f64::from(none_with)));
        }
        Some(text)
    });
    let mut text = format!(
        "Clients failed to connect {}",
        list(&parts.collect::<Vec<_>>())
    );
    if !well.is_empty() {
        let names: Vec<&str> = well.iter().map(|first| first.server.as_str()).collect();
        let _ = write!(text, "; never with {}", list(&names));
    }
    text.push('.');
    if let Some(queue) = accept_queue(summary, &failing) {
        let _ = write!(text, " {queue}");
    }
    Some(text)
}

/// "The accept queue holds 5 clients and was full: ..."
fn accept_queue(summary: &Summary, failing: &[&FirstConnectFailure]) -> Option<String> {
    let row = |first: &&FirstConnectFailure| {
        summary
            .rows
            .iter()
            .find(|row| row.server == first.server && Some(row.clients) == first.clients)
    };
    let rows = || failing.iter().filter_map(row);
    let backlog = rows().find_map(|one| one.value("accept_backlog"))?;
    let overflows: Vec<String> = rows()
        .filter_map(|one| Some((&one.server, one.value("listen_overflows")?)))
        .map(|(server, count)| format!("{} times with {server}", whole(count)))
        .collect();
    Some(format!(
        "The accept queue holds {} clients; in one trial it overflowed up to {}. When it is full, the kernel \
         drops SYNs, which clients send again after 1 s, or the last ACK of a handshake, so that only the \
         client believes it is connected.",
        whole(backlog),
        list(&overflows)
    ))
}
