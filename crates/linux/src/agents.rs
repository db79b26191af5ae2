//! The mobility agents of a run, each carried on its host by a thread of its own.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use careof_agent::{
    AnySetup, Carrier, Device, ForeignSetup, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup,
    RelayFaults, RelaySetup, Setup, Status, spoil_relay,
};
use careof_base::{Duration, Instant, RandomStream};
use careof_lab::{Clock, Error, Host};
use careof_mobility::v4::{HandoverEvent, Notice, PathProperties};
use careof_mobility::{v4, v6};
use careof_plan::{AgentPlan, NodeId, RelayPlan, Topology};
use careof_scenario::Scenario;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::cells::DOMAIN_DEVICE;
use crate::error::WorldError;
use crate::multipath;
use crate::report::{AgentEvent, Report};

/// What an agent is told.
enum Command {
    /// Mobile node: go to the interface with this index and name.
    SwitchTo(usize, String, Notice),
    /// Mobile node: a handover to the interface of this name is announced, which may not come.
    Announce(String, Duration),
    /// Mobile node: the handover to the interface of this name is near.
    Prepare(String),
    /// Mobile node: the handover that was prepared does not come.
    CallOff,
    /// Agent: the path to the mobile node of this home address is announced to end, and what the next one is like.
    AnnounceDeparture(IpAddr, Duration, PathProperties),
    /// Home agent and access router: whether packets reach a care-of address that is on a link of its host.
    Reachable(IpAddr, bool),
    /// Say what you are doing, and end.
    Stop(Sender<Status>),
}

/// An agent at work.
pub(crate) struct AgentThread {
    pub(crate) node: NodeId,
    commands: Sender<Command>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// What an agent needs to be carried on the host of `node`.
///
/// `None` for what no [`Carrier`] carries; a scenario that has it was refused.
pub(crate) fn setup(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
    plan: AgentPlan,
) -> Option<Setup> {
    let place = topology.place(node);
    let cell = place.cell.map(|cell| Device::new(cell.interface.0, DOMAIN_DEVICE));
    // What stands for a relay is no path of the node's own.
    let is_own = |index: usize| match &plan {
        AgentPlan::Mobile(config) => {
            !config.interfaces.iter().any(|one| usize::from(one.id.0) == index && one.relay)
        }
        _ => true,
    };
    let devices = place
        .interfaces
        .iter()
        .enumerate()
        .filter(|(index, _)| is_own(*index))
        .map(|(index, interface)| {
            let link = &scenario.links[interface.out.0 as usize / 2];
            Device::new(index as u16, link.name.clone())
        })
        .chain(cell)
        .collect();
    let host = host_options(scenario);
    let assist = careof_plan::assists(scenario, topology, node);
    Some(match plan {
        AgentPlan::Home(config) => {
            let has_link = scenario.mobility.as_ref().is_some_and(|mobility| mobility.home.is_some());
            let home_network = if has_link { HomeNetwork::Link } else { HomeNetwork::Routed };
            Setup::Home(HomeSetup {
                config: *config,
                devices,
                home_network,
                host,
                assist,
                multipath: multipath::setup(scenario, topology, run, node),
            })
        }
        AgentPlan::Foreign(config) => Setup::Foreign(ForeignSetup { config: *config, devices, host, assist }),
        AgentPlan::Mobile(config) => {
            let multipath = multipath::setup(scenario, topology, run, node);
            Setup::Mobile(MobileSetup { config: *config, devices, host, assist, multipath })
        }
        AgentPlan::Correspondent(_) => return None,
    })
}

/// The lowest that an agent's configuration takes, bytes.
const LEAST_FLOOR: u16 = 576;

/// How agents work on the hosts of a scenario: as they come, unless the mobile node is not to leave room for the tunnel. Then the
/// tunnel's entry is shown full packets, and cuts or refuses them once they are wrapped, as in the simulator. Nobody forges errors here,
/// so that all are believed as there.
fn host_options(scenario: &Scenario) -> HostOptions {
    let host = HostOptions::default();
    let leave_room = careof_plan::leaves_room(scenario);
    // Wrapped it still has to be an IP packet.
    let longest = scenario.links.iter().flat_map(|link| [link.down.mtu, link.up.mtu]).max();
    let most = longest.map(|mtu| if leave_room { mtu.saturating_sub(20) } else { mtu });
    let tunnel_mtu = most.map_or(host.tunnel_mtu, |mtu| mtu.clamp(host.tunnel_mtu, u16::MAX - 20));
    HostOptions { leave_room, tunnel_mtu, path_mtu_floor: LEAST_FLOOR, ..host }
}

impl AgentThread {
    /// Opens the agent in its host, and starts its thread.
    pub(crate) fn start(
        node: NodeId,
        host: &Host,
        setup: AnySetup,
        clock: Clock,
        random: RandomStream,
        reports: Sender<Report>,
    ) -> Result<Self, WorldError> {
        Self::start_spoilt(node, host, (setup, None), clock, random, reports)
    }

    /// The same of a relay with what is planned to be wrong with it.
    pub(crate) fn start_relay(
        host: &Host,
        (setup, plan): (RelaySetup, RelayPlan),
        clock: Clock,
        faults: RandomStream,
        reports: Sender<Report>,
    ) -> Result<Self, WorldError> {
        let (node, random) = (plan.node, faults.clone());
        Self::start_spoilt(node, host, (setup.into(), Some((plan, faults))), clock, random, reports)
    }

    fn start_spoilt(
        node: NodeId,
        host: &Host,
        (setup, relay): (AnySetup, Option<(RelayPlan, RandomStream)>),
        clock: Clock,
        random: RandomStream,
        reports: Sender<Report>,
    ) -> Result<Self, WorldError> {
        let mut carrier = host
            .run(move || Carrier::open(setup, clock, random, Hooks::default()))?
            .map_err(|error| WorldError::agent(host.name(), &error))?;
        if let Some((plan, faults)) = &relay {
            spoil_relay(&mut carrier, faults_of(plan, clock.now()), faults.clone());
        }
        carrier.watch_assists();
        carrier.watch_order();
        let failed = |call| move |errno| Error::System { doing: "start an agent".to_owned(), call, errno };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = Arc::new(EventFd::from_flags(flags).map_err(failed("eventfd"))?);
        let (commands, told) = channel();
        let its_bell = Arc::clone(&bell);
        let name = host.name().to_owned();
        let thread = Builder::new()
            .name(format!("agent {name}").chars().take(15).collect())
            .spawn(move || carry(carrier, (node, relay), &name, clock, &told, &its_bell, &reports))
            .map_err(|error| failed("clone")(error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw)))?;
        Ok(Self { node, commands, bell, thread: Some(thread) })
    }

    fn tell(&self, command: Command) {
        // An agent that has ended has said why.
        let _ = self.commands.send(command);
        let _ = self.bell.write(1);
    }

    /// Mobile node: go to an interface.
    pub(crate) fn switch_to(&self, index: usize, name: &str, notice: Notice) {
        self.tell(Command::SwitchTo(index, name.to_owned(), notice));
    }

    /// Mobile node: a handover is announced.
    pub(crate) fn announce(&self, name: &str, within: Duration) {
        self.tell(Command::Announce(name.to_owned(), within));
    }

    /// Mobile node: a handover is near, and is to be prepared.
    pub(crate) fn prepare(&self, name: &str) {
        self.tell(Command::Prepare(name.to_owned()));
    }

    /// Mobile node: it does not come.
    pub(crate) fn call_off(&self) {
        self.tell(Command::CallOff);
    }

    /// Agent: the path to the mobile node of this home address is announced to end, and what the next one is like.
    pub(crate) fn announce_departure(&self, mobile: IpAddr, within: Duration, new: PathProperties) {
        self.tell(Command::AnnounceDeparture(mobile, within, new));
    }

    /// Home agent and access router: whether packets reach a care-of address that is on a link of its host.
    pub(crate) fn reachable(&self, care_of: IpAddr, reachable: bool) {
        self.tell(Command::Reachable(care_of, reachable));
    }

    /// Ends it; what it was doing, unless it had ended before.
    pub(crate) fn stop(&mut self) -> Option<Status> {
        let (status, answer) = channel();
        self.tell(Command::Stop(status));
        let answer = answer.recv().ok();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been told by its hook.
            let _ = thread.join();
        }
        answer
    }
}

impl Drop for AgentThread {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// What is wrong with a relay at present.
fn faults_of(relay: &RelayPlan, now: Instant) -> RelayFaults {
    RelayFaults { drops: relay.drops, is_gone: relay.is_gone(now), ..RelayFaults::default() }
}

/// The thread: waits for the agent's descriptor and for commands.
fn carry(
    mut carrier: Carrier,
    (node, relay): (NodeId, Option<(RelayPlan, RandomStream)>),
    name: &str,
    clock: Clock,
    commands: &Receiver<Command>,
    bell: &EventFd,
    reports: &Sender<Report>,
) {
    loop {
        let mut fds =
            [PollFd::new(carrier.as_fd(), PollFlags::POLLIN), PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
        let now = clock.now();
        let change = relay.as_ref().and_then(|(relay, _)| relay.next_change(now));
        let timeout = change.map_or(PollTimeout::NONE, |at| {
            let millis = at.saturating_duration_since(now).as_millis() + 1;
            PollTimeout::try_from(millis).unwrap_or(PollTimeout::MAX)
        });
        // Interrupted or not, both are looked at.
        let _ = poll(&mut fds, timeout);
        if let Some((relay, faults)) = &relay {
            spoil_relay(&mut carrier, faults_of(relay, clock.now()), faults.clone());
        }
        // Read before the commands are, so that none is slept over.
        let _ = bell.read();
        while let Ok(command) = commands.try_recv() {
            let told = match command {
                Command::SwitchTo(index, interface, notice) => {
                    switch(&mut carrier, node, clock, (index, &interface, notice), reports)
                }
                Command::Announce(interface, within) => carrier.announce_handover(&interface, within),
                Command::Prepare(interface) => carrier.prepare_handover(&interface),
                Command::CallOff => carrier.call_off_handover(),
                Command::AnnounceDeparture(mobile, within, new) => {
                    carrier.announce_departure(mobile, within, new)
                }
                Command::Reachable(care_of, reachable) => carrier.care_of_reachable(care_of, reachable),
                Command::Stop(status) => {
                    let _ = status.send(carrier.status());
                    // What it changed goes with the host.
                    return;
                }
            };
            if let Err(error) = told {
                let _ = reports.send(Report::Failed(WorldError::agent(name, &error)));
            }
        }
        if let Err(error) = carrier.turn() {
            let _ = reports.send(Report::Failed(WorldError::agent(name, &error)));
            return;
        }
        tell_events(&mut carrier, node, reports);
    }
}

/// Sends the mobile node to an interface. When it finds nothing to do there - a handover that is taken back before
/// anybody has heard of it - that is told.
fn switch(
    carrier: &mut Carrier,
    node: NodeId,
    clock: Clock,
    (index, interface, notice): (usize, &str, Notice),
    reports: &Sender<Report>,
) -> Result<(), careof_agent::Error> {
    tell_events(carrier, node, reports);
    carrier.switch_to(interface, notice)?;
    // One that has found out nothing of the new link yet may be registered elsewhere still.
    let is_there = |carrier: &Carrier| {
        let registration = carrier.status_part(None, 0).registration;
        registration.is_some_and(|known| known.registered && known.interface.as_deref() == Some(interface))
    };
    if !tell_events(carrier, node, reports) && is_there(carrier) {
        let _ = reports.send(Report::PathReady { node, at: clock.now(), interface: index });
    }
    Ok(())
}

/// The next thing that an agent of either version tells.
fn next_event(carrier: &mut Carrier) -> Option<(Instant, AgentEvent)> {
    let of_ipv4 = carrier.poll_event().map(|(at, event)| (at, AgentEvent::V4(event)));
    of_ipv4.or_else(|| carrier.poll_ipv6_event().map(|(at, event)| (at, AgentEvent::V6(event))))
}

/// Passes on what the agent tells; whether a handover began.
fn tell_events(carrier: &mut Carrier, node: NodeId, reports: &Sender<Report>) -> bool {
    let mut initiated = false;
    while let Some((at, event)) = next_event(carrier) {
        initiated |= matches!(
            event,
            AgentEvent::V4(v4::Event::Handover(HandoverEvent::Initiated { .. }))
                | AgentEvent::V6(v6::Event::Handover(HandoverEvent::Initiated { .. }))
        );
        let registered = carrier.is_registered();
        let _ = reports.send(Report::Agent { node, at, event: Box::new(event), registered });
    }
    while let Some((at, event)) = carrier.poll_assist_event() {
        let _ = reports.send(Report::Assist { node, at, event });
    }
    while let Some((at, event)) = carrier.poll_multipath_event() {
        let _ = reports.send(Report::Multipath { node, at, event: event.event });
    }
    while let Some((at, event)) = carrier.poll_cluster_event() {
        let _ = reports.send(Report::Cluster { node, at, event });
    }
    while let Some((at, datagram)) = carrier.poll_passed_on() {
        let _ = reports.send(Report::PassedOn { node, at, datagram });
    }
    if let Some((at, interface)) = carrier.take_handed_over() {
        let _ = reports.send(Report::PathReady { node, at, interface: interface.0.into() });
    }
    initiated
}
