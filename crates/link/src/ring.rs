//! A first-in first-out of small things, in a ring whose size is a power of two: cheaper at both ends than a `VecDeque`.

use alloc::vec::Vec;

/// The ring. It grows and never shrinks, so a steady flow allocates nothing.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    /// A power of two, or empty.
    slots: Vec<T>,
    /// Index of the oldest, taken modulo the size.
    head: usize,
    len: usize,
}

const LEAST: usize = 4;

impl<T: Copy> Ring<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: Vec::new(), head: 0, len: 0 }
    }

    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the `n`th, counted from the oldest, is.
    #[inline(always)]
    fn at(&self, n: usize) -> usize {
        self.head.wrapping_add(n) & self.slots.len().wrapping_sub(1)
    }

    /// The `n`th, counted from the oldest.
    #[inline]
    pub(crate) fn get(&self, n: usize) -> Option<&T> {
        if n < self.len { self.slots.get(self.at(n)) } else { None }
    }

    #[inline(always)]
    pub(crate) fn front(&self) -> Option<&T> {
        if self.len == 0 {
            return None;
        }
        self.slots.get(self.at(0))
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        if self.len == self.slots.len() {
            self.grow(value);
        }
        let at = self.at(self.len);
        if let Some(slot) = self.slots.get_mut(at) {
            *slot = value;
            self.len += 1;
        }
    }

    #[cold]
    fn grow(&mut self, filler: T) {
        let mut slots: Vec<T> = (0..self.len).filter_map(|n| self.get(n).copied()).collect();
        slots.resize((2 * self.len).max(LEAST), filler);
        (self.slots, self.head) = (slots, 0);
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let oldest = *self.front()?;
        self.head = self.head.wrapping_add(1);
        self.len -= 1;
        Some(oldest)
    }

    pub(crate) fn pop_newest(&mut self) -> Option<T> {
        let newest = *self.get(self.len.checked_sub(1)?)?;
        self.len -= 1;
        Some(newest)
    }

    /// Changes each, the oldest first.
    pub(crate) fn for_each_mut(&mut self, mut change: impl FnMut(&mut T)) {
        for n in 0..self.len {
            let at = self.at(n);
            if let Some(slot) = self.slots.get_mut(at) {
                change(slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use careof_base::RandomStream;

    #[test]
    fn behaves_as_a_queue_with_two_ends_under_random_use() {
        let mut random = RandomStream::new(1, 0, "ring");
        let (mut ring, mut model) = (Ring::new(), VecDeque::new());
        for step in 0..20_000_u32 {
            match random.below(if step / 500 % 2 == 0 { 3 } else { 6 }) {
                0 => assert_eq!(ring.pop(), model.pop_front()),
                1 if random.below(4) == 0 => assert_eq!(ring.pop_newest(), model.pop_back()),
                2 if random.below(50) == 0 => {
                    ring.for_each_mut(|value| *value += 1);
                    model.iter_mut().for_each(|value| *value += 1);
                }
                _ => {
                    ring.push(step);
                    model.push_back(step);
                }
            }
            assert_eq!(
                (ring.len(), ring.front(), ring.is_empty()),
                (model.len(), model.front(), model.is_empty())
            );
            let n = random.below(40) as usize;
            assert_eq!(ring.get(n), model.get(n));
        }
    }
}
