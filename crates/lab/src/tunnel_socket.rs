//! Where tunnels enter and leave the network: raw sockets, many packets a system call.

mod batch_io;
mod error_queue;
mod identification;
mod receive;
mod send;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use careof_wire::ipv4::Ipv4Header;

pub use error_queue::TunnelError;
pub use identification::{Identifier, Proof};
pub use receive::{ReceiveBatch, TunnelPacket};
pub use send::{Departure, Flushed, Outer, SendBatch, SendFailure, SendFailureReason};

use crate::error::Error;
use crate::netlink::Netlink;
use crate::socket::Socket;

const DOING: &str = "carry tunnelled packets";
/// What may wait to be received, bytes as the kernel counts them: about 2,300 for a packet of 1,500, so 3,600
/// packets. Enough for an agent that is late by 30 ms at 1.5 Gbit/s.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// What may be on its way out of this host. Small enough to fit the kernel's queues (`netdev_max_backlog` is
/// 1,000 packets), so that a sender is held up instead of losing what it sends.
const SEND_BUFFER: libc::c_int = 1 << 20;
/// A socket that only sends has no use for a receive buffer; the kernel has a least size.
const NO_BUFFER: libc::c_int = 1;
/// What every link has (RFC 894) unless there is a reason to ask.
const USUAL_MTU: u16 = 1500;

/// The raw sockets of one tunnel protocol.
///
/// While it is open the kernel never answers a packet of the protocol with ICMP "protocol unreachable", whoever
/// sent it; so it is opened once and stays open for the agent's life. It belongs to the network namespace of the
/// thread that opened it, hears every tunnelled packet for this host, reassembled, and never blocks.
///
/// As a descriptor it is readable when packets are there, and shows an error condition (`EPOLLERR`) while
/// [`next_error`](Self::next_error) has something to tell.
#[derive(Debug)]
pub struct TunnelSocket {
    protocol: u8,
    /// Receives packets and the errors about those sent.
    receiver: Socket,
    /// Sends what fits the link, with an outer header made here: TTL, TOS and DF of each packet as asked. The
    /// protocol of the socket is that of no tunnel, so errors do not get in the way of sending.
    sender: Socket,
    /// Sends what does not fit the link and may be fragmented, which the kernel then does.
    fragmenter: Socket,
    /// Never sends; asks for the MTU of paths.
    probe: Mutex<Probe>,
}

#[derive(Debug)]
struct Probe {
    socket: Socket,
    netlink: Netlink,
}

impl TunnelSocket {
    /// Opens the sockets of a protocol: `IP_IN_IP`, `MINIMAL` or `GRE` of [`careof_wire::protocol`].
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open(protocol: u8) -> Result<Self, Error> {
        let raw = |number| Socket::open(DOING, libc::AF_INET, libc::SOCK_RAW, number);
        // What ICMP errors say of a path's MTU is for the owner to judge, who knows what was sent: the kernel neither learns
        // from those about tunnels, nor refuses a packet for one about something else.
        let leave_path_mtu_to_owner = |socket: &Socket| {
            let (option, how) = (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_INTERFACE);
            socket.set_number(libc::IPPROTO_IP, option, "setsockopt(IP_MTU_DISCOVER)", how)
        };

        let receiver = raw(libc::c_int::from(protocol))?;
        receiver.ask_for_packet_info()?;
        receiver.set_number(libc::IPPROTO_IP, libc::IP_RECVERR, "setsockopt(IP_RECVERR)", 1)?;
        // Has errors quote the outer header too.
        receiver.set_number(libc::IPPROTO_IP, libc::IP_HDRINCL, "setsockopt(IP_HDRINCL)", 1)?;
        leave_path_mtu_to_owner(&receiver)?;
        receiver.grow_receive_buffer(RECEIVE_BUFFER)?;

        let sender = raw(libc::IPPROTO_RAW)?;
        // Somebody may send packets of this number, too, which would stay in the socket for ever.
        sender.hear_nothing()?;
        leave_path_mtu_to_owner(&sender)?;
        sender.grow_send_buffer(SEND_BUFFER)?;

        let fragmenter = raw(libc::c_int::from(protocol))?;
        // Bound to an address that nothing comes in for, or it would get a copy of everything.
        fragmenter.set_number(libc::IPPROTO_IP, libc::IP_FREEBIND, "setsockopt(IP_FREEBIND)", 1)?;
        fragmenter.bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0))?;
        fragmenter.set_number(libc::SOL_SOCKET, libc::SO_RCVBUF, "setsockopt(SO_RCVBUF)", NO_BUFFER)?;
        fragmenter.set_number(
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            "setsockopt(IP_MTU_DISCOVER)",
            libc::IP_PMTUDISC_DONT,
        )?;
        fragmenter.grow_send_buffer(SEND_BUFFER)?;
        let probe = Socket::open("find the path MTU", libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
        probe.hear_nothing()?;
        let probe = Probe { socket: probe, netlink: Netlink::open()? };
        Ok(Self { protocol, receiver, sender, fragmenter, probe: Mutex::new(probe) })
    }

    /// The protocol number of the outer header.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.protocol
    }

    /// What to wait at for room (`EPOLLOUT`) when a batch was [blocked](Flushed::Blocked).
    #[must_use]
    pub fn sending_fd(&self) -> BorrowedFd<'_> {
        self.sender.as_fd()
    }

    /// Packets that came in but were dropped because the receive buffer was full, since the socket was opened.
    ///
    /// # Errors
    /// [`Error::System`] naming `getsockopt(SO_MEMINFO)`.
    pub fn dropped_by_kernel(&self) -> Result<u32, Error> {
        /// Place of the drop counter (linux/sock_diag.h), which is the one `SO_RXQ_OVFL` puts on packets.
        const DROPS: usize = 8;
        const WORD: usize = size_of::<u32>();
        const SO_MEMINFO: libc::c_int = 55;
        let mut words = [0; (DROPS + 1) * WORD];
        self.receiver.get(libc::SOL_SOCKET, SO_MEMINFO, "getsockopt(SO_MEMINFO)", &mut words)?;
        let drops = words.last_chunk::<WORD>().copied().unwrap_or_default();
        Ok(u32::from_ne_bytes(drops))
    }

    /// The MTU of the first hop to `destination`: that of the link, or of the route if it has one. Bytes of the whole
    /// outer datagram. It is what a path has at the beginning (RFC 1191 section 3); what ICMP errors have told this host, which
    /// anybody can write, has no part in it.
    ///
    /// # Errors
    /// [`Error::System`]: `ENETUNREACH` where there is no route, `EADDRNOTAVAIL` for a source that is no address
    /// of this host.
    pub fn first_hop_mtu(
        &self,
        source: Ipv4Addr,
        destination: Ipv4Addr,
        interface: Option<u32>,
    ) -> Result<u16, Error> {
        const SO_BINDTOIFINDEX: libc::c_int = 62;
        // A connected socket is asked, since that is what the kernel tells it for; nothing is sent. A raw one can
        // be bound again and again.
        let Probe { socket, netlink } = &mut *self.probe.lock().unwrap_or_else(PoisonError::into_inner);
        let index = libc::c_int::try_from(interface.unwrap_or(0)).unwrap_or(libc::c_int::MAX);
        let call = "setsockopt(SO_BINDTOIFINDEX)";
        socket.set_number(libc::SOL_SOCKET, SO_BINDTOIFINDEX, call, index)?;
        socket.bind(SocketAddrV4::new(source, 0))?;
        socket.connect(SocketAddrV4::new(destination, 0))?;
        let mtu = socket.get_number(libc::IPPROTO_IP, libc::IP_MTU, "getsockopt(IP_MTU)");
        socket.disconnect()?;
        let mtu = u16::try_from(mtu?).unwrap_or(u16::MAX);
        // The quick answer includes what the kernel has been told of the path. Where that may have made a difference the
        // route itself is looked at, which takes longer.
        let mtu = if mtu >= USUAL_MTU {
            mtu
        } else {
            netlink.route_mtu(source, destination, interface).unwrap_or(mtu)
        };
        Ok(mtu.max(Ipv4Header::LEN))
    }
}

impl AsFd for TunnelSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}
