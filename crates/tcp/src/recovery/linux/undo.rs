//! Reductions that prove to have been for nothing are taken back: all repetitions were reported as duplicates
//! (D-SACK), or an acknowledgement echoes a timestamp from before the first of them (Eifel, RFC 3522 and 4015) - as
//! Linux 6.1 does it (`tcp_try_undo_*`, `tcp_packet_delayed`).

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::Linux;
use super::states;
use crate::congestion::{CaState, Controller};
use crate::send_queue::{Marks, Record, SendQueue};
use crate::sender::{Ack, Sender};

/// What may be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// `SND.UNA` when the reduction began; `None` where nothing can be taken back.
    pub(super) marker: Option<SeqNumber>,
    /// Repetitions not yet reported as duplicates; `None` before the first.
    pub(super) outstanding: Option<u32>,
    /// Timestamp of the first repetition.
    pub(super) first_stamp: Option<u32>,
}

impl Undo {
    /// `count` segments that end at `end` were reported as duplicates.
    pub(super) fn reported(&mut self, count: u32, end: SeqNumber) {
        if self.marker.is_some_and(|marker| end.is_after(marker))
            && let Some(outstanding) = &mut self.outstanding
        {
            *outstanding = outstanding.saturating_sub(count);
        }
    }
}

fn echoes_before(ack: &Ack<'_>, stamp: u32) -> bool {
    ack.echo.is_some_and(|echo| (echo.wrapping_sub(stamp) as i32) < 0)
}

impl Linux {
    /// A reduction begins (`tcp_init_undo`). What was sent again before may still be reported.
    pub(super) fn begin_undo(&mut self) {
        self.undo.marker = Some(self.una);
        let again = self.retrans_out + u32::from(self.probe.repeats());
        self.undo.outstanding = (again > 0).then_some(again);
    }

    /// A segment that was repeated was acknowledged before the repetition can have arrived.
    pub(super) fn is_spurious(&self, ack: &Ack<'_>, record: &Record) -> bool {
        record.transmissions > 1
            && self.switches.undo_by_timestamps
            && echoes_before(ack, crate::timestamps::clock(record.sent_at))
    }

    /// The acknowledgement was caused by something sent before the first repetition (`tcp_packet_delayed`).
    fn is_delayed(&self, ack: &Ack<'_>) -> bool {
        if !self.switches.undo_by_timestamps {
            return false;
        }
        match self.undo.first_stamp {
            Some(stamp) => echoes_before(ack, stamp),
            // Nothing was sent again, unless it is the end of a recovery without selective acknowledgements.
            None => self.sack || self.una.is_before(self.high_seq),
        }
    }

    fn all_reported(&self) -> bool {
        self.undo.marker.is_some() && self.undo.outstanding == Some(0)
    }

    fn may_undo(&self, ack: &Ack<'_>) -> bool {
        self.undo.marker.is_some() && (self.all_reported() || self.is_delayed(ack))
    }

    /// Whether something sent again may still be on its way.
    pub(super) fn any_repetition(&self, queue: &SendQueue) -> bool {
        self.retrans_out > 0 || queue.front().is_some_and(|head| head.transmissions > 1)
    }

    pub(super) fn forget_first_stamp(&mut self, queue: &SendQueue) {
        if !self.any_repetition(queue) {
            self.undo.first_stamp = None;
        }
    }

    /// Without selective acknowledgements a recovery holds until something beyond it is acknowledged: duplicates
    /// that its repetitions cause would start another (RFC 6582).
    fn stays(&mut self, queue: &SendQueue) -> bool {
        if self.sack || self.una != self.high_seq {
            return false;
        }
        self.forget_first_stamp(queue);
        true
    }
}

/// The window and the threshold go back to what they were (`tcp_undo_cwnd_reduction`).
fn take_back(sender: &mut Sender, now: Instant, unmark: bool) {
    let linux = &mut sender.linux;
    if unmark {
        for index in 0..sender.queue.len() {
            if let Some(record) = sender.queue.record_mut(index) {
                record.marks.clear(Marks::LOST);
            }
        }
        linux.lost_out = 0;
        linux.resend_from = linux.una;
        linux.counted_to = None;
    }
    if linux.prior_ssthresh > 0 {
        let mss = sender.mss.max(1);
        let cwnd = sender.congestion.undo(&sender.window, linux.prior_cwnd.saturating_mul(mss));
        sender.window.set_segments(cwnd / mss);
        if linux.prior_ssthresh > sender.window.ssthresh_segments() {
            sender.window.set_ssthresh_segments(linux.prior_ssthresh);
        }
    }
    linux.usage.stamp(now);
    linux.undo.marker = None;
    linux.rack.advanced = true;
    if linux.prior_ssthresh > 0 {
        sender.with_model(now, Controller::on_model_undo);
    }
}

/// At the end of a recovery. Returns whether the state is to be held (`tcp_try_undo_recovery`).
pub(super) fn at_end(sender: &mut Sender, now: Instant, ack: &Ack<'_>) -> bool {
    if sender.linux.may_undo(ack) {
        take_back(sender, now, false);
    } else {
        sender.linux.rack.recovered();
    }
    if sender.linux.stays(&sender.queue) {
        return true;
    }
    states::set(sender, now, CaState::Open);
    sender.linux.reneged = false;
    false
}

/// All repetitions were for nothing (`tcp_try_undo_dsack`).
pub(super) fn by_reports(sender: &mut Sender, now: Instant) -> bool {
    if !sender.linux.all_reported() {
        return false;
    }
    sender.linux.rack.recovered_in_vain();
    take_back(sender, now, false);
    true
}

/// During the repair of a timeout; `spurious`: F-RTO has found that out (`tcp_try_undo_loss`).
pub(super) fn in_loss(sender: &mut Sender, now: Instant, ack: &Ack<'_>, spurious: bool) -> bool {
    if !spurious && !sender.linux.may_undo(ack) {
        return false;
    }
    take_back(sender, now, true);
    sender.linux.timeouts = 0;
    if sender.linux.stays(&sender.queue) {
        return true;
    }
    if spurious || sender.linux.sack {
        states::set(sender, now, CaState::Open);
        sender.linux.reneged = false;
    }
    true
}

/// What a partial acknowledgement in a recovery turns out to be.
pub(super) enum Partial {
    /// Delayed data, but repetitions are under way: nothing more is to be found lost now.
    Wait,
    /// Delayed data: everything was taken back.
    Undone,
    /// The acknowledgement of a repetition.
    Real,
}

/// After a partial acknowledgement in a recovery; `una_before` was the first unacknowledged sequence number before it
/// (`tcp_try_undo_partial`).
pub(super) fn by_partial_ack(
    sender: &mut Sender,
    now: Instant,
    ack: &Ack<'_>,
    una_before: SeqNumber,
) -> Partial {
    if sender.linux.undo.marker.is_none() || !sender.linux.is_delayed(ack) {
        return Partial::Real;
    }
    sender.linux.check_reordering(una_before, sender.mss);
    if sender.linux.retrans_out > 0 {
        return Partial::Wait;
    }
    sender.linux.forget_first_stamp(&sender.queue);
    take_back(sender, now, true);
    states::keep_open(sender, now);
    Partial::Undone
}
