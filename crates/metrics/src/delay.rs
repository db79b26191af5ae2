//! How long data takes from its sender's host to the receiving application.

use alloc::collections::VecDeque;

use careof_base::{Duration, Instant};

use crate::flow::SegmentRange;
use crate::spread::Spread;

/// Directions of flows whose delays a run measures, the first that there are. Each takes tens of kilobytes in memory and in the summary, and a
/// program may open thousands of connections.
pub const MOST_DELAYS: usize = 32;
/// Segments of one direction that are remembered until they can be read.
const REMEMBERED: usize = 16_384;

/// A segment whose data the receiving application has not got yet.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    /// Its first sequence number.
    seq: i64,
    /// When it was sent.
    at: Instant,
}

/// Measures one direction of a flow that delivers its data in order: a sample for each segment, from its first transmission until the
/// receiving application could read its first byte. So the delay has in it what the data waited for retransmissions, its own and
/// those of segments before it.
///
/// Memory is bounded: while 16,384 segments are under way no further one is measured.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayMeter {
    /// By their sequence numbers.
    under_way: VecDeque<UnderWay>,
    /// The last sample.
    latest: Option<Duration>,
    delay: Spread,
    variation: Spread,
}

impl DelayMeter {
    /// A segment of new data leaves its host.
    pub(crate) fn on_sent(&mut self, now: Instant, range: SegmentRange) {
        // A SYN has no data, and an application is never told that it has got a FIN.
        if range.end <= FIRST_BYTE || self.under_way.len() >= REMEMBERED {
            return;
        }
        let sent = UnderWay { seq: range.seq, at: now };
        // Subflows of one connection do not send its data in order; others do.
        if self.under_way.back().is_some_and(|last| last.seq > range.seq) {
            let place = self.under_way.partition_point(|other| other.seq <= range.seq);
            self.under_way.insert(place, sent);
        } else {
            self.under_way.push_back(sent);
        }
    }

    /// The receiving application can read `total` bytes in all.
    pub(crate) fn on_delivered(&mut self, now: Instant, total: u64) {
        let last = i64::try_from(total).unwrap_or(i64::MAX);
        while let Some(readable) = self.under_way.front().copied().filter(|first| first.seq <= last) {
            self.under_way.pop_front();
            let delay = now - readable.at;
            self.delay.add(delay);
            if let Some(before) = self.latest.replace(delay) {
                self.variation.add(delay.abs_diff(before));
            }
        }
    }

    /// The one-way delays of segments, and by how much those of successive ones differ.
    pub(crate) const fn spreads(&self) -> [&Spread; 2] {
        [&self.delay, &self.variation]
    }
}

/// The sequence number of the first byte of data, relative to the initial one.
const FIRST_BYTE: i64 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// The segment `number` of 100 bytes each.
    const fn segment(number: i64) -> SegmentRange {
        SegmentRange { seq: 1 + number * 100, end: 101 + number * 100 }
    }

    fn millis(spread: &Spread) -> [Option<u64>; 2] {
        spread.extremes().map(|one| one.map(|span| span.as_millis() as u64))
    }

    #[test]
    fn data_behind_a_lost_segment_waits_for_its_retransmission() {
        let mut meter = DelayMeter::default();
        meter.on_sent(ms(0), SegmentRange { seq: 0, end: 1 });
        (0..3).for_each(|number| meter.on_sent(ms(number), segment(number as i64)));
        // The first arrives, the second is lost, the third waits: both can be read when the retransmission comes.
        meter.on_delivered(ms(20), 100);
        meter.on_delivered(ms(251), 300);
        let [delay, variation] = meter.spreads();
        assert_eq!((delay.count(), millis(delay)), (3, [Some(20), Some(250)]));
        assert_eq!((variation.count(), millis(variation)), (2, [Some(1), Some(230)]));
    }

    #[test]
    fn a_segment_that_is_read_in_part_counts_once_and_a_fin_not_at_all() {
        let mut meter = DelayMeter::default();
        meter.on_sent(ms(0), segment(0));
        // The last data come with the FIN, and then the FIN is sent alone.
        meter.on_sent(ms(1), SegmentRange { seq: 101, end: 152 });
        meter.on_sent(ms(2), SegmentRange { seq: 151, end: 152 });
        meter.on_delivered(ms(10), 50);
        meter.on_delivered(ms(11), 100);
        meter.on_delivered(ms(13), 150);
        let [delay, _] = meter.spreads();
        assert_eq!((delay.count(), millis(delay)), (2, [Some(10), Some(12)]));
    }

    #[test]
    fn subflows_may_send_in_any_order() {
        let mut meter = DelayMeter::default();
        for (at, number) in [(0, 0), (1, 3), (2, 1), (5, 2)] {
            meter.on_sent(ms(at), segment(number));
        }
        meter.on_delivered(ms(10), 200);
        meter.on_delivered(ms(15), 400);
        let [delay, _] = meter.spreads();
        assert_eq!((delay.count(), millis(delay)), (4, [Some(8), Some(14)]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut meter = DelayMeter::default();
        (0..100_000).for_each(|number| meter.on_sent(ms(0), segment(number)));
        assert_eq!(meter.under_way.len(), REMEMBERED);
        meter.on_delivered(ms(1), 100_000 * 100);
        meter.on_sent(ms(2), segment(100_000));
        meter.on_delivered(ms(3), 100_001 * 100);
        assert_eq!(meter.spreads()[0].count(), REMEMBERED as u64 + 1);
    }
}
