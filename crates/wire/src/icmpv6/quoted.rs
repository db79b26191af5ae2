//! The packet an ICMPv6 error is about.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::neighbor_discovery::REDIRECT;
use super::{HEADER_LEN, ParameterProblemCode, is_error};
use crate::icmp::QuotedPorts;
use crate::ipv6::{ExtensionHeaderKind, ExtensionHeaders, FragmentHeader, Ipv6Header, Options};
use crate::{Error, SeqNumber, protocol};

/// The start of a packet, as an ICMPv6 error quotes it: as much as fits the least MTU (RFC 4443 section 2.4 (c)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotedPacket<'a> {
    /// Its header, as the node that met the error saw it; the payload length is that of the packet, not of the quotation.
    pub header: Ipv6Header,
    /// Its real source: the home address where it has a Home Address option, else the Source Address.
    pub source: Ipv6Addr,
    /// Its destination in the end: the home address where it has a type 2 routing header, else the Destination Address.
    pub destination: Ipv6Addr,
    /// The Fragment header, where it has one.
    pub fragment: Option<FragmentHeader>,
    /// What the payload is: a number of [`crate::protocol`] or another.
    pub protocol: u8,
    /// Where the payload starts, bytes from the start of the quotation.
    pub payload_offset: usize,
    /// As much of its payload as is quoted.
    pub payload: &'a [u8],
}

impl<'a> QuotedPacket<'a> {
    /// Reads a quotation. Its extension headers are looked through, but not judged: whoever sent the error is answerable for it.
    ///
    /// # Errors
    ///
    /// Bytes that are not the start of an IPv6 packet, or end within its extension headers.
    pub fn parse(quoted: &'a [u8]) -> Result<Self, Error> {
        let (header, rest) = Ipv6Header::parse_start(quoted)?;
        let len = usize::from(Ipv6Header::LEN) + rest.len().min(usize::from(header.payload_len));
        let packet = quoted.get(..len).unwrap_or(quoted);
        let mut this = Self {
            header,
            source: header.source,
            destination: header.destination,
            fragment: None,
            protocol: header.next_header,
            payload_offset: usize::from(Ipv6Header::LEN),
            payload: &[],
        };
        let mut headers = ExtensionHeaders::new(packet, &header);
        for extension in headers.by_ref() {
            let extension = extension?;
            match extension.kind {
                ExtensionHeaderKind::DestinationOptions => {
                    let home_address =
                        Options::new(extension.bytes).flatten().find_map(|option| option.home_address());
                    this.source = home_address.unwrap_or(this.source);
                }
                ExtensionHeaderKind::Routing => {
                    this.destination = extension.type_2_home_address().unwrap_or(this.destination);
                }
                ExtensionHeaderKind::Fragment => this.fragment = extension.fragment(),
                ExtensionHeaderKind::HopByHopOptions => {}
            }
        }
        this.protocol = headers.protocol();
        this.payload_offset = headers.payload_offset();
        this.payload = packet.get(this.payload_offset..).unwrap_or_default();
        Ok(this)
    }

    /// The ports of a TCP segment or UDP datagram; `None` of other protocols, of later fragments and where too little is quoted.
    #[must_use]
    pub fn ports(&self) -> Option<QuotedPorts> {
        if self.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return None;
        }
        QuotedPorts::of(self.protocol, self.payload)
    }
}

/// What an ICMPv6 error about `packet` quotes: as much of it as keeps the error, with its own headers, within the least MTU
/// (RFC 4443 section 2.4 (c)).
#[must_use]
pub fn quote(packet: &[u8]) -> Vec<u8> {
    const MAX_QUOTED: usize = Ipv6Header::MIN_MTU as usize - Ipv6Header::LEN as usize - HEADER_LEN;
    packet.get(..MAX_QUOTED).unwrap_or(packet).to_vec()
}

/// The least that the receiver of an ICMPv6 error needs of a TCP segment (RFC 6069 section 3), for whoever has nothing but what is in it:
/// the header of its packet, the ports, source first, and the sequence number. Who has the packet [quotes](quote) as much of it as fits.
#[must_use]
pub fn quote_segment(
    header: &Ipv6Header,
    (source_port, destination_port): (u16, u16),
    seq: SeqNumber,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::from(Ipv6Header::LEN) + 8);
    header.emit(&mut bytes);
    bytes.extend(source_port.to_be_bytes());
    bytes.extend(destination_port.to_be_bytes());
    bytes.extend(seq.0.to_be_bytes());
    bytes
}

/// Whether an ICMPv6 error may be sent about `packet` (RFC 4443 section 2.4 (e)): not about an ICMPv6 error or a redirect, nor to
/// a source that is not a single node; and about a packet to many only Packet Too Big, and the Parameter Problem about an option
/// that asks for it, which `even_to_many` says. Of link-layer multicasts and anycast sources the caller has to know, and of the
/// rate (section 2.4 (f)).
#[must_use]
pub fn error_is_allowed(packet: &[u8], even_to_many: bool) -> bool {
    let Ok(quoted) = QuotedPacket::parse(packet) else {
        // What its chain of headers ends in is not to be seen; its addresses are.
        return Ipv6Header::parse_start(packet)
            .is_ok_and(|(header, _)| addresses_allow(&header, even_to_many));
    };
    let is_first = quoted.fragment.is_none_or(|fragment| fragment.offset == 0);
    let is_icmp_error = is_first
        && quoted.protocol == protocol::ICMPV6
        && quoted.payload.first().is_none_or(|&kind| is_error(kind) || kind == REDIRECT);
    addresses_allow(&quoted.header, even_to_many) && !is_icmp_error
}

fn addresses_allow(header: &Ipv6Header, even_to_many: bool) -> bool {
    let from_one =
        !(header.source.is_unspecified() || header.source.is_multicast() || header.source.is_loopback());
    from_one && (even_to_many || !header.destination.is_multicast())
}

impl ParameterProblemCode {
    /// Whether an error with this code is sent about packets to multicast addresses as well: code 2, as far as the type of the
    /// option says so (RFC 4443 section 2.4 (e.3)).
    #[must_use]
    pub const fn even_to_many(self) -> bool {
        matches!(self, Self::Option)
    }
}
