//! Explicit congestion notification (RFC 3168, 2001, section 6.1): negotiated by the SYNs, a mark on a packet instead
//! of its loss, echoed until the sender tells that it has slowed down.
//!
//! New data leaves ECN-capable; SYNs, pure acknowledgements, window probes and retransmissions do not. A mark is answered
//! like a lost segment, once in a window of data, without repeating anything. Left out: waiting for the
//! retransmission timer where the window is one segment already (section 6.1.2); a second SYN without ECN for paths that
//! drop such SYNs (section 6.1.1.1); the nonce (RFC 3540, historic); the milder answer of RFC 8511.

use careof_wire::{Flags, Segment, SeqNumber};

use crate::config::Variant;
use crate::events::Journal;
use crate::sender::Sender;
use crate::snapshot::Phase;

/// What both halves of a connection know.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Negotiation {
    /// Both ends take part.
    pub(crate) on: bool,
}

impl Negotiation {
    /// Flags of the first SYN.
    pub(crate) const OFFER: Flags = Flags::ECE.with(Flags::CWR);
    /// Flag of its answer.
    pub(crate) const ACCEPTANCE: Flags = Flags::ECE;

    /// The peer's SYN or SYN-ACK arrived, and this end offers or accepts.
    pub(crate) fn begin(&mut self, offered: bool, segment: &Segment) {
        let (ece, cwr) = (segment.flags.contains(Flags::ECE), segment.flags.contains(Flags::CWR));
        // Whoever reflects both bits does not know what they mean.
        let wanted = if segment.flags.contains(Flags::ACK) { ece && !cwr } else { ece && cwr };
        self.on = offered && wanted;
    }
}

/// The receiving half: marks seen and not yet answered.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Echo {
    echoing: bool,
}

impl Echo {
    /// Data arrived. Returns whether it brought a mark that is news.
    pub(crate) fn on_data(&mut self, flags: Flags, marked: bool) -> bool {
        if flags.contains(Flags::CWR) {
            self.echoing = false;
        }
        let news = marked && !self.echoing;
        self.echoing |= marked;
        news
    }

    /// Whether acknowledgements carry ECE.
    pub(crate) fn is_due(self) -> bool {
        self.echoing
    }
}

/// The sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reaction {
    /// The window was reduced, and the peer has not been told.
    cwr_due: bool,
    /// The window was reduced when everything before this had been sent.
    reduced_at: Option<SeqNumber>,
}

impl Reaction {
    /// The window was reduced, for whatever reason, when `end` was the end of what had been sent.
    pub(crate) fn reduced(&mut self, end: SeqNumber) {
        self.cwr_due = true;
        self.reduced_at = Some(end);
    }

    /// New data leaves: whether it carries CWR.
    pub(crate) fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr_due)
    }
}

/// An acknowledgement with ECE was taken; `before` is the window before it. Once a window of data the window is
/// reduced as for a loss; it never grows by such an acknowledgement.
pub(crate) fn on_echo(sender: &mut Sender, before: u32, journal: &mut Journal) {
    if sender.variant == Variant::Linux20 || sender.phase == Phase::FastRecovery {
        return;
    }
    let una = sender.queue.una();
    // Something sent after the reduction must have arrived, with it CWR, before an echo is of new congestion.
    let answered = sender.ecn.reduced_at.is_some_and(|end| una.is_at_or_before(end));
    if answered || sender.phase == Phase::Loss {
        if sender.window.cwnd() > before {
            sender.window.set(before);
        }
        return;
    }
    sender.lower_threshold(sender.flight_to_halve());
    sender.window.set(sender.window.ssthresh());
    sender.ecn.reduced(sender.queue.end());
    journal.counters.ecn_reductions += 1;
}
