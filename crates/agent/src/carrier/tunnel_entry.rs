//! How a datagram enters its tunnels, and what these take of it.

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::Departure;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, Tunnel};

use super::assists::Shown;
use super::data_plane::{DataPlane, lane_of};
use super::paths::{PathKey, Paths, Room};

/// How a datagram enters its tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The one of this path only.
    pub(super) via: Option<PathId>,
    /// In fragments of at most so many bytes, whatever its DF bit says.
    pub(super) fragments: Option<u16>,
}

impl Way {
    /// By all that there are at present, as it is.
    pub(super) const PRESENT: Self = Self { via: None, fragments: None };
}

/// What a tunnel takes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fits {
    /// A datagram of at most so many bytes; it keeps its DF bit outside, unless its path takes it in fragments only.
    Whole(Capacity),
    /// One of any length, in fragments of at most so many bytes of its outside.
    Fragments(u16),
    /// One of any length, which others may make fragments of.
    Any,
}

pub(super) const fn fragments(shown: Shown) -> Option<u16> {
    match shown {
        Shown::PassesInFragments(longest) => Some(longest),
        Shown::Passes | Shown::Stays => None,
    }
}

/// Minimal encapsulation has no room for a fragment (RFC 2004 section 2); it travels IP within IP.
pub(super) fn way_for(tunnel: Tunnel, header: &Ipv4Header) -> Tunnel {
    match tunnel.encapsulation {
        Encapsulation::Minimal if header.is_fragment() => {
            Tunnel { encapsulation: Encapsulation::IpInIp, ..tunnel }
        }
        _ => tunnel,
    }
}

/// The encapsulation of `of` with the sequence number that `used` has got to.
pub(super) fn counted(of: Tunnel, used: Tunnel) -> Encapsulation {
    match (of.encapsulation, used.encapsulation) {
        (Encapsulation::Gre { .. }, gre @ Encapsulation::Gre { .. }) => gre,
        (unchanged, _) => unchanged,
    }
}

/// What a tunnel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    /// The longest datagram, bytes.
    pub(super) mtu: u16,
    /// How it leaves.
    pub(super) departure: Departure,
}

impl DataPlane {
    /// What a tunnel takes of datagrams that are not to be fragmented.
    pub(super) fn capacity(
        &self,
        now: Instant,
        tunnel: Tunnel,
        interface: Option<u32>,
        paths: &mut Paths,
    ) -> Capacity {
        let Some(path) = paths.get(PathKey::of(tunnel, interface)) else {
            let departure = Departure { interface, ..Departure::default() };
            return Capacity { mtu: tunnel.mtu(u16::MAX), departure };
        };
        path.first_hop(now, || {
            let lane = self.lanes.get(lane_of(tunnel.encapsulation))?;
            lane.socket.first_hop_mtu(tunnel.entry, tunnel.exit, interface).ok()
        });
        let Room { mtu, longest_whole } = path.room(now, self.path_mtu_floor);
        Capacity { mtu: tunnel.mtu(mtu), departure: Departure { interface, longest_whole } }
    }
}
