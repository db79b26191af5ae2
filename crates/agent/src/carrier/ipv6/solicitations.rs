//! Asking for routers on a link that has come up (RFC 4861 section 6.3.7).
//!
//! The kernel asks, too, but not before it has verified its link-local address, which takes a second, nor when a link comes back on which
//! it has asked before.

use std::collections::BTreeMap;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::InterfaceId;

use super::{Ipv6Carrier, neighbours};

/// MAX_RTR_SOLICITATIONS (RFC 4861 section 10).
const MOST: u8 = 3;
/// RTR_SOLICITATION_INTERVAL (RFC 4861 section 10).
const INTERVAL: Duration = Duration::from_secs(4);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asking {
    /// Solicitations that are left.
    left: u8,
    /// When the next one is due.
    due: Instant,
}

/// The solicitations of a mobile node.
#[derive(Debug, Default)]
pub(super) struct Solicitations {
    /// Links on which no router has answered yet.
    asking: BTreeMap<InterfaceId, Asking>,
    pub(super) sent: u64,
    /// Those that the kernel refused to send.
    pub(super) unsent: u64,
}

impl Solicitations {
    /// A link has come up. The first solicitation is due at once: that a mobile node has moved is reason enough to leave out the random
    /// delay.
    pub(super) fn begin(&mut self, now: Instant, interface: InterfaceId) {
        self.asking.insert(interface, Asking { left: MOST, due: now });
    }

    /// A router has advertised itself there, or the link is down.
    pub(super) fn end(&mut self, interface: InterfaceId) {
        self.asking.remove(&interface);
    }

    /// A link on which a solicitation is due; it counts as made.
    fn take_due(&mut self, now: Instant) -> Option<InterfaceId> {
        let (&interface, asking) = self.asking.iter_mut().find(|(_, asking)| asking.due <= now)?;
        asking.left = asking.left.saturating_sub(1);
        asking.due = now + INTERVAL;
        if asking.left == 0 {
            self.end(interface);
        }
        Some(interface)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.asking.values().map(|asking| asking.due).min()
    }
}

impl Ipv6Carrier {
    /// Asks for routers where that is due.
    pub(super) fn solicit(&mut self, now: Instant) {
        while let Some(interface) = self.solicitations.take_due(now) {
            let (Some(icmp), Some(index)) = (&self.sockets.icmp, self.interfaces.index_of(interface)) else {
                continue;
            };
            if neighbours::solicit_routers(icmp, index).is_ok() {
                self.solicitations.sent += 1;
            } else {
                self.solicitations.unsent += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WLAN: InterfaceId = InterfaceId(1);
    const GSM: InterfaceId = InterfaceId(2);

    /// When a link is asked on, in seconds.
    fn asked(solicitations: &mut Solicitations) -> Vec<(u64, InterfaceId)> {
        let mut times = Vec::new();
        while let Some(at) = solicitations.next_timeout() {
            while let Some(interface) = solicitations.take_due(at) {
                times.push((at.as_nanos() / 1_000_000_000, interface));
            }
        }
        times
    }

    #[test]
    fn a_link_without_a_router_is_asked_on_at_once_and_twice_more() {
        let mut solicitations = Solicitations::default();
        solicitations.begin(Instant::from_secs(10), WLAN);
        solicitations.begin(Instant::from_secs(11), GSM);
        let times = asked(&mut solicitations);
        assert_eq!(times, [(10, WLAN), (11, GSM), (14, WLAN), (15, GSM), (18, WLAN), (19, GSM)]);
    }

    #[test]
    fn who_has_been_answered_asks_no_more_until_the_link_comes_up_again() {
        let mut solicitations = Solicitations::default();
        for start in [10, 20] {
            let now = Instant::from_secs(start);
            solicitations.begin(now, WLAN);
            assert_eq!(solicitations.take_due(now), Some(WLAN));
            assert_eq!(solicitations.take_due(now), None);
            solicitations.end(WLAN);
            assert_eq!(solicitations.next_timeout(), None);
        }
    }
}
