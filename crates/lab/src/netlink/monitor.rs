//! What changes in a namespace, as it happens.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use super::{
    AssignedAddress, DATAGRAM, InterfaceState, IpVersion, Netlink, Route, address, errno_of, neighbour,
    route, split_message,
};
use crate::error::Error;
use crate::socket::attach_filter;

/// Groups of messages (`RTMGRP_*`).
const fn groups(version: IpVersion) -> u32 {
    (libc::RTMGRP_LINK
        | match version {
            IpVersion::V4 => libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV4_ROUTE,
            IpVersion::V6 => libc::RTMGRP_IPV6_IFADDR | libc::RTMGRP_IPV6_ROUTE,
        }) as u32
}

/// `rtm_table` of a route whose table has a number that one byte has no room for (`RT_TABLE_COMPAT`).
const LARGE_TABLE: u32 = 252;

/// Room for changes that nobody has read yet, in bytes. The kernel gives an ordinary process at most
/// `net.core.rmem_max` (commonly 208 KiB), which are some hundred changes of links.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;

/// A change in a network namespace, of the version of IP that is listened to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NetworkChange {
    /// An interface appeared, or something about it changed: up, carrier, MTU, name, link address.
    ///
    /// A carrier that comes back is reported at once (0.3 ms here), and so is one that is lost after a quiet second.
    /// But the kernel reports a loss at most once a second, over all interfaces of the machine (`linkwatch`): with
    /// links that flap the news is up to 1 s old, and a loss that was made good meanwhile is never told. Whoever cannot
    /// wait asks [`Netlink::interface`](super::Netlink::interface), which knows at once.
    Link {
        /// What it is now.
        state: InterfaceState,
    },
    /// An interface is gone, or was moved to another namespace. The kernel says nothing about the routes that went
    /// with it, nor about those that go when an interface is taken down.
    LinkRemoved {
        /// Its index.
        index: u32,
        /// Its name.
        name: String,
    },
    /// An interface got an address, or something about the address changed, as how long it is valid. Of IPv6 also when Duplicate
    /// Address Detection has ended, whichever way, and when the address is deprecated.
    AddressAdded {
        /// The address, with all that the kernel knows about it.
        assigned: AssignedAddress,
    },
    /// An interface lost an address.
    AddressRemoved {
        /// The interface.
        index: u32,
        /// The address.
        address: IpAddr,
        /// Length of its prefix in bits.
        prefix_length: u8,
    },
    /// A default route was added, in whichever table, or took another's place. Of IPv6 also when the kernel has learnt it from a
    /// router ([`Route::is_advertised`]), but not when the router has advertised itself again.
    DefaultRouteAdded {
        /// The route.
        route: Route,
    },
    /// A default route was removed, as when a router's lifetime has ended.
    DefaultRouteRemoved {
        /// The route.
        route: Route,
    },
    /// Somebody else removed a route that is no default route from a table with a number above 255. Only told by
    /// [`NetlinkMonitor::open_beside`].
    RouteRemoved {
        /// The route.
        route: Route,
    },
    /// A neighbour does not answer: the kernel's probes, or its questions for a link-layer address, have all had none (NUD_FAILED). Only told
    /// after [`NetlinkMonitor::listen_to_neighbours`].
    NeighbourFailed {
        /// The interface.
        index: u32,
        /// The neighbour's address.
        address: IpAddr,
    },
    /// Changes were lost, since they came faster than they were read: read everything again.
    Overrun,
}

/// Listens for changes in the network namespace of the thread which opened it.
///
/// Its descriptor is readable when there are changes; read them until there are none. Whoever wants to know the
/// state as well opens this first and asks [`Netlink`](super::Netlink) then, so that nothing falls in between.
///
/// Routes that are not told here do not reach its buffer: a routing daemon, or an agent itself, that adds a hundred thousand
/// of them has nothing overrun.
#[derive(Debug)]
pub struct NetlinkMonitor {
    socket: Socket,
    /// The port of a conversation whose changes of routes are not news.
    own: Option<u32>,
    buffer: Vec<u8>,
    /// Read, but not yet asked for.
    changes: VecDeque<NetworkChange>,
}

impl NetlinkMonitor {
    /// Begins to listen, to what changes of IPv4.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open() -> Result<Self, Error> {
        Self::open_for(IpVersion::V4)
    }

    /// Begins to listen to what changes of links and of this version of IP.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open_for(version: IpVersion) -> Result<Self, Error> {
        Self::listen(version, None)
    }

    /// Begins to listen beside `own`, by which this process adds and removes routes: what others remove is told as well
    /// ([`NetworkChange::RouteRemoved`]).
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open_beside(own: &Netlink) -> Result<Self, Error> {
        Self::open_beside_for(IpVersion::V4, own)
    }

    /// As [`NetlinkMonitor::open_beside`], to what changes of this version of IP.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open_beside_for(version: IpVersion, own: &Netlink) -> Result<Self, Error> {
        Self::listen(version, Some(own.port()?))
    }

    /// As [`NetlinkMonitor::open_beside`], to what changes of both versions of IP.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open_beside_for_both(own: &Netlink) -> Result<Self, Error> {
        Self::listen_to(groups(IpVersion::V4) | groups(IpVersion::V6), Some(own.port()?))
    }

    fn listen(version: IpVersion, own: Option<u32>) -> Result<Self, Error> {
        Self::listen_to(groups(version), own)
    }

    fn listen_to(groups: u32, own: Option<u32>) -> Result<Self, Error> {
        let failed = |call| {
            move |error: std::io::Error| {
                Error::system("listen for changes of the network", call, errno_of(&error))
            }
        };
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed("socket(AF_NETLINK)"))?;
        socket.set_non_blocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        // A smaller one overruns earlier, which is said then.
        let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER);
        // Without it more is read than is told, and overruns come earlier.
        let _ = attach_filter(socket.as_fd(), &mut filter(own));
        socket.bind(&SocketAddr::new(0, groups)).map_err(failed("bind(AF_NETLINK)"))?;
        Ok(Self { socket, own, buffer: Vec::with_capacity(DATAGRAM), changes: VecDeque::new() })
    }

    /// Begins to listen to what becomes of neighbours, too. Of it only those that do not answer are told
    /// ([`NetworkChange::NeighbourFailed`]); the rest does not reach its buffer.
    ///
    /// # Errors
    /// [`Error::System`] naming `setsockopt`.
    pub fn listen_to_neighbours(&mut self) -> Result<(), Error> {
        self.socket.add_membership(libc::RTNLGRP_NEIGH).map_err(|error| {
            Error::system(
                "listen for changes of neighbours",
                "setsockopt(NETLINK_ADD_MEMBERSHIP)",
                errno_of(&error),
            )
        })
    }

    /// The next change; `None` when there is none now.
    ///
    /// # Errors
    /// [`Error::System`] naming `recv`.
    pub fn poll_change(&mut self) -> Result<Option<NetworkChange>, Error> {
        loop {
            if let Some(change) = self.changes.pop_front() {
                return Ok(Some(change));
            }
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Ok(_) => read_datagram(&self.buffer, self.own, &mut self.changes),
                Err(error) => match errno_of(&error) {
                    Errno::EAGAIN => return Ok(None),
                    Errno::EINTR => {}
                    Errno::ENOBUFS => return Ok(Some(NetworkChange::Overrun)),
                    errno => {
                        return Err(Error::system(
                            "listen for changes of the network",
                            "recv(AF_NETLINK)",
                            errno,
                        ));
                    }
                },
            }
        }
    }
}

impl AsFd for NetlinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The kernel's program that lets through what is told here: everything but routes and neighbours, default routes, removals from
/// large tables by others than `own`, and neighbours that do not answer. Jumps count instructions from the next one.
fn filter(own: Option<u32>) -> [libc::sock_filter; 17] {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ) as u16,
        jt,
        jf,
        k,
    };
    let load = libc::BPF_LD | libc::BPF_ABS;
    // Netlink speaks in the host's order, and the program loads in the network's.
    let kind = |kind: u16| u32::from(kind.to_be());
    let removed = own.is_some();
    [
        // 0: `nlmsg_type`.
        statement(load | libc::BPF_H, 4),
        jump(kind(libc::RTM_NEWROUTE), 3, 0),
        jump(kind(libc::RTM_DELROUTE), 4, 0),
        jump(kind(libc::RTM_NEWNEIGH), 9, 0),
        jump(kind(libc::RTM_DELNEIGH), 11, 10),
        // 5: a route that is new: `rtm_dst_len`.
        statement(load | libc::BPF_B, 17),
        jump(0, 8, 9),
        // 7: a route that is gone: `rtm_dst_len`, `rtm_table`, `nlmsg_pid`.
        statement(load | libc::BPF_B, 17),
        jump(0, 6, 0),
        statement(load | libc::BPF_B, 20),
        jump(if removed { LARGE_TABLE } else { u32::MAX }, 0, 5),
        statement(load | libc::BPF_W, 12),
        jump(own.unwrap_or(0).to_be(), 3, 2),
        // 13: a neighbour: `ndm_state`.
        statement(load | libc::BPF_H, 24),
        jump(u32::from(libc::NUD_FAILED.to_be()), 0, 1),
        // 15: let through, 16: drop.
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
        statement(libc::BPF_RET | libc::BPF_K, 0),
    ]
}

fn read_datagram(datagram: &[u8], own: Option<u32>, changes: &mut VecDeque<NetworkChange>) {
    let mut rest = datagram;
    while let Some((bytes, behind)) = split_message(rest) {
        rest = behind;
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            Ok(NetlinkMessage { header, payload: NetlinkPayload::InnerMessage(message), .. }) => {
                let tells_removals = own.is_some_and(|own| own != header.port_number);
                changes.extend(change(message, tells_removals));
            }
            Ok(_) => {}
            // Something changed, although not in a way that can be read.
            Err(_) => changes.push_back(NetworkChange::Overrun),
        }
    }
}

fn change(message: RouteNetlinkMessage, tells_removals: bool) -> Option<NetworkChange> {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            Some(NetworkChange::Link { state: InterfaceState::from_message(link) })
        }
        RouteNetlinkMessage::DelLink(link) => {
            let InterfaceState { index, name, .. } = InterfaceState::from_message(link);
            Some(NetworkChange::LinkRemoved { index, name })
        }
        RouteNetlinkMessage::NewAddress(message) => {
            let assigned = AssignedAddress::from_message(&message)?;
            Some(NetworkChange::AddressAdded { assigned })
        }
        RouteNetlinkMessage::DelAddress(message) => {
            let (index, on) = address::interface_address(&message)?;
            Some(NetworkChange::AddressRemoved {
                index,
                address: on.address,
                prefix_length: on.prefix_length,
            })
        }
        RouteNetlinkMessage::NewRoute(message) => {
            let route = route::read_route(message).filter(Route::is_default)?;
            Some(NetworkChange::DefaultRouteAdded { route })
        }
        RouteNetlinkMessage::DelRoute(message) => {
            let route = route::read_route(message)?;
            if route.is_default() {
                return Some(NetworkChange::DefaultRouteRemoved { route });
            }
            let is_told = tells_removals && route.table.is_some_and(|table| table > u8::MAX.into());
            is_told.then_some(NetworkChange::RouteRemoved { route })
        }
        RouteNetlinkMessage::NewNeighbour(message) => {
            let neighbour = neighbour::read(&message).filter(|neighbour| neighbour.has_failed)?;
            Some(NetworkChange::NeighbourFailed { index: message.header.ifindex, address: neighbour.address })
        }
        _ => None,
    }
}
