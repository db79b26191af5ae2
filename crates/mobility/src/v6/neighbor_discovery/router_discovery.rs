//! Router and prefix discovery, the host's part (RFC 4861 section 6.3, RFC 7559, RFC 4191).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{PrefixInformation, RouterAdvertisement, RouterPreference};

use crate::v6::Prefix;

/// IRT of RFC 7559 section 2, which is RTR_SOLICITATION_INTERVAL of RFC 4861.
const INITIAL_INTERVAL: Duration = Duration::from_secs(4);
/// MRT of RFC 7559 section 2.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);
/// Prefixes that are remembered of one router.
const PREFIXES_OF_A_ROUTER: usize = 16;

/// The sending of router solicitations on one interface.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RouterSolicitor {
    /// Due time of the next one; `None` while a router is known.
    next: Option<Instant>,
    /// The last interval.
    interval: Option<Duration>,
    sent: bool,
    found: bool,
}

impl RouterSolicitor {
    /// The interface has come to a link: the first solicitation goes out after a random time up to `max_delay`.
    pub(super) fn start(&mut self, now: Instant, max_delay: Duration, random: &mut Randomness) {
        *self = Self { next: Some(now + random.duration_up_to(max_delay)), ..Self::default() };
    }

    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }

    /// A default router is known. A first solicitation still goes out, for an answer can tell more than what was multicast (RFC
    /// 4861 section 6.3.7).
    pub(super) fn found(&mut self) {
        self.found = true;
        if self.sent {
            self.next = None;
        }
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a solicitation is to be sent now; counts it as sent.
    pub(super) fn poll(&mut self, now: Instant, random: &mut Randomness) -> bool {
        if self.next.is_none_or(|due| due > now) {
            return false;
        }
        self.sent = true;
        if self.found {
            self.next = None;
            return true;
        }
        // RFC 3315 section 14, without MRC and MRD: RT is IRT at first and then twice what it was, a tenth more or less.
        let nominal = self.interval.map_or(INITIAL_INTERVAL, |last| last * 2);
        let nominal = nominal.min(MAX_INTERVAL);
        let interval = nominal * 9 / 10 + random.duration_up_to(nominal / 5);
        self.interval = Some(interval);
        self.next = Some(now + interval);
        true
    }
}

/// A router on the link.
#[derive(Clone, Debug)]
pub(super) struct Router {
    pub(super) address: Ipv6Addr,
    /// When it stops being a default router; `None` for one that is none.
    default_until: Option<Instant>,
    preference: RouterPreference,
    /// Its on-link prefixes, in the order in which it told them.
    pub(super) prefixes: Vec<Prefix>,
    /// The longest time between two of its advertisements, where it tells that (RFC 6275 section 7.3).
    interval: Option<Duration>,
    heard: Instant,
}

/// What an advertisement did to the list of routers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RouterNews {
    /// Nothing that the owner need know.
    None,
    /// The router is new, or its prefixes are.
    Found {
        prefixes: Vec<Prefix>,
        /// The router that had to give way.
        instead_of: Option<Ipv6Addr>,
    },
    /// It is no default router any more.
    Lost,
    /// There is no room for it.
    NoRoom,
}

/// The default routers of a link (RFC 4861 section 5.1), bounded.
#[derive(Debug)]
pub(super) struct RouterList {
    limit: usize,
    routers: Vec<Router>,
    /// After so many missing advertisements a router is lost.
    missing: Option<u32>,
    /// Which router is asked for next while none is known to be reachable.
    turn: usize,
}

impl RouterList {
    pub(super) const fn new(limit: usize, missing: Option<u32>) -> Self {
        Self { limit, routers: Vec::new(), missing, turn: 0 }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Router> {
        self.routers.iter()
    }

    #[cfg(test)]
    fn contains(&self, address: Ipv6Addr) -> bool {
        self.routers.iter().any(|router| router.address == address)
    }

    pub(super) fn remove(&mut self, address: Ipv6Addr) -> bool {
        let len = self.routers.len();
        self.routers.retain(|router| router.address != address);
        self.routers.len() != len
    }

    /// All routers, which are no more.
    pub(super) fn take(&mut self) -> Vec<Ipv6Addr> {
        self.turn = 0;
        self.routers.drain(..).map(|router| router.address).collect()
    }

    /// Takes the router lifetime, the preference, the prefixes and the interval of a valid advertisement (RFC 4861 section 6.3.4).
    ///
    /// Where there is no room, a router that `is_in_use` says was reached stays, and the one that was heard longest ago gives way:
    /// whoever invents routers displaces other inventions.
    pub(super) fn heard(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        message: &RouterAdvertisement,
        is_in_use: impl Fn(Ipv6Addr) -> bool,
    ) -> RouterNews {
        let lifetime = Duration::from_secs(u64::from(message.router_lifetime_secs));
        if lifetime.is_zero() {
            return if self.remove(address) { RouterNews::Lost } else { RouterNews::None };
        }
        let told: Vec<_> = message
            .prefixes()
            .filter(|prefix| prefix.on_link && !prefix.prefix.is_unicast_link_local())
            .filter(|prefix| prefix.valid_lifetime.as_secs() != 0)
            .map(|prefix| Prefix::new(prefix.prefix, prefix.prefix_length))
            .collect();
        let mut instead_of = None;
        let at = match self.routers.iter().position(|router| router.address == address) {
            Some(at) => at,
            None => {
                if self.routers.len() >= self.limit {
                    let Some(victim) = self
                        .routers
                        .iter()
                        .filter(|router| !is_in_use(router.address))
                        .min_by_key(|router| router.heard)
                        .map(|router| router.address)
                    else {
                        return RouterNews::NoRoom;
                    };
                    self.remove(victim);
                    instead_of = Some(victim);
                }
                self.routers.push(Router {
                    address,
                    default_until: None,
                    preference: RouterPreference::Medium,
                    prefixes: Vec::new(),
                    interval: None,
                    heard: now,
                });
                self.routers.len() - 1
            }
        };
        let Some(router) = self.routers.get_mut(at) else { return RouterNews::NoRoom };
        let is_new = router.default_until.is_none();
        router.default_until = Some(now + lifetime);
        router.preference = message.preference;
        router.interval = message.advertisement_interval().map(|interval| interval.duration());
        router.heard = now;
        let before = router.prefixes.len();
        for prefix in told {
            if router.prefixes.len() < PREFIXES_OF_A_ROUTER && !router.prefixes.contains(&prefix) {
                router.prefixes.push(prefix);
            }
        }
        if is_new || router.prefixes.len() != before {
            return RouterNews::Found { prefixes: router.prefixes.clone(), instead_of };
        }
        RouterNews::None
    }

    /// The router that packets for other links go to (RFC 4861 section 6.3.6): of those that are reachable or probably are, which
    /// `is_reachable` says, the most preferred one that was found first; if there is none, each in turn.
    pub(super) fn select(&mut self, is_reachable: impl Fn(Ipv6Addr) -> bool) -> Option<Ipv6Addr> {
        let reachable = self.routers.iter().rev().filter(|router| is_reachable(router.address));
        if let Some(router) = reachable.max_by_key(|router| router.preference) {
            return Some(router.address);
        }
        let at = self.turn.checked_rem(self.routers.len())?;
        self.turn = at + 1;
        self.routers.get(at).map(|router| router.address)
    }

    /// When a router is given up, unless it is heard before.
    fn ends(&self, router: &Router) -> Option<Instant> {
        let silent = match (self.missing, router.interval) {
            (Some(missing), Some(interval)) if !interval.is_zero() => {
                Some(router.heard + interval.saturating_mul(missing))
            }
            _ => None,
        };
        router.default_until.into_iter().chain(silent).min()
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.routers.iter().filter_map(|router| self.ends(router)).min()
    }

    /// The routers that are given up at `now`: their lifetime has ended (RFC 4861 section 6.3.5), or too many of their advertisements
    /// are missing (RFC 6275 section 11.5.1).
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Vec<Ipv6Addr> {
        let gone: Vec<_> = self
            .routers
            .iter()
            .filter(|router| self.ends(router).is_some_and(|end| end <= now))
            .map(|router| router.address)
            .collect();
        self.routers.retain(|router| !gone.contains(&router.address));
        gone
    }
}

/// The on-link prefixes of a link (RFC 4861 section 5.1), bounded: when there is no room, further ones are ignored.
#[derive(Debug)]
pub(super) struct PrefixList {
    limit: usize,
    /// With the end of their validity; `None`: never.
    prefixes: Vec<(Prefix, Option<Instant>)>,
}

impl PrefixList {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, prefixes: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.prefixes.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether `address` is on the link: by its prefix, or because it is link-local (RFC 4861 section 5.2).
    pub(super) fn contains(&self, address: Ipv6Addr) -> bool {
        address.is_unicast_link_local() || self.prefixes.iter().any(|(prefix, _)| prefix.contains(address))
    }

    /// Takes a prefix information option (RFC 4861 section 6.3.4); whether there was room for it.
    pub(super) fn heard(&mut self, now: Instant, option: &PrefixInformation) -> bool {
        if !option.on_link || option.prefix.is_unicast_link_local() {
            return true;
        }
        let prefix = Prefix::new(option.prefix, option.prefix_length);
        let until = option.valid_lifetime.duration().map(|lifetime| now + lifetime);
        let is_over = option.valid_lifetime.as_secs() == 0;
        match self.prefixes.iter().position(|(known, _)| *known == prefix) {
            Some(at) if is_over => drop(self.prefixes.remove(at)),
            Some(at) => {
                if let Some(entry) = self.prefixes.get_mut(at) {
                    entry.1 = until;
                }
            }
            None if is_over => {}
            None if self.prefixes.len() >= self.limit => return false,
            None => self.prefixes.push((prefix, until)),
        }
        true
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.prefixes.iter().filter_map(|(_, until)| *until).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.prefixes.retain(|(_, until)| until.is_none_or(|until| until > now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;
    use careof_wire::icmpv6::{Milliseconds, NdOption, PrefixLifetime};

    fn random() -> Randomness {
        RandomStream::new(1, 0, "routers").into()
    }

    fn router(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
    }

    fn option(number: u16, seconds: u32) -> PrefixInformation {
        PrefixInformation {
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            router_address: false,
            valid_lifetime: PrefixLifetime::from_secs(seconds),
            preferred_lifetime: PrefixLifetime::from_secs(seconds),
            prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, number, 0, 0, 0, 0),
        }
    }

    fn advertisement(lifetime: u16, prefixes: &[u16]) -> RouterAdvertisement {
        RouterAdvertisement {
            router_lifetime_secs: lifetime,
            options: prefixes
                .iter()
                .map(|&number| NdOption::PrefixInformation(option(number, 600)))
                .collect(),
            ..RouterAdvertisement::default()
        }
    }

    #[test]
    fn solicitations_back_off_from_four_seconds_to_an_hour() {
        let mut random = random();
        let mut solicitor = RouterSolicitor::default();
        solicitor.start(Instant::ZERO, Duration::from_secs(1), &mut random);
        let mut sent = Vec::new();
        while sent.len() < 20 {
            let due = solicitor.deadline().unwrap();
            assert!(solicitor.poll(due, &mut random));
            sent.push(due);
        }
        assert!(sent[0] <= Instant::from_secs(1));
        let mut last = Duration::from_secs(2);
        for pair in sent.windows(2) {
            let (gap, nominal) = (pair[1] - pair[0], (last * 2).min(MAX_INTERVAL));
            assert!(gap >= nominal * 9 / 10 && gap <= nominal * 11 / 10 + Duration::from_nanos(1), "{gap:?}");
            last = gap;
        }
        assert!(last >= MAX_INTERVAL * 9 / 10);
    }

    #[test]
    fn a_router_that_is_found_ends_the_solicitations_but_for_the_first() {
        let mut random = random();
        let mut solicitor = RouterSolicitor::default();
        solicitor.start(Instant::ZERO, Duration::ZERO, &mut random);
        solicitor.found();
        assert!(solicitor.poll(Instant::ZERO, &mut random));
        assert_eq!(solicitor.deadline(), None);
        solicitor.start(Instant::ZERO, Duration::ZERO, &mut random);
        assert!(solicitor.poll(Instant::ZERO, &mut random));
        assert!(solicitor.deadline().is_some());
        solicitor.found();
        assert_eq!(solicitor.deadline(), None);
    }

    #[test]
    fn a_router_lives_for_its_lifetime_and_goes_with_lifetime_zero() {
        let mut list = RouterList::new(4, None);
        let never = |_| false;
        let found = list.heard(Instant::ZERO, router(1), &advertisement(30, &[1]), never);
        let prefixes = alloc::vec![Prefix::new(option(1, 0).prefix, 64)];
        assert_eq!(found, RouterNews::Found { prefixes, instead_of: None });
        let again = list.heard(Instant::from_secs(10), router(1), &advertisement(30, &[1]), never);
        assert_eq!(again, RouterNews::None);
        assert_eq!(list.next_timeout(), Some(Instant::from_secs(40)));
        assert!(list.handle_timeout(Instant::from_secs(39)).is_empty());
        assert_eq!(list.handle_timeout(Instant::from_secs(40)), [router(1)]);
        assert_eq!(list.next_timeout(), None);
        list.heard(Instant::from_secs(41), router(1), &advertisement(30, &[1]), never);
        let over = list.heard(Instant::from_secs(42), router(1), &advertisement(0, &[1]), never);
        assert_eq!((over, list.contains(router(1))), (RouterNews::Lost, false));
        let over = list.heard(Instant::from_secs(42), router(1), &advertisement(0, &[1]), never);
        assert_eq!(over, RouterNews::None);
    }

    #[test]
    fn a_router_whose_advertisements_are_missing_is_given_up() {
        let mut list = RouterList::new(4, Some(3));
        let mut message = advertisement(1800, &[1]);
        message.options.push(NdOption::AdvertisementInterval(Milliseconds(100)));
        list.heard(Instant::from_secs(1), router(1), &message, |_| false);
        assert_eq!(list.next_timeout(), Some(Instant::from_millis(1_300)));
        assert_eq!(list.handle_timeout(Instant::from_millis(1_300)), [router(1)]);
    }

    #[test]
    fn a_new_prefix_is_told_with_those_before() {
        let mut list = RouterList::new(4, None);
        list.heard(Instant::ZERO, router(1), &advertisement(30, &[1]), |_| false);
        let news = list.heard(Instant::ZERO, router(1), &advertisement(30, &[2]), |_| false);
        assert!(matches!(news, RouterNews::Found { prefixes, .. } if prefixes.len() == 2));
    }

    #[test]
    fn reachable_routers_come_first_then_the_preferred_then_the_first() {
        let mut list = RouterList::new(4, None);
        for (number, preference) in [
            (1, RouterPreference::Low),
            (2, RouterPreference::Medium),
            (3, RouterPreference::Medium),
            (4, RouterPreference::High),
        ] {
            let message = RouterAdvertisement { preference, ..advertisement(30, &[]) };
            list.heard(Instant::ZERO, router(number), &message, |_| false);
        }
        assert_eq!(list.select(|_| true), Some(router(4)));
        assert_eq!(list.select(|address| address != router(4)), Some(router(2)));
        assert_eq!(list.select(|address| address == router(1)), Some(router(1)));
        let in_turn: Vec<_> = (0..5).map(|_| list.select(|_| false).unwrap()).collect();
        assert_eq!(in_turn, [router(1), router(2), router(3), router(4), router(1)]);
        assert_eq!(RouterList::new(4, None).select(|_| true), None);
    }

    #[test]
    fn invented_routers_displace_inventions_and_not_the_one_in_use() {
        let mut list = RouterList::new(4, None);
        let in_use = |address| address == router(1);
        list.heard(Instant::ZERO, router(1), &advertisement(30, &[1]), in_use);
        for number in 100..1000 {
            let now = Instant::from_millis(u64::from(number));
            let news = list.heard(now, router(number), &advertisement(9000, &[number]), in_use);
            assert!(matches!(news, RouterNews::Found { .. }));
            assert!(list.iter().count() <= 4);
        }
        assert!(list.contains(router(1)));
        let news = list.heard(Instant::from_secs(1), router(2), &advertisement(30, &[]), |_| true);
        assert_eq!(news, RouterNews::NoRoom);
        // Nor do inventions of prefixes by a router have no end.
        for number in 0..1000 {
            list.heard(Instant::from_secs(1), router(1), &advertisement(30, &[number]), in_use);
        }
        assert!(list.iter().all(|router| router.prefixes.len() <= PREFIXES_OF_A_ROUTER));
    }

    #[test]
    fn a_prefix_is_on_the_link_for_its_lifetime() {
        let mut list = PrefixList::new(2);
        let inside = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 9);
        assert!(!list.contains(inside) && list.contains(router(1)));
        assert!(list.heard(Instant::ZERO, &option(1, 60)));
        assert!(list.contains(inside));
        assert!(list.heard(Instant::from_secs(1), &PrefixInformation { on_link: false, ..option(1, 0) }));
        assert!(list.contains(inside), "the L bit clear says nothing");
        assert_eq!(list.next_timeout(), Some(Instant::from_secs(60)));
        list.handle_timeout(Instant::from_secs(60));
        assert!(!list.contains(inside));
        assert!(list.heard(Instant::ZERO, &option(1, u32::MAX)));
        assert_eq!(list.next_timeout(), None);
        assert!(list.heard(Instant::ZERO, &option(1, 0)));
        assert!(!list.contains(inside), "a lifetime of zero ends it");
        assert!(list.heard(Instant::ZERO, &option(2, 60)) && list.heard(Instant::ZERO, &option(3, 60)));
        assert!(!list.heard(Instant::ZERO, &option(4, 60)), "there is no room");
        assert!(list.heard(Instant::ZERO, &option(4, 0)));
        assert_eq!(list.len(), 2);
    }
}
