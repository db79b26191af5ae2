//! A node that lends its link.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::shake::{
    Alliance, AllianceCode, ClusterAdvertisement, ReceivedShake, ShakeKey, ShakeMessage,
};

use super::meter::Meter;
use super::{
    ADVERTISEMENT_INTERVAL, ClusterCounters, ClusterDrop, ClusterKey, ClusterTransmit, INTRODUCED, Trust,
};
use crate::v4::Prefix;

/// Clients whose introduced keys are remembered after their alliance, for each that may be an ally.
const REMEMBERED: usize = 4;

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
    /// Bytes that one alliance may have in all; `None`: there is no limit.
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
    /// Packets and bytes to the client.
    pub inward: (u64, u64),
    /// Packets and bytes from it.
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
}

impl RelayDrop {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 3] = [Self::NoAlly, Self::WouldLoop, Self::OverRate];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoAlly => "no-ally",
            Self::WouldLoop => "would-loop",
            Self::OverRate => "over-rate",
        }
    }
}

/// Where a packet goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// To this client in the cluster, and nowhere else.
    ToClient(Ipv4Addr),
    /// By the relay's own link, not through another relay.
    ByOwnLink,
}

#[derive(Debug)]
struct Ally {
    record: AllyRecord,
    granted: u16,
    spi: careof_wire::mip4::Spi,
    inward: Meter,
    outward: Meter,
}

/// What is known of a client's key.
#[derive(Clone, Copy, Debug)]
struct Introduced {
    key: [u8; 32],
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
    allies: BTreeMap<Ipv4Addr, Ally>,
    /// Of clients with agreed keys, the highest counter so far.
    counters_of: BTreeMap<Ipv4Addr, u64>,
    introduced: BTreeMap<Ipv4Addr, Introduced>,
    /// How many keys were introduced.
    introductions: u64,
    advertise_at: Instant,
    sequence: u32,
    /// The counter of the withdrawals of ours.
    counter: u64,
    transmits: VecDeque<ClusterTransmit>,
    events: VecDeque<RelayEvent>,
    counters: ClusterCounters,
    drops: crate::drop_counts::DropCounts<{ RelayDrop::ALL.len() }>,
}

impl Relay {
    /// A relay without allies, that is willing. `counter` is higher than all that this node has used before under the same keys, as
    /// the time of day in nanoseconds is.
    #[must_use]
    pub fn new(now: Instant, config: RelayConfig, counter: u64) -> Self {
        Self {
            config,
            is_willing: true,
            is_in_cluster: true,
            allies: BTreeMap::new(),
            counters_of: BTreeMap::new(),
            introduced: BTreeMap::new(),
            introductions: 0,
            advertise_at: now,
            sequence: 0,
            counter,
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
        self.introduced.len()
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
            self.end(home_address, AllyEnd::Expired, None);
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
        all.into_iter().for_each(|home_address| self.end(home_address, AllyEnd::LeftCluster, None));
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
            self.end_all(AllyEnd::Unwilling, AllianceCode::Unwilling);
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
                self.end_all(AllyEnd::Unwilling, AllianceCode::Unwilling);
            }
        }
    }

    /// Its own link has another address, or with `None` is gone: care-of addresses there are of no use any more.
    pub fn set_outside(&mut self, now: Instant, outside: Option<Ipv4Addr>) {
        if outside != Some(self.config.outside) || !self.is_willing {
            self.end_all(AllyEnd::LinkLost, AllianceCode::LinkLost);
        }
        self.is_willing = outside.is_some();
        self.config.outside = outside.unwrap_or(self.config.outside);
        self.advertise_soon(now);
    }

    fn end_all(&mut self, why: AllyEnd, code: AllianceCode) {
        let all: Vec<_> = self.allies.keys().copied().collect();
        all.into_iter().for_each(|home_address| self.end(home_address, why, Some(code)));
    }

    /// Ends an alliance; with a code the client is told.
    fn end(&mut self, home_address: Ipv4Addr, why: AllyEnd, code: Option<AllianceCode>) {
        let Some(ally) = self.allies.remove(&home_address) else { return };
        self.events.push_back(RelayEvent::Ended { home_address, why });
        let Some(code) = code else { return };
        self.counter = self.counter.saturating_add(1);
        let withdrawal = Alliance {
            code,
            lifetime: 0,
            home_address,
            client: ally.record.client,
            relay: self.config.cluster,
            outside: self.config.outside,
            rate: None,
            counter: self.counter,
            nonce: 0,
            key: None,
        };
        self.transmit(ally.record.client, home_address, ally.spi, ShakeMessage::Withdrawal(withdrawal));
    }

    fn transmit(
        &mut self,
        to: Ipv4Addr,
        home_address: Ipv4Addr,
        spi: careof_wire::mip4::Spi,
        message: ShakeMessage,
    ) {
        let payload = match &self.config.trust {
            Trust::Keys { peers, .. } => {
                let key = peers.iter().find(|(peer, key)| *peer == home_address && key.spi == spi);
                let Some((_, key)) = key else { return };
                message.emit(Some(key.as_wire()))
            }
            Trust::FirstUse => {
                let Some(known) = self.introduced.get(&home_address) else { return };
                message.emit(Some(ShakeKey { spi: INTRODUCED, key: &known.key }))
            }
        };
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(ClusterTransmit { destination: Some(to), payload });
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

    /// A message has come from the cluster address `source`.
    pub fn handle_message(&mut self, now: Instant, source: Ipv4Addr, bytes: &[u8]) {
        self.counters.received = self.counters.received.saturating_add(1);
        let Ok(received) = ShakeMessage::parse(bytes) else {
            return self.counters.drop(ClusterDrop::Malformed);
        };
        match received.message {
            // Others of the cluster lend, too.
            ShakeMessage::Advertisement(_) => {}
            ShakeMessage::Request(request) => self.handle_request(now, source, &received, &request),
            ShakeMessage::Withdrawal(withdrawal) => self.handle_withdrawal(source, &received, &withdrawal),
            ShakeMessage::Reply(_) | ShakeMessage::Feedback(_) => self.counters.drop(ClusterDrop::NotForUs),
        }
    }

    /// Whether a message about `alliance` comes from its client, and is new.
    fn check(
        &mut self,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        of: &Alliance,
    ) -> Result<(), ClusterDrop> {
        // A message of the relay's own names its outside address: it cannot be turned back on it.
        let is_clients = of.client == source && of.outside.is_unspecified();
        if of.relay != self.config.cluster || !is_clients || of.client == of.relay {
            return Err(ClusterDrop::NotForUs);
        }
        match &self.config.trust {
            Trust::Keys { peers, .. } => {
                let mut keys = peers.iter().filter(|(peer, _)| *peer == of.home_address);
                if !keys.any(|(_, key)| key.has_made(received)) {
                    return Err(ClusterDrop::NotGenuine);
                }
                let last = self.counters_of.entry(of.home_address).or_default();
                if of.counter <= *last {
                    return Err(ClusterDrop::Replayed);
                }
                *last = of.counter;
            }
            Trust::FirstUse => {
                if received.spi != Some(INTRODUCED) {
                    return Err(ClusterDrop::NotGenuine);
                }
                if let Some(known) = self.introduced.get_mut(&of.home_address) {
                    if !received.is_genuine(&known.key) {
                        return Err(ClusterDrop::NotGenuine);
                    }
                    if of.counter <= known.counter {
                        return Err(ClusterDrop::Replayed);
                    }
                    known.counter = of.counter;
                    return Ok(());
                }
                let key = of.key.map(|key| key.0).filter(|key| received.is_genuine(key));
                let key = key.ok_or(ClusterDrop::NotGenuine)?;
                self.introduce(of.home_address, key, of.counter)?;
            }
        }
        Ok(())
    }

    /// Remembers a key. Those of former clients make room, the oldest first; that of an ally does not.
    fn introduce(&mut self, home_address: Ipv4Addr, key: [u8; 32], counter: u64) -> Result<(), ClusterDrop> {
        if self.introduced.len() >= self.config.clients.saturating_mul(REMEMBERED) {
            let former = self.introduced.iter().filter(|(home, _)| !self.allies.contains_key(home));
            let oldest = former.min_by_key(|(_, known)| known.since).map(|(&home, _)| home);
            self.introduced.remove(&oldest.ok_or(ClusterDrop::TableFull)?);
        }
        self.introductions += 1;
        self.introduced.insert(home_address, Introduced { key, counter, since: self.introductions });
        Ok(())
    }

    fn handle_request(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        request: &Alliance,
    ) {
        if let Err(reason) = self.check(source, received, request) {
            return self.counters.drop(reason);
        }
        let home_address = request.home_address;
        let is_renewal = self.allies.contains_key(&home_address);
        let is_spent = self.allies.get(&home_address).is_some_and(|ally| self.is_spent(&ally.record));
        let code = if !self.is_willing() {
            AllianceCode::Unwilling
        } else if is_spent {
            AllianceCode::LimitReached
        } else if !is_renewal && self.allies.len() >= self.config.clients {
            AllianceCode::Full
        } else {
            AllianceCode::Accepted
        };
        let granted = request.lifetime.min(seconds(self.config.longest));
        let spi = received.spi.unwrap_or(INTRODUCED);
        if code == AllianceCode::Accepted {
            let expires = now + Duration::from_secs(granted.into());
            let before = self.allies.get(&home_address);
            let (inward, outward) =
                before.map_or(((0, 0), (0, 0)), |ally| (ally.record.inward, ally.record.outward));
            let (in_meter, out_meter) =
                before.map_or((Meter::default(), Meter::default()), |ally| (ally.inward, ally.outward));
            let has_moved = before.is_none_or(|ally| ally.record.client != source);
            let record = AllyRecord { home_address, client: source, expires, inward, outward };
            let ally = Ally { record, granted, spi, inward: in_meter, outward: out_meter };
            self.allies.insert(home_address, ally);
            if has_moved {
                self.events.push_back(RelayEvent::Allied { home_address, client: source });
            }
        } else if is_renewal {
            self.end(home_address, AllyEnd::LimitReached, None);
        }
        let reply = Alliance {
            code,
            lifetime: if code == AllianceCode::Accepted { granted } else { 0 },
            outside: self.config.outside,
            rate: self.config.client_rate,
            key: None,
            ..*request
        };
        self.transmit(source, home_address, spi, ShakeMessage::Reply(reply));
    }

    fn handle_withdrawal(&mut self, source: Ipv4Addr, received: &ReceivedShake<'_>, withdrawal: &Alliance) {
        if !self.allies.contains_key(&withdrawal.home_address) {
            return self.counters.drop(ClusterDrop::Unexpected);
        }
        match self.check(source, received, withdrawal) {
            Ok(()) => self.end(withdrawal.home_address, AllyEnd::Withdrawn, None),
            Err(reason) => self.counters.drop(reason),
        }
    }

    fn is_spent(&self, record: &AllyRecord) -> bool {
        let bytes = record.inward.1.saturating_add(record.outward.1);
        self.config.client_bytes.is_some_and(|most| bytes >= most)
    }

    /// A packet of `len` bytes has come by the relay's link, out of a tunnel, that is for `destination`.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn forward_inward(
        &mut self,
        now: Instant,
        destination: Ipv4Addr,
        len: u32,
    ) -> Result<Forwarded, RelayDrop> {
        let rate = self.config.client_rate;
        let Some(ally) = self.allies.get_mut(&destination).filter(|ally| now < ally.record.expires) else {
            return Err(self.refuse(RelayDrop::NoAlly));
        };
        if !ally.inward.take(now, len, rate) {
            return Err(self.refuse(RelayDrop::OverRate));
        }
        count(&mut ally.record.inward, len);
        let client = ally.record.client;
        self.end_if_spent(destination);
        Ok(Forwarded::ToClient(client))
    }

    /// A packet of `len` bytes has come from the cluster address `client`, from `source` to `destination`. Through a tunnel to the home
    /// agent these are of the inner header.
    ///
    /// # Errors
    /// Why it is not passed on; that is counted.
    pub fn forward_outward(
        &mut self,
        now: Instant,
        client: Ipv4Addr,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        len: u32,
    ) -> Result<Forwarded, RelayDrop> {
        let rate = self.config.client_rate;
        let leads_back = self.config.cluster_network.contains(destination)
            || destination == self.config.outside
            || self.allies.contains_key(&destination);
        let is_its = |ally: &&mut Ally| ally.record.client == client && now < ally.record.expires;
        let Some(ally) = self.allies.get_mut(&source).filter(is_its) else {
            return Err(self.refuse(RelayDrop::NoAlly));
        };
        if leads_back {
            return Err(self.refuse(RelayDrop::WouldLoop));
        }
        if !ally.outward.take(now, len, rate) {
            return Err(self.refuse(RelayDrop::OverRate));
        }
        count(&mut ally.record.outward, len);
        self.end_if_spent(source);
        Ok(Forwarded::ByOwnLink)
    }

    fn refuse(&mut self, reason: RelayDrop) -> RelayDrop {
        self.drops.count(reason as usize);
        reason
    }

    fn end_if_spent(&mut self, home_address: Ipv4Addr) {
        if self.allies.get(&home_address).is_some_and(|ally| self.is_spent(&ally.record)) {
            self.end(home_address, AllyEnd::LimitReached, Some(AllianceCode::LimitReached));
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

fn count(counts: &mut (u64, u64), len: u32) {
    counts.0 = counts.0.saturating_add(1);
    counts.1 = counts.1.saturating_add(u64::from(len));
}

fn seconds(span: Duration) -> u16 {
    u16::try_from(span.as_secs()).unwrap_or(u16::MAX)
}
