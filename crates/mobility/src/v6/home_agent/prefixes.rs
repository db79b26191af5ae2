//! The prefixes of the home network, and how mobile nodes learn of them (RFC 6275 section 10.6).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::{
    Icmpv6Message, MobilePrefixAdvertisement, NdOption, PrefixInformation, PrefixLifetime,
};

use super::{HomeAgent, HomePrefix};
use crate::v6::{Addresses, DropReason, Prefix};

#[derive(Clone, Copy, Debug)]
struct Entry {
    prefix: Prefix,
    autonomous: bool,
    valid_until: Instant,
    preferred_until: Instant,
}

fn end(now: Instant, lifetime: PrefixLifetime) -> Instant {
    lifetime.duration().map_or(Instant::MAX, |span| now + span)
}

/// What is left until `end`; [`Duration::MAX`] when it never comes.
fn left(now: Instant, end: Instant) -> Duration {
    if end == Instant::MAX { Duration::MAX } else { end.saturating_duration_since(now) }
}

/// The current prefixes with the ends of their lifetimes.
#[derive(Debug)]
pub(super) struct HomePrefixes(Vec<Entry>);

impl HomePrefixes {
    pub(super) fn new(now: Instant, prefixes: impl Iterator<Item = HomePrefix>) -> Self {
        let entry = |told: HomePrefix| Entry {
            prefix: told.prefix,
            autonomous: told.autonomous,
            valid_until: end(now, told.valid),
            preferred_until: end(now, told.preferred).min(end(now, told.valid)),
        };
        Self(prefixes.map(entry).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Prefix> {
        self.0.iter().map(|entry| entry.prefix)
    }

    pub(super) fn contains(&self, address: Ipv6Addr) -> bool {
        self.0.iter().any(|entry| entry.prefix.contains(address))
    }

    /// For how long the prefix of `address` is still valid, and preferred; `None` when it is none of the home network.
    pub(super) fn left_of(&self, now: Instant, address: Ipv6Addr) -> Option<(Duration, Duration)> {
        let of_prefix = self.0.iter().filter(|entry| entry.prefix.contains(address));
        let longest = of_prefix.max_by_key(|entry| entry.valid_until)?;
        Some((left(now, longest.valid_until), left(now, longest.preferred_until)))
    }

    /// When the prefix of `address` is no longer valid.
    fn end_of(&self, address: Ipv6Addr) -> Instant {
        let of_prefix = self.0.iter().filter(|entry| entry.prefix.contains(address));
        of_prefix.map(|entry| entry.valid_until).max().unwrap_or(Instant::ZERO)
    }

    fn options(&self, now: Instant, router: Ipv6Addr) -> Vec<NdOption> {
        let lifetime = |span| match span {
            Duration::MAX => PrefixLifetime::INFINITE,
            span => PrefixLifetime::from_duration(span),
        };
        let told = self.0.iter().filter(|entry| entry.valid_until > now).map(|entry| {
            let is_ours = entry.prefix.contains(router);
            NdOption::PrefixInformation(PrefixInformation {
                prefix_length: entry.prefix.length(),
                on_link: true,
                autonomous: entry.autonomous,
                router_address: is_ours,
                valid_lifetime: lifetime(left(now, entry.valid_until)),
                preferred_lifetime: lifetime(left(now, entry.preferred_until)),
                prefix: if is_ours { router } else { entry.prefix.address() },
            })
        });
        told.collect()
    }
}

impl HomeAgent {
    /// The prefixes of the home network are these from now on. Bindings of addresses in none of them end, no binding outlives
    /// its prefix, and mobile nodes are told (sections 10.3.1 and 10.6.2).
    pub fn set_prefixes(&mut self, now: Instant, prefixes: &[HomePrefix]) {
        self.outbox.called_at(now);
        self.prefixes = HomePrefixes::new(now, prefixes.iter().copied());
        let mut homes: Vec<Ipv6Addr> = self.bindings.iter().map(|binding| binding.home_address).collect();
        homes.dedup();
        for home_address in homes {
            let end = self.prefixes.end_of(home_address);
            self.bindings.shorten(home_address, end.max(now));
            if let Some(config) = self.config.prefix_advertisements {
                let preferred = self
                    .prefixes
                    .left_of(now, home_address)
                    .map_or(Duration::ZERO, |(_, preferred)| preferred);
                self.deliveries.changed(now, home_address, (config, preferred), &mut self.random);
            }
        }
        self.handle_timeout(now);
    }

    /// Answers a mobile node that asks for the prefixes (section 10.6.2). It has a binding, and asks from one of its care-of
    /// addresses; nothing else tells who it is.
    pub(super) fn answer_prefix_solicitation(&mut self, now: Instant, addresses: Addresses, identifier: u16) {
        let source = addresses.source;
        if addresses.destination != self.config.address {
            return self.outbox.drop(DropReason::NotForUs, source);
        }
        let Some(home_address) = addresses.home_address else {
            return self.outbox.drop(DropReason::PoorlyFormed, source);
        };
        if !self.accepts_home_address_option(home_address, source) {
            return self.outbox.drop(DropReason::NoBinding, source);
        }
        let Some(config) = self.config.prefix_advertisements else {
            return self.outbox.drop(DropReason::NotOffered, source);
        };
        let allowed = self.nodes.get_mut(&home_address).is_some_and(|node| node.solicitations.allows(now));
        if !allowed {
            return self.outbox.drop(DropReason::OverRation, source);
        }
        self.deliveries.answered(now, home_address, config);
        self.advertise_prefixes_to(now, home_address, source, identifier);
    }

    /// Sends the advertisements that are due.
    pub(super) fn advertise_prefixes(&mut self, now: Instant) {
        let Some(config) = self.config.prefix_advertisements else { return };
        while let Some(home_address) = self.deliveries.due(now, config) {
            if let Some(care_of) = self.bindings.of(home_address).last().map(|binding| binding.care_of) {
                self.advertise_prefixes_to(now, home_address, care_of, 0);
            }
        }
    }

    fn advertise_prefixes_to(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        care_of: Ipv6Addr,
        identifier: u16,
    ) {
        // Through IPv4 they are not told, nor asked for (RFC 5555 section 2.2): the mobile node asks when it has IPv6 again.
        if care_of.to_ipv4_mapped().is_some() {
            return;
        }
        let advertisement = MobilePrefixAdvertisement {
            identifier,
            managed: false,
            other_configuration: false,
            options: self.prefixes.options(now, self.config.address),
        };
        let way = Addresses::new(self.config.address, care_of).with_type_2_routing(home_address);
        let mut bytes = Vec::new();
        let message = Icmpv6Message::MobilePrefixAdvertisement(advertisement);
        message.emit(way.real_source(), way.real_destination(), &mut bytes);
        self.outbox.icmp(None, way, bytes);
    }
}
