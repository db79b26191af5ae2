//! Copies end at the mobile node.

use super::script::Script;
use crate::{Config, Place};

fn receiving(place: Place) -> Config {
    Config { bicast: true, ..Config::none(place) }
}

#[test]
fn of_two_copies_one_passes() {
    let mut script = Script::new(receiving(Place::MobileNode));
    script.run(
        "    0  syn
            10  for mobile 0+1000 stamp 5      -> pass
            12  for mobile 1000+1000 stamp 5   -> pass
            30  for mobile 0+1000 stamp 5      -> drop delivered-already
            40  from peer ack 1000 stamp 6     -> pass
            60  from peer ack 1000 stamp 6     -> drop delivered-already
            70  for mobile 1000+1000 stamp 5   -> drop delivered-already
           200  for mobile 1000+1000 stamp 7 again -> pass    # a repetition
          1300  for mobile 0+1000 stamp 5      -> pass    # too late to be known for a copy
          1400  for peer 0+1000 stamp 9        -> pass
          1400  for peer 0+1000 stamp 9        -> pass    # only what arrives",
    );
    assert_eq!(script.assistant.counters().duplicates_dropped, 3);
}

#[test]
fn what_cannot_be_told_from_a_repetition_passes_and_so_does_all_elsewhere() {
    let mut script = Script::new(receiving(Place::MobileNode));
    script.timestamps = false;
    script.run(
        "    0  syn
            10  for mobile 0+1000              -> pass
            11  for mobile 0+1000              -> pass",
    );
    Script::new(receiving(Place::HomeAgent)).run(
        "    0  syn
            10  for mobile 0+1000 stamp 5      -> pass
            11  for mobile 0+1000 stamp 5      -> pass",
    );
}
