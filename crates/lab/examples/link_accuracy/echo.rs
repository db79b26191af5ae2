//! Round-trip times by ICMP echo.

use std::io::IoSliceMut;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::thread::Builder;

use careof_base::Duration;
use careof_lab::{Error, Host};
use careof_wire::icmp::{Echo, IcmpMessage};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recvmsg,
    sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};

/// IPv4 header, ICMP header, 16 bytes of data.
pub(crate) const PACKET_BYTES: u32 = 20 + 8 + 16;

const IDENTIFIER: u16 = 7;
/// An echo that takes this long beyond the last one sent is lost.
const PATIENCE_SECONDS: i64 = 3;

/// Sends `count` echo requests, one each `interval`; returns the round-trip times of those that were answered.
pub(crate) fn round_trips(
    host: &Host,
    to: Ipv4Addr,
    count: u16,
    interval: Duration,
) -> Result<Vec<Duration>, Error> {
    let socket = Arc::new(host.run(open)??);
    let sender = Arc::clone(&socket);
    let send = move || send_all(&sender, to, count, interval);
    let thread = Builder::new().spawn(send).map_err(|_| failed("clone")(Errno::EAGAIN))?;
    let mut arrivals = Vec::new();
    while arrivals.len() < usize::from(count) {
        match receive(&socket) {
            Ok(Some(arrival)) => arrivals.push(arrival),
            Ok(None) => {}
            Err(Errno::EAGAIN) => break,
            Err(errno) => return Err(failed("recvmsg")(errno)),
        }
    }
    let departures = thread.join().unwrap_or_default();
    let times = arrivals.into_iter().filter_map(|(sequence, arrived)| {
        let sent = departures.get(usize::from(sequence))?;
        arrived.checked_sub(*sent)
    });
    Ok(times.collect())
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "measure round trips".to_owned(), call, errno }
}

fn open() -> Result<OwnedFd, Error> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket =
        socket(AddressFamily::Inet, SockType::Raw, flags, SockProtocol::Icmp).map_err(failed("socket"))?;
    let set = failed("setsockopt");
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(&set)?;
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(PATIENCE_SECONDS)).map_err(&set)?;
    Ok(socket)
}

/// Returns when each was sent.
fn send_all(socket: &OwnedFd, to: Ipv4Addr, count: u16, interval: Duration) -> Vec<Duration> {
    let address = SockaddrIn::from(std::net::SocketAddrV4::new(to, 0));
    let mut departures = Vec::with_capacity(usize::from(count));
    let mut bytes = Vec::new();
    for sequence in 0..count {
        bytes.clear();
        IcmpMessage::EchoRequest(Echo { identifier: IDENTIFIER, sequence, data: vec![0; 16] })
            .emit(&mut bytes);
        departures.push(wall_clock());
        if sendto(socket.as_raw_fd(), &bytes, &address, MsgFlags::empty()).is_err() {
            // Counted as an echo without an answer.
            continue;
        }
        pause(interval);
    }
    departures
}

/// The sequence number and arrival of the next message, or `None` when it is no answer of ours.
fn receive(socket: &OwnedFd) -> Result<Option<(u16, Duration)>, Errno> {
    let mut buffer = [0; 256];
    let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::empty())?;
    let arrived = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    let bytes = message.bytes;
    // The IPv4 header in front has no options: the sender is the kernel.
    let answer = buffer.get(20..bytes).and_then(|icmp| IcmpMessage::parse(icmp).ok());
    match (answer, arrived) {
        (Some(IcmpMessage::EchoReply(echo)), Some(arrived)) => Ok(Some((echo.sequence, arrived))),
        _ => Ok(None),
    }
}

/// The clock of the kernel's timestamps.
pub(crate) fn wall_clock() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(Duration::ZERO, Duration::from)
}

#[expect(clippy::disallowed_methods, reason = "a measurement takes place in real time")]
pub(crate) fn pause(span: Duration) {
    std::thread::sleep(span);
}
