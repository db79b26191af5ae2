//! HyStart++ (RFC 9406, 2023): slow start gives way to a conservative one when round trips grow, and that to congestion
//! avoidance unless they shrink again.
//!
//! It acts in the first slow start of a connection only, as section 4.3 recommends. It opens the window by the bytes
//! acknowledged, at most L segments at a time, whatever `ack_counting` says: that is part of it.

use core::time::Duration;

use careof_wire::SeqNumber;

use super::AckSample;
use super::window::{FRACTION, Window};

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// L, segments, of a sender that does not pace.
const L: u32 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    SlowStart,
    /// Conservative slow start since this many rounds; the least round trip of the round it began in.
    Conservative {
        rounds: u32,
        baseline: Duration,
    },
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStartPlusPlus {
    phase: Phase,
    /// windowEnd: the round is over when this is acknowledged.
    window_end: SeqNumber,
    last_round: Option<Duration>,
    current_round: Option<Duration>,
    samples: u32,
}

impl HyStartPlusPlus {
    pub(crate) fn new() -> Self {
        Self {
            phase: Phase::SlowStart,
            window_end: SeqNumber(0),
            last_round: None,
            current_round: None,
            samples: 0,
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.phase != Phase::Over
    }

    /// A round begins with what is sent next.
    pub(crate) fn begin_round(&mut self, nxt: SeqNumber) {
        self.window_end = nxt;
        self.last_round = self.current_round.take();
        self.samples = 0;
    }

    /// A loss or a mark: whoever finds it sets the threshold.
    pub(crate) fn end(&mut self) {
        self.phase = Phase::Over;
    }

    pub(crate) fn on_ack(&mut self, window: &mut Window, sample: &AckSample, rtt: Duration) {
        if self.phase == Phase::Over {
            return;
        }
        if !window.in_slow_start() {
            self.end();
            return;
        }
        let current = self.current_round.map_or(rtt, |least| least.min(rtt));
        self.current_round = Some(current);
        self.samples = self.samples.saturating_add(1);
        match self.phase {
            Phase::SlowStart if self.samples >= N_RTT_SAMPLE => {
                let Some(last) = self.last_round else { return self.pass(window, sample) };
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last + threshold {
                    self.phase = Phase::Conservative { rounds: 0, baseline: current };
                }
            }
            Phase::Conservative { baseline, .. } if self.samples >= N_RTT_SAMPLE && current < baseline => {
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
        self.pass(window, sample);
    }

    /// The end of a round; the one that conservative slow start began in counts.
    fn pass(&mut self, window: &mut Window, sample: &AckSample) {
        if sample.una.is_before(self.window_end) {
            return;
        }
        self.begin_round(sample.nxt);
        if let Phase::Conservative { rounds, .. } = &mut self.phase {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                window.set_ssthresh(window.cwnd());
                self.end();
            }
        }
    }

    /// Sections 4.2: L segments at most, a quarter of it in conservative slow start.
    pub(crate) fn grow(&self, window: &mut Window, acked: u32) {
        let increment = u64::from(acked.min(L * window.mss())) << FRACTION;
        let divisor = if self.phase == Phase::SlowStart { 1 } else { CSS_GROWTH_DIVISOR };
        window.open(increment / divisor);
    }
}

#[cfg(test)]
mod tests {
    use careof_base::Instant;

    use super::*;
    use crate::config::Config;

    /// A sender in its first slow start; each segment is acknowledged by itself.
    struct Sender {
        window: Window,
        hystart: HyStartPlusPlus,
        una: SeqNumber,
        nxt: SeqNumber,
    }

    impl Sender {
        fn new(segments: u32) -> Self {
            let mut window = Window::new(&Config { mss: 1_000, ..Config::default() });
            window.set(segments * 1_000);
            let mut hystart = HyStartPlusPlus::new();
            let una = SeqNumber(1);
            let nxt = una.plus(segments * 1_000);
            hystart.begin_round(nxt);
            Self { window, hystart, una, nxt }
        }

        /// A round with round trips of `rtt` ms; returns how many were acknowledged and by how many the window grew.
        fn round(&mut self, rtt: u64) -> (u32, u32) {
            let (end, una, before) = (self.hystart.window_end, self.una, self.window.segments());
            while self.una.is_before(end) {
                let rtt = Duration::from_millis(rtt);
                self.una = self.una.plus(1_000);
                let sample = AckSample {
                    now: Instant::ZERO,
                    acked: 1_000,
                    delivered: 0,
                    rtt: Some(rtt),
                    srtt: Some(rtt),
                    una: self.una,
                    nxt: self.nxt,
                    window_limited: true,
                    predicted: false,
                };
                self.hystart.on_ack(&mut self.window, &sample, rtt);
                if self.window.in_slow_start() {
                    self.hystart.grow(&mut self.window, 1_000);
                }
                while self.nxt.bytes_since(self.una) + 1_000 <= self.window.cwnd() {
                    self.nxt = self.nxt.plus(1_000);
                }
            }
            (self.una.bytes_since(una) / 1_000, self.window.segments() - before)
        }

        fn rounds(&mut self, rtts: &[u64]) {
            for &rtt in rtts {
                self.round(rtt);
            }
        }
    }

    #[test]
    fn without_a_longer_round_trip_it_is_slow_start() {
        // 55 and 60 ms are not an eighth more than the round before.
        for rtts in [[50, 50, 50, 50], [50, 55, 60, 66]] {
            let mut sender = Sender::new(10);
            for rtt in rtts {
                let (acknowledged, grown) = sender.round(rtt);
                assert_eq!(acknowledged, grown);
            }
            assert!(sender.window.segments() > 100 && sender.hystart.is_active());
        }
    }

    #[test]
    fn a_round_trip_longer_by_an_eighth_slows_the_growth_to_a_quarter() {
        let mut sender = Sender::new(16);
        sender.rounds(&[50, 50]);
        // Eight samples are taken before it is believed.
        let (acknowledged, grown) = sender.round(57);
        assert_eq!(grown, 7 + (acknowledged - 7) / 4);
        assert!(matches!(sender.hystart.phase, Phase::Conservative { rounds: 1, .. }));
        assert_eq!(sender.window.ssthresh(), u32::MAX);
    }

    #[test]
    fn five_conservative_rounds_end_slow_start() {
        let mut sender = Sender::new(16);
        sender.rounds(&[50, 50, 60, 60, 60, 60]);
        assert!(sender.hystart.is_active());
        sender.round(60);
        assert!(!sender.hystart.is_active());
        assert_eq!(sender.window.ssthresh(), sender.window.cwnd());
    }

    #[test]
    fn a_round_trip_that_shrinks_again_resumes_slow_start() {
        let mut sender = Sender::new(16);
        sender.rounds(&[50, 50, 60]);
        let (acknowledged, grown) = sender.round(50);
        assert_eq!(sender.hystart.phase, Phase::SlowStart);
        // Seven at a quarter, the others whole.
        assert!(grown.abs_diff(acknowledged - 7 + 7 / 4) <= 1, "{grown} by {acknowledged}");
    }

    #[test]
    fn seven_samples_are_too_few() {
        let mut sender = Sender::new(7);
        sender.hystart.last_round = Some(Duration::from_millis(50));
        sender.round(200);
        assert_eq!(sender.hystart.phase, Phase::SlowStart);
    }

    #[test]
    fn one_acknowledgement_counts_for_eight_segments_at_most() {
        let sender = Sender::new(10);
        let mut window = sender.window.clone();
        sender.hystart.grow(&mut window, 20_000);
        assert_eq!(window.segments(), 18);
    }

    #[test]
    fn a_loss_ends_it_for_good() {
        let mut sender = Sender::new(16);
        sender.hystart.end();
        sender.window.set_ssthresh(8_000);
        assert!(!sender.hystart.is_active());
    }
}
