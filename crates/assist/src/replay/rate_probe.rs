//! The rate of a path, found by what is acknowledged of what is released at a pace.
//!
//! A rate that somebody has given, or that another path had, is a first guess. While released packets are acknowledged as fast as the first
//! ones were, there is no queue, and the path takes more: the pace rises by a quarter in the first round trip of acknowledgements, and after
//! that doubles each, as in slow start. When a queue stands (as HyStart has it, Ha and Rhee 2008) or something is lost, the pace stays, and
//! what arrives is measured: if it is less than the pace, and the queue
//! still stands, that is the rate (delivery rates as in draft-cheng-iccrg-delivery-rate-estimation),
//! else the pace goes on rising. A rate that was found is tried again after some time, for radios change theirs, and a lost packet makes
//! a rate look lower than it is.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::keeping::{Kept, Sent};

use super::DELAYED_ACK;

/// So many packets of one pace are measured, and a round trip of them.
const PACKETS: u32 = 8;
/// After so many round trips a rate that was found is tried again.
const AGAIN: u32 = 8;

/// What has arrived of the released packets since the last time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) packets: u32,
    pub(crate) bytes: u64,
    /// When the latest of them was released.
    pub(crate) released: Instant,
}

impl Arrived {
    /// Another one has arrived, if that is clear.
    pub(crate) fn add(so_far: &mut Option<Self>, kept: &Kept, left_is_lost: bool) {
        let Some(Sent { at: released, .. }) = kept.clearly_released(left_is_lost) else { return };
        let arrived = so_far.get_or_insert(Self { packets: 0, bytes: 0, released });
        arrived.packets += 1;
        arrived.bytes += u64::from(kept.size);
        arrived.released = arrived.released.max(released);
    }
}

/// The search for a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateProbe {
    /// Present pace, bit/s; 0: none, for nothing is known.
    pace: u64,
    stage: Stage,
    /// The pace is still the guess.
    is_guess: bool,
}

/// How far the search is.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// The pace rises with what arrives: in the first round trip by a quarter, after that it doubles in each.
    Rising { carefully_until: Option<Instant> },
    /// A queue stands: what was released `since` is measured, from the `first` arrival of it on.
    Measuring { since: Instant, first: Option<Instant>, packets: u32, bytes: u64 },
    /// The path was found not to be faster.
    Found { at: Instant },
}

impl RateProbe {
    pub(super) const fn new(guess: u64) -> Self {
        Self { pace: guess, stage: Stage::Rising { carefully_until: None }, is_guess: true }
    }

    /// Another guess, unless the path has said something itself.
    pub(super) const fn guess(&mut self, guess: u64) {
        if self.is_guess {
            self.pace = guess;
        }
    }

    /// The pace, if there is any.
    pub(super) fn pace(&self) -> Option<DataRate> {
        (self.pace > 0).then(|| DataRate::from_bits_per_second(self.pace))
    }

    fn measure(&mut self, now: Instant) {
        self.stage = Stage::Measuring { since: now, first: None, packets: 0, bytes: 0 };
    }

    /// Something that was released is lost.
    pub(super) fn lost(&mut self, now: Instant) {
        if let Stage::Rising { .. } = self.stage {
            self.measure(now);
        }
    }

    /// Whether what has arrived took longer than where no queue stands.
    fn queue_stands(&self, now: Instant, arrived: &Arrived, round_trip: Duration) -> bool {
        let packet = u128::from(arrived.bytes / u64::from(arrived.packets.max(1))) * 8_000_000_000;
        let interval = packet / u128::from(self.pace.max(1));
        let interval = Duration::from_nanos(u64::try_from(interval).unwrap_or(u64::MAX));
        // A receiver waits for the second packet, but not for ever.
        let delayed = DELAYED_ACK.min(2 * interval);
        now.saturating_duration_since(arrived.released)
            > round_trip + (round_trip / 8).max(2 * interval) + delayed
    }

    /// Released packets have arrived; one takes `round_trip` to be acknowledged where no queue stands.
    pub(super) fn arrived(&mut self, now: Instant, arrived: &Arrived, round_trip: Duration) {
        if self.pace == 0 {
            return;
        }
        let queue_stands = self.queue_stands(now, arrived, round_trip);
        match &mut self.stage {
            Stage::Rising { .. } if queue_stands => self.measure(now),
            Stage::Rising { carefully_until } => {
                let until = *carefully_until.get_or_insert(now + round_trip);
                let in_flight = (u128::from(self.pace) * round_trip.as_nanos() / 8_000_000_000).max(1);
                let rise = u128::from(self.pace) * u128::from(arrived.bytes) / in_flight;
                let rise = u64::try_from(rise).unwrap_or(u64::MAX).min(self.pace);
                self.is_guess = false;
                self.pace = self.pace.saturating_add(if now < until { rise / 4 } else { rise });
            }
            Stage::Measuring { since, first, packets, bytes } => {
                if arrived.released < *since {
                    return;
                }
                let Some(first) = *first else {
                    *first = Some(now);
                    return;
                };
                *packets += arrived.packets;
                *bytes += arrived.bytes;
                let lasted = now.saturating_duration_since(first);
                if *packets < PACKETS || lasted < round_trip {
                    return;
                }
                let rate = u128::from(*bytes) * 8 * 1_000_000_000 / lasted.as_nanos().max(1);
                let rate = u64::try_from(rate).unwrap_or(u64::MAX);
                // Without a queue it is something else that is slow: what is measured is not the path.
                if rate >= self.pace - self.pace / 8 || !queue_stands {
                    self.stage = Stage::Rising { carefully_until: None };
                } else {
                    self.stage = Stage::Found { at: now };
                    self.is_guess = false;
                    self.pace = rate.max(1);
                }
            }
            Stage::Found { at } => {
                if now >= *at + round_trip * AGAIN {
                    self.pace = self.pace.saturating_add(self.pace / 4);
                    self.measure(now);
                }
            }
        }
    }
}
