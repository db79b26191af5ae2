//! A packet, as the node sees it that it is for (RFC 8200 section 4).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::Ipv6Header;
use super::extension_header::{ExtensionHeader, ExtensionHeaderKind, ExtensionHeaders, FragmentHeader};
use super::extensions::{
    Extensions, HOME_ADDRESS, ROUTER_ALERT, TUNNEL_ENCAPSULATION_LIMIT, TYPE_2, home_address, type_2_routing,
};
use super::option::{Options, PlacedOption, UnknownOptionAction};
use crate::Error;
use crate::icmpv6::ParameterProblemCode;

/// What the receiving node understands. Only a node with all of Mobile IPv6 for its role may understand the options of it (RFC
/// 6275 section 8.1); any other has to answer that it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Understood {
    /// The Home Address option: correspondents with route optimisation, and home agents.
    pub home_address: bool,
    /// The type 2 routing header: mobile nodes.
    pub type_2_routing: bool,
}

impl Understood {
    /// All that Mobile IPv6 adds.
    pub const MOBILE_IPV6: Self = Self { home_address: true, type_2_routing: true };
    /// Nothing that Mobile IPv6 adds.
    pub const PLAIN_IPV6: Self = Self { home_address: false, type_2_routing: false };
}

/// Why a node does not take a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum PacketError {
    /// It is no packet, or what is in it breaks a rule: it is silently discarded.
    #[error(transparent)]
    Malformed(#[from] Error),
    /// It has an option that asks for it to be discarded by who does not know it.
    #[error("option of unknown type {kind} at offset {offset} may not be skipped")]
    UnknownOption {
        /// Option Type.
        kind: u8,
        /// Where it starts, bytes from the start of the packet.
        offset: usize,
    },
    /// It is discarded, and its source is told with a Parameter Problem.
    #[error("parameter problem at offset {pointer}: {code}")]
    ParameterProblem {
        /// The Code of the message.
        code: ParameterProblemCode,
        /// The Pointer of the message, bytes from the start of the packet.
        pointer: u32,
    },
}

/// A packet whose extension headers have been walked through and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Its header.
    pub header: Ipv6Header,
    /// What its extension headers say.
    pub extensions: Extensions,
    /// The Fragment header. Unless it [is atomic](FragmentHeader::is_atomic), the payload is that of a fragment, for the
    /// [`Reassembler`](super::Reassembler).
    pub fragment: Option<FragmentHeader>,
    /// What the payload is: a number of [`crate::protocol`] or another.
    pub protocol: u8,
    /// Where the Next Header field stands that says so, bytes from the start of the packet: what a Parameter Problem with
    /// [`ParameterProblemCode::NextHeader`] points at.
    pub protocol_at: usize,
    /// Where the payload starts, bytes from the start of the packet.
    pub payload_offset: usize,
    /// What follows the extension headers.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet that has arrived where it is for.
    ///
    /// # Errors
    ///
    /// [`PacketError`], which says whether somebody is to be told.
    pub fn parse(bytes: &'a [u8], understood: Understood) -> Result<Self, PacketError> {
        let (header, payload) = Ipv6Header::parse(bytes)?;
        let packet = bytes.get(..usize::from(Ipv6Header::LEN) + payload.len()).unwrap_or(bytes);
        let mut reading = Reading { header, understood, extensions: Extensions::NONE, fragment: None };
        let mut headers = ExtensionHeaders::new(packet, &header);
        for extension in headers.by_ref() {
            reading.header(&extension?, packet)?;
            if reading.fragment.is_some_and(|fragment| !fragment.is_atomic()) {
                break;
            }
        }
        let payload_offset = headers.payload_offset();
        Ok(Self {
            header,
            extensions: reading.extensions,
            fragment: reading.fragment,
            protocol: headers.protocol(),
            protocol_at: headers.named_at(),
            payload_offset,
            payload: packet.get(payload_offset..).unwrap_or_default(),
        })
    }

    /// Who sent it: the home address where there is a Home Address option, else the Source Address. It belongs to the pseudo
    /// header of checksums (RFC 6275 section 11.3.1).
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.extensions.home_address.unwrap_or(self.header.source)
    }

    /// Whom it is for in the end: the home address where there is a type 2 routing header, else the Destination Address. It
    /// belongs to the pseudo header of checksums (RFC 8200 section 8.1).
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.extensions.type_2_routing.unwrap_or(self.header.destination)
    }

    /// Appends a packet. `header` need not know its Next Header and Payload Length, which are made right.
    ///
    /// # Errors
    ///
    /// [`TooLong`]; nothing has been appended then.
    pub fn emit(
        header: &Ipv6Header,
        extensions: &Extensions,
        protocol: u8,
        payload: &[u8],
        bytes: &mut Vec<u8>,
    ) -> Result<(), TooLong> {
        let len = usize::from(extensions.len()) + payload.len();
        let payload_len = u16::try_from(len).map_err(|_| TooLong { len })?;
        bytes.reserve(usize::from(Ipv6Header::LEN) + len);
        Ipv6Header { next_header: extensions.first(protocol), payload_len, ..*header }.emit(bytes);
        extensions.emit(protocol, bytes);
        bytes.extend(payload);
        Ok(())
    }
}

/// A packet would have more than 65535 bytes behind its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{len} bytes of payload are more than an IPv6 packet can have")]
pub struct TooLong {
    /// Bytes that it would have behind its header.
    pub len: usize,
}

/// What has been read of the extension headers so far.
struct Reading {
    header: Ipv6Header,
    understood: Understood,
    extensions: Extensions,
    fragment: Option<FragmentHeader>,
}

impl Reading {
    fn header(&mut self, extension: &ExtensionHeader<'_>, packet: &[u8]) -> Result<(), PacketError> {
        let ExtensionHeader { kind, offset, named_at, bytes } = *extension;
        match kind {
            ExtensionHeaderKind::HopByHopOptions if offset != usize::from(Ipv6Header::LEN) => {
                // Section 4: it stands directly behind the header, and nowhere else.
                Err(problem(ParameterProblemCode::NextHeader, named_at))
            }
            ExtensionHeaderKind::HopByHopOptions | ExtensionHeaderKind::DestinationOptions => {
                for option in Options::new(bytes) {
                    self.option(kind, &option.map_err(|error| error.shifted(offset))?, offset)?;
                }
                Ok(())
            }
            ExtensionHeaderKind::Routing => self.routing(bytes, offset),
            ExtensionHeaderKind::Fragment => {
                let fragment = FragmentHeader::decode(bytes)?;
                let len = packet.len() - offset - bytes.len();
                if fragment.more_fragments && !len.is_multiple_of(8) {
                    return Err(problem(ParameterProblemCode::ErroneousField, Ipv6Header::PAYLOAD_LENGTH));
                }
                once(&mut self.fragment, fragment, "Fragment header", offset)
            }
        }
    }

    fn routing(&mut self, bytes: &[u8], offset: usize) -> Result<(), PacketError> {
        const ROUTING_TYPE: usize = 2;
        const SEGMENTS_LEFT: usize = 3;
        if bytes.get(ROUTING_TYPE) == Some(&TYPE_2) && self.understood.type_2_routing {
            let address = type_2_routing(bytes, offset)?;
            // RFC 6275 section 6.3: the Home Address option stands behind it.
            if self.extensions.home_address.is_some() {
                return Err(misplaced("type 2 routing header", offset, "before the Home Address option"));
            }
            return once(&mut self.extensions.type_2_routing, address, "type 2 routing header", offset);
        }
        // Section 4.4: a header of a type that is not known is ignored when no segments are left.
        match bytes.get(SEGMENTS_LEFT) {
            Some(0) => Ok(()),
            _ => Err(problem(ParameterProblemCode::ErroneousField, offset + ROUTING_TYPE)),
        }
    }

    /// An option of a header that starts at `start`.
    fn option(
        &mut self,
        header: ExtensionHeaderKind,
        option: &PlacedOption<'_>,
        start: usize,
    ) -> Result<(), PacketError> {
        let PlacedOption { kind, data, .. } = *option;
        let offset = start + option.offset;
        let in_destination_options = header == ExtensionHeaderKind::DestinationOptions;
        match kind {
            HOME_ADDRESS if in_destination_options && self.understood.home_address => {
                let address = home_address(data, offset)?;
                // RFC 6275 section 6.3: before the Fragment header, behind the Routing header.
                if self.fragment.is_some() {
                    return Err(misplaced("Home Address option", offset, "before the Fragment header"));
                }
                once(&mut self.extensions.home_address, address, "Home Address option", offset)
            }
            TUNNEL_ENCAPSULATION_LIMIT if in_destination_options => {
                let &[limit] = data else {
                    return Err(wrong_length("Tunnel Encapsulation Limit Length", offset, data, "1"));
                };
                once(&mut self.extensions.encapsulation_limit, limit, "Tunnel Encapsulation Limit", offset)
            }
            ROUTER_ALERT if !in_destination_options => {
                let &[high, low] = data else {
                    return Err(wrong_length("Router Alert Length", offset, data, "2"));
                };
                let value = u16::from_be_bytes([high, low]);
                once(&mut self.extensions.router_alert, value, "Router Alert option", offset)
            }
            _ => self.unknown_option(kind, offset),
        }
    }

    fn unknown_option(&self, kind: u8, offset: usize) -> Result<(), PacketError> {
        let to_many = self.header.destination.is_multicast();
        match UnknownOptionAction::of(kind) {
            UnknownOptionAction::Skip => Ok(()),
            UnknownOptionAction::ParameterProblem => Err(problem(ParameterProblemCode::Option, offset)),
            UnknownOptionAction::ParameterProblemUnlessMulticast if !to_many => {
                Err(problem(ParameterProblemCode::Option, offset))
            }
            UnknownOptionAction::Discard | UnknownOptionAction::ParameterProblemUnlessMulticast => {
                Err(PacketError::UnknownOption { kind, offset })
            }
        }
    }
}

/// Keeps what a packet must not say twice.
fn once<T>(place: &mut Option<T>, value: T, field: &'static str, offset: usize) -> Result<(), PacketError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::Invalid { field, offset, found: 2, expected: "once in a packet" }.into()),
    }
}

/// A header or option at `offset` that had to stand elsewhere.
fn misplaced(field: &'static str, offset: usize, expected: &'static str) -> PacketError {
    Error::Invalid { field, offset, found: offset as u32, expected }.into()
}

fn wrong_length(field: &'static str, offset: usize, data: &[u8], expected: &'static str) -> PacketError {
    Error::Invalid { field, offset: offset + 1, found: data.len() as u32, expected }.into()
}

const fn problem(code: ParameterProblemCode, pointer: usize) -> PacketError {
    PacketError::ParameterProblem { code, pointer: pointer as u32 }
}

#[cfg(test)]
mod tests;
