//! The kernel's TCP connections: found, and looked into, by sock_diag.
//!
//! `netlink-packet-sock-diag` is not used: its TCP_INFO ends before the fields that this is about
//! (`tcpi_total_rto`), and it allocates for each look-up. Two structures of fixed layout are all there is to it.

mod message;
mod tcp_info;

use std::net::{IpAddr, SocketAddr};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use nix::errno::Errno;

use crate::congestion::CongestionControl;
use crate::error::Error;
use crate::netlink::uninterrupted;
use careof_base::Duration;
use message::{Answer, REQUEST, Request};

pub(crate) use tcp_info::NO_THRESHOLD;
pub use tcp_info::{RecoveryState, TcpInfo, TcpState};

/// Room for one datagram of the kernel. It sends at most 32 KiB of a dump in one.
const DATAGRAM: usize = 64 * 1024;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpTimer {
    /// An acknowledgement: a segment is sent again then, or a probe for a lost tail.
    Retransmission,
    /// The peer's window to open: a probe is sent then.
    WindowProbe,
    /// Anything from the peer: a keep-alive is sent then, or an attempt to connect is given up.
    KeepAlive,
    /// Late segments (TIME-WAIT).
    TimeWait,
}

/// A TCP socket of a network namespace.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpSocket {
    /// Address and port on this host. IPv4 also for a socket of IPv6 that speaks IPv4.
    pub local: SocketAddr,
    /// Address and port of the peer; unspecified while listening.
    pub remote: SocketAddr,
    /// Its state.
    pub state: TcpState,
    /// The running timer and how long it has to go.
    pub timer: Option<(TcpTimer, Duration)>,
    /// Bytes that the program has not read yet; connections to be accepted while listening.
    pub receive_queue: u32,
    /// Bytes written that the peer has not acknowledged, sent or not.
    pub send_queue: u32,
    /// The number that `fstat` and `/proc/PID/fd` show for it; 0 once no program has it open.
    pub inode: u32,
    /// Its congestion control; `None` where there is none to tell, as in TIME-WAIT.
    pub congestion_control: Option<CongestionControl>,
    /// What the kernel's TCP knows; `None` where it keeps nothing of it, as in TIME-WAIT.
    pub info: Option<TcpInfo>,
}

/// Which sockets [`SockDiag::all`] is about. The default is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpFilter {
    /// Only in this state.
    pub state: Option<TcpState>,
    /// Only with this address on this host.
    pub local_address: Option<IpAddr>,
    /// Only with this port on this host.
    pub local_port: Option<u16>,
    /// Only with a peer of this address.
    pub remote_address: Option<IpAddr>,
    /// Only with this port of the peer.
    pub remote_port: Option<u16>,
}

impl TcpFilter {
    fn takes(&self, socket: &TcpSocket) -> bool {
        fn is<T: PartialEq>(wanted: Option<T>, found: T) -> bool {
            wanted.is_none_or(|wanted| wanted == found)
        }
        is(self.state, socket.state)
            && is(self.local_address, socket.local.ip())
            && is(self.local_port, socket.local.port())
            && is(self.remote_address, socket.remote.ip())
            && is(self.remote_port, socket.remote.port())
    }
}

/// Looks into the TCP of the network namespace of the thread which opened it. Needs no privilege.
#[derive(Debug)]
pub struct SockDiag {
    socket: Socket,
    sequence: u32,
    buffer: Box<[u8]>,
}

impl SockDiag {
    /// Opens it.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket`: `EPROTONOSUPPORT` where the kernel has no sock_diag.
    pub fn open() -> Result<Self, Error> {
        let failed = |call| {
            move |error: std::io::Error| {
                Error::system("look into TCP", call, error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
            }
        };
        let socket = Socket::new(NETLINK_SOCK_DIAG).map_err(failed("socket(NETLINK_SOCK_DIAG)"))?;
        socket.connect(&netlink_sys::SocketAddr::new(0, 0)).map_err(failed("connect(NETLINK_SOCK_DIAG)"))?;
        Ok(Self { socket, sequence: 0, buffer: vec![0; DATAGRAM].into_boxed_slice() })
    }

    /// What the kernel's TCP knows about the connection between these two ends; `None` when there is no such
    /// connection, or only its TIME-WAIT is left. Allocates nothing.
    ///
    /// # Errors
    /// As [`SockDiag::tcp_socket`].
    #[inline]
    pub fn tcp_info(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<Option<TcpInfo>, Error> {
        Ok(self.tcp_socket(local, remote)?.and_then(|socket| socket.info))
    }

    /// The connection between these two ends; `None` when there is none. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::System`] naming the request: `EINVAL` or `ENOENT` for ends of different families;
    /// [`Error::Netlink`] when the answer cannot be read.
    pub fn tcp_socket(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<Option<TcpSocket>, Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = Request::connection(self.sequence, local, remote);
        let found = self.look_up(&request.bytes());
        // The kernel falls back to a listening socket, which is not what was asked for.
        found
            .map(|found| found.filter(|socket| socket.remote.port() == remote.port()))
            .map_err(|failure| failure.explain(|| format!("look up the TCP connection {local} to {remote}")))
    }

    fn look_up(&mut self, request: &[u8; REQUEST]) -> Result<Option<TcpSocket>, Failure> {
        uninterrupted(|| self.socket.send(request, 0))?;
        loop {
            let sequence = self.sequence;
            match message::first(self.receive()?, sequence)?.map(|(answer, _)| answer) {
                Some(Answer::Socket(socket)) => return Ok(Some(socket)),
                Some(Answer::Failed(Errno::ENOENT) | Answer::Done) => return Ok(None),
                Some(Answer::Failed(errno)) => return Err(Failure::Errno(errno)),
                // The answer to an earlier request.
                Some(Answer::Other) | None => {}
            }
        }
    }

    /// All TCP sockets that `filter` takes, IPv4 before IPv6, in no order otherwise. The kernel walks through all its
    /// sockets for it: for one connection again and again [`SockDiag::tcp_info`] is a hundred times faster.
    ///
    /// # Errors
    /// As [`SockDiag::tcp_socket`].
    pub fn all(&mut self, filter: &TcpFilter) -> Result<Vec<TcpSocket>, Error> {
        let mut sockets = Vec::new();
        for family in [libc::AF_INET as u8, libc::AF_INET6 as u8] {
            match self.dump(family, filter, &mut sockets) {
                // A kernel without this family.
                Ok(()) | Err(Failure::Errno(Errno::ENOENT | Errno::EAFNOSUPPORT)) => {}
                Err(failure) => return Err(failure.explain(|| "list the TCP sockets".to_owned())),
            }
        }
        Ok(sockets)
    }

    fn dump(&mut self, family: u8, filter: &TcpFilter, found: &mut Vec<TcpSocket>) -> Result<(), Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = Request::dump(self.sequence, family, filter).bytes();
        uninterrupted(|| self.socket.send(&request, 0))?;
        loop {
            let sequence = self.sequence;
            let mut rest = self.receive()?;
            while let Some((answer, behind)) = message::first(rest, sequence)? {
                rest = behind;
                match answer {
                    Answer::Socket(socket) if filter.takes(&socket) => found.push(socket),
                    Answer::Socket(_) | Answer::Other => {}
                    Answer::Done => return Ok(()),
                    Answer::Failed(errno) => return Err(Failure::Errno(errno)),
                }
            }
        }
    }

    /// The next datagram of the kernel.
    fn receive(&mut self) -> Result<&[u8], Failure> {
        let length = uninterrupted(|| {
            let mut room = &mut self.buffer[..];
            self.socket.recv(&mut room, 0)
        })?;
        Ok(self.buffer.get(..length).unwrap_or_default())
    }
}

/// Why a look-up failed, before it is known what it was for.
pub(crate) enum Failure {
    Errno(Errno),
    Unreadable(&'static str),
}

impl Failure {
    fn explain(self, doing: impl FnOnce() -> String) -> Error {
        match self {
            Self::Errno(errno) => Error::system(doing(), "SOCK_DIAG_BY_FAMILY", errno),
            Self::Unreadable(problem) => Error::Netlink { doing: doing(), problem: problem.to_owned() },
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Errno(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
    }
}
