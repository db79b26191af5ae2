//! Puts flows that came by several paths in order again.
//!
//! Each flow has numbers of its own, so that a gap of one holds up no other (RFC 2890 section 2.2 has a sequence for each key). A
//! packet behind a gap is held as long as what is missing may still come, and no longer:
//!
//! - A path that keeps its order has *passed* a packet once something has come by it that was sent later; one that does not, once
//!   that was sent later by more than packets overtake each other there. When every path that the missing packet may be on has
//!   passed it, it is lost, and what is behind it is released at once. Whatever comes by a path counts, of every flow.
//! - Otherwise it is waited for until it would have come by the slowest of the paths that have not, at their mean transit and four
//!   mean deviations. That is the measured spread of the paths; clocks of both ends need not agree.
//!
//! Only a flow that changes its path of late may have packets on others: the sender says so (the S bit of
//! [`careof_wire::tunnel::MultipathHeader`]). And a flow for which waiting has not brought anything, for [`IN_VAIN`] gaps in a
//! row, is not waited for until something comes late again: then nothing is out of order, and all gaps are losses.
//!
//! **What is kept.** At most as many packets and bytes as configured, and of one flow a share of these; where there is no room
//! the first gap of the flow is given up. Numbers that leap further than the window of a flow are believed when a second one
//! follows the first (as RFC 3550, appendix A.1, has it for a restarted sender); until then such packets are passed on as they
//! come. So no numbers, however wrong, hold back or drop a packet, but for one: a number that came already within the last
//! [`HISTORY`] of its flow is a duplicate.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::tunnel::MultipathHeader;

use super::path_id::PathId;
use super::path_transit::Transits;

/// Gaps in a row in which nothing came that was waited for, after which a flow is not waited for.
const IN_VAIN: u32 = 16;
/// Numbers of a flow that are remembered as come or not.
const HISTORY: u32 = 1024;
/// Numbers before those that are remembered that may still come late: the sender has not begun anew.
const OLD: u32 = 1 << 16;
/// A flow whose first packet to come has a lower number than that has begun with 0.
const FIRST: u32 = 128;
/// Flows that wait which are looked at again when something comes.
const LOOKED_AT: usize = 8;

/// What a [`Resequencer`] may keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResequencerConfig {
    /// Packets, of all flows together.
    pub packets: usize,
    /// Bytes, of all flows together.
    pub bytes: u64,
    /// One flow may have one part in so many of both.
    pub share: u32,
    /// Flows that are known at once.
    pub flows: usize,
    /// The longest that a packet is held for what a path should bring by which nothing comes, whatever was measured.
    pub longest_wait: Duration,
}

impl Default for ResequencerConfig {
    /// 8 MiB: 100 Mbit/s for two thirds of a second; a half of that for one flow.
    fn default() -> Self {
        Self { packets: 8192, bytes: 8 << 20, share: 2, flows: 256, longest_wait: Duration::from_millis(500) }
    }
}

/// What came and what became of it: `arrived` is `released`, `duplicates` and what is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResequencerCounters {
    /// Packets that came.
    pub arrived: u64,
    /// Packets that were passed on.
    pub released: u64,
    /// Packets that had come already: dropped.
    pub duplicates: u64,
    /// Of those released, packets that had to wait.
    pub held: u64,
    /// Of those released, packets that came after later ones were passed on.
    pub late: u64,
    /// Of those released, packets with a number that could not be believed.
    pub strays: u64,
    /// Packets that were given up because every path had passed them.
    pub passed: u64,
    /// Packets that were given up because they were waited for long enough.
    pub timed_out: u64,
    /// Packets that were given up because there was no room for what came behind them.
    pub no_room: u64,
    /// Times that the numbers of a flow began anew.
    pub leaps: u64,
    /// The longest that a packet was held.
    pub longest_wait: Duration,
}

impl ResequencerCounters {
    /// Packets that were given up, for whatever reason.
    #[must_use]
    pub const fn given_up(&self) -> u64 {
        self.passed + self.timed_out + self.no_room
    }
}

#[derive(Clone, Debug)]
struct Held<P> {
    sequence: u32,
    packet: P,
    len: u32,
    came: Instant,
    path: PathId,
    sent_at: u32,
    split: bool,
}

/// Why a missing packet is waited for no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GivenUp {
    Passed,
    TimedOut,
    NoRoom,
    Leap,
}

#[derive(Clone, Debug)]
struct Flow<P> {
    label: u32,
    next: u32,
    /// By their numbers, all above `next`.
    held: VecDeque<Held<P>>,
    bytes: u64,
    /// Which of the numbers before `next` have come, each at its remainder.
    come: [u64; HISTORY as usize / 64],
    /// How many of them mean anything.
    known: u32,
    /// What would follow a number that could not be believed.
    stray_next: Option<u32>,
    /// Gaps in a row in which nothing came that was waited for.
    in_vain: u32,
    deadline: Option<Instant>,
}

impl<P> Flow<P> {
    fn new(label: u32, next: u32) -> Self {
        Self {
            label,
            next,
            held: VecDeque::new(),
            bytes: 0,
            come: [0; HISTORY as usize / 64],
            known: 0,
            stray_next: None,
            in_vain: 0,
            deadline: None,
        }
    }

    fn mark(&mut self, sequence: u32, has_come: bool) {
        let at = sequence % HISTORY;
        if let Some(word) = self.come.get_mut(at as usize / 64) {
            let bit = 1 << (at % 64);
            *word = if has_come { *word | bit } else { *word & !bit };
        }
    }

    fn has_come(&self, sequence: u32) -> bool {
        let at = sequence % HISTORY;
        self.come.get(at as usize / 64).is_some_and(|word| word & 1 << (at % 64) != 0)
    }

    /// The next number has come, or is given up.
    fn advance(&mut self, has_come: bool) {
        self.mark(self.next, has_come);
        self.next = self.next.wrapping_add(1);
        self.known = (self.known + 1).min(HISTORY);
    }

    /// All numbers before `to` that have not come are given up; how many.
    fn give_up_to(&mut self, to: u32) -> u32 {
        let count = to.wrapping_sub(self.next);
        (0..count.min(HISTORY)).for_each(|back| self.mark(to.wrapping_sub(back + 1), false));
        self.next = to;
        self.known = self.known.saturating_add(count).min(HISTORY);
        count
    }
}

/// Puts flows in order.
///
/// A packet `P` - its bytes, or a reference to them - goes in with [`Resequencer::handle_packet`]. After any call the owner polls
/// [`Resequencer::poll`] until that returns `None`, and asks [`Resequencer::next_timeout`] when to call
/// [`Resequencer::handle_timeout`]. Time never goes backwards.
#[derive(Debug)]
pub struct Resequencer<P> {
    config: ResequencerConfig,
    /// By the lower bits of what flows are called.
    flows: Vec<Option<Flow<P>>>,
    transits: Transits,
    /// Flows that wait, by when that ends.
    waiting: BTreeSet<(Instant, usize)>,
    packets: usize,
    bytes: u64,
    ready: VecDeque<P>,
    counters: ResequencerCounters,
}

impl<P> Resequencer<P> {
    /// One that holds nothing.
    #[must_use]
    pub fn new(config: ResequencerConfig) -> Self {
        let flows = config.flows.clamp(1, 1 << 16).next_power_of_two();
        let mut places = Vec::new();
        places.resize_with(flows, || None);
        Self {
            config,
            flows: places,
            transits: Transits::default(),
            waiting: BTreeSet::new(),
            packets: 0,
            bytes: 0,
            ready: VecDeque::new(),
            counters: ResequencerCounters::default(),
        }
    }

    /// What came, and what became of it.
    #[must_use]
    pub const fn counters(&self) -> &ResequencerCounters {
        &self.counters
    }

    /// Packets and bytes that are held.
    #[must_use]
    pub const fn holds(&self) -> (usize, u64) {
        (self.packets, self.bytes)
    }

    /// The next packet to pass on.
    pub fn poll(&mut self) -> Option<P> {
        self.ready.pop_front()
    }

    /// When to call [`Resequencer::handle_timeout`].
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first().map(|&(at, _)| at)
    }

    /// Waits no longer for what should have come by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(&(at, index)) = self.waiting.first().filter(|&&(at, _)| at <= now) {
            self.waiting.remove(&(at, index));
            self.settle(now, index);
        }
    }

    /// A message has come by `path` that was sent at `sent_at`, microseconds of the sender's clock as in packets: what was sent there
    /// before has come, too, or is lost.
    pub fn handle_message(&mut self, now: Instant, path: PathId, sent_at: u32) {
        self.transits.note(now, path, sent_at);
        self.look_again(now);
    }

    /// The other end has begun anew, and so has its clock: transits so far mean nothing any more.
    pub fn peer_restarted(&mut self, now: Instant) {
        self.transits = Transits::default();
        self.settle_all(now);
    }

    /// Nothing more comes by `path`, until something does.
    pub fn path_is_out(&mut self, now: Instant, path: PathId) {
        self.transits.set_out(path);
        self.settle_all(now);
    }

    /// Looks at every flow that waits.
    fn settle_all(&mut self, now: Instant) {
        let waiting: Vec<_> = self.waiting.iter().map(|&(_, index)| index).collect();
        waiting.into_iter().for_each(|index| self.settle(now, index));
    }

    /// A packet of `len` bytes has come with this header. One that had come already is given back.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        header: &MultipathHeader,
        len: u32,
        packet: P,
    ) -> Option<P> {
        self.counters.arrived = self.counters.arrived.saturating_add(1);
        let Some(path) = PathId::new(header.path) else {
            // A path that there is not tells nothing of what may still come.
            self.counters.strays = self.counters.strays.saturating_add(1);
            self.release(packet);
            return None;
        };
        self.transits.note(now, path, header.sent_at);
        let index = header.flow as usize & (self.flows.len() - 1);
        self.take_place(now, index, header);
        let MultipathHeader { sequence, sent_at, split, .. } = *header;
        let held = Held { sequence, packet, len, came: now, path, sent_at, split };
        let duplicate = self.enter(now, index, held);
        self.settle(now, index);
        self.make_room(now, index);
        self.look_again(now);
        duplicate
    }

    /// The place is that of the flow in `header`. Another one that has it is over, and what is held of it is passed on.
    fn take_place(&mut self, now: Instant, index: usize, header: &MultipathHeader) {
        let known = self.flows.get(index).and_then(Option::as_ref).map(|flow| flow.label);
        if known == Some(header.flow) {
            return;
        }
        while self.give_up_gap(now, index, GivenUp::Leap) {}
        self.forget_deadline(index);
        let next = if header.sequence < FIRST { 0 } else { header.sequence };
        if let Some(place) = self.flows.get_mut(index) {
            *place = Some(Flow::new(header.flow, next));
        }
    }

    /// Puts a packet of the flow into its place, or passes it on.
    fn enter(&mut self, now: Instant, index: usize, held: Held<P>) -> Option<P> {
        let most = (self.config.packets / self.config.share.max(1) as usize).max(1);
        let Some(Some(flow)) = self.flows.get_mut(index) else {
            self.release(held.packet);
            return None;
        };
        let sequence = held.sequence;
        let ahead = sequence.wrapping_sub(flow.next);
        let behind = flow.next.wrapping_sub(sequence);
        if ahead == 0 {
            flow.stray_next = None;
            flow.advance(true);
            if !flow.held.is_empty() {
                // It was worth waiting for.
                flow.in_vain = 0;
            }
            self.release(held.packet);
            return None;
        }
        if behind <= flow.known {
            if flow.has_come(sequence) {
                self.counters.duplicates = self.counters.duplicates.saturating_add(1);
                return Some(held.packet);
            }
            // It was given up too soon.
            flow.mark(sequence, true);
            flow.in_vain = 0;
            self.counters.late = self.counters.late.saturating_add(1);
            self.release(held.packet);
            return None;
        }
        if ahead as usize <= most.max(HISTORY as usize) {
            flow.stray_next = None;
            let place = flow.held.partition_point(|other| {
                other.sequence.wrapping_sub(flow.next) < sequence.wrapping_sub(flow.next)
            });
            if flow.held.get(place).is_some_and(|other| other.sequence == sequence) {
                self.counters.duplicates = self.counters.duplicates.saturating_add(1);
                return Some(held.packet);
            }
            if place < flow.held.len() {
                flow.in_vain = 0;
            }
            flow.bytes += u64::from(held.len);
            self.bytes += u64::from(held.len);
            self.packets += 1;
            flow.held.insert(place, held);
            return None;
        }
        if behind <= OLD {
            // Whether it came already is forgotten.
            self.counters.late = self.counters.late.saturating_add(1);
            self.release(held.packet);
            return None;
        }
        let follows = flow.stray_next == Some(sequence);
        flow.stray_next = Some(sequence.wrapping_add(1));
        if follows {
            while self.give_up_gap(now, index, GivenUp::Leap) {}
            if let Some(Some(flow)) = self.flows.get_mut(index) {
                *flow = Flow { deadline: flow.deadline, ..Flow::new(flow.label, sequence.wrapping_sub(1)) };
                flow.advance(true);
                flow.advance(true);
            }
            self.counters.leaps = self.counters.leaps.saturating_add(1);
        }
        self.counters.strays = self.counters.strays.saturating_add(1);
        self.release(held.packet);
        None
    }

    fn release(&mut self, packet: P) {
        self.counters.released = self.counters.released.saturating_add(1);
        self.ready.push_back(packet);
    }

    /// Passes on what is in order at the front of the flow.
    fn drain(&mut self, now: Instant, index: usize) {
        while let Some(Some(flow)) = self.flows.get_mut(index)
            && let Some(first) = flow.held.front()
            && first.sequence == flow.next
            && let Some(first) = flow.held.pop_front()
        {
            flow.advance(true);
            flow.bytes -= u64::from(first.len);
            self.bytes -= u64::from(first.len);
            self.packets -= 1;
            let wait = now.saturating_duration_since(first.came);
            self.counters.longest_wait = self.counters.longest_wait.max(wait);
            self.counters.held = self.counters.held.saturating_add(1);
            self.release(first.packet);
        }
    }

    /// Gives up what is missing before the first packet held, and passes on what follows; whether there was anything.
    fn give_up_gap(&mut self, now: Instant, index: usize, why: GivenUp) -> bool {
        let Some(Some(flow)) = self.flows.get_mut(index) else { return false };
        let Some(to) = flow.held.front().map(|first| first.sequence) else { return false };
        let count = u64::from(flow.give_up_to(to));
        if count > 0 {
            flow.in_vain = flow.in_vain.saturating_add(1);
        }
        let counter = match why {
            GivenUp::Passed => Some(&mut self.counters.passed),
            GivenUp::TimedOut => Some(&mut self.counters.timed_out),
            GivenUp::NoRoom => Some(&mut self.counters.no_room),
            GivenUp::Leap => None,
        };
        if let Some(counter) = counter {
            *counter = counter.saturating_add(count);
        }
        self.drain(now, index);
        true
    }

    fn forget_deadline(&mut self, index: usize) {
        if let Some(Some(flow)) = self.flows.get_mut(index)
            && let Some(at) = flow.deadline.take()
        {
            self.waiting.remove(&(at, index));
        }
    }

    /// Passes on what there is nothing to wait for before, and says until when the rest is waited for.
    fn settle(&mut self, now: Instant, index: usize) {
        self.forget_deadline(index);
        self.drain(now, index);
        // One gap at a time is given up because others were in vain: with the next one that may be otherwise.
        let mut is_tried = false;
        while let Some(Some(flow)) = self.flows.get_mut(index)
            && let Some(first) = flow.held.front()
        {
            let until = self.transits.may_come_until(
                first.came,
                first.path,
                first.sent_at,
                first.split,
                self.config.longest_wait,
            );
            let why = match until {
                None => GivenUp::Passed,
                Some(_) if flow.in_vain >= IN_VAIN && !is_tried => {
                    is_tried = true;
                    GivenUp::Passed
                }
                Some(at) => {
                    if at > now {
                        flow.deadline = Some(at);
                        self.waiting.insert((at, index));
                        return;
                    }
                    GivenUp::TimedOut
                }
            };
            self.give_up_gap(now, index, why);
        }
    }

    /// Keeps to the bounds: the flow that had a packet gives up its gaps first, then whoever has waited longest.
    fn make_room(&mut self, now: Instant, index: usize) {
        let (packets, bytes) = (self.config.packets, self.config.bytes);
        let share = u64::from(self.config.share.max(1));
        let exceeds =
            |flow: &Flow<P>| flow.bytes > bytes / share || flow.held.len() as u64 > packets as u64 / share;
        while let Some(Some(flow)) = self.flows.get(index)
            && exceeds(flow)
            && self.give_up_gap(now, index, GivenUp::NoRoom)
        {}
        while self.packets > packets || self.bytes > bytes {
            let first = self.waiting.first().map_or(index, |&(_, first)| first);
            if !self.give_up_gap(now, first, GivenUp::NoRoom) {
                break;
            }
            self.settle(now, first);
        }
        self.settle(now, index);
    }

    /// What came has perhaps passed what others wait for.
    fn look_again(&mut self, now: Instant) {
        let mut waiting = [0; LOOKED_AT];
        let mut count = 0;
        for (place, &(_, index)) in waiting.iter_mut().zip(&self.waiting) {
            *place = index;
            count += 1;
        }
        waiting.into_iter().take(count).for_each(|index| self.settle(now, index));
    }
}

#[cfg(test)]
#[path = "resequencer_tests.rs"]
mod tests;
