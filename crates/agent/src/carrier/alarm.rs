//! A descriptor that becomes readable when something is due.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_base::Instant;
use nix::errno::Errno;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

/// An alarm clock, for one time at a time.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: TimerFd,
    armed: Option<Instant>,
}

/// The error of a call by which things are waited for.
pub(crate) fn failed(call: &'static str) -> impl Fn(Errno) -> careof_lab::Error {
    move |errno| careof_lab::Error::System { doing: "wait for several things".to_owned(), call, errno }
}

impl Alarm {
    pub(crate) fn new() -> Result<Self, careof_lab::Error> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        // The clock that the agent's instants are of: after a sleep of the machine, what was due meanwhile is due.
        let timer = TimerFd::new(ClockId::CLOCK_BOOTTIME, flags).map_err(failed("timerfd_create"))?;
        Ok(Self { timer, armed: None })
    }

    /// It went off, and is silent from now on.
    pub(crate) fn acknowledge(&mut self) {
        // It says how often it expired, which is of no interest.
        let _ = self.timer.wait();
        self.armed = None;
    }

    /// Has the descriptor become readable at `next`.
    pub(crate) fn arm(&mut self, now: Instant, next: Option<Instant>) -> Result<(), careof_lab::Error> {
        if self.armed == next {
            return Ok(());
        }
        self.armed = next;
        let outcome = match next {
            None => self.timer.unset(),
            Some(at) => {
                // Zero would switch it off.
                let span = at.saturating_duration_since(now).max(Duration::from_nanos(1));
                let expiration = Expiration::OneShot(TimeSpec::from_duration(span));
                self.timer.set(expiration, TimerSetTimeFlags::empty())
            }
        };
        outcome.map_err(failed("timerfd_settime"))
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}
