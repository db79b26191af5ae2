//! What careof writes into extension headers and reads from them.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::extension_header::kind;
use super::option::OptionsWriter;
use crate::Error;
use crate::fixed::Fixed;
use crate::ipv6::is_unicast_routable;

/// Option Type of the Tunnel Encapsulation Limit (RFC 2473 section 4.1.1).
pub(super) const TUNNEL_ENCAPSULATION_LIMIT: u8 = 4;
/// Option Type of the Router Alert (RFC 2711 section 2.1).
pub(super) const ROUTER_ALERT: u8 = 5;
/// Option Type of the Home Address (RFC 6275 section 6.3).
pub(super) const HOME_ADDRESS: u8 = 201;

/// Routing Type of the header of Mobile IPv6 (RFC 6275 section 6.4).
pub(super) const TYPE_2: u8 = 2;
/// Offsets in a type 2 routing header.
mod type_2 {
    pub(super) const EXTENSION_LENGTH: usize = 1;
    pub(super) const ROUTING_TYPE: usize = 2;
    pub(super) const SEGMENTS_LEFT: usize = 3;
    pub(super) const HOME_ADDRESS: usize = 8;
    pub(super) const LEN: usize = 24;
    /// Its Hdr Ext Len, in units of 8 bytes beyond the first.
    pub(super) const UNITS: u8 = 2;
}

/// The extension headers that careof sends, and understands when they are received. The Fragment header is not among them: see
/// [`fragment`](super::fragment()).
///
/// They stand in the order of RFC 8200 section 4.1: Hop-by-Hop Options with the Router Alert, Routing, Destination Options with
/// the Home Address and the Tunnel Encapsulation Limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extensions {
    /// Router Alert (RFC 2711): routers look into the packet; 0 because it carries Multicast Listener Discovery.
    pub router_alert: Option<u16>,
    /// The Home Address of a type 2 routing header (RFC 6275 section 6.4): the real destination, while the Destination Address is
    /// the care-of address. A unicast routable address.
    pub type_2_routing: Option<Ipv6Addr>,
    /// The Home Address option (RFC 6275 section 6.3): the real source, while the Source Address is the care-of address. A unicast
    /// routable address.
    pub home_address: Option<Ipv6Addr>,
    /// Tunnel Encapsulation Limit (RFC 2473 section 4.1.1): how many more times the packet may be encapsulated.
    pub encapsulation_limit: Option<u8>,
}

impl Extensions {
    /// None.
    pub const NONE: Self =
        Self { router_alert: None, type_2_routing: None, home_address: None, encapsulation_limit: None };

    /// Bytes of a hop-by-hop header with the Router Alert option.
    pub const ROUTER_ALERT_LEN: u16 = 8;
    /// Bytes of a type 2 routing header.
    pub const TYPE_2_ROUTING_LEN: u16 = 24;
    /// Bytes of a destination options header with the Home Address option.
    pub const HOME_ADDRESS_LEN: u16 = 24;
    /// Bytes of a destination options header with the Tunnel Encapsulation Limit option alone.
    pub const ENCAPSULATION_LIMIT_LEN: u16 = 8;

    /// Bytes that [`emit`](Self::emit) appends.
    #[must_use]
    pub const fn len(&self) -> u16 {
        let mut len = 0;
        if self.router_alert.is_some() {
            len += Self::ROUTER_ALERT_LEN;
        }
        if self.type_2_routing.is_some() {
            len += Self::TYPE_2_ROUTING_LEN;
        }
        // In front of a Home Address there are 4 bytes of padding, where the limit finds room for 3.
        if self.home_address.is_some() {
            len += Self::HOME_ADDRESS_LEN;
        } else if self.encapsulation_limit.is_some() {
            len += Self::ENCAPSULATION_LIMIT_LEN;
        }
        len
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The Next Header value for the header in front of them, when `protocol` follows them.
    #[must_use]
    pub const fn first(&self, protocol: u8) -> u8 {
        if self.router_alert.is_some() { kind::HOP_BY_HOP } else { self.after_hop_by_hop(protocol) }
    }

    const fn after_hop_by_hop(&self, protocol: u8) -> u8 {
        if self.type_2_routing.is_some() { kind::ROUTING } else { self.after_routing(protocol) }
    }

    const fn after_routing(&self, protocol: u8) -> u8 {
        if self.has_destination_options() { kind::DESTINATION } else { protocol }
    }

    /// Appends the headers; the last names `protocol`.
    pub fn emit(&self, protocol: u8, bytes: &mut Vec<u8>) {
        if let Some(value) = self.router_alert {
            let mut header = OptionsWriter::new(self.after_hop_by_hop(protocol), bytes);
            header.option(ROUTER_ALERT, &value.to_be_bytes(), 2, 0);
            header.finish();
        }
        if let Some(home_address) = self.type_2_routing {
            let mut header = Fixed::<{ type_2::LEN }>::ZERO;
            header.put::<0, 1>([self.after_routing(protocol)]);
            header.put::<{ type_2::EXTENSION_LENGTH }, 1>([type_2::UNITS]);
            header.put::<{ type_2::ROUTING_TYPE }, 1>([TYPE_2]);
            header.put::<{ type_2::SEGMENTS_LEFT }, 1>([1]);
            header.put::<{ type_2::HOME_ADDRESS }, 16>(home_address.octets());
            bytes.extend(header.bytes());
        }
        if self.has_destination_options() {
            let mut header = OptionsWriter::new(protocol, bytes);
            if let Some(limit) = self.encapsulation_limit {
                header.option(TUNNEL_ENCAPSULATION_LIMIT, &[limit], 1, 0);
            }
            if let Some(home_address) = self.home_address {
                header.option(HOME_ADDRESS, &home_address.octets(), 8, 6);
            }
            header.finish();
        }
    }

    const fn has_destination_options(&self) -> bool {
        self.home_address.is_some() || self.encapsulation_limit.is_some()
    }
}

/// The Home Address of an option's data (RFC 6275 section 6.3), which stands `offset` bytes into the packet.
pub(super) fn home_address(data: &[u8], offset: usize) -> Result<Ipv6Addr, Error> {
    let Ok(octets) = <[u8; 16]>::try_from(data) else {
        let (field, found) = ("Home Address option Length", data.len() as u32);
        return Err(Error::Invalid { field, offset: offset + 1, found, expected: "16" });
    };
    check_home_address(Ipv6Addr::from(octets), "Home Address option", offset + 2)
}

/// The Home Address of a whole type 2 routing header (RFC 6275 section 6.4), which starts `offset` bytes into the packet.
pub(super) fn type_2_routing(header: &[u8], offset: usize) -> Result<Ipv6Addr, Error> {
    let (fixed, _) = Fixed::<{ type_2::LEN }>::split(header, "type 2 routing header")
        .map_err(|error| error.shifted(offset))?;
    let units = fixed.u8::<{ type_2::EXTENSION_LENGTH }>();
    if units != type_2::UNITS {
        let (field, offset) = ("type 2 routing header Hdr Ext Len", offset + type_2::EXTENSION_LENGTH);
        return Err(Error::Invalid { field, offset, found: u32::from(units), expected: "2" });
    }
    let segments_left = fixed.u8::<{ type_2::SEGMENTS_LEFT }>();
    if segments_left != 1 {
        let (field, offset) = ("type 2 routing header Segments Left", offset + type_2::SEGMENTS_LEFT);
        return Err(Error::Invalid { field, offset, found: u32::from(segments_left), expected: "1" });
    }
    let address = fixed.ipv6_address::<{ type_2::HOME_ADDRESS }>();
    check_home_address(address, "type 2 routing header Home Address", offset + type_2::HOME_ADDRESS)
}

fn check_home_address(address: Ipv6Addr, field: &'static str, offset: usize) -> Result<Ipv6Addr, Error> {
    if is_unicast_routable(address) {
        return Ok(address);
    }
    let found = (address.to_bits() >> 96) as u32;
    Err(Error::Invalid { field, offset, found, expected: "a unicast routable address" })
}
