//! What the network says about packets sent into tunnels.

use std::net::Ipv4Addr;

use careof_wire::icmp::IcmpMessage;
use careof_wire::ipv4::Ipv4Header;
use nix::errno::Errno;

use super::TunnelSocket;
use crate::error::Error;
use crate::offload::checksum;
use crate::socket::Control;

/// The most of a datagram that an ICMP error quotes here: such errors have at most 576 bytes (RFC 1812 section
/// 4.3.2.3), but nothing keeps a router from sending more.
const QUOTED: usize = 1500;

/// Entries of the queue looked at in one call. Those of this host are passed over, and come as fast as it sends.
const ENTRIES_A_CALL: usize = 64;

/// An ICMP error about a packet that was sent into a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelError {
    /// The error as it came in, quoting the packet from its outer header on: what
    /// [`careof_wire::tunnel::relay_error`] takes.
    pub message: IcmpMessage,
    /// Source of the packet: the tunnel's entry.
    pub entry: Ipv4Addr,
    /// Where it was sent: the tunnel's exit.
    pub exit: Ipv4Addr,
    /// Who sent the error.
    pub reporter: Ipv4Addr,
}

impl TunnelSocket {
    /// The next error that a node on the way, or at its end, sent about a packet; `None` when there is none,
    /// or when none was found in a while: then the socket keeps its error condition (`EPOLLERR`), and is to be asked
    /// again.
    ///
    /// What this host itself says about a packet is not among them: it is a failure of
    /// [`send_batch`](Self::send_batch).
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmsg(MSG_ERRQUEUE)`.
    pub fn next_error(&self) -> Result<Option<TunnelError>, Error> {
        let mut quoted = [0; QUOTED];
        for _ in 0..ENTRIES_A_CALL {
            let mut control = Control::new();
            match self.receiver.receive(&mut quoted, &mut control, libc::MSG_ERRQUEUE) {
                Ok(received) => {
                    let quoted = quoted.get(..received.len).unwrap_or_default();
                    if let Some(error) = read(quoted, &control, received.control_len) {
                        return Ok(Some(error));
                    }
                }
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(self.receiver.failed("recvmsg(MSG_ERRQUEUE)", errno)),
            }
        }
        Ok(None)
    }
}

/// Puts the message together again that the kernel took apart. `None` for what is no ICMP error, or this host's.
fn read(quoted: &[u8], control: &Control, control_len: usize) -> Option<TunnelError> {
    const NEXT_HOP_MTU: std::ops::Range<usize> = 6..8;
    const FRAGMENTATION_NEEDED: (u8, u8) = (3, 4);
    const PARAMETER_PROBLEM: u8 = 12;
    let error = control.read(control_len).socket_error()?;
    let entry = control.read(control_len).packet_info()?.address;
    if error.origin != libc::SO_EE_ORIGIN_ICMP || error.reporter == entry {
        return None;
    }
    let mut message = Vec::with_capacity(8 + quoted.len());
    message.extend([error.kind, error.code, 0, 0, 0, 0, 0, 0]);
    message.extend(quoted);
    if (error.kind, error.code) == FRAGMENTATION_NEEDED {
        let mtu = u16::try_from(error.info).unwrap_or(u16::MAX);
        message.get_mut(NEXT_HOP_MTU)?.copy_from_slice(&mtu.to_be_bytes());
    } else if error.kind == PARAMETER_PROBLEM {
        *message.get_mut(4)? = u8::try_from(error.info).unwrap_or(u8::MAX);
    }
    let sum = checksum::complete(checksum::sum(&message));
    message.get_mut(2..4)?.copy_from_slice(&sum);
    let message = IcmpMessage::parse(&message).ok()?;
    let &[_, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, a, b, c, d] =
        quoted.get(..usize::from(Ipv4Header::LEN))?
    else {
        return None;
    };
    Some(TunnelError { message, entry, exit: Ipv4Addr::new(a, b, c, d), reporter: error.reporter })
}
