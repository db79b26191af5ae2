//! A packet as the bytes it would be on a wire.

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
}

/// An ICMP error of the simulator quotes the header and 8 bytes behind it (RFC 792): ports and sequence number.
/// RFC 1812 would have more, but analysers check the TCP checksum of a longer quotation as if it were whole.
const QUOTE_BYTES: usize = 28;

impl PacketBytes {
    /// The bytes of `packet`.
    pub(crate) fn of(&mut self, packet: &Packet) -> &[u8] {
        self.payload.clear();
        match &packet.body {
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

/// A header and the part of `payload` that it says it carries.
fn emit_part(header: &Ipv4Header, payload: &[u8], out: &mut Vec<u8>) {
    header.emit(out);
    let start = usize::from(header.fragment_offset).min(payload.len());
    let end = (start + usize::from(header.payload_len)).min(payload.len());
    out.extend_from_slice(&payload[start..end]);
}
