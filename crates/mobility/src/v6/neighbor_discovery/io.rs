//! What neighbor discovery on an interface hands out, and what it counts.

use alloc::vec::Vec;
use core::net::Ipv6Addr;
use core::time::Duration;

use careof_wire::icmpv6::{LinkLayerAddress, MapOption};

use crate::drop_counts::DropCounts;
use crate::outbox::Tally;
use crate::v6::Prefix;

/// An ICMPv6 message to be sent through the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// IPv6 source; unspecified from a node that has no address yet.
    pub source: Ipv6Addr,
    /// IPv6 destination.
    pub destination: Ipv6Addr,
    /// The station it goes to: of a multicast group the one of RFC 2464 section 7. `None`: the destination's, which the owner
    /// resolves as for any other packet.
    pub link_layer_destination: Option<LinkLayerAddress>,
    /// The hop limit.
    pub hop_limit: u8,
    /// Whether a hop-by-hop header with the Router Alert option goes in front, as for Multicast Listener Discovery.
    pub router_alert: bool,
    /// From the ICMPv6 type on, checksum included.
    pub message: Vec<u8>,
}

/// The station that receives a multicast packet on links of the IEEE 802 family (RFC 2464 section 7).
#[must_use]
pub const fn multicast_link_layer_address(group: Ipv6Addr) -> LinkLayerAddress {
    let [.., a, b, c, d] = group.octets();
    LinkLayerAddress([0x33, 0x33, a, b, c, d])
}

/// Why an address is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressLoss {
    /// Its valid lifetime has ended.
    Expired,
    /// Another node has it.
    Duplicate,
    /// The link is down, or another.
    LinkLost,
    /// The owner has taken it away.
    Removed,
}

/// What happened on the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A default router is new, or has told of a prefix that is new. Its prefixes, 16 at most.
    RouterFound {
        /// Its link-local address.
        router: Ipv6Addr,
        /// The on-link prefixes it advertises, in the order in which it told them.
        prefixes: Vec<Prefix>,
    },
    /// A default router is none any more: its lifetime has ended, its advertisements are missing, or it is unreachable.
    RouterLost {
        /// Its link-local address.
        router: Ipv6Addr,
    },
    /// A default router has told of mobility anchor points, as it does in each of its advertisements (RFC 5380 section 5). Those of the first
    /// options of one, 8 at most.
    MapsFound {
        /// The router's link-local address.
        router: Ipv6Addr,
        /// What it says of them.
        maps: Vec<MapOption>,
    },
    /// An address can be used: it is unique, or optimistic. Or the end of its validity has changed considerably.
    AddressAssigned {
        /// The address.
        address: Ipv6Addr,
        /// The prefix it was formed of.
        prefix: Prefix,
        /// For how long it is valid; `None`: forever.
        valid_for: Option<Duration>,
        /// Whether another node may turn out to have it (RFC 4429).
        optimistic: bool,
    },
    /// An address is not to be used for what begins now (RFC 4862 section 5.5.4).
    AddressDeprecated {
        /// The address.
        address: Ipv6Addr,
    },
    /// An address that was assigned, or tentative, is no more.
    AddressRemoved {
        /// The address.
        address: Ipv6Addr,
        /// Why.
        loss: AddressLoss,
    },
    /// The duplicate address detection that the owner had asked for is over.
    DetectionDone {
        /// The address.
        address: Ipv6Addr,
        /// Whether nobody else has it.
        unique: bool,
    },
    /// Another node has the link-local address of this node's hardware: the interface is not to be used for IPv6 (RFC 4862 section
    /// 5.4.5). It is not, until its link comes up again.
    InterfaceDisabled,
    /// The packets that wait for a neighbor can be sent.
    NeighborResolved {
        /// The neighbor.
        neighbor: Ipv6Addr,
        /// Where they go.
        link_layer_address: LinkLayerAddress,
    },
    /// A neighbor does not answer: the packets that wait for it are dropped, their sources told that the address is unreachable.
    NeighborUnreachable {
        /// The neighbor.
        neighbor: Ipv6Addr,
    },
    /// Routers say that the link has another MTU, bytes.
    LinkMtu(u32),
    /// Routers say which hop limit packets are to have.
    HopLimit(u8),
}

/// Why neighbor discovery wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A router solicitation is due.
    RouterSolicitationDue,
    /// A router advertisement is due.
    RouterAdvertisementDue,
    /// A duplicate address detection goes on, or ends.
    DuplicateAddressDetection,
    /// A neighbor has not answered, or has not been confirmed for too long.
    NeighborReachability,
    /// An unsolicited neighbor advertisement is repeated.
    NeighborAdvertisementDue,
    /// A router's lifetime ends, or its advertisements are missing.
    RouterLifetime,
    /// The validity of an on-link prefix ends.
    PrefixLifetime,
    /// An address becomes deprecated or invalid.
    AddressLifetime,
}

/// Why a message had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It cannot be parsed, or its checksum is wrong.
    Malformed,
    /// It is not valid by its IP header (RFC 4861 sections 6.1, 7.1 and 8.1).
    NotValid,
    /// A message that a node of this role has no use for, or about an address it does not have.
    NotForUs,
    /// A redirect: they are ignored.
    Redirect,
    /// A solicitation of this node itself, looped back (RFC 7527).
    LoopedBack,
    /// Some of what it says found no room.
    TableFull,
    /// The interface is down, or disabled.
    InterfaceDown,
}

impl DropReason {
    /// All reasons, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::NotValid,
        Self::NotForUs,
        Self::Redirect,
        Self::LoopedBack,
        Self::TableFull,
        Self::InterfaceDown,
    ];

    /// The name in traces and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::NotValid => "not-valid",
            Self::NotForUs => "not-for-us",
            Self::Redirect => "redirect",
            Self::LoopedBack => "looped-back",
            Self::TableFull => "table-full",
            Self::InterfaceDown => "interface-down",
        }
    }
}

/// What neighbor discovery on an interface has received and done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages handed in.
    pub received: u64,
    /// Messages handed out.
    pub sent: u64,
    /// Addresses that another node turned out to have.
    pub duplicates: u64,
    dropped: DropCounts<{ DropReason::ALL.len() }>,
}

impl Counters {
    /// Messages dropped for `reason`.
    #[must_use]
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped.of(reason as usize)
    }

    /// Messages dropped for any reason.
    #[must_use]
    pub fn dropped_total(&self) -> u64 {
        self.dropped.total()
    }

    pub(super) fn count_drop(&mut self, reason: DropReason) {
        self.dropped.count(reason as usize);
    }
}

impl Tally for Counters {
    fn received(&mut self) -> &mut u64 {
        &mut self.received
    }

    fn sent(&mut self) -> &mut u64 {
        &mut self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_counter_and_name() {
        let mut counters = Counters::default();
        for (index, &reason) in DropReason::ALL.iter().enumerate() {
            assert_eq!(reason as usize, index);
            counters.count_drop(reason);
            assert_eq!(counters.dropped(reason), 1);
            assert_eq!(DropReason::ALL.iter().filter(|r| r.name() == reason.name()).count(), 1);
        }
        assert_eq!(counters.dropped_total(), DropReason::ALL.len() as u64);
    }

    #[test]
    fn a_group_has_the_station_of_rfc_2464() {
        let group = "ff02::1:ff0e:8c6c".parse().unwrap();
        assert_eq!(
            multicast_link_layer_address(group),
            LinkLayerAddress([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c])
        );
    }
}
