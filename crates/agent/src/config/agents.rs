//! The configurations of home and foreign agents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_assist::Place;
use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::Value;
use careof_document::units;
use careof_mobility::v4::{
    AdvertiserConfig, ForeignAgentConfig, ForeignLink, HomeAgentConfig, InterfaceId, PeerSecurity, Prefix,
    ReverseTunnel, SecurityAssociation, ServedMobileNode,
};
use careof_wire::mip4::Lifetime;

use super::Source;
use super::assist::assist;
use super::fields::{
    address, at_most, count, given, interface, lifetime_or_infinity, network, prefix, required, tables,
};
use super::key::security_association;
use super::multipath::multipath;
use super::reference::{ADVERTISEMENTS, FOREIGN_INTERFACE, MOBILE_NODE, MULTIPATH, PEER};
use super::service::host;
use crate::{Device, ForeignSetup, HomeNetwork, HomeSetup};

const DEFAULT_MAX_LIFETIME: Lifetime = Lifetime::from_secs(1800);
pub(super) const MOST: u64 = 10_000_000;
pub(super) const LONGEST_LATE: Duration = Duration::from_secs(60);

pub(super) fn home(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<HomeSetup> {
    let before = problems.count();
    let own = required(
        reader,
        "address",
        "a home agent needs its address: address = \"192.0.2.1\"",
        problems,
        address,
    );
    let expected = "a home agent needs its home network: home_network = \"192.0.2.0/24\"";
    let home_network = required(reader, "home_network", expected, problems, network);
    let deliveries = [("proxy-arp", HomeNetwork::Link), ("routed", HomeNetwork::Routed)];
    let delivery = given(reader, "delivery", problems, |field, p| field.choice(&deliveries, &[], p));
    let delivery = delivery.unwrap_or_default();
    let expected = "a home agent needs the interface to its home network: interface = \"eth0\"";
    let device = match delivery {
        HomeNetwork::Link => required(reader, "interface", expected, problems, interface),
        HomeNetwork::Routed => given(reader, "interface", problems, interface),
    };
    let max_lifetime =
        given(reader, "max_lifetime", problems, lifetime_or_infinity).unwrap_or(DEFAULT_MAX_LIFETIME);
    let advertisements = match reader.get("advertisements") {
        Some(field) if matches!(&field.node.value, Value::Text(text) if text == "off") => None,
        Some(field) => advertisements(&field, max_lifetime, problems),
        // Without a link there is nobody to hear them.
        None if delivery == HomeNetwork::Routed => None,
        None => Some(default_advertisements(max_lifetime)),
    };
    let encapsulations = encapsulations(reader, problems);
    let expected = "a home agent serves mobile nodes: write [[mobile_node]], once for each";
    let nodes = required(reader, "mobile_node", expected, problems, |field, problems| {
        mobile_nodes(field, own, home_network, source, problems)
    });
    let foreign_agents = peers(reader, "foreign_agent", source, problems);
    let per_node = given(reader, "max_bindings_per_node", problems, |field, p| count(field, 1, 64, p));
    let all = given(reader, "max_bindings", problems, |field, p| count(field, 1, MOST, p));
    let reverse_tunnel = reverse_tunnel(reader, problems);
    let late_reverse_tunnel =
        given(reader, "late_reverse_tunnel", problems, |field, p| at_most(field, LONGEST_LATE, p));
    let several = multipath(reader, &MULTIPATH, source, problems).map(|several| several.setup);
    let assist = assist(reader, Place::HomeAgent, problems);
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let home_interface = InterfaceId(0);
    let defaults = HomeAgentConfig::new(own?, home_network?, home_interface);
    let prefix_length = Some(defaults.home_network.length());
    let config = HomeAgentConfig {
        mobile_nodes: nodes?,
        foreign_agents,
        max_lifetime,
        max_bindings_per_node: per_node.unwrap_or(defaults.max_bindings_per_node),
        max_bindings: all.unwrap_or(defaults.max_bindings),
        reverse_tunnel,
        late_reverse_tunnel: late_reverse_tunnel.unwrap_or(defaults.late_reverse_tunnel),
        minimal_encapsulation: encapsulations.minimal,
        gre: encapsulations.gre,
        multipath: several.is_some(),
        advertisements: advertisements.map(|config| AdvertiserConfig { prefix_length, ..config }),
        ..defaults
    };
    let devices = device.into_iter().map(|name| Device { id: home_interface, name }).collect();
    let multipath = several.unwrap_or_default();
    Some(HomeSetup { config, devices, home_network: delivery, host, assist, multipath })
}

/// The `[[mobile_node]]` tables of a home agent; those with the same home address are one node.
fn mobile_nodes(
    field: &Field<'_>,
    own: Option<Ipv4Addr>,
    home_network: Option<Prefix>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<Vec<ServedMobileNode>> {
    let mut nodes: Vec<ServedMobileNode> = Vec::new();
    let mut places = BTreeMap::<Ipv4Addr, usize>::new();
    let read = tables(field, "mobile_node", problems, |field, _, problems| {
        let reader = field.reader(&MOBILE_NODE, problems)?;
        let expected = "a mobile node needs its home address: home_address = \"192.0.2.10\"";
        let home_address = required(&reader, "home_address", expected, problems, |field, problems| {
            let address = address(field, problems)?;
            at_home(field, address, home_network, problems)?;
            if Some(address) == own {
                field.wrong("this is the home agent's own address", None, problems);
                return None;
            }
            Some(address)
        });
        let permitted = given(&reader, "permitted", problems, |field, p| field.boolean(p)).unwrap_or(true);
        let security = security_association(&reader, source, problems);
        let (home_address, security) = (home_address?, security?);
        let place = places.get(&home_address).copied();
        match place.and_then(|place| nodes.get_mut(place)) {
            None => {
                places.insert(home_address, nodes.len());
                nodes.push(ServedMobileNode { permitted, ..ServedMobileNode::new(home_address, security) })
            }
            Some(node) => {
                let is_taken = node.security.iter().any(|other| other.spi() == security.spi());
                own_spi(&reader, home_address, is_taken, problems)?;
                node.permitted &= permitted;
                node.security.push(security);
            }
        }
        Some(())
    });
    read?;
    if nodes.is_empty() {
        field.wrong("a home agent serves at least one mobile node", None, problems);
        return None;
    }
    Some(nodes)
}

/// Reports an SPI that another key of the mobile node has.
pub(super) fn own_spi(
    reader: &Reader<'_>,
    home_address: impl fmt::Display,
    is_taken: bool,
    problems: &mut Problems,
) -> Option<()> {
    if is_taken {
        let expected = format!("{home_address} has a security association of this name already");
        reader.get("spi")?.wrong(expected, Some("give each key of a node its own spi".to_owned()), problems);
        return None;
    }
    Some(())
}

/// Reports an address that is not in the home network.
pub(super) fn at_home(
    field: &Field<'_>,
    address: Ipv4Addr,
    home_network: Option<Prefix>,
    problems: &mut Problems,
) -> Option<()> {
    match home_network {
        Some(network) if !network.contains(address) => {
            field.wrong(format!("it must be in the home network {network}"), None, problems);
            None
        }
        Some(network) if network.directed_broadcast() == Some(address) => {
            field.wrong(format!("it is the broadcast address of {network}"), None, problems);
            None
        }
        _ => Some(()),
    }
}

pub(super) fn foreign(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<ForeignSetup> {
    let before = problems.count();
    let expected = "a foreign agent needs a care-of address: care_of = \"198.51.100.1\"";
    let care_of =
        required(reader, "care_of", expected, problems, |field, problems| match &field.node.value {
            Value::List(_) => {
                let items = field.list("", problems);
                let addresses: Vec<_> = items.iter().filter_map(|item| address(item, problems)).collect();
                if items.is_empty() {
                    field.wrong("it must be at least one address", None, problems);
                }
                Some(addresses)
            }
            _ => address(field, problems).map(|address| vec![address]),
        });
    let own = given(reader, "address", problems, address);
    let max_lifetime =
        given(reader, "max_lifetime", problems, lifetime_or_infinity).unwrap_or(DEFAULT_MAX_LIFETIME);
    let advertised =
        given(reader, "advertisements", problems, |field, p| advertisements(field, max_lifetime, p));
    let advertised = advertised.unwrap_or_else(|| default_advertisements(max_lifetime));
    let expected = "a foreign agent needs a link with visitors: write [[interface]], once for each";
    let links = required(reader, "interface", expected, problems, |field, problems| {
        links(field, advertised, max_lifetime, problems)
    });
    let encapsulations = encapsulations(reader, problems);
    let prefixes = |key, problems: &mut _| {
        given(reader, key, problems, |field, problems| {
            let items = field.list("it must be an array of prefixes, such as [\"192.0.2.0/24\"]", problems);
            Some(items.iter().filter_map(|item| prefix(item, problems)).collect::<Vec<_>>())
        })
    };
    let admitted = prefixes("admitted", problems);
    let admitted_home_agents = prefixes("admitted_home_agents", problems);
    let max_visitors = given(reader, "max_visitors", problems, |field, p| count(field, 1, MOST, p));
    let share = |key, problems: &mut _| given(reader, key, problems, |field, p| count(field, 1, MOST, p));
    let max_visitors_per_station = share("max_visitors_per_station", problems);
    let max_visitors_per_home_agent = share("max_visitors_per_home_agent", problems);
    let max_pending = given(reader, "max_pending", problems, |field, p| count(field, 1, MOST, p));
    let max_pending_per_station = share("max_pending_per_station", problems);
    let pending_timeout = given(reader, "pending_timeout", problems, |field, p| field.positive_duration(p));
    let registration_required = given(reader, "registration_required", problems, |field, p| field.boolean(p));
    let encapsulating_delivery =
        given(reader, "encapsulating_delivery", problems, |field, p| field.boolean(p));
    let mobile_nodes = peers(reader, "mobile_node", source, problems);
    let home_agents = peers(reader, "home_agent", source, problems);
    let reverse_tunnel = reverse_tunnel(reader, problems);
    let assist = assist(reader, Place::ForeignAgent, problems);
    let host = host(reader, problems);
    if problems.count() > before {
        return None;
    }
    let (care_of_addresses, links) = (care_of?, links?);
    let &first = care_of_addresses.first()?;
    let defaults = ForeignAgentConfig::new(own.unwrap_or(first), first, links.first()?.0);
    let config = ForeignAgentConfig {
        care_of_addresses,
        links: links.iter().map(|(link, _)| *link).collect(),
        max_lifetime,
        max_visitors: max_visitors.unwrap_or(defaults.max_visitors),
        max_visitors_per_station,
        max_visitors_per_home_agent,
        max_pending: max_pending.unwrap_or(defaults.max_pending),
        max_pending_per_station,
        pending_timeout: pending_timeout.unwrap_or(defaults.pending_timeout),
        registration_required: registration_required.unwrap_or(defaults.registration_required),
        reverse_tunnel,
        encapsulating_delivery: encapsulating_delivery.unwrap_or(defaults.encapsulating_delivery),
        minimal_encapsulation: encapsulations.minimal,
        gre: encapsulations.gre,
        mobile_nodes,
        home_agents,
        admitted,
        admitted_home_agents,
        ..defaults
    };
    let devices = links.into_iter().map(|(link, name)| Device { id: link.interface, name }).collect();
    Some(ForeignSetup { config, devices, host, assist })
}

fn links(
    field: &Field<'_>,
    advertised: AdvertiserConfig,
    max_lifetime: Lifetime,
    problems: &mut Problems,
) -> Option<Vec<(ForeignLink, String)>> {
    let mut names = Vec::new();
    let links = tables(field, "interface", problems, |field, index, problems| {
        let reader = field.reader(&FOREIGN_INTERFACE, problems)?;
        let name = interface_name(&reader, &mut names, problems);
        let expected = "a foreign agent needs its address on the link: address = \"198.51.100.1\"";
        let own = required(&reader, "address", expected, problems, address);
        let special =
            given(&reader, "advertisements", problems, |field, p| advertisements(field, max_lifetime, p));
        let interface = InterfaceId(u16::try_from(index).ok()?);
        let link = ForeignLink { interface, address: own?, advertisements: special.unwrap_or(advertised) };
        Some((link, name?))
    })?;
    if links.is_empty() {
        field.wrong("a foreign agent has at least one link with visitors", None, problems);
        return None;
    }
    Some(links)
}

/// The `name` of an interface, which must not be among `names`.
pub(super) fn interface_name(
    reader: &Reader<'_>,
    names: &mut Vec<String>,
    problems: &mut Problems,
) -> Option<String> {
    const EXPECTED: &str = "an interface needs its name: name = \"wlan0\"";
    required(reader, "name", EXPECTED, problems, |field, problems| {
        let name = interface(field, problems)?;
        if names.contains(&name) {
            field.wrong("an interface of this name is there already", None, problems);
            return None;
        }
        names.push(name.clone());
        Some(name)
    })
}

fn default_advertisements(max_lifetime: Lifetime) -> AdvertiserConfig {
    AdvertiserConfig { registration_lifetime: max_lifetime, ..AdvertiserConfig::default() }
}

fn advertisements(
    field: &Field<'_>,
    max_lifetime: Lifetime,
    problems: &mut Problems,
) -> Option<AdvertiserConfig> {
    let before = problems.count();
    let reader = field.reader(&ADVERTISEMENTS, problems)?;
    let is_meant =
        given(&reader, "above_recommended_rate", problems, |field, problems| field.boolean(problems));
    let interval = given(&reader, "interval", problems, |field, problems| {
        let interval = field.positive_duration(problems)?;
        // An advertisement's lifetime is 16 bits of seconds.
        if interval < Duration::from_millis(10) || interval > Duration::from_secs(21_000) {
            field.wrong("it must lie between 10 ms and 21000 s", None, problems);
            return None;
        }
        if interval < Duration::from_secs(1) && is_meant != Some(true) {
            let expected = "RFC 5944 (section 2.3) calls one advertisement a second the reasonable maximum";
            let hint = "add above_recommended_rate = true to [advertisements] if it is meant".to_owned();
            field.wrong(expected, Some(hint), problems);
            return None;
        }
        Some(interval)
    });
    let mut config = AdvertiserConfig::every(interval.unwrap_or(Duration::from_secs(10)));
    config.registration_lifetime = max_lifetime;
    let shortest = config.max_interval * 3;
    let lifetime = given(&reader, "lifetime", problems, |field, problems| {
        let lifetime = field.positive_duration(problems)?;
        if lifetime.subsec_nanos() != 0 || lifetime.as_secs() > 65_535 {
            field.wrong("advertisements carry whole seconds, at most 65535", None, problems);
            return None;
        }
        if lifetime < shortest {
            let expected = format!("it must be at least three intervals, {}", units::duration(shortest));
            field.wrong(expected, None, problems);
            return None;
        }
        Some(lifetime)
    });
    config.lifetime = lifetime.unwrap_or(config.lifetime);
    let offered = given(&reader, "registration_lifetime", problems, |field, problems| {
        let offered = lifetime_or_infinity(field, problems)?;
        if offered > max_lifetime {
            field.wrong("it must not be longer than `max_lifetime`", None, problems);
            return None;
        }
        Some(offered)
    });
    config.registration_lifetime = offered.unwrap_or(max_lifetime);
    let destinations = [("multicast", careof_mobility::v4::ALL_SYSTEMS), ("broadcast", Ipv4Addr::BROADCAST)];
    let destination = given(&reader, "destination", problems, |field, p| field.choice(&destinations, &[], p));
    config.destination = destination.unwrap_or(config.destination);
    let router = given(&reader, "default_router", problems, |field, p| field.boolean(p));
    config.preference = router.unwrap_or(true).then_some(0);
    (problems.count() == before).then_some(config)
}

/// What is offered besides IP-in-IP.
struct Encapsulations {
    minimal: bool,
    gre: bool,
}

fn encapsulations(reader: &Reader<'_>, problems: &mut Problems) -> Encapsulations {
    const WORDS: [(&str, usize); 3] = [("ip-in-ip", 0), ("minimal", 1), ("gre", 2)];
    let mut offered = [true, false, false];
    let given = given(reader, "encapsulations", problems, |field, problems| {
        let items = field.list("it must be an array, such as [\"ip-in-ip\", \"gre\"]", problems);
        for item in &items {
            let chosen = item.choice(&WORDS, &[], problems).and_then(|index| offered.get_mut(index));
            if let Some(chosen) = chosen {
                *chosen = true;
            }
        }
        Some(())
    });
    match given {
        Some(()) => Encapsulations { minimal: offered[1], gre: offered[2] },
        None => Encapsulations { minimal: true, gre: true },
    }
}

fn reverse_tunnel(reader: &Reader<'_>, problems: &mut Problems) -> ReverseTunnel {
    const WORDS: [(&str, ReverseTunnel); 3] = [
        ("unavailable", ReverseTunnel::Unavailable),
        ("optional", ReverseTunnel::Optional),
        ("required", ReverseTunnel::Required),
    ];
    given(reader, "reverse_tunnel", problems, |field, p| field.choice(&WORDS, &[], p)).unwrap_or_default()
}

/// The security associations with peers in the tables `key`.
pub(super) fn peers(
    reader: &Reader<'_>,
    key: &str,
    source: Source<'_>,
    problems: &mut Problems,
) -> Vec<PeerSecurity> {
    let mut seen = BTreeSet::new();
    let read = given(reader, key, problems, |field, problems| {
        tables(field, key, problems, |field, _, problems| {
            let reader = field.reader(&PEER, problems)?;
            let expected = "a peer needs its address: address = \"198.51.100.1\"";
            let address = required(&reader, "address", expected, problems, |field, problems| {
                let address = address(field, problems)?;
                if !seen.insert(address) {
                    field.wrong("a peer with this address is there already", None, problems);
                    return None;
                }
                Some(address)
            });
            let security: Option<SecurityAssociation> = security_association(&reader, source, problems);
            Some(PeerSecurity { address: address?, security: security? })
        })
    });
    read.unwrap_or_default()
}
