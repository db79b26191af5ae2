//! The queue before the serialiser: its room, and the discipline that rules it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

use crate::codel::CoDel;
use crate::config::{Config, Discipline, QueueLimit};
use crate::counters::DropCause;
use crate::red::Red;

/// A packet in the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued<P> {
    /// When it entered.
    pub(crate) since: Instant,
    pub(crate) packet: P,
    /// IP bytes. They fit 16 bits because no MTU is larger.
    pub(crate) size: u16,
}

/// First in, first out, with its bytes counted.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P: Copy> Fifo<P> {
    pub(crate) fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

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

    pub(crate) fn push(&mut self, queued: Queued<P>) {
        self.bytes += u64::from(queued.size);
        self.packets.push_back(queued);
    }

    pub(crate) fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.packets.pop_front()?;
        self.bytes -= u64::from(queued.size);
        Some(queued)
    }

    fn pop_newest(&mut self) -> Option<Queued<P>> {
        let queued = self.packets.pop_back()?;
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
    stream: RandomStream,
}

/// The state of a [`Discipline`].
#[derive(Clone, Debug)]
enum Law {
    DropTail,
    Red(Red),
    CoDel(CoDel),
}

impl Law {
    fn new(config: &Config, now: Instant) -> Self {
        match config.queue.discipline {
            Discipline::DropTail => Self::DropTail,
            Discipline::Red(red) => Self::Red(Red::new(red, mean_packet_nanos(config), now)),
            Discipline::CoDel { target, interval } => Self::CoDel(CoDel::new(target, interval, config.mtu)),
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
        Self { fifo: Fifo::new(), limit: config.queue.limit, law: Law::new(config, Instant::ZERO), stream }
    }

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
    pub(crate) fn admit(&mut self, now: Instant) -> Result<(), DropCause> {
        if let Law::Red(red) = &mut self.law
            && red.drops(now, self.fifo.len(), &mut self.stream)
        {
            return Err(DropCause::RedEarly);
        }
        Ok(())
    }

    /// Puts a packet at the end.
    pub(crate) fn push(&mut self, queued: Queued<P>) -> Result<(), DropCause> {
        let fits = match self.limit {
            QueueLimit::Packets(limit) => self.fifo.len() < limit as usize,
            QueueLimit::Bytes(limit) => self.fifo.bytes() + u64::from(queued.size) <= limit,
        };
        if !fits {
            return Err(DropCause::QueueFull);
        }
        self.fifo.push(queued);
        Ok(())
    }

    /// Takes the packet to be sent at `now`. What the discipline drops before it goes to `drop`.
    pub(crate) fn take(&mut self, now: Instant, drop: impl FnMut(Queued<P>)) -> Option<Queued<P>> {
        let taken = match &mut self.law {
            Law::DropTail => return self.fifo.pop(),
            Law::Red(_) => self.fifo.pop(),
            Law::CoDel(codel) => codel.take(now, &mut self.fifo, drop),
        };
        if taken.is_none() {
            self.link_is_idle(now);
        }
        taken
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
        let drained = self.fifo.packets.drain(..).collect();
        if let Law::CoDel(codel) = &mut self.law {
            codel.becomes_empty();
        }
        drained
    }
}
