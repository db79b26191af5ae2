//! Correspondents that send straight, and to a care-of address that the mobile node has left: when they are told of a handover.

use core::net::Ipv6Addr;
use std::collections::BTreeSet;

use careof_mobility::InterfaceId;
use careof_mobility::v6::{Addresses, CorrespondentChanged};
use careof_plan::{Locator, NodeId};
use careof_wire::mip6::Lifetime;

use super::{AdvisedBy, Response};
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
        if !waits || !matches!(senders.response, Some(Response::TcpCm { .. })) {
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

    /// What a correspondent knows of a mobile node's care-of address is new, in the mobile node's view.
    pub(crate) fn advise_correspondent(&mut self, node: NodeId, change: &CorrespondentChanged) {
        let peer = self.topology.plan.locate(change.correspondent.into());
        let Some(senders) = &mut self.senders else { return };
        let (Some(response), Some(teller)) = (senders.response, senders.mobiles.get_mut(&node.0)) else {
            return;
        };
        // With an update that was accepted a datagram has come; where the binding has ended, the home agent's tunnel is the way again.
        let has_heard = match response {
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
