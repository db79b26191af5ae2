//! The mobile node's part in fast handovers (RFC 5568), beside its [`MobileNode`].

use core::net::Ipv6Addr;
use std::collections::BTreeSet;

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::fast_handover::{Event, FastHandover, RouterInfo};
use careof_mobility::v6::{Addresses, Delivery, Input, InterfaceAddress, MobileNode, Prefix, Tunnel};
use careof_plan::{AccessPointPlan, FastHandoverPlan, Ipv6Plan, NodeId};
use careof_scenario::Handover;
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Message;

use super::{Ipv6Host, Ipv6Role};
use crate::agents::Agent;
use crate::observer::Note;
use crate::simulation::Simulation;

/// What runs beside a mobile node.
pub(crate) struct FastMobile {
    agent: FastHandover,
    plan: FastHandoverPlan,
    /// Whether access routers keep packets.
    is_buffered: bool,
    /// The interface by which it is registered.
    current: Option<InterfaceId>,
    /// The links that are up.
    up: BTreeSet<InterfaceId>,
    /// The access point that it prepares for as soon as its router has told of it.
    wanted: Option<LinkLayerAddress>,
    /// On the old link, a handover is prepared.
    is_prepared: bool,
    /// The care-of address for which the handover was prepared with which it has left.
    gone_as: Option<Ipv6Addr>,
    /// It has come to another link than it had prepared for.
    is_misled: bool,
    /// It has announced itself on the link of this interface, and is not registered there yet.
    arrived: Option<InterfaceId>,
    /// It has come to the link of this interface and knows nothing of the router there: it goes on when it has an address.
    unannounced: Option<InterfaceId>,
    /// It may have become true, and was not told yet, that packets go both ways by the new link.
    may_be_ready: bool,
}

impl FastMobile {
    pub(super) const fn new(agent: FastHandover, plan: FastHandoverPlan, is_buffered: bool) -> Self {
        Self {
            agent,
            plan,
            is_buffered,
            current: None,
            up: BTreeSet::new(),
            wanted: None,
            is_prepared: false,
            gone_as: None,
            is_misled: false,
            arrived: None,
            unannounced: None,
            may_be_ready: false,
        }
    }

    pub(super) const fn agent(&self) -> &FastHandover {
        &self.agent
    }

    /// Whether a packet is taken out of this tunnel: the previous router sends it on.
    pub(super) fn takes_out_of(&self, tunnel: Option<Tunnel>) -> bool {
        tunnel.is_some_and(|tunnel| self.agent.accepts_tunnel_from(tunnel.entry))
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.agent.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.agent.next_timeout().map(|(at, _)| at)
    }

    /// Takes a Mobility Header if it is an answer of an access router.
    pub(super) fn takes(&mut self, now: Instant, input: Input<'_>) -> bool {
        let Input::Mobility { addresses, message, .. } = input else { return false };
        let parsed = Message::parse(addresses.real_source(), addresses.real_destination(), message);
        let is_ours = matches!(parsed, Ok(Message::FastBindingAcknowledgement(_)));
        if is_ours {
            self.agent.handle_input(now, input);
        }
        is_ours
    }

    pub(super) fn handle_neighbor(&mut self, now: Instant, input: Input<'_>) {
        self.agent.handle_input(now, input);
    }

    /// The mobile node is registered by an interface: handovers go from there.
    fn registered(&mut self, now: Instant, interface: InterfaceId) {
        (self.arrived, self.unannounced) = (None, None);
        let is_new = self.current.replace(interface) != Some(interface);
        if let Some(point) = self.plan.at(interface) {
            self.agent.set_current(now, point.router.clone());
            if is_new {
                self.agent.discover(now, &[]);
            }
        }
    }

    /// The link layer has brought the node to a link, and it has no other.
    fn attached(&mut self, now: Instant, interface: InterfaceId) {
        let (Some(current), Some(point)) = (self.current, self.plan.at(interface).cloned()) else { return };
        self.left();
        self.is_misled = self.gone_as.take().is_some_and(|new| new != point.router.care_of);
        if current == interface {
            // It has not gone anywhere, whatever was prepared.
            if self.agent.accepts_tunnel_from(point.router.address) {
                self.agent.returned(now);
            }
        } else if !self.agent.attached(now, interface, point.station) {
            self.unannounced = Some(interface);
        }
    }

    /// The old link has gone.
    fn left(&mut self) {
        self.wanted = None;
        if core::mem::take(&mut self.is_prepared) {
            self.gone_as = self.agent.new_care_of();
        }
    }

    /// Whether the access routers see to what was under way to the mobile node when it left.
    fn is_forwarded(&self) -> bool {
        self.is_buffered && !self.is_misled
    }
}

fn router_info(point: &AccessPointPlan) -> RouterInfo {
    let address = point.router.address;
    let prefix = Prefix::new(address, Ipv6Plan::PREFIX_LEN);
    RouterInfo { address, link_layer_address: Some(point.station), prefix }
}

impl Ipv6Host {
    /// The mobile node, and what runs beside it.
    fn fast_mobile(&mut self) -> Option<(&mut MobileNode, &mut FastMobile)> {
        match (&mut self.role, &mut self.fast) {
            (Ipv6Role::Mobile(mobile), Some(fast)) => Some((mobile, fast)),
            _ => None,
        }
    }

    /// How the mobile node sends while the new care-of address is not registered: as from the previous one, through a tunnel back to the
    /// previous access router, by this interface.
    pub(super) fn way_back(&self, destination: Ipv6Addr) -> Option<(Delivery, Tunnel, InterfaceId)> {
        let (Some(fast), Ipv6Role::Mobile(mobile)) = (&self.fast, &self.role) else { return None };
        let interface = fast.arrived?;
        let delivery = mobile.delivery_from_previous(destination)?;
        let Addresses { source, tunnel, .. } = delivery.addresses;
        let previous = tunnel.map_or(source, |tunnel| tunnel.entry);
        Some((delivery, fast.agent.reverse_tunnel(previous)?, interface))
    }

    /// The link layer of the mobile node tells of an interface's link.
    pub(super) fn fast_link(&mut self, now: Instant, interface: InterfaceId, up: bool) {
        let Some((mobile, fast)) = self.fast_mobile() else { return };
        if up {
            fast.up.insert(interface);
        } else {
            fast.up.remove(&interface);
            fast.arrived = fast.arrived.filter(|arrived| *arrived != interface);
            fast.unannounced = fast.unannounced.filter(|arrived| *arrived != interface);
        }
        // While it can be reached where it is registered nobody has to send anything on.
        let is_reachable = mobile.active_interface().is_none_or(|active| fast.up.contains(&active));
        let is_back = up && fast.current == Some(interface);
        let there = if up { Some(interface) } else { fast.up.first().copied() };
        let is_known = there.is_some() && (fast.arrived == there || fast.unannounced == there);
        match there.filter(|_| (is_back || !is_reachable) && !is_known) {
            Some(there) => fast.attached(now, there),
            None if !up => fast.left(),
            None => {}
        }
    }
}

impl Simulation {
    fn fast_mobile_of(&mut self, handover: &Handover) -> Option<(NodeId, &mut FastMobile)> {
        let node = self.topology.mobile_of(handover.from);
        let (_, fast) = self.ipv6(node)?.fast_mobile()?;
        Some((node, fast))
    }

    /// The link layer of a mobile node announces a handover: what is behind the access point is to be known.
    pub(crate) fn fast_announced(&mut self, announced: &Handover) {
        let now = self.now;
        let (_, interface) = self.mobile_end(announced.to);
        let Some((node, fast)) = self.fast_mobile_of(announced) else { return };
        let Some(station) = fast.plan.at(interface).map(|point| point.station) else { return };
        if fast.agent.access_point(station).is_none() {
            fast.agent.discover(now, &[station]);
            self.drive_ipv6(node);
        }
    }

    /// The handover is near: the mobile node has its router send packets on.
    pub(crate) fn fast_prepare(&mut self, announced: &Handover) {
        let now = self.now;
        let (_, interface) = self.mobile_end(announced.to);
        let Some((node, fast)) = self.fast_mobile_of(announced) else { return };
        let Some(station) = fast.plan.at(interface).map(|point| point.station) else { return };
        fast.is_prepared = fast.agent.prepare(now, station);
        fast.wanted = (!fast.is_prepared).then_some(station);
        self.drive_ipv6(node);
    }

    /// The handover that was announced does not happen: packets are to come to the old link again.
    pub(crate) fn fast_call_off(&mut self, announced: &Handover) {
        let now = self.now;
        let Some((node, fast)) = self.fast_mobile_of(announced) else { return };
        fast.wanted = None;
        if core::mem::take(&mut fast.is_prepared) {
            fast.agent.returned(now);
        }
        self.drive_ipv6(node);
    }

    /// The mobile node is registered by an interface.
    pub(super) fn fast_registered(&mut self, node: NodeId, interface: InterfaceId) {
        let now = self.now;
        if let Some((mobile, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) {
            fast.registered(now, interface);
            mobile.set_forwarded(false);
        }
    }

    /// The mobile node has formed a care-of address on a link of whose router it knew nothing before.
    pub(super) fn fast_configured(&mut self, node: NodeId, interface: InterfaceId, new: Ipv6Addr) {
        let now = self.now;
        let Some((_, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) else { return };
        if fast.unannounced != Some(interface) {
            return;
        }
        fast.unannounced = None;
        if let Some(info) = fast.plan.at(interface).map(router_info) {
            fast.agent.configured(now, interface, info, new);
        }
    }

    /// Does one thing that fast handovers ask for; `false` when there is nothing more.
    pub(super) fn drive_fast_handover(&mut self, node: NodeId) -> bool {
        let now = self.now;
        let Some((_, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) else { return false };
        if let Some(event) = fast.agent.poll_event() {
            self.fast_event(node, event);
        } else if let Some(transmit) = fast.agent.poll_transmit(now) {
            self.send_for_ipv6_agent(node, transmit);
        } else if core::mem::take(&mut fast.may_be_ready) {
            // Behind the announcement, and behind what the mobile node tells of the handover.
            self.fast_path_is_ready(node);
        } else {
            return false;
        }
        true
    }

    fn fast_event(&mut self, node: NodeId, event: Event) {
        let now = self.now;
        match event {
            Event::Learned { access_point, .. } => {
                let Some((_, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) else { return };
                if fast.wanted == Some(access_point) {
                    fast.wanted = None;
                    fast.is_prepared = fast.agent.prepare(now, access_point);
                }
            }
            Event::Prepared { new } => {
                self.note(node, None, Note::Handover("prepared"), format_args!("for {new}"));
                if let Some((_, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) {
                    fast.may_be_ready = true;
                }
            }
            Event::Attached { interface, new, router } => {
                self.fast_arrived(node, interface, new, router.prefix)
            }
            Event::AddressReplaced { old, new } => {
                let Some((_, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) else { return };
                let Some(interface) = fast.arrived else { return };
                self.fast_lost(node, interface, old);
                self.fast_arrived(node, interface, new, Prefix::new(new, Ipv6Plan::PREFIX_LEN));
            }
            Event::Returned => self.note(node, None, Note::Handover("returned"), format_args!("")),
            Event::TunnelEnded => self.note(node, None, Note::Handover("tunnel-ended"), format_args!("")),
            Event::Failed(why) => {
                self.note(node, None, Note::Handover("not-prepared"), format_args!("{why:?}"));
            }
            // The messages themselves are in the trace, nothing triggers here, and the agent counts what it drops.
            Event::UpdateSent { .. } | Event::Triggered { .. } | Event::Dropped { .. } => {}
        }
    }

    /// The mobile node has announced itself on the new link: it has its address there.
    fn fast_arrived(&mut self, node: NodeId, interface: InterfaceId, new: Ipv6Addr, prefix: Prefix) {
        let now = self.now;
        let way = self.way_of(node, interface);
        let Some(host) = self.ipv6(node) else { return };
        let is_new = host.addresses.insert(new);
        if let Some((mobile, fast)) = host.fast_mobile() {
            (fast.arrived, fast.may_be_ready) = (Some(interface), true);
            mobile.set_forwarded(fast.is_forwarded());
        }
        let address = InterfaceAddress { address: new, prefix, valid_for: None };
        host.handle_input(now, Input::AddressAdded { interface, address });
        if is_new {
            self.note(node, way, Note::Handover("address-acquired"), format_args!("{new}"));
            self.handover_has_address(node, interface);
        }
    }

    /// Once the mobile node is on the new link and the tunnel is there, packets go both ways, whatever its home agent knows.
    fn fast_path_is_ready(&mut self, node: NodeId) {
        let Some((mobile, fast)) = self.ipv6(node).and_then(Ipv6Host::fast_mobile) else { return };
        let Some(interface) = fast.arrived.filter(|_| fast.agent.is_prepared()) else { return };
        let new = mobile.path_properties(interface);
        self.on_path(node, true);
        self.assist_handed_over(node, interface, new);
        self.handover_is_ready(node, interface);
    }

    /// An address that the mobile node had beforehand is none any longer.
    fn fast_lost(&mut self, node: NodeId, interface: InterfaceId, address: Ipv6Addr) {
        let now = self.now;
        let way = self.way_of(node, interface);
        let Some(host) = self.ipv6(node) else { return };
        if host.addresses.remove(&address) {
            host.handle_input(now, Input::AddressRemoved { interface, address });
            self.note(node, way, Note::Handover("address-lost"), format_args!("{address}"));
        }
    }

    /// The link at an interface has gone: with it an address that neighbor discovery had not formed itself yet.
    pub(super) fn fast_link_lost(&mut self, node: NodeId, interface: InterfaceId) {
        let Agent::Ipv6(host) = &self.node(node).agent else { return };
        let point = host.fast.as_ref().and_then(|fast| fast.plan.at(interface));
        if let Some(address) = point.map(|point| point.router.care_of) {
            self.fast_lost(node, interface, address);
        }
    }
}
