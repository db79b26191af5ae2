//! The interfaces of this host as an agent sees them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use careof_lab::{Error, InterfaceState, Netlink, NetworkChange, Route};
use careof_mobility::v4::{InterfaceAddress, InterfaceId};

use super::{Device, InterfaceStatus, PathStatus};

/// An interface that the agent's configuration speaks of.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) device: Device,
    /// `None` while it does not exist.
    pub(super) state: Option<InterfaceState>,
    /// Mobile node of IPv4: the address that can serve as care-of address.
    pub(super) address: Option<InterfaceAddress>,
}

impl Interface {
    /// Whether it can carry packets.
    pub(super) fn is_up(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.has_carrier)
    }

    pub(super) fn index(&self) -> Option<u32> {
        self.state.as_ref().map(|state| state.index)
    }

    /// With what is known of the path through it.
    pub(super) fn status(&self, path: Option<PathStatus>) -> InterfaceStatus {
        InterfaceStatus {
            name: self.device.name.clone(),
            up: self.is_up(),
            address: self.address.map(|own| format!("{}/{}", own.address, own.prefix_length)),
            gateway: self.address.and_then(|own| own.gateway).map(IpAddr::V4),
            path,
        }
    }
}

/// Something about a named interface changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InterfaceChange {
    /// It can carry packets.
    Up(InterfaceId),
    /// It cannot carry packets; `index` is its number in the kernel.
    Down { id: InterfaceId, index: u32 },
    /// It could not carry packets for a while, which nobody has told; it can now.
    Flapped { id: InterfaceId, index: u32 },
    /// It does not exist any more.
    Removed { name: String, index: u32 },
    /// It is called `to` now, and is none of the agent's any more.
    Renamed { name: String, to: String, index: u32 },
    /// It exists.
    Appeared(InterfaceId),
}

/// The interfaces of this host.
#[derive(Debug)]
pub(super) struct Interfaces {
    named: Vec<Interface>,
    /// Numbers for interfaces of which the configuration does not speak, but by which messages come.
    others: BTreeMap<u32, InterfaceId>,
    /// The home address, which is no care-of address while there is another.
    home_address: Option<Ipv4Addr>,
}

/// Interfaces without a name that are told apart; messages from more share a number, and are not answered by it.
const MOST_OTHERS: u16 = 1024;

impl Interfaces {
    /// Those of the agent's configuration. The home address is one of IPv4.
    pub(super) fn new(devices: &[Device], home_address: Option<Ipv4Addr>) -> Self {
        let named =
            devices.iter().map(|device| Interface { device: device.clone(), state: None, address: None });
        Self { named: named.collect(), others: BTreeMap::new(), home_address }
    }

    pub(super) fn named(&self) -> &[Interface] {
        &self.named
    }

    pub(super) fn get(&self, id: InterfaceId) -> Option<&Interface> {
        self.named.iter().find(|interface| interface.device.id == id)
    }

    /// The agent's number of its interface called `name`.
    ///
    /// # Errors
    /// [`super::Error::UnknownInterface`].
    pub(super) fn id_named(&self, name: &str) -> Result<InterfaceId, super::Error> {
        let found = self.named.iter().find(|named| named.device.name == name);
        let unknown = || super::Error::UnknownInterface { name: name.to_owned() };
        found.map(|named| named.device.id).ok_or_else(unknown)
    }

    /// The agent's number of the kernel's interface `index`.
    pub(super) fn id_of(&mut self, index: u32) -> InterfaceId {
        if let Some(interface) = self.named.iter().find(|interface| interface.index() == Some(index)) {
            return interface.device.id;
        }
        if let Some(id) = self.others.get(&index) {
            return *id;
        }
        // From the top, where no configuration gets to; that of an interface that is gone is free again.
        let last = InterfaceId(u16::MAX - MOST_OTHERS);
        let is_free = |id: &InterfaceId| self.others.values().all(|used| used != id);
        let id = (last.0 + 1..=u16::MAX).rev().map(InterfaceId).find(is_free);
        if let Some(id) = id {
            self.others.insert(index, id);
        }
        id.unwrap_or(last)
    }

    /// The kernel's number of the agent's interface `id`, while it exists.
    pub(super) fn index_of(&self, id: InterfaceId) -> Option<u32> {
        match self.get(id) {
            Some(interface) => interface.index(),
            None => self.others.iter().find(|(_, other)| **other == id).map(|(index, _)| *index),
        }
    }

    /// Reads which interfaces exist; returns what is different from before.
    pub(super) fn read(&mut self, netlink: &mut Netlink) -> Result<Vec<InterfaceChange>, Error> {
        let present = netlink.interfaces()?;
        let mut changes = Vec::new();
        for interface in &mut self.named {
            let state = present.iter().find(|state| state.name == interface.device.name);
            if let Some(state) = state {
                note_state(interface, state.clone(), &mut changes);
            } else {
                let renamed = present.iter().find(|state| interface.index() == Some(state.index));
                note_gone(interface, renamed.map(|state| state.name.clone()), &mut changes);
            }
        }
        self.others.retain(|index, _| present.iter().any(|state| state.index == *index));
        Ok(changes)
    }

    /// Asks what has become of those that exist; returns what is different from before. What is gone is left to the
    /// kernel's own word.
    pub(super) fn ask(&mut self, netlink: &mut Netlink) -> Result<Vec<InterfaceChange>, Error> {
        let mut changes = Vec::new();
        for interface in &mut self.named {
            let Some(index) = interface.index() else { continue };
            match netlink.interface(index) {
                Ok(state) if state.name == interface.device.name => {
                    note_state(interface, state, &mut changes);
                }
                Ok(_) | Err(Error::System { errno: nix::errno::Errno::ENODEV, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(changes)
    }

    /// Takes in a change of a link; what it means for the agent is appended to `changes`.
    pub(super) fn take_in(&mut self, change: &NetworkChange, changes: &mut Vec<InterfaceChange>) {
        match change {
            NetworkChange::Link { state } => {
                for interface in &mut self.named {
                    if interface.device.name == state.name {
                        note_state(interface, state.clone(), changes);
                    } else if interface.index() == Some(state.index) {
                        note_gone(interface, Some(state.name.clone()), changes);
                    }
                }
            }
            NetworkChange::LinkRemoved { index, .. } => {
                let gone = self.named.iter_mut().filter(|interface| interface.index() == Some(*index));
                gone.for_each(|interface| note_gone(interface, None, changes));
                self.others.remove(index);
            }
            _ => {}
        }
    }

    /// Has every address told again.
    pub(super) fn forget_addresses(&mut self) {
        self.named.iter_mut().for_each(|interface| interface.address = None);
    }

    /// Reads the addresses of the named interfaces; returns those that changed, with what they have now. After a
    /// failure none has changed.
    pub(super) fn read_addresses(
        &mut self,
        netlink: &mut Netlink,
    ) -> Result<Vec<(InterfaceId, Option<InterfaceAddress>)>, Error> {
        let routes = netlink.routes(Route::MAIN_TABLE)?;
        let mut read = Vec::with_capacity(self.named.len());
        for interface in &self.named {
            read.push(match interface.index() {
                Some(index) => match netlink.addresses(index) {
                    Ok(addresses) => {
                        choose_address(&addresses, self.home_address).map(|(address, prefix_length)| {
                            InterfaceAddress { address, prefix_length, gateway: gateway(&routes, index) }
                        })
                    }
                    // Gone since.
                    Err(Error::System { errno: nix::errno::Errno::ENODEV, .. }) => None,
                    Err(error) => return Err(error),
                },
                None => None,
            });
        }
        let mut changed = Vec::new();
        for (interface, address) in self.named.iter_mut().zip(read) {
            if address != interface.address {
                interface.address = address;
                changed.push((interface.device.id, address));
            }
        }
        Ok(changed)
    }
}

fn note_state(interface: &mut Interface, state: InterfaceState, changes: &mut Vec<InterfaceChange>) {
    if interface.index().is_some_and(|index| index != state.index) {
        note_gone(interface, None, changes);
    }
    let (was_there, was_up) = (interface.state.is_some(), interface.is_up());
    let before = interface.state.as_ref().and_then(|state| state.carrier);
    if before.zip(state.carrier).is_some_and(|(before, now)| now.are_older_than(&before)) {
        // A message that waited to be read while the kernel was asked.
        return;
    }
    let index = state.index;
    let was_lost = before.zip(state.carrier).is_some_and(|(before, now)| before.losses != now.losses);
    interface.state = Some(state);
    let id = interface.device.id;
    if !was_there {
        changes.push(InterfaceChange::Appeared(id));
    }
    match (was_up, interface.is_up()) {
        (false, true) => changes.push(InterfaceChange::Up(id)),
        (true, false) => changes.push(InterfaceChange::Down { id, index }),
        (true, true) if was_lost => changes.push(InterfaceChange::Flapped { id, index }),
        _ => {}
    }
}

/// There is no interface of this name any more: it was removed, or is called `renamed` now.
fn note_gone(interface: &mut Interface, renamed: Option<String>, changes: &mut Vec<InterfaceChange>) {
    let was_up = interface.is_up();
    let Some(state) = interface.state.take() else { return };
    if was_up {
        changes.push(InterfaceChange::Down { id: interface.device.id, index: state.index });
    }
    let (name, index) = (interface.device.name.clone(), state.index);
    changes.push(match renamed {
        Some(to) => InterfaceChange::Renamed { name, to, index },
        None => InterfaceChange::Removed { name, index },
    });
}

/// The address to be reached at: the kernel's first choice that others can reach; the home address only when there
/// is no other.
fn choose_address(
    addresses: &[careof_lab::InterfaceAddress],
    home_address: Option<Ipv4Addr>,
) -> Option<(Ipv4Addr, u8)> {
    let candidates = addresses.iter().filter_map(|on| match on.address {
        IpAddr::V4(address) if !address.is_link_local() && !address.is_loopback() => {
            Some((address, on.prefix_length))
        }
        _ => None,
    });
    let mut at_home = None;
    for candidate in candidates {
        if Some(candidate.0) != home_address {
            return Some(candidate);
        }
        at_home = Some(candidate);
    }
    at_home
}

/// The default router on an interface: of several the one with the smallest metric.
fn gateway(routes: &[Route], index: u32) -> Option<Ipv4Addr> {
    let defaults = routes.iter().filter(|route| route.is_default() && route.interface == index);
    let routers = defaults.filter_map(|route| match route.via {
        Some(IpAddr::V4(router)) => Some((route.metric.unwrap_or(0), router)),
        _ => None,
    });
    routers.min().map(|(_, router)| router)
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_lab::CarrierCounts;

    fn on(address: &str, prefix_length: u8) -> careof_lab::InterfaceAddress {
        careof_lab::InterfaceAddress { address: address.parse().unwrap(), prefix_length }
    }

    #[test]
    fn the_home_address_is_a_care_of_address_only_where_it_is_alone() {
        let home = Some(Ipv4Addr::new(10, 0, 0, 7));
        let both = [on("10.0.0.7", 24), on("192.0.2.7", 24)];
        assert_eq!(choose_address(&both, home), Some((Ipv4Addr::new(192, 0, 2, 7), 24)));
        assert_eq!(choose_address(&both[..1], home), Some((Ipv4Addr::new(10, 0, 0, 7), 24)));
        let useless = [on("169.254.3.4", 16), on("127.0.0.1", 8), on("fe80::1", 64)];
        assert_eq!(choose_address(&useless, home), None);
    }

    #[test]
    fn interfaces_that_come_and_go_never_share_a_number() {
        let none = Interfaces { named: Vec::new(), others: BTreeMap::new(), home_address: None };
        let mut interfaces = none;
        let ids = [5, 6, 7].map(|index| interfaces.id_of(index));
        let removed = NetworkChange::LinkRemoved { index: 5, name: "ppp0".to_owned() };
        interfaces.take_in(&removed, &mut Vec::new());
        let new = interfaces.id_of(8);
        assert!(!ids[1..].contains(&new), "{new:?} {ids:?}");
        assert_eq!((interfaces.index_of(new), interfaces.index_of(ids[2])), (Some(8), Some(7)));
        for index in 100..2000 {
            interfaces.id_of(index);
        }
        assert_eq!(interfaces.others.len(), usize::from(MOST_OTHERS));
        let id = interfaces.id_of(2000);
        assert_eq!(interfaces.index_of(id), None);
    }

    /// What becomes of `wlan0`, told by the states that the kernel has: has it a carrier, how often was one lost?
    fn told(states: &[(bool, u32)]) -> Vec<&'static str> {
        let device = Device { id: InterfaceId(1), name: "wlan0".to_owned() };
        let mut interface = Interface { device, state: None, address: None };
        let mut changes = Vec::new();
        for &(has_carrier, losses) in states {
            let state = InterfaceState {
                index: 7,
                name: "wlan0".to_owned(),
                is_up: true,
                has_carrier,
                carrier: Some(CarrierCounts {
                    changes: losses.wrapping_mul(2).wrapping_add(has_carrier.into()),
                    losses,
                }),
                mtu: 1500,
                link_address: None,
                is_loopback: false,
                is_point_to_point: false,
            };
            note_state(&mut interface, state, &mut changes);
        }
        let name = |change: &InterfaceChange| match change {
            InterfaceChange::Up(_) => "up",
            InterfaceChange::Down { .. } => "down",
            InterfaceChange::Flapped { .. } => "flapped",
            InterfaceChange::Removed { .. } | InterfaceChange::Renamed { .. } => "gone",
            InterfaceChange::Appeared(_) => "appeared",
        };
        changes.iter().map(name).collect()
    }

    #[test]
    fn a_loss_that_was_made_good_before_anybody_told_shows_in_the_count() {
        let first = ["appeared", "up"];
        for (then, expected) in [
            (vec![(true, 0)], vec![]),
            (vec![(true, 1)], vec!["flapped"]),
            (vec![(true, 9), (true, 9)], vec!["flapped"]),
            (vec![(false, 1), (true, 1), (true, 1)], vec!["down", "up"]),
            (vec![(false, 3), (true, 3)], vec!["down", "up"]),
            (vec![(false, 1), (true, 2)], vec!["down", "up"]),
        ] {
            let states: Vec<_> = [(true, 0)].into_iter().chain(then.iter().copied()).collect();
            let expected: Vec<_> = first.into_iter().chain(expected).collect();
            assert_eq!(told(&states), expected, "{then:?}");
        }
    }

    #[test]
    fn what_was_told_before_it_was_asked_changes_nothing() {
        assert_eq!(told(&[(true, 0), (true, 1), (false, 1), (true, 1)]), ["appeared", "up", "flapped"]);
        // The counts begin anew at some time.
        assert_eq!(told(&[(true, u32::MAX), (true, 0)]), ["appeared", "up", "flapped"]);
    }

    #[test]
    fn the_router_with_the_smallest_metric_is_taken() {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let by = |last, metric, interface| Route {
            via: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))),
            metric: Some(metric),
            ..Route::default_through(interface, any)
        };
        let routes = [by(1, 600, 2), by(2, 100, 2), by(3, 1, 3), Route::default_through(4, any)];
        assert_eq!(gateway(&routes, 2), Some(Ipv4Addr::new(192, 0, 2, 2)));
        assert_eq!(gateway(&routes, 4), None);
    }
}
