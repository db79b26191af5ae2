//! What flows carry.

use careof_base::{DataRate, Duration};

use super::LinkId;

/// What the application does with a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// `from` writes as fast as TCP takes it.
    Bulk {
        /// Bytes in all, at least 1; `None` is without end.
        size: Option<u64>,
    },
    /// `from` asks, `to` answers, `from` thinks.
    RequestResponse {
        /// Bytes of a request, at least 1.
        request: u64,
        /// Bytes of a response, at least 1.
        response: u64,
        /// From the last byte of a response to the next request.
        think: Duration,
        /// Requests in all, at least 1; `None` is without end.
        count: Option<u64>,
    },
    /// `from` writes messages at an even pace, whatever TCP makes of it.
    Paced {
        /// Of the application's bytes, above zero.
        rate: DataRate,
        /// Bytes of a message, at least 1; one is written every `message` · 8 / `rate`.
        message: u64,
        /// Bytes in all, at least 1; `None` is without end.
        size: Option<u64>,
    },
    /// `from` writes in bursts, with pauses between them.
    OnOff(OnOff),
    /// Programs do what they do. Only on Linux hosts.
    Command,
    /// Nothing: the delay and the rate of a link between the two nodes are measured. Only on Linux hosts.
    Probe {
        /// The link.
        link: LinkId,
    },
}

/// Bursts and pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// What a burst is.
    pub burst: Burst,
    /// How bursts are spread around their mean.
    pub burst_law: Law,
    /// The mean pause. It begins when the data of a burst of [`Burst::Bytes`] has arrived, or when the time of one of
    /// [`Burst::Time`] is over.
    pub pause: Duration,
    /// How pauses are spread around their mean.
    pub pause_law: Law,
    /// Bytes in all, at least 1; `None` is without end.
    pub size: Option<u64>,
}

/// A burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// So many bytes in the mean, at least 1, as fast as TCP takes them.
    Bytes(u64),
    /// Messages at an even pace for some time.
    Time {
        /// The mean time, above zero.
        span: Duration,
        /// Of the application's bytes meanwhile, above zero.
        rate: DataRate,
        /// Bytes of a message, at least 1.
        message: u64,
    },
}

/// How a drawn quantity is spread around its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// It is always the mean.
    Fixed,
    /// Exponentially.
    Exponential,
    /// By a Pareto distribution with this shape (tail index), above 1: below, it has no mean.
    Pareto(f64),
}

impl Law {
    /// The shape where none is given: that of ns-2's Pareto traffic.
    pub const USUAL_SHAPE: f64 = 1.5;
}
