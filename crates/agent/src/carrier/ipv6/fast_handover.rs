//! Mobile node: its part in fast handovers (RFC 5568), beside its registrations.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use careof_assist::PathId;
use careof_base::{Instant, Randomness};
use careof_lab::AddressOptions;
use careof_mobility::v6::fast_handover::{Event, Failure, FastHandover, RouterInfo};
use careof_mobility::v6::{Delivery, Input, Prefix};
use careof_mobility::{InterfaceId, WallClock};
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Message;

use super::agent::Agent;
use super::mobile::Mobile;
use super::{AccessPointSetup, Error, FastHandoverSetup, Ipv6Carrier, Ipv6Setup};

/// Between two looks at whether the kernel takes packets for a new address. It tells a moment before.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Bits of the prefix of a link on which addresses are formed.
const PREFIX_LEN: u8 = 64;

/// An announcement on a new link (UNA).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) interface: InterfaceId,
    /// The new care-of address.
    pub(super) address: Ipv6Addr,
    /// The global address of the new access router.
    pub(super) router: Ipv6Addr,
}

/// An address that an interface was given before the kernel would have formed it.
#[derive(Clone, Copy, Debug)]
struct Assigned {
    interface: InterfaceId,
    index: u32,
    address: Ipv6Addr,
    /// The kernel takes packets for it, and the node may say that it is there: what waits for it comes at once.
    is_local: bool,
}

/// What runs beside a mobile node.
#[derive(Debug)]
pub(super) struct FastMobile {
    agent: FastHandover,
    setup: FastHandoverSetup,
    /// The interface by which it is registered.
    current: Option<InterfaceId>,
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
    /// What it has announced on the link that it came to last.
    announced_there: Option<Announced>,
    /// It has come to the link of this interface and knows nothing of the router there: it goes on when it has an address.
    unannounced: Option<InterfaceId>,
    /// It may have become true, and was not told yet, that packets go both ways by the new link.
    may_be_ready: bool,
    /// When it was ready on which interface, until somebody asks.
    handed_over: Option<(Instant, InterfaceId)>,
    /// The previous care-of address of the handover under way, or of the last one.
    previous: Option<Ipv6Addr>,
    /// The address that it has given an interface beforehand.
    assigned: Option<Assigned>,
    prepared: u64,
    announced: u64,
    failed: u64,
}

impl FastMobile {
    pub(super) fn new(
        setup: &Ipv6Setup,
        clock: WallClock,
        random: Randomness,
    ) -> Result<Option<Box<Self>>, Error> {
        let Some(setup) = setup.mobile().and_then(|mobile| mobile.fast_handover.clone()) else {
            return Ok(None);
        };
        let mut config = setup.config.clone();
        config.clock = clock;
        Ok(Some(Box::new(Self {
            agent: FastHandover::new(config, random)?,
            setup: *setup,
            current: None,
            wanted: None,
            is_prepared: false,
            gone_as: None,
            is_misled: false,
            arrived: None,
            announced_there: None,
            unannounced: None,
            may_be_ready: false,
            handed_over: None,
            previous: None,
            assigned: None,
            prepared: 0,
            announced: 0,
            failed: 0,
        })))
    }

    fn at(&self, interface: InterfaceId) -> Option<&AccessPointSetup> {
        self.setup.access_points.iter().find(|point| point.router.interface == interface)
    }

    pub(super) fn wake(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.agent.handle_timeout(now);
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.agent.next_timeout().map(|(at, _)| at)
    }

    /// Whether the kernel is still to take packets for the new care-of address.
    fn is_settling(&self) -> bool {
        self.assigned.is_some_and(|assigned| !assigned.is_local)
    }

    /// When to look again whether it does.
    pub(super) fn next_look(&self, now: Instant) -> Option<Instant> {
        self.is_settling().then_some(now + LOOK_AGAIN)
    }

    pub(super) fn counts(&self) -> [(&'static str, u64); 3] {
        [
            ("handovers-prepared", self.prepared),
            ("handovers-announced", self.announced),
            ("handovers-not-prepared", self.failed),
        ]
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

    /// What routers say on a link.
    pub(super) fn hear(&mut self, now: Instant, input: Input<'_>) {
        self.agent.handle_input(now, input);
    }

    /// The previous care-of address, if a tunnel that begins at `entry` is that of the previous access router.
    pub(super) fn previous_behind(&self, entry: Ipv6Addr) -> Option<Ipv6Addr> {
        self.previous.filter(|_| self.agent.accepts_tunnel_from(entry))
    }

    /// What holds on the link that the node has come to, although its router perhaps has not been heard there.
    pub(super) const fn announced_there(&self) -> Option<Announced> {
        self.announced_there
    }

    /// How the mobile node sends while the new care-of address is not registered: as from the previous one, through a tunnel back to the
    /// previous access router.
    pub(super) fn way_back(&self, node: &Mobile, destination: Ipv6Addr) -> Option<Delivery> {
        let interface = self.arrived?;
        let delivery = node.delivery_from_previous(destination)?;
        let addresses = delivery.addresses;
        let previous = addresses.tunnel.map_or(addresses.source, |tunnel| tunnel.entry);
        let outermost = self.agent.reverse_tunnel(previous)?;
        Some(Delivery { interface, addresses: addresses.through_map(outermost), via: None })
    }

    /// A handover to the link of this interface is announced: what is behind the access point there is to be known.
    pub(super) fn announced(&mut self, now: Instant, interface: InterfaceId) {
        let Some(station) = self.at(interface).map(|point| point.station) else { return };
        if self.agent.access_point(station).is_none() {
            self.agent.discover(now, &[station]);
        }
    }

    /// The handover is near: the present router is to send packets on.
    pub(super) fn prepare(&mut self, now: Instant, interface: InterfaceId) {
        self.announced(now, interface);
        let Some(station) = self.at(interface).map(|point| point.station) else { return };
        self.is_prepared = self.agent.prepare(now, station);
        self.wanted = (!self.is_prepared).then_some(station);
    }

    /// The handover does not come.
    pub(super) fn call_off(&mut self, now: Instant) {
        self.wanted = None;
        if std::mem::take(&mut self.is_prepared) {
            self.agent.returned(now);
        }
    }

    /// The link layer has brought the node to a link, and it has no other.
    fn attached(&mut self, now: Instant, interface: InterfaceId) {
        let (Some(current), Some(point)) = (self.current, self.at(interface).cloned()) else { return };
        self.left();
        let new = self.agent.prospective(point.station);
        self.is_misled = self.gone_as.take().is_some_and(|gone_as| new.is_some_and(|new| new != gone_as));
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
        if std::mem::take(&mut self.is_prepared) {
            self.gone_as = self.agent.new_care_of();
        }
    }
}

impl Ipv6Carrier {
    /// The mobile node is registered by an interface: handovers go from there.
    pub(super) fn fast_registered(&mut self, now: Instant, interface: InterfaceId) {
        let (Some(fast), Agent::Mobile(node)) = (&mut self.fast, &mut self.agent) else { return };
        let is_new = fast.current.replace(interface) != Some(interface);
        (fast.arrived, fast.unannounced) = (None, None);
        node.set_forwarded(false);
        self.fast_go_from(now, interface, is_new);
    }

    /// The router of a link has been heard anew. It may be the one that the mobile node is registered at, before it was heard.
    pub(super) fn fast_router_heard(&mut self, now: Instant, interface: InterfaceId) {
        if self.fast.as_ref().is_some_and(|fast| fast.current == Some(interface)) {
            self.fast_go_from(now, interface, true);
            self.drain(now);
        }
    }

    /// Handovers go from the router of this link; asks it what is nearby if that is `wanted`.
    fn fast_go_from(&mut self, now: Instant, interface: InterfaceId, wanted: bool) {
        let (Some(fast), Agent::Mobile(node)) = (&mut self.fast, &self.agent) else { return };
        let (Some(mut router), Some(care_of)) =
            (fast.at(interface).map(|point| point.router.clone()), node.care_of())
        else {
            return;
        };
        router.care_of = care_of;
        let heard = self.routers.first_hop(interface, care_of);
        router.link_local = heard.unwrap_or(router.link_local);
        fast.agent.set_current(now, router);
        // One that has not been heard cannot be asked yet.
        if wanted && heard.is_some() {
            fast.agent.discover(now, &[]);
        }
    }

    /// A link of the mobile node has come, or has gone.
    pub(super) fn fast_link(&mut self, now: Instant, interface: InterfaceId, up: bool) {
        let (Some(fast), Agent::Mobile(node)) = (&mut self.fast, &self.agent) else { return };
        let is_up = |id: InterfaceId| {
            let known = self.interfaces.get(id);
            known.is_some_and(|known| known.is_up()) && (up || id != interface)
        };
        if !up {
            fast.arrived = fast.arrived.filter(|arrived| *arrived != interface);
            fast.announced_there = fast.announced_there.filter(|there| there.interface != interface);
            fast.unannounced = fast.unannounced.filter(|arrived| *arrived != interface);
        }
        // While it can be reached where it is registered nobody has to send anything on.
        let is_reachable = node.active_interface().is_none_or(is_up);
        let is_back = up && fast.current == Some(interface);
        let others = self.interfaces.named().iter().map(|one| one.device.id);
        let there = if up { Some(interface) } else { others.into_iter().find(|id| is_up(*id)) };
        let is_known = there.is_some() && (fast.arrived == there || fast.unannounced == there);
        match there.filter(|_| (is_back || !is_reachable) && !is_known) {
            Some(there) => fast.attached(now, there),
            None if !up => fast.left(),
            None => {}
        }
        self.drain(now);
    }

    /// The mobile node has an address on a link of whose router it knew nothing before.
    pub(super) fn fast_address(&mut self, now: Instant, interface: InterfaceId, new: Ipv6Addr) {
        let Some(fast) = &mut self.fast else { return };
        if fast.unannounced != Some(interface) {
            return;
        }
        fast.unannounced = None;
        let Some(point) = fast.at(interface) else { return };
        let (address, station) = (point.router.address, Some(point.station));
        let router =
            RouterInfo { address, link_layer_address: station, prefix: Prefix::new(address, PREFIX_LEN) };
        fast.agent.configured(now, interface, router, new);
        self.drain(now);
    }

    /// Takes out what the mobile node's part has to say and to tell; whether there was anything.
    pub(super) fn drain_fast_handover(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some(event) = self.fast.as_mut().and_then(|fast| fast.agent.poll_event()) {
            any = true;
            self.fast_event(now, event);
        }
        let is_settling = self.fast.as_ref().is_some_and(|fast| fast.is_settling());
        while !is_settling
            && let Some(transmit) = self.fast.as_mut().and_then(|fast| fast.agent.poll_transmit(now))
        {
            any = true;
            self.outgoing.push(transmit);
        }
        any
    }

    /// Once the mobile node is on the new link and the tunnel is there, packets go both ways, whatever its home agent knows: its assists
    /// are told, behind what it tells of the handover itself.
    pub(super) fn tell_handed_over(&mut self, now: Instant) {
        let (Some(fast), Agent::Mobile(node)) = (&mut self.fast, &self.agent) else { return };
        if !std::mem::take(&mut fast.may_be_ready) {
            return;
        }
        let Some(interface) = fast.arrived.filter(|_| fast.agent.is_prepared()) else { return };
        fast.handed_over = Some((now, interface));
        if let (Some(assists), Some(mobile)) = (&mut self.assists, self.setup.home_address()) {
            let (mobile, path) = (mobile.into(), PathId::Interface(interface));
            let new = node.path_properties(interface);
            assists.handle_event(now, &careof_assist::Input::HandedOver { mobile, path, new });
        }
    }

    /// When and to which interface access routers have handed the mobile node over, once.
    pub(in crate::carrier) fn take_handed_over(&mut self) -> Option<(Instant, InterfaceId)> {
        self.fast.as_mut()?.handed_over.take()
    }

    fn fast_event(&mut self, now: Instant, event: Event) {
        let (Some(fast), Agent::Mobile(node)) = (&mut self.fast, &mut self.agent) else { return };
        match event {
            Event::Learned { access_point, .. } => {
                if fast.wanted == Some(access_point) {
                    fast.wanted = None;
                    fast.is_prepared = fast.agent.prepare(now, access_point);
                }
            }
            Event::UpdateSent { .. } => {
                let new = fast.agent.new_care_of();
                fast.previous = node.care_of().filter(|previous| Some(*previous) != new).or(fast.previous);
            }
            Event::Prepared { .. } => {
                fast.prepared += 1;
                fast.may_be_ready = true;
            }
            Event::Attached { interface, new, router } => {
                fast.announced += 1;
                (fast.arrived, fast.may_be_ready) = (Some(interface), true);
                fast.announced_there = Some(Announced { interface, address: new, router: router.address });
                fast.previous = node.care_of().filter(|previous| *previous != new).or(fast.previous);
                node.set_forwarded(fast.setup.is_buffered && !fast.is_misled);
                self.take_new_care_of(now, interface, new);
            }
            Event::AddressReplaced { new, .. } => {
                let Some(interface) = fast.arrived else { return };
                if let Some(there) = &mut fast.announced_there {
                    there.address = new;
                }
                self.drop_new_care_of(Some(interface));
                self.take_new_care_of(now, interface, new);
            }
            Event::Failed(Failure::AddressRefused(_)) => {
                fast.failed += 1;
                let arrived = fast.arrived.take();
                fast.unannounced = arrived;
                if arrived.is_some() {
                    self.drop_new_care_of(arrived);
                    self.read_addresses(now);
                }
            }
            Event::Failed(_) => fast.failed += 1,
            // Nobody triggers here, and the agent counts what it drops.
            Event::Triggered { .. } | Event::Returned | Event::TunnelEnded | Event::Dropped { .. } => {}
        }
    }

    /// The mobile node has announced itself on the new link: it has its address there, before a router is heard and without
    /// detection, which the new router has seen to.
    fn take_new_care_of(&mut self, now: Instant, interface: InterfaceId, new: Ipv6Addr) {
        let Some(index) = self.interfaces.index_of(interface) else { return };
        let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
        let added = self.host.netlink().add_address_as(options, index, IpAddr::V6(new), PREFIX_LEN);
        match (added, &mut self.fast) {
            (Ok(careof_lab::Effect::Changed), Some(fast)) => {
                fast.assigned = Some(Assigned { interface, index, address: new, is_local: false });
                return self.look_at_new_care_of(now);
            }
            // The kernel has it still from when the node was on this link before.
            (Ok(_), _) => {}
            (Err(_), _) => self.unsent += 1,
        }
        self.read_addresses(now);
    }

    /// Goes on once the kernel takes packets for the address that an interface was given beforehand. It sees to that in a thread of its own.
    pub(super) fn look_at_new_care_of(&mut self, now: Instant) {
        let assigned = self.fast.as_mut().and_then(|fast| fast.assigned.as_mut());
        let Some(assigned) = assigned.filter(|assigned| !assigned.is_local) else { return };
        // Where the kernel does not say nothing is won by waiting.
        assigned.is_local = self.host.netlink().is_local(assigned.address).unwrap_or(true);
        if assigned.is_local {
            self.read_addresses(now);
            self.drain(now);
        }
    }

    /// Takes an address away again that an interface was given beforehand: of this link, or of any.
    pub(super) fn drop_new_care_of(&mut self, of: Option<InterfaceId>) {
        let Some(fast) = &mut self.fast else { return };
        let is_of = |assigned: &mut Assigned| of.is_none_or(|of| of == assigned.interface);
        if let Some(Assigned { index, address, .. }) = fast.assigned.take_if(is_of)
            && self.host.netlink().remove_address(index, IpAddr::V6(address), PREFIX_LEN).is_err()
        {
            // It has gone with the interface.
            self.unsent += 1;
        }
    }
}
