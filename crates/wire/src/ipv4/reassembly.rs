//! Putting fragments together again (RFC 791 section 3.2, RFC 1122 section 3.3.2).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;

use super::Ipv4Header;
use crate::Error;
use crate::reassembly::{Fragment, Fragments, Head};
use crate::reassembly::{ReassemblyCounters, ReassemblyLimits};

const FRAGMENT_OFFSET: usize = 6;

/// Tells the fragments of one datagram from those of another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    identification: u16,
}

impl Head for Ipv4Header {
    fn cost(&self) -> usize {
        0
    }
}

/// Puts fragments together, within limits.
///
/// The owner hands every fragment to [`Reassembler::handle_fragment`], which gives the whole datagram as
/// soon as it is there, and calls [`Reassembler::handle_timeout`] at [`Reassembler::next_timeout`]. Options
/// of the fragments are not kept, and no Time Exceeded is made for those that run out of time.
pub struct Reassembler {
    fragments: Fragments<Key, Ipv4Header>,
}

impl Reassembler {
    /// A reassembler that holds nothing.
    #[must_use]
    pub const fn new(limits: ReassemblyLimits) -> Self {
        Self { fragments: Fragments::new(limits) }
    }

    /// What became of fragments so far.
    #[must_use]
    pub const fn counters(&self) -> &ReassemblyCounters {
        &self.fragments.counters
    }

    /// Fragments that wait for others.
    #[must_use]
    pub fn fragments_waiting(&self) -> usize {
        self.fragments.waiting()
    }

    /// When [`Reassembler::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.fragments.next_timeout()
    }

    /// Drops the datagrams that have waited too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.fragments.handle_timeout(now);
    }

    /// Takes the datagram `bytes`: gives back a whole one, completed by this fragment or none to begin
    /// with, or `None` while others are missing.
    ///
    /// # Errors
    ///
    /// Bytes that are no datagram, or a fragment that cannot be one. It is counted as
    /// [`ReassemblyCounters::dropped_malformed`] as well.
    pub fn handle_fragment(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.handle_timeout(now);
        let (header, payload) = match check(bytes) {
            Ok(checked) => checked,
            Err(error) => {
                self.fragments.counters.dropped_malformed += 1;
                return Err(error);
            }
        };
        if !header.is_fragment() {
            return Ok(Some(bytes.to_vec()));
        }
        let Ipv4Header { source, destination, protocol, identification, .. } = header;
        let fragment = Fragment {
            key: Key { source, destination, protocol, identification },
            offset: usize::from(header.fragment_offset),
            more_fragments: header.more_fragments,
            payload,
            head: header,
        };
        let Some(whole) = self.fragments.handle(now, fragment) else { return Ok(None) };
        // Each fragment was checked against the longest a datagram can be.
        let payload_len = whole.len as u16;
        let mut bytes = Vec::with_capacity(usize::from(Ipv4Header::LEN) + whole.len);
        Ipv4Header { more_fragments: false, payload_len, ..whole.head }.emit(&mut bytes);
        whole.pieces.iter().for_each(|piece| bytes.extend(piece));
        Ok(Some(bytes))
    }
}

/// A datagram whose fragment fields, if it is one, make sense.
fn check(bytes: &[u8]) -> Result<(Ipv4Header, &[u8]), Error> {
    let (header, payload) = Ipv4Header::parse(bytes)?;
    if !header.is_fragment() {
        return Ok((header, payload));
    }
    let invalid = |field, found: usize, expected| Error::Invalid {
        field,
        offset: FRAGMENT_OFFSET,
        found: found as u32,
        expected,
    };
    if payload.is_empty() {
        return Err(invalid("length of a fragment", 0, "1 or more"));
    }
    if header.more_fragments && !payload.len().is_multiple_of(8) {
        return Err(invalid("length of a fragment that is not the last", payload.len(), "a multiple of 8"));
    }
    let end = usize::from(header.fragment_offset) + payload.len();
    if end > usize::from(Ipv4Header::MAX_PAYLOAD_LEN) {
        return Err(invalid("end of a fragment", end, "within the longest datagram"));
    }
    Ok((header, payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipv4::fragment;

    fn datagram(identification: u16, len: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        Ipv4Header { identification, payload_len: len, ..Ipv4Header::default() }.emit(&mut bytes);
        bytes.extend((0..len).map(|i| (i % 251) as u8));
        bytes
    }

    fn piece(offset: u16, payload: &[u8], more_fragments: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        let payload_len = payload.len() as u16;
        Ipv4Header { fragment_offset: offset, more_fragments, payload_len, ..Ipv4Header::default() }
            .emit(&mut bytes);
        bytes.extend(payload);
        bytes
    }

    /// Every fragment is accounted for.
    #[track_caller]
    fn check_conservation(reassembler: &Reassembler, handed_over: u64) {
        let c = reassembler.counters();
        let fates = c.fragments_reassembled
            + c.dropped_duplicate
            + c.dropped_inconsistent
            + c.dropped_no_room
            + c.dropped_timeout
            + c.dropped_malformed;
        assert_eq!(fates + reassembler.fragments_waiting() as u64, handed_over, "{c:?}");
    }

    #[test]
    fn fragments_in_any_order_make_the_datagram() {
        let bytes = datagram(7, 1000);
        let fragments = fragment(&bytes, 276).unwrap();
        assert_eq!(fragments.len(), 4);
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 0, 3, 1]] {
            let mut reassembler = Reassembler::new(ReassemblyLimits::default());
            let mut whole = None;
            for at in order {
                assert_eq!(whole, None);
                whole = reassembler.handle_fragment(Instant::ZERO, &fragments[at]).unwrap();
            }
            assert_eq!(whole.as_ref(), Some(&bytes));
            assert_eq!(reassembler.counters().datagrams_reassembled, 1);
            assert_eq!(reassembler.next_timeout(), None);
            check_conservation(&reassembler, 4);
        }
    }

    #[test]
    fn a_whole_datagram_passes() {
        let bytes = datagram(7, 100);
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &bytes), Ok(Some(bytes)));
    }

    #[test]
    fn fragments_of_different_datagrams_do_not_mix() {
        let (first, second) = (datagram(1, 64), datagram(2, 64));
        let (a, b) = (fragment(&first, 52).unwrap(), fragment(&second, 52).unwrap());
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &a[0]), Ok(None));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &b[1]), Ok(None));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &b[0]), Ok(Some(second)));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &a[1]), Ok(Some(first)));
    }

    #[test]
    fn a_duplicate_does_no_harm() {
        let bytes = datagram(7, 64);
        let fragments = fragment(&bytes, 52).unwrap();
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[0]), Ok(None));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[0]), Ok(None));
        assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[1]), Ok(Some(bytes)));
        assert_eq!(reassembler.counters().dropped_duplicate, 1);
        check_conservation(&reassembler, 3);
    }

    #[test]
    fn fragments_that_contradict_each_other_drop_the_datagram() {
        let contradictions = [
            [piece(0, &[1; 16], true), piece(8, &[2; 16], true)],
            [piece(8, &[1; 16], true), piece(0, &[2; 16], true)],
            [piece(0, &[1; 8], true), piece(0, &[2; 8], true)],
            [piece(0, &[1; 24], true), piece(8, &[1; 8], true)],
            [piece(8, &[1; 8], true), piece(0, &[1; 24], true)],
            [piece(8, &[1; 8], false), piece(16, &[1; 8], true)],
            [piece(8, &[1; 8], false), piece(16, &[1; 8], false)],
            [piece(16, &[1; 8], true), piece(8, &[1; 8], false)],
            [piece(16, &[1; 8], false), piece(8, &[1; 4], false)],
        ];
        for [first, second] in contradictions {
            let mut reassembler = Reassembler::new(ReassemblyLimits::default());
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, &first), Ok(None));
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, &second), Ok(None));
            assert_eq!(reassembler.counters().dropped_inconsistent, 2, "{first:?} {second:?}");
            assert_eq!(reassembler.next_timeout(), None);
        }
    }

    #[test]
    fn what_waits_too_long_is_dropped() {
        let fragments = fragment(&datagram(7, 64), 52).unwrap();
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        let start = Instant::from_secs(5);
        assert_eq!(reassembler.handle_fragment(start, &fragments[0]), Ok(None));
        assert_eq!(reassembler.next_timeout(), Some(Instant::from_secs(65)));
        reassembler.handle_timeout(Instant::from_millis(64_999));
        assert_eq!(reassembler.fragments_waiting(), 1);
        assert_eq!(reassembler.handle_fragment(Instant::from_secs(65), &fragments[1]), Ok(None));
        assert_eq!(reassembler.counters().dropped_timeout, 1);
        assert_eq!(reassembler.next_timeout(), Some(Instant::from_secs(125)));
        check_conservation(&reassembler, 2);
    }

    #[test]
    fn the_oldest_datagram_gives_way() {
        let limits = ReassemblyLimits { datagrams: 2, ..ReassemblyLimits::default() };
        let mut reassembler = Reassembler::new(limits);
        for identification in 0..5 {
            let fragments = fragment(&datagram(identification, 64), 52).unwrap();
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[0]), Ok(None));
        }
        assert_eq!(reassembler.fragments_waiting(), 2);
        assert_eq!(reassembler.counters().dropped_no_room, 3);

        let limits = ReassemblyLimits { bytes: 3 * (32 + 64), ..ReassemblyLimits::default() };
        let mut reassembler = Reassembler::new(limits);
        for identification in 0..5 {
            let fragments = fragment(&datagram(identification, 64), 52).unwrap();
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, &fragments[0]), Ok(None));
        }
        assert_eq!(reassembler.fragments_waiting(), 3);
        check_conservation(&reassembler, 5);

        for limits in [
            ReassemblyLimits { datagrams: 0, ..ReassemblyLimits::default() },
            ReassemblyLimits { bytes: 0, ..ReassemblyLimits::default() },
        ] {
            let mut reassembler = Reassembler::new(limits);
            assert_eq!(reassembler.handle_fragment(Instant::ZERO, &piece(0, &[0; 8], true)), Ok(None));
            assert_eq!(reassembler.counters().dropped_no_room, 1);
            check_conservation(&reassembler, 1);
        }
    }

    #[test]
    fn what_cannot_be_a_fragment_is_refused() {
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        for bytes in [piece(0, &[0; 7], true), piece(8, &[], false), piece(65_512, &[0; 8], false)] {
            assert!(matches!(reassembler.handle_fragment(Instant::ZERO, &bytes), Err(Error::Invalid { .. })));
        }
        assert_eq!(reassembler.counters().dropped_malformed, 3);
        assert_eq!(reassembler.fragments_waiting(), 0);
    }
}
