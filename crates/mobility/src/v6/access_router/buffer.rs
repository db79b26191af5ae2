//! Packets that wait for mobile nodes: which, in which order and how fast they go on.
//!
//! The owner has the packets; here are their tokens and lengths. Memory is bounded for each address and for all together, and what is
//! too much displaces the oldest: of the same address, or of the one that has most.

use alloc::collections::{BTreeMap, VecDeque};
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Holdings, Instant};

use super::config::BufferConfig;
use super::io::{BufferCounters, DiscardReason, PacketToken};

/// RFC 5568 section 5.4: so many may be sent one after another.
const BURST: u32 = 5;
/// The rate is that of so many packets, the latest (section 5.4: "recent activity over a sliding time window").
const WINDOW: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Kept {
    token: PacketToken,
    len: u32,
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
}

/// All buffers of an access router.
#[derive(Clone, Debug)]
pub(super) struct Buffers {
    config: BufferConfig,
    queues: BTreeMap<Ipv6Addr, Queue>,
    holdings: Holdings<Ipv6Addr>,
    packets: usize,
    bytes: usize,
    tokens: u64,
    discarded: VecDeque<(PacketToken, DiscardReason)>,
    pub(super) counters: BufferCounters,
}

impl Buffers {
    pub(super) fn new(config: BufferConfig) -> Self {
        Self {
            config,
            queues: BTreeMap::new(),
            holdings: Holdings::default(),
            packets: 0,
            bytes: 0,
            tokens: 0,
            discarded: VecDeque::new(),
            counters: BufferCounters::default(),
        }
    }

    /// Whether a packet of `len` bytes can be kept at all.
    pub(super) fn has_use_for(&self, len: u32) -> bool {
        let BufferConfig { packets, bytes, total_packets, total_bytes, .. } = self.config;
        packets.min(total_packets) > 0 && len as usize <= bytes.min(total_bytes)
    }

    /// Whether packets wait for `address`, so that others have to wait behind them.
    pub(super) fn holds(&self, address: Ipv6Addr) -> bool {
        self.queues.get(&address).is_some_and(|queue| !queue.packets.is_empty())
    }

    /// Packets that wait for anybody.
    pub(super) const fn len(&self) -> usize {
        self.packets
    }

    /// Their bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a packet; of what is then too much the oldest goes. `None`: it cannot be kept.
    pub(super) fn keep(
        &mut self,
        now: Instant,
        address: Ipv6Addr,
        len: u32,
        is_copy: bool,
    ) -> Option<PacketToken> {
        if !self.has_use_for(len) {
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
        queue.packets.push_back(Kept { token, len, is_copy });
        queue.bytes += len as usize;
        self.holdings.add(address);
        self.packets += 1;
        self.bytes += len as usize;
        while self.queues.get(&address).is_some_and(|queue| self.is_too_much(queue)) {
            self.displace(address);
        }
        while self.packets > self.config.total_packets || self.bytes > self.config.total_bytes {
            let Some((largest, _)) = self.holdings.largest() else { break };
            self.displace(largest);
        }
        Some(token)
    }

    fn is_too_much(&self, queue: &Queue) -> bool {
        queue.packets.len() > self.config.packets || queue.bytes > self.config.bytes
    }

    fn displace(&mut self, address: Ipv6Addr) {
        if let Some(kept) = self.take(address) {
            self.discard(kept.token, DiscardReason::Full);
        }
    }

    fn take(&mut self, address: Ipv6Addr) -> Option<Kept> {
        let kept = self.queues.get_mut(&address)?.pop()?;
        self.holdings.take(address);
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(kept.len as usize);
        Some(kept)
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

    /// From now on what waits for `address` goes on, at the pace of RFC 5568 section 5.4.
    pub(super) fn begin_release(&mut self, now: Instant, address: Ipv6Addr) {
        if let Some(queue) = self.queues.get_mut(&address)
            && queue.next.is_none()
        {
            (queue.next, queue.burst) = (Some(now), BURST);
        }
    }

    /// It waits again.
    pub(super) fn stop_release(&mut self, address: Ipv6Addr) {
        if let Some(queue) = self.queues.get_mut(&address) {
            queue.next = None;
        }
    }

    /// The next packet that may go on by `now`, and to whom.
    pub(super) fn release(&mut self, now: Instant) -> Option<(Ipv6Addr, PacketToken)> {
        let due = |queue: &Queue| queue.next.is_some_and(|next| next <= now);
        let address = self.queues.iter().find(|(_, queue)| due(queue)).map(|(address, _)| *address)?;
        let Some(kept) = self.take(address) else {
            self.queues.remove(&address);
            return self.release(now);
        };
        self.counters.released += 1;
        let speed = self.config.release_percent.max(1);
        if let Some(queue) = self.queues.get_mut(&address) {
            if queue.packets.is_empty() {
                self.queues.remove(&address);
            } else {
                queue.burst = queue.burst.saturating_sub(1);
                if queue.burst == 0 {
                    queue.next = Some(now + queue.interval() * 100 / speed);
                    queue.burst = 1;
                }
            }
        }
        Some((address, kept.token))
    }

    /// Throws away what waits for `address`.
    pub(super) fn clear(&mut self, address: Ipv6Addr, reason: DiscardReason) {
        while let Some(kept) = self.take(address) {
            let reason = if kept.is_copy { DiscardReason::CopyNotNeeded } else { reason };
            self.discard(kept.token, reason);
        }
        self.queues.remove(&address);
    }

    /// Throws away the copies among what waits for `address`: their originals went on.
    pub(super) fn clear_copies(&mut self, address: Ipv6Addr) {
        let Some(queue) = self.queues.get_mut(&address) else { return };
        let packets = core::mem::take(&mut queue.packets);
        let (copies, rest): (VecDeque<Kept>, VecDeque<Kept>) =
            packets.into_iter().partition(|kept| kept.is_copy);
        queue.packets = rest;
        for kept in copies {
            queue.bytes = queue.bytes.saturating_sub(kept.len as usize);
            self.holdings.take(address);
            self.packets = self.packets.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(kept.len as usize);
            self.counters.copies += 1;
            self.discarded.push_back((kept.token, DiscardReason::CopyNotNeeded));
        }
    }

    /// What was thrown away and not told yet.
    pub(super) fn poll_discarded(&mut self) -> Option<(PacketToken, DiscardReason)> {
        self.discarded.pop_front()
    }

    /// When the next packet may go on.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.queues.values().filter_map(|queue| queue.next).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 2);

    fn buffers(packets: usize, total_packets: usize) -> Buffers {
        Buffers::new(BufferConfig { packets, total_packets, ..BufferConfig::default() })
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn discarded(buffers: &mut Buffers) -> Vec<u64> {
        core::iter::from_fn(|| buffers.poll_discarded()).map(|(token, _)| token.0).collect()
    }

    fn released(buffers: &mut Buffers, now: Instant) -> Vec<u64> {
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
        let config = BufferConfig { bytes: 1000, ..BufferConfig::default() };
        let mut buffers = Buffers::new(config);
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
}
