//! Sockets of TCP with buffers of any size, whoever asks for them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::Error;
use crate::netlink::IpVersion;
use crate::sysctl::{set_sysctl, sysctl};
use crate::tcp_option::{TcpOption, set_number};

/// What a buffer is locked by (SOCK_SNDBUF_LOCK and SOCK_RCVBUF_LOCK of Linux): the kernel leaves its size alone, as after `setsockopt`.
const SEND_LOCK: u32 = 1;
const RECEIVE_LOCK: u32 = 2;

/// The host's buffer sizes are another's for a moment while a socket is made.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A socket of TCP of the calling thread's host, which does not block, with these options.
///
/// Root may have buffers of any size by `setsockopt`. Others have no more by it than `net.core.rmem_max` and `net.core.wmem_max`
/// allow; on a host of their own such a socket is made with the size as the host's `tcp_rmem` or `tcp_wmem`, which belong
/// to its network namespace and are put back before this returns. Other sockets that the host makes at that instant may have the
/// size, too.
///
/// # Errors
/// Those of [`TcpOption::set`], and [`Error::System`] naming `socket`.
pub fn tcp_socket(version: IpVersion, options: &[TcpOption]) -> Result<OwnedFd, Error> {
    let socket = open(version)?;
    match set_all(socket.as_fd(), options) {
        Ok(()) => Ok(socket),
        Err(refused) if is_too_large(&refused) => of_large_buffers(version, options, refused),
        Err(error) => Err(error),
    }
}

/// As [`tcp_socket`], for buffers that were `refused`.
fn of_large_buffers(version: IpVersion, options: &[TcpOption], refused: Error) -> Result<OwnedFd, Error> {
    let (buffers, others): (Vec<TcpOption>, Vec<TcpOption>) =
        options.iter().partition(|option| setting(**option).is_some());
    let socket = {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = Vec::new();
        let opened = buffers
            .iter()
            .filter_map(|option| setting(*option))
            .try_for_each(|(name, bytes, _)| {
                let usual = sysctl(name)?;
                // What a socket begins with is the second of three: the least, the usual and the largest.
                set_sysctl(name, &format!("{bytes} {bytes} {bytes}"))?;
                changed.push((name, usual));
                Ok(())
            })
            .and_then(|()| open(version));
        for (name, usual) in changed {
            set_sysctl(name, &usual)?;
        }
        // The host is not the caller's: what it may not have is the buffer.
        opened.map_err(|_| refused)?
    };
    // A buffer that nobody asked for goes on growing by itself.
    let locks =
        buffers.iter().filter_map(|option| setting(*option)).fold(0, |locks, (.., lock)| locks | lock);
    set_number(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BUF_LOCK, locks).map_err(|errno| {
        Error::system("fix the buffers of a connection", "setsockopt(SO_BUF_LOCK)", errno)
    })?;
    set_all(socket.as_fd(), &others)?;
    Ok(socket)
}

/// The setting of a host that a socket takes the size of a buffer from, the size, and what locks it.
fn setting(option: TcpOption) -> Option<(&'static str, u32, u32)> {
    match option {
        TcpOption::ReceiveBuffer(bytes) => Some(("net.ipv4.tcp_rmem", bytes, RECEIVE_LOCK)),
        TcpOption::SendBuffer(bytes) => Some(("net.ipv4.tcp_wmem", bytes, SEND_LOCK)),
        _ => None,
    }
}

fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::System { errno: Errno::ENOBUFS, .. })
}

fn set_all(socket: BorrowedFd<'_>, options: &[TcpOption]) -> Result<(), Error> {
    options.iter().try_for_each(|option| option.set(socket))
}

fn open(version: IpVersion) -> Result<OwnedFd, Error> {
    let family = match version {
        IpVersion::V4 => AddressFamily::Inet,
        IpVersion::V6 => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(family, SockType::Stream, flags, None)
        .map_err(|errno| Error::system("open a connection", "socket", errno))
}
