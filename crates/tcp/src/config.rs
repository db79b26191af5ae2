//! What a connection is told when it is made.

use core::fmt;
use core::time::Duration;

/// How the sender finds out about losses and repairs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Fast retransmit, then slow start from the hole (Jacobson 1988).
    Tahoe,
    /// Fast retransmit and fast recovery that ends with the first new acknowledgement (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery that stays until everything sent before the loss is acknowledged (RFC 6582).
    #[default]
    NewReno,
    /// Recovery by selective acknowledgements (RFC 6675); NewReno where the peer does not offer them.
    Sack,
    /// The sender of Linux 2.0: counts whole segments, and sends nothing new until everything
    /// outstanding at a timeout is acknowledged.
    Linux20,
}

/// The estimator of the retransmission timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RtoEstimator {
    /// RFC 6298 to the letter, with its floor of 1 s.
    #[default]
    Rfc6298,
    /// Today's Linux: microseconds, the 200 ms floor acts on the variance, so RTO >= SRTT + 200 ms.
    Linux,
    /// Linux 2.0: jiffies of 10 ms, a term that shrinks as the window grows, 200 ms to 120 s.
    Linux20,
    /// 4.4BSD: a slow timer of 500 ms, scaled integers, 1 s to 64 s.
    Bsd,
}

/// When a receiver acknowledges data that arrived in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DelayedAck {
    /// Every segment at once.
    Off,
    /// Every second segment, whatever its size, or when the timer runs out (RFC 1122 section 4.2.3.2 asks it
    /// of full-sized ones).
    Every2 {
        /// The longest an acknowledgement is held back, at most 500 ms.
        timeout: Duration,
    },
    /// The receiver of Linux 2.0: a delay that follows the spacing of arrivals.
    Linux20,
}

impl DelayedAck {
    /// RFC 1122 with the 200 ms that BSD made customary.
    pub const RFC1122: Self = Self::Every2 { timeout: Duration::from_millis(200) };
}

/// The congestion window a connection begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum InitialWindow {
    /// This many full-sized segments.
    Segments(u32),
    /// Two to four segments by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// Ten segments, within 14,600 bytes (RFC 6928 section 2).
    #[default]
    Rfc6928,
}

impl InitialWindow {
    /// The window in bytes for segments of `mss` bytes.
    #[must_use]
    pub fn bytes(self, mss: u32) -> u32 {
        match self {
            Self::Segments(count) => mss.saturating_mul(count.max(1)),
            Self::Rfc5681 => match mss {
                0..=1095 => 4 * mss,
                1096..=2190 => 3 * mss,
                _ => mss.saturating_mul(2),
            },
            Self::Rfc6928 => mss.saturating_mul(10).min(mss.saturating_mul(2).max(14_600)),
        }
    }
}

/// By how much an acknowledgement of new data opens the window in slow start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AckCounting {
    /// At most one segment for each acknowledgement, as RFC 5681 and every stack before it.
    #[default]
    PerAck,
    /// The bytes acknowledged, at most `limit` segments at a time (appropriate byte counting, RFC 3465).
    Bytes {
        /// RFC 3465's L, in segments: 1 to 2 there, unlimited in today's Linux.
        limit: u32,
    },
}

/// What a partial acknowledgement does to the retransmission timer in NewReno (RFC 6582 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PartialAckTimer {
    /// Only the first restarts it: many losses in one window end in a timeout and slow start.
    #[default]
    Impatient,
    /// Each restarts it: one hole is repaired in each round trip, however many there are.
    SlowButSteady,
}

/// What happens to the congestion window of a sender that was silent for longer than its RTO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IdleRestart {
    /// Nothing.
    Off,
    /// Back to the initial window (RFC 5681 section 4.1).
    #[default]
    InitialWindow,
    /// Halved for each RTO of silence, not below the initial window (RFC 2861, Linux).
    Decay,
}

/// Ready configurations under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Tahoe as the literature means it: no SACK, no timestamps, no limited transmit.
    Tahoe,
    /// Reno, likewise.
    Reno,
    /// NewReno, likewise.
    NewReno,
    /// SACK with limited transmit.
    Sack,
    /// Both directions of a Linux 2.0 host.
    Linux20,
}

macro_rules! names {
    ($type:ty: $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            /// All values, in the order of their definition.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in scenario files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The value called `name`.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names!(Variant: Tahoe = "tahoe", Reno = "reno", NewReno = "newreno", Sack = "sack", Linux20 = "linux-2.0");
names!(RtoEstimator: Rfc6298 = "rfc6298", Linux = "linux", Linux20 = "linux-2.0", Bsd = "bsd");
names!(Profile: Tahoe = "tahoe", Reno = "reno", NewReno = "newreno", Sack = "sack", Linux20 = "linux-2.0");
names!(PartialAckTimer: Impatient = "impatient", SlowButSteady = "slow-but-steady");
names!(IdleRestart: Off = "off", InitialWindow = "initial-window", Decay = "decay");

/// Everything about a connection that is chosen before it opens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Loss detection and repair.
    pub variant: Variant,
    /// Estimator of the retransmission timeout.
    pub rto: RtoEstimator,
    /// RTO before the first measurement; `None` is the estimator's own.
    pub rto_initial: Option<Duration>,
    /// Least RTO; `None` is the estimator's own.
    pub rto_min: Option<Duration>,
    /// Greatest RTO, back-off included; `None` is the estimator's own.
    pub rto_max: Option<Duration>,
    /// Granularity G of the clock for [`RtoEstimator::Rfc6298`].
    pub clock_granularity: Duration,
    /// The maximum segment size announced to the peer and the most this end sends, in bytes of data and
    /// TCP options together (RFC 6691): 1460 for an MTU of 1500.
    pub mss: u16,
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
    /// [`Variant::Linux20`] fast-retransmits for pure duplicate acknowledgements as well. Linux 2.0.3x
    /// means to, but counts as duplicates only segments *with* data (a lost negation), so that its bulk
    /// senders never fast-retransmit; leave it off to get what such hosts did.
    pub linux20_fast_retransmit: bool,
    /// When in-order data is acknowledged.
    pub delayed_ack: DelayedAck,
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
            rto: RtoEstimator::Rfc6298,
            rto_initial: None,
            rto_min: None,
            rto_max: None,
            clock_granularity: Duration::from_millis(1),
            mss: 1460,
            receive_window: 65_535,
            window_scaling: false,
            timestamps: false,
            sack: false,
            limited_transmit: false,
            careful: true,
            duplicate_ack_threshold: 3,
            partial_ack_timer: PartialAckTimer::Impatient,
            burst_guard: true,
            linux20_fast_retransmit: false,
            delayed_ack: DelayedAck::RFC1122,
            initial_window: InitialWindow::Rfc6928,
            initial_ssthresh: u32::MAX,
            max_cwnd: u32::MAX,
            ack_counting: AckCounting::PerAck,
            window_validation: true,
            limited_transmit_counts: false,
            idle_restart: IdleRestart::InitialWindow,
            nagle: true,
            max_retransmissions: 15,
            time_wait: Duration::from_secs(60),
        }
    }
}

impl From<Profile> for Config {
    fn from(profile: Profile) -> Self {
        let classic =
            Self { initial_window: InitialWindow::Rfc5681, window_validation: false, ..Self::default() };
        match profile {
            Profile::Tahoe => Self { variant: Variant::Tahoe, ..classic },
            Profile::Reno => Self { variant: Variant::Reno, ..classic },
            Profile::NewReno => Self { variant: Variant::NewReno, ..classic },
            Profile::Sack => Self { variant: Variant::Sack, sack: true, limited_transmit: true, ..classic },
            Profile::Linux20 => Self {
                variant: Variant::Linux20,
                rto: RtoEstimator::Linux20,
                receive_window: 16_384,
                delayed_ack: DelayedAck::Linux20,
                initial_window: InitialWindow::Segments(1),
                ..classic
            },
        }
    }
}

/// A configuration that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The segment size leaves no room for data beside the options.
    #[error("mss is {found} bytes; it must be at least {MIN_MSS}, so that options leave room for data")]
    MssTooSmall {
        /// What was asked for, bytes.
        found: u16,
    },
    /// No window at all.
    #[error("receive_window is 0; nothing could ever be received")]
    NoReceiveWindow,
    /// More than the window field can say.
    #[error("receive_window is {found} bytes; {}", window_limit(*.scaling))]
    ReceiveWindowTooLarge {
        /// What was asked for, bytes.
        found: u32,
        /// Whether window scaling is on.
        scaling: bool,
    },
    /// The SACK variant without the SACK option.
    #[error("variant is sack but the sack option is off; turn it on")]
    SackNotOffered,
    /// RFC 1122 allows half a second.
    #[error("delayed_ack timeout is {found:?}; RFC 1122 allows more than 0 and at most 500 ms")]
    DelayedAckTimeout {
        /// What was asked for.
        found: Duration,
    },
    /// The duplicate threshold is below 1.
    #[error("duplicate_ack_threshold is 0; it must be at least 1")]
    NoDuplicateThreshold,
    /// The RTO bounds contradict each other.
    #[error("rto_min is {min:?} and rto_max {max:?}; the least must be above 0 and not above the greatest")]
    RtoBounds {
        /// Least RTO in force.
        min: Duration,
        /// Greatest RTO in force.
        max: Duration,
    },
    /// The first RTO is outside of its bounds.
    #[error("rto_initial is 0; it must be above 0")]
    RtoInitial,
    /// No first segment could leave.
    #[error("initial_window is 0 segments; it must be at least 1")]
    NoInitialWindow,
    /// A window that cannot hold one segment.
    #[error("{field} is {found} bytes; it must be at least one segment ({mss} bytes)")]
    BelowOneSegment {
        /// Which field.
        field: &'static str,
        /// What was asked for, bytes.
        found: u32,
        /// The segment size, bytes.
        mss: u16,
    },
}

fn window_limit(scaling: bool) -> &'static str {
    if scaling {
        "with scaling it can be at most 1073725440 (RFC 7323)"
    } else {
        "without window_scaling it can be at most 65535"
    }
}

/// The least segment size: 40 bytes of options and as many of data do not get in each other's way.
pub const MIN_MSS: u16 = 88;

/// The greatest window that RFC 7323 can express, bytes: 65,535 shifted by 14.
pub const MAX_WINDOW: u32 = 65_535 << 14;

impl RtoEstimator {
    /// RTO before any measurement.
    #[must_use]
    pub const fn default_initial(self) -> Duration {
        match self {
            Self::Rfc6298 | Self::Linux => Duration::from_secs(1),
            Self::Linux20 => Duration::from_secs(3),
            Self::Bsd => Duration::from_secs(6),
        }
    }

    /// Least RTO.
    #[must_use]
    pub const fn default_min(self) -> Duration {
        match self {
            Self::Rfc6298 | Self::Bsd => Duration::from_secs(1),
            Self::Linux | Self::Linux20 => Duration::from_millis(200),
        }
    }

    /// Greatest RTO, back-off included.
    #[must_use]
    pub const fn default_max(self) -> Duration {
        match self {
            Self::Rfc6298 => Duration::from_secs(60),
            Self::Linux | Self::Linux20 => Duration::from_secs(120),
            Self::Bsd => Duration::from_secs(64),
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
