//! A path for the unix socket of a server.

use std::fs::{DirBuilder, remove_dir, remove_file};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use throng_record::spec::{Endpoint, UnixPath};

/// Maximum number of existing directory names to skip.
const NAMES_TRIED: u32 = 100;

/// A path in a directory that only this user can access, so that only the server can answer there. All of it is
/// removed at the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SocketFile {
    directory: PathBuf,
    path: UnixPath,
}

impl SocketFile {
    /// A path that does not exist yet.
    ///
    /// # Errors
    /// When no directory can be created.
    pub(crate) fn new() -> io::Result<Self> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        for _ in 0..NAMES_TRIED {
            let name = format!("throng-{:08x}", fastrand::u32(..));
            let directory = std::env::temp_dir().join(name);
            match private.create(&directory) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            let file = directory.join("server.sock");
            let path = file.to_str().ok_or("its name is not UTF-8".to_owned());
            let path = path.and_then(UnixPath::new);
            let path = path.map_err(|why| io::Error::other(format!("{}: {why}", file.display())));
            return path.map(|path| Self { directory, path });
        }
        Err(ErrorKind::AlreadyExists.into())
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

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(file) = self.path.file() {
            let _ = remove_file(file); // most likely, the server has already removed it
        }
        let _ = remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_socket() {
        let socket = SocketFile::new().unwrap();
        let directory = socket.directory.clone();
        let Endpoint::Unix(path) = socket.endpoint() else {
            panic!("it is a unix socket");
        };
        let listener = std::os::unix::net::UnixListener::bind(path.file().unwrap()).unwrap();
        drop((listener, socket));
        assert!(!directory.exists());
    }
}
