//! One direction of a link with its devices.

use std::io::ErrorKind;

use careof_base::{Instant, RandomStream};
use careof_link::{Config, Fate, Link, Output};
use careof_wire::{icmp, icmpv6};
use nix::errno::Errno;

use super::medium::{Crossed, OnMedium, SharedMedium};
use super::slab::Slab;
use super::tap::{Passage, Sighting, TapWriter};
use super::{Direction, DirectionReport, LinkId};
use crate::clock::Clock;
use crate::error::Error;
use crate::tun::Tun;

/// What all paths use.
#[derive(Debug, Default)]
pub(super) struct Common {
    pub(super) slab: Slab,
    pub(super) tap: Option<TapWriter>,
    pub(super) media: Vec<SharedMedium>,
}

/// What a device has to say when it is asked for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    /// A packet, so long.
    Packet(usize),
    /// Nothing now.
    Silent,
    /// Nothing any more: its interface was removed.
    Gone,
}

/// What packets of a path cross.
#[derive(Debug)]
pub(super) enum Way {
    /// A link of their own.
    Link(Box<Link<u32>>),
    /// A medium.
    Medium(OnMedium),
}

/// A device, and the one-way link that what is read from it crosses.
#[derive(Debug)]
pub(super) struct Path {
    pub(super) device: Tun,
    pub(super) way: Way,
    /// Which link this is a direction of, and which; for taps.
    pub(super) place: (LinkId, Direction),
    /// When its own link wants to be polled next.
    pub(super) deadline: Option<Instant>,
    /// The fields that are not the link's own.
    counts: DirectionReport,
}

impl Path {
    pub(super) fn new(device: Tun, way: Way) -> Self {
        Self {
            device,
            way,
            place: (LinkId(0), Direction::Forward),
            deadline: None,
            counts: DirectionReport::default(),
        }
    }

    /// Its number.
    fn number(&self) -> usize {
        super::number_of(self.place.0, self.place.1)
    }

    /// The next packet that the sending host has sent, into `buffer`.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Device {
        loop {
            match self.device.receive(buffer) {
                Ok(length) => return Device::Packet(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Device::Silent,
                // While the interface is down there is nothing to read, but it may come back.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => return Device::Silent,
                Err(_) => return Device::Gone,
            }
        }
    }

    /// The number of the path that a packet takes that was sent by this one.
    pub(super) fn path_of(&self, common: &Common, packet: &[u8]) -> usize {
        let shortcut = match &self.way {
            Way::Link(_) => None,
            Way::Medium(on) => common.media.get(on.medium).and_then(|shared| on.path_of(shared, packet)),
        };
        shortcut.unwrap_or_else(|| self.number())
    }

    /// Takes in what the sending host has sent.
    pub(super) fn take_in(&mut self, now: Instant, common: &mut Common, packet: &[u8]) {
        self.counts.received += 1;
        match common.slab.keep(packet) {
            Some(token) => self.offer(now, common, token),
            None => {
                self.counts.no_buffer += 1;
                self.tell(&mut common.tap, &common.media, now, Passage::NoBuffer, (0, packet));
            }
        }
    }

    /// Puts a packet on the link.
    fn offer(&mut self, now: Instant, common: &mut Common, token: u32) {
        let Common { slab, tap, media } = common;
        let size = u32::try_from(slab.packet(token).len()).unwrap_or(u32::MAX);
        let number = self.number();
        let outcome = match &mut self.way {
            Way::Link(link) if link.config().filters_icmp && is_icmp_error(slab.packet(token)) => {
                Err(link.refuse_filtered(now, size))
            }
            Way::Link(link) if link.marks() && slab.is_ecn_capable(token) => {
                link.enqueue_ecn_capable(now, token, size)
            }
            Way::Link(link) => link.enqueue(now, token, size),
            Way::Medium(on) => match media.get_mut(on.medium) {
                Some(shared) => on.offer(now, shared, (token, number), size, slab.is_ecn_capable(token)),
                None => Err(careof_link::DropCause::LinkDown),
            },
        };
        let (packets, bytes) = self.queue_len(media);
        let longest = &mut self.counts.longest_queue;
        *longest = (longest.0.max(packets), longest.1.max(bytes));
        match outcome {
            Ok(()) => self.tell(tap, media, now, Passage::Entered, slab.numbered(token)),
            Err(cause) => {
                self.tell(tap, media, now, Passage::Refused(cause), slab.numbered(token));
                slab.free(token);
            }
        }
    }

    /// Packets and bytes in the queue; on a medium that of the station, whomever they are for.
    fn queue_len(&self, media: &[SharedMedium]) -> (u32, u64) {
        let (packets, bytes) = match &self.way {
            Way::Link(link) => link.queue_len(),
            Way::Medium(on) => media.get(on.medium).map_or((0, 0), |shared| on.queue_len(shared)),
        };
        (u32::try_from(packets).unwrap_or(u32::MAX), bytes)
    }

    /// Tells the tap, if there is one, of a packet and its number.
    #[inline]
    fn tell(
        &self,
        tap: &mut Option<TapWriter>,
        media: &[SharedMedium],
        at: Instant,
        passage: Passage,
        (number, bytes): (u64, &[u8]),
    ) {
        let Some(tap) = tap else { return };
        let (queue_packets, queue_bytes) = self.queue_len(media);
        tap.note(&Sighting {
            at,
            link: self.place.0,
            direction: self.place.1,
            passage,
            number,
            queue_packets,
            queue_bytes,
            length: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            bytes,
        });
    }

    /// Puts a packet of another path's queue on the link.
    pub(super) fn take_over(&mut self, now: Instant, common: &mut Common, token: u32) {
        self.counts.moved_in += 1;
        common.slab.renumber(token);
        self.offer(now, common, token);
    }

    /// Takes the packets out of the queue, oldest first; they are the caller's then.
    pub(super) fn take_queue(&mut self, now: Instant, common: &mut Common) -> Vec<u32> {
        self.empty_queue(now, Passage::TakenBack, common)
    }

    fn empty_queue(&mut self, now: Instant, passage: Passage, common: &mut Common) -> Vec<u32> {
        let Common { slab, tap, media } = common;
        let packets = match &mut self.way {
            Way::Link(link) => link.drain_queue(now),
            Way::Medium(on) => match media.get_mut(on.medium) {
                Some(shared) => on.drain_queue(now, shared),
                None => Vec::new(),
            },
        };
        for token in &packets {
            self.tell(tap, media, now, passage, slab.numbered(*token));
        }
        packets
    }

    /// Drops the packets in the queue.
    pub(super) fn drop_queue(&mut self, now: Instant, common: &mut Common) {
        for token in self.empty_queue(now, Passage::Discarded, common) {
            self.counts.dropped_from_queue += 1;
            common.slab.free(token);
        }
    }

    /// Gives its link other laws.
    pub(super) fn reconfigure(&mut self, now: Instant, config: Config) -> Result<(), Error> {
        match &mut self.way {
            Way::Link(link) => link.reconfigure(now, config),
            Way::Medium(_) => return Err(Error::LawsOfMedium),
        }
        Ok(())
    }

    /// Takes its link down; on a medium the sending station leaves.
    pub(super) fn set_down(&mut self, now: Instant, common: &mut Common, queued: Fate, in_flight: Fate) {
        match &mut self.way {
            Way::Link(link) => link.set_down(now, queued, in_flight),
            Way::Medium(on) => {
                if let Some(shared) = common.media.get_mut(on.medium) {
                    on.set_down(now, shared, queued, in_flight);
                }
            }
        }
    }

    /// Takes its link up; on a medium the sending station is back.
    pub(super) fn set_up(&mut self, now: Instant, common: &mut Common) {
        match &mut self.way {
            Way::Link(link) => link.set_up(now),
            Way::Medium(on) => {
                if let Some(shared) = common.media.get_mut(on.medium) {
                    on.set_up(now, shared);
                }
            }
        }
    }

    /// Hands over what has arrived over a link of its own, and notes when there will be more. `far` is the device at the far end.
    pub(super) fn deliver(&mut self, clock: Clock, common: &mut Common, far: &Tun) {
        let mut now = clock.now();
        loop {
            let Way::Link(link) = &mut self.way else { return };
            let Some(output) = link.poll(now) else {
                self.deadline = link.next_timeout();
                return;
            };
            match output {
                Output::Delivered { packet, at, marked } => {
                    self.end(now, common, packet, Crossed::Arrived(at, marked), far);
                    now = clock.now();
                }
                Output::Dropped { packet, at, cause } => {
                    self.end(now, common, packet, Crossed::Lost(at, cause), far);
                }
            }
        }
    }

    /// A packet has crossed the link, or was lost there.
    pub(super) fn end(&mut self, now: Instant, common: &mut Common, token: u32, crossed: Crossed, far: &Tun) {
        let Common { slab, tap, media } = common;
        if let Way::Medium(on) = &mut self.way {
            match crossed {
                Crossed::Arrived(_, marked) => on.note_arrival(slab.packet(token).len(), marked),
                Crossed::Lost(_, cause) => on.note_drop(cause),
            }
        }
        match crossed {
            Crossed::Arrived(at, marked) => {
                if marked {
                    slab.mark_congestion(token);
                }
                // The host deals with the packet, and may answer it, while it is handed over: `now` is before
                // that, so that a tap sees the answer later than the question.
                let passage = match far.send(slab.packet(token)) {
                    Ok(()) => {
                        self.counts.written += 1;
                        Passage::Left
                    }
                    Err(_) => {
                        self.counts.refused += 1;
                        Passage::Undeliverable
                    }
                };
                self.tell(tap, media, now, passage, slab.numbered(token));
                self.counts.lateness.note(now.saturating_duration_since(at));
            }
            Crossed::Lost(at, cause) => {
                self.tell(tap, media, at, Passage::Lost(cause), slab.numbered(token));
            }
        }
        slab.free(token);
    }

    pub(super) fn report(&self, media: &[SharedMedium]) -> DirectionReport {
        match &self.way {
            Way::Link(link) => DirectionReport {
                link: *link.counters(),
                queued: link.queue_len().0 as u64,
                in_flight: link.in_flight() as u64,
                is_up: link.is_up(),
                ..self.counts
            },
            Way::Medium(on) => {
                let shared = media.get(on.medium);
                let (queued, in_flight) =
                    shared.map_or((0, 0), |shared| on.on_the_way(shared, self.number()));
                let is_up = shared.is_some_and(|shared| on.is_up(shared));
                DirectionReport { link: on.counters, queued, in_flight, is_up, ..self.counts }
            }
        }
    }
}

/// The link of a direction, with random streams of its own.
pub(super) fn own_link(config: Config, stream: impl Fn(&str) -> RandomStream) -> Way {
    Way::Link(Box::new(Link::new(config, stream("loss"), stream("jitter"), stream("queue"))))
}

/// Whether a packet is an ICMP error of either version of IP, in no tunnel.
fn is_icmp_error(packet: &[u8]) -> bool {
    icmp::error_in(packet).is_some() || icmpv6::error_in(packet).is_some()
}
