//! The window that follows the path.

use super::script::Script;
use crate::{Config, Limits, Place, WindowClamp};

fn clamping(place: Place) -> Config {
    Config { window_clamp: Some(WindowClamp { always: true, ..WindowClamp::DEFAULT }), ..Config::none(place) }
}

/// Windows in the other direction are small, so that only the acknowledgements of the script are cut.
fn clamped(place: Place) -> Script {
    let mut script = Script::new(clamping(place));
    script.data_window = 100;
    script
}

/// 80 kbit/s for a second and a half are 15,000 bytes; with a segment of 1,000 bytes 16,000, which is 125 units of 128.
#[test]
fn the_window_is_the_product_and_a_segment_once_it_has_closed_that_far() {
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for mobile 0+1000              -> pass
            20  from mobile ack 1000 win 1000  -> pass win 505    # the SYN's 65,535 stay promised
            30  for mobile 1000+50000          -> pass
            40  from mobile ack 51000 win 1000 -> pass win 125
            50  from mobile ack 51000 win 100  -> pass            # the receiver's own is less",
    );
}

#[test]
fn the_right_edge_stays_when_the_path_becomes_slow() {
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for mobile 0+60000               -> pass
            20  from mobile ack 60000 win 10000  -> pass win 985    # 125,000 + 1,000: up to byte 186,080
            30  path 2 rate 80 rtt 1500
            40  for mobile 60000+1000            -> pass
            50  from mobile ack 61000 win 10000  -> pass win 978    # up to 186,184
            60  from mobile ack 61000 win 10000  -> pass win 978
            70  for mobile 61000+60000           -> pass
            80  from mobile ack 121000 win 10000 -> pass win 510    # up to 186,280
            90  for mobile 121000+60000          -> pass
           100  from mobile ack 181000 win 10000 -> pass win 125",
    );
}

#[test]
fn a_faster_path_opens_what_was_closed_by_one_acknowledgement() {
    let slow_then_known = "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass win 125
          1000  path 2 rate 10000 rtt 100
          1000  > ack 65000 win 985 for peer
          1010  from mobile ack 65000 win 5000   -> pass win 985";
    let mut script = clamped(Place::MobileNode);
    script.run(slow_then_known);
    assert_eq!(script.assistant.counters().acks_injected, 1);
    clamped(Place::HomeAgent).run(slow_then_known);
}

#[test]
fn a_path_of_which_nothing_is_known_has_no_clamp() {
    clamped(Place::MobileNode).run(
        "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass win 125
          1000  path 2 rate 80
          1000  > ack 65000 win 5000 for peer
          1010  from mobile ack 65000 win 5000   -> pass
          2000  path 3 rtt 1500
          2010  for mobile 65000+60000           -> pass
          2020  from mobile ack 125000 win 5000  -> pass",
    );
}

#[test]
fn an_upload_is_clamped_at_the_mobile_node() {
    clamped(Place::MobileNode).run(
        "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for peer 0+65000                 -> pass
            20  from peer ack 65000 win 5000     -> pass win 125
          1000  path 2 rate 10000 rtt 100
          1000  > ack 65000 win 985 for mobile",
    );
}

#[test]
fn the_way_to_the_peer_counts() {
    // The peer is 300 ms behind the home agent: 8 Mbit/s for 400 ms are 400,000 bytes.
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 8000 rtt 100
             0  syn-from mobile
           300  syn-answer
           400  from mobile ack 0 win 10000      -> pass win 3133",
    );
    // The mobile node measures both ways together.
    clamped(Place::MobileNode).run(
        "    0  path 1 rate 8000 rtt 100
             0  syn-from mobile
           400  syn-answer
           400  from mobile ack 0 win 10000      -> pass win 3133",
    );
}

#[test]
fn without_a_way_to_the_peer_that_can_be_measured_there_is_no_clamp() {
    clamped(Place::MobileNode).run(
        "    0  path 1 rate 80 rtt 100
             0  syn-from mobile
          1000  syn-from mobile
          1100  syn-answer
          1100  for mobile 0+65000               -> pass
          1101  from mobile ack 65000 win 10000  -> pass",
    );
}

#[test]
fn a_round_trip_that_is_longer_than_told_counts_and_one_with_a_queue_does_not() {
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 800 rtt 100
             0  syn
             0  from mobile ack 0 win 500        -> pass
             0  for mobile 0+960                 -> pass
           310  from mobile ack 960 win 10000    -> pass win 505   # 300 ms and 10 on the wire
           320  for mobile 960+64040             -> pass
          1500  from mobile ack 65000 win 10000  -> pass win 243/242   # 30,000 + 1,000
          1510  for mobile 65000+60000           -> pass
          1511  for mobile 125000+960            -> pass           # finds 60,000 on their way
          9000  from mobile ack 125960 win 10000 -> pass win 243/242
          9001  path 2 rate 800 rtt 100
          9010  for mobile 125960+60000          -> pass
          9020  from mobile ack 185960 win 10000 -> pass win 86    # the new path's own: 10,000 + 1,000",
    );
}

#[test]
fn two_segments_stay() {
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 10 rtt 100
             0  syn
            10  for mobile 0+60000               -> pass
            11  for mobile 60000+6000            -> pass
            20  from mobile ack 66000 win 5000   -> pass win 16    # 2,000 bytes",
    );
}

#[test]
fn a_flow_met_in_the_middle_and_one_that_cannot_be_read_are_left_alone() {
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 80 rtt 100
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass
            30  path 2 rate 8000 rtt 100",
    );
    let mut script = clamped(Place::HomeAgent);
    script.opaque = true;
    script.run(
        "    0  path 1 rate 80 rtt 100
             0  syn
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass
            30  path 2 rate 8000 rtt 100",
    );
}

#[test]
fn a_limit_of_no_acknowledgements_opens_nothing() {
    let limits = Limits { acks_per_flow: 0, ..Limits::DEFAULT };
    let mut script = Script::new(Config { limits, ..clamping(Place::HomeAgent) });
    script.data_window = 100;
    script.run(
        "    0  path 1 rate 80 rtt 1500
             0  syn
            10  for mobile 0+65000               -> pass
            20  from mobile ack 65000 win 5000   -> pass win 125
          1000  path 2 rate 10000 rtt 100",
    );
    assert_eq!(script.assistant.counters().limited, 1);
}

#[test]
fn a_flow_is_clamped_when_it_comes_from_a_faster_path_only() {
    let config = Config { window_clamp: Some(WindowClamp::DEFAULT), ..Config::none(Place::MobileNode) };
    let mut script = Script::new(Config { place: Place::HomeAgent, ..config });
    script.run(
        "    0  path 1 rate 10000 rtt 10
             0  syn
            10  for mobile 0+1000                 -> pass
            20  from mobile ack 1000 win 5000     -> pass
           100  path 2 rate 100 rtt 100 alive
           110  for mobile 1000+1000              -> pass
           111  for mobile 2000+1000              -> pass",
    );
    let windows = |script: &mut Script| script.assistant.counters().edits;
    assert_eq!(windows(&mut script), 0);
    // The edge stands far to the right already: the window closes by what is acknowledged.
    script.run("  200  from mobile ack 3000 win 5000     -> pass win 4985");
    script.run(
        "  300  path 1 rate 10000 rtt 10 alive
           300  > ack 3000 win 5000 for peer
           400  for mobile 3000+1000              -> pass
           410  from mobile ack 4000 win 5000     -> pass",
    );
}

#[test]
fn what_is_delivered_was_not_told_too_low() {
    // 10,000 bytes every half a second are 160 kbit/s, twice what was told: 30,000 bytes and a segment are 243 units.
    clamped(Place::HomeAgent).run(
        "    0  path 1 rate 10000 rtt 1500
             0  syn
            10  for mobile 0+60000               -> pass
            20  from mobile ack 60000 win 1000   -> pass
            30  path 2 rate 80 rtt 1500
          3100  for mobile 60000+60000           -> pass
          3100  for mobile 120000+60000          -> pass
          3100  for mobile 180000+20000          -> pass
          3200  from mobile ack 200000 win 1000  -> pass win 125
          4000  for mobile 200000+10000          -> pass
          4000  from mobile ack 210000 win 1000  -> pass win 125
          4500  for mobile 210000+10000          -> pass
          4500  from mobile ack 220000 win 1000  -> pass win 125
          5000  for mobile 220000+10000          -> pass
          5000  from mobile ack 230000 win 1000  -> pass win 125
          5500  for mobile 230000+10000          -> pass
          5500  from mobile ack 240000 win 1000  -> pass win 243",
    );
}

#[test]
fn copies_by_two_paths_are_not_held_to_what_the_newer_one_holds() {
    let config = Config { window_clamp: Some(WindowClamp::DEFAULT), ..Config::none(Place::HomeAgent) };
    let mut script = Script::new(config);
    script.data_window = 100;
    script.run(
        "    0  path 1 rate 10000 rtt 10
             0  syn
            10  for mobile 0+1000                 -> pass
            20  from mobile ack 1000 win 5000     -> pass
           100  path 1 rate 10000 rtt 10 beside 2 rate 60 rtt 10 alive
           110  for mobile 1000+1000              -> pass
           120  from mobile ack 2000 win 5000     -> pass
           130  path 2 rate 60 rtt 10 beside 1 rate 10000 rtt 10    # one of them is registered again
           140  for mobile 2000+1000              -> pass
           150  from mobile ack 3000 win 5000     -> pass
           160  path 2 rate 60 rtt 10
           170  for mobile 3000+1000              -> pass
           180  from mobile ack 4000 win 5000     -> pass win 4993
           200  path 2 rate 60 rtt 10 beside 1 rate 10000 rtt 10
           210  for mobile 4000+1000              -> pass
           220  from mobile ack 5000 win 5000     -> pass",
    );
}

#[test]
fn a_path_that_is_lost_takes_no_part_although_its_binding_is_kept() {
    let config = Config { window_clamp: Some(WindowClamp::DEFAULT), ..Config::none(Place::HomeAgent) };
    let mut script = Script::new(config);
    script.data_window = 100;
    script.run(
        "    0  path 1 rate 10000 rtt 10
             0  syn
            10  for mobile 0+1000                 -> pass
            20  from mobile ack 1000 win 5000     -> pass
           100  path 1 rate 10000 rtt 10 beside 2 rate 60 rtt 10 lost
           110  for mobile 1000+1000              -> pass
           120  from mobile ack 2000 win 5000     -> pass win 4993
           130  path 1 rate 10000 rtt 10 beside 2 rate 60 rtt 10
           140  from mobile ack 2000 win 5000     -> pass win 4993
           150  path 2 rate 60 rtt 10 beside 1 rate 10000 rtt 10    # it is back
           160  from mobile ack 2000 win 5000     -> pass
           170  down 1
           180  for mobile 2000+1000              -> pass
           190  from mobile ack 3000 win 5000     -> pass win 4993",
    );
}

#[test]
fn a_mobile_node_holds_its_downloads_to_the_new_path_when_the_copies_by_the_old_one_end() {
    let config = Config { window_clamp: Some(WindowClamp::DEFAULT), ..Config::none(Place::MobileNode) };
    let mut script = Script::new(config);
    script.data_window = 100;
    script.run(
        "    0  path 1 rate 10000 rtt 10
             0  syn
            10  for mobile 0+1000                 -> pass
            20  from mobile ack 1000 win 5000     -> pass
           100  registered 1 2 rate 60 rtt 10 beside rate 10000 rtt 10
           110  for mobile 1000+1000              -> pass
           120  from mobile ack 2000 win 5000     -> pass
           200  terminated 1 2
           210  for mobile 2000+1000              -> pass
           220  from mobile ack 3000 win 5000     -> pass win 4993",
    );
}
