//! A subflow of Multipath TCP: which part of the connection's data its segments carry.

use std::collections::VecDeque;
use std::net::IpAddr;

use careof_metrics::{SegmentRange, SequenceRanges};
use careof_plan::{Side, Unwrapped};
use careof_wire::SeqNumber;
use careof_wire::mptcp::DataMapping;

/// Of how many mappings of a subflow it is remembered where they lead: more than segments are under way.
const MOST_MAPPINGS: usize = 4096;

/// What a subflow sends beside data of the connection, its SYN and FIN, is counted far beyond that.
const BESIDE: i64 = 1 << 48;

/// A subflow, which is a TCP connection between addresses of its own.
#[derive(Debug)]
pub(super) struct Subflow {
    /// Counted from 0 in its connection.
    pub(super) number: u16,
    /// Of opener and acceptor of the flow.
    pub(super) addresses: [IpAddr; 2],
    /// By side: what its segments carried.
    mapped: [VecDeque<Mapped>; 2],
}

/// A stretch of a subflow that carries a stretch of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mapped {
    /// Of the subflow, as its own numbers count.
    seq: i64,
    length: i64,
    /// Of the connection, counted from 1.
    data: i64,
}

impl Mapped {
    /// Where the byte `seq` of the subflow is in the connection.
    fn locate(&self, seq: i64) -> Option<i64> {
        (self.seq..self.seq + self.length).contains(&seq).then(|| self.data + (seq - self.seq))
    }
}

/// The data that one end of a connection sends over all its subflows.
#[derive(Debug, Default)]
pub(super) struct DataSpace {
    /// Its sequence numbers, once one was seen.
    sequence: Option<Unwrapped>,
    /// What was sent over any of them.
    sent: SequenceRanges,
}

impl Subflow {
    pub(super) fn new(number: u16, addresses: [IpAddr; 2]) -> Self {
        Self { number, addresses, mapped: [VecDeque::new(), VecDeque::new()] }
    }

    /// Which data of the connection a segment of `side` carries, `length` bytes from `seq` on; and whether some of it was sent before over
    /// any subflow.
    pub(super) fn sent(
        &mut self,
        side: Side,
        (seq, length): (i64, i64),
        mapping: Option<DataMapping>,
        space: &mut DataSpace,
    ) -> (SegmentRange, bool) {
        if let Some(mapping) = mapping {
            self.note(side, seq, mapping, space);
        }
        let range = self.range(side, seq, length, space);
        // What is beside the data is repeated on one subflow alone, which knows.
        let again = range.seq < BESIDE && space.sent.insert(range.seq, range.end);
        (range, again)
    }

    /// Remembers where a stretch of the subflow leads.
    fn note(&mut self, side: Side, seq: i64, mapping: DataMapping, space: &mut DataSpace) {
        // How far the segment is into what is mapped: one mapping may be for several.
        let into = (seq as u32).wrapping_sub(mapping.subflow_seq) as i32;
        let seq = seq - i64::from(into);
        let first = SeqNumber(mapping.data_seq);
        // The data of a connection begin on its first subflow, with the same distance to the beginning in both.
        let before = if self.number == 0 { seq } else { 1 };
        let sequence = space
            .sequence
            .get_or_insert_with(|| Unwrapped::from(SeqNumber(first.0.wrapping_sub(before as u32))));
        let mapped = Mapped { seq, length: mapping.length.into(), data: sequence.follow(first) };
        let all = &mut self.mapped[side.index()];
        if all.back() != Some(&mapped) {
            all.push_back(mapped);
        }
        if all.len() > MOST_MAPPINGS {
            all.pop_front();
        }
    }

    /// The data of the connection in a segment of `side`; without data, or any that is known of, numbers of its own.
    pub(super) fn range(&self, side: Side, seq: i64, length: i64, space: &DataSpace) -> SegmentRange {
        let first = if length > 0 { self.locate(side, seq, space) } else { None };
        let first = first.unwrap_or_else(|| self.beside(seq));
        // A SYN or a FIN takes one number.
        SegmentRange { seq: first, end: first + length.max(1) }
    }

    /// Where the byte `seq` of the subflow is in the connection.
    pub(super) fn locate(&self, side: Side, seq: i64, space: &DataSpace) -> Option<i64> {
        let mapped = self.mapped[side.index()].iter().rev().find_map(|mapped| mapped.locate(seq));
        // The first data of all may come with the handshake, and have no mapping.
        mapped.or((self.number == 0 && space.sequence.is_none()).then_some(seq))
    }

    /// What stands for a number of the subflow that is none of the connection's.
    pub(super) fn beside(&self, seq: i64) -> i64 {
        (i64::from(self.number) + 1) * BESIDE + seq
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn subflow(number: u16) -> Subflow {
        Subflow::new(number, [IpAddr::V4(Ipv4Addr::LOCALHOST); 2])
    }

    const fn mapping(data_seq: u32, subflow_seq: u32, length: u16) -> Option<DataMapping> {
        Some(DataMapping { data_seq, subflow_seq, length })
    }

    fn range(seq: i64, end: i64) -> SegmentRange {
        SegmentRange { seq, end }
    }

    #[test]
    fn data_is_counted_from_its_beginning_whatever_subflow_carries_it() {
        let mut space = DataSpace::default();
        let (mut first, mut second) = (subflow(0), subflow(1));
        let side = Side::Acceptor;
        // The connection's numbers wrap.
        let start = u32::MAX - 99;
        assert_eq!(first.sent(side, (1, 100), mapping(start, 1, 100), &mut space), (range(1, 101), false));
        assert_eq!(second.sent(side, (1, 50), mapping(0, 1, 50), &mut space), (range(101, 151), false));
        assert_eq!(first.sent(side, (101, 50), mapping(50, 101, 50), &mut space), (range(151, 201), false));
        // What the second one has lost is sent again by the first.
        assert_eq!(first.sent(side, (151, 50), mapping(0, 151, 50), &mut space), (range(101, 151), true));
        assert_eq!(first.locate(side, 151, &space), Some(101));
        assert_eq!(second.range(side, 1, 50, &space), range(101, 151), "as it arrives");
    }

    #[test]
    fn one_mapping_may_be_for_several_segments() {
        let mut space = DataSpace::default();
        let mut first = subflow(0);
        let side = Side::Opener;
        for (seq, expected) in [(1, range(1, 11)), (11, range(11, 21)), (21, range(21, 31))] {
            assert_eq!(first.sent(side, (seq, 10), mapping(7001, 1, 30), &mut space).0, expected);
        }
        // A segment that was cut off it says nothing.
        assert_eq!(first.sent(side, (25, 6), None, &mut space), (range(25, 31), true));
    }

    #[test]
    fn what_is_no_data_of_the_connection_is_counted_beside_it() {
        let mut space = DataSpace::default();
        let (mut first, mut second) = (subflow(0), subflow(1));
        let side = Side::Opener;
        // The first data, with the handshake.
        assert_eq!(first.sent(side, (1, 10), None, &mut space), (range(1, 11), false));
        first.sent(side, (11, 10), mapping(500, 11, 10), &mut space);
        let syn = second.sent(side, (0, 0), None, &mut space).0;
        let fin = first.sent(side, (21, 0), None, &mut space).0;
        assert!(syn.seq >= BESIDE && fin.seq >= BESIDE && syn != fin);
        assert_eq!((syn.end - syn.seq, fin.end - fin.seq), (1, 1));
        assert_eq!(second.sent(side, (1, 10), mapping(510, 1, 10), &mut space), (range(21, 31), false));
    }
}
