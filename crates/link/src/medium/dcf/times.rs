//! How long what takes on a radio channel, in nanoseconds.

use careof_base::DataRate;

use super::config::{ACK_BYTES, CTS_BYTES, Coding, DcfConfig, RTS_BYTES, WIRELESS_OVERHEAD_BYTES};
use crate::jitter::nanos;

/// Bits before and behind the data of OFDM: service and tail.
const OFDM_BITS: u64 = 16 + 6;

/// A configuration in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    coding: Coding,
    rate: DataRate,
    rts_threshold: u16,
    pub(crate) slot: u64,
    pub(crate) sifs: u64,
    pub(crate) difs: u64,
    pub(crate) eifs: u64,
    /// From the first bit of a frame until the others know of it.
    pub(crate) sense: u64,
    pub(crate) delay: u64,
    pub(crate) ack: u64,
    rts: u64,
    pub(crate) cts: u64,
    /// A clear to send to oneself and the SIFS behind it; 0 where none is sent.
    announcement: u64,
    /// From the end of a frame until its sender knows that no acknowledgement comes.
    pub(crate) ack_timeout: u64,
    /// The same of a request and its clearance.
    pub(crate) cts_timeout: u64,
    /// From the end of a request, as others hear it, until they know that it was not granted (IEEE 802.11-2012, clause 9.3.2.4).
    pub(crate) nav_timeout: u64,
}

/// The times of an exchange, from the first bit of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    /// It begins with a request to send.
    pub(crate) has_request: bool,
    /// Something before the data tells how long the exchange lasts.
    pub(crate) is_reserved: bool,
    /// How long its sender is on the air if nobody answers.
    pub(crate) unanswered: u64,
    /// When the last bit of the data arrives.
    pub(crate) arrival: u64,
    /// When the last bit of the acknowledgement has been heard.
    pub(crate) end: u64,
}

impl Times {
    pub(crate) fn of(config: &DcfConfig) -> Self {
        let phy = &config.phy;
        let (slot, sifs, delay) = (nanos(phy.slot), nanos(phy.sifs), nanos(config.delay));
        let difs = sum([sifs, slot, slot]);
        let control = |bytes| frame(phy.coding, config.control_rate, bytes);
        let (announcing, start) = match config.protection {
            None => (None, nanos(phy.rx_start_delay)),
            Some(protection) => {
                let coding = Coding::Serial { preamble: protection.preamble };
                (Some((coding, protection.rate)), nanos(protection.preamble))
            }
        };
        let reserving =
            |bytes| announcing.map_or_else(|| control(bytes), |(coding, rate)| frame(coding, rate, bytes));
        let cts = reserving(CTS_BYTES);
        Self {
            coding: phy.coding,
            rate: config.rate,
            rts_threshold: config.rts_threshold,
            slot,
            sifs,
            difs,
            eifs: sum([sifs, nanos(phy.lowest_ack), difs]),
            sense: sum([nanos(phy.cca), delay]),
            delay,
            ack: control(ACK_BYTES),
            rts: reserving(RTS_BYTES),
            cts,
            announcement: announcing.map_or(0, |_| sum([cts, sifs])),
            ack_timeout: sum([sifs, slot, nanos(phy.rx_start_delay)]),
            cts_timeout: sum([sifs, slot, start]),
            nav_timeout: sum([sifs, sifs, cts, start, slot, slot]),
        }
    }

    /// The exchange by which an IP packet of `size` bytes is sent.
    pub(crate) fn exchange(&self, size: u16) -> Exchange {
        let bytes = size.saturating_add(WIRELESS_OVERHEAD_BYTES);
        let data = frame(self.coding, self.rate, bytes);
        let has_request = bytes > self.rts_threshold;
        let before = if has_request {
            sum([self.rts, self.delay, self.sifs, self.cts, self.delay, self.sifs])
        } else {
            self.announcement
        };
        let arrival = sum([before, data, self.delay]);
        Exchange {
            has_request,
            is_reserved: before > 0,
            unanswered: if has_request { self.rts } else { sum([before, data]) },
            arrival,
            end: sum([arrival, self.sifs, self.ack, self.delay]),
        }
    }
}

fn sum<const N: usize>(spans: [u64; N]) -> u64 {
    spans.into_iter().fold(0, u64::saturating_add)
}

/// How long a frame of `bytes` is on the air; without end at rate zero.
pub(crate) fn frame(coding: Coding, rate: DataRate, bytes: u16) -> u64 {
    let bits = 8 * u64::from(bytes);
    match coding {
        // The header of the physical layer tells the length in whole microseconds (IEEE 802.11-2012, clauses 17.2.3.6 and 17.3.4).
        Coding::Serial { preamble } => {
            let data = rate.time_for_bits(bits).map_or(u64::MAX, nanos);
            sum([nanos(preamble), data.div_ceil(1_000).saturating_mul(1_000)])
        }
        Coding::Ofdm { preamble, symbol, extension } => {
            let bits_per_symbol = rate.bits_in(symbol);
            let symbols = (bits + OFDM_BITS)
                .checked_div(bits_per_symbol)
                .map(|_| (bits + OFDM_BITS).div_ceil(bits_per_symbol));
            let data = symbols.map_or(u64::MAX, |symbols| symbols.saturating_mul(nanos(symbol)));
            sum([nanos(preamble), data, nanos(extension)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::Phy;

    fn micros(coding: Coding, kbits: u64, bytes: u16) -> u64 {
        let nanos = frame(coding, DataRate::from_kilobits_per_second(kbits), bytes);
        assert_eq!(nanos % 1_000, 0);
        nanos / 1_000
    }

    #[test]
    fn frames_last_as_long_as_the_formulas_of_the_standard_say() {
        let long = Phy::HR_DSSS.coding;
        // 144 us of preamble and 48 us of header; bits at the rate, rounded up to a microsecond.
        assert_eq!(micros(long, 1_000, 14), 192 + 112);
        assert_eq!(micros(long, 2_000, 14), 192 + 56);
        assert_eq!(micros(long, 5_500, 1024), 192 + 1490);
        assert_eq!(micros(long, 11_000, 1024), 192 + 745);
        assert_eq!(micros(Phy::HR_DSSS_SHORT.coding, 11_000, 1024), 96 + 745);
        // Clause 18.4.3: 16 + 4 + 4 * ceil((16 + 8 * bytes + 6) / bits of a symbol), and the signal extension.
        let ofdm = Phy::ERP.coding;
        for (mbits, bits_per_symbol) in
            [(6, 24), (9, 36), (12, 48), (18, 72), (24, 96), (36, 144), (48, 192), (54, 216)]
        {
            for bytes in [14, 20, 576, 1536] {
                let expected = 20 + 4 * (22 + 8 * u64::from(bytes)).div_ceil(bits_per_symbol) + 6;
                assert_eq!(micros(ofdm, 1_000 * mbits, bytes), expected, "{mbits} Mbit/s, {bytes} B");
            }
        }
        assert_eq!(micros(ofdm, 24_000, 14), 34);
    }

    #[test]
    fn spaces_between_frames_are_those_of_the_standard() {
        let us = |nanos: u64| nanos / 1_000;
        let of = |config: &DcfConfig| {
            let times = Times::of(config);
            [times.sifs, times.difs, times.eifs].map(us)
        };
        let rate = DataRate::from_megabits_per_second;
        assert_eq!(of(&DcfConfig::b(rate(11))), [10, 50, 364]);
        assert_eq!(of(&DcfConfig::g(rate(54))), [10, 28, 88]);
        assert_eq!(of(&DcfConfig::g_protected(rate(54))), [10, 50, 364]);
    }

    #[test]
    fn a_rate_of_zero_never_ends_and_does_not_panic() {
        let zero = DataRate::ZERO;
        let config = DcfConfig { rate: zero, control_rate: zero, ..DcfConfig::g(zero) };
        assert_eq!(Times::of(&config).exchange(1500).end, u64::MAX);
        let config = DcfConfig { rate: zero, control_rate: zero, ..DcfConfig::b(zero) };
        assert_eq!(Times::of(&config).exchange(1500).end, u64::MAX);
        assert_eq!(config.as_link().framing.overhead_bytes, 0);
    }
}
