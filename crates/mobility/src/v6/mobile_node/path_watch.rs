//! What is a Mobile IPv6 node's own where its paths are watched ([`crate::path_watch`]): how probes travel, and what its updates tell.
//!
//! A probe has the care-of address as its source and neither Home Address option nor tunnel, so that a path can be probed before its
//! address is registered; [`careof_wire::mip6::PathProbe`] says more. By an IPv4 care-of address it travels as a Binding Update does there.
//!
//! RFC 6275 section 11.8 allows a node three Mobility Header messages of a type within a second to a correspondent node, which is to have
//! time to answer other mobile nodes. While a path in use is in doubt, up to 17 probes a second go to the home agent. That is no
//! correspondent node, keeps nothing for them, and has a ration of answers for each mobile node.

use core::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::mip6::{Message, MobilityOptions, PathProbe, PathProbeKind};

use super::attachment::{Attachment, Interface};
use super::{HandoverEvent, MobileNode};
use crate::path_watch::{
    PathCourse, PathInterface, PathNews, PathOwner, PathSupervision, PathWatch, ProbeFields, WatchedPath,
};
use crate::v6::{Addresses, DropReason, PathQuality, Tunnel, authentication};
use crate::{HandoverReason, InterfaceId, Notice, PathProperties};

impl PathInterface for Interface {
    type Address = Ipv6Addr;

    fn id(&self) -> InterfaceId {
        self.config.id
    }

    fn watch(&self) -> &WatchedPath<Ipv6Addr> {
        &self.watch
    }

    fn watch_mut(&mut self) -> &mut WatchedPath<Ipv6Addr> {
        &mut self.watch
    }

    fn told(&self) -> PathProperties {
        self.path
    }

    fn is_metered(&self) -> bool {
        self.config.metered
    }

    fn preference(&self) -> u8 {
        self.config.preference
    }

    fn viable_since(&self) -> Option<Instant> {
        self.viable_since
    }
}

impl PathOwner for MobileNode {
    type Address = Ipv6Addr;
    type Interface = Interface;

    fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    fn interfaces_mut(&mut self) -> &mut [Interface] {
        &mut self.interfaces
    }

    fn course(&self) -> PathCourse {
        PathCourse {
            watches: self.config.path_monitor,
            leaves_bad: self.config.leave_bad_paths,
            selection: self.config.selection,
            active: self.active,
            desired: self.desired,
            is_moving: self.handover.is_some(),
            pinned: self.pinned,
            left: self.left,
        }
    }

    fn supervision(&self) -> &PathSupervision {
        &self.supervision
    }

    fn supervision_mut(&mut self) -> &mut PathSupervision {
        &mut self.supervision
    }

    fn watched_from(&self, now: Instant, index: usize) -> Option<Ipv6Addr> {
        if !self.config.path_monitor || self.left || self.active.is_none() || self.home_agent().is_none() {
            return None;
        }
        // At home nothing is tunnelled, and the home agent is but a neighbour.
        let care_of = |attachment: Attachment| attachment.care_of();
        match self.attachment(now, index) {
            Some(attachment) => care_of(attachment),
            // A router that is heard no longer may be what the silence is about: the path stays the same while the address does.
            None => {
                let interface = self.interfaces.get(index).filter(|interface| interface.up)?;
                interface.held.and_then(|held| care_of(held.attachment)).filter(|own| interface.has(*own))
            }
        }
    }

    fn is_usable(&self, now: Instant, index: usize) -> bool {
        self.is_viable(now, index)
    }

    fn next_nonce(&mut self) -> u64 {
        self.random.next_u64()
    }

    fn transmit_probe(&mut self, index: usize, from: Ipv6Addr, probe: ProbeFields) {
        let (Some(home_agent), Some(interface)) = (self.home_agent(), self.id(index)) else { return };
        let home_address = self.config.home_address;
        let probe = Message::PathProbe(PathProbe {
            kind: PathProbeKind::Probe,
            home_address,
            sequence: probe.sequence,
            nonce: probe.nonce,
            counts: Some(probe.counts),
            options: MobilityOptions::new(),
        });
        let addresses = Addresses { home_address: None, ..self.way_away(from, home_agent) };
        let authentication = self.config.security.authentication(from, home_address);
        let emitted = probe.emit_authenticated(addresses.source, addresses.destination, &authentication);
        let Ok(bytes) = emitted else { return };
        self.outbox.mobility(Some(interface), addresses, bytes);
    }

    fn hand_over(&mut self, now: Instant, to: usize, reason: HandoverReason) {
        self.begin_handover(now, to, Notice::None, reason);
    }

    fn unpin(&mut self) {
        self.pinned = false;
    }

    fn cancel_registration(&mut self, now: Instant, index: usize) {
        self.cancel_pending(now, index);
    }

    fn path_in_use_lost(&mut self, index: usize, since: Instant) {
        let reports = self.config.report_paths;
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        interface.interrupted = interface.interrupted.or(Some(since));
        // A handover away from it told that nothing is lost.
        let now = self.outbox.now();
        let desired = self.desired.filter(|&desired| desired != index);
        let update = desired.and_then(|desired| self.interfaces.get_mut(desired)?.pending.as_mut());
        if let Some(update) = update.filter(|update| reports && update.was_sent()) {
            update.begin_again(now);
        }
    }

    fn path_is_back(&mut self, index: usize) {
        let now = self.outbox.now();
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if self.config.report_paths && interface.interrupted.is_some() {
            interface.refresh |= interface.held.is_some();
            if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent()) {
                pending.begin_again(now);
            }
        }
    }

    fn tell(&mut self, news: PathNews) {
        self.handover_event(match news {
            PathNews::Silent { interface, silence } => HandoverEvent::PathSilent { interface, silence },
            PathNews::Answers { interface } => HandoverEvent::PathAnswers { interface },
        });
    }
}

impl MobileNode {
    /// Packets were put into the tunnel to the home agent through `interface`: so many, and so many bytes. To be called for each, or for
    /// several that left at the same time; it costs next to nothing. Returns whether [`MobileNode::next_timeout`] has come forward.
    pub fn note_sent(&mut self, now: Instant, interface: InterfaceId, packets: u32, bytes: u64) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_sent(now, packets, bytes))
    }

    /// As [`MobileNode::note_sent`], of packets that went straight to correspondent nodes: they want answers as much, but the home agent
    /// does not count them.
    pub fn note_sent_straight(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        packets: u32,
        bytes: u64,
    ) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_sent_beside(now, packets, bytes))
    }

    /// As [`MobileNode::note_received`], of packets that came straight from correspondent nodes.
    pub fn note_received_straight(&mut self, now: Instant, interface: InterfaceId) -> bool {
        self.monitor_of(interface).is_some_and(|monitor| monitor.note_received_beside(now))
    }

    /// Packets came out of the home agent's tunnel through `interface`; as [`MobileNode::note_sent`].
    pub fn note_received(&mut self, now: Instant, interface: InterfaceId, packets: u32, bytes: u64) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_received(now, packets, bytes))
    }

    /// What is known of how the path through `interface` works.
    #[must_use]
    pub fn path_quality(&self, interface: InterfaceId) -> PathQuality {
        self.quality_of(interface)
    }

    /// What answers a probe. It counts if somebody has written it who knows the key and has seen the probe.
    pub(super) fn handle_probe_answer(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        addresses: Addresses,
        bytes: &[u8],
        answer: &PathProbe,
    ) {
        let source = addresses.source;
        let home_address = self.config.home_address;
        let is_answer = answer.kind == PathProbeKind::Answer && answer.home_address == home_address;
        let index = self.index(interface).filter(|_| self.config.path_monitor && is_answer);
        let Some(index) = index else { return self.outbox.drop(DropReason::NotForUs, source) };
        if self.home_agent() != Some(source) {
            return self.outbox.drop(DropReason::UnexpectedSource, source);
        }
        let care_of = self.interfaces.get(index).and_then(|interface| interface.watch.monitor.care_of());
        let care_of = care_of.filter(|_| self.awaits_answer(index, answer.sequence, answer.nonce));
        let Some(care_of) = care_of.filter(|&care_of| self.is_probe_way_back(care_of, &addresses)) else {
            return self.outbox.drop(DropReason::UnexpectedAnswer, source);
        };
        let known = core::iter::once(&self.config.security);
        if let Err(reason) = authentication::check(bytes, &answer.options, known, care_of, home_address) {
            return self.outbox.drop(reason, source);
        }
        self.take_genuine_answer(now, index, answer.sequence, answer.counts);
    }

    /// Whether an answer has come back by the way of a probe from `care_of`.
    fn is_probe_way_back(&self, care_of: Ipv6Addr, addresses: &Addresses) -> bool {
        match (care_of.to_ipv4_mapped(), self.config.home_agent_ipv4) {
            (Some(care_of), Some(ipv4)) => {
                addresses.tunnel == Some(Tunnel::through_ipv4(ipv4, care_of))
                    && addresses.real_destination() == self.config.home_address
            }
            _ => addresses.destination == care_of && addresses.type_2_routing.is_none(),
        }
    }
}
