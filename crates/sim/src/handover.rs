//! The handovers of a scenario, carried out: links go down and come up, the mobile node is told.

use std::time::Duration;

use careof_base::Instant;
use careof_link::Fate;
use careof_metrics::{Handover as MeasuredHandover, Journeys};
use careof_mobility::v4::{Input, InterfaceAddress, InterfaceId, Notice};
use careof_plan::{
    FlowId, Locator, NodeId, OneWayId, Route, Step, Subnet, down_of, fate_of_queue, is_told, steps, up_of,
};
use careof_scenario::{FastHandover, Handover, HandoverStyle, LinkId, QueuedFate};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, UnreachableCode};

use crate::agents::Agent;
use crate::drop_cause::NodeDrop;
use crate::observer::Note;
use crate::packet::Packet;
use crate::queue::Slot;
use crate::simulation::Simulation;

/// The script of a run, in order of time.
pub(crate) struct Script {
    steps: Vec<(Instant, Step)>,
    next: usize,
    handovers: Vec<Handover>,
    /// By mobile node, as they are counted.
    journeys: Vec<Journey>,
    pub(crate) slot: Slot,
    pub(crate) metrics: Journeys,
}

/// Where a mobile node is in the script.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Journey {
    /// The handover under way: begun, its registration not yet accepted.
    current: Option<usize>,
    /// Whether the mobile node has said that it initiates a handover since it was last told to switch.
    pub(crate) initiated: bool,
}

impl Script {
    /// The script of the `handovers` of so many mobile nodes, beginning on the links `first`.
    pub(crate) fn new(
        slot: Slot,
        mobile_nodes: usize,
        first: &[LinkId],
        handovers: &[Handover],
        fast: Option<&FastHandover>,
    ) -> Self {
        Self {
            steps: steps(first, handovers, fast),
            next: 0,
            handovers: handovers.to_vec(),
            journeys: vec![Journey::default(); mobile_nodes],
            slot,
            metrics: Journeys::new(mobile_nodes),
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
                    let handover = self.script.handovers[index].as_announced();
                    let node = self.topology.mobile_of(handover.to);
                    let text = format!("in {} ms", handover.notice.as_millis());
                    self.note(
                        node,
                        Some(up_of(handover.to)),
                        Note::Handover("announced"),
                        format_args!("{text}"),
                    );
                    self.assist_announced(&handover);
                    self.fast_announced(&handover);
                }
                Step::Prepare(index) => {
                    let announced = self.script.handovers[index].as_announced();
                    self.fast_prepare(&announced);
                }
                Step::CallOff(index) => {
                    let announced = self.script.handovers[index].as_announced();
                    self.fast_call_off(&announced);
                }
                Step::Begin(index) => self.begin_handover(index),
                Step::OldLink(index) => {
                    let handover = self.script.handovers[index].clone();
                    let mobile = self.topology.mobile_of(handover.from);
                    if self.journey(mobile).current == Some(index) {
                        // The new path is not ready.
                        self.on_path(mobile, false);
                    }
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
        let mobile = self.topology.mobile_of(handover.from);
        let measured = MeasuredHandover {
            from: self.scenario.link(handover.from).name.clone(),
            to: self.scenario.link(handover.to).name.clone(),
            style: style.to_owned(),
            node: (self.script.journeys.len() > 1).then(|| self.node(mobile).place.name.clone()),
        };
        if let Some(number) = self.topology.homes.index(mobile) {
            self.script.metrics.on_handover(number, now, measured, &mut self.flow_metrics);
        }
        if let Some(journey) = self.journey_mut(mobile) {
            journey.current = Some(index);
        }
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
                self.on_path(mobile, false);
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
        let (mobile, interface) = self.mobile_end(handover.from);
        self.link_changed(mobile, interface, false);
        self.dhcp_link(mobile, interface, false);
    }

    /// The link comes up, and the mobile node has its address there, or asks for it.
    fn raise_link(&mut self, link: LinkId) {
        for way in [down_of(link), up_of(link)] {
            self.bring_up(way);
        }
        self.tell_anchor(link, true);
        let (node, interface) = self.mobile_end(link);
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
        let (node, interface) = self.mobile_end(link);
        if let Some(journey) = self.journey_mut(node) {
            journey.initiated = false;
        }
        if let Agent::Ipv6(_) = self.node(node).agent {
            self.ipv6_switch_to(node, interface, notice);
            return self.settle_in_place(node, interface);
        }
        self.tell_received_data(node);
        if let Agent::Mobile(mobile) = &mut self.node_mut(node).agent {
            // The interface exists: the scenario names access links only, and each has one.
            let _ = mobile.switch_to(now, interface, notice);
        }
        self.drive_agent(node);
        self.settle_in_place(node, interface);
    }

    /// A handover that takes back one of which nobody else has heard leads to the path that never stopped working: it is over
    /// as soon as the mobile node has its address there.
    pub(crate) fn settle_in_place(&mut self, node: NodeId, interface: InterfaceId) {
        if let Some((true, active)) = self.node(node).agent.is_registered_by()
            && !self.journey(node).initiated
            && active == Some(interface)
            && self.has_address(node, interface)
        {
            self.on_path(node, true);
            self.handover_is_ready(node, interface);
        }
    }

    /// A home agent's bindings of a home address changed: what waits for the path just left may have to move.
    pub(crate) fn binding_changed(&mut self, home_agent: NodeId, home_address: Locator) {
        let mobile = self.topology.homes.node_at(home_address);
        let Some(index) = mobile.and_then(|mobile| self.journey(mobile).current) else { return };
        let Handover { from, queued, .. } = self.script.handovers[index];
        if queued != QueuedFate::DrainLate && !self.is_tunnelled_over(home_agent, from) {
            self.settle_queue(down_of(from), queued);
        }
    }

    /// Does with what waits at the entrance of a link that was left what the scenario asks for.
    fn settle_queue(&mut self, way: OneWayId, fate: QueuedFate) {
        let node = self.links[way.0 as usize].from;
        for packet in self.drain_way(way) {
            self.pool.settle(packet);
            let whole = !self.pool[packet].outermost().is_fragment();
            let port = self.pool[packet].destination_port().filter(|_| whole);
            match (fate, port) {
                (QueuedFate::ReRoute, Some(port)) => {
                    (self.pool[packet].outer, self.pool[packet].beneath) = (None, None);
                    self.pool.refresh(packet);
                    self.send_again(node, packet, port);
                }
                (QueuedFate::DropWithIcmp, Some(_)) => {
                    let inner = self.pool[packet].bare();
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
        let (mobile, interface) = self.mobile_end(link);
        let home_address = self.own_address(mobile);
        let place = &self.node(mobile).place.interfaces[usize::from(interface.0)];
        (0..).map_while(|n| self.node(home_agent).agent.tunnel_to(home_address, n)).any(|(tunnel, _)| {
            // A foreign agent's address stands for the link to its visitor.
            tunnel.exit == place.address
                || self.node(place.peer).place.route(tunnel.exit) == Route::Local
                || self.is_relayed_to(tunnel.exit, place.address)
        })
    }

    /// The mobile node's registration by an interface was accepted: the new path carries packets both ways.
    pub(crate) fn registered(&mut self, mobile: NodeId, to: InterfaceId) {
        self.on_path(mobile, true);
        self.handover_is_ready(mobile, to);
        for index in 0..self.flows.len() {
            self.open_flow(FlowId(index as u16));
        }
    }

    /// The mobile node has obtained its address on `to`: if that is where the handover under way leads, it is on record.
    pub(crate) fn handover_has_address(&mut self, mobile: NodeId, to: InterfaceId) {
        let leads = self.journey(mobile).current.map(|index| self.script.handovers[index].to);
        if leads.is_some_and(|link| self.mobile_end(link) == (mobile, to))
            && let Some(number) = self.topology.homes.index(mobile)
        {
            self.script.metrics.on_address(number, self.now);
        }
    }

    /// The mobile node uses `to`: if that is where the handover under way leads, its path is ready.
    pub(crate) fn handover_is_ready(&mut self, mobile: NodeId, to: InterfaceId) {
        let (Some(index), Some(number)) = (self.journey(mobile).current, self.topology.homes.index(mobile))
        else {
            return;
        };
        let link = self.script.handovers[index].to;
        if self.mobile_end(link) == (mobile, to) {
            if let Some(journey) = self.journey_mut(mobile) {
                journey.current = None;
            }
            let path = self.new_path(link);
            self.script.metrics.on_ready(number, self.now, path, &self.flow_metrics);
            let Handover { from, queued, .. } = self.script.handovers[index];
            if queued != QueuedFate::DrainLate && from != link {
                self.settle_queue(up_of(from), queued);
            }
        }
    }

    /// The mobile node on an access link, and its interface there.
    pub(crate) fn mobile_end(&self, link: LinkId) -> (NodeId, InterfaceId) {
        let mobile = self.links[up_of(link).0 as usize].from;
        let interfaces = &self.node(mobile).place.interfaces;
        let index = interfaces.iter().position(|interface| interface.out == up_of(link));
        (mobile, InterfaceId(index.unwrap_or_default() as u16))
    }

    /// Where a mobile node is in the script; nowhere, if it follows none.
    fn journey(&self, mobile: NodeId) -> Journey {
        let number = self.topology.homes.index(mobile);
        number.and_then(|number| self.script.journeys.get(number)).copied().unwrap_or_default()
    }

    pub(crate) fn journey_mut(&mut self, mobile: NodeId) -> Option<&mut Journey> {
        let number = self.topology.homes.index(mobile)?;
        self.script.journeys.get_mut(number)
    }

    /// A path carries packets of a mobile node both ways from now on, or none does.
    pub(crate) fn on_path(&mut self, mobile: NodeId, usable: bool) {
        if let Some(number) = self.topology.homes.index(mobile) {
            self.script.metrics.on_path(number, self.now, usable);
        }
    }
}
