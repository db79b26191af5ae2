//! How alike paths are: whether a flow that is split over them is waited for long, or slowed down by one of them.

use core::time::Duration;

use careof_base::DataRate;

use crate::multipath::path::Path;

/// Transits of even paths are less apart, variations included. Where the shortest round trip is more than four times that, a quarter of
/// it counts: by so much a flow that is split has a longer round trip at most, and a second path that is even adds a quarter at least.
pub(super) const EVEN_SPREAD: Duration = Duration::from_millis(50);
/// Rates of even paths are less than so many times apart.
pub(super) const EVEN_RATES: u64 = 4;
/// Where transits are this far apart splitting is not even tried, unless the shortest path has a round trip as long, which is then less
/// than doubled: a flow that is split has the round trip of the slowest path, and at half of what a resequencer waits at most a trial
/// alone costs more than it can bring.
const HOPELESS_SPREAD: Duration = Duration::from_millis(250);
/// Bits of a packet of full size on most links.
const FULL_PACKET: u64 = 1500 * 8;

/// How far transits of these paths are apart, variations included; `None` while one of them is not known. Packets that follow each other
/// through a queue differ by the time that each is on the wire: on a slow path that alone is no jitter.
fn spread<'a>(paths: impl Iterator<Item = &'a Path>) -> Option<Duration> {
    let (mut earliest, mut latest) = (i64::MAX, i64::MIN);
    for estimate in paths.map(Path::estimate) {
        let on_wire = estimate.rate.and_then(|rate| rate.time_for_bits(FULL_PACKET)).unwrap_or_default();
        let variation = estimate.transit_variation.saturating_sub(on_wire);
        let variation = i64::try_from(variation.as_micros()).unwrap_or(i64::MAX / 8);
        let transit = estimate.transit?;
        earliest = earliest.min(transit);
        latest = latest.max(transit.saturating_add(variation.saturating_mul(4)));
    }
    u64::try_from(latest.saturating_sub(earliest)).ok().map(Duration::from_micros)
}

/// Whether all these paths are alike: no packet is waited for long because others went by another one.
pub(super) fn are_even<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    let estimates = || paths.clone().map(Path::estimate);
    // A rate that is not known yet does not make paths uneven: the trial that every new path begins with bounds the harm.
    let rates = || estimates().filter(|estimate| estimate.is_limit).filter_map(|estimate| estimate.rate);
    let (least, most) = (rates().min().unwrap_or_default(), rates().max().unwrap_or_default());
    let shortest = estimates().filter_map(|estimate| estimate.least_round_trip).min().unwrap_or_default();
    spread(paths.clone()).is_some_and(|spread| spread < EVEN_SPREAD.max(shortest / 4))
        && (most == least || most.bits_per_second() < least.bits_per_second().saturating_mul(EVEN_RATES))
        && !are_unlike_in_loss(paths)
}

/// Whether splitting over these paths may be tried, though they are not even.
pub(super) fn are_worth_trying<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    let shortest = paths.clone().filter_map(|path| path.estimate().least_round_trip).min();
    let hopeless = HOPELESS_SPREAD.max(shortest.unwrap_or_default());
    spread(paths.clone()).is_some_and(|spread| spread < hopeless) && !are_unlike_in_loss(paths)
}

/// Whether some path has delivered so many times as much as another that they are not even.
pub(super) fn are_unlike_in_rate<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    let rates = || paths.clone().map(|path| path.measured_rate().map_or(0, DataRate::bits_per_second));
    rates().max().unwrap_or_default() >= rates().min().unwrap_or_default().saturating_mul(EVEN_RATES)
}

/// Whether some path loses more than twice as much as another: a flow that is split is slowed down by the losses of all its paths.
fn are_unlike_in_loss<'a>(paths: impl Iterator<Item = &'a Path> + Clone) -> bool {
    paths.clone().any(|one| paths.clone().any(|other| one.losses().are_twice(other.losses())))
}
