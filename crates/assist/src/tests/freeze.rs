//! A zero window ahead of a handover.

use core::time::Duration;

use super::script::Script;
use crate::{Config, Freeze, Limits, Place};

fn freezing(place: Place) -> Config {
    let warning = Duration::from_millis(300);
    let patience = Duration::from_millis(200);
    Config { freeze: Some(Freeze { warning, acks: 3, patience }), ..Config::none(place) }
}

#[test]
fn all_acknowledgements_close_the_window_from_the_warning_on_and_three_open_it() {
    let mut script = Script::new(freezing(Place::MobileNode));
    script.run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000             -> pass
            11  from mobile ack 1000 win 900  -> pass
           100  announced 500
           200  from mobile ack 1000 win 901  -> pass
           300  > ack 1000 win 0 for peer
           310  for mobile 1000+1000          -> pass
           311  from mobile ack 2000 win 902  -> pass win 0
           320  for peer 0+10                 -> pass win 0   # its acknowledgement, too
           330  from peer ack 10 win 77       -> pass         # nobody freezes the mobile node
           600  down 1
           700  from mobile ack 2000 win 903  -> pass win 0
          2000  path 2 rate 10000 rtt 100
          2000  > ack 2000 win 903 for peer
          2000  > ack 2000 win 903 for peer
          2000  > ack 2000 win 903 for peer
          2010  from mobile ack 3000 win 904  -> pass",
    );
    assert_eq!(script.assistant.counters().acks_injected, 4);
    assert_eq!(script.assistant.counters().edits, 3);
}

#[test]
fn at_the_home_agent_the_senders_on_the_mobile_node_are_frozen() {
    Script::new(freezing(Place::HomeAgent)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for peer 0+1000               -> pass
            11  from peer ack 1000 win 900    -> pass
           100  announced 300
           100  > ack 1000 win 0 for mobile
           120  from peer ack 1000 win 901    -> pass win 0
           130  from mobile ack 0 win 500     -> pass
           400  path 2 rate 10000 rtt 100
           400  > ack 1000 win 901 for mobile
           400  > ack 1000 win 901 for mobile
           400  > ack 1000 win 901 for mobile",
    );
}

#[test]
fn a_false_alarm_thaws() {
    let mut script = Script::new(freezing(Place::MobileNode));
    script.run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 400
           200  > ack 0 win 0 for peer
           210  from mobile ack 0 win 901     -> pass win 0
           700  > ack 0 win 901 for peer
           710  from mobile ack 0 win 902     -> pass",
    );
    assert_eq!(script.assistant.counters().false_alarms, 1);
}

#[test]
fn a_registration_that_changes_nothing_does_not_make_a_false_alarm_last() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 300
           100  > ack 0 win 0 for peer
           200  path 1                        # the same path, registered again
           210  from mobile ack 0 win 901     -> pass win 0
           600  > ack 0 win 901 for peer",
    );
}

#[test]
fn a_late_warning_closes_at_once() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 20
           100  > ack 0 win 0 for peer
           120  down 1
           900  up 1
           900  > ack 0 win 900 for peer
           900  > ack 0 win 900 for peer
           900  > ack 0 win 900 for peer",
    );
}

#[test]
fn a_loss_without_announcement_changes_nothing() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  down 1
           110  from mobile ack 0 win 901     -> pass
           500  up 1
           510  from mobile ack 0 win 902     -> pass",
    );
}

#[test]
fn a_path_that_is_lost_before_the_warning_is_not_frozen_any_more() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 1000
           200  down 1
           300  path 2
          3000  from mobile ack 0 win 902     -> pass",
    );
}

#[test]
fn the_last_announcement_counts() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 300
           100  > ack 0 win 0 for peer
           150  announced 200                 # sooner: it stays closed, once
           200  from mobile ack 0 win 901     -> pass win 0
           250  announced 1000                # much later: open until then
           250  > ack 0 win 901 for peer
           300  from mobile ack 0 win 902     -> pass
           950  > ack 0 win 0 for peer
          1450  > ack 0 win 902 for peer",
    );
}

#[test]
fn a_flow_that_begins_after_the_announcement_freezes_with_the_others() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
           100  announced 400
           150  syn
           151  from mobile ack 0 win 900     -> pass
           250  from mobile ack 0 win 901     -> pass win 0
           500  path 2
           500  > ack 0 win 901 for peer
           500  > ack 0 win 901 for peer
           500  > ack 0 win 901 for peer",
    );
}

#[test]
fn a_flow_met_in_the_middle_is_not_frozen() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
            11  from mobile ack 0 win 900     -> pass
           100  announced 300
           110  from mobile ack 0 win 901     -> pass
           400  path 2",
    );
}

#[test]
fn what_cannot_be_read_is_not_frozen() {
    let mut script = Script::new(freezing(Place::MobileNode));
    script.opaque = true;
    script.run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 300
           110  from mobile ack 0 win 901     -> pass
           400  path 2",
    );
}

#[test]
fn no_more_acknowledgements_are_injected_than_the_limit() {
    let limits = Limits { acks_per_flow: 2, ..Limits::DEFAULT };
    let mut script = Script::new(Config { limits, ..freezing(Place::MobileNode) });
    script.run(
        "    0  path 1
             0  syn
            11  from mobile ack 0 win 900     -> pass
           100  announced 300
           100  > ack 0 win 0 for peer
           400  path 2
           400  > ack 0 win 900 for peer
           400  > ack 0 win 900 for peer",
    );
    assert_eq!(script.assistant.counters().limited, 1);
}

#[test]
fn a_flow_that_has_closed_is_left_alone() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000 fin         -> pass
            11  for peer 0+10 fin             -> pass
            12  from mobile ack 1001 win 900  -> pass
           100  announced 300
           110  from mobile ack 1001 win 900  -> pass
           400  path 2",
    );
}

#[test]
fn the_window_opens_towards_a_peer_that_sends_straight_when_it_knows_where_to() {
    Script::new(freezing(Place::MobileNode)).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+1000             -> pass
            11  from mobile ack 1000 win 900  -> pass
           100  announced 300
           100  > ack 1000 win 0 for peer
           400  down 1
           500  outdated
           500  path 2 rate 10000 rtt 100
           550  from mobile ack 1000 win 900  -> pass win 0
           600  updated
           600  > ack 1000 win 900 for peer
           600  > ack 1000 win 900 for peer
           600  > ack 1000 win 900 for peer
           610  from mobile ack 1000 win 901  -> pass",
    );
}
