//! What is a Mobile IPv4 node's own where its paths are watched ([`crate::path_watch`]): how probes travel, and what its requests tell.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{AuthenticationKind, Message, PathProbe, PathProbeKind};

use super::MobileNode;
use super::attachment::{Attachment, Interface};
use super::registration::Slot;
use crate::path_watch::{
    PathCourse, PathInterface, PathNews, PathOwner, PathSupervision, PathWatch, ProbeFields, WatchedPath,
};
use crate::v4::io::{DEFAULT_TTL, REGISTRATION_PORT};
use crate::v4::{
    DropReason, HandoverEvent, HandoverReason, InterfaceId, Notice, PathProperties, PathQuality, Transmit,
    TransmitPayload, authentication,
};

impl PathInterface for Interface {
    type Address = Ipv4Addr;

    fn id(&self) -> InterfaceId {
        self.config.id
    }

    fn watch(&self) -> &WatchedPath<Ipv4Addr> {
        &self.watch
    }

    fn watch_mut(&mut self) -> &mut WatchedPath<Ipv4Addr> {
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
    type Address = Ipv4Addr;
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

    fn watched_from(&self, _: Instant, index: usize) -> Option<Ipv4Addr> {
        if !self.config.path_monitor || self.left || self.active.is_none() || self.home_agent.is_none() {
            return None;
        }
        match self.attachment(index)? {
            Attachment::CoLocated { care_of, .. } => Some(care_of),
            Attachment::Home | Attachment::ForeignAgent { .. } | Attachment::Relayed { .. } => None,
        }
    }

    fn is_usable(&self, now: Instant, index: usize) -> bool {
        self.is_viable(now, index)
    }

    fn next_nonce(&mut self) -> u64 {
        self.random.next_u64()
    }

    fn transmit_probe(&mut self, index: usize, from: Ipv4Addr, probe: ProbeFields) {
        let (Some(home_agent), Some(interface)) = (self.home_agent, self.id(index)) else { return };
        let probe = PathProbe {
            kind: PathProbeKind::Probe,
            home_address: self.config.home_address,
            sequence: probe.sequence,
            nonce: probe.nonce,
            counts: Some(probe.counts),
            extensions: Vec::new(),
        };
        let mut bytes = Message::PathProbe(probe).emit();
        authentication::append(&mut bytes, AuthenticationKind::MobileHome, &self.config.security);
        self.outbox.transmit(Transmit {
            interface: Some(interface),
            source: from,
            destination: home_agent,
            ttl: DEFAULT_TTL,
            payload: TransmitPayload::Udp {
                source_port: REGISTRATION_PORT,
                destination_port: REGISTRATION_PORT,
                bytes,
            },
        });
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
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        interface.interrupted = interface.interrupted.or(Some(since));
        // It says that nothing is lost: its reply would have the home agent believe it.
        if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent()) {
            pending.identification = None;
            pending.bytes.clear();
        }
        // A handover away from it told that nothing is lost, too.
        let desired = self.desired.filter(|&desired| desired != index);
        let request = desired.and_then(|desired| self.interfaces.get_mut(desired)?.pending.as_mut());
        if let Some(request) = request.filter(|request| request.was_sent() && self.config.report_paths) {
            request.begin_again();
        }
    }

    fn path_is_back(&mut self, index: usize) {
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        if self.config.report_paths && interface.interrupted.is_some() {
            interface.refresh |= interface.held.is_some();
            if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent()) {
                pending.begin_again();
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
    /// Packets for, or by way of, the home agent were put into the tunnel through `interface`: so many, and so many bytes. To be
    /// called for each, or for several that left at the same time; it costs next to nothing. Returns whether
    /// [`MobileNode::next_timeout`] has come forward.
    pub fn note_sent(&mut self, now: Instant, interface: InterfaceId, packets: u32, bytes: u64) -> bool {
        let monitor = self.monitor_of(interface);
        monitor.is_some_and(|monitor| monitor.note_sent(now, packets, bytes))
    }

    /// Packets came out of the tunnel through `interface`; as [`MobileNode::note_sent`].
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
        (interface, source): (InterfaceId, Ipv4Addr),
        bytes: &[u8],
        answer: &PathProbe,
    ) {
        let index = self.index(interface).filter(|_| self.config.path_monitor);
        let Some(index) = index.filter(|_| {
            answer.kind == PathProbeKind::Answer && answer.home_address == self.config.home_address
        }) else {
            return self.outbox.drop(DropReason::NotForUs, source);
        };
        if self.home_agent != Some(source) {
            return self.outbox.drop(DropReason::UnexpectedSource, source);
        }
        if !self.awaits_answer(index, answer.sequence, answer.nonce) {
            return self.outbox.drop(DropReason::UnexpectedReply, source);
        }
        let message = Message::PathProbe(answer.clone());
        let association = core::iter::once(&self.config.security);
        let kind = AuthenticationKind::MobileHome;
        if let Err(reason) = authentication::check(bytes, &message, kind, association) {
            return self.outbox.drop(reason, source);
        }
        self.take_genuine_answer(now, index, answer.sequence, answer.counts);
    }

    /// A genuine reply to what is kept in `slot` has come.
    pub(super) fn reply_came_to(&mut self, now: Instant, slot: Slot) {
        if let Some(index) = self.carrier(slot) {
            self.reply_came(now, index);
        }
    }
}
