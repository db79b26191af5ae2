//! When flows and mobile nodes want to be woken.

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;

use careof_base::Instant;

use crate::{FlowKey, Wake};

/// Whose timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Flow(FlowKey),
    Mobile(IpAddr),
    Agent,
}

impl Owner {
    /// The mobile node that it is, or whose flow.
    pub(crate) const fn mobile(self) -> Option<IpAddr> {
        match self {
            Self::Flow(key) => Some(key.mobile),
            Self::Mobile(mobile) => Some(mobile),
            Self::Agent => None,
        }
    }
}

/// At most one deadline an owner and reason.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    due: BTreeSet<(Instant, Owner, Wake)>,
    at: BTreeMap<(Owner, Wake), Instant>,
}

impl Timers {
    /// Sets, or moves, a deadline.
    pub(crate) fn set(&mut self, owner: Owner, wake: Wake, at: Instant) {
        let before = self.at.insert((owner, wake), at);
        if before == Some(at) {
            return;
        }
        if let Some(before) = before {
            self.due.remove(&(before, owner, wake));
        }
        self.due.insert((at, owner, wake));
    }

    /// Sets a deadline, or stops the one there is.
    pub(crate) fn set_or_stop(&mut self, owner: Owner, wake: Wake, at: Option<Instant>) {
        match at {
            Some(at) => self.set(owner, wake, at),
            None => self.stop(owner, wake),
        }
    }

    /// Sets a deadline unless there is an earlier one.
    pub(crate) fn set_no_later(&mut self, owner: Owner, wake: Wake, at: Instant) {
        if self.get(owner, wake).is_none_or(|present| at < present) {
            self.set(owner, wake, at);
        }
    }

    pub(crate) fn get(&self, owner: Owner, wake: Wake) -> Option<Instant> {
        self.at.get(&(owner, wake)).copied()
    }

    pub(crate) fn stop(&mut self, owner: Owner, wake: Wake) {
        if let Some(at) = self.at.remove(&(owner, wake)) {
            self.due.remove(&(at, owner, wake));
        }
    }

    /// Stops all of an owner's.
    pub(crate) fn forget(&mut self, owner: Owner) {
        while let Some((&(found, wake), _)) = self.at.range((owner, Wake::Release)..).next() {
            if found != owner {
                break;
            }
            self.stop(owner, wake);
        }
    }

    pub(crate) fn next(&self) -> Option<(Instant, Wake)> {
        self.due.first().map(|&(at, _, wake)| (at, wake))
    }

    /// The next one that is due, taken out.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<(Owner, Wake)> {
        let &(at, owner, wake) = self.due.first()?;
        if at > now {
            return None;
        }
        self.stop(owner, wake);
        Some((owner, wake))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_woken_once_a_reason_and_forgotten_with_all() {
        let mut timers = Timers::default();
        let one = Owner::Mobile(IpAddr::from([10, 0, 0, 1]));
        let other = Owner::Mobile(IpAddr::from([10, 0, 0, 2]));
        timers.set(one, Wake::Thaw, Instant::from_secs(5));
        timers.set(one, Wake::Thaw, Instant::from_secs(3));
        timers.set_no_later(one, Wake::Thaw, Instant::from_secs(4));
        timers.set(one, Wake::Age, Instant::from_secs(9));
        timers.set(other, Wake::Release, Instant::from_secs(4));
        assert_eq!(timers.next(), Some((Instant::from_secs(3), Wake::Thaw)));
        assert_eq!(timers.take_due(Instant::from_secs(2)), None);
        assert_eq!(timers.take_due(Instant::from_secs(3)), Some((one, Wake::Thaw)));
        timers.forget(one);
        assert_eq!(timers.next(), Some((Instant::from_secs(4), Wake::Release)));
        assert_eq!(timers.take_due(Instant::MAX), Some((other, Wake::Release)));
        assert_eq!(timers.take_due(Instant::MAX), None);
    }
}
