//! Carries one mobility agent on this host.

mod agent;
mod announcements;
mod assist_events;
mod assists;
mod data_plane;
mod decisions;
mod error;
mod error_reports;
mod event_queue;
mod hooks;
mod host_changes;
mod interfaces;
mod mobile_routes;
mod neighbourhood;
mod parameters;
mod passed;
mod paths;
mod persistence;
mod questions;
mod reactions;
mod reading;
mod setup;
mod signalling;
mod snapshot;
mod status;
mod tunnel_device;
mod tunnel_entry;
mod tunnel_errors;
mod turn;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_base::{Instant, Randomness};
use careof_lab::{Clock, NetlinkMonitor};
use careof_mobility::v4::{DeliveryMethod, Event, InterfaceId, MobileNode, Notice, PathProperties, Transmit};

pub use assist_events::{AssistEvent, AssistNews, PacketDeed};
pub use error::Error;
pub use hooks::{BindingStore, Hooks, ParameterChange, ParameterLog, StoreError, TimeOfDay};
pub use setup::{Device, ForeignSetup, HomeNetwork, HomeSetup, HostOptions, MobileSetup, Setup};
pub use status::{
    AgentCounters, AssistDeed, AssistFlowStatus, AssistStatus, BindingStatus, HandoverStatus,
    InterfaceStatus, PathStatus, RegistrationStatus, Role, Status, StoreStatus, TunnelStatus, VisitorStatus,
};

#[cfg(test)]
pub(crate) use status::AssistOverview;
pub(crate) use status::Overview;

use agent::Agent;
use announcements::Announcements;
use assists::Assists;
use data_plane::DataPlane;
use decisions::Decisions;
use event_queue::EventQueue;
use host_changes::HostChanges;
use interfaces::Interfaces;
use neighbourhood::Neighbourhood;
use parameters::Parameters;
use persistence::Persistence;
use questions::Questions;
use reading::Reading;
use signalling::Signalling;
use turn::Waiting;

/// One mobility agent on this host, in the network namespace of the thread that opened it.
///
/// It is driven from outside, by whichever thread: wait until its descriptor is readable ([`AsFd`]; it nests in any
/// `epoll` or `poll`), call [`Carrier::turn`], take what [`Carrier::poll_event`] has. Timers make the descriptor
/// readable, too. After a command ([`Carrier::switch_to`], [`Carrier::release`], [`Carrier::deregister`]) nothing more
/// need be called.
///
/// What it changed in the host - routes, rules, addresses, neighbours, kernel parameters - is put back by
/// [`Carrier::close`], or as far as possible when it is dropped. What a killed agent left is replaced by the next
/// one with the same [`HostOptions`]; for kernel parameters it needs [`Hooks::parameters`].
#[derive(Debug)]
pub struct Carrier {
    agent: Agent,
    setup: Setup,
    clock: Clock,
    opened: Instant,
    time_of_day: Option<hooks::Reading>,
    random: Randomness,
    interfaces: Interfaces,
    host: HostChanges,
    parameters: Parameters,
    signalling: Signalling,
    neighbourhood: Neighbourhood,
    data: DataPlane,
    decisions: Decisions,
    /// Index of the tunnel device.
    tunnel: u32,
    announcements: Announcements,
    persistence: Persistence,
    events: EventQueue,
    monitor: NetlinkMonitor,
    waiting: Waiting,
    /// What the agent has to say, until the end of the turn.
    outgoing: Vec<Transmit>,
    /// Mobile node: the kernel's routing follows the policy table, from the first registration to the end of the
    /// service.
    in_service: bool,
    /// Mobile node: the owner has ended the service.
    leaving: bool,
    /// Mobile node: it is at home and answers ARP for its home address.
    answers_arp: bool,
    /// Foreign agent: on which interface a visitor was last put.
    visitors_on: BTreeMap<Ipv4Addr, u32>,
    /// Something has happened to the agent or the host's interfaces since the host was brought in line with it;
    /// packets that are carried are nothing of the kind.
    stirred: bool,
    /// Mobile node: what is in the kernel's routing.
    wishes: mobile_routes::Wishes,
    /// Home and foreign agent: its addresses that the host does not have.
    missing: Vec<Ipv4Addr>,
    /// How reading the host goes.
    reading: Reading,
    /// Mobile node: when to ask the kernel about links.
    questions: Questions,
    /// Times that changes of the network came faster than they were read.
    overruns: u64,
    closed: bool,
}

impl Carrier {
    /// Opens sockets and the tunnel device, installs what the agent needs in the host, and starts the agent: a home
    /// agent with the bindings from its store, a mobile node with the interfaces and addresses it finds.
    ///
    /// A home agent has its bindings, and what it must not accept again, before this returns: no request is judged without them.
    /// Their routes and proxied addresses are put into the host a portion a turn; [`Carrier::is_restoring`] says whether some
    /// are missing. Bindings that are taken back are in the [status](Carrier::status) and no events.
    ///
    /// `clock` is the one that all instants are of; `random` feeds the agent, and is secret where strangers are about.
    ///
    /// # Errors
    /// [`Error`]; nothing is left behind then.
    pub fn open(
        setup: Setup,
        clock: Clock,
        random: impl Into<Randomness>,
        hooks: Hooks,
    ) -> Result<Self, Error> {
        check(&setup)?;
        let mut random = random.into();
        let Hooks { store, parameters, time_of_day } = hooks;
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
        let mut data = DataPlane::open(tun, role, setup.host().path_mtu_floor, setup.host().tunnel_mtu)?;
        data.assists = assistance(&setup)?;
        // First, so that no advertisement is read whose frame was not seen: the agent is found once, and only then its link
        // address is asked for.
        let neighbourhood = Neighbourhood::open(role)?;
        let signalling = Signalling::open(role)?;
        let waiting = Waiting::new(&monitor, &signalling, &data)?;
        let decisions = match role {
            Role::Home => Decisions::by_destination(),
            Role::Foreign => Decisions::by_source(),
            Role::Mobile => Decisions::of_mobile_node(),
        };
        let mut carrier = Self {
            interfaces: Interfaces::new(&setup),
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

    /// Whether a part of what a former life had in the host is still to be put there.
    #[must_use]
    pub const fn is_restoring(&self) -> bool {
        self.host.is_settling()
    }

    /// How many bindings were taken back from the store when the agent was opened.
    #[must_use]
    pub const fn restored(&self) -> u64 {
        self.persistence.restored
    }

    /// The next thing the agent tells, and when it happened. A bounded number is kept; what was lost beyond is
    /// counted as `events-lost`.
    pub fn poll_event(&mut self) -> Option<(Instant, Event)> {
        self.events.pop()
    }

    /// From now on what assists do is kept for [`Carrier::poll_assist_event`].
    pub fn watch_assists(&mut self) {
        if let Some(assists) = &mut self.data.assists {
            assists.events.watch();
        }
    }

    /// The next thing that assists did, and when, if they are [watched](Carrier::watch_assists). A bounded number is
    /// kept; what was lost beyond is counted as `assist-events-lost`.
    pub fn poll_assist_event(&mut self) -> Option<(Instant, AssistEvent)> {
        self.data.assists.as_mut()?.events.pop()
    }

    /// The interface that the agent's events call `id`.
    #[must_use]
    pub fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        self.interfaces.get(id).map(|interface| interface.device.name.as_str())
    }

    /// Mobile node: moves to `interface`; see `MobileNode::switch_to`. The kernel is asked about the links and addresses first:
    /// whoever has just brought the interface up may say so before the kernel does.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`], [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn switch_to(&mut self, interface: &str, notice: Notice) -> Result<(), Error> {
        let id = self.id_of(interface)?;
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

    /// Mobile node: `interface`, left by a handover, need not be listened to any longer.
    ///
    /// # Errors
    /// As [`Carrier::switch_to`].
    pub fn release(&mut self, interface: &str) -> Result<(), Error> {
        let id = self.id_of(interface)?;
        self.command("release an interface", |node, now| node.release(now, id))
    }

    /// Mobile node: somebody says that the path in use ends within some time, and that packets go by `interface` then. Only
    /// assists are told, who may take their measures; it may be wrong.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`], or what [`Carrier::turn`] says.
    pub fn announce_handover(&mut self, interface: &str, within: Duration) -> Result<(), Error> {
        let id = self.id_of(interface)?;
        if let Setup::Mobile(setup) = &self.setup {
            let new = setup.config.interfaces.iter().find(|known| known.id == id);
            let new = new.map(|known| known.path).unwrap_or_default();
            let mobile = setup.config.home_address.into();
            return self.tell_assist(&careof_assist::Input::Announced { mobile, within, new });
        }
        self.finish_turn()
    }

    /// Home and foreign agent: as [`Carrier::announce_handover`], for the mobile node with this home address, which will be
    /// reached by a path with these properties.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn announce_departure(
        &mut self,
        mobile: Ipv4Addr,
        within: Duration,
        new: PathProperties,
    ) -> Result<(), Error> {
        self.tell_assist(&careof_assist::Input::Announced { mobile: mobile.into(), within, new })
    }

    /// Home agent: whether packets reach this care-of address, from somebody who knows - as the link layer does where the
    /// address is on a link of this host. Only assists are told.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn care_of_reachable(&mut self, care_of: Ipv4Addr, reachable: bool) -> Result<(), Error> {
        use careof_assist::Input::{LinkDown, LinkUp};
        let path = decisions::path_to(care_of);
        self.tell_assist(&if reachable { LinkUp { path } } else { LinkDown { path } })
    }

    /// Home and foreign agent: ends the bindings of a mobile node, or forgets it as a visitor, and returns how many entries that
    /// were. It is not told, and may register again.
    ///
    /// # Errors
    /// [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn drop_mobile_node(&mut self, home_address: Ipv4Addr) -> Result<usize, Error> {
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

    fn tell_assist(&mut self, input: &careof_assist::Input<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        if let Some(assists) = &mut self.data.assists {
            assists.handle_event(now, input);
        }
        self.finish_turn()
    }

    /// Mobile node: traffic by some link has stopped, or there is another reason to doubt it: the kernel is asked about all of the
    /// configuration's interfaces, as it may not have told yet, or not tell at all. Cheap, and no more than some twenty times a second
    /// however often this is called; the answer is taken in in this turn, or when it may be asked again. Nothing for other agents.
    ///
    /// # Errors
    /// What [`Carrier::turn`] says.
    pub fn ask_links(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if matches!(self.agent, Agent::Mobile(_)) {
            self.questions.ask(now);
            self.ask_again(now)?;
        }
        self.finish_turn()
    }

    /// Mobile node: asks the home agent to forget all bindings. It is done when [`Carrier::is_registered`] says no;
    /// then the host's own routes hold again.
    ///
    /// # Errors
    /// [`Error::NotForThisRole`], or what [`Carrier::turn`] says.
    pub fn deregister(&mut self) -> Result<(), Error> {
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

    fn id_of(&self, interface: &str) -> Result<InterfaceId, Error> {
        let named = self.interfaces.named().iter().find(|named| named.device.name == interface);
        named
            .map(|named| named.device.id)
            .ok_or_else(|| Error::UnknownInterface { name: interface.to_owned() })
    }

    /// Mobile node: whether packets to the home address arrive. Others are never registered.
    #[must_use]
    pub fn is_registered(&self) -> bool {
        matches!(&self.agent, Agent::Mobile(node) if node.is_registered())
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.agent.role()
    }

    /// Goes on with another configuration of the same role. A home agent keeps its bindings, as far as the new
    /// configuration allows them; a foreign agent that changes forgets its visitors and says so by the sequence
    /// number of its advertisements; a mobile node that changes registers anew.
    ///
    /// # Errors
    /// [`Error`]; the agent goes on with the old configuration. [`Error::NeedsRestart`] where what is laid down at
    /// the start was to change: [`HostOptions`], the interfaces, the home address.
    pub fn reconfigure(&mut self, setup: Setup) -> Result<(), Error> {
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
        self.change_assists(now, setup)?;
        self.agent = agent;
        self.host.is_unhurried = true;
        self.take_restored(now);
        self.forget_agent(homes);
        self.host.is_unhurried = false;
        self.interfaces.forget_addresses();
        self.install()?;
        self.tell_interfaces(now);
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
        same("the interfaces", self.setup.devices() == setup.devices())?;
        same("the home address", self.setup.home_address() == setup.home_address())
    }

    /// Puts back what was changed in the host, and ends. A mobile node that is to say good-bye does so before, by
    /// [`Carrier::deregister`].
    ///
    /// # Errors
    /// What could not be put back; the rest has been.
    pub fn close(mut self) -> Result<(), Error> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<(), Error> {
        if self.closed {
            return Ok(());
        }
        self.closed = true;
        let host = self.host.undo(self.tunnel);
        let parameters = self.parameters.undo();
        Ok(host.and(parameters)?)
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        // Nobody can be told here; `close` tells.
        let _ = self.put_back();
    }
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

/// Ends a carrier as the kernel ends a killed process: its descriptors are closed, and nothing is put back.
///
/// For tests of what the next one makes of it.
#[doc(hidden)]
pub fn abandon(mut carrier: Carrier) {
    carrier.closed = true;
}

/// Has the next attempts to read the host's interfaces and addresses fail, as when the kernel's answer cannot be
/// understood, or changes faster than it is read.
///
/// For tests of how an agent goes on.
#[doc(hidden)]
pub fn refuse_readings(carrier: &mut Carrier, attempts: u32) {
    carrier.reading.refuse(attempts);
}

/// The assists that a setup asks for.
fn assistance(setup: &Setup) -> Result<Option<Box<Assists>>, Error> {
    let Some(config) = setup.assist() else { return Ok(None) };
    let (own, mtu) = (setup.own_address(), setup.host().tunnel_mtu);
    Ok(Some(Box::new(Assists::new(config.clone(), own, mtu)?)))
}

/// Whether names and numbers of interfaces fit together, and the assists to the agent.
pub(crate) fn check(setup: &Setup) -> Result<(), Error> {
    let devices = setup.devices();
    for (at, device) in devices.iter().enumerate() {
        let earlier = devices.iter().take(at);
        if earlier.into_iter().any(|other| other.id == device.id || other.name == device.name) {
            return Err(Error::DoubleInterface { name: device.name.clone() });
        }
    }
    let named = |id: InterfaceId| {
        let is_named = devices.iter().any(|device| device.id == id);
        if is_named { Ok(()) } else { Err(Error::UnnamedInterface { number: id.0 }) }
    };
    if let Some(assist) = setup.assist() {
        assist.check()?;
        let place = match setup {
            Setup::Home(_) => careof_assist::Place::HomeAgent,
            Setup::Foreign(_) => careof_assist::Place::ForeignAgent,
            Setup::Mobile(_) => careof_assist::Place::MobileNode,
        };
        if assist.place != place {
            return Err(Error::AssistElsewhere);
        }
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
            wanted.iter().try_for_each(|interface| named(interface.id))?;
            if let Some(device) = devices.iter().find(|device| wanted.iter().all(|w| w.id != device.id)) {
                return Err(Error::UnknownInterface { name: device.name.clone() });
            }
            mobile_routes::check(setup)
        }
    }
}

// A carrier may be opened in one thread and driven by another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<Carrier>();
};
