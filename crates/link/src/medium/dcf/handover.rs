//! How long a station is without a link when it goes from one access point to another.

use careof_base::{DataRate, Duration, Probability, RandomStream};

use super::config::DcfConfig;
use super::times::{Times, frame};

/// Bytes of an authentication frame of the open system: header, algorithm, number and status, check sequence (IEEE 802.11-2012, clauses
/// 8.2.3, 8.3.3.11).
const AUTHENTICATION_BYTES: u16 = 24 + 6 + 4;
/// Bytes of a reassociation request: capabilities, listen interval, current access point, the longest name of a network, four rates
/// (clauses 8.3.3.7, 8.4.2.2, 8.4.2.3).
const REASSOCIATION_REQUEST_BYTES: u16 = 24 + 2 + 2 + 6 + (2 + 32) + (2 + 4) + 4;
/// Bytes of its response: capabilities, status, association number, four rates (clause 8.3.3.8).
const REASSOCIATION_RESPONSE_BYTES: u16 = 24 + 2 + 2 + 2 + (2 + 4) + 4;

/// A time unit of the standard, in which beacons are counted: 1024 microseconds (clause 3.1).
pub const TIME_UNIT: Duration = Duration::from_micros(1024);
/// What access points usually have between two beacons: 100 time units.
pub const BEACON_INTERVAL: Duration = Duration::from_micros(102_400);

/// How a station looks for access points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scan {
    /// It knows where to go.
    Known,
    /// On one channel after the other it sends a probe request, and listens for [`Scan::Active::min_channel_time`]. Where somebody has answered by
    /// then it goes on listening up to [`Scan::Active::max_channel_time`] (IEEE 802.11-2012, clause 10.1.4.3.3).
    Active {
        /// Channels.
        channels: u8,
        /// Chance that somebody answers on a channel other than that of the new access point, which does.
        answering: Probability,
        /// `MinChannelTime`.
        min_channel_time: Duration,
        /// `MaxChannelTime`.
        max_channel_time: Duration,
    },
    /// On one channel after the other it listens for a beacon interval (clause 10.1.4.2.1).
    Passive {
        /// Channels.
        channels: u8,
    },
    /// It takes so long, by whatever procedure.
    Given(PhaseLength),
}

/// The distribution of a phase's length, as somebody has measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PhaseLength {
    /// Each length between the two is as likely as another.
    Uniform {
        /// The shortest.
        least: Duration,
        /// The longest, not below `least`.
        most: Duration,
    },
    /// A normal distribution without its ends: none is below zero, or further than [`DEVIATIONS`] deviations from the mean.
    Normal {
        /// Mean of the whole distribution, which is that of what is left where the mean is [`DEVIATIONS`] deviations above zero.
        mean: Duration,
        /// Standard deviation of the whole distribution.
        deviation: Duration,
    },
}

/// Where a normal distribution ends: beyond are 3 lengths of 1,000.
pub const DEVIATIONS: u32 = 3;

impl PhaseLength {
    /// Draws one.
    pub fn draw(self, random: &mut RandomStream) -> Duration {
        match self {
            Self::Uniform { least, most } => least + random.duration_up_to(most.saturating_sub(least)),
            Self::Normal { mean, deviation } => {
                // The mean is never outside: more than half of all draws are taken.
                let deviates = loop {
                    let one = random.standard_normal();
                    let is_positive = mean.as_secs_f64() + one * deviation.as_secs_f64() >= 0.0;
                    if one.abs() <= f64::from(DEVIATIONS) && is_positive {
                        break one;
                    }
                };
                let off = deviation.mul_f64(deviates.abs());
                if deviates < 0.0 { mean.saturating_sub(off) } else { mean.saturating_add(off) }
            }
        }
    }

    /// The longest.
    #[must_use]
    pub const fn longest(self) -> Duration {
        match self {
            Self::Uniform { most, .. } => most,
            Self::Normal { mean, deviation } => mean.saturating_add(deviation.saturating_mul(DEVIATIONS)),
        }
    }
}

/// A handover of 802.11 between two access points, as Mishra, Shin and Arbaugh divide it ("An Empirical Analysis of the IEEE 802.11 MAC Layer
/// Handoff Process", ACM SIGCOMM Computer Communication Review 33(2), 2003): the station looks for access points, authenticates, and reassociates. Before
/// that it may have to notice that the old access point is gone.
///
/// Authentication (open system) and reassociation are a frame each way on a channel where nobody else sends: DIFS, a back-off from the
/// first window, the frame at 1 Mbit/s with long preamble, which every station of 2.4 GHz understands, and its acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WirelessHandover {
    /// Beacons in a row that the station misses until it takes its access point for gone; 0 if it leaves by itself.
    pub lost_beacons: u8,
    /// Between two beacons of an access point.
    pub beacon_interval: Duration,
    /// How it looks for another one.
    pub scan: Scan,
    /// What an access point thinks about a request before it answers.
    pub answer: Duration,
    /// How long it takes to notice that the access point is gone, in place of what `lost_beacons` says.
    pub detection: Option<PhaseLength>,
    /// How long authentication takes, in place of its two frames: what is authenticated may take more of them.
    pub authentication: Option<PhaseLength>,
    /// How long reassociation takes, in place of its two frames.
    pub reassociation: Option<PhaseLength>,
}

/// How long the parts of a handover last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoverPhases {
    /// Until the station knows that its access point is gone.
    pub detection: Duration,
    /// Until it knows where to go.
    pub scan: Duration,
    /// Until it has authenticated.
    pub authentication: Duration,
    /// Until it is associated.
    pub reassociation: Duration,
}

impl HandoverPhases {
    /// All of them.
    #[must_use]
    pub const fn total(&self) -> Duration {
        let before = self.detection.saturating_add(self.scan);
        before.saturating_add(self.authentication).saturating_add(self.reassociation)
    }
}

impl WirelessHandover {
    /// Draws how long a handover takes.
    pub fn draw(&self, random: &mut RandomStream) -> HandoverPhases {
        // The old access point may have sent a beacon just before it was gone, or be about to send one.
        let detection = match (self.detection, self.lost_beacons) {
            (Some(given), _) => given.draw(random),
            (None, 0) => Duration::ZERO,
            (None, lost) => self.last_beacons(lost) + random.duration_up_to(self.beacon_interval),
        };
        let scan = match self.scan {
            Scan::Known => Duration::ZERO,
            Scan::Passive { channels } => self.beacon_interval.saturating_mul(channels.into()),
            Scan::Active { channels, answering, min_channel_time, max_channel_time } => {
                let others = channels.saturating_sub(1);
                let answered = 1 + (0..others).filter(|_| random.chance(answering)).count() as u32;
                let silent = u32::from(channels).saturating_sub(answered);
                max_channel_time
                    .saturating_mul(answered)
                    .saturating_add(min_channel_time.saturating_mul(silent))
            }
            Scan::Given(length) => length.draw(random),
        };
        let mut drawn = |given: Option<PhaseLength>, bytes| match given {
            Some(length) => length.draw(random),
            None => self.exchange(bytes, &mut |window| random.below(u64::from(window) + 1)),
        };
        let authentication = drawn(self.authentication, AUTHENTICATION);
        HandoverPhases {
            detection,
            scan,
            authentication,
            reassociation: drawn(self.reassociation, REASSOCIATION),
        }
    }

    /// The longest that a handover can take.
    #[must_use]
    pub fn longest(&self) -> Duration {
        let detection = match (self.detection, self.lost_beacons) {
            (Some(given), _) => given.longest(),
            (None, 0) => Duration::ZERO,
            (None, lost) => self.last_beacons(lost).saturating_add(self.beacon_interval),
        };
        let scan = match self.scan {
            Scan::Known => Duration::ZERO,
            Scan::Passive { channels } => self.beacon_interval.saturating_mul(channels.into()),
            Scan::Active { channels, max_channel_time, .. } => {
                max_channel_time.saturating_mul(channels.into())
            }
            Scan::Given(length) => length.longest(),
        };
        let longest = |given: Option<PhaseLength>, bytes| {
            given.map_or_else(|| self.exchange(bytes, &mut u64::from), PhaseLength::longest)
        };
        let authentication = longest(self.authentication, AUTHENTICATION);
        let reassociation = longest(self.reassociation, REASSOCIATION);
        HandoverPhases { detection, scan, authentication, reassociation }.total()
    }

    /// From the first of so many missed beacons to the last.
    fn last_beacons(&self, lost: u8) -> Duration {
        self.beacon_interval.saturating_mul(u32::from(lost) - 1)
    }

    /// A request and its response, of so many bytes; `back_off` draws slots from a window.
    fn exchange(&self, bytes: [u16; 2], back_off: &mut impl FnMut(u32) -> u64) -> Duration {
        let rate = DataRate::from_megabits_per_second(1);
        let config = DcfConfig::b(rate);
        let times = Times::of(&config);
        let frames = bytes.map(|bytes| {
            let slots = back_off(config.phy.cw_min);
            let waits = times.difs + slots * times.slot;
            waits + frame(config.phy.coding, rate, bytes) + times.delay + times.sifs + times.ack + times.delay
        });
        Duration::from_nanos(frames[0] + frames[1]).saturating_add(self.answer)
    }
}

const AUTHENTICATION: [u16; 2] = [AUTHENTICATION_BYTES; 2];
const REASSOCIATION: [u16; 2] = [REASSOCIATION_REQUEST_BYTES, REASSOCIATION_RESPONSE_BYTES];

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn active(answering: f64) -> WirelessHandover {
        WirelessHandover {
            lost_beacons: 0,
            beacon_interval: BEACON_INTERVAL,
            scan: Scan::Active {
                channels: 11,
                answering: Probability::new(answering).unwrap(),
                min_channel_time: MS(20),
                max_channel_time: MS(40),
            },
            answer: Duration::ZERO,
            detection: None,
            authentication: None,
            reassociation: None,
        }
    }

    fn draws(handover: &WirelessHandover, count: usize) -> Vec<HandoverPhases> {
        let mut random = RandomStream::new(1, 0, "x");
        (0..count).map(|_| handover.draw(&mut random)).collect()
    }

    fn mean(phases: &[HandoverPhases], of: impl Fn(&HandoverPhases) -> Duration) -> f64 {
        phases.iter().map(|phases| of(phases).as_secs_f64()).sum::<f64>() / phases.len() as f64
    }

    #[test]
    fn an_active_scan_takes_the_least_time_on_silent_channels_and_the_most_on_others() {
        for (answering, expected) in [(0.0, MS(10 * 20 + 40)), (1.0, MS(11 * 40))] {
            assert!(draws(&active(answering), 20).iter().all(|phases| phases.scan == expected));
        }
        // Two of ten others answer in the mean; one scan deviates by 20 ms * sqrt(1.6), 4000 of them by 0.4 ms.
        let found = mean(&draws(&active(0.2), 4_000), |phases| phases.scan);
        assert!((found - 0.280).abs() < 0.002, "{found}");
    }

    #[test]
    fn a_passive_scan_waits_for_a_beacon_on_each_channel_and_who_knows_where_to_go_does_not_scan() {
        let passive = WirelessHandover { scan: Scan::Passive { channels: 11 }, ..active(0.0) };
        assert_eq!(draws(&passive, 1)[0].scan, Duration::from_micros(11 * 102_400));
        let known = WirelessHandover { scan: Scan::Known, ..active(0.0) };
        assert_eq!(draws(&known, 1)[0].scan, Duration::ZERO);
    }

    #[test]
    fn so_many_beacons_are_missed_from_anywhere_between_two_of_them() {
        let handover = WirelessHandover { lost_beacons: 3, ..active(0.0) };
        let phases = draws(&handover, 4_000);
        let interval = BEACON_INTERVAL;
        assert!(phases.iter().all(|phases| (2 * interval..=3 * interval).contains(&phases.detection)));
        let found = mean(&phases, |phases| phases.detection);
        assert!((found - 2.5 * interval.as_secs_f64()).abs() < 0.002, "{found}");
        assert!(draws(&active(0.0), 10).iter().all(|phases| phases.detection.is_zero()));
    }

    #[test]
    fn authentication_and_reassociation_are_a_frame_each_way() {
        let phases = draws(&active(0.0), 4_000);
        // DIFS, 15.5 slots in the mean, preamble and bytes at 1 Mbit/s, SIFS and an acknowledgement of 304 us, and 1 us each way.
        let each = |bytes: u64| (50 + 310 + 192 + 8 * bytes + 10 + 304 + 2) as f64 / 1e6;
        let found = mean(&phases, |phases| phases.authentication);
        assert!((found - 2.0 * each(34)).abs() < 2e-5, "{found}");
        let found = mean(&phases, |phases| phases.reassociation);
        assert!((found - each(78) - each(40)).abs() < 2e-5, "{found}");
        let slow = WirelessHandover { answer: MS(3), ..active(0.0) };
        assert_eq!(draws(&slow, 1)[0].authentication, phases[0].authentication + MS(3));
    }

    #[test]
    fn with_the_channel_times_of_cards_the_scan_is_most_of_a_handover() {
        // Mishra, Shin and Arbaugh: more than 90 %.
        let phases = draws(&active(0.2), 4_000);
        assert!(mean(&phases, |phases| phases.scan) > 0.9 * mean(&phases, HandoverPhases::total));
    }

    /// Mean and standard deviation in milliseconds.
    fn moments(lengths: &[Duration]) -> [f64; 2] {
        let count = lengths.len() as f64;
        let ms = |one: &Duration| 1e3 * one.as_secs_f64();
        let mean = lengths.iter().map(ms).sum::<f64>() / count;
        let variance = lengths.iter().map(|one| (ms(one) - mean).powi(2)).sum::<f64>() / count;
        [mean, variance.sqrt()]
    }

    #[test]
    fn given_lengths_have_the_moments_of_their_distribution() {
        let mut random = RandomStream::new(1, 0, "x");
        let mut drawn =
            |length: PhaseLength| (0..20_000).map(|_| length.draw(&mut random)).collect::<Vec<_>>();
        // The deviation of a uniform distribution is its width over the root of 12.
        let [mean, deviation] = moments(&drawn(PhaseLength::Uniform { least: MS(20), most: MS(60) }));
        assert!(
            (mean - 40.0).abs() < 0.3 && (deviation - 40.0 / 12f64.sqrt()).abs() < 0.2,
            "{mean} {deviation}"
        );
        // Cut at three deviations, a normal distribution keeps 0.98658 of its deviation: sqrt(1 - 6 phi(3) / (2 Phi(3) - 1)).
        let [mean, deviation] = moments(&drawn(PhaseLength::Normal { mean: MS(350), deviation: MS(60) }));
        assert!((mean - 350.0).abs() < 1.5 && (deviation - 59.2).abs() < 1.0, "{mean} {deviation}");
        // Cut at its mean from below, it is half a normal distribution: deviation * sqrt(2 / pi), save for the upper end.
        let [mean, _] = moments(&drawn(PhaseLength::Normal { mean: Duration::ZERO, deviation: MS(100) }));
        assert!((mean - 79.1).abs() < 1.5, "{mean}");
        let fixed = PhaseLength::Normal { mean: MS(7), deviation: Duration::ZERO };
        assert!(drawn(fixed).iter().all(|one| *one == MS(7)));
    }

    #[test]
    fn a_given_length_stands_in_for_its_phase_alone() {
        let given = |least, most| Some(PhaseLength::Uniform { least: MS(least), most: MS(most) });
        let handover = WirelessHandover {
            lost_beacons: 3,
            detection: given(300, 400),
            authentication: given(5, 6),
            ..active(0.2)
        };
        for phases in draws(&handover, 200) {
            assert!((MS(300)..=MS(400)).contains(&phases.detection));
            assert!((MS(5)..=MS(6)).contains(&phases.authentication));
            assert!((MS(2)..MS(5)).contains(&phases.reassociation), "{phases:?}");
            assert!((MS(240)..=MS(440)).contains(&phases.scan));
        }
    }

    #[test]
    fn nothing_takes_longer_than_the_longest() {
        for handover in [
            active(1.0),
            active(0.5),
            WirelessHandover { lost_beacons: 255, answer: MS(7), ..active(0.9) },
            WirelessHandover { scan: Scan::Passive { channels: 14 }, ..active(0.0) },
            WirelessHandover { scan: Scan::Known, ..active(0.0) },
            WirelessHandover {
                scan: Scan::Given(PhaseLength::Normal { mean: MS(350), deviation: MS(60) }),
                detection: Some(PhaseLength::Uniform { least: MS(0), most: MS(600) }),
                reassociation: Some(PhaseLength::Normal { mean: MS(3), deviation: MS(2) }),
                ..active(0.0)
            },
        ] {
            let longest = handover.longest();
            assert!(draws(&handover, 2_000).iter().all(|phases| phases.total() <= longest), "{handover:?}");
        }
        let all = active(1.0);
        let longest = all.longest() - draws(&all, 1)[0].scan;
        assert!(draws(&all, 2_000).iter().any(|phases| phases.total() - phases.scan > longest.mul_f64(0.8)));
    }
}
