//! What has arrived: how far in order, and the islands beyond (reassembly by lengths).
//!
//! Each island remembers when it grew last, which is the order RFC 2018 section 4 wants SACK blocks in. The last
//! arrival that was here already is kept until it is reported (RFC 2883, 2000, section 4).

use alloc::vec::Vec;

use careof_wire::{SackBlocks, SeqNumber};

#[derive(Clone, Copy, Debug)]
struct Island {
    left: SeqNumber,
    right: SeqNumber,
    /// Counts arrivals.
    grown: u64,
}

/// Where an arrival went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The next in order, nothing was missing.
    InOrder,
    /// The next in order, and something beyond it had arrived before.
    FillsGap,
    /// Beyond something missing.
    OutOfOrder,
    /// Nothing of it is new.
    Duplicate,
}

#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct ReceiveQueue {
    islands: Vec<Island>,
    arrivals: u64,
    /// The first contiguous part of the last arrival that was a duplicate, until it is reported.
    duplicate: Option<(SeqNumber, SeqNumber)>,
    /// Last, for what an ordinary segment touches follows.
    nxt: SeqNumber,
}

impl ReceiveQueue {
    pub(crate) fn new(nxt: SeqNumber) -> Self {
        Self { nxt, islands: Vec::new(), arrivals: 0, duplicate: None }
    }

    /// `RCV.NXT`.
    pub(crate) fn nxt(&self) -> SeqNumber {
        self.nxt
    }

    /// Takes `[left, right)`, which is not empty, in.
    pub(crate) fn insert(&mut self, left: SeqNumber, right: SeqNumber) -> Arrival {
        if left == self.nxt && self.islands.is_empty() {
            self.nxt = right;
            return Arrival::InOrder;
        }
        self.insert_slowly(left, right)
    }

    /// Takes the next `len` bytes in order in; nothing has arrived beyond them.
    pub(crate) fn append(&mut self, len: u32) {
        self.nxt = self.nxt.plus(len);
    }

    fn insert_slowly(&mut self, left: SeqNumber, right: SeqNumber) -> Arrival {
        self.note_duplicate(left, right);
        if right.is_at_or_before(self.nxt) {
            return Arrival::Duplicate;
        }
        if left.is_at_or_before(self.nxt) {
            let filled = !self.islands.is_empty();
            self.nxt = right;
            let mut reached = 0;
            for island in &self.islands {
                if island.left.is_after(self.nxt) {
                    break;
                }
                self.nxt = self.nxt.later(island.right);
                reached += 1;
            }
            self.islands.drain(..reached);
            return if filled { Arrival::FillsGap } else { Arrival::InOrder };
        }
        self.arrivals += 1;
        let grown = self.arrivals;
        // Arrivals are mostly beyond all others, so the search begins at the end.
        let touching_end = self.islands.len()
            - self.islands.iter().rev().take_while(|island| island.left.is_after(right)).count();
        let touching = self
            .islands
            .iter()
            .take(touching_end)
            .rev()
            .take_while(|island| island.right.is_at_or_after(left))
            .count();
        let first = touching_end - touching;
        let mut joined = Island { left, right, grown };
        let mut known = false;
        for island in self.islands.iter().skip(first).take(touching) {
            known |= island.left.is_at_or_before(left) && island.right.is_at_or_after(right);
            if island.left.is_before(joined.left) {
                joined.left = island.left;
            }
            joined.right = joined.right.later(island.right);
        }
        match (touching, self.islands.get_mut(first)) {
            (1, Some(island)) => *island = joined,
            _ => {
                self.islands.splice(first..first + touching, [joined]);
            }
        }
        if known { Arrival::Duplicate } else { Arrival::OutOfOrder }
    }

    /// Keeps what of `[left, right)` is here already.
    pub(crate) fn note_duplicate(&mut self, left: SeqNumber, right: SeqNumber) {
        let known = if left.is_before(self.nxt) {
            Some((left, self.nxt))
        } else {
            let overlaps = |island: &&Island| island.right.is_after(left) && island.left.is_before(right);
            self.islands.iter().find(overlaps).map(|island| (island.left.later(left), island.right))
        };
        if let Some((from, to)) = known {
            self.duplicate = Some((from, if to.is_after(right) { right } else { to }));
        }
    }

    /// Whether a duplicate arrived that was not reported.
    pub(crate) fn has_duplicate(&self) -> bool {
        self.duplicate.is_some()
    }

    /// Takes the duplicate to report: each is reported once.
    pub(crate) fn take_duplicate(&mut self) -> Option<(SeqNumber, SeqNumber)> {
        self.duplicate.take()
    }

    /// Whether the byte at `seq` has arrived.
    pub(crate) fn has(&self, seq: SeqNumber) -> bool {
        seq.is_before(self.nxt)
            || self
                .islands
                .iter()
                .any(|island| island.left.is_at_or_before(seq) && seq.is_before(island.right))
    }

    /// Whether something beyond a hole has arrived.
    pub(crate) fn has_islands(&self) -> bool {
        !self.islands.is_empty()
    }

    /// The SACK option: at most `most` blocks, first the `duplicate` to report, then that which grew last.
    pub(crate) fn sack_blocks(&self, most: usize, duplicate: Option<(SeqNumber, SeqNumber)>) -> SackBlocks {
        let mut blocks = SackBlocks::EMPTY;
        if let Some((left, right)) = duplicate
            && most > 0
        {
            blocks.push(left, right);
        }
        let mut before = u64::MAX;
        while blocks.as_slice().len() < most.min(SackBlocks::CAPACITY) {
            let latest =
                self.islands.iter().filter(|island| island.grown < before).max_by_key(|island| island.grown);
            let Some(island) = latest else { break };
            blocks.push(island.left, island.right);
            before = island.grown;
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn queue() -> ReceiveQueue {
        ReceiveQueue::new(SeqNumber(5_000))
    }

    fn arrive(queue: &mut ReceiveQueue, left: u32) -> (Arrival, u32, Vec<(u32, u32)>) {
        let arrival = queue.insert(SeqNumber(left), SeqNumber(left + 500));
        let blocks = queue.sack_blocks(4, None).as_slice().iter().map(|b| (b.0.0, b.1.0)).collect();
        (arrival, queue.nxt().0, blocks)
    }

    #[test]
    fn one_island_grows_when_only_the_first_segment_is_lost() {
        // RFC 2018 section 7, case 2.
        let mut queue = queue();
        for right in (6_000..=9_000).step_by(500) {
            let (arrival, nxt, blocks) = arrive(&mut queue, right - 500);
            assert_eq!((arrival, nxt), (Arrival::OutOfOrder, 5_000));
            assert_eq!(blocks, [(5_500, right)]);
        }
    }

    #[test]
    fn the_island_that_grew_last_is_reported_first() {
        // RFC 2018 section 7, case 3: the 2nd, 4th, 6th and 8th of eight segments are lost.
        let mut queue = queue();
        assert_eq!(arrive(&mut queue, 5_000), (Arrival::InOrder, 5_500, Vec::new()));
        assert_eq!(arrive(&mut queue, 6_000).2, [(6_000, 6_500)]);
        assert_eq!(arrive(&mut queue, 7_000).2, [(7_000, 7_500), (6_000, 6_500)]);
        assert_eq!(arrive(&mut queue, 8_000).2, [(8_000, 8_500), (7_000, 7_500), (6_000, 6_500)]);
        assert_eq!(arrive(&mut queue, 6_500).2, [(6_000, 7_500), (8_000, 8_500)]);
        assert_eq!(arrive(&mut queue, 5_500), (Arrival::FillsGap, 7_500, [(8_000, 8_500)].into()));
    }

    /// What is acknowledged after `arriving` came, when everything before `nxt` and `islands` are there.
    fn report(nxt: u32, islands: &[(u32, u32)], arriving: (u32, u32)) -> (u32, Vec<(u32, u32)>) {
        let mut queue = ReceiveQueue::new(SeqNumber(nxt));
        for &(left, right) in islands {
            queue.insert(SeqNumber(left), SeqNumber(right));
        }
        queue.take_duplicate();
        queue.insert(SeqNumber(arriving.0), SeqNumber(arriving.1));
        let duplicate = queue.take_duplicate();
        let blocks = queue.sack_blocks(4, duplicate);
        (queue.nxt().0, blocks.as_slice().iter().map(|b| (b.0.0, b.1.0)).collect())
    }

    #[test]
    fn duplicates_are_reported_as_rfc_2883_prints_it() {
        // Section 4.1.1, examples 1 to 3: whole segments; section 4.1.2, 4 to 6: parts of a larger one.
        assert_eq!(report(4_000, &[], (3_000, 3_500)), (4_000, [(3_000, 3_500)].into()));
        assert_eq!(
            report(4_000, &[(4_500, 5_000)], (3_000, 3_500)),
            (4_000, [(3_000, 3_500), (4_500, 5_000)].into())
        );
        assert_eq!(
            report(4_000, &[(4_500, 5_500)], (5_000, 5_500)),
            (4_000, [(5_000, 5_500), (4_500, 5_500)].into())
        );
        assert_eq!(report(1_500, &[(2_000, 2_500)], (1_000, 2_000)), (2_500, [(1_000, 1_500)].into()));
        assert_eq!(
            report(1_500, &[(2_000, 2_500), (3_000, 3_500)], (1_000, 2_500)),
            (2_500, [(1_000, 1_500), (3_000, 3_500)].into())
        );
        assert_eq!(
            report(1_000, &[(1_500, 2_000), (3_500, 4_000)], (1_500, 3_000)),
            (1_000, [(1_500, 2_000), (1_500, 3_000), (3_500, 4_000)].into())
        );
    }

    #[test]
    fn a_duplicate_is_reported_once_and_new_data_never() {
        let mut queue = queue();
        queue.insert(SeqNumber(5_000), SeqNumber(5_500));
        queue.insert(SeqNumber(6_000), SeqNumber(6_500));
        assert_eq!(queue.take_duplicate(), None);
        queue.insert(SeqNumber(5_000), SeqNumber(5_500));
        assert_eq!(queue.take_duplicate(), Some((SeqNumber(5_000), SeqNumber(5_500))));
        assert_eq!(queue.take_duplicate(), None);
    }

    #[test]
    fn what_is_known_is_a_duplicate_in_order_and_beyond() {
        let mut queue = queue();
        arrive(&mut queue, 5_000);
        assert_eq!(arrive(&mut queue, 5_000).0, Arrival::Duplicate);
        arrive(&mut queue, 6_500);
        assert_eq!(arrive(&mut queue, 6_500).0, Arrival::Duplicate);
        assert!(queue.has(SeqNumber(6_999)) && !queue.has(SeqNumber(7_000)) && !queue.has(SeqNumber(6_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn reassembly_agrees_with_a_set_of_bytes(pieces in prop::collection::vec((0_u32..60, 1_u32..12), 1..40)) {
            let start = SeqNumber(u32::MAX - 20);
            let mut queue = ReceiveQueue::new(start);
            let mut bytes = BTreeSet::new();
            for (left, len) in pieces {
                let fresh = (left..left + len).any(|byte| !bytes.contains(&byte));
                let arrival = queue.insert(start.plus(left), start.plus(left + len));
                // An arrival that joins two known islands without adding a byte of its own cannot occur.
                prop_assert_eq!(arrival != Arrival::Duplicate, fresh);
                bytes.extend(left..left + len);
                let in_order = (0..).find(|byte| !bytes.contains(byte)).unwrap_or(0);
                prop_assert_eq!(queue.nxt(), start.plus(in_order));
                for byte in 0..72 {
                    prop_assert_eq!(queue.has(start.plus(byte)), bytes.contains(&byte));
                }
            }
        }
    }
}
