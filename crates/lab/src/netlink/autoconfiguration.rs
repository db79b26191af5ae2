//! Interfaces that form their IPv6 addresses themselves (RFC 4862).

use std::net::Ipv6Addr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{AfSpecInet6, AfSpecUnspec, LinkAttribute, LinkFlags, LinkMessage};

use super::Netlink;
use crate::error::Error;

impl Netlink {
    /// Has an interface form the addresses that routers' prefixes ask for with `identifier`, of which the last 64 bits count, and
    /// detect duplicates, as one of Ethernet does. A TUN device does neither when it is made: it comes as one without neighbours.
    ///
    /// To be called before its link comes up, while `net.ipv6.conf.NAME.accept_ra` is 1.
    ///
    /// # Errors
    /// The kernel's answer: `EINVAL` where the interface takes no advertisements.
    pub fn autoconfigure_as(&mut self, index: u32, identifier: Ipv6Addr) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.change_mask = LinkFlags::Noarp;
        self.tell(RouteNetlinkMessage::SetLink(message), 0, "RTM_SETLINK", || {
            format!("have interface {index} know its neighbours")
        })?;
        let host_part = Ipv6Addr::from_bits(identifier.to_bits() & u128::from(u64::MAX));
        let token = AfSpecUnspec::Inet6(vec![AfSpecInet6::Token(host_part)]);
        self.set_attribute(index, LinkAttribute::AfSpecUnspec(vec![token]), || {
            format!("have interface {index} form addresses that end in {host_part}")
        })
    }
}
