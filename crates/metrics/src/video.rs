//! What a viewer saw of a film.

use alloc::string::String;
use alloc::vec::Vec;

use careof_base::{Duration, Instant};
use serde::Serialize;

use crate::seconds::{instant, optional_span, span};

/// What was seen of a film; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VideoSummary {
    /// The flow's name.
    pub flow: String,
    /// From the opening of the connection to the first picture.
    #[serde(rename = "startup_delay_s", serialize_with = "optional_span")]
    pub startup_delay: Option<Duration>,
    /// How much of the film was played.
    #[serde(rename = "played_s", serialize_with = "span")]
    pub played: Duration,
    /// How often the picture stood still because the buffer was empty.
    pub rebufferings: u64,
    /// For how long, all in all.
    #[serde(rename = "rebuffering_s", serialize_with = "span")]
    pub rebuffering: Duration,
    /// The part of the time since the first picture in which it stood still.
    pub rebuffering_part: Option<f64>,
    /// The longest of them.
    #[serde(rename = "longest_rebuffering_s", serialize_with = "optional_span")]
    pub longest_rebuffering: Option<Duration>,
    /// Segments that have arrived.
    pub segments: u64,
    /// The mean of their rates, bit/s.
    pub mean_rate_bps: Option<f64>,
    /// The lowest of them.
    pub lowest_rate_bps: Option<u64>,
    /// The highest of them.
    pub highest_rate_bps: Option<u64>,
    /// How often a segment had another rate than the one before it.
    pub switches: u64,
    /// How much lay ready at the end.
    #[serde(rename = "buffered_s", serialize_with = "span")]
    pub buffered: Duration,
    /// The longest of the times in which the picture stood still, in order.
    pub rebuffers: Vec<Rebuffering>,
}

/// A time in which the picture stood still; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rebuffering {
    /// When the buffer was empty.
    #[serde(rename = "begin_s", serialize_with = "instant")]
    pub begin: Instant,
    /// How long it took until the film went on, or to the end of the run.
    #[serde(rename = "length_s", serialize_with = "span")]
    pub length: Duration,
}

impl Rebuffering {
    /// Of how many the times are listed.
    pub const MOST_LISTED: usize = 100;

    /// Adds one to a list, which keeps the longest.
    pub fn list(self, listed: &mut Vec<Self>) {
        if listed.len() >= Self::MOST_LISTED
            && let Some(at) = (0..listed.len()).min_by_key(|at| listed.get(*at).map(|one| one.length))
        {
            if listed.get(at).is_some_and(|one| one.length >= self.length) {
                return;
            }
            listed.remove(at);
        }
        listed.push(self);
    }
}
