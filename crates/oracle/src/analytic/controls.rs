//! Congestion controls: CUBIC and Vegas.

use std::time::Duration;

use careof_tcp::{Config, CongestionControl, InitialWindow, Variant, cubic_curve};

use super::bench::{Bench, MSS, plain};
use super::{Check, Outcome, Row, near, numbers, says, value};

pub(super) fn check(row: &Row) -> Option<Check> {
    Some(match row.id.as_str() {
        "cubic-const" => constants(row),
        "cubic-s2n" => says(row, &["K=12 s"]).and_then(|()| curve(row, 2_304.0)),
        "cubic-s2n-rounds" => Err(Outcome::Unanswerable("its round-trip time is not in the row".to_owned())),
        "cubic-fast-conv" => second_loss(row),
        "cubic-linux-ssthresh" => linux_threshold(row),
        "cubic-west" => as_reno(row),
        "cubic-target" => target(row),
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

/// A CUBIC sender that always has data, and a peer that acknowledges each segment a round trip after it left.
struct Paced {
    bench: Bench,
    rtt: Duration,
    acked: u32,
}

impl Paced {
    /// With so many segments in flight.
    fn begin(flight: u32, rtt: Duration) -> Result<Self, Outcome> {
        let config = Config {
            variant: Variant::Sack,
            congestion: CongestionControl::Cubic,
            sack: true,
            initial_window: InitialWindow::Segments(flight),
            rto_min: Some(Duration::from_secs(10)),
            ..plain()
        };
        let mut bench = Bench::connected(config, rtt)?;
        bench.write(1_000_000);
        bench.wait(rtt);
        Ok(Self { bench, rtt, acked: 0 })
    }

    /// The next acknowledgement.
    fn ack(&mut self) {
        let flight = self.bench.connection.snapshot().flight / MSS;
        self.bench.wait(self.rtt / flight.max(1));
        self.acked += 1;
        self.bench.ack(self.acked, &[]);
    }

    /// The first segment in flight is lost; a round trip later it is repaired.
    fn lose(&mut self) {
        let first = self.acked;
        (1..5).for_each(|later| drop(self.bench.ack(first, &[(first + 1, first + 1 + later)])));
        self.bench.wait(self.rtt);
        let end = self.bench.connection.snapshot().snd_nxt;
        let una = self.bench.connection.snapshot().snd_una;
        self.acked += end.bytes_since(una) / MSS;
        self.bench.ack(self.acked, &[]);
        self.bench.wait(self.rtt);
    }

    fn seconds(&self) -> f64 {
        self.bench.ms() / 1e3
    }
}

/// A loss at 100 segments, and one at 80 on the way back: the window comes to rest at the W_max of the second.
fn second_loss(row: &Row) -> Check {
    says(row, &["W_max becomes 80*(1+0.7)/2=68; ssthresh=56"])?;
    // A long round trip: with a short one the window grows as Reno's.
    let mut paced = Paced::begin(100, Duration::from_millis(500))?;
    paced.lose();
    near("ssthresh after the loss at 100", paced.bench.ssthresh(), 70.0, 0.0)?;
    while paced.bench.cwnd() < 80.0 {
        paced.ack();
    }
    paced.lose();
    near("ssthresh after a loss at 80", paced.bench.ssthresh(), 56.0, 0.5)?;
    let begun = paced.seconds();
    // K of W_max and of the window that it begins with.
    let wanted = 68.0;
    let k = ((wanted - 56.0) / 0.4_f64).cbrt();
    while paced.seconds() < begun + k {
        paced.ack();
    }
    near("the window where the curve rests", paced.bench.cwnd(), wanted, 0.5)
}

/// Where Reno would have the larger window: alpha a round trip, and one from where the loss was.
fn as_reno(row: &Row) -> Check {
    says(row, &["about beta*W_max + alpha*n; alpha becomes 1 once W_est >= W_max before the loss"])?;
    let mut paced = Paced::begin(40, Duration::from_millis(10))?;
    paced.lose();
    let begun = paced.bench.cwnd();
    near("beta*W_max", begun, 28.0, 0.0)?;
    let alpha = 9.0 / 17.0;
    let rounds = |paced: &mut Paced, count: u32| {
        for _ in 0..count {
            let end = paced.bench.connection.snapshot().snd_nxt;
            while paced.bench.connection.snapshot().snd_una.is_before(end) {
                paced.ack();
            }
        }
        paced.bench.cwnd()
    };
    // W_est is a sum of alpha/cwnd: an acknowledgement more or fewer in a round makes no more than that.
    near("the window after 20 rounds", rounds(&mut paced, 20), begun + 20.0 * alpha, 0.5)?;
    while paced.bench.cwnd() < 40.0 {
        paced.ack();
    }
    let before = paced.bench.cwnd();
    near("the window 10 rounds later", rounds(&mut paced, 10), before + 10.0, 0.5)
}

/// What each acknowledgement adds: so that the window follows the curve a round trip ahead, but no faster than half a
/// segment a segment. (That it does not shrink where the curve is below it cannot be seen: there W_est rules.)
fn target(row: &Row) -> Check {
    says(row, &["1.5*cwnd if >1.5*cwnd; else W_cubic(t+RTT); cwnd += (target-cwnd)/cwnd per ACKed segment"])?;
    let rtt = Duration::from_millis(500);
    let mut paced = Paced::begin(100, rtt)?;
    paced.lose();
    // The epoch begins with the first acknowledgement that may open the window.
    paced.ack();
    let epoch = paced.bench.now;
    for _ in 0..300 {
        let before = paced.bench.cwnd();
        paced.ack();
        let (_, ahead) = cubic_curve(100, paced.bench.now - epoch + rtt);
        near("what is added", paced.bench.cwnd() - before, (ahead - before) / before, 2e-3)?;
    }
    paced.bench.wait(Duration::from_secs(60));
    for _ in 0..3 {
        let before = paced.bench.cwnd();
        paced.bench.hear(paced.acked + 1, &[]);
        paced.acked += 1;
        near("what is added at most", paced.bench.cwnd() - before, 0.5, 1e-3)?;
    }
    Ok(())
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
