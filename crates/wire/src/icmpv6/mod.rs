//! ICMP for IPv6 (RFC 4443): errors, echo, neighbor discovery (RFC 4861), what Mobile IPv6 adds (RFC 6275 sections 6.5 to 6.8
//! and 7), and what fast handovers add (RFC 5568 sections 6.1, 6.3 and 6.4).
//!
//! [`Icmpv6Message`] is a plain value of every message. [`Icmpv6Message::parse`] checks what the bytes can tell; whether a neighbor
//! discovery message is valid depends on its IP header too, and [`Icmpv6Message::check`] says so. What careof does not interpret is
//! kept whole as [`OtherMessage`].

mod error_message;
mod fast_handover;
mod home_agent_discovery;
mod map_option;
mod multicast_listener;
mod neighbor_discovery;
mod option;
mod quoted;
mod units;

use alloc::vec::Vec;
use core::net::Ipv6Addr;

pub use crate::fast_handover::{AddressRole, HandoverAddress, HandoverLinkLayerAddress, LinkLayerRole};
use crate::fixed::Fixed;
pub use crate::icmp::{Echo, OtherMessage};
use crate::{Error, checksum, protocol};

pub use error_message::{
    DestinationUnreachable, PacketTooBig, ParameterProblem, ParameterProblemCode, TimeExceeded,
    TimeExceededCode, UnreachableCode, error_in, is_error,
};
pub use fast_handover::{NaackStatus, PrRtAdv, PrRtAdvCode, RtSolPr};
pub use home_agent_discovery::{
    HomeAgentAddressDiscoveryReply, HomeAgentAddressDiscoveryRequest, MobilePrefixAdvertisement,
    MobilePrefixSolicitation,
};
pub use map_option::MapOption;
pub use multicast_listener::{
    MulticastAddressRecord, MulticastListener, MulticastListenerReport, RecordType,
};
pub use neighbor_discovery::{
    HOP_LIMIT, IpFields, NeighborAdvertisement, NeighborSolicitation, NotValid, Redirect,
    RouterAdvertisement, RouterPreference, RouterSolicitation, source_link_layer_address,
    target_link_layer_address,
};
pub use option::{HomeAgentInformation, Naack, NdOption, Nonce, PrefixInformation, UnknownOption};
pub use quoted::{QuotedPacket, error_is_allowed, quote, quote_segment};
pub use units::{LinkLayerAddress, Milliseconds, PrefixLifetime};

pub(crate) use crate::icmp::Header;

const CHECKSUM: usize = 2;
const HEADER_LEN: usize = 8;

const ECHO_REQUEST: u8 = 128;
const ECHO_REPLY: u8 = 129;

/// An ICMPv6 message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Icmpv6Message {
    /// Type 1.
    DestinationUnreachable(DestinationUnreachable),
    /// Type 2.
    PacketTooBig(PacketTooBig),
    /// Type 3.
    TimeExceeded(TimeExceeded),
    /// Type 4.
    ParameterProblem(ParameterProblem),
    /// Type 128.
    EchoRequest(Echo),
    /// Type 129.
    EchoReply(Echo),
    /// Type 131: MLDv1.
    MulticastListenerReportV1(MulticastListener),
    /// Type 132: MLDv1.
    MulticastListenerDone(MulticastListener),
    /// Type 133.
    RouterSolicitation(RouterSolicitation),
    /// Type 134.
    RouterAdvertisement(RouterAdvertisement),
    /// Type 135.
    NeighborSolicitation(NeighborSolicitation),
    /// Type 136.
    NeighborAdvertisement(NeighborAdvertisement),
    /// Type 137.
    Redirect(Redirect),
    /// Type 143: MLDv2.
    MulticastListenerReport(MulticastListenerReport),
    /// Type 144.
    HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest),
    /// Type 145.
    HomeAgentAddressDiscoveryReply(HomeAgentAddressDiscoveryReply),
    /// Type 146.
    MobilePrefixSolicitation(MobilePrefixSolicitation),
    /// Type 147.
    MobilePrefixAdvertisement(MobilePrefixAdvertisement),
    /// Type 154, subtype 2 (RFC 5568).
    RtSolPr(RtSolPr),
    /// Type 154, subtype 3 (RFC 5568).
    PrRtAdv(PrRtAdv),
    /// Any other type.
    Other(OtherMessage),
}

impl Icmpv6Message {
    /// Reads the payload of an IPv6 packet with protocol [`crate::protocol::ICMPV6`], to its end. `source` and `destination` are
    /// those of the pseudo header: the home address where the packet has a Home Address option (RFC 6275 section 6.3), the final
    /// destination where it has a routing header; [`Packet::source`](crate::ipv6::Packet::source) and
    /// [`Packet::destination`](crate::ipv6::Packet::destination) say which.
    ///
    /// # Errors
    ///
    /// A wrong checksum, a message shorter than its type requires, a Code its type does not have, an option of length 0, of a
    /// length that its type does not have or beyond the end, a multicast target.
    pub fn parse(source: Ipv6Addr, destination: Ipv6Addr, bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, body) = Fixed::<HEADER_LEN>::split(bytes, "ICMPv6 message")?;
        let sum = checksum::pseudo_header(source, destination, protocol::ICMPV6, bytes.len());
        checksum::verify(&sum.add_slice(bytes), "ICMPv6", CHECKSUM, fixed.u16::<CHECKSUM>())?;
        let header = Header { kind: fixed.u8::<0>(), code: fixed.u8::<1>(), rest: fixed.array::<4, 4>() };
        Ok(match header.kind {
            error_message::DESTINATION_UNREACHABLE => {
                Self::DestinationUnreachable(DestinationUnreachable::decode(header, body))
            }
            error_message::PACKET_TOO_BIG => Self::PacketTooBig(PacketTooBig::decode(header, body)),
            error_message::TIME_EXCEEDED => Self::TimeExceeded(TimeExceeded::decode(header, body)),
            error_message::PARAMETER_PROBLEM => {
                Self::ParameterProblem(ParameterProblem::decode(header, body))
            }
            ECHO_REQUEST => Self::EchoRequest(Echo::decode(header, body)?),
            ECHO_REPLY => Self::EchoReply(Echo::decode(header, body)?),
            multicast_listener::REPORT_V1 => {
                Self::MulticastListenerReportV1(MulticastListener::decode(body)?)
            }
            multicast_listener::DONE => Self::MulticastListenerDone(MulticastListener::decode(body)?),
            multicast_listener::REPORT_V2 => {
                Self::MulticastListenerReport(MulticastListenerReport::decode(header, body)?)
            }
            neighbor_discovery::ROUTER_SOLICITATION => {
                Self::RouterSolicitation(RouterSolicitation::decode(header, body)?)
            }
            neighbor_discovery::ROUTER_ADVERTISEMENT => {
                Self::RouterAdvertisement(RouterAdvertisement::decode(header, body)?)
            }
            neighbor_discovery::NEIGHBOR_SOLICITATION => {
                Self::NeighborSolicitation(NeighborSolicitation::decode(header, body)?)
            }
            neighbor_discovery::NEIGHBOR_ADVERTISEMENT => {
                Self::NeighborAdvertisement(NeighborAdvertisement::decode(header, body)?)
            }
            neighbor_discovery::REDIRECT => Self::Redirect(Redirect::decode(header, body)?),
            home_agent_discovery::HOME_AGENT_ADDRESS_DISCOVERY_REQUEST => {
                Self::HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest::decode(header)?)
            }
            home_agent_discovery::HOME_AGENT_ADDRESS_DISCOVERY_REPLY => {
                Self::HomeAgentAddressDiscoveryReply(HomeAgentAddressDiscoveryReply::decode(header, body)?)
            }
            home_agent_discovery::MOBILE_PREFIX_SOLICITATION => {
                Self::MobilePrefixSolicitation(MobilePrefixSolicitation::decode(header, body)?)
            }
            home_agent_discovery::MOBILE_PREFIX_ADVERTISEMENT => {
                Self::MobilePrefixAdvertisement(MobilePrefixAdvertisement::decode(header, body)?)
            }
            fast_handover::FMIPV6 if header.rest[0] == fast_handover::RT_SOL_PR => {
                Self::RtSolPr(RtSolPr::decode(header, body)?)
            }
            fast_handover::FMIPV6 if header.rest[0] == fast_handover::PR_RT_ADV => {
                Self::PrRtAdv(PrRtAdv::decode(header, body)?)
            }
            kind => Self::Other(OtherMessage {
                kind,
                code: header.code,
                rest_of_header: header.rest,
                body: body.to_vec(),
            }),
        })
    }

    /// Appends the message, as the payload of an IPv6 packet. `source` and `destination` are those of the pseudo header, as for
    /// [`parse`](Self::parse).
    pub fn emit(&self, source: Ipv6Addr, destination: Ipv6Addr, bytes: &mut Vec<u8>) {
        let start = bytes.len();
        bytes.extend([0; HEADER_LEN]);
        let header = match self {
            Self::DestinationUnreachable(message) => message.encode(bytes),
            Self::PacketTooBig(message) => message.encode(bytes),
            Self::TimeExceeded(message) => message.encode(bytes),
            Self::ParameterProblem(message) => message.encode(bytes),
            Self::EchoRequest(echo) => echo.encode(ECHO_REQUEST, bytes),
            Self::EchoReply(echo) => echo.encode(ECHO_REPLY, bytes),
            Self::MulticastListenerReportV1(message) => message.encode(multicast_listener::REPORT_V1, bytes),
            Self::MulticastListenerDone(message) => message.encode(multicast_listener::DONE, bytes),
            Self::RouterSolicitation(message) => message.encode(bytes),
            Self::RouterAdvertisement(message) => message.encode(bytes),
            Self::NeighborSolicitation(message) => message.encode(bytes),
            Self::NeighborAdvertisement(message) => message.encode(bytes),
            Self::Redirect(message) => message.encode(bytes),
            Self::MulticastListenerReport(message) => message.encode(bytes),
            Self::HomeAgentAddressDiscoveryRequest(message) => message.encode(),
            Self::HomeAgentAddressDiscoveryReply(message) => message.encode(bytes),
            Self::MobilePrefixSolicitation(message) => message.encode(bytes),
            Self::MobilePrefixAdvertisement(message) => message.encode(bytes),
            Self::RtSolPr(message) => message.encode(bytes),
            Self::PrRtAdv(message) => message.encode(bytes),
            Self::Other(message) => {
                bytes.extend(&message.body);
                Header { kind: message.kind, code: message.code, rest: message.rest_of_header }
            }
        };
        let Some(message) = bytes.get_mut(start..) else { return };
        let mut head = Fixed::<HEADER_LEN>::ZERO;
        head.put::<0, 2>([header.kind, header.code]);
        head.put::<4, 4>(header.rest);
        // The field is still zero in what is summed.
        let len = message.len();
        let body = message.get(HEADER_LEN..).unwrap_or_default();
        let sum = checksum::pseudo_header(source, destination, protocol::ICMPV6, len);
        let sum = checksum::finish(&sum.add_slice(head.bytes()).add_slice(body));
        head.put::<CHECKSUM, 2>(sum.to_be_bytes());
        if let Some(place) = message.get_mut(..HEADER_LEN) {
            place.copy_from_slice(head.bytes());
        }
    }

    /// Whether a node may act on the message, as far as its IP header decides that: neighbor discovery must come from this link
    /// (RFC 4861 sections 6.1, 7.1 and 8.1; RFC 5568 section 6.1). Other messages may always be acted on.
    ///
    /// # Errors
    ///
    /// [`NotValid`]: the message is silently discarded.
    pub fn check(&self, ip: &IpFields) -> Result<(), NotValid> {
        match self {
            Self::RouterSolicitation(message) => message.check(ip),
            Self::RouterAdvertisement(message) => message.check(ip),
            Self::NeighborSolicitation(message) => message.check(ip),
            Self::NeighborAdvertisement(message) => message.check(ip),
            Self::Redirect(message) => message.check(ip),
            Self::RtSolPr(message) => message.check(ip),
            Self::PrRtAdv(message) => message.check(ip),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
