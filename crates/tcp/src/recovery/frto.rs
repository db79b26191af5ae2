//! F-RTO (RFC 5682, 2009): a timeout is followed by new data instead of a repetition of everything, until the
//! second acknowledgement shows whether anything had been lost. The basic form of section 2 without SACK, the
//! SACK-enhanced form of section 3 with [`Variant::Sack`].
//!
//! What follows a timeout found to be spurious is the Eifel response where that is on (`eifel_response.rs`), as
//! section 5 recommends; without it the conventional reduction stays and only the repetition is saved. `recover`
//! is one past what the RFC stores. Left out: the alternatives of appendix A for a sender that has no new data
//! to send or no window for it; it repairs as if F-RTO were off.

use careof_base::Instant;
use careof_wire::SeqNumber;

use crate::config::Variant;
use crate::sender::{Outgoing, Sender};
use crate::snapshot::Phase;

/// How far the inquiry after a timeout has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Frto {
    /// There is none.
    #[default]
    Off,
    /// Step 2: the first segment was sent again, up to here; its acknowledgement is awaited.
    Retransmitted(SeqNumber),
    /// Step 2b: so many new segments may leave; whether one has.
    Sending { left: u8, sent: bool },
    /// Step 3: the acknowledgement of what was sent before the timeout, or of the new segments, is awaited.
    Probing,
}

/// What an acknowledgement looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// SND.UNA advanced.
    Advance,
    /// It is a duplicate; whether it selectively acknowledged something new.
    Duplicate {
        /// Something was sacked that was not before.
        news: bool,
    },
}

/// Step 1. Before the sender enters the state after a timeout.
pub(crate) fn on_timeout(sender: &mut Sender) {
    let una = sender.queue.una();
    let repairing = match sender.variant {
        // "RecoveryPoint is larger than or equal to SND.UNA" (section 3).
        Variant::Sack => sender.phase != Phase::Open,
        // "Already in RTO recovery" (section 2); a fast recovery with its retransmissions would deceive as well.
        _ => sender.phase != Phase::Open && una.is_before(sender.recover),
    };
    sender.frto = match sender.queue.front() {
        Some(front) if sender.rules.frto && !repairing => Frto::Retransmitted(front.end()),
        _ => Frto::Off,
    };
}

/// Steps 2 and 3, after the acknowledgement was taken. Returns whether the timeout was spurious.
pub(crate) fn on_ack(sender: &mut Sender, seen: Seen) -> bool {
    let una = sender.queue.una();
    match (sender.frto, seen) {
        (Frto::Off | Frto::Sending { .. }, _) => {}
        (Frto::Retransmitted(_), _) if una.is_at_or_after(sender.recover) => sender.frto = Frto::Off,
        (Frto::Retransmitted(end), Seen::Advance) => {
            if sender.variant == Variant::Sack || una.is_at_or_after(end) {
                sender.frto = Frto::Sending { left: 2, sent: false };
            } else {
                sender.frto = Frto::Off;
            }
        }
        // With SACK the scoreboard takes it in and step 2 goes on waiting.
        (Frto::Retransmitted(_), Seen::Duplicate { .. }) if sender.variant == Variant::Sack => {}
        (Frto::Retransmitted(_), Seen::Duplicate { .. }) => sender.frto = Frto::Off,
        (Frto::Probing, _) => {
            sender.frto = Frto::Off;
            if is_spurious(sender, seen) {
                return true;
            }
            // Step 3a: two round trips have passed, in which slow start would have come this far.
            sender.window.set(3 * sender.mss);
            if sender.variant != Variant::Sack {
                sender.queue.set_cursor(0);
            }
        }
    }
    false
}

/// Step 3: whether something arrived that was sent before the timeout and not repeated.
fn is_spurious(sender: &Sender, seen: Seen) -> bool {
    if sender.variant != Variant::Sack {
        return seen == Seen::Advance;
    }
    let beyond = |seq: SeqNumber| seq.is_after(sender.recover);
    let covers_more =
        beyond(sender.queue.una()) || sender.queue.scoreboard.highest_sacked().is_some_and(beyond);
    !covers_more && seen != Seen::Duplicate { news: false }
}

/// Step 2b: new data, before anything is sent again. Where there is none, the repair goes on without it.
pub(crate) fn next(sender: &mut Sender, now: Instant) -> Option<Outgoing> {
    let Frto::Sending { left, sent } = sender.frto else { return None };
    let classic = sender.variant != Variant::Sack;
    if classic {
        sender.queue.set_cursor(sender.queue.len());
    }
    let out = sender.new_segment(now, 0, 0);
    sender.frto = match (&out, sent) {
        (Some(_), _) if left > 1 => Frto::Sending { left: left - 1, sent: true },
        (Some(_), _) | (None, true) => Frto::Probing,
        (None, false) => {
            if classic {
                sender.queue.set_cursor(0);
            }
            Frto::Off
        }
    };
    out
}
