#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/craft.rs"]
mod craft;
#[path = "../../crates/mobility/tests/all/v6/intruder_model.rs"]
mod intruder_model;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/peer.rs"]
mod peer;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _tally = intruder_model::run(data);
});
