//! What a program asks of the kernel's TCP, socket by socket.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockaddrLike, SockaddrStorage, getsockname, getsockopt, sockopt};

use crate::error::Error;

/// An option of a TCP socket. Congestion control has its own ([`CongestionControl`](crate::CongestionControl)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// The receive buffer in bytes, which the kernel then leaves alone. About half of it can be advertised. Root may have
    /// any; others have what `net.core.rmem_max` allows, or use [`tcp_socket`](crate::tcp_socket).
    ReceiveBuffer(u32),
    /// The send buffer in bytes, which the kernel then leaves alone: what was written and is not acknowledged, with the kernel's
    /// bookkeeping. Root may have any; others have what `net.core.wmem_max` allows, or use [`tcp_socket`](crate::tcp_socket).
    SendBuffer(u32),
    /// The largest window advertised, in bytes. To be set after [`TcpOption::ReceiveBuffer`], and before the
    /// connection is opened; a listening socket hands it on.
    WindowClamp(u32),
    /// The largest segment, announced and sent, in bytes of data.
    MaxSegment(u16),
    /// Small segments do not wait for acknowledgements (RFC 896 is off).
    NoDelay(bool),
    /// Segments leave evenly, at the rate that the kernel derives from the window (by a timer of its own where no `fq` is
    /// on the way).
    Paced,
    /// The most bytes that wait in the socket without having been sent before more can be written.
    NotSentLowWater(u32),
    /// How long data may stay unacknowledged before the kernel gives the connection up (RFC 5482, section 3.1), rounded up to
    /// milliseconds.
    UserTimeout(Duration),
    /// Whether packets carry DF and the path's MTU is discovered (RFC 1191). Over IPv6, where no router cuts a packet, it is always
    /// discovered (RFC 8201), and this changes nothing.
    PathMtuDiscovery(bool),
}

impl TcpOption {
    /// Sets it.
    ///
    /// # Errors
    /// [`Error::System`] naming `setsockopt` and the option: `ENOBUFS` when the receive buffer is smaller than asked
    /// for.
    pub fn set(self, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let (level, option, value, call) = match self {
            Self::ReceiveBuffer(bytes) => return set_receive_buffer(socket, bytes),
            Self::SendBuffer(bytes) => return set_send_buffer(socket, bytes),
            Self::WindowClamp(bytes) => {
                (libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, bytes, "setsockopt(TCP_WINDOW_CLAMP)")
            }
            Self::MaxSegment(bytes) => {
                (libc::IPPROTO_TCP, libc::TCP_MAXSEG, u32::from(bytes), "setsockopt(TCP_MAXSEG)")
            }
            Self::NoDelay(on) => {
                (libc::IPPROTO_TCP, libc::TCP_NODELAY, u32::from(on), "setsockopt(TCP_NODELAY)")
            }
            // Any limit turns pacing on; this one is far above what a window gives (34 Gbit/s).
            Self::Paced => {
                (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u32::MAX - 1, "setsockopt(SO_MAX_PACING_RATE)")
            }
            Self::NotSentLowWater(bytes) => {
                (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes, "setsockopt(TCP_NOTSENT_LOWAT)")
            }
            Self::UserTimeout(timeout) => {
                let millis = u32::try_from(timeout.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
                (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, millis, "setsockopt(TCP_USER_TIMEOUT)")
            }
            Self::PathMtuDiscovery(_) if is_ipv6(socket) => return Ok(()),
            Self::PathMtuDiscovery(on) => {
                let mode = if on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
                (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode.unsigned_abs(), "setsockopt(IP_MTU_DISCOVER)")
            }
        };
        set_number(socket, level, option, value)
            .map_err(|errno| Error::system(format!("prepare a connection ({self:?})"), call, errno))
    }
}

fn is_ipv6(socket: BorrowedFd<'_>) -> bool {
    let own = getsockname::<SockaddrStorage>(socket.as_raw_fd());
    own.is_ok_and(|own| own.family() == Some(AddressFamily::Inet6))
}

/// The kernel doubles what it is told.
fn set_receive_buffer(socket: BorrowedFd<'_>, bytes: u32) -> Result<(), Error> {
    let failed = |errno| {
        let doing =
            format!("give a connection a receive buffer of {bytes} bytes (net.core.rmem_max limits it)");
        Error::system(doing, "setsockopt(SO_RCVBUF)", errno)
    };
    match set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes / 2) {
        Err(Errno::EPERM) => {}
        done => return done.map_err(failed),
    }
    set_number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes / 2).map_err(failed)?;
    let given = getsockopt(&socket, sockopt::RcvBuf).map_err(failed)?;
    if given < bytes as usize / 2 * 2 { Err(failed(Errno::ENOBUFS)) } else { Ok(()) }
}

/// The kernel doubles what it is told, and does not say when that is more than it gives.
fn set_send_buffer(socket: BorrowedFd<'_>, bytes: u32) -> Result<(), Error> {
    let failed = |errno| {
        let doing = format!("give a connection a send buffer of {bytes} bytes (net.core.wmem_max limits it)");
        Error::system(doing, "setsockopt(SO_SNDBUF)", errno)
    };
    match set_number(socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, bytes / 2) {
        Err(Errno::EPERM) => {}
        done => return done.map_err(failed),
    }
    set_number(socket, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes / 2).map_err(failed)?;
    let given = getsockopt(&socket, sockopt::SndBuf).map_err(failed)?;
    if given < bytes as usize / 2 * 2 { Err(failed(Errno::ENOBUFS)) } else { Ok(()) }
}

pub(crate) fn set_number(socket: BorrowedFd<'_>, level: i32, option: i32, value: u32) -> Result<(), Errno> {
    let bytes = value.to_ne_bytes();
    // SAFETY: the descriptor is open, and the call reads the four bytes, which outlive it.
    #[expect(unsafe_code, reason = "options that no safe binding among our crates knows")]
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, bytes.as_ptr().cast(), 4) };
    Errno::result(result).map(drop)
}
