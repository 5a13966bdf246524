//! A path for the unix socket of a server.

use std::io;

use crate::private_directory::PrivateDirectory;
use throng_record::spec::{Endpoint, UnixPath};

/// A path in a directory that only this user can access, so that only the server can answer there. All of it is
/// removed at the end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SocketFile {
    path: UnixPath,
    _directory: PrivateDirectory,
}

impl SocketFile {
    /// A path that does not exist yet.
    ///
    /// # Errors
    /// When no directory can be created.
    pub(crate) fn new() -> io::Result<Self> {
        let directory = PrivateDirectory::new()?;
        let file = directory.path().join("server.sock");
        let path = file.to_str().ok_or("its name is not UTF-8".to_owned());
        let path = path.and_then(UnixPath::new);
        let path = path.map_err(|why| io::Error::other(format!("{}: {why}", file.display())))?;
        Ok(Self {
            path,
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
}
