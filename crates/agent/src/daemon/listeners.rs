//! The sockets the daemon listens on.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::socket::{Backlog, getsockopt, listen, sockopt};

use super::server::Listen;

#[expect(clippy::disallowed_types, reason = "the daemon is of the real world")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the daemon is of the real world")]
type TcpStream = std::net::TcpStream;

/// Why the daemon cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {place}: {problem}")]
pub(crate) struct ListenError {
    place: String,
    problem: String,
    pub(crate) remedy: Option<String>,
}

/// The control socket. Its file goes with it.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Which file it is, so that it is not taken away from a successor.
    inode: u64,
}

impl ControlSocket {
    /// Listens at `path`, readable and writable for owner and group. A socket that nobody answers is replaced.
    pub(crate) fn open(path: &Path) -> Result<Self, ListenError> {
        let error = |problem: String, remedy: Option<String>| ListenError {
            place: path.display().to_string(),
            problem,
            remedy,
        };
        let refused = |found: io::Error| {
            let remedy = (found.kind() == ErrorKind::PermissionDenied)
                .then(|| "run it as root, or name another place in [control]".to_owned());
            error(found.to_string(), remedy)
        };
        if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(directory).map_err(refused)?;
        }
        match fs::symlink_metadata(path) {
            Ok(about) if about.file_type().is_socket() => match UnixStream::connect(path) {
                // Busy is alive, too.
                Ok(_) => return Err(in_use(path)),
                Err(found) if found.kind() == ErrorKind::WouldBlock => return Err(in_use(path)),
                Err(found) if found.kind() == ErrorKind::PermissionDenied => return Err(refused(found)),
                Err(_) => fs::remove_file(path).map_err(refused)?,
            },
            Ok(_) => {
                let remedy = Some("move the file away, or name another place in [control]".to_owned());
                return Err(error("there is a file that is no socket".to_owned(), remedy));
            }
            Err(found) if found.kind() == ErrorKind::NotFound => {}
            Err(found) => return Err(refused(found)),
        }
        // From the first moment for owner and group only; the mask is the process's, which has one thread yet.
        let mask = nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(0o117));
        let bound = UnixListener::bind(path);
        nix::sys::stat::umask(mask);
        let listener = bound.map_err(refused)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o660)).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let inode = inode(path).unwrap_or_default();
        Ok(Self { listener, path: path.to_owned(), inode })
    }
}

fn in_use(path: &Path) -> ListenError {
    ListenError {
        place: path.display().to_string(),
        problem: "another careof-agent answers there".to_owned(),
        remedy: Some(format!("`careof-agent status --socket {}` shows it", path.display())),
    }
}

fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).ok().map(|about| about.ino())
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        if inode(&self.path) == Some(self.inode) {
            // Whoever starts next replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl AsFd for ControlSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

impl Listen for ControlSocket {
    type Stream = UnixStream;
    /// A user.
    type Peer = u32;

    fn next(&self) -> io::Result<(UnixStream, u32)> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nonblocking(true)?;
        let user = getsockopt(&stream, sockopt::PeerCredentials)?.uid();
        Ok((stream, user))
    }

    fn end(stream: &UnixStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}

/// Where Prometheus asks.
#[derive(Debug)]
pub(crate) struct MetricsSocket(TcpListener);

impl MetricsSocket {
    /// Listens at `address`.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, ListenError> {
        let open = || -> io::Result<Self> {
            let listener = TcpListener::bind(address)?;
            // Who waits to be let in loses nothing by those who are let in before, as long as there is room to wait.
            listen(&listener, Backlog::MAXALLOWABLE)?;
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        };
        open().map_err(|error| ListenError {
            place: address.to_string(),
            problem: error.to_string(),
            remedy: match error.kind() {
                ErrorKind::AddrInUse => Some("give each agent another port in [metrics]".to_owned()),
                _ => None,
            },
        })
    }

    /// Where it listens, with the port the system chose if it was to choose.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }
}

impl AsFd for MetricsSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listen for MetricsSocket {
    type Stream = TcpStream;
    type Peer = IpAddr;

    fn next(&self) -> io::Result<(TcpStream, IpAddr)> {
        let (stream, peer) = self.0.accept()?;
        stream.set_nonblocking(true)?;
        Ok((stream, peer.ip()))
    }

    fn end(stream: &TcpStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}
