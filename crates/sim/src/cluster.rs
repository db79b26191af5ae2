//! Nodes that lend the mobile node their links, and the mobile node as their client.

use careof_base::RandomStream;
use careof_mobility::multipath::alliance::{
    CLUSTER_PORT, CLUSTER_TTL, Client, ClusterTransmit, Incoming, Onward, Relay, RelayDrop, RelayInterfaces,
    Side,
};
use careof_mobility::v4::{Input, InterfaceId};
use careof_plan::{InterfaceIndex, Locator, NodeId, RelayPlan};
use careof_wire::protocol;
use careof_wire::tunnel::Encapsulation;

use crate::bytes::{datagram, payload_to};
use crate::drop_cause::NodeDrop;
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
    /// That the mobile node's interface stands for the relay.
    interfaces: RelayInterfaces,
    /// What the relay drops is drawn from here.
    faults: RandomStream,
}

/// All of them.
pub(crate) struct Cluster {
    alliances: Vec<Alliance>,
    /// Something comes to the mobile node by a path of its own.
    own_path_works: bool,
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
        let interfaces = &self.topology.place(mobile).interfaces;
        let own: Vec<_> = interfaces.iter().map(|interface| interface.address.to_ipv4()).collect();
        let alliances = plans.into_iter().enumerate().map(|(index, plan)| {
            let slot = self.add_component(Component::Alliance(index as u8));
            self.queue.set(slot, Some(now));
            let stream = |what: &str| {
                let name = &self.topology.place(plan.node).name;
                careof_plan::stream(&self.scenario, self.run, &format!("relay.{name}.{what}"))
            };
            let (faults, client) = (stream("faults"), stream("client"));
            let relay = Relay::new(now, plan.relay.clone(), stream("challenge").next_u64());
            // Nothing was said before the run.
            let mut client = Client::new(plan.client.clone(), 0, client);
            client.set_own_addresses(now, own.clone());
            Alliance {
                mobile,
                slot,
                relay,
                client,
                interfaces: RelayInterfaces::new([InterfaceId(plan.interface.0)]),
                faults,
                plan,
            }
        });
        let alliances = alliances.collect();
        self.cluster = Some(Box::new(Cluster { alliances, own_path_works: false }));
    }

    /// The deadline of a relay or of its client has come.
    pub(crate) fn alliance_timeout(&mut self, index: usize) {
        let now = self.now;
        let Some(one) = self.alliance_mut(index) else { return };
        if !one.plan.is_gone(now) && one.relay.next_timeout() <= now {
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
        let of_relay = Some(one.relay.next_timeout()).filter(|_| !one.plan.is_gone(now));
        let due = [of_relay, one.client.next_timeout(), one.plan.next_change(now)];
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
            if !one.plan.is_gone(now) {
                self.send_to_cluster(node, inner, relay_address, &transmit);
            }
            return true;
        }
        if let Some(transmit) = one.client.poll_transmit() {
            self.send_to_cluster(mobile, interface, client_address, &transmit);
            return true;
        }
        if let Some(event) = one.relay.poll_event() {
            let (phase, way, text) = one.plan.news_of_relay(&event);
            self.note(node, Some(way), Note::Handover(phase), format_args!("{text}"));
            return true;
        }
        let Some(event) = one.client.poll_event() else { return false };
        let (phase, way, text) = one.plan.news_of_client(&event);
        let change = one.interfaces.follow(&event);
        self.note(mobile, Some(way), Note::Handover(phase), format_args!("{text}"));
        if let Some(change) = change {
            let (interface, address) = (change.interface, change.address);
            self.agent_input(mobile, Input::AddressChanged { interface, address });
            self.link_changed(mobile, interface, address.is_some());
        }
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
        let ends = (source, destination);
        self.send_message(node, Some(interface), ends, CLUSTER_TTL, protocol::UDP, datagram);
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
        let (from, ttl) = (header.source.to_ipv4(), header.ttl);
        let is_at = |one: &Alliance| {
            let RelayPlan { node: relay, inner_interface, interface: outer, .. } = one.plan;
            [(relay, inner_interface), (one.mobile, outer)].contains(&(node, interface))
        };
        let Some(index) = cluster.alliances.iter().position(is_at) else { return true };
        let one = &mut cluster.alliances[index];
        if one.mobile == node {
            one.client.handle_message(now, from, ttl, payload);
        } else {
            one.relay.handle_message(now, from, ttl, payload);
        }
        self.drive_alliance(index);
        true
    }

    /// A relay's client learns whether anything comes through it: `relay` is its place among those of the plan.
    pub(crate) fn note_relayed_path(&mut self, relay: usize, works: bool) {
        let now = self.now;
        let Some(one) = self.alliance_mut(relay) else { return };
        one.client.note_path(now, one.plan.relay_address.to_ipv4(), works);
        self.drive_alliance(relay);
    }

    /// The clients learn whether anything comes by a path of the mobile node's own.
    pub(crate) fn note_own_path(&mut self, works: bool) {
        let now = self.now;
        let Some(cluster) = &mut self.cluster else { return };
        if cluster.own_path_works == works {
            return;
        }
        cluster.own_path_works = works;
        cluster.alliances.iter_mut().for_each(|one| one.client.note_own_path(now, works));
        (0..cluster.alliances.len()).for_each(|index| self.drive_alliance(index));
    }

    /// Whether a node is a relay that has vanished.
    pub(crate) fn is_gone(&self, node: NodeId) -> bool {
        let alliance =
            |cluster: &Cluster| cluster.of_relay(node).map(|at| cluster.alliances[at].plan.is_gone(self.now));
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
        let [entry, source, destination] =
            [outer.header.source, inner.source, inner.destination].map(Locator::to_ipv4);
        let side = if interface == one.plan.inner_interface { Side::Cluster } else { Side::Link };
        let ttl = outer.header.ttl;
        let onward = one.relay.switch(now, &Incoming { side, entry, source, destination, ttl, len });
        let is_dropped = onward.is_ok() && one.faults.chance(one.plan.drops);
        let interfaces = [one.plan.inner_interface, one.plan.outer_interface];
        let way = match onward {
            Ok(_) if is_dropped => Err(NodeDrop::RelayFault),
            Ok(onward) => Ok(onward),
            Err(RelayDrop::NoAlly) => Err(NodeDrop::NoAlly),
            Err(RelayDrop::WouldLoop) => Err(NodeDrop::TunnelLoop),
            Err(RelayDrop::OverRate) => Err(NodeDrop::OverRate),
            Err(RelayDrop::NotHomeAgent) => Err(NodeDrop::ForeignTunnel),
            Err(RelayDrop::Expired) => Err(NodeDrop::TtlExpired),
        };
        match way {
            Ok(Onward { side, entry, exit, ttl }) => {
                self.strip_outer(packet);
                let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
                let passage = Passage { wrapping, entry: entry.into(), exit: exit.into(), ttl };
                if self.put_in_tunnel(node, packet, passage) {
                    self.transmit(node, interfaces[usize::from(side == Side::Link)], packet);
                }
            }
            Err(cause) => self.drop_packet(node, packet, cause),
        }
        // It may have been the last that the ally may have.
        self.drive_alliance(index);
        true
    }
}
