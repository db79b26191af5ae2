//! Addresses that nobody else can have.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use nix::errno::Errno;

use super::{Effect, Netlink, family};
use crate::error::Error;

impl Netlink {
    /// Gives an interface an address that is usable at once: without Duplicate Address Detection, where it is one of IPv6
    /// (`nodad`, RFC 4862 section 5.4).
    ///
    /// # Errors
    /// As [`Netlink::add_address`].
    pub fn add_undetected_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_length: u8,
    ) -> Result<Effect, Error> {
        if address.is_ipv4() {
            return self.add_address(index, address, prefix_length);
        }
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.index = index;
        message.header.prefix_len = prefix_length;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
            AddressAttribute::Flags(AddressFlags::Nodad),
        ];
        self.tell_unless(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "RTM_NEWADDR",
            &[Errno::EEXIST],
            || format!("give interface {index} the address {address}/{prefix_length}"),
        )
    }
}
