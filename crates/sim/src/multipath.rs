//! Several links at once: the two ends of the tunnel over them, each with the packets that it holds.

use std::sync::Arc;

use careof_metrics::{MultipathSummary, PathSummary};
use careof_mobility::PathState;
use careof_mobility::multipath::{
    Bond, BondDrop, BondEvent, BondTransmit, FlowFields, PATH_PORT, PathChange, PathId, Sending,
};
use careof_mobility::v4::InterfaceId;
use careof_plan::{InterfaceIndex, Locator, MultipathPlan, NodeId, OneWayId, PlannedPath, down_of, up_of};
use careof_scenario::LinkId;
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, MultipathPayload};

use crate::agents::Agent;
use crate::bytes::{datagram, payload_to};
use crate::drop_cause::NodeDrop;
use crate::forwarding::DEFAULT_TTL;
use crate::header::{Header, IPV4_LEN};
use crate::observer::Note;
use crate::packet::{Body, Packet, PacketRef};
use crate::passage::{MULTIPATH_OVERHEAD, Passage, Wrapping};
use crate::queue::Slot;
use crate::simulation::{Component, Simulation};

/// The place of an end in [`Multipath::ends`].
const HOME: usize = 0;
const MOBILE: usize = 1;

/// A packet in the hands of an end.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    /// The packet of the run: what a first transmission sends, and what has come.
    packet: PacketRef,
    /// Where it came in, of one that has come.
    interface: InterfaceIndex,
    /// What copies are made of, of one that is sent. It is no packet of the run.
    value: Option<Arc<Packet>>,
}

/// One end.
struct End {
    node: NodeId,
    slot: Slot,
    bond: Bond<Handed>,
    /// Of the paths, in the order of the plan: whether its care-of address is registered.
    is_there: Vec<bool>,
    /// Its packets are being taken out: what comes meanwhile is taken with them.
    is_draining: bool,
}

/// The tunnel between a mobile node with several paths and its home agent.
pub(crate) struct Multipath {
    plan: MultipathPlan,
    ends: [End; 2],
}

impl Multipath {
    fn end_at(&self, node: NodeId) -> Option<usize> {
        self.ends.iter().position(|end| end.node == node)
    }

    /// Why messages about paths had no effect at either end, and how many.
    pub(crate) fn dropped_messages(&self) -> impl Iterator<Item = (BondDrop, u64)> + '_ {
        let dropped = |end: &End| BondDrop::ALL.map(|reason| (reason, end.bond.counters().dropped(reason)));
        self.ends.iter().flat_map(dropped).filter(|(_, count)| *count > 0)
    }

    fn path(&self, path: PathId) -> Option<PlannedPath> {
        self.plan.paths.iter().find(|planned| planned.id == path).copied()
    }

    /// The longest datagram that fits the tunnel by every path, where `of` says what a link takes.
    pub(crate) fn mtu(&self, of: impl Fn(OneWayId) -> u16) -> u16 {
        let own = self.plan.paths.iter().filter(|path| path.relay.is_none()).map(|path| path.link);
        let lent = self.plan.relays.iter().flat_map(|relay| [relay.link, relay.cluster]);
        let least = |links: &mut dyn Iterator<Item = LinkId>, overhead: u16| {
            let ways = links.flat_map(|link| [down_of(link), up_of(link)]);
            ways.map(&of).min().unwrap_or(u16::MAX).saturating_sub(overhead)
        };
        let through_relay = MULTIPATH_OVERHEAD + u16::from(IPV4_LEN);
        least(&mut { own }, MULTIPATH_OVERHEAD).min(least(&mut { lent }, through_relay))
    }

    /// Packets of the run that wait for earlier ones.
    pub(crate) fn held(&self) -> u64 {
        self.ends.iter().map(|end| end.bond.resequencer().holds().0 as u64).sum()
    }
}

impl Simulation {
    /// Sets the two ends up, where the scenario has several links at once.
    pub(crate) fn add_multipath(&mut self) {
        let Some(plan) = careof_plan::multipath(&self.scenario, &self.topology, self.run) else { return };
        let ends = [(HOME, plan.home_agent), (MOBILE, plan.mobile)].map(|(place, node)| {
            let random = self.stream(&format!("multipath.{}", self.node(node).place.name));
            End {
                node,
                slot: self.add_component(Component::Multipath(place as u8)),
                bond: Bond::new(plan.ends[place].clone(), random),
                is_there: vec![false; plan.paths.len()],
                is_draining: false,
            }
        });
        self.add_cluster(plan.mobile, plan.relays.clone());
        self.multipath = Some(Box::new(Multipath { plan, ends }));
    }

    /// An agent of a node has done something: the paths of its end are those whose care-of addresses are registered.
    pub(crate) fn follow_registrations(&mut self, node: NodeId) {
        let Some(multipath) = &self.multipath else { return };
        let Some(place) = multipath.end_at(node) else { return };
        let home_address = multipath.plan.home_address.to_ipv4();
        let is_there = |path: &PlannedPath| match &self.node(node).agent {
            Agent::Home(agent) => agent.paths(home_address).any(|known| known.path == path.id),
            Agent::Mobile(mobile) => mobile.paths().any(|known| known.path == path.id),
            _ => false,
        };
        let there: Vec<bool> = multipath.plan.paths.iter().map(is_there).collect();
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return };
        let end = &mut multipath.ends[place];
        let mut changed = false;
        for ((path, was_there), there) in multipath.plan.paths.iter().zip(&mut end.is_there).zip(there) {
            match (*was_there, there) {
                (false, true) if path.relay.is_some() => {
                    end.bond.set_path_to_prove(now, path.id, path.configs[place]);
                }
                (false, true) => end.bond.set_path(now, path.id, path.configs[place]),
                (true, false) => end.bond.remove_path(now, path.id),
                _ => continue,
            }
            (*was_there, changed) = (there, true);
        }
        if changed {
            self.drain_multipath(place);
        }
    }

    /// A packet is at the entrance of the tunnel at `node`: at the home agent one for the mobile node, there one of its own. Whether it
    /// was taken.
    pub(crate) fn disperse(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return false };
        let Some(place) = multipath.end_at(node) else { return false };
        let sent = &self.pool[packet];
        let (home, own) = (multipath.plan.home_address, [sent.header.destination, sent.header.source][place]);
        let end = &mut multipath.ends[place];
        if own != home || sent.outer.is_some() || !end.is_there.contains(&true) {
            return false;
        }
        let (fields, len) = (flow_fields(sent, place), u32::from(sent.header.total_len()));
        let value = Some(Arc::new(sent.clone()));
        let handed = Handed { packet, interface: InterfaceIndex(0), value };
        if let Err(refused) = end.bond.send(now, &fields, len, MultipathPayload::Ipv4, handed) {
            self.drop_packet(node, refused.packet, NodeDrop::NoPath);
        }
        self.drain_multipath(place);
        true
    }

    /// Whether what the mobile node sends is dispersed.
    pub(crate) fn disperses_uplink(&self, node: NodeId) -> bool {
        self.multipath
            .as_ref()
            .is_some_and(|multipath| multipath.plan.mobile == node && multipath.plan.disperses_uplink)
    }

    /// A packet has come out of the tunnel, whose outer headers had `header` behind them.
    pub(crate) fn restore_order(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        packet: PacketRef,
        header: &careof_wire::tunnel::MultipathHeader,
    ) {
        let now = self.now;
        let len = u32::from(self.pool[packet].header.total_len());
        let Some(multipath) = &mut self.multipath else {
            return self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
        };
        let Some(place) = multipath.end_at(node) else {
            return self.drop_packet(node, packet, NodeDrop::ForeignTunnel);
        };
        let handed = Handed { packet, interface, value: None };
        let duplicate = multipath.ends[place].bond.receive(now, header, len, handed);
        if let Some(duplicate) = duplicate {
            self.drop_packet(node, duplicate.packet, NodeDrop::Duplicate);
        }
        self.drain_multipath(place);
    }

    /// A message about a path may have come; whether it was one.
    pub(crate) fn multipath_message(
        &mut self,
        node: NodeId,
        interface: InterfaceIndex,
        header: &Header,
        bytes: &[u8],
    ) -> bool {
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return false };
        let Some(place) = multipath.end_at(node) else { return false };
        let Some(payload) = payload_to(PATH_PORT, header, bytes) else { return false };
        // Of what came through a relay to the home agent the message itself says it.
        let comes_by = |path: &&PlannedPath| match place {
            HOME => path.relay.is_none() && path.care_of == header.source,
            _ => path.interface == interface,
        };
        let by = multipath.plan.paths.iter().find(comes_by).map(|path| path.id);
        // Why it has no effect, if it has none, the end counts.
        let _ = multipath.ends[place].bond.handle_message(now, by, payload);
        self.drain_multipath(place);
        true
    }

    /// The deadline of an end has come.
    pub(crate) fn multipath_timeout(&mut self, place: usize) {
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return };
        multipath.ends[place].bond.handle_timeout(now);
        self.drain_multipath(place);
    }

    /// The link at an interface of the mobile node is down.
    pub(crate) fn multipath_link_down(&mut self, node: NodeId, interface: InterfaceId) {
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return };
        let Multipath { plan, ends } = &mut **multipath;
        let path = plan.paths.iter().find(|path| path.interface.0 == interface.0);
        if let Some(path) = path.filter(|_| plan.mobile == node) {
            ends[MOBILE].bond.path_is_out(now, path.id);
            self.drain_multipath(MOBILE);
        }
    }

    /// Does what an end asks for, until it asks for nothing.
    fn drain_multipath(&mut self, place: usize) {
        match self.multipath.as_mut().map(|multipath| &mut multipath.ends[place]) {
            Some(end) if !end.is_draining => end.is_draining = true,
            _ => return,
        }
        while self.drain_one(place) {}
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return };
        let end = &mut multipath.ends[place];
        end.is_draining = false;
        let deadline = end.bond.next_timeout(now).map(|at| at.max(now));
        self.queue.set(end.slot, deadline);
        if place == MOBILE && !multipath.plan.relays.is_empty() {
            let known = end.bond.dispersion();
            let is_alive = |id| known.path(id).is_some_and(|path| path.state() == PathState::Alive);
            let mut own = multipath.plan.paths.iter().filter(|path| path.relay.is_none());
            let works = own.any(|path| is_alive(path.id));
            self.note_own_path(works);
        }
    }

    fn drain_one(&mut self, place: usize) -> bool {
        let now = self.now;
        let Some(multipath) = &mut self.multipath else { return false };
        let end = &mut multipath.ends[place];
        let node = end.node;
        if let Some(transmit) = end.bond.poll_transmit() {
            if let Some(path) = multipath.path(transmit.path) {
                self.put_on_path(place, node, &path, transmit);
            }
            return true;
        }
        if let Some((path, message)) = end.bond.poll_message(now) {
            if let Some(path) = multipath.path(path) {
                self.send_about_path(place, node, &path, &message);
            }
            return true;
        }
        if let Some(event) = end.bond.poll_event() {
            self.note_path(node, event);
            let relayed = |path| self.multipath.as_ref()?.path(path)?.relay;
            let news = match event {
                BondEvent::Path { path, change } => Some((path, change == PathChange::Back)),
                BondEvent::Proven { path } => Some((path, true)),
                BondEvent::PeerRestarted => None,
            };
            if let (MOBILE, Some((path, works))) = (place, news)
                && let Some(relay) = relayed(path)
            {
                self.note_relayed_path(relay, works);
            }
            return true;
        }
        let Some(Handed { packet, interface, .. }) = end.bond.poll_delivery() else { return false };
        self.pass_on_in_order(node, interface, packet);
        true
    }

    fn put_on_path(
        &mut self,
        place: usize,
        node: NodeId,
        path: &PlannedPath,
        transmit: BondTransmit<Handed>,
    ) {
        let BondTransmit { header, packet: Handed { packet, value, .. }, sending, .. } = transmit;
        let packet = match (sending, value) {
            (Sending::First, _) => packet,
            (Sending::Copy | Sending::Replay, Some(value)) => {
                let original = value.id;
                let copy = self.insert(Packet::clone(&value));
                let cause = if sending == Sending::Copy { "copy" } else { "replay" };
                self.trace_derived(node, copy, original, cause);
                copy
            }
            // Whatever is sent has its value with it.
            (Sending::Copy | Sending::Replay, None) => return,
        };
        let (entry, exit) = self.ends_of_path(place, node, path);
        let passage = Passage { wrapping: Wrapping::Multipath, entry, exit, ttl: DEFAULT_TTL };
        if !self.put_in_tunnel(node, packet, passage) {
            return;
        }
        self.pool[packet].number(header);
        if let Some(passage) = self.passage_to_relay(place, node, path)
            && !self.put_in_tunnel(node, packet, passage)
        {
            return;
        }
        match place {
            HOME => self.send_as_known(node, packet, |this, part| this.route_on(node, part)),
            _ => self.transmit(node, path.interface, packet),
        }
    }

    /// The addresses of a path, seen from one of its ends.
    fn ends_of_path(&self, place: usize, node: NodeId, path: &PlannedPath) -> (Locator, Locator) {
        let home_agent = self.topology.homes.at(match place {
            HOME => node,
            _ => self.multipath.as_ref().map_or(node, |multipath| multipath.plan.home_agent),
        });
        let agent = home_agent.map_or(Locator::NOWHERE, |home| home.agent_address);
        let home_address = || self.multipath.as_ref().map_or(Locator::NOWHERE, |one| one.plan.home_address);
        let mobile = path.relay.map_or(path.care_of, |_| home_address());
        if place == HOME { (agent, mobile) } else { (mobile, agent) }
    }

    /// The tunnel to the relay that a path leads through, from one of its ends.
    fn passage_to_relay(&self, place: usize, node: NodeId, path: &PlannedPath) -> Option<Passage> {
        let relay = self.multipath.as_ref()?.plan.relays.get(path.relay?)?;
        let (entry, exit) = match place {
            HOME => (self.topology.homes.at(node)?.agent_address, relay.outside),
            _ => (relay.client_address, relay.relay_address),
        };
        let wrapping = Wrapping::Ipv4(Encapsulation::IpInIp);
        Some(Passage { wrapping, entry, exit, ttl: DEFAULT_TTL })
    }

    fn send_about_path(&mut self, place: usize, node: NodeId, path: &PlannedPath, message: &[u8]) {
        let (source, destination) = self.ends_of_path(place, node, path);
        let datagram = datagram(PATH_PORT, (source.to_ipv4(), destination.to_ipv4()), message);
        let packet = self.message((source, destination), node, DEFAULT_TTL, protocol::UDP, datagram);
        self.trace_message(node, packet, true);
        if let Some(passage) = self.passage_to_relay(place, node, path)
            && !self.put_in_tunnel(node, packet, passage)
        {
            return;
        }
        match place {
            HOME => self.route_on(node, packet),
            _ => self.transmit(node, path.interface, packet),
        }
    }

    fn note_path(&mut self, node: NodeId, event: BondEvent) {
        let Some(multipath) = &self.multipath else { return };
        let (phase, way, text) = multipath.plan.news(node, event);
        self.note(node, way, Note::Handover(phase), format_args!("{text}"));
    }

    /// What happened at both ends.
    pub(crate) fn multipath_summaries(&self) -> Vec<MultipathSummary> {
        let Some(multipath) = &self.multipath else { return Vec::new() };
        (0..multipath.ends.len()).map(|place| self.multipath_summary(multipath, place)).collect()
    }

    fn multipath_summary(&self, multipath: &Multipath, place: usize) -> MultipathSummary {
        let end = &multipath.ends[place];
        let (sent, order) = (end.bond.counters(), end.bond.resequencer().counters());
        let auto = end.bond.dispersion().auto();
        let all: u64 = multipath.plan.paths.iter().map(|path| end.bond.account(path.id).bytes).sum();
        let of_path = |path: &PlannedPath| {
            let account = end.bond.account(path.id);
            let known = end.bond.dispersion().path(path.id).map(|path| path.estimate()).unwrap_or_default();
            PathSummary {
                link: self.scenario.link(path.link).name.clone(),
                packets: account.packets,
                bytes: account.bytes,
                share: (all > 0).then(|| account.bytes as f64 / all as f64),
                rate: known.rate.map(careof_base::DataRate::bits_per_second),
                round_trip: known.round_trip,
                variation: Some(known.transit_variation).filter(|_| known.transit.is_some()),
                loss: known.loss_permille.map(|permille| f64::from(permille) / 1000.0),
                outages: account.outages,
                out_for: account.out_for(self.now),
            }
        };
        MultipathSummary {
            node: self.node(end.node).place.name.clone(),
            mode: match (&self.scenario.mobility.as_ref().and_then(|one| one.multipath.as_ref()), auto.mode) {
                (Some(asked), mode) if asked.dispersion == careof_scenario::Dispersion::Auto => {
                    Some(mode.name().to_owned())
                }
                _ => None,
            },
            offered: sent.offered,
            no_path: sent.no_path,
            copies: sent.copies,
            replayed: sent.replayed,
            moves: end.bond.dispersion().counters().moves,
            messages: sent.messages_sent,
            arrived: order.arrived,
            duplicates: order.duplicates,
            waited: order.held,
            late: order.late,
            given_up: order.given_up(),
            longest_wait: order.longest_wait,
            paths: multipath.plan.paths.iter().map(of_path).collect(),
        }
    }
}

/// What of a packet decides how it goes, at one end.
fn flow_fields(packet: &Packet, place: usize) -> FlowFields {
    let header = &packet.header;
    let ports = match &packet.body {
        Body::Tcp(segment) if !header.is_fragment() => Some((segment.source_port, segment.destination_port)),
        _ => None,
    };
    let (source, destination) = (header.source.to_ipv4().into(), header.destination.to_ipv4().into());
    let (from, to) = (ports.map(|(from, _)| from), ports.map(|(_, to)| to));
    let (remote, remote_port, local, local_port) = match place {
        HOME => (source, from, destination, to),
        _ => (destination, to, source, from),
    };
    FlowFields { remote, remote_port, local, local_port, protocol: header.protocol, dscp: header.tos >> 2 }
}
