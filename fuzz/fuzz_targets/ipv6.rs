#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| careof_fuzz::ipv6(data));
