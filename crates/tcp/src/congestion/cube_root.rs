//! Cube roots of integers, exact on every machine.

/// The largest integer whose cube is at most `n`.
pub(crate) fn cube_root(n: u128) -> u64 {
    // Binary digits from the top: the cube of a number below 2^42 fits.
    let digits = (128 - n.leading_zeros()).div_ceil(3);
    let mut root: u128 = 0;
    for bit in (0..digits).rev() {
        let candidate = root | 1 << bit;
        if candidate.checked_pow(3).is_some_and(|cube| cube <= n) {
            root = candidate;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_exact_beside_every_cube() {
        for root in (0..2_000).chain([1 << 20, (1 << 31) - 1, (1 << 42) - 1, 6_981_463_658_331]) {
            let cube = u128::from(root).pow(3);
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 1), root.max(1), "{root}");
            if root > 1 {
                assert_eq!(cube_root(cube - 1), root - 1, "{root}");
            }
        }
        assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
    }
}
