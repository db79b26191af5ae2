//! How a mobile node finds home agents (RFC 6275 section 11.4.1) and learns the prefixes of its home network (sections 11.4.2 and
//! 11.4.3).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{
    HomeAgentAddressDiscoveryReply, HomeAgentAddressDiscoveryRequest, Icmpv6Message,
    MobilePrefixAdvertisement, MobilePrefixSolicitation,
};
use careof_wire::ipv6::{home_agents_anycast, is_unicast_routable};

use super::MobileNode;
use super::attachment::Attachment;
use crate::v6::update_rate::Retransmission;
use crate::v6::{Addresses, DropReason, Event};

/// INITIAL_DHAAD_TIMEOUT and DHAAD_RETRIES (RFC 6275 section 12).
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(3);
const DISCOVERY_RETRIES: u32 = 4;
/// After so long without an answer, and so long after the last time, the node begins to look anew.
const DISCOVERY_PAUSE: Duration = Duration::from_secs(60);
/// INITIAL_SOLICIT_TIMER (RFC 6275 section 12).
const SOLICITATION_TIMEOUT: Duration = Duration::from_secs(3);
/// Solicitations that nobody answers.
const MAX_SOLICITATIONS: u32 = 5;
/// The longest wait between two messages of either kind.
const LONGEST_WAIT: Duration = Duration::from_secs(48);
/// Home agents remembered of an answer.
const MAX_HOME_AGENTS: usize = 16;

/// The home agents that can be asked.
#[derive(Debug)]
pub(super) struct HomeAgents {
    current: Option<Ipv6Addr>,
    /// In the order of the answer.
    candidates: Vec<Ipv6Addr>,
    /// The owner has named the home agent, and no other is looked for.
    configured: bool,
    /// Candidates in a row that were left.
    left: usize,
}

impl HomeAgents {
    pub(super) fn new(configured: Option<Ipv6Addr>) -> Self {
        Self {
            current: configured,
            candidates: configured.into_iter().collect(),
            configured: configured.is_some(),
            left: 0,
        }
    }

    pub(super) const fn current(&self) -> Option<Ipv6Addr> {
        self.current
    }

    /// The current one has answered as it should.
    pub(super) const fn works(&mut self) {
        self.left = 0;
    }

    /// The next candidate, once each; then none, or, where home agents are looked for, they are looked for again.
    fn advance(&mut self) -> bool {
        self.left += 1;
        if self.left < self.candidates.len() {
            let at = self.candidates.iter().position(|candidate| Some(*candidate) == self.current);
            let next = at.map_or(0, |at| (at + 1) % self.candidates.len());
            self.current = self.candidates.get(next).copied();
            return true;
        }
        self.left = 0;
        if self.configured {
            return false;
        }
        self.current = None;
        self.candidates.clear();
        true
    }
}

/// A question under way.
#[derive(Clone, Copy, Debug)]
struct Question {
    identifier: u16,
    retransmission: Retransmission,
    /// The address it was sent from.
    source: Option<Ipv6Addr>,
}

/// The questions under way.
#[derive(Debug, Default)]
pub(super) struct Questions {
    home_agents: Option<Question>,
    /// When home agents may be looked for again.
    look_again: Instant,
    prefixes: Option<Question>,
}

impl Questions {
    pub(super) fn discovery_deadline(&self) -> Option<Instant> {
        self.home_agents.map(|question| question.retransmission.next)
    }

    pub(super) fn solicitation_deadline(&self) -> Option<Instant> {
        self.prefixes.map(|question| question.retransmission.next)
    }
}

impl MobileNode {
    /// Goes on to another home agent, or looks for some; false when there is none to go on to.
    pub(super) fn try_next_home_agent(&mut self, now: Instant) -> bool {
        if !self.home_agents.advance() {
            return false;
        }
        // Whether the next one knows probes is not known.
        self.supervision.probes_understood = false;
        // InitialBindackTimeoutFirstReg passes before another one is asked (section 11.4.1).
        let config = self.config.retransmission;
        for slot in self.slots() {
            if let Some(pending) = self.pending_mut(slot) {
                let at = now + config.first_registration;
                pending.retransmission = Retransmission::begin(at, config.first_registration, config.maximum);
                pending.unanswered = 0;
            }
        }
        true
    }

    /// Looks for home agents as long as none is known and something waits for one.
    pub(super) fn reconcile_discovery(&mut self, now: Instant) {
        if self.home_agents.current().is_some() {
            self.questions.home_agents = None;
            return;
        }
        let waits = self.slots().any(|slot| self.pending(slot).is_some());
        if !waits {
            self.questions.home_agents = None;
        } else if self.questions.home_agents.is_none() {
            let identifier = (self.random.next_u64() >> 48) as u16;
            let begin = self.questions.look_again.max(now);
            let retransmission = Retransmission::begin(begin, DISCOVERY_TIMEOUT, LONGEST_WAIT);
            self.questions.home_agents = Some(Question { identifier, retransmission, source: None });
        }
        self.ask_for_home_agents(now);
    }

    fn ask_for_home_agents(&mut self, now: Instant) {
        let Some(mut question) = self.questions.home_agents.filter(|q| q.retransmission.next <= now) else {
            return;
        };
        if question.retransmission.attempts > DISCOVERY_RETRIES {
            // Nobody is there. The node begins anew, later.
            self.questions.look_again = now + DISCOVERY_PAUSE;
            let next = self.questions.look_again;
            question.retransmission = Retransmission::begin(next, DISCOVERY_TIMEOUT, LONGEST_WAIT);
            self.questions.home_agents = Some(question);
            return;
        }
        question.retransmission.sent(now);
        let way_out = self.slots().find_map(|slot| {
            let carrier = self.carrier(slot)?;
            let attachment = self.attachment(now, carrier)?;
            // Anycast addresses are of IPv6 (RFC 5555 section 2.1).
            let is_ipv4 = attachment.care_of().is_some_and(|address| address.to_ipv4_mapped().is_some());
            (!is_ipv4).then_some((carrier, attachment))
        });
        if let Some((carrier, attachment)) = way_out {
            let source = attachment.care_of().unwrap_or(self.config.home_address);
            let prefix = self.config.home_prefix;
            let anycast = home_agents_anycast(prefix.address(), prefix.length());
            let addresses = Addresses::new(source, anycast);
            let identifier = question.identifier;
            let request = HomeAgentAddressDiscoveryRequest { identifier };
            let mut bytes = Vec::new();
            Icmpv6Message::HomeAgentAddressDiscoveryRequest(request).emit(source, anycast, &mut bytes);
            let interface = self.id(carrier);
            self.outbox.icmp(interface, addresses, bytes);
            question.source = Some(source);
        }
        self.questions.home_agents = Some(question);
    }

    pub(super) fn handle_discovery_reply(
        &mut self,
        now: Instant,
        addresses: Addresses,
        reply: &HomeAgentAddressDiscoveryReply,
    ) {
        let asked = self.questions.home_agents.is_some_and(|question| {
            question.identifier == reply.identifier && question.source == Some(addresses.destination)
        });
        let found = reply.home_agents.iter().copied();
        let mut home_agents: Vec<Ipv6Addr> =
            found.filter(|address| is_unicast_routable(*address)).take(MAX_HOME_AGENTS).collect();
        // A list without addresses is as good as one with that of its sender.
        if home_agents.is_empty() && is_unicast_routable(addresses.source) {
            home_agents.push(addresses.source);
        }
        if !asked || home_agents.is_empty() {
            return self.outbox.drop(DropReason::UnexpectedAnswer, addresses.source);
        }
        self.questions.home_agents = None;
        self.questions.look_again = now + DISCOVERY_PAUSE;
        self.home_agents.current = home_agents.first().copied();
        self.home_agents.candidates.clone_from(&home_agents);
        self.home_agents.left = 0;
        self.outbox.event(Event::HomeAgentsFound { home_agents });
        for slot in self.slots() {
            if let Some(pending) = self.pending_mut(slot) {
                pending.retransmission.next = now;
            }
        }
        self.reconcile(now);
    }

    /// Asks the home agent for the prefixes of the home network, unless that is under way.
    pub(super) fn solicit_prefixes(&mut self, now: Instant) {
        if self.questions.prefixes.is_none() {
            let identifier = (self.random.next_u64() >> 48) as u16;
            let retransmission = Retransmission::begin(now, SOLICITATION_TIMEOUT, LONGEST_WAIT);
            self.questions.prefixes = Some(Question { identifier, retransmission, source: None });
        }
    }

    /// Sends the solicitation that is due. Without a binding nobody would answer.
    pub(super) fn send_solicitation(&mut self, now: Instant) {
        if self.home_prefix_refresh <= now {
            self.home_prefix_refresh = Instant::MAX;
            self.solicit_prefixes(now);
        }
        let Some(mut question) = self.questions.prefixes.filter(|q| q.retransmission.next <= now) else {
            return;
        };
        let active = self.active.and_then(|active| self.interfaces.get(active));
        let held = active.filter(|interface| interface.up).and_then(|interface| interface.held);
        let way = held.and_then(|held| Some((held.home_agent, held.attachment.care_of()?)));
        // Through IPv4 nobody needs to ask (RFC 5555 section 2.2).
        let way = way.filter(|(_, care_of)| care_of.to_ipv4_mapped().is_none());
        let Some((home_agent, care_of)) =
            way.filter(|_| question.retransmission.attempts < MAX_SOLICITATIONS)
        else {
            self.questions.prefixes = None;
            return;
        };
        question.retransmission.sent(now);
        question.source = Some(care_of);
        self.questions.prefixes = Some(question);
        let addresses = Addresses::new(care_of, home_agent).with_home_address(self.config.home_address);
        let solicitation = MobilePrefixSolicitation { identifier: question.identifier, options: Vec::new() };
        let mut bytes = Vec::new();
        let message = Icmpv6Message::MobilePrefixSolicitation(solicitation);
        message.emit(addresses.real_source(), addresses.real_destination(), &mut bytes);
        let interface = self.active.and_then(|active| self.id(active));
        self.outbox.icmp(interface, addresses, bytes);
    }

    /// Prefixes of the home network, as the home agent advertises them (section 11.4.3).
    pub(super) fn handle_prefix_advertisement(
        &mut self,
        now: Instant,
        addresses: Addresses,
        advertisement: &MobilePrefixAdvertisement,
    ) {
        let held = self.interfaces.iter().filter_map(|interface| interface.held);
        let mut away = held.filter(|held| matches!(held.attachment, Attachment::Away { .. }));
        let is_ours = away.any(|held| held.home_agent == addresses.source);
        if !is_ours || addresses.type_2_routing != Some(self.config.home_address) {
            return self.outbox.drop(DropReason::UnexpectedSource, addresses.source);
        }
        let asked = |question: Question| {
            question.identifier == advertisement.identifier && question.retransmission.attempts > 0
        };
        if !self.questions.prefixes.is_some_and(asked) {
            // It says that there is news; that itself anybody could have sent.
            self.outbox.drop(DropReason::UnexpectedAnswer, addresses.source);
            self.solicit_prefixes(now);
            return self.send_solicitation(now);
        }
        self.questions.prefixes = None;
        let home = self.config.home_prefix;
        let ours = advertisement
            .prefixes()
            .find(|told| told.prefix_length == home.length() && told.masked_prefix() == home.address());
        if let Some(ours) = ours {
            let valid = ours.valid_lifetime.duration();
            self.home_prefix_end = valid.map_or(Instant::MAX, |valid| now + valid);
            // Well before it becomes invalid (section 11.4.2).
            let refresh = valid.filter(|valid| *valid >= DISCOVERY_PAUSE);
            self.home_prefix_refresh = refresh.map_or(Instant::MAX, |valid| now + valid * 3 / 4);
        }
        let prefixes = advertisement.prefixes().copied().collect();
        self.outbox.event(Event::HomePrefixes { prefixes });
    }
}
