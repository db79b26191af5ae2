//! What agents and nodes are handed, and what they hand back.

use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};
use core::time::Duration;

use careof_wire::icmpv6::MapOption;
use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{Extensions, Ipv6Header};
use careof_wire::udp::UdpHeader;

use super::Prefix;
use crate::InterfaceId;

/// The hop limit of what is not neighbor discovery.
pub(crate) const DEFAULT_HOP_LIMIT: u8 = 64;

/// A tunnel by the addresses of its outer header: IPv6 (RFC 2473), or where both are IPv4-mapped IPv4 (RFC 4213 and 2003).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tunnel {
    /// The source address of the outer header.
    pub entry: Ipv6Addr,
    /// The destination address of the outer header.
    pub exit: Ipv6Addr,
}

impl Tunnel {
    /// A tunnel through IPv4.
    #[must_use]
    pub const fn through_ipv4(entry: Ipv4Addr, exit: Ipv4Addr) -> Self {
        Self { entry: entry.to_ipv6_mapped(), exit: exit.to_ipv6_mapped() }
    }

    /// Entry and exit of a tunnel through IPv4; `None` of one through IPv6.
    #[must_use]
    pub fn ipv4_ends(self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        self.entry.to_ipv4_mapped().zip(self.exit.to_ipv4_mapped())
    }
}

/// The addresses of a packet, in all places where Mobile IPv6 puts one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Addresses {
    /// The source address of the IPv6 header.
    pub source: Ipv6Addr,
    /// The destination address of the IPv6 header.
    pub destination: Ipv6Addr,
    /// The address in the Home Address option: the sender's home address, while `source` is its care-of address (RFC 6275 section
    /// 6.3).
    pub home_address: Option<Ipv6Addr>,
    /// The address in the type 2 routing header: the receiver's home address, while `destination` is its care-of address (RFC 6275
    /// section 6.4).
    pub type_2_routing: Option<Ipv6Addr>,
    /// The tunnel that the packet goes, or has come, through.
    pub tunnel: Option<Tunnel>,
    /// The outermost tunnel, between a mobile node and its mobility anchor point (RFC 5380), around the packet or around `tunnel`. Without a
    /// [`HierarchicalMobileNode`](super::HierarchicalMobileNode) there is none.
    pub map_tunnel: Option<Tunnel>,
    /// The mobile node's port, where the packet is in UDP in a tunnel through IPv4 (RFC 5555 section 4.1); the home agent's is
    /// [`careof_wire::mip6::DSMIPV6_PORT`]. `None`: the tunnel's outer header is right in front of it.
    pub udp_port: Option<u16>,
}

impl Addresses {
    /// A packet from `source` to `destination`, and nothing else.
    #[must_use]
    pub const fn new(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self {
            source,
            destination,
            home_address: None,
            type_2_routing: None,
            tunnel: None,
            map_tunnel: None,
            udp_port: None,
        }
    }

    /// The same packet with a Home Address option.
    #[must_use]
    pub const fn with_home_address(self, home_address: Ipv6Addr) -> Self {
        Self { home_address: Some(home_address), ..self }
    }

    /// The same packet with a type 2 routing header.
    #[must_use]
    pub const fn with_type_2_routing(self, home_address: Ipv6Addr) -> Self {
        Self { type_2_routing: Some(home_address), ..self }
    }

    /// The same packet in a tunnel.
    #[must_use]
    pub const fn through(self, tunnel: Tunnel) -> Self {
        Self { tunnel: Some(tunnel), ..self }
    }

    /// The same packet in the outermost tunnel, between a mobile node and its mobility anchor point.
    #[must_use]
    pub const fn through_map(self, tunnel: Tunnel) -> Self {
        Self { map_tunnel: Some(tunnel), ..self }
    }

    /// The same packet in UDP from or to this port of the mobile node, in its tunnel.
    #[must_use]
    pub const fn in_udp(self, port: u16) -> Self {
        Self { udp_port: Some(port), ..self }
    }

    /// Entry and exit of the tunnel through IPv4 that the packet goes, or has come, through.
    #[must_use]
    pub fn ipv4_tunnel(&self) -> Option<(Ipv4Addr, Ipv4Addr)> {
        self.tunnel.and_then(Tunnel::ipv4_ends)
    }

    /// The sender as upper layers and checksums see it: the home address where there is one.
    #[must_use]
    pub fn real_source(&self) -> Ipv6Addr {
        self.home_address.unwrap_or(self.source)
    }

    /// Bytes of the headers that carry these addresses, beside one IPv6 header: what upper layers have to leave room for, above all where
    /// tunnels are nested (RFC 5380 section 11).
    #[must_use]
    pub fn overhead(&self) -> u16 {
        let length = |tunnel: &Tunnel| match tunnel.ipv4_ends() {
            Some(_) if self.udp_port.is_some() => Ipv4Header::LEN + UdpHeader::LEN,
            Some(_) => Ipv4Header::LEN,
            None => Ipv6Header::LEN,
        };
        let tunnels: u16 = self.tunnel.iter().chain(&self.map_tunnel).map(length).sum();
        tunnels
            + u16::from(self.home_address.is_some()) * Extensions::HOME_ADDRESS_LEN
            + u16::from(self.type_2_routing.is_some()) * Extensions::TYPE_2_ROUTING_LEN
    }

    /// The receiver as upper layers and checksums see it: the home address where there is one.
    #[must_use]
    pub fn real_destination(&self) -> Ipv6Addr {
        self.type_2_routing.unwrap_or(self.destination)
    }
}

/// An address of the node itself that can be a care-of address: formed, unique on its link, and assigned. One of IPv4 is IPv4-mapped,
/// its prefix 96 bits longer; a node that knows no IPv4 address of its home agent has no use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// The prefix it was formed from.
    pub prefix: Prefix,
    /// For how long it is valid from now on; `None`: forever, as far as is known.
    pub valid_for: Option<Duration>,
}

/// Something that reached a node and concerns its mobility.
///
/// The owner has walked the extension headers and checked what they say (`careof_wire::ipv6::Packet::parse`). Checksums of Mobility
/// Headers and of ICMPv6 are checked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A packet with a Mobility Header.
    Mobility {
        /// Where it came in.
        interface: InterfaceId,
        /// Its addresses.
        addresses: Addresses,
        /// From the Mobility Header on.
        message: &'a [u8],
    },
    /// An ICMPv6 message: home agent discovery, prefix discovery, router advertisements to home agents, errors.
    Icmp {
        /// Where it came in.
        interface: InterfaceId,
        /// Its addresses.
        addresses: Addresses,
        /// The hop limit as received.
        hop_limit: u8,
        /// From the ICMPv6 type on.
        message: &'a [u8],
    },
    /// The link layer says that `interface` can carry packets.
    LinkUp {
        /// Which.
        interface: InterfaceId,
    },
    /// The link layer says that `interface` cannot carry packets.
    LinkDown {
        /// Which.
        interface: InterfaceId,
    },
    /// Neighbor discovery has found a router, or has heard it again with other prefixes (mobile node).
    RouterFound {
        /// Where.
        interface: InterfaceId,
        /// Its link-local address.
        router: Ipv6Addr,
        /// The on-link prefixes it advertises.
        prefixes: &'a [Prefix],
    },
    /// A router is no longer there: its lifetime has ended, its advertisements are missing, or it is unreachable (mobile node).
    RouterLost {
        /// Where.
        interface: InterfaceId,
        /// Its link-local address.
        router: Ipv6Addr,
    },
    /// A router has told of mobility anchor points (hierarchical mobile node).
    MapsFound {
        /// Where.
        interface: InterfaceId,
        /// The router's link-local address.
        router: Ipv6Addr,
        /// What its advertisement says of them (RFC 5380 section 5).
        maps: &'a [MapOption],
    },
    /// The interface has a new address, or the lifetime of one has changed (mobile node).
    AddressAdded {
        /// Which interface.
        interface: InterfaceId,
        /// The address.
        address: InterfaceAddress,
    },
    /// The interface has lost an address (mobile node).
    AddressRemoved {
        /// Which interface.
        interface: InterfaceId,
        /// The address.
        address: Ipv6Addr,
    },
    /// The outcome of a Duplicate Address Detection that the node has asked for by `NeighborEvent::DetectDuplicate`.
    DuplicateAddressDetection {
        /// On which link.
        interface: InterfaceId,
        /// The address in question.
        address: Ipv6Addr,
        /// Whether nobody else has it.
        unique: bool,
    },
}

/// A packet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Through which interface; `None` leaves it to the owner's routes.
    pub interface: Option<InterfaceId>,
    /// Its addresses: the owner writes the headers they need.
    pub addresses: Addresses,
    /// The hop limit.
    pub hop_limit: u8,
    /// What it carries.
    pub payload: TransmitPayload,
}

/// What a [`Transmit`] carries, checksum included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransmitPayload {
    /// A Mobility Header.
    Mobility(Vec<u8>),
    /// An ICMPv6 message.
    Icmp(Vec<u8>),
}

impl TransmitPayload {
    /// The bytes behind the IPv6 headers.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Mobility(bytes) | Self::Icmp(bytes) => bytes,
        }
    }
}

/// Why a node wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A Binding Update has had no acknowledgement for too long, or may go out now.
    BindingUpdateRetransmit,
    /// A binding is to be renewed.
    BindingRenewal,
    /// A binding ends.
    BindingLifetime,
    /// A mobile node is to be asked for a new Binding Update, because its binding is in use (correspondent node).
    BindingRefresh,
    /// What is remembered of a binding that is gone, or of a care-of address that was left, may be forgotten.
    DeletedBinding,
    /// A Duplicate Address Detection has had no outcome for too long.
    DuplicateAddressDetection,
    /// A home agent's lifetime in the list of home agents ends.
    HomeAgentLifetime,
    /// The lifetime of a home network's prefix ends.
    PrefixLifetime,
    /// A Mobile Prefix Advertisement is due.
    PrefixAdvertisementDue,
    /// A Mobile Prefix Solicitation is due.
    PrefixSolicitationDue,
    /// A request for the addresses of home agents is due.
    HomeAgentDiscovery,
    /// A Home Test Init or Care-of Test Init is due.
    ReturnRoutability,
    /// A path is to be probed, or its probes have had their time.
    PathProbe,
    /// The lifetime of a care-of address ends.
    AddressLifetime,
    /// A better interface has been usable for long enough.
    HoldTime,
    /// The old interface of a handover need not be listened to any longer.
    OldInterfaceRelease,
    /// What is known of a mobility anchor point ends, or it may be tried again, or need not send on packets any longer.
    AnchorPoint,
}
