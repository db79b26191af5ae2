//! What applications do with a connection: bulk, request/response, paced.

use careof_base::{Duration, Instant};
use careof_scenario::Workload as Traffic;

/// The end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Opened the connection: `from` in the scenario.
    Opener,
    /// Accepted it: `to`.
    Acceptor,
}

impl Side {
    /// Both ends.
    pub const BOTH: [Self; 2] = [Self::Opener, Self::Acceptor];

    /// 0 for the opener, 1 for the acceptor.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Opener => Self::Acceptor,
            Self::Acceptor => Self::Opener,
        }
    }
}

/// What an application asks of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Write this many bytes; `u64::MAX` is without end.
    Write(Side, u64),
    /// No more will be written.
    Close(Side),
    /// The same, and what was written but not yet sent is taken back.
    Stop(Side),
}

/// The applications at both ends of one flow.
#[derive(Clone, Debug)]
pub struct Workload {
    traffic: Traffic,
    stop: Option<Instant>,
    /// Requests asked, or bytes of paced messages written.
    asked: u64,
    answered: u64,
    next_message: Option<Instant>,
    stopped: bool,
    cut_short: bool,
}

impl Workload {
    /// Applications that exchange `traffic` until `stop`.
    pub fn new(traffic: Traffic, stop: Option<Instant>) -> Self {
        Self { traffic, stop, asked: 0, answered: 0, next_message: None, stopped: false, cut_short: false }
    }

    /// The opener's connection is established.
    pub fn connected(&mut self, now: Instant) -> [Option<Ask>; 2] {
        match self.traffic {
            _ if self.stopped => [None, None],
            Traffic::Bulk { size: None } => [Some(Ask::Write(Side::Opener, u64::MAX)), None],
            Traffic::Bulk { size: Some(size) } => {
                [Some(Ask::Write(Side::Opener, size)), Some(Ask::Close(Side::Opener))]
            }
            Traffic::RequestResponse { request, .. } => {
                self.asked = 1;
                [Some(Ask::Write(Side::Opener, request)), None]
            }
            Traffic::Command | Traffic::Probe { .. } => [None, None],
            Traffic::Paced { .. } => {
                self.next_message = Some(now);
                [None, None]
            }
        }
    }

    /// Bytes that the applications want delivered in all, by the side that sends them, once the connection is opened:
    /// what has been written or is about to be, and the response to each request. `u64::MAX` is without end.
    #[must_use]
    pub fn wanted(&self) -> [u64; 2] {
        match self.traffic {
            Traffic::Bulk { size } => [size.unwrap_or(u64::MAX), 0],
            Traffic::RequestResponse { request, response, .. } => {
                let asked = self.asked.max(1);
                [request.saturating_mul(asked), response.saturating_mul(asked)]
            }
            Traffic::Paced { message, size, .. } => {
                [self.asked.max(size.map_or(message, |size| size.min(message))), 0]
            }
            // What a program wants is not known.
            Traffic::Command | Traffic::Probe { .. } => [0, 0],
        }
    }

    /// Whether what is received changes what is said next.
    pub fn is_dialogue(&self) -> bool {
        matches!(self.traffic, Traffic::RequestResponse { .. })
    }

    /// `side` has received `total` bytes in order since the beginning.
    pub fn received(&mut self, now: Instant, side: Side, total: u64) -> Option<Ask> {
        let Traffic::RequestResponse { request, response, think, count } = self.traffic else { return None };
        match side {
            Side::Acceptor if total >= request.saturating_mul(self.answered + 1) => {
                self.answered += 1;
                Some(Ask::Write(Side::Acceptor, response))
            }
            Side::Opener if self.asked > 0 && total >= response.saturating_mul(self.asked) => {
                if count.is_some_and(|count| self.asked >= count) {
                    self.stopped = true;
                    return Some(Ask::Close(Side::Opener));
                }
                if self.next_message.is_none() {
                    self.next_message = Some(now + think);
                }
                None
            }
            _ => None,
        }
    }

    /// Whether it is to have stopped by `now`.
    pub fn is_past(&self, now: Instant) -> bool {
        self.stop.is_some_and(|stop| stop <= now)
    }

    /// Whether only the scenario's stop or the end of the run ends it.
    pub fn is_endless(&self) -> bool {
        matches!(
            self.traffic,
            Traffic::Bulk { size: None }
                | Traffic::RequestResponse { count: None, .. }
                | Traffic::Paced { size: None, .. }
        )
    }

    /// The scenario stopped it while there was more to exchange.
    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }

    /// Whether the scenario stopped it before it had exchanged everything.
    pub fn was_cut_short(&self) -> bool {
        self.cut_short
    }

    /// When [`Workload::handle_timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        match (self.next_message, self.stop) {
            (Some(message), Some(stop)) => Some(message.min(stop)),
            (message, stop) => message.or(stop),
        }
    }

    /// The next message is due, or the flow stops.
    pub fn handle_timeout(&mut self, now: Instant) -> Option<Ask> {
        if self.stopped {
            return None;
        }
        if self.stop.is_some_and(|stop| stop <= now) {
            self.stopped = true;
            return Some(Ask::Stop(Side::Opener));
        }
        let due = self.next_message.filter(|due| *due <= now)?;
        match self.traffic {
            Traffic::Paced { rate, message, size } => {
                let left = size.map_or(u64::MAX, |size| size.saturating_sub(self.asked));
                if left == 0 {
                    self.stopped = true;
                    return Some(Ask::Close(Side::Opener));
                }
                let message = message.min(left);
                self.asked += message;
                self.next_message = rate.time_for_bits(message * 8).map(|interval: Duration| due + interval);
                Some(Ask::Write(Side::Opener, message))
            }
            Traffic::RequestResponse { request, .. } => {
                self.next_message = None;
                self.asked += 1;
                Some(Ask::Write(Side::Opener, request))
            }
            Traffic::Bulk { .. } | Traffic::Command | Traffic::Probe { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::DataRate;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_response_answers_each_request_and_thinking_separates_them() {
        let traffic = Traffic::RequestResponse {
            request: 100,
            response: 1000,
            think: Duration::from_millis(50),
            count: Some(2),
        };
        let mut work = Workload::new(traffic, None);
        assert_eq!(work.wanted(), [100, 1000]);
        assert_eq!(work.connected(at(0)), [Some(Ask::Write(Side::Opener, 100)), None]);
        assert_eq!(work.received(at(5), Side::Acceptor, 99), None);
        assert_eq!(work.received(at(6), Side::Acceptor, 100), Some(Ask::Write(Side::Acceptor, 1000)));
        assert_eq!(work.received(at(7), Side::Acceptor, 100), None, "a request is answered once");
        assert_eq!(work.received(at(9), Side::Opener, 1000), None);
        assert_eq!(work.next_timeout(), Some(at(59)));
        assert_eq!(work.wanted(), [100, 1000], "thinking wants nothing");
        assert_eq!(work.handle_timeout(at(59)), Some(Ask::Write(Side::Opener, 100)));
        assert_eq!(work.wanted(), [200, 2000]);
        assert_eq!(work.next_timeout(), None);
        assert_eq!(work.received(at(70), Side::Opener, 2000), Some(Ask::Close(Side::Opener)));
    }

    #[test]
    fn paced_messages_keep_their_beat_and_stop() {
        let traffic =
            Traffic::Paced { rate: DataRate::from_kilobits_per_second(64), message: 160, size: None };
        let mut work = Workload::new(traffic, Some(at(50)));
        assert_eq!(work.connected(at(3)), [None, None]);
        for (number, due) in [(1, 3), (2, 23), (3, 43)] {
            assert_eq!(work.next_timeout(), Some(at(due)));
            assert_eq!(work.handle_timeout(at(due)), Some(Ask::Write(Side::Opener, 160)));
            assert_eq!(work.wanted(), [160 * number, 0]);
        }
        assert_eq!(work.next_timeout(), Some(at(50)));
        assert_eq!(work.handle_timeout(at(50)), Some(Ask::Stop(Side::Opener)));
        assert!(work.is_endless() && work.is_past(at(50)));
        assert_eq!(work.next_timeout(), None);
    }
}
