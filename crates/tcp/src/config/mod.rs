//! What a connection is told when it is made.

mod error;
mod profile;
mod words;

use core::time::Duration;

pub use error::ConfigError;
pub use words::{
    AckCounting, CongestionControl, DelayedAck, HyStart, IdleRestart, InitialWindow, KernelEdition,
    PartialAckTimer, Profile, ReductionBound, RtoEstimator, Variant,
};

/// The least segment size: 40 bytes of options and as many of data do not get in each other's way.
pub const MIN_MSS: u16 = 88;

/// The greatest window that RFC 7323 can express, bytes: 65,535 shifted by 14.
pub const MAX_WINDOW: u32 = 65_535 << 14;

/// Everything about a connection that is chosen before it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Loss detection and repair.
    pub variant: Variant,
    /// Growth and reduction of the congestion window.
    pub congestion: CongestionControl,
    /// An early end of slow start.
    pub hystart: HyStart,
    /// Segments leave evenly, at a rate that follows the window (Linux's `fq`): twice the window a round trip early in
    /// slow start, 1.2 times later. Congestion controls with a model of the path pace in any case.
    pub pacing: bool,
    /// The window shrinks in proportion to what is delivered during a recovery, not at once (RFC 9937).
    pub prr: bool,
    /// How far that may catch up after heavy losses.
    pub reduction_bound: ReductionBound,
    /// Losses are found by time as well (RACK, RFC 8985); needs SACK.
    pub rack: bool,
    /// A probe after two round trips without an acknowledgement, so that the loss of a tail is found without a
    /// timeout (RFC 8985 section 7); needs SACK.
    pub tail_loss_probe: bool,
    /// Timeouts that turn out to be spurious do not repeat everything (F-RTO, RFC 5682).
    pub frto: bool,
    /// Spurious recoveries are found by timestamps and taken back (Eifel, RFC 3522 and RFC 4015).
    pub eifel: bool,
    /// Duplicates are reported as a receiver, and such reports used as a sender (RFC 2883, RFC 3708).
    pub dsack: bool,
    /// Offer explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// An ICMP unreachable message during an outage takes back one back-off (TCP-LCD, RFC 6069).
    pub icmp_unreachable: bool,
    /// How long data may stay unacknowledged before the connection is given up (RFC 5482); `None` leaves it to
    /// [`max_retransmissions`](Self::max_retransmissions).
    pub user_timeout: Option<Duration>,
    /// Estimator of the retransmission timeout.
    pub rto: RtoEstimator,
    /// RTO before the first measurement; `None` is the estimator's own.
    pub rto_initial: Option<Duration>,
    /// Least RTO; `None` is the estimator's own.
    pub rto_min: Option<Duration>,
    /// Greatest RTO, back-off included; `None` is the estimator's own.
    pub rto_max: Option<Duration>,
    /// Low round trips in a row after which [`RtoEstimator::FastDecrease`] follows a fall, at least 1.
    pub rto_evidence: u32,
    /// Granularity G of the clock for [`RtoEstimator::Rfc6298`].
    pub clock_granularity: Duration,
    /// The maximum segment size announced to the peer and the most this end sends, in bytes of data and
    /// TCP options together (RFC 6691): 1460 for an MTU of 1500.
    pub mss: u16,
    /// Bytes of the IP header in front of a segment: 20 over IPv4, 40 over IPv6. What an MTU leaves for a segment depends on it.
    pub ip_header_len: u8,
    /// Receive buffer, bytes: the most the advertised window can be.
    pub receive_window: u32,
    /// Offer window scaling (RFC 7323 section 2). Without it at most 65,535 bytes are advertised.
    pub window_scaling: bool,
    /// Offer timestamps (RFC 7323 section 3).
    pub timestamps: bool,
    /// Offer selective acknowledgements (RFC 2018), that is: send them as a receiver.
    pub sack: bool,
    /// A new segment for each of the first two duplicate acknowledgements (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate acknowledgements of data sent before the last recovery or timeout do not start a fast
    /// retransmit (RFC 6582 section 3.2 step 2, ns-2's `bugfix_`).
    pub careful: bool,
    /// Duplicate acknowledgements that mean a loss.
    pub duplicate_ack_threshold: u8,
    /// NewReno's treatment of the timer.
    pub partial_ack_timer: PartialAckTimer,
    /// NewReno leaves recovery with cwnd = min(ssthresh, FlightSize + SMSS) where this is set, so that no burst
    /// follows, and with ssthresh where not: the two choices of RFC 6582 section 3.2 step 3.
    pub burst_guard: bool,
    /// [`Variant::Sack`] sends the last segment that nothing is known about again, once in a recovery, where
    /// nothing else can be sent: rule 4 of RFC 6675's NextSeg, which earlier SACK senders do not have.
    pub rescue_retransmission: bool,
    /// [`Variant::Linux20`] fast-retransmits for pure duplicate acknowledgements as well. Linux 2.0.3x
    /// means to, but counts as duplicates only segments *with* data (a lost negation), so that its bulk
    /// senders never fast-retransmit; leave it off to get what such hosts did.
    pub linux20_fast_retransmit: bool,
    /// When in-order data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// With [`DelayedAck::Linux`] and SACK: of the duplicate acknowledgements after the first three for a gap only one in up to
    /// a millisecond is sent (Linux's `tcp_comp_sack_nr`).
    pub sack_compression: bool,
    /// With the variant [`Linux`](crate::Variant::Linux): bytes of a send buffer of fixed size, as the kernel counts them (twice what
    /// `SO_SNDBUF` was set to). `None` for one that grows with the window, as it does where nobody sets it.
    pub send_buffer: Option<u32>,
    /// First congestion window.
    pub initial_window: InitialWindow,
    /// First slow start threshold, bytes; `u32::MAX` is no threshold.
    pub initial_ssthresh: u32,
    /// Congestion window above which the sender never goes, bytes; `u32::MAX` is no limit.
    pub max_cwnd: u32,
    /// Growth for each acknowledgement.
    pub ack_counting: AckCounting,
    /// The congestion window grows only while it is used: neither the receiver's window nor a lack of data
    /// holds the sender back (RFC 7661). The classic senders grow without asking.
    pub window_validation: bool,
    /// Segments sent by limited transmit count as FlightSize when the window is halved. RFC 5681 section 3.2
    /// forbids it; RFC 6937's example of RFC 6675 does it.
    pub limited_transmit_counts: bool,
    /// After silence.
    pub idle_restart: IdleRestart,
    /// After timeouts in a row smaller segments are tried, as where a path swallows large ones without a word: RFC 4821 section 7.7, as
    /// far as Linux does it with `tcp_mtu_probing` = 1. The search for larger ones that may follow is not modelled.
    pub mtu_probing: bool,
    /// Which kernel's sender [`Variant::Linux`] is.
    pub kernel: KernelEdition,
    /// With the variant [`Linux`](crate::Variant::Linux): ticks a second of the kernel's timers (`CONFIG_HZ`), whose wheel fires the timer of the
    /// sender late (`calc_wheel_index`). `None` for a timer that fires at its millisecond.
    pub timer_hz: Option<u16>,
    /// Hold small segments while data is unacknowledged (RFC 896).
    pub nagle: bool,
    /// Timeouts in a row without any acknowledgement before the connection is given up (RFC 1122's R2).
    pub max_retransmissions: u32,
    /// How long a closed connection answers late segments (2 MSL).
    pub time_wait: Duration,
}

impl Default for Config {
    /// NewReno with SACK off, RFC 6298, MSS 1460, a 64 KiB buffer, delayed acknowledgements.
    fn default() -> Self {
        Self {
            variant: Variant::NewReno,
            congestion: CongestionControl::Reno,
            hystart: HyStart::Off,
            pacing: false,
            prr: false,
            reduction_bound: ReductionBound::BySafeAck,
            rack: false,
            tail_loss_probe: false,
            frto: false,
            eifel: false,
            dsack: false,
            ecn: false,
            icmp_unreachable: false,
            user_timeout: None,
            rto: RtoEstimator::Rfc6298,
            rto_initial: None,
            rto_min: None,
            rto_max: None,
            rto_evidence: 4,
            clock_granularity: Duration::from_millis(1),
            mss: 1460,
            ip_header_len: 20,
            receive_window: 65_535,
            window_scaling: false,
            timestamps: false,
            sack: false,
            limited_transmit: false,
            careful: true,
            duplicate_ack_threshold: 3,
            partial_ack_timer: PartialAckTimer::Impatient,
            burst_guard: true,
            rescue_retransmission: true,
            linux20_fast_retransmit: false,
            delayed_ack: DelayedAck::RFC1122,
            sack_compression: false,
            send_buffer: None,
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: u32::MAX,
            max_cwnd: u32::MAX,
            ack_counting: AckCounting::PerAck,
            window_validation: true,
            mtu_probing: false,
            limited_transmit_counts: false,
            idle_restart: IdleRestart::InitialWindow,
            kernel: KernelEdition::default(),
            timer_hz: None,
            nagle: true,
            max_retransmissions: 15,
            time_wait: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// RTO before any measurement, as configured or the estimator's own.
    #[must_use]
    pub fn effective_rto_initial(&self) -> Duration {
        self.rto_initial.unwrap_or(self.rto.default_initial())
    }

    /// Least RTO, as configured or the estimator's own.
    #[must_use]
    pub fn effective_rto_min(&self) -> Duration {
        self.rto_min.unwrap_or(self.rto.default_min())
    }

    /// Greatest RTO, as configured or the estimator's own.
    #[must_use]
    pub fn effective_rto_max(&self) -> Duration {
        self.rto_max.unwrap_or(self.rto.default_max())
    }

    /// Whether this configuration can work.
    ///
    /// # Errors
    /// The first contradiction found, with the value and what would be right.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.mss < MIN_MSS {
            return Err(ConfigError::MssTooSmall { found: self.mss });
        }
        if self.receive_window == 0 {
            return Err(ConfigError::NoReceiveWindow);
        }
        let most = if self.window_scaling { MAX_WINDOW } else { 65_535 };
        if self.receive_window > most {
            return Err(ConfigError::ReceiveWindowTooLarge {
                found: self.receive_window,
                scaling: self.window_scaling,
            });
        }
        if self.variant == Variant::Sack && !self.sack {
            return Err(ConfigError::SackNotOffered);
        }
        if self.variant.own_congestion().is_some_and(|own| own != self.congestion) {
            return Err(ConfigError::OwnCongestionControl { variant: self.variant, found: self.congestion });
        }
        self.check_switches()?;
        if let DelayedAck::Every2 { timeout } = self.delayed_ack
            && (timeout.is_zero() || timeout > Duration::from_millis(500))
        {
            return Err(ConfigError::DelayedAckTimeout { found: timeout });
        }
        if self.duplicate_ack_threshold == 0 {
            return Err(ConfigError::NoDuplicateThreshold);
        }
        let (min, max) = (self.effective_rto_min(), self.effective_rto_max());
        if min.is_zero() || min > max {
            return Err(ConfigError::RtoBounds { min, max });
        }
        if self.effective_rto_initial().is_zero() {
            return Err(ConfigError::RtoInitial);
        }
        if self.initial_window == InitialWindow::Segments(0) {
            return Err(ConfigError::NoInitialWindow);
        }
        for (field, found) in [("initial_ssthresh", self.initial_ssthresh), ("max_cwnd", self.max_cwnd)] {
            if found < u32::from(self.mss) {
                return Err(ConfigError::BelowOneSegment { field, found, mss: self.mss });
            }
        }
        Ok(())
    }
}

impl Config {
    /// Whether every mechanism that is switched on can do something here.
    fn check_switches(&self) -> Result<(), ConfigError> {
        use Variant::{Linux, Linux20, NewReno, Sack, Vegas};
        let variant = self.variant;
        for (field, on, works) in [
            ("prr", self.prr, matches!(variant, NewReno | Sack | Linux)),
            ("rack", self.rack, matches!(variant, Sack | Linux)),
            ("tail_loss_probe", self.tail_loss_probe, matches!(variant, Sack | Linux)),
            ("frto", self.frto, !matches!(variant, Vegas | Linux20)),
            ("eifel", self.eifel, !matches!(variant, Vegas | Linux20)),
            ("ecn", self.ecn, variant != Linux20),
        ] {
            if on && !works {
                return Err(ConfigError::NotWithVariant { field, variant });
            }
        }
        if self.dsack && !self.sack {
            return Err(ConfigError::Needs { field: "dsack", needed: "sack" });
        }
        let spurious_recoveries_are_found = self.timestamps || self.frto || self.dsack;
        if self.eifel && !spurious_recoveries_are_found {
            return Err(ConfigError::Needs { field: "eifel", needed: "timestamps" });
        }
        if self.user_timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(ConfigError::NoUserTimeout);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_and_every_profile_are_consistent() {
        assert_eq!(Config::default().check(), Ok(()));
        for &profile in Profile::ALL {
            assert_eq!(Config::from(profile).check(), Ok(()), "{profile}");
            assert_eq!(Profile::from_name(profile.name()), Some(profile));
        }
    }

    #[test]
    fn a_contradiction_is_named() {
        let check = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(check(|c| c.receive_window = 0), ConfigError::NoReceiveWindow);
        assert_eq!(check(|c| c.mss = 40), ConfigError::MssTooSmall { found: 40 });
        assert_eq!(check(|c| c.variant = Variant::Sack), ConfigError::SackNotOffered);
        assert_eq!(check(|c| c.duplicate_ack_threshold = 0), ConfigError::NoDuplicateThreshold);
        assert!(matches!(
            check(|c| c.rto_min = Some(Duration::from_secs(61))),
            ConfigError::RtoBounds { .. }
        ));
        assert!(matches!(check(|c| c.receive_window = 65_536), ConfigError::ReceiveWindowTooLarge { .. }));
        assert!(matches!(check(|c| c.max_cwnd = 100), ConfigError::BelowOneSegment { .. }));
    }

    #[test]
    fn initial_windows_are_those_of_the_rfcs() {
        for (mss, bytes) in
            [(536, 2144), (1095, 4380), (1096, 3288), (1460, 4380), (2190, 6570), (2191, 4382)]
        {
            assert_eq!(InitialWindow::Rfc5681.bytes(mss), bytes, "mss {mss}");
        }
        for (mss, bytes) in [(536, 5360), (1460, 14_600), (4312, 14_600), (9000, 18_000)] {
            assert_eq!(InitialWindow::Rfc6928.bytes(mss), bytes, "mss {mss}");
        }
    }
}
