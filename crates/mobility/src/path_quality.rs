//! The path in use is left, make before break, when it is bad and another one clearly better; and come back to when it is good
//! again. What bad, better and good are is said in [`crate::v4::path_merit`].
//!
//! How often, at most: an interface that was left as bad is avoided for 60 s, then for twice as long each time, up to an hour, and is
//! forgiven after two hours. So in the first hour each is left 1 + log2(1 + T / 60 s) times in T, five times in half an hour, and
//! from then on once an hour; and it is come back to no more often than it was left.
//!
//! Cost: the probes by which a path is examined are paid for from what it may take for its own (40 bytes a second), or from what
//! the path in use may (1 % of what passes and 40 bytes a second), and leave enough there for doubts.

use core::time::Duration;

use careof_base::Instant;

use super::MobileNode;
use super::attachment::Interface;
use crate::Selection;
use crate::v4::path_merit::{Bad, Rates, Told, carries_more, probes_needed};
use crate::v4::path_monitor::Answer;
use crate::v4::{HandoverReason, Notice, PathState};

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
enum Purpose {
    /// The path in use is bad.
    Leave(Bad),
    /// One that was left may be good again.
    Return,
}

/// The path come to from a bad one is watched.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trial {
    from: usize,
    to: usize,
    until: Instant,
    /// What the bad one delivered.
    delivered: Rates,
}

impl Interface {
    /// Where the interface stands in the owner's order: those that cost nothing first.
    pub(super) const fn standing(&self) -> (bool, u8) {
        (!self.config.metered, self.config.preference)
    }

    /// The same where something is needed that works: those that were left as bad come last.
    pub(super) const fn standing_in_need(&self) -> (bool, bool, u8) {
        let (free, preference) = self.standing();
        (self.record.avoided.is_none(), free, preference)
    }
}

impl MobileNode {
    /// A probe of the path through interface `index` was answered.
    pub(super) fn take_answer(&mut self, now: Instant, index: usize, answer: &Answer) {
        let in_use = self.active == Some(index) && self.handover.is_none();
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let told = interface.record.answered(answer, in_use, interface.path);
        if let Some(told) = told {
            self.try_out(now, index, told);
        }
    }

    fn chooses_by_quality(&self) -> bool {
        let chooses = matches!(self.config.selection, Selection::Preferred { .. });
        chooses && self.config.path_monitor && self.config.leave_bad_paths && !self.pinned && !self.left
    }

    /// A path that was come to because it carries more than a bad one has to.
    fn try_out(&mut self, now: Instant, index: usize, told: Told) {
        let Some(trial) = self.trial.filter(|trial| trial.to == index && self.chooses_by_quality()) else {
            return;
        };
        if now >= trial.until {
            self.trial = None;
            return;
        }
        let busier = usize::from(trial.delivered[1] > trial.delivered[0]);
        let from = self.interfaces.get(trial.from).map(|from| from.monitor.state());
        let is_better = !told.is_full || told.delivered[busier] >= trial.delivered[busier];
        if is_better || from != Some(PathState::Alive) || !self.is_viable(now, trial.from) {
            return;
        }
        self.trial = None;
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.record.refute(now, told.delivered);
        }
        if let Some(from) = self.interfaces.get_mut(trial.from) {
            from.record.keep(now);
        }
        self.begin_handover(now, trial.from, Notice::None, HandoverReason::NotBetter);
    }

    /// Finds out whether another path is to be used because it is better, as far as that goes by now.
    pub(super) fn judge_paths(&mut self, now: Instant) {
        self.judge_at = Instant::MAX;
        if self.handover.is_none()
            && let Some(used) = self.active.and_then(|active| self.interfaces.get_mut(active))
        {
            // It could not be left.
            used.record.avoided = None;
        }
        let wanted = self.wanted(now);
        for (index, interface) in self.interfaces.iter_mut().enumerate() {
            if wanted.is_none_or(|(wanted, _)| wanted != index) {
                interface.record.examination = None;
            }
        }
        let Some((index, purpose)) = wanted else {
            self.judge_at = self.judgement_due(now);
            return;
        };
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let record = &mut interface.record;
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
                    self.begin_handover(now, index, Notice::None, HandoverReason::PathGood);
                }
            };
        }
        if failed {
            (record.examination, record.examine_from) = (None, now + EXAMINE_AGAIN);
            self.judge_at = self.judgement_due(now);
            return;
        }
        self.examine(now, index);
    }

    /// Sends the next probe of an examination, if it is time.
    fn examine(&mut self, now: Instant, index: usize) {
        let last = self.interfaces.get(index).and_then(|interface| interface.monitor.last_probe());
        let next = last.map_or(now, |last| last + EXAMINE_INTERVAL);
        if next > now {
            self.judge_at = next;
            return;
        }
        let mut pays =
            |payer: usize| self.interfaces.get_mut(payer).is_some_and(|payer| payer.monitor.pay(now));
        if !pays(index) && !self.active.is_some_and(pays) {
            self.judge_at = now + UNPAID;
            return;
        }
        if let Some(interface) = self.interfaces.get_mut(index) {
            interface.record.examine();
            interface.monitor.credit();
        }
        self.probe(now, index);
        self.judge_at = now + EXAMINE_INTERVAL;
    }

    /// What is to be examined, and why.
    fn wanted(&self, now: Instant) -> Option<(usize, Purpose)> {
        let active = self.active.filter(|active| self.desired == Some(*active))?;
        if !self.chooses_by_quality() || self.handover.is_some() || !self.probes_understood {
            return None;
        }
        let used = self.interfaces.get(active)?;
        used.monitor.care_of()?;
        let others = || {
            let others = self.interfaces.iter().enumerate();
            others.filter(|&(index, other)| {
                let works = self.is_viable(now, index) && other.monitor.care_of().is_some();
                let is_alive = other.monitor.state() == PathState::Alive;
                index != active && works && is_alive && other.record.examine_from <= now
            })
        };
        let first = |(index, other): &(usize, &Interface)| (other.standing(), core::cmp::Reverse(*index));
        let bad = used.record.bad().filter(|_| used.record.kept_until <= now);
        if let Some(bad) = bad {
            let better = others().filter(|(_, other)| {
                let avoided = other.record.avoided.is_some_and(|avoided| avoided.until > now);
                let costs = other.config.metered && !used.config.metered;
                let carries = carries_more(other.record.carries(now, other.path), &bad);
                !avoided && (!costs || bad.fault.justifies_cost()) && carries
            });
            if let Some((index, _)) = better.max_by_key(first) {
                return Some((index, Purpose::Leave(bad)));
            }
        }
        let back = others().filter(|(_, other)| {
            let is_due = other.record.avoided.is_some_and(|avoided| avoided.until <= now);
            is_due && other.standing() > used.standing()
        });
        back.max_by_key(first).map(|(index, _)| (index, Purpose::Return))
    }

    /// When something will be worth examining that is not now, unless an answer tells before.
    fn judgement_due(&self, now: Instant) -> Instant {
        if !self.chooses_by_quality() {
            return Instant::MAX;
        }
        let avoided = self.interfaces.iter().filter_map(|interface| {
            let record = &interface.record;
            record.avoided.map(|avoided| avoided.until.max(record.examine_from))
        });
        avoided.filter(|at| *at > now).min().unwrap_or(Instant::MAX)
    }

    /// The path in use is bad, and that through interface `to` is better.
    fn leave_bad_path(&mut self, now: Instant, to: usize, bad: Bad) {
        let Some(from) = self.active else { return };
        if let Some(left) = self.interfaces.get_mut(from) {
            left.record.leave(now);
        }
        self.trial = Some(Trial { from, to, until: now + TRIAL, delivered: bad.delivered });
        self.begin_handover(now, to, Notice::None, HandoverReason::PathBad(bad.fault));
        self.judge_at = self.judgement_due(now);
    }
}
