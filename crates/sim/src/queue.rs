//! The event queue: one deadline a component.

use careof_base::Instant;

/// Index of a component (a link, a connection, an agent) in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

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

/// Later than every deadline: the component does not ask to be woken.
const NEVER: Entry = Entry(u128::MAX);

/// An indexed 4-ary heap in the total order (time, sequence).
///
/// Every component owns one slot and asks to be woken at most once at a time, so the heap holds as many
/// entries as there are busy components - not as many as there are packets in flight. Components due at the same
/// instant are woken in the order in which they asked.
///
/// Two things make it cheap. The entry that was taken last keeps its place at the top: its component asks again as a
/// rule, and then the new entry takes that place, in one walk down the heap instead of two. And a deadline that is put
/// off, as a retransmission timer is with every acknowledgement, is only written down: its entry is put right when it
/// comes to the top, too early.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Heap,
    /// By slot: what its component asked for last. Never before its entry in the heap.
    wanted: Vec<Entry>,
    /// By slot: where its entry in the heap is.
    position: Vec<u32>,
    sequence: u64,
    /// Whether the first entry has been taken and its component has not asked again.
    spent: bool,
}

impl EventQueue {
    /// How many components there can be.
    pub(crate) const MAX_SLOTS: usize = 1 << SLOT_BITS;

    /// Room for one more component.
    pub(crate) fn add_slot(&mut self) -> Slot {
        assert!(self.position.len() < Self::MAX_SLOTS, "the world was refused before it grew so large");
        self.position.push(ABSENT);
        self.wanted.push(NEVER);
        Slot((self.position.len() - 1) as u32)
    }

    /// Wakes `slot` at `deadline`; `None` takes that back. Asking again for the same instant keeps its place.
    #[inline]
    pub(crate) fn set(&mut self, slot: Slot, deadline: Option<Instant>) {
        let index = slot.0 as usize;
        let at = match deadline {
            Some(at) if at < Instant::MAX => at,
            _ => {
                self.wanted[index] = NEVER;
                return;
            }
        };
        if self.wanted[index].at() == at {
            return;
        }
        let entry = self.entry(at, slot);
        self.wanted[index] = entry;
        match self.position[index] {
            0 if self.spent => {
                self.spent = false;
                self.sift_down(0, entry);
            }
            ABSENT => {
                let position = self.heap.add();
                self.sift_up(position, entry);
            }
            position if entry < self.heap.get(position as usize) => self.sift_up(position as usize, entry),
            _ => {}
        }
    }

    /// Takes the earliest entry if it is due at or before `limit`.
    #[inline]
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, Slot)> {
        loop {
            let first = self.heap.root;
            let (at, slot) = (first.at(), first.slot());
            if at > limit || first == NEVER {
                return None;
            }
            let wanted = &mut self.wanted[slot.0 as usize];
            if *wanted == first {
                *wanted = NEVER;
                // Nothing sorts before this, so that it stays where it is.
                self.heap.root = Entry(u128::from(slot.0));
                self.spent = true;
                return Some((at, slot));
            }
            // Taken and not asked for again, or put off.
            self.spent = false;
            match *wanted {
                NEVER => self.remove_first(),
                later => self.sift_down(0, later),
            }
        }
    }

    #[inline]
    fn entry(&mut self, at: Instant, slot: Slot) -> Entry {
        if self.sequence >> SEQUENCE_BITS != 0 {
            self.renumber();
        }
        self.sequence += 1;
        Entry::new(at, self.sequence, slot)
    }

    /// Numbers what is wanted from 1 on, in its order.
    #[cold]
    fn renumber(&mut self) {
        let mut entries: Vec<Entry> = self.wanted.iter().copied().filter(|wanted| *wanted != NEVER).collect();
        // A sorted array is a heap.
        entries.sort_unstable();
        self.heap = Heap::default();
        self.position.fill(ABSENT);
        self.sequence = entries.len() as u64;
        self.spent = false;
        for (number, entry) in (1..).zip(entries) {
            let entry = Entry::new(entry.at(), number, entry.slot());
            self.wanted[entry.slot().0 as usize] = entry;
            let position = self.heap.add();
            self.place(position, entry);
        }
    }

    fn remove_first(&mut self) {
        self.position[self.heap.root.slot().0 as usize] = ABSENT;
        let last = self.heap.take_last();
        if self.heap.len > 0 {
            self.sift_down(0, last);
        }
    }

    /// Room for how many entries there is: as many as there ever were at a time, or a little more.
    #[cfg(test)]
    pub(crate) fn high_water(&self) -> usize {
        self.heap.groups.capacity() * ARITY
    }

    #[inline]
    fn place(&mut self, position: usize, entry: Entry) {
        *self.heap.slot(position) = entry;
        self.position[entry.slot().0 as usize] = position as u32;
    }

    fn sift_up(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            let above = self.heap.get(parent);
            if entry >= above {
                break;
            }
            self.place(position, above);
            position = parent;
        }
        self.place(position, entry);
    }

    #[inline]
    fn sift_down(&mut self, mut position: usize, entry: Entry) {
        while let Some([a, b, c, d]) = self.heap.groups.get(position) {
            let left = if b < a { (1, *b) } else { (0, *a) };
            let right = if d < c { (3, *d) } else { (2, *c) };
            let (child, least) = if right.1 < left.1 { right } else { left };
            if entry <= least {
                break;
            }
            self.place(position, least);
            position = position * ARITY + 1 + child;
        }
        self.place(position, entry);
    }
}

/// The entries of a 4-ary heap: the first, and the children of the `n`th as the `n`th group. Where no entry is, stands
/// [`NEVER`], so that every group is whole.
struct Heap {
    root: Entry,
    groups: Vec<[Entry; ARITY]>,
    len: usize,
}

impl Default for Heap {
    fn default() -> Self {
        Self { root: NEVER, groups: Vec::new(), len: 0 }
    }
}

impl Heap {
    /// Makes room for one more entry, and tells where.
    fn add(&mut self) -> usize {
        let position = self.len;
        self.len += 1;
        if position > 0 && (position - 1) / ARITY == self.groups.len() {
            self.groups.push([NEVER; ARITY]);
        }
        position
    }

    /// Takes the last entry out.
    fn take_last(&mut self) -> Entry {
        self.len -= 1;
        std::mem::replace(self.slot(self.len), NEVER)
    }

    #[inline]
    fn get(&self, position: usize) -> Entry {
        match position.checked_sub(1) {
            None => self.root,
            Some(index) => self.groups[index / ARITY][index % ARITY],
        }
    }

    #[inline]
    fn slot(&mut self, position: usize) -> &mut Entry {
        match position.checked_sub(1) {
            None => &mut self.root,
            Some(index) => &mut self.groups[index / ARITY][index % ARITY],
        }
    }
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
            match random.below(4) {
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
