//! Sequence numbers that count on.

use careof_wire::SeqNumber;

/// A sequence number that counts on beyond 4 GiB, relative to the connection's first.
///
/// The first byte of data is 1, as in every analyser's graphs.
#[derive(Clone, Copy, Debug)]
pub struct Unwrapped {
    last: SeqNumber,
    relative: i64,
}

impl Unwrapped {
    /// Counts from `initial`, the sequence number of the SYN.
    pub const fn from(initial: SeqNumber) -> Self {
        Self { last: initial, relative: 0 }
    }

    /// The relative number of `seq`, which lies within 2 GiB of the one last followed.
    pub fn of(&self, seq: SeqNumber) -> i64 {
        self.relative + i64::from(seq.0.wrapping_sub(self.last.0) as i32)
    }

    /// [`Unwrapped::of`], from which the next ones are counted.
    pub fn follow(&mut self, seq: SeqNumber) -> i64 {
        self.relative = self.of(seq);
        self.last = seq;
        self.relative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_numbers_count_on_across_the_wrap() {
        let mut unwrapped = Unwrapped::from(SeqNumber(u32::MAX - 1));
        assert_eq!(unwrapped.follow(SeqNumber(u32::MAX)), 1);
        assert_eq!(unwrapped.follow(SeqNumber(1_000_000_000)), 1_000_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(2_500_000_000)), 2_500_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(4_000_000_000)), 4_000_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(700_000_000)), 4_294_967_296 + 700_000_002);
        assert_eq!(unwrapped.follow(SeqNumber(4_000_000_000)), 4_000_000_002, "and back");
    }
}
