//! The player of a film that comes in segments: what it asks for, and what its viewer sees.
//!
//! It asks for one segment at a time, and for the next one when there is room for it in its buffer. What is played leaves the
//! buffer; when it is empty the picture stands still until there is enough again.

use careof_base::{DataRate, Duration, Instant};
use careof_metrics::{Rebuffering, VideoSummary};
use careof_scenario::{Adaptation, Video};

/// Segments whose throughput counts, and the part of it that may be used: the throughput rule of dash.js by default
/// (`averageThroughputSampleAmount` for video on demand, `bandwidthSafetyFactor`).
const SAMPLES: usize = 4;
const SAFETY: (u64, u64) = (9, 10);

/// Where the line of rates begins and ends, as parts of the buffer: BBA-0 of T.-Y. Huang et al., *A Buffer-Based Approach to
/// Rate Adaptation*, SIGCOMM 2014, section 4 (90 s and 216 s of 240 s).
const RESERVOIR: f64 = 90.0 / 240.0;
const CUSHION_END: f64 = 216.0 / 240.0;

/// What the picture does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Picture {
    /// There was none yet.
    Waits,
    Plays,
    /// It has stood still since then.
    Stands(Instant),
    /// The film is over, or was stopped.
    Over,
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    video: Video,
    picture: Picture,
    opened: Instant,
    /// How much lies ready at `as_of`.
    buffered: Duration,
    as_of: Instant,
    /// The segment that was asked for and has not come: its place in the ladder, and when.
    asked: Option<(usize, Instant)>,
    /// When the next one is asked for, where the buffer has no room yet.
    next_request: Option<Instant>,
    /// Bytes of all segments that were asked for.
    wanted: u64,
    fetched: u64,
    rate_sum: u128,
    lowest: Option<u64>,
    highest: Option<u64>,
    last: Option<usize>,
    switches: u64,
    /// Of the last segments, bit/s.
    throughputs: [Option<u64>; SAMPLES],
    startup_delay: Option<Duration>,
    played: Duration,
    rebufferings: u64,
    rebuffering: Duration,
    listed: Vec<Rebuffering>,
    revision: u64,
}

impl Player {
    /// A player of `video` that has not begun.
    #[must_use]
    pub const fn new(video: Video) -> Self {
        Self {
            video,
            picture: Picture::Waits,
            opened: Instant::ZERO,
            buffered: Duration::ZERO,
            as_of: Instant::ZERO,
            asked: None,
            next_request: None,
            wanted: 0,
            fetched: 0,
            rate_sum: 0,
            lowest: None,
            highest: None,
            last: None,
            switches: 0,
            throughputs: [None; SAMPLES],
            startup_delay: None,
            played: Duration::ZERO,
            rebufferings: 0,
            rebuffering: Duration::ZERO,
            listed: Vec::new(),
            revision: 0,
        }
    }

    /// Counts what happened to it.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.revision
    }

    /// Bytes of all segments that were asked for.
    pub(crate) const fn wanted(&self) -> u64 {
        self.wanted
    }

    /// The connection is there: it asks for the first segment.
    pub(crate) fn open(&mut self, now: Instant) {
        (self.opened, self.as_of) = (now, now);
        self.ask(now);
    }

    /// So many bytes of segments have come: whether the next segment is to be asked for now. The film is over for the
    /// connection when [`Player::has_everything`].
    pub(crate) fn received(&mut self, now: Instant, total: u64) -> bool {
        let Some((place, since)) = self.asked.filter(|_| total >= self.wanted) else { return false };
        self.advance(now);
        self.asked = None;
        self.revision += 1;
        self.fetched += 1;
        let rate = self.rate(place);
        self.rate_sum += u128::from(rate);
        self.lowest = Some(self.lowest.map_or(rate, |lowest| lowest.min(rate)));
        self.highest = self.highest.max(Some(rate));
        self.switches += u64::from(self.last.is_some_and(|last| last != place));
        self.last = Some(place);
        let bits = u128::from(self.video.segment_bytes(place)) * 8 * 1_000_000_000;
        let throughput = bits / (now - since).as_nanos().max(1);
        self.throughputs.rotate_left(1);
        if let Some(last) = self.throughputs.last_mut() {
            *last = Some(u64::try_from(throughput).unwrap_or(u64::MAX));
        }
        self.buffered += self.video.segment;
        self.go_on(now);
        if self.has_everything() || self.picture == Picture::Over {
            return false;
        }
        let room = self.video.buffer.checked_sub(self.buffered.saturating_add(self.video.segment));
        if room.is_some() {
            self.ask(now);
            return true;
        }
        // It plays, for `startup` and a segment fit into the buffer.
        self.next_request = Some(now + (self.buffered + self.video.segment - self.video.buffer));
        false
    }

    /// Whether there is nothing more to see: the film is over, as far as it was told, or the viewer has left.
    pub(crate) fn is_over(&self) -> bool {
        self.picture == Picture::Over
    }

    /// Whether every segment of the film has come.
    pub(crate) fn has_everything(&self) -> bool {
        self.video.segments.is_some_and(|segments| self.fetched >= segments)
    }

    /// When [`Player::handle_timeout`] wants to be called: there is room for a segment, or the buffer is empty.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let empty = (self.picture == Picture::Plays).then(|| self.as_of + self.buffered);
        [self.next_request, empty].into_iter().flatten().min()
    }

    /// Whether a segment is to be asked for now.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.advance(now);
        if self.next_request.is_none_or(|at| at > now) {
            return false;
        }
        self.next_request = None;
        self.ask(now);
        true
    }

    /// The viewer leaves.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.advance(now);
        if let Picture::Stands(since) = self.picture {
            self.note(since, now);
        }
        self.picture = Picture::Over;
        self.next_request = None;
        self.revision += 1;
    }

    /// Bytes of the segment that was asked for last.
    pub(crate) fn asked_bytes(&self) -> u64 {
        self.asked.map_or(0, |(place, _)| self.video.segment_bytes(place))
    }

    fn ask(&mut self, now: Instant) {
        let place = self.choose();
        self.asked = Some((place, now));
        self.wanted = self.wanted.saturating_add(self.video.segment_bytes(place));
        self.revision += 1;
    }

    fn rate(&self, place: usize) -> u64 {
        self.video.ladder.rates().get(place).map_or(0, |rate: &DataRate| rate.bits_per_second())
    }

    /// The place in the ladder of the next segment.
    fn choose(&self) -> usize {
        let Some(last) = self.last else { return 0 };
        match self.video.adaptation {
            Adaptation::Throughput => {
                let known = || self.throughputs.iter().flatten();
                let mean =
                    known().map(|rate| u128::from(*rate)).sum::<u128>() / known().count().max(1) as u128;
                let limit = mean * u128::from(SAFETY.0) / u128::from(SAFETY.1);
                self.highest_within(|rate| u128::from(rate) <= limit)
            }
            Adaptation::Buffer => self.by_buffer(last),
        }
    }

    /// The highest place whose rate `fits`, or the lowest.
    fn highest_within(&self, fits: impl Fn(u64) -> bool) -> usize {
        let places = (0..self.video.ladder.rates().len()).rev();
        places.filter(|place| fits(self.rate(*place))).max().unwrap_or(0)
    }

    /// Algorithm 1 of the paper.
    fn by_buffer(&self, last: usize) -> usize {
        let top = self.video.ladder.rates().len().saturating_sub(1);
        let full = self.buffered.as_secs_f64() / self.video.buffer.as_secs_f64();
        if full <= RESERVOIR {
            return 0;
        }
        if full >= CUSHION_END {
            return top;
        }
        let (least, most) = (self.rate(0) as f64, self.rate(top) as f64);
        let line = least + (most - least) * (full - RESERVOIR) / (CUSHION_END - RESERVOIR);
        let (above, below) =
            (self.rate((last + 1).min(top)) as f64, self.rate(last.saturating_sub(1)) as f64);
        if line >= above {
            return self.highest_within(|rate| (rate as f64) < line);
        }
        if line <= below {
            let higher = (0..=top).find(|place| self.rate(*place) as f64 > line);
            return higher.unwrap_or(top);
        }
        last
    }

    /// The picture up to `now`.
    fn advance(&mut self, now: Instant) {
        let passed = now - self.as_of;
        self.as_of = self.as_of.max(now);
        if self.picture != Picture::Plays {
            return;
        }
        let played = passed.min(self.buffered);
        self.played += played;
        self.buffered -= played;
        if !self.buffered.is_zero() {
            return;
        }
        let empty = now.saturating_sub(passed - played);
        self.revision += 1;
        if self.has_everything() {
            self.picture = Picture::Over;
            return;
        }
        self.rebufferings += 1;
        self.picture = Picture::Stands(empty);
    }

    /// A segment came: the film begins or goes on, if there is enough of it.
    fn go_on(&mut self, now: Instant) {
        if self.buffered < self.video.startup && !self.has_everything() {
            return;
        }
        match self.picture {
            Picture::Waits => self.startup_delay = Some(now - self.opened),
            Picture::Stands(since) => self.note(since, now),
            Picture::Plays | Picture::Over => return,
        }
        self.picture = Picture::Plays;
    }

    fn note(&mut self, since: Instant, until: Instant) {
        let length = until - since;
        self.rebuffering += length;
        Rebuffering { begin: since, length }.list(&mut self.listed);
    }

    /// What has been seen in a run that ends at `end`.
    #[must_use]
    pub fn summary(&self, flow: &str, end: Instant) -> VideoSummary {
        let mut player = self.clone();
        player.advance(end);
        if let Picture::Stands(since) = player.picture {
            player.note(since, end);
        }
        let both = player.rebuffering + player.played;
        VideoSummary {
            flow: flow.to_owned(),
            startup_delay: player.startup_delay,
            played: player.played,
            rebufferings: player.rebufferings,
            rebuffering: player.rebuffering,
            rebuffering_part: (!both.is_zero())
                .then(|| player.rebuffering.as_secs_f64() / both.as_secs_f64()),
            longest_rebuffering: player.listed.iter().map(|one| one.length).max(),
            segments: player.fetched,
            mean_rate_bps: (player.fetched > 0).then(|| player.rate_sum as f64 / player.fetched as f64),
            lowest_rate_bps: player.lowest,
            highest_rate_bps: player.highest,
            switches: player.switches,
            buffered: player.buffered,
            rebuffers: player.listed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_scenario::Ladder;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Segments of 1 s at 1, 2 and 4 Mbit/s.
    fn film(adaptation: Adaptation, segments: Option<u64>) -> Video {
        Video {
            segment: secs(1),
            ladder: Ladder::new(&[1, 2, 4].map(DataRate::from_megabits_per_second)).unwrap(),
            buffer: secs(8),
            startup: secs(2),
            adaptation,
            segments,
            request: 100,
        }
    }

    /// Has the player fetch by a path of `rate` bit/s, until `end`.
    fn watch(player: &mut Player, from: Instant, end: Instant, rate: u64) {
        let (mut now, mut total, mut arrival) = (from, 0, None);
        loop {
            if player.asked_bytes() > 0 && arrival.is_none() {
                let nanos = u128::from(player.asked_bytes()) * 8 * 1_000_000_000 / u128::from(rate);
                arrival = Some(now + Duration::from_nanos(nanos as u64));
            }
            let next = [arrival, player.next_timeout()].into_iter().flatten().min();
            let Some(next) = next.filter(|next| *next <= end) else { return };
            now = next;
            if arrival == Some(now) {
                arrival = None;
                total += player.asked_bytes();
                player.received(now, total);
            } else {
                player.handle_timeout(now);
            }
        }
    }

    #[test]
    fn it_begins_low_and_climbs_to_what_the_path_carries() {
        let mut player = Player::new(film(Adaptation::Throughput, None));
        player.open(at(0));
        // 3 Mbit/s: 0.9 of it carries 2 Mbit/s.
        watch(&mut player, at(0), at(60_000), 3_000_000);
        let seen = player.summary("film", at(60_000));
        // The first segment takes 1/3 s, the second, at 2 Mbit/s, 2/3 s.
        assert_eq!(seen.startup_delay, Some(Duration::from_nanos(999_999_999)));
        assert_eq!((seen.rebufferings, seen.rebuffering, seen.switches), (0, Duration::ZERO, 1));
        assert_eq!((seen.lowest_rate_bps, seen.highest_rate_bps), (Some(1_000_000), Some(2_000_000)));
        assert_eq!(seen.played.as_millis(), 59_000);
        assert!(seen.buffered <= secs(8), "{:?}", seen.buffered);
    }

    #[test]
    fn the_picture_stands_still_while_nothing_comes() {
        let mut player = Player::new(film(Adaptation::Throughput, None));
        player.open(at(0));
        // Segments of 1 Mbit come in 0.8 s: no more than 1 Mbit/s is within 0.9 of that.
        let mut total = 0;
        for number in 1..=3_u64 {
            total += 125_000;
            assert!(player.received(at(number * 800), total), "there is room for another");
        }
        // It has played since 1.6 s, and 3 s of it are there.
        assert_eq!(player.next_timeout(), Some(at(4600)));
        assert!(!player.handle_timeout(at(4600)));
        player.received(at(9000), total + 125_000);
        assert_eq!(
            player.summary("film", at(9500)).rebuffering,
            Duration::from_millis(4900),
            "2 s are not there"
        );
        player.received(at(10_000), total + 250_000);
        let seen = player.summary("film", at(10_500));
        assert_eq!((seen.rebufferings, seen.rebuffering), (1, Duration::from_millis(5400)));
        assert_eq!((seen.played, seen.buffered), (Duration::from_millis(3500), Duration::from_millis(1500)));
        assert_eq!(seen.rebuffers, [Rebuffering { begin: at(4600), length: Duration::from_millis(5400) }]);
        assert_eq!(seen.longest_rebuffering, Some(Duration::from_millis(5400)));
    }

    #[test]
    fn a_film_ends_and_its_end_is_no_rebuffering() {
        let mut player = Player::new(film(Adaptation::Throughput, Some(3)));
        player.open(at(0));
        watch(&mut player, at(0), at(60_000), 10_000_000);
        assert!(player.has_everything());
        let seen = player.summary("film", at(60_000));
        assert_eq!((seen.segments, seen.rebufferings, seen.played), (3, 0, secs(3)));
        assert_eq!(player.next_timeout(), None);
    }

    #[test]
    fn a_player_with_a_full_buffer_waits_for_room() {
        let mut player = Player::new(film(Adaptation::Throughput, None));
        player.open(at(0));
        let mut total = player.asked_bytes();
        let mut asked = 1;
        // Everything comes at once: eight segments fit.
        while player.received(at(0), total) {
            total += player.asked_bytes();
            asked += 1;
        }
        assert_eq!(asked, 8);
        assert_eq!(player.next_timeout(), Some(at(1000)), "a second has been played");
        assert!(player.handle_timeout(at(1000)));
    }

    #[test]
    fn by_the_buffer_it_takes_the_line_between_reservoir_and_cushion() {
        let mut player = Player::new(film(Adaptation::Buffer, None));
        assert_eq!(player.choose(), 0, "the first is the lowest");
        player.last = Some(0);
        // The reservoir is 3 s, the cushion ends at 7.2 s; the line is at 2 Mbit/s at 4.4 s.
        for (ms, last, expected) in [
            (3_000, 2, 0),
            (4_300, 0, 0),
            (4_500, 0, 1),
            (7_200, 0, 2),
            (7_100, 0, 1),
            (6_000, 1, 1),
            (6_000, 2, 2),
            (4_300, 2, 1),
        ] {
            player.buffered = Duration::from_millis(ms);
            player.last = Some(last);
            assert_eq!(player.choose(), expected, "{ms} ms, {last}");
        }
    }

    #[test]
    fn a_viewer_that_leaves_sees_no_more() {
        let mut player = Player::new(film(Adaptation::Throughput, None));
        player.open(at(0));
        player.received(at(100), 125_000);
        let total = player.wanted();
        player.received(at(200), total);
        player.stop(at(700));
        assert_eq!(player.next_timeout(), None);
        let seen = player.summary("film", at(9000));
        assert_eq!((seen.played, seen.rebufferings), (Duration::from_millis(500), 0));
    }
}
