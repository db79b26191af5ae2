//! A fingerprint of every packet that crossed a link or was dropped.

use careof_base::Instant;

/// 128 bits mixed from (time, link, size, headers) of every delivered packet-hop and (time, cause) of every drop, in
/// order.
///
/// It is computed whether or not a trace is written, so two runs can be told apart without one. It is no
/// cryptographic hash: it finds accidents, not forgeries.
#[derive(Clone, Copy, Debug)]
pub struct Digest {
    low: u64,
    high: u64,
}

impl Default for Digest {
    fn default() -> Self {
        Self::new()
    }
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Digest {
    /// The fingerprint of nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { low: 0x243f_6a88_85a3_08d3, high: 0x1319_8a2e_0370_7344 }
    }

    /// Mixes one delivered packet in.
    #[inline]
    pub fn packet(&mut self, now: Instant, link: u32, packet: u64, size: u32, content: u64) {
        self.mix(now.as_nanos() ^ (u64::from(link) << 48));
        self.mix(packet ^ (u64::from(size) << 40) ^ content);
    }

    /// Mixes one dropped packet in.
    pub fn drop(&mut self, now: Instant, packet: u64, cause: &str) {
        self.mix(now.as_nanos());
        self.mix(packet ^ of_bytes(cause.as_bytes()));
    }

    #[inline]
    fn mix(&mut self, value: u64) {
        self.low = (self.low ^ value).wrapping_mul(MULTIPLIER).rotate_left(29);
        self.high = self.high.wrapping_add(self.low).rotate_left(13) ^ value;
    }
}

/// A signalling message, mixed down to a number.
pub fn of_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(bytes.len() as u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(MULTIPLIER).rotate_left(23)
    })
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}{:016x}", self.high, self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_link_size_and_order_all_count() {
        let of = |packets: &[(u64, u32, u64, u32)]| {
            let mut digest = Digest::new();
            for (at, link, id, size) in packets {
                digest.packet(Instant::from_nanos(*at), *link, *id, *size, 0);
            }
            digest.to_string()
        };
        let base = of(&[(1, 2, 3, 4), (5, 6, 7, 8)]);
        for other in [
            of(&[(2, 2, 3, 4), (5, 6, 7, 8)]),
            of(&[(1, 1, 3, 4), (5, 6, 7, 8)]),
            of(&[(1, 2, 4, 4), (5, 6, 7, 8)]),
            of(&[(1, 2, 3, 5), (5, 6, 7, 8)]),
            of(&[(5, 6, 7, 8), (1, 2, 3, 4)]),
        ] {
            assert_ne!(base, other);
        }
    }
}
