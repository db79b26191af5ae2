//! The one timer of the sender: retransmission, tail loss probe or reordering window (Linux 6.1, `tcp_rearm_rto`,
//! `tcp_schedule_loss_probe`, `tcp_write_timer_handler`), in ticks of a millisecond.

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{Linux, losses, micros, outstanding, states, timeout, transmit};
use crate::congestion::CaState;
use crate::events::Journal;
use crate::recovery::tail_loss_probe::TailLossProbe;
use crate::sender::Sender;
use crate::timer::{Ticks, nanos};

const TICKS: Ticks = Ticks::MILLISECONDS;
/// Added to the wait for reordering, microseconds.
const MARGIN: u64 = 2_000;
/// Least wait for a receiver that seems to have thrown data away.
const GRACE: Duration = Duration::from_millis(10);

/// What the timer runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    Nothing,
    Retransmission,
    Probe,
    Reordering,
}

/// As [`start`], when the next packet may leave, if that is later (`tcp_reset_xmit_timer`).
fn start_paced(sender: &mut Sender, now: Instant, what: Pending, ticks: u64) {
    let wait = sender.pacing.next_departure(now) - now;
    start(sender, now, what, ticks + nanos(wait) / 1_000_000);
}

/// Sets the timer to run out `ticks` after the present one began.
fn start(sender: &mut Sender, now: Instant, what: Pending, ticks: u64) {
    sender.linux.pending = what;
    let due = match sender.linux.wheel {
        Some(wheel) => wheel.fires(now, TICKS.span_of(ticks)),
        None => TICKS.start_of(TICKS.at(now) + ticks),
    };
    sender.timer.arm(due);
}

/// `RTO_MAX`, which no wait exceeds, and the RTO, ticks.
fn rto(sender: &Sender) -> u64 {
    TICKS.count_in(sender.estimator.rto())
}

fn ticks_of_micros(micros: u64) -> u64 {
    TICKS.count_in(Duration::from_micros(micros))
}

/// Microseconds until the RTO of the first segment has passed since it left.
fn rest_of_rto(sender: &Sender, now: Instant) -> Option<u64> {
    let head = sender.queue.front()?;
    let due = micros(head.sent_at) + rto(sender) * 1_000;
    due.checked_sub(micros(now)).filter(|&rest| rest > 0)
}

/// Starts the whole RTO, but not beyond the user's timeout.
pub(super) fn start_rto(sender: &mut Sender, now: Instant) {
    let mut ticks = rto(sender);
    if let (Some(limit), Some(first)) = (sender.rules.user_timeout, sender.linux.undo.first_stamp) {
        let elapsed = u64::from(crate::timestamps::clock(now).wrapping_sub(first));
        ticks = ticks.min(TICKS.count_in(limit).saturating_sub(elapsed).max(1));
    }
    start(sender, now, Pending::Retransmission, ticks);
}

/// A SYN left.
pub(crate) fn on_syn_sent(sender: &mut Sender, now: Instant) {
    start_rto(sender, now);
}

/// Starts the RTO anew; where the timer ran for a probe or for reordering, from when the first segment left
/// (`tcp_rearm_rto`).
pub(super) fn rearm(sender: &mut Sender, now: Instant) {
    if sender.queue.is_empty() {
        sender.stop_timer();
        return;
    }
    let ticks = match sender.linux.pending {
        Pending::Probe | Pending::Reordering => ticks_of_micros(rest_of_rto(sender, now).unwrap_or(1)),
        Pending::Nothing | Pending::Retransmission => rto(sender),
    };
    start_paced(sender, now, Pending::Retransmission, ticks);
}

/// The timer after progress: a probe where one makes sense, else the RTO (`tcp_set_xmit_timer`).
pub(super) fn set(sender: &mut Sender, now: Instant) {
    if !schedule_probe(sender, now, true) {
        rearm(sender, now);
    }
}

/// The timer begins anew, unless it runs for reordering, which only acknowledgements tell of.
pub(crate) fn restart(sender: &mut Sender, now: Instant) {
    if sender.linux.pending != Pending::Reordering {
        sender.linux.pending = Pending::Nothing;
        set(sender, now);
    }
}

impl Linux {
    /// Whether the timer runs for something.
    pub(crate) fn timer_has_purpose(&self) -> bool {
        self.pending != Pending::Nothing
    }

    /// The timer was stopped.
    pub(crate) fn forget_purpose(&mut self) {
        self.pending = Pending::Nothing;
    }
}

/// What the timer runs out for next is a timeout.
pub(crate) fn expect_timeout(sender: &mut Sender) {
    sender.linux.pending = Pending::Retransmission;
}

/// Schedules a probe; `anew`: the RTO starts now, not when the first segment left. Returns whether it did.
pub(super) fn schedule_probe(sender: &mut Sender, now: Instant, anew: bool) -> bool {
    let linux = &sender.linux;
    if !linux.switches.tail_loss_probe
        || !linux.sack
        || sender.queue.is_empty()
        || !matches!(linux.state, CaState::Open | CaState::Cwr)
    {
        return false;
    }
    let lone = outstanding(&sender.queue) == 1;
    let (rto_min, rto_initial) = (sender.rules.rto_min, sender.rules.rto_initial);
    let mut ticks = TICKS.count_in(TailLossProbe::wait(sender.estimator.srtt(), lone, rto_min, rto_initial));
    if anew {
        ticks = ticks.min(rto(sender));
    } else if let Some(rest) = rest_of_rto(sender, now) {
        ticks = ticks.min(ticks_of_micros(rest));
    }
    start_paced(sender, now, Pending::Probe, ticks);
    true
}

/// RACK waits for `wait` microseconds.
pub(super) fn wait_for_reordering(sender: &mut Sender, now: Instant, wait: u64) {
    let ticks = ticks_of_micros(wait + MARGIN).min(rto(sender));
    start(sender, now, Pending::Reordering, ticks);
}

/// What was sacked turns out to be missing: the receiver gets half a round trip to put that right.
pub(super) fn grant_time(sender: &mut Sender, now: Instant) {
    let half = sender.estimator.srtt().unwrap_or_default() / 2;
    start(sender, now, Pending::Retransmission, TICKS.count_in(half.max(GRACE)));
}

/// Whether the timer runs for reordering.
pub(super) fn waits_for_reordering(sender: &Sender) -> bool {
    sender.linux.pending == Pending::Reordering
}

/// Whether the timer runs for a probe.
pub(super) fn waits_for_probe(sender: &Sender) -> bool {
    sender.linux.pending == Pending::Probe
}

/// An ICMP message says that the segment at `seq` could not be delivered: while it is being repeated, one back-off is
/// taken back (RFC 6069; `tcp_ld_RTO_revert`). Returns whether the timer has run out by this.
pub(crate) fn on_unreachable(sender: &mut Sender, now: Instant, seq: SeqNumber) -> bool {
    let repeating = sender.linux.timeouts > 0 && seq == sender.queue.una() && !sender.queue.is_empty();
    if !repeating || !sender.estimator.undo_back_off() {
        return false;
    }
    let rest = rest_of_rto(sender, now).map_or(0, ticks_of_micros);
    start(sender, now, Pending::Retransmission, rest);
    if rest == 0 {
        sender.timer.arm(now);
    }
    rest == 0
}

/// The timer ran out. Returns `false` when the connection is to be given up.
pub(crate) fn on_timer(sender: &mut Sender, now: Instant, journal: &mut Journal) -> bool {
    sender.timer.stop();
    match sender.linux.pending {
        Pending::Nothing => true,
        Pending::Retransmission => {
            sender.linux.pending = Pending::Nothing;
            timeout::on_timeout(sender, now, journal)
        }
        Pending::Probe => {
            send_probe(sender, now);
            journal.revision += 1;
            true
        }
        Pending::Reordering => {
            on_reordering_timeout(sender, now, journal);
            journal.revision += 1;
            true
        }
    }
}

/// New data where there is some, else the last segment again (`tcp_send_loss_probe`).
fn send_probe(sender: &mut Sender, now: Instant) {
    if !sender.linux.probe.is_under_way() {
        let before = sender.queue.len();
        let sent = if transmit::next_fits(sender, now) {
            transmit::send_new(sender, now, transmit::Push::Probe);
            (sender.queue.len() > before).then_some(false)
        } else {
            before.checked_sub(1).and_then(|last| transmit::send_again(sender, last, now).then_some(true))
        };
        if let Some(repeats) = sent {
            let end = sender.queue.end();
            sender.linux.probe.sent(end, repeats);
            sender.linux.pending = Pending::Nothing;
        }
    }
    rearm(sender, now);
}

/// The wait for reordering is over (`tcp_rack_reo_timeout`).
fn on_reordering_timeout(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    let before = sender.linux.in_flight(&sender.queue);
    let lost = sender.linux.lost;
    losses::detect(sender, now);
    if before != sender.linux.in_flight(&sender.queue) {
        if sender.linux.state != CaState::Recovery {
            states::enter_recovery(sender, now, false, journal);
            let lost = sender.linux.lost - lost;
            states::reduce(sender, 1, lost, false);
        }
        transmit::repeat_lost(sender, now);
    }
    if sender.linux.pending != Pending::Retransmission {
        rearm(sender, now);
    }
}
