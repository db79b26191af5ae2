//! The path between the mobile node and its peer: what metrics compare a handover with.

use std::time::Duration;

use careof_base::DataRate;
use careof_metrics::{NewPath, PathRate};
use careof_mobility::v4::DeliveryMethod;
use careof_scenario::LinkId;

use crate::agents::Agent;
use crate::handover::{down_of, up_of};
use crate::simulation::Simulation;
use crate::topology::{NodeId, OneWayId, Route};

/// One-way links in a row, each with the bytes that a tunnel adds there.
type Ways = Vec<(OneWayId, u32)>;

impl Simulation {
    /// The path of the first flow that moves, through an access link: its narrowest link in each direction, and
    /// its round trip without queueing.
    pub(crate) fn new_path(&self, link: LinkId) -> NewPath {
        let mobile = self.mobile();
        let flow = self.flows.iter().find(|flow| flow.mobile);
        let peer = flow
            .and_then(|flow| flow.ends.iter().find(|end| end.node != mobile))
            .map_or(self.links[down_of(link).0 as usize].from, |end| end.node);
        let mss = flow.map_or(1460, |flow| {
            flow.ends.iter().map(|end| end.connection.snapshot().mss).min().unwrap_or(1460).max(1)
        });
        let (down, up) = self.ways_through(link, peer);
        let rate = |ways: &[(OneWayId, u32)]| {
            ways.iter()
                .map(|(way, tunnelled)| {
                    let config = self.links[way.0 as usize].link.config();
                    PathRate::of(config.rate, config.framing.bits(mss + 40 + tunnelled), mss)
                })
                .min_by_key(|rate| rate.payload_rate)
        };
        let none = || PathRate::of(DataRate::ZERO, 1, 1);
        let round_trip = down.iter().map(|way| self.crossing(*way, mss + 40)).sum::<Duration>()
            + up.iter().map(|way| self.crossing(*way, 40)).sum::<Duration>();
        NewPath {
            to_mobile: rate(&down).unwrap_or_else(none),
            from_mobile: rate(&up).unwrap_or_else(none),
            round_trip,
        }
    }

    /// Time of a packet of `bytes` on an empty one-way link, its tunnel header added.
    fn crossing(&self, (way, tunnelled): (OneWayId, u32), bytes: u32) -> Duration {
        let config = self.links[way.0 as usize].link.config();
        let bits = config.framing.bits(bytes + tunnelled);
        config.delay + config.rate.time_for_bits(bits).unwrap_or_default()
    }

    /// The one-way links between `peer` and the mobile node by way of an access link, each with the bytes that a
    /// tunnel adds there: first those towards the mobile node, then those from it.
    fn ways_through(&self, link: LinkId, peer: NodeId) -> (Ways, Ways) {
        let mobile = self.mobile();
        let home_agent = self.nodes.iter().position(|node| matches!(node.agent, Agent::Home(_)));
        let home_agent = NodeId(home_agent.unwrap_or_default() as u16);
        let anchor = self.links[down_of(link).0 as usize].from;
        let tunnel = match (&self.node(home_agent).agent, self.home) {
            (Agent::Home(agent), Some((_, home_address))) => agent.tunnels(home_address).first().copied(),
            _ => None,
        };
        let overhead = tunnel.map_or(0, |tunnel| u32::from(tunnel.encapsulation.max_overhead()));
        // A tunnel to a foreign agent ends before the access link.
        let on_access = if self.is_co_located() { overhead } else { 0 };
        let plain = |ways: Vec<OneWayId>, bytes: u32| ways.into_iter().map(move |way| (way, bytes));

        let mut down: Vec<_> = plain(self.walk(peer, home_agent), 0).collect();
        down.extend(plain(self.walk(home_agent, anchor), overhead));
        down.push((down_of(link), on_access));

        let reverse = match &self.node(mobile).agent {
            Agent::Mobile(node) => node
                .delivery(self.own_address(peer), None)
                .is_some_and(|delivery| delivery.method == DeliveryMethod::ReverseTunnel),
            _ => false,
        };
        let mut up = vec![(up_of(link), if reverse { on_access } else { 0 })];
        if reverse {
            up.extend(plain(self.walk(anchor, home_agent), overhead));
            up.extend(plain(self.walk(home_agent, peer), 0));
        } else {
            up.extend(plain(self.walk(anchor, peer), 0));
        }
        (down, up)
    }

    /// The one-way links a packet crosses from one node to another that does not move.
    fn walk(&self, from: NodeId, to: NodeId) -> Vec<OneWayId> {
        let destination = self.own_address(to);
        let mut ways = Vec::new();
        let mut node = from;
        while node != to && ways.len() <= self.nodes.len() {
            let Route::Via(interface) = self.node(node).place.route(destination) else { break };
            let interface = self.node(node).place.interface(interface);
            ways.push(interface.out);
            node = interface.peer;
        }
        ways
    }
}
