//! Putting fragments together again, of either version of IP: which fragments make a whole, within limits.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use careof_base::{Duration, Instant};

/// What keeping a fragment costs beside its payload, bytes: without it, a flood of fragments of 8 bytes
/// would hold a multiple of the limit.
const COST_OF_A_FRAGMENT: usize = 64;

/// How much a reassembler may hold, and for how long.
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
    /// 64 datagrams, 1 MiB, 60 s (the least RFC 1122 section 3.3.2 recommends, and what RFC 8200 section 4.5 says).
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

/// A datagram that waits for fragments.
struct Partial<K, H> {
    key: K,
    deadline: Instant,
    /// What stands in front of the payload, from the fragment at offset 0.
    head: Option<H>,
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

impl<K, H: Head> Partial<K, H> {
    fn cost(&self) -> usize {
        let head = self.head.as_ref().map_or(0, Head::cost);
        head + self.held + self.pieces.len() * COST_OF_A_FRAGMENT
    }

    fn end(&self) -> usize {
        self.pieces.last_key_value().map_or(0, |(offset, piece)| offset + piece.len())
    }

    /// How a fragment of `payload` at `offset` fits what is there.
    ///
    /// Whoever overlaps fragments on purpose counts on two receivers putting them together differently;
    /// honest fragments never overlap but when they are duplicates (RFC 8200 section 4.5 of IPv6; Linux of both).
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

    fn is_whole(&self) -> bool {
        self.head.is_some() && self.total == Some(self.held)
    }
}

/// What stands in front of the payload of a whole datagram.
pub(crate) trait Head {
    /// Bytes it holds beyond its own size.
    fn cost(&self) -> usize;
}

/// A fragment.
pub(crate) struct Fragment<'a, K, H> {
    /// Tells the fragments of one datagram from those of another.
    pub(crate) key: K,
    /// Where it belongs in the datagram's payload, bytes.
    pub(crate) offset: usize,
    /// Whether there are others behind it.
    pub(crate) more_fragments: bool,
    /// Its part of the payload.
    pub(crate) payload: &'a [u8],
    /// What stands in front of it; only that of the fragment at offset 0 is kept.
    pub(crate) head: H,
}

/// A datagram of which nothing is missing: what stands in front of its payload, and the parts of that in order.
pub(crate) struct Whole<H> {
    pub(crate) head: H,
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Bytes in `pieces`.
    pub(crate) len: usize,
}

/// The fragments of some datagrams, which `K` tells apart. The owner judges a fragment by itself; this judges it by the others.
pub(crate) struct Fragments<K, H> {
    limits: ReassemblyLimits,
    /// Oldest first: all wait equally long.
    waiting: Vec<Partial<K, H>>,
    pub(crate) counters: ReassemblyCounters,
}

impl<K: PartialEq, H: Head> Fragments<K, H> {
    pub(crate) const fn new(limits: ReassemblyLimits) -> Self {
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

    /// Fragments that wait for others.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.iter().map(|partial| partial.pieces.len()).sum()
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.waiting.first().map(|partial| partial.deadline)
    }

    /// Drops the datagrams that have waited too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while self.next_timeout().is_some_and(|deadline| deadline <= now) {
            self.counters.dropped_timeout += self.forget(0);
        }
    }

    /// Takes a fragment; gives back the datagram that it completes.
    pub(crate) fn handle(&mut self, now: Instant, fragment: Fragment<'_, K, H>) -> Option<Whole<H>> {
        let Fragment { key, offset, more_fragments, payload, head } = fragment;
        let Some(at) = self.place(now, key) else {
            self.counters.dropped_no_room += 1;
            return None;
        };
        let partial = self.waiting.get_mut(at)?;
        match partial.fit(offset, payload, !more_fragments) {
            Fit::New => {}
            Fit::Duplicate => {
                self.counters.dropped_duplicate += 1;
                return None;
            }
            Fit::Inconsistent => {
                self.counters.dropped_inconsistent += 1 + self.forget(at);
                return None;
            }
        }
        if !more_fragments {
            partial.total = Some(offset + payload.len());
        }
        if offset == 0 {
            partial.head = Some(head);
        }
        partial.held += payload.len();
        partial.pieces.insert(offset, payload.to_vec());
        if partial.is_whole() {
            let Partial { head, pieces, held, .. } = self.waiting.remove(at);
            self.counters.datagrams_reassembled += 1;
            self.counters.fragments_reassembled += pieces.len() as u64;
            return Some(Whole { head: head?, pieces: pieces.into_values().collect(), len: held });
        }
        while self.waiting.iter().map(Partial::cost).sum::<usize>() > self.limits.bytes {
            self.counters.dropped_no_room += self.forget(0);
        }
        None
    }

    /// Where the datagram of this fragment waits, with room made for it if it is new; `None` where the
    /// limits allow no datagram at all.
    fn place(&mut self, now: Instant, key: K) -> Option<usize> {
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
            head: None,
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
