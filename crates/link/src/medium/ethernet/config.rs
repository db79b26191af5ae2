//! What a cable is made of, and the constants of IEEE 802.3.

use careof_base::{DataRate, Duration};

use crate::config::{Config, ConfigError, Framing, QueueConfig};
use crate::jitter::nanos;
use crate::medium::MEDIUM_MTU;

/// Bits of preamble and start frame delimiter before every frame (IEEE 802.3, clause 3).
pub const PREAMBLE_BITS: u64 = 64;
/// Bytes of addresses, length and check sequence around an IP packet (clause 3).
pub const FRAME_OVERHEAD_BYTES: u16 = 18;
/// The least frame in bytes, without preamble (clause 4.4.2, `minFrameSize`). Shorter ones are padded.
pub const LEAST_FRAME_BYTES: u16 = 64;
/// Bits between two frames (clause 4.4.2, `interFrameGap`).
pub const GAP_BITS: u64 = 96;
/// Bits sent after a collision, so that everybody notices (clause 4.4.2, `jamSize`).
pub const JAM_BITS: u64 = 32;
/// Bit times that back-off counts in (clause 4.4.2, `slotTime`).
pub const SLOT_BITS: u64 = 512;
/// After so many transmissions that collided a frame is given up (clause 4.4.2, `attemptLimit`).
pub const ATTEMPT_LIMIT: u32 = 16;
/// After so many collisions the range of the back-off grows no more (clause 4.4.2, `backoffLimit`).
pub const BACKOFF_LIMIT: u32 = 10;

/// Half-duplex Ethernet: one cable, on which whoever sends is heard by all.
///
/// Stations follow IEEE 802.3, clause 4. One that has a frame sends it when it hears nobody and the gap after what it heard or
/// sent last is over (1-persistent carrier sense). Who hears another while sending completes the preamble, jams, and waits a
/// random number of slots, from a range that doubles with each collision of the frame (truncated binary exponential
/// back-off); a frame that has collided [`ATTEMPT_LIMIT`] times is dropped with
/// [`DropCause::ExcessiveCollisions`](crate::DropCause::ExcessiveCollisions).
///
/// It follows that whoever sent last has the better chance: its next frame has not collided yet and draws from a short range,
/// while the others' ranges have grown. Two stations that always have something to send therefore take turns in long runs
/// (the capture effect), and only the long run is fair.
///
/// Stations that are offered packets at one instant begin to send together, and collide, if the delay is above zero; over no delay the
/// one that was offered its packet first is heard by the other.
///
/// # What is simplified
/// - Every station is as far from every other: a signal reaches all of them [`EthernetConfig::delay`] after it was sent. On a real
///   cable, neighbours hear each other earlier, so that they collide less often than here. What this costs is bounded by
///   the delay, which is a small part of a slot on all but the longest networks.
/// - The standard lets a station listen in the first part of the gap only. Where all are as far from each other that makes
///   no difference: whoever waits for the end of a frame begins at the very instant at which the next frame of the one that
///   sent it is heard, and they collide.
/// - A signal damages others only where both are heard, and collisions are the only damage: no frame is lost to noise.
/// - Bit times are rounded up to a nanosecond for each frame, gap and slot; at 10 Mbit/s they are exact.
///
/// The default is a 10 Mbit/s segment of no length, with room for 100 packets at each station.
#[derive(Clone, Debug, PartialEq)]
pub struct EthernetConfig {
    /// Bits of frames, preambles and gaps in a second.
    pub rate: DataRate,
    /// Propagation from any station to any other, one way; at most [`EthernetConfig::longest_delay`]. It is that of the two that
    /// are furthest apart, repeaters included.
    pub delay: Duration,
    /// What waits at each station. The frame that a station is about to send, or sends, is not in its queue.
    pub queue: QueueConfig,
}

impl Default for EthernetConfig {
    fn default() -> Self {
        Self {
            rate: DataRate::from_megabits_per_second(10),
            delay: Duration::ZERO,
            queue: QueueConfig::default(),
        }
    }
}

impl EthernetConfig {
    /// What a frame and the gap after it add to an IP packet, as a link would have it: a packet that is not padded takes as
    /// long as on a link with this framing.
    pub const FRAMING: Framing = Framing {
        bits_per_byte: 8,
        overhead_bytes: FRAME_OVERHEAD_BYTES + ((PREAMBLE_BITS + GAP_BITS) / 8) as u16,
    };

    /// Bits on the cable of an IP packet of `bytes`, preamble included.
    #[must_use]
    pub const fn frame_bits(bytes: u16) -> u64 {
        let frame = bytes as u64 + FRAME_OVERHEAD_BYTES as u64;
        let least = LEAST_FRAME_BYTES as u64;
        PREAMBLE_BITS + 8 * if frame < least { least } else { frame }
    }

    /// The longest delay at `rate` with which a station hears of every collision before its slot is over: there and back,
    /// and the jam, take no longer than a slot (IEEE 802.3, clause 4.2.3.2).
    #[must_use]
    pub fn longest_delay(rate: DataRate) -> Duration {
        Duration::from_nanos(bit_nanos(rate, (SLOT_BITS - JAM_BITS) / 2))
    }

    /// Checks that every law named can be kept.
    ///
    /// A medium made of a configuration that fails this check does not panic, but its laws are not those named.
    ///
    /// # Errors
    /// The first [`ConfigError`] found, in the order of the fields.
    pub fn check(&self) -> Result<(), ConfigError> {
        // A bit lasts at least a nanosecond, for that is how finely instants are told apart.
        if !(1..=1_000_000_000).contains(&self.rate.bits_per_second()) {
            return Err(ConfigError::MediumRate { found: self.rate });
        }
        let most = Self::longest_delay(self.rate);
        if self.delay > most {
            return Err(ConfigError::MediumDelay { found: self.delay, most });
        }
        self.queue.check()
    }

    /// A link that has such a queue before it, and takes as long for a packet: what can be said of the path between two stations
    /// as long as nobody else sends.
    #[must_use]
    pub fn as_link(&self) -> Config {
        Config {
            rate: self.rate,
            delay: self.delay,
            queue: self.queue,
            mtu: MEDIUM_MTU,
            framing: Self::FRAMING,
            ..Config::default()
        }
    }
}

/// The constants in nanoseconds, at the rate and over the delay of a medium.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    rate: DataRate,
    pub(crate) delay: u64,
    pub(crate) gap: u64,
    pub(crate) preamble: u64,
    pub(crate) jam: u64,
    pub(crate) slot: u64,
}

impl Times {
    pub(crate) fn of(config: &EthernetConfig) -> Self {
        let time = |bits| bit_nanos(config.rate, bits);
        Self {
            rate: config.rate,
            delay: nanos(config.delay),
            gap: time(GAP_BITS),
            preamble: time(PREAMBLE_BITS),
            jam: time(JAM_BITS),
            slot: time(SLOT_BITS),
        }
    }

    /// Whether rate and delay are the same.
    pub(crate) fn are_of_one_cable(&self, other: &Self) -> bool {
        (self.rate, self.delay) == (other.rate, other.delay)
    }

    /// Whether anything can be sent at all.
    pub(crate) fn is_running(&self) -> bool {
        self.rate > DataRate::ZERO
    }

    /// How long an IP packet of `bytes` is on the cable, preamble included.
    pub(crate) fn frame(&self, bytes: u16) -> u64 {
        bit_nanos(self.rate, EthernetConfig::frame_bits(bytes))
    }
}

/// Time of `bits`, rounded up to a nanosecond; without end at rate zero.
fn bit_nanos(rate: DataRate, bits: u64) -> u64 {
    rate.time_for_bits(bits).map_or(u64::MAX, nanos)
}
