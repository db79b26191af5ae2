//! The sender of bits: one packet at a time, at the link's rate.

use alloc::boxed::Box;

use careof_base::{DataRate, Instant};

use crate::config::UNLIMITED_RATE;
use crate::trace::Trace;

/// Nanobits (10⁻⁹ bit) in a bit: a rate in bit/s is a rate in nanobits a nanosecond.
pub(crate) const NANOBITS: u64 = 1_000_000_000;

/// Turns packets into time, without losing any.
///
/// Work is counted in nanobits, of which a link of `r` bit/s does exactly `r` each nanosecond, so every
/// quantity here is an integer. An end is reported rounded down to the nanosecond; what is left of the packet
/// then (`owed`, less than a nanosecond's work) is charged to the packet that follows at once. After an idle
/// time nothing is owed. A packet whose rate changes while it is being sent keeps what was sent of it.
///
/// By a trace it is the same: how much work can have been done by when is then what the trace says.
#[derive(Clone, Debug)]
pub(crate) struct Serialiser {
    /// Nanobits a nanosecond; zero while the link is down. With a trace all that counts is whether it is zero.
    rate: u64,
    /// End of the packet being sent, or of the last one sent; [`Instant::MAX`] while a packet is stalled.
    end: Instant,
    /// Nanobits still to be sent at `end`; all of the packet while it is stalled.
    owed: u64,
    /// The last division: packets of a flow are of few sizes, and dividing is the slowest thing a link does.
    last: Division,
    traced: Option<Box<Traced>>,
}

/// A trace that says how much is sent when.
#[derive(Clone, Debug)]
struct Traced {
    trace: Trace,
    /// Work that an opportunity at [`Serialiser::end`] could do beyond the packet that ended then.
    spare: u64,
}

/// `bits` in nanobits, divided by the rate.
#[derive(Clone, Copy, Debug, Default)]
struct Division {
    bits: u64,
    nanos: u64,
    rest: u64,
}

impl Serialiser {
    pub(crate) fn new(rate: DataRate) -> Self {
        let rate = rate.bits_per_second();
        Self { rate, end: Instant::ZERO, owed: 0, last: Division::default(), traced: None }
    }

    /// Goes by the rates of `trace` from now on, or by none. Until a [rate is set](Self::set_rate) nothing moves.
    pub(crate) fn follow(&mut self, now: Instant, trace: Option<&Trace>, sending: bool) {
        self.set_rate(now, DataRate::ZERO, sending);
        let traced = |trace: &Trace| Box::new(Traced { trace: trace.clone(), spare: 0 });
        self.traced = trace.filter(|trace| trace.has_rates()).map(traced);
    }

    /// Whether anything moves.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.rate != 0
    }

    /// Whether nothing that is sent takes any time.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.rate == UNLIMITED_RATE.bits_per_second() && self.traced.is_none()
    }

    /// Begins to send `bits` at `start`, which must not lie before the end of the packet before. Returns the
    /// end, which is [`Instant::MAX`] at rate zero.
    #[inline(always)]
    pub(crate) fn start(&mut self, start: Instant, bits: u64) -> Instant {
        if start > self.end {
            self.owed = 0;
        }
        // By a trace no division is the last.
        if bits == self.last.bits && bits > 0 {
            return self.work_as_before(start);
        }
        self.start_another(start, bits)
    }

    /// [`Self::start`], for a size that was not the last.
    #[inline(never)]
    fn start_another(&mut self, start: Instant, bits: u64) -> Instant {
        // A packet has less than 2^22 bits and less than 10^16 nanobits: the sum is exact below 10^19 bit/s.
        let nanobits = bits.saturating_mul(NANOBITS);
        if self.traced.is_some() {
            return self.work(start, nanobits.saturating_add(self.owed));
        }
        if self.rate != 0 && self.rate != UNLIMITED_RATE.bits_per_second() && nanobits < u64::MAX - self.rate
        {
            self.last = Division { bits, nanos: nanobits / self.rate, rest: nanobits % self.rate };
            return self.work_as_before(start);
        }
        self.work(start, nanobits.saturating_add(self.owed))
    }

    /// As [`Self::work`], for as many bits as were divided last.
    #[inline(always)]
    fn work_as_before(&mut self, start: Instant) -> Instant {
        let mut nanos = start.as_nanos().saturating_add(self.last.nanos);
        let mut owed = self.owed.saturating_add(self.last.rest);
        if owed >= self.rate {
            owed -= self.rate;
            nanos = nanos.saturating_add(1);
            // Owed since a higher rate.
            if owed >= self.rate {
                nanos = nanos.saturating_add(owed / self.rate);
                owed %= self.rate;
            }
        }
        (self.end, self.owed) = (Instant::from_nanos(nanos), owed);
        self.end
    }

    /// When the packet ends that was begun last.
    #[inline]
    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    /// Undoes [`Self::start`] for the packet of `bits` that was begun last, at the end of the one before and at this rate.
    /// That end has to be [told](Self::ends_at) when all are taken back.
    pub(crate) fn take_back(&mut self, bits: u64) {
        if self.rate == 0 || self.rate == UNLIMITED_RATE.bits_per_second() {
            return;
        }
        let rest = bits.saturating_mul(NANOBITS) % self.rate;
        self.owed = if self.owed >= rest { self.owed - rest } else { self.owed + (self.rate - rest) };
    }

    /// The packet that is being sent ends at `end`.
    pub(crate) fn ends_at(&mut self, end: Instant) {
        self.end = end;
    }

    /// Goes on at `rate` from `now` with what is left of the packet being sent, if one is. Returns its end.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: DataRate, sending: bool) -> Instant {
        let left = if sending { self.left(now) } else { 0 };
        self.rate = rate.bits_per_second();
        self.last = Division::default();
        if sending { self.work(now, left) } else { self.end }
    }

    /// Gives up the packet being sent.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.end = now;
        self.owed = 0;
        self.idle();
    }

    /// Nothing waits: what is left of an opportunity is gone.
    pub(crate) fn idle(&mut self) {
        if let Some(traced) = &mut self.traced {
            traced.spare = 0;
        }
    }

    /// Nanobits of the packet being sent that are not sent yet.
    fn left(&self, now: Instant) -> u64 {
        if let Some(Traced { trace, spare }) = self.traced.as_deref()
            && self.rate != 0
        {
            let done = trace.work_by(self.end) + u128::from(self.owed) - u128::from(*spare);
            return u64::try_from(done.saturating_sub(trace.work_by(now))).unwrap_or(u64::MAX);
        }
        let nanos = self.end.as_nanos().saturating_sub(now.as_nanos());
        nanos.saturating_mul(self.rate).saturating_add(self.owed)
    }

    #[inline]
    fn work(&mut self, start: Instant, nanobits: u64) -> Instant {
        (self.end, self.owed) = match self.rate {
            0 => (Instant::MAX, nanobits),
            _ if self.traced.is_some() => return self.work_by_trace(start, nanobits),
            rate if rate == UNLIMITED_RATE.bits_per_second() => (start, 0),
            rate => {
                let end = start.as_nanos().saturating_add(nanobits / rate);
                (Instant::from_nanos(end), nanobits % rate)
            }
        };
        self.end
    }

    #[inline(never)]
    fn work_by_trace(&mut self, start: Instant, nanobits: u64) -> Instant {
        let Some(traced) = &mut self.traced else { return start };
        let spare = if start == self.end { traced.spare } else { 0 };
        let done = (traced.trace.work_by(start) + u128::from(nanobits)).saturating_sub(u128::from(spare));
        self.end = traced.trace.done(done, start);
        let by_then = traced.trace.work_by(self.end);
        // One of them is zero: a series is rounded down to the nanosecond, an opportunity comes when it comes.
        (self.owed, traced.spare) = (distance(by_then, done), distance(done, by_then));
        self.end
    }
}

/// How much `to` lies above `from`.
fn distance(from: u128, to: u128) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;

    fn rate(bits: u64) -> DataRate {
        DataRate::from_bits_per_second(bits)
    }

    #[test]
    fn a_million_packets_back_to_back_end_at_the_exact_nanosecond() {
        for bits_per_second in [9_600, 7_777_777, 10_000_000, 99_999_999_977] {
            let mut serialiser = Serialiser::new(rate(bits_per_second));
            let mut sizes = RandomStream::new(1, 0, "sizes");
            let (mut end, mut bits_so_far) = (Instant::ZERO, 0_u128);
            for _ in 0..1_000_000 {
                let bits = 320 + 8 * sizes.below(1461);
                end = serialiser.start(end, bits);
                bits_so_far += u128::from(bits);
            }
            let exact = bits_so_far * 1_000_000_000 / u128::from(bits_per_second);
            assert_eq!(u128::from(end.as_nanos()), exact);
        }
    }

    #[test]
    fn a_rate_that_changes_mid_packet_sends_every_bit_once() {
        let mut serialiser = Serialiser::new(rate(1_000_003));
        let mut random = RandomStream::new(2, 0, "changes");
        let mut now = Instant::ZERO;
        let mut end = serialiser.start(now, 1_000_000);
        let (mut nanobits, mut current) = (0_u128, 1_000_003_u64);
        for _ in 0..1_000 {
            let step = random.below(400_000);
            if now.as_nanos() + step >= end.as_nanos() {
                break;
            }
            now = Instant::from_nanos(now.as_nanos() + step);
            nanobits += u128::from(step) * u128::from(current);
            current = random.below(3_000_000);
            end = serialiser.set_rate(now, rate(current), true);
        }
        end = if current == 0 { serialiser.set_rate(now, rate(1), true) } else { end };
        nanobits += u128::from(end.as_nanos() - now.as_nanos()) * u128::from(current.max(1));
        let missing = 1_000_000_u128 * 1_000_000_000 - nanobits;
        assert!(missing < u128::from(current.max(1)), "{missing} nanobits");
        assert_eq!(missing, u128::from(serialiser.owed));
    }

    #[test]
    fn nothing_is_owed_after_an_idle_time() {
        let mut serialiser = Serialiser::new(rate(3));
        let end = serialiser.start(Instant::ZERO, 1);
        assert_eq!(end.as_nanos(), 333_333_333);
        // Back to back the third of a nanosecond is charged, three times making one.
        let end = serialiser.start(end, 2);
        assert_eq!(end.as_nanos(), 1_000_000_000);
        let end = serialiser.start(end, 1);
        let later = Instant::from_nanos(end.as_nanos() + 1);
        assert_eq!(serialiser.start(later, 2).as_nanos(), later.as_nanos() + 666_666_666);
    }

    #[test]
    fn a_stalled_packet_waits_for_a_rate() {
        let mut serialiser = Serialiser::new(rate(1_000));
        serialiser.start(Instant::ZERO, 1_000);
        assert_eq!(serialiser.set_rate(Instant::from_millis(250), DataRate::ZERO, true), Instant::MAX);
        assert_eq!(serialiser.set_rate(Instant::from_secs(9), DataRate::ZERO, true), Instant::MAX);
        let end = serialiser.set_rate(Instant::from_secs(10), rate(500), true);
        assert_eq!(end, Instant::from_millis(11_500));
    }

    #[test]
    fn the_unlimited_rate_takes_no_time() {
        let mut serialiser = Serialiser::new(UNLIMITED_RATE);
        let now = Instant::from_secs(1);
        assert_eq!(serialiser.start(now, 12_000), now);
        assert_eq!(serialiser.start(now, 12_000), now);
    }
}
