//! The scenario as JSON: resolved, canonical, units in the names of the keys.

use careof_base::Duration;
use careof_link::{Config, Discipline, Jitter, Loss, QueueConfig, QueueLimit, UNLIMITED_RATE};
use careof_tcp::{AckCounting, CongestionControl, DelayedAck, HyStart, InitialWindow, ReductionBound};
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::mobility::usual_early_requests;
use crate::model::{
    AnchorPoint, AssistException, ClientCheck, CopyNumber, Destination, Dhcp, Discovery, FastHandover, Flow,
    Handover, Hierarchy, IpVersion, KnownRate, Link, LinkId, MobileNode, Mobility, Mptcp, Node, NodeId,
    PoissonHandovers, Protocol, Quic, Scenario, Tcp, TraceFile, Unreachability,
};
use crate::resolve::{HOME_AGENT, MOBILE};

/// A JSON value whose objects keep the order in which they were built.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Boolean(bool),
    Number(u64),
    Real(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Real(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

macro_rules! json_from {
    ($($type:ty => $variant:ident),+) => {
        $(impl From<$type> for Json {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        })+
    };
}

json_from!(bool => Boolean, u8 => Number, u16 => Number, u32 => Number, u64 => Number, f64 => Real, &str => Text,
    String => Text);

impl From<usize> for Json {
    fn from(value: usize) -> Self {
        Self::Number(value as u64)
    }
}

impl From<Duration> for Json {
    /// Nanoseconds.
    fn from(span: Duration) -> Self {
        Self::Number(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl<T: Into<Json>> From<Option<T>> for Json {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<T: Into<Json>> FromIterator<T> for Json {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

macro_rules! object {
    ($($key:literal: $value:expr),* $(,)?) => { Json::Object(vec![$(($key, Json::from($value))),*]) };
}

mod assist;
mod medium;
mod micro_mobility;
mod multipath;
mod workload;

impl Scenario {
    /// The scenario as one line of JSON: every default filled in, keys in a fixed order, units in their names.
    /// Two files that mean the same give the same text.
    #[must_use]
    pub fn canonical_json(&self) -> String {
        // Writing plain values to a string cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// SHA-256 of [`Scenario::canonical_json`] in hexadecimal: names what was run.
    #[must_use]
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(self.canonical_json().as_bytes());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn node_name(&self, id: NodeId) -> &str {
        self.nodes.get(id.0).map_or("", |node| node.name.as_str())
    }

    fn link_name(&self, id: crate::model::LinkId) -> &str {
        self.links.get(id.0).map_or("", |link| link.name.as_str())
    }
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        scenario(self).serialize(serializer)
    }
}

fn scenario(scenario: &Scenario) -> Json {
    let mut json = parts(scenario);
    if let (Json::Object(entries), IpVersion::V6) = (&mut json, scenario.ip_version) {
        entries.push(("ip_version", scenario.ip_version.number().into()));
    }
    // What is not asked for leaves no trace, so that a scenario without it keeps its digest.
    if let (Json::Object(entries), [_, ..]) = (&mut json, scenario.assist_except.as_slice()) {
        let exception =
            |one: &AssistException| object! { "peer": destination(scenario, one.peer), "port": one.port };
        entries.push(("assist_except", scenario.assist_except.iter().map(exception).collect()));
    }
    if let (Json::Object(entries), [_, ..]) = (&mut json, scenario.poisson_handovers.as_slice()) {
        let poisson = |one: &PoissonHandovers| {
            object! {
                "mean_ns": one.mean,
                "least_ns": one.least,
                "round": one.round.iter().map(|one| handover(scenario, one)).collect::<Json>(),
            }
        };
        entries.push(("poisson_handovers", scenario.poisson_handovers.iter().map(poisson).collect()));
    }
    if let (Json::Object(entries), [_, ..]) = (&mut json, scenario.media.as_slice()) {
        entries.push(("media", scenario.media.iter().map(|one| medium::medium(scenario, one)).collect()));
    }
    json
}

fn loss(law: Loss) -> Json {
    match law {
        Loss::None => object! { "kind": "none" },
        Loss::Bernoulli { p } => object! { "kind": "bernoulli", "p": p.get() },
        Loss::GilbertElliott { good_to_bad, bad_to_good, loss_in_good, loss_in_bad } => object! {
            "kind": "gilbert-elliott",
            "good_to_bad": good_to_bad.get(),
            "bad_to_good": bad_to_good.get(),
            "loss_in_good": loss_in_good.get(),
            "loss_in_bad": loss_in_bad.get(),
        },
    }
}

fn parts(scenario: &Scenario) -> Json {
    object! {
        "title": scenario.title.as_str(),
        "description": scenario.description.as_str(),
        "duration_ns": scenario.duration,
        "seed": scenario.seed,
        "stall_threshold_ns": scenario.stall_threshold,
        "nodes": scenario.nodes.iter().map(node).collect::<Json>(),
        "links": alone(&scenario.links, |link| link.copy).map(|one| link(scenario, one)).collect::<Json>(),
        "mobility": scenario.mobility.as_ref().map(|one| mobility(scenario, one)),
        "handovers": scenario.handovers.iter().map(|one| handover(scenario, one)).collect::<Json>(),
        "flows": alone(&scenario.flows, |flow| flow.copy).map(|one| flow(scenario, one)).collect::<Json>(),
        "assists": scenario.assists.iter().map(assist::assist).collect::<Json>(),
    }
}

fn node(node: &Node) -> Json {
    let mut json = object! {
        "name": node.name.as_str(),
        "role": node.role.name(),
    };
    if let (Json::Object(entries), Some(prefix)) = (&mut json, node.home_prefix) {
        entries.push(("home_prefix", prefix.to_string().into()));
    }
    if let (Json::Object(entries), false) = (&mut json, node.addresses.is_empty()) {
        let addresses = node.addresses.iter().map(|address| Json::from(address.to_string()));
        entries.push(("addresses", addresses.collect()));
    }
    json
}

/// Of the links or flows that one table stands for, the first.
fn alone<T>(all: &[T], copy: fn(&T) -> Option<CopyNumber>) -> impl Iterator<Item = &T> {
    all.iter().filter(move |one| copy(one).is_none_or(|copy| copy.number == 1))
}

/// Says of the first of many alike how many there are, and which nodes the last one joins. One that stands alone stays
/// as it is, so that a scenario without copies keeps its digest.
fn with_copies(mut json: Json, copy: Option<CopyNumber>, last: Option<[&str; 2]>) -> Json {
    if let (Json::Object(entries), Some(copy), Some(last)) = (&mut json, copy, last) {
        let last = last.into_iter().collect::<Json>();
        entries.push(("copies", object! { "count": copy.of as u64, "last_between": last }));
    }
    json
}

fn link(scenario: &Scenario, link: &Link) -> Json {
    let last = link.copy.and_then(|copy| {
        let first = scenario.links.iter().position(|other| other.name == link.name)?;
        let last = scenario.links.get(first + copy.of - 1)?;
        Some(last.ends.map(|end| scenario.node_name(end)))
    });
    with_copies(one_link(scenario, link), link.copy, last)
}

fn one_link(scenario: &Scenario, link: &Link) -> Json {
    let mut json = object! {
        "name": link.name.as_str(),
        "preset": link.preset,
        "implied": link.implied,
        "between": link.ends.iter().map(|end| scenario.node_name(*end)).collect::<Json>(),
        "access": link.access,
        "down": traced(&link.down, link.traces[0].as_ref()),
        "up": traced(&link.up, link.traces[1].as_ref()),
    };
    if let (Json::Object(entries), KnownRate::Unknown | KnownRate::Told(_)) = (&mut json, link.known_rate) {
        let rate = match link.known_rate {
            KnownRate::Told(rate) => Some(rate.bits_per_second()),
            KnownRate::True | KnownRate::Unknown => None,
        };
        entries.push(("known_rate_bps", rate.into()));
    }
    if let (Json::Object(entries), Some(prefix)) = (&mut json, link.prefix) {
        entries.push(("prefix", prefix.to_string().into()));
    }
    if let (Json::Object(entries), true) = (&mut json, link.ipv4_only) {
        entries.push(("ip_version", 4_u64.into()));
    }
    let medium = link.medium.and_then(|id| scenario.media.get(id.0));
    if let (Json::Object(entries), Some(medium)) = (&mut json, medium) {
        entries.push(("medium", medium.name.as_str().into()));
        entries.push(("straight", link.straight.into()));
    }
    json
}

/// One direction of a link that may go by a trace. One that does not stays as it is, so that it keeps its digest.
fn traced(config: &Config, file: Option<&TraceFile>) -> Json {
    let mut json = direction(config);
    if let (Json::Object(entries), Some(trace), Some(file)) = (&mut json, &config.trace, file) {
        let trace = object! {
            "file": file.file.as_str(),
            "sha256": file.sha256.as_str(),
            "start_ns": trace.start(),
            "period_ns": trace.period(),
        };
        entries.push(("trace", trace));
    }
    json
}

/// One direction of a link.
pub(crate) fn direction(config: &Config) -> Json {
    object! {
        "rate_bps": (config.rate != UNLIMITED_RATE).then_some(config.rate.bits_per_second()),
        "delay_ns": config.delay,
        "jitter": match config.jitter {
            Jitter::None => object! { "kind": "none" },
            Jitter::Uniform { spread, reorder } => {
                object! { "kind": "uniform", "spread_ns": spread, "reorder": reorder }
            }
            Jitter::Normal { deviation, reorder } => {
                object! { "kind": "normal", "deviation_ns": deviation, "reorder": reorder }
            }
            Jitter::Pareto { scale, shape, reorder } => {
                object! { "kind": "pareto", "scale_ns": scale, "shape": shape, "reorder": reorder }
            }
        },
        "loss": loss(config.loss),
        "queue": queue(&config.queue),
        "mtu_bytes": config.mtu,
        "filters_icmp": config.filters_icmp,
        "framing": object! {
            "bits_per_byte": config.framing.bits_per_byte,
            "overhead_bytes": config.framing.overhead_bytes,
        },
    }
}

fn queue(queue: &QueueConfig) -> Json {
    let (packets, bytes) = match queue.limit {
        QueueLimit::Packets(packets) => (Some(packets), None),
        QueueLimit::Bytes(bytes) => (None, Some(bytes)),
    };
    let mut json = object! {
        "limit_packets": packets,
        "limit_bytes": bytes,
        "discipline": match queue.discipline {
            Discipline::DropTail => object! { "kind": "drop-tail" },
            Discipline::Red(red) => object! {
                "kind": "red",
                "min_threshold_packets": red.min_threshold,
                "max_threshold_packets": red.max_threshold,
                "max_probability": red.max_probability.get(),
                "weight": red.weight,
                "gentle": red.gentle,
                "mean_packet_bytes": red.mean_packet_bytes,
            },
            Discipline::CoDel { target, interval } => {
                object! { "kind": "codel", "target_ns": target, "interval_ns": interval }
            }
        },
    };
    if let (Json::Object(entries), true) = (&mut json, queue.ecn) {
        entries.push(("ecn", true.into()));
    }
    json
}

fn mobility(scenario: &Scenario, mobility: &Mobility) -> Json {
    let mut json = rules(scenario, mobility);
    if let (Json::Object(entries), Some(dhcp)) = (&mut json, &mobility.dhcp) {
        entries.push(("dhcp", address_acquisition(dhcp)));
    }
    // What is not asked for leaves no trace, so that a scenario without it keeps its digest.
    if let Json::Object(entries) = &mut json
        && mobility.discovery != Discovery::every(mobility.discovery.interval)
    {
        entries.push(("discovery", discovery(&mobility.discovery)));
    }
    if let Json::Object(entries) = &mut json
        && mobility.early_requests != usual_early_requests(mobility.protocol)
    {
        entries.push(("early_requests", u64::from(mobility.early_requests).into()));
    }
    if let Json::Object(entries) = &mut json
        && mobility.path_monitor
    {
        entries.push(("path_monitor", true.into()));
    }
    if let Json::Object(entries) = &mut json
        && !mobility.order.is_empty()
    {
        let names =
            |links: &[LinkId]| links.iter().map(|link| scenario.link(*link).name.as_str()).collect::<Json>();
        entries.push(("order", names(&mobility.order)));
        entries.push(("metered", names(&mobility.metered)));
        entries.push(("leave_bad_paths", mobility.leave_bad_paths.into()));
    }
    if let (Json::Object(entries), Some(fast)) = (&mut json, &mobility.fast_handover) {
        entries.push(("fast_handover", fast_handover(fast)));
    }
    if let (Json::Object(entries), Some(one)) = (&mut json, &mobility.micro_mobility) {
        entries.push(("micro_mobility", micro_mobility::micro_mobility(scenario, one)));
    }
    if let (Json::Object(entries), Some(one)) = (&mut json, &mobility.multipath) {
        entries.push(("multipath", multipath::multipath(scenario, one)));
    }
    if let (Json::Object(entries), Some(one)) = (&mut json, &mobility.hierarchy) {
        entries.push(("hierarchy", hierarchy(scenario, one)));
    }
    // The one that is understood is told of as ever.
    let name = |node: NodeId| scenario.node_name(node);
    let is_understood = |one: &MobileNode| (name(one.node), name(one.home_agent)) == (MOBILE, HOME_AGENT);
    if let (Json::Object(entries), false) = (
        &mut json,
        mobility.fleet.is_some() || matches!(mobility.nodes.as_slice(), [one] if is_understood(one)),
    ) {
        let node = |one: &MobileNode| {
            object! {
                "node": name(one.node),
                "home_agent": name(one.home_agent),
                "start": scenario.link_name(one.start),
            }
        };
        entries.push(("mobile_nodes", mobility.nodes.iter().map(node).collect::<Json>()));
    }
    if let (Json::Object(entries), Some(fleet)) = (&mut json, &mobility.fleet) {
        let stations = fleet.stations.iter().map(|station| scenario.node_name(*station)).collect::<Json>();
        entries.push(("nodes", (fleet.count as u64).into()));
        entries.push(("stations", stations));
        entries.push(("every_ns", fleet.round.map(|round| round.every).into()));
        entries.push(("interruption_ns", fleet.round.map(|round| round.interruption).into()));
        if let Some(link_layer) = fleet.round.and_then(|round| round.link_layer) {
            entries.push(("link_layer", medium::link_layer(&link_layer)));
        }
        let in_domain = mobility.micro_mobility.is_some();
        if let Some(round) = fleet.round.filter(|_| in_domain) {
            entries.push(("overlap_ns", round.overlap.into()));
        }
        if let Some(round) = fleet.round.filter(|round| in_domain || !round.spread.is_zero()) {
            entries.push(("spread_ns", round.spread.into()));
        }
        if in_domain && fleet.round.is_some() {
            entries.push(("walk", micro_mobility::walk(scenario, &fleet.stations, &fleet.walk)));
        }
    }
    json
}

fn hierarchy(scenario: &Scenario, hierarchy: &Hierarchy) -> Json {
    let anchor_point = |one: &AnchorPoint| {
        object! {
            "node": scenario.node_name(one.node),
            "domain": one.domain.iter().map(|router| scenario.node_name(*router)).collect::<Json>(),
            "preference": one.preference,
        }
    };
    object! {
        "maps": hierarchy.anchor_points.iter().map(anchor_point).collect::<Json>(),
        "selection": hierarchy.selection.name(),
        "forwarding_ns": hierarchy.forwarding,
    }
}

fn rules(scenario: &Scenario, mobility: &Mobility) -> Json {
    let mut json = rules_of_both(scenario, mobility);
    // What a protocol does not have keeps out of what is said of it, so that digests stay as they are.
    if let (Json::Object(entries), Protocol::MobileIpv6) = (&mut json, mobility.protocol) {
        let detection = mobility.duplicate_address_detection.name();
        entries.push(("duplicate_address_detection", detection.into()));
    }
    json
}

fn rules_of_both(scenario: &Scenario, mobility: &Mobility) -> Json {
    object! {
        "protocol": mobility.protocol.name(),
        "care_of": mobility.care_of.name(),
        "routing": mobility.routing.name(),
        "encapsulation": mobility.encapsulation.name(),
        "leave_room": mobility.leave_room,
        "start": mobility.first_start().map(|start| scenario.link_name(start)),
        "home": mobility.home.map(|home| scenario.link_name(home)),
        "lifetime_ns": mobility.lifetime,
        "advertisement_interval_ns": mobility.discovery.interval,
        "movement_detection": mobility.movement_detection.name(),
        "algorithm": mobility.algorithm.name(),
        "replay": mobility.replay.name(),
        "simultaneous_bindings": mobility.simultaneous_bindings,
        "keep_old_ns": mobility.keep_old,
        "route_optimization": mobility.route_optimization,
        "smooth_handoff": mobility.smooth_handoff,
        "policy": mobility.policy.iter().map(|rule| object! {
            "to": destination(scenario, rule.to),
            "port": rule.port,
            "method": rule.method.name(),
        }).collect::<Json>(),
    }
}

fn discovery(discovery: &Discovery) -> Json {
    let mut json = object! {
        "least_interval_ns": discovery.least_interval,
        "missed": u64::from(discovery.missed),
        "margin_permille": u64::from(discovery.margin_permille),
        "solicitation": discovery.solicitation,
        "on_link_up": discovery.on_link_up,
        "response_delay_ns": discovery.response_delay,
        "prefix": discovery.prefix,
    };
    if let Json::Object(entries) = &mut json
        && discovery.unreachability != Unreachability::default()
    {
        let Unreachability { router_lifetime, reachable_time, retrans_timer, delay_first_probe } =
            discovery.unreachability;
        let times = object! {
            "router_lifetime_ns": router_lifetime,
            "reachable_time_ns": reachable_time,
            "retrans_timer_ns": retrans_timer,
            "delay_first_probe_ns": delay_first_probe,
        };
        entries.push(("unreachability", times));
    }
    json
}

fn fast_handover(fast: &FastHandover) -> Json {
    object! {
        "buffer_packets": u64::from(fast.buffer_packets),
        "buffer_bytes": fast.buffer_bytes,
        "release_percent": u64::from(fast.release_percent),
        "copies": fast.copies,
        "prepare_ahead_ns": fast.prepare_ahead,
        "proxy_lifetime_ns": fast.proxy_lifetime,
        "lifetime_ns": fast.lifetime,
    }
}

fn address_acquisition(dhcp: &Dhcp) -> Json {
    let (least, most) = dhcp.start_delay.range();
    // Probes of a check that does not happen are nothing.
    let probes = if dhcp.client_check == ClientCheck::None { 0 } else { dhcp.probes };
    object! {
        "client_check": dhcp.client_check.name(),
        "probes": probes,
        "server_check_ns": dhcp.server_check,
        "start_delay_least_ns": least,
        "start_delay_most_ns": most,
        "lease_ns": dhcp.lease,
        "processing_ns": dhcp.processing,
    }
}

fn destination(scenario: &Scenario, to: Destination) -> Json {
    match to {
        Destination::Any => Json::Null,
        Destination::Node(node) => scenario.node_name(node).into(),
        Destination::Prefix { address, length } => format!("{address}/{length}").into(),
    }
}

fn handover(scenario: &Scenario, handover: &Handover) -> Json {
    let mut json = one_handover(scenario, handover);
    if let (Json::Object(entries), true) = (&mut json, handover.cancelled) {
        entries.push(("cancelled", true.into()));
    }
    if let (Json::Object(entries), Some(announced)) = (&mut json, handover.announced) {
        entries.push(("announced", scenario.link_name(announced).into()));
    }
    let is_one_of_several = scenario.handovers.iter().enumerate().any(|(index, one)| index != one.table);
    if let (Json::Object(entries), true) = (&mut json, is_one_of_several || handover.every.is_some()) {
        entries.push(("table", (handover.table as u64).into()));
    }
    if let (Json::Object(entries), Some(every)) = (&mut json, handover.every) {
        entries.push(("every_ns", every.into()));
    }
    if let (Json::Object(entries), Some(overlap)) = (&mut json, handover.overlap) {
        entries.push(("overlap_ns", overlap.into()));
    }
    if let (Json::Object(entries), Some(link_layer)) = (&mut json, &handover.link_layer) {
        entries.push(("link_layer", medium::link_layer(link_layer)));
    }
    json
}

fn one_handover(scenario: &Scenario, handover: &Handover) -> Json {
    object! {
        "at_ns": handover.at,
        "from": scenario.link_name(handover.from),
        "to": scenario.link_name(handover.to),
        "style": handover.style.name(),
        "interruption_ns": handover.interruption,
        "queued": handover.queued.name(),
        "notice_ns": handover.notice,
        "address_changes": handover.address_changes,
    }
}

fn flow(scenario: &Scenario, flow: &Flow) -> Json {
    let last = flow.copy.and_then(|copy| {
        let first = scenario.flows.iter().position(|other| other.name == flow.name)?;
        let last = scenario.flows.get(first + copy.of - 1)?;
        Some([scenario.node_name(last.from), scenario.node_name(last.to)])
    });
    with_copies(one_flow(scenario, flow), flow.copy, last)
}

fn one_flow(scenario: &Scenario, flow: &Flow) -> Json {
    let mut json = object! {
        "name": flow.name.as_str(),
        "from": scenario.node_name(flow.from),
        "to": scenario.node_name(flow.to),
        "start_ns": flow.start,
        "stop_ns": flow.stop,
        "workload": workload::workload(scenario, flow),
        "tcp": flow.is_over_tcp().then(|| tcp(&flow.tcp)),
    };
    // What is not asked for leaves no trace, so that a scenario without it keeps its digest.
    if let (Json::Object(entries), Some(quic)) = (&mut json, &flow.quic) {
        entries.push(("quic", self::quic(quic)));
    }
    if let (Json::Object(entries), Some(mptcp)) = (&mut json, &flow.mptcp) {
        entries.push(("mptcp", self::mptcp(mptcp, scenario)));
    }
    json
}

fn mptcp(mptcp: &Mptcp, scenario: &Scenario) -> Json {
    let backup = mptcp.backup.iter().map(|link| scenario.link_name(*link).into());
    object! {
        "scheduler": mptcp.scheduler.as_str(),
        "subflows": u64::from(mptcp.subflows),
        "backup": Json::List(backup.collect()),
        "fullmesh": mptcp.fullmesh,
        "stale_loss_count": u64::from(mptcp.stale_loss_count),
    }
}

fn quic(quic: &Quic) -> Json {
    let config = &quic.config;
    object! {
        "congestion": config.congestion.name(),
        "migration": config.migration,
        "initial_mtu_bytes": config.initial_mtu,
        "mtu_discovery": config.mtu_discovery,
        "window_bytes": config.window,
        "idle_timeout_ns": config.idle_timeout,
    }
}

fn tcp(tcp: &Tcp) -> Json {
    let mut json = model(tcp);
    // What is not asked for leaves no trace, so that a scenario without it keeps its digest.
    if let (Json::Object(entries), Some(kernel)) = (&mut json, &tcp.kernel) {
        let kernel = object! {
            "congestion": kernel.congestion.as_deref(),
            "profile": kernel.profile.map(crate::model::KernelProfile::name),
        };
        entries.push(("kernel", kernel));
    }
    if let Json::Object(entries) = &mut json {
        entries.extend(switched_on(&tcp.config));
    }
    json
}

/// Mechanisms beyond the classic senders, those that are on.
fn switched_on(config: &careof_tcp::Config) -> Vec<(&'static str, Json)> {
    let mut on: Vec<(&'static str, Json)> = Vec::new();
    if config.congestion != CongestionControl::default() {
        on.push(("congestion", config.congestion.name().into()));
    }
    if config.hystart != HyStart::Off {
        on.push(("hystart", config.hystart.name().into()));
    }
    for (key, value) in [
        ("pacing", config.pacing),
        ("prr", config.prr),
        ("rack", config.rack),
        ("tail_loss_probe", config.tail_loss_probe),
        ("frto", config.frto),
        ("eifel", config.eifel),
        ("dsack", config.dsack),
        ("sack_compression", config.sack_compression),
        ("ecn", config.ecn),
        ("icmp_unreachable", config.icmp_unreachable),
    ] {
        if value {
            on.push((key, value.into()));
        }
    }
    if config.prr || config.reduction_bound != ReductionBound::default() {
        on.push(("reduction_bound", config.reduction_bound.name().into()));
    }
    if let Some(timeout) = config.user_timeout {
        on.push(("user_timeout_ns", timeout.into()));
    }
    if let Some(hz) = config.timer_hz {
        on.push(("timer_hz", hz.into()));
    }
    on
}

fn model(tcp: &Tcp) -> Json {
    let config = &tcp.config;
    let limit = |bytes: u32| (bytes != u32::MAX).then_some(bytes);
    object! {
        "profile": tcp.profile.name(),
        "variant": config.variant.name(),
        "rto": config.rto.name(),
        "rto_initial_ns": config.effective_rto_initial(),
        "rto_min_ns": config.effective_rto_min(),
        "rto_max_ns": config.effective_rto_max(),
        "clock_granularity_ns": config.clock_granularity,
        "mss_bytes": config.mss,
        "window_bytes": config.receive_window,
        "window_scaling": config.window_scaling,
        "timestamps": config.timestamps,
        "sack": config.sack,
        "limited_transmit": config.limited_transmit,
        "careful": config.careful,
        "duplicate_ack_threshold": config.duplicate_ack_threshold,
        "partial_ack_timer": config.partial_ack_timer.name(),
        "burst_guard": config.burst_guard,
        "rescue_retransmission": config.rescue_retransmission,
        "linux20_fast_retransmit": config.linux20_fast_retransmit,
        "delayed_ack": match config.delayed_ack {
            DelayedAck::Off => object! { "kind": "off" },
            DelayedAck::Every2 { timeout } => object! { "kind": "every-2", "timeout_ns": timeout },
            DelayedAck::Linux20 => object! { "kind": "linux-2.0" },
            DelayedAck::Linux => object! { "kind": "linux" },
        },
        "initial_window": match config.initial_window {
            InitialWindow::Segments(count) => object! { "kind": "segments", "segments": count },
            InitialWindow::Rfc5681 => object! { "kind": "rfc5681" },
            InitialWindow::Rfc6928 => object! { "kind": "rfc6928" },
        },
        "initial_ssthresh_bytes": limit(config.initial_ssthresh),
        "max_cwnd_bytes": limit(config.max_cwnd),
        "ack_counting": match config.ack_counting {
            AckCounting::PerAck => object! { "kind": "per-ack" },
            AckCounting::Bytes { limit } => object! { "kind": "bytes", "limit_segments": limit },
        },
        "window_validation": config.window_validation,
        "limited_transmit_counts": config.limited_transmit_counts,
        "idle_restart": config.idle_restart.name(),
        "kernel": config.kernel.name(),
        "mtu_probing": config.mtu_probing,
        "nagle": config.nagle,
        "max_retransmissions": config.max_retransmissions,
        "time_wait_ns": config.time_wait,
        "pmtu_discovery": tcp.pmtu_discovery,
    }
}
