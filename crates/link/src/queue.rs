//! The queue before the serialiser: its room, and the discipline that rules it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

use crate::codel::CoDel;
use crate::config::{Config, Discipline, QueueLimit};
use crate::counters::DropCause;
use crate::red::{Judgement, Red};
use crate::ring::Ring;

/// A packet in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<P> {
    /// When it entered.
    pub(crate) since: Instant,
    pub(crate) packet: P,
    /// IP bytes. They fit 16 bits because no MTU is larger.
    pub(crate) size: u16,
    pub(crate) ecn: Ecn,
}

impl QueueLimit {
    /// Whether a packet of `size` IP bytes finds room behind so many packets and bytes.
    #[inline]
    pub(crate) fn has_room(self, packets: usize, bytes: u64, size: u16) -> bool {
        match self {
            Self::Packets(limit) => packets < limit as usize,
            Self::Bytes(limit) => bytes + u64::from(size) <= limit,
        }
    }
}

/// What congestion notification knows of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ecn {
    /// It can only be dropped.
    Incapable,
    /// It may be marked.
    Capable,
    /// This link marked it.
    Marked,
}

/// First in, first out, with its bytes counted.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: Ring<Queued<P>>,
    bytes: u64,
}

impl<P: Copy> Fifo<P> {
    pub(crate) fn new() -> Self {
        Self { packets: Ring::new(), bytes: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn head(&self) -> Option<&Queued<P>> {
        self.packets.front()
    }

    #[inline]
    pub(crate) fn push(&mut self, queued: Queued<P>) {
        self.bytes += u64::from(queued.size);
        self.packets.push(queued);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.packets.pop()?;
        self.bytes -= u64::from(queued.size);
        Some(queued)
    }

    fn pop_newest(&mut self) -> Option<Queued<P>> {
        let queued = self.packets.pop_newest()?;
        self.bytes -= u64::from(queued.size);
        Some(queued)
    }
}

/// The queue of a link.
#[derive(Clone, Debug)]
pub(crate) struct Queue<P> {
    fifo: Fifo<P>,
    limit: QueueLimit,
    law: Law,
    /// Mark what can be marked.
    marks: bool,
    stream: Box<RandomStream>,
}

/// The state of a [`Discipline`].
#[derive(Clone, Debug)]
enum Law {
    DropTail,
    Red(Box<Red>),
    CoDel(Box<CoDel>),
}

impl Law {
    fn new(config: &Config, now: Instant) -> Self {
        match config.queue.discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(red) => Self::Red(Box::new(Red::new(red, mean_packet_nanos(config), now))),
            Discipline::CoDel { target, interval } => {
                Self::CoDel(Box::new(CoDel::new(target, interval, config.mtu)))
            }
        }
    }
}

/// Time RED's mean packet takes on this link, in nanoseconds; infinite at rate zero.
fn mean_packet_nanos(config: &Config) -> f64 {
    let Discipline::Red(red) = config.queue.discipline else { return f64::INFINITY };
    let bits = config.framing.bits(u32::from(red.mean_packet_bytes));
    bits as f64 * 1e9 / config.rate.bits_per_second() as f64
}

impl<P: Copy> Queue<P> {
    pub(crate) fn new(config: &Config, stream: RandomStream) -> Self {
        Self {
            fifo: Fifo::new(),
            limit: config.queue.limit,
            law: Law::new(config, Instant::ZERO),
            marks: config.queue.ecn,
            stream: Box::new(stream),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.fifo.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fifo.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }

    /// Lets the discipline see an arriving packet, whether it will have to wait or not.
    #[inline]
    pub(crate) fn admit(&mut self, now: Instant, ecn: &mut Ecn) -> Result<(), DropCause> {
        let Law::Red(red) = &mut self.law else { return Ok(()) };
        let may_mark = self.marks && *ecn != Ecn::Incapable;
        match red.judge(now, self.fifo.len(), may_mark, &mut self.stream) {
            Judgement::Pass => {}
            Judgement::Mark => *ecn = Ecn::Marked,
            Judgement::Drop => return Err(DropCause::RedEarly),
        }
        Ok(())
    }

    /// Puts a packet at the end, if there is room for it while so many packets and bytes count that have left.
    #[inline]
    pub(crate) fn push(
        &mut self,
        queued: Queued<P>,
        (packets, bytes): (usize, u64),
    ) -> Result<(), DropCause> {
        if !self.limit.has_room(self.fifo.len() + packets, self.fifo.bytes() + bytes, queued.size) {
            return Err(DropCause::QueueFull);
        }
        self.fifo.push(queued);
        Ok(())
    }

    /// Puts a packet that had been taken at the end, whether there is room or not.
    pub(crate) fn put_back(&mut self, queued: Queued<P>) {
        self.fifo.push(queued);
    }

    /// What is in it, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Queued<P>> {
        (0..self.fifo.len()).filter_map(|n| self.fifo.packets.get(n))
    }

    /// Whether [`Self::take`] may drop something.
    pub(crate) const fn drops_when_taken(&self) -> bool {
        matches!(self.law, Law::CoDel(_))
    }

    /// Its room.
    #[inline]
    pub(crate) fn limit(&self) -> QueueLimit {
        self.limit
    }

    /// Whether nothing but its room decides, and no packet in it is marked.
    pub(crate) fn is_plain(&self) -> bool {
        let packets = &self.fifo.packets;
        matches!(self.law, Law::DropTail)
            && (0..packets.len()).filter_map(|n| packets.get(n)).all(|queued| queued.ecn != Ecn::Marked)
    }

    /// Takes the packet to be sent at `now`. What the discipline drops before it goes to `drop`.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant, drop: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        let taken = match &mut self.law {
            Law::DropTail => return self.fifo.pop(),
            Law::Red(_) => self.fifo.pop(),
            Law::CoDel(codel) => codel.take(now, &mut self.fifo, self.marks, drop),
        };
        if taken.is_none() {
            self.link_is_idle(now);
        }
        taken
    }

    #[inline]
    pub(crate) fn marks(&self) -> bool {
        self.marks
    }

    /// Packets marked at the head since the last call.
    #[inline]
    pub(crate) fn take_marks(&mut self) -> u64 {
        match &mut self.law {
            Law::CoDel(codel) => core::mem::take(&mut codel.marked),
            Law::DropTail | Law::Red(_) => 0,
        }
    }

    /// When [`Self::take`] may drop something, if it is called at `next` and then as packets are sent.
    pub(crate) fn next_look(&self, next: Instant) -> Option<Instant> {
        match &self.law {
            Law::DropTail | Law::Red(_) => None,
            Law::CoDel(codel) => codel.next_look(next, &self.fifo),
        }
    }

    /// There is nothing to send, neither here nor in the serialiser.
    pub(crate) fn link_is_idle(&mut self, now: Instant) {
        match &mut self.law {
            Law::DropTail => {}
            Law::Red(red) => red.becomes_idle(now),
            Law::CoDel(codel) => codel.becomes_empty(),
        }
    }

    /// Takes on another configuration. What exceeds the new limit is taken from the tail, to `drop`.
    pub(crate) fn reconfigure(&mut self, now: Instant, config: &Config, mut drop: impl FnMut(Queued<P>)) {
        match (&mut self.law, config.queue.discipline) {
            (Law::Red(red), Discipline::Red(new)) => red.reconfigure(new, mean_packet_nanos(config)),
            (Law::CoDel(codel), Discipline::CoDel { target, interval }) => {
                codel.reconfigure(target, interval, config.mtu);
            }
            _ => self.law = Law::new(config, now),
        }
        self.limit = config.queue.limit;
        self.marks = config.queue.ecn;
        while self.exceeds_limit() {
            let Some(queued) = self.fifo.pop_newest() else { break };
            drop(queued);
        }
    }

    fn exceeds_limit(&self) -> bool {
        match self.limit {
            QueueLimit::Packets(limit) => self.fifo.len() > limit as usize,
            QueueLimit::Bytes(limit) => self.fifo.bytes() > limit,
        }
    }

    /// Takes every packet, oldest first.
    pub(crate) fn drain(&mut self) -> Vec<Queued<P>> {
        self.fifo.bytes = 0;
        let drained = core::iter::from_fn(|| self.fifo.packets.pop()).collect();
        if let Law::CoDel(codel) = &mut self.law {
            codel.becomes_empty();
        }
        drained
    }
}
