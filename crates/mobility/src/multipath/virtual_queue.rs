//! The virtual transmission queue of section 2.5 of the paper (Figures 2 and 3): what waits to be transmitted over a path, as the
//! sender predicts it.
//!
//! With S the size of the new packet, B the bandwidth of the path, L the length of its queue, τ the time when the packet under
//! transmission was sent and t the present time, the new packet has been transmitted after
//!
//! ```text
//! W = S/B (L + 1) + τ - t
//! ```
//!
//! so L counts the packet under transmission, and an empty queue has τ = t. Before that L and τ are brought up to date "using S, B and
//! τ - t": as many packets have left as take S/B each, and τ moves on by their time.
//!
//! The paper has packets of one size. Where they differ it is silent, and there are two readings ([`LengthReading`]); for packets of
//! one size both are the same.

use core::time::Duration;

use careof_base::{DataRate, Instant};

/// How the length of a virtual queue is read where packets differ in size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LengthReading {
    /// As the equation stands: L packets, each as long as the new one.
    #[default]
    Packets,
    /// Each packet with its own length: the queue is empty when all bytes of it are transmitted.
    Bytes,
}

/// A virtual transmission queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct VirtualQueue {
    /// L.
    length: u64,
    /// τ.
    sent_at: Instant,
    /// When all bytes of it are transmitted.
    free_at: Instant,
}

impl VirtualQueue {
    /// Brings L and τ up to date, for a packet that takes `service` = S/B.
    fn advance(&mut self, now: Instant, service: Duration) {
        let elapsed = now.saturating_duration_since(self.sent_at).as_nanos();
        let left = elapsed.checked_div(service.as_nanos()).unwrap_or(u128::MAX).min(u128::from(self.length));
        // No more than the length, which is 64 bits.
        let left = left as u64;
        self.length -= left;
        self.sent_at = if self.length == 0 {
            now
        } else {
            let moved = service.as_nanos().saturating_mul(u128::from(left));
            self.sent_at + Duration::from_nanos(u64::try_from(moved).unwrap_or(u64::MAX))
        };
    }

    /// W of a packet of `len` bytes at `rate`; zero where no rate is known.
    pub(super) fn waiting_time(
        &mut self,
        now: Instant,
        len: u32,
        rate: Option<DataRate>,
        reading: LengthReading,
    ) -> Duration {
        let service = rate.and_then(|rate| rate.time_for_bits(u64::from(len) * 8)).unwrap_or_default();
        self.advance(now, service);
        match reading {
            LengthReading::Packets => {
                let all = service.as_nanos().saturating_mul(u128::from(self.length) + 1);
                let end = self.sent_at + Duration::from_nanos(u64::try_from(all).unwrap_or(u64::MAX));
                end.saturating_duration_since(now)
            }
            LengthReading::Bytes => self.free_at.saturating_duration_since(now) + service,
        }
    }

    /// The packet that waits `waiting`, as just told, is put into the queue.
    pub(super) fn push(&mut self, now: Instant, waiting: Duration) {
        self.length = self.length.saturating_add(1);
        self.free_at = now + waiting;
    }

    #[cfg(test)]
    const fn length(&self) -> u64 {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Option<DataRate> = Some(DataRate::from_kilobits_per_second(384));
    /// 1500 bytes at 384 kbit/s.
    const SERVICE: Duration = Duration::from_micros(31_250);

    fn put(queue: &mut VirtualQueue, at: Instant, reading: LengthReading) -> Duration {
        let waiting = queue.waiting_time(at, 1500, RATE, reading);
        queue.push(at, waiting);
        waiting
    }

    #[test]
    fn waiting_times_are_those_of_the_equation() {
        for reading in [LengthReading::Packets, LengthReading::Bytes] {
            let mut queue = VirtualQueue::default();
            let at = Instant::from_millis;
            // An empty queue: L = 0, τ = t.
            assert_eq!(put(&mut queue, at(1000), reading), SERVICE);
            // One under transmission since 10 ms: S/B (1 + 1) - 10 ms.
            assert_eq!(put(&mut queue, at(1010), reading), SERVICE * 2 - Duration::from_millis(10));
            // 40 ms after the start the first has left; the second was sent 31.25 ms after the start.
            let expected = SERVICE * 2 - Duration::from_micros(40_000 - 31_250);
            assert_eq!(put(&mut queue, at(1040), reading), expected);
            assert_eq!(queue.length(), 2);
            // All have left.
            assert_eq!(put(&mut queue, at(9000), reading), SERVICE);
            assert_eq!(queue.length(), 1);
        }
    }

    #[test]
    fn both_readings_agree_to_the_nanosecond_for_packets_of_one_size() {
        let mut random = careof_base::RandomStream::new(3, 0, "queue");
        let mut queues = [VirtualQueue::default(); 2];
        let mut now = Instant::ZERO;
        for _ in 0..10_000 {
            now += Duration::from_nanos(random.below(60_000_000));
            let [a, b] = &mut queues;
            assert_eq!(put(a, now, LengthReading::Packets), put(b, now, LengthReading::Bytes));
        }
    }

    #[test]
    fn where_sizes_differ_the_equation_takes_all_for_as_long_as_the_new_one() {
        let [mut packets, mut bytes] = [VirtualQueue::default(); 2];
        let now = Instant::ZERO;
        for (queue, reading) in [(&mut packets, LengthReading::Packets), (&mut bytes, LengthReading::Bytes)] {
            (0..10).for_each(|_| _ = put(queue, now, reading));
        }
        let small = |queue: &mut VirtualQueue, reading| queue.waiting_time(now, 150, RATE, reading);
        assert_eq!(small(&mut packets, LengthReading::Packets), SERVICE / 10 * 11);
        assert_eq!(small(&mut bytes, LengthReading::Bytes), SERVICE * 10 + SERVICE / 10);
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let mut queue = VirtualQueue::default();
        for _ in 0..3 {
            let waiting = queue.waiting_time(Instant::ZERO, 1500, None, LengthReading::Packets);
            assert_eq!(waiting, Duration::ZERO);
            queue.push(Instant::ZERO, waiting);
        }
    }
}
