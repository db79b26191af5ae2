//! Carries one agent of Mobile IPv4 on this host.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_base::{Instant, Randomness};
use careof_lab::{Clock, NetlinkMonitor};
use careof_mobility::multipath::alliance::ClusterKey;
use careof_mobility::v4::{DeliveryMethod, Event, InterfaceId, MobileNode, Notice, Transmit};

use super::agent::Agent;
use super::announcements::Announcements;
use super::assists::Assists;
use super::cluster::{ClusterEvent, Membership};
use super::data_plane::DataPlane;
use super::decisions::Decisions;
use super::event_queue::EventQueue;
use super::host_changes::HostChanges;
use super::interfaces::Interfaces;
use super::multipath::{Bonds, keys_of};
use super::neighbourhood::Neighbourhood;
use super::parameters::Parameters;
use super::persistence::Persistence;
use super::questions::Questions;
use super::reading::Reading;
use super::signalling::Signalling;
use super::turn::Waiting;
use super::{
    Error, HomeNetwork, HomeSetup, Hooks, MobileSetup, Role, Setup, check_devices, check_named, hooks,
    mobile_routes, tunnel_device,
};

/// One agent of Mobile IPv4 on this host; see [`Carrier`](super::Carrier).
#[derive(Debug)]
pub(super) struct Ipv4Carrier {
    pub(super) agent: Agent,
    pub(super) setup: Setup,
    pub(super) clock: Clock,
    pub(super) opened: Instant,
    pub(super) time_of_day: Option<hooks::Reading>,
    pub(super) random: Randomness,
    pub(super) interfaces: Interfaces,
    pub(super) host: HostChanges,
    pub(super) parameters: Parameters,
    pub(super) signalling: Signalling,
    pub(super) neighbourhood: Neighbourhood,
    /// Mobile node: the cluster whose relays it uses.
    pub(super) cluster: Option<Box<Membership>>,
    pub(super) data: DataPlane,
    pub(super) decisions: Decisions,
    /// Index of the tunnel device.
    pub(super) tunnel: u32,
    pub(super) announcements: Announcements,
    pub(super) persistence: Persistence,
    pub(super) events: EventQueue,
    pub(super) monitor: NetlinkMonitor,
    pub(super) waiting: Waiting,
    /// What the agent has to say, until the end of the turn.
    pub(super) outgoing: Vec<Transmit>,
    /// Mobile node: the kernel's routing follows the policy table, from the first registration to the end of the
    /// service.
    pub(super) in_service: bool,
    /// Mobile node: the owner has ended the service.
    pub(super) leaving: bool,
    /// Mobile node: it is at home and answers ARP for its home address.
    pub(super) answers_arp: bool,
    /// Foreign agent: on which interface a visitor was last put.
    pub(super) visitors_on: BTreeMap<Ipv4Addr, u32>,
    /// Something has happened to the agent or the host's interfaces since the host was brought in line with it;
    /// packets that are carried are nothing of the kind.
    pub(super) stirred: bool,
    /// Mobile node: what is in the kernel's routing.
    pub(super) wishes: mobile_routes::Wishes,
    /// Home and foreign agent: its addresses that the host does not have.
    pub(super) missing: Vec<IpAddr>,
    /// How reading the host goes.
    pub(super) reading: Reading,
    /// Mobile node: when to ask the kernel about links.
    pub(super) questions: Questions,
    /// Times that changes of the network came faster than they were read.
    pub(super) overruns: u64,
    pub(super) closed: bool,
}

impl Ipv4Carrier {
    pub(super) fn open(
        setup: Setup,
        clock: Clock,
        random: impl Into<Randomness>,
        hooks: Hooks,
    ) -> Result<Self, Error> {
        check(&setup)?;
        let mut random = random.into();
        let Hooks { store, parameters, time_of_day, .. } = hooks;
        let time_of_day = time_of_day.map(hooks::Reading);
        let now = clock.now();
        let wall_clock = hooks::wall_clock(time_of_day.as_ref(), now);
        let agent = Agent::new(now, &setup, wall_clock, random.branch())?;
        let role = agent.role();
        let mut host = HostChanges::open()?;
        // Before anything is read, so that no change falls in between.
        let monitor = NetlinkMonitor::open_beside(host.netlink())?;
        let mut parameters = Parameters::open(setup.host().set_kernel_parameters, parameters)?;
        let (tun, tunnel) = tunnel_device::make(&setup, &mut host, &mut parameters)?;
        // Only now: who has the device has no living agent beside it whose routes these could be.
        let main_rule = mobile_routes::main_rule(setup.host());
        host.remove_remains(setup.host(), |rule| *rule == main_rule)?;
        let mut data = DataPlane::open(tun, role, setup.host().path_mtu_floor, setup.tunnel_mtu())?;
        data.bonds = bonds(&setup, &mut random)?;
        data.assists = assistance(&setup)?;
        // First, so that no advertisement is read whose frame was not seen: the agent is found once, and only then its link
        // address is asked for.
        let neighbourhood = Neighbourhood::open(role)?;
        let signalling = Signalling::open(role)?;
        let cluster = membership(&setup, time_of_day.as_ref(), &mut random)?;
        let waiting = Waiting::new(&monitor, &signalling, cluster.as_deref(), &data)?;
        let decisions = match role {
            Role::Home | Role::AnchorPoint | Role::AccessRouter | Role::Relay => Decisions::by_destination(),
            Role::Foreign => Decisions::by_source(),
            Role::Mobile | Role::Correspondent => Decisions::of_mobile_node(),
        };
        let mut carrier = Self {
            interfaces: Interfaces::new(setup.devices(), setup.home_address()),
            agent,
            setup,
            clock,
            opened: now,
            time_of_day,
            random,
            host,
            parameters,
            signalling,
            neighbourhood,
            cluster,
            data,
            decisions,
            tunnel,
            announcements: Announcements::open()?,
            persistence: Persistence::new(store),
            events: EventQueue::default(),
            monitor,
            waiting,
            outgoing: Vec::new(),
            in_service: false,
            leaving: false,
            answers_arp: false,
            visitors_on: BTreeMap::new(),
            stirred: true,
            wishes: mobile_routes::Wishes::default(),
            missing: Vec::new(),
            reading: Reading::default(),
            questions: Questions::default(),
            overruns: 0,
            closed: false,
        };
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

    pub(super) const fn is_restoring(&self) -> bool {
        self.host.is_settling()
    }

    pub(super) const fn restored(&self) -> u64 {
        self.persistence.restored
    }

    pub(super) fn poll_event(&mut self) -> Option<(Instant, Event)> {
        self.events.pop()
    }

    pub(super) fn bonds(&mut self) -> Option<&mut Bonds> {
        self.data.bonds.as_deref_mut()
    }

    pub(super) fn poll_cluster_event(&mut self) -> Option<(Instant, ClusterEvent)> {
        self.cluster.as_mut()?.events.pop()
    }

    pub(super) fn assists(&mut self) -> Option<&mut Assists> {
        self.data.assists.as_deref_mut()
    }

    pub(super) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        let own = self.interfaces.get(id).map(|interface| interface.device.name.as_str());
        own.or_else(|| self.cluster.as_ref()?.interface_name(id))
    }

    pub(super) fn switch_to(&mut self, interface: &str, notice: Notice) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        self.leaving = false;
        if matches!(self.agent, Agent::Mobile(_)) {
            let now = self.clock.now();
            self.look_at_links(now)?;
            self.read_addresses(now);
            self.tell_received_data(now);
        }
        self.command("switch to an interface", |node, now| {
            // It has this interface: every device is one of its configuration.
            let _ = node.switch_to(now, id, notice);
        })
    }

    pub(super) fn release(&mut self, interface: &str) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        self.command("release an interface", |node, now| node.release(now, id))
    }

    pub(super) fn announce_handover(&mut self, interface: &str, within: Duration) -> Result<(), Error> {
        let id = self.interfaces.id_named(interface)?;
        if let Setup::Mobile(setup) = &self.setup {
            let new = setup.config.interfaces.iter().find(|known| known.id == id);
            let new = new.map(|known| known.path).unwrap_or_default();
            let mobile = setup.config.home_address.into();
            return self.tell_assists_of(&careof_assist::Input::Announced { mobile, within, new });
        }
        self.finish_turn()
    }

    pub(super) fn drop_mobile_node(&mut self, home_address: Ipv4Addr) -> Result<usize, Error> {
        let now = self.clock.now();
        self.read_clock(now);
        let dropped = match &mut self.agent {
            Agent::Home(agent) => agent.drop_bindings(now, home_address),
            Agent::Foreign(agent) => usize::from(agent.drop_visitor(now, home_address)),
            Agent::Mobile(_) => {
                let role = self.agent.role().name();
                return Err(Error::NotForThisRole { what: "drop bindings or visitors", role });
            }
        };
        self.drain(now);
        self.finish_turn()?;
        Ok(dropped)
    }

    pub(super) fn tell_assists_of(&mut self, input: &careof_assist::Input<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(assists) = &mut self.data.assists {
            assists.handle_event(now, input);
        }
        self.finish_turn()
    }

    pub(super) fn ask_links(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if matches!(self.agent, Agent::Mobile(_)) {
            self.questions.ask(now);
            self.ask_again(now)?;
        }
        self.finish_turn()
    }

    pub(super) fn deregister(&mut self) -> Result<(), Error> {
        self.leaving = true;
        self.command("deregister", MobileNode::deregister)
    }

    fn command(
        &mut self,
        what: &'static str,
        command: impl FnOnce(&mut MobileNode, Instant),
    ) -> Result<(), Error> {
        let role = self.agent.role().name();
        let now = self.clock.now();
        self.read_clock(now);
        let Agent::Mobile(node) = &mut self.agent else {
            return Err(Error::NotForThisRole { what, role });
        };
        command(node, now);
        self.drain(now);
        self.finish_turn()
    }

    pub(super) fn is_registered(&self) -> bool {
        matches!(&self.agent, Agent::Mobile(node) if node.is_registered())
    }

    pub(super) const fn role(&self) -> Role {
        self.agent.role()
    }

    pub(super) fn reconfigure(&mut self, setup: Setup) -> Result<(), Error> {
        check(&setup)?;
        self.check_same_foundations(&setup)?;
        let now = self.clock.now();
        if self.setup.is_same(&setup) {
            return self.change_assists(now, setup);
        }
        let wall_clock = self.read_clock(now);
        // Of its own: one that takes another's place must not draw the same again.
        let mut agent = Agent::new(now, &setup, wall_clock, self.random.branch())?;
        let mut homes = Vec::new();
        match (&self.agent, &mut agent) {
            (Agent::Home(old), Agent::Home(new)) => {
                homes.extend(old.bindings().map(|binding| binding.home_address));
                let Setup::Home(before) = &self.setup else { return Ok(()) };
                let served = before.config.mobile_nodes.iter().map(|node| node.home_address);
                for record in served.filter_map(|home_address| old.record(now, home_address)) {
                    new.restore(now, &record);
                    self.persistence.note(record.home_address);
                }
            }
            (Agent::Foreign(old), _) => homes.extend(old.visitors().map(|visitor| visitor.home_address)),
            _ => {}
        }
        let keys = path_keys(&setup);
        self.change_assists(now, setup)?;
        if let Some(bonds) = &mut self.data.bonds {
            bonds.set_keys(keys);
        }
        self.agent = agent;
        self.host.is_unhurried = true;
        self.take_restored(now);
        self.forget_agent(homes);
        self.host.is_unhurried = false;
        self.interfaces.forget_addresses();
        self.install()?;
        self.tell_interfaces(now);
        let relays = self.cluster.as_ref().map(|cluster| cluster.in_use()).unwrap_or_default();
        self.tell_of_relays(now, &relays);
        self.read_network(now)?;
        self.finish_turn()
    }

    /// Takes over another setup as far as assists are concerned. Those that stay as they are go on; others begin anew, and
    /// what the old ones held back goes its way.
    fn change_assists(&mut self, now: Instant, setup: Setup) -> Result<(), Error> {
        if setup.assist() != self.setup.assist() {
            let mut new = assistance(&setup)?;
            if let Some(old) = &mut self.data.assists {
                old.close();
            }
            self.data.drive_assists(now, &mut self.decisions)?;
            if let (Some(old), Some(new)) = (&mut self.data.assists, &mut new) {
                new.events = std::mem::take(&mut old.events);
            }
            self.data.assists = new;
            self.setup = setup;
            self.tell_assists_all(now);
            self.stirred = true;
        } else {
            self.setup = setup;
        }
        Ok(())
    }

    fn check_same_foundations(&self, setup: &Setup) -> Result<(), Error> {
        let (from, to) = (self.setup.role(), setup.role());
        if from != to {
            return Err(Error::RoleChanged { from: from.name(), to: to.name() });
        }
        let same = |what, is_same: bool| if is_same { Ok(()) } else { Err(Error::NeedsRestart { what }) };
        same("the tunnel device, tables and priorities", self.setup.host() == setup.host())?;
        same("[multipath]", self.setup.same_multipath(setup))?;
        same("the interfaces", self.setup.devices() == setup.devices())?;
        same("the home address", self.setup.home_address() == setup.home_address())
    }

    /// Has nothing put back when it is dropped.
    pub(super) const fn abandon(&mut self) {
        self.closed = true;
    }

    pub(super) const fn refuse_readings(&mut self, attempts: u32) {
        self.reading.refuse(attempts);
    }

    /// Puts back what was changed in the host.
    pub(super) fn put_back(&mut self) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let now = self.clock.now();
        self.cluster.iter_mut().for_each(|cluster| cluster.leave(now));
        let host = self.host.undo(self.tunnel);
        let parameters = self.parameters.undo();
        Ok(host.and(parameters)?)
    }
}

impl Drop for Ipv4Carrier {
    fn drop(&mut self) {
        // Nobody can be told here; `close` tells.
        let _ = self.put_back();
    }
}

impl AsFd for Ipv4Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

/// The assists that a setup asks for.
fn assistance(setup: &Setup) -> Result<Option<Box<Assists>>, Error> {
    let Some(config) = setup.assist() else { return Ok(None) };
    let (own, mtu) = (setup.own_address(), setup.tunnel_mtu());
    Ok(Some(Box::new(Assists::new(config.clone(), own.into(), mtu)?)))
}

/// The tunnels over several paths that a setup is for.
fn bonds(setup: &Setup, random: &mut Randomness) -> Result<Option<Box<Bonds>>, Error> {
    let Some(multipath) = setup.multipath() else { return Ok(None) };
    let is_mobile = setup.role() == Role::Mobile;
    let bonds = Bonds::open(multipath.clone(), path_keys(setup), is_mobile, random.branch())?;
    Ok(Some(Box::new(bonds)))
}

/// Mobile node: the cluster that a setup is for.
fn membership(
    setup: &Setup,
    time_of_day: Option<&hooks::Reading>,
    random: &mut Randomness,
) -> Result<Option<Box<Membership>>, Error> {
    let (Setup::Mobile(MobileSetup { config, .. }), Some(several)) = (setup, setup.multipath()) else {
        return Ok(None);
    };
    let Some(cluster) = &several.cluster else { return Ok(None) };
    let counter = hooks::nanoseconds(time_of_day);
    Ok(Some(Box::new(Membership::open(cluster, config, counter, random.branch())?)))
}

/// The keys of messages about paths, for each mobile node.
fn path_keys(setup: &Setup) -> BTreeMap<Ipv4Addr, Vec<ClusterKey>> {
    match setup {
        Setup::Home(HomeSetup { config, .. }) => {
            let nodes = config.mobile_nodes.iter();
            nodes.filter_map(|node| keys_of(node.home_address, &node.security)).collect()
        }
        Setup::Mobile(MobileSetup { config, .. }) => {
            let own = keys_of(config.home_address, std::slice::from_ref(&config.security));
            own.into_iter().collect()
        }
        Setup::Foreign(_) => BTreeMap::new(),
    }
}

/// Whether names and numbers of interfaces fit together, and the assists to the agent.
pub(crate) fn check(setup: &Setup) -> Result<(), Error> {
    let devices = setup.devices();
    check_devices(devices)?;
    let named = |id: InterfaceId| check_named(devices, id);
    if let Some(assist) = setup.assist() {
        let place = match setup {
            Setup::Home(_) => careof_assist::Place::HomeAgent,
            Setup::Foreign(_) => careof_assist::Place::ForeignAgent,
            Setup::Mobile(_) => careof_assist::Place::MobileNode,
        };
        super::check_assist(assist, place)?;
        if let Setup::Mobile(MobileSetup { config, .. }) = setup
            && config.policy.default_method() != DeliveryMethod::ReverseTunnel
        {
            return Err(Error::AssistWithoutTunnel);
        }
    }
    match setup {
        Setup::Home(HomeSetup { home_network: HomeNetwork::Routed, config, .. }) => {
            if config.advertisements.is_some() { named(config.home_interface) } else { Ok(()) }
        }
        Setup::Home(setup) => named(setup.config.home_interface),
        Setup::Foreign(setup) => setup.config.links.iter().try_for_each(|link| named(link.interface)),
        Setup::Mobile(setup) => {
            let wanted = &setup.config.interfaces;
            wanted
                .iter()
                .filter(|interface| !interface.relay)
                .try_for_each(|interface| named(interface.id))?;
            let cluster = setup.multipath.cluster.as_ref().map(|cluster| &cluster.interface);
            if let Some(name) = cluster.filter(|name| devices.iter().any(|device| device.name == **name)) {
                return Err(Error::DoubleInterface { name: name.clone() });
            }
            if let Some(device) = devices.iter().find(|device| wanted.iter().all(|w| w.id != device.id)) {
                return Err(Error::UnknownInterface { name: device.name.clone() });
            }
            mobile_routes::check(setup)
        }
    }
}
