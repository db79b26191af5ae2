//! The estimator of Linux 2.0 (2.0.3x): jiffies of 10 ms.
//!
//! RTO = 5/4 (SRTT + 4 RTTVAR) + (SRTT + 4 RTTVAR) / 2^(cwnd - 1), from 200 ms to 120 s. The last term lets one
//! packet of a small window be late. It is a shift by the window in segments, and on the 32-bit machines of
//! its time a shift counts modulo 32, so a window of 33 segments doubles the RTO like one of a single segment:
//! kept, because who measured such a host measured that as well.

use core::time::Duration;

use careof_base::Instant;

use super::Sample;
use crate::config::Config;
use crate::timer::Ticks;

#[derive(Clone, Debug)]
pub(crate) struct Linux20 {
    /// Jiffies times 8; 0 before the first sample, and after a first sample of less than one jiffy.
    srtt: u64,
    /// Jiffies times 4.
    mdev: u64,
    rto: u64,
    initial: u64,
    backoff: u32,
    /// The RTO before it was doubled first.
    base: u64,
    min: u64,
    max: u64,
}

impl Linux20 {
    pub(crate) fn new(config: &Config) -> Self {
        let initial = Ticks::JIFFIES.count_in(config.effective_rto_initial());
        Self {
            srtt: 0,
            mdev: initial,
            rto: initial,
            initial,
            backoff: 0,
            base: initial,
            min: Ticks::JIFFIES.count_in(config.effective_rto_min()),
            max: Ticks::JIFFIES.count_in(config.effective_rto_max()),
        }
    }

    /// The handshake is not measured.
    pub(crate) fn forget(&mut self) {
        self.srtt = 0;
        self.mdev = self.initial;
        self.rto = self.initial;
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let rtt = Ticks::JIFFIES.at(sample.now).saturating_sub(Ticks::JIFFIES.at(sample.sent_at));
        if self.srtt == 0 {
            self.srtt = rtt << 3;
            self.mdev = rtt << 1;
        } else {
            let rtt = rtt.max(1);
            let average = self.srtt >> 3;
            let error = rtt.abs_diff(average);
            self.srtt = if rtt < average { self.srtt - error } else { self.srtt + error };
            self.mdev = self.mdev + error - (self.mdev >> 2);
        }
        let sum = (self.srtt >> 3) + self.mdev;
        let shift = sample.cwnd_segments.wrapping_sub(1) & 31;
        self.rto = (sum + (sum >> 2) + (sum >> shift)).clamp(self.min, self.max);
        self.backoff = 0;
    }

    pub(crate) fn back_off(&mut self) {
        if self.backoff == 0 {
            self.base = self.rto;
        }
        self.backoff = self.backoff.saturating_add(1);
        self.rto = self.rto.saturating_mul(2).min(self.max);
    }

    pub(crate) fn undo_back_off(&mut self) -> bool {
        let Some(less) = self.backoff.checked_sub(1) else { return false };
        self.backoff = less;
        self.rto = super::doubled(self.base, self.backoff, self.max);
        true
    }

    pub(crate) fn rto(&self) -> Duration {
        Ticks::JIFFIES.span_of(self.rto)
    }

    pub(crate) fn backoff(&self) -> u32 {
        self.backoff
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Ticks::JIFFIES.span_of(self.srtt) / 8)
    }

    pub(crate) fn rttvar(&self) -> Option<Duration> {
        (self.srtt != 0).then(|| Ticks::JIFFIES.span_of(self.mdev) / 4)
    }

    /// When the timer of a segment sent at `sent_at` runs out. Where that is past already, the kernel gives it
    /// two jiffies more.
    pub(crate) fn deadline(&self, sent_at: Instant, now: Instant) -> Instant {
        let present = Ticks::JIFFIES.at(now);
        let expires = Ticks::JIFFIES.at(sent_at).saturating_add(self.rto);
        let expires = if expires < present { present + 2 } else { expires.max(present + 1) };
        Ticks::JIFFIES.start_of(expires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Profile;
    use careof_wire::SeqNumber;

    fn feed(linux: &mut Linux20, millis: u64, cwnd_segments: u32) {
        linux.sample(&Sample {
            sent_at: Instant::ZERO,
            now: Instant::from_millis(millis),
            snd_una: SeqNumber(0),
            snd_nxt: SeqNumber(0),
            expected: 1,
            cwnd_segments,
        });
    }

    #[test]
    fn a_short_path_rests_on_the_floor_of_200_ms() {
        let mut linux = Linux20::new(&Profile::Linux20.into());
        assert_eq!(linux.rto(), Duration::from_secs(3));
        for _ in 0..20 {
            feed(&mut linux, 20, 12);
        }
        assert_eq!(linux.rto(), Duration::from_millis(200));
    }

    #[test]
    fn the_first_sample_makes_five_quarters_of_three_round_trips() {
        let mut linux = Linux20::new(&Profile::Linux20.into());
        feed(&mut linux, 1_600, 12);
        // 160 + 320 = 480 jiffies, and a quarter more.
        assert_eq!(linux.rto(), Duration::from_millis(6_000));
    }

    #[test]
    fn the_window_term_comes_back_every_32_segments() {
        let rto = |cwnd| {
            let mut linux = Linux20::new(&Profile::Linux20.into());
            feed(&mut linux, 1_000, cwnd);
            linux.rto()
        };
        assert_eq!(rto(1), Duration::from_millis(6_750));
        assert_eq!(rto(12), Duration::from_millis(3_750));
        assert_eq!(rto(33), rto(1));
    }

    #[test]
    fn an_overdue_segment_gets_two_jiffies() {
        let linux = Linux20::new(&Profile::Linux20.into());
        let now = Instant::from_millis(10_004);
        assert_eq!(linux.deadline(Instant::ZERO, now), Instant::from_millis(10_020));
        assert_eq!(linux.deadline(now, now), Instant::from_millis(13_000));
    }
}
