//! The interfaces of a mobile node that stand for relays.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::client::ClientEvent;
use crate::v4::{InterfaceAddress, InterfaceId};

/// Which interface of a mobile node ([`crate::v4::InterfaceConfig::relay`]) stands for which relay.
#[derive(Clone, Debug)]
pub struct RelayInterfaces {
    /// In the order in which they are taken.
    places: Vec<(InterfaceId, Option<Lent>)>,
}

/// A relay in use.
#[derive(Clone, Copy, Debug)]
struct Lent {
    /// Its address in the cluster.
    relay: Ipv4Addr,
    /// That of its own link.
    outside: Ipv4Addr,
}

/// What a mobile node is to be told: the interface has this address and is up, or has none and is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayInterfaceChange {
    /// The interface.
    pub interface: InterfaceId,
    /// The relay's address on its own link; a mobile node knows no more of that link.
    pub address: Option<InterfaceAddress>,
}

impl RelayInterfaces {
    /// None of these interfaces stands for a relay yet.
    pub fn new(interfaces: impl IntoIterator<Item = InterfaceId>) -> Self {
        Self { places: interfaces.into_iter().map(|interface| (interface, None)).collect() }
    }

    /// What an event of the client means to the mobile node; `None`: nothing, as there is no interface for a relay more.
    pub fn follow(&mut self, event: &ClientEvent) -> Option<RelayInterfaceChange> {
        let (relay, outside) = match *event {
            ClientEvent::RelayGained { relay, outside, .. } => (relay, Some(outside)),
            ClientEvent::RelayLost { relay, .. } => (relay, None),
        };
        let uses_it = |lent: &Option<Lent>| lent.is_some_and(|lent| lent.relay == relay);
        let mut at = self.places.iter().position(|(_, lent)| uses_it(lent));
        if at.is_none() && outside.is_some() {
            at = self.places.iter().position(|(_, lent)| lent.is_none());
        }
        let place = self.places.get_mut(at?)?;
        place.1 = outside.map(|outside| Lent { relay, outside });
        Some(change(place))
    }

    /// What a mobile node is to be told that knows of no relay yet.
    pub fn in_use(&self) -> impl Iterator<Item = RelayInterfaceChange> + '_ {
        self.places.iter().filter(|(_, lent)| lent.is_some()).map(change)
    }

    /// The relay that an interface stands for: its address in the cluster.
    #[must_use]
    pub fn relay_of(&self, interface: InterfaceId) -> Option<Ipv4Addr> {
        let (_, lent) = self.places.iter().find(|(known, _)| *known == interface)?;
        lent.map(|lent| lent.relay)
    }
}

fn change(&(interface, lent): &(InterfaceId, Option<Lent>)) -> RelayInterfaceChange {
    let on = |lent: Lent| InterfaceAddress { address: lent.outside, prefix_length: 32, gateway: None };
    RelayInterfaceChange { interface, address: lent.map(on) }
}
