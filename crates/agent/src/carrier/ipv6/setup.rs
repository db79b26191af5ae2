//! What a carrier of Mobile IPv6 is given: which agent, and how this host is to serve it.

use std::net::{Ipv4Addr, Ipv6Addr};

use careof_mobility::v6::{CorrespondentNodeConfig, HomeAgentConfig, MobileNodeConfig};

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

impl Ipv6HomeSetup {
    /// The IPv4 home addresses of the mobile nodes served.
    pub(super) fn ipv4_home_addresses(&self) -> impl Iterator<Item = Ipv4Addr> + '_ {
        self.config.mobile_nodes.iter().filter_map(|node| node.ipv4_home_address)
    }
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
    /// A mobile node.
    Mobile(Ipv6MobileSetup),
    /// A correspondent node.
    Correspondent(Ipv6CorrespondentSetup),
}

impl Ipv6Setup {
    /// What the agent takes of the host.
    #[must_use]
    pub const fn host(&self) -> &HostOptions {
        match self {
            Self::Home(setup) => &setup.host,
            Self::Mobile(setup) => &setup.host,
            Self::Correspondent(setup) => &setup.host,
        }
    }

    /// The interfaces that the agent's configuration speaks of.
    #[must_use]
    pub fn devices(&self) -> &[Device] {
        match self {
            Self::Mobile(setup) => &setup.devices,
            Self::Home(setup) => setup.home_link.as_slice(),
            Self::Correspondent(_) => &[],
        }
    }

    /// Which kind of agent.
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::Home(_) => Role::Home,
            Self::Mobile(_) => Role::Mobile,
            Self::Correspondent(_) => Role::Correspondent,
        }
    }

    /// What is done for the TCP connections whose packets are carried.
    #[must_use]
    pub const fn assist(&self) -> Option<&careof_assist::Config> {
        match self {
            Self::Home(setup) => setup.assist.as_ref(),
            Self::Mobile(setup) => setup.assist.as_ref(),
            Self::Correspondent(_) => None,
        }
    }

    /// Whether anything of IPv4 is carried (RFC 5555).
    pub(super) fn is_dual_stack(&self) -> bool {
        match self {
            Self::Home(setup) => {
                setup.config.ipv4_address.is_some() || setup.ipv4_home_addresses().next().is_some()
            }
            Self::Mobile(setup) => self.takes_ipv4() || setup.config.ipv4_home_address.is_some(),
            Self::Correspondent(_) => false,
        }
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
        match self {
            Self::Mobile(setup) => Some(setup.config.home_address),
            Self::Home(_) | Self::Correspondent(_) => None,
        }
    }
}
