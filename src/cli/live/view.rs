//! The content of the view: the current trial, drawn into a buffer of any size.

use std::time::Instant;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};

use super::clock::{Clock, Times};
use super::side_by_side;
use super::trend::Trend;
use crate::measure::LiveSnapshot;
use crate::record::SideBySide;
use crate::record::format::{self, ABSENT, or_absent, printable, span};

/// Styles that are readable on light and dark backgrounds.
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
const QUIET: Style = Style::new().add_modifier(Modifier::DIM);
const BAR: Style = Style::new().fg(Color::Cyan);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);

/// From this width on, figures are shown in two columns.
const ROOMY: u16 = 119;
/// Widths of a figure's name and of its value.
const NAME: usize = 12;
const VALUE: usize = 17;

/// The current item.
#[derive(Debug, Clone)]
pub(super) struct State {
    heading: String,
    what: String,
    clock: Clock,
    has_server: bool,
    live_snapshot: LiveSnapshot,
    /// The servers, if they are measured side by side.
    side_by_side: Option<SideBySide>,
    share: Option<f64>,
    times: Times,
    rate: Trend,
    slow: Trend,
    server_cpu: Trend,
    client_cpu: Trend,
}

impl State {
    pub(super) fn new(heading: &str, what: &str, clock: Clock, has_server: bool) -> Self {
        let live_snapshot = LiveSnapshot {
            phase: "starting",
            ..LiveSnapshot::default()
        };
        Self {
            heading: heading.to_owned(),
            what: printable(what),
            times: clock.times(None, Instant::now()),
            clock,
            has_server,
            live_snapshot,
            side_by_side: None,
            share: None,
            rate: Trend::default(),
            slow: Trend::default(),
            server_cpu: Trend::default(),
            client_cpu: Trend::default(),
        }
    }

    /// Updates the current state and the share that is done, if reported.
    pub(super) fn see(&mut self, live_snapshot: &LiveSnapshot, share: Option<f64>, now: Instant) {
        self.live_snapshot = *live_snapshot;
        self.share = share;
        self.times = self.clock.times(share, now);
    }

    /// Updates the comparison.
    pub(super) fn see_side_by_side(&mut self, seen: &SideBySide, now: Instant) {
        let servers = format::counted(seen.servers.len() as u32, "server");
        self.heading = format!("{servers} side by side");
        (self.what, self.live_snapshot.phase) = match seen.rounds {
            0 => ("before round 1".to_owned(), "warm-up"),
            rounds => (format!("round {}", format::whole(rounds.into())), "measure"),
        };
        self.share = None;
        self.times = self.clock.times(self.share, now);
        self.side_by_side = Some(seen.clone());
    }

    /// Called before each draw: appends the current values to the trends.
    pub(super) fn tick(&mut self, now: Instant) {
        let live_snapshot = &self.live_snapshot;
        self.times = self.clock.times(self.share, now);
        self.rate.push(live_snapshot.replies_per_s);
        self.slow
            .push(live_snapshot.clients.p99_ns.map(|time| time as f64));
        self.server_cpu.push(live_snapshot.server_cpu_percent);
        self.client_cpu.push(live_snapshot.client_cpu_percent);
    }

    /// The figures with their trends.
    fn figures(&self) -> Vec<Figure<'_>> {
        let live_snapshot = &self.live_snapshot;
        let time_text =
            |time: Option<u64>| or_absent(time.map(|time| time as f64 / 1e3), format::time);
        let percent_text = |percent| or_absent(percent, |percent| format!("{percent:.0} %"));
        let figure = |name, value, trend, full| Figure {
            name,
            value,
            trend,
            full,
        };
        let rate = or_absent(live_snapshot.replies_per_s, format::number);
        let times = format!(
            "{}, {}",
            time_text(live_snapshot.clients.p50_ns),
            time_text(live_snapshot.clients.p99_ns)
        );
        let mut figures = vec![
            figure("requests/s", rate, &self.rate, 0.0),
            figure("p50, p99", times, &self.slow, 0.0),
        ];
        if self.has_server {
            let (server, client) = (
                live_snapshot.server_cpu_percent,
                live_snapshot.client_cpu_percent,
            );
            figures.extend([
                figure("server CPU", percent_text(server), &self.server_cpu, 100.0),
                figure("client CPU", percent_text(client), &self.client_cpu, 100.0),
            ]);
        }
        figures
    }

    /// The numbers of clients and of failures as text.
    fn clients(&self) -> Line<'static> {
        let clients = &self.live_snapshot.clients;
        let count = |count: u64| format::whole(count as f64);
        let mut words = vec![
            format!("{} connected", count(clients.present)),
            format!("{} served", count(clients.answered)),
        ];
        if clients.done > 0 {
            words.push(format!("{} done", count(clients.done)));
        }
        if self.has_server {
            let established = self
                .live_snapshot
                .established
                .map_or(ABSENT.to_owned(), count);
            words.push(format!("{established} established"));
        }
        let mut parts = vec![name("clients")];
        let errors = match (clients.failed, clients.lost) {
            (0, 0) => {
                words.push("no errors".to_owned());
                String::new()
            }
            (0, lost) => format!("{} requests lost", count(lost)),
            (failed, 0) => format!("{} clients failed", count(failed)),
            (failed, lost) => {
                let (failed, lost) = (count(failed), count(lost));
                format!("{failed} clients failed, {lost} requests lost")
            }
        };
        if !errors.is_empty() {
            // Errors come first, since the last items do not fit on a narrow terminal.
            parts.extend([Span::styled(errors, BAD), Span::raw("; ")]);
        }
        parts.push(Span::raw(words.join(", ")));
        Line::from(parts)
    }

    /// The current item and its phase.
    fn title(&self) -> Line<'_> {
        Line::from(vec![
            Span::styled(&self.heading, STRONG),
            Span::raw("  "),
            Span::raw(&self.what),
            Span::raw("  "),
            Span::styled(self.live_snapshot.phase, QUIET),
        ])
    }

    /// The overall progress: the time, and a bar that fills the rest of the width.
    fn progress(&self, width: usize) -> Line<'static> {
        let time = match self.times.left {
            Some(left) => format!("{} left", span(left)),
            None => format!("{} so far", span(self.times.passed)),
        };
        let Some(share) = self.times.share else {
            return Line::styled(time, QUIET);
        };
        let share = share.clamp(0.0, 1.0);
        let words = format!(" {:>3.0} %  {time}", (share * 100.0).floor());
        let room = width.saturating_sub(words.chars().count());
        let done = (share * room as f64).floor() as usize;
        Line::from(vec![
            Span::styled("━".repeat(done), BAR),
            Span::styled("─".repeat(room - done), QUIET),
            Span::raw(words),
        ])
    }
}

/// A figure with its trend.
struct Figure<'a> {
    name: &'static str,
    value: String,
    trend: &'a Trend,
    /// The value of a full bar, unless the trend has a larger one.
    full: f64,
}

fn name(name: &str) -> Span<'static> {
    Span::styled(format!("{name:NAME$}"), QUIET)
}

impl Figure<'_> {
    fn line(&self, width: usize) -> Line<'static> {
        let room = width.saturating_sub(NAME + VALUE + 2);
        Line::from(vec![
            name(self.name),
            Span::raw(format!("{:VALUE$}  ", self.value)),
            Span::styled(self.trend.bars(room, self.full), BAR),
        ])
    }
}

/// Draws into `columns` columns and at most `rows` rows. The least important lines are left out first.
pub(super) fn draw(state: &State, columns: u16, rows: u16) -> Buffer {
    let width = usize::from(columns);
    let figures = state.figures();
    let mut lines = vec![vec![state.title()], vec![state.progress(width)]];
    if let Some(seen) = &state.side_by_side {
        let room = usize::from(rows).saturating_sub(lines.len());
        let table = side_by_side::table(seen, width, room);
        lines.extend(table.into_iter().map(|line| vec![line]));
        lines.truncate(usize::from(rows));
        return buffer(&lines, columns);
    }
    lines.push(vec![state.clients()]);
    if columns >= ROOMY {
        let half = width / 2;
        for pair in figures.chunks(2) {
            lines.push(pair.iter().map(|figure| figure.line(half - 2)).collect());
        }
    } else {
        lines.extend(figures.iter().map(|figure| vec![figure.line(width)]));
    }
    lines.truncate(usize::from(rows));
    buffer(&lines, columns)
}

/// Draws lines; the parts of a line share its width equally.
fn buffer(lines: &[Vec<Line<'_>>], columns: u16) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, lines.len() as u16));
    for (row, parts) in lines.iter().enumerate() {
        let share = columns / parts.len() as u16;
        for (place, part) in parts.iter().enumerate() {
            let left = share * place as u16;
            buffer.set_line(left, row as u16, part, columns - left);
        }
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::super::clock::Forecast;
    use super::super::screen::lines;
    use super::*;
    use crate::measure::TimeEstimate;
    use crate::record::metrics::Quantity;
    use crate::record::{LoadSnapshot, ServerSoFar};
    use crate::stats::LogRatio;

    fn running() -> State {
        let estimate = TimeEstimate {
            before: 4.0,
            this: 2.0,
            after: 122.0,
            in_seconds: true,
        };
        let start = Instant::now();
        let clock = Forecast::new([0.0; 2]).begin(Some(estimate), start);
        let mut state = State::new(
            "trial 3 of 64",
            "epoll with 1,000 clients, round 1",
            clock,
            true,
        );
        for step in 0_u32..100 {
            let live_snapshot = LiveSnapshot {
                phase: "measure",
                clients: LoadSnapshot {
                    present: 1000,
                    answered: 1000,
                    p50_ns: Some(2_040_000),
                    p99_ns: Some(21_400_000 + 1_000_000 * u64::from(step % 9)),
                    ..LoadSnapshot::default()
                },
                replies_per_s: Some(148_000.0 + 9_000.0 * f64::from(step % 7)),
                established: Some(1000),
                server_cpu_percent: (step > 50).then_some(99.6),
                client_cpu_percent: (step > 50).then_some(97.2),
            };
            state.see(&live_snapshot, None, start);
            state.tick(start);
        }
        state
    }

    /// The text of a drawn view. Checks that no line is wider than the view.
    fn drawn(state: &State, columns: u16, rows: u16, colour: bool) -> String {
        let lines = lines(&draw(state, columns, rows), colour);
        let plain = |line: &String| anstream::adapter::strip_str(line).to_string();
        let widest = lines.iter().map(|line| plain(line).chars().count()).max();
        assert!(widest <= Some(columns.into()), "{lines:?}");
        lines.join("\n")
    }

    #[test]
    fn at_60_columns() {
        insta::assert_snapshot!(drawn(&running(), 59, 23, false));
    }

    #[test]
    fn at_80_columns() {
        insta::assert_snapshot!(drawn(&running(), 79, 23, false));
    }

    #[test]
    fn at_160_columns() {
        insta::assert_snapshot!(drawn(&running(), 159, 23, false));
    }

    #[test]
    fn in_colour() {
        let coloured = drawn(&running(), 79, 23, true);
        insta::assert_snapshot!(coloured.replace('\x1b', "␛"));
        let plain = anstream::adapter::strip_str(&coloured).to_string();
        assert_eq!(plain, drawn(&running(), 79, 23, false));
    }

    #[test]
    fn a_search_that_has_just_begun() {
        let clock = Forecast::new([0.0; 2]).begin(None, Instant::now());
        let state = State::new("trial 1", "thread with 10 clients", clock, true);
        insta::assert_snapshot!(drawn(&state, 79, 23, false));
    }

    fn so_far(name: &str) -> ServerSoFar {
        ServerSoFar {
            name: name.to_owned(),
            ..ServerSoFar::default()
        }
    }

    fn side_by_side() -> State {
        let server = |name: &str, rate: f64, ratio: f64| ServerSoFar {
            name: name.to_owned(),
            requests_per_s: Some(rate),
            p50_us: Some(1e8 / rate),
            p99_us: Some(5e8 / rate),
            cpu_us_per_request: Some(1e6 / rate),
            ratio: (ratio < 1.0).then(|| {
                Quantity::of_ratio(LogRatio {
                    log: ratio.ln(),
                    error: 0.004,
                    floor: 0.0,
                    freedom: 100.0,
                    pairs: 100,
                })
            }),
        };
        let mut state = running();
        let seen = SideBySide {
            rounds: 1234,
            reference: "epoll".to_owned(),
            servers: vec![
                server("epoll", 148_000.0, 1.0),
                server("poll", 45_500.0, 0.31),
                server("select --fd-setsize 20000", 34_500.0, 0.23),
            ],
            is_by_cpu: false,
        };
        state.see_side_by_side(&seen, Instant::now());
        state
    }

    #[test]
    fn servers_side_by_side() {
        let both = [79, 119].map(|columns| drawn(&side_by_side(), columns, 23, false));
        insta::assert_snapshot!(both.join("\n\n"));
        let low = drawn(&side_by_side(), 79, 5, false);
        assert!(low.ends_with("and 2 more"), "{low}");
    }

    #[test]
    fn servers_that_warm_up_one_after_the_other() {
        let mut state = running();
        let (warm, cold) = (
            ServerSoFar {
                requests_per_s: Some(1.5e5),
                ..so_far("epoll")
            },
            so_far("poll"),
        );
        let seen = SideBySide {
            reference: "epoll".to_owned(),
            servers: vec![warm, cold],
            ..SideBySide::default()
        };
        state.see_side_by_side(&seen, Instant::now());
        insta::assert_snapshot!(drawn(&state, 79, 23, false));
    }

    #[test]
    fn a_load_by_itself_that_meets_errors() {
        let mut state = State::new("load", "127.0.0.1:7", Clock::of_share(Some(60.0)), false);
        let live_snapshot = LiveSnapshot {
            phase: "connect",
            clients: LoadSnapshot {
                present: 12,
                answered: 10,
                failed: 2,
                lost: 3,
                ..LoadSnapshot::default()
            },
            ..LiveSnapshot::default()
        };
        state.see(&live_snapshot, Some(0.0), Instant::now());
        insta::assert_snapshot!(drawn(&state, 79, 23, false));
    }

    #[test]
    fn no_size_is_too_small() {
        for columns in 1..40 {
            for rows in 1..9 {
                for state in [running(), side_by_side()] {
                    let text = drawn(&state, columns, rows, false);
                    assert!(text.lines().count() <= rows.into());
                }
            }
        }
    }

    #[test]
    fn a_name_cannot_steer_the_terminal() {
        let clock = Forecast::new([0.0; 2]).begin(None, Instant::now());
        let state = State::new("trial 1", "\x1b[2Jx with 1 client", clock, true);
        assert!(!drawn(&state, 79, 23, true).contains("\x1b[2J"));
    }
}
