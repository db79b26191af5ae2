//! Interfaces: what they are, and changing them.

use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};

use super::Netlink;
use crate::error::Error;

/// What the kernel says about an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    /// Its number in this network namespace. It is never given to another one while the namespace lives, unless
    /// somebody asks for it.
    pub index: u32,
    /// Its name, which may change.
    pub name: String,
    /// Whether it was taken up (`IFF_UP`).
    pub is_up: bool,
    /// Whether it is up and its link carries packets: a cable is in, a station is associated and let in. Lost at once
    /// (`IFF_LOWER_UP`), and there again when the kernel sends packets again (`IFF_RUNNING`).
    pub has_carrier: bool,
    /// How often its carrier has changed, and how often it was lost; of two states of an interface the one with fewer changes is the
    /// older. `None` before Linux 4.16.
    pub carrier: Option<CarrierCounts>,
    /// Largest IP packet in bytes.
    pub mtu: u32,
    /// The Ethernet address; `None` on links that have none, as a TUN device.
    pub link_address: Option<[u8; 6]>,
    /// Whether it leads back to this host.
    pub is_loopback: bool,
    /// Whether there is one neighbour only, which needs no address (PPP, TUN).
    pub is_point_to_point: bool,
}

/// What an interface's carrier has been through. The counts wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarrierCounts {
    /// Times that it was lost or came (`IFLA_CARRIER_CHANGES`).
    pub changes: u32,
    /// Times that it was lost (`IFLA_CARRIER_DOWN_COUNT`).
    pub losses: u32,
}

impl CarrierCounts {
    /// Whether these are from before `other`.
    #[must_use]
    pub const fn are_older_than(&self, other: &Self) -> bool {
        (self.changes.wrapping_sub(other.changes) as i32) < 0
    }
}

impl InterfaceState {
    pub(super) fn from_message(message: LinkMessage) -> Self {
        let flags = message.header.flags;
        let mut state = Self {
            index: message.header.index,
            name: String::new(),
            is_up: flags.contains(LinkFlags::Up),
            has_carrier: flags.contains(LinkFlags::Up | LinkFlags::LowerUp | LinkFlags::Running),
            carrier: None,
            mtu: 0,
            link_address: None,
            is_loopback: flags.contains(LinkFlags::Loopback),
            is_point_to_point: flags.contains(LinkFlags::Pointopoint),
        };
        let (mut changes, mut losses) = (None, None);
        for attribute in message.attributes {
            match attribute {
                LinkAttribute::CarrierChanges(count) => changes = Some(count),
                LinkAttribute::CarrierDownCount(count) => losses = Some(count),
                LinkAttribute::IfName(name) => state.name = name,
                LinkAttribute::Mtu(mtu) => state.mtu = mtu,
                LinkAttribute::Address(address) if !state.is_loopback => {
                    state.link_address = address.try_into().ok();
                }
                _ => {}
            }
        }
        state.carrier = changes.zip(losses).map(|(changes, losses)| CarrierCounts { changes, losses });
        state
    }
}

impl Netlink {
    /// The index of an interface.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        self.link(message, || format!("find the interface {name:?}")).map(|link| link.header.index)
    }

    /// What there is to know about an interface.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn interface(&mut self, index: u32) -> Result<InterfaceState, Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.link(message, || format!("find interface {index}")).map(InterfaceState::from_message)
    }

    /// All interfaces of the namespace.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn interfaces(&mut self) -> Result<Vec<InterfaceState>, Error> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
        self.dump(
            &RouteNetlinkMessage::GetLink(message),
            "RTM_GETLINK",
            |message, found| {
                if let RouteNetlinkMessage::NewLink(link) = message {
                    found.push(InterfaceState::from_message(link));
                }
            },
            || "list the interfaces".to_owned(),
        )
    }

    fn link(
        &mut self,
        message: LinkMessage,
        doing: impl Fn() -> String + Copy,
    ) -> Result<LinkMessage, Error> {
        match self.ask(RouteNetlinkMessage::GetLink(message), 0, "RTM_GETLINK", doing)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            other => Err(Error::Netlink {
                doing: doing(),
                problem: format!("an answer of another kind: {other:?}"),
            }),
        }
    }

    /// Takes an interface up.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn set_up(&mut self, index: u32) -> Result<(), Error> {
        self.set_flags(index, LinkFlags::Up)
    }

    /// Takes an interface down. Its routes go with that; the kernel does not bring them back.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn set_down(&mut self, index: u32) -> Result<(), Error> {
        self.set_flags(index, LinkFlags::empty())
    }

    /// Waits until the kernel is done with what it is doing to an interface.
    ///
    /// It tells of a new name before it has given it to the kernel parameters; a request that changes nothing has to
    /// wait for the rest.
    ///
    /// # Errors
    /// `ENODEV` for one that is gone.
    pub fn wait_for_interface(&mut self, index: u32) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.tell(RouteNetlinkMessage::SetLink(message), 0, "RTM_SETLINK", || {
            format!("wait for interface {index}")
        })
    }

    /// Removes an interface. Whoever holds its device reads errors from then on.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for one that cannot be removed, as the loopback interface; `ENODEV` for one that is gone.
    pub fn remove_interface(&mut self, index: u32) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        self.tell(RouteNetlinkMessage::DelLink(message), 0, "RTM_DELLINK", || {
            format!("remove interface {index}")
        })
    }

    fn set_flags(&mut self, index: u32, flags: LinkFlags) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = flags;
        message.header.change_mask = LinkFlags::Up;
        let word = if flags.is_empty() { "down" } else { "up" };
        self.tell(RouteNetlinkMessage::SetLink(message), 0, "RTM_SETLINK", || {
            format!("take interface {index} {word}")
        })
    }

    /// Sets an interface's MTU in bytes of IP.
    ///
    /// # Errors
    /// `EINVAL` for an MTU outside the driver's bounds (a TUN takes 68 to 65535).
    pub fn set_mtu(&mut self, index: u32, mtu: u16) -> Result<(), Error> {
        self.set_attribute(index, LinkAttribute::Mtu(u32::from(mtu)), || {
            format!("set the MTU of interface {index} to {mtu}")
        })
    }

    /// Sets how many packets may wait in an interface to be sent.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn set_transmit_queue(&mut self, index: u32, packets: u32) -> Result<(), Error> {
        self.set_attribute(index, LinkAttribute::TxQueueLen(packets), || {
            format!("set the transmit queue of interface {index} to {packets} packets")
        })
    }

    pub(super) fn set_attribute(
        &mut self,
        index: u32,
        attribute: LinkAttribute,
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes.push(attribute);
        self.tell(RouteNetlinkMessage::SetLink(message), 0, "RTM_SETLINK", doing)
    }

    /// Makes two Ethernet interfaces that are each other's other end (veth): `name` in this namespace, `peer`
    /// in the namespace behind `peer_namespace`, as [`Host::namespace`](crate::Host::namespace) gives it. Both are
    /// down; each carries packets once both are up. Removing one removes the other.
    ///
    /// # Errors
    /// `EEXIST` when one of the names is taken, `EOPNOTSUPP` when the kernel has no veth.
    pub fn add_veth(&mut self, name: &str, peer: &str, peer_namespace: BorrowedFd<'_>) -> Result<(), Error> {
        let mut other = LinkMessage::default();
        other.attributes.push(LinkAttribute::IfName(peer.to_owned()));
        other.attributes.push(LinkAttribute::NetNsFd(peer_namespace.as_raw_fd()));
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(other))),
        ]));
        self.tell(
            RouteNetlinkMessage::NewLink(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "RTM_NEWLINK(veth)",
            || format!("make the interfaces {name:?} and {peer:?}"),
        )
    }
}
