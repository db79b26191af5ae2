//! Packets that wait for mobile nodes: which, in which order, how long and how fast they go on.
//!
//! The owner has the packets; here are their tokens and lengths. Memory is bounded for each address and for all together.

use alloc::collections::{BTreeMap, VecDeque};
use core::time::Duration;

use careof_base::{Holdings, Instant};

use crate::deadline::Deadlines;

/// Names a packet that the owner keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketToken(pub u64);

/// Why a kept packet is thrown away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiscardReason {
    /// The buffer is full, and this was the oldest.
    Full,
    /// The mobile node has not come in time.
    Expired,
    /// A copy of what went to the old link, and is not wanted.
    CopyNotNeeded,
}

/// What happened to packets for mobile nodes in a handover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferCounters {
    /// Packets kept, copies among them.
    pub kept: u64,
    /// Of those, packets that went on.
    pub released: u64,
    /// Thrown away because a buffer was full.
    pub full: u64,
    /// Thrown away because the mobile node did not come.
    pub expired: u64,
    /// Copies thrown away because their originals have arrived, as far as is known.
    pub copies: u64,
    /// Packets dropped without having been kept.
    pub dropped: u64,
}

/// What becomes of a packet that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate<A> {
    /// It goes on.
    Released(A, PacketToken),
    /// It is thrown away.
    Discarded(PacketToken, DiscardReason),
}

/// What goes where a buffer has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The oldest packet of the same address, or of the address that has most, makes room.
    #[default]
    DropOldest,
    /// The packet that comes is not kept.
    DropTail,
}

/// How much is kept, how long, and how fast it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Packets for one address.
    pub(crate) packets: usize,
    /// Bytes for one address.
    pub(crate) bytes: usize,
    /// Packets for all together.
    pub(crate) total_packets: usize,
    /// Bytes for all together.
    pub(crate) total_bytes: usize,
    /// How long a packet may wait.
    pub(crate) age: Option<Duration>,
    pub(crate) when_full: WhenFull,
    /// How fast packets go on behind the first five, percent of the rate at which they came (RFC 5568 section 5.4). `None`: all at once.
    pub(crate) release_percent: Option<u32>,
}

/// RFC 5568 section 5.4: so many may be sent one after another.
const BURST: u32 = 5;
/// The rate is that of so many packets, the latest (section 5.4: "recent activity over a sliding time window").
const WINDOW: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Kept {
    token: PacketToken,
    len: u32,
    since: Instant,
    /// Its original went to the old link.
    is_copy: bool,
}

/// The packets for one address.
#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Kept>,
    bytes: usize,
    /// When the latest came.
    arrivals: VecDeque<Instant>,
    /// Set while they go on: when the next may, and how many at once before that.
    next: Option<Instant>,
    burst: u32,
}

impl Queue {
    /// The time between packets at the rate at which they came.
    fn interval(&self) -> Duration {
        match (self.arrivals.front(), self.arrivals.back(), self.arrivals.len()) {
            (Some(first), Some(latest), count @ 2..) => {
                latest.saturating_duration_since(*first) / (count - 1) as u32
            }
            _ => Duration::ZERO,
        }
    }

    fn pop(&mut self) -> Option<Kept> {
        let kept = self.packets.pop_front()?;
        self.bytes = self.bytes.saturating_sub(kept.len as usize);
        Some(kept)
    }

    /// When the first packet has waited for `age`.
    fn expires(&self, age: Option<Duration>) -> Option<Instant> {
        Some(self.packets.front()?.since + age?)
    }
}

/// All buffers of a router.
#[derive(Clone, Debug)]
pub(crate) struct Buffers<A> {
    limits: Limits,
    queues: BTreeMap<A, Queue>,
    /// When the next packet of an address goes on, or has waited for too long.
    due: Deadlines<A>,
    holdings: Holdings<A>,
    packets: usize,
    bytes: usize,
    tokens: u64,
    discarded: VecDeque<(PacketToken, DiscardReason)>,
    pub(crate) counters: BufferCounters,
}

impl<A: Copy + Ord> Buffers<A> {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            queues: BTreeMap::new(),
            due: Deadlines::default(),
            holdings: Holdings::default(),
            packets: 0,
            bytes: 0,
            tokens: 0,
            discarded: VecDeque::new(),
            counters: BufferCounters::default(),
        }
    }

    /// Whether a packet of `len` bytes can be kept at all.
    pub(crate) fn has_use_for(&self, len: u32) -> bool {
        let Limits { packets, bytes, total_packets, total_bytes, .. } = self.limits;
        packets.min(total_packets) > 0 && len as usize <= bytes.min(total_bytes)
    }

    /// Whether there is room for `len` bytes more for `address`, without any other packet having to go.
    fn has_room_for(&self, address: A, len: u32) -> bool {
        let Limits { packets, bytes, total_packets, total_bytes, .. } = self.limits;
        let (count, sum) =
            self.queues.get(&address).map_or((0, 0), |queue| (queue.packets.len(), queue.bytes));
        let len = len as usize;
        count < packets
            && sum + len <= bytes
            && self.packets < total_packets
            && self.bytes + len <= total_bytes
    }

    /// Whether packets wait for `address`, so that others have to wait behind them.
    pub(crate) fn holds(&self, address: A) -> bool {
        self.queues.get(&address).is_some_and(|queue| !queue.packets.is_empty())
    }

    /// Packets that wait for anybody.
    pub(crate) const fn len(&self) -> usize {
        self.packets
    }

    /// Their bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a packet. Of what is then too much the oldest goes, or the packet is not kept. `None`: it is not.
    pub(crate) fn keep(&mut self, now: Instant, address: A, len: u32, is_copy: bool) -> Option<PacketToken> {
        let drops_tail = self.limits.when_full == WhenFull::DropTail;
        if !self.has_use_for(len) || drops_tail && !self.has_room_for(address, len) {
            return None;
        }
        let token = PacketToken(self.tokens);
        self.tokens += 1;
        self.counters.kept += 1;
        let queue = self.queues.entry(address).or_default();
        if queue.arrivals.len() >= WINDOW {
            queue.arrivals.pop_front();
        }
        queue.arrivals.push_back(now);
        queue.packets.push_back(Kept { token, len, since: now, is_copy });
        queue.bytes += len as usize;
        self.holdings.add(address);
        self.packets += 1;
        self.bytes += len as usize;
        while self.queues.get(&address).is_some_and(|queue| self.is_too_much(queue)) {
            self.displace(address);
        }
        while self.packets > self.limits.total_packets || self.bytes > self.limits.total_bytes {
            let Some((largest, _)) = self.holdings.largest() else { break };
            self.displace(largest);
        }
        self.plan(address);
        Some(token)
    }

    fn is_too_much(&self, queue: &Queue) -> bool {
        queue.packets.len() > self.limits.packets || queue.bytes > self.limits.bytes
    }

    fn displace(&mut self, address: A) {
        if let Some(kept) = self.take(address) {
            self.discard(kept.token, DiscardReason::Full);
        }
    }

    /// Takes out the first packet for `address`.
    fn take(&mut self, address: A) -> Option<Kept> {
        let kept = self.queues.get_mut(&address)?.pop()?;
        self.holdings.take(address);
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(kept.len as usize);
        self.plan(address);
        Some(kept)
    }

    /// Sets when the next packet for `address` is due.
    fn plan(&mut self, address: A) {
        let due = self
            .queues
            .get(&address)
            .and_then(|queue| [queue.next, queue.expires(self.limits.age)].into_iter().flatten().min());
        self.due.set(address, due);
    }

    fn discard(&mut self, token: PacketToken, reason: DiscardReason) {
        let counter = match reason {
            DiscardReason::Full => &mut self.counters.full,
            DiscardReason::Expired => &mut self.counters.expired,
            DiscardReason::CopyNotNeeded => &mut self.counters.copies,
        };
        *counter += 1;
        self.discarded.push_back((token, reason));
    }

    /// From now on what waits for `address` goes on, at the pace that is configured.
    pub(crate) fn begin_release(&mut self, now: Instant, address: A) {
        if let Some(queue) = self.queues.get_mut(&address)
            && queue.next.is_none()
        {
            (queue.next, queue.burst) = (Some(now), BURST);
            self.plan(address);
        }
    }

    /// It waits again.
    pub(crate) fn stop_release(&mut self, address: A) {
        if let Some(queue) = self.queues.get_mut(&address) {
            queue.next = None;
            self.plan(address);
        }
    }

    /// The next packet that may go on by `now`, and to whom. What has waited for too long is thrown away before.
    pub(crate) fn release(&mut self, now: Instant) -> Option<(A, PacketToken)> {
        loop {
            let address = self.due.first().filter(|(at, _)| *at <= now)?.1;
            let queue = self.queues.get(&address)?;
            if queue.expires(self.limits.age).is_some_and(|at| at <= now) {
                if let Some(kept) = self.take(address) {
                    self.discard(kept.token, DiscardReason::Expired);
                }
            } else if let Some(kept) = self.take(address) {
                self.counters.released += 1;
                self.slow_down(now, address);
                return Some((address, kept.token));
            } else {
                self.queues.remove(&address);
                self.plan(address);
            }
        }
    }

    /// The first packet for `address` goes on, unless it was kept after the one with this token.
    pub(crate) fn release_up_to(&mut self, address: A, token: PacketToken) -> Option<PacketToken> {
        let first = self.queues.get(&address)?.packets.front()?;
        if first.token > token {
            return None;
        }
        let kept = self.take(address)?;
        self.counters.released += 1;
        if !self.holds(address) {
            self.queues.remove(&address);
            self.plan(address);
        }
        Some(kept.token)
    }

    /// A packet for `address` has gone on: when the next may.
    fn slow_down(&mut self, now: Instant, address: A) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        if queue.packets.is_empty() {
            self.queues.remove(&address);
        } else if let Some(percent) = self.limits.release_percent {
            queue.burst = queue.burst.saturating_sub(1);
            if queue.burst == 0 {
                queue.next = Some(now + queue.interval() * 100 / percent.max(1));
                queue.burst = 1;
            }
        }
        self.plan(address);
    }

    /// Throws away what has waited for too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        let Some(age) = self.limits.age else { return };
        while let Some((at, address)) = self.due.first()
            && at <= now
            && self
                .queues
                .get(&address)
                .and_then(|queue| queue.expires(Some(age)))
                .is_some_and(|at| at <= now)
        {
            if let Some(kept) = self.take(address) {
                self.discard(kept.token, DiscardReason::Expired);
            }
        }
    }

    /// Throws away what waits for `address`.
    pub(crate) fn clear(&mut self, address: A, reason: DiscardReason) {
        while let Some(kept) = self.take(address) {
            let reason = if kept.is_copy { DiscardReason::CopyNotNeeded } else { reason };
            self.discard(kept.token, reason);
        }
        self.queues.remove(&address);
        self.plan(address);
    }

    /// Throws away the copies among what waits for `address`: their originals went on.
    pub(crate) fn clear_copies(&mut self, address: A) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        let packets = core::mem::take(&mut queue.packets);
        let (copies, rest): (VecDeque<Kept>, VecDeque<Kept>) =
            packets.into_iter().partition(|kept| kept.is_copy);
        queue.packets = rest;
        for kept in copies {
            if let Some(queue) = self.queues.get_mut(&address) {
                queue.bytes = queue.bytes.saturating_sub(kept.len as usize);
            }
            self.holdings.take(address);
            self.packets = self.packets.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(kept.len as usize);
            self.discard(kept.token, DiscardReason::CopyNotNeeded);
        }
        self.plan(address);
    }

    /// What becomes of the next packet: what was thrown away is told first.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Fate<A>> {
        let discarded = |(token, reason)| Fate::Discarded(token, reason);
        self.poll_discarded().map(discarded).or_else(|| match self.release(now) {
            Some((address, token)) => Some(Fate::Released(address, token)),
            // Looking for one may have found some that have waited for too long.
            None => self.poll_discarded().map(discarded),
        })
    }

    /// What was thrown away and not told yet.
    pub(crate) fn poll_discarded(&mut self) -> Option<(PacketToken, DiscardReason)> {
        self.discarded.pop_front()
    }

    /// When the next packet may go on, or has waited for too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::net::Ipv6Addr;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

    const LIMITS: Limits = Limits {
        packets: 256,
        bytes: 384_000,
        total_packets: 4096,
        total_bytes: 6_000_000,
        age: None,
        when_full: WhenFull::DropOldest,
        release_percent: Some(200),
    };

    fn buffers(packets: usize, total_packets: usize) -> Buffers<Ipv6Addr> {
        Buffers::new(Limits { packets, total_packets, ..LIMITS })
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn discarded(buffers: &mut Buffers<Ipv6Addr>) -> Vec<u64> {
        core::iter::from_fn(|| buffers.poll_discarded()).map(|(token, _)| token.0).collect()
    }

    fn released(buffers: &mut Buffers<Ipv6Addr>, now: Instant) -> Vec<u64> {
        core::iter::from_fn(|| buffers.release(now)).map(|(_, token)| token.0).collect()
    }

    #[test]
    fn the_oldest_of_an_address_makes_room() {
        let mut buffers = buffers(3, 100);
        for n in 0..5 {
            assert_eq!(buffers.keep(at(n), A, 100, false), Some(PacketToken(n)));
        }
        assert_eq!(discarded(&mut buffers), [0, 1]);
        assert_eq!((buffers.len(), buffers.bytes(), buffers.counters.full), (3, 300, 2));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let mut buffers = Buffers::new(Limits { bytes: 1000, ..LIMITS });
        (0..5).for_each(|n| {
            let _ = buffers.keep(at(n), A, 400, false);
        });
        assert_eq!(buffers.bytes(), 800);
        assert_eq!(buffers.keep(at(9), A, 1001, false), None, "it fits no buffer");
    }

    #[test]
    fn who_has_most_makes_room_for_others() {
        let mut buffers = buffers(100, 10);
        (0..9).for_each(|n| {
            let _ = buffers.keep(at(n), A, 1, false);
        });
        (9..14).for_each(|n| {
            let _ = buffers.keep(at(n), B, 1, false);
        });
        assert_eq!(discarded(&mut buffers), [0, 1, 2, 3]);
        assert_eq!(buffers.len(), 10);
    }

    #[test]
    fn five_go_at_once_and_the_rest_at_a_multiple_of_the_rate_at_which_they_came() {
        let mut buffers = buffers(100, 100);
        (0..9).for_each(|n| {
            let _ = buffers.keep(at(n * 20), A, 100, false);
        });
        let now = at(1000);
        assert_eq!(released(&mut buffers, now), [0_u64; 0], "nobody has come");
        buffers.begin_release(now, A);
        assert_eq!(released(&mut buffers, now), [0, 1, 2, 3, 4]);
        // 20 ms apart, twice as fast.
        assert_eq!(buffers.deadline(), Some(at(1010)));
        assert_eq!(released(&mut buffers, at(1010)), [5]);
        // What comes meanwhile waits behind.
        assert!(buffers.holds(A));
        let _ = buffers.keep(at(1015), A, 100, false);
        let mut rest = Vec::new();
        while let Some(next) = buffers.deadline() {
            rest.extend(released(&mut buffers, next));
        }
        assert_eq!(rest, [6, 7, 8, 9]);
        assert!(!buffers.holds(A) && buffers.len() == 0 && buffers.bytes() == 0);
    }

    #[test]
    fn one_packet_that_came_long_before_the_others_does_not_slow_them_down() {
        let mut buffers = buffers(100, 100);
        let _ = buffers.keep(at(0), A, 100, false);
        (0..20).for_each(|n| {
            let _ = buffers.keep(at(10_000 + n * 2), A, 100, false);
        });
        let now = at(11_000);
        buffers.begin_release(now, A);
        assert_eq!(released(&mut buffers, now).len(), 5);
        assert_eq!(buffers.deadline(), Some(at(11_001)));
    }

    #[test]
    fn copies_go_alone() {
        let mut buffers = buffers(100, 100);
        (0..6).for_each(|n| {
            let _ = buffers.keep(at(n), A, 10, n % 2 == 0);
        });
        buffers.clear_copies(A);
        assert_eq!(discarded(&mut buffers), [0, 2, 4]);
        assert_eq!((buffers.len(), buffers.bytes()), (3, 30));
        buffers.clear(A, DiscardReason::Expired);
        assert_eq!(buffers.counters.expired, 3);
        assert_eq!((buffers.len(), buffers.bytes()), (0, 0));
    }

    #[test]
    fn a_full_buffer_that_drops_its_tail_keeps_what_it_has() {
        let limits = Limits { packets: 3, total_packets: 4, when_full: WhenFull::DropTail, ..LIMITS };
        let mut buffers = Buffers::new(limits);
        let kept = [A, A, A, A, B, B].map(|address| buffers.keep(at(0), address, 100, false).is_some());
        assert_eq!(kept, [true, true, true, false, true, false]);
        assert_eq!((discarded(&mut buffers).len(), buffers.len(), buffers.counters.kept), (0, 4, 4));
    }

    #[test]
    fn without_a_pace_everything_goes_at_once() {
        let mut buffers = Buffers::new(Limits { release_percent: None, ..LIMITS });
        (0..9).for_each(|n| {
            let _ = buffers.keep(at(n * 20), A, 100, false);
        });
        buffers.begin_release(at(1000), A);
        assert_eq!(released(&mut buffers, at(1000)).len(), 9);
        assert_eq!(buffers.deadline(), None);
    }

    #[test]
    fn what_has_waited_for_too_long_is_thrown_away_when_its_time_comes() {
        let mut buffers = Buffers::new(Limits { age: Some(Duration::from_millis(50)), ..LIMITS });
        for (n, address) in [(0, A), (20, B), (40, A)] {
            let _ = buffers.keep(at(n), address, 100, false);
        }
        assert_eq!(buffers.deadline(), Some(at(50)));
        buffers.expire(at(49));
        assert_eq!(discarded(&mut buffers), [0_u64; 0]);
        buffers.expire(at(70));
        assert_eq!(discarded(&mut buffers), [0, 1]);
        // What is over when it may go on is thrown away as well.
        buffers.begin_release(at(90), A);
        assert_eq!(released(&mut buffers, at(90)), [0_u64; 0]);
        assert_eq!((buffers.counters.expired, buffers.len(), buffers.deadline()), (3, 0, None));
    }
}
