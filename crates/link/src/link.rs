//! One direction of a link, from the sender's queue to the receiver's door.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{DataRate, Instant, RandomStream};

use crate::config::{Config, Framing, Jitter, Loss};
use crate::counters::{Counters, DropCause};
use crate::jitter::{JitterProcess, nanos};
use crate::loss::LossProcess;
use crate::propagation::{OnWire, Wire};
use crate::queue::{Ecn, Queue, Queued};
use crate::serialiser::Serialiser;

/// What becomes of packets when a link goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They stay where they are and go on when the link is up again.
    Keep,
    /// They are dropped, with [`DropCause::LinkDown`].
    Drop,
}

/// What a link has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A packet has arrived.
    Delivered {
        /// The token handed to [`Link::enqueue`].
        packet: P,
        /// Its arrival: the `now` of the poll when the owner is punctual, earlier when it is late.
        at: Instant,
        /// This link marked it on the way (RFC 3168): its IP header is to say so.
        marked: bool,
    },
    /// A packet that was accepted has been dropped after all.
    Dropped {
        /// The token handed to [`Link::enqueue`].
        packet: P,
        /// When that was.
        at: Instant,
        /// Why.
        cause: DropCause,
    },
}

impl<P> Output<P> {
    /// When it happened.
    #[must_use]
    pub const fn at(&self) -> Instant {
        match self {
            Self::Delivered { at, .. } | Self::Dropped { at, .. } => *at,
        }
    }
}

/// One direction of a link: a state machine that is told the time and never waits.
///
/// `P` is a token that stands for a packet; its owner keeps the rest of it.
///
/// # Contract
/// Every method takes the present, `now`, which never goes back (an earlier `now` counts as the latest one
/// given). After any call that takes `&mut self` the owner calls [`poll`](Self::poll) until it returns `None`
/// and then asks [`next_timeout`](Self::next_timeout) when to poll next. An owner that keeps to this sees each
/// output at its own instant; one that is late sees the same outputs with the same instants, late.
///
/// There is one deadline a link, not one a packet and stage: what happens between two calls - a packet is sent,
/// the next one is taken from the queue - is made up for, in order and to the nanosecond, when the next call
/// comes.
///
/// A packet whose transmission ends at the very instant at which another is offered makes no room for it: what is offered
/// at an instant finds the queue as it was before anything left in it, in whatever order the owner calls. A sender
/// beside its bottleneck meets this tie with every acknowledgement, as the acknowledgements come at the intervals at
/// which its packets leave. ns-2 runs events of one instant in the order in which they were scheduled, and so lets the
/// arrival go first wherever the way of the acknowledgement takes longer than the transmission of one segment
/// (`docs/oracles.md`). On a link of unlimited rate nothing waits, and there is no such tie.
///
/// A link without chance and with a drop-tail queue needs to make up for nothing: when a packet will leave is known when
/// it comes, so that it goes on the wire at once and what waits is but the tail of the wire. Before anything changes on
/// which that depends, what waits is taken back into the queue.
///
/// # Random numbers
/// A packet's loss and jitter are drawn from a stream each when it begins to be sent, for lost packets as well:
/// switching one law on or off disturbs neither the other nor the queue.
#[derive(Clone, Debug)]
pub struct Link<P> {
    now: Instant,
    /// When the packet in the serialiser ends; [`Instant::MAX`] while there is none, or it stands still.
    ends: Instant,
    /// What is accepted is put on the wire at once, with the departure and arrival it will have.
    scheduled: bool,
    /// While [`Self::scheduled`]: what is on the wire and has not begun to be sent.
    waiting: Waiting,
    serialiser: Serialiser,
    wire: Wire<P>,
    /// [`Config::delay`] in nanoseconds; by a trace, that of the packet that began to be sent last.
    delay: u64,
    /// [`Config::jitter`]'s `reorder`.
    may_reorder: bool,
    /// Neither loss nor jitter nor trace: every packet meets the same.
    certain: bool,
    framing: Framing,
    mtu: u16,
    counters: Counters,
    /// What left the queue at the last end of a transmission.
    freed: Freed,
    /// The packet in the serialiser, unless [`Self::scheduled`]. While it moves it is on the wire already, with the arrival
    /// it will have.
    sending: Option<Sending<P>>,
    /// What waits to be sent, unless [`Self::scheduled`].
    queue: Queue<P>,
    down: Option<Down>,
    /// Drops that were decided after the packet was accepted, not yet reported. None while [`Self::scheduled`].
    late_drops: VecDeque<LateDrop<P>>,
    /// What a packet on a link without chance does not look at.
    rest: Box<Rest>,
}

#[derive(Clone, Debug)]
struct Rest {
    loss: LossProcess,
    jitter: JitterProcess,
    /// The least that delay and jitter can come to, in nanoseconds.
    least_delay: u64,
    config: Config,
}

/// Packets at the end of the wire that have not begun to be sent.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    packets: usize,
    bytes: u64,
}

/// What left the queue at an instant, of which nothing that is offered at that instant knows yet.
#[derive(Clone, Copy, Debug)]
struct Freed {
    at: Instant,
    packets: usize,
    bytes: u64,
}

impl Freed {
    const NOTHING: Self = Self { at: Instant::MAX, packets: 0, bytes: 0 };

    #[inline(always)]
    fn add(&mut self, at: Instant, packets: usize, bytes: u64) {
        if self.at != at {
            *self = Self { at, packets: 0, bytes: 0 };
        }
        self.packets += packets;
        self.bytes += bytes;
    }

    /// Packets and bytes that are still there for what is offered at `now`.
    #[inline(always)]
    fn as_of(&self, now: Instant) -> (usize, u64) {
        if self.at == now { (self.packets, self.bytes) } else { (0, 0) }
    }
}

/// The packet in the serialiser.
#[derive(Clone, Copy, Debug)]
struct Sending<P> {
    /// When its last bit is sent; [`Instant::MAX`] while nothing moves.
    end: Instant,
    /// Its own deviation from the delay, in nanoseconds.
    jitter: i64,
    lost: bool,
    queued: Queued<P>,
}

#[derive(Clone, Copy, Debug)]
struct Down {
    since: Instant,
    /// Of packets in the queue, and of those offered while the link is down.
    queued: Fate,
}

#[derive(Clone, Copy, Debug)]
struct LateDrop<P> {
    at: Instant,
    packet: P,
    cause: DropCause,
}

impl<P: Copy> Link<P> {
    /// A link that is up and empty at [`Instant::ZERO`].
    ///
    /// The streams are for packet loss, for jitter, and for a queue discipline that draws (RED). A
    /// configuration that fails [`Config::check`] is safe, but its laws are not those named.
    #[must_use]
    pub fn new(config: Config, loss: RandomStream, jitter: RandomStream, queue: RandomStream) -> Self {
        let mut link = Self {
            now: Instant::ZERO,
            ends: Instant::MAX,
            scheduled: false,
            waiting: Waiting::default(),
            serialiser: Serialiser::new(DataRate::ZERO),
            wire: Wire::new(),
            delay: nanos(config.delay),
            may_reorder: config.jitter.may_reorder(),
            certain: is_certain(&config),
            framing: config.framing,
            mtu: config.mtu,
            counters: Counters::default(),
            freed: Freed::NOTHING,
            sending: None,
            queue: Queue::new(&config, queue),
            down: None,
            late_drops: VecDeque::new(),
            rest: Box::new(Rest {
                loss: LossProcess::new(config.loss, loss),
                jitter: JitterProcess::new(config.jitter, jitter),
                least_delay: least_delay(&config),
                config,
            }),
        };
        let config = &link.rest.config;
        link.serialiser.follow(Instant::ZERO, config.trace.as_ref(), false);
        link.serialiser.set_rate(Instant::ZERO, config.plain_rate(), false);
        link.schedule();
        link
    }

    /// Offers a packet of `size_bytes` bytes of IP.
    ///
    /// While the link is down a packet joins the queue if that was told to [`Fate::Keep`] its packets, and is
    /// refused otherwise.
    ///
    /// # Errors
    /// The cause, when the packet is refused; it is counted as offered and dropped, and stays with the caller.
    #[inline(always)]
    pub fn enqueue(&mut self, now: Instant, packet: P, size_bytes: u32) -> Result<(), DropCause> {
        self.offer(now, packet, size_bytes, Ecn::Incapable)
    }

    /// Whether the queue marks ECN-capable packets: worth looking whether a packet is one.
    #[inline]
    #[must_use]
    pub fn marks(&self) -> bool {
        self.queue.marks()
    }

    /// Offers a packet whose IP header says that it is ECN-capable, marked already or not (RFC 3168 section 5): a queue
    /// that is told to ([`QueueConfig::ecn`](crate::QueueConfig::ecn)) marks it where it would drop another.
    ///
    /// # Errors
    /// As [`Self::enqueue`].
    #[inline(never)]
    pub fn enqueue_ecn_capable(&mut self, now: Instant, packet: P, size_bytes: u32) -> Result<(), DropCause> {
        self.offer(now, packet, size_bytes, Ecn::Capable)
    }

    /// Refuses an ICMP error of `size_bytes` bytes of IP, which the link filters ([`Config::filters_icmp`]): it counts as offered and dropped.
    pub fn refuse_filtered(&mut self, now: Instant, size_bytes: u32) -> DropCause {
        self.advance(now);
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size_bytes);
        self.counters.count_drop(DropCause::IcmpFiltered);
        DropCause::IcmpFiltered
    }

    #[inline(always)]
    fn offer(&mut self, now: Instant, packet: P, size_bytes: u32, ecn: Ecn) -> Result<(), DropCause> {
        self.advance(now);
        self.counters.offered += 1;
        self.counters.offered_bytes += u64::from(size_bytes);
        let accepted = self.accept(packet, size_bytes, ecn);
        if let Err(cause) = accepted {
            self.counters.count_drop(cause);
        }
        accepted
    }

    #[inline(always)]
    fn accept(&mut self, packet: P, size_bytes: u32, ecn: Ecn) -> Result<(), DropCause> {
        if self.scheduled {
            if size_bytes > u32::from(self.mtu) {
                return Err(DropCause::MtuExceeded);
            }
            return self.accept_scheduled(Queued { since: self.now, packet, size: size_bytes as u16, ecn });
        }
        self.accept_on_any_link(packet, size_bytes, ecn)
    }

    #[inline(always)]
    fn accept_scheduled(&mut self, queued: Queued<P>) -> Result<(), DropCause> {
        if self.ends == Instant::MAX {
            self.take_over(queued.size);
            self.ends = self.put_on_wire(self.now, &queued);
            return Ok(());
        }
        let (packets, bytes) = self.freed.as_of(self.now);
        let (packets, bytes) = (self.waiting.packets + packets, self.waiting.bytes + bytes);
        if !self.queue.limit().has_room(packets, bytes, queued.size) {
            return Err(DropCause::QueueFull);
        }
        self.line_up(&queued);
        Ok(())
    }

    /// A packet finds the serialiser idle. If that became so at this very instant, it counts as one that waits for those
    /// that are offered now.
    #[inline(always)]
    fn take_over(&mut self, size: u16) {
        if self.freed.at == self.now {
            self.freed.add(self.now, 1, u64::from(size));
        }
    }

    /// While scheduled: a packet waits for its turn.
    #[inline]
    fn line_up(&mut self, queued: &Queued<P>) {
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(queued.size);
        self.put_on_wire(self.serialiser.end(), queued);
    }

    /// While scheduled: returns when the last bit of the packet leaves if the first does at `start`.
    #[inline(always)]
    fn put_on_wire(&mut self, start: Instant, queued: &Queued<P>) -> Instant {
        let end = self.serialiser.start(start, self.framing.bits(u32::from(queued.size)));
        let arrival = Instant::from_nanos(end.as_nanos().saturating_add(self.delay));
        self.wire.send_in_order(OnWire::new(queued, end, arrival));
        end
    }

    #[inline(never)]
    fn accept_on_any_link(&mut self, packet: P, size_bytes: u32, ecn: Ecn) -> Result<(), DropCause> {
        if self.down.is_some_and(|down| down.queued == Fate::Drop) {
            return Err(DropCause::LinkDown);
        }
        let size = u16::try_from(size_bytes).ok().filter(|size| *size <= self.mtu);
        let mut queued = Queued { since: self.now, packet, size: size.ok_or(DropCause::MtuExceeded)?, ecn };
        self.queue.admit(self.now, &mut queued.ecn)?;
        let marked = queued.ecn == Ecn::Marked;
        if self.sending.is_none() && self.serialiser.is_running() {
            // The queue is empty, or its head would be in the serialiser.
            self.take_over(queued.size);
            self.send(self.now, queued);
        } else {
            self.queue.push(queued, self.freed.as_of(self.now))?;
        }
        self.counters.marked += u64::from(marked);
        Ok(())
    }

    /// The next thing that has happened by `now`, in the order in which they happened; of one instant, arrivals
    /// before drops that were decided then.
    #[inline]
    pub fn poll(&mut self, now: Instant) -> Option<Output<P>> {
        self.advance(now);
        if !self.late_drops.is_empty()
            && let Some(output) = self.poll_late_drop()
        {
            return Some(output);
        }
        let arrived = self.wire.receive(self.horizon())?;
        let (packet, at) = (arrived.packet, arrived.arrival);
        if arrived.lost {
            self.counters.count_drop(DropCause::Loss);
            return Some(Output::Dropped { packet, at, cause: DropCause::Loss });
        }
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(arrived.size);
        Some(Output::Delivered { packet, at, marked: arrived.ecn == Ecn::Marked })
    }

    /// As [`poll`](Self::poll), on a link of which nothing is lost, marked, reordered or dropped late: the next packet that
    /// has arrived by `now` (at what was the [timeout](Self::next_timeout)), and the timeout that follows, [`Instant::MAX`]
    /// for none. `None` also where [`poll`](Self::poll) has to be asked instead.
    #[inline(always)]
    pub fn take_arrival(&mut self, now: Instant) -> Option<(P, Instant)> {
        self.advance(now);
        if !self.scheduled || self.wire.first_in_order()?.arrival > self.now {
            return None;
        }
        let arrived = self.wire.pop_in_order()?;
        self.counters.delivered += 1;
        self.counters.delivered_bytes += u64::from(arrived.size);
        Some((arrived.packet, self.wire.first_in_order().map_or(Instant::MAX, |next| next.arrival)))
    }

    /// Whether a packet that was just accepted has not changed the [timeout](Self::next_timeout), for it has to wait for
    /// others to arrive. `false` where that is not known.
    #[inline(always)]
    #[must_use]
    pub fn is_behind_others(&self) -> bool {
        self.scheduled && self.wire.len_in_order() > 1
    }

    /// The oldest late drop, unless a packet arrived before it or together with it.
    fn poll_late_drop(&mut self) -> Option<Output<P>> {
        let until = self.late_drops.front()?.at.min(self.horizon());
        if self.wire.next_arrival().is_some_and(|arrival| arrival <= until) {
            return None;
        }
        let LateDrop { at, packet, cause } = self.late_drops.pop_front()?;
        self.schedule();
        Some(Output::Dropped { packet, at, cause })
    }

    /// When to poll next: the next arrival, or the next drop by CoDel if that comes first. `None` while nothing
    /// can happen by itself - the link is empty, down, or at rate zero.
    ///
    /// A timeout comes to nothing in two cases only. Where jitter may reorder, the packet that is sent next may
    /// arrive first, and its own arrival is not drawn yet: the earliest possible one counts. And CoDel is looked
    /// after once when it may begin to drop, which is about once an interval or a drop.
    #[inline(always)]
    #[must_use]
    pub fn next_timeout(&self) -> Option<Instant> {
        if self.scheduled {
            return self.wire.first_in_order().map(|first| first.arrival);
        }
        self.next_timeout_of_any_link()
    }

    #[inline(never)]
    fn next_timeout_of_any_link(&self) -> Option<Instant> {
        if let Some(drop) = self.late_drops.front() {
            return Some(drop.at);
        }
        let arrival = self.wire.next_arrival();
        if let Some(down) = self.down {
            return arrival.filter(|arrival| *arrival <= down.since);
        }
        if self.ends == Instant::MAX {
            return arrival;
        }
        let mut next = arrival;
        if self.may_reorder && !self.queue.is_empty() {
            // What is sent next, when this one ends, may arrive before all of these.
            next = earlier(
                next,
                Instant::from_nanos(self.ends.as_nanos().saturating_add(self.rest.least_delay)),
            );
        }
        match self.queue.next_look(self.ends) {
            Some(look) => earlier(next, look),
            None => next,
        }
    }

    /// Brings the link up to `now`. Every other method does this by itself.
    #[inline(always)]
    pub fn advance(&mut self, now: Instant) {
        self.now = self.now.max(now);
        while self.ends <= self.now {
            if !self.scheduled {
                return self.send_due();
            }
            self.begin_next();
        }
    }

    fn send_due(&mut self) {
        while self.ends <= self.now {
            let (at, packets, bytes) = (self.ends, self.queue.len(), self.queue.bytes());
            self.send_next(at);
            if !self.serialiser.is_unlimited() {
                self.freed.add(at, packets - self.queue.len(), bytes - self.queue.bytes());
            }
        }
    }

    /// While scheduled: what waited longest begins to be sent.
    #[inline(always)]
    fn begin_next(&mut self) {
        let (at, freed) = (self.ends, self.waiting);
        self.ends = match self.wire.newest_in_order(self.waiting.packets) {
            Some(next) => {
                self.waiting.packets -= 1;
                self.waiting.bytes -= u64::from(next.size);
                next.end
            }
            None => Instant::MAX,
        };
        if !self.serialiser.is_unlimited() {
            self.freed.add(at, freed.packets - self.waiting.packets, freed.bytes - self.waiting.bytes);
        }
    }

    /// Lets what waits go on the wire at once from now on, if nothing can change what becomes of it but a call, and
    /// nothing is left that another configuration did to a packet.
    fn schedule(&mut self) {
        let can_be = self.certain
            && !self.may_reorder
            && self.down.is_none()
            && self.late_drops.is_empty()
            && self.serialiser.is_running()
            && self.queue.is_plain()
            && self.sending.is_none_or(|sending| sending.jitter == 0)
            && self.wire.is_plain();
        if self.scheduled || !can_be {
            return;
        }
        self.scheduled = true;
        self.sending = None;
        for queued in self.queue.drain() {
            self.line_up(&queued);
        }
    }

    /// Takes what waits back into the queue, before anything changes on which its departure depends.
    fn unschedule(&mut self) {
        if !self.scheduled {
            return;
        }
        self.scheduled = false;
        for n in (1..=self.waiting.packets).rev() {
            if let Some(waiting) = self.wire.newest_in_order(n) {
                self.queue.put_back(waiting.queued());
            }
        }
        for _ in 0..self.waiting.packets {
            if let Some(waiting) = self.wire.take_back() {
                self.serialiser.take_back(self.framing.bits(u32::from(waiting.size)));
            }
        }
        self.waiting = Waiting::default();
        if self.ends != Instant::MAX
            && let Some(sending) = self.wire.newest_in_order(1)
        {
            self.serialiser.ends_at(self.ends);
            self.sending = Some(Sending { end: self.ends, jitter: 0, lost: false, queued: sending.queued() });
        }
    }

    /// Puts the packet in the serialiser on the wire, with the arrival it has if nothing happens to it before it ends.
    fn propagate(&mut self, sending: &Sending<P>) {
        let delay = self.delay.saturating_add_signed(sending.jitter);
        let arrival = Instant::from_nanos(sending.end.as_nanos().saturating_add(delay));
        let on_wire = OnWire { lost: sending.lost, ..OnWire::new(&sending.queued, sending.end, arrival) };
        if self.may_reorder {
            self.wire.send_in_any_order(on_wire);
        } else {
            self.wire.send_in_order(on_wire);
        }
    }

    /// Takes the packet in the serialiser off the wire again, before anything changes that its arrival depends on.
    fn recall(&mut self) {
        if self.ends != Instant::MAX {
            self.wire.recall(self.may_reorder);
            self.ends = Instant::MAX;
        }
    }

    /// What [`Self::recall`] took back goes on, if anything moves.
    fn resume(&mut self) {
        if let Some(sending) = self.sending
            && sending.end != Instant::MAX
        {
            self.ends = sending.end;
            self.propagate(&sending);
        }
    }

    /// Takes the next packet from the queue into the serialiser, at `now` or a little in the past.
    fn send_next(&mut self, now: Instant) {
        self.sending = None;
        self.ends = Instant::MAX;
        if !self.serialiser.is_running() {
            return;
        }
        let (late_drops, counters) = (&mut self.late_drops, &mut self.counters);
        let head = self.queue.take(now, |dropped| {
            counters.count_drop(DropCause::CoDel);
            late_drops.push_back(LateDrop { at: now, packet: dropped.packet, cause: DropCause::CoDel });
        });
        match head {
            Some(head) => {
                self.counters.marked += self.queue.take_marks();
                self.send(now, head);
            }
            None => self.serialiser.idle(),
        }
    }

    fn send(&mut self, now: Instant, queued: Queued<P>) {
        let end = self.serialiser.start(now, self.framing.bits(u32::from(queued.size)));
        let (jitter, lost) = if self.certain { (0, false) } else { self.meet(now, end) };
        let sending = Sending { end, jitter, lost, queued };
        self.sending = Some(sending);
        self.ends = sending.end;
        if sending.end != Instant::MAX {
            self.propagate(&sending);
        }
    }

    /// What a packet meets that begins to be sent at `now` and ends at `end`: its jitter, and whether it is lost.
    fn meet(&mut self, now: Instant, end: Instant) -> (i64, bool) {
        if let Some(trace) = &self.rest.config.trace {
            if let Some(p) = trace.loss_at(now) {
                self.rest.loss.set_law(Loss::Bernoulli { p });
            }
            self.delay = trace.delay_at(end).unwrap_or(self.delay);
        }
        (self.rest.jitter.next_nanos(), self.rest.loss.next_is_lost())
    }

    /// Until when packets arrive: nothing does while the link is down.
    #[inline]
    fn horizon(&self) -> Instant {
        self.down.map_or(self.now, |down| down.since)
    }

    /// Changes the link in place.
    ///
    /// - Rate: what is left of the packet being sent is sent at the new rate, exactly.
    /// - Framing, loss and jitter laws: hold for packets that begin to be sent from now on.
    /// - Delay: holds for packets whose last bit is sent from now on. Packets on the wire keep their arrival,
    ///   and without `reorder` none sent later overtakes them.
    /// - MTU: holds for packets offered from now on.
    /// - Queue limit: what exceeds it is dropped from the tail with [`DropCause::QueueFull`].
    /// - Discipline: with the same one its state stays and the parameters change; another one starts anew.
    /// - Trace: is where it would be if it had been there from [`Instant::ZERO`].
    pub fn reconfigure(&mut self, now: Instant, config: Config) {
        self.advance(now);
        self.unschedule();
        self.recall();
        let now = self.now;
        let (late_drops, counters) = (&mut self.late_drops, &mut self.counters);
        self.queue.reconfigure(now, &config, |dropped| {
            counters.count_drop(DropCause::QueueFull);
            late_drops.push_back(LateDrop { at: now, packet: dropped.packet, cause: DropCause::QueueFull });
        });
        self.delay = nanos(config.delay);
        self.may_reorder = config.jitter.may_reorder();
        self.certain = is_certain(&config);
        (self.framing, self.mtu) = (config.framing, config.mtu);
        self.rest.loss.set_law(config.loss);
        self.rest.jitter.set_law(config.jitter);
        self.rest.least_delay = least_delay(&config);
        self.rest.config = config;
        self.serialiser.follow(now, self.rest.config.trace.as_ref(), self.sending.is_some());
        if self.down.is_none() {
            self.set_rate(self.rest.config.plain_rate());
        }
        self.schedule();
    }

    /// Lets the serialiser go on at `rate`, with the packet it has, which was recalled, or with the next one.
    fn set_rate(&mut self, rate: DataRate) {
        let end = self.serialiser.set_rate(self.now, rate, self.sending.is_some());
        match &mut self.sending {
            Some(sending) => {
                sending.end = end;
                if let Some(delay) = self.rest.config.trace.as_ref().and_then(|trace| trace.delay_at(end)) {
                    self.delay = delay;
                }
                self.resume();
            }
            None => self.send_next(self.now),
        }
    }

    /// Takes the link down.
    ///
    /// `queued` is the fate of packets in the queue and of those offered while the link is down; `in_flight`
    /// that of packets in the serialiser and on the wire. What has arrived by `now` is delivered still. Packets
    /// that are kept in flight stand still: they have as far to go when the link is up again. On a link that is
    /// down already the new fates apply to what is left.
    pub fn set_down(&mut self, now: Instant, queued: Fate, in_flight: Fate) {
        self.advance(now);
        self.unschedule();
        self.recall();
        let since = self.down.map_or(self.now, |down| down.since);
        self.down = Some(Down { since, queued });
        if in_flight == Fate::Drop {
            self.drop_in_flight(since);
        }
        self.set_rate(DataRate::ZERO);
        if queued == Fate::Drop {
            for dropped in self.queue.drain() {
                self.drop_late(dropped.packet);
            }
        }
        self.note_idle();
    }

    /// Drops the packet in the serialiser and those that arrive after `since`, oldest first.
    fn drop_in_flight(&mut self, since: Instant) {
        let (late_drops, counters, at) = (&mut self.late_drops, &mut self.counters, self.now);
        self.wire.cut(since, |lost| {
            counters.count_drop(DropCause::LinkDown);
            late_drops.push_back(LateDrop { at, packet: lost.packet, cause: DropCause::LinkDown });
        });
        if let Some(sending) = self.sending.take() {
            self.serialiser.abandon(self.now);
            self.drop_late(sending.queued.packet);
        }
    }

    fn drop_late(&mut self, packet: P) {
        self.counters.count_drop(DropCause::LinkDown);
        self.late_drops.push_back(LateDrop { at: self.now, packet, cause: DropCause::LinkDown });
    }

    /// Takes the link up. What was kept in flight goes on from where it was; so does the queue.
    pub fn set_up(&mut self, now: Instant) {
        self.advance(now);
        if let Some(down) = self.down.take() {
            self.wire.postpone(down.since, self.now.as_nanos() - down.since.as_nanos());
            self.set_rate(self.rest.config.plain_rate());
            self.schedule();
        }
    }

    /// Takes every packet out of the queue, oldest first, to be sent another way. The packet in the serialiser
    /// stays.
    pub fn drain_queue(&mut self, now: Instant) -> Vec<P> {
        self.advance(now);
        self.unschedule();
        let drained = self.queue.drain();
        self.counters.drained += drained.len() as u64;
        self.note_idle();
        self.schedule();
        drained.into_iter().map(|queued| queued.packet).collect()
    }

    /// Tells the queue when there is nothing to send although nothing was sent last.
    fn note_idle(&mut self) {
        if self.sending.is_none() && self.queue.is_empty() {
            self.queue.link_is_idle(self.now);
        }
    }

    /// Whether the link is up.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        self.down.is_none()
    }

    /// The configuration as last given.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.rest.config
    }

    /// The largest packet it takes, IP bytes.
    #[inline]
    #[must_use]
    pub const fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Packets and bytes of IP in the queue as of the last call, without the packet in the serialiser.
    #[inline]
    #[must_use]
    pub fn queue_len(&self) -> (usize, u64) {
        // One of the two is empty.
        (self.waiting.packets + self.queue.len(), self.waiting.bytes + self.queue.bytes())
    }

    /// When the last bit of the packet in the serialiser leaves, as of the last call; `None` while there is none or
    /// nothing moves.
    #[must_use]
    pub fn sending_until(&self) -> Option<Instant> {
        Some(self.ends).filter(|end| *end != Instant::MAX)
    }

    /// Packets in the serialiser and on the wire as of the last call, those that have arrived and were not
    /// polled included.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        // What moves through the serialiser is counted with the wire.
        self.wire.len() - self.waiting.packets
            + usize::from(self.sending.is_some() && self.ends == Instant::MAX)
    }

    /// What became of the packets offered so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }
}

fn is_certain(config: &Config) -> bool {
    matches!((config.loss, config.jitter), (Loss::None, Jitter::None)) && config.trace.is_none()
}

/// The least delay that [`Config::jitter`] and a trace can leave a packet, in nanoseconds.
fn least_delay(config: &Config) -> u64 {
    let delay = nanos(config.least_delay());
    match config.jitter {
        Jitter::None | Jitter::Pareto { .. } => delay,
        Jitter::Uniform { spread, .. } => delay.saturating_sub(nanos(spread)),
        Jitter::Normal { .. } => 0,
    }
}

fn earlier(a: Option<Instant>, b: Instant) -> Option<Instant> {
    Some(a.map_or(b, |a| a.min(b)))
}
