//! Correspondents that send straight, and to a care-of address that the mobile node has left: when they are told of a handover.

use core::net::Ipv6Addr;
use std::collections::BTreeSet;

use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, CorrespondentChanged};
use careof_plan::{FlowId, Locator, NodeId, Side};
use careof_tcp::NewPath;
use careof_wire::mip6::Lifetime;

use super::{AdvisedBy, Response, Senders};
use crate::simulation::Simulation;

impl Simulation {
    /// A mobile node has registered: the correspondents that know another care-of address are not told before they know the new one.
    pub(super) fn await_correspondents(&mut self, node: NodeId) -> BTreeSet<Locator> {
        let is_outdated = |peer: &Locator| self.is_outdated(node, self.bytes.address_v6(*peer));
        let outdated: BTreeSet<Locator> =
            self.peers_of(node).into_iter().map(|(_, peer)| peer).filter(is_outdated).collect();
        for (flow, side) in self.connections_of(node) {
            let flow = &mut self.flows[usize::from(flow.0)];
            if outdated.contains(&flow.ends[side.peer().index()].address) {
                // What is left of the last handover's option is out of date, too.
                flow.end(side).tells = 0;
            }
        }
        if let Some(teller) = self.senders.as_mut().and_then(|senders| senders.mobiles.get_mut(&node.0)) {
            teller.outdated.clone_from(&outdated);
            teller.acknowledged.clear();
        }
        outdated
    }

    /// A mobile node has sent a correspondent a Binding Update with this care-of address, which at home is its home address.
    pub(crate) fn advise_updated(
        &mut self,
        node: NodeId,
        correspondent: Ipv6Addr,
        care_of: Ipv6Addr,
        interface: Option<InterfaceId>,
    ) {
        let Some(senders) = &self.senders else { return };
        let peer = self.topology.plan.locate(correspondent.into());
        let waits = senders.mobiles.get(&node.0).is_some_and(|teller| teller.outdated.contains(&peer));
        if !waits || !matches!(senders.response, Some(Response::TcpCm { estimator: None, .. })) {
            return;
        }
        let Some((flow, _)) = self.peers_of(node).into_iter().find(|(_, one)| *one == peer) else { return };
        let home = self.own_address(node);
        let home_address = self.bytes.address_v6(home);
        let regional = self.regional_way(node, care_of, correspondent);
        let (interface, mut way) = match regional {
            Some((interface, way)) => (Some(interface), way),
            None => (interface, Addresses::new(care_of, correspondent)),
        };
        if care_of != home_address {
            way = way.with_home_address(home_address);
        }
        self.tell_by_datagram(node, flow, [home, peer], Some((interface, way)));
    }

    /// A correspondent has accepted a mobile node's Binding Update, and with it what that said of the handover.
    pub(crate) fn update_accepted(&mut self, node: NodeId, correspondent: Ipv6Addr) {
        let peer = self.topology.plan.locate(correspondent.into());
        let teller = self.senders.as_mut().and_then(|senders| senders.mobiles.get_mut(&node.0));
        if let Some(teller) = teller.filter(|teller| teller.outdated.contains(&peer)) {
            teller.acknowledged.insert(peer);
        }
    }

    /// A correspondent's IP layer has found the ToH bit in a Binding Update of the mobile node with this home address, and tells its TCP.
    pub(crate) fn handover_ended(&mut self, node: NodeId, home_address: Ipv6Addr) {
        let response = self.senders.as_ref().and_then(|senders| senders.response);
        let Some(response @ Response::TcpCm { estimator: Some(_), .. }) = response else { return };
        let home = self.topology.plan.locate(home_address.into());
        for index in 0..self.flows.len() {
            let id = FlowId(index as u16);
            let flow = &self.flows[index];
            let is_meant = |side: &Side| {
                let (end, peer) = (&flow.ends[side.index()], &flow.ends[side.peer().index()]);
                flow.opened && end.node == node && peer.address == home
            };
            let Some(side) = Side::BOTH.into_iter().find(is_meant) else { continue };
            let key = self.flow_key(id, side.peer());
            let is_excepted = |senders: &Senders| senders.except.iter().any(|one| one.covers(&key));
            if self.senders.as_ref().is_some_and(|senders| is_excepted(senders)) {
                continue;
            }
            if let Some(advice) = response.peers_arrival(NewPath::default()) {
                self.advise(id, side, &[advice]);
            }
        }
    }

    /// What a correspondent knows of a mobile node's care-of address is new, in the mobile node's view.
    pub(crate) fn advise_correspondent(&mut self, node: NodeId, change: &CorrespondentChanged) {
        let peer = self.topology.plan.locate(change.correspondent.into());
        let Some(senders) = &mut self.senders else { return };
        let (Some(response), Some(teller)) = (senders.response, senders.mobiles.get_mut(&node.0)) else {
            return;
        };
        // With an update that was accepted a datagram or the bit has come; where the binding has ended, the home agent's tunnel is the way again.
        let is_acknowledged = teller.acknowledged.remove(&peer);
        let has_heard = match response {
            Response::TcpCm { estimator: Some(_), .. } => is_acknowledged,
            Response::TcpCm { .. } => change.lifetime != Lifetime::ZERO,
            // All ends were told at the registration.
            Response::RtoReset { by: AdvisedBy::Signal, .. } => true,
            _ => false,
        };
        if teller.outdated.remove(&peer) && !has_heard {
            self.tell_peers(node, response, |one| one == peer);
        }
    }
}
