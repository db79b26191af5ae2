//! What a trace and a model have in common.

use std::fmt;

use serde_json::{Value, json};

use super::draws::Draws;
use super::error::Error;

/// How many of how many agree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Those that agree.
    pub agree: usize,
    /// All that were compared.
    pub of: usize,
}

impl Share {
    /// One more.
    pub fn count(&mut self, agrees: bool) {
        self.of += 1;
        self.agree += usize::from(agrees);
    }

    /// From 0 to 1; `None` where nothing was compared.
    #[must_use]
    pub fn ratio(self) -> Option<f64> {
        (self.of > 0).then(|| self.agree as f64 / self.of as f64)
    }
}

/// In what the two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Another segment, or none, or one too many.
    Segment,
    /// The same segment, but after another acknowledgement.
    Moment,
    /// cwnd or ssthresh after an acknowledgement.
    Window,
    /// The time.
    Time,
}

impl Kind {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Segment => "segment",
            Self::Moment => "moment",
            Self::Window => "window",
            Self::Time => "time",
        }
    }
}

/// A difference, with its place in the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// In what.
    pub kind: Kind,
    /// The line of the trace.
    pub line: usize,
    /// Microseconds since `connect()`.
    pub at_us: u64,
    /// What the kernel did.
    pub kernel: String,
    /// What the model did.
    pub model: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, line) = (self.at_us as f64 / 1e6, self.line);
        write!(f, "line {line}, {at:.6} s: the kernel {}; the model {}", self.kernel, self.model)
    }
}

impl Difference {
    fn json(&self, name: &str) -> Value {
        json!({
            "loop": name, "kind": self.kind.name(), "row": self.line, "t_us": self.at_us,
            "kernel": self.kernel, "model": self.model,
        })
    }
}

/// The least share of windows, and of times, that agree where model and kernel do: what differs now and then is rounding,
/// not another mechanism.
pub const WANTED_SHARE: f64 = 0.95;

/// One loop's findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loop {
    /// The model retransmitted the same segments, each as often.
    pub same_segments: bool,
    /// All segments, new and repeated, left in the same order.
    pub same_order: bool,
    /// Retransmissions of the kernel and of the model.
    pub retransmissions: (usize, usize),
    /// cwnd and ssthresh after each acknowledgement.
    pub window: Share,
    /// Segments that left after the same acknowledgement (open loop).
    pub moments: Share,
    /// Segments that left at the same time: what a timer sent, within the interval in which the kernel's may fire (open
    /// loop); all of them within a millisecond and a thousandth (closed loop).
    pub times: Share,
    /// The first difference of each kind.
    pub differences: Vec<Difference>,
}

impl Loop {
    /// Writes a difference down, unless one of its kind stands there.
    pub(super) fn note(&mut self, difference: Difference) {
        if self.differences.iter().all(|known| known.kind != difference.kind) {
            self.differences.push(difference);
        }
    }

    /// The first difference in order of lines.
    #[must_use]
    pub fn first_difference(&self) -> Option<&Difference> {
        self.differences.iter().min_by_key(|difference| difference.line)
    }

    /// What keeps it from agreeing.
    #[must_use]
    pub fn failed(&self) -> Vec<&'static str> {
        let rare = |share: Share| share.ratio().is_none_or(|ratio| ratio < WANTED_SHARE);
        [
            ("segments", !self.same_segments),
            ("order", !self.same_order),
            ("windows", rare(self.window)),
            ("times", rare(self.times)),
        ]
        .into_iter()
        .filter_map(|(criterion, fails)| fails.then_some(criterion))
        .collect()
    }

    fn json(&self, name: &str) -> Value {
        json!({
            "failed": self.failed(),
            "same_segments": self.same_segments,
            "same_order": self.same_order,
            "retransmissions": { "kernel": self.retransmissions.0, "model": self.retransmissions.1 },
            "cwnd_agreement": self.window.ratio(),
            "acks_compared": self.window.of,
            "same_moment": self.moments.ratio(),
            "same_time": self.times.ratio(),
            "first_difference": self.first_difference().map(|difference| difference.json(name)),
        })
    }
}

/// A trace and a model beside each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The trace's name.
    pub name: String,
    /// The model fed with the kernel's acknowledgements; `None` where the trace leaves rows out.
    pub open: Option<Loop>,
    /// Model sender and model receiver over the same link; `None` where its script could not be read.
    pub closed: Option<Loop>,
    /// Why a loop could not be run.
    pub error: Option<Error>,
    /// What chance decides: `None` where nothing is left to it. Where it was not read from the trace, the loops are those
    /// of the first draw that differs.
    pub draws: Option<Draws>,
}

impl Comparison {
    fn loops(&self) -> impl Iterator<Item = (&'static str, &Loop)> {
        [("open", self.open.as_ref()), ("closed", self.closed.as_ref())]
            .into_iter()
            .filter_map(|(name, found)| Some((name, found?)))
    }

    /// In both loops; not where there is none.
    #[must_use]
    pub fn same_segments(&self) -> bool {
        self.loops().next().is_some() && self.loops().all(|(_, found)| found.same_segments)
    }

    /// In both loops; not where there is none.
    #[must_use]
    pub fn same_order(&self) -> bool {
        self.loops().next().is_some() && self.loops().all(|(_, found)| found.same_order)
    }

    /// Of the open loop, where the model sees exactly what the kernel saw; of the closed one where there is no other.
    #[must_use]
    pub fn cwnd_agreement(&self) -> Option<f64> {
        self.loops().next().and_then(|(_, found)| found.window.ratio())
    }

    /// The first difference of a loop that does not agree, the open one before the closed; of any where both do.
    #[must_use]
    pub fn first_difference(&self) -> Option<(&'static str, &Difference)> {
        let failing = self.loops().filter(|(_, found)| !found.failed().is_empty());
        failing.chain(self.loops()).find_map(|(name, found)| Some((name, found.first_difference()?)))
    }

    /// Whether all was compared, and nothing that counts differs in either loop: segments, order, windows, times.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.error.is_none()
            && self.loops().next().is_some()
            && self.loops().all(|(_, found)| found.failed().is_empty())
    }

    /// The loops in which nothing was compared: without the sender's windows the segments say too little.
    pub(super) fn empty_loop(&self) -> Option<&'static str> {
        self.loops().find_map(|(name, found)| (found.window.of == 0).then_some(name))
    }

    /// The row for this file.
    #[must_use]
    pub fn json(&self, file: &str) -> Value {
        json!({
            "file": file,
            "agrees": self.agrees(),
            "same_segments": self.same_segments(),
            "same_order": self.same_order(),
            "cwnd_agreement": self.cwnd_agreement(),
            "first_difference": self.first_difference().map(|(name, difference)| difference.json(name)),
            "open": self.open.as_ref().map(|found| found.json("open")),
            "closed": self.closed.as_ref().map(|found| found.json("closed")),
            "error": self.error.as_ref().map(what_is_wrong),
            "draws": self.draws.as_ref().map(Draws::json),
        })
    }
}

/// The row for a file that is no trace.
pub(super) fn error_json(file: &str, error: &Error) -> Value {
    json!({
        "file": file,
        "agrees": null,
        "same_segments": null,
        "same_order": null,
        "cwnd_agreement": null,
        "first_difference": null,
        "open": null,
        "closed": null,
        "error": what_is_wrong(error),
        "draws": null,
    })
}

fn what_is_wrong(error: &Error) -> Value {
    json!({ "message": error.to_string(), "hint": error.hint() })
}
