//! One station on a cable: how it comes to its turn.

use careof_base::{Instant, RandomStream};

use super::config::{ATTEMPT_LIMIT, BACKOFF_LIMIT, Times};
use crate::medium::port::{Port, after};

#[derive(Clone, Debug)]
pub(crate) struct Station {
    /// When it begins to send, if it hears nothing before; [`Instant::MAX`] while that is open.
    pub(crate) start: Instant,
    /// Its signal is on the cable and not yet complete.
    pub(crate) is_sending: bool,
    /// Transmissions of the frame so far, all of which collided.
    attempts: u32,
    /// The end of its back-off.
    backed_off: Instant,
    /// Signals of others that it hears.
    pub(crate) carriers: u32,
    /// The end of the gap after what it heard or sent last; of no meaning while it hears or sends something.
    free: Instant,
}

impl Station {
    pub(crate) const fn new() -> Self {
        Self {
            start: Instant::MAX,
            is_sending: false,
            attempts: 0,
            backed_off: Instant::ZERO,
            carriers: 0,
            free: Instant::ZERO,
        }
    }

    /// Begins with a frame afresh.
    pub(crate) const fn take_up(&mut self) {
        self.attempts = 0;
        self.backed_off = Instant::ZERO;
    }

    /// Sets the start of what it has to send, at `now` or later, if nothing stands in the way.
    pub(crate) fn plan<P>(&mut self, port: &Port<P>, now: Instant, is_open: bool) {
        let waits = port.frame.is_some() && !self.is_sending && self.carriers == 0 && port.down.is_none();
        self.start = if is_open && waits { now.max(self.free).max(self.backed_off) } else { Instant::MAX };
    }

    /// It neither hears nor sends anything from `now` on.
    pub(crate) fn falls_silent(&mut self, now: Instant, times: &Times) {
        self.free = after(now, times.gap);
    }

    /// Its frame has collided: draws when to try again, counted from `now`. `false` when it has tried often enough.
    pub(crate) fn back_off(&mut self, now: Instant, times: &Times, random: &mut RandomStream) -> bool {
        self.attempts += 1;
        if self.attempts >= ATTEMPT_LIMIT {
            return false;
        }
        let slots = random.below(1 << self.attempts.min(BACKOFF_LIMIT));
        self.backed_off = after(now, slots.saturating_mul(times.slot));
        true
    }
}
