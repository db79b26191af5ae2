//! When a mobile node asks the kernel about its links, beside listening.
//!
//! The kernel tells at most once a second of carriers that are lost, over all interfaces of the machine: after one change the next
//! loss may be told up to a second late, and one that was made good meanwhile is never told. A question is answered with what is
//! so now. So one is asked whenever anything is told of any interface, and again some times in the second after it; and when
//! somebody has reason to doubt a link, because nothing comes by it any longer.

use std::time::Duration;

use careof_base::{Allowance, Instant, Used};

/// Time between two questions.
const INTERVAL: Duration = Duration::from_millis(50);
/// For so long after a change of a link the kernel may keep a loss to itself.
const SECRECY: Duration = Duration::from_secs(1);
/// However much is told and doubted: each question looks at every interface of the configuration.
const RATION: Allowance = Allowance::new(8, INTERVAL);

/// When to ask.
#[derive(Debug, Default)]
pub(super) struct Questions {
    due: Option<Instant>,
    /// Until then a loss may not have been told.
    until: Instant,
    used: Used,
    /// Times that the kernel was asked.
    pub(super) asked: u64,
    /// Interruptions of a link that were not told, but found by asking or by a later message.
    pub(super) flaps: u64,
}

impl Questions {
    /// Somebody doubts the links, or an address has changed.
    pub(super) fn ask(&mut self, now: Instant) {
        self.due = Some(now);
    }

    /// The kernel has told of a link, any link.
    pub(super) fn link_changed(&mut self, now: Instant) {
        self.until = now + SECRECY;
        self.ask(now);
    }

    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.due
    }

    /// Whether to ask now; it counts as asked then.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|at| at > now) {
            return false;
        }
        let again = now + INTERVAL;
        let may_ask = self.used.take(now, RATION);
        self.due = (!may_ask || again <= self.until).then_some(again);
        self.asked += u64::from(may_ask);
        may_ask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks whenever it is time to, up to `end`; the times in milliseconds.
    fn asked(questions: &mut Questions, end: Instant) -> Vec<u64> {
        let mut times = Vec::new();
        while let Some(at) = questions.next_timeout().filter(|at| *at <= end) {
            if questions.take(at) {
                times.push(at.as_nanos() / 1_000_000);
            }
        }
        times
    }

    #[test]
    fn it_asks_while_a_loss_may_be_kept_secret_and_then_no_more() {
        let mut questions = Questions::default();
        assert!(!questions.take(Instant::from_secs(5)));
        questions.link_changed(Instant::from_secs(10));
        let times = asked(&mut questions, Instant::from_secs(100));
        assert_eq!(times, (0..=20).map(|n| 10_000 + 50 * n).collect::<Vec<_>>());
        questions.ask(Instant::from_secs(200));
        assert_eq!(asked(&mut questions, Instant::from_secs(300)), [200_000]);
        assert_eq!(questions.asked, 22);
    }

    #[test]
    fn however_much_is_told_it_asks_no_more_often_than_it_may() {
        let mut questions = Questions::default();
        let mut asked = 0;
        for millis in 0..10_000 {
            let now = Instant::from_millis(millis);
            questions.link_changed(now);
            asked += u32::from(questions.take(now));
        }
        assert!((200..=208).contains(&asked), "{asked}");
        // What was told last is asked about in any case.
        assert!(questions.next_timeout().is_some());
    }
}
