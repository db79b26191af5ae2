//! Putting fragments together again (RFC 791 section 3.2, RFC 1122 section 3.3.2).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::{Duration, Instant};

use super::Ipv4Header;
use crate::Error;

const FRAGMENT_OFFSET: usize = 6;

/// What keeping a fragment costs beside its payload, bytes: without it, a flood of fragments of 8 bytes
/// would hold a multiple of the limit.
const COST_OF_A_FRAGMENT: usize = 64;

/// How much a [`Reassembler`] may hold, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Datagrams that wait for fragments; the oldest gives way to a new one.
    pub datagrams: usize,
    /// Bytes of fragments, with an allowance of 64 for each; the oldest datagram gives way.
    pub bytes: usize,
    /// How long a datagram waits, from its first fragment to arrive.
    pub timeout: Duration,
}

impl Default for ReassemblyLimits {
    /// 64 datagrams, 1 MiB, 60 s (the least RFC 1122 section 3.3.2 recommends).
    fn default() -> Self {
        Self { datagrams: 64, bytes: 1 << 20, timeout: Duration::from_secs(60) }
    }
}

/// What became of fragments. Every fragment handed over is counted once, when its fate is known:
/// `fragments_reassembled` and the `dropped_*` together are all but those still waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReassemblyCounters {
    /// Datagrams completed.
    pub datagrams_reassembled: u64,
    /// Fragments that became part of one.
    pub fragments_reassembled: u64,
    /// Fragments that were there already, byte for byte.
    pub dropped_duplicate: u64,
    /// Fragments of datagrams whose fragments contradict each other: they overlap, or disagree on the end.
    pub dropped_inconsistent: u64,
    /// Fragments of datagrams that had to give way.
    pub dropped_no_room: u64,
    /// Fragments of datagrams that waited too long.
    pub dropped_timeout: u64,
    /// Fragments that are none: malformed, or reaching beyond the longest datagram.
    pub dropped_malformed: u64,
}

/// Tells the fragments of one datagram from those of another.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    source: Ipv4Addr,
    destination: Ipv4Addr,
    protocol: u8,
    identification: u16,
}

/// A datagram that waits for fragments.
struct Partial {
    key: Key,
    deadline: Instant,
    /// The header of the fragment at offset 0.
    header: Option<Ipv4Header>,
    /// Bytes of payload of the whole datagram, known from its last fragment.
    total: Option<usize>,
    /// Payloads by their offset; they do not overlap.
    pieces: BTreeMap<usize, Vec<u8>>,
    /// Bytes in `pieces`.
    held: usize,
}

enum Fit {
    New,
    Duplicate,
    Inconsistent,
}

impl Partial {
    fn cost(&self) -> usize {
        self.held + self.pieces.len() * COST_OF_A_FRAGMENT
    }

    fn end(&self) -> usize {
        self.pieces.last_key_value().map_or(0, |(offset, piece)| offset + piece.len())
    }

    /// How a fragment of `payload` at `offset` fits what is there.
    ///
    /// Whoever overlaps fragments on purpose counts on two receivers putting them together differently;
    /// honest fragments never overlap but when they are duplicates (RFC 5722 of IPv6; Linux of both).
    fn fit(&self, offset: usize, payload: &[u8], is_last: bool) -> Fit {
        let end = offset + payload.len();
        let beyond_the_end = match self.total {
            Some(total) => end > total || (is_last && end != total),
            None => is_last && end < self.end(),
        };
        if beyond_the_end {
            return Fit::Inconsistent;
        }
        match self.pieces.range(..end).next_back() {
            Some((at, piece)) if *at == offset && piece == payload => Fit::Duplicate,
            Some((at, piece)) if at + piece.len() > offset => Fit::Inconsistent,
            _ => Fit::New,
        }
    }

    /// The whole datagram, when nothing is missing.
    fn assemble(&self) -> Option<Vec<u8>> {
        let total = self.total.filter(|total| *total == self.held)?;
        // The payload was checked against the longest a datagram can have.
        let payload_len = total as u16;
        let mut bytes = Vec::with_capacity(usize::from(Ipv4Header::LEN) + total);
        Ipv4Header { more_fragments: false, payload_len, ..self.header? }.emit(&mut bytes);
        self.pieces.values().for_each(|piece| bytes.extend(piece));
        Some(bytes)
    }
}

/// Puts fragments together, within limits.
///
/// The owner hands every fragment to [`Reassembler::handle_fragment`], which gives the whole datagram as
/// soon as it is there, and calls [`Reassembler::handle_timeout`] at [`Reassembler::next_timeout`]. Options
/// of the fragments are not kept, and no Time Exceeded is made for those that run out of time.
pub struct Reassembler {
    limits: ReassemblyLimits,
    /// Oldest first: all wait equally long.
    waiting: Vec<Partial>,
    counters: ReassemblyCounters,
}

impl Reassembler {
    /// A reassembler that holds nothing.
    #[must_use]
    pub const fn new(limits: ReassemblyLimits) -> Self {
        const NONE: ReassemblyCounters = ReassemblyCounters {
            datagrams_reassembled: 0,
            fragments_reassembled: 0,
            dropped_duplicate: 0,
            dropped_inconsistent: 0,
            dropped_no_room: 0,
            dropped_timeout: 0,
            dropped_malformed: 0,
        };
        Self { limits, waiting: Vec::new(), counters: NONE }
    }

    /// What became of fragments so far.
    #[must_use]
    pub const fn counters(&self) -> &ReassemblyCounters {
        &self.counters
    }

    /// Fragments that wait for others.
    #[must_use]
    pub fn fragments_waiting(&self) -> usize {
        self.waiting.iter().map(|partial| partial.pieces.len()).sum()
    }

    /// When [`Reassembler::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first().map(|partial| partial.deadline)
    }

    /// Drops the datagrams that have waited too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.counters.dropped_timeout += self.forget(0);
        }
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
                self.counters.dropped_malformed += 1;
                return Err(error);
            }
        };
        if !header.is_fragment() {
            return Ok(Some(bytes.to_vec()));
        }
        let Some(at) = self.place(now, &header) else {
            self.counters.dropped_no_room += 1;
            return Ok(None);
        };
        let Some(partial) = self.waiting.get_mut(at) else { return Ok(None) };
        let offset = usize::from(header.fragment_offset);
        match partial.fit(offset, payload, !header.more_fragments) {
            Fit::New => {}
            Fit::Duplicate => {
                self.counters.dropped_duplicate += 1;
                return Ok(None);
            }
            Fit::Inconsistent => {
                self.counters.dropped_inconsistent += 1 + self.forget(at);
                return Ok(None);
            }
        }
        if !header.more_fragments {
            partial.total = Some(offset + payload.len());
        }
        if offset == 0 {
            partial.header = Some(header);
        }
        partial.held += payload.len();
        partial.pieces.insert(offset, payload.to_vec());
        if let Some(whole) = partial.assemble() {
            self.counters.datagrams_reassembled += 1;
            self.counters.fragments_reassembled += self.forget(at);
            return Ok(Some(whole));
        }
        while self.waiting.iter().map(Partial::cost).sum::<usize>() > self.limits.bytes {
            self.counters.dropped_no_room += self.forget(0);
        }
        Ok(None)
    }

    /// Where the datagram of this fragment waits, with room made for it if it is new; `None` where the
    /// limits allow no datagram at all.
    fn place(&mut self, now: Instant, header: &Ipv4Header) -> Option<usize> {
        let Ipv4Header { source, destination, protocol, identification, .. } = *header;
        let key = Key { source, destination, protocol, identification };
        if let Some(at) = self.waiting.iter().position(|partial| partial.key == key) {
            return Some(at);
        }
        if self.limits.datagrams == 0 {
            return None;
        }
        while self.waiting.len() >= self.limits.datagrams {
            self.counters.dropped_no_room += self.forget(0);
        }
        let deadline = now + self.limits.timeout;
        self.waiting.push(Partial {
            key,
            deadline,
            header: None,
            total: None,
            pieces: BTreeMap::new(),
            held: 0,
        });
        Some(self.waiting.len() - 1)
    }

    /// Lets go of a datagram; the number of its fragments.
    fn forget(&mut self, at: usize) -> u64 {
        self.waiting.remove(at).pieces.len() as u64
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
