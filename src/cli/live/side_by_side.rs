//! The current comparison of servers that are measured side by side: one row per server, with the interval of its rate or CPU
//! time as a bar around 1, which narrows as the comparison goes on.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use crate::record::format::{self, or_absent, printable};
use crate::record::{ServerSoFar, SideBySide};

const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const UNDECIDED: Style = Style::new().fg(Color::Cyan);
const BETTER: Style = Style::new().fg(Color::Green);
const WORSE: Style = Style::new().fg(Color::Red);

/// Maximum width of a name.
const NAME: usize = 40;
/// Total width of the columns with numbers, including the gaps before them.
const NUMBERS: usize = 57;
/// Width of the gap before a bar.
const GAP: usize = 2;
/// Minimum width of a bar.
const SHORTEST_BAR: usize = 7;
const LONGEST_BAR: usize = 41;

/// The ratio at the right end of all bars, with the words for the range from its inverse.
const RANGES: [(f64, &str); 9] = [
    (1.02, "±2 %"),
    (1.05, "±5 %"),
    (1.1, "±10 %"),
    (1.2, "±20 %"),
    (1.5, "±50 %"),
    (2.0, "1/2–2"),
    (5.0, "1/5–5"),
    (20.0, "1/20–20"),
    (1000.0, "all"),
];

/// A heading and the servers, in at most `rows` rows. If they do not all fit, the last row shows how many are left.
pub(super) fn table(seen: &SideBySide, width: usize, rows: usize) -> Vec<Line<'static>> {
    let others = NUMBERS + GAP + SHORTEST_BAR;
    let most = NAME.min(width.saturating_sub(others)).max(6);
    let names = seen
        .servers
        .iter()
        .map(|server| name(server, most).chars().count())
        .max()
        .unwrap_or(0)
        .max(6);
    let left = width.saturating_sub(names + NUMBERS + GAP).min(LONGEST_BAR);
    // With an odd number of cells, 1 has a cell of its own.
    let cells = (left.max(1) - 1) / 2 * 2 + 1;
    let ratios = seen.servers.iter().filter_map(|server| server.ratio);
    let ends = ratios.flat_map(|ratio| [ratio.low, ratio.high, Some(ratio.value)]);
    let farthest = ends
        .flatten()
        .map(|end| end.max(1.0 / end))
        .fold(1.0, f64::max);
    let fits = RANGES.iter().find(|(end, _)| farthest <= *end);
    let (range, words) = fits.unwrap_or(&RANGES[RANGES.len() - 1]);
    let has_bars = cells >= SHORTEST_BAR;
    let has_ratios = seen.servers.iter().any(|server| server.ratio.is_some());
    let above_bars = if has_bars && has_ratios { *words } else { "" };
    let compared = if seen.is_by_cpu { "CPU" } else { "rate" };
    let heading = format!(
        "{:names$} {:>10} {:>9} {:>9} {:>11} {:>13}  {above_bars:^cells$}",
        "server", "requests/s", "p50", "p99", "CPU/request", compared
    );
    let mut lines = vec![Line::styled(heading.trim_end().to_owned(), QUIET)];
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
            "{:names$} {:>10} {:>9} {:>9} {:>11} {:>13}",
            name(server, most),
            or_absent(server.requests_per_s, format::number),
            time(server.p50_us),
            time(server.p99_us),
            time(server.cpu_us_per_request),
            ratio(server, &seen.reference),
        );
        let mut spans = vec![Span::raw(text)];
        if has_bars {
            spans.push(Span::raw(" ".repeat(GAP)));
            spans.push(bar(seen, server, *range, cells));
        }
        Line::from(spans)
    }));
    if all > shown {
        lines.push(Line::styled(format!("and {} more", all - shown), QUIET));
    }
    lines.truncate(rows);
    lines
}

/// An interval around 1, which is in the middle.
fn bar(seen: &SideBySide, server: &ServerSoFar, range: f64, cells: usize) -> Span<'static> {
    let middle = cells / 2;
    let mut drawn = vec![' '; cells];
    drawn[middle] = '│';
    let Some(ratio) = server.ratio else {
        return Span::styled(drawn.into_iter().collect::<String>(), QUIET);
    };
    let place = |value: f64| {
        let share = (value.ln() / range.ln()).clamp(-1.0, 1.0);
        (middle as f64 * (1.0 + share)).round() as usize
    };
    let (low, high) = (
        ratio.low.unwrap_or(ratio.value),
        ratio.high.unwrap_or(ratio.value),
    );
    drawn[place(low)..=place(high)].fill('━');
    drawn[place(ratio.value)] = '█';
    let style = match seen.is_better(server) {
        Some(true) => BETTER,
        Some(false) => WORSE,
        None => UNDECIDED,
    };
    Span::styled(drawn.into_iter().collect::<String>(), style)
}

fn name(server: &ServerSoFar, most: usize) -> String {
    printable(&server.name).chars().take(most).collect()
}

/// The rate or CPU time relative to that of the reference: "0.940 ±1.2 %".
fn ratio(server: &ServerSoFar, reference: &str) -> String {
    let Some(ratio) = server.ratio else {
        return if server.name == reference {
            "reference".to_owned()
        } else {
            format::ABSENT.to_owned()
        };
    };
    let value = format!("{:.3}", ratio.value);
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else {
        return value;
    };
    let percent = 100.0 * ((high / ratio.value).max(ratio.value / low) - 1.0);
    let decimals = usize::from(percent < 9.95);
    format!("{value} ±{percent:.decimals$} %")
}
