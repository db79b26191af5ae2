//! The new access router: Handover Initiates, addresses it proxies, and announcements of mobile nodes (RFC 5568 sections 4, 6.2.1 and
//! 6.3).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Allowance, Holdings, Instant};
use careof_wire::icmpv6::{
    HOP_LIMIT, Icmpv6Message, LinkLayerAddress, Naack, NaackStatus, NdOption, NeighborAdvertisement,
    RouterAdvertisement, target_link_layer_address,
};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{
    AddressRole, HandoverAcknowledge, HandoverAddress, HandoverCode, HandoverInitiate, InitiateCode, Message,
    MobilityOption, MobilityOptions, NtpTimestamp, SequenceNumber,
};

use super::AccessRouter;
use super::config::AddressConflict;
use super::io::{DiscardReason, Event, Transmit};
use crate::deadline::Deadlines;
use crate::v6::{Addresses, DropReason, TransmitPayload};
use crate::{InterfaceId, NtpTime, shares};

/// Refused announcements that are answered, on all links together: who announces has proved nothing.
const REFUSALS: Allowance = Allowance::new(32, Duration::from_millis(50));
/// Announcements that are remembered, and for how long: long enough for the Fast Binding Update that follows one to be asked about.
const MAX_ANNOUNCEMENTS: usize = 1024;
const ANNOUNCED_FOR: Duration = Duration::from_secs(10);
/// Addresses tried, until one is free: chance makes 64 bits.
const TRIES: usize = 8;

/// A Handover Initiate that was found authentic and fresh.
#[derive(Clone, Copy, Debug)]
struct Request {
    neighbor: usize,
    /// The router's address that it was sent to.
    router: Ipv6Addr,
    sequence: SequenceNumber,
    stamp: Option<NtpTimestamp>,
    previous: Ipv6Addr,
    new: Ipv6Addr,
    link_layer_address: LinkLayerAddress,
    assign: bool,
    buffer: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// It is being found out whether somebody else has the address.
    InDoubt,
    /// The address is proxied until the mobile node comes.
    Expected,
    /// It is there.
    Present,
}

/// A mobile node that comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    request: Request,
    interface: InterfaceId,
    phase: Phase,
    code: HandoverCode,
    /// The timestamp of the last Handover Initiate about it.
    latest: Option<NtpTime>,
}

impl Arrival {
    const fn is_present(&self) -> bool {
        matches!(self.phase, Phase::Present)
    }

    pub(super) const fn is_expected(&self) -> bool {
        matches!(self.phase, Phase::Expected)
    }

    pub(super) const fn buffers(&self) -> bool {
        self.request.buffer
    }

    pub(super) const fn interface(&self) -> InterfaceId {
        self.interface
    }

    pub(super) const fn neighbor(&self) -> usize {
        self.request.neighbor
    }

    /// Whether packets reach it at its previous care-of address.
    pub(super) const fn has_host_route(&self) -> bool {
        matches!(self.code, HandoverCode::AcceptedUsePreviousAddress)
    }
}

/// The mobile nodes that come, by the address at which packets reach them.
#[derive(Debug)]
pub(super) struct Arrivals {
    of: BTreeMap<Ipv6Addr, Arrival>,
    /// The same by who has told of them, and their previous care-of address.
    by_previous: BTreeMap<(usize, Ipv6Addr), Ipv6Addr>,
    holdings: Holdings<usize>,
    deadlines: Deadlines<Ipv6Addr>,
    /// By router: the latest timestamp of a Handover Initiate about a mobile node that is forgotten.
    forgotten: Vec<Option<NtpTime>>,
}

impl Arrivals {
    pub(super) fn new(neighbors: usize) -> Self {
        Self {
            of: BTreeMap::new(),
            by_previous: BTreeMap::new(),
            holdings: Holdings::default(),
            deadlines: Deadlines::default(),
            forgotten: alloc::vec![None; neighbors],
        }
    }

    pub(super) fn get(&self, address: Ipv6Addr) -> Option<&Arrival> {
        self.of.get(&address)
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn insert(&mut self, address: Ipv6Addr, arrival: Arrival, until: Instant) {
        let neighbor = arrival.request.neighbor;
        self.by_previous.insert((neighbor, arrival.request.previous), address);
        self.holdings.add(neighbor);
        self.deadlines.set(address, Some(until));
        self.of.insert(address, arrival);
    }

    fn remove(&mut self, address: Ipv6Addr) -> Option<Arrival> {
        let arrival = self.of.remove(&address)?;
        let neighbor = arrival.request.neighbor;
        self.by_previous.remove(&(neighbor, arrival.request.previous));
        self.holdings.take(neighbor);
        self.deadlines.set(address, None);
        self.note_forgotten(neighbor, arrival.latest);
        Some(arrival)
    }

    fn note_forgotten(&mut self, neighbor: usize, stamp: Option<NtpTime>) {
        if let (Some(forgotten), Some(stamp)) = (self.forgotten.get_mut(neighbor), stamp) {
            *forgotten = Some(forgotten.map_or(stamp, |last| last.later_of(stamp)));
        }
    }
}

/// Announcements that came before anybody had told of the mobile node, by address: they say which station has it.
#[derive(Debug, Default)]
pub(super) struct Announcements {
    of: BTreeMap<Ipv6Addr, (LinkLayerAddress, InterfaceId)>,
    deadlines: Deadlines<Ipv6Addr>,
}

impl Announcements {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(address) = self.deadlines.take_due(now) {
            self.of.remove(&address);
        }
    }

    fn get(&self, address: Ipv6Addr) -> Option<(LinkLayerAddress, InterfaceId)> {
        self.of.get(&address).copied()
    }

    /// The first station that announces an address has it for as long as it is remembered.
    fn note(&mut self, now: Instant, address: Ipv6Addr, station: LinkLayerAddress, interface: InterfaceId) {
        if self.of.len() >= MAX_ANNOUNCEMENTS && !self.of.contains_key(&address) {
            // The oldest makes room.
            let Some(oldest) = self.deadlines.take_due(Instant::MAX) else { return };
            self.of.remove(&oldest);
        }
        self.of.insert(address, (station, interface));
        self.deadlines.set(address, Some(now + ANNOUNCED_FOR));
    }
}

impl AccessRouter {
    pub(super) fn handle_initiate(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        initiate: &HandoverInitiate,
    ) {
        let source = addresses.source;
        let request = match self.authentic_initiate(now, addresses, bytes, initiate) {
            Ok(request) => request,
            Err(reason) => return self.outbox.drop(reason, source),
        };
        match initiate.code {
            InitiateCode::FromPreviousLink => self.expect(now, request),
            InitiateCode::FromNewLink => self.validate(now, request),
            InitiateCode::Unknown(_) => {
                self.outbox.drop(DropReason::PoorlyFormed, source);
                self.answer(&request, HandoverCode::NotAccepted, None);
            }
        }
    }

    fn authentic_initiate(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        initiate: &HandoverInitiate,
    ) -> Result<Request, DropReason> {
        let options = &initiate.options;
        let neighbor = self.authentic_router(addresses, bytes, options)?;
        let link_layer_address = options.mobile_link_layer_address().ok_or(DropReason::PoorlyFormed)?;
        let previous = options.handover_address(AddressRole::OldCareOfAddress);
        let previous = previous.filter(|address| is_unicast_routable(*address));
        let previous = previous.ok_or(DropReason::PoorlyFormed)?;
        let new = options.handover_address(AddressRole::NewCareOfAddress);
        let new = new.ok_or(DropReason::PoorlyFormed)?;
        // The previous care-of address is of the link of who tells of it; others are not its affair.
        let router = self.config.neighbors.get(neighbor).ok_or(DropReason::UnexpectedSource)?;
        if !router.prefix.contains(previous) {
            return Err(DropReason::PoorlyFormed);
        }
        let known = self.arrivals.by_previous.get(&(neighbor, previous)).copied();
        let latest = known.and_then(|address| self.arrivals.get(address)?.latest);
        let forgotten = self.arrivals.forgotten.get(neighbor).copied().flatten();
        let last = match (latest, forgotten) {
            (Some(latest), Some(forgotten)) => Some(latest.later_of(forgotten)),
            (latest, forgotten) => latest.or(forgotten),
        };
        let stamp = options.replay_protection();
        let fresh = self.fresh_stamp(now, neighbor, stamp, last)?;
        match known.and_then(|address| self.arrivals.of.get_mut(&address)) {
            Some(arrival) => arrival.latest = fresh,
            None if initiate.code != InitiateCode::FromPreviousLink => {
                self.arrivals.note_forgotten(neighbor, fresh);
            }
            None => {}
        }
        Ok(Request {
            neighbor,
            router: addresses.destination,
            sequence: initiate.sequence,
            stamp,
            previous,
            new,
            link_layer_address,
            assign: initiate.assign_address,
            buffer: initiate.buffer,
        })
    }

    /// A mobile node is about to come (section 4).
    fn expect(&mut self, now: Instant, request: Request) {
        let known = self.arrivals.by_previous.get(&(request.neighbor, request.previous)).copied();
        if let Some(address) = known
            && let Some(arrival) = self.arrivals.of.get_mut(&address)
        {
            // With another number it is another handover, and a mobile node that was here has gone meanwhile.
            // What was under way when the mobile node came does not have it waited for again. It has gone when its own word, or the
            // link layer's, says so.
            let has_gone =
                self.departures.get(address).is_some() || self.detached_until.contains_key(&address);
            let is_same = arrival.request.new == request.new
                && arrival.request.link_layer_address == request.link_layer_address
                && !(arrival.is_present() && has_gone);
            if is_same {
                // Sent again, because our answer was lost or is not there yet.
                arrival.request = request;
                let (phase, code) = (arrival.phase, arrival.code);
                if let Phase::Expected = phase {
                    self.arrivals.deadlines.set(address, Some(now + self.config.proxy_lifetime));
                }
                if !matches!(phase, Phase::InDoubt) {
                    self.answer(&request, code, Some(address));
                }
                return;
            }
            self.forget_arrival(now, address, true);
        }
        if self.has_come_by_another(&request) {
            self.forget_arrival(now, request.new, true);
        }
        if self.has_no_room_for(request.neighbor) {
            self.outbox.drop(DropReason::TableFull, request.router);
            return self.answer(&request, HandoverCode::InsufficientResources, None);
        }
        let is_free = self.is_free(&request);
        let wait = self.config.duplicate_address_detection.filter(|_| is_free);
        let Some((wait, link)) = wait.zip(self.config.link_of(request.new)) else {
            return self.decide(now, request, is_free);
        };
        let (interface, address) = (link.interface, request.new);
        self.outbox.event(Event::DetectDuplicate { interface, address, wait });
        let code = HandoverCode::Accepted;
        let latest = request.stamp.map(|stamp| NtpTime::from_bits(stamp.0));
        let arrival = Arrival { request, interface, phase: Phase::InDoubt, code, latest };
        // An owner that has nothing to say after twice the time has forgotten.
        self.arrivals.insert(address, arrival, now + wait * 2);
    }

    /// Whether the mobile node was here a moment ago, coming from another router, and has left meanwhile.
    fn has_come_by_another(&self, request: &Request) -> bool {
        let Request { new, link_layer_address, .. } = *request;
        let is_same = |arrival: &Arrival| {
            arrival.is_present() && arrival.request.link_layer_address == link_layer_address
        };
        self.arrivals.get(new).is_some_and(is_same)
            && (self.departures.get(new).is_some() || self.detached_until.contains_key(&new))
    }

    /// Whether the new care-of address is one of a link, and nobody else's as far as is known.
    fn is_free(&self, request: &Request) -> bool {
        let Request { new, link_layer_address, .. } = *request;
        is_unicast_routable(new)
            && self.config.link_of(new).is_some()
            && !self.config.is_own(new)
            && self.arrivals.get(new).is_none()
            && self.is_nobody_elses(new, link_layer_address)
            && self.announcements.get(new).is_none_or(|(station, _)| station == link_layer_address)
    }

    /// Whether no other mobile node than this station has left from the address lately.
    fn is_nobody_elses(&self, address: Ipv6Addr, station: LinkLayerAddress) -> bool {
        let departure = self.departures.get(address);
        departure.is_none_or(|departure| departure.link_layer_address() == Some(station))
    }

    pub(super) fn handle_detection(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        address: Ipv6Addr,
        unique: bool,
    ) {
        let Some(arrival) = self.arrivals.get(address) else { return };
        if !matches!(arrival.phase, Phase::InDoubt) || arrival.interface != interface {
            return;
        }
        let request = arrival.request;
        self.arrivals.remove(address);
        if !unique {
            self.outbox.drop(DropReason::DuplicateAddress, request.router);
        }
        self.decide(now, request, unique);
    }

    /// Accepts a mobile node at the address it wants, or another, or at its previous one.
    fn decide(&mut self, now: Instant, request: Request, is_free: bool) {
        let link = self.config.link_of(request.new).or(self.config.links.first());
        let Some(interface) = link.map(|link| link.interface) else { return };
        let (code, address) = match self.config.address_conflict {
            _ if is_free && request.assign => (HandoverCode::AcceptedAddressAssigned, Some(request.new)),
            _ if is_free => (HandoverCode::Accepted, Some(request.new)),
            AddressConflict::Assign => {
                (HandoverCode::AcceptedAddressAssigned, self.assigned_address(interface, &request))
            }
            AddressConflict::UsePrevious => {
                (HandoverCode::AcceptedUsePreviousAddress, Some(request.previous))
            }
            AddressConflict::Refuse => {
                return self.answer(&request, HandoverCode::AcceptedAddressInUse, None);
            }
        };
        let Some(address) = address else {
            return self.answer(&request, HandoverCode::AcceptedAddressInUse, None);
        };
        // Another router may have told of a mobile node with the same address: the first comes first.
        if self.arrivals.get(address).is_some() {
            return self.answer(&request, HandoverCode::NotAccepted, None);
        }
        // One that comes back to the address it left from: its packets wait here, and no longer go to where it comes from.
        self.end_departure(address);
        let latest = request.stamp.map(|stamp| NtpTime::from_bits(stamp.0));
        let arrival = Arrival { request, interface, phase: Phase::Expected, code, latest };
        self.arrivals.insert(address, arrival, now + self.config.proxy_lifetime);
        if !arrival.has_host_route() {
            self.outbox.event(Event::Proxy { interface, address, on: true });
        }
        self.settle(now, address);
        self.answer(&request, code, Some(address));
    }

    /// An address of the link that nobody has, as far as is known.
    fn assigned_address(&mut self, interface: InterfaceId, request: &Request) -> Option<Ipv6Addr> {
        let prefix = self.config.link(interface)?.prefix;
        for _ in 0..TRIES {
            let identifier = Ipv6Addr::from_bits(self.random.next_u64().into());
            let new = prefix.with_interface_of(identifier);
            if self.is_free(&Request { new, ..*request }) && self.announcements.get(new).is_none() {
                return Some(new);
            }
        }
        None
    }

    /// A mobile node says that it is here already (code 1): nothing is prepared for it, and all there is to say is whether the station
    /// that has announced the address is its own (section 4).
    fn validate(&mut self, now: Instant, request: Request) {
        let Request { new, link_layer_address, previous, .. } = request;
        if self.config.is_own(new) {
            // It was told to use this router's address (NAACK status 3), or has no other: it keeps its previous one.
            return self.host_route(now, request);
        }
        let announced = self.announcements.get(new);
        let of_another = announced.is_some_and(|(station, _)| station != link_layer_address)
            || self.arrivals.get(new).is_some_and(|arrival| {
                arrival.request.link_layer_address != link_layer_address
                    || arrival.request.previous != previous
            });
        let is_there = is_unicast_routable(new)
            && self.config.link_of(new).is_some()
            && !of_another
            && self.is_nobody_elses(new, link_layer_address);
        let code = if is_there {
            // It is back at the address it left from, as it has proved to the router it comes from.
            self.end_departure(new);
            self.settle(now, new);
            HandoverCode::Accepted
        } else {
            HandoverCode::AcceptedAddressInUse
        };
        self.answer(&request, code, None);
    }

    /// Whether the table is full, or what of it one neighbor may have.
    fn has_no_room_for(&self, neighbor: usize) -> bool {
        let share = shares::of_home_agent(None, self.config.max_arrivals);
        self.arrivals.len() >= self.config.max_arrivals || self.arrivals.holdings.of(neighbor) >= share
    }

    fn host_route(&mut self, now: Instant, request: Request) {
        let previous = request.previous;
        let link = self.config.links.iter().find(|link| link.address == request.new);
        let Some(interface) = link.map(|link| link.interface) else {
            return self.answer(&request, HandoverCode::NotAccepted, None);
        };
        if self.arrivals.get(previous).is_none() {
            if self.has_no_room_for(request.neighbor) {
                self.outbox.drop(DropReason::TableFull, request.router);
                return self.answer(&request, HandoverCode::InsufficientResources, None);
            }
            let code = HandoverCode::AcceptedUsePreviousAddress;
            let latest = request.stamp.map(|stamp| NtpTime::from_bits(stamp.0));
            let arrival = Arrival { request, interface, phase: Phase::Expected, code, latest };
            if let Some(old) = self.arrivals.by_previous.get(&(request.neighbor, previous)).copied() {
                self.forget_arrival(now, old, true);
            }
            self.arrivals.insert(previous, arrival, now);
            self.arrive(now, previous, request.link_layer_address);
        }
        self.answer(&request, HandoverCode::AcceptedUsePreviousAddress, None);
    }

    /// Answers a Handover Initiate (section 6.2.1.2), with the address where the mobile node is to use another than it named.
    fn answer(&mut self, request: &Request, code: HandoverCode, address: Option<Ipv6Addr>) {
        self.outbox.event(Event::Initiated { previous: request.previous, new: request.new, code });
        let assigned = address.filter(|_| matches!(code, HandoverCode::AcceptedAddressAssigned));
        let assigned = assigned.map(|address| HandoverAddress::new(AddressRole::NewCareOfAddress, address));
        let options: MobilityOptions = assigned.map(MobilityOption::HandoverAddress).into_iter().collect();
        let message =
            Message::HandoverAcknowledge(HandoverAcknowledge { sequence: request.sequence, code, options });
        if code.is_accepted() {
            self.outbox.counters.count_accepted();
        } else {
            self.outbox.counters.count_refusal(code.number());
        }
        self.send_to_router(request.neighbor, request.router, message, request.stamp);
    }

    /// A node announces an address of its own, without being asked (UNA; section 6.3).
    pub(super) fn handle_announcement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        source: Ipv6Addr,
        advertisement: &NeighborAdvertisement,
    ) {
        let NeighborAdvertisement { target, solicited, override_flag, router, options } = advertisement;
        let (address, station) = (*target, target_link_layer_address(options));
        // Other neighbor advertisements are not about handovers.
        let is_una = !*solicited && !*override_flag && !*router && source == address;
        let Some(station) = station.filter(|station| is_una && station.is_unicast()) else { return };
        if self.config.link(interface).is_none() || !is_unicast_routable(address) {
            return;
        }
        match self.arrivals.get(address) {
            Some(arrival) if arrival.interface != interface => {
                self.outbox.drop(DropReason::UnexpectedSource, source);
            }
            Some(arrival) if arrival.request.link_layer_address == station => {
                if !arrival.is_present() {
                    self.arrive(now, address, station);
                }
            }
            // "The combination of the NCoA ... and the Link-Layer Address ... SHOULD be used to distinguish the MN from other nodes".
            Some(_) => {
                self.outbox.drop(DropReason::UnexpectedSource, source);
                self.refuse_announcement(
                    now,
                    interface,
                    address,
                    station,
                    NaackStatus::LinkLayerAddressUnrecognized,
                );
            }
            None => self.note_announcement(now, interface, address, station),
        }
    }

    fn note_announcement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        address: Ipv6Addr,
        station: LinkLayerAddress,
    ) {
        // The mobile node told us of announces the address it wanted, and is to have another.
        let is_hers = |arrival: &&Arrival| {
            arrival.request.new == address && arrival.request.link_layer_address == station
        };
        let hers = self.arrivals.of.iter().find(|(_, arrival)| is_hers(arrival)).map(|(at, _)| *at);
        if let Some(other) = hers {
            let status = if self.config.link_of(other).is_some() {
                NaackStatus::UseSuppliedAddress
            } else {
                NaackStatus::UsePreviousAddress
            };
            return self.supply_address(now, interface, address, station, status, Some(other));
        }
        let is_on_link = self.config.link_of(address).is_some_and(|link| link.interface == interface);
        if !is_on_link {
            return;
        }
        let of_another = self.announcements.get(address).is_some_and(|(known, _)| known != station);
        if of_another || self.config.is_own(address) {
            self.outbox.drop(DropReason::DuplicateAddress, address);
            return self.refuse_announcement(now, interface, address, station, NaackStatus::ConfigureAddress);
        }
        self.announcements.note(now, address, station, interface);
    }

    /// The mobile node is there: what waits for it goes on.
    fn arrive(&mut self, now: Instant, address: Ipv6Addr, station: LinkLayerAddress) {
        let Some(arrival) = self.arrivals.of.get_mut(&address) else { return };
        arrival.phase = Phase::Present;
        let (interface, has_route) = (arrival.interface, arrival.has_host_route());
        // It is remembered for a while, for what was under way.
        let lifetime =
            if has_route { self.config.max_lifetime.duration() } else { self.config.proxy_lifetime };
        self.arrivals.deadlines.set(address, Some(now + lifetime));
        if !has_route {
            self.outbox.event(Event::Proxy { interface, address, on: false });
        }
        self.outbox.event(Event::Arrived { interface, address, link_layer_address: station });
        self.settle(now, address);
    }

    pub(super) fn expire_arrivals(&mut self, now: Instant) {
        while let Some(address) = self.arrivals.deadlines.take_due(now) {
            self.forget_arrival(now, address, false);
        }
    }

    /// It does not come, or its host route ends, or it is `superseded`.
    fn forget_arrival(&mut self, now: Instant, address: Ipv6Addr, superseded: bool) {
        let Some(arrival) = self.arrivals.remove(address) else { return };
        let interface = arrival.interface;
        match arrival.phase {
            Phase::InDoubt => self.outbox.drop(DropReason::DuplicateAddress, arrival.request.router),
            Phase::Expected => {
                if !arrival.has_host_route() {
                    self.outbox.event(Event::Proxy { interface, address, on: false });
                }
                if !superseded {
                    self.outbox.event(Event::NeverCame { address });
                }
                self.buffers.clear(address, DiscardReason::Expired);
            }
            Phase::Present if arrival.has_host_route() => {
                self.outbox.event(Event::HostRouteEnded { address });
            }
            Phase::Present => {}
        }
        self.settle(now, address);
    }

    fn refuse_announcement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        address: Ipv6Addr,
        station: LinkLayerAddress,
        status: NaackStatus,
    ) {
        self.supply_address(now, interface, address, station, status, None);
    }

    /// Tells a node that the address it has announced is not to be used: a Router Advertisement with NAACK, to that address at the very
    /// station (section 6.4.6).
    fn supply_address(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        announced: Ipv6Addr,
        station: LinkLayerAddress,
        status: NaackStatus,
        address: Option<Ipv6Addr>,
    ) {
        if !self.refusals.take(now, REFUSALS) {
            return self.outbox.counters.count_suppressed_answer();
        }
        let Some(link) = self.config.link(interface) else { return };
        let source = link.link_local;
        let advertisement = Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
            router_lifetime_secs: link.router_lifetime_secs,
            options: alloc::vec![
                NdOption::SourceLinkLayerAddress(link.link_layer_address),
                NdOption::Naack(Naack { status, address }),
            ],
            ..RouterAdvertisement::default()
        });
        let mut bytes = Vec::new();
        advertisement.emit(source, announced, &mut bytes);
        let packet = crate::v6::Transmit {
            interface: Some(interface),
            addresses: Addresses::new(source, announced),
            hop_limit: HOP_LIMIT,
            payload: TransmitPayload::Icmp(bytes),
        };
        self.outbox.transmit(Transmit { packet, link_layer_destination: Some(station) });
    }
}
