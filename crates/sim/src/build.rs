//! From a scenario to a world at time zero.

use std::io::Write;

use careof_base::{Duration, Instant, RandomStream};
use careof_link::{Fate, Link};
use careof_metrics::{Direction, FlowMetrics};
use careof_mobility::v4::{
    AdvertiserConfig, CareOfChoice, ConfigError, DeliveryMethod, EncapsulationChoice, ForeignAgent,
    ForeignAgentConfig, ForeignLink, HomeAgent, HomeAgentConfig, InterfaceConfig, InterfaceId, MobileNode,
    MobileNodeConfig, MovementConfig, NtpTime, PathProperties, PolicyEntry, PolicyTable, Prefix,
    ReplayProtection, SecurityAssociation, Selection, ServedMobileNode, WallClock,
};
use careof_scenario::{
    CareOf, Destination, Encapsulation, LinkId, Mobility, MovementDetection, QueuedFate, Replay, Role,
    Routing, Scenario, Workload as Traffic,
};
use careof_tcp::{Connection, Role as TcpRole};
use careof_trace::{EventLog, Names};
use careof_wire::SeqNumber;
use careof_wire::mip4::{Algorithm, Lifetime, Spi};

use crate::agents::Agent;
use crate::bytes::PacketBytes;
use crate::digest::Digest;
use crate::flow::{End, Flow, FlowId, Unwrapped};
use crate::handover::Script;
use crate::ledger::Ledger;
use crate::observer::{Observer, Pcap};
use crate::packet::PacketPool;
use crate::queue::EventQueue;
use crate::simulation::{Component, OneWay, Simulation, WorldError};
use crate::summary::measured_name;
use crate::topology::{Cable, HomeNetwork, InterfaceIndex, NodeId, OneWayId, Subnet, Topology};
use crate::transport::port;
use crate::workload::{Side, Workload};

/// Who looks on.
#[derive(Default)]
pub struct Observation {
    /// Keep an event log, for [`Simulation::take_events`].
    pub trace: bool,
    /// Write a capture (pcapng) here.
    pub pcap: Option<Box<dyn Write + Send>>,
    /// Bytes the capture keeps of each packet; `None` keeps all.
    pub snap_length: Option<u32>,
}

/// Midnight of 1 January 2000, the time of day at the beginning of every run: registrations carry it.
const EPOCH_UNIX: Duration = Duration::from_secs(946_684_800);

/// The SPI of the security association between the mobile node and its home agent.
const SPI: Spi = Spi(256);

impl Simulation {
    /// Builds the world of `scenario`, read from `file`; `run` numbers the repetitions of one seed.
    ///
    /// # Errors
    /// [`WorldError`] when the scenario asks for something that cannot be simulated, or the capture cannot be begun.
    pub fn new(
        scenario: Scenario,
        file: &str,
        run: u64,
        observation: Observation,
    ) -> Result<Self, WorldError> {
        refuse_what_cannot_be_simulated(&scenario)?;
        let topology = lay_out(&scenario);
        let home =
            scenario.mobility.as_ref().and_then(|_| Some((topology.find("mobile")?, topology.home_address?)));
        let log =
            if observation.trace { EventLog::new(names(&scenario, &topology)) } else { EventLog::off() };
        let pcap = observation
            .pcap
            .map(|out| Pcap::new(out, observation.snap_length, &link_ends(&scenario)))
            .transpose()
            .map_err(|error| WorldError::Capture(error.to_string()))?;
        let mut queue = EventQueue::default();
        let mut components = vec![Component::Script];
        let script_slot = queue.add_slot();
        let start = scenario.mobility.as_ref().map(|mobility| mobility.start);
        let mut simulation = Self {
            now: Instant::ZERO,
            end: Instant::ZERO + scenario.duration,
            queue,
            components: std::mem::take(&mut components),
            links: Vec::new(),
            nodes: Vec::new(),
            pool: PacketPool::default(),
            flows: Vec::new(),
            flow_metrics: Vec::new(),
            script: Script::new(script_slot, start, &scenario.handovers),
            ledger: Ledger::default(),
            digest: Digest::new(),
            observer: Observer { log, pcap },
            bytes: PacketBytes::default(),
            packet_hops: 0,
            events: 0,
            malformed_messages: 0,
            registration_requests: 0,
            home,
            scenario_file: file.to_owned(),
            scenario,
            run,
        };
        for place in topology.places.iter().cloned() {
            let node = simulation.bare_node(place);
            simulation.nodes.push(node);
        }
        simulation.add_links();
        simulation.add_agents(&topology).map_err(|error| WorldError::Agent(error.to_string()))?;
        simulation.add_flows();
        let (slot, first) = (simulation.script.slot, simulation.script.next_timeout());
        simulation.queue.set(slot, first);
        let absent: Vec<LinkId> =
            simulation.scenario.access_links().map(|(id, _)| id).filter(|id| Some(*id) != start).collect();
        for link in absent {
            simulation.tell_anchor(link, false);
        }
        for node in 0..simulation.nodes.len() {
            simulation.drive_agent(NodeId(node as u16));
        }
        Ok(simulation)
    }

    fn add_links(&mut self) {
        let start = self.scenario.mobility.as_ref().map(|mobility| mobility.start);
        for (index, link) in self.scenario.links.clone().into_iter().enumerate() {
            let [a, b] = link.ends.map(|end| self.node_named(&self.scenario.node(end).name));
            for (direction, from, to, config) in [("down", a, b, link.down), ("up", b, a, link.up)] {
                let id = OneWayId(self.links.len() as u32);
                let name = format!("{}.{direction}", link.name);
                let stream = |purpose| self.stream(&format!("link.{name}.{purpose}"));
                let mut one_way = Link::new(config, stream("loss"), stream("jitter"), stream("queue"));
                if link.access && start.is_some_and(|start| start != LinkId(index)) {
                    // The mobile node is not there yet; the script raises the link when it comes.
                    one_way.set_down(Instant::ZERO, Fate::Drop, Fate::Drop);
                }
                let opposite = OneWayId(id.0 ^ 1);
                let to_interface = self
                    .node(to)
                    .place
                    .interfaces
                    .iter()
                    .position(|interface| interface.out == opposite)
                    .unwrap_or_default();
                let slot = self.add_component(Component::Link(id));
                self.links.push(OneWay {
                    link: one_way,
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

    fn node_named(&self, name: &str) -> NodeId {
        let index = self.nodes.iter().position(|node| node.place.name == name);
        NodeId(index.unwrap_or_default() as u16)
    }

    fn add_flows(&mut self) {
        let mobile = self.home.map(|(node, _)| node);
        for (index, spec) in self.scenario.flows.clone().into_iter().enumerate() {
            let id = FlowId(index as u16);
            let nodes = [spec.from, spec.to].map(|node| self.node_named(&self.scenario.node(node).name));
            let mut random = self.stream(&format!("flow.{}.iss", spec.name));
            let ends = Side::BOTH.map(|side| {
                let i = side.index();
                let role = if side == Side::Opener { TcpRole::Active } else { TcpRole::Passive };
                let iss = SeqNumber(random.next_u64() as u32);
                let mut connection = Connection::new(
                    spec.tcp.config.clone(),
                    role,
                    port(id, side),
                    port(id, side.peer()),
                    iss,
                )
                .unwrap_or_else(|error| unreachable!("the scenario checked this: {error}"));
                if side == Side::Acceptor {
                    connection.open(Instant::ZERO);
                }
                End {
                    connection,
                    node: nodes[i],
                    address: core::net::Ipv4Addr::UNSPECIFIED,
                    slot: self.add_component(Component::Connection(id, side)),
                    received: 0,
                    traced: None,
                    traced_revision: None,
                    sent_seq: Unwrapped::from(iss),
                    window_shift: 0,
                    duplicate_acks: 0,
                    rtt_samples: 0,
                }
            });
            let mut measured = [None, None];
            for (rank, sender) in measured_senders(&spec.workload).iter().enumerate() {
                let ends = [*sender, sender.peer()].map(|side| Some(nodes[side.index()]) == mobile);
                measured[sender.index()] = Some(self.flow_metrics.len());
                self.flow_metrics.push(FlowMetrics::new());
                let direction = match ends {
                    [true, _] => Direction::FromMobile,
                    [_, true] => Direction::ToMobile,
                    [false, false] => Direction::Elsewhere,
                };
                self.script.metrics.add_flow(&measured_name(&spec.name, rank), direction);
            }
            let slot = self.add_component(Component::Flow(id));
            let start = Instant::ZERO + spec.start;
            self.queue.set(slot, Some(start));
            self.flows.push(Flow {
                name: spec.name.clone(),
                ends,
                workload: Workload::new(spec.workload, spec.stop.map(|stop| Instant::ZERO + stop)),
                start,
                opened: false,
                slot,
                measured,
                mobile: nodes.iter().any(|node| Some(*node) == mobile),
                pmtu_discovery: spec.tcp.pmtu_discovery,
            });
        }
    }

    fn add_agents(&mut self, topology: &Topology) -> Result<(), ConfigError> {
        let Some(mobility) = self.scenario.mobility.clone() else { return Ok(()) };
        let (Some(home_address), Some(agent_address)) = (topology.home_address, topology.home_agent_address)
        else {
            return Ok(());
        };
        let clock = WallClock::new(NtpTime::from_unix(EPOCH_UNIX));
        let home_network = Prefix::new(agent_address, Subnet::PREFIX_LEN);
        let security = self.security(&mobility)?;
        for index in 0..self.nodes.len() {
            let id = NodeId(index as u16);
            let name = self.node(id).place.name.clone();
            let role = self.scenario.nodes.iter().find(|node| node.name == name).map(|node| node.role);
            let stream = self.stream(&format!("agent.{name}"));
            let agent = match role {
                Some(Role::HomeAgent) => {
                    let home_interface = self
                        .node(id)
                        .place
                        .interfaces
                        .iter()
                        .position(|interface| interface.address == agent_address);
                    let mut config = HomeAgentConfig::new(
                        agent_address,
                        home_network,
                        InterfaceId(home_interface.map_or(u16::MAX, |index| index as u16)),
                    );
                    config.clock = clock;
                    config.advertisements = home_interface.map(|_| advertiser(&mobility));
                    config.mobile_nodes.push(ServedMobileNode::new(home_address, security.clone()));
                    Agent::Home(Box::new(HomeAgent::new(self.now, config, stream)?))
                }
                Some(Role::ForeignAgent) => self.foreign_agent(id, &mobility, stream)?,
                Some(Role::Mobile) => {
                    let interfaces = self.mobile_interfaces(id, &mobility);
                    let mut config = MobileNodeConfig::new(
                        home_address,
                        home_network,
                        agent_address,
                        security.clone(),
                        interfaces,
                    );
                    config.clock = clock;
                    config.lifetime = lifetime(&mobility);
                    config.simultaneous = mobility.simultaneous_bindings;
                    config.keep_old = mobility.keep_old;
                    config.encapsulation = match mobility.encapsulation {
                        Encapsulation::IpInIp => EncapsulationChoice::IpInIp,
                        Encapsulation::Minimal => EncapsulationChoice::Minimal,
                        Encapsulation::Gre => EncapsulationChoice::Gre,
                    };
                    config.movement = movement(&mobility);
                    if mobility.movement_detection != MovementDetection::LinkTrigger {
                        // Where advertisements tell, the node goes where it hears an agent.
                        config.selection = Selection::Preferred { hold: Duration::ZERO };
                    }
                    config.policy = self.policy(&mobility);
                    Agent::Mobile(Box::new(MobileNode::new(self.now, config, stream)?))
                }
                _ => Agent::None,
            };
            self.node_mut(id).agent = agent;
        }
        Ok(())
    }

    fn foreign_agent(
        &self,
        id: NodeId,
        mobility: &Mobility,
        stream: RandomStream,
    ) -> Result<Agent, ConfigError> {
        let mobile = self.mobile();
        let place = &self.node(id).place;
        let mut links =
            place.interfaces.iter().enumerate().filter(|(_, i)| i.peer == mobile).map(|(n, i)| ForeignLink {
                interface: InterfaceId(n as u16),
                address: i.address,
                advertisements: advertiser(mobility),
            });
        // The care-of address is the one towards the home network, as far as the scenario has such a link.
        let address = place
            .interfaces
            .iter()
            .find(|i| i.peer != mobile)
            .or(place.interfaces.first())
            .map_or(core::net::Ipv4Addr::UNSPECIFIED, |i| i.address);
        let Some(first) = links.next() else { return Ok(Agent::None) };
        let mut config = ForeignAgentConfig::new(address, address, first);
        config.links.extend(links);
        Ok(Agent::Foreign(Box::new(ForeignAgent::new(self.now, config, stream)?)))
    }

    fn mobile_interfaces(&self, id: NodeId, mobility: &Mobility) -> Vec<InterfaceConfig> {
        let place = &self.node(id).place;
        let interface = |(n, i): (usize, &crate::topology::Interface)| {
            let link = self.scenario.link(LinkId(i.out.0 as usize / 2));
            InterfaceConfig {
                id: InterfaceId(n as u16),
                care_of: match mobility.care_of {
                    CareOf::CoLocated => CareOfChoice::CoLocated,
                    CareOf::ForeignAgent => CareOfChoice::ForeignAgent,
                },
                preference: 0,
                path: PathProperties { rate: Some(link.down.rate), round_trip: None },
                up: false,
                address: None,
            }
        };
        place.interfaces.iter().enumerate().map(interface).collect()
    }

    fn security(&self, mobility: &Mobility) -> Result<SecurityAssociation, ConfigError> {
        let mut random = self.stream("mobility.key");
        let key = [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat();
        let algorithm = match mobility.algorithm {
            careof_scenario::Algorithm::HmacMd5 => Algorithm::HmacMd5,
            careof_scenario::Algorithm::HmacSha256 => Algorithm::HmacSha256,
        };
        let replay = match mobility.replay {
            Replay::Timestamps => ReplayProtection::TIMESTAMPS,
            Replay::Nonces => ReplayProtection::Nonces,
        };
        SecurityAssociation::new(SPI, algorithm, key, replay)
    }

    fn policy(&self, mobility: &Mobility) -> PolicyTable {
        let entries = mobility.policy.iter().map(|rule| PolicyEntry {
            destination: match rule.to {
                Destination::Any => Prefix::ALL,
                Destination::Node(node) => {
                    Prefix::host(self.own_address(self.node_named(&self.scenario.node(node).name)))
                }
                Destination::Prefix { address, length } => Prefix::new(address, length),
            },
            port: rule.port,
            method: method(rule.method),
        });
        PolicyTable::new(method(mobility.routing), entries)
    }

    /// Whether the mobile node has addresses of its own on the links it visits.
    pub(crate) fn is_co_located(&self) -> bool {
        self.scenario.mobility.as_ref().is_some_and(|mobility| mobility.care_of == CareOf::CoLocated)
    }
}

/// Who sends the data that a flow is about: the responses first, where both ends do.
pub(crate) fn measured_senders(workload: &Traffic) -> &'static [Side] {
    match workload {
        Traffic::Bulk { .. } | Traffic::Paced { .. } => &[Side::Opener],
        Traffic::RequestResponse { .. } => &[Side::Acceptor, Side::Opener],
    }
}

fn method(routing: Routing) -> DeliveryMethod {
    match routing {
        Routing::Triangle => DeliveryMethod::Triangle,
        Routing::ReverseTunnel => DeliveryMethod::ReverseTunnel,
        Routing::RegularIp => DeliveryMethod::RegularIp,
    }
}

fn advertiser(mobility: &Mobility) -> AdvertiserConfig {
    AdvertiserConfig {
        prefix_length: Some(Subnet::PREFIX_LEN),
        ..AdvertiserConfig::every(mobility.advertisement_interval)
    }
}

fn lifetime(mobility: &Mobility) -> Lifetime {
    match mobility.lifetime {
        Some(lifetime) => Lifetime::from_secs(u16::try_from(lifetime.as_secs()).unwrap_or(u16::MAX)),
        None => Lifetime::INFINITE,
    }
}

fn movement(mobility: &Mobility) -> MovementConfig {
    let nothing =
        MovementConfig { lifetime: false, missed_advertisements: None, prefix: false, link_layer: false };
    match mobility.movement_detection {
        MovementDetection::LinkTrigger => MovementConfig { link_layer: true, ..nothing },
        MovementDetection::MissedAdvertisements => {
            MovementConfig { missed_advertisements: Some(3), ..nothing }
        }
        MovementDetection::Lifetime => MovementConfig { lifetime: true, ..nothing },
        // A prefix tells agents of one link apart; that a link is gone shows when its agent's lifetime ends.
        MovementDetection::Prefix => MovementConfig { prefix: true, lifetime: true, ..nothing },
    }
}

/// More flows would run out of port numbers, and more links of the numbers that traces give them.
const MAX_FLOWS: usize = 40_000;
const MAX_LINKS: usize = 30_000;
/// A datagram of this size can still be put into a tunnel.
const MAX_TUNNELLED_MTU: u16 = 65_000;

fn refuse_what_cannot_be_simulated(scenario: &Scenario) -> Result<(), WorldError> {
    for (key, found, limit) in
        [("flow", scenario.flows.len(), MAX_FLOWS), ("links", scenario.links.len(), MAX_LINKS)]
    {
        if found > limit {
            return Err(WorldError::Unsupported {
                key: key.to_owned(),
                found: format!("{found} of them"),
                remedy: format!("there can be at most {limit}"),
            });
        }
    }
    if let Some(mobility) = &scenario.mobility {
        let by_advertisements = mobility.movement_detection != MovementDetection::LinkTrigger;
        if by_advertisements && mobility.care_of == CareOf::CoLocated {
            return Err(WorldError::Unsupported {
                key: "mobility.movement_detection".to_owned(),
                found: format!("\"{}\"", mobility.movement_detection),
                remedy: "no agent advertises where care-of addresses are co-located; use \"link-trigger\", or care_of = \"foreign-agent\"".to_owned(),
            });
        }
        let regular = mobility.policy.iter().position(|rule| rule.method == Routing::RegularIp);
        if let (Some(rule), CareOf::ForeignAgent) = (regular, mobility.care_of) {
            return Err(WorldError::Unsupported {
                key: format!("mobility.policy.{rule}.method"),
                found: "\"regular-ip\"".to_owned(),
                remedy: "the mobile node has no address of its own behind a foreign agent; use care_of = \"co-located\"".to_owned(),
            });
        }
        for link in &scenario.links {
            let mtu = link.down.mtu.max(link.up.mtu);
            if mtu > MAX_TUNNELLED_MTU {
                return Err(WorldError::Unsupported {
                    key: format!("links.{}.mtu", link.name),
                    found: format!("{mtu} B"),
                    remedy: format!("where packets are tunnelled it can be at most {MAX_TUNNELLED_MTU} B"),
                });
            }
        }
    }
    for (index, handover) in scenario.handovers.iter().enumerate() {
        let anchor = scenario.node(scenario.link(handover.from).ends[0]);
        if handover.queued == QueuedFate::ReRoute && anchor.role != Role::HomeAgent {
            return Err(WorldError::Unsupported {
                key: format!("handover.{index}.queued"),
                found: "\"re-route\"".to_owned(),
                remedy: format!(
                    "packets can be re-routed where the tunnel begins, but link {} hangs on {}",
                    scenario.link(handover.from).name,
                    anchor.name
                ),
            });
        }
        let found = match handover.queued {
            QueuedFate::BufferAndForward => "buffer-and-forward",
            QueuedFate::Duplicate => "duplicate",
            QueuedFate::DrainLate | QueuedFate::Drop | QueuedFate::DropWithIcmp | QueuedFate::ReRoute => {
                continue;
            }
        };
        return Err(WorldError::Unsupported {
            key: format!("handover.{index}.queued"),
            found: format!("\"{found}\""),
            remedy: "this version knows \"drain-late\", \"drop\", \"drop-with-icmp\" and \"re-route\""
                .to_owned(),
        });
    }
    Ok(())
}

fn lay_out(scenario: &Scenario) -> Topology {
    let cables: Vec<Cable<'_>> = scenario
        .links
        .iter()
        .map(|link| Cable {
            name: &link.name,
            between: link.ends.map(|end| scenario.node(end).name.as_str()),
        })
        .collect();
    let home = scenario.mobility.as_ref().map(|mobility| HomeNetwork {
        home_agent: "home-agent",
        mobile: "mobile",
        link: mobility.home.map(|home| scenario.link(home).name.as_str()),
    });
    Topology::build(&cables, home.as_ref())
}

fn names(scenario: &Scenario, topology: &Topology) -> Names {
    Names {
        nodes: topology.places.iter().map(|place| place.name.clone()).collect(),
        links: scenario
            .links
            .iter()
            .flat_map(|link| [format!("{}.down", link.name), format!("{}.up", link.name)])
            .collect(),
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
    }
}

/// `gsm@home-agent`, `gsm@mobile`, ...: the capture's interfaces, by link and end.
fn link_ends(scenario: &Scenario) -> Vec<String> {
    scenario
        .links
        .iter()
        .flat_map(|link| link.ends.map(|end| format!("{}@{}", link.name, scenario.node(end).name)))
        .collect()
}
