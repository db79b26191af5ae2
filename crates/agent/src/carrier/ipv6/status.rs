//! What an agent of Mobile IPv6 is doing, as a snapshot for people and programs.

use std::net::Ipv6Addr;

use careof_mobility::v6::{DropReason, MobileNode};
use serde::Serialize;

use super::Ipv6Carrier;
use super::agent::Agent;
use crate::carrier::status::AssistOverview;
use crate::carrier::{AgentCounters, AssistStatus, InterfaceStatus, Overview, Role, Status};

/// An interface of a mobile node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ipv6InterfaceStatus {
    /// Its name.
    pub name: String,
    /// Whether it exists, is up and has a carrier.
    pub up: bool,
    /// The addresses that can be care-of addresses.
    pub addresses: Vec<Ipv6Addr>,
    /// The routers heard there.
    pub routers: Vec<Ipv6Addr>,
}

/// A binding of a home agent or correspondent node.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ipv6BindingStatus {
    /// The mobile node.
    pub home_address: Ipv6Addr,
    /// Where its packets go.
    pub care_of: Ipv6Addr,
    /// What is left of its lifetime in seconds.
    pub left_s: f64,
}

/// The registration of a mobile node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ipv6RegistrationStatus {
    /// The home address.
    pub home_address: Ipv6Addr,
    /// Whether packets to it arrive.
    pub registered: bool,
    /// The home agent.
    pub home_agent: Option<Ipv6Addr>,
    /// The care-of address in use.
    pub care_of: Option<Ipv6Addr>,
    /// The interface in use.
    pub interface: Option<String>,
}

/// A snapshot of an agent of Mobile IPv6.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ipv6Status {
    /// Which kind of agent.
    pub role: Role,
    /// Seconds since the agent was opened.
    pub uptime_s: f64,
    /// The name of the tunnel device.
    pub tunnel_device: String,
    /// Mobile node: its interfaces.
    pub interfaces: Vec<Ipv6InterfaceStatus>,
    /// Mobile node: its registration.
    pub registration: Option<Ipv6RegistrationStatus>,
    /// Home agent and correspondent node: the bindings.
    pub bindings: Vec<Ipv6BindingStatus>,
    /// What its assists are doing.
    pub assist: Option<AssistStatus>,
    /// Why what is known of the host's interfaces may be old, while it may.
    pub network_problem: Option<String>,
    /// Routes that wait to be put into the host, or taken out of it.
    pub host_changes_pending: usize,
    /// What was counted, by name.
    pub counters: AgentCounters,
}

impl Ipv6Status {
    /// What agents of both versions have to tell.
    pub(in crate::carrier) fn in_common(self) -> Status {
        let interfaces = self.interfaces.into_iter().map(|interface| InterfaceStatus {
            name: interface.name,
            up: interface.up,
            address: interface.addresses.last().map(ToString::to_string),
            gateway: None,
            path: None,
        });
        Status {
            role: self.role,
            uptime_s: self.uptime_s,
            tunnel_device: self.tunnel_device,
            interfaces: interfaces.collect(),
            network_problem: self.network_problem,
            missing_addresses: Vec::new(),
            host_changes_pending: self.host_changes_pending,
            binding_count: self.bindings.len(),
            bindings: Vec::new(),
            store: None,
            visitor_count: 0,
            visitors: Vec::new(),
            registration: None,
            tunnels: Vec::new(),
            assist: self.assist,
            counters: self.counters,
            handovers: Vec::new(),
            next: None,
        }
    }

    /// The same in sums.
    pub(in crate::carrier) fn overview(self) -> Overview {
        let status = self.in_common();
        let assist = status.assist.map(|assist| AssistOverview {
            flows: assist.flows.len(),
            stored_packets: assist.stored_packets,
            stored_bytes: assist.stored_bytes,
        });
        Overview {
            role: status.role,
            uptime_s: status.uptime_s,
            interfaces: status.interfaces,
            missing_addresses: 0,
            host_changes_pending: status.host_changes_pending,
            bindings: status.binding_count,
            store: None,
            visitors: 0,
            registration: None,
            tunnels: Vec::new(),
            put_in: (0, 0),
            taken_out: (0, 0),
            assist,
            counters: status.counters,
        }
    }
}

impl Ipv6Carrier {
    pub(in crate::carrier) fn status(&self) -> Ipv6Status {
        let now = self.clock.now();
        let left = |expires: careof_base::Instant| expires.saturating_duration_since(now).as_secs_f64();
        let interfaces = self.interfaces.named().iter().map(|interface| Ipv6InterfaceStatus {
            name: interface.device.name.clone(),
            up: interface.is_up(),
            addresses: self.addresses.of(interface.device.id).collect(),
            routers: self.routers.of(interface.device.id).collect(),
        });
        let bindings = match &self.agent {
            Agent::Home(agent) => agent
                .bindings()
                .map(|binding| Ipv6BindingStatus {
                    home_address: binding.home_address,
                    care_of: binding.care_of,
                    left_s: left(binding.expires),
                })
                .collect(),
            Agent::Correspondent(node) => node
                .bindings()
                .map(|binding| Ipv6BindingStatus {
                    home_address: binding.home_address,
                    care_of: binding.care_of,
                    left_s: left(binding.expires),
                })
                .collect(),
            Agent::Mobile(_) => Vec::new(),
        };
        Ipv6Status {
            role: self.setup.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            tunnel_device: self.setup.host().tunnel_device.clone(),
            interfaces: interfaces.collect(),
            registration: match &self.agent {
                Agent::Mobile(node) => Some(self.registration(node)),
                Agent::Home(_) | Agent::Correspondent(_) => None,
            },
            bindings,
            assist: self.assists.as_ref().map(|assists| assists.status(now)),
            network_problem: self.reading.problem().map(ToString::to_string),
            host_changes_pending: self.host.unsettled(),
            counters: self.counters(),
        }
    }

    /// Why the host refused something last; for a log.
    pub(in crate::carrier) fn last_problem(&self) -> Option<String> {
        let host = self.host.last_refusal.as_ref().map(ToString::to_string);
        host.or_else(|| self.reading.problem().map(ToString::to_string))
    }

    fn registration(&self, node: &MobileNode) -> Ipv6RegistrationStatus {
        Ipv6RegistrationStatus {
            home_address: self.setup.home_address().unwrap_or(Ipv6Addr::UNSPECIFIED),
            registered: node.is_registered(),
            home_agent: node.home_agent(),
            care_of: node.care_of(),
            interface: node.active_interface().and_then(|id| self.interface_name(id).map(str::to_owned)),
        }
    }

    fn counters(&self) -> AgentCounters {
        let mut counters = AgentCounters::new();
        let mut add = |name: &str, value: u64| {
            counters.insert(name.to_owned(), value);
        };
        let agent = self.agent.counters();
        add("messages-received", agent.received);
        add("messages-sent", agent.sent);
        add("registrations-accepted", agent.accepted);
        add("answers-suppressed", agent.answers_suppressed);
        for reason in DropReason::ALL {
            add(&format!("dropped-{}", reason.name()), agent.dropped(reason));
        }
        for (status, count) in agent.refusals() {
            add(&format!("refused-{status}"), count);
        }
        let carried = &self.carried;
        add("packets-tunnelled-out", carried.tunnelled_out);
        add("packets-tunnelled-in", carried.tunnelled_in);
        add("packets-optimised-out", carried.optimised_out);
        add("packets-optimised-in", carried.optimised_in);
        add("packets-no-way", carried.no_way);
        add("packets-not-ours", carried.not_ours);
        add("packets-malformed", carried.malformed);
        add("packets-looping", carried.looping);
        add("packets-unsuitable", carried.unsuitable);
        add("packets-refused", carried.refused);
        add("packets-not-delivered", self.tun.counters().refused);
        add("packets-for-nobody", carried.for_nobody);
        add("errors-relayed", carried.errors_relayed);
        add("errors-suppressed", self.limit.suppressed);
        add("fragments-dropped", self.fragments_dropped());
        add("messages-unsent", self.unsent);
        add("messages-unreadable", self.unreadable);
        add("advertisements-not-kept", self.routers.not_kept);
        add("host-changes-refused", self.host.refused);
        add("parameters-refused", self.parameters.refused);
        add("readings-failed", self.reading.failed);
        add("overruns", self.overruns);
        add("events-lost", self.events.lost);
        for (name, count) in self.assists.iter().flat_map(|assists| assists.counters()) {
            add(&format!("assist-{name}"), count);
        }
        counters
    }
}
