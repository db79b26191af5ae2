//! The path between the mobile node and its peer, as the agents' state has it.

use careof_metrics::NewPath;
use careof_mobility::v4::DeliveryMethod;
use careof_plan::{NodeId, Tunnelling, first_peer, new_path};
use careof_scenario::LinkId;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header};

use crate::agents::Agent;
use crate::simulation::Simulation;

impl Simulation {
    /// The path of the first flow that moves, through an access link: its narrowest link in each direction, and
    /// its round trip without queueing.
    pub(crate) fn new_path(&self, link: LinkId) -> NewPath {
        let mobile = self.topology.mobile_of(link);
        let peer = first_peer(&self.scenario, &self.topology, mobile);
        let mss = peer.and_then(|(flow, _)| self.flows.get(flow)).map_or(1460, |flow| {
            flow.ends.iter().map(|end| end.connection.snapshot().mss).min().unwrap_or(1460).max(1)
        });
        let peer = peer.map_or_else(|| self.topology.entrance(careof_plan::down_of(link)), |(_, peer)| peer);
        if let Some(tunnelling) = self.ipv6_tunnelling(mobile, peer) {
            return new_path(&self.scenario, &self.topology, link, tunnelling, mss);
        }
        let tunnel = self.topology.homes.of(mobile).and_then(|home| match &self.node(home.agent).agent {
            Agent::Home(agent) => agent.tunnels(self.own_address(mobile).to_ipv4()).first().copied(),
            _ => None,
        });
        let reverse = match &self.node(mobile).agent {
            Agent::Mobile(node) => node
                .delivery(self.own_address(peer).to_ipv4(), None)
                .is_some_and(|delivery| delivery.method == DeliveryMethod::ReverseTunnel),
            _ => false,
        };
        let overhead = tunnel.map_or(0, |tunnel| u32::from(tunnel.encapsulation.max_overhead()));
        let straight = tunnel.is_some() && matches!(self.node(peer).agent, Agent::Correspondent(_));
        let tunnelling = Tunnelling { overhead, reverse, straight, straight_up: 0 };
        new_path(&self.scenario, &self.topology, link, tunnelling, mss)
    }

    /// How packets travel between a peer and a mobile node of Mobile IPv6; `None` where that is not what moves.
    fn ipv6_tunnelling(&self, mobile: NodeId, peer: NodeId) -> Option<Tunnelling> {
        let Agent::Ipv6(host) = &self.node(mobile).agent else { return None };
        let delivery = host.mobile()?.delivery(self.bytes.address_v6(self.own_address(peer)));
        let addresses = delivery.map(|delivery| delivery.addresses);
        let tunnel = addresses.and_then(|addresses| addresses.tunnel);
        let is_tunnelled = tunnel.is_some();
        let is_ipv4 = tunnel.is_some_and(|tunnel| tunnel.ipv4_ends().is_some());
        let is_optimized = addresses.is_some_and(|addresses| addresses.home_address.is_some());
        let tunnel = u32::from(if is_ipv4 { Ipv4Header::LEN } else { Ipv6Header::LEN });
        let option = u32::from(Extensions::HOME_ADDRESS_LEN);
        // The tunnel to the mobility anchor point is around either.
        let has_anchor_point = addresses.is_some_and(|addresses| addresses.map_tunnel.is_some());
        let around = if has_anchor_point { u32::from(Ipv6Header::LEN) } else { 0 };
        Some(Tunnelling {
            overhead: around + if is_tunnelled { tunnel } else { option * u32::from(is_optimized) },
            reverse: is_tunnelled,
            straight: is_optimized,
            straight_up: (around + option) * u32::from(is_optimized),
        })
    }
}
