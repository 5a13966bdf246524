//! Files whose bytes a load sends, identified by hash.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use throng_protocol::LARGEST_SIZE;

use super::{Data, LoadSpec, Payload, SpecError};
use crate::named_file;

/// The SHA-256 of files, by name.
pub(super) type Hashes = BTreeMap<String, String>;

impl LoadSpec {
    /// With the content of its files, or their hashes, so that later changes are noticed.
    ///
    /// # Errors
    /// When one cannot be read, or is invalid.
    pub fn with_files(mut self) -> Result<Self, SpecError> {
        self.request_file = self.request_file.map(|file| file.read()).transpose()?;
        if let Some(Data::File(path)) = &self.data {
            remember("data", path, &mut self.files)?;
        }
        if let Some(path) = &self.proto {
            remember("proto", path, &mut self.files)?;
        }
        if let Some(Payload::File(path)) = &self.send {
            remember("send", path, &mut self.files)?;
        }
        let mut known = std::mem::take(&mut self.files);
        self.remember_flow(&mut known)?;
        if let Some(file) = self.request_file.as_ref().filter(|_| !self.has_flow()) {
            file.remember_bodies(&mut known)?;
        }
        self.files = known;
        Ok(self)
    }
}

/// Adds the hash of a file from a key of a load, unless it is known.
pub(super) fn remember(
    key: &'static str,
    path: &Path,
    known: &mut Hashes,
) -> Result<(), SpecError> {
    let name = path.display().to_string();
    if !known.contains_key(&name) {
        let content = read(key, path, known)?;
        known.insert(name, hash(&content));
    }
    Ok(())
}

/// The content of a file from a key of a load. It must match the hash, if that is known.
pub(super) fn read(key: &'static str, path: &Path, known: &Hashes) -> Result<Vec<u8>, SpecError> {
    let name = path.display();
    let refused = |why: String| SpecError::value(key, format!("`{key}`: {why}"));
    let bytes = named_file::read(path, LARGEST_SIZE as u64)
        .map_err(|error| refused(format!("cannot read {name}: {error}")))?;
    if let Some(known) = known.get(&name.to_string())
        && hash(&bytes) != *known
    {
        return Err(refused(changed(path, known)));
    }
    Ok(bytes)
}

/// The error of a changed file.
pub(super) fn changed(path: &Path, known: &str) -> String {
    format!(
        "{} has changed since it was recorded (SHA-256 {known})",
        path.display()
    )
}

pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
