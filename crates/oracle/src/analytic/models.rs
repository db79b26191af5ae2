//! Controls with a model of the path, over a bottleneck: both versions of BBR, and how many segments Vegas keeps there.
//!
//! A sender is watched after everything that happens to it; what is claimed of it is read off what it does and what it
//! says of its model.

use std::time::Duration;

use careof_base::{DataRate, Instant};
use careof_tcp::{Config, CongestionControl, InitialWindow, PathModel, Snapshot, Variant};

use super::bench::plain;
use super::world::{Loss, World};
use super::{Check, Outcome, Row, expect, near, numbers, says, value};
use crate::kernel::Script;

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "bbr1-gains" => version_1(row),
        "bbr3-gains" => version_3(row),
        "bbr-bdp" => product(row),
        "vegas-steady" => standing_queue(row),
        _ => return None,
    })
}

/// Data in a packet of 1500 bytes.
const MSS: u32 = 1_460;
const MEGABIT: u64 = 1_000_000;
/// What version 1 calls a gain of 1.
const UNIT: f64 = 256.0;

fn config(congestion: CongestionControl, variant: Variant) -> Config {
    Config {
        variant,
        sack: true,
        congestion,
        mss: MSS as u16,
        initial_window: InitialWindow::Segments(10),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    }
}

/// An endless transfer over a link on which a packet and its acknowledgement take `rtt`, queues apart.
fn transfer(config: &Config, rate: u64, rtt: Duration) -> Result<World, Outcome> {
    let serialisation = Duration::from_nanos((1_500 + 40) * 8 * 1_000_000_000 / rate);
    let script = Script::plain(rate, rtt.saturating_sub(serialisation) / 2, 10_000);
    let mut world = World::linked(config, &script)?;
    world.client.write(u64::MAX);
    Ok(world)
}

/// The sender at one moment.
struct Seen {
    at: f64,
    model: PathModel,
    state: Snapshot,
    /// Packets at the bottleneck, the one being sent included.
    waiting: usize,
}

impl Seen {
    fn mode(&self) -> &'static str {
        self.model.mode
    }

    fn segments(bytes: u32) -> f64 {
        f64::from(bytes) / f64::from(MSS)
    }

    /// Pacing gain and window gain.
    fn gains(&self) -> (f64, f64) {
        (f64::from(self.model.pacing_gain) / UNIT, f64::from(self.model.cwnd_gain) / UNIT)
    }

    fn min_rtt(&self) -> f64 {
        self.model.min_rtt.map_or(f64::NAN, |rtt| rtt.as_secs_f64())
    }

    fn bandwidth(&self) -> f64 {
        self.model.bandwidth.bits_per_second() as f64
    }

    /// Bandwidth times the least round trip, segments.
    fn product(&self) -> f64 {
        self.bandwidth() * self.min_rtt() / 8.0 / f64::from(MSS)
    }
}

fn look(world: &mut World) -> Option<Seen> {
    Some(Seen {
        at: world.now.as_nanos() as f64 / 1e9,
        model: world.client.path_model()?,
        state: world.client.snapshot(),
        waiting: world.waiting(),
    })
}

/// Goes on to the next acknowledgement, a millisecond at most.
fn step(world: &mut World) {
    let una = world.client.snapshot().snd_una;
    world.run_while(world.now + Duration::from_millis(1), |world| world.client.snapshot().snd_una == una);
}

fn watch(world: &mut World, until: u64) -> Vec<Seen> {
    let mut seen = Vec::new();
    while world.now < Instant::from_secs(until) {
        step(world);
        seen.extend(look(world));
    }
    seen
}

/// Goes on until the mode is this one.
fn until_mode(world: &mut World, mode: &str) -> Result<Seen, Outcome> {
    let end = world.now + Duration::from_secs(30);
    while world.now < end {
        step(world);
        if let Some(seen) = look(world).filter(|seen| seen.mode() == mode) {
            return Ok(seen);
        }
    }
    Err(Outcome::Differs(format!("it does not come to {mode} within 30 s")))
}

/// Stretches in which what `of` says stays the same.
fn stretches<T: PartialEq>(seen: &[Seen], of: impl Fn(&Seen) -> T) -> Vec<&[Seen]> {
    seen.chunk_by(|a, b| of(a) == of(b)).collect()
}

/// From the beginning of a stretch to that of the next.
fn lasted(pair: &[&[Seen]]) -> f64 {
    pair[1][0].at - pair[0][0].at
}

/// The gains in every stretch of a mode.
fn gains(seen: &[Seen], mode: &str, pacing: f64, window: f64, tolerance: f64) -> Check {
    let mut inside = seen.iter().filter(|seen| seen.mode() == mode).peekable();
    if inside.peek().is_none() {
        return Err(Outcome::Differs(format!("it never is in {mode}")));
    }
    for (found, wanted) in inside.map(|seen| (seen.gains(), (pacing, window))) {
        near(&format!("the pacing gain in {mode}"), found.0, wanted.0, tolerance)?;
        near(&format!("the window gain in {mode}"), found.1, wanted.1, tolerance)?;
    }
    Ok(())
}

/// The round trip is looked at this long after the last look (or the handshake), and for 200 ms once no more than
/// `window` segments of a path are in flight.
fn looks_at_the_round_trip(seen: &[Seen], every: f64, window: impl Fn(&Seen) -> f64) -> Check {
    let stretches = stretches(seen, |seen| seen.mode() == "probe-rtt");
    let mut since = seen[0].at;
    let mut looks = 0;
    for pair in stretches.windows(2).filter(|pair| pair[0][0].mode() == "probe-rtt") {
        let (begun, ended) = (pair[0][0].at, pair[1][0].at);
        // Acknowledgements come 1.2 ms apart, clocks tick in milliseconds.
        near("from one look at the round trip to the next, s", begun - since, every, 0.005)?;
        for moment in pair[0] {
            near("cwnd", Seen::segments(moment.state.cwnd), window(moment), 1e-3)?;
        }
        let small = |seen: &&Seen| Seen::segments(seen.state.flight) <= window(seen);
        let Some(small) = pair[0].iter().find(small) else {
            return Err(Outcome::Differs("the flight stays above the window".to_owned()));
        };
        // 200 ms, and up to a round trip to the next acknowledgement.
        near("with a small flight, s", ended - small.at, 0.2 + 0.03, 0.03)?;
        since = ended;
        looks += 1;
    }
    if looks < 2 { Err(Outcome::Differs(format!("{looks} looks at the round trip"))) } else { Ok(()) }
}

/// The handshake's packets are short: its round trip is never seen again, and believed for so long.
fn believes_the_least_for(seen: &[Seen], span: f64) -> Check {
    let first = &seen[0];
    let later = seen.iter().find(|seen| seen.min_rtt() > first.min_rtt());
    let held = later.map_or(f64::NAN, |later| later.at - first.at);
    near("for how long the least round trip is believed, s", held, span, 0.005)
}

fn version_1(row: &Row) -> Check {
    says(
        row,
        &[
            "(Linux 739/256=2.886719)",
            "(88/256=0.34375)",
            "cwnd gain 2",
            "cycle 5/4,3/4,1x6",
            "full pipe: <25% growth for 3 rounds",
            "min_rtt window 10 s",
            "PROBE_RTT 200 ms at 4 segments",
        ],
    )?;
    let config = config(CongestionControl::Bbr, Variant::Sack);
    let mut world = transfer(&config, 10 * MEGABIT, Duration::from_millis(50))?;
    let seen = established(watch(&mut world, 35));
    let (high, drain) = (739.0 / UNIT, 88.0 / UNIT);
    gains(&seen, "startup", high, high, 0.0)?;
    gains(&seen, "drain", drain, high, 0.0)?;
    for moment in seen.iter().filter(|seen| seen.mode() == "probe-bw") {
        near("the window gain", moment.gains().1, 2.0, 0.0)?;
    }
    let phases = stretches(&seen, |seen| (seen.mode(), seen.model.pacing_gain));
    for four in phases.windows(4).filter(|four| four.iter().all(|phase| phase[0].mode() == "probe-bw")) {
        let order: Vec<f64> = four.iter().map(|phase| phase[0].gains().0).collect();
        let cycle = [1.25, 0.75, 1.0];
        let begin = cycle.iter().position(|gain| *gain == order[0]).unwrap_or_default();
        expect("the cycle", order.clone(), (0..4).map(|phase| cycle[(begin + phase) % 3]).collect())?;
        // The first stretch may have begun in the middle of the cycle, after another mode.
        if order[1] == 1.0 {
            // Each of the six ends with the first acknowledgement, 1.2 ms apart, after a round trip.
            let trips = lasted(&four[1..3]) / four[1][0].min_rtt();
            near("round trips at a gain of 1", trips, 6.0 + 0.1, 0.1)?;
        }
    }
    full_pipe(&seen)?;
    believes_the_least_for(&seen, 10.0)?;
    looks_at_the_round_trip(&seen, 10.0, |_| 4.0)
}

/// Without what came before there was a round trip.
fn established(seen: Vec<Seen>) -> Vec<Seen> {
    seen.into_iter().skip_while(|seen| seen.model.min_rtt.is_none()).collect()
}

/// Start-up ends with the third round in a row that brought less than a quarter more than the last that brought it.
fn full_pipe(seen: &[Seen]) -> Check {
    let (mut best, mut without) = (0.0, 0);
    let mut end = seen[0].state.snd_nxt;
    for pair in seen.windows(2) {
        let moment = &pair[1];
        if moment.state.snd_una.is_after(end) {
            // What the acknowledgement lets out belongs to the next round.
            end = pair[0].state.snd_nxt;
            if moment.bandwidth() >= 1.25 * best {
                (best, without) = (moment.bandwidth(), 0);
            } else {
                without += 1;
            }
        }
        if moment.mode() != "startup" {
            return expect("rounds without a quarter more", without, 3);
        }
    }
    Err(Outcome::Differs("it never leaves the start-up".to_owned()))
}

fn version_3(row: &Row) -> Check {
    says(
        row,
        &[
            "startup pacing 4*ln2=2.772589 (2.77), startup cwnd 2.0, drain 0.5",
            "DOWN 0.90, CRUISE 1, REFILL 1, UP 1.25 (cwnd gain 2.25)",
            "Beta 0.7, loss threshold 2%, headroom 0.15",
            "PROBE_RTT every 5 s, cwnd gain 0.5, 200 ms",
            "min_rtt filter 10 s",
        ],
    )?;
    let config = config(CongestionControl::Bbr3, Variant::Sack);
    let mut world = transfer(&config, 10 * MEGABIT, Duration::from_millis(50))?;
    let seen = established(watch(&mut world, 35));
    for (mode, pacing, window) in [
        ("startup", 2.77, 2.0),
        ("drain", 0.5, 2.0),
        ("probe-bw-down", 0.9, 2.0),
        ("probe-bw-cruise", 1.0, 2.0),
        ("probe-bw-refill", 1.0, 2.0),
        ("probe-bw-up", 1.25, 2.25),
        ("probe-rtt", 1.0, 0.5),
    ] {
        // They are told in 256ths.
        gains(&seen, mode, pacing, window, 1.0 / UNIT)?;
    }
    believes_the_least_for(&seen, 10.0)?;
    // What the path held when the look began: a new round trip shows in the window with the next acknowledgement.
    looks_at_the_round_trip(&seen, 5.0, |seen| seen.product() / 2.0)?;
    backs_off(&config)?;
    gives_way_to_losses(&config)
}

/// Beta: a loss in a round trip that brings less than Beta times the bandwidth.
fn backs_off(config: &Config) -> Check {
    let mut world = transfer(config, 100 * MEGABIT, Duration::from_millis(50))?;
    let before = until_mode(&mut world, "probe-bw-cruise")?;
    world.set_rate(DataRate::from_bits_per_second(50 * MEGABIT));
    world.run_until(world.now + Duration::from_millis(200));
    world.loss = Loss::Next(1);
    world.run_until(world.now + Duration::from_millis(500));
    let Some(after) = look(&mut world) else { return Err("no model".to_owned().into()) };
    expect("the mode", after.mode(), "probe-bw-cruise")?;
    near("the bandwidth after a loss, to that before", after.bandwidth() / before.bandwidth(), 0.7, 1e-6)?;
    let windows = Seen::segments(after.state.cwnd) / Seen::segments(before.state.cwnd);
    near("the window after a loss, to that before", windows, 0.7, 1e-3)
}

/// Loses so many segments of a flight that a probe for bandwidth has built; the flight, and how it is then: how long the
/// probe goes on, s, the last window before the cruise, and the one in it, segments.
fn probe_with_losses(config: &Config, lost: u32) -> Result<(f64, [f64; 3]), Outcome> {
    let mut world = transfer(config, 100 * MEGABIT, Duration::from_millis(50))?;
    until_mode(&mut world, "probe-bw-up")?;
    // A round trip later the flight is a quarter larger, and the probe has not come to its end.
    world.run_until(world.now + Duration::from_millis(55));
    let begun = look(&mut world).ok_or("no model".to_owned())?;
    expect("the mode", begun.mode(), "probe-bw-up")?;
    world.loss = Loss::Next(lost);
    let down = until_mode(&mut world, "probe-bw-down")?;
    let mut last = Seen::segments(down.state.cwnd);
    loop {
        step(&mut world);
        match look(&mut world) {
            Some(seen) if seen.mode() == "probe-bw-down" => last = Seen::segments(seen.state.cwnd),
            Some(seen) => {
                expect("the mode", seen.mode(), "probe-bw-cruise")?;
                let cwnd = Seen::segments(seen.state.cwnd);
                return Ok((Seen::segments(begun.state.flight), [down.at - begun.at, last, cwnd]));
            }
            None => return Err("no model".to_owned().into()),
        }
    }
}

/// Losses up to two percent do nothing to a probe; one more ends it, and the cruise leaves a headroom.
fn gives_way_to_losses(config: &Config) -> Check {
    let (flight, [undisturbed, ..]) = probe_with_losses(config, 0)?;
    let allowed = (flight * 0.02).floor() as u32;
    let (_, [few, before, cruise]) = probe_with_losses(config, allowed)?;
    near(&format!("how long a probe lasts after {allowed} losses of {flight}"), few, undisturbed, 0.01)?;
    near("the window in a cruise without a bound", cruise, before, 0.0)?;
    let (_, [many, before, cruise]) = probe_with_losses(config, allowed + 1)?;
    if many > undisturbed - 0.05 {
        return Err(Outcome::Differs(format!(
            "a probe lasts {many} s after {} losses of {flight}",
            allowed + 1
        )));
    }
    near("the window in a cruise, of what was lossy", cruise / before, 1.0 - 0.15, 1e-3)
}

fn product(row: &Row) -> Check {
    says(row, &["steady inflight <= 2*BDP; queue empty in CRUISE; cwnd floor 4"])?;
    let wanted = value(&row.expected, "BDP")?;
    let [rate, rtt, _] = numbers(&row.inputs)[..] else {
        return Err(Outcome::NotRun("the row has no rate, round trip and packet size".to_owned()));
    };
    let (rate, rtt) = ((rate * 1e6) as u64, Duration::from_secs_f64(rtt / 1e3));
    for congestion in [CongestionControl::Bbr, CongestionControl::Bbr3] {
        let config = config(congestion, Variant::Sack);
        let mut world = transfer(&config, rate, rtt)?;
        let seen = watch(&mut world, 40);
        // The handshake's round trip, of short packets, is believed for ten seconds.
        let steady = || seen.iter().filter(|seen| seen.at > 11.0);
        for moment in steady().filter(|seen| seen.min_rtt() < 1.01 * rtt.as_secs_f64()) {
            near(&format!("BDP of {}", congestion.name()), moment.product(), wanted, 0.01 * wanted)?;
        }
        let most = steady().map(|seen| Seen::segments(seen.state.flight)).fold(0.0, f64::max);
        if most > (2.0 * wanted).ceil() {
            return Err(Outcome::Differs(format!("{} has {most} segments in flight", congestion.name())));
        }
        // Of the two only version 3 has a CRUISE. Packets behind the one being sent:
        let cruise = || steady().filter(|seen| seen.mode() == "probe-bw-cruise");
        let behind: usize = cruise().map(|seen| seen.waiting.saturating_sub(1)).sum();
        if cruise().count() > 0 && behind as f64 / cruise().count() as f64 >= 1.0 {
            return Err(Outcome::Differs(format!("{behind} packets wait in {} moments", cruise().count())));
        }
        let mut short = transfer(&config, MEGABIT, Duration::from_millis(15))?;
        let least = established(watch(&mut short, 15))
            .iter()
            .map(|seen| Seen::segments(seen.state.cwnd))
            .fold(f64::INFINITY, f64::min);
        near(&format!("the least window of {}", congestion.name()), least, 4.0, 0.0)?;
    }
    Ok(())
}

/// The paper's bounds are 1 and 3, and what waits is not rounded; Linux's are 2 and 4, and it rounds down. The paper's
/// sender begins with one segment: what is sent and what is in flight are compared, which a burst keeps apart.
fn standing_queue(row: &Row) -> Check {
    says(row, &["between alpha and beta packets in the queue in steady state"])?;
    for (variant, alpha, beta, rounding) in
        [(Variant::Vegas, 1.0, 3.0, 0.0), (Variant::Sack, 1.0, 3.0, 0.0), (Variant::Linux, 2.0, 4.0, 1.0)]
    {
        for megabits in [2, 5, 10, 20] {
            let first = if variant == Variant::Vegas { 1 } else { 10 };
            let config = Config {
                initial_window: InitialWindow::Segments(first),
                ..config(CongestionControl::Vegas, variant)
            };
            let mut world = transfer(&config, megabits * MEGABIT, Duration::from_millis(50))?;
            // From a start that overshoots the window comes down by a segment a round trip.
            world.run_until(Instant::from_secs(60));
            let (mut waited, mut looks) = (0, 0);
            while world.now < Instant::from_secs(70) {
                world.run_until(world.now + Duration::from_millis(1));
                waited += world.waiting().saturating_sub(1);
                looks += 1;
            }
            let mean = waited as f64 / f64::from(looks);
            if !(alpha..=beta + rounding).contains(&mean) {
                return Err(Outcome::Differs(format!(
                    "with {variant}, {megabits} Mbit/s: {mean} packets wait"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, expected: &str) -> Row {
        Row {
            id: id.to_owned(),
            source: String::new(),
            inputs: "bw=10 Mbit/s, min_rtt 50 ms, 1500-byte packets".to_owned(),
            expected: expected.to_owned(),
            tolerance: "exact".to_owned(),
        }
    }

    #[test]
    fn a_wrong_product_is_noticed_and_another_claim_is_not_believed() {
        let claims = "packets; steady inflight <= 2*BDP; queue empty in CRUISE; cwnd floor 4";
        assert_eq!(check(&row("bbr-bdp", &format!("BDP=41.67 {claims}"))), Some(Ok(())));
        let wrong = check(&row("bbr-bdp", &format!("BDP=43 {claims}")));
        let Some(Err(Outcome::Differs(why))) = wrong else { panic!("{wrong:?}") };
        assert!(why.starts_with("BDP of bbr is 41.6"), "{why}");
        let other = check(&row("bbr-bdp", "BDP=41.67 packets; steady inflight <= 3*BDP"));
        assert!(matches!(other, Some(Err(Outcome::NotRun(_)))), "{other:?}");
    }

    #[test]
    fn the_end_of_a_start_up_is_counted_in_rounds() {
        let config = config(CongestionControl::Bbr, Variant::Sack);
        let mut world = transfer(&config, 10 * MEGABIT, Duration::from_millis(50)).unwrap();
        let seen = established(watch(&mut world, 2));
        assert_eq!(full_pipe(&seen), Ok(()));
        let early: Vec<Seen> =
            seen.into_iter().filter(|seen| seen.at < 0.3 || seen.mode() != "startup").collect();
        assert!(matches!(full_pipe(&early), Err(Outcome::Differs(_))));
    }
}
