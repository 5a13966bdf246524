//! Listings: help, lists, and the check of the machine.

use throng::serve::models::MODELS;
use throng::study::Study;

use super::throng;

#[test]
fn every_subcommand_has_help_with_examples() {
    for subcommand in [
        "run", "serve", "load", "compare", "measure", "report", "list", "doctor",
    ] {
        let finished = throng(&[subcommand, "--help"]);
        assert_eq!(finished.code, 0, "{finished:?}");
        assert!(finished.out.contains("Usage: throng"), "{finished:?}");
        assert!(finished.out.contains("Examples:"), "{finished:?}");
    }
    assert_eq!(throng(&["--help"]).code, 0);
    assert_eq!(
        throng(&["--version"]).out.trim(),
        concat!("throng ", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(throng(&[]).code, 2);
}

#[test]
fn lists_are_arrays_of_named_objects() {
    for kind in [
        "models",
        "protocols",
        "probes",
        "studies",
        "exporters",
        "figures",
        "metrics",
    ] {
        let finished = throng(&["list", kind, "--json"]);
        assert_eq!(finished.code, 0, "{finished:?}");
        let list = finished.json();
        for entry in list.as_array().expect("a list is an array") {
            assert!(entry["name"].is_string(), "{kind}: {entry}");
            assert!(entry["summary"].is_string(), "{kind}: {entry}");
            let supported = entry["supported"].as_bool().expect("yes or no");
            for key in ["reason", "remedy"] {
                assert_eq!(entry[key].is_string(), !supported, "{kind}: {entry}");
            }
        }
    }
    let names: Vec<&str> = MODELS.iter().map(|model| model.info.name).collect();
    let listed = throng(&["list", "models", "--json"]).json();
    let listed: Vec<&str> = listed
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|model| model["name"].as_str())
        .collect();
    assert_eq!(listed, names);
}

#[test]
fn a_listed_study_is_a_file_that_can_be_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("copy.toml");
    std::fs::write(
        &file,
        throng(&["list", "studies", "overview", "--toml"]).out,
    )
    .unwrap();
    let study = Study::find(file.to_str().unwrap()).unwrap();
    let built_in = Study::find("overview").unwrap();
    assert_eq!((study.name, study.parts), (built_in.name, built_in.parts));
}

#[test]
fn doctor_finds_and_judges() {
    let finished = throng(&["doctor", "--json"]);
    assert_eq!(finished.code, 0, "{finished:?}");
    let findings = finished.json();
    let findings = findings.as_array().expect("findings are an array");
    for finding in findings {
        let has = |key: &str| finding[key].as_str().is_some_and(|text| !text.is_empty());
        assert!(has("kind") && has("text") && has("remedy"), "{finding}");
    }
    for kind in ["models", "probes"] {
        let listed = throng(&["list", kind, "--json"]).json();
        for entry in listed.as_array().expect("entries are an array") {
            let why = entry["reason"].as_str();
            let is_found = |why: &str| {
                let mut texts = findings
                    .iter()
                    .filter_map(|finding| finding["text"].as_str());
                texts.any(|text| text.contains(why))
            };
            assert!(why.is_none_or(is_found), "{entry}");
        }
    }
}

#[test]
fn no_colours_without_a_terminal() {
    for arguments in [&["list"][..], &["doctor"], &["serve", "epol"]] {
        let finished = throng(arguments);
        assert!(
            !finished.out.contains('\x1b') && !finished.err.contains('\x1b'),
            "{finished:?}"
        );
    }
}
