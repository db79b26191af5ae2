//! What changes in a namespace, as it happens.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use super::{DATAGRAM, InterfaceState, Route, address, errno_of, route, split_message};
use crate::error::Error;

/// Groups of messages (`RTMGRP_*`).
const GROUPS: u32 = (libc::RTMGRP_LINK | libc::RTMGRP_IPV4_IFADDR | libc::RTMGRP_IPV4_ROUTE) as u32;

/// Room for changes that nobody has read yet, in bytes. The kernel gives an ordinary process at most
/// `net.core.rmem_max` (commonly 208 KiB), which are some hundred changes of links.
const RECEIVE_BUFFER: libc::c_int = 1 << 20;

/// A change in a network namespace.
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
    /// An interface got an IPv4 address, or something about the address changed, as how long it is valid.
    AddressAdded {
        /// The interface.
        index: u32,
        /// The address.
        address: IpAddr,
        /// Length of its prefix in bits.
        prefix_length: u8,
    },
    /// An interface lost an IPv4 address.
    AddressRemoved {
        /// The interface.
        index: u32,
        /// The address.
        address: IpAddr,
        /// Length of its prefix in bits.
        prefix_length: u8,
    },
    /// A default route of IPv4 was added, in whichever table, or took another's place.
    DefaultRouteAdded {
        /// The route.
        route: Route,
    },
    /// A default route of IPv4 was removed.
    DefaultRouteRemoved {
        /// The route.
        route: Route,
    },
    /// Changes were lost, since they came faster than they were read: read everything again.
    Overrun,
}

/// Listens for changes in the network namespace of the thread which opened it.
///
/// Its descriptor is readable when there are changes; read them until there are none. Whoever wants to know the
/// state as well opens this first and asks [`Netlink`](super::Netlink) then, so that nothing falls in between.
#[derive(Debug)]
pub struct NetlinkMonitor {
    socket: Socket,
    buffer: Vec<u8>,
    /// Read, but not yet asked for.
    changes: VecDeque<NetworkChange>,
}

impl NetlinkMonitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// [`Error::System`] naming `socket` or `bind`.
    pub fn open() -> Result<Self, Error> {
        let failed = |call| {
            move |error: std::io::Error| {
                Error::system("listen for changes of the network", call, errno_of(&error))
            }
        };
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed("socket(AF_NETLINK)"))?;
        socket.set_non_blocking(true).map_err(failed("fcntl(O_NONBLOCK)"))?;
        // A smaller one overruns earlier, which is said then.
        let _ = socket.set_rx_buf_sz(RECEIVE_BUFFER);
        socket.bind(&SocketAddr::new(0, GROUPS)).map_err(failed("bind(AF_NETLINK)"))?;
        Ok(Self { socket, buffer: Vec::with_capacity(DATAGRAM), changes: VecDeque::new() })
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
                Ok(_) => read_datagram(&self.buffer, &mut self.changes),
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

fn read_datagram(datagram: &[u8], changes: &mut VecDeque<NetworkChange>) {
    let mut rest = datagram;
    while let Some((bytes, behind)) = split_message(rest) {
        rest = behind;
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(bytes) {
            Ok(NetlinkMessage { payload: NetlinkPayload::InnerMessage(message), .. }) => {
                changes.extend(change(message));
            }
            Ok(_) => {}
            // Something changed, although not in a way that can be read.
            Err(_) => changes.push_back(NetworkChange::Overrun),
        }
    }
}

fn change(message: RouteNetlinkMessage) -> Option<NetworkChange> {
    match message {
        RouteNetlinkMessage::NewLink(link) => {
            Some(NetworkChange::Link { state: InterfaceState::from_message(link) })
        }
        RouteNetlinkMessage::DelLink(link) => {
            let InterfaceState { index, name, .. } = InterfaceState::from_message(link);
            Some(NetworkChange::LinkRemoved { index, name })
        }
        RouteNetlinkMessage::NewAddress(message) => {
            let (index, on) = address::interface_address(&message)?;
            Some(NetworkChange::AddressAdded { index, address: on.address, prefix_length: on.prefix_length })
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
            let route = route::read_route(message).filter(Route::is_default)?;
            Some(NetworkChange::DefaultRouteRemoved { route })
        }
        _ => None,
    }
}
