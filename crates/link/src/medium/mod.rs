//! Media that stations share: half-duplex Ethernet and 802.11.

mod dcf;
mod ethernet;
mod port;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

pub use dcf::{
    ACK_BYTES, BEACON_INTERVAL, CTS_BYTES, Coding, DEVIATIONS, DcfConfig, HandoverPhases, LONG_RETRY_LIMIT,
    NEVER_RTS, PhaseLength, Phy, Protection, RTS_BYTES, SHORT_RETRY_LIMIT, Scan, TIME_UNIT,
    WIRELESS_OVERHEAD_BYTES, WirelessHandover,
};
pub use ethernet::{
    ATTEMPT_LIMIT, BACKOFF_LIMIT, EthernetConfig, FRAME_OVERHEAD_BYTES, GAP_BITS, JAM_BITS,
    LEAST_FRAME_BYTES, PREAMBLE_BITS, SLOT_BITS,
};

use crate::config::{Config, ConfigError, QueueConfig};
use crate::counters::{Counters, DropCause};
use crate::link::Fate;
use crate::queue::Ecn;
use dcf::Dcf;
use ethernet::Ethernet;
use port::{Addressed, Common, Port, dropped_output};

/// The largest IP packet in bytes. On Ethernet a frame is at most 1518 bytes long (IEEE 802.3, clause 4.4.2, `maxUntaggedFrameSize`); an
/// access point of 802.11 bridges to Ethernet, so that its stations keep to the same.
pub const MEDIUM_MTU: u16 = 1500;

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

/// What a medium is made of, and by which rules its stations share it.
#[derive(Clone, Debug, PartialEq)]
pub enum MediumConfig {
    /// A cable on which one station at a time is heard.
    Ethernet(EthernetConfig),
    /// A radio channel of 802.11, and one cell on it.
    Dcf(Box<DcfConfig>),
}

impl From<EthernetConfig> for MediumConfig {
    fn from(config: EthernetConfig) -> Self {
        Self::Ethernet(config)
    }
}

impl From<DcfConfig> for MediumConfig {
    fn from(config: DcfConfig) -> Self {
        Self::Dcf(Box::new(config))
    }
}

impl MediumConfig {
    /// Checks that every law named can be kept.
    ///
    /// A medium made of a configuration that fails this check does not panic, but its laws are not those named.
    ///
    /// # Errors
    /// The first [`ConfigError`] found, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Self::Ethernet(config) => config.check(),
            Self::Dcf(config) => config.check(),
        }
    }

    /// What waits at each station. The frame that a station is about to send, or sends, is not in its queue.
    #[must_use]
    pub const fn queue(&self) -> &QueueConfig {
        match self {
            Self::Ethernet(config) => &config.queue,
            Self::Dcf(config) => &config.queue,
        }
    }

    /// A link that has such a queue before it, and takes as long for a packet: what can be said of the path between two stations
    /// as long as nobody else sends.
    #[must_use]
    pub fn as_link(&self) -> Config {
        match self {
            Self::Ethernet(config) => config.as_link(),
            Self::Dcf(config) => config.as_link(),
        }
    }

    /// Whether a station sends straight to any other. Otherwise it sends to those that it has a link with: in a cell of 802.11 all goes
    /// by the access point.
    #[must_use]
    pub const fn joins_every_two(&self) -> bool {
        matches!(self, Self::Ethernet(_))
    }
}

/// A medium that stations share: a state machine that is told the time and never waits.
///
/// `P` is a token that stands for a packet; its owner keeps the rest of it. The rules by which stations come to their turn are told at
/// [`EthernetConfig`] and [`DcfConfig`]. A frame reaches its station alone: group addresses are its owner's business.
///
/// # Contract
/// As for [`Link`](crate::Link): `now` never goes back, and after any call that takes `&mut self` the owner polls until
/// nothing comes and then asks for the [next timeout](Self::next_timeout). Who is late sees the same outputs with the same
/// instants, late.
#[derive(Clone, Debug)]
pub struct Medium<P> {
    config: MediumConfig,
    common: Common<P>,
    access: Access<P>,
}

/// How stations come to their turn.
#[derive(Clone, Debug)]
enum Access<P> {
    Ethernet(Ethernet<P>),
    Dcf(Dcf),
}

impl<P: Copy> Medium<P> {
    /// A medium with a station for each of the streams `queues`, which are for queue disciplines that draw (RED); silent, with
    /// every station up, at [`Instant::ZERO`]. Stations draw their back-off from `backoff`; which frames are damaged on the air is
    /// drawn from `loss`, if the configuration says that some are.
    ///
    /// A configuration that fails [`MediumConfig::check`] is safe, but its laws are not those named.
    #[must_use]
    pub fn new(
        config: impl Into<MediumConfig>,
        backoff: RandomStream,
        loss: RandomStream,
        queues: impl IntoIterator<Item = RandomStream>,
    ) -> Self {
        let config = config.into();
        let link = config.as_link();
        let ports: Vec<_> = queues.into_iter().map(|stream| Port::new(&link, stream)).collect();
        let access = match &config {
            MediumConfig::Ethernet(config) => Access::Ethernet(Ethernet::new(config, ports.len())),
            MediumConfig::Dcf(config) => Access::Dcf(Dcf::new(config, ports.len(), loss)),
        };
        let outputs = VecDeque::with_capacity(ports.len());
        Self { config, common: Common { now: Instant::ZERO, ports, outputs, random: backoff }, access }
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
        self.config.queue().ecn
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
        let index = usize::from(from.0);
        let port = self.common.ports.get_mut(index).ok_or(DropCause::LinkDown)?;
        if port.offer(self.common.now, packet, size_bytes, ecn)? {
            match &mut self.access {
                Access::Ethernet(ethernet) => ethernet.begin(&self.common, index),
                Access::Dcf(dcf) => dcf.begin(&mut self.common, index),
            }
        }
        Ok(())
    }

    /// The next thing that has happened by `now`, in the order in which things happened.
    pub fn poll(&mut self, now: Instant) -> Option<MediumOutput<P>> {
        self.advance(now);
        self.common.outputs.pop_front()
    }

    /// When to poll next: not later than the next output, and often just then.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if let Some(output) = self.common.outputs.front() {
            return Some(output.at());
        }
        match &self.access {
            Access::Ethernet(ethernet) => ethernet.next_timeout(&self.common),
            Access::Dcf(dcf) => dcf.next_timeout(&self.common),
        }
    }

    /// Brings the medium up to `now`. Every other method does this by itself.
    pub fn advance(&mut self, now: Instant) {
        match &mut self.access {
            Access::Ethernet(ethernet) => ethernet.advance(&mut self.common, now),
            Access::Dcf(dcf) => dcf.advance(&mut self.common, now),
        }
        self.common.now = self.common.now.max(now);
    }

    /// Changes the medium in place.
    ///
    /// - Queue limit: what exceeds it is dropped from the tail with [`DropCause::QueueFull`]. Discipline: with the same one its
    ///   state stays and the parameters change; another one starts anew.
    /// - Ethernet, rate and delay: a frame and what it collides with belong to one cable, so that a change waits until the cable is
    ///   silent; nobody begins to send before. A back-off that has been drawn lasts as long as it was to last.
    /// - 802.11: what is on the air ends as it began. A back-off has as many slots to go as before.
    ///
    /// # Errors
    /// [`ConfigError::OtherMedium`] if `config` is of another kind of medium: nothing has changed.
    pub fn reconfigure(&mut self, now: Instant, config: impl Into<MediumConfig>) -> Result<(), ConfigError> {
        self.advance(now);
        let (now, config) = (self.common.now, config.into());
        match (&mut self.access, &config) {
            (Access::Ethernet(ethernet), MediumConfig::Ethernet(config)) => {
                ethernet.reconfigure(&self.common, config);
            }
            (Access::Dcf(dcf), MediumConfig::Dcf(config)) => dcf.reconfigure(&self.common, config),
            _ => return Err(ConfigError::OtherMedium),
        }
        let link = config.as_link();
        let Common { ports, outputs, .. } = &mut self.common;
        for (n, port) in ports.iter_mut().enumerate() {
            let counters = &mut port.counters;
            port.queue.reconfigure(now, &link, |dropped| {
                counters.count_drop(DropCause::QueueFull);
                outputs.push_back(dropped_output(StationId(n as u16), dropped, now, DropCause::QueueFull));
            });
        }
        self.config = config;
        Ok(())
    }

    /// Takes a station off the medium.
    ///
    /// `queued` is the fate of packets in its queue and of those offered while it is down; `in_flight` that of the frame it is sending
    /// or about to send, which, if kept, is sent afresh when the station is up again. A signal is cut off; frames whose last bit
    /// has left still arrive. What others send to a station that is down is dropped with [`DropCause::LinkDown`]: on Ethernet when it
    /// would have arrived, on 802.11 when it has gone without an acknowledgement often enough. On a station that is down already the
    /// new fates apply to what is left.
    pub fn set_down(&mut self, now: Instant, id: StationId, queued: Fate, in_flight: Fate) {
        self.advance(now);
        let index = usize::from(id.0);
        let Common { now, ports, outputs, .. } = &mut self.common;
        let Some(port) = ports.get_mut(index) else { return };
        port.leave(outputs, id, *now, queued, in_flight);
        match &mut self.access {
            Access::Ethernet(ethernet) => ethernet.cut_off(&self.common, index),
            Access::Dcf(dcf) => dcf.cut_off(&self.common, index),
        }
    }

    /// Puts a station on the medium again. What it has kept is sent.
    pub fn set_up(&mut self, now: Instant, id: StationId) {
        self.advance(now);
        let index = usize::from(id.0);
        let Common { now, ports, outputs, .. } = &mut self.common;
        let Some(port) = ports.get_mut(index) else { return };
        if port.down.take().is_none() {
            return;
        }
        if port.frame.is_none() {
            port.take_next(outputs, id, *now);
        }
        match &mut self.access {
            Access::Ethernet(ethernet) => ethernet.begin(&self.common, index),
            Access::Dcf(dcf) => dcf.come_up(&mut self.common, index),
        }
    }

    /// Takes every packet for `to` out of the queue of `station`, oldest first, to be sent another way. The frame that `station` is
    /// sending or about to send stays.
    pub fn drain_queue(&mut self, now: Instant, station: StationId, to: StationId) -> Vec<P> {
        self.advance(now);
        self.common.ports.get_mut(usize::from(station.0)).map_or_else(Vec::new, |port| port.drain(to))
    }

    /// Whether a station is up; `false` for one that there is not.
    #[must_use]
    pub fn is_up(&self, station: StationId) -> bool {
        self.port(station).is_some_and(|port| port.down.is_none())
    }

    /// The configuration as last given.
    #[must_use]
    pub const fn config(&self) -> &MediumConfig {
        &self.config
    }

    /// How many stations there are.
    #[must_use]
    pub const fn stations(&self) -> usize {
        self.common.ports.len()
    }

    /// Packets and bytes of IP in the queue of a station as of the last call, without the frame that it is sending or about to
    /// send.
    #[must_use]
    pub fn queue_len(&self, station: StationId) -> (usize, u64) {
        self.port(station).map_or((0, 0), |port| (port.queue.len(), port.queue.bytes()))
    }

    /// Packets in the queue of `station` for `to`.
    #[must_use]
    pub fn queued_for(&self, station: StationId, to: StationId) -> usize {
        self.port(station).map_or(0, |s| s.queue.iter().filter(|queued| queued.packet.to == to).count())
    }

    /// Frames of `station` that it is sending or about to send, or that are on the medium, as of the last call.
    #[must_use]
    pub fn in_flight(&self, station: StationId) -> usize {
        self.frames_of(station).count()
    }

    /// Those of them for `to`.
    #[must_use]
    pub fn in_flight_to(&self, station: StationId, to: StationId) -> usize {
        self.frames_of(station).filter(|frame| *frame == to).count()
    }

    /// Whom the frames in flight of a station are for.
    fn frames_of(&self, id: StationId) -> impl Iterator<Item = StationId> + '_ {
        let at_hand = self.port(id).and_then(|port| port.frame);
        let on_cable = match &self.access {
            Access::Ethernet(ethernet) => Some(ethernet.sent_by(id)),
            Access::Dcf(_) => None,
        };
        at_hand.into_iter().chain(on_cable.into_iter().flatten()).map(|frame| frame.packet.to)
    }

    /// What became of the packets offered at a station: after every call, `offered` = `delivered` + the sum of `dropped` + `drained` +
    /// packets in its queue + packets in flight. A packet counts as delivered from its arrival, polled or not.
    #[must_use]
    pub fn counters(&self, station: StationId) -> Counters {
        self.port(station).map_or_else(Counters::default, |port| port.counters)
    }

    /// How a station fared in the contention.
    #[must_use]
    pub fn contention(&self, station: StationId) -> Contention {
        self.port(station).map_or_else(Contention::default, |port| port.contention)
    }

    fn port(&self, id: StationId) -> Option<&Port<P>> {
        self.common.ports.get(usize::from(id.0))
    }
}
