//! The current comparison of servers that are measured side by side: one row per server.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::measure::{RatiosSoFar, ServerSoFar};
use crate::record::format::{self, or_absent, printable};
use crate::record::metrics::Quantity;

const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const BAR: Style = Style::new().fg(Color::Cyan);

/// Maximum width of a name.
const NAME: usize = 40;
/// Total width of the columns with numbers, including the gaps before them.
const NUMBERS: usize = 66;
/// Minimum width of a bar.
const SHORTEST_BAR: usize = 8;
const LONGEST_BAR: usize = 40;

/// A heading and the servers, in at most `rows` rows. If they do not all fit, the last row shows how many are left.
pub(super) fn table(seen: &RatiosSoFar, width: usize, rows: usize) -> Vec<Line<'static>> {
    let most = NAME.min(width.saturating_sub(NUMBERS)).max(6);
    let names = seen
        .servers
        .iter()
        .map(|server| name(server, most).chars().count())
        .max()
        .unwrap_or(0)
        .max(6);
    let left = width.saturating_sub(names + NUMBERS + 2).min(LONGEST_BAR);
    let bar = if left < SHORTEST_BAR { 0 } else { left };
    let rates = seen.servers.iter().filter_map(|one| one.requests_per_s);
    let greatest = rates.fold(0.0, f64::max);
    let heading = format!(
        "{:names$} {:>10} {:>9} {:>9} {:>11} {:>22}",
        "server", "requests/s", "p50", "p99", "CPU/request", "rate"
    );
    let mut lines = vec![Line::styled(heading, QUIET)];
    let room = rows.saturating_sub(1);
    let all = seen.servers.len();
    let shown = if all > room {
        room.saturating_sub(1)
    } else {
        all
    };
    lines.extend(seen.servers[..shown].iter().map(|server| {
        let time = |time| or_absent(time, format::time);
        let text = format!(
            "{:names$} {:>10} {:>9} {:>9} {:>11} {:>22}",
            name(server, most),
            or_absent(server.requests_per_s, format::number),
            time(server.p50_us),
            time(server.p99_us),
            time(server.cpu_us_per_request),
            ratio(server, &seen.reference),
        );
        let share = server.requests_per_s.unwrap_or(0.0) / greatest.max(1.0);
        let cells = (share * bar as f64).round() as usize;
        Line::from(vec![
            Span::raw(text),
            Span::styled(format!("  {}", "█".repeat(cells.min(bar))), BAR),
        ])
    }));
    if all > shown {
        lines.push(Line::styled(format!("and {} more", all - shown), QUIET));
    }
    lines.truncate(rows);
    lines
}

fn name(server: &ServerSoFar, most: usize) -> String {
    printable(&server.name).chars().take(most).collect()
}

/// The rate relative to that of the reference: "0.940 (0.929–0.951)".
fn ratio(server: &ServerSoFar, reference: &str) -> String {
    match &server.ratio {
        Some(ratio) => Quantity::of_ratio(*ratio).as_ratio(),
        None if server.name == reference => "reference".to_owned(),
        None => format::ABSENT.to_owned(),
    }
}
