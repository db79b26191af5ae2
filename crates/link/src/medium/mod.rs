//! Half-duplex Ethernet: many stations on one cable, of which one at a time is heard.

mod config;
mod station;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

pub use config::{
    ATTEMPT_LIMIT, BACKOFF_LIMIT, FRAME_OVERHEAD_BYTES, GAP_BITS, JAM_BITS, LEAST_FRAME_BYTES, MEDIUM_MTU,
    MediumConfig, PREAMBLE_BITS, SLOT_BITS,
};

use crate::counters::{Counters, DropCause};
use crate::link::Fate;
use crate::queue::{Ecn, Queued};
use config::Times;
use station::{Addressed, Station, after};

/// Index of a station on a medium, from 0 in the order in which it was given them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

/// What a medium has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediumOutput<P> {
    /// A packet has arrived.
    Delivered {
        /// The token handed to [`Medium::enqueue`].
        packet: P,
        /// Who sent it.
        from: StationId,
        /// Whom it has reached.
        to: StationId,
        /// When its last bit did.
        at: Instant,
        /// The queue of `from` marked it (RFC 3168): its IP header is to say so.
        marked: bool,
    },
    /// A packet that was accepted has been dropped after all.
    Dropped {
        /// The token handed to [`Medium::enqueue`].
        packet: P,
        /// Who was to send it, or did.
        from: StationId,
        /// Whom it was for.
        to: StationId,
        /// When that was.
        at: Instant,
        /// Why.
        cause: DropCause,
    },
}

impl<P> MediumOutput<P> {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> Instant {
        match self {
            Self::Delivered { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }
}

/// How a station fared in the contention for the medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contention {
    /// Times it began to send.
    pub transmissions: u64,
    /// How many of them collided.
    pub collisions: u64,
}

/// A half-duplex Ethernet segment: a state machine that is told the time and never waits.
///
/// Stations follow IEEE 802.3, clause 4. One that has a frame sends it when it hears nobody and the gap after what it heard or
/// sent last is over (1-persistent carrier sense). Who hears another while sending completes the preamble, jams, and waits a
/// random number of slots, from a range that doubles with each collision of the frame (truncated binary exponential
/// back-off); a frame that has collided [`ATTEMPT_LIMIT`] times is dropped with [`DropCause::ExcessiveCollisions`].
///
/// It follows that whoever sent last has the better chance: its next frame has not collided yet and draws from a short range,
/// while the others' ranges have grown. Two stations that always have something to send therefore take turns in long runs
/// (the capture effect), and only the long run is fair.
///
/// `P` is a token that stands for a packet; its owner keeps the rest of it.
///
/// # What is simplified
/// - Every station is as far from every other: a signal reaches all of them [`MediumConfig::delay`] after it was sent. On a real
///   cable, neighbours hear each other earlier, so that they collide less often than here. What this costs is bounded by
///   the delay, which is a small part of a slot on all but the longest networks.
/// - The standard lets a station listen in the first part of the gap only. Where all are as far from each other that makes
///   no difference: whoever waits for the end of a frame begins at the very instant at which the next frame of the one that
///   sent it is heard, and they collide.
/// - A signal damages others only where both are heard, and collisions are the only damage: no frame is lost to noise.
/// - A frame reaches its station alone. Group addresses are its owner's business.
/// - Bit times are rounded up to a nanosecond for each frame, gap and slot; at 10 Mbit/s they are exact.
///
/// # Contract
/// As for [`Link`](crate::Link): `now` never goes back, and after any call that takes `&mut self` the owner polls until
/// nothing comes and then asks for the [next timeout](Self::next_timeout). Who is late sees the same outputs with the same
/// instants, late. Stations that are offered packets at one instant begin to send together, and collide, if the delay is
/// above zero; over no delay the one that was offered its packet first is heard by the other.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    now: Instant,
    config: MediumConfig,
    /// A rate and delay that wait for the cable to be silent.
    is_changing: bool,
    times: Times,
    stations: Vec<Station<P>>,
    /// On the cable, in the order in which they began. A station can have several: the end of one is still under way when it
    /// begins the next.
    signals: Vec<Signal<P>>,
    /// What has happened and was not polled, oldest first.
    outputs: VecDeque<MediumOutput<P>>,
    random: RandomStream,
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
    sent: Option<Queued<Addressed<P>>>,
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

impl<P: Copy> Medium<P> {
    /// A medium with a station for each of the streams `queues`, which are for queue disciplines that draw (RED); silent, with
    /// every station up, at [`Instant::ZERO`]. `backoff` is drawn from at every collision.
    ///
    /// A configuration that fails [`MediumConfig::check`] is safe, but its laws are not those named.
    #[must_use]
    pub fn new(
        config: MediumConfig,
        backoff: RandomStream,
        queues: impl IntoIterator<Item = RandomStream>,
    ) -> Self {
        let stations: Vec<_> = queues.into_iter().map(|stream| Station::new(&config, stream)).collect();
        Self {
            now: Instant::ZERO,
            is_changing: false,
            times: Times::of(&config),
            signals: Vec::with_capacity(stations.len()),
            outputs: VecDeque::with_capacity(stations.len()),
            stations,
            config,
            random: backoff,
        }
    }

    /// Offers a packet of `size_bytes` bytes of IP at `station`, for `to`.
    ///
    /// While `station` is down a packet joins its queue if that was told to [`Fate::Keep`] its packets, and is refused otherwise. A
    /// station that there is not counts as one that is down.
    ///
    /// # Errors
    /// The cause, when the packet is refused; it is counted as offered and dropped, and stays with the caller.
    pub fn enqueue(
        &mut self,
        now: Instant,
        station: StationId,
        to: StationId,
        packet: P,
        size_bytes: u32,
    ) -> Result<(), DropCause> {
        self.offer(now, station, Addressed { to, packet }, size_bytes, Ecn::Incapable)
    }

    /// The same for a packet whose IP header says that it is ECN-capable, marked already or not (RFC 3168 section 5).
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    pub fn enqueue_ecn_capable(
        &mut self,
        now: Instant,
        station: StationId,
        to: StationId,
        packet: P,
        size_bytes: u32,
    ) -> Result<(), DropCause> {
        self.offer(now, station, Addressed { to, packet }, size_bytes, Ecn::Capable)
    }

    /// Whether queues mark ECN-capable packets: worth looking whether a packet is one.
    #[must_use]
    pub const fn marks(&self) -> bool {
        self.config.queue.ecn
    }

    fn offer(
        &mut self,
        now: Instant,
        from: StationId,
        packet: Addressed<P>,
        size_bytes: u32,
        ecn: Ecn,
    ) -> Result<(), DropCause> {
        self.advance(now);
        let (now, is_open) = (self.now, self.is_open());
        let station = self.stations.get_mut(usize::from(from.0)).ok_or(DropCause::LinkDown)?;
        station.counters.offered += 1;
        station.counters.offered_bytes += u64::from(size_bytes);
        let accepted = accept(station, now, is_open, packet, size_bytes, ecn);
        if let Err(cause) = accepted {
            station.counters.count_drop(cause);
        }
        accepted
    }

    /// The next thing that has happened by `now`, in the order in which things happened.
    pub fn poll(&mut self, now: Instant) -> Option<MediumOutput<P>> {
        self.advance(now);
        self.outputs.pop_front()
    }

    /// When to poll next: not later than the next output, and often just then.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some(output) = self.outputs.front() {
            return Some(output.at());
        }
        self.next_undisturbed().or_else(|| self.next_step().map(|(at, _)| at))
    }

    /// When the next frame arrives, if nobody can disturb it any more without a call, and nothing is dropped before.
    fn next_undisturbed(&self) -> Option<Instant> {
        if self.stations.iter().any(|station| station.queue.drops_when_taken()) {
            return None;
        }
        let others_have_none = |sender: usize| {
            let mut others = self.stations.iter().enumerate().filter(|(n, _)| *n != sender);
            others.all(|(_, station)| station.frame.is_none())
        };
        let end = match self.signals.as_slice() {
            [] => {
                let sender = self.stations.iter().position(|station| station.start != Instant::MAX)?;
                let station = self.stations.get(sender).filter(|_| others_have_none(sender))?;
                after(station.start, self.times.frame(station.frame?.size))
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

    /// Brings the medium up to `now`. Every other method does this by itself.
    pub fn advance(&mut self, now: Instant) {
        while let Some((at, step)) = self.next_step().filter(|(at, _)| *at <= now) {
            self.now = self.now.max(at);
            match step {
                Step::End(signal) => self.end(signal),
                Step::Fade(signal) => self.fade(signal),
                Step::Start(station) => self.start(station),
                Step::Hear(signal) => self.hear(signal),
            }
        }
        self.now = self.now.max(now);
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
        !self.is_changing && self.times.is_running()
    }

    fn start(&mut self, index: usize) {
        let now = self.now;
        let Some(station) = self.stations.get_mut(index) else { return };
        station.start = Instant::MAX;
        let Some(frame) = station.frame else { return };
        station.is_sending = true;
        station.contention.transmissions += 1;
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
            self.collide(index);
        }
    }

    fn hear(&mut self, index: usize) {
        let Some(signal) = self.signals.get_mut(index) else { return };
        signal.is_heard = true;
        let sender = usize::from(signal.station.0);
        for n in 0..self.stations.len() {
            let Some(station) = self.stations.get_mut(n).filter(|_| n != sender) else { continue };
            station.carriers += 1;
            if station.is_sending {
                self.collide(n);
            } else {
                // Nobody hears another one within the gap: of those who heard the same end, who begins at the end of the gap is
                // heard when it is over for all. What began at this very instant has done so already.
                station.start = Instant::MAX;
            }
        }
    }

    /// A station that is sending hears another one: it completes its preamble, and jams.
    fn collide(&mut self, station: usize) {
        let (now, times) = (self.now, self.times);
        let mut own = self.signals.iter_mut().rev().filter(|s| usize::from(s.station.0) == station);
        if let Some(signal) = own.next().filter(|signal| !signal.collided) {
            signal.collided = true;
            signal.end = after(now.max(after(signal.start, times.preamble)), times.jam);
            if let Some(station) = self.stations.get_mut(station) {
                station.contention.collisions += 1;
            }
        }
    }

    fn end(&mut self, index: usize) {
        let (now, is_open) = (self.now, self.is_open());
        let Some(signal) = self.signals.get_mut(index) else { return };
        signal.has_ended = true;
        let from = signal.station;
        let Some(station) = self.stations.get_mut(usize::from(from.0)) else { return };
        station.is_sending = false;
        station.falls_silent(now, &self.times);
        if signal.collided {
            if !station.back_off(now, &self.times, &mut self.random) {
                if let Some(frame) = station.frame {
                    drop_late(station, &mut self.outputs, from, frame, now, DropCause::ExcessiveCollisions);
                }
                take_next(station, &mut self.outputs, from, now);
            }
        } else {
            signal.sent = station.frame.take();
            take_next(station, &mut self.outputs, from, now);
        }
        station.plan(now, is_open);
    }

    fn fade(&mut self, index: usize) {
        let now = self.now;
        let signal = self.signals.remove(index);
        let sender = usize::from(signal.station.0);
        for (_, station) in self.stations.iter_mut().enumerate().filter(|(n, _)| *n != sender) {
            station.carriers -= 1;
            if station.carriers == 0 && !station.is_sending {
                station.falls_silent(now, &self.times);
            }
        }
        self.change_if_silent();
        let is_open = self.is_open();
        for station in self.stations.iter_mut().filter(|station| station.start == Instant::MAX) {
            station.plan(now, is_open);
        }
        let Some(frame) = signal.sent else { return };
        let (from, to) = (signal.station, frame.packet.to);
        let is_there = self.stations.get(usize::from(to.0)).is_some_and(|s| s.down.is_none()) && to != from;
        if is_there {
            let Addressed { to, packet } = frame.packet;
            let marked = frame.ecn == Ecn::Marked;
            if let Some(station) = self.stations.get_mut(usize::from(from.0)) {
                station.counters.delivered += 1;
                station.counters.delivered_bytes += u64::from(frame.size);
            }
            self.outputs.push_back(MediumOutput::Delivered { packet, from, to, at: now, marked });
        } else if let Some(station) = self.stations.get_mut(usize::from(from.0)) {
            drop_late(station, &mut self.outputs, from, frame, now, DropCause::LinkDown);
        }
    }

    /// Changes the medium in place.
    ///
    /// - Queue limit: what exceeds it is dropped from the tail with [`DropCause::QueueFull`]. Discipline: with the same one its
    ///   state stays and the parameters change; another one starts anew.
    /// - Rate and delay: a frame and what it collides with belong to one cable, so that a change waits until the cable is silent;
    ///   nobody begins to send before. A back-off that has been drawn lasts as long as it was to last.
    pub fn reconfigure(&mut self, now: Instant, config: MediumConfig) {
        self.advance(now);
        let now = self.now;
        let link = config.as_link();
        for (n, station) in self.stations.iter_mut().enumerate() {
            let (counters, outputs) = (&mut station.counters, &mut self.outputs);
            station.queue.reconfigure(now, &link, |dropped| {
                counters.count_drop(DropCause::QueueFull);
                outputs.push_back(dropped_output(StationId(n as u16), dropped, now, DropCause::QueueFull));
            });
        }
        let changes =
            (config.rate, config.delay) != (self.config.rate, self.config.delay) || self.is_changing;
        self.config = config;
        if changes {
            self.is_changing = true;
            self.change_if_silent();
            let is_open = self.is_open();
            self.stations.iter_mut().for_each(|station| station.plan(now, is_open));
        }
    }

    /// Takes on the rate and delay that wait for the cable to be silent, if it is.
    fn change_if_silent(&mut self) {
        if self.is_changing && self.signals.is_empty() {
            self.is_changing = false;
            self.times = Times::of(&self.config);
        }
    }

    /// Takes a station off the cable.
    ///
    /// `queued` is the fate of packets in its queue and of those offered while it is down; `in_flight` that of the frame it is sending
    /// or about to send, which, if kept, is sent afresh when the station is up again. A signal is cut off; frames whose last bit
    /// has left still arrive. What others send to a station that is down is dropped with [`DropCause::LinkDown`] when it
    /// would have arrived. On a station that is down already the new fates apply to what is left.
    pub fn set_down(&mut self, now: Instant, id: StationId, queued: Fate, in_flight: Fate) {
        self.advance(now);
        let now = self.now;
        let Some(station) = self.stations.get_mut(usize::from(id.0)) else { return };
        station.down = Some(queued);
        if station.is_sending {
            station.is_sending = false;
            station.falls_silent(now, &self.times);
            if let Some(own) = self.signals.iter().rposition(|signal| signal.station == id)
                && let Some(signal) = self.signals.get_mut(own)
            {
                (signal.collided, signal.end, signal.has_ended) = (true, now, true);
                if signal.start == now && !signal.is_heard {
                    // Nothing of it is on the cable.
                    self.signals.remove(own);
                }
            }
        }
        station.plan(now, false);
        let frame = station.frame.filter(|_| in_flight == Fate::Drop);
        if let Some(frame) = frame {
            station.take_up(None);
            drop_late(station, &mut self.outputs, id, frame, now, DropCause::LinkDown);
        } else {
            station.take_up(station.frame);
        }
        if queued == Fate::Drop {
            for dropped in station.queue.drain() {
                drop_late(station, &mut self.outputs, id, dropped, now, DropCause::LinkDown);
            }
        }
        if self.is_changing && self.signals.is_empty() {
            self.change_if_silent();
            let is_open = self.is_open();
            self.stations.iter_mut().for_each(|station| station.plan(now, is_open));
        }
    }

    /// Puts a station on the cable again. What it has kept is sent.
    pub fn set_up(&mut self, now: Instant, id: StationId) {
        self.advance(now);
        let (now, is_open) = (self.now, self.is_open());
        let Some(station) = self.stations.get_mut(usize::from(id.0)) else { return };
        if station.down.take().is_some() {
            if station.frame.is_none() {
                take_next(station, &mut self.outputs, id, now);
            }
            station.plan(now, is_open);
        }
    }

    /// Takes every packet for `to` out of the queue of `station`, oldest first, to be sent another way. The frame that `station` is
    /// sending or about to send stays.
    pub fn drain_queue(&mut self, now: Instant, station: StationId, to: StationId) -> Vec<P> {
        self.advance(now);
        let Some(station) = self.stations.get_mut(usize::from(station.0)) else { return Vec::new() };
        let mut drained = Vec::new();
        for queued in station.queue.drain() {
            if queued.packet.to == to {
                drained.push(queued.packet.packet);
            } else {
                station.queue.put_back(queued);
            }
        }
        station.counters.drained += drained.len() as u64;
        drained
    }

    /// Whether a station is up; `false` for one that there is not.
    #[must_use]
    pub fn is_up(&self, station: StationId) -> bool {
        self.station(station).is_some_and(|station| station.down.is_none())
    }

    /// The configuration as last given.
    #[must_use]
    pub const fn config(&self) -> &MediumConfig {
        &self.config
    }

    /// How many stations there are.
    #[must_use]
    pub const fn stations(&self) -> usize {
        self.stations.len()
    }

    /// Packets and bytes of IP in the queue of a station as of the last call, without the frame that it is sending or about to
    /// send.
    #[must_use]
    pub fn queue_len(&self, station: StationId) -> (usize, u64) {
        self.station(station).map_or((0, 0), |station| (station.queue.len(), station.queue.bytes()))
    }

    /// Packets in the queue of `station` for `to`.
    #[must_use]
    pub fn queued_for(&self, station: StationId, to: StationId) -> usize {
        self.station(station).map_or(0, |s| s.queue.iter().filter(|queued| queued.packet.to == to).count())
    }

    /// Frames of `station` that it is sending or about to send, or that are on the cable, as of the last call.
    #[must_use]
    pub fn in_flight(&self, station: StationId) -> usize {
        self.frames_of(station).count()
    }

    /// Those of them for `to`.
    #[must_use]
    pub fn in_flight_to(&self, station: StationId, to: StationId) -> usize {
        self.frames_of(station).filter(|frame| frame.to == to).count()
    }

    fn frames_of(&self, id: StationId) -> impl Iterator<Item = Addressed<P>> + '_ {
        let at_hand = self.station(id).and_then(|station| station.frame);
        let on_cable = self.signals.iter().filter(move |signal| signal.station == id);
        at_hand.into_iter().chain(on_cable.filter_map(|signal| signal.sent)).map(|frame| frame.packet)
    }

    /// What became of the packets offered at a station: after every call, `offered` = `delivered` + the sum of `dropped` + `drained` +
    /// packets in its queue + packets in flight. A packet counts as delivered from its arrival, polled or not.
    #[must_use]
    pub fn counters(&self, station: StationId) -> Counters {
        self.station(station).map_or_else(Counters::default, |station| station.counters)
    }

    /// How a station fared in the contention.
    #[must_use]
    pub fn contention(&self, station: StationId) -> Contention {
        self.station(station).map_or_else(Contention::default, |station| station.contention)
    }

    fn station(&self, id: StationId) -> Option<&Station<P>> {
        self.stations.get(usize::from(id.0))
    }
}

fn accept<P: Copy>(
    station: &mut Station<P>,
    now: Instant,
    is_open: bool,
    packet: Addressed<P>,
    size_bytes: u32,
    ecn: Ecn,
) -> Result<(), DropCause> {
    if station.down == Some(Fate::Drop) {
        return Err(DropCause::LinkDown);
    }
    let size = u16::try_from(size_bytes).ok().filter(|size| *size <= MEDIUM_MTU);
    let mut queued = Queued { since: now, packet, size: size.ok_or(DropCause::MtuExceeded)?, ecn };
    station.queue.admit(now, &mut queued.ecn)?;
    let marked = queued.ecn == Ecn::Marked;
    if station.frame.is_none() && station.down.is_none() {
        // The queue is empty, or its head would be the frame.
        station.take_up(Some(queued));
        station.plan(now, is_open);
    } else {
        // A frame ends with a gap behind it, so that the next to be sent does not leave at that instant.
        station.queue.push(queued, (0, 0))?;
    }
    station.counters.marked += u64::from(marked);
    Ok(())
}

/// Takes up the next frame from the queue.
fn take_next<P: Copy>(
    station: &mut Station<P>,
    outputs: &mut VecDeque<MediumOutput<P>>,
    from: StationId,
    now: Instant,
) {
    let counters = &mut station.counters;
    let next = station.queue.take(now, |dropped| {
        counters.count_drop(DropCause::CoDel);
        outputs.push_back(dropped_output(from, dropped, now, DropCause::CoDel));
    });
    station.counters.marked += station.queue.take_marks();
    station.take_up(next);
}

fn drop_late<P: Copy>(
    station: &mut Station<P>,
    outputs: &mut VecDeque<MediumOutput<P>>,
    from: StationId,
    dropped: Queued<Addressed<P>>,
    at: Instant,
    cause: DropCause,
) {
    station.counters.count_drop(cause);
    outputs.push_back(dropped_output(from, dropped, at, cause));
}

fn dropped_output<P: Copy>(
    from: StationId,
    dropped: Queued<Addressed<P>>,
    at: Instant,
    cause: DropCause,
) -> MediumOutput<P> {
    let Addressed { to, packet } = dropped.packet;
    MediumOutput::Dropped { packet, from, to, at, cause }
}
