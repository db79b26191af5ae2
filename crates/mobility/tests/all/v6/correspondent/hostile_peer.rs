//! A correspondent node between an honest mobile node and somebody who sends what he likes, held against a model of what it should
//! believe.

use careof_base::RandomStream;
use proptest::prelude::*;

use super::model::{NAMES, Step, Tally, run, steps_of};

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => prop_oneof![0..40_u64, 200..250_u64, 400..440_u64].prop_map(|seconds| Step::Wait { seconds }),
        4 => (0..2_usize, prop_oneof![Just(0), 1..200_u16], any::<bool>())
            .prop_map(|(care_of, lifetime, fresh)| Step::Register { care_of, lifetime, fresh }),
        2 => (prop_oneof![0..2_usize, name()], any::<bool>()).prop_map(|(name, home)| Step::Ask { name, home }),
        4 => (name(), name(), any::<bool>(), (0..20_usize, 0..20_usize), 0..20_u16, 0..200_u16, any::<[bool; 2]>()).prop_map(
            |(home, care_of, alternate, tokens, sequence, lifetime, [named, skilled])| Step::Forge {
                home, care_of, alternate, tokens, sequence, lifetime, named, skilled
            }
        ),
        3 => (0..20_usize, proptest::option::of(0..400_usize), proptest::option::of(name()))
            .prop_map(|(which, flip, from)| Step::Repeat { which, flip, from }),
        1 => (name(), name()).prop_map(|(source, home)| Step::Claim { source, home }),
        1 => name().prop_map(|name| Step::Send { name }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nobody_but_the_mobile_node_says_where_it_is(steps in proptest::collection::vec(step(), 1..80)) {
        run(steps);
    }

    #[test]
    fn nor_does_anybody_whatever_bytes_say(bytes in proptest::collection::vec(any::<u8>(), 0..720)) {
        run(steps_of(&bytes));
    }
}

#[test]
fn the_steps_lead_to_what_the_model_is_about() {
    let mut random = RandomStream::new(1, 0, "hostile peer");
    let mut total = Tally::default();
    for _ in 0..300 {
        let bytes: Vec<u8> = (0..720).map(|_| random.next_u64() as u8).collect();
        let Tally { honest, forged, repeated, expired, asked } = run(steps_of(&bytes));
        total.honest += honest;
        total.forged += forged;
        total.repeated += repeated;
        total.expired += expired;
        total.asked += asked;
    }
    let Tally { honest, forged, repeated, expired, asked } = total;
    assert!(honest > 1000 && forged > 20 && repeated > 100 && expired > 100 && asked > 100, "{total:?}");
}
