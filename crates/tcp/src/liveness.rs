//! Why no connection falls silent for ever: what has to hold after every call of the owner, stated once and asserted in
//! debug builds.
//!
//! 1. While anything is outstanding, the retransmission timer runs; so it does while the path is
//!    [away](crate::Advice::Away) and anything is outstanding or waits to be sent.
//! 2. The timer of [`Variant::Linux`] serves several purposes; it runs exactly if it has one, or the path is away.
//! 3. When there is nothing to send now, but something waits to be sent for the first time and nothing is outstanding, the timer
//!    that probes the peer's closed window runs, or that of pacing.
//! 4. A closed connection runs no timer; one in TIME-WAIT runs the timer that ends it.

use crate::config::Variant;
use crate::connection::Connection;
use crate::sender::Sender;
use crate::state::State;

impl Connection {
    /// Asserts what holds after every input.
    #[inline(always)]
    pub(crate) fn after_input(&self) {
        if cfg!(debug_assertions) {
            self.assert(Self::waits_for_something);
        }
    }

    /// Asserts what holds as well when there is nothing to send now.
    #[inline(always)]
    pub(crate) fn after_last_transmission(&self) {
        if cfg!(debug_assertions) {
            self.assert(Self::is_live);
        }
    }

    /// What holds when there is nothing to send now, or what does not.
    pub(crate) fn is_live(&self) -> Result<(), &'static str> {
        self.waits_for_something()?;
        self.will_send_what_waits()
    }

    fn assert(&self, rule: impl FnOnce(&Self) -> Result<(), &'static str>) {
        if let Err(fault) = rule(self) {
            panic!("{fault}: {:?}, next timeout {:?}", self.snapshot(), self.next_timeout());
        }
    }

    fn waits_for_something(&self) -> Result<(), &'static str> {
        match self.state {
            State::Closed if self.next_timeout().is_some() => Err("a closed connection runs a timer"),
            State::TimeWait if !self.time_wait.is_armed() => Err("TIME-WAIT would never end"),
            State::Closed | State::TimeWait => Ok(()),
            _ => self.sender.waits_for_acknowledgement(),
        }
    }

    fn will_send_what_waits(&self) -> Result<(), &'static str> {
        match self.state {
            State::Closed | State::TimeWait => Ok(()),
            _ => self.sender.will_send_what_waits(),
        }
    }
}

impl Sender {
    fn waits_for_acknowledgement(&self) -> Result<(), &'static str> {
        if !self.queue.is_empty() && !self.timer.is_armed() {
            return Err("something is outstanding, and no timer runs for it");
        }
        if self.variant == Variant::Linux {
            let purpose = self.linux.timer_has_purpose();
            if purpose && !self.timer.is_armed() {
                return Err("the timer has a purpose and does not run");
            }
            if self.timer.is_armed() && !purpose && self.away.is_none() {
                return Err("the timer runs without a purpose");
            }
        }
        Ok(())
    }

    fn will_send_what_waits(&self) -> Result<(), &'static str> {
        let waits = self.has_unsent() && self.queue.is_empty() && (self.may_send() || self.away.is_some());
        let wakes = self.persist.timer().is_armed()
            || self.pacing.timer().is_armed()
            || self.away.is_some() && self.timer.is_armed();
        if waits && !wakes {
            return Err("something waits to be sent, and no timer runs for it");
        }
        Ok(())
    }
}
