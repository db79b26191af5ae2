//! What an acknowledgement says about the recovery under way: whether it was called for, and how far its window has
//! come down.

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::{Ack, Outgoing, Sender};
use crate::config::Variant;
use crate::events::Journal;
use crate::recovery::dsack;
use crate::recovery::eifel_detection::{Acceptable, Cause};
use crate::recovery::eifel_response::{self, Found};
use crate::recovery::frto::{self, Frto, Seen};
use crate::recovery::prr::Delivery;
use crate::snapshot::Phase;
use crate::timestamps;

/// Where the sender stood before an acknowledgement, to tell what that delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Standing {
    una: SeqNumber,
    /// Bytes beyond `una` known to have arrived.
    arrived: u32,
    ever_lost: u32,
}

impl Sender {
    pub(super) fn standing(&self) -> Standing {
        let scoreboard = &self.queue.scoreboard;
        let arrived = if self.variant == Variant::Sack { scoreboard.sacked() } else { self.credited };
        Standing { una: self.queue.una(), arrived, ever_lost: scoreboard.ever_lost() }
    }

    /// The window of a recovery with PRR, after an acknowledgement.
    pub(super) fn reduce_in_proportion(&mut self, before: &Standing) {
        if self.phase != Phase::FastRecovery {
            self.prr = None;
            return;
        }
        let after = self.standing();
        let advanced = after.una.bytes_since(before.una);
        let sacks = self.variant == Variant::Sack;
        let believed =
            if sacks { self.queue.pipe() } else { self.queue.outstanding().saturating_sub(after.arrived) };
        // The first segment is lost, and its retransmission has not left.
        let pending =
            if self.resend_front { self.queue.front().map_or(0, |front| front.seq_len()) } else { 0 };
        let delivery = Delivery {
            // What is acknowledged now and was reported before is not delivered twice.
            delivered: advanced.wrapping_add(after.arrived).wrapping_sub(before.arrived),
            inflight: believed.saturating_sub(pending),
            ssthresh: self.window.ssthresh(),
            quantum: self.mss,
            // Without SACK, an acknowledgement that advances in a recovery shows the next loss.
            safe: sacks && advanced > 0 && after.ever_lost == before.ever_lost,
        };
        if let Some(cwnd) = self.prr.as_mut().and_then(|prr| prr.on_ack(&delivery)) {
            self.window.set(cwnd);
        }
    }

    /// A segment is sent again.
    #[cold]
    pub(super) fn note_retransmission(&mut self, now: Instant, out: &Outgoing) {
        self.eifel.retransmitted(timestamps::clock(now));
        if let Some(repeated) = &mut self.repeated {
            repeated.retransmitted(out.seq.plus(u32::from(out.len)));
        }
    }

    /// An acknowledgement advanced by `acked` bytes, and the sender has taken it.
    pub(super) fn judge_advance(&mut self, ack: &Ack<'_>, acked: u32, journal: &mut Journal) {
        let block = self.duplicate_reported(ack, journal);
        if self.eifel.is_waiting() {
            let acceptable = ack.echo.map(|echo| Acceptable {
                echo,
                carries_dsack: block.is_some(),
                acknowledges_all: self.queue.is_empty(),
            });
            if let Some(cause) = self.eifel.on_acceptable(acceptable) {
                return self.take_back(cause, Found::Early, acked, ack, journal);
            }
        }
        if self.frto != Frto::Off && frto::on_ack(self, Seen::Advance) {
            return self.take_back(Cause::Timeout, Found::Early, acked, ack, journal);
        }
        self.judge_report(block, acked, ack, journal);
    }

    /// An acknowledgement did not advance.
    pub(super) fn judge_duplicate(
        &mut self,
        ack: &Ack<'_>,
        duplicate: bool,
        sacked: u32,
        journal: &mut Journal,
    ) {
        let block = self.duplicate_reported(ack, journal);
        let counts = duplicate || sacked > 0;
        if counts && self.frto != Frto::Off && frto::on_ack(self, Seen::Duplicate { news: sacked > 0 }) {
            return self.take_back(Cause::Timeout, Found::Early, 0, ack, journal);
        }
        self.judge_report(block, 0, ack, journal);
    }

    /// The duplicate that the acknowledgement reports, where such reports are looked at.
    fn duplicate_reported(&mut self, ack: &Ack<'_>, journal: &mut Journal) -> Option<(SeqNumber, SeqNumber)> {
        let blocks = ack.sack.as_slice();
        let block = if self.rules.dsack { dsack::reported(ack.ack, blocks) } else { None };
        if block.is_some() {
            journal.counters.duplicates_reported += 1;
            self.eifel.saw_dsack();
        }
        block
    }

    fn judge_report(
        &mut self,
        block: Option<(SeqNumber, SeqNumber)>,
        acked: u32,
        ack: &Ack<'_>,
        journal: &mut Journal,
    ) {
        let (mss, una) = (self.mss, self.queue.una());
        let cause = block
            .zip(self.repeated.as_mut())
            .and_then(|(block, repeated)| repeated.on_report(block, mss, una));
        if let Some(cause) = cause {
            self.take_back(cause, Found::Late, acked, ack, journal);
        }
    }

    /// A recovery was spurious.
    fn take_back(&mut self, cause: Cause, found: Found, acked: u32, ack: &Ack<'_>, journal: &mut Journal) {
        match cause {
            Cause::Timeout => journal.counters.spurious_timeouts += 1,
            Cause::Duplicates => journal.counters.spurious_fast_retransmits += 1,
        }
        self.frto = Frto::Off;
        self.eifel.stop();
        self.repeated = None;
        if found == Found::Early {
            eifel_response::resume(self);
        }
        if self.rules.eifel {
            eifel_response::respond(self, cause, found, acked, ack.echoes_congestion);
        }
    }
}
