//! Chance that a world hands to an agent: reproducible in a simulation, unforeseeable in the open.

use core::fmt;
use core::time::Duration;

use crate::RandomStream;

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
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, `span`].
    pub fn duration_up_to(&mut self, span: Duration) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        let below = u128::from(nanos.saturating_add(1));
        Duration::from_nanos(((u128::from(self.next_u64()) * below) >> 64) as u64)
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

/// Random numbers from the ChaCha20 block function (RFC 8439 section 2.3), which nobody foresees or traces back who does not
/// know the seed: half of each block is the key of the next one, and what was handed out is wiped.
#[derive(Clone)]
pub struct SecretStream {
    key: [u32; 8],
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
    pub fn new(seed: [u8; Self::SEED]) -> Self {
        let mut key = [0; 8];
        for (word, bytes) in key.iter_mut().zip(seed.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Self { key, numbers: [0; 4], left: 0 }
    }

    /// 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        if self.left == 0 {
            let [a, b, c, d, e, f, g, h, numbers @ ..] = block(&self.key, [0; 4]);
            self.key = [a, b, c, d, e, f, g, h];
            for (number, halves) in self.numbers.iter_mut().zip(numbers.as_chunks::<2>().0) {
                *number = u64::from(halves[0]) << 32 | u64::from(halves[1]);
            }
            self.left = 4;
        }
        self.left -= 1;
        self.numbers.get_mut(usize::from(self.left)).map(core::mem::take).unwrap_or_default()
    }
}

/// The ChaCha20 block function: 16 words of a key, and of a counter and a nonce.
fn block(key: &[u32; 8], counter_and_nonce: [u32; 4]) -> [u32; 16] {
    let [a, b, c, d, e, f, g, h] = *key;
    let [i, j, k, l] = counter_and_nonce;
    let begin = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574, a, b, c, d, e, f, g, h, i, j, k, l];
    let mut state = begin;
    for _ in 0..10 {
        quarter_round(&mut state, 0, 4, 8, 12);
        quarter_round(&mut state, 1, 5, 9, 13);
        quarter_round(&mut state, 2, 6, 10, 14);
        quarter_round(&mut state, 3, 7, 11, 15);
        quarter_round(&mut state, 0, 5, 10, 15);
        quarter_round(&mut state, 1, 6, 11, 12);
        quarter_round(&mut state, 2, 7, 8, 13);
        quarter_round(&mut state, 3, 4, 9, 14);
    }
    for (word, first) in state.iter_mut().zip(begin) {
        *word = word.wrapping_add(first);
    }
    state
}

fn quarter_round(state: &mut [u32; 16], a: usize, b: usize, c: usize, d: usize) {
    for (to, from, turned, bits) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
        state[to] = state[to].wrapping_add(state[from]);
        state[turned] = (state[turned] ^ state[to]).rotate_left(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_that_of_rfc_8439() {
        // Section 2.3.2: the key 00:01:...:1f, the counter 1 and the nonce 00:00:00:09:00:00:00:4a:00:00:00:00.
        let key = SecretStream::new(core::array::from_fn(|place| place as u8)).key;
        let expected = [
            0xe4e7_f110,
            0x1559_3bd1,
            0x1fdd_0f50,
            0xc471_20a3,
            0xc7f4_d1c7,
            0x0368_c033,
            0x9aaa_2204,
            0x4e6c_d4c3,
            0x4664_82d2,
            0x09aa_9f07,
            0x05d7_c214,
            0xa202_8bd9,
            0xd19c_12b5,
            0xb94e_16de,
            0xe883_d0cb,
            0x4e3c_50a2,
        ];
        assert_eq!(block(&key, [1, 0x0900_0000, 0x4a00_0000, 0]), expected);
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
            let halves = [(number >> 32) as u32, *number as u32];
            assert!(!halves.iter().any(|half| stream.key.contains(half)));
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
