//! Proportional rate reduction (RFC 9937, 2025; the two fixed bounds of its predecessor RFC 6937, 2013, can be
//! chosen): how much may leave for each acknowledgement of a recovery, so that the flight has come down to
//! ssthresh when the recovery ends, without a silence before and a burst after.
//!
//! Amounts are in whatever unit the sender counts its window in, bytes or whole segments; `quantum` is one segment
//! in that unit. The reduction is bounded in one of three ways once the flight is below ssthresh
//! ([`Bound`]). Left out: nothing of the algorithm; that RFC 9937 wants PRR also for reductions by ECN is for the
//! sender to decide.

use crate::config::ReductionBound as Bound;

/// The state of one recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prr {
    bound: Bound,
    /// RecoverFS: what was in flight when the recovery began.
    recover_fs: u32,
    /// Delivered since.
    delivered: u32,
    /// Sent since, retransmissions included.
    out: u32,
}

/// What an acknowledgement said during a recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivery {
    /// Newly delivered, cumulatively or selectively.
    pub(crate) delivered: u32,
    /// Believed to be on its way after this acknowledgement.
    pub(crate) inflight: u32,
    pub(crate) ssthresh: u32,
    /// One segment.
    pub(crate) quantum: u32,
    /// SND.UNA advanced and no further loss was indicated.
    pub(crate) safe: bool,
}

impl Prr {
    /// A recovery begins. Before the acknowledgement that starts it, `outstanding` was sent and not acknowledged
    /// (SND.NXT - SND.UNA), of which `sacked` was known to have arrived. RFC 6937 does not subtract the latter.
    pub(crate) fn new(bound: Bound, outstanding: u32, sacked: u32) -> Self {
        let recover_fs = match bound {
            Bound::Conservative | Bound::SlowStart => outstanding,
            Bound::BySafeAck => outstanding.saturating_sub(sacked),
        };
        Self { bound, recover_fs: recover_fs.max(1), delivered: 0, out: 0 }
    }

    /// An acknowledgement during the recovery, the one that starts it included, the one that ends it not. Returns
    /// the window until the next one; `None` leaves it as it is, since nothing was delivered.
    pub(crate) fn on_ack(&mut self, ack: &Delivery) -> Option<u32> {
        if ack.delivered == 0 {
            return None;
        }
        self.delivered = self.delivered.saturating_add(ack.delivered);
        let conserved = self.delivered.saturating_sub(self.out);
        let mut sndcnt = if ack.inflight > ack.ssthresh {
            let share = u64::from(self.delivered) * u64::from(ack.ssthresh);
            let target = u32::try_from(share.div_ceil(u64::from(self.recover_fs))).unwrap_or(u32::MAX);
            // Segments leave whole: the RFC's rounding up is to the next one.
            target.checked_next_multiple_of(ack.quantum).unwrap_or(target).saturating_sub(self.out)
        } else {
            let limit = match self.bound {
                Bound::Conservative => conserved,
                Bound::SlowStart => conserved.max(ack.delivered).saturating_add(ack.quantum),
                Bound::BySafeAck => {
                    let more = if ack.safe { ack.quantum } else { 0 };
                    conserved.max(ack.delivered).saturating_add(more)
                }
            };
            limit.min(ack.ssthresh - ack.inflight)
        };
        if sndcnt == 0 && self.out == 0 {
            // The fast retransmit leaves whatever the reduction says.
            sndcnt = ack.quantum;
        }
        Some(ack.inflight.saturating_add(sndcnt))
    }

    /// Something left, new or again.
    pub(crate) fn sent(&mut self, amount: u32) {
        self.out = self.out.saturating_add(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// The example of RFC 6937 section 3.1 in whole segments: 20 in flight, ssthresh 10, limited transmit, the
    /// first `lost` lost, an acknowledgement for each of the others. Gives what is in flight when each
    /// acknowledgement has been taken, and what leaves then: N new, R again.
    fn example(bound: Bound, lost: u32, retransmission_arrives: bool) -> (Vec<u32>, String) {
        let (mut pipe, mut holes, mut prr) = (20, lost, None);
        let (mut pipes, mut sent) = (Vec::new(), String::new());
        for ack in 1..=20 - lost + u32::from(retransmission_arrives) {
            let last = ack > 20 - lost;
            pipe -= 1;
            let count = if ack < 3 {
                1
            } else {
                if ack == 3 {
                    pipe -= lost;
                    prr = Some(Prr::new(bound, 22, 2));
                }
                let state = prr.as_mut().unwrap();
                let delivery =
                    Delivery { delivered: 1, inflight: pipe, ssthresh: 10, quantum: 1, safe: last };
                let cwnd = state.on_ack(&delivery).unwrap();
                state.sent(cwnd - pipe);
                cwnd - pipe
            };
            pipes.push(pipe);
            for _ in 0..count {
                let again = ack >= 3 && holes > 0;
                holes -= u32::from(again);
                sent.push(if again { 'R' } else { 'N' });
            }
            sent.push('.');
            pipe += count;
        }
        (pipes, sent)
    }

    #[test]
    fn fifteen_losses_are_repaired_one_by_one_with_the_conservative_bound() {
        assert_eq!(example(Bound::Conservative, 15, false), ([19, 19, 4, 4, 4].into(), "N.N.R.R.R.".into()));
    }

    #[test]
    fn fifteen_losses_are_repaired_two_by_two_with_the_slow_start_bound() {
        assert_eq!(example(Bound::SlowStart, 15, false), ([19, 19, 4, 5, 6].into(), "N.N.RR.RR.RR.".into()));
    }

    #[test]
    fn an_acknowledgement_that_shows_progress_lets_one_segment_more_leave() {
        let mut prr = Prr::new(Bound::BySafeAck, 22, 2);
        let mut cwnd =
            |inflight, safe| prr.on_ack(&Delivery { delivered: 1, inflight, ssthresh: 10, quantum: 1, safe });
        assert_eq!(cwnd(4, false), Some(5));
        assert_eq!(cwnd(4, true), Some(7));
    }

    #[test]
    fn one_loss_spreads_ten_segments_over_nineteen_acknowledgements() {
        let (pipes, sent) = example(Bound::SlowStart, 1, false);
        assert_eq!(pipes, [19, 19, 18, 18, 17, 17, 16, 16, 15, 15, 14, 14, 13, 12, 12, 11, 11, 10, 9]);
        assert_eq!(sent, "N.N.R..N..N..N..N...N..N...N.");
    }

    #[test]
    fn what_was_sacked_before_does_not_count_so_that_the_flight_ends_at_ssthresh() {
        let (pipes, sent) = example(Bound::BySafeAck, 1, false);
        assert_eq!(pipes.last(), Some(&10));
        assert_eq!(sent.matches(['N', 'R']).count(), 10);
        assert!(!sent.contains("...."), "{sent}");
    }

    #[test]
    fn an_acknowledgement_of_nothing_changes_nothing() {
        let mut prr = Prr::new(Bound::BySafeAck, 20, 0);
        let nothing = Delivery { delivered: 0, inflight: 15, ssthresh: 10, quantum: 1, safe: false };
        assert_eq!(prr.on_ack(&nothing), None);
    }

    #[test]
    fn the_fast_retransmit_leaves_whatever_the_reduction_says() {
        let mut prr = Prr::new(Bound::BySafeAck, 100, 0);
        // Nothing is sent while the flight is at its target, but for the first segment.
        let delivery = Delivery { delivered: 1, inflight: 10, ssthresh: 10, quantum: 1, safe: false };
        assert_eq!(prr.on_ack(&delivery), Some(11));
        prr.sent(1);
        assert_eq!(prr.on_ack(&delivery), Some(10));
    }

    proptest::proptest! {
        /// Section 5: over a recovery, never more leaves than was delivered plus one segment an acknowledgement, and
        /// as long as the flight is above ssthresh the share sent is that of the window that stays.
        #[test]
        fn the_reduction_is_proportional(acks in proptest::collection::vec(1_u32..4, 1..60)) {
            let (flight, ssthresh) = (200, 140);
            let mut prr = Prr::new(Bound::BySafeAck, flight, 0);
            let (mut inflight, mut delivered, mut out) = (flight, 0, 0);
            for ack in acks {
                inflight -= ack.min(inflight);
                delivered += ack;
                let cwnd = prr.on_ack(&Delivery { delivered: ack, inflight, ssthresh, quantum: 1, safe: false }).unwrap();
                if inflight > ssthresh {
                    proptest::prop_assert_eq!(out + cwnd - inflight, (delivered * 7).div_ceil(10));
                } else {
                    proptest::prop_assert!(cwnd <= ssthresh);
                }
                out += cwnd - inflight;
                prr.sent(cwnd - inflight);
                inflight = cwnd;
            }
        }
    }
}
