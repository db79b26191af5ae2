//! Segments of one flow made into one super-packet, which the host takes in one go.
//!
//! The rules are those of the kernel's own generic receive offload: only what can be told apart again afterwards
//! is put together, so the receiver's TCP sees what was sent.

use careof_wire::protocol;

use super::checksum;
use super::layout::{self, ADDRESSES, IPV4_LEN, put, tcp, u16_at, u32_at};
use super::vnet_header::{Segmentation, SegmentationKind, VnetHeader};

/// Flows whose segments are held at a time. Between two flushes few send at all.
const FLOWS: usize = 8;
/// The longest datagram.
const LONGEST: usize = 65_535;

/// Puts segments together, in room made once.
pub(super) struct Coalescer {
    /// Those in use come first, the oldest of them in front.
    flows: Vec<Pending>,
    used: usize,
    /// Segments that went into super-packets, and the super-packets.
    pub(super) merged: u64,
    pub(super) super_packets: u64,
}

/// Segments of one flow that wait for the next.
struct Pending {
    /// The first segment, and the payloads of the others.
    buffer: Box<[u8]>,
    len: usize,
    segments: u32,
    headers_len: usize,
    /// Payload of the first, and of all others but the last.
    size: usize,
    next_sequence: u32,
}

/// A datagram that may be put together with others.
struct Segment<'a> {
    datagram: &'a [u8],
    headers_len: usize,
    flags: u8,
    sequence: u32,
}

/// Source and destination address and port: of a whole TCP datagram with a header without options.
fn flow(datagram: &[u8]) -> Option<&[u8; 12]> {
    datagram.get(ADDRESSES.start..)?.first_chunk()
}

impl<'a> Segment<'a> {
    /// `None` for what is better handed on by itself: no TCP, no data, part of a datagram, IP options, a flag
    /// that changes the connection, a wrong checksum.
    fn of(datagram: &'a [u8]) -> Option<Self> {
        let (header, header_len) = layout::ipv4(datagram)?;
        if header_len != IPV4_LEN
            || header.protocol != protocol::TCP
            || header.is_fragment()
            || datagram.len() != IPV4_LEN + usize::from(header.payload_len)
        {
            return None;
        }
        let tcp_len = usize::from(datagram.get(IPV4_LEN + tcp::DATA_OFFSET)? >> 4) * 4;
        let headers_len = IPV4_LEN + tcp_len;
        let flags = *datagram.get(IPV4_LEN + tcp::FLAGS)?;
        let others = !(tcp::ACK | tcp::PSH | tcp::FIN | tcp::ECE | tcp::CWR);
        if tcp_len < tcp::LEN || headers_len >= datagram.len() || flags & tcp::ACK == 0 || flags & others != 0
        {
            return None;
        }
        // The host will not check a super-packet, so it is done here.
        let sum = layout::pseudo_header(datagram, IPV4_LEN, protocol::TCP)
            + checksum::sum(datagram.get(IPV4_LEN..).unwrap_or_default());
        let is_right = checksum::is_right(sum)
            && checksum::is_right(checksum::sum(datagram.get(..IPV4_LEN).unwrap_or_default()));
        let sequence = u32_at(datagram, IPV4_LEN + tcp::SEQUENCE)?;
        is_right.then_some(Self { datagram, headers_len, flags, sequence })
    }

    fn payload(&self) -> &'a [u8] {
        self.datagram.get(self.headers_len..).unwrap_or_default()
    }

    /// Nothing may follow it in a super-packet.
    const fn ends(&self) -> bool {
        self.flags & (tcp::PSH | tcp::FIN) != 0
    }
}

impl Pending {
    fn new() -> Self {
        Self {
            buffer: vec![0; LONGEST].into(),
            len: 0,
            segments: 0,
            headers_len: 0,
            size: 0,
            next_sequence: 0,
        }
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    fn start(&mut self, segment: &Segment<'_>) {
        let datagram = segment.datagram;
        if let Some(place) = self.buffer.get_mut(..datagram.len()) {
            place.copy_from_slice(datagram);
        }
        self.len = datagram.len();
        self.segments = 1;
        self.headers_len = segment.headers_len;
        self.size = segment.payload().len();
        self.next_sequence = segment.sequence.wrapping_add(self.size as u32);
    }

    /// Whether a segment of this flow can be told from the last one by nothing but what cutting puts back.
    fn continues_with(&self, segment: &Segment<'_>) -> bool {
        let (first, next) = (self.bytes(), segment.datagram);
        let len = segment.payload().len();
        let same = |range: std::ops::Range<usize>| first.get(range.clone()) == next.get(range);
        // FIN and PSH may come with the last, CWR only with the first.
        let flags_at = IPV4_LEN + tcp::FLAGS;
        let first_flags = first.get(flags_at).copied().unwrap_or(0) & !tcp::CWR;
        segment.sequence == self.next_sequence
            && segment.headers_len == self.headers_len
            && len <= self.size
            && self.len + len <= LONGEST
            && first_flags == segment.flags & !(tcp::FIN | tcp::PSH)
            && same(1..2) // type of service, with ECN
            && same(6..9) // DF, TTL
            && same(IPV4_LEN + 8..flags_at) // acknowledgement number
            && same(flags_at + 1..IPV4_LEN + tcp::CHECKSUM) // window
            && same(IPV4_LEN + tcp::CHECKSUM + 2..self.headers_len) // urgent pointer, options
            && self.expects_identification(next)
    }

    /// The next number, or the same one again in datagrams that are never fragmented, where it says nothing
    /// (RFC 6864 section 4.1).
    fn expects_identification(&self, next: &[u8]) -> bool {
        let of = |datagram| u16_at(datagram, layout::IDENTIFICATION).unwrap_or(0);
        let dont_fragment = next.get(6).is_some_and(|flags| flags & 0x40 != 0);
        let (first, next) = (of(self.bytes()), of(next));
        next == first.wrapping_add(self.segments as u16) || (dont_fragment && next == first)
    }

    /// Adds a segment; returns whether nothing may follow it.
    fn add(&mut self, segment: &Segment<'_>) -> bool {
        let payload = segment.payload();
        let end = self.len + payload.len();
        if let Some(place) = self.buffer.get_mut(self.len..end) {
            place.copy_from_slice(payload);
        }
        if let Some(flags) = self.buffer.get_mut(IPV4_LEN + tcp::FLAGS) {
            *flags |= segment.flags & (tcp::FIN | tcp::PSH);
        }
        self.len = end;
        self.segments += 1;
        self.next_sequence = self.next_sequence.wrapping_add(payload.len() as u32);
        segment.ends() || payload.len() < self.size
    }

    /// Hands on what there is.
    fn write(&mut self, write: &mut impl FnMut(&[u8; VnetHeader::LEN], &[u8])) {
        if self.segments == 1 {
            write(&VnetHeader::default().bytes(), self.bytes());
            return;
        }
        let headers_len = self.headers_len as u16;
        let packet = self.buffer.get_mut(..self.len).unwrap_or_default();
        layout::finish_ipv4(packet, IPV4_LEN);
        let sum = layout::pseudo_header(packet, IPV4_LEN, protocol::TCP);
        put(packet, IPV4_LEN + tcp::CHECKSUM, checksum::folded(sum));
        let flags = packet.get(IPV4_LEN + tcp::FLAGS).copied().unwrap_or(0);
        let vnet = VnetHeader {
            checksum: Some((IPV4_LEN as u16, tcp::CHECKSUM as u16)),
            segmentation: Some(Segmentation {
                kind: SegmentationKind::Tcp,
                size: self.size as u16,
                has_cwr: flags & tcp::CWR != 0,
            }),
            headers_len,
        };
        write(&vnet.bytes(), packet);
    }
}

impl std::fmt::Debug for Coalescer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Coalescer({} flows)", self.used)
    }
}

impl Coalescer {
    pub(super) fn new() -> Self {
        Self { flows: Vec::with_capacity(FLOWS), used: 0, merged: 0, super_packets: 0 }
    }

    /// Hands on what is held of the flow of `datagram`, which is about to be written by itself.
    pub(super) fn flush_flow(
        &mut self,
        datagram: &[u8],
        mut write: impl FnMut(&[u8; VnetHeader::LEN], &[u8]),
    ) {
        if let Some(at) = self.held(datagram) {
            self.release(at, &mut write);
        }
    }

    /// Takes a datagram, whole and without padding. It is handed to `write` now, or with others later; those of
    /// one flow always in order.
    pub(super) fn push(&mut self, datagram: &[u8], mut write: impl FnMut(&[u8; VnetHeader::LEN], &[u8])) {
        let held = self.held(datagram);
        let segment = Segment::of(datagram);
        if let Some(at) = held {
            if let (Some(segment), Some(pending)) = (&segment, self.flows.get_mut(at))
                && pending.continues_with(segment)
            {
                if pending.add(segment) {
                    self.release(at, &mut write);
                }
                return;
            }
            // Whatever this is, what came before it goes before it.
            self.release(at, &mut write);
        }
        match segment {
            Some(segment) if !segment.ends() => {
                if self.used == FLOWS {
                    self.release(0, &mut write);
                }
                if self.used == self.flows.len() {
                    self.flows.push(Pending::new());
                }
                if let Some(pending) = self.flows.get_mut(self.used) {
                    pending.start(&segment);
                    self.used += 1;
                }
            }
            _ => write(&VnetHeader::default().bytes(), datagram),
        }
    }

    /// Hands on whatever is held.
    pub(super) fn flush(&mut self, mut write: impl FnMut(&[u8; VnetHeader::LEN], &[u8])) {
        while self.used > 0 {
            self.release(0, &mut write);
        }
    }

    /// The place of the flow of a datagram, if something of it is held.
    fn held(&self, datagram: &[u8]) -> Option<usize> {
        let wanted = flow(datagram)?;
        self.flows.iter().take(self.used).position(|pending| flow(pending.bytes()) == Some(wanted))
    }

    /// Hands on the flow at a place, whose room goes behind those in use.
    fn release(&mut self, at: usize, write: &mut impl FnMut(&[u8; VnetHeader::LEN], &[u8])) {
        let Some(pending) = self.flows.get_mut(at) else { return };
        pending.write(write);
        if pending.segments > 1 {
            self.super_packets += 1;
            self.merged += u64::from(pending.segments);
        }
        if let Some(behind) = self.flows.get_mut(at..self.used) {
            behind.rotate_left(1);
        }
        self.used = self.used.saturating_sub(1);
    }
}
