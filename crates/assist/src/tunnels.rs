//! What the paths of tunnels carry, as far as it has shown.

use alloc::collections::BTreeMap;
use core::net::IpAddr;

use careof_base::Instant;
use careof_mobility::path_mtu::PathMtu;

use crate::{PathId, Place};

/// A tunnel: a home agent's leads to a care-of address, whoever is there; others lead one mobile node's packets home.
pub(crate) type Tunnel = (Option<IpAddr>, PathId);

/// The one by whose path the packets of a mobile node go.
pub(crate) const fn tunnel(place: Place, mobile: IpAddr, path: PathId) -> Tunnel {
    match place {
        Place::HomeAgent => (None, path),
        Place::ForeignAgent | Place::MobileNode => (Some(mobile), path),
    }
}

/// What is known of the path of a tunnel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Capacity {
    /// The largest outer datagram of late that got through whole, and until when that says anything.
    pub(crate) proven: PathMtu,
    /// How often fragments have helped where the whole did not get through.
    pub(crate) helped: u32,
    /// The MTU that it is taken to have.
    pub(crate) assumed: PathMtu,
    seen: Instant,
}

/// What is known of all of them.
#[derive(Debug, Default)]
pub(crate) struct Tunnels {
    by_tunnel: BTreeMap<Tunnel, Capacity>,
}

impl Tunnels {
    /// The MTU that a path is taken to have, if it is a black hole for what is larger: bytes of the outer datagram.
    pub(crate) fn assumed(&self, now: Instant, place: Place, mobile: IpAddr, path: PathId) -> Option<u16> {
        self.get(&tunnel(place, mobile, path))?.assumed.get(now)
    }

    /// What is known of a tunnel.
    pub(crate) fn get(&self, at: &Tunnel) -> Option<&Capacity> {
        self.by_tunnel.get(at)
    }

    /// What is known of a tunnel, to be changed; of more than `most` the one that was not looked at for longest is forgotten.
    pub(crate) fn entry(&mut self, now: Instant, at: Tunnel, most: usize) -> &mut Capacity {
        if self.by_tunnel.len() >= most
            && !self.by_tunnel.contains_key(&at)
            && let Some(oldest) =
                self.by_tunnel.iter().min_by_key(|(_, capacity)| capacity.seen).map(|(at, _)| *at)
        {
            self.by_tunnel.remove(&oldest);
        }
        let capacity = self.by_tunnel.entry(at).or_default();
        capacity.seen = now;
        capacity
    }
}
