#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
mod v6 {
    #[path = "../../../crates/mobility/tests/all/v6/craft.rs"]
    pub(crate) mod craft;
    pub(crate) mod hierarchical {
        #[path = "../../../../crates/mobility/tests/all/v6/hierarchical/model.rs"]
        pub(crate) mod model;
        #[path = "../../../../crates/mobility/tests/all/v6/hierarchical/world.rs"]
        pub(crate) mod world;

        pub(crate) fn run(bytes: &[u8]) {
            model::run(&model::case_of(bytes));
        }
    }
    #[path = "../../../crates/mobility/tests/all/v6/peer.rs"]
    pub(crate) mod peer;
    #[path = "../../../crates/mobility/tests/all/v6/world.rs"]
    pub(crate) mod world;
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| v6::hierarchical::run(data));
