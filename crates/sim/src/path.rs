//! The path between the mobile node and its peer, as the agents' state has it.

use careof_metrics::NewPath;
use careof_mobility::v4::DeliveryMethod;
use careof_plan::{NodeId, Tunnelling, first_peer, new_path};
use careof_scenario::LinkId;

use crate::agents::Agent;
use crate::simulation::Simulation;

impl Simulation {
    /// The path of the first flow that moves, through an access link: its narrowest link in each direction, and
    /// its round trip without queueing.
    pub(crate) fn new_path(&self, link: LinkId) -> NewPath {
        let peer = first_peer(&self.scenario, &self.topology);
        let mss = peer.and_then(|(flow, _)| self.flows.get(flow)).map_or(1460, |flow| {
            flow.ends.iter().map(|end| end.connection.snapshot().mss).min().unwrap_or(1460).max(1)
        });
        let peer = peer.map_or_else(|| self.topology.entrance(careof_plan::down_of(link)), |(_, peer)| peer);
        let home_agent = self.nodes.iter().position(|node| matches!(node.agent, Agent::Home(_)));
        let home_agent = NodeId(home_agent.unwrap_or_default() as u16);
        let tunnel = match (&self.node(home_agent).agent, self.mobiles) {
            (Agent::Home(agent), Some(mobiles)) => agent.tunnels(mobiles.home_address).first().copied(),
            _ => None,
        };
        let reverse = match &self.node(self.mobile()).agent {
            Agent::Mobile(node) => node
                .delivery(self.own_address(peer), None)
                .is_some_and(|delivery| delivery.method == DeliveryMethod::ReverseTunnel),
            _ => false,
        };
        let overhead = tunnel.map_or(0, |tunnel| u32::from(tunnel.encapsulation.max_overhead()));
        let straight = tunnel.is_some() && matches!(self.node(peer).agent, Agent::Correspondent(_));
        let tunnelling = Tunnelling { overhead, reverse, straight };
        new_path(&self.scenario, &self.topology, link, tunnelling, mss)
    }
}
