//! A load as flags, and its differences from another one.

use std::collections::BTreeMap;

use super::{LoadSpec, RequestFile};

impl LoadSpec {
    /// Every set key with its value as text, several for a list. Keys of a table follow its name: `tls.cacert`.
    fn entries(&self) -> BTreeMap<String, Vec<String>> {
        let value = serde_json::to_value(self).unwrap_or_default();
        let texts = |json: &serde_json::Value| match json {
            serde_json::Value::String(text) => vec![text.clone()],
            serde_json::Value::Array(texts) => texts
                .iter()
                .map(|text| text.as_str().unwrap_or_default().to_owned())
                .collect(),
            serde_json::Value::Object(_) => vec!["true".to_owned()],
            other => vec![other.to_string()],
        };
        let mut entries = BTreeMap::new();
        for (key, inner) in value.as_object().into_iter().flatten() {
            if key == "files" {
                continue; // they follow from the others
            }
            // A file, and its content.
            if key == "request-file"
                && let Some(path) = inner.get("path")
            {
                entries.insert(key.clone(), texts(path));
                continue;
            }
            entries.insert(key.clone(), texts(inner));
            for (subkey, nested) in inner.as_object().into_iter().flatten() {
                entries.insert(format!("{key}.{subkey}"), texts(nested));
            }
        }
        entries
    }

    /// The equivalent flags of `throng load`, without defaults.
    pub fn flags(&self) -> Vec<String> {
        self.flags_without(&[])
    }

    /// The same without these keys.
    pub fn flags_without(&self, keys: &[&str]) -> Vec<String> {
        // With short-lived clients, there is no warm-up by default.
        let usual = Self {
            requests_per_client: self.has_jobs().then_some(0),
            ..Self::default()
        }
        .normalised()
        .entries();
        let entries = self.entries().into_iter();
        let unusual = entries
            .filter(|(key, texts)| usual.get(key) != Some(texts) && !keys.contains(&key.as_str()));
        unusual
            .flat_map(|(key, texts)| {
                let flag = flag(&key);
                // In one word, since a separate value that begins with a dash would be parsed as a flag.
                texts.into_iter().map(move |text| match text.as_str() {
                    "true" => format!("--{flag}"),
                    _ => format!("--{flag}={text}"),
                })
            })
            .collect()
    }

    /// Differences from another load: the key, its value here, and its value there.
    pub fn differing(&self, other: &Self) -> Vec<(String, String, String)> {
        let (here, there) = (self.entries(), other.entries());
        let mut keys: Vec<&String> = here.keys().chain(there.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        let text = |entries: &BTreeMap<String, Vec<String>>, key: &String| {
            let texts = entries.get(key).map(|texts| texts.join(", "));
            texts.unwrap_or_else(|| "none".to_owned())
        };
        let mut differing: Vec<(String, String, String)> = keys
            .into_iter()
            .map(|key| (key.clone(), text(&here, key), text(&there, key)))
            .filter(|(_, here, there)| here != there)
            .collect();
        let hash = |load: &Self| {
            let file = load.request_file.as_ref().and_then(RequestFile::sha256);
            file.map(|hash| format!("SHA-256 {hash}"))
        };
        if let (Some(own_hash), Some(other_hash)) = (hash(self), hash(other))
            && own_hash != other_hash
            && self.request_file.as_ref().map(RequestFile::path)
                == other.request_file.as_ref().map(RequestFile::path)
        {
            differing.push(("request-file".to_owned(), own_hash, other_hash));
        }
        for (name, own_file) in &self.files {
            if let Some(other_file) = other
                .files
                .get(name)
                .filter(|other_file| *other_file != own_file)
            {
                let hash_text = |sum: &String| format!("SHA-256 {sum}");
                differing.push((name.clone(), hash_text(own_file), hash_text(other_file)));
            }
        }
        differing
    }
}

/// The flag of a key.
fn flag(key: &str) -> String {
    match key.split_once('.') {
        Some(("tls", "resume")) => "tls-resume".to_owned(),
        Some((_, inner)) => inner.to_owned(),
        None => key.to_owned(),
    }
}
