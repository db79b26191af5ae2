//! What one direction of a flow sent, repeated and delivered.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use careof_base::{DataRate, Duration, Instant};

use crate::delay::DelayMeter;
use crate::order::{ArrivalOrder, Place};
use crate::ranges::SequenceRanges;
use crate::silence::{STALL, Silence, SilenceMeter, Silences};
use crate::spread::HistogramSummary;
use crate::voice::{Call, VoiceMeter, VoiceSummary};

/// Timeouts whose verdict is remembered as open. A sender backs off exponentially, so this many span hours.
const MOST_OPEN_TIMEOUTS: usize = 64;

/// The sequence numbers a segment occupies, relative to the initial one: the SYN is 0, the first byte of data 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentRange {
    /// The first.
    pub seq: i64,
    /// One after the last; SYN and FIN count one each.
    pub end: i64,
}

impl SegmentRange {
    /// The bytes from `start` to before `end` of a stream whose first is byte 0, as QUIC counts them.
    #[must_use]
    pub const fn of_bytes(start: u64, end: u64) -> Self {
        Self { seq: start.saturating_add(1) as i64, end: end.saturating_add(1) as i64 }
    }
}

/// One sending of a segment: its place in the order in which the sender sent, and whether it is a repetition.
///
/// It travels with the packet, unseen by the protocols, and is told at the arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transmission(u64);

impl Transmission {
    /// How many segments the sender sent before this one.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0 >> 1
    }

    /// Whether any of it had been sent before.
    #[must_use]
    pub const fn is_retransmission(self) -> bool {
        self.0 & 1 == 1
    }
}

/// What is counted of one direction of a flow; each field is defined in [`DEFINITIONS`](crate::DEFINITIONS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounters {
    /// Bytes the receiving application got in order.
    pub bytes_delivered: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Timeouts for something that reached the receiver without the retransmission.
    pub spurious_timeouts: u64,
    /// Segments sent that occupy sequence numbers, repetitions included.
    pub segments_sent: u64,
    /// Those that repeat something.
    pub segments_retransmitted: u64,
    /// Segments that arrived and brought nothing new.
    pub unnecessary_retransmissions: u64,
    /// Duplicate acknowledgements at the sender.
    pub duplicate_acks: u64,
    /// Segments that reached the receiver's host, not counting copies the network made.
    pub segments_arrived: u64,
    /// Segments that arrived after one that was sent later.
    pub out_of_order_arrivals: u64,
    /// Copies of segments that had arrived already.
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
}

impl FlowCounters {
    /// What was counted since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            bytes_delivered: self.bytes_delivered.saturating_sub(earlier.bytes_delivered),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
            spurious_timeouts: self.spurious_timeouts.saturating_sub(earlier.spurious_timeouts),
            segments_sent: self.segments_sent.saturating_sub(earlier.segments_sent),
            segments_retransmitted: self
                .segments_retransmitted
                .saturating_sub(earlier.segments_retransmitted),
            unnecessary_retransmissions: self
                .unnecessary_retransmissions
                .saturating_sub(earlier.unnecessary_retransmissions),
            duplicate_acks: self.duplicate_acks.saturating_sub(earlier.duplicate_acks),
            segments_arrived: self.segments_arrived.saturating_sub(earlier.segments_arrived),
            out_of_order_arrivals: self.out_of_order_arrivals.saturating_sub(earlier.out_of_order_arrivals),
            network_duplicates: self.network_duplicates.saturating_sub(earlier.network_duplicates),
            packets_replayed: self.packets_replayed.saturating_sub(earlier.packets_replayed),
            packets_held: self.packets_held.saturating_sub(earlier.packets_held),
            retransmissions_swallowed: self
                .retransmissions_swallowed
                .saturating_sub(earlier.retransmissions_swallowed),
            acks_injected: self.acks_injected.saturating_sub(earlier.acks_injected),
            unreachables_injected: self.unreachables_injected.saturating_sub(earlier.unreachables_injected),
            advice_taken: self.advice_taken.saturating_sub(earlier.advice_taken),
        }
    }
}

/// What an assist on the path did for a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssistDeed {
    /// It sent a packet again of which it had kept a copy.
    Replayed,
    /// It held a packet back.
    Held,
    /// It did not let a repetition through.
    Swallowed,
    /// It acknowledged data in the receiver's name.
    AckInjected,
    /// It told the data's sender that the receiver cannot be reached.
    UnreachableInjected,
    /// The data's sender, which knows of such assists, was told something of a handover or of a link.
    Advised,
}

/// The round-trip times a sender measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttSummary {
    /// How many samples.
    pub samples: u64,
    /// The smallest; `None` without a sample.
    pub min: Option<Duration>,
    /// The arithmetic mean, rounded down to a nanosecond.
    pub mean: Option<Duration>,
    /// The largest.
    pub max: Option<Duration>,
}

#[derive(Clone, Debug, Default)]
struct RttSamples {
    count: u64,
    sum_nanos: u128,
    min: Option<Duration>,
    max: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct OpenTimeout {
    /// The first sequence number not acknowledged.
    seq: i64,
    /// Transmissions before this number were sent before the timer ran out.
    sent_before: u64,
}

/// Counts one direction of a flow: from the application that sends to the one that receives.
///
/// A flow whose both ends send data has two of these. The sender's world calls `on_start`,
/// `on_segment_sent`, `on_timeout`, `on_duplicate_ack` and `on_rtt_sample`; the receiver's calls
/// `on_segment_arrival`, `on_delivered` and `on_complete`; whoever knows the applications calls `on_wanted` and `on_stop`. What has arrived is recorded here, so a world that
/// sees only packets can feed it as well as one that knows the endpoints' insides.
#[derive(Clone, Debug)]
pub struct FlowMetrics {
    counters: FlowCounters,
    rtt: RttSamples,
    started: Option<Instant>,
    last_delivery: Option<Instant>,
    stopped: Option<Instant>,
    completed: bool,
    /// Bytes that the receiving application wants in all.
    wanted: u64,
    silence: SilenceMeter,
    /// The longest stall an assist saw.
    assist_stall: Option<Duration>,
    /// What the sender took the new path to deliver, since the present handover began.
    bandwidth_estimate: Option<DataRate>,
    transmissions: u64,
    order: ArrivalOrder,
    arrived: SequenceRanges,
    open_timeouts: VecDeque<OpenTimeout>,
    /// Of a voice flow.
    voice: Option<Box<VoiceMeter>>,
    /// Of a flow that delivers in order, where its delays are measured.
    delays: Option<Box<DelayMeter>>,
}

impl Default for FlowMetrics {
    fn default() -> Self {
        Self::new()
    }
}

impl FlowMetrics {
    /// A flow that has not begun; silences of at least [`STALL`] are stalls.
    #[must_use]
    pub fn new() -> Self {
        Self::with_stalls_from(STALL)
    }

    /// The same, with another shortest stall.
    #[must_use]
    pub fn with_stalls_from(threshold: Duration) -> Self {
        Self {
            counters: FlowCounters::default(),
            rtt: RttSamples::default(),
            started: None,
            last_delivery: None,
            stopped: None,
            completed: false,
            wanted: 0,
            silence: SilenceMeter::new(threshold),
            assist_stall: None,
            bandwidth_estimate: None,
            transmissions: 0,
            order: ArrivalOrder::default(),
            arrived: SequenceRanges::default(),
            open_timeouts: VecDeque::new(),
            voice: None,
            delays: None,
        }
    }

    /// The same, of a voice flow: its packets are told by [`on_voice_sent`](Self::on_voice_sent) and
    /// [`on_voice_arrival`](Self::on_voice_arrival) alone.
    #[must_use]
    pub fn with_voice(self, call: Call) -> Self {
        Self { voice: Some(Box::new(VoiceMeter::new(call))), delays: None, ..self }
    }

    /// The same, with the one-way delays of its segments measured; those of a voice flow's packets are in any case.
    #[must_use]
    pub fn with_delays(self) -> Self {
        Self { delays: Some(Box::default()), ..self }
    }

    /// The application opened the flow. Only the first call counts.
    pub fn on_start(&mut self, now: Instant) {
        self.started.get_or_insert(now);
    }

    /// The sender sent a segment that occupies sequence numbers: data, SYN or FIN.
    ///
    /// What is returned travels with the packet to [`on_segment_arrival`](Self::on_segment_arrival).
    pub fn on_segment_sent(
        &mut self,
        now: Instant,
        range: SegmentRange,
        retransmission: bool,
    ) -> Transmission {
        debug_assert!(range.seq < range.end, "only what occupies sequence numbers is counted");
        let transmission = Transmission(self.transmissions << 1 | u64::from(retransmission));
        self.transmissions += 1;
        self.counters.segments_sent += 1;
        self.counters.segments_retransmitted += u64::from(retransmission);
        if let (Some(delays), false) = (&mut self.delays, retransmission) {
            delays.on_sent(now, range);
        }
        transmission
    }

    /// The sender's retransmission timer ran out, `seq` being the first sequence number not acknowledged.
    ///
    /// To be called before the retransmission it causes is sent. Whether the timeout was spurious is found out
    /// here: at once if `seq` has arrived already, later if a transmission from before the timeout brings it.
    pub fn on_timeout(&mut self, seq: i64) {
        self.counters.timeouts += 1;
        if self.arrived.contains(seq) {
            self.counters.spurious_timeouts += 1;
            return;
        }
        if self.open_timeouts.len() >= MOST_OPEN_TIMEOUTS {
            self.open_timeouts.pop_front();
        }
        self.open_timeouts.push_back(OpenTimeout { seq, sent_before: self.transmissions });
    }

    /// The sender received a duplicate acknowledgement (RFC 5681 section 2).
    pub fn on_duplicate_ack(&mut self) {
        self.counters.duplicate_acks += 1;
    }

    /// The sender measured a round-trip time.
    pub fn on_rtt_sample(&mut self, rtt: Duration) {
        self.rtt.count += 1;
        self.rtt.sum_nanos += rtt.as_nanos();
        self.rtt.min = Some(self.rtt.min.map_or(rtt, |min| min.min(rtt)));
        self.rtt.max = Some(self.rtt.max.map_or(rtt, |max| max.max(rtt)));
    }

    /// A segment reached the receiver's host, whatever its TCP then made of it. An empty range is ignored.
    ///
    /// A transmission that arrives again was copied by the network, as with simultaneous bindings. It counts as such
    /// and as nothing else: the sender did not send it twice, and the first copy has had its place in the order. Of
    /// the last 16,384 transmissions the arrival is remembered; an older one counts as if it had not arrived.
    pub fn on_segment_arrival(&mut self, range: SegmentRange, transmission: Transmission) {
        if range.seq >= range.end {
            return;
        }
        let number = transmission.number();
        match self.order.insert(number) {
            Place::Latest => {}
            Place::Overtaken => self.counters.out_of_order_arrivals += 1,
            Place::Copy => {
                self.counters.network_duplicates += 1;
                return;
            }
        }
        self.counters.segments_arrived += 1;
        if self.arrived.insert(range.seq, range.end) {
            self.counters.unnecessary_retransmissions += 1;
        }
        if !self.open_timeouts.is_empty() {
            let open = self.open_timeouts.len();
            self.open_timeouts.retain(|timeout| {
                number >= timeout.sent_before || timeout.seq < range.seq || timeout.seq >= range.end
            });
            self.counters.spurious_timeouts += (open - self.open_timeouts.len()) as u64;
        }
    }

    /// The sender of a voice flow sent the next packet: says which one it is, counted from 0.
    pub fn on_voice_sent(&mut self, now: Instant) -> u64 {
        let number = self.transmissions;
        self.transmissions += 1;
        self.counters.segments_sent += 1;
        if let Some(voice) = &mut self.voice {
            voice.on_sent(now);
        }
        number
    }

    /// A packet of a voice flow arrived: says how many have, each counted once.
    pub fn on_voice_arrival(&mut self, now: Instant, number: u64) -> u64 {
        match self.order.insert(number) {
            Place::Latest => {}
            Place::Overtaken => self.counters.out_of_order_arrivals += 1,
            Place::Copy => self.counters.network_duplicates += 1,
        }
        self.counters.segments_arrived = match self.voice.as_mut() {
            Some(voice) => {
                voice.on_arrival(now, number);
                voice.received()
            }
            None => self.counters.segments_arrived,
        };
        self.counters.segments_arrived
    }

    /// What was heard of a voice flow called `name` in a run that ends at `end_of_run`; `None` of another one.
    #[must_use]
    pub fn voice(&self, name: &str, end_of_run: Instant) -> Option<VoiceSummary> {
        self.voice.as_ref().map(|voice| voice.summary(name, end_of_run))
    }

    /// The histograms of the flow called `name`, where they are measured: of the one-way delays of its packets or segments, and of how
    /// much those of successive ones differ.
    #[must_use]
    pub fn histograms(&self, name: &str) -> Vec<HistogramSummary> {
        let of_segments = self.delays.as_ref().map(|delays| delays.spreads());
        let spreads = self.voice.as_ref().map(|voice| voice.spreads()).or(of_segments);
        let named = ["delay", "jitter"].into_iter().zip(spreads.into_iter().flatten());
        named.filter_map(|(quantity, spread)| HistogramSummary::of(name, quantity, spread)).collect()
    }

    /// The receiving application has got `total_bytes` in order so far. A total that does not grow is ignored.
    pub fn on_delivered(&mut self, now: Instant, total_bytes: u64) {
        if total_bytes > self.counters.bytes_delivered {
            self.counters.bytes_delivered = total_bytes;
            self.last_delivery = Some(now);
            self.silence.on_data(now, self.wanted > total_bytes);
            if let Some(delays) = &mut self.delays {
                delays.on_delivered(now, total_bytes);
            }
        }
    }

    /// From now on the applications want `total_bytes` of this direction delivered in all: what one has written, or
    /// what the other waits for; `u64::MAX` is without end. While that is more than was delivered, the flow is waited
    /// for, and silent until data comes.
    pub fn on_wanted(&mut self, now: Instant, total_bytes: u64) {
        // A program's last segments may leave after it has ended.
        let total_bytes = if self.stopped.is_some() { 0 } else { total_bytes };
        self.wanted = total_bytes;
        self.silence.on_wanting(now, total_bytes > self.counters.bytes_delivered);
    }

    /// A handover begins: the silences from here on are counted apart, too. Says how many began before it.
    pub(crate) fn on_handover(&mut self, now: Instant) -> usize {
        if let Some(voice) = &mut self.voice {
            voice.on_handover(now);
        }
        self.silence.on_handover(now)
    }

    /// Everything the flow had to carry is delivered: its time ends with the last delivery.
    pub fn on_complete(&mut self) {
        self.completed = true;
    }

    /// The flow was told to stop before the run ends: nothing is wanted any more. Only the first call counts.
    pub fn on_stop(&mut self, now: Instant) {
        self.stopped.get_or_insert(now);
        self.on_wanted(now, 0);
    }

    /// An assist on the path did something.
    pub fn on_assist(&mut self, deed: AssistDeed) {
        let counter = match deed {
            AssistDeed::Replayed => &mut self.counters.packets_replayed,
            AssistDeed::Held => &mut self.counters.packets_held,
            AssistDeed::Swallowed => &mut self.counters.retransmissions_swallowed,
            AssistDeed::AckInjected => &mut self.counters.acks_injected,
            AssistDeed::UnreachableInjected => &mut self.counters.unreachables_injected,
            AssistDeed::Advised => &mut self.counters.advice_taken,
        };
        *counter += 1;
    }

    /// The sender was told of a new path, and has set its window by what it takes that path to deliver, of data.
    pub fn on_bandwidth_estimate(&mut self, rate: DataRate) {
        self.bandwidth_estimate = Some(rate);
    }

    /// Another handover begins.
    pub(crate) fn forget_bandwidth_estimate(&mut self) {
        self.bandwidth_estimate = None;
    }

    /// That of the present handover.
    pub(crate) const fn bandwidth_estimate(&self) -> Option<DataRate> {
        self.bandwidth_estimate
    }

    /// An assist saw data acknowledged again, this long after it knew of a path.
    pub fn on_assist_stall(&mut self, after_path: Duration) {
        self.assist_stall = self.assist_stall.max(Some(after_path));
    }

    /// The longest stall after a handover that an assist saw.
    #[must_use]
    pub const fn assist_stall(&self) -> Option<Duration> {
        self.assist_stall
    }

    /// Whether the applications want data that was not delivered yet.
    #[must_use]
    pub const fn is_waited_for(&self) -> bool {
        self.silence.is_wanting()
    }

    /// How much of it.
    #[must_use]
    pub const fn outstanding_bytes(&self) -> u64 {
        self.wanted.saturating_sub(self.counters.bytes_delivered)
    }

    /// The silences of a run that ends at `end_of_run`.
    #[must_use]
    pub fn silences(&self, end_of_run: Instant) -> Silences {
        self.silence.silences(end_of_run)
    }

    /// The longest stalls, at most a hundred, in order of time.
    #[must_use]
    pub fn stalls(&self, end_of_run: Instant) -> Vec<Silence> {
        self.silence.stalls(end_of_run)
    }

    /// The silences from each handover on that this was told of.
    pub(crate) fn silences_of_handovers(&self, end_of_run: Instant) -> Vec<Silences> {
        self.silence.of_handovers(end_of_run)
    }

    /// What was counted.
    #[must_use]
    pub const fn counters(&self) -> &FlowCounters {
        &self.counters
    }

    /// The round-trip times the sender measured.
    #[must_use]
    pub fn rtt(&self) -> RttSummary {
        let mean = self.rtt.sum_nanos.checked_div(u128::from(self.rtt.count));
        RttSummary {
            samples: self.rtt.count,
            min: self.rtt.min,
            mean: mean.map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))),
            max: self.rtt.max,
        }
    }

    /// When the application opened the flow.
    #[must_use]
    pub const fn started(&self) -> Option<Instant> {
        self.started
    }

    /// When data was last delivered.
    #[must_use]
    pub const fn last_delivery(&self) -> Option<Instant> {
        self.last_delivery
    }

    /// Whether everything the flow had to carry was delivered.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.completed
    }

    /// The time goodput is averaged over: from the start to the last delivery of a flow that is complete,
    /// otherwise to its stop or the end of the run, whichever is first, but never less than to the last delivery.
    #[must_use]
    pub fn active_time(&self, end_of_run: Instant) -> Duration {
        let Some(started) = self.started else { return Duration::ZERO };
        let last_delivery = self.last_delivery.unwrap_or(started);
        let end = match self.stopped {
            _ if self.completed => last_delivery,
            Some(stopped) => stopped.min(end_of_run).max(last_delivery),
            None => end_of_run.max(last_delivery),
        };
        end - started
    }

    /// Bits delivered to the application per second of [`active_time`](Self::active_time), to a thousandth of a
    /// bit/s; 0 when that time is 0.
    #[must_use]
    pub fn goodput_bps(&self, end_of_run: Instant) -> f64 {
        let nanos = self.active_time(end_of_run).as_nanos();
        // bytes * 8 bit * 10^9 ns/s * 1000 thousandths, in integers so that rounding is the same everywhere.
        let thousandths = (u128::from(self.counters.bytes_delivered) * 8_000_000_000_000).checked_div(nanos);
        thousandths.unwrap_or(0) as f64 / 1000.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(index: i64) -> SegmentRange {
        SegmentRange { seq: 1 + 1000 * index, end: 1 + 1000 * (index + 1) }
    }

    /// A flow that has exchanged its SYN.
    fn connected() -> FlowMetrics {
        let mut flow = FlowMetrics::new();
        flow.on_start(Instant::ZERO);
        let syn = SegmentRange { seq: 0, end: 1 };
        let sent = flow.on_segment_sent(Instant::ZERO, syn, false);
        flow.on_segment_arrival(syn, sent);
        flow
    }

    #[test]
    fn a_timeout_is_spurious_when_the_original_had_arrived() {
        let mut flow = connected();
        let original = flow.on_segment_sent(Instant::ZERO, segment(0), false);
        flow.on_segment_arrival(segment(0), original);
        flow.on_timeout(segment(0).seq);
        assert_eq!((flow.counters().timeouts, flow.counters().spurious_timeouts), (1, 1));
    }

    #[test]
    fn a_timeout_turns_out_spurious_when_the_original_arrives_late() {
        let mut flow = connected();
        let original = flow.on_segment_sent(Instant::ZERO, segment(0), false);
        for _ in 0..3 {
            flow.on_timeout(segment(0).seq);
            flow.on_segment_sent(Instant::ZERO, segment(0), true);
        }
        assert_eq!(flow.counters().spurious_timeouts, 0);
        flow.on_segment_arrival(segment(0), original);
        assert_eq!((flow.counters().timeouts, flow.counters().spurious_timeouts), (3, 3));
        flow.on_segment_arrival(segment(0), original);
        assert_eq!(flow.counters().spurious_timeouts, 3, "each timeout counts once");
    }

    #[test]
    fn a_timeout_is_genuine_when_only_its_own_retransmission_arrives() {
        let mut flow = connected();
        flow.on_segment_sent(Instant::ZERO, segment(0), false);
        flow.on_timeout(segment(0).seq);
        let first_repeat = flow.on_segment_sent(Instant::ZERO, segment(0), true);
        flow.on_timeout(segment(0).seq);
        let second_repeat = flow.on_segment_sent(Instant::ZERO, segment(0), true);
        flow.on_segment_arrival(segment(0), first_repeat);
        flow.on_segment_arrival(segment(0), second_repeat);
        // The second timeout was premature: the first repetition was on its way.
        assert_eq!((flow.counters().timeouts, flow.counters().spurious_timeouts), (2, 1));
        assert_eq!(flow.counters().unnecessary_retransmissions, 1);
    }

    #[test]
    fn a_retransmission_that_overtakes_its_original_was_unnecessary() {
        let mut flow = connected();
        let original = flow.on_segment_sent(Instant::ZERO, segment(0), false);
        let repeat = flow.on_segment_sent(Instant::ZERO, segment(0), true);
        flow.on_segment_arrival(segment(0), repeat);
        assert_eq!(flow.counters().unnecessary_retransmissions, 0);
        flow.on_segment_arrival(segment(0), original);
        assert_eq!(flow.counters().unnecessary_retransmissions, 1);
        assert_eq!(flow.counters().out_of_order_arrivals, 1);
    }

    #[test]
    fn a_lost_segment_does_not_make_the_following_ones_out_of_order() {
        let mut flow = connected();
        flow.on_segment_sent(Instant::ZERO, segment(0), false);
        for index in 1..5 {
            let sent = flow.on_segment_sent(Instant::ZERO, segment(index), false);
            flow.on_segment_arrival(segment(index), sent);
        }
        let repeat = flow.on_segment_sent(Instant::ZERO, segment(0), true);
        flow.on_segment_arrival(segment(0), repeat);
        assert_eq!(flow.counters().out_of_order_arrivals, 0);
        assert_eq!(flow.counters().unnecessary_retransmissions, 0);
    }

    #[test]
    fn everything_on_the_slow_path_is_overtaken_by_one_segment_on_the_fast_one() {
        let mut flow = connected();
        let slow: alloc::vec::Vec<_> = (0..11)
            .map(|index| (segment(index), flow.on_segment_sent(Instant::ZERO, segment(index), false)))
            .collect();
        let fast = flow.on_segment_sent(Instant::ZERO, segment(11), false);
        flow.on_segment_arrival(segment(11), fast);
        for (range, sent) in slow {
            flow.on_segment_arrival(range, sent);
        }
        assert_eq!(flow.counters().out_of_order_arrivals, 11);
    }

    #[test]
    fn a_copy_made_by_the_network_is_no_retransmission_and_not_out_of_order() {
        let mut flow = connected();
        let first = flow.on_segment_sent(Instant::ZERO, segment(0), false);
        let second = flow.on_segment_sent(Instant::ZERO, segment(1), false);
        for (range, sent) in
            [(segment(0), first), (segment(1), second), (segment(0), first), (segment(1), second)]
        {
            flow.on_segment_arrival(range, sent);
        }
        let counters = flow.counters();
        assert_eq!((counters.segments_arrived, counters.network_duplicates), (3, 2));
        assert_eq!((counters.unnecessary_retransmissions, counters.out_of_order_arrivals), (0, 0));
        // A repetition by the sender is a transmission of its own.
        let repeat = flow.on_segment_sent(Instant::ZERO, segment(0), true);
        flow.on_segment_arrival(segment(0), repeat);
        flow.on_segment_arrival(segment(0), repeat);
        assert_eq!((flow.counters().unnecessary_retransmissions, flow.counters().network_duplicates), (1, 3));
    }

    #[test]
    fn duplicates_are_counted_per_period() {
        let mut flow = connected();
        let sent = flow.on_segment_sent(Instant::ZERO, segment(0), false);
        flow.on_segment_arrival(segment(0), sent);
        flow.on_segment_arrival(segment(0), sent);
        let earlier = *flow.counters();
        flow.on_segment_arrival(segment(0), sent);
        assert_eq!(flow.counters().since(&earlier).network_duplicates, 1);
    }

    #[test]
    fn open_timeouts_are_bounded() {
        let mut flow = connected();
        for index in 0..10_000 {
            flow.on_segment_sent(Instant::ZERO, segment(index), false);
            flow.on_timeout(segment(index).seq);
        }
        assert_eq!(flow.open_timeouts.len(), MOST_OPEN_TIMEOUTS);
        assert_eq!(flow.counters().spurious_timeouts, 0);
    }

    #[test]
    fn goodput_of_a_complete_flow_ends_with_its_last_byte() {
        let mut flow = connected();
        flow.on_delivered(Instant::from_secs(4), 1000);
        assert_eq!(flow.goodput_bps(Instant::from_secs(10)), 800.0);
        flow.on_stop(Instant::from_secs(5));
        assert_eq!(flow.goodput_bps(Instant::from_secs(10)), 1600.0);
        flow.on_complete();
        assert_eq!(flow.goodput_bps(Instant::from_secs(10)), 2000.0);
    }

    #[test]
    fn goodput_without_time_is_zero() {
        let mut flow = FlowMetrics::new();
        assert_eq!(flow.goodput_bps(Instant::from_secs(10)), 0.0);
        flow.on_start(Instant::from_secs(10));
        assert_eq!(flow.goodput_bps(Instant::from_secs(10)), 0.0);
    }

    #[test]
    fn round_trip_times_have_a_mean_only_when_there_are_some() {
        let mut flow = FlowMetrics::new();
        assert_eq!(flow.rtt(), RttSummary::default());
        for millis in [10, 20, 60] {
            flow.on_rtt_sample(Duration::from_millis(millis));
        }
        let expected = RttSummary {
            samples: 3,
            min: Some(Duration::from_millis(10)),
            mean: Some(Duration::from_millis(30)),
            max: Some(Duration::from_millis(60)),
        };
        assert_eq!(flow.rtt(), expected);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// Whatever a network does that may copy packets but makes none up.
        #[test]
        fn counters_stay_plausible(steps in prop::collection::vec((0_u8..5, 0_i64..12, any::<prop::sample::Index>()), 1..200)) {
            let mut flow = connected();
            let mut sent = alloc::collections::BTreeSet::new();
            let mut network = alloc::vec::Vec::new();
            for (what, index, pick) in steps {
                match what {
                    0 | 1 => {
                        let repeated = !sent.insert(index);
                        network.push((segment(index), flow.on_segment_sent(Instant::ZERO, segment(index), repeated)));
                    }
                    2 if !network.is_empty() => {
                        let (range, transmission) = network.remove(pick.index(network.len()));
                        flow.on_segment_arrival(range, transmission);
                    }
                    3 if !network.is_empty() => {
                        let (range, transmission) = network[pick.index(network.len())];
                        flow.on_segment_arrival(range, transmission);
                    }
                    _ => flow.on_timeout(segment(index).seq),
                }
                let counters = flow.counters();
                prop_assert!(counters.spurious_timeouts <= counters.timeouts);
                prop_assert!(counters.unnecessary_retransmissions <= counters.segments_retransmitted);
                prop_assert!(counters.out_of_order_arrivals < counters.segments_arrived);
                prop_assert!(counters.segments_arrived <= counters.segments_sent);
                prop_assert!(flow.open_timeouts.len() <= MOST_OPEN_TIMEOUTS);
            }
        }
    }
}
