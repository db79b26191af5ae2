//! The retransmission timeout (Linux 6.1, `tcp_enter_loss`, `tcp_retransmit_timer`): everything that has been under way
//! for a round trip is presumed lost, and the first segment is sent again.

use core::time::Duration;

use careof_base::Instant;

use super::{micros, outstanding, states, timers, transmit};
use crate::Event;
use crate::congestion::CaState;
use crate::events::Journal;
use crate::send_queue::Marks;
use crate::sender::Sender;

/// For how long a receiver that has closed its window may be silent.
const PROBE_PATIENCE: Duration = Duration::from_secs(240);

/// The timer ran out. Returns `false` when the connection is to be given up.
pub(super) fn on_timeout(sender: &mut Sender, now: Instant, journal: &mut Journal) -> bool {
    let Some(head) = sender.queue.front() else { return true };
    let (is_syn, head_sent) = (head.marks.has(Marks::SYN), head.sent_at);
    journal.counters.timeouts += 1;
    journal.revision += 1;
    journal.tell(Event::Timeout {
        seq: sender.queue.una(),
        backoff: sender.linux.timeouts + 1,
        rto: sender.estimator.rto(),
    });
    let given_up = if is_syn {
        sender.linux.timeouts >= sender.rules.max_retransmissions
    } else if sender.snd_wnd() == 0 {
        // The receiver has taken its window back: what is sent again probes it, for as long as it answers.
        let since = |at: Instant| now - at;
        since(sender.linux.heard_at) > PROBE_PATIENCE
            && since(first_repetition(sender, now).unwrap_or(head_sent)) > PROBE_PATIENCE
    } else {
        sender.linux.timeouts > 0 && is_out_of_time(sender, now)
    };
    if given_up {
        return false;
    }
    if is_syn {
        sender.linux.timeouts += 1;
        transmit::send_again(sender, 0, now);
    } else {
        enter_loss(sender, now);
        sender.linux.timeouts += 1;
        transmit::repeat(sender, 0, now);
    }
    sender.estimator.back_off();
    timers::start_rto(sender, now);
    true
}

/// When the first segment of this episode was sent again, to the millisecond.
fn first_repetition(sender: &Sender, now: Instant) -> Option<Instant> {
    let stamp = sender.linux.undo.first_stamp?;
    let elapsed = crate::timestamps::clock(now).wrapping_sub(stamp);
    Some(now.saturating_sub(Duration::from_millis(u64::from(elapsed))))
}

/// The user's timeout has passed since the first repetition, or as much time as the configured number of timeouts
/// takes when the first is the least RTO (`retransmits_timed_out`).
fn is_out_of_time(sender: &Sender, now: Instant) -> bool {
    let Some(first) = first_repetition(sender, now) else { return false };
    now - first >= patience(sender)
}

fn patience(sender: &Sender) -> Duration {
    if let Some(timeout) = sender.rules.user_timeout {
        return timeout;
    }
    let (min, max) = (sender.rules.rto_min, sender.rules.rto_max);
    let mut total = Duration::ZERO;
    let mut wait = min;
    for _ in 0..=sender.rules.max_retransmissions {
        total = total.saturating_add(wait);
        wait = wait.saturating_mul(2).min(max);
    }
    total
}

/// Everything is presumed lost but what left recently; the threshold falls once an episode.
fn enter_loss(sender: &mut Sender, now: Instant) {
    let state = sender.linux.state;
    mark_all_lost(sender, now);
    let fresh = state <= CaState::Disorder
        || !sender.linux.high_seq.is_after(sender.linux.una)
        || state == CaState::Loss && sender.linux.timeouts == 0;
    if fresh {
        sender.linux.prior_ssthresh = states::current_threshold(sender);
        sender.linux.prior_cwnd = sender.window.segments();
        states::lower_threshold(sender);
        sender.congestion.on_timeout(&mut sender.window);
        sender.linux.begin_undo();
    }
    let in_flight = sender.linux.in_flight(&sender.queue);
    sender.window.set_segments(in_flight + 1);
    sender.window.set_counted(0);
    let linux = &mut sender.linux;
    linux.usage.stamp(now);
    // So many duplicates and still no recovery: reordering is less than was thought.
    if state <= CaState::Disorder && linux.sacked_out >= linux.usual_reordering {
        linux.reordering = linux.reordering.min(linux.usual_reordering);
    }
    states::set(sender, now, CaState::Loss);
    let linux = &mut sender.linux;
    linux.high_seq = sender.queue.end();
    linux.probe.forget();
    sender.ecn.reduced(linux.high_seq);
    // RFC 5682 steps 1: not when the timeout interrupts another recovery.
    linux.frto = linux.switches.frto && (state < CaState::Recovery || linux.timeouts > 0);
}

fn mark_all_lost(sender: &mut Sender, now: Instant) {
    let Sender { queue, linux, .. } = sender;
    let reneged = queue.front().is_some_and(|head| head.marks.has(Marks::SACKED));
    if reneged {
        linux.sacked_out = 0;
        linux.reneged = true;
    } else if !linux.sack {
        linux.sacked_out = 0;
    }
    for index in 0..queue.len() {
        let Some(record) = queue.record_mut(index) else { break };
        if reneged {
            record.marks.clear(Marks::SACKED);
        } else if index > 0 && linux.is_recent(record, micros(now)) {
            continue;
        }
        linux.mark_lost(record);
    }
    linux.forget_hints(queue);
}

/// What is outstanding was sent over a path that is gone: it is lost, but for what the receiver has reported, and that
/// says nothing about congestion. The window is the caller's, and so is the timer, which is off: nothing that it may have
/// run for still counts.
pub(crate) fn path_replaced(sender: &mut Sender, now: Instant) {
    let Sender { queue, linux, .. } = sender;
    linux.outbox.clear();
    if !linux.sack {
        linux.sacked_out = 0;
    }
    for index in 0..queue.len() {
        if let Some(record) = queue.record_mut(index) {
            linux.mark_lost(record);
        }
    }
    linux.forget_hints(queue);
    linux.una = queue.una();
    linux.forget_undo();
    linux.frto = false;
    linux.probe.forget();
    if linux.lost_out > 0 {
        linux.high_seq = queue.end();
        states::set(sender, now, CaState::Loss);
    }
    sender.stop_timer();
}

/// The path takes smaller segments now: those that are too large are lost, which says nothing about congestion
/// (`tcp_simple_retransmit`). They are cut here.
pub(crate) fn path_narrowed(sender: &mut Sender, now: Instant, mss: u16) {
    transmit::pack_anew(sender);
    let Sender { queue, linux, .. } = sender;
    let mut packet_end = 0;
    for index in 0..queue.len() {
        if queue.record(index).is_some_and(|record| record.len > mss) {
            packet_end = packet_end.max(index + queue.packet_at(index));
        }
        if let Some(record) = queue.record_mut(index).filter(|_| index < packet_end) {
            linux.mark_lost(record);
        }
    }
    if !queue.split_larger_than(mss) {
        return;
    }
    recount(sender);
    let Sender { queue, linux, .. } = sender;
    linux.forget_hints(queue);
    linux.una = queue.una();
    if !linux.sack {
        linux.limit_count(queue);
    }
    if linux.lost_out == 0 {
        return;
    }
    if sender.linux.state != CaState::Loss {
        let threshold = states::current_threshold(sender);
        sender.window.set_ssthresh_segments(threshold);
        let linux = &mut sender.linux;
        linux.high_seq = sender.queue.end();
        linux.prior_ssthresh = 0;
        linux.undo.marker = None;
        states::set(sender, now, CaState::Loss);
    }
    debug_assert!(sender.linux.lost_out <= outstanding(&sender.queue));
    transmit::repeat_lost(sender, now);
}

/// Counts the marks anew: segments were cut.
fn recount(sender: &mut Sender) {
    let Sender { queue, linux, .. } = sender;
    let count = |mark| {
        (0..queue.len())
            .filter(|&index| queue.record(index).is_some_and(|record| record.marks.has(mark)))
            .count() as u32
    };
    if linux.sack {
        linux.sacked_out = count(Marks::SACKED);
    }
    linux.lost_out = count(Marks::LOST);
    linux.retrans_out = count(Marks::REPAIRED);
}
