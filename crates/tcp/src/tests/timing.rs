//! The retransmission timer and the round-trip times behind it.

use core::time::Duration;

use super::script::{Peer, plain, play};
use crate::{Config, Event, InitialWindow, RtoEstimator, Variant};

#[test]
fn the_timer_starts_with_the_first_segment_and_restarts_with_each_acknowledgement() {
    play(
        Config { initial_window: InitialWindow::Segments(4), ..plain() },
        &Peer::default(),
        "
      0  write 4000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
         = rto 300
    # RTTVAR 37.5, SRTT 100: 250 ms from here.
    100  < ack 1000
         = rto 250
    200  < ack 2000
    300  < ack 3000
    550  > 3000+1000 again
         = rto 500 backoff 1",
    );
}

#[test]
fn the_timer_stops_when_everything_is_acknowledged() {
    let script = play(
        plain(),
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
    100  < ack 1000
   9000  silence",
    );
    assert_eq!(script.connection.next_timeout(), None);
}

#[test]
fn back_off_doubles_up_to_the_maximum() {
    let config = Config { rto_min: Some(Duration::from_secs(1)), ..plain() };
    let script = play(
        config,
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
   1000  > 0+1000 again
   3000  > 0+1000 again
   7000  > 0+1000 again
  15000  > 0+1000 again
  31000  > 0+1000 again
  63000  > 0+1000 again
 123000  > 0+1000 again
 183000  > 0+1000 again",
    );
    let last = script.events.last().copied();
    let seq = script.connection.snapshot().snd_una;
    assert_eq!(last, Some(Event::Timeout { seq, backoff: 8, rto: Duration::from_secs(60) }));
}

#[test]
fn a_repeated_segment_gives_no_sample_and_the_back_off_stays() {
    // Karn's algorithm.
    play(
        plain(),
        &Peer::default(),
        "
      0  write 2000
      0  > 0+1000
    300  > 0+1000 again
         = backoff 1 rto 600
    310  < ack 1000
    310  > 1000+1000
         = backoff 1 rto 600 srtt 100
    # The acknowledgement of a segment sent once ends it.
    410  < ack 2000
         = backoff 0 rto 250 srtt 100",
    );
}

#[test]
fn a_timestamp_tells_which_copy_was_acknowledged() {
    let config = Config { timestamps: true, ..plain() };
    let peer = Peer { timestamps: true, ..Peer::default() };
    play(
        config,
        &peer,
        "
         = mss 988
      0  write 988
      0  > 0+988
    300  > 0+988 again
         = backoff 1
    # The echo (milliseconds since the run began, from 1) is that of the original.
    320  < ack 988 tsecr 10001
         = backoff 0 srtt 127.5",
    );
}

#[test]
fn one_segment_is_timed_at_a_time_and_every_acknowledgement_by_linux() {
    let text = |samples: &str| {
        [
            "
      0  write 3000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
    100  < ack 1000
    180  < ack 2000
    260  < ack 3000
            ",
            samples,
        ]
        .concat()
    };
    let config = Config { initial_window: InitialWindow::Segments(3), ..plain() };
    let script = play(config.clone(), &Peer::default(), &text("= srtt 100"));
    assert_eq!(script.connection.counters().rtt_samples, 2);
    let linux = Config { rto: RtoEstimator::Linux, rto_min: None, ..config };
    // 100, then 180 and 260 ms: 7/8 of the old, 1/8 of the new.
    let script = play(linux, &Peer::default(), &text("= srtt 128.75"));
    assert_eq!(script.connection.counters().rtt_samples, 4);
}

#[test]
fn a_lost_syn_makes_the_first_timeout_three_seconds() {
    let peer = Peer { rtt: Duration::from_millis(1_500), ..Peer::default() };
    let config = Config { rto_min: None, ..plain() };
    let script = super::script::Script::late(config, &peer);
    let state = script.connection.snapshot();
    assert_eq!((state.rto, state.srtt, state.backoff), (Duration::from_secs(3), None, 0));
    // And the window begins with one segment.
    assert_eq!(state.cwnd, 1_000);
}

#[test]
fn a_connection_without_answer_is_given_up() {
    let config = Config { max_retransmissions: 3, ..plain() };
    let script = play(
        config,
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
    300  > 0+1000 again
    900  > 0+1000 again
   2100  > 0+1000 again
   9000  silence
         = state CLOSED",
    );
    assert_eq!(script.events.last(), Some(&Event::GivenUp));
    assert_eq!(script.connection.next_timeout(), None);
}

#[test]
fn an_unreachable_destination_takes_one_back_off_back() {
    // RFC 6069 section 4.2 with RTO_BASE = 1 s.
    let config = Config { rto_min: Some(Duration::from_secs(1)), icmp_unreachable: true, ..plain() };
    let script = play(
        config,
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
   1000  > 0+1000 again
   3000  > 0+1000 again
   7000  > 0+1000 again
  15000  > 0+1000 again
         = backoff 4 rto 16000
    # A message about another segment says nothing.
  16000  unreachable 1000
         = backoff 4 rto 16000
    # One back-off less: the timer that began at 15 s runs out at 23 s.
  16000  unreachable 0
         = backoff 3 rto 8000
  23000  > 0+1000 again
         = backoff 4 rto 16000
    # 8 s have passed already: it is repeated at once.
  32000  unreachable 0
  32000  > 0+1000 again
         = backoff 4 rto 16000
  32010  < ack 1000
         = phase open",
    );
    assert_eq!(script.connection.counters().timeouts, 6);
}

#[test]
fn an_unreachable_destination_says_nothing_before_a_timeout_or_where_it_is_off() {
    for on in [true, false] {
        play(
            Config { icmp_unreachable: on, ..plain() },
            &Peer::default(),
            "
      0  write 1000
      0  > 0+1000
    100  unreachable 0
         = backoff 0 rto 300
    300  > 0+1000 again",
        );
    }
    play(
        plain(),
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
    300  > 0+1000 again
    400  unreachable 0
         = backoff 1 rto 600",
    );
}

#[test]
fn a_user_timeout_ends_the_connection() {
    // The handshake took 84 ms: RTO 252 ms. The first expiry at or after 3 s is the fourth.
    let config = Config { user_timeout: Some(Duration::from_secs(3)), ..plain() };
    let peer = Peer { rtt: Duration::from_millis(84), ..Peer::default() };
    let script = play(
        config,
        &peer,
        "
      0  write 1000
      0  > 0+1000
    252  > 0+1000 again
    756  > 0+1000 again
   1764  > 0+1000 again
   3779  = state ESTABLISHED
   3780  = state CLOSED",
    );
    assert_eq!(script.events.last(), Some(&Event::GivenUp));
}

#[test]
fn a_user_timeout_begins_anew_with_each_acknowledgement() {
    let config = Config {
        user_timeout: Some(Duration::from_secs(1)),
        initial_window: InitialWindow::Segments(2),
        ..plain()
    };
    play(
        config,
        &Peer::default(),
        "
      0  write 2000
      0  > 0+1000
      0  > 1000+1000
    290  < ack 1000
    # RTO 463.75 ms from there: the second expiry comes after more than a second without progress.
    753.75 > 1000+1000 again
   1681  = state ESTABLISHED
   1682  = state CLOSED",
    );
}

#[test]
fn bsd_fires_on_ticks_of_half_a_second() {
    let config = Config { rto: RtoEstimator::Bsd, rto_min: None, ..plain() };
    // The handshake crossed one tick, 9.5 s to 10 s: RTT 2, RTO 2 + 4 ticks.
    let peer = Peer { rtt: Duration::from_millis(100), ..Peer::default() };
    play(
        config,
        &peer,
        "
         = rto 3000
    400  write 1000
    400  > 0+1000
   3000  > 0+1000 again
         = rto 6000
   9000  > 0+1000 again",
    );
}

fn linux20() -> Config {
    Config {
        mss: 1_000,
        delayed_ack: crate::DelayedAck::Off,
        nagle: false,
        ..Config::from(crate::Profile::Linux20)
    }
}

#[test]
fn linux_2_0_begins_with_two_segments_and_three_seconds() {
    play(
        linux20(),
        &Peer::default(),
        "
         = cwnd 2 rto 3000
      0  write 9000
      0  > 0+1000
      0  > 1000+1000
    # Every segment an acknowledgement covers is a sample. 5/4 (50 + 4 * 25) + (50 + 4 * 25) / 4
    # with 10 ms to the jiffy, rounded down: 210 ms.
     50  < ack 1000
     50  > 2000+1000
     50  > 3000+1000
         = cwnd 3 srtt 50 rto 210
   # The timer belongs to the first segment outstanding: 1000, sent at 0.
    210  > 1000+1000 again
         = cwnd 1 ssthresh 1 backoff 1 rto 420
    630  > 1000+1000 again
         = cwnd 1 ssthresh 0 backoff 2 rto 840",
    );
}

#[test]
fn linux_2_0_sends_nothing_new_until_everything_outstanding_is_acknowledged() {
    let config = Config { initial_window: InitialWindow::Segments(5), ..linux20() };
    play(
        config,
        &Peer::default(),
        "
      0  write 20000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
         = cwnd 6
   3000  > 0+1000 again
         = cwnd 1 ssthresh 3 rto 6000 phase loss
    # The original's acknowledgement: slow start goes over what is outstanding, not on.
   3100  < ack 1000
   3100  > 1000+1000 again
   3100  > 2000+1000 again
         = cwnd 2 rto 6000 phase loss
    # No duplicate starts anything, and nothing new is sent.
   3200  < ack 1000
   3210  < ack 1000
   3220  < ack 1000
   3230  < ack 1000
    # The timer belongs to the segment at the front, sent again at 3100: it did not move.
   3300  < ack 2000
   3300  > 3000+1000 again
   3300  > 4000+1000 again
         = cwnd 3
   3400  < ack 4000
   3400  > 5000+1000 again
         = cwnd 4 backoff 1
    # Everything is acknowledged: new data flows, the back-off stays until a new segment gave a sample.
   3500  < ack 6000
   3500  > 6000+1000
   3500  > 7000+1000
   3500  > 8000+1000
   3500  > 9000+1000
         = cwnd 4 rto 6000 phase open
   3700  < ack 7000
   3700  > 10000+1000
         = rto 820 backoff 0",
    );
}

#[test]
fn linux_2_0_gives_an_overdue_segment_two_jiffies() {
    let config = Config { initial_window: InitialWindow::Segments(3), rto_initial: None, ..linux20() };
    play(
        config,
        &Peer::default(),
        "
      0  write 20000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
   3000  > 0+1000 again
   9000  > 0+1000 again
         = rto 12000 ssthresh 0
    # Segment 1000 was sent 15 s ago: overdue. It is sent again for the acknowledgement, and again 20 ms later.
  15000  < ack 1000
  15000  > 1000+1000 again
  15020  > 1000+1000 again
         = backoff 3 rto 24000 cwnd 1
    # Then its timer counts from the last time it was sent.
  39020  > 1000+1000 again",
    );
}

#[test]
fn linux_2_0_fast_retransmits_only_for_duplicates_with_data() {
    let text = "
      0  write 9000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
    100  < ack 0
    110  < ack 0
    120  < ack 0
    130  < ack 0";
    let config = Config { initial_window: InitialWindow::Segments(4), ..linux20() };
    let script = play(config.clone(), &Peer::default(), text);
    assert_eq!(script.connection.counters().fast_retransmits, 0);
    assert_eq!(script.connection.counters().duplicate_acks_received, 4);
    let text = text.replace("120  < ack 0", "120 < ack 0\n120 > 0+1000 again\n = cwnd 6 ssthresh 2");
    let text = text.replace("130  < ack 0", "130 < ack 0\n130 > 5000+1000\n130 > 6000+1000\n = cwnd 7");
    let text = text.replace(" = cwnd 6", "120 > 5000+1000\n = cwnd 6").replace("130 > 5000+1000\n", "");
    play(Config { linux20_fast_retransmit: true, ..config }, &Peer::default(), &text);
}

#[test]
fn any_sender_can_use_any_estimator() {
    for &variant in Variant::ALL {
        for &rto in RtoEstimator::ALL {
            let congestion = variant.own_congestion().unwrap_or_default();
            let config = Config { variant, congestion, rto, sack: true, rto_min: None, ..plain() };
            let script = play(
                config,
                &Peer { sack: true, ..Peer::default() },
                &if variant == Variant::Linux20 {
                    "0 write 2000\n0 > 0+1000\n0 > 1000+1000\n100 < ack 2000".into()
                } else {
                    alloc::string::String::from("0 write 1000\n0 > 0+1000\n100 < ack 1000")
                },
            );
            assert!(script.connection.snapshot().srtt.is_some(), "{variant} {rto}");
        }
    }
}
