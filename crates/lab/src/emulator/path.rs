//! One direction of a link with its devices.

use std::io::ErrorKind;

use careof_base::{Instant, RandomStream};
use careof_link::{Config, Link, Output};
use nix::errno::Errno;

use super::DirectionReport;
use super::slab::Slab;
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
            deadline: None,
            counts: DirectionReport::default(),
        }
    }

    /// Takes what the sending host has sent.
    pub(super) fn receive(&mut self, clock: Clock, slab: &mut Slab, buffer: &mut [u8]) -> Device {
        for _ in 0..PACKETS_A_TURN {
            match self.device.receive(buffer) {
                Ok(length) => {
                    let packet = buffer.get(..length).unwrap_or_default();
                    self.counts.received += 1;
                    match slab.keep(packet) {
                        Some(token) => self.offer(clock.now(), slab, token),
                        None => self.counts.no_buffer += 1,
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
    fn offer(&mut self, now: Instant, slab: &mut Slab, token: u32) {
        let size = u32::try_from(slab.packet(token).len()).unwrap_or(u32::MAX);
        if self.link.enqueue(now, token, size).is_err() {
            slab.free(token);
        }
    }

    /// Puts a packet of another path's queue on the link.
    pub(super) fn take_over(&mut self, now: Instant, slab: &mut Slab, token: u32) {
        self.counts.moved_in += 1;
        self.offer(now, slab, token);
    }

    /// Hands over what has arrived, and notes when there will be more. `far` is the device at the far end.
    pub(super) fn deliver(&mut self, clock: Clock, slab: &mut Slab, far: &Tun) {
        let mut now = clock.now();
        while let Some(output) = self.link.poll(now) {
            let token = match output {
                Output::Delivered { packet, at } => {
                    match far.send(slab.packet(packet)) {
                        Ok(()) => self.counts.written += 1,
                        Err(_) => self.counts.refused += 1,
                    }
                    self.counts.lateness.note(now.saturating_duration_since(at));
                    now = clock.now();
                    packet
                }
                Output::Dropped { packet, .. } => packet,
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
