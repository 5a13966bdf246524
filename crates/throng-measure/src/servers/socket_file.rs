//! A path for the unix socket of a server.

use std::path::Path;

use crate::private_directory::PrivateDirectory;
use throng_spec::{Endpoint, UnixPath};

/// A path in a directory that only this user can access, so that only the server can answer there. All of it is
/// removed at the end.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: UnixPath,
    _directory: PrivateDirectory,
}

impl SocketFile {
    /// A path that does not exist yet.
    ///
    /// # Errors
    /// Why TMPDIR cannot be used.
    pub(crate) fn new() -> Result<Self, String> {
        Self::within(&std::env::temp_dir())
    }

    fn within(place: &Path) -> Result<Self, String> {
        let cannot = |why: String| {
            let shown = place.display();
            format!(
                "there is no place for {{socket}} in {shown}: {why}; set TMPDIR to another directory"
            )
        };
        let directory =
            PrivateDirectory::within(place).map_err(|error| cannot(error.to_string()))?;
        let file = directory.path().join("server.sock");
        let path = file.to_str().ok_or("its name is not UTF-8".to_owned());
        Ok(Self {
            path: path.and_then(UnixPath::new).map_err(cannot)?,
            _directory: directory,
        })
    }

    /// Its form on a command line.
    pub(crate) fn written(&self) -> String {
        self.path.written()
    }

    /// The address to connect to.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Unix(self.path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_socket() {
        let socket = SocketFile::new().unwrap();
        let Endpoint::Unix(path) = socket.endpoint() else {
            panic!("it is a unix socket");
        };
        let directory = path.file().unwrap().parent().unwrap().to_owned();
        let listener = std::os::unix::net::UnixListener::bind(path.file().unwrap()).unwrap();
        drop((listener, socket));
        assert!(!directory.exists());
    }

    #[test]
    fn a_place_that_cannot_be_used_is_named_and_left_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let long = place.path().join("x".repeat(100));
        std::fs::create_dir(&long).unwrap();
        for place in [&long, &place.path().join("missing")] {
            let why = SocketFile::within(place).unwrap_err();
            assert!(why.contains(&*place.to_string_lossy()), "{why}");
            assert!(why.contains("set TMPDIR"), "{why}");
        }
        assert_eq!(std::fs::read_dir(&long).unwrap().count(), 0);
    }
}
