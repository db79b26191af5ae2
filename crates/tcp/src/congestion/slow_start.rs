//! Slow start, and what ends it before a loss ([`crate::HyStart`]).

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::AckSample;
use super::hystart::HyStart;
use super::hystart_plus_plus::HyStartPlusPlus;
use super::window::Window;
use super::{linux_reno, reno};
use crate::config::{self, Config};

#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowStart {
    /// The least round trip since the beginning or the last timeout.
    delay_min: Option<Duration>,
    exit: Exit,
}

#[derive(Clone, Copy, Debug)]
enum Exit {
    ByLoss,
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
}

impl SlowStart {
    pub(crate) fn new(config: &Config) -> Self {
        let exit = match config.hystart {
            config::HyStart::Off => Exit::ByLoss,
            config::HyStart::Linux => Exit::HyStart(HyStart::new()),
            config::HyStart::PlusPlus => Exit::PlusPlus(HyStartPlusPlus::new()),
        };
        Self { delay_min: None, exit }
    }

    /// The kernel's Reno has no HyStart: it is part of its CUBIC.
    pub(crate) fn of_linux_reno(config: &Config) -> Self {
        let this = Self::new(config);
        if matches!(this.exit, Exit::HyStart(_)) { Self { exit: Exit::ByLoss, ..this } } else { this }
    }

    /// Begins: with the connection, after a timeout.
    pub(crate) fn begin(&mut self, now: Instant, nxt: SeqNumber) {
        self.delay_min = None;
        match &mut self.exit {
            Exit::ByLoss => {}
            Exit::HyStart(hystart) => hystart.reset(now, nxt),
            Exit::PlusPlus(hystart) => hystart.begin_round(nxt),
        }
    }

    /// Whether only a loss ends it, so that round trips do not matter.
    pub(crate) fn ends_by_loss(&self) -> bool {
        matches!(self.exit, Exit::ByLoss)
    }

    pub(crate) fn delay_min(&self) -> Option<Duration> {
        self.delay_min
    }

    pub(crate) fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        let rtt = rtt.max(Duration::from_micros(1));
        let least = self.delay_min.map_or(rtt, |least| least.min(rtt));
        self.delay_min = Some(least);
        match &mut self.exit {
            Exit::ByLoss => {}
            Exit::HyStart(hystart) => hystart.on_ack(window, sample, rtt, least),
            Exit::PlusPlus(hystart) => hystart.on_ack(window, sample, rtt),
        }
    }

    /// Grows by `acked` bytes; the window is below the threshold.
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u32) {
        match &self.exit {
            Exit::PlusPlus(hystart) if hystart.is_active() => hystart.grow(window, acked),
            _ => reno::slow_start(window, acked),
        }
    }

    /// Grows by `acked` segments where the window is below the threshold; returns what is left over.
    pub(crate) fn grow_segments(&mut self, window: &mut Window, acked: u32) -> u32 {
        match &self.exit {
            Exit::PlusPlus(hystart) if hystart.is_active() && window.in_slow_start() => {
                hystart.grow(window, acked.saturating_mul(window.mss()));
                0
            }
            _ => linux_reno::slow_start(window, acked),
        }
    }

    pub(crate) fn on_loss(&mut self) {
        if let Exit::PlusPlus(hystart) = &mut self.exit {
            hystart.end();
        }
    }
}
