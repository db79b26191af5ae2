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
    ADVERTISEMENT_INTERVAL, CLUSTER_TTL, ClusterCounters, ClusterDrop, ClusterTransmit, INTRODUCED,
    MISSED_ADVERTISEMENTS, Trust,
};
use crate::v4::{Prefix, is_unicast};

/// Relays that are known at a time: whoever floods the cluster with advertisements fills no more than this.
const KNOWN: usize = 32;
/// Until the first request is repeated; then twice as long each time, up to the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(32);
/// Requests to a relay that is not an ally yet before it is given up, for as long as one that has denied: 15 s without an answer.
const REQUESTS: u32 = 4;
/// For how long a relay may be silent, or dead.
const PATIENCE: Duration =
    Duration::from_secs(ADVERTISEMENT_INTERVAL.as_secs() * MISSED_ADVERTISEMENTS as u64);
/// A relay that has denied, or does not answer, is not asked again for so long.
const DENIED: Duration = Duration::from_secs(60);

/// What a client wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// Its home agent, the only node that relays pass packets on to and from; `None` as long as it is not known: no relay is asked then.
    pub home_agent: Option<Ipv4Addr>,
    /// Its address in the cluster.
    pub cluster: Ipv4Addr,
    /// The cluster: only what comes from there counts.
    pub cluster_network: Prefix,
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
    /// The care-of address that it names is the node's own, its home agent's, one of the cluster, another relay's, or nobody's.
    UnusableAddress,
    /// Its link costs more than it may.
    TooDear,
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
            Self::UnusableAddress => "its address cannot be used",
            Self::TooDear => "it costs too much",
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
    /// How many of them there were in a row.
    requests: u32,
}

/// What a relay has granted.
#[derive(Clone, Copy, Debug)]
struct Granted {
    outside: Ipv4Addr,
    expires: Instant,
    renew_at: Instant,
    /// That of the request, which the relay repeats when it withdraws.
    nonce: u64,
}

#[derive(Debug)]
struct Known {
    advertisement: ClusterAdvertisement,
    heard: Instant,
    pending: Option<Pending>,
    granted: Option<Granted>,
    not_before: Instant,
    /// The key that was introduced to it.
    key: [u8; 32],
    /// What it wants to have repeated; 0 as long as it has not said so.
    challenge: u64,
    /// Since when nothing comes through it: from the beginning, until something does.
    dead_since: Option<Instant>,
}

impl Known {
    const fn works(&self) -> bool {
        self.granted.is_some() && self.dead_since.is_none()
    }
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
    /// Addresses of this host.
    own: Vec<Ipv4Addr>,
    /// Something comes by one of the node's own paths.
    own_path_works: bool,
    counter: u64,
    random: Randomness,
    transmits: VecDeque<ClusterTransmit>,
    events: VecDeque<ClientEvent>,
    counters: ClusterCounters,
}

impl Client {
    /// A client that knows no relay. `counter` is better higher than all that this node has used before under the same keys, as the time of
    /// day in nanoseconds is: what is too low is put right by each relay with one message more.
    #[must_use]
    pub fn new(config: ClientConfig, counter: u64, random: impl Into<Randomness>) -> Self {
        Self {
            config,
            known: BTreeMap::new(),
            former: BTreeMap::new(),
            own: Vec::new(),
            own_path_works: false,
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

    /// It has this address in this cluster now, or with `None` is in none. Relays that were heard at another address are forgotten.
    pub fn set_cluster(&mut self, place: Option<(Ipv4Addr, Prefix)>) {
        // No relay has the unspecified address, and no message is for it.
        let (cluster, network) = place.unwrap_or((Ipv4Addr::UNSPECIFIED, self.config.cluster_network));
        if (cluster, network) == (self.config.cluster, self.config.cluster_network) {
            return;
        }
        for (relay, known) in core::mem::take(&mut self.known) {
            if let Some(Granted { outside, .. }) = known.granted {
                let why = RelayLost::LeftCluster;
                self.events.push_back(ClientEvent::RelayLost { relay, outside, why });
            }
        }
        (self.config.cluster, self.config.cluster_network) = (cluster, network);
    }

    /// Its home agent is this one now. Relays in use are told.
    pub fn set_home_agent(&mut self, now: Instant, home_agent: Option<Ipv4Addr>) {
        if home_agent == self.config.home_agent {
            return;
        }
        self.config.home_agent = home_agent;
        self.leave_unusable(now);
        if home_agent.is_some() {
            let in_use: Vec<_> = self.relays().map(|(relay, _)| relay).collect();
            in_use.into_iter().for_each(|relay| self.ask(now, relay));
            self.choose(now);
        }
    }

    /// This host has these addresses. No relay has one of them.
    pub fn set_own_addresses(&mut self, now: Instant, own: Vec<Ipv4Addr>) {
        if own != self.own {
            self.own = own;
            self.leave_unusable(now);
            self.choose(now);
        }
    }

    fn leave_unusable(&mut self, now: Instant) {
        let unusable = self.relays().filter(|&(relay, outside)| !self.can_be_relays(relay, outside));
        let unusable: Vec<_> = unusable.map(|(relay, _)| relay).collect();
        unusable.into_iter().for_each(|relay| self.give_up(now, relay, RelayLost::UnusableAddress));
    }

    /// Whether `outside` can be the address of the relay's own link. What is sent there would not come back through the relay, or by a
    /// path that there is already.
    fn can_be_relays(&self, relay: Ipv4Addr, outside: Ipv4Addr) -> bool {
        is_unicast(outside)
            && outside != self.config.home_address
            && Some(outside) != self.config.home_agent
            && !self.config.cluster_network.contains(outside)
            && !self.own.contains(&outside)
            && !self.relays().any(|(other, of_other)| other != relay && of_other == outside)
    }

    /// Whether anything comes through a relay in use, as those know who measure the path ([`crate::multipath::BondEvent`]). One that is
    /// dead for long is left, where there is anything else.
    pub fn note_path(&mut self, now: Instant, relay: Ipv4Addr, works: bool) {
        let nothing_did = !self.has_way();
        let Some(known) = self.known.get_mut(&relay).filter(|known| known.granted.is_some()) else { return };
        known.dead_since = if works { None } else { known.dead_since.or(Some(now)) };
        if works && nothing_did {
            self.wait_anew(now);
        }
    }

    /// Whether anything comes by a path of the node's own. As long as nothing does, it may not be the relays' fault that nothing comes
    /// through them.
    pub fn note_own_path(&mut self, now: Instant, works: bool) {
        let nothing_did = !self.has_way();
        self.own_path_works = works;
        if works && nothing_did {
            self.wait_anew(now);
        }
    }

    /// Whether anything comes by whichever path.
    fn has_way(&self) -> bool {
        self.own_path_works || self.known.values().any(Known::works)
    }

    /// Only now there is anybody to answer through the relays.
    fn wait_anew(&mut self, now: Instant) {
        self.known.values_mut().filter_map(|known| known.dead_since.as_mut()).for_each(|since| *since = now);
    }

    /// Messages.
    #[must_use]
    pub const fn counters(&self) -> &ClusterCounters {
        &self.counters
    }

    /// The relays in use, and their care-of addresses.
    pub fn relays(&self) -> impl Iterator<Item = (Ipv4Addr, Ipv4Addr)> {
        self.known.iter().filter_map(|(&relay, known)| Some((relay, known.granted?.outside)))
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
        let due = self.known.iter().flat_map(|(&relay, known)| {
            let pending = known.pending.as_ref().map(|pending| pending.retry_at);
            let granted =
                known.granted.map(
                    |Granted { expires, renew_at, .. }| {
                        if known.pending.is_some() { expires } else { expires.min(renew_at) }
                    },
                );
            [Some(Self::silent_at(known)), pending, granted, self.leave_at(relay, known)]
        });
        due.flatten().min()
    }

    /// When a relay that nothing comes through is left: not before there is anything else to use. If nothing is to be had by any other way,
    /// it may be the home agent that does not answer.
    fn leave_at(&self, relay: Ipv4Addr, known: &Known) -> Option<Instant> {
        let at = known.granted.and(known.dead_since)? + PATIENCE;
        let others = || self.known.iter().filter(|(other, _)| **other != relay);
        if self.own_path_works || others().any(|(_, other)| other.works()) {
            return Some(at);
        }
        let candidates = others().filter(|(other, known)| self.is_candidate(**other, known));
        candidates.map(|(_, other)| other.not_before).min().map(|free| at.max(free))
    }

    /// Whether a relay may be asked, once its time to be left alone is over.
    fn is_candidate(&self, relay: Ipv4Addr, known: &Known) -> bool {
        let ad = &known.advertisement;
        known.granted.is_none()
            && known.pending.is_none()
            && ad.willing
            && (ad.clients > 0 || self.former.contains_key(&relay))
            && ad.cost <= self.config.highest_cost
    }

    /// Renews, repeats, and gives up.
    pub fn handle_timeout(&mut self, now: Instant) {
        let relays: Vec<_> = self.known.keys().copied().collect();
        for relay in relays {
            let Some(known) = self.known.get(&relay) else { continue };
            if Self::silent_at(known) <= now {
                self.lose(now, relay, RelayLost::Silent);
                self.known.remove(&relay);
                continue;
            }
            if self.leave_at(relay, known).is_some_and(|at| at <= now) {
                self.give_up(now, relay, RelayLost::Dead);
            } else if known.granted.is_some_and(|granted| granted.expires <= now) {
                self.lose(now, relay, RelayLost::Expired);
            }
            let Some(known) = self.known.get_mut(&relay) else { continue };
            match &known.pending {
                Some(pending) if pending.retry_at > now => {}
                Some(pending) if known.granted.is_none() && pending.requests >= REQUESTS => {
                    // There may be others that do answer.
                    (known.pending, known.not_before) = (None, now + DENIED);
                }
                Some(_) => self.ask(now, relay),
                None if known.granted.is_some_and(|granted| granted.renew_at <= now) => self.ask(now, relay),
                None => {}
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
            self.withdraw(relay);
            self.lose(now, relay, why);
        }
    }

    fn withdraw(&mut self, relay: Ipv4Addr) {
        let counter = self.next_counter();
        self.send(relay, |client, known| {
            ShakeMessage::Withdrawal(client.message(known, counter, 0, Duration::ZERO, None))
        });
    }

    fn lose(&mut self, now: Instant, relay: Ipv4Addr, why: RelayLost) {
        let Some(known) = self.known.get_mut(&relay) else { return };
        (known.pending, known.dead_since) = (None, None);
        known.not_before = now + if matches!(why, RelayLost::Expired) { Duration::ZERO } else { DENIED };
        if let Some(Granted { outside, expires, .. }) = known.granted.take() {
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
            if in_use.count() >= self.config.relays || self.config.home_agent.is_none() {
                return;
            }
            let candidates = self
                .known
                .iter()
                .filter(|(relay, known)| self.is_candidate(**relay, known) && known.not_before <= now);
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
        let (pause, requests) = known.pending.as_ref().map_or((FIRST_RETRY, 1), |pending| {
            ((pending.pause * 2).min(LONGEST_RETRY), pending.requests.saturating_add(1))
        });
        known.pending = Some(Pending { nonce, counter, retry_at: now + pause, pause, requests });
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
            home_agent: self.config.home_agent.unwrap_or(Ipv4Addr::UNSPECIFIED),
            rate: None,
            cost: 0,
            challenge: known.challenge,
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
        if !self.can_be_relays(source, advertisement.outside) {
            return Err(ClusterDrop::UnusableAddress);
        }
        let is_signed = matches!(self.config.trust, Trust::Keys { .. });
        let is_full = self.known.len() >= KNOWN;
        match self.known.get_mut(&source) {
            // Anybody can have said it. What changes in an alliance the relay says in messages that are authenticated.
            Some(known) if known.granted.is_some() && !is_signed => known.heard = now,
            Some(known) => {
                let is_later = (advertisement.sequence.wrapping_sub(known.advertisement.sequence) as i32) > 0;
                if is_signed && !is_later {
                    return Err(ClusterDrop::Replayed);
                }
                (known.advertisement, known.heard) = (advertisement, now);
                if known.granted.is_some_and(|granted| granted.outside != advertisement.outside) {
                    self.lose(now, source, RelayLost::Withdrawn(AllianceCode::LinkLost));
                } else if known.granted.is_some() && !advertisement.willing {
                    self.lose(now, source, RelayLost::Withdrawn(AllianceCode::Unwilling));
                } else if advertisement.cost > self.config.highest_cost {
                    self.give_up(now, source, RelayLost::TooDear);
                }
            }
            None if is_full => return Err(ClusterDrop::TableFull),
            None => {
                let key = key_for(&self.config.secret, source);
                let (pending, granted, dead_since) = (None, None, None);
                let (heard, not_before, challenge) = (now, now, 0);
                let known =
                    Known { advertisement, heard, pending, granted, not_before, key, challenge, dead_since };
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
        let is_usable = self.can_be_relays(source, reply.outside);
        let known = self.known.get_mut(&source).ok_or(ClusterDrop::Unexpected)?;
        let is_stale = reply.code == AllianceCode::NotFresh;
        let is_awaited = |pending: &&Pending| {
            pending.nonce == reply.nonce && (is_stale || pending.counter == reply.counter)
        };
        let Some(pending) = known.pending.as_ref().filter(is_awaited) else {
            return Err(ClusterDrop::Unexpected);
        };
        if is_stale {
            let is_patient = pending.requests < REQUESTS;
            known.challenge = reply.challenge;
            self.counter = self.counter.max(reply.counter);
            // It is told what it wants to hear, but not for ever.
            if is_patient {
                self.ask(now, source);
            }
            return Ok(());
        }
        if reply.code != AllianceCode::Accepted || reply.lifetime == 0 {
            self.lose(now, source, RelayLost::Withdrawn(reply.code));
            self.choose(now);
            return Ok(());
        }
        known.pending = None;
        let lifetime = Duration::from_secs(reply.lifetime.into());
        let (outside, nonce) = (reply.outside, reply.nonce);
        let granted = Granted { outside, expires: now + lifetime, renew_at: now + lifetime / 2, nonce };
        let before = known.granted.map(|granted| granted.outside);
        if !is_usable || reply.cost > self.config.highest_cost {
            let why = if is_usable { RelayLost::TooDear } else { RelayLost::UnusableAddress };
            // It counts this node among its allies.
            self.withdraw(source);
            self.lose(now, source, why);
            self.choose(now);
            return if is_usable { Ok(()) } else { Err(ClusterDrop::UnusableAddress) };
        }
        known.granted = Some(granted);
        if before == Some(outside) {
            return Ok(());
        }
        known.dead_since = Some(now);
        let ClusterAdvertisement { downlink, uplink, .. } = known.advertisement;
        let limited = |rate: Option<DataRate>| match (rate, reply.rate) {
            (Some(rate), Some(limit)) => Some(rate.min(limit)),
            (rate, limit) => rate.or(limit),
        };
        let (downlink, uplink, cost) = (limited(downlink), limited(uplink), reply.cost);
        if let Some(former) = before {
            let why = RelayLost::Withdrawn(AllianceCode::LinkLost);
            self.events.push_back(ClientEvent::RelayLost { relay: source, outside: former, why });
        }
        self.events.push_back(ClientEvent::RelayGained { relay: source, outside, downlink, uplink, cost });
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
        let pending = known.pending.as_ref().map(|pending| pending.nonce);
        let granted = known.granted.map(|granted| granted.nonce);
        // One of an earlier alliance says nothing about this one.
        if ![pending, granted].contains(&Some(withdrawal.nonce)) {
            return Err(ClusterDrop::Replayed);
        }
        self.lose(now, source, RelayLost::Withdrawn(withdrawal.code));
        self.choose(now);
        Ok(())
    }
}
