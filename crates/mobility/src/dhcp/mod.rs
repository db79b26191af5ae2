//! Addresses by DHCP (RFC 2131): how a mobile node comes by a co-located care-of address, and who gives it one.
//!
//! [`DhcpClient`] and [`DhcpServer`] decide; their owner carries. Each takes what it receives and the time, and hands out
//! [`Transmit`](crate::v4::Transmit)s, events and a deadline with its reason ([`Wake`]).
//!
//! Either end may look whether somebody uses the address already: the server by an ICMP echo before it offers the address
//! (RFC 2131 section 2.2), the client by ARP before it uses it (RFC 2131 section 4.4.1, RFC 5227). Both take longer than all
//! messages together, and both are parameters.

mod client;
mod config_error;
mod drop_reason;
mod server;

pub use client::{
    ArpPacket, ClientConfig, ClientEvent, ConflictCheck, DhcpClient, Lease, LossCause, Retransmission,
    StartDelay, State,
};
pub use config_error::ConfigError;
pub use drop_reason::{Counters, DropReason};
pub use server::{DhcpServer, ServerConfig, ServerEvent};

/// A datagram to a DHCP port. The owner has checked the IP and UDP checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its IP source.
    pub source: core::net::Ipv4Addr,
    /// Its UDP destination port.
    pub destination_port: u16,
    /// The message.
    pub payload: &'a [u8],
}

/// Why a client or server wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wake {
    /// A client begins to look for servers.
    Start,
    /// A message has had no reply for too long.
    Retransmit,
    /// A probe is due, or nobody has answered the last one.
    ConflictCheck,
    /// A second announcement of the address is due.
    Announcement,
    /// T1: the lease is to be renewed.
    Renewal,
    /// T2: any server may renew the lease.
    Rebinding,
    /// The lease ends.
    LeaseExpiry,
    /// A server has worked long enough on a reply.
    ReplyDue,
}
