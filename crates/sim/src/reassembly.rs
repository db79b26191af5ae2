//! Reassembly of datagrams whose fragments are structs (RFC 791 section 3.2).
//!
//! Every fragment in the simulator names the whole body, so putting a datagram together is a matter of
//! knowing that all parts arrived. The lab reassembles bytes with `careof_wire`.

use careof_base::{Duration, Instant};
use careof_plan::Locator;

use crate::header::Header;
use crate::packet::PacketRef;

/// RFC 1122 section 3.3.2 asks for 60 to 120 s; Linux waits 30 s, and so do we.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Datagrams in the making at one node; the oldest gives way beyond this.
const MAX_DATAGRAMS: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    source: Locator,
    destination: Locator,
    protocol: u8,
    identification: u16,
}

struct Partial {
    key: Key,
    deadline: Instant,
    fragments: Vec<PacketRef>,
    ranges: Vec<(u32, u32)>,
    total: Option<u32>,
}

/// What became of a fragment.
pub(crate) enum Reassembled {
    /// More are needed.
    Held,
    /// The datagram is whole; these are its fragments, the one that completed it last.
    Whole(Vec<PacketRef>),
}

/// The reassembly buffer of one node.
#[derive(Default)]
pub(crate) struct Reassembly {
    partials: Vec<Partial>,
}

impl Reassembly {
    /// Adds a fragment. Datagrams that had to give way are appended to `evicted`.
    pub(crate) fn add(
        &mut self,
        now: Instant,
        header: &Header,
        fragment: PacketRef,
        evicted: &mut Vec<PacketRef>,
    ) -> Reassembled {
        let key = Key {
            source: header.source,
            destination: header.destination,
            protocol: header.protocol,
            identification: header.identification,
        };
        let index = self.partials.iter().position(|partial| partial.key == key).unwrap_or_else(|| {
            if self.partials.len() >= MAX_DATAGRAMS {
                evicted.extend(self.partials.remove(0).fragments);
            }
            self.partials.push(Partial {
                key,
                deadline: now + TIMEOUT,
                fragments: Vec::new(),
                ranges: Vec::new(),
                total: None,
            });
            self.partials.len() - 1
        });
        let partial = &mut self.partials[index];
        let start = u32::from(header.fragment_offset);
        let end = start + u32::from(header.payload_len);
        partial.fragments.push(fragment);
        partial.ranges.push((start, end));
        if !header.more_fragments {
            partial.total = Some(end);
        }
        let Some(total) = partial.total else { return Reassembled::Held };
        partial.ranges.sort_unstable();
        let covered = partial
            .ranges
            .iter()
            .fold(0, |covered, range| if range.0 <= covered { covered.max(range.1) } else { covered });
        if covered < total {
            return Reassembled::Held;
        }
        Reassembled::Whole(self.partials.remove(index).fragments)
    }

    /// When [`Reassembly::expire`] has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.partials.iter().map(|partial| partial.deadline).min()
    }

    /// Gives up datagrams that waited too long; their fragments are appended to `expired`.
    pub(crate) fn expire(&mut self, now: Instant, expired: &mut Vec<PacketRef>) {
        self.partials.retain_mut(|partial| {
            if partial.deadline <= now {
                expired.append(&mut partial.fragments);
            }
            partial.deadline > now
        });
    }

    /// Fragments held.
    pub(crate) fn held(&self) -> u64 {
        self.partials.iter().map(|partial| partial.fragments.len() as u64).sum()
    }
}
