//! By which parameters packets are kept and sent again.

use core::time::Duration;

use crate::{Config, Kind, Replay, Rest, Which};

/// A receiver may delay an acknowledgement so long (Linux: 40 ms; RFC 9293 section 3.8.6.3 allows 500 ms).
pub(super) const DELAYED_ACK: Duration = Duration::from_millis(40);
/// Where a round trip is not known: the least timeout of today's senders (Linux).
pub(super) const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

/// The parameters, of [`Replay`] or of its cheapest form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) kind: Kind,
    pub(super) replay: Replay,
}

impl Rules {
    pub(super) fn of(config: &Config) -> Option<Self> {
        if let Some(replay) = config.replay {
            return Some(Self { kind: Kind::Replay, replay });
        }
        let hold = config.hold_last?;
        let replay = Replay {
            bytes: u64::MAX,
            packets: hold.packets,
            age: hold.age,
            keep: Which::Newest,
            rest: Rest::Burst,
            swallow: false,
            ..Replay::DEFAULT
        };
        Some(Self { kind: Kind::HoldLast, replay })
    }

    pub(super) fn is_burst(&self) -> bool {
        self.replay.rest == Rest::Burst
    }

    /// How long packets may wait for the path; `None`: only what the path holds may.
    pub(super) fn longest_wait(&self) -> Option<Duration> {
        (self.replay.rest != Rest::Drop).then_some(self.replay.wait)
    }
}
