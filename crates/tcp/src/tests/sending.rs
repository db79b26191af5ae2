//! What is sent and when, apart from losses: windows, small segments, probes, idle time, path MTU.

use alloc::string::String;
use core::fmt::Write;
use core::time::Duration;

use super::script::{Peer, Script, plain, play};
use crate::{Config, Event, IdleRestart, InitialWindow, Variant};

#[test]
fn slow_start_doubles_then_congestion_avoidance_adds_one() {
    play(
        Config { initial_ssthresh: 4_000, ..plain() },
        &Peer::default(),
        "
      0  write 100000
      0  > 0+1000
    100  < ack 1000
    100  > 1000+1000
    100  > 2000+1000
    200  < ack 2000
    200  > 3000+1000
    200  > 4000+1000
    201  < ack 3000
    201  > 5000+1000
    201  > 6000+1000
         = cwnd 4
    300  < ack 4000
    300  > 7000+1000
         = cwnd 4.25
    301  < ack 5000
    301  > 8000+1000
    302  < ack 6000
    302  > 9000+1000
    303  < ack 7000
    303  > 10000+1000
         = cwnd 4.92
    304  < ack 8000
    304  > 11000+1000
    304  > 12000+1000
         = cwnd 5.123",
    );
}

#[test]
fn the_peers_window_limits_what_is_sent() {
    play(
        Config { initial_window: InitialWindow::Segments(10), ..plain() },
        &Peer { window: 2_500, ..Peer::default() },
        "
      0  write 10000
      0  > 0+1000
      0  > 1000+1000
    # 500 bytes of window are left: less than half of what was ever offered, not worth a segment.
    100  < ack 1000
    100  > 2000+1000
    200  < ack 2000 win 4000
    200  > 3000+1000
    200  > 4000+1000
    200  > 5000+1000",
    );
}

#[test]
fn a_closed_window_is_probed_at_doubling_intervals_for_as_long_as_it_is_answered() {
    // RTO 255 ms: a handshake of 85 ms.
    let peer = Peer { rtt: Duration::from_millis(85), ..Peer::default() };
    let script = play(
        plain(),
        &peer,
        "
         = rto 255
      0  < ack 0 win 0
      0  write 1000
    255  > -1+0 probe
    256  < ack 0 win 0
    765  > -1+0 probe
    766  < ack 0 win 0
   1785  > -1+0 probe
   1786  < ack 0 win 0
   3825  > -1+0 probe
   3826  < ack 0 win 0
   6000  < ack 0 win 10000
   6000  > 0+1000",
    );
    assert_eq!(script.connection.counters().window_probes, 4);
    assert!(script.connection.is_established());
}

#[test]
fn a_closed_window_without_answer_ends_the_connection() {
    let config = Config { max_retransmissions: 2, ..plain() };
    let script = play(
        config,
        &Peer::default(),
        "
      0  < ack 0 win 0
      0  write 1000
    300  > -1+0 probe
    900  > -1+0 probe
   9000  silence
         = state CLOSED",
    );
    assert_eq!(script.events.last(), Some(&Event::GivenUp));
}

#[test]
fn a_window_too_small_for_a_segment_is_filled_by_the_probe() {
    play(
        plain(),
        &Peer::default(),
        "
      0  < ack 0 win 300
      0  write 1000
    300  > 0+300 probe
    350  < ack 300 win 5000
    350  > 300+700",
    );
}

#[test]
fn the_timer_also_repeats_into_a_closed_window() {
    play(
        plain(),
        &Peer::default(),
        "
      0  write 2000
      0  > 0+1000
    100  < ack 0 win 0
    300  > 0+1000 again",
    );
}

#[test]
fn small_segments_wait_for_everything_to_be_acknowledged() {
    let config = Config { nagle: true, initial_window: InitialWindow::Segments(10), ..plain() };
    play(
        config,
        &Peer::default(),
        "
      0  write 100
      0  > 0+100
      1  write 100
      2  write 100
    100  < ack 100
    100  > 100+200
    # A full segment goes at once; what is left over waits.
    101  write 1300
    101  > 300+1000
    200  < ack 300
    250  < ack 1300
    250  > 1300+300",
    );
}

#[test]
fn a_fin_lets_the_last_small_segment_go() {
    let config = Config { nagle: true, initial_window: InitialWindow::Segments(10), ..plain() };
    play(
        config,
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
      1  write 100
      2  close
      2  > 1000+100 fin
         = state FIN-WAIT-1
    100  < ack 1101
         = state FIN-WAIT-2
    200  < fin
    200  > ack 1
         = state TIME-WAIT
  60200  silence
         = state CLOSED",
    );
}

#[test]
fn after_silence_the_window_restarts() {
    let text = |end: &str| {
        [
            "
      0  write 8000
      0  > 0+1000
      0  > 1000+1000
     50  < ack 2000
     50  > 2000+1000
     50  > 3000+1000
     50  > 4000+1000
    100  < ack 5000
    100  > 5000+1000
    100  > 6000+1000
    100  > 7000+1000
    150  < ack 8000
         = cwnd 5
   9000  write 9000
   9000  > 8000+1000
   9000  > 9000+1000
            ",
            end,
        ]
        .concat()
    };
    let with = |idle_restart| Config { idle_restart, initial_window: InitialWindow::Segments(2), ..plain() };
    play(with(IdleRestart::InitialWindow), &Peer::default(), &text("= cwnd 2"));
    // More than one RTO passed: halved and halved again, down to the initial window.
    play(with(IdleRestart::Decay), &Peer::default(), &text("= cwnd 2"));
    let rest = "9000 > 10000+1000\n9000 > 11000+1000\n9000 > 12000+1000\n = cwnd 5";
    play(with(IdleRestart::Off), &Peer::default(), &text(rest));
}

#[test]
fn a_narrower_path_gets_smaller_segments_and_what_was_too_large_again() {
    for variant in [Variant::Reno, Variant::Sack] {
        let config = Config {
            variant,
            sack: variant == Variant::Sack,
            initial_window: InitialWindow::Segments(3),
            ..plain()
        };
        play(
            config,
            &Peer { sack: true, ..Peer::default() },
            "
      0  write 5000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
     50  mtu 640
     50  > 0+600 again
     50  > 600+400 again
     50  > 1000+600 again
     50  > 1600+400 again
     50  > 2000+600 again
     50  > 2600+400 again
         = mss 600
    # No sign of congestion: the window has still its 3000 bytes.
         = cwnd 5
    100  < ack 1600
    100  > 3000+600
    100  > 3600+600
    100  > 4200+600
    100  > 4800+200",
        );
    }
}

#[test]
fn limits_of_the_congestion_window_hold() {
    let mut script = Script::connected(
        Config { initial_window: InitialWindow::Segments(2), max_cwnd: 3_000, ..plain() },
        &Peer::default(),
    );
    let mut text = String::from("0 write 50000\n0 > 0+1000\n0 > 1000+1000\n");
    let mut next = 2_000;
    for step in 1..10 {
        let _ = writeln!(text, "{} < ack {}", step * 10, step * 1_000);
        while next < step * 1_000 + 3_000 {
            let _ = writeln!(text, "{} > {next}+1000", step * 10);
            next += 1_000;
        }
    }
    script.play(&text);
    script.play("= cwnd 3");
}

#[test]
fn a_reset_ends_the_connection_only_at_the_right_place() {
    let script = play(
        plain(),
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
    # Within the window but not exact: challenged (RFC 5961).
    100  < 500+0 rst
    100  > ack 0
         = state ESTABLISHED
    # Far outside: nothing.
    110  < 90000+0 rst
    120  < 0+0 rst
         = state CLOSED",
    );
    assert_eq!(script.events.last(), Some(&Event::Reset));
    assert_eq!(script.connection.next_timeout(), None);
}

#[test]
fn aborting_sends_a_reset() {
    let script = play(
        plain(),
        &Peer::default(),
        "
      0  write 3000
      0  > 0+1000
     10  abort
     10  > rst
         = state CLOSED
    # What arrives later is answered with a reset as well.
     20  < 0+10 ack 1000
     20  > rst",
    );
    assert_eq!(script.events.last(), Some(&Event::Closed));
}

#[test]
fn an_acknowledgement_of_something_never_sent_is_answered_and_ignored() {
    let script = play(
        plain(),
        &Peer::default(),
        "
      0  write 1000
      0  > 0+1000
    100  < ack 5000
    100  > ack 0
         = flight 1",
    );
    assert_eq!(script.connection.counters().dropped_ack_of_unsent, 1);
}
