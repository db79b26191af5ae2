//! The event queue: one deadline a component.

use careof_base::Instant;

/// Index of a component (a link, a connection, an agent) in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

/// Bits of an [`Entry`] that name its slot.
const SLOT_BITS: u32 = 22;
/// Bits that number the askings; when they run out, what waits is numbered afresh.
const SEQUENCE_BITS: u32 = 64 - SLOT_BITS;

/// A deadline in one word that compares as (time, order of asking): 64 bits of nanoseconds, 42 of order, 22 of slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry(u128);

impl Entry {
    fn new(at: Instant, sequence: u64, slot: Slot) -> Self {
        Self(u128::from(at.as_nanos()) << 64 | u128::from(sequence << SLOT_BITS | u64::from(slot.0)))
    }

    const fn at(self) -> Instant {
        Instant::from_nanos((self.0 >> 64) as u64)
    }

    const fn slot(self) -> Slot {
        Slot(self.0 as u32 & ((1 << SLOT_BITS) - 1))
    }
}

/// So many entries may be left behind in any heap.
const FEW_STALE: usize = 16;

/// Two entries, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Pair([Entry; 2]);

/// Later than every deadline: the component does not ask to be woken.
const NEVER: Entry = Entry(u128::MAX);

/// A binary heap in the total order (time, sequence).
///
/// Every component owns one slot and asks to be woken at most once at a time, so the heap holds about as many
/// entries as there are busy components - not as many as there are packets in flight. Components due at the same
/// instant are woken in the order in which they asked.
///
/// Three things make it cheap. The place of the entry that was taken last stays open at the top, for the next that is
/// added: a component asks again as a rule, or wakes another, and that takes one walk down the heap instead of two. A
/// deadline that is put off, as a retransmission timer is with every acknowledgement, is only written down: its entry
/// is put right when it comes to the top, too early. And nobody keeps track of where an entry is: one that is brought
/// forward leaves its old entry behind, which is worth nothing when it comes to the top, and is swept out before half of
/// the heap is such.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Heap,
    asked: Vec<Asked>,
    sequence: u64,
    /// Entries that were left behind.
    stale: usize,
}

/// What a component asked for.
#[derive(Clone, Copy)]
struct Asked {
    /// What it asked for last.
    wanted: Entry,
    /// The entry the heap has for it: never later than `wanted`.
    queued: Entry,
}

impl EventQueue {
    /// How many components there can be.
    pub(crate) const MAX_SLOTS: usize = 1 << SLOT_BITS;

    /// Room for one more component.
    pub(crate) fn add_slot(&mut self) -> Slot {
        assert!(self.asked.len() < Self::MAX_SLOTS, "the world was refused before it grew so large");
        self.asked.push(Asked { wanted: NEVER, queued: NEVER });
        Slot((self.asked.len() - 1) as u32)
    }

    /// Wakes `slot` at `deadline`; `None` takes that back. Asking again for the same instant keeps its place.
    #[inline(never)]
    pub(crate) fn set(&mut self, slot: Slot, deadline: Option<Instant>) {
        self.set_at(slot, deadline.unwrap_or(Instant::MAX));
    }

    /// As [`Self::set`]; [`Instant::MAX`] takes it back.
    #[inline(always)]
    pub(crate) fn set_at(&mut self, slot: Slot, at: Instant) {
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        let asked = &mut self.asked[slot.0 as usize];
        if at == Instant::MAX {
            asked.wanted = NEVER;
            return;
        }
        if asked.wanted.at() == at {
            return;
        }
        self.sequence += 1;
        let entry = Entry::new(at, self.sequence, slot);
        asked.wanted = entry;
        if entry < asked.queued {
            let is_brought_forward = asked.queued != NEVER;
            asked.queued = entry;
            self.heap.add(entry);
            if is_brought_forward {
                self.leave_behind();
            }
        }
    }

    /// An entry is worth nothing from now on.
    #[cold]
    fn leave_behind(&mut self) {
        self.stale += 1;
        if self.stale > FEW_STALE && self.stale > self.heap.len / 2 {
            self.heap.retain(|entry| self.asked[entry.slot().0 as usize].queued == entry);
            self.stale = 0;
        }
    }

    /// Takes the earliest entry if it is due at or before `limit`.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, Slot)> {
        loop {
            let first = self.heap.first();
            let (at, slot) = (first.at(), first.slot());
            if at > limit || first == NEVER {
                return None;
            }
            let asked = &mut self.asked[slot.0 as usize];
            if asked.wanted == first {
                *asked = Asked { wanted: NEVER, queued: NEVER };
                self.heap.open();
                return Some((at, slot));
            }
            // Put off, taken back, or left behind.
            self.heap.open();
            if asked.queued == first {
                asked.queued = asked.wanted;
                if asked.wanted != NEVER {
                    self.heap.add(asked.wanted);
                }
            } else {
                self.stale -= 1;
            }
        }
    }

    /// Numbers what is wanted from 1 on, in its order.
    #[cold]
    fn renumber(&mut self) {
        let mut entries: Vec<Entry> =
            self.asked.iter().map(|asked| asked.wanted).filter(|wanted| *wanted != NEVER).collect();
        entries.sort_unstable();
        self.heap = Heap::default();
        self.asked.fill(Asked { wanted: NEVER, queued: NEVER });
        self.sequence = entries.len() as u64;
        self.stale = 0;
        for (number, entry) in (1..).zip(entries) {
            let entry = Entry::new(entry.at(), number, entry.slot());
            self.asked[entry.slot().0 as usize] = Asked { wanted: entry, queued: entry };
            self.heap.add(entry);
        }
    }

    /// Room for how many entries there is: as many as there ever were at a time, or a little more.
    #[cfg(test)]
    pub(crate) fn high_water(&self) -> usize {
        self.heap.pairs.capacity() * 2
    }
}

/// The entries of a heap: the first, and the children of the `n`th as the `n`th pair. Where no entry is, stands
/// [`NEVER`], so that every pair is whole.
struct Heap {
    root: Entry,
    pairs: Vec<Pair>,
    /// Entries, the first included even if it is open.
    len: usize,
    /// The first has been taken, and nothing has come in its place.
    is_open: bool,
}

impl Default for Heap {
    fn default() -> Self {
        Self { root: NEVER, pairs: Vec::new(), len: 0, is_open: false }
    }
}

impl Heap {
    /// The earliest entry, or [`NEVER`].
    #[inline]
    fn first(&mut self) -> Entry {
        if self.is_open {
            self.close();
        }
        self.root
    }

    /// Takes the first entry, and leaves its place open.
    #[inline]
    fn open(&mut self) {
        self.is_open = true;
    }

    /// Puts the last entry in the place that is open.
    fn close(&mut self) {
        self.is_open = false;
        self.len -= 1;
        let last = if self.len == 0 {
            NEVER
        } else {
            let [pair, place] = [(self.len - 1) / 2, (self.len - 1) % 2];
            std::mem::replace(&mut self.pairs[pair].0[place], NEVER)
        };
        self.sift_down(last);
    }

    #[inline]
    fn add(&mut self, entry: Entry) {
        if self.is_open {
            self.is_open = false;
            self.sift_down(entry);
        } else {
            self.append(entry);
        }
    }

    /// Adds an entry at the end and lets it rise.
    fn append(&mut self, entry: Entry) {
        let mut position = self.len;
        self.len += 1;
        if position > 0 && (position - 1) / 2 == self.pairs.len() {
            self.pairs.push(Pair([NEVER; 2]));
        }
        while let Some(index) = position.checked_sub(1) {
            let parent = index / 2;
            let above = *self.slot(parent);
            if entry >= above {
                break;
            }
            *self.slot(position) = above;
            position = parent;
        }
        *self.slot(position) = entry;
    }

    /// Keeps only such entries.
    fn retain(&mut self, is_kept: impl Fn(Entry) -> bool) {
        let first = (!self.is_open && self.len > 0).then_some(self.root);
        let others = self.pairs.iter().flat_map(|pair| pair.0).filter(|entry| *entry != NEVER);
        let mut kept: Vec<Entry> = first.into_iter().chain(others).filter(|entry| is_kept(*entry)).collect();
        // A sorted array is a heap.
        kept.sort_unstable();
        self.pairs.clear();
        (self.root, self.len, self.is_open) = (NEVER, 0, false);
        kept.into_iter().for_each(|entry| self.append(entry));
    }

    #[inline]
    fn slot(&mut self, position: usize) -> &mut Entry {
        match position.checked_sub(1) {
            None => &mut self.root,
            Some(index) => &mut self.pairs[index / 2].0[index % 2],
        }
    }

    /// Lets an entry sink from the top.
    #[inline]
    fn sift_down(&mut self, entry: Entry) {
        let Some(pair) = self.pairs.first() else {
            self.root = entry;
            return;
        };
        let (mut child, least) = least_of(pair);
        if entry <= least {
            self.root = entry;
            return;
        }
        self.root = least;
        let mut above = 0;
        loop {
            // The place that is empty now is the child's in the pair above.
            let position = above * 2 + child + 1;
            let found = self.pairs.get(position).map(least_of);
            let Some((next, smaller)) = found.filter(|(_, smaller)| *smaller < entry) else { break };
            self.pairs[above].0[child] = smaller;
            (above, child) = (position, next);
        }
        self.pairs[above].0[child] = entry;
    }
}

/// The least of a pair, and where in it that is.
#[inline]
fn least_of(Pair(pair): &Pair) -> (usize, Entry) {
    let child = usize::from(pair[1] < pair[0]);
    (child, pair[child])
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    fn at(n: u64) -> Instant {
        Instant::from_nanos(n)
    }

    #[test]
    fn components_due_at_one_instant_are_woken_in_the_order_they_asked() {
        let mut queue = EventQueue::default();
        let slots: Vec<_> = (0..5).map(|_| queue.add_slot()).collect();
        for i in [3, 1, 4, 0, 2] {
            queue.set(slots[i], Some(at(10)));
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(at(10))).map(|(_, slot)| slot.0).collect();
        assert_eq!(order, [3, 1, 4, 0, 2]);
    }

    #[test]
    fn nothing_is_taken_beyond_the_limit() {
        let mut queue = EventQueue::default();
        let slot = queue.add_slot();
        queue.set(slot, Some(at(10)));
        assert_eq!(queue.pop_until(at(9)), None);
        queue.set(slot, None);
        assert_eq!(queue.pop_until(at(10)), None);
    }

    #[test]
    fn deadlines_brought_forward_again_and_again_take_no_room() {
        let mut queue = EventQueue::default();
        let slots: Vec<_> = (0..10).map(|_| queue.add_slot()).collect();
        for n in 0..10_000 {
            for slot in &slots {
                queue.set(*slot, Some(at(1_000_000 - n)));
            }
        }
        assert!(queue.high_water() <= 64, "{}", queue.high_water());
        let order: Vec<_> = std::iter::from_fn(|| queue.pop_until(Instant::MAX)).collect();
        assert_eq!(order, slots.iter().map(|slot| (at(990_001), *slot)).collect::<Vec<_>>());
        assert_eq!(queue.stale, 0);
    }

    #[test]
    fn behaves_as_a_sorted_list_under_random_use() {
        let mut random = RandomStream::new(1, 0, "queue");
        let mut queue = EventQueue::default();
        let slots: Vec<_> = (0..40).map(|_| queue.add_slot()).collect();
        let mut model: Vec<Option<(Instant, u64)>> = vec![None; slots.len()];
        for step in 0..20_000 {
            if step % 1000 == 500 {
                // The numbers run out.
                queue.sequence = 1 << SEQUENCE_BITS;
            }
            let i = random.below(40) as usize;
            // Now and then nobody is woken for a while, and much is left behind.
            match if step / 300 % 4 == 0 { 2 } else { random.below(4) } {
                0 => {
                    queue.set(slots[i], None);
                    model[i] = None;
                }
                1 => {
                    let first = model.iter().flatten().min().copied();
                    let popped = queue.pop_until(Instant::MAX);
                    assert_eq!(popped.map(|(at, _)| at), first.map(|(at, _)| at));
                    if let Some((_, slot)) = popped {
                        assert_eq!(model[slot.0 as usize], first);
                        model[slot.0 as usize] = None;
                    }
                }
                _ => {
                    let deadline = at(random.below(1000));
                    queue.set(slots[i], Some(deadline));
                    if model[i].is_none_or(|(at, _)| at != deadline) {
                        model[i] = Some((deadline, step));
                    }
                }
            }
        }
    }
}
