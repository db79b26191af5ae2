//! Neighbours: which Ethernet address an IP address has, and for which addresses this host answers in another's
//! place (proxy ARP, proxy neighbor discovery).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::RouteProtocol;
use nix::errno::Errno;

use super::{Effect, Netlink, family};
use crate::error::Error;

/// What is known about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Its address.
    pub address: IpAddr,
    /// Its Ethernet address, once it is known.
    pub link_address: Option<[u8; 6]>,
    /// Whether it was set, instead of learnt: such a one does not age.
    pub is_permanent: bool,
    /// Whether it does not answer (NUD_FAILED).
    pub has_failed: bool,
    /// Who set it (`NDA_PROTOCOL`), for telling one's own from others'; 0 unless somebody said so.
    pub maker: u8,
}

impl Netlink {
    /// The neighbours that are known on an interface, of IPv4 and IPv6.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn neighbours(&mut self, index: u32) -> Result<Vec<Neighbour>, Error> {
        let message = NeighbourMessage::default();
        self.dump(
            &RouteNetlinkMessage::GetNeighbour(message),
            "RTM_GETNEIGH",
            |message, found| {
                if let RouteNetlinkMessage::NewNeighbour(message) = message
                    && message.header.ifindex == index
                {
                    found.extend(read(&message));
                }
            },
            || format!("list the neighbours on interface {index}"),
        )
    }

    /// What is known about one neighbour; `None` when nothing is.
    ///
    /// # Errors
    /// The kernel's answer; `ENODEV` when there is no such interface.
    pub fn neighbour(&mut self, index: u32, address: impl Into<IpAddr>) -> Result<Option<Neighbour>, Error> {
        let address: IpAddr = address.into();
        let found = self.find(neighbour_message(index, address), || {
            format!("look for the neighbour {address} on interface {index}")
        })?;
        Ok(found.as_ref().and_then(read))
    }

    /// Sets a neighbour's Ethernet address, for good: it does not age and is not asked for. Returns what was set
    /// before, so that it can be set again; what was only learnt needs no putting back.
    ///
    /// # Errors
    /// `EINVAL` on an interface without Ethernet addresses, `ENODEV` when there is no such interface.
    pub fn set_neighbour(
        &mut self,
        index: u32,
        address: impl Into<IpAddr>,
        link_address: [u8; 6],
    ) -> Result<Option<[u8; 6]>, Error> {
        let address: IpAddr = address.into();
        self.set_neighbour_as(0, index, address, link_address)
    }

    /// As [`Netlink::set_neighbour`], with a [maker](Neighbour::maker), which stays until the neighbour is forgotten.
    ///
    /// # Errors
    /// As [`Netlink::set_neighbour`].
    pub fn set_neighbour_as(
        &mut self,
        maker: u8,
        index: u32,
        address: impl Into<IpAddr>,
        link_address: [u8; 6],
    ) -> Result<Option<[u8; 6]>, Error> {
        let address: IpAddr = address.into();
        let before = self.neighbour(index, address)?;
        self.put_neighbour(NeighbourState::Permanent, maker, index, address, link_address)?;
        Ok(before.filter(|neighbour| neighbour.is_permanent).and_then(|neighbour| neighbour.link_address))
    }

    /// Tells the kernel a neighbour's Ethernet address as if the neighbour had just said it unasked (state STALE of RFC 4861 section 7.3.2):
    /// packets go there at once, what waits for the address to be resolved included, and the kernel then asks whether it is still there.
    ///
    /// # Errors
    /// `EINVAL` on an interface without Ethernet addresses, `ENODEV` when there is no such interface.
    pub fn learn_neighbour(
        &mut self,
        index: u32,
        address: impl Into<IpAddr>,
        link_address: [u8; 6],
    ) -> Result<(), Error> {
        self.put_neighbour(NeighbourState::Stale, 0, index, address.into(), link_address)
    }

    fn put_neighbour(
        &mut self,
        state: NeighbourState,
        maker: u8,
        index: u32,
        address: IpAddr,
        link_address: [u8; 6],
    ) -> Result<(), Error> {
        let mut message = neighbour_message(index, address);
        message.header.state = state;
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(link_address.to_vec()));
        if maker > 0 {
            message.attributes.push(NeighbourAttribute::Protocol(RouteProtocol::from(maker)));
        }
        self.tell(
            RouteNetlinkMessage::NewNeighbour(message),
            NLM_F_CREATE | NLM_F_REPLACE,
            "RTM_NEWNEIGH",
            || format!("set the neighbour {address} on interface {index}"),
        )
    }

    /// Forgets a neighbour, set or learnt; [`Effect::Unchanged`] when it was not known.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove_neighbour(&mut self, index: u32, address: impl Into<IpAddr>) -> Result<Effect, Error> {
        let address: IpAddr = address.into();
        self.tell_unless(
            RouteNetlinkMessage::DelNeighbour(neighbour_message(index, address)),
            0,
            "RTM_DELNEIGH",
            &[Errno::ENOENT, Errno::ENODEV, Errno::ENXIO],
            || format!("forget the neighbour {address} on interface {index}"),
        )
    }

    /// Answers ARP, or neighbor solicitations, for `address` on an interface, as if it were this host's; [`Effect::Unchanged`] when it
    /// did so already.
    ///
    /// The kernel answers only while it forwards (`net.ipv4.ip_forward`; `forwarding` and `proxy_ndp` of the interface below
    /// `net.ipv6.conf`), and of IPv4 while its route to `address` leaves by another interface.
    ///
    /// # Errors
    /// The kernel's answer; `ENODEV` when there is no such interface.
    pub fn add_proxy_neighbour(&mut self, index: u32, address: impl Into<IpAddr>) -> Result<Effect, Error> {
        let address: IpAddr = address.into();
        if self.has_proxy_neighbour(index, address)? {
            return Ok(Effect::Unchanged);
        }
        self.put_proxy_neighbour(index, address).map(|()| Effect::Changed)
    }

    /// As [`Netlink::add_proxy_neighbour`], without asking whether it did so already.
    ///
    /// The kernel looks through a sixteenth of all addresses for which it answers, on whichever interface.
    ///
    /// # Errors
    /// The kernel's answer; `ENODEV` when there is no such interface.
    pub fn put_proxy_neighbour(&mut self, index: u32, address: impl Into<IpAddr>) -> Result<(), Error> {
        let address: IpAddr = address.into();
        let message = proxy_message(index, address);
        self.tell(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE, "RTM_NEWNEIGH(proxy)", || {
            format!("answer ARP for {address} on interface {index}")
        })
    }

    /// The addresses for which this host answers ARP on an interface.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn proxy_neighbours(&mut self, index: u32) -> Result<Vec<IpAddr>, Error> {
        let mut message = NeighbourMessage::default();
        message.header.flags = NeighbourFlags::Proxy;
        self.dump(
            &RouteNetlinkMessage::GetNeighbour(message),
            "RTM_GETNEIGH(proxy)",
            |message, found| {
                if let RouteNetlinkMessage::NewNeighbour(message) = message
                    && message.header.ifindex == index
                    && message.header.flags.contains(NeighbourFlags::Proxy)
                {
                    found.extend(read(&message).map(|proxied| proxied.address));
                }
            },
            || format!("list the addresses for which ARP is answered on interface {index}"),
        )
    }

    /// Answers no longer for `address`; [`Effect::Unchanged`] when it did not.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn remove_proxy_neighbour(
        &mut self,
        index: u32,
        address: impl Into<IpAddr>,
    ) -> Result<Effect, Error> {
        let address: IpAddr = address.into();
        self.tell_unless(
            RouteNetlinkMessage::DelNeighbour(proxy_message(index, address)),
            0,
            "RTM_DELNEIGH(proxy)",
            &[Errno::ENOENT, Errno::ENODEV, Errno::ENXIO],
            || format!("answer ARP for {address} on interface {index} no longer"),
        )
    }

    /// Whether this host answers ARP for `address` on an interface.
    ///
    /// # Errors
    /// The kernel's answer; `ENODEV` when there is no such interface.
    pub fn has_proxy_neighbour(&mut self, index: u32, address: impl Into<IpAddr>) -> Result<bool, Error> {
        let address: IpAddr = address.into();
        let found = self.find(proxy_message(index, address), || {
            format!("find out who answers ARP for {address} on interface {index}")
        })?;
        Ok(found.is_some())
    }

    fn find(
        &mut self,
        message: NeighbourMessage,
        doing: impl FnOnce() -> String,
    ) -> Result<Option<NeighbourMessage>, Error> {
        match self.ask(RouteNetlinkMessage::GetNeighbour(message), 0, "RTM_GETNEIGH", doing) {
            Ok(Some(RouteNetlinkMessage::NewNeighbour(found))) => Ok(Some(found)),
            Ok(_) | Err(Error::System { errno: Errno::ENOENT, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn neighbour_message(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = index;
    message.attributes.push(NeighbourAttribute::Destination(address.into()));
    message
}

fn proxy_message(index: u32, address: IpAddr) -> NeighbourMessage {
    let mut message = neighbour_message(index, address);
    message.header.flags = NeighbourFlags::Proxy;
    message
}

pub(super) fn read(message: &NeighbourMessage) -> Option<Neighbour> {
    let find = |attribute: &NeighbourAttribute| match attribute {
        NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => Some(IpAddr::V4(*address)),
        NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => Some(IpAddr::V6(*address)),
        _ => None,
    };
    let address = message.attributes.iter().find_map(find)?;
    let link_address = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(bytes) => bytes.as_slice().try_into().ok(),
        _ => None,
    });
    let has_failed = message.header.state == NeighbourState::Failed;
    let is_permanent = message.header.state == NeighbourState::Permanent;
    let maker = message.attributes.iter().find_map(|attribute| match attribute {
        NeighbourAttribute::Protocol(maker) => Some(u8::from(*maker)),
        _ => None,
    });
    Some(Neighbour { address, link_address, is_permanent, has_failed, maker: maker.unwrap_or(0) })
}
