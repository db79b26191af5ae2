//! A domain of micro-mobility: its routers and the mobile nodes in it.

use core::net::Ipv4Addr;
use std::collections::BTreeMap;

use careof_base::Duration;
use careof_metrics::MicroMobilitySummary;
use careof_mobility::micro::{
    Blocks, Buffer, BufferCounters, CellularHandover, CellularIp, Counters, Downlink, Event, GroupMapping,
    Hawaii, HostConfig, HostEvent, MessageDrop, MulticastMobility, NetworkKey, PathScheme, Ports, Role,
    RouterConfig, RouterLimits, Scheme, Trigger, WhenFull,
};
use careof_mobility::v4::Prefix;
use careof_mobility::{ConfigError, InterfaceId};
use careof_scenario::{
    BuildingBlocks, CandidateBuffer, CandidateSet, CellularHandover as CellularWord, MicroMobility,
    MicroProtocol, PathScheme as PathWord, Scenario, Trigger as TriggerWord, WhenFull as WhenFullWord,
};

use crate::agents::wall_clock;
use crate::layout::stream;
use crate::topology::{Home, NodeId, Place, Route, Topology};

/// Everybody in a domain.
#[derive(Clone, Debug)]
pub struct DomainPlan {
    /// The gateway.
    pub gateway: NodeId,
    /// Its routers, the gateway first. Interface `n` of a node is `InterfaceId(n)` to its router, and the cell of a base station is behind
    /// its wired interfaces.
    pub routers: Vec<(NodeId, RouterConfig)>,
    /// The mobile nodes in order.
    pub hosts: Vec<(NodeId, HostConfig)>,
    /// The base stations in order.
    pub stations: Vec<NodeId>,
    /// How long before a handover it is announced; `None`: it is not.
    pub lead: Option<Duration>,
    /// Whether what is announced is said to the next base station, over its radio.
    pub is_semi_soft: bool,
    /// Whether base stations confirm what mobile nodes say.
    pub confirms: bool,
}

impl DomainPlan {
    /// Whether a node is one of its routers.
    #[must_use]
    pub fn has_router(&self, node: NodeId) -> bool {
        self.routers.iter().any(|(router, _)| *router == node)
    }

    /// Whether a node is one of its routers, and not the gateway.
    #[must_use]
    pub fn is_inner(&self, node: NodeId) -> bool {
        node != self.gateway && self.has_router(node)
    }
}

/// The domain of `scenario` in repetition `run`; `None` without one.
///
/// # Errors
/// What a router has against its configuration.
#[must_use]
pub fn domain(scenario: &Scenario, topology: &Topology, run: u64) -> Option<Result<DomainPlan, ConfigError>> {
    let mobility = scenario.mobility.as_ref()?;
    let (domain, fleet) = mobility.micro_mobility.as_ref().zip(mobility.fleet.as_ref())?;
    let find = |node| topology.find(&scenario.node(node).name);
    let stations: Vec<NodeId> = fleet.stations.iter().filter_map(|node| find(*node)).collect();
    let nodes: Vec<NodeId> =
        core::iter::once(domain.gateway).chain(domain.routers.iter().copied()).filter_map(find).collect();
    let home = topology.homes.first()?;
    Some(plan(scenario, topology, run, domain, home, nodes, stations))
}

fn plan(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    domain: &MicroMobility,
    home: &Home,
    nodes: Vec<NodeId>,
    stations: Vec<NodeId>,
) -> Result<DomainPlan, ConfigError> {
    let prefix = Prefix::new(home.agent_address.to_ipv4(), topology.home_prefix_len());
    let mut random = stream(scenario, run, "micro-mobility.key");
    let key = NetworkKey::new([random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat())?;
    let scheme = scheme(&domain.protocol, stations.len(), prefix);
    // Who hangs on whom: a node stands behind the one that it hangs on.
    let place_of: BTreeMap<NodeId, usize> = nodes.iter().copied().zip(0..).collect();
    let mut below: Vec<Vec<NodeId>> = vec![Vec::new(); nodes.len()];
    for (n, node) in nodes.iter().enumerate().rev() {
        if stations.contains(node) {
            below[n].push(*node);
        }
        let peers =
            topology.place(*node).interfaces.iter().filter_map(|interface| place_of.get(&interface.peer));
        let above = peers.copied().find(|peer| *peer < n);
        if let Some(above) = above {
            let stations = below[n].clone();
            below[above].extend(stations);
        }
    }
    let address_of = |station: &NodeId| {
        let cell = topology.place(*station).cell;
        cell.map_or_else(|| topology.address_of(*station), |cell| cell.address).to_ipv4()
    };
    let count = topology.homes.mobile_nodes().count();
    let mut routers = Vec::new();
    for (n, node) in nodes.iter().enumerate() {
        let place = topology.place(*node);
        let number = stations.iter().position(|station| station == node);
        let (role, address) = match (n, number) {
            (0, _) => (Role::Gateway, topology.address_of(*node).to_ipv4()),
            (_, Some(_)) => (Role::BaseStation, address_of(node)),
            (_, None) => (Role::Inner, topology.address_of(*node).to_ipv4()),
        };
        let mut config = RouterConfig::new(address, role, prefix, key.clone(), scheme);
        config.clock = wall_clock();
        let usual = RouterLimits::default();
        config.limits = RouterLimits { mobiles: usual.mobiles.max(count), ..usual };
        for (interface, id) in place.interfaces.iter().zip((0..).map(InterfaceId)) {
            match place_of.get(&interface.peer) {
                Some(&peer) if peer > n => {
                    let stations = below[peer].iter().map(address_of).collect();
                    config.downlinks.push(Downlink { interface: id, stations });
                }
                Some(_) => config.uplink = Some(id),
                None => {}
            }
        }
        if n == 0
            && let Route::Via(interface) = place.route(home.agent_address)
        {
            config.uplink = Some(InterfaceId(interface.0));
        }
        if let (Some(cell), Some(number)) = (place.cell, number) {
            config.cell = Some(InterfaceId(cell.interface.0));
            config.neighbors = neighbors(number, stations.len()).map(|n| address_of(&stations[n])).collect();
        }
        routers.push((*node, config));
    }
    let host = |node: NodeId| {
        let address = topology.address_of(node).to_ipv4();
        (node, HostConfig { address, key: key.mobile_key(address), clock: wall_clock(), scheme })
    };
    Ok(DomainPlan {
        gateway: nodes.first().copied().unwrap_or(NodeId(0)),
        routers,
        hosts: topology.homes.mobile_nodes().map(host).collect(),
        lead: scheme.lead(),
        is_semi_soft: domain.protocol.is_semi_soft(),
        confirms: !matches!(scheme, Scheme::CellularIp(_)),
        stations,
    })
}

/// The other ones of `count` base stations in a row that begins anew behind its end, the nearest first, of two alike the one behind.
fn neighbors(number: usize, count: usize) -> impl Iterator<Item = usize> {
    let both = move |distance: usize| {
        let [behind, before] = [(number + distance) % count, (number + count - distance) % count];
        core::iter::once(behind).chain((before != behind).then_some(before))
    };
    (1..=count / 2).flat_map(both)
}

/// What the routers and mobile nodes of a domain have counted, and what its base stations kept.
#[must_use]
pub fn sum_of_domain<'a>(
    counters: impl IntoIterator<Item = &'a Counters>,
    kept: impl IntoIterator<Item = &'a BufferCounters>,
) -> MicroMobilitySummary {
    let mut summary = MicroMobilitySummary::default();
    for counters in counters {
        summary.messages_sent += counters.sent;
        summary.copies += counters.copies;
        for reason in MessageDrop::ALL {
            let count = counters.messages_dropped(reason);
            if count > 0 {
                *summary.messages_discarded.entry(reason.name().to_owned()).or_default() += count;
            }
        }
    }
    for kept in kept {
        summary.packets_kept += kept.kept;
        summary.packets_released += kept.released;
    }
    summary
}

/// What is written down of an event of a router, by its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouterNote {
    /// A host route: what became of it, whose and where it leads.
    Route(&'static str, String),
    /// A phase of a handover.
    Handover(&'static str, String),
}

/// An event of the router at `place`, in words; `None` for what the agent only counts.
#[must_use]
pub fn router_event_text(topology: &Topology, place: &Place, event: &Event) -> Option<RouterNote> {
    let names = |ports: &Ports| {
        let name = |port: InterfaceId| match place.interfaces.get(usize::from(port.0)) {
            Some(interface) => topology.place(interface.peer).name.clone(),
            None => "its cell".to_owned(),
        };
        let names: Vec<String> = ports.iter().map(name).collect();
        names.join(", ")
    };
    Some(match event {
        Event::RouteChanged { mobile, ports, change } => {
            let out = if ports.is_empty() { "nobody".to_owned() } else { names(ports) };
            RouterNote::Route(change.name(), format!("{mobile} to {out}"))
        }
        Event::Expected { mobile } => RouterNote::Handover("expected", mobile.to_string()),
        Event::Arrived { mobile } => RouterNote::Handover("arrived", mobile.to_string()),
        Event::Moved { mobile } => RouterNote::Handover("moved", mobile.to_string()),
        Event::Paged { mobile, ports } => {
            RouterNote::Handover("paged", format!("{mobile} by {}", names(ports)))
        }
        Event::Dropped { .. } => return None,
    })
}

/// The same of a mobile node: the phase, and more about it.
#[must_use]
pub fn host_event_text(event: &HostEvent) -> Option<(&'static str, String)> {
    match event {
        HostEvent::Confirmed { station } => Some(("confirmed", format!("by {station}"))),
        HostEvent::Active(true) => Some(("active", String::new())),
        HostEvent::Active(false) => Some(("idle", String::new())),
        HostEvent::Dropped { .. } => None,
    }
}

/// The groups of M&M have as many bits behind their prefix as home addresses behind theirs.
const GROUPS: Ipv4Addr = Ipv4Addr::new(239, 192, 0, 0);

fn scheme(protocol: &MicroProtocol, stations: usize, prefix: Prefix) -> Scheme {
    let keep = |kept: &Option<CandidateBuffer>| kept.as_ref().map_or(Buffer::NONE, buffer);
    match protocol {
        MicroProtocol::BuildingBlocks(blocks) => Scheme::Blocks(building_blocks(blocks, stations)),
        MicroProtocol::CellularIp(handover) => Scheme::CellularIp(CellularIp {
            handover: match *handover {
                CellularWord::Hard => CellularHandover::Hard,
                CellularWord::SemiSoft { lead, delay, packets } => CellularHandover::SemiSoft {
                    delay,
                    packets: usize::try_from(packets).unwrap_or(usize::MAX),
                    lead,
                },
            },
            ..CellularIp::default()
        }),
        MicroProtocol::Hawaii { scheme, buffer } => Scheme::Hawaii(Hawaii {
            scheme: match scheme {
                PathWord::Msf => PathScheme::MultipleStreamForwarding,
                PathWord::Ssf => PathScheme::SingleStreamForwarding,
                PathWord::Unf => PathScheme::UnicastNonForwarding,
                PathWord::Mnf => PathScheme::MulticastNonForwarding,
            },
            buffer: keep(buffer),
            ..Hawaii::default()
        }),
        MicroProtocol::Multicast { candidates, trigger, lead, buffer, bicast } => {
            let mapping = GroupMapping { groups: Prefix::new(GROUPS, prefix.length()) };
            Scheme::Multicast(MulticastMobility {
                trigger: trigger_of(*trigger, *candidates, stations),
                lead: *lead,
                buffer: keep(buffer),
                leave_delay: *bicast,
                ..MulticastMobility::new(mapping)
            })
        }
    }
}

fn trigger_of(trigger: TriggerWord, candidates: CandidateSet, stations: usize) -> Trigger {
    match (trigger, candidates) {
        (TriggerWord::None, _) | (_, CandidateSet::Empty) => Trigger::None,
        (TriggerWord::Source, _) => Trigger::Source,
        (TriggerWord::Path, CandidateSet::Nearest(candidates)) => {
            Trigger::Path { candidates: candidates.into() }
        }
        (TriggerWord::Path, CandidateSet::All) => {
            Trigger::Path { candidates: stations.saturating_sub(1).max(1) }
        }
        (TriggerWord::NoPath, _) => Trigger::NoPath,
    }
}

fn building_blocks(blocks: &BuildingBlocks, stations: usize) -> Blocks {
    Blocks {
        trigger: trigger_of(blocks.trigger, blocks.candidates, stations),
        lead: blocks.lead,
        buffer: blocks.buffer.as_ref().map_or(Buffer::NONE, buffer),
        bicast: blocks.bicast,
        forward: blocks.forward,
        ..Blocks::default()
    }
}

fn buffer(buffer: &CandidateBuffer) -> Buffer {
    Buffer {
        packets: usize::try_from(buffer.packets).unwrap_or(usize::MAX),
        bytes: usize::try_from(buffer.bytes).unwrap_or(usize::MAX),
        total_packets: usize::MAX,
        total_bytes: usize::MAX,
        age: Some(buffer.age),
        when_full: match buffer.when_full {
            WhenFullWord::DropOldest => WhenFull::DropOldest,
            WhenFullWord::DropTail => WhenFull::DropTail,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::lay_out;

    #[test]
    fn the_nearest_neighbors_come_first_and_each_once() {
        assert_eq!(neighbors(0, 5).collect::<Vec<_>>(), [1, 4, 2, 3]);
        assert_eq!(neighbors(2, 4).collect::<Vec<_>>(), [3, 1, 0]);
        assert_eq!(neighbors(0, 1).count(), 0);
    }

    #[test]
    fn every_router_knows_by_which_link_each_station_is_reached() {
        let text = include_str!("../../../scenarios/micromobility/car-set.toml");
        let scenario = Scenario::parse("x.toml", text, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let topology = lay_out(&scenario);
        let plan = domain(&scenario, &topology, 0).unwrap().unwrap();
        let router = |name: &str| {
            let node = topology.find(name).unwrap();
            &plan.routers.iter().find(|(id, _)| *id == node).unwrap().1
        };
        let below =
            |name: &str| router(name).downlinks.iter().map(|link| link.stations.len()).collect::<Vec<_>>();
        assert_eq!(plan.routers.len(), 1 + 2 + 7 + 21);
        assert_eq!(
            (below("gateway"), below("core-1"), below("area-7")),
            (vec![12, 9], vec![3; 4], vec![1; 3])
        );
        assert_eq!((router("gateway").role, router("area-1").role), (Role::Gateway, Role::Inner));
        let station = router("station-4");
        assert_eq!(
            (station.role, station.neighbors.len(), station.downlinks.len()),
            (Role::BaseStation, 20, 0)
        );
        assert!(station.cell.is_some() && station.uplink.is_some() && router("gateway").uplink.is_some());
    }
}
