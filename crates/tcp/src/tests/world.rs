//! Two connections and a path between them: a delay, a rate with a queue, losses by list or by chance,
//! outages.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::{DataRate, Instant, Probability, RandomStream};
use careof_wire::{Flags, Segment, SeqNumber};

use crate::{Config, Connection, Event, Phase, Role, Transmission};

/// The client is 0, the server 1.
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// Something sent, as a trace line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) from: usize,
    pub(super) segment: Segment,
    pub(super) retransmission: bool,
}

pub(super) struct Direction {
    pub(super) delay: Duration,
    pub(super) rate: Option<DataRate>,
    /// Added to the delay by chance, so that packets overtake each other.
    pub(super) jitter: Duration,
    /// Packets waiting at most, where there is a rate.
    pub(super) queue: usize,
    busy_until: Instant,
    departures: alloc::collections::VecDeque<Instant>,
}

impl Direction {
    pub(super) fn new(delay: Duration) -> Self {
        Self {
            delay,
            jitter: Duration::ZERO,
            rate: None,
            queue: 1_000,
            busy_until: Instant::ZERO,
            departures: alloc::collections::VecDeque::new(),
        }
    }

    /// Packets that wait at `now` or are being sent.
    pub(super) fn waiting(&self, now: Instant) -> usize {
        self.departures.iter().filter(|&&at| at > now).count()
    }

    /// When a packet handed over now arrives; `None` if the queue is full.
    fn carry(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let Some(rate) = self.rate else { return Some(now + self.delay) };
        while self.departures.front().is_some_and(|&at| at <= now) {
            self.departures.pop_front();
        }
        if self.departures.len() > self.queue {
            return None;
        }
        let start = self.busy_until.max(now);
        self.busy_until = start + rate.time_for_bits(bytes * 8)?;
        self.departures.push_back(self.busy_until);
        Some(self.busy_until + self.delay)
    }
}

/// Outside of recoveries: segments sent, time, and the integral of the window in bytes over it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Open {
    pub(super) segments: u64,
    pub(super) seconds: f64,
    pub(super) window_seconds: f64,
}

pub(super) struct World {
    pub(super) ends: [Connection; 2],
    pub(super) ways: [Direction; 2],
    pub(super) now: Instant,
    pub(super) trace: Vec<Sent>,
    pub(super) events: [Vec<Event>; 2],
    /// (segment number by sequence from 1, how many of its transmissions are lost), client to server.
    pub(super) drops: Vec<(u32, u32)>,
    /// Every n-th data segment that the client sends outside of a recovery is lost, once.
    pub(super) drop_every: Option<u32>,
    /// Where `drop_every` is set: what the client did outside of recoveries.
    pub(super) open: Open,
    /// A new data segment is lost whenever the client's window reaches this many bytes, once in a recovery.
    pub(super) drop_at_window: Option<u32>,
    armed: bool,
    /// Segments with more data than this are swallowed.
    pub(super) swallows_above: Option<u16>,
    /// Nothing passes within.
    pub(super) outages: Vec<(Instant, Instant)>,
    pub(super) loss: Probability,
    /// A packet arrives a second time.
    pub(super) duplication: Probability,
    pub(super) chance: RandomStream,
    /// Keep a trace.
    pub(super) traced: bool,
    seen: BTreeMap<(usize, u32), u32>,
    /// Every n-th ECN-capable packet is marked.
    pub(super) mark_every: Option<u64>,
    capable: u64,
    flying: BTreeMap<(Instant, u64), (usize, Segment, bool)>,
    serial: u64,
    checks: u64,
}

impl World {
    pub(super) fn new(client: Config, server: Config, delay: Duration) -> Self {
        let iss = SeqNumber(u32::MAX - 100_000);
        let mut world = Self {
            ends: [
                Connection::new(client, Role::Active, 1_000, 2_000, iss).unwrap(),
                Connection::new(server, Role::Passive, 2_000, 1_000, SeqNumber(77)).unwrap(),
            ],
            ways: [Direction::new(delay), Direction::new(delay)],
            now: Instant::ZERO,
            trace: Vec::new(),
            events: [Vec::new(), Vec::new()],
            drops: Vec::new(),
            drop_every: None,
            open: Open::default(),
            drop_at_window: None,
            armed: true,
            swallows_above: None,
            outages: Vec::new(),
            loss: Probability::ZERO,
            duplication: Probability::ZERO,
            chance: RandomStream::new(1, 0, "tests.loss"),
            traced: true,
            seen: BTreeMap::new(),
            mark_every: None,
            capable: 0,
            flying: BTreeMap::new(),
            serial: 0,
            checks: 0,
        };
        world.ends[SERVER].open(Instant::ZERO);
        world.ends[CLIENT].open(Instant::ZERO);
        world
    }

    /// The same at both ends.
    pub(super) fn alike(config: &Config, delay_ms: u64) -> Self {
        Self::new(config.clone(), config.clone(), Duration::from_millis(delay_ms))
    }

    fn is_lost(&mut self, from: usize, sent: &Transmission) -> bool {
        if self.outages.iter().any(|outage| outage.0 <= self.now && self.now < outage.1) {
            return true;
        }
        if self.swallows_above.is_some_and(|most| sent.segment.payload_len > most) {
            return true;
        }
        if self.chance.chance(self.loss) {
            return true;
        }
        if from != CLIENT || sent.segment.payload_len == 0 {
            return false;
        }
        if let Some(limit) = self.drop_at_window {
            let cwnd = self.ends[CLIENT].snapshot().cwnd;
            self.armed |= cwnd < limit;
            return cwnd >= limit && core::mem::take(&mut self.armed);
        }
        if let Some(every) = self.drop_every {
            let counts = !sent.retransmission && self.ends[CLIENT].snapshot().phase == Phase::Open;
            self.open.segments += u64::from(counts);
            return counts && self.open.segments.is_multiple_of(u64::from(every));
        }
        let first = u32::MAX - 100_000 + 1;
        let mss = self.ends[CLIENT].snapshot().mss;
        let number = sent.segment.seq.0.wrapping_sub(first) / mss + 1;
        let count = self.seen.entry((from, number)).or_default();
        *count += 1;
        let count = *count;
        self.drops.iter().any(|&(drop, times)| drop == number && count <= times)
    }

    /// Takes everything the ends want to send.
    pub(super) fn drain(&mut self) {
        for from in [CLIENT, SERVER] {
            let mut burst = 0;
            while let Some(sent) = self.ends[from].poll_transmit(self.now) {
                burst += 1;
                assert!(burst < 100_000, "sends without end: {:?}", self.ends[from].snapshot());
                let bytes = u64::from(sent.segment.header_len() + sent.segment.payload_len) + 20;
                self.check_window(from, &sent);
                if !self.is_lost(from, &sent)
                    && let Some(at) = self.ways[from].carry(self.now, bytes)
                {
                    self.capable += u64::from(sent.ecn_capable);
                    let marked =
                        sent.ecn_capable && self.mark_every.is_some_and(|n| self.capable.is_multiple_of(n));
                    let late = self.chance.duration_up_to(self.ways[from].jitter);
                    self.serial += 1;
                    self.flying.insert((at + late, self.serial), (1 - from, sent.segment, marked));
                    if self.chance.chance(self.duplication) {
                        self.serial += 1;
                        self.flying.insert((at + late * 2, self.serial), (1 - from, sent.segment, marked));
                    }
                }
                if self.traced {
                    self.trace.push(Sent {
                        at: self.now,
                        from,
                        segment: sent.segment,
                        retransmission: sent.retransmission,
                    });
                }
            }
            while let Some(event) = self.ends[from].poll_event() {
                self.events[from].push(event);
            }
            self.check(from);
        }
    }

    /// Nothing leaves beyond the farthest right edge of the peer's window.
    fn check_window(&self, from: usize, sent: &Transmission) {
        let sender = &self.ends[from].sender;
        if sender.max_wnd > 0 && sent.segment.payload_len > 0 {
            let edge = sender.queue.una().plus(sender.max_wnd);
            let end = sent.segment.seq.plus(u32::from(sent.segment.payload_len));
            assert!(end.is_at_or_before(edge), "{sent:?} beyond {edge:?}");
        }
    }

    /// What must hold whenever nothing is under way inside a connection.
    fn check(&mut self, from: usize) {
        let end = &self.ends[from];
        let state = end.snapshot();
        assert!(state.snd_una.is_at_or_before(state.snd_nxt), "{state:?}");
        assert!(state.cwnd >= state.mss, "{state:?}");
        let waits = !end.sender.queue.is_empty() || (state.state.is_synchronized() && end.unsent() > 0);
        assert!(!waits || end.next_timeout().is_some() || end.is_closed(), "would hang: {state:?}");
        self.checks += 1;
        if self.checks.is_multiple_of(16) {
            end.sender.check();
        }
    }

    /// Runs until `until`, or until nothing is left to happen.
    pub(super) fn run_until(&mut self, until: Instant) {
        self.run_while(until, |_| true);
    }

    pub(super) fn run_while(&mut self, until: Instant, mut more: impl FnMut(&Self) -> bool) {
        self.drain();
        while more(self) {
            let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
            let timeout = self.ends.iter().filter_map(|end| end.next_timeout().map(|t| t.0)).min();
            let Some(next) = [arrival, timeout].into_iter().flatten().min() else { break };
            if next > until {
                break;
            }
            assert!(next >= self.now, "time goes back");
            let state = self.ends[CLIENT].snapshot();
            if self.drop_every.is_some() && state.phase == Phase::Open {
                let seconds = (next - self.now).as_secs_f64();
                self.open.seconds += seconds;
                self.open.window_seconds += f64::from(state.cwnd) * seconds;
            }
            self.now = next;
            if arrival == Some(next) {
                if let Some((_, (to, segment, marked))) = self.flying.pop_first() {
                    self.ends[to].handle_packet(next, &segment, marked);
                }
            } else {
                for end in &mut self.ends {
                    end.handle_timeout(next);
                }
            }
            self.drain();
        }
    }

    pub(super) fn run_for(&mut self, seconds: u64) {
        let until = self.now + Duration::from_secs(seconds);
        self.run_until(until);
    }

    /// Numbers of the data segments that the client sent again, in order.
    pub(super) fn repeated(&self) -> Vec<u32> {
        let first = u32::MAX - 100_000 + 1;
        let mss = self.ends[CLIENT].snapshot().mss;
        self.trace
            .iter()
            .filter(|sent| sent.from == CLIENT && sent.retransmission && sent.segment.payload_len > 0)
            .map(|sent| sent.segment.seq.0.wrapping_sub(first) / mss + 1)
            .collect()
    }

    /// The client writes `bytes` and closes, the server closes when it has everything.
    pub(super) fn transfer(&mut self, bytes: u64, until: Instant) {
        self.ends[CLIENT].write(bytes);
        self.ends[CLIENT].close();
        let mut closed = false;
        while self.now < until && !(self.ends[CLIENT].is_closed() && self.ends[SERVER].is_closed()) {
            let before = self.now;
            let wanted = !closed;
            self.run_while(until, |world| !(wanted && world.events[SERVER].contains(&Event::PeerClosed)));
            if wanted && self.events[SERVER].contains(&Event::PeerClosed) {
                self.ends[SERVER].close();
                closed = true;
                self.drain();
            } else if self.now == before {
                break;
            }
        }
    }

    pub(super) fn has_fin(sent: &Sent) -> bool {
        sent.segment.flags.contains(Flags::FIN)
    }
}
