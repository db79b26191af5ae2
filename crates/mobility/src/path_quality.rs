//! The path in use is left, make before break, when it is bad and another one clearly better; and come back to when it is good
//! again. What bad, better and good are is said in [`crate::path_merit`].
//!
//! How often, at most: an interface that was left as bad is avoided for 60 s, then for twice as long each time, up to an hour, and is
//! forgiven after two hours. So in the first hour each is left 1 + log2(1 + T / 60 s) times in T, five times in half an hour, and
//! from then on once an hour; and it is come back to no more often than it was left.
//!
//! Cost: the probes by which a path is examined are paid for from what it may take for its own (40 bytes a second), or from what
//! the path in use may (1 % of what passes and 40 bytes a second), and leave enough there for doubts.

use core::time::Duration;

use careof_base::Instant;

use crate::path_merit::{Bad, Rates, Told, carries_more, probes_needed};
use crate::path_monitor::{Answer, PathState};
use crate::path_watch::{PathInterface, PathWatch};
use crate::{HandoverReason, Selection};

/// Between the probes of an examination: enough of them to see losses in bursts.
const EXAMINE_INTERVAL: Duration = Duration::from_millis(250);
/// Until it is asked again whether one can be paid for.
const UNPAID: Duration = Duration::from_secs(1);
/// Between two examinations of a path that did not pass.
const EXAMINE_AGAIN: Duration = Duration::from_secs(60);
/// How long the path come to has to prove that it carries no less.
const TRIAL: Duration = Duration::from_secs(60);

/// What an examination is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The path in use is bad.
    Leave(Bad),
    /// One that was left may be good again.
    Return,
}

/// The path come to from a bad one is watched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    from: usize,
    to: usize,
    until: Instant,
    /// What the bad one delivered.
    delivered: Rates,
}

/// Which path is used, by how good they are.
pub(crate) trait PathChoice: PathWatch {
    /// A probe of the path through interface `index` was answered.
    fn take_answer(&mut self, now: Instant, index: usize, answer: &Answer) {
        let course = self.course();
        let in_use = course.active == Some(index) && !course.is_moving;
        let Some(interface) = self.interfaces_mut().get_mut(index) else { return };
        let told = interface.told();
        let told = interface.watch_mut().record.answered(answer, in_use, told);
        if let Some(told) = told {
            self.try_out(now, index, told);
        }
    }

    fn chooses_by_quality(&self) -> bool {
        let course = self.course();
        let chooses = matches!(course.selection, Selection::Preferred { .. });
        chooses && course.watches && course.leaves_bad && !course.pinned && !course.left
    }

    /// A path that was come to because it carries more than a bad one has to.
    fn try_out(&mut self, now: Instant, index: usize, told: Told) {
        let trial = self.supervision().trial.filter(|trial| trial.to == index);
        let Some(trial) = trial.filter(|_| self.chooses_by_quality()) else { return };
        if now >= trial.until {
            self.supervision_mut().trial = None;
            return;
        }
        let busier = usize::from(trial.delivered[1] > trial.delivered[0]);
        let from = self.interfaces().get(trial.from).map(|from| from.watch().monitor.state());
        let is_better = !told.is_full || told.delivered[busier] >= trial.delivered[busier];
        if is_better || from != Some(PathState::Alive) || !self.is_usable(now, trial.from) {
            return;
        }
        self.supervision_mut().trial = None;
        if let Some(interface) = self.interfaces_mut().get_mut(index) {
            interface.watch_mut().record.refute(now, told.delivered);
        }
        if let Some(from) = self.interfaces_mut().get_mut(trial.from) {
            from.watch_mut().record.keep(now);
        }
        self.hand_over(now, trial.from, HandoverReason::NotBetter);
    }

    /// Finds out whether another path is to be used because it is better, as far as that goes by now.
    fn judge_paths(&mut self, now: Instant) {
        self.supervision_mut().judge_at = Instant::MAX;
        let course = self.course();
        if !course.is_moving
            && let Some(used) = course.active.and_then(|active| self.interfaces_mut().get_mut(active))
        {
            // It could not be left.
            used.watch_mut().record.avoided = None;
        }
        let wanted = self.wanted(now);
        for (index, interface) in self.interfaces_mut().iter_mut().enumerate() {
            if wanted.is_none_or(|(wanted, _)| wanted != index) {
                interface.watch_mut().record.examination = None;
            }
        }
        let Some((index, purpose)) = wanted else {
            self.put_off_judgement(now);
            return;
        };
        let Some(interface) = self.interfaces_mut().get_mut(index) else { return };
        let record = &mut interface.watch_mut().record;
        let run = record.examination.map_or(0, |examination| examination.run());
        let round_trip = record.examination.and_then(|examination| examination.round_trip());
        let (passed, failed) = match purpose {
            Purpose::Leave(bad) => {
                let needed = round_trip.or(record.least_round_trip()).map(|time| probes_needed(&bad, time));
                let passed = needed.flatten().is_some_and(|needed| run >= needed);
                (passed, needed == Some(None) || record.is_found_wanting(needed.flatten()))
            }
            Purpose::Return => (record.is_good_again(), record.is_found_wanting(None)),
        };
        if passed {
            record.examination = None;
            return match purpose {
                Purpose::Leave(bad) => self.leave_bad_path(now, index, bad),
                Purpose::Return => {
                    record.avoided = None;
                    self.hand_over(now, index, HandoverReason::PathGood);
                }
            };
        }
        if failed {
            (record.examination, record.examine_from) = (None, now + EXAMINE_AGAIN);
            self.put_off_judgement(now);
            return;
        }
        self.examine(now, index);
    }

    /// Sends the next probe of an examination, if it is time.
    fn examine(&mut self, now: Instant, index: usize) {
        let last = self.interfaces().get(index).and_then(|interface| interface.watch().monitor.last_probe());
        let next = last.map_or(now, |last| last + EXAMINE_INTERVAL);
        if next > now {
            self.supervision_mut().judge_at = next;
            return;
        }
        let active = self.course().active;
        let mut pays = |payer: usize| {
            let payer = self.interfaces_mut().get_mut(payer);
            payer.is_some_and(|payer| payer.watch_mut().monitor.pay(now))
        };
        if !pays(index) && !active.is_some_and(pays) {
            self.supervision_mut().judge_at = now + UNPAID;
            return;
        }
        if let Some(interface) = self.interfaces_mut().get_mut(index) {
            interface.watch_mut().record.examine();
            interface.watch_mut().monitor.credit();
        }
        self.probe(now, index);
        self.supervision_mut().judge_at = now + EXAMINE_INTERVAL;
    }

    /// What is to be examined, and why.
    fn wanted(&self, now: Instant) -> Option<(usize, Purpose)> {
        let course = self.course();
        let active = course.active.filter(|active| course.desired == Some(*active))?;
        if !self.chooses_by_quality() || course.is_moving || !self.supervision().probes_understood {
            return None;
        }
        let used = self.interfaces().get(active)?;
        used.watch().monitor.care_of()?;
        let others = || {
            let others = self.interfaces().iter().enumerate();
            others.filter(|&(index, other)| {
                let works = self.is_usable(now, index) && other.watch().monitor.care_of().is_some();
                let is_alive = other.watch().monitor.state() == PathState::Alive;
                index != active && works && is_alive && other.watch().record.examine_from <= now
            })
        };
        let first =
            |(index, other): &(usize, &Self::Interface)| (other.standing(), core::cmp::Reverse(*index));
        let bad = used.watch().record.bad().filter(|_| used.watch().record.kept_until <= now);
        if let Some(bad) = bad {
            let better = others().filter(|(_, other)| {
                let avoided = other.watch().record.avoided.is_some_and(|avoided| avoided.until > now);
                let costs = other.is_metered() && !used.is_metered();
                let carries = carries_more(other.watch().record.carries(now, other.told()), &bad);
                !avoided && (!costs || bad.fault.justifies_cost()) && carries
            });
            if let Some((index, _)) = better.max_by_key(first) {
                return Some((index, Purpose::Leave(bad)));
            }
        }
        let back = others().filter(|(_, other)| {
            let is_due = other.watch().record.avoided.is_some_and(|avoided| avoided.until <= now);
            is_due && other.standing() > used.standing()
        });
        back.max_by_key(first).map(|(index, _)| (index, Purpose::Return))
    }

    /// When something will be worth examining that is not now, unless an answer tells before.
    fn judgement_due(&self, now: Instant) -> Instant {
        if !self.chooses_by_quality() {
            return Instant::MAX;
        }
        let avoided = self.interfaces().iter().filter_map(|interface| {
            let record = &interface.watch().record;
            record.avoided.map(|avoided| avoided.until.max(record.examine_from))
        });
        avoided.filter(|at| *at > now).min().unwrap_or(Instant::MAX)
    }

    fn put_off_judgement(&mut self, now: Instant) {
        self.supervision_mut().judge_at = self.judgement_due(now);
    }

    /// The path in use is bad, and that through interface `to` is better.
    fn leave_bad_path(&mut self, now: Instant, to: usize, bad: Bad) {
        let Some(from) = self.course().active else { return };
        if let Some(left) = self.interfaces_mut().get_mut(from) {
            left.watch_mut().record.leave(now);
        }
        self.supervision_mut().trial = Some(Trial { from, to, until: now + TRIAL, delivered: bad.delivered });
        self.hand_over(now, to, HandoverReason::PathBad(bad.fault));
        self.put_off_judgement(now);
    }
}

impl<T: PathWatch + ?Sized> PathChoice for T {}
