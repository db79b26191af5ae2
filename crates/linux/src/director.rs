//! The thread that lets a run happen: it follows the script, opens flows when their path is there, and keeps the
//! books of what everybody tells.

use std::collections::{BTreeSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use careof_agent::{ClusterEvent, Status};
use careof_base::{Duration, Instant};
use careof_lab::{Change, Clock, Direction, Error, LinkReport, Sightings, Tap};
use careof_mobility::v4::{Change as BindingChange, DeliveryMethod, VisitorChanged};
use careof_mobility::{HandoverEvent, InterfaceId, v4, v6};
use careof_plan::{
    Locator, MultipathPlan, NodeId, Plan, Side, Step, Topology, Tunnelling, WalkStep, down_of, first_peer,
    new_path, tunnel_overhead_on, up_of,
};
use careof_scenario::{
    CareOf, Flow, Handover, LinkId, Protocol, QueuedFate, Role, Routing, Scenario, Workload,
};

use crate::agents::AgentThread;
use crate::application::Worker;
use crate::books::{Books, HOLD, Record};
use crate::domain::{Domain, DomainAccount};
use crate::error::WorldError;
use crate::media::{Attention, shortcuts};
use crate::mptcp::PathManagers;
use crate::network::Network;
use crate::programs::ProgramOutput;
use crate::quic::Mover;
use crate::report::{AgentEvent, ApplicationEvent, Report};
use crate::sampler::Sampler;
use crate::tcp_cm::SenderTeller;

/// How often the tap is emptied while nobody reports anything.
const TICK: Duration = Duration::from_millis(3);

/// What the run's owner waits for.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The first thing that went wrong.
    pub(crate) failure: Mutex<Option<WorldError>>,
    pub(crate) changed: Condvar,
    /// What programs printed.
    pub(crate) outputs: Mutex<Vec<ProgramOutput>>,
}

impl Outcome {
    /// Something went wrong.
    pub(crate) fn fail(&self, error: WorldError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.changed.notify_all();
    }
}

/// A flow as the director sees it.
pub(crate) struct DirectedFlow {
    pub(crate) start: Instant,
    pub(crate) stop: Option<Instant>,
    /// Which mobile nodes have to be reachable for it.
    pub(crate) mobile_nodes: Vec<usize>,
    pub(crate) opened: bool,
    /// Its connection, where it is one that is known before; with a relay the opener's and the acceptor's.
    pub(crate) connections: Vec<usize>,
    /// Which ends' TCP is looked into.
    pub(crate) looked_into: Vec<Side>,
    pub(crate) worker: Worker,
    /// Who is to be told where the mobile node is.
    pub(crate) mover: Option<Mover>,
}

/// Where a mobile node is in the script.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Journey {
    /// The handover under way: begun, its registration not yet accepted.
    pub(crate) current: Option<usize>,
    /// Whether its home agent knows where it is.
    is_reachable: bool,
}

/// What an agent tells that something is to be done about.
enum Told<'a> {
    /// A mobile node can be reached by this interface.
    Registered { to: InterfaceId },
    /// A binding changed.
    Binding { home_address: Locator, care_of: Locator, change: BindingChange },
    /// A foreign agent's visitor came, stayed or left.
    Visitor(&'a VisitorChanged),
}

impl<'a> Told<'a> {
    fn of(event: &'a AgentEvent, plan: &Plan) -> Option<Self> {
        Some(match event {
            AgentEvent::V4(v4::Event::Handover(HandoverEvent::Registered { to, .. }))
            | AgentEvent::V6(v6::Event::Handover(HandoverEvent::Registered { to, .. })) => {
                Self::Registered { to: *to }
            }
            AgentEvent::V4(v4::Event::Binding(changed)) => Self::Binding {
                home_address: changed.home_address.into(),
                care_of: changed.care_of.into(),
                change: changed.change,
            },
            AgentEvent::V6(v6::Event::Binding(changed)) => Self::Binding {
                home_address: plan.locate(changed.home_address.into()),
                care_of: plan.locate(changed.care_of.into()),
                change: changed.change,
            },
            AgentEvent::V4(v4::Event::Visitor(changed)) => Self::Visitor(changed),
            _ => return None,
        })
    }
}

/// Everything that runs.
pub(crate) struct Director {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) topology: Arc<Topology>,
    pub(crate) network: Network,
    pub(crate) clock: Clock,
    pub(crate) tap: Tap,
    pub(crate) sightings: Sightings,
    pub(crate) books: Books,
    pub(crate) agents: Vec<AgentThread>,
    /// Routers that advertise themselves to mobile nodes.
    pub(crate) routers: Vec<Worker>,
    pub(crate) flows: Vec<DirectedFlow>,
    /// What makes two connections of one.
    pub(crate) relay: Option<Worker>,
    /// Who tells the hosts of flows over Multipath TCP which addresses they have.
    pub(crate) path_managers: PathManagers,
    /// Who tells senders of handovers, where they can be told.
    pub(crate) teller: Option<SenderTeller>,
    pub(crate) sampler: Sampler,
    pub(crate) inbox: Receiver<Report>,
    pub(crate) outcome: Arc<Outcome>,
    pub(crate) script: Vec<(Instant, Step)>,
    pub(crate) next_step: usize,
    /// A domain of micro-mobility, and the way of the mobile node through it.
    pub(crate) domain: Option<Domain>,
    pub(crate) walk: VecDeque<(Instant, WalkStep)>,
    /// The mobile node has been nowhere in it.
    pub(crate) waits_for_station: bool,
    /// By how much it was late at most, for a step or for its next turn: as late as other threads may have been.
    pub(crate) lateness: Duration,
    /// By mobile node, as the topology counts them.
    pub(crate) journeys: Vec<Journey>,
    /// Home addresses, each with a care-of address that the home agent sends to.
    pub(crate) bindings: BTreeSet<(Locator, Locator)>,
    /// Who has more to do with packets on a medium than to pass them on.
    pub(crate) attention: Attention,
    /// The tunnel over several paths, where the scenario has one.
    pub(crate) multipath: Option<MultipathPlan>,
    /// Whether the mobile nodes' own packets take the tunnel too, by the plan.
    pub(crate) plan: Option<Box<careof_mobility::v4::MobileNodeConfig>>,
    pub(crate) end: Instant,
    /// What becomes of the packets by the end of the run.
    pub(crate) last_report: Option<Receiver<Vec<LinkReport>>>,
    pub(crate) finished: Option<Finished>,
    /// What the owner asked for while the run was being ended.
    pub(crate) late: Vec<Report>,
    pub(crate) run: u64,
    pub(crate) file: String,
    /// How many programs were started.
    pub(crate) programs: usize,
    /// The smoothed round trip that was told last.
    pub(crate) round_trip: Option<Duration>,
}

/// What is left when the run is over.
pub(crate) struct Finished {
    pub(crate) at: Instant,
    pub(crate) links: Vec<LinkReport>,
    pub(crate) agents: Vec<Status>,
    pub(crate) domain: Vec<DomainAccount>,
}

impl Director {
    /// Runs until the owner is gone.
    pub(crate) fn run(mut self) {
        let mut last_turn = self.clock.now();
        loop {
            let turn = self.clock.now();
            if self.finished.is_none() {
                self.lateness =
                    self.lateness.max(turn.saturating_duration_since(last_turn).saturating_sub(TICK));
            }
            last_turn = turn;
            if self.finished.is_none()
                && let Err(error) = self.act()
            {
                self.outcome.fail(error);
            }
            for report in std::mem::take(&mut self.late) {
                self.handle(report);
            }
            let timeout = self.time_to_wait();
            let mut report = match timeout {
                Some(timeout) => self.inbox.recv_timeout(timeout),
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            loop {
                match report {
                    Ok(Report::Quit) | Err(RecvTimeoutError::Disconnected) => {
                        // Whoever uses the hosts goes first.
                        self.flows.clear();
                        self.relay = None;
                        self.agents.clear();
                        self.domain = None;
                        self.routers.clear();
                        return;
                    }
                    Ok(report) => self.handle(report),
                    Err(RecvTimeoutError::Timeout) => break,
                }
                report = self.inbox.try_recv().map_err(|error| match error {
                    TryRecvError::Empty => RecvTimeoutError::Timeout,
                    TryRecvError::Disconnected => RecvTimeoutError::Disconnected,
                });
            }
        }
    }

    /// `None` when nothing happens by itself any more.
    fn time_to_wait(&self) -> Option<Duration> {
        if self.finished.is_some() {
            return None;
        }
        let step = self.script.get(self.next_step).map(|(at, _)| *at);
        let step = step.into_iter().chain(self.walk.front().map(|(at, _)| *at)).min();
        let starts = self.flows.iter().filter(|flow| !flow.opened).map(|flow| flow.start);
        let next = starts.filter(|start| *start > self.clock.now()).chain(step).min();
        let until = next.map_or(TICK, |next| self.clock.until(next));
        Some(until.min(TICK))
    }

    /// Does what is due.
    fn act(&mut self) -> Result<(), WorldError> {
        let now = self.clock.now();
        if now >= self.end {
            self.finish_run(self.end)?;
            return Ok(());
        }
        while let Some((at, step)) = self.script.get(self.next_step).copied().filter(|(at, _)| *at <= now)
            && self.clock.until(at).is_zero()
        {
            self.next_step += 1;
            self.lateness = self.lateness.max(self.clock.now().saturating_duration_since(at));
            self.take_step(at, step)?;
        }
        while let Some((at, step)) = self.walk.front().copied().filter(|(at, _)| *at <= now) {
            self.walk.pop_front();
            self.lateness = self.lateness.max(self.clock.now().saturating_duration_since(at));
            self.take_walk_step(at, step)?;
        }
        self.open_flows(now);
        self.take_sightings();
        self.take_deeds()?;
        self.books.settle(now.saturating_sub(HOLD));
        Ok(())
    }

    fn take_sightings(&mut self) {
        self.tap.take(&mut self.sightings);
        let sightings = std::mem::take(&mut self.sightings);
        for sighting in sightings.iter() {
            let way = self.network.way(sighting.link, sighting.direction);
            let station = self.network.cells.as_ref().and_then(|cells| cells.station_of(sighting.link));
            self.books.see(&sighting, way, station);
        }
        self.sightings = sightings;
        for connection in self.books.discovered.drain(..) {
            self.sampler.add(connection);
        }
    }

    /// Books what senders did that were told of handovers.
    fn take_deeds(&mut self) -> Result<(), WorldError> {
        let Some(teller) = &self.teller else { return Ok(()) };
        for deed in teller.deeds(self.clock)? {
            self.books.note(deed.at, Record::Told(deed));
        }
        Ok(())
    }

    fn handle(&mut self, report: Report) {
        match report {
            Report::Agent { node, at, event, registered } => {
                // Before flows are opened, which are not told of what was before them.
                if let Some(teller) = &mut self.teller
                    && let Err(error) = teller.hear(node, (at, self.clock), &event, registered)
                {
                    self.outcome.fail(error);
                }
                if let Err(error) = self.react(node, at, &event, registered) {
                    self.outcome.fail(error);
                }
                self.books.note(at, Record::Agent { node, event });
            }
            Report::Domain { node, at, event } => {
                self.books.note(at, Record::Domain { node, event });
                if self.domain.as_ref().is_some_and(|domain| domain.is_ready(node, &event)) {
                    self.books.note(at, Record::WayReady);
                }
            }
            Report::Multipath { node, at, event } => {
                if let Some(plan) = &self.multipath {
                    let (phase, way, text) = plan.news(node, event);
                    self.books.note(at, Record::PathNews { node, phase, way, text });
                }
            }
            Report::Cluster { node, at, event } => {
                if let Some(relay) = self.multipath.as_ref().and_then(|plan| plan.relays.first()) {
                    let (phase, way, text) = match &event {
                        ClusterEvent::Relay(event) => relay.news_of_relay(event),
                        ClusterEvent::Client(event) => relay.news_of_client(event),
                    };
                    self.books.note(at, Record::PathNews { node, phase, way: Some(way), text });
                }
            }
            Report::PassedOn { node, at, datagram } => {
                self.books.note(at, Record::PassedOn { node, datagram });
            }
            Report::Assist { node, at, event } => self.books.note(at, Record::Assist { node, event }),
            Report::PathReady { node, at, interface } => {
                self.note_path(at, node, true);
                if let Err(error) = self.handover_is_ready(at, node, InterfaceId(interface as u16)) {
                    self.outcome.fail(error);
                }
            }
            Report::Application { flow, at, event } => {
                if let ApplicationEvent::Opening { ends, .. } = &event {
                    if let Some(ends) = ends {
                        self.look_into(flow, *ends);
                    }
                    let is_program = |flow: &Flow| flow.workload == Workload::Command;
                    self.programs += usize::from(self.scenario.flows.get(flow).is_some_and(is_program));
                }
                self.books.note(at, Record::Application { flow, event });
            }
            Report::Relay { flow, at, what, bytes } => {
                self.books.note(at, Record::Relay { flow, what, bytes });
            }
            Report::Sample { connection, side, at, info } => {
                self.round_trip = info.srtt.or(self.round_trip);
                self.books.note(at, Record::Sample { connection, side, info });
            }
            Report::Timeouts { connection, side, after, until, count, info } => {
                self.books.note(after, Record::Timeouts { connection, side, until, count, info });
            }
            Report::Output(output) => {
                self.outcome.outputs.lock().unwrap_or_else(PoisonError::into_inner).push(output);
            }
            Report::Probed(probe) => self.books.probes.push(*probe),
            Report::Failed(error) => self.outcome.fail(error),
            Report::TakeEvents(reply) => {
                let columns = if self.finished.is_some() {
                    self.books.log.take_columns()
                } else {
                    self.books.log.take_columns_before(self.books.settled())
                };
                // Whoever asked and went away does not need them.
                let _ = reply.send(columns);
            }
            Report::TakeLive(reply) => match self.live() {
                Ok(live) => drop(reply.send(live)),
                Err(error) => self.outcome.fail(error.into()),
            },
            Report::Finish(reply) => {
                let _ = reply.send(self.finish());
            }
            Report::Quit => {}
        }
    }

    /// Has the kernel's TCP of a flow's ends looked into.
    fn look_into(&self, flow: usize, ends: [std::net::SocketAddr; 2]) {
        let Some(directed) = self.flows.get(flow) else { return };
        for side in &directed.looked_into {
            let (local, remote) = (ends[side.index()], ends[side.peer().index()]);
            // The sender's own, and that in which a relay sends on what the sender has sent.
            for connection in directed.connections.iter().copied() {
                let Some(node) = self.books.node_of(connection, *side) else { continue };
                let side = *side;
                self.sampler.add(crate::books::NewConnection { connection, side, node, local, remote });
            }
        }
    }

    fn open_flows(&mut self, now: Instant) {
        let is_reachable = |mobile: &usize| self.journeys[*mobile].is_reachable;
        for flow in &mut self.flows {
            let is_past = flow.stop.is_some_and(|stop| stop <= now);
            if flow.opened || flow.start > now || is_past || !flow.mobile_nodes.iter().all(is_reachable) {
                continue;
            }
            flow.opened = true;
            flow.worker.ring();
        }
    }

    /// Does at once what an agent's event asks for.
    fn react(
        &mut self,
        node: NodeId,
        at: Instant,
        event: &AgentEvent,
        registered: bool,
    ) -> Result<(), WorldError> {
        let mobile = self.topology.homes.index(node);
        let Some(told) = Told::of(event, &self.topology.plan) else { return Ok(()) };
        match told {
            Told::Registered { to } => {
                let Some(mobile) = mobile else { return Ok(()) };
                self.journeys[mobile].is_reachable = true;
                self.note_path(at, node, true);
                let place = self.topology.place(node).interfaces.get(usize::from(to.0));
                self.tell_movers(node, place.map(|interface| LinkId(interface.out.0 as usize / 2)));
                self.handover_is_ready(at, node, to)?;
                self.open_flows(self.clock.now());
            }
            // The mobile node's own view.
            Told::Binding { .. } if mobile.is_some() => {
                if let Some(journey) = mobile.and_then(|mobile| self.journeys.get_mut(mobile))
                    && !registered
                {
                    journey.is_reachable = false;
                    self.note_path(at, node, false);
                }
            }
            Told::Binding { home_address, care_of, change }
                if matches!(self.topology.place(node).role, Role::HomeAgent | Role::AnchorPoint) =>
            {
                let simultaneous =
                    self.scenario.mobility.as_ref().is_some_and(|mobility| {
                        mobility.simultaneous_bindings || mobility.multipath.is_some()
                    });
                match change {
                    BindingChange::Created | BindingChange::Updated => {
                        if !simultaneous {
                            self.bindings.retain(|(other, _)| *other != home_address);
                        }
                        self.bindings.insert((home_address, care_of));
                    }
                    BindingChange::Removed | BindingChange::Expired => {
                        self.bindings.remove(&(home_address, care_of));
                    }
                }
                let bound = home_address;
                let is_away = self.bindings.iter().any(|(other, _)| *other == home_address);
                self.pay_attention(|attention, _| attention.home_agent(node, home_address, is_away))?;
                // At a mobility anchor point it is a regional care-of address.
                let behind = self.topology.mobile_at_regional(home_address);
                let home_address = behind.and_then(|mobile| self.topology.homes.address_of(mobile));
                self.binding_changed(home_address.unwrap_or(bound))?;
            }
            // A correspondent node's.
            Told::Binding { .. } => {}
            Told::Visitor(visitor) => {
                self.pay_attention(|attention, routing| attention.foreign_agent(node, visitor, routing))?;
            }
        }
        Ok(())
    }

    /// An agent draws other packets than before: on a medium they take another way from now on.
    fn pay_attention(&mut self, change: impl FnOnce(&mut Attention, Routing)) -> Result<(), WorldError> {
        let Some(routing) = self.scenario.mobility.as_ref().map(|mobility| mobility.routing) else {
            return Ok(());
        };
        let before = self.attention.clone();
        change(&mut self.attention, routing);
        if self.attention != before {
            let changes = shortcuts(&self.scenario, &self.topology, &self.network, &self.attention);
            self.network.emulator.apply(changes)?;
        }
        Ok(())
    }

    /// A home agent's bindings of a home address changed: what waits for the path just left may have to move.
    fn binding_changed(&mut self, home_address: Locator) -> Result<(), WorldError> {
        let mobile = self.topology.homes.node_at(home_address);
        let current = mobile.and_then(|mobile| self.journey(mobile).current);
        let Some(handover) = current.map(|index| self.scenario.handovers[index].clone()) else {
            return Ok(());
        };
        if handover.queued != QueuedFate::DrainLate && !self.is_tunnelled_over(handover.from) {
            self.settle_queue(&handover, Direction::Forward)?;
        }
        Ok(())
    }

    /// Does with what waits at the entrance of a link that was left what the scenario asks for.
    fn settle_queue(&self, handover: &Handover, direction: Direction) -> Result<(), Error> {
        let link = self.network.emulated(handover.from);
        let change = match handover.queued {
            QueuedFate::ReRoute => {
                let to = (self.network.emulated(handover.to), direction);
                Change::MoveQueue { from: (link, direction), to }
            }
            QueuedFate::Drop => Change::DropQueue { link, direction },
            // Nothing is done, or it was refused before the run began.
            QueuedFate::DrainLate
            | QueuedFate::DropWithIcmp
            | QueuedFate::BufferAndForward
            | QueuedFate::Duplicate => return Ok(()),
        };
        self.network.emulator.apply(vec![change]).map(drop)
    }

    /// Whether the home agent, or the mobility anchor point that it sends them to, still sends a mobile node's packets over its access link.
    fn is_tunnelled_over(&self, link: LinkId) -> bool {
        let Some((mobile, index)) = self.mobile_end(link) else { return false };
        let home_address = self.topology.address_of(mobile);
        let interface = &self.topology.place(mobile).interfaces[index];
        let peer = self.topology.place(interface.peer);
        self.bindings.iter().any(|&(of, care_of)| {
            // A foreign agent's address stands for the link to its visitor.
            let leads_there =
                care_of == interface.address || peer.interfaces.iter().any(|own| own.address == care_of);
            of == home_address && (leads_there || self.bindings.contains(&(care_of, interface.address)))
        })
    }

    /// A mobile node uses `to`: if that is where its handover under way leads, its path is ready.
    fn handover_is_ready(&mut self, at: Instant, node: NodeId, to: InterfaceId) -> Result<(), WorldError> {
        let (Some(index), Some(mobile)) = (self.journey(node).current, self.topology.homes.index(node))
        else {
            return Ok(());
        };
        let handover = self.scenario.handovers[index].clone();
        if self.mobile_end(handover.to) != Some((node, usize::from(to.0))) {
            return Ok(());
        }
        self.journeys[mobile].current = None;
        let path = Box::new(self.new_path(handover.to));
        self.books.note(at, Record::Ready { mobile, path });
        if handover.queued != QueuedFate::DrainLate && handover.from != handover.to {
            self.settle_queue(&handover, Direction::Backward)?;
        }
        Ok(())
    }

    fn new_path(&self, link: LinkId) -> careof_metrics::NewPath {
        let first = first_peer(&self.scenario, &self.topology, self.topology.mobile_of(link));
        let mss = first.map_or(1460, |(flow, _)| {
            let planned = u32::from(self.scenario.flows[flow].tcp.config.mss);
            self.books.mss(flow).unwrap_or(planned).max(1)
        });
        let mobility = self.scenario.mobility.as_ref();
        let is_home = mobility.is_some_and(|mobility| mobility.home == Some(link));
        let overhead = if is_home { 0 } else { tunnel_overhead_on(&self.scenario, link) };
        let peer = first.map_or_else(|| self.topology.entrance(down_of(link)), |(_, peer)| peer);
        let address = self.topology.address_of(peer).to_ipv4();
        let method = self.plan.as_ref().map(|plan| plan.policy.lookup(address, None));
        let both_ways = method == Some(DeliveryMethod::ReverseTunnel) || is_mobile_ipv6(&self.scenario);
        let reverse = !is_home && both_ways;
        let tunnelling = Tunnelling { overhead: u32::from(overhead), reverse, ..Tunnelling::default() };
        new_path(&self.scenario, &self.topology, link, tunnelling, mss)
    }

    /// The mobile node of an access link, and its interface there.
    pub(crate) fn mobile_end(&self, link: LinkId) -> Option<(NodeId, usize)> {
        let mobile = self.topology.mobile_of(link);
        let mut interfaces = self.topology.place(mobile).interfaces.iter();
        Some((mobile, interfaces.position(|interface| interface.out == up_of(link))?))
    }

    /// Where a node is in the script; nowhere, if it does not move.
    pub(crate) fn journey(&self, node: NodeId) -> Journey {
        let journey = self.topology.homes.index(node).and_then(|mobile| self.journeys.get(mobile));
        journey.copied().unwrap_or_default()
    }

    /// Whether a mobile node is in no handover, and its home agent knows where it is.
    pub(crate) fn is_at_ease(&self, node: NodeId) -> bool {
        let journey = self.journey(node);
        journey.current.is_none() && journey.is_reachable
    }

    /// Whether any path of a mobile node can carry packets.
    pub(crate) fn note_path(&mut self, at: Instant, node: NodeId, usable: bool) {
        if let Some(mobile) = self.topology.homes.index(node) {
            self.books.note(at, Record::Path { mobile, usable });
        }
    }

    pub(crate) fn is_co_located(&self) -> bool {
        self.scenario.mobility.as_ref().is_some_and(|mobility| mobility.care_of == CareOf::CoLocated)
    }

    /// Ends the run at `at`: takes the last of everything, and lets nothing go on.
    pub(crate) fn finish_run(&mut self, at: Instant) -> Result<(), WorldError> {
        // The report hands the tap everything it counts, and nothing else.
        let report = match self.last_report.take().filter(|_| at == self.end) {
            Some(report) => report,
            None => self.network.report_at(at)?,
        };
        let links = report.recv().map_err(|_| Error::EmulatorGone)?;
        let links = match &self.network.cells {
            Some(cells) => cells.by_link(links),
            None => links,
        };
        self.take_sightings();
        for flow in &mut self.flows {
            flow.worker.quit();
        }
        self.relay = None;
        let agents = self.agents.iter_mut().filter_map(AgentThread::stop).collect();
        let domain = self.domain.as_mut().map_or_else(Vec::new, Domain::stop);
        self.routers.clear();
        while let Ok(report) = self.inbox.try_recv() {
            match report {
                Report::TakeEvents(_) | Report::TakeLive(_) | Report::Finish(_) | Report::Quit => {
                    self.late.push(report)
                }
                report => self.handle(report),
            }
        }
        self.take_deeds()?;
        self.teller.as_ref().map(SenderTeller::check).transpose()?;
        self.books.close(at);
        self.finished = Some(Finished { at, links, agents, domain });
        self.outcome.changed.notify_all();
        Ok(())
    }
}

/// Whether an agent at the fixed end of an access link advertises there: it has to know what the link does.
pub(crate) fn advertises_on(scenario: &Scenario, link: LinkId) -> bool {
    let anchor = scenario.node(scenario.link(link).ends[0]).role;
    let is_home = scenario.mobility.as_ref().is_some_and(|mobility| mobility.home == Some(link));
    // Over IPv6 every router does that a mobile node comes to.
    is_mobile_ipv6(scenario) || anchor == Role::ForeignAgent || (is_home && anchor == Role::HomeAgent)
}

pub(crate) fn is_mobile_ipv6(scenario: &Scenario) -> bool {
    scenario.mobility.as_ref().is_some_and(|mobility| mobility.protocol == Protocol::MobileIpv6)
}
