//! Why a carrier could not do something.

use std::net::IpAddr;

use careof_mobility::v4::ConfigError;
use nix::errno::Errno;

use super::StoreError;

/// Why a carrier could not do something; [`Error::remedy`] is what would make it work.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The operating system refused.
    #[error(transparent)]
    System(#[from] careof_lab::Error),
    /// The agent's configuration is not one.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What assists are told to do contradicts itself.
    #[error(transparent)]
    Assist(#[from] careof_assist::ConfigError),
    /// A mobile node's own packets do not all pass the tunnel device, where assists see them.
    #[error("assists at a mobile node act on packets that go through its tunnel device, and some do not")]
    AssistWithoutTunnel,
    /// Assists for another place.
    #[error("the assists are configured for another kind of agent")]
    AssistElsewhere,
    /// What was written down cannot be read back.
    #[error("cannot read the bindings back: {0}")]
    Store(#[from] StoreError),
    /// The configuration speaks of an interface whose name is not given.
    #[error("interface {number} of the configuration has no name")]
    UnnamedInterface {
        /// Its number.
        number: u16,
    },
    /// Two interfaces have the same number or name.
    #[error("the interface {name:?} is listed twice, or its number is")]
    DoubleInterface {
        /// The name of the second.
        name: String,
    },
    /// No such interface belongs to the agent.
    #[error("the agent has no interface {name:?}")]
    UnknownInterface {
        /// The name asked for.
        name: String,
    },
    /// More than the kernel's tables are set up for.
    #[error("{found} {what} are more than the {most} there is room for")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// How many there can be.
        most: usize,
    },
    /// The address of a home agent of Mobile IPv6 is one of its host: the kernel would keep its packets.
    #[error(
        "{address} is an address of this host: the kernel would keep the home agent's packets for itself"
    )]
    AddressOfHost {
        /// The address.
        address: IpAddr,
    },
    /// Something that is laid down when the agent starts was to change.
    #[error("{what} cannot change while the agent runs")]
    NeedsRestart {
        /// What.
        what: &'static str,
    },
    /// Only agents of another role can do this.
    #[error("a {role} cannot {what}")]
    NotForThisRole {
        /// What was asked for.
        what: &'static str,
        /// What the agent is.
        role: &'static str,
    },
    /// An agent becomes another kind of agent by being started anew.
    #[error("a {from} cannot become a {to} while it runs")]
    RoleChanged {
        /// What it is.
        from: &'static str,
        /// What it was to be.
        to: &'static str,
    },
}

impl Error {
    /// The command, or the change, that would make it work; `None` where there is none to name.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            // A TUN device has one owner.
            Self::System(careof_lab::Error::System {
                call: "ioctl(TUNSETIFF)", errno: Errno::EBUSY, ..
            }) => Some(
                "another agent has it: give each one a tunnel_device, first_table and first_priority of its own in [host]",
            ),
            Self::System(careof_lab::Error::System {
                call: "socket(NETLINK_NETFILTER)" | "nf_tables",
                errno: Errno::EPROTONOSUPPORT | Errno::EOPNOTSUPP,
                ..
            }) => Some("sudo modprobe nf_tables; the kernel needs it for IPv6, Linux 5.12 or later"),
            Self::System(error) => error.remedy(),
            Self::AssistWithoutTunnel => {
                Some("write routing = \"reverse-tunnel\", or leave the assists to the home agent")
            }
            Self::AddressOfHost { .. } => {
                Some("remove it from its interface (`ip -6 address` shows which): only the agent may have it")
            }
            Self::RoleChanged { .. } | Self::NeedsRestart { .. } => Some("stop the agent and start it again"),
            _ => None,
        }
    }
}
