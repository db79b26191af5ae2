//! Access routers of fast handovers (RFC 5568): which packets they are shown, and which they keep.

use core::net::Ipv6Addr;
use std::collections::BTreeSet;

use careof_base::{Instant, Randomness};
use careof_mobility::v6::access_router::{AccessRouter, AccessRouterConfig, Action, Event, Verdict, Way};
use careof_mobility::v6::{Counters, Input};
use careof_mobility::{ConfigError, InterfaceId};
use careof_plan::{Locator, NodeId, Route};

use super::{Ipv6Host, Ipv6Role};
use crate::drop_cause::NodeDrop;
use crate::kept::{Kept, KeptPackets};
use crate::observer::Note;
use crate::packet::PacketRef;
use crate::simulation::Simulation;

/// An access router, and the packets that it keeps.
pub(crate) struct AccessRouterHost {
    agent: AccessRouter,
    visitors: Vec<Visitor>,
    /// The links whose mobile node is there.
    present: BTreeSet<InterfaceId>,
    kept: KeptPackets,
}

/// Who may be on a link of the router.
#[derive(Clone, Copy)]
struct Visitor {
    interface: InterfaceId,
    care_of: Ipv6Addr,
    locator: Locator,
}

impl AccessRouterHost {
    pub(super) fn new(
        config: AccessRouterConfig,
        random: Randomness,
        locate: impl Fn(Ipv6Addr) -> Locator,
    ) -> Result<Self, ConfigError> {
        let visitors = config.mobile_nodes.iter().filter_map(|node| {
            let care_of = node.care_of;
            let link = config.links.iter().find(|link| link.prefix.contains(care_of))?;
            Some(Visitor { interface: link.interface, care_of, locator: locate(care_of) })
        });
        let visitors = visitors.collect();
        let agent = AccessRouter::new(config, random)?;
        Ok(Self { agent, visitors, present: BTreeSet::new(), kept: KeptPackets::default() })
    }

    fn visitor_at(&self, locator: Locator) -> Option<Visitor> {
        self.visitors.iter().find(|visitor| visitor.locator == locator).copied()
    }

    /// Whether packets for this address are for a link of mobile nodes.
    pub(super) fn sees(&self, destination: Locator) -> bool {
        self.visitors.iter().any(|visitor| visitor.locator == destination)
    }

    /// The link layer says that the mobile node of a link has come, or has left it.
    pub(super) fn handle_link(&mut self, now: Instant, interface: InterfaceId, up: bool) {
        let was_there = if up { !self.present.insert(interface) } else { self.present.remove(&interface) };
        for visitor in self.visitors.iter().filter(|visitor| visitor.interface == interface) {
            if up {
                self.agent.note_attached(now, visitor.care_of);
            } else if was_there {
                self.agent.note_detached(now, visitor.care_of);
            }
        }
    }

    pub(super) fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.agent.handle_input(now, input);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.agent.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.agent.next_timeout().map(|(at, _)| at)
    }

    pub(super) fn counters(&self) -> &Counters {
        self.agent.counters()
    }

    /// Packets of the run that wait here.
    pub(super) const fn held(&self) -> u64 {
        self.kept.held()
    }

    /// Whether a packet that came in a tunnel from `entry` is taken out of it.
    pub(super) fn accepts_tunnel(&self, source: Ipv6Addr, destination: Ipv6Addr, entry: Ipv6Addr) -> bool {
        self.agent.accepts_reverse_tunnel(source, entry) || self.agent.accepts_tunnel(destination, entry)
    }
}

impl Simulation {
    fn access_router(&mut self, node: NodeId) -> Option<&mut AccessRouterHost> {
        match self.ipv6(node) {
            Some(Ipv6Host { role: Ipv6Role::AccessRouter(router), .. }) => Some(router),
            _ => None,
        }
    }

    /// An access router forwards a packet; whether it goes another way than the routes say, waits, or is dropped.
    pub(crate) fn shown_to_access_router(&mut self, node: NodeId, packet: PacketRef) -> bool {
        let now = self.now;
        let shown = &self.pool[packet];
        let (destination, len) = (shown.outermost().destination, shown.size_bytes());
        let Some(router) = self.access_router(node) else { return false };
        let Some(visitor) = router.visitor_at(destination) else { return false };
        let is_first = router.kept.is_empty();
        match router.agent.handle_packet(now, visitor.care_of, len) {
            Verdict::Pass(Way::Link) => return false,
            Verdict::Pass(Way::Tunnel(tunnel)) => {
                let passage = self.tunnel_passage(tunnel);
                self.encapsulate(node, packet, passage);
                return true;
            }
            Verdict::PassAndKeep(token) => {
                let copy = Kept::Copy(Box::new(self.pool[packet].clone()));
                if let Some(router) = self.access_router(node) {
                    router.kept.keep(token, copy);
                }
                self.drive_ipv6(node);
                return false;
            }
            Verdict::Hold(token) => router.kept.keep(token, Kept::Held(packet)),
            Verdict::Drop => {
                self.drop_packet(node, packet, NodeDrop::NotThereYet);
                return true;
            }
        }
        if is_first {
            let way = self.way_of(node, visitor.interface);
            self.note(node, way, Note::Handover("buffering"), format_args!("for {}", visitor.care_of));
        }
        self.drive_ipv6(node);
        true
    }

    /// Does one thing that an access router asks for; `false` when there is nothing more.
    pub(super) fn drive_access_router(&mut self, node: NodeId) -> bool {
        let now = self.now;
        let Some(router) = self.access_router(node) else { return false };
        if let Some(transmit) = router.agent.poll_transmit(now) {
            self.send_for_ipv6_agent(node, transmit.packet);
        } else if let Some(event) = router.agent.poll_event() {
            self.access_router_event(node, event);
        } else if let Some(action) = router.agent.poll_action(now) {
            self.act_for_access_router(node, action);
        } else {
            return false;
        }
        true
    }

    fn act_for_access_router(&mut self, node: NodeId, action: Action) {
        let (Action::Release { token, .. } | Action::Discard { token, .. }) = action;
        let Some(kept) = self.access_router(node).and_then(|router| router.kept.take(token)) else { return };
        match (action, kept) {
            (Action::Discard { reason, .. }, Kept::Held(packet)) => {
                self.drop_packet(node, packet, reason.into());
            }
            (Action::Discard { .. }, Kept::Copy(_)) => {}
            (Action::Release { way, .. }, Kept::Held(packet)) => self.release_kept(node, packet, way),
            (Action::Release { way, .. }, Kept::Copy(copy)) => {
                let original = copy.id;
                let packet = self.insert(*copy);
                self.trace_derived(node, packet, original, "copy");
                self.release_kept(node, packet, way);
            }
        }
    }

    fn release_kept(&mut self, node: NodeId, packet: PacketRef, way: Way) {
        match way {
            Way::Tunnel(tunnel) => {
                let passage = self.tunnel_passage(tunnel);
                self.encapsulate(node, packet, passage);
            }
            Way::Link => match self.node(node).place.route(self.pool[packet].outermost().destination) {
                Route::Via(interface) => self.transmit(node, interface, packet),
                Route::Local | Route::Home | Route::Unreachable => {
                    self.drop_packet(node, packet, NodeDrop::NoRoute);
                }
            },
        }
    }

    fn access_router_event(&mut self, node: NodeId, event: Event) {
        match event {
            Event::UpdateReceived { previous, new, code, lifetime } => {
                let text = format!("{previous} to {new} for {lifetime}, {code}");
                self.note(node, None, Note::Handover("update-received"), format_args!("{text}"));
            }
            Event::TunnelBegun { previous, tunnel } => {
                let text = format!("for {previous} to {}", tunnel.exit);
                self.note(node, None, Note::Handover("tunnel-begun"), format_args!("{text}"));
            }
            Event::TunnelEnded { previous, tunnel } => {
                let text = format!("for {previous} to {}", tunnel.exit);
                self.note(node, None, Note::Handover("tunnel-ended"), format_args!("{text}"));
            }
            Event::Refused { previous, status } => {
                self.note(node, None, Note::Handover("refused"), format_args!("{previous}: {status}"));
            }
            Event::Initiated { previous, new, code } => {
                let text = format!("{previous} to {new}: {code}");
                self.note(node, None, Note::Handover("initiated-by-router"), format_args!("{text}"));
            }
            Event::Arrived { interface, address, .. } => {
                let way = self.way_of(node, interface);
                self.note(node, way, Note::Handover("arrived"), format_args!("{address}"));
            }
            Event::NeverCame { address } => {
                self.note(node, None, Note::Handover("never-came"), format_args!("{address}"));
            }
            Event::Proxy { interface, address, on } => {
                // On a link with two ends nobody else could ask.
                let way = self.way_of(node, interface);
                let what = if on { "proxy-on" } else { "proxy-off" };
                self.note(node, way, Note::Arp(what), format_args!("{address}"));
            }
            // The plan has addresses verified by nobody and no host routes, and the agent counts what it drops.
            Event::DetectDuplicate { .. } | Event::HostRouteEnded { .. } | Event::Dropped { .. } => {}
        }
    }
}
