//! The socket that agents exchange registration messages by.

use std::io::IoSlice;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};

use careof_wire::protocol;
use careof_wire::udp::UdpHeader;
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::{Control, PacketInfo, Socket, encode, from_ipv4};
use crate::unaddressed::Unaddressed;

const DOING: &str = "exchange registration messages";
/// Room for messages that come in faster than they are read, bytes: about ten thousand of them. Whoever reads them may wait for a
/// disk in between, while others send thousands of forged ones.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;

/// A UDP socket that knows where each message came in and can say where each shall leave.
///
/// It hears what is sent to its port by unicast and by broadcast on any interface of the network namespace it
/// was opened in, and multicast once it has [joined](Self::join) the group on an interface.
#[derive(Debug)]
pub struct AgentSocket {
    socket: Socket,
    port: u16,
    unaddressed: Unaddressed,
}

/// A message that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentDatagram<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// Who sent it.
    pub source: Ipv4Addr,
    /// From which port.
    pub source_port: u16,
    /// To which address: ours, a broadcast or a group.
    pub destination: Ipv4Addr,
    /// To which port: the socket's.
    pub destination_port: u16,
    /// What was left of its time to live, hops.
    pub ttl: u8,
    /// The message.
    pub payload: &'a [u8],
}

/// A message to be sent from the socket's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutgoingDatagram<'a> {
    /// Index of the interface it leaves by; `None` leaves it to the routes. Broadcast and multicast need one.
    pub interface: Option<u32>,
    /// Its source: an address of this host. Unspecified, a broadcast or multicast that names an interface
    /// leaves with the source 0.0.0.0; anything else gets the address that the kernel selects.
    pub source: Ipv4Addr,
    /// To which address.
    pub destination: Ipv4Addr,
    /// To which port.
    pub destination_port: u16,
    /// Its time to live, hops.
    pub ttl: u8,
    /// The message.
    pub payload: &'a [u8],
}

impl AgentSocket {
    /// Opens the socket at a port, which is 434 for agents, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EACCES` at `bind` for a port below 1024 without
    /// `CAP_NET_BIND_SERVICE`, `EADDRINUSE` when another program has the port for itself, `EPERM` at `socket`
    /// without `CAP_NET_RAW`.
    pub fn open(port: u16) -> Result<Self, Error> {
        let socket = Socket::open(DOING, libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        socket.set_number(libc::SOL_SOCKET, libc::SO_REUSEADDR, "setsockopt(SO_REUSEADDR)", 1)?;
        socket.set_number(libc::SOL_SOCKET, libc::SO_BROADCAST, "setsockopt(SO_BROADCAST)", 1)?;
        socket.set_number(libc::IPPROTO_IP, libc::IP_RECVTTL, "setsockopt(IP_RECVTTL)", 1)?;
        socket.set_number(libc::IPPROTO_IP, libc::IP_MULTICAST_LOOP, "setsockopt(IP_MULTICAST_LOOP)", 0)?;
        socket.ask_for_packet_info()?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        socket.bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port))?;
        let port = match port {
            0 => socket.local_port()?,
            port => port,
        };
        Ok(Self { socket, port, unaddressed: Unaddressed::open()? })
    }

    /// The port it has.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The next message, in `buffer`; `None` when there is none. What the buffer has no room for is cut off;
    /// 65,535 bytes are enough.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`; the socket is still good.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<AgentDatagram<'b>>, Error> {
        let mut control = Control::new();
        let received = loop {
            match self.socket.receive(buffer, &mut control, 0) {
                Ok(received) => break received,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.socket.failed("recvmsg", errno)),
            }
        };
        let info = control.read(received.control_len).packet_info();
        let ttl = control.read(received.control_len).ttl();
        let name = received.name.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        Ok(Some(AgentDatagram {
            interface: info.map_or(0, |info| info.interface),
            source: *name.ip(),
            source_port: name.port(),
            destination: info.map_or(Ipv4Addr::UNSPECIFIED, |info| info.address),
            destination_port: self.port,
            ttl: ttl.unwrap_or(0),
            payload: buffer.get(..received.len).unwrap_or_default(),
        }))
    }

    /// Sends a message.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `ENETUNREACH` where there is no route or the source is no address of
    /// this host (older kernels: `EINVAL`), `ENODEV` or `ENXIO` for an interface that is gone, `ENETDOWN` for one
    /// that is down.
    pub fn send(&self, datagram: &OutgoingDatagram<'_>) -> Result<(), Error> {
        let &OutgoingDatagram { interface, source, destination, destination_port, ttl, payload } = datagram;
        if let Some(interface) = interface
            && source.is_unspecified()
            && (destination.is_broadcast() || destination.is_multicast())
        {
            let payload_len = u16::try_from(payload.len())
                .ok()
                .filter(|&len| len <= UdpHeader::MAX_PAYLOAD_LEN)
                .ok_or_else(|| self.socket.failed("sendmsg", Errno::EMSGSIZE))?;
            let header = UdpHeader { source_port: self.port, destination_port, payload_len };
            let mut bytes = Vec::with_capacity(usize::from(UdpHeader::LEN) + payload.len());
            header.emit(source, destination, payload, &mut bytes);
            return self.unaddressed.send(interface, destination, protocol::UDP, ttl, &bytes);
        }
        let info = PacketInfo { interface: interface.unwrap_or(0), address: source };
        let control = [&encode::packet_info(info)[..], &encode::ttl(ttl)].concat();
        let name = from_ipv4(SocketAddrV4::new(destination, destination_port));
        self.socket
            .send(&name, &control, &[IoSlice::new(payload)])
            .map_err(|errno| self.socket.failed("sendmsg", errno))
    }

    /// Hears a multicast group on an interface from now on; the group of mobility agents is 224.0.0.11.
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

impl AsFd for AgentSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
