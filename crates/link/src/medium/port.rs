//! What a station is on any medium: a queue, the frame at hand, and the books of both.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{Instant, RandomStream};

use super::{Contention, MEDIUM_MTU, MediumOutput, StationId};
use crate::config::Config;
use crate::counters::{Counters, DropCause};
use crate::link::Fate;
use crate::queue::{Ecn, Queue, Queued};

/// A packet and whom it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addressed<P> {
    pub(crate) to: StationId,
    pub(crate) packet: P,
}

/// A packet on a medium, with its size.
pub(crate) type Frame<P> = Queued<Addressed<P>>;

#[derive(Clone, Debug)]
pub(crate) struct Port<P> {
    pub(crate) queue: Queue<Addressed<P>>,
    /// What the station sends, or waits to send.
    pub(crate) frame: Option<Frame<P>>,
    /// Since the station left the medium: what becomes of its queue.
    pub(crate) down: Option<Fate>,
    pub(crate) counters: Counters,
    pub(crate) contention: Contention,
}

/// What every medium has, whatever the rules of its stations are.
#[derive(Clone, Debug)]
pub(crate) struct Common<P> {
    pub(crate) now: Instant,
    pub(crate) ports: Vec<Port<P>>,
    /// What has happened and was not polled, oldest first.
    pub(crate) outputs: VecDeque<MediumOutput<P>>,
    /// Back-off is drawn from it.
    pub(crate) random: RandomStream,
}

impl<P: Copy> Port<P> {
    pub(crate) fn new(link: &Config, queue: RandomStream) -> Self {
        Self {
            queue: Queue::new(link, queue),
            frame: None,
            down: None,
            counters: Counters::default(),
            contention: Contention::default(),
        }
    }

    /// Offers a packet: `true` if it is the frame at hand now, `false` if it is in the queue. It is counted as offered, and as dropped
    /// when it is refused.
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        packet: Addressed<P>,
        size_bytes: u32,
        ecn: Ecn,
    ) -> Result<bool, DropCause> {
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size_bytes);
        let accepted = self.accept(now, packet, size_bytes, ecn);
        if let Err(cause) = accepted {
            self.counters.count_drop(cause);
        }
        accepted
    }

    fn accept(
        &mut self,
        now: Instant,
        packet: Addressed<P>,
        size_bytes: u32,
        ecn: Ecn,
    ) -> Result<bool, DropCause> {
        if self.down == Some(Fate::Drop) {
            return Err(DropCause::LinkDown);
        }
        let size = u16::try_from(size_bytes).ok().filter(|size| *size <= MEDIUM_MTU);
        let mut queued = Queued { since: now, packet, size: size.ok_or(DropCause::MtuExceeded)?, ecn };
        self.queue.admit(now, &mut queued.ecn)?;
        let marked = queued.ecn == Ecn::Marked;
        let is_at_hand = self.frame.is_none() && self.down.is_none();
        if is_at_hand {
            // The queue is empty, or its head would be the frame.
            self.frame = Some(queued);
        } else {
            // A frame ends with a gap behind it, so that the next to be sent does not leave at that instant.
            self.queue.push(queued, (0, 0))?;
        }
        self.counters.marked += u64::from(marked);
        Ok(is_at_hand)
    }

    /// Takes up the next frame from the queue.
    pub(crate) fn take_next(
        &mut self,
        outputs: &mut VecDeque<MediumOutput<P>>,
        from: StationId,
        now: Instant,
    ) {
        let counters = &mut self.counters;
        let next = self.queue.take(now, |dropped| {
            counters.count_drop(DropCause::CoDel);
            outputs.push_back(dropped_output(from, dropped, now, DropCause::CoDel));
        });
        self.counters.marked += self.queue.take_marks();
        self.frame = next;
    }

    /// Drops a packet that was accepted.
    pub(crate) fn drop_late(
        &mut self,
        outputs: &mut VecDeque<MediumOutput<P>>,
        from: StationId,
        dropped: Frame<P>,
        at: Instant,
        cause: DropCause,
    ) {
        self.counters.count_drop(cause);
        outputs.push_back(dropped_output(from, dropped, at, cause));
    }

    /// Hands a frame of this station out at its destination.
    pub(crate) fn deliver(
        &mut self,
        outputs: &mut VecDeque<MediumOutput<P>>,
        from: StationId,
        frame: Frame<P>,
        at: Instant,
    ) {
        let Addressed { to, packet } = frame.packet;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(frame.size);
        outputs.push_back(MediumOutput::Delivered { packet, from, to, at, marked: frame.ecn == Ecn::Marked });
    }

    /// Leaves the medium, with these fates of its queue and of its frame.
    pub(crate) fn leave(
        &mut self,
        outputs: &mut VecDeque<MediumOutput<P>>,
        from: StationId,
        now: Instant,
        queued: Fate,
        in_flight: Fate,
    ) {
        self.down = Some(queued);
        if in_flight == Fate::Drop
            && let Some(frame) = self.frame.take()
        {
            self.drop_late(outputs, from, frame, now, DropCause::LinkDown);
        }
        if queued == Fate::Drop {
            for dropped in self.queue.drain() {
                self.drop_late(outputs, from, dropped, now, DropCause::LinkDown);
            }
        }
    }

    /// Takes every packet for `to` out of the queue, oldest first.
    pub(crate) fn drain(&mut self, to: StationId) -> Vec<P> {
        let mut drained = Vec::new();
        for queued in self.queue.drain() {
            if queued.packet.to == to {
                drained.push(queued.packet.packet);
            } else {
                self.queue.put_back(queued);
            }
        }
        self.counters.drained += drained.len() as u64;
        drained
    }
}

impl<P: Copy> Common<P> {
    /// Whether what `from` sends to `to` finds somebody there.
    pub(crate) fn is_there(&self, from: StationId, to: StationId) -> bool {
        to != from && self.ports.get(usize::from(to.0)).is_some_and(|port| port.down.is_none())
    }
}

pub(crate) fn dropped_output<P: Copy>(
    from: StationId,
    dropped: Frame<P>,
    at: Instant,
    cause: DropCause,
) -> MediumOutput<P> {
    let Addressed { to, packet } = dropped.packet;
    MediumOutput::Dropped { packet, from, to, at, cause }
}

/// `nanos` after `instant`, or never.
pub(crate) const fn after(instant: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(instant.as_nanos().saturating_add(nanos))
}
