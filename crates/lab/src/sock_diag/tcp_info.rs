//! `struct tcp_info` of `linux/tcp.h`, by offset: the structure grows at its end from kernel to kernel, and the
//! `libc` crate's ends long before this one's.

use careof_base::{DataRate, Duration};

/// State of a TCP connection, as RFC 9293 names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TcpState {
    /// ESTABLISHED.
    Established,
    /// SYN-SENT.
    SynSent,
    /// SYN-RECEIVED.
    SynReceived,
    /// FIN-WAIT-1.
    FinWait1,
    /// FIN-WAIT-2.
    FinWait2,
    /// TIME-WAIT.
    TimeWait,
    /// CLOSED.
    Closed,
    /// CLOSE-WAIT.
    CloseWait,
    /// LAST-ACK.
    LastAck,
    /// LISTEN.
    Listen,
    /// CLOSING.
    Closing,
}

impl TcpState {
    /// From the kernel's `TCP_*` (`net/tcp_states.h`).
    pub(super) const fn from_kernel(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Established,
            2 => Self::SynSent,
            // 12: a request for a connection, before it has a socket of its own.
            3 | 12 => Self::SynReceived,
            4 => Self::FinWait1,
            5 => Self::FinWait2,
            6 => Self::TimeWait,
            7 => Self::Closed,
            8 => Self::CloseWait,
            9 => Self::LastAck,
            10 => Self::Listen,
            11 => Self::Closing,
            _ => return None,
        })
    }

    /// Bits of the kernel's `TCPF_*` for it.
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Established => 1 << 1,
            Self::SynSent => 1 << 2,
            Self::SynReceived => 1 << 3 | 1 << 12,
            Self::FinWait1 => 1 << 4,
            Self::FinWait2 => 1 << 5,
            Self::TimeWait => 1 << 6,
            Self::Closed => 1 << 7,
            Self::CloseWait => 1 << 8,
            Self::LastAck => 1 << 9,
            Self::Listen => 1 << 10,
            Self::Closing => 1 << 11,
        }
    }
}

/// What a sender's loss recovery is doing (`tcpi_ca_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecoveryState {
    /// Nothing is wrong.
    Open,
    /// Duplicate or selective acknowledgements came.
    Disorder,
    /// The window shrinks after a congestion notice.
    CongestionWindowReduced,
    /// Lost segments are sent again after duplicate acknowledgements.
    Recovery,
    /// The retransmission timer has run out.
    Loss,
}

/// What the kernel's TCP knows about a connection. Segments are full-sized ones unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpInfo {
    /// Its state.
    pub state: TcpState,
    /// What loss recovery is doing.
    pub recovery: RecoveryState,
    /// Timeouts in a row without an acknowledgement (`tcpi_retransmits`).
    pub retransmits: u8,
    /// Window probes or keep-alives in a row without an answer.
    pub probes: u8,
    /// How often the retransmission timer was doubled; `rto` contains it.
    pub backoff: u8,
    /// The retransmission timeout as it is now, backed off.
    pub rto: Duration,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time, as it enters `rto`.
    pub rttvar: Duration,
    /// Smallest round-trip time of the last minutes; `None` before the first sample.
    pub min_rtt: Option<Duration>,
    /// Round-trip time as the receiving side estimates it; `None` where it has not.
    pub receive_rtt: Option<Duration>,
    /// Delay of a delayed acknowledgement.
    pub ato: Duration,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Slow start threshold in segments; `None` while there is none.
    pub ssthresh_segments: Option<u32>,
    /// Largest segment it sends, in bytes of data.
    pub mss: u32,
    /// Largest segment it thinks the peer sends.
    pub receive_mss: u32,
    /// Largest segment it told the peer.
    pub advertised_mss: u32,
    /// MTU of the path in bytes of IP, as far as it knows.
    pub path_mtu: u32,
    /// Segments sent and not acknowledged; connections to be accepted while listening.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments taken to be lost.
    pub lost: u32,
    /// Segments sent again and not acknowledged.
    pub retrans: u32,
    /// How many segments reordering may span before loss is assumed.
    pub reordering: u32,
    /// Segments sent again, ever.
    pub total_retransmissions: u32,
    /// Bytes that were acknowledged, plus one each for a SYN and a FIN of ours that were.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes of data sent, those sent again included.
    pub bytes_sent: u64,
    /// Bytes of data sent again.
    pub bytes_retrans: u64,
    /// Bytes written that were never sent.
    pub bytes_not_sent: u32,
    /// Segments of any kind sent.
    pub segments_out: u32,
    /// Segments of any kind received.
    pub segments_in: u32,
    /// Segments with data sent.
    pub data_segments_out: u32,
    /// Segments with data received.
    pub data_segments_in: u32,
    /// Segments that reached the peer, as far as its acknowledgements say.
    pub delivered: u32,
    /// How many of those the peer saw marked with congestion experienced.
    pub delivered_ce: u32,
    /// Duplicates that the peer reported (D-SACK): segments sent again for nothing.
    pub dsack_duplicates: u32,
    /// How often reordering was noticed.
    pub reorderings_seen: u32,
    /// Segments received out of order.
    pub received_out_of_order: u32,
    /// Rate at which it sends at most.
    pub pacing_rate: Option<DataRate>,
    /// Latest measured rate of delivery; `None` before the first.
    pub delivery_rate: Option<DataRate>,
    /// Whether that was limited by the program rather than the network.
    pub delivery_rate_is_application_limited: bool,
    /// How long there was something to send.
    pub busy: Duration,
    /// How long the peer's window held it back.
    pub receive_window_limited: Duration,
    /// How long the send buffer held it back.
    pub send_buffer_limited: Duration,
    /// Since data was sent last.
    pub since_data_sent: Duration,
    /// Since data was received last.
    pub since_data_received: Duration,
    /// Since an acknowledgement was received last.
    pub since_ack_received: Duration,
    /// The peer's window in bytes; `None` before Linux 5.4.
    pub send_window: Option<u32>,
    /// The window told to the peer in bytes; `None` before Linux 6.2.
    pub receive_window: Option<u32>,
    /// Timeouts of the retransmission timer, ever; `None` before Linux 6.7.
    pub total_rto: Option<u16>,
    /// How often it recovered from a series of them; `None` before Linux 6.7.
    pub total_rto_recoveries: Option<u16>,
    /// Time spent in them; `None` before Linux 6.7.
    pub total_rto_time: Option<Duration>,
}

/// `TCP_INFINITE_SSTHRESH`.
pub(crate) const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Bytes of the structure in Linux 4.19, the least that is understood.
const LEAST: usize = 224;

impl TcpInfo {
    /// From the bytes of a `struct tcp_info`; `None` when they are too few, or say what cannot be.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        if bytes.len() < LEAST {
            return None;
        }
        let byte = |at: usize| bytes.get(at).copied();
        let u16_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes);
        let u32_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes);
        let u64_at = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_ne_bytes);
        let microseconds = |at| u32_at(at).map(|value| Duration::from_micros(value.into()));
        let milliseconds = |at| u32_at(at).map(|value| Duration::from_millis(value.into()));
        let sampled = |duration: Duration| (duration > Duration::ZERO).then_some(duration);
        let rate = |at| {
            u64_at(at).map(|bytes| {
                // All ones: without limit.
                let known = bytes != 0 && bytes != u64::MAX;
                known.then(|| DataRate::from_bits_per_second(bytes.saturating_mul(8)))
            })
        };
        Some(Self {
            state: TcpState::from_kernel(byte(0)?)?,
            recovery: match byte(1)? {
                0 => RecoveryState::Open,
                1 => RecoveryState::Disorder,
                2 => RecoveryState::CongestionWindowReduced,
                3 => RecoveryState::Recovery,
                4 => RecoveryState::Loss,
                _ => return None,
            },
            retransmits: byte(2)?,
            probes: byte(3)?,
            backoff: byte(4)?,
            // 5: options; 6: window scales.
            delivery_rate_is_application_limited: byte(7)? & 1 == 1,
            rto: microseconds(8)?,
            ato: microseconds(12)?,
            mss: u32_at(16)?,
            receive_mss: u32_at(20)?,
            unacked: u32_at(24)?,
            sacked: u32_at(28)?,
            lost: u32_at(32)?,
            retrans: u32_at(36)?,
            // 40: forward acknowledgements, gone since Linux 4.15.
            since_data_sent: milliseconds(44)?,
            // 48: since the last acknowledgement sent, which the kernel leaves zero.
            since_data_received: milliseconds(52)?,
            since_ack_received: milliseconds(56)?,
            path_mtu: u32_at(60)?,
            // 64: the receiver's threshold.
            srtt: sampled(microseconds(68)?),
            rttvar: microseconds(72)?,
            ssthresh_segments: Some(u32_at(76)?).filter(|segments| *segments < NO_THRESHOLD),
            cwnd_segments: u32_at(80)?,
            advertised_mss: u32_at(84)?,
            reordering: u32_at(88)?,
            receive_rtt: sampled(microseconds(92)?),
            // 96: room that receive buffer tuning aims at.
            total_retransmissions: u32_at(100)?,
            pacing_rate: rate(104)?,
            // 112: the program's limit of it.
            bytes_acked: u64_at(120)?,
            bytes_received: u64_at(128)?,
            segments_out: u32_at(136)?,
            segments_in: u32_at(140)?,
            bytes_not_sent: u32_at(144)?,
            min_rtt: Some(u32_at(148)?)
                .filter(|value| *value != u32::MAX && *value != 0)
                .map(|value| Duration::from_micros(value.into())),
            data_segments_in: u32_at(152)?,
            data_segments_out: u32_at(156)?,
            delivery_rate: rate(160)?,
            busy: Duration::from_micros(u64_at(168)?),
            receive_window_limited: Duration::from_micros(u64_at(176)?),
            send_buffer_limited: Duration::from_micros(u64_at(184)?),
            delivered: u32_at(192)?,
            delivered_ce: u32_at(196)?,
            bytes_sent: u64_at(200)?,
            bytes_retrans: u64_at(208)?,
            dsack_duplicates: u32_at(216)?,
            reorderings_seen: u32_at(220)?,
            // Since Linux 5.4, with the next one.
            received_out_of_order: u32_at(224).unwrap_or(0),
            send_window: u32_at(228),
            receive_window: u32_at(232),
            // 236: how often the path was changed by another flow label.
            total_rto: u16_at(240),
            total_rto_recoveries: u16_at(242),
            total_rto_time: milliseconds(244),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(length: usize) -> Vec<u8> {
        let mut bytes = vec![0_u8; length];
        bytes[0] = 1;
        bytes[4] = 3;
        bytes[8..12].copy_from_slice(&1_632_000_u32.to_ne_bytes());
        bytes[76..80].copy_from_slice(&NO_THRESHOLD.to_ne_bytes());
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        bytes[160..168].copy_from_slice(&1_250_000_u64.to_ne_bytes());
        if length >= 248 {
            bytes[240..242].copy_from_slice(&5_u16.to_ne_bytes());
            bytes[244..248].copy_from_slice(&1234_u32.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn values_have_their_units_and_absent_ones_are_absent() {
        let info = TcpInfo::parse(&sample(280)).unwrap();
        assert_eq!((info.rto, info.backoff), (Duration::from_millis(1632), 3));
        assert_eq!((info.ssthresh_segments, info.srtt, info.min_rtt), (None, None, None));
        assert_eq!(info.delivery_rate, Some(DataRate::from_megabits_per_second(10)));
        assert_eq!((info.total_rto, info.total_rto_time), (Some(5), Some(Duration::from_millis(1234))));
    }

    #[test]
    fn an_older_kernels_structure_lacks_what_it_lacks() {
        let info = TcpInfo::parse(&sample(LEAST)).unwrap();
        assert_eq!((info.send_window, info.receive_window, info.total_rto), (None, None, None));
        assert!(TcpInfo::parse(&sample(LEAST)[..LEAST - 1]).is_none());
        assert!(TcpInfo::parse(&[]).is_none());
    }

    #[test]
    fn a_state_that_does_not_exist_is_not_invented() {
        for (at, value) in [(0, 0), (0, 13), (1, 5)] {
            let mut bytes = sample(280);
            bytes[at] = value;
            assert!(TcpInfo::parse(&bytes).is_none());
        }
    }
}
