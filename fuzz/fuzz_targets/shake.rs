#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| careof_fuzz::shake(data));
