//! The status of an agent, put together from what its parts know.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::time::Duration;

use careof_base::{DataRate, Instant};
use careof_mobility::v4::{DropReason, InterfaceId, PathFault, PathQuality};
use careof_wire::tunnel::Encapsulation;

use super::agent::Agent;
use super::data_plane::{LANES, Uncarried};
use super::multipath::Bonds;
use super::status::Overview;
use super::{
    AgentCounters, BindingStatus, InterfaceStatus, Ipv4Carrier, MultipathStatus, PathStatus,
    RegistrationStatus, Status, StoreError, TunnelStatus, VisitorStatus,
};

const fn word(encapsulation: Encapsulation) -> &'static str {
    match encapsulation {
        Encapsulation::IpInIp => "ip-in-ip",
        Encapsulation::Minimal => "minimal",
        Encapsulation::Gre { .. } => "gre",
    }
}

pub(super) fn left(now: Instant, expires: Instant) -> Option<f64> {
    (expires < Instant::MAX).then(|| expires.saturating_duration_since(now).as_secs_f64())
}

/// Everything that a home address can be.
const ALL: RangeInclusive<Ipv4Addr> = Ipv4Addr::UNSPECIFIED..=Ipv4Addr::BROADCAST;

/// The first items, those of `most` mobile nodes, and the home address of the next one.
pub(super) fn part<'a, T: 'a, A: Copy + PartialEq>(
    items: impl Iterator<Item = &'a T>,
    home_address: impl Fn(&T) -> A,
    most: usize,
) -> (Vec<&'a T>, Option<A>) {
    let (mut taken, mut nodes, mut last) = (Vec::new(), 0, None);
    for item in items {
        let of = home_address(item);
        if last != Some(of) {
            if nodes == most {
                return (taken, Some(of));
            }
            nodes += 1;
            last = Some(of);
        }
        taken.push(item);
    }
    (taken, None)
}

/// What is known of a path, for people and programs.
pub(super) fn described_path(quality: &PathQuality, now: Instant) -> PathStatus {
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let part = |permille: u16| f64::from(permille) / 1000.0;
    PathStatus {
        state: quality.state.name(),
        round_trip_ms: quality.round_trip.map(ms),
        variation_ms: quality.variation.map(ms),
        least_round_trip_ms: quality.least_round_trip.map(ms),
        fault: quality.fault.map(PathFault::name),
        avoided: quality.avoided,
        loss_out: quality.uplink.loss_permille.map(part),
        loss_in: quality.downlink.loss_permille.map(part),
        delivered_out: quality.uplink.delivered.map(DataRate::bits_per_second),
        delivered_in: quality.downlink.delivered.map(DataRate::bits_per_second),
        received_ago_s: quality.last_received.map(|at| now.saturating_duration_since(at).as_secs_f64()),
        probes_sent: quality.probes_sent,
        probes_answered: quality.probes_answered,
    }
}

impl Ipv4Carrier {
    /// `from` an address of IPv6 is none.
    pub(super) fn status_part(&self, from: Option<IpAddr>, most: usize) -> Status {
        let now = self.clock.now();
        let from = match from {
            Some(IpAddr::V4(from)) => from,
            Some(IpAddr::V6(_)) | None => Ipv4Addr::UNSPECIFIED,
        };
        let mut after = None;
        let name = |id| self.interface_name(id).map(str::to_owned);
        let mut status = Status {
            role: self.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            tunnel_device: self.setup.host().tunnel_device.clone(),
            interfaces: self.interface_statuses(),
            network_problem: self.reading.problem().map(ToString::to_string),
            missing_addresses: self.missing.clone(),
            host_changes_pending: self.host.unsettled(),
            binding_count: 0,
            bindings: Vec::new(),
            store: self.persistence.status(now),
            visitor_count: 0,
            visitors: Vec::new(),
            registration: self.registration(),
            tunnels: Vec::new(),
            multipath: self.multipath(now),
            cluster: self.cluster.as_ref().map(|cluster| cluster.status()),
            relay: None,
            assist: self.data.assists.as_ref().map(|assists| assists.status(now)),
            counters: self.counters(),
            handovers: self.events.handovers().cloned().collect(),
            next: None,
        };
        match &self.agent {
            Agent::Home(agent) => {
                let (bindings, next) = part(agent.bindings_from(from), |binding| binding.home_address, most);
                let bindings = bindings.into_iter().map(|binding| BindingStatus {
                    home_address: binding.home_address.into(),
                    care_of: binding.care_of.into(),
                    lifetime_s: binding.lifetime.duration().map(|lifetime| lifetime.as_secs()),
                    left_s: left(now, binding.expires),
                    co_located: binding.co_located,
                    reverse_tunnel: binding.reverse_tunnel,
                    encapsulation: word(binding.tunnel.encapsulation),
                });
                (status.bindings, after) = (bindings.collect(), next);
                status.binding_count = agent.binding_count();
            }
            Agent::Foreign(agent) => {
                let (visitors, next) = part(agent.visitors_from(from), |visitor| visitor.home_address, most);
                let visitors = visitors.into_iter().map(|visitor| VisitorStatus {
                    home_address: visitor.home_address,
                    home_agent: visitor.home_agent,
                    care_of: visitor.care_of,
                    interface: name(visitor.interface),
                    left_s: left(now, visitor.expires),
                    reverse_tunnel: visitor.reverse_tunnel.is_some(),
                });
                (status.visitors, after) = (visitors.collect(), next);
                status.visitor_count = agent.visitor_count();
            }
            Agent::Mobile(_) => {}
        }
        status.next = after.map(IpAddr::V4);
        let last = after.map_or(Ipv4Addr::BROADCAST, |next| Ipv4Addr::from_bits(next.to_bits() - 1));
        status.tunnels = self.tunnels(now, &(from..=last));
        status
    }

    /// What the agent is doing, in sums; tunnels one by one only where they are of at most `most` mobile nodes.
    pub(super) fn overview(&self, most: usize) -> Overview {
        let now = self.clock.now();
        let (bindings, visitors) = match &self.agent {
            Agent::Home(agent) => (agent.binding_count(), 0),
            Agent::Foreign(agent) => (0, agent.visitor_count()),
            Agent::Mobile(_) => (0, 0),
        };
        let tells_each = self.decisions.mobile_nodes() <= most && most > 0;
        Overview {
            role: self.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            interfaces: self.interface_statuses(),
            missing_addresses: self.missing.len(),
            host_changes_pending: self.host.unsettled(),
            bindings,
            store: self.persistence.status(now),
            visitors,
            registration: self.registration(),
            tunnels: if tells_each { self.tunnels(now, &ALL) } else { Vec::new() },
            multipath: if tells_each { self.multipath(now) } else { Vec::new() },
            cluster: self.cluster.as_ref().map(|cluster| cluster.status()),
            relay: None,
            put_in: self.data.put_in.sums(),
            taken_out: self.data.taken_out.sums(),
            assist: self.data.assists.as_ref().map(|assists| assists.overview()),
            counters: self.counters(),
        }
    }

    /// The tunnels over several paths.
    fn multipath(&self, now: Instant) -> Vec<MultipathStatus> {
        let name = |id| self.interface_name(id).map(str::to_owned);
        self.data.bonds.as_ref().map_or_else(Vec::new, |bonds| bonds.statuses(now, name))
    }

    /// The interfaces that the agent uses.
    pub(super) fn interface_statuses(&self) -> Vec<InterfaceStatus> {
        let interfaces = self.interfaces.named().iter();
        interfaces.map(|interface| interface.status(self.path_status(interface.device.id))).collect()
    }

    fn path_status(&self, id: InterfaceId) -> Option<PathStatus> {
        let (Agent::Mobile(node), super::Setup::Mobile(setup)) = (&self.agent, &self.setup) else {
            return None;
        };
        if !setup.config.path_monitor {
            return None;
        }
        Some(described_path(&node.path_quality(id), self.clock.now()))
    }

    fn registration(&self) -> Option<RegistrationStatus> {
        let Agent::Mobile(node) = &self.agent else { return None };
        Some(RegistrationStatus {
            home_address: self.setup.home_address().unwrap_or(Ipv4Addr::UNSPECIFIED).into(),
            home_agent: node.home_agent().map(IpAddr::V4),
            registered: node.is_registered(),
            at_home: node.is_at_home(),
            interface: node.active().and_then(|id| self.interface_name(id)).map(str::to_owned),
            care_of: node.care_of_address().map(IpAddr::V4),
            anchor_point: None,
            on_link_care_of: None,
        })
    }

    /// The tunnels of the mobile nodes with these home addresses.
    fn tunnels(&self, now: Instant, of: &RangeInclusive<Ipv4Addr>) -> Vec<TunnelStatus> {
        let mut tunnels = BTreeMap::<Ipv4Addr, TunnelStatus>::new();
        let empty = |here: Ipv4Addr, there: Ipv4Addr| TunnelStatus {
            here: here.into(),
            there: there.into(),
            mtu: None,
            packets_out: 0,
            bytes_out: 0,
            packets_in: 0,
            bytes_in: 0,
        };
        for entrance in self.decisions.entrances_of(of.clone()) {
            let tunnel = entrance.tunnel;
            let status = tunnels.entry(tunnel.exit).or_insert_with(|| empty(tunnel.entry, tunnel.exit));
            let mtu = self.decisions.paths.latest(now, entrance.key(), self.data.path_mtu_floor);
            status.mtu = mtu.map(|mtu| tunnel.mtu(mtu)).or(status.mtu);
            status.packets_out += entrance.traffic.packets;
            status.bytes_out += entrance.traffic.bytes;
        }
        let own = self.own_tunnel_address();
        for (there, exit) in self.decisions.exits_of(of) {
            let status = tunnels.entry(there).or_insert_with(|| empty(own, there));
            status.packets_in += exit.traffic.packets;
            status.bytes_in += exit.traffic.bytes;
        }
        tunnels.into_values().collect()
    }

    /// Our end of tunnels that lead to us only.
    fn own_tunnel_address(&self) -> Ipv4Addr {
        let own = match (&self.agent, &self.setup) {
            (Agent::Mobile(node), _) => node.care_of_address(),
            (_, super::Setup::Home(setup)) => Some(setup.config.address),
            (_, super::Setup::Foreign(setup)) => setup.config.care_of_addresses.first().copied(),
            _ => None,
        };
        own.unwrap_or(Ipv4Addr::UNSPECIFIED)
    }

    fn counters(&self) -> AgentCounters {
        let mut counters = AgentCounters::new();
        let bonds = self.data.bonds.as_deref();
        let of_paths = |count: fn(&Bonds) -> u64| bonds.map_or(0, count);
        let mut add = |name: &str, value: u64| {
            counters.insert(name.to_owned(), value);
        };
        let agent = self.agent.counters();
        add("messages-received", agent.received);
        add("messages-sent", agent.sent);
        add("registrations-accepted", agent.accepted);
        add("denials-suppressed", agent.denials_suppressed);
        for reason in DropReason::ALL {
            add(&format!("dropped-{}", reason.name()), agent.dropped(reason));
        }
        for (code, count) in agent.denials() {
            add(&format!("denied-{code}"), count);
        }
        add("messages-unsent", self.signalling.unsent);
        add("messages-unreadable", self.signalling.unreadable);
        let Uncarried {
            other_protocol,
            no_way,
            too_long,
            looping,
            malformed,
            not_ours,
            other_encapsulation,
            unproven,
            unreachable,
            refused,
        } = self.data.uncarried;
        add("packets-other-protocol", other_protocol);
        add("packets-no-way", no_way);
        add("packets-too-long", too_long);
        add("packets-looping", looping);
        add("packets-malformed", malformed);
        add("packets-not-ours", not_ours + of_paths(|bonds| bonds.not_ours));
        add("packets-other-encapsulation", other_encapsulation);
        add("errors-unproven", unproven);
        add("packets-unreachable", unreachable);
        add("packets-refused", refused);
        add("packets-not-delivered", self.data.not_delivered());
        add("packets-not-read", self.data.not_read());
        let overrun = self.data.lanes.iter().take(LANES.len());
        let overrun = overrun.filter_map(|lane| lane.socket.dropped_by_kernel().ok());
        add("packets-overrun", overrun.map(u64::from).sum());
        add("errors-suppressed", self.data.limit.suppressed);
        add("announcements-sent", self.announcements.sent);
        add("path-messages-unsent", of_paths(|bonds| bonds.unsent));
        let of_cluster = self.cluster.as_ref().map_or(0, |cluster| cluster.events.lost);
        let of_paths_lost = of_paths(|bonds| bonds.events.lost + bonds.passed_unseen);
        add("events-lost", self.events.lost + of_paths_lost + of_cluster);
        add("bindings-saved", self.persistence.saved);
        add("bindings-not-saved", self.persistence.failed);
        add("bindings-restored", self.persistence.restored);
        add("network-overruns", self.overruns);
        add("network-unread", self.reading.failed);
        add("links-asked", self.questions.asked);
        add("links-flapped", self.questions.flaps);
        add("parameters-not-saved", self.parameters.not_logged);
        add("host-refusals", self.host.refused + self.parameters.refused);
        add("host-dumps", self.host.dumps());
        if let Some(bonds) = bonds {
            bonds.count(&mut counters);
        }
        if let Some(cluster) = &self.cluster {
            cluster.count(&mut counters);
        }
        let mut add = |name: &str, value: u64| {
            counters.insert(name.to_owned(), value);
        };
        for (name, count) in self.data.assists.iter().flat_map(|assists| assists.counters()) {
            add(&format!("assist-{name}"), count);
        }
        counters
    }

    pub(super) fn store_problem(&self) -> Option<&StoreError> {
        self.persistence.problem()
    }

    pub(super) fn missing_addresses(&self) -> &[IpAddr] {
        &self.missing
    }

    pub(super) fn last_problem(&self) -> Option<String> {
        let host = self.host.last_refusal.as_ref().map(ToString::to_string);
        let parameters = self.parameters.last_failure.as_ref();
        let parameters = parameters.map(|error| format!("former kernel parameters are not kept: {error}"));
        let reading = || self.reading.problem().map(ToString::to_string);
        host.or_else(reading).or(parameters).or_else(|| self.parameters.obstacle.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_between_mobile_nodes_and_says_with_which_to_go_on() {
        let address = |last| Ipv4Addr::new(10, 0, 0, last);
        let bindings = [1, 1, 2, 4, 4, 4, 9].map(address);
        let of = |address: &Ipv4Addr| *address;
        let (taken, next) = part(bindings.iter(), of, 2);
        assert_eq!((taken.len(), next), (3, Some(address(4))));
        let (taken, next) = part(bindings.iter().skip(3), of, 2);
        assert_eq!((taken.len(), next), (4, None));
        assert_eq!(part(bindings.iter().take(0), of, 2), (Vec::new(), None));
    }

    #[test]
    fn a_binding_for_ever_has_nothing_left_to_count() {
        assert_eq!(left(Instant::from_secs(5), Instant::MAX), None);
        assert_eq!(left(Instant::from_secs(5), Instant::from_secs(8)), Some(3.0));
        assert_eq!(left(Instant::from_secs(9), Instant::from_secs(8)), Some(0.0));
    }
}
