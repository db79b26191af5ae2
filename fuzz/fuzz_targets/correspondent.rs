#![no_main]

#[path = "../../crates/mobility/tests/all/v6/correspondent/model.rs"]
mod model;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/correspondent/peer.rs"]
mod peer;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _tally = model::run(model::steps_of(data));
});
