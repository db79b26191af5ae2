//! RFC 6298 (2011) that follows a sudden fall of the round trip: after a handover from a slow path to a fast one the
//! retransmission timeout is that of the fast path within four round trips.
//!
//! RFC 6298 answers a fall with a *higher* timeout. The variation counts a sample far below the average like one far
//! above it, and the average itself comes down by an eighth a sample: from 700 ms to 3.5 ms the timeout first grows to
//! more than three times the old round trip and takes about forty round trips to forget it. A loss in this time waits
//! for a timeout hundreds of round trips long (paper 000, section 7.2: from 20 s to more than 50 s while the round trip
//! fell 200-fold; its sections 8.1 and 8.2 ask for a timeout near the new round trip once several measurements in a
//! row show it, instead of adding the variance).
//!
//! # What it does
//!
//! RFC 6298 runs all the time. A *fall* is seen when [`Config::rto_evidence`] round trips in a row were at most half of SRTT, each
//! of a segment that left after the one before was measured, with nothing higher measured between. The averages
//! then begin anew as section 2.2 has it for a first measurement, with the *longest* of them: SRTT = R, RTTVAR = R/2,
//! so RTO = 3 R. That stands while it is below what RFC 6298 says, and no longer.
//!
//! # Why it is safe
//!
//! It is the timeout RFC 6298 itself has on a new connection over this path, but after four measurements instead of
//! one. Should the round trip go back up, and a measurement exceed the timeout of the fall while RFC 6298's would have
//! held, the fall was wrong: RFC 6298's timeout is in force again at once, and twice as many round trips are asked for
//! the next time. Beyond [`MOST`] times as many there is no next time - RFC 6298 has forgotten the old
//! path by then by itself. So one at a time, over the life of a connection, at most [`WRONG_FALLS`] measurements exceed
//! the timeout in force that would not have exceeded RFC 6298's, whatever the path does; a property in this file
//! holds that up. On measured paths (`careof oracle rtt`) there is none.
//!
//! # What was tried and left out
//!
//! Counting what lies below the average with an eighth of its weight in the variation, as Linux does (`linux.rs`), and
//! a fall at SRTT - RTTVAR instead of half of SRTT. A jump down is very often followed by one up; the variation that it
//! leaves behind is what keeps RFC 6298 from a timeout then: with the former, without a floor, 541 instead of 372 of
//! 15565 pings over Starlink exceeded the timeout. The latter fell more often than any path did.

use core::time::Duration;

use careof_base::Instant;

use super::{Rfc6298, Sample};
use crate::config::Config;

/// After falls that proved wrong there need to be twice as many round trips, up to so many times the first number.
const MOST: u32 = 4;
/// As many falls can prove wrong: with 4, 8 and 16 round trips.
#[cfg(test)]
const WRONG_FALLS: u32 = 3;
/// RTOs that differ by less are the same.
const SAME: Duration = Duration::from_micros(1);

/// Low round trips in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    count: u32,
    longest: Duration,
    /// When the last that counted was measured: what left before is not another round trip.
    until: Instant,
}

#[derive(Clone, Debug)]
pub(crate) struct FastDecrease {
    standard: Rfc6298,
    /// What is in force instead, after a fall.
    fallen: Option<Rfc6298>,
    run: Option<Run>,
    /// Round trips asked for at the next fall.
    evidence: u32,
    /// The most that are ever asked for.
    most: u32,
}

impl FastDecrease {
    pub(crate) fn new(config: &Config) -> Self {
        let evidence = config.rto_evidence;
        let most = evidence.saturating_mul(MOST);
        Self { standard: Rfc6298::new(config), fallen: None, run: None, evidence, most }
    }

    fn in_force(&self) -> &Rfc6298 {
        self.fallen.as_ref().unwrap_or(&self.standard)
    }

    #[inline(never)]
    pub(crate) fn sample(&mut self, sample: &Sample) {
        let rtt = sample.rtt();
        let exceeds = |estimator: &Rfc6298| rtt > estimator.base();
        if self.fallen.as_ref().is_some_and(exceeds) {
            let held = !exceeds(&self.standard);
            self.give_up_fall(held);
        }
        let low = self.in_force().srtt().is_some_and(|srtt| rtt.saturating_mul(2) <= srtt);
        self.standard.sample(sample);
        if let Some(fallen) = &mut self.fallen {
            fallen.sample(sample);
        }
        self.count(sample, low);
        if self.fallen.as_ref().is_some_and(|fallen| self.standard.base() <= fallen.base() + SAME) {
            self.fallen = None;
        }
    }

    fn count(&mut self, sample: &Sample, low: bool) {
        if !low {
            self.run = None;
            return;
        }
        let rtt = sample.rtt();
        let run = match self.run {
            None => Run { count: 1, longest: rtt, until: sample.now },
            Some(run) => {
                let another = sample.sent_at >= run.until;
                Run {
                    count: run.count + u32::from(another),
                    longest: run.longest.max(rtt),
                    until: if another { sample.now } else { run.until },
                }
            }
        };
        self.run = Some(run);
        if run.count >= self.evidence && self.evidence <= self.most {
            self.run = None;
            self.fallen = Some(self.standard.begun_with(run.longest));
        }
    }

    /// The fall is over. Where it made a timeout too short that was long enough, the next one takes more.
    fn give_up_fall(&mut self, was_wrong: bool) {
        self.fallen = None;
        self.run = None;
        if was_wrong {
            self.evidence = self.evidence.saturating_mul(2);
        }
    }

    /// RFC 4015 step 8. A timeout that proved spurious is a fall that proved wrong.
    #[inline(never)]
    pub(crate) fn adapt(&mut self, sample: &Sample, previous: (Duration, Duration)) {
        if self.fallen.is_some() {
            self.give_up_fall(true);
        }
        self.standard.adapt(sample, previous);
    }

    #[inline(never)]
    pub(crate) fn back_off(&mut self) {
        self.standard.back_off();
        if let Some(fallen) = &mut self.fallen {
            fallen.back_off();
        }
    }

    #[inline(never)]
    pub(crate) fn undo_back_off(&mut self) -> bool {
        let undone = self.standard.undo_back_off();
        if let Some(fallen) = &mut self.fallen {
            fallen.undo_back_off();
        }
        undone
    }

    #[inline(never)]
    pub(crate) fn syn_was_repeated(&mut self) {
        self.standard.syn_was_repeated();
    }

    #[inline(never)]
    pub(crate) fn rto(&self) -> Duration {
        self.in_force().rto()
    }

    #[inline(never)]
    pub(crate) fn deadline(&self, from: Instant) -> Instant {
        self.in_force().deadline(from)
    }

    #[inline(never)]
    pub(crate) fn backoff(&self) -> u32 {
        self.in_force().backoff()
    }

    #[inline(never)]
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.in_force().srtt()
    }

    #[inline(never)]
    pub(crate) fn rttvar(&self) -> Option<Duration> {
        self.in_force().rttvar()
    }
}

#[cfg(test)]
mod tests {
    use careof_wire::SeqNumber;
    use proptest::prelude::*;

    use super::*;

    fn config() -> Config {
        Config { rto_min: Some(Duration::from_millis(1)), ..Config::default() }
    }

    /// Measures one round trip after the other; returns the RTO after the last.
    fn measure(estimator: &mut FastDecrease, clock: &mut Instant, rtt: Duration) {
        let sent_at = *clock;
        *clock += rtt;
        estimator.sample(&Sample {
            sent_at,
            now: *clock,
            snd_una: SeqNumber(0),
            snd_nxt: SeqNumber(0),
            expected: 1,
            cwnd_segments: 10,
        });
    }

    fn after(rtts: &[(u32, u64)]) -> (FastDecrease, Instant) {
        let (mut estimator, mut clock) = (FastDecrease::new(&config()), Instant::ZERO);
        for &(count, micros) in rtts {
            for _ in 0..count {
                measure(&mut estimator, &mut clock, Duration::from_micros(micros));
            }
        }
        (estimator, clock)
    }

    #[test]
    fn as_many_round_trips_are_evidence_as_it_is_configured_with() {
        let mut estimator = FastDecrease::new(&Config { rto_evidence: 2, ..config() });
        let mut clock = Instant::ZERO;
        for rtt in [700_000, 700_000, 3_500] {
            measure(&mut estimator, &mut clock, Duration::from_micros(rtt));
        }
        assert!(estimator.rto() > Duration::from_secs(1), "{:?}", estimator.rto());
        measure(&mut estimator, &mut clock, Duration::from_micros(3_500));
        assert_eq!(estimator.rto(), Duration::from_micros(3 * 3_500));
    }

    #[test]
    fn four_round_trips_after_a_fall_the_rto_is_three_of_them() {
        let (three, _) = after(&[(50, 700_000), (3, 3_500)]);
        assert!(three.rto() > Duration::from_millis(1_500), "{:?}", three.rto());
        let (four, _) = after(&[(50, 700_000), (3, 3_000), (1, 3_500)]);
        assert_eq!(four.rto(), Duration::from_micros(3 * 3_500));
        assert!(four.standard.rto() > Duration::from_secs(1));
    }

    #[test]
    fn segments_of_one_flight_are_one_round_trip() {
        let (mut estimator, clock) = after(&[(50, 700_000)]);
        for late in 0..50 {
            let now = clock + Duration::from_micros(3_500 + late * 10);
            estimator.sample(&Sample {
                sent_at: clock + Duration::from_micros(late * 10),
                now,
                snd_una: SeqNumber(0),
                snd_nxt: SeqNumber(0),
                expected: 25,
                cwnd_segments: 50,
            });
        }
        assert!(estimator.fallen.is_none());
    }

    #[test]
    fn a_round_trip_that_is_not_low_breaks_the_run() {
        let (estimator, _) = after(&[(50, 700_000), (3, 3_500), (1, 500_000), (3, 3_500)]);
        assert!(estimator.fallen.is_none() && estimator.rto() > Duration::from_secs(1));
    }

    #[test]
    fn when_the_old_path_is_back_rfc_6298_is_in_force_again_and_the_next_fall_takes_twice_as_long() {
        let (mut estimator, mut clock) = after(&[(50, 700_000), (5, 3_500)]);
        assert!(estimator.fallen.is_some());
        measure(&mut estimator, &mut clock, Duration::from_millis(700));
        assert!(estimator.fallen.is_none());
        assert_eq!(estimator.rto(), estimator.standard.rto());
        for _ in 0..50 {
            measure(&mut estimator, &mut clock, Duration::from_millis(700));
        }
        for count in 1..=8 {
            assert!(estimator.fallen.is_none(), "{count}");
            measure(&mut estimator, &mut clock, Duration::from_micros(3_500));
        }
        assert!(estimator.fallen.is_some());
    }

    #[test]
    fn a_fall_ends_when_rfc_6298_has_forgotten_the_old_path() {
        let (estimator, _) = after(&[(50, 700_000), (150, 3_500)]);
        assert!(estimator.fallen.is_none());
        assert_eq!(estimator.evidence, config().rto_evidence);
        assert!(estimator.rto() < Duration::from_millis(5));
    }

    #[test]
    fn a_timeout_after_a_fall_doubles_the_short_rto() {
        let (mut estimator, _) = after(&[(50, 700_000), (4, 3_500)]);
        estimator.back_off();
        assert_eq!(estimator.rto(), Duration::from_micros(6 * 3_500));
        assert!(estimator.undo_back_off());
        assert_eq!((estimator.rto(), estimator.backoff()), (Duration::from_micros(3 * 3_500), 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn at_most_three_timeouts_are_too_short_that_rfc_6298_would_have_had_right(
            levels in prop::collection::vec((1_u64..2_000_000, 1_usize..40), 1..80),
            jitter in 0.0..0.9_f64,
            seed in any::<u64>(),
        ) {
            let mut chance = careof_base::RandomStream::new(seed, 0, "fast-decrease");
            let (mut fast, mut plain) = (FastDecrease::new(&config()), Rfc6298::new(&config()));
            let mut clock = Instant::ZERO;
            let mut too_short = 0;
            for (level, count) in levels {
                for _ in 0..count {
                    let most = (level as f64 * jitter) as u64;
                    let rtt = Duration::from_micros(level + chance.below(most + 1));
                    too_short += u32::from(rtt > fast.rto() && rtt <= plain.rto());
                    prop_assert!(fast.rto() <= plain.rto());
                    let sent_at = clock;
                    clock += rtt;
                    let sample = Sample {
                        sent_at, now: clock, snd_una: SeqNumber(0), snd_nxt: SeqNumber(0), expected: 1,
                        cwnd_segments: 10,
                    };
                    fast.sample(&sample);
                    plain.sample(&sample);
                    prop_assert_eq!(fast.standard.rto(), plain.rto());
                }
            }
            prop_assert!(too_short <= WRONG_FALLS, "{too_short}");
        }
    }
}
