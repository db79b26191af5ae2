//! Whole packets of IPv4 of one protocol, for tunnels that carry more than IPv4.

use std::io::IoSlice;
use std::net::SocketAddrV4;
use std::os::fd::{AsFd, BorrowedFd};

use careof_wire::ipv4::Ipv4Header;
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::{Control, PacketInfo, Socket, encode, from_ipv4};

const DOING: &str = "carry packets tunnelled in IPv4";
/// What may wait to be received, bytes as the kernel counts them; see the tunnel sockets.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
const SEND_BUFFER: libc::c_int = 1 << 20;

/// The raw socket of one protocol, which sends and receives with every header.
///
/// While it is open the kernel never answers a packet of the protocol with ICMP "protocol unreachable". It belongs to the network
/// namespace of the thread that opened it, hears every packet of the protocol for this host, reassembled, and never blocks.
#[derive(Debug)]
pub struct Ipv4PacketSocket {
    socket: Socket,
}

/// A packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Packet<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// The packet from its header on.
    pub bytes: &'a [u8],
}

impl Ipv4PacketSocket {
    /// Opens the socket in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open(protocol: u8) -> Result<Self, Error> {
        let socket = Socket::open(DOING, libc::AF_INET, libc::SOCK_RAW, protocol.into())?;
        socket.ask_for_packet_info()?;
        socket.set_number(libc::IPPROTO_IP, libc::IP_HDRINCL, "setsockopt(IP_HDRINCL)", 1)?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        socket.grow_send_buffer(SEND_BUFFER)?;
        Ok(Self { socket })
    }

    /// The next packet, in `buffer`; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`; the socket is still good.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<Ipv4Packet<'b>>, Error> {
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
        let interface = info.map_or(0, |info| info.interface);
        Ok(Some(Ipv4Packet { interface, bytes: buffer.get(..received.len).unwrap_or_default() }))
    }

    /// Sends a packet by the routes of its source, which is an address of this host. `false`: there is no room in the kernel at present.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg`: `EMSGSIZE` for a packet that is longer than the link takes, `EINVAL` for what is no packet,
    /// `ENETUNREACH` or `EHOSTUNREACH` where there is no way.
    pub fn send(&self, packet: &[u8], interface: Option<u32>) -> Result<bool, Error> {
        let Ok((header, _)) = Ipv4Header::parse(packet) else {
            return Err(self.socket.failed("sendmsg", Errno::EINVAL));
        };
        let info = PacketInfo { interface: interface.unwrap_or(0), address: header.source };
        let (name, control) =
            (from_ipv4(SocketAddrV4::new(header.destination, 0)), encode::packet_info(info));
        loop {
            match self.socket.send(&name, &control, &[IoSlice::new(packet)]) {
                Ok(()) => return Ok(true),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return Ok(false),
                Err(errno) => return Err(self.socket.failed("sendmsg", errno)),
            }
        }
    }
}

impl AsFd for Ipv4PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
