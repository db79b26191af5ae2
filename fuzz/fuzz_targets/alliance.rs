#![no_main]

#[path = "../../crates/mobility/tests/all/multipath/alliance_model.rs"]
mod alliance_model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| alliance_model::run(data));
