//! Interfaces, addresses and routes, by rtnetlink.
//!
//! The messages are those of `netlink-packet-route`, the crate underneath `rtnetlink`. `rtnetlink` itself is left
//! out: it brings an asynchronous runtime (37 crates against 13) for what is here one request and one answer on
//! a blocking socket, in a thread that has nothing else to do.

use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use crate::error::Error;

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it leads: an address of the prefix; bits behind the prefix are ignored.
    pub destination: IpAddr,
    /// Length of the prefix in bits; 0 is the default route.
    pub prefix_length: u8,
    /// The next hop; `None` on a point-to-point link.
    pub via: Option<IpAddr>,
    /// Index of the interface that it leaves by.
    pub interface: u32,
    /// The source address for packets that have none yet.
    pub source: Option<IpAddr>,
    /// Number of the routing table; `None` for the main one.
    pub table: Option<u32>,
    /// Preference among routes to the same prefix, the smallest first; `None` for the kernel's default.
    pub metric: Option<u32>,
}

impl Route {
    /// The default route of IPv4 or IPv6 through an interface without neighbours.
    #[must_use]
    pub const fn default_through(interface: u32, any: IpAddr) -> Self {
        Self {
            destination: any,
            prefix_length: 0,
            via: None,
            interface,
            source: None,
            table: None,
            metric: None,
        }
    }
}

/// A conversation with the kernel about one network namespace: that of the thread which opened it.
#[derive(Debug)]
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Opens a conversation about the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `connect`.
    pub fn open() -> Result<Self, Error> {
        let failed =
            |call| move |error: std::io::Error| Error::system("talk to the kernel", call, errno_of(&error));
        let socket = Socket::new(NETLINK_ROUTE).map_err(failed("socket(AF_NETLINK)"))?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed("connect(AF_NETLINK)"))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// The index of an interface.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn index_of(&mut self, name: &str) -> Result<u32, Error> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        let found = self.ask(RouteNetlinkMessage::GetLink(message), 0, "RTM_GETLINK", || {
            format!("find the interface {name:?}")
        })?;
        match found {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link.header.index),
            other => Err(Error::Netlink {
                doing: format!("find the interface {name:?}"),
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

    /// Removes an interface. Whoever holds its device reads errors from then on.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for one that cannot be removed, as the loopback interface.
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

    fn set_attribute(
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

    /// Gives an interface an address.
    ///
    /// # Errors
    /// `EEXIST` when it has it already, `EINVAL` for a prefix that is longer than the address.
    pub fn add_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> Result<(), Error> {
        self.tell(
            RouteNetlinkMessage::NewAddress(address_message(index, address, prefix_length)),
            NLM_F_CREATE | NLM_F_EXCL,
            "RTM_NEWADDR",
            || format!("give interface {index} the address {address}/{prefix_length}"),
        )
    }

    /// Takes an address from an interface.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL` when it does not have it.
    pub fn remove_address(&mut self, index: u32, address: IpAddr, prefix_length: u8) -> Result<(), Error> {
        self.tell(
            RouteNetlinkMessage::DelAddress(address_message(index, address, prefix_length)),
            0,
            "RTM_DELADDR",
            || format!("take the address {address}/{prefix_length} from interface {index}"),
        )
    }

    /// Adds a route, in place of the one to the same prefix with the same metric if there is one.
    ///
    /// # Errors
    /// `ENETUNREACH` when the next hop cannot be reached, `ENETDOWN` when the interface is down.
    pub fn set_route(&mut self, route: &Route) -> Result<(), Error> {
        self.tell(
            RouteNetlinkMessage::NewRoute(route_message(route)),
            NLM_F_CREATE | NLM_F_REPLACE,
            "RTM_NEWROUTE",
            || format!("add the route to {}/{}", route.destination, route.prefix_length),
        )
    }

    /// Removes a route.
    ///
    /// # Errors
    /// `ESRCH` when there is no such route.
    pub fn remove_route(&mut self, route: &Route) -> Result<(), Error> {
        self.tell(RouteNetlinkMessage::DelRoute(route_message(route)), 0, "RTM_DELROUTE", || {
            format!("remove the route to {}/{}", route.destination, route.prefix_length)
        })
    }

    /// A request that is answered by success or failure alone.
    fn tell(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        call: &'static str,
        doing: impl FnOnce() -> String,
    ) -> Result<(), Error> {
        self.ask(message, flags | NLM_F_ACK, call, doing).map(drop)
    }

    /// Sends a request and waits for its answer: a message, an acknowledgement (`None`) or an error.
    fn ask(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        call: &'static str,
        doing: impl FnOnce() -> String,
    ) -> Result<Option<RouteNetlinkMessage>, Error> {
        match self.exchange(message, flags) {
            Ok(answer) => Ok(answer),
            Err(Failure::Errno(errno)) => Err(Error::system(doing(), call, errno)),
            Err(Failure::Unreadable(problem)) => Err(Error::Netlink { doing: doing(), problem }),
        }
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
    ) -> Result<Option<RouteNetlinkMessage>, Failure> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
                .map_err(|error| Failure::Unreadable(error.to_string()))?;
            if answer.header.sequence_number != self.sequence {
                // The answer to a request that failed while it was sent.
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) => match error.code {
                    None => Ok(None),
                    Some(code) => Err(Failure::Errno(Errno::from_raw(code.get().saturating_neg()))),
                },
                NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
                other => Err(Failure::Unreadable(format!("an unexpected answer: {other:?}"))),
            };
        }
    }
}

/// Why an exchange failed, before it is known what it was for.
enum Failure {
    Errno(Errno),
    Unreadable(String),
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Errno(errno_of(&error))
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn address_message(index: u32, address: IpAddr, prefix_length: u8) -> AddressMessage {
    let mut message = AddressMessage::default();
    message.header.family = family(address);
    message.header.index = index;
    message.header.prefix_len = prefix_length;
    message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
    message
}

fn route_message(route: &Route) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header.address_family = family(route.destination);
    message.header.destination_prefix_length = route.prefix_length;
    message.header.protocol = RouteProtocol::Static;
    message.header.scope = if route.via.is_some() || route.destination.is_ipv6() {
        RouteScope::Universe
    } else {
        RouteScope::Link
    };
    message.header.kind = RouteType::Unicast;
    message.header.table = RouteHeader::RT_TABLE_MAIN;
    let attributes = &mut message.attributes;
    if route.prefix_length > 0 {
        let network = network(route.destination, route.prefix_length);
        attributes.push(RouteAttribute::Destination(RouteAddress::from(network)));
    }
    if let Some(via) = route.via {
        attributes.push(RouteAttribute::Gateway(RouteAddress::from(via)));
    }
    if let Some(source) = route.source {
        attributes.push(RouteAttribute::PrefSource(RouteAddress::from(source)));
    }
    if let Some(table) = route.table {
        // The header has room for small numbers only; the attribute wins over it.
        message.header.table = u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC);
        attributes.push(RouteAttribute::Table(table));
    }
    if let Some(metric) = route.metric {
        attributes.push(RouteAttribute::Priority(metric));
    }
    attributes.push(RouteAttribute::Oif(route.interface));
    message
}

/// `address` without the bits behind its prefix; the kernel refuses a route that has some.
fn network(address: IpAddr, prefix_length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(u32::from(prefix_length))).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128_u32.saturating_sub(u32::from(prefix_length))).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_no_bits_behind_its_prefix() {
        let cases = [
            ("10.1.2.3", 24, "10.1.2.0"),
            ("10.1.2.3", 32, "10.1.2.3"),
            ("10.1.2.3", 0, "0.0.0.0"),
            ("10.1.2.3", 200, "10.1.2.3"),
            ("fd00::1:2", 112, "fd00::1:0"),
            ("fd00::1", 0, "::"),
        ];
        for (address, length, expected) in cases {
            assert_eq!(network(address.parse().unwrap(), length), expected.parse::<IpAddr>().unwrap());
        }
    }
}
