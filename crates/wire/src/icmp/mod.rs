//! ICMP for IPv4 (RFC 792), as far as mobility and path MTU discovery need it.
//!
//! [`IcmpMessage`] is a plain value of every message. Router discovery (RFC 1256) carries the
//! advertisements of mobility agents (RFC 5944 section 2.1). What careof does not interpret is kept whole
//! as [`OtherMessage`].

mod advertisement_extension;
mod error_message;
mod quoted;
mod router_discovery;

use alloc::vec::Vec;

use etherparse::checksum::Sum16BitWords;
use etherparse::icmpv4::{
    TYPE_DEST_UNREACH, TYPE_ECHO_REPLY, TYPE_ECHO_REQUEST, TYPE_ROUTER_ADVERTISEMENT,
    TYPE_ROUTER_SOLICITATION, TYPE_TIME_EXCEEDED,
};
use etherparse::{Icmpv4Header, Icmpv4Slice, Icmpv4Type};

pub use advertisement_extension::{AdvertisementExtension, AgentFlags, MobilityAgentAdvertisement};
pub use error_message::{DestinationUnreachable, TimeExceeded, TimeExceededCode, UnreachableCode};
pub use error_message::{error_in, is_error};
pub use quoted::{QuotedDatagram, QuotedPorts, error_is_allowed, quote, quote_segment};
pub use router_discovery::{RouterAddress, RouterAdvertisement, RouterSolicitation};

use crate::{Error, checksum};

const CHECKSUM: usize = 2;
const HEADER_LEN: usize = 8;

/// Echo or Echo Reply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Echo {
    /// Tells conversations apart.
    pub identifier: u16,
    /// Tells the messages of a conversation apart.
    pub sequence: u16,
    /// Comes back as it was sent.
    pub data: Vec<u8>,
}

/// A message careof does not interpret.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtherMessage {
    /// The Type.
    pub kind: u8,
    /// The Code.
    pub code: u8,
    /// Bytes 4 to 7, whose meaning depends on the type.
    pub rest_of_header: [u8; 4],
    /// What follows.
    pub body: Vec<u8>,
}

/// An ICMP message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum IcmpMessage {
    /// Type 0.
    EchoReply(Echo),
    /// Type 3.
    DestinationUnreachable(DestinationUnreachable),
    /// Type 8.
    EchoRequest(Echo),
    /// Type 9.
    RouterAdvertisement(RouterAdvertisement),
    /// Type 10.
    RouterSolicitation(RouterSolicitation),
    /// Type 11.
    TimeExceeded(TimeExceeded),
    /// Any other type.
    Other(OtherMessage),
}

/// The header every message has: what stands in it beside the checksum.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub(crate) kind: u8,
    pub(crate) code: u8,
    pub(crate) rest: [u8; 4],
}

impl Header {
    /// Two 16-bit fields, as most messages have them.
    pub(crate) fn halves(kind: u8, code: u8, first: u16, second: u16) -> Self {
        let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
        Self { kind, code, rest: [a, b, c, d] }
    }

    /// The two 16-bit fields.
    pub(crate) fn as_halves(self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// Refuses a Code other than 0.
    pub(crate) fn expect_code_0(self, field: &'static str) -> Result<(), Error> {
        if self.code == 0 {
            return Ok(());
        }
        Err(Error::Invalid { field, offset: 1, found: u32::from(self.code), expected: "0" })
    }
}

impl IcmpMessage {
    /// Reads the payload of an IP datagram with protocol [`crate::protocol::ICMP`], to its end.
    ///
    /// # Errors
    ///
    /// A wrong checksum, a message shorter than its type requires, a Code its type does not have, and in a
    /// router advertisement an [`Error::UnknownExtension`] that may not be skipped.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let slice = Icmpv4Slice::from_slice(bytes).map_err(|error| Error::Truncated {
            what: "ICMP message",
            offset: 0,
            needed: error.required_len,
            found: bytes.len(),
        })?;
        checksum::verify(&Sum16BitWords::new().add_slice(bytes), "ICMP", CHECKSUM, slice.checksum())?;
        let header = Header { kind: slice.type_u8(), code: slice.code_u8(), rest: slice.bytes5to8() };
        let body = bytes.get(HEADER_LEN..).unwrap_or_default();
        Ok(match header.kind {
            TYPE_ECHO_REPLY => Self::EchoReply(Echo::decode(header, body)?),
            TYPE_ECHO_REQUEST => Self::EchoRequest(Echo::decode(header, body)?),
            TYPE_DEST_UNREACH => Self::DestinationUnreachable(DestinationUnreachable::decode(header, body)),
            TYPE_TIME_EXCEEDED => Self::TimeExceeded(TimeExceeded::decode(header, body)),
            TYPE_ROUTER_ADVERTISEMENT => {
                Self::RouterAdvertisement(RouterAdvertisement::decode(header, body)?)
            }
            TYPE_ROUTER_SOLICITATION => {
                header.expect_code_0("Router Solicitation Code")?;
                Self::RouterSolicitation(RouterSolicitation)
            }
            kind => Self::Other(OtherMessage {
                kind,
                code: header.code,
                rest_of_header: header.rest,
                body: body.to_vec(),
            }),
        })
    }

    /// Appends the message, as the payload of an IP datagram.
    pub fn emit(&self, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend([0; HEADER_LEN]);
        let header = match self {
            Self::EchoReply(echo) => echo.encode(TYPE_ECHO_REPLY, bytes),
            Self::EchoRequest(echo) => echo.encode(TYPE_ECHO_REQUEST, bytes),
            Self::DestinationUnreachable(message) => message.encode(bytes),
            Self::TimeExceeded(message) => message.encode(bytes),
            Self::RouterAdvertisement(message) => message.encode(bytes),
            Self::RouterSolicitation(RouterSolicitation) => {
                Header { kind: TYPE_ROUTER_SOLICITATION, code: 0, rest: [0; 4] }
            }
            Self::Other(message) => {
                bytes.extend(&message.body);
                Header { kind: message.kind, code: message.code, rest: message.rest_of_header }
            }
        };
        let (head, body) = bytes[start..].split_at_mut(HEADER_LEN);
        let Header { kind: type_u8, code: code_u8, rest: bytes5to8 } = header;
        let icmp_type = Icmpv4Type::Unknown { type_u8, code_u8, bytes5to8 };
        head.copy_from_slice(&Icmpv4Header::with_checksum(icmp_type, body).to_bytes());
    }
}

impl Echo {
    pub(crate) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("Echo Code")?;
        let (identifier, sequence) = header.as_halves();
        Ok(Self { identifier, sequence, data: body.to_vec() })
    }

    pub(crate) fn encode(&self, kind: u8, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(&self.data);
        Header::halves(kind, 0, self.identifier, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(message: &IcmpMessage) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        bytes
    }

    #[test]
    fn an_echo_request_has_the_layout_of_the_rfc() {
        let message =
            IcmpMessage::EchoRequest(Echo { identifier: 0x0102, sequence: 3, data: alloc::vec![0xff, 0xfe] });
        let bytes = emitted(&message);
        // 0x0800 + 0x0102 + 0x0003 + 0xfffe = 0x1_0903, folded 0x0904.
        assert_eq!(bytes, [8, 0, 0xf6, 0xfb, 1, 2, 0, 3, 0xff, 0xfe]);
        assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let mut bytes = emitted(&IcmpMessage::RouterSolicitation(RouterSolicitation));
        assert_eq!(bytes, [10, 0, 0xf5, 0xff, 0, 0, 0, 0]);
        bytes[3] = 0xfe;
        assert_eq!(
            IcmpMessage::parse(&bytes),
            Err(Error::Checksum { what: "ICMP", offset: 2, found: 0xf5fe, expected: 0xf5ff })
        );
    }

    #[test]
    fn a_message_of_another_type_is_kept_whole() {
        let message = IcmpMessage::Other(OtherMessage {
            kind: 12,
            code: 0,
            rest_of_header: [20, 0, 0, 0],
            body: alloc::vec![1, 2, 3],
        });
        assert_eq!(IcmpMessage::parse(&emitted(&message)), Ok(message));
    }

    #[test]
    fn emitting_appends() {
        let mut bytes = alloc::vec![1, 2, 3];
        IcmpMessage::RouterSolicitation(RouterSolicitation).emit(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 10, 0, 0xf5, 0xff, 0, 0, 0, 0]);
    }
}
