//! When mobile nodes are told the prefixes of their home network (RFC 6275 section 10.6.2).

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};

use super::config::PrefixAdvertisementConfig;

/// PREFIX_ADV_TIMEOUT (RFC 6275 section 12).
const TIMEOUT: Duration = Duration::from_secs(3);
/// PREFIX_ADV_RETRIES (RFC 6275 section 12).
const RETRIES: u32 = 3;

#[derive(Clone, Copy, Debug)]
struct Delivery {
    next: Instant,
    /// Advertisements sent that the mobile node has not answered with a solicitation.
    sent: u32,
}

/// The advertisements scheduled, at most one for each mobile node with a binding.
#[derive(Debug, Default)]
pub(super) struct PrefixDeliveries {
    of: BTreeMap<Ipv6Addr, Delivery>,
    deadlines: BTreeSet<(Instant, Ipv6Addr)>,
}

/// RAND_ADV_DELAY.
fn delay(config: PrefixAdvertisementConfig, preferred: Duration, random: &mut Randomness) -> Duration {
    let longest = config.max_interval.min(preferred);
    let spread = longest.abs_diff(config.min_interval);
    config.min_interval + random.duration_up_to(spread)
}

impl PrefixDeliveries {
    fn set(&mut self, home_address: Ipv6Addr, delivery: Delivery) {
        self.cancel(home_address);
        self.deadlines.insert((delivery.next, home_address));
        self.of.insert(home_address, delivery);
    }

    /// Sees to it that an advertisement is scheduled. `preferred` is what is left of the preferred lifetime of the home address's
    /// prefix.
    pub(super) fn ensure(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        (config, preferred): (PrefixAdvertisementConfig, Duration),
        random: &mut Randomness,
    ) {
        if !self.of.contains_key(&home_address) {
            let next = now + delay(config, preferred, random);
            self.set(home_address, Delivery { next, sent: 0 });
        }
    }

    /// The prefixes have changed: what was scheduled for after this change's own delay comes sooner.
    pub(super) fn changed(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        (config, preferred): (PrefixAdvertisementConfig, Duration),
        random: &mut Randomness,
    ) {
        let next = now + delay(config, preferred, random);
        let scheduled = self.of.get(&home_address);
        if scheduled.is_none_or(|scheduled| next < scheduled.next) {
            self.set(home_address, Delivery { next, sent: 0 });
        }
    }

    /// The mobile node has solicited, and is answered: the next advertisement is in its own time.
    pub(super) fn answered(
        &mut self,
        now: Instant,
        home_address: Ipv6Addr,
        config: PrefixAdvertisementConfig,
    ) {
        self.set(home_address, Delivery { next: now + config.max_interval, sent: 0 });
    }

    /// No advertisement any more to who has no binding.
    pub(super) fn cancel(&mut self, home_address: Ipv6Addr) {
        if let Some(old) = self.of.remove(&home_address) {
            self.deadlines.remove(&(old.next, home_address));
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    /// A mobile node to which an advertisement is to be sent; to be called until `None`. It is repeated unless the node solicits.
    pub(super) fn due(&mut self, now: Instant, config: PrefixAdvertisementConfig) -> Option<Ipv6Addr> {
        let &(_, home_address) = self.deadlines.first().filter(|(at, _)| *at <= now)?;
        let delivery = *self.of.get(&home_address)?;
        let next = if delivery.sent < RETRIES {
            Delivery { next: now + TIMEOUT * (1 << delivery.sent), sent: delivery.sent + 1 }
        } else {
            Delivery { next: now + config.max_interval, sent: 0 }
        };
        self.set(home_address, next);
        Some(home_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use careof_base::RandomStream;

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);

    fn random() -> Randomness {
        RandomStream::new(1, 0, "prefixes").into()
    }

    /// RFC 6275 section 10.6.2: PREFIX_ADV_TIMEOUT before the first retransmission, doubled, PREFIX_ADV_RETRIES times.
    #[test]
    fn an_advertisement_is_repeated_three_times_and_then_waits_for_its_own_time() {
        let config = PrefixAdvertisementConfig::default();
        let mut deliveries = PrefixDeliveries::default();
        deliveries.ensure(Instant::ZERO, HOME, (config, Duration::MAX), &mut random());
        let first = deliveries.deadline().expect("scheduled");
        assert!((600..=86_400).contains(&first.since_start().as_secs()));
        let mut after = Vec::new();
        for _ in 0..5 {
            let at = deliveries.deadline().expect("scheduled");
            after.push((at - first).as_secs());
            assert_eq!(deliveries.due(at, config), Some(HOME));
            assert_eq!(deliveries.due(at, config), None);
        }
        assert_eq!(after, [0, 3, 9, 21, 21 + 86_400]);
    }

    /// RFC 6275 section 10.6.2: MaxScheduleDelay is no longer than the preferred lifetime.
    #[test]
    fn a_change_does_not_wait_longer_than_the_address_remains_preferred() {
        let config = PrefixAdvertisementConfig::default();
        let mut random = random();
        for _ in 0..100 {
            let mut deliveries = PrefixDeliveries::default();
            deliveries.answered(Instant::ZERO, HOME, config);
            deliveries.changed(Instant::ZERO, HOME, (config, Duration::from_secs(1000)), &mut random);
            assert!(deliveries.deadline() <= Some(Instant::from_secs(1000)));
            deliveries.cancel(HOME);
            assert_eq!(deliveries.deadline(), None);
        }
    }
}
