//! The front of the crate: inputs to flows and mechanisms, their answers to the owner.

use core::cmp::Reverse;
use core::net::IpAddr;
use core::time::Duration;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use careof_base::Instant;
use careof_wire::{Flags, IpHeader, ReceivedData, ReceivedFlow, Segment, SeqNumber};

use crate::assists::{Assists, States};
use crate::context::{Context, Outbox, Passing};
use crate::courses::Courses;
use crate::flow::{Flow, Seen, Stall};
use crate::flow_table::{FlowTable, Followed};
use crate::keeping::Store;
use crate::paths::{PathEvent, PathTable};
use crate::rate_limit::RateLimit;
use crate::standing::Standing;
use crate::timers::{Owner, Timers};
use crate::tunnels::Tunnels;
use crate::{
    Action, Config, ConfigError, Counters, Fate, FlowKey, FlowStatus, Input, PacketView, PathId, Report,
    Token, Towards, Verdict, Wake,
};

/// How long after the announced end of a path it is taken for a false alarm, if nothing else says so.
const DOUBT: Duration = Duration::from_millis(200);

/// What was acknowledged longer ago than this before a path died was not lost with it: its monitor takes at most a second to find
/// that out, and a path may hold as much again.
const RECENTLY: Duration = Duration::from_secs(2);

/// Where nobody had to make room for a packet, nobody is looked for again for so long: that takes a look at all flows.
const IN_VAIN: Duration = Duration::from_millis(10);

/// Runs the assists of one node. See the crate's documentation for how to drive it.
#[derive(Debug)]
pub struct Assistant {
    config: Config,
    flows: FlowTable<States>,
    assists: Assists,
    store: Store,
    timers: Timers,
    paths: PathTable,
    tunnels: Tunnels,
    /// Mobile node: peers that do not know where it is now.
    outdated: BTreeMap<IpAddr, BTreeSet<IpAddr>>,
    unreachables: RateLimit,
    unproven_unreachables: RateLimit,
    unproven_acks: RateLimit,
    outbox: Outbox,
    courses: Courses,
    counters: Counters,
    /// When nobody had to make room last, and for which flow.
    no_room: Option<(Instant, Standing, FlowKey)>,
}

/// Everything of `$self` that assists work with, borrowed apart from the flows and the assists.
macro_rules! context {
    ($self:ident, $now:expr) => {
        &mut Context {
            now: $now,
            config: &$self.config,
            store: &mut $self.store,
            timers: &mut $self.timers,
            paths: &$self.paths,
            unreachables: &mut $self.unreachables,
            unproven_unreachables: &mut $self.unproven_unreachables,
            unproven_acks: &mut $self.unproven_acks,
            tunnels: &mut $self.tunnels,
            outbox: &mut $self.outbox,
            courses: &mut $self.courses,
            counters: &mut $self.counters,
        }
    };
}

impl Assistant {
    /// An assistant that has seen nothing yet.
    ///
    /// # Errors
    /// A configuration that contradicts itself.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            flows: FlowTable::new(config.limits.flows, config.place),
            assists: Assists::default(),
            store: Store::new(config.limits),
            timers: Timers::default(),
            paths: PathTable::new(config.place),
            tunnels: Tunnels::default(),
            outdated: BTreeMap::new(),
            unreachables: RateLimit::new(config.limits.unreachables_per_second),
            unproven_unreachables: RateLimit::new(config.limits.unreachables_per_second.div_ceil(4) * 3),
            unproven_acks: RateLimit::new(config.limits.unproven_acks_per_second),
            outbox: Outbox::default(),
            courses: Courses::default(),
            counters: Counters::default(),
            no_room: None,
            config,
        })
    }

    /// What becomes of a packet that goes `towards` one of the ends; `path` is the way to or from the mobile node that it takes
    /// or came by, if that is known.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        towards: Towards,
        path: Option<PathId>,
        packet: &PacketView<'_>,
    ) -> Verdict {
        let mut verdict = match packet.segment {
            Some(segment) => self.handle_segment(now, towards, path, packet, segment),
            None => Verdict::PASS,
        };
        if verdict.fate == Fate::Pass && towards == self.config.place.keeps() {
            verdict.fate = self.line_up(now, towards, packet);
        }
        verdict
    }

    /// Whether a packet that may go on waits for its mobile node's path, be it of TCP or not.
    fn line_up(&mut self, now: Instant, towards: Towards, packet: &PacketView<'_>) -> Fate {
        if !self.config.is_for_all_packets() {
            return Fate::Pass;
        }
        let mobile = match towards {
            Towards::Mobile => packet.header.destination(),
            Towards::Peer => packet.header.source(),
        };
        self.assists.on_datagram(context!(self, now), mobile, packet.header.total_len())
    }

    fn handle_segment(
        &mut self,
        now: Instant,
        towards: Towards,
        path: Option<PathId>,
        packet: &PacketView<'_>,
        segment: &Segment,
    ) -> Verdict {
        let key = FlowKey::of(towards, &packet.header, segment);
        if !self.follow(now, &key, towards, segment) {
            return Verdict::PASS;
        }
        self.make_room(now, &key);
        let cx = context!(self, now);
        let mut verdict = Verdict::PASS;
        if let Some(Followed { flow, states }) = self.flows.followed(&key) {
            let seen = Seen::default();
            let overhead = packet.overhead;
            let mut passing = Passing { towards, path, header: &packet.header, segment, seen, overhead };
            if self.assists.on_arrival(cx, flow, states, &passing, &mut verdict).is_continue() {
                flow.is_opaque |= packet.is_opaque;
                passing.seen = flow.learn(now, towards, &packet.header, segment);
                if passing.seen.is_duplicate_ack && cx.paths.has_copies(key.mobile) {
                    // It may be a copy, or answer one: it says nothing of losses.
                    passing.seen.is_duplicate_ack = false;
                }
                if passing.seen.acknowledges {
                    end_stall(cx, flow);
                }
                let _ = self.assists.on_packet(cx, flow, states, &passing, &mut verdict);
            }
            self.assists.look_at_injected(cx, flow, states);
            debug_assert!(verdict.keep.is_none() || !matches!(verdict.fate, Fate::Hold(_)), "held or kept");
            cx.counters.edits += u64::from(verdict.edit.is_some());
        }
        self.assists.go_on(cx, &mut self.flows, key.mobile);
        verdict
    }

    /// Whether the segment belongs to a flow that is followed, from now on or before, and can be of it.
    fn follow(&mut self, now: Instant, key: &FlowKey, towards: Towards, segment: &Segment) -> bool {
        let is_reset = segment.flags.contains(Flags::RST);
        let is_new_connection = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
        let mut syn = None;
        if let Some(flow) = self.flows.get_mut(key) {
            let is_repeated_syn = [Towards::Mobile, Towards::Peer]
                .iter()
                .any(|towards| flow.stream(*towards).syn == Some(segment.seq));
            let is_another = is_new_connection && !is_repeated_syn;
            if is_another && !flow.can_begin_anew() {
                flow.proof.syn = Some((towards, *segment));
                return false;
            }
            syn = flow.proof.agreed(towards, segment);
            let since = || self.paths.in_use_since(key.mobile);
            if !is_another && syn.is_none() && !flow.can_be_of(now, since, towards, segment) {
                self.counters.implausible += 1;
                return false;
            }
            if !(is_reset || is_another || syn.is_some()) {
                if flow.proof.syn.is_some_and(|(to, _)| to == towards) {
                    // Who wanted another one goes on with this.
                    flow.proof.syn = None;
                }
                let before = flow.proof.standing();
                if flow.proof.note(towards, segment) {
                    self.flows.promote(key, before);
                }
                return true;
            }
            self.forget(key);
        }
        if is_reset || self.config.excepts(key) || !self.has_room_for(now, key) {
            return false;
        }
        self.counters.flows += 1;
        let mut flow = Flow::new(*key, now);
        if let Some((towards, syn)) = syn {
            flow.proof.note(towards, &syn);
            flow.learn_syn(towards, &syn);
        }
        flow.proof.note(towards, segment);
        self.flows.insert(flow);
        self.timers.set_no_later(Owner::Agent, Wake::Age, now + self.config.limits.idle);
        true
    }

    /// Whether there is room for another flow, which is made where it may be.
    fn has_room_for(&mut self, now: Instant, key: &FlowKey) -> bool {
        if !self.flows.is_full() {
            return true;
        }
        let Some(victim) = self.flows.victim(now, key) else {
            self.counters.flows_refused += 1;
            return false;
        };
        self.counters.flows_evicted += 1;
        self.forget(&victim);
        true
    }

    /// A flow is over, or has to make room: what is held goes on, what is kept is dropped.
    fn forget(&mut self, key: &FlowKey) {
        let Some(mut followed) = self.flows.remove(key) else { return };
        let flow = &mut followed.flow;
        let is_lost = self.paths.lost_since(key.mobile).is_some();
        let stored = flow.stream_mut(self.config.place.keeps());
        self.courses.leave(key, &mut stored.share);
        self.outbox.empty(&mut stored.kept, is_lost);
        self.timers.forget(Owner::Flow(*key));
        self.outbox.report(Report::Forgotten { flow: *key, phase: flow.phase });
        self.forget_if_gone(key.mobile);
    }

    /// Forgets all flows, as when it is not to go on: what is held is released, what is kept discarded.
    pub fn close(&mut self) {
        self.assists.close(&mut self.outbox);
        while let Some(key) = self.flows.least_recent(Instant::MAX) {
            self.forget(&key);
        }
    }

    /// Takes in an event.
    pub fn handle_event(&mut self, now: Instant, input: &Input<'_>) {
        if let Input::Paths { mobile, received, .. } = *input {
            // Ahead of a replay, which leaves out what has arrived.
            for flow in received.flows() {
                let (mobile_port, peer_port) = (flow.mobile_port, flow.peer_port);
                let key = FlowKey { mobile, peer: flow.peer, mobile_port, peer_port };
                if let Some(Followed { flow: of, states }) = self.flows.followed(&key) {
                    self.assists.on_received(context!(self, now), of, states, &flow);
                }
            }
        }
        match *input {
            Input::Outdated { mobile, peers: [] } => {
                self.outdated.remove(&mobile);
            }
            Input::Outdated { mobile, peers } => {
                self.outdated.insert(mobile, peers.iter().copied().collect());
            }
            Input::Updated { mobile, peer } => self.handle_updated(now, mobile, peer),
            _ => {}
        }
        let events = self.paths.handle(now, input);
        for (mobile, event) in events {
            self.handle_path_event(now, mobile, &event);
        }
        if let Input::Paths { mobile, .. } = *input {
            self.assists.on_registered(context!(self, now), mobile);
            self.forget_if_gone(mobile);
        }
    }

    /// A peer knows where the mobile node is now.
    fn handle_updated(&mut self, now: Instant, mobile: IpAddr, peer: IpAddr) {
        if !self.outdated.get_mut(&mobile).is_some_and(|peers| peers.remove(&peer)) {
            return;
        }
        let cx = context!(self, now);
        let keys: Vec<FlowKey> = self.flows.of(mobile).filter(|key| key.peer == peer).collect();
        for key in keys {
            let Some(Followed { flow, states }) = self.flows.followed(&key) else { continue };
            let Some((since, usable)) = flow.peer_awaits.take() else { continue };
            let event = PathEvent::Usable(usable.later(now.saturating_duration_since(since)));
            self.assists.on_peer_updated(cx, flow, states, &event);
        }
        self.assists.go_on(cx, &mut self.flows, mobile);
    }

    /// Mobile nodes come and go, maybe under another address each time: of one without a path and a flow nothing is remembered.
    fn forget_if_gone(&mut self, mobile: IpAddr) {
        if self.flows.of(mobile).next().is_none() {
            self.paths.forget_if_gone(mobile);
            self.assists.forget_mobile(mobile);
        }
    }

    fn handle_path_event(&mut self, now: Instant, mobile: IpAddr, event: &PathEvent) {
        match event {
            PathEvent::Announced { ends_at, .. } => {
                let patience = Assists::patience(&self.config).unwrap_or(DOUBT);
                self.timers.set(Owner::Mobile(mobile), Wake::FalseAlarm, *ends_at + patience);
            }
            PathEvent::FalseAlarm => self.counters.false_alarms += 1,
            PathEvent::Lost | PathEvent::Usable(_) => {
                self.timers.stop(Owner::Mobile(mobile), Wake::FalseAlarm);
            }
            PathEvent::Copies { .. } => {}
        }
        let cx = context!(self, now);
        self.assists.on_mobile_path(cx, mobile, event);
        let outdated = self.outdated.get(&mobile);
        let keys: Vec<FlowKey> = self.flows.of(mobile).collect();
        for key in keys {
            if let Some(Followed { flow, states }) = self.flows.followed(&key) {
                flow.unreachables = 0;
                flow.acks_injected = 0;
                flow.peer_awaits = match event {
                    PathEvent::Usable(usable) if outdated.is_some_and(|peers| peers.contains(&key.peer)) => {
                        Some((now, *usable))
                    }
                    PathEvent::Usable(_) | PathEvent::Lost => None,
                    PathEvent::Announced { .. } | PathEvent::FalseAlarm | PathEvent::Copies { .. } => {
                        flow.peer_awaits
                    }
                };
                note_stall(cx, flow, event);
                self.assists.on_path(cx, flow, states, event);
                self.assists.look_at_injected(cx, flow, states);
            }
        }
        self.assists.go_on(cx, &mut self.flows, mobile);
    }

    /// When the store is nearly full, others than the flow of `key` lose what is stored for them: first those whose ends were
    /// not both heard, then those of mobile nodes for which more is stored than their share, and of each the one seen least
    /// recently. None of which more is known than of the flow of `key` loses anything: somebody may have made that up.
    fn make_room(&mut self, now: Instant, key: &FlowKey) {
        let Some((mut packets, mut bytes)) = self.store.excess() else { return };
        let keeps = self.config.place.keeps();
        let Some(known) = self.flows.get(key).map(|flow| flow.proof.standing()) else { return };
        // There may be many flows, and many packets that somebody makes up. One that counts has the others looked at in its own right.
        let is_in_vain = self.no_room.is_some_and(|(at, standing, of)| {
            now < at + IN_VAIN && (of == *key || (known < Standing::Mutual && known <= standing))
        });
        if is_in_vain {
            return;
        }
        let mut stored: BTreeMap<IpAddr, u64> = BTreeMap::new();
        let mut candidates: Vec<(Standing, Instant, FlowKey)> = Vec::new();
        for flow in self.flows.iter().filter(|flow| !flow.stream(keeps).kept.is_empty()) {
            *stored.entry(flow.key.mobile).or_default() += flow.stream(keeps).kept.bytes();
            if flow.key != *key && flow.proof.standing() <= known {
                candidates.push((flow.proof.standing(), flow.last_seen, flow.key));
            }
        }
        if candidates.is_empty() {
            self.no_room = Some((now, known, *key));
            return;
        }
        candidates.sort_unstable();
        let share = stored.values().sum::<u64>() / stored.len().max(1) as u64;
        let is_wanted = |standing: Standing, mobile: IpAddr, is_last: bool, stored: &BTreeMap<_, u64>| {
            is_last || standing == Standing::New || stored.get(&mobile).is_some_and(|bytes| *bytes > share)
        };
        for is_last in [false, true] {
            for &(standing, _, key) in &candidates {
                if packets == 0 && bytes == 0 {
                    return;
                }
                let is_lost = self.paths.lost_since(key.mobile).is_some();
                let Some(flow) = self.flows.get_mut(&key) else { continue };
                if flow.stream(keeps).kept.is_empty() || !is_wanted(standing, key.mobile, is_last, &stored) {
                    continue;
                }
                let stream = flow.stream_mut(keeps);
                self.courses.leave(&key, &mut stream.share);
                let (gone, gone_bytes) = self.outbox.empty(&mut stream.kept, is_lost);
                self.counters.evicted += gone as u64;
                packets = packets.saturating_sub(gone);
                bytes = bytes.saturating_sub(gone_bytes);
                if let Some(stored) = stored.get_mut(&key.mobile) {
                    *stored = stored.saturating_sub(gone_bytes);
                }
            }
        }
    }

    /// Does what is due. What is due at once is one event: nothing goes on to a mobile node before each of its flows has said what it owes.
    pub fn handle_timeout(&mut self, now: Instant) {
        let mut woken = None;
        loop {
            while let Some((owner, wake)) = self.timers.take_due(now) {
                if let Some(mobile) = owner.mobile()
                    && let Some(before) = woken.replace(mobile)
                    && before != mobile
                {
                    self.assists.go_on(context!(self, now), &mut self.flows, before);
                }
                self.wake(now, owner, wake);
            }
            let Some(mobile) = woken.take() else { return };
            self.assists.go_on(context!(self, now), &mut self.flows, mobile);
        }
    }

    fn wake(&mut self, now: Instant, owner: Owner, wake: Wake) {
        match owner {
            Owner::Agent => self.age(now),
            Owner::Mobile(mobile) if wake == Wake::FalseAlarm => {
                if let Some(event) = self.paths.doubt(mobile) {
                    self.handle_path_event(now, mobile, &event);
                }
            }
            Owner::Mobile(mobile) => self.assists.on_mobile_timeout(context!(self, now), mobile, wake),
            Owner::Flow(key) => {
                let cx = context!(self, now);
                if let Some(Followed { flow, states }) = self.flows.followed(&key) {
                    self.assists.on_timeout(cx, flow, states, wake);
                    self.assists.look_at_injected(cx, flow, states);
                }
            }
        }
    }

    /// Forgets the flows that were not seen for long.
    fn age(&mut self, now: Instant) {
        let idle = self.config.limits.idle;
        while let Some(key) = self.flows.least_recent(now.saturating_sub(idle)) {
            self.forget(&key);
        }
        if let Some(oldest) = self.flows.oldest() {
            self.timers.set(Owner::Agent, Wake::Age, oldest + idle);
        }
    }

    /// The next thing to be done. A token is free for another packet from the moment its last action was polled.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.outbox.poll_action(&mut self.store)
    }

    /// The next thing to be told.
    pub fn poll_report(&mut self) -> Option<Report> {
        self.outbox.poll_report()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        self.timers.next()
    }

    /// The longest fragments, bytes of the outer datagram, in which a packet that is sent on from a store has to enter its tunnel,
    /// which adds `overhead` bytes, by a path that swallows what is larger; `None` where it can go as it is.
    #[must_use]
    pub fn longest_fragments(
        &self,
        now: Instant,
        header: &IpHeader,
        path: PathId,
        overhead: u16,
    ) -> Option<u16> {
        let place = self.config.place;
        let mobile = if place.enters() == Towards::Mobile { header.destination() } else { header.source() };
        let assumed = self.tunnels.assumed(now, place, mobile, path);
        assumed.filter(|mtu| header.dont_fragment() && header.total_len().saturating_add(overhead) > *mtu)
    }

    /// On the mobile node: how far it has received its flows, for a registration that replaces a lost path. Of the flows that have
    /// acknowledged new data within the last [`RECENTLY`] before the path was lost, those that did so last.
    #[must_use]
    pub fn received_data(&self, now: Instant, mobile: IpAddr) -> ReceivedData {
        let until = self.paths.lost_since(mobile).unwrap_or(now);
        let is_recent = |at: Instant| at + RECENTLY > until;
        let told = |key: FlowKey| {
            let stream = self.flows.get(&key)?.stream(Towards::Mobile);
            let at = stream.progress_at.filter(|at| is_recent(*at))?;
            let echo = stream.last_ack?.segment.timestamps.map(|stamps| stamps.echo);
            let (peer, peer_port, mobile_port) = (key.peer, key.peer_port, key.mobile_port);
            Some((Reverse(at), ReceivedFlow { peer, peer_port, mobile_port, ack: stream.una?, echo }))
        };
        let mut recent: Vec<_> = self.flows.of(mobile).filter_map(told).collect();
        // Those of the same instant stay in the order of the table.
        recent.sort_by_key(|(at, _)| *at);
        recent.into_iter().map(|(_, flow)| flow).collect()
    }

    /// Under which token the packet of a flow is stored whose data begin at `seq`, if one is; `towards` is where it goes.
    #[must_use]
    pub fn stored(&self, flow: &FlowKey, towards: Towards, seq: SeqNumber) -> Option<Token> {
        let kept = &self.flows.get(flow)?.stream(towards).kept;
        kept.iter().find(|kept| kept.seq == seq).map(|kept| kept.token)
    }

    /// The flows followed at present.
    pub fn flows(&self) -> impl Iterator<Item = FlowStatus> {
        self.flows.iter().map(Flow::status)
    }

    /// Packets and bytes stored at present, those included whose last action was not polled yet.
    #[must_use]
    pub const fn load(&self) -> (usize, u64) {
        self.store.load()
    }

    /// Mobile nodes of which something is remembered.
    #[cfg(test)]
    pub(crate) fn remembered_mobiles(&self) -> usize {
        self.paths.len() + self.assists.mobiles()
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What it was configured for.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }
}

/// Measures how long a handover keeps a flow from progress: a stall begins when the path is lost or replaced while data are
/// owed, and ends with the next acknowledgement of new data.
fn note_stall(cx: &Context<'_>, flow: &mut Flow, event: &PathEvent) {
    let owes = |towards| {
        let stream = flow.stream(towards);
        let owed = stream.una.zip(stream.next).is_some_and(|(una, next)| una.is_before(next));
        owed.then_some(stream.progress_at).flatten()
    };
    let since = owes(Towards::Mobile).max(owes(Towards::Peer));
    match (event, &mut flow.stall, since) {
        (PathEvent::Lost, None, Some(since)) => flow.stall = Some(Stall { since, path_at: None }),
        (PathEvent::Usable(_), Some(stall), _) => {
            stall.path_at.get_or_insert(cx.now);
        }
        (PathEvent::Usable(_), None, Some(since)) => {
            flow.stall = Some(Stall { since, path_at: Some(cx.now) });
        }
        _ => {}
    }
}

/// Data towards an end are acknowledged.
fn end_stall(cx: &mut Context<'_>, flow: &mut Flow) {
    let Some(Stall { since, path_at: Some(path_at) }) = flow.stall else { return };
    flow.stall = None;
    let lasted = cx.now.saturating_duration_since(since);
    let after_path = cx.now.saturating_duration_since(path_at);
    flow.last_stall = Some((lasted, after_path));
    cx.outbox.report(Report::Stalled { flow: flow.key, lasted, after_path });
}
