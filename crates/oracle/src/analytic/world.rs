//! Two connections and a path between them: an ideal one, of nothing but a delay, or the link of the kernel traces.
//! Losses by rule.

use std::collections::VecDeque;
use std::time::Duration;

use careof_base::{DataRate, Instant, Probability, RandomStream};
use careof_tcp::{Config, Connection, Phase, Role};
use careof_wire::{Segment, SeqNumber};

use super::Outcome;
use crate::kernel::{Fate, Link, Packet, Script, Way};

/// Which data segments are lost on the way.
#[derive(Clone, Debug)]
pub(super) enum Loss {
    None,
    /// Every n-th of the new segments that are sent outside of recoveries.
    Every(u32),
    /// A new segment whenever the window reaches this many bytes, once in a recovery.
    AtWindow(u32),
    /// So many of the next new segments.
    Next(u32),
    /// Any transmission, with this chance.
    Random(Probability, RandomStream),
}

/// Time and work of a client while it repairs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Open {
    pub(super) segments: u64,
    pub(super) seconds: f64,
    /// The integral of cwnd, bytes times seconds.
    pub(super) window_seconds: f64,
}

pub(super) struct World {
    pub(super) client: Connection,
    pub(super) server: Connection,
    pub(super) now: Instant,
    /// First transmissions of data segments so far.
    pub(super) sent_new: u64,
    /// What the client did outside of recoveries.
    pub(super) open: Open,
    pub(super) loss: Loss,
    path: Path,
    armed: bool,
    /// Under way to the server, to the client; they arrive as they left.
    flying: [VecDeque<(Instant, Segment)>; 2],
}

enum Path {
    Delay(Duration),
    Link(Box<Link>),
}

/// The client's first sequence number.
const ISS: SeqNumber = SeqNumber(77);
/// IPv4 header, bytes.
const IPV4: u64 = 20;

impl World {
    pub(super) fn new(client: &Config, server: &Config, rtt: Duration, loss: Loss) -> Result<Self, Outcome> {
        Self::over(client, server, Path::Delay(rtt / 2), loss)
    }

    /// Both ends alike, over the link of a script in which nothing overtakes and nothing is held.
    pub(super) fn linked(config: &Config, script: &Script) -> Result<Self, Outcome> {
        Self::over(config, config, Path::Link(Box::new(Link::new(script))), Loss::None)
    }

    fn over(client: &Config, server: &Config, path: Path, loss: Loss) -> Result<Self, Outcome> {
        let end = |config: &Config, role, iss| {
            Connection::new(config.clone(), role, 1, 2, iss)
                .map_err(|error| Outcome::NotRun(error.to_string()))
        };
        let mut world = Self {
            client: end(client, Role::Active, ISS)?,
            server: end(server, Role::Passive, SeqNumber(99))?,
            now: Instant::ZERO,
            sent_new: 0,
            open: Open::default(),
            loss,
            path,
            armed: true,
            flying: [VecDeque::new(), VecDeque::new()],
        };
        world.server.open(world.now);
        world.client.open(world.now);
        world.drain();
        Ok(world)
    }

    fn is_lost(&mut self, again: bool) -> bool {
        match &mut self.loss {
            Loss::None => false,
            Loss::Every(every) => {
                let counts = !again && self.client.snapshot().phase == Phase::Open;
                self.open.segments += u64::from(counts);
                counts && self.open.segments.is_multiple_of(u64::from(*every))
            }
            Loss::AtWindow(limit) => {
                let cwnd = self.client.snapshot().cwnd;
                self.armed |= cwnd < *limit;
                !again && cwnd >= *limit && std::mem::take(&mut self.armed)
            }
            Loss::Next(left) => {
                let lost = !again && *left > 0;
                *left -= u32::from(lost);
                lost
            }
            Loss::Random(chance, stream) => stream.chance(*chance),
        }
    }

    pub(super) fn drain(&mut self) {
        while self.client.poll_event().is_some() {}
        while self.server.poll_event().is_some() {}
        while let Some(out) = self.client.poll_transmit(self.now) {
            let data = out.segment.payload_len > 0;
            self.sent_new += u64::from(data && !out.retransmission);
            if !(data && self.is_lost(out.retransmission)) {
                self.launch(Way::Forth, out.segment);
            }
        }
        while let Some(out) = self.server.poll_transmit(self.now) {
            self.launch(Way::Back, out.segment);
        }
    }

    fn launch(&mut self, way: Way, segment: Segment) {
        let arrives = match &mut self.path {
            Path::Delay(delay) => self.now + *delay,
            Path::Link(link) => {
                let len = u32::from(segment.payload_len);
                let packet = match way {
                    Way::Forth if len > 0 => Packet::Data(segment.seq.bytes_since(ISS.plus(1)) / len + 1),
                    _ => Packet::Handshake,
                };
                let bytes = IPV4 + u64::from(segment.header_len()) + u64::from(len);
                match link.enter(self.now, way, packet, bytes) {
                    Fate::Arrives(at) => at,
                    _ => return,
                }
            }
        };
        self.flying[way as usize].push_back((arrives, segment));
    }

    /// Data segments that wait for the link, the one being serialised included.
    pub(super) fn waiting(&mut self) -> usize {
        match &mut self.path {
            Path::Delay(_) => 0,
            Path::Link(link) => link.waiting(self.now, Way::Forth),
        }
    }

    /// The link is of another rate from now on.
    pub(super) fn set_rate(&mut self, rate: DataRate) {
        if let Path::Link(link) = &mut self.path {
            link.set_rate(rate);
        }
    }

    /// Goes on until `more` says no, nothing is left to happen, or `until`.
    pub(super) fn run_while(&mut self, until: Instant, mut more: impl FnMut(&Self) -> bool) {
        self.drain();
        while more(self) {
            let arrivals = [0, 1].map(|way: usize| self.flying[way].front().map(|&(at, _)| at));
            let timers = [&self.client, &self.server].map(|end| end.next_timeout().map(|(due, _)| due));
            let next = arrivals.into_iter().chain(timers).flatten().min();
            let Some(next) = next.filter(|&next| next <= until) else { break };
            let state = self.client.snapshot();
            if state.phase == Phase::Open {
                let seconds = next.saturating_duration_since(self.now).as_secs_f64();
                self.open.seconds += seconds;
                self.open.window_seconds += f64::from(state.cwnd) * seconds;
            }
            self.now = self.now.max(next);
            if arrivals[0] == Some(next) {
                if let Some((_, segment)) = self.flying[0].pop_front() {
                    self.server.handle_segment(self.now, &segment);
                }
            } else if arrivals[1] == Some(next) {
                if let Some((_, segment)) = self.flying[1].pop_front() {
                    self.client.handle_segment(self.now, &segment);
                }
            } else {
                self.client.handle_timeout(self.now);
                self.server.handle_timeout(self.now);
            }
            self.drain();
        }
        if self.now < until && until < Instant::MAX && more(self) {
            self.now = until;
        }
    }

    pub(super) fn run_until(&mut self, until: Instant) {
        self.run_while(until, |_| true);
    }
}
