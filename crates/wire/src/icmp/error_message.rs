//! Destination Unreachable and Time Exceeded (RFC 792, RFC 1122 section 3.2.2, RFC 1191).

use alloc::vec::Vec;

use etherparse::icmpv4::{TYPE_DEST_UNREACH, TYPE_TIME_EXCEEDED};

use super::Header;
use crate::codes::codes;

codes! {
    /// Why a destination is unreachable.
    UnreachableCode {
        /// 0.
        Net = 0, "net unreachable";
        /// 1.
        Host = 1, "host unreachable";
        /// 2.
        Protocol = 2, "protocol unreachable";
        /// 3.
        Port = 3, "port unreachable";
        /// 4, "Datagram Too Big" where RFC 2003 speaks of it.
        FragmentationNeeded = 4, "fragmentation needed and DF set";
        /// 5.
        SourceRouteFailed = 5, "source route failed";
        /// 6.
        NetUnknown = 6, "destination network unknown";
        /// 7.
        HostUnknown = 7, "destination host unknown";
        /// 8.
        SourceHostIsolated = 8, "source host isolated";
        /// 9.
        NetProhibited = 9, "communication with destination network administratively prohibited";
        /// 10.
        HostProhibited = 10, "communication with destination host administratively prohibited";
        /// 11.
        NetTypeOfService = 11, "network unreachable for type of service";
        /// 12.
        HostTypeOfService = 12, "host unreachable for type of service";
        /// 13 (RFC 1812).
        Prohibited = 13, "communication administratively prohibited";
        /// 14 (RFC 1812).
        HostPrecedenceViolation = 14, "host precedence violation";
        /// 15 (RFC 1812).
        PrecedenceCutoff = 15, "precedence cutoff in effect";
    }
}

codes! {
    /// Which time was exceeded.
    TimeExceededCode {
        /// 0.
        InTransit = 0, "time to live exceeded in transit";
        /// 1.
        Reassembly = 1, "fragment reassembly time exceeded";
    }
}

/// Whether a message of this type is an error: Destination Unreachable, Source Quench, Redirect, Time Exceeded and Parameter
/// Problem (RFC 1122 section 3.2.2).
#[must_use]
pub const fn is_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// The ICMP error that a datagram is, from its type on; `None` for any other datagram, what is in a tunnel included, and for all
/// fragments but the first, which do not show what they are.
#[must_use]
pub fn error_in(datagram: &[u8]) -> Option<&[u8]> {
    // What a packet filter looks at, cheap enough to be asked of every packet.
    if datagram.get(9) != Some(&crate::protocol::ICMP) {
        return None;
    }
    let (header, payload) = crate::ipv4::Ipv4Header::parse(datagram).ok()?;
    let kind = *payload.first()?;
    (header.fragment_offset == 0 && is_error(kind)).then_some(payload)
}

/// Destination Unreachable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationUnreachable {
    /// Why.
    pub code: UnreachableCode,
    /// With [`UnreachableCode::FragmentationNeeded`]: the largest datagram the next hop takes, bytes of IP
    /// (RFC 1191 section 4), or 0 when the router is too old to tell. With any other code the field has no
    /// meaning and is sent as 0.
    pub next_hop_mtu: u16,
    /// The start of the datagram it is about; [`super::QuotedDatagram`] reads it.
    pub quoted: Vec<u8>,
}

impl DestinationUnreachable {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        let (_, next_hop_mtu) = header.as_halves();
        Self {
            code: UnreachableCode::from_number(header.code),
            next_hop_mtu,
            quoted: without_extensions(header, body),
        }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header::halves(TYPE_DEST_UNREACH, self.code.number(), 0, self.next_hop_mtu)
    }
}

/// Time Exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimeExceeded {
    /// Which time.
    pub code: TimeExceededCode,
    /// The start of the datagram it is about; [`super::QuotedDatagram`] reads it.
    pub quoted: Vec<u8>,
}

impl TimeExceeded {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        Self { code: TimeExceededCode::from_number(header.code), quoted: without_extensions(header, body) }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header::halves(TYPE_TIME_EXCEEDED, self.code.number(), 0, 0)
    }
}

/// The quoted datagram without the objects that may follow it (RFC 4884): where there are some, the second
/// octet of the rest of the header counts the quoted 32-bit words.
fn without_extensions(header: Header, body: &[u8]) -> Vec<u8> {
    let [_, words, ..] = header.rest;
    let quoted = match words {
        0 => body,
        words => body.get(..usize::from(words) * 4).unwrap_or(body),
    };
    quoted.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::icmp::IcmpMessage;

    #[test]
    fn what_a_filter_of_errors_sees_is_their_type_in_the_outermost_datagram() {
        use crate::{ipv4::Ipv4Header, protocol};
        let datagram = |protocol, fragment_offset, kind: u8| {
            let mut bytes = Vec::new();
            Ipv4Header { protocol, fragment_offset, payload_len: 8, ..Ipv4Header::default() }
                .emit(&mut bytes);
            bytes.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
            bytes
        };
        for kind in 0..=u8::MAX {
            let found = error_in(&datagram(protocol::ICMP, 0, kind)).is_some();
            assert_eq!(found, [3, 4, 5, 11, 12].contains(&kind), "{kind}");
        }
        assert_eq!(
            error_in(&datagram(protocol::ICMP, 8, 3)),
            None,
            "a later fragment does not show its type"
        );
        assert_eq!(error_in(&datagram(protocol::IP_IN_IP, 0, 3)), None);
        let whole = datagram(protocol::ICMP, 0, 3);
        assert!((0..20).all(|len| error_in(&whole[..len]).is_none()));
    }

    #[test]
    fn datagram_too_big_tells_the_next_hop_mtu() {
        let message = IcmpMessage::DestinationUnreachable(DestinationUnreachable {
            code: UnreachableCode::FragmentationNeeded,
            next_hop_mtu: 1480,
            quoted: alloc::vec![0x45; 28],
        });
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        assert_eq!(bytes[..2], [3, 4]);
        assert_eq!(bytes[4..8], [0, 0, 0x05, 0xc8]);
        assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn multi_part_messages_lose_their_extension_objects() {
        let header = Header { kind: 11, code: 0, rest: [0, 2, 0, 0] };
        assert_eq!(TimeExceeded::decode(header, &[1; 12]).quoted, [1; 8]);
        assert_eq!(TimeExceeded::decode(header, &[1; 7]).quoted, [1; 7]);
    }

    #[test]
    fn every_code_survives_the_enums() {
        for number in 0..=u8::MAX {
            assert_eq!(UnreachableCode::from_number(number).number(), number);
            assert_eq!(TimeExceededCode::from_number(number).number(), number);
        }
    }
}
