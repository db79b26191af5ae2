#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/fast_handover/messages.rs"]
mod messages;
#[path = "../../crates/mobility/tests/all/v6/fast_handover/model.rs"]
mod model;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6/fast_handover/world.rs"]
mod world;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _tally = model::run(data);
});
