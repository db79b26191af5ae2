//! The handovers of a scenario, carried out: links go down and come up, the mobile node is told.

use std::time::Duration;

use careof_base::Instant;
use careof_link::Fate;
use careof_metrics::{Handover as MeasuredHandover, HandoverMetrics};
use careof_mobility::v4::{Input, InterfaceAddress, InterfaceId, Notice};
use careof_plan::{
    FlowId, Mobiles, NodeId, OneWayId, Route, Step, Subnet, down_of, fate_of_queue, is_told, steps, up_of,
};
use careof_scenario::{Handover, HandoverStyle, LinkId, QueuedFate};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::observer::Note;
use crate::packet::{Body, Packet};
use crate::queue::Slot;
use crate::simulation::Simulation;

/// The script of a run, in order of time.
pub(crate) struct Script {
    steps: Vec<(Instant, Step)>,
    next: usize,
    handovers: Vec<Handover>,
    /// The handover under way: begun, its registration not yet accepted.
    current: Option<usize>,
    /// Whether the mobile node has said that it initiates a handover since it was last told to switch.
    pub(crate) initiated: bool,
    pub(crate) slot: Slot,
    pub(crate) metrics: HandoverMetrics,
}

impl Script {
    /// The script of `handovers`, beginning on the links `first`.
    pub(crate) fn new(slot: Slot, first: &[LinkId], handovers: &[Handover]) -> Self {
        Self {
            steps: steps(first, handovers),
            next: 0,
            handovers: handovers.to_vec(),
            current: None,
            initiated: false,
            slot,
            metrics: HandoverMetrics::new(),
        }
    }

    /// When the next step is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.steps.get(self.next).map(|(at, _)| *at)
    }
}

impl Simulation {
    /// The next step of the script is due.
    pub(crate) fn script_timeout(&mut self) {
        while let Some((at, step)) = self.script.steps.get(self.script.next).copied() {
            if at > self.now {
                break;
            }
            self.script.next += 1;
            match step {
                Step::Attach(link) => {
                    self.raise_link(link);
                    if is_told(&self.scenario, step) {
                        self.switch_to(link, Notice::None);
                    }
                }
                Step::Announce(index) => {
                    let handover = self.script.handovers[index].clone();
                    let node = self.mobile();
                    let text = format!("in {} ms", handover.notice.as_millis());
                    self.note(
                        node,
                        Some(up_of(handover.to)),
                        Note::Handover("announced"),
                        format_args!("{text}"),
                    );
                    self.assist_announced(&handover);
                }
                Step::Begin(index) => self.begin_handover(index),
                Step::OldLink(index) => {
                    if self.script.current == Some(index) {
                        // The new path is not ready.
                        self.script.metrics.on_path(self.now, false);
                    }
                    let handover = self.script.handovers[index].clone();
                    self.lower_link(&handover);
                }
                Step::NewLink(index) => {
                    let to = self.script.handovers[index].to;
                    self.raise_link(to);
                    if is_told(&self.scenario, step) {
                        self.switch_to(to, Notice::None);
                    }
                }
            }
        }
        let (slot, deadline) = (self.script.slot, self.script.next_timeout());
        self.queue.set(slot, deadline);
    }

    fn begin_handover(&mut self, index: usize) {
        let handover = self.script.handovers[index].clone();
        let now = self.now;
        let style = match handover.style {
            HandoverStyle::MakeBeforeBreak => "make-before-break",
            HandoverStyle::BreakBeforeMake => "break-before-make",
        };
        let name = |link: LinkId| self.scenario.link(link).name.clone();
        let measured =
            MeasuredHandover { from: name(handover.from), to: name(handover.to), style: style.to_owned() };
        self.script.metrics.on_handover(now, measured, &mut self.flow_metrics);
        self.script.current = Some(index);
        match handover.style {
            HandoverStyle::MakeBeforeBreak => {
                self.raise_link(handover.to);
                let notice = if handover.notice > Duration::ZERO {
                    Notice::Ahead(handover.notice)
                } else {
                    Notice::None
                };
                if is_told(&self.scenario, Step::Begin(index)) {
                    self.switch_to(handover.to, notice);
                }
            }
            HandoverStyle::BreakBeforeMake => {
                self.script.metrics.on_path(now, false);
                self.lower_link(&handover);
            }
        }
    }

    /// The link that a handover leaves goes down.
    fn lower_link(&mut self, handover: &Handover) {
        let queued = fate_of_queue(handover);
        for way in [down_of(handover.from), up_of(handover.from)] {
            self.take_down(way, queued, Fate::Drop);
        }
        self.tell_anchor(handover.from, false);
        let interface = self.mobile_interface(handover.from);
        self.link_changed(self.mobile(), interface, false);
        self.dhcp_link(self.mobile(), interface, false);
    }

    /// The link comes up, and the mobile node has its address there, or asks for it.
    fn raise_link(&mut self, link: LinkId) {
        for way in [down_of(link), up_of(link)] {
            self.bring_up(way);
        }
        self.tell_anchor(link, true);
        let node = self.mobile();
        let interface = self.mobile_interface(link);
        let place = self.node(node).place.interfaces[usize::from(interface.0)];
        self.link_changed(node, interface, true);
        if matches!(self.node(node).agent, Agent::Ipv6(_)) {
            // It forms an address of what a router tells it.
            return;
        }
        if self.dhcp_link(node, interface, true) {
            return;
        }
        if self.is_co_located() || self.is_home_address_of(node, place.address) {
            let address = InterfaceAddress {
                address: place.address.to_ipv4(),
                prefix_length: Subnet::PREFIX_LEN,
                gateway: Some(place.peer_address.to_ipv4()),
            };
            self.agent_input(node, Input::AddressChanged { interface, address: Some(address) });
        }
    }

    /// The agent at the fixed end of an access link, if one is there, notices what its link does.
    pub(crate) fn tell_anchor(&mut self, link: LinkId, up: bool) {
        let down = down_of(link);
        let anchor = self.links[down.0 as usize].from;
        let place = &self.node(anchor).place;
        if let Some(index) = place.interfaces.iter().position(|interface| interface.out == down) {
            let interface = InterfaceId(index as u16);
            self.link_changed(anchor, interface, up);
            self.assist_link(anchor, link, interface, up);
            self.station_link(anchor, interface, up);
        }
    }

    fn switch_to(&mut self, link: LinkId, notice: Notice) {
        let now = self.now;
        let node = self.mobile();
        let interface = self.mobile_interface(link);
        self.script.initiated = false;
        if let Agent::Ipv6(_) = self.node(node).agent {
            self.ipv6_switch_to(node, interface, notice);
            return self.settle_in_place(interface);
        }
        self.tell_received_data(node);
        if let Agent::Mobile(mobile) = &mut self.node_mut(node).agent {
            // The interface exists: the scenario names access links only, and each has one.
            let _ = mobile.switch_to(now, interface, notice);
        }
        self.drive_agent(node);
        self.settle_in_place(interface);
    }

    /// A handover that takes back one of which nobody else has heard leads to the path that never stopped working: it is over
    /// as soon as the mobile node has its address there.
    pub(crate) fn settle_in_place(&mut self, interface: InterfaceId) {
        let node = self.mobile();
        if let Some((true, active)) = self.node(node).agent.is_registered_by()
            && !self.script.initiated
            && active == Some(interface)
            && self.has_address(node, interface)
        {
            self.script.metrics.on_path(self.now, true);
            self.handover_is_ready(interface);
        }
    }

    /// The home agent's bindings changed: what waits for the path just left may have to move.
    pub(crate) fn binding_changed(&mut self, home_agent: NodeId) {
        let Some(handover) = self.script.current.map(|index| self.script.handovers[index].clone()) else {
            return;
        };
        if handover.queued == QueuedFate::DrainLate || self.is_tunnelled_over(home_agent, handover.from) {
            return;
        }
        self.settle_queue(down_of(handover.from), handover.queued);
    }

    /// Does with what waits at the entrance of a link that was left what the scenario asks for.
    fn settle_queue(&mut self, way: OneWayId, fate: QueuedFate) {
        let node = self.links[way.0 as usize].from;
        for packet in self.drain_way(way) {
            self.pool.settle(packet);
            let whole = !self.pool[packet].outermost().is_fragment();
            let segment = match &self.pool[packet].body {
                Body::Tcp(segment) if whole => Some(*segment),
                _ => None,
            };
            match (fate, segment) {
                (QueuedFate::ReRoute, Some(segment)) => {
                    self.pool[packet].outer = None;
                    self.pool.refresh(packet);
                    self.send_again(node, packet, segment.destination_port);
                }
                (QueuedFate::DropWithIcmp, Some(_)) => {
                    let inner = Packet { outer: None, ..self.pool[packet].clone() };
                    let quoted = self.bytes.quote(&inner);
                    self.tell_host_unreachable(node, &inner, quoted);
                    self.drop_packet(node, packet, NodeDrop::Handover);
                }
                // Signalling and parts of datagrams belong to the path they were sent into.
                _ => self.drop_packet(node, packet, NodeDrop::Handover),
            }
        }
        self.link_timeout(way);
    }

    /// Tells the sender of a packet that it cannot be delivered.
    fn tell_host_unreachable(&mut self, node: NodeId, inner: &Packet, quoted: Vec<u8>) {
        let to = inner.header.source;
        if inner.header.is_ipv6() {
            return self.tell_unreachable(node, to, quoted);
        }
        let error = DestinationUnreachable { code: UnreachableCode::Host, next_hop_mtu: 0, quoted };
        self.send_icmp(node, to, &IcmpMessage::DestinationUnreachable(error));
    }

    /// Whether the home agent still sends the mobile node's packets over an access link.
    fn is_tunnelled_over(&self, home_agent: NodeId, link: LinkId) -> bool {
        let Some(Mobiles { first: mobile, home_address, .. }) = self.mobiles else { return false };
        let interface = self.mobile_interface(link);
        let place = &self.node(mobile).place.interfaces[usize::from(interface.0)];
        (0..).map_while(|n| self.node(home_agent).agent.tunnel_to(home_address, n)).any(|tunnel| {
            // A foreign agent's address stands for the link to its visitor.
            tunnel.exit == place.address || self.node(place.peer).place.route(tunnel.exit) == Route::Local
        })
    }

    /// The mobile node's registration by an interface was accepted: the new path carries packets both ways.
    pub(crate) fn registered(&mut self, to: InterfaceId) {
        let now = self.now;
        self.script.metrics.on_path(now, true);
        self.handover_is_ready(to);
        for index in 0..self.flows.len() {
            self.open_flow(FlowId(index as u16));
        }
    }

    /// The mobile node has obtained its address on `to`: if that is where the handover under way leads, it is on record.
    pub(crate) fn handover_has_address(&mut self, to: InterfaceId) {
        let leads = self.script.current.map(|index| self.script.handovers[index].to);
        if leads.is_some_and(|link| self.mobile_interface(link) == to) {
            self.script.metrics.on_address(self.now);
        }
    }

    /// The mobile node uses `to`: if that is where the handover under way leads, its path is ready.
    fn handover_is_ready(&mut self, to: InterfaceId) {
        let Some(index) = self.script.current else { return };
        let link = self.script.handovers[index].to;
        if self.mobile_interface(link) == to {
            self.script.current = None;
            let path = self.new_path(link);
            self.script.metrics.on_ready(self.now, path, &self.flow_metrics);
            let Handover { from, queued, .. } = self.script.handovers[index];
            if queued != QueuedFate::DrainLate && from != link {
                self.settle_queue(up_of(from), queued);
            }
        }
    }

    /// The mobile node. Only called where the scenario has one.
    pub(crate) fn mobile(&self) -> NodeId {
        self.mobiles.map_or(NodeId(0), |mobiles| mobiles.first)
    }

    /// The mobile node's interface on an access link.
    pub(crate) fn mobile_interface(&self, link: LinkId) -> InterfaceId {
        let place = &self.node(self.mobile()).place;
        let index = place.interfaces.iter().position(|interface| interface.out == up_of(link));
        InterfaceId(index.unwrap_or_default() as u16)
    }
}
