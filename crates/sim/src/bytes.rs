//! A packet as the bytes it would be on a wire.

use careof_wire::Segment;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::Origin;

use crate::packet::{Body, Packet};

/// Builds packets' bytes in buffers that are used again.
///
/// The data of a segment is zeros: the models know its length only. Checksums are right all the same.
#[derive(Default)]
pub(crate) struct PacketBytes {
    whole: Vec<u8>,
    payload: Vec<u8>,
    zeros: Vec<u8>,
    /// The options that mobile nodes made, a multiple of four bytes each.
    pub(crate) options: Vec<Vec<u8>>,
}

/// An ICMP error of the simulator quotes the header and 8 bytes behind it (RFC 792): ports and sequence number.
/// RFC 1812 would have more, but analysers check the TCP checksum of a longer quotation as if it were whole.
const QUOTE_BYTES: usize = 28;

impl PacketBytes {
    /// The bytes of `packet`.
    pub(crate) fn of(&mut self, packet: &Packet) -> &[u8] {
        self.payload.clear();
        match &packet.body {
            Body::Tcp(segment) if packet.origin.is_some_and(|origin| origin.option.is_some()) => {
                let number = packet.origin.and_then(|origin| origin.option);
                let option = number.and_then(|number| self.options.get(number.index()));
                let mut data = option.cloned().unwrap_or_default();
                let words = data.len() as u16 / 4;
                data.resize(data.len() + usize::from(segment.payload_len), 0);
                let longer = Segment { payload_len: data.len() as u16, ..*segment };
                longer.emit(packet.header.source, packet.header.destination, &data, &mut self.payload);
                lengthen_header(&mut self.payload, words);
            }
            Body::Tcp(segment) => {
                self.zeros.resize(self.zeros.len().max(usize::from(segment.payload_len)), 0);
                let data = &self.zeros[..usize::from(segment.payload_len)];
                segment.emit(packet.header.source, packet.header.destination, data, &mut self.payload);
            }
            Body::Message(bytes) => self.payload.extend_from_slice(bytes),
        }
        self.whole.clear();
        emit_part(&packet.header, &self.payload, &mut self.whole);
        let Some(outer) = &packet.outer else { return &self.whole };
        let header = &outer.header;
        let tunnelled = outer
            .tunnel()
            .encapsulate(&self.whole, Origin::Local, header.identification)
            .unwrap_or_else(|error| unreachable!("the entry of the tunnel let the packet in: {error}"));
        self.whole.clear();
        emit_part(header, &tunnelled[usize::from(Ipv4Header::LEN)..], &mut self.whole);
        &self.whole
    }

    /// The first bytes of `packet`, as an ICMP error quotes them: of a tunnelled one enough for the entry of the
    /// tunnel to tell the sender of what is inside (RFC 2003 section 4).
    pub(crate) fn quote(&mut self, packet: &Packet) -> Vec<u8> {
        let tunnel = packet.outer.as_ref().map_or(0, |outer| usize::from(outer.encapsulation.max_overhead()));
        let bytes = self.of(packet);
        bytes[..bytes.len().min(QUOTE_BYTES + tunnel)].to_vec()
    }
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

/// A header and the part of `payload` that it says it carries.
fn emit_part(header: &Ipv4Header, payload: &[u8], out: &mut Vec<u8>) {
    header.emit(out);
    let start = usize::from(header.fragment_offset).min(payload.len());
    let end = (start + usize::from(header.payload_len)).min(payload.len());
    out.extend_from_slice(&payload[start..end]);
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
            let header = Ipv4Header {
                source: [10, 0, 0, 1].into(),
                destination: [10, 0, 0, 2].into(),
                protocol: protocol::TCP,
                ttl: 64,
                payload_len: segment.header_len() + 12 + payload_len,
                ..Ipv4Header::default()
            };
            let whole = Packet {
                id: 0,
                header,
                outer: None,
                body: Body::Tcp(segment),
                origin: Some(origin),
                in_fragments: 0,
            };
            let written = bytes.of(&whole)[20..].to_vec();
            assert_eq!(written.len(), usize::from(header.payload_len));
            let (read, data) = Segment::parse(header.source, header.destination, &written).unwrap();
            assert_eq!((read, data.len()), (segment, usize::from(payload_len)));
            assert_eq!(written[32..44], bytes.options[1]);
            let (_, has_others) = Segment::peek(&written).unwrap();
            assert!(has_others);
        }
    }
}
