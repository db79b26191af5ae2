//! Windows: the first, their growth, and what a loss makes of them.

use std::time::Duration;

use careof_base::Instant;
use careof_tcp::{AckCounting, Config, DelayedAck, IdleRestart, InitialWindow, Variant};

use super::bench::{Bench, MSS, new, plain, repeated};
use super::world::{Loss, World};
use super::{Check, Outcome, Row, expect, near, numbers, says, value, value_within, within};
use crate::kernel::{Fate, Link, Packet, Script, Way};

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "ss-ack1" => slow_start(row),
        "ss-ack2" => slow_start_with_delayed_acks(row),
        "ss-time" => transfer_time(row),
        "ca-reno" => avoidance_in_words(row),
        "ca-reno-val" => avoidance(row),
        "lw" => loss_window(row),
        "fr-inflate" => inflation(row),
        "dupthresh" => threshold(row),
        "limited" => limited_transmit(row),
        "newreno-partial" => partial(row),
        "reno-multi" => two_losses(row),
        "tahoe" => tahoe(row),
        "idle-restart" => idle(row),
        "link-floor" => serialisation(row),
        id if id.starts_with("iw10-") => initial(row, InitialWindow::Rfc6928, "MSS", "IW="),
        id if id.starts_with("iw-5681-") => initial(row, InitialWindow::Rfc5681, "SMSS", "IW<="),
        id if id.starts_with("ssthresh-") => half(row),
        _ => return None,
    })
}

/// A connection with segments of that size begins with that window.
fn initial(row: &Row, rule: InitialWindow, name: &str, before: &str) -> Check {
    let mss = value(&row.inputs, name)? as u16;
    let config = Config { mss, initial_window: rule, ..plain() };
    let bench = Bench::connected(config, Duration::from_millis(10))?;
    let wanted = row.expected.strip_prefix(before).and_then(|text| numbers(text).first().copied());
    let wanted = wanted.ok_or(Outcome::NotRun(format!("the row does not say {before}")))?;
    near("the first window", f64::from(bench.connection.snapshot().cwnd), wanted, 0.0)
}

/// New segments in each round trip, and the window at its end.
fn rounds(
    delayed_ack: DelayedAck,
    ack_counting: AckCounting,
    count: u64,
) -> Result<(Vec<u32>, Vec<u32>), Outcome> {
    let config = Config {
        initial_window: InitialWindow::Segments(10),
        delayed_ack,
        ack_counting,
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    };
    let rtt = Duration::from_millis(100);
    let mut world = World::new(&config, &config, rtt, Loss::None)?;
    world.client.write(u64::MAX);
    // The handshake takes one round trip. A round ends before the acknowledgements of its segments arrive.
    let (mut sent, mut windows) = (Vec::new(), Vec::new());
    let mut before = 0;
    for round in 1..=count {
        world.run_until(Instant::from_millis(100 * (round + 1) - 1));
        sent.push((world.sent_new - before) as u32);
        before = world.sent_new;
        world.run_until(Instant::from_millis(100 * (round + 1)));
        windows.push(world.client.snapshot().cwnd / MSS);
        world.run_until(Instant::from_millis(100 * (round + 1) + 1));
        sent.push((world.sent_new - before) as u32);
        before = world.sent_new;
    }
    // What left right after the acknowledgements belongs to the next round.
    let mut per_round = vec![sent[0]];
    per_round.extend(sent[1..].chunks(2).map(|pair| pair.iter().sum::<u32>()));
    per_round.truncate(count as usize);
    Ok((per_round, windows))
}

fn list(text: &str, after: &str) -> Result<Vec<u32>, Outcome> {
    let begin = text.find(after).ok_or_else(|| Outcome::NotRun(format!("the row does not say {after:?}")))?;
    let rest = text[begin + after.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
    let found: Vec<u32> = numbers(&rest[..end].replace(',', " ")).into_iter().map(|n| n as u32).collect();
    within(&format!("the length of the list after {after:?}"), found.len() as f64, 2.0..=30.0)?;
    Ok(found)
}

fn slow_start(row: &Row) -> Check {
    let wanted = list(&row.expected, "segments first sent in round n:")?;
    let (sent, windows) = rounds(DelayedAck::Off, AckCounting::PerAck, wanted.len() as u64)?;
    expect("segments a round", sent, wanted)?;
    expect("cwnd a round", windows, list(&row.expected, "cwnd after round n:")?)
}

fn slow_start_with_delayed_acks(row: &Row) -> Check {
    let wanted = list(&row.expected, "grows by 1.5:")?;
    let (_, windows) = rounds(DelayedAck::RFC1122, AckCounting::PerAck, wanted.len() as u64)?;
    // Where a round ends with an odd segment, the first of the next is its second: every ACK is one of two.
    expect("cwnd", windows, wanted)?;
    let wanted = list(&row.expected, "with RFC 3465 L=2:")?;
    let (_, windows) = rounds(DelayedAck::RFC1122, AckCounting::Bytes { limit: 2 }, wanted.len() as u64)?;
    expect("cwnd with L=2", windows, wanted)
}

fn transfer_time(row: &Row) -> Check {
    let segments = value_within(&row.expected, "N", 1.0..=1e6)? as u32;
    let window = value_within(&row.expected, "IW", 1.0..=1e6)? as u32;
    let wanted = row.expected.split("->").nth(1).and_then(|text| numbers(text).first().copied());
    let config = Config {
        initial_window: InitialWindow::Segments(window),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    };
    let mut world = World::new(&config, &config, Duration::from_millis(100), Loss::None)?;
    let bytes = u64::from(segments * MSS);
    world.client.write(bytes);
    world.run_while(Instant::from_secs(60), |world| world.client.acknowledged() < bytes);
    // One round trip is the handshake's.
    let rounds = world.now.as_secs_f64() / 0.1 - 1.0;
    near("rounds", rounds, wanted.unwrap_or(f64::NAN), 1e-9)
}

/// The window after ten acknowledgements from ten segments on.
fn after_ten() -> Result<f64, Outcome> {
    let config =
        Config { initial_window: InitialWindow::Segments(10), initial_ssthresh: 10 * MSS, ..plain() };
    let mut bench = Bench::connected(config, Duration::from_millis(100))?;
    bench.write(100);
    bench.wait(Duration::from_millis(100));
    for segment in 1..=10 {
        bench.ack(segment, &[]);
    }
    Ok(bench.cwnd())
}

fn avoidance(row: &Row) -> Check {
    let wanted = numbers(&row.expected).first().copied().unwrap_or(f64::NAN);
    // Windows are whole bytes: a thousandth of a segment in each step.
    near("cwnd", after_ten()?, wanted, 1e-3)
}

fn avoidance_in_words(row: &Row) -> Check {
    let wanted = value(&row.expected, "cwnd")?;
    let recurrence = (0..10).fold(10.0_f64, |cwnd, _| cwnd + 1.0 / cwnd);
    near("cwnd", after_ten()?, wanted, 1e-3).map_err(|_| {
        Outcome::Differs(format!(
            "the row prints {wanted}, but ten steps of its own recurrence c += 1/c give {recurrence:.6}, as ca-reno-val has it, \
             and so does the model"
        ))
    })
}

/// A sender with this many segments in flight that have not been acknowledged.
fn in_flight(variant: Variant, flight: u32, change: impl FnOnce(&mut Config)) -> Result<Bench, Outcome> {
    let mut config = Config {
        variant,
        sack: variant == Variant::Sack,
        initial_window: InitialWindow::Segments(flight),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    };
    change(&mut config);
    let mut bench = Bench::connected(config, Duration::from_millis(100))?;
    bench.write(flight);
    bench.wait(Duration::from_millis(100));
    Ok(bench)
}

fn half(row: &Row) -> Check {
    let flight = value(&row.inputs, "FlightSize")? as u32;
    let figure = value(&row.expected, "ssthresh")?;
    let text = row.expected.trim_start_matches("ssthresh=");
    let wanted = if text.split("SMSS").next().is_some_and(|text| text.contains('/')) {
        numbers(text).get(1).map_or(f64::NAN, |under| figure / under)
    } else {
        figure
    };
    let mut bench = in_flight(Variant::NewReno, flight, |_| {})?;
    bench.expire()?;
    near("ssthresh", bench.ssthresh(), wanted, 0.0)
}

fn loss_window(row: &Row) -> Check {
    says(row, &["cwnd=LW=1 SMSS"])?;
    for variant in [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack] {
        let mut bench = in_flight(variant, 20, |_| {})?;
        bench.expire()?;
        near("cwnd", bench.cwnd(), 1.0, 0.0)?;
    }
    Ok(())
}

fn inflation(row: &Row) -> Check {
    says(row, &["ssthresh=10, cwnd=13", "each further dup ACK +1", "on the ACK of new data cwnd=10"])?;
    let mut bench = in_flight(Variant::Reno, 20, |_| {})?;
    bench.write(100);
    bench.ack(0, &[]);
    bench.ack(0, &[]);
    expect("retransmitted", repeated(&bench.ack(0, &[])), vec![0])?;
    near("ssthresh", bench.ssthresh(), 10.0, 0.0)?;
    near("cwnd", bench.cwnd(), 13.0, 0.0)?;
    for further in 1..=3 {
        bench.ack(0, &[]);
        near("cwnd", bench.cwnd(), 13.0 + f64::from(further), 0.0)?;
    }
    bench.ack(20, &[]);
    near("cwnd", bench.cwnd(), 10.0, 0.0)
}

fn threshold(row: &Row) -> Check {
    says(row, &["no retransmission / one"])?;
    let mut bench = in_flight(Variant::NewReno, 20, |_| {})?;
    let mut sent = bench.ack(0, &[]);
    sent.extend(bench.ack(0, &[]));
    expect("retransmitted after two", repeated(&sent), vec![])?;
    expect("retransmitted after three", repeated(&bench.ack(0, &[])), vec![0])
}

fn limited_transmit(row: &Row) -> Check {
    says(row, &["one new segment each; cwnd unchanged"])?;
    let mut bench = in_flight(Variant::NewReno, 20, |config| config.limited_transmit = true)?;
    bench.write(100);
    for number in [20, 21] {
        expect("sent", new(&bench.ack(0, &[])), vec![number])?;
        near("cwnd", bench.cwnd(), 20.0, 0.0)?;
    }
    Ok(())
}

fn partial(row: &Row) -> Check {
    says(
        row,
        &["fast retransmit of 1, then of 5 on the partial ACK", "leave recovery when the ACK covers recover"],
    )?;
    for (guard, wanted) in [(true, 2.0), (false, 10.0)] {
        let mut bench = in_flight(Variant::NewReno, 20, |config| config.burst_guard = guard)?;
        let first: Vec<u32> = (0..3).flat_map(|_| repeated(&bench.ack(0, &[]))).collect();
        expect("after three duplicates", first, vec![0])?;
        let before = bench.cwnd();
        bench.wait(Duration::from_millis(100));
        expect("after the partial ACK", repeated(&bench.ack(4, &[])), vec![4])?;
        near("cwnd deflated by four and one added", bench.cwnd(), before - 3.0, 0.0)?;
        bench.wait(Duration::from_millis(100));
        bench.ack(20, &[]);
        // Nothing is in flight at the end: min(ssthresh, max(0, 1) + 1).
        near("cwnd at the end", bench.cwnd(), wanted, 0.0)?;
    }
    Ok(())
}

fn two_losses(row: &Row) -> Check {
    says(row, &["leaves recovery on the first partial ACK, halves twice"])?;
    let mut bench = in_flight(Variant::Reno, 20, |_| {})?;
    bench.write(100);
    (0..18).for_each(|_| drop(bench.ack(0, &[])));
    near("ssthresh", bench.ssthresh(), 10.0, 0.0)?;
    // Segment 5 is missing too: three more duplicates, and a second halving.
    bench.ack(4, &[]);
    near("cwnd after the partial ACK", bench.cwnd(), 10.0, 0.0)?;
    let again: Vec<u32> = (0..3).flat_map(|_| repeated(&bench.ack(4, &[]))).collect();
    expect("retransmitted", again, vec![4])?;
    if bench.ssthresh() >= 10.0 + 3.0 {
        return Err(Outcome::Differs(format!("ssthresh is {} after the second loss", bench.ssthresh())));
    }
    expect("fast retransmits", bench.connection.counters().fast_retransmits, 2)
}

fn tahoe(row: &Row) -> Check {
    says(row, &["ssthresh=FlightSize/2, cwnd=1 SMSS, slow start from the hole"])?;
    let mut bench = in_flight(Variant::Tahoe, 20, |_| {})?;
    let sent: Vec<u32> = (0..3).flat_map(|_| repeated(&bench.ack(0, &[]))).collect();
    expect("retransmitted", sent, vec![0])?;
    near("ssthresh", bench.ssthresh(), 10.0, 0.0)?;
    near("cwnd", bench.cwnd(), 1.0, 0.0)?;
    // The next acknowledgement lets the two after it go again.
    expect("go-back-N", repeated(&bench.ack(1, &[])), vec![1, 2])
}

fn idle(row: &Row) -> Check {
    says(row, &["cwnd=min(IW,cwnd) before sending; Linux decays by half per RTO idle instead"])?;
    for (rule, wanted) in
        [(IdleRestart::InitialWindow, 4.0), (IdleRestart::Decay, 10.0), (IdleRestart::Off, 40.0)]
    {
        let mut bench = in_flight(Variant::NewReno, 4, |config| config.idle_restart = rule)?;
        // Slow start up to 40 segments.
        bench.write(36);
        (1..=36).for_each(|segment| drop(bench.ack(segment, &[])));
        bench.run(Duration::from_millis(1));
        bench.ack(40, &[]);
        near("cwnd before the silence", bench.cwnd(), 44.0, 4.0)?;
        let before = bench.cwnd();
        // Two timeouts of 1 s and a bit.
        bench.run(Duration::from_millis(2_500));
        bench.write(1);
        let wanted = match rule {
            IdleRestart::Decay => (before / 4.0).floor().max(wanted),
            IdleRestart::Off => before,
            IdleRestart::InitialWindow => wanted,
        };
        near(&format!("cwnd with {rule}"), bench.cwnd(), wanted, 1.0)?;
    }
    Ok(())
}

/// The scripted link of the kernel traces keeps the arithmetic.
fn serialisation(row: &Row) -> Check {
    says(row, &["0.360 s of serialization; one segment 1.2 ms; 52-byte ACK 41.6 us"])?;
    let script = Script::plain(10_000_000, Duration::ZERO, 1_000);
    let mut link = Link::new(&script);
    let mut last = Fate::Dropped;
    for segment in 1..=300 {
        last = link.enter(Instant::ZERO, Way::Forth, Packet::Data(segment), 1_500);
        if segment == 1 {
            expect("one segment", last, Fate::Arrives(Instant::from_micros(1_200)))?;
        }
    }
    expect("300 segments", last, Fate::Arrives(Instant::from_millis(360)))?;
    let ack = link.enter(Instant::ZERO, Way::Back, Packet::Ack(1), 52);
    expect("an ACK", ack, Fate::Arrives(Instant::from_nanos(41_600)))
}
