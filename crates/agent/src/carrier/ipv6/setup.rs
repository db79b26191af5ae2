//! What a carrier of Mobile IPv6 is given: which agent, and how this host is to serve it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_mobility::InterfaceId;
use careof_mobility::v6::access_router::AccessRouterConfig;
use careof_mobility::v6::fast_handover::{CurrentRouter, FastHandoverConfig};
use careof_mobility::v6::{
    CorrespondentNodeConfig, HierarchicalMobileNodeConfig, HomeAgentConfig, HomePrefix, MapAssociation,
    MapSelection, MobileNodeConfig, MobilityAnchorPointConfig, ServedMobileNode,
};
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::ipv6::Ipv6Header;

use crate::carrier::{Device, HostOptions, Role};

/// A home agent on this host. The agent answers for its own addresses, of IPv6 and of IPv4 if it has one, which no interface of the host
/// has.
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6HomeSetup {
    /// What the agent is.
    pub config: HomeAgentConfig,
    /// The interface to the home network, with the number of the configuration's home interface: the agent answers neighbor solicitations
    /// there, for itself and for mobile nodes that are away (RFC 6275 section 10.4.1). `None`: the home network has no link, and routers
    /// send everything for its prefixes to this host.
    pub home_link: Option<Device>,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing.
    pub assist: Option<careof_assist::Config>,
}

/// A mobility anchor point on this host (RFC 5380): a home agent of regional care-of addresses. The agent answers for its own address,
/// which no interface of the host has.
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6AnchorPointSetup {
    /// What the agent is.
    pub config: MobilityAnchorPointConfig,
    /// The interface to the link of the regional care-of addresses, as [`Ipv6HomeSetup::home_link`]. `None`: there is no link, and routers
    /// send everything for its prefixes to this host.
    pub home_link: Option<Device>,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing. It has the place of a home agent's.
    pub assist: Option<careof_assist::Config>,
}

/// What a home agent and a mobility anchor point have in common for the host.
#[derive(Clone, Copy)]
pub(super) struct HomeSide<'a> {
    pub(super) address: Ipv6Addr,
    pub(super) interface: InterfaceId,
    pub(super) prefixes: &'a [HomePrefix],
    pub(super) mobile_nodes: &'a [ServedMobileNode],
    pub(super) home_link: Option<&'a Device>,
    pub(super) host: &'a HostOptions,
}

/// This host as a mobile node. Its addresses are formed by the kernel, from what routers advertise, or given by somebody else, as those of
/// IPv4 are.
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6MobileSetup {
    /// What the node is. Whether its interfaces are up is read from the kernel; what the configuration says about that is not used.
    pub config: MobileNodeConfig,
    /// The interfaces that its configuration speaks of; one for each.
    pub devices: Vec<Device>,
    /// Whether the kernel is told to use an address of these interfaces while it still verifies that nobody else has it (RFC 4429),
    /// which a handover would wait for otherwise, a second or more. Nothing is told where `host` has no parameters set.
    pub optimistic_detection: bool,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing.
    pub assist: Option<careof_assist::Config>,
    /// Its part in fast handovers; `None`: none. Not with mobility anchor points.
    pub fast_handover: Option<Box<FastHandoverSetup>>,
}

/// This host as a mobile node that uses the mobility anchor points of which routers tell (RFC 5380).
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6HierarchicalMobileSetup {
    /// The mobile node. Its tunnel device has to leave room for two headers.
    pub mobile: Ipv6MobileSetup,
    /// The mobility anchor points that it may use; at least one.
    pub maps: Vec<MapAssociation>,
    /// Which of them it uses where several are advertised.
    pub selection: MapSelection,
    /// As [`HierarchicalMobileNodeConfig::patience`].
    pub patience: u32,
    /// As [`HierarchicalMobileNodeConfig::forwarding`].
    pub forwarding: Option<Duration>,
}

impl Ipv6HierarchicalMobileSetup {
    /// A mobile node that uses `maps`, and everything else as [`HierarchicalMobileNodeConfig::new`] has it.
    #[must_use]
    pub fn new(mobile: Ipv6MobileSetup, maps: Vec<MapAssociation>) -> Self {
        let defaults = HierarchicalMobileNodeConfig::new(mobile.config.clone(), Vec::new());
        let HierarchicalMobileNodeConfig { selection, patience, forwarding, .. } = defaults;
        Self { mobile, maps, selection, patience, forwarding }
    }

    /// What the node is, with this configuration of the mobile node.
    pub(crate) fn config(&self, node: MobileNodeConfig) -> HierarchicalMobileNodeConfig {
        let Self { maps, selection, patience, forwarding, .. } = self.clone();
        HierarchicalMobileNodeConfig { node, maps, selection, patience, forwarding }
    }
}

/// An access router of fast handovers on this host (RFC 5568). Nothing else is different about the router: the kernel forwards, and
/// whoever advertises it goes on doing so. The agent is shown only packets for mobile nodes that are between two links.
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6AccessRouterSetup {
    /// What the router is. Its link-local addresses are read from the interfaces; what the configuration says of them is not used where an
    /// interface has one. A new care-of address that is taken is refused or replaced; host routes to previous ones
    /// ([`AddressConflict::UsePrevious`](careof_mobility::v6::access_router::AddressConflict::UsePrevious)) are not made here.
    pub config: AccessRouterConfig,
    /// The interfaces to its links of mobile nodes.
    pub devices: Vec<Device>,
    /// What it takes of the host.
    pub host: HostOptions,
}

/// A mobile node's part in fast handovers (RFC 5568).
#[derive(Clone, Debug, PartialEq)]
pub struct FastHandoverSetup {
    /// How it goes about it. Its station is the link-layer address of all its interfaces, where they have any: routers send to it what they
    /// have kept.
    pub config: FastHandoverConfig,
    /// The access points that it can come to, one for each interface.
    pub access_points: Vec<AccessPointSetup>,
    /// Whether access routers keep packets while the node is between links: then it does not say that those are lost.
    pub is_buffered: bool,
}

/// An access point, and the router behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessPointSetup {
    /// The station of the access point.
    pub station: LinkLayerAddress,
    /// The router. Its link-local address and the care-of address at it are those that are found on the link, once they are.
    pub router: CurrentRouter,
}

/// This host as a correspondent node with route optimisation, for one of its addresses.
#[derive(Clone, Debug, PartialEq)]
pub struct Ipv6CorrespondentSetup {
    /// What the node is.
    pub config: CorrespondentNodeConfig,
    /// What it takes of the host.
    pub host: HostOptions,
}

/// Which node of Mobile IPv6, with everything it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Ipv6Setup {
    /// A home agent.
    Home(Ipv6HomeSetup),
    /// A mobility anchor point.
    AnchorPoint(Ipv6AnchorPointSetup),
    /// A mobile node.
    Mobile(Ipv6MobileSetup),
    /// A mobile node that uses mobility anchor points.
    HierarchicalMobile(Box<Ipv6HierarchicalMobileSetup>),
    /// An access router of fast handovers.
    AccessRouter(Box<Ipv6AccessRouterSetup>),
    /// A correspondent node.
    Correspondent(Ipv6CorrespondentSetup),
}

impl Ipv6Setup {
    /// What the agent takes of the host.
    #[must_use]
    pub const fn host(&self) -> &HostOptions {
        match self {
            Self::Home(setup) => &setup.host,
            Self::AnchorPoint(setup) => &setup.host,
            Self::Mobile(setup) => &setup.host,
            Self::HierarchicalMobile(setup) => &setup.mobile.host,
            Self::AccessRouter(setup) => &setup.host,
            Self::Correspondent(setup) => &setup.host,
        }
    }

    /// The interfaces that the agent's configuration speaks of.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        match self {
            Self::Mobile(setup) => &setup.devices,
            Self::HierarchicalMobile(setup) => &setup.mobile.devices,
            Self::AccessRouter(setup) => &setup.devices,
            Self::Home(setup) => setup.home_link.as_slice(),
            Self::AnchorPoint(setup) => setup.home_link.as_slice(),
            Self::Correspondent(_) => &[],
        }
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::Home(_) => Role::Home,
            Self::AnchorPoint(_) => Role::AnchorPoint,
            Self::Mobile(_) | Self::HierarchicalMobile(_) => Role::Mobile,
            Self::AccessRouter(_) => Role::AccessRouter,
            Self::Correspondent(_) => Role::Correspondent,
        }
    }

    /// What is done for the TCP connections whose packets are carried.
    #[must_use]
    pub const fn assist(&self) -> Option<&careof_assist::Config> {
        match self {
            Self::Home(setup) => setup.assist.as_ref(),
            Self::AnchorPoint(setup) => setup.assist.as_ref(),
            Self::Mobile(setup) => setup.assist.as_ref(),
            Self::HierarchicalMobile(setup) => setup.mobile.assist.as_ref(),
            Self::AccessRouter(_) | Self::Correspondent(_) => None,
        }
    }

    /// The mobile node, whether or not it uses mobility anchor points.
    #[must_use]
    pub const fn mobile(&self) -> Option<&Ipv6MobileSetup> {
        match self {
            Self::Mobile(setup) => Some(setup),
            Self::HierarchicalMobile(setup) => Some(&setup.mobile),
            Self::Home(_) | Self::AnchorPoint(_) | Self::AccessRouter(_) | Self::Correspondent(_) => None,
        }
    }

    /// The home agent or mobility anchor point.
    pub(super) fn home_side(&self) -> Option<HomeSide<'_>> {
        match self {
            Self::Home(Ipv6HomeSetup { config, home_link, host, .. }) => Some(HomeSide {
                address: config.address,
                interface: config.home_interface,
                prefixes: &config.prefixes,
                mobile_nodes: &config.mobile_nodes,
                home_link: home_link.as_ref(),
                host,
            }),
            Self::AnchorPoint(Ipv6AnchorPointSetup { config, home_link, host, .. }) => Some(HomeSide {
                address: config.address,
                interface: config.interface,
                prefixes: &config.prefixes,
                mobile_nodes: &config.mobile_nodes,
                home_link: home_link.as_ref(),
                host,
            }),
            Self::Mobile(_)
            | Self::HierarchicalMobile(_)
            | Self::AccessRouter(_)
            | Self::Correspondent(_) => None,
        }
    }

    /// Bytes that the tunnels of a packet add to it at most. The headers of route optimisation add less, but come and go.
    pub(super) const fn overhead(&self) -> u16 {
        match self {
            // One around the tunnel between mobile node and home agent.
            Self::AnchorPoint(_) | Self::HierarchicalMobile(_) => 2 * Ipv6Header::LEN,
            Self::Home(_) | Self::Mobile(_) | Self::AccessRouter(_) | Self::Correspondent(_) => {
                Ipv6Header::LEN
            }
        }
    }

    /// Home agent: its IPv4 address.
    pub(super) const fn ipv4_address(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Home(setup) => setup.config.ipv4_address,
            _ => None,
        }
    }

    /// Home agent: the IPv4 home addresses of the mobile nodes served.
    pub(super) fn ipv4_home_addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        let nodes = self.home_side().map_or(&[][..], |side| side.mobile_nodes);
        nodes.iter().filter_map(|node| node.ipv4_home_address)
    }

    /// Whether anything of IPv4 is carried (RFC 5555).
    pub(super) fn is_dual_stack(&self) -> bool {
        let of_mobile_node = self.takes_ipv4() || self.has_ipv4_home();
        of_mobile_node || self.ipv4_address().is_some() || self.ipv4_home_addresses().next().is_some()
    }

    /// Mobile node: whether addresses of IPv4 can be care-of addresses.
    pub(super) const fn takes_ipv4(&self) -> bool {
        matches!(self, Self::Mobile(setup) if setup.config.home_agent_ipv4.is_some())
    }

    /// Mobile node: whether it has an IPv4 home address, or asks for one.
    pub(super) const fn has_ipv4_home(&self) -> bool {
        matches!(self, Self::Mobile(setup) if setup.config.ipv4_home_address.is_some())
    }

    /// Mobile node: the home address.
    pub(super) const fn home_address(&self) -> Option<Ipv6Addr> {
        match self.mobile() {
            Some(setup) => Some(setup.config.home_address),
            None => None,
        }
    }
}
