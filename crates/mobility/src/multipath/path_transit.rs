//! What the receiving end knows of each path, from the times of sending that packets tell.

use core::time::Duration;

use careof_base::Instant;

use super::path_id::PathId;
use super::wire_time::{is_before, micros};

/// Packets after which what is known of reordering within a path begins to be forgotten.
const FORGET: u32 = 1024;
/// Packets after which a path by which none has overtaken another is taken for one that keeps its order.
const LEARNT: u32 = 64;
/// Packets after which the mean deviation of a path says how much its transits vary.
const KNOWN: u32 = 10;

/// One path.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// The latest time of sending that has come, its transit, and when it came.
    newest: u32,
    latest: i64,
    came: Instant,
    /// Mean transit and its mean deviation, microseconds from the reference.
    mean: i64,
    deviation: i64,
    /// By how much a packet was overtaken on this path at most, microseconds: during the last [`FORGET`] packets, and before.
    overtaken_by: [u32; 2],
    /// The longest transit, likewise.
    longest: [i64; 2],
    packets: u32,
    /// Packets so far.
    seen: u32,
    is_out: bool,
}

impl Way {
    const fn new(now: Instant, stamp: u32, transit: i64) -> Self {
        Self {
            newest: stamp,
            latest: transit,
            came: now,
            mean: transit,
            deviation: 0,
            overtaken_by: [0; 2],
            longest: [transit; 2],
            packets: 0,
            seen: 1,
            is_out: false,
        }
    }

    /// By how much packets overtake each other. Of a path that reorders, or of which little is known yet, more is expected than was seen:
    /// what transits differ by.
    fn slack(&self, others: i64) -> u32 {
        let seen = self.overtaken_by.into_iter().max().unwrap_or_default();
        if seen == 0 && self.seen >= LEARNT {
            return 0;
        }
        seen.max(u32::try_from(self.margin(others)).unwrap_or(u32::MAX).min(u32::MAX / 4))
    }

    /// How much longer than the longest transit of late a packet may take: four mean deviations, and more where these are of a few
    /// packets only (Student's quantiles beside the normal one, at 97.5 %). One transit has no deviation, and two may be alike by chance:
    /// such a path is taken to vary as much as `others`, which is the mean deviation of the other path that varies most.
    fn margin(&self, others: i64) -> i64 {
        let deviations = match self.seen {
            0..=2 => return (26 * self.deviation).max(4 * others),
            3 => 9,
            4 | 5 => 7,
            6..=9 => 5,
            _ => 4,
        };
        deviations * self.deviation
    }

    /// The longest transit that something is given that was sent by `stamp`, for somebody who asks since `came`. It is the longest of
    /// late and four mean deviations. Where a queue grows, what was sent later than the latest that came here is later by as much again,
    /// if twice as much comes as the path carries; no source grows faster than that (slow start). A path by which nothing has come
    /// for half as long has no queue that grows.
    fn longest(&self, came: Instant, stamp: u32, others: i64) -> i64 {
        let longest = self.longest.into_iter().max().unwrap_or(self.mean);
        let later = i64::from(stamp.wrapping_sub(self.newest) as i32).max(0);
        let quiet = came.saturating_duration_since(self.came).as_micros();
        let growth = if quiet < later as u128 / 2 { later } else { 0 };
        longest.max(self.latest + growth) + self.margin(others)
    }
}

/// How long packets are on their way over each path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Transits {
    ways: [Option<Way>; super::path_id::MAX_PATHS],
    /// A transit, from which all others are told.
    reference: Option<u32>,
}

impl Transits {
    /// Something that was sent at `stamp` has come by `path`.
    pub(super) fn note(&mut self, now: Instant, path: PathId, stamp: u32) {
        let transit = micros(now).wrapping_sub(stamp);
        let reference = *self.reference.get_or_insert(transit);
        let transit = i64::from(transit.wrapping_sub(reference) as i32);
        let Some(place) = self.ways.get_mut(path.index()) else { return };
        let Some(way) = place else {
            *place = Some(Way::new(now, stamp, transit));
            return;
        };
        way.is_out = false;
        let apart = transit - way.mean;
        // Until there are so many, each counts as much as those before.
        let known = i64::from(way.seen);
        way.mean += apart / (known + 1).min(8);
        way.deviation += (apart.abs() - way.deviation) / known.min(4);
        way.packets += 1;
        way.seen = way.seen.saturating_add(1);
        if way.packets >= FORGET {
            way.packets = 0;
            way.overtaken_by = [0, way.overtaken_by[0]];
            way.longest = [transit, way.longest[0]];
        }
        way.longest[0] = way.longest[0].max(transit);
        if is_before(stamp, way.newest) {
            let [latest, _] = &mut way.overtaken_by;
            *latest = (*latest).max(way.newest.wrapping_sub(stamp));
        } else {
            (way.newest, way.latest, way.came) = (stamp, transit, now);
        }
    }

    /// Nothing more comes by `path`.
    pub(super) fn set_out(&mut self, path: PathId) {
        if let Some(Some(way)) = self.ways.get_mut(path.index()) {
            way.is_out = true;
        }
    }

    /// Until when something may still come that was sent no later than a packet that was sent at `stamp` and came at `came` by `by`:
    /// by this path alone, or with `split` by any. `None` when every path has passed it, so that nothing can. A path by which nothing
    /// comes for `patience` is waited for no longer, whatever was measured.
    pub(super) fn may_come_until(
        &self,
        came: Instant,
        by: PathId,
        stamp: u32,
        split: bool,
        patience: Duration,
    ) -> Option<Instant> {
        let transit = micros(came).wrapping_sub(stamp).wrapping_sub(self.reference.unwrap_or_default());
        let transit = i64::from(transit as i32);
        let known = self.ways.iter().flatten().filter(|way| way.seen >= KNOWN);
        let others = known.map(|way| way.deviation).max().unwrap_or_default();
        let until = |path: PathId| {
            let way = self.ways.get(path.index()).copied().flatten().filter(|way| !way.is_out)?;
            // What was sent in the same microsecond by another path may be behind what came.
            let at_least = stamp.wrapping_add(way.slack(others)).wrapping_add(u32::from(path != by));
            let has_passed = !is_before(way.newest, at_least);
            let longest = way.longest(came, stamp, others);
            let left = u64::try_from(longest - transit).unwrap_or_default();
            (!has_passed).then(|| (came + Duration::from_micros(left)).min(way.came.max(came) + patience))
        };
        let ways = PathId::all().filter(|&path| split || path == by);
        ways.filter_map(until).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(500);

    fn id(number: u8) -> PathId {
        PathId::new(number).unwrap()
    }

    /// A path with a transit of 20 ms, another one of 90 ms, and nothing on its way.
    fn two() -> Transits {
        let mut transits = Transits::default();
        for n in 0..100_u32 {
            for (path, delay) in [(0, 20_000), (1, 90_000)] {
                let sent = n * 10_000;
                transits.note(Instant::from_micros(u64::from(sent + delay)), id(path), sent);
            }
        }
        transits
    }

    #[test]
    fn what_may_come_by_the_slow_path_is_waited_for_as_long_as_the_paths_are_apart() {
        let transits = two();
        let (sent, came) = (1_200_000, Instant::from_micros(1_220_000));
        let mut with_it = transits;
        with_it.note(came, id(0), sent);
        let until = with_it.may_come_until(came, id(0), sent, true, PATIENCE).unwrap();
        assert_eq!(until, Instant::from_micros(1_290_000));
        assert_eq!(
            with_it.may_come_until(came, id(0), sent, false, PATIENCE),
            None,
            "the path keeps its order"
        );
        with_it.note(Instant::from_micros(1_291_000), id(1), 1_201_000);
        assert_eq!(
            with_it.may_come_until(came, id(0), sent, true, PATIENCE),
            None,
            "the slow path has passed it"
        );
    }

    #[test]
    fn nothing_comes_by_a_path_that_is_out() {
        let mut transits = two();
        let (sent, came) = (1_000_000, Instant::from_micros(1_020_000));
        transits.note(came, id(0), sent);
        transits.set_out(id(1));
        assert_eq!(transits.may_come_until(came, id(0), sent, true, PATIENCE), None);
    }

    #[test]
    fn a_path_of_which_little_is_known_is_given_time_to_reorder() {
        let mut transits = Transits::default();
        for (at, sent) in [(20_000, 0), (26_000, 4_000), (30_000, 10_000)] {
            transits.note(Instant::from_micros(at), id(0), sent);
        }
        let came = Instant::from_micros(30_000);
        assert!(
            transits.may_come_until(came, id(0), 10_000, false, PATIENCE).is_some(),
            "none was overtaken so far"
        );
        for n in 0..100 {
            transits.note(Instant::from_micros(40_000 + n * 1_000), id(0), 20_000 + n as u32 * 1_000);
        }
        let came = Instant::from_micros(139_000);
        assert_eq!(
            transits.may_come_until(came, id(0), 119_000, false, PATIENCE),
            None,
            "it keeps its order"
        );
    }

    #[test]
    fn a_path_by_which_one_packet_has_come_is_taken_to_vary_as_much_as_the_others() {
        let mut transits = Transits::default();
        for n in 0..100_u32 {
            let (sent, delay) = (n * 1_000, 20_000 + n % 2 * 4_000);
            transits.note(Instant::from_micros(u64::from(sent + delay)), id(0), sent);
        }
        transits.note(Instant::from_micros(140_000), id(1), 100_000);
        let (sent, came) = (110_000, Instant::from_micros(130_000));
        transits.note(came, id(0), sent);
        let until = transits.may_come_until(came, id(0), sent, true, PATIENCE).unwrap();
        let own = Instant::from_micros(u64::from(sent) + 40_000);
        assert!(until > own + Duration::from_millis(6), "{until:?}");
        assert!(until < own + Duration::from_millis(20), "{until:?}");
    }

    #[test]
    fn a_path_that_reorders_is_given_time_for_that() {
        let mut transits = Transits::default();
        for (at, sent) in [(20_000, 0), (26_000, 6_000), (27_000, 1_000), (30_000, 10_000)] {
            transits.note(Instant::from_micros(at), id(0), sent);
        }
        let came = Instant::from_micros(30_000);
        assert!(transits.may_come_until(came, id(0), 10_000, false, PATIENCE).is_some());
        transits.note(Instant::from_micros(36_000), id(0), 15_000);
        assert!(
            transits.may_come_until(came, id(0), 10_000, false, PATIENCE).is_some(),
            "more than was seen is expected"
        );
        transits.note(Instant::from_micros(90_000), id(0), 70_000);
        assert_eq!(transits.may_come_until(came, id(0), 10_000, false, PATIENCE), None);
    }

    #[test]
    fn a_path_that_goes_on_delivering_is_waited_for_and_one_that_stops_for_as_long_as_patience_lasts() {
        let mut transits = two();
        // A queue of 2 s has grown before the slow path; what comes by it still was sent before.
        let came = Instant::from_micros(1_220_000);
        transits.note(came, id(0), 1_200_000);
        for n in 0..10_u32 {
            transits.note(Instant::from_micros(1_220_000 + u64::from(n) * 100_000), id(1), 1_000_000 + n);
        }
        let last = Instant::from_micros(2_120_000);
        assert_eq!(transits.may_come_until(came, id(0), 1_200_000, true, PATIENCE), Some(last + PATIENCE));
    }
}
