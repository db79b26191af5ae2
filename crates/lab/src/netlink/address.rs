//! Addresses of interfaces.

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use nix::errno::Errno;

use super::{Effect, Netlink, family};
use crate::error::Error;
use crate::interface::InterfaceAddress;

impl Netlink {
    /// The addresses of an interface, in the order in which the kernel prefers them.
    ///
    /// # Errors
    /// The kernel's answer; `ENODEV` when there is no such interface.
    pub fn addresses(&mut self, index: u32) -> Result<Vec<InterfaceAddress>, Error> {
        let all = self.list_addresses(index, || format!("list the addresses of interface {index}"))?;
        Ok(all.into_iter().filter(|(of, _)| *of == index).map(|(_, on)| on).collect())
    }

    /// The addresses of all interfaces, each with the interface's index.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn all_addresses(&mut self) -> Result<Vec<(u32, InterfaceAddress)>, Error> {
        self.list_addresses(0, || "list the addresses of all interfaces".to_owned())
    }

    fn list_addresses(
        &mut self,
        index: u32,
        doing: impl Fn() -> String,
    ) -> Result<Vec<(u32, InterfaceAddress)>, Error> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        self.dump(
            &RouteNetlinkMessage::GetAddress(message),
            "RTM_GETADDR",
            |message, found| {
                if let RouteNetlinkMessage::NewAddress(message) = message {
                    found.extend(interface_address(&message));
                }
            },
            doing,
        )
    }

    /// Gives an interface an address.
    ///
    /// # Errors
    /// `EINVAL` for a prefix that is longer than the address, `ENODEV` when there is no such interface.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> Result<Effect, Error> {
        self.tell_unless(
            RouteNetlinkMessage::NewAddress(address_message(index, address, prefix_length)),
            NLM_F_CREATE | NLM_F_EXCL,
            "RTM_NEWADDR",
            &[Errno::EEXIST],
            || format!("give interface {index} the address {address}/{prefix_length}"),
        )
    }

    /// Takes an address from an interface; [`Effect::Unchanged`] also when the interface is gone.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix_length: u8,
    ) -> Result<Effect, Error> {
        self.tell_unless(
            RouteNetlinkMessage::DelAddress(address_message(index, address, prefix_length)),
            0,
            "RTM_DELADDR",
            &[Errno::EADDRNOTAVAIL, Errno::ENODEV],
            || format!("take the address {address}/{prefix_length} from interface {index}"),
        )
    }
}

/// The index of the interface and its address. With a peer, `IFA_ADDRESS` is the peer's; `IFA_LOCAL` wins.
pub(super) fn interface_address(message: &AddressMessage) -> Option<(u32, InterfaceAddress)> {
    let find = |wanted: fn(&AddressAttribute) -> Option<IpAddr>| message.attributes.iter().find_map(wanted);
    let local = find(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = local.or_else(|| {
        find(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })?;
    Some((message.header.index, InterfaceAddress { address, prefix_length: message.header.prefix_len }))
}

fn address_message(index: u32, address: IpAddr, prefix_length: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.index = index;
    message.header.prefix_len = prefix_length;
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    message
}
