//! A model of a tunnel over several paths, for tests: a source behind the home agent, the home agent's [`Dispersion`], paths, the
//! mobile node's [`Resequencer`], and a receiver that acknowledges each packet.
//!
//! A path is a queue of so many packets, a rate, a delay, normally distributed jitter and random loss, as netem has them; messages
//! take it, too. The source is clocked by acknowledgements and limited by a window, which grows by a packet with each
//! acknowledgement up to that. A packet is taken for lost, and sent again, when three that were sent later are acknowledged; a
//! duplicate acknowledgement, which says that it was not, doubles the three, up to 300 as Linux has it (`tcp_max_reordering`). With
//! `halves` the window is halved then, once in a round trip, and grows by a packet in a round trip (RFC 5681), otherwise it stays.
//!
//! What that shows: which share of the paths a flow gets that always has something to send, what order the receiver sees, and what a
//! source makes of the latter. What it does not: any real congestion control, acknowledgements that are lost or queue, several flows,
//! pacing. Acknowledgements take the least delay of all paths.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::time::Duration;

use careof_base::{DataRate, Instant, RandomStream};
use careof_wire::shake::PathFeedback;
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};

use super::auto::AutoReport;
use super::*;

/// Bytes of a packet.
const LEN: u32 = 1500;
/// Bytes of a message with its headers.
const MESSAGE: u64 = 108;
/// Packets that the queue before a path takes: netem's default.
const QUEUE: u64 = 1000;
/// Between the clocks of the ends.
const APART: Duration = Duration::from_secs(3600);

/// One direction of a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// Mbit/s.
    pub(super) rate: u64,
    /// Milliseconds.
    pub(super) delay: u64,
    /// Standard deviation, milliseconds.
    pub(super) jitter: u64,
    /// Of a thousand.
    pub(super) loss: u64,
}

/// What is run.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) links: Vec<Link>,
    /// Whether jitter leaves the order within a path.
    pub(super) keeps_order: bool,
    pub(super) scheduler: Scheduler,
    pub(super) resequences: bool,
    /// Packets.
    pub(super) window: u64,
    pub(super) halves: bool,
    /// For how long, and from when on goodput is measured.
    pub(super) until: Duration,
    pub(super) from: Duration,
    pub(super) seed: u64,
    /// A path that dies, when, and when it is back.
    pub(super) outage: Option<(usize, Duration, Duration)>,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// Bit/s of packets that the receiver had not had before.
    pub(super) goodput: u64,
    /// Packets that were sent again though they were not lost.
    pub(super) spurious: u64,
    /// Packets that the receiver got after later ones.
    pub(super) disorder: u64,
    pub(super) counters: ResequencerCounters,
    pub(super) auto: AutoReport,
    /// The longest time without anything new at the receiver, after goodput is measured.
    pub(super) longest_gap: Duration,
    /// Packets by path.
    pub(super) shares: [u32; 2],
}

#[derive(Debug)]
enum Event {
    Packet(MultipathHeader, u32),
    Ack(u32),
    ToMobileNode(PathFeedback),
    ToHomeAgent(PathFeedback),
}

#[derive(Debug, Default)]
struct Source {
    next: u32,
    again: VecDeque<u32>,
    /// Transmissions in order, with their packets.
    outstanding: VecDeque<(u64, u32)>,
    /// The latest transmission of each packet; `None` once it is acknowledged.
    latest: Vec<Option<u64>>,
    /// What there is in flight.
    flight: u64,
    transmissions: u64,
    highest: u64,
    /// Thousandths of a packet.
    window: u64,
    threshold: u64,
    /// What may be sent now: two packets for each acknowledgement, so that losses are not answered with a flood.
    may_send: u64,
    /// Packets acknowledged before an earlier one that make it count as lost.
    reordering: u64,
    /// Until that transmission is acknowledged the window is not halved again.
    recovers: u64,
}

impl Source {
    fn send(&mut self) -> Option<u32> {
        if self.flight * 1000 >= self.window || self.may_send == 0 {
            return None;
        }
        let packet = loop {
            match self.again.pop_front() {
                Some(packet) if self.latest[packet as usize].is_none() => {}
                Some(packet) => break packet,
                None => {
                    self.next += 1;
                    self.latest.push(Some(0));
                    break self.next - 1;
                }
            }
        };
        self.transmissions += 1;
        self.may_send -= 1;
        self.latest[packet as usize] = Some(self.transmissions);
        self.outstanding.push_back((self.transmissions, packet));
        self.flight += 1;
        Some(packet)
    }

    fn acknowledged(&mut self, packet: u32, most: u64, halves: bool) {
        self.may_send += 2;
        if let Some(transmission) = self.latest[packet as usize].take() {
            self.highest = self.highest.max(transmission);
            let grows = if self.window < self.threshold { 1000 } else { 1_000_000 / self.window };
            self.window = (self.window + grows).min(most);
        } else {
            self.reordering = (self.reordering * 2).min(300);
        }
        while let Some(&(transmission, packet)) = self.outstanding.front() {
            let is_latest = self.latest[packet as usize] == Some(transmission);
            let is_lost = is_latest && transmission + self.reordering <= self.highest;
            if is_latest && !is_lost {
                break;
            }
            self.outstanding.pop_front();
            self.flight -= 1;
            if is_lost {
                self.again.push_back(packet);
                if halves && transmission > self.recovers {
                    self.window = (self.window / 2).max(2000);
                    self.threshold = self.window;
                    self.recovers = self.transmissions;
                }
            }
        }
    }

    /// Nothing comes any more: all that is in flight is lost.
    fn timed_out(&mut self) {
        self.may_send = 10;
        while let Some((transmission, packet)) = self.outstanding.pop_front() {
            self.flight -= 1;
            if self.latest[packet as usize] == Some(transmission) {
                self.again.push_back(packet);
            }
        }
    }
}

pub(super) struct Model {
    setup: Setup,
    now: Instant,
    random: RandomStream,
    events: BinaryHeap<Reverse<(Instant, u64)>>,
    payloads: Vec<Option<Event>>,
    free_at: Vec<Instant>,
    last: Vec<Instant>,
    home_agent: Dispersion,
    mobile_node: Dispersion,
    resequencer: Resequencer<u32>,
    source: Source,
    received: Vec<bool>,
    spurious: u64,
    disorder: u64,
    good: u64,
    last_new: Instant,
    last_ack: Instant,
    longest_gap: Duration,
}

impl Model {
    pub(super) fn new(setup: Setup) -> Self {
        let config = DispersionConfig { scheduler: setup.scheduler, flows: 16 };
        let end = |name| Dispersion::new(config, RandomStream::new(setup.seed, 0, name));
        let (mut home_agent, mut mobile_node) = (end("home agent"), end("mobile node"));
        for number in 0..setup.links.len() {
            let id = PathId::new(number as u8).unwrap();
            home_agent.set_path(Instant::ZERO, id, PathConfig::default());
            mobile_node.set_path(Instant::ZERO + APART, id, PathConfig::default());
        }
        // As both would for a tunnel of such rates.
        let config = ResequencerConfig { packets: 32_768, bytes: 48 << 20, ..ResequencerConfig::default() };
        Self {
            now: Instant::ZERO,
            random: RandomStream::new(setup.seed, 0, "network"),
            events: BinaryHeap::new(),
            payloads: Vec::new(),
            free_at: alloc::vec![Instant::ZERO; setup.links.len()],
            last: alloc::vec![Instant::ZERO; setup.links.len()],
            home_agent,
            mobile_node,
            resequencer: Resequencer::new(config),
            source: Source {
                window: 10_000,
                may_send: 10,
                reordering: 3,
                threshold: u64::MAX,
                ..Source::default()
            },
            received: Vec::new(),
            spurious: 0,
            disorder: 0,
            good: 0,
            last_new: Instant::ZERO,
            last_ack: Instant::ZERO,
            longest_gap: Duration::ZERO,
            setup,
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.payloads.len() as u64)));
        self.payloads.push(Some(event));
    }

    fn is_dead(&self, path: usize) -> bool {
        self.setup
            .outage
            .is_some_and(|(dead, from, to)| dead == path && (from..to).contains(&self.now.since_start()))
    }

    /// What is put before a path arrives, or is lost.
    fn carry(&mut self, path: usize, bytes: u64, event: Event) {
        let link = self.setup.links[path];
        let rate = DataRate::from_megabits_per_second(link.rate);
        let service = rate.time_for_bits(bytes * 8).unwrap();
        let free_at = self.free_at[path].max(self.now);
        let full = rate.time_for_bits(QUEUE * u64::from(LEN) * 8).unwrap();
        if self.is_dead(path) || free_at - self.now >= full {
            return;
        }
        self.free_at[path] = free_at + service;
        if self.random.below(1000) < link.loss {
            return;
        }
        let jitter = (self.random.standard_normal() * link.jitter as f64 * 1000.0) as i64;
        let micros = (link.delay as i64 * 1000 + jitter).max(0) as u64;
        let mut arrives = self.free_at[path] + Duration::from_micros(micros);
        if self.setup.keeps_order {
            arrives = arrives.max(self.last[path]);
            self.last[path] = arrives;
        }
        self.at(arrives, event);
    }

    fn deliver(&mut self, packet: u32) {
        let index = packet as usize;
        if self.received.len() <= index {
            self.received.resize(index + 1, false);
        } else if !self.received[index] {
            self.disorder += 1;
        }
        if core::mem::replace(&mut self.received[index], true) {
            self.spurious += 1;
        } else {
            if self.now.since_start() >= self.setup.from {
                self.good += 1;
                self.longest_gap = self.longest_gap.max(self.now - self.last_new);
            }
            self.last_new = self.now;
        }
        let back = self.setup.links.iter().map(|link| link.delay).min().unwrap_or_default();
        self.at(self.now + Duration::from_millis(back), Event::Ack(packet));
    }

    fn handle(&mut self, event: Event) {
        let far = self.now + APART;
        match event {
            Event::Packet(header, packet) => {
                self.mobile_node.note_received(far, &header, LEN);
                if self.setup.resequences {
                    self.resequencer.handle_packet(far, &header, LEN, packet);
                } else {
                    self.deliver(packet);
                }
            }
            Event::Ack(packet) => {
                self.last_ack = self.now;
                self.source.acknowledged(packet, self.setup.window * 1000, self.setup.halves);
            }
            Event::ToMobileNode(feedback) => {
                self.mobile_node.handle_feedback(far, &feedback);
                let path = PathId::new(feedback.path).unwrap();
                self.resequencer.handle_message(far, path, feedback.sent_at);
            }
            Event::ToHomeAgent(feedback) => {
                self.home_agent.handle_feedback(self.now, &feedback);
            }
        }
    }

    fn settle(&mut self) {
        let far = self.now + APART;
        while self.home_agent.handle_timeout(self.now).is_some() {}
        while let Some((path, change)) = self.mobile_node.handle_timeout(far) {
            if change == PathChange::Out {
                self.resequencer.path_is_out(far, path);
            }
        }
        self.resequencer.handle_timeout(far);
        while let Some(packet) = self.resequencer.poll() {
            self.deliver(packet);
        }
        while let Some(message) = self.home_agent.poll_feedback(self.now) {
            self.carry(usize::from(message.path), MESSAGE, Event::ToMobileNode(message));
        }
        self.mobile_node.set_late(self.resequencer.counters().late);
        while let Some(message) = self.mobile_node.poll_feedback(far) {
            let link = self.setup.links[usize::from(message.path)];
            if self.random.below(1000) >= link.loss && !self.is_dead(usize::from(message.path)) {
                self.at(self.now + Duration::from_millis(link.delay), Event::ToHomeAgent(message));
            }
        }
        if self.now > self.last_ack + Duration::from_secs(1) {
            self.source.timed_out();
            self.last_ack = self.now;
        }
        while let Some(packet) = self.source.send() {
            let sent = Packet { flow: 1, len: LEN, allowed: PathSet::ALL, treatment: Treatment::Dispersed };
            let choice = self.home_agent.choose(self.now, &sent);
            for path in choice.paths.iter() {
                let header = self.home_agent.header(self.now, &choice, path, LEN, MultipathPayload::Ipv4);
                self.carry(path.index(), u64::from(LEN), Event::Packet(header.unwrap(), packet));
            }
        }
        self.source.may_send = 0;
    }

    /// When something is to be done next.
    fn next(&self) -> Instant {
        let far = self.now + APART;
        let near = |at: Instant| Instant::ZERO + at.saturating_duration_since(Instant::ZERO + APART);
        let timers = [
            self.home_agent.next_timeout(self.now),
            self.mobile_node.next_timeout(far).map(near),
            self.resequencer.next_timeout().map(near),
            self.events.peek().map(|&Reverse((at, _))| at),
            Some(self.last_ack + Duration::from_millis(1001)),
        ];
        timers.into_iter().flatten().min().unwrap_or(Instant::MAX).max(self.now)
    }

    pub(super) fn run(mut self) -> Outcome {
        let end = Instant::ZERO + self.setup.until;
        self.settle();
        loop {
            self.now = self.next();
            if self.now >= end {
                break;
            }
            while let Some(&Reverse((at, index))) = self.events.peek().filter(|event| event.0.0 <= self.now) {
                debug_assert!(at <= self.now);
                self.events.pop();
                if let Some(event) = self.payloads[index as usize].take() {
                    self.handle(event);
                }
            }
            self.settle();
        }
        let measured = (self.setup.until - self.setup.from).as_nanos();
        let bits = u128::from(self.good) * u128::from(LEN) * 8 * 1_000_000_000;
        let shares = [0, 1].map(|number| {
            let path = PathId::new(number).and_then(|id| self.home_agent.path(id));
            path.map_or(0, |path| path.sent().0)
        });
        Outcome {
            goodput: (bits / measured) as u64,
            spurious: self.spurious,
            disorder: self.disorder,
            counters: *self.resequencer.counters(),
            auto: self.home_agent.auto(),
            longest_gap: self.longest_gap,
            shares,
        }
    }
}
