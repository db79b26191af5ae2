//! Hierarchical Mobile IPv6 (RFC 5380): the configuration of a mobility anchor point, and the anchor points of a mobile node.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use careof_assist::Place;
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_mobility::InterfaceId;
use careof_mobility::v6::{
    MapAssociation, MapSelection, MobilityAnchorPointConfig, Prefix, ServedMobileNode,
};
use careof_wire::mip6::Lifetime;

use super::Source;
use super::agents::{LONGEST_LATE, MOST, own_spi};
use super::assist::assist;
use super::fields::{address, at_most, count, given, prefix, required, tables};
use super::ipv6::{home_link, host, identifier, lifetime, network};
use super::key::ipv6_security_association;
use super::mobile::percent;
use super::reference::{MAP6, REGIONAL_NODE6};
use crate::carrier::Ipv6HierarchicalMobileSetup;
use crate::{HomeNetwork, Ipv6AnchorPointSetup, Ipv6MobileSetup};

/// Prefixes of a domain, or of its neighbors.
const MOST_PREFIXES: usize = 1000;
/// Mobility anchor points that a mobile node has keys for.
const MOST_MAPS: usize = 64;
/// Bytes of a header of IPv6.
const HEADER: u16 = careof_wire::ipv6::Ipv6Header::LEN;

pub(super) fn anchor_point(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Ipv6AnchorPointSetup> {
    let before = problems.count();
    let expected = "a mobility anchor point needs its address: address = \"2001:db8:5::1\"";
    let own = required(reader, "address", expected, problems, address);
    let expected = "a mobility anchor point needs the network of its regional care-of addresses: network = \"2001:db8:5::/64\"";
    let regional_network = required(reader, "network", expected, problems, network);
    let interface = InterfaceId(0);
    let (delivery, home_link) = home_link(reader, interface, problems);
    let expected = "a mobility anchor point serves mobile nodes: write [[mobile_node]], once for each";
    let nodes = required(reader, "mobile_node", expected, problems, |field, problems| {
        mobile_nodes(field, (own, regional_network), source, problems)
    });
    let domain = given(reader, "domain", problems, prefixes);
    let neighbors = given(reader, "neighbors", problems, prefixes);
    let forwarding = given(reader, "forwarding", problems, |field, p| lifetime(field, Lifetime::MAX, p));
    let max_lifetime = given(reader, "max_lifetime", problems, |field, p| lifetime(field, Lifetime::MAX, p));
    let all = given(reader, "max_bindings", problems, |field, p| count(field, 1, MOST, p));
    let late_reverse_tunnel =
        given(reader, "late_reverse_tunnel", problems, |field, p| at_most(field, LONGEST_LATE, p));
    let refresh_advice_percent = given(reader, "refresh_advice", problems, percent);
    let assist = assist(reader, Place::HomeAgent, problems);
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let defaults = MobilityAnchorPointConfig::new(own?, regional_network?, interface);
    let config = MobilityAnchorPointConfig {
        mobile_nodes: nodes?,
        domain: domain.unwrap_or_default(),
        neighbors: neighbors.unwrap_or_default(),
        forwarding: forwarding.unwrap_or(defaults.forwarding),
        max_lifetime: max_lifetime.unwrap_or(defaults.max_lifetime),
        max_bindings: all.unwrap_or(defaults.max_bindings),
        late_reverse_tunnel: late_reverse_tunnel.unwrap_or(defaults.late_reverse_tunnel),
        refresh_advice_percent,
        // Nobody else can have an address where the network has no link.
        duplicate_address_detection: defaults
            .duplicate_address_detection
            .filter(|_| delivery == HomeNetwork::Link),
        ..defaults
    };
    Some(Ipv6AnchorPointSetup { config, home_link, host, assist })
}

fn prefixes(field: &Field<'_>, problems: &mut Problems) -> Option<Vec<Prefix>> {
    let before = problems.count();
    let items = field.list("it must be an array of prefixes, such as [\"2001:db8:100::/64\"]", problems);
    if items.len() > MOST_PREFIXES {
        field.wrong(format!("at most {MOST_PREFIXES} prefixes"), None, problems);
        return None;
    }
    let prefixes: Vec<Prefix> = items.iter().filter_map(|item| prefix(item, problems)).collect();
    (problems.count() == before).then_some(prefixes)
}

/// The `[[mobile_node]]` tables of a mobility anchor point; those with the same regional address are one node.
fn mobile_nodes(
    field: &Field<'_>,
    (own, regional_network): (Option<Ipv6Addr>, Option<Prefix>),
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Vec<ServedMobileNode>> {
    let mut nodes: Vec<ServedMobileNode> = Vec::new();
    let mut places = BTreeMap::<Ipv6Addr, usize>::new();
    tables(field, "mobile_node", problems, |field, _, problems| {
        let reader = field.reader(&REGIONAL_NODE6, problems)?;
        let expected =
            "a mobile node needs its regional care-of address: regional_address = \"2001:db8:5::7\"";
        let regional = required(&reader, "regional_address", expected, problems, |field, problems| {
            let regional: Ipv6Addr = address(field, problems)?;
            if Some(regional) == own {
                field.wrong("this is the mobility anchor point's own address", None, problems);
                return None;
            }
            if let Some(network) = regional_network.filter(|network| !network.contains(regional)) {
                field.wrong(format!("it must be in the network {network}"), None, problems);
                return None;
            }
            Some(regional)
        });
        let permitted = given(&reader, "permitted", problems, |field, p| field.boolean(p)).unwrap_or(true);
        let identifier = given(&reader, "identifier", problems, identifier);
        let security = ipv6_security_association(&reader, source, problems);
        let (regional, security) = (regional?, security?);
        match places.get(&regional).copied().and_then(|place| nodes.get_mut(place)) {
            None => {
                places.insert(regional, nodes.len());
                let node = ServedMobileNode::new(regional, security);
                nodes.push(ServedMobileNode { permitted, identifier, ..node });
            }
            Some(node) => {
                let is_taken = node.security.iter().any(|other| other.spi() == security.spi());
                own_spi(&reader, regional, is_taken, problems)?;
                node.permitted &= permitted;
                node.identifier = node.identifier.take().or(identifier);
                node.security.push(security);
            }
        }
        Some(())
    })?;
    if nodes.is_empty() {
        field.wrong("a mobility anchor point serves at least one mobile node", None, problems);
        return None;
    }
    Some(nodes)
}

/// What a mobile node's file says of mobility anchor points.
#[derive(Debug)]
pub(super) struct Maps {
    associations: Vec<MapAssociation>,
    selection: Option<MapSelection>,
    patience: Option<u32>,
    forwarding: Option<Option<Duration>>,
}

/// The keys of other parts that go without mobility anchor points only, and the value that they have with one.
const WITHOUT_MAPS: [&str; 6] = [
    "simultaneous_bindings",
    "report_paths",
    "path_monitor",
    "leave_bad_paths",
    "ipv4_home_agent",
    "ipv4_home_address",
];

/// The `[[map]]` tables of a mobile node and what belongs to them; `None` if it has none.
pub(super) fn maps(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<Maps> {
    let selections = [
        ("furthest", MapSelection::Furthest),
        ("highest-preference", MapSelection::HighestPreference),
        ("nearest", MapSelection::Nearest),
    ];
    if reader.get("map").is_none() {
        let reason =
            "it is about mobility anchor points: write [[map]], once for each that the node has a key for";
        reader.refuse(&["map_selection", "map_attempts", "map_forwarding"], reason, problems);
        return None;
    }
    reader.refuse(&WITHOUT_MAPS, "it does not go with mobility anchor points, [[map]]", problems);
    let associations =
        given(reader, "map", problems, |field, problems| associations(field, source, problems));
    let selection = given(reader, "map_selection", problems, |field, p| field.choice(&selections, &[], p));
    let patience = given(reader, "map_attempts", problems, |field, p| field.integer(1, 1000, p));
    let forwarding = given(reader, "map_forwarding", problems, forwarding);
    let patience = patience.and_then(|attempts| u32::try_from(attempts).ok());
    Some(Maps { associations: associations?, selection, patience, forwarding })
}

/// For how long packets are sent on, or not at all.
fn forwarding(field: &Field<'_>, problems: &mut Problems) -> Option<Option<Duration>> {
    if matches!(&field.node.value, Value::Text(text) if text == "off") {
        return Some(None);
    }
    lifetime(field, Lifetime::MAX, problems).map(|span| Some(span.duration()))
}

fn associations(
    field: &Field<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Vec<MapAssociation>> {
    let mut known = Vec::new();
    let associations = tables(field, "map", problems, |field, _, problems| {
        let reader = field.reader(&MAP6, problems)?;
        let expected = "a mobility anchor point has an address: address = \"2001:db8:5::1\"";
        let own = required(&reader, "address", expected, problems, |field, problems| {
            let own: Ipv6Addr = address(field, problems)?;
            if known.contains(&own) {
                field.wrong("another [[map]] has it already", None, problems);
                return None;
            }
            known.push(own);
            Some(own)
        });
        let regional_address = given(&reader, "regional_address", problems, |field, problems| {
            let regional: Ipv6Addr = address(field, problems)?;
            if Some(regional) == own {
                field.wrong("this is the mobility anchor point's own address", None, problems);
                return None;
            }
            Some(regional)
        });
        let security = ipv6_security_association(&reader, source, problems);
        Some(MapAssociation { regional_address, ..MapAssociation::new(own?, security?) })
    })?;
    if associations.len() > MOST_MAPS {
        field.wrong(format!("at most {MOST_MAPS} mobility anchor points"), None, problems);
        return None;
    }
    Some(associations)
}

impl Maps {
    /// The mobile node that uses them. Its tunnel device leaves room for one header more, unless the file says how much it leaves.
    pub(super) fn of(self, mut mobile: Ipv6MobileSetup, says_mtu: bool) -> Ipv6HierarchicalMobileSetup {
        mobile.config.report_paths = false;
        mobile.config.path_monitor = false;
        mobile.config.leave_bad_paths = false;
        if !says_mtu {
            mobile.host.tunnel_mtu -= HEADER;
        }
        let defaults = Ipv6HierarchicalMobileSetup::new(mobile, self.associations);
        Ipv6HierarchicalMobileSetup {
            selection: self.selection.unwrap_or(defaults.selection),
            patience: self.patience.unwrap_or(defaults.patience),
            forwarding: self.forwarding.unwrap_or(defaults.forwarding),
            ..defaults
        }
    }
}
