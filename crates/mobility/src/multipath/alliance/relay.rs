//! A node that lends its link.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::shake::{
    Alliance, AllianceCode, ClusterAdvertisement, IntroducedKey, ReceivedShake, ShakeKey, ShakeMessage,
};

use super::meter::{FormerAllies, Had, Meter};
use super::{
    ADVERTISEMENT_INTERVAL, CLUSTER_TTL, ClusterCounters, ClusterDrop, ClusterKey, ClusterTransmit,
    INTRODUCED, Trust,
};
use crate::v4::{Prefix, is_unicast};

/// Clients of which their introduced keys, and what they have had, are remembered after their alliance, for each that may be an ally.
const REMEMBERED: usize = 4;
/// For how long a client is refused that has had what it may have.
const BARRED: Duration = Duration::from_secs(60);

/// What a relay lends, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayConfig {
    /// Its address in the cluster.
    pub cluster: Ipv4Addr,
    /// The cluster: nothing is relayed to there.
    pub cluster_network: Prefix,
    /// Its address on its own link.
    pub outside: Ipv4Addr,
    /// What its link carries towards the cluster.
    pub downlink: Option<DataRate>,
    /// What its link carries away from it.
    pub uplink: Option<DataRate>,
    /// What its link costs.
    pub cost: u16,
    /// Allies at a time.
    pub clients: usize,
    /// What one ally may have, in either direction; `None`: there is no limit.
    pub client_rate: Option<DataRate>,
    /// Bytes that one client may have, also in several alliances; then it is refused for a minute. `None`: there is no limit.
    pub client_bytes: Option<u64>,
    /// The longest that is granted at once.
    pub longest: Duration,
    /// Whom it believes.
    pub trust: Trust,
}

/// Why an alliance ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllyEnd {
    /// Its time is up.
    Expired,
    /// The client wished it.
    Withdrawn,
    /// The client has had what it may have.
    LimitReached,
    /// The relay does not relay any more.
    Unwilling,
    /// The relay's own link is gone.
    LinkLost,
    /// The relay is not in the cluster any more.
    LeftCluster,
}

impl AllyEnd {
    /// Why, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "its time is up",
            Self::Withdrawn => "the client wishes it",
            Self::LimitReached => "the client has had what it may have",
            Self::Unwilling => "it does not lend any more",
            Self::LinkLost => "its link is gone",
            Self::LeftCluster => "it is not in the cluster any more",
        }
    }
}

/// What a relay tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelayEvent {
    /// A route to this client is to be set, and one from it: its packets are relayed.
    Allied {
        /// Whose packets.
        home_address: Ipv4Addr,
        /// Where the client is in the cluster.
        client: Ipv4Addr,
    },
    /// They are not relayed any more.
    Ended {
        /// Whose packets.
        home_address: Ipv4Addr,
        /// Why.
        why: AllyEnd,
    },
}

/// An ally, and what was relayed for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllyRecord {
    /// Whose packets are relayed.
    pub home_address: Ipv4Addr,
    /// Where the client is in the cluster.
    pub client: Ipv4Addr,
    /// When the alliance ends.
    pub expires: Instant,
    /// Packets and bytes to the client, with those of earlier alliances that count towards the limit.
    pub inward: (u64, u64),
    /// Packets and bytes from it, likewise.
    pub outward: (u64, u64),
}

/// Why a packet is not relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RelayDrop {
    /// It is for nobody, or from nobody, who is allied.
    NoAlly,
    /// It leads back into the cluster, or to a client by way of the link: it could go round.
    WouldLoop,
    /// The ally has had its rate.
    OverRate,
    /// It is neither from nor for the ally's home agent.
    NotHomeAgent,
    /// Its time to live is used up.
    Expired,
}

impl RelayDrop {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 5] =
        [Self::NoAlly, Self::WouldLoop, Self::OverRate, Self::NotHomeAgent, Self::Expired];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAlly => "no-ally",
            Self::WouldLoop => "would-loop",
            Self::OverRate => "over-rate",
            Self::NotHomeAgent => "not-home-agent",
            Self::Expired => "ttl-expired",
        }
    }
}

#[derive(Debug)]
pub(super) struct Ally {
    pub(super) record: AllyRecord,
    pub(super) home_agent: Ipv4Addr,
    granted: u16,
    spi: careof_wire::mip4::Spi,
    /// That of the last request that was accepted.
    nonce: u64,
    /// By direction: to the client, and from it.
    pub(super) meters: [Meter; 2],
}

/// Whether a genuine message of a client is new.
enum Freshness {
    New,
    /// It lacks this challenge, or its counter is not higher than this.
    Stale {
        challenge: u64,
        counter: u64,
    },
}

/// What is known of a client's key.
#[derive(Clone, Copy, Debug)]
struct Introduced {
    key: [u8; 32],
    /// What it repeats.
    challenge: u64,
    /// The highest counter so far.
    counter: u64,
    since: u64,
}

/// A relay. After any call of a `handle_*` method the owner polls [`Relay::poll_transmit`] and [`Relay::poll_event`] until they
/// return `None`, and asks [`Relay::next_timeout`] when to call [`Relay::handle_timeout`]. Time never goes backwards.
#[derive(Debug)]
pub struct Relay {
    config: RelayConfig,
    is_willing: bool,
    /// It has an address in the cluster.
    is_in_cluster: bool,
    pub(super) allies: BTreeMap<Ipv4Addr, Ally>,
    former: FormerAllies,
    /// Of clients with agreed keys, the highest counter so far.
    counters_of: BTreeMap<Ipv4Addr, u64>,
    introduced: BTreeMap<Ipv4Addr, Introduced>,
    /// How many keys were introduced.
    introductions: u64,
    advertise_at: Instant,
    sequence: u32,
    /// What clients repeat that are not known yet, so that nothing counts that was said before this relay began, or before it forgot a
    /// client; not 0.
    challenge: u64,
    transmits: VecDeque<ClusterTransmit>,
    events: VecDeque<RelayEvent>,
    counters: ClusterCounters,
    drops: crate::drop_counts::DropCounts<{ RelayDrop::ALL.len() }>,
}

impl Relay {
    /// A relay without allies, that is willing. `challenge` is a random number that this node has not used before.
    #[must_use]
    pub fn new(now: Instant, config: RelayConfig, challenge: u64) -> Self {
        Self {
            config,
            is_willing: true,
            is_in_cluster: true,
            allies: BTreeMap::new(),
            former: FormerAllies::default(),
            counters_of: BTreeMap::new(),
            introduced: BTreeMap::new(),
            introductions: 0,
            advertise_at: now,
            sequence: 0,
            challenge: challenge.max(1),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: ClusterCounters::default(),
            drops: crate::drop_counts::DropCounts::default(),
        }
    }

    /// The allies, by home address.
    pub fn allies(&self) -> impl Iterator<Item = &AllyRecord> {
        self.allies.values().map(|ally| &ally.record)
    }

    /// What it lends at present, and to whom.
    #[must_use]
    pub const fn config(&self) -> &RelayConfig {
        &self.config
    }

    /// Whether it lends its link.
    #[must_use]
    pub const fn is_willing(&self) -> bool {
        self.is_willing && self.is_in_cluster
    }

    /// The address on its own link, as long as it is willing and has the link.
    #[must_use]
    pub fn outside(&self) -> Option<Ipv4Addr> {
        self.is_willing.then_some(self.config.outside)
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.introduced.len().max(self.former.len())
    }

    /// Messages.
    #[must_use]
    pub const fn counters(&self) -> &ClusterCounters {
        &self.counters
    }

    /// Packets that were not relayed for this reason.
    #[must_use]
    pub fn dropped(&self, reason: RelayDrop) -> u64 {
        self.drops.of(reason as usize)
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<ClusterTransmit> {
        self.transmits.pop_front()
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<RelayEvent> {
        self.events.pop_front()
    }

    /// When to call [`Relay::handle_timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Instant {
        let expiry = self.allies.values().map(|ally| ally.record.expires).min();
        expiry.map_or(self.advertise_at, |at| at.min(self.advertise_at))
    }

    /// Advertises, and ends what has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        let expired = self.allies.values().filter(|ally| ally.record.expires <= now);
        let expired: Vec<_> = expired.map(|ally| ally.record.home_address).collect();
        for home_address in expired {
            // Both know when: nothing need be said.
            self.end(now, home_address, AllyEnd::Expired, None);
        }
        if self.advertise_at <= now {
            self.advertise_at = now + ADVERTISEMENT_INTERVAL;
            self.advertise();
        }
    }

    /// It has this address in this cluster now, or with `None` is in none: then all alliances end, and nothing is advertised.
    pub fn set_cluster(&mut self, now: Instant, place: Option<(Ipv4Addr, Prefix)>) {
        let stays = place.is_some_and(|place| place == (self.config.cluster, self.config.cluster_network));
        if stays && self.is_in_cluster {
            return;
        }
        // Nobody there could be told.
        let all: Vec<_> = self.allies.keys().copied().collect();
        all.into_iter().for_each(|home_address| self.end(now, home_address, AllyEnd::LeftCluster, None));
        self.is_in_cluster = place.is_some();
        if let Some((address, network)) = place {
            if address != self.config.cluster {
                // Clients introduce another key to each address.
                self.introduced.clear();
            }
            (self.config.cluster, self.config.cluster_network) = (address, network);
        }
        self.advertise_soon(now);
    }

    /// Advertises as soon as it may, and not while it is in no cluster.
    const fn advertise_soon(&mut self, now: Instant) {
        self.advertise_at = if self.is_in_cluster { now } else { Instant::MAX };
    }

    /// It lends under these conditions from now on, at the addresses that it has. Where it believes others than before, alliances end.
    pub fn set_conditions(&mut self, now: Instant, conditions: RelayConfig) {
        if conditions.trust != self.config.trust {
            self.end_all(now, AllyEnd::Unwilling, AllianceCode::Unwilling);
        }
        let RelayConfig { cluster, cluster_network, outside, .. } = self.config;
        self.config = RelayConfig { cluster, cluster_network, outside, ..conditions };
        self.advertise_soon(now);
    }

    /// Lends its link, or does not any more: then all alliances end.
    pub fn set_willing(&mut self, now: Instant, willing: bool) {
        if self.is_willing != willing {
            self.is_willing = willing;
            self.advertise_soon(now);
            if !willing {
                self.end_all(now, AllyEnd::Unwilling, AllianceCode::Unwilling);
            }
        }
    }

    /// Its own link has another address, or with `None` is gone: care-of addresses there are of no use any more.
    pub fn set_outside(&mut self, now: Instant, outside: Option<Ipv4Addr>) {
        if outside != Some(self.config.outside) || !self.is_willing {
            self.end_all(now, AllyEnd::LinkLost, AllianceCode::LinkLost);
        }
        self.is_willing = outside.is_some();
        self.config.outside = outside.unwrap_or(self.config.outside);
        self.advertise_soon(now);
    }

    fn end_all(&mut self, now: Instant, why: AllyEnd, code: AllianceCode) {
        let all: Vec<_> = self.allies.keys().copied().collect();
        all.into_iter().for_each(|home_address| self.end(now, home_address, why, Some(code)));
    }

    /// Ends an alliance; with a code the client is told.
    fn end(&mut self, now: Instant, home_address: Ipv4Addr, why: AllyEnd, code: Option<AllianceCode>) {
        let Some(Ally { record, home_agent, spi, nonce, meters, .. }) = self.allies.remove(&home_address)
        else {
            return;
        };
        let had = Had { inward: record.inward, outward: record.outward, meters };
        let barred_for = (why == AllyEnd::LimitReached).then_some(BARRED);
        let most = self.config.clients.saturating_mul(REMEMBERED);
        self.former.add(now, home_address, had, barred_for, most);
        self.events.push_back(RelayEvent::Ended { home_address, why });
        let Some(code) = code else { return };
        let withdrawal = Alliance {
            code,
            lifetime: 0,
            home_address,
            client: record.client,
            relay: self.config.cluster,
            outside: self.config.outside,
            home_agent,
            rate: None,
            cost: self.config.cost,
            challenge: self.challenge,
            counter: 0,
            nonce,
            key: None,
        };
        self.transmit(spi, None, &withdrawal, ShakeMessage::Withdrawal);
    }

    /// Sends the client a message about an alliance. `key` is the one that it introduces, should none of it be known.
    fn transmit(
        &mut self,
        spi: careof_wire::mip4::Spi,
        key: Option<IntroducedKey>,
        about: &Alliance,
        message: impl FnOnce(Alliance) -> ShakeMessage,
    ) {
        let &Alliance { client, home_address, .. } = about;
        let message = message(*about);
        let payload = match &self.config.trust {
            Trust::Keys { peers, .. } => {
                let key = peers.iter().find(|(peer, key)| *peer == home_address && key.spi == spi);
                let Some((_, key)) = key else { return };
                message.emit(Some(key.as_wire()))
            }
            Trust::FirstUse => {
                let known = self.introduced.get(&home_address).map(|known| known.key);
                let Some(key) = known.or(key.map(|key| key.0)) else { return };
                message.emit(Some(ShakeKey { spi: INTRODUCED, key: &key }))
            }
        };
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(ClusterTransmit { destination: Some(client), payload });
    }

    fn advertise(&mut self) {
        self.sequence = self.sequence.wrapping_add(1);
        let clients = if self.is_willing { self.config.clients.saturating_sub(self.allies.len()) } else { 0 };
        let advertisement = ShakeMessage::Advertisement(ClusterAdvertisement {
            sequence: self.sequence,
            willing: self.is_willing,
            cost: self.config.cost,
            downlink: self.config.downlink,
            uplink: self.config.uplink,
            outside: self.config.outside,
            cluster: self.config.cluster,
            clients: u16::try_from(clients).unwrap_or(u16::MAX),
            longest: seconds(self.config.longest),
            client_rate: self.config.client_rate,
        });
        let payload = match &self.config.trust {
            Trust::Keys { cluster, .. } => advertisement.emit(Some(cluster.as_wire())),
            Trust::FirstUse => advertisement.emit(None),
        };
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(ClusterTransmit { destination: None, payload });
    }

    /// A message has come from the cluster address `source`, with `ttl` hops of its time to live left.
    pub fn handle_message(&mut self, now: Instant, source: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        self.counters.received = self.counters.received.saturating_add(1);
        if ttl != CLUSTER_TTL || !self.config.cluster_network.contains(source) {
            return self.counters.drop(ClusterDrop::NotOfCluster);
        }
        let Ok(received) = ShakeMessage::parse(bytes) else {
            return self.counters.drop(ClusterDrop::Malformed);
        };
        let outcome = match received.message {
            // Others of the cluster lend, too.
            ShakeMessage::Advertisement(_) => Ok(()),
            ShakeMessage::Request(request) => self.handle_request(now, source, &received, &request),
            ShakeMessage::Withdrawal(withdrawal) => {
                self.handle_withdrawal(now, source, &received, &withdrawal)
            }
            ShakeMessage::Reply(_) | ShakeMessage::Feedback(_) => Err(ClusterDrop::NotForUs),
        };
        if let Err(reason) = outcome {
            self.counters.drop(reason);
        }
    }

    /// Whether a message about `alliance` comes from its client, and is new.
    fn check(
        &mut self,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        of: &Alliance,
    ) -> Result<Freshness, ClusterDrop> {
        // A message of the relay's own names its outside address: it cannot be turned back on it.
        let is_clients = of.client == source && of.outside.is_unspecified();
        if of.relay != self.config.cluster || !is_clients || of.client == of.relay {
            return Err(ClusterDrop::NotForUs);
        }
        let (challenge, highest) = match &self.config.trust {
            Trust::Keys { peers, .. } => {
                let mut keys = peers.iter().filter(|(peer, _)| *peer == of.home_address);
                if !keys.any(|(_, key)| key.has_made(received)) {
                    return Err(ClusterDrop::NotGenuine);
                }
                (self.challenge, self.counters_of.entry(of.home_address).or_default())
            }
            Trust::FirstUse => {
                if received.spi != Some(INTRODUCED) {
                    return Err(ClusterDrop::NotGenuine);
                }
                if !self.introduced.contains_key(&of.home_address) {
                    let key = of.key.map(|key| key.0).filter(|key| received.is_genuine(key));
                    let key = key.ok_or(ClusterDrop::NotGenuine)?;
                    if of.challenge != self.challenge {
                        return Ok(Freshness::Stale { challenge: self.challenge, counter: 0 });
                    }
                    self.introduce(of.home_address, key)?;
                }
                let known = self.introduced.get_mut(&of.home_address).ok_or(ClusterDrop::TableFull)?;
                if !received.is_genuine(&known.key) {
                    return Err(ClusterDrop::NotGenuine);
                }
                (known.challenge, &mut known.counter)
            }
        };
        if of.challenge != challenge || of.counter <= *highest {
            return Ok(Freshness::Stale { challenge, counter: *highest });
        }
        *highest = of.counter;
        Ok(Freshness::New)
    }

    /// Whether a client can have these addresses. Packets that come for one of the relay's own, or for one of the cluster, are not an
    /// ally's.
    fn can_have(&self, of: &Alliance) -> bool {
        let is_elsewhere = |address| {
            is_unicast(address)
                && address != self.config.outside
                && !self.config.cluster_network.contains(address)
        };
        of.home_address != of.home_agent && is_elsewhere(of.home_address) && is_elsewhere(of.home_agent)
    }

    /// Remembers a key. Those of former clients make room, the oldest first; that of an ally does not.
    fn introduce(&mut self, home_address: Ipv4Addr, key: [u8; 32]) -> Result<(), ClusterDrop> {
        let challenge = self.challenge;
        if self.introduced.len() >= self.config.clients.saturating_mul(REMEMBERED) {
            let former = self.introduced.iter().filter(|(home, _)| !self.allies.contains_key(home));
            let oldest = former.min_by_key(|(_, known)| known.since).map(|(&home, _)| home);
            self.introduced.remove(&oldest.ok_or(ClusterDrop::TableFull)?);
            self.challenge = self.challenge.wrapping_add(1).max(1);
        }
        self.introductions += 1;
        let since = self.introductions;
        self.introduced.insert(home_address, Introduced { key, challenge, counter: 0, since });
        Ok(())
    }

    fn handle_request(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        request: &Alliance,
    ) -> Result<(), ClusterDrop> {
        if !self.can_have(request) {
            return Err(ClusterDrop::UnusableAddress);
        }
        let spi = received.spi.unwrap_or(INTRODUCED);
        let reply = Alliance {
            code: AllianceCode::NotFresh,
            lifetime: 0,
            outside: self.config.outside,
            rate: self.config.client_rate,
            cost: self.config.cost,
            challenge: self.challenge,
            key: None,
            ..*request
        };
        if let Freshness::Stale { challenge, counter } = self.check(source, received, request)? {
            let reply = Alliance { challenge, counter, ..reply };
            self.transmit(spi, request.key, &reply, ShakeMessage::Reply);
            // Who asks for the first time cannot know the challenge.
            return if request.challenge == 0 { Ok(()) } else { Err(ClusterDrop::Replayed) };
        }
        let home_address = request.home_address;
        let ally = self.allies.get(&home_address);
        let is_spent =
            ally.map_or(self.former.is_barred(now, home_address), |ally| self.is_spent(&ally.record));
        let code = if !self.is_willing() {
            AllianceCode::Unwilling
        } else if is_spent {
            AllianceCode::LimitReached
        } else if ally.is_none() && self.allies.len() >= self.config.clients {
            AllianceCode::Full
        } else {
            AllianceCode::Accepted
        };
        let mut lifetime = 0;
        if code == AllianceCode::Accepted {
            lifetime = request.lifetime.min(seconds(self.config.longest));
            self.admit(now, request, lifetime, spi);
        } else {
            self.end(now, home_address, AllyEnd::LimitReached, None);
        }
        self.transmit(spi, None, &Alliance { code, lifetime, ..reply }, ShakeMessage::Reply);
        Ok(())
    }

    /// Makes the client an ally, or renews that for so many seconds.
    fn admit(&mut self, now: Instant, request: &Alliance, granted: u16, spi: careof_wire::mip4::Spi) {
        let &Alliance { home_address, home_agent, client, nonce, .. } = request;
        let before = self.allies.get(&home_address);
        let has_moved = before.is_none_or(|ally| ally.record.client != client);
        let Had { inward, outward, meters } = match before {
            Some(Ally { record, meters, .. }) => {
                Had { inward: record.inward, outward: record.outward, meters: *meters }
            }
            None => self.former.take(home_address),
        };
        let expires = now + Duration::from_secs(granted.into());
        let record = AllyRecord { home_address, client, expires, inward, outward };
        self.allies.insert(home_address, Ally { record, home_agent, granted, spi, nonce, meters });
        if has_moved {
            self.events.push_back(RelayEvent::Allied { home_address, client });
        }
    }

    fn handle_withdrawal(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        withdrawal: &Alliance,
    ) -> Result<(), ClusterDrop> {
        if !self.allies.contains_key(&withdrawal.home_address) {
            return Err(ClusterDrop::Unexpected);
        }
        match self.check(source, received, withdrawal)? {
            Freshness::New => {
                self.end(now, withdrawal.home_address, AllyEnd::Withdrawn, None);
                Ok(())
            }
            Freshness::Stale { .. } => Err(ClusterDrop::Replayed),
        }
    }

    fn is_spent(&self, record: &AllyRecord) -> bool {
        let bytes = record.inward.1.saturating_add(record.outward.1);
        self.config.client_bytes.is_some_and(|most| bytes >= most)
    }

    pub(super) fn refuse(&mut self, reason: RelayDrop) -> RelayDrop {
        self.drops.count(reason as usize);
        reason
    }

    pub(super) fn end_if_spent(&mut self, now: Instant, home_address: Ipv4Addr) {
        if self.allies.get(&home_address).is_some_and(|ally| self.is_spent(&ally.record)) {
            self.end(now, home_address, AllyEnd::LimitReached, Some(AllianceCode::LimitReached));
        }
    }

    /// For how long the alliance with `home_address` was last granted.
    #[must_use]
    pub fn granted(&self, home_address: Ipv4Addr) -> Option<Duration> {
        self.allies.get(&home_address).map(|ally| Duration::from_secs(ally.granted.into()))
    }
}

/// The agreed key of a peer, at a client by its cluster address.
pub(super) fn agreed(peers: &[(Ipv4Addr, ClusterKey)], peer: Ipv4Addr) -> Option<&ClusterKey> {
    peers.iter().find(|(known, _)| *known == peer).map(|(_, key)| key)
}

fn seconds(span: Duration) -> u16 {
    u16::try_from(span.as_secs()).unwrap_or(u16::MAX)
}
