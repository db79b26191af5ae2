//! Named streams of random numbers.

use core::time::Duration;

use crate::Probability;

/// A stream of random numbers that belongs to one component.
///
/// A stream is derived from the scenario's seed, the run number and the stable name of its user
/// (`"link.gsm.down.loss"`), so adding a component never disturbs the others. The generator is
/// xoshiro256++ (Blackman and Vigna 2019) seeded through SplitMix64; transcendental functions come from
/// `libm` compiled from source, so the same seed gives the same numbers on every machine.
#[derive(Clone, Debug)]
pub struct RandomStream {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// 64 random bits as a number in 0..`bound`.
pub(crate) fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

impl RandomStream {
    /// The stream of the component `name` in repetition `run` of a scenario with `seed`.
    #[must_use]
    pub fn new(seed: u64, run: u64, name: &str) -> Self {
        let mut mixer = seed;
        let mut key = split_mix(&mut mixer) ^ run.wrapping_mul(0xd134_2543_de82_ef95);
        key = split_mix(&mut key);
        for byte in name.bytes() {
            key = (key ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            key ^= key >> 29;
        }
        Self { state: core::array::from_fn(|_| split_mix(&mut key)) }
    }

    /// 64 uniformly random bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }

    /// Uniform in [0, 1), 53 bits of it.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in 0..`bound`; 0 when `bound` is 0. The bias is below 2^-64 times `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        below(self.next_u64(), bound)
    }

    /// True with probability `p`. Draws nothing for a certain outcome.
    pub fn chance(&mut self, p: Probability) -> bool {
        p.get() >= 1.0 || (p.get() > 0.0 && self.unit() < p.get())
    }

    /// Uniform in [0, `span`].
    pub fn duration_up_to(&mut self, span: Duration) -> Duration {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }

    /// Normally distributed with mean 0 and standard deviation 1 (Marsaglia's polar method).
    pub fn standard_normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let s = x * x + y * y;
            if s > 0.0 && s < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(s) / s);
            }
        }
    }

    /// Exponentially distributed with mean 1.
    pub fn standard_exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }

    /// Pareto distributed with minimum 1 and the given `shape` (tail index, above 0).
    pub fn standard_pareto(&mut self, shape: f64) -> f64 {
        libm::pow(1.0 - self.unit(), -1.0 / shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_name_seed_or_run_gives_another_stream() {
        let first = |seed, run, name| RandomStream::new(seed, run, name).next_u64();
        let base = first(1, 0, "link.gsm.down.loss");
        assert_eq!(base, first(1, 0, "link.gsm.down.loss"));
        for other in [
            first(2, 0, "link.gsm.down.loss"),
            first(1, 1, "link.gsm.down.loss"),
            first(1, 0, "link.gsm.up.loss"),
            first(0, 1, "link.gsm.down.loss"),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn xoshiro_matches_the_published_recurrence() {
        // First outputs of xoshiro256++ from state {1, 2, 3, 4}, as the authors' C code prints them.
        let mut stream = RandomStream { state: [1, 2, 3, 4] };
        let expected = [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(core::array::from_fn(|_| stream.next_u64()), expected);
    }

    #[test]
    fn moments_are_those_of_the_named_distributions() {
        let mut stream = RandomStream::new(7, 0, "moments");
        let n = 200_000;
        let mean = |sum: f64| sum / f64::from(n);
        let (mut uniform, mut normal, mut square, mut exponential, mut pareto) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for _ in 0..n {
            uniform += stream.unit();
            let z = stream.standard_normal();
            normal += z;
            square += z * z;
            exponential += stream.standard_exponential();
            pareto += stream.standard_pareto(3.0);
        }
        // Five standard errors around the exact values.
        assert!((mean(uniform) - 0.5).abs() < 5.0 * 0.289 / 447.0);
        assert!(mean(normal).abs() < 5.0 / 447.0);
        assert!((mean(square) - 1.0).abs() < 5.0 * 1.414 / 447.0);
        assert!((mean(exponential) - 1.0).abs() < 5.0 / 447.0);
        assert!((mean(pareto) - 1.5).abs() < 5.0 * 0.866 / 447.0);
    }
}
