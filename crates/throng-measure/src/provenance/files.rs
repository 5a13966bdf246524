//! Files that a command line names: their paths and hashes.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};

use throng_record::UsedFile;

/// Larger files are not hashed: that would take seconds.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes per read.
const PIECE: usize = 1 << 18;

/// Names and extensions of files that often contain secrets. The hash of a short one would reveal it.
const SECRET_NAMES: [&str; 4] = ["passw", "secret", "token", "credential"];
const SECRET_ENDINGS: [&str; 6] = ["env", "key", "p12", "pem", "pfx", "htpasswd"];

/// The program that a word names, searched in `path`, or in the PATH of this process. A relative name with a slash is
/// relative to `cwd`, or to this process's working directory.
pub fn executable(word: &str, path: Option<&str>, cwd: Option<&Path>) -> Option<PathBuf> {
    let runs = |file: &Path| {
        file.metadata()
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if word.contains('/') {
        return Some(within(cwd, word)).filter(|file| runs(file));
    }
    let own = || std::env::var_os("PATH").unwrap_or_default();
    let path_variable = path.map_or_else(own, Into::into);
    let found = std::env::split_paths(&path_variable).map(|directory| directory.join(word));
    found
        .filter(|_| !word.is_empty())
        .find(|candidate| runs(candidate))
}

/// The regular file of this name.
pub(super) fn regular(word: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = within(cwd, word);
    let is_file = path.metadata().is_ok_and(|file| file.is_file());
    is_file.then_some(path)
}

fn within(cwd: Option<&Path>, word: &str) -> PathBuf {
    cwd.map_or_else(|| PathBuf::from(word), |cwd| cwd.join(word))
}

/// The file at `path`, named by `word`.
pub(super) fn used(word: &str, path: &Path) -> UsedFile {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let readable = !may_be_secret(path) && !may_be_secret(&real);
    UsedFile {
        word: word.to_owned(),
        sha256: readable.then(|| sha256(&real)).flatten(),
        path: real.to_string_lossy().into_owned(),
    }
}

fn may_be_secret(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let ending = name.rsplit('.').next().filter(|_| name.contains('.'));
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
        || ending.is_some_and(|ending| SECRET_ENDINGS.contains(&ending))
}

/// Identifies an unchanged file: device, inode, size, and time of the last change (ctime).
type Identity = (u64, u64, u64, i64, i64);

/// Hashes of files that were read before: a study needs the same ones for each of its parts.
static KNOWN: LazyLock<Mutex<HashMap<Identity, String>>> = LazyLock::new(Mutex::default);

/// SHA-256 of a file in hexadecimal digits; `None` if it cannot be read.
pub(super) fn sha256(path: &Path) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    let identity = (
        about.dev(),
        about.ino(),
        about.len(),
        about.ctime(),
        about.ctime_nsec(),
    );
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(hash) = known().get(&identity) {
        return Some(hash.clone());
    }
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => hasher.update(&piece[..bytes]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    let digits = hasher.finalize();
    let hash: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    known().insert(identity, hash.clone());
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("abc");
        fs::write(&path, "abc").unwrap();
        // FIPS 180-2, appendix B.1
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(&path).as_deref(), Some(expected));
        assert_eq!(sha256(&path).as_deref(), Some(expected), "known by now");
        assert_eq!(sha256(place.path()), None);
        assert_eq!(sha256(&place.path().join("none")), None);
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        for (name, secret) in [
            ("/a/server.key", true),
            ("cert.PEM", true),
            (".env", true),
            ("prod.env", true),
            ("my-passwords.txt", true),
            ("server.js", false),
            ("keyboard.py", false),
            ("key", false),
        ] {
            assert_eq!(may_be_secret(Path::new(name)), secret, "{name}");
        }
    }

    #[test]
    fn programs_are_found_as_they_would_be_started() {
        let sh = executable("sh", None, None).expect("there is a shell");
        assert!(sh.ends_with("sh") && sh.is_absolute());
        assert_eq!(executable("sh", Some("/nowhere"), None), None);
        assert_eq!(executable("", None, None), None);
        let bin = sh.parent().unwrap();
        assert_eq!(executable("./sh", None, Some(bin)), Some(bin.join("./sh")));
        assert_eq!(
            executable("/etc/passwd", None, None),
            None,
            "not executable"
        );
    }
}
