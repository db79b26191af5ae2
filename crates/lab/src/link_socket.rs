//! Every packet of IPv4 on one link, for hosts that forward by other decisions than the kernel's routes.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd};

use nix::errno::Errno;

use crate::error::Error;
use crate::ipv6_packets::PACKET_IGNORE_OUTGOING;
use crate::socket::{Control, LinkName, Socket};

const DOING: &str = "carry the packets of a link";
const IPV4: u16 = libc::ETH_P_IP as u16;
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
const SEND_BUFFER: libc::c_int = 1 << 20;

/// Hears and sends whole packets of IPv4 on one interface without link-layer addresses, such as a TUN device.
///
/// The kernel has each packet that comes in as well: a host that is not to act on it needs a strict reverse path filter there, which drops
/// what has a source that no route of this interface leads to.
#[derive(Debug)]
pub struct LinkSocket {
    socket: Socket,
    name: LinkName,
}

impl LinkSocket {
    /// Opens the socket for the interface of this index, in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`, `ENODEV` at `bind` where there is no such interface.
    pub fn open(interface: u32) -> Result<Self, Error> {
        // Protocol 0 hears nothing before it is bound to the interface.
        let socket = Socket::open(DOING, libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        let call = "setsockopt(PACKET_IGNORE_OUTGOING)";
        socket.set_number(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, call, 1)?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        socket.grow_send_buffer(SEND_BUFFER)?;
        let name = LinkName { protocol: IPV4, interface, link_address: [0; 6] };
        socket.bind_to(&name.bytes())?;
        Ok(Self { socket, name })
    }

    /// The next packet that came in, in `buffer`, from its header on; `None` when there is none.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg`.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<&'b mut [u8]>, Error> {
        let mut control = Control::new();
        let received = loop {
            match self.socket.receive(buffer, &mut control, 0) {
                Ok(received) => break received,
                // ENETDOWN: the interface went down, which is told once.
                Err(Errno::EINTR | Errno::ENETDOWN) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.socket.failed("recvmsg", errno)),
            }
        };
        Ok(buffer.get_mut(..received.len))
    }

    /// Sends a packet. `false`: there is no room in the kernel at present, or the interface is down.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg`: `EMSGSIZE` for a packet that is longer than the link takes, `ENXIO` when the interface is gone.
    pub fn send(&self, packet: &[u8]) -> Result<bool, Error> {
        loop {
            match self.socket.send(&self.name.bytes(), &[], &[IoSlice::new(packet)]) {
                Ok(()) => return Ok(true),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENETDOWN) => return Ok(false),
                Err(errno) => return Err(self.socket.failed("sendmsg", errno)),
            }
        }
    }
}

impl AsFd for LinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
