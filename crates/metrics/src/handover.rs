//! What each handover did to the flows that cross it.

use alloc::string::String;
use alloc::vec::Vec;

use careof_base::{DataRate, Duration, Instant};
use serde::Serialize;

use crate::flow::{FlowCounters, FlowMetrics};
use crate::recovery::{RecoveryMeter, window};
use crate::seconds::{instant, optional_instant, optional_span, span};
use crate::silence::{Silence, Silences};

/// The time after a handover over which goodput is averaged: what a user of the new path waits through, and long enough
/// that the slowest paths carry tens of packets in it.
const AFTER: Duration = Duration::from_secs(60);

/// Which way a flow's data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the mobile node.
    ToMobile,
    /// From the mobile node.
    FromMobile,
    /// Between others: handovers do not touch it and do not list it.
    Elsewhere,
}

/// A handover as the scenario has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The link it leaves.
    pub from: String,
    /// The link it goes to.
    pub to: String,
    /// `make-before-break`, `break-before-make`.
    pub style: String,
    /// The mobile node, where there are several.
    pub node: Option<String>,
}

/// What one direction of a path can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRate {
    /// Data of full-sized segments, without headers, tunnels and framing.
    pub payload_rate: DataRate,
    /// Time a full-sized packet takes on the path's narrowest link; endless on one that carries nothing.
    pub packet_time: Duration,
}

impl PathRate {
    /// The rate of a path whose narrowest link sends at `line` and needs `bits_on_the_line` (framing included) for
    /// a packet with `payload_bytes` of data.
    #[must_use]
    pub fn of(line: DataRate, bits_on_the_line: u64, payload_bytes: u32) -> Self {
        let payload = u128::from(line.bits_per_second()) * u128::from(payload_bytes) * 8;
        let rate = payload.checked_div(u128::from(bits_on_the_line)).unwrap_or(0);
        Self {
            payload_rate: DataRate::from_bits_per_second(u64::try_from(rate).unwrap_or(u64::MAX)),
            packet_time: line.time_for_bits(bits_on_the_line).unwrap_or(Duration::MAX),
        }
    }
}

/// The path a handover leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPath {
    /// Towards the mobile node.
    pub to_mobile: PathRate,
    /// From the mobile node.
    pub from_mobile: PathRate,
    /// Round-trip time without queueing.
    pub round_trip: Duration,
}

/// Whether data flowed again after a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resumption {
    /// It did.
    Resumed,
    /// It did not before the run ended.
    Never,
    /// The new path was not ready before the next handover or the end of the run.
    NotReady,
    /// Nothing was wanted when the new path became ready.
    Idle,
}

/// Whether the full rate was reached after a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// It was.
    Reached,
    /// It was not before the next handover or the end of the run.
    Never,
    /// The new path was not ready before the next handover or the end of the run.
    NotReady,
    /// No direction was wanted enough to fill the new path, or the path has no rate.
    NotMeasured,
}

/// What a handover did to one flow; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowHandoverSummary {
    /// The flow's name.
    pub name: String,
    /// The longest silence from the handover on.
    #[serde(rename = "longest_silence_s", serialize_with = "optional_span")]
    pub longest_silence: Option<Duration>,
    /// When that began.
    #[serde(rename = "longest_silence_at_s", serialize_with = "optional_instant")]
    pub longest_silence_at: Option<Instant>,
    /// Time in which data was wanted, from this handover to the next.
    #[serde(rename = "waiting_s", serialize_with = "span")]
    pub waiting: Duration,
    /// Silences from the handover on that are stalls.
    pub stalls: u64,
    /// Their sum.
    #[serde(rename = "stalled_s", serialize_with = "span")]
    pub stalled: Duration,
    /// From the new path being ready to the first new byte at the application.
    #[serde(rename = "stall_after_s", serialize_with = "optional_span")]
    pub stall_after: Option<Duration>,
    /// What `stall_after` means when it is missing.
    pub stall: Resumption,
    /// Bytes delivered from this handover to the next.
    pub bytes_delivered: u64,
    /// Timeouts from this handover to the next.
    pub timeouts: u64,
    /// Timeouts found to be spurious from this handover to the next.
    pub spurious_timeouts: u64,
    /// Segments retransmitted from this handover to the next.
    pub segments_retransmitted: u64,
    /// Unnecessary retransmissions noticed from this handover to the next.
    pub unnecessary_retransmissions: u64,
    /// Duplicate acknowledgements from this handover to the next.
    pub duplicate_acks: u64,
    /// Out-of-order arrivals from this handover to the next.
    pub out_of_order_arrivals: u64,
    /// Packets replayed from this handover to the next.
    pub packets_replayed: u64,
    /// Repetitions swallowed by assists from this handover to the next.
    pub retransmissions_swallowed: u64,
    /// Bits delivered per second in the time after the new path was ready.
    pub goodput_after_bps: Option<f64>,
    /// What the sender took the new path to deliver, bits of data per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_estimate_bps: Option<f64>,
    /// How far off that is, as a part of what the path can carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth_error: Option<f64>,
}

/// One handover; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HandoverSummary {
    /// When it began.
    #[serde(rename = "at_s", serialize_with = "instant")]
    pub at: Instant,
    /// When its period ended: the next handover, or the end of the run.
    #[serde(rename = "until_s", serialize_with = "instant")]
    pub until: Instant,
    /// The link it leaves.
    pub from: String,
    /// The link it goes to.
    pub to: String,
    /// How.
    pub style: String,
    /// The mobile node, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// When the mobile node had an address on the new link that it had to ask for.
    #[serde(
        rename = "address_at_s",
        serialize_with = "optional_instant",
        skip_serializing_if = "Option::is_none"
    )]
    pub address_at: Option<Instant>,
    /// When the new path first carried packets both ways.
    #[serde(rename = "ready_at_s", serialize_with = "optional_instant")]
    pub ready_at: Option<Instant>,
    /// The longest silence of a flow from the handover on.
    #[serde(rename = "longest_silence_s", serialize_with = "optional_span")]
    pub longest_silence: Option<Duration>,
    /// Which flow's that is.
    pub longest_silence_flow: Option<String>,
    /// Total time in which no path could carry packets.
    #[serde(rename = "interruption_s", serialize_with = "span")]
    pub interruption: Duration,
    /// The longest stall of a flow.
    #[serde(rename = "stall_after_s", serialize_with = "optional_span")]
    pub stall_after: Option<Duration>,
    /// What `stall_after` means when it is missing.
    pub stall: Resumption,
    /// From the new path being ready to 90 % of its rate.
    #[serde(rename = "recovery_90_s", serialize_with = "optional_span")]
    pub recovery_90: Option<Duration>,
    /// What `recovery_90` means when it is missing.
    pub recovery: Recovery,
    /// The window over which the rate was averaged.
    #[serde(rename = "recovery_window_s", serialize_with = "optional_span")]
    pub recovery_window: Option<Duration>,
    /// Bits delivered per second in the time after the new path was ready, in the worse direction.
    pub goodput_after_bps: Option<f64>,
    /// The same as a part of what the new path can carry.
    pub goodput_after_share: Option<f64>,
    /// Each flow to or from the mobile node.
    pub flows: Vec<FlowHandoverSummary>,
}

#[derive(Clone, Debug)]
struct MeasuredFlow {
    name: String,
    direction: Direction,
    /// Handovers whose new path is ready and which wait for new data of this flow.
    waiting: Vec<usize>,
    /// What was counted when the current handover began.
    baseline: FlowCounters,
}

/// A flow within the record of a handover.
#[derive(Clone, Debug)]
struct FlowRecord {
    stall: Resumption,
    stall_after: Option<Duration>,
    counted: FlowCounters,
    /// Bytes delivered in the time after the new path was ready.
    bytes_after: u64,
    bandwidth_estimate: Option<DataRate>,
    /// Which of the handovers that the flow knows this is; `None` where it does not concern the flow.
    of_flow: Option<usize>,
}

#[derive(Clone, Debug)]
struct Record {
    at: Instant,
    until: Instant,
    handover: Handover,
    address_at: Option<Instant>,
    ready_at: Option<Instant>,
    interruption: Duration,
    recovery: Recovery,
    recovery_90: Option<Duration>,
    recovery_window: Option<Duration>,
    /// What the new path can carry, by direction, where a flow had something for it.
    rates: [(Direction, Option<DataRate>); 2],
    /// What it can carry towards the mobile node and from it, whether or not there was something for it.
    path_rates: Option<[DataRate; 2]>,
    /// One for each flow, in their order.
    flows: Vec<FlowRecord>,
}

/// Measures the handovers of one mobile node.
///
/// The period of a handover lasts from its instant to the next handover's, or to the end of the run. The world says
/// when a handover begins, when any path is usable, when the new path is ready, and what is delivered;
/// everything else is worked out here.
#[derive(Clone, Debug, Default)]
pub struct HandoverMetrics {
    flows: Vec<MeasuredFlow>,
    records: Vec<Record>,
    /// Since when no path has been usable.
    unusable_since: Option<Instant>,
    /// Until when what is delivered counts for the time after the current handover; zero when it is not ready.
    after_until: Instant,
    /// Meters of the current handover's new path, one for each direction with something to carry.
    to_mobile: Option<RecoveryMeter>,
    from_mobile: Option<RecoveryMeter>,
}

impl HandoverMetrics {
    /// No flow, no handover; a path is usable.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a flow and returns its index. All slices of flows given later have this order.
    pub fn add_flow(&mut self, name: &str, direction: Direction) -> usize {
        self.flows.push(MeasuredFlow {
            name: name.into(),
            direction,
            waiting: Vec::new(),
            baseline: FlowCounters::default(),
        });
        self.flows.len() - 1
    }

    /// A handover begins; the one before it ends its period.
    pub fn on_handover(&mut self, now: Instant, handover: Handover, flows: &mut [FlowMetrics]) {
        self.end_period(now, flows);
        // An outage that is under way when a handover begins is the reason for it and counts for it whole, unless the
        // handover before is still waiting for its path: then each takes its part.
        if let (Some(since), Some(last)) = (self.unusable_since, self.records.last_mut())
            && last.ready_at.is_none()
        {
            last.interruption += now - since;
            self.unusable_since = Some(now);
        }
        self.after_until = Instant::ZERO;
        let flow = FlowRecord {
            stall: Resumption::NotReady,
            stall_after: None,
            counted: FlowCounters::default(),
            bytes_after: 0,
            bandwidth_estimate: None,
            of_flow: None,
        };
        let mut of_flows = alloc::vec![flow; self.flows.len()];
        for ((flow, metrics), in_record) in self.flows.iter_mut().zip(flows).zip(&mut of_flows) {
            flow.baseline = *metrics.counters();
            metrics.forget_bandwidth_estimate();
            if flow.direction != Direction::Elsewhere {
                in_record.of_flow = Some(metrics.on_handover(now));
            }
        }
        self.records.push(Record {
            at: now,
            until: now,
            handover,
            address_at: None,
            ready_at: None,
            interruption: Duration::ZERO,
            recovery: Recovery::NotReady,
            recovery_90: None,
            recovery_window: None,
            rates: [(Direction::ToMobile, None), (Direction::FromMobile, None)],
            path_rates: None,
            flows: of_flows,
        });
    }

    /// Whether any path can carry packets both ways between the mobile node and its correspondents.
    ///
    /// Saying the same twice is harmless.
    pub fn on_path(&mut self, now: Instant, usable: bool) {
        if !usable {
            self.unusable_since.get_or_insert(now);
        } else if let (Some(since), Some(last)) = (self.unusable_since.take(), self.records.last_mut()) {
            last.interruption += now - since;
        }
    }

    /// The mobile node has obtained its address on the link that the current handover leads to.
    pub fn on_address(&mut self, now: Instant) {
        if let Some(record) = self.records.last_mut().filter(|record| record.ready_at.is_none()) {
            record.address_at = Some(now);
        }
    }

    /// The new path of the current handover carries packets both ways. Only the first call a handover counts.
    pub fn on_ready(&mut self, now: Instant, path: NewPath, flows: &[FlowMetrics]) {
        self.on_path(now, true);
        let handover = self.records.len().wrapping_sub(1);
        let Some(record) = self.records.last_mut().filter(|record| record.ready_at.is_none()) else { return };
        record.ready_at = Some(now);
        record.path_rates = Some([path.to_mobile.payload_rate, path.from_mobile.payload_rate]);
        self.after_until = now + AFTER;
        let (mut to_mobile, mut from_mobile) = (0, 0);
        for ((flow, metrics), in_record) in self.flows.iter_mut().zip(flows).zip(&mut record.flows) {
            if !metrics.is_waited_for() || flow.direction == Direction::Elsewhere {
                in_record.stall = Resumption::Idle;
                continue;
            }
            in_record.stall = Resumption::Never;
            flow.waiting.push(handover);
            let wanted =
                if flow.direction == Direction::ToMobile { &mut to_mobile } else { &mut from_mobile };
            *wanted = metrics.outstanding_bytes().saturating_add(*wanted);
        }
        let meter = |wanted: u64, rate| {
            RecoveryMeter::new(rate, path.round_trip).filter(|meter| wanted >= meter.target_bytes())
        };
        self.to_mobile = meter(to_mobile, path.to_mobile);
        self.from_mobile = meter(from_mobile, path.from_mobile);
        let windows = [
            self.to_mobile.as_ref().map(|_| window(path.to_mobile, path.round_trip)),
            self.from_mobile.as_ref().map(|_| window(path.from_mobile, path.round_trip)),
        ];
        record.recovery_window = windows.into_iter().flatten().max();
        record.rates[0].1 = (to_mobile > 0).then_some(path.to_mobile.payload_rate);
        record.rates[1].1 = (from_mobile > 0).then_some(path.from_mobile.payload_rate);
    }

    /// The receiving application of `flow` got `new_bytes` more in order.
    #[inline]
    pub fn on_delivered(&mut self, now: Instant, flow: usize, new_bytes: u64) {
        let Some(measured) = self.flows.get_mut(flow).filter(|_| new_bytes > 0) else { return };
        let meter = match measured.direction {
            Direction::ToMobile => &mut self.to_mobile,
            Direction::FromMobile => &mut self.from_mobile,
            Direction::Elsewhere => return,
        };
        if let Some(meter) = meter {
            meter.on_delivery(now, new_bytes);
        }
        if now <= self.after_until
            && let Some(in_record) = self.records.last_mut().and_then(|record| record.flows.get_mut(flow))
        {
            in_record.bytes_after += new_bytes;
        }
        for handover in measured.waiting.drain(..) {
            if let Some(record) = self.records.get_mut(handover)
                && let (Some(ready_at), Some(in_record)) = (record.ready_at, record.flows.get_mut(flow))
            {
                in_record.stall = Resumption::Resumed;
                in_record.stall_after = Some(now - ready_at);
            }
        }
    }

    /// Settles what is counted up to the end of a handover's period.
    fn end_period(&mut self, now: Instant, flows: &[FlowMetrics]) {
        let meters = [self.to_mobile.take(), self.from_mobile.take()];
        let Some(record) = self.records.last_mut() else { return };
        record.until = now;
        for ((flow, metrics), in_record) in self.flows.iter().zip(flows).zip(&mut record.flows) {
            in_record.counted = metrics.counters().since(&flow.baseline);
            in_record.bandwidth_estimate = metrics.bandwidth_estimate();
        }
        let Some(ready_at) = record.ready_at else { return };
        let mut slowest = None;
        for meter in meters.iter().flatten() {
            match meter.reached() {
                Some(reached) => slowest = slowest.max(Some(reached - ready_at)),
                None => {
                    record.recovery = Recovery::Never;
                    return;
                }
            }
        }
        record.recovery = if slowest.is_some() { Recovery::Reached } else { Recovery::NotMeasured };
        record.recovery_90 = slowest;
    }

    /// The run ends; `flows` as for [`on_handover`](Self::on_handover).
    #[must_use]
    pub fn finish(mut self, now: Instant, flows: &[FlowMetrics]) -> Vec<HandoverSummary> {
        self.end_period(now, flows);
        self.on_path(now, true);
        let measured = &self.flows;
        let silences: Vec<_> = flows.iter().map(|flow| flow.silences_of_handovers(now)).collect();
        let of = |flow: usize, known: Option<usize>| silences.get(flow)?.get(known?).copied();
        self.records.into_iter().map(|record| summary(record, measured, of)).collect()
    }
}

/// Bits per second, to a thousandth; `None` over no time.
fn bits_per_second(bytes: u64, time: Duration) -> Option<f64> {
    let thousandths = (u128::from(bytes) * 8_000_000_000_000).checked_div(time.as_nanos())?;
    Some(thousandths as f64 / 1000.0)
}

/// `bytes` as a part of what `rate` carries in `time`, in millionths.
fn millionths(bytes: u64, time: Duration, rate: DataRate) -> Option<u128> {
    // 8 bit a byte, 10^9 ns a second, 10^6 millionths.
    let bits = u128::from(bytes) * 8 * 1_000_000_000 * 1_000_000;
    bits.checked_div(u128::from(rate.bits_per_second()) * time.as_nanos())
}

/// How far `estimate` is off `rate`, as a part of that, in whole millionths; `None` for a path without a rate.
fn error_of(estimate: DataRate, rate: DataRate) -> Option<f64> {
    let off = i128::from(estimate.bits_per_second()) - i128::from(rate.bits_per_second());
    let millionths = (off * 1_000_000).checked_div(i128::from(rate.bits_per_second()))?;
    Some(millionths as f64 / 1e6)
}

/// The summary of a handover, `silences` being those of a flow from the handover on that is its `n`th.
fn summary(
    record: Record,
    measured: &[MeasuredFlow],
    silences: impl Fn(usize, Option<usize>) -> Option<Silences>,
) -> HandoverSummary {
    let after = record.ready_at.map(|ready_at| (record.until - ready_at).min(AFTER));
    let in_direction = |direction| {
        let flows = measured.iter().zip(&record.flows).filter(|(flow, _)| flow.direction == direction);
        flows.map(|(_, in_record)| in_record.bytes_after).sum::<u64>()
    };
    let goodput = record.rates.iter().filter_map(|&(direction, rate)| {
        let (bytes, time) = (in_direction(direction), after?);
        Some((millionths(bytes, time, rate?), bits_per_second(bytes, time)?))
    });
    // A path without a rate has no share, and is no worse than any other.
    let goodput = goodput.min_by_key(|(share, _)| share.unwrap_or(u128::MAX));
    let flows: Vec<FlowHandoverSummary> = measured
        .iter()
        .zip(record.flows)
        .enumerate()
        .filter(|(_, (flow, _))| flow.direction != Direction::Elsewhere)
        .map(|(index, (flow, in_record))| {
            (silences(index, in_record.of_flow).unwrap_or_default(), flow, in_record)
        })
        .map(|(silences, flow, in_record)| FlowHandoverSummary {
            name: flow.name.clone(),
            longest_silence: silences.longest.map(|silence| silence.length),
            longest_silence_at: silences.longest.map(|Silence { begin, .. }| begin),
            waiting: silences.waiting,
            stalls: silences.stalls,
            stalled: silences.stalled,
            stall_after: in_record.stall_after,
            stall: in_record.stall,
            bytes_delivered: in_record.counted.bytes_delivered,
            timeouts: in_record.counted.timeouts,
            spurious_timeouts: in_record.counted.spurious_timeouts,
            segments_retransmitted: in_record.counted.segments_retransmitted,
            unnecessary_retransmissions: in_record.counted.unnecessary_retransmissions,
            duplicate_acks: in_record.counted.duplicate_acks,
            out_of_order_arrivals: in_record.counted.out_of_order_arrivals,
            packets_replayed: in_record.counted.packets_replayed,
            retransmissions_swallowed: in_record.counted.retransmissions_swallowed,
            goodput_after_bps: after.and_then(|time| bits_per_second(in_record.bytes_after, time)),
            bandwidth_estimate_bps: in_record.bandwidth_estimate.map(|rate| rate.bits_per_second() as f64),
            bandwidth_error: in_record.bandwidth_estimate.zip(record.path_rates).and_then(
                |(estimate, [to_mobile, from_mobile])| {
                    let is_download = flow.direction == Direction::ToMobile;
                    error_of(estimate, if is_download { to_mobile } else { from_mobile })
                },
            ),
        })
        .collect();
    let stalls = |stall| flows.iter().any(|flow| flow.stall == stall);
    let stall = if record.ready_at.is_none() {
        Resumption::NotReady
    } else if stalls(Resumption::Never) {
        Resumption::Never
    } else if stalls(Resumption::Resumed) {
        Resumption::Resumed
    } else {
        Resumption::Idle
    };
    let longest = flows.iter().filter_map(|flow| flow.stall_after).max();
    let silent = flows.iter().rev().max_by_key(|flow| flow.longest_silence);
    HandoverSummary {
        at: record.at,
        until: record.until,
        from: record.handover.from,
        to: record.handover.to,
        style: record.handover.style,
        node: record.handover.node,
        address_at: record.address_at,
        ready_at: record.ready_at,
        longest_silence: silent.and_then(|flow| flow.longest_silence),
        longest_silence_flow: silent
            .filter(|flow| flow.longest_silence.is_some())
            .map(|flow| flow.name.clone()),
        interruption: record.interruption,
        stall_after: longest.filter(|_| stall == Resumption::Resumed),
        stall,
        recovery_90: record.recovery_90,
        recovery: record.recovery,
        recovery_window: record.recovery_window,
        goodput_after_bps: goodput.map(|(_, bps)| bps),
        goodput_after_share: goodput.and_then(|(share, _)| share).map(|share| share as f64 / 1e6),
        flows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::SegmentRange;
    use alloc::vec;
    use proptest::prelude::*;

    fn to(link: &str) -> Handover {
        Handover { from: "wavelan".into(), to: link.into(), style: "make-before-break".into(), node: None }
    }

    fn gsm() -> NewPath {
        let rate = PathRate::of(DataRate::from_bits_per_second(9600), 15_000, 1460);
        NewPath { to_mobile: rate, from_mobile: rate, round_trip: Duration::from_millis(700) }
    }

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    /// A flow that always has data to send.
    fn endless() -> FlowMetrics {
        let mut flow = FlowMetrics::new();
        flow.on_wanted(Instant::ZERO, u64::MAX);
        flow
    }

    fn download() -> (HandoverMetrics, Vec<FlowMetrics>) {
        let mut metrics = HandoverMetrics::new();
        metrics.add_flow("download", Direction::ToMobile);
        (metrics, vec![endless()])
    }

    #[test]
    fn make_before_break_has_no_interruption_and_a_stall_all_the_same() {
        let (mut metrics, mut flows) = download();
        metrics.on_delivered(at(11_900), 0, 1460);
        metrics.on_handover(at(12_000), to("gsm"), &mut flows);
        metrics.on_delivered(at(12_100), 0, 1460);
        metrics.on_ready(at(12_700), gsm(), &flows);
        metrics.on_delivered(at(20_700), 0, 1460);
        metrics.on_delivered(at(20_800), 0, 1460);
        let [handover] = &metrics.finish(at(60_000), &flows)[..] else { panic!() };
        assert_eq!(handover.interruption, Duration::ZERO);
        assert_eq!(handover.ready_at, Some(at(12_700)));
        assert_eq!(
            (handover.stall, handover.stall_after),
            (Resumption::Resumed, Some(Duration::from_secs(8)))
        );
        assert_eq!((handover.recovery, handover.recovery_90), (Recovery::Never, None));
        assert_eq!(handover.until, at(60_000));
    }

    #[test]
    fn an_interruption_is_the_sum_of_what_was_down() {
        let (mut metrics, mut flows) = download();
        metrics.on_path(at(11_500), false);
        metrics.on_handover(at(12_000), to("gsm"), &mut flows);
        metrics.on_path(at(12_200), false);
        metrics.on_path(at(13_000), true);
        metrics.on_path(at(14_000), false);
        metrics.on_ready(at(14_250), gsm(), &flows);
        let [handover] = &metrics.finish(at(60_000), &flows)[..] else { panic!() };
        assert_eq!(handover.interruption, Duration::from_millis(1500 + 250));
    }

    #[test]
    fn handovers_that_chase_each_other_share_the_outage_between_them() {
        let (mut metrics, mut flows) = download();
        metrics.on_handover(at(1000), to("a"), &mut flows);
        metrics.on_path(at(1000), false);
        metrics.on_handover(at(3000), to("b"), &mut flows);
        metrics.on_ready(at(3500), gsm(), &flows);
        let handovers = metrics.finish(at(10_000), &flows);
        assert_eq!(handovers[0].interruption, Duration::from_secs(2));
        assert_eq!((handovers[0].stall, handovers[0].recovery), (Resumption::NotReady, Recovery::NotReady));
        assert_eq!(handovers[1].interruption, Duration::from_millis(500));
    }

    #[test]
    fn an_outage_that_lasts_to_the_end_counts_to_the_end() {
        let (mut metrics, mut flows) = download();
        metrics.on_handover(at(1000), to("a"), &mut flows);
        metrics.on_path(at(2000), false);
        let handovers = metrics.finish(at(10_000), &flows);
        assert_eq!(handovers[0].interruption, Duration::from_secs(8));
        assert_eq!(handovers[0].ready_at, None);
    }

    #[test]
    fn a_stall_goes_on_through_the_next_handover() {
        let (mut metrics, mut flows) = download();
        for (begin, ready) in [(1000, 1500), (5000, 5500)] {
            metrics.on_handover(at(begin), to("gsm"), &mut flows);
            metrics.on_ready(at(ready), gsm(), &flows);
        }
        metrics.on_delivered(at(7500), 0, 1);
        let handovers = metrics.finish(at(10_000), &flows);
        assert_eq!(handovers[0].stall_after, Some(Duration::from_secs(6)));
        assert_eq!(handovers[1].stall_after, Some(Duration::from_secs(2)));
    }

    #[test]
    fn the_handover_has_the_longest_stall_and_none_if_a_flow_never_resumes() {
        let (mut metrics, mut flows) = download();
        let upload = metrics.add_flow("upload", Direction::FromMobile);
        let idle = metrics.add_flow("later", Direction::ToMobile);
        let wired = metrics.add_flow("wired", Direction::Elsewhere);
        flows.extend([endless(), FlowMetrics::new(), endless()]);
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_ready(at(1000), gsm(), &flows);
        metrics.on_delivered(at(2000), 0, 1);
        let mut unfinished = metrics.clone();
        metrics.on_delivered(at(4000), upload, 1);
        flows[idle].on_wanted(at(8000), u64::MAX);
        metrics.on_delivered(at(9000), idle, 1);
        let [handover] = &metrics.finish(at(10_000), &flows)[..] else { panic!() };
        assert_eq!(handover.stall_after, Some(Duration::from_secs(3)));
        let states: Vec<_> = handover.flows.iter().map(|flow| (flow.name.as_str(), flow.stall)).collect();
        let expected =
            [("download", Resumption::Resumed), ("upload", Resumption::Resumed), ("later", Resumption::Idle)];
        assert_eq!(states, expected);
        unfinished.on_delivered(at(9000), wired, 1);
        let [handover] = &unfinished.finish(at(10_000), &flows)[..] else { panic!() };
        assert_eq!((handover.stall, handover.stall_after), (Resumption::Never, None));
    }

    #[test]
    fn recovery_begins_with_the_first_delivery_at_the_full_rate() {
        let (mut metrics, mut flows) = download();
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_ready(at(2000), gsm(), &flows);
        for index in 0..20 {
            metrics.on_delivered(at(5000) + gsm().to_mobile.packet_time * index, 0, 1460);
        }
        let [handover] = &metrics.finish(at(60_000), &flows)[..] else { panic!() };
        assert_eq!(
            (handover.recovery, handover.recovery_90),
            (Recovery::Reached, Some(Duration::from_secs(3)))
        );
        assert_eq!(handover.recovery_window, Some(Duration::from_micros(15_625_000)));
    }

    #[test]
    fn counts_belong_to_the_handover_in_whose_period_they_happen() {
        let (mut metrics, mut flows) = download();
        let range = SegmentRange { seq: 1, end: 1461 };
        flows[0].on_segment_sent(at(1), range, false);
        flows[0].on_timeout(1);
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        flows[0].on_timeout(1);
        flows[0].on_segment_sent(at(1), range, true);
        metrics.on_handover(at(2000), to("wavelan"), &mut flows);
        flows[0].on_segment_sent(at(1), range, true);
        flows[0].on_duplicate_ack();
        let handovers = metrics.finish(at(3000), &flows);
        let counts = |index: usize| {
            let flow: &FlowHandoverSummary = &handovers[index].flows[0];
            (flow.timeouts, flow.segments_retransmitted, flow.duplicate_acks)
        };
        assert_eq!((counts(0), counts(1)), ((1, 1, 0), (0, 1, 1)));
    }

    #[test]
    fn goodput_after_a_handover_is_that_of_a_minute_in_the_worse_direction() {
        let (mut metrics, mut flows) = download();
        let upload = metrics.add_flow("upload", Direction::FromMobile);
        flows.push(endless());
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_delivered(at(1500), 0, 1_000_000);
        metrics.on_ready(at(2000), gsm(), &flows);
        metrics.on_delivered(at(3000), 0, 30_000);
        metrics.on_delivered(at(4000), upload, 56_062);
        metrics.on_delivered(at(62_000), 0, 15_000);
        metrics.on_delivered(at(62_001), 0, 1_000_000);
        let mut short = metrics.clone();
        let [handover] = &metrics.finish(at(90_000), &flows)[..] else { panic!() };
        // 45,000 bytes in 60 s, of the 7475 bit/s that GSM carries.
        assert_eq!(handover.goodput_after_bps, Some(6000.0));
        assert_eq!(handover.goodput_after_share, Some(0.802_675));
        assert_eq!(handover.flows[1].goodput_after_bps, Some(7474.933));

        short.on_handover(at(62_001), to("wavelan"), &mut flows);
        short.on_delivered(at(62_002), 0, 1_000_000);
        let handovers = short.finish(at(63_000), &flows);
        assert_eq!(handovers[0].goodput_after_bps, Some(6000.0));
        assert_eq!((handovers[1].goodput_after_bps, handovers[1].goodput_after_share), (None, None));
    }

    #[test]
    fn a_flow_that_thinks_when_the_path_is_ready_is_idle_and_says_nothing_of_the_rate() {
        let (mut metrics, mut flows) = download();
        flows[0] = FlowMetrics::new();
        flows[0].on_wanted(at(0), 60_000);
        flows[0].on_delivered(at(800), 60_000);
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_ready(at(1000), gsm(), &flows);
        flows[0].on_wanted(at(9000), 60_500);
        flows[0].on_delivered(at(9300), 60_500);
        metrics.on_delivered(at(9300), 0, 500);
        let [handover] = &metrics.finish(at(20_000), &flows)[..] else { panic!() };
        assert_eq!((handover.stall, handover.recovery), (Resumption::Idle, Recovery::NotMeasured));
        assert_eq!(handover.longest_silence, Some(Duration::from_millis(300)));
        assert_eq!(handover.flows[0].waiting, Duration::from_millis(300));
    }

    #[test]
    fn a_flow_that_wants_less_than_a_window_says_nothing_of_the_rate() {
        let (mut metrics, mut flows) = download();
        flows[0] = FlowMetrics::new();
        flows[0].on_wanted(at(0), 10_000);
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_ready(at(1000), gsm(), &flows);
        let [handover] = &metrics.finish(at(20_000), &flows)[..] else { panic!() };
        assert_eq!((handover.stall, handover.recovery), (Resumption::Never, Recovery::NotMeasured));
    }

    #[test]
    fn the_longest_silence_of_a_handover_is_that_of_the_flow_it_hurt_most() {
        let (mut metrics, mut flows) = download();
        let upload = metrics.add_flow("upload", Direction::FromMobile);
        flows.push(endless());
        for flow in &mut flows {
            flow.on_delivered(at(900), 1460);
        }
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        flows[0].on_delivered(at(2000), 2920);
        flows[upload].on_delivered(at(27_700), 2920);
        flows[0].on_delivered(at(27_000), 4380);
        // A program's connection that is only noticed now.
        metrics.add_flow("late", Direction::ToMobile);
        flows.push(FlowMetrics::new());
        metrics.on_handover(at(28_000), to("wavelan"), &mut flows);
        flows[2].on_wanted(at(28_500), 1);
        let handovers = metrics.finish(at(28_600), &flows);
        assert_eq!(handovers[0].longest_silence, Some(Duration::from_millis(26_700)));
        assert_eq!(handovers[0].longest_silence_flow.as_deref(), Some("upload"));
        let of_download = &handovers[0].flows[0];
        assert_eq!(of_download.longest_silence_at, Some(at(2000)));
        assert_eq!(
            (of_download.stalls, of_download.stalled),
            (3, Duration::from_millis(1000 + 25_000 + 1600))
        );
        assert_eq!(handovers[1].flows[2].longest_silence, Some(Duration::from_millis(100)));
        assert_eq!((handovers[0].flows.len(), handovers[1].flows.len()), (2, 3));
    }

    #[test]
    fn goodput_is_averaged_over_no_more_than_the_period() {
        let (mut metrics, mut flows) = download();
        metrics.on_handover(at(1000), to("gsm"), &mut flows);
        metrics.on_ready(at(2000), gsm(), &flows);
        metrics.on_delivered(at(3000), 0, 1000);
        metrics.on_handover(at(6000), to("wavelan"), &mut flows);
        metrics.on_delivered(at(7000), 0, 1_000_000);
        let handovers = metrics.finish(at(90_000), &flows);
        assert_eq!(handovers[0].goodput_after_bps, Some(2000.0));
    }

    #[test]
    fn the_payload_rate_of_gsm_is_that_of_the_paper() {
        // 960 byte/s of packets, of which 1460 in 1500 are data.
        assert_eq!(gsm().to_mobile.payload_rate.bits_per_second(), 7475);
        assert_eq!(gsm().to_mobile.packet_time, Duration::from_micros(1_562_500));
    }

    #[derive(Clone, Debug)]
    enum Call {
        Begin,
        Path(bool),
        Ready,
        Wanted(usize, u64),
        Delivered(usize),
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            Just(Call::Begin),
            any::<bool>().prop_map(Call::Path),
            Just(Call::Ready),
            (0_usize..4, prop_oneof![Just(0), 0..100_000_u64, Just(u64::MAX)])
                .prop_map(|(flow, total)| Call::Wanted(flow, total)),
            (0_usize..4).prop_map(Call::Delivered),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn any_order_of_calls_gives_a_consistent_result(calls in prop::collection::vec((0_u64..2000, call()), 0..80)) {
            let (mut metrics, mut flows) = download();
            metrics.add_flow("upload", Direction::FromMobile);
            flows.push(FlowMetrics::new());
            let mut now = Instant::ZERO;
            let mut handovers = 0;
            for (gap, call) in calls {
                now += Duration::from_millis(gap);
                match call {
                    Call::Begin => {
                        metrics.on_handover(now, to("gsm"), &mut flows);
                        handovers += 1;
                    }
                    Call::Path(usable) => metrics.on_path(now, usable),
                    Call::Ready => metrics.on_ready(now, gsm(), &flows),
                    Call::Wanted(flow, total) => {
                        if let Some(flow) = flows.get_mut(flow) {
                            flow.on_wanted(now, total);
                        }
                    }
                    Call::Delivered(flow) => metrics.on_delivered(now, flow, 1460),
                }
            }
            let summaries = metrics.finish(now, &flows);
            prop_assert_eq!(summaries.len(), handovers);
            let mut interrupted = Duration::ZERO;
            for pair in summaries.windows(2) {
                prop_assert_eq!(pair[0].until, pair[1].at);
            }
            for summary in &summaries {
                interrupted += summary.interruption;
                prop_assert_eq!(summary.stall_after.is_some(), summary.stall == Resumption::Resumed);
                prop_assert_eq!(summary.recovery_90.is_some(), summary.recovery == Recovery::Reached);
                prop_assert_eq!(summary.ready_at.is_none(), summary.stall == Resumption::NotReady);
                if let (Some(recovery), Some(stall)) = (summary.recovery_90, summary.flows.iter().filter_map(|flow| flow.stall_after).min()) {
                    prop_assert!(recovery >= stall);
                }
            }
            prop_assert!(interrupted <= now - Instant::ZERO);
        }
    }
}
