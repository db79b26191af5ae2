//! Requests and answers of sock_diag (`linux/inet_diag.h`), byte by byte.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use careof_base::Duration;
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR};
use nix::errno::Errno;

use super::{Failure, TcpFilter, TcpInfo, TcpSocket, TcpState, TcpTimer};
use crate::congestion::CongestionControl;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;
/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of a request: the header and `struct inet_diag_req_v2`.
pub(super) const REQUEST: usize = HEADER + 56;
/// Bytes of `struct inet_diag_msg`.
const SOCKET: usize = 72;
/// The attribute with the TCP_INFO, and the one with the name of the congestion control.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// Both are asked for.
const EXTENSIONS: u8 = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1);

/// What is asked.
pub(super) struct Request {
    sequence: u32,
    flags: u16,
    family: u8,
    states: u32,
    local: (IpAddr, u16),
    remote: (IpAddr, u16),
}

impl Request {
    /// One connection.
    pub(super) fn connection(sequence: u32, local: SocketAddr, remote: SocketAddr) -> Self {
        Self {
            sequence,
            flags: NLM_F_REQUEST,
            family: family(local.ip()),
            states: u32::MAX,
            local: (local.ip(), local.port()),
            remote: (remote.ip(), remote.port()),
        }
    }

    /// All sockets of a family; the kernel leaves out other ports and states than those of `filter`.
    pub(super) fn dump(sequence: u32, family: u8, filter: &TcpFilter) -> Self {
        // Zero stands for any.
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        Self {
            sequence,
            flags: NLM_F_REQUEST | NLM_F_DUMP,
            family,
            states: filter.state.map_or(u32::MAX, TcpState::bits),
            local: (any, filter.local_port.unwrap_or(0)),
            remote: (any, filter.remote_port.unwrap_or(0)),
        }
    }

    /// The request as the kernel reads it.
    pub(super) fn bytes(&self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        let mut rest = &mut bytes[..];
        let mut put = |field: &[u8]| {
            if let Some((place, behind)) = std::mem::take(&mut rest).split_at_mut_checked(field.len()) {
                place.copy_from_slice(field);
                rest = behind;
            }
        };
        put(&(REQUEST as u32).to_ne_bytes());
        put(&BY_FAMILY.to_ne_bytes());
        put(&self.flags.to_ne_bytes());
        put(&self.sequence.to_ne_bytes());
        // The kernel fills in whose socket it is.
        put(&0_u32.to_ne_bytes());

        put(&[self.family, libc::IPPROTO_TCP as u8, EXTENSIONS, 0]);
        put(&self.states.to_ne_bytes());
        put(&self.local.1.to_be_bytes());
        put(&self.remote.1.to_be_bytes());
        put(&octets(self.local.0));
        put(&octets(self.remote.0));
        // Any interface, and no cookie (`INET_DIAG_NOCOOKIE`).
        put(&0_u32.to_ne_bytes());
        put(&[0xff; 8]);
        bytes
    }
}

const fn family(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => libc::AF_INET as u8,
        IpAddr::V6(_) => libc::AF_INET6 as u8,
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        }
        IpAddr::V6(address) => address.octets(),
    }
}

/// One message of an answer.
#[expect(clippy::large_enum_variant, reason = "taken apart at once; a box would be an allocation a look-up")]
pub(super) enum Answer {
    /// A socket.
    Socket(TcpSocket),
    /// There are no more.
    Done,
    /// The request failed.
    Failed(Errno),
    /// Something of no concern here: the answer to an earlier request.
    Other,
}

/// Reads the first message of a datagram; returns it with what is behind, `None` at the end.
pub(super) fn first(bytes: &[u8], sequence: u32) -> Result<Option<(Answer, &[u8])>, Failure> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let cut = || Failure::Unreadable("a message that is cut off");
    let length = u32_at(bytes, 0).and_then(|length| usize::try_from(length).ok()).ok_or_else(cut)?;
    let payload = bytes.get(HEADER..length).ok_or_else(cut)?;
    let behind = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    let kind = u16_at(bytes, 4).ok_or_else(cut)?;
    if u32_at(bytes, 8) != Some(sequence) {
        return Ok(Some((Answer::Other, behind)));
    }
    let answer = match kind {
        BY_FAMILY => Answer::Socket(read_socket(payload)?),
        NLMSG_DONE => Answer::Done,
        NLMSG_ERROR => {
            let code = i32::from_ne_bytes(*payload.first_chunk().ok_or_else(cut)?);
            Answer::Failed(Errno::from_raw(code.saturating_neg()))
        }
        _ => Answer::Other,
    };
    Ok(Some((answer, behind)))
}

/// Reads a `struct inet_diag_msg` and its attributes.
fn read_socket(payload: &[u8]) -> Result<TcpSocket, Failure> {
    let cut = || Failure::Unreadable("a socket that is cut off");
    let (fixed, mut attributes) = payload.split_first_chunk::<SOCKET>().ok_or_else(cut)?;
    let state =
        TcpState::from_kernel(fixed[1]).ok_or(Failure::Unreadable("a state that TCP does not have"))?;
    let port = |at: usize| u16_at(fixed, at).map_or(0, u16::from_be);
    let address = |at: usize| {
        let octets: [u8; 16] =
            fixed.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default();
        if i32::from(fixed[0]) == libc::AF_INET {
            let [a, b, c, d, ..] = octets;
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        } else {
            Ipv6Addr::from(octets).to_canonical()
        }
    };
    let number = |at| u32_at(fixed, at).unwrap_or(0);
    let timer = match fixed[2] {
        1 => Some(TcpTimer::Retransmission),
        2 => Some(TcpTimer::KeepAlive),
        3 => Some(TcpTimer::TimeWait),
        4 => Some(TcpTimer::WindowProbe),
        _ => None,
    };
    let mut socket = TcpSocket {
        local: SocketAddr::new(address(8), port(4)),
        remote: SocketAddr::new(address(24), port(6)),
        state,
        timer: timer.map(|timer| (timer, Duration::from_millis(number(52).into()))),
        receive_queue: number(56),
        send_queue: number(60),
        inode: number(68),
        congestion_control: None,
        info: None,
    };
    while let Some((kind, value, behind)) = first_attribute(attributes) {
        attributes = behind;
        match kind {
            INET_DIAG_INFO => socket.info = TcpInfo::parse(value),
            INET_DIAG_CONG => socket.congestion_control = CongestionControl::from_kernel(value),
            _ => {}
        }
    }
    Ok(socket)
}

/// Kind and value of the first attribute, and what is behind it.
fn first_attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16_at(bytes, 0)?);
    let kind = u16_at(bytes, 2)?;
    let value = bytes.get(4..length)?;
    Some((kind, value, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of the kernel: a listening socket with one attribute.
    fn answer() -> Vec<u8> {
        let mut bytes = vec![0; HEADER + SOCKET];
        bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        bytes[8..12].copy_from_slice(&9_u32.to_ne_bytes());
        bytes[HEADER] = libc::AF_INET as u8;
        bytes[HEADER + 1] = 10;
        bytes[HEADER + 4..HEADER + 6].copy_from_slice(&443_u16.to_be_bytes());
        bytes[HEADER + 8..HEADER + 12].copy_from_slice(&[192, 0, 2, 1]);
        bytes.extend_from_slice(&10_u16.to_ne_bytes());
        bytes.extend_from_slice(&INET_DIAG_CONG.to_ne_bytes());
        bytes.extend_from_slice(b"cubic\0\0\0");
        let length = u32::try_from(bytes.len()).unwrap();
        bytes[..4].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    #[test]
    fn a_socket_is_read() {
        let bytes = answer();
        let Ok(Some((Answer::Socket(socket), []))) = first(&bytes, 9) else { panic!() };
        assert_eq!(socket.local, "192.0.2.1:443".parse().unwrap());
        assert_eq!((socket.state, socket.info), (TcpState::Listen, None));
        assert_eq!(socket.congestion_control.unwrap().as_str(), "cubic");
        assert!(matches!(first(&bytes, 10), Ok(Some((Answer::Other, [])))));
    }

    #[test]
    fn what_is_cut_off_or_wrong_is_never_a_panic() {
        let whole = answer();
        for length in 1..whole.len() {
            // As it is, and with a length that says that it is whole.
            assert!(first(&whole[..length], 9).is_err());
            let mut cut = whole[..length].to_vec();
            if let Some(place) = cut.get_mut(..4) {
                place.copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
                let _ = first(&cut, 9);
            }
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut wrong = whole.clone();
                wrong[at] = value;
                let _ = first(&wrong, 9);
            }
        }
    }

    #[test]
    fn a_request_has_the_kernels_layout() {
        let request =
            Request::connection(5, "192.0.2.1:258".parse().unwrap(), "192.0.2.2:3".parse().unwrap());
        let bytes = request.bytes();
        assert_eq!(bytes[..4], 72_u32.to_ne_bytes());
        assert_eq!(bytes[8..12], 5_u32.to_ne_bytes());
        assert_eq!(bytes[16..19], [libc::AF_INET as u8, 6, 0b1010]);
        assert_eq!(bytes[24..28], [1, 2, 0, 3]);
        assert_eq!((&bytes[28..32], &bytes[44..48]), (&[192, 0, 2, 1][..], &[192, 0, 2, 2][..]));
        assert_eq!(bytes[64..], [0xff; 8]);
    }
}
