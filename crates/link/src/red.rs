//! Random early detection.
//!
//! Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM Transactions on
//! Networking 1(4), 1993: the detailed algorithm of section 4, with its correction of the average for idle times
//! and its count of packets since the last drop (method 2 of section 7); and Floyd's "gentle" slope of 2000.
//! The queue marks ECN-capable packets instead of dropping them where it is told to, but not those beyond the upper end
//! of the slope (RFC 3168 section 7). Left out: the variant that measures in bytes.

use careof_base::{Instant, RandomStream};

use crate::config::RedConfig;

/// The average queue, and the count since the last drop.
/// What RED decides about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Pass,
    Mark,
    Drop,
}

#[derive(Clone, Debug)]
pub(crate) struct Red {
    config: RedConfig,
    /// Nanoseconds the link takes for a mean packet: the paper's `s`. Infinite when nothing moves.
    packet_nanos: f64,
    /// `avg`, in packets.
    average: f64,
    /// `count`: packets since the last drop while the average was above `minth`; -1 below it.
    count: i64,
    /// `q_time`: since when the link has had nothing to send.
    idle_since: Option<Instant>,
}

impl Red {
    /// For a link that has been idle since `now` and takes `packet_nanos` for a mean packet.
    pub(crate) fn new(config: RedConfig, packet_nanos: f64, now: Instant) -> Self {
        Self { config, packet_nanos, average: 0.0, count: -1, idle_since: Some(now) }
    }

    /// Takes on other parameters and keeps the average.
    pub(crate) fn reconfigure(&mut self, config: RedConfig, packet_nanos: f64) {
        self.config = config;
        self.packet_nanos = packet_nanos;
    }

    /// The link has nothing left to send.
    pub(crate) fn becomes_idle(&mut self, now: Instant) {
        self.idle_since.get_or_insert(now);
    }

    /// What becomes of the packet that arrives at a queue of `length` packets (not counting the one being sent).
    /// Where it `may_mark`, the drops by chance are marks.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        length: usize,
        may_mark: bool,
        stream: &mut RandomStream,
    ) -> Judgement {
        let was_idle = self.update_average(now, length);
        if !self.decide(stream) {
            return Judgement::Pass;
        }
        if may_mark && self.average < self.last() {
            return Judgement::Mark;
        }
        if was_idle {
            self.idle_since = Some(now);
        }
        Judgement::Drop
    }

    /// The average queue beyond which chance has no say.
    fn last(&self) -> f64 {
        let high = f64::from(self.config.max_threshold);
        if self.config.gentle { 2.0 * high } else { high }
    }

    /// Returns whether the link was idle.
    fn update_average(&mut self, now: Instant, length: usize) -> bool {
        let weight = self.config.weight;
        let Some(since) = self.idle_since.take() else {
            self.average += weight * (length as f64 - self.average);
            return false;
        };
        // m packets could have been sent; the average decays as if it had seen an empty queue m times.
        let idle = now.as_nanos().saturating_sub(since.as_nanos());
        if idle > 0 {
            self.average *= libm::pow(1.0 - weight, idle as f64 / self.packet_nanos);
        }
        true
    }

    fn decide(&mut self, stream: &mut RandomStream) -> bool {
        if self.average < f64::from(self.config.min_threshold) {
            self.count = -1;
            return false;
        }
        self.count += 1;
        let dropped = self.average >= self.last() || stream.unit() < self.spread(self.probability());
        if dropped {
            self.count = 0;
        }
        dropped
    }

    /// `p_b`: the probability by the average alone, between `minth` and where everything is dropped.
    fn probability(&self) -> f64 {
        let (low, high) = (f64::from(self.config.min_threshold), f64::from(self.config.max_threshold));
        let max = self.config.max_probability.get();
        if self.average < high {
            max * (self.average - low) / (high - low)
        } else {
            max + (1.0 - max) * (self.average - high) / high
        }
    }

    /// `p_a`: `p_b` raised with each packet since the last drop, so that drops are spread evenly.
    fn spread(&self, probability: f64) -> f64 {
        let rest = 1.0 - self.count as f64 * probability;
        if rest > 0.0 { probability / rest } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;
    use super::*;
    use alloc::vec::Vec;
    use careof_base::Probability;

    fn config(max_probability: f64) -> RedConfig {
        RedConfig {
            max_probability: Probability::new(max_probability).expect("a probability"),
            ..RedConfig::default()
        }
    }

    /// A busy link with this average.
    fn red(config: RedConfig, average: f64) -> Red {
        Red { average, idle_since: None, ..Red::new(config, 1e6, Instant::ZERO) }
    }

    #[test]
    fn the_average_follows_a_step_as_an_exponential() {
        let mut red = red(RedConfig { min_threshold: 50, max_threshold: 100, ..config(0.1) }, 0.0);
        let mut stream = RandomStream::new(1, 0, "red");
        for n in 1..=2_000 {
            assert_eq!(red.judge(Instant::ZERO, 20, false, &mut stream), Judgement::Pass);
            let expected = 20.0 * (1.0 - 0.998_f64.powi(n));
            assert!((red.average - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn the_average_decays_over_an_idle_time_by_the_packets_missed() {
        let mut red = red(config(0.1), 4.0);
        red.becomes_idle(Instant::from_secs(1));
        // Idle since the first report, not the last.
        red.becomes_idle(Instant::from_secs(2));
        let mut stream = RandomStream::new(1, 0, "red");
        // 3 s at 1 ms a packet: 3000 packets missed.
        assert_eq!(red.judge(Instant::from_secs(4), 0, false, &mut stream), Judgement::Pass);
        let expected = 4.0 * 0.998_f64.powi(3_000);
        assert!((red.average - expected).abs() < 1e-9, "{}", red.average);
    }

    #[test]
    fn a_packet_dropped_by_an_idle_link_leaves_it_idle() {
        let mut red = red(RedConfig { gentle: false, ..config(0.1) }, 100.0);
        red.becomes_idle(Instant::ZERO);
        let mut stream = RandomStream::new(1, 0, "red");
        assert_eq!(red.judge(Instant::from_millis(10), 0, false, &mut stream), Judgement::Drop);
        red.judge(Instant::from_millis(510), 0, false, &mut stream);
        let expected = 100.0 * 0.998_f64.powi(510);
        assert!((red.average - expected).abs() < 1e-9, "{}", red.average);
    }

    /// Share of packets dropped while the average stands still, and the gaps between drops.
    fn standing(config: RedConfig, average: f64, packets: u32) -> (f64, Vec<u32>) {
        let mut red = red(RedConfig { weight: 0.0, ..config }, average);
        let mut stream = RandomStream::new(9, 0, "red.standing");
        let (mut gaps, mut gap) = (Vec::new(), 0);
        for _ in 0..packets {
            gap += 1;
            if red.judge(Instant::ZERO, 0, false, &mut stream) == Judgement::Drop {
                gaps.push(gap);
                gap = 0;
            }
        }
        (gaps.len() as f64 / f64::from(packets), gaps)
    }

    #[test]
    fn the_share_dropped_rises_linearly_between_the_thresholds() {
        for (average, p_b) in [(6.0, 0.01), (10.0, 0.05), (14.0, 0.09)] {
            let (share, gaps) = standing(config(0.1), average, 400_000);
            // The algorithm counts a packet before it computes p_a from the count, so gaps are uniform over
            // 1..=1/p_b - 1 and not, as section 7 has it, over 1..=1/p_b.
            let mean = 1.0 / p_b / 2.0;
            assert!((share * mean - 1.0).abs() < 0.02, "{share} at {average}");
            let longest = gaps.iter().skip(1).max().copied().unwrap_or(0);
            assert!(f64::from(longest) <= 1.0 / p_b + 1e-9, "a gap of {longest}");
        }
    }

    #[test]
    fn the_gentle_slope_ends_in_certainty_at_twice_the_threshold() {
        let p_b = |gentle, average| red(RedConfig { gentle, ..config(0.1) }, average).probability();
        assert!((p_b(true, 15.0) - 0.1).abs() < 1e-12);
        assert!((p_b(true, 22.5) - 0.55).abs() < 1e-12);
        assert!((standing(RedConfig { gentle: true, ..config(0.1) }, 30.0, 100).0 - 1.0).abs() < 1e-12);
        assert!((standing(RedConfig { gentle: false, ..config(0.1) }, 15.0, 100).0 - 1.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_is_dropped_below_the_lower_threshold() {
        assert!(standing(config(1.0), 4.999, 10_000).1.is_empty());
    }

    #[test]
    fn what_may_be_marked_is_marked_as_often_as_it_would_be_dropped_but_not_beyond_the_slope() {
        let judge = |average, may_mark| {
            let mut red = red(RedConfig { weight: 0.0, ..config(0.1) }, average);
            let mut stream = RandomStream::new(9, 0, "red.standing");
            (0..10_000).map(|_| red.judge(Instant::ZERO, 0, may_mark, &mut stream)).collect::<Vec<_>>()
        };
        let count = |judged: &[Judgement], one| judged.iter().filter(|found| **found == one).count();
        let (marks, drops) = (judge(10.0, true), judge(10.0, false));
        assert_eq!(count(&marks, Judgement::Mark), count(&drops, Judgement::Drop));
        assert_eq!(count(&marks, Judgement::Drop), 0);
        assert_eq!(count(&judge(30.0, true), Judgement::Drop), 10_000);
    }

    #[test]
    fn a_marked_packet_ends_the_idle_time() {
        let mut red = red(RedConfig { max_probability: Probability::ONE, ..config(1.0) }, 14.999);
        red.becomes_idle(Instant::ZERO);
        let mut stream = RandomStream::new(1, 0, "red");
        assert_eq!(red.judge(Instant::ZERO, 0, true, &mut stream), Judgement::Mark);
        assert_eq!(red.idle_since, None);
    }
}
