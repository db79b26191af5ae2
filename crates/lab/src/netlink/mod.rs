//! Interfaces, addresses, routes, policy rules and neighbours, by rtnetlink.
//!
//! The messages are those of `netlink-packet-route`, the crate underneath `rtnetlink`. `rtnetlink` itself is left
//! out: it brings an asynchronous runtime (37 crates against 13) for what is here one request and one answer on
//! a blocking socket, in a thread that has nothing else to do.
//!
//! What is added and removed can be undone exactly: a request says whether it changed anything ([`Effect`]), and
//! what takes the place of something returns that.

mod address;
mod autoconfiguration;
mod generic;
mod interface;
mod monitor;
mod neighbour;
mod route;
mod rule;

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use crate::error::Error;

pub use address::{AddressOptions, AssignedAddress};
pub(crate) use generic::GenericNetlink;
pub use interface::{CarrierCounts, InterfaceState};
pub use monitor::{NetlinkMonitor, NetworkChange};
pub use neighbour::Neighbour;
pub use route::{Route, RouteKind, RouteScope};
pub use rule::Rule;

/// Room for one datagram of the kernel. It sends at most 32 KiB of a dump in one.
const DATAGRAM: usize = 64 * 1024;

/// How often a dump is begun again because something changed meanwhile.
const DUMP_ATTEMPTS: u32 = 8;

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpVersion {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}

impl IpVersion {
    /// The version that an address is of.
    #[must_use]
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    const fn family(self) -> AddressFamily {
        match self {
            Self::V4 => AddressFamily::Inet,
            Self::V6 => AddressFamily::Inet6,
        }
    }
}

/// Whether a request changed anything. Only what was [`Effect::Changed`] is to be undone later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It was not so before.
    Changed,
    /// It was so before: what was to be added was there already, what was to be removed was not there.
    Unchanged,
}

impl Effect {
    /// Whether there is something to undo.
    #[must_use]
    pub const fn is_changed(self) -> bool {
        matches!(self, Self::Changed)
    }
}

/// A conversation with the kernel about one network namespace: that of the thread which opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
    dumps: u64,
}

impl Netlink {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `connect`.
    pub fn open() -> Result<Self, Error> {
        let failed =
            |call| move |error: std::io::Error| Error::system("talk to the kernel", call, errno_of(&error));
        let socket = Socket::new(NETLINK_ROUTE).map_err(failed("socket(AF_NETLINK)"))?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed("connect(AF_NETLINK)"))?;
        // With it the kernel leaves out of a dump what was not asked for. Before Linux 4.20 it does not, so
        // everything is looked through here as well and a refusal does not matter.
        let _ = socket.set_netlink_get_strict_chk(true);
        Ok(Self { socket, sequence: 0, buffer: Vec::with_capacity(DATAGRAM), dumps: 0 })
    }

    /// The number by which the kernel knows this conversation (`nl_pid`).
    pub(crate) fn port(&self) -> Result<u32, Error> {
        let mut address = SocketAddr::new(0, 0);
        let asked = self.socket.get_address(&mut address);
        asked.map_err(|error| Error::system("talk to the kernel", "getsockname", errno_of(&error)))?;
        Ok(address.port_number())
    }

    /// How many dumps were begun: lists of all there is of a kind, which take as long as the lists are.
    #[must_use]
    pub const fn dumps(&self) -> u64 {
        self.dumps
    }

    /// A request that is answered by success or failure alone.
    fn tell(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        call: &'static str,
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        self.ask(message, flags | NLM_F_ACK, call, doing).map(drop)
    }

    /// Like [`Netlink::tell`], where one failure means that nothing had to be done.
    fn tell_unless(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        call: &'static str,
        unneeded: &[Errno],
        doing: impl FnOnce() -> String,
    ) -> Result<Effect, Error> {
        match self.tell(message, flags, call, doing) {
            Ok(()) => Ok(Effect::Changed),
            Err(Error::System { errno, .. }) if unneeded.contains(&errno) => Ok(Effect::Unchanged),
            Err(error) => Err(error),
        }
    }

    /// Sends a request and waits for its answer: a message, an acknowledgement (`None`) or an error.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        call: &'static str,
        doing: impl FnOnce() -> String,
    ) -> Result<Option<RouteNetlinkMessage>, Error> {
        self.exchange(message, flags).map_err(|failure| failure.explain(call, doing))
    }

    /// Asks for all there is of a kind and hands it to `each`. When something changes meanwhile it starts again:
    /// `restart` is called to forget what was seen.
    fn dump<T>(
        &mut self,
        message: &RouteNetlinkMessage,
        call: &'static str,
        each: impl Fn(RouteNetlinkMessage, &mut Vec<T>),
        doing: impl Fn() -> String,
    ) -> Result<Vec<T>, Error> {
        let mut found = Vec::new();
        for _ in 0..DUMP_ATTEMPTS {
            found.clear();
            match self.dump_once(message.clone(), |message| each(message, &mut found)) {
                Ok(true) => return Ok(found),
                Ok(false) => {}
                Err(failure) => return Err(failure.explain(call, doing)),
            }
        }
        Err(Error::system(doing(), call, Errno::EAGAIN))
    }

    /// One dump; `false` when it may lack something because of a change meanwhile. A message that cannot be read
    /// makes it fail, but only when all of it is taken: the kernel begins no dump before the last one is done.
    fn dump_once(
        &mut self,
        message: RouteNetlinkMessage,
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> Result<bool, Failure> {
        self.dumps += 1;
        self.send(message, NLM_F_DUMP)?;
        let mut dump = Dump { sequence: self.sequence, is_consistent: true, unreadable: None };
        loop {
            self.receive()?;
            if let Some(outcome) = dump.take_in(&self.buffer, &mut each) {
                return outcome;
            }
        }
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Option<RouteNetlinkMessage>, Failure> {
        self.send(message, flags)?;
        answer_to(self.sequence, &self.socket, &mut self.buffer)
    }

    fn send(&mut self, message: RouteNetlinkMessage, flags: u16) -> Result<(), Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        send_request(&self.socket, self.sequence, message, flags)
    }

    /// Receives one datagram into the buffer.
    fn receive(&mut self) -> Result<(), Failure> {
        receive(&self.socket, &mut self.buffer)
    }
}

/// Sends a request of a family of netlink.
fn send_request<M: NetlinkSerializable>(
    socket: &Socket,
    sequence: u32,
    message: M,
    flags: u16,
) -> Result<(), Failure> {
    let mut request = NetlinkMessage::new(NetlinkHeader::default(), NetlinkPayload::InnerMessage(message));
    request.header.flags = NLM_F_REQUEST | flags;
    request.header.sequence_number = sequence;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    uninterrupted(|| socket.send(&bytes, 0))?;
    Ok(())
}

fn receive(socket: &Socket, buffer: &mut Vec<u8>) -> Result<(), Failure> {
    buffer.clear();
    uninterrupted(|| socket.recv(buffer, 0))?;
    Ok(())
}

/// Waits for the answer to a request: a message, an acknowledgement (`None`) or an error.
fn answer_to<M: NetlinkDeserializable + std::fmt::Debug>(
    sequence: u32,
    socket: &Socket,
    buffer: &mut Vec<u8>,
) -> Result<Option<M>, Failure> {
    loop {
        receive(socket, buffer)?;
        if sequence_of(buffer) != Some(sequence) {
            // The answer to a request that failed while it was sent, whether or not it can be read.
            continue;
        }
        return match parse(buffer)?.payload {
            NetlinkPayload::Error(error) => match error.code {
                None => Ok(None),
                Some(code) => Err(Failure::Errno(Errno::from_raw(code.get().saturating_neg()))),
            },
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            other => Err(Failure::Unreadable(format!("an unexpected answer: {other:?}"))),
        };
    }
}

/// A dump that is being read.
struct Dump {
    sequence: u32,
    /// Nothing has changed meanwhile.
    is_consistent: bool,
    /// The first message of it that could not be read.
    unreadable: Option<Failure>,
}

impl Dump {
    /// Takes in one datagram; returns the outcome when it was the last one.
    fn take_in(
        &mut self,
        datagram: &[u8],
        mut each: impl FnMut(RouteNetlinkMessage),
    ) -> Option<Result<bool, Failure>> {
        let mut rest = datagram;
        while let Some((bytes, behind)) = split_message(rest) {
            rest = behind;
            if sequence_of(bytes) != Some(self.sequence) {
                continue;
            }
            let answer = match parse(bytes) {
                Ok(answer) => answer,
                Err(failure) => {
                    self.unreadable.get_or_insert(failure);
                    continue;
                }
            };
            self.is_consistent &= answer.header.flags & NLM_F_DUMP_INTR == 0;
            match answer.payload {
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Some(Err(Failure::Errno(Errno::from_raw(done.code.saturating_neg()))));
                }
                NetlinkPayload::Done(_) => {
                    return Some(self.unreadable.take().map_or(Ok(self.is_consistent), Err));
                }
                NetlinkPayload::Error(error) => {
                    let code = error.code.map_or(0, |code| code.get().saturating_neg());
                    return Some(Err(Failure::Errno(Errno::from_raw(code))));
                }
                NetlinkPayload::InnerMessage(message) => each(message),
                _ => {}
            }
        }
        None
    }
}

/// Why an exchange failed, before it is known what it was for.
enum Failure {
    Errno(Errno),
    Unreadable(String),
}

impl Failure {
    fn explain(self, call: &'static str, doing: impl FnOnce() -> String) -> Error {
        match self {
            Self::Errno(errno) => Error::system(doing(), call, errno),
            Self::Unreadable(problem) => Error::Netlink { doing: doing(), problem },
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Errno(errno_of(&error))
    }
}

/// Makes a call again that a signal interrupted. Programs around us, as Python, handle signals in any thread.
pub(crate) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

pub(crate) fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn parse<M: NetlinkDeserializable>(bytes: &[u8]) -> Result<NetlinkMessage<M>, Failure> {
    NetlinkMessage::deserialize(bytes).map_err(|error| Failure::Unreadable(error.to_string()))
}

/// To which request a message belongs, which can be seen even if nothing else of it can.
fn sequence_of(message: &[u8]) -> Option<u32> {
    message.get(8..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The first message of a datagram and what is behind it; `None` at its end, or at a length that cannot be.
pub(crate) fn split_message(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    /// Of `struct nlmsghdr`.
    const HEADER: usize = 16;
    let length = usize::try_from(u32::from_ne_bytes(*bytes.first_chunk()?)).ok()?;
    if length < HEADER {
        return None;
    }
    let message = bytes.get(..length)?;
    Some((message, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

const fn family(address: IpAddr) -> AddressFamily {
    IpVersion::of(address).family()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_taken_apart_without_believing_its_lengths() {
        let message = |length: u32| [&length.to_ne_bytes()[..], &[0; 14]].concat();
        let two = [message(18), vec![0, 0], message(18)].concat();
        let (first, rest) = split_message(&two).unwrap();
        assert_eq!((first.len(), rest.len()), (18, 18));
        let (second, rest) = split_message(rest).unwrap();
        assert_eq!((second.len(), rest.len()), (18, 0));
        for length in [0, 15, 19, u32::MAX] {
            assert!(split_message(&message(length)).is_none());
        }
        assert!(split_message(&[]).is_none() && split_message(&[1, 2, 3]).is_none());
    }

    /// A message with a header of its own, and zeros for the rest of its length.
    fn raw(length: u32, kind: u16, flags: u16, sequence: u32) -> Vec<u8> {
        let mut message = Vec::new();
        message.extend(length.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        message.extend(sequence.to_ne_bytes());
        message.resize(length.next_multiple_of(4) as usize, 0);
        message
    }

    const DONE: u16 = 3;

    #[test]
    fn a_message_that_cannot_be_read_fails_the_dump_only_when_all_of_it_is_taken() {
        let dump = || Dump { sequence: 7, is_consistent: true, unreadable: None };
        // Too short for what a link begins with.
        let (unreadable, done) = (raw(18, libc::RTM_NEWLINK, 0, 7), raw(20, DONE, 0, 7));
        let mut broken = dump();
        assert!(broken.take_in(&unreadable, drop).is_none(), "the rest has to be taken first");
        assert!(matches!(broken.take_in(&done, drop), Some(Err(Failure::Unreadable(_)))));
        // What is left of another dump is passed over, readable or not.
        let mut other = dump();
        assert!(other.take_in(&raw(18, libc::RTM_NEWLINK, 0, 6), drop).is_none());
        assert!(matches!(other.take_in(&done, drop), Some(Ok(true))));
    }

    #[test]
    fn a_dump_that_was_interrupted_says_so() {
        let mut dump = Dump { sequence: 7, is_consistent: true, unreadable: None };
        let done = raw(20, DONE, NLM_F_DUMP_INTR, 7);
        assert!(matches!(dump.take_in(&done, drop), Some(Ok(false))));
    }
}
