//! Vegas: what waits in queues decides, and the clock is looked at before the third duplicate.
//!
//! The handshake takes 100 ms: the shortest round trip to begin with, and a fine-grained timeout of 150 ms.

use core::time::Duration;

use super::script::{Peer, Script, plain, play};
use crate::{Config, CongestionControl, InitialWindow, Variant};

fn vegas(segments: u32) -> Config {
    Config {
        variant: Variant::Vegas,
        congestion: CongestionControl::Vegas,
        initial_window: InitialWindow::Segments(segments),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    }
}

/// Ten segments, in congestion avoidance from the beginning.
fn ten_segments(text: &str) -> Script {
    let config = Config { initial_ssthresh: 2_000, ..vegas(10) };
    let sent: alloc::string::String =
        (0..10).map(|number| alloc::format!("0 > {}+1000\n", number * 1_000)).collect();
    play(config, &Peer::default(), &["0 write 100000\n", &sent, text].concat())
}

#[test]
fn the_window_doubles_every_other_round_trip() {
    play(
        vegas(1),
        &Peer::default(),
        "
      0  write 100000
      0  > 0+1000
    100  < ack 1000
         = cwnd 2
    100  > 1000+1000
    100  > 2000+1000
    # A round trip to see what came of it.
    200  < ack 2000
         = cwnd 2
    200  > 3000+1000
    200  < ack 3000
         = cwnd 2
    200  > 4000+1000
    300  < ack 4000
         = cwnd 3
    300  > 5000+1000
    300  > 6000+1000
    300  < ack 5000
         = cwnd 4
    300  > 7000+1000
    300  > 8000+1000
        ",
    );
}

#[test]
fn slow_start_ends_when_more_than_one_segment_waits() {
    let script = play(
        vegas(2),
        &Peer::default(),
        "
      0  write 100000
      0  > 0+1000
      0  > 1000+1000
    # Four times the handshake's round trip: of two segments one and a half wait.
    400  < ack 1000
         = cwnd 2 ssthresh 2
    400  > 2000+1000
        ",
    );
    assert_eq!(script.connection.counters().segments_retransmitted, 0);
}

#[test]
fn a_window_that_fills_no_queue_grows_by_a_segment_a_round_trip() {
    ten_segments(
        "
    100  < ack 1000
         = cwnd 10.1
    100  > 10000+1000
    100  < ack 2000
         = cwnd 10.2
    100  > 11000+1000
        ",
    );
}

#[test]
fn a_window_with_four_segments_in_queues_shrinks_and_one_with_two_stays() {
    // 10 * (1 - 100/200) = 5 wait; 10 * (1 - 100/125) = 2.
    ten_segments("200  < ack 1000\n = cwnd 9\n 200 silence");
    ten_segments("125  < ack 1000\n = cwnd 10\n 125  > 10000+1000");
}

#[test]
fn the_first_duplicate_of_an_overdue_segment_repeats_it() {
    ten_segments(
        "
    160  < ack 0
    160  > 0+1000 again
    # Three quarters of ten segments are eight, and the duplicate.
         = cwnd 9 phase fast-recovery backoff 1
        ",
    );
    // 140 ms after it left the first duplicates say nothing yet, the third does.
    ten_segments(
        "
    140  < ack 0
    140  < ack 0
         = cwnd 10 phase open
    140  < ack 0
    140  > 0+1000 again
    140  > 10000+1000
         = cwnd 11 phase fast-recovery
        ",
    );
}

#[test]
fn the_first_acknowledgements_after_a_retransmission_look_at_the_clock() {
    ten_segments(
        "
    160  < ack 0
    160  > 0+1000 again
    # No duplicate tells of the second loss; its age does. The window was cut for both already, and loses one
    # segment more because a round trip of 260 ms means queues.
    260  < ack 1000
    260  > 1000+1000 again
         = cwnd 8
    # The third segment is not missing.
    360  < ack 10000
    360  > 10000+1000
    360  > 11000+1000
    360  > 12000+1000
    360  > 13000+1000
    360  > 14000+1000
    360  > 15000+1000
    360  > 16000+1000
    360  > 17000+1000
         = phase open
        ",
    );
}

#[test]
fn a_window_is_cut_once_for_what_was_sent_before_and_halved_for_a_segment_lost_again() {
    ten_segments(
        "
    160  < ack 0
    160  > 0+1000 again
         = cwnd 9
    260  < ack 1000
    260  > 1000+1000 again
         = cwnd 8
    # The fine-grained timeout has grown by an eighth, to 168.75 ms: the copy of 260 ms is overdue.
    430  < ack 1000
    430  > 1000+1000 again
    # Half of eight, and four duplicates.
         = cwnd 8
    # The next copy left when the window was cut: not again.
    770  < ack 1000
    770  > 1000+1000 again
         = cwnd 8
        ",
    );
}

#[test]
fn a_timeout_begins_with_two_segments() {
    ten_segments(
        "
   1000  > 0+1000 again
   1000  > 1000+1000 again
         = cwnd 2 ssthresh 5 phase loss backoff 1
   1100  < ack 10000
         = phase open cwnd 3
   1100  > 10000+1000
   1100  > 11000+1000
   1100  > 12000+1000
        ",
    );
}

#[test]
fn duplicates_of_what_was_sent_before_a_timeout_start_nothing() {
    ten_segments(
        "
   1000  > 0+1000 again
   1000  > 1000+1000 again
   1050  < ack 0
   1050  < ack 0
   1050  < ack 0
   1050  silence
         = cwnd 2 phase loss
        ",
    );
}
