//! `schemas/*.schema.json`: they describe everything that a record can contain, and nothing else.

mod full;
mod full_load;

use serde_json::{Value, json};

use full::{full_run, full_study, full_trial};

use crate::support::schemas::{Schemas, schema};

#[test]
fn everything_a_record_can_hold_is_described() {
    let schemas = Schemas::read();
    schemas.check("run", &full_run());
    schemas.check("trial", &full_trial());
    schemas.check("study", &full_study());
}

#[test]
fn everything_described_can_be_in_a_record() {
    for (name, value) in [
        ("run", full_run()),
        ("trial", full_trial()),
        ("study", full_study()),
    ] {
        let schema = schema(name);
        let mut unused = Vec::new();
        compare(&schema, &schema, &value, name, &mut unused);
        assert!(unused.is_empty(), "no record has {unused:?}");
    }
}

/// Collects described properties that are missing in `value`, which has every possible value.
fn compare(root: &Value, schema: &Value, value: &Value, path: &str, unused: &mut Vec<String>) {
    let named = schema["$ref"]
        .as_str()
        .and_then(|name| root.pointer(&name[1..]));
    let schema = named.unwrap_or(schema);
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        assert!(
            inner["description"].is_string(),
            "{path} has no description"
        );
        match value.get(name) {
            Some(value) => compare(root, inner, value, &path, unused),
            None => unused.push(path),
        }
    }
    if schema["properties"].is_object() {
        assert_eq!(schema["additionalProperties"], false, "{path} is open");
    }
    if let Some(first) = value.get(0) {
        compare(root, &schema["items"], first, &format!("{path}[0]"), unused);
    }
}

#[test]
fn undescribed_fields_are_rejected() {
    let schemas = Schemas::read();
    for place in [
        "",
        "/study",
        "/settings",
        "/host",
        "/servers/0",
        "/warnings/0",
    ] {
        let mut run = full_run();
        assert!(schemas.faults("run", &run).is_empty());
        run.pointer_mut(place).expect("the place exists")["surprise"] = json!(1);
        assert!(!schemas.faults("run", &run).is_empty(), "at `{place}`");
    }
    for place in [
        "",
        "/load",
        "/load/window",
        "/server_side",
        "/server_counts",
        "/failure",
    ] {
        let mut trial = full_trial();
        trial.pointer_mut(place).expect("the place exists")["surprise"] = json!(1);
        assert!(!schemas.faults("trial", &trial).is_empty(), "at `{place}`");
    }
}
