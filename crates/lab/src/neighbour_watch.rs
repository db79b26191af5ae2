//! From which link addresses the messages of mobility agents and mobile nodes come.
//!
//! Away from home neither side may ask the link for the other by ARP: a foreign agent takes a visitor's link address
//! from its solicitation or request, and a mobile node an agent's from its advertisement (RFC 5944 section 4.6). The
//! sockets of those messages do not tell them, so this one looks at the frames.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use careof_wire::protocol;
use nix::errno::Errno;

use crate::error::Error;
use crate::socket::Socket;

const DOING: &str = "learn link addresses";
/// All protocols: the kernel hands a frame to such a socket before it hands the packet to IP. To a socket of one protocol, with
/// kernels that keep those by network namespace, it does so afterwards, and who reads the message may be faster.
const EVERYTHING: u16 = libc::ETH_P_ALL as u16;
/// Bytes of a packet that are looked at: the longest IP header, that of UDP, and what a registration request begins
/// with.
const SNAP_LEN: usize = 60 + UDP_HEADER + 24;
const UDP_HEADER: usize = 8;
/// `PACKET_IGNORE_OUTGOING` of `linux/if_packet.h`, since Linux 4.20.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// `SKF_AD_OFF + SKF_AD_PROTOCOL` of `linux/filter.h`: where a filter finds the frame's protocol.
const FRAME_PROTOCOL: u32 = 0xffff_f000;
/// Where an IP header has its source address.
const SOURCE: usize = 12;
/// ICMP router advertisement and solicitation (RFC 1256).
const DISCOVERY: [u32; 2] = [9, 10];

/// Hears, on every interface, who sends messages to a UDP port or of router discovery.
#[derive(Debug)]
pub struct NeighbourWatch {
    socket: Socket,
}

/// Who sent a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenNeighbour {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// Its IP source, which anybody can write.
    pub address: Ipv4Addr,
    /// The Ethernet address that the frame came from.
    pub link_address: [u8; 6],
    /// What it asked for, if it is a registration request.
    pub request: Option<SeenRequest>,
}

/// What tells one registration request from others (RFC 5944 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeenRequest {
    /// Its home address.
    pub home_address: Ipv4Addr,
    /// The low half of its Identification, which the reply repeats.
    pub identification_low: u32,
}

impl NeighbourWatch {
    /// Opens the watch in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` at `socket` without `CAP_NET_RAW`.
    pub fn open(port: u16) -> Result<Self, Error> {
        // Protocol 0 hears nothing; it is bound when the filter is there.
        let socket = Socket::open(DOING, libc::AF_PACKET, libc::SOCK_DGRAM, 0)?;
        let mut program = filter(port);
        socket.attach_filter(&mut program)?;
        // What this host sends is nothing to learn from, and would be copied for it.
        let call = "setsockopt(PACKET_IGNORE_OUTGOING)";
        socket.set_number(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, call, 1)?;
        let mut name = [0; size_of::<libc::sockaddr_ll>()];
        name[..2].copy_from_slice(&(libc::AF_PACKET as libc::sa_family_t).to_ne_bytes());
        name[2..4].copy_from_slice(&EVERYTHING.to_be_bytes());
        socket.bind_to(&name)?;
        Ok(Self { socket })
    }

    /// The next one, or `None` when nobody has sent anything since. Interfaces without Ethernet addresses are left
    /// out.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvfrom`.
    pub fn receive(&self) -> Result<Option<SeenNeighbour>, Error> {
        loop {
            match self.receive_one() {
                Ok(Some(seen)) => return Ok(Some(seen)),
                Ok(None) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(None),
                Err(errno) => return Err(self.socket.failed("recvfrom", errno)),
            }
        }
    }

    fn receive_one(&self) -> Result<Option<SeenNeighbour>, Errno> {
        let mut packet = [0_u8; SNAP_LEN];
        let mut name = [0_u8; size_of::<libc::sockaddr_ll>()];
        let mut name_len = name.len() as libc::socklen_t;
        // SAFETY: each pointer goes with the length of what it points to, and both outlive the call.
        #[expect(unsafe_code, reason = "the name is one of the link")]
        let len = unsafe {
            libc::recvfrom(
                self.socket.as_fd().as_raw_fd(),
                packet.as_mut_ptr().cast(),
                packet.len(),
                libc::MSG_DONTWAIT,
                name.as_mut_ptr().cast(),
                &raw mut name_len,
            )
        };
        let len = usize::try_from(Errno::result(len)?).unwrap_or(0);
        Ok(read(packet.get(..len).unwrap_or(&[]), name.get(..name_len as usize).unwrap_or(&[])))
    }
}

impl AsFd for NeighbourWatch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// What the beginning of a packet and the bytes of a `struct sockaddr_ll` say.
fn read(packet: &[u8], name: &[u8]) -> Option<SeenNeighbour> {
    let &[a, b, c, d] = packet.get(SOURCE..SOURCE + 4)? else { return None };
    let &[_, _, _, _, i0, i1, i2, i3, h0, h1, _, len, e0, e1, e2, e3, e4, e5, ..] = name else { return None };
    let is_ethernet = u16::from_ne_bytes([h0, h1]) == libc::ARPHRD_ETHER && len == 6;
    is_ethernet.then(|| SeenNeighbour {
        interface: u32::from_ne_bytes([i0, i1, i2, i3]),
        address: Ipv4Addr::new(a, b, c, d),
        link_address: [e0, e1, e2, e3, e4, e5],
        request: read_request(packet),
    })
}

/// The registration request in a packet.
fn read_request(packet: &[u8]) -> Option<SeenRequest> {
    const REQUEST: u8 = 1;
    if *packet.get(9)? != protocol::UDP {
        return None;
    }
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let message: &[u8; 24] = packet.get(header + UDP_HEADER..)?.first_chunk()?;
    let &[REQUEST, _, _, _, a, b, c, d, .., i0, i1, i2, i3] = message else { return None };
    Some(SeenRequest {
        home_address: Ipv4Addr::new(a, b, c, d),
        identification_low: u32::from_be_bytes([i0, i1, i2, i3]),
    })
}

/// The kernel's program that lets through, of IPv4, first fragments of UDP to `port` and of router discovery, and of them
/// what is looked at. Jumps count instructions from the next one.
fn filter(port: u16) -> Vec<libc::sock_filter> {
    let statement = |code: u32, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    let jump = |code: u32, k: u32, jt: u8, jf: u8| libc::sock_filter { code: code as u16, jt, jf, k };
    let (load, by_index) = (libc::BPF_LD | libc::BPF_ABS, libc::BPF_LD | libc::BPF_IND);
    let equals = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let [advertisement, solicitation] = DISCOVERY;
    vec![
        // Only IPv4.
        statement(load | libc::BPF_W, FRAME_PROTOCOL),
        jump(equals, libc::ETH_P_IP as u32, 0, 12),
        // 0: not a later fragment; the header's length into the index.
        statement(load | libc::BPF_H, 6),
        jump(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0x1fff, 10, 0),
        statement(libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH, 0),
        // 3: by protocol.
        statement(load | libc::BPF_B, 9),
        jump(equals, u32::from(protocol::UDP), 0, 2),
        // 5: the destination port.
        statement(by_index | libc::BPF_H, 2),
        jump(equals, u32::from(port), 4, 5),
        // 7: the ICMP type.
        jump(equals, u32::from(protocol::ICMP), 0, 4),
        statement(by_index | libc::BPF_B, 0),
        jump(equals, advertisement, 1, 0),
        jump(equals, solicitation, 0, 1),
        // 11: let through, 12: drop.
        statement(libc::BPF_RET | libc::BPF_K, SNAP_LEN as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sender_is_read_from_header_and_name() {
        let mut packet = [0; 20];
        packet[12..16].copy_from_slice(&[192, 0, 2, 10]);
        let mut name = [0; 20];
        name[4..8].copy_from_slice(&7_u32.to_ne_bytes());
        name[8..10].copy_from_slice(&libc::ARPHRD_ETHER.to_ne_bytes());
        name[11] = 6;
        name[12..18].copy_from_slice(&[2, 0, 0, 0, 0, 9]);
        let seen = SeenNeighbour {
            interface: 7,
            address: Ipv4Addr::new(192, 0, 2, 10),
            link_address: [2, 0, 0, 0, 0, 9],
            request: None,
        };
        assert_eq!(read(&packet, &name), Some(seen));
        assert_eq!(read(&packet[..15], &name), None);
        assert_eq!(read(&packet, &name[..17]), None);
        name[8..10].copy_from_slice(&libc::ARPHRD_NONE.to_ne_bytes());
        assert_eq!(read(&packet, &name), None);
    }

    #[test]
    fn a_request_is_told_from_others_behind_options_too() {
        for header in [20_usize, 60] {
            let mut packet = vec![0; header + 8 + 24];
            packet[0] = 0x40 | (header / 4) as u8;
            packet[9] = protocol::UDP;
            packet[header + 8] = 1;
            packet[header + 12..header + 16].copy_from_slice(&[10, 0, 0, 7]);
            packet[header + 28..].copy_from_slice(&[0xaa, 0xbb, 0xcc, 0xdd]);
            let request =
                SeenRequest { home_address: Ipv4Addr::new(10, 0, 0, 7), identification_low: 0xaabb_ccdd };
            assert_eq!(read_request(&packet), Some(request));
            assert_eq!(read_request(&packet[..header + 31]), None);
            packet[header + 8] = 3;
            assert_eq!(read_request(&packet), None, "a reply");
        }
    }
}
