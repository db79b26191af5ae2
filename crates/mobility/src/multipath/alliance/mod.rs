//! The cluster: mobile nodes that lend each other their links (sections 2.1 to 2.3 of the paper).
//!
//! A [`Relay`] advertises its link every two seconds, admits clients, forwards their packets and nobody else's, limits and counts
//! them. A [`Client`] hears advertisements, asks the relays that it may and wants to use, renews what they grant and tells its owner
//! which care-of addresses it has through them. A node can be both.
//!
//! **Loops.** A relay forwards, from the cluster, what an ally sends in its own name to its home agent, and that leaves by the relay's own
//! link, never through another relay; from its link, what the ally's home agent sends to it, and that goes to the ally alone. Should two
//! relays be made each other's allies all the same, as by requests that somebody forged where the first one is trusted, a packet goes no
//! further than its time to live lets it: each relay takes one hop of it.
//!
//! **On the wire.** The tunnel of a path through a relay is switched there: what comes by the relay's link is IPv4 within IPv4 from the home
//! agent to the care-of address, and goes on from the relay's to the client's address in the cluster; the other way round just so. Neither
//! system meets addresses that are not its own or its neighbour's, as where the relay passed on what was within.
//!
//! **Trust.** With [`Trust::Keys`] both have agreed on a key, and the cluster on one for advertisements. With [`Trust::FirstUse`] a
//! client introduces a key of its own with its first request, and the relay keeps to it for that home address: whoever hears that
//! first message can pose as the client later, and nobody else can. What a client says has an authenticator, the challenge that the relay
//! drew when it began, and a counter that goes up; what a relay says of an alliance has an authenticator and the nonce of the request
//! that it is about. So neither can be replayed, whoever of the two has restarted, forgotten the other or has a clock that was set back.
//! Advertisements are numbered where they are authenticated; others are believed only while there is no alliance yet.
//!
//! **Strangers.** What does not come from an address within the cluster, or has passed a router on the way ([`CLUSTER_TTL`]), has no effect.
//!
//! **A relay that lies** about its rate, drops, or vanishes costs what its link would have carried: paths are measured
//! ([`super::Path`]), and its path goes out when nothing comes through. What it says its address is can be somebody else's: addresses
//! that cannot be a relay's are refused, and over the path through a relay nothing is sent but probes before one was answered
//! ([`super::Bond::set_path_to_prove`]).

mod client;
mod interfaces;
mod meter;
mod relay;
mod switching;

use alloc::vec::Vec;
use core::net::Ipv4Addr;
use core::time::Duration;

use careof_wire::mip4::Spi;
use careof_wire::shake::{ReceivedShake, ShakeKey};

pub use client::{Client, ClientConfig, ClientEvent, RelayLost, client_secret};
pub use interfaces::{RelayInterfaceChange, RelayInterfaces};
pub use relay::{AllyEnd, AllyRecord, Relay, RelayConfig, RelayDrop, RelayEvent};
pub use switching::{Forwarded, Incoming, Onward, Side};

/// The UDP port of the messages of a cluster, in both places: the second of the ports for experiments (RFC 4727 section 6). Whoever has a
/// message for all of the cluster broadcasts it.
pub const CLUSTER_PORT: u16 = 1022;
/// The time to live of these messages, hops: what has less has passed a router and is none of the cluster's (RFC 5082 section 3).
pub const CLUSTER_TTL: u8 = 255;
/// Between advertisements (section 2.2 of the paper).
pub const ADVERTISEMENT_INTERVAL: Duration = Duration::from_secs(2);
/// Advertisements that may be missed before a relay counts as gone, as RFC 5944 section 2.4.2.1 has it of agents.
pub const MISSED_ADVERTISEMENTS: u32 = 3;

/// A key that two nodes, or all of a cluster, have agreed on.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    /// Its name; not 0.
    pub spi: Spi,
    /// The secret.
    pub key: Vec<u8>,
}

impl core::fmt::Debug for ClusterKey {
    /// Without the key: debug output ends up in logs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ClusterKey").field("spi", &self.spi).finish_non_exhaustive()
    }
}

impl ClusterKey {
    pub(super) fn as_wire(&self) -> ShakeKey<'_> {
        ShakeKey { spi: self.spi, key: &self.key }
    }

    pub(super) fn has_made(&self, received: &ReceivedShake<'_>) -> bool {
        received.spi == Some(self.spi) && received.is_genuine(&self.key)
    }
}

/// Whom a node believes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those with whom a key was agreed on: at a relay by the client's home address, at a client by the relay's cluster address.
    /// Advertisements have one for the whole cluster.
    Keys {
        /// For advertisements.
        cluster: ClusterKey,
        /// For alliances.
        peers: Vec<(Ipv4Addr, ClusterKey)>,
    },
    /// Whoever comes first.
    FirstUse,
}

/// The SPI of introduced keys: 256, the first that is not reserved.
const INTRODUCED: Spi = Spi(256);

/// A message to the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterTransmit {
    /// To whom; `None`: to all of the cluster.
    pub destination: Option<Ipv4Addr>,
    /// The payload of the UDP datagram.
    pub payload: Vec<u8>,
}

/// Why a message had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterDrop {
    /// It cannot be parsed.
    Malformed,
    /// It has no authenticator, or another one's.
    NotGenuine,
    /// Its counter or sequence number is not higher than the last one, or it is about what is over.
    Replayed,
    /// It is for another role, or for somebody else.
    NotForUs,
    /// Nobody waits for it.
    Unexpected,
    /// There is no room to remember it.
    TableFull,
    /// It is not from an address of the cluster, or has passed a router.
    NotOfCluster,
    /// It names an address that cannot be used for what it is for.
    UnusableAddress,
}

impl ClusterDrop {
    /// Every reason, in the order of their discriminants.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::NotGenuine,
        Self::Replayed,
        Self::NotForUs,
        Self::Unexpected,
        Self::TableFull,
        Self::NotOfCluster,
        Self::UnusableAddress,
    ];

    /// Its name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotGenuine => "not-genuine",
            Self::Replayed => "replayed",
            Self::NotForUs => "not-for-us",
            Self::Unexpected => "unexpected",
            Self::TableFull => "table-full",
            Self::NotOfCluster => "not-of-cluster",
            Self::UnusableAddress => "unusable-address",
        }
    }
}

/// Messages of a cluster that came, went, and had no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterCounters {
    /// Messages that came.
    pub received: u64,
    /// Messages that were sent.
    pub sent: u64,
    drops: crate::drop_counts::DropCounts<{ ClusterDrop::ALL.len() }>,
}

impl ClusterCounters {
    /// Messages that had no effect for this reason.
    #[must_use]
    pub fn dropped(&self, reason: ClusterDrop) -> u64 {
        self.drops.of(reason as usize)
    }

    fn drop(&mut self, reason: ClusterDrop) {
        self.drops.count(reason as usize);
    }
}

#[cfg(test)]
mod tests;
