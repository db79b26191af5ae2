//! Fast handovers (RFC 5568): the access routers of an experiment, and what a mobile node has in common with each.

use core::time::Duration;

use careof_mobility::v6::access_router::{
    AccessLink, AccessRouterConfig, AddressConflict, BufferConfig, MobileNodeKey, NeighborRouter,
    RouterSecurity,
};
use careof_mobility::v6::fast_handover::{CurrentRouter, FastHandoverConfig};
use careof_mobility::v6::{Prefix, SecurityAssociation};
use careof_mobility::{ConfigError, InterfaceId};
use careof_scenario::{FastHandover, LinkId, Mobility, Role, Scenario};
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Lifetime;

use crate::agents::wall_clock;
use crate::layout::stream;
use crate::locator::Ipv6Plan;
use crate::mobile_ipv6::{address, hardware, link_local, security};
use crate::topology::{Interface, NodeId, Topology, down_of};

/// Bytes that all buffers of an access router have together, in buffers of one mobile node.
const BUFFERS: usize = 16;

/// The mobile node's part in fast handovers.
#[derive(Clone, Debug)]
pub struct FastHandoverPlan {
    /// How it goes about it.
    pub config: FastHandoverConfig,
    /// The access points that it can come to, in the order of its interfaces.
    pub access_points: Vec<AccessPointPlan>,
    /// How long before an announced handover it is prepared, if there is as much time.
    pub prepare_ahead: Duration,
}

/// An access point, which an access link has one of, and what is behind it.
#[derive(Clone, Debug)]
pub struct AccessPointPlan {
    /// The access link.
    pub link: LinkId,
    /// Its station.
    pub station: LinkLayerAddress,
    /// The access router there, once the mobile node is registered there.
    pub router: CurrentRouter,
}

impl FastHandoverPlan {
    /// The access point that an interface of the mobile node comes to.
    #[must_use]
    pub fn at(&self, interface: InterfaceId) -> Option<&AccessPointPlan> {
        self.access_points.iter().find(|point| point.router.interface == interface)
    }
}

/// Whether mobile nodes and access routers do fast handovers, and how.
pub(crate) fn wanted(mobility: &Mobility) -> Option<&FastHandover> {
    mobility.fast_handover.as_ref()
}

/// An access link from both ends.
struct Access<'a> {
    link: LinkId,
    name: &'a str,
    router: NodeId,
    /// The router's interface there, and its number.
    interface: Interface,
    id: InterfaceId,
}

impl Access<'_> {
    fn prefix(&self, topology: &Topology) -> Prefix {
        Prefix::new(address(topology, self.interface.address), Ipv6Plan::PREFIX_LEN)
    }
}

/// All access links, in the order of the file.
fn access_links<'a>(scenario: &'a Scenario, topology: &Topology) -> Vec<Access<'a>> {
    let access = |(link, access): (LinkId, &'a careof_scenario::Link)| {
        let router = topology.entrance(down_of(link));
        let interfaces = &topology.place(router).interfaces;
        let index = interfaces.iter().position(|interface| interface.out == down_of(link))?;
        let id = InterfaceId(index as u16);
        Some(Access { link, name: &access.name, router, interface: interfaces[index], id })
    };
    scenario.access_links().filter_map(access).collect()
}

/// The key of the routers of two access links.
fn between_routers(
    scenario: &Scenario,
    mobility: &Mobility,
    run: u64,
    names: [&str; 2],
) -> Result<SecurityAssociation, ConfigError> {
    let [one, other] = if names[0] <= names[1] { names } else { [names[1], names[0]] };
    security(mobility, &mut stream(scenario, run, &format!("fast-handover.key.{one}.{other}")))
}

/// The key of the mobile node of an access link and the router there.
fn with_mobile_node(
    scenario: &Scenario,
    mobility: &Mobility,
    run: u64,
    link: &str,
) -> Result<SecurityAssociation, ConfigError> {
    security(mobility, &mut stream(scenario, run, &format!("fast-handover.key.{link}")))
}

/// The access router on `node`; `None` where no access link begins, or there are no fast handovers.
pub(crate) fn access_router(
    scenario: &Scenario,
    mobility: &Mobility,
    topology: &Topology,
    run: u64,
    node: NodeId,
) -> Result<Option<AccessRouterConfig>, ConfigError> {
    let Some(wanted) = wanted(mobility).filter(|_| topology.place(node).role != Role::Mobile) else {
        return Ok(None);
    };
    let all = access_links(scenario, topology);
    let (own, others): (Vec<&Access<'_>>, Vec<&Access<'_>>) =
        all.iter().partition(|access| access.router == node);
    let links = own.iter().map(|access| {
        let interface = access.interface;
        let own = address(topology, interface.address);
        AccessLink {
            link_local: link_local(interface.address),
            ..AccessLink::new(access.id, own, access.prefix(topology), hardware(interface.address))
        }
    });
    let links: Vec<AccessLink> = links.collect();
    // Two routers have a key for each two of their links; a router with several is told apart by its first.
    let Some(first) = own.first() else { return Ok(None) };
    let mut config = AccessRouterConfig::new(links);
    for other in others {
        let station = hardware(other.interface.address);
        config.neighbors.push(NeighborRouter {
            address: address(topology, other.interface.address),
            link_layer_address: station,
            prefix: other.prefix(topology),
            access_points: vec![station],
            fast_handover: true,
            security: RouterSecurity::Keyed(between_routers(
                scenario,
                mobility,
                run,
                [name_of(&all, topology, first.router), name_of(&all, topology, other.router)],
            )?),
        });
    }
    for access in &own {
        config.mobile_nodes.push(MobileNodeKey {
            care_of: address(topology, access.interface.peer_address),
            security: with_mobile_node(scenario, mobility, run, access.name)?,
        });
    }
    config.clock = wall_clock();
    config.proxy_lifetime = wanted.proxy_lifetime;
    config.detached_lifetime = wanted.proxy_lifetime;
    config.max_lifetime = config.max_lifetime.max(Lifetime::from_duration(wanted.lifetime));
    // Addresses are planned, and nobody has another.
    config.address_conflict = AddressConflict::Refuse;
    config.buffer_and_forward = wanted.copies;
    config.request_buffering = wanted.buffer_packets > 0;
    config.buffer = buffer(wanted);
    Ok(Some(config))
}

/// The first access link of a router, by which its keys are named.
fn name_of<'a>(all: &[Access<'a>], topology: &'a Topology, router: NodeId) -> &'a str {
    let first = all.iter().find(|access| access.router == router);
    first.map_or_else(|| topology.place(router).name.as_str(), |access| access.name)
}

fn buffer(wanted: &FastHandover) -> BufferConfig {
    let release_percent = wanted.release_percent;
    if wanted.buffer_packets == 0 {
        return BufferConfig { release_percent, ..BufferConfig::NONE };
    }
    let packets = wanted.buffer_packets as usize;
    let bytes = usize::try_from(wanted.buffer_bytes).unwrap_or(usize::MAX);
    let BufferConfig { total_packets, total_bytes, .. } = BufferConfig::default();
    BufferConfig {
        packets,
        bytes,
        total_packets: packets.saturating_mul(BUFFERS).max(total_packets),
        total_bytes: bytes.saturating_mul(BUFFERS).max(total_bytes),
        release_percent,
    }
}

/// The part of the mobile node on `node` in repetition `run` of `scenario`; `None` where there are no fast handovers.
///
/// # Errors
/// What a security association has against its parameters.
pub fn fast_handover(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
) -> Result<Option<FastHandoverPlan>, ConfigError> {
    let Some((mobility, wanted)) =
        scenario.mobility.as_ref().and_then(|mobility| Some((mobility, wanted(mobility)?)))
    else {
        return Ok(None);
    };
    let interfaces = &topology.place(node).interfaces;
    let mut access_points = Vec::new();
    for access in access_links(scenario, topology) {
        let is_there = |interface: &Interface| interface.out == crate::topology::up_of(access.link);
        let Some(index) = interfaces.iter().position(is_there) else { continue };
        access_points.push(AccessPointPlan {
            link: access.link,
            station: hardware(access.interface.address),
            router: CurrentRouter {
                interface: InterfaceId(index as u16),
                address: address(topology, access.interface.address),
                link_local: link_local(access.interface.address),
                care_of: address(topology, access.interface.peer_address),
                security: with_mobile_node(scenario, mobility, run, access.name)?,
            },
        });
    }
    access_points.sort_by_key(|point| point.router.interface);
    let Some(first) = access_points.first() else { return Ok(None) };
    let own = interfaces[usize::from(first.router.interface.0)].address;
    let mut config = FastHandoverConfig::new(hardware(topology.plan.station(own)));
    config.lifetime = Lifetime::from_duration(wanted.lifetime);
    config.clock = wall_clock();
    Ok(Some(FastHandoverPlan { config, access_points, prepare_ahead: wanted.prepare_ahead }))
}

#[cfg(test)]
mod tests {
    use careof_base::RandomStream;
    use careof_mobility::v6::access_router::AccessRouter;
    use careof_mobility::v6::neighbor_discovery::modified_eui_64;

    use super::*;
    use crate::layout::lay_out;
    use crate::mobile_ipv6::{Ipv6AgentPlan, ipv6_agent, neighbors};

    /// A mobile node with two cells, and another with one of each router.
    const SCENARIO: &str = "duration = \"9 s\"\n[nodes]\nhome-agent = \"home-agent\"\none = \"mobile\"\ntwo = \"mobile\"\n[links]\n\
        wire-w = { preset = \"ethernet-10m\", between = [\"home-agent\", \"west\"] }\n\
        wire-e = { preset = \"ethernet-10m\", between = [\"home-agent\", \"east\"] }\n\
        server = { preset = \"ethernet-10m\", between = [\"correspondent\", \"home-agent\"] }\n\
        a = { preset = \"wavelan\", between = [\"west\", \"one\"] }\n\
        b = { preset = \"wavelan\", between = [\"east\", \"one\"] }\n\
        c = { preset = \"wavelan\", between = [\"east\", \"two\"] }\n\
        d = { preset = \"wavelan\", between = [\"west\", \"two\"] }\n\
        [mobility]\nprotocol = \"mobile-ipv6\"\nfast_handover = true\n\
        [[flow]]\nfrom = \"correspondent\"\nto = \"one\"\n";

    fn world() -> (Scenario, Topology) {
        let scenario = Scenario::parse("x.toml", SCENARIO, &[]).unwrap_or_else(|e| panic!("{e}"));
        let topology = lay_out(&scenario);
        (scenario, topology)
    }

    fn router(scenario: &Scenario, topology: &Topology, name: &str) -> AccessRouterConfig {
        match ipv6_agent(scenario, topology, 0, topology.find(name).unwrap()).unwrap() {
            Some(Ipv6AgentPlan::AccessRouter(config)) => *config,
            other => panic!("{other:?}"),
        }
    }

    fn mobile(scenario: &Scenario, topology: &Topology, name: &str) -> FastHandoverPlan {
        fast_handover(scenario, topology, 0, topology.find(name).unwrap()).unwrap().unwrap()
    }

    #[test]
    fn access_routers_know_each_other_by_the_same_keys() {
        let (scenario, topology) = world();
        let [west, east] = ["west", "east"].map(|name| router(&scenario, &topology, name));
        for (config, neighbor) in [(&west, &east), (&east, &west)] {
            assert!(AccessRouter::new(config.clone(), RandomStream::new(1, 0, "x")).is_ok());
            assert_eq!(config.links.len(), 2);
            let stations: Vec<_> = neighbor.links.iter().map(|link| link.access_points[0]).collect();
            let known: Vec<_> = config.neighbors.iter().map(|other| other.access_points[0]).collect();
            assert_eq!(known, stations);
            assert!(config.neighbors.iter().all(|other| other.security == neighbor.neighbors[0].security));
        }
    }

    /// What a mobile node proposes for a link before it is there is what neighbor discovery forms there, and what routes lead to.
    #[test]
    fn the_address_that_a_mobile_node_proposes_is_the_one_that_it_forms() {
        let (scenario, topology) = world();
        for name in ["one", "two"] {
            let plan = mobile(&scenario, &topology, name);
            let node = topology.find(name).unwrap();
            let [first, second] = &plan.access_points[..] else { panic!("{plan:?}") };
            for (from, to) in [(first, second), (second, first)] {
                let prefix = Prefix::new(to.router.address, Ipv6Plan::PREFIX_LEN);
                assert_eq!(prefix.with_interface_of(from.router.care_of), to.router.care_of);
                let interface = topology.place(node).interfaces[usize::from(to.router.interface.0)];
                assert_eq!(topology.plan.locate(to.router.care_of.into()), interface.address);
                let formed = neighbors(&scenario, &topology, node);
                let formed = formed.iter().find(|plan| plan.interface == to.router.interface).unwrap();
                let host = formed.host.as_ref().unwrap();
                assert_eq!(host.link_layer_address, plan.config.link_layer_address);
                assert_eq!(to.router.care_of.to_bits() as u64, modified_eui_64(host.link_layer_address));
            }
        }
    }

    #[test]
    fn a_mobile_node_has_a_key_with_each_router_and_no_other_has_it() {
        let (scenario, topology) = world();
        let one = mobile(&scenario, &topology, "one");
        let west = router(&scenario, &topology, "west");
        let keys: Vec<_> = west.mobile_nodes.iter().map(|known| (known.care_of, &known.security)).collect();
        let there = &one.access_points[0].router;
        assert_eq!(keys[0], (there.care_of, &there.security));
        assert_ne!(keys[0].1, keys[1].1);
    }

    #[test]
    fn without_anything_said_access_routers_are_as_the_library_has_them() {
        let (scenario, topology) = world();
        let config = router(&scenario, &topology, "west");
        let usual = AccessRouterConfig::new(config.links.clone());
        assert_eq!(config.proxy_lifetime, usual.proxy_lifetime);
        assert_eq!(config.detached_lifetime, usual.detached_lifetime);
        assert_eq!((config.max_lifetime, config.buffer_and_forward), (usual.max_lifetime, false));
        assert_eq!((config.buffer.packets, config.buffer.bytes), (usual.buffer.packets, usual.buffer.bytes));
        assert_eq!(config.buffer.release_percent, usual.buffer.release_percent);
        let plan = mobile(&scenario, &topology, "one");
        assert_eq!(plan.config.lifetime, FastHandoverConfig::new(plan.config.link_layer_address).lifetime);
    }
}
