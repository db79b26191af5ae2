//! The sender's scoreboard of RFC 6675 (2012) section 4: Update, IsLost, SetPipe; NextSeg is in
//! `recovery/sack.rs`.
//!
//! The RFC computes pipe by walking over everything outstanding. Here the sums are kept up to date instead, so
//! an acknowledgement costs what it changes: octets that were sacked, that are presumed lost, and that are at or
//! below HighRxt and not sacked. IsLost is monotone - if an octet is lost, so are all unsacked ones below -
//! and therefore a single boundary.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_wire::{SackBlocks, SeqNumber};

use crate::delivery_rate::DeliveryRate;
use crate::send_queue::{Marks, Record};

/// The records, and who measures their delivery.
pub(crate) struct Watched<'a> {
    pub(crate) records: &'a mut VecDeque<Record>,
    pub(crate) delivery: Option<&'a mut DeliveryRate>,
}

#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    /// Selectively acknowledged ranges, ascending, neither touching nor overlapping.
    ranges: Vec<(SeqNumber, SeqNumber)>,
    /// Octets in records marked SACKED.
    sacked: u32,
    /// Octets in records marked LOST and not SACKED.
    lost: u32,
    ever_lost: u32,
    /// Octets in records marked REPAIRED and not SACKED.
    repaired: u32,
    /// Every unsacked octet below is presumed lost.
    boundary: SeqNumber,
    /// Everything below has been repaired or need not be (one past HighRxt).
    high_rxt: SeqNumber,
}

impl Scoreboard {
    pub(crate) fn new(una: SeqNumber) -> Self {
        Self {
            ranges: Vec::new(),
            sacked: 0,
            lost: 0,
            ever_lost: 0,
            repaired: 0,
            boundary: una,
            high_rxt: una,
        }
    }

    /// One past the highest octet selectively acknowledged.
    pub(crate) fn highest_sacked(&self) -> Option<SeqNumber> {
        self.ranges.last().map(|range| range.1)
    }

    /// Whether nothing is reported or presumed lost, nor sent again.
    pub(crate) fn is_blank(&self) -> bool {
        self.ranges.is_empty() && self.sacked == 0 && self.lost == 0 && self.repaired == 0
    }

    /// IsLost(), for an octet that is not sacked.
    pub(crate) fn is_lost(&self, seq: SeqNumber) -> bool {
        seq.is_before(self.boundary)
    }

    pub(crate) fn high_rxt(&self) -> SeqNumber {
        self.high_rxt
    }

    pub(crate) fn set_high_rxt(&mut self, seq: SeqNumber) {
        self.high_rxt = seq;
    }

    /// SetPipe(), given the octets outstanding.
    pub(crate) fn pipe(&self, outstanding: u32) -> u32 {
        (outstanding + self.repaired).saturating_sub(self.sacked + self.lost)
    }

    /// Whether everything presumed lost was sent again.
    pub(crate) fn is_repaired(&self) -> bool {
        self.lost <= self.repaired
    }

    /// Octets selectively acknowledged and not yet acknowledged.
    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Octets ever presumed lost, modulo 2^32: it changes with each further indication of a loss.
    pub(crate) fn ever_lost(&self) -> u32 {
        self.ever_lost
    }

    /// Takes a record's octets out of the sums: it was acknowledged.
    pub(crate) fn forget(&mut self, marks: Marks, octets: u32) {
        if marks.has(Marks::SACKED) {
            self.sacked -= octets;
        } else {
            if marks.has(Marks::LOST) {
                self.lost -= octets;
            }
            if marks.has(Marks::REPAIRED) {
                self.repaired -= octets;
            }
        }
    }

    /// Everything before `una` is acknowledged.
    #[inline]
    pub(crate) fn popped(&mut self, una: SeqNumber) {
        if !self.ranges.is_empty() {
            self.cut_ranges(una);
        }
        self.boundary = self.boundary.later(una);
        self.high_rxt = self.high_rxt.later(una);
    }

    fn cut_ranges(&mut self, una: SeqNumber) {
        let gone = self.ranges.iter().take_while(|range| range.1.is_at_or_before(una)).count();
        self.ranges.drain(..gone);
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.later(una);
        }
    }

    /// Notes that `record` was sent again.
    pub(crate) fn mark_repaired(&mut self, record: &mut Record) {
        if !record.marks.has(Marks::REPAIRED) && !record.marks.has(Marks::SACKED) {
            record.marks.set(Marks::REPAIRED);
            self.repaired += record.seq_len();
        }
    }

    /// Update(): returns the octets newly sacked. Blocks outside of what is outstanding are ignored (those
    /// below `una` would be duplicates reported by RFC 2883).
    pub(crate) fn update(
        &mut self,
        seen: &mut Watched<'_>,
        una: SeqNumber,
        end: SeqNumber,
        blocks: &SackBlocks,
        mss: u32,
        threshold: u32,
    ) -> u32 {
        let before = self.sacked;
        for &(left, right) in blocks.as_slice() {
            let sane = left.is_before(right) && left.is_at_or_after(una) && right.is_at_or_before(end);
            if sane {
                self.add(seen, left, right);
            }
        }
        let new = self.sacked - before;
        if new > 0 {
            self.move_boundary(seen, mss, threshold);
        }
        new
    }

    /// Marks what of `[left, right)` is new, then joins the ranges.
    fn add(&mut self, seen: &mut Watched<'_>, left: SeqNumber, right: SeqNumber) {
        let first = self.ranges.iter().take_while(|range| range.1.is_before(left)).count();
        let touched =
            self.ranges.iter().skip(first).take_while(|range| range.0.is_at_or_before(right)).count();
        let mut joined = (left, right);
        for range in self.ranges.iter().skip(first).take(touched) {
            if range.0.is_before(joined.0) {
                joined.0 = range.0;
            }
            joined.1 = joined.1.later(range.1);
        }
        let mut from = left;
        for index in first..first + touched {
            let Some(&known) = self.ranges.get(index) else { break };
            self.mark(seen, (from, known.0), joined);
            from = from.later(known.1);
        }
        self.mark(seen, (from, right), joined);
        // The common case, a block that grew, replaces one range by one.
        if touched == 1 {
            if let Some(range) = self.ranges.get_mut(first) {
                *range = joined;
            }
        } else {
            self.ranges.splice(first..first + touched, [joined]);
        }
    }

    /// Marks the records that touch `news` and lie wholly within `known`.
    fn mark(&mut self, seen: &mut Watched<'_>, news: (SeqNumber, SeqNumber), known: (SeqNumber, SeqNumber)) {
        if !news.0.is_before(news.1) {
            return;
        }
        let mut index = seen.records.partition_point(|record| record.end().is_at_or_before(news.0));
        while let Some(record) = seen.records.get_mut(index) {
            if record.seq.is_at_or_after(news.1) {
                break;
            }
            let whole = record.seq.is_at_or_after(known.0) && record.end().is_at_or_before(known.1);
            if whole && !record.marks.has(Marks::SACKED) {
                let octets = record.seq_len();
                self.forget(record.marks, octets);
                record.marks.set(Marks::SACKED);
                self.sacked += octets;
                if let Some(delivery) = &mut seen.delivery {
                    delivery.selectively_acknowledged(index, record);
                }
            }
            index += 1;
        }
    }

    /// Moves the boundary of IsLost() up: below the third range from the top, or below more than
    /// (DupThresh - 1) segments' worth of sacked octets.
    fn move_boundary(&mut self, seen: &mut Watched<'_>, mss: u32, threshold: u32) {
        let mut octets = 0_u32;
        let enough = threshold.saturating_sub(1).saturating_mul(mss);
        for (above, range) in (1_u32..).zip(self.ranges.iter().rev()) {
            if range.0.is_at_or_before(self.boundary) {
                return;
            }
            octets = octets.saturating_add(range.1.bytes_since(range.0));
            if above >= threshold || octets > enough {
                let boundary = range.0;
                self.mark_lost(seen, boundary);
                return;
            }
        }
    }

    fn mark_lost(&mut self, seen: &mut Watched<'_>, boundary: SeqNumber) {
        let mut index = seen.records.partition_point(|record| record.seq.is_before(self.boundary));
        while let Some(record) = seen.records.get_mut(index) {
            if record.seq.is_at_or_after(boundary) {
                break;
            }
            if !record.marks.has(Marks::SACKED) && !record.marks.has(Marks::LOST) {
                record.marks.set(Marks::LOST);
                self.lost += record.seq_len();
                self.ever_lost = self.ever_lost.wrapping_add(record.seq_len());
                if let Some(delivery) = &mut seen.delivery {
                    delivery.presumed_lost(index, record);
                }
            }
            index += 1;
        }
        self.boundary = boundary;
    }

    /// Presumes one record lost, sent again since or not.
    pub(crate) fn presume_lost(&mut self, record: &mut Record) {
        let octets = record.seq_len();
        if record.marks.has(Marks::SACKED) {
            return;
        }
        if record.marks.has(Marks::REPAIRED) {
            record.marks.clear(Marks::REPAIRED);
            self.repaired -= octets;
        }
        if !record.marks.has(Marks::LOST) {
            record.marks.set(Marks::LOST);
            self.lost += octets;
        }
        self.ever_lost = self.ever_lost.wrapping_add(octets);
    }

    pub(crate) fn presume_all_lost(
        &mut self,
        records: &mut VecDeque<Record>,
        una: SeqNumber,
        end: SeqNumber,
    ) {
        self.ranges.clear();
        self.sacked = 0;
        self.repaired = 0;
        self.lost = end.bytes_since(una);
        for record in records {
            record.marks.clear(Marks::SCORED);
            record.marks.set(Marks::LOST);
        }
        self.boundary = end;
        self.high_rxt = una;
    }

    /// A timeout was spurious: nothing is presumed lost, what has been sacked since stays.
    pub(crate) fn presume_none_lost(&mut self, records: &mut VecDeque<Record>, una: SeqNumber) {
        for record in records {
            record.marks.clear(Marks::LOST);
            record.marks.clear(Marks::REPAIRED);
        }
        self.lost = 0;
        self.repaired = 0;
        self.boundary = una;
        self.high_rxt = una;
    }

    pub(crate) fn end_of_recovery(&mut self, records: &mut VecDeque<Record>, una: SeqNumber) {
        if self.repaired > 0 {
            for record in records {
                record.marks.clear(Marks::REPAIRED);
            }
            self.repaired = 0;
        }
        self.high_rxt = una;
    }

    /// Recomputes the sums after records were cut.
    pub(crate) fn reindex(&mut self, records: &VecDeque<Record>) {
        (self.sacked, self.lost, self.repaired) = Self::sums(records);
    }

    fn sums(records: &VecDeque<Record>) -> (u32, u32, u32) {
        let mut sums = (0, 0, 0);
        for record in records {
            let octets = record.seq_len();
            if record.marks.has(Marks::SACKED) {
                sums.0 += octets;
            } else {
                sums.1 += if record.marks.has(Marks::LOST) { octets } else { 0 };
                sums.2 += if record.marks.has(Marks::REPAIRED) { octets } else { 0 };
            }
        }
        sums
    }

    #[cfg(test)]
    pub(crate) fn check(&self, records: &VecDeque<Record>) {
        assert_eq!((self.sacked, self.lost, self.repaired), Self::sums(records));
        for pair in self.ranges.windows(2) {
            assert!(pair[0].0.is_before(pair[0].1) && pair[0].1.is_before(pair[1].0));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::send_queue::SendQueue;
    use alloc::vec::Vec;
    use careof_base::Instant;
    use careof_wire::{SackBlocks, SeqNumber};
    use proptest::prelude::*;

    const MSS: u16 = 1_000;
    const START: SeqNumber = SeqNumber(u32::MAX - 5_000);

    fn queue_of(segments: u32) -> SendQueue {
        let mut queue = SendQueue::new(START);
        queue.write(u64::from(segments) * u64::from(MSS));
        for _ in 0..segments {
            queue.push_new(Instant::ZERO, MSS);
        }
        queue
    }

    fn seq(segment: u32) -> SeqNumber {
        START.plus(segment * u32::from(MSS))
    }

    fn block(left: u32, right: u32) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(seq(left), seq(right));
        blocks
    }

    /// Section 4 word for word: walks over segments instead of octets, which all segments here allow.
    pub(crate) fn by_definition(segments: u32, sacked: &[bool], high_rxt: i64) -> (u32, Vec<u32>) {
        let is_lost = |s: u32| {
            let above: Vec<u32> = (s + 1..segments).filter(|&i| sacked[i as usize]).collect();
            let groups = above.iter().filter(|&&i| i == 0 || !sacked[i as usize - 1]).count();
            groups >= 3 || above.len() > 2
        };
        let mut pipe = 0;
        let mut lost = Vec::new();
        for s in (0..segments).filter(|&s| !sacked[s as usize]) {
            if is_lost(s) {
                lost.push(s);
            } else {
                pipe += 1;
            }
            pipe += u32::from(i64::from(s) <= high_rxt);
        }
        (pipe, lost)
    }

    #[test]
    fn a_block_reported_twice_is_news_once() {
        let mut queue = queue_of(10);
        assert_eq!(queue.selectively_acknowledge(&block(2, 4), 1_000, 3), 2_000);
        assert_eq!(queue.selectively_acknowledge(&block(2, 4), 1_000, 3), 0);
        assert_eq!(queue.selectively_acknowledge(&block(1, 6), 1_000, 3), 3_000);
        queue.check();
    }

    #[test]
    fn blocks_that_make_no_sense_are_ignored() {
        let mut queue = queue_of(4);
        for (left, right) in [(3, 2), (2, 2), (3, 9)] {
            assert_eq!(queue.selectively_acknowledge(&block(left, right), 1_000, 3), 0);
        }
        let mut below = SackBlocks::EMPTY;
        below.push(START.minus(2_000), START.plus(1_000));
        assert_eq!(queue.selectively_acknowledge(&below, 1_000, 3), 0);
        queue.check();
    }

    #[test]
    fn a_timeout_forgets_what_was_sacked() {
        let mut queue = queue_of(8);
        queue.selectively_acknowledge(&block(3, 8), 1_000, 3);
        queue.presume_all_lost();
        assert_eq!(queue.pipe(), 0);
        assert_eq!(queue.scoreboard.highest_sacked(), None);
        queue.mark_repaired(0);
        assert_eq!(queue.pipe(), 1_000);
        queue.check();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn the_sums_agree_with_the_definition(
            blocks in prop::collection::vec((0_u32..24, 1_u32..6), 1..12),
            repaired in 0_u32..24,
            acked in 0_u32..12,
        ) {
            let segments = 24;
            let mut queue = queue_of(segments);
            let mut sacked = [false; 24];
            for (left, len) in blocks {
                let right = (left + len).min(segments);
                // Octet by octet in one go, as a receiver would report it.
                queue.selectively_acknowledge(&block(left, right), u32::from(MSS), 3);
                sacked[left as usize..right as usize].fill(true);
                queue.check();
            }
            let (pipe, lost) = by_definition(segments, &sacked, -1);
            prop_assert_eq!(queue.pipe(), pipe * u32::from(MSS));
            for s in (0..segments).filter(|&s| !sacked[s as usize]) {
                prop_assert_eq!(queue.scoreboard.is_lost(seq(s)), lost.contains(&s), "segment {}", s);
            }
            for s in 0..repaired {
                queue.mark_repaired(s as usize);
            }
            let (pipe, _) = by_definition(segments, &sacked, i64::from(repaired) - 1);
            prop_assert_eq!(queue.pipe(), pipe * u32::from(MSS));
            queue.acknowledge(seq(acked));
            queue.check();
            let (all, _) = by_definition(segments, &sacked, i64::from(repaired) - 1);
            prop_assert!(queue.pipe() <= all * u32::from(MSS));
            queue.acknowledge(seq(segments));
            prop_assert_eq!(queue.pipe(), 0);
            queue.check();
        }
    }
}
