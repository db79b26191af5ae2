//! The sender of today's Linux, one script a mechanism. What is expected follows from the rules of Linux 6.1 as the
//! files of `recovery/linux/` name them; whole transfers are held against traces of real kernels elsewhere.

use super::script::{Peer, Script, plain, play};
use crate::{
    Config, CongestionControl, Event, IdleRestart, InitialWindow, KernelEdition, RtoEstimator, Variant,
};
use alloc::string::String;

/// SACK and everything that finds losses, but for the probe, which would come between.
pub(super) fn linux() -> Config {
    Config {
        variant: Variant::Linux,
        rto: RtoEstimator::Linux,
        rto_min: None,
        sack: true,
        dsack: true,
        prr: true,
        rack: true,
        frto: true,
        icmp_unreachable: true,
        idle_restart: IdleRestart::Decay,
        initial_window: InitialWindow::Segments(10),
        window_validation: true,
        ..plain()
    }
}

pub(super) fn without_sack() -> Config {
    Config { sack: false, dsack: false, rack: false, ..linux() }
}

pub(super) fn peer() -> Peer {
    Peer { sack: true, ..Peer::default() }
}

fn segments(from: u32, to: u32, at: &str) -> String {
    (from..to).map(|n| alloc::format!("{at}  > {}+1000\n", n * 1_000)).collect()
}

/// Ten segments leave at 0, and there is more to send.
fn after_ten(config: Config, text: &str) -> Script {
    let start = ["0 write 40000\n", &segments(0, 10, "0"), text].concat();
    play(config, &peer(), &start)
}

#[test]
fn a_loss_is_found_by_three_segments_sacked_and_the_window_comes_down_in_proportion() {
    after_ten(
        linux(),
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
         = phase open cwnd 10
    102  < ack 0 sack 1000-3000
    102  > 11000+1000
    # The third: RACK waits no longer. Twelve are out, three arrived, one is lost: 8 in flight.
    104  < ack 0 sack 1000-4000
    104  > 0+1000 again
         = phase fast-recovery ssthresh 5 cwnd 9
    # PRR: every second delivery lets one leave, as long as more than ssthresh is in flight.
    106  < ack 0 sack 1000-5000
         = cwnd 8
    108  < ack 0 sack 1000-6000
    108  > 12000+1000
         = cwnd 8
    110  < ack 0 sack 1000-7000
         = cwnd 7
    112  < ack 0 sack 1000-8000
    112  > 13000+1000
    114  < ack 0 sack 1000-9000
         = cwnd 6
    116  < ack 0 sack 1000-10000
         = cwnd 5 flight 5
    # Everything known when the recovery began is acknowledged: the window is the threshold.
    204  < ack 12000
    204  > 14000+1000
    204  > 15000+1000
    204  > 16000+1000
         = cwnd 5 phase open",
    );
}

#[test]
fn without_proportional_reduction_the_window_falls_at_once() {
    after_ten(
        Config { prr: false, ..linux() },
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
    102  < ack 0 sack 1000-3000
    102  > 11000+1000
    # Eight are in flight and five may be: the repetition waits.
    104  < ack 0 sack 1000-4000
         = cwnd 5 ssthresh 5
    110  < ack 0 sack 1000-8000
    110  > 0+1000 again
         = flight 5",
    );
}

#[test]
fn a_segment_that_is_only_late_is_not_repeated() {
    let script = play(
        linux(),
        &peer(),
        "
      0  write 2000
      0  > 0+1000
      0  > 1000+1000
    # A quarter of the least round trip may pass.
    100  < ack 0 sack 1000-2000
    120  < ack 2000
         = cwnd 10 phase open
    700  silence",
    );
    assert_eq!(script.connection.counters().segments_retransmitted, 0);
}

#[test]
fn the_reordering_window_ends_with_a_timer() {
    let script = play(
        linux(),
        &peer(),
        "
      0  write 2000
      0  > 0+1000
      0  > 1000+1000
    # 25 ms, a quarter of the least round trip, and 2 ms.
    100  < ack 0 sack 1000-2000
    127  > 0+1000 again
         = phase fast-recovery ssthresh 5 cwnd 1
    227  < ack 2000
         = phase open cwnd 5",
    );
    assert_eq!(script.connection.counters().timeouts, 0);
    assert!(matches!(script.events[1], Event::FastRetransmit { .. }));
}

#[test]
fn a_lost_repetition_is_found_by_what_was_sent_after_it() {
    after_ten(
        linux(),
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
    102  < ack 0 sack 1000-3000
    102  > 11000+1000
    104  < ack 0 sack 1000-4000
    104  > 0+1000 again
    108  < ack 0 sack 1000-6000
    108  > 12000+1000
    116  < ack 0 sack 1000-10000
    116  > 13000+1000
    # What left after the repetition arrives, a round trip later: the repetition was lost as well.
    208  < ack 0 sack 1000-13000
    208  > 0+1000 again
    208  > 14000+1000
    208  > 15000+1000
    208  > 16000+1000
    308  < ack 17000
    308  > 17000+1000
    308  > 18000+1000
    308  > 19000+1000
    308  > 20000+1000
    308  > 21000+1000
    308  > 22000+1000
         = cwnd 6 ssthresh 5 phase open",
    );
}

#[test]
fn the_loss_of_a_tail_is_found_by_a_probe() {
    let config = Config { tail_loss_probe: true, ..linux() };
    let script = play(
        config,
        &peer(),
        "
      0  write 3000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
    100  < ack 1000
    # Two round trips and 2 ms after the last acknowledgement, the last segment.
    302  > 2000+1000 again
    # It arrived the first time; it is the one before that is missing.
    402  < ack 1000 sack 2000-3000
    402  > 1000+1000 again
         = phase fast-recovery
    502  < ack 3000
         = phase open cwnd 5 ssthresh 5",
    );
    assert_eq!(script.connection.counters().timeouts, 0);
}

#[test]
fn a_probe_is_new_data_where_there_is_some() {
    let config = Config { tail_loss_probe: true, ..linux() };
    after_ten(config, "202  > 10000+1000\n= phase open cwnd 10 flight 11");
}

#[test]
fn a_probe_that_repaired_a_loss_halves_the_window_and_one_that_did_not_leaves_it() {
    let probe = "
      0  write 2000
      0  > 0+1000
      0  > 1000+1000
    202  > 1000+1000 again
    302  < ack 2000";
    let config = Config { tail_loss_probe: true, ..linux() };
    let repaired =
        [probe, "\n 310 write 1000\n 310 > 2000+1000\n 410 < ack 3000\n = cwnd 5 ssthresh 5"].concat();
    play(config.clone(), &peer(), &repaired);
    let superfluous =
        [probe, " sack 1000-2000\n 310 write 1000\n 310 > 2000+1000\n 410 < ack 3000\n = cwnd 10"].concat();
    play(config, &peer(), &superfluous);
}

#[test]
fn a_timeout_is_found_spurious_when_what_was_sent_once_arrives() {
    for config in [linux(), without_sack()] {
        after_ten(
            config,
            "
    300  > 0+1000 again
         = phase loss cwnd 1 ssthresh 5 backoff 1
    # The first acknowledgement may be for either; two new segments find out.
    350  < ack 1000
    350  > 10000+1000
    350  > 11000+1000
         = phase loss cwnd 2
    351  < ack 2000
         = phase open cwnd 11 ssthresh 4294967.295",
        );
    }
}

#[test]
fn a_real_timeout_repeats_what_is_missing() {
    after_ten(
        without_sack(),
        "
    300  > 0+1000 again
    400  < ack 1000
    400  > 10000+1000
    400  > 11000+1000
    # Two duplicates for the new data: the rest is lost indeed.
    500  < ack 1000
    500  > 1000+1000 again
    502  < ack 1000
    502  > 2000+1000 again
         = phase loss",
    );
}

#[test]
fn a_recovery_for_what_was_only_late_is_taken_back_by_timestamps() {
    let peer = Peer { sack: true, timestamps: true, mss: 1_012, ..Peer::default() };
    let config = Config { timestamps: true, eifel: true, mss: 1_012, ..linux() };
    let start = ["0 write 40000\n", &segments(0, 10, "0")].concat();
    // Timestamps are milliseconds, 10,001 at 0.
    let text = "
    100  < ack 0 sack 1000-2000 tsecr 10001
    100  > 10000+1000
    102  < ack 0 sack 1000-3000 tsecr 10001
    102  > 11000+1000
    104  < ack 0 sack 1000-4000 tsecr 10001
    104  > 0+1000 again
         = cwnd 9 ssthresh 5
    # Segment 0 arrives after all: the echo is older than the repetition. Slow start goes on.
    106  < ack 4000 tsecr 10001
    106  > 12000+1000
    106  > 13000+1000
         = cwnd 11 ssthresh 4294967.295 phase open";
    let mut script = Script::connected(config, &peer);
    script.play(&[&start, text.trim_end(), "\n"].concat());
}

#[test]
fn a_recovery_is_taken_back_when_all_repetitions_are_reported_as_duplicates() {
    after_ten(
        linux(),
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
    102  < ack 0 sack 1000-3000
    102  > 11000+1000
    104  < ack 0 sack 1000-4000
    104  > 0+1000 again
         = cwnd 9 ssthresh 5
    204  < ack 10000 sack 0-1000
    # Slow start goes on with what this acknowledgement delivered: seven segments and the duplicate.
    204  > 12000+1000
    204  > 13000+1000
    204  > 14000+1000
    204  > 15000+1000
    204  > 16000+1000
    204  > 17000+1000
    204  > 18000+1000
    204  > 19000+1000
    204  > 20000+1000
    204  > 21000+1000
    204  > 22000+1000
    204  > 23000+1000
    204  > 24000+1000
    204  > 25000+1000
    204  > 26000+1000
    204  > 27000+1000
         = phase open cwnd 18 ssthresh 4294967.295",
    );
}

#[test]
fn without_sack_duplicates_count_and_a_partial_acknowledgement_repeats_the_next() {
    after_ten(
        without_sack(),
        "
    100  < ack 1000
    100  > 10000+1000
    100  > 11000+1000
    # Each duplicate stands for a segment that left.
    102  < ack 1000
    102  > 12000+1000
    104  < ack 1000
    104  > 13000+1000
    106  < ack 1000
    106  > 1000+1000 again
         = phase fast-recovery cwnd 10 ssthresh 5
    108  < ack 1000
         = cwnd 9
    110  < ack 1000
    110  > 14000+1000
    # The next is missing as well; it leaves when the reduction allows.
    206  < ack 4000
         = cwnd 7 flight 7
    208  < ack 4000
    208  > 4000+1000 again
         = phase fast-recovery",
    );
}

#[test]
fn timeouts_double_and_unreachable_messages_take_that_back() {
    after_ten(
        linux(),
        "
    300  > 0+1000 again
    900  > 0+1000 again
   2100  > 0+1000 again
         = backoff 3 rto 2400
    # The path was broken, not congested: 1.2 s, and then 0.6 s from when the segment left.
   2500  unreachable 0
         = backoff 2 rto 1200
   2600  unreachable 0
         = backoff 1 rto 600
   2700  > 0+1000 again
         = backoff 2",
    );
}

#[test]
fn a_window_that_rested_is_halved_for_each_timeout() {
    let text = [
        "0 write 20000\n",
        &segments(0, 10, "0"),
        "100 < ack 10000\n= cwnd 20\n",
        &segments(10, 20, "100"),
        "200 < ack 20000\n= cwnd 20\n",
        // RTO 300 ms at most: 700 ms are two of them. The threshold remembers three quarters.
        "900 write 12000\n",
        &segments(20, 30, "900"),
        "= cwnd 10\n",
    ]
    .concat();
    play(linux(), &peer(), &text);
    let off = Config { idle_restart: IdleRestart::Off, ..linux() };
    let text = text.replace("= cwnd 10\n", "") + "900 > 30000+1000\n900 > 31000+1000\n= cwnd 20";
    play(off, &peer(), &text);
}

#[test]
fn without_rack_what_has_three_sacked_above_is_lost() {
    after_ten(
        Config { rack: false, ..linux() },
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
    102  < ack 0 sack 1000-2000,4000-5000
    102  > 11000+1000
    # Three are sacked above 0, one above 2000 and 3000: only 0 is lost.
    104  < ack 0 sack 1000-2000,4000-6000
    104  > 0+1000 again
         = phase fast-recovery
    112  < ack 0 sack 1000-2000,4000-10000
    112  > 2000+1000 again
    112  > 3000+1000 again",
    );
}

#[test]
fn reordering_that_was_seen_makes_the_sender_patient() {
    after_ten(
        Config { rack: false, ..linux() },
        "
    # Segment 0 comes after one that was sent five later: the degree is six from now on.
    100  < ack 0 sack 5000-6000
    100  > 10000+1000
    102  < ack 6000
    102  > 11000+1000
    102  > 12000+1000
    102  > 13000+1000
    102  > 14000+1000
    102  > 15000+1000
    102  > 16000+1000
    102  > 17000+1000
    102  > 18000+1000
    102  > 19000+1000
    102  > 20000+1000
         = cwnd 15
    # Three sacked above a hole are not enough any more, and the window grows by what is sacked.
    104  < ack 6000 sack 7000-10000
    104  > 21000+1000
    104  > 22000+1000
    104  > 23000+1000
    104  > 24000+1000
    104  > 25000+1000
    104  > 26000+1000
         = phase open cwnd 18",
    );
}

#[test]
fn a_receiver_that_takes_back_what_it_reported_is_given_time_and_then_everything_again() {
    after_ten(
        linux(),
        "
    100  < ack 0 sack 1000-2000
    100  > 10000+1000
    # 0 is acknowledged, but not what was reported behind it. Half a round trip is granted.
    110  < ack 1000 sack 3000-4000
    110  > 11000+1000
    110  > 12000+1000
    110  > 13000+1000
    110  > 14000+1000
         = srtt 101.25
    161  > 1000+1000 again
         = phase loss cwnd 1",
    );
}

#[test]
fn a_marked_packet_reduces_the_window_in_proportion_without_a_repetition() {
    let peer = Peer { ecn: true, ..peer() };
    let start = ["0 write 40000\n", &segments(0, 10, "0")].concat();
    let text = "
    100  < ack 1000 ece
    100  > 10000+1000 cwr
         = cwnd 10 ssthresh 5
    102  < ack 2000 ece
         = cwnd 9
    104  < ack 3000 ece
    104  > 11000+1000
    114  < ack 8000 ece
    114  > 12000+1000
    120  < ack 10000
    120  > 13000+1000
    120  > 14000+1000
    # Something sent after the reduction began is acknowledged.
    200  < ack 11000
    200  > 15000+1000
         = cwnd 5";
    let script = play(Config { ecn: true, ..linux() }, &peer, &[&start, text].concat());
    assert_eq!(script.connection.counters().segments_retransmitted, 0);
    assert_eq!(script.connection.counters().ecn_reductions, 1);
}

#[test]
fn a_small_packet_waits_where_the_next_acknowledgement_makes_room() {
    after_ten(
        linux(),
        "
    100  < ack 1000
    100  > 10000+1000
    100  > 11000+1000
    # 0.5 ms later room for one or two; packets are of two, so two leave.
    100.5  < ack 2000
    100.5  > 12000+1000
    100.5  > 13000+1000
         = cwnd 12
    # A duplicate makes room for one: it waits, the acknowledgement behind it is near.
    100.8  < ack 2000 sack 3000-4000
    # Later than a millisecond after the last it leaves.
    102  < ack 2000 sack 3000-5000
    102  > 14000+1000
    102  > 15000+1000",
    );
}

#[test]
fn what_is_not_used_does_not_grow_and_is_given_up() {
    let mut text = String::from("0 write 2000\n0 > 0+1000\n0 > 1000+1000\n100 < ack 2000\n= cwnd 10\n");
    // Two segments a round trip do not make a window of ten grow.
    for round in 1..4_u32 {
        text += &alloc::format!(
            "{0} write 2000\n{0} > {1}+1000\n{0} > {2}+1000\n{3} < ack {4}\n= cwnd 10\n",
            round * 100,
            round * 2_000,
            round * 2_000 + 1_000,
            round * 100 + 100,
            round * 2_000 + 2_000,
        );
    }
    play(linux(), &peer(), &text);
}

#[test]
fn a_connection_is_given_up_after_the_time_that_fifteen_timeouts_take() {
    let mut script = Script::connected(Config { max_retransmissions: 3, ..linux() }, &peer());
    script.play(
        "0 write 1000\n0 > 0+1000\n300 > 0+1000 again\n900 > 0+1000 again\n2100 > 0+1000 again\n4500 silence",
    );
    // 0.2 + 0.4 + 0.8 + 1.6 s from the first repetition are over when the timer runs out for the fourth time.
    assert!(script.events.contains(&Event::GivenUp), "{:?}", script.events);
}

/// Ten segments, of which the second is lost, and one more once it is repaired. The duplicates advertise `window`, which
/// is 65535 before them.
fn westwood_without_sack(window: &str, end: &str) {
    let config = Config { congestion: CongestionControl::Westwood, ..without_sack() };
    let duplicates: String = (0..8)
        .map(|n| {
            let again = if n == 2 { "106 > 1000+1000 again\n" } else { "" };
            alloc::format!("{} < ack 1000 win {window}\n{again}", 102 + 2 * n)
        })
        .collect();
    let text = [
        "0 write 10000\n",
        &segments(0, 10, "0"),
        "100 < ack 1000\n",
        &duplicates,
        // Held in the recovery until something above what was known then is acknowledged.
        "206 < ack 10000\n 210 write 1000\n 210 > 10000+1000\n 310 < ack 11000\n",
        end,
    ]
    .concat();
    play(config, &peer(), &text);
}

#[test]
fn duplicates_that_the_header_prediction_lets_by_count_for_nothing_in_westwood() {
    // By 206 ms nothing has been counted; then 9000 bytes, for 104 ms: 86 a millisecond. 100 ms take 8 segments.
    westwood_without_sack("65535", "= cwnd 8 ssthresh 8 phase open");
    // Another window is not predicted: 8000 bytes in 104 ms, then what the duplicates did not tell of, 1000 in 104 ms;
    // 76 and 9 a millisecond go through the filters to 74. 100 ms take 7 segments.
    westwood_without_sack("60000", "= cwnd 7 ssthresh 7 phase open");
}

#[test]
fn a_closed_window_keeps_the_congestion_window_until_it_opens() {
    let opened = [
        "
    100  < ack 10000 win 0
         = cwnd 20
    400  > 9999+0 probe
    500  < win 0
         = cwnd 20
    # Twice the time, from the answer on.
   1100  > 9999+0 probe
   1200  < win 0
         = cwnd 20
   2000  < win 65535\n",
        &segments(10, 20, "2000"),
        "= cwnd 10",
    ];
    after_ten(linux(), &opened.concat());
}

#[test]
fn what_probes_a_window_is_cut_from_the_packet_that_waits() {
    // Packets are of half the largest window, two segments; 6.18 would fill the rest of the first from the next.
    play(
        Config { kernel: KernelEdition::V6_1, ..linux() },
        &Peer { window: 4_000, ..peer() },
        "
      0  write 20000
      0  > 0+1000
      0  > 1000+1000
      0  > 2000+1000
      0  > 3000+1000
    100  < ack 4000 win 500
    # The window stays smaller than a segment.
    400  > 4000+500 probe
    500  < ack 4500 win 4000
    500  > 4500+1000
    500  > 5500+500
    500  > 6000+1000
    500  > 7000+1000",
    );
}

/// Ten segments fill the window; half a segment and the FIN are behind them.
fn last_small_packet(kernel: KernelEdition, end: &str) {
    let start = ["0 write 10500\n", &segments(0, 10, "0"), end].concat();
    play(Config { kernel, ..linux() }, &peer(), &start);
}

#[test]
fn a_small_packet_with_a_fin_waits_for_the_window_since_6_10() {
    last_small_packet(KernelEdition::V6_1, "0 close\n0 > 10000+500 fin\n");
    last_small_packet(KernelEdition::V6_18, "0 close\n100 < ack 1000\n100 > 10000+500 fin\n");
}

#[test]
fn releases_are_sorted_into_the_editions_by_when_the_change_came() {
    let of = KernelEdition::of_release;
    assert_eq!([of(5, 15), of(6, 1), of(6, 9)], [KernelEdition::V6_1; 3]);
    assert_eq!([of(6, 10), of(6, 18), of(7, 0)], [KernelEdition::V6_18; 3]);
}

#[test]
fn a_kernels_edition_is_read_from_what_it_calls_itself() {
    let of = KernelEdition::of_kernel;
    assert_eq!(["6.1.176-amd64", "Linux 6.1.176 x86_64", "5.15-rc1"].map(of), [Some(KernelEdition::V6_1); 3]);
    assert_eq!(["6.18.44", "7.0", "6.10-rc2"].map(of), [Some(KernelEdition::V6_18); 3]);
    assert_eq!(["", "Linux", "six.one", "6", "6.x", "4294967296.1", "Linux x86_64"].map(of), [None; 7]);
}

#[test]
fn a_loss_that_a_timer_found_is_not_taken_from_bbrs_window_with_the_next_acknowledgement() {
    let config = Config { congestion: CongestionControl::Bbr, ..linux() };
    let start = ["0 write 4000\n", &segments(0, 4, "0")].concat();
    let text = "
    100  < ack 1000
         = cwnd 11
    102  < ack 1000 sack 2000-3000
         = cwnd 12
    104  < ack 1000 sack 2000-4000
         = cwnd 13
    # 104 ms, a quarter of the least round trip, and 2 ms.
    131  > 1000+1000 again
    231  < ack 4000
         = cwnd 14";
    play(config, &peer(), &[&start, text].concat());
}
