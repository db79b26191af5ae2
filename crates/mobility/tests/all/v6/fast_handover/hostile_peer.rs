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
