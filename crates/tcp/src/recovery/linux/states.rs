//! The machine of five states (Linux 6.1, `tcp_fastretrans_alert`): when a recovery begins and ends, and the reduction
//! of the window in between (`tcp_cwnd_reduction`; by PRR where it is on, else at once).

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::ack::{Again, News};
use super::undo::{self, Partial};
use super::{frto, losses, outstanding, timers};
use crate::Event;
use crate::congestion::{CaState, Controller};
use crate::events::Journal;
use crate::recovery::prr::{Delivery, Prr};
use crate::sender::{Ack, Sender};

/// Comes to `state`.
pub(super) fn set(sender: &mut Sender, now: Instant, state: CaState) {
    sender.congestion.on_state(state, now, sender.queue.end());
    sender.linux.state = state;
    sender.phase = sender.linux.phase();
    if state == CaState::Loss {
        sender.note_linux_losses();
        sender.with_model(now, Controller::on_model_timeout);
    }
}

/// An acknowledgement that is not plain progress in the open state.
pub(super) fn alert(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    una_before: SeqNumber,
    duplicates: u32,
    news: &mut News,
    journal: &mut Journal,
) -> Again {
    let mss = sender.mss;
    let linux = &mut sender.linux;
    let mut evident = duplicates > 0 || news.sacked && linux.is_far_sacked(mss);
    if sender.queue.is_empty() {
        linux.sacked_out = 0;
    }
    if news.congestion_echoed {
        linux.prior_ssthresh = 0;
    }
    if news.reneging && news.una_advanced {
        // The receiver may yet show that it has what it reported; otherwise the timeout forgets it.
        timers::grant_time(sender, now);
        news.set_timer = false;
        return Again::Nothing;
    }
    let mut again = Again::Nothing;
    if linux.state == CaState::Open {
        linux.undo.first_stamp = None;
    } else if !linux.una.is_before(linux.high_seq) {
        match linux.state {
            CaState::Cwr if linux.una != linux.high_seq => {
                end_reduction(sender, now);
                set(sender, now, CaState::Open);
            }
            CaState::Recovery => {
                if !linux.sack {
                    linux.sacked_out = 0;
                }
                if undo::at_end(sender, now, ack) {
                    return again;
                }
                // The state is Open now; the threshold holds where nothing was taken back.
                end_reduction(sender, now);
            }
            _ => {}
        }
    }
    let mut first_repetition = false;
    match sender.linux.state {
        CaState::Recovery => {
            if !news.una_advanced {
                if !sender.linux.sack {
                    sender.linux.count_duplicates(&sender.queue, duplicates);
                }
            } else {
                match undo::by_partial_ack(sender, now, ack, una_before) {
                    Partial::Wait => return again,
                    Partial::Undone => {}
                    Partial::Real => evident = sender.linux.is_far_sacked(mss),
                }
            }
            if undo::by_reports(sender, now) {
                try_to_open(sender, now, news.congestion_echoed, journal);
            }
            losses::identify(sender, now, news);
            if sender.linux.state != CaState::Recovery {
                if !is_time_to_recover(sender) {
                    return again;
                }
                enter_recovery(sender, now, news.congestion_echoed, journal);
            }
        }
        state => {
            if state == CaState::Loss {
                again = frto::on_ack(sender, now, ack, duplicates, news);
                losses::identify(sender, now, news);
                if sender.linux.state != CaState::Open && !news.repetition_lost {
                    return again;
                }
            }
            if !sender.linux.sack {
                if news.una_advanced {
                    sender.linux.sacked_out = 0;
                }
                sender.linux.count_duplicates(&sender.queue, duplicates);
            }
            if sender.linux.state <= CaState::Disorder {
                undo::by_reports(sender, now);
            }
            losses::identify(sender, now, news);
            if !is_time_to_recover(sender) {
                try_to_open(sender, now, news.congestion_echoed, journal);
                return again;
            }
            enter_recovery(sender, now, news.congestion_echoed, journal);
            first_repetition = true;
        }
    }
    if !sender.linux.switches.rack && evident {
        losses::count_sacked(sender, first_repetition);
    }
    Again::Lost
}

/// Whether something is known, or by the classic count believed, to be lost (`tcp_time_to_recover`).
fn is_time_to_recover(sender: &Sender) -> bool {
    let linux = &sender.linux;
    linux.lost_out > 0 || !linux.switches.rack && linux.sacked_out + 1 > linux.reordering
}

pub(super) fn enter_recovery(
    sender: &mut Sender,
    now: Instant,
    congestion_echoed: bool,
    journal: &mut Journal,
) {
    let linux = &mut sender.linux;
    linux.forget_first_stamp(&sender.queue);
    linux.prior_ssthresh = 0;
    linux.begin_undo();
    if !linux.is_reducing() {
        if !congestion_echoed {
            sender.linux.prior_ssthresh = current_threshold(sender);
        }
        begin_reduction(sender);
    }
    set(sender, now, CaState::Recovery);
    journal.counters.fast_retransmits += 1;
    journal.tell(Event::FastRetransmit { seq: sender.linux.una });
}

/// The threshold, or three quarters of the window where that is more, outside of a reduction
/// (`tcp_current_ssthresh`).
pub(super) fn current_threshold(sender: &Sender) -> u32 {
    let threshold = sender.window.ssthresh_segments();
    if sender.linux.is_reducing() {
        return threshold;
    }
    let cwnd = sender.window.segments();
    threshold.max((cwnd >> 1) + (cwnd >> 2))
}

pub(super) fn lower_threshold(sender: &mut Sender) {
    let flight = outstanding(&sender.queue).saturating_mul(sender.mss);
    sender.lower_threshold(flight);
}

/// The window is to come down to a new threshold (`tcp_init_cwnd_reduction`).
pub(super) fn begin_reduction(sender: &mut Sender) {
    let linux = &mut sender.linux;
    linux.high_seq = sender.queue.end();
    linux.probe.forget();
    linux.prior_cwnd = sender.window.segments();
    linux.prr = Prr::new(linux.switches.bound, linux.prior_cwnd, 0);
    sender.window.set_counted(0);
    lower_threshold(sender);
    sender.ecn.reduced(sender.queue.end());
}

/// An acknowledgement during a reduction that delivered `delivered` segments and showed `lost` to be lost.
pub(super) fn reduce(sender: &mut Sender, delivered: u32, lost: u64, una_advanced: bool) {
    let inflight = sender.linux.in_flight(&sender.queue);
    let ssthresh = sender.window.ssthresh_segments();
    if sender.is_modeled() {
        return;
    }
    let linux = &mut sender.linux;
    if !linux.switches.prr {
        sender.window.set_segments(ssthresh);
        return;
    }
    let delivery = Delivery { delivered, inflight, ssthresh, quantum: 1, safe: una_advanced && lost == 0 };
    if let Some(cwnd) = linux.prr.on_ack(&delivery) {
        sender.window.set_segments(cwnd);
    }
}

/// The window is at its threshold, unless the reduction was taken back (`tcp_end_cwnd_reduction`).
pub(super) fn end_reduction(sender: &mut Sender, now: Instant) {
    if sender.is_modeled() {
        return;
    }
    let linux = &mut sender.linux;
    let threshold = sender.window.ssthresh_segments();
    if sender.window.ssthresh() != u32::MAX && (linux.state == CaState::Cwr || linux.undo.marker.is_some()) {
        sender.window.set_segments(threshold);
        linux.usage.stamp(now);
    }
    sender.congestion.on_reduction_complete(&mut sender.window);
}

/// The network marked congestion, and nothing of it can be taken back (`tcp_enter_cwr`).
fn enter_cwr(sender: &mut Sender, now: Instant, journal: &mut Journal) {
    sender.linux.prior_ssthresh = 0;
    if sender.linux.state < CaState::Cwr {
        sender.linux.undo.marker = None;
        begin_reduction(sender);
        set(sender, now, CaState::Cwr);
        journal.counters.ecn_reductions += 1;
    }
}

/// Open, or Disorder where something is missing (`tcp_try_keep_open`).
pub(super) fn keep_open(sender: &mut Sender, now: Instant) {
    let linux = &sender.linux;
    let missing = linux.sacked_out + linux.lost_out > 0 || linux.any_repetition(&sender.queue);
    let state = if missing { CaState::Disorder } else { CaState::Open };
    if linux.state != state {
        set(sender, now, state);
        sender.linux.high_seq = sender.queue.end();
    }
}

fn try_to_open(sender: &mut Sender, now: Instant, congestion_echoed: bool, journal: &mut Journal) {
    sender.linux.forget_first_stamp(&sender.queue);
    if congestion_echoed {
        enter_cwr(sender, now, journal);
    }
    if sender.linux.state != CaState::Cwr {
        keep_open(sender, now);
    }
}
