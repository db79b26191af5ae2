//! RACK-TLP (RFC 8985) in the SACK sender: losses by time, and probes of a tail.

use super::script::{Peer, Script, plain, play};
use crate::{Config, InitialWindow, Variant};

fn config() -> Config {
    Config {
        variant: Variant::Sack,
        sack: true,
        rack: true,
        tail_loss_probe: true,
        initial_window: InitialWindow::Segments(4),
        ..plain()
    }
}

fn run(config: Config, text: &str) -> Script {
    play(config, &Peer { sack: true, ..Peer::default() }, text)
}

const FOUR_SEGMENTS: &str = "
      0  write 4000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
";

#[test]
fn one_later_segment_is_enough_when_a_quarter_of_a_round_trip_has_passed() {
    // Two duplicates would never start RFC 6675's recovery; the reordering window is 25 ms here.
    let script = run(
        config(),
        &[
            FOUR_SEGMENTS,
            "
    100  < ack 2000
    101  < ack 2000 sack 3000-4000
         = phase open
    # Sent at 0 with a round trip of 101 ms: lost at 126 ms.
    126  > 2000+1000 again
         = phase fast-recovery ssthresh 2
    226  < ack 4000
         = phase open",
        ]
        .concat(),
    );
    assert_eq!(script.connection.counters().timeouts, 0);
}

#[test]
fn three_later_segments_end_the_patience() {
    run(
        Config { tail_loss_probe: false, ..config() },
        &[
            FOUR_SEGMENTS,
            "
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-3000
    102  < ack 0 sack 1000-4000
    102  > 0+1000 again
         = phase fast-recovery",
        ]
        .concat(),
    );
}

#[test]
fn reordering_within_the_window_is_no_loss() {
    let script = run(
        Config { tail_loss_probe: false, ..config() },
        &[
            FOUR_SEGMENTS,
            "
    100  < ack 0 sack 1000-2000
    110  < ack 0 sack 1000-3000
    120  < ack 3000
    121  < ack 4000",
        ]
        .concat(),
    );
    assert_eq!(script.connection.counters().segments_retransmitted, 0);
}

#[test]
fn a_lost_retransmission_is_sent_again_without_a_timeout() {
    let script = run(
        Config { tail_loss_probe: false, initial_window: InitialWindow::Segments(6), ..config() },
        "
      0  write 9000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
    100  < ack 0 sack 1000-2000
    101  < ack 0 sack 1000-3000
    102  < ack 0 sack 1000-4000
    102  > 0+1000 again
    103  < ack 0 sack 1000-5000
    103  > 6000+1000
    104  < ack 0 sack 1000-6000
    104  > 7000+1000
    # What left after the repetition has come: that is lost as well.
    203  < ack 0 sack 1000-7000
    203  > 0+1000 again
    203  > 8000+1000
    204  < ack 0 sack 1000-8000
    303  < ack 9000
         = phase open",
    );
    assert_eq!(script.connection.counters().timeouts, 0);
}

#[test]
fn a_tail_is_probed_after_two_round_trips() {
    let config = Config { rto_min: Some(core::time::Duration::from_secs(1)), ..config() };
    let script = run(
        config,
        &[
            FOUR_SEGMENTS,
            "
    100  < ack 2000
    # SRTT 100 ms, two segments in flight: the probe repeats the last one 200 ms later.
    300  > 3000+1000 again
         = phase open
    # It tells that the one before is lost, too.
    400  < ack 2000 sack 3000-4000
    400  > 2000+1000 again
         = phase fast-recovery
    500  < ack 4000",
        ]
        .concat(),
    );
    assert_eq!(script.connection.counters().timeouts, 0);
}

#[test]
fn a_lone_segment_is_given_the_time_of_a_delayed_acknowledgement() {
    let config = Config { rto_min: Some(core::time::Duration::from_secs(1)), ..config() };
    let script = run(
        config,
        "
      0  write 1000
      0  > 0+1000
    400  > 0+1000 again
    # The probe repaired the loss: that was congestion.
    500  < ack 1000
         = phase open",
    );
    assert_eq!(script.connection.counters().timeouts, 0);
}

#[test]
fn a_probe_prefers_new_data() {
    let config = Config { rto_min: Some(core::time::Duration::from_secs(1)), ..config() };
    run(
        config,
        "
      0  write 5000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    200  > 4000+1000
    300  < ack 5000
         = phase open",
    );
}

#[test]
fn where_the_timeout_is_sooner_the_probe_leaves_in_its_place() {
    // An RTO of 300 ms; PTO would be 400 ms for a lone segment.
    let script = run(
        config(),
        "
      0  write 1000
      0  > 0+1000
    300  > 0+1000 again
         = phase open
    # Once only: then the timeout, an RTO after the probe and not backed off by it.
    600  > 0+1000 again
         = phase loss ssthresh 2",
    );
    assert_eq!(script.connection.counters().timeouts, 1);
}

#[test]
fn a_duplicate_does_not_put_the_probe_off() {
    let config = Config { rto_min: Some(core::time::Duration::from_secs(1)), ..config() };
    run(
        config,
        "
      0  write 4000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    100  < ack 2000
    150  < ack 2000
    # SRTT is 100 ms: two round trips after the acknowledgement that advanced.
    300  > 3000+1000 again",
    );
}

#[test]
fn a_probe_that_repaired_the_only_loss_is_congestion_once_more_is_acknowledged() {
    let config = Config { rto_min: Some(core::time::Duration::from_secs(1)), ..config() };
    let script = run(
        config,
        "
      0  write 4000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    100  < ack 2000
         = cwnd 5
    300  > 3000+1000 again
    # No duplicate: the original may have been late, or the probe was needed.
    400  < ack 4000
         = cwnd 6
    500  write 1000
    500  > 4000+1000
    # No report that the last segment came twice.
    600  < ack 5000
         = cwnd 2 ssthresh 2",
    );
    assert_eq!(script.connection.counters().losses_repaired_by_probes, 1);
}
