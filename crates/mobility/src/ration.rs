//! How many denials an agent sends to those who have proved nothing, and how many answers to probes.
//!
//! Anybody can send a request that is denied, in anybody's name: the denial then goes to somebody who has not asked. A home agent
//! "SHOULD in most cases" send one, and where the mobile node's authenticator fails "MAY" (RFC 5944 sections 3.8.2 and 3.8.2.1), unless
//! a foreign agent has signed the request. A foreign agent "MUST", but not more than one a second to the same mobile node (section
//! 3.7.2). Who asks in the names of many would have it send as many: so all together, and those of one network, have a
//! ration, too, which goes beyond the RFC.

use alloc::boxed::Box;
use alloc::vec;
use core::net::IpAddr;
use core::time::Duration;

use careof_base::{Allowance, Instant, Used};

/// To the hosts of one network.
const A_NETWORK: Allowance = Allowance::new(100, Duration::from_millis(50));
/// To all together.
const ALL: Allowance = Allowance::new(200, Duration::from_millis(10));
/// With code 76, to all together: one a second, as RFC 3024 section 4.2.1 demands.
const TOO_DISTANT: Allowance = Allowance::new(1, Duration::from_secs(1));
/// To one mobile node that has its key. It asks once a second at most (RFC 5944 section 3.6).
const A_MOBILE_NODE: Allowance = Allowance::new(16, Duration::from_secs(1));

/// Answers to the probes of one mobile node. It sends 12 a second on each of its paths while it doubts them.
const PROBES: Allowance = Allowance::new(64, Duration::from_millis(20));

/// What counts as a network of IPv4, and as a site of IPv6 (RFC 6177): so many bits of its addresses.
const PREFIX: u8 = 24;
const SITE_PREFIX: u8 = 48;
/// Networks that are told apart. Of more, several share what is one's.
const NETWORKS: usize = 256;

/// The ration of denials to those who have not proved who they are.
#[derive(Clone, Debug)]
pub(crate) struct DenialRation {
    all: Used,
    too_distant: Used,
    networks: Box<[Used]>,
}

impl Default for DenialRation {
    fn default() -> Self {
        let networks = vec![Used::default(); NETWORKS].into();
        Self { all: Used::default(), too_distant: Used::default(), networks }
    }
}

impl DenialRation {
    /// Whether one more may be sent to `destination`; it is counted then.
    pub(crate) fn allows(&mut self, now: Instant, destination: impl Into<IpAddr>) -> bool {
        let network = match destination.into() {
            IpAddr::V4(address) => u64::from(address.to_bits() >> (32 - PREFIX)),
            // Below 2^48.
            IpAddr::V6(address) => (address.to_bits() >> (128 - SITE_PREFIX)) as u64,
        };
        // Neighbouring networks are neighbours here, too: a site has its own share.
        let Some(place) = self.networks.get_mut((network % NETWORKS as u64) as usize) else { return false };
        let (Some(network), Some(all)) = (place.and_one(now, A_NETWORK), self.all.and_one(now, ALL)) else {
            return false;
        };
        *place = network;
        self.all = all;
        true
    }

    /// Whether one more may say that a mobile node is too distant; it is counted then.
    pub(crate) fn allows_too_distant(&mut self, now: Instant, destination: impl Into<IpAddr>) -> bool {
        let Some(too_distant) = self.too_distant.and_one(now, TOO_DISTANT) else { return false };
        let is_allowed = self.allows(now, destination);
        if is_allowed {
            self.too_distant = too_distant;
        }
        is_allowed
    }
}

/// The ration of denials to a mobile node whose request was authentic and not fresh: its clock is wrong, or somebody has
/// recorded it, or sent a copy with something added. Whoever has not heard it cannot use it up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NodeRation(Used);

impl NodeRation {
    /// Whether one more may be sent; it is counted then.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.0.take(now, A_MOBILE_NODE)
    }
}

/// The ration of answers to a mobile node's probes, so that one that somebody has recorded and repeats in others' names is no
/// means to flood them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRation(Used);

impl ProbeRation {
    /// Whether one more may be sent; it is counted then.
    pub(crate) fn allows(&mut self, now: Instant) -> bool {
        self.0.take(now, PROBES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, Ipv6Addr};

    fn allowed(count: u32, mut one: impl FnMut(u32) -> bool) -> usize {
        (0..count).filter(|number| one(*number)).count()
    }

    #[test]
    fn a_network_has_its_share_and_all_have_theirs() {
        let mut ration = DenialRation::default();
        let now = Instant::from_secs(5);
        let one = |number: u32| Ipv4Addr::from_bits(0xc000_0200 | number & 0xff);
        assert_eq!(allowed(1000, |number| ration.allows(now, one(number))), 100);
        let anybody = |number: u32| Ipv4Addr::from_bits(number << 8);
        assert_eq!(allowed(1000, |number| ration.allows(now, anybody(number))), 100);
        let later = now + Duration::from_secs(1);
        assert_eq!(allowed(1000, |number| ration.allows(later, one(number))), 20);
        assert_eq!(allowed(1000, |number| ration.allows(later, anybody(number))), 80);
    }

    #[test]
    fn the_hosts_of_a_site_have_one_share_whatever_their_subnets() {
        let mut ration = DenialRation::default();
        let now = Instant::from_secs(5);
        let site = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 0).to_bits();
        let one = |number: u32| Ipv6Addr::from_bits(site | u128::from(number) << 64 | u128::from(number));
        assert_eq!(allowed(1000, |number| ration.allows(now, one(number))), 100);
        assert!(ration.allows(now, Ipv6Addr::new(0x2001, 0xdb8, 8, 0, 0, 0, 0, 1)));
    }

    #[test]
    fn what_one_network_may_not_have_any_more_is_taken_from_nobody_else() {
        let mut ration = DenialRation::default();
        let victim = Ipv4Addr::new(192, 0, 2, 1);
        let mut now = Instant::ZERO;
        for _ in 0..1000 {
            now += Duration::from_millis(10);
            let _ = allowed(100, |_| ration.allows(now, victim));
            assert!(ration.allows(now, Ipv4Addr::new(198, 51, 100, 7)));
            now += Duration::from_millis(90);
        }
    }

    #[test]
    fn a_mobile_node_that_keeps_to_one_a_second_is_always_answered() {
        let mut ration = NodeRation::default();
        let mut now = Instant::ZERO;
        assert_eq!(allowed(100, |_| ration.allows(now)), 16);
        for _ in 0..100 {
            now += Duration::from_secs(1);
            assert!(ration.allows(now));
            assert!(!ration.allows(now));
        }
    }
}
