//! The document that leaves a run: `summary.json`.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use careof_base::{Duration, Instant};
use serde::Serialize;

use crate::black_hole::{BlackHoleSummary, FilteredSummary};
use crate::flow::FlowMetrics;
use crate::handover::HandoverSummary;
use crate::ledger::Ledger;
use crate::roaming::RoamingSummary;
use crate::seconds::{optional_instant, optional_span, span};
use crate::silence::Silence;
use crate::spread::HistogramSummary;
use crate::video::VideoSummary;
use crate::voice::VoiceSummary;

/// Which world a run took place in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum World {
    /// The simulator.
    Sim,
    /// Real Linux hosts.
    Linux,
}

/// The TCP of a flow, by the names the scenario has for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TcpSummary {
    /// The profile its TCP was taken from; `None` when it was put together by hand.
    pub profile: Option<String>,
    /// Congestion control and loss recovery.
    pub variant: String,
    /// Estimator of the retransmission timeout.
    pub rto: String,
}

impl TcpSummary {
    /// Of a flow over QUIC, with this congestion control.
    #[must_use]
    pub fn quic(congestion: &str) -> Self {
        Self { profile: Some("quic".into()), variant: congestion.into(), rto: "rfc9002".into() }
    }

    /// Of a flow over UDP alone, which repeats nothing.
    #[must_use]
    pub fn udp() -> Self {
        Self { profile: Some("udp".into()), variant: "none".into(), rto: "none".into() }
    }
}

/// One direction of a flow; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Its name in the scenario.
    pub name: String,
    /// The node that sends the data.
    pub from: String,
    /// The node that receives it.
    pub to: String,
    /// The workload.
    pub kind: String,
    /// Its TCP.
    #[serde(flatten)]
    pub tcp: TcpSummary,
    /// When the application opened it.
    #[serde(rename = "start_s", serialize_with = "optional_instant")]
    pub start: Option<Instant>,
    /// When data was last delivered.
    #[serde(rename = "last_delivery_s", serialize_with = "optional_instant")]
    pub last_delivery: Option<Instant>,
    /// Whether everything it had to carry was delivered.
    pub complete: bool,
    /// The longest silence.
    #[serde(rename = "longest_silence_s", serialize_with = "optional_span")]
    pub longest_silence: Option<Duration>,
    /// When that began.
    #[serde(rename = "longest_silence_at_s", serialize_with = "optional_instant")]
    pub longest_silence_at: Option<Instant>,
    /// Time in which data was wanted.
    #[serde(rename = "waiting_s", serialize_with = "span")]
    pub waiting: Duration,
    /// Silences that are stalls.
    pub stalls: u64,
    /// Their sum.
    #[serde(rename = "stalled_s", serialize_with = "span")]
    pub stalled: Duration,
    /// Bytes delivered in order.
    pub bytes_delivered: u64,
    /// The time goodput is averaged over.
    #[serde(rename = "active_s", serialize_with = "span")]
    pub active: Duration,
    /// Bits delivered per second of that time.
    pub goodput_bps: f64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Those for something that arrived anyway.
    pub spurious_timeouts: u64,
    /// Segments sent.
    pub segments_sent: u64,
    /// Those that repeat something.
    pub segments_retransmitted: u64,
    /// Those that were not needed.
    pub unnecessary_retransmissions: u64,
    /// Duplicate acknowledgements.
    pub duplicate_acks: u64,
    /// Segments that arrived.
    pub segments_arrived: u64,
    /// Those that were overtaken.
    pub out_of_order_arrivals: u64,
    /// Copies the network made of segments that arrived.
    pub network_duplicates: u64,
    /// Packets an assist sent again.
    pub packets_replayed: u64,
    /// Packets an assist held back.
    pub packets_held: u64,
    /// Repetitions an assist did not let through.
    pub retransmissions_swallowed: u64,
    /// Acknowledgements an assist made.
    pub acks_injected: u64,
    /// ICMP messages an assist sent to the sender.
    pub unreachables_injected: u64,
    /// What the sender was told of handovers and links, and took.
    pub advice_taken: u64,
    /// The longest stall an assist saw.
    #[serde(rename = "assist_stall_s", serialize_with = "optional_span")]
    pub assist_stall: Option<Duration>,
    /// Round-trip times measured.
    pub rtt_samples: u64,
    /// The smallest.
    #[serde(rename = "rtt_min_s", serialize_with = "optional_span")]
    pub rtt_min: Option<Duration>,
    /// Their mean.
    #[serde(rename = "rtt_mean_s", serialize_with = "optional_span")]
    pub rtt_mean: Option<Duration>,
    /// The largest.
    #[serde(rename = "rtt_max_s", serialize_with = "optional_span")]
    pub rtt_max: Option<Duration>,
}

impl FlowSummary {
    /// A flow `name` that carries `kind` from node `from` to node `to`, as `metrics` have it when the run ends.
    #[must_use]
    pub fn new(
        name: &str,
        [from, to]: [&str; 2],
        kind: &str,
        tcp: TcpSummary,
        metrics: &FlowMetrics,
        end_of_run: Instant,
    ) -> Self {
        let (counters, rtt) = (metrics.counters(), metrics.rtt());
        let silences = metrics.silences(end_of_run);
        Self {
            name: name.into(),
            from: from.into(),
            to: to.into(),
            kind: kind.into(),
            tcp,
            start: metrics.started(),
            last_delivery: metrics.last_delivery(),
            complete: metrics.is_complete(),
            longest_silence: silences.longest.map(|silence| silence.length),
            longest_silence_at: silences.longest.map(|silence| silence.begin),
            waiting: silences.waiting,
            stalls: silences.stalls,
            stalled: silences.stalled,
            bytes_delivered: counters.bytes_delivered,
            active: metrics.active_time(end_of_run),
            goodput_bps: metrics.goodput_bps(end_of_run),
            timeouts: counters.timeouts,
            spurious_timeouts: counters.spurious_timeouts,
            segments_sent: counters.segments_sent,
            segments_retransmitted: counters.segments_retransmitted,
            unnecessary_retransmissions: counters.unnecessary_retransmissions,
            duplicate_acks: counters.duplicate_acks,
            segments_arrived: counters.segments_arrived,
            out_of_order_arrivals: counters.out_of_order_arrivals,
            network_duplicates: counters.network_duplicates,
            packets_replayed: counters.packets_replayed,
            packets_held: counters.packets_held,
            retransmissions_swallowed: counters.retransmissions_swallowed,
            acks_injected: counters.acks_injected,
            unreachables_injected: counters.unreachables_injected,
            advice_taken: counters.advice_taken,
            assist_stall: metrics.assist_stall(),
            rtt_samples: rtt.samples,
            rtt_min: rtt.min,
            rtt_mean: rtt.mean,
            rtt_max: rtt.max,
        }
    }
}

/// A stall; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StallSummary {
    /// The flow's name.
    pub flow: String,
    /// When, how long, and what ended it.
    #[serde(flatten)]
    pub silence: Silence,
}

impl StallSummary {
    /// The stalls of the flows that have these names and metrics, in order of time.
    pub fn of<'a>(
        flows: impl IntoIterator<Item = (&'a str, &'a FlowMetrics)>,
        end_of_run: Instant,
    ) -> Vec<Self> {
        let of_flow = |(name, metrics): (&str, &FlowMetrics)| {
            let stalls = metrics.stalls(end_of_run).into_iter();
            stalls.map(|silence| Self { flow: name.into(), silence }).collect::<Vec<_>>()
        };
        let mut stalls: Vec<_> = flows.into_iter().flat_map(of_flow).collect();
        stalls.sort_by_key(|stall| stall.silence.begin);
        stalls
    }
}

/// One one-way link; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LinkSummary {
    /// Its name: `gsm.down`.
    pub name: String,
    /// Packets handed to it.
    pub offered_packets: u64,
    /// Their bytes.
    pub offered_bytes: u64,
    /// Packets that came out at the far end.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets dropped, by cause; causes that did not occur may be left out.
    pub dropped_packets: BTreeMap<String, u64>,
    /// Packets its queue marked instead of dropping them (RFC 3168); they count as delivered, or dropped later.
    pub marked_packets: u64,
    /// Packets taken back out of its queue.
    pub drained_packets: u64,
    /// Packets in its queue at the end.
    pub queued_packets: u64,
    /// Packets being sent or on the way at the end.
    pub in_flight_packets: u64,
    /// How much of its capacity was used; see [`LinkSummary::utilisation`].
    pub utilisation: Option<f64>,
    /// The longest its queue was.
    pub max_queue_packets: u64,
    /// The most bytes in its queue.
    pub max_queue_bytes: u64,
}

impl LinkSummary {
    /// The part of `capacity_bits` that `sent_bits` are, to a millionth; `None` without capacity.
    #[must_use]
    pub fn utilisation(sent_bits: u128, capacity_bits: u128) -> Option<f64> {
        let millionths = sent_bits.saturating_mul(1_000_000).checked_div(capacity_bits)?;
        Some(millionths as f64 / 1e6)
    }

    /// Its packets, to be balanced.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger {
            created: self.offered_packets,
            delivered: self.delivered_packets,
            dropped: self.dropped_packets.values().sum(),
            moved: self.drained_packets,
            queued: self.queued_packets,
            in_flight: self.in_flight_packets,
        }
    }
}

/// How well a link kept its delay and its rate, as its two hosts saw it; each field is defined in
/// [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProbeSummary {
    /// The flow's name.
    pub name: String,
    /// The link.
    pub link: String,
    /// The node that measured.
    pub from: String,
    /// The node that answered.
    pub to: String,
    /// Echoes sent.
    pub echoes_sent: u64,
    /// Echoes that came back.
    pub echoes_answered: u64,
    /// The round trip that the link's delays and rates give.
    #[serde(rename = "configured_round_trip_s", serialize_with = "span")]
    pub configured_round_trip: Duration,
    /// The median of the round trips.
    #[serde(rename = "round_trip_median_s", serialize_with = "optional_span")]
    pub round_trip_median: Option<Duration>,
    /// What the median was longer than configured, seconds.
    #[serde(rename = "round_trip_error_median_s")]
    pub round_trip_error_median: Option<f64>,
    /// What 99 of 100 were longer than configured at most, seconds.
    #[serde(rename = "round_trip_error_p99_s")]
    pub round_trip_error_p99: Option<f64>,
    /// Rate of the link in the direction from `from` to `to`.
    pub configured_rate_bps: u64,
    /// Packets of the train that arrived.
    pub packets_received: u64,
    /// The rate at which they arrived.
    pub rate_bps: Option<f64>,
    /// What that was above the configured rate, as a part of it.
    pub rate_error: Option<f64>,
}

/// What the agents did; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MobilitySummary {
    /// Registration requests mobile nodes sent, repetitions included.
    pub registrations_sent: u64,
    /// Replies that accepted, as mobile nodes received them.
    pub registrations_accepted: u64,
    /// Replies that denied, as mobile nodes received them.
    pub registrations_denied: u64,
    /// Messages and packets agents discarded, by reason.
    pub discarded: BTreeMap<String, u64>,
}

/// What a domain of micro-mobility did; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MicroMobilitySummary {
    /// Messages sent, by mobile nodes and routers.
    pub messages_sent: u64,
    /// Messages that had no effect, by reason.
    pub messages_discarded: BTreeMap<String, u64>,
    /// Copies of packets that routers made.
    pub copies: u64,
    /// Packets that base stations kept.
    pub packets_kept: u64,
    /// Those that went on.
    pub packets_released: u64,
}

/// One end of a tunnel over several paths; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MultipathSummary {
    /// Where it is.
    pub node: String,
    /// How flows that find their path full go at the end, with `auto`: `pinned`, `tried` or `split`.
    pub mode: Option<String>,
    /// Packets that were to be sent.
    pub offered: u64,
    /// Of these, packets for which no path worked.
    pub no_path: u64,
    /// Further transmissions of packets at the same time by other paths.
    pub copies: u64,
    /// Transmissions of packets again, whose path had gone out.
    pub replayed: u64,
    /// Times that a flow changed its path.
    pub moves: u64,
    /// Messages about paths that were sent.
    pub messages: u64,
    /// Packets that came.
    pub arrived: u64,
    /// Of these, packets that had come already.
    pub duplicates: u64,
    /// Of these, packets that waited for earlier ones of their flow.
    pub waited: u64,
    /// Of these, packets that were passed on after later ones.
    pub late: u64,
    /// Packets that were waited for and did not come in time.
    pub given_up: u64,
    /// The longest that a packet waited.
    #[serde(rename = "longest_wait_s", serialize_with = "span")]
    pub longest_wait: Duration,
    /// The paths, by their numbers.
    pub paths: Vec<PathSummary>,
}

/// A path of such a tunnel, as one of its ends knows it; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PathSummary {
    /// The access link.
    pub link: String,
    /// Packets that this end sent there.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Part of the bytes that it sent.
    pub share: Option<f64>,
    /// What it is expected to carry away from this end, bit/s.
    #[serde(rename = "rate_bps")]
    pub rate: Option<u64>,
    /// The smoothed round trip.
    #[serde(rename = "round_trip_s", serialize_with = "optional_span")]
    pub round_trip: Option<Duration>,
    /// How far one-way transits of successive packets are apart in the mean.
    #[serde(rename = "variation_s", serialize_with = "optional_span")]
    pub variation: Option<Duration>,
    /// Part of the packets that got lost, of late.
    pub loss: Option<f64>,
    /// Times that it went out.
    pub outages: u64,
    /// For how long it was out, all in all.
    #[serde(rename = "out_for_s", serialize_with = "span")]
    pub out_for: Duration,
}

/// Where all packets of the run went; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketSummary {
    /// Packets made.
    pub created: u64,
    /// Packets that reached whom they were for.
    pub delivered: u64,
    /// Packets dropped by links and nodes, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Packets that were cut into fragments.
    pub fragmented: u64,
    /// Fragments that became part of a whole.
    pub reassembled: u64,
    /// Packets in queues and held by nodes at the end.
    pub queued: u64,
    /// Packets being sent or on the way at the end.
    pub in_flight: u64,
}

impl PacketSummary {
    /// All packets, to be balanced.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        Ledger {
            created: self.created,
            delivered: self.delivered,
            dropped: self.dropped.values().sum(),
            moved: self.fragmented.saturating_add(self.reassembled),
            queued: self.queued,
            in_flight: self.in_flight,
        }
    }
}

/// A packet capture; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CaptureSummary {
    /// The node that sees the packets.
    pub node: String,
    /// Packets in the file.
    pub packets: u64,
    /// Size of the file.
    pub bytes: u64,
    /// Packets in the file without their payload.
    pub headers_only: u64,
    /// Packets seen that are not in the file.
    pub left_out: u64,
}

/// A run in numbers; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
///
/// Of a simulation it holds nothing that differs between two runs of one scenario with one seed and the same captures: no
/// path, no date, no machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Version of careof.
    pub careof: String,
    /// Title of the scenario.
    pub title: String,
    /// Name of the scenario's file, without its directory.
    pub scenario: String,
    /// Where it ran.
    pub world: World,
    /// Release of the kernel it ran on; `None` in the simulator.
    pub kernel: Option<String>,
    /// By how much the run was late at most with what was due; `None` in the simulator, which never is.
    #[serde(rename = "late_s", serialize_with = "optional_span")]
    pub lateness: Option<Duration>,
    /// What ran otherwise than the scenario's words say, for people.
    pub remarks: Vec<String>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of the repetition.
    pub run: u64,
    /// What was set on the command line in place of the scenario's values.
    pub overrides: Vec<String>,
    /// How long the run lasted.
    #[serde(rename = "duration_s", serialize_with = "span")]
    pub duration: Duration,
    /// Fingerprint of everything that happened, in hexadecimal.
    pub digest: String,
    /// The shortest silence that is a stall.
    #[serde(rename = "stall_threshold_s", serialize_with = "span")]
    pub stall_threshold: Duration,
    /// Each direction of each flow that carries data.
    pub flows: Vec<FlowSummary>,
    /// The stalls of all flows, in order of time.
    pub stalls: Vec<StallSummary>,
    /// What was heard of voice flows; without any there is no such key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub voice: Vec<VoiceSummary>,
    /// What was seen of films; without any there is no such key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub video: Vec<VideoSummary>,
    /// How delays and jitter are spread, of flows of which that is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<HistogramSummary>,
    /// The handovers in order.
    pub handovers: Vec<HandoverSummary>,
    /// The handovers of many mobile nodes; `None` where one moves, or nobody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roaming: Option<RoamingSummary>,
    /// What a domain of micro-mobility did; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_mobility: Option<MicroMobilitySummary>,
    /// The ends of the tunnel of a mobile node with several links at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub multipath: Vec<MultipathSummary>,
    /// Tunnels that swallowed large packets, as assists met them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub black_holes: Vec<BlackHoleSummary>,
    /// Messages that packets were too large which links filtered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub icmp_filtered: Vec<FilteredSummary>,
    /// The one-way links.
    pub links: Vec<LinkSummary>,
    /// Measurements of links.
    pub probes: Vec<ProbeSummary>,
    /// What the agents did; `None` in a scenario without mobility.
    pub mobility: Option<MobilitySummary>,
    /// Where all packets went.
    pub packets: PacketSummary,
    /// What is unaccounted for, by what was checked; all zero.
    pub conservation: BTreeMap<String, i64>,
    /// The packet captures; without any there is no such key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub captures: Vec<CaptureSummary>,
}

/// The summary as indented JSON, ending in a newline.
#[must_use]
pub fn summary_json(summary: &Summary) -> String {
    // Serialising fails for maps whose keys are no strings and for values that refuse; a summary has neither.
    let mut json = serde_json::to_string_pretty(summary).unwrap_or_default();
    json.push('\n');
    json
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::handover::{Direction, Handover, HandoverMetrics, NewPath, PathRate};
    use alloc::vec;
    use careof_base::DataRate;

    /// A voice flow of which a packet came, before a handover.
    fn call() -> FlowMetrics {
        let mut metrics = FlowMetrics::new().with_voice(crate::Call {
            codec: None,
            interval: Duration::from_millis(20),
            buffer: Duration::from_millis(60),
            coding_delay: Duration::from_millis(20),
            impairment: None,
        });
        let number = metrics.on_voice_sent(Instant::from_secs(1));
        metrics.on_voice_arrival(Instant::from_millis(1010), number);
        metrics.on_handover(Instant::from_secs(12));
        metrics
    }

    pub(crate) fn example() -> Summary {
        let mut flow = FlowMetrics::new();
        flow.on_start(Instant::from_millis(500));
        flow.on_wanted(Instant::from_millis(500), 1_234_567);
        flow.on_delivered(Instant::from_secs(7), 1_234_567);
        let mut handovers = HandoverMetrics::new();
        handovers.add_flow("download", Direction::ToMobile);
        let handover = Handover {
            from: "wavelan".into(),
            to: "gsm".into(),
            style: "make-before-break".into(),
            node: Some("mobile".into()),
        };
        handovers.on_handover(Instant::from_secs(12), handover, core::slice::from_mut(&mut flow));
        let rate = PathRate::of(DataRate::from_bits_per_second(9600), 15_000, 1460);
        let path = NewPath { to_mobile: rate, from_mobile: rate, round_trip: Duration::from_millis(700) };
        handovers.on_address(Instant::from_nanos(12_100_000_001));
        handovers.on_ready(Instant::from_nanos(12_345_678_901), path, core::slice::from_ref(&flow));
        flow.on_bandwidth_estimate(DataRate::from_bits_per_second(8_000));
        let link = LinkSummary {
            name: "gsm.down".into(),
            offered_packets: 3,
            delivered_packets: 1,
            dropped_packets: BTreeMap::from([("queue-full".into(), 2)]),
            utilisation: LinkSummary::utilisation(1, 3),
            ..LinkSummary::default()
        };
        let tcp =
            TcpSummary { profile: Some("linux-2.0".into()), variant: "reno".into(), rto: "linux-2.0".into() };
        let end = Instant::from_secs(120);
        let mut holes = crate::BlackHoles::new();
        holes.on_assumed(end, ("home-agent", "10.0.3.2".into()), "download", 1_500, 1_492);
        holes.on_filtered(end, "path.up", "10.0.3.2".into(), 1_400);
        let (met, filtered) = holes.summaries();
        Summary {
            careof: "0.1.0".into(),
            title: "WaveLAN to GSM".into(),
            scenario: "wavelan-to-gsm.toml".into(),
            world: World::Sim,
            kernel: None,
            lateness: None,
            remarks: vec![],
            seed: 7,
            run: 0,
            overrides: vec!["duration=120 s".into()],
            duration: Duration::from_secs(120),
            digest: "00ff".into(),
            stall_threshold: Duration::from_secs(1),
            flows: vec![FlowSummary::new("download", ["correspondent", "mobile"], "bulk", tcp, &flow, end)],
            stalls: StallSummary::of([("download", &flow)], end),
            voice: call().voice("call", end).into_iter().collect(),
            video: vec![VideoSummary {
                rebuffers: vec![crate::Rebuffering { begin: end, length: Duration::ZERO }],
                ..VideoSummary::default()
            }],
            histograms: call().histograms("call"),
            handovers: handovers.finish(end, core::slice::from_ref(&flow)),
            roaming: Some(RoamingSummary::default()),
            micro_mobility: Some(MicroMobilitySummary::default()),
            multipath: vec![MultipathSummary {
                paths: vec![PathSummary::default()],
                ..MultipathSummary::default()
            }],
            black_holes: met,
            icmp_filtered: filtered,
            conservation: BTreeMap::from([("link gsm.down".into(), link.ledger().difference())]),
            links: vec![link],
            probes: vec![ProbeSummary::default()],
            mobility: Some(MobilitySummary::default()),
            packets: PacketSummary::default(),
            captures: vec![CaptureSummary::default()],
        }
    }

    #[test]
    fn a_summary_is_the_same_text_every_time() {
        let json = summary_json(&example());
        assert_eq!(json, summary_json(&example()));
        assert!(json.starts_with("{\n  \"careof\": \"0.1.0\",\n  \"title\": \"WaveLAN to GSM\",\n"));
        assert!(json.contains("\"conservation\": {\n    \"link gsm.down\": 0\n  },\n"), "{json}");
        assert!(json.ends_with("\"left_out\": 0\n    }\n  ]\n}\n"), "{json}");
    }

    #[test]
    fn times_are_seconds_with_their_nanoseconds() {
        let json = summary_json(&example());
        for line in [
            "\"address_at_s\": 12.100000001,",
            "\"ready_at_s\": 12.345678901,",
            "\"at_s\": 12.0,",
            "\"stall_after_s\": null,",
            "\"stall\": \"idle\",",
            "\"duration_s\": 120.0,",
            "\"world\": \"sim\",",
            "\"variant\": \"reno\",",
        ] {
            assert!(json.contains(line), "{line} in {json}");
        }
    }

    #[test]
    fn fractions_are_rounded_in_integers() {
        assert_eq!(LinkSummary::utilisation(1, 3), Some(0.333_333));
        assert_eq!(LinkSummary::utilisation(5, 0), None);
        // 1,234,567 bytes in 119.5 s.
        assert_eq!(example().flows[0].goodput_bps, 82_648.836);
    }
}
