//! Which addresses a node can have.

use core::net::Ipv4Addr;

use super::ConfigError;

/// Whether a node can have `address`: not unspecified, loopback, multicast or broadcast.
pub(crate) const fn is_unicast(address: Ipv4Addr) -> bool {
    // 0/8 is "this network" (RFC 1122 section 3.2.1.3).
    !(address.octets()[0] == 0
        || address.is_loopback()
        || address.is_multicast()
        || address.octets()[0] >= 240)
}

pub(crate) fn check_unicast(what: &'static str, address: Ipv4Addr) -> Result<(), ConfigError> {
    if is_unicast(address) { Ok(()) } else { Err(ConfigError::NotUnicast { what, address: address.into() }) }
}
