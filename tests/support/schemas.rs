//! The JSON schemas of records.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value;

/// All schemas, by name.
pub(crate) struct Schemas(BTreeMap<&'static str, Validator>);

impl Schemas {
    pub(crate) fn read() -> Self {
        let compile = |name| jsonschema::validator_for(&schema(name)).expect("a valid schema");
        Self(
            ["run", "trial", "study"]
                .map(|name| (name, compile(name)))
                .into(),
        )
    }

    /// Asserts that a value matches a schema.
    pub(crate) fn check(&self, name: &str, value: &Value) {
        let faults = self.faults(name, value);
        assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
    }

    /// The parts of a value that a schema does not allow.
    pub(crate) fn faults(&self, name: &str, value: &Value) -> Vec<String> {
        let errors = self.0[name].iter_errors(value);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }
}

/// Reads a schema from its file.
fn schema(name: &str) -> Value {
    let path = path(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The file of a schema.
pub(crate) fn path(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(format!("schemas/{name}.schema.json"))
}
