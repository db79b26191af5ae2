#![no_main]

#[path = "../../crates/mobility/tests/all/multipath/bond_model.rs"]
mod bond_model;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bond_model::run(data));
