//! What can be wrong with a configuration.

use core::net::IpAddr;
use core::time::Duration;

use careof_wire::mip4::Spi;

use crate::InterfaceId;

/// Why an agent or node cannot be made from a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// 0 to 255 are reserved (RFC 5944 section 3.5.1).
    #[error("SPI {0} is reserved; use 256 or more")]
    ReservedSpi(Spi),
    /// Nobody is kept out by an empty key.
    #[error("the key of SPI {spi} is empty; RFC 5944 wants 16 bytes")]
    EmptyKey {
        /// Whose key.
        spi: Spi,
    },
    /// A mobile node without any security association could never register.
    #[error("the mobile node {home_address} has no security association")]
    NoSecurityAssociation {
        /// Which.
        home_address: IpAddr,
    },
    /// Two security associations of one node have the same name.
    #[error("the node {address} has two security associations with SPI {spi}")]
    DuplicateSpi {
        /// Which node.
        address: IpAddr,
        /// Their name.
        spi: Spi,
    },
    /// Two mobile nodes, two peers or two interfaces with the same name.
    #[error("{what} {address} is listed twice")]
    DuplicateAddress {
        /// What is listed.
        what: &'static str,
        /// What they are called.
        address: IpAddr,
    },
    /// Two interfaces with the same number.
    #[error("interface {} is listed twice", .0.0)]
    DuplicateInterface(InterfaceId),
    /// An address no node can have.
    #[error("{what} is {address}, which is no node's address")]
    NotUnicast {
        /// What the address is for.
        what: &'static str,
        /// The address.
        address: IpAddr,
    },
    /// The home address is not part of the home network.
    #[error("the home address {home_address} is not in the home network {network}/{length}")]
    NotAtHome {
        /// The address.
        home_address: IpAddr,
        /// The first address of the network.
        network: IpAddr,
        /// The bits of its prefix.
        length: u8,
    },
    /// Something without which there is nothing to do.
    #[error("the configuration names no {0}")]
    Missing(&'static str),
    /// Advertisements must outlive the loss of two (RFC 5944 section 2.3).
    #[error(
        "the advertisement lifetime is {lifetime:?}; it must be at least three times the interval {interval:?}"
    )]
    LifetimeTooShort {
        /// The lifetime advertised.
        lifetime: Duration,
        /// The longest interval.
        interval: Duration,
    },
    /// The intervals of advertisements are not a range.
    #[error("the advertisement interval goes from {min:?} to {max:?}; it must not be empty, and above zero")]
    BadInterval {
        /// The shortest.
        min: Duration,
        /// The longest.
        max: Duration,
    },
    /// Something whose messages are told from old ones by their time.
    #[error("{0} needs timestamps as replay protection, and nonces are configured")]
    NeedsTimestamps(&'static str),
    /// Two things of which a node can have one only.
    #[error("{0} and {1} cannot be combined")]
    Incompatible(&'static str, &'static str),
    /// A number that must lie within bounds.
    #[error("{what} is {found}; it must lie within {low} and {high}")]
    OutOfRange {
        /// What the number is.
        what: &'static str,
        /// The number.
        found: u64,
        /// The least allowed.
        low: u64,
        /// The most allowed.
        high: u64,
    },
}

/// Refuses a list in which an address occurs twice.
pub(crate) fn check_distinct<A: Ord + Copy + Into<IpAddr>>(
    what: &'static str,
    addresses: impl Iterator<Item = A>,
) -> Result<(), ConfigError> {
    let mut seen = alloc::collections::BTreeSet::new();
    for address in addresses {
        if !seen.insert(address) {
            return Err(ConfigError::DuplicateAddress { what, address: address.into() });
        }
    }
    Ok(())
}
