//! Which acknowledgements make a round-trip sample (RFC 6298 section 3, RFC 7323 section 4 and appendix G).

use core::time::Duration;

use careof_base::Instant;
use careof_wire::SeqNumber;

use super::Sender;
use crate::events::Journal;
use crate::recovery::eifel_response::Adaptation;
use crate::rto::{Sample, Sampling};
use crate::send_queue::Acknowledged;

impl Sender {
    pub(super) fn take_sample(&mut self, now: Instant, sent_at: Instant, una: SeqNumber, expected: u32) {
        let sample = Sample {
            sent_at,
            now,
            snd_una: una,
            snd_nxt: self.queue.end(),
            expected,
            cwnd_segments: self.window.segments(),
        };
        match self.adaptation.take_if(|adaptation| una.is_after(adaptation.after)) {
            Some(Adaptation { srtt_prev, rttvar_prev, .. }) => {
                self.estimator.sample_after_spurious_timeout(&sample, (srtt_prev, rttvar_prev));
            }
            None => self.estimator.sample(&sample),
        }
    }

    /// Karn's algorithm: what was sent more than once gives no sample, unless its timestamp tells which copy
    /// is acknowledged.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        ack: SeqNumber,
        echoed_rtt: Option<Duration>,
        done: &Acknowledged,
        flight: u32,
        journal: &mut Journal,
    ) {
        let (sent_at, expected) = match self.estimator.sampling() {
            Sampling::EverySegment => return,
            Sampling::OneAtATime if echoed_rtt.is_none() => {
                let Some((end, sent_at)) = self.timed else { return };
                if ack.is_before(end) {
                    return;
                }
                self.timed = None;
                (sent_at, 1)
            }
            _ => {
                let by_record = if done.repeated { None } else { done.sent_at };
                let by_timestamp = echoed_rtt.map(|rtt| now.saturating_sub(rtt));
                let Some(sent_at) = by_record.or(by_timestamp) else { return };
                // RFC 7323 appendix G; without timestamps every acknowledgement is taken at full weight.
                (sent_at, flight.div_ceil(self.mss.saturating_mul(2).max(1)).max(1))
            }
        };
        journal.sampled(now - sent_at);
        self.take_sample(now, sent_at, ack, expected);
    }

    pub(super) fn sample_every_segment(&mut self, now: Instant, ack: SeqNumber, journal: &mut Journal) {
        let mut index = 0;
        while let Some(&record) = self.queue.record(index) {
            if record.end().is_after(ack) || record.transmissions > 1 {
                break;
            }
            journal.sampled(now - record.sent_at);
            self.take_sample(now, record.sent_at, ack, 1);
            index += 1;
        }
    }

    /// A retransmission makes the measurement under way ambiguous.
    pub(crate) fn stop_timing(&mut self) {
        self.timed = None;
    }
}
