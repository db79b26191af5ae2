//! What a link is made of, as a scenario states it.

use careof_base::{DataRate, Duration, Instant, Probability};

use crate::trace::Trace;

/// A rate at which sending a packet takes no time at all: the link is delay, loss and nothing else.
///
/// Any other rate, however high, is charged to the nanosecond.
pub const UNLIMITED_RATE: DataRate = DataRate::from_bits_per_second(u64::MAX);

/// The smallest MTU of an IPv4 link, in bytes (RFC 791, section 3.2: every module forwards 68 bytes whole).
pub const MINIMUM_MTU: u16 = 68;

/// One direction of a link. Two of them make a link.
///
/// A packet passes, in this order: MTU check, queue discipline, serialiser (`rate`, `framing`), loss,
/// propagation (`delay`, `jitter`).
///
/// The default is a clean 10 Mbit/s Ethernet of no length with room for 100 packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Rate of the serialiser in bit/s. At zero packets wait until the rate is changed; at [`UNLIMITED_RATE`]
    /// sending takes no time.
    pub rate: DataRate,
    /// One-way propagation delay, counted from the last bit sent to the last bit received. Never charged to
    /// the queue.
    pub delay: Duration,
    /// How single packets deviate from `delay`.
    pub jitter: Jitter,
    /// Which packets are lost after they were sent.
    pub loss: Loss,
    /// What waits for the serialiser, and what does not.
    pub queue: QueueConfig,
    /// Largest IP packet in bytes, without framing. Larger ones are refused, not fragmented.
    pub mtu: u16,
    /// ICMP errors, as far as they are in no tunnel, are dropped on their way into the link, as badly made packet filters
    /// do. A link does not know what a packet is: whoever offers it says so, by [`Link::refuse_filtered`](crate::Link::refuse_filtered).
    pub filters_icmp: bool,
    /// What the link layer adds to each byte and each packet.
    pub framing: Framing,
    /// What the link does by the clock. Of `rate`, `delay` and `loss` what it says comes instead of what they say; they
    /// are for those who ask for one number, see [`Config::following`].
    pub trace: Option<Trace>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            rate: DataRate::from_megabits_per_second(10),
            delay: Duration::ZERO,
            jitter: Jitter::None,
            loss: Loss::None,
            queue: QueueConfig::default(),
            mtu: 1500,
            filters_icmp: false,
            framing: Framing::default(),
            trace: None,
        }
    }
}

/// Deviation of a packet's own delay from [`Config::delay`], drawn anew for each packet.
///
/// Uniform and normal jitter are centred: the mean stays `delay`, and a source's "40 ms ± 7 ms" is written as
/// it stands. Pareto jitter only adds. A packet never arrives before its last bit was sent: a sum below zero
/// counts as zero.
///
/// With `reorder` false a packet that was sent later never arrives earlier: its arrival is put off to that of
/// the packet before it. With `reorder` true each packet arrives in its own time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Jitter {
    /// Every packet takes exactly `delay`.
    #[default]
    None,
    /// Uniformly distributed between `delay - spread` and `delay + spread`; the standard deviation is
    /// `spread` / √3. `spread` may not exceed `delay`.
    Uniform {
        /// Largest deviation, to either side.
        spread: Duration,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// Normally distributed around `delay`.
    Normal {
        /// Standard deviation. Above about a third of `delay`, the cut at zero starts to show.
        deviation: Duration,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
    /// `delay` plus `scale` · (X - 1), where P(X > x) = x^-`shape` for x ≥ 1: the Pareto law of the second
    /// kind (Lomax), zero at its least. The mean of what is added is `scale` / (`shape` - 1).
    Pareto {
        /// Scale of what is added.
        scale: Duration,
        /// Tail index, above 1; at 2 and below the variance is infinite.
        shape: f64,
        /// Whether packets may overtake each other.
        reorder: bool,
    },
}

impl Jitter {
    /// Whether packets may overtake each other.
    #[must_use]
    pub const fn may_reorder(&self) -> bool {
        match *self {
            Self::None => false,
            Self::Uniform { reorder, .. } | Self::Normal { reorder, .. } | Self::Pareto { reorder, .. } => {
                reorder
            }
        }
    }
}

/// Loss on the wire: the packet has taken its place in the queue and its time in the serialiser, and does not
/// arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// Nothing is lost.
    #[default]
    None,
    /// Each packet is lost independently.
    Bernoulli {
        /// Probability of losing a packet.
        p: Probability,
    },
    /// The two-state chain of Gilbert (1960) and Elliott (1963), one step a packet, starting in the good state.
    ///
    /// The share of packets that meet the bad state is π = `good_to_bad` / (`good_to_bad` + `bad_to_good`), a
    /// stay there lasts 1 / `bad_to_good` packets in the mean, and the loss rate is
    /// π · `loss_in_bad` + (1 - π) · `loss_in_good`.
    GilbertElliott {
        /// Probability that the packet after one in the good state meets the bad state.
        good_to_bad: Probability,
        /// Probability that the packet after one in the bad state meets the good state.
        bad_to_good: Probability,
        /// Probability of losing a packet in the good state.
        loss_in_good: Probability,
        /// Probability of losing a packet in the bad state.
        loss_in_bad: Probability,
    },
}

/// The queue before the serialiser. The packet being serialised is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct QueueConfig {
    /// What never fits.
    pub limit: QueueLimit,
    /// What is dropped before that.
    pub discipline: Discipline,
    /// Mark ECN-capable packets where `discipline` would drop them (RFC 3168 section 7). What does not fit is dropped
    /// all the same, and so is what RED would drop at an average queue beyond its thresholds.
    pub ecn: bool,
}

/// The room in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Packets of any size. Zero leaves no place but the serialiser's.
    Packets(u32),
    /// Bytes of IP, without framing.
    Bytes(u64),
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::Packets(100)
    }
}

/// Which packets a queue drops although there would be room.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// None.
    #[default]
    DropTail,
    /// Random early detection, on arrival (Floyd and Jacobson 1993).
    Red(RedConfig),
    /// Controlled delay, at the head of the queue (RFC 8289).
    CoDel {
        /// Acceptable standing delay (RFC 8289 section 4: 5 ms, or 5 % of `interval`).
        target: Duration,
        /// A round trip of most flows (RFC 8289 section 4: 100 ms).
        interval: Duration,
    },
}

impl Discipline {
    /// CoDel with the constants of RFC 8289: a target of 5 ms, an interval of 100 ms.
    pub const CODEL: Self =
        Self::CoDel { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
}

/// Parameters of random early detection, with the names of Floyd and Jacobson, "Random Early Detection
/// Gateways for Congestion Avoidance", IEEE/ACM Transactions on Networking 1(4), 1993.
///
/// The default has that paper's weight and thresholds, and the later advice of its first author: a maximum
/// probability of 0.1 and the gentle slope.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// `minth`: average queue, in packets, below which nothing is dropped.
    pub min_threshold: u32,
    /// `maxth`: average queue, in packets, at which the probability reaches `max_probability`. At least twice
    /// `min_threshold` is advised.
    pub max_threshold: u32,
    /// `maxp`: drop probability just below `max_threshold`, before packets are counted since the last drop.
    pub max_probability: Probability,
    /// `wq`: weight of one packet's sample in the average.
    pub weight: f64,
    /// Between `max_threshold` and twice that, let the probability rise from `max_probability` to 1 instead of
    /// dropping everything at once.
    pub gentle: bool,
    /// Size in bytes of the packets that the average is taken to have missed while the link was idle (their
    /// transmission time is the paper's `s`).
    pub mean_packet_bytes: u16,
}

impl Default for RedConfig {
    fn default() -> Self {
        Self {
            min_threshold: 5,
            max_threshold: 15,
            max_probability: Probability::new(0.1).unwrap_or(Probability::ZERO),
            weight: 0.002,
            gentle: true,
            mean_packet_bytes: 500,
        }
    }
}

/// What the link layer puts around IP bytes. A packet of `n` bytes takes
/// (`n` + `overhead_bytes`) · `bits_per_byte` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Bits on the wire for each byte: 8, or 10 for start and stop bits of an asynchronous line.
    pub bits_per_byte: u8,
    /// Bytes of header and trailer of each packet.
    pub overhead_bytes: u16,
}

impl Framing {
    /// No framing: 8 bits a byte, nothing a packet.
    pub const NONE: Self = Self { bits_per_byte: 8, overhead_bytes: 0 };

    /// Asynchronous PPP in HDLC-like framing (RFC 1662) without escapes: 10 bits a byte; one flag, address,
    /// control, two bytes of protocol and two of check sequence a packet. The flag that ends a frame begins
    /// the next (RFC 1662 section 3.1).
    pub const ASYNC_PPP: Self = Self { bits_per_byte: 10, overhead_bytes: 7 };

    /// Bits on the wire of an IP packet of `bytes`.
    #[must_use]
    pub const fn bits(self, bytes: u32) -> u64 {
        (bytes as u64 + self.overhead_bytes as u64) * self.bits_per_byte as u64
    }
}

impl Default for Framing {
    fn default() -> Self {
        Self::NONE
    }
}

/// Why a [`Config`] describes no link. The text names the value found and what would be right.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Marks asked of a queue that never drops early.
    #[error("ecn is on but the discipline is drop-tail, which has nothing to mark; choose red or codel")]
    NothingToMark,
    /// [`Config::mtu`] is below [`MINIMUM_MTU`].
    #[error("an MTU of {found} bytes is too small; IPv4 needs at least {MINIMUM_MTU}")]
    MtuTooSmall {
        /// The MTU found, in bytes.
        found: u16,
    },
    /// [`Framing::bits_per_byte`] cannot carry a byte, or is no framing known.
    #[error("{found} bits a byte; it must be 8 to 16 (8 plain, 10 with start and stop bits)")]
    BitsPerByte {
        /// The value found.
        found: u8,
    },
    /// Uniform jitter would let packets arrive before they were sent.
    #[error("a uniform jitter of ±{spread:?} is larger than the delay of {delay:?}; raise the delay")]
    JitterExceedsDelay {
        /// [`Jitter::Uniform`]'s spread.
        spread: Duration,
        /// [`Config::delay`].
        delay: Duration,
    },
    /// The Pareto law has no mean.
    #[error("a Pareto shape of {found} has no mean; it must be a number above 1")]
    ParetoShape {
        /// The shape found.
        found: f64,
    },
    /// RED's thresholds are not in order.
    #[error("RED's thresholds are {min} and {max} packets; the first must be below the second")]
    RedThresholds {
        /// [`RedConfig::min_threshold`].
        min: u32,
        /// [`RedConfig::max_threshold`].
        max: u32,
    },
    /// RED could never reach its upper threshold.
    #[error("RED's upper threshold of {max} packets lies beyond the queue's limit of {limit}")]
    RedBeyondLimit {
        /// [`RedConfig::max_threshold`].
        max: u32,
        /// [`QueueLimit::Packets`].
        limit: u32,
    },
    /// RED would never drop.
    #[error("RED's maximum probability is 0; it must be above 0 and at most 1")]
    RedProbability,
    /// RED's average would not follow, or not average.
    #[error("RED's weight of {found} must lie above 0 and be at most 1")]
    RedWeight {
        /// The weight found.
        found: f64,
    },
    /// RED's mean packet has no size.
    #[error("RED's mean packet size is 0 bytes; it must be at least 1")]
    RedPacketSize,
    /// CoDel's constants are not in order.
    #[error("CoDel's target of {target:?} and interval of {interval:?}: 0 < target < interval is needed")]
    CoDelTimes {
        /// [`Discipline::CoDel`]'s target.
        target: Duration,
        /// [`Discipline::CoDel`]'s interval.
        interval: Duration,
    },
    /// A shared medium on which nothing could be sent, or a bit would be too short to be told apart.
    #[error("a shared medium of {found}; it must be above 0 and at most 1 Gbit/s")]
    MediumRate {
        /// [`EthernetConfig::rate`](crate::EthernetConfig::rate).
        found: DataRate,
    },
    /// A shared medium so long that a station would not hear of a collision within its slot.
    #[error(
        "a shared medium of {found:?} from end to end; at its rate {most:?} is the longest on which every collision is heard"
    )]
    MediumDelay {
        /// [`EthernetConfig::delay`](crate::EthernetConfig::delay).
        found: Duration,
        /// [`EthernetConfig::longest_delay`](crate::EthernetConfig::longest_delay).
        most: Duration,
    },
    /// A contention window that does not grow from something.
    #[error("a contention window of {min} to {max} slots; 1 <= CWmin <= CWmax is needed")]
    ContentionWindow {
        /// [`Phy::cw_min`](crate::Phy::cw_min).
        min: u32,
        /// [`Phy::cw_max`](crate::Phy::cw_max).
        max: u32,
    },
    /// A rate that the physical layer does not have.
    #[error("{found} is none of the rates of this physical layer")]
    WirelessRate {
        /// [`DcfConfig::rate`](crate::DcfConfig::rate) or [`DcfConfig::control_rate`](crate::DcfConfig::control_rate).
        found: DataRate,
    },
    /// A retry limit at which nothing is sent at all.
    #[error("a retry limit of 0 sends nothing; it must be at least 1, which is no repetition")]
    NoTransmission,
    /// A channel so wide that a station would not hear of another one within a slot.
    #[error(
        "a radio channel of {found:?} from end to end; it must be below {below:?} for a station to be noticed within a slot"
    )]
    WirelessDelay {
        /// [`DcfConfig::delay`](crate::DcfConfig::delay).
        found: Duration,
        /// A slot without the time of carrier sense.
        below: Duration,
    },
    /// Another kind of medium in place of the one there is.
    #[error("a medium stays of its kind: Ethernet does not become 802.11, nor the other way round")]
    OtherMedium,
}

impl Config {
    /// The same, by `trace`. What the trace says comes instead of `rate`, `delay` and `loss`, which become the trace's mean
    /// rate, its median delay and its mean loss.
    #[must_use]
    pub fn following(mut self, trace: Trace) -> Self {
        self.rate = trace.mean_rate().unwrap_or(self.rate);
        self.delay = trace.median_delay().unwrap_or(self.delay);
        self.loss = match trace.mean_loss() {
            None => self.loss,
            Some(Probability::ZERO) => Loss::None,
            Some(p) => Loss::Bernoulli { p },
        };
        self.trace = Some(trace);
        self
    }

    /// Bits, framing included, that the link can carry between [`Instant::ZERO`] and `until`.
    #[must_use]
    pub fn bits_by(&self, until: Instant) -> u128 {
        let traced = self.trace.as_ref().and_then(|trace| trace.bits_by(until));
        traced.unwrap_or_else(|| u128::from(self.rate.bits_in(until.since_start())))
    }

    /// The rate of the serialiser as far as it is one.
    pub(crate) fn plain_rate(&self) -> DataRate {
        match &self.trace {
            Some(trace) if trace.has_rates() && !trace.carries() => DataRate::ZERO,
            // Which of them does not matter as long as something moves.
            Some(trace) => trace.mean_rate().unwrap_or(self.rate),
            None => self.rate,
        }
    }

    /// The least delay before jitter.
    pub(crate) fn least_delay(&self) -> Duration {
        self.trace.as_ref().and_then(Trace::least_delay).unwrap_or(self.delay)
    }

    /// Checks that every law named can be kept.
    ///
    /// A link made of a configuration that fails this check does not panic, but its laws are not those named.
    ///
    /// # Errors
    /// The first [`ConfigError`] found, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.jitter.check(self.least_delay())?;
        self.queue.check()?;
        if self.mtu < MINIMUM_MTU {
            return Err(ConfigError::MtuTooSmall { found: self.mtu });
        }
        if !(8..=16).contains(&self.framing.bits_per_byte) {
            return Err(ConfigError::BitsPerByte { found: self.framing.bits_per_byte });
        }
        Ok(())
    }
}

impl Jitter {
    fn check(&self, delay: Duration) -> Result<(), ConfigError> {
        match *self {
            Self::Uniform { spread, .. } if spread > delay => {
                Err(ConfigError::JitterExceedsDelay { spread, delay })
            }
            Self::Pareto { shape, .. } if !(shape > 1.0 && shape.is_finite()) => {
                Err(ConfigError::ParetoShape { found: shape })
            }
            _ => Ok(()),
        }
    }
}

impl QueueConfig {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self.discipline {
            Discipline::DropTail if self.ecn => Err(ConfigError::NothingToMark),
            Discipline::DropTail => Ok(()),
            Discipline::CoDel { target, interval } => {
                if target.is_zero() || target >= interval {
                    return Err(ConfigError::CoDelTimes { target, interval });
                }
                Ok(())
            }
            Discipline::Red(red) => red.check(self.limit),
        }
    }
}

impl RedConfig {
    fn check(&self, limit: QueueLimit) -> Result<(), ConfigError> {
        let (min, max) = (self.min_threshold, self.max_threshold);
        if min >= max {
            return Err(ConfigError::RedThresholds { min, max });
        }
        if let QueueLimit::Packets(limit) = limit
            && max > limit
        {
            return Err(ConfigError::RedBeyondLimit { max, limit });
        }
        if self.max_probability == Probability::ZERO {
            return Err(ConfigError::RedProbability);
        }
        if !(self.weight > 0.0 && self.weight <= 1.0) {
            return Err(ConfigError::RedWeight { found: self.weight });
        }
        if self.mean_packet_bytes == 0 {
            return Err(ConfigError::RedPacketSize);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn the_default_is_a_link() {
        assert_eq!(Config::default().check(), Ok(()));
        for discipline in [Discipline::Red(RedConfig::default()), Discipline::CODEL] {
            let queue = QueueConfig { discipline, ..QueueConfig::default() };
            assert_eq!(Config { queue, ..Config::default() }.check(), Ok(()));
        }
    }

    #[test]
    fn every_impossible_value_is_refused_with_its_remedy() {
        let ms = Duration::from_millis;
        let base = Config { delay: ms(5), ..Config::default() };
        let red = |change: fn(&mut RedConfig)| {
            let mut red = RedConfig::default();
            change(&mut red);
            let queue =
                QueueConfig { limit: QueueLimit::Packets(100), discipline: Discipline::Red(red), ecn: false };
            Config { queue, ..Config::default() }
        };
        let codel = |target, interval| Config {
            queue: QueueConfig {
                discipline: Discipline::CoDel { target, interval },
                ..QueueConfig::default()
            },
            ..Config::default()
        };
        let pareto = |shape| Jitter::Pareto { scale: ms(1), shape, reorder: false };
        for (config, text) in [
            (Config { mtu: 67, ..base.clone() }, "at least 68"),
            (
                Config { framing: Framing { bits_per_byte: 0, overhead_bytes: 0 }, ..base.clone() },
                "must be 8 to 16",
            ),
            (
                Config { jitter: Jitter::Uniform { spread: ms(6), reorder: true }, ..base.clone() },
                "raise the delay",
            ),
            (Config { jitter: pareto(1.0), ..base.clone() }, "above 1"),
            (Config { jitter: pareto(f64::NAN), ..base.clone() }, "above 1"),
            (Config { jitter: pareto(f64::INFINITY), ..base }, "above 1"),
            (red(|r| r.min_threshold = 15), "below the second"),
            (red(|r| r.max_threshold = 101), "limit of 100"),
            (red(|r| r.max_probability = Probability::ZERO), "above 0"),
            (red(|r| r.weight = 0.0), "above 0"),
            (red(|r| r.weight = f64::NAN), "above 0"),
            (red(|r| r.mean_packet_bytes = 0), "at least 1"),
            (codel(Duration::ZERO, ms(100)), "0 < target"),
            (codel(ms(100), ms(100)), "target < interval"),
        ] {
            let error = config.check().expect_err(text);
            assert!(error.to_string().contains(text), "{error} lacks {text}");
        }
    }

    #[test]
    fn framing_counts_every_bit_of_an_asynchronous_line() {
        assert_eq!(Framing::NONE.bits(1500), 12_000);
        assert_eq!(Framing::ASYNC_PPP.bits(40), 470);
    }
}
