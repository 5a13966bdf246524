//! The picture of a scene: the deciding metric with few and with many clients, and further metrics.

use super::scenes::{CLOSE, FAR, SceneResult};
use crate::comparison::ranking::{MARGIN_OF_TIES, Place, Standing};
use crate::figures::{Figure, Grouped, OfSection, Ranked, Source, ranked_of};
use crate::summary::{Row, Summary};
use throng_record::format::{capitalized, counted, list};
use throng_record::metrics::{Metric, named};

/// IDs of pictures; each is unique on a page.
const NAMES: [&str; 8] = [
    "scene-1", "scene-2", "scene-3", "scene-4", "scene-5", "scene-6", "scene-7", "scene-8",
];

/// Servers with the same verdict, by name.
struct ServerGroup<'a> {
    title: String,
    is_tied: bool,
    names: Vec<&'a str>,
}

/// The picture of the scene with index `number`. `servers` lists the servers of the whole study.
pub(crate) fn picture(
    shown: &SceneResult<'_>,
    number: usize,
    servers: &[String],
) -> Option<Figure> {
    let summary = &shown.part.report.as_ref()?.summary;
    let fewest = *summary.clients.first()?;
    let few = (fewest < shown.clients).then_some((shown.metric(), fewest));
    let beside = shown.scene.beside.iter().filter_map(|name| named(name));
    let panels = few
        .into_iter()
        .chain([(shown.metric(), shown.clients)])
        .chain(beside.map(|metric| (metric, shown.clients)));
    let id = NAMES.get(number).unwrap_or(&"scene");
    drawn(id, shown, panels, servers)
}

/// One panel for each scene: the metric that decides it.
pub(crate) fn deciding_picture(scenes: &[SceneResult<'_>], servers: &[String]) -> Option<Figure> {
    let mut all = scenes.iter().filter_map(|shown| {
        let decides = [(shown.metric(), shown.clients)].into_iter();
        let mut figure = drawn("headline", shown, decides, servers)?;
        for panel in &mut figure.ranked {
            if shown.scene.title != capitalized(&shown.metric().noun()) {
                panel.title = format!("{}: {}", shown.scene.title, panel.title);
            }
        }
        Some(figure)
    });
    let first = Figure {
        title: "Every load".to_owned(),
        ..all.next()?
    };
    Some(all.fold(first, |mut whole, one| {
        whole.ranked.extend(one.ranked);
        whole.alternative = format!("{} {}", whole.alternative, one.alternative);
        whole
    }))
}

/// A scene, with one panel per metric and number of clients in `panels`.
fn drawn(
    id: &'static str,
    shown: &SceneResult<'_>,
    panels: impl Iterator<Item = (&'static Metric, u32)>,
    servers: &[String],
) -> Option<Figure> {
    let summary = &shown.part.report.as_ref()?.summary;
    let title = shown.scene.title.clone();
    let groups = groups(shown, summary);
    let decides = (shown.metric(), shown.clients);
    let made: Vec<(bool, Ranked)> = panels
        .filter_map(|(metric, clients)| {
            let drawn = panel(summary, metric, clients, &groups, servers, shown)?;
            Some(((metric, clients) == decides, drawn))
        })
        .collect();
    let deciding = made.iter().find(|(is_deciding, _)| *is_deciding);
    let (_, deciding) = deciding.or(made.first())?;
    let words: Vec<String> = deciding
        .rows()
        .filter(|row| row.point.is_some() || row.failed)
        .map(|row| format!("{} {}", row.name, row.text))
        .collect();
    let figure = Figure {
        alternative: format!("{title}. {}: {}.", shown.metric().label, list(&words)),
        better: shown.metric().better,
        section: OfSection::Answer,
        ranked: made.into_iter().map(|(_, drawn)| drawn).collect(),
        ..Figure::empty(id, title)
    };
    let caption = if shown.is_one_trial {
        format!(
            "One trial per server, so values within {:.0} % count as ties with the best (blue).",
            100.0 * MARGIN_OF_TIES
        )
    } else if best_ties(shown) {
        figure.estimator() + " Blue: ties with the best."
    } else {
        figure.estimator()
    };
    Some(Figure { caption, ..figure })
}

/// Whether several servers tie for the best.
fn best_ties(shown: &SceneResult<'_>) -> bool {
    shown.best().len() > 1
}

/// The servers in groups: those that tie for the best, those close to it, those further behind, those without a
/// verdict, and those that did not serve all clients.
fn groups<'a>(shown: &SceneResult<'a>, summary: &'a Summary) -> Vec<ServerGroup<'a>> {
    let worse = |from: f64, to: f64| {
        let is_in = move |place: &Place| {
            place.standing == Standing::Worse && (from..to).contains(&place.times.value)
        };
        shown.names(is_in)
    };
    let best = shown.best();
    let best_title = match best.len() {
        1 => "Best",
        _ => "Best: no significant difference",
    };
    let named = |title: String, is_tied, names| ServerGroup {
        title,
        is_tied,
        names,
    };
    let ranked: Vec<&str> = shown
        .places
        .iter()
        .map(|place| place.server.as_str())
        .collect();
    let others = |has_served: bool| {
        let others = summary
            .rows_at(shown.clients)
            .filter(|row| row.served_all == has_served)
            .map(|row| row.server.as_str());
        others.filter(|name| !ranked.contains(name)).collect()
    };
    let mut groups = vec![
        named(best_title.to_owned(), best.len() > 1, best),
        named(
            "Undecided".to_owned(),
            false,
            shown.names(|place| place.standing == Standing::Unclear),
        ),
        named(
            format!("Within {:.0} %", 100.0 * (CLOSE - 1.0)),
            false,
            worse(0.0, CLOSE),
        ),
        named(format!("Up to {FAR:.0}x"), false, worse(CLOSE, FAR)),
        named(
            format!("More than {FAR:.0}x"),
            false,
            worse(FAR, f64::INFINITY),
        ),
        named(
            format!("Not ranked: {}", shown.why_unranked),
            false,
            shown.names(|place| place.standing == Standing::Unknown),
        ),
        named("Not comparable".to_owned(), false, others(true)),
        named(
            "Did not serve every client as expected".to_owned(),
            false,
            others(false),
        ),
    ];
    groups.retain(|group| !group.names.is_empty());
    groups
}

fn panel(
    summary: &Summary,
    metric: &'static Metric,
    clients: u32,
    groups: &[ServerGroup<'_>],
    servers: &[String],
    shown: &SceneResult<'_>,
) -> Option<Ranked> {
    let row_of = |name: &str| -> Option<&Row> {
        let mut rows = summary.rows_at(clients);
        rows.find(|row| row.server == name)
    };
    let decides = metric.name == shown.metric().name && clients == shown.clients;
    let made = groups.iter().map(|group| {
        let rows = group.names.iter().filter_map(|name| row_of(name));
        (
            group.title.clone(),
            group.is_tied && decides,
            rows.collect(),
        )
    });
    let source = Source::of_servers(summary, servers);
    let ranked = ranked_of(&source, metric, made.collect(), decides)?;
    let with = counted(clients, "client");
    Some(Ranked {
        title: format!("{}, {with}", ranked.title),
        groups: ranked
            .groups
            .into_iter()
            .filter(|group: &Grouped| !group.rows.is_empty())
            .collect(),
        ..ranked
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Kind;

    #[test]
    fn a_tie_is_marked_where_it_was_decided_only() {
        let (study, of_parts) = super::super::fixture::scenes();
        let loaded = super::super::LoadedStudy {
            study,
            parts: of_parts,
        };
        let report = loaded.report().unwrap();
        let scenes = report.scenes();
        let figure = picture(&scenes[0], 0, &report.servers).unwrap();
        assert_eq!((figure.kind, figure.ranked.len()), (Kind::Ranked, 3));
        let tied = |ranked: &Ranked| {
            let mut groups = ranked.groups.iter();
            groups.any(|group| group.is_tied)
        };
        assert!(!tied(&figure.ranked[0]) && !tied(&figure.ranked[2]));
    }
}
