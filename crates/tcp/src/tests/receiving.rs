//! The receiver: acknowledgements, SACK blocks, the advertised window, closing.

use super::script::{Peer, plain, play};
use crate::{Config, DelayedAck, Event};

fn delayed() -> Config {
    Config { delayed_ack: DelayedAck::RFC1122, ..plain() }
}

#[test]
fn every_second_segment_is_acknowledged_and_a_lone_one_by_the_timer() {
    let script = play(
        delayed(),
        &Peer::default(),
        "
      0  < 0+1000
      1  < 1000+1000
      1  > ack 2000
      2  < 2000+1000
    202  > ack 3000
         = received 3000",
    );
    assert_eq!(script.connection.counters().acks_sent, 3);
}

#[test]
fn a_held_acknowledgement_rides_on_data() {
    play(
        delayed(),
        &Peer::default(),
        "
      0  < 0+1000
     10  write 500
     10  > 0+500 ack 1000
    100  < ack 500
    500  silence",
    );
}

#[test]
fn disorder_and_what_ends_it_are_acknowledged_at_once() {
    let script = play(
        delayed(),
        &Peer::default(),
        "
      0  < 1000+1000
      0  > ack 0
      1  < 2000+1000
      1  > ack 0
      2  < 2000+1000
      2  > ack 0
      3  < 0+1000
      3  > ack 3000
         = received 3000
      4  < 0+1000
      4  > ack 3000",
    );
    let counters = script.connection.counters();
    assert_eq!((counters.out_of_order_segments_received, counters.duplicate_segments_received), (2, 2));
}

#[test]
fn a_duplicate_acknowledgement_goes_ahead_of_data_and_alone() {
    play(
        delayed(),
        &Peer::default(),
        "
      0  < 1000+1000
      0  > ack 0
     10  write 100
     10  > 0+100 ack 0
     20  < 2000+1000
     20  > ack 0",
    );
}

#[test]
fn holes_are_reported_with_the_latest_news_first() {
    let config = Config { sack: true, ..plain() };
    play(
        config,
        &Peer { sack: true, ..Peer::default() },
        "
      0  < 0+500
      0  > ack 500
      1  < 1000+500
      1  > ack 500 sack 1000-1500
      2  < 2000+500
      2  > ack 500 sack 2000-2500,1000-1500
      3  < 3000+500
      3  > ack 500 sack 3000-3500,2000-2500,1000-1500
      4  < 4000+500
      4  > ack 500 sack 4000-4500,3000-3500,2000-2500,1000-1500
      5  < 5000+500
      5  > ack 500 sack 5000-5500,4000-4500,3000-3500,2000-2500
      6  < 1500+500
      6  > ack 500 sack 1000-2500,5000-5500,4000-4500,3000-3500
      7  < 500+500
      7  > ack 2500 sack 5000-5500,4000-4500,3000-3500",
    );
}

#[test]
fn beside_timestamps_three_blocks_fit() {
    let config = Config { sack: true, timestamps: true, ..plain() };
    play(
        config,
        &Peer { sack: true, timestamps: true, ..Peer::default() },
        "
      0  < 1000+500
      0  > ack 0 sack 1000-1500
      0  < 2000+500
      0  > ack 0 sack 2000-2500,1000-1500
      0  < 3000+500
      0  > ack 0 sack 3000-3500,2000-2500,1000-1500
      0  < 4000+500
      0  > ack 0 sack 4000-4500,3000-3500,2000-2500",
    );
}

#[test]
fn sack_blocks_never_crowd_out_data() {
    let config = Config { sack: true, initial_window: crate::InitialWindow::Segments(3), ..plain() };
    play(
        config,
        &Peer { sack: true, ..Peer::default() },
        "
      0  < 1000+500
      0  > ack 0 sack 1000-1500
      1  write 1100
      1  > 0+1000
      1  > 1000+100 sack 1000-1500",
    );
}

#[test]
fn a_reader_that_stops_closes_the_window_and_reading_opens_it() {
    let config = Config { receive_window: 4_000, ..plain() };
    play(
        config,
        &Peer::default(),
        "
      0  auto-read off
      0  < 0+1000
      0  > ack 1000 win 3000
      1  < 1000+1000
      1  > ack 2000 win 2000
      2  < 2000+1000
      2  > ack 3000 win 1000
      3  < 3000+1000
      3  > ack 4000 win 0
    # A probe is answered, data beyond the window is not taken.
      4  < 3999+0
      4  > ack 4000 win 0
      5  < 4000+1000
      5  > ack 4000 win 0
         = received 4000
    # Reading a little is not worth an update; a segment's worth is.
      6  read 999
      7  read 1
      7  > ack 4000 win 1000
      8  read 3000
      8  > ack 4000 win 4000",
    );
}

#[test]
fn data_beyond_the_window_is_cut_off() {
    let config = Config { receive_window: 1_500, ..plain() };
    play(
        config,
        &Peer::default(),
        "
      0  auto-read off
      0  < 0+1000
      0  > ack 1000 win 500
      1  < 1000+1000
      1  > ack 1500 win 0
         = received 1500",
    );
}

#[test]
fn the_peer_closes_first() {
    let script = play(
        delayed(),
        &Peer::default(),
        "
      0  < 0+1000 fin
      0  > ack 1001
         = state CLOSE-WAIT received 1000
     10  write 500
     10  > 0+500
    100  < ack 500
    110  close
    110  > 500+0 fin
         = state LAST-ACK
    200  < ack 501
         = state CLOSED",
    );
    assert_eq!(script.events, [Event::Connected, Event::PeerClosed, Event::Closed]);
}

#[test]
fn a_fin_waits_for_what_is_missing_before_it() {
    let script = play(
        delayed(),
        &Peer::default(),
        "
      0  < 1000+500 fin
      0  > ack 0
         = state ESTABLISHED
      1  < 0+1000
      1  > ack 1501
         = state CLOSE-WAIT received 1500
    # Nothing follows a FIN.
      2  < 1501+10
      2  > ack 1501
         = received 1500",
    );
    assert_eq!(script.events, [Event::Connected, Event::PeerClosed]);
}

#[test]
fn both_close_at_once() {
    play(
        plain(),
        &Peer::default(),
        "
      0  close
      0  > 0+0 fin
         = state FIN-WAIT-1
     10  < fin ack 0
     10  > ack 1
         = state CLOSING
    100  < ack 1
         = state TIME-WAIT
    # The peer's FIN again: its acknowledgement was lost. The wait begins anew.
  30000  < 0+0 fin ack 1
  30000  > ack 1
  90000  silence
         = state CLOSED",
    );
}

#[test]
fn a_segment_with_an_old_timestamp_is_dropped_and_answered() {
    let config = Config { timestamps: true, ..plain() };
    let script = play(
        config,
        &Peer { timestamps: true, ..Peer::default() },
        "
      0  < 0+100 tsval 20000
      0  > ack 100 tsecr 20000
      1  < 100+100 tsval 19999
      1  > ack 100
         = received 100
      2  < 100+100 tsval 20001
      2  > ack 200 tsecr 20001
    # Not asked of a reset.
      3  < 200+0 rst tsval 1
         = state CLOSED",
    );
    assert_eq!(script.connection.counters().dropped_by_paws, 1);
}

#[test]
fn a_duplicate_with_an_old_timestamp_is_reported_as_one() {
    // As a Linux receiver does (`tcp_send_dupack`): on two ways, the copy that comes last may be older than what came since.
    let config = Config { timestamps: true, sack: true, dsack: true, ..plain() };
    let script = play(
        config,
        &Peer { timestamps: true, sack: true, ..Peer::default() },
        "
      0  < 0+100 tsval 20000
      0  > ack 100 tsecr 20000
      1  < 100+100 tsval 20001
      1  > ack 200 tsecr 20001
      2  < 0+100 tsval 20000
      2  > ack 200 sack 0-100
    # New data is dropped all the same, and is no duplicate.
      3  < 200+100 tsval 20000
      3  > ack 200",
    );
    assert_eq!(script.connection.counters().dropped_by_paws, 2);
}

#[test]
fn what_has_arrived_is_known_byte_by_byte() {
    let script = play(
        plain(),
        &Peer::default(),
        "
      0  < 0+100
      0  > ack 100
      0  < 200+100
      0  > ack 100",
    );
    let has = |offset: u32| script.connection.has_received(super::script::PEER_ISS.plus(1 + offset));
    assert!(has(0) && has(99) && !has(100) && !has(199) && has(200) && !has(300));
}

#[test]
fn the_window_in_data_counts_also_for_an_end_that_has_said_nothing_yet() {
    play(
        delayed(),
        &Peer::default(),
        "
      0  < 0+1000 ack 0 win 1000
      1  < 1000+1000 ack 0 win 1500
      1  > ack 2000
     10  write 3000
     10  > 0+1000 ack 2000
     20  < ack 1000 win 3000
     20  > 1000+1000 ack 2000
     20  > 2000+1000 ack 2000
     30  < ack 3000",
    );
}
