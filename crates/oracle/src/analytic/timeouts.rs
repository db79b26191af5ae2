//! Retransmission timeouts: RFC 6298 and its neighbours.

use std::time::Duration;

use careof_tcp::{Config, Event, InitialWindow, Wake};

use super::bench::{Bench, MSS, plain, repeated};
use super::{Check, Outcome, Row, expect, near, numbers, says, value};

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "rto-initial" => initial(row),
        "rto-syn-lost" => syn_lost(row),
        "rto-outage" => outage(row),
        "rto-karn" => karn(),
        "rto-restart" => restart(),
        "rto-stop" => stop(),
        "rttm-7323" => gains(row),
        "user-timeout" => user_timeout(row),
        "lcd" => lcd(row),
        id if id.starts_with("rto-backoff-max") => back_off(row),
        id if id.starts_with("rto-") && row.inputs.starts_with("samples_ms=") => samples(row),
        _ => return None,
    })
}

const MS: f64 = 1e-3;

fn ms(millis: f64) -> Duration {
    Duration::from_nanos((millis * 1e6).round() as u64)
}

/// A sender whose timeout is `rto` from the beginning: the floor.
fn with_rto(rto: Duration, max: Duration, change: impl FnOnce(&mut Config)) -> Result<Bench, Outcome> {
    let mut config = Config { rto_min: Some(rto), rto_max: Some(max), ..plain() };
    change(&mut config);
    Bench::connected(config, Duration::from_millis(1))
}

/// Round trips of the handshake and of segments sent one by one; timers are held, so that a long one is a sample too.
fn samples(row: &Row) -> Check {
    let list = row.inputs.trim_start_matches("samples_ms=").split(" G=").next().unwrap_or_default();
    let samples = numbers(list);
    let Some((&handshake, samples)) = samples.split_first() else {
        return Err(Outcome::NotRun("the row has no samples".to_owned()));
    };
    let measure = |floor: Duration| {
        let config = Config { rto_min: Some(floor), ..plain() };
        let mut bench = Bench::connected(config, ms(handshake))?;
        for (count, &sample) in (1..).zip(samples) {
            bench.write(1);
            bench.wait(ms(sample));
            bench.ack(count, &[]);
        }
        Ok::<_, Outcome>(bench)
    };
    let free = measure(Duration::from_nanos(1))?;
    let floored = measure(Duration::from_secs(1))?;
    let state = free.connection.snapshot();
    let span = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
    // The table is rounded to its last digit, and time here to 1e-6 ms.
    let tolerance = numbers(&row.tolerance).first().copied().unwrap_or(0.0);
    for (name, found, rounding) in [
        ("srtt", span(state.srtt), 1.1e-6),
        ("rttvar", span(state.rttvar), 1.1e-6),
        ("rto", free.rto(), 1.1e-6),
        ("rto_floor1s", floored.rto(), 6e-4),
    ] {
        near(name, found, value(&row.expected, name)?, tolerance.min(1e-6) + rounding)?;
    }
    Ok(())
}

fn initial(row: &Row) -> Check {
    let bench = Bench::syn_sent(Config { rto_min: None, ..plain() })?;
    near("rto", bench.rto(), value(&row.expected, "rto")?, 0.0)
}

fn syn_lost(row: &Row) -> Check {
    let mut bench = Bench::syn_sent(Config { rto_min: None, ..plain() })?;
    bench.run(Duration::from_millis(1_500));
    bench.answer();
    near("rto", bench.rto(), value(&row.expected, "rto")?, 0.0)
}

/// When the timer runs out, in seconds after it was armed.
fn expiries(rto: Duration, max: Duration, count: usize) -> Result<Vec<f64>, Outcome> {
    let mut bench = with_rto(rto, max, |config| config.max_retransmissions = 100)?;
    bench.write(1);
    let begun = bench.ms();
    (0..count)
        .map(|_| {
            bench.expire()?;
            Ok((bench.ms() - begun) * MS)
        })
        .collect()
}

fn back_off(row: &Row) -> Check {
    let max = value(&row.inputs, "max")?;
    let list = row.expected.split("t=").nth(1).unwrap_or_default().split(" s").next().unwrap_or_default();
    let wanted = numbers(list);
    let found = expiries(ms(value(&row.inputs, "rto")? * 1e3), ms(max * 1e3), wanted.len())?;
    expect("times", found.iter().map(|at| at.round()).collect::<Vec<_>>(), wanted)
}

fn outage(row: &Row) -> Check {
    let cases: Vec<&str> =
        row.expected.split(';').filter(|case| case.contains("R=") && case.contains("->")).collect();
    if cases.is_empty() {
        return Err(Outcome::NotRun("the row has no cases R=..,B=..".to_owned()));
    }
    for case in cases {
        let (rto, length) = (value(case, "R")?, value(case, "B")?);
        let times = expiries(ms(rto * 1e3), Duration::from_secs(120), 20)?;
        let first = times.iter().position(|&at| at >= length - 1e-9).ok_or("none".to_owned())?;
        near("n", (first + 1) as f64, value(case, "n")?, 0.0)?;
        near("t", times[first], value(case, " t").or_else(|_| value(case, "t"))?, 1e-9)?;
    }
    Ok(())
}

fn karn() -> Check {
    let mut bench = with_rto(Duration::from_millis(100), Duration::from_secs(60), |_| {})?;
    bench.write(1);
    bench.expire()?;
    let (samples, backed_off) = (bench.connection.counters().rtt_samples, bench.rto());
    near("rto after a timeout", backed_off, 200.0, 0.0)?;
    bench.wait(Duration::from_millis(5));
    bench.ack(1, &[]);
    expect("samples", bench.connection.counters().rtt_samples, samples)?;
    near("rto after the ACK", bench.rto(), backed_off, 0.0)?;
    bench.write(1);
    bench.wait(Duration::from_millis(5));
    bench.ack(2, &[]);
    expect("samples", bench.connection.counters().rtt_samples, samples + 1)?;
    near("rto after new data", bench.rto(), 100.0, 0.0)
}

fn restart() -> Check {
    let config = |config: &mut Config| config.initial_window = InitialWindow::Segments(2);
    let mut bench = with_rto(Duration::from_millis(300), Duration::from_secs(60), config)?;
    bench.write(2);
    bench.wait(Duration::from_millis(50));
    bench.ack(1, &[]);
    let due = bench.connection.next_timeout();
    expect("timer", due, Some((bench.now + Duration::from_millis(300), Wake::Retransmission)))
}

fn stop() -> Check {
    let mut bench = with_rto(Duration::from_millis(300), Duration::from_secs(60), |_| {})?;
    bench.write(1);
    bench.ack(1, &[]);
    expect("timer", bench.connection.next_timeout(), None)
}

/// Twenty segments in flight; the first acknowledgement is one of ten samples expected.
fn gains(row: &Row) -> Check {
    says(row, &["FlightSize=20*SMSS -> 10 samples, alpha'=1/80, beta'=1/40"])?;
    let config = Config {
        timestamps: true,
        mss: MSS as u16 + 12,
        initial_window: InitialWindow::Segments(20),
        rto_min: Some(Duration::from_secs(10)),
        ..plain()
    };
    let mut bench = Bench::connected(config, Duration::from_millis(100))?;
    bench.write(20);
    bench.wait(Duration::from_millis(180));
    bench.ack(1, &[]);
    let state = bench.connection.snapshot();
    let span = |span: Option<Duration>| span.map_or(f64::NAN, |span| span.as_secs_f64() * 1e3);
    near("srtt", span(state.srtt), 101.0, 1e-5)?;
    near("rttvar", span(state.rttvar), 50.0 + (80.0 - 50.0) / 40.0, 1e-5)
}

fn user_timeout(row: &Row) -> Check {
    says(row, &["abort at the first RTO expiry at or after 3 s"])?;
    let mut bench = with_rto(Duration::from_millis(250), Duration::from_secs(60), |config| {
        config.user_timeout = Some(Duration::from_secs(3));
    })?;
    bench.write(1);
    let begun = bench.ms();
    // 0.25 s doubled: 0.25, 0.75, 1.75, 3.75 s.
    bench.run(Duration::from_millis(3_749));
    expect("gone before 3.75 s", bench.connection.is_closed(), false)?;
    bench.run(Duration::from_millis(2));
    expect("given up", bench.events.contains(&Event::GivenUp), true)?;
    near("time, about", (bench.ms() - begun) * MS, 3.751, 1e-6)
}

/// Four timeouts in a row, then an ICMP message that quotes the segment.
fn lcd(row: &Row) -> Check {
    says(row, &["BACKOFF_CNT=3, RTO=8 s; if that RTO has already elapsed: retransmit now"])?;
    let backed_off = || {
        let mut bench = with_rto(Duration::from_secs(1), Duration::from_secs(120), |config| {
            config.icmp_unreachable = true;
        })?;
        bench.write(1);
        (0..4).try_for_each(|_| bench.expire().map(drop))?;
        near("RTO after four timeouts", bench.rto(), 16_000.0, 0.0)?;
        Ok::<_, Outcome>(bench)
    };
    for (later, at_once) in [(1, false), (9, true)] {
        let mut bench = backed_off()?;
        bench.wait(Duration::from_secs(later));
        let una = bench.connection.snapshot().snd_una;
        bench.connection.icmp_unreachable(bench.now, una);
        let sent = repeated(&bench.run(Duration::ZERO));
        let more = repeated(&bench.take());
        expect("repeated at once", sent.len() + more.len() > 0, at_once)?;
        if !at_once {
            near("RTO", bench.rto(), 8_000.0, 0.0)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_prediction_is_found() {
        let row = |expected: &str| Row {
            id: "rto-x-1".to_owned(),
            source: String::new(),
            inputs: "samples_ms=100.0,100.0 G=1ms".to_owned(),
            expected: expected.to_owned(),
            tolerance: "1e-6 ms".to_owned(),
        };
        let good = "srtt=100.000000 rttvar=37.500000 rto=250.000000 rto_floor1s=1000.000";
        assert_eq!(check(&row(good)), Some(Ok(())));
        for wrong in
            [good.replace("37.5", "37.50001"), good.replace("=250", "=251"), good.replace("=1000", "=1001")]
        {
            assert!(matches!(check(&row(&wrong)), Some(Err(Outcome::Differs(_)))), "{wrong}");
        }
        assert!(matches!(check(&row("srtt=100.0")), Some(Err(Outcome::NotRun(_)))));
        assert_eq!(repeated(&[]), Vec::<u32>::new());
    }
}
