//! Data that shows where it belongs: each byte follows from its position, so that whatever arrives can be checked
//! against where it arrives.

/// The pattern of one direction of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    salt: u64,
}

impl Pattern {
    /// The pattern of the direction with this number; directions have different ones.
    pub(crate) const fn new(direction: u64) -> Self {
        Self { salt: direction.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 }
    }

    /// Eight bytes from position `8 * block` on.
    const fn block(self, block: u64) -> [u8; 8] {
        let mut x = block.wrapping_add(self.salt).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 29;
        x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 32)).to_le_bytes()
    }

    /// Writes the bytes from `position` on.
    pub(crate) fn fill(self, position: u64, bytes: &mut [u8]) {
        let mut at = position;
        let mut rest = bytes;
        while !rest.is_empty() {
            let block = self.block(at / 8);
            let from = (at % 8) as usize;
            let count = (8 - from).min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            now.copy_from_slice(&block[from..from + count]);
            at += count as u64;
            rest = later;
        }
    }

    /// The position of the first byte that is not the one that belongs there.
    pub(crate) fn first_difference(self, position: u64, bytes: &[u8]) -> Option<u64> {
        let mut at = position;
        let mut rest = bytes;
        while !rest.is_empty() {
            let block = self.block(at / 8);
            let from = (at % 8) as usize;
            let count = (8 - from).min(rest.len());
            let (now, later) = rest.split_at(count);
            if now != &block[from..from + count] {
                let wrong = now.iter().zip(&block[from..]).position(|(found, right)| found != right);
                return Some(at + wrong.unwrap_or_default() as u64);
            }
            at += count as u64;
            rest = later;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_pieces_is_recognised_in_others() {
        let pattern = Pattern::new(3);
        let mut bytes = vec![0; 1000];
        let mut at = 0;
        for piece in [1, 7, 8, 9, 100, 375, 500] {
            pattern.fill(at as u64, &mut bytes[at..at + piece]);
            at += piece;
        }
        assert_eq!(at, bytes.len());
        for start in [0, 1, 5, 8, 333] {
            assert_eq!(pattern.first_difference(start as u64, &bytes[start..]), None);
        }
    }

    #[test]
    fn what_is_out_of_place_is_noticed() {
        let pattern = Pattern::new(3);
        let mut bytes = vec![0; 64];
        pattern.fill(100, &mut bytes);
        assert!(pattern.first_difference(101, &bytes).is_some(), "moved by one");
        assert!(pattern.first_difference(1124, &bytes).is_some(), "repeated");
        assert!(Pattern::new(4).first_difference(100, &bytes).is_some(), "of another direction");
        bytes[40] ^= 1;
        assert_eq!(pattern.first_difference(100, &bytes), Some(140));
    }
}
