//! The routers and the mobile node of a domain of micro-mobility, each carried on its host by a thread of its own.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use careof_agent::{
    Device, DomainHost, DomainHostSetup, DomainLink, DomainRouter, DomainRouterSetup, DomainTraffic,
    StationLink,
};
use careof_base::Instant;
use careof_lab::{Clock, Error};
use careof_mobility::Notice;
use careof_mobility::micro::{BufferCounters, Counters, Event, HostEvent};
use careof_plan::{DomainPlan, NodeId, Topology, WalkStep};
use careof_scenario::Scenario;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::books::Record;
use crate::cells::Cells;
use crate::director::Director;
use crate::error::WorldError;
use crate::network::Network;
use crate::report::Report;

/// What a router or a mobile node of a domain tells.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DomainEvent {
    /// A router.
    Router(Event),
    /// A base station has a way into its cell for the mobile node.
    LeadsIntoCell,
    /// The mobile node.
    Host(HostEvent),
}

/// What became of packets and messages on one host of a domain.
#[derive(Clone, Debug)]
pub(crate) struct DomainAccount {
    pub(crate) node: NodeId,
    pub(crate) counters: Counters,
    pub(crate) kept: BufferCounters,
    pub(crate) traffic: DomainTraffic,
}

enum Order {
    /// The radio is at the other end of the link: the mobile node at this base station, or the mobile node of this address in the cell.
    Attached(Ipv4Addr),
    /// It is not any longer.
    Detached(Ipv4Addr),
    /// Mobile node: it will go to this base station.
    Announce(Ipv4Addr),
    /// Say what became of everything, and end.
    Stop(Sender<DomainAccount>),
}

/// One of them.
enum Carried {
    Router(Box<DomainRouter>, Option<Ipv4Addr>),
    Host(Box<DomainHost>),
}

struct Member {
    node: NodeId,
    orders: Sender<Order>,
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

/// Everybody in a domain.
pub(crate) struct Domain {
    pub(crate) plan: DomainPlan,
    members: Vec<Member>,
    /// The mobile node and its address.
    mobile: (NodeId, Ipv4Addr),
    /// By base station: its address.
    stations: Vec<Ipv4Addr>,
    /// The base station that the mobile node sends to.
    at: Option<usize>,
}

impl Domain {
    /// Starts a thread for each of them.
    pub(crate) fn start(
        plan: DomainPlan,
        (scenario, topology): (&Scenario, &Topology),
        network: &Network,
        cells: &Cells,
        (clock, reports): (Clock, &Sender<Report>),
    ) -> Result<Self, WorldError> {
        let address_of = |node: &NodeId| {
            let router = plan.routers.iter().find(|(router, _)| router == node);
            router.map_or(Ipv4Addr::UNSPECIFIED, |(_, config)| config.address)
        };
        let stations: Vec<Ipv4Addr> = plan.stations.iter().map(address_of).collect();
        let Some((mobile, host)) = plan.hosts.first().cloned() else {
            return Err(WorldError::Agent("a domain needs a mobile node".to_owned()));
        };
        let mut domain =
            Self { members: Vec::new(), mobile: (mobile, host.address), stations, at: None, plan };
        for (node, config) in &domain.plan.routers {
            let place = topology.place(*node);
            let is_gateway = *node == domain.plan.gateway;
            let wired = place
                .interfaces
                .iter()
                .enumerate()
                .filter(|(_, interface)| domain.plan.has_router(interface.peer));
            let mut links: Vec<DomainLink> = wired
                .map(|(index, interface)| {
                    let name = scenario.links[interface.out.0 as usize / 2].name.clone();
                    DomainLink {
                        device: Device::new(index as u16, name),
                        peer: Some(interface.peer_address.to_ipv4()),
                    }
                })
                .collect();
            if let Some(cell) = config.cell {
                let name = scenario.link(cells.radio).name.clone();
                links.push(DomainLink { device: Device::new(cell.0, name), peer: None });
            }
            let own = place.interfaces.iter().map(|interface| interface.address);
            let own = own.chain(place.cell.map(|cell| cell.address)).map(|address| address.to_ipv4());
            let setup = DomainRouterSetup {
                config: config.clone(),
                links,
                addresses: own.chain([config.address]).collect(),
                domain: is_gateway.then(|| cells.gateway.try_clone()).transpose()?,
            };
            let host = network.host(*node);
            let router = host
                .run(move || DomainRouter::open(setup, clock))?
                .map_err(|error| WorldError::agent(host.name(), &error))?;
            let carried = Carried::Router(Box::new(router), config.cell.map(|_| domain.mobile.1));
            domain.members.push(Member::start(*node, (host.name(), clock), carried, reports.clone())?);
        }
        let links = domain.stations.iter().zip(cells.devices());
        let links =
            links.map(|(station, device)| StationLink { station: *station, device: device.to_owned() });
        let setup =
            DomainHostSetup { config: host, links: links.collect(), domain: cells.mobile.try_clone()? };
        let host = network.host(mobile);
        let carried = host
            .run(move || DomainHost::open(setup, clock))?
            .map_err(|error| WorldError::agent(host.name(), &error))?;
        let carried = Carried::Host(Box::new(carried));
        domain.members.push(Member::start(mobile, (host.name(), clock), carried, reports.clone())?);
        Ok(domain)
    }

    fn tell(&self, node: NodeId, order: Order) {
        if let Some(member) = self.members.iter().find(|member| member.node == node) {
            member.tell(order);
        }
    }

    fn station(&self, station: usize) -> Option<(NodeId, Ipv4Addr)> {
        Some((*self.plan.stations.get(station)?, *self.stations.get(station)?))
    }

    /// A step of the mobile node's walk: its link layer and those of base stations tell.
    pub(crate) fn take_step(&mut self, step: WalkStep) {
        let (mobile, address) = self.mobile;
        match step {
            WalkStep::Come(station) => {
                self.at = Some(station);
                if let Some((node, station)) = self.station(station) {
                    self.tell(node, Order::Attached(address));
                    self.tell(mobile, Order::Attached(station));
                }
            }
            WalkStep::Leave(station) => {
                if self.at == Some(station) {
                    self.at = None;
                }
                if let Some((node, station)) = self.station(station) {
                    self.tell(mobile, Order::Detached(station));
                    self.tell(node, Order::Detached(address));
                }
            }
            WalkStep::Announce(station) => {
                if let Some((_, station)) = self.station(station) {
                    self.tell(mobile, Order::Announce(station));
                }
            }
            WalkStep::Handover => {}
        }
    }

    /// The mobile node.
    pub(crate) const fn mobile(&self) -> NodeId {
        self.mobile.0
    }

    /// Whether what a member tells says that the mobile node's path is ready.
    pub(crate) fn is_ready(&self, node: NodeId, event: &DomainEvent) -> bool {
        let Some((station, address)) = self.at.and_then(|at| self.station(at)) else { return false };
        match event {
            DomainEvent::Host(HostEvent::Confirmed { station }) => *station == address,
            // Where nothing is confirmed, its path is ready if it is there.
            DomainEvent::LeadsIntoCell => !self.plan.confirms && node == station,
            DomainEvent::Host(_) | DomainEvent::Router(_) => false,
        }
    }

    /// Ends everybody; what became of everything.
    pub(crate) fn stop(&mut self) -> Vec<DomainAccount> {
        self.members.iter_mut().filter_map(Member::stop).collect()
    }
}

impl Director {
    /// A step of a mobile node's walk through a domain. Its links do what is theirs by themselves.
    pub(crate) fn take_walk_step(&mut self, at: Instant, step: WalkStep) -> Result<(), WorldError> {
        let Some(domain) = &mut self.domain else { return Ok(()) };
        let mobile = domain.mobile();
        domain.take_step(step);
        match step {
            WalkStep::Handover => self.books.note(at, Record::Leaves { node: mobile }),
            WalkStep::Announce(station) => {
                let next = domain.plan.stations.get(station).map(|next| self.topology.place(*next));
                let text = next.map_or_else(String::new, |next| format!("to {}", next.name));
                self.books.note(at, Record::MoveAnnounced { node: mobile, text });
            }
            // The first base station: its interface is there from now on.
            WalkStep::Come(_) if self.waits_for_station => {
                self.waits_for_station = false;
                if let Some(cells) = &self.network.cells {
                    cells.mobile.set_carrier(true)?;
                    if let Some(agent) = self.agents.iter().find(|agent| agent.node == mobile) {
                        agent.switch_to(0, &self.scenario.link(cells.radio).name, Notice::None);
                    }
                }
            }
            WalkStep::Come(_) | WalkStep::Leave(_) => {}
        }
        Ok(())
    }
}

impl Member {
    fn start(
        node: NodeId,
        (name, clock): (&str, Clock),
        carried: Carried,
        reports: Sender<Report>,
    ) -> Result<Self, WorldError> {
        let failed = |call| move |errno| Error::System { doing: "start a router".to_owned(), call, errno };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = Arc::new(EventFd::from_flags(flags).map_err(failed("eventfd"))?);
        let (orders, told) = channel();
        let its_bell = Arc::clone(&bell);
        let its_name = name.to_owned();
        let thread = Builder::new()
            .name(format!("domain {name}").chars().take(15).collect())
            .spawn(move || carry(carried, node, (&its_name, clock), &told, &its_bell, &reports))
            .map_err(|error| failed("clone")(error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw)))?;
        Ok(Self { node, orders, bell, thread: Some(thread) })
    }

    fn tell(&self, order: Order) {
        // One that has ended has said why.
        let _ = self.orders.send(order);
        let _ = self.bell.write(1);
    }

    fn stop(&mut self) -> Option<DomainAccount> {
        let (account, answer) = channel();
        self.tell(Order::Stop(account));
        let answer = answer.recv().ok();
        if let Some(thread) = self.thread.take() {
            // A panic in it has been told by its hook.
            let _ = thread.join();
        }
        answer
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.stop();
        }
    }
}

/// The thread: waits for packets, times and orders.
fn carry(
    mut carried: Carried,
    node: NodeId,
    (name, clock): (&str, Clock),
    orders: &Receiver<Order>,
    bell: &EventFd,
    reports: &Sender<Report>,
) {
    loop {
        let own = match &carried {
            Carried::Router(router, _) => router.as_fd(),
            Carried::Host(host) => host.as_fd(),
        };
        let mut fds = [PollFd::new(own, PollFlags::POLLIN), PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
        // Interrupted or not, both are looked at.
        let _ = poll(&mut fds, PollTimeout::NONE);
        // Read before the orders are, so that none is slept over.
        let _ = bell.read();
        let failed = |error| {
            // Without a director nobody needs to know.
            let _ = reports.send(Report::Failed(WorldError::agent(name, &error)));
        };
        while let Ok(order) = orders.try_recv() {
            let done = match order {
                Order::Stop(account) => {
                    let _ = account.send(carried.account(node));
                    return;
                }
                order => {
                    let comes = matches!(order, Order::Attached(_));
                    let done = carried.obey(order);
                    carried.tell_events(node, reports);
                    if comes && carried.leads_into_cell() {
                        let _ = reports.send(Report::Domain {
                            node,
                            at: clock.now(),
                            event: DomainEvent::LeadsIntoCell,
                        });
                    }
                    done
                }
            };
            if let Err(error) = done {
                failed(error);
            }
        }
        if let Err(error) = carried.turn() {
            failed(error);
            return;
        }
        carried.tell_events(node, reports);
    }
}

impl Carried {
    fn turn(&mut self) -> Result<(), careof_agent::Error> {
        match self {
            Self::Router(router, _) => router.turn(),
            Self::Host(host) => host.turn(),
        }
    }

    fn obey(&mut self, order: Order) -> Result<(), careof_agent::Error> {
        match (self, order) {
            (Self::Router(router, _), Order::Attached(mobile)) => router.note_attached(mobile),
            (Self::Router(router, _), Order::Detached(mobile)) => router.note_detached(mobile),
            (Self::Host(host), Order::Attached(station)) => host.attached(station),
            (Self::Host(host), Order::Detached(station)) => host.detached(station),
            (Self::Host(host), Order::Announce(station)) => host.announce(&[station]),
            (Self::Router(..), Order::Announce(_)) | (_, Order::Stop(_)) => Ok(()),
        }
    }

    fn tell_events(&mut self, node: NodeId, reports: &Sender<Report>) {
        let tell = |at: Instant, event| {
            let _ = reports.send(Report::Domain { node, at, event });
        };
        match self {
            Self::Router(router, mobile) => {
                while let Some((at, event)) = router.poll_event() {
                    tell(at, DomainEvent::Router(event));
                    if let (Event::RouteChanged { mobile: whose, .. }, Some(mobile)) = (event, *mobile)
                        && whose == mobile
                        && router.leads_into_cell(mobile)
                    {
                        tell(at, DomainEvent::LeadsIntoCell);
                    }
                }
            }
            Self::Host(host) => {
                while let Some((at, event)) = host.poll_event() {
                    tell(at, DomainEvent::Host(event));
                }
            }
        }
    }

    /// Base station: whether packets for the mobile node go into the cell.
    fn leads_into_cell(&self) -> bool {
        match self {
            Self::Router(router, Some(mobile)) => router.leads_into_cell(*mobile),
            Self::Router(_, None) | Self::Host(_) => false,
        }
    }

    fn account(&self, node: NodeId) -> DomainAccount {
        match self {
            Self::Router(router, _) => DomainAccount {
                node,
                counters: *router.counters(),
                kept: *router.buffer_counters(),
                traffic: router.traffic().clone(),
            },
            Self::Host(host) => DomainAccount {
                node,
                counters: *host.counters(),
                kept: BufferCounters::default(),
                traffic: host.traffic().clone(),
            },
        }
    }
}
