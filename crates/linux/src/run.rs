//! A run from its beginning to its end.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{Builder, JoinHandle};

use careof_agent::{AnySetup, HostOptions};
use careof_base::{Duration, Instant};
use careof_lab::{Clock, Error, Sightings};
use careof_metrics::{Summary, TcpSummary};
use careof_plan::{
    AgentPlan, Captures, DomainPlan, FlowId, NodeId, Observation, Player, RtpFlow, Side, Topology, WalkStep,
    Workload, agent, attached_first, client_of, drawn, handovers_of, kind, lay_out, measured_name,
    measured_senders, migrates, names, port, refuse_what_no_world_can, steps, stream, up_of, walk,
    workload_stream,
};
use careof_quic::Role;
use careof_scenario::{Flow, Scenario, Workload as Traffic};
use careof_trace::{Columns, EventLog};
use nix::errno::Errno;

use crate::agents::{AgentThread, setup};
use crate::application::{self, ApplicationConfig, Worker};
use crate::books::{BookedFlow, Books, Multipath};
use crate::director::{DirectedFlow, Director, Journey, Outcome};
use crate::domain::Domain;
use crate::error::WorldError;
use crate::live::Live;
use crate::media::{Attention, shortcuts};
use crate::mobile_ipv6::{self, start_routers};
use crate::mptcp::PathManagers;
use crate::network::Network;
use crate::programs::{OwnProgram, ProgramOutput, refuse_missing, refuse_missing_own};
use crate::quic::{self, QuicConfig};
use crate::refusal::refuse_what_linux_cannot;
use crate::relay::{self, RelayPlan, Splitter};
use crate::report::Report;
use crate::sampler::Sampler;
use crate::steps::schedule;
use crate::tcp::{
    KernelChoice, choose, refuse_missing_congestion, refuse_missing_of_relay, sysctls_of_hosts,
};
use crate::tcp_cm::{self, TcpCmPlan};
use crate::voice::{self, VoiceConfig};

/// A run that was later than this with something says so: longer than a thread of a machine with a core to spare waits
/// for it, shorter than any stall that is worth a look.
const LATE: Duration = Duration::from_millis(20);

/// A scenario under way on Linux hosts.
///
/// [`LinuxRun::advance`] waits until an instant of the run's clock has come; everything happens in real time
/// whether or not somebody waits. [`LinuxRun::finish`] ends it and draws up the summary. Hosts, interfaces, routes and
/// processes are gone when it is dropped, and also when this process is killed.
pub struct LinuxRun {
    clock: Clock,
    end: Instant,
    reports: Sender<Report>,
    outcome: Arc<Outcome>,
    remarks: Vec<String>,
    director: Option<JoinHandle<()>>,
}

impl LinuxRun {
    /// Builds the hosts of `scenario`, read from `file`, and starts its clock; `run` numbers the repetitions of one
    /// seed.
    ///
    /// Without `CAP_SYS_ADMIN` this process enters a user namespace for good, which it can only while it has one
    /// thread.
    ///
    /// # Errors
    /// [`WorldError`] when the scenario asks for something this world does not have, or the machine refuses
    /// something; nothing is left behind then.
    pub fn new(
        scenario: Scenario,
        file: &str,
        run: u64,
        observation: Observation,
    ) -> Result<Self, WorldError> {
        Self::with_own_program(scenario, file, run, observation, None)
    }

    /// As [`LinuxRun::new`], with a program of the owner's in the place of a flow's command.
    ///
    /// # Errors
    /// As of [`LinuxRun::new`].
    pub fn with_own_program(
        scenario: Scenario,
        file: &str,
        run: u64,
        observation: Observation,
        own: Option<OwnProgram>,
    ) -> Result<Self, WorldError> {
        refuse_what_no_world_can(&scenario)?;
        refuse_what_linux_cannot(&scenario)?;
        let scenario = drawn(scenario, run);
        refuse_missing(&scenario, own.as_ref())?;
        refuse_missing_own(&scenario, own.as_ref())?;
        let mut choices: Vec<KernelChoice> =
            scenario.flows.iter().enumerate().map(|(n, flow)| choose(n, flow)).collect::<Result<_, _>>()?;
        refuse_missing_congestion(&choices)?;
        let topology = Arc::new(lay_out(&scenario));
        let scenario = Arc::new(scenario);
        let splitter = Splitter::new(&scenario, &topology);
        let of_relay = splitter.as_ref().map(Splitter::choices).transpose()?;
        refuse_missing_of_relay(of_relay.as_ref())?;
        // What the machine does not give is said before anything is made.
        let teller = TcpCmPlan::new(&scenario, &topology, &choices)?;
        let teller = teller.map(|plan| plan.register(&mut choices)).transpose()?;
        let path_managers = PathManagers::new(&scenario, &topology)?;
        path_managers.refuse_missing()?;
        let mut sysctls = sysctls_of_hosts(&scenario, &topology, &choices, of_relay.as_ref())?;
        for (of_host, node) in sysctls.iter_mut().zip((0..).map(NodeId)) {
            of_host.extend(path_managers.sysctls(node));
        }
        let relay =
            splitter.zip(of_relay.as_ref()).map(|(splitter, of_relay)| splitter.plan(&choices, of_relay));
        let log = observation.log(|| names(&scenario, &topology));
        let capture = observation
            .capture
            .map(|request| Captures::new(request, &scenario, &topology))
            .transpose()
            .map_err(|error| WorldError::Capture(error.to_string()))?;
        let mut books = Books::new(&scenario, Arc::clone(&topology), log, capture);

        let plan_of_domain = careof_plan::domain(&scenario, &topology, run);
        let plan_of_domain =
            plan_of_domain.transpose().map_err(|error| WorldError::Agent(error.to_string()))?;
        let (network, clock, tap) =
            Network::build(&scenario, &topology, run, &sysctls, plan_of_domain.as_ref())?;
        let attention = Attention::default();
        network.emulator.apply(shortcuts(&scenario, &topology, &network, &attention))?;
        prepare_access_links(&network, &scenario)?;
        path_managers.prepare(&network.hosts, &topology)?;
        let fast = scenario.mobility.as_ref().and_then(|mobility| mobility.fast_handover.as_ref());
        let script = steps(&attached_first(&scenario), &handovers_of(&scenario, run), fast);
        schedule(&network, &scenario, &script)?;

        let (reports, inbox) = channel();
        let walk =
            plan_of_domain.as_ref().map(|plan| lay_down_walk(&scenario, &topology, run, plan, &network));
        let walk = walk.transpose()?.unwrap_or_default();
        let domain = match (plan_of_domain, &network.cells) {
            (Some(plan), Some(cells)) => {
                let world = (&*scenario, &*topology);
                Some(Domain::start(plan, world, &network, cells, (clock, &reports))?)
            }
            _ => None,
        };
        let multipath = careof_plan::multipath(&scenario, &topology, run);
        let (mut agents, mut routers) = (Vec::new(), Vec::new());
        let mut plan = None;
        for index in 0..topology.places.len() {
            let node = NodeId(index as u16);
            routers.extend(start_routers(&scenario, &topology, &network, (run, clock), node, &reports)?);
            let found = agent(&scenario, &topology, run, node)
                .map_err(|error| WorldError::Agent(error.to_string()))?;
            if let Some(AgentPlan::Mobile(config)) = &found {
                plan = Some(config.clone());
            }
            let place = topology.place(node);
            let random = stream(&scenario, run, &format!("agent.{}", place.name));
            let of_ipv4 =
                found.and_then(|found| setup(&scenario, &topology, run, node, found)).map(AnySetup::from);
            let of_ipv6 = mobile_ipv6::setup(&scenario, &topology, run, node)?.map(AnySetup::from);
            let host = network.host(node);
            let relay = multipath.as_ref().and_then(|plan| crate::multipath::relay(&scenario, plan, node));
            if let Some(relay) = relay {
                let faults = stream(&scenario, run, &format!("relay.{}.faults", place.name));
                agents.push(AgentThread::start_relay(host, relay, clock, faults, reports.clone())?);
            }
            let Some(setup) = of_ipv4.or(of_ipv6) else { continue };
            agents.push(AgentThread::start(node, host, setup, clock, random, reports.clone())?);
        }
        let relaying =
            relay.as_ref().map(|plan| start_relay(plan, &scenario, &topology, &network, (clock, &reports)));
        let relaying = relaying.transpose()?;
        let sampler = Sampler::start(&network.hosts, clock, reports.clone())?;
        let mut flows = Vec::new();
        for (index, (flow, choice)) in scenario.flows.iter().zip(&choices).enumerate() {
            let relay = relay.as_ref();
            let parts = Parts {
                scenario: &scenario,
                topology: &topology,
                network: &network,
                clock,
                relay,
                path_managers: &path_managers,
                run,
                own: own.as_ref().filter(|own| own.flow == flow.name),
            };
            flows.push(add_flow(&parts, index, flow, choice, &mut books, &reports)?);
        }
        // The relay's TCP is one for all flows.
        let of_relay = of_relay.iter().filter_map(|of_relay| of_relay.choices.values().next());
        let of_tcp = choices
            .iter()
            .zip(&scenario.flows)
            .filter(|(_, flow)| flow.is_over_tcp())
            .map(|(choice, _)| choice);
        let remarks = of_tcp.chain(of_relay).filter_map(|choice| choice.remark.clone());
        let scheduling = network.emulator.scheduling();
        let late = scheduling.remedy().map(|remedy| {
            format!(
                "the links run at {scheduling}: on a busy machine they are late by milliseconds ({remedy})"
            )
        });
        let told = teller.is_some().then(|| tcp_cm::REMARK.to_owned());
        let remarks = remarks.chain(told).chain(late).collect();

        let outcome = Arc::new(Outcome::default());
        let end = Instant::ZERO + scenario.duration;
        let last_report = Some(network.report_at(end)?);
        let journeys = vec![Journey::default(); topology.homes.mobile_nodes().count()];
        let director = Director {
            scenario,
            topology,
            network,
            clock,
            tap,
            sightings: Sightings::default(),
            books,
            agents,
            routers,
            flows,
            relay: relaying,
            path_managers,
            teller,
            sampler,
            inbox,
            outcome: Arc::clone(&outcome),
            script,
            next_step: 0,
            domain,
            walk,
            waits_for_station: true,
            lateness: Duration::ZERO,
            journeys,
            bindings: std::collections::BTreeSet::new(),
            attention,
            multipath,
            plan,
            end,
            last_report,
            finished: None,
            late: Vec::new(),
            run,
            file: file.to_owned(),
            programs: 0,
            round_trip: None,
        };
        let director =
            Builder::new().name("director".to_owned()).spawn(move || director.run()).map_err(|error| {
                Error::System {
                    doing: "start the run".to_owned(),
                    call: "clone",
                    errno: error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw),
                }
            })?;
        Ok(Self { clock, end, reports, outcome, remarks, director: Some(director) })
    }

    /// How long the scenario runs.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.end.since_start()
    }

    /// Waits until `until` or the end of the scenario, whichever is earlier, and returns the instant reached.
    ///
    /// # Errors
    /// [`WorldError`] when an agent or an application failed.
    pub fn advance(&mut self, until: Instant) -> Result<Instant, WorldError> {
        let until = until.min(self.end);
        let mut failure = self.outcome.failure.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(error) = failure.take() {
                return Err(error);
            }
            let left = self.clock.until(until);
            if left.is_zero() {
                return Ok(until);
            }
            let waited = self.outcome.changed.wait_timeout(failure, left);
            failure = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The events since the last call, in order of time. Empty without a trace. While the run goes on, the events of the
    /// last moment are kept back until nothing earlier can come.
    pub fn take_events(&mut self) -> Columns {
        let (reply, answer) = channel();
        let asked = self.reports.send(Report::TakeEvents(reply));
        let answer = asked.ok().and_then(|()| answer.recv().ok());
        answer.unwrap_or_else(|| EventLog::off().take_columns())
    }

    /// Lines to be told to the user: what runs otherwise than the scenario's words say. Those since the last call; they
    /// are there after [`LinuxRun::new`], and after [`LinuxRun::finish`].
    pub fn take_remarks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.remarks)
    }

    /// What the programs of flows printed that have ended since the last call. After [`LinuxRun::finish`] all have.
    pub fn take_outputs(&mut self) -> Vec<ProgramOutput> {
        std::mem::take(&mut *self.outcome.outputs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How the run goes; `None` once it is over.
    pub fn live(&mut self) -> Option<Live> {
        let (reply, answer) = channel();
        self.reports.send(Report::TakeLive(reply)).ok()?;
        answer.recv().ok()
    }

    /// Ends the run where it stands: completes the capture, takes everything down and draws up the summary. To be
    /// called once; events can still be taken afterwards.
    ///
    /// # Errors
    /// The capture could not be written, or the run broke off.
    pub fn finish(&mut self) -> io::Result<Summary> {
        let (reply, answer) = channel();
        let gone = || io::Error::other("the run broke off");
        self.reports.send(Report::Finish(reply)).map_err(|_| gone())?;
        let summary = answer.recv().map_err(|_| gone())??;
        if summary.lateness.is_some_and(|late| late > LATE) {
            self.remarks.push(format!(
                "the machine was too busy: something was late by more than {} ms (`late_s` says by how much), and times of \
                 the run may be wrong by as much (run it again with less beside it, or with fewer --jobs)",
                LATE.as_millis()
            ));
        }
        Ok(summary)
    }
}

impl Drop for LinuxRun {
    fn drop(&mut self) {
        let _ = self.reports.send(Report::Quit);
        if let Some(director) = self.director.take() {
            // A panic in it has been told by its hook.
            let _ = director.join();
        }
    }
}

/// The way of the mobile node through a domain; its links follow it by themselves.
fn lay_down_walk(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    plan: &DomainPlan,
    network: &Network,
) -> Result<VecDeque<(Instant, WalkStep)>, WorldError> {
    let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
    let (Some(fleet), Some(cells), Some((mobile, _))) = (fleet, &network.cells, plan.hosts.first()) else {
        return Ok(VecDeque::new());
    };
    let name = &topology.place(*mobile).name;
    let end = Instant::ZERO + scenario.duration;
    let steps = walk((scenario, run), fleet, (0, name), plan.lead, end);
    for (at, step) in &steps {
        let changes = cells.changes_of(*step, plan.is_semi_soft);
        if !changes.is_empty() {
            network.emulator.schedule(*at, changes)?;
        }
    }
    Ok(steps.into())
}

/// Access links wait for the mobile node: down. Their ends were made without a carrier.
fn prepare_access_links(network: &Network, scenario: &Scenario) -> Result<(), Error> {
    if network.cells.is_some() {
        // Those of a domain are made so.
        return Ok(());
    }
    for (link, _) in scenario.access_links() {
        network.emulator.apply(network.down(link, careof_link::Fate::Drop))?;
    }
    Ok(())
}

/// What flows are made of.
struct Parts<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology,
    network: &'a Network,
    clock: Clock,
    relay: Option<&'a RelayPlan>,
    path_managers: &'a PathManagers,
    run: u64,
    /// What is started in the place of the flow's command.
    own: Option<&'a OwnProgram>,
}

/// Starts the relay beside the home agent, whose tunnel device is one of the ways by which packets come in.
fn start_relay(
    plan: &RelayPlan,
    scenario: &Scenario,
    topology: &Topology,
    network: &Network,
    (clock, reports): (Clock, &Sender<Report>),
) -> Result<Worker, WorldError> {
    let links = topology.place(plan.node).interfaces.iter();
    let mut interfaces: Vec<String> =
        links.map(|interface| scenario.links[interface.out.0 as usize / 2].name.clone()).collect();
    let agent = match plan.home_address {
        IpAddr::V4(_) => HostOptions::default(),
        IpAddr::V6(_) => HostOptions::for_ipv6(),
    };
    interfaces.push(agent.tunnel_device);
    Ok(relay::start(plan.clone(), network.host(plan.node), interfaces, clock, reports.clone())?)
}

/// The endpoints of a flow over QUIC.
fn quic_config(
    parts: &Parts<'_>,
    (index, id): (usize, FlowId),
    nodes: [NodeId; 2],
    flow: &Flow,
    stop: Option<Instant>,
) -> QuicConfig {
    let Parts { scenario, topology, run, .. } = parts;
    let random = stream(scenario, *run, &workload_stream(&flow.name));
    let client = client_of(scenario, flow);
    let first =
        attached_first(scenario).into_iter().find(|link| topology.mobile_of(*link) == nodes[client.index()]);
    let interfaces = &topology.place(nodes[client.index()]).interfaces;
    let own = first.and_then(|link| interfaces.iter().find(|one| one.out == up_of(link)));
    let own = own.map(|one| topology.address(one.address)).filter(|_| migrates(flow));
    let role = |side| if side == client { Role::Client } else { Role::Server };
    QuicConfig {
        id,
        nodes,
        addresses: nodes.map(|node| topology.address(topology.address_of(node))),
        client,
        own,
        quic: scenario.flows[index].quic.as_ref().map(|quic| quic.config.clone()).unwrap_or_default(),
        random: Side::BOTH
            .map(|side| stream(scenario, *run, &format!("flow.{}.quic.{}", flow.name, role(side).name()))),
        workload: Workload::new(flow.workload, stop, random),
    }
}

fn add_flow(
    parts: &Parts<'_>,
    index: usize,
    flow: &Flow,
    choice: &KernelChoice,
    books: &mut Books,
    reports: &Sender<Report>,
) -> Result<DirectedFlow, WorldError> {
    let Parts { scenario, topology, network, clock, relay, path_managers, run, .. } = parts;
    let random = stream(scenario, *run, &workload_stream(&flow.name));
    let id = FlowId(index as u16);
    let nodes =
        [flow.from, flow.to].map(|node| topology.find(&scenario.node(node).name).unwrap_or(NodeId(0)));
    let client = if flow.mptcp.is_some() { client_of(scenario, flow) } else { Side::Opener };
    books.add_flow(BookedFlow {
        name: flow.name.clone(),
        nodes,
        kind: kind(&flow.workload),
        tcp: match &flow.quic {
            _ if matches!(flow.workload, Traffic::Voice(_)) => TcpSummary::udp(),
            Some(quic) => TcpSummary::quic(quic.config.congestion.name()),
            None => choice.summary(),
        },
        is_open_ended: flow.workload == Traffic::Command,
        multipath: flow.mptcp.is_some().then(|| Multipath { client, server_port: port(id, client.peer()) }),
        connections: 0,
    });
    if let Traffic::Video(video) = flow.workload {
        // Of one that never begins nothing else is told.
        books.enter_player(index, Player::new(video));
    }
    let senders = measured_senders(&flow.workload);
    let mut connections = Vec::new();
    let stop = flow.stop.map(|stop| Instant::ZERO + stop);
    let mut mover = None;
    let mut senders_looked_into = senders.to_vec();
    let worker = match flow.workload {
        Traffic::Bulk { .. }
        | Traffic::RequestResponse { .. }
        | Traffic::Paced { .. }
        | Traffic::OnOff(_)
        | Traffic::Video(_)
            if flow.quic.is_some() =>
        {
            let named: Vec<(Side, String)> = senders
                .iter()
                .enumerate()
                .map(|(rank, side)| (*side, measured_name(&flow.name, rank)))
                .collect();
            books.add_connection(index, Side::BOTH.map(|side| port(id, side)), &named);
            senders_looked_into.clear();
            let config = quic_config(parts, (index, id), nodes, flow, stop);
            let (worker, moves) = quic::start(config, &network.hosts, *clock, reports.clone())?;
            mover = moves;
            worker
        }
        Traffic::Bulk { .. }
        | Traffic::RequestResponse { .. }
        | Traffic::Paced { .. }
        | Traffic::OnOff(_)
        | Traffic::Video(_) => {
            let named: Vec<(Side, String)> = senders
                .iter()
                .enumerate()
                .map(|(rank, side)| (*side, measured_name(&flow.name, rank)))
                .collect();
            let ports = Side::BOTH.map(|side| port(id, side));
            connections = match relay.filter(|relay| relay.splits(index)) {
                _ if flow.mptcp.is_some() => {
                    books.add_multipath_connection(index, &named);
                    Vec::new()
                }
                Some(relay) => books.add_split_connections(index, relay.node, ports, &named).to_vec(),
                None => vec![books.add_connection(index, ports, &named)],
            };
            let config = ApplicationConfig {
                id,
                nodes,
                client,
                server: topology.address(topology.address_of(nodes[client.peer().index()])),
                whereabouts: flow.mptcp.is_some().then(|| path_managers.whereabouts(nodes[client.index()])),
                workload: Workload::new(flow.workload, stop, random),
                options: choice.options.clone(),
                congestion: choice.of_sockets().to_owned(),
                name: flow.name.clone(),
            };
            application::start(config, &network.hosts, *clock, reports.clone())?
        }
        Traffic::Voice(voice) => {
            let mut random = random;
            let ports = Side::BOTH.map(|side| port(id, side));
            let of_voice = books.add_connection(index, ports, &[(Side::Opener, flow.name.clone())]);
            books.follow_voice(of_voice, &voice);
            senders_looked_into.clear();
            let config = VoiceConfig {
                id,
                nodes,
                addresses: nodes.map(|node| topology.address(topology.address_of(node))),
                rtp: RtpFlow::new(&voice, &mut random),
                payload: voice.payload,
                workload: Workload::new(flow.workload, stop, random),
            };
            voice::start(config, &network.hosts, *clock, reports.clone())?
        }
        Traffic::Command => {
            let place = (*scenario, *topology, *network);
            crate::programs::start(place, (index, parts.own), choice, *clock, reports.clone())?
        }
        Traffic::Probe { link } => {
            crate::probe::start(scenario, topology, network, index, link, *clock, reports.clone())?
        }
    };
    Ok(DirectedFlow {
        start: Instant::ZERO + flow.start,
        stop,
        mobile_nodes: nodes.iter().filter_map(|node| topology.homes.index(*node)).collect(),
        opened: false,
        connections,
        looked_into: senders_looked_into,
        worker,
        mover,
    })
}
