//! Loss recovery, one script a mechanism.

use super::script::{Peer, plain, play};
use crate::{Config, InitialWindow, Variant};

fn config(variant: Variant) -> Config {
    Config { variant, sack: variant == Variant::Sack, initial_window: InitialWindow::Segments(10), ..plain() }
}

fn peer() -> Peer {
    Peer { sack: true, ..Peer::default() }
}

/// Ten segments leave, the first is lost.
const TEN_SEGMENTS: &str = "
      0  write 30000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
      0  > 6000+1000
      0  > 7000+1000
      0  > 8000+1000
      0  > 9000+1000
";

fn after_ten_segments(variant: Variant, text: &str) {
    play(config(variant), &peer(), &[TEN_SEGMENTS, text].concat());
}

#[test]
fn tahoe_starts_over_from_the_hole() {
    after_ten_segments(
        Variant::Tahoe,
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
         = cwnd 1 ssthresh 5
    # More duplicates change nothing.
    103  < ack 0
    104  < ack 0
    # The retransmission fills the hole; slow start goes on with what follows.
    202  < ack 10000
    202  > 10000+1000
    202  > 11000+1000
         = cwnd 2 ssthresh 5
    302  < ack 11000
    302  > 12000+1000
    302  > 13000+1000
         = cwnd 3",
    );
}

#[test]
fn tahoe_sends_everything_after_the_hole_again() {
    after_ten_segments(
        Variant::Tahoe,
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
    # Another one was lost: go-back-N repeats 2000 as well, though it had arrived.
    202  < ack 1000
    202  > 1000+1000 again
    202  > 2000+1000 again
    # What the acknowledgement covers is skipped.
    302  < ack 10000
    302  > 10000+1000
    302  > 11000+1000
    302  > 12000+1000",
    );
}

#[test]
fn reno_inflates_and_deflates_its_window() {
    after_ten_segments(
        Variant::Reno,
        "
    100  < ack 0
    101  < ack 0
         = cwnd 10
    102  < ack 0
    102  > 0+1000 again
         = cwnd 8 ssthresh 5 phase fast-recovery
    103  < ack 0
    104  < ack 0
         = cwnd 10
    105  < ack 0
    105  > 10000+1000
    106  < ack 0
    106  > 11000+1000
         = cwnd 12
    202  < ack 10000
    202  > 12000+1000
    202  > 13000+1000
    202  > 14000+1000
         = cwnd 5 ssthresh 5 phase open",
    );
}

#[test]
fn reno_leaves_recovery_with_the_first_new_acknowledgement_and_halves_twice() {
    after_ten_segments(
        Variant::Reno,
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
    103  < ack 0
    104  < ack 0
    105  < ack 0
    105  > 10000+1000
    106  < ack 0
    106  > 11000+1000
    # Segment 4000 was lost, too.
    202  < ack 4000
         = cwnd 5 ssthresh 5 phase open
    205  < ack 4000
    206  < ack 4000
    207  < ack 4000
    207  > 4000+1000 again
         = ssthresh 2.5 cwnd 5.5",
    );
}

#[test]
fn newreno_repairs_one_hole_for_each_partial_acknowledgement() {
    after_ten_segments(
        Variant::NewReno,
        "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
    103  < ack 0
    104  < ack 0
    105  < ack 0
    105  > 10000+1000
    106  < ack 0
    106  > 11000+1000
         = cwnd 12
    # Partial: 4000 is missing. The window shrinks by what was acknowledged, less one segment.
    202  < ack 4000
    202  > 4000+1000 again
    202  > 12000+1000
         = cwnd 9 phase fast-recovery
    302  < ack 12000
    302  > 13000+1000
         = cwnd 2 ssthresh 5 phase open",
    );
}

#[test]
fn newreno_without_the_guard_leaves_recovery_with_the_threshold() {
    let config = Config { burst_guard: false, ..config(Variant::NewReno) };
    play(
        config,
        &peer(),
        &[
            TEN_SEGMENTS,
            "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
    202  < ack 10000
    202  > 10000+1000
    202  > 11000+1000
    202  > 12000+1000
    202  > 13000+1000
    202  > 14000+1000
         = cwnd 5 phase open",
        ]
        .concat(),
    );
}

#[test]
fn an_impatient_newreno_lets_the_timer_run_from_the_first_partial_acknowledgement() {
    // SRTT 100, RTTVAR 50: RTO 300 ms from the handshake.
    let text = |end: &str| {
        [
            TEN_SEGMENTS,
            "
    100  < ack 0
    101  < ack 0
    102  < ack 0
    102  > 0+1000 again
    202  < ack 1000
    202  > 1000+1000 again
    302  < ack 2000
    302  > 2000+1000 again
    402  < ack 3000
    402  > 3000+1000 again
    402  > 10000+1000
            ",
            end,
        ]
        .concat()
    };
    play(config(Variant::NewReno), &peer(), &text("502  > 3000+1000 again\n = cwnd 1 phase loss"));
    let steady =
        Config { partial_ack_timer: crate::PartialAckTimer::SlowButSteady, ..config(Variant::NewReno) };
    play(steady, &peer(), &text("502 silence\n502 < ack 4000\n502 > 4000+1000 again\n502 > 11000+1000"));
}

#[test]
fn careful_senders_ignore_duplicates_of_what_was_sent_before_a_timeout() {
    let text = |end: &str| {
        [
            TEN_SEGMENTS,
            "
    # Everything is late; the timer runs out and the first segment goes out again.
    300  > 0+1000 again
         = cwnd 1 ssthresh 5 phase loss backoff 1
    # The originals arrive, then the copy: an acknowledgement for all ten, and three duplicates.
    400  < ack 1000
    400  > 1000+1000 again
    400  > 2000+1000 again
    410  < ack 10000
    410  > 10000+1000
    410  > 11000+1000
    410  > 12000+1000
    420  < ack 10000
    421  < ack 10000
    422  < ack 10000
            ",
            end,
        ]
        .concat()
    };
    play(config(Variant::NewReno), &peer(), &text("430 silence\n = cwnd 3 phase open"));
    let careless = Config { careful: false, ..config(Variant::NewReno) };
    play(
        careless,
        &peer(),
        &text("422 > 10000+1000 again\n422 > 13000+1000\n422 > 14000+1000\n = phase fast-recovery"),
    );
}

#[test]
fn limited_transmit_sends_a_new_segment_for_each_of_the_first_two_duplicates() {
    let config = Config { limited_transmit: true, ..config(Variant::NewReno) };
    play(
        config,
        &peer(),
        &[
            TEN_SEGMENTS,
            "
    100  < ack 0
    100  > 10000+1000
         = cwnd 10
    101  < ack 0
    101  > 11000+1000
         = cwnd 10
    102  < ack 0
    102  > 0+1000 again
    # The two do not count when the window is halved.
         = cwnd 8 ssthresh 5",
        ]
        .concat(),
    );
}

#[test]
fn a_changed_window_is_no_duplicate() {
    after_ten_segments(
        Variant::Reno,
        "
    100  < ack 0 win 60000
    101  < ack 0 win 60001
    102  < ack 0 win 60002
    103  < ack 0 win 60003
         = cwnd 10",
    );
}

#[test]
fn sack_sends_what_the_pipe_leaves_room_for() {
    after_ten_segments(
        Variant::Sack,
        "
    # Segments 0, 3000 and 4000 are lost.
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-3000
    102  < ack 0 sack 5000-6000,1000-3000
    102  > 0+1000 again
         = cwnd 5 ssthresh 5 phase fast-recovery flight 7
    103  < ack 0 sack 5000-7000,1000-3000
    # More than two segments above 3000 and 4000 are sacked now: lost. The pipe falls to 3.
    104  < ack 0 sack 5000-8000,1000-3000
    104  > 3000+1000 again
    104  > 4000+1000 again
         = flight 5
    105  < ack 0 sack 5000-9000,1000-3000
    105  > 10000+1000
    106  < ack 0 sack 5000-10000,1000-3000
    106  > 11000+1000
    202  < ack 3000 sack 5000-10000
    202  > 12000+1000
    204  < ack 4000 sack 5000-10000
    204  > 13000+1000
    205  < ack 10000
    205  > 14000+1000
         = cwnd 5 phase open flight 5",
    );
}

#[test]
fn sack_recovers_by_octets_when_fewer_acknowledgements_come() {
    // One acknowledgement that sacks three segments is enough (IsLost), two discontiguous ones are not.
    after_ten_segments(
        Variant::Sack,
        "
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 3000-4000,1000-2000
    102  < ack 0 sack 3000-6000,1000-2000
    102  > 0+1000 again
         = phase fast-recovery",
    );
    after_ten_segments(
        Variant::Sack,
        "
    100  < ack 0 sack 1000-4000
    100  > 0+1000 again
         = phase fast-recovery",
    );
}

#[test]
fn an_acknowledgement_without_news_is_no_duplicate_with_sack() {
    after_ten_segments(
        Variant::Sack,
        "
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-2000
    102  < ack 0 sack 1000-2000
    103  < ack 0
         = phase open cwnd 10",
    );
}

#[test]
fn sack_rescues_the_last_segment_once() {
    // Nothing new to send, the last segment and its predecessor are lost as well.
    play(
        config(Variant::Sack),
        &peer(),
        "
      0  write 6000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
    100  < ack 0 sack 1000-4000
    100  > 0+1000 again
    # Not before the first retransmission was answered.
    200  < ack 4000
    200  > 5000+1000 again
         = phase fast-recovery
    # Something above 4000 is known now; with nothing new to send it goes again before it is lost for sure.
    300  < ack 4000 sack 5000-6000
    300  > 4000+1000 again
    310  < ack 4000 sack 5000-6000",
    );
}

#[test]
fn without_the_rescue_the_tail_waits_for_news_of_it_or_for_the_timer() {
    play(
        Config { rescue_retransmission: false, ..config(Variant::Sack) },
        &peer(),
        "
      0  write 6000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
    100  < ack 0 sack 1000-4000
    100  > 0+1000 again
    200  < ack 4000
    200  silence
         = phase fast-recovery
    # Something above 4000 is known now: rule 3.
    300  < ack 4000 sack 5000-6000
    300  > 4000+1000 again
    400  < ack 6000",
    );
}

#[test]
fn after_a_timeout_sack_fills_the_holes_reported_since() {
    after_ten_segments(
        Variant::Sack,
        "
    100  < ack 0 sack 1000-2000
    300  > 0+1000 again
         = cwnd 1 phase loss flight 1
    # The receiver reports again what it holds; only the holes are sent.
    400  < ack 2000 sack 3000-4000,6000-10000
    400  > 2000+1000 again
    400  > 4000+1000 again
    500  < ack 4000 sack 6000-10000
    500  > 5000+1000 again
    500  > 10000+1000
    510  < ack 5000 sack 6000-10000
    510  > 11000+1000
    510  > 12000+1000
    600  < ack 10000
    600  > 13000+1000
    600  > 14000+1000
         = phase open cwnd 5",
    );
}

#[test]
fn the_threshold_is_held_when_the_timer_repeats_a_segment_again() {
    after_ten_segments(
        Variant::Reno,
        "
    300  > 0+1000 again
         = cwnd 1 ssthresh 5 rto 600 backoff 1
    900  > 0+1000 again
         = cwnd 1 ssthresh 5 rto 1200 backoff 2",
    );
}

#[test]
fn without_sack_from_the_peer_the_sender_is_newreno() {
    let script = play(config(Variant::Sack), &Peer::default(), TEN_SEGMENTS);
    assert_eq!(script.connection.variant(), Variant::NewReno);
}
