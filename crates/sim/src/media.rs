//! Links that share a medium: who is on it, and how packets come to compete for it.

use careof_link::{Counters, Fate, Medium, MediumOutput, StationId};
use careof_plan::{NodeId, OneWayId, Route};

use crate::drop_cause::Cause;
use crate::packet::PacketRef;
use crate::queue::Slot;
use crate::simulation::{Component, OneWay, Simulation};

/// A medium, and the one-way links that are on it.
pub(crate) struct SharedMedium {
    medium: Medium<PacketRef>,
    slot: Slot,
    stations: usize,
    /// From each station to each: the row is who sends. Every two are joined.
    ways: Vec<Option<OneWayId>>,
}

impl SharedMedium {
    fn way(&self, from: StationId, to: StationId) -> Option<OneWayId> {
        *self.ways.get(usize::from(from.0) * self.stations + usize::from(to.0))?
    }
}

/// What a one-way link on a medium keeps besides: the medium counts by station, a link by direction.
pub(crate) struct OnMedium {
    medium: u16,
    from: StationId,
    to: StationId,
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
            let medium = Medium::new(spec.config.clone(), stream("backoff"), queues);
            let stations = spec.stations.len();
            let slot = self.add_component(Component::Medium(index as u16));
            let mut shared = SharedMedium { medium, slot, stations, ways: vec![None; stations * stations] };
            for (n, link) in self.scenario.links.iter().enumerate() {
                if link.medium.is_none_or(|medium| medium.0 != index) {
                    continue;
                }
                let station = |end| spec.stations.iter().position(|node| *node == end).unwrap_or_default();
                let [a, b] = link.ends.map(station);
                for (way, from, to) in [(2 * n, a, b), (2 * n + 1, b, a)] {
                    // Of two links between the same stations the first takes what is sent straight.
                    shared.ways[from * stations + to].get_or_insert(OneWayId(way as u32));
                    self.links[way].medium = Some(Box::new(OnMedium {
                        medium: index as u16,
                        from: StationId(from as u16),
                        to: StationId(to as u16),
                        counters: Counters::default(),
                    }));
                }
            }
            self.media.push(shared);
        }
    }

    /// By which interface a node of a medium receives what comes over `way`: one of its own links there.
    pub(crate) fn find_interfaces_on_media(&mut self) {
        for index in 0..self.links.len() {
            let (Some(on), to) = (&self.links[index].medium, self.links[index].to) else { continue };
            let (medium, opposite) = (on.medium, OneWayId(index as u32 ^ 1));
            let interfaces = &self.node(to).place.interfaces;
            let is_there = |way: OneWayId| {
                let on = self.links[way.0 as usize].medium.as_ref();
                on.is_some_and(|on| on.medium == medium)
            };
            let found = interfaces
                .iter()
                .position(|interface| interface.out == opposite)
                .or_else(|| interfaces.iter().position(|interface| is_there(interface.out)));
            self.links[index].to_interface = careof_plan::InterfaceIndex(found.unwrap_or_default() as u16);
        }
    }

    /// Offers a packet to the medium that a one-way link is on.
    #[inline(never)]
    pub(crate) fn offer_on_medium(&mut self, id: OneWayId, packet: PacketRef, size: u32) {
        let id = self.straight_way(id, packet);
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &mut way.medium else { return };
        let shared = &mut self.media[usize::from(on.medium)];
        on.counters.offered += 1;
        on.counters.offered_bytes += u64::from(size);
        let outcome = if shared.medium.marks() && self.pool[packet].outermost().is_ecn_capable() {
            shared.medium.enqueue_ecn_capable(now, on.from, on.to, packet, size)
        } else {
            shared.medium.enqueue(now, on.from, on.to, packet, size)
        };
        let (packets, bytes) = shared.medium.queue_len(on.from);
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

    /// The way over a medium to the last of its stations that a packet would come to one after the other, by the routes and with
    /// nobody on the way who has more to do with it than to pass it on. Stations of one medium hear each other, so that no
    /// router takes a packet back to where it came from.
    fn straight_way(&self, id: OneWayId, packet: PacketRef) -> OneWayId {
        let Some(on) = &self.links[id.0 as usize].medium else { return id };
        let destination = self.pool.hop(packet).destination;
        let shared = &self.media[usize::from(on.medium)];
        let mut last = on.to;
        // Routes are shortest, so that they never come to a station twice.
        for _ in 0..shared.stations {
            let Some(next) = self.next_on_medium(on.medium, last, on.from, destination) else { break };
            last = next;
        }
        if last == on.to { id } else { shared.way(on.from, last).unwrap_or(id) }
    }

    /// Whom the router that is `station` would pass a packet for `destination` on to over the same medium; not back to `from`.
    fn next_on_medium(
        &self,
        medium: u16,
        station: StationId,
        from: StationId,
        destination: core::net::Ipv4Addr,
    ) -> Option<StationId> {
        let node = self.node(self.node_at(medium, station)?);
        if !node.place.forwards || !node.agent.leaves_to_routes(destination) {
            return None;
        }
        let Route::Via(interface) = node.place.route(destination) else { return None };
        let out = node.place.interfaces.get(usize::from(interface.0))?.out;
        let on = self.links[out.0 as usize].medium.as_ref().filter(|on| on.medium == medium)?;
        (on.to != from).then_some(on.to)
    }

    fn node_at(&self, medium: u16, station: StationId) -> Option<NodeId> {
        let shared = &self.media[usize::from(medium)];
        let others = (0..shared.stations as u16).map(StationId);
        others.filter_map(|to| shared.way(station, to)).map(|way| self.links[way.0 as usize].from).next()
    }

    /// Something may be due on a medium: packets arrive or are lost.
    pub(crate) fn medium_timeout(&mut self, index: u16) {
        let now = self.now;
        loop {
            let shared = &mut self.media[usize::from(index)];
            let Some(output) = shared.medium.poll(now) else { break };
            let (MediumOutput::Delivered { from, to, .. } | MediumOutput::Dropped { from, to, .. }) = output;
            let Some(id) = shared.way(from, to) else { continue };
            let way = &mut self.links[id.0 as usize];
            let Some(on) = &mut way.medium else { continue };
            match output {
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
        let (medium, station) = (on.medium, on.from);
        if self.mobiles.is_some_and(|mobiles| mobiles.index(way.from).is_some()) {
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
        let (medium, station) = (on.medium, on.from);
        self.media[usize::from(medium)].medium.set_up(now, station);
        self.medium_timeout(medium);
    }

    /// Takes every packet out of the queue before a one-way link, oldest first.
    pub(crate) fn drain_way(&mut self, id: OneWayId) -> Vec<PacketRef> {
        let now = self.now;
        let way = &mut self.links[id.0 as usize];
        let Some(on) = &mut way.medium else { return way.link.drain_queue(now) };
        let drained = self.media[usize::from(on.medium)].medium.drain_queue(now, on.from, on.to);
        on.counters.drained += drained.len() as u64;
        drained
    }

    /// Packets and bytes in the queue before a one-way link: on a medium that of the station, for whomever they are.
    pub(crate) fn queue_before(&self, id: OneWayId) -> (usize, u64) {
        let way = &self.links[id.0 as usize];
        match &way.medium {
            None => way.link.queue_len(),
            Some(on) => self.media[usize::from(on.medium)].medium.queue_len(on.from),
        }
    }

    /// Packets of a one-way link in the queue and in flight.
    pub(crate) fn on_the_way(&self, way: &OneWay) -> (u64, u64) {
        match &way.medium {
            None => (way.link.queue_len().0 as u64, way.link.in_flight() as u64),
            Some(on) => {
                let medium = &self.media[usize::from(on.medium)].medium;
                let (from, to) = (on.from, on.to);
                (medium.queued_for(from, to) as u64, medium.in_flight_to(from, to) as u64)
            }
        }
    }
}

impl OneWay {
    /// What became of the packets offered so far.
    pub(crate) fn counters(&self) -> &Counters {
        self.medium.as_ref().map_or_else(|| self.link.counters(), |on| &on.counters)
    }
}
