//! The router's part of router discovery: when it advertises itself, and what it says (RFC 4861 section 6.2, RFC 6275 section 7.5).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{
    HOP_LIMIT, HomeAgentInformation, Icmpv6Message, IpFields, LinkLayerAddress, MapOption, Milliseconds,
    NdOption, PrefixInformation, RouterAdvertisement, RouterPreference,
};
use careof_wire::ipv6::ALL_NODES;

use super::{Counters, DropReason, Transmit, Wake, multicast_link_layer_address};
use crate::ConfigError;
use crate::outbox::Outbox;
use crate::v6::home_agent::check_routable;

/// MAX_INITIAL_RTR_ADVERT_INTERVAL (RFC 4861 section 10).
const MAX_INITIAL_INTERVAL: Duration = Duration::from_secs(16);
/// MAX_INITIAL_RTR_ADVERTISEMENTS (RFC 4861 section 10).
const MAX_INITIAL_ADVERTISEMENTS: u8 = 3;
/// MAX_RA_DELAY_TIME (RFC 4861 section 10).
const MAX_RA_DELAY_TIME: Duration = Duration::from_millis(500);
/// MIN_DELAY_BETWEEN_RAS (RFC 4861 section 10).
const MIN_DELAY_BETWEEN_RAS: Duration = Duration::from_secs(3);
/// The least MinRtrAdvInterval for mobility, and MinDelayBetweenRAs (RFC 6275 sections 7.5 and 13).
const MIN_MOBILE_INTERVAL: Duration = Duration::from_millis(30);
/// The least MaxRtrAdvInterval for mobility (RFC 6275 section 7.5).
const MIN_MOBILE_MAX_INTERVAL: Duration = Duration::from_millis(70);
/// Added to an advertised interval below [`SHORT_INTERVAL`] (RFC 6275 section 7.5).
const GRANULARITY: Duration = Duration::from_millis(20);
const SHORT_INTERVAL: Duration = Duration::from_millis(200);

/// How a router advertises itself on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvertisingConfig {
    /// The router's link-local address, from which it advertises itself.
    pub address: Ipv6Addr,
    /// Its link-layer address, for the Source Link-Layer Address option. A home agent must tell it (RFC 6275 section 7.5).
    pub link_layer_address: Option<LinkLayerAddress>,
    /// MinRtrAdvInterval: the shortest time between two unsolicited advertisements.
    pub min_interval: Duration,
    /// MaxRtrAdvInterval: the longest. Each interval is drawn from between the two.
    pub max_interval: Duration,
    /// MIN_DELAY_BETWEEN_RAS: the shortest time between two advertisements to all nodes, also when they are asked for.
    pub min_delay: Duration,
    /// MAX_RA_DELAY_TIME: a solicitation is answered after a random time up to this.
    pub max_response_delay: Duration,
    /// AdvCurHopLimit; 0 says nothing.
    pub cur_hop_limit: u8,
    /// AdvManagedFlag.
    pub managed: bool,
    /// AdvOtherConfigFlag.
    pub other_configuration: bool,
    /// How much it wants to be the default router (RFC 4191).
    pub preference: RouterPreference,
    /// AdvDefaultLifetime, seconds; 0: it is no default router.
    pub lifetime_secs: u16,
    /// AdvReachableTime; 0 says nothing.
    pub reachable_time: Milliseconds,
    /// AdvRetransTimer; 0 says nothing.
    pub retrans_timer: Milliseconds,
    /// AdvLinkMTU, bytes.
    pub link_mtu: Option<u32>,
    /// AdvPrefixList. A home agent gives its global address in at least one, with the R bit (RFC 6275 section 7.2).
    pub prefixes: Vec<PrefixInformation>,
    /// Whether it tells its longest interval, so that mobile nodes see when advertisements are missing (RFC 6275 section 7.3).
    pub tells_interval: bool,
    /// H: it is a home agent.
    pub is_home_agent: bool,
    /// What it tells of itself as a home agent; `None` leaves it to the defaults (RFC 6275 section 7.4).
    pub home_agent_information: Option<HomeAgentInformation>,
    /// The mobility anchor points whose domain the link is of (RFC 5380 section 7: the operator lists them). One that has failed is
    /// listed with lifetime zero until all mobile nodes know.
    pub maps: Vec<MapOption>,
}

impl AdvertisingConfig {
    /// A router by the defaults of RFC 4861 section 6.2.1: every 200 to 600 s, valid for 1800 s.
    #[must_use]
    pub fn new(address: Ipv6Addr, link_layer_address: LinkLayerAddress) -> Self {
        Self {
            address,
            link_layer_address: Some(link_layer_address),
            min_interval: Duration::from_secs(200),
            max_interval: Duration::from_secs(600),
            min_delay: MIN_DELAY_BETWEEN_RAS,
            max_response_delay: MAX_RA_DELAY_TIME,
            cur_hop_limit: 64,
            managed: false,
            other_configuration: false,
            preference: RouterPreference::Medium,
            lifetime_secs: 1800,
            reachable_time: Milliseconds(0),
            retrans_timer: Milliseconds(0),
            link_mtu: None,
            prefixes: Vec::new(),
            tells_interval: false,
            is_home_agent: false,
            home_agent_information: None,
            maps: Vec::new(),
        }
    }

    /// The same for a link that mobile nodes visit: unsolicited advertisements at most `max_interval` apart, at least three sevenths
    /// of it, and answers as soon (RFC 6275 section 7.5, with its shortest 70 ms: 30 to 70 ms).
    #[must_use]
    pub fn for_mobile_nodes(self, max_interval: Duration) -> Self {
        let min_interval = (max_interval * 3 / 7).max(MIN_MOBILE_INTERVAL);
        let lifetime = max_interval.saturating_mul(3).as_secs().clamp(1, 9000);
        Self {
            min_interval,
            max_interval,
            min_delay: min_interval.min(MIN_DELAY_BETWEEN_RAS),
            max_response_delay: min_interval.min(MAX_RA_DELAY_TIME),
            lifetime_secs: lifetime as u16,
            tells_interval: true,
            ..self
        }
    }

    /// Checks what the RFCs demand.
    ///
    /// # Errors
    ///
    /// An address that is not link-local, intervals that are upside down or shorter than RFC 6275 section 7.5 allows or longer than
    /// RFC 4861 section 6.2.1 does, a lifetime below the longest interval or above 9000 s, a home agent without its link-layer
    /// address or a global address of its own, a mobility anchor point without a global address or at no distance.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (min, max) = (self.min_interval, self.max_interval);
        if !self.address.is_unicast_link_local() {
            return Err(ConfigError::NotUnicast {
                what: "the router's address",
                address: self.address.into(),
            });
        }
        if min < MIN_MOBILE_INTERVAL || max < MIN_MOBILE_MAX_INTERVAL || min > max {
            return Err(ConfigError::BadInterval { min, max });
        }
        if max > Duration::from_secs(1800) {
            let (what, found) = ("the longest interval of advertisements in seconds", max.as_secs());
            return Err(ConfigError::OutOfRange { what, found, low: 0, high: 1800 });
        }
        let lifetime = Duration::from_secs(u64::from(self.lifetime_secs));
        if !lifetime.is_zero() && (lifetime < max || self.lifetime_secs > 9000) {
            let (what, low) = ("the router lifetime in seconds", max.as_secs());
            return Err(ConfigError::OutOfRange { what, found: lifetime.as_secs(), low, high: 9000 });
        }
        if self.is_home_agent && self.link_layer_address.is_none() {
            return Err(ConfigError::Missing("link-layer address of the home agent"));
        }
        if self.is_home_agent && !self.prefixes.iter().any(|prefix| prefix.router_address) {
            return Err(ConfigError::Missing("address of the home agent among its prefixes"));
        }
        for MapOption { distance, preference, address, .. } in &self.maps {
            check_routable("the address of a mobility anchor point", *address)?;
            // RFC 5380 section 5.
            let in_range = |what, found, low| {
                let fits = (low..=MapOption::MAX).contains(&found);
                let [found, low, high] = [found, low, MapOption::MAX].map(u64::from);
                if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
            };
            in_range("the distance of a mobility anchor point", *distance, 1)?;
            in_range("the preference of a mobility anchor point", *preference, 0)?;
        }
        Ok(())
    }
}

/// A router that advertises itself on one link.
///
/// The owner hands it solicitations ([`handle_message`](Self::handle_message)), drains [`poll_transmit`](Self::poll_transmit) and
/// calls [`handle_timeout`](Self::handle_timeout) at [`next_timeout`](Self::next_timeout). Every advertisement carries all options
/// and goes to all nodes. The neighbors of the link are [`NeighborDiscovery`](super::NeighborDiscovery)'s business, which is handed
/// the same messages.
#[derive(Debug)]
pub struct AdvertisingRouter {
    config: AdvertisingConfig,
    random: Randomness,
    outbox: Outbox<Transmit, core::convert::Infallible, Counters>,
    /// When the next advertisement is due; `None` while the link is down.
    next: Option<Instant>,
    /// When the last one went out.
    last: Option<Instant>,
    /// How many of the first ones are left.
    initial: u8,
}

impl AdvertisingRouter {
    /// A router on a link that is down.
    ///
    /// # Errors
    ///
    /// Those of [`AdvertisingConfig::check`].
    pub fn new(config: AdvertisingConfig, random: Randomness) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self { config, random, outbox: Outbox::default(), next: None, last: None, initial: 0 })
    }

    /// How it advertises itself.
    #[must_use]
    pub const fn config(&self) -> &AdvertisingConfig {
        &self.config
    }

    /// What it has received and done.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The link can carry packets: the router begins to advertise itself, at once and then a few times quickly (RFC 4861 section
    /// 6.2.4).
    pub fn handle_link_up(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.initial = MAX_INITIAL_ADVERTISEMENTS;
        self.next = Some(now + self.random.duration_up_to(self.config.max_response_delay));
        self.run(now);
    }

    /// The link cannot carry packets.
    pub fn handle_link_down(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.next = None;
    }

    /// Something that it says changes from now on: prefixes, lifetimes, what it is as a home agent. It is told soon (RFC 4861 section
    /// 6.2.4).
    ///
    /// # Errors
    ///
    /// Those of [`AdvertisingConfig::check`]; nothing has changed then.
    pub fn set_config(&mut self, now: Instant, config: AdvertisingConfig) -> Result<(), ConfigError> {
        config.check()?;
        self.outbox.called_at(now);
        self.config = config;
        if self.next.is_some() {
            self.initial = MAX_INITIAL_ADVERTISEMENTS;
            self.soon(now);
            self.run(now);
        }
        Ok(())
    }

    /// Stops advertising, with a last advertisement that says that it is no router any more (RFC 4861 section 6.2.5).
    pub fn stop(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if self.next.take().is_some() {
            let message = RouterAdvertisement { router_lifetime_secs: 0, ..self.message() };
            self.send(message);
        }
    }

    /// An ICMPv6 message, from its type on, with the fields of its IPv6 header: valid router solicitations are answered.
    pub fn handle_message(&mut self, now: Instant, ip: &IpFields, message: &[u8]) {
        self.outbox.called_at(now);
        self.outbox.count_received();
        let result = match Icmpv6Message::parse(ip.source, ip.destination, message) {
            _ if self.next.is_none() => Err(DropReason::InterfaceDown),
            Err(_) => Err(DropReason::Malformed),
            Ok(message) if message.check(ip).is_err() => Err(DropReason::NotValid),
            Ok(Icmpv6Message::RouterSolicitation(_)) => Ok(()),
            Ok(_) => Err(DropReason::NotForUs),
        };
        match result {
            Ok(()) => self.soon(now),
            Err(reason) => self.outbox.counters.count_drop(reason),
        }
        self.run(now);
    }

    /// The next advertisement is to go out after a random time, as far as the rate limit allows; an earlier one stays where it is
    /// (RFC 4861 section 6.2.6).
    fn soon(&mut self, now: Instant) {
        let delay = self.random.duration_up_to(self.config.max_response_delay);
        let from = match self.last {
            Some(last) if now < last + self.config.min_delay => last + self.config.min_delay,
            _ => now,
        };
        self.next = self.next.map(|next| next.min(from + delay));
    }

    /// Sends what is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.run(now);
    }

    fn run(&mut self, now: Instant) {
        if self.next.is_none_or(|due| due > now) {
            return;
        }
        let message = self.message();
        self.send(message);
        self.last = Some(now);
        let AdvertisingConfig { min_interval, max_interval, .. } = self.config;
        let interval = min_interval + self.random.duration_up_to(max_interval.saturating_sub(min_interval));
        let interval = if self.initial > 1 { interval.min(MAX_INITIAL_INTERVAL) } else { interval };
        self.initial = self.initial.saturating_sub(1);
        self.next = Some(now + interval);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called, and why.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        self.next.map(|at| (at, Wake::RouterAdvertisementDue))
    }

    /// The next advertisement to be sent.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    fn send(&mut self, message: RouterAdvertisement) {
        let mut bytes = Vec::with_capacity(128);
        Icmpv6Message::RouterAdvertisement(message).emit(self.config.address, ALL_NODES, &mut bytes);
        self.outbox.transmit(Transmit {
            source: self.config.address,
            destination: ALL_NODES,
            link_layer_destination: Some(multicast_link_layer_address(ALL_NODES)),
            hop_limit: HOP_LIMIT,
            router_alert: false,
            message: bytes,
        });
    }

    fn message(&self) -> RouterAdvertisement {
        let config = &self.config;
        let interval = if config.max_interval < SHORT_INTERVAL {
            config.max_interval + GRANULARITY
        } else {
            config.max_interval
        };
        let interval = NdOption::AdvertisementInterval(Milliseconds::from_duration(interval));
        let options = config
            .link_layer_address
            .map(NdOption::SourceLinkLayerAddress)
            .into_iter()
            .chain(config.link_mtu.map(NdOption::Mtu))
            .chain(config.prefixes.iter().copied().map(NdOption::PrefixInformation))
            .chain(config.tells_interval.then_some(interval))
            .chain(
                config
                    .home_agent_information
                    .filter(|_| config.is_home_agent)
                    .map(NdOption::HomeAgentInformation),
            )
            .chain(config.maps.iter().copied().map(NdOption::Map));
        RouterAdvertisement {
            cur_hop_limit: config.cur_hop_limit,
            managed: config.managed,
            other_configuration: config.other_configuration,
            home_agent: config.is_home_agent,
            preference: config.preference,
            router_lifetime_secs: config.lifetime_secs,
            reachable_time: config.reachable_time,
            retrans_timer: config.retrans_timer,
            options: options.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;
    use careof_wire::icmpv6::{PrefixLifetime, RouterSolicitation};
    use careof_wire::ipv6::ALL_ROUTERS;

    const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
    const LINK_LAYER: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 1]);

    fn router(config: AdvertisingConfig) -> AdvertisingRouter {
        AdvertisingRouter::new(config, RandomStream::new(1, 0, "router").into()).unwrap()
    }

    fn home_agent() -> AdvertisingConfig {
        let mut config = AdvertisingConfig::new(ROUTER, LINK_LAYER);
        config.is_home_agent = true;
        config.prefixes = alloc::vec![PrefixInformation {
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            router_address: true,
            valid_lifetime: PrefixLifetime::from_secs(2_592_000),
            preferred_lifetime: PrefixLifetime::from_secs(604_800),
            prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 1),
        }];
        config
    }

    fn sent(router: &mut AdvertisingRouter, now: Instant) -> Vec<RouterAdvertisement> {
        core::iter::from_fn(|| router.poll_transmit(now))
            .map(|transmit| {
                assert_eq!(
                    (transmit.source, transmit.destination, transmit.hop_limit),
                    (ROUTER, ALL_NODES, 255)
                );
                match Icmpv6Message::parse(ROUTER, ALL_NODES, &transmit.message) {
                    Ok(Icmpv6Message::RouterAdvertisement(message)) => message,
                    other => panic!("{other:?}"),
                }
            })
            .collect()
    }

    fn run(router: &mut AdvertisingRouter, until: Instant) -> Vec<Instant> {
        let mut times = Vec::new();
        while let Some((due, Wake::RouterAdvertisementDue)) =
            router.next_timeout().filter(|(due, _)| *due < until)
        {
            router.handle_timeout(due);
            assert_eq!(sent(router, due).len(), 1);
            times.push(due);
        }
        times
    }

    fn solicit(router: &mut AdvertisingRouter, now: Instant) {
        let mut bytes = Vec::new();
        let message = Icmpv6Message::RouterSolicitation(RouterSolicitation::default());
        message.emit(HOST, ALL_ROUTERS, &mut bytes);
        let ip = IpFields { source: HOST, destination: ALL_ROUTERS, hop_limit: 255 };
        router.handle_message(now, &ip, &bytes);
    }

    #[test]
    fn three_come_quickly_and_then_the_interval_is_random_within_its_range() {
        let mut router = router(AdvertisingConfig::new(ROUTER, LINK_LAYER));
        router.handle_link_up(Instant::ZERO);
        let times = run(&mut router, Instant::from_secs(100_000));
        assert!(times[0] <= Instant::from_millis(500));
        assert!(times[..3].windows(2).all(|pair| pair[1] - pair[0] == MAX_INITIAL_INTERVAL));
        let gaps: Vec<_> = times[2..].windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        assert!(gaps.iter().all(|gap| (200.0..=600.0).contains(gap)));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        assert!((350.0..450.0).contains(&mean), "{mean}");
    }

    #[test]
    fn for_mobile_nodes_the_mean_interval_may_be_50_ms() {
        let mut config = home_agent().for_mobile_nodes(Duration::from_millis(70));
        config.home_agent_information = Some(HomeAgentInformation { preference: 3, lifetime_secs: 1 });
        let mut router = router(config);
        router.handle_link_up(Instant::ZERO);
        router.handle_timeout(Instant::from_millis(30));
        let message = sent(&mut router, Instant::from_millis(30)).remove(0);
        // 20 ms are added to what is told, and the lifetime is at least a second.
        assert_eq!(message.advertisement_interval(), Some(Milliseconds(90)));
        assert_eq!((message.router_lifetime_secs, message.home_agent), (1, true));
        assert_eq!(message.home_agent_information().map(|said| said.preference), Some(3));
        assert_eq!(message.router_addresses().count(), 1);
        let times = run(&mut router, Instant::from_secs(10));
        assert!((190..=210).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= MIN_MOBILE_INTERVAL));
    }

    #[test]
    fn it_tells_of_the_anchor_points_of_its_domain() {
        let map = MapOption {
            distance: 2,
            preference: 7,
            allocates_address: false,
            valid_lifetime: PrefixLifetime::from_secs(600),
            address: Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 1),
        };
        let config =
            |map| AdvertisingConfig { maps: alloc::vec![map], ..AdvertisingConfig::new(ROUTER, LINK_LAYER) };
        let mut router = router(config(map));
        router.handle_link_up(Instant::ZERO);
        let (due, _) = router.next_timeout().unwrap();
        router.handle_timeout(due);
        assert_eq!(sent(&mut router, due)[0].maps().collect::<Vec<_>>(), [&map]);
        // One that fails is told soon.
        let failed = MapOption { valid_lifetime: PrefixLifetime::ZERO, ..map };
        router.set_config(due, config(failed)).unwrap();
        let (due, _) = router.next_timeout().unwrap();
        router.handle_timeout(due);
        assert_eq!(sent(&mut router, due)[0].maps().collect::<Vec<_>>(), [&failed]);
        for wrong in [
            MapOption { distance: 0, ..map },
            MapOption { distance: 16, ..map },
            MapOption { preference: 16, ..map },
            MapOption { address: ROUTER, ..map },
        ] {
            assert!(config(wrong).check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_solicitation_is_answered_within_half_a_second() {
        let mut router = router(AdvertisingConfig::new(ROUTER, LINK_LAYER));
        router.handle_link_up(Instant::ZERO);
        run(&mut router, Instant::from_secs(40));
        let asked = Instant::from_secs(50);
        solicit(&mut router, asked);
        let (due, _) = router.next_timeout().unwrap();
        assert!(due >= asked && due <= asked + MAX_RA_DELAY_TIME);
        // The one that was due earlier anyhow is not put off.
        solicit(&mut router, asked);
        assert!(router.next_timeout().unwrap().0 <= due);
    }

    #[test]
    fn a_flood_of_solicitations_is_answered_once_in_three_seconds() {
        let mut router = router(AdvertisingConfig::new(ROUTER, LINK_LAYER));
        router.handle_link_up(Instant::ZERO);
        let mut times = Vec::new();
        for tenth in 0..600 {
            let now = Instant::from_millis(tenth * 100);
            solicit(&mut router, now);
            times.extend(sent(&mut router, now).iter().map(|_| now));
            times.extend(run(&mut router, now + Duration::from_millis(100)));
        }
        assert!((15..=21).contains(&times.len()), "{}", times.len());
        assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= MIN_DELAY_BETWEEN_RAS));
    }

    #[test]
    fn what_is_no_valid_solicitation_is_not_answered() {
        let mut router = router(AdvertisingConfig::new(ROUTER, LINK_LAYER));
        let mut bytes = Vec::new();
        let message = Icmpv6Message::RouterSolicitation(RouterSolicitation::default());
        message.emit(HOST, ALL_ROUTERS, &mut bytes);
        let ip = IpFields { source: HOST, destination: ALL_ROUTERS, hop_limit: 255 };
        router.handle_message(Instant::ZERO, &ip, &bytes);
        router.handle_link_up(Instant::ZERO);
        run(&mut router, Instant::from_secs(40));
        let now = Instant::from_secs(50);
        let due = router.next_timeout();
        router.handle_message(now, &IpFields { hop_limit: 64, ..ip }, &bytes);
        router.handle_message(now, &IpFields { source: ROUTER, ..ip }, &bytes);
        assert_eq!(router.next_timeout(), due);
        for reason in [DropReason::InterfaceDown, DropReason::NotValid, DropReason::Malformed] {
            assert_eq!(router.counters().dropped(reason), 1, "{reason:?}");
        }
    }

    #[test]
    fn a_router_that_stops_says_so_and_one_that_changes_tells_soon() {
        let mut router = router(home_agent());
        router.handle_link_up(Instant::ZERO);
        run(&mut router, Instant::from_secs(100));
        let mut config = home_agent();
        config.prefixes[0].preferred_lifetime = PrefixLifetime::ZERO;
        let now = Instant::from_secs(100);
        router.set_config(now, config).unwrap();
        assert!(router.next_timeout().unwrap().0 <= now + MAX_RA_DELAY_TIME);
        router.stop(now);
        let last = sent(&mut router, now).pop().unwrap();
        assert_eq!((last.router_lifetime_secs, router.next_timeout()), (0, None));
        router.stop(now);
        assert!(sent(&mut router, now).is_empty());
    }

    #[test]
    fn what_the_rfcs_do_not_allow_is_refused() {
        let good = home_agent();
        assert_eq!(good.check(), Ok(()));
        let bad = |change: fn(&mut AdvertisingConfig)| {
            let mut config = home_agent();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert!(matches!(
            bad(|config| config.min_interval = Duration::from_millis(29)),
            ConfigError::BadInterval { .. }
        ));
        assert!(matches!(
            bad(|config| config.max_interval = Duration::from_secs(100)),
            ConfigError::BadInterval { .. }
        ));
        assert!(matches!(
            bad(|config| config.max_interval = Duration::from_secs(1801)),
            ConfigError::OutOfRange { high: 1800, .. }
        ));
        assert!(matches!(bad(|config| config.lifetime_secs = 599), ConfigError::OutOfRange { low: 600, .. }));
        assert!(matches!(bad(|config| config.lifetime_secs = 9001), ConfigError::OutOfRange { .. }));
        assert!(matches!(bad(|config| config.link_layer_address = None), ConfigError::Missing(_)));
        assert!(matches!(bad(|config| config.prefixes.clear()), ConfigError::Missing(_)));
        assert!(matches!(bad(|config| config.address = Ipv6Addr::LOCALHOST), ConfigError::NotUnicast { .. }));
        for millis in [70, 100, 1_000, 100_000] {
            let config = home_agent().for_mobile_nodes(Duration::from_millis(millis));
            assert_eq!(config.check(), Ok(()), "{millis}");
        }
    }
}
