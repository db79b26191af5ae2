#![no_main]

#[path = "../../crates/mobility/tests/all/micro/model.rs"]
mod model;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/micro/tree.rs"]
mod tree;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _tally = model::run(data);
});
