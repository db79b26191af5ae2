//! The download of `careof-agent try`: one TCP connection, whose two ends are on hosts of this process.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::Duration;

use careof_base::Instant;
use careof_lab::Clock;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeVal;

use super::PATIENCE;
use super::network::Network;

#[expect(clippy::disallowed_types, reason = "the command is of the real world")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the command is of the real world")]
type TcpStream = std::net::TcpStream;

const PORT: u16 = 8080;
/// As much as is written or read at a time.
const PIECE: usize = 65_536;

/// Bytes that a server on `home` sends at a steady rate, and that `mobile` reads as they come.
pub(super) struct Download {
    server: TcpStream,
    client: TcpStream,
    clock: Clock,
    sent: u64,
    received: u64,
    last: Instant,
    longest: Duration,
}

impl Download {
    pub(super) const BYTES: u64 = 20_000_000;
    pub(super) const BYTES_A_SECOND: u64 = 4_000_000;

    pub(super) fn start(network: &Network) -> io::Result<Self> {
        let on = |error: careof_lab::Error| io::Error::other(error.to_string());
        let listener = network.home.run(|| TcpListener::bind((Network::SERVER, PORT))).map_err(on)??;
        let client = network.mobile.run(connected).map_err(on)??;
        listener.set_nonblocking(true)?;
        let clock = Clock::start();
        let server = loop {
            match listener.accept() {
                Ok((server, _)) => break server,
                // The mobile node's end is there before its last acknowledgement is here.
                Err(error)
                    if error.kind() == ErrorKind::WouldBlock && clock.now().since_start() < PATIENCE =>
                {
                    super::pause();
                }
                Err(error) => return Err(error),
            }
        };
        server.set_nonblocking(true)?;
        client.set_nonblocking(true)?;
        let clock = Clock::start();
        Ok(Self { server, client, clock, sent: 0, received: 0, last: clock.now(), longest: Duration::ZERO })
    }

    /// Writes what is due, and reads and checks what is there.
    pub(super) fn go_on(&mut self) -> io::Result<()> {
        let nanos = u128::from(self.clock.now().as_nanos()) * u128::from(Self::BYTES_A_SECOND);
        let due = u64::try_from(nanos / 1_000_000_000).unwrap_or(u64::MAX).min(Self::BYTES);
        let mut piece = [0; PIECE];
        while self.sent < due {
            let length = usize::try_from(due - self.sent).unwrap_or(PIECE).min(PIECE);
            for (offset, byte) in (self.sent..).zip(&mut piece[..length]) {
                *byte = byte_at(offset);
            }
            match self.server.write(&piece[..length]) {
                Ok(count) => self.sent += count as u64,
                Err(error) if is_for_later(&error) => break,
                Err(error) => return Err(error),
            }
        }
        loop {
            match self.client.read(&mut piece) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    for (offset, byte) in (self.received..).zip(&piece[..count]) {
                        if *byte != byte_at(offset) {
                            return Err(io::Error::other(format!("byte {offset} is not what was sent")));
                        }
                    }
                    self.received += count as u64;
                    self.longest = self.longest.max(self.silence());
                    self.last = self.clock.now();
                }
                Err(error) if is_for_later(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.received >= Self::BYTES
    }

    /// How long it has gone on.
    pub(super) fn age(&self) -> Duration {
        self.clock.now().since_start()
    }

    /// How long nothing has arrived.
    pub(super) fn silence(&self) -> Duration {
        self.clock.now().saturating_duration_since(self.last)
    }

    pub(super) const fn longest_silence(&self) -> Duration {
        self.longest
    }
}

/// The byte at a place of what is sent: bytes that are lost, doubled or in another order differ from it.
fn byte_at(offset: u64) -> u8 {
    offset.to_le_bytes().iter().fold(0, |sum: u8, byte| sum.wrapping_mul(31).wrapping_add(*byte))
}

/// The mobile node's end, which has its home address.
fn connected() -> io::Result<TcpStream> {
    let address = |address: Ipv4Addr, port| {
        let [a, b, c, d] = address.octets();
        SockaddrIn::new(a, b, c, d, port)
    };
    let end: OwnedFd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    let patience = TimeVal::new(i64::try_from(PATIENCE.as_secs()).unwrap_or(i64::MAX), 0);
    setsockopt(&end, sockopt::SendTimeout, &patience)?;
    bind(end.as_raw_fd(), &address(Network::HOME_ADDRESS, 0))?;
    connect(end.as_raw_fd(), &address(Network::SERVER, PORT))?;
    Ok(TcpStream::from(end))
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
