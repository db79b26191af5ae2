//! A client or a server under the hands of a test.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::dhcp::{
    ClientConfig, ClientEvent, Datagram, DhcpClient, DhcpServer, DropReason, ServerConfig, ServerEvent,
    StartDelay,
};
use careof_mobility::v4::{InterfaceId, Transmit, TransmitPayload};
use careof_wire::dhcp::{CLIENT_PORT, DhcpMessage, HardwareAddress, LeaseTime, MessageType, SERVER_PORT};

pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const FIRST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(crate) const LAST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 12);
pub(crate) const INTERFACE: InterfaceId = InterfaceId(3);

pub(crate) fn hardware(n: u8) -> HardwareAddress {
    HardwareAddress::ethernet([2, 0, 0, 0, 0, n])
}

pub(crate) fn secs(seconds: u64) -> Instant {
    Instant::from_secs(seconds)
}

pub(crate) fn random(name: &str) -> RandomStream {
    RandomStream::new(1, 0, name)
}

/// What the test of one rule does not ask for is off.
pub(crate) fn plain_client() -> ClientConfig {
    ClientConfig {
        start_delay: StartDelay::NONE,
        conflict_check: None,
        ..ClientConfig::new(INTERFACE, hardware(1))
    }
}

pub(crate) fn plain_server() -> ServerConfig {
    ServerConfig { ping_check: None, ..ServerConfig::new(INTERFACE, SERVER, 24, FIRST, LAST) }
}

/// A message in a datagram, read again.
pub(crate) fn message_in(transmit: &Transmit) -> DhcpMessage {
    let TransmitPayload::Udp { bytes, .. } = &transmit.payload else { panic!("{transmit:?}") };
    DhcpMessage::parse(bytes).expect("what is sent can be read")
}

pub(crate) fn sent_by_client(client: &mut DhcpClient) -> Vec<(Transmit, DhcpMessage)> {
    let sent: Vec<_> = std::iter::from_fn(|| client.poll_transmit()).collect();
    for transmit in &sent {
        assert_eq!((transmit.interface, transmit.ttl), (Some(INTERFACE), 64));
        let TransmitPayload::Udp { source_port, destination_port, .. } = transmit.payload else { panic!() };
        assert_eq!((source_port, destination_port), (CLIENT_PORT, SERVER_PORT));
    }
    sent.into_iter().map(|transmit| (transmit.clone(), message_in(&transmit))).collect()
}

/// The only message the client has to send.
pub(crate) fn one(client: &mut DhcpClient) -> (Transmit, DhcpMessage) {
    let mut sent = sent_by_client(client);
    assert_eq!(sent.len(), 1, "{sent:?}");
    sent.remove(0)
}

pub(crate) fn events(client: &mut DhcpClient) -> Vec<ClientEvent> {
    std::iter::from_fn(|| client.poll_event())
        .filter(|event| !matches!(event, ClientEvent::State(_) | ClientEvent::ArpAnnouncement { .. }))
        .collect()
}

pub(crate) fn tell_client(client: &mut DhcpClient, now: Instant, message: &DhcpMessage) {
    let bytes = message.emit();
    let datagram = Datagram { source: SERVER, destination_port: CLIENT_PORT, payload: &bytes };
    client.handle_datagram(now, datagram);
}

/// Wakes the client when it wants to be woken; returns when that was.
pub(crate) fn wake(client: &mut DhcpClient) -> Instant {
    let (at, _) = client.next_timeout().expect("it waits for something");
    client.handle_timeout(at);
    at
}

pub(crate) fn offer(discover: &DhcpMessage) -> DhcpMessage {
    DhcpMessage {
        yiaddr: FIRST,
        server_identifier: Some(SERVER),
        lease_time: Some(LeaseTime::from_secs(800)),
        prefix_length: Some(24),
        routers: vec![SERVER],
        ..DhcpMessage::new(MessageType::Offer, discover.xid, discover.chaddr)
    }
}

pub(crate) fn ack(request: &DhcpMessage) -> DhcpMessage {
    DhcpMessage { kind: MessageType::Ack, ..offer(request) }
}

pub(crate) fn nak(request: &DhcpMessage) -> DhcpMessage {
    DhcpMessage {
        server_identifier: Some(SERVER),
        ..DhcpMessage::new(MessageType::Nak, request.xid, request.chaddr)
    }
}

/// A client whose link is up since `now`.
pub(crate) fn started(config: ClientConfig, now: Instant) -> DhcpClient {
    let mut client = DhcpClient::new(config, random("client")).unwrap();
    client.handle_link(now, true);
    client
}

/// A client that was offered an address at `now` and has asked for it: with its request.
pub(crate) fn requesting(config: ClientConfig, now: Instant) -> (DhcpClient, DhcpMessage) {
    requesting_as("client", config, now)
}

/// The same, with chance of its own.
pub(crate) fn requesting_as(name: &str, config: ClientConfig, now: Instant) -> (DhcpClient, DhcpMessage) {
    let mut client = DhcpClient::new(config, random(name)).unwrap();
    client.handle_link(now, true);
    let at = wake(&mut client);
    let (_, discover) = one(&mut client);
    tell_client(&mut client, at, &offer(&discover));
    let (_, request) = one(&mut client);
    (client, request)
}

/// A client that has had an address since `now`, with a lease of 800 s.
pub(crate) fn bound(config: ClientConfig, now: Instant) -> DhcpClient {
    let (mut client, request) = requesting(config, now);
    tell_client(&mut client, now, &ack(&request));
    assert!(client.lease().is_some());
    events(&mut client);
    client
}

pub(crate) fn new_server(config: ServerConfig) -> DhcpServer {
    DhcpServer::new(config, random("server")).unwrap()
}

pub(crate) fn tell_server(server: &mut DhcpServer, now: Instant, message: &DhcpMessage) {
    let bytes = message.emit();
    let source = message.ciaddr;
    server.handle_datagram(now, Datagram { source, destination_port: SERVER_PORT, payload: &bytes });
}

/// What the server sends, DHCP alone.
pub(crate) fn replies(server: &mut DhcpServer) -> Vec<(Transmit, DhcpMessage)> {
    std::iter::from_fn(|| server.poll_transmit())
        .filter(|transmit| matches!(transmit.payload, TransmitPayload::Udp { .. }))
        .map(|transmit| (transmit.clone(), message_in(&transmit)))
        .collect()
}

pub(crate) fn reply(server: &mut DhcpServer) -> (Transmit, DhcpMessage) {
    let mut replies = replies(server);
    assert_eq!(replies.len(), 1, "{replies:?}");
    replies.remove(0)
}

pub(crate) fn dropped_by(server: &mut DhcpServer) -> Vec<DropReason> {
    std::iter::from_fn(|| server.poll_event())
        .filter_map(|event| match event {
            ServerEvent::Dropped { reason, .. } => Some(reason),
            _ => None,
        })
        .collect()
}

pub(crate) fn discover(n: u8) -> DhcpMessage {
    DhcpMessage::new(MessageType::Discover, 0x100 + u32::from(n), hardware(n))
}

pub(crate) fn request(n: u8, address: Ipv4Addr) -> DhcpMessage {
    DhcpMessage {
        requested_address: Some(address),
        server_identifier: Some(SERVER),
        ..DhcpMessage::new(MessageType::Request, 0x100 + u32::from(n), hardware(n))
    }
}

/// Client `n` gets an address of the server.
pub(crate) fn lease(server: &mut DhcpServer, now: Instant, n: u8) -> Ipv4Addr {
    tell_server(server, now, &discover(n));
    let address = reply(server).1.yiaddr;
    tell_server(server, now, &request(n, address));
    assert_eq!(reply(server).1.kind, MessageType::Ack);
    address
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
