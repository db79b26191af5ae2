//! Route optimisation: the return routability procedure, and the bindings at correspondent nodes (RFC 6275 sections 5.2, 11.6
//! and 11.7.2).
//!
//! Away from home both tests run at once: the Home Test Init through the home agent, the Care-of Test Init straight. With both
//! tokens the node has the key for a Binding Update. At home a Home Test alone gives the key to delete the binding. Tokens serve
//! until MAX_TOKEN_LIFETIME, so that after a move only the care-of address is tested.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::mip6::{
    BindingAcknowledgement, BindingAuthorization, BindingManagementKey, BindingStatus, BindingUpdate,
    CareOfTest, CareOfTestInit, HomeTest, HomeTestInit, Lifetime, Message, MobilityOption, MobilityOptions,
    NonceIndex, NonceIndices, SequenceNumber, UpdateFlags,
};

use super::MobileNode;
use super::attachment::Attachment;
use super::binding_update_list::{Bound, Correspondent, FORGOTTEN_AFTER, Goal, Test, Update};
use super::registration::{RecentUpdates, Sent};
use crate::back_off::BackOff;
use crate::v6::update_rate::Retransmission;
use crate::v6::{
    Addresses, CorrespondentChanged, DropReason, Event, RegistrationEvent, RegistrationStep, Tunnel,
};
use crate::{Change, InterfaceId};

/// MAX_RO_FAILURE (RFC 6275 section 12): messages in vain after which packets go through the home agent again.
const MAX_RO_FAILURE: u32 = 3;
/// Messages in vain after which the node stops trying for a while.
const MAX_ATTEMPTS: u32 = 8;
/// For how long a correspondent node that does not answer, or cannot, is left alone (section 11.3.5: "a period of time").
const BARRED_FOR: Duration = Duration::from_secs(300);
/// Binding Updates refused for their numbers or nonces in a row, before the node waits.
const MAX_REPAIRS: u32 = 4;

/// From where the node talks to correspondent nodes.
#[derive(Clone, Copy, Debug)]
struct Place {
    goal: Goal,
    interface: Option<InterfaceId>,
    /// Away from home: the tunnel to the home agent.
    tunnel: Option<Tunnel>,
    /// When the home registration or the care-of address ends.
    end: Instant,
}

impl MobileNode {
    /// Packets are exchanged with `correspondent` from or to the home address: the node optimises the route to it, or keeps it
    /// optimised. To be called for packets that came through the tunnel from the home agent (RFC 6275 section 11.7.2), and for others
    /// now and then. Where the table is full, who was longest without packets is forgotten, unless it knows a care-of address.
    pub fn note_correspondent(&mut self, now: Instant, correspondent: Ipv6Addr) {
        self.outbox.called_at(now);
        let Some(config) = self.config.route_optimization else { return };
        if !careof_wire::ipv6::is_unicast_routable(correspondent) || self.is_home_agent(correspondent) {
            return;
        }
        if let Some(known) = self.correspondents.of.get_mut(&correspondent) {
            known.used = now;
            if core::mem::take(&mut known.idle) {
                self.drive_correspondent(now, correspondent);
            }
            return;
        }
        if !self.new_correspondents.take(now, super::NEW_CORRESPONDENTS) {
            return self.outbox.drop(DropReason::OverRation, correspondent);
        }
        if self.correspondents.of.len() >= config.max_correspondents {
            let idle = |known: &Correspondent| known.bound.is_none() && !known.may_be_bound;
            let idle = self.correspondents.of.iter().filter(|(_, known)| idle(known));
            let Some(oldest) = idle.min_by_key(|(_, known)| known.used).map(|(address, _)| *address) else {
                return self.outbox.drop(DropReason::TableFull, correspondent);
            };
            self.correspondents.of.remove(&oldest);
        }
        self.correspondents.of.insert(correspondent, Correspondent::new(now, &mut self.random));
        self.drive_correspondent(now, correspondent);
    }

    /// How many correspondent nodes are remembered.
    #[must_use]
    pub fn correspondent_count(&self) -> usize {
        self.correspondents.of.len()
    }

    /// The care-of address that `correspondent` has acknowledged.
    #[must_use]
    pub fn optimized_route(&self, correspondent: Ipv6Addr) -> Option<Ipv6Addr> {
        self.correspondents.of.get(&correspondent)?.bound.map(|bound| bound.care_of)
    }

    /// The correspondent nodes that have acknowledged another care-of address than the present one, and send there.
    pub fn outdated_correspondents(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let present = self.care_of();
        let is_outdated =
            move |known: &Correspondent| known.bound.is_some_and(|bound| Some(bound.care_of) != present);
        self.correspondents
            .of
            .iter()
            .filter(move |(_, known)| is_outdated(known))
            .map(|(address, _)| *address)
    }

    fn is_home_agent(&self, address: Ipv6Addr) -> bool {
        self.home_agents.current() == Some(address) || self.accepts_tunnel_from(address)
    }

    fn place(&self, now: Instant) -> Place {
        let nowhere = Place { goal: Goal::Wait, interface: None, tunnel: None, end: now };
        let Some(active) = self.active else { return nowhere };
        let Some(interface) = self.interfaces.get(active).filter(|interface| interface.up) else {
            return nowhere;
        };
        let Some(held) = interface.held.filter(|_| !self.left) else { return nowhere };
        let id = Some(interface.config.id);
        match held.attachment {
            Attachment::Home => Place { goal: Goal::Delete, interface: id, tunnel: None, end: Instant::MAX },
            // An address that is gone is not to be told to anybody.
            attachment if self.attachment(now, active) != Some(attachment) => nowhere,
            Attachment::Away { care_of } => Place {
                // A care-of address of IPv4 is none that a correspondent node could be told: what it knows is to end (RFC 5555 section
                // 5.1).
                goal: if care_of.to_ipv4_mapped().is_some() { Goal::Delete } else { Goal::Bind(care_of) },
                interface: id,
                tunnel: self.tunnel_from(care_of, held.home_agent),
                end: held.expires.min(interface.end_of(care_of)).min(self.home_prefix_end),
            },
        }
    }

    /// Brings what correspondent nodes know in line with where the node is.
    pub(super) fn drive_correspondents(&mut self, now: Instant) {
        let all: alloc::vec::Vec<_> = self.correspondents.of.keys().copied().collect();
        all.into_iter().for_each(|correspondent| self.drive_correspondent(now, correspondent));
    }

    /// Does what is due.
    pub(super) fn handle_correspondents_timeout(&mut self, now: Instant) {
        let due = self.correspondents.of.iter().filter(|(_, known)| known.deadline() <= now);
        let due: alloc::vec::Vec<_> = due.map(|(address, _)| *address).collect();
        due.into_iter().for_each(|correspondent| self.drive_correspondent(now, correspondent));
    }

    fn drive_correspondent(&mut self, now: Instant, address: Ipv6Addr) {
        let place = self.place(now);
        let Some(mut known) = self.correspondents.of.remove(&address) else { return };
        if let Some(bound) = known.bound.filter(|bound| bound.expires <= now) {
            known.bound = None;
            self.correspondent_event(address, bound.care_of, Lifetime::ZERO, Change::Expired);
        }
        known.barred = known.barred.filter(|until| *until > now);
        let has_binding = known.bound.is_some() || known.may_be_bound;
        known.idle = known.used + FORGOTTEN_AFTER <= now;
        if known.idle && known.bound.is_none() && known.update.is_none() {
            return;
        }
        match place.goal {
            Goal::Wait => known.stop(),
            // At home, and it knows of nothing else.
            Goal::Delete if !has_binding => return,
            _ if known.barred.is_some() => known.stop(),
            goal => self.pursue(now, address, &mut known, (goal, place)),
        }
        // What could not go out for want of a place comes when there is one.
        let is_busy = known.is_busy();
        if let Some(bound) = known.bound.as_mut().filter(|bound| bound.renew_at <= now && !is_busy) {
            bound.renew_at = Instant::MAX;
        }
        self.correspondents.of.insert(address, known);
    }

    fn pursue(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        known: &mut Correspondent,
        (goal, place): (Goal, Place),
    ) {
        let waits = (self.config.retransmission.initial, self.config.retransmission.maximum);
        if let Goal::Bind(care_of) = goal {
            if known.tested != Some(care_of) {
                known.care_of.pending = None;
                known.care_of.token = None;
                known.tested = Some(care_of);
            }
            // One that nobody uses is not renewed.
            let lasts = |bound: Bound| now < bound.renew_at || known.idle;
            if known.bound.is_some_and(|bound| bound.care_of == care_of && lasts(bound)) {
                return known.stop();
            }
        } else {
            known.care_of.pending = None;
        }
        if known.update.as_ref().is_some_and(|update| update.goal != goal) {
            known.update = None;
        }
        if known.update.is_none() {
            let home = known.home.fresh(now);
            let care_of = known.care_of.fresh(now);
            let tokens = match goal {
                Goal::Delete => home.map(|home| {
                    let nonces = NonceIndices { home: home.nonce, care_of: NonceIndex(0) };
                    (BindingManagementKey::for_deletion(home.token), nonces)
                }),
                _ => home.zip(care_of).map(|(home, care_of)| {
                    let nonces = NonceIndices { home: home.nonce, care_of: care_of.nonce };
                    (BindingManagementKey::new(home.token, care_of.token), nonces)
                }),
            };
            let lifetime = match goal {
                Goal::Bind(_) => self.correspondent_lifetime(now, place.end),
                _ => Lifetime::ZERO,
            };
            match tokens {
                Some((key, nonces)) => {
                    let retransmission = Retransmission::begin(now, waits.0, waits.1);
                    let recent = RecentUpdates::default();
                    let flags = self.flags_of_update(known, goal);
                    known.update =
                        Some(Update { goal, key, nonces, lifetime, flags, recent, retransmission });
                    known.home.pending = None;
                    known.care_of.pending = None;
                }
                None => {
                    if home.is_none() {
                        known.home.begin(now, waits);
                    }
                    if care_of.is_none() && goal != Goal::Delete {
                        known.care_of.begin(now, waits);
                    }
                }
            }
        }
        self.send_tests(now, address, known, place);
        self.send_update(now, address, known, place);
        self.mind_silence(now, address, known);
    }

    /// Whether an update tells the end of a handover: the correspondent node knows another care-of address.
    fn flags_of_update(&self, known: &Correspondent, goal: Goal) -> UpdateFlags {
        let tells = self.config.route_optimization.is_some_and(|config| config.tells_end_of_handover);
        let has_moved = known.bound.is_some_and(|bound| goal != Goal::Bind(bound.care_of));
        if tells && has_moved {
            UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::END_OF_HANDOVER)
        } else {
            UpdateFlags::ACKNOWLEDGE
        }
    }

    /// The lifetime to ask a correspondent node for: the home registration and the addresses outlive it (section 11.7.2).
    fn correspondent_lifetime(&self, now: Instant, end: Instant) -> Lifetime {
        let asked = self.config.route_optimization.map_or(Lifetime::ZERO, |config| config.lifetime);
        let left = Lifetime::from_duration(end.saturating_duration_since(now));
        asked.min(left).max(Lifetime::from_units(1))
    }

    /// Reverts to the home agent where nobody answers (section 5.2.9).
    fn mind_silence(&mut self, now: Instant, address: Ipv6Addr, known: &mut Correspondent) {
        let attempts = |test: &Test| test.pending.map_or(0, |(_, retransmission)| retransmission.attempts);
        let updates = known.update.as_ref().map_or(0, |update| update.retransmission.attempts);
        let in_vain = attempts(&known.home).max(attempts(&known.care_of)).max(updates);
        if in_vain > MAX_RO_FAILURE
            && let Some(bound) = known.bound.take()
        {
            known.may_be_bound = true;
            self.correspondent_event(address, bound.care_of, Lifetime::ZERO, Change::Removed);
        }
        if in_vain > MAX_ATTEMPTS {
            known.stop();
            known.barred = Some(now + BARRED_FOR);
        }
    }

    /// Sends the test messages that are due, each with a cookie of its own (section 11.8).
    fn send_tests(&mut self, now: Instant, address: Ipv6Addr, known: &mut Correspondent, place: Place) {
        let home_address = self.config.home_address;
        if let Some(cookie) = known.home.due_cookie(now, &mut self.random) {
            let way = Addresses::new(home_address, address);
            // Away from home through the home agent (section 6.1.3).
            let way = place.tunnel.map_or(way, |tunnel| way.through(tunnel));
            let options = MobilityOptions::new();
            self.transmit(place.interface, way, &Message::HomeTestInit(HomeTestInit { cookie, options }));
        }
        let Goal::Bind(care_of) = place.goal else { return };
        if let Some(cookie) = known.care_of.due_cookie(now, &mut self.random) {
            let way = Addresses::new(care_of, address);
            let options = MobilityOptions::new();
            self.transmit(place.interface, way, &Message::CareOfTestInit(CareOfTestInit { cookie, options }));
        }
    }

    fn send_update(&mut self, now: Instant, address: Ipv6Addr, known: &mut Correspondent, place: Place) {
        let Some(update) = known.update.as_mut().filter(|update| update.retransmission.next <= now) else {
            return;
        };
        let allowed = known.updates.earliest(now);
        if allowed > now {
            update.retransmission.next = allowed;
            return;
        }
        let home_address = self.config.home_address;
        known.sequence = known.sequence.next();
        let message = Message::BindingUpdate(BindingUpdate {
            sequence: known.sequence,
            flags: update.flags,
            lifetime: update.lifetime,
            options: MobilityOptions::new().with(MobilityOption::NonceIndices(update.nonces)),
        });
        let (way, care_of_address) = match update.goal {
            Goal::Bind(care_of) => {
                (Addresses::new(care_of, address).with_home_address(home_address), care_of)
            }
            _ => {
                let way = Addresses::new(home_address, address);
                (place.tunnel.map_or(way, |tunnel| way.through(tunnel)), home_address)
            }
        };
        let authorization =
            BindingAuthorization { key: &update.key, care_of_address, correspondent: address };
        let Ok(bytes) = message.emit_authorized(way.real_source(), way.real_destination(), &authorization)
        else {
            return;
        };
        self.updates_sent += 1;
        let (ordinal, sequence) = (self.updates_sent, known.sequence);
        update.recent.push(Sent { ordinal, sequence, timestamp: None, at: now });
        update.retransmission.sent(now);
        known.updates.spend(now);
        known.may_be_bound |= update.goal != Goal::Delete;
        let step = RegistrationStep::UpdateSent { attempt: update.retransmission.attempts };
        let lifetime = update.lifetime;
        self.update_event(step, address, (care_of_address, lifetime, sequence), place.interface);
        self.outbox.mobility(place.interface, way, bytes);
    }

    fn transmit(&mut self, interface: Option<InterfaceId>, way: Addresses, message: &Message) {
        if let Ok(bytes) = message.emit(way.real_source(), way.real_destination()) {
            self.outbox.mobility(interface, way, bytes);
        }
    }

    fn update_event(
        &mut self,
        step: RegistrationStep,
        peer: Ipv6Addr,
        (care_of, lifetime, sequence): (Ipv6Addr, Lifetime, SequenceNumber),
        interface: Option<InterfaceId>,
    ) {
        let home_address = self.config.home_address;
        self.outbox.event(Event::Registration(RegistrationEvent {
            step,
            home_address,
            care_of,
            peer,
            lifetime,
            sequence,
            interface,
        }));
    }

    fn correspondent_event(
        &mut self,
        correspondent: Ipv6Addr,
        care_of: Ipv6Addr,
        lifetime: Lifetime,
        change: Change,
    ) {
        let changed = CorrespondentChanged { correspondent, care_of, lifetime, change };
        self.outbox.event(Event::Correspondent(changed));
    }

    /// A Home Test counts when it came to the home address: away, through the tunnel from the home agent (section 11.6.2).
    pub(super) fn handle_home_test(&mut self, now: Instant, addresses: Addresses, test: &HomeTest) {
        let place = self.place(now);
        let is_way = match place.goal {
            Goal::Bind(_) | Goal::Delete => {
                addresses.tunnel.map(|tunnel| tunnel.entry) == place.tunnel.map(|tunnel| tunnel.exit)
            }
            Goal::Wait => false,
        };
        let known = self.correspondents.of.get_mut(&addresses.source);
        let is_ours = addresses.destination == self.config.home_address && addresses.type_2_routing.is_none();
        let answered = known.filter(|_| is_way && is_ours);
        let answered =
            answered.is_some_and(|known| known.home.answered(now, test.cookie, test.token, test.nonce_index));
        if !answered {
            return self.outbox.drop(DropReason::UnexpectedAnswer, addresses.source);
        }
        self.drive_correspondent(now, addresses.source);
    }

    /// A Care-of Test counts when it came straight to the care-of address that is tested (section 11.6.2).
    pub(super) fn handle_care_of_test(&mut self, now: Instant, addresses: Addresses, test: &CareOfTest) {
        let known = self.correspondents.of.get_mut(&addresses.source);
        let is_straight = addresses.tunnel.is_none() && addresses.type_2_routing.is_none();
        let answered = known.filter(|known| is_straight && known.tested == Some(addresses.destination));
        let answered = answered
            .is_some_and(|known| known.care_of.answered(now, test.cookie, test.token, test.nonce_index));
        if !answered {
            return self.outbox.drop(DropReason::UnexpectedAnswer, addresses.source);
        }
        self.drive_correspondent(now, addresses.source);
    }

    /// A correspondent node's acknowledgement (section 11.7.3).
    pub(super) fn handle_correspondent_acknowledgement(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        acknowledgement: &BindingAcknowledgement,
    ) {
        let address = addresses.source;
        let home_address = self.config.home_address;
        let interface = self.place(now).interface;
        let dropped = |node: &mut Self, reason| node.outbox.drop(reason, address);
        let Some(known) = self.correspondents.of.get_mut(&address) else {
            return dropped(self, DropReason::UnexpectedAnswer);
        };
        let Some(update) = &known.update else { return dropped(self, DropReason::UnexpectedAnswer) };
        let status = acknowledgement.status;
        let sent = match status {
            BindingStatus::SequenceNumberOutOfWindow => update.recent.latest(),
            _ => update.recent.with(acknowledgement.sequence),
        };
        let Some(sent) = sent.filter(|_| addresses.real_destination() == home_address) else {
            return dropped(self, DropReason::UnexpectedAnswer);
        };
        let care_of_address = match update.goal {
            Goal::Bind(care_of) => care_of,
            _ => home_address,
        };
        let authorization =
            BindingAuthorization { key: &update.key, care_of_address, correspondent: address };
        // Who has forgotten the nonces has no key (section 9.5.4).
        let is_keyless = matches!(
            status,
            BindingStatus::ExpiredHomeNonceIndex
                | BindingStatus::ExpiredCareOfNonceIndex
                | BindingStatus::ExpiredNonces
        );
        if !is_keyless && !authorization.verify(bytes) {
            return dropped(self, DropReason::BadAuthenticator);
        }
        let (goal, asked) = (update.goal, update.lifetime);
        let round_trip = now - sent.at;
        known.update = None;
        let mut told = None;
        if status.is_accepted() {
            known.repairs = 0;
            let granted = acknowledgement.lifetime.min(asked);
            let before = known.bound.take();
            known.may_be_bound = false;
            let change = match goal {
                Goal::Bind(care_of) if !granted.is_zero() => {
                    let span = granted.duration();
                    let percent = u32::from(self.config.renew_after_percent);
                    let (renew_at, expires) = (sent.at + span * percent / 100, sent.at + span);
                    known.bound = Some(Bound { care_of, renew_at, expires });
                    let again = before.is_some_and(|before| before.care_of == care_of);
                    Some((care_of, granted, if again { Change::Updated } else { Change::Created }))
                }
                // Accepted for no time at all.
                Goal::Bind(_) => {
                    known.barred = Some(now + BARRED_FOR);
                    before.map(|before| (before.care_of, Lifetime::ZERO, Change::Removed))
                }
                _ => before.map(|before| (before.care_of, Lifetime::ZERO, Change::Removed)),
            };
            told = change;
            self.outbox.counters.count_accepted();
        } else {
            known.repairs += 1;
            match status {
                BindingStatus::SequenceNumberOutOfWindow => known.sequence = acknowledgement.sequence,
                BindingStatus::ExpiredHomeNonceIndex => known.home.token = None,
                BindingStatus::ExpiredCareOfNonceIndex => known.care_of.token = None,
                BindingStatus::ExpiredNonces => {
                    known.home.token = None;
                    known.care_of.token = None;
                }
                // Nothing helps but time.
                _ => known.repairs = MAX_REPAIRS,
            }
            if known.repairs >= MAX_REPAIRS {
                known.repairs = 0;
                known.stop();
                known.barred = Some(now + BARRED_FOR);
            }
            self.outbox.counters.count_refusal(status.number());
        }
        let step = if status.is_accepted() {
            RegistrationStep::Accepted { status, round_trip }
        } else {
            RegistrationStep::Refused { status, round_trip }
        };
        self.update_event(step, address, (care_of_address, asked, sent.sequence), interface);
        if let Some((care_of, lifetime, change)) = told {
            self.correspondent_event(address, care_of, lifetime, change);
        }
        self.drive_correspondent(now, address);
    }

    /// A correspondent node asks for its binding to be renewed (section 11.7.4).
    pub(super) fn handle_refresh_request(&mut self, now: Instant, address: Ipv6Addr) -> bool {
        let bound = self.correspondents.of.get_mut(&address).and_then(|known| known.bound.as_mut());
        let Some(bound) = bound else { return false };
        bound.renew_at = bound.renew_at.min(now);
        self.drive_correspondent(now, address);
        true
    }

    /// A correspondent node has no binding (section 11.3.6). It may have been restarted, so that its tokens serve no longer; or somebody
    /// speaks in its name, so that it is not believed as often as it is said. The error goes to the care-of address `of` that the packet
    /// came from: where that is one that the node has left, packets were overtaken by the update, and nothing is wrong.
    pub(super) fn handle_unknown_binding(&mut self, now: Instant, address: Ipv6Addr, of: Ipv6Addr) -> bool {
        let Some(known) = self.correspondents.of.get_mut(&address) else { return false };
        if known.tested.is_some_and(|care_of| care_of != of) {
            return false;
        }
        let believed = match &mut known.errors {
            Some(errors) => errors.allows(now),
            errors => {
                *errors = Some(BackOff::begin(now));
                true
            }
        };
        if !believed {
            return true;
        }
        known.stop();
        known.home.token = None;
        known.care_of.token = None;
        known.may_be_bound = false;
        if let Some(bound) = known.bound.take() {
            self.correspondent_event(address, bound.care_of, Lifetime::ZERO, Change::Removed);
        }
        self.drive_correspondent(now, address);
        true
    }

    /// A correspondent node does not know Mobile IPv6 (sections 11.3.5 and 11.3.6); false when nothing was asked of it.
    pub(super) fn handle_unable(&mut self, now: Instant, address: Ipv6Addr) -> bool {
        let Some(known) = self.correspondents.of.get_mut(&address) else { return false };
        let waits = known.is_busy();
        if waits {
            known.stop();
            known.barred = Some(now + BARRED_FOR);
        }
        waits
    }
}
