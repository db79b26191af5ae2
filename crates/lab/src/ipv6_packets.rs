//! Whole packets of IPv6, with the extension headers that Mobile IPv6 needs and the kernel knows nothing of (it has no `IPV6_MIP6`).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use careof_wire::ipv6::Ipv6Header;
use careof_wire::mip6;
use nix::errno::Errno;

use crate::error::Error;
use crate::ipv6_tunnel_socket::send_v6;
use crate::socket::{PacketInfoV6, Socket, encode};

/// `PACKET_IGNORE_OUTGOING` of `linux/if_packet.h`, since Linux 4.20.
pub(crate) const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const IPV6: u16 = libc::ETH_P_IPV6 as u16;
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
const SEND_BUFFER: libc::c_int = 1 << 20;

/// Next Header of a Routing header, its type 2, and of a Destination Options header.
const ROUTING: u32 = 43;
const TYPE_2: u32 = 2;
const DESTINATION_OPTIONS: u32 = 60;

/// Sends packets as they are, with every header in them.
#[derive(Debug)]
pub struct Ipv6PacketSender {
    socket: Socket,
}

impl Ipv6PacketSender {
    /// Opens the sender in the calling thread's network namespace. A `mark` lets rules tell its packets from others.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`, or at `setsockopt(SO_MARK)` without
    /// `CAP_NET_ADMIN`.
    pub fn open(mark: Option<u32>) -> Result<Self, Error> {
        let doing = "send whole packets of IPv6";
        // With this number the kernel adds no header.
        let socket = Socket::open(doing, libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_RAW)?;
        socket.hear_nothing()?;
        socket.grow_send_buffer(SEND_BUFFER)?;
        if let Some(mark) = mark {
            socket.set(libc::SOL_SOCKET, libc::SO_MARK, "setsockopt(SO_MARK)", &mark.to_ne_bytes())?;
        }
        Ok(Self { socket })
    }

    /// Sends a packet by the routes of its Source Address, which is one of this host. `false`: there is no room in the kernel at present.
    ///
    /// # Errors
    /// [`Error::System`] naming `sendmsg`: `EMSGSIZE` for a packet that is longer than the link takes, `EINVAL` for what is no packet or
    /// a source that is no address of this host, `ENETUNREACH` or `EHOSTUNREACH` where there is no way.
    pub fn send(&self, packet: &[u8], interface: Option<u32>) -> Result<bool, Error> {
        let Ok((header, _)) = Ipv6Header::parse(packet) else {
            return Err(self.socket.failed("sendmsg", Errno::EINVAL));
        };
        let info = PacketInfoV6 { interface: interface.unwrap_or(0), address: header.source };
        send_v6(&self.socket, header.destination, &encode::packet_info_v6(info), packet)
    }
}

impl AsFd for Ipv6PacketSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Hears, on every interface, the packets of Mobile IPv6: with a type 2 Routing header, a Destination Options header or a Mobility Header
/// directly behind the IPv6 header. The kernel deals with them all the same, unless a [`PacketGuard`](crate::PacketGuard) drops them.
#[derive(Debug)]
pub struct Ipv6PacketWatch {
    socket: Socket,
}

/// A packet that came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenIpv6Packet<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// The packet from its header on.
    pub packet: &'a [u8],
}

impl Ipv6PacketWatch {
    /// Opens the watch in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open() -> Result<Self, Error> {
        // Protocol 0 hears nothing; it is bound when the filter is there.
        let socket = Socket::open("hear packets of Mobile IPv6", libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        socket.attach_filter(&mut filter())?;
        let call = "setsockopt(PACKET_IGNORE_OUTGOING)";
        socket.set_number(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, call, 1)?;
        socket.grow_receive_buffer(RECEIVE_BUFFER)?;
        let mut name = [0; size_of::<libc::sockaddr_ll>()];
        name[..2].copy_from_slice(&(libc::AF_PACKET as libc::sa_family_t).to_ne_bytes());
        name[2..4].copy_from_slice(&IPV6.to_be_bytes());
        socket.bind_to(&name)?;
        Ok(Self { socket })
    }

    /// The next packet, in `buffer`; `None` when there is none. Frames for other stations are left out.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvfrom`.
    pub fn receive<'b>(&self, buffer: &'b mut [u8]) -> Result<Option<SeenIpv6Packet<'b>>, Error> {
        let (interface, len) = loop {
            match self.receive_one(buffer) {
                Ok(Some(seen)) => break seen,
                // ENETDOWN: an interface went down, which is told once.
                Ok(None) | Err(Errno::EINTR | Errno::ENETDOWN) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.socket.failed("recvfrom", errno)),
            }
        };
        Ok(Some(SeenIpv6Packet { interface, packet: buffer.get(..len).unwrap_or_default() }))
    }

    fn receive_one(&self, buffer: &mut [u8]) -> Result<Option<(u32, usize)>, Errno> {
        let mut name = [0_u8; size_of::<libc::sockaddr_ll>()];
        let mut name_len = name.len() as libc::socklen_t;
        // SAFETY: each pointer goes with the length of what it points to, and both outlive the call.
        #[expect(unsafe_code, reason = "the name is one of the link")]
        let len = unsafe {
            libc::recvfrom(
                self.socket.as_fd().as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
                name.as_mut_ptr().cast(),
                &raw mut name_len,
            )
        };
        let len = usize::try_from(Errno::result(len)?).unwrap_or(0).min(buffer.len());
        let [_, _, _, _, i0, i1, i2, i3, _, _, kind, ..] = name;
        let is_ours = kind == libc::PACKET_HOST;
        Ok(is_ours.then(|| (u32::from_ne_bytes([i0, i1, i2, i3]), len)))
    }
}

impl AsFd for Ipv6PacketWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The kernel's program that lets these packets through. Jumps count instructions from the next one.
fn filter() -> [libc::sock_filter; 8] {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |k: u32, jt: u8, jf: u8| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt,
        jf,
        k,
    };
    let load_byte = libc::BPF_LD | libc::BPF_ABS | libc::BPF_B;
    [
        // 0: the Next Header of the IPv6 header.
        statement(load_byte, 6),
        jump(DESTINATION_OPTIONS, 4, 0),
        jump(mip6::PROTOCOL.into(), 3, 0),
        jump(ROUTING, 0, 3),
        // 4: the type of the Routing header.
        statement(load_byte, u32::from(Ipv6Header::LEN) + 2),
        jump(TYPE_2, 0, 1),
        // 6: let through, 7: drop.
        statement(libc::BPF_RET | libc::BPF_K, u32::MAX),
        statement(libc::BPF_RET | libc::BPF_K, 0),
    ]
}
