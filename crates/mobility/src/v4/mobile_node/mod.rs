//! The mobile node (RFC 5944 sections 2.4, 3.6, 4.2.1 and 4.6; reverse tunnelling: RFC 3024; smooth hand-off:
//! draft-ietf-mobileip-optim), with several interfaces and the delivery methods of MosquitoNet.
//!
//! Left out: network access identifiers (RFC 2794), home addresses handed out by the home agent, requests to
//! the all-mobility-agents group, link-layer addresses of foreign agents (the owner's neighbour table has
//! them).

mod attachment;
mod config;
mod delivery;
mod multipath;
mod path_watch;
mod previous_agent;
mod registration;
mod reply;
mod request;
mod switching;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::Error as WireError;
use careof_wire::icmp::{AgentFlags, IcmpMessage, RouterAdvertisement, RouterSolicitation};
use careof_wire::mip4::{Message, ReceivedData};

pub use config::{CareOfChoice, InterfaceConfig, MobileNodeConfig, MultipathForm, RetransmissionConfig};
pub use delivery::Delivery;
pub use multipath::MobilePath;

use attachment::{Attachment, Interface, is_home_agent};
use previous_agent::PreviousAgent;
use registration::{Pending, Purpose};
use switching::{Handover, Retiring};

use super::io::{ALL_ROUTERS, REGISTRATION_PORT};
use super::movement_detection::{Advertised, Observation};
use super::outbox::Outbox;
use super::pace::Pace;
use super::unicast::is_unicast;
use super::{
    AgentEvent, AgentLoss, Change, ConfigError, Counters, DeliveryMethod, DropReason, EncapsulationChoice,
    Encapsulations, Event, HandoverEvent, HandoverFailure, HandoverReason, Input, InterfaceAddress,
    InterfaceId, Notice, PathProperties, PolicyTable, Prefix, SecurityAssociation, Transmit, TransmitPayload,
    Wake, WallClock,
};
use crate::deadline::earliest;
use crate::path_quality::PathChoice;
use crate::path_watch::{PathSupervision, PathWatch};
use crate::replay::IdentificationSource;
use crate::{Selection, UnknownInterface};

/// A mobile node: finds agents, keeps its home agent informed, and knows how to send.
///
/// A sans-IO state machine. After any call of a `handle_*` method or of a command ([`MobileNode::switch_to`],
/// [`MobileNode::release`], [`MobileNode::deregister`]) the owner polls [`MobileNode::poll_transmit`] and
/// [`MobileNode::poll_event`] until they return `None`, and then asks [`MobileNode::next_timeout`] when to
/// call [`MobileNode::handle_timeout`]. Time never goes backwards.
///
/// The interface in use changes when, and only when, the home agent has accepted the registration through
/// the new one ([`HandoverEvent::Registered`]): until then [`MobileNode::delivery`] names the old one. Both
/// are listened to from the first request on until the old one is released.
#[derive(Debug)]
pub struct MobileNode {
    config: MobileNodeConfig,
    home_agent: Option<Ipv4Addr>,
    foreign_agents: BTreeMap<Ipv4Addr, SecurityAssociation>,
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
    /// The owner has ended the service.
    left: bool,
    /// The foreign agent that the node came from, until that knows where it is.
    previous_agent: Option<PreviousAgent>,
    /// What is known of all paths together.
    supervision: PathSupervision,
    /// How far its flows have come, as the owner has said.
    received: ReceivedData,
    /// The home agent keeps but one binding: no more are asked for.
    keeps_one: bool,
    /// What the owner was last told about answering ARP.
    answers_arp: Option<bool>,
    identifications: IdentificationSource,
    pace: Pace,
    random: Randomness,
    outbox: Outbox,
}

impl MobileNode {
    /// A node that is registered nowhere. Under [`Selection::Manual`] it waits for
    /// [`MobileNode::switch_to`].
    ///
    /// # Errors
    /// What is wrong with the configuration.
    pub fn new(
        now: Instant,
        mut config: MobileNodeConfig,
        random: impl Into<Randomness>,
    ) -> Result<Self, ConfigError> {
        config.check()?;
        let (movement, solicitation) = (config.movement, config.solicitation);
        let interfaces =
            config.interfaces.drain(..).map(|i| Interface::new(i, movement, solicitation)).collect();
        let mut node = Self {
            home_agent: config.home_agent,
            foreign_agents: config.foreign_agents.drain(..).map(|p| (p.address, p.security)).collect(),
            interfaces,
            active: None,
            desired: None,
            pinned: false,
            handover: None,
            retiring: None,
            farewells: Vec::new(),
            left: false,
            previous_agent: None,
            supervision: PathSupervision::default(),
            received: ReceivedData::EMPTY,
            keeps_one: false,
            answers_arp: None,
            identifications: IdentificationSource::new(config.security.replay()),
            pace: Pace::default(),
            random: random.into(),
            outbox: Outbox::default(),
            config,
        };
        node.reconcile(now);
        Ok(node)
    }

    /// Sets the node's time of day, after a clock was stepped.
    pub fn set_clock(&mut self, clock: WallClock) {
        self.config.clock = clock;
    }

    /// How far this node's TCP flows have come. A request that says that the old path is lost tells it to the home agent, which then
    /// need not repeat what has arrived. To be called ahead of every input and timeout that may lead to a request.
    pub fn set_received_data(&mut self, received: ReceivedData) {
        self.received = received;
    }

    /// Moves to `interface`: registers through it, and uses it once that is accepted. Returns at once; the
    /// course is told in [`HandoverEvent`]s. Nothing happens when it is in use already.
    ///
    /// # Errors
    /// [`UnknownInterface`] when the node has no such interface, or it stands for a relay.
    pub fn switch_to(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        notice: Notice,
    ) -> Result<(), UnknownInterface> {
        self.outbox.called_at(now);
        let index = self.index(interface).ok_or(UnknownInterface(interface))?;
        if self.interfaces.get(index).is_some_and(|interface| interface.config.relay) {
            // Packets go there beside an interface, never instead of one.
            return Err(UnknownInterface(interface));
        }
        (self.left, self.keeps_one) = (false, false);
        self.farewells.retain(|pending| pending.purpose != Purpose::Farewell);
        self.pinned = true;
        self.begin_handover(now, index, notice, HandoverReason::Chosen);
        self.reconcile(now);
        Ok(())
    }

    /// `interface`, left by a handover, need not be listened to any longer. Does nothing to the interface in
    /// use.
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

    /// Ends the service: asks the home agent to forget all bindings, and does nothing more until
    /// [`MobileNode::switch_to`]. It is done when [`MobileNode::is_registered`] says no.
    pub fn deregister(&mut self, now: Instant) {
        self.outbox.called_at(now);
        if self.left {
            return;
        }
        self.abandon_handover(now, HandoverFailure::Superseded);
        self.left = true;
        self.farewells.clear();
        // Should the owner change its mind, the home agent may have forgotten what we count on.
        self.refresh_bindings();
        for interface in &mut self.interfaces {
            interface.pending = None;
            interface.solicitor.stop();
        }
        match self.active.and_then(|active| self.attachment(active)) {
            Some(by) => self.farewell(now, Purpose::Farewell, by),
            None => self.forget_bindings(),
        }
        self.reconcile(now);
    }

    /// What the home agent holds may no longer be what we believe: register again. What is under way may
    /// arrive before what made it so, and is sent anew.
    fn refresh_bindings(&mut self) {
        for interface in &mut self.interfaces {
            interface.refresh |= interface.held.is_some();
            if let Some(pending) = &mut interface.pending {
                pending.begin_again();
            }
        }
    }

    /// Drops a registration that is under way on an interface. The home agent may carry it out all the
    /// same.
    fn cancel_pending(&mut self, now: Instant, index: usize) {
        let pending = self.interfaces.get_mut(index).and_then(|interface| interface.pending.take());
        let Some(pending) = pending.filter(Pending::was_sent) else { return };
        self.refresh_bindings();
        if let Some(care_of) = pending.attachment.care_of().filter(|_| self.keeps_others()) {
            self.release_care_of(now, care_of);
        }
    }

    /// The interface used for sending.
    #[must_use]
    pub fn active(&self) -> Option<InterfaceId> {
        self.active.and_then(|index| self.id(index))
    }

    /// The care-of address in use; none at home, and none when not registered.
    #[must_use]
    pub fn care_of_address(&self) -> Option<Ipv4Addr> {
        self.interfaces.get(self.active?)?.held?.attachment.care_of()
    }

    /// Whether the interface in use is registered: packets to the home address arrive.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        self.active.and_then(|index| self.interfaces.get(index)).is_some_and(|i| i.held.is_some())
    }

    /// Whether the node is at home and the home agent knows it.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        let held = self.active.and_then(|index| self.interfaces.get(index)).and_then(|i| i.held);
        held.is_some_and(|held| held.attachment == Attachment::Home)
    }

    /// The policy table in force.
    #[must_use]
    pub const fn policy(&self) -> &PolicyTable {
        &self.config.policy
    }

    /// The home agent, once it is known.
    #[must_use]
    pub fn home_agent(&self) -> Option<Ipv4Addr> {
        self.home_agent
    }

    /// What is known of the path through `interface`.
    #[must_use]
    pub fn path(&self, interface: InterfaceId) -> PathProperties {
        let interface = self.index(interface).and_then(|index| self.interfaces.get(index));
        interface.map_or(PathProperties::default(), Interface::known_path)
    }

    /// Whether packets that arrive on `interface` through a tunnel are for the node: it is in use, was in
    /// use until now, or is about to be and the home agent may know already.
    #[must_use]
    pub fn listens_on(&self, interface: InterfaceId) -> bool {
        let Some(index) = self.index(interface) else { return false };
        let Some(interface) = self.interfaces.get(index) else { return false };
        self.active == Some(index)
            || interface.held.is_some()
            || interface.pending.as_ref().is_some_and(Pending::was_sent)
            || self.retiring.is_some_and(|retiring| retiring.from == index)
    }

    /// How packets are wrapped that arrive on `interface` through a tunnel: as was granted there, or as is asked for, in case the home
    /// agent has granted it already.
    #[must_use]
    pub fn encapsulations(&self, interface: InterfaceId) -> Encapsulations {
        let interface = self.index(interface).and_then(|index| self.interfaces.get(index));
        let held = interface.and_then(|interface| interface.held);
        let held = held.map(|held| Encapsulations::of(held.encapsulation));
        let asked = interface.and_then(|interface| interface.pending.as_ref());
        let asked = asked.filter(|pending| pending.was_sent() && !pending.lifetime.is_zero());
        let asked = asked.map(|pending| Encapsulations::asked_for(pending.flags));
        let either = held.into_iter().chain(asked).reduce(Encapsulations::and);
        // What was granted last is forgotten, but packets may be under way.
        either.unwrap_or_else(|| {
            let asked_for = Encapsulations::of(self.config.encapsulation);
            asked_for.and(Encapsulations::of(EncapsulationChoice::IpInIp))
        })
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
        let mut next = self.send_deadline().map(|at| (at, Wake::RegistrationRetransmit));
        let mut add = |at: Option<Instant>, wake| next = earliest(next, at.map(|at| (at, wake)));
        add(self.hold_deadline(self.outbox.now()), Wake::HoldTime);
        add(self.watch_deadline(), Wake::PathProbe);
        add(self.retiring.and_then(|retiring| retiring.until), Wake::OldInterfaceRelease);
        for (index, interface) in self.interfaces.iter().enumerate() {
            add(interface.solicitor.deadline().filter(|_| interface.up), Wake::SolicitationDue);
            if let Some(held) = interface.held {
                add(Some(held.expires).filter(|&at| at < Instant::MAX), Wake::BindingLifetime);
                let can_renew = interface.pending.is_none() && !self.left && interface.up;
                let in_place = self.attachment(index) == Some(held.attachment);
                let unblocked = held.renew_at.max(self.unblocked_at(index).unwrap_or(Instant::ZERO));
                let renewal = Some(unblocked).filter(|&at| can_renew && in_place && at < Instant::MAX);
                add(renewal, Wake::RegistrationRenewal);
            }
            let waits = self.desired == Some(index)
                || self.joins(index)
                || matches!(self.config.selection, Selection::Preferred { .. });
            add(self.unblocked_at(index).filter(|_| waits && !self.left), Wake::RegistrationRetransmit);
        }
        let agents = self.interfaces.iter().filter_map(|interface| interface.agents.deadline());
        earliest(next, agents.min_by_key(|&(at, _)| at))
    }

    /// When a registration that was denied may be tried again at the same point of attachment.
    fn unblocked_at(&self, index: usize) -> Option<Instant> {
        let interface = self.interfaces.get(index)?;
        let (attachment, until) = interface.blocked?;
        (interface.pending.is_none() && self.attachment(index) == Some(attachment)).then_some(until)
    }

    /// Does what is due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.outbox.called_at(now);
        self.watch_paths(now);
        self.judge_paths(now);
        for index in 0..self.interfaces.len() {
            self.expire_agents(now, index);
            let Some(interface) = self.interfaces.get_mut(index) else { continue };
            interface.blocked = interface.blocked.filter(|&(_, until)| until > now);
            if interface.up && interface.solicitor.poll(now, &mut self.random) {
                self.solicit(index);
            }
            let held = self.interfaces.get(index).and_then(|interface| interface.held);
            if held.is_some_and(|held| held.expires <= now) {
                self.forget_binding(index, Change::Expired);
            }
        }
        if self.retiring.and_then(|retiring| retiring.until).is_some_and(|until| until <= now) {
            self.terminate(now);
        }
        self.reconcile(now);
    }

    fn expire_agents(&mut self, now: Instant, index: usize) {
        let Some(interface) = self.interfaces.get_mut(index) else { return };
        let id = interface.config.id;
        while let Some((agent, cause)) = interface.agents.expire(now) {
            self.outbox.event(Event::Agent(AgentEvent::Lost { interface: id, agent, cause }));
        }
    }

    /// Takes something in.
    pub fn handle_input(&mut self, now: Instant, input: Input<'_>) {
        self.outbox.called_at(now);
        match input {
            Input::Udp { interface, source, source_port, destination_port, payload, .. } => {
                self.outbox.count_received();
                if destination_port != REGISTRATION_PORT || self.index(interface).is_none() {
                    return self.outbox.drop(DropReason::NotForUs, source);
                }
                match Message::parse(payload) {
                    Ok(Message::BindingAcknowledge(acknowledge)) => {
                        self.handle_binding_acknowledge(source, payload, acknowledge);
                    }
                    Ok(Message::PathProbe(ref probe)) => {
                        self.handle_probe_answer(now, (interface, source), payload, probe);
                        self.reconcile(now);
                    }
                    Ok(message) => {
                        self.handle_reply(now, source, source_port, payload, &message);
                        self.reconcile(now);
                    }
                    Err(WireError::UnknownExtension { .. }) => {
                        self.outbox.drop(DropReason::UnknownExtension, source);
                    }
                    Err(_) => self.outbox.drop(DropReason::Malformed, source),
                }
            }
            Input::Icmp { interface, source, ttl, message, .. } => {
                self.outbox.count_received();
                let Some(index) = self.index(interface) else {
                    return self.outbox.drop(DropReason::NotForUs, source);
                };
                self.handle_icmp(now, index, source, ttl, message);
                self.reconcile(now);
            }
            Input::LinkUp { interface } => self.handle_link(now, interface, true),
            Input::LinkDown { interface } => self.handle_link(now, interface, false),
            Input::AddressChanged { interface, address } => self.handle_address(now, interface, address),
        }
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
            interface.solicitor.moved();
            interface.blocked = None;
            let reports = self.config.report_paths && interface.interrupted.is_some();
            interface.refresh |= reports && interface.held.is_some();
            // It said that nothing was lost, if it was sent before; and nobody need wait for the next one.
            if let Some(pending) = interface.pending.as_mut().filter(|pending| pending.was_sent())
                && (reports || self.config.retransmission.early > 0)
            {
                pending.begin_again();
            }
        } else {
            interface.interrupted = Some(now);
            // Where the link comes up again need not be where it was.
            for agent in interface.agents.clear() {
                let cause = AgentLoss::LinkDown;
                self.outbox.event(Event::Agent(AgentEvent::Lost { interface: id, agent, cause }));
            }
            if self.retiring.is_some_and(|retiring| retiring.from == index) {
                self.terminate(now);
            }
            self.leave_path(now, index);
        }
        self.reconcile(now);
    }

    fn handle_address(&mut self, now: Instant, id: InterfaceId, address: Option<InterfaceAddress>) {
        let index = self.index(id);
        if let Some(interface) = index.and_then(|index| self.interfaces.get_mut(index)) {
            interface.address = address;
            interface.blocked = None;
            self.reconcile(now);
        }
    }

    fn handle_icmp(&mut self, now: Instant, index: usize, source: Ipv4Addr, ttl: u8, bytes: &[u8]) {
        match IcmpMessage::parse(bytes) {
            // Sent with 1 (RFC 5944 section 2.1), so anything else comes from elsewhere.
            Ok(IcmpMessage::RouterAdvertisement(_)) if ttl != 1 || !is_unicast(source) => {
                self.outbox.drop(DropReason::WrongTtl, source);
            }
            Ok(IcmpMessage::RouterAdvertisement(message)) => match advertised(&message) {
                Some(advertised) => self.handle_advertisement(now, index, source, advertised),
                None => self.outbox.drop(DropReason::NotAnAgent, source),
            },
            Ok(_) => {}
            Err(WireError::UnknownExtension { .. }) => self.outbox.drop(DropReason::UnknownExtension, source),
            Err(_) => self.outbox.drop(DropReason::Malformed, source),
        }
    }

    fn handle_advertisement(&mut self, now: Instant, index: usize, agent: Ipv4Addr, advertised: Advertised) {
        let Some(node) = self.interfaces.get_mut(index) else { return };
        let interface = node.config.id;
        let current = node.held.and_then(|held| held.attachment.agent());
        let event = match node.agents.heard(now, agent, advertised, current) {
            Observation::Known => None,
            Observation::New { replaced } => {
                if let Some(agent) = replaced {
                    let cause = AgentLoss::Forgotten;
                    self.outbox.event(Event::Agent(AgentEvent::Lost { interface, agent, cause }));
                }
                Some(AgentEvent::Found { interface, agent })
            }
            Observation::Withdrawn => {
                Some(AgentEvent::Lost { interface, agent, cause: AgentLoss::LifetimeExpired })
            }
            Observation::Rebooted => {
                // It has forgotten its visitors (section 2.4.4).
                node.refresh |= current == Some(agent);
                Some(AgentEvent::Rebooted { interface, agent })
            }
        };
        if let Some(event) = event {
            self.outbox.event(Event::Agent(event));
        }
        let Some(current) = current else { return };
        let (network, home_agent) = (self.config.home_network, self.home_agent);
        let is_ours = |address| is_home_agent(address, network, home_agent);
        if let Some(agent) = node.agents.moved_away_from(current, is_ours).map(|agent| agent.address) {
            node.agents.forget(current);
            self.outbox.event(Event::Agent(AgentEvent::PrefixChanged { interface, agent }));
        }
    }

    /// Asks for agents on an interface's link (section 2.4).
    fn solicit(&mut self, index: usize) {
        let Some(interface) = self.interfaces.get(index) else { return };
        let mut bytes = Vec::new();
        IcmpMessage::RouterSolicitation(RouterSolicitation).emit(&mut bytes);
        // The home address may be used wherever the node is, as nobody on the link is asked to resolve it.
        let source = interface.address.map_or(self.config.home_address, |own| own.address);
        self.outbox.transmit(Transmit {
            interface: Some(interface.config.id),
            source,
            destination: ALL_ROUTERS,
            ttl: 1,
            payload: TransmitPayload::Icmp { bytes },
        });
    }

    fn attachment(&self, index: usize) -> Option<Attachment> {
        let (home_address, network) = (self.config.home_address, self.config.home_network);
        self.interfaces.get(index)?.attachment(home_address, network, self.home_agent)
    }

    /// Whether to ask for reverse tunnelling where it is or is not `offered`: the owner's word holds
    /// anywhere, while the policy table makes do with what there is.
    fn wants_reverse_tunnel(&self, offered: bool) -> bool {
        self.config.reverse_tunnel || (offered && self.config.policy.uses(DeliveryMethod::ReverseTunnel))
    }

    fn index(&self, id: InterfaceId) -> Option<usize> {
        self.interfaces.iter().position(|interface| interface.config.id == id)
    }

    fn id(&self, index: usize) -> Option<InterfaceId> {
        self.interfaces.get(index).map(|interface| interface.config.id)
    }
}

/// What a router advertisement says of its agent; `None` when it is not an agent's.
fn advertised(message: &RouterAdvertisement) -> Option<Advertised> {
    let agent = message.mobility_agent()?;
    let flag = |flag| agent.flags.contains(flag);
    let prefix_length = message.prefix_length(0);
    Some(Advertised {
        lifetime: Duration::from_secs(u64::from(message.lifetime_secs)),
        sequence: agent.sequence,
        registration_lifetime: agent.registration_lifetime,
        registration_required: flag(AgentFlags::REGISTRATION_REQUIRED),
        busy: flag(AgentFlags::BUSY),
        home_agent: flag(AgentFlags::HOME_AGENT),
        foreign_agent: flag(AgentFlags::FOREIGN_AGENT),
        minimal_encapsulation: flag(AgentFlags::MINIMAL_ENCAPSULATION),
        gre: flag(AgentFlags::GRE),
        reverse_tunneling: flag(AgentFlags::REVERSE_TUNNELING),
        care_of: agent.care_of_addresses.iter().copied().find(|&address| is_unicast(address)),
        prefix: message.routers.first().zip(prefix_length).map(|(r, length)| Prefix::new(r.address, length)),
    })
}
