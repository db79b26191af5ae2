//! The routers that a mobile node hears on its links, by their advertisements (RFC 4861 section 6.3.4).
//!
//! The kernel hears them, too, and forms addresses and routes; but it does not tell which router advertises which prefix, nor that it has
//! heard one again since a link came up.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::Prefix;
use careof_wire::icmpv6::{MapOption, PrefixLifetime, RouterAdvertisement};

/// Routers remembered on one link, and prefixes of each; the bounds are for liars.
const MOST_ROUTERS: usize = 8;
const MOST_PREFIXES: usize = 8;
/// Mobility anchor points remembered of each.
const MOST_MAPS: usize = 8;

/// What an advertisement changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouterChange {
    /// The router is new, or advertises other prefixes than before.
    Found { interface: InterfaceId, router: Ipv6Addr, prefixes: Vec<Prefix> },
    /// It is none any more.
    Lost { interface: InterfaceId, router: Ipv6Addr },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    /// Those that are on the link.
    prefixes: Vec<Prefix>,
    /// The mobility anchor points of its last advertisement, which came then.
    maps: Vec<MapOption>,
    heard: Instant,
    expires: Instant,
}

/// The routers of all links.
#[derive(Debug, Default)]
pub(super) struct Routers {
    known: BTreeMap<(InterfaceId, Ipv6Addr), Known>,
    /// Advertisements for which there was no room.
    pub(super) not_kept: u64,
}

impl Routers {
    /// A valid advertisement of `router`, which is its link-local address.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        router: Ipv6Addr,
        advertisement: &RouterAdvertisement,
    ) -> Option<RouterChange> {
        let key = (interface, router);
        if advertisement.router_lifetime_secs == 0 {
            return self.known.remove(&key).map(|_| RouterChange::Lost { interface, router });
        }
        let expires = now + Duration::from_secs(advertisement.router_lifetime_secs.into());
        let on_link = advertisement.prefixes().filter(|prefix| prefix.on_link);
        let mut told: Vec<(Prefix, bool)> = Vec::new();
        for information in on_link {
            let prefix = Prefix::new(information.prefix, information.prefix_length);
            told.push((prefix, information.valid_lifetime != PrefixLifetime::ZERO));
        }
        let is_new = !self.known.contains_key(&key);
        let on_this_link = self.known.keys().filter(|(of, _)| *of == interface).count();
        if is_new && on_this_link >= MOST_ROUTERS {
            self.not_kept += 1;
            return None;
        }
        let known = self.known.entry(key).or_insert(Known {
            prefixes: Vec::new(),
            maps: Vec::new(),
            heard: now,
            expires,
        });
        (known.maps, known.heard) = (advertisement.maps().take(MOST_MAPS).copied().collect(), now);
        known.expires = expires;
        let before = known.prefixes.clone();
        // An advertisement need not tell all of them (RFC 4861 section 6.2.3).
        for (prefix, is_valid) in told {
            if !is_valid {
                known.prefixes.retain(|other| *other != prefix);
            } else if !known.prefixes.contains(&prefix) && known.prefixes.len() < MOST_PREFIXES {
                known.prefixes.push(prefix);
            }
        }
        let has_changed = is_new || known.prefixes != before;
        has_changed.then(|| RouterChange::Found { interface, router, prefixes: known.prefixes.clone() })
    }

    /// A router does not answer. Once it is heard again it is new (RFC 4861 section 7.3.3).
    pub(super) fn unreachable(&mut self, interface: InterfaceId, router: Ipv6Addr) -> Option<RouterChange> {
        self.known.remove(&(interface, router)).map(|_| RouterChange::Lost { interface, router })
    }

    /// All of them, as if they were new.
    pub(super) fn known(&self) -> Vec<RouterChange> {
        let found = self.known.iter().map(|(&(interface, router), known)| RouterChange::Found {
            interface,
            router,
            prefixes: known.prefixes.clone(),
        });
        found.collect()
    }

    /// The mobility anchor points of which the routers of a link tell, with what is left of their lifetimes.
    pub(super) fn maps(
        &self,
        now: Instant,
        interface: InterfaceId,
    ) -> impl Iterator<Item = (Ipv6Addr, Vec<MapOption>)> + '_ {
        let left = move |known: &Known, option: &MapOption| {
            let (age, valid_lifetime) = (now.saturating_duration_since(known.heard), option.valid_lifetime);
            let left = valid_lifetime.duration().map_or(valid_lifetime, |valid| {
                let left = valid.saturating_sub(age).as_secs();
                PrefixLifetime::from_secs(u32::try_from(left).unwrap_or(valid_lifetime.as_secs()))
            });
            // One that has just ended is no failure.
            let is_over = left == PrefixLifetime::ZERO && valid_lifetime != PrefixLifetime::ZERO;
            (!is_over).then_some(MapOption { valid_lifetime: left, ..*option })
        };
        let of_it = self.on(interface).filter(|(_, known)| !known.maps.is_empty());
        of_it.map(move |(router, known)| {
            (router, known.maps.iter().filter_map(|option| left(known, option)).collect())
        })
    }

    /// The routers whose lifetime has ended.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<RouterChange> {
        let over = self.known.iter().filter(|(_, known)| known.expires <= now);
        let over: Vec<_> = over.map(|(key, _)| *key).collect();
        over.iter().for_each(|key| drop(self.known.remove(key)));
        over.into_iter().map(|(interface, router)| RouterChange::Lost { interface, router }).collect()
    }

    /// When the next lifetime ends.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.known.values().map(|known| known.expires).min()
    }

    /// Where a link comes up again need not be where it was.
    pub(super) fn forget(&mut self, interface: InterfaceId) {
        self.known.retain(|(of, _), _| *of != interface);
    }

    /// Whether a router of the link advertises the prefix of an address.
    pub(super) fn advertise(&self, interface: InterfaceId, address: Ipv6Addr) -> bool {
        self.prefixes(interface).any(|prefix| prefix.contains(address))
    }

    /// What is on the link.
    pub(super) fn prefixes(&self, interface: InterfaceId) -> impl Iterator<Item = Prefix> + '_ {
        self.on(interface).flat_map(|(_, known)| known.prefixes.iter().copied())
    }

    /// The first hop for packets from `address`: a router that advertises its prefix, or any.
    pub(super) fn first_hop(&self, interface: InterfaceId, address: Ipv6Addr) -> Option<Ipv6Addr> {
        let mut advertising = self
            .on(interface)
            .filter(|(_, known)| known.prefixes.iter().any(|prefix| prefix.contains(address)));
        advertising.next().or_else(|| self.on(interface).next()).map(|(router, _)| router)
    }

    /// The routers of a link.
    pub(super) fn of(&self, interface: InterfaceId) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.on(interface).map(|(router, _)| router)
    }

    fn on(&self, interface: InterfaceId) -> impl Iterator<Item = (Ipv6Addr, &Known)> {
        let of_it = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from_bits(u128::MAX));
        self.known.range(of_it).map(|((_, router), known)| (*router, known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::icmpv6::{Milliseconds, NdOption, PrefixInformation, RouterPreference};

    const WLAN: InterfaceId = InterfaceId(1);

    fn router(host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host)
    }

    fn network(number: u16) -> Prefix {
        Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 0), 64)
    }

    fn advertisement(lifetime: u16, prefixes: &[(Prefix, u32)]) -> RouterAdvertisement {
        let option = |&(prefix, valid): &(Prefix, u32)| {
            NdOption::PrefixInformation(PrefixInformation {
                prefix_length: prefix.length(),
                on_link: true,
                autonomous: true,
                router_address: false,
                valid_lifetime: PrefixLifetime::from_secs(valid),
                preferred_lifetime: PrefixLifetime::from_secs(valid),
                prefix: prefix.address(),
            })
        };
        RouterAdvertisement {
            cur_hop_limit: 64,
            managed: false,
            other_configuration: false,
            home_agent: false,
            preference: RouterPreference::Medium,
            router_lifetime_secs: lifetime,
            reachable_time: Milliseconds(0),
            retrans_timer: Milliseconds(0),
            options: prefixes.iter().map(option).collect(),
        }
    }

    #[test]
    fn a_router_is_told_once_and_again_when_its_prefixes_change() {
        let mut routers = Routers::default();
        let now = Instant::from_secs(1);
        let first = advertisement(30, &[(network(2), 60)]);
        let found = |prefixes: Vec<Prefix>| {
            Some(RouterChange::Found { interface: WLAN, router: router(1), prefixes })
        };
        assert_eq!(routers.heard(now, WLAN, router(1), &first), found(vec![network(2)]));
        assert_eq!(routers.heard(now, WLAN, router(1), &first), None);
        let more = advertisement(30, &[(network(3), 60)]);
        assert_eq!(routers.heard(now, WLAN, router(1), &more), found(vec![network(2), network(3)]));
        let less = advertisement(30, &[(network(2), 0)]);
        assert_eq!(routers.heard(now, WLAN, router(1), &less), found(vec![network(3)]));
        assert_eq!(Some(routers.known()), found(vec![network(3)]).map(|change| vec![change]));
        assert!(
            routers.advertise(WLAN, network(3).address()) && !routers.advertise(WLAN, network(2).address())
        );
        assert!(!routers.advertise(InterfaceId(2), network(3).address()));
        let end = routers.next_timeout().unwrap();
        assert_eq!(end, now + Duration::from_secs(30));
        let lost = RouterChange::Lost { interface: WLAN, router: router(1) };
        assert_eq!(routers.expire(end), std::slice::from_ref(&lost));
        assert_eq!(routers.expire(end), []);
        routers.heard(now, WLAN, router(1), &first);
        assert_eq!(routers.heard(now, WLAN, router(1), &advertisement(0, &[])), Some(lost));
    }

    #[test]
    fn a_router_that_does_not_answer_is_lost_once_and_new_when_it_is_heard_again() {
        let mut routers = Routers::default();
        let now = Instant::from_secs(1);
        let told = advertisement(1800, &[(network(2), 3600)]);
        routers.heard(now, WLAN, router(1), &told);
        assert_eq!(routers.unreachable(WLAN, router(2)), None, "it is no router");
        assert_eq!(routers.unreachable(InterfaceId(2), router(1)), None, "it is one of another link");
        let lost = RouterChange::Lost { interface: WLAN, router: router(1) };
        assert_eq!(routers.unreachable(WLAN, router(1)), Some(lost));
        assert_eq!(routers.unreachable(WLAN, router(1)), None);
        let found = RouterChange::Found { interface: WLAN, router: router(1), prefixes: vec![network(2)] };
        assert_eq!(routers.heard(now, WLAN, router(1), &told), Some(found));
    }

    #[test]
    fn mobility_anchor_points_are_those_of_the_last_advertisement_for_as_long_as_they_last() {
        let mut routers = Routers::default();
        let option = |host, seconds| MapOption {
            distance: 1,
            preference: 10,
            allocates_address: false,
            valid_lifetime: PrefixLifetime::from_secs(seconds),
            address: Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, host),
        };
        let mut told = advertisement(1800, &[(network(2), 3600)]);
        told.options.extend([option(1, 100), option(2, 10)].map(NdOption::Map));
        routers.heard(Instant::from_secs(1), WLAN, router(1), &told);
        let known = |routers: &Routers, second| -> Vec<_> {
            routers.maps(Instant::from_secs(second), WLAN).flat_map(|(_, maps)| maps).collect()
        };
        assert_eq!(known(&routers, 1), [option(1, 100), option(2, 10)]);
        assert_eq!(known(&routers, 41), [option(1, 60)]);
        routers.heard(Instant::from_secs(50), WLAN, router(1), &advertisement(1800, &[]));
        assert_eq!(known(&routers, 50), []);
    }

    #[test]
    fn a_thousand_invented_routers_take_the_room_of_a_few() {
        let mut routers = Routers::default();
        for host in 0..1000 {
            let prefixes: Vec<_> = (0..100).map(|number| (network(number), 60)).collect();
            routers.heard(Instant::ZERO, WLAN, router(host), &advertisement(30, &prefixes));
        }
        assert_eq!(routers.of(WLAN).count(), MOST_ROUTERS);
        assert_eq!(routers.prefixes(WLAN).count(), MOST_ROUTERS * MOST_PREFIXES);
        assert_eq!(routers.not_kept, 1000 - MOST_ROUTERS as u64);
        routers.forget(WLAN);
        assert_eq!(routers.of(WLAN).count(), 0);
    }

    #[test]
    fn the_first_hop_is_a_router_that_advertises_the_prefix() {
        let mut routers = Routers::default();
        for host in [1, 2] {
            routers.heard(Instant::ZERO, WLAN, router(host), &advertisement(30, &[(network(host), 60)]));
        }
        let by = |number| routers.first_hop(WLAN, network(number).address());
        assert_eq!((by(1), by(2), by(9)), (Some(router(1)), Some(router(2)), Some(router(1))));
    }
}
