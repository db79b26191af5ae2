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

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::{
    AddressRole, HOP_LIMIT, HandoverLinkLayerAddress, Icmpv6Message, IpFields, LinkLayerAddress,
    LinkLayerRole, Naack, NaackStatus, NdOption, NeighborAdvertisement, PrRtAdv, PrRtAdvCode,
    RouterAdvertisement, RtSolPr,
};
use careof_wire::ipv6::{ALL_NODES, is_unicast_routable};
use careof_wire::mip4::Identification;
use careof_wire::mip6::{
    BindingUpdate, FastBindingAcknowledgement, FastBindingStatus, Lifetime, Message, MobilityOption,
    MobilityOptions, NtpTimestamp, SequenceNumber, UpdateFlags,
};

use crate::deadline::earliest;
use crate::replay::IdentificationSource;
use crate::v6::io::DEFAULT_HOP_LIMIT;
use crate::v6::update_rate::{Retransmission, UpdateRate};
use crate::v6::{
    Addresses, Counters, DropReason, Input, Prefix, ReplayProtection, SecurityAssociation, Transmit,
    TransmitPayload, Tunnel,
};
use crate::{ConfigError, InterfaceId, WallClock};

/// Access points that are remembered; the oldest make room.
const MAX_ACCESS_POINTS: usize = 64;
/// How long after an announcement (UNA) a refusal (NAACK) is believed.
const REFUSAL_WAIT: Duration = Duration::from_secs(3);
/// How often a handover follows refusals of its address.
const MAX_REFUSALS: u32 = 3;

/// The configuration of a [`FastHandover`] (RFC 5568 section 9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FastHandoverConfig {
    /// The node's station, the same on all its links.
    pub link_layer_address: LinkLayerAddress,
    /// How often an RtSolPr is sent again (RTSOLPR_RETRIES).
    pub solicitation_retries: u32,
    /// How often a Fast Binding Update is sent again on a link (FBU_RETRIES).
    pub update_retries: u32,
    /// The first wait for a Proxy Router Advertisement, doubled each time (section 6.1.1: twice the round trip time, or 100 ms).
    pub solicitation_timeout: Duration,
    /// The first wait for a Fast Binding Acknowledgment, doubled each time; a Handover Initiate and its answer have to fit in.
    pub update_timeout: Duration,
    /// The lifetime of the tunnel that is asked for: "of the order of tens of seconds" (section 5.6).
    pub lifetime: Lifetime,
    /// The node's time of day.
    pub clock: WallClock,
}

impl FastHandoverConfig {
    /// RFC 5568's constants; 400 ms for an acknowledgment, and tunnels of 20 s.
    #[must_use]
    pub fn new(link_layer_address: LinkLayerAddress) -> Self {
        Self {
            link_layer_address,
            solicitation_retries: 3,
            update_retries: 3,
            solicitation_timeout: Duration::from_millis(100),
            update_timeout: Duration::from_millis(400),
            lifetime: Lifetime::from_units(5),
            clock: WallClock::default(),
        }
    }

    fn check(&self) -> Result<(), ConfigError> {
        let in_range = |what, found: u64, low, high| {
            let fits = (low..=high).contains(&found);
            if fits { Ok(()) } else { Err(ConfigError::OutOfRange { what, found, low, high }) }
        };
        let millis = |time: Duration| time.as_millis().try_into().unwrap_or(u64::MAX);
        let (solicitation, update) = (millis(self.solicitation_timeout), millis(self.update_timeout));
        in_range("the wait for a Proxy Router Advertisement in milliseconds", solicitation, 1, 60_000)?;
        in_range("the wait for a Fast Binding Acknowledgment in milliseconds", update, 1, 60_000)?;
        in_range("the number of RtSolPr", self.solicitation_retries.into(), 0, 16)?;
        in_range("the number of Fast Binding Updates", self.update_retries.into(), 0, 16)?;
        let lifetime = self.lifetime.as_units().into();
        in_range("the lifetime of the tunnel in units of 4 s", lifetime, 1, u16::MAX.into())
    }
}

/// The access router that the node is attached to, and what they have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CurrentRouter {
    /// The interface to its link.
    pub interface: InterfaceId,
    /// Its global address, at which tunnels begin.
    pub address: Ipv6Addr,
    /// Its link-local address.
    pub link_local: Ipv6Addr,
    /// The node's care-of address on its link: the previous one of a handover.
    pub care_of: Ipv6Addr,
    /// Their key (RFC 5269, or by configuration).
    pub security: SecurityAssociation,
}

/// What an access router has told of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RouterInfo {
    /// Its global address.
    pub address: Ipv6Addr,
    /// Its station, where it was told.
    pub link_layer_address: Option<LinkLayerAddress>,
    /// The prefix of its link.
    pub prefix: Prefix,
}

/// What is known of an access point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessPoint {
    /// Behind it is another access router.
    Router(RouterInfo),
    /// It is of the same link: no care-of address changes.
    SameLink,
    /// The current router knows nothing of it: the Fast Binding Update is to be sent from the new link.
    Unknown,
    /// Its router does no fast handovers.
    NoFastHandover,
}

/// Why there is no fast handover, or no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failure {
    /// The current router has not answered: it does no fast handovers (section 5.1).
    NoAdvertisement,
    /// The previous router has not acknowledged.
    NoAcknowledgment,
    /// It has refused.
    Refused(FastBindingStatus),
    /// The new router does not accept the address, and gives no other: the node forms one (NAACK status 1, 3 or 128). With
    /// [`FastHandover::configured`] it goes on.
    AddressRefused(NaackStatus),
}

/// Something happened that the owner may act on or write down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The current router has told of an access point.
    Learned {
        /// Which.
        access_point: LinkLayerAddress,
        /// What.
        known: AccessPoint,
    },
    /// The network wants the node to go to this access point at once (section 3.3). The update has been sent.
    Triggered {
        /// Which.
        access_point: LinkLayerAddress,
    },
    /// A Fast Binding Update was sent; `attempt` counts from 1 on each link.
    UpdateSent {
        /// The new care-of address.
        new: Ipv6Addr,
        /// Which try this is.
        attempt: u32,
    },
    /// The previous router sends packets on. If the node is on its link still, it may go now.
    Prepared {
        /// The new care-of address; the previous one where the node keeps it.
        new: Ipv6Addr,
    },
    /// The node has announced itself on the new link: this is its address there.
    Attached {
        /// The interface.
        interface: InterfaceId,
        /// The new care-of address.
        new: Ipv6Addr,
        /// The new router.
        router: RouterInfo,
    },
    /// The new router wants it to use another address: the one in [`Event::Attached`] is none of the node's.
    AddressReplaced {
        /// The address not to be used.
        old: Ipv6Addr,
        /// The one to use; the previous care-of address where the node keeps that.
        new: Ipv6Addr,
    },
    /// The previous router has ended the tunnel: the node is back.
    Returned,
    /// The tunnel from the previous router has ended with its lifetime.
    TunnelEnded,
    /// There is no fast handover, and the node registers as ever.
    Failed(Failure),
    /// A message had no effect.
    Dropped {
        /// Why.
        reason: DropReason,
        /// The source address of its IPv6 header.
        source: Ipv6Addr,
    },
}

/// Why it wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// An RtSolPr is due.
    SolicitationDue,
    /// A Fast Binding Update is due.
    UpdateDue,
    /// The lifetime of the tunnel ends.
    TunnelLifetime,
}

type Outbox = crate::outbox::Outbox<Transmit, Event, Counters>;

/// A question about access points that has had no answer.
#[derive(Clone, Debug)]
struct Question {
    identifier: u16,
    access_points: Vec<LinkLayerAddress>,
    retransmission: Retransmission,
}

/// Where the node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// On the link of the previous router.
    Previous,
    /// On the new link, announced there at this time.
    New { interface: InterfaceId, announced: Instant },
}

/// A Fast Binding Update that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    sequence: SequenceNumber,
    stamp: Option<NtpTimestamp>,
    /// The care-of address that the authenticator covers.
    care_of: Ipv6Addr,
    lifetime: Lifetime,
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

    /// Asks the current router what is behind these access points; of none, behind all nearby. It answers by [`Event::Learned`].
    pub fn discover(&mut self, now: Instant, access_points: &[LinkLayerAddress]) {
        self.outbox.called_at(now);
        if self.current.is_none() {
            return;
        }
        let identifier = (self.random.next_u64() >> 48) as u16;
        let access_points = access_points.iter().copied().take(MAX_ACCESS_POINTS).collect();
        let retransmission = Retransmission::begin(
            self.solicitations.earliest(now),
            self.config.solicitation_timeout,
            Duration::MAX,
        );
        self.question = Some(Question { identifier, access_points, retransmission });
        self.drive_question(now);
    }

    /// What is known of an access point.
    #[must_use]
    pub fn access_point(&self, access_point: LinkLayerAddress) -> Option<AccessPoint> {
        self.access_points.get(&access_point).copied()
    }

    /// The new care-of address behind an access point: its prefix with the interface identifier of the present one.
    #[must_use]
    pub fn prospective(&self, access_point: LinkLayerAddress) -> Option<Ipv6Addr> {
        let Some(AccessPoint::Router(info)) = self.access_point(access_point) else { return None };
        Some(info.prefix.with_interface_of(self.current.as_ref()?.care_of))
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
    /// where it sends as ever.
    #[must_use]
    pub fn reverse_tunnel(&self, source: Ipv6Addr) -> Option<Tunnel> {
        let handover = self.handover.as_ref()?;
        let (_, tunnel) = handover.tunnel?;
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

    /// Sends the question, again if need be (section 6.1.1).
    fn drive_question(&mut self, now: Instant) {
        let Some(current) = &self.current else { return };
        let (interface, source, destination) = (current.interface, current.care_of, current.link_local);
        let Some(question) = self.question.as_mut().filter(|question| question.retransmission.next <= now)
        else {
            return;
        };
        if question.retransmission.attempts > self.config.solicitation_retries {
            self.question = None;
            return self.outbox.event(Event::Failed(Failure::NoAdvertisement));
        }
        let earliest = self.solicitations.earliest(now);
        if earliest > now {
            // MAX_RTSOLPR_RATE.
            question.retransmission.next = earliest;
            return;
        }
        self.solicitations.spend(now);
        question.retransmission.sent(now);
        let own =
            HandoverLinkLayerAddress { role: LinkLayerRole::Source, address: self.config.link_layer_address };
        let mut asked: Vec<HandoverLinkLayerAddress> = question
            .access_points
            .iter()
            .map(|address| HandoverLinkLayerAddress {
                role: LinkLayerRole::NewAccessPoint,
                address: *address,
            })
            .collect();
        if asked.is_empty() {
            asked.push(HandoverLinkLayerAddress::WILDCARD);
        }
        let options = core::iter::once(own).chain(asked).map(NdOption::HandoverLinkLayerAddress).collect();
        let message = Icmpv6Message::RtSolPr(RtSolPr { identifier: question.identifier, options });
        self.send_icmp(interface, source, destination, &message);
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

    fn handle_proxy_advertisement(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        source: Ipv6Addr,
        advertisement: &PrRtAdv,
    ) {
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|current| current.interface == interface && current.link_local == source);
        if !is_current {
            return self.drop(DropReason::UnexpectedSource, source);
        }
        let asked =
            self.question.as_ref().is_some_and(|question| question.identifier == advertisement.identifier);
        let unsolicited =
            matches!(advertisement.code, PrRtAdvCode::HandoverTrigger | PrRtAdvCode::Unsolicited)
                && advertisement.identifier == 0;
        match advertisement.code {
            PrRtAdvCode::UseDhcp | PrRtAdvCode::Unknown(_) => {
                return self.drop(DropReason::NotOffered, source);
            }
            _ if !asked && !unsolicited => return self.drop(DropReason::UnexpectedAnswer, source),
            _ => {}
        }
        if asked {
            self.question = None;
        }
        let (tuples, given) = tuples(&advertisement.options);
        for (access_point, known) in &tuples {
            self.learn(*access_point, *known);
        }
        if let (PrRtAdvCode::HandoverTrigger, Some((access_point, _))) = (advertisement.code, tuples.first())
        {
            // "If a PrRtAdv message carries an NCoA, the MN MUST use it" (section 5.2).
            let new = given.or_else(|| self.prospective(*access_point));
            if self.prepare_as(now, *access_point, new) {
                self.outbox.event(Event::Triggered { access_point: *access_point });
            }
        }
    }

    fn learn(&mut self, access_point: LinkLayerAddress, known: AccessPoint) {
        if self.access_points.insert(access_point, known).is_none() {
            self.told.push(access_point);
            if self.told.len() > MAX_ACCESS_POINTS {
                let oldest = self.told.remove(0);
                self.access_points.remove(&oldest);
            }
        }
        self.outbox.event(Event::Learned { access_point, known });
    }

    /// Sends the update, again if need be (section 6.2.2).
    fn drive_update(&mut self, now: Instant) {
        let Some(handover) = &self.handover else { return };
        let Some(retransmission) = handover.retransmission.filter(|due| due.next <= now) else { return };
        if retransmission.attempts > self.config.update_retries {
            if handover.place == Place::Previous && !handover.back {
                // It may be heard from the new link.
                if let Some(handover) = &mut self.handover {
                    handover.retransmission = None;
                }
            } else {
                self.handover = None;
            }
            return self.outbox.event(Event::Failed(Failure::NoAcknowledgment));
        }
        self.send_update(now);
    }

    fn send_update(&mut self, now: Instant) {
        let Some(handover) = &self.handover else { return };
        let from = handover.from.clone();
        let (new, place, back) = (handover.new, handover.place, handover.back);
        self.sequence = self.sequence.next();
        let stamps = matches!(from.security.replay(), ReplayProtection::Timestamps { .. });
        let stamp =
            stamps.then(|| NtpTimestamp(self.timestamps.next(now, self.config.clock, &mut self.random).0));
        let lifetime = if back { Lifetime::ZERO } else { self.config.lifetime };
        let (interface, addresses) = match place {
            Place::Previous => (from.interface, Addresses::new(from.care_of, from.address)),
            // A node that keeps its previous address says nothing from the new link.
            Place::New { interface, .. } => (interface, Addresses::new(new, from.address)),
        };
        let addresses = addresses.with_home_address(from.care_of);
        let link_layer = HandoverLinkLayerAddress::of_mobile_node(self.config.link_layer_address);
        let mut options = MobilityOptions::new().with(MobilityOption::LinkLayerAddress(link_layer));
        if !back {
            options.push(MobilityOption::AlternateCareOfAddress(new));
        }
        if let Some(stamp) = stamp {
            options.push(MobilityOption::ReplayProtection(stamp));
        }
        let sequence = self.sequence;
        let message = Message::FastBindingUpdate(BindingUpdate {
            sequence,
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
            lifetime,
            options,
        });
        let authorization = from.security.fast_authorization(new, from.address);
        // A handful of options fits any Mobility Header.
        let Ok(bytes) = message.emit_fast_authorized(from.care_of, from.address, &authorization) else {
            return;
        };
        let mut attempt = 0;
        if let Some(handover) = &mut self.handover {
            handover.sent = Some(Sent { sequence, stamp, care_of: new, lifetime });
            if let Some(retransmission) = &mut handover.retransmission {
                retransmission.sent(now);
                attempt = retransmission.attempts;
            }
        }
        self.outbox.transmit(Transmit {
            interface: Some(interface),
            addresses,
            hop_limit: DEFAULT_HOP_LIMIT,
            payload: TransmitPayload::Mobility(bytes),
        });
        self.outbox.event(Event::UpdateSent { new, attempt });
    }

    fn handle_acknowledgement(
        &mut self,
        now: Instant,
        addresses: Addresses,
        bytes: &[u8],
        acknowledgement: &FastBindingAcknowledgement,
    ) {
        let source = addresses.source;
        let Some(handover) = &mut self.handover else {
            return self.drop(DropReason::UnexpectedAnswer, source);
        };
        let Some(sent) = handover.sent.filter(|sent| sent.sequence == acknowledgement.sequence) else {
            return self.drop(DropReason::UnexpectedAnswer, source);
        };
        if source != handover.from.address {
            return self.drop(DropReason::UnexpectedSource, source);
        }
        let security = &handover.from.security;
        let Some(data) = acknowledgement.options.fast_authorization_data() else {
            return self.drop(DropReason::MissingAuthenticator, source);
        };
        if data.spi() != security.spi() {
            return self.drop(DropReason::UnknownSpi, source);
        }
        if !security.fast_authorization(sent.care_of, handover.from.address).verify(bytes) {
            return self.drop(DropReason::BadAuthenticator, source);
        }
        let told = acknowledgement.options.replay_protection();
        if !acknowledgement.status.is_accepted() && told != sent.stamp {
            // The clocks differ, and this is the router's.
            if let (Some(sent), Some(told)) = (sent.stamp, told)
                && sent.low() == told.low()
            {
                self.timestamps.resynchronize(Identification(sent.0), Identification(told.0));
                return self.send_update(now);
            }
            return self.drop(DropReason::Replayed, source);
        }
        if told != sent.stamp {
            return self.drop(DropReason::Replayed, source);
        }
        if handover.retransmission.is_none() && handover.tunnel.is_some() {
            // The one that was sent to the other address.
            return;
        }
        handover.retransmission = None;
        if !acknowledgement.status.is_accepted() {
            self.handover = None;
            self.outbox.counters.count_refusal(acknowledgement.status.number());
            return self.outbox.event(Event::Failed(Failure::Refused(acknowledgement.status)));
        }
        self.outbox.counters.count_accepted();
        if sent.lifetime.is_zero() {
            self.handover = None;
            return self.outbox.event(Event::Returned);
        }
        let other = acknowledgement.options.alternate_care_of_address();
        let other = other.filter(|address| {
            acknowledgement.status == FastBindingStatus::AcceptedWithOtherAddress
                && is_unicast_routable(*address)
        });
        let new = other.unwrap_or(sent.care_of);
        let end = now + acknowledgement.lifetime.min(sent.lifetime).duration();
        handover.tunnel = Some((end, Tunnel { entry: handover.from.address, exit: new }));
        let old = core::mem::replace(&mut handover.new, new);
        let is_there = matches!(handover.place, Place::New { .. });
        self.outbox.event(Event::Prepared { new });
        if is_there && old != new {
            self.outbox.event(Event::AddressReplaced { old, new });
        }
    }

    /// The new router says that the announced address is not to be used (section 6.4.6).
    fn handle_refusal(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        ip: &IpFields,
        advertisement: &RouterAdvertisement,
    ) {
        let naack = advertisement.options.iter().find_map(|option| match option {
            NdOption::Naack(naack) => Some(*naack),
            _ => None,
        });
        let Some(Naack { status, address }) = naack else { return };
        self.outbox.count_received();
        let Some(handover) = &mut self.handover else {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        };
        let Place::New { interface: place, announced } = handover.place else {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        };
        let is_expected = place == interface
            && ip.destination == handover.new
            && now <= announced + REFUSAL_WAIT
            && handover.refusals < MAX_REFUSALS;
        if !is_expected {
            return self.drop(DropReason::UnexpectedAnswer, ip.source);
        }
        handover.refusals += 1;
        let old = handover.new;
        let router = handover.to;
        let of_link = |address: &Ipv6Addr| {
            is_unicast_routable(*address) && router.is_some_and(|router| router.prefix.contains(*address))
        };
        let supplied = match status {
            NaackStatus::UseSuppliedAddress => address.filter(of_link),
            NaackStatus::UsePreviousAddress => {
                // "in which case the MN MUST NOT send any more FBUs" (section 4).
                let new = handover.from.care_of;
                handover.new = new;
                handover.retransmission = None;
                self.announce(interface, new);
                return self.outbox.event(Event::AddressReplaced { old, new });
            }
            _ => None,
        };
        let Some(new) = supplied else {
            handover.retransmission = None;
            return self.outbox.event(Event::Failed(Failure::AddressRefused(status)));
        };
        handover.new = new;
        // "it MUST use it and send an FBU using the new CoA" (section 4); what the previous router sends on already leads there when it is
        // this router that has assigned the address.
        let leads_there = handover.tunnel.is_some_and(|(_, tunnel)| tunnel.exit == new);
        let retransmission = Retransmission::begin(now, self.config.update_timeout, Duration::MAX);
        self.announce(interface, new);
        self.outbox.event(Event::AddressReplaced { old, new });
        if let Some(handover) = &mut self.handover
            && !leads_there
        {
            handover.tunnel = None;
            handover.retransmission = Some(retransmission);
            self.drive_update(now);
        }
    }
}

/// What is said of each access point, and the new care-of address where one is given (section 6.1.2). What follows an access point is about
/// its router, up to the next.
fn tuples(options: &[NdOption]) -> (Vec<(LinkLayerAddress, AccessPoint)>, Option<Ipv6Addr>) {
    #[derive(Default)]
    struct Told {
        station: Option<LinkLayerAddress>,
        address: Option<Ipv6Addr>,
        prefix: Option<Prefix>,
    }
    fn end(of: Option<LinkLayerAddress>, told: &Told, tuples: &mut Vec<(LinkLayerAddress, AccessPoint)>) {
        let (Some(access_point), Some(address)) = (of, told.address) else { return };
        // "when this prefix is the same as what is used in the New Router's IP Address option, the Prefix Information option need not be
        // present".
        let prefix = told.prefix.unwrap_or(Prefix::new(address, 64));
        let info = RouterInfo { address, link_layer_address: told.station, prefix };
        tuples.push((access_point, AccessPoint::Router(info)));
    }
    let (mut all, mut given) = (Vec::new(), None);
    let (mut of, mut told) = (None, Told::default());
    for option in options {
        match option {
            NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address }) => {
                let known = match role {
                    LinkLayerRole::NewAccessRouter => {
                        told.station = Some(*address);
                        continue;
                    }
                    LinkLayerRole::NewAccessPoint => None,
                    LinkLayerRole::CurrentInterface => Some(AccessPoint::SameLink),
                    LinkLayerRole::NoPrefixInformation => Some(AccessPoint::Unknown),
                    LinkLayerRole::NoFastHandover => Some(AccessPoint::NoFastHandover),
                    _ => continue,
                };
                end(of, &told, &mut all);
                told = Told::default();
                of = known.is_none().then_some(*address);
                all.extend(known.map(|known| (*address, known)));
            }
            NdOption::HandoverAddress(option) if is_unicast_routable(option.address) => match option.role {
                AddressRole::NewAccessRouter => told.address = Some(option.address),
                AddressRole::NewAccessRouterPrefix => {
                    told.prefix = Some(Prefix::new(option.address, option.prefix_len()));
                }
                AddressRole::NewCareOfAddress => given = Some(option.address),
                _ => {}
            },
            _ => {}
        }
        if all.len() >= MAX_ACCESS_POINTS {
            break;
        }
    }
    end(of, &told, &mut all);
    (all, given)
}
