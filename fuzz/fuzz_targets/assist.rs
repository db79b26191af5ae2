#![no_main]

#[path = "../src/assist.rs"]
mod entry;

libfuzzer_sys::fuzz_target!(|data: &[u8]| entry::assist(data));
