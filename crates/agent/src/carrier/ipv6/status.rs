//! What an agent of Mobile IPv6 is doing, as a snapshot for people and programs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_base::Instant;
use careof_mobility::InterfaceId;
use careof_mobility::v6::DropReason;
use careof_wire::mip6::Lifetime;
use serde::Serialize;

use super::Ipv6Carrier;
use super::agent::Agent;
use super::mobile::Mobile;
use super::tunnels::ALL;
use crate::carrier::snapshot::{described_path, left, part};
use crate::carrier::{
    AgentCounters, AssistStatus, BindingStatus, InterfaceStatus, Overview, PathStatus, RegistrationStatus,
    Role, Status,
};

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
    /// Its IPv4 home address, if that is bound, too (RFC 5555).
    pub ipv4_home_address: Option<Ipv4Addr>,
    /// Where its packets go; IPv4-mapped where that is an IPv4 address.
    pub care_of: Ipv6Addr,
    /// What is left of its lifetime in seconds.
    pub left_s: f64,
}

/// The registration of a mobile node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Ipv6RegistrationStatus {
    /// The home address.
    pub home_address: Ipv6Addr,
    /// The IPv4 home address, while the home agent has bound it (RFC 5555).
    pub ipv4_home_address: Option<Ipv4Addr>,
    /// Whether packets to it arrive.
    pub registered: bool,
    /// The home agent.
    pub home_agent: Option<Ipv6Addr>,
    /// The care-of address in use; IPv4-mapped where that is an IPv4 address. Under a mobility anchor point it is the regional one.
    pub care_of: Option<Ipv6Addr>,
    /// The mobility anchor point in use (RFC 5380).
    pub anchor_point: Option<Ipv6Addr>,
    /// The on-link care-of address that it knows.
    pub on_link_care_of: Option<Ipv6Addr>,
    /// The interface in use.
    pub interface: Option<String>,
}

/// A snapshot of an agent of Mobile IPv6, with what is not in [`Status`]: all addresses and routers of its interfaces.
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

/// How a home agent wraps packets for mobile nodes (RFC 2473), and how a correspondent node has them go without a tunnel (RFC 6275
/// section 6.4).
const IPV6_IN_IPV4: &str = "ipv6-in-ipv4";
const IPV6_IN_IPV6: &str = "ipv6-in-ipv6";
const TYPE_2_ROUTING: &str = "type-2-routing";

impl Ipv6Carrier {
    /// See [`Carrier::status_part`](crate::Carrier::status_part). `from` an address of IPv4 is none.
    pub(in crate::carrier) fn status_part(&self, from: Option<IpAddr>, most: usize) -> Status {
        let now = self.clock.now();
        let from = match from {
            Some(IpAddr::V6(from)) => from,
            Some(IpAddr::V4(_)) | None => Ipv6Addr::UNSPECIFIED,
        };
        let described =
            |home_address: Ipv6Addr, care_of: Ipv6Addr, lifetime: Lifetime, expires| BindingStatus {
                home_address: home_address.into(),
                care_of: care_of.to_canonical(),
                lifetime_s: Some(lifetime.duration().as_secs()),
                left_s: left(now, expires),
                co_located: true,
                reverse_tunnel: matches!(self.agent, Agent::Home(_)),
                encapsulation: if care_of.to_ipv4_mapped().is_some() {
                    IPV6_IN_IPV4
                } else if matches!(self.agent, Agent::Home(_)) {
                    IPV6_IN_IPV6
                } else {
                    TYPE_2_ROUTING
                },
            };
        let (bindings, next): (Vec<BindingStatus>, _) = match &self.agent {
            Agent::Home(agent) => {
                let (bindings, next) = part(agent.bindings_from(from), |binding| binding.home_address, most);
                let bindings = bindings.into_iter();
                let described =
                    bindings.map(|one| described(one.home_address, one.care_of, one.lifetime, one.expires));
                (described.collect(), next)
            }
            Agent::Correspondent(node) => {
                let (bindings, next) = part(node.bindings_from(from), |binding| binding.home_address, most);
                let bindings = bindings.into_iter();
                let described =
                    bindings.map(|one| described(one.home_address, one.care_of, one.lifetime, one.expires));
                (described.collect(), next)
            }
            Agent::Mobile(_) | Agent::AccessRouter(_) => (Vec::new(), None),
        };
        let last = next.map_or(*ALL.end(), |next| Ipv6Addr::from_bits(next.to_bits().saturating_sub(1)));
        Status {
            role: self.setup.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            tunnel_device: self.setup.host().tunnel_device.clone(),
            interfaces: self.interface_statuses(),
            network_problem: self.reading.problem().map(ToString::to_string),
            missing_addresses: self.missing.clone(),
            host_changes_pending: self.host.unsettled(),
            binding_count: self.binding_count(),
            bindings,
            store: self.persistence.status(now),
            visitor_count: 0,
            visitors: Vec::new(),
            registration: self.registration_status(),
            multipath: Vec::new(),
            cluster: None,
            relay: None,
            tunnels: self.tunnels.statuses(&(from..=last)),
            assist: self.assists.as_ref().map(|assists| assists.status(now)),
            counters: self.counters(),
            handovers: self.events.handovers().cloned().collect(),
            next: next.map(IpAddr::V6),
        }
    }

    /// What the agent is doing, in sums; tunnels one by one only where they are at most `most`.
    pub(in crate::carrier) fn overview(&self, most: usize) -> Overview {
        let now = self.clock.now();
        Overview {
            role: self.setup.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            interfaces: self.interface_statuses(),
            missing_addresses: self.missing.len(),
            host_changes_pending: self.host.unsettled(),
            bindings: self.binding_count(),
            store: self.persistence.status(now),
            visitors: 0,
            registration: self.registration_status(),
            tunnels: self.few_tunnels(most),
            multipath: Vec::new(),
            cluster: None,
            relay: None,
            put_in: self.carried.tunnelled_out.sums(),
            taken_out: self.carried.tunnelled_in.sums(),
            assist: self.assists.as_ref().map(|assists| assists.overview()),
            counters: self.counters(),
        }
    }

    /// The interfaces that the agent uses.
    pub(in crate::carrier) fn interface_statuses(&self) -> Vec<InterfaceStatus> {
        let now = self.clock.now();
        let interfaces = self.interfaces.named().iter().map(|interface| {
            let address = self.addresses.of(interface.device.id).last();
            let router = address.and_then(|own| self.routers.first_hop(interface.device.id, own));
            let ipv4 = || self.addresses.ipv4_of(interface.device.id).last().map(|(own, _)| IpAddr::V4(own));
            let address = address.map(IpAddr::V6).or_else(ipv4);
            InterfaceStatus {
                name: interface.device.name.clone(),
                up: interface.is_up(),
                address: address.map(|address| address.to_string()),
                gateway: router.map(IpAddr::V6),
                path: self.path_status(now, interface.device.id),
            }
        });
        interfaces.collect()
    }

    fn path_status(&self, now: Instant, id: InterfaceId) -> Option<PathStatus> {
        let (Agent::Mobile(node), Some(setup)) = (&self.agent, self.setup.mobile()) else { return None };
        let quality = node.path_quality(id).filter(|_| setup.config.path_monitor)?;
        Some(described_path(&quality, now))
    }

    fn binding_count(&self) -> usize {
        match &self.agent {
            Agent::Home(agent) => agent.binding_count(),
            Agent::Correspondent(node) => node.binding_count(),
            Agent::Mobile(_) | Agent::AccessRouter(_) => 0,
        }
    }

    fn registration_status(&self) -> Option<RegistrationStatus> {
        let Agent::Mobile(node) = &self.agent else { return None };
        let Ipv6RegistrationStatus {
            home_address,
            registered,
            home_agent,
            care_of,
            anchor_point,
            on_link_care_of,
            interface,
            ..
        } = self.registration(node);
        Some(RegistrationStatus {
            home_address: home_address.into(),
            home_agent: home_agent.map(IpAddr::V6),
            registered,
            at_home: node.is_at_home(),
            interface,
            care_of: care_of.map(|care_of| care_of.to_canonical()),
            anchor_point: anchor_point.map(IpAddr::V6),
            on_link_care_of: on_link_care_of.map(IpAddr::V6),
        })
    }

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
                    ipv4_home_address: binding.ipv4_home_address,
                    care_of: binding.care_of,
                    left_s: left(binding.expires),
                })
                .collect(),
            Agent::Correspondent(node) => node
                .bindings()
                .map(|binding| Ipv6BindingStatus {
                    home_address: binding.home_address,
                    ipv4_home_address: None,
                    care_of: binding.care_of,
                    left_s: left(binding.expires),
                })
                .collect(),
            Agent::Mobile(_) | Agent::AccessRouter(_) => Vec::new(),
        };
        Ipv6Status {
            role: self.setup.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            tunnel_device: self.setup.host().tunnel_device.clone(),
            interfaces: interfaces.collect(),
            registration: match &self.agent {
                Agent::Mobile(node) => Some(self.registration(node)),
                Agent::Home(_) | Agent::Correspondent(_) | Agent::AccessRouter(_) => None,
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
        let parameters = self.parameters.last_failure.as_ref();
        let parameters = parameters.map(|error| format!("former kernel parameters are not kept: {error}"));
        host.or_else(|| self.reading.problem().map(ToString::to_string)).or(parameters)
    }

    fn registration(&self, node: &Mobile) -> Ipv6RegistrationStatus {
        let (anchor_point, on_link_care_of) = node.map().unzip();
        Ipv6RegistrationStatus {
            home_address: self.setup.home_address().unwrap_or(Ipv6Addr::UNSPECIFIED),
            ipv4_home_address: node.ipv4_home_address(),
            registered: node.is_registered(),
            home_agent: node.home_agent(),
            care_of: node.care_of(),
            anchor_point,
            on_link_care_of,
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
        add("packets-tunnelled-out", carried.tunnelled_out.packets);
        add("packets-tunnelled-in", carried.tunnelled_in.packets);
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
        if matches!(self.agent, Agent::Home(_)) && self.setup.is_dual_stack() {
            add("announcements-sent", self.ipv4_announcements_sent());
        }
        if let Agent::AccessRouter(router) = &self.agent {
            let counters = router.buffer_counters();
            add("handover-packets-kept", counters.kept);
            add("handover-packets-released", counters.released);
            add("handover-packets-full", counters.full);
            add("handover-packets-expired", counters.expired);
            add("handover-packets-dropped", counters.dropped);
            add("handovers-from-here", self.kept.departures);
            add("handovers-to-here", self.kept.arrivals);
        }
        for (name, count) in self.fast.iter().flat_map(|fast| fast.counts()) {
            add(name, count);
        }
        add("messages-unsent", self.unsent);
        add("messages-unreadable", self.unreadable);
        add("advertisements-not-kept", self.routers.not_kept);
        add("router-solicitations-sent", self.solicitations.sent);
        add("router-solicitations-unsent", self.solicitations.unsent);
        add("routers-unreachable", self.unreachable_routers);
        add("bindings-saved", self.persistence.saved);
        add("bindings-not-saved", self.persistence.failed);
        add("bindings-restored", self.persistence.restored);
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
