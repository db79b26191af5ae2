//! ICMP for the sender's back-off.

use core::time::Duration;

use careof_mobility::PathProperties;
use careof_wire::ReceivedData;

use super::script::{MOBILE, Script, path};
use crate::{Config, Input, LcdKick, Limits, Place, Replay};

const UNKNOWN: PathProperties = PathProperties { downlink: None, uplink: None, round_trip: None };
const PATH_2: Input<'static> = Input::Paths {
    mobile: MOBILE,
    paths: &[(path(2), UNKNOWN)],
    old_lost: None,
    received: ReceivedData::EMPTY,
};

fn kicking(place: Place) -> Config {
    let kick = LcdKick { burst: 3, spacing: Duration::from_millis(2), ..LcdKick::DEFAULT };
    Config { lcd_kick: Some(kick), ..Config::none(place) }
}

#[test]
fn one_unreachable_a_repetition_while_the_path_is_lost() {
    let mut script = Script::new(kicking(Place::HomeAgent));
    script.run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000              -> pass
            60  from mobile ack 1000           -> pass
            70  for mobile 1000+1000           -> pass
            71  for mobile 2000+1000           -> pass
           100  down 1
           300  for mobile 1000+1000 again     -> pass
           300  > unreachable 1000 for peer
           500  for mobile 1000+1000 again     -> pass         # too soon
           560  for mobile 1000+1000 again     -> pass
           560  > unreachable 1000 for peer",
    );
    assert_eq!(script.assistant.counters().unreachables, 2);
}

#[test]
fn none_is_sent_while_the_path_works() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000              -> pass
           310  for mobile 0+1000 again        -> pass",
    );
}

#[test]
fn a_receiver_silent_for_long_is_taken_for_lost() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 500
             0  syn
            10  for mobile 0+1000              -> pass
           510  from mobile ack 1000           -> pass
           520  for mobile 1000+1000           -> pass
          1520  for mobile 1000+1000 again     -> pass         # a second, but not three round trips
          2520  for mobile 1000+1000 again     -> pass
          2520  > unreachable 1000 for peer",
    );
}

#[test]
fn a_receiver_is_not_lost_while_something_of_another_flow_comes_from_it() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  syn flow 2
            10  for mobile 0+1000              -> pass
            10  for mobile 0+1000 flow 2       -> pass
            60  from mobile ack 1000           -> pass
            70  for mobile 1000+1000           -> pass
          1900  from mobile ack 1000 flow 2    -> pass
          2000  for mobile 1000+1000 again     -> pass         # lost by congestion
          4000  for mobile 1000+1000 again     -> pass
          4000  > unreachable 1000 for peer",
    );
}

#[test]
fn a_burst_at_the_end_until_the_first_sign_of_life() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000              -> pass
            60  from mobile ack 1000           -> pass
            70  for mobile 1000+1000           -> pass
           300  for mobile 1000+1000 again     -> pass
           900  for mobile 1000+1000 again     -> pass
          2000  path 2 rate 10000 rtt 100
          2000  > unreachable 1000 for peer
          2002  > unreachable 1000 for peer
          2003  for mobile 1000+1000 again     -> pass
          2100  from mobile ack 2000           -> pass
          3000  path 1 rate 10000 rtt 100      # nothing is owed",
    );
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000              -> pass
            60  from mobile ack 1000           -> pass
            70  for mobile 1000+1000           -> pass
           300  for mobile 1000+1000 again     -> pass
          2000  path 2 rate 10000 rtt 100
          2000  > unreachable 1000 for peer
          2001  from mobile ack 2000           -> pass
          2500  wait",
    );
}

#[test]
fn no_burst_for_what_was_never_repeated_or_for_a_path_that_is_not_lost() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
           500  path 2 lost
           600  for mobile 0+1000 again        -> pass
           700  path 3 alive",
    );
}

#[test]
fn a_burst_only_where_what_was_repeated_is_not_kept() {
    let repeated = "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep";
    for place in [Place::HomeAgent, Place::ForeignAgent] {
        let mut config = kicking(place);
        config.replay = Some(Replay::DEFAULT);
        let mut script = Script::new(config);
        script.run(repeated);
        script.event(&PATH_2);
        assert_eq!(script.assistant.counters().unreachables, 0);
    }
    // A copy of something else does not help.
    let limits = Limits { packets: 1, ..Limits::DEFAULT };
    let mut config = Config { limits, ..kicking(Place::HomeAgent) };
    config.replay = Some(Replay::DEFAULT);
    let mut script = Script::new(config);
    script.run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass
            60  from mobile ack 1000           -> pass
            70  for mobile 2000+1000           -> pass keep
           300  for mobile 1000+1000 again     -> pass",
    );
    script.event(&PATH_2);
    assert_eq!(script.assistant.counters().unreachables, 1);
}

#[test]
fn the_mobile_node_tells_its_own_sender() {
    Script::new(kicking(Place::MobileNode)).run(
        "    0  path 1
             0  syn
             1  from peer ack 0                -> pass
            10  for peer 0+1000                -> pass
            20  down 1
           300  for peer 0+1000 again          -> pass
           300  > unreachable 0 for mobile
           900  up 1
           900  > unreachable 0 for mobile
           902  > unreachable 0 for mobile
           904  > unreachable 0 for mobile",
    );
}

#[test]
fn a_blind_flow_is_believed_when_it_repeats_what_is_not_its_last() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  for mobile 1000+1000           -> pass
            30  down 1
           100  for mobile 1000+1000 again     -> pass         # may be a tail loss probe
           300  for mobile 0+1000 again        -> pass
           300  > unreachable 0 for peer
           310  for mobile 2000+1000           -> pass         # so it goes on
          1000  up 1
          2000  down 1
          2300  for mobile 2000+1000 again     -> pass         # may be one
          2900  for mobile 2000+1000 again     -> pass         # is none
          2900  > unreachable 2000 for peer",
    );
}

#[test]
fn a_flow_whose_beginning_was_not_seen_needs_both_directions() {
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1
            10  for mobile 0+1000              -> pass
            20  down 1
           300  for mobile 0+1000 again        -> pass
           900  for mobile 0+1000 again        -> pass
          1000  path 2",
    );
    Script::new(kicking(Place::HomeAgent)).run(
        "    0  path 1
            10  for mobile 0+1000              -> pass
            15  from mobile ack 1000           -> pass
            18  for mobile 1000+1000           -> pass
            20  down 1
           300  for mobile 1000+1000 again     -> pass
           300  > unreachable 1000 for peer",
    );
}

#[test]
fn none_for_what_cannot_be_read() {
    let mut script = Script::new(kicking(Place::HomeAgent));
    script.opaque = true;
    script.run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            20  down 1
           300  for mobile 0+1000 again        -> pass",
    );
}

#[test]
fn the_limits_hold_and_are_counted() {
    let repeating = "    0  path 1
             0  syn
             1  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass
            20  down 1
           300  for mobile 0+1000 again        -> pass
           300  > unreachable 0 for peer
           600  for mobile 0+1000 again        -> pass
           900  for mobile 0+1000 again        -> pass";
    let per_flow = Limits { unreachables_per_flow: 1, ..Limits::DEFAULT };
    let in_all = Limits { unreachables_per_second: 1, ..Limits::DEFAULT };
    for limits in [per_flow, in_all] {
        let mut script = Script::new(Config { limits, ..kicking(Place::HomeAgent) });
        script.run(repeating);
        let counters = script.assistant.counters();
        assert_eq!((counters.unreachables, counters.limited), (1, 2));
    }
}
