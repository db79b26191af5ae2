//! Tail loss probes (RFC 8985, 2021, section 7): a segment sent after two round trips of silence makes the receiver
//! say what it has, so that the loss of a tail is found without a timeout.
//!
//! The wait is Linux 6.1's: for a lone segment, whose acknowledgement may be held back, the least RTO is added where
//! the RFC adds the longest delay of an acknowledgement; otherwise two milliseconds.

use core::time::Duration;

use careof_wire::SeqNumber;

/// Added to twice the round trip.
const MARGIN: Duration = Duration::from_millis(2);

/// The probe under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TailLossProbe {
    /// Everything before had been sent when the probe was (`TLP.end_seq`).
    end: Option<SeqNumber>,
    /// The probe repeated a segment (`TLP.is_retrans`).
    repeats: bool,
}

/// What an acknowledgement says of the probe under way (section 7.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing yet.
    Pending,
    /// Nothing was lost.
    Superfluous,
    /// The probe repaired a loss.
    Repaired,
}

/// An acknowledgement during a probe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) ack: SeqNumber,
    /// It reports by D-SACK that the probe came twice.
    pub(crate) reports_probe: bool,
    /// It is a duplicate that reports nothing.
    pub(crate) bare_duplicate: bool,
}

impl TailLossProbe {
    /// How long to wait for an acknowledgement before a probe (`TLP_calc_PTO`, the RTO not looked at).
    pub(crate) fn wait(
        srtt: Option<Duration>,
        lone: bool,
        rto_min: Duration,
        rto_initial: Duration,
    ) -> Duration {
        match srtt {
            Some(srtt) => srtt * 2 + if lone { rto_min } else { MARGIN },
            None => rto_initial,
        }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the probe under way repeats a segment.
    pub(crate) fn repeats(&self) -> bool {
        self.end.is_some() && self.repeats
    }

    /// Whether the probe under way ends at `seq`.
    pub(crate) fn ends_at(&self, seq: SeqNumber) -> bool {
        self.end == Some(seq)
    }

    /// A probe left; everything before `end` has been sent now.
    pub(crate) fn sent(&mut self, end: SeqNumber, repeats: bool) {
        *self = Self { end: Some(end), repeats };
    }

    pub(crate) fn forget(&mut self) {
        self.end = None;
    }

    /// Takes an acknowledgement; a verdict ends the probe.
    pub(crate) fn on_ack(&mut self, answer: Answer) -> Verdict {
        let Some(end) = self.end else { return Verdict::Pending };
        if answer.ack.is_before(end) {
            return Verdict::Pending;
        }
        let verdict = if !self.repeats || answer.reports_probe {
            Verdict::Superfluous
        } else if answer.ack.is_after(end) {
            Verdict::Repaired
        } else if answer.bare_duplicate {
            Verdict::Superfluous
        } else {
            return Verdict::Pending;
        };
        self.end = None;
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(repeats: bool, ack: u32, reports_probe: bool, bare_duplicate: bool) -> Verdict {
        let mut probe = TailLossProbe::default();
        probe.sent(SeqNumber(5_000), repeats);
        probe.on_ack(Answer { ack: SeqNumber(ack), reports_probe, bare_duplicate })
    }

    #[test]
    fn the_probe_waits_two_round_trips_and_longer_for_a_lone_segment() {
        let [ms, min, init] = [50, 200, 1_000].map(Duration::from_millis);
        assert_eq!(TailLossProbe::wait(Some(ms), false, min, init), Duration::from_millis(102));
        assert_eq!(TailLossProbe::wait(Some(ms), true, min, init), Duration::from_millis(300));
        assert_eq!(TailLossProbe::wait(None, false, min, init), init);
    }

    #[test]
    fn a_probe_of_new_data_proves_nothing_lost() {
        assert_eq!(verdict(false, 4_999, false, true), Verdict::Pending);
        assert_eq!(verdict(false, 5_000, false, false), Verdict::Superfluous);
    }

    #[test]
    fn a_repeated_segment_that_was_needed_is_told_by_progress_without_a_report() {
        assert_eq!(verdict(true, 5_000, false, false), Verdict::Pending);
        assert_eq!(verdict(true, 5_000, true, false), Verdict::Superfluous);
        assert_eq!(verdict(true, 5_000, false, true), Verdict::Superfluous);
        assert_eq!(verdict(true, 6_000, true, false), Verdict::Superfluous);
        assert_eq!(verdict(true, 6_000, false, false), Verdict::Repaired);
    }
}
