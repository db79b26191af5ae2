//! Which sightings are of one datagram.
//!
//! Nothing but its bytes follows a datagram through a kernel. On the way its outside changes - tunnels come and go,
//! the time to live counts down - but what is inside does not, and that names it.

use std::collections::BTreeMap;

use careof_base::{Duration, Instant};

/// A datagram that was not seen for so long was dropped by some kernel.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(300);
/// How often the forgotten are looked for.
const SWEEP: Duration = Duration::from_secs(30);
/// Datagrams that look the same and are told apart: more than wait in the queues of a path.
const MOST_ALIKE: usize = 4096;

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The one-way links it entered, one bit each.
    ways: u128,
    /// Whether it was taken out of a link's queue and has not entered another one since.
    is_moving: bool,
    seen: Instant,
}

impl Known {
    const fn new(ways: u128, seen: Instant) -> Self {
        Self { ways, is_moving: false, seen }
    }
}

/// A datagram that enters a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    /// Whether it was moved here from another link's queue: nobody sends it anew.
    pub(super) is_moved: bool,
}

/// The datagrams under way.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    /// By content and, since those of IPv6 may look the same, by their number: in the order in which they were sent.
    by_content: BTreeMap<(u64, u64), Known>,
    /// By the emulator's number: those on a link.
    on_links: BTreeMap<u64, u64>,
    made: u64,
    swept: Instant,
}

impl Datagrams {
    /// A datagram enters the one-way link `way`, where it has `number`: who it is. A datagram crosses a link once; what
    /// looks the same and enters it again is another one, unless it was taken back before. Links and hosts keep the order, so of
    /// several that look the same the first that has not crossed a link is the next to do so.
    pub(super) fn enter(&mut self, now: Instant, content: u64, way: u32, number: u64) -> Entry {
        self.sweep(now);
        let bit = 1_u128.checked_shl(way).unwrap_or(0);
        let mut alike = 0;
        let mut next = None;
        for (&(_, id), known) in self.by_content.range_mut(alike_to(content)) {
            alike += 1;
            if known.is_moving {
                next = Some((id, known));
                break;
            }
            if next.is_none() && known.ways & bit == 0 {
                next = Some((id, known));
            }
        }
        let entry = match next {
            Some((id, known)) => {
                known.ways |= bit;
                known.seen = now;
                Entry { id, is_moved: std::mem::take(&mut known.is_moving) }
            }
            None => Entry { id: self.make(now, content, bit, alike), is_moved: false },
        };
        if number != 0 {
            self.on_links.insert(number, entry.id);
        }
        entry
    }

    /// A new datagram, of which there are `alike` already.
    fn make(&mut self, now: Instant, content: u64, ways: u128, alike: usize) -> u64 {
        if alike >= MOST_ALIKE
            && let Some((&oldest, _)) = self.by_content.range(alike_to(content)).next()
        {
            self.by_content.remove(&oldest);
        }
        self.made += 1;
        self.by_content.insert((content, self.made), Known::new(ways, now));
        self.made
    }

    /// A datagram was taken out of a link's queue, and enters another link next.
    pub(super) fn take_back(&mut self, content: u64, id: u64) {
        if let Some(known) = self.by_content.get_mut(&(content, id)) {
            known.is_moving = true;
        }
    }

    /// Who a datagram is that was put together from fragments: the one that was cut, if that was seen.
    pub(super) fn whole(&mut self, now: Instant, content: u64) -> u64 {
        if let Some((&(_, id), known)) = self.by_content.range_mut(alike_to(content)).next() {
            known.seen = now;
            return id;
        }
        self.make(now, content, 0, 0)
    }

    /// The datagram that had `number` on a link has left it, one way or another.
    pub(super) fn leave(&mut self, number: u64) -> Option<u64> {
        self.on_links.remove(&number)
    }

    /// Datagrams on links.
    pub(super) fn on_links(&self) -> usize {
        self.on_links.len()
    }

    /// Nothing more will be seen of a datagram.
    pub(super) fn forget(&mut self, content: u64, id: u64) {
        self.by_content.remove(&(content, id));
    }

    /// Datagrams of which more may be seen.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.by_content.len()
    }

    fn sweep(&mut self, now: Instant) {
        if now < self.swept + SWEEP {
            return;
        }
        self.swept = now;
        self.by_content.retain(|_, known| now < known.seen + FORGOTTEN_AFTER);
    }
}

/// The keys of datagrams with this content.
const fn alike_to(content: u64) -> std::ops::RangeInclusive<(u64, u64)> {
    (content, 0)..=(content, u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_enters_a_link_again_is_another_datagram() {
        let mut datagrams = Datagrams::default();
        let now = Instant::ZERO;
        let first = datagrams.enter(now, 1, 0, 100);
        assert_eq!(datagrams.leave(100), Some(first.id));
        assert_eq!(datagrams.enter(now, 1, 2, 101), first, "the next link of its way");
        let again = datagrams.enter(now, 1, 0, 102);
        assert_ne!(again.id, first.id);
        assert_eq!(datagrams.on_links(), 2);
        datagrams.forget(1, first.id);
        assert_eq!(datagrams.enter(now, 1, 2, 103), again, "only the first was forgotten");
    }

    #[test]
    fn what_is_moved_from_queue_to_queue_and_back_stays_itself() {
        let mut datagrams = Datagrams::default();
        let Entry { id, is_moved } = datagrams.enter(Instant::ZERO, 1, 0, 100);
        assert!(!is_moved);
        for (way, number) in [(2, 101), (0, 102)] {
            datagrams.take_back(1, id);
            assert_eq!(datagrams.enter(Instant::ZERO, 1, way, number), Entry { id, is_moved: true });
        }
        assert!(!datagrams.enter(Instant::ZERO, 1, 4, 103).is_moved, "it goes on from there by itself");
    }
    #[test]
    fn datagrams_that_look_the_same_are_told_apart_by_their_order() {
        let mut datagrams = Datagrams::default();
        let enter =
            |datagrams: &mut Datagrams, way, number| datagrams.enter(Instant::ZERO, 1, way, number).id;
        let sent: Vec<u64> = (0..3).map(|n| enter(&mut datagrams, 0, 100 + n)).collect();
        datagrams.forget(1, sent[1]);
        let passed_on: Vec<u64> = (0..2).map(|n| enter(&mut datagrams, 2, 200 + n)).collect();
        assert_eq!(passed_on, [sent[0], sent[2]], "the second was lost");
        datagrams.take_back(1, sent[2]);
        assert_eq!(datagrams.enter(Instant::ZERO, 1, 4, 300), Entry { id: sent[2], is_moved: true });
    }

    #[test]
    fn memory_for_datagrams_that_look_the_same_is_bounded() {
        let mut datagrams = Datagrams::default();
        for number in 0..2 * MOST_ALIKE as u64 {
            datagrams.enter(Instant::ZERO, 1, 0, number);
        }
        assert_eq!(datagrams.remembered(), MOST_ALIKE);
    }
}
