//! Addresses of interfaces.

use std::net::IpAddr;

use careof_base::Duration;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use nix::errno::Errno;

use super::{Effect, Netlink, family};
use crate::error::Error;
use crate::interface::InterfaceAddress;

/// Lifetime of an address that stays for ever, in seconds (`INFINITY_LIFE_TIME`).
const FOREVER: u32 = u32::MAX;

/// An address of an interface, and what the kernel knows about it. What is about Duplicate Address Detection and lifetimes concerns
/// IPv6 (RFC 4862).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedAddress {
    /// Index of the interface.
    pub interface: u32,
    /// The address.
    pub address: IpAddr,
    /// Length of its prefix in bits.
    pub prefix_length: u8,
    /// Duplicate Address Detection goes on, or has failed: nothing may be sent from it yet.
    pub is_tentative: bool,
    /// Another node has it: it is never used.
    pub is_duplicate: bool,
    /// It is used although Duplicate Address Detection goes on (RFC 4429).
    pub is_optimistic: bool,
    /// Nothing new is to begin with it: its preferred lifetime has ended.
    pub is_deprecated: bool,
    /// Somebody has given it to the interface; others were formed from what a router advertised, and end with their lifetime.
    pub is_permanent: bool,
    /// For how long it is valid from now on; `None`: for ever.
    pub valid_for: Option<Duration>,
    /// For how long it is preferred from now on; `None`: for ever.
    pub preferred_for: Option<Duration>,
}

impl AssignedAddress {
    /// Whether packets can be sent from it now.
    #[must_use]
    pub const fn is_usable(&self) -> bool {
        !self.is_duplicate && (!self.is_tentative || self.is_optimistic)
    }

    pub(super) fn from_message(message: &AddressMessage) -> Option<Self> {
        let (interface, on) = interface_address(message)?;
        // The header has room for the first eight flags only; all are in an attribute of kernels since 3.14.
        let mut flags = AddressFlags::from_bits_retain(message.header.flags.bits().into());
        let (mut valid, mut preferred) = (FOREVER, FOREVER);
        for attribute in &message.attributes {
            match attribute {
                AddressAttribute::Flags(all) => flags = *all,
                AddressAttribute::CacheInfo(info) => {
                    (valid, preferred) = (info.ifa_valid, info.ifa_preferred)
                }
                _ => {}
            }
        }
        let span = |seconds: u32| (seconds != FOREVER).then(|| Duration::from_secs(seconds.into()));
        Some(Self {
            interface,
            address: on.address,
            prefix_length: on.prefix_length,
            is_tentative: flags.contains(AddressFlags::Tentative),
            is_duplicate: flags.contains(AddressFlags::Dadfailed),
            is_optimistic: flags.contains(AddressFlags::Optimistic),
            is_deprecated: flags.contains(AddressFlags::Deprecated),
            is_permanent: flags.contains(AddressFlags::Permanent),
            valid_for: span(valid),
            preferred_for: span(preferred),
        })
    }
}

/// How an interface is given an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddressOptions {
    /// IPv6: without Duplicate Address Detection, usable at once (`nodad`).
    pub skips_detection: bool,
    /// IPv6: usable while Duplicate Address Detection goes on (`optimistic`, RFC 4429), where `optimistic_dad` of the interface, or of
    /// all, below `net.ipv6.conf` allows it.
    pub is_optimistic: bool,
    /// Without a route to its prefix (`noprefixroute`).
    pub without_route: bool,
}

impl Netlink {
    /// The addresses of all interfaces, with what the kernel knows about each.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn assigned_addresses(&mut self) -> Result<Vec<AssignedAddress>, Error> {
        self.dump(
            &RouteNetlinkMessage::GetAddress(AddressMessage::default()),
            "RTM_GETADDR",
            |message, found| {
                if let RouteNetlinkMessage::NewAddress(message) = message {
                    found.extend(AssignedAddress::from_message(&message));
                }
            },
            || "list the addresses of all interfaces".to_owned(),
        )
    }

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
        self.add_address_as(AddressOptions::default(), index, address, prefix_length)
    }

    /// As [`Netlink::add_address`], in a special way.
    ///
    /// # Errors
    /// As [`Netlink::add_address`].
    pub fn add_address_as(
        &mut self,
        options: AddressOptions,
        index: u32,
        address: IpAddr,
        prefix_length: u8,
    ) -> Result<Effect, Error> {
        let mut message = address_message(index, address, prefix_length);
        let flags = [
            (options.skips_detection, AddressFlags::Nodad),
            (options.is_optimistic, AddressFlags::Optimistic),
            (options.without_route, AddressFlags::Noprefixroute),
        ];
        let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag);
        let flags = flags.fold(AddressFlags::empty(), |all, flag| all | flag);
        if !flags.is_empty() {
            message.attributes.push(AddressAttribute::Flags(flags));
        }
        self.tell_unless(
            RouteNetlinkMessage::NewAddress(message),
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

#[cfg(test)]
mod tests {
    use netlink_packet_route::address::CacheInfo;

    use super::*;

    #[test]
    fn what_the_kernel_says_of_an_address_is_read() {
        let address: IpAddr = "2001:db8::7".parse().unwrap();
        let mut message = address_message(3, address, 64);
        let assigned = AssignedAddress::from_message(&message).unwrap();
        assert!(assigned.is_usable() && assigned.valid_for.is_none() && !assigned.is_permanent);
        let mut info = CacheInfo::default();
        (info.ifa_valid, info.ifa_preferred) = (60, 0);
        message.attributes.push(AddressAttribute::CacheInfo(info));
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Tentative | AddressFlags::Deprecated));
        let assigned = AssignedAddress::from_message(&message).unwrap();
        assert_eq!((assigned.interface, assigned.address, assigned.prefix_length), (3, address, 64));
        assert_eq!(assigned.valid_for, Some(Duration::from_secs(60)));
        assert_eq!(assigned.preferred_for, Some(Duration::ZERO));
        assert!(assigned.is_tentative && assigned.is_deprecated && !assigned.is_usable());
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Tentative | AddressFlags::Optimistic));
        assert!(AssignedAddress::from_message(&message).unwrap().is_usable());
        message.attributes.push(AddressAttribute::Flags(AddressFlags::Dadfailed | AddressFlags::Optimistic));
        let assigned = AssignedAddress::from_message(&message).unwrap();
        assert!(assigned.is_duplicate && !assigned.is_usable());
    }
}
