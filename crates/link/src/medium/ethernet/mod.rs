//! Half-duplex Ethernet: many stations on one cable, of which one at a time is heard.

mod config;
mod station;

use alloc::vec::Vec;

use careof_base::Instant;

pub use config::{
    ATTEMPT_LIMIT, BACKOFF_LIMIT, EthernetConfig, FRAME_OVERHEAD_BYTES, GAP_BITS, JAM_BITS,
    LEAST_FRAME_BYTES, PREAMBLE_BITS, SLOT_BITS,
};

use super::StationId;
use super::port::{Common, Frame, Port, after};
use crate::counters::DropCause;
use config::Times;
use station::Station;

/// The rules of a cable, told at [`EthernetConfig`].
#[derive(Clone, Debug)]
pub(super) struct Ethernet<P> {
    /// The rate and delay that wait for the cable to be silent.
    changing: Option<Times>,
    times: Times,
    stations: Vec<Station>,
    /// On the cable, in the order in which they began. A station can have several: the end of one is still under way when it
    /// begins the next.
    signals: Vec<Signal<P>>,
}

/// What a station sends, from its first bit to when its last has been heard.
#[derive(Clone, Copy, Debug)]
struct Signal<P> {
    station: StationId,
    start: Instant,
    /// When the last bit is sent, as far as that is known.
    end: Instant,
    collided: bool,
    /// The others hear it, or did.
    is_heard: bool,
    /// Its last bit has been sent. A fragment can have ended before anybody hears it.
    has_ended: bool,
    /// The frame, once it has been sent whole.
    sent: Option<Frame<P>>,
}

/// What happens next; of one instant, in this order. Stations that begin to send together do so before either is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The last bit of a signal is sent.
    End(usize),
    /// The last bit of a signal is heard.
    Fade(usize),
    /// A station begins to send.
    Start(usize),
    /// The first bit of a signal is heard.
    Hear(usize),
}

impl<P: Copy> Ethernet<P> {
    pub(super) fn new(config: &EthernetConfig, stations: usize) -> Self {
        Self {
            changing: None,
            times: Times::of(config),
            stations: (0..stations).map(|_| Station::new()).collect(),
            signals: Vec::with_capacity(stations),
        }
    }

    /// A station has a frame that it did not have, or is back.
    pub(super) fn begin(&mut self, common: &Common<P>, index: usize) {
        let is_open = self.is_open();
        let (Some(station), Some(port)) = (self.stations.get_mut(index), common.ports.get(index)) else {
            return;
        };
        station.take_up();
        station.plan(port, common.now, is_open);
    }

    /// When to poll next, where nothing waits to be polled.
    pub(super) fn next_timeout(&self, common: &Common<P>) -> Option<Instant> {
        self.next_undisturbed(common).or_else(|| self.next_step().map(|(at, _)| at))
    }

    /// When the next frame arrives, if nobody can disturb it any more without a call, and nothing is dropped before.
    fn next_undisturbed(&self, common: &Common<P>) -> Option<Instant> {
        if common.ports.iter().any(|port| port.queue.drops_when_taken()) {
            return None;
        }
        let others_have_none = |sender: usize| {
            let mut others = common.ports.iter().enumerate().filter(|(n, _)| *n != sender);
            others.all(|(_, port)| port.frame.is_none())
        };
        let end = match self.signals.as_slice() {
            [] => {
                let sender = self.stations.iter().position(|station| station.start != Instant::MAX)?;
                let station = self.stations.get(sender).filter(|_| others_have_none(sender))?;
                after(station.start, self.times.frame(common.ports.get(sender)?.frame?.size))
            }
            [signal] if !signal.collided && !signal.has_ended => {
                let nobody_begins = self.stations.iter().all(|station| station.start == Instant::MAX);
                let is_safe = signal.is_heard || others_have_none(usize::from(signal.station.0));
                (nobody_begins && is_safe).then_some(signal.end)?
            }
            _ => return None,
        };
        Some(after(end, self.times.delay))
    }

    /// Does what is due by `now`.
    pub(super) fn advance(&mut self, common: &mut Common<P>, now: Instant) {
        while let Some((at, step)) = self.next_step().filter(|(at, _)| *at <= now) {
            common.now = common.now.max(at);
            match step {
                Step::End(signal) => self.end(common, signal),
                Step::Fade(signal) => self.fade(common, signal),
                Step::Start(station) => self.start(common, station),
                Step::Hear(signal) => self.hear(common, signal),
            }
        }
    }

    fn next_step(&self) -> Option<(Instant, Step)> {
        let signals = self.signals.iter().enumerate().flat_map(|(n, signal)| {
            let heard = after(signal.start, self.times.delay);
            let next = if signal.has_ended {
                (after(signal.end, self.times.delay), Step::Fade(n))
            } else {
                (signal.end, Step::End(n))
            };
            [Some(next), (!signal.is_heard).then_some((heard, Step::Hear(n)))]
        });
        let starts = self.stations.iter().enumerate();
        let starts = starts.map(|(n, station)| Some((station.start, Step::Start(n))));
        signals.chain(starts).flatten().min().filter(|(at, _)| *at != Instant::MAX)
    }

    /// Whether stations may begin to send.
    fn is_open(&self) -> bool {
        self.changing.is_none() && self.times.is_running()
    }

    fn start(&mut self, common: &mut Common<P>, index: usize) {
        let now = common.now;
        let (Some(station), Some(port)) = (self.stations.get_mut(index), common.ports.get_mut(index)) else {
            return;
        };
        station.start = Instant::MAX;
        let Some(frame) = port.frame else { return };
        station.is_sending = true;
        port.contention.transmissions += 1;
        let hears_another = station.carriers > 0;
        self.signals.push(Signal {
            station: StationId(index as u16),
            start: now,
            end: after(now, self.times.frame(frame.size)),
            collided: false,
            is_heard: false,
            has_ended: false,
            sent: None,
        });
        if hears_another {
            self.collide(common, index);
        }
    }

    fn hear(&mut self, common: &mut Common<P>, index: usize) {
        let Some(signal) = self.signals.get_mut(index) else { return };
        signal.is_heard = true;
        let sender = usize::from(signal.station.0);
        for n in 0..self.stations.len() {
            let Some(station) = self.stations.get_mut(n).filter(|_| n != sender) else { continue };
            station.carriers += 1;
            if station.is_sending {
                self.collide(common, n);
            } else {
                // Nobody hears another one within the gap: of those who heard the same end, who begins at the end of the gap is
                // heard when it is over for all. What began at this very instant has done so already.
                station.start = Instant::MAX;
            }
        }
    }

    /// A station that is sending hears another one: it completes its preamble, and jams.
    fn collide(&mut self, common: &mut Common<P>, station: usize) {
        let (now, times) = (common.now, self.times);
        let mut own = self.signals.iter_mut().rev().filter(|s| usize::from(s.station.0) == station);
        if let Some(signal) = own.next().filter(|signal| !signal.collided) {
            signal.collided = true;
            signal.end = after(now.max(after(signal.start, times.preamble)), times.jam);
            if let Some(port) = common.ports.get_mut(station) {
                port.contention.collisions += 1;
            }
        }
    }

    fn end(&mut self, common: &mut Common<P>, index: usize) {
        let is_open = self.is_open();
        let Some(signal) = self.signals.get_mut(index) else { return };
        signal.has_ended = true;
        let from = signal.station;
        let Common { now, ports, outputs, random } = common;
        let (now, sender) = (*now, usize::from(from.0));
        let (Some(station), Some(port)) = (self.stations.get_mut(sender), ports.get_mut(sender)) else {
            return;
        };
        station.is_sending = false;
        station.falls_silent(now, &self.times);
        if !signal.collided {
            signal.sent = port.frame.take();
        } else if !station.back_off(now, &self.times, random)
            && let Some(frame) = port.frame.take()
        {
            port.drop_late(outputs, from, frame, now, DropCause::ExcessiveCollisions);
        }
        if port.frame.is_none() {
            port.take_next(outputs, from, now);
            station.take_up();
        }
        station.plan(port, now, is_open);
    }

    fn fade(&mut self, common: &mut Common<P>, index: usize) {
        let now = common.now;
        let signal = self.signals.remove(index);
        let sender = usize::from(signal.station.0);
        for (_, station) in self.stations.iter_mut().enumerate().filter(|(n, _)| *n != sender) {
            station.carriers -= 1;
            if station.carriers == 0 && !station.is_sending {
                station.falls_silent(now, &self.times);
            }
        }
        self.change_if_silent(common);
        let is_open = self.is_open();
        for (station, port) in self.each(&common.ports).filter(|(station, _)| station.start == Instant::MAX) {
            station.plan(port, now, is_open);
        }
        let Some(frame) = signal.sent else { return };
        let (from, is_there) = (signal.station, common.is_there(signal.station, frame.packet.to));
        let Common { ports, outputs, .. } = common;
        let Some(port) = ports.get_mut(sender) else { return };
        if is_there {
            port.deliver(outputs, from, frame, now);
        } else {
            port.drop_late(outputs, from, frame, now, DropCause::LinkDown);
        }
    }

    fn each<'a>(&'a mut self, ports: &'a [Port<P>]) -> impl Iterator<Item = (&'a mut Station, &'a Port<P>)> {
        self.stations.iter_mut().zip(ports)
    }

    /// Takes a new rate and delay on, now or when the cable is silent.
    pub(super) fn reconfigure(&mut self, common: &Common<P>, config: &EthernetConfig) {
        let times = Times::of(config);
        if self.changing.is_some() || !times.are_of_one_cable(&self.times) {
            self.changing = Some(times);
            self.change_if_silent(common);
            let (now, is_open) = (common.now, self.is_open());
            self.each(&common.ports).for_each(|(station, port)| station.plan(port, now, is_open));
        }
    }

    /// Takes on the rate and delay that wait for the cable to be silent, if it is.
    fn change_if_silent(&mut self, common: &Common<P>) {
        if self.signals.is_empty()
            && let Some(times) = self.changing.take()
        {
            self.times = times;
            let (now, is_open) = (common.now, self.is_open());
            self.each(&common.ports).for_each(|(station, port)| station.plan(port, now, is_open));
        }
    }

    /// A station leaves: what it sends is cut off.
    pub(super) fn cut_off(&mut self, common: &Common<P>, index: usize) {
        let now = common.now;
        let Some(station) = self.stations.get_mut(index) else { return };
        if station.is_sending {
            station.is_sending = false;
            station.falls_silent(now, &self.times);
            if let Some(own) = self.signals.iter().rposition(|signal| usize::from(signal.station.0) == index)
                && let Some(signal) = self.signals.get_mut(own)
            {
                (signal.collided, signal.end, signal.has_ended) = (true, now, true);
                if signal.start == now && !signal.is_heard {
                    // Nothing of it is on the cable.
                    self.signals.remove(own);
                }
            }
        }
        station.start = Instant::MAX;
        station.take_up();
        self.change_if_silent(common);
    }

    /// Frames of a station that it has sent, and that have not arrived.
    pub(super) fn sent_by(&self, id: StationId) -> impl Iterator<Item = Frame<P>> + '_ {
        self.signals.iter().filter(move |signal| signal.station == id).filter_map(|signal| signal.sent)
    }
}
