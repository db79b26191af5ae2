//! Nodes that lend the mobile node their links, and the mobile node as their client.

use careof_base::{Instant, RandomStream};
use careof_mobility::multipath::alliance::{
    AllyEnd, CLUSTER_PORT, Client, ClientEvent, ClusterTransmit, Forwarded, Relay, RelayDrop, RelayEvent,
    RelayLost,
};
use careof_mobility::v4::{Input, InterfaceAddress, InterfaceId};
use careof_plan::{InterfaceIndex, Locator, NodeId, RelayPlan, down_of, up_of};
use careof_wire::protocol;
use careof_wire::tunnel::Encapsulation;

use crate::bytes::{datagram, payload_to};
use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::Header;
use crate::observer::Note;
use crate::packet::{Outer, PacketRef};
use crate::passage::{Passage, Wrapping};
use crate::queue::Slot;
use crate::simulation::{Component, Simulation};

/// A relay, and the mobile node as its client.
struct Alliance {
    plan: RelayPlan,
    mobile: NodeId,
    slot: Slot,
    relay: Relay,
    client: Client,
    /// What the relay drops is drawn from here.
    faults: RandomStream,
}

impl Alliance {
    fn is_gone(&self, now: Instant) -> bool {
        let is_back = |returns: Option<Instant>| returns.is_some_and(|returns| now >= returns);
        self.plan.gone.is_some_and(|(vanishes, returns)| now >= vanishes && !is_back(returns))
    }

    /// When it vanishes or returns next.
    fn next_change(&self, now: Instant) -> Option<Instant> {
        let (vanishes, returns) = self.plan.gone?;
        [Some(vanishes), returns].into_iter().flatten().find(|at| *at > now)
    }
}

/// All of them.
pub(crate) struct Cluster {
    alliances: Vec<Alliance>,
}

impl Cluster {
    fn of_relay(&self, node: NodeId) -> Option<usize> {
        self.alliances.iter().position(|alliance| alliance.plan.node == node)
    }
}

impl Simulation {
    /// Sets up the relays of the scenario, and the mobile node as their client.
    pub(crate) fn add_cluster(&mut self, mobile: NodeId, plans: Vec<RelayPlan>) {
        if plans.is_empty() {
            return;
        }
        let now = self.now;
        let alliances = plans.into_iter().enumerate().map(|(index, plan)| {
            let slot = self.add_component(Component::Alliance(index as u8));
            self.queue.set(slot, Some(now));
            let stream = |what: &str| {
                let name = &self.topology.place(plan.node).name;
                careof_plan::stream(&self.scenario, self.run, &format!("relay.{name}.{what}"))
            };
            let (faults, client) = (stream("faults"), stream("client"));
            // Nothing was said before the run.
            let relay = Relay::new(now, plan.relay.clone(), 0);
            Alliance {
                mobile,
                slot,
                relay,
                client: Client::new(plan.client.clone(), 0, client),
                faults,
                plan,
            }
        });
        let alliances = alliances.collect();
        self.cluster = Some(Box::new(Cluster { alliances }));
    }

    /// The deadline of a relay or of its client has come.
    pub(crate) fn alliance_timeout(&mut self, index: usize) {
        let now = self.now;
        let Some(one) = self.alliance_mut(index) else { return };
        if !one.is_gone(now) && one.relay.next_timeout() <= now {
            one.relay.handle_timeout(now);
        }
        if one.client.next_timeout().is_some_and(|at| at <= now) {
            one.client.handle_timeout(now);
        }
        self.drive_alliance(index);
    }

    fn alliance_mut(&mut self, index: usize) -> Option<&mut Alliance> {
        self.cluster.as_mut()?.alliances.get_mut(index)
    }

    /// Does what a relay and its client ask for, until they ask for nothing.
    fn drive_alliance(&mut self, index: usize) {
        while self.drive_alliance_once(index) {}
        let now = self.now;
        let Some(one) = self.alliance_mut(index) else { return };
        let of_relay = Some(one.relay.next_timeout()).filter(|_| !one.is_gone(now));
        let due = [of_relay, one.client.next_timeout(), one.next_change(now)];
        let (slot, due) = (one.slot, due.into_iter().flatten().min().map(|at| at.max(now)));
        self.queue.set(slot, due);
    }

    fn drive_alliance_once(&mut self, index: usize) -> bool {
        let now = self.now;
        let Some(one) = self.alliance_mut(index) else { return false };
        let (node, mobile) = (one.plan.node, one.mobile);
        let (relay_address, client_address) = (one.plan.relay_address, one.plan.client_address);
        let (inner, interface) = (one.plan.inner_interface, one.plan.interface);
        if let Some(transmit) = one.relay.poll_transmit() {
            // One that has vanished says no farewell.
            if !one.is_gone(now) {
                self.send_to_cluster(node, inner, relay_address, &transmit);
            }
            return true;
        }
        if let Some(transmit) = one.client.poll_transmit() {
            self.send_to_cluster(mobile, interface, client_address, &transmit);
            return true;
        }
        if let Some(event) = one.relay.poll_event() {
            let way = Some(down_of(one.plan.cluster));
            let (phase, text) = match event {
                RelayEvent::Allied { .. } => ("relay-allied", "with the mobile node"),
                RelayEvent::Ended { why, .. } => ("relay-ended", name_of_end(why)),
            };
            self.note(node, way, Note::Handover(phase), format_args!("{text}"));
            return true;
        }
        let way = Some(up_of(one.plan.cluster));
        let Some(event) = one.client.poll_event() else { return false };
        let (phase, text, address) = match event {
            ClientEvent::RelayGained { outside, .. } => ("relay-gained", "by its reply", Some(outside)),
            ClientEvent::RelayLost { why, .. } => ("relay-lost", name_of_loss(why), None),
        };
        self.note(mobile, way, Note::Handover(phase), format_args!("{text}"));
        // The address is that of the relay's link, of which the mobile node knows no more.
        let address = address.map(|address| InterfaceAddress { address, prefix_length: 32, gateway: None });
        let interface = InterfaceId(interface.0);
        self.agent_input(mobile, Input::AddressChanged { interface, address });
        self.link_changed(mobile, interface, address.is_some());
        true
    }

    fn send_to_cluster(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        source: Locator,
        transmit: &ClusterTransmit,
    ) {
        let ClusterTransmit { destination, payload } = transmit;
        let destination: Locator = destination.unwrap_or(core::net::Ipv4Addr::BROADCAST).into();
        let datagram = datagram(CLUSTER_PORT, (source.to_ipv4(), destination.to_ipv4()), payload);
        // It is for the cluster alone.
        self.send_message(node, Some(interface), (source, destination), 1, protocol::UDP, datagram);
    }

    /// A message of the cluster may have come; whether it was one.
    pub(crate) fn cluster_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        header: &Header,
        bytes: &[u8],
    ) -> bool {
        let now = self.now;
        let Some(cluster) = &mut self.cluster else { return false };
        let Some(payload) = payload_to(CLUSTER_PORT, header, bytes) else { return false };
        let from = header.source.to_ipv4();
        let is_at = |one: &Alliance| {
            let RelayPlan { node: relay, inner_interface, interface: outer, .. } = one.plan;
            [(relay, inner_interface), (one.mobile, outer)].contains(&(node, interface))
        };
        let Some(index) = cluster.alliances.iter().position(is_at) else { return true };
        let one = &mut cluster.alliances[index];
        if one.mobile == node {
            one.client.handle_message(now, from, payload);
        } else {
            one.relay.handle_message(now, from, payload);
        }
        self.drive_alliance(index);
        true
    }

    /// Whether a node is a relay that has vanished.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        let alliance =
            |cluster: &Cluster| cluster.of_relay(node).map(|at| cluster.alliances[at].is_gone(self.now));
        self.cluster.as_deref().and_then(alliance).unwrap_or(false)
    }

    /// A packet in a tunnel has reached a relay, which passes it on in another one or drops it; whether the node is a relay.
    pub(crate) fn relay_on(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        outer: &Outer,
    ) -> bool {
        let now = self.now;
        let Some(cluster) = &mut self.cluster else { return false };
        let Some(index) = cluster.of_relay(node) else { return false };
        let one = &mut cluster.alliances[index];
        let inner = *self.pool[packet].within();
        let len = u32::from(inner.total_len());
        if outer.wrapping != Wrapping::Ipv4(Encapsulation::IpInIp) {
            self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
            return true;
        }
        let forwarded = if interface == one.plan.inner_interface {
            let ends = [outer.header.source, inner.source, inner.destination].map(Locator::to_ipv4);
            one.relay.forward_outward(now, ends[0], ends[1], ends[2], len)
        } else {
            one.relay.forward_inward(now, inner.destination.to_ipv4(), len)
        };
        let is_dropped = forwarded.is_ok() && one.faults.chance(one.plan.drops);
        let plan = &one.plan;
        let way = match forwarded {
            Ok(_) if is_dropped => Err(NodeDrop::RelayFault),
            Ok(Forwarded::ToClient(client)) => {
                Ok((plan.relay_address, Locator::from(client), plan.inner_interface))
            }
            Ok(Forwarded::ByOwnLink) => Ok((plan.outside, inner.destination, plan.outer_interface)),
            Err(RelayDrop::NoAlly) => Err(NodeDrop::NoAlly),
            Err(RelayDrop::WouldLoop) => Err(NodeDrop::TunnelLoop),
            Err(RelayDrop::OverRate) => Err(NodeDrop::OverRate),
        };
        match way {
            Ok((entry, exit, out)) => {
                self.strip_outer(packet);
                let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
                if self.put_in_tunnel(node, packet, Passage { wrapping, entry, exit, ttl: DEFAULT_TTL }) {
                    self.transmit(node, out, packet);
                }
            }
            Err(cause) => self.drop_packet(node, packet, cause),
        }
        // It may have been the last that the ally may have.
        self.drive_alliance(index);
        true
    }
}

const fn name_of_end(why: AllyEnd) -> &'static str {
    match why {
        AllyEnd::Expired => "its time is up",
        AllyEnd::Withdrawn => "the client wishes it",
        AllyEnd::LimitReached => "the client has had what it may have",
        AllyEnd::Unwilling => "it does not lend any more",
        AllyEnd::LinkLost => "its link is gone",
    }
}

const fn name_of_loss(why: RelayLost) -> &'static str {
    match why {
        RelayLost::Silent => "nothing is heard of it",
        RelayLost::Expired => "its time is up",
        RelayLost::Withdrawn(_) => "it says so",
        RelayLost::Left => "it was left",
    }
}
