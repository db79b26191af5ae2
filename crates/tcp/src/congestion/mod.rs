//! Congestion control: how the window grows, and what a loss leaves of it. One file an algorithm, chosen at run time
//! by [`crate::CongestionControl`].
//!
//! Loss recovery decides *when* there was a loss, a recovery, a timeout, and tells the [`Controller`]; what it has to
//! say about the window during a recovery (inflation, PRR) stays its own. The controllers of
//! [`crate::Variant::Linux`] are the kernel's editions, in whole segments, and have its hooks; the others
//! follow an RFC or a paper, in bytes.

pub(crate) mod bbr;
pub(crate) mod bbr3;
mod bbr_aggregation;
mod bbr_policer;
mod cube_root;
pub(crate) mod cubic;
mod hystart;
mod hystart_plus_plus;
mod linux_cubic;
mod linux_reno;
mod model;
mod path;
pub(crate) mod reno;
mod slow_start;
mod vegas;
mod westwood;
mod window;
mod windowed_max;

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::config::{Config, CongestionControl, Variant};
use crate::snapshot::Phase;

use bbr::Bbr;
use bbr3::Bbr3;
use cubic::Cubic;
use linux_cubic::LinuxCubic;
use slow_start::SlowStart;
use vegas::Vegas;

pub(crate) use path::Path;
pub(crate) use westwood::Westwood;
pub(crate) use window::Window;
pub(crate) use windowed_max::WindowedMax;

/// An acknowledgement as congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckSample {
    pub(crate) now: Instant,
    /// Bytes newly acknowledged cumulatively.
    pub(crate) acked: u32,
    /// Segments newly delivered, cumulatively or selectively (Linux's `acked_sacked`; 0 with the other variants).
    pub(crate) delivered: u32,
    /// Round trip of a segment that was sent once and is now acknowledged; `None` if there is none.
    pub(crate) rtt: Option<Duration>,
    /// Smoothed round-trip time, this acknowledgement included.
    pub(crate) srtt: Option<Duration>,
    /// First sequence number not acknowledged, this acknowledgement included.
    pub(crate) una: SeqNumber,
    /// Everything before has been sent.
    pub(crate) nxt: SeqNumber,
    /// The sender uses its window: nothing else held it back (`tcp_is_cwnd_limited`, [`Window::may_grow`]).
    pub(crate) window_limited: bool,
    /// The segment was what the header prediction of Linux's sender expects: no `CA_ACK_SLOWPATH`.
    pub(crate) predicted: bool,
}

/// The states of Linux's sender (`enum tcp_ca_state`), in its order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CaState {
    /// Nothing is missing.
    #[default]
    Open,
    /// Duplicates or selective acknowledgements came, too few for a loss.
    Disorder,
    /// The window is being reduced for a mark or a local queue, not for a loss.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

impl From<Phase> for CaState {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Open => Self::Open,
            Phase::FastRecovery => Self::Recovery,
            Phase::Loss => Self::Loss,
        }
    }
}

/// The congestion control in use.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(SlowStart),
    LinuxReno(SlowStart),
    Cubic(Cubic),
    LinuxCubic(LinuxCubic),
    Vegas(Vegas),
    Westwood(Westwood),
    LinuxWestwood(Westwood),
    Bbr(Box<Bbr>),
    Bbr3(Box<Bbr3>),
}

impl Controller {
    pub(crate) fn new(config: &Config, seed: u64) -> Self {
        let linux = config.variant == Variant::Linux;
        match config.congestion {
            CongestionControl::Reno if linux => Self::LinuxReno(SlowStart::of_linux_reno(config)),
            CongestionControl::Reno => Self::Reno(SlowStart::new(config)),
            CongestionControl::Cubic if linux => Self::LinuxCubic(LinuxCubic::new(SlowStart::new(config))),
            CongestionControl::Cubic => Self::Cubic(Cubic::new(SlowStart::new(config))),
            CongestionControl::Vegas => Self::Vegas(Vegas::new(linux)),
            CongestionControl::Westwood if linux => Self::LinuxWestwood(Westwood::new(true)),
            CongestionControl::Westwood => Self::Westwood(Westwood::new(false)),
            CongestionControl::Bbr => Self::Bbr(Box::new(Bbr::new(seed))),
            CongestionControl::Bbr3 => Self::Bbr3(Box::new(Bbr3::new(seed))),
        }
    }

    /// The path is another: nothing is known of it. What is left to chance goes on.
    pub(crate) fn begin_anew(&mut self, config: &Config) {
        match self {
            Self::Bbr(bbr) => bbr.begin_anew(),
            Self::Bbr3(bbr) => bbr.begin_anew(),
            other => *other = Self::new(config, 0),
        }
    }

    /// The least round trip is another path's: it is measured anew from what leaves from now on.
    pub(crate) fn measure_base_rtt(&mut self, now: Instant) {
        if let Self::Vegas(vegas) = self {
            vegas.measure_base_rtt(now);
        }
    }

    /// The handshake is over: the first data leaves with `nxt`.
    pub(crate) fn begin(&mut self, now: Instant, nxt: SeqNumber) {
        match self {
            Self::Reno(slow_start) | Self::LinuxReno(slow_start) => slow_start.begin(now, nxt),
            Self::Cubic(cubic) => cubic.slow_start.begin(now, nxt),
            Self::LinuxCubic(cubic) => cubic.begin(now, nxt),
            Self::Vegas(vegas) => vegas.begin(nxt),
            Self::Westwood(westwood) | Self::LinuxWestwood(westwood) => westwood.begin(now),
            Self::Bbr(_) | Self::Bbr3(_) => {}
        }
    }

    /// An acknowledgement came while something was outstanding, a duplicate perhaps, and was taken off the queue;
    /// nothing has been concluded from it (`in_ack_event`, then `pkts_acked`).
    pub(crate) fn on_ack(&mut self, window: &mut Window, sample: &AckSample) {
        match self {
            Self::Reno(slow_start) | Self::LinuxReno(slow_start) if slow_start.ends_by_loss() => {}
            Self::Reno(slow_start) | Self::LinuxReno(slow_start) => slow_start.on_ack(window, sample),
            Self::Cubic(cubic) => cubic.slow_start.on_ack(window, sample),
            Self::LinuxCubic(cubic) => cubic.on_ack(window, sample),
            Self::Vegas(vegas) => vegas.on_ack(sample),
            Self::Westwood(westwood) | Self::LinuxWestwood(westwood) => westwood.on_ack(window, sample),
            Self::Bbr(_) | Self::Bbr3(_) => {}
        }
    }

    /// Whether it goes by how much is acknowledged, and not by when.
    #[inline]
    pub(crate) fn goes_by_amount(&self) -> bool {
        matches!(self, Self::Reno(slow_start) if slow_start.ends_by_loss())
    }

    /// [`Self::grow`], by `acked` bytes, where it [goes by the amount](Self::goes_by_amount).
    #[inline]
    pub(crate) fn grow_by(&self, window: &mut Window, acked: u32) {
        debug_assert!(self.goes_by_amount(), "others look at more than that");
        reno::grow(window, acked);
    }

    /// An acknowledgement came while nothing was outstanding (`in_ack_event` alone).
    pub(crate) fn on_idle_ack(&mut self, window: &Window, sample: &AckSample) {
        if let Self::LinuxWestwood(westwood) = self {
            westwood.on_ack(window, sample);
        }
    }

    /// The acknowledgement may open the window: no reduction is under way (`cong_avoid`).
    pub(crate) fn grow(&mut self, window: &mut Window, sample: &AckSample) {
        match self {
            Self::Cubic(cubic) => cubic.grow(window, sample),
            Self::Vegas(vegas) => vegas.grow(window, sample),
            Self::Bbr(_) | Self::Bbr3(_) => {}
            _ if !sample.window_limited => {}
            Self::Reno(slow_start) if window.in_slow_start() => slow_start.grow(window, sample.acked),
            Self::Reno(_) => reno::avoid_congestion(window, sample.acked),
            Self::LinuxReno(slow_start) => {
                let left = slow_start.grow_segments(window, sample.delivered);
                linux_reno::avoid_congestion(window, left);
            }
            Self::LinuxCubic(cubic) => cubic.grow(window, sample),
            Self::Westwood(_) => reno::grow(window, sample.acked),
            Self::LinuxWestwood(_) => linux_reno::grow(window, sample.delivered),
        }
    }

    /// A loss, a timeout or a mark begins a reduction: the threshold to set, bytes (`ssthresh`). `flight` bytes are
    /// in flight; the kernel's editions go by the window instead.
    pub(crate) fn ssthresh_after_loss(&mut self, window: &Window, flight: u32) -> u32 {
        let segments = match self {
            Self::Reno(slow_start) => {
                slow_start.on_loss();
                return reno::ssthresh(window, flight);
            }
            Self::Cubic(cubic) => return cubic.ssthresh_after_loss(window, flight),
            Self::Vegas(vegas) if !vegas.is_linux() => return reno::ssthresh(window, flight),
            Self::Bbr(bbr) => return bbr.ssthresh_after_loss(window),
            Self::Bbr3(bbr) => return bbr.ssthresh_after_loss(window),
            Self::LinuxReno(slow_start) => {
                slow_start.on_loss();
                linux_reno::ssthresh_segments(window)
            }
            Self::LinuxCubic(cubic) => cubic.ssthresh_segments(window),
            Self::Westwood(westwood) => westwood.segments(window),
            Self::LinuxWestwood(_) | Self::Vegas(_) => linux_reno::ssthresh_segments(window),
        };
        segments.saturating_mul(window.mss())
    }

    /// The sender comes to another state, or to the same again (`set_state`).
    pub(crate) fn on_state(&mut self, state: CaState, now: Instant, nxt: SeqNumber) {
        match self {
            Self::LinuxCubic(cubic) => cubic.on_state(state, now, nxt),
            Self::Cubic(cubic) if state == CaState::Loss => cubic.on_timeout(now, nxt),
            Self::Reno(slow_start) if state == CaState::Loss => slow_start.begin(now, nxt),
            Self::Vegas(vegas) => vegas.set_enabled(state == CaState::Open, nxt),
            _ => {}
        }
    }

    /// A timeout reduced the threshold (`CA_EVENT_LOSS`; called after [`Self::ssthresh_after_loss`]).
    pub(crate) fn on_timeout(&mut self, window: &mut Window) {
        if let Self::Westwood(westwood) | Self::LinuxWestwood(westwood) = self {
            westwood.on_timeout(window);
        }
    }

    /// The reduction of a recovery is complete (`CA_EVENT_COMPLETE_CWR`).
    pub(crate) fn on_reduction_complete(&mut self, window: &mut Window) {
        if let Self::LinuxWestwood(westwood) = self {
            westwood.on_reduction_complete(window);
        }
    }

    /// Something is sent while nothing was in flight (`CA_EVENT_TX_START`); the last data left at `last_sent`.
    pub(crate) fn on_transmission_start(&mut self, now: Instant, last_sent: Instant, nxt: SeqNumber) {
        match self {
            Self::Cubic(cubic) => cubic.on_transmission_start(now),
            Self::LinuxCubic(cubic) => cubic.on_transmission_start(now, last_sent),
            Self::Vegas(vegas) => vegas.begin(nxt),
            _ => {}
        }
    }

    /// The window after a reduction that was not called for, bytes, when it was `prior` before (`undo_cwnd`).
    pub(crate) fn undo(&mut self, window: &Window, prior: u32) -> u32 {
        if let Self::Cubic(cubic) = self {
            cubic.undo();
        }
        if self.rate_unit().is_some() { window.cwnd() } else { window.cwnd().max(prior) }
    }
}
