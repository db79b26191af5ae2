//! The mobile node (RFC 6275 sections 8.5 and 11), with several interfaces, the authentication of RFC 4285, several care-of
//! addresses (RFC 5648), IPv4 home and care-of addresses (RFC 5555), and probes of its paths (experimental messages, RFC 5096).
//!
//! Left out: IPsec (K is never set); forming addresses, finding routers and Duplicate Address Detection, which neighbor discovery does
//! and tells of; home addresses that are learned or change; multicast group membership (section 11.3.4); several bindings in one
//! update (RFC 5648 section 5.3) and being at home and away at once (section 5.6).

mod acknowledgement;
mod attachment;
mod binding_update_list;
mod config;
mod correspondents;
mod delivery;
mod discovery;
mod dual_stack;
pub mod fast_handover;
mod local;
mod path_report;
mod path_watch;
mod registration;
mod switching;

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use careof_base::{Allowance, Duration, Instant, Randomness, Used};
use careof_wire::icmpv6::{Icmpv6Message, ParameterProblem, ParameterProblemCode, QuotedPacket};
use careof_wire::ipv6::is_unicast_routable;
use careof_wire::mip6::{
    self, BindingError, BindingErrorStatus, BindingStatus, Message, MobilityOptions, ReceivedData,
    SequenceNumber,
};

pub use config::{
    InterfaceConfig, MobileNodeConfig, MovementConfig, RetransmissionConfig, RouteOptimizationConfig,
};
pub use delivery::Delivery;
pub use dual_stack::Ipv4Delivery;

use attachment::{Attachment, Interface};
use binding_update_list::Correspondents;
use discovery::{HomeAgents, Questions};
use dual_stack::Ipv4Home;
use registration::{Pending, Purpose};
use switching::{Handover, Retiring};

use super::authentication::ReplayProtection;
use super::outbox::Outbox;
use super::update_rate::UpdateRate;
use super::{Addresses, Counters, DropReason, Event, Input, Transmit, Wake};
use crate::back_off::BackOff;
use crate::deadline::earliest;
use crate::path_quality::PathChoice;
use crate::path_watch::{PathSupervision, PathWatch};
use crate::ration::DenialRation;
use crate::replay::IdentificationSource;
use crate::{
    Change, ConfigError, HandoverReason, InterfaceId, Notice, PathProperties, Selection, UnknownInterface,
    WallClock,
};

/// A phase of a handover of a mobile node.
pub type HandoverEvent = crate::HandoverEvent<Ipv6Addr, BindingStatus>;
/// Why a handover of a mobile node did not happen.
pub type HandoverFailure = crate::HandoverFailure<BindingStatus>;

/// Correspondent nodes that are new: each is sent two messages, and anybody can make the home agent tunnel a packet from anybody.
const NEW_CORRESPONDENTS: Allowance = Allowance::new(32, Duration::from_millis(100));

/// A mobile node: keeps its home agent and its correspondent nodes informed, and knows how to send.
///
/// A sans-IO state machine. After any call of a `handle_*` method or of a command ([`MobileNode::switch_to`],
/// [`MobileNode::release`], [`MobileNode::deregister`], [`MobileNode::note_correspondent`]) the owner polls
/// [`MobileNode::poll_transmit`] and [`MobileNode::poll_event`] until they return `None`, and then asks [`MobileNode::next_timeout`]
/// when to call [`MobileNode::handle_timeout`]. Time never goes backwards.
///
/// The interface in use changes when, and only when, the home agent has accepted the registration through the new one
/// ([`HandoverEvent::Registered`]): until then [`MobileNode::delivery`] names the old one. Both are listened to from the first update on
/// until the old one is released.
#[derive(Debug)]
pub struct MobileNode {
    /// Its updates go to a mobility anchor point: its home address is a regional care-of address (RFC 5380).
    is_local: bool,
    config: MobileNodeConfig,
    interfaces: Vec<Interface>,
    /// The interface in use for sending.
    active: Option<usize>,
    /// The interface that is, or is to be, used.
    desired: Option<usize>,
    /// The owner chose `desired`.
    pinned: bool,
    handover: Option<Handover>,
    retiring: Option<Retiring>,
    /// Deregistrations under way.
    farewells: Vec<Pending>,
    /// The owner has ended the service, or somebody else has the home address.
    left: bool,
    home_agents: HomeAgents,
    /// The home agent keeps one binding only, whatever the configuration says.
    single: bool,
    /// The next binding with a name replaces all others (RFC 5648 section 5.9).
    overwrite: bool,
    /// Of the last update sent to a home agent.
    sequence: SequenceNumber,
    /// Updates sent, to whomever.
    updates_sent: u64,
    updates: UpdateRate,
    /// Under a security association with timestamps, or when the home agent has asked for them.
    timestamps: Option<IdentificationSource>,
    ipv4_home: Ipv4Home,
    correspondents: Correspondents,
    new_correspondents: Used,
    questions: Questions,
    /// When the prefix of the home address is no longer valid, as far as is known, and when the home agent is asked about it.
    home_prefix_end: Instant,
    home_prefix_refresh: Instant,
    /// On which link the owner was last told to answer for the home address.
    answers_on: Option<usize>,
    /// How often the home agent is believed that it has no binding.
    home_errors: Option<BackOff>,
    answers: DenialRation,
    /// What is known of all paths together.
    supervision: PathSupervision,
    /// How far the flows of this node have come.
    received: ReceivedData,
    /// [`MobileNode::set_forwarded`].
    forwarded: bool,
    random: Randomness,
    outbox: Outbox,
}

impl MobileNode {
    /// A node that is registered nowhere. Under [`Selection::Manual`] it waits for [`MobileNode::switch_to`].
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        mut config: MobileNodeConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let mut random = random.into();
        let believes_link = config.movement.link_layer;
        let interfaces = config.interfaces.drain(..).map(|i| Interface::new(i, believes_link)).collect();
        let mut node = Self {
            is_local: false,
            interfaces,
            active: None,
            desired: None,
            pinned: false,
            handover: None,
            retiring: None,
            farewells: Vec::new(),
            left: false,
            home_agents: HomeAgents::new(config.home_agent),
            single: false,
            overwrite: config.multiple_care_of,
            // Section 11.7.2: at random, for who comes after may not know.
            sequence: SequenceNumber((random.next_u64() >> 48) as u16),
            updates_sent: 0,
            updates: UpdateRate::default(),
            timestamps: None,
            ipv4_home: Ipv4Home::default(),
            correspondents: Correspondents::default(),
            new_correspondents: Used::default(),
            questions: Questions::default(),
            home_prefix_end: Instant::MAX,
            home_prefix_refresh: Instant::MAX,
            answers_on: None,
            home_errors: None,
            answers: DenialRation::default(),
            supervision: PathSupervision::default(),
            received: ReceivedData::EMPTY,
            forwarded: false,
            random,
            outbox: Outbox::default(),
            config,
        };
        if matches!(node.config.security.replay(), ReplayProtection::Timestamps { .. }) {
            node.use_timestamps();
        }
        node.reconcile(now);
        Ok(node)
    }

    fn use_timestamps(&mut self) {
        self.timestamps = Some(IdentificationSource::new(crate::ReplayProtection::TIMESTAMPS));
    }

    /// Sets the node's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// Moves to `interface`: registers through it, and uses it once that is accepted. Returns at once; the course is told in
    /// [`HandoverEvent`]s. Nothing happens when it is in use already.
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
        let index = self.index(interface).ok_or(UnknownInterface(interface))?;
        self.left = false;
        self.farewells.retain(|pending| pending.purpose != Purpose::Farewell);
        self.pinned = true;
        self.begin_handover(now, index, notice, HandoverReason::Chosen);
        self.reconcile(now);
        self.drive_correspondents(now);
        Ok(())
    }

    /// `interface`, left by a handover, need not be listened to any longer. Does nothing to the interface in use.
    pub fn release(&mut self, now: Instant, interface: InterfaceId) {
        self.outbox.called_at(now);
        let Some(index) = self.index(interface).filter(|&index| self.active != Some(index)) else { return };
        if self.retiring.is_some_and(|retiring| retiring.from == index) {
            self.terminate(now);
        } else if self.handover.is_none_or(|handover| handover.to != index) {
            self.release_binding(now, index);
        }
        self.reconcile(now);
    }

    /// Ends the service: asks the home agent to forget all bindings, and does nothing more until [`MobileNode::switch_to`]. It is done
    /// when [`MobileNode::is_registered`] says no. Bindings at correspondent nodes end by themselves.
    pub fn deregister(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if self.left {
            return;
        }
        self.abandon_handover(now, HandoverFailure::Superseded);
        self.left = true;
        self.farewells.clear();
        self.retiring = None;
        for interface in &mut self.interfaces {
            interface.pending = None;
            // Who changes his mind does not know whether the home agent has heard of it.
            interface.refresh = interface.held.is_some();
        }
        self.farewell(now, Purpose::Farewell);
        if self.farewells.is_empty() {
            self.forget_bindings();
        }
        self.reconcile(now);
        self.drive_correspondents(now);
    }

    /// Whether the home agent keeps a binding of the node, or has let it return home, as far as the node knows.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.interfaces.iter().any(|interface| interface.held.is_some())
    }

    /// Whether the node is at home, and the home agent knows it.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        self.active.is_some_and(|active| self.is_held_at_home(active))
    }

    /// The interface in use.
    #[must_use]
    pub fn active_interface(&self) -> Option<InterfaceId> {
        self.active.and_then(|active| self.id(active))
    }

    /// The care-of address registered for the interface in use; `None` at home.
    #[must_use]
    pub fn care_of(&self) -> Option<Ipv6Addr> {
        self.interfaces.get(self.active?)?.held?.attachment.care_of()
    }

    /// The home agent that is, or is to be, registered with.
    #[must_use]
    pub const fn home_agent(&self) -> Option<Ipv6Addr> {
        self.home_agents.current()
    }

    /// What is known of the path through `interface`.
    #[must_use]
    pub fn path(&self, interface: InterfaceId) -> PathProperties {
        let known = self.index(interface).and_then(|index| self.interfaces.get(index));
        known.map_or(PathProperties::default(), Interface::known_path)
    }

    /// Whether packets that come through `interface` are taken: it is in use, or was until now, or is about to be and the home agent may
    /// know already (section 11.5.4).
    #[must_use]
    pub fn listens_on(&self, interface: InterfaceId) -> bool {
        let Some(index) = self.index(interface) else { return false };
        let Some(interface) = self.interfaces.get(index) else { return false };
        self.active == Some(index)
            || interface.held.is_some()
            || interface.pending.as_ref().is_some_and(Pending::was_sent)
            || self.retiring.is_some_and(|retiring| retiring.from == index)
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

    /// When to call [`MobileNode::handle_timeout`], and what for.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, Wake)> {
        let mut next = self.send_deadline().map(|at| (at, Wake::BindingUpdateRetransmit));
        let mut add = |at: Option<Instant>, wake| {
            next = earliest(next, at.filter(|&at| at < Instant::MAX).map(|at| (at, wake)));
        };
        let now = self.outbox.now();
        add(self.hold_deadline(now), Wake::HoldTime);
        add(self.watch_deadline(), Wake::PathProbe);
        add(self.retiring.and_then(|retiring| retiring.until), Wake::OldInterfaceRelease);
        add(self.questions.discovery_deadline(), Wake::HomeAgentDiscovery);
        add(self.questions.solicitation_deadline(), Wake::PrefixSolicitationDue);
        add(Some(self.home_prefix_refresh), Wake::PrefixSolicitationDue);
        add(self.correspondents.deadline(), Wake::ReturnRoutability);
        for (index, interface) in self.interfaces.iter().enumerate() {
            add(interface.address_deadline(now), Wake::AddressLifetime);
            if let Some(held) = interface.held {
                add(Some(held.expires), Wake::BindingLifetime);
                let can_renew = interface.pending.is_none() && !self.left && interface.up;
                let in_place = self.attachment(now, index) == Some(held.attachment);
                let unblocked = held.renew_at.max(self.unblocked_at(index).unwrap_or(Instant::ZERO));
                add(Some(unblocked).filter(|_| can_renew && in_place), Wake::BindingRenewal);
            }
            let waits =
                self.desired == Some(index) || matches!(self.config.selection, Selection::Preferred { .. });
            let unblocked = self.unblocked_at(index).filter(|_| waits && !self.left);
            add(unblocked, Wake::BindingUpdateRetransmit);
        }
        next
    }

    /// When a registration that was refused may be tried again at the same point of attachment.
    fn unblocked_at(&self, index: usize) -> Option<Instant> {
        let interface = self.interfaces.get(index)?;
        let (attachment, until) = interface.blocked?;
        let is_there = self.attachment(self.outbox.now(), index) == Some(attachment);
        (interface.pending.is_none() && is_there).then_some(until)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.watch_paths(now);
        self.judge_paths(now);
        for index in 0..self.interfaces.len() {
            let Some(interface) = self.interfaces.get_mut(index) else { continue };
            interface.blocked = interface.blocked.filter(|&(_, until)| until > now);
            if interface.held.is_some_and(|held| held.expires <= now) {
                self.forget_binding(index, Change::Expired);
            }
        }
        if self.retiring.and_then(|retiring| retiring.until).is_some_and(|until| until <= now) {
            self.terminate(now);
        }
        self.reconcile(now);
        self.send_solicitation(now);
        self.handle_correspondents_timeout(now);
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Mobility { interface, addresses, message } => {
                self.outbox.count_received();
                if self.index(interface).is_none() || !self.is_addressed(addresses) {
                    return self.outbox.drop(DropReason::NotForUs, addresses.source);
                }
                self.handle_mobility(now, interface, addresses, message);
                self.reconcile(now);
                self.send_solicitation(now);
            }
            Input::Icmp { interface, addresses, message, .. } => {
                self.outbox.count_received();
                if self.index(interface).is_none() || !self.is_addressed(addresses) {
                    return self.outbox.drop(DropReason::NotForUs, addresses.source);
                }
                self.handle_icmp(now, addresses, message);
                self.reconcile(now);
            }
            Input::LinkUp { interface } => self.handle_link(now, interface, true),
            Input::LinkDown { interface } => self.handle_link(now, interface, false),
            Input::RouterFound { interface, router, prefixes } => {
                let found = self.interface_mut(interface).is_none_or(|i| i.router_found(router, prefixes));
                if !found {
                    self.outbox.drop(DropReason::TableFull, router);
                }
                self.moved(now);
            }
            Input::RouterLost { interface, router } => {
                if let Some(interface) = self.interface_mut(interface) {
                    interface.router_lost(router);
                }
                self.moved(now);
            }
            Input::AddressAdded { interface, address } => {
                if !self.has_use_for(address.address) {
                    return;
                }
                let added = self.interface_mut(interface).is_none_or(|i| i.address_added(now, address));
                if !added {
                    self.outbox.drop(DropReason::TableFull, address.address);
                }
                self.moved(now);
            }
            Input::AddressRemoved { interface, address } => {
                if let Some(interface) = self.interface_mut(interface) {
                    interface.address_removed(address);
                }
                self.moved(now);
            }
            Input::DuplicateAddressDetection { .. } | Input::MapsFound { .. } => {}
        }
    }

    /// Whether a packet is for the home address, or straight for a care-of address: the routing header has none but the home address
    /// (section 11.3.3).
    fn is_addressed(&self, addresses: Addresses) -> bool {
        addresses.type_2_routing.is_none_or(|home_address| home_address == self.config.home_address)
    }

    /// Where an interface is attached may have changed.
    fn moved(&mut self, now: Instant) {
        self.reconcile(now);
        self.drive_correspondents(now);
    }

    fn handle_link(&mut self, now: Instant, id: InterfaceId, up: bool) {
        let Some(index) = self.index(id) else { return };
        let event = |interface| {
            if up { HandoverEvent::LinkUp { interface } } else { HandoverEvent::LinkDown { interface } }
        };
        self.handover_event(event(id));
        let Some(interface) = self.interfaces.get_mut(index).filter(|_| self.config.movement.link_layer)
        else {
            return;
        };
        if interface.up == up {
            return;
        }
        interface.up = up;
        if up {
            interface.blocked = None;
            let reports = self.config.report_paths && interface.interrupted.is_some();
            interface.refresh |= reports && interface.held.is_some();
            // What was sent while nothing came through need not be waited for.
            if let Some(pending) = &mut interface.pending {
                pending.retransmission.begin_again(now);
                pending.unanswered = 0;
                if reports {
                    // It said that nothing was lost, if it was sent before.
                    pending.forget_sent();
                }
            }
        } else {
            interface.interrupted = Some(now);
            interface.link_lost();
            if self.retiring.is_some_and(|retiring| retiring.from == index) {
                self.terminate(now);
            }
        }
        self.moved(now);
    }

    fn handle_mobility(&mut self, now: Instant, interface: InterfaceId, addresses: Addresses, bytes: &[u8]) {
        let source = addresses.source;
        match Message::parse(addresses.real_source(), addresses.real_destination(), bytes) {
            Ok(Message::BindingAcknowledgement(acknowledgement)) => {
                if self.is_asked_as_home_agent(source) {
                    self.handle_home_acknowledgement(now, addresses, bytes, &acknowledgement);
                } else {
                    self.handle_correspondent_acknowledgement(now, addresses, bytes, &acknowledgement);
                }
            }
            Ok(Message::HomeTest(test)) => self.handle_home_test(now, addresses, &test),
            Ok(Message::CareOfTest(test)) => self.handle_care_of_test(now, addresses, &test),
            Ok(Message::BindingRefreshRequest(_)) => {
                let is_ours = addresses.real_destination() == self.config.home_address;
                if !is_ours || !self.handle_refresh_request(now, source) {
                    self.outbox.drop(DropReason::NoBinding, source);
                }
            }
            Ok(Message::PathProbe(probe)) => {
                self.handle_probe_answer(now, interface, addresses, bytes, &probe);
            }
            Ok(Message::BindingError(error)) => self.handle_binding_error(now, addresses, &error),
            Ok(message) if message.is_unknown_to_mobile_ipv6() => {
                self.outbox.drop(DropReason::UnknownMessage, source);
                self.tell_unknown(now, addresses);
            }
            Ok(_) => self.outbox.drop(DropReason::NotForUs, source),
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    fn is_asked_as_home_agent(&self, address: Ipv6Addr) -> bool {
        self.home_agents.current() == Some(address)
            || self
                .slots()
                .any(|slot| self.pending(slot).is_some_and(|pending| pending.peer == Some(address)))
    }

    /// Says that a Mobility Header of this type is not known here (sections 9.2 and 9.3.3).
    fn tell_unknown(&mut self, now: Instant, addresses: Addresses) {
        if !is_unicast_routable(addresses.source) || !self.answers.allows(now, addresses.source) {
            return self.outbox.counters.count_suppressed_answer();
        }
        let error = Message::BindingError(BindingError {
            status: BindingErrorStatus::UnrecognizedMhType,
            home_address: addresses.home_address.unwrap_or(Ipv6Addr::UNSPECIFIED),
            options: MobilityOptions::new(),
        });
        let way = Addresses::new(addresses.destination, addresses.source);
        if let Ok(bytes) = error.emit(way.source, way.destination) {
            self.outbox.mobility(None, way, bytes);
        }
    }

    /// Somebody has no binding, or does not know a message (section 11.3.6).
    fn handle_binding_error(&mut self, now: Instant, addresses: Addresses, error: &BindingError) {
        let Addresses { source, destination, .. } = addresses;
        let is_home_agent = self.interfaces.iter().any(|interface| {
            interface.held.is_some_and(|held| {
                held.home_agent == source && matches!(held.attachment, Attachment::Away { .. })
            })
        });
        let heeded = match error.status {
            BindingErrorStatus::UnknownBinding if error.home_address != self.config.home_address => false,
            BindingErrorStatus::UnknownBinding if is_home_agent => {
                self.register_again(now, source);
                true
            }
            BindingErrorStatus::UnknownBinding => self.handle_unknown_binding(now, source, destination),
            BindingErrorStatus::UnrecognizedMhType => self.handle_unable(now, source),
            _ => false,
        };
        if !heeded {
            self.outbox.drop(DropReason::NoBinding, source);
        }
    }

    /// The home agent has no binding, it says; anybody can say so in its name, so it is not believed as often as it is said.
    fn register_again(&mut self, now: Instant, home_agent: Ipv6Addr) {
        let believed = match &mut self.home_errors {
            Some(errors) => errors.allows(now),
            errors => {
                *errors = Some(BackOff::begin(now));
                true
            }
        };
        if !believed {
            return self.outbox.drop(DropReason::OverRation, home_agent);
        }
        for interface in &mut self.interfaces {
            interface.refresh |= interface.held.is_some_and(|held| held.home_agent == home_agent);
        }
    }

    fn handle_icmp(&mut self, now: Instant, addresses: Addresses, bytes: &[u8]) {
        let source = addresses.source;
        match Icmpv6Message::parse(addresses.real_source(), addresses.real_destination(), bytes) {
            Ok(Icmpv6Message::HomeAgentAddressDiscoveryReply(reply)) => {
                self.handle_discovery_reply(now, addresses, &reply);
            }
            Ok(Icmpv6Message::MobilePrefixAdvertisement(advertisement)) => {
                self.handle_prefix_advertisement(now, addresses, &advertisement);
            }
            Ok(Icmpv6Message::ParameterProblem(problem)) => self.handle_problem(now, source, &problem),
            // What else comes along means nothing here.
            Ok(_) => {}
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    /// A node that does not know the Mobility Header says so (section 11.3.5).
    fn handle_problem(&mut self, now: Instant, source: Ipv6Addr, problem: &ParameterProblem) {
        if problem.code != ParameterProblemCode::NextHeader {
            return;
        }
        let is_ours = QuotedPacket::parse(&problem.quoted)
            .is_ok_and(|quoted| quoted.destination == source && quoted.protocol == mip6::PROTOCOL);
        if !is_ours || !self.handle_unable(now, source) {
            self.outbox.drop(DropReason::UnexpectedAnswer, source);
        }
    }

    fn attachment(&self, now: Instant, index: usize) -> Option<Attachment> {
        let (home_address, prefix) = (self.config.home_address, self.config.home_prefix);
        self.interfaces.get(index)?.attachment(now, home_address, prefix, self.config.movement.eager)
    }

    fn index(&self, id: InterfaceId) -> Option<usize> {
        self.interfaces.iter().position(|interface| interface.config.id == id)
    }

    fn interface_mut(&mut self, id: InterfaceId) -> Option<&mut Interface> {
        self.interfaces.iter_mut().find(|interface| interface.config.id == id)
    }

    fn id(&self, index: usize) -> Option<InterfaceId> {
        self.interfaces.get(index).map(|interface| interface.config.id)
    }
}
