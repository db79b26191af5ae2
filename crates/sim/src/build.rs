//! From a scenario to a world at time zero.

use std::collections::BTreeMap;

use careof_base::Instant;
use careof_link::{Fate, Link};
use careof_metrics::{FlowMetrics, MOST_DELAYS};
use careof_mobility::v4::{ConfigError, CorrespondentNode, ForeignAgent, HomeAgent, MobileNode};
use careof_plan::{
    AgentPlan, Captures, Digest, FlowId, InterfaceIndex, Locator, NodeId, Observation, OneWayId, Plan, Side,
    Unwrapped, Workload, attached_first, call, down_of, drawn, handovers_of, lay_out, measured_name,
    measured_senders, migrates, names, port, refuse_what_no_world_can, stall_threshold, up_of,
    workload_stream,
};
use careof_scenario::{Assist, KernelTcp, LinkId, Scenario, Workload as Traffic};
use careof_tcp::{Config, CongestionControl, Connection, Role as TcpRole};
use careof_wire::SeqNumber;

use crate::advice::change_senders;
use crate::agents::Agent;
use crate::bytes::PacketBytes;
use crate::fleet::Fleet;
use crate::flow::{End, Flow};
use crate::handover::Script;
use crate::header::{IPV4_LEN, IPV6_LEN};
use crate::ledger::Ledger;
use crate::observer::{Observer, Pcap};
use crate::packet::PacketPool;
use crate::queue::{EventQueue, Slot};
use crate::simulation::{Component, OneWay, Simulation, WorldError};

impl Simulation {
    /// Builds the world of `scenario`, read from `file`; `run` numbers the repetitions of one seed.
    ///
    /// # Errors
    /// [`WorldError`] when the scenario asks for something that cannot be simulated, or the capture cannot be begun.
    pub fn new(
        mut scenario: Scenario,
        file: &str,
        run: u64,
        observation: Observation,
    ) -> Result<Self, WorldError> {
        refuse_what_no_world_can(&scenario)?;
        refuse_what_is_a_kernels(&scenario)?;
        scenario = drawn(scenario, run);
        let topology = lay_out(&scenario);
        change_senders(&mut scenario, &topology);
        let log = observation.log(|| names(&scenario, &topology));
        let pcap = observation
            .capture
            .map(|request| {
                let captures = Captures::new(request, &scenario, &topology)?;
                Ok(Pcap::new(captures, topology.plan.clone()))
            })
            .transpose()
            .map_err(|error: std::io::Error| WorldError::Capture(error.to_string()))?;
        let mut queue = EventQueue::default();
        let mut components = vec![Component::Script];
        let script_slot = queue.add_slot();
        let starts = starts_of(&scenario);
        let mut simulation = Self {
            now: Instant::ZERO,
            end: Instant::ZERO + scenario.duration,
            queue,
            components: std::mem::take(&mut components),
            links: Vec::new(),
            media: Vec::new(),
            nodes: Vec::new(),
            pool: PacketPool::default(),
            flows: Vec::new(),
            migrating: Vec::new(),
            flow_metrics: Vec::new(),
            script: {
                let count = scenario.mobility.as_ref().map_or(0, |mobility| mobility.nodes.len());
                let fast = scenario.mobility.as_ref().and_then(|mobility| mobility.fast_handover.as_ref());
                Script::new(
                    script_slot,
                    count,
                    &attached_first(&scenario),
                    &handovers_of(&scenario, run),
                    fast,
                )
            },
            ledger: Ledger::default(),
            digest: Digest::new(),
            observer: Observer::new(log, pcap),
            bytes: PacketBytes::new(topology.plan.clone()),
            events: 0,
            ip_header_len: if topology.plan == Plan::Ipv4 { IPV4_LEN } else { IPV6_LEN },
            leaves_room: careof_plan::leaves_room(&scenario),
            passed_at_home: scenario
                .mobility
                .as_ref()
                .is_some_and(|mobility| mobility.leave_bad_paths)
                .then(std::collections::BTreeMap::new),
            tunnel_mtus: std::collections::BTreeMap::new(),
            black_holes: careof_metrics::BlackHoles::new(),
            malformed_messages: 0,
            registration_requests: 0,
            watches_neighbors: false,
            senders: None,
            relays: None,
            fleet: None,
            micro: None,
            multipath: None,
            cluster: None,
            topology,
            scenario_file: file.to_owned(),
            scenario,
            run,
        };
        for place in simulation.topology.places.clone() {
            let node = simulation.bare_node(place);
            simulation.nodes.push(node);
        }
        simulation.add_fleet();
        simulation.add_links();
        simulation.add_media();
        simulation.take_down_absent_links();
        simulation.add_agents()?;
        simulation.add_domain().map_err(|error| WorldError::Agent(error.to_string()))?;
        simulation.add_multipath();
        simulation.add_dhcp()?;
        simulation.add_flows();
        simulation.add_senders();
        simulation.add_relays();
        let (slot, first) = (simulation.script.slot, simulation.script.next_timeout());
        simulation.queue.set(slot, first);
        let absent: Vec<LinkId> = match &simulation.fleet {
            // A station's cell is there, whoever is in it.
            Some(_) => Vec::new(),
            None => simulation
                .scenario
                .access_links()
                .map(|(id, _)| id)
                .filter(|id| !starts.contains(id))
                .collect(),
        };
        for link in absent {
            simulation.tell_anchor(link, false);
        }
        for node in 0..simulation.nodes.len() {
            simulation.drive_agent(NodeId(node as u16));
        }
        Ok(simulation)
    }

    /// Where many move: a timer for each, which brings it to its first station when the run begins.
    fn add_fleet(&mut self) {
        let fleet = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
        let count = fleet.map(|fleet| fleet.count);
        let (Some(count), Some(home)) = (count, self.topology.homes.first().copied()) else { return };
        let slots: Vec<Slot> = (0..count).map(|n| self.add_component(Component::Roamer(n as u32))).collect();
        for slot in &slots {
            self.queue.set(*slot, Some(Instant::ZERO));
        }
        self.fleet = Fleet::new((&self.scenario, self.run), &self.topology, home, slots).map(Box::new);
    }

    /// By node of the scenario, the node of this world.
    fn nodes_of_the_scenario(&self) -> Vec<NodeId> {
        let by_name: BTreeMap<&str, u16> =
            self.nodes.iter().zip(0..).map(|(node, id)| (node.place.name.as_str(), id)).collect();
        let find = |name: &str| NodeId(by_name.get(name).copied().unwrap_or_default());
        self.scenario.nodes.iter().map(|node| find(&node.name)).collect()
    }

    /// Where the mobile node is not yet, its links are down; the script raises them when it comes.
    fn take_down_absent_links(&mut self) {
        let starts = starts_of(&self.scenario);
        for index in 0..self.scenario.links.len() {
            let link = LinkId(index);
            if self.scenario.link(link).access && !starts.contains(&link) {
                for way in [down_of(link), up_of(link)] {
                    self.take_down(way, Fate::Drop, Fate::Drop);
                }
            }
        }
    }

    fn add_links(&mut self) {
        let nodes = self.nodes_of_the_scenario();
        for index in 0..self.scenario.links.len() {
            let link = self.scenario.links[index].clone();
            let [a, b] = link.ends.map(|end| nodes[end.0]);
            for (direction, from, to, config) in [("down", a, b, link.down), ("up", b, a, link.up)] {
                let id = OneWayId(self.links.len() as u32);
                let name = format!("{}.{direction}", link.name);
                let stream = |purpose| self.stream(&format!("link.{name}.{purpose}"));
                let one_way = Link::new(config, stream("loss"), stream("jitter"), stream("queue"));
                let opposite = OneWayId(id.0 ^ 1);
                let interfaces = &self.node(to).place.interfaces;
                // A radio leads to a station's cell, and finds out which when its mobile node arrives there.
                let to_interface =
                    interfaces.iter().position(|interface| interface.out == opposite).unwrap_or_default();
                let slot = self.add_component(Component::Link(id));
                self.links.push(OneWay {
                    filters_icmp: one_way.config().filters_icmp,
                    link: one_way,
                    medium: None,
                    name,
                    from,
                    to,
                    to_interface: InterfaceIndex(to_interface as u16),
                    slot,
                    longest_queue: (0, 0),
                });
            }
        }
    }

    fn add_flows(&mut self) {
        let places = self.nodes_of_the_scenario();
        let threshold = stall_threshold(&self.scenario);
        let homes = self.topology.homes.clone();
        let roamer = |node: NodeId| homes.index(node);
        for index in 0..self.scenario.flows.len() {
            let spec = self.scenario.flows[index].clone();
            let id = FlowId(index as u16);
            let nodes = [spec.from, spec.to].map(|node| places[node.0]);
            let mut random = self.stream(&format!("flow.{}.iss", spec.name));
            let ends = Side::BOTH.map(|side| {
                let i = side.index();
                let role = if side == Side::Opener { TcpRole::Active } else { TcpRole::Passive };
                let iss = SeqNumber(random.next_u64() as u32);
                let config = Config { ip_header_len: self.ip_header_len, ..spec.tcp.config.clone() };
                let mut connection =
                    Connection::new(config, role, port(id, side), port(id, side.peer()), iss)
                        .unwrap_or_else(|error| unreachable!("the scenario checked this: {error}"));
                if side == Side::Acceptor && spec.is_over_tcp() {
                    connection.open(Instant::ZERO);
                }
                End {
                    connection,
                    node: nodes[i],
                    address: Locator::NOWHERE,
                    way: None,
                    slot: self.add_component(Component::Connection(id, side)),
                    received: 0,
                    traced: None,
                    traced_revision: None,
                    sent_seq: Unwrapped::from(iss),
                    window_shift: 0,
                    tells: 0,
                    heard: 0,
                    duplicate_acks: 0,
                    rtt_samples: 0,
                }
            });
            let mut measured = [None, None];
            for (rank, sender) in measured_senders(&spec.workload).iter().enumerate() {
                let [from, to] = [*sender, sender.peer()].map(|side| roamer(nodes[side.index()]));
                measured[sender.index()] = Some(self.flow_metrics.len());
                let metrics = FlowMetrics::with_stalls_from(threshold);
                self.flow_metrics.push(match &spec.workload {
                    Traffic::Voice(voice) => metrics.with_voice(call(voice)),
                    _ if self.flow_metrics.len() < MOST_DELAYS => metrics.with_delays(),
                    _ => metrics,
                });
                if self.fleet.is_none() {
                    self.script.metrics.add_flow(&measured_name(&spec.name, rank), from, to);
                }
            }
            let slot = self.add_component(Component::Flow(id));
            let start = Instant::ZERO + spec.start;
            self.queue.set(slot, Some(start));
            let moving = nodes.into_iter().find_map(roamer);
            // One between two of them opens when both are registered, whichever is the last.
            if let Some(fleet) = &mut self.fleet {
                nodes.into_iter().filter_map(roamer).for_each(|mobile| fleet.add_flow(mobile, id));
            }
            let quic = self.quic_flow(index, nodes);
            let voice = self.voice_flow(index);
            let random = self.stream(&workload_stream(&spec.name));
            if migrates(&spec) {
                self.migrating.push(id);
            }
            self.flows.push(Flow {
                name: spec.name.clone(),
                ends,
                workload: Workload::new(spec.workload, spec.stop.map(|stop| Instant::ZERO + stop), random),
                start,
                opened: false,
                slot,
                measured,
                mobile: moving.is_some(),
                roamer: moving.filter(|_| self.fleet.is_some()).map(|mobile| mobile as u32),
                // QUIC looks for the path's MTU by itself, and voice does not: neither listens to ICMP.
                pmtu_discovery: spec.tcp.pmtu_discovery && spec.is_over_tcp(),
                quic,
                voice,
            });
        }
    }

    fn add_agents(&mut self) -> Result<(), WorldError> {
        let refused = |error: ConfigError| WorldError::Agent(error.to_string());
        for index in 0..self.nodes.len() {
            let id = NodeId(index as u16);
            let stream = self.stream(&format!("agent.{}", self.node(id).place.name));
            if let Some(host) = self.ipv6_host(id).map_err(refused)? {
                self.watches_neighbors |= host.watches_neighbors();
                self.node_mut(id).agent = Agent::Ipv6(Box::new(host));
                self.add_assists(id)?;
                self.node_mut(id).resolve_routes();
                continue;
            }
            let agent =
                match careof_plan::agent(&self.scenario, &self.topology, self.run, id).map_err(refused)? {
                    Some(AgentPlan::Home(config)) => {
                        Agent::Home(Box::new(HomeAgent::new(self.now, *config, stream).map_err(refused)?))
                    }
                    Some(AgentPlan::Foreign(config)) => Agent::Foreign(Box::new(
                        ForeignAgent::new(self.now, *config, stream).map_err(refused)?,
                    )),
                    Some(AgentPlan::Mobile(config)) => {
                        Agent::Mobile(Box::new(MobileNode::new(self.now, *config, stream).map_err(refused)?))
                    }
                    Some(AgentPlan::Correspondent(config)) => Agent::Correspondent(Box::new(
                        CorrespondentNode::new(*config, stream).map_err(refused)?,
                    )),
                    None => Agent::None,
                };
            self.node_mut(id).agent = agent;
            self.add_assists(id)?;
            self.node_mut(id).resolve_routes();
        }
        Ok(())
    }

    /// Whether the mobile node has addresses of its own on the links it visits.
    pub(crate) fn is_co_located(&self) -> bool {
        self.scenario.mobility.as_ref().is_some_and(|mobility| mobility.care_of.is_co_located())
    }
}

/// The access links in use when the run begins, where nodes move by themselves.
fn starts_of(scenario: &Scenario) -> Vec<LinkId> {
    let nodes = scenario.mobility.iter().flat_map(|mobility| &mobility.nodes);
    nodes.map(|node| node.start).collect()
}

/// Refuses what only real hosts have: their TCP, programs, and links to be measured.
fn refuse_what_is_a_kernels(scenario: &Scenario) -> Result<(), WorldError> {
    let of_relays = scenario.assists.iter().find_map(|assist| match assist {
        Assist::Split(split) => split.tcp.as_ref().and_then(|tcp| tcp.kernel.as_ref()),
        _ => None,
    });
    if let Some(kernel) = of_relays {
        return Err(tcp_only_on_linux("assist.split.tcp", kernel));
    }
    for (index, flow) in scenario.flows.iter().enumerate() {
        if let Some(quic) = flow.quic.as_ref().filter(|quic| !quic.config.congestion.is_repeatable()) {
            let what = "it draws random numbers of its own, which no run could repeat; it runs";
            let key = format!("flow.{index}.quic.congestion");
            return Err(only_on_linux(&key, quic.config.congestion.name(), what));
        }
        if flow.mptcp.is_some() {
            let what = "Multipath TCP is the kernel's, of which the simulator has no model, and runs";
            return Err(only_on_linux(&format!("flow.{index}.mptcp"), "true", what));
        }
        let (key, found, what) = match (&flow.workload, &flow.tcp.kernel) {
            (Traffic::Command, _) => {
                let program = flow.programs.as_ref().and_then(|programs| programs.command.first());
                ("command", program.cloned().unwrap_or_default(), "programs run")
            }
            (Traffic::Probe { .. }, _) => ("kind", "probe".to_owned(), "links are measured"),
            (_, Some(kernel)) => return Err(tcp_only_on_linux(&format!("flow.{index}.tcp"), kernel)),
            (_, None) => continue,
        };
        return Err(only_on_linux(&format!("flow.{index}.{key}"), &found, what));
    }
    Ok(())
}

fn tcp_only_on_linux(table: &str, kernel: &KernelTcp) -> WorldError {
    let (key, value) = &kernel.asked_by;
    let what = if *key == "congestion" {
        let models: Vec<_> = CongestionControl::ALL.iter().map(|model| model.name()).collect();
        format!("there are models of {}, and a kernel's own runs", models.join(", "))
    } else {
        "a kernel's TCP runs".to_owned()
    };
    only_on_linux(&format!("{table}.{key}"), value, &what)
}

fn only_on_linux(key: &str, found: &str, what: &str) -> WorldError {
    WorldError::Unsupported {
        key: key.to_owned(),
        found: format!("\"{found}\""),
        remedy: format!("{what} on real hosts only: add --world linux"),
    }
}
