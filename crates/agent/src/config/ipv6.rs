//! The configurations of agents of Mobile IPv6.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use careof_assist::Place;
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_mobility::v6::{
    CorrespondentNodeConfig, HomeAgentConfig, InterfaceConfig, MobileNodeConfig, MovementConfig, Prefix,
    PrefixAdvertisementConfig, RetransmissionConfig, RouteOptimizationConfig, ServedMobileNode,
};
use careof_mobility::{InterfaceId, v4};
use careof_wire::mip6::{Lifetime, MobileNodeIdentifier};

use super::Source;
use super::agents::{LONGEST_LATE, MOST, interface_name, own_spi};
use super::assist::assist;
use super::fields::{self, Ip, address, at_most, count, given, interface, prefix, required, tables};
use super::hierarchical::maps;
use super::key::ipv6_security_association;
use super::mobile::{
    a_few, cost, home_agent, keep_old, path_properties, percent, refuse_choice_of_paths, selection,
};
use super::reference::{HOST6, MOBILE_INTERFACE6, MOBILE_NODE6};
use super::service::host_in_common;
use crate::{
    Device, HomeNetwork, HostOptions, Ipv6CorrespondentSetup, Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup,
};

/// Binding Updates that are sent early unless the file says otherwise, as registration requests over IPv4.
const EARLY_UPDATES: u32 = 2;
/// A home network has room for the anycast address of its home agents beside others (RFC 2526).
const LONGEST_PREFIX: u8 = 120;
/// The least that IPv6 carries everywhere (RFC 8200 section 5), and the most that a second header leaves.
const TUNNEL_MTU: (u16, u16) = (1280, 65_495);

pub(super) fn home(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Ipv6HomeSetup> {
    let before = problems.count();
    let expected = "a home agent needs its address: address = \"2001:db8:1::1\"";
    let own = required(reader, "address", expected, problems, address);
    let expected = "a home agent needs its home network: home_network = \"2001:db8:1::/64\"";
    let home_network = required(reader, "home_network", expected, problems, network);
    let home_interface = InterfaceId(0);
    let (delivery, home_link) = home_link(reader, home_interface, problems);
    let max_lifetime = given(reader, "max_lifetime", problems, |field, p| lifetime(field, Lifetime::MAX, p));
    let ipv4_address = given(reader, "ipv4_address", problems, ipv4);
    let ipv4_home_network = given(reader, "ipv4_home_network", problems, fields::network);
    let own = Own { address: own, ipv4_address, ipv4_home_network };
    let expected = "a home agent serves mobile nodes: write [[mobile_node]], once for each";
    let nodes = required(reader, "mobile_node", expected, problems, |field, problems| {
        mobile_nodes(field, own, home_network, source, problems)
    });
    let per_node = given(reader, "max_bindings_per_node", problems, |field, p| count(field, 1, 64, p));
    let all = given(reader, "max_bindings", problems, |field, p| count(field, 1, MOST, p));
    let late_reverse_tunnel =
        given(reader, "late_reverse_tunnel", problems, |field, p| at_most(field, LONGEST_LATE, p));
    let refresh_advice_percent = given(reader, "refresh_advice", problems, percent);
    let assist = assist(reader, Place::HomeAgent, problems);
    let tells_prefixes = given(reader, "prefix_advertisements", problems, |field, p| field.boolean(p));
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let defaults = HomeAgentConfig::new(own.address?, home_network?, home_interface);
    let config = HomeAgentConfig {
        mobile_nodes: nodes?,
        ipv4_address,
        ipv4_home_prefix_len: ipv4_home_network.map_or(32, v4::Prefix::length),
        max_lifetime: max_lifetime.unwrap_or(defaults.max_lifetime),
        max_bindings_per_node: per_node.unwrap_or(defaults.max_bindings_per_node),
        max_bindings: all.unwrap_or(defaults.max_bindings),
        late_reverse_tunnel: late_reverse_tunnel.unwrap_or(defaults.late_reverse_tunnel),
        refresh_advice_percent,
        prefix_advertisements: (tells_prefixes == Some(true)).then(PrefixAdvertisementConfig::default),
        // Nobody else can have a home address where the home network has no link.
        duplicate_address_detection: defaults
            .duplicate_address_detection
            .filter(|_| delivery == HomeNetwork::Link),
        ..defaults
    };
    Some(Ipv6HomeSetup { config, home_link, host, assist })
}

/// A home agent's own addresses, and the network of those of its mobile nodes that are of IPv4.
#[derive(Clone, Copy)]
struct Own {
    address: Option<Ipv6Addr>,
    ipv4_address: Option<Ipv4Addr>,
    ipv4_home_network: Option<v4::Prefix>,
}

/// How packets for the network of a home agent or mobility anchor point come, and the link if they come by one.
pub(super) fn home_link(
    reader: &Reader<'_>,
    id: InterfaceId,
    problems: &mut Problems,
) -> (HomeNetwork, Option<Device>) {
    let delivery = given(reader, "delivery", problems, delivery).unwrap_or(HomeNetwork::Routed);
    let expected = "an agent on a link needs the interface to its network: interface = \"eth0\"";
    let name = match delivery {
        HomeNetwork::Link => required(reader, "interface", expected, problems, interface),
        HomeNetwork::Routed => {
            given(reader, "interface", problems, |field, problems| {
                let hint = "leave it out, or write delivery = \"proxy-ndp\"";
                field.wrong("a network that is routed here has no link", Some(hint.to_owned()), problems);
                None::<()>
            });
            None
        }
    };
    (delivery, name.map(|name| Device { id, name }))
}

/// How packets for the home network come.
fn delivery(field: &Field<'_>, problems: &mut Problems) -> Option<HomeNetwork> {
    let deliveries = [("proxy-ndp", HomeNetwork::Link), ("routed", HomeNetwork::Routed)];
    if matches!(&field.node.value, Value::Text(text) if text == "proxy-arp") {
        field.wrong("it is one of IPv4", Some("write \"proxy-ndp\"".to_owned()), problems);
        return None;
    }
    field.choice(&deliveries, &[], problems)
}

/// The `[[mobile_node]]` tables of a home agent; those with the same home address are one node.
fn mobile_nodes(
    field: &Field<'_>,
    own: Own,
    home_network: Option<Prefix>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Vec<ServedMobileNode>> {
    let mut nodes: Vec<ServedMobileNode> = Vec::new();
    let mut places = BTreeMap::<Ipv6Addr, usize>::new();
    let mut ipv4_homes = BTreeMap::<Ipv4Addr, Ipv6Addr>::new();
    tables(field, "mobile_node", problems, |field, _, problems| {
        let reader = field.reader(&MOBILE_NODE6, problems)?;
        let expected = "a mobile node needs its home address: home_address = \"2001:db8:1::7\"";
        let home_address = required(&reader, "home_address", expected, problems, |field, problems| {
            let address = home_address(field, home_network, problems)?;
            if Some(address) == own.address {
                field.wrong("this is the home agent's own address", None, problems);
                return None;
            }
            Some(address)
        });
        let permitted = given(&reader, "permitted", problems, |field, p| field.boolean(p)).unwrap_or(true);
        let identifier = given(&reader, "identifier", problems, identifier);
        let ipv4_home_address = given(&reader, "ipv4_home_address", problems, |field, problems| {
            let address = ipv4(field, problems)?;
            if Some(address) == own.ipv4_address {
                field.wrong("this is the home agent's own address", None, problems);
                return None;
            }
            if let Some(network) = own.ipv4_home_network.filter(|network| !network.contains(address)) {
                field.wrong(format!("the IPv4 home network is {network}"), None, problems);
                return None;
            }
            // Two tables of one node may both say it.
            let owner = ipv4_homes.get(&address).copied();
            if owner.is_some() && owner != home_address {
                field.wrong("another mobile node has it already", None, problems);
                return None;
            }
            ipv4_homes.extend(home_address.map(|home_address| (address, home_address)));
            Some(address)
        });
        let security = ipv6_security_association(&reader, source, problems);
        let (home_address, security) = (home_address?, security?);
        let place = places.get(&home_address).copied();
        match place.and_then(|place| nodes.get_mut(place)) {
            None => {
                places.insert(home_address, nodes.len());
                nodes.push(ServedMobileNode {
                    permitted,
                    identifier,
                    ipv4_home_address,
                    ..ServedMobileNode::new(home_address, security)
                });
            }
            Some(node) => {
                let is_taken = node.security.iter().any(|other| other.spi() == security.spi());
                own_spi(&reader, home_address, is_taken, problems)?;
                if identifier.is_some() && node.identifier.is_some() && identifier != node.identifier {
                    let expected = format!("{home_address} has another identifier already");
                    reader.get("identifier")?.wrong(expected, None, problems);
                    return None;
                }
                let other =
                    node.ipv4_home_address.filter(|other| ipv4_home_address.is_some_and(|own| own != *other));
                if let Some(other) = other {
                    let expected = format!("{home_address} has {other} already");
                    reader.get("ipv4_home_address")?.wrong(expected, None, problems);
                    return None;
                }
                node.ipv4_home_address = node.ipv4_home_address.or(ipv4_home_address);
                node.permitted &= permitted;
                node.identifier = node.identifier.take().or(identifier);
                node.security.push(security);
            }
        }
        Some(())
    })?;
    if nodes.is_empty() {
        field.wrong("a home agent serves at least one mobile node", None, problems);
        return None;
    }
    Some(nodes)
}

/// A mobile node, with mobility anchor points where the file names any.
pub(super) fn mobile(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<Ipv6Setup> {
    let before = problems.count();
    let maps = maps(reader, source, problems);
    let mobile = mobile_node(reader, source, problems);
    if problems.count() > before {
        return None;
    }
    let host = reader.get("host").and_then(|field| field.reader(&HOST6, problems));
    let says_mtu = host.is_some_and(|reader| reader.get("tunnel_mtu").is_some());
    Some(match maps {
        Some(maps) => Ipv6Setup::HierarchicalMobile(Box::new(maps.of(mobile?, says_mtu))),
        None => Ipv6Setup::Mobile(mobile?),
    })
}

fn mobile_node(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<Ipv6MobileSetup> {
    let before = problems.count();
    let expected = "a mobile node needs its home network: home_network = \"2001:db8:1::/64\"";
    let home_network = required(reader, "home_network", expected, problems, network);
    let expected = "a mobile node needs its home address: home_address = \"2001:db8:1::7\"";
    let home_address = required(reader, "home_address", expected, problems, |field, problems| {
        home_address(field, home_network, problems)
    });
    let home_agent = given(reader, "home_agent", problems, |field, p| home_agent(field, home_address, p));
    let home_agent_ipv4 = given(reader, "ipv4_home_agent", problems, |field, problems| {
        if home_agent.is_none() {
            let hint = "write `home_agent`, its address of IPv6";
            field.wrong("a home agent is found by asking over IPv6 only", Some(hint.to_owned()), problems);
            return None;
        }
        ipv4(field, problems)
    });
    let ipv4_home_address = given(reader, "ipv4_home_address", problems, |field, problems| {
        let is_any = matches!(&field.node.value, Value::Text(text) if text == "0.0.0.0");
        let address = if is_any { Some(Ipv4Addr::UNSPECIFIED) } else { ipv4(field, problems) };
        if address.is_some() && address == home_agent_ipv4 {
            field.wrong("this is the home agent's address", None, problems);
            return None;
        }
        address
    });
    let security = ipv6_security_association(reader, source, problems);
    let identifier = given(reader, "identifier", problems, identifier);
    let asked = given(reader, "lifetime", problems, |field, p| lifetime(field, Lifetime::MAX, p));
    let renew_after_percent = given(reader, "renew_after", problems, percent);
    let attempts = given(reader, "attempts", problems, |field, p| field.integer(1, 1000, p));
    let early = given(reader, "early_requests", problems, |field, p| field.integer(0, 2, p));
    let mut flag = |key: &str| given(reader, key, problems, |field, p| field.boolean(p));
    let optimises_routes = flag("route_optimization").unwrap_or(false);
    let multiple_care_of = flag("simultaneous_bindings").unwrap_or(false);
    let report_paths = flag("report_paths").unwrap_or(true);
    let optimistic_detection = flag("optimistic_detection").unwrap_or(true);
    let path_monitor = flag("path_monitor").unwrap_or(true);
    let leave_bad_paths = flag("leave_bad_paths").unwrap_or(true);
    let selection = selection(reader, problems);
    refuse_choice_of_paths(reader, selection, path_monitor, problems);
    let detections = [("link-trigger", false), ("unreachable-router", true)];
    let unreachable_router =
        given(reader, "movement_detection", problems, |field, p| field.choice(&detections, &[], p));
    let assist = assist(reader, Place::MobileNode, problems);
    let keep_old = keep_old(reader, problems);
    let expected =
        "a mobile node needs an interface: write [[interface]], once for each, the preferred one first";
    let interfaces = required(reader, "interface", expected, problems, interfaces);
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let (interfaces, names): (Vec<_>, Vec<_>) = interfaces?.into_iter().unzip();
    let devices =
        interfaces.iter().zip(names).map(|(interface, name)| Device { id: interface.id, name }).collect();
    let (home_address, home_network) = (home_address?, home_network?);
    // The address is replaced by what the file says, which may be nothing.
    let defaults = MobileNodeConfig::new(home_address, home_network, home_address, security?, interfaces);
    let config = MobileNodeConfig {
        home_agent,
        home_agent_ipv4,
        ipv4_home_address,
        identifier,
        lifetime: asked.unwrap_or(defaults.lifetime),
        renew_after_percent: renew_after_percent.unwrap_or(defaults.renew_after_percent),
        multiple_care_of,
        retransmission: RetransmissionConfig {
            attempts: attempts.map_or(defaults.retransmission.attempts, |count| u32::try_from(count).ok()),
            early: early.and_then(|count| u32::try_from(count).ok()).unwrap_or(EARLY_UPDATES),
            ..defaults.retransmission
        },
        movement: MovementConfig {
            unreachable_router: unreachable_router.unwrap_or(defaults.movement.unreachable_router),
            ..defaults.movement
        },
        selection,
        keep_old,
        report_paths,
        path_monitor,
        leave_bad_paths,
        route_optimization: optimises_routes.then(RouteOptimizationConfig::default),
        ..defaults
    };
    Some(Ipv6MobileSetup { config, devices, optimistic_detection, host, assist, fast_handover: None })
}

fn interfaces(field: &Field<'_>, problems: &mut Problems) -> Option<Vec<(InterfaceConfig, String)>> {
    let mut names = Vec::new();
    let mut interfaces = tables(field, "interface", problems, |field, index, problems| {
        let reader = field.reader(&MOBILE_INTERFACE6, problems)?;
        let name = interface_name(&reader, &mut names, problems);
        let path = path_properties(&reader, problems);
        let metered = cost(&reader, problems);
        let id = InterfaceId(u16::try_from(index).ok()?);
        let interface = InterfaceConfig { path, metered, ..InterfaceConfig::new(id) };
        Some((interface, name?))
    })?;
    a_few(field, &interfaces, problems)?;
    // The first is the best.
    for (preference, (interface, _)) in interfaces.iter_mut().rev().enumerate() {
        interface.preference = u8::try_from(preference).unwrap_or(u8::MAX);
    }
    Some(interfaces)
}

pub(super) fn correspondent(reader: &Reader<'_>, problems: &mut Problems) -> Option<Ipv6CorrespondentSetup> {
    let before = problems.count();
    let expected = "a correspondent node needs its address: address = \"2001:db8:9::2\"";
    let own = required(reader, "address", expected, problems, address);
    let mobile_nodes = given(reader, "max_mobile_nodes", problems, |field, p| count(field, 1, MOST, p));
    let max_mobile_nodes_per_site =
        given(reader, "max_mobile_nodes_per_site", problems, |field, p| count(field, 1, MOST, p));
    let per_node = given(reader, "max_bindings_per_node", problems, |field, p| count(field, 1, 64, p));
    let longest = CorrespondentNodeConfig::MAX_LIFETIME;
    let max_lifetime = given(reader, "max_lifetime", problems, |field, p| lifetime(field, longest, p));
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let defaults = CorrespondentNodeConfig::new(own?);
    let config = CorrespondentNodeConfig {
        max_mobile_nodes: mobile_nodes.unwrap_or(defaults.max_mobile_nodes),
        max_mobile_nodes_per_site,
        max_bindings_per_node: per_node.unwrap_or(defaults.max_bindings_per_node),
        max_lifetime: max_lifetime.unwrap_or(defaults.max_lifetime),
        ..defaults
    };
    Some(Ipv6CorrespondentSetup { config, host })
}

/// What the agent takes of the host.
pub(super) fn host(reader: &Reader<'_>, problems: &mut Problems) -> HostOptions {
    let mut host = HostOptions::for_ipv6();
    let Some(reader) = reader.get("host").and_then(|field| field.reader(&HOST6, problems)) else {
        return host;
    };
    host_in_common(&reader, TUNNEL_MTU, &mut host, problems);
    host
}

fn home_address(
    field: &Field<'_>,
    home_network: Option<Prefix>,
    problems: &mut Problems,
) -> Option<Ipv6Addr> {
    let address = address(field, problems)?;
    match home_network {
        Some(network) if !network.contains(address) => {
            field.wrong(format!("it must be in the home network {network}"), None, problems);
            None
        }
        // The Subnet-Router anycast address (RFC 4291 section 2.6.1).
        Some(network) if network.address() == address => {
            let expected = format!("it is the address of all routers of {network}");
            field.wrong(expected, None, problems);
            None
        }
        _ => Some(address),
    }
}

/// An address of IPv4 that a host can have and others can reach.
fn ipv4(field: &Field<'_>, problems: &mut Problems) -> Option<Ipv4Addr> {
    let Ok(address) = field.text(problems)?.parse::<Ipv4Addr>() else {
        field.wrong(Ipv4Addr::ADDRESS, None, problems);
        return None;
    };
    let is_unfit = address.unfit().is_some() || address.is_link_local() || address.octets()[0] == 0;
    if is_unfit {
        field.wrong("no host can be reached by this address beyond its link", None, problems);
        return None;
    }
    Some(address)
}

/// The network of a home link.
pub(super) fn network(field: &Field<'_>, problems: &mut Problems) -> Option<Prefix> {
    let prefix: Prefix = prefix(field, problems)?;
    if !(1..=LONGEST_PREFIX).contains(&prefix.length()) {
        let expected = format!("the prefix of a home network has 1 to {LONGEST_PREFIX} bits");
        field.wrong(expected, Some("give its length, as \"2001:db8:1::/64\"".to_owned()), problems);
        return None;
    }
    Some(prefix)
}

/// A lifetime of a binding: counted in units of 4 s.
pub(super) fn lifetime(field: &Field<'_>, most: Lifetime, problems: &mut Problems) -> Option<Lifetime> {
    let span = field.positive_duration(problems)?;
    let unit = u64::from(Lifetime::UNIT_SECS);
    let is_whole = span.subsec_nanos() == 0 && span.as_secs().is_multiple_of(unit);
    let longest = most.duration().as_secs();
    if !is_whole || span.as_secs() > longest {
        let expected = format!("bindings live for a multiple of {unit} s, at most {longest} s");
        let near = (span.as_secs() / unit * unit).clamp(unit, longest);
        field.wrong(expected, Some(format!("write \"{near} s\"")), problems);
        return None;
    }
    Some(Lifetime::from_duration(span))
}

/// How a mobile node calls itself.
pub(super) fn identifier(field: &Field<'_>, problems: &mut Problems) -> Option<MobileNodeIdentifier> {
    let text = field.text(problems)?;
    let is_text = !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
    let identifier = is_text.then(|| MobileNodeIdentifier::new(MobileNodeIdentifier::NAI, text.as_bytes()));
    let identifier = identifier.flatten();
    if identifier.is_none() {
        let expected =
            "it must be a network access identifier, such as \"laptop@example.org\", of at most 254 bytes";
        field.wrong(expected, None, problems);
    }
    identifier
}
