//! The file of a unix socket that a server listens on: created at the start and removed at the end.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
use socket2::{Domain, Socket, Type};
use throng_spec::UnixPath;

/// A socket file, identified by its inode.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    inode: (u64, u64),
}

impl SocketFile {
    /// Listens without blocking. An abstract socket has no file. If a server that has ended left its file behind, this
    /// replaces it.
    ///
    /// # Errors
    /// If a server listens there, or the file is not a socket; also those of bind(2) and listen(2).
    pub(super) fn listen(path: &UnixPath, backlog: u32) -> io::Result<(Socket, Option<Self>)> {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        let address = path.address()?;
        match bind(&socket, &address) {
            Err(Errno::ADDRINUSE) if path.file().is_some() => {
                remove_if_left_behind(path)?;
                bind(&socket, &address)?;
            }
            bound => bound?,
        }
        let file = path
            .file()
            .map(|path| {
                let metadata = path.symlink_metadata()?;
                let inode = (metadata.dev(), metadata.ino());
                Ok::<_, io::Error>(Self { path, inode })
            })
            .transpose()?;
        socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok((socket, file))
    }

    /// Removes the file, unless it was replaced.
    pub(super) fn remove(&self) {
        let now = self.path.symlink_metadata();
        if now.is_ok_and(|now| (now.dev(), now.ino()) == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket at this path if nothing listens on it.
fn remove_if_left_behind(path: &UnixPath) -> io::Result<()> {
    let Some(file) = path.file() else {
        return Ok(());
    };
    if !file.symlink_metadata()?.file_type().is_socket() {
        let why = "there is a file of this name that is not a socket";
        return Err(io::Error::new(ErrorKind::AlreadyExists, why));
    }
    let client = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::ioctl_fionbio(&client, true)?;
    match connect(&client, &path.address()?) {
        Err(Errno::CONNREFUSED) => std::fs::remove_file(file),
        Ok(()) | Err(Errno::AGAIN) => Err(ErrorKind::AddrInUse.into()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_behind_is_replaced_and_only_what_is_ours_removed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a b.sock");
        let path = UnixPath::new(file.to_str().unwrap()).unwrap();
        let listen = || SocketFile::listen(&path, 5);
        let (first, ours) = listen().unwrap();
        assert_eq!(listen().unwrap_err().kind(), ErrorKind::AddrInUse);
        drop(first);
        assert!(file.exists(), "left behind");
        let (_second, again) = listen().unwrap();
        let ours = ours.unwrap();
        if ours.inode != again.as_ref().unwrap().inode {
            ours.remove();
            assert!(file.exists(), "it is another one");
        }
        again.unwrap().remove();
        assert!(!file.exists());
        std::fs::write(&file, "text").unwrap();
        let error = listen().unwrap_err();
        assert!(error.to_string().contains("not a socket"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), b"text");
    }
}
