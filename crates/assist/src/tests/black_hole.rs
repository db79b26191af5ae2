//! Tunnels that swallow large packets. A segment of 1400 bytes is an outer datagram of 1472 bytes here, with
//! timestamps, and of 1512 bytes over IPv6.

use alloc::format;

use super::script::{Over, Script};
use crate::{BlackHole, Config, Place, Replay};

fn watching(place: Place) -> Config {
    Config { black_hole: Some(BlackHole::DEFAULT), ..Config::none(place) }
}

/// Large packets go by path 1 and never arrive whole; acknowledgements do not pass.
const SWALLOWED: &str = "
     0  path 1
     0  syn
    10  for mobile 0+1400 by 1             -> pass
    10  for mobile 1400+1400 by 1          -> pass
   310  for mobile 0+1400 by 1             -> pass
   910  for mobile 0+1400 by 1             -> pass
  2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492
  2200  for mobile 1400+1400 by 1          -> pass
  2200  for mobile 2800+1400 by 1          -> pass
  2500  for mobile 1400+1400 by 1          -> pass fragments 1006/1492";

#[test]
fn what_gets_through_in_fragments_only_twice_is_a_black_hole_and_its_sender_is_told() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(SWALLOWED);
    script.run(
        "3200  for mobile 2800+1400 by 1          -> pass fragments 1006/1492
         3200  > too-large 2800 mtu 986/1452 for peer
         3201  for mobile 4200+1400 by 1          -> pass fragments 1006/1492
         3202  for mobile 5600+914 by 1           -> pass",
    );
    assert_eq!(script.assistant.counters().black_holes, 1);
}

#[test]
fn a_sender_that_goes_on_too_large_is_told_once_a_second_and_served_all_the_same() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(SWALLOWED);
    script.run(
        "3200  for mobile 2800+1400 by 1          -> pass fragments 1006/1492
         3200  > too-large 2800 mtu 986/1452 for peer
         4199  for mobile 4200+1400 by 1          -> pass fragments 1006/1492
         4200  for mobile 5600+1400 by 1          -> pass fragments 1006/1492
         4200  > too-large 5600 mtu 986/1452 for peer",
    );
}

#[test]
fn an_outage_that_ends_while_fragments_are_tried_is_none() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
          310  for mobile 0+1400 by 1             -> pass
          910  for mobile 0+1400 by 1             -> pass
         2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492
         2200  for mobile 1400+1400 by 1          -> pass
         2200  for mobile 2800+1400 by 1          -> pass
         2300  from mobile ack 4200 echo 2200     -> pass
         2300  for mobile 4200+1400 by 1          -> pass
         9000  for mobile 4200+1400 by 1          -> pass
         9600  for mobile 4200+1400 by 1          -> pass
        10800  for mobile 4200+1400 by 1          -> pass
        13200  for mobile 4200+1400 by 1          -> pass",
    );
}

#[test]
fn an_outage_is_none_either_where_acknowledgements_do_not_pass() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
          310  for mobile 0+1400 by 1             -> pass
          910  for mobile 0+1400 by 1             -> pass
         2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492",
    );
    // Slow start: more and more go whole, and are heard of.
    for segment in 1..12 {
        script.run(&format!("{} for mobile {}+1400 by 1 -> pass", 2200 + segment, 1400 * segment));
    }
    // Another loss, by a timeout.
    script.run(
        "3000  for mobile 7000+1400 by 1          -> pass
         3600  for mobile 7000+1400 by 1          -> pass
         4800  for mobile 7000+1400 by 1          -> pass fragments 1006/1492
         4900  for mobile 8400+1400 by 1          -> pass",
    );
    assert_eq!(script.assistant.counters().black_holes, 0);
}

#[test]
fn a_repetition_at_once_after_fragments_helped_is_no_timeout() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
          310  for mobile 0+1400 by 1             -> pass
          910  for mobile 0+1400 by 1             -> pass
         2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492
         2200  for mobile 1400+1400 by 1          -> pass
         2201  for mobile 2800+1400 by 1          -> pass
         2290  for mobile 1400+1400 by 1          -> pass",
    );
}

#[test]
fn a_path_on_which_large_packets_arrived_whole_is_suspected_late() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
           60  from mobile ack 1400 echo 10       -> pass
           70  for mobile 1400+1400 by 1          -> pass
          370  for mobile 1400+1400 by 1          -> pass
          970  for mobile 1400+1400 by 1          -> pass
         2170  for mobile 1400+1400 by 1          -> pass
         4570  for mobile 1400+1400 by 1          -> pass
         9370  for mobile 1400+1400 by 1          -> pass
        18970  for mobile 1400+1400 by 1          -> pass fragments 1006/1492",
    );
}

#[test]
fn a_handover_begins_the_count_anew_and_a_lost_path_is_no_evidence() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
          310  for mobile 0+1400 by 1             -> pass
          910  for mobile 0+1400 by 1             -> pass
         1000  down 1
         2110  for mobile 0+1400 by 1             -> pass
         4510  for mobile 0+1400 by 1             -> pass
         5000  path 2
         9310  for mobile 0+1400 by 2             -> pass
        18910  for mobile 0+1400 by 2             -> pass",
    );
}

#[test]
fn repetitions_of_one_loss_among_others_are_no_evidence() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
           10  for mobile 0+1400 by 1             -> pass
           11  for mobile 1400+1400 by 1          -> pass
           80  for mobile 0+1400 by 1             -> pass
           81  for mobile 2800+1400 by 1          -> pass
          160  for mobile 0+1400 by 1             -> pass
          161  for mobile 4200+1400 by 1          -> pass
          240  for mobile 0+1400 by 1             -> pass
          241  for mobile 5600+1400 by 1          -> pass
          320  for mobile 0+1400 by 1             -> pass",
    );
}

#[test]
fn what_may_be_fragmented_is_left_to_the_routers_and_what_goes_home_to_nobody() {
    Script::new(watching(Place::HomeAgent)).run(
        "   0  syn
           10  for mobile 0+1400                  -> pass
          310  for mobile 0+1400                  -> pass
          910  for mobile 0+1400                  -> pass
         2110  for mobile 0+1400                  -> pass
         4510  for mobile 0+1400                  -> pass",
    );
}

#[test]
fn an_assumed_mtu_that_is_too_large_still_is_lowered_at_the_next_failure() {
    let mut script = Script::over(Over::Ipv4, watching(Place::HomeAgent));
    script.run(SWALLOWED);
    script.run(
        "3200  for mobile 2800+1400 by 1          -> pass fragments 1006/1492
         3200  > too-large 2800 mtu 986/1452 for peer
         3300  for mobile 4200+934 by 1           -> pass
         3600  for mobile 4200+934 by 1           -> pass fragments 508
         4300  for mobile 5134+934 by 1           -> pass fragments 508
         4300  > too-large 5134 mtu 488 for peer",
    );
    assert_eq!(script.assistant.counters().black_holes, 2);
}

#[test]
fn when_the_soft_state_is_old_large_packets_are_tried_and_one_failure_is_enough() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(SWALLOWED);
    script.run(
        "  3200  for mobile 2800+1400 by 1        -> pass fragments 1006/1492
           3200  > too-large 2800 mtu 986/1452 for peer
         603300  for mobile 4200+1400 by 1        -> pass
         603600  for mobile 4200+1400 by 1        -> pass
         604200  for mobile 4200+1400 by 1        -> pass fragments 1006/1492
         604300  for mobile 5600+1400 by 1        -> pass fragments 1006/1492
         604300  > too-large 5600 mtu 986/1452 for peer",
    );
}

#[test]
fn other_connections_by_the_same_care_of_address_profit() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(SWALLOWED);
    script.run(
        "3200  for mobile 2800+1400 by 1          -> pass fragments 1006/1492
         3200  > too-large 2800 mtu 986/1452 for peer
         3300  for mobile 0+1400 flow 2 by 1      -> pass fragments 1006/1492
         3300  > too-large 0 mtu 986/1452 for peer
         3400  for mobile 1400+1400 flow 2 by 2   -> pass",
    );
}

#[test]
fn the_mobile_node_watches_what_it_sends_itself() {
    Script::new(watching(Place::MobileNode)).run(
        "   0  syn
           10  for peer 0+1400 by 1               -> pass
          310  for peer 0+1400 by 1               -> pass
          910  for peer 0+1400 by 1               -> pass
         2110  for peer 0+1400 by 1               -> pass fragments 1006/1492
         2200  from peer ack 1400 echo 2110       -> pass
         2200  for peer 1400+1400 by 1            -> pass
         2500  for peer 1400+1400 by 1            -> pass fragments 1006/1492
         3200  from peer ack 2800 echo 2500       -> pass
         3200  for peer 2800+1400 by 1            -> pass fragments 1006/1492
         3200  > too-large 2800 mtu 986/1452 for mobile",
    );
}

#[test]
fn a_whole_segment_that_arrives_late_says_that_the_timeouts_were_spurious() {
    let mut script = Script::new(watching(Place::HomeAgent));
    script.run(
        "   0  path 1
            0  syn
            5  from mobile ack 0                  -> pass
           10  for mobile 0+1400 by 1             -> pass
           10  for mobile 1400+1400 by 1          -> pass
          310  for mobile 0+1400 by 1             -> pass
          910  for mobile 0+1400 by 1             -> pass
         2110  for mobile 0+1400 by 1             -> pass fragments 1006/1492
         2200  from mobile ack 1400 echo 10       -> pass
         2500  for mobile 1400+1400 by 1          -> pass
         2900  for mobile 1400+1400 by 1          -> pass
         3700  for mobile 1400+1400 by 1          -> pass
         5300  for mobile 1400+1400 by 1          -> pass",
    );
    assert_eq!(script.assistant.counters().black_holes, 0);
}

#[test]
fn small_pieces_that_arrive_and_what_is_repeated_for_them_do_not_hide_what_does_not() {
    // As a kernel does that was told of 1420 bytes: pieces of 28 bytes arrive and are acknowledged selectively, others are repeated.
    Script::new(watching(Place::HomeAgent)).run(
        "   0  path 1
            0  syn
            5  from mobile ack 0                  -> pass
           10  for mobile 0+1400 by 1             -> pass
           10  for mobile 1400+28 by 1            -> pass
           10  for mobile 1428+1400 by 1          -> pass
           60  from mobile ack 0 sack 1400-1428   -> pass
          310  for mobile 0+1400 by 1             -> pass
          320  for mobile 1428+1400 by 1          -> pass
          920  for mobile 0+1400 by 1             -> pass
          930  for mobile 1428+1400 by 1          -> pass
         2130  for mobile 0+1400 by 1             -> pass fragments 1006/1492",
    );
}

#[test]
fn copies_are_kept_beside() {
    let replay = Some(Replay::DEFAULT);
    Script::new(Config { replay, ..watching(Place::HomeAgent) }).run(
        "   0  path 1 rate 10000 rtt 100
            0  syn
           10  for mobile 0+1400 by 1             -> pass keep
          310  for mobile 0+1400 by 1             -> pass keep
          910  for mobile 0+1400 by 1             -> pass keep
         2110  for mobile 0+1400 by 1             -> pass keep fragments 1006/1492",
    );
}

/// No path of IPv6 carries less than 1280 bytes in one piece (RFC 8200 section 5), nor is a sender told less (RFC 8201 section 4).
#[test]
fn a_path_of_ipv6_is_taken_to_carry_1280_bytes() {
    // Outer datagrams of 1492 and of 1280 bytes, and one of 1320 around a packet of 1280.
    let mut script = Script::over(Over::Ipv6, watching(Place::HomeAgent));
    script.run(
        "   0  path 1
            0  syn
           10  for mobile 0+1380 by 1             -> pass
          310  for mobile 0+1380 by 1             -> pass
          910  for mobile 0+1380 by 1             -> pass
         2110  for mobile 0+1380 by 1             -> pass fragments 1280
         2200  for mobile 1380+1380 by 1          -> pass
         2500  for mobile 1380+1380 by 1          -> pass fragments 1280
         3200  for mobile 2760+1380 by 1          -> pass fragments 1280
         3200  > too-large 2760 mtu 1280 for peer
         4300  for mobile 4140+1208 by 1          -> pass fragments 1280
         4400  for mobile 5348+1168 by 1          -> pass
         4700  for mobile 5348+1168 by 1          -> pass
         5300  for mobile 5348+1168 by 1          -> pass
         6500  for mobile 5348+1168 by 1          -> pass
         8900  for mobile 5348+1168 by 1          -> pass",
    );
    assert_eq!(script.assistant.counters().black_holes, 1);
}

/// A tunnel of IPv6 over IPv4 (RFC 5555) leads over paths of IPv4, which may carry less than 1280 bytes.
#[test]
fn what_a_path_carries_in_any_case_is_of_the_outer_version() {
    for (care_of, longest) in [("192.0.2.9", 1_006), ("2001:db8:2::9", 1_280)] {
        let mut script = Script::over(Over::Ipv6, watching(Place::HomeAgent));
        script.care_of = Some(care_of.parse().unwrap());
        script.run(&format!(
            "0  syn
            10  for mobile 0+1380                -> pass
           310  for mobile 0+1380                -> pass
           910  for mobile 0+1380                -> pass
          2110  for mobile 0+1380                -> pass fragments {longest}"
        ));
    }
}
