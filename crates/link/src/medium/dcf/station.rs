//! One station on a radio channel: its back-off, and its tries.

use careof_base::{Instant, RandomStream};

use super::config::DcfConfig;
use crate::medium::port::{Port, after};

/// What limits a station's tries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    cw_min: u32,
    cw_max: u32,
    short: u32,
    long: u32,
}

impl Limits {
    pub(crate) const fn of(config: &DcfConfig) -> Self {
        Self {
            cw_min: config.phy.cw_min,
            cw_max: config.phy.cw_max,
            short: config.short_retry_limit,
            long: config.long_retry_limit,
        }
    }
}

/// What a station has sent in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// A request to send, or a frame that needs none.
    Short,
    /// A frame that a request was made for.
    Long,
}

#[derive(Clone, Debug)]
pub(crate) struct Station {
    /// When it begins to send, if it hears nothing before; [`Instant::MAX`] while that is open.
    pub(crate) start: Instant,
    /// Since when it sends.
    pub(crate) sending: Option<Instant>,
    /// From when it counts its slots; [`Instant::MAX`] while it hears somebody.
    begin: Instant,
    /// Slots of its back-off that were left at `begin`.
    slots: u64,
    window: u32,
    tries: [u32; 2],
}

impl Station {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            start: Instant::MAX,
            sending: None,
            begin: Instant::ZERO,
            slots: 0,
            window: limits.cw_min,
            tries: [0; 2],
        }
    }

    /// Sets the start of what it has to send, at `now` or later, if nothing stands in the way.
    pub(crate) fn plan<P>(&mut self, port: &Port<P>, now: Instant, slot: u64) {
        let waits = port.frame.is_some() && self.sending.is_none() && port.down.is_none();
        self.start = if waits { now.max(self.ready(slot)) } else { Instant::MAX };
    }

    /// When its back-off is over, if the medium stays idle.
    fn ready(&self, slot: u64) -> Instant {
        after(self.begin, self.slots.saturating_mul(slot))
    }

    /// Draws a back-off unless one is running: of a medium that is busy, or has not been idle long enough.
    pub(crate) fn defer(&mut self, now: Instant, random: &mut RandomStream) {
        if self.slots == 0 && now < self.begin {
            self.draw(random);
        }
    }

    fn draw(&mut self, random: &mut RandomStream) {
        self.slots = random.below(u64::from(self.window) + 1);
    }

    /// It hears somebody: slots that are over by `now` count.
    pub(crate) fn freeze(&mut self, now: Instant, slot: u64) {
        let idle = now.saturating_duration_since(self.begin).as_nanos();
        let over = u64::try_from(idle).unwrap_or(u64::MAX).checked_div(slot).unwrap_or(u64::MAX);
        self.slots = self.slots.saturating_sub(over);
        self.hears();
    }

    /// It hears somebody, or does not know yet from when it may count.
    pub(crate) const fn hears(&mut self) {
        (self.begin, self.start) = (Instant::MAX, Instant::MAX);
    }

    /// It waits to be told from when it may count.
    pub(crate) fn is_frozen(&self) -> bool {
        self.begin == Instant::MAX
    }

    /// It counts its slots from `begin` on.
    pub(crate) const fn resume(&mut self, begin: Instant) {
        self.begin = begin;
    }

    /// Begins with a frame afresh.
    pub(crate) const fn take_up(&mut self, limits: &Limits) {
        self.window = limits.cw_min;
        self.tries = [0; 2];
    }

    /// Its frame has arrived, or is given up: it backs off before the next.
    pub(crate) fn is_done(&mut self, limits: &Limits, random: &mut RandomStream) {
        self.take_up(limits);
        self.draw(random);
    }

    /// Nobody has answered: it backs off longer. `false` when it has tried often enough.
    pub(crate) fn fails(&mut self, what: Failed, limits: &Limits, random: &mut RandomStream) -> bool {
        let (tries, limit) = match what {
            Failed::Short => (&mut self.tries[0], limits.short),
            Failed::Long => (&mut self.tries[1], limits.long),
        };
        *tries = tries.saturating_add(1);
        if *tries >= limit {
            return false;
        }
        self.window = self.window.saturating_mul(2).saturating_add(1).min(limits.cw_max);
        self.draw(random);
        true
    }

    /// It leaves, and forgets.
    pub(crate) const fn leaves(&mut self, limits: &Limits) {
        self.take_up(limits);
        self.slots = 0;
        self.start = Instant::MAX;
        self.sending = None;
    }
}
