//! Long-run averages: Mathis, PFTK, the sawtooth's arithmetic, and the response functions that RFC 9438 tabulates.
//!
//! The formulas are about a window that is cut at the moment of a loss and grows again at once; a sender takes a round
//! trip to notice and one to repair. So segments are counted from the end of a repair to the next loss, and windows
//! averaged over that time. Rows with rare losses take long: a cycle of a hundred million segments takes some 40 s.

use std::ops::RangeInclusive;
use std::time::Duration;

use careof_base::{Instant, Probability, RandomStream};
use careof_tcp::{Config, CongestionControl, DelayedAck, RtoEstimator, Variant};

use super::bench::{MSS, plain};
use super::world::{Loss, World};
use super::{Check, Outcome, Row, near, numbers, says, value, value_within, within};

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "sawtooth" => sawtooth(row),
        id if id.starts_with("mathis-") => mathis(row),
        id if id.starts_with("pftk-") => pftk(row),
        id if id.starts_with("cubic-avg-") => response(row),
        id if id.starts_with("tfrc-") => Err(Outcome::Unanswerable("no sender here is TFRC".to_owned())),
        "cubic-table-check" => Err(Outcome::Unanswerable("it is about the table's own script".to_owned())),
        _ => return None,
    })
}

/// Segments between two losses with which a row is run.
const CYCLES: RangeInclusive<f64> = 2.0..=200_000_000.0;
/// Round trips and timeouts with which a row is run, seconds.
const TIMES: RangeInclusive<f64> = 1e-3..=10.0;

fn bulk(congestion: CongestionControl, delayed_ack: DelayedAck, threshold: f64) -> Config {
    Config {
        variant: Variant::Sack,
        sack: true,
        congestion,
        delayed_ack,
        rto: RtoEstimator::Linux,
        rto_min: Some(Duration::from_secs(1)),
        initial_ssthresh: (threshold as u32).max(2) * MSS,
        // The largest there is (RFC 7323 section 2.3): no window of a row is to be the receiver's.
        receive_window: 0xffff << 14,
        ..plain()
    }
}

/// The mean window, in segments, when one segment in `every` is lost.
fn mean_window(config: &Config, every: u32, rtt: Duration, cycles: u64) -> Result<f64, Outcome> {
    let mut world = World::new(config, config, rtt, Loss::Every(every))?;
    world.client.write(u64::MAX);
    let losses = |world: &World| world.client.counters().fast_retransmits;
    let limit = Instant::from_secs(1_000_000);
    let warm = cycles / 2 + 2;
    world.run_while(limit, |world| losses(world) < warm);
    let before = world.open;
    world.run_while(limit, |world| losses(world) < warm + cycles);
    if world.client.counters().timeouts > 0 {
        return Err(Outcome::Differs(format!("{} timeouts", world.client.counters().timeouts)));
    }
    let seconds = world.open.seconds - before.seconds;
    Ok((world.open.window_seconds - before.window_seconds) / seconds / f64::from(MSS))
}

fn share(row: &Row) -> f64 {
    numbers(&row.tolerance).first().copied().unwrap_or(5.0) / 100.0
}

/// A prediction for a receiver that acknowledges each segment, and one for every second.
fn both(row: &Row) -> Result<[(DelayedAck, f64); 2], Outcome> {
    match numbers(&row.expected)[..] {
        [each, second, ..] => Ok([(DelayedAck::Off, each), (DelayedAck::RFC1122, second)]),
        _ => Err(Outcome::NotRun("the row does not predict two figures".to_owned())),
    }
}

fn mathis(row: &Row) -> Check {
    let every = within("1/p", 1.0 / value(&row.inputs, "p")?, CYCLES)?;
    for (delayed_ack, wanted) in both(row)? {
        let config = bulk(CongestionControl::Reno, delayed_ack, wanted);
        let cycles = if every > 5_000.0 { 6 } else { 40 };
        let found = mean_window(&config, every.round() as u32, Duration::from_millis(100), cycles)?;
        near(&format!("the mean window with {delayed_ack:?}"), found, wanted, wanted * share(row))?;
    }
    Ok(())
}

fn response(row: &Row) -> Check {
    let (rtt, p) = (
        value_within(&row.inputs, "RTT", TIMES)?,
        row.inputs.split("p=").nth(1).and_then(|p| p.trim().parse().ok()),
    );
    let Some(every) = p.map(|p: f64| 1.0 / p) else {
        return Err(Outcome::NotRun("the row has no p".to_owned()));
    };
    within("1/p", every, CYCLES)?;
    let text = row.expected.replace(" W=", "=");
    let mut differing = Vec::new();
    for (congestion, name) in [(CongestionControl::Reno, "Reno"), (CongestionControl::Cubic, "C=0.4")] {
        let wanted = value_within(&text, name, 1.0..=1e6)?;
        let config = bulk(congestion, DelayedAck::Off, wanted);
        // The fewer, the longer they take; what they begin with, the mean that was predicted, is forgotten by a half or more in each.
        let cycles = if every > 50_000_000.0 {
            2
        } else if every > 5_000_000.0 {
            4
        } else if every > 500_000.0 {
            12
        } else if every > 5_000.0 {
            8
        } else {
            60
        };
        let found = mean_window(&config, every.round() as u32, Duration::from_secs_f64(rtt), cycles)?;
        match near(&format!("the mean window of {}", congestion.name()), found, wanted, wanted * share(row)) {
            Err(Outcome::Differs(how)) => differing.push(how),
            other => other?,
        }
    }
    // Where one of the two differs the other is judged all the same.
    if differing.is_empty() { Ok(()) } else { Err(Outcome::Differs(differing.join("; "))) }
}

/// Segments and round trips between two losses, when one is lost each time the window reaches `limit` segments.
fn cycle(limit: u32) -> Result<(f64, f64), Outcome> {
    let config = bulk(CongestionControl::Reno, DelayedAck::Off, f64::from(limit) / 2.0);
    let rtt = Duration::from_millis(100);
    let mut world = World::new(&config, &config, rtt, Loss::AtWindow(limit * MSS))?;
    world.client.write(u64::MAX);
    let mut losses = Vec::new();
    while losses.len() < 12 {
        let before = world.client.counters().fast_retransmits;
        world.run_while(Instant::from_secs(100_000), |world| {
            world.client.counters().fast_retransmits == before
        });
        losses.push((world.now.as_secs_f64(), world.client.acknowledged() as f64 / f64::from(MSS)));
    }
    let (first, last) = (losses[1], losses[11]);
    Ok(((last.1 - first.1) / 10.0, (last.0 - first.0) / 0.1 / 10.0))
}

fn sawtooth(row: &Row) -> Check {
    says(row, &["packets per cycle = 3/8 W^2 + O(W), cycle = W/2 RTTs"])?;
    // Differences do away with what grows like W: the round trips of noticing and of repair.
    let (small, middle, large) = (cycle(40)?, cycle(80)?, cycle(120)?);
    let square = large.0 - 2.0 * middle.0 + small.0;
    let wanted = 3.0 / 8.0 * f64::from(120 * 120 - 2 * 80 * 80 + 40 * 40);
    near("segments a cycle, of 3/8 W^2", square / wanted, 1.0, share(row))?;
    near("round trips a cycle, of W/2", (large.1 - small.1) / 40.0, 1.0, share(row))
}

/// Random losses, four runs of 2000 s of simulated time.
fn pftk(row: &Row) -> Check {
    let p = value_within(&row.inputs, "p", 1e-4..=1.0)?;
    let (rtt, timeout) = (value_within(&row.inputs, "RTT", TIMES)?, value_within(&row.inputs, "T0", TIMES)?);
    let chance = Probability::new(p).map_err(|error| Outcome::NotRun(error.to_string()))?;
    for (delayed_ack, wanted) in both(row)? {
        // The formula is Reno's, its losses come in bursts that end a round; with single losses the variant that
        // repairs one in a round trip is the one it describes.
        let config = Config {
            variant: Variant::NewReno,
            sack: false,
            rto_min: Some(Duration::from_secs_f64(timeout)),
            ..bulk(CongestionControl::Reno, delayed_ack, 1e6)
        };
        let mut total = 0.0;
        let (runs, seconds) = (4, 2_000);
        for run in 0..runs {
            let stream = RandomStream::new(1, run, "analytic.pftk");
            let mut world =
                World::new(&config, &config, Duration::from_secs_f64(rtt), Loss::Random(chance, stream))?;
            world.client.write(u64::MAX);
            world.run_until(Instant::from_secs(seconds));
            total += world.server.received() as f64 / f64::from(MSS) / seconds as f64;
        }
        let found = total / runs as f64;
        near(&format!("segments/s with {delayed_ack:?}"), found, wanted, wanted * share(row))?;
    }
    Ok(())
}
