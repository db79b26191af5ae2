//! Congestion controls: CUBIC and Vegas.

use std::time::Duration;

use careof_tcp::{Config, CongestionControl, InitialWindow, Variant, cubic_curve};

use super::bench::{Bench, MSS, plain};
use super::{Check, Outcome, Row, near, numbers, says, value};

pub(super) fn check(row: &Row) -> Option<Check> {
    let inside = |test: &str| {
        Err(Outcome::NotRun(format!(
            "it asks for what no user sees; `cargo test -p careof-tcp {test}` holds it"
        )))
    };
    Some(match row.id.as_str() {
        "cubic-const" => constants(row),
        "cubic-s2n" => says(row, &["K=12 s"]).and_then(|()| curve(row, 2_304.0)),
        "cubic-s2n-rounds" => Err(Outcome::NotRun("its round-trip time is not in the row".to_owned())),
        "cubic-fast-conv" => second_loss(row),
        "cubic-linux-ssthresh" => linux_threshold(row),
        "cubic-west" | "cubic-target" => inside("cubic"),
        "vegas" => vegas(row),
        id if id.starts_with("cubic-W") => match value(&row.inputs, "W_max") {
            Ok(w_max) => curve(row, w_max),
            Err(outcome) => Err(outcome),
        },
        _ => return None,
    })
}

fn seconds(t: f64) -> Duration {
    Duration::from_nanos((t * 1e9).round() as u64)
}

/// K and the points `W(t)=..` of the curve after a loss at `lost_at` segments.
fn curve(row: &Row, lost_at: f64) -> Check {
    let tolerance = row.tolerance.parse::<f64>().unwrap_or(1e-4).max(1e-5);
    let at = |t: f64| cubic_curve(lost_at as u32, seconds(t));
    near("K", at(0.0).0.as_secs_f64(), value(&row.expected, "K")?, tolerance)?;
    let mut points = 0;
    for point in row.expected.split("W(").skip(1).filter(|point| point.contains(")=")) {
        let pair = numbers(point.split_whitespace().next().unwrap_or_default());
        let [t, wanted] = pair[..] else { continue };
        // Printed with one digit in s2n-quic's table, with four in the others.
        let digits = if row.id.contains("s2n") { 0.05 } else { tolerance };
        // t is rounded to four digits as well.
        let of_time = (at(t + 5e-5).1 - at((t - 5e-5).max(0.0)).1).abs() / 2.0;
        near(&format!("W({t})"), at(t).1, wanted, digits + of_time)?;
        points += 1;
    }
    if points == 0 { Err(Outcome::NotRun("the row has no points W(t)=..".to_owned())) } else { Ok(()) }
}

/// A flight of that many segments, the first of which is lost: the threshold in segments.
fn threshold_after_loss(variant: Variant, flight: u32) -> Result<f64, Outcome> {
    let config = Config {
        variant,
        congestion: CongestionControl::Cubic,
        sack: true,
        initial_window: InitialWindow::Segments(flight),
        rto_min: Some(Duration::from_secs(1)),
        ..plain()
    };
    let mut bench = Bench::connected(config, Duration::from_millis(100))?;
    bench.write(flight);
    bench.wait(Duration::from_millis(100));
    (1..5).for_each(|segment| drop(bench.ack(0, &[(1, segment + 1)])));
    Ok(bench.ssthresh())
}

fn constants(row: &Row) -> Check {
    says(row, &["C=0.4 beta=0.7 alpha_cubic=3*(1-beta)/(1+beta)"])?;
    let beta = threshold_after_loss(Variant::Sack, 1_000)? / 1_000.0;
    near("beta", beta, value(&row.expected, "beta")?, 1e-3)?;
    let (k, _) = cubic_curve(1_000, Duration::ZERO);
    // A second behind K the curve is C above W_max.
    let (_, above) = cubic_curve(1_000, k + Duration::from_secs(1));
    near("C", above - 1_000.0, value(&row.expected, "C")?, 1e-4)
}

fn linux_threshold(row: &Row) -> Check {
    for (flight, wanted) in numbers(&row.inputs).into_iter().zip(numbers(&row.expected)) {
        near("ssthresh", threshold_after_loss(Variant::Linux, flight as u32)?, wanted, 0.0)?;
    }
    Ok(())
}

/// A loss at 100 segments, and one at 80 on the way back.
fn second_loss(row: &Row) -> Check {
    says(row, &["W_max becomes 80*(1+0.7)/2=68; ssthresh=56"])?;
    near("ssthresh after a loss at 80", threshold_after_loss(Variant::Sack, 80)?, 56.0, 0.0)?;
    Err(Outcome::NotRun(
        "ssthresh is 56; the new W_max is what no user sees: `cargo test -p careof-tcp cubic` holds it"
            .to_owned(),
    ))
}

/// Twenty segments a round trip: by how much the window moves in one, once the delay has grown.
fn vegas(row: &Row) -> Check {
    says(row, &["<alpha(2): cwnd+1; RTT=60 -> 3.3333: hold; RTT=70 -> 5.7143 >beta(4): cwnd-1"])?;
    for (rtt, wanted) in [(55, 1.0), (60, 0.0), (70, -1.0)] {
        let config = Config {
            variant: Variant::Linux,
            congestion: CongestionControl::Vegas,
            sack: true,
            // The first round trip finds no queue and adds one.
            initial_window: InitialWindow::Segments(19),
            initial_ssthresh: 19 * MSS,
            rto_min: Some(Duration::from_secs(1)),
            ..plain()
        };
        let mut bench = Bench::connected(config, Duration::from_millis(50))?;
        bench.write(100_000);
        let mut acked = 0;
        let mut round = |bench: &mut Bench, rtt: u64| {
            let end = bench.connection.snapshot().snd_nxt;
            bench.wait(Duration::from_millis(rtt));
            while bench.connection.snapshot().snd_una.is_before(end) {
                acked += 1;
                bench.hear(acked, &[]);
            }
            bench.take();
            bench.cwnd()
        };
        round(&mut bench, 50);
        let before = round(&mut bench, rtt);
        let after = round(&mut bench, rtt);
        near(&format!("the change of cwnd at {rtt} ms from {before}"), after - before, wanted, 0.0)?;
    }
    Ok(())
}
