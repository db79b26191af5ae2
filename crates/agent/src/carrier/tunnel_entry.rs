//! How a datagram enters its tunnels, and what these take of it.

use std::time::Duration;

use careof_assist::PathId;
use careof_base::Instant;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, Tunnel};

use super::assists::{Assists, Heading, Shown, Stored};
use super::data_plane::{Lane, lane_of};
use super::decisions::{Decisions, Entrance};

/// How long an MTU is believed before the kernel is asked again. The kernel itself ages what it has learnt from
/// routers (`net.ipv4.route.mtu_expires`, ten minutes as RFC 1191 section 6.3 wants); this bounds how long a change
/// of a link of ours stays unnoticed.
pub(super) const KERNEL_BELIEVED: Duration = Duration::from_secs(30);

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
    /// A datagram of at most so many bytes.
    Whole(u16),
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

/// The longest fragments in which a stored packet may enter its tunnel, where that swallows what is larger.
pub(super) fn longest_fragments(
    now: Instant,
    assists: &Assists,
    stored: &Stored,
    via: Option<PathId>,
    decisions: &mut Decisions,
) -> Option<u16> {
    let (header, _) = Ipv4Header::parse(&stored.datagram).ok().filter(|_| stored.heading == Heading::Out)?;
    let present = || decisions.entrances_for(&header).last().map(|entrance| entrance.path);
    let path = via.or_else(present)?;
    assists.longest_fragments(now, &header, path, decisions.overhead(&header))
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

/// The longest datagram that the tunnel takes, if `len` is more.
pub(super) fn too_long(now: Instant, lanes: &[Lane; 3], entrance: &mut Entrance, len: usize) -> Option<u16> {
    let mtu = mtu_of(now, lanes, entrance);
    (len > usize::from(mtu)).then_some(mtu)
}

/// The longest datagram that the tunnel takes.
pub(super) fn mtu_of(now: Instant, lanes: &[Lane; 3], entrance: &mut Entrance) -> u16 {
    let path_mtu = entrance.path_mtu.get(now).unwrap_or_else(|| {
        let Tunnel { entry, exit, encapsulation, .. } = entrance.tunnel;
        let lane = lanes.get(lane_of(encapsulation));
        let asked = lane.and_then(|lane| lane.socket.path_mtu(entry, exit, entrance.interface).ok());
        // Without an answer the packet itself will show.
        let mtu = asked.unwrap_or(u16::MAX);
        entrance.path_mtu.learn(now, mtu, KERNEL_BELIEVED);
        mtu
    });
    entrance.tunnel.mtu(path_mtu)
}
