//! The same ratio has the same verdict wherever a run shows it: the reference run of the overview, cell by cell.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use throng::report::document::{html, markdown};
use throng::report::exporters::EXPORTERS;
use throng::report::figures::Figure;
use throng::report::sections::of_study;
use throng::report::study::scenes::SceneResult;
use throng::report::study::{StudyReport, load};

/// The latest reference run of the overview.
fn record() -> PathBuf {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let days = std::fs::read_dir(results).expect("the directory can be read");
    let runs = days.map(|day| day.expect("an entry").path().join("overview"));
    runs.filter(|run| run.is_dir()).max().expect("there is one")
}

/// The servers of each scene by their standing, as `summary.json` has them.
fn exported(report: &StudyReport<'_>) -> Value {
    let json = EXPORTERS.iter().find(|one| one.info.name == "json");
    let mut text = Vec::new();
    (json.expect("it is there").render_study)(report, &mut text).expect("it can be written");
    serde_json::from_slice(&text).expect("it is JSON")
}

/// The tied servers of a ranking as a figure shows them, or the best alone.
fn best_in(figure: &Figure, title: &str) -> Option<BTreeSet<String>> {
    let mut ranked = figure.ranked.iter();
    let panel = ranked.find(|panel| panel.title.starts_with(title))?;
    let best = panel
        .groups
        .iter()
        .find(|group| group.is_tied)
        .or(panel.groups.first())?;
    Some(best.rows.iter().map(|row| row.name.clone()).collect())
}

/// Every server that is worse has the factor of the export.
fn factors_agree(scene: &SceneResult<'_>, best: &BTreeSet<String>, places: &[Value]) {
    for place in places.iter().filter(|place| place["standing"] == "worse") {
        let server = place["server"].as_str().expect("a name");
        assert!(!best.contains(server));
        let own = scene.place_of(server).expect("it has a place");
        let times = place["times"]["value"].as_f64().expect("a ratio");
        assert!((own.times.value - times).abs() < 1e-9, "{server}");
        assert!(own.times.low.is_none_or(|low| low > 1.0), "{server}");
    }
}

#[test]
fn a_ratio_has_one_verdict_in_all_places() {
    let loaded = load(&record()).expect("it can be read");
    let report = loaded.report().expect("histograms can be read");
    let summary = exported(&report);
    let document = of_study(&report);
    let (page, text) = (html::page(&document), markdown::text(&document));
    let pictures = report.pictures();
    let scenes = report.scenes();
    assert!(scenes.len() >= 3, "the overview has scenes");
    let (mut decided, mut in_pictures, mut in_parts, mut in_answers) = (0, 0, 0, 0);
    for (number, scene) in scenes.iter().enumerate() {
        let name = &scene.scene.name;
        let part = scene.part.report.as_ref().expect("it ran");
        let best: BTreeSet<String> = scene.best().iter().map(|one| (*one).to_owned()).collect();
        // The export.
        let of_scene = &summary["scenes"][number];
        assert_eq!(of_scene["name"], name.as_str());
        let places = of_scene["places"].as_array().expect("places");
        let is_best = |place: &&Value| place["standing"] == "best";
        let names: BTreeSet<String> = places
            .iter()
            .filter(is_best)
            .map(|place| place["server"].as_str().expect("a name").to_owned())
            .collect();
        assert_eq!(names, best, "{name}: summary.json");
        if best.is_empty() {
            continue;
        }
        decided += 1;
        // The sentence, on the page and in Markdown.
        assert!(page.contains(&scene.sentence), "{}", scene.sentence);
        assert!(text.contains(&scene.sentence), "{}", scene.sentence);
        let is_tie = scene.sentence.contains(" tie for ");
        assert_eq!(is_tie, best.len() > 1, "{}", scene.sentence);
        // The picture of the scene, and that of the part.
        let id = format!("scene-{}", number + 1);
        let picture = pictures
            .iter()
            .find(|figure| figure.id == id)
            .expect("a picture");
        let deciding = picture
            .ranked
            .iter()
            .find(|panel| panel.groups.iter().any(|g| g.is_tied));
        if let Some(panel) = deciding {
            in_pictures += 1;
            assert_eq!(
                best_in(picture, &panel.title),
                Some(best.clone()),
                "{name}: {id}"
            );
        }
        let overview = part.figures.iter().find(|figure| figure.id == "overview");
        let largest = part.summary.clients.last() == Some(&scene.clients);
        // The part's picture has requests per CPU second: the same ratio as CPU per request, turned round.
        let is_of_cpu = scene.metric().name == "server_cpu_us_per_request";
        let in_part = overview
            .filter(|_| largest && is_of_cpu)
            .and_then(|figure| best_in(figure, "Requests per CPU-second"));
        if let Some(shown) = in_part {
            in_parts += 1;
            assert_eq!(shown, best, "{name}: the part's picture");
        }
        // The part's own answer, where it is about the same metric.
        let noun = scene.metric().noun();
        let first = &part.answer.first;
        let says_tie = first.contains(&format!("tie for the best {noun}"));
        let says_best = first.contains(" uses the least ") || says_tie;
        if largest && says_best && first.contains(&noun) {
            in_answers += 1;
            assert_eq!(says_tie, best.len() > 1, "{first}");
        }
        factors_agree(scene, &best, places);
    }
    let compared = [decided, in_pictures, in_parts, in_answers];
    assert!(
        compared.iter().all(|count| *count >= 2),
        "{compared:?} places were compared"
    );
}
