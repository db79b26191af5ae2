//! The addresses of an interface: how they are formed, verified and lost.

use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{
    Icmpv6Message, MulticastListenerReport, NdOption, NeighborSolicitation, Nonce, PrefixInformation,
};
use careof_wire::ipv6::{ALL_MLDV2_ROUTERS, solicited_node};

use super::{AddressLoss, Event, NeighborDiscovery};
use crate::v6::Prefix;
use crate::v6::neighbor_discovery::autoconfiguration::{AddressOrigin, Entry, is_for_autoconfiguration};
use crate::v6::neighbor_discovery::duplicate_address_detection::{Detection, Step};
use crate::v6::neighbor_discovery::optimistic::{AddressState, AddressUse};

/// IDGEN_RETRIES (RFC 7217 section 6): so many other identifiers are tried after a duplicate.
const IDGEN_RETRIES: u8 = 3;
/// IDGEN_DELAY (RFC 7217 section 6).
const IDGEN_DELAY: Duration = Duration::from_secs(1);

impl NeighborDiscovery {
    /// Gives the interface an address, which is verified first. It stays when the link changes, and is verified there again.
    pub fn add_address(&mut self, now: Instant, address: Ipv6Addr, prefix: Prefix) {
        self.outbox.called_at(now);
        if self.addresses.get(address).is_none() {
            let delay = self.config.detection.max_delay;
            self.verify(now, address, prefix, AddressOrigin::Configured, (delay, None));
            self.run(now);
        }
    }

    /// Takes an address away from the interface.
    pub fn remove_address(&mut self, now: Instant, address: Ipv6Addr) {
        self.outbox.called_at(now);
        if self.addresses.remove(address).is_some() {
            self.outbox.event(Event::AddressRemoved { address, loss: AddressLoss::Removed });
        }
    }

    /// Finds out whether another node has `address`, which this one does not use itself: a home agent does so before it stands in for
    /// a mobile node (RFC 6275 section 10.3.1). After the last solicitation it waits for `wait`. [`Event::DetectionDone`] tells the
    /// outcome; at once that it is not unique, where the node has the address itself.
    pub fn detect_duplicate(&mut self, now: Instant, address: Ipv6Addr, wait: Duration) {
        self.outbox.called_at(now);
        match self.addresses.get(address) {
            Some(entry) if entry.origin == AddressOrigin::Probed => {}
            Some(_) => self.outbox.event(Event::DetectionDone { address, unique: false }),
            None => {
                let prefix = Prefix::new(address, 128);
                let timing = (Duration::ZERO, Some(wait));
                self.verify(now, address, prefix, AddressOrigin::Probed, timing);
                self.run(now);
            }
        }
    }

    /// Forms the link-local address (RFC 4862 section 5.3), and has the owner's addresses verified on this link.
    pub(super) fn form_link_local(&mut self, now: Instant) {
        let delay = self.config.detection.max_delay;
        let of = |counter| {
            let hardware = self.config.link_layer_address;
            self.config.interface_identifiers.address(Prefix::LINK_LOCAL, hardware, counter)
        };
        if let Some(address) = of(0) {
            self.verify(now, address, Prefix::LINK_LOCAL, AddressOrigin::LinkLocal, (delay, None));
        }
        let configured: alloc::vec::Vec<_> =
            self.addresses.take(|entry| entry.origin == AddressOrigin::Configured);
        for entry in configured {
            self.verify(now, entry.address, entry.prefix, AddressOrigin::Configured, (delay, None));
        }
    }

    /// Takes a prefix information option (RFC 4862 section 5.5.3). `knows_router`: the router's link-layer address is known;
    /// `to_many`: other nodes have heard the same.
    pub(super) fn autoconfigure(
        &mut self,
        now: Instant,
        option: &PrefixInformation,
        knows_router: bool,
        to_many: bool,
    ) {
        if !self.config.autoconfigure || !is_for_autoconfiguration(option) {
            return;
        }
        let prefix = Prefix::new(option.prefix, option.prefix_length);
        let mut is_known = false;
        for entry in self.addresses.of_prefix(prefix) {
            entry.set_lifetimes(now, option);
            is_known = true;
        }
        if is_known || option.valid_lifetime.as_secs() == 0 || self.failed.contains(&prefix) {
            return;
        }
        let hardware = self.config.link_layer_address;
        let Some(address) = self.config.interface_identifiers.address(prefix, hardware, 0) else { return };
        if self.addresses.get(address).is_some() {
            return;
        }
        if self.addresses.autoconfigured() >= self.config.limits.addresses {
            return self.note_room(false);
        }
        let delay = if to_many { self.config.detection.max_delay } else { Duration::ZERO };
        self.verify(now, address, prefix, AddressOrigin::Autoconfigured, (delay, None));
        let detection = &self.config.detection;
        // RFC 4429 section 3.3: not without the link-layer address of the router, and not on a router.
        let optimistic = detection.optimistic && knows_router && !self.config.is_router;
        if let Some(entry) = self.addresses.get_mut(address) {
            entry.valid_until = option.valid_lifetime.duration().map(|lifetime| now + lifetime);
            entry.preferred_until = option.preferred_lifetime.duration().map(|lifetime| now + lifetime);
            entry.optimistic = optimistic;
        }
    }

    /// Adds an address, tentative. `timing`: how long the first solicitation is delayed at most, and how long after the last one to
    /// wait if not for RetransTimer.
    fn verify(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        prefix: Prefix,
        origin: AddressOrigin,
        (delay, wait): (Duration, Option<Duration>),
    ) {
        let config = &self.config.detection;
        let delay = if config.transmits == 0 { Duration::ZERO } else { delay };
        self.addresses.insert(Entry {
            address,
            prefix,
            origin,
            detection: Some(Detection::new(now, config, delay, wait, &mut self.random)),
            optimistic: false,
            valid_until: None,
            preferred_until: None,
            told_valid_until: None,
            told_deprecated: false,
            dad_counter: 0,
        });
    }

    /// Does what is due of detections and lifetimes, and tells the owner what it should know.
    pub(super) fn run_addresses(&mut self, now: Instant) {
        let expired = self.addresses.take(|entry| entry.valid_until.is_some_and(|until| until <= now));
        for entry in expired {
            let (address, loss) = (entry.address, AddressLoss::Expired);
            self.outbox.event(Event::AddressRemoved { address, loss });
        }
        if !self.up || self.disabled {
            return;
        }
        let addresses: alloc::vec::Vec<_> = self.addresses.iter().map(|entry| entry.address).collect();
        for address in addresses {
            while let Some(step) = self.poll_detection(now, address) {
                match step {
                    Step::Solicit { first, nonce } => self.send_detection(now, address, first, nonce),
                    Step::Unique => self.unique(address),
                }
            }
            self.tell(now, address);
        }
    }

    fn poll_detection(&mut self, now: Instant, address: Ipv6Addr) -> Option<Step> {
        let retrans = self.retrans_timer();
        let entry = self.addresses.get_mut(address)?;
        entry.detection.as_mut()?.poll(now, retrans, &mut self.random)
    }

    /// Nobody else has the address.
    fn unique(&mut self, address: Ipv6Addr) {
        let Some(entry) = self.addresses.get_mut(address) else { return };
        if entry.origin == AddressOrigin::Probed {
            self.addresses.remove(address);
            self.outbox.event(Event::DetectionDone { address, unique: true });
            return;
        }
        entry.detection = None;
        // The owner hears of an address that was optimistic once more, as one that is not.
        entry.told_valid_until = None;
    }

    /// Tells the owner of an address that it can use, and of one that is deprecated.
    fn tell(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(entry) = self.addresses.get_mut(address) else { return };
        let state = entry.state(now);
        if entry.origin == AddressOrigin::Probed || state == AddressState::Tentative {
            return;
        }
        if entry.lifetime_is_news(now) {
            entry.told_valid_until = Some(entry.valid_until);
            self.outbox.event(Event::AddressAssigned {
                address,
                prefix: entry.prefix,
                valid_for: entry.valid_until.map(|until| until - now),
                optimistic: state == AddressState::Optimistic,
            });
        }
        let Some(entry) = self.addresses.get_mut(address) else { return };
        let is_deprecated = entry.preferred_until.is_some_and(|until| until <= now);
        if is_deprecated && !core::mem::replace(&mut entry.told_deprecated, true) {
            self.outbox.event(Event::AddressDeprecated { address });
        }
    }

    /// Another node has the address (RFC 4862 section 5.4.5).
    pub(super) fn duplicate(&mut self, now: Instant, address: Ipv6Addr) {
        let Some(entry) = self.addresses.remove(address) else { return };
        self.outbox.counters.duplicates = self.outbox.counters.duplicates.saturating_add(1);
        if entry.origin == AddressOrigin::Probed {
            self.outbox.event(Event::DetectionDone { address, unique: false });
            return;
        }
        self.outbox.event(Event::AddressRemoved { address, loss: AddressLoss::Duplicate });
        let identifiers = &self.config.interface_identifiers;
        if entry.origin == AddressOrigin::LinkLocal && identifiers.is_of_hardware() {
            self.leave_link();
            self.disabled = true;
            self.outbox.event(Event::InterfaceDisabled);
            return;
        }
        if entry.origin == AddressOrigin::Configured {
            return;
        }
        // RFC 7217 section 6: another identifier, a few times.
        let dad_counter = entry.dad_counter.saturating_add(1);
        let hardware = self.config.link_layer_address;
        let next = (dad_counter <= IDGEN_RETRIES)
            .then(|| identifiers.address(entry.prefix, hardware, dad_counter))
            .flatten();
        let Some(next) = next.filter(|next| self.addresses.get(*next).is_none()) else {
            if self.failed.len() < self.config.limits.addresses {
                self.failed.push(entry.prefix);
            }
            return;
        };
        self.verify(now, next, entry.prefix, entry.origin, (IDGEN_DELAY, None));
        if let Some(new) = self.addresses.get_mut(next) {
            (new.valid_until, new.preferred_until) = (entry.valid_until, entry.preferred_until);
            new.dad_counter = dad_counter;
        }
    }

    /// Asks who has the address. Before the first time the node joins its solicited-node group (RFC 4862 section 5.4.2), from a
    /// link-local address if it has one, else from the unspecified one (RFC 3590 section 4).
    fn send_detection(&mut self, now: Instant, target: Ipv6Addr, first: bool, nonce: Option<Nonce>) {
        let group = solicited_node(target);
        if first {
            let source = self.addresses.link_local(now, AddressUse::NeighborSolicitation);
            let report = MulticastListenerReport::join([group]);
            let source = source.unwrap_or(Ipv6Addr::UNSPECIFIED);
            self.send(source, ALL_MLDV2_ROUTERS, None, &Icmpv6Message::MulticastListenerReport(report));
        }
        let options = nonce.map(NdOption::Nonce).into_iter().collect();
        let message = Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target, options });
        self.send(Ipv6Addr::UNSPECIFIED, group, None, &message);
    }
}
