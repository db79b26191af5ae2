//! What a radio channel is made of, and the constants of IEEE 802.11.

use careof_base::{DataRate, Duration};

use super::times::Times;
use crate::config::{Config, ConfigError, Framing, Loss, QueueConfig};
use crate::medium::MEDIUM_MTU;

/// Bytes around an IP packet in a data frame: a header with three addresses and the check sequence (IEEE 802.11-2012, clauses 8.2.3 and
/// 8.3.2: 24 + 4), LLC and SNAP (RFC 1042: 8).
pub const WIRELESS_OVERHEAD_BYTES: u16 = 36;
/// Bytes of a request to send (clause 8.3.1.2).
pub const RTS_BYTES: u16 = 20;
/// Bytes of a clear to send (clause 8.3.1.3).
pub const CTS_BYTES: u16 = 14;
/// Bytes of an acknowledgement (clause 8.3.1.4).
pub const ACK_BYTES: u16 = 14;
/// Transmissions after which a frame no longer than the threshold, or its request to send, is given up (`dot11ShortRetryLimit`, annex C).
pub const SHORT_RETRY_LIMIT: u32 = 7;
/// Transmissions after which a frame longer than the threshold is given up (`dot11LongRetryLimit`, annex C).
pub const LONG_RETRY_LIMIT: u32 = 4;
/// A threshold that no frame exceeds, so that no request to send is made.
pub const NEVER_RTS: u16 = MEDIUM_MTU + WIRELESS_OVERHEAD_BYTES;

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

const fn kbits<const N: usize>(rates: [u64; N]) -> [DataRate; N] {
    let mut all = [DataRate::ZERO; N];
    let mut n = 0;
    while n < N {
        all[n] = DataRate::from_kilobits_per_second(rates[n]);
        n += 1;
    }
    all
}

/// How bits become a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    /// One bit after another, behind a preamble and a header of the physical layer.
    Serial {
        /// Both of them.
        preamble: Duration,
    },
    /// Orthogonal frequency-division multiplexing: whole symbols, behind a preamble and the symbol that tells their rate. The data begins
    /// with 16 bits of service and ends with 6 tail bits (IEEE 802.11-2012, clause 18.3.5).
    Ofdm {
        /// Preamble and first symbol.
        preamble: Duration,
        /// A symbol.
        symbol: Duration,
        /// Silence that counts as part of the frame (clause 19.3.2.4).
        extension: Duration,
    },
}

/// The constants of a physical layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phy {
    /// `aSlotTime`.
    pub slot: Duration,
    /// `aSIFSTime`: between the frames of one exchange.
    pub sifs: Duration,
    /// `aCCATime`: how long a station listens until it knows that the medium is busy.
    pub cca: Duration,
    /// `aPHY-RX-START-Delay`: from the first bit of a frame until its receiver knows that there is one.
    pub rx_start_delay: Duration,
    /// `aCWmin`: the first back-off is of 0 to so many slots.
    pub cw_min: u32,
    /// `aCWmax`: no back-off is of more.
    pub cw_max: u32,
    /// How bits become a signal.
    pub coding: Coding,
    /// `ACKTxTime`: an acknowledgement at the lowest mandatory rate. Who has heard a damaged frame lets one pass.
    pub lowest_ack: Duration,
    /// The rates there are.
    pub rates: &'static [DataRate],
}

impl Phy {
    /// 802.11b, long preamble: 1, 2, 5.5 and 11 Mbit/s (IEEE 802.11-2012, clause 17: HR/DSSS, table 17-5; its first two rates are those of
    /// DSSS, clause 16).
    pub const HR_DSSS: Self = Self {
        slot: us(20),
        sifs: us(10),
        cca: us(15),
        rx_start_delay: us(192),
        cw_min: 31,
        cw_max: 1023,
        // 144 bits of preamble and 48 of header at 1 Mbit/s.
        coding: Coding::Serial { preamble: us(192) },
        // Preamble and header, and 14 bytes at 1 Mbit/s.
        lowest_ack: us(192 + 112),
        rates: &kbits([1_000, 2_000, 5_500, 11_000]),
    };

    /// 802.11b, short preamble: 72 bits at 1 Mbit/s and 48 at 2 Mbit/s (clause 17.2.2.3). No frame at 1 Mbit/s has it.
    pub const HR_DSSS_SHORT: Self = Self {
        rx_start_delay: us(96),
        coding: Coding::Serial { preamble: us(96) },
        rates: &kbits([2_000, 5_500, 11_000]),
        ..Self::HR_DSSS
    };

    /// 802.11g: ERP-OFDM, 6 to 54 Mbit/s, in a cell of such stations alone (clause 19, table 19-8): short slots.
    ///
    /// The standard has the acknowledgement that is let pass after a damaged frame last as long as at the lowest mandatory rate. Where
    /// nobody speaks DSSS that is 6 Mbit/s.
    pub const ERP: Self = Self {
        slot: us(9),
        sifs: us(10),
        cca: us(4),
        rx_start_delay: us(24),
        cw_min: 15,
        cw_max: 1023,
        coding: Coding::Ofdm { preamble: us(20), symbol: us(4), extension: us(6) },
        // 134 bits are six symbols at 6 Mbit/s.
        lowest_ack: us(20 + 6 * 4 + 6),
        rates: &kbits([6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000]),
    };

    /// 802.11g where 802.11b is in the cell as well: slots and the lowest mandatory rate are those of DSSS.
    pub const ERP_LONG_SLOT: Self =
        Self { slot: us(20), cca: us(15), lowest_ack: Self::HR_DSSS.lowest_ack, ..Self::ERP };

    /// The highest of `mandatory` rates that is not above `rate`: an acknowledgement is sent at the highest basic rate not above that of
    /// the frame (clause 9.7.6.5.2), and mandatory rates are basic. That of a lone lower rate is the rate itself.
    fn answer(rate: DataRate, mandatory: &[DataRate]) -> DataRate {
        mandatory.iter().copied().filter(|basic| *basic <= rate).max().unwrap_or(rate)
    }
}

/// What announces an OFDM frame to stations that only hear DSSS (IEEE 802.11-2012, clause 9.23): requests and clearances to send are sent
/// as they would send them. A frame for which no request is made is announced by a clear to send that its sender addresses to itself
/// (clause 9.3.2.11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protection {
    /// Rate of these frames.
    pub rate: DataRate,
    /// Preamble and header of these frames.
    pub preamble: Duration,
}

/// A radio channel of IEEE 802.11, its stations following the distributed coordination function (DCF; IEEE 802.11-2012, clause 9.3).
///
/// A station sends when the medium has been idle for DIFS (SIFS and two slots) and its back-off is over: a random number of slots, from 0 to
/// the contention window, of which it counts only those in which the medium is idle. It draws one after each frame of its own, and when
/// it finds the medium busy. Stations that begin before they can hear each other collide. A frame is acknowledged a SIFS after its end; where no
/// acknowledgement comes the window doubles, from [`Phy::cw_min`] up to [`Phy::cw_max`], and the frame is sent again, until it is
/// given up with [`DropCause::RetryLimit`](crate::DropCause::RetryLimit). Frames longer than
/// [`DcfConfig::rts_threshold`] are preceded by a request and a clear to send. Who hears a frame that is none - two that have collided,
/// or a damaged one - waits for EIFS in place of DIFS.
///
/// All of a channel's stations hear each other: there are no hidden ones. They are all as far from each other, and all count the idle time
/// from when the end of a frame has been heard.
///
/// # What is simplified
/// - Of frames that collide none is received, however much stronger it is (no capture).
/// - Damage befalls data frames; requests, clearances and acknowledgements are as robust as their low rates make them, and arrive.
///   A damaged frame is damaged for all who hear it. No packet therefore arrives twice.
/// - All stations send at one rate, and change it for nobody. A station that is far away is not slower.
/// - No beacons, probes or associations are on the air, no fragments, no power saving; priorities (EDCA) neither.
/// - A station that goes in the middle of an exchange in which it has begun to acknowledge has received the frame.
///
/// The default is 802.11b at 11 Mbit/s without requests to send, with room for 100 packets at each station.
#[derive(Clone, Debug, PartialEq)]
pub struct DcfConfig {
    /// The physical layer.
    pub phy: Phy,
    /// Of data frames; one of [`Phy::rates`].
    pub rate: DataRate,
    /// Of acknowledgements, requests and clearances to send; one of [`Phy::rates`].
    pub control_rate: DataRate,
    /// Frames of more bytes, with [`WIRELESS_OVERHEAD_BYTES`], are preceded by a request to send (`dot11RTSThreshold`).
    pub rts_threshold: u16,
    /// What announces frames to stations of an older kind.
    pub protection: Option<Protection>,
    /// Transmissions of a frame not longer than the threshold, or of a request to send, after which it is given up; above 0.
    pub short_retry_limit: u32,
    /// Transmissions of a longer frame after which it is given up; above 0.
    pub long_retry_limit: u32,
    /// Which data frames that did not collide are damaged on the air, repetitions included.
    pub loss: Loss,
    /// Propagation from any station to any other, one way.
    pub delay: Duration,
    /// What waits at each station. The frame that a station is about to send, or sends, is not in its queue.
    pub queue: QueueConfig,
}

impl Default for DcfConfig {
    fn default() -> Self {
        Self::b(DataRate::from_megabits_per_second(11))
    }
}

impl DcfConfig {
    /// 802.11b with long preambles, data at `rate`, and acknowledgements at the higher of 1 and 2 Mbit/s that is not above it.
    #[must_use]
    pub fn b(rate: DataRate) -> Self {
        Self::of(Phy::HR_DSSS, rate, &[1, 2])
    }

    /// 802.11b with short preambles, data at `rate`, and acknowledgements at 2 Mbit/s.
    #[must_use]
    pub fn b_short(rate: DataRate) -> Self {
        Self::of(Phy::HR_DSSS_SHORT, rate, &[2])
    }

    /// 802.11g in a cell without 802.11b, data at `rate`, and acknowledgements at the highest mandatory rate of OFDM that is not above it.
    #[must_use]
    pub fn g(rate: DataRate) -> Self {
        Self::of(Phy::ERP, rate, &[6, 12, 24])
    }

    /// 802.11g in a cell with 802.11b: long slots, and every frame announced by a clear to send to oneself, or a request, at 2 Mbit/s with
    /// long preamble.
    #[must_use]
    pub fn g_protected(rate: DataRate) -> Self {
        let protection =
            Protection { rate: DataRate::from_megabits_per_second(2), preamble: Phy::HR_DSSS.rx_start_delay };
        Self { protection: Some(protection), ..Self::of(Phy::ERP_LONG_SLOT, rate, &[6, 12, 24]) }
    }

    /// With `phy` and data at `rate`; acknowledgements at the highest of `mandatory` Mbit/s that is not above it.
    fn of<const N: usize>(phy: Phy, rate: DataRate, mandatory: &[u64; N]) -> Self {
        Self {
            phy,
            rate,
            control_rate: Phy::answer(rate, &mandatory.map(DataRate::from_megabits_per_second)),
            rts_threshold: NEVER_RTS,
            protection: None,
            short_retry_limit: SHORT_RETRY_LIMIT,
            long_retry_limit: LONG_RETRY_LIMIT,
            loss: Loss::None,
            delay: us(1),
            queue: QueueConfig::default(),
        }
    }

    /// Checks that every law named can be kept.
    ///
    /// # Errors
    /// The first [`ConfigError`] found, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !(1..=self.phy.cw_max).contains(&self.phy.cw_min) {
            return Err(ConfigError::ContentionWindow { min: self.phy.cw_min, max: self.phy.cw_max });
        }
        for rate in [self.rate, self.control_rate] {
            if !self.phy.rates.contains(&rate) {
                return Err(ConfigError::WirelessRate { found: rate });
            }
        }
        if self.short_retry_limit == 0 || self.long_retry_limit == 0 {
            return Err(ConfigError::NoTransmission);
        }
        // A frame is to be noticed within the slot it begins in.
        let most = self.phy.slot.saturating_sub(self.phy.cca);
        if self.delay >= most {
            return Err(ConfigError::WirelessDelay { found: self.delay, below: most });
        }
        self.queue.check()
    }

    /// A link that has such a queue before it, and takes as long for a packet in the mean: that of a lone station that always has
    /// something to send. What the exchange adds to the bits of the packet stands in the framing.
    #[must_use]
    pub fn as_link(&self) -> Config {
        let times = Times::of(self);
        let mean_back_off = u64::from(self.phy.cw_min).saturating_mul(times.slot) / 2;
        // Bytes that the rate carries in the time that is not the packet's. How the last symbol is filled makes no difference then.
        let size = MEDIUM_MTU;
        let exchange = times.exchange(size).end.saturating_add(times.difs).saturating_add(mean_back_off);
        let bytes = self.rate.bits_in(Duration::from_nanos(exchange)).div_ceil(8);
        let overhead = bytes.saturating_sub(u64::from(size));
        Config {
            rate: self.rate,
            delay: self.delay,
            queue: self.queue,
            mtu: MEDIUM_MTU,
            framing: Framing {
                bits_per_byte: 8,
                overhead_bytes: u16::try_from(overhead).unwrap_or(u16::MAX),
            },
            ..Config::default()
        }
    }
}
