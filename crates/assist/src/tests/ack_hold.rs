//! The acknowledgement of the last bytes, kept back.

use super::script::Script;
use crate::{AckHold, Config, Limits, Place};

fn holding(config: AckHold) -> Config {
    Config { ack_hold: Some(config), ..Config::none(Place::MobileNode) }
}

#[test]
fn the_last_byte_is_kept_back_from_the_announcement_on_and_told_when_a_path_is_back() {
    let mut script = Script::new(holding(AckHold::DEFAULT));
    script.run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass
            11  from mobile ack 1000 win 900   -> pass
            50  announced 100
            60  for mobile 1000+1000           -> pass
            61  from mobile ack 2000 win 900   -> pass ack 1999
            70  for peer 0+10                  -> pass          # acknowledges 0, as it came: an old one
           150  down 1
           300  wait                                            # the deadline: into an outage nothing is sent
          1000  path 2
          1000  > ack 2000 win 900 for peer
          1010  from mobile ack 2000 win 900   -> pass
          1020  for mobile 2000+1000           -> pass
          1021  from mobile ack 3000 win 900   -> pass",
    );
    assert_eq!(script.assistant.counters().acks_injected, 1);
}

#[test]
fn a_pause_ends_after_the_longest_time() {
    let limits = Limits { acks_per_flow: 0, ..Limits::DEFAULT };
    let config = holding(AckHold { always: true, ..AckHold::DEFAULT });
    // What was kept back is given back, whatever the limit on what is made up.
    Script::new(Config { limits, ..config }).run(
        "    0  syn
            10  from mobile ack 0              -> pass
            20  for mobile 0+1000              -> pass
            21  from mobile ack 1000           -> pass ack 999
           121  from mobile ack 1000           -> pass ack 999
           221  > ack 1000 win 1000 for peer
           300  from mobile ack 1000           -> pass
           310  for mobile 1000+1000           -> pass
           311  from mobile ack 2000           -> pass ack 1999
           511  > ack 2000 win 1000 for peer",
    );
}

#[test]
fn nothing_is_acknowledged_below_what_left_before() {
    let config = holding(AckHold { bytes: 1_500, always: true, ..AckHold::DEFAULT });
    Script::new(config).run(
        "    0  syn
            10  from mobile ack 0              -> pass
            20  for mobile 0+3000              -> pass
            21  from mobile ack 1000           -> pass ack 0
            22  from mobile ack 2000           -> pass ack 500
            23  from mobile ack 2100           -> pass ack 600
            24  from mobile ack 1000           -> pass ack 600   # overtaken: not below what left
            25  from mobile ack 400            -> pass
           223  > ack 2100 win 1000 for peer
           224  from mobile ack 2200           -> pass ack 2100
           230  from mobile ack 3000           -> pass ack 2100
           430  > ack 3000 win 1000 for peer",
    );
}

#[test]
fn a_false_alarm_releases_and_ends_it() {
    Script::new(holding(AckHold::DEFAULT)).run(
        "    0  path 1
             0  syn
            10  from mobile ack 0              -> pass
            20  announced 100
           310  for mobile 0+1000              -> pass
           311  from mobile ack 1000           -> pass ack 999
           320  > ack 1000 win 1000 for peer",
    );
}

#[test]
fn the_end_of_a_connection_is_not_kept_back() {
    let config = holding(AckHold { always: true, ..AckHold::DEFAULT });
    Script::new(config).run(
        "    0  syn
            10  from mobile ack 0              -> pass
            20  for mobile 0+1000              -> pass
            21  from mobile ack 1000           -> pass ack 999
            30  for mobile 1000+1000 fin       -> pass
            31  from mobile ack 2001           -> pass
           900  wait",
    );
}

#[test]
fn a_report_of_duplicates_is_taken_out_with_it() {
    let config = holding(AckHold { always: true, ..AckHold::DEFAULT });
    Script::new(config).run(
        "    0  syn
            10  from mobile ack 0                      -> pass
            20  for mobile 0+1000                      -> pass
            21  from mobile ack 1000 sack 0-1000       -> pass ack 999 without sack
            30  for mobile 2000+1000                   -> pass
            31  from mobile ack 1000 sack 2000-3000    -> pass ack 999
           221  > ack 1000 win 1000 for peer",
    );
}

#[test]
fn what_cannot_be_read_is_not_changed() {
    let mut script = Script::new(holding(AckHold { always: true, ..AckHold::DEFAULT }));
    script.opaque = true;
    script.run(
        "    0  syn
            10  from mobile ack 0              -> pass
            20  for mobile 0+1000              -> pass
            21  from mobile ack 1000           -> pass",
    );
}
