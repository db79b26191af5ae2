//! Packets as small structs, and the slab that holds them.

use core::net::Ipv6Addr;
use std::sync::Arc;

use careof_metrics::Transmission;
use careof_plan::{FlowId, Locator, Side};
use careof_wire::Segment;
use careof_wire::tunnel::{Encapsulation, MultipathHeader};

use crate::handover_option::OptionRef;
use crate::header::Header;
use crate::passage::{Passage, Wrapping};

/// Index of a packet in the [`PacketPool`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketRef(u32);

/// What an IP datagram carries.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A TCP segment of a flow; its data is known by length only.
    Tcp(Segment),
    /// The payload of a datagram (UDP or ICMP header included), byte for byte: of signalling, or of a flow over QUIC.
    Message(Arc<[u8]>),
    /// A message between neighbors over IPv6.
    OnLink(Arc<OnLink>),
}

/// A message that does not leave its link: its addresses are none of the experiment's plan.
#[derive(Clone, Debug)]
pub(crate) struct OnLink {
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    /// Whether a hop-by-hop header with the Router Alert option stands in front.
    pub(crate) router_alert: bool,
    /// From the ICMPv6 type on.
    pub(crate) message: Vec<u8>,
}

/// An outer header of a datagram on a passage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    /// The header routers see.
    pub(crate) header: Header,
    /// What stands between it and the inner datagram.
    pub(crate) wrapping: Wrapping,
}

impl Outer {
    /// The passage the header stands for.
    pub(crate) fn passage(&self) -> Passage {
        let Header { source: entry, destination: exit, ttl, .. } = self.header;
        Passage { wrapping: self.wrapping, entry, exit, ttl }
    }
}

/// What a packet travels in beneath its outermost header: few do, and those nest few deep.
#[derive(Clone, Debug)]
pub(crate) struct Beneath {
    /// What stands right behind the outermost header, in a tunnel over several paths.
    multipath: Option<MultipathHeader>,
    /// The next outer header.
    outer: Option<Outer>,
    beneath: Option<Box<Beneath>>,
}

/// Where a packet of a flow came from, for metrics: the network does not look at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The flow.
    pub(crate) flow: FlowId,
    /// The end that sent it.
    pub(crate) sender: Side,
    /// Whether the sender had sent these bytes before.
    pub(crate) retransmission: bool,
    /// The metrics' number of this transmission; `None` for a segment without sequence space.
    pub(crate) transmission: Option<Transmission>,
    /// Sequence number, relative and unwrapped; with QUIC the number of the datagram.
    pub(crate) seq: i64,
    /// Acknowledgement number, relative and unwrapped; 0 without ACK.
    pub(crate) ack: i64,
    /// What its mobile node says of a handover in an option of the header.
    pub(crate) option: Option<OptionRef>,
}

/// What few packets have costs the others no room: it stands where there was padding.
const _: () = assert!(size_of::<Origin>() == 40);

/// A datagram or a fragment of one.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Unique in a run; a fragment has its own, a tunnelled packet keeps it.
    pub(crate) id: u64,
    /// The header the sender wrote.
    pub(crate) header: Header,
    /// What it travels in, if anything: the outermost header.
    pub(crate) outer: Option<Outer>,
    /// The outer headers beneath that one, where tunnels are nested.
    pub(crate) beneath: Option<Box<Beneath>>,
    /// What it carries. Every fragment names the whole body; the headers say which part of it travels.
    pub(crate) body: Body,
    /// The flow it belongs to; `None` for signalling.
    pub(crate) origin: Option<Origin>,
    /// Where it is not 0, an assist has it enter its tunnel in fragments of so many bytes at most, whatever its DF bit says.
    pub(crate) in_fragments: u16,
}

/// How many headers a packet travels in at most: as many as the limit of RFC 2473 section 6.6 allows.
const MAX_TUNNELS: usize = 5;

impl Packet {
    /// A packet in no tunnel, for [`PacketPool::insert`].
    pub(crate) const fn new(header: Header, body: Body, origin: Option<Origin>) -> Self {
        Self { id: 0, header, outer: None, beneath: None, body, origin, in_fragments: 0 }
    }

    /// Whether it is a message of an agent or of a router, not one of a flow.
    pub(crate) fn is_signalling(&self) -> bool {
        matches!(self.body, Body::Message(_)) && self.origin.is_none()
    }

    /// The port that a packet of a flow goes to.
    pub(crate) fn destination_port(&self) -> Option<u16> {
        match &self.body {
            Body::Tcp(segment) => Some(segment.destination_port),
            Body::Message(bytes) if self.origin.is_some() => {
                bytes.get(2..4).and_then(|port| port.try_into().ok()).map(u16::from_be_bytes)
            }
            Body::Message(_) | Body::OnLink(_) => None,
        }
    }

    /// Puts another header around it, written by [`Passage::wrap`].
    pub(crate) fn enter(&mut self, outer: Outer) {
        if let Some(outer) = self.outer.replace(outer) {
            let (outer, beneath) = (Some(outer), self.beneath.take());
            self.beneath = Some(Box::new(Beneath { multipath: None, outer, beneath }));
        }
    }

    /// The outermost header, put around it just now, is that of a tunnel over several paths.
    pub(crate) fn number(&mut self, header: MultipathHeader) {
        match &mut self.beneath {
            Some(beneath) => beneath.multipath = Some(header),
            beneath @ None => {
                *beneath = Some(Box::new(Beneath { multipath: Some(header), outer: None, beneath: None }));
            }
        }
    }

    /// Behind the outermost header, what a tunnel over several paths has there.
    pub(crate) fn multipath(&self) -> Option<&MultipathHeader> {
        self.beneath.as_ref().and_then(|beneath| beneath.multipath.as_ref())
    }

    /// The same, beneath whichever header there is such a tunnel.
    pub(crate) fn numbered(&self) -> Option<&MultipathHeader> {
        let beneath = core::iter::successors(self.beneath.as_deref(), |known| known.beneath.as_deref());
        beneath.filter_map(|known| known.multipath.as_ref()).next()
    }

    /// Takes the outermost header off, which says what became of it on its way. The packet has travelled in one.
    pub(crate) fn leave(&mut self) -> Option<Outer> {
        let outer = self.outer.take()?;
        if let Some(next) = self.beneath.take() {
            (self.outer, self.beneath) = (next.outer, next.beneath);
        }
        let header = self.outermost_mut();
        if let Wrapping::Ipv4(Encapsulation::Minimal) | Wrapping::Extended { .. } = outer.wrapping {
            header.ttl = outer.header.ttl;
        }
        // RFC 6040 section 4.2; the inner field is capable, for the outer one was copied from it (section 4.1).
        if outer.header.congestion_experienced() {
            header.mark_congestion();
        }
        Some(outer)
    }

    /// The same packet as it was before it entered any tunnel.
    pub(crate) fn bare(&self) -> Self {
        Self { outer: None, beneath: None, ..self.clone() }
    }

    /// What it travels in, the outermost first.
    pub(crate) fn outers(&self) -> impl Iterator<Item = &Outer> {
        let beneath = core::iter::successors(self.beneath.as_deref(), |known| known.beneath.as_deref());
        self.outer.iter().chain(beneath.filter_map(|known| known.outer.as_ref()))
    }

    /// The same, to be changed.
    pub(crate) fn outers_mut(&mut self) -> impl Iterator<Item = &mut Outer> {
        let mut beneath = self.beneath.as_deref_mut();
        let beneath = core::iter::from_fn(move || {
            let Beneath { outer, beneath: next, .. } = beneath.take()?;
            beneath = next.as_deref_mut();
            Some(outer)
        });
        self.outer.iter_mut().chain(beneath.filter_map(Option::as_mut))
    }

    /// Whether it must not enter this tunnel: it has done so already, and goes round in circles, or is in as many as it may be. Each
    /// tunnel gives it hops anew, so that nothing else would end its journey (RFC 2473 section 4).
    pub(crate) fn has_entered(&self, passage: &Passage) -> bool {
        let is_it = |outer: &Outer| {
            let Header { source, destination, .. } = outer.header;
            (source, destination) == (passage.entry, passage.exit)
        };
        self.outers().any(is_it) || self.outers().count() >= MAX_TUNNELS
    }

    /// The header right beneath the outermost one.
    pub(crate) fn within(&self) -> &Header {
        let outer = self.beneath.as_ref().and_then(|beneath| beneath.outer.as_ref());
        outer.map_or(&self.header, |outer| &outer.header)
    }

    /// Whether what is right beneath the outermost header is a tunnel, too.
    pub(crate) fn is_nested(&self) -> bool {
        self.beneath.as_ref().is_some_and(|beneath| beneath.outer.is_some())
    }

    /// The header routers look at.
    pub(crate) fn outermost(&self) -> &Header {
        self.outer.as_ref().map_or(&self.header, |outer| &outer.header)
    }

    /// The header routers look at, to count its TTL down.
    pub(crate) fn outermost_mut(&mut self) -> &mut Header {
        match &mut self.outer {
            Some(outer) => &mut outer.header,
            None => &mut self.header,
        }
    }

    /// Length of the datagram in bytes of IP.
    pub(crate) fn size_bytes(&self) -> u32 {
        u32::from(self.outermost().total_len())
    }

    /// Makes room for a segment where a message was. Apart from [`PacketPool::take_place`], which is small enough without it to be
    /// part of whatever sends.
    #[cold]
    fn empty(&mut self) {
        self.body = Body::Tcp(Segment::default());
    }
}

/// What a link and a router look at: half a cache line, apart from the rest of the packet, which is read where it is
/// made, tunnelled and received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    /// [`Packet::id`].
    pub(crate) id: u64,
    /// The content as the digest of a run takes it.
    pub(crate) content: u64,
    /// Where the outermost header leads.
    pub(crate) destination: Locator,
    /// Length of the datagram in bytes of IP.
    pub(crate) size: u32,
    /// The time to live of the outermost header: routers count it down here.
    pub(crate) ttl: u8,
}

impl Hop {
    fn content_of_segment(segment: &Segment) -> u64 {
        u64::from(segment.seq.0) << 32 | u64::from(segment.ack.0.rotate_left(8))
    }

    fn content_of(body: &Body) -> u64 {
        match body {
            Body::Tcp(segment) => Self::content_of_segment(segment),
            Body::Message(bytes) => careof_plan::of_bytes(bytes),
            Body::OnLink(on_link) => careof_plan::of_bytes(&on_link.message),
        }
    }

    fn of(packet: &Packet) -> Self {
        let header = packet.outermost();
        Self {
            id: packet.id,
            content: Self::content_of(&packet.body),
            destination: header.destination,
            size: packet.size_bytes(),
            ttl: header.ttl,
        }
    }
}

/// A slab of packets: links and queues pass [`PacketRef`]s, the packets stay where they are.
///
/// Each is kept in two parts. What routers did to the first part is carried over to the second by
/// [`PacketPool::settle`], what a node did to the second to the first by [`PacketPool::refresh`].
#[derive(Default)]
pub(crate) struct PacketPool {
    hops: Vec<Hop>,
    packets: Vec<Packet>,
    free: Vec<u32>,
    next_id: u64,
}

impl PacketPool {
    /// Stores a packet under a fresh id.
    #[inline(always)]
    pub(crate) fn insert(&mut self, mut packet: Packet) -> PacketRef {
        packet.id = self.next_id;
        self.next_id += 1;
        let hop = Hop::of(&packet);
        match self.free.pop() {
            Some(index) => {
                self.hops[index as usize] = hop;
                self.packets[index as usize] = packet;
                PacketRef(index)
            }
            None => {
                self.hops.push(hop);
                self.packets.push(packet);
                PacketRef((self.packets.len() - 1) as u32)
            }
        }
    }

    /// A place for a segment, which is then to be [stored](Place::store).
    #[inline]
    pub(crate) fn take_place(&mut self) -> Place<'_> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.add_place(),
        };
        let packet = &mut self.packets[index as usize];
        if !matches!(packet.body, Body::Tcp(_)) {
            packet.empty();
        }
        Place {
            packet,
            hop: &mut self.hops[index as usize],
            next_id: &mut self.next_id,
            reference: PacketRef(index),
        }
    }

    #[cold]
    fn add_place(&mut self) -> u32 {
        let packet = Packet::new(Header::default(), Body::Tcp(Segment::default()), None);
        self.hops.push(Hop::of(&packet));
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }

    /// As if a packet had been stored and had given its place back at once.
    pub(crate) fn skip_id(&mut self) {
        self.next_id += 1;
    }

    /// Gives a packet's place back. Its value stays readable until the next insertion.
    pub(crate) fn release(&mut self, packet: PacketRef) {
        debug_assert!(!self.free.contains(&packet.0), "packet released twice");
        self.free.push(packet.0);
    }

    /// What links and routers look at.
    #[inline]
    pub(crate) fn hop(&self, packet: PacketRef) -> &Hop {
        &self.hops[packet.0 as usize]
    }

    /// The same, to count its time to live down.
    #[inline]
    pub(crate) fn hop_mut(&mut self, packet: PacketRef) -> &mut Hop {
        &mut self.hops[packet.0 as usize]
    }

    /// Writes what routers changed into the packet itself. To be called before anybody reads its time to live.
    #[inline]
    pub(crate) fn settle(&mut self, packet: PacketRef) {
        let index = packet.0 as usize;
        self.packets[index].outermost_mut().ttl = self.hops[index].ttl;
    }

    /// To be called after the headers of a packet were changed.
    pub(crate) fn refresh(&mut self, packet: PacketRef) {
        let index = packet.0 as usize;
        let (hop, header) = (&mut self.hops[index], self.packets[index].outermost());
        (hop.destination, hop.ttl) = (header.destination, header.ttl);
        hop.size = self.packets[index].size_bytes();
    }

    /// To be called after the segment of a packet was changed, too.
    pub(crate) fn rewrite(&mut self, packet: PacketRef) {
        self.refresh(packet);
        let index = packet.0 as usize;
        self.hops[index].content = Hop::content_of(&self.packets[index].body);
    }

    /// The most packets there were at a time.
    #[cfg(test)]
    pub(crate) fn high_water(&self) -> usize {
        self.packets.len()
    }

    /// Packets alive.
    pub(crate) fn live(&self) -> u64 {
        (self.packets.len() - self.free.len()) as u64
    }

    /// Packets ever stored.
    pub(crate) fn created(&self) -> u64 {
        self.next_id
    }
}

/// Where a packet will stay whose segment is being written.
pub(crate) struct Place<'a> {
    packet: &'a mut Packet,
    hop: &'a mut Hop,
    next_id: &'a mut u64,
    reference: PacketRef,
}

impl Place<'_> {
    /// The segment; stale before it is written.
    #[inline]
    pub(crate) fn segment(&mut self) -> &mut Segment {
        match &mut self.packet.body {
            Body::Tcp(segment) => segment,
            Body::Message(_) | Body::OnLink(_) => unreachable!("the place was taken for a segment"),
        }
    }

    /// Stores the packet under a fresh id.
    #[inline]
    pub(crate) fn store(mut self, header: &Header, origin: &Origin) -> PacketRef {
        let content = Hop::content_of_segment(self.segment());
        let Self { packet, hop, next_id, reference } = self;
        *hop = Hop {
            id: *next_id,
            content,
            destination: header.destination,
            size: header.total_len().into(),
            ttl: header.ttl,
        };
        packet.id = *next_id;
        packet.header = *header;
        packet.outer = None;
        packet.beneath = None;
        packet.in_fragments = 0;
        packet.origin = Some(*origin);
        *next_id += 1;
        reference
    }
}

impl std::ops::Index<PacketRef> for PacketPool {
    type Output = Packet;
    fn index(&self, packet: PacketRef) -> &Packet {
        &self.packets[packet.0 as usize]
    }
}

impl std::ops::IndexMut<PacketRef> for PacketPool {
    fn index_mut(&mut self, packet: PacketRef) -> &mut Packet {
        &mut self.packets[packet.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of IPv6 in these passages, the innermost first.
    fn packet(passages: &[Passage]) -> Packet {
        let header = Header { len: 40, ttl: 60, tos: 0b10, payload_len: 100, ..Header::default() };
        let mut packet = Packet::new(header, Body::Message(vec![0; 100].into()), None);
        for passage in passages {
            let header = passage.wrap(packet.outermost(), false, 7);
            packet.enter(Outer { header, wrapping: passage.wrapping });
        }
        packet
    }

    fn passage(n: u32, wrapping: Wrapping) -> Passage {
        let [entry, exit] = [1, 2].map(|host| Locator::of_ipv4([10, 0, n as u8, host].into()));
        Passage { wrapping, entry, exit, ttl: 64 }
    }

    #[test]
    fn hops_and_marks_are_kept_at_each_level_as_rfc_6040_and_rfc_2473_ask() {
        let extended = Wrapping::Extended { home_address: true, routing: false };
        let mut packet =
            packet(&[passage(1, extended), passage(2, Wrapping::Ipv6), passage(3, Wrapping::Ipv6)]);
        let sizes: Vec<u16> = packet.outers().map(|outer| outer.header.total_len()).collect();
        assert_eq!((sizes, packet.within().total_len()), (vec![244, 204, 164], 204));
        // The headers of route optimisation have no count of their own; marks go outwards on entry and inwards on leaving.
        let hops: Vec<u8> = packet.outers().map(|outer| outer.header.ttl).collect();
        assert_eq!(hops, [64, 64, 60]);
        assert!(packet.outers().all(|outer| outer.header.is_ecn_capable()));
        packet.outermost_mut().ttl -= 3;
        let before = packet.leave().unwrap();
        assert_eq!((before.header.source, packet.outermost().ttl), (passage(3, extended).entry, 64));
        assert!(!packet.outermost().congestion_experienced());
        packet.outermost_mut().mark_congestion();
        assert!(packet.is_nested());
        packet.leave();
        assert!(packet.outermost().congestion_experienced() && !packet.is_nested());
        packet.outermost_mut().ttl -= 2;
        packet.leave();
        assert_eq!((packet.outers().count(), packet.header.ttl, packet.size_bytes()), (0, 58, 140));
        assert!(packet.header.congestion_experienced() && packet.leave().is_none());
    }
}
