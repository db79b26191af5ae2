//! A packet as the bytes it would be on a wire.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_plan::{Locator, Plan};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, FragmentHeader, Ipv6Header};
use careof_wire::mip6::DSMIPV6_PORT;
use careof_wire::tunnel::{MultipathHeader, Origin, Tunnel};
use careof_wire::udp::UdpHeader;
use careof_wire::{Segment, protocol};

use crate::header::{Header, IPV6_LEN};
use crate::packet::{Body, OnLink, Outer, Packet};
use crate::passage::{MULTIPATH_OVERHEAD, Wrapping};

/// Builds packets' bytes in buffers that are used again.
///
/// The data of a segment is zeros: the models know its length only. Checksums are right all the same.
#[derive(Default)]
pub(crate) struct PacketBytes {
    whole: Vec<u8>,
    payload: Vec<u8>,
    zeros: Vec<u8>,
    /// Which addresses stand in the headers.
    plan: Plan,
    /// The options that mobile nodes made, a multiple of four bytes each.
    pub(crate) options: Vec<Vec<u8>>,
}

/// An ICMP error of the simulator quotes the header and 8 bytes behind it (RFC 792): ports and sequence number.
/// RFC 1812 would have more, but analysers check the TCP checksum of a longer quotation as if it were whole.
const QUOTE_BYTES: usize = 28;

/// An ICMPv6 error quotes as much as leaves it within the least MTU (RFC 4443 section 3): 40 bytes of IPv6 and 8 of ICMPv6.
const QUOTE_BYTES_V6: usize = Ipv6Header::MIN_MTU as usize - 48;

impl PacketBytes {
    /// Of packets between the addresses of `plan`.
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, ..Self::default() }
    }

    /// The bytes of `packet`.
    pub(crate) fn of(&mut self, packet: &Packet) -> &[u8] {
        self.write_payload(packet);
        self.whole.clear();
        match &self.plan {
            Plan::Ipv4 => self.write_ipv4(packet),
            Plan::Ipv6(_) => self.write_ipv6(packet),
        }
        &self.whole
    }

    pub(crate) fn address_v6(&self, locator: Locator) -> Ipv6Addr {
        match self.plan.address(locator) {
            IpAddr::V6(address) => address,
            IpAddr::V4(address) => address.to_ipv6_mapped(),
        }
    }

    fn emit_segment(&mut self, header: &Header, segment: &Segment, data: &[u8]) {
        match [header.source, header.destination].map(|end| self.plan.address(end)) {
            [IpAddr::V4(source), IpAddr::V4(destination)] => {
                segment.emit(source, destination, data, &mut self.payload);
            }
            [source, destination] => {
                let [source, destination] = [source, destination].map(|end| match end {
                    IpAddr::V6(address) => address,
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                });
                segment.emit(source, destination, data, &mut self.payload);
            }
        }
    }

    fn write_payload(&mut self, packet: &Packet) {
        self.payload.clear();
        match &packet.body {
            Body::Tcp(segment) if packet.origin.is_some_and(|origin| origin.option.is_some()) => {
                let number = packet.origin.and_then(|origin| origin.option);
                let option = number.and_then(|number| self.options.get(number.index()));
                let mut data = option.cloned().unwrap_or_default();
                let words = data.len() as u16 / 4;
                data.resize(data.len() + usize::from(segment.payload_len), 0);
                let longer = Segment { payload_len: data.len() as u16, ..*segment };
                self.emit_segment(&packet.header, &longer, &data);
                lengthen_header(&mut self.payload, words);
            }
            Body::Tcp(segment) => {
                let mut zeros = core::mem::take(&mut self.zeros);
                zeros.resize(zeros.len().max(usize::from(segment.payload_len)), 0);
                self.emit_segment(&packet.header, segment, &zeros[..usize::from(segment.payload_len)]);
                self.zeros = zeros;
            }
            Body::Message(bytes) => self.payload.extend_from_slice(bytes),
            Body::OnLink(on_link) => self.payload.extend_from_slice(&on_link.message),
        }
    }

    fn write_ipv4(&mut self, packet: &Packet) {
        emit_part(&packet.header.to_ipv4(), &self.payload, &mut self.whole);
        for Outer { header, wrapping } in from_inside(packet) {
            let header = header.to_ipv4();
            let encapsulation = match wrapping {
                Wrapping::Ipv4(encapsulation) => encapsulation,
                Wrapping::Multipath => {
                    let tunnelled = self.numbered(packet);
                    emit_part(&header, &tunnelled, &mut self.whole);
                    continue;
                }
                _ => continue,
            };
            let Ipv4Header { source: entry, destination: exit, ttl, .. } = header;
            let tunnelled = Tunnel { encapsulation, entry, exit, ttl }
                .encapsulate(&self.whole, Origin::Local, header.identification)
                .unwrap_or_else(|error| unreachable!("the entry of the tunnel let the packet in: {error}"));
            self.whole.clear();
            emit_part(&header, &tunnelled[usize::from(Ipv4Header::LEN)..], &mut self.whole);
        }
    }

    /// What has been written, behind the header that a tunnel over several paths puts before it.
    fn numbered(&mut self, packet: &Packet) -> Vec<u8> {
        let mut tunnelled = Vec::with_capacity(MultipathHeader::LEN + self.whole.len());
        packet.numbered().inspect(|header| header.emit(&mut tunnelled));
        tunnelled.append(&mut self.whole);
        tunnelled
    }

    fn write_ipv6(&mut self, packet: &Packet) {
        if let Body::OnLink(on_link) = &packet.body {
            return write_on_link(&packet.header, on_link, &mut self.whole);
        }
        let inner = &packet.header;
        let ends = [inner.source, inner.destination].map(|end| self.address_v6(end));
        let mut outers = from_inside(packet).peekable();
        let is_extended = |outer: &Outer| matches!(outer.wrapping, Wrapping::Extended { .. });
        if outers.peek().is_none_or(|outer| !is_extended(outer)) {
            emit_ipv6(inner, ends, &Extensions::NONE, &self.payload, &mut self.whole);
        }
        for Outer { header, wrapping } in outers {
            let outer_ends = [header.source, header.destination].map(|end| self.address_v6(end));
            let tunnelled = core::mem::take(&mut self.whole);
            match wrapping {
                Wrapping::Extended { home_address, routing } => {
                    let extensions = Extensions {
                        home_address: home_address.then_some(ends[0]),
                        type_2_routing: routing.then_some(ends[1]),
                        ..Extensions::NONE
                    };
                    emit_ipv6(&header, outer_ends, &extensions, &self.payload, &mut self.whole);
                }
                Wrapping::Ipv6InIpv4 { udp } => {
                    let header = header.to_ipv4();
                    let tunnelled = if udp {
                        datagram(DSMIPV6_PORT, (header.source, header.destination), &tunnelled)
                    } else {
                        tunnelled
                    };
                    emit_part(&header, &tunnelled, &mut self.whole);
                }
                Wrapping::Ipv6 | Wrapping::Ipv4(_) | Wrapping::Multipath => {
                    emit_ipv6(&header, outer_ends, &Extensions::NONE, &tunnelled, &mut self.whole);
                }
            }
        }
    }

    /// The first bytes of `packet`, as an ICMP error quotes them: of a tunnelled one enough for the entry of the
    /// tunnel to tell the sender of what is inside (RFC 2003 section 4).
    pub(crate) fn quote(&mut self, packet: &Packet) -> Vec<u8> {
        let longest = match (&self.plan, &packet.outer) {
            (Plan::Ipv6(_), _) => QUOTE_BYTES_V6,
            (Plan::Ipv4, None) => QUOTE_BYTES,
            (Plan::Ipv4, Some(_)) => {
                let overhead = |outer: &Outer| match outer.wrapping {
                    Wrapping::Ipv4(encapsulation) => usize::from(encapsulation.max_overhead()),
                    Wrapping::Multipath => usize::from(MULTIPATH_OVERHEAD),
                    _ => 0,
                };
                QUOTE_BYTES + packet.outers().map(overhead).sum::<usize>()
            }
        };
        let bytes = self.of(packet);
        bytes[..bytes.len().min(longest)].to_vec()
    }
}

/// What a packet travels in, the innermost first.
fn from_inside(packet: &Packet) -> impl Iterator<Item = Outer> + use<> {
    let outers: Vec<Outer> = packet.outers().copied().collect();
    outers.into_iter().rev()
}

/// Makes the first words of the data of a TCP segment options (RFC 9293 section 3.1), and mends the checksum (RFC 1624).
fn lengthen_header(segment: &mut [u8], words: u16) {
    let word = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
    let (offset, checksum) = (word(12), word(16));
    let longer = offset + (words << 12);
    let sum = u32::from(!checksum) + u32::from(!offset) + u32::from(longer);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    segment[12..14].copy_from_slice(&longer.to_be_bytes());
    segment[16..18].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

/// A datagram of UDP between the same port of both ends, as messages of mobility are.
pub(crate) fn datagram(port: u16, (source, destination): (Ipv4Addr, Ipv4Addr), payload: &[u8]) -> Vec<u8> {
    let ports = UdpHeader { source_port: port, destination_port: port, payload_len: payload.len() as u16 };
    let mut bytes = Vec::with_capacity(payload.len() + usize::from(UdpHeader::LEN));
    ports.emit(source, destination, payload, &mut bytes);
    bytes
}

/// What a message carries, if it is a datagram of UDP to `port`.
pub(crate) fn payload_to<'a>(port: u16, header: &Header, bytes: &'a [u8]) -> Option<&'a [u8]> {
    if header.protocol != protocol::UDP {
        return None;
    }
    let (udp, payload) =
        UdpHeader::parse(header.source.to_ipv4(), header.destination.to_ipv4(), bytes).ok()?;
    (udp.destination_port == port).then_some(payload)
}

/// A header and the part of `payload` that it says it carries.
fn emit_part(header: &Ipv4Header, payload: &[u8], out: &mut Vec<u8>) {
    header.emit(out);
    out.extend_from_slice(part(header.fragment_offset, header.payload_len, payload));
}

fn part(offset: u16, len: u16, payload: &[u8]) -> &[u8] {
    let start = usize::from(offset).min(payload.len());
    let end = (start + usize::from(len)).min(payload.len());
    &payload[start..end]
}

/// The same over IPv6, where extension headers and that of a fragment follow.
fn emit_ipv6(
    header: &Header,
    [source, destination]: [Ipv6Addr; 2],
    extensions: &Extensions,
    payload: &[u8],
    out: &mut Vec<u8>,
) {
    let follows = if header.is_fragment() { protocol::IPV6_FRAGMENT } else { header.protocol };
    Ipv6Header {
        source,
        destination,
        next_header: extensions.first(follows),
        hop_limit: header.ttl,
        traffic_class: header.tos,
        flow_label: 0,
        payload_len: header.total_len() - u16::from(IPV6_LEN),
    }
    .emit(out);
    extensions.emit(follows, out);
    if header.is_fragment() {
        let fragment = FragmentHeader {
            next_header: header.protocol,
            offset: header.fragment_offset,
            more_fragments: header.more_fragments,
            identification: header.identification.into(),
        };
        out.extend(fragment.to_bytes());
    }
    out.extend_from_slice(part(header.fragment_offset, header.payload_len, payload));
}

fn write_on_link(header: &Header, on_link: &OnLink, out: &mut Vec<u8>) {
    let OnLink { source, destination, router_alert, message } = on_link;
    let extensions = Extensions { router_alert: router_alert.then_some(0), ..Extensions::NONE };
    emit_ipv6(header, [*source, *destination], &extensions, message, out);
}

#[cfg(test)]
mod tests {
    use careof_plan::{FlowId, Side};
    use careof_wire::{Flags, SeqNumber, Timestamps, protocol};

    use super::*;
    use crate::handover_option::OptionRef;
    use crate::packet;

    #[test]
    fn an_option_of_the_mobile_node_stands_in_the_header_and_the_checksum_counts_it() {
        let longest = vec![253, 10, 0x43, 0x61, 3, 1, 0xff, 0xff, 0xff, 0xff, 1, 1];
        let options = vec![vec![253, 4, 0xff, 0xfe], longest];
        let mut bytes = PacketBytes { options, ..PacketBytes::default() };
        for payload_len in [0, 1, 536] {
            let segment = Segment {
                source_port: 5001,
                destination_port: 40_000,
                seq: SeqNumber(0xffff_fff0),
                ack: SeqNumber(7),
                flags: Flags::ACK,
                window: 0xffff,
                timestamps: Some(Timestamps { value: 1, echo: 2 }),
                payload_len,
                ..Segment::default()
            };
            let origin = packet::Origin {
                flow: FlowId(0),
                sender: Side::Opener,
                retransmission: false,
                transmission: None,
                seq: 0,
                ack: 0,
                option: OptionRef::at(1),
            };
            let header = Header {
                source: Locator::of_ipv4([10, 0, 0, 1].into()),
                destination: Locator::of_ipv4([10, 0, 0, 2].into()),
                protocol: protocol::TCP,
                ttl: 64,
                payload_len: segment.header_len() + 12 + payload_len,
                ..Header::default()
            };
            let whole = Packet::new(header, Body::Tcp(segment), Some(origin));
            let written = bytes.of(&whole)[20..].to_vec();
            assert_eq!(written.len(), usize::from(header.payload_len));
            let (read, data) =
                Segment::parse(header.source.to_ipv4(), header.destination.to_ipv4(), &written).unwrap();
            assert_eq!((read, data.len()), (segment, usize::from(payload_len)));
            assert_eq!(written[32..44], bytes.options[1]);
            let (_, has_others) = Segment::peek(&written).unwrap();
            assert!(has_others);
        }
    }

    #[test]
    fn a_packet_in_nested_tunnels_is_written_with_all_its_headers_and_in_fragments() {
        use careof_plan::{Ipv6Plan, Subnet};
        use careof_wire::ipv6::{Packet as Received, Reassembler, ReassemblyLimits, Understood};
        use careof_wire::tunnel::decapsulate_ipv6;

        use crate::passage::Passage;

        let plan = Plan::Ipv6(Ipv6Plan::new(Vec::new(), Vec::new()));
        let mut bytes = PacketBytes::new(plan);
        let [source, destination] = [1, 2].map(|network| Subnet(network).host(7));
        let header = Header {
            source,
            destination,
            protocol: protocol::UDP,
            ttl: 60,
            len: IPV6_LEN,
            payload_len: 1_000,
            ..Header::default()
        };
        let passages = [
            (Wrapping::Extended { home_address: true, routing: false }, 3, 2),
            (Wrapping::Ipv6, 4, 5),
            (Wrapping::Ipv6, 6, 7),
        ];
        let payload: Vec<u8> = (0..1_000_u32).map(|n| n as u8).collect();
        let mut whole = packet::Packet::new(header, Body::Message(payload.clone().into()), None);
        for (n, (wrapping, entry, exit)) in passages.into_iter().enumerate() {
            let [entry, exit] = [entry, exit].map(|network| Subnet(network).host(1));
            let passage = Passage { wrapping, entry, exit, ttl: 64 };
            let header = passage.wrap(whole.outermost(), true, 7 + n as u16);
            whole.enter(Outer { header, wrapping });
        }
        let address = |network: u16, host: u8| {
            Ipv6Plan::new(Vec::new(), Vec::new()).address(Subnet(network).host(host))
        };
        let inside = |written: &[u8]| {
            let outer = decapsulate_ipv6(written).unwrap();
            let ends = (outer.outer.source, outer.outer.destination);
            assert_eq!(ends, (address(6, 1), address(7, 1)));
            let inner = decapsulate_ipv6(outer.datagram).unwrap();
            assert_eq!((inner.outer.source, inner.outer.destination), (address(4, 1), address(5, 1)));
            let received = Received::parse(inner.datagram, Understood::MOBILE_IPV6).unwrap();
            assert_eq!(received.extensions.home_address, Some(address(1, 7)));
            assert_eq!(received.payload, payload);
        };
        let written = bytes.of(&whole).to_vec();
        assert_eq!(written.len(), usize::from(whole.outermost().total_len()));
        inside(&written);
        // In two fragments that are put together behind the outermost header.
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        let mut joined = None;
        for (offset, len) in [(0, 600), (600, 504)] {
            let mut part = whole.clone();
            let header = part.outermost_mut();
            let total = header.payload_len;
            (header.len, header.fragment_offset, header.payload_len) = (48, offset, len);
            header.more_fragments = offset + len < total;
            let written = bytes.of(&part).to_vec();
            assert_eq!(written.len(), usize::from(len) + 48);
            joined = reassembler.handle_fragment(careof_base::Instant::ZERO, &written).unwrap();
        }
        inside(&joined.unwrap());
    }
}
