//! A datagram of either version of IP, as far as the books look at it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_mobility::multipath::PATH_PORT;
use careof_mobility::multipath::alliance::CLUSTER_PORT;
use careof_mobility::v4::REGISTRATION_PORT;
use careof_plan::{describe, describe_ipv6};
use careof_wire::icmpv6::QuotedPacket;
use careof_wire::ipv4::{self, Ipv4Header};
use careof_wire::ipv6::{self, FragmentHeader, Ipv6Header, is_link_local};
use careof_wire::micro;
use careof_wire::mip6::DSMIPV6_PORT;
use careof_wire::tunnel::{MultipathHeader, decapsulate, decapsulate_ipv6, decapsulate_ipv6_in_ipv4};
use careof_wire::udp::UdpHeader;
use careof_wire::{Segment, protocol};

/// Tunnels within tunnels that are looked into.
const DEEPEST: usize = 3;
/// Bytes behind the headers that tell datagrams apart, with their length: a TCP header with all options.
const TELLING: usize = 60;

/// `bytes` without the tunnels around them, as far as they are whole.
pub(super) fn innermost(bytes: &[u8]) -> Cow<'_, [u8]> {
    let mut current = Cow::Borrowed(bytes);
    for _ in 0..DEEPEST {
        let inside = match &current {
            Cow::Borrowed(bytes) => unwrapped(bytes),
            Cow::Owned(bytes) => unwrapped(bytes).map(|inside| Cow::Owned(inside.into_owned())),
        };
        match inside {
            Some(inside) => current = inside,
            None => break,
        }
    }
    current
}

fn is_ipv6(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first >> 4 == 6)
}

/// What is in the outermost tunnel.
fn unwrapped(bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_ipv6(bytes) {
        return decapsulate_ipv6(bytes).ok().map(|inside| Cow::Borrowed(inside.datagram));
    }
    let (header, payload) = Ipv4Header::parse(bytes).ok()?;
    match header.protocol {
        // Of a fragment the rest is elsewhere.
        protocol::IPV6 => decapsulate_ipv6_in_ipv4(bytes).ok().map(|inside| Cow::Borrowed(inside.packet)),
        protocol::UDP if !header.is_fragment() => {
            let (ports, inside) = UdpHeader::parse(header.source, header.destination, payload).ok()?;
            let is_of_mobility = ports.destination_port == DSMIPV6_PORT && is_ipv6(inside);
            is_of_mobility.then_some(Cow::Borrowed(inside))
        }
        _ => match of_several_paths(bytes) {
            Some(inside) => Some(Cow::Borrowed(inside)),
            None => decapsulate(bytes).ok().map(|inside| inside.datagram),
        },
    }
}

/// What is in a tunnel over several paths, where `bytes` are of one, be it within the tunnel to a relay.
pub(super) fn of_several_paths(bytes: &[u8]) -> Option<&[u8]> {
    let (mut header, mut payload) = Ipv4Header::parse(bytes).ok()?;
    if header.protocol == protocol::IP_IN_IP && !header.is_fragment() {
        (header, payload) = Ipv4Header::parse(payload).ok()?;
    }
    let is_whole = header.protocol == protocol::GRE && !header.is_fragment();
    MultipathHeader::parse(payload).ok().filter(|_| is_whole).map(|(_, inside)| inside)
}

/// A whole datagram.
pub(super) struct Datagram<'a> {
    /// Who sends it and whom it is for, in the end: a mobile node is its home address, where a Home Address option or a type 2
    /// routing header says so (RFC 6275 section 6).
    pub(super) source: IpAddr,
    pub(super) destination: IpAddr,
    /// What its payload is.
    pub(super) protocol: u8,
    /// What follows its headers, of IPv6 also its extension headers.
    pub(super) payload: &'a [u8],
    version: Version,
}

/// What else is known of it.
enum Version {
    V4(Ipv4Header),
    V6 { source: Ipv6Addr, destination: Ipv6Addr, fragment: Option<FragmentHeader> },
}

impl<'a> Datagram<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        if is_ipv6(bytes) {
            return Self::parse_ipv6(bytes);
        }
        let (header, payload) = Ipv4Header::parse(bytes).ok()?;
        Some(Self {
            source: header.source.into(),
            destination: header.destination.into(),
            protocol: header.protocol,
            payload,
            version: Version::V4(header),
        })
    }

    fn parse_ipv6(bytes: &'a [u8]) -> Option<Self> {
        // It has to be whole. Whoever it is for judges what its extension headers say.
        Ipv6Header::parse(bytes).ok()?;
        let packet = QuotedPacket::parse(bytes).ok()?;
        let QuotedPacket { source, destination, fragment, protocol, payload, .. } = packet;
        Some(Self {
            source: source.into(),
            destination: destination.into(),
            protocol,
            payload,
            version: Version::V6 { source, destination, fragment },
        })
    }

    /// Whether others belong to it.
    pub(super) fn is_fragment(&self) -> bool {
        match &self.version {
            Version::V4(header) => header.is_fragment(),
            Version::V6 { fragment, .. } => fragment.is_some_and(|fragment| !fragment.is_atomic()),
        }
    }

    /// What it is known by on all its way.
    ///
    /// A datagram of IPv6 has no number: it may look like another one, such as an acknowledgement that is sent twice.
    pub(super) fn content(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |bytes: &[u8]| {
            for byte in bytes {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        match &self.version {
            Version::V4(header) => {
                mix(&header.source.octets());
                mix(&header.destination.octets());
                mix(&[header.protocol, u8::from(header.more_fragments)]);
                mix(&header.identification.to_be_bytes());
                mix(&header.fragment_offset.to_be_bytes());
                mix(&header.payload_len.to_be_bytes());
            }
            Version::V6 { source, destination, fragment } => {
                mix(&source.octets());
                mix(&destination.octets());
                mix(&[self.protocol]);
                if let Some(fragment) = fragment.filter(|fragment| !fragment.is_atomic()) {
                    mix(&fragment.to_bytes());
                }
                mix(&self.payload.len().to_be_bytes());
            }
        }
        mix(self.payload.get(..TELLING).unwrap_or(self.payload));
        hash
    }

    /// The TCP segment in it.
    pub(super) fn segment(&self) -> Option<Segment> {
        if self.protocol != protocol::TCP {
            return None;
        }
        let parsed = match &self.version {
            Version::V4(header) => Segment::parse(header.source, header.destination, self.payload),
            Version::V6 { source, destination, .. } => Segment::parse(*source, *destination, self.payload),
        };
        parsed.ok().map(|(segment, _)| segment)
    }

    /// Whether it is a message of mobility, of neighbor discovery or an error.
    pub(super) fn is_signalling(&self) -> bool {
        match &self.version {
            Version::V4(_) => {
                self.protocol == protocol::ICMP
                    || (self.protocol == protocol::UDP && is_of_mobility(self.payload))
            }
            Version::V6 { .. } => [protocol::ICMPV6, protocol::MOBILITY_HEADER].contains(&self.protocol),
        }
    }

    /// The name and the gist of such a message.
    pub(super) fn describe(&self) -> (&'static str, String) {
        match &self.version {
            Version::V4(header) => describe(header, self.payload),
            Version::V6 { source, destination, .. } => {
                describe_ipv6(*source, *destination, self.protocol, self.payload)
            }
        }
    }

    /// Whether it says nothing of the link but that its sender is on it: it has no address yet, or one of the link.
    pub(super) fn is_from_link(&self) -> bool {
        self.source.is_unspecified() || is_of_link(self.source)
    }

    /// Whether it is for all on the link, or for who is there with an address of the link.
    pub(super) fn is_for_link(&self) -> bool {
        let is_for_all = match self.destination {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        is_for_all || is_of_link(self.destination)
    }
}

/// An address that is valid on one link only (RFC 4291 section 2.5.6): no router passes it on.
fn is_of_link(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if is_link_local(address))
}

fn is_of_mobility(datagram: &[u8]) -> bool {
    let port =
        |at: usize| datagram.get(at..at + 2).and_then(|port| port.try_into().ok()).map(u16::from_be_bytes);
    let is_one = |port: Option<u16>| {
        port.is_some_and(|port| [REGISTRATION_PORT, micro::PORT, PATH_PORT, CLUSTER_PORT].contains(&port))
    };
    is_one(port(0)) || is_one(port(2))
}

/// Puts fragments of either version together.
pub(super) struct Reassembler {
    ipv4: ipv4::Reassembler,
    ipv6: ipv6::Reassembler,
}

impl Reassembler {
    pub(super) fn new() -> Self {
        Self {
            ipv4: ipv4::Reassembler::new(ipv4::ReassemblyLimits::default()),
            ipv6: ipv6::Reassembler::new(ipv6::ReassemblyLimits::default()),
        }
    }

    /// The datagram that this fragment completes.
    pub(super) fn handle_fragment(&mut self, at: Instant, bytes: &[u8]) -> Option<Vec<u8>> {
        if is_ipv6(bytes) {
            self.ipv6.handle_timeout(at);
            return self.ipv6.handle_fragment(at, bytes).ok().flatten();
        }
        self.ipv4.handle_timeout(at);
        self.ipv4.handle_fragment(at, bytes).ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use careof_wire::ipv6::{Extensions, Packet, fragment};
    use careof_wire::tunnel::{Encapsulation, Ipv6InIpv4Tunnel, Ipv6Tunnel, Origin, Tunnel};

    const INNER: Ipv4Header = Ipv4Header {
        source: Ipv4Addr::new(10, 0, 1, 1),
        destination: Ipv4Addr::new(10, 0, 9, 2),
        protocol: 6,
        ttl: 64,
        tos: 0,
        identification: 77,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        payload_len: 24,
    };
    const PEER: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1);
    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 9, 0, 0, 0, 2);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 3, 0, 0xff, 0xfe00, 0x302);
    const AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 9, 0, 0, 0, 1);

    fn datagram(header: Ipv4Header) -> Vec<u8> {
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend([7; 24]);
        bytes
    }

    fn packet(source: Ipv6Addr, destination: Ipv6Addr, extensions: &Extensions, hop_limit: u8) -> Vec<u8> {
        let header = Ipv6Header { source, destination, hop_limit, ..Ipv6Header::default() };
        let mut bytes = Vec::new();
        Packet::emit(&header, extensions, protocol::TCP, &[7; 24], &mut bytes).unwrap();
        bytes
    }

    fn named(bytes: &[u8]) -> u64 {
        Datagram::parse(&innermost(bytes)).unwrap().content()
    }

    #[test]
    fn a_datagram_keeps_its_name_through_a_tunnel_and_over_routers() {
        let plain = datagram(INNER);
        let router = datagram(Ipv4Header { ttl: 62, ..INNER });
        let entry = Ipv4Addr::new(10, 0, 9, 1);
        let exit = Ipv4Addr::new(10, 0, 3, 2);
        for encapsulation in
            [Encapsulation::IpInIp, Encapsulation::Minimal, Encapsulation::Gre { key: None, sequence: None }]
        {
            let tunnel = Tunnel { encapsulation, entry, exit, ttl: 64 };
            let tunnelled = tunnel.encapsulate(&router, Origin::Forwarded, 5).unwrap();
            assert_eq!(named(&tunnelled), named(&plain), "{encapsulation:?}");
        }
        assert_ne!(named(&datagram(Ipv4Header { identification: 78, ..INNER })), named(&plain));
    }

    #[test]
    fn a_packet_of_ipv6_keeps_its_name_through_tunnels_and_over_routers() {
        let plain = packet(PEER, HOME, &Extensions::NONE, 64);
        let router = packet(PEER, HOME, &Extensions::NONE, 62);
        for encapsulation_limit in [None, Some(4)] {
            let tunnel = Ipv6Tunnel { entry: AGENT, exit: CARE_OF, hop_limit: 64, encapsulation_limit };
            let once = tunnel.encapsulate(&router, Origin::Forwarded).unwrap();
            assert_eq!(named(&once), named(&plain), "{encapsulation_limit:?}");
            let twice = Ipv6Tunnel { exit: PEER, ..tunnel }.encapsulate(&once, Origin::Local).unwrap();
            assert_eq!(named(&twice), named(&plain), "{encapsulation_limit:?}");
        }
        assert_ne!(named(&packet(HOME, PEER, &Extensions::NONE, 64)), named(&plain));
    }

    #[test]
    fn a_packet_of_ipv6_keeps_its_name_through_ipv4() {
        let plain = packet(PEER, HOME, &Extensions::NONE, 64);
        let (entry, exit) = (Ipv4Addr::new(10, 0, 9, 1), Ipv4Addr::new(10, 0, 3, 2));
        let tunnel = Ipv6InIpv4Tunnel { entry, exit, ttl: 64 };
        let tunnelled = tunnel.encapsulate(&plain, Origin::Forwarded, 5, false).unwrap();
        assert_eq!(named(&tunnelled), named(&plain));
        let ports = |destination_port| {
            let payload_len = plain.len() as u16;
            let ports = UdpHeader { source_port: DSMIPV6_PORT, destination_port, payload_len };
            let mut udp = Vec::new();
            ports.emit(entry, exit, &plain, &mut udp);
            let header = Ipv4Header {
                source: entry,
                destination: exit,
                protocol: protocol::UDP,
                payload_len: udp.len() as u16,
                ..INNER
            };
            let mut bytes = Vec::new();
            header.emit(&mut bytes);
            bytes.extend(udp);
            bytes
        };
        assert_eq!(named(&ports(DSMIPV6_PORT)), named(&plain), "messages of mobility are in UDP");
        assert_ne!(named(&ports(5001)), named(&plain), "another program's are its own");
    }

    #[test]
    fn with_the_headers_of_route_optimisation_a_mobile_node_is_its_home_address() {
        let to_mobile = Extensions { type_2_routing: Some(HOME), ..Extensions::NONE };
        let from_mobile = Extensions { home_address: Some(HOME), ..Extensions::NONE };
        for (bytes, expected) in [
            (packet(PEER, CARE_OF, &to_mobile, 64), [PEER, HOME]),
            (packet(CARE_OF, PEER, &from_mobile, 64), [HOME, PEER]),
        ] {
            let parsed = Datagram::parse(&bytes).unwrap();
            assert_eq!([parsed.source, parsed.destination], expected.map(IpAddr::V6));
            assert_eq!((parsed.protocol, parsed.payload), (protocol::TCP, &[7; 24][..]));
            assert!((0..bytes.len()).all(|len| Datagram::parse(&bytes[..len]).is_none()), "cut short");
        }
    }

    #[test]
    fn fragments_have_names_of_their_own_and_together_that_of_the_whole() {
        let whole = {
            let header = Ipv6Header { source: PEER, destination: HOME, ..Ipv6Header::default() };
            let mut bytes = Vec::new();
            Packet::emit(&header, &Extensions::NONE, protocol::UDP, &[7; 3000], &mut bytes).unwrap();
            bytes
        };
        let fragments = fragment(&whole, 1280, 5).unwrap();
        let mut reassembler = Reassembler::new();
        let mut names = std::collections::BTreeSet::from([named(&whole)]);
        let mut put_together = Vec::new();
        for bytes in &fragments {
            assert!(Datagram::parse(bytes).unwrap().is_fragment());
            names.insert(named(bytes));
            put_together.extend(reassembler.handle_fragment(Instant::ZERO, bytes));
        }
        assert_eq!((names.len(), put_together), (fragments.len() + 1, vec![whole]));
    }

    #[test]
    fn what_stays_on_a_link_is_told_from_what_routers_pass_on() {
        let link: Ipv6Addr = "fe80::1".parse().unwrap();
        let all: Ipv6Addr = "ff02::1".parse().unwrap();
        let says = |source, destination| {
            let bytes = packet(source, destination, &Extensions::NONE, 255);
            let datagram = Datagram::parse(&bytes).unwrap();
            (datagram.is_from_link(), datagram.is_for_link())
        };
        assert_eq!(says(link, all), (true, true));
        assert_eq!(says(Ipv6Addr::UNSPECIFIED, link), (true, true));
        assert_eq!(says(PEER, HOME), (false, false));
    }
}
