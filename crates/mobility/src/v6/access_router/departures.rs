//! The previous access router: Fast Binding Updates, what the new router is asked, and the tunnel (RFC 5568 sections 4, 5.6 and 6.2).

use alloc::collections::BTreeMap;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::Instant;
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    AcknowledgementFlags, AddressRole, BindingUpdate, FastBindingAcknowledgement, FastBindingAuthorization,
    FastBindingStatus, HandoverAcknowledge, HandoverAddress, HandoverCode, HandoverInitiate,
    HandoverLinkLayerAddress, InitiateCode, Lifetime, Message, MobilityOption, MobilityOptions, NtpTimestamp,
    SequenceNumber, UpdateFlags,
};

use super::io::Event;
use super::{AccessRouter, KnownMobileNode};
use crate::NtpTime;
use crate::deadline::Deadlines;
use crate::v6::io::DEFAULT_HOP_LIMIT;
use crate::v6::update_rate::Retransmission;
use crate::v6::{Addresses, DropReason, ReplayProtection, SecurityAssociation, TransmitPayload, Tunnel};

/// A Fast Binding Update that was found authentic and fresh, as far as it takes to answer it.
#[derive(Clone, Debug)]
struct Request {
    /// The router's address that it was sent to, which tunnels begin at.
    router: Ipv6Addr,
    /// Where it came from.
    source: Ipv6Addr,
    previous: Ipv6Addr,
    /// The new care-of address it names.
    new: Ipv6Addr,
    sequence: SequenceNumber,
    lifetime: Lifetime,
    /// For the acknowledgement.
    stamp: Option<NtpTimestamp>,
    link_layer_address: Option<LinkLayerAddress>,
}

impl Request {
    fn code(&self) -> InitiateCode {
        if self.source == self.previous { InitiateCode::FromPreviousLink } else { InitiateCode::FromNewLink }
    }
}

/// How far a handover has come.
#[derive(Clone, Debug)]
enum Phase {
    /// The new router has not answered yet.
    Initiating { number: SequenceNumber, stamps: Option<Stamps>, retransmission: Retransmission },
    /// Packets go through the tunnel.
    Forwarding { tunnel: Tunnel, accepted: Accepted },
}

/// The timestamps of a Handover Initiate that was sent several times: the first, and the last.
#[derive(Clone, Copy, Debug)]
struct Stamps {
    first: NtpTimestamp,
    last: NtpTimestamp,
}

/// What the mobile node was told.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    status: FastBindingStatus,
    /// The address to use in place of the one it named.
    other: Option<Ipv6Addr>,
}

/// A mobile node that leaves.
#[derive(Clone, Debug)]
pub(super) struct Departure {
    request: Request,
    neighbor: usize,
    phase: Phase,
    /// The number of a Handover Initiate that only has the new router wait for longer.
    renewal: Option<SequenceNumber>,
    /// That of the mobile node when it asked, whatever becomes of it.
    security: SecurityAssociation,
}

impl Departure {
    pub(super) const fn tunnel(&self) -> Option<Tunnel> {
        match self.phase {
            Phase::Forwarding { tunnel, .. } => Some(tunnel),
            Phase::Initiating { .. } => None,
        }
    }

    pub(super) const fn link_layer_address(&self) -> Option<LinkLayerAddress> {
        self.request.link_layer_address
    }

    /// Whether the mobile node has said that it is not on the old link any more.
    pub(super) fn is_gone(&self) -> bool {
        self.request.code() == InitiateCode::FromNewLink
    }
}

/// The mobile nodes that leave, by previous care-of address.
#[derive(Debug)]
pub(super) struct Departures {
    of: BTreeMap<Ipv6Addr, Departure>,
    /// Who was asked about whom, by router and number.
    asked: BTreeMap<(usize, u16), Ipv6Addr>,
    number: SequenceNumber,
    retransmissions: Deadlines<Ipv6Addr>,
    lifetimes: Deadlines<Ipv6Addr>,
}

impl Departures {
    pub(super) fn new(number: u16) -> Self {
        Self {
            of: BTreeMap::new(),
            asked: BTreeMap::new(),
            number: SequenceNumber(number),
            retransmissions: Deadlines::default(),
            lifetimes: Deadlines::default(),
        }
    }

    pub(super) fn get(&self, previous: Ipv6Addr) -> Option<&Departure> {
        self.of.get(&previous)
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn retransmit_deadline(&self) -> Option<Instant> {
        self.retransmissions.next()
    }

    pub(super) fn lifetime_deadline(&self) -> Option<Instant> {
        self.lifetimes.next()
    }

    fn remove(&mut self, previous: Ipv6Addr) -> Option<Departure> {
        let departure = self.of.remove(&previous)?;
        if let Phase::Initiating { number, .. } = departure.phase {
            self.asked.remove(&(departure.neighbor, number.0));
        }
        if let Some(number) = departure.renewal {
            self.asked.remove(&(departure.neighbor, number.0));
        }
        self.retransmissions.set(previous, None);
        self.lifetimes.set(previous, None);
        Some(departure)
    }

    /// A number that no unanswered message to this router has. There are at most as many as keys, and far fewer than numbers.
    fn next_number(&mut self, neighbor: usize) -> Option<SequenceNumber> {
        for _ in 0..=u16::MAX {
            self.number = self.number.next();
            if !self.asked.contains_key(&(neighbor, self.number.0)) {
                return Some(self.number);
            }
        }
        None
    }
}

impl AccessRouter {
    pub(super) fn handle_update(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        update: &BindingUpdate,
    ) {
        let source = addresses.source;
        let request = match self.authentic_update(addresses, bytes, update) {
            Ok(request) => request,
            Err(reason) => return self.outbox.drop(reason, source),
        };
        let previous = request.previous;
        let outcome = self.check_fresh(now, &request);
        let Some(known) = self.keys.get_mut(&previous) else { return };
        let security = known.security.clone();
        if let Err((reason, correction)) = outcome {
            self.outbox.drop(reason, source);
            if let Some(stamp) = correction {
                // The mobile node has the key and a wrong clock, or somebody has recorded it.
                if !known.refusals.allows(now) {
                    return self.outbox.counters.count_suppressed_answer();
                }
                let request = Request { stamp: Some(stamp), ..request };
                self.refuse(&request, &security, FastBindingStatus::ReasonUnspecified);
            }
            return;
        }
        // Somebody else's repetitions do not use it up.
        if !known.updates.allows(now) {
            return self.outbox.drop(DropReason::OverRation, source);
        }
        self.outbox.event(Event::UpdateReceived {
            previous,
            new: request.new,
            code: request.code(),
            lifetime: request.lifetime,
        });
        if request.lifetime.is_zero() {
            return self.take_back(now, &request, &security);
        }
        match self.neighbor_for(&request) {
            Ok(neighbor) => self.begin(now, request, security, neighbor),
            Err((reason, status)) => {
                self.outbox.drop(reason, source);
                self.refuse(&request, &security, status);
            }
        }
    }

    /// Whether an update is the mobile node's, which has the previous care-of address (section 6.2.2). What is not is dropped in silence:
    /// anybody can send it.
    fn authentic_update(
        &self,
        addresses: Addresses,
        bytes: &[u8],
        update: &BindingUpdate,
    ) -> Result<Request, DropReason> {
        let (source, router, previous) = (addresses.source, addresses.destination, addresses.real_source());
        let link = self.config.links.iter().find(|link| link.address == router);
        if !link.is_some_and(|link| link.prefix.contains(previous)) {
            return Err(DropReason::NotForUs);
        }
        let both = UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION);
        if !update.flags.contains(both) {
            return Err(DropReason::PoorlyFormed);
        }
        let known = self.keys.get(&previous).ok_or(DropReason::UnknownHomeAddress)?;
        let new = update.care_of_address(source);
        let data = update.options.fast_authorization_data().ok_or(DropReason::MissingAuthenticator)?;
        if data.spi() != known.security.spi() {
            return Err(DropReason::UnknownSpi);
        }
        if !known.security.fast_authorization(new, router).verify(bytes) {
            return Err(DropReason::BadAuthenticator);
        }
        Ok(Request {
            router,
            source,
            previous,
            new,
            sequence: update.sequence,
            lifetime: update.lifetime,
            stamp: update.options.replay_protection(),
            link_layer_address: update.options.mobile_link_layer_address(),
        })
    }

    /// Whether an authentic update is no repetition of an old one; else the timestamp that the node is told, if it can make use of one.
    fn check_fresh(
        &mut self,
        now: Instant,
        request: &Request,
    ) -> Result<(), (DropReason, Option<NtpTimestamp>)> {
        let clock = self.config.clock.at(now);
        let Some(known) = self.keys.get_mut(&request.previous) else {
            return Err((DropReason::UnknownHomeAddress, None));
        };
        let KnownMobileNode { security, latest, sequence, .. } = known;
        match security.replay() {
            ReplayProtection::Timestamps { window } => {
                let stamp = request.stamp.ok_or((DropReason::Replayed, None))?;
                let mut guard = crate::ReplayGuard::Timestamps { window, last: *latest };
                let verdict = guard.check(Identification(stamp.0), clock, &mut self.random);
                if verdict.outcome.is_err() {
                    // What somebody repeats at once is the mobile node's word still, and no wrong clock's.
                    let is_near = NtpTime::from_bits(stamp.0).is_within(window, clock);
                    let correction = NtpTimestamp(verdict.reply.0);
                    return Err((DropReason::Replayed, (!is_near).then_some(correction)));
                }
                *latest = guard.latest();
            }
            ReplayProtection::SequenceNumbers => {
                if sequence.is_some_and(|last| !request.sequence.is_after(last)) {
                    return Err((DropReason::SequenceOutOfWindow, None));
                }
                *sequence = Some(request.sequence);
            }
        }
        Ok(())
    }

    /// The router whose link the new care-of address is of (section 4: the longest prefix match; no two overlap), by which alone the
    /// mobile node can be reached (section 10: it "MUST verify" that).
    fn neighbor_for(&self, request: &Request) -> Result<usize, (DropReason, FastBindingStatus)> {
        let unusable = (DropReason::PoorlyFormed, FastBindingStatus::ReasonUnspecified);
        // From the old link the Alternate Care-of Address option is a must (section 6.2.2); without it the two are the same, and no neighbor's.
        if !is_unicast_routable(request.new) || request.link_layer_address.is_none() {
            return Err(unusable);
        }
        let (number, router) = self.config.neighbor_of(request.new).ok_or(unusable)?;
        if !router.fast_handover {
            return Err((DropReason::NotOffered, FastBindingStatus::AdministrativelyProhibited));
        }
        let is_there = request.source == request.previous || router.prefix.contains(request.source);
        if is_there { Ok(number) } else { Err(unusable) }
    }

    /// The mobile node is back on the old link (section 5.6), or wants its tunnel ended.
    fn take_back(&mut self, now: Instant, request: &Request, security: &SecurityAssociation) {
        let previous = request.previous;
        self.end_departure(previous);
        self.forget_detached(previous);
        self.settle(now, previous);
        self.outbox.counters.count_accepted();
        let accepted = Accepted { status: FastBindingStatus::Accepted, other: None };
        self.acknowledge(request, security, accepted, Lifetime::ZERO, request.source);
    }

    fn begin(&mut self, now: Instant, request: Request, security: SecurityAssociation, neighbor: usize) {
        let previous = request.previous;
        if let Some(departure) = self.departures.of.get_mut(&previous)
            && departure.neighbor == neighbor
            && departure.request.new == request.new
        {
            // Sent again: there is nothing to be found out.
            departure.request = request;
            if departure.tunnel().is_some() {
                self.confirm(now, previous);
                self.renew(now, previous);
            }
            return self.settle(now, previous);
        }
        let Some(number) = self.departures.next_number(neighbor) else {
            self.outbox.drop(DropReason::TableFull, request.source);
            return self.refuse(&request, &security, FastBindingStatus::InsufficientResources);
        };
        // It supersedes what was said before (section 5.6).
        self.end_departure(previous);
        let phase = Phase::Initiating {
            number,
            stamps: None,
            retransmission: Retransmission::begin(now, self.config.initiate_timeout, Duration::MAX),
        };
        self.departures.asked.insert((neighbor, number.0), previous);
        self.departures.of.insert(previous, Departure { request, neighbor, phase, renewal: None, security });
        self.send_initiate(now, previous);
        self.settle(now, previous);
    }

    /// Asks the new router (section 6.2.1.1).
    fn send_initiate(&mut self, now: Instant, previous: Ipv6Addr) {
        let Some(departure) = self.departures.of.get_mut(&previous) else { return };
        let Phase::Initiating { number, stamps, retransmission } = &mut departure.phase else { return };
        let router = self.config.neighbors.get(departure.neighbor);
        let stamp = router.and_then(|router| router.stamp(self.config.clock.at(now)));
        *stamps = stamp.map(|last| Stamps { first: stamps.map_or(last, |stamps| stamps.first), last });
        retransmission.sent(now);
        let (number, next) = (*number, retransmission.next);
        self.departures.retransmissions.set(previous, Some(next));
        self.initiate(previous, number, stamp);
    }

    /// A mobile node that is on the old link still, and says so again, may come later: the new router is to wait for it from now on. What
    /// it answers changes nothing.
    fn renew(&mut self, now: Instant, previous: Ipv6Addr) {
        let Some(departure) = self.departures.of.get(&previous).filter(|departure| !departure.is_gone())
        else {
            return;
        };
        let (neighbor, old) = (departure.neighbor, departure.renewal);
        if let Some(old) = old {
            self.departures.asked.remove(&(neighbor, old.0));
        }
        let number = self.departures.next_number(neighbor);
        if let Some(departure) = self.departures.of.get_mut(&previous) {
            departure.renewal = number;
        }
        let Some(number) = number else { return };
        self.departures.asked.insert((neighbor, number.0), previous);
        let router = self.config.neighbors.get(neighbor);
        let stamp = router.and_then(|router| router.stamp(self.config.clock.at(now)));
        self.initiate(previous, number, stamp);
    }

    /// Sends a Handover Initiate.
    fn initiate(&mut self, previous: Ipv6Addr, number: SequenceNumber, stamp: Option<NtpTimestamp>) {
        let Some(departure) = self.departures.of.get(&previous) else { return };
        let (request, neighbor) = (&departure.request, departure.neighbor);
        let (code, router) = (request.code(), request.router);
        let link_layer = request.link_layer_address.map(HandoverLinkLayerAddress::of_mobile_node);
        let address = |role, address| MobilityOption::HandoverAddress(HandoverAddress::new(role, address));
        let options: MobilityOptions = link_layer
            .map(MobilityOption::LinkLayerAddress)
            .into_iter()
            .chain([
                address(AddressRole::OldCareOfAddress, previous),
                address(AddressRole::NewCareOfAddress, request.new),
            ])
            .collect();
        let initiate = Message::HandoverInitiate(HandoverInitiate {
            sequence: number,
            assign_address: false,
            buffer: self.config.request_buffering && code == InitiateCode::FromPreviousLink,
            code,
            options,
        });
        self.send_to_router(neighbor, router, initiate, stamp);
    }

    pub(super) fn retransmit_initiates(&mut self, now: Instant) {
        while let Some(previous) = self.departures.retransmissions.take_due(now) {
            let Some(departure) = self.departures.of.get(&previous) else { continue };
            let Phase::Initiating { retransmission, .. } = &departure.phase else { continue };
            if retransmission.attempts > self.config.initiate_retries {
                self.fail(now, previous, FastBindingStatus::ReasonUnspecified);
            } else {
                self.send_initiate(now, previous);
            }
        }
    }

    pub(super) fn expire_departures(&mut self, now: Instant) {
        while let Some(previous) = self.departures.lifetimes.take_due(now) {
            self.end_departure(previous);
            self.settle(now, previous);
        }
    }

    /// What a new router has answered (section 6.2.1.2).
    pub(super) fn handle_acknowledge(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        acknowledge: &HandoverAcknowledge,
    ) {
        let source = addresses.source;
        let neighbor = match self.authentic_router(addresses, bytes, &acknowledge.options) {
            Ok(neighbor) => neighbor,
            Err(reason) => return self.outbox.drop(reason, source),
        };
        let asked = self.departures.asked.get(&(neighbor, acknowledge.sequence.0)).copied();
        let Some(previous) = asked else {
            return self.outbox.drop(DropReason::UnexpectedAnswer, source);
        };
        let Some(departure) = self.departures.of.get(&previous) else { return };
        let Phase::Initiating { stamps, .. } = &departure.phase else {
            // It waits for longer, or not.
            self.departures.asked.remove(&(neighbor, acknowledge.sequence.0));
            return;
        };
        // An old acknowledgement, to a message that had the same number, is no answer.
        let answers = |stamps: &Stamps| {
            let stamp = acknowledge.options.replay_protection();
            stamp.is_some_and(|stamp| (stamps.first..=stamps.last).contains(&stamp))
        };
        if !stamps.as_ref().is_none_or(answers) {
            return self.outbox.drop(DropReason::Replayed, source);
        }
        let request = &departure.request;
        if addresses.destination != request.router {
            return self.outbox.drop(DropReason::UnexpectedAnswer, source);
        }
        let given = acknowledge.options.handover_address(AddressRole::NewCareOfAddress);
        let prefix = self.config.neighbors.get(neighbor).map(|router| router.prefix);
        let is_there = |address: &Ipv6Addr| {
            is_unicast_routable(*address) && prefix.is_some_and(|prefix| prefix.contains(*address))
        };
        let given = given.filter(is_there);
        let accepted = |other: Option<Ipv6Addr>| match other {
            Some(address) if address != request.new => {
                Accepted { status: FastBindingStatus::AcceptedWithOtherAddress, other }
            }
            _ => Accepted { status: FastBindingStatus::Accepted, other: None },
        };
        let outcome = match acknowledge.code {
            // "If there is a CoA present in the HAck, the PAR MUST include it" (section 5.2).
            HandoverCode::Accepted => Ok((given.unwrap_or(request.new), accepted(given))),
            HandoverCode::AcceptedAddressInUse | HandoverCode::AcceptedAddressAssigned => match given {
                Some(address) => Ok((address, accepted(given))),
                None => Err(FastBindingStatus::ReasonUnspecified),
            },
            // The mobile node keeps its address, and the tunnel ends at the new router.
            HandoverCode::AcceptedUsePreviousAddress => Ok((source, accepted(Some(previous)))),
            HandoverCode::AdministrativelyProhibited => Err(FastBindingStatus::AdministrativelyProhibited),
            HandoverCode::InsufficientResources => Err(FastBindingStatus::InsufficientResources),
            HandoverCode::Unsolicited => {
                return self.outbox.drop(DropReason::NotOffered, source);
            }
            HandoverCode::NotAccepted | HandoverCode::Unknown(_) => Err(FastBindingStatus::ReasonUnspecified),
        };
        match outcome {
            Ok((exit, accepted)) => {
                let tunnel = Tunnel { entry: request.router, exit };
                self.forward(now, previous, tunnel, accepted);
            }
            Err(status) => self.fail(now, previous, status),
        }
    }

    /// From now on packets go through the tunnel.
    fn forward(&mut self, now: Instant, previous: Ipv6Addr, tunnel: Tunnel, accepted: Accepted) {
        let Some(departure) = self.departures.of.get_mut(&previous) else { return };
        if let Phase::Initiating { number, .. } = departure.phase {
            self.departures.asked.remove(&(departure.neighbor, number.0));
        }
        departure.phase = Phase::Forwarding { tunnel, accepted };
        self.departures.retransmissions.set(previous, None);
        self.forget_detached(previous);
        self.outbox.counters.count_accepted();
        self.outbox.event(Event::TunnelBegun { previous, tunnel });
        self.confirm(now, previous);
        self.settle(now, previous);
    }

    /// Grants the lifetime asked for last, and says so: on the old link, and where the mobile node will be (section 6.2.3).
    fn confirm(&mut self, now: Instant, previous: Ipv6Addr) {
        let Some(departure) = self.departures.of.get(&previous) else { return };
        let Phase::Forwarding { accepted, .. } = departure.phase else { return };
        let (request, security) = (departure.request.clone(), departure.security.clone());
        let lifetime = request.lifetime.min(self.config.max_lifetime);
        self.departures.lifetimes.set(previous, Some(now + lifetime.duration()));
        self.acknowledge(&request, &security, accepted, lifetime, request.source);
        let there = accepted.other.unwrap_or(request.new);
        if request.source == previous && there != previous {
            self.acknowledge(&request, &security, accepted, lifetime, there);
        }
    }

    /// Nothing comes of it: packets go to the old link.
    fn fail(&mut self, now: Instant, previous: Ipv6Addr, status: FastBindingStatus) {
        if let Some(departure) = self.departures.remove(previous) {
            self.refuse(&departure.request, &departure.security, status);
        }
        self.settle(now, previous);
    }

    pub(super) fn end_departure(&mut self, previous: Ipv6Addr) {
        let Some(departure) = self.departures.remove(previous) else { return };
        if let Some(tunnel) = departure.tunnel() {
            self.outbox.event(Event::TunnelEnded { previous, tunnel });
        }
        self.buffers.stop_release(previous);
    }

    fn refuse(&mut self, request: &Request, security: &SecurityAssociation, status: FastBindingStatus) {
        self.outbox.counters.count_refusal(status.number());
        self.outbox.event(Event::Refused { previous: request.previous, status });
        let refused = Accepted { status, other: None };
        self.acknowledge(request, security, refused, Lifetime::ZERO, request.source);
    }

    /// Sends a Fast Binding Acknowledgment to one of the mobile node's addresses (section 6.2.3).
    fn acknowledge(
        &mut self,
        request: &Request,
        security: &SecurityAssociation,
        Accepted { status, other }: Accepted,
        lifetime: Lifetime,
        destination: Ipv6Addr,
    ) {
        let options: MobilityOptions = other
            .map(MobilityOption::AlternateCareOfAddress)
            .into_iter()
            .chain(request.stamp.map(MobilityOption::ReplayProtection))
            .collect();
        let message = Message::FastBindingAcknowledgement(FastBindingAcknowledgement {
            status,
            flags: AcknowledgementFlags::default(),
            sequence: request.sequence,
            lifetime,
            options,
        });
        let authorization = security.fast_authorization(request.new, request.router);
        // A handful of options fits any Mobility Header.
        let Ok(bytes) = message.emit_fast_authorized(request.router, destination, &authorization) else {
            return;
        };
        let interface = self.config.link_of(destination).map(|link| link.interface);
        self.outbox.packet(crate::v6::Transmit {
            interface,
            addresses: Addresses::new(request.router, destination),
            hop_limit: DEFAULT_HOP_LIMIT,
            payload: TransmitPayload::Mobility(bytes),
        });
    }
}

impl SecurityAssociation {
    /// How the messages of mobile node and access router about this new care-of address are authorized (RFC 5568 section 6.4.5).
    pub(in crate::v6) fn fast_authorization(
        &self,
        care_of_address: Ipv6Addr,
        access_router: Ipv6Addr,
    ) -> FastBindingAuthorization<'_> {
        FastBindingAuthorization {
            spi: self.spi(),
            algorithm: self.algorithm(),
            key: self.key(),
            care_of_address,
            access_router,
        }
    }
}
