//! Datagrams into a tunnel and out of it.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use etherparse::IpNumber;

use super::front::Front;
use super::gre::GreHeader;
use super::minimal::MinimalHeader;
use crate::ipv4::{Ipv4Header, Received};
use crate::{Error, protocol};

const TTL: usize = 8;
const DESTINATION: usize = 16;
const FRAGMENT_OFFSET: usize = 6;
const PROTOCOL: usize = 9;

/// How a datagram is wrapped in another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Encapsulation {
    /// A second IP header in front (RFC 2003): what every agent has.
    #[default]
    IpInIp,
    /// The addresses that change are moved behind the IP header (RFC 2004). Not for fragments.
    Minimal,
    /// A second IP header and a GRE header in front (RFC 2784).
    Gre {
        /// Tells flows apart (RFC 2890).
        key: Option<u32>,
        /// Counts the datagrams of a flow (RFC 2890); whoever sends them counts.
        sequence: Option<u32>,
    },
}

impl Encapsulation {
    /// The IP protocol number of the outer header.
    #[must_use]
    pub const fn protocol(self) -> u8 {
        match self {
            Self::IpInIp => protocol::IP_IN_IP,
            Self::Minimal => protocol::MINIMAL,
            Self::Gre { .. } => protocol::GRE,
        }
    }

    /// The most bytes it adds to a datagram.
    #[must_use]
    pub const fn max_overhead(self) -> u16 {
        match self {
            Self::IpInIp => Ipv4Header::LEN,
            Self::Minimal => MinimalHeader::MAX_LEN,
            Self::Gre { key, sequence } => Ipv4Header::LEN + GreHeader { key, sequence }.len(),
        }
    }
}

/// Where a datagram that enters a tunnel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Another node: the tunnel is a hop of its way, and takes one off its time to live.
    Forwarded,
    /// The encapsulator itself.
    Local,
}

/// A tunnel, as its entry sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tunnel {
    /// How datagrams are wrapped.
    pub encapsulation: Encapsulation,
    /// The encapsulator's address.
    pub entry: Ipv4Addr,
    /// The decapsulator's address.
    pub exit: Ipv4Addr,
    /// The time to live that brings a datagram to the exit, hops. Minimal encapsulation has no use for it:
    /// there the original's goes on counting.
    pub ttl: u8,
}

/// Why a datagram must not enter a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EncapsulationError {
    /// It is no datagram.
    #[error(transparent)]
    Malformed(#[from] Error),
    /// Its time to live is used up. Where it was forwarded, its sender is told with Time Exceeded (RFC 2003
    /// section 3.1).
    #[error("the time to live is used up")]
    TtlExpired,
    /// It comes back to the entry that is its source (RFC 2003 section 3.2).
    #[error("the source is the entry of the tunnel: the datagram is going round in circles")]
    SourceIsEntry,
    /// Its source is the exit of the tunnel (RFC 2003 section 3.2).
    #[error("the source is the exit of the tunnel: the datagram would go round in circles")]
    SourceIsExit,
    /// It is a fragment, for which the minimal forwarding header has no room (RFC 2004).
    #[error("minimal encapsulation is not for fragments")]
    Fragment,
    /// It would be longer than a datagram can be.
    #[error("{len} bytes are more than a datagram can have")]
    TooLong {
        /// Bytes it would have.
        len: usize,
    },
}

impl Tunnel {
    /// Bytes the tunnel adds to a datagram from `source`.
    #[must_use]
    pub fn overhead(&self, source: Ipv4Addr) -> u16 {
        match self.encapsulation {
            Encapsulation::Minimal => MinimalHeader::len_with(source != self.entry),
            other => other.max_overhead(),
        }
    }

    /// The longest datagram, from any source, that a path with this MTU takes through the tunnel, bytes.
    ///
    /// A longer one is fragmented before it enters, or if its DF bit is set its sender is told this MTU
    /// (RFC 2003 section 5.1).
    #[must_use]
    pub const fn mtu(&self, path_mtu: u16) -> u16 {
        path_mtu.saturating_sub(self.encapsulation.max_overhead())
    }

    /// Wraps `datagram`. `identification` is that of the outer header, which no other datagram to the exit
    /// may share while this one is under way; minimal encapsulation keeps the original's.
    ///
    /// DF goes from the inner header to the outer, and type of service too. The entry is held to be the
    /// encapsulator's only address: one with several has to look for the source among the others itself.
    ///
    /// # Errors
    ///
    /// [`EncapsulationError`]: the datagram is dropped.
    pub fn encapsulate(
        &self,
        datagram: &[u8],
        origin: Origin,
        identification: u16,
    ) -> Result<Vec<u8>, EncapsulationError> {
        let (front, payload) = self.front_and_payload(datagram, origin, identification)?;
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
    /// [`EncapsulationError`]: the datagram is dropped.
    pub fn front(
        &self,
        datagram: &[u8],
        origin: Origin,
        identification: u16,
    ) -> Result<Front, EncapsulationError> {
        self.front_and_payload(datagram, origin, identification).map(|(front, _)| front)
    }

    fn front_and_payload<'a>(
        &self,
        datagram: &'a [u8],
        origin: Origin,
        identification: u16,
    ) -> Result<(Front, &'a [u8]), EncapsulationError> {
        let (received, payload) = Received::parse_whole(datagram)?;
        let header = received.header;
        let ttl = match origin {
            Origin::Forwarded => header.ttl.saturating_sub(1),
            Origin::Local => header.ttl,
        };
        if ttl == 0 {
            return Err(EncapsulationError::TtlExpired);
        }
        if header.source == self.exit {
            return Err(EncapsulationError::SourceIsExit);
        }
        if header.source == self.entry && origin == Origin::Forwarded {
            return Err(EncapsulationError::SourceIsEntry);
        }
        let inner_len = received.header_len + payload.len();
        let len = inner_len + usize::from(self.overhead(header.source));
        if len > usize::from(u16::MAX) {
            return Err(EncapsulationError::TooLong { len });
        }
        let mut inner = received.to_etherparse();
        inner.time_to_live = ttl;
        let mut front = Front::new(received.header_len);
        if self.encapsulation == Encapsulation::Minimal {
            if header.is_fragment() {
                return Err(EncapsulationError::Fragment);
            }
            inner.protocol = IpNumber(protocol::MINIMAL);
            inner.source = self.entry.octets();
            inner.destination = self.exit.octets();
            inner.total_len = len as u16;
            emit(inner, &mut front);
            let source = (header.source != self.entry).then_some(header.source);
            MinimalHeader { protocol: header.protocol, destination: header.destination, source }
                .emit(&mut front);
        } else {
            let outer = Ipv4Header {
                source: self.entry,
                destination: self.exit,
                protocol: self.encapsulation.protocol(),
                ttl: self.ttl,
                tos: header.tos,
                identification,
                dont_fragment: header.dont_fragment,
                more_fragments: false,
                fragment_offset: 0,
                payload_len: len as u16 - Ipv4Header::LEN,
            };
            emit(outer.to_etherparse(), &mut front);
            if let Encapsulation::Gre { key, sequence } = self.encapsulation {
                GreHeader { key, sequence }.emit(&mut front);
            }
            emit(inner, &mut front);
        }
        Ok((front, payload))
    }
}

/// Appends a header, options and all, with its checksum made right.
pub(super) fn emit(mut header: etherparse::Ipv4Header, bytes: &mut impl Extend<u8>) {
    header.header_checksum = header.calc_header_checksum();
    bytes.extend(header.to_bytes());
}

/// A datagram that came out of a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decapsulated<'a> {
    /// The header it travelled the tunnel with; its source is the entry and its destination the exit.
    pub outer: Ipv4Header,
    /// How it was wrapped.
    pub encapsulation: Encapsulation,
    /// The datagram, its time to live as it was when it entered (RFC 2004: as it is now).
    pub datagram: Cow<'a, [u8]>,
}

/// Unwraps `datagram`, whatever tunnel it comes from. Whether that tunnel is one to take datagrams from is
/// the caller's to judge, by the outer header.
///
/// # Errors
///
/// Another protocol than those of tunnels, a fragment (to be reassembled first), anything malformed outside
/// or inside, an inner time to live of 0 (RFC 2003 section 3.1), in GRE a datagram for the encapsulator
/// itself, which would go round in circles (RFC 2784 section 3.1).
pub fn decapsulate(datagram: &[u8]) -> Result<Decapsulated<'_>, Error> {
    let (received, payload) = parse_outer(datagram)?;
    let outer = received.header;
    let (encapsulation, inner) = match outer.protocol {
        protocol::IP_IN_IP => (Encapsulation::IpInIp, Cow::Borrowed(payload)),
        protocol::GRE => {
            let (GreHeader { key, sequence }, inner) =
                GreHeader::parse(payload).map_err(|error| error.shifted(received.header_len))?;
            (Encapsulation::Gre { key, sequence }, Cow::Borrowed(inner))
        }
        protocol::MINIMAL => {
            let (inner, rest) = without_minimal_header(&received, payload)?;
            let mut bytes = Vec::with_capacity(received.header_len + rest.len());
            emit(inner, &mut bytes);
            bytes.extend(rest);
            (Encapsulation::Minimal, Cow::Owned(bytes))
        }
        found => {
            return Err(Error::Invalid {
                field: "IPv4 Protocol",
                offset: PROTOCOL,
                found: u32::from(found),
                expected: "4, 47 or 55",
            });
        }
    };
    let inner_at = match &inner {
        Cow::Borrowed(bytes) => received.header_len + payload.len() - bytes.len(),
        Cow::Owned(_) => 0,
    };
    let len = check_inside(&inner, inner_at, outer, encapsulation)?;
    let datagram = match inner {
        Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(..len).unwrap_or(bytes)),
        Cow::Owned(bytes) => Cow::Owned(bytes),
    };
    Ok(Decapsulated { outer, encapsulation, datagram })
}

/// Unwraps `datagram` as [`decapsulate`] does, without a copy: the header that minimal encapsulation took apart
/// is put together where it has to stand. The result is always borrowed.
///
/// # Errors
///
/// Those of [`decapsulate`]; the bytes may have been changed then.
pub fn decapsulate_in_place(datagram: &mut [u8]) -> Result<Decapsulated<'_>, Error> {
    if datagram.get(PROTOCOL) != Some(&protocol::MINIMAL) {
        return decapsulate(datagram);
    }
    let (received, payload) = parse_outer(datagram)?;
    let (outer, header_len) = (received.header, received.header_len);
    let (mut inner, rest) = without_minimal_header(&received, payload)?;
    inner.header_checksum = inner.calc_header_checksum();
    let (header, rest_len) = (inner.to_bytes(), rest.len());
    let start = payload.len() - rest_len;
    let whole = datagram.get_mut(start..start + header_len + rest_len).unwrap_or_default();
    if let Some(place) = whole.get_mut(..header.len()) {
        place.copy_from_slice(&header);
    }
    check_inside(whole, 0, outer, Encapsulation::Minimal)?;
    Ok(Decapsulated { outer, encapsulation: Encapsulation::Minimal, datagram: Cow::Borrowed(whole) })
}

/// Reads the outer header of a whole datagram.
fn parse_outer(datagram: &[u8]) -> Result<(Received<'_>, &[u8]), Error> {
    let (received, payload) = Received::parse_whole(datagram)?;
    if received.header.is_fragment() {
        return Err(Error::Invalid {
            field: "Fragment Offset",
            offset: FRAGMENT_OFFSET,
            found: u32::from(received.header.fragment_offset),
            expected: "that of a whole datagram",
        });
    }
    Ok((received, payload))
}

/// The header that a minimal encapsulation was made of, without its checksum, and the payload behind it.
fn without_minimal_header<'a>(
    received: &Received<'_>,
    payload: &'a [u8],
) -> Result<(etherparse::Ipv4Header, &'a [u8]), Error> {
    let (minimal, rest) =
        MinimalHeader::parse(payload).map_err(|error| error.shifted(received.header_len))?;
    let mut inner = received.to_etherparse();
    inner.protocol = IpNumber(minimal.protocol);
    inner.destination = minimal.destination.octets();
    if let Some(source) = minimal.source {
        inner.source = source.octets();
    }
    inner.total_len = (received.header_len + rest.len()) as u16;
    Ok((inner, rest))
}

/// Checks the datagram inside, which starts at `inner_at`; returns its bytes.
fn check_inside(
    inner: &[u8],
    inner_at: usize,
    outer: Ipv4Header,
    encapsulation: Encapsulation,
) -> Result<usize, Error> {
    let (header, payload) = Received::parse_whole(inner).map_err(|error| error.shifted(inner_at))?;
    if header.header.ttl == 0 {
        let (field, offset) = ("inner Time to Live", inner_at + TTL);
        return Err(Error::Invalid { field, offset, found: 0, expected: "1 or more" });
    }
    let destination = header.header.destination;
    if matches!(encapsulation, Encapsulation::Gre { .. }) && destination == outer.source {
        return Err(Error::Invalid {
            field: "inner Destination Address",
            offset: inner_at + DESTINATION,
            found: destination.to_bits(),
            expected: "another than the encapsulator's",
        });
    }
    Ok(header.header_len + payload.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const EXIT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
    const INNER: Ipv4Header = Ipv4Header {
        source: Ipv4Addr::new(198, 51, 100, 7),
        destination: Ipv4Addr::new(10, 0, 0, 5),
        protocol: protocol::UDP,
        ttl: 60,
        tos: 0x28,
        identification: 77,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        payload_len: 4,
    };

    fn tunnel(encapsulation: Encapsulation) -> Tunnel {
        Tunnel { encapsulation, entry: ENTRY, exit: EXIT, ttl: 64 }
    }

    fn datagram(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend([1, 2, 3, 4]);
        bytes
    }

    const EVERY: [Encapsulation; 6] = [
        Encapsulation::IpInIp,
        Encapsulation::Minimal,
        Encapsulation::Gre { key: None, sequence: None },
        Encapsulation::Gre { key: Some(1), sequence: None },
        Encapsulation::Gre { key: None, sequence: Some(2) },
        Encapsulation::Gre { key: Some(1), sequence: Some(2) },
    ];

    #[test]
    fn what_goes_in_comes_out_a_hop_older() {
        for encapsulation in EVERY {
            for (origin, ttl) in [(Origin::Forwarded, 59), (Origin::Local, 60)] {
                let tunnel = tunnel(encapsulation);
                let bytes = tunnel.encapsulate(&datagram(INNER), origin, 5).unwrap();
                assert_eq!(bytes.len(), 24 + usize::from(tunnel.overhead(INNER.source)));
                let front = tunnel.front(&datagram(INNER), origin, 5).unwrap();
                assert_eq!(bytes, [front.bytes(), &datagram(INNER)[front.header_len()..]].concat());
                let out = decapsulate(&bytes).unwrap();
                let mut copy = bytes.clone();
                let in_place = decapsulate_in_place(&mut copy).unwrap();
                assert_eq!(in_place, out);
                assert!(matches!(in_place.datagram, Cow::Borrowed(_)));
                assert_eq!(out.encapsulation, encapsulation);
                assert_eq!(out.datagram[..], datagram(Ipv4Header { ttl, ..INNER }));
                assert_eq!((out.outer.source, out.outer.destination), (ENTRY, EXIT));
                assert!(out.outer.dont_fragment);
                assert_eq!(out.outer.tos, INNER.tos);
            }
        }
    }

    #[test]
    fn the_outer_header_has_its_own_ttl_and_identification_but_not_in_minimal_encapsulation() {
        let outer = |encapsulation| {
            let bytes = tunnel(encapsulation).encapsulate(&datagram(INNER), Origin::Forwarded, 5).unwrap();
            let (header, _) = Ipv4Header::parse(&bytes).unwrap();
            (header.ttl, header.identification)
        };
        assert_eq!(outer(Encapsulation::IpInIp), (64, 5));
        assert_eq!(outer(Encapsulation::Gre { key: None, sequence: None }), (64, 5));
        assert_eq!(outer(Encapsulation::Minimal), (59, 77));
    }

    #[test]
    fn minimal_encapsulation_saves_the_source_of_its_own_datagrams() {
        let own = Ipv4Header { source: ENTRY, ..INNER };
        let tunnel = tunnel(Encapsulation::Minimal);
        assert_eq!(tunnel.overhead(INNER.source), 12);
        assert_eq!(tunnel.overhead(ENTRY), 8);
        let bytes = tunnel.encapsulate(&datagram(own), Origin::Local, 5).unwrap();
        assert_eq!(bytes.len(), 24 + 8);
        assert_eq!(decapsulate(&bytes).unwrap().datagram[..], datagram(own));
    }

    #[test]
    fn an_old_datagram_stays_out() {
        for encapsulation in EVERY {
            let tunnel = tunnel(encapsulation);
            let enter = |ttl, origin| tunnel.encapsulate(&datagram(Ipv4Header { ttl, ..INNER }), origin, 5);
            assert_eq!(enter(1, Origin::Forwarded), Err(EncapsulationError::TtlExpired));
            assert_eq!(enter(0, Origin::Forwarded), Err(EncapsulationError::TtlExpired));
            assert_eq!(enter(0, Origin::Local), Err(EncapsulationError::TtlExpired));
            assert!(enter(1, Origin::Local).is_ok());
        }
    }

    #[test]
    fn loops_are_refused() {
        let tunnel = tunnel(Encapsulation::IpInIp);
        let enter = |source, origin| tunnel.encapsulate(&datagram(Ipv4Header { source, ..INNER }), origin, 5);
        assert_eq!(enter(ENTRY, Origin::Forwarded), Err(EncapsulationError::SourceIsEntry));
        assert_eq!(enter(EXIT, Origin::Forwarded), Err(EncapsulationError::SourceIsExit));
        assert!(enter(ENTRY, Origin::Local).is_ok());
    }

    #[test]
    fn fragments_go_through_every_tunnel_but_the_minimal() {
        let fragment = Ipv4Header { dont_fragment: false, more_fragments: true, ..INNER };
        for encapsulation in EVERY {
            let bytes = tunnel(encapsulation).encapsulate(&datagram(fragment), Origin::Local, 5);
            if encapsulation == Encapsulation::Minimal {
                assert_eq!(bytes, Err(EncapsulationError::Fragment));
            } else {
                let bytes = bytes.unwrap();
                let out = decapsulate(&bytes).unwrap();
                assert!(!out.outer.is_fragment() && !out.outer.dont_fragment);
                assert_eq!(out.datagram[..], datagram(fragment));
            }
        }
    }

    #[test]
    fn a_tunnel_takes_a_datagram_up_to_the_longest() {
        let mut bytes = Vec::new();
        Ipv4Header { payload_len: Ipv4Header::MAX_PAYLOAD_LEN - 20, ..INNER }.emit(&mut bytes);
        bytes.resize(usize::from(u16::MAX) - 20, 0);
        let tunnel = tunnel(Encapsulation::IpInIp);
        assert_eq!(tunnel.encapsulate(&bytes, Origin::Local, 5).unwrap().len(), usize::from(u16::MAX));
        bytes.clear();
        Ipv4Header { payload_len: Ipv4Header::MAX_PAYLOAD_LEN - 19, ..INNER }.emit(&mut bytes);
        bytes.resize(usize::from(u16::MAX) - 19, 0);
        assert_eq!(
            tunnel.encapsulate(&bytes, Origin::Local, 5),
            Err(EncapsulationError::TooLong { len: 65_536 })
        );
    }

    #[test]
    fn a_tunnel_s_mtu_is_the_path_s_without_the_overhead() {
        assert_eq!(tunnel(Encapsulation::IpInIp).mtu(1500), 1480);
        assert_eq!(tunnel(Encapsulation::Minimal).mtu(1500), 1488);
        assert_eq!(tunnel(Encapsulation::Gre { key: Some(1), sequence: Some(1) }).mtu(1500), 1468);
    }

    #[test]
    fn what_is_no_tunnel_or_broken_inside_is_refused() {
        assert!(matches!(
            decapsulate(&datagram(INNER)),
            Err(Error::Invalid { field: "IPv4 Protocol", offset: 9, found: 17, .. })
        ));
        let mut bytes =
            tunnel(Encapsulation::IpInIp).encapsulate(&datagram(INNER), Origin::Local, 5).unwrap();
        bytes[20 + TTL] = 0;
        assert!(matches!(decapsulate(&bytes), Err(Error::Checksum { offset: 30, .. })));
        bytes.truncate(20);
        bytes.extend(datagram(Ipv4Header { ttl: 0, ..INNER }));
        assert_eq!(
            decapsulate(&bytes),
            Err(Error::Invalid { field: "inner Time to Live", offset: 28, found: 0, expected: "1 or more" })
        );
        let fragment = Ipv4Header { protocol: protocol::IP_IN_IP, more_fragments: true, ..INNER };
        assert!(matches!(
            decapsulate(&datagram(fragment)),
            Err(Error::Invalid { field: "Fragment Offset", .. })
        ));
    }

    #[test]
    fn gre_does_not_bring_a_datagram_back_to_its_encapsulator() {
        let back = datagram(Ipv4Header { destination: ENTRY, ..INNER });
        for encapsulation in EVERY {
            let tunnel = tunnel(encapsulation);
            let bytes = tunnel.encapsulate(&back, Origin::Local, 5).unwrap();
            if matches!(encapsulation, Encapsulation::Gre { .. }) {
                let error = Error::Invalid {
                    field: "inner Destination Address",
                    offset: usize::from(tunnel.overhead(INNER.source)) + DESTINATION,
                    found: ENTRY.to_bits(),
                    expected: "another than the encapsulator's",
                };
                assert_eq!(decapsulate(&bytes), Err(error));
            } else {
                assert_eq!(decapsulate(&bytes).unwrap().datagram[..], back);
            }
        }
    }

    #[test]
    fn options_of_the_original_survive() {
        let mut header = etherparse::Ipv4Header::from_slice(&datagram(INNER)).unwrap().0;
        header.options = [148, 4, 0, 0].into();
        header.total_len += 4;
        let mut original = Vec::new();
        emit(header, &mut original);
        original.extend([1, 2, 3, 4]);
        for encapsulation in EVERY {
            let bytes = tunnel(encapsulation).encapsulate(&original, Origin::Local, 5).unwrap();
            let (mut copy, out) = (bytes.clone(), decapsulate(&bytes).unwrap());
            assert_eq!(out.datagram[..], original);
            assert_eq!(decapsulate_in_place(&mut copy).unwrap(), out);
        }
    }
}
