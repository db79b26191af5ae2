#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/mobility/tests/all/v6"]
mod v6 {
    pub(crate) mod craft;
    pub(crate) mod hierarchical {
        pub(crate) mod model;
        pub(crate) mod world;

        pub(crate) fn run(bytes: &[u8]) {
            model::run(&model::case_of(bytes));
        }
    }
    pub(crate) mod peer;
    pub(crate) mod world;
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| v6::hierarchical::run(data));
