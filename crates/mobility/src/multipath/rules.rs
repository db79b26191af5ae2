//! What an owner wants of certain flows: which paths they may take, and how.
//!
//! The first rule that fits a packet counts. RFC 6088 has richer selectors for IPv6; prefix, port, protocol and DSCP are what
//! operators write down.

use alloc::vec::Vec;
use core::net::IpAddr;

use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;

use super::path_id::PathSet;

/// What of a packet decides how it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFields {
    /// The correspondent node.
    pub remote: IpAddr,
    /// Its port; `None` where the protocol has none, or in a fragment.
    pub remote_port: Option<u16>,
    /// The mobile node's address.
    pub local: IpAddr,
    /// The mobile node's port.
    pub local_port: Option<u16>,
    /// The protocol, as in the IP header.
    pub protocol: u8,
    /// The Differentiated Services Code Point (RFC 2474), 0 to 63.
    pub dscp: u8,
}

impl FlowFields {
    /// Of an IPv4 datagram to a mobile node; `None` where it is none.
    #[must_use]
    pub fn to_mobile_node(datagram: &[u8]) -> Option<Self> {
        let (header, ports) = read_ipv4(datagram)?;
        let (remote_port, local_port) = ports.unzip();
        let (remote, local) = (header.source.into(), header.destination.into());
        let (protocol, dscp) = (header.protocol, header.tos >> 2);
        Some(Self { remote, remote_port, local, local_port, protocol, dscp })
    }

    /// Of an IPv4 datagram from a mobile node; `None` where it is none.
    #[must_use]
    pub fn from_mobile_node(datagram: &[u8]) -> Option<Self> {
        let Self { remote, remote_port, local, local_port, .. } = Self::to_mobile_node(datagram)?;
        let turned = Self::to_mobile_node(datagram)?;
        Some(Self {
            remote: local,
            remote_port: local_port,
            local: remote,
            local_port: remote_port,
            ..turned
        })
    }

    /// A number for the flow: all packets with the same addresses, ports and protocol have the same. Two flows with one number share
    /// their order and their path, nothing else.
    #[must_use]
    pub fn key(&self) -> u64 {
        let address = |address: IpAddr| match address {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let port = |port: Option<u16>| port.map_or(0, |port| u64::from(port) + 1);
        let (remote, local) = (address(self.remote), address(self.local));
        let words = [
            remote as u64,
            (remote >> 64) as u64,
            local as u64,
            (local >> 64) as u64,
            port(self.remote_port) << 32 | port(self.local_port) << 8 | u64::from(self.protocol),
        ];
        // FNV-1a, by words, with a finish that spreads the upper bits.
        let mixed = words.iter().fold(0xcbf2_9ce4_8422_2325_u64, |key, word| {
            let key = (key ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            key ^ key >> 29
        });
        mixed ^ mixed >> 32
    }
}

/// The header of a datagram, and source and destination port of a whole one of TCP or UDP.
fn read_ipv4(datagram: &[u8]) -> Option<(Ipv4Header, Option<(u16, u16)>)> {
    let (header, payload) = Ipv4Header::parse(datagram).ok()?;
    let has_ports = matches!(header.protocol, protocol::TCP | protocol::UDP) && !header.is_fragment();
    let ports = payload.first_chunk::<4>().filter(|_| has_ports);
    Some((header, ports.map(|&[a, b, c, d]| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))))
}

/// How the packets of a flow go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// As the scheduler disperses.
    #[default]
    Dispersed,
    /// All by one path, as long as that works.
    Pinned,
    /// In a copy each by every path.
    Duplicated,
}

/// A rule. What is `None` fits every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The correspondent node is in the network of this address with so many leading bits.
    pub prefix: Option<(IpAddr, u8)>,
    /// The correspondent node's port is one of these, the first and the last included.
    pub ports: Option<(u16, u16)>,
    /// The protocol.
    pub protocol: Option<u8>,
    /// The DSCP.
    pub dscp: Option<u8>,
    /// The paths that may be used.
    pub paths: PathSet,
    /// How.
    pub treatment: Treatment,
}

impl Rule {
    /// Fits every packet, and changes nothing.
    pub const ANY: Self = Self {
        prefix: None,
        ports: None,
        protocol: None,
        dscp: None,
        paths: PathSet::ALL,
        treatment: Treatment::Dispersed,
    };

    fn fits(&self, fields: &FlowFields) -> bool {
        self.prefix.is_none_or(|(network, bits)| is_within(fields.remote, network, bits))
            && self.ports.is_none_or(|(first, last)| {
                fields.remote_port.is_some_and(|port| (first..=last).contains(&port))
            })
            && self.protocol.is_none_or(|protocol| protocol == fields.protocol)
            && self.dscp.is_none_or(|dscp| dscp == fields.dscp)
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let apart = u32::from(address) ^ u32::from(network);
            apart.leading_zeros() >= u32::from(bits.min(32))
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let apart = u128::from(address) ^ u128::from(network);
            apart.leading_zeros() >= u32::from(bits.min(128))
        }
        _ => false,
    }
}

/// All rules, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// These rules, of which the first that fits counts.
    #[must_use]
    pub const fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// The paths that a packet may take, and how.
    #[must_use]
    pub fn of(&self, fields: &FlowFields) -> (PathSet, Treatment) {
        let rule = self.0.iter().find(|rule| rule.fits(fields)).copied().unwrap_or(Rule::ANY);
        (rule.paths, rule.treatment)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::multipath::PathId;

    fn fields(remote: [u8; 4], port: u16, dscp: u8) -> FlowFields {
        FlowFields {
            remote: remote.into(),
            remote_port: Some(port),
            local: [10, 0, 0, 7].into(),
            local_port: Some(50_000),
            protocol: 6,
            dscp,
        }
    }

    #[test]
    fn fields_are_read_from_either_end_and_fragments_have_no_ports() {
        let header = Ipv4Header {
            source: [198, 51, 100, 9].into(),
            destination: [10, 0, 0, 7].into(),
            protocol: protocol::TCP,
            tos: 46 << 2,
            payload_len: 20,
            ..Ipv4Header::default()
        };
        let mut datagram = Vec::new();
        header.emit(&mut datagram);
        datagram.extend(443_u16.to_be_bytes());
        datagram.extend(50_000_u16.to_be_bytes());
        datagram.extend([0; 16]);
        let expected = fields([198, 51, 100, 9], 443, 46);
        assert_eq!(FlowFields::to_mobile_node(&datagram), Some(expected));
        let back = FlowFields::from_mobile_node(&datagram).unwrap();
        assert_eq!((back.remote, back.remote_port), (expected.local, expected.local_port));
        assert_eq!((back.local, back.local_port), (expected.remote, expected.remote_port));
        let mut fragment = Vec::new();
        Ipv4Header { more_fragments: true, payload_len: 16, ..header }.emit(&mut fragment);
        fragment.extend([0; 16]);
        assert_eq!(FlowFields::to_mobile_node(&fragment).unwrap().remote_port, None);
        assert_eq!(FlowFields::to_mobile_node(&datagram[..19]), None);
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let only = |number| PathSet::of(PathId::new(number).unwrap());
        let rules = Rules::new(vec![
            Rule { dscp: Some(46), treatment: Treatment::Duplicated, ..Rule::ANY },
            Rule { ports: Some((5000, 5010)), paths: only(1), ..Rule::ANY },
            Rule { prefix: Some(([198, 51, 100, 0].into(), 24)), treatment: Treatment::Pinned, ..Rule::ANY },
            Rule { protocol: Some(17), paths: PathSet::NONE, ..Rule::ANY },
        ]);
        let of = |fields| rules.of(&fields);
        assert_eq!(of(fields([198, 51, 100, 9], 5001, 46)), (PathSet::ALL, Treatment::Duplicated));
        assert_eq!(of(fields([198, 51, 100, 9], 5010, 0)), (only(1), Treatment::Dispersed));
        assert_eq!(of(fields([198, 51, 100, 9], 5011, 0)), (PathSet::ALL, Treatment::Pinned));
        assert_eq!(of(fields([198, 51, 101, 9], 5011, 0)), (PathSet::ALL, Treatment::Dispersed));
        let fragment = FlowFields { remote_port: None, ..fields([9, 9, 9, 9], 0, 0) };
        assert_eq!(of(fragment), (PathSet::ALL, Treatment::Dispersed), "it has no port that could fit");
    }

    #[test]
    fn a_prefix_of_no_bits_is_everything_of_its_version() {
        let everything = ([0, 0, 0, 0].into(), 0);
        assert!(is_within([8, 8, 8, 8].into(), everything.0, everything.1));
        assert!(!is_within(IpAddr::from([0_u16; 8]), everything.0, everything.1));
        assert!(is_within(
            IpAddr::from([0x2001, 0xdb8, 1, 0, 0, 0, 0, 1]),
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]),
            32
        ));
        assert!(!is_within(
            IpAddr::from([0x2001, 0xdb9, 1, 0, 0, 0, 0, 1]),
            IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0]),
            32
        ));
    }

    #[test]
    fn what_differs_in_any_field_is_another_flow() {
        let base = fields([198, 51, 100, 9], 443, 0);
        let others = [
            fields([198, 51, 100, 10], 443, 0),
            fields([198, 51, 100, 9], 444, 0),
            FlowFields { local_port: Some(50_001), ..base },
            FlowFields { protocol: 17, ..base },
        ];
        assert!(others.iter().all(|other| other.key() != base.key()));
        assert_eq!(FlowFields { dscp: 8, ..base }.key(), base.key());
    }
}
