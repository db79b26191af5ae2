//! 802.11: many stations on one radio channel, which listen before they send and do not hear while they do.

mod config;
mod handover;
mod station;
mod times;

use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

pub use config::{
    ACK_BYTES, CTS_BYTES, Coding, DcfConfig, LONG_RETRY_LIMIT, NEVER_RTS, Phy, Protection, RTS_BYTES,
    SHORT_RETRY_LIMIT, WIRELESS_OVERHEAD_BYTES,
};

pub use handover::{
    BEACON_INTERVAL, DEVIATIONS, HandoverPhases, PhaseLength, Scan, TIME_UNIT, WirelessHandover,
};

use super::StationId;
use super::port::{Common, after};
use crate::counters::DropCause;
use crate::loss::LossProcess;
use station::{Failed, Limits, Station};
use times::{Exchange, Times};

/// The rules of a radio channel, told at [`DcfConfig`].
///
/// Slots are no events: from when a station may count, and how many it has to, follows when it begins to send. An exchange without a
/// collision is three: its beginning, when everybody else has noticed it, and when the data arrives; what comes after is certain by then.
#[derive(Clone, Debug)]
pub(super) struct Dcf {
    times: Times,
    limits: Limits,
    stations: Vec<Station>,
    air: Air,
    /// When what has been on the air last has ended for everybody.
    idle_since: Instant,
    loss: LossProcess,
}

#[derive(Clone, Copy, Debug)]
enum Air {
    /// Nobody is heard, or an acknowledgement that nothing prevents.
    Idle,
    /// Somebody sends, and others do not know it before this instant.
    Beginning(Instant),
    /// One station sends alone, and its data arrives then.
    Alone { sender: usize, arrival: Instant, exchange: Exchange, is_damaged: bool },
    /// One station sends a request, heard then, that its destination does not answer.
    NoAnswer { sender: usize, heard: Instant },
    /// Several send, the last of them until then.
    Collision(Instant),
}

/// What happens next; of one instant, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A station begins to send.
    Start(usize),
    /// What is on the air changes.
    Air,
}

impl Dcf {
    pub(super) fn new(config: &DcfConfig, stations: usize, loss: RandomStream) -> Self {
        let limits = Limits::of(config);
        Self {
            times: Times::of(config),
            limits,
            stations: (0..stations).map(|_| Station::new(&limits)).collect(),
            air: Air::Idle,
            idle_since: Instant::ZERO,
            loss: LossProcess::new(config.loss, loss),
        }
    }

    /// A station has a frame that it did not have.
    pub(super) fn begin<P>(&mut self, common: &mut Common<P>, index: usize) {
        let Common { now, ports, random, .. } = common;
        if let (Some(station), Some(port)) = (self.stations.get_mut(index), ports.get(index)) {
            station.defer(*now, random);
            station.plan(port, *now, self.times.slot);
        }
    }

    /// A station is back. It listens for DIFS, as everybody does.
    pub(super) fn come_up<P>(&mut self, common: &mut Common<P>, index: usize) {
        let is_heard = matches!(self.air, Air::Alone { .. } | Air::NoAnswer { .. } | Air::Collision(_));
        if let Some(station) = self.stations.get_mut(index) {
            if is_heard {
                station.hears();
            } else {
                station.resume(after(common.now.max(self.idle_since), self.times.difs));
            }
        }
        if common.ports.get(index).is_some_and(|port| port.frame.is_some()) {
            self.begin(common, index);
        }
    }

    /// A station leaves: what it sends is cut off.
    pub(super) fn cut_off<P: Copy>(&mut self, common: &Common<P>, index: usize) {
        let Some(station) = self.stations.get_mut(index) else { return };
        let was_sending = station.sending.is_some();
        station.leaves(&self.limits);
        if !was_sending {
            return;
        }
        let silent = after(common.now, self.times.delay);
        match self.air {
            Air::Idle => {}
            Air::Beginning(_) => {
                if self.stations.iter().all(|station| station.sending.is_none()) {
                    self.air = Air::Idle;
                }
            }
            Air::Alone { .. } | Air::NoAnswer { .. } => self.falls_idle(common, silent, self.times.eifs),
            Air::Collision(_) => self.air = Air::Collision(self.end_of_collision(common).max(silent)),
        }
    }

    /// Takes on other times and limits. What is on the air ends as it began.
    pub(super) fn reconfigure<P>(&mut self, common: &Common<P>, config: &DcfConfig) {
        (self.times, self.limits) = (Times::of(config), Limits::of(config));
        self.loss.set_law(config.loss);
        self.plan(common);
    }

    fn plan<P>(&mut self, common: &Common<P>) {
        for (station, port) in self.stations.iter_mut().zip(&common.ports) {
            station.plan(port, common.now, self.times.slot);
        }
    }

    /// Nobody is on the air any more from `silent` on. Stations begin to count `space` later, those that have been told something else
    /// meanwhile excepted.
    fn falls_idle<P>(&mut self, common: &Common<P>, silent: Instant, space: u64) {
        (self.air, self.idle_since) = (Air::Idle, silent);
        for station in self.stations.iter_mut().filter(|station| station.is_frozen()) {
            station.resume(after(silent, space));
        }
        self.plan(common);
    }

    /// When to poll next, where nothing waits to be polled.
    pub(super) fn next_timeout<P: Copy>(&self, common: &Common<P>) -> Option<Instant> {
        let (from, known) = match self.air {
            Air::Idle => self.next_start().map(|(start, _)| (start, after(start, self.times.sense)))?,
            Air::Beginning(known) => {
                (self.stations.iter().filter_map(|station| station.sending).min()?, known)
            }
            Air::Alone { .. } | Air::NoAnswer { .. } | Air::Collision(_) => {
                return self.next_step().map(|(at, _)| at);
            }
        };
        // Whoever sends is on the air at least for as long as the shortest of those frames is.
        let frames = common.ports.iter().filter(|port| port.down.is_none()).filter_map(|port| port.frame);
        let shortest = frames.map(|frame| self.times.exchange(frame.size).unanswered).min()?;
        Some(after(from, shortest.saturating_add(self.times.delay)).max(known))
    }

    /// Does what is due by `now`.
    pub(super) fn advance<P: Copy>(&mut self, common: &mut Common<P>, now: Instant) {
        while let Some((at, step)) = self.next_step().filter(|(at, _)| *at <= now) {
            common.now = common.now.max(at);
            match (step, self.air) {
                (Step::Start(station), _) => self.start(common, station),
                (Step::Air, Air::Idle) => {}
                (Step::Air, Air::Beginning(_)) => self.everybody_knows(common),
                (Step::Air, Air::Alone { sender, exchange, is_damaged, .. }) => {
                    self.data_arrives(common, sender, exchange, is_damaged);
                }
                (Step::Air, Air::NoAnswer { sender, .. }) => self.no_answer(common, sender),
                (Step::Air, Air::Collision(_)) => self.collision_ends(common),
            }
        }
    }

    fn next_step(&self) -> Option<(Instant, Step)> {
        let change = match self.air {
            Air::Idle => Instant::MAX,
            Air::Beginning(at) | Air::Collision(at) => at,
            Air::Alone { arrival, .. } => arrival,
            Air::NoAnswer { heard, .. } => heard,
        };
        let start = self.next_start();
        start.into_iter().chain([(change, Step::Air)]).min().filter(|(at, _)| *at != Instant::MAX)
    }

    fn next_start(&self) -> Option<(Instant, Step)> {
        let starts = self.stations.iter().enumerate();
        let first = starts.map(|(n, station)| (station.start, Step::Start(n))).min();
        first.filter(|(at, _)| *at != Instant::MAX)
    }

    fn start<P>(&mut self, common: &mut Common<P>, index: usize) {
        let (Some(station), Some(port)) = (self.stations.get_mut(index), common.ports.get_mut(index)) else {
            return;
        };
        station.start = Instant::MAX;
        if port.frame.is_none() {
            return;
        }
        station.sending = Some(common.now);
        port.contention.transmissions += 1;
        if matches!(self.air, Air::Idle) {
            self.air = Air::Beginning(after(common.now, self.times.sense));
        }
    }

    /// Those who send, since when, and the exchange that each began.
    fn senders<'a, P: Copy>(
        &'a self,
        common: &'a Common<P>,
    ) -> impl Iterator<Item = (usize, Instant, Exchange)> + 'a {
        let ports = self.stations.iter().zip(&common.ports).enumerate();
        ports.filter_map(|(n, (station, port))| {
            Some((n, station.sending?, self.times.exchange(port.frame?.size)))
        })
    }

    fn end_of_collision<P: Copy>(&self, common: &Common<P>) -> Instant {
        let ends = self.senders(common).map(|(_, start, exchange)| after(start, exchange.unanswered));
        ends.max().map_or(common.now, |end| after(end, self.times.delay))
    }

    /// Whoever has not begun to send hears those who have.
    fn everybody_knows<P: Copy>(&mut self, common: &mut Common<P>) {
        let (now, slot) = (common.now, self.times.slot);
        for station in &mut self.stations {
            if station.sending.is_none() {
                station.freeze(now, slot);
            } else {
                station.hears();
            }
        }
        let mut senders = self.senders(common);
        let first = senders.next();
        let is_alone = senders.next().is_none();
        drop(senders);
        let Some((sender, start, exchange)) = first else {
            return self.falls_idle(common, now, self.times.eifs);
        };
        if !is_alone {
            for (station, port) in self.stations.iter().zip(&mut common.ports) {
                port.contention.collisions += u64::from(station.sending.is_some());
            }
            self.air = Air::Collision(self.end_of_collision(common));
        } else if exchange.has_request && !is_answered(common, sender) {
            let heard = after(start, exchange.unanswered.saturating_add(self.times.delay));
            self.air = Air::NoAnswer { sender, heard };
        } else {
            let is_damaged = self.loss.next_is_lost();
            self.air = Air::Alone { sender, arrival: after(start, exchange.arrival), exchange, is_damaged };
        }
    }

    /// The data of a station that sends alone has reached its destination, if that is there.
    fn data_arrives<P: Copy>(
        &mut self,
        common: &mut Common<P>,
        sender: usize,
        exchange: Exchange,
        is_damaged: bool,
    ) {
        let times = self.times;
        let is_received = !is_damaged && is_answered(common, sender);
        let Common { now, ports, outputs, random, .. } = common;
        let now = *now;
        let answered = after(now, exchange.end - exchange.arrival);
        let (Some(station), Some(port)) = (self.stations.get_mut(sender), ports.get_mut(sender)) else {
            return;
        };
        if !is_received {
            station.resume(after(now, times.difs.max(times.ack_timeout.saturating_sub(times.delay))));
            self.fails(common, sender, if exchange.has_request { Failed::Long } else { Failed::Short });
            // Who has understood how long the exchange was to last waits for that, and who has heard noise for EIFS.
            let understood = after(answered, times.difs);
            let noise = after(now, times.eifs);
            let begin = match (is_damaged, exchange.is_reserved) {
                (false, _) => understood,
                (true, false) => noise,
                (true, true) => understood.max(noise),
            };
            self.others_resume(begin);
            return self.falls_idle(common, now, times.difs);
        }
        let from = StationId(sender as u16);
        if let Some(frame) = port.frame.take() {
            port.deliver(outputs, from, frame, now);
        }
        port.take_next(outputs, from, now);
        station.sending = None;
        station.is_done(&self.limits, random);
        self.falls_idle(common, answered, times.difs);
    }

    fn others_resume(&mut self, begin: Instant) {
        for station in self.stations.iter_mut().filter(|station| station.is_frozen()) {
            station.resume(begin);
        }
    }

    /// Nobody has answered a request to send.
    fn no_answer<P: Copy>(&mut self, common: &mut Common<P>, sender: usize) {
        let (now, times) = (common.now, self.times);
        if let Some(station) = self.stations.get_mut(sender) {
            station.resume(after(now, times.difs.max(times.cts_timeout.saturating_sub(times.delay))));
        }
        self.fails(common, sender, Failed::Short);
        self.falls_idle(common, now, times.nav_timeout.saturating_add(times.difs));
    }

    /// The last of those who collided has ended.
    fn collision_ends<P: Copy>(&mut self, common: &mut Common<P>) {
        let (now, times) = (common.now, self.times);
        for n in 0..self.stations.len() {
            let (Some(station), Some(port)) = (self.stations.get_mut(n), common.ports.get(n)) else {
                continue;
            };
            let (Some(start), Some(frame)) = (station.sending, port.frame) else { continue };
            let exchange = times.exchange(frame.size);
            let timeout = if exchange.has_request { times.cts_timeout } else { times.ack_timeout };
            let given_up = after(start, exchange.unanswered.saturating_add(timeout));
            station.resume(after(now, times.difs).max(given_up));
            self.fails(common, n, Failed::Short);
        }
        self.falls_idle(common, now, times.eifs);
    }

    /// A frame or its request has not been answered.
    fn fails<P: Copy>(&mut self, common: &mut Common<P>, sender: usize, what: Failed) {
        let cause = if is_answered(common, sender) { DropCause::RetryLimit } else { DropCause::LinkDown };
        let Common { now, ports, outputs, random } = common;
        let (Some(station), Some(port)) = (self.stations.get_mut(sender), ports.get_mut(sender)) else {
            return;
        };
        station.sending = None;
        if !station.fails(what, &self.limits, random) {
            let from = StationId(sender as u16);
            if let Some(frame) = port.frame.take() {
                port.drop_late(outputs, from, frame, *now, cause);
            }
            port.take_next(outputs, from, *now);
            station.is_done(&self.limits, random);
        }
    }
}

/// Whether the destination of a station's frame is there.
fn is_answered<P: Copy>(common: &Common<P>, sender: usize) -> bool {
    let frame = common.ports.get(sender).and_then(|port| port.frame);
    frame.is_some_and(|frame| common.is_there(StationId(sender as u16), frame.packet.to))
}
