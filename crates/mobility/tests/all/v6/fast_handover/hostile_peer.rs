//! Access routers and a mobile node with a hostile peer, held against a model of what he must not achieve.

use careof_base::RandomStream;
use proptest::prelude::*;

use super::model::{Tally, run};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn without_a_key_nobody_redirects_anything(bytes in proptest::collection::vec(any::<u8>(), 1..400)) {
        run(&bytes);
    }
}

#[test]
fn the_steps_lead_to_what_he_tries() {
    let mut random = RandomStream::new(1, 0, "hostile peer");
    let mut total = Tally::default();
    for _ in 0..100 {
        let bytes: Vec<u8> = (0..600).map(|_| random.next_u64() as u8).collect();
        let Tally { prepared, received, forged, repeated } = run(&bytes);
        total.prepared += prepared;
        total.received += received;
        total.forged += forged;
        total.repeated += repeated;
    }
    let Tally { prepared, received, forged, repeated } = total;
    assert!(prepared > 100 && received > 500 && forged > 1000 && repeated > 60, "{total:?}");
}

/// A case that was found by fuzzing: a repeated message for a mobile node that has not come yet waits for it like any other packet.
#[test]
fn what_is_repeated_for_a_mobile_node_that_is_waited_for_takes_room_and_nothing_else() {
    run(&[
        0x3, 0xad, 0x74, 0xff, 0x74, 0x74, 0x74, 0xff, 0x4a, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xc3, 0xff, 0x74,
        0x0, 0x0, 0x0, 0x0, 0x74, 0x74, 0xff, 0x4a, 0xc3, 0xc3, 0x3, 0x0, 0x0, 0x0, 0x74, 0x74, 0xff, 0x74,
        0x2a, 0x2d, 0x2c,
    ]);
}
