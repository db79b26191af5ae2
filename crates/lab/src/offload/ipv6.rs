//! Segments over IPv6 that the kernel has put together, and whose checksums it has left to a network card.

use careof_wire::ipv6::ExtensionHeaders;
use careof_wire::protocol;

use super::checksum;
use super::layout::{put, tcp};

/// Source and destination address.
const ADDRESSES: std::ops::Range<usize> = 8..40;

/// A packet of IPv6 with the checksum of its segment of TCP completed, where the kernel has left that to a network card: then the field
/// holds the sum of the pseudo header alone, as a raw socket shows where the kernel has put segments together (generic receive offload).
/// `None` for every other packet, which can go on as it is.
///
/// Completing a checksum that is right by itself, and looks like this once in 65,536, changes nothing.
#[must_use]
pub fn with_left_checksum(packet: &[u8]) -> Option<Vec<u8>> {
    let mut headers = ExtensionHeaders::of(packet).ok()?;
    if headers
        .by_ref()
        .any(|extension| extension.is_err() || extension.is_ok_and(|one| one.fragment().is_some()))
        || headers.protocol() != protocol::TCP
    {
        return None;
    }
    let start = headers.payload_offset();
    let segment = packet.get(start..)?;
    let len = u16::try_from(segment.len()).ok()?;
    let found = segment.get(tcp::CHECKSUM..)?.first_chunk()?;
    let pseudo_header = checksum::pseudo_header(packet.get(ADDRESSES)?, protocol::TCP, len);
    if *found != checksum::folded(pseudo_header) {
        return None;
    }
    let mut completed = packet.to_vec();
    put(&mut completed, start + tcp::CHECKSUM, [0; 2]);
    let sum = pseudo_header + checksum::sum(completed.get(start..).unwrap_or_default());
    put(&mut completed, start + tcp::CHECKSUM, checksum::complete(sum));
    Some(completed)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use careof_wire::Segment;
    use careof_wire::ipv6::Ipv6Header;

    use super::*;

    const HERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const THERE: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);
    const FIELD: usize = 40 + tcp::CHECKSUM;

    fn packet(payload: &[u8]) -> Vec<u8> {
        let payload_len = payload.len() as u16;
        let segment = Segment { source_port: 80, destination_port: 4000, payload_len, ..Segment::default() };
        let payload_len = segment.header_len() + payload_len;
        let mut bytes = Vec::new();
        let next_header = protocol::TCP;
        Ipv6Header { source: THERE, destination: HERE, next_header, payload_len, ..Ipv6Header::default() }
            .emit(&mut bytes);
        segment.emit(THERE, HERE, payload, &mut bytes);
        bytes
    }

    #[test]
    fn a_checksum_that_was_left_to_a_card_is_completed() {
        for len in [0, 1, 1440, 40_001] {
            let right = packet(&vec![0xa5; len]);
            assert_eq!(with_left_checksum(&right), None, "{len}: nothing is left to do");
            let mut left = right.clone();
            let sum = checksum::pseudo_header(&right[ADDRESSES], protocol::TCP, (right.len() - 40) as u16);
            put(&mut left, FIELD, checksum::folded(sum));
            assert_eq!(with_left_checksum(&left), Some(right), "{len}");
        }
    }

    #[test]
    fn nothing_else_is_touched() {
        let whole = packet(b"abc");
        for len in 0..whole.len() {
            assert_eq!(with_left_checksum(&whole[..len]), None, "{len}");
        }
        let mut wrong = whole;
        wrong[FIELD] ^= 1;
        assert_eq!(with_left_checksum(&wrong), None, "a wrong checksum stays wrong");
    }
}
