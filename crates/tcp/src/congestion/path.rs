//! What a congestion control with a model of the path sees of the sender, and sets.

use core::time::Duration;

use careof_base::Instant;

use super::{CaState, Window};
use crate::delivery_rate::DeliveryRate;
use crate::pacing::Pacing;

/// The sender, for a model of the path.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    pub(crate) now: Instant,
    /// To be set.
    pub(crate) window: &'a mut Window,
    /// Its rate and quantum are to be set.
    pub(crate) pacing: &'a mut Pacing,
    /// What was delivered and lost; may be marked as limited by the application.
    pub(crate) delivery: &'a mut DeliveryRate,
    pub(crate) srtt: Option<Duration>,
    /// Bytes in flight, and segments.
    pub(crate) in_flight: u32,
    pub(crate) segments_in_flight: u32,
    /// Where loss recovery stands.
    pub(crate) state: CaState,
    /// Several losses of a window can be seen at once.
    pub(crate) selective: bool,
}

impl Path<'_> {
    /// What is sent from now on is limited by the application, for as long as what is in flight is under way.
    pub(crate) fn mark_app_limited(&mut self) {
        self.delivery.mark_app_limited(self.in_flight, self.segments_in_flight);
    }
}
