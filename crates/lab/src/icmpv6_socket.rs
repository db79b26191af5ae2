//! The socket of neighbor discovery and of ICMPv6 errors, for whoever takes part in them beside the kernel.

use std::io::IoSlice;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};

use careof_wire::protocol;
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::{Control, NAME_V6_LEN, PacketInfoV6, Socket, encode, from_ipv6, to_ipv6};
use crate::unaddressed::Unaddressed;

const DOING: &str = "exchange ICMPv6 messages";
/// `ICMPV6_FILTER` (linux/icmpv6.h), and its 256 bits: those that are set are kept away.
const ICMPV6_FILTER: libc::c_int = 1;
const FILTER_WORDS: usize = 8;
const RECEIVE_BUFFER: libc::c_int = 1 << 18;

/// A raw ICMPv6 socket. What the kernel does with ICMPv6, it does all the same.
///
/// An echo of what this host sends to a group it has itself joined does not come in.
#[derive(Debug)]
pub struct Icmpv6Socket {
    socket: Socket,
    unaddressed: Unaddressed,
}

/// An ICMPv6 message that came in. The kernel has checked its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmpv6Datagram<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// Who sent it.
    pub source: Ipv6Addr,
    /// To which address: ours or a group.
    pub destination: Ipv6Addr,
    /// What was left of its hop limit; 255 says that no router has forwarded it.
    pub hop_limit: u8,
    /// The message from its type on.
    pub message: &'a [u8],
}

/// An ICMPv6 message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingIcmpv6<'a> {
    /// Index of the interface it leaves by; `None` leaves it to the routes. Multicast and link-local destinations need one.
    pub interface: Option<u32>,
    /// Its source: an address of this host; unspecified, the kernel selects one.
    pub source: Ipv6Addr,
    /// To which address.
    pub destination: Ipv6Addr,
    /// Its hop limit.
    pub hop_limit: u8,
    /// The message from its type on. The kernel makes the checksum.
    pub message: &'a [u8],
}

impl Icmpv6Socket {
    /// Opens the socket in the calling thread's network namespace, to hear the messages of these types.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open(types: &[u8]) -> Result<Self, Error> {
        let socket = Socket::open(DOING, libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6)?;
        let mut filter = [u32::MAX; FILTER_WORDS];
        for &kind in types {
            filter[usize::from(kind >> 5)] &= !(1 << (kind & 31));
        }
        let bytes: Vec<u8> = filter.into_iter().flat_map(u32::to_ne_bytes).collect();
        socket.set(libc::IPPROTO_ICMPV6, ICMPV6_FILTER, "setsockopt(ICMPV6_FILTER)", &bytes)?;
        let (level, option) = (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_LOOP);
        socket.set_number(level, option, "setsockopt(IPV6_MULTICAST_LOOP)", 0)?;
        socket.ask_for_packet_info_v6()?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        Ok(Self { socket, unaddressed: Unaddressed::open()? })
    }

    /// The next message, in `buffer`; `None` when there is none. What the buffer has no room for is cut off;
    /// 65,535 bytes are enough.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`; the socket is still good.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<Icmpv6Datagram<'b>>, Error> {
        let Some((received, len)) = receive_v6(&self.socket, buffer)? else { return Ok(None) };
        let message = buffer.get(..len).unwrap_or_default();
        let Received { interface, source, destination, hop_limit } = received;
        Ok(Some(Icmpv6Datagram { interface, source, destination, hop_limit, message }))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `ENETUNREACH` where there is no route, `EADDRNOTAVAIL` or `EINVAL` where the source is no
    /// address of this host that may be used, `ENODEV` or `ENXIO` for an interface that is gone.
    pub fn send(&self, datagram: &OutgoingIcmpv6<'_>) -> Result<(), Error> {
        let &OutgoingIcmpv6 { interface, source, destination, hop_limit, message } = datagram;
        let interface = interface.unwrap_or(0);
        let info = encode::packet_info_v6(PacketInfoV6 { interface, address: source });
        let control = [&info[..], &encode::hop_limit(hop_limit)].concat();
        self.socket
            .send(&from_ipv6(destination, interface), &control, &[IoSlice::new(message)])
            .map_err(|errno| self.socket.failed("sendmsg", errno))
    }

    /// Sends a message to a group from the unspecified address, as a host does on a link where it has no address yet. The message has its
    /// checksum.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg(AF_PACKET)`: `ENODEV` or `ENXIO` for an interface that is gone, `ENETDOWN` for one that is down,
    /// `EMSGSIZE` for a message that is too long.
    pub fn send_unaddressed(
        &self,
        interface: u32,
        group: Ipv6Addr,
        hop_limit: u8,
        message: &[u8],
    ) -> Result<(), Error> {
        self.unaddressed.send_v6(interface, group, protocol::ICMPV6, hop_limit, message)
    }

    /// Hears a multicast group on an interface from now on; that of routers is ff02::2, and that of all nodes, ff02::1, is always
    /// heard.
    ///
    /// # Errors
    /// [`Error::System`]: `ENODEV` where there is no such interface, `EINVAL` for what is no group.
    pub fn join(&self, group: Ipv6Addr, interface: u32) -> Result<(), Error> {
        self.socket.set_membership_v6(group, interface, true)
    }

    /// Hears the group there no more.
    ///
    /// # Errors
    /// [`Error::System`] for what is no group.
    pub fn leave(&self, group: Ipv6Addr, interface: u32) -> Result<(), Error> {
        self.socket.set_membership_v6(group, interface, false)
    }
}

impl AsFd for Icmpv6Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What a raw socket of IPv6 tells of a message, beside its bytes.
pub(crate) struct Received {
    pub(crate) interface: u32,
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    pub(crate) hop_limit: u8,
}

/// The next message of a raw socket that was [asked](Socket::ask_for_packet_info_v6) for all of that, and its length.
pub(crate) fn receive_v6(socket: &Socket, buffer: &mut [u8]) -> Result<Option<(Received, usize)>, Error> {
    let (mut control, mut name) = (Control::new(), [0; NAME_V6_LEN]);
    let (len, name_len, control_len) = loop {
        match socket.receive_named(buffer, &mut control, 0, &mut name) {
            Ok(received) => break received,
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => return Ok(None),
            Err(errno) => return Err(socket.failed("recvmsg", errno)),
        }
    };
    let info = control.read(control_len).packet_info_v6();
    let received = Received {
        interface: info.map_or(0, |info| info.interface),
        source: to_ipv6(&name, name_len).unwrap_or(Ipv6Addr::UNSPECIFIED),
        destination: info.map_or(Ipv6Addr::UNSPECIFIED, |info| info.address),
        hop_limit: control.read(control_len).hop_limit().unwrap_or(0),
    };
    Ok(Some((received, len)))
}
