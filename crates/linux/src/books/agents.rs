//! What agents tell, in the books.

use std::fmt::Display;

use careof_base::Instant;
use careof_mobility::v6::NeighborEvent;
use careof_mobility::{HandoverEvent, InterfaceId, v4, v6};
use careof_plan::{
    NodeId, OneWayId, RouterNote, arp_text, binding_text, handover_comment, handover_text, host_event_text,
    router_event_text, visitor_text,
};
use careof_trace::{Event, LinkId as TraceLink, NodeId as TraceNode};

use super::Books;
use crate::domain::DomainEvent;
use crate::report::AgentEvent;

/// What becomes of a registration.
enum Registration {
    Sent,
    Accepted,
    Denied,
}

impl Books {
    pub(super) fn enter_agent_event(&mut self, at: Instant, node: NodeId, event: &AgentEvent) {
        match event {
            AgentEvent::V4(event) => self.enter_ipv4_event(at, node, event),
            AgentEvent::V6(event) => self.enter_ipv6_event(at, node, event),
        }
    }

    fn enter_ipv4_event(&mut self, at: Instant, node: NodeId, event: &v4::Event) {
        use v4::{Event as Told, RegistrationStep as Step};
        match event {
            Told::Handover(event) => self.enter_handover(at, node, event),
            Told::Binding(change) => {
                self.enter_binding(at, node, change.change.name(), &binding_text(change));
            }
            Told::ReverseTunnelEnded { .. } => {}
            Told::Visitor(change) => {
                self.enter_binding(at, node, change.change.name(), &visitor_text(change));
            }
            Told::Arp(event) => {
                let (cause, interface, text) = arp_text(event);
                self.enter_neighbor(at, node, (cause, interface), &text);
            }
            Told::Registration(event) => match event.step {
                Step::RequestSent { .. } => self.count_registration(Registration::Sent),
                Step::Accepted { .. } => self.count_registration(Registration::Accepted),
                Step::Denied { .. } => self.count_registration(Registration::Denied),
                _ => {}
            },
            // The messages themselves are in the trace, and the agent counts what it drops.
            Told::Agent(_) | Told::Dropped { .. } => {}
        }
    }

    fn enter_ipv6_event(&mut self, at: Instant, node: NodeId, event: &v6::Event) {
        use v6::{Event as Told, RegistrationStep as Step};
        match event {
            Told::Handover(event) => self.enter_handover(at, node, event),
            Told::Binding(change) => {
                let text = format!("{} at {} for {}", change.home_address, change.care_of, change.lifetime);
                self.enter_binding(at, node, change.change.name(), &text);
            }
            Told::Correspondent(change) => {
                let text =
                    format!("{} knows {} for {}", change.correspondent, change.care_of, change.lifetime);
                self.enter_binding(at, node, change.change.name(), &text);
            }
            Told::Neighbor(event) => {
                let (cause, interface, address) = match *event {
                    NeighborEvent::DetectDuplicate { interface, address, .. } => {
                        ("probe", interface, address)
                    }
                    NeighborEvent::Proxy { interface, address, on } => {
                        (if on { "proxy-on" } else { "proxy-off" }, interface, address)
                    }
                    NeighborEvent::Answer { interface, address, on } => {
                        (if on { "answer-on" } else { "answer-off" }, interface, address)
                    }
                    NeighborEvent::Advertise { interface, address } => ("announcement", interface, address),
                };
                self.enter_neighbor(at, node, (cause, Some(interface)), &address);
            }
            Told::Registration(event) => match event.step {
                Step::UpdateSent { .. } => self.count_registration(Registration::Sent),
                Step::Accepted { .. } => self.count_registration(Registration::Accepted),
                Step::Refused { .. } => self.count_registration(Registration::Denied),
                _ => {}
            },
            // The messages themselves are in the trace, and the agent counts what it drops.
            Told::ReverseTunnelEnded { .. }
            | Told::HandoverEnded { .. }
            | Told::HomeAgentsFound { .. }
            | Told::HomePrefixes { .. }
            | Told::HomeAddressLost { .. }
            | Told::Ipv4HomeAddress { .. }
            | Told::Dropped { .. } => {}
        }
    }

    pub(super) fn enter_domain_event(&mut self, at: Instant, node: NodeId, event: &DomainEvent) {
        let place = self.topology.place(node);
        let (phase, text) = match event {
            DomainEvent::Router(event) => match router_event_text(&self.topology, place, event) {
                Some(RouterNote::Route(change, text)) => {
                    let detail = self.log.detail(format_args!("{text}"));
                    self.log.push(Event::host_route(at, TraceNode(node.0), change, detail));
                    return;
                }
                Some(RouterNote::Handover(phase, text)) => (phase, text),
                None => return,
            },
            DomainEvent::Host(event) => match host_event_text(event) {
                Some(told) => told,
                None => return,
            },
            // The route was told.
            DomainEvent::LeadsIntoCell => return,
        };
        self.note_handover(at, node, None, phase, &text);
    }

    fn enter_handover<A: Display, C: Display>(
        &mut self,
        at: Instant,
        node: NodeId,
        event: &HandoverEvent<A, C>,
    ) {
        let (interface, text) = handover_text(event);
        let way = self.way_of(node, interface);
        self.note_handover(at, node, way, event.name(), &text);
    }

    fn enter_binding(&mut self, at: Instant, node: NodeId, change: &'static str, text: &str) {
        let detail = self.log.detail(format_args!("{text}"));
        self.log.push(Event::binding(at, TraceNode(node.0), change, detail));
    }

    /// A decision about ARP or neighbor discovery.
    fn enter_neighbor(
        &mut self,
        at: Instant,
        node: NodeId,
        (cause, interface): (&'static str, Option<InterfaceId>),
        text: &dyn Display,
    ) {
        let way = interface.and_then(|interface| self.way_of(node, interface));
        let detail = self.log.detail(format_args!("{text}"));
        let link = way.map(|way| TraceLink(way.0 as u16));
        self.log.push(Event::arp(at, TraceNode(node.0), link, cause, detail));
    }

    const fn count_registration(&mut self, registration: Registration) {
        let count = match registration {
            Registration::Sent => &mut self.registrations.sent,
            Registration::Accepted => &mut self.registrations.accepted,
            Registration::Denied => &mut self.registrations.denied,
        };
        *count += 1;
    }

    pub(super) fn note_handover(
        &mut self,
        at: Instant,
        node: NodeId,
        way: Option<OneWayId>,
        phase: &'static str,
        text: &str,
    ) {
        let detail = self.log.detail(format_args!("{text}"));
        let link = way.map(|way| TraceLink(way.0 as u16));
        self.log.push(Event::handover(at, TraceNode(node.0), link, phase, detail));
        if let Some(capture) = &mut self.capture {
            let name = &self.topology.place(node).name;
            let link = way.and_then(|way| self.ways.get(way.0 as usize & !1));
            let link = link.and_then(|way| way.strip_suffix(".down"));
            capture.comment(at, node, &handover_comment(name, phase, link, text));
        }
    }

    /// The one-way link that leaves `node` by an interface.
    pub(super) fn way_of(&self, node: NodeId, interface: InterfaceId) -> Option<OneWayId> {
        self.topology.place(node).interfaces.get(usize::from(interface.0)).map(|interface| interface.out)
    }
}
