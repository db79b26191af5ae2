//! Smooth hand-off (draft-ietf-mobileip-optim): the agent that a mobile node comes to tells the one it comes from, and that
//! one sends on what still arrives there.
//!
//! Everything rests on the security associations between the mobile node and both agents: the new one asks for the
//! node's Mobile-Foreign authentication, and passes on to the previous one an update that only the node could have
//! signed. It need not trust the agent that brings it, and no association between agents is wanted.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, BindingAcknowledge, BindingUpdate, BindingWarning, Identification, Message,
    PreviousForeignAgent, RegistrationRequest,
};

use super::{ForeignAgent, Origin, Way};
use crate::back_off::BackOff;
use crate::v4::binding_cache::{BindingCache, CachedBinding};
use crate::v4::unicast::is_unicast;
use crate::v4::{
    Change, DropReason, Event, InterfaceId, ReplayGuard, ReplayProtection, Tunnel, authentication,
};

/// Updates sent for one notification until it is acknowledged.
const ATTEMPTS: u32 = 3;

/// A previous foreign agent that was told, or is being told.
#[derive(Debug)]
struct Notification {
    /// Whom.
    agent: Ipv4Addr,
    identification: Identification,
    /// The update, signed.
    bytes: Vec<u8>,
    attempts: u32,
    back_off: BackOff,
    /// Where the mobile node waits.
    way: Way,
    /// When nobody waits for it any longer.
    expires: Instant,
}

impl Notification {
    fn deadline(&self) -> Instant {
        if self.attempts < ATTEMPTS { self.expires.min(self.back_off.next()) } else { self.expires }
    }
}

/// A mobile node that has proved to be on one of our links, and waits for its home agent's word.
#[derive(Clone, Copy, Debug)]
struct Expected {
    interface: InterfaceId,
    expires: Instant,
}

/// What a foreign agent knows of those who come from others, and of those who have gone to others.
#[derive(Debug)]
pub(super) struct Handoffs {
    /// By home address.
    expected: BTreeMap<Ipv4Addr, Expected>,
    /// By home address.
    notifications: BTreeMap<Ipv4Addr, Notification>,
    /// Where visitors went.
    departed: BindingCache,
    /// What updates and requests of each mobile node were seen last.
    guards: BTreeMap<Ipv4Addr, ReplayGuard>,
    /// Warnings by home address and whom they are about.
    warned: BTreeMap<(Ipv4Addr, Ipv4Addr), BackOff>,
    max: usize,
}

impl Handoffs {
    pub(super) fn new(max: usize) -> Self {
        Self {
            expected: BTreeMap::new(),
            notifications: BTreeMap::new(),
            departed: BindingCache::new(max),
            guards: BTreeMap::new(),
            warned: BTreeMap::new(),
            max,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let expected = self.expected.values().map(|expected| expected.expires).min();
        let notifications = self.notifications.values().map(Notification::deadline).min();
        [expected, notifications, self.departed.deadline()].into_iter().flatten().min()
    }

    /// Where somebody waits who is here already, and will be a visitor if the home agent agrees.
    pub(super) fn expected(&self, home_address: Ipv4Addr) -> Option<InterfaceId> {
        self.expected.get(&home_address).map(|expected| expected.interface)
    }

    pub(super) fn departed(&self, home_address: Ipv4Addr) -> Option<&CachedBinding> {
        self.departed.get(home_address)
    }

    /// The home agent will have no visitor here.
    pub(super) fn denied(&mut self, home_address: Ipv4Addr) {
        self.expected.remove(&home_address);
        self.notifications.remove(&home_address);
    }
}

impl ForeignAgent {
    /// The way on for a packet to `home_address` that came out of a tunnel which begins at `from`, when
    /// [`ForeignAgent::deliver`] has none: to where the visitor went, or, when it is a node that this agent has an
    /// association with and knows nothing of, to its home agent in a special tunnel, which leads to the home address
    /// itself. `None`: nowhere; a packet that came from where it would go to has come round.
    ///
    /// The home agent is warned of others who send here, so that they learn better.
    pub fn pass_on(&mut self, now: Instant, home_address: Ipv4Addr, from: Ipv4Addr) -> Option<Tunnel> {
        self.outbox.called_at(now);
        let tunnel = self.way_on(home_address)?;
        if tunnel.exit == from {
            return None;
        }
        let home_agent = self.handoffs.departed(home_address).and_then(|departed| departed.home_agent);
        if let Some(home_agent) = home_agent.filter(|&home_agent| home_agent != from) {
            self.warn(now, home_agent, home_address, from);
        }
        Some(tunnel)
    }

    /// Whether [`ForeignAgent::pass_on`] can have an answer.
    #[must_use]
    #[inline]
    pub fn passes_on(&self, home_address: Ipv4Addr) -> bool {
        self.config.smooth_handoff && self.way_on(home_address).is_some()
    }

    fn way_on(&self, home_address: Ipv4Addr) -> Option<Tunnel> {
        if !self.config.smooth_handoff {
            return None;
        }
        if let Some(departed) = self.handoffs.departed(home_address) {
            return Some(departed.tunnel);
        }
        // Of strangers nothing is sent on: whoever could have us do that could hide behind us.
        let known = self.mobile_nodes.contains_key(&home_address);
        let visits = self.visitors.get(home_address).is_some();
        let entry = self.config.care_of_addresses.first().copied().filter(|_| known && !visits)?;
        let encapsulation = crate::v4::EncapsulationChoice::IpInIp.encapsulation();
        Some(Tunnel { entry, exit: home_address, encapsulation, ttl: crate::v4::TUNNEL_TTL })
    }

    /// The tunnel to where a visitor that told of it went.
    #[must_use]
    pub fn tunnel_after(&self, home_address: Ipv4Addr) -> Option<Tunnel> {
        self.handoffs.departed(home_address).map(|departed| departed.tunnel)
    }

    /// Where visitors who told of it went, by home address.
    pub fn departed(&self) -> impl Iterator<Item = &CachedBinding> {
        self.handoffs.departed.iter()
    }

    fn warn(&mut self, now: Instant, home_agent: Ipv4Addr, home_address: Ipv4Addr, target: Ipv4Addr) {
        let warned = &mut self.handoffs.warned;
        let room = warned.len() < self.handoffs.max;
        let allowed = match warned.entry((home_address, target)) {
            Entry::Occupied(mut known) => known.get_mut().allows(now),
            Entry::Vacant(new) if room => {
                new.insert(BackOff::begin(now));
                true
            }
            // No more than can be remembered.
            Entry::Vacant(_) => false,
        };
        if !allowed {
            return;
        }
        let warning = BindingWarning { home_address, target, extensions: Vec::new() };
        self.outbox.message(None, self.config.address, home_agent, Message::BindingWarning(warning).emit());
    }

    /// A request of a mobile node that we have an association with, authenticated: if it is fresh, the node is on our link,
    /// and nothing it said before counts any longer. What its previous foreign agent sends on need not wait for the home
    /// agent's word.
    pub(super) fn expect(&mut self, now: Instant, interface: InterfaceId, request: &RegistrationRequest) {
        let home_address = request.home_address;
        if !self.config.smooth_handoff || !self.mobile_nodes.contains_key(&home_address) {
            return;
        }
        let clock = self.config.clock.at(now);
        let guard = guard_of(&mut self.handoffs.guards, home_address);
        let fresh = guard.check(request.identification, clock, &mut self.random).outcome.is_ok();
        let is_ours = self.config.care_of_addresses.contains(&request.care_of_address);
        if fresh && is_ours && !request.lifetime.is_zero() {
            let expires = now + self.config.pending_timeout;
            self.handoffs.expected.insert(home_address, Expected { interface, expires });
        }
    }

    /// The mobile node whose request is relayed wants the agent it comes from to be told.
    pub(super) fn notify(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        way: Way,
        request: &RegistrationRequest,
        wish: &PreviousForeignAgent,
    ) {
        let home_address = request.home_address;
        // Without an association nobody has proved to be on our link, and to be who is spoken of.
        if !self.mobile_nodes.contains_key(&home_address) {
            return self.outbox.drop(DropReason::MissingAuthenticator, source);
        }
        let is_ours = self.config.care_of_addresses.contains(&wish.care_of_address);
        if !is_ours || wish.care_of_address != request.care_of_address {
            return self.outbox.drop(DropReason::PoorlyFormed, source);
        }
        if !is_unicast(wish.agent) || self.is_own(wish.agent) {
            return self.outbox.drop(DropReason::PoorlyFormed, source);
        }
        let notifications = &mut self.handoffs.notifications;
        if notifications.len() >= self.handoffs.max && !notifications.contains_key(&home_address) {
            return self.outbox.drop(DropReason::TableFull, source);
        }
        let update = Message::BindingUpdate(wish.update(home_address, request.identification));
        let bytes = update.emit();
        notifications.insert(
            home_address,
            Notification {
                agent: wish.agent,
                identification: request.identification,
                bytes: bytes.clone(),
                attempts: 1,
                back_off: BackOff::begin(now),
                way,
                expires: now + self.config.pending_timeout,
            },
        );
        self.outbox.message(None, self.config.address, wish.agent, bytes);
    }

    /// Sends again what has not been acknowledged, and forgets what has ended.
    pub(super) fn handle_handoff_timeout(&mut self, now: Instant) {
        let mut due = Vec::new();
        self.handoffs.expected.retain(|_, expected| expected.expires > now);
        self.handoffs.notifications.retain(|_, notification| {
            let again = notification.attempts < ATTEMPTS;
            if notification.expires > now && again && notification.back_off.allows(now) {
                notification.attempts += 1;
                due.push((notification.agent, notification.bytes.clone()));
            }
            notification.expires > now
        });
        for (agent, bytes) in due {
            self.outbox.message(None, self.config.address, agent, bytes);
        }
        while let Some(departed) = self.handoffs.departed.expire(now) {
            self.outbox.event(Event::Binding(departed.event(Change::Expired)));
        }
        // What has not been said for so long is as if it never was.
        self.handoffs.warned.retain(|_, back_off| back_off.next() + BackOff::LONGEST > now);
    }

    /// A visitor tells, by way of its new foreign agent, where it went.
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        update: &BindingUpdate,
    ) {
        let source = origin.source;
        let home_address = update.home_address;
        if !self.config.smooth_handoff || !self.is_own(origin.destination) || !is_unicast(source) {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let association = self.mobile_nodes.get(&home_address);
        let kind = AuthenticationKind::RouteOptimization;
        if let Err(reason) = authentication::check(bytes, message, kind, association.into_iter()) {
            return self.outbox.drop(reason, source);
        }
        let Some(identification) = update.identification else {
            return self.outbox.drop(DropReason::PoorlyFormed, source);
        };
        let clock = self.config.clock.at(now);
        let care_of = update.care_of_address;
        let guard = guard_of(&mut self.handoffs.guards, home_address);
        let last = *guard;
        if guard.check(identification, clock, &mut self.random).outcome.is_err() {
            // Sent again because our answer was lost.
            let departed = self.handoffs.departed(home_address);
            let stands = departed.is_some_and(|departed| departed.tunnel.exit == care_of);
            if stands && update.acknowledge && last.accepted_last(identification) {
                return self.acknowledge(origin, home_address, identification, false);
            }
            return self.outbox.drop(DropReason::Replayed, source);
        }
        let leads_on = update.forgets() || (is_unicast(care_of) && !self.is_own(care_of));
        if leads_on {
            self.depart(now, update);
        } else {
            self.outbox.drop(DropReason::PoorlyFormed, source);
        }
        if update.acknowledge {
            self.acknowledge(origin, home_address, identification, !leads_on);
        }
    }

    fn depart(&mut self, now: Instant, update: &BindingUpdate) {
        // What it asked for before it left is answered too late.
        self.handoffs.expected.remove(&update.home_address);
        while self.pending.take_one_of(update.home_address).is_some() {}
        let visitor = self.visitors.remove(update.home_address);
        if let Some(visitor) = &visitor {
            self.tell(visitor, Change::Removed);
        }
        let known = self.handoffs.departed(update.home_address).and_then(|departed| departed.home_agent);
        let home_agent = visitor.map(|visitor| visitor.home_agent).or(known);
        if update.forgets() {
            return self.welcome(update.home_address);
        }
        let Some(&entry) = self.config.care_of_addresses.first() else { return };
        let departed = CachedBinding::told(now, update, entry, home_agent, self.config.max_lifetime);
        let (old, evicted) = self.handoffs.departed.insert(departed);
        if let Some(evicted) = evicted {
            self.outbox.event(Event::Binding(evicted.event(Change::Removed)));
        }
        let change = if old.is_some() { Change::Updated } else { Change::Created };
        self.outbox.event(Event::Binding(departed.event(change)));
    }

    /// Somebody is here, or nowhere: what comes is not sent on.
    pub(super) fn welcome(&mut self, home_address: Ipv4Addr) {
        self.handoffs.expected.remove(&home_address);
        if let Some(departed) = self.handoffs.departed.remove(home_address) {
            self.outbox.event(Event::Binding(departed.event(Change::Removed)));
        }
    }

    /// Answers an update, signed for the mobile node, to which the agent that brought it passes it on.
    fn acknowledge(
        &mut self,
        origin: Origin,
        home_address: Ipv4Addr,
        identification: Identification,
        negative: bool,
    ) {
        let answer = BindingAcknowledge { negative, home_address, identification, extensions: Vec::new() };
        let mut bytes = Message::BindingAcknowledge(answer).emit();
        if let Some(association) = self.mobile_nodes.get(&home_address) {
            authentication::append(&mut bytes, AuthenticationKind::RouteOptimization, association);
        }
        self.outbox.message(None, origin.destination, origin.source, bytes);
    }

    /// The previous foreign agent has been told. The mobile node can check that; here it only ends the repetitions, and
    /// whoever names the update may do that.
    pub(super) fn handle_acknowledge(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        acknowledge: &BindingAcknowledge,
    ) {
        let found = self.handoffs.notifications.get_mut(&acknowledge.home_address);
        let Some(notification) = found.filter(|n| n.identification == acknowledge.identification) else {
            return self.outbox.drop(DropReason::UnexpectedReply, origin.source);
        };
        if notification.agent != origin.source {
            return self.outbox.drop(DropReason::UnexpectedSource, origin.source);
        }
        // Refused or not: it is not asked again.
        notification.attempts = ATTEMPTS;
        let way = notification.way;
        self.send_to_mobile_node(way, bytes.to_vec());
    }
}

fn guard_of(guards: &mut BTreeMap<Ipv4Addr, ReplayGuard>, home_address: Ipv4Addr) -> &mut ReplayGuard {
    // As many as there are associations.
    guards.entry(home_address).or_insert_with(|| ReplayGuard::new(ReplayProtection::TIMESTAMPS))
}
