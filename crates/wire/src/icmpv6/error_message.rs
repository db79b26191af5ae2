//! The error messages (RFC 4443 section 3).

use alloc::vec::Vec;

use super::Header;
use crate::codes::codes;
use crate::ipv6::ExtensionHeaders;

pub(super) const DESTINATION_UNREACHABLE: u8 = 1;
pub(super) const PACKET_TOO_BIG: u8 = 2;
pub(super) const TIME_EXCEEDED: u8 = 3;
pub(super) const PARAMETER_PROBLEM: u8 = 4;

codes! {
    /// Why a destination is unreachable.
    UnreachableCode {
        /// 0.
        NoRoute = 0, "no route to destination";
        /// 1.
        Prohibited = 1, "communication with destination administratively prohibited";
        /// 2.
        BeyondScope = 2, "beyond scope of source address";
        /// 3.
        Address = 3, "address unreachable";
        /// 4.
        Port = 4, "port unreachable";
        /// 5.
        SourceAddressPolicy = 5, "source address failed ingress/egress policy";
        /// 6.
        RejectRoute = 6, "reject route to destination";
    }
}

codes! {
    /// Which time was exceeded.
    TimeExceededCode {
        /// 0.
        HopLimit = 0, "hop limit exceeded in transit";
        /// 1.
        Reassembly = 1, "fragment reassembly time exceeded";
    }
}

codes! {
    /// What is wrong where the Pointer points.
    ParameterProblemCode {
        /// 0.
        ErroneousField = 0, "erroneous header field encountered";
        /// 1.
        NextHeader = 1, "unrecognized Next Header type encountered";
        /// 2.
        Option = 2, "unrecognized IPv6 option encountered";
        /// 3 (RFC 7112 section 5).
        IncompleteHeaderChain = 3, "first fragment has incomplete IPv6 header chain";
        /// 4 (RFC 8754 section 4.3.1).
        UpperLayerHeader = 4, "segment routing upper-layer header error";
        /// 6 (RFC 8883 section 3).
        ExtensionHeaderTooBig = 6, "extension header too big";
        /// 7 (RFC 8883 section 3).
        ChainTooLong = 7, "extension header chain too long";
        /// 8 (RFC 8883 section 3).
        TooManyExtensionHeaders = 8, "too many extension headers";
        /// 9 (RFC 8883 section 3).
        TooManyOptions = 9, "too many options in extension header";
        /// 10 (RFC 8883 section 3).
        OptionTooBig = 10, "option too big";
    }
}

/// Whether a message of this type is an error (RFC 4443 section 2.1).
#[must_use]
pub const fn is_error(kind: u8) -> bool {
    kind < 128
}

/// The ICMPv6 error that a packet is, if it is one whose beginning is there; none of what is in a tunnel.
#[must_use]
pub fn error_in(packet: &[u8]) -> Option<&[u8]> {
    // What a packet filter looks at, cheap enough to be asked of every packet.
    if packet.first()? >> 4 != 6 {
        return None;
    }
    let mut headers = ExtensionHeaders::of(packet).ok()?;
    let is_first = headers.by_ref().all(|header| {
        header.is_ok_and(|header| header.fragment().is_none_or(|fragment| fragment.offset == 0))
    });
    if !is_first || headers.protocol() != crate::protocol::ICMPV6 {
        return None;
    }
    let message = packet.get(headers.payload_offset()..)?;
    is_error(*message.first()?).then_some(message)
}

/// Destination Unreachable (type 1).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DestinationUnreachable {
    /// Why.
    pub code: UnreachableCode,
    /// The start of the packet it is about; [`super::QuotedPacket`] reads it.
    pub quoted: Vec<u8>,
}

/// Packet Too Big (type 2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PacketTooBig {
    /// The MTU of the next hop's link, bytes of IPv6. It can be less than 1280 (RFC 8201 section 4: then it is ignored).
    pub mtu: u32,
    /// The start of the packet it is about; [`super::QuotedPacket`] reads it.
    pub quoted: Vec<u8>,
}

/// Time Exceeded (type 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TimeExceeded {
    /// Which time.
    pub code: TimeExceededCode,
    /// The start of the packet it is about; [`super::QuotedPacket`] reads it.
    pub quoted: Vec<u8>,
}

/// Parameter Problem (type 4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParameterProblem {
    /// What is wrong.
    pub code: ParameterProblemCode,
    /// Where in the packet, bytes from its start; it may lie beyond what is quoted.
    pub pointer: u32,
    /// The start of the packet it is about; [`super::QuotedPacket`] reads it.
    pub quoted: Vec<u8>,
}

impl DestinationUnreachable {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        Self { code: UnreachableCode::from_number(header.code), quoted: without_extensions(header, body) }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header { kind: DESTINATION_UNREACHABLE, code: self.code.number(), rest: [0; 4] }
    }
}

impl PacketTooBig {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        // The Code is sent as 0 and ignored (RFC 4443 section 3.2).
        Self { mtu: u32::from_be_bytes(header.rest), quoted: body.to_vec() }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header { kind: PACKET_TOO_BIG, code: 0, rest: self.mtu.to_be_bytes() }
    }
}

impl TimeExceeded {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        Self { code: TimeExceededCode::from_number(header.code), quoted: without_extensions(header, body) }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header { kind: TIME_EXCEEDED, code: self.code.number(), rest: [0; 4] }
    }
}

impl ParameterProblem {
    pub(super) fn decode(header: Header, body: &[u8]) -> Self {
        let code = ParameterProblemCode::from_number(header.code);
        Self { code, pointer: u32::from_be_bytes(header.rest), quoted: body.to_vec() }
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.quoted);
        Header { kind: PARAMETER_PROBLEM, code: self.code.number(), rest: self.pointer.to_be_bytes() }
    }
}

/// The quoted packet without the objects that may follow it (RFC 4884 section 4.4): where there are some, the first octet of
/// the rest of the header counts the quoted 64-bit words.
fn without_extensions(header: Header, body: &[u8]) -> Vec<u8> {
    let [words, ..] = header.rest;
    let quoted = match words {
        0 => body,
        words => body.get(..usize::from(words) * 8).unwrap_or(body),
    };
    quoted.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multi_part_messages_lose_their_extension_objects() {
        let header = Header { kind: TIME_EXCEEDED, code: 0, rest: [2, 0, 0, 0] };
        assert_eq!(TimeExceeded::decode(header, &[1; 24]).quoted, [1; 16]);
        assert_eq!(TimeExceeded::decode(header, &[1; 15]).quoted, [1; 15]);
    }

    #[test]
    fn every_code_survives_the_enums() {
        for number in 0..=u8::MAX {
            assert_eq!(UnreachableCode::from_number(number).number(), number);
            assert_eq!(TimeExceededCode::from_number(number).number(), number);
            assert_eq!(ParameterProblemCode::from_number(number).number(), number);
        }
    }

    #[test]
    fn the_high_bit_of_the_type_tells_errors_from_information() {
        assert!((1..=4).all(is_error));
        assert!(![128, 134, 255].into_iter().any(is_error));
    }
}
