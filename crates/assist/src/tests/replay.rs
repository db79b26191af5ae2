//! Replay, and hold-last.
//!
//! A packet of these scripts is 1052 bytes, and 1092 with what a path adds: 8 ms at 1092 kbit/s, of which 4 packets fill a path
//! of 16 ms with two more.

use core::time::Duration;

use super::script::Script;
use crate::{Config, HoldLast, Limits, Place, Replay, Rest, Which};

fn home_agent(replay: Replay) -> Script {
    Script::new(Config { replay: Some(replay), ..Config::none(Place::HomeAgent) })
}

fn mobile_node() -> Script {
    Script::new(Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::MobileNode) })
}

#[test]
fn originals_precede_repetitions() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           900  path 2 lost
           900  > release 0+1000
           900  > release 1000+1000
           900  > release 0+1000 again         # its D-SACK says that nothing was lost",
    );
}

#[test]
fn a_repetition_stays_away_where_it_can_only_do_harm() {
    let mut without_sack = home_agent(Replay::DEFAULT);
    without_sack.run(
        "    0  syn plain
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           900  path 2 lost
           900  > release 0+1000
                = kept 1",
    );
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           900  path 2 rate 1092 rtt 100 lost
           900  > release 0+1000
                = kept 1",
    );
}

#[test]
fn an_original_that_the_receiver_would_refuse_is_left_out() {
    // The repetition was delivered in front of what was lost: TS.Recent is 300, and PAWS refuses 1000+1000 of 11 ms.
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           320  from mobile ack 1000 echo 300  -> pass
           330  for mobile 1000+1000 again     -> pass keep
           900  path 2 lost
           900  > release 1000+1000 again",
    );
}

#[test]
fn what_its_sender_repeats_in_smaller_segments_is_not_held_against_it() {
    // The new path is a tunnel, which refuses what is released, and its sender is told.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 10000 rtt 8
             0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           901  for mobile 0+980 again         -> pass keep
                = kept 1
           902  for mobile 980+980 again       -> pass keep
                = kept 2",
    );
}

#[test]
fn a_hole_whose_original_the_receiver_would_refuse_is_its_senders_to_fill() {
    // As before, but the acknowledgement was lost with the path, and says so only when the replay has begun.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 1092 rtt 16
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           905  from mobile ack 1000 echo 300  -> pass
           906  for mobile 1000+1000 again     -> pass keep
                = kept 1",
    );
}

#[test]
fn what_the_receiver_has_behind_a_hole_is_not_sent_again() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
            60  from mobile ack 0 sack 1000-2000 -> pass
           900  path 2 lost
           900  > release 0+1000
           900  > release 2000+1000",
    );
}

#[test]
fn what_a_receiver_without_sack_may_have_behind_a_hole_is_its_senders_to_send_again() {
    // The duplicate acknowledgement says that something has arrived behind 0+1000, but not what.
    home_agent(Replay::DEFAULT).run(
        "    0  syn plain
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
            60  from mobile ack 0              -> pass
           900  path 2 lost
           900  > release 0+1000
           950  from mobile ack 1000           -> pass
           960  for mobile 1000+1000 again     -> pass keep
           990  from mobile ack 3000           -> pass
                = kept 0",
    );
}

#[test]
fn without_sack_repetitions_of_the_next_hole_pass_while_the_old_path_may_still_deliver() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn plain
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
            60  from mobile ack 0              -> pass
            70  path 2
            80  from mobile ack 1000           -> pass
            81  for mobile 1000+1000 again     -> pass keep",
    );
}

#[test]
fn what_arrives_during_a_replay_waits_behind_it() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 1092 rtt 16
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           905  for mobile 3000+1000           -> hold
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 3000+1000            # four are out
           925  for mobile 4000+1000           -> pass keep",
    );
}

#[test]
fn what_was_held_follows_faster_and_faster() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            11  for mobile 1000+1000           -> pass keep
            12  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092/1132 rtt 16 lost
           900  > release 0+1000
           901  for mobile 3000+1000           -> hold
           901  for mobile 4000+1000           -> hold
           901  for mobile 5000+1000           -> hold
           901  for mobile 6000+1000           -> hold
           901  for mobile 7000+1000           -> hold
           908  > release 1000+1000
           916  > release 2000+1000            # the last that was owed
           924  > release 3000+1000            # half a round trip later: 3/2 of the rate
           929  > release 4000+1000
           933  > release 5000+1000
           937  > release 6000+1000
           940  > release 7000+1000",
    );
}

#[test]
fn no_more_than_a_bdp_is_out() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
             5  for mobile 4000+1000           -> pass keep
             6  for mobile 5000+1000           -> pass keep
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 3000+1000
           950  from mobile ack 1000           -> pass
           950  > release 4000+1000
           960  from mobile ack 2000           -> pass
           960  > release 5000+1000",
    );
}

#[test]
fn acknowledgements_that_stay_away_do_not_stop_a_replay() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
             5  for mobile 4000+1000           -> pass keep
             6  for mobile 5000+1000           -> pass keep
           900  path 2 rate 1092/1132 rtt 16 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 3000+1000
          1932  > release 4000+1000            # a second after the window was full
          1940  > release 5000+1000",
    );
}

#[test]
fn a_pace_that_was_found_stays_for_ten_round_trips() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
             5  for mobile 4000+1000           -> pass keep
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 3000+1000
           925  from mobile ack 1000 echo 1    -> pass
           932  from mobile ack 2000 echo 2    -> pass
           932  > release 4000+1000
           940  from mobile ack 3000 echo 3    -> pass
           948  from mobile ack 4000 echo 4    -> pass
           956  from mobile ack 5000 echo 5    -> pass
           970  for mobile 5000+1000           -> hold
           970  > release 5000+1000
          1300  for mobile 6000+1000           -> pass keep",
    );
}

#[test]
fn few_packets_that_fit_need_no_pace() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 100 lost
           900  > release 0+1000
           900  > release 1000+1000
           900  > release 2000+1000",
    );
}

#[test]
fn a_flow_that_was_measured_is_its_own_pace_on_an_unknown_path() {
    // 1052 bytes every 10 ms, acknowledged after 40; 14 packets are owed, of which the last ten need no pace.
    let mut script = alloc::string::String::from("0 path 1\n0 syn\n0 from mobile ack 0 -> pass\n");
    for packet in 0..34 {
        let at = 10 + 10 * packet;
        script += &alloc::format!("{at} for mobile {}+1000 -> pass keep\n", packet * 1000);
        if (4..24).contains(&packet) {
            script += &alloc::format!("{at} from mobile ack {} -> pass\n", (packet - 3) * 1000);
        }
    }
    script += "900 path 2 lost\n";
    for packet in 20..34 {
        // 40 bytes more than were measured: 10.38 ms, from one to the next; over IPv6 60 bytes more, 10.56 ms.
        let [at, over_ipv6] =
            [(1092, 1052), (1132, 1072)].map(|(takes, was)| 900 + (packet - 20).min(3) * takes * 10 / was);
        script += &alloc::format!("{at}/{over_ipv6} > release {}+1000\n", packet * 1000);
    }
    home_agent(Replay::DEFAULT).run(&script);
}

#[test]
fn flows_of_one_mobile_node_take_turns_at_the_pace_of_the_path() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             0  syn flow 2
             0  from mobile ack 0 flow 2       -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 0+1000 flow 2       -> pass keep
             4  for mobile 1000+1000 flow 2    -> pass keep
           900  path 2 rate 1092 rtt 16 lost
           900  > release 0+1000
           908  > release 0+1000 flow 2
           916  > release 1000+1000
           924  > release 1000+1000 flow 2",
    );
}

#[test]
fn of_what_would_wait_too_long_the_newest_goes() {
    let replay = Replay { wait: Duration::from_millis(40), ..Replay::DEFAULT };
    // 40 ms are 5460 bytes: five packets.
    home_agent(replay).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
             5  for mobile 4000+1000           -> pass keep
             6  for mobile 5000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
                = kept 5
           900  > release 0+1000
           901  for mobile 6000+1000           -> hold
           902  for mobile 7000+1000           -> drop queue-full
           908  > release 1000+1000
           916  > release 2000+1000
           950  from mobile ack 3000           -> pass
           950  > release 3000+1000
           958  > release 4000+1000
           966  > release 6000+1000",
    );
}

#[test]
fn the_rest_may_be_dropped_or_sent_at_once() {
    let script = |what: &str| {
        alloc::format!(
            "0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           {what}"
        )
    };
    home_agent(Replay { rest: Rest::Drop, ..Replay::DEFAULT }).run(&script(
        "900  > release 0+1000
              = kept 3
         908  > release 1000+1000
         916  > release 2000+1000",
    ));
    home_agent(Replay { rest: Rest::Burst, ..Replay::DEFAULT }).run(&script(
        "900  > release 0+1000
         900  > release 1000+1000
         900  > release 2000+1000
         900  > release 3000+1000",
    ));
}

#[test]
fn acknowledged_packets_are_forgotten_while_others_wait() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           904  from mobile ack 2000           -> pass
                = kept 1
           904  > release 2000+1000            # which now fits into the path
           950  from mobile ack 3000           -> pass
                = kept 0",
    );
}

#[test]
fn a_lost_path_loses_nothing_by_silence() {
    // Nobody says that the path is lost: it was silent for 500 ms with a round trip of 50.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            60  from mobile ack 1000           -> pass
            61  for mobile 1000+1000           -> pass keep
           600  path 2
           600  > release 1000+1000",
    );
}

#[test]
fn a_mobile_node_does_not_take_the_way_of_acknowledgements_over_the_new_path_for_silence() {
    // The home agent has sent them by the new path since 150 ms, and the mobile node hears that at 300.
    mobile_node().run(
        "    0  path 1 rate 1000 rtt 20
             0  syn
            10  for peer 0+1000                -> pass keep
            30  from peer ack 1000             -> pass
           130  for peer 1000+1000             -> pass keep
           140  for peer 2000+1000             -> pass keep
           300  path 2 rate 1000 rtt 300
           310  from peer ack 3000             -> pass
                = kept 0",
    );
}

#[test]
fn make_before_break_waits_a_round_trip() {
    // From the last progress on: 50 ms, and 40 for a delayed acknowledgement.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            60  from mobile ack 1000           -> pass
            61  for mobile 1000+1000           -> pass keep
            62  for mobile 2000+1000           -> pass keep
            63  for mobile 3000+1000           -> pass keep
            70  path 2 alive
            75  for mobile 4000+1000           -> pass keep
            99  from mobile ack 2000           -> pass
           120  for mobile 2000+1000 again     -> drop on-its-way
           189  > release 2000+1000
           189  > release 3000+1000
           210  from mobile ack 5000           -> pass
                = kept 0",
    );
}

#[test]
fn what_the_old_path_delivers_is_not_sent_again() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            60  from mobile ack 1000           -> pass
            61  for mobile 1000+1000           -> pass keep
            70  path 2 alive
           111  from mobile ack 2000           -> pass
                = kept 0
           900  wait",
    );
}

#[test]
fn slow_to_fast_does_not_wait() {
    // The old path has 2104 bytes to deliver, 1.75 s at 9.6 kbit/s.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 9 rtt 700
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            61  for mobile 1000+1000           -> pass keep
           100  path 2 rate 2000 rtt 10 alive
           100  > release 0+1000
           100  > release 1000+1000",
    );
}

#[test]
fn a_second_handover_replays_again() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           901  for mobile 3000+1000           -> hold
           908  > release 1000+1000
           910  path 3 rate 1092 rtt 8 lost
           910  > release 0+1000
           918  > release 1000+1000
           926  > release 2000+1000
           950  from mobile ack 1000           -> pass
           950  > release 3000+1000",
    );
}

#[test]
fn a_path_lost_in_a_replay_stops_it() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           904  down 2
           910  for mobile 3000+1000           -> hold
                = kept 4
          2000  up 2
          2000  > release 0+1000
          2008  > release 1000+1000
          2016  > release 2000+1000
          2050  from mobile ack 3000           -> pass
          2050  > release 3000+1000",
    );
}

#[test]
fn a_repetition_of_what_waits_is_swallowed() {
    let mut script = home_agent(Replay::DEFAULT);
    script.run(
        "    0  path 1 rate 10000 rtt 8
             0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           901  for mobile 0+1000 again        -> drop on-its-way
           902  for mobile 1000+1000 again     -> drop held-already
           908  > release 1000+1000
           909  for mobile 1000+1000 again     -> drop on-its-way
           916  > release 2000+1000
           917  for mobile 0+2000 again        -> drop on-its-way",
    );
    assert_eq!(script.assistant.counters().retransmissions_swallowed, 4);
}

#[test]
fn who_swallows_a_repetition_answers_for_it() {
    // 3156 bytes at 1092 kbit/s are 23.1 ms, and two round trips 16.
    let begin = "0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           ";
    let mut script = home_agent(Replay::DEFAULT);
    script.run(begin);
    script.run(
        "  938  for mobile 0+1000 again        -> drop on-its-way
           939  > release 0+1000
           940  for mobile 0+1000 again        -> drop on-its-way",
    );
    let mut later = home_agent(Replay::DEFAULT);
    later.run(begin);
    later.run("940  for mobile 0+1000 again        -> pass keep");
}

#[test]
fn a_repetition_of_what_a_hole_shows_to_be_lost_passes() {
    let begin = "0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 100 lost
           900  > release 0+1000
           900  > release 1000+1000
           900  > release 2000+1000
           ";
    let mut by_sack = home_agent(Replay::DEFAULT);
    by_sack.run(begin);
    by_sack.run(
        "  950  for mobile 0+1000 again        -> drop on-its-way
           960  from mobile ack 0 sack 1000-2000 -> pass
           961  for mobile 0+1000 again        -> pass keep",
    );
    let mut by_duplicates = home_agent(Replay::DEFAULT);
    by_duplicates.run(begin);
    by_duplicates.run(
        "  960  from mobile ack 0              -> pass
           961  from mobile ack 0              -> pass
           961  for mobile 0+1000 again        -> drop on-its-way
           962  from mobile ack 0              -> pass
           963  for mobile 0+1000 again        -> pass keep",
    );
}

#[test]
fn a_stale_hole_does_not_show_a_loss() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
            60  from mobile ack 0 sack 1000-2000 -> pass
           900  path 2 rate 1092 rtt 100 lost
           900  > release 0+1000
           900  > release 2000+1000
           950  from mobile ack 0 sack 1000-2000 -> pass
           960  for mobile 0+1000 again        -> drop on-its-way",
    );
}

#[test]
fn what_is_needed_while_others_wait_goes_again_in_front_of_them() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
             4  for mobile 3000+1000           -> pass keep
             5  for mobile 4000+1000           -> pass keep
           900  path 2 rate 1092/1132 rtt 8 lost
           900  > release 0+1000
           908  > release 1000+1000
           916  > release 2000+1000
           917  from mobile ack 0 sack 1000-2000 -> pass
           918  for mobile 0+1000 again        -> drop held-already
           924  > release 0+1000
           932  > release 3000+1000
           950  from mobile ack 3000           -> pass
           950  > release 4000+1000",
    );
}

#[test]
fn a_probe_of_the_windows_end_gets_its_answer_but_not_onto_a_slower_path() {
    let begin = "0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
           900  path 2 rate 1092 rtt 100 lost
           900  > release 0+1000
           900  > release 1000+1000
           ";
    let mut script = home_agent(Replay::DEFAULT);
    script.run(begin);
    script.run(
        "  910  for mobile 1000+1000 again     -> pass keep
           920  for mobile 1000+1000 again     -> drop on-its-way",
    );
    let mut slower = home_agent(Replay::DEFAULT);
    slower.run("0 path 1 rate 10000 rtt 10");
    slower.run(begin);
    slower.run("910  for mobile 1000+1000 again     -> drop on-its-way");
}

#[test]
fn a_keep_alive_does_not_overtake_what_waits() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           901  from peer ack 0 before 0       -> drop held-already
           902  from peer ack 0 before 3001    -> pass
           908  > release 1000+1000
           916  > release 2000+1000
           917  from peer ack 0 before 0       -> pass",
    );
}

#[test]
fn repetitions_pass_when_they_are_not_to_be_swallowed() {
    home_agent(Replay { swallow: false, ..Replay::DEFAULT }).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           900  path 2 rate 1092 rtt 8 lost
           900  > release 0+1000
           901  for mobile 0+1000 again        -> hold
           908  > release 1000+1000
           916  > release 2000+1000
           924  > release 0+1000 again
           950  from mobile ack 1000           -> pass",
    );
}

#[test]
fn a_blind_flow_follows_the_first_repetition() {
    // SND.UNA is 1000; the second repetition of a SACK sender does not move it.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass keep
            20  for mobile 1000+1000           -> pass keep
            30  for mobile 2000+1000           -> pass keep
            40  for mobile 3000+1000           -> pass keep
           300  for mobile 1000+1000 again     -> pass keep
                = kept 4
           310  for mobile 2000+1000 again     -> pass keep
                = kept 5
           900  path 2 lost
           900  > release 1000+1000
           900  > release 2000+1000
           900  > release 3000+1000
           900  > release 1000+1000 again
           900  > release 2000+1000 again",
    );
}

#[test]
fn a_probe_says_nothing_about_una() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000              -> pass keep
            20  for mobile 1000+1000           -> pass keep
           300  for mobile 1000+1000 again     -> pass keep
           600  for mobile 1000+1000 again     -> pass keep
                = kept 4
           900  path 2 lost
           900  > release 0+1000
           900  > release 1000+1000
           900  > release 1000+1000 again
           900  > release 1000+1000 again",
    );
}

#[test]
fn a_blind_flow_keeps_what_no_timeout_can_be_older_than() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
            10  for mobile 0+1000              -> pass keep
            20  for mobile 1000+1000           -> pass keep
          2000  for mobile 2000+1000           -> pass keep
                = kept 3
          3015  for mobile 3000+1000           -> pass keep
                = kept 3
          3025  for mobile 4000+1000           -> pass keep
                = kept 3
         20000  for mobile 5000+1000           -> pass keep
                = kept 2",
    );
}

#[test]
fn a_blind_flow_that_was_not_lost_waits_for_a_word_of_its_sender() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rtt 100
             0  syn
            10  for mobile 0+1000              -> pass keep
            20  for mobile 1000+1000           -> pass keep
            30  for mobile 2000+1000           -> pass keep
            40  path 2 rtt 100 alive
            60  for mobile 3000+1000           -> pass keep
           400  for mobile 1000+1000 again     -> drop held-already
           400  > release 1000+1000
           400  > release 2000+1000
           410  for mobile 1000+1000 again     -> drop on-its-way
           420  for mobile 1000+1000 again     -> pass keep  # nobody can see whether it was needed",
    );
}

#[test]
fn a_blind_flow_that_was_lost_sends_what_can_be_owed() {
    // Within two round trips of the last new data: from 30 ms on.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rtt 10
             0  syn
            10  for mobile 0+1000              -> pass keep
            29  for mobile 1000+1000           -> pass keep
            30  for mobile 2000+1000           -> pass keep
            50  for mobile 3000+1000           -> pass keep
           200  path 2 rtt 10
           200  > release 2000+1000
           200  > release 3000+1000",
    );
}

#[test]
fn what_a_blind_flow_has_been_sent_again_is_its_senders_to_repeat_at_the_next_handover() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rtt 10
             0  syn
            10  for mobile 0+1000              -> pass keep
            30  for mobile 1000+1000           -> pass keep
           200  path 2 lost rtt 10
           200  > release 0+1000
           200  > release 1000+1000
           205  for mobile 2000+1000           -> pass keep
           210  path 1 lost rtt 10
           210  > release 2000+1000
           212  for mobile 0+1000 again        -> pass keep",
    );
}

#[test]
fn acknowledgements_that_have_left_our_sight_are_not_waited_for() {
    let mut script = alloc::string::String::from(
        "0 path 1
         0 syn
         1 for mobile 0+1000 -> pass keep
         21 from mobile ack 1000 -> pass\n",
    );
    // They go another way from now on; the sender goes on.
    for packet in 1..100 {
        script += &alloc::format!("{} for mobile {}+1000 -> pass keep\n", 100 * packet, packet * 1000);
    }
    script += "= kept 30\n";
    home_agent(Replay::DEFAULT).run(&script);
}

#[test]
fn false_alarm_holds_nothing() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 1000 rtt 100
             0  syn
             0  from mobile ack 0              -> pass
            10  announced 500 rate 100 rtt 700
            20  for mobile 0+1000              -> pass keep
           600  for mobile 1000+1000           -> pass keep
           601  from mobile ack 2000           -> pass
                = kept 0
          2000  for mobile 2000+1000           -> pass keep",
    );
}

#[test]
fn a_registration_that_changes_nothing_replays_nothing() {
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 1000 rtt 100
             0  syn
             0  from mobile ack 0              -> pass
            20  for mobile 0+1000              -> pass keep
           900  path 1 rate 1000 rtt 100",
    );
}

#[test]
fn the_oldest_or_the_newest_are_kept_of_a_flow_that_is_full() {
    let oldest = Replay { packets: 2, ..Replay::DEFAULT };
    let script = "    0  syn
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep\n";
    let mut full = home_agent(oldest);
    full.run(script);
    full.run(
        "    3  for mobile 2000+1000           -> pass
                = kept 2",
    );
    let mut full = home_agent(Replay { keep: Which::Newest, bytes: 2_200, ..Replay::DEFAULT });
    full.run(script);
    full.run(
        "    3  for mobile 2000+1000           -> pass keep
                = kept 2
                = bytes 2104/2144
           900  path 2 lost
           900  > release 1000+1000
           900  > release 2000+1000",
    );
}

#[test]
fn copies_age() {
    let replay = Replay { age: Duration::from_secs(2), ..Replay::DEFAULT };
    home_agent(replay).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
          1000  for mobile 1000+1000           -> pass keep
          2001  wait
                = kept 1
          3000  wait
                = kept 0",
    );
}

#[test]
fn what_waits_for_a_path_that_does_not_come_ages_too() {
    let replay = Replay { age: Duration::from_secs(2), ..Replay::DEFAULT };
    home_agent(replay).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
           900  path 2 rate 1000 rtt 1 lost
           900  > release 0+1000
           901  down 2
           902  for mobile 2000+1000           -> hold
          2899  wait
                = kept 3
          2900  wait
                = kept 1
          3025  > drop 2000+1000 too-old
                = kept 0",
    );
}

#[test]
fn a_full_store_gives_up_the_least_recent_flow() {
    let limits = Limits { packets: 4, ..Limits::DEFAULT };
    let config = Config { limits, replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
    Script::new(config).run(
        "    0  syn
             0  syn flow 2
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 0+1000 flow 2       -> pass keep
             4  for mobile 1000+1000 flow 2    -> pass keep
             5  for mobile 2000+1000 flow 2    -> pass
                = kept 2
             6  for mobile 3000+1000 flow 2    -> pass keep
           900  path 2 lost
           900  > release 0+1000 flow 2
           900  > release 1000+1000 flow 2
           900  > release 3000+1000 flow 2",
    );
}

#[test]
fn what_is_held_goes_on_when_it_has_to_make_room_and_is_lost_with_its_path_only() {
    let limits = Limits { packets: 4, ..Limits::DEFAULT };
    let config = Config { limits, replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) };
    let begin = "0  syn
             0  from mobile ack 0              -> pass
             0  syn flow 2
             0  from mobile ack 0 flow 2       -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
           900  path 2 rate 1000 rtt 1 lost
           900  > release 0+1000
           901  for mobile 2000+1000           -> hold
           902  for mobile 0+1000 flow 2       -> pass keep\n";
    let mut script = Script::new(config.clone());
    script.run(begin);
    script.run(
        "  903  for mobile 1000+1000 flow 2    -> pass
           903  > release 1000+1000
           903  > release 2000+1000
                = kept 1",
    );
    let mut script = Script::new(config);
    script.run(begin);
    script.run(
        "  902  down 2
           903  for mobile 1000+1000 flow 2    -> pass
           903  > drop 2000+1000 queue-full
                = kept 1",
    );
}

#[test]
fn a_fin_is_kept_and_sent_again() {
    home_agent(Replay::DEFAULT).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000 fin          -> pass keep
           900  path 2 lost
           900  > release 0+1000
           950  from mobile ack 1000           -> pass
                = kept 1
           951  from mobile ack 1001           -> pass
                = kept 0",
    );
}

#[test]
fn late_copies_by_the_left_path_stop_at_the_mobile_node() {
    mobile_node().run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000 by 1         -> pass
            11  for mobile 1000+1000 by 1      -> pass
            15  from mobile ack 1000 echo 10   -> pass
           100  path 2
           110  for mobile 1000+1000 by 2 stamp 11 -> pass
           111  for mobile 2000+1000 by 2 stamp 12 -> pass
           112  for mobile 1000+1000 by 1 stamp 11 -> pass    # not acknowledged yet by the new path
           115  from mobile ack 3000 echo 12   -> pass
           120  for mobile 1000+1000 by 1 stamp 11 -> drop delivered-already
           121  for mobile 2000+1000 by 1 stamp 12 -> drop delivered-already
           122  for mobile 2000+1000 by 1 stamp 60 -> pass    # repeated on purpose
           123  for mobile 2000+1000 by 2 stamp 12 -> pass    # by the present path
           124  for mobile 2000+2000 by 1 stamp 12 -> pass    # has something new",
    );
}

#[test]
fn a_late_copy_of_what_its_sender_has_sent_again_tells_the_sender_so() {
    mobile_node().run(
        "    0  path 1
             0  syn
            10  for mobile 0+1000 by 1         -> pass
            15  from mobile ack 1000 echo 10   -> pass
           100  path 2
           110  for mobile 3000+1000 by 2 stamp 90 -> pass
           115  for mobile 1000+1000 by 2 stamp 12 -> pass    # a copy
           150  for mobile 2000+1000 by 2 stamp 140 -> pass   # its sender's
           155  from mobile ack 4000 echo 140  -> pass
           160  for mobile 1000+1000 by 1 stamp 12 -> drop delivered-already
           161  for mobile 2000+1000 by 1 stamp 13 -> pass",
    );
}

#[test]
fn hold_last_keeps_two_and_sends_them_at_once() {
    let hold = HoldLast::DEFAULT;
    Script::new(Config { hold_last: Some(hold), ..Config::none(Place::HomeAgent) }).run(
        "    0  syn
             0  from mobile ack 0              -> pass
             1  for mobile 0+1000              -> pass keep
             2  for mobile 1000+1000           -> pass keep
             3  for mobile 2000+1000           -> pass keep
           300  for mobile 0+1000 again        -> pass keep
                = kept 2
           900  path 2 rate 9 rtt 700 lost
           900  > release 2000+1000
           900  > release 0+1000 again
           901  for mobile 0+1000 again        -> pass keep
           902  for mobile 0+1000 again        -> pass keep",
    );
}

#[test]
fn the_last_acknowledgement_of_an_upload_is_sent_once_more() {
    Script::new(Config { replay: Some(Replay::DEFAULT), ..Config::none(Place::HomeAgent) }).run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
            10  for peer 0+1000               -> pass
            20  from peer ack 1000            -> pass
          1000  path 2 rate 10000 rtt 100 lost
          1000  > ack 1000 win 1000 for mobile
          2000  path 1 rate 10000 rtt 100 alive",
    );
}

/// RFC 5568: between the announcement on the new link and the registration the former access router takes what the mobile node sends.
#[test]
fn what_went_by_the_former_access_router_is_not_owed_when_the_home_agent_knows_the_new_path() {
    mobile_node().run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  from peer ack 0                -> pass
            10  for peer 0+1000                -> pass keep
            11  for peer 1000+1000             -> pass keep
            20  down 1
            50  handed-over 2 rate 10000 rtt 100
            50  initiated 1 2
            55  from peer ack 1000             -> pass         # the access routers had kept it
            60  for peer 2000+1000             -> pass keep
            70  for peer 1000+1000 again       -> pass keep    # nothing else will bring it
            90  registered 1 2 rate 10000 rtt 100
           160  from peer ack 3000             -> pass
                = kept 0",
    );
    // What nobody says anything of goes again when it should have been acknowledged.
    mobile_node().run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  from peer ack 0                -> pass
            10  for peer 0+1000                -> pass keep
            20  down 1
           400  handed-over 2 rate 10000 rtt 100
           410  registered 1 2 rate 10000 rtt 100
           540  > release 0+1000",
    );
    // Without such a tunnel what was sent meanwhile went nowhere.
    mobile_node().run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  from peer ack 0                -> pass
            10  for peer 0+1000                -> pass keep
            20  down 1
            60  for peer 1000+1000             -> pass keep
            90  registered 1 2 rate 10000 rtt 100
            90  > release 0+1000
            90  > release 1000+1000",
    );
}

#[test]
fn a_mobile_node_that_goes_back_to_the_link_it_is_registered_by_is_reached_there() {
    mobile_node().run(
        "    0  path 1 rate 10000 rtt 100
             0  syn
             0  from peer ack 0                -> pass
            10  for peer 0+1000                -> pass keep
            20  down 1
            50  handed-over 2 rate 10000 rtt 100
            60  down 2
            70  for peer 1000+1000             -> pass keep
            80  link-up 1
            80  > release 0+1000
            80  > release 1000+1000",
    );
}

/// The mobile node has said that the old path delivers, and each path has a copy of everything.
#[test]
fn nothing_is_owed_when_copies_begin_to_come_by_another_path_or_cease() {
    let mut script = home_agent(Replay::DEFAULT);
    script.run(
        "    0  path 1 rate 1000 rtt 100
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            20  path 1 rate 1000 rtt 100 beside 2 rate 1000 rtt 100 alive
          3000  path 2 rate 1000 rtt 100
          6000  wait
                = kept 1",
    );
    // Of a path that is lost and replaced everything is owed as ever, whoever keeps its binding.
    home_agent(Replay::DEFAULT).run(
        "    0  path 1 rate 1000 rtt 100
             0  syn
             0  from mobile ack 0              -> pass
            10  for mobile 0+1000              -> pass keep
            20  path 1 rate 1000 rtt 100 beside 2 rate 1000 rtt 100 lost
            20  > release 0+1000
          3000  path 2 rate 1000 rtt 100
          6000  wait",
    );
}
