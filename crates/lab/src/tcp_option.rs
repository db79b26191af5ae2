//! What a program asks of the kernel's TCP, socket by socket.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

use crate::error::Error;

/// An option of a TCP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TcpOption {
    /// Congestion control.
    Congestion(String),
    /// The receive buffer in bytes, which the kernel then leaves alone. About half of it can be advertised.
    ReceiveBuffer(u32),
    /// The largest window advertised, in bytes. To be set after [`TcpOption::ReceiveBuffer`], and before the
    /// connection is opened; a listening socket hands it on.
    WindowClamp(u32),
    /// The largest segment, announced and sent, in bytes of data.
    MaxSegment(u16),
    /// Small segments do not wait for acknowledgements (RFC 896 is off).
    NoDelay(bool),
    /// The most bytes that wait in the socket without having been sent before more can be written.
    NotSentLowWater(u32),
    /// Whether packets carry DF and the path's MTU is discovered (RFC 1191).
    PathMtuDiscovery(bool),
}

impl TcpOption {
    /// Sets it.
    ///
    /// # Errors
    /// [`Error::System`] naming `setsockopt` and the option: `ENOENT` for a congestion control that the kernel does
    /// not have, `EPERM` for one that this user may not have.
    pub fn set(&self, socket: BorrowedFd<'_>) -> Result<(), Error> {
        let done = match self {
            Self::Congestion(name) => set(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes()),
            Self::ReceiveBuffer(bytes) => number(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes / 2),
            Self::WindowClamp(bytes) => number(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, *bytes),
            Self::MaxSegment(bytes) => number(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, u32::from(*bytes)),
            Self::NoDelay(on) => number(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, u32::from(*on)),
            Self::NotSentLowWater(bytes) => {
                number(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, *bytes)
            }
            Self::PathMtuDiscovery(on) => {
                let mode = if *on { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT };
                number(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, mode.unsigned_abs())
            }
        };
        done.map_err(|errno| Error::system(format!("set {self}"), self.call(), errno))
    }

    const fn call(&self) -> &'static str {
        match self {
            Self::Congestion(_) => "setsockopt(TCP_CONGESTION)",
            Self::ReceiveBuffer(_) => "setsockopt(SO_RCVBUF)",
            Self::WindowClamp(_) => "setsockopt(TCP_WINDOW_CLAMP)",
            Self::MaxSegment(_) => "setsockopt(TCP_MAXSEG)",
            Self::NoDelay(_) => "setsockopt(TCP_NODELAY)",
            Self::NotSentLowWater(_) => "setsockopt(TCP_NOTSENT_LOWAT)",
            Self::PathMtuDiscovery(_) => "setsockopt(IP_MTU_DISCOVER)",
        }
    }
}

impl std::fmt::Display for TcpOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Congestion(name) => write!(f, "the congestion control {name:?}"),
            Self::ReceiveBuffer(bytes) => write!(f, "a receive buffer of {bytes} bytes"),
            Self::WindowClamp(bytes) => write!(f, "a window of {bytes} bytes"),
            Self::MaxSegment(bytes) => write!(f, "segments of {bytes} bytes"),
            Self::NoDelay(on) => write!(f, "no delay of small segments: {on}"),
            Self::NotSentLowWater(bytes) => write!(f, "{bytes} bytes ahead of what is sent"),
            Self::PathMtuDiscovery(on) => write!(f, "path MTU discovery: {on}"),
        }
    }
}

fn number(socket: BorrowedFd<'_>, level: i32, option: i32, value: u32) -> Result<(), Errno> {
    set(socket, level, option, &value.to_ne_bytes())
}

fn set(socket: BorrowedFd<'_>, level: i32, option: i32, value: &[u8]) -> Result<(), Errno> {
    // No option is longer than a name.
    let length = libc::socklen_t::try_from(value.len()).map_err(|_| Errno::EINVAL)?;
    // SAFETY: the descriptor is open, and the call reads `length` bytes of `value`, which outlives it.
    #[expect(unsafe_code, reason = "options that no safe binding among our crates knows")]
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    Errno::result(result).map(drop)
}
