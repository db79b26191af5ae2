//! Which way over a medium packets take, by who sees to them at the moment.
//!
//! The hosts' routes lead over the links of the file. Where these share a medium the emulator does what Ethernet does by address
//! resolution: it brings a packet to the station that has its destination, or is the router towards it, unless an agent on the
//! way draws it.

use std::collections::BTreeSet;

use careof_lab::{Change, Shortcut};
use careof_mobility::v4::{Change as Became, VisitorChanged};
use careof_plan::{Locator, NodeId, OneWayId, Plan, Topology};
use careof_scenario::{Routing, Scenario};

use crate::network::Network;

/// Agents that have more to do with packets than to pass them on, as far as they have told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attention {
    /// For which destination.
    drawn: BTreeSet<(NodeId, Locator)>,
    /// Foreign agents of visitors whose own packets go by the tunnel: every packet may be one.
    all: BTreeSet<NodeId>,
}

impl Attention {
    /// A home agent has a tunnel to the mobile node of this address, or has none any more.
    pub(crate) fn home_agent(&mut self, node: NodeId, home_address: Locator, is_away: bool) {
        if is_away {
            self.drawn.insert((node, home_address));
        } else {
            self.drawn.remove(&(node, home_address));
        }
    }

    /// A foreign agent told of a visitor.
    pub(crate) fn foreign_agent(&mut self, node: NodeId, visitor: &VisitorChanged, routing: Routing) {
        let key = (node, visitor.home_address.into());
        match visitor.change {
            Became::Created | Became::Updated => {
                self.drawn.insert(key);
                if routing == Routing::ReverseTunnel {
                    self.all.insert(node);
                }
            }
            Became::Removed | Became::Expired => {
                self.drawn.remove(&key);
                if !self.drawn.iter().any(|(other, _)| *other == node) {
                    self.all.remove(&node);
                }
            }
        }
    }

    fn leaves_to_routes(&self, node: NodeId, destination: Locator) -> bool {
        !self.all.contains(&node) && !self.drawn.contains(&(node, destination))
    }
}

/// Every address of the network, and of every subnet one that nobody has.
fn destinations(topology: &Topology) -> BTreeSet<(Locator, u8)> {
    let interfaces = topology.places.iter().flat_map(|place| &place.interfaces);
    let of_agents = topology.homes.iter().map(|home| home.agent_address);
    let of_mobile_nodes = topology.homes.mobile_nodes().map(|mobile| topology.address_of(mobile));
    let addresses: Vec<Locator> =
        interfaces.map(|interface| interface.address).chain(of_agents).chain(of_mobile_nodes).collect();
    let unused = addresses.iter().map(|address| (address.beside(254), topology.plan.prefix_len()));
    let whole = if topology.plan == Plan::Ipv4 { 32 } else { 128 };
    addresses.iter().map(|address| (*address, whole)).chain(unused).collect()
}

/// The ways that packets take from each link end on a medium, other than over that link.
pub(crate) fn shortcuts(
    scenario: &Scenario,
    topology: &Topology,
    network: &Network,
    attention: &Attention,
) -> Vec<Change> {
    let destinations = destinations(topology);
    let links = scenario.links.iter().enumerate().filter(|(_, link)| link.medium.is_some() && !link.straight);
    let ways = links.flat_map(|(index, _)| [OneWayId(2 * index as u32), OneWayId(2 * index as u32 + 1)]);
    ways.map(|way| {
        let by = |(destination, prefix_length): &(Locator, u8)| {
            let leaves = |node| attention.leaves_to_routes(node, *destination);
            let by = network.direction(topology.straight_way(way, *destination, leaves));
            Shortcut { network: topology.address(*destination), prefix_length: *prefix_length, by }
        };
        let (link, direction) = network.direction(way);
        Change::SetShortcuts { link, direction, shortcuts: destinations.iter().map(by).collect() }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use careof_mobility::v4::InterfaceId;
    use careof_wire::mip4::Lifetime;

    use super::*;

    const AGENT: NodeId = NodeId(1);
    const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);

    fn visitor(change: Became) -> VisitorChanged {
        VisitorChanged {
            home_address: HOME,
            interface: InterfaceId(0),
            care_of: Ipv4Addr::new(10, 0, 3, 1),
            lifetime: Lifetime::from_secs(60),
            change,
            path: None,
        }
    }

    /// Whether the agent leaves to the routes what is for the mobile node, and for others.
    fn leaves(attention: &Attention) -> [bool; 2] {
        [HOME, ELSEWHERE].map(|destination| attention.leaves_to_routes(AGENT, destination.into()))
    }

    #[test]
    fn a_home_agent_draws_what_is_for_a_mobile_node_that_is_away() {
        let mut attention = Attention::default();
        assert_eq!(leaves(&attention), [true, true]);
        attention.home_agent(AGENT, HOME.into(), true);
        assert_eq!(leaves(&attention), [false, true]);
        assert!(attention.leaves_to_routes(NodeId(2), HOME.into()), "another node");
        attention.home_agent(AGENT, HOME.into(), false);
        assert_eq!(attention, Attention::default());
    }

    #[test]
    fn a_foreign_agent_sees_to_its_visitors_and_with_a_reverse_tunnel_to_all() {
        for (routing, others) in [(Routing::Triangle, true), (Routing::ReverseTunnel, false)] {
            let mut attention = Attention::default();
            for change in [Became::Created, Became::Updated] {
                attention.foreign_agent(AGENT, &visitor(change), routing);
                assert_eq!(leaves(&attention), [false, others]);
            }
            attention.foreign_agent(AGENT, &visitor(Became::Expired), routing);
            assert_eq!(attention, Attention::default());
        }
    }
}
