//! How many bytes an ally may have.

use alloc::collections::BTreeMap;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_base::{DataRate, Instant};

/// What an ally that was quiet may send at once.
const BURST: Duration = Duration::from_millis(100);
/// At least so many bytes: a few full packets.
const LEAST_BURST: u64 = 4 * 1500;

/// A token bucket in bytes, by the time at which it is full again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Meter {
    full_at: Instant,
}

impl Meter {
    /// Takes `len` bytes, if that is within `rate`; whether it is.
    pub(super) fn take(&mut self, now: Instant, len: u32, rate: Option<DataRate>) -> bool {
        let Some(rate) = rate else { return true };
        if rate == DataRate::ZERO {
            return false;
        }
        let time = |bytes: u64| rate.time_for_bits(bytes * 8).unwrap_or(Duration::MAX);
        let full_at = self.full_at.max(now) + time(u64::from(len));
        let is_within = full_at.saturating_duration_since(now) <= BURST.max(time(LEAST_BURST));
        if is_within {
            self.full_at = full_at;
        }
        is_within
    }
}

/// What one client has had: the same counts and meters whether or not it went away in between.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Had {
    /// Packets and bytes to it.
    pub(super) inward: (u64, u64),
    /// Packets and bytes from it.
    pub(super) outward: (u64, u64),
    /// By the same directions.
    pub(super) meters: [Meter; 2],
}

/// What former allies have had.
#[derive(Clone, Debug, Default)]
pub(super) struct FormerAllies {
    known: BTreeMap<Ipv4Addr, Former>,
}

#[derive(Clone, Copy, Debug)]
struct Former {
    had: Had,
    ended: Instant,
    /// It has had what it may have, and is refused until then.
    barred_until: Option<Instant>,
}

impl FormerAllies {
    /// Remembers an ally whose alliance has ended, at most so many of them: of more the one is forgotten that is not barred and ended first.
    pub(super) fn add(
        &mut self,
        now: Instant,
        home_address: Ipv4Addr,
        had: Had,
        barred_for: Option<Duration>,
        most: usize,
    ) {
        if self.known.len() >= most {
            let key = |former: &Former| (former.barred_until.is_some_and(|until| now < until), former.ended);
            let oldest = self.known.iter().min_by_key(|(_, former)| key(former)).map(|(&home, _)| home);
            oldest.and_then(|home| self.known.remove(&home));
        }
        let barred_until = barred_for.map(|span| now + span);
        self.known.insert(home_address, Former { had, ended: now, barred_until });
    }

    /// Whether the client is still to be refused.
    pub(super) fn is_barred(&self, now: Instant, home_address: Ipv4Addr) -> bool {
        let former = self.known.get(&home_address);
        former.and_then(|former| former.barred_until).is_some_and(|until| now < until)
    }

    /// The client is an ally again: what it has had so far. Who was barred begins anew.
    pub(super) fn take(&mut self, home_address: Ipv4Addr) -> Had {
        let former = self.known.remove(&home_address).filter(|former| former.barred_until.is_none());
        former.map(|former| former.had).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_rate_and_one_burst_passes() {
        let rate = Some(DataRate::from_kilobits_per_second(800));
        let mut meter = Meter::default();
        let mut bytes = 0;
        for n in 0..10_000 {
            if meter.take(Instant::from_millis(n), 1000, rate) {
                bytes += 1000;
            }
        }
        // 100 kB/s for 10 s, and 10 kB at once.
        assert!((1_000_000..=1_010_000).contains(&bytes), "{bytes}");
        assert!(Meter::default().take(Instant::ZERO, 60_000, None));
        assert!(!Meter::default().take(Instant::ZERO, 1, Some(DataRate::ZERO)));
    }
}
