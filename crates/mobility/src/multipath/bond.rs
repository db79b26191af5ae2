//! One end of a tunnel over several paths: what is to be sent goes in, what is to be put on which path comes out, and the same the other
//! way round with the order restored.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use careof_base::{Instant, Randomness};
use careof_wire::shake::{PathFeedback, ShakeMessage};
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

use super::alliance::ClusterKey;
use super::bond_counters::{BondCounters, BondDrop};
use super::dispersion::{Choice, Dispersion, DispersionConfig, Packet};
use super::owed::{Owed, OwedPackets, ReplayConfig};
use super::path::{PathChange, PathConfig};
use super::path_account::PathAccount;
use super::path_id::{MAX_PATHS, PathId};
use super::resequencer::{Resequencer, ResequencerConfig};
use super::rules::{FlowFields, Rules};

/// The UDP port of messages about paths, and of those of a cluster: one of the two for experiments (RFC 4727 section 6).
pub const PATH_PORT: u16 = 1021;
/// Incarnations of the other end that are over and are remembered.
const RETIRED: usize = 8;
/// By how much a message may be overtaken by others on its path, microseconds.
const OVERTAKEN: u64 = 10_000_000;

/// The configuration of a [`Bond`].
#[derive(Clone, Debug)]
pub struct BondConfig {
    /// How packets choose their path.
    pub dispersion: DispersionConfig,
    /// How order is restored. With a `longest_wait` of zero nothing waits; duplicates are still dropped.
    pub resequencer: ResequencerConfig,
    /// What the owner wants of certain flows.
    pub rules: Rules,
    /// What is kept for a path that may go out.
    pub replay: ReplayConfig,
    /// Authenticates messages: that of the security association of mobile node and home agent.
    pub key: ClusterKey,
}

impl BondConfig {
    /// The defaults of all parts, with this key.
    #[must_use]
    pub fn new(key: ClusterKey) -> Self {
        Self {
            dispersion: DispersionConfig::default(),
            resequencer: ResequencerConfig::default(),
            rules: Rules::default(),
            replay: ReplayConfig::default(),
            key,
        }
    }
}

/// Which transmission of a packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sending {
    /// The first, or only one.
    First,
    /// Another one at the same time, by another path.
    Copy,
    /// Once more, as the path of the first has gone out.
    Replay,
}

/// A packet that is to be put on a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BondTransmit<P> {
    /// The path.
    pub path: PathId,
    /// What stands between the tunnel's outer header and the packet.
    pub header: MultipathHeader,
    /// Bytes of the packet, as they were told.
    pub len: u32,
    /// The packet.
    pub packet: P,
    /// Which transmission of it this is.
    pub sending: Sending,
}

/// Something to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BondEvent {
    /// A path went out, or is back.
    Path {
        /// Which.
        path: PathId,
        /// What has become of it.
        change: PathChange,
    },
    /// Something was answered on a path that had to be proven ([`Bond::set_path_to_prove`]): packets go by it from now on.
    Proven {
        /// Which.
        path: PathId,
    },
    /// The other end has begun anew; paths are measured from the start.
    PeerRestarted,
}

/// One end of a tunnel over several paths, at the home agent or at the mobile node.
///
/// `P` is a packet: its bytes, a reference to them, or whatever stands for them; it is cloned for copies, and to be kept until it is
/// confirmed.
///
/// | the owner has | and calls |
/// |---|---|
/// | a care-of address that is registered, or is no longer | [`Bond::set_path`], [`Bond::set_path_to_prove`], [`Bond::remove_path`] |
/// | word that a link is down | [`Bond::path_is_out`] |
/// | a packet for the tunnel | [`Bond::send`] |
/// | a packet out of the tunnel, with its header | [`Bond::receive`] |
/// | a datagram to [`PATH_PORT`] | [`Bond::handle_message`] |
///
/// After any of these, and after [`Bond::handle_timeout`], it polls until all say `None`: [`Bond::poll_transmit`] for packets to put on
/// paths, [`Bond::poll_message`] for datagrams to send over them, [`Bond::poll_delivery`] for packets in order, [`Bond::poll_event`].
/// Then it asks [`Bond::next_timeout`]. Time never goes backwards.
///
/// **On the wire.** A packet on a path is IPv4 from the home agent to the care-of address (or back), protocol 47, the header, the packet;
/// where the care-of address is a relay's, IPv4 within IPv4: home agent to relay, then home agent to home address, protocol 47; in the
/// cluster the first pair is relay to client ([`super::alliance`]). A message is the payload of UDP between the same addresses, both ports
/// [`PATH_PORT`], in the same tunnel to a relay.
///
/// **Restarts and replays.** Each end draws a number when it begins, its incarnation. Messages of an end that is not known yet only make
/// the ends acquainted; what they say counts once the other end has shown that it knows this one's incarnation, so that nothing recorded
/// before counts. Within an incarnation a message counts if it is not more than 10 s older than the newest.
#[derive(Debug)]
pub struct Bond<P> {
    dispersion: Dispersion,
    resequencer: Resequencer<P>,
    rules: Rules,
    /// The keys of messages, and which of them the next one has.
    keys: Vec<ClusterKey>,
    current: usize,
    owed: OwedPackets<P>,
    transmits: VecDeque<BondTransmit<P>>,
    events: VecDeque<BondEvent>,
    counters: BondCounters,
    accounts: [PathAccount; MAX_PATHS],
    incarnation: u32,
    /// The other end's, and what was heard that may be one.
    peer: Option<u32>,
    heard: Option<u32>,
    retired: VecDeque<u32>,
    /// Of each path, the time of sending of the newest message.
    newest: [Option<u64>; MAX_PATHS],
    /// That of the message that said which key the other end uses: the newest on any path.
    keyed: Option<u64>,
}

/// An incarnation; 0 is none.
fn incarnation(random: &mut Randomness) -> u32 {
    ((random.next_u64() >> 32) as u32).max(1)
}

impl<P: Clone> Bond<P> {
    /// An end without paths.
    #[must_use]
    pub fn new(config: BondConfig, random: impl Into<Randomness>) -> Self {
        let mut random = random.into();
        let incarnation = incarnation(&mut random);
        Self {
            dispersion: Dispersion::new(config.dispersion, random),
            resequencer: Resequencer::new(config.resequencer),
            rules: config.rules,
            keys: vec![config.key],
            current: 0,
            owed: OwedPackets::new(config.replay),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            counters: BondCounters::default(),
            accounts: [PathAccount::default(); MAX_PATHS],
            incarnation,
            peer: None,
            heard: None,
            retired: VecDeque::new(),
            newest: [None; MAX_PATHS],
            keyed: None,
        }
    }

    /// Messages have these keys from now on, and no other one counts any more; nothing else changes. Several are for the time in which the
    /// other end goes from one to the next: the first is used until something is heard that has another one of them, and then that.
    /// Of none nothing changes.
    pub fn set_keys(&mut self, keys: Vec<ClusterKey>) {
        if keys.is_empty() || keys == self.keys {
            return;
        }
        let used = self.keys.get(self.current);
        self.current = keys.iter().position(|key| Some(key) == used).unwrap_or_default();
        self.keys = keys;
    }

    /// Takes up a path, or tells something else of one that there is.
    pub fn set_path(&mut self, now: Instant, path: PathId, config: PathConfig) {
        self.dispersion.set_path(now, path, config);
    }

    /// The same, of a path through a relay, whose address is the relay's word alone: nothing is put there but probes before one of them was
    /// answered, or a relay could have a flow sent to whom it likes. [`BondEvent::Proven`] tells.
    pub fn set_path_to_prove(&mut self, now: Instant, path: PathId, config: PathConfig) {
        self.dispersion.set_path_to_prove(now, path, config);
    }

    /// Forgets a path: its care-of address is registered no longer. What was owed on it is replayed on the others.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        if self.dispersion.path(path).is_none() {
            return;
        }
        self.dispersion.remove_path(path);
        if let Some(newest) = self.newest.get_mut(path.index()) {
            *newest = None;
        }
        if let Some(account) = self.accounts.get_mut(path.index()) {
            account.end_outage(now);
        }
        self.leave(now, path);
    }

    /// A path is known not to work: its link is down, or a relay has withdrawn. It is probed all the same, and is back when it answers.
    pub fn path_is_out(&mut self, now: Instant, path: PathId) {
        if let Some(change) = self.dispersion.path_is_out(now, path) {
            self.changed(now, path, change);
        }
    }

    fn changed(&mut self, now: Instant, path: PathId, change: PathChange) {
        self.events.push_back(BondEvent::Path { path, change });
        if let Some(account) = self.accounts.get_mut(path.index()) {
            account.changed(now, change);
        }
        if change == PathChange::Out {
            self.leave(now, path);
        }
    }

    /// Nothing passes on `path` any more: what was owed there goes by the others.
    fn leave(&mut self, now: Instant, path: PathId) {
        self.resequencer.path_is_out(now, path);
        for owed in self.owed.take(path) {
            let Some(to) = self.dispersion.detour(now, owed.len, owed.allowed) else {
                self.counters.stranded = self.counters.stranded.saturating_add(1);
                continue;
            };
            let choice = Choice {
                paths: super::PathSet::of(to),
                flow: owed.flow,
                sequence: owed.sequence,
                split: true,
                shown: None,
            };
            if self.put(now, &choice, to, Sending::Replay, owed) {
                self.counters.replayed = self.counters.replayed.saturating_add(1);
            }
        }
    }

    /// Puts a packet on a path, and keeps it there; whether that was done.
    fn put(&mut self, now: Instant, choice: &Choice, path: PathId, sending: Sending, owed: Owed<P>) -> bool {
        let Owed { len, payload, .. } = owed;
        let Some(header) = self.dispersion.header(now, choice, path, len, payload) else { return false };
        self.counters.transmitted = self.counters.transmitted.saturating_add(1);
        if let Some(account) = self.accounts.get_mut(path.index()) {
            account.sent(len);
        }
        let packet = if self.owed.keeps() && choice.paths.len() == 1 {
            let packet = owed.packet.clone();
            let owed = Owed { path_sequence: header.path_sequence, ..owed };
            let gone = self.owed.keep(path, owed);
            self.counters.not_kept = self.counters.not_kept.saturating_add(gone);
            packet
        } else {
            owed.packet
        };
        self.transmits.push_back(BondTransmit { path, header, len, packet, sending });
        true
    }

    /// A packet of `len` bytes is to go through the tunnel.
    ///
    /// # Errors
    /// The packet, when no path that it may take works. It is counted ([`BondCounters::no_path`]); its owner drops it.
    pub fn send(
        &mut self,
        now: Instant,
        fields: &FlowFields,
        len: u32,
        payload: MultipathPayload,
        packet: P,
    ) -> Result<(), P> {
        self.counters.offered = self.counters.offered.saturating_add(1);
        let (allowed, treatment) = self.rules.of(fields);
        let choice = self.dispersion.choose(now, &Packet { flow: fields.key(), len, allowed, treatment });
        let Choice { flow, sequence, .. } = choice;
        let mut sending = Sending::First;
        let mut paths = choice.paths.iter().peekable();
        if paths.peek().is_none() {
            self.counters.no_path = self.counters.no_path.saturating_add(1);
            return Err(packet);
        }
        let mut packet = Some(packet);
        while let Some(path) = paths.next() {
            let next = if paths.peek().is_some() { packet.clone() } else { packet.take() };
            let Some(next) = next else { break };
            let owed = Owed { path_sequence: 0, flow, sequence, len, payload, allowed, packet: next };
            if self.put(now, &choice, path, sending, owed) && sending == Sending::Copy {
                self.counters.copies = self.counters.copies.saturating_add(1);
            }
            sending = Sending::Copy;
        }
        Ok(())
    }

    /// The next packet to put on a path.
    pub fn poll_transmit(&mut self) -> Option<BondTransmit<P>> {
        self.transmits.pop_front()
    }

    /// A packet of `len` bytes, without the tunnel's headers, has come out of the tunnel with this header. That its outer header names
    /// the other end of one of the paths is the owner's to check.
    /// One that had come already is given back; its owner drops it.
    pub fn receive(&mut self, now: Instant, header: &MultipathHeader, len: u32, packet: P) -> Option<P> {
        self.dispersion.note_received(now, header, len);
        self.resequencer.handle_packet(now, header, len, packet)
    }

    /// The next packet to pass on, in order.
    pub fn poll_delivery(&mut self) -> Option<P> {
        self.resequencer.poll()
    }

    /// The next message, and the path to send it over.
    pub fn poll_message(&mut self, now: Instant) -> Option<(PathId, Vec<u8>)> {
        self.dispersion.set_late(self.resequencer.counters().late);
        let mut feedback = self.dispersion.poll_feedback(now)?;
        feedback.sender = self.incarnation;
        feedback.receiver = self.heard.or(self.peer).unwrap_or_default();
        self.counters.messages_sent = self.counters.messages_sent.saturating_add(1);
        let path = PathId::new(feedback.path)?;
        let key = self.keys.get(self.current)?;
        Some((path, ShakeMessage::Feedback(feedback).emit(Some(key.as_wire()))))
    }

    /// A message has come; `by` is the path by which it did, where addresses tell.
    ///
    /// # Errors
    /// Why it has no effect; that is counted.
    pub fn handle_message(&mut self, now: Instant, by: Option<PathId>, bytes: &[u8]) -> Result<(), BondDrop> {
        self.counters.messages_received = self.counters.messages_received.saturating_add(1);
        self.admit(now, by, bytes).inspect_err(|&reason| self.counters.drop(reason))
    }

    fn admit(&mut self, now: Instant, by: Option<PathId>, bytes: &[u8]) -> Result<(), BondDrop> {
        let received = ShakeMessage::parse(bytes).map_err(|_| BondDrop::Malformed)?;
        let ShakeMessage::Feedback(feedback) = received.message else { return Err(BondDrop::Malformed) };
        let maker = self.keys.iter().position(|key| key.has_made(&received));
        let maker = maker.ok_or(BondDrop::NotGenuine)?;
        if feedback.sender == self.incarnation {
            return Err(BondDrop::Reflected);
        }
        let path = PathId::new(feedback.path).filter(|&path| {
            by.is_none_or(|by| by == path) && feedback.sender != 0 && self.dispersion.path(path).is_some()
        });
        let path = path.ok_or(BondDrop::WrongPath)?;
        self.meet(now, path, &feedback)?;
        let stamp = u64::from(feedback.sent_at_high) << 32 | u64::from(feedback.sent_at);
        let newest = self.newest.get_mut(path.index()).ok_or(BondDrop::WrongPath)?;
        if newest.is_some_and(|newest| stamp.saturating_add(OVERTAKEN) < newest) {
            return Err(BondDrop::Replayed);
        }
        *newest = (*newest).max(Some(stamp));
        if self.keyed <= Some(stamp) {
            // What the other end uses now it can read, too. A message that was longer on its way, over another path perhaps, says
            // what it used before.
            self.keyed = Some(stamp);
            self.current = maker;
        }
        if let Some(highest) = feedback.highest {
            self.owed.confirmed(path, highest);
        }
        let change = self.dispersion.handle_feedback(now, &feedback);
        self.resequencer.handle_message(now, path, feedback.sent_at);
        if let Some((path, change)) = change {
            self.changed(now, path, change);
        }
        if self.dispersion.take_proof(path) {
            self.events.push_back(BondEvent::Proven { path });
        }
        Ok(())
    }

    /// Finds out whether the sender is the other end as it is now.
    fn meet(&mut self, now: Instant, path: PathId, feedback: &PathFeedback) -> Result<(), BondDrop> {
        let sender = feedback.sender;
        if self.peer == Some(sender) {
            return Ok(());
        }
        if self.retired.contains(&sender) {
            return Err(BondDrop::Replayed);
        }
        if feedback.receiver != self.incarnation {
            // It is to hear that there is somebody to know.
            self.heard = Some(sender);
            self.dispersion.greet(path);
            return Err(BondDrop::Stranger);
        }
        self.heard = None;
        if let Some(former) = self.peer.replace(sender) {
            if self.retired.len() >= RETIRED {
                self.retired.pop_front();
            }
            self.retired.push_back(former);
            self.newest = [None; MAX_PATHS];
            self.keyed = None;
            self.dispersion.peer_restarted(now);
            self.resequencer.peer_restarted(now);
            self.counters.restarts = self.counters.restarts.saturating_add(1);
            self.events.push_back(BondEvent::PeerRestarted);
        }
        self.dispersion.probe_now();
        Ok(())
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<BondEvent> {
        self.events.pop_front()
    }

    /// When to call [`Bond::handle_timeout`].
    #[must_use]
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let order = self.resequencer.next_timeout();
        self.dispersion.next_timeout(now).into_iter().chain(order).min()
    }

    /// Finds out which paths have gone out, and waits no longer for what should have come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((path, change)) = self.dispersion.handle_timeout(now) {
            self.changed(now, path, change);
        }
        self.resequencer.handle_timeout(now);
    }

    /// What was sent and what became of it.
    #[must_use]
    pub const fn counters(&self) -> &BondCounters {
        &self.counters
    }

    /// What this end has done with a path so far.
    #[must_use]
    pub fn account(&self, path: PathId) -> PathAccount {
        self.accounts.get(path.index()).copied().unwrap_or_default()
    }

    /// The paths, and what is known of them.
    #[must_use]
    pub const fn dispersion(&self) -> &Dispersion {
        &self.dispersion
    }

    /// What came and is held, for its counters.
    #[must_use]
    pub const fn resequencer(&self) -> &Resequencer<P> {
        &self.resequencer
    }

    /// Packets and bytes that are kept for the case that their path goes out.
    #[must_use]
    pub const fn owes(&self) -> (usize, u64) {
        self.owed.holds()
    }
}

#[cfg(test)]
#[path = "bond_tests.rs"]
mod tests;
