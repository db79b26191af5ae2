//! The assists of a node: what they are shown and told, and what they ask for, done.
//!
//! An assistant keeps numbers, the packets are here. A copy that is kept is a value of its own and no packet of the run
//! until it is sent; a packet that is held is one, and counts as queued.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use careof_assist::{
    Action, Assistant, Config, Edit, Fate, FlowKey, HoleNews, Input, PacketView, PathId, Report, Token, Told,
    Towards,
};
use careof_metrics::AssistDeed;
use careof_mobility::InterfaceId;
use careof_mobility::v4::Tunnel;
use careof_plan::{FlowId, InterfaceIndex, Locator, NodeId, Route, Side, note_hole, port};
use careof_trace::AssistRecord;
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode, quote_segment};
use careof_wire::icmpv6::{self, Icmpv6Message};
use careof_wire::ipv6::Ipv6Header;
use careof_wire::{IpHeader, SackBlocks, Segment, SeqNumber};

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::header::Header;
use crate::packet::{Body, Origin, Packet, PacketRef};
use crate::queue::Slot;
use crate::simulation::{Component, Node, Simulation, WorldError};

/// The assists of one node, with the packets they keep.
pub(crate) struct Anchor {
    pub(crate) assistant: Assistant,
    /// By token.
    stored: Vec<Option<Stored>>,
    /// How many of these are packets of the run.
    held: u64,
    /// Mobile nodes whose binding has just changed, and whether what was on its way by the path before is lost, if they said.
    pub(crate) moved: BTreeMap<IpAddr, Told>,
    slot: Slot,
    /// What a tunnel adds to a datagram.
    overhead: u16,
}

/// A packet under a token, and the end it goes to.
struct Stored {
    towards: Towards,
    what: Kept,
}

enum Kept {
    /// A copy of what went on.
    Copy(Box<Packet>),
    /// The packet itself, which did not.
    Held(PacketRef),
}

/// Something for the node's own TCP, or its relay. It waits until everything that goes to the network is on its way, for the answer may
/// follow at once and must not overtake it.
enum ForHere {
    Segment(PacketRef),
    Error(Locator, IcmpError),
}

/// An ICMP error of either version.
enum IcmpError {
    V4(IcmpMessage),
    V6(Icmpv6Message),
}

impl Anchor {
    fn store(&mut self, token: Token, stored: Stored) {
        let index = token.0 as usize;
        if self.stored.len() <= index {
            self.stored.resize_with(index + 1, || None);
        }
        self.held += u64::from(matches!(stored.what, Kept::Held(_)));
        let before = self.stored[index].replace(stored);
        debug_assert!(before.is_none(), "a token stands for one packet at a time");
    }

    fn take(&mut self, token: Token) -> Option<Stored> {
        let stored = self.stored.get_mut(token.0 as usize)?.take()?;
        self.held -= u64::from(matches!(stored.what, Kept::Held(_)));
        Some(stored)
    }
}

impl Node {
    /// Packets that its assists hold.
    pub(crate) fn held_by_assist(&self) -> u64 {
        self.assist.as_ref().map_or(0, |anchor| anchor.held)
    }
}

impl Simulation {
    /// Sets the assists of a node up, if it is to have any. Before its routes are resolved.
    pub(crate) fn add_assists(&mut self, node: NodeId) -> Result<(), WorldError> {
        match careof_plan::assists(&self.scenario, &self.topology, node) {
            Some(config) => self.add_anchor(node, config),
            None => Ok(()),
        }
    }

    fn add_anchor(&mut self, node: NodeId, config: Config) -> Result<(), WorldError> {
        let assistant = Assistant::new(config).map_err(|error| WorldError::Assist(error.to_string()))?;
        let slot = self.add_component(Component::Assist(node));
        let overhead = careof_plan::tunnel_overhead(&self.scenario);
        self.node_mut(node).assist = Some(Box::new(Anchor {
            assistant,
            stored: Vec::new(),
            held: 0,
            moved: BTreeMap::new(),
            slot,
            overhead,
        }));
        Ok(())
    }

    /// A router with assists forwards a packet.
    #[inline(never)]
    pub(crate) fn forward_assisted(&mut self, node: NodeId, packet: PacketRef, route: Route) {
        if self.relays.is_some() && self.relay_takes(node, packet) {
            return;
        }
        self.station_sees(node, packet);
        let goes_on = match self.direction(node, packet) {
            Some((towards, path)) => self.show(node, towards, path, packet),
            None => true,
        };
        if goes_on {
            self.forward_on(node, packet, route);
        }
        self.drive_assist(node);
    }

    /// The mobile node sends a packet of its own past its assists.
    #[inline(never)]
    pub(crate) fn originate_assisted(&mut self, node: NodeId, packet: PacketRef, port: u16) {
        let goes_on = match self.direction(node, packet) {
            Some((Towards::Peer, path)) => self.show(node, Towards::Peer, path, packet),
            _ => true,
        };
        if goes_on {
            self.originate_on(node, packet, port);
        }
        self.drive_assist(node);
    }

    /// A whole segment has reached an address of a node with assists: the mobile node's, or that of an agent that is the
    /// mobile node's peer itself.
    #[inline(never)]
    pub(crate) fn deliver_assisted(&mut self, node: NodeId, interface: InterfaceIndex, packet: PacketRef) {
        let goes_on = match self.direction(node, packet) {
            Some((towards, path)) => {
                let came_by = match &self.node(node).agent {
                    agent if agent.moves() => Some(path_by(InterfaceId(interface.0))),
                    _ => path,
                };
                self.show(node, towards, came_by, packet)
            }
            None => true,
        };
        if goes_on {
            self.deliver_segment(node, packet);
        }
        self.drive_assist(node);
    }

    /// Sends a packet on that waited in a queue behind `node`, which has seen it before.
    pub(crate) fn send_again(&mut self, node: NodeId, packet: PacketRef, port: u16) {
        if self.node(node).assist.is_none() {
            return self.originate(node, packet, port);
        }
        let destination = self.pool[packet].header.destination;
        match &self.node(node).agent {
            agent if agent.moves() => self.originate_on(node, packet, port),
            _ => {
                let route = self.node(node).place.route(destination);
                self.forward_on(node, packet, route);
            }
        }
    }

    /// Which end of a mobile node's flow a packet goes to, and the path to the mobile node that it takes, as far as `node`
    /// knows; `None` for what no assist is shown.
    pub(crate) fn direction(&self, node: NodeId, packet: PacketRef) -> Option<(Towards, Option<PathId>)> {
        let passing = &self.pool[packet];
        let header = &passing.header;
        if passing.outer.is_some() {
            return match &self.node(node).agent {
                Agent::Ipv6(host) => self.regional_direction(host, passing),
                _ => None,
            };
        }
        if let Agent::Ipv6(host) = &self.node(node).agent {
            return self.ipv6_direction(node, host, header);
        }
        let (to, from) = (header.destination.to_ipv4(), header.source.to_ipv4());
        match &self.node(node).agent {
            Agent::None | Agent::Correspondent(_) | Agent::Ipv6(_) => None,
            Agent::Home(agent) if agent.serves(to) => {
                Some((Towards::Mobile, agent.tunnels(to).last().map(|tunnel| path_to(tunnel.exit))))
            }
            Agent::Home(agent) => agent.serves(from).then_some((Towards::Peer, None)),
            Agent::Foreign(agent) => {
                let behind = |interface: InterfaceId| Some(path_by(interface));
                let towards_it = agent.deliver(to).map(|interface| (Towards::Mobile, behind(interface)));
                towards_it.or_else(|| agent.deliver(from).map(|interface| (Towards::Peer, behind(interface))))
            }
            Agent::Mobile(mobile) => {
                let own = self.topology.homes.address_of(node)?.to_ipv4();
                let path = mobile.active().map(path_by);
                match (to == own, from == own) {
                    (true, _) => Some((Towards::Mobile, path)),
                    (_, true) => Some((Towards::Peer, path)),
                    _ => None,
                }
            }
        }
    }

    /// Shows a packet to the assists of `node`; whether it goes on.
    pub(crate) fn show(
        &mut self,
        node: NodeId,
        towards: Towards,
        path: Option<PathId>,
        packet: PacketRef,
    ) -> bool {
        let now = self.now;
        let Some(anchor) = &mut self.nodes[usize::from(node.0)].assist else { return true };
        let shown = &self.pool[packet];
        let segment = match &shown.body {
            Body::Tcp(segment) if !shown.header.is_fragment() => Some(segment),
            Body::Tcp(_) | Body::Message(_) | Body::OnLink(_) => None,
        };
        let overhead = anchor.overhead;
        let header = shown.header.to_ip(&self.topology.plan);
        let view = PacketView { header, segment, is_opaque: false, overhead };
        let verdict = anchor.assistant.handle_packet(now, towards, path, &view);
        if let Some(edit) = verdict.edit {
            self.edit(packet, edit);
        }
        if let Some(longest) = verdict.fragments {
            self.pool[packet].in_fragments = longest;
        }
        let Some(anchor) = &mut self.nodes[usize::from(node.0)].assist else { return true };
        if let Some(token) = verdict.keep {
            let copy = Box::new(self.pool[packet].clone());
            anchor.store(token, Stored { towards, what: Kept::Copy(copy) });
        }
        match verdict.fate {
            Fate::Pass => true,
            Fate::Hold(token) => {
                anchor.store(token, Stored { towards, what: Kept::Held(packet) });
                self.count_deed(self.pool[packet].origin, AssistDeed::Held);
                false
            }
            Fate::Drop(reason) => {
                if reason.swallows_repetition() {
                    self.count_deed(self.pool[packet].origin, AssistDeed::Swallowed);
                }
                self.drop_packet(node, packet, reason.into());
                false
            }
        }
    }

    fn edit(&mut self, packet: PacketRef, edit: Edit) {
        let edited = &mut self.pool[packet];
        let Body::Tcp(segment) = &mut edited.body else { return };
        if let Some(window) = edit.window {
            segment.window = window;
        }
        if let Some(ack) = edit.ack {
            if let Some(origin) = &mut edited.origin {
                origin.ack += i64::from(ack.0.wrapping_sub(segment.ack.0) as i32);
            }
            segment.ack = ack;
        }
        if let (Some(_), Some(mss)) = (segment.mss, edit.mss) {
            segment.mss = Some(mss);
        }
        if edit.without_sack {
            segment.sack = SackBlocks::default();
            let before = edited.header.payload_len;
            edited.header.payload_len = segment.header_len() + segment.payload_len;
            let removed = before.saturating_sub(edited.header.payload_len);
            edited.outers_mut().for_each(|outer| outer.header.payload_len -= removed);
        }
        self.pool.rewrite(packet);
    }

    /// A timer of the assists of a node ran out.
    pub(crate) fn assist_timeout(&mut self, node: NodeId) {
        let now = self.now;
        if let Some(anchor) = &mut self.node_mut(node).assist {
            anchor.assistant.handle_timeout(now);
        }
        self.drive_assist(node);
    }

    pub(crate) fn assist_event(&mut self, node: NodeId, input: &Input<'_>) {
        let now = self.now;
        if let Some(anchor) = &mut self.node_mut(node).assist {
            anchor.assistant.handle_event(now, input);
            self.drive_assist(node);
        }
    }

    /// Does what the assists of a node ask for, and sets their timer.
    pub(crate) fn drive_assist(&mut self, node: NodeId) {
        let mut for_here = Vec::new();
        while let Some(anchor) = &mut self.node_mut(node).assist
            && let Some(action) = anchor.assistant.poll_action()
        {
            match action {
                Action::Release { token, via, keep } => {
                    self.release_stored(node, token, via, keep, &mut for_here);
                }
                Action::Discard { token, dropped } => {
                    if let Some(Stored { what: Kept::Held(packet), .. }) = anchor.take(token) {
                        let cause = dropped.map_or(NodeDrop::AssistTooOld, NodeDrop::from);
                        self.drop_packet(node, packet, cause);
                    }
                }
                Action::Inject { header, segment, towards } => {
                    self.inject(node, &header, &segment, towards, &mut for_here);
                }
                Action::Unreachable { quoted, ports, seq } => {
                    self.host_unreachable(node, &quoted, ports, seq, &mut for_here);
                }
                Action::TooBig { quoted, ports, seq, mtu } => {
                    self.tell_sender(node, Some(mtu), (&quoted, ports, seq), &mut for_here);
                }
            }
        }
        while let Some(anchor) = &mut self.node_mut(node).assist
            && let Some(report) = anchor.assistant.poll_report()
        {
            self.take_report(node, &report);
        }
        for one in for_here {
            match one {
                ForHere::Segment(packet) if self.is_for_relay(node, packet, Towards::Peer) => {
                    self.deliver_to_relay(packet);
                }
                ForHere::Segment(packet) => self.deliver_segment(node, packet),
                ForHere::Error(to, error) => self.send_error(node, to, &error),
            }
        }
        if let Some(anchor) = &self.node(node).assist {
            let (slot, deadline) = (anchor.slot, anchor.assistant.next_timeout().map(|(at, _)| at));
            self.queue.set(slot, deadline);
        }
    }

    fn release_stored(
        &mut self,
        node: NodeId,
        token: Token,
        via: Option<PathId>,
        keep: bool,
        for_here: &mut Vec<ForHere>,
    ) {
        let Some(anchor) = &mut self.nodes[usize::from(node.0)].assist else { return };
        let Some(Stored { towards, what }) = anchor.take(token) else {
            debug_assert!(false, "only what is stored is released");
            return;
        };
        // Of a packet that is sent again, what it was when it was kept.
        let (packet, kept) = match what {
            Kept::Held(packet) => (packet, None),
            Kept::Copy(copy) if keep => {
                let packet = self.pool.insert((*copy).clone());
                let id = copy.id;
                anchor.store(token, Stored { towards, what: Kept::Copy(copy) });
                (packet, Some(id))
            }
            Kept::Copy(copy) => {
                let id = copy.id;
                (self.pool.insert(*copy), Some(id))
            }
        };
        if kept.is_none() && keep {
            let copy = Box::new(self.pool[packet].clone());
            anchor.store(token, Stored { towards, what: Kept::Copy(copy) });
        }
        if let Some(of_packet) = kept {
            self.count_deed(self.pool[packet].origin, AssistDeed::Replayed);
            self.trace_derived(node, packet, of_packet, "replay");
        }
        if !self.send_stored(node, towards, via, packet, for_here) {
            self.drop_packet(node, packet, NodeDrop::NoRoute);
            let now = self.now;
            if let Some(anchor) = &mut self.node_mut(node).assist {
                anchor.assistant.handle_event(now, &Input::NotSent { token });
            }
        }
    }

    /// Sends a packet on as if it went on now; `false` when there is no such way.
    fn send_stored(
        &mut self,
        node: NodeId,
        towards: Towards,
        via: Option<PathId>,
        packet: PacketRef,
        for_here: &mut Vec<ForHere>,
    ) -> bool {
        self.mind_black_hole(node, towards, via, packet);
        let destination = self.pool[packet].header.destination;
        let port = self.pool[packet].destination_port().unwrap_or(0);
        if self.is_own(node, destination) || self.is_for_relay(node, packet, towards) {
            for_here.push(ForHere::Segment(packet));
            return true;
        }
        let route = self.node(node).place.route(destination);
        if let Agent::Ipv6(_) = self.node(node).agent {
            return self.send_stored_ipv6(node, towards, via, packet, port);
        }
        match (&self.node(node).agent, towards, via) {
            (Agent::Mobile(mobile), _, via) => {
                let Some(delivery) = mobile.delivery(destination.to_ipv4(), Some(port)) else { return false };
                match via.filter(|path| *path != path_by(delivery.interface)) {
                    None => self.originate_on(node, packet, port),
                    // The tunnel begins at the new path's address.
                    Some(_) if delivery.tunnel.is_some() => return false,
                    Some(path) => {
                        let PathId::Interface(interface) = path else { return false };
                        self.transmit(node, InterfaceIndex(interface.0), packet);
                    }
                }
            }
            (Agent::Home(agent), Towards::Mobile, Some(path)) => {
                let tunnels = agent.tunnels(destination.to_ipv4());
                let bound = tunnels.iter().find(|tunnel| path_to(tunnel.exit) == path).copied();
                // What drains late goes where the mobile node was, as far as anything is known of it still.
                let left = match path {
                    PathId::CareOf(IpAddr::V4(exit)) => {
                        tunnels.last().map(|tunnel| Tunnel { exit, ..*tunnel })
                    }
                    _ => None,
                };
                let Some(tunnel) = bound.or(left) else { return false };
                self.encapsulate(node, packet, tunnel);
            }
            (Agent::Home(agent), Towards::Mobile, None) => {
                if agent.tunnels(destination.to_ipv4()).is_empty() && route == Route::Home {
                    return false;
                }
                self.forward_on(node, packet, route);
            }
            (Agent::Foreign(agent), Towards::Mobile, via) => {
                let destination = destination.to_ipv4();
                let behind = agent.deliver(destination).map(path_by);
                if let (None, Some(tunnel)) = (behind, agent.tunnel_after(destination)) {
                    // What was kept for who has left follows it.
                    let leads_there = via.is_none_or(|path| path == path_to(tunnel.exit));
                    if leads_there {
                        self.encapsulate(node, packet, tunnel);
                    }
                    return leads_there;
                }
                if behind.is_none() || via.is_some_and(|path| Some(path) != behind) {
                    return false;
                }
                self.forward_on(node, packet, route);
            }
            _ => self.forward_on(node, packet, route),
        }
        true
    }

    /// What was stored goes in fragments where its path swallows large packets.
    fn mind_black_hole(&mut self, node: NodeId, towards: Towards, via: Option<PathId>, packet: PacketRef) {
        let Some(anchor) = &self.node(node).assist else { return };
        let config = anchor.assistant.config();
        let header = self.pool[packet].header.to_ip(&self.topology.plan);
        if config.black_hole.is_none() || towards != config.place.enters() {
            return;
        }
        let Some(path) = via.or_else(|| self.direction(node, packet)?.1) else { return };
        let longest = anchor.assistant.longest_fragments(self.now, &header, path, anchor.overhead);
        self.pool[packet].in_fragments = longest.unwrap_or(self.pool[packet].in_fragments);
    }

    /// Sends an acknowledgement in the name of the end it does not go to. One of a flow that is none of the scenario's can
    /// not be: what an assist has seen is of such a flow.
    fn inject(
        &mut self,
        node: NodeId,
        header: &IpHeader,
        segment: &Segment,
        towards: Towards,
        for_here: &mut Vec<ForHere>,
    ) {
        let header = Header::of_ip(header, &self.topology.plan);
        let Some((flow, sender)) = self.sender_of((header.source, segment.source_port)) else { return };
        let ends = &self.flows[usize::from(flow.0)].ends;
        let origin = Origin {
            flow,
            sender,
            retransmission: false,
            transmission: None,
            seq: ends[sender.index()].sent_seq.of(segment.seq),
            ack: ends[sender.peer().index()].sent_seq.of(segment.ack),
            option: None,
        };
        let header = Header {
            identification: self.next_identification(node),
            payload_len: segment.header_len(),
            ..header
        };
        let body = Body::Tcp(*segment);
        let packet = self.insert(Packet::new(header, body, Some(origin)));
        self.count_deed(Some(Origin { sender: sender.peer(), ..origin }), AssistDeed::AckInjected);
        if !self.send_stored(node, towards, None, packet, for_here) {
            self.drop_packet(node, packet, NodeDrop::NoRoute);
        }
    }

    fn host_unreachable(
        &mut self,
        node: NodeId,
        quoted: &IpHeader,
        ports: (u16, u16),
        seq: SeqNumber,
        for_here: &mut Vec<ForHere>,
    ) {
        let source = self.topology.plan.locate(quoted.source());
        if let Some((flow, sender)) = self.sender_of((source, ports.0)) {
            self.count_deed_of(flow, sender, AssistDeed::UnreachableInjected);
        }
        self.tell_sender(node, None, (quoted, ports, seq), for_here);
    }

    /// Sends an ICMP error about a segment: that its destination cannot be reached, or the MTU of the next hop.
    fn tell_sender(
        &mut self,
        node: NodeId,
        next_hop_mtu: Option<u16>,
        (quoted, ports, seq): (&IpHeader, (u16, u16), SeqNumber),
        for_here: &mut Vec<ForHere>,
    ) {
        let source = self.topology.plan.locate(quoted.source());
        let error = match quoted {
            IpHeader::V4(quoted) => {
                IcmpError::V4(IcmpMessage::DestinationUnreachable(DestinationUnreachable {
                    code: next_hop_mtu
                        .map_or(UnreachableCode::Host, |_| UnreachableCode::FragmentationNeeded),
                    next_hop_mtu: next_hop_mtu.unwrap_or_default(),
                    quoted: quote_segment(quoted, ports, seq),
                }))
            }
            IpHeader::V6(quoted) => IcmpError::V6(icmpv6_error_about(quoted, ports, seq, next_hop_mtu)),
        };
        if self.is_own(node, source) || self.is_relays_own(node, (source, ports.0)) {
            for_here.push(ForHere::Error(source, error));
        } else {
            self.send_error(node, source, &error);
        }
    }

    fn send_error(&mut self, node: NodeId, to: Locator, error: &IcmpError) {
        match error {
            IcmpError::V4(message) => self.send_icmp(node, to, message),
            IcmpError::V6(message) => self.send_icmpv6(node, to, message),
        }
    }

    fn count_deed(&mut self, origin: Option<Origin>, deed: AssistDeed) {
        if let Some(Origin { flow, sender, .. }) = origin {
            self.count_deed_of(flow, sender, deed);
        }
    }

    /// Counts something for the data that `sender` sends.
    pub(crate) fn count_deed_of(&mut self, flow: FlowId, sender: Side, deed: AssistDeed) {
        if let Some(index) = self.flows[usize::from(flow.0)].measured[sender.index()] {
            self.flow_metrics[index].on_assist(deed);
        }
    }

    fn take_report(&mut self, node: NodeId, report: &Report) {
        match *report {
            Report::Did { flow, assist, what, packets, bytes } => {
                if let Some((id, _)) = self.flow_of(&flow) {
                    let record = AssistRecord { assist: assist.name(), what, packets, bytes };
                    self.trace_assist(node, id, record);
                }
            }
            Report::Stalled { flow, after_path, .. } => {
                let Some((id, mobile)) = self.flow_of(&flow) else { return };
                // Of a flow with data both ways it is that of the data that is worth keeping here.
                let sender = if self.node(node).agent.moves() { mobile } else { mobile.peer() };
                let measured = self.flows[usize::from(id.0)].measured;
                if let Some(index) = measured[sender.index()].or(measured[sender.peer().index()]) {
                    self.flow_metrics[index].on_assist_stall(after_path);
                }
            }
            Report::Hole { flow, path, news } => self.note_hole(node, &flow, path, news),
            Report::Forgotten { .. } => {}
        }
    }

    /// Notes what shows of a tunnel that swallows large packets.
    fn note_hole(&mut self, node: NodeId, flow: &FlowKey, path: PathId, news: HoleNews) {
        let name = &self.nodes[usize::from(node.0)].place.name;
        let towards = match path {
            PathId::CareOf(care_of) => care_of.to_string(),
            PathId::Interface(interface) => {
                let way = self.way_of(node, interface);
                way.map_or_else(|| interface.0.to_string(), |way| self.links[way.0 as usize].name.clone())
            }
        };
        let of = self.flow_of(flow).map_or("", |(id, _)| self.flows[usize::from(id.0)].name.as_str());
        note_hole(&mut self.black_holes, self.now, (name, towards), of, news);
    }

    /// How assists know a flow whose `mobile` side moves.
    pub(crate) fn flow_key(&self, id: FlowId, mobile: Side) -> FlowKey {
        let ends = &self.flows[usize::from(id.0)].ends;
        careof_plan::flow_key(
            id,
            mobile,
            Side::BOTH.map(|side| self.topology.address(ends[side.index()].address)),
        )
    }

    /// The flow that an assist has seen, and the side that moves.
    fn flow_of(&self, key: &FlowKey) -> Option<(FlowId, Side)> {
        Side::BOTH.into_iter().find_map(|mobile| {
            let id = FlowId(key.mobile_port.wrapping_sub(port(FlowId(0), mobile)));
            let ends = &self.flows.get(usize::from(id.0))?.ends;
            let addresses = (ends[mobile.index()].address, ends[mobile.peer().index()].address);
            let plan = &self.topology.plan;
            (addresses == (plan.locate(key.mobile), plan.locate(key.peer))).then_some((id, mobile))
        })
    }
}

/// A home agent knows the paths to a mobile node by its care-of addresses.
pub(crate) fn path_to(care_of: Ipv4Addr) -> PathId {
    PathId::CareOf(care_of.into())
}

/// Others know them by their own interfaces.
pub(crate) const fn path_by(interface: InterfaceId) -> PathId {
    PathId::Interface(interface)
}

/// An ICMPv6 error about a segment: that there is no way to its destination, or the MTU of the next hop.
fn icmpv6_error_about(
    quoted: &Ipv6Header,
    ports: (u16, u16),
    seq: SeqNumber,
    next_hop_mtu: Option<u16>,
) -> Icmpv6Message {
    let quoted = icmpv6::quote_segment(quoted, ports, seq);
    match next_hop_mtu {
        Some(mtu) => Icmpv6Message::PacketTooBig(icmpv6::PacketTooBig { mtu: mtu.into(), quoted }),
        None => Icmpv6Message::DestinationUnreachable(icmpv6::DestinationUnreachable {
            code: icmpv6::UnreachableCode::NoRoute,
            quoted,
        }),
    }
}
