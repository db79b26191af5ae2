//! Where tunnels of IPv6 and IPv4 in IPv6 enter and leave the network (RFC 2473).

use std::io::IoSlice;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};

use careof_wire::protocol;
use nix::errno::Errno;

use crate::error::Error;
use crate::icmpv6_socket::{Received, receive_v6};
use crate::netlink::IpVersion;
use crate::socket::{PacketInfoV6, Socket, encode, from_ipv6};

const DOING: &str = "carry packets tunnelled in IPv6";
/// What may wait to be received, bytes as the kernel counts them; see the tunnel sockets of IPv4.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
const SEND_BUFFER: libc::c_int = 1 << 20;

/// The raw socket of protocol 41, or of 4.
///
/// While it is open the kernel never answers a packet of the protocol with a Parameter Problem, whoever sent it; so it is opened once and
/// stays open for the agent's life. It belongs to the network namespace of the thread that opened it, hears every tunnelled packet for
/// this host, reassembled, and never blocks. The kernel makes the outer header, and fragments what is longer than the path takes.
#[derive(Debug)]
pub struct Ipv6TunnelSocket {
    socket: Socket,
}

/// A packet out of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6TunnelPacket<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// The tunnel's other end: the source of the outer header.
    pub source: Ipv6Addr,
    /// The tunnel's end here: the destination of the outer header.
    pub destination: Ipv6Addr,
    /// What was in the tunnel.
    pub packet: &'a [u8],
}

/// The outer header of a packet, as far as it is the sender's choice, and its way out of this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Outer {
    /// The tunnel's entry, an address of this host.
    pub source: Ipv6Addr,
    /// The tunnel's exit.
    pub destination: Ipv6Addr,
    /// Hop limit.
    pub hop_limit: u8,
    /// DSCP and ECN.
    pub traffic_class: u8,
    /// Index of the interface it leaves by; `None` leaves it to the routes.
    pub interface: Option<u32>,
}

impl Ipv6TunnelSocket {
    /// Opens the socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open() -> Result<Self, Error> {
        Self::open_for(IpVersion::V6)
    }

    /// Opens the socket for packets of this version of IP.
    ///
    /// # Errors
    /// Those of [`Ipv6TunnelSocket::open`].
    pub fn open_for(inner: IpVersion) -> Result<Self, Error> {
        let number = match inner {
            IpVersion::V4 => protocol::IP_IN_IP,
            IpVersion::V6 => protocol::IPV6,
        };
        let socket = Socket::open(DOING, libc::AF_INET6, libc::SOCK_RAW, number.into())?;
        socket.ask_for_packet_info_v6()?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        socket.grow_send_buffer(SEND_BUFFER)?;
        Ok(Self { socket })
    }

    /// The next packet, in `buffer`; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`; the socket is still good.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<Ipv6TunnelPacket<'b>>, Error> {
        let Some((received, len)) = receive_v6(&self.socket, buffer)? else { return Ok(None) };
        let packet = buffer.get(..len).unwrap_or_default();
        let Received { interface, source, destination, .. } = received;
        Ok(Some(Ipv6TunnelPacket { interface, source, destination, packet }))
    }

    /// Puts a packet into a tunnel. `false`: there is no room in the kernel at present.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg`: `ENETUNREACH` or `EHOSTUNREACH` where there is no way, `EINVAL` or `EADDRNOTAVAIL` for a
    /// source that is no address of this host, `EMSGSIZE` for what is longer than a packet can be.
    pub fn send(&self, outer: &Ipv6Outer, packet: &[u8]) -> Result<bool, Error> {
        let &Ipv6Outer { source, destination, hop_limit, traffic_class, interface } = outer;
        let interface = interface.unwrap_or(0);
        let mut control = [0; encode::PACKET_INFO_V6_LEN + encode::NUMBER_LEN + encode::NUMBER_LEN];
        let info = encode::packet_info_v6(PacketInfoV6 { interface, address: source });
        let (hops, class) = (encode::hop_limit(hop_limit), encode::traffic_class(traffic_class));
        let parts = info.iter().chain(&hops).chain(&class);
        control.iter_mut().zip(parts).for_each(|(place, byte)| *place = *byte);
        send_v6(&self.socket, destination, &control, packet)
    }
}

impl AsFd for Ipv6TunnelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends by a raw socket; `false` where there is no room.
pub(crate) fn send_v6(
    socket: &Socket,
    destination: Ipv6Addr,
    control: &[u8],
    bytes: &[u8],
) -> Result<bool, Error> {
    let name = from_ipv6(destination, 0);
    loop {
        match socket.send(&name, control, &[IoSlice::new(bytes)]) {
            Ok(()) => return Ok(true),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN | Errno::ENOBUFS) => return Ok(false),
            Err(errno) => return Err(socket.failed("sendmsg", errno)),
        }
    }
}
