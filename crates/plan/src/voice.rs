//! Both ends of a voice flow: the packets that one writes, and what the other makes of those that come.

use careof_base::RandomStream;
use careof_metrics::{Call, Impairment};
use careof_scenario::{Codec, Voice};
use careof_wire::rtp::RtpHeader;

/// The first payload type of those that are agreed on (RFC 3551 section 6), for packets of no codec, and a clock for these.
const OWN_RTP: (u8, u32) = (96, 8_000);

/// What the metrics of a voice flow have to know of it.
#[must_use]
pub fn call(voice: &Voice) -> Call {
    Call {
        codec: voice.codec.map(|codec| codec.name().to_owned()),
        interval: voice.interval,
        buffer: voice.jitter_buffer,
        coding_delay: voice.interval + voice.codec.map(Codec::look_ahead).unwrap_or_default(),
        impairment: voice.impairment.map(|[ie, bpl]| Impairment { ie, bpl }),
    }
}

/// The RTP of a voice flow: its source, and where its numbers and times begin, are random (RFC 3550 section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtpFlow {
    source: u32,
    first_sequence: u16,
    first_timestamp: u32,
    payload_type: u8,
    /// Ticks of the RTP clock from packet to packet, in billionths.
    ticks: u128,
    payload: usize,
}

impl RtpFlow {
    /// That of `voice`, its random numbers drawn from `random`.
    pub fn new(voice: &Voice, random: &mut RandomStream) -> Self {
        let (payload_type, clock) = voice.codec.map_or(OWN_RTP, Codec::rtp);
        Self {
            source: random.next_u64() as u32,
            first_sequence: random.next_u64() as u16,
            first_timestamp: random.next_u64() as u32,
            payload_type,
            ticks: voice.interval.as_nanos() * u128::from(clock),
            payload: voice.payload.into(),
        }
    }

    /// The packet with this number, as a UDP payload: its speech is silence.
    #[must_use]
    pub fn packet(&self, number: u64) -> Vec<u8> {
        let ticks = (self.ticks.wrapping_mul(number.into()) / 1_000_000_000) as u32;
        let header = RtpHeader {
            marker: number == 0,
            payload_type: self.payload_type,
            sequence: self.first_sequence.wrapping_add(number as u16),
            timestamp: self.first_timestamp.wrapping_add(ticks),
            source: self.source,
        };
        let mut bytes = Vec::with_capacity(RtpHeader::LEN + self.payload);
        header.emit(&mut bytes);
        bytes.resize(RtpHeader::LEN + self.payload, 0);
        bytes
    }

    /// The number of a packet that came, when about `expected` had been sent; `None` for what is not of this flow.
    #[must_use]
    pub fn number(&self, packet: &[u8], expected: u64) -> Option<u64> {
        let (header, payload) = RtpHeader::parse(packet).ok()?;
        let is_own = header.source == self.source && payload.len() == self.payload;
        is_own.then(|| header.number(self.first_sequence, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn flow(codec: Codec) -> RtpFlow {
        let voice = Voice {
            codec: Some(codec),
            payload: codec.payload(),
            interval: codec.interval(),
            jitter_buffer: Duration::ZERO,
            impairment: None,
        };
        RtpFlow::new(&voice, &mut RandomStream::new(1, 0, "flow.call.workload"))
    }

    #[test]
    fn packets_are_numbered_on_and_stamped_by_the_codecs_clock() {
        // 20 ms are 160 ticks of 8 kHz, and 960 of the 48 kHz that RFC 7587 has for Opus.
        for (codec, ticks, length) in
            [(Codec::G711, 160, 172), (Codec::G729, 160, 32), (Codec::Opus, 960, 92)]
        {
            let flow = flow(codec);
            let [first, later] = [0, 70_000_u64].map(|number| flow.packet(number));
            let [a, b] = [&first, &later].map(|packet| RtpHeader::parse(packet).unwrap().0);
            assert_eq!((first.len(), a.marker, b.marker), (length, true, false));
            assert_eq!(b.sequence.wrapping_sub(a.sequence), (70_000 % 65_536) as u16);
            assert_eq!(b.timestamp.wrapping_sub(a.timestamp), 70_000 * ticks);
            assert_eq!((flow.number(&first, 3), flow.number(&later, 70_002)), (Some(0), Some(70_000)));
        }
    }

    #[test]
    fn what_is_not_of_the_flow_has_no_number() {
        let flow = flow(Codec::G711);
        let mut packet = flow.packet(9);
        assert_eq!(flow.number(&packet[..171], 9), None);
        packet[9] ^= 1;
        assert_eq!((flow.number(&packet, 9), flow.number(b"", 9)), (None, None));
    }
}
