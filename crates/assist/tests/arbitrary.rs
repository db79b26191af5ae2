//! Whatever passes and happens: what leaves an assistant is what the ends have said.
//!
//! The same function that the fuzz target runs.

use proptest::prelude::*;

#[expect(unreachable_pub, reason = "it is a crate of its own to the fuzz target")]
#[path = "../../../fuzz/src/assist.rs"]
mod entry;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_acknowledgement_leaves_that_the_receiver_did_not_give(
        bytes in proptest::collection::vec(any::<u8>(), 0..1_500)
    ) {
        entry::assist(&bytes);
    }
}
