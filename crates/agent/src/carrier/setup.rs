//! What a carrier is given: which agent, and how this host is to serve it.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use careof_mobility::v4::{ForeignAgentConfig, HomeAgentConfig, InterfaceId, MobileNodeConfig};

use super::{MultipathSetup, Role};

/// An interface of this host, and the number by which the agent's configuration speaks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The number.
    pub id: InterfaceId,
    /// The interface's name. It need not exist yet, and may come and go.
    pub name: String,
}

impl Device {
    /// The interface `name`, which the agent knows as number `id`.
    #[must_use]
    pub fn new(id: u16, name: impl Into<String>) -> Self {
        Self { id: InterfaceId(id), name: name.into() }
    }
}

/// What an agent takes of the host. Two agents on one host need different ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// The name of the tunnel device, at most 15 bytes.
    pub tunnel_device: String,
    /// The MTU of the tunnel device in bytes; 1480 leaves room for a second IP header on a link of 1500.
    pub tunnel_mtu: u16,
    /// Bytes below which an ICMP error does not bring the MTU of a tunnel's path unless it quotes the Identification of what was
    /// sent. What is longer than the path then takes goes in fragments outside.
    pub path_mtu_floor: u16,
    /// Whether the tunnel device takes segments from its host, and hands them to it, before they are cut into packets. Without
    /// it every packet passes by itself: slower, and every one seen by whoever looks at the device.
    pub offloads: bool,
    /// The first of the [`HostOptions::TABLES`] routing tables that belong to the agent. What is found in them at the
    /// start is of a former life and removed.
    pub first_table: u32,
    /// The first of the [`HostOptions::PRIORITIES`] priorities of routing rules that belong to the agent. Rules found
    /// there at the start are left alone unless they are for its tables.
    pub first_priority: u32,
    /// Whether the kernel parameters that the agent needs are set, and set back in the end: forwarding on an agent;
    /// reverse path filter and ARP behaviour. Without it the administrator has to.
    pub set_kernel_parameters: bool,
    /// On a mobile node that is away, whether its kernel's TCP is to leave room for the tunnel, in what it sends and in what it asks
    /// for, so that nothing is too long. Without it full packets are cut in the tunnel, or refused where they may not be.
    pub leave_room: bool,
}

impl HostOptions {
    /// How many routing tables belong to one agent.
    pub const TABLES: u32 = 64;
    /// How many priorities of routing rules belong to one agent.
    pub const PRIORITIES: u32 = 10_000;
}

impl HostOptions {
    /// For an agent of Mobile IPv6: `careof6`, 1460 bytes in the tunnel, which leave room for a second IPv6 header on a link of 1500,
    /// tables from 43500; otherwise as for one of Mobile IPv4, beside which it can be on one host. The floor, offloads and room left
    /// mean nothing to it.
    #[must_use]
    pub fn for_ipv6() -> Self {
        Self { tunnel_device: "careof6".to_owned(), tunnel_mtu: 1460, first_table: 43_500, ..Self::default() }
    }
}

impl Default for HostOptions {
    /// `careof0`, 1480 bytes, a floor of 1280 bytes, offloads, tables from 43400, priorities from 4340, kernel parameters set, room left.
    fn default() -> Self {
        Self {
            tunnel_device: "careof0".to_owned(),
            tunnel_mtu: 1480,
            path_mtu_floor: 1280,
            offloads: true,
            first_table: 43_400,
            first_priority: 4_340,
            set_kernel_parameters: true,
            leave_room: true,
        }
    }
}

/// How packets for the home network reach the home agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HomeNetwork {
    /// The home network is a link of this host: the agent answers ARP requests for mobile nodes that are away
    /// (RFC 5944 section 4.6).
    #[default]
    Link,
    /// The network's routers send everything for it to this host, and there is no link. A mobile node that is not
    /// registered is unreachable.
    Routed,
}

/// A home agent on this host.
#[derive(Clone, Debug, PartialEq)]
pub struct HomeSetup {
    /// What the agent is.
    pub config: HomeAgentConfig,
    /// The interfaces that its configuration speaks of. Messages are taken from all interfaces of the host.
    pub devices: Vec<Device>,
    /// How packets for mobile nodes get here.
    pub home_network: HomeNetwork,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing.
    pub assist: Option<careof_assist::Config>,
    /// With [`HomeAgentConfig::multipath`]: how packets are dispersed and put in order.
    pub multipath: MultipathSetup,
}

/// A foreign agent on this host.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignSetup {
    /// What the agent is.
    pub config: ForeignAgentConfig,
    /// The interfaces that its configuration speaks of. Messages are taken from all interfaces of the host.
    pub devices: Vec<Device>,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing.
    pub assist: Option<careof_assist::Config>,
}

/// This host as a mobile node.
#[derive(Clone, Debug, PartialEq)]
pub struct MobileSetup {
    /// What the node is. Whether its interfaces are up and which addresses they have is read from the kernel; what
    /// the configuration says about that is not used.
    pub config: MobileNodeConfig,
    /// The interfaces that its configuration speaks of; one for each.
    pub devices: Vec<Device>,
    /// What it takes of the host.
    pub host: HostOptions,
    /// What is done for the TCP connections whose packets it carries; `None`: nothing.
    pub assist: Option<careof_assist::Config>,
    /// With [`MobileNodeConfig::multipath`]: how packets are dispersed and put in order.
    pub multipath: MultipathSetup,
}

/// Which agent, with everything it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Setup {
    /// A home agent.
    Home(HomeSetup),
    /// A foreign agent.
    Foreign(ForeignSetup),
    /// A mobile node.
    Mobile(MobileSetup),
}

impl Setup {
    /// The interfaces that the agent's configuration speaks of.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        match self {
            Self::Home(setup) => &setup.devices,
            Self::Foreign(setup) => &setup.devices,
            Self::Mobile(setup) => &setup.devices,
        }
    }

    /// What the agent takes of the host.
    #[must_use]
    pub const fn host(&self) -> &HostOptions {
        match self {
            Self::Home(setup) => &setup.host,
            Self::Foreign(setup) => &setup.host,
            Self::Mobile(setup) => &setup.host,
        }
    }

    /// What is done for the TCP connections whose packets are carried.
    #[must_use]
    pub const fn assist(&self) -> Option<&careof_assist::Config> {
        match self {
            Self::Home(setup) => setup.assist.as_ref(),
            Self::Foreign(setup) => setup.assist.as_ref(),
            Self::Mobile(setup) => setup.assist.as_ref(),
        }
    }

    /// The MTU of the tunnel device, bytes: what several paths take more of is left out.
    pub(super) fn tunnel_mtu(&self) -> u16 {
        let mtu = self.host().tunnel_mtu;
        // 20 bytes are left out already, for the header of RFC 2003.
        match self.multipath() {
            Some(several) => mtu.saturating_sub(several.overhead() - 20).max(68),
            None => mtu,
        }
    }

    /// Whether two setups say the same of several paths.
    pub(super) fn same_multipath(&self, other: &Self) -> bool {
        self.multipath() == other.multipath()
    }

    /// How packets go over several paths of a mobile node at once; `None`: they do not.
    pub(super) fn multipath(&self) -> Option<&MultipathSetup> {
        match self {
            Self::Home(setup) => Some(&setup.multipath).filter(|_| setup.config.multipath),
            Self::Foreign(_) => None,
            Self::Mobile(setup) => Some(&setup.multipath).filter(|_| setup.config.multipath.is_some()),
        }
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::Home(_) => Role::Home,
            Self::Foreign(_) => Role::Foreign,
            Self::Mobile(_) => Role::Mobile,
        }
    }

    /// An address of this host that it speaks with, wherever it is.
    pub(super) fn own_address(&self) -> Ipv4Addr {
        match self {
            Self::Home(setup) => setup.config.address,
            Self::Foreign(setup) => {
                setup.config.care_of_addresses.first().copied().unwrap_or(Ipv4Addr::UNSPECIFIED)
            }
            Self::Mobile(setup) => setup.config.home_address,
        }
    }

    /// Home and foreign agent: the addresses by which others reach it, which its host must have.
    pub(super) fn public_addresses(&self) -> BTreeSet<Ipv4Addr> {
        match self {
            Self::Home(setup) => BTreeSet::from([setup.config.address]),
            Self::Foreign(setup) => {
                let links = setup.config.links.iter().map(|link| link.address);
                let care_of = setup.config.care_of_addresses.iter().copied();
                links.chain(care_of).chain([setup.config.address]).collect()
            }
            Self::Mobile(_) => BTreeSet::new(),
        }
    }

    /// Mobile node: the home address.
    pub(super) const fn home_address(&self) -> Option<Ipv4Addr> {
        match self {
            Self::Mobile(setup) => Some(setup.config.home_address),
            _ => None,
        }
    }

    /// Whether two setups say the same of the agent, but for clocks, which are read from the host.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Home(one), Self::Home(other)) => {
                let config = HomeAgentConfig { clock: one.config.clock, ..other.config.clone() };
                one.config == config
                    && one.home_network == other.home_network
                    && one.host == other.host
                    && one.multipath == other.multipath
            }
            (Self::Foreign(one), Self::Foreign(other)) => {
                one.config == other.config && one.host == other.host
            }
            (Self::Mobile(one), Self::Mobile(other)) => {
                let config = MobileNodeConfig { clock: one.config.clock, ..other.config.clone() };
                one.config == config && one.host == other.host && one.multipath == other.multipath
            }
            _ => false,
        }
    }
}
