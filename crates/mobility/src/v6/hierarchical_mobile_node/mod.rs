//! The mobile node of Hierarchical Mobile IPv6 (RFC 5380 sections 6.1, 7 and 9).
//!
//! It is made of [`MobileNode`]s, so that registrations are the same everywhere. One binds the home address at the home agent and at
//! correspondent nodes. Where routers advertise a mobility anchor point (MAP), another one binds a regional care-of address (RCoA) there to
//! the on-link care-of address (LCoA), and the RCoA is the only care-of address that the first one knows: it is on an interface of its own
//! ([`REGIONAL`]), whose link is the tunnel to the MAP. So within a domain only the MAP hears of movements. A third one has the MAP of
//! before send packets on.
//!
//! Packets to and from the RCoA travel in [`Addresses::map_tunnel`], around the tunnel to the home agent where there is one.
//!
//! **Trust.** The node uses MAPs that it has a security association with ([`MapAssociation`]), by which both know each other's messages
//! (RFC 4285), in the place of IKEv2 and IPsec (section 12.1). Router advertisements are not authenticated: who is on the link can hide a
//! MAP, or say that it has failed, and the node goes on with another one or without. A MAP that says yes and forwards nothing is left as
//! soon as the home agent does not answer through it.
//!
//! Left out: several MAPs at a time, and LCoAs told to correspondent nodes (section 7.1); MAPs on the node's own link, where the RCoA
//! would be the LCoA; several care-of addresses (RFC 5648), IPv4 (RFC 5555) and reports of paths; under [`Selection::Preferred`]
//! a silent interface is left when a handover to it fails, not later.

mod arrangement;
mod carriage;
mod config;
mod course;
mod place;
mod regional;
mod selection;

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::{Instant, Randomness};

pub use config::{HierarchicalMobileNodeConfig, MapAssociation, MapSelection};

use course::{Course, Outcome};
use place::Place;
use regional::{Candidate, Regional};

use super::outbox::Outbox;
use super::{
    Counters, Event, HandoverFailure, Input, InterfaceConfig, MobileNode, MobileNodeConfig, Prefix, Transmit,
    Wake,
};
use crate::deadline::earliest;
use crate::{
    ConfigError, HandoverReason, InterfaceId, Notice, PathProperties, Selection, UnknownInterface, WallClock,
};

/// The interface of the registration with the home agent that has the regional care-of address.
const REGIONAL: InterfaceId = InterfaceId(u16::MAX);

/// A mobile node that uses mobility anchor points.
///
/// A sans-IO state machine, driven as a [`MobileNode`] is; beside the inputs of that it takes [`Input::MapsFound`]. Its handover events are
/// those of the whole: [`Registered`](super::HandoverEvent::Registered) says that packets take the new path, which within a domain is when
/// the mobility anchor point has answered. Its binding and registration events are those of each registration, told apart by the *home
/// address*, which at a mobility anchor point is the regional care-of address.
#[derive(Debug)]
pub struct HierarchicalMobileNode {
    /// What the registrations with mobility anchor points have of the configuration.
    template: MobileNodeConfig,
    candidates: Vec<Candidate>,
    selection: MapSelection,
    patience: u32,
    forwarding: Option<core::time::Duration>,
    places: Vec<Place>,
    /// The interface that is, or is to be, used.
    lead: Option<usize>,
    /// The owner has chosen it.
    pinned: bool,
    /// Why the next handover begins, where that is known beforehand.
    why: Option<(Notice, HandoverReason)>,
    /// The registration with home agent and correspondent nodes.
    home: MobileNode,
    /// The interface that it was told to use.
    home_on: Option<InterfaceId>,
    /// It is to be told so again: it may have given up.
    is_home_stale: bool,
    /// The regional care-of address that it was told, and its end.
    told: Option<(Ipv6Addr, Instant)>,
    /// Whether it was told that packets get through to there.
    carried: bool,
    /// The registration with the mobility anchor point in use; none: the home agent is told of addresses of links.
    current: Option<Regional>,
    /// The one before, which sends packets on.
    previous: Option<Regional>,
    /// The interface that packets take, as the owner was told last.
    used: Option<InterfaceId>,
    course: Option<Course>,
    /// The interface left by the last handover that is still listened to, where it went, and when it began.
    retiring: Option<(InterfaceId, InterfaceId, Instant)>,
    /// What a part has said of its registration.
    outcome: Option<Outcome>,
    failure: Option<HandoverFailure>,
    /// When a handover that has failed is begun anew.
    retry_at: Option<Instant>,
    /// The owner has ended the service.
    left: bool,
    random: Randomness,
    outbox: Outbox,
}

impl HierarchicalMobileNode {
    /// A node that is registered nowhere. Under [`Selection::Manual`] it waits for [`switch_to`](Self::switch_to).
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        config: HierarchicalMobileNodeConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let HierarchicalMobileNodeConfig { node, maps, selection, patience, forwarding } = config;
        let mut random = random.into();
        let believes_link = node.movement.link_layer;
        let places = node.interfaces.iter().map(|known| Place::new(*known, believes_link)).collect();
        let mut of_home = node.clone();
        of_home.selection = Selection::Manual;
        of_home.interfaces.push(InterfaceConfig::new(REGIONAL));
        let home = MobileNode::new(now, of_home, random.branch())?;
        let home_address = node.home_address;
        let candidates = maps.into_iter().map(|map| Candidate::new(map, home_address)).collect();
        let mut template = node;
        // They are told of links that are up.
        template.interfaces.iter_mut().for_each(|interface| interface.up = false);
        let mut whole = Self {
            template,
            candidates,
            selection,
            patience,
            forwarding,
            places,
            lead: None,
            pinned: false,
            why: None,
            home,
            home_on: None,
            is_home_stale: false,
            told: None,
            carried: false,
            current: None,
            previous: None,
            used: None,
            course: None,
            retiring: None,
            outcome: None,
            failure: None,
            retry_at: None,
            left: false,
            random,
            outbox: Outbox::default(),
        };
        whole.settle(now);
        Ok(whole)
    }

    /// Sets the node's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.template.clock = clock;
        self.home.set_clock(clock);
        self.regionals_mut().for_each(|regional| regional.node.set_clock(clock));
    }

    /// Moves to `interface`, as [`MobileNode::switch_to`].
    ///
    /// # Errors
    /// [`UnknownInterface`] when the node has no such interface.
    pub fn switch_to(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        notice: Notice,
    ) -> Result<(), UnknownInterface> {
        self.outbox.called_at(now);
        let index = self.places.iter().position(|place| place.config.id == interface);
        let index = index.ok_or(UnknownInterface(interface))?;
        // What is bound to the regional address goes on being so, whatever carries that: within a domain the home agent hears nothing.
        let is_kept = !self.left && self.home_on == Some(REGIONAL) && self.home.keeps(REGIONAL);
        let is_home_stale = self.is_home_stale || !is_kept;
        self.left = false;
        self.remind_parts();
        self.is_home_stale = is_home_stale;
        self.pinned = true;
        self.lead_to(index, notice, HandoverReason::Chosen);
        self.settle(now);
        Ok(())
    }

    /// `interface`, left by a handover, need not be listened to any longer.
    pub fn release(&mut self, now: Instant, interface: InterfaceId) {
        self.outbox.called_at(now);
        self.home.release(now, interface);
        self.regionals_mut().for_each(|regional| regional.node.release(now, interface));
        self.settle(now);
    }

    /// Ends the service: asks the home agent, and then the mobility anchor point, to forget the bindings, and does nothing more until
    /// [`switch_to`](Self::switch_to).
    pub fn deregister(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if core::mem::replace(&mut self.left, true) {
            return;
        }
        if self.course.is_some() {
            self.failure = Some(HandoverFailure::Superseded);
        }
        self.home.deregister(now);
        self.settle(now);
    }

    /// Whether the home agent keeps a binding of the node, or has let it return home, as far as the node knows.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.home.is_registered()
    }

    /// Whether the node is at home, and the home agent knows it.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        self.home.is_at_home()
    }

    /// The interface in use.
    #[must_use]
    pub fn active_interface(&self) -> Option<InterfaceId> {
        match self.home.active_interface() {
            Some(REGIONAL) => {
                let carrier = self.carrier()?;
                carrier.node.active_interface()
            }
            interface => interface,
        }
    }

    /// The care-of address registered with the home agent: a regional one under a mobility anchor point. `None` at home.
    #[must_use]
    pub fn care_of(&self) -> Option<Ipv6Addr> {
        self.home.care_of()
    }

    /// The home agent, if it is known.
    #[must_use]
    pub const fn home_agent(&self) -> Option<Ipv6Addr> {
        self.home.home_agent()
    }

    /// The mobility anchor point in use, and the on-link care-of address registered there.
    #[must_use]
    pub fn map(&self) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let current = self.current.as_ref()?;
        Some((current.map, current.node.care_of()?))
    }

    /// What is known of the path to the home agent through `interface`.
    #[must_use]
    pub fn path(&self, interface: InterfaceId) -> PathProperties {
        let path = self.home.path(interface);
        match &self.current {
            Some(_) => PathProperties { round_trip: self.home.path(REGIONAL).round_trip, ..path },
            None => path,
        }
    }

    /// What was received, sent and dropped, by all registrations together.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.outbox.counters
    }

    /// Packets are exchanged with `correspondent`, as [`MobileNode::note_correspondent`].
    pub fn note_correspondent(&mut self, now: Instant, correspondent: Ipv6Addr) {
        self.outbox.called_at(now);
        self.home.note_correspondent(now, correspondent);
        self.settle(now);
    }

    /// How many correspondent nodes are remembered.
    #[must_use]
    pub fn correspondent_count(&self) -> usize {
        self.home.correspondent_count()
    }

    /// The care-of address that `correspondent` has acknowledged.
    #[must_use]
    pub fn optimized_route(&self, correspondent: Ipv6Addr) -> Option<Ipv6Addr> {
        self.home.optimized_route(correspondent)
    }

    /// As [`MobileNode::outdated_correspondents`]; a move within a domain outdates none that knows the regional care-of address.
    pub fn outdated_correspondents(&self) -> impl Iterator<Item = Ipv6Addr> + '_ {
        self.home.outdated_correspondents()
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Transmit> {
        self.outbox.poll_transmit(now)
    }

    /// The next thing to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.outbox.poll_event()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let parts = self.regionals().map(|regional| regional.node.next_timeout());
        let next = parts.fold(self.home.next_timeout(), earliest);
        let barred = self.candidates.iter().filter_map(|candidate| candidate.barred_until);
        let heard = self.places.iter().filter_map(|place| place.map_deadline(self.outbox.now()));
        let forwarding = self.previous.iter().filter_map(|previous| previous.until);
        let own = barred.chain(heard).chain(forwarding).min().map(|at| (at, Wake::AnchorPoint));
        let retry = self.retry_at.map(|at| (at, Wake::BindingUpdateRetransmit));
        let hold = self.hold_deadline().map(|at| (at, Wake::HoldTime));
        [own, retry, hold].into_iter().fold(next, earliest)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.home.handle_timeout(now);
        self.regionals_mut().for_each(|regional| regional.node.handle_timeout(now));
        for candidate in &mut self.candidates {
            candidate.barred_until = candidate.barred_until.filter(|until| *until > now);
        }
        for place in &mut self.places {
            place.avoided_until = place.avoided_until.filter(|until| *until > now);
        }
        if self.retry_at.is_some_and(|at| at <= now) {
            self.remind_parts();
        }
        if self.previous.as_ref().and_then(|previous| previous.until).is_some_and(|until| until <= now) {
            self.forget_previous();
        }
        self.settle(now);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { interface, addresses, .. } | Input::Icmp { interface, addresses, .. } => {
                self.outbox.count_received();
                self.dispatch(now, interface, addresses, input);
            }
            Input::MapsFound { interface, router, maps } => {
                for option in maps {
                    self.map_heard(now, (interface, router), *option);
                }
            }
            Input::LinkUp { interface } => self.with_place(interface, |place| place.link(true)),
            Input::LinkDown { interface } => self.with_place(interface, |place| place.link(false)),
            Input::RouterFound { interface, router, prefixes } => {
                self.with_place(interface, |place| place.router_found(router, prefixes));
            }
            Input::RouterLost { interface, router } => {
                self.with_place(interface, |place| place.router_lost(router));
            }
            Input::AddressAdded { interface, address } => {
                self.with_place(interface, |place| place.address_added(now, address));
            }
            Input::AddressRemoved { interface, address } => {
                self.with_place(interface, |place| place.address_removed(address));
            }
            Input::DuplicateAddressDetection { .. } => {}
        }
        let is_of_links =
            !matches!(input, Input::Mobility { .. } | Input::Icmp { .. } | Input::MapsFound { .. });
        if is_of_links {
            self.home.handle_input(now, input);
            self.regionals_mut().for_each(|regional| regional.node.handle_input(now, input));
        }
        self.settle(now);
    }

    /// Each part is told once more which interface to use.
    fn remind_parts(&mut self) {
        (self.is_home_stale, self.retry_at) = (true, None);
        self.regionals_mut().for_each(Regional::remind);
    }

    fn with_place(&mut self, interface: InterfaceId, change: impl FnOnce(&mut Place)) {
        if let Some(place) = self.places.iter_mut().find(|place| place.config.id == interface) {
            change(place);
        }
    }

    /// The registrations with mobility anchor points, the current one first.
    fn regionals(&self) -> impl Iterator<Item = &Regional> {
        self.current.iter().chain(&self.previous)
    }

    fn regionals_mut(&mut self) -> impl Iterator<Item = &mut Regional> {
        self.current.iter_mut().chain(&mut self.previous)
    }

    /// The one whose regional care-of address the home agent knows, or is to know.
    fn carrier(&self) -> Option<&Regional> {
        let (regional, _) = self.told?;
        self.regionals().find(|known| known.regional == regional)
    }

    const fn home_prefix(&self) -> Prefix {
        self.template.home_prefix
    }
}
