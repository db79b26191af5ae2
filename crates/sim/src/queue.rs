//! The event queue: one deadline a component.

use careof_base::Instant;

/// Index of a component (a link, a connection, an agent) in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(pub(crate) u32);

const ABSENT: u32 = u32::MAX;
const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Entry {
    at: Instant,
    sequence: u64,
    slot: Slot,
}

impl Entry {
    fn is_before(&self, other: &Self) -> bool {
        (self.at, self.sequence) < (other.at, other.sequence)
    }
}

/// An indexed 4-ary heap in the total order (time, sequence).
///
/// Every component owns one slot and asks to be woken at most once at a time, so the heap holds as many
/// entries as there are busy components - not as many as there are packets in flight - and re-arming a timer
/// moves an entry instead of leaving a stale one behind. Components due at the same instant are woken in the
/// order in which they asked.
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Vec<Entry>,
    position: Vec<u32>,
    sequence: u64,
}

impl EventQueue {
    /// Room for one more component.
    pub(crate) fn add_slot(&mut self) -> Slot {
        self.position.push(ABSENT);
        Slot((self.position.len() - 1) as u32)
    }

    /// Wakes `slot` at `deadline`; `None` takes its entry away. Asking again for the same instant keeps its place.
    pub(crate) fn set(&mut self, slot: Slot, deadline: Option<Instant>) {
        let position = self.position[slot.0 as usize];
        match (position, deadline) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                let entry = self.entry(at, slot);
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1, entry);
            }
            (position, None) => self.remove(position as usize),
            (position, Some(at)) => {
                let old = self.heap[position as usize];
                if old.at == at {
                    return;
                }
                let entry = self.entry(at, slot);
                if entry.is_before(&old) {
                    self.sift_up(position as usize, entry);
                } else {
                    self.sift_down(position as usize, entry);
                }
            }
        }
    }

    /// Takes the earliest entry if it is due at or before `limit`.
    pub(crate) fn pop_until(&mut self, limit: Instant) -> Option<(Instant, Slot)> {
        let first = *self.heap.first()?;
        if first.at > limit {
            return None;
        }
        self.remove(0);
        Some((first.at, first.slot))
    }

    fn entry(&mut self, at: Instant, slot: Slot) -> Entry {
        self.sequence += 1;
        Entry { at, sequence: self.sequence, slot }
    }

    fn remove(&mut self, position: usize) {
        self.position[self.heap[position].slot.0 as usize] = ABSENT;
        let Some(last) = self.heap.pop() else { return };
        if position < self.heap.len() {
            if position > 0 && last.is_before(&self.heap[(position - 1) / ARITY]) {
                self.sift_up(position, last);
            } else {
                self.sift_down(position, last);
            }
        }
    }

    fn place(&mut self, position: usize, entry: Entry) {
        self.heap[position] = entry;
        self.position[entry.slot.0 as usize] = position as u32;
    }

    fn sift_up(&mut self, mut position: usize, entry: Entry) {
        while position > 0 {
            let parent = (position - 1) / ARITY;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.place(position, self.heap[parent]);
            position = parent;
        }
        self.place(position, entry);
    }

    fn sift_down(&mut self, mut position: usize, entry: Entry) {
        loop {
            let first = position * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(child) =
                children.reduce(|a, b| if self.heap[b].is_before(&self.heap[a]) { b } else { a })
            else {
                break;
            };
            if !self.heap[child].is_before(&entry) {
                break;
            }
            self.place(position, self.heap[child]);
            position = child;
        }
        self.place(position, entry);
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
