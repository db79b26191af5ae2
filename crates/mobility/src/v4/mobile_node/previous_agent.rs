//! Smooth hand-off (draft-ietf-mobileip-optim): the foreign agent that the node came from is told where it is, by way of the
//! one that it has come to, or where there is none by the node itself.

use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, BindingAcknowledge, Identification, Lifetime, Message, PreviousForeignAgent,
    RequestFlags,
};

use super::MobileNode;
use super::attachment::{Attachment, Interface};
use super::registration::{Pending, Purpose};
use crate::v4::{DropReason, authentication};

/// A foreign agent that may still be getting packets for the node.
#[derive(Clone, Copy, Debug)]
pub(super) struct PreviousAgent {
    /// As it advertised itself: that names the security association.
    agent: Ipv4Addr,
    /// The care-of address held there, at which the agent is reached from elsewhere.
    care_of: Ipv4Addr,
    /// When it takes the node for gone by itself.
    expires: Instant,
    /// Where the node has come to since.
    at: Attachment,
    /// The first and the last request that were to tell of it.
    told: Option<(Identification, Identification)>,
}

impl MobileNode {
    /// What the request `pending`, which gets this Identification, is to say of the agent before to the one it goes to.
    pub(super) fn notification(
        &mut self,
        now: Instant,
        pending: &Pending,
        flags: RequestFlags,
        identification: Identification,
    ) -> Option<PreviousForeignAgent> {
        // Where the home agent goes on sending to both, the one before is to deliver what it gets.
        if flags.contains(RequestFlags::SIMULTANEOUS_BINDINGS) {
            return None;
        }
        let notification = self.compose_notification(now, pending, identification)?;
        // The new agent asks for proof of who we are.
        let agent = pending.attachment.agent().filter(|agent| self.foreign_agents.contains_key(agent));
        match (agent, pending.attachment) {
            (Some(_), Attachment::ForeignAgent { .. }) => Some(notification),
            (None, Attachment::ForeignAgent { .. }) => None,
            // Nobody else is there to say it.
            (_, attachment) => {
                self.tell_previous_agent(attachment, &notification, identification);
                None
            }
        }
    }

    fn compose_notification(
        &mut self,
        now: Instant,
        pending: &Pending,
        identification: Identification,
    ) -> Option<PreviousForeignAgent> {
        if !self.config.smooth_handoff || pending.purpose != Purpose::Register {
            return None;
        }
        self.find_previous_agent(pending.attachment);
        self.previous_agent = self.previous_agent.filter(|previous| previous.expires > now);
        let home_address = self.config.home_address;
        let previous = self.previous_agent.as_mut().filter(|previous| previous.at == pending.attachment)?;
        let association = self.foreign_agents.get(&previous.agent)?;
        let first = previous.told.map_or(identification, |(first, _)| first);
        previous.told = Some((first, identification));
        let left = previous.expires.saturating_duration_since(now).as_secs();
        let lifetime = match previous.expires {
            Instant::MAX => Lifetime::INFINITE,
            _ => Lifetime::from_secs(u16::try_from(left.max(1)).unwrap_or(u16::MAX - 1)),
        };
        Some(PreviousForeignAgent::authenticated(
            lifetime,
            previous.care_of,
            // At home: nothing is to be sent on but what the home agent gets back.
            pending.attachment.care_of().unwrap_or(home_address),
            (home_address, identification),
            (association.spi(), association.algorithm(), association.key()),
        ))
    }

    /// Sends the agent before, from home or from an address of the node's own, what a foreign agent would send it.
    fn tell_previous_agent(
        &mut self,
        attachment: Attachment,
        notification: &PreviousForeignAgent,
        identification: Identification,
    ) {
        let home_address = self.config.home_address;
        let carrier = self.interfaces.iter().find(|interface| {
            interface.pending.as_ref().is_some_and(|pending| pending.attachment == attachment)
        });
        let update = Message::BindingUpdate(notification.update(home_address, identification));
        let interface = carrier.map(|interface| interface.config.id);
        let source = attachment.care_of().unwrap_or(home_address);
        self.outbox.message(interface, source, notification.agent, update.emit());
    }

    /// Remembers the agent that is being left for `attachment`.
    fn find_previous_agent(&mut self, attachment: Attachment) {
        let held = self.active.and_then(|active| self.interfaces.get(active)).and_then(|i| i.held);
        let Some(held) = held.filter(|held| held.attachment != attachment) else { return };
        let Attachment::ForeignAgent { agent, care_of } = held.attachment else { return };
        // Another link of the same agent.
        if attachment.care_of() == Some(care_of) {
            return;
        }
        let known = self.previous_agent.is_some_and(|p| p.agent == agent && p.at == attachment);
        if !known {
            let expires = held.expires;
            self.previous_agent = Some(PreviousAgent { agent, care_of, expires, at: attachment, told: None });
        }
    }

    /// The interface by which to send, and the foreign agent there, while the one in use carries nothing and the registration
    /// that replaces it is under way: the agent knows from the request who this is.
    pub(super) fn early_interface(&self) -> Option<(&Interface, Ipv4Addr)> {
        if !self.config.smooth_handoff {
            return None;
        }
        let in_use = self.active.and_then(|active| self.interfaces.get(active));
        let in_place = |index: usize| {
            let held = in_use.and_then(|in_use| in_use.held).map(|held| held.attachment);
            held.is_some() && self.attachment(index) == held
        };
        if in_use.is_some_and(|in_use| in_use.up) && self.active.is_some_and(in_place) {
            return None;
        }
        let index = self.desired?;
        let interface = self.interfaces.get(index).filter(|interface| interface.up)?;
        let pending = interface.pending.as_ref().filter(|pending| pending.was_sent())?;
        let Attachment::ForeignAgent { agent, .. } = pending.attachment else { return None };
        self.foreign_agents.contains_key(&agent).then_some((interface, agent))
    }

    /// The agent before has answered; by way of the agent that we are at.
    pub(super) fn handle_binding_acknowledge(
        &mut self,
        source: Ipv4Addr,
        bytes: &[u8],
        acknowledge: BindingAcknowledge,
    ) {
        let Some(previous) = self.previous_agent else {
            return self.outbox.drop(DropReason::UnexpectedReply, source);
        };
        let told =
            previous.told.is_some_and(|(first, last)| (first..=last).contains(&acknowledge.identification));
        if acknowledge.home_address != self.config.home_address || !told {
            return self.outbox.drop(DropReason::IdentificationMismatch, source);
        }
        let association = self.foreign_agents.get(&previous.agent);
        let message = Message::BindingAcknowledge(acknowledge);
        let kind = AuthenticationKind::RouteOptimization;
        match authentication::check(bytes, &message, kind, association.into_iter()) {
            // Refused or not: saying it again would not change that.
            Ok(_) => self.previous_agent = None,
            Err(reason) => self.outbox.drop(reason, source),
        }
    }
}
