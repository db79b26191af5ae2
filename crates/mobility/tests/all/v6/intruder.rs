//! A mobile node and its home agent with an intruder between them, held against a model of what he must not achieve.

use careof_base::RandomStream;
use proptest::prelude::*;

use super::intruder_model::{Tally, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn without_the_key_nobody_moves_the_mobile_node(bytes in proptest::collection::vec(any::<u8>(), 1..561)) {
        run(&bytes);
    }
}

#[test]
fn the_steps_lead_to_what_the_intruder_tries() {
    let mut random = RandomStream::new(1, 0, "intruder");
    let mut total = Tally::default();
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..561).map(|_| random.next_u64() as u8).collect();
        let Tally { accepted, refused, unsigned, repeated, optimized } = run(&bytes);
        total.accepted += accepted;
        total.refused += refused;
        total.unsigned += unsigned;
        total.repeated += repeated;
        total.optimized += optimized;
    }
    let Tally { accepted, refused, unsigned, repeated, optimized } = total;
    assert!(
        accepted > 1000 && refused > 500 && unsigned > 20 && repeated > 1000 && optimized > 1000,
        "{total:?}"
    );
}
