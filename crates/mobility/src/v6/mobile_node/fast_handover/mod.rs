//! Fast handovers (RFC 5568): the mobile node's part.
//!
//! [`FastHandover`] runs beside a [`super::MobileNode`], which registers as ever: it finds out what is behind access points, has the
//! previous access router send packets on, and announces the node on the new link. The owner says when ([`FastHandover::discover`],
//! [`FastHandover::prepare`], [`FastHandover::attached`]) and gives the `MobileNode` the new care-of address once it is there
//! ([`Event::Attached`]); the packets of the previous one take [`FastHandover::reverse_tunnel`] until
//! [`FastHandover::finish`].
//!
//! Trust. What routers tell of their neighbors, and that an address is not to be used (NAACK), is neighbor discovery: nobody vouches for it
//! (RFC 5568 section 10). It is taken on the link that the node is on, from link-local addresses, while it is asked for or waited for,
//! and never says more than where packets of this node are sent on to. Acknowledgments carry the authenticator of the previous access
//! router.
//!
//! Left out: joining multicast groups and Duplicate Address Detection on the new link, which neighbor discovery does (section 4); DHCP
//! (PrRtAdv code 5); the new router's address in place of a care-of address (NAACK status 3), from which no update could be sent. There is
//! one handover at a time: who moves on before [`FastHandover::finish`] no longer takes packets out of the tunnel before (section 5.6).

mod io;
mod neighborhood;
mod update;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{
    HOP_LIMIT, Icmpv6Message, IpFields, LinkLayerAddress, NdOption, NeighborAdvertisement,
};
use careof_wire::ipv6::ALL_NODES;
use careof_wire::mip6::{Message, SequenceNumber};

pub use io::{AccessPoint, CurrentRouter, Event, Failure, FastHandoverConfig, RouterInfo, Wake};

use neighborhood::Question;
use update::Sent;

use crate::deadline::earliest;
use crate::replay::IdentificationSource;
use crate::v6::update_rate::{Retransmission, UpdateRate};
use crate::v6::{Addresses, Counters, DropReason, Input, Transmit, TransmitPayload, Tunnel};
use crate::{ConfigError, InterfaceId, WallClock};

type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

/// Where the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the link of the previous router.
    Previous,
    /// On the new link, announced there at this time.
    New { interface: InterfaceId, announced: Instant },
}

/// A handover.
#[derive(Clone, Debug)]
struct Handover {
    /// The router that the node comes from.
    from: CurrentRouter,
    to: Option<RouterInfo>,
    /// The new care-of address; the previous one when the node keeps or takes it back.
    new: Ipv6Addr,
    place: Place,
    /// Going back: the tunnel is to end.
    back: bool,
    sent: Option<Sent>,
    /// Set while an acknowledgment is wanted.
    retransmission: Option<Retransmission>,
    /// Set while the tunnel is there: when it ends, and the other end of it.
    tunnel: Option<(Instant, Tunnel)>,
    refusals: u32,
}

/// The fast handovers of a mobile node.
///
/// A sans-IO state machine: after any call of a `handle_*` method or of a command the owner polls
/// [`FastHandover::poll_transmit`] and [`FastHandover::poll_event`] until they return `None`, and then asks
/// [`FastHandover::next_timeout`] when to call [`FastHandover::handle_timeout`]. Time never goes backwards.
#[derive(Debug)]
pub struct FastHandover {
    config: FastHandoverConfig,
    current: Option<CurrentRouter>,
    access_points: BTreeMap<LinkLayerAddress, AccessPoint>,
    /// The order in which they were told.
    told: Vec<LinkLayerAddress>,
    question: Option<Question>,
    solicitations: UpdateRate,
    handover: Option<Handover>,
    sequence: SequenceNumber,
    timestamps: IdentificationSource,
    random: Randomness,
    outbox: Outbox,
}

impl FastHandover {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(config: FastHandoverConfig, random: impl Into<Randomness>) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = random.into();
        Ok(Self {
            config,
            current: None,
            access_points: BTreeMap::new(),
            told: Vec::new(),
            question: None,
            solicitations: UpdateRate::default(),
            handover: None,
            sequence: SequenceNumber((random.next_u64() >> 48) as u16),
            timestamps: IdentificationSource::new(crate::ReplayProtection::TIMESTAMPS),
            random,
            outbox: Outbox::default(),
        })
    }

    /// Sets the node's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// The node is attached to this router, and has this care-of address there: handovers go from here. What the router before had told
    /// is forgotten; a handover from it goes on.
    pub fn set_current(&mut self, now: Instant, router: CurrentRouter) {
        self.outbox.called_at(now);
        if self.current.as_ref().is_none_or(|current| current.address != router.address) {
            self.access_points.clear();
            self.told.clear();
            self.question = None;
        }
        self.current = Some(router);
    }

    /// Has the current router send packets on to where the node will be behind `access_point` (predictive). Gives `false`, and does
    /// nothing, where the node does not know of an access router there.
    pub fn prepare(&mut self, now: Instant, access_point: LinkLayerAddress) -> bool {
        self.outbox.called_at(now);
        let new = self.prospective(access_point);
        self.prepare_as(now, access_point, new)
    }

    fn prepare_as(&mut self, now: Instant, access_point: LinkLayerAddress, new: Option<Ipv6Addr>) -> bool {
        let (Some(AccessPoint::Router(info)), Some(new)) = (self.access_point(access_point), new) else {
            return false;
        };
        let Some(from) = self.current.clone() else { return false };
        self.begin(now, from, Some(info), new, Place::Previous);
        true
    }

    fn begin(
        &mut self,
        now: Instant,
        from: CurrentRouter,
        to: Option<RouterInfo>,
        new: Ipv6Addr,
        place: Place,
    ) {
        self.handover = Some(Handover {
            from,
            to,
            new,
            place,
            back: false,
            sent: None,
            retransmission: Some(self.retransmission(now)),
            tunnel: None,
            refusals: 0,
        });
        self.drive_update(now);
    }

    fn retransmission(&self, now: Instant) -> Retransmission {
        Retransmission::begin(now, self.config.update_timeout, Duration::MAX)
    }

    /// The link layer says that the node is attached to `access_point` through `interface`. Behind it is the router that the handover was
    /// prepared for, or another that is known: the node announces itself (UNA), and where nobody has acknowledged its update it sends one
    /// from there (reactive). Gives `false`, and does nothing, where nothing is known of the access point: the node forms an address, and
    /// [`FastHandover::configured`] goes on.
    pub fn attached(&mut self, now: Instant, interface: InterfaceId, access_point: LinkLayerAddress) -> bool {
        self.outbox.called_at(now);
        let Some(AccessPoint::Router(info)) = self.access_point(access_point) else { return false };
        let Some(new) = self.prospective(access_point) else { return false };
        let prepared = self.handover.as_ref().filter(|handover| !handover.back && handover.to == Some(info));
        let new = prepared.map_or(new, |handover| handover.new);
        self.arrive(now, interface, info, new);
        true
    }

    /// The node has formed a care-of address of its own at a router of the new link, of which nothing was known, or which has refused the
    /// address before.
    pub fn configured(&mut self, now: Instant, interface: InterfaceId, router: RouterInfo, new: Ipv6Addr) {
        self.outbox.called_at(now);
        self.arrive(now, interface, router, new);
    }

    fn arrive(&mut self, now: Instant, interface: InterfaceId, router: RouterInfo, new: Ipv6Addr) {
        let place = Place::New { interface, announced: now };
        self.announce(interface, new);
        self.outbox.event(Event::Attached { interface, new, router });
        match &mut self.handover {
            // Prepared, and acknowledged: nothing more to be said.
            Some(handover) if !handover.back && handover.to == Some(router) && handover.new == new => {
                handover.place = place;
                if handover.tunnel.is_none() {
                    let retransmission = self.retransmission(now);
                    if let Some(handover) = &mut self.handover {
                        handover.retransmission = Some(retransmission);
                    }
                    self.drive_update(now);
                }
            }
            _ => {
                let from = self.handover.as_ref().map(|handover| handover.from.clone());
                let Some(from) = self.current.clone().or(from) else { return };
                self.begin(now, from, Some(router), new, place);
            }
        }
    }

    /// The node is on the link of the previous router again: it has the tunnel ended (section 5.6).
    pub fn returned(&mut self, now: Instant) {
        self.outbox.called_at(now);
        let retransmission = self.retransmission(now);
        let Some(handover) = &mut self.handover else { return };
        handover.back = true;
        handover.place = Place::Previous;
        handover.new = handover.from.care_of;
        handover.tunnel = None;
        handover.retransmission = Some(retransmission);
        self.drive_update(now);
    }

    /// Home agent and correspondent nodes know the new care-of address: the tunnel is not used any longer, and ends by its lifetime.
    pub fn finish(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.handover = None;
    }

    /// The tunnel through which the node sends packets from its previous care-of address, `source`, and receives those for it; `None`
    /// where it sends as ever. It is there from when the update was sent, acknowledged or not ([`FastHandover::is_prepared`]): the previous
    /// router drops what comes too early (section 4), and the acknowledgment may stand behind what it has sent on.
    #[must_use]
    pub fn reverse_tunnel(&self, source: Ipv6Addr) -> Option<Tunnel> {
        let handover = self.handover.as_ref()?;
        let acknowledged = handover.tunnel.map(|(_, tunnel)| tunnel);
        let asked_for = || {
            let sent = handover.sent?;
            Some(Tunnel { entry: handover.from.address, exit: sent.care_of })
        };
        let tunnel = acknowledged.or_else(asked_for)?;
        let is_there = matches!(handover.place, Place::New { .. });
        // A node that keeps its previous address has the new router do that.
        let keeps = handover.new == handover.from.care_of;
        let Tunnel { entry, exit } = tunnel;
        (is_there && !keeps && source == handover.from.care_of).then_some(Tunnel { entry: exit, exit: entry })
    }

    /// Whether a packet that came in a tunnel from `tunnel_source` is taken out of it: the previous router sends it on.
    #[must_use]
    pub fn accepts_tunnel_from(&self, tunnel_source: Ipv6Addr) -> bool {
        let from = self.handover.as_ref().map(|handover| (handover.from.address, handover.back));
        from.is_some_and(|(address, back)| address == tunnel_source && !back)
    }

    /// Whether the previous router has acknowledged that it sends packets on.
    #[must_use]
    pub fn is_prepared(&self) -> bool {
        self.handover.as_ref().is_some_and(|handover| handover.tunnel.is_some())
    }

    /// The new care-of address of the handover under way.
    #[must_use]
    pub fn new_care_of(&self) -> Option<Ipv6Addr> {
        self.handover.as_ref().map(|handover| handover.new)
    }

    /// What was received, sent and dropped.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    /// When to call [`FastHandover::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let question = self.question.as_ref().map(|question| question.retransmission.next);
        let handover = self.handover.as_ref();
        let update = handover.and_then(|handover| Some(handover.retransmission?.next));
        let tunnel = handover.and_then(|handover| Some(handover.tunnel?.0));
        [(question, Wake::SolicitationDue), (update, Wake::UpdateDue), (tunnel, Wake::TunnelLifetime)]
            .into_iter()
            .fold(None, |next, (at, wake)| earliest(next, at.map(|at| (at, wake))))
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.drive_question(now);
        self.drive_update(now);
        if self.handover.as_ref().is_some_and(|handover| handover.tunnel.is_some_and(|(end, _)| end <= now)) {
            self.handover = None;
            self.outbox.event(Event::TunnelEnded);
        }
    }

    /// Takes something in: Mobility Headers and ICMPv6 messages of this protocol. What is neighbor discovery the owner gives to that as
    /// well.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { addresses, message: bytes, .. } => {
                let source = addresses.source;
                self.outbox.count_received();
                match Message::parse(addresses.real_source(), addresses.real_destination(), bytes) {
                    Ok(Message::FastBindingAcknowledgement(acknowledgement)) => {
                        self.handle_acknowledgement(now, addresses, bytes, &acknowledgement);
                    }
                    Ok(_) => self.drop(DropReason::NotForUs, source),
                    Err(_) => self.drop(DropReason::Malformed, source),
                }
            }
            Input::Icmp { interface, addresses, hop_limit, message } => {
                let (source, destination) = (addresses.source, addresses.destination);
                let Ok(message) = Icmpv6Message::parse(source, destination, message) else {
                    return self.drop(DropReason::Malformed, source);
                };
                let ip = IpFields { source, destination, hop_limit };
                match &message {
                    Icmpv6Message::PrRtAdv(_) | Icmpv6Message::RouterAdvertisement(_)
                        if message.check(&ip).is_err() =>
                    {
                        self.drop(DropReason::NotValid, source);
                    }
                    Icmpv6Message::PrRtAdv(advertisement) => {
                        self.outbox.count_received();
                        self.handle_proxy_advertisement(now, interface, source, advertisement);
                    }
                    Icmpv6Message::RouterAdvertisement(advertisement) => {
                        self.handle_refusal(now, interface, &ip, advertisement);
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn drop(&mut self, reason: DropReason, source: Ipv6Addr) {
        self.outbox.counters.count_drop(reason);
        self.outbox.event(Event::Dropped { reason, source });
    }

    fn send_icmp(
        &mut self,
        interface: InterfaceId,
        source: Ipv6Addr,
        destination: Ipv6Addr,
        message: &Icmpv6Message,
    ) {
        let mut bytes = Vec::new();
        message.emit(source, destination, &mut bytes);
        self.outbox.transmit(Transmit {
            interface: Some(interface),
            addresses: Addresses::new(source, destination),
            hop_limit: HOP_LIMIT,
            payload: TransmitPayload::Icmp(bytes),
        });
    }

    /// Says on the new link that the address is here (UNA; section 6.3).
    fn announce(&mut self, interface: InterfaceId, new: Ipv6Addr) {
        let message = Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
            router: false,
            solicited: false,
            override_flag: false,
            target: new,
            options: alloc::vec![NdOption::TargetLinkLayerAddress(self.config.link_layer_address)],
        });
        self.send_icmp(interface, new, ALL_NODES, &message);
    }
}
