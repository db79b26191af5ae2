//! IPv6 and IPv4 within IPv6 (RFC 2473).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::Origin;
use super::front::Short;
use crate::icmpv6::ParameterProblemCode;
use crate::ipv4::{Ipv4Header, Received};
use crate::ipv6::{Extensions, Ipv6Header, Packet, PacketError, Understood};
use crate::{Error, protocol};

const HOP_LIMIT: usize = 7;

/// What travels in a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inner {
    /// A packet of IPv4 (Next Header 4).
    Ipv4,
    /// A packet of IPv6 (Next Header 41).
    Ipv6,
}

impl Inner {
    /// The Next Header value in front of it.
    #[must_use]
    pub const fn protocol(self) -> u8 {
        match self {
            Self::Ipv4 => protocol::IP_IN_IP,
            Self::Ipv6 => protocol::IPV6,
        }
    }
}

/// A tunnel whose outer header is IPv6, as its entry sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ipv6Tunnel {
    /// The encapsulator's address.
    pub entry: Ipv6Addr,
    /// The decapsulator's address.
    pub exit: Ipv6Addr,
    /// The hop limit that brings a packet to the exit.
    pub hop_limit: u8,
    /// How many more times a packet may be encapsulated on its way through the tunnel (RFC 2473 section 6.6 recommends 4); `None`
    /// limits nothing, unless the packet brings a limit of its own.
    pub encapsulation_limit: Option<u8>,
}

/// Why a packet must not enter a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Ipv6EncapsulationError {
    /// It is no packet.
    #[error(transparent)]
    Malformed(#[from] Error),
    /// Its hop limit or time to live is used up. Where it was forwarded, its sender is told with Time Exceeded.
    #[error("the hop limit is used up")]
    HopLimitExpired,
    /// It comes back to the entry that is its source: it goes round in circles.
    #[error("the source is the entry of the tunnel: the packet is going round in circles")]
    SourceIsEntry,
    /// It may not be encapsulated any more. Its source is told with a Parameter Problem that points at the Tunnel Encapsulation
    /// Limit (RFC 2473 section 4.1.1 (b)).
    #[error("the tunnel encapsulation limit at offset {pointer} is used up")]
    EncapsulationLimit {
        /// The Pointer of that message, bytes from the start of the packet.
        pointer: u32,
    },
    /// It would be longer than a packet can be.
    #[error("{len} bytes of payload are more than an IPv6 packet can have")]
    TooLong {
        /// Bytes it would have behind the outer header.
        len: usize,
    },
}

impl Ipv6EncapsulationError {
    /// The Code and Pointer of the Parameter Problem that the packet's source is sent, where it is sent one.
    #[must_use]
    pub const fn parameter_problem(self) -> Option<(ParameterProblemCode, u32)> {
        match self {
            Self::EncapsulationLimit { pointer } => Some((ParameterProblemCode::ErroneousField, pointer)),
            _ => None,
        }
    }
}

/// What becomes of a packet at the entry of a tunnel, by its size (RFC 2473 section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Admission {
    /// It fits.
    Whole,
    /// It is encapsulated, and what results is fragmented at the entry.
    Fragmented,
    /// It is dropped, and its source told that the MTU is this, bytes: by Packet Too Big, or of IPv4 by Fragmentation Needed.
    TooBig {
        /// The MTU to tell.
        mtu: u16,
    },
}

/// The bytes that take the place of a packet's header when it enters a tunnel: the outer headers, and the inner header with its
/// hop limit as it is now. The packet's payload follows as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Front {
    bytes: Short<{ Self::MAX_LEN }>,
    header_len: usize,
}

impl Ipv6Front {
    /// The most bytes a front has: the outer header, the Tunnel Encapsulation Limit and an IPv4 header with all options.
    pub const MAX_LEN: usize = Ipv6Header::LEN as usize + Extensions::ENCAPSULATION_LIMIT_LEN as usize + 60;

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Bytes of the header that it replaces: where the payload starts in the original packet.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        self.header_len
    }
}

/// A packet that enters a tunnel, as far as tunnels look at it.
struct Entering<'a> {
    inner: Inner,
    traffic_class: u8,
    /// Its header, with the hop limit that it has in the tunnel.
    header: Short<60>,
    payload: &'a [u8],
    /// Of IPv6: its Tunnel Encapsulation Limit, and where that stands.
    limit: Option<(u8, u32)>,
}

impl<'a> Entering<'a> {
    fn parse(
        tunnel: &Ipv6Tunnel,
        datagram: &'a [u8],
        origin: Origin,
    ) -> Result<Self, Ipv6EncapsulationError> {
        if datagram.first().is_some_and(|first| first >> 4 == 4) {
            Self::parse_ipv4(datagram, origin)
        } else {
            Self::parse_ipv6(tunnel, datagram, origin)
        }
    }

    fn parse_ipv6(
        tunnel: &Ipv6Tunnel,
        datagram: &'a [u8],
        origin: Origin,
    ) -> Result<Self, Ipv6EncapsulationError> {
        let (header, payload) = Ipv6Header::parse(datagram)?;
        if header.source == tunnel.entry && origin == Origin::Forwarded {
            return Err(Ipv6EncapsulationError::SourceIsEntry);
        }
        let hop_limit = on_entry(header.hop_limit, origin)?;
        let limit = encapsulation_limit(datagram)?;
        let mut short = Short::EMPTY;
        short.extend(Ipv6Header { hop_limit, ..header }.to_bytes());
        let traffic_class = header.traffic_class;
        Ok(Self { inner: Inner::Ipv6, traffic_class, header: short, payload, limit })
    }

    fn parse_ipv4(datagram: &'a [u8], origin: Origin) -> Result<Self, Ipv6EncapsulationError> {
        let (received, payload) = Received::parse_whole(datagram)?;
        let mut header = received.to_etherparse();
        header.time_to_live = on_entry(received.header.ttl, origin)?;
        header.header_checksum = header.calc_header_checksum();
        let mut short = Short::EMPTY;
        short.extend(header.to_bytes());
        let traffic_class = received.header.tos;
        Ok(Self { inner: Inner::Ipv4, traffic_class, header: short, payload, limit: None })
    }
}

/// The hop limit in the tunnel, which is one hop of a forwarded packet's way (RFC 2473 section 3.1).
fn on_entry(hop_limit: u8, origin: Origin) -> Result<u8, Ipv6EncapsulationError> {
    let left = match origin {
        Origin::Forwarded => hop_limit.saturating_sub(1),
        Origin::Local => hop_limit,
    };
    if left == 0 { Err(Ipv6EncapsulationError::HopLimitExpired) } else { Ok(left) }
}

/// The Tunnel Encapsulation Limit of a packet, and where its value stands (RFC 2473 section 4.1.1): it is looked for in front of
/// the next packet or upper-layer header. What else is in the extension headers is not the entry's business.
fn encapsulation_limit(packet: &[u8]) -> Result<Option<(u8, u32)>, Error> {
    for extension in crate::ipv6::ExtensionHeaders::of(packet)? {
        // A packet that somebody else has to judge passes; it has no limit that could be read.
        let Ok(extension) = extension else { return Ok(None) };
        if let Some(found) = extension.encapsulation_limit() {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

impl Ipv6Tunnel {
    /// Bytes the tunnel adds to a packet that brings no encapsulation limit.
    #[must_use]
    pub const fn overhead(&self) -> u16 {
        match self.encapsulation_limit {
            Some(_) => Ipv6Header::LEN + Extensions::ENCAPSULATION_LIMIT_LEN,
            None => Ipv6Header::LEN,
        }
    }

    /// The longest packet that a path with this MTU takes through the tunnel in one piece, bytes: the tunnel MTU of RFC 2473
    /// section 6.7. It can be less than 1280.
    #[must_use]
    pub const fn mtu(&self, path_mtu: u16) -> u16 {
        path_mtu.saturating_sub(self.overhead())
    }

    /// What becomes of `datagram`, of which at least the header is there and which has `len` bytes, on a path with this MTU (RFC
    /// 2473 section 7). No source of IPv6 is told of less than 1280 bytes: what is no longer than that is fragmented behind the
    /// outer header.
    #[must_use]
    pub fn admission(&self, datagram: &[u8], len: usize, path_mtu: u16) -> Admission {
        let mtu = self.mtu(path_mtu);
        if len <= usize::from(mtu) {
            return Admission::Whole;
        }
        const DONT_FRAGMENT: u8 = 0x40;
        const FLAGS: usize = 6;
        if datagram.first().is_some_and(|first| first >> 4 == 4) {
            let dont_fragment = datagram.get(FLAGS).is_some_and(|flags| flags & DONT_FRAGMENT != 0);
            return if dont_fragment { Admission::TooBig { mtu } } else { Admission::Fragmented };
        }
        if len > usize::from(Ipv6Header::MIN_MTU) {
            return Admission::TooBig { mtu: mtu.max(Ipv6Header::MIN_MTU) };
        }
        Admission::Fragmented
    }

    /// Wraps `datagram`, of IPv6 or IPv4. The traffic class goes from the inner header to the outer; the flow label does not. An
    /// encapsulation limit in the packet goes on counting in the tunnel.
    ///
    /// # Errors
    ///
    /// [`Ipv6EncapsulationError`]: the packet is dropped.
    pub fn encapsulate(&self, datagram: &[u8], origin: Origin) -> Result<Vec<u8>, Ipv6EncapsulationError> {
        let (front, payload) = self.front_and_payload(datagram, origin)?;
        let mut bytes = Vec::with_capacity(front.bytes().len() + payload.len());
        bytes.extend(front.bytes());
        bytes.extend(payload);
        Ok(bytes)
    }

    /// What has to stand in front of the payload of `datagram` instead of its header, to wrap it as
    /// [`encapsulate`](Self::encapsulate) does but without a copy.
    ///
    /// # Errors
    ///
    /// [`Ipv6EncapsulationError`]: the packet is dropped.
    pub fn front(&self, datagram: &[u8], origin: Origin) -> Result<Ipv6Front, Ipv6EncapsulationError> {
        self.front_and_payload(datagram, origin).map(|(front, _)| front)
    }

    fn front_and_payload<'a>(
        &self,
        datagram: &'a [u8],
        origin: Origin,
    ) -> Result<(Ipv6Front, &'a [u8]), Ipv6EncapsulationError> {
        let Entering { inner, traffic_class, header, payload, limit } =
            Entering::parse(self, datagram, origin)?;
        let limit = match limit {
            Some((0, pointer)) => return Err(Ipv6EncapsulationError::EncapsulationLimit { pointer }),
            Some((limit, _)) => Some(limit - 1),
            None => self.encapsulation_limit,
        };
        let header_len = header.bytes().len();
        let limit_len = if limit.is_some() { usize::from(Extensions::ENCAPSULATION_LIMIT_LEN) } else { 0 };
        let len = limit_len + header_len + payload.len();
        let Ok(payload_len) = u16::try_from(len) else { return Err(Ipv6EncapsulationError::TooLong { len }) };
        let extensions = Extensions { encapsulation_limit: limit, ..Extensions::NONE };
        let outer = Ipv6Header {
            source: self.entry,
            destination: self.exit,
            next_header: extensions.first(inner.protocol()),
            hop_limit: self.hop_limit,
            traffic_class,
            flow_label: 0,
            payload_len,
        };
        let mut bytes = Short::EMPTY;
        bytes.extend(outer.to_bytes());
        if let Some(limit) = limit {
            // The header of RFC 2473 section 5.1.
            bytes.extend([inner.protocol(), 0, 4, 1, limit, 1, 1, 0]);
        }
        bytes.extend(header.bytes().iter().copied());
        Ok((Ipv6Front { bytes, header_len }, payload))
    }
}

/// A packet that came out of a tunnel whose outer header is IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecapsulatedFromIpv6<'a> {
    /// The header it travelled the tunnel with; its source is the entry and its destination the exit.
    pub outer: Ipv6Header,
    /// What the outer extension headers say.
    pub extensions: Extensions,
    /// Which version of IP the packet is of.
    pub inner: Inner,
    /// The packet, its hop limit as it was in the tunnel.
    pub datagram: &'a [u8],
}

/// Unwraps `packet`, whatever tunnel it comes from. Whether that tunnel is one to take packets from is the caller's to judge, by
/// the outer header; so is the traffic class, which stays what it was inside (ECN marks of the tunnel are lost, as RFC 6040 would
/// not have it).
///
/// # Errors
///
/// Another Next Header than 4 or 41, a fragment (to be reassembled first), anything malformed outside, an inner packet that is
/// cut short or has a hop limit of 0.
pub fn decapsulate_ipv6(packet: &[u8]) -> Result<DecapsulatedFromIpv6<'_>, PacketError> {
    let packet = Packet::parse(packet, Understood::MOBILE_IPV6)?;
    let at = packet.payload_offset;
    if packet.fragment.is_some_and(|fragment| !fragment.is_atomic()) {
        let expected = "that of a whole packet";
        return Err(Error::Invalid { field: "Fragment Offset", offset: at, found: 0, expected }.into());
    }
    let (inner, datagram) = match packet.protocol {
        protocol::IPV6 => (Inner::Ipv6, checked_ipv6(packet.payload)),
        protocol::IP_IN_IP => (Inner::Ipv4, checked_ipv4(packet.payload)),
        found => {
            return Err(Error::Invalid {
                field: "Next Header",
                offset: packet.protocol_at,
                found: u32::from(found),
                expected: "4 or 41",
            }
            .into());
        }
    };
    let datagram = datagram.map_err(|error| error.shifted(at))?;
    let (outer, extensions) = (packet.header, packet.extensions);
    Ok(DecapsulatedFromIpv6 { outer, extensions, inner, datagram })
}

/// The IPv6 packet at the start of `bytes`, if it may go on.
pub(super) fn checked_ipv6(bytes: &[u8]) -> Result<&[u8], Error> {
    let (header, payload) = Ipv6Header::parse(bytes)?;
    if header.hop_limit == 0 {
        let (field, offset) = ("inner Hop Limit", HOP_LIMIT);
        return Err(Error::Invalid { field, offset, found: 0, expected: "1 or more" });
    }
    Ok(bytes.get(..usize::from(Ipv6Header::LEN) + payload.len()).unwrap_or(bytes))
}

/// The IPv4 datagram at the start of `bytes`, if it may go on.
fn checked_ipv4(bytes: &[u8]) -> Result<&[u8], Error> {
    let (received, payload) = Received::parse_whole(bytes)?;
    let Ipv4Header { ttl, .. } = received.header;
    if ttl == 0 {
        let (field, offset) = ("inner Time to Live", 8);
        return Err(Error::Invalid { field, offset, found: 0, expected: "1 or more" });
    }
    Ok(bytes.get(..received.header_len + payload.len()).unwrap_or(bytes))
}

#[cfg(test)]
mod tests;
