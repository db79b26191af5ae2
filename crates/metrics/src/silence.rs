//! How long a flow's application waited for data, and how long nothing came.

use alloc::vec::Vec;

use careof_base::{Duration, Instant};
use serde::Serialize;

use crate::seconds::{instant, span};

/// The shortest silence that is a stall, where links are fast enough: about as long as a user's flow of thought stays
/// uninterrupted (J. Nielsen, Usability Engineering, 1993, section 5.5), and the least timeout of RFC 6298 (2.4).
pub const STALL: Duration = Duration::from_secs(1);

/// Stalls of one flow and direction that are listed, the longest ones; all are counted.
const MOST_LISTED: usize = 100;

/// What ended a silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SilenceEnd {
    /// New data came.
    Data,
    /// The application wanted nothing more: it was stopped, or what a program had sent was acknowledged.
    NotWanted,
    /// The run ended.
    EndOfRun,
}

/// A time in which an application wanted data and got none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Silence {
    /// The last delivery before it, or when the application began to want data.
    #[serde(rename = "begin_s", serialize_with = "instant")]
    pub begin: Instant,
    /// How long it lasted.
    #[serde(rename = "length_s", serialize_with = "span")]
    pub length: Duration,
    /// What ended it.
    pub ended_by: SilenceEnd,
}

/// The silences of a flow, or those from a handover on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Silences {
    /// The longest; the first of several. `None` if the application never waited.
    pub longest: Option<Silence>,
    /// Time in which the application wanted data.
    pub waiting: Duration,
    /// Silences that are stalls.
    pub stalls: u64,
    /// Their sum.
    pub stalled: Duration,
}

impl Silences {
    #[inline]
    fn count(&mut self, silence: Silence, threshold: Duration) {
        if self.longest.is_none_or(|longest| longest.length < silence.length) {
            self.longest = Some(silence);
        }
        if silence.length >= threshold {
            self.stalls += 1;
            self.stalled += silence.length;
        }
    }
}

/// The silences from a handover on.
#[derive(Clone, Copy, Debug)]
struct Period {
    at: Instant,
    /// What the flow had waited before.
    waited: Duration,
    silences: Silences,
}

/// Measures the silences of one direction of a flow.
///
/// It is told when the application wants data, when it gets some, and when a handover begins. Of a silence that has begun
/// before a handover the part from the handover on counts for it; to its end, whatever comes in between.
#[derive(Clone, Debug)]
pub(crate) struct SilenceMeter {
    threshold: Duration,
    /// Since when the application has wanted data and got none; `None` while it wants none.
    since: Option<Instant>,
    /// All that have ended.
    ended: Silences,
    listed: Vec<Silence>,
    periods: Vec<Period>,
}

impl SilenceMeter {
    /// Takes silences of at least `threshold` for stalls.
    pub(crate) const fn new(threshold: Duration) -> Self {
        let ended = Silences { longest: None, waiting: Duration::ZERO, stalls: 0, stalled: Duration::ZERO };
        Self { threshold, since: None, ended, listed: Vec::new(), periods: Vec::new() }
    }

    /// The application wants data from now on, or none. Saying the same twice is harmless.
    pub(crate) fn on_wanting(&mut self, now: Instant, wanting: bool) {
        if wanting {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            self.end(since, now, SilenceEnd::NotWanted);
        }
    }

    /// New data reached the application, which wants more or not.
    #[inline]
    pub(crate) fn on_data(&mut self, now: Instant, wanting: bool) {
        if let Some(since) = self.since {
            self.end(since, now, SilenceEnd::Data);
        }
        self.since = wanting.then_some(now);
    }

    /// A handover begins. Says how many began before it.
    pub(crate) fn on_handover(&mut self, now: Instant) -> usize {
        let waited = self.waited(now);
        self.periods.push(Period { at: now, waited, silences: Silences::default() });
        self.periods.len() - 1
    }

    /// Whether the application wants data.
    pub(crate) const fn is_wanting(&self) -> bool {
        self.since.is_some()
    }

    #[inline]
    fn end(&mut self, since: Instant, now: Instant, ended_by: SilenceEnd) {
        let length = now - since;
        if length == Duration::ZERO {
            return;
        }
        let silence = Silence { begin: since, length, ended_by };
        self.ended.waiting += length;
        self.ended.count(silence, self.threshold);
        if length >= self.threshold {
            self.list(silence);
        }
        for period in self.periods.iter_mut().rev() {
            let begin = since.max(period.at);
            if begin < now {
                period.silences.count(Silence { begin, length: now - begin, ended_by }, self.threshold);
            }
            if period.at <= since {
                break;
            }
        }
    }

    fn list(&mut self, stall: Silence) {
        if self.listed.len() < MOST_LISTED {
            self.listed.push(stall);
        } else if let Some(at) = (0..self.listed.len()).min_by_key(|&at| self.listed[at].length)
            && self.listed[at].length < stall.length
        {
            self.listed.remove(at);
            self.listed.push(stall);
        }
    }

    /// What the application has waited up to `now`.
    fn waited(&self, now: Instant) -> Duration {
        self.ended.waiting + self.since.map_or(Duration::ZERO, |since| now - since)
    }

    /// The same at the end of the run, which ends a silence too.
    fn at_end(&self, end_of_run: Instant) -> Self {
        let mut meter = self.clone();
        if let Some(since) = meter.since.take() {
            meter.end(since, end_of_run, SilenceEnd::EndOfRun);
        }
        meter
    }

    /// All silences of a run that ends at `end_of_run`.
    pub(crate) fn silences(&self, end_of_run: Instant) -> Silences {
        self.at_end(end_of_run).ended
    }

    /// Its longest stalls, in order of time.
    pub(crate) fn stalls(&self, end_of_run: Instant) -> Vec<Silence> {
        self.at_end(end_of_run).listed
    }

    /// The silences from each handover on, in order; `waiting` from it to the next handover or the end of the run.
    pub(crate) fn of_handovers(&self, end_of_run: Instant) -> Vec<Silences> {
        let meter = self.at_end(end_of_run);
        let ends = meter.periods.iter().skip(1).map(|next| next.waited).chain([meter.ended.waiting]);
        meter
            .periods
            .iter()
            .zip(ends)
            .map(|(period, until)| Silences { waiting: until - period.waited, ..period.silences })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn silence(begin: u64, length: u64, ended_by: SilenceEnd) -> Silence {
        Silence { begin: at(begin), length: ms(length), ended_by }
    }

    #[test]
    fn thinking_is_no_silence() {
        let mut meter = SilenceMeter::new(STALL);
        meter.on_wanting(at(100), true);
        meter.on_data(at(400), false);
        meter.on_wanting(at(60_400), true);
        meter.on_data(at(60_600), false);
        let all = meter.silences(at(90_000));
        assert_eq!(all.longest, Some(silence(100, 300, SilenceEnd::Data)));
        assert_eq!((all.waiting, all.stalls), (ms(500), 0));
    }

    #[test]
    fn a_silence_that_begins_before_a_handover_counts_from_the_handover_on() {
        let mut meter = SilenceMeter::new(STALL);
        meter.on_wanting(at(0), true);
        meter.on_data(at(10_000), true);
        meter.on_handover(at(12_000));
        meter.on_data(at(15_000), true);
        assert_eq!(
            meter.of_handovers(at(15_500))[0].longest,
            Some(silence(12_000, 3000, SilenceEnd::Data)),
            "from the handover on"
        );
        assert_eq!(meter.silences(at(15_500)).longest, Some(silence(0, 10_000, SilenceEnd::Data)));
    }

    #[test]
    fn a_silence_goes_on_through_the_next_handover() {
        let mut meter = SilenceMeter::new(STALL);
        meter.on_wanting(at(0), true);
        meter.on_data(at(900), true);
        meter.on_handover(at(1000));
        meter.on_handover(at(5000));
        meter.on_data(at(7500), true);
        let [first, second] = meter.of_handovers(at(8000))[..] else { panic!() };
        assert_eq!(first.longest, Some(silence(1000, 6500, SilenceEnd::Data)));
        assert_eq!(second.longest, Some(silence(5000, 2500, SilenceEnd::Data)));
        assert_eq!((first.waiting, second.waiting), (ms(4000), ms(3000)));
        assert_eq!((first.stalls, first.stalled), (1, ms(6500)));
    }

    #[test]
    fn a_silence_that_nothing_ends_lasts_to_the_end_of_the_run() {
        let mut meter = SilenceMeter::new(STALL);
        meter.on_wanting(at(0), true);
        meter.on_handover(at(500));
        assert_eq!(meter.silences(at(4000)).longest, Some(silence(0, 4000, SilenceEnd::EndOfRun)));
        assert_eq!(meter.of_handovers(at(4000))[0].longest, Some(silence(500, 3500, SilenceEnd::EndOfRun)));
        meter.on_wanting(at(2000), false);
        assert_eq!(meter.stalls(at(4000)), vec![silence(0, 2000, SilenceEnd::NotWanted)]);
    }

    #[test]
    fn the_list_of_stalls_is_bounded_and_keeps_the_longest() {
        let mut meter = SilenceMeter::new(STALL);
        let mut now = at(0);
        meter.on_wanting(now, true);
        for length in 1..=3 * MOST_LISTED as u64 {
            now += Duration::from_secs(length);
            meter.on_data(now, true);
        }
        let listed = meter.stalls(now);
        assert_eq!(meter.silences(now).stalls, 3 * MOST_LISTED as u64);
        assert_eq!(listed.len(), MOST_LISTED);
        assert!(listed.iter().all(|stall| stall.length > Duration::from_secs(2 * MOST_LISTED as u64)));
        assert!(listed.is_sorted_by_key(|stall| stall.begin));
    }

    /// What happens, in steps of time.
    #[derive(Clone, Copy, Debug)]
    enum Step {
        Wanting(bool),
        Data { wanting: bool },
        Handover,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            any::<bool>().prop_map(Step::Wanting),
            any::<bool>().prop_map(|wanting| Step::Data { wanting }),
            any::<bool>().prop_map(|wanting| Step::Data { wanting }),
            Just(Step::Handover),
        ]
    }

    /// The longest run of wanting milliseconds without data from `from` on, among those that are under way before `until`;
    /// how many of at least `threshold` there are, and their sum: looked for millisecond by millisecond.
    fn search(quiet: &[bool], breaks: &[bool], from: usize, until: usize, threshold: u64) -> (u64, u64, u64) {
        let (mut longest, mut stalls, mut stalled) = (0, 0, 0);
        let mut begin = from;
        while begin < until {
            if !quiet[begin] {
                begin += 1;
                continue;
            }
            let mut end = begin + 1;
            while end < quiet.len() && quiet[end] && !breaks[end] {
                end += 1;
            }
            let length = (end - begin) as u64;
            longest = longest.max(length);
            if length >= threshold {
                stalls += 1;
                stalled += length;
            }
            begin = end;
        }
        (longest, stalls, stalled)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]
        #[test]
        fn agrees_with_a_search_millisecond_by_millisecond(
            steps in prop::collection::vec((0_u64..60, step()), 1..60),
            rest in 0_u64..60,
            threshold in 1_u64..80,
        ) {
            let mut meter = SilenceMeter::new(ms(threshold));
            let length = (steps.iter().map(|(gap, _)| gap).sum::<u64>() + rest) as usize;
            // Whether the application wants data in each millisecond, and whether data came, or the wish was new, at its begin.
            let (mut quiet, mut breaks) = (vec![false; length], vec![false; length + 1]);
            let (mut now, mut wanting, mut handovers) = (0_usize, false, Vec::new());
            for (gap, step) in steps {
                let later = now + gap as usize;
                quiet[now..later].fill(wanting);
                now = later;
                match step {
                    Step::Wanting(wants) => {
                        breaks[now] |= wants != wanting;
                        wanting = wants;
                        meter.on_wanting(at(now as u64), wants);
                    }
                    Step::Data { wanting: wants } => {
                        breaks[now] = true;
                        wanting = wants;
                        meter.on_data(at(now as u64), wants);
                    }
                    Step::Handover => {
                        handovers.push(now);
                        meter.on_handover(at(now as u64));
                    }
                }
                prop_assert_eq!(meter.is_wanting(), wanting);
            }
            quiet[now..].fill(wanting);
            let end = at(length as u64);

            let waited = |range: &[bool]| ms(range.iter().filter(|wanting| **wanting).count() as u64);
            let all = meter.silences(end);
            let (longest, stalls, stalled) = search(&quiet, &breaks, 0, length, threshold);
            prop_assert_eq!(all.longest.map_or(Duration::ZERO, |one| one.length), ms(longest));
            prop_assert_eq!((all.waiting, all.stalls, all.stalled), (waited(&quiet), stalls, ms(stalled)));
            let listed = meter.stalls(end);
            prop_assert_eq!(listed.len() as u64, stalls);
            prop_assert_eq!(listed.iter().map(|one| one.length).sum::<Duration>(), ms(stalled));

            let measured = meter.of_handovers(end);
            prop_assert_eq!(measured.len(), handovers.len());
            for (index, (found, &from)) in measured.iter().zip(&handovers).enumerate() {
                let until = handovers.get(index + 1).copied().unwrap_or(length);
                prop_assert_eq!(found.waiting, waited(&quiet[from..until]));
                if until > from {
                    let (longest, stalls, stalled) = search(&quiet, &breaks, from, until, threshold);
                    prop_assert_eq!(found.longest.map_or(Duration::ZERO, |one| one.length), ms(longest));
                    prop_assert_eq!((found.stalls, found.stalled), (stalls, ms(stalled)));
                }
            }
        }
    }
}
