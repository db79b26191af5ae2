//! Keeps packets of Mobile IPv6 from the kernel, which answers them with Parameter Problems because it knows nothing of them.
//!
//! It is a table of nf_tables that belongs to a socket (`NFT_TABLE_F_OWNER`, since Linux 5.12): the kernel removes it when the socket
//! is closed, however its process ends. Packet sockets see what is dropped here, for they come first. The messages are made here by
//! hand: there are seven of them, and `netlink-packet-route` has none.

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use nix::errno::Errno;

use crate::error::Error;
use crate::netlink::{errno_of, uninterrupted};

/// `NFNL_SUBSYS_NFTABLES`, and what a batch begins and ends with.
const NFTABLES: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
/// `NFT_MSG_*`.
const NEW_TABLE: u16 = NFTABLES << 8;
const NEW_CHAIN: u16 = NFTABLES << 8 | 3;
const NEW_RULE: u16 = NFTABLES << 8 | 6;
/// Flags of a request that makes something, at the end of what is there, and is acknowledged.
const MAKE: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_APPEND) as u16;
const NESTED: u16 = 0x8000;
/// `NFT_TABLE_F_OWNER`.
const OWNED: u32 = 2;
/// `NF_INET_LOCAL_IN`: what is for this host, before its extension headers are looked at.
const LOCAL_IN: u32 = 1;
/// Before all others.
const PRIORITY: u32 = (-400_i32).cast_unsigned();
const CHAIN: &str = "input";
/// `NFT_REG_1` and `NFT_REG_VERDICT`.
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
/// `NFT_META_L4PROTO`.
const UPPER_LAYER: u32 = 16;
/// `NF_DROP`.
const DROP: u32 = 0;

/// What may be kept from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedPacket {
    /// With a type 2 Routing header (RFC 6275 section 6.4).
    Type2Routing,
    /// With a Home Address option, where its alignment puts it: alone in a Destination Options header, or behind one other option (RFC
    /// 6275 section 6.3).
    HomeAddressOption,
    /// With a Mobility Header, behind whatever extension headers.
    MobilityHeader,
}

/// Drops packets for this host before the kernel looks at their extension headers, as long as it lives.
#[derive(Debug)]
pub struct PacketGuard {
    _socket: Socket,
}

impl PacketGuard {
    /// Begins to drop `packets` in the calling thread's network namespace, by a table of this name.
    ///
    /// # Errors
    /// [`Error::System`] naming the call: `EPERM` without `CAP_NET_ADMIN`, `EOPNOTSUPP` or `EPROTONOSUPPORT` for a kernel without
    /// nf_tables, `EEXIST` or `EPERM` for a table of this name that somebody has.
    pub fn open(name: &str, packets: &[GuardedPacket]) -> Result<Self, Error> {
        let doing = "keep packets of Mobile IPv6 from the kernel";
        let failed = |call| move |error: std::io::Error| Error::system(doing, call, errno_of(&error));
        let mut socket = Socket::new(NETLINK_NETFILTER).map_err(failed("socket(NETLINK_NETFILTER)"))?;
        socket.bind_auto().map_err(failed("bind(NETLINK_NETFILTER)"))?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed("connect(NETLINK_NETFILTER)"))?;
        let (batch, requests) = batch(name, packets);
        uninterrupted(|| socket.send(&batch, 0)).map_err(failed("send(NETLINK_NETFILTER)"))?;
        let mut buffer = Vec::with_capacity(16 * 1024);
        let mut answered = 0;
        while answered < requests {
            buffer.clear();
            uninterrupted(|| socket.recv(&mut buffer, 0)).map_err(failed("recv(NETLINK_NETFILTER)"))?;
            let mut rest = &buffer[..];
            while let Some((message, behind)) = crate::netlink::split_message(rest) {
                rest = behind;
                match outcome(message) {
                    Some(0) => answered += 1,
                    Some(errno) => {
                        let errno = Errno::from_raw(errno);
                        return Err(Error::system(doing, "nf_tables", errno));
                    }
                    None => {}
                }
            }
        }
        Ok(Self { _socket: socket })
    }
}

/// The error number in an answer, 0 for success; `None` for another message.
fn outcome(message: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(*message.get(4..)?.first_chunk()?);
    let code = i32::from_ne_bytes(*message.get(16..)?.first_chunk()?);
    (libc::c_int::from(kind) == libc::NLMSG_ERROR).then(|| code.saturating_neg())
}

/// All requests as one transaction, and how many of them are acknowledged.
fn batch(name: &str, packets: &[GuardedPacket]) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let table = text(1, name);
    message(&mut bytes, BATCH_BEGIN, libc::NLM_F_REQUEST as u16, NFTABLES, &[]);
    message(&mut bytes, NEW_TABLE, MAKE, 0, &[table.clone(), number(2, OWNED)].concat());
    let hook = nested(4, &[number(1, LOCAL_IN), number(2, PRIORITY)]);
    let chain = [table.clone(), text(3, CHAIN), hook, text(7, "filter")].concat();
    message(&mut bytes, NEW_CHAIN, MAKE, 0, &chain);
    let mut requests = 2;
    for conditions in packets.iter().flat_map(|packet| conditions(*packet)) {
        let rule = [table.clone(), text(2, CHAIN), nested(4, &[conditions, dropped()])].concat();
        message(&mut bytes, NEW_RULE, MAKE, 0, &rule);
        requests += 1;
    }
    message(&mut bytes, BATCH_END, libc::NLM_F_REQUEST as u16, NFTABLES, &[]);
    (bytes, requests)
}

/// The conditions by which packets of a kind are known, those of one rule together.
fn conditions(packet: GuardedPacket) -> Vec<Vec<u8>> {
    const ROUTING: u8 = 43;
    const DESTINATION_OPTIONS: u8 = 60;
    const TYPE_2: u8 = 2;
    const HOME_ADDRESS: u8 = 201;
    match packet {
        GuardedPacket::Type2Routing => vec![[extension(ROUTING, 2), equals(TYPE_2)].concat()],
        // Its type stands at 8n + 6.
        GuardedPacket::HomeAddressOption => [6, 14]
            .map(|offset| [extension(DESTINATION_OPTIONS, offset), equals(HOME_ADDRESS)].concat())
            .to_vec(),
        GuardedPacket::MobilityHeader => {
            let upper_layer = expression("meta", &[number(1, REGISTER), number(2, UPPER_LAYER)]);
            vec![[upper_layer, equals(careof_wire::mip6::PROTOCOL)].concat()]
        }
    }
}

/// Loads a byte of an extension header; a packet without it is passed over.
fn extension(header: u8, offset: u32) -> Vec<u8> {
    expression("exthdr", &[number(1, REGISTER), attribute(2, &[header]), number(3, offset), number(4, 1)])
}

/// Compares what was loaded.
fn equals(value: u8) -> Vec<u8> {
    const EQUAL: u32 = 0;
    expression("cmp", &[number(1, REGISTER), number(2, EQUAL), nested(3, &[attribute(1, &[value])])])
}

fn dropped() -> Vec<u8> {
    let verdict = nested(2, &[number(1, DROP)]);
    expression("immediate", &[number(1, VERDICT), nested(2, &[verdict])])
}

fn expression(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, data)])
}

/// Appends a request with its header and that of nfnetlink.
fn message(bytes: &mut Vec<u8>, kind: u16, flags: u16, subsystem: u16, attributes: &[u8]) {
    const HEADERS: usize = 20;
    let start = bytes.len();
    let family = if attributes.is_empty() { libc::AF_UNSPEC } else { libc::AF_INET6 };
    bytes.extend(u32::try_from(HEADERS + attributes.len()).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // The place in the batch tells requests apart as well as anything.
    bytes.extend(u32::try_from(start).unwrap_or(u32::MAX).to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend([u8::try_from(family).unwrap_or(0), 0]);
    bytes.extend(subsystem.to_be_bytes());
    bytes.extend(attributes);
}

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(4 + value.len().next_multiple_of(4));
    bytes.extend(u16::try_from(4 + value.len()).unwrap_or(u16::MAX).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute(kind, &value.to_be_bytes())
}

fn text(kind: u16, value: &str) -> Vec<u8> {
    attribute(kind, &[value.as_bytes(), &[0]].concat())
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute(kind | NESTED, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_made_of_whole_messages() {
        let (bytes, requests) =
            batch("careof0", &[GuardedPacket::Type2Routing, GuardedPacket::HomeAddressOption]);
        let (mut rest, mut kinds) = (&bytes[..], Vec::new());
        while let Some((message, behind)) = crate::netlink::split_message(rest) {
            kinds.push(u16::from_ne_bytes([message[4], message[5]]));
            rest = behind;
        }
        assert!(rest.is_empty());
        let rules = [NEW_RULE; 3];
        assert_eq!(kinds, [&[BATCH_BEGIN, NEW_TABLE, NEW_CHAIN][..], &rules, &[BATCH_END]].concat());
        assert_eq!(requests, 5);
    }

    #[test]
    fn an_answer_says_whether_it_went_well() {
        let answer = |kind: u16, code: i32| {
            let mut message = vec![0; 20];
            message[4..6].copy_from_slice(&kind.to_ne_bytes());
            message[16..].copy_from_slice(&code.to_ne_bytes());
            outcome(&message)
        };
        let error = libc::NLMSG_ERROR as u16;
        assert_eq!((answer(error, 0), answer(error, -17), answer(9, 0)), (Some(0), Some(17), None));
        assert_eq!(outcome(&[0; 19]), None);
    }
}
