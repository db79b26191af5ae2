#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| careof_fuzz::icmpv6(data));
