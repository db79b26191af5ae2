//! That the workspace's properties draw the same cases each time.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};

#[test]
fn properties_draw_the_same_cases_in_every_run() {
    let config = ProptestConfig::default();
    let RngSeed::Fixed(seed) = config.rng_seed else {
        panic!(
            "PROPTEST_RNG_SEED is not set, so each run draws other cases\n  \
             hint: .cargo/config.toml sets it for whatever cargo starts inside the repository"
        );
    };
    let draw = || {
        let mut runner = TestRunner::new(config.clone());
        (0..100).map(|_| any::<u64>().new_tree(&mut runner).unwrap().current()).collect::<Vec<_>>()
    };
    assert_eq!(draw(), draw(), "with seed {seed}");
    let mut other = TestRunner::new(ProptestConfig { rng_seed: RngSeed::Fixed(seed ^ 1), ..config.clone() });
    let other = (0..100).map(|_| any::<u64>().new_tree(&mut other).unwrap().current()).collect::<Vec<_>>();
    assert_ne!(draw(), other, "the seed decides");
}
