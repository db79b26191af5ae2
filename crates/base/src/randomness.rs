//! Chance that a world hands to an agent: reproducible in a simulation, unforeseeable in the open.

use core::fmt;
use core::time::Duration;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng as _};

use crate::RandomStream;
use crate::random::below;

/// Where an agent's chance comes from. A world chooses.
#[derive(Clone, Debug)]
pub enum Randomness {
    /// A stream that a seed and a name repeat. Who has seen some numbers of it can compute all the others.
    Stream(RandomStream),
    /// A stream that nobody foresees who does not know its seed, whatever he has seen of it.
    Secret(SecretStream),
}

impl From<RandomStream> for Randomness {
    fn from(stream: RandomStream) -> Self {
        Self::Stream(stream)
    }
}

impl From<SecretStream> for Randomness {
    fn from(stream: SecretStream) -> Self {
        Self::Secret(stream)
    }
}

impl Randomness {
    /// 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        match self {
            Self::Stream(stream) => stream.next_u64(),
            Self::Secret(stream) => stream.next_u64(),
        }
    }

    /// Uniform in 0..`bound`; 0 when `bound` is 0. The bias is below 2^-64 times `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.next_u64(), bound)
    }

    /// Uniform in [0, `span`].
    pub fn duration_up_to(&mut self, span: Duration) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// Another one of the same kind, of which this one's later numbers tell nothing.
    #[must_use]
    pub fn branch(&mut self) -> Self {
        match self {
            Self::Stream(stream) => Self::Stream(RandomStream::new(stream.next_u64(), 0, "agent")),
            Self::Secret(stream) => {
                let mut seed = [0; SecretStream::SEED];
                for bytes in seed.chunks_exact_mut(8) {
                    bytes.copy_from_slice(&stream.next_u64().to_le_bytes());
                }
                Self::Secret(SecretStream::new(seed))
            }
        }
    }
}

/// Random numbers of ChaCha20, which nobody foresees or traces back who does not know the seed: what comes first of each key is
/// the next one, and what was handed out is wiped.
#[derive(Clone)]
pub struct SecretStream {
    key: [u8; Self::SEED],
    /// Numbers not handed out yet, the next one last.
    numbers: [u64; 4],
    left: u8,
}

impl fmt::Debug for SecretStream {
    /// Shows nothing of it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretStream")
    }
}

impl SecretStream {
    /// Length of a seed, bytes.
    pub const SEED: usize = 32;

    /// The stream of a seed that the operating system's generator has made.
    #[must_use]
    pub const fn new(seed: [u8; Self::SEED]) -> Self {
        Self { key: seed, numbers: [0; 4], left: 0 }
    }

    /// 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        if self.left == 0 {
            let mut cipher = ChaCha20Rng::from_seed(self.key);
            cipher.fill_bytes(&mut self.key);
            self.numbers.fill_with(|| cipher.next_u64());
            self.left = 4;
        }
        self.left -= 1;
        self.numbers.get_mut(usize::from(self.left)).map(core::mem::take).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_are_the_second_half_of_a_block_of_rfc_8439() {
        // Appendix A.1, test vector 1: key and nonce of zeros. The first half is the next key; the last number comes first.
        let mut stream = SecretStream::new([0; 32]);
        let expected =
            [0xda41_597c_5157_488d, 0x7724_e03f_b8d8_4a37, 0x6a43_b8f4_1518_a11c, 0xc387_b669_b2ee_6586];
        for bytes in expected.into_iter().rev() {
            assert_eq!(stream.next_u64(), u64::swap_bytes(bytes));
        }
        assert_eq!(stream.key[..4], [0x76, 0xb8, 0xe0, 0xad]);
    }

    #[test]
    fn numbers_come_once_and_tell_nothing_of_the_key() {
        let mut stream = SecretStream::new([7; 32]);
        let (mut first, mut seen) = (SecretStream::new([7; 32]), [0; 12]);
        for number in &mut seen {
            *number = stream.next_u64();
            assert_eq!(*number, first.next_u64());
        }
        for (place, number) in seen.iter().enumerate() {
            assert!(!seen[..place].contains(number));
            assert!(!stream.key.windows(8).any(|bytes| bytes == number.to_le_bytes()));
        }
        assert_ne!(SecretStream::new([8; 32]).next_u64(), seen[0]);
        assert!(!stream.numbers.iter().take(4).any(|number| seen[8..].contains(number)));
    }

    #[test]
    fn a_branch_goes_its_own_way() {
        let both = [Randomness::from(RandomStream::new(1, 0, "tree")), SecretStream::new([1; 32]).into()];
        for mut trunk in both {
            let mut branches = [trunk.branch(), trunk.branch()];
            let numbers = [branches[0].next_u64(), branches[1].next_u64(), trunk.next_u64()];
            assert!(numbers[0] != numbers[1] && numbers[1] != numbers[2] && numbers[0] != numbers[2]);
            assert_eq!(trunk.duration_up_to(Duration::ZERO), Duration::ZERO);
            assert!(trunk.duration_up_to(Duration::from_secs(1)) <= Duration::from_secs(1));
        }
    }
}
