//! Carries the routers and mobile nodes of a micro-mobility domain on this host.
//!
//! [`DomainRouter`] carries a gateway, a router or a base station, [`DomainHost`] a mobile node. Each hears every packet of its links by packet
//! sockets, asks its agent, and sends by them again: whoever lays a host out sees to it that the kernel has no address on these links, and takes
//! nothing that comes by them, for instance by a strict reverse path filter. To Mobile IP a domain is one link. On the gateway that is a TUN device, by which its foreign agent and its kernel send
//! into the domain and what leaves the domain comes to them; on a mobile node it is a TUN device, too, its only interface, whichever base
//! stations it is at.

mod host;
mod router;
mod traffic;
mod waiting;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use careof_base::Instant;
use careof_lab::{LinkSocket, Netlink};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::micro::PORT;
use careof_wire::protocol;
use careof_wire::udp::UdpHeader;

pub use host::{DomainHost, DomainHostSetup, StationLink};
pub use router::{DomainLink, DomainRouter, DomainRouterSetup};
pub use traffic::DomainTraffic;

use crate::Error;

/// The longest packet of IPv4.
const LONGEST_PACKET: usize = 1 << 16;
/// Packets taken from one link in one turn.
const PACKETS_A_TURN: usize = 64;
/// Events kept for an owner that does not take them.
const MOST_EVENTS: usize = 4096;
/// Time To Live of messages.
const TTL: u8 = 64;

/// What a router or a mobile node tells, and when it happened, until its owner asks.
#[derive(Debug)]
struct Told<E>(VecDeque<(Instant, E)>);

impl<E> Told<E> {
    const fn new() -> Self {
        Self(VecDeque::new())
    }

    /// Keeps an event, or counts it as lost where the owner has not taken thousands.
    fn keep(&mut self, now: Instant, event: E, traffic: &mut DomainTraffic) {
        if self.0.len() < MOST_EVENTS {
            self.0.push_back((now, event));
        } else {
            traffic.lost_events += 1;
        }
    }

    fn next(&mut self) -> Option<(Instant, E)> {
        self.0.pop_front()
    }
}

fn open_link(device: &str) -> Result<LinkSocket, Error> {
    let index = Netlink::open()?.index_of(device)?;
    Ok(LinkSocket::open(index)?)
}

/// A message of the domain as a packet. It goes over one link, and is in one piece.
fn packet_of(source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let udp = UdpHeader {
        source_port: PORT,
        destination_port: PORT,
        payload_len: u16::try_from(payload.len()).unwrap_or(u16::MAX),
    };
    let header = Ipv4Header {
        source,
        destination,
        protocol: protocol::UDP,
        ttl: TTL,
        tos: 0,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        payload_len: udp.payload_len.saturating_add(UdpHeader::LEN),
    };
    let mut packet = Vec::with_capacity(payload.len() + 28);
    header.emit(&mut packet);
    udp.emit(source, destination, payload, &mut packet);
    packet
}

/// The message of the domain in a packet, if it is one.
fn message_in<'p>(header: &Ipv4Header, payload: &'p [u8]) -> Option<&'p [u8]> {
    if header.protocol != protocol::UDP || header.is_fragment() {
        return None;
    }
    let (udp, message) = UdpHeader::parse(header.source, header.destination, payload).ok()?;
    (udp.destination_port == PORT).then_some(message)
}

/// Whether a packet is for everybody on a link.
const fn is_for_all(destination: Ipv4Addr) -> bool {
    destination.is_multicast() || destination.is_broadcast()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    #[test]
    fn what_is_no_message_of_the_domain_is_none() {
        let packet = packet_of(HERE, THERE, b"words");
        let (header, payload) = Ipv4Header::parse(&packet).unwrap();
        assert_eq!(message_in(&Ipv4Header { protocol: protocol::TCP, ..header }, payload), None);
        assert_eq!(message_in(&Ipv4Header { more_fragments: true, ..header }, payload), None);
        let mut other = payload.to_vec();
        other[3] ^= 1;
        assert_eq!(message_in(&header, &other), None);
    }
}
