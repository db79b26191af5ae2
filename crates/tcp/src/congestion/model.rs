//! What a controller with a model of the path is told beyond [`Controller`]'s other hooks: it sees the delivery rate,
//! sets the pacing rate, and governs the window also while losses are repaired.

use super::{Controller, Path};
use crate::delivery_rate::{RateSample, Unit};
use crate::snapshot::PathModel;

impl Controller {
    /// What the model wants rates in; `None`: there is no model.
    pub(crate) fn rate_unit(&self) -> Option<Unit> {
        match self {
            Self::Bbr(_) => Some(Unit::Segments),
            Self::Bbr3(_) => Some(Unit::Octets),
            _ => None,
        }
    }

    /// What is left to chance comes of `seed`.
    pub(crate) fn set_seed(&mut self, seed: u64) {
        match self {
            Self::Bbr(bbr) => bbr.set_seed(seed),
            Self::Bbr3(bbr) => bbr.set_seed(seed),
            _ => {}
        }
    }

    /// Where the next cycles of gains begin.
    pub(crate) fn set_cycle_starts(&mut self, starts: &[u8]) {
        if let Self::Bbr(bbr) = self {
            bbr.set_cycle_starts(starts);
        }
    }

    /// The handshake is over (`init`).
    pub(crate) fn begin_model(&mut self, path: &mut Path<'_>) {
        match self {
            Self::Bbr(bbr) => bbr.begin(path),
            Self::Bbr3(bbr) => bbr.begin(path),
            _ => {}
        }
    }

    /// An acknowledgement was taken in, and loss recovery is done with it (`cong_control`).
    pub(crate) fn on_sample(&mut self, path: &mut Path<'_>, sample: &RateSample) {
        match self {
            Self::Bbr(bbr) => bbr.on_sample(path, sample),
            Self::Bbr3(bbr) => bbr.on_sample(path, sample),
            _ => {}
        }
    }

    /// A retransmission timeout was dealt with (`set_state` to Loss).
    pub(crate) fn on_model_timeout(&mut self, path: &mut Path<'_>) {
        match self {
            Self::Bbr(bbr) => bbr.on_timeout(path),
            Self::Bbr3(bbr) => bbr.on_timeout(path),
            _ => {}
        }
    }

    /// A loss or a timeout was none (`undo_cwnd`).
    pub(crate) fn on_model_undo(&mut self, path: &mut Path<'_>) {
        match self {
            Self::Bbr(bbr) => bbr.undo(path),
            Self::Bbr3(bbr) => bbr.undo(path),
            _ => {}
        }
    }

    /// Something is about to leave while nothing is in flight (`CA_EVENT_TX_START`).
    pub(crate) fn on_model_transmission_start(&mut self, path: &mut Path<'_>) {
        match self {
            Self::Bbr(bbr) => bbr.on_transmission_start(path),
            Self::Bbr3(bbr) => bbr.on_transmission_start(path),
            _ => {}
        }
    }

    /// What the model holds.
    pub(crate) fn model(&self, mss: u32) -> Option<PathModel> {
        match self {
            Self::Bbr(bbr) => Some(bbr.model(mss)),
            Self::Bbr3(bbr) => Some(bbr.model()),
            _ => None,
        }
    }

    /// Segments that leave together at least, where the model has a say in it (`min_tso_segs`).
    pub(crate) fn least_quantum(&self, bytes_per_second: u64) -> Option<u32> {
        matches!(self, Self::Bbr(_)).then(|| super::bbr::least_quantum(bytes_per_second))
    }
}
