//! Carries one node of Mobile IPv6 on this host: a home agent, a mobility anchor point, a mobile node or a correspondent node.
//!
//! The kernel knows neither the Home Address option nor the type 2 routing header, and answers both with a Parameter Problem. So these
//! headers are written and read here, around packets that the kernel sends into the tunnel device or takes from it:
//!
//! - *Home agent.* Its addresses are on no interface; packets for them, and for mobile nodes that are away, are routed into the tunnel
//!   device, whole, and answers are written there. On a home link the kernel answers neighbor solicitations for all of them.
//! - *Mobility anchor point* (RFC 5380). It is a home agent of regional care-of addresses. What comes for one may be in a tunnel of the
//!   mobile node's home agent.
//! - *Mobile node.* The home address is on the tunnel device. Tunnels are a raw socket of protocol 41. Packets with a type 2 routing
//!   header or a Mobility Header come by a packet socket, and a [`PacketGuard`] keeps them from the kernel. Regional care-of addresses are
//!   on no interface: only what is in the tunnel of a mobility anchor point has them.
//! - *IPv4* (RFC 5555). What comes for a home agent's IPv4 address and for IPv4 home addresses goes the same ways, and a mobile node has raw
//!   sockets for tunnels with IPv4 outside or inside, and one of UDP for messages from a network that has only IPv4.
//! - *Access router* (RFC 5568). Packets for a mobile node that is between two links are routed into the tunnel device, for as long as the
//!   agent has something to do with them; all others pass in the kernel.
//! - *Correspondent node.* Packets to a home address with a binding are routed into the tunnel device, from which they go on with a type
//!   2 routing header; those with a Home Address option come by the packet socket.

mod access_router;
mod agent;
mod anchor_points;
mod assists;
mod at_home;
mod behind;
mod bindings;
mod care_of;
mod carry;
mod commands;
mod detection;
mod dual_stack;
mod errors;
mod fast_handover;
mod home_agent;
mod home_link;
mod mobile;
mod neighbours;
mod network_changes;
mod own_address;
mod packets;
mod reconfigure;
mod routers;
mod routes;
mod setup;
mod solicitations;
mod status;
mod timed_addresses;
mod tunnels;
mod unsolicited;
mod waiting;
mod ways;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::{Instant, Randomness};
use careof_lab::{
    AddressOptions, Clock, Frame, GuardedPacket, Icmpv6Socket, IpVersion, Ipv6PacketSender, Ipv6PacketWatch,
    Ipv6TunnelSocket, NetlinkMonitor, OffloadTun, PacketGuard, Route,
};
use careof_mobility::v6::{Event, Input, MobileNodeRecord, RegistrationStep, Transmit};
use careof_mobility::{HandoverEvent, InterfaceId};
use careof_wire::ipv6::ReassemblyLimits;

pub use setup::{
    AccessPointSetup, FastHandoverSetup, Ipv6AccessRouterSetup, Ipv6AnchorPointSetup, Ipv6CorrespondentSetup,
    Ipv6HierarchicalMobileSetup, Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup,
};
pub use status::{Ipv6BindingStatus, Ipv6InterfaceStatus, Ipv6RegistrationStatus, Ipv6Status};

use super::alarm::Alarm;
use super::assists::Assists;
use super::error_reports::RateLimit;
use super::event_queue::EventQueue;
use super::host_changes::HostChanges;
use super::interfaces::Interfaces;
use super::mobile_routes::Wishes;
use super::parameters::Parameters;
use super::persistence::Persistence;
use super::questions::Questions;
use super::reading::Reading;
use super::{Error, Hooks, hooks};
use access_router::Kept;
use agent::Agent;
use at_home::AtHome;
use behind::HomesBehind;
use care_of::CareOfAddresses;
use carry::{Carried, Fragments, Ipv4Fragments, LONGEST, Sockets};
use fast_handover::FastMobile;
use home_link::HomeLink;
use routers::Routers;
use routes::MobileRouting;
use solicitations::Solicitations;
use tunnels::Tunnels;
use waiting::{Source, Waiting};

/// Rounds of an agent that wants to be woken at once; it is woken again in the next turn.
const WAKES_A_TURN: usize = 16;
/// Packets that wait in the kernel while the carrier does something else.
const QUEUE: u32 = 1000;
/// The largest MTU of a device, so that routes alone say what is too long.
const DEVICE_MTU: u16 = u16::MAX;

/// One node of Mobile IPv6 on this host.
#[derive(Debug)]
pub(super) struct Ipv6Carrier {
    agent: Agent,
    setup: Ipv6Setup,
    clock: Clock,
    opened: Instant,
    time_of_day: Option<hooks::Reading>,
    random: Randomness,
    interfaces: Interfaces,
    host: HostChanges,
    parameters: Parameters,
    tun: OffloadTun,
    /// `None` only while it is being emptied.
    frame: Option<Frame>,
    /// Index of the tunnel device.
    device: u32,
    sockets: Sockets,
    /// Home agent: its addresses, of which the first is its own.
    own: Vec<Ipv6Addr>,
    /// Home agent: the link of the home network, if it has one.
    home_link: Option<HomeLink>,
    fragments: Fragments,
    ipv4_fragments: Ipv4Fragments,
    /// Mobile node: the IPv4 home address that is on the tunnel device, and the bits of its prefix.
    ipv4_on_device: Option<(Ipv4Addr, u8)>,
    /// Of the last header of IPv4 that was written.
    identification: u16,
    /// Room for what is received, and for a packet on its way with other headers.
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    /// Room for a packet in the inner one of two tunnels.
    nested: Vec<u8>,
    carried: Carried,
    /// What has passed in each tunnel.
    tunnels: Tunnels,
    /// Home agent: what it must remember across a restart.
    persistence: Persistence<MobileNodeRecord>,
    /// `None`: packets go their way.
    assists: Option<Box<Assists>>,
    /// Room for a packet that they are shown.
    shown: Vec<u8>,
    /// Access router: the packets that it keeps.
    kept: Kept,
    /// Mobile node: its part in fast handovers.
    fast: Option<Box<FastMobile>>,
    /// Mobility anchor point: the home addresses of the mobile nodes it serves, where assists follow their flows.
    behind: HomesBehind,
    /// ICMPv6 errors that may be sent.
    limit: RateLimit,
    events: EventQueue<Event>,
    monitor: NetlinkMonitor,
    waiting: Waiting,
    alarm: Alarm,
    /// What the agent has to say, until the end of the turn.
    outgoing: Vec<Transmit>,
    /// Mobile node: the routers of its links, and its addresses there.
    routers: Routers,
    addresses: CareOfAddresses,
    solicitations: Solicitations,
    /// Mobile node: default routes that the kernel has.
    defaults: Vec<Route>,
    /// Mobile node: what is in the kernel's routing.
    wishes: Wishes,
    /// Mobile node: applications use the home address, from the first registration to the end of the service.
    in_service: bool,
    /// Mobile node: its home address on the home link.
    at_home: AtHome,
    /// Mobile node: the owner has ended the service.
    leaving: bool,
    /// Correspondent node: its address, while the host does not have it.
    missing: Vec<IpAddr>,
    reading: Reading,
    questions: Questions,
    /// Mobile node: routers that the kernel found unreachable.
    unreachable_routers: u64,
    /// Times that changes of the network came faster than they were read.
    overruns: u64,
    /// Messages of the agent that could not be sent.
    unsent: u64,
    /// Times that a socket had something to tell and no message.
    unreadable: u64,
    closed: bool,
}

impl Ipv6Carrier {
    pub(super) fn open(
        setup: Ipv6Setup,
        clock: Clock,
        random: impl Into<Randomness>,
        hooks: Hooks,
    ) -> Result<Self, Error> {
        check(&setup)?;
        let mut random = random.into();
        let Hooks { ipv6_store, parameters, time_of_day, .. } = hooks;
        let time_of_day = time_of_day.map(hooks::Reading);
        let now = clock.now();
        let wall_clock = hooks::wall_clock(time_of_day.as_ref(), now);
        let mut host = HostChanges::open()?;
        let agent = Agent::new(now, &setup, wall_clock, random.branch())?;
        let fast = FastMobile::new(&setup, wall_clock, random.branch())?;
        own_address::check(&setup, &mut host)?;
        // Before anything is read, so that no change falls in between.
        let monitor = if setup.is_dual_stack() {
            NetlinkMonitor::open_beside_for_both(host.netlink())?
        } else {
            NetlinkMonitor::open_beside_for(IpVersion::V6, host.netlink())?
        };
        let mut parameters = Parameters::open(setup.host().set_kernel_parameters, parameters)?;
        let (tun, device) = make_device(&setup, &mut host, &mut parameters)?;
        // Only now: who has the device has no living agent beside it whose routes these could be.
        let shared = [
            routes::main_rule(setup.host()),
            routes::ipv4_main_rule(setup.host()),
            routes::marked_rule(setup.host()),
            routes::from_device_rule(setup.host()),
        ];
        host.remove_remains(setup.host(), |rule| shared.contains(rule))?;
        let sockets = Sockets::open(&setup)?;
        let (waiting, alarm) = (Waiting::new()?, Alarm::new()?);
        waiting.add(Source::Timer, alarm.as_fd())?;
        waiting.add(Source::Monitor, monitor.as_fd())?;
        waiting.add(Source::Device, tun.as_fd())?;
        sockets.add_to(&waiting)?;
        let home_link = home_link::open(&setup)?;
        if let Some(link) = &home_link {
            waiting.add(Source::HomeLink, link.as_fd())?;
        }
        let own = own_address::of_home_agent(&setup);
        let assists = assists::assistance(&setup)?;
        let addresses = CareOfAddresses::new(setup.takes_ipv4());
        let mut carrier = Self {
            interfaces: Interfaces::new(setup.devices(), None),
            agent,
            setup,
            clock,
            opened: now,
            time_of_day,
            random,
            host,
            parameters,
            tun,
            frame: Some(Frame::new()),
            device,
            sockets,
            own,
            home_link,
            fragments: Fragments::new(ReassemblyLimits::default()),
            ipv4_fragments: Ipv4Fragments::new(ReassemblyLimits::default()),
            ipv4_on_device: None,
            identification: 0,
            buffer: vec![0; LONGEST],
            scratch: Vec::new(),
            nested: Vec::new(),
            carried: Carried::default(),
            tunnels: Tunnels::default(),
            persistence: Persistence::new(ipv6_store),
            assists,
            shown: Vec::new(),
            behind: HomesBehind::default(),
            kept: Kept::default(),
            fast,
            limit: RateLimit::new(),
            events: EventQueue::default(),
            monitor,
            waiting,
            alarm,
            outgoing: Vec::new(),
            routers: Routers::default(),
            addresses,
            solicitations: Solicitations::default(),
            defaults: Vec::new(),
            wishes: Wishes::default(),
            in_service: false,
            at_home: AtHome::default(),
            leaving: false,
            missing: Vec::new(),
            reading: Reading::default(),
            questions: Questions::default(),
            unreachable_routers: 0,
            overruns: 0,
            unsent: 0,
            unreadable: 0,
            closed: false,
        };
        carrier.watch_neighbours()?;
        carrier.install()?;
        carrier.restore(now)?;
        carrier.read_network(now)?;
        if let Some(error) = carrier.reading.take_problem() {
            // There is no earlier state to go on with, and somebody waits to be told.
            return Err(error.into());
        }
        carrier.finish_turn()?;
        carrier.parameters.restore_remains();
        match carrier.host.last_refusal.take() {
            Some(error) => Err(error.into()),
            None => Ok(carrier),
        }
    }

    /// What an agent needs in the host from the start.
    fn install(&mut self) -> Result<(), Error> {
        if let Some(side) = self.setup.home_side() {
            self.parameters.forward_ipv6()?;
            for route in routes::of_home_agent(&side, &self.own, self.device) {
                self.host.set_route(route);
            }
            self.host.set_rule(routes::home_addresses_rule(side.host));
        } else if let Ipv6Setup::Correspondent(setup) = &self.setup {
            self.host.set_rule(routes::marked_rule(&setup.host));
            self.host.set_rule(routes::home_addresses_rule(&setup.host));
        } else if let Ipv6Setup::AccessRouter(setup) = &self.setup {
            self.parameters.forward_ipv6()?;
            self.host.set_rule(routes::from_device_rule(&setup.host));
            self.host.set_rule(routes::marked_rule(&setup.host));
            self.host.set_rule(routes::home_addresses_rule(&setup.host));
        }
        self.install_ipv4()
    }

    /// See [`Carrier::turn`](super::Carrier::turn).
    pub(super) fn turn(&mut self) -> Result<(), Error> {
        let ready = self.waiting.ready()?;
        let now = self.clock.now();
        self.read_clock(now);
        if ready.has(Source::Timer) {
            self.alarm.acknowledge();
        }
        if ready.has(Source::Monitor) {
            self.take_changes(now)?;
        }
        if ready.has(Source::Icmp) {
            self.take_icmp(now)?;
        }
        if ready.has(Source::HomeLink) {
            self.take_neighbours(now);
        }
        self.read_again(now)?;
        self.ask_again(now)?;
        self.look_at_new_care_of(now);
        self.wake(now)?;
        // The reply has left, and nothing has been read yet that could overtake what is due.
        self.drive_assists(now);
        if ready.has(Source::Watch) {
            self.take_watched(now)?;
        }
        if ready.has(Source::Tunnel) {
            self.take_tunnelled(now)?;
        }
        if ready.has(Source::Udp) {
            self.take_udp(now);
        }
        if ready.has(Source::Ipv6InIpv4) {
            self.take_ipv6_in_ipv4(now);
        }
        if ready.has(Source::Ipv4InIpv4) {
            self.take_ipv4_in_ipv4(now);
        }
        if ready.has(Source::Ipv4InIpv6) {
            self.take_ipv4_in_ipv6(now);
        }
        if ready.has(Source::Device) {
            self.take_own(now)?;
        }
        self.settle(now);
        self.rest(now)
    }

    /// Ends what is not a turn of its own.
    fn finish_turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        self.drain(now);
        self.wake(now)?;
        self.settle(now);
        self.drive_assists(now);
        self.rest(now)
    }

    fn read_clock(&mut self, now: Instant) {
        self.agent.set_clock(hooks::wall_clock(self.time_of_day.as_ref(), now));
    }

    /// Does what is due.
    fn wake(&mut self, now: Instant) -> Result<(), Error> {
        for _ in 0..WAKES_A_TURN {
            if self.agent.next_timeout().is_none_or(|at| at > now) {
                break;
            }
            if self.agent.probes_next() {
                // Where nothing comes any longer the carrier may be gone, and the kernel may not have told.
                self.questions.ask(now);
            }
            self.tell_received_data(now);
            self.agent.handle_timeout(now);
            self.drain(now);
        }
        if let Some(assists) = &mut self.assists {
            assists.wake(now);
        }
        if let Some(fast) = &mut self.fast {
            fast.wake(now);
        }
        self.drain(now);
        let lost = self.routers.expire(now);
        self.tell_routers(now, lost);
        self.solicit(now);
        if self.fragments.0.next_timeout().is_some_and(|at| at <= now) {
            self.fragments.0.handle_timeout(now);
        }
        if self.ipv4_fragments.0.next_timeout().is_some_and(|at| at <= now) {
            self.ipv4_fragments.0.handle_timeout(now);
        }
        self.wake_neighbours(now);
        Ok(())
    }

    /// Brings the host in line with the agent, writes down what must not be lost, and only then sends what it has to say.
    fn settle(&mut self, now: Instant) {
        self.leave_home_link();
        if let Some(setup) = self.setup.mobile() {
            let routing = MobileRouting {
                setup,
                interfaces: &self.interfaces,
                addresses: &self.addresses,
                routers: &self.routers,
                defaults: &self.defaults,
                device: self.device,
                in_service: self.in_service,
                at_home: self.at_home.link(),
                ipv4_home: self.ipv4_home_in_use(),
                announced: self.fast.as_ref().and_then(|fast| fast.announced_there()),
            };
            let wishes = routing.wishes();
            if wishes != self.wishes {
                self.host.set_all(wishes.routes.clone(), wishes.rules.clone());
                self.wishes = wishes;
            }
        }
        self.host.proceed();
        if let Agent::Home(agent) = &self.agent {
            self.persistence.save(now, |home_address| agent.record(now, home_address));
        }
        let mut outgoing = std::mem::take(&mut self.outgoing);
        for transmit in outgoing.drain(..) {
            self.send(now, &transmit);
        }
        self.outgoing = outgoing;
        self.come_home();
    }

    /// Says when to come again.
    fn rest(&mut self, now: Instant) -> Result<(), Error> {
        let others = [
            self.host.is_settling().then_some(now),
            self.persistence.next_timeout(),
            self.reading.next_timeout(),
            self.questions.next_timeout(),
            self.routers.next_timeout(),
            self.solicitations.next_timeout(),
            self.fragments.0.next_timeout(),
            self.ipv4_fragments.0.next_timeout(),
            self.assists.as_ref().and_then(|assists| assists.next_timeout()),
            self.home_link.as_ref().and_then(|link| link.next_timeout(now)),
            self.at_home.next_timeout(),
            self.fast.as_ref().and_then(|fast| fast.next_timeout()),
            self.fast.as_ref().and_then(|fast| fast.next_look(now)),
        ];
        let agent = self.agent.next_timeout();
        let next = agent.into_iter().chain(others.into_iter().flatten()).min();
        Ok(self.alarm.arm(now, next)?)
    }

    /// Hands the agent an input, and takes what it has to say.
    fn tell_agent(&mut self, now: Instant, input: Input<'_>) {
        self.tell_received_data(now);
        self.agent.handle_input(now, input);
        self.drain(now);
    }

    fn drain(&mut self, now: Instant) {
        // An update may end a binding and make another one: what counts is where it ends.
        let mut moved = BTreeMap::new();
        // What an event is answered with may be followed by others.
        loop {
            while let Some(transmit) = self.agent.poll_transmit(now) {
                self.outgoing.push(transmit);
            }
            if self.drain_access_router(now) || self.drain_fast_handover(now) {
                continue;
            }
            let Some(event) = self.agent.poll_event() else { break };
            self.react(now, &event);
            self.tell_assists(now, &event, &mut moved);
            self.events.push(now, event);
        }
        for (mobile, told) in moved {
            self.tell_paths(now, mobile, &told);
        }
        self.tell_handed_over(now);
    }

    fn react(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Binding(change) => {
                if matches!(self.agent, Agent::Home(_)) {
                    self.persistence.note(change.home_address);
                }
                self.binding_changed(now, change.home_address);
                self.forget_tunnels(change.home_address);
            }
            &Event::ReverseTunnelEnded { home_address } => self.forget_tunnels(home_address),
            Event::Registration(event) => {
                if let RegistrationStep::AcknowledgementSent { .. } = event.step
                    && matches!(self.agent, Agent::Home(_))
                {
                    self.persistence.note(event.home_address);
                }
            }
            Event::Handover(event) => {
                if let HandoverEvent::Registered { to, .. } = event {
                    self.in_service = true;
                    self.fast_registered(now, *to);
                }
                let interfaces = &self.interfaces;
                let name = |id| interfaces.get(id).map(|interface| interface.device.name.clone());
                self.events.note_handover(now, event, name);
            }
            &Event::Neighbor(event) => self.neighbor_event(now, event),
            &Event::Ipv4HomeAddress { outcome } => self.ipv4_home_told(outcome),
            _ => {}
        }
    }

    fn binding_changed(&mut self, now: Instant, home_address: Ipv6Addr) {
        self.ipv4_binding_changed(now, home_address);
        let options = self.setup.host();
        let route = routes::into_device(options, home_address, self.device);
        let (is_bound, source) = match (&self.agent, &self.setup) {
            (Agent::Home(agent), _) => (!agent.tunnels(home_address).is_empty(), None),
            (Agent::Correspondent(node), Ipv6Setup::Correspondent(setup)) => {
                (node.bindings_of(home_address).next().is_some(), Some(IpAddr::V6(setup.config.address)))
            }
            (Agent::Mobile(node), _) => {
                if self.leaving && !node.is_registered() {
                    self.in_service = false;
                }
                return;
            }
            _ => return,
        };
        if is_bound {
            self.host.set_route(Route { source, ..route });
            if source.is_some() {
                self.host.redirect(&route);
            }
        } else if let Some(table) = route.table {
            self.host.unset_route(table, home_address, route.prefix_length);
        }
    }

    pub(super) fn is_registered(&self) -> bool {
        // Who takes leave does so of the mobility anchor point, too.
        matches!(&self.agent, Agent::Mobile(node) if node.is_registered() || self.leaving && node.map().is_some())
    }

    pub(super) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        self.interfaces.get(id).map(|interface| interface.device.name.as_str())
    }

    pub(super) const fn setup(&self) -> &Ipv6Setup {
        &self.setup
    }

    pub(super) const fn is_restoring(&self) -> bool {
        self.host.is_settling()
    }

    pub(super) fn poll_event(&mut self) -> Option<(Instant, Event)> {
        self.events.pop()
    }

    pub(super) fn refuse_readings(&mut self, attempts: u32) {
        self.reading.refuse(attempts);
    }

    /// Has nothing put back when it is dropped.
    pub(super) const fn abandon(&mut self) {
        self.closed = true;
    }

    /// Puts back what was changed in the host.
    pub(super) fn put_back(&mut self) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        self.at_home.forget_link();
        self.leave_home_link();
        self.drop_new_care_of(None);
        let host = self.host.undo(self.device);
        let parameters = self.parameters.undo();
        Ok(host.and(parameters)?)
    }
}

impl Drop for Ipv6Carrier {
    fn drop(&mut self) {
        // Nobody can be told here; `close` tells.
        let _ = self.put_back();
    }
}

impl AsFd for Ipv6Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

/// Makes the tunnel device, ready to be used; returns it with its index.
fn make_device(
    setup: &Ipv6Setup,
    host: &mut HostChanges,
    parameters: &mut Parameters,
) -> Result<(OffloadTun, u32), Error> {
    let name = &setup.host().tunnel_device;
    // Super-packets of IPv6 would have to be cut behind headers that the device does not know.
    let tun = OffloadTun::open_plain(name)?;
    let netlink = host.netlink();
    let index = netlink.index_of(name)?;
    // There is no router behind it, and nobody to talk to from a link-local address.
    for (parameter, value) in [("disable_ipv6", "0"), ("accept_ra", "0"), ("addr_gen_mode", "1")] {
        parameters.set(&format!("ipv6/conf/{name}/{parameter}"), value)?;
    }
    if setup.is_dual_stack() {
        parameters.prepare_tunnel_device(name, setup.home_side().is_some())?;
    }
    netlink.set_mtu(index, DEVICE_MTU)?;
    netlink.set_transmit_queue(index, QUEUE)?;
    if let Some(home_address) = setup.home_address() {
        let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
        netlink.add_address_as(options, index, home_address.into(), 128)?;
    }
    netlink.set_up(index)?;
    Ok((tun, index))
}

/// Whether names and numbers of interfaces fit together.
pub(super) fn check(setup: &Ipv6Setup) -> Result<(), Error> {
    super::check_devices(setup.devices())?;
    if let Some(assist) = setup.assist() {
        let place = match setup.mobile() {
            Some(_) => careof_assist::Place::MobileNode,
            None => careof_assist::Place::HomeAgent,
        };
        super::check_assist(assist, place)?;
    }
    if let Some(side) = setup.home_side().filter(|side| side.home_link.is_some()) {
        return super::check_named(setup.devices(), side.interface);
    }
    if let Ipv6Setup::AccessRouter(setup) = setup {
        return access_router::check(setup);
    }
    if let Ipv6Setup::HierarchicalMobile(setup) = setup
        && setup.mobile.fast_handover.is_some()
    {
        let (one, other) = ("a mobility anchor point", "fast handovers");
        return Err(careof_mobility::ConfigError::Incompatible(one, other).into());
    }
    let Some(setup) = setup.mobile() else { return Ok(()) };
    for wanted in &setup.config.interfaces {
        super::check_named(&setup.devices, wanted.id)?;
    }
    let is_wanted = |id| setup.config.interfaces.iter().any(|wanted| wanted.id == id);
    match setup.devices.iter().find(|device| !is_wanted(device.id)) {
        Some(device) => Err(Error::UnknownInterface { name: device.name.clone() }),
        None => routes::check(setup),
    }
}
