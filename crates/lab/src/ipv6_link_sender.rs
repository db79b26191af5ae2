//! Whole packets of IPv6 onto one link, from addresses that this host need not have.

use careof_wire::ipv6::Ipv6Header;
use nix::errno::Errno;

use crate::error::Error;
use crate::ipv6_tunnel_socket::send_v6;
use crate::socket::{PacketInfoV6, Socket, encode};

/// `SO_BINDTOIFINDEX` of `asm-generic/socket.h`, since Linux 5.1.
const SO_BINDTOIFINDEX: libc::c_int = 62;
/// `IPV6_FREEBIND` of `linux/in6.h`, since Linux 4.15.
const IPV6_FREEBIND: libc::c_int = 78;

/// Sends packets as they are by one interface, whichever routes lead elsewhere. What it sends to a group does not come back to this host.
#[derive(Debug)]
pub struct Ipv6LinkSender {
    socket: Socket,
    interface: u32,
}

impl Ipv6LinkSender {
    /// Opens the sender for the interface of this index, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`, `ENODEV` at `setsockopt(SO_BINDTOIFINDEX)` where there
    /// is no such interface.
    pub fn open(interface: u32) -> Result<Self, Error> {
        let doing = "send packets of IPv6 onto a link";
        let socket = Socket::open(doing, libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
        socket.hear_nothing()?;
        let number = libc::c_int::try_from(interface).unwrap_or(libc::c_int::MAX);
        socket.set_number(libc::SOL_SOCKET, SO_BINDTOIFINDEX, "setsockopt(SO_BINDTOIFINDEX)", number)?;
        for (option, call, value) in [
            (IPV6_FREEBIND, "setsockopt(IPV6_FREEBIND)", 1),
            (libc::IPV6_MULTICAST_LOOP, "setsockopt(IPV6_MULTICAST_LOOP)", 0),
        ] {
            socket.set_number(libc::IPPROTO_IPV6, option, call, value)?;
        }
        Ok(Self { socket, interface })
    }

    /// Sends a packet by the routes of this interface. `false`: there is no room in the kernel at present.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg`: `EMSGSIZE` for a packet that is longer than the link takes, `EINVAL` for what is no packet,
    /// `ENETUNREACH` where no route leads onto the link, `ENODEV` or `ENXIO` when the interface is gone.
    pub fn send(&self, packet: &[u8]) -> Result<bool, Error> {
        let Ok((header, _)) = Ipv6Header::parse(packet) else {
            return Err(self.socket.failed("sendmsg", Errno::EINVAL));
        };
        let info = PacketInfoV6 { interface: self.interface, address: header.source };
        send_v6(&self.socket, header.destination, &encode::packet_info_v6(info), packet)
    }
}
