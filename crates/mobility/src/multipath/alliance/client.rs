//! A node that uses the links of others.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{DataRate, Instant, Randomness};
use careof_wire::shake::{
    Alliance, AllianceCode, ClusterAdvertisement, IntroducedKey, ReceivedShake, ShakeKey, ShakeMessage,
};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::relay::agreed;
use super::{
    ADVERTISEMENT_INTERVAL, ClusterCounters, ClusterDrop, ClusterTransmit, INTRODUCED, MISSED_ADVERTISEMENTS,
    Trust,
};

/// Relays that are known at a time: whoever floods the cluster with advertisements fills no more than this.
const KNOWN: usize = 32;
/// Until the first request is repeated; then twice as long each time, up to the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(32);
/// For how long a relay may be silent, or dead.
const PATIENCE: Duration =
    Duration::from_secs(ADVERTISEMENT_INTERVAL.as_secs() * MISSED_ADVERTISEMENTS as u64);
/// A relay that has denied is not asked again for so long.
const DENIED: Duration = Duration::from_secs(60);

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// Its address in the cluster.
    pub cluster: Ipv4Addr,
    /// Relays that it uses at a time.
    pub relays: usize,
    /// The most that a link may cost.
    pub highest_cost: u16,
    /// For how long it asks at once.
    pub lifetime: Duration,
    /// Whom it believes.
    pub trust: Trust,
    /// What the keys that it introduces follow from, with [`Trust::FirstUse`]. It is to be the same after a restart: relays keep to
    /// the first key that they have seen of a client.
    pub secret: IntroducedKey,
}

/// Why a relay is not of use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RelayLost {
    /// Nothing was heard of it for three intervals.
    Silent,
    /// The time that it granted is up.
    Expired,
    /// It has said so.
    Withdrawn(AllianceCode),
    /// The client wished it.
    Left,
    /// It advertises, but nothing came through it for as long as three advertisements take.
    Dead,
    /// The client is not in the cluster any more.
    LeftCluster,
}

impl RelayLost {
    /// Why, in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Silent => "nothing is heard of it",
            Self::Expired => "its time is up",
            Self::Withdrawn(_) => "it says so",
            Self::Left => "it was left",
            Self::Dead => "nothing comes through it",
            Self::LeftCluster => "the node is not in the cluster any more",
        }
    }
}

/// The secret of a client ([`ClientConfig::secret`]) that follows from a key that the node has anyway: it is the same after a restart, and
/// another one with another key. Relays learn no more of that key than whoever sees a message with an authenticator made with it.
#[must_use]
pub fn client_secret(key: &[u8]) -> IntroducedKey {
    IntroducedKey(mac(key, b"careof: introduced to relays"))
}

/// What a client tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// There is a care-of address more, to be registered as a relay's (`RequestFlags::RELAYED` of Mobile IPv4), and a route by way
    /// of the relay.
    RelayGained {
        /// Where the relay is in the cluster.
        relay: Ipv4Addr,
        /// The care-of address.
        outside: Ipv4Addr,
        /// What the relay says that the path carries towards here; what is measured counts more.
        downlink: Option<DataRate>,
        /// The same away from here.
        uplink: Option<DataRate>,
        /// What it costs.
        cost: u16,
    },
    /// The care-of address is to be deregistered, and the route taken away.
    RelayLost {
        /// Where the relay was in the cluster.
        relay: Ipv4Addr,
        /// The care-of address.
        outside: Ipv4Addr,
        /// Why.
        why: RelayLost,
    },
}

#[derive(Debug)]
struct Pending {
    nonce: u64,
    counter: u64,
    retry_at: Instant,
    pause: Duration,
}

#[derive(Debug)]
struct Known {
    advertisement: ClusterAdvertisement,
    heard: Instant,
    pending: Option<Pending>,
    /// The care-of address, until when, and when that is renewed.
    granted: Option<(Ipv4Addr, Instant, Instant)>,
    not_before: Instant,
    /// The key that was introduced to it.
    key: [u8; 32],
    /// The highest counter of its withdrawals.
    counter: u64,
    /// Since when nothing comes through it.
    dead_since: Option<Instant>,
}

/// The key that is introduced to `relay`: another one to each, so that none can pose as the client at another one.
fn key_for(secret: &IntroducedKey, relay: Ipv4Addr) -> [u8; 32] {
    mac(&secret.0, &relay.octets())
}

fn mac(key: &[u8], message: &[u8]) -> [u8; 32] {
    // HMAC takes keys of any length, so the error `new_from_slice` shares with other codes never happens.
    let Ok(mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(key) else { unreachable!("HMAC refused a key") };
    let made = mac.chain_update(message).finalize();
    let mut code = [0; 32];
    code.iter_mut().zip(made.as_bytes().iter()).for_each(|(to, from)| *to = *from);
    code
}

/// A client of relays. It is driven as a [`super::Relay`] is.
#[derive(Debug)]
pub struct Client {
    config: ClientConfig,
    known: BTreeMap<Ipv4Addr, Known>,
    /// Relays that fell silent, and until when they may still count this node among their allies: its place is not one of those that they
    /// advertise.
    former: BTreeMap<Ipv4Addr, Instant>,
    counter: u64,
    random: Randomness,
    transmits: VecDeque<ClusterTransmit>,
    events: VecDeque<ClientEvent>,
    counters: ClusterCounters,
}

impl Client {
    /// A client that knows no relay. `counter` is higher than all that this node has used before under the same keys, as the time of
    /// day in nanoseconds is.
    #[must_use]
    pub fn new(config: ClientConfig, counter: u64, random: impl Into<Randomness>) -> Self {
        Self {
            config,
            known: BTreeMap::new(),
            former: BTreeMap::new(),
            counter,
            random: random.into(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: ClusterCounters::default(),
        }
    }

    /// Its address in the cluster.
    #[must_use]
    pub const fn cluster(&self) -> Ipv4Addr {
        self.config.cluster
    }

    /// It has this address in the cluster now, or with `None` is in none. Relays that were heard at another address are forgotten.
    pub fn set_cluster(&mut self, cluster: Option<Ipv4Addr>) {
        if cluster == Some(self.config.cluster) {
            return;
        }
        for (relay, known) in core::mem::take(&mut self.known) {
            if let Some((outside, ..)) = known.granted {
                let why = RelayLost::LeftCluster;
                self.events.push_back(ClientEvent::RelayLost { relay, outside, why });
            }
        }
        // No relay has this address, and no message is for it.
        self.config.cluster = cluster.unwrap_or(Ipv4Addr::UNSPECIFIED);
    }

    /// Whether anything comes through a relay in use, as those know who measure the path ([`crate::multipath::PathChange`]). One that is
    /// dead for long is left for another one.
    pub fn note_path(&mut self, now: Instant, relay: Ipv4Addr, works: bool) {
        if let Some(known) = self.known.get_mut(&relay).filter(|known| known.granted.is_some()) {
            known.dead_since = if works { None } else { known.dead_since.or(Some(now)) };
        }
    }

    /// Messages.
    #[must_use]
    pub const fn counters(&self) -> &ClusterCounters {
        &self.counters
    }

    /// The relays in use, and their care-of addresses.
    pub fn relays(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.known.iter().filter_map(|(&relay, known)| known.granted.map(|(outside, ..)| (relay, outside)))
    }

    /// How many relays are known.
    #[must_use]
    pub fn known(&self) -> usize {
        self.known.len()
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<ClusterTransmit> {
        self.transmits.pop_front()
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    fn silent_at(known: &Known) -> Instant {
        known.heard + PATIENCE
    }

    /// When to call [`Client::handle_timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        let due = self.known.values().flat_map(|known| {
            let pending = known.pending.as_ref().map(|pending| pending.retry_at);
            let granted =
                known.granted.map(
                    |(_, expires, renew_at)| {
                        if known.pending.is_some() { expires } else { expires.min(renew_at) }
                    },
                );
            let dead = known.dead_since.map(|since| since + PATIENCE);
            [Some(Self::silent_at(known)), pending, granted, dead]
        });
        due.flatten().min()
    }

    /// Renews, repeats, and gives up.
    pub fn handle_timeout(&mut self, now: Instant) {
        let relays: Vec<_> = self.known.keys().copied().collect();
        for relay in relays {
            let Some(known) = self.known.get(&relay) else { continue };
            let expires = known.granted.map(|(_, expires, _)| expires);
            if Self::silent_at(known) <= now {
                self.lose(now, relay, RelayLost::Silent);
                self.known.remove(&relay);
                continue;
            }
            if known.dead_since.is_some_and(|since| since + PATIENCE <= now) {
                self.give_up(now, relay, RelayLost::Dead);
            } else if expires.is_some_and(|at| at <= now) {
                self.lose(now, relay, RelayLost::Expired);
            }
            let Some(known) = self.known.get(&relay) else { continue };
            let repeats = known.pending.as_ref().is_some_and(|pending| pending.retry_at <= now);
            let renews = known.pending.is_none() && known.granted.is_some_and(|(.., at)| at <= now);
            if repeats || renews {
                self.ask(now, relay);
            }
        }
        self.choose(now);
    }

    /// Gives a relay up, and tells it.
    pub fn leave(&mut self, now: Instant, relay: Ipv4Addr) {
        self.give_up(now, relay, RelayLost::Left);
    }

    fn give_up(&mut self, now: Instant, relay: Ipv4Addr, why: RelayLost) {
        if self.known.get(&relay).is_some_and(|known| known.granted.is_some()) {
            let counter = self.next_counter();
            self.send(relay, |client, known| {
                ShakeMessage::Withdrawal(client.message(known, counter, 0, Duration::ZERO, None))
            });
            self.lose(now, relay, why);
        }
    }

    fn lose(&mut self, now: Instant, relay: Ipv4Addr, why: RelayLost) {
        let Some(known) = self.known.get_mut(&relay) else { return };
        (known.pending, known.dead_since) = (None, None);
        known.not_before = now + if matches!(why, RelayLost::Expired) { Duration::ZERO } else { DENIED };
        if let Some((outside, expires, _)) = known.granted.take() {
            if why == RelayLost::Silent && self.former.len() < KNOWN {
                self.former.insert(relay, expires);
            }
            self.events.push_back(ClientEvent::RelayLost { relay, outside, why });
        }
    }

    fn next_counter(&mut self) -> u64 {
        self.counter = self.counter.saturating_add(1);
        self.counter
    }

    /// Asks the best relays that may be used for what is still wanted.
    fn choose(&mut self, now: Instant) {
        self.former.retain(|_, expires| now < *expires);
        loop {
            let in_use =
                self.known.values().filter(|known| known.granted.is_some() || known.pending.is_some());
            if in_use.count() >= self.config.relays {
                return;
            }
            let candidates = self.known.iter().filter(|(relay, known)| {
                let ad = &known.advertisement;
                known.granted.is_none()
                    && known.pending.is_none()
                    && ad.willing
                    && (ad.clients > 0 || self.former.contains_key(*relay))
                    && ad.cost <= self.config.highest_cost
                    && known.not_before <= now
            });
            let best = candidates.min_by_key(|(relay, known)| {
                (known.advertisement.cost, core::cmp::Reverse(known.advertisement.downlink), **relay)
            });
            let Some((&relay, _)) = best else { return };
            self.ask(now, relay);
        }
    }

    fn ask(&mut self, now: Instant, relay: Ipv4Addr) {
        let (nonce, counter) = (self.random.next_u64(), self.next_counter());
        let Some(known) = self.known.get_mut(&relay) else { return };
        let pause =
            known.pending.as_ref().map_or(FIRST_RETRY, |pending| (pending.pause * 2).min(LONGEST_RETRY));
        known.pending = Some(Pending { nonce, counter, retry_at: now + pause, pause });
        let key = matches!(self.config.trust, Trust::FirstUse).then_some(IntroducedKey(known.key));
        self.send(relay, |client, known| {
            ShakeMessage::Request(client.message(known, counter, nonce, client.config.lifetime, key))
        });
    }

    fn message(
        &self,
        known: &Known,
        counter: u64,
        nonce: u64,
        lifetime: Duration,
        key: Option<IntroducedKey>,
    ) -> Alliance {
        Alliance {
            code: AllianceCode::Accepted,
            lifetime: u16::try_from(lifetime.as_secs()).unwrap_or(u16::MAX),
            home_address: self.config.home_address,
            client: self.config.cluster,
            relay: known.advertisement.cluster,
            outside: Ipv4Addr::UNSPECIFIED,
            rate: None,
            counter,
            nonce,
            key,
        }
    }

    fn send(&mut self, relay: Ipv4Addr, message: impl Fn(&Self, &Known) -> ShakeMessage) {
        let Some(known) = self.known.get(&relay) else { return };
        let message = message(self, known);
        let payload = match &self.config.trust {
            Trust::Keys { peers, .. } => {
                let Some(key) = agreed(peers, relay) else { return };
                message.emit(Some(key.as_wire()))
            }
            Trust::FirstUse => message.emit(Some(ShakeKey { spi: INTRODUCED, key: &known.key })),
        };
        self.counters.sent = self.counters.sent.saturating_add(1);
        self.transmits.push_back(ClusterTransmit { destination: Some(relay), payload });
    }

    /// A message has come from the cluster address `source`.
    pub fn handle_message(&mut self, now: Instant, source: Ipv4Addr, bytes: &[u8]) {
        self.counters.received = self.counters.received.saturating_add(1);
        let Ok(received) = ShakeMessage::parse(bytes) else {
            return self.counters.drop(ClusterDrop::Malformed);
        };
        let outcome = match received.message {
            ShakeMessage::Advertisement(advertisement) => {
                self.handle_advertisement(now, source, &received, advertisement)
            }
            ShakeMessage::Reply(reply) => self.handle_reply(now, source, &received, &reply),
            ShakeMessage::Withdrawal(withdrawal) => {
                self.handle_withdrawal(now, source, &received, &withdrawal)
            }
            ShakeMessage::Request(_) | ShakeMessage::Feedback(_) => Err(ClusterDrop::NotForUs),
        };
        if let Err(reason) = outcome {
            self.counters.drop(reason);
        }
    }

    fn handle_advertisement(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        advertisement: ClusterAdvertisement,
    ) -> Result<(), ClusterDrop> {
        // One's own comes back from a broadcast. Who is in no cluster can ask nobody.
        let is_elsewhere = self.config.cluster.is_unspecified() || advertisement.cluster != source;
        if is_elsewhere || source == self.config.cluster {
            return Err(ClusterDrop::NotForUs);
        }
        if let Trust::Keys { cluster, peers } = &self.config.trust
            && (!cluster.has_made(received) || agreed(peers, source).is_none())
        {
            return Err(ClusterDrop::NotGenuine);
        }
        let is_full = self.known.len() >= KNOWN;
        match self.known.get_mut(&source) {
            Some(known) => {
                let is_later = (advertisement.sequence.wrapping_sub(known.advertisement.sequence) as i32) > 0;
                if !is_later {
                    return Err(ClusterDrop::Replayed);
                }
                (known.advertisement, known.heard) = (advertisement, now);
                if known.granted.is_some_and(|(outside, ..)| outside != advertisement.outside) {
                    self.lose(now, source, RelayLost::Withdrawn(AllianceCode::LinkLost));
                }
            }
            None if is_full => return Err(ClusterDrop::TableFull),
            None => {
                let key = key_for(&self.config.secret, source);
                let (pending, granted, not_before, counter) = (None, None, now, 0);
                let (heard, dead_since) = (now, None);
                let known =
                    Known { advertisement, heard, pending, granted, not_before, key, counter, dead_since };
                self.known.insert(source, known);
            }
        }
        self.choose(now);
        Ok(())
    }

    /// Whether a message comes from the relay `source`, about us.
    fn check(
        &self,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        of: &Alliance,
    ) -> Result<(), ClusterDrop> {
        let is_ours = of.relay == source && of.home_address == self.config.home_address;
        // A message of the client's own names no outside address: it cannot be turned back on it.
        if !is_ours || of.client != self.config.cluster || of.outside.is_unspecified() {
            return Err(ClusterDrop::NotForUs);
        }
        let known = self.known.get(&source).ok_or(ClusterDrop::Unexpected)?;
        let is_genuine = match &self.config.trust {
            Trust::Keys { peers, .. } => agreed(peers, source).is_some_and(|key| key.has_made(received)),
            Trust::FirstUse => received.spi == Some(INTRODUCED) && received.is_genuine(&known.key),
        };
        if is_genuine { Ok(()) } else { Err(ClusterDrop::NotGenuine) }
    }

    fn handle_reply(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        reply: &Alliance,
    ) -> Result<(), ClusterDrop> {
        self.check(source, received, reply)?;
        let known = self.known.get_mut(&source).ok_or(ClusterDrop::Unexpected)?;
        let is_awaited = |pending: &Pending| (pending.nonce, pending.counter) == (reply.nonce, reply.counter);
        if !known.pending.as_ref().is_some_and(is_awaited) {
            return Err(ClusterDrop::Unexpected);
        }
        if reply.code != AllianceCode::Accepted || reply.lifetime == 0 {
            self.lose(now, source, RelayLost::Withdrawn(reply.code));
            self.choose(now);
            return Ok(());
        }
        known.pending = None;
        let granted = Duration::from_secs(reply.lifetime.into());
        let before = known.granted.replace((reply.outside, now + granted, now + granted / 2));
        let ClusterAdvertisement { downlink, uplink, cost, .. } = known.advertisement;
        let limited = |rate: Option<DataRate>| match (rate, reply.rate) {
            (Some(rate), Some(limit)) => Some(rate.min(limit)),
            (rate, limit) => rate.or(limit),
        };
        let (downlink, uplink) = (limited(downlink), limited(uplink));
        let outside = reply.outside;
        if let Some((former, ..)) = before.filter(|&(former, ..)| former != outside) {
            let why = RelayLost::Withdrawn(AllianceCode::LinkLost);
            self.events.push_back(ClientEvent::RelayLost { relay: source, outside: former, why });
        }
        if before.is_none_or(|(former, ..)| former != outside) {
            self.events.push_back(ClientEvent::RelayGained {
                relay: source,
                outside,
                downlink,
                uplink,
                cost,
            });
        }
        Ok(())
    }

    fn handle_withdrawal(
        &mut self,
        now: Instant,
        source: Ipv4Addr,
        received: &ReceivedShake<'_>,
        withdrawal: &Alliance,
    ) -> Result<(), ClusterDrop> {
        self.check(source, received, withdrawal)?;
        let known = self.known.get_mut(&source).ok_or(ClusterDrop::Unexpected)?;
        if withdrawal.counter <= known.counter {
            return Err(ClusterDrop::Replayed);
        }
        known.counter = withdrawal.counter;
        self.lose(now, source, RelayLost::Withdrawn(withdrawal.code));
        self.choose(now);
        Ok(())
    }
}
