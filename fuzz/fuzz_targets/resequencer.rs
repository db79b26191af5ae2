#![no_main]

#[path = "../../crates/mobility/tests/all/multipath/resequencer_model.rs"]
mod resequencer_model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| resequencer_model::run(data));
