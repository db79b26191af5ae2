//! The choices of a configuration that are one of a few, and their names in scenario files.

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
    /// Vegas' own checks beside Reno's: a fine-grained timer looked at with the first duplicates and after a
    /// retransmission (Brakmo and Peterson 1995; ns-2's `Agent/TCP/Vegas`).
    Vegas,
    /// The sender of Linux 2.0: counts whole segments, and sends nothing new until everything
    /// outstanding at a timeout is acknowledged.
    Linux20,
    /// The sender of today's Linux: a mark a segment, windows in whole segments, losses found by SACK or duplicates,
    /// by RACK and by tail loss probes, spurious recoveries undone.
    Linux,
}

impl Variant {
    /// The congestion control of a variant that is one with it.
    #[must_use]
    pub const fn own_congestion(self) -> Option<CongestionControl> {
        match self {
            Self::Linux20 => Some(CongestionControl::Reno),
            Self::Vegas => Some(CongestionControl::Vegas),
            _ => None,
        }
    }
}

/// How the congestion window grows, and to what a loss shrinks it. With [`Variant::Linux`] in the kernel's edition,
/// else by its RFC or paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CongestionControl {
    /// RFC 5681.
    #[default]
    Reno,
    /// RFC 9438.
    Cubic,
    /// Brakmo and Peterson 1995: by the difference between expected and actual rate.
    Vegas,
    /// Westwood+ (Mascolo et al. 2004): losses shrink it to the estimated bandwidth times the least round trip.
    Westwood,
    /// BBR, version 1, as in Linux.
    Bbr,
    /// BBR, version 3, by draft-ietf-ccwg-bbr.
    Bbr3,
}

/// When slow start ends before a loss. For Reno and CUBIC; the others have a slow start of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HyStart {
    /// It does not.
    #[default]
    Off,
    /// By delay or by the length of a train of acknowledgements, at once (Linux's CUBIC). The kernel's Reno, that is
    /// Reno with [`Variant::Linux`], has none.
    Linux,
    /// By delay, with a phase of conservative slow start to make sure (RFC 9406).
    PlusPlus,
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
    /// RFC 6298, and it follows a sudden fall of the round trip within four round trips, as a handover from a slow to a
    /// fast path makes one; bounds as RFC 6298.
    FastDecrease,
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
    /// The receiver of today's Linux: every segment at once to begin with and after an interruption, then every
    /// second with a delay of 40 ms to 200 ms that follows the spacing of arrivals.
    Linux,
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

/// By how much a proportional rate reduction may catch up when more was lost than the window was to shrink by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReductionBound {
    /// One segment more for each acknowledgement that advances without showing a further loss, else what was
    /// delivered (RFC 9937, Linux).
    #[default]
    BySafeAck,
    /// No more than what was delivered (RFC 6937's PRR-CRB).
    Conservative,
    /// One segment more than what was delivered, with every acknowledgement (RFC 6937's PRR-SSRB).
    SlowStart,
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

/// The release of Linux whose sender [`Variant::Linux`](crate::Variant::Linux) is, where releases differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KernelEdition {
    /// 6.1: a packet in the send queue keeps its size until it is cut. A small last packet with a FIN does not wait for the
    /// congestion window.
    V6_1,
    /// 6.18: a packet takes from the one behind it what may leave with it at once (`tcp_grow_skb`), so that fewer small segments
    /// leave and a window is filled to its last segment. A FIN waits for the congestion window. Both came with 6.10.
    #[default]
    V6_18,
}

impl KernelEdition {
    /// The edition that release `major.minor` sends as.
    #[must_use]
    pub const fn of_release(major: u16, minor: u16) -> Self {
        if major > 6 || major == 6 && minor >= 10 { Self::V6_18 } else { Self::V6_1 }
    }

    /// The edition of a kernel that calls itself `6.1.176-amd64`, also with words around that: `Linux 6.1.176 x86_64`.
    /// `None` where no word begins with two numbers.
    #[must_use]
    pub fn of_kernel(name: &str) -> Option<Self> {
        let digit = |c: char| c.is_ascii_digit();
        let mut parts = name.split_whitespace().find(|word| word.starts_with(digit))?.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
        Some(Self::of_release(major, minor))
    }
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
    /// Vegas as its paper and ns-2 mean it.
    Vegas,
    /// Both directions of a Linux 2.0 host.
    Linux20,
    /// Both directions of a Linux host of today, with its defaults: CUBIC with HyStart, SACK, timestamps, RACK-TLP,
    /// PRR, F-RTO.
    Linux,
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

names!(Variant: Tahoe = "tahoe", Reno = "reno", NewReno = "newreno", Sack = "sack", Vegas = "vegas",
    Linux20 = "linux-2.0", Linux = "linux");
names!(CongestionControl: Reno = "reno", Cubic = "cubic", Vegas = "vegas", Westwood = "westwood", Bbr = "bbr",
    Bbr3 = "bbr3");
names!(HyStart: Off = "off", Linux = "linux", PlusPlus = "hystart++");
names!(RtoEstimator: Rfc6298 = "rfc6298", Linux = "linux", Linux20 = "linux-2.0", Bsd = "bsd",
    FastDecrease = "fast-decrease");
names!(Profile: Tahoe = "tahoe", Reno = "reno", NewReno = "newreno", Sack = "sack", Vegas = "vegas",
    Linux20 = "linux-2.0", Linux = "linux");
names!(PartialAckTimer: Impatient = "impatient", SlowButSteady = "slow-but-steady");
names!(ReductionBound: BySafeAck = "rfc9937", Conservative = "conservative", SlowStart = "slow-start");
names!(KernelEdition: V6_1 = "6.1", V6_18 = "6.18");
names!(IdleRestart: Off = "off", InitialWindow = "initial-window", Decay = "decay");

impl RtoEstimator {
    /// RTO before any measurement.
    #[must_use]
    pub const fn default_initial(self) -> Duration {
        match self {
            Self::Rfc6298 | Self::Linux | Self::FastDecrease => Duration::from_secs(1),
            Self::Linux20 => Duration::from_secs(3),
            Self::Bsd => Duration::from_secs(6),
        }
    }

    /// Least RTO.
    #[must_use]
    pub const fn default_min(self) -> Duration {
        match self {
            Self::Rfc6298 | Self::Bsd | Self::FastDecrease => Duration::from_secs(1),
            Self::Linux | Self::Linux20 => Duration::from_millis(200),
        }
    }

    /// Greatest RTO, back-off included.
    #[must_use]
    pub const fn default_max(self) -> Duration {
        match self {
            Self::Rfc6298 | Self::FastDecrease => Duration::from_secs(60),
            Self::Linux | Self::Linux20 => Duration::from_secs(120),
            Self::Bsd => Duration::from_secs(64),
        }
    }
}
