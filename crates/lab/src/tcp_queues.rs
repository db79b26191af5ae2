//! What waits in a TCP socket.

use std::os::fd::{AsRawFd, BorrowedFd};

use nix::errno::Errno;

use crate::error::Error;

/// The queues of a connected TCP socket (tcp(7), `SIOCINQ` and `SIOCOUTQ`), in bytes of data. A FIN that was sent and is not
/// acknowledged counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpQueues {
    /// Received in order, and not read.
    pub unread: u32,
    /// Written, and not acknowledged by the other end.
    pub unacknowledged: u32,
}

impl TcpQueues {
    /// Those of a socket.
    ///
    /// # Errors
    /// [`Error::System`] with `EINVAL` for a listening socket.
    pub fn of(socket: BorrowedFd<'_>) -> Result<Self, Error> {
        let failed = |call| move |errno: Errno| Error::system("look into a connection", call, errno);
        let fd = socket.as_raw_fd();
        let (mut unread, mut unacknowledged) = (0, 0);
        // SAFETY: the descriptor is open, and each call writes the one number that it is given.
        #[expect(unsafe_code, reason = "the standard library has no ioctl")]
        unsafe {
            declaration::unread(fd, &raw mut unread).map_err(failed("ioctl(SIOCINQ)"))?;
            declaration::unacknowledged(fd, &raw mut unacknowledged).map_err(failed("ioctl(SIOCOUTQ)"))?;
        }
        let bytes = |number: libc::c_int| u32::try_from(number).unwrap_or(0);
        Ok(Self { unread: bytes(unread), unacknowledged: bytes(unacknowledged) })
    }
}

/// Declares the calls; linux/sockios.h has their numbers from the terminal's.
mod declaration {
    nix::ioctl_read_bad!(unread, libc::FIONREAD, libc::c_int);
    nix::ioctl_read_bad!(unacknowledged, libc::TIOCOUTQ, libc::c_int);
}
