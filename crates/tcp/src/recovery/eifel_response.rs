//! The Eifel response algorithm (RFC 4015, 2005): what a sender does once a timeout is known to have been
//! spurious. It goes on with new data, takes back the reduction, and makes its timer more conservative.
//!
//! The RFC speaks of timeouts; a spurious fast retransmit is answered by the same reversal of the window (step 6)
//! and nothing else. With the estimators other than RFC 6298's the timer is not adapted (step 8 leaves that to
//! them). Left out: the choice of a duplicate threshold after a spurious fast retransmit.

use core::time::Duration;

use careof_wire::SeqNumber;

use crate::config::Variant;
use crate::recovery::eifel_detection::Cause;
use crate::sender::Sender;
use crate::snapshot::Phase;

/// Step 0: what held before the recovery began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Bytes: the greater of FlightSize and ssthresh.
    pipe_prev: u32,
    /// SRTT and RTTVAR, the former with twice the clock's granularity added; `None` before any measurement.
    timing: Option<(Duration, Duration)>,
    /// Everything before had been sent.
    end: SeqNumber,
}

/// What the timer is to be computed from at the first measurement of data first sent after the timeout (step 8).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Adaptation {
    pub(crate) srtt_prev: Duration,
    pub(crate) rttvar_prev: Duration,
    /// Everything before had been sent by then.
    pub(crate) after: SeqNumber,
}

/// Step 0, before the window is reduced: `flight` is FlightSize.
pub(crate) fn remember(sender: &mut Sender, flight: u32) {
    let granularity = sender.rules.clock_granularity;
    sender.before_recovery = Some(Before {
        pipe_prev: flight.max(sender.window.ssthresh()),
        timing: sender
            .estimator
            .srtt()
            .zip(sender.estimator.rttvar())
            .map(|(srtt, rttvar)| (srtt + 2 * granularity, rttvar)),
        end: sender.queue.end(),
    });
}

/// SRTT and RTTVAR of before the recovery are those of another path.
pub(crate) fn forget_timing(sender: &mut Sender) {
    if let Some(before) = &mut sender.before_recovery {
        before.timing = None;
    }
}

/// When a spurious recovery was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// By its first acknowledgements: nothing else was repeated.
    Early,
    /// When everything had been repeated (`LATE_SPUR_TO`).
    Late,
}

/// Steps 5 to 8. `acked` bytes were acknowledged by the present acknowledgement; `echoes_congestion` is its ECE.
pub(crate) fn respond(sender: &mut Sender, cause: Cause, found: Found, acked: u32, echoes_congestion: bool) {
    let Some(before) = sender.before_recovery.take() else { return };
    // Step 6.
    if !echoes_congestion {
        let flight = sender.queue.outstanding();
        let cwnd = flight.saturating_add(acked.min(sender.window.initial()));
        let cwnd = if found == Found::Late { cwnd.max(sender.window.cwnd()) } else { cwnd };
        // CUBIC takes its epoch back with it (RFC 9438 section 4.9); the window is this algorithm's.
        sender.congestion.undo(&sender.window, cwnd);
        sender.window.set(cwnd);
        sender.window.set_ssthresh(before.pipe_prev);
    }
    // Step 8.
    if let (Cause::Timeout, Some((srtt_prev, rttvar_prev))) = (cause, before.timing) {
        sender.adaptation = Some(Adaptation { srtt_prev, rttvar_prev, after: before.end });
    }
}

/// Step 5, which also a sender without the rest of the response takes: nothing more is repeated.
pub(crate) fn resume(sender: &mut Sender) {
    sender.phase = Phase::Open;
    sender.recover = sender.queue.una();
    sender.resend_front = false;
    sender.prr = None;
    if sender.variant == Variant::Sack {
        sender.queue.presume_none_lost();
    } else {
        sender.queue.set_cursor(sender.queue.len());
    }
}
