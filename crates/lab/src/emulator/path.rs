//! One direction of a link with its devices.

use std::io::ErrorKind;

use careof_base::{Instant, RandomStream};
use careof_link::{Config, Link, Output};
use careof_wire::icmp::error_in;
use nix::errno::Errno;

use super::slab::Slab;
use super::tap::{Passage, Sighting, TapWriter};
use super::{Direction, DirectionReport, LinkId};
use crate::clock::Clock;
use crate::tun::Tun;

/// Packets taken from a device before the others, and the deadlines, have their turn.
const PACKETS_A_TURN: u32 = 32;

/// Whether a device will have more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Open,
    Gone,
}

/// A device, and the one-way link that what is read from it crosses.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) device: Tun,
    pub(super) link: Link<u32>,
    /// Which link this is a direction of, and which; for taps.
    pub(super) place: (LinkId, Direction),
    /// When the link wants to be polled next.
    pub(super) deadline: Option<Instant>,
    /// The fields that are not the link's own.
    counts: DirectionReport,
}

impl Path {
    pub(super) fn new(device: Tun, config: Config, stream: impl Fn(&str) -> RandomStream) -> Self {
        Self {
            device,
            link: Link::new(config, stream("loss"), stream("jitter"), stream("queue")),
            place: (LinkId(0), Direction::Forward),
            deadline: None,
            counts: DirectionReport::default(),
        }
    }

    /// Takes what the sending host has sent.
    pub(super) fn receive(
        &mut self,
        clock: Clock,
        slab: &mut Slab,
        tap: &mut Option<TapWriter>,
        buffer: &mut [u8],
    ) -> Device {
        for _ in 0..PACKETS_A_TURN {
            match self.device.receive(buffer) {
                Ok(length) => {
                    let packet = buffer.get(..length).unwrap_or_default();
                    self.counts.received += 1;
                    match slab.keep(packet) {
                        Some(token) => self.offer(clock.now(), slab, tap, token),
                        None => {
                            self.counts.no_buffer += 1;
                            self.tell(tap, clock.now(), Passage::NoBuffer, (0, packet));
                        }
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Device::Open,
                // While the interface is down there is nothing to read, but it may come back.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => return Device::Open,
                Err(_) => return Device::Gone,
            }
        }
        Device::Open
    }

    /// Puts a packet on the link.
    fn offer(&mut self, now: Instant, slab: &mut Slab, tap: &mut Option<TapWriter>, token: u32) {
        let size = u32::try_from(slab.packet(token).len()).unwrap_or(u32::MAX);
        let outcome = if self.link.config().filters_icmp && error_in(slab.packet(token)).is_some() {
            Err(self.link.refuse_filtered(now, size))
        } else if self.link.marks() && slab.is_ecn_capable(token) {
            self.link.enqueue_ecn_capable(now, token, size)
        } else {
            self.link.enqueue(now, token, size)
        };
        let (packets, bytes) = self.link.queue_len();
        let longest = &mut self.counts.longest_queue;
        *longest = (longest.0.max(u32::try_from(packets).unwrap_or(u32::MAX)), longest.1.max(bytes));
        match outcome {
            Ok(()) => self.tell(tap, now, Passage::Entered, slab.numbered(token)),
            Err(cause) => {
                self.tell(tap, now, Passage::Refused(cause), slab.numbered(token));
                slab.free(token);
            }
        }
    }

    /// Tells the tap, if there is one, of a packet and its number.
    #[inline]
    fn tell(
        &self,
        tap: &mut Option<TapWriter>,
        at: Instant,
        passage: Passage,
        (number, bytes): (u64, &[u8]),
    ) {
        let Some(tap) = tap else { return };
        let (queue_packets, queue_bytes) = self.link.queue_len();
        tap.note(&Sighting {
            at,
            link: self.place.0,
            direction: self.place.1,
            passage,
            number,
            queue_packets: u32::try_from(queue_packets).unwrap_or(u32::MAX),
            queue_bytes,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            bytes,
        });
    }

    /// Puts a packet of another path's queue on the link.
    pub(super) fn take_over(
        &mut self,
        now: Instant,
        slab: &mut Slab,
        tap: &mut Option<TapWriter>,
        token: u32,
    ) {
        self.counts.moved_in += 1;
        slab.renumber(token);
        self.offer(now, slab, tap, token);
    }

    /// Takes the packets out of the queue, oldest first; they are the caller's then.
    pub(super) fn take_queue(&mut self, now: Instant, slab: &Slab, tap: &mut Option<TapWriter>) -> Vec<u32> {
        self.empty_queue(now, Passage::TakenBack, slab, tap)
    }

    fn empty_queue(
        &mut self,
        now: Instant,
        passage: Passage,
        slab: &Slab,
        tap: &mut Option<TapWriter>,
    ) -> Vec<u32> {
        let packets = self.link.drain_queue(now);
        for token in &packets {
            self.tell(tap, now, passage, slab.numbered(*token));
        }
        packets
    }

    /// Drops the packets in the queue.
    pub(super) fn drop_queue(&mut self, now: Instant, slab: &mut Slab, tap: &mut Option<TapWriter>) {
        for token in self.empty_queue(now, Passage::Discarded, slab, tap) {
            self.counts.dropped_from_queue += 1;
            slab.free(token);
        }
    }

    /// Hands over what has arrived, and notes when there will be more. `far` is the device at the far end.
    pub(super) fn deliver(&mut self, clock: Clock, slab: &mut Slab, tap: &mut Option<TapWriter>, far: &Tun) {
        let mut now = clock.now();
        while let Some(output) = self.link.poll(now) {
            let token = match output {
                Output::Delivered { packet, at, marked } => {
                    if marked {
                        slab.mark_congestion(packet);
                    }
                    // The host deals with the packet, and may answer it, while it is handed over: `now` is before
                    // that, so that a tap sees the answer later than the question.
                    match far.send(slab.packet(packet)) {
                        Ok(()) => {
                            self.counts.written += 1;
                            self.tell(tap, now, Passage::Left, slab.numbered(packet));
                        }
                        Err(_) => {
                            self.counts.refused += 1;
                            self.tell(tap, now, Passage::Undeliverable, slab.numbered(packet));
                        }
                    }
                    self.counts.lateness.note(now.saturating_duration_since(at));
                    now = clock.now();
                    packet
                }
                Output::Dropped { packet, at, cause } => {
                    self.tell(tap, at, Passage::Lost(cause), slab.numbered(packet));
                    packet
                }
            };
            slab.free(token);
        }
        self.deadline = self.link.next_timeout();
    }

    pub(super) fn report(&self) -> DirectionReport {
        DirectionReport {
            link: *self.link.counters(),
            queued: self.link.queue_len().0 as u64,
            in_flight: self.link.in_flight() as u64,
            is_up: self.link.is_up(),
            ..self.counts
        }
    }
}
