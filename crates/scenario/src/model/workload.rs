//! What flows carry.

use careof_base::{DataRate, Duration};

use super::LinkId;

/// What the application does with a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// `from` writes as fast as TCP takes it.
    Bulk {
        /// Bytes in all, at least 1; `None` is without end.
        size: Option<u64>,
    },
    /// `from` asks, `to` answers, `from` thinks.
    RequestResponse {
        /// Bytes of a request, at least 1.
        request: u64,
        /// Bytes of a response, at least 1.
        response: u64,
        /// From the last byte of a response to the next request.
        think: Duration,
        /// Requests in all, at least 1; `None` is without end.
        count: Option<u64>,
    },
    /// `from` writes messages at an even pace, whatever TCP makes of it.
    Paced {
        /// Of the application's bytes, above zero.
        rate: DataRate,
        /// Bytes of a message, at least 1; one is written every `message` · 8 / `rate`.
        message: u64,
        /// Bytes in all, at least 1; `None` is without end.
        size: Option<u64>,
    },
    /// `from` writes in bursts, with pauses between them.
    OnOff(OnOff),
    /// `from` talks: packets of RTP over UDP at an even pace, which `to` plays.
    Voice(Voice),
    /// `from` watches a film that `to` has, in segments that it asks for one after the other.
    Video(Video),
    /// Programs do what they do. Only on Linux hosts.
    Command,
    /// Nothing: the delay and the rate of a link between the two nodes are measured. Only on Linux hosts.
    Probe {
        /// The link.
        link: LinkId,
    },
}

/// Bursts and pauses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// What a burst is.
    pub burst: Burst,
    /// How bursts are spread around their mean.
    pub burst_law: Law,
    /// The mean pause. It begins when the data of a burst of [`Burst::Bytes`] has arrived, or when the time of one of
    /// [`Burst::Time`] is over.
    pub pause: Duration,
    /// How pauses are spread around their mean.
    pub pause_law: Law,
    /// Bytes in all, at least 1; `None` is without end.
    pub size: Option<u64>,
}

/// A burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Burst {
    /// So many bytes in the mean, at least 1, as fast as TCP takes them.
    Bytes(u64),
    /// Messages at an even pace for some time.
    Time {
        /// The mean time, above zero.
        span: Duration,
        /// Of the application's bytes meanwhile, above zero.
        rate: DataRate,
        /// Bytes of a message, at least 1.
        message: u64,
    },
}

/// How a drawn quantity is spread around its mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// It is always the mean.
    Fixed,
    /// Exponentially.
    Exponential,
    /// By a Pareto distribution with this shape (tail index), above 1: below, it has no mean.
    Pareto(f64),
}

impl Law {
    /// The shape where none is given: that of ns-2's Pareto traffic.
    pub const USUAL_SHAPE: f64 = 1.5;
}

/// Packets at an even pace, as a codec makes them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Voice {
    /// Who makes them; `None` for packets of the scenario's own.
    pub codec: Option<Codec>,
    /// Bytes of a packet behind its RTP header, at least 1 and at most [`Voice::LARGEST`].
    pub payload: u16,
    /// From packet to packet, above zero.
    pub interval: Duration,
    /// How long the receiver keeps the first packet before it plays it.
    pub jitter_buffer: Duration,
    /// What the codec costs in the E-model, where that is known: *Ie* and *Bpl* of ITU-T G.113.
    pub impairment: Option<[f64; 2]>,
}

impl Voice {
    /// The most bytes in a packet: with all headers it is one datagram of IPv4.
    pub const LARGEST: u16 = 65_000;
    /// The depth of the jitter buffer where none is given: three packets of the codecs here.
    pub const USUAL_BUFFER: Duration = Duration::from_millis(60);
}

/// A codec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711: 64 kbit/s.
    G711,
    /// ITU-T G.729: 8 kbit/s.
    G729,
    /// Opus as it is used for full-band speech: 32 kbit/s, within what RFC 7587 section 3.1.1 recommends.
    Opus,
}

impl Codec {
    /// Its name in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::G711 => "g711",
            Self::G729 => "g729",
            Self::Opus => "opus",
        }
    }

    /// From packet to packet: the usual packet of RFC 3551 section 4.2 (G.711, G.729) and of RFC 7587 section 6.1 (Opus, `ptime`).
    #[must_use]
    pub const fn interval(self) -> Duration {
        Duration::from_millis(20)
    }

    /// Bytes that the codec makes of that time.
    #[must_use]
    pub const fn payload(self) -> u16 {
        match self {
            Self::G711 => 160,
            Self::G729 => 20,
            Self::Opus => 80,
        }
    }

    /// How far the codec looks ahead: nothing (G.711), 5 ms (ITU-T G.729), and 6.5 ms in its usual mode (RFC 6716 section 2.1.4
    /// and its reference encoder: 26.5 ms with the frame).
    #[must_use]
    pub const fn look_ahead(self) -> Duration {
        match self {
            Self::G711 => Duration::ZERO,
            Self::G729 => Duration::from_millis(5),
            Self::Opus => Duration::from_micros(6_500),
        }
    }

    /// *Ie* and *Bpl* (ITU-T G.113, 11/2007, Appendix I, for random loss): of G.711 with concealment of losses after its Appendix I, and of
    /// G.729A with voice activity detection, the only G.729 for which there is a *Bpl*. There are none for Opus.
    #[must_use]
    pub const fn impairment(self) -> Option<[f64; 2]> {
        match self {
            Self::G711 => Some([0.0, 25.1]),
            Self::G729 => Some([11.0, 19.0]),
            Self::Opus => None,
        }
    }

    /// The payload type (RFC 3551 section 6), or the first of those that are agreed on, and the rate of the RTP clock, Hz.
    #[must_use]
    pub const fn rtp(self) -> (u8, u32) {
        match self {
            Self::G711 => (0, 8_000),
            Self::G729 => (18, 8_000),
            Self::Opus => (96, 48_000),
        }
    }
}

/// A film in segments, each of which is there at several rates, and its player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Video {
    /// Length of a segment, above zero.
    pub segment: Duration,
    /// The rates that segments are there at.
    pub ladder: Ladder,
    /// How much the player fetches ahead at most, at least `startup` and a segment.
    pub buffer: Duration,
    /// How much has to be there before it is played, in the beginning and after the buffer ran empty.
    pub startup: Duration,
    /// How the player chooses rates.
    pub adaptation: Adaptation,
    /// Segments of the film, at least 1; `None` is without end.
    pub segments: Option<u64>,
    /// Bytes of the request for a segment, at least 1.
    pub request: u64,
}

impl Video {
    /// Bytes of a segment at the rate with this place in the ladder.
    #[must_use]
    pub fn segment_bytes(&self, place: usize) -> u64 {
        let rate = self.ladder.rates().get(place).copied().unwrap_or(DataRate::ZERO);
        let bits = u128::from(rate.bits_per_second()) * self.segment.as_nanos() / 1_000_000_000;
        u64::try_from(bits / 8).unwrap_or(u64::MAX).max(1)
    }
}

/// Rates from the lowest to the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    rates: [DataRate; Self::MOST],
    count: usize,
}

impl Ladder {
    /// It has no more.
    pub const MOST: usize = 16;
    /// The rates where none are given, kbit/s: the fixed ladder that Netflix had before it encoded by title (Netflix Technology
    /// Blog, *Per-Title Encode Optimization*, 2015).
    pub const USUAL: [u64; 10] = [235, 375, 560, 750, 1_050, 1_750, 2_350, 3_000, 4_300, 5_800];

    /// A ladder of `rates`; `None` unless there are one to [`Ladder::MOST`], above zero and each above the one before.
    #[must_use]
    pub fn new(rates: &[DataRate]) -> Option<Self> {
        let is_sorted = rates.windows(2).all(|pair| pair[0] < pair[1]);
        let mut all = [DataRate::ZERO; Self::MOST];
        all.get_mut(..rates.len())?.copy_from_slice(rates);
        let first = *rates.first()?;
        (is_sorted && first > DataRate::ZERO).then_some(Self { rates: all, count: rates.len() })
    }

    /// Its rates.
    #[must_use]
    pub fn rates(&self) -> &[DataRate] {
        self.rates.get(..self.count).unwrap_or_default()
    }
}

impl Default for Ladder {
    fn default() -> Self {
        let mut rates = [DataRate::ZERO; Self::MOST];
        for (rate, usual) in rates.iter_mut().zip(Self::USUAL) {
            *rate = DataRate::from_kilobits_per_second(usual);
        }
        Self { rates, count: Self::USUAL.len() }
    }
}

/// How a player chooses the rate of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adaptation {
    /// By the rate at which the last segments came.
    Throughput,
    /// By how much is in its buffer.
    Buffer,
}
