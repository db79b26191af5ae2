//! Packets into tunnels.

use std::borrow::Cow;
use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};

use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, EncapsulationError, Front, Origin, Tunnel, decapsulate};
use nix::errno::Errno;

use super::batch_io::{Departing, Sending};
use super::{Identifier, TunnelSocket};
use crate::error::Error;
use crate::offload::Frame;
use crate::socket::{PacketInfo, encode, from_ipv4};

/// The longest packet.
const LONGEST: usize = 65_535;
/// Bytes set aside for a packet of common length, front and gaps included.
const COMMON: usize = 1_800;

/// The outer header of a packet, as far as it is the sender's choice, and its way out of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outer {
    /// The tunnel's entry, an address of this host; unspecified, the kernel selects one.
    pub source: Ipv4Addr,
    /// The tunnel's exit.
    pub destination: Ipv4Addr,
    /// The protocol of what follows the header, that of the socket.
    pub protocol: u8,
    /// Type of service.
    pub tos: u8,
    /// Time to live, hops.
    pub ttl: u8,
    /// Whether the packet is refused where it is too long, rather than fragmented.
    pub dont_fragment: bool,
    /// Index of the interface it leaves by; `None` leaves it to the routes.
    pub interface: Option<u32>,
}

/// How datagrams leave for their tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Index of the interface they leave by; `None` leaves it to the routes.
    pub interface: Option<u32>,
    /// Bytes of the longest outer packet that keeps the DF bit of the datagram inside. A longer one may be fragmented on its way, and
    /// is put together again at the exit; the datagram inside keeps its bit, unless minimal encapsulation has but one
    /// header for both.
    pub longest_whole: u16,
}

impl Default for Departure {
    fn default() -> Self {
        Self { interface: None, longest_whole: u16::MAX }
    }
}

/// Packets to be sent together, in room made once.
#[derive(Debug)]
pub struct SendBatch {
    /// The packets, with gaps.
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    /// Slots before this one have been dealt with.
    first: usize,
    packets: usize,
    capacity: usize,
    sending: Sending,
    /// For whole packets.
    identifier: Option<Identifier>,
    /// Of the last datagram that was put in in fragments.
    identification: u16,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    outer: Outer,
    start: usize,
    end: usize,
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// Nothing is left in it.
    All,
    /// The rest waits until [`TunnelSocket::sending_fd`] is writable; or the owner clears it.
    Blocked,
}

/// A packet that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendFailure<'a> {
    /// How it should have been sent.
    pub outer: Outer,
    /// The packet from its outer header on.
    pub packet: &'a [u8],
    /// Why not.
    pub reason: SendFailureReason,
}

/// Why a packet was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailureReason {
    /// It is longer than the path takes, and must not be fragmented (RFC 2003 section 5.1).
    TooBig {
        /// The MTU of the path's first hop, bytes of the outer packet; 0 if it is not known, which is also how
        /// ICMP says it.
        path_mtu: u16,
    },
    /// There is no way to the tunnel's exit at present.
    Unreachable(Errno),
    /// Anything else: a source that is no address of this host (`EINVAL`), a firewall (`EPERM`), a full queue
    /// (`ENOBUFS`, `EAGAIN`), a batch given to the socket of another protocol (`EPROTOTYPE`).
    Refused(Errno),
}

impl<'a> SendFailure<'a> {
    /// The datagram inside, to be quoted to its sender.
    #[must_use]
    pub fn datagram(&self) -> Option<Cow<'a, [u8]>> {
        decapsulate(self.packet).ok().map(|out| out.datagram)
    }
}

impl SendBatch {
    /// Room for as many packets of common length (64 is a good number), fewer longer ones; one of any length.
    #[must_use]
    pub fn new(packets: usize) -> Self {
        let packets = packets.max(1);
        let capacity = packets.saturating_mul(COMMON) + LONGEST + Front::MAX_LEN;
        Self {
            bytes: Vec::with_capacity(capacity),
            slots: Vec::with_capacity(packets),
            first: 0,
            packets,
            capacity,
            sending: Sending::new(packets),
            identifier: None,
            identification: 0,
        }
    }

    /// With outer headers by which errors about them can be told from those that somebody made up.
    #[must_use]
    pub fn identified_by(self, identifier: Identifier) -> Self {
        Self { identifier: Some(identifier), ..self }
    }

    /// Packets that wait to be sent.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len().saturating_sub(self.first)
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it should be sent before more is put in.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !self.has_room_for(COMMON)
    }

    /// Forgets what waits.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.slots.clear();
        self.first = 0;
    }

    /// Puts in a packet of an outer header and what follows it; `false` if there is no room for it or it is
    /// longer than a packet can be.
    #[must_use]
    pub fn push(&mut self, outer: &Outer, payload: &[u8]) -> bool {
        let len = usize::from(Ipv4Header::LEN) + payload.len();
        let Some(payload_len) = u16::try_from(payload.len()).ok().filter(|_| len <= LONGEST) else {
            return false;
        };
        if !self.has_room_for(len) {
            return false;
        }
        let start = self.bytes.len();
        // Identification 0 has the kernel put in one that is right.
        Ipv4Header {
            source: outer.source,
            destination: outer.destination,
            protocol: outer.protocol,
            ttl: outer.ttl,
            tos: outer.tos,
            dont_fragment: outer.dont_fragment,
            payload_len,
            ..Ipv4Header::default()
        }
        .emit(&mut self.bytes);
        self.bytes.extend_from_slice(payload);
        self.slots.push(Slot { outer: *outer, start, end: self.bytes.len() });
        true
    }

    /// Takes datagrams out of `frame` and puts them in, wrapped for `tunnel`, as many as there is room for;
    /// whether the frame is then [done](Frame::is_done) says whether that was all.
    ///
    /// The outer header has the type of service and, up to a [length](Departure::longest_whole), the DF bit of the inner one (RFC 2003
    /// section 3.1), its time to live is the tunnel's, and the inner one stays: a host that forwards a packet into a TUN device
    /// has taken its hop off already. A GRE sequence number is counted on.
    ///
    /// # Errors
    /// Why datagrams of this frame must not enter the tunnel; the frame is discarded.
    pub fn push_frame(
        &mut self,
        tunnel: &mut Tunnel,
        departure: Departure,
        frame: &mut Frame,
    ) -> Result<(), EncapsulationError> {
        while let Some(len) = frame.next_len() {
            if !self.has_room_for(Front::MAX_LEN + len) {
                break;
            }
            if let Err(error) = self.push_datagram(tunnel, departure, frame, len) {
                frame.discard();
                return Err(error);
            }
            if let Encapsulation::Gre { sequence: Some(sequence), .. } = &mut tunnel.encapsulation {
                *sequence = sequence.wrapping_add(1);
            }
        }
        Ok(())
    }

    fn push_datagram(
        &mut self,
        tunnel: &Tunnel,
        departure: Departure,
        frame: &mut Frame,
        len: usize,
    ) -> Result<(), EncapsulationError> {
        let start = self.bytes.len();
        let at = start + Front::MAX_LEN;
        self.bytes.resize(at + len, 0);
        let datagram = self.bytes.get_mut(at..).unwrap_or_default();
        frame.take(datagram);
        match tunnel.front(datagram, Origin::Local, 0) {
            Ok(mut front) => {
                let header = frame.header().unwrap_or_default();
                let dont_fragment = self.complete(&mut front, tunnel, departure, &header, len);
                let is_minimal = tunnel.encapsulation == Encapsulation::Minimal;
                let outer = Outer {
                    source: tunnel.entry,
                    destination: tunnel.exit,
                    protocol: tunnel.encapsulation.protocol(),
                    tos: header.tos,
                    ttl: if is_minimal { header.ttl } else { tunnel.ttl },
                    dont_fragment,
                    interface: departure.interface,
                };
                let payload = at + front.header_len();
                let start = payload.saturating_sub(front.bytes().len());
                if let Some(place) = self.bytes.get_mut(start..payload) {
                    place.copy_from_slice(front.bytes());
                }
                self.slots.push(Slot { outer, start, end: at + len });
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(start);
                Err(error)
            }
        }
    }

    /// Gives the outer header of a datagram of `len` bytes its DF bit and Identification; whether it has that bit.
    fn complete(
        &self,
        front: &mut Front,
        tunnel: &Tunnel,
        departure: Departure,
        header: &Ipv4Header,
        len: usize,
    ) -> bool {
        let outer_len = front.bytes().len() + len.saturating_sub(front.header_len());
        if !header.dont_fragment || outer_len > usize::from(departure.longest_whole) {
            if header.dont_fragment {
                // Of minimal encapsulation it is the original's, which others may have, too: the kernel's is unique.
                front.set_outer(0, false);
            }
            return false;
        }
        let payload = front.bytes().get(usize::from(Ipv4Header::LEN)..).unwrap_or_default();
        if let Some(identifier) = &self.identifier
            && tunnel.encapsulation != Encapsulation::Minimal
            && let protocol = tunnel.encapsulation.protocol()
            && let Some(identification) = identifier.identification(tunnel.exit, protocol, payload)
        {
            front.set_outer(identification, true);
        }
        true
    }

    /// Puts in one datagram, wrapped for `tunnel` as [`push_frame`](Self::push_frame) does; `false` if there is no
    /// room for it. `origin` says whether a hop is to be taken off its time to live.
    ///
    /// # Errors
    /// Why it must not enter the tunnel.
    pub fn push_one(
        &mut self,
        tunnel: &mut Tunnel,
        departure: Departure,
        datagram: &[u8],
        origin: Origin,
    ) -> Result<bool, EncapsulationError> {
        if !self.has_room_for(Front::MAX_LEN + datagram.len()) {
            return Ok(false);
        }
        let mut front = tunnel.front(datagram, origin, 0)?;
        let (header, payload) = Ipv4Header::parse(datagram)?;
        let len = front.header_len() + payload.len();
        let dont_fragment = self.complete(&mut front, tunnel, departure, &header, len);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(front.bytes());
        self.bytes.extend_from_slice(datagram.get(front.header_len()..).unwrap_or_default());
        let hops = u8::from(origin == Origin::Forwarded);
        let is_minimal = tunnel.encapsulation == Encapsulation::Minimal;
        let outer = Outer {
            source: tunnel.entry,
            destination: tunnel.exit,
            protocol: tunnel.encapsulation.protocol(),
            tos: header.tos,
            ttl: if is_minimal { header.ttl.saturating_sub(hops) } else { tunnel.ttl },
            dont_fragment,
            interface: departure.interface,
        };
        self.slots.push(Slot { outer, start, end: self.bytes.len() });
        if let Encapsulation::Gre { sequence: Some(sequence), .. } = &mut tunnel.encapsulation {
            *sequence = sequence.wrapping_add(1);
        }
        Ok(true)
    }

    /// As [`push_one`](Self::push_one), in fragments of at most `longest` bytes each (RFC 791 section 3.2), whatever the DF bit says; the
    /// datagram inside stays whole and keeps its bit.
    ///
    /// # Errors
    /// Why it must not enter the tunnel.
    pub fn push_in_fragments(
        &mut self,
        tunnel: &mut Tunnel,
        interface: Option<u32>,
        datagram: &[u8],
        origin: Origin,
        longest: u16,
    ) -> Result<bool, EncapsulationError> {
        // Of the kernel's own choice is only what is whole.
        self.identification = self.identification.checked_add(1).unwrap_or(1);
        let wrapped = tunnel.encapsulate(datagram, origin, self.identification)?;
        let (header, payload) = Ipv4Header::parse(&wrapped)?;
        let header = Ipv4Header { identification: self.identification, dont_fragment: false, ..header };
        let header_len = usize::from(Ipv4Header::LEN);
        let step = (usize::from(longest).saturating_sub(header_len) & !7).max(8);
        let parts = payload.len().div_ceil(step);
        let room = payload.len() + parts * header_len;
        if self.slots.len() + parts > self.packets || self.bytes.len() + room > self.capacity {
            return Ok(false);
        }
        let outer = Outer {
            source: tunnel.entry,
            destination: tunnel.exit,
            protocol: header.protocol,
            tos: header.tos,
            ttl: header.ttl,
            dont_fragment: false,
            interface,
        };
        let mut offset = 0_u16;
        for part in payload.chunks(step) {
            let payload_len = u16::try_from(part.len()).unwrap_or(u16::MAX);
            let start = self.bytes.len();
            let more_fragments = usize::from(offset) + part.len() < payload.len();
            Ipv4Header { fragment_offset: offset, more_fragments, payload_len, ..header }
                .emit(&mut self.bytes);
            self.bytes.extend_from_slice(part);
            self.slots.push(Slot { outer, start, end: self.bytes.len() });
            offset = offset.saturating_add(payload_len);
        }
        if let Encapsulation::Gre { sequence: Some(sequence), .. } = &mut tunnel.encapsulation {
            *sequence = sequence.wrapping_add(1);
        }
        Ok(true)
    }

    fn has_room_for(&self, len: usize) -> bool {
        // In an empty batch any packet fits, see its capacity.
        self.slots.len() < self.packets && self.bytes.len() + len <= self.capacity
    }
}

impl Slot {
    fn bytes(self, batch: &[u8]) -> &[u8] {
        batch.get(self.start..self.end).unwrap_or_default()
    }

    fn info(self) -> PacketInfo {
        PacketInfo { interface: self.outer.interface.unwrap_or(0), address: self.outer.source }
    }
}

impl TunnelSocket {
    /// Sends what is in the batch, in order. A packet that the kernel does not take is given to `on_failure`, and
    /// the next ones go on.
    ///
    /// A packet longer than the path takes is fragmented by the kernel where it may be.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmmsg`, when the fault is not with a packet.
    pub fn send_batch(
        &self,
        batch: &mut SendBatch,
        mut on_failure: impl FnMut(SendFailure<'_>),
    ) -> Result<Flushed, Error> {
        let SendBatch { bytes, slots, first, sending, .. } = &mut *batch;
        while let Some(slot) = slots.get(*first) {
            let own = |slot: &&Slot| slot.outer.protocol == self.protocol;
            let waiting = slots.get(*first..).unwrap_or_default().iter().take_while(own);
            let packets = waiting.map(|slot| Departing {
                to: SocketAddrV4::new(slot.outer.destination, 0),
                info: slot.info(),
                bytes: slot.bytes(bytes),
            });
            let failed = if own(&slot) {
                match sending.send(&self.sender, packets) {
                    Ok(0) | Err(Errno::EAGAIN) => return Ok(Flushed::Blocked),
                    Ok(sent) => {
                        *first += sent;
                        continue;
                    }
                    Err(Errno::EINTR) => continue,
                    Err(errno @ (Errno::EBADF | Errno::EFAULT | Errno::ENOTSOCK)) => {
                        return Err(self.sender.failed("sendmmsg", errno));
                    }
                    Err(Errno::EMSGSIZE) if !slot.outer.dont_fragment => {
                        self.send_fragmented(*slot, slot.bytes(bytes)).err()
                    }
                    Err(errno) => Some(errno),
                }
            } else {
                Some(Errno::EPROTOTYPE)
            };
            if let Some(errno) = failed {
                let reason = self.reason(&slot.outer, errno);
                on_failure(SendFailure { outer: slot.outer, packet: slot.bytes(bytes), reason });
            }
            *first += 1;
        }
        batch.clear();
        Ok(Flushed::All)
    }

    /// Has the kernel make the outer header anew, and fragments. Options in it, which only minimal encapsulation
    /// has there, cannot be kept.
    fn send_fragmented(&self, slot: Slot, packet: &[u8]) -> Result<(), Errno> {
        let (header, payload) = Ipv4Header::parse(packet).map_err(|_| Errno::EMSGSIZE)?;
        if packet.len() != usize::from(header.total_len()) {
            return Err(Errno::EMSGSIZE);
        }
        let info = encode::packet_info(slot.info());
        let (ttl, tos) = (encode::ttl(slot.outer.ttl), encode::tos(slot.outer.tos));
        let mut control = [0; encode::PACKET_INFO_LEN + 2 * encode::NUMBER_LEN];
        let parts = info.iter().chain(&ttl).chain(&tos);
        control.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
        let name = from_ipv4(SocketAddrV4::new(slot.outer.destination, 0));
        loop {
            match self.fragmenter.send(&name, &control, &[IoSlice::new(payload)]) {
                Err(Errno::EINTR) => {}
                other => return other,
            }
        }
    }

    fn reason(&self, outer: &Outer, errno: Errno) -> SendFailureReason {
        match errno {
            Errno::EMSGSIZE => {
                let path_mtu = self.first_hop_mtu(outer.source, outer.destination, outer.interface);
                SendFailureReason::TooBig { path_mtu: path_mtu.unwrap_or(0) }
            }
            Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::ENETDOWN | Errno::EHOSTDOWN | Errno::ENODEV => {
                SendFailureReason::Unreachable(errno)
            }
            errno => SendFailureReason::Refused(errno),
        }
    }
}
