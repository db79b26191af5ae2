//! What holds whatever assists are used.

use super::script::Script;
use crate::{Config, Limits, Place, Replay};

fn replaying(place: Place) -> Config {
    Config { replay: Some(Replay::DEFAULT), ..Config::none(place) }
}

#[test]
fn acknowledged_packets_are_forgotten_and_the_rest_is_sent_again_in_order() {
    Script::new(replaying(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000             -> pass keep
            11  for mobile 1000+1000          -> pass keep
            12  for mobile 2000+1000          -> pass keep
                = kept 3
            60  from mobile ack 1000          -> pass
                = kept 2
           400  for mobile 1000+1000 again    -> pass keep
           900  path 2 rate 10000 rtt 100 lost
           900  > release 1000+1000
           900  > release 2000+1000
           900  > release 1000+1000 again
           950  from mobile ack 3000          -> pass
                = kept 0",
    );
}

#[test]
fn the_mobile_node_keeps_what_it_sends() {
    Script::new(replaying(Place::MobileNode)).run(
        "    0  syn
            10  for mobile 0+1000             -> pass
            11  for peer 0+1000               -> pass keep
            20  from peer ack 1000            -> pass
                = kept 0",
    );
}

#[test]
fn flows_are_forgotten_when_they_are_idle() {
    Script::new(replaying(Place::HomeAgent)).run(
        "    0  syn
            10  for mobile 0+1000             -> pass keep
        100000  for mobile 1000+1000          -> pass keep
                = flows 1
        220001  wait
                = flows 0
                = kept 0",
    );
}

#[test]
fn nothing_is_kept_beyond_the_bounds() {
    let limits = Limits { packets: 2, ..Limits::DEFAULT };
    Script::new(Config { limits, ..replaying(Place::HomeAgent) }).run(
        "    0  syn
             1  for mobile 0+1000             -> pass keep
             2  for mobile 1000+1000          -> pass keep
             3  for mobile 2000+1000          -> pass
            60  from mobile ack 1000          -> pass
            61  for mobile 3000+1000          -> pass keep",
    );
}
