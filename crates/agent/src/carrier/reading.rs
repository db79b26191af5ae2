//! The host is read again and again, and an answer that is not understood must not end the agent.
//!
//! The kernel's tables may change faster than they can be read in one piece, and a newer kernel may say something that
//! is not known here. The agent goes on with what it knew, says so, and tries again until it succeeds.

use std::time::Duration;

use careof_base::Instant;
use careof_lab::Error;

/// Time between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// How reading the host's interfaces and addresses goes.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// Attempts that failed.
    pub(super) failed: u64,
    /// Why the latest failed, and when to try again.
    failure: Option<(Error, Instant)>,
    /// Attempts that a test wants to fail.
    refused: u32,
}

impl Reading {
    /// Takes in how an attempt went; what was read, if it was.
    pub(super) fn note<T>(&mut self, now: Instant, outcome: Result<T, Error>) -> Option<T> {
        match outcome {
            Ok(read) => Some(read),
            Err(error) => {
                self.failed += 1;
                self.failure = Some((error, now + RETRY));
                None
            }
        }
    }

    /// Everything is to be read: only that makes good for what failed before.
    pub(super) fn begin(&mut self) {
        self.failure = None;
    }

    /// When to read everything again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.failure.as_ref().map(|(_, at)| *at)
    }

    /// Why what is known may be old, while it may.
    pub(super) fn problem(&self) -> Option<&Error> {
        self.failure.as_ref().map(|(error, _)| error)
    }

    /// As [`Reading::problem`], for good.
    pub(super) fn take_problem(&mut self) -> Option<Error> {
        self.failure.take().map(|(error, _)| error)
    }

    pub(super) const fn refuse(&mut self, attempts: u32) {
        self.refused = attempts;
    }

    /// Whether a test wants this attempt to fail.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        if self.refused == 0 {
            return Ok(());
        }
        self.refused -= 1;
        let doing = "list the interfaces".to_owned();
        Err(Error::Netlink { doing, problem: "refused for a test".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_read_again_until_all_of_it_was() {
        let mut reading = Reading::default();
        reading.refuse(1);
        let now = Instant::from_secs(5);
        let outcome = reading.check();
        assert_eq!(reading.note(now, outcome), None);
        assert_eq!((reading.failed, reading.next_timeout()), (1, Some(now + RETRY)));
        // A part that succeeds says nothing about the rest.
        assert_eq!(reading.note(now, Ok(1)), Some(1));
        assert!(reading.problem().is_some());
        reading.begin();
        assert!(reading.next_timeout().is_none() && reading.problem().is_none());
        assert_eq!(reading.check(), Ok(()));
    }
}
