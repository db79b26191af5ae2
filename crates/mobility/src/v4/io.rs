//! What agents and nodes are handed, and what they hand back.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use crate::{InterfaceId, LinkAddress};

/// The UDP port of registrations (RFC 5944 section 3.2).
pub const REGISTRATION_PORT: u16 = 434;
/// Where agents send advertisements: all systems on the link.
pub const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// Where nodes send solicitations: all routers on the link.
pub const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
/// Where a node may send a request when it knows no agent's address: all mobility agents on the link.
pub const ALL_MOBILITY_AGENTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);
/// The time to live of registrations where the protocol asks for none in particular.
pub(crate) const DEFAULT_TTL: u8 = 64;

/// An address of the node itself on an interface, from whatever assigns them there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceAddress {
    /// The address; it serves as co-located care-of address, unless it is the home address.
    pub address: Ipv4Addr,
    /// The bits of its network, 0 to 32.
    pub prefix_length: u8,
    /// The default router there; `None` on a point-to-point link.
    pub gateway: Option<Ipv4Addr>,
}

/// Something that reached a node and concerns its mobility.
///
/// The owner has checked IP and UDP checksums; the ICMP checksum is checked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input<'a> {
    /// A datagram to UDP port 434, or to the port a mobile node registers from.
    Udp {
        /// Where it came in.
        interface: InterfaceId,
        /// Its IP source.
        source: Ipv4Addr,
        /// Its UDP source port.
        source_port: u16,
        /// Its IP destination.
        destination: Ipv4Addr,
        /// Its UDP destination port.
        destination_port: u16,
        /// Its time to live as received.
        ttl: u8,
        /// Foreign agent: from which station of the link it came, where its frame had such an address.
        link_address: Option<LinkAddress>,
        /// The message.
        payload: &'a [u8],
    },
    /// An ICMP message: router discovery, or destination unreachable.
    Icmp {
        /// Where it came in.
        interface: InterfaceId,
        /// Its IP source.
        source: Ipv4Addr,
        /// Its IP destination.
        destination: Ipv4Addr,
        /// Its time to live as received.
        ttl: u8,
        /// From the ICMP type on.
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
    /// `interface` has got, changed or lost its address.
    AddressChanged {
        /// Which.
        interface: InterfaceId,
        /// What it has now.
        address: Option<InterfaceAddress>,
    },
}

/// A packet to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Through which interface; `None` leaves it to the owner's routes.
    pub interface: Option<InterfaceId>,
    /// IP source; unspecified (0.0.0.0) from a node that has no address yet.
    pub source: Ipv4Addr,
    /// IP destination; also a link's broadcast or a multicast group.
    pub destination: Ipv4Addr,
    /// Time to live.
    pub ttl: u8,
    /// What it carries.
    pub payload: TransmitPayload,
}

/// The transport part of a [`Transmit`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransmitPayload {
    /// A registration message.
    Udp {
        /// UDP source port.
        source_port: u16,
        /// UDP destination port.
        destination_port: u16,
        /// The payload; the owner writes the UDP header with its checksum.
        bytes: Vec<u8>,
    },
    /// An agent advertisement or solicitation, checksum included.
    Icmp {
        /// From the ICMP type on.
        bytes: Vec<u8>,
    },
}

impl TransmitPayload {
    /// The bytes behind the IP (and UDP) header.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Udp { bytes, .. } | Self::Icmp { bytes } => bytes,
        }
    }
}

/// Why a node wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// An agent advertisement is due.
    AdvertisementDue,
    /// An agent solicitation is due.
    SolicitationDue,
    /// A request has had no reply for too long, or may go out now.
    RegistrationRetransmit,
    /// A registration is to be renewed.
    RegistrationRenewal,
    /// A mobility binding expires.
    BindingLifetime,
    /// What comes from a care-of address that was left is no longer taken.
    LateReverseTunnel,
    /// A visitor's registration expires.
    VisitorLifetime,
    /// A relayed request has had no reply for too long.
    PendingRequest,
    /// The lifetime of an agent's last advertisement ends.
    AdvertisementLifetime,
    /// Too many advertisements of an agent are missing.
    MissedAdvertisements,
    /// A better interface has been usable for long enough.
    HoldTime,
    /// A binding update has had no acknowledgement for too long, or what it told ends.
    BindingUpdateLifetime,
    /// A correspondent's binding that is in use is to be asked for again.
    BindingRefresh,
    /// The old interface of a handover need not be listened to any longer.
    OldInterfaceRelease,
    /// A path is to be probed, or a probe of one has had its time.
    PathProbe,
}
