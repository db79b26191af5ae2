//! The other home agents of the home network (RFC 6275 section 10.5).

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_base::{Instant, Randomness};
use careof_wire::icmpv6::RouterAdvertisement;
use careof_wire::ipv6::{Ipv6Header, is_unicast_routable};

/// Global addresses remembered of one home agent; there is hardly ever more than one of each prefix.
const MAX_ADDRESSES: usize = 8;
/// Bytes of a Home Agent Address Discovery Reply before the addresses.
const REPLY_HEADER: u16 = 8;
/// Addresses that a reply has room for within the least MTU of IPv6, so that it is not fragmented.
pub(super) const MAX_IN_REPLY: usize = ((Ipv6Header::MIN_MTU - Ipv6Header::LEN - REPLY_HEADER) / 16) as usize;

#[derive(Debug)]
struct HomeAgentEntry {
    link_local: Ipv6Addr,
    preference: u16,
    expires: Instant,
    addresses: Vec<Ipv6Addr>,
}

/// Home agents heard on the home link, at most `capacity`: where there is no room, nobody is forgotten for a new one.
#[derive(Debug)]
pub(super) struct HomeAgentsList {
    capacity: usize,
    entries: Vec<HomeAgentEntry>,
}

impl HomeAgentsList {
    pub(super) const fn new(capacity: usize) -> Self {
        Self { capacity, entries: Vec::new() }
    }

    /// Takes in a valid advertisement from `link_local` (section 10.5.1). False when there is no room for its sender.
    pub(super) fn heard(&mut self, now: Instant, link_local: Ipv6Addr, heard: &RouterAdvertisement) -> bool {
        let known = self.entries.iter().position(|entry| entry.link_local == link_local);
        let Some(said) = heard.home_agent_information().filter(|said| said.lifetime_secs > 0) else {
            if let Some(at) = known {
                self.entries.remove(at);
            }
            return true;
        };
        let at = match known {
            Some(at) => at,
            None if self.entries.len() < self.capacity => {
                let (addresses, expires) = (Vec::new(), now);
                self.entries.push(HomeAgentEntry { link_local, preference: 0, expires, addresses });
                self.entries.len() - 1
            }
            None => return false,
        };
        let entry = &mut self.entries[at];
        entry.preference = said.preference;
        entry.expires = now + Duration::from_secs(said.lifetime_secs.into());
        for address in heard.router_addresses().filter(|address| is_unicast_routable(*address)) {
            if !entry.addresses.contains(&address) && entry.addresses.len() < MAX_ADDRESSES {
                entry.addresses.push(address);
            }
        }
        true
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// When the next entry ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.entries.iter().map(|entry| entry.expires).min()
    }

    pub(super) fn expire(&mut self, now: Instant) {
        self.entries.retain(|entry| entry.expires > now);
    }

    /// The addresses for a reply: the most preferable home agents first, those of equal preference in an order drawn anew, and the
    /// addresses of each in one as well. `own` is that of this home agent.
    pub(super) fn addresses(&self, own: (Ipv6Addr, u16), random: &mut Randomness) -> Vec<Ipv6Addr> {
        let (own, own_preference) = own;
        let mut all = alloc::vec![(own_preference, random.next_u64(), alloc::vec![own])];
        for entry in self.entries.iter().filter(|entry| !entry.addresses.is_empty()) {
            let mut addresses: Vec<_> = entry.addresses.iter().map(|a| (random.next_u64(), *a)).collect();
            addresses.sort_unstable();
            let addresses = addresses.into_iter().map(|(_, address)| address).collect();
            all.push((entry.preference, random.next_u64(), addresses));
        }
        all.sort_unstable_by_key(|(preference, drawn, _)| (core::cmp::Reverse(*preference), *drawn));
        let mut addresses: Vec<_> = all.into_iter().flat_map(|(_, _, addresses)| addresses).collect();
        addresses.truncate(MAX_IN_REPLY);
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_base::RandomStream;
    use careof_wire::icmpv6::{HomeAgentInformation, NdOption, PrefixInformation, PrefixLifetime};

    const OWN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

    fn global(host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, host)
    }

    fn link_local(host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, host)
    }

    fn advertisement(host: u16, information: Option<(u16, u16)>) -> RouterAdvertisement {
        let prefix = NdOption::PrefixInformation(PrefixInformation {
            prefix_length: 64,
            on_link: true,
            autonomous: true,
            router_address: true,
            valid_lifetime: PrefixLifetime::INFINITE,
            preferred_lifetime: PrefixLifetime::INFINITE,
            prefix: global(host),
        });
        let information = information.map(|(preference, lifetime_secs)| {
            NdOption::HomeAgentInformation(HomeAgentInformation { preference, lifetime_secs })
        });
        RouterAdvertisement {
            home_agent: true,
            router_lifetime_secs: 30,
            options: information.into_iter().chain([prefix]).collect(),
            ..RouterAdvertisement::default()
        }
    }

    fn random() -> Randomness {
        RandomStream::new(1, 0, "home agents").into()
    }

    /// RFC 6275 section 10.5.1: preference and lifetime come from the option, else 0 and the router lifetime.
    #[test]
    fn preference_and_lifetime_are_those_of_the_option_or_their_defaults() {
        let mut list = HomeAgentsList::new(4);
        list.heard(Instant::ZERO, link_local(2), &advertisement(2, Some((9, 100))));
        list.heard(Instant::ZERO, link_local(3), &advertisement(3, None));
        assert_eq!(list.addresses((OWN, 5), &mut random()), [global(2), OWN, global(3)]);
        assert_eq!(list.deadline(), Some(Instant::from_secs(30)));
        list.expire(Instant::from_secs(30));
        assert_eq!(list.addresses((OWN, 5), &mut random()), [global(2), OWN]);
    }

    /// RFC 6275 section 10.5.1: without the H bit, or with a lifetime of zero, the entry is deleted.
    #[test]
    fn a_router_that_is_no_home_agent_any_longer_is_deleted() {
        for ended in [
            RouterAdvertisement { home_agent: false, ..advertisement(2, None) },
            advertisement(2, Some((9, 0))),
        ] {
            let mut list = HomeAgentsList::new(4);
            list.heard(Instant::ZERO, link_local(2), &advertisement(2, None));
            assert_eq!(list.len(), 1);
            list.heard(Instant::ZERO, link_local(2), &ended);
            assert_eq!(list.len(), 0);
        }
    }

    /// RFC 6275 section 10.5.1: home agents of equal preference stand in an order drawn for every reply.
    #[test]
    fn equals_are_shuffled_for_every_reply() {
        let mut list = HomeAgentsList::new(4);
        list.heard(Instant::ZERO, link_local(2), &advertisement(2, None));
        let mut random = random();
        let first = |_| list.addresses((OWN, 0), &mut random)[0];
        let firsts: alloc::collections::BTreeSet<_> = (0..64).map(first).collect();
        assert_eq!(firsts.len(), 2);
    }

    #[test]
    fn a_thousand_invented_home_agents_take_the_room_of_the_few_that_may_be_there() {
        let mut list = HomeAgentsList::new(4);
        let heard = (0..1000).filter(|n| list.heard(Instant::ZERO, link_local(*n), &advertisement(*n, None)));
        assert_eq!(heard.count(), 4);
        for n in 0..1000 {
            list.heard(Instant::ZERO, link_local(0), &advertisement(n, None));
        }
        assert_eq!(list.addresses((OWN, 0), &mut random()).len(), 1 + 3 + MAX_ADDRESSES);
    }
}
