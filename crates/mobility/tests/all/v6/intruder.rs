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

/// A case that fuzzing has found: the model looks where packets go 30 ms after the binding that is not in use was renewed, when the home
/// agent has accepted that and the mobile node does not know yet.
#[test]
fn in_the_middle_of_a_renewal_nobody_is_wrong() {
    // Timestamps, several care-of addresses, both links at the end.
    let mut bytes = vec![6];
    let attach = [3, 1, 0, 0, 0, 0, 0];
    let switch = [5, 1, 0, 0, 0, 0, 0];
    // The lifetime begins with the switch and is renewed after 225 s and 450 s; the model looks 400 s after these 50.03 s.
    let wait_50_s = [0, 25, 2, 0, 0, 0, 0];
    let wait_30_ms = [0, 3, 0, 0, 0, 0, 0];
    [attach, switch, wait_50_s, wait_30_ms].iter().for_each(|step| bytes.extend(step));
    run(&bytes);
}
