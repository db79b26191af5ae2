//! Recoveries that were not called for: how they are found out, and what is taken back.

use careof_base::Instant;

use super::script::{ISS, Peer, Script, plain, play};
use crate::recovery::eifel_detection::Cause;
use crate::recovery::eifel_response::{self, Found};
use crate::{Config, InitialWindow, Variant};

fn config(variant: Variant) -> Config {
    Config {
        variant,
        sack: variant == Variant::Sack,
        initial_window: InitialWindow::Segments(4),
        initial_ssthresh: 1 << 20,
        ..plain()
    }
}

fn sacking() -> Peer {
    Peer { sack: true, ..Peer::default() }
}

/// Four segments leave, and no acknowledgement comes for an RTO (of 300 ms).
const FOUR_SEGMENTS: &str = "
      0  write 30000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    300  > 0+1000 again
         = cwnd 1 ssthresh 2 phase loss
";

fn after_a_timeout(config: Config, peer: &Peer, text: &str) -> Script {
    play(config, peer, &[FOUR_SEGMENTS, text].concat())
}

#[test]
fn new_data_after_a_timeout_shows_that_nothing_was_lost() {
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let config = Config { frto: true, ..config(variant) };
        let script = after_a_timeout(
            config,
            &sacking(),
            "
        # RFC 5682 step 2b: the first acknowledgement advances, so two new segments leave before any old one.
        350  < ack 1000
        350  > 4000+1000
        350  > 5000+1000
             = phase loss
        # Step 3b: what is acknowledged now was sent before the timeout and not repeated.
        351  < ack 2000
             = phase open
        # Nothing else is repeated; the conventional reduction stays.
        352  < ack 3000
        353  < ack 4000
        353  > 6000+1000",
        );
        assert_eq!(script.connection.counters().spurious_timeouts, 1, "{variant}");
        assert_eq!(script.connection.counters().segments_retransmitted, 1, "{variant}");
    }
}

#[test]
fn a_duplicate_of_the_new_data_shows_that_something_was_lost() {
    for variant in [Variant::Reno, Variant::NewReno] {
        after_a_timeout(
            Config { frto: true, ..config(variant) },
            &sacking(),
            "
        400  < ack 1000
        400  > 4000+1000
        400  > 5000+1000
        # Step 3a: slow start with three segments, from what is not acknowledged.
        500  < ack 1000
             = cwnd 3
        500  > 1000+1000 again
        500  > 2000+1000 again
        500  > 3000+1000 again",
        );
    }
    let script = after_a_timeout(
        Config { frto: true, ..config(Variant::Sack) },
        &sacking(),
        "
        400  < ack 1000
        400  > 4000+1000
        400  > 5000+1000
        500  < ack 1000 sack 4000-5000
             = cwnd 3
        500  > 1000+1000 again
        500  > 2000+1000 again",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 0);
}

#[test]
fn a_timeout_that_repairs_everything_at_once_is_conventional() {
    for variant in [Variant::NewReno, Variant::Sack] {
        after_a_timeout(
            Config { frto: true, ..config(variant) },
            &sacking(),
            "
        400  < ack 4000
             = cwnd 2
        400  > 4000+1000
        400  > 5000+1000",
        );
        // A duplicate first: section 2 gives up at once; section 3 goes on waiting.
        after_a_timeout(
            Config { frto: true, ..config(Variant::NewReno) },
            &sacking(),
            "
        399  < ack 0
        400  < ack 1000
             = cwnd 2
        400  > 1000+1000 again
        400  > 2000+1000 again",
        );
    }
}

#[test]
fn with_sack_an_old_segment_may_also_be_reported_selectively() {
    let script = after_a_timeout(
        Config { frto: true, ..config(Variant::Sack) },
        &sacking(),
        "
    # Step 2: duplicates only fill the scoreboard.
    330  < ack 0 sack 2000-3000
    350  < ack 1000 sack 2000-3000
    350  > 4000+1000
    350  > 5000+1000
    # Step 3b: the third segment was never repeated.
    351  < ack 1000 sack 2000-4000
         = phase open",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 1);
}

#[test]
fn without_new_data_the_repair_is_conventional() {
    play(
        Config { frto: true, ..config(Variant::NewReno) },
        &Peer::default(),
        "
      0  write 4000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    300  > 0+1000 again
    350  < ack 1000
    350  > 1000+1000 again
    350  > 2000+1000 again",
    );
}

#[test]
fn a_second_timeout_begins_no_inquiry() {
    after_a_timeout(
        Config { frto: true, ..config(Variant::NewReno) },
        &Peer::default(),
        "
    900  > 0+1000 again
    950  < ack 1000
    950  > 1000+1000 again
    950  > 2000+1000 again",
    );
}

#[test]
fn an_echo_from_before_the_retransmission_takes_the_timeout_back() {
    let peer = Peer { timestamps: true, ..sacking() };
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let config = Config { timestamps: true, eifel: true, mss: 1_012, ..config(variant) };
        let peer = Peer { mss: 1_012, ..Peer { timestamps: peer.timestamps, ..sacking() } };
        let script = after_a_timeout(
            config,
            &peer,
            "
        # The segments left at 10,001 ms of the clock, the retransmission at 10,301.
        350  < ack 1000 tsecr 10001
             = phase open cwnd 4 ssthresh 1048.576
        350  > 4000+1000
        351  < ack 2000 tsecr 10001
        351  > 5000+1000
        351  > 6000+1000",
        );
        assert_eq!(script.connection.counters().spurious_timeouts, 1, "{variant}");
    }
}

#[test]
fn an_echo_of_the_retransmission_confirms_the_timeout() {
    let peer = Peer { timestamps: true, mss: 1_012, ..sacking() };
    let config = Config { timestamps: true, eifel: true, mss: 1_012, ..config(Variant::NewReno) };
    after_a_timeout(
        config,
        &peer,
        "
    400  < ack 1000 tsecr 10301
         = cwnd 2 ssthresh 2
    400  > 1000+1000 again
    400  > 2000+1000 again",
    );
}

#[test]
fn an_acknowledgement_of_everything_is_only_believed_of_a_receiver_that_reports_duplicates() {
    let peer = Peer { timestamps: true, mss: 1_012, ..sacking() };
    let config = Config { timestamps: true, eifel: true, mss: 1_012, ..config(Variant::Reno) };
    // RFC 3522 step 5: it may be that only the acknowledgements were lost.
    let script = after_a_timeout(
        config,
        &peer,
        "
    350  < ack 4000 tsecr 10001
         = cwnd 2 ssthresh 2
    350  > 4000+1000
    350  > 5000+1000",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 0);
}

#[test]
fn a_spurious_fast_retransmit_is_taken_back() {
    let peer = Peer { timestamps: true, mss: 1_012, ..sacking() };
    let config = Config {
        timestamps: true,
        eifel: true,
        mss: 1_012,
        initial_window: InitialWindow::Segments(6),
        ..config(Variant::NewReno)
    };
    let script = play(
        config,
        &peer,
        "
      0  write 30000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
      0  > 4000+1000
      0  > 5000+1000
    # The first segment was held up on its way and arrives after the fourth.
    100  < ack 0 tsecr 10001
    101  < ack 0 tsecr 10001
    102  < ack 0 tsecr 10001
    102  > 0+1000 again
         = ssthresh 3 phase fast-recovery
    103  < ack 4000 tsecr 10001
         = phase open ssthresh 1048.576 cwnd 6
    103  > 6000+1000
    103  > 7000+1000
    103  > 8000+1000
    103  > 9000+1000",
    );
    assert_eq!(script.connection.counters().spurious_fast_retransmits, 1);
}

#[test]
fn f_rto_with_the_eifel_response_takes_the_reduction_back() {
    let script = after_a_timeout(
        Config { frto: true, eifel: true, ..config(Variant::NewReno) },
        &Peer::default(),
        "
    350  < ack 1000
    350  > 4000+1000
    350  > 5000+1000
    # FlightSize 4 + min(1, IW).
    351  < ack 2000
         = phase open cwnd 5 ssthresh 1048.576
    351  > 6000+1000
    352  < ack 4000
    352  > 7000+1000
    352  > 8000+1000
    352  > 9000+1000
         = srtt 100 rttvar 50 rto 600
    # The first measurement of data that was not sent at the timeout, 100 ms: the averages of before, with twice the
    # granularity, stay, and the timer does not forget the spurious timeout by one short sample.
    450  < ack 5000
         = srtt 102 rttvar 50 rto 302
    450  > 10000+1000
    450  > 11000+1000",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 1);
}

#[test]
fn the_eifel_response_matches_its_figures() {
    // 40 segments were in flight when the timer ran out, and no threshold was known; now there are 41, after an
    // acknowledgement of one.
    let config =
        Config { eifel: true, timestamps: true, initial_ssthresh: u32::MAX, ..config(Variant::NewReno) };
    let config = Config { initial_window: InitialWindow::Segments(42), ..config };
    let mut script = Script::connected(config, &Peer::default());
    script.connection.write(42_000);
    let now = Instant::from_secs(10);
    while script.connection.poll_transmit(now).is_some() {}
    let sender = &mut script.connection.sender;
    eifel_response::remember(sender, 40_000);
    sender.lower_threshold(40_000);
    sender.window.set(1_000);
    sender.queue.acknowledge(ISS.plus(1_001));
    assert_eq!(sender.queue.outstanding(), 41_000);
    eifel_response::respond(sender, Cause::Timeout, Found::Early, 1_000, false);
    assert_eq!(script.connection.snapshot().cwnd, 42_000);
    assert_eq!(script.connection.snapshot().ssthresh, u32::MAX);
}

#[test]
fn a_recovery_whose_repetitions_all_arrived_twice_is_taken_back_late() {
    let config = Config { dsack: true, eifel: true, ..config(Variant::Sack) };
    let script = after_a_timeout(
        config,
        &sacking(),
        "
    # The acknowledgements of the originals are late: go-back-N repeats what had arrived.
    310  < ack 1000
    310  > 1000+1000 again
    310  > 2000+1000 again
    311  < ack 4000
         = ssthresh 2
    311  > 4000+1000
    311  > 5000+1000
    # RFC 3708: all three repetitions are reported as duplicates.
    400  < ack 4000 sack 0-1000
    410  < ack 4000 sack 1000-2000
         = ssthresh 2
    410  < ack 4000 sack 2000-3000
         = ssthresh 1048.576",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 1);
    assert_eq!(script.connection.counters().duplicates_reported, 3);
}

#[test]
fn a_repetition_that_was_needed_keeps_the_reduction() {
    let config = Config { dsack: true, eifel: true, ..config(Variant::Sack) };
    let script = after_a_timeout(
        config,
        &sacking(),
        "
    400  < ack 1000
    400  > 1000+1000 again
    400  > 2000+1000 again
    500  < ack 4000
    500  > 4000+1000
    500  > 5000+1000
    501  < ack 4000 sack 2000-3000
         = ssthresh 2",
    );
    assert_eq!(script.connection.counters().spurious_timeouts, 0);
}
