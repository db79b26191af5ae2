//! Links that share a medium: who is on it, and how packets come to compete for it.

use careof_link::{Counters, DropCause, Fate, Medium, MediumOutput};
use careof_plan::{InterfaceIndex, NodeId, OnMedium as Place, OneWayId};

use crate::drop_cause::Cause;
use crate::packet::PacketRef;
use crate::queue::Slot;
use crate::simulation::{Component, OneWay, Simulation};

/// A medium.
pub(crate) struct SharedMedium {
    medium: Medium<PacketRef>,
    slot: Slot,
}

/// What a one-way link on a medium keeps besides: the medium counts by station, a link by direction.
pub(crate) struct OnMedium {
    place: Place,
    pub(crate) counters: Counters,
}

impl Simulation {
    /// Puts the links of the scenario that are on a medium there, once all links are laid.
    pub(crate) fn add_media(&mut self) {
        for index in 0..self.scenario.media.len() {
            let spec = self.scenario.media[index].clone();
            let stream = |what: &str| self.stream(&format!("medium.{}.{what}", spec.name));
            let queues: Vec<_> = spec
                .stations
                .iter()
                .map(|node| stream(&format!("{}.queue", self.scenario.node(*node).name)))
                .collect();
            let medium = Medium::new(spec.config.clone(), stream("backoff"), stream("loss"), queues);
            let slot = self.add_component(Component::Medium(index as u16));
            self.media.push(SharedMedium { medium, slot });
        }
        for (way, id) in self.links.iter_mut().zip(0..) {
            let Some(place) = self.topology.media.place(OneWayId(id)) else { continue };
            way.medium = Some(Box::new(OnMedium { place, counters: Counters::default() }));
            way.to_interface = self.topology.receiving_interface(OneWayId(id)).unwrap_or(way.to_interface);
        }
    }

    /// Offers a packet to the medium that a one-way link is on.
    #[inline(never)]
    pub(crate) fn offer_on_medium(&mut self, id: OneWayId, packet: PacketRef, size: u32) {
        let id = self.straight_way(id, packet);
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &mut way.medium else { return };
        let Place { medium, from, to } = on.place;
        let shared = &mut self.media[usize::from(medium)];
        on.counters.offered += 1;
        on.counters.offered_bytes += u64::from(size);
        let outcome = if shared.medium.marks() && self.pool[packet].outermost().is_ecn_capable() {
            shared.medium.enqueue_ecn_capable(now, from, to, packet, size)
        } else {
            shared.medium.enqueue(now, from, to, packet, size)
        };
        let (packets, bytes) = shared.medium.queue_len(from);
        way.longest_queue = (way.longest_queue.0.max(packets), way.longest_queue.1.max(bytes));
        self.queue.set(shared.slot, shared.medium.next_timeout());
        match outcome {
            Ok(()) => self.observe_enqueued(id, packet),
            Err(cause) => {
                on.counters.dropped[cause.index()] += 1;
                self.drop_on_link(id, packet, Cause::Link(cause), false);
            }
        }
    }

    fn straight_way(&self, id: OneWayId, packet: PacketRef) -> OneWayId {
        let destination = self.pool.hop(packet).destination;
        let leaves_to_routes = |node| self.node(node).agent.leaves_to_routes(destination);
        self.topology.straight_way(id, destination, leaves_to_routes)
    }

    /// Something may be due on a medium: packets arrive or are lost.
    pub(crate) fn medium_timeout(&mut self, index: u16) {
        let now = self.now;
        loop {
            let shared = &mut self.media[usize::from(index)];
            let Some(output) = shared.medium.poll(now) else { break };
            let (MediumOutput::Delivered { from, to, .. } | MediumOutput::Dropped { from, to, .. }) = output;
            let Some(id) = self.topology.media.way(index, from, to) else { continue };
            let way = &mut self.links[id.0 as usize];
            let Some(on) = &mut way.medium else { continue };
            match output {
                // A radio is on another station by now, and does not listen to the one before.
                MediumOutput::Delivered { packet, .. } if (on.place.from, on.place.to) != (from, to) => {
                    on.counters.dropped[DropCause::LinkDown.index()] += 1;
                    self.drop_on_link(id, packet, Cause::Link(DropCause::LinkDown), true);
                }
                MediumOutput::Delivered { packet, marked, .. } => {
                    let (to, interface) = (way.to, way.to_interface);
                    if marked {
                        self.pool[packet].outermost_mut().mark_congestion();
                    }
                    let hop = self.pool.hop(packet);
                    on.counters.delivered += 1;
                    on.counters.delivered_bytes += u64::from(hop.size);
                    on.counters.marked += u64::from(marked);
                    self.digest.packet(now, id.0, hop.id, hop.size, hop.content);
                    self.observe_delivered(id, packet);
                    self.arrive(to, interface, packet);
                }
                MediumOutput::Dropped { packet, cause, .. } => {
                    on.counters.dropped[cause.index()] += 1;
                    self.drop_on_link(id, packet, Cause::Link(cause), true);
                }
            }
        }
        let shared = &self.media[usize::from(index)];
        self.queue.set(shared.slot, shared.medium.next_timeout());
    }

    /// Brings the media up to now at the end of a run.
    pub(crate) fn advance_media(&mut self) {
        for shared in &mut self.media {
            shared.medium.advance(self.now);
        }
    }

    /// Takes a one-way link down. On a medium the mobile node leaves the cable; of other stations nothing changes, and what they send
    /// to it is lost.
    pub(crate) fn take_down(&mut self, id: OneWayId, queued: Fate, in_flight: Fate) {
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &way.medium else {
            way.link.set_down(now, queued, in_flight);
            return self.link_timeout(id);
        };
        let (medium, station) = (on.place.medium, on.place.from);
        if self.topology.homes.index(way.from).is_some() {
            self.media[usize::from(medium)].medium.set_down(now, station, queued, in_flight);
            self.medium_timeout(medium);
        }
    }

    /// Takes a one-way link up again.
    pub(crate) fn bring_up(&mut self, id: OneWayId) {
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &way.medium else {
            way.link.set_up(now);
            return self.link_timeout(id);
        };
        let (medium, station) = (on.place.medium, on.place.from);
        self.media[usize::from(medium)].medium.set_up(now, station);
        self.medium_timeout(medium);
    }

    /// Turns a radio, both directions of whose link begin at `down`, to a station whose interface to its cell is `cell`.
    pub(crate) fn turn_radio(&mut self, down: OneWayId, station: NodeId, cell: InterfaceIndex) {
        let up = OneWayId(down.0 + 1);
        self.links[down.0 as usize].from = station;
        let way = &mut self.links[up.0 as usize];
        (way.to, way.to_interface) = (station, cell);
        let there = way.medium.as_ref().and_then(|on| self.topology.media.station(on.place.medium, station));
        if let Some(there) = there {
            for way in [down, up] {
                let Some(on) = &mut self.links[way.0 as usize].medium else { continue };
                *(if way == down { &mut on.place.from } else { &mut on.place.to }) = there;
            }
        }
    }

    /// Takes a radio off its station; what is in it either way is dropped. On a channel the station repeats a frame that it has begun until
    /// the limit of repetitions.
    pub(crate) fn turn_off_radio(&mut self, down: OneWayId) {
        let up = OneWayId(down.0 + 1);
        if self.links[down.0 as usize].medium.is_some() {
            self.take_down(up, Fate::Drop, Fate::Drop);
            for packet in self.drain_way(down) {
                if let Some(on) = &mut self.links[down.0 as usize].medium {
                    on.counters.drained -= 1;
                    on.counters.dropped[DropCause::LinkDown.index()] += 1;
                }
                self.drop_on_link(down, packet, Cause::Link(DropCause::LinkDown), true);
            }
            return;
        }
        self.take_down(down, Fate::Drop, Fate::Drop);
        self.take_down(up, Fate::Drop, Fate::Drop);
    }

    /// Takes every packet out of the queue before a one-way link, oldest first.
    pub(crate) fn drain_way(&mut self, id: OneWayId) -> Vec<PacketRef> {
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &mut way.medium else { return way.link.drain_queue(now) };
        let drained =
            self.media[usize::from(on.place.medium)].medium.drain_queue(now, on.place.from, on.place.to);
        on.counters.drained += drained.len() as u64;
        drained
    }

    /// Packets and bytes in the queue before a one-way link: on a medium that of the station, for whomever they are.
    pub(crate) fn queue_before(&self, id: OneWayId) -> (usize, u64) {
        let way = &self.links[id.0 as usize];
        match &way.medium {
            None => way.link.queue_len(),
            Some(on) => self.media[usize::from(on.place.medium)].medium.queue_len(on.place.from),
        }
    }

    /// Packets of a one-way link in the queue and in flight.
    pub(crate) fn on_the_way(&self, id: OneWayId) -> (u64, u64) {
        let way = &self.links[id.0 as usize];
        let Some(on) = &way.medium else {
            return (way.link.queue_len().0 as u64, way.link.in_flight() as u64);
        };
        let Place { medium: index, to, .. } = on.place;
        let medium = &self.media[usize::from(index)].medium;
        // The station that a radio has left may still have a frame for it.
        let by_sender = self.topology.media.senders(index, id, to);
        by_sender.fold((0, 0), |(queued, in_flight), from| {
            (queued + medium.queued_for(from, to) as u64, in_flight + medium.in_flight_to(from, to) as u64)
        })
    }
}

impl OneWay {
    /// What became of the packets offered so far.
    pub(crate) fn counters(&self) -> &Counters {
        self.medium.as_ref().map_or_else(|| self.link.counters(), |on| &on.counters)
    }
}
