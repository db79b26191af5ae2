//! Agent advertisement: when an agent speaks up on a link, and what it says (RFC 5944 sections 2.1 and 2.3,
//! RFC 1256 section 6).

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmp::{
    AdvertisementExtension, AgentFlags, IcmpMessage, MobilityAgentAdvertisement, RouterAddress,
    RouterAdvertisement,
};
use careof_wire::mip4::Lifetime;

use super::io::ALL_SYSTEMS;
use super::{ConfigError, InterfaceId, Transmit, TransmitPayload};

/// How an agent advertises itself on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdvertiserConfig {
    /// The shortest time between two advertisements (RFC 1256's MinAdvertisementInterval).
    pub min_interval: Duration,
    /// The longest (MaxAdvertisementInterval). Each interval is drawn from between the two, so that agents
    /// do not fall into step.
    pub max_interval: Duration,
    /// For how long an advertisement is valid, whole seconds: at least three times the longest interval.
    pub lifetime: Duration,
    /// The longest registration lifetime offered.
    pub registration_lifetime: Lifetime,
    /// A solicitation is answered after a random time up to this (MAX_RESPONSE_DELAY is 2 s in RFC 1256).
    pub max_response_delay: Duration,
    /// Whether the agent speaks up when its link comes up, as if it were asked. Otherwise it goes on as if the link
    /// had been up all the time.
    pub on_link_up: bool,
    /// The least time between an advertisement and one that was asked for, however many solicitations come; the RFC
    /// recommends 1 s.
    pub rate_limit: Duration,
    /// Where they go: 224.0.0.1, or 255.255.255.255 for links without multicast.
    pub destination: Ipv4Addr,
    /// How much the agent wants to be the default router (RFC 1256 section 4.1); `None` does not offer it
    /// as one.
    pub preference: Option<i32>,
    /// The bits of the link's network, told in a prefix-lengths extension; that takes a `preference`.
    pub prefix_length: Option<u8>,
}

impl Default for AdvertiserConfig {
    /// Every 7.5 to 10 s, valid for 30 s; registrations up to 600 s.
    fn default() -> Self {
        Self::every(Duration::from_secs(10))
    }
}

impl AdvertiserConfig {
    /// At most `max_interval` apart, at least three quarters of it, valid for three times as long.
    #[must_use]
    pub fn every(max_interval: Duration) -> Self {
        Self {
            min_interval: max_interval * 3 / 4,
            max_interval,
            lifetime: Duration::from_secs((max_interval * 3).as_millis().div_ceil(1000) as u64),
            registration_lifetime: Lifetime::from_secs(600),
            max_response_delay: Duration::from_millis(100),
            on_link_up: true,
            rate_limit: (max_interval * 3 / 4).min(Duration::from_secs(1)),
            destination: ALL_SYSTEMS,
            preference: Some(0),
            prefix_length: None,
        }
    }

    /// Checks what the RFC demands.
    ///
    /// # Errors
    /// A lifetime shorter than three intervals or longer than its field, an interval of zero or upside
    /// down, a prefix length above 32.
    pub fn check(&self) -> Result<(), ConfigError> {
        let (min, max) = (self.min_interval, self.max_interval);
        if min.is_zero() || min > max {
            return Err(ConfigError::BadInterval { min, max });
        }
        if self.lifetime < max.saturating_mul(3) {
            return Err(ConfigError::LifetimeTooShort { lifetime: self.lifetime, interval: max });
        }
        if self.lifetime.as_secs() > u64::from(u16::MAX) {
            let found = self.lifetime.as_secs();
            let what = "the advertisement lifetime in seconds";
            return Err(ConfigError::OutOfRange { what, found, low: 1, high: u64::from(u16::MAX) });
        }
        match self.prefix_length {
            Some(length) if length > 32 => {
                let what = "the prefix length";
                Err(ConfigError::OutOfRange { what, found: u64::from(length), low: 0, high: 32 })
            }
            _ => Ok(()),
        }
    }
}

/// The number after `sequence`: 0 is for the first after a start only, 256 follows 0xffff, so that mobile
/// nodes can tell a roll-over from a restart (section 2.3.2).
const fn following(sequence: u16) -> u16 {
    match sequence {
        u16::MAX => 256,
        _ => sequence + 1,
    }
}

/// The advertising of an agent on one link.
#[derive(Clone, Debug)]
pub(crate) struct Advertiser {
    config: AdvertiserConfig,
    interface: InterfaceId,
    address: Ipv4Addr,
    up: bool,
    sequence: u16,
    next: Instant,
    last: Option<Instant>,
}

impl Advertiser {
    /// The agent at `address` on `interface`; its first advertisement goes out within a second.
    pub(crate) fn new(
        now: Instant,
        config: AdvertiserConfig,
        interface: InterfaceId,
        address: Ipv4Addr,
        random: &mut Randomness,
    ) -> Self {
        let mut this = Self { config, interface, address, up: true, sequence: 0, next: now, last: None };
        this.soon(now, config.max_interval.min(Duration::from_secs(1)), random);
        this
    }

    pub(crate) const fn interface(&self) -> InterfaceId {
        self.interface
    }

    pub(crate) const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The next advertisement is to go out after a random time up to `within`, as far as the rate limit
    /// allows; an earlier one stays where it is.
    fn soon(&mut self, now: Instant, within: Duration, random: &mut Randomness) {
        let due = now + random.duration_up_to(within);
        let allowed = self.last.map_or(now, |last| last + self.config.rate_limit);
        let due = due.max(allowed);
        self.next = if self.last.is_none() && self.next == now { due } else { self.next.min(due) };
    }

    /// Somebody on the link asks.
    pub(crate) fn solicited(&mut self, now: Instant, random: &mut Randomness) {
        if self.up {
            self.soon(now, self.config.max_response_delay, random);
        }
    }

    /// The link came up or went down.
    pub(crate) fn link(&mut self, now: Instant, up: bool, random: &mut Randomness) {
        let was_up = core::mem::replace(&mut self.up, up);
        if self.config.on_link_up {
            self.solicited(now, random);
        } else if up && !was_up && self.next < now {
            // Where it would be by now in its intervals is as good as anywhere in one.
            self.next = now + random.duration_up_to(self.config.max_interval);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.up.then_some(self.next)
    }

    /// The advertisement due by `now`, if one is.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        flags: AgentFlags,
        care_of_addresses: &[Ipv4Addr],
        random: &mut Randomness,
    ) -> Option<Transmit> {
        if !self.up || self.next > now {
            return None;
        }
        let spread = self.config.max_interval.saturating_sub(self.config.min_interval);
        self.next = now + self.config.min_interval + random.duration_up_to(spread);
        self.last = Some(now);
        let message = self.message(flags, care_of_addresses);
        self.sequence = following(self.sequence);
        // Enough for one care-of address and a prefix.
        let mut bytes = Vec::with_capacity(32);
        IcmpMessage::RouterAdvertisement(message).emit(&mut bytes);
        Some(Transmit {
            interface: Some(self.interface),
            source: self.address,
            destination: self.config.destination,
            ttl: 1,
            payload: TransmitPayload::Icmp { bytes },
        })
    }

    fn message(&self, flags: AgentFlags, care_of_addresses: &[Ipv4Addr]) -> RouterAdvertisement {
        let most = MobilityAgentAdvertisement::MAX_CARE_OF_ADDRESSES;
        let agent = MobilityAgentAdvertisement {
            sequence: self.sequence,
            registration_lifetime: self.config.registration_lifetime,
            flags,
            care_of_addresses: care_of_addresses.iter().copied().take(most).collect(),
        };
        let mut message = RouterAdvertisement {
            // Below 65536, as check() has seen.
            lifetime_secs: u16::try_from(self.config.lifetime.as_secs()).unwrap_or(u16::MAX),
            extensions: alloc::vec![AdvertisementExtension::MobilityAgent(agent)],
            ..RouterAdvertisement::default()
        };
        if let Some(preference) = self.config.preference {
            message.routers.push(RouterAddress { address: self.address, preference });
            if let Some(length) = self.config.prefix_length {
                message.extensions.push(AdvertisementExtension::PrefixLengths(alloc::vec![length]));
                // 3 bytes; the message shall have an even length (section 2.1.3).
                message.extensions.push(AdvertisementExtension::OneBytePadding);
            }
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    const AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn advertiser(random: &mut Randomness) -> Advertiser {
        Advertiser::new(Instant::ZERO, AdvertiserConfig::default(), InterfaceId(1), AGENT, random)
    }

    fn sequence(transmit: &Transmit) -> u16 {
        let Ok(IcmpMessage::RouterAdvertisement(message)) = IcmpMessage::parse(transmit.payload.bytes())
        else {
            panic!("not an advertisement");
        };
        message.mobility_agent().unwrap().sequence
    }

    fn run(advertiser: &mut Advertiser, random: &mut Randomness, until: Instant) -> Vec<(Instant, Transmit)> {
        let mut sent = Vec::new();
        while let Some(due) = advertiser.deadline().filter(|&due| due < until) {
            sent.push((due, advertiser.poll(due, AgentFlags::FOREIGN_AGENT, &[AGENT], random).unwrap()));
        }
        sent
    }

    #[test]
    fn intervals_are_random_within_their_range_and_the_first_comes_within_a_second() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let mut advertiser = advertiser(&mut random);
        let sent = run(&mut advertiser, &mut random, Instant::from_secs(2000));
        assert!(sent[0].0 <= Instant::from_secs(1));
        let gaps: Vec<_> = sent.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(gaps.iter().all(|&g| g >= Duration::from_millis(7_500) && g <= Duration::from_secs(10)));
        let (least, most) = (gaps.iter().min().unwrap(), gaps.iter().max().unwrap());
        assert!(*least < Duration::from_secs(8) && *most > Duration::from_millis(9_500));
        assert!(sent.iter().all(|(_, transmit)| transmit.ttl == 1 && transmit.destination == ALL_SYSTEMS));
    }

    #[test]
    fn the_sequence_begins_at_0_and_goes_from_0xffff_to_256() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let mut advertiser = advertiser(&mut random);
        let sent = run(&mut advertiser, &mut random, Instant::from_secs(40));
        assert_eq!(sent.iter().map(|(_, t)| sequence(t)).collect::<Vec<_>>(), [0, 1, 2, 3, 4][..sent.len()]);
        advertiser.sequence = 0xfffe;
        let sent = run(&mut advertiser, &mut random, Instant::from_secs(80));
        assert_eq!(sent.iter().take(3).map(|(_, t)| sequence(t)).collect::<Vec<_>>(), [0xfffe, 0xffff, 256]);
    }

    #[test]
    fn a_flood_of_solicitations_is_answered_once_a_second() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let mut advertiser = advertiser(&mut random);
        let mut sent = Vec::new();
        for millis in 0..10_000 {
            let now = Instant::from_millis(millis);
            advertiser.solicited(now, &mut random);
            sent.extend(run(&mut advertiser, &mut random, now + Duration::from_millis(1)));
        }
        assert!((9..=11).contains(&sent.len()), "{}", sent.len());
        assert!(sent.windows(2).all(|pair| pair[1].0 - pair[0].0 >= Duration::from_secs(1)));
    }

    #[test]
    fn a_solicitation_is_answered_soon() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let mut advertiser = advertiser(&mut random);
        run(&mut advertiser, &mut random, Instant::from_secs(2));
        let asked = Instant::from_secs(4);
        advertiser.solicited(asked, &mut random);
        assert!(advertiser.deadline().unwrap() <= asked + Duration::from_millis(100));
    }

    #[test]
    fn a_link_that_is_down_gets_no_advertisements() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let mut advertiser = advertiser(&mut random);
        advertiser.link(Instant::ZERO, false, &mut random);
        assert_eq!(advertiser.deadline(), None);
        let up = Instant::from_secs(100);
        advertiser.link(up, true, &mut random);
        assert!(advertiser.deadline().unwrap() <= up + Duration::from_millis(100));
    }

    #[test]
    fn the_prefix_length_is_told_and_the_message_has_an_even_length() {
        let mut random = Randomness::from(RandomStream::new(1, 0, "advertiser"));
        let config = AdvertiserConfig { prefix_length: Some(24), ..AdvertiserConfig::default() };
        let mut advertiser = Advertiser::new(Instant::ZERO, config, InterfaceId(1), AGENT, &mut random);
        let (_, transmit) = run(&mut advertiser, &mut random, Instant::from_secs(2)).remove(0);
        let Ok(IcmpMessage::RouterAdvertisement(message)) = IcmpMessage::parse(transmit.payload.bytes())
        else {
            panic!("not an advertisement");
        };
        assert_eq!(message.prefix_length(0), Some(24));
        assert_eq!(transmit.payload.bytes().len() % 2, 0);
    }

    #[test]
    fn a_lifetime_below_three_intervals_is_refused() {
        let good = AdvertiserConfig::default();
        assert_eq!(good.check(), Ok(()));
        assert_eq!(AdvertiserConfig::every(Duration::from_millis(1_100)).check(), Ok(()));
        let short = AdvertiserConfig { lifetime: Duration::from_secs(29), ..good };
        assert!(matches!(short.check(), Err(ConfigError::LifetimeTooShort { .. })));
        let zero = AdvertiserConfig { min_interval: Duration::ZERO, ..good };
        assert!(matches!(zero.check(), Err(ConfigError::BadInterval { .. })));
        let long = AdvertiserConfig { lifetime: Duration::from_secs(70_000), ..good };
        assert!(matches!(long.check(), Err(ConfigError::OutOfRange { .. })));
    }
}
