//! A sender whose peer has moved and has told the rate of its new link (TCP-HO: Wu, Chan and Ananda, "TCP HandOff: A Practical TCP
//! Enhancement for Heterogeneous Mobile Environments", ICC 2007, of which only the abstract was read).
//!
//! The abstract: the server begins to transmit at once and keeps updating ssthresh by the rate and its new RTT samples, until it has four
//! of them or congestion is detected. What it leaves open, and what is done here: what is transmitted at once is what is outstanding,
//! as far as the window goes; the window and the timeout stay as they are; congestion is a timeout or a fast retransmission.

use alloc::boxed::Box;
use core::time::Duration;

use careof_base::{DataRate, Instant};

use super::Sender;
use crate::config::Variant;
use crate::counters::Counters;
use crate::recovery;

/// RTT samples that set the threshold.
const SAMPLES: u8 = 4;

/// The peer has told the rate of its link, and the threshold follows the round trips.
#[derive(Clone, Debug)]
pub(crate) struct HandedOff {
    rate: DataRate,
    /// What left before gives no sample.
    since: Instant,
    /// Samples still to come.
    left: u8,
    /// Timeouts and fast retransmissions by then.
    repairs: u64,
}

/// Timeouts and fast retransmissions so far.
fn repairs(counters: &Counters) -> u64 {
    counters.timeouts + counters.fast_retransmits
}

impl Sender {
    /// The peer has moved to a link of this rate.
    pub(crate) fn hand_off(&mut self, now: Instant, rate: DataRate, counters: &Counters) {
        self.arrive();
        self.repeat_all(now);
        self.pacing.release(now);
        if self.variant == Variant::Linux {
            recovery::linux::repeat_lost(self, now);
        }
        let handed_off = HandedOff { rate, since: now, left: SAMPLES, repairs: repairs(counters) };
        self.handed_off = Some(Box::new(handed_off));
    }

    /// The rate that sets the threshold by the last RTT sample, if that is one of the four.
    pub(crate) fn rate_for_threshold(
        &mut self,
        now: Instant,
        sample: Duration,
        counters: &Counters,
    ) -> Option<DataRate> {
        let handed_off = self.handed_off.as_deref_mut()?;
        if repairs(counters) != handed_off.repairs {
            self.handed_off = None;
            return None;
        }
        if now.saturating_sub(sample) < handed_off.since {
            return None;
        }
        let rate = handed_off.rate;
        handed_off.left -= 1;
        if handed_off.left == 0 {
            self.handed_off = None;
        }
        Some(rate)
    }

    /// The threshold, bytes; at least two segments.
    pub(crate) fn set_threshold(&mut self, now: Instant, ssthresh: u32) {
        let ssthresh = ssthresh.max(self.mss.saturating_mul(2));
        if self.variant == Variant::Linux20 {
            let (cwnd, _) = self.control();
            self.set_control(now, cwnd, ssthresh);
        } else {
            self.window.set_ssthresh(ssthresh);
            if self.variant == Variant::Linux {
                let threshold = self.window.ssthresh_segments();
                self.window.set_ssthresh_segments(threshold);
            }
        }
    }
}
