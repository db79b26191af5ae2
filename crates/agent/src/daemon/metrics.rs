//! The metrics: a snapshot of the agent, and what the daemon itself has counted, as Prometheus reads it.

use std::collections::BTreeMap;
use std::fmt;

use careof_mobility::{HandoverEvent, HandoverPhase, v4, v6};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _, text};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::{MetricType, TypedMetric as _};
use prometheus_client::registry::Registry;

use crate::carrier::Overview;
use crate::{MultipathPathStatus, MultipathStatus, PathStatus, Role};

/// Bounds of the buckets in which registrations are counted, seconds: from a link nearby to a satellite and a few
/// retransmissions.
const LATENCIES: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// What the daemon counts itself.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    registered: u64,
    failed: u64,
    /// Why handovers were begun.
    reasons: BTreeMap<&'static str, u64>,
    latency: Histogram,
    pub(crate) reloads: u64,
    pub(crate) rejected_reloads: u64,
    pub(crate) suppressed_lines: u64,
    pub(crate) refused_control_clients: u64,
    pub(crate) refused_metrics_clients: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            registered: 0,
            failed: 0,
            reasons: BTreeMap::new(),
            latency: Histogram::new(LATENCIES),
            reloads: 0,
            rejected_reloads: 0,
            suppressed_lines: 0,
            refused_control_clients: 0,
            refused_metrics_clients: 0,
        }
    }
}

impl Tally {
    /// Counts what the agent told.
    pub(crate) fn count(&mut self, event: &v4::Event) {
        if let v4::Event::Handover(event) = event {
            self.handover(&event.phase());
        }
    }

    /// As [`Tally::count`], of an agent of Mobile IPv6.
    pub(crate) fn count_ipv6(&mut self, event: &v6::Event) {
        if let v6::Event::Handover(event) = event {
            self.handover(&event.phase());
        }
    }

    fn handover(&mut self, phase: &HandoverPhase) {
        match phase {
            HandoverEvent::Registered { latency, .. } => {
                self.registered += 1;
                self.latency.observe(latency.as_secs_f64());
            }
            HandoverEvent::Failed { .. } => self.failed += 1,
            HandoverEvent::Initiated { reason, .. } => {
                *self.reasons.entry(reason.name()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// The metrics as text.
pub(crate) fn exposition(status: Overview, tally: &Tally) -> String {
    let mut registry = Registry::with_prefix("careof");
    registry.register(
        "handover_latency_seconds",
        "Time from the beginning of a handover to its accepted registration",
        tally.latency.clone(),
    );
    registry.register_collector(Box::new(Snapshot { status, tally: tally.clone() }));
    let mut text = String::new();
    // Writing to a string fails only where a value cannot be written, and there is none such.
    let _ = text::encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Snapshot {
    status: Overview,
    tally: Tally,
}

/// What is known of a path, as statuses call it.
const PATH_STATES: [&str; 4] = ["unknown", "alive", "suspect", "silent"];

fn of_tunnel(one: &MultipathStatus, label: &'static str, value: &str) -> Labels<2> {
    [("home_address", one.home_address.to_string()), (label, value.to_owned())]
}

fn of_path(one: &MultipathStatus, path: &MultipathPathStatus, label: &'static str, value: &str) -> Labels<3> {
    let [home_address, last] = of_tunnel(one, label, value);
    [home_address, ("path", path.path.to_string()), last]
}

type Labels<const N: usize> = [(&'static str, String); N];

/// One metric with its values by label.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<N>, u64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values
            .into_iter()
            .try_for_each(|(labels, value)| ConstCounter::new(value).encode(metric.encode_family(&labels)?))
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = ConstCounter::new(value);
        metric.encode(self.0.encode_descriptor(name, help, None, ConstCounter::<u64>::TYPE)?)
    }

    fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = (Labels<N>, f64)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values
            .into_iter()
            .try_for_each(|(labels, value)| ConstGauge::new(value).encode(metric.encode_family(&labels)?))
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = ConstGauge::new(value);
        metric.encode(self.0.encode_descriptor(name, help, None, ConstGauge::<f64>::TYPE)?)
    }
}

impl Collector for Snapshot {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut writer = Writer(encoder);
        self.agent(&mut writer)?;
        self.tunnels(&mut writer)?;
        self.multipath(&mut writer)?;
        self.cluster(&mut writer)?;
        self.counters(&mut writer)?;
        self.assist(&mut writer)?;
        self.daemon(&mut writer)
    }
}

impl Snapshot {
    fn agent(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let status = &self.status;
        let role = match status.role {
            Role::Home => "home",
            Role::Foreign => "foreign",
            Role::Mobile => "mobile",
            Role::Correspondent => "correspondent",
            Role::AnchorPoint => "anchor-point",
            Role::AccessRouter => "access-router",
            Role::Relay => "relay",
        };
        let build = [("role", role.to_owned()), ("version", env!("CARGO_PKG_VERSION").to_owned())];
        writer.gauges("build_info", "Which agent this is", [(build, 1.0)])?;
        writer.gauge("uptime_seconds", "Time since the agent was started", status.uptime_s)?;
        let count = |items: usize| f64::from(u32::try_from(items).unwrap_or(u32::MAX));
        let help = "Changes that wait to be made in the host";
        writer.gauge("host_changes_pending", help, count(status.host_changes_pending))?;
        match status.role {
            Role::Home | Role::AnchorPoint => {
                writer.gauge("bindings", "Mobility bindings", count(status.bindings))?;
                if let Some(store) = &status.store {
                    let help = "Mobile nodes of which the store does not know the latest";
                    writer.gauge("bindings_unsaved", help, count(store.unsaved))?;
                }
            }
            Role::Foreign => {
                writer.gauge("visitors", "Entries of the visitor list", count(status.visitors))?
            }
            Role::Mobile => {
                let registration = status.registration.as_ref();
                let yes = |value: Option<bool>| f64::from(u8::from(value.unwrap_or(false)));
                let registered = yes(registration.map(|registration| registration.registered));
                writer.gauge("registered", "Whether packets to the home address arrive", registered)?;
                let at_home = yes(registration.map(|registration| registration.at_home));
                writer.gauge("at_home", "Whether the mobile node is at home", at_home)?;
                let regional = yes(registration.map(|registration| registration.anchor_point.is_some()));
                let help = "Whether the mobile node uses a mobility anchor point";
                writer.gauge("anchor_point_in_use", help, regional)?;
                let active = registration.and_then(|registration| registration.interface.as_deref());
                let in_use = |name: &str| f64::from(u8::from(Some(name) == active));
                writer.gauges(
                    "interface_in_use",
                    "Whether packets leave by the interface",
                    status
                        .interfaces
                        .iter()
                        .map(|one| ([("interface", one.name.clone())], in_use(&one.name))),
                )?;
                self.paths(writer)?;
            }
            Role::Correspondent => writer.gauge("bindings", "Mobility bindings", count(status.bindings))?,
            // What it counts is told by name.
            Role::AccessRouter | Role::Relay => {}
        }
        if !matches!(status.role, Role::Mobile | Role::Relay) {
            let help = "Addresses of the agent that its host does not have";
            writer.gauge("addresses_missing", help, count(status.missing_addresses))?;
        }
        writer.gauges(
            "interface_up",
            "Whether the interface exists, is up and has a carrier",
            status
                .interfaces
                .iter()
                .map(|one| ([("interface", one.name.clone())], f64::from(u8::from(one.up)))),
        )
    }

    /// What a mobile node knows of the paths through its interfaces.
    fn paths(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let paths = || self.status.interfaces.iter().filter_map(|one| Some((&one.name, one.path.as_ref()?)));
        let by = |name: &str| [("interface", name.to_owned())];
        writer.gauges(
            "path_state",
            "Whether the path through the interface is in this state",
            paths().flat_map(|(name, path)| {
                PATH_STATES.map(|state| {
                    let labels = [("interface", name.clone()), ("state", state.to_owned())];
                    (labels, f64::from(u8::from(path.state == state)))
                })
            }),
        )?;
        let seconds = |pick: fn(&PathStatus) -> Option<f64>| {
            paths().filter_map(move |(name, path)| Some((by(name), pick(path)? / 1000.0)))
        };
        let help = "Round trip to the home agent, smoothed";
        writer.gauges("path_round_trip_seconds", help, seconds(|path| path.round_trip_ms))?;
        let help = "Mean deviation of the round trip";
        writer.gauges("path_variation_seconds", help, seconds(|path| path.variation_ms))?;
        let help = "The least round trip of late";
        writer.gauges("path_least_round_trip_seconds", help, seconds(|path| path.least_round_trip_ms))?;
        let flag = |pick: fn(&PathStatus) -> bool| {
            paths().map(move |(name, path)| (by(name), f64::from(u8::from(pick(path)))))
        };
        let help = "Whether the path, in use, loses much or has become slow";
        writer.gauges("path_bad", help, flag(|path| path.fault.is_some()))?;
        let help = "Whether the path was left as bad and is not good again";
        writer.gauges("path_avoided", help, flag(|path| path.avoided))?;
        let both = |pick: fn(&PathStatus) -> [Option<f64>; 2]| {
            paths().flat_map(move |(name, path)| {
                let labels =
                    |direction: &str| [("interface", name.clone()), ("direction", direction.to_owned())];
                let [out, into] = pick(path);
                let found = [(labels("out"), out), (labels("in"), into)];
                found.into_iter().filter_map(|(labels, value)| Some((labels, value?)))
            })
        };
        let help = "What is lost on the way, of 1";
        writer.gauges("path_loss_ratio", help, both(|path| [path.loss_out, path.loss_in]))?;
        // Whole numbers up to 2^53 are told exactly.
        let rates =
            both(|path| [path.delivered_out, path.delivered_in].map(|rate| rate.map(|rate| rate as f64)));
        writer.gauges("path_delivered_bits_per_second", "What has lately got through", rates)?;
        let probes = paths().flat_map(|(name, path)| {
            let found = [("sent", path.probes_sent), ("answered", path.probes_answered)];
            found.map(|(outcome, count)| {
                ([("interface", name.clone()), ("outcome", outcome.to_owned())], count)
            })
        });
        writer.counters("path_probes", "Probes of the path, and how many were answered", probes)
    }

    fn tunnels(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let (put_in, taken_out) = (self.status.put_in, self.status.taken_out);
        let sums = |out, into| {
            [("out", out), ("in", into)].map(|(direction, sum)| ([("direction", direction.to_owned())], sum))
        };
        writer.counters(
            "tunnelled_packets",
            "Datagrams put into tunnels (out) and taken out of them (in), of all tunnels",
            sums(put_in.0, taken_out.0),
        )?;
        writer.counters(
            "tunnelled_bytes",
            "Bytes of the datagrams put into tunnels (out) and taken out of them (in), of all tunnels",
            sums(put_in.1, taken_out.1),
        )?;
        let tunnels = &self.status.tunnels;
        let ends = |tunnel: &crate::TunnelStatus, direction: &str| {
            [
                ("here", tunnel.here.to_string()),
                ("there", tunnel.there.to_string()),
                ("direction", direction.to_owned()),
            ]
        };
        writer.counters(
            "tunnel_packets",
            "Datagrams put into a tunnel (out) and taken out of it (in)",
            tunnels
                .iter()
                .flat_map(|one| [(ends(one, "out"), one.packets_out), (ends(one, "in"), one.packets_in)]),
        )?;
        writer.counters(
            "tunnel_bytes",
            "Bytes of the datagrams put into a tunnel (out) and taken out of it (in)",
            tunnels
                .iter()
                .flat_map(|one| [(ends(one, "out"), one.bytes_out), (ends(one, "in"), one.bytes_in)]),
        )
    }

    /// What tunnels over several paths do, and each of their paths.
    fn multipath(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let all = &self.status.multipath;
        if all.is_empty() {
            return Ok(());
        }
        writer.counters(
            "multipath_packets",
            "Packets of a tunnel over several paths, by what became of them",
            all.iter().flat_map(|one| {
                [
                    ("offered", one.offered),
                    ("no-path", one.no_path),
                    ("copied", one.copies),
                    ("replayed", one.replayed),
                    ("arrived", one.arrived),
                    ("duplicate", one.duplicates),
                    ("waited", one.waited),
                    ("late", one.late),
                    ("given-up", one.given_up),
                ]
                .map(|(what, count)| (of_tunnel(one, "what", what), count))
            }),
        )?;
        let paths = || all.iter().flat_map(|one| one.paths.iter().map(move |path| (one, path)));
        writer.gauges(
            "multipath_path_state",
            "Whether the path is in this state",
            paths().flat_map(|(one, path)| {
                PATH_STATES.map(|state| {
                    (of_path(one, path, "state", state), f64::from(u8::from(path.state == state)))
                })
            }),
        )?;
        writer.counters(
            "multipath_path_bytes",
            "Bytes put on the path (out) and come by it (in), without the tunnel's headers",
            paths().flat_map(|(one, path)| {
                [("out", path.sent_bytes), ("in", path.received_bytes)]
                    .map(|(direction, bytes)| (of_path(one, path, "direction", direction), bytes))
            }),
        )?;
        let plain = |one: &MultipathStatus, path: &MultipathPathStatus| {
            let [home_address, path, _] = of_path(one, path, "", "");
            [home_address, path]
        };
        let help = "Times that this end took the path for out";
        let outages = paths().map(|(one, path)| (plain(one, path), path.outages));
        writer.counters("multipath_path_outages", help, outages)?;
        let gauge = |pick: fn(&MultipathPathStatus) -> Option<f64>| {
            paths().filter_map(move |(one, path)| Some((plain(one, path), pick(path)?)))
        };
        let help = "For how long it did, all in all";
        writer.gauges("multipath_path_out_seconds", help, gauge(|path| Some(path.out_for_s)))?;
        let help = "Of all bytes put on paths, 0 to 1";
        writer.gauges("multipath_path_share", help, gauge(|path| Some(path.share)))?;
        let help = "Round trip by the path, smoothed";
        let round_trips = gauge(|path| Some(path.round_trip_ms? / 1000.0));
        writer.gauges("multipath_path_round_trip_seconds", help, round_trips)?;
        let help = "How far one-way delays of successive packets are apart in the mean";
        let variations = gauge(|path| Some(path.transit_variation_ms? / 1000.0));
        writer.gauges("multipath_path_variation_seconds", help, variations)?;
        let help = "What is lost on the way out, of 1";
        writer.gauges("multipath_path_loss_ratio", help, gauge(|path| path.loss))?;
        let help = "What the path is expected to carry away from here";
        // Whole numbers up to 2^53 are told exactly.
        let rates = gauge(|path| path.rate.map(|rate| rate as f64));
        writer.gauges("multipath_path_rate_bits_per_second", help, rates)
    }

    /// What a relay lends, and what a mobile node uses of relays.
    fn cluster(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let count = |items: usize| f64::from(u32::try_from(items).unwrap_or(u32::MAX));
        if let Some(cluster) = &self.status.cluster {
            let relays = [("known", cluster.known), ("used", cluster.relays.len())];
            let relays = relays.map(|(state, relays)| ([("state", state.to_owned())], count(relays)));
            writer.gauges("cluster_relays", "Relays that the mobile node knows, and uses", relays)?;
        }
        let Some(relay) = &self.status.relay else { return Ok(()) };
        writer.gauge("relay_lends", "Whether the relay lends its link", f64::from(u8::from(relay.lends)))?;
        writer.gauge(
            "relay_allies",
            "Mobile nodes that the relay is allied with",
            count(relay.allies.len()),
        )?;
        let [packets, bytes] = [relay.relayed_packets, relay.relayed_bytes].map(|[into, out]| {
            [("in", into), ("out", out)].map(|(direction, sum)| ([("direction", direction.to_owned())], sum))
        });
        writer.counters(
            "relayed_packets",
            "Packets passed on, to mobile nodes (in) and from them (out)",
            packets,
        )?;
        writer.counters("relayed_bytes", "Bytes of these, within the outer header", bytes)
    }

    /// The agent's counters: those of a family under the name of the family.
    fn counters(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let family = |prefix: &'static str, label: &'static str| {
            self.status.counters.iter().filter_map(move |(name, &value)| {
                name.strip_prefix(prefix).map(|rest| ([(label, rest.to_owned())], value))
            })
        };
        writer.counters(
            "dropped",
            "Messages and packets that had no effect, by cause",
            family("dropped-", "cause"),
        )?;
        writer.counters(
            "denied",
            "Registrations denied, by the code of the reply",
            family("denied-", "code"),
        )?;
        writer.counters(
            "refused",
            "Binding Updates refused, by the status of the acknowledgement",
            family("refused-", "status"),
        )?;
        const FAMILIES: [&str; 4] = ["dropped-", "denied-", "refused-", "assist-"];
        let is_other = |name: &str| !FAMILIES.iter().any(|family| name.starts_with(family));
        let others = self.status.counters.iter().filter(|(name, _)| is_other(name));
        writer.counters(
            "events",
            "What else the agent counts, by name",
            others.map(|(name, &value)| ([("name", name.clone())], value)),
        )
    }

    /// What assists do, where there are some.
    fn assist(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let Some(assist) = &self.status.assist else { return Ok(()) };
        let counted = self.status.counters.iter().filter_map(|(name, &value)| {
            name.strip_prefix("assist-").map(|rest| ([("what", rest.to_owned())], value))
        });
        writer.counters("assist", "What assists did, by name", counted)?;
        let count = |items: usize| f64::from(u32::try_from(items).unwrap_or(u32::MAX));
        writer.gauge("assist_flows", "TCP connections that assists follow", count(assist.flows))?;
        writer.gauge("assist_stored_packets", "Packets stored by assists", count(assist.stored_packets))?;
        // Whole numbers up to 2^53 are told exactly.
        writer.gauge("assist_stored_bytes", "Bytes of these, whole datagrams", assist.stored_bytes as f64)
    }

    fn daemon(&self, writer: &mut Writer<'_>) -> fmt::Result {
        let tally = &self.tally;
        if self.status.role == Role::Mobile {
            let outcomes = [("registered", tally.registered), ("failed", tally.failed)];
            let outcomes = outcomes.map(|(name, count)| ([("outcome", name.to_owned())], count));
            writer.counters("handovers", "Handovers by how they ended", outcomes)?;
            let reasons = tally.reasons.iter();
            let reasons = reasons.map(|(name, count)| ([("reason", (*name).to_owned())], *count));
            writer.counters("handover_reasons", "Handovers by why they were begun", reasons)?;
        }
        let outcomes = [("applied", tally.reloads), ("rejected", tally.rejected_reloads)];
        let outcomes = outcomes.map(|(name, count)| ([("outcome", name.to_owned())], count));
        writer.counters("reloads", "Times the configuration was read again", outcomes)?;
        writer.counter(
            "log_lines_suppressed",
            "Lines of the log left out because there were too many",
            tally.suppressed_lines,
        )?;
        let refused =
            [("control", tally.refused_control_clients), ("metrics", tally.refused_metrics_clients)];
        let refused = refused.map(|(name, count)| ([("server", name.to_owned())], count));
        writer.counters("clients_refused", "Clients that were too many, too slow or talked nonsense", refused)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use careof_mobility::v4::{Event, HandoverEvent, InterfaceId, PathProperties};

    use super::*;
    use crate::carrier::AssistOverview;
    use crate::{AgentCounters, ClusterStatus, InterfaceStatus, RelayStatus, StoreStatus, TunnelStatus};

    const ROLES: [Role; 6] =
        [Role::Home, Role::Foreign, Role::Mobile, Role::Correspondent, Role::AnchorPoint, Role::Relay];

    fn status(role: Role) -> Overview {
        let counters = [
            ("dropped-malformed", 3),
            ("denied-133", 2),
            ("refused-135", 1),
            ("messages-received", 9),
            ("assist-replayed", 4),
        ];
        Overview {
            role,
            uptime_s: 1.5,
            interfaces: vec![InterfaceStatus {
                name: "wlan0".to_owned(),
                up: true,
                address: None,
                gateway: None,
                path: (role == Role::Mobile).then_some(PathStatus {
                    state: "silent",
                    round_trip_ms: Some(20.0),
                    variation_ms: Some(2.0),
                    least_round_trip_ms: Some(19.0),
                    fault: None,
                    avoided: true,
                    loss_out: Some(0.05),
                    loss_in: None,
                    delivered_out: None,
                    delivered_in: Some(1_000_000),
                    received_ago_s: Some(3.0),
                    probes_sent: 9,
                    probes_answered: 2,
                }),
            }],
            host_changes_pending: 3,
            bindings: 100_000,
            missing_addresses: 0,
            store: Some(StoreStatus { unsaved: 2, failing_s: Some(7.0), problem: Some("full".to_owned()) }),
            visitors: 7,
            registration: None,
            tunnels: vec![TunnelStatus {
                here: Ipv4Addr::new(192, 0, 2, 1).into(),
                there: Ipv4Addr::new(10, 0, 0, 7).into(),
                mtu: None,
                packets_out: 5,
                bytes_out: 5000,
                packets_in: 0,
                bytes_in: 0,
            }],
            multipath: vec![MultipathStatus {
                home_address: Ipv4Addr::new(192, 0, 2, 10),
                mode: Some("split"),
                offered: 90,
                no_path: 1,
                transmitted: 99,
                copies: 2,
                replayed: 8,
                stranded: 0,
                moves: 3,
                messages: 40,
                arrived: 50,
                released: 48,
                duplicates: 2,
                waited: 7,
                late: 1,
                given_up: 4,
                holds: 0,
                longest_wait_ms: 30.0,
                peer_restarts: 0,
                paths: vec![MultipathPathStatus {
                    path: 1,
                    care_of: Ipv4Addr::new(10, 0, 0, 7),
                    interface: None,
                    relay: None,
                    state: "alive",
                    round_trip_ms: Some(40.0),
                    variation_ms: Some(2.0),
                    least_round_trip_ms: Some(38.0),
                    transit_variation_ms: None,
                    rate: Some(2_000_000),
                    loss: Some(0.02),
                    backlog_ms: 0.0,
                    in_flight: 0,
                    share: 0.25,
                    sent_packets: 25,
                    sent_bytes: 25_000,
                    received_packets: 12,
                    received_bytes: 600,
                    probes_sent: 9,
                    probes_answered: 9,
                    outages: 1,
                    out_for_s: 1.5,
                }],
                left: Vec::new(),
            }],
            cluster: (role == Role::Mobile).then(|| ClusterStatus {
                interface: "wlan1".to_owned(),
                address: None,
                known: 2,
                relays: Vec::new(),
            }),
            relay: (role == Role::Relay).then(|| RelayStatus {
                lends: true,
                cluster: Some(Ipv4Addr::new(10, 9, 0, 1)),
                outside: None,
                most_allies: 4,
                allies: Vec::new(),
                relayed_packets: [7, 8],
                relayed_bytes: [700, 800],
            }),
            put_in: (6, 6000),
            taken_out: (4, 400),
            counters: counters
                .map(|(name, value)| (name.to_owned(), value))
                .into_iter()
                .collect::<AgentCounters>(),
            assist: Some(AssistOverview { flows: 1, stored_packets: 2, stored_bytes: 3000 }),
        }
    }

    #[test]
    fn every_line_is_of_the_format() {
        for role in ROLES {
            let text = exposition(status(role), &Tally::default());
            assert!(text.ends_with("# EOF\n"), "{text}");
            let mut seen = std::collections::BTreeSet::new();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (series, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(series.starts_with("careof_"), "{line}");
                assert!(seen.insert(series.to_owned()), "{line} is there twice");
            }
        }
    }

    #[test]
    fn every_metric_is_in_the_documentation() {
        let documentation = crate::config::documentation_markdown();
        for role in ROLES {
            let text = exposition(status(role), &Tally::default());
            for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
                let name = line.replace(" counter", "_total").replace(" gauge", "").replace(" histogram", "");
                assert!(documentation.contains(&format!("`{name}`")), "{name}");
            }
        }
    }

    #[test]
    fn counters_have_the_names_of_the_documentation() {
        let mut tally = Tally::default();
        tally.count(&Event::Handover(HandoverEvent::Registered {
            from: None,
            to: InterfaceId(0),
            care_of: None,
            attempts: 1,
            latency: Duration::from_millis(30),
            round_trip: Duration::from_millis(20),
            old: PathProperties::default(),
            new: PathProperties::default(),
            keeps_old: false,
        }));
        let text = exposition(status(Role::Mobile), &tally);
        for line in [
            "careof_dropped_total{cause=\"malformed\"} 3",
            "careof_denied_total{code=\"133\"} 2",
            "careof_refused_total{status=\"135\"} 1",
            "careof_events_total{name=\"messages-received\"} 9",
            "careof_tunnel_bytes_total{here=\"192.0.2.1\",there=\"10.0.0.7\",direction=\"out\"} 5000",
            "careof_tunnelled_packets_total{direction=\"out\"} 6",
            "careof_tunnelled_bytes_total{direction=\"in\"} 400",
            "careof_host_changes_pending 3.0",
            "careof_interface_up{interface=\"wlan0\"} 1.0",
            "careof_path_state{interface=\"wlan0\",state=\"silent\"} 1.0",
            "careof_path_round_trip_seconds{interface=\"wlan0\"} 0.02",
            "careof_path_least_round_trip_seconds{interface=\"wlan0\"} 0.019",
            "careof_path_bad{interface=\"wlan0\"} 0.0",
            "careof_path_avoided{interface=\"wlan0\"} 1.0",
            "careof_path_loss_ratio{interface=\"wlan0\",direction=\"out\"} 0.05",
            "careof_path_probes_total{interface=\"wlan0\",outcome=\"answered\"} 2",
            "careof_multipath_packets_total{home_address=\"192.0.2.10\",what=\"replayed\"} 8",
            "careof_multipath_path_bytes_total{home_address=\"192.0.2.10\",path=\"1\",direction=\"out\"} 25000",
            "careof_multipath_path_round_trip_seconds{home_address=\"192.0.2.10\",path=\"1\"} 0.04",
            "careof_multipath_path_out_seconds{home_address=\"192.0.2.10\",path=\"1\"} 1.5",
            "careof_cluster_relays{state=\"known\"} 2.0",
            "careof_assist_total{what=\"replayed\"} 4",
            "careof_assist_stored_bytes 3000.0",
            "careof_handovers_total{outcome=\"registered\"} 1",
            "careof_handover_latency_seconds_bucket{le=\"0.05\"} 1",
            "careof_reloads_total{outcome=\"applied\"} 0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
