//! Predictions computed from the RFCs and papers without any implementation, where the parts of the sender show them. The
//! whole table of such predictions is evaluated through connections by `careof oracle analytic`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber};

use super::script::{ISS, PEER_ISS, Peer, Script, plain};
use super::world::{CLIENT, World};
use crate::rto::{Estimator, Sample};
use crate::send_queue::SendQueue;
use crate::{AckCounting, Config, DelayedAck, InitialWindow, ReductionBound, Variant};

// ---- retransmission timeouts

fn sample_of(millis: f64, expected: u32) -> Sample {
    Sample {
        sent_at: Instant::ZERO,
        now: Instant::from_nanos((millis * 1e6).round() as u64),
        snd_una: SeqNumber(0),
        snd_nxt: SeqNumber(0),
        expected,
        cwnd_segments: 10,
    }
}

/// SRTT, RTTVAR, RTO without and with the floor of 1 s, in ms.
fn rfc6298(samples: &[f64]) -> [f64; 4] {
    let with_floor = |floor: Duration| {
        let config = Config { rto_min: Some(floor), ..Config::default() };
        let mut estimator = Estimator::new(&config);
        for &millis in samples {
            estimator.sample(&sample_of(millis, 1));
        }
        estimator
    };
    let free = with_floor(Duration::from_nanos(1));
    let floored = with_floor(Duration::from_secs(1));
    let ms = |span: Duration| span.as_secs_f64() * 1e3;
    [ms(free.srtt().unwrap()), ms(free.rttvar().unwrap()), ms(free.rto()), ms(floored.rto())]
}

fn close(found: f64, wanted: f64, tolerance: f64, what: &str) {
    assert!((found - wanted).abs() <= tolerance, "{what}: {found} is not {wanted}");
}

#[test]
fn the_estimator_follows_rfc_6298() {
    let [srtt, rttvar, rto, floored] = rfc6298(&[50.0, 50.0, 50.0, 700.0, 700.0, 700.0]);
    close(srtt, 264.550_781, 2e-6, "srtt");
    close(rttvar, 328.393_555, 2e-6, "rttvar");
    close(rto, 1578.125, 2e-6, "rto");
    close(floored, 1578.125, 2e-6, "rto");
    // One sample: RTTVAR is half of it. A step: the samples of 700 ms are new to both averages.
    let [srtt, rttvar, rto, floored] = rfc6298(&[0.5]);
    close(srtt, 0.5, 2e-6, "srtt");
    close(rttvar, 0.25, 2e-6, "rttvar");
    close(rto, 1.5, 2e-6, "rto");
    close(floored, 1_000.0, 2e-6, "the floor");
}

#[test]
fn with_many_samples_in_a_round_trip_the_gains_are_shared_out() {
    let mut estimator = Estimator::new(&Config::default());
    estimator.sample(&sample_of(100.0, 1));
    estimator.sample(&sample_of(180.0, 10));
    let ms = |span: Option<Duration>| span.unwrap().as_secs_f64() * 1e3;
    // alpha' = 1/80: 100 + 80/80. beta' = 1/40: 50 + (80 - 50)/40.
    close(ms(estimator.srtt()), 101.0, 1e-6, "srtt");
    close(ms(estimator.rttvar()), 50.75, 1e-6, "rttvar");
}

#[test]
fn the_first_timeout_is_one_second() {
    assert_eq!(Estimator::new(&Config::default()).rto(), Duration::from_secs(1));
}

/// When the timer fires that was armed at 0 with an RTO of `rto` seconds.
fn expiries(rto: f64, max: f64, count: usize) -> Vec<f64> {
    let config = Config {
        rto_initial: Some(Duration::from_secs_f64(rto)),
        rto_min: Some(Duration::from_millis(1)),
        rto_max: Some(Duration::from_secs_f64(max)),
        ..Config::default()
    };
    let mut estimator = Estimator::new(&config);
    let mut at = Instant::ZERO;
    (0..count)
        .map(|_| {
            at = estimator.deadline(at);
            estimator.back_off();
            at.as_secs_f64()
        })
        .collect()
}

#[test]
fn back_off_doubles_to_its_maximum() {
    assert_eq!(expiries(1.0, 64.0, 8), [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 191.0]);
    let of_two_minutes = [1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 247.0];
    assert_eq!(expiries(1.0, 120.0, 8), of_two_minutes);
}

#[test]
fn an_outage_ends_at_the_next_expiry() {
    let first_after =
        |rto, outage| expiries(rto, 120.0, 20).into_iter().find(|&at| at >= outage - 1e-9).unwrap();
    for (rto, outage, wanted) in [(0.26, 3.0, 3.9), (1.0, 3.0, 3.0), (0.26, 20.0, 33.02)] {
        close(first_after(rto, outage), wanted, 1e-6, "outage");
    }
}

// ---- windows

#[test]
fn initial_windows_are_those_of_the_rfcs() {
    for (mss, wanted) in [(536, 5_360), (1_448, 14_480), (1_460, 14_600), (4_312, 14_600), (9_000, 18_000)] {
        assert_eq!(InitialWindow::Rfc6928.bytes(mss), wanted, "{mss}");
    }
    for (mss, wanted) in [(536, 2_144), (1_095, 4_380), (1_096, 3_288), (2_190, 6_570), (2_191, 4_382)] {
        assert_eq!(InitialWindow::Rfc5681.bytes(mss), wanted, "{mss}");
    }
}

/// New segments sent in each round trip, and the window at its end, in segments.
fn rounds(delayed_ack: DelayedAck, ack_counting: AckCounting, count: usize) -> Vec<(u32, u32)> {
    let config = Config {
        mss: 1_000,
        delayed_ack,
        ack_counting,
        receive_window: 1 << 24,
        window_scaling: true,
        ..Config::default()
    };
    let mut world = World::alike(&config, 50);
    world.ends[CLIENT].write(u64::MAX);
    // The handshake takes one round trip; the first data leaves at 100 ms.
    (1..=count as u64)
        .map(|round| {
            let sent = world.trace.len();
            world.run_until(Instant::from_millis(100 * (round + 1) - 1));
            let new = world.trace[sent..].iter().filter(|s| s.from == CLIENT && s.segment.payload_len > 0);
            let new = new.count() as u32;
            world.run_until(Instant::from_millis(100 * (round + 1)));
            world.trace.truncate(
                world.trace.len() - world.trace.iter().rev().take_while(|s| s.at == world.now).count(),
            );
            (new, world.ends[CLIENT].snapshot().cwnd / 1_000)
        })
        .collect()
}

#[test]
fn slow_start_doubles_each_round_trip() {
    let wanted = [(10, 20), (20, 40), (40, 80), (80, 160), (160, 320)];
    let found = rounds(DelayedAck::Off, AckCounting::PerAck, 5);
    assert_eq!(found.iter().map(|round| round.1).collect::<Vec<_>>(), wanted.map(|round| round.1));
    let per_ack = rounds(DelayedAck::RFC1122, AckCounting::PerAck, 4);
    assert_eq!(per_ack.iter().map(|round| round.1).collect::<Vec<_>>(), [15, 22, 33, 49]);
    let by_bytes = rounds(DelayedAck::RFC1122, AckCounting::Bytes { limit: 2 }, 4);
    assert_eq!(by_bytes.iter().map(|round| round.1).collect::<Vec<_>>(), [20, 40, 80, 160]);
}

#[test]
fn a_transfer_of_300_segments_takes_five_round_trips() {
    let config = Config {
        mss: 1_000,
        delayed_ack: DelayedAck::Off,
        window_scaling: true,
        receive_window: 1 << 24,
        ..Config::default()
    };
    let mut world = World::alike(&config, 50);
    world.ends[CLIENT].write(300_000);
    world.run_while(Instant::from_secs(10), |world| world.ends[CLIENT].acknowledged() < 300_000);
    // One round trip for the handshake.
    assert_eq!(world.now, Instant::from_millis(600));
}

#[test]
fn thresholds_are_half_the_flight_and_two_segments_at_least() {
    let window = crate::congestion::Window::new(&plain());
    for (flight, wanted) in [(1, 2_000), (4, 2_000), (10, 5_000), (49, 24_500)] {
        assert_eq!(crate::congestion::reno::ssthresh(&window, flight * 1_000), wanted, "{flight}");
    }
}

// ---- selective acknowledgements

/// pipe in segments, and the segments lost, by the scoreboard.
fn scoreboard(segments: u32, sacked: &[u32], high_rxt: i64) -> (u32, Vec<u32>) {
    let mut queue = SendQueue::new(ISS);
    queue.write(u64::from(segments) * 1_000);
    for _ in 0..segments {
        queue.push_new(Instant::ZERO, 1_000);
    }
    let seq = |segment: u32| ISS.plus(segment * 1_000);
    for &segment in sacked {
        let mut blocks = SackBlocks::EMPTY;
        blocks.push(seq(segment), seq(segment + 1));
        queue.selectively_acknowledge(&blocks, 1_000, 3);
    }
    for segment in 0..=high_rxt {
        queue.mark_repaired(segment as usize);
    }
    queue.check();
    let lost = (0..segments).filter(|s| !sacked.contains(s) && queue.scoreboard.is_lost(seq(*s))).collect();
    (queue.pipe() / 1_000, lost)
}

#[test]
fn the_pipe_is_that_of_rfc_6675() {
    assert_eq!(scoreboard(10, &[3, 4, 5], 2), (7, [0, 1, 2].into()));
    assert_eq!(scoreboard(20, &[1, 3, 5, 7], 0), (15, [0, 2].into()));
}

/// RFC 6937 section 3.1: of a flight of 20 the first `lost` are lost. For each acknowledgement the window, the pipe
/// before anything is sent, and what is sent.
fn printed_example(lost: u32, config: Config) -> Vec<(u32, u32, String)> {
    let mut script = Script::connected(config, &Peer { sack: true, ..Peer::default() });
    let connection = &mut script.connection;
    let now = Instant::from_secs(10);
    connection.write(1_000_000);
    while connection.poll_transmit(now).is_some() {}
    (lost..20)
        .map(|segment| {
            let mut sack = SackBlocks::EMPTY;
            sack.push(ISS.plus(1 + lost * 1_000), ISS.plus(1 + (segment + 1) * 1_000));
            let ack = Segment {
                seq: PEER_ISS.plus(1),
                ack: ISS.plus(1),
                flags: Flags::ACK,
                window: 65_535,
                sack,
                ..Segment::default()
            };
            connection.handle_segment(now, &ack);
            let (cwnd, pipe) = (connection.snapshot().cwnd / 1_000, connection.sender.queue.pipe() / 1_000);
            // The retransmission of the fast retransmit counts as sent when it was decided.
            let decided = u32::from(connection.sender.resend_front);
            let mut sent = String::new();
            while let Some(out) = connection.poll_transmit(now) {
                sent.push(if out.retransmission { 'R' } else { 'N' });
            }
            (cwnd, pipe - decided, sent)
        })
        .collect()
}

/// The sender of the examples of RFC 6937.
fn example_config() -> Config {
    Config {
        variant: Variant::Sack,
        sack: true,
        limited_transmit: true,
        initial_window: InitialWindow::Segments(20),
        ..plain()
    }
}

#[test]
fn proportional_reductions_are_those_of_rfc_6937() {
    let example = |lost, reduction_bound| {
        let config = Config { prr: true, reduction_bound, ..example_config() };
        let rows = printed_example(lost, config);
        let pipe: Vec<u32> = rows.iter().map(|row| row.1).collect();
        let sent: Vec<String> =
            rows.into_iter().map(|row| if row.2.is_empty() { "-".to_string() } else { row.2 }).collect();
        (pipe, sent.join(" "))
    };
    let one = example(1, ReductionBound::SlowStart);
    assert_eq!(one.0, [19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9]);
    assert_eq!(one.1, "N N R - N - N - N - N - - N - N - - N");
    let crb = example(15, ReductionBound::Conservative);
    assert_eq!((&*crb.0, &*crb.1), ([19, 19, 4, 4, 4].as_slice(), "N N R R R"));
    let ssrb = example(15, ReductionBound::SlowStart);
    assert_eq!((&*ssrb.0, &*ssrb.1), ([19, 19, 4, 5, 6].as_slice(), "N N RR RR RR"));
    // RFC 9937 does not count what was sacked before: the flight ends at ssthresh as the RFC prints it, and as many
    // segments leave.
    let revised = example(1, ReductionBound::BySafeAck);
    assert_eq!(revised.0.last(), Some(&10));
    assert_eq!(revised.1.matches(['N', 'R']).count(), 10);
}

#[test]
fn rfc_6675_behaves_as_rfc_6937_prints_it() {
    let rfc6675 = Config { limited_transmit_counts: true, ..example_config() };
    let one = printed_example(1, rfc6675.clone());
    let column = |pick: fn(&(u32, u32, String)) -> u32| one.iter().map(pick).collect::<Vec<_>>();
    let mut cwnd = Vec::from([11; 19]);
    cwnd[..2].fill(20);
    assert_eq!(column(|line| line.0), cwnd);
    assert_eq!(
        column(|line| line.1),
        [19, 19, 18, 18, 17, 16, 15, 14, 13, 12, 11, 10, 10, 10, 10, 10, 10, 10, 10]
    );
    let sent: Vec<&str> = one.iter().map(|line| &*line.2).collect();
    assert_eq!(sent[..3], ["N", "N", "R"]);
    assert!(sent[3..11].iter().all(|sent| sent.is_empty()) && sent[11..].iter().all(|sent| *sent == "N"));

    let fifteen: Vec<(u32, String)> =
        printed_example(15, rfc6675).into_iter().map(|line| (line.1, line.2)).collect();
    let wanted = [(19, "N"), (19, "N"), (4, "RRRRRRR"), (10, "R"), (10, "R")];
    assert_eq!(fifteen, wanted.map(|(pipe, sent)| (pipe, sent.to_string())));
}

// ---- the sawtooth

/// Segments and round trips between two losses, when one is lost each time the window reaches `limit` segments.
fn sawtooth(limit: u32) -> (f64, f64) {
    let config = Config {
        variant: Variant::Sack,
        sack: true,
        initial_ssthresh: limit * 500,
        window_scaling: true,
        receive_window: 1 << 20,
        rto_min: None,
        ..plain()
    };
    let mut world = World::alike(&config, 50);
    world.traced = false;
    world.drop_at_window = Some(limit * 1_000);
    world.ends[CLIENT].write(u64::MAX);
    let mut losses = Vec::new();
    while losses.len() < 12 {
        let before = world.ends[CLIENT].counters().fast_retransmits;
        world.run_while(Instant::MAX, |world| world.ends[CLIENT].counters().fast_retransmits == before);
        losses.push((world.now, world.ends[CLIENT].acknowledged()));
    }
    assert_eq!(world.ends[CLIENT].counters().timeouts, 0);
    let (first, last) = (losses[1], losses[11]);
    ((last.1 - first.1) as f64 / 10_000.0, (last.0 - first.0).as_secs_f64() / 0.1 / 10.0)
}

#[test]
fn the_sawtooth_has_the_area_of_its_arithmetic() {
    // Differences do away with what grows like W: the round trips of noticing and of repair.
    let [small, middle, large] = [40, 80, 120].map(sawtooth);
    let square = large.0 - 2.0 * middle.0 + small.0;
    let wanted = 3.0 / 8.0 * f64::from(120 * 120 - 2 * 80 * 80 + 40 * 40);
    close(square / wanted, 1.0, 0.03, "segments");
    close((large.1 - small.1) / 40.0, 1.0, 0.03, "round trips");
}

/// A connection with 20 segments of 1000 bytes in flight.
fn twenty(variant: Variant) -> Script {
    let config = Config { variant, initial_window: InitialWindow::Segments(20), ..plain() };
    let mut script = Script::connected(config, &Peer::default());
    let mut text = String::from("0 write 100000\n");
    for segment in 0..20 {
        text += &alloc::format!("0 > {}+1000\n", segment * 1_000);
    }
    script.play(&text);
    script
}

#[test]
fn fast_recovery_inflates_from_a_flight_of_twenty() {
    twenty(Variant::Reno).play(
        "
    100 < ack 0
    101 < ack 0
    102 < ack 0
    102 > 0+1000 again
        = ssthresh 10 cwnd 13
    103 < ack 0
        = cwnd 14
    104 < ack 0
        = cwnd 15
    200 < ack 20000
    200 > 20000+1000
    200 > 21000+1000
    200 > 22000+1000
    200 > 23000+1000
    200 > 24000+1000
    200 > 25000+1000
    200 > 26000+1000
    200 > 27000+1000
    200 > 28000+1000
    200 > 29000+1000
        = cwnd 10",
    );
}

#[test]
fn newreno_repairs_the_first_and_the_fifth() {
    twenty(Variant::NewReno).play(
        "
    100 < ack 0
    101 < ack 0
    102 < ack 0
    102 > 0+1000 again
        = cwnd 13 ssthresh 10
    # The fifth segment is missing, too: deflated by the four acknowledged, and one added.
    200 < ack 4000
    200 > 4000+1000 again
        = cwnd 10 phase fast-recovery
    # Everything up to `recover`: min(ssthresh, FlightSize + SMSS).
    300 < ack 20000
    300 > 20000+1000
    300 > 21000+1000
        = cwnd 2 phase open",
    );
}

#[test]
fn a_window_field_of_257_shifted_by_7_is_32896_bytes() {
    let config = Config { window_scaling: true, ..plain() };
    let peer = Peer { shift: Some(7), window: 257, ..Peer::default() };
    let mut script = Script::connected(config, &peer);
    // The window of the SYN-ACK is not scaled.
    assert_eq!(script.connection.snapshot().snd_wnd, 257);
    script.play("0 < ack 0");
    assert_eq!(script.connection.snapshot().snd_wnd, 32_896);
    // A shift beyond 14 counts as 14.
    let config = Config { window_scaling: true, ..plain() };
    let mut script = Script::connected(config, &Peer { shift: Some(200), window: 1, ..Peer::default() });
    script.play("0 < ack 0");
    assert_eq!(script.connection.snapshot().snd_wnd, 1 << 14);
}
