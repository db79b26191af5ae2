//! The socket that agents find each other by: router discovery, and the errors of the network.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::{Control, PacketInfo, Socket, encode, from_ipv4};
use crate::unaddressed::Unaddressed;

const DOING: &str = "exchange ICMP messages";
/// Level of the options of raw sockets, and their one option (linux/icmp.h).
const SOL_RAW: libc::c_int = 255;
const ICMP_FILTER: libc::c_int = 1;
/// Types that the filter knows of; any other comes in whatever it says.
const FILTERED_TYPES: u8 = 32;
const RECEIVE_BUFFER: libc::c_int = 1 << 18;

/// A raw ICMP socket. What the kernel does with ICMP, it does all the same.
///
/// An echo of what this host sends to a group it has itself joined does not come in.
#[derive(Debug)]
pub struct IcmpSocket {
    socket: Socket,
    unaddressed: Unaddressed,
}

/// An ICMP message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpDatagram<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// To which address: ours, a broadcast or a group.
    pub destination: Ipv4Addr,
    /// What was left of its time to live, hops.
    pub ttl: u8,
    /// The message from its type on. The kernel has checked the checksum of the IP header, not this one's.
    pub message: &'a [u8],
}

/// An ICMP message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingIcmp<'a> {
    /// Index of the interface it leaves by; `None` leaves it to the routes. Broadcast and multicast need one.
    pub interface: Option<u32>,
    /// Its source: an address of this host. Unspecified, a broadcast or multicast that names an interface
    /// leaves with the source 0.0.0.0; anything else gets the address that the kernel selects.
    pub source: Ipv4Addr,
    /// To which address.
    pub destination: Ipv4Addr,
    /// Its time to live, hops.
    pub ttl: u8,
    /// The message from its type on, its checksum included.
    pub message: &'a [u8],
}

impl IcmpSocket {
    /// The types of router discovery: advertisement and solicitation.
    pub const DISCOVERY: [u8; 2] = [9, 10];
    /// The types of errors: destination unreachable, time exceeded, parameter problem.
    pub const ERRORS: [u8; 3] = [3, 11, 12];

    /// Opens the socket in the calling thread's network namespace, to hear the messages of these types.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open(types: &[u8]) -> Result<Self, Error> {
        let socket = Socket::open(DOING, libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP)?;
        let passed = types
            .iter()
            .filter(|&&kind| kind < FILTERED_TYPES)
            .fold(0_u32, |passed, &kind| passed | 1 << kind);
        socket.set(SOL_RAW, ICMP_FILTER, "setsockopt(ICMP_FILTER)", &(!passed).to_ne_bytes())?;
        socket.set_number(libc::SOL_SOCKET, libc::SO_BROADCAST, "setsockopt(SO_BROADCAST)", 1)?;
        socket.set_number(libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, "setsockopt(IP_MULTICAST_LOOP)", 0)?;
        socket.ask_for_packet_info()?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        Ok(Self { socket, unaddressed: Unaddressed::open()? })
    }

    /// The next message, in `buffer`; `None` when there is none. What the buffer has no room for is cut off;
    /// 65,535 bytes are enough.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`; the socket is still good.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<IcmpDatagram<'b>>, Error> {
        let mut control = Control::new();
        // A datagram whose header cannot be read is passed over: the kernel has read it before us.
        let (received, header, start) = loop {
            match self.socket.receive(buffer, &mut control, 0) {
                Ok(received) => {
                    let bytes = buffer.get(..received.len).unwrap_or_default();
                    if let Ok((header, message)) = Ipv4Header::parse(bytes) {
                        let start = message.as_ptr().addr() - bytes.as_ptr().addr();
                        break (received, header, start);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.socket.failed("recvmsg", errno)),
            }
        };
        let info = control.read(received.control_len).packet_info();
        let end = start + usize::from(header.payload_len);
        Ok(Some(IcmpDatagram {
            interface: info.map_or(0, |info| info.interface),
            source: header.source,
            destination: header.destination,
            ttl: header.ttl,
            message: buffer.get(start..end).unwrap_or_default(),
        }))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `ENETUNREACH` where there is no route or the source is no address of
    /// this host (older kernels: `EINVAL`), `ENODEV` or `ENXIO` for an interface that is gone, `ENETDOWN` for one
    /// that is down.
    pub fn send(&self, datagram: &OutgoingIcmp<'_>) -> Result<(), Error> {
        let &OutgoingIcmp { interface, source, destination, ttl, message } = datagram;
        if let Some(interface) = interface
            && source.is_unspecified()
            && (destination.is_broadcast() || destination.is_multicast())
        {
            return self.unaddressed.send(interface, destination, protocol::ICMP, ttl, message);
        }
        let info = PacketInfo { interface: interface.unwrap_or(0), address: source };
        let control = [&encode::packet_info(info)[..], &encode::ttl(ttl)].concat();
        let name = from_ipv4(SocketAddrV4::new(destination, 0));
        self.socket
            .send(&name, &control, &[IoSlice::new(message)])
            .map_err(|errno| self.socket.failed("sendmsg", errno))
    }

    /// Hears a multicast group on an interface from now on; that of routers is 224.0.0.2, and that of all
    /// systems, 224.0.0.1, is always heard.
    ///
    /// # Errors
    /// [`Error::System`]: `ENODEV` where there is no such interface, `EINVAL` for what is no group.
    pub fn join(&self, group: Ipv4Addr, interface: u32) -> Result<(), Error> {
        self.socket.set_membership(group, interface, true)
    }

    /// Hears the group there no more.
    ///
    /// # Errors
    /// [`Error::System`] for what is no group.
    pub fn leave(&self, group: Ipv4Addr, interface: u32) -> Result<(), Error> {
        self.socket.set_membership(group, interface, false)
    }
}

impl AsFd for IcmpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
