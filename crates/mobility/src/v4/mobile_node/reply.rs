//! Replies: whether they are genuine, and what they mean (RFC 5944 section 3.6.2).

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, CodeRange, Lifetime, Message, ReceivedData, RegistrationReply, ReplyCode,
    RequestFlags,
};

use super::MobileNode;
use super::attachment::{Attachment, Held};
use super::registration::{Pending, Purpose, Sent, Slot};
use crate::multipath::PathId;
use crate::v4::authentication;
use crate::v4::io::REGISTRATION_PORT;
use crate::v4::lifetime::end_of;
use crate::v4::unicast::is_unicast;
use crate::v4::{BindingChanged, Change, DropReason, EncapsulationChoice, Event, RegistrationStep};

/// Denials of one registration that may be repaired at once; a peer that wants more is playing with us.
const MAX_REPAIRS: u32 = 5;

impl MobileNode {
    /// Checks a reply (section 3.6.2.1), and does what it means.
    pub(super) fn handle_reply(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        source_port: u16,
        bytes: &[u8],
        message: &Message,
    ) {
        let Message::Reply(reply) = message else { return self.outbox.drop(DropReason::NotForUs, source) };
        if reply.home_address != self.config.home_address {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let answered = |slot| {
            let (sent, is_latest) = self.pending(slot)?.answered(reply.identification)?;
            Some((slot, sent, is_latest))
        };
        let Some((slot, sent, is_latest)) = self.slots().find_map(answered) else {
            let waiting = self.slots().any(|slot| self.pending(slot).is_some_and(Pending::was_sent));
            let reason =
                if waiting { DropReason::IdentificationMismatch } else { DropReason::UnexpectedReply };
            return self.outbox.drop(reason, source);
        };
        if !is_latest && !counts_late(reply.code) {
            return self.outbox.drop(DropReason::IdentificationMismatch, source);
        }
        let Some(pending) = self.pending(slot) else { return };
        let reason = match self.check_reply(source, source_port, bytes, message, reply, pending) {
            Ok(()) => {
                self.agent_answered(slot);
                self.reply_came_to(now, slot);
                return if reply.code.is_accepted() {
                    self.accepted(now, slot, sent, reply);
                } else {
                    self.denied(now, slot, sent, reply);
                };
            }
            Err(reason) => reason,
        };
        self.outbox.drop(reason, source);
    }

    /// The agent whose advertisement led to `attachment`, if one did.
    pub(super) fn heard_agent(&self, attachment: Attachment) -> Option<Ipv4Addr> {
        if attachment == Attachment::Home { self.home_agent } else { attachment.agent() }
    }

    fn agent_answered(&mut self, slot: Slot) {
        let agent = self.pending(slot).and_then(|pending| self.heard_agent(pending.attachment));
        let carrier = self.carrier(slot).and_then(|index| self.interfaces.get_mut(index));
        if let (Some(agent), Some(carrier)) = (agent, carrier) {
            carrier.agents.set_silent(agent, false);
        }
    }

    fn check_reply(
        &self,
        source: Ipv4Addr,
        source_port: u16,
        bytes: &[u8],
        message: &Message,
        reply: &RegistrationReply,
        pending: &Pending,
    ) -> Result<(), DropReason> {
        let agent = pending.attachment.agent();
        // Whoever hears a question to everybody may answer it, and must prove to be the home agent.
        let asked_everybody = agent.is_none() && self.home_agent.is_none();
        if (source != pending.peer && !asked_everybody) || source_port != REGISTRATION_PORT {
            return Err(DropReason::UnexpectedSource);
        }
        if let Some(association) = agent.and_then(|agent| self.foreign_agents.get(&agent)) {
            let kind = AuthenticationKind::MobileForeign;
            authentication::check(bytes, message, kind, core::iter::once(association))?;
        }
        match reply.code.range() {
            CodeRange::Success | CodeRange::HomeAgent => {
                let association = core::iter::once(&self.config.security);
                authentication::check(bytes, message, AuthenticationKind::MobileHome, association).map(|_| ())
            }
            // A foreign agent's own denial; it has nothing to sign it with but the above.
            CodeRange::ForeignAgent | CodeRange::GatewayForeignAgent if agent.is_some() => Ok(()),
            _ => Err(DropReason::PoorlyFormed),
        }
    }

    fn accepted(&mut self, now: Instant, slot: Slot, sent: Sent, reply: &RegistrationReply) {
        let Some(carrier) = self.carrier(slot) else { return };
        let Some(mut granted) = self.remove_pending(slot) else { return };
        self.identifications.learn(reply.identification);
        self.outbox.count_accepted();
        let round_trip = now - sent.at;
        granted.identification = Some(sent.identification);
        granted.lifetime = reply.lifetime.min(granted.lifetime);
        let step = RegistrationStep::Accepted { code: reply.code, round_trip };
        self.registration_event(step, &granted, carrier);
        match granted.purpose {
            Purpose::Release { .. } => {}
            Purpose::Farewell => self.forget_bindings(),
            Purpose::Register => {
                let Some(interface) = self.interfaces.get_mut(carrier) else { return };
                // Of several copies nobody knows which was answered.
                if sent.copies == 1 {
                    interface.measured(round_trip);
                }
                interface.refresh = false;
                interface.interrupted = interface.interrupted.filter(|&at| at > sent.at);
                interface.solicitor.moved();
                let at_home = granted.attachment == Attachment::Home;
                if granted.lifetime.is_zero() && !at_home {
                    // Accepted for no time at all. Asking again at once would be answered the same way.
                    return self.block(now, carrier, granted.attachment);
                }
                interface.denials = 0;
                interface.blocked = None;
                self.keeps_one |= reply.code == ReplyCode::AcceptedWithoutSimultaneousBindings;
                let kept = granted.flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS)
                    && reply.code == ReplyCode::Accepted;
                for index in (0..self.interfaces.len()).filter(|&index| index != carrier) {
                    // Being at home is no binding that could be kept beside another.
                    if !kept || self.is_held_at_home(index) {
                        self.forget_binding(index, Change::Removed);
                    }
                }
                let path_id = self.granted_path(carrier, &granted, reply);
                if path_id.is_none() && self.asked_path(carrier, &granted).is_some() {
                    // Packets would come by each address in a copy.
                    self.keeps_one = true;
                }
                let replaced = self.hold(carrier, &granted, path_id, sent.at, at_home);
                if let Some(care_of) = replaced.filter(|_| kept) {
                    self.farewell(now, Purpose::Release { care_of }, granted.attachment);
                }
                if !kept {
                    // What else is under way would undo this.
                    (0..self.interfaces.len()).filter(|&index| index != carrier).for_each(|index| {
                        self.cancel_pending(now, index);
                    });
                }
                self.registered(now, carrier, granted.attempts, round_trip);
            }
        }
    }

    /// Remembers what was granted. Returns the care-of address held before, if it was another.
    ///
    /// Time counts from `start`, when the request was sent: so it ends here no later than at the home agent (section 3.6.2.2).
    fn hold(
        &mut self,
        carrier: usize,
        granted: &Pending,
        path_id: Option<PathId>,
        start: Instant,
        at_home: bool,
    ) -> Option<Ipv4Addr> {
        let percent = u32::from(self.config.renew_after_percent);
        let interface = self.interfaces.get_mut(carrier)?;
        let span = granted.lifetime.duration().filter(|_| !at_home);
        let flag = |flag| granted.flags.contains(flag);
        let old = interface.held.replace(Held {
            attachment: granted.attachment,
            renew_at: span
                .map(|span| span * percent / 100)
                .into_iter()
                .chain(self.config.probe.filter(|_| !at_home))
                .min()
                .map_or(Instant::MAX, |span| start + span),
            expires: if at_home { Instant::MAX } else { end_of(granted.lifetime, start) },
            reverse_tunnel: flag(RequestFlags::REVERSE_TUNNELING),
            encapsulating_delivery: granted.encapsulating_delivery,
            encapsulation: if flag(RequestFlags::MINIMAL_ENCAPSULATION) {
                EncapsulationChoice::Minimal
            } else if flag(RequestFlags::GRE) {
                EncapsulationChoice::Gre
            } else {
                EncapsulationChoice::IpInIp
            },
            path_id,
        });
        let before = old.and_then(|held| held.attachment.care_of());
        let after = granted.attachment.care_of();
        let replaced = before.filter(|_| before != after);
        if let Some(care_of) = replaced {
            self.binding_event(care_of, Lifetime::ZERO, Change::Removed);
        }
        if let Some(care_of) = after {
            let change = if before == after { Change::Updated } else { Change::Created };
            self.binding_event(care_of, granted.lifetime, change);
        }
        replaced
    }

    fn is_held_at_home(&self, index: usize) -> bool {
        let held = self.interfaces.get(index).and_then(|interface| interface.held);
        held.is_some_and(|held| held.attachment == Attachment::Home)
    }

    /// All bindings are gone.
    pub(super) fn forget_bindings(&mut self) {
        (0..self.interfaces.len()).for_each(|index| self.forget_binding(index, Change::Removed));
    }

    pub(super) fn forget_binding(&mut self, index: usize, change: Change) {
        let held = self.interfaces.get_mut(index).and_then(|interface| interface.held.take());
        if let Some(care_of) = held.and_then(|held| held.attachment.care_of()) {
            self.binding_event(care_of, Lifetime::ZERO, change);
        }
    }

    fn binding_event(&mut self, care_of: Ipv4Addr, lifetime: Lifetime, change: Change) {
        let home_address = self.config.home_address;
        self.outbox.event(Event::Binding(BindingChanged {
            home_address,
            care_of,
            lifetime,
            change,
            path: None,
            received: ReceivedData::EMPTY,
        }));
    }

    fn denied(&mut self, now: Instant, slot: Slot, sent: Sent, reply: &RegistrationReply) {
        let Some(carrier) = self.carrier(slot) else { return };
        let Some(pending) = self.pending(slot).cloned() else { return };
        let code = reply.code;
        let round_trip = now - sent.at;
        self.outbox.counters.count_denial(code.number());
        self.registration_event(RegistrationStep::Denied { code, round_trip }, &pending, carrier);
        if code.range() == CodeRange::HomeAgent && code != ReplyCode::HomeIdentificationMismatch {
            self.identifications.learn(reply.identification);
        }
        let repaired = pending.repairs < MAX_REPAIRS && self.repair(carrier, &pending, reply);
        if let Some(pending) = self.pending_mut(slot).filter(|_| repaired || is_passing(code)) {
            pending.was_denied(repaired);
            if repaired {
                pending.next = now;
            }
            return;
        }
        match slot {
            // The binding will expire.
            Slot::Farewell(_) => {
                self.remove_pending(slot);
                if pending.purpose == Purpose::Farewell {
                    self.forget_bindings();
                }
            }
            Slot::Interface(index) => self.refused(now, index, pending.attachment, code),
        }
    }

    /// Does what makes a denial unlikely the next time (section 3.6.2.3); false where nothing does.
    fn repair(&mut self, carrier: usize, pending: &Pending, reply: &RegistrationReply) -> bool {
        let asked = |flag| pending.flags.contains(flag);
        let Some(interface) = self.interfaces.get_mut(carrier) else { return false };
        match reply.code {
            ReplyCode::HomeIdentificationMismatch => {
                let Some(request) = pending.identification else { return false };
                self.identifications.resynchronize(request, reply.identification);
                true
            }
            ReplyCode::HomeUnknownHomeAgentAddress => {
                let found = reply.home_agent;
                let new = is_unicast(found) && self.home_agent != Some(found);
                if new {
                    self.home_agent = Some(found);
                }
                new
            }
            ReplyCode::ForeignRequestedLifetimeTooLong => {
                let limit = reply.lifetime;
                let helps = !limit.is_zero() && limit < pending.lifetime;
                if helps {
                    interface.repairs.lifetime = Some(limit);
                }
                helps
            }
            ReplyCode::ForeignReverseTunnelMandatory | ReplyCode::HomeReverseTunnelMandatory => {
                interface.repairs.reverse_tunnel = true;
                !asked(RequestFlags::REVERSE_TUNNELING)
            }
            ReplyCode::ForeignDeliveryStyleNotSupported => {
                interface.repairs.direct_delivery = true;
                pending.encapsulating_delivery
            }
            ReplyCode::HomeTooManySimultaneousBindings => {
                // It counts some that we have lost sight of; alone, this one ends them all.
                // With others in use that would cost more than it brings.
                let may_end_others = self.config.multipath.is_none() || self.desired == Some(carrier);
                interface.repairs.alone = may_end_others;
                may_end_others && asked(RequestFlags::SIMULTANEOUS_BINDINGS)
            }
            ReplyCode::ForeignEncapsulationUnavailable | ReplyCode::HomeEncapsulationUnavailable => {
                interface.repairs.ip_in_ip = true;
                asked(RequestFlags::MINIMAL_ENCAPSULATION) || asked(RequestFlags::GRE)
            }
            _ => false,
        }
    }
}

/// Whether a reply counts although another request has been sent since: it speaks of what that asks for, too. A denial has to
/// be signed by the home agent, and not to be about the Identification: the later request has another one.
fn counts_late(code: ReplyCode) -> bool {
    match code.range() {
        CodeRange::Success => true,
        CodeRange::HomeAgent => code != ReplyCode::HomeIdentificationMismatch,
        _ => false,
    }
}

/// Whether a denial is of the moment: then the request is sent again as if it had had no reply.
const fn is_passing(code: ReplyCode) -> bool {
    matches!(
        code,
        ReplyCode::ForeignInsufficientResources
            | ReplyCode::ForeignRegistrationTimeout
            | ReplyCode::ForeignHomeNetworkUnreachable
            | ReplyCode::ForeignHomeAgentHostUnreachable
            | ReplyCode::ForeignHomeAgentPortUnreachable
            | ReplyCode::ForeignHomeAgentUnreachable
            | ReplyCode::HomeInsufficientResources
    )
}
