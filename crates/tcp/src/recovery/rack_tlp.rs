//! RACK-TLP (RFC 8985, 2021) in the sender of RFC 6675: losses are concluded from when segments left, not from how many
//! duplicates came (section 6.2), and a probe answers for a tail that nothing follows (section 7). The two can be
//! switched one by one.
//!
//! With RACK on, IsLost() of RFC 6675 and its count of duplicates are out of force: every rule that asks for a lost
//! segment looks at RACK's marks, and a retransmission that was lost is sent again. Left out: RACK while a timeout is
//! being repaired (section 6.3; everything outstanding is presumed lost there), and the least round trip is that of the
//! connection, not of the last minutes.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::dsack;
use super::rack::Rack;
use super::tail_loss_probe::{Answer, TailLossProbe, Verdict};
use crate::config::{Config, Variant};
use crate::events::Journal;
use crate::send_queue::{Marks, Record};
use crate::sender::{Ack, Outgoing, Sender};
use crate::snapshot::Phase;
use crate::timer::Timer;

/// `TLP.max_ack_delay`: the longest that receivers hold an acknowledgement back.
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// PTO without a measurement.
const PTO_UNMEASURED: Duration = Duration::from_secs(1);
/// DupThresh: as many segments selectively acknowledged end the tolerance of reordering that was never seen.
const DUP_THRESH: u32 = 3;

/// What the timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// A segment is lost if nothing of it is heard until then (step 5).
    Reordering,
    /// PTO.
    Probe,
}

#[derive(Clone, Debug)]
pub(crate) struct RackTlp {
    losses_by_time: bool,
    probes: bool,
    rack: Rack,
    probe: TailLossProbe,
    timer: Timer,
    wait: Wait,
    probe_due: bool,
    /// The acknowledgement that is being taken covers something new.
    advances: bool,
    /// Microseconds; `u64::MAX` before the first measurement.
    min_rtt: u64,
    /// `RACK.fack`: one past the highest octet delivered.
    fack: SeqNumber,
    reordering_seen: bool,
    /// `RACK.dsack_round`: until this is acknowledged, no further duplicate widens the reordering window.
    dsack_round: Option<SeqNumber>,
}

impl RackTlp {
    /// The state, where a switch is on.
    pub(crate) fn new(config: &Config, iss: SeqNumber) -> Option<Self> {
        (config.variant == Variant::Sack && (config.rack || config.tail_loss_probe)).then(|| Self {
            losses_by_time: config.rack,
            probes: config.tail_loss_probe,
            rack: Rack::new(),
            probe: TailLossProbe::default(),
            timer: Timer::default(),
            wait: Wait::Probe,
            probe_due: false,
            advances: false,
            min_rtt: u64::MAX,
            fack: iss,
            reordering_seen: false,
            dsack_round: None,
        })
    }

    pub(crate) fn timer(&self) -> Timer {
        self.timer
    }

    pub(crate) fn stop(&mut self) {
        self.timer.stop();
        self.probe_due = false;
    }

    /// Whether losses are found by time.
    pub(crate) fn finds_losses(&self) -> bool {
        self.losses_by_time
    }

    /// Steps 1 to 3: a segment was delivered.
    fn delivered(&mut self, now: u64, record: &Record) {
        let sent = micros(record.sent_at);
        let repeated = record.transmissions > 1;
        if !repeated {
            self.min_rtt = self.min_rtt.min(now.saturating_sub(sent));
            self.reordering_seen |= record.end().is_before(self.fack);
        }
        self.fack = self.fack.later(record.end());
        let least = if self.min_rtt == u64::MAX { 0 } else { self.min_rtt };
        self.rack.delivered(now, sent, record.end(), repeated, least);
    }

    /// Step 4: an acknowledgement up to `una` was taken; `duplicate`: it reports one. Widens the reordering window once
    /// a round trip.
    fn adapt(&mut self, now: u64, duplicate: bool, una: SeqNumber, nxt: SeqNumber) {
        if self.dsack_round.is_some_and(|end| una.is_at_or_after(end)) {
            self.dsack_round = None;
        }
        if duplicate && self.dsack_round.is_none() {
            self.dsack_round = Some(nxt);
            self.rack.duplicate_seen = true;
        }
        self.rack.adapt(now, Some(now));
    }

    /// Step 4: the reordering window, microseconds.
    fn window(&self, recovering: bool, sacked_segments: u32, srtt: u64) -> u64 {
        if !self.reordering_seen && (recovering || sacked_segments >= DUP_THRESH) {
            return 0;
        }
        if self.min_rtt == u64::MAX { 0 } else { self.rack.window(self.min_rtt, srtt) }
    }
}

fn micros(at: Instant) -> u64 {
    at.as_nanos() / 1_000
}

/// TLP_calc_PTO(), without the limit that the retransmission timer sets.
fn pto(srtt: Option<Duration>, lone: bool) -> Duration {
    srtt.map_or(PTO_UNMEASURED, |srtt| srtt * 2 + if lone { MAX_ACK_DELAY } else { Duration::ZERO })
}

/// An acknowledgement came, and has not been taken yet: notes what it delivers.
pub(crate) fn before_ack(sender: &mut Sender, now: Instant, ack: &Ack<'_>) {
    let (queue, now) = (&sender.queue, micros(now));
    let Some(state) = sender.rack_tlp.as_deref_mut() else { return };
    state.advances = ack.ack.is_after(queue.una());
    if !state.losses_by_time {
        return;
    }
    let mut index = 0;
    while let Some(record) = queue.record(index).filter(|record| record.end().is_at_or_before(ack.ack)) {
        if !record.marks.has(Marks::SACKED) {
            state.delivered(now, record);
        }
        index += 1;
    }
    for &(left, right) in ack.sack.as_slice() {
        let mut index = queue.index_at(left.later(ack.ack));
        while let Some(record) = queue.record(index).filter(|record| record.end().is_at_or_before(right)) {
            if !record.marks.has(Marks::SACKED) {
                state.delivered(now, record);
            }
            index += 1;
        }
    }
}

/// An acknowledgement was taken that reported `sacked` octets for the first time; `was` is the phase before it.
pub(crate) fn after_ack(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    sacked: u32,
    was: Phase,
    journal: &mut Journal,
) {
    let report = if sender.rules.dsack { dsack::reported(ack.ack, ack.sack.as_slice()) } else { None };
    let Some(state) = sender.rack_tlp.as_deref_mut() else { return };
    let advances = state.advances;
    if state.probe.is_under_way() {
        let reports_probe = report.is_some_and(|block| state.probe.ends_at(block.1));
        let answer = Answer {
            ack: ack.ack,
            reports_probe,
            bare_duplicate: ack.pure && !advances && ack.sack.is_empty(),
        };
        if state.probe.on_ack(answer) == Verdict::Repaired && sender.phase == Phase::Open {
            // Section 7.4.2: the probe repaired the only loss, which is congestion all the same.
            sender.lower_threshold(sender.flight_to_halve());
            sender.window.set(sender.window.ssthresh());
            sender.ecn.reduced(sender.queue.end());
            journal.counters.losses_repaired_by_probes += 1;
        }
    }
    let Some(state) = sender.rack_tlp.as_deref_mut() else { return };
    state.adapt(micros(now), report.is_some(), sender.queue.una(), sender.queue.end());
    if was != Phase::Open && sender.phase == Phase::Open {
        state.rack.recovered();
    }
    detect(sender, now, sacked, journal);
    if advances || !may_probe(sender) {
        arm_probe(sender, now);
    }
}

/// Step 5: marks what is lost, and waits for what may be. Without a recovery under way a loss begins one.
fn detect(sender: &mut Sender, now: Instant, newly_sacked: u32, journal: &mut Journal) {
    let Some(state) = sender.rack_tlp.as_deref_mut().filter(|state| state.losses_by_time) else { return };
    if state.wait == Wait::Reordering {
        state.timer.stop();
    }
    if sender.phase == Phase::Loss {
        return;
    }
    let present = micros(now);
    let srtt = sender.estimator.srtt().map_or(0, |srtt| u64::try_from(srtt.as_micros()).unwrap_or(u64::MAX));
    let sacked = sender.queue.scoreboard.sacked() / sender.mss.max(1);
    let window = state.window(sender.phase == Phase::FastRecovery, sacked, srtt);
    let mut longest = 0;
    let mut lost = false;
    let mut index = 0;
    while let Some(&record) = sender.queue.record(index) {
        // Marked in a recovery that ended without having come to it.
        let waits = record.marks.has(Marks::LOST) && !record.marks.has(Marks::REPAIRED);
        lost |= waits && !record.marks.has(Marks::SACKED);
        let sent = micros(record.sent_at);
        if !record.marks.has(Marks::SACKED) && !waits && state.rack.is_passed(sent, record.end()) {
            match state.rack.remaining(present, sent, window) {
                ..=0 => {
                    sender.queue.presume_lost(index);
                    lost = true;
                }
                rest => longest = longest.max(rest.unsigned_abs()),
            }
        }
        index += 1;
    }
    if longest > 0 {
        state.wait = Wait::Reordering;
        state.timer.arm(now + Duration::from_micros(longest));
    }
    if lost && sender.phase == Phase::Open {
        state.probe.forget();
        super::sack::enter(sender, now, newly_sacked, journal);
    }
}

/// Something is outstanding, no probe is under way, and nothing tells of a loss already.
fn may_probe(sender: &Sender) -> bool {
    let waits =
        sender.rack_tlp.as_deref().is_some_and(|state| !state.probe.is_under_way() && !state.probe_due);
    waits && !sender.queue.is_empty() && sender.phase == Phase::Open && sender.queue.scoreboard.sacked() == 0
}

/// Something new left, or an acknowledgement advanced: PTO from now, where a probe is called for (section 7.2).
pub(crate) fn arm_probe(sender: &mut Sender, now: Instant) {
    let allowed = may_probe(sender);
    let Some(state) = sender.rack_tlp.as_deref_mut().filter(|state| state.probes) else { return };
    if state.wait == Wait::Reordering && state.timer.is_armed() {
        return;
    }
    state.timer.stop();
    if allowed {
        let lone = sender.queue.outstanding() <= sender.mss;
        // Where the timeout would come first, the probe takes its place, and the timeout begins anew.
        let deadline = (now + pto(sender.estimator.srtt(), lone)).min(sender.timer.deadline());
        state.wait = Wait::Probe;
        state.timer.arm(deadline);
    }
}

/// The timer may have run out. Asked before the retransmission timer is, which begins anew with a probe (section 7.3).
pub(crate) fn on_timer(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    let Some(state) = sender.rack_tlp.as_deref_mut().filter(|state| state.timer.is_due(now)) else { return };
    state.timer.stop();
    match state.wait {
        // Sent nothing, found nothing lost: what comes back begins anew.
        _ if sender.away.is_some() => {}
        Wait::Probe if sender.queue.is_empty() => {}
        Wait::Probe => {
            state.probe_due = true;
            sender.timer.arm(sender.estimator.deadline(now));
        }
        Wait::Reordering => {
            detect(sender, now, 0, journal);
            journal.revision += 1;
        }
    }
}

/// TLP_send_probe(): new data where there is some and the peer has room for it, else the last segment again.
pub(crate) fn next(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let state = sender.rack_tlp.as_deref_mut().filter(|state| state.probe_due)?;
    state.probe_due = false;
    let (out, repeats) = match sender.new_segment(now, 0, 0) {
        Some(out) => (out, false),
        None => (sender.resend(sender.queue.len().checked_sub(1)?, now)?, true),
    };
    let end = sender.queue.end();
    if let Some(state) = sender.rack_tlp.as_deref_mut() {
        state.probe.sent(end, repeats);
    }
    Some(out)
}

/// The retransmission timer ran out: everything is presumed lost.
pub(crate) fn on_timeout(sender: &mut Sender) {
    if let Some(state) = sender.rack_tlp.as_deref_mut() {
        state.stop();
        state.probe.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack() -> RackTlp {
        let config = Config { variant: Variant::Sack, rack: true, ..Config::default() };
        RackTlp { min_rtt: 50_000, ..RackTlp::new(&config, SeqNumber(0)).unwrap() }
    }

    #[test]
    fn the_probe_waits_two_round_trips_and_longer_for_a_lone_segment() {
        let srtt = Some(Duration::from_millis(60));
        assert_eq!(pto(srtt, false), Duration::from_millis(120));
        assert_eq!(pto(srtt, true), Duration::from_millis(320));
        assert_eq!(pto(None, true), Duration::from_secs(1));
    }

    #[test]
    fn the_reordering_window_is_a_quarter_of_the_least_round_trip_unless_nothing_was_reordered() {
        let mut state = rack();
        let srtt = 70_000;
        assert_eq!(state.window(true, 0, srtt), 0);
        assert_eq!(state.window(false, 3, srtt), 0);
        assert_eq!(state.window(false, 2, srtt), 12_500);
        state.reordering_seen = true;
        assert_eq!(state.window(true, 3, srtt), 12_500);
        // n round trips with duplicates: n + 1 quarters, at most SRTT; sixteen recoveries without one take it back.
        for n in 1..=6 {
            state.rack.duplicate_seen = true;
            state.rack.adapt(n * 1_000_000, Some(n * 1_000_000));
            assert_eq!(state.window(true, 3, srtt), ((n + 1) * 12_500).min(srtt), "{n}");
        }
        for _ in 0..16 {
            state.rack.recovered();
        }
        state.rack.adapt(9_000_000, Some(9_000_000));
        assert_eq!(state.window(true, 3, srtt), 12_500);
    }

    #[test]
    fn several_duplicates_of_a_round_trip_widen_the_window_once() {
        let mut state = rack();
        state.reordering_seen = true;
        let quarters = |state: &RackTlp| state.window(true, 0, 1_000_000) / 12_500;
        for (una, duplicate, expected) in
            [(1_000, true, 2), (2_000, true, 2), (8_999, true, 2), (9_000, false, 2), (9_000, true, 3)]
        {
            state.adapt(u64::from(una), duplicate, SeqNumber(una), SeqNumber(9_000));
            assert_eq!(quarters(&state), expected, "{una}");
        }
    }

    #[test]
    fn a_segment_is_lost_a_round_trip_and_a_reordering_window_after_it_left() {
        let mut state = rack();
        // Sent at 10 ms, delivered at 60 ms; the one in question left at 8 ms.
        state.rack.delivered(60_000, 10_000, SeqNumber(3_000), false, 0);
        let window = state.window(false, 0, 70_000);
        assert!(state.rack.is_passed(8_000, SeqNumber(1_000)));
        assert_eq!(state.rack.remaining(8_000 + 50_000 + 12_499, 8_000, window), 1);
        assert_eq!(state.rack.remaining(8_000 + 50_000 + 12_500, 8_000, window), 0);
    }
}
