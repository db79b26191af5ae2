//! The addresses of a mobile node's interfaces that can be care-of addresses, as the node was told of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_base::Instant;
use careof_lab::AssignedAddress;
use careof_mobility::InterfaceId;
use careof_mobility::v6::{InterfaceAddress, Prefix};
use careof_wire::ipv6::is_unicast_routable;

use super::routers::Routers;

/// Addresses of one interface that are told of; the bound is for routers that lie.
const MOST_ADDRESSES: usize = 16;
/// Bits in front of an IPv4-mapped address.
const IPV4_PREFIX: u8 = 96;
/// The kernel tells lifetimes in whole seconds.
const GRAIN: Duration = Duration::from_secs(2);

/// What is different from what was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddressChange {
    /// The address is new, or its lifetime has changed considerably.
    Added(InterfaceId, InterfaceAddress),
    /// It is no more, or cannot be used any longer.
    Removed(InterfaceId, Ipv6Addr),
}

/// Those that were told of, and when each ends (`Instant::MAX`: never).
#[derive(Debug, Default)]
pub(super) struct CareOfAddresses {
    told: BTreeMap<(InterfaceId, Ipv6Addr), Instant>,
    /// Addresses of IPv4 are told of, too.
    takes_ipv4: bool,
    /// Those of IPv4, with the length of their prefixes.
    ipv4: BTreeMap<(InterfaceId, Ipv4Addr), u8>,
}

impl CareOfAddresses {
    /// None yet.
    pub(super) fn new(takes_ipv4: bool) -> Self {
        Self { takes_ipv4, ..Self::default() }
    }

    /// Takes in which addresses there are on the node's interfaces. `announced` is one that the node has announced on its link (RFC 5568
    /// section 4): it is of that link before a router is heard there.
    pub(super) fn take_in(
        &mut self,
        now: Instant,
        found: &[(InterfaceId, AssignedAddress)],
        home_address: Ipv6Addr,
        routers: &Routers,
        announced: Option<(InterfaceId, Ipv6Addr)>,
    ) -> Vec<AddressChange> {
        let mut ipv4_now = BTreeMap::new();
        let mut usable: BTreeMap<(InterfaceId, Ipv6Addr), InterfaceAddress> = BTreeMap::new();
        for &(interface, assigned) in found {
            let (address, is_suitable, ipv6_length) = match assigned.address {
                IpAddr::V6(address) => {
                    (address, is_unicast_routable(address) && address != home_address, assigned.prefix_length)
                }
                // Which of them can be one the node knows.
                IpAddr::V4(ipv4) if self.takes_ipv4 => {
                    ipv4_now.insert((interface, ipv4), assigned.prefix_length);
                    (ipv4.to_ipv6_mapped(), true, IPV4_PREFIX + assigned.prefix_length)
                }
                IpAddr::V4(_) => continue,
            };
            let key = (interface, address);
            let is_candidate = assigned.is_usable() && is_suitable;
            // One that was formed on a link that was left stays with the interface; it is of use again when a router of the present
            // link says so.
            let is_here = assigned.address.is_ipv4()
                || assigned.is_permanent
                || announced == Some(key)
                || routers.advertise(interface, address);
            // Nothing new is begun with a deprecated one (RFC 4862 section 5.5.4).
            let may_begin = !assigned.is_deprecated || self.told.contains_key(&key);
            let is_one_too_many = usable.keys().filter(|(of, _)| *of == interface).count() >= MOST_ADDRESSES;
            if is_candidate && is_here && may_begin && !is_one_too_many {
                let (prefix, valid_for) = (Prefix::new(address, ipv6_length), assigned.valid_for);
                usable.insert(key, InterfaceAddress { address, prefix, valid_for });
            }
        }
        ipv4_now
            .retain(|(interface, address), _| usable.contains_key(&(*interface, address.to_ipv6_mapped())));
        self.ipv4 = ipv4_now;
        let gone: Vec<_> = self.told.keys().filter(|key| !usable.contains_key(key)).copied().collect();
        let mut changes = Vec::new();
        for (interface, address) in gone {
            self.told.remove(&(interface, address));
            changes.push(AddressChange::Removed(interface, address));
        }
        for (key, address) in usable {
            let end = address.valid_for.map_or(Instant::MAX, |span| now + span);
            let is_known = self.told.get(&key).is_some_and(|told| is_about(now, *told, end));
            if !is_known {
                self.told.insert(key, end);
                changes.push(AddressChange::Added(key.0, address));
            }
        }
        changes
    }

    /// Those of IPv6 of an interface.
    pub(super) fn of(&self, interface: InterfaceId) -> impl Iterator<Item = Ipv6Addr> + '_ {
        let of_it = (interface, Ipv6Addr::UNSPECIFIED)..=(interface, Ipv6Addr::from_bits(u128::MAX));
        self.told
            .range(of_it)
            .map(|((_, address), _)| *address)
            .filter(|address| address.to_ipv4_mapped().is_none())
    }

    /// Those of IPv4 of an interface, with the length of their prefixes.
    pub(super) fn ipv4_of(&self, interface: InterfaceId) -> impl Iterator<Item = (Ipv4Addr, u8)> + '_ {
        let of_it = (interface, Ipv4Addr::UNSPECIFIED)..=(interface, Ipv4Addr::BROADCAST);
        self.ipv4.range(of_it).map(|((_, address), length)| (*address, *length))
    }
}

/// Whether an end that was told is still right enough: not much too late, and with more than half of what is left.
fn is_about(now: Instant, told: Instant, end: Instant) -> bool {
    if told == Instant::MAX || end == Instant::MAX {
        return told == end;
    }
    let (known, left) = (told.saturating_duration_since(now), end.saturating_duration_since(now));
    told <= end + GRAIN && known + GRAIN >= left / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    const WLAN: InterfaceId = InterfaceId(1);
    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7);

    fn assigned(address: Ipv6Addr) -> AssignedAddress {
        AssignedAddress {
            interface: 3,
            address: address.into(),
            prefix_length: 64,
            is_tentative: false,
            is_duplicate: false,
            is_optimistic: false,
            is_deprecated: false,
            is_permanent: true,
            valid_for: None,
            preferred_for: None,
        }
    }

    fn count(addresses: &mut CareOfAddresses, seconds: u64, found: AssignedAddress) -> usize {
        let routers = Routers::default();
        addresses.take_in(Instant::from_secs(seconds), &[(WLAN, found)], HOME, &routers, None).len()
    }

    #[test]
    fn only_what_can_be_used_away_from_home_is_told() {
        let useless = [
            assigned(HOME),
            assigned(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)),
            AssignedAddress { is_tentative: true, ..assigned(CARE_OF) },
            AssignedAddress { is_duplicate: true, ..assigned(CARE_OF) },
            AssignedAddress { is_deprecated: true, ..assigned(CARE_OF) },
            // Nobody on this link advertises its prefix.
            AssignedAddress { is_permanent: false, ..assigned(CARE_OF) },
        ];
        for found in useless {
            assert_eq!(count(&mut CareOfAddresses::default(), 0, found), 0, "{found:?}");
        }
        let optimistic = AssignedAddress { is_tentative: true, is_optimistic: true, ..assigned(CARE_OF) };
        assert_eq!(count(&mut CareOfAddresses::default(), 0, optimistic), 1);
    }

    #[test]
    fn an_address_of_a_former_visit_is_of_use_once_it_is_announced() {
        let kept = AssignedAddress { is_permanent: false, ..assigned(CARE_OF) };
        let mut addresses = CareOfAddresses::default();
        let mut told = |announced| {
            let routers = Routers::default();
            addresses.take_in(Instant::ZERO, &[(WLAN, kept)], HOME, &routers, announced)
        };
        assert_eq!(told(Some((InterfaceId(2), CARE_OF))), [], "it is announced on another link");
        let prefix = Prefix::new(CARE_OF, 64);
        let address = InterfaceAddress { address: CARE_OF, prefix, valid_for: None };
        assert_eq!(told(Some((WLAN, CARE_OF))), [AddressChange::Added(WLAN, address)]);
        assert_eq!(told(None), [AddressChange::Removed(WLAN, CARE_OF)], "the link was left");
    }

    #[test]
    fn an_address_is_told_again_when_its_lifetime_is_another() {
        let lasting =
            |seconds| AssignedAddress { valid_for: Some(Duration::from_secs(seconds)), ..assigned(CARE_OF) };
        let mut addresses = CareOfAddresses::default();
        assert_eq!(count(&mut addresses, 0, lasting(100)), 1);
        assert_eq!(count(&mut addresses, 10, lasting(90)), 0);
        // Renewed, which matters only later.
        assert_eq!(count(&mut addresses, 20, lasting(100)), 0);
        assert_eq!(count(&mut addresses, 70, lasting(100)), 1);
        assert_eq!(count(&mut addresses, 80, lasting(10)), 1, "it ends sooner");
        assert_eq!(count(&mut addresses, 81, assigned(CARE_OF)), 1, "it ends no more");
        let deprecated = AssignedAddress { is_deprecated: true, ..assigned(CARE_OF) };
        assert_eq!(count(&mut addresses, 82, deprecated), 0, "it is kept");
        assert_eq!(addresses.of(WLAN).collect::<Vec<_>>(), [CARE_OF]);
        let gone = addresses.take_in(Instant::from_secs(83), &[], HOME, &Routers::default(), None);
        assert_eq!(gone, [AddressChange::Removed(WLAN, CARE_OF)]);
    }
}
