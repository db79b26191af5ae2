//! The Eifel detection algorithm (RFC 3522, 2003): the timestamp that the first acceptable acknowledgement of a
//! recovery echoes tells whether the original or its repetition has arrived.
//!
//! What to do about a spurious recovery is for the response (`eifel_response.rs`). Left out: nothing. The clock
//! of timestamps ticks in milliseconds, so an original that overtakes its repetition by less is not seen.

/// What the sender found out about its last recovery (the RFC's `SpuriousRecovery`, without the count of
/// duplicates).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The timer ran out (`SPUR_TO`).
    Timeout,
    /// Duplicate acknowledgements.
    Duplicates,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EifelDetection {
    waiting: Option<Waiting>,
    /// A D-SACK block was received at some time.
    dsack_seen: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    cause: Cause,
    /// `RetransmitTS`, once the retransmission has left.
    retransmit_ts: Option<u32>,
}

/// An acknowledgement as the algorithm looks at it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acceptable {
    /// `TSecr`.
    pub(crate) echo: u32,
    pub(crate) carries_dsack: bool,
    /// It acknowledges everything outstanding.
    pub(crate) acknowledges_all: bool,
}

impl EifelDetection {
    /// Step 1: a loss recovery begins. A second timeout before any acceptable acknowledgement does not begin one
    /// anew.
    pub(crate) fn begin(&mut self, cause: Cause) {
        if self.waiting.is_none() {
            self.waiting = Some(Waiting { cause, retransmit_ts: None });
        }
    }

    /// Step 2: a retransmission leaves with this `TSval`; the first one counts.
    pub(crate) fn retransmitted(&mut self, value: u32) {
        if let Some(waiting) = &mut self.waiting {
            waiting.retransmit_ts.get_or_insert(value);
        }
    }

    /// A D-SACK block was received.
    pub(crate) fn saw_dsack(&mut self) {
        self.dsack_seen = true;
    }

    /// Whether an acceptable acknowledgement is awaited.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Steps 3 to 6: the first acceptable acknowledgement; `None` is one without timestamps. Returns what began
    /// the recovery if that was spurious.
    pub(crate) fn on_acceptable(&mut self, ack: Option<Acceptable>) -> Option<Cause> {
        let Waiting { cause, retransmit_ts } = self.waiting.take()?;
        let (ack, retransmit_ts) = (ack?, retransmit_ts?);
        let earlier = (ack.echo.wrapping_sub(retransmit_ts) as i32) < 0;
        // Step 5: everything acknowledged at once is also what a lost acknowledgement looks like, unless the
        // receiver is known to tell of duplicates.
        let credible = !ack.carries_dsack && (self.dsack_seen || !ack.acknowledges_all);
        (earlier && credible).then_some(cause)
    }

    /// The recovery was judged otherwise.
    pub(crate) fn stop(&mut self) {
        self.waiting = None;
    }
}
