//! `schemas/*.schema.json` describe the types of records.

use std::fs;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use throng::record::{Run, Study, Trial};

use crate::support::schemas::{Schemas, path};

fn schema<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(RecursiveTransform(without_null));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_owned(), json!(title));
    schema
}

/// A value that is missing is absent.
fn without_null(schema: &mut Schema) {
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|one| one != "null");
    }
    if let Some(schemas) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        schemas.retain(|one| one["type"] != "null");
    }
}

#[test]
fn the_schemas_are_current() {
    for (name, schema) in [
        ("run", schema::<Run>("A run of throng")),
        ("trial", schema::<Trial>("A trial of throng")),
        ("study", schema::<Study>("A study of throng")),
    ] {
        let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
        // Links of the documentation lead nowhere in a schema.
        let text = text.replace("[`", "`").replace("`]", "`");
        let path = path(name);
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            fs::write(&path, &text).expect("it can be written");
        }
        let committed = fs::read_to_string(&path).expect("it can be read");
        assert!(
            committed == text,
            "{} is not current; run UPDATE_SCHEMAS=1 cargo test --test pure schemas",
            path.display()
        );
    }
}

#[test]
fn undescribed_fields_are_rejected() {
    let schemas = Schemas::read();
    let mut trial = serde_json::to_value(Trial::default()).expect("a trial is JSON");
    assert_eq!(schemas.faults("trial", &trial), [""; 0]);
    trial["surprise"] = json!(1);
    assert!(!schemas.faults("trial", &trial).is_empty());
}
