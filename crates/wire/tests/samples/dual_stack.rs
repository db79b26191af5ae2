//! What a mobile node and its home agent send each other in IPv4, and of IPv4, as whole packets (RFC 5555).

use std::net::{Ipv4Addr, Ipv6Addr};

use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip6::{
    AcknowledgementFlags, Algorithm, BindingAcknowledgement, BindingStatus, BindingUpdate, DSMIPV6_PORT,
    Ipv4AddressAcknowledgement, Ipv4AddressStatus, Ipv4HomeAddress, Lifetime, Message,
    MobileHomeAuthentication, MobilityOption, MobilityOptions, NatDetection, NtpTimestamp, PROTOCOL,
    SequenceNumber, Spi, UpdateFlags,
};
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, Ipv6InIpv4Tunnel, Ipv6Tunnel, Origin, Tunnel};
use careof_wire::udp::UdpHeader;

const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const CARE_OF_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77);
const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);
const IPV4_HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 5);
const IPV4_HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const IPV4_CARE_OF_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const IPV4_CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);
const MOBILE_HOME_KEY: &[u8] = b"sixteen bytes ok";
const TTL: u8 = 64;

/// Every sample: its name and the packet, of IPv4 or IPv6.
pub(crate) fn samples() -> Vec<(String, Vec<u8>)> {
    let mut samples = updates();
    samples.extend(acknowledgements());
    samples.extend(tunnels());
    samples
}

type Samples = Vec<(String, Vec<u8>)>;

fn ipv6(source: Ipv6Addr, destination: Ipv6Addr, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    let fixed = [0x60, 0, 0, 0, len[0], len[1], next_header, TTL];
    [&fixed[..], &source.octets(), &destination.octets(), payload].concat()
}

/// A packet in UDP and IPv4 (section 4.1).
fn in_udp(source: Ipv4Addr, destination: Ipv4Addr, packet: &[u8]) -> Vec<u8> {
    let payload_len = packet.len() as u16;
    let ports = UdpHeader { source_port: DSMIPV6_PORT, destination_port: DSMIPV6_PORT, payload_len };
    let mut udp = Vec::new();
    ports.emit(source, destination, packet, &mut udp);
    ipv4(source, destination, protocol::UDP, &udp)
}

fn ipv4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let payload_len = payload.len() as u16;
    let header = Ipv4Header { source, destination, protocol, ttl: TTL, payload_len, ..Ipv4Header::default() };
    let mut packet = Vec::new();
    header.emit(&mut packet);
    packet.extend(payload);
    packet
}

fn authenticated(message: &Message, to_home_agent: bool, care_of_address: Ipv6Addr) -> Vec<u8> {
    let authentication = MobileHomeAuthentication {
        spi: Spi(256),
        algorithm: Algorithm::HmacSha1,
        key: MOBILE_HOME_KEY,
        care_of_address,
        home_address: HOME_ADDRESS,
    };
    let (source, destination) =
        if to_home_agent { (HOME_ADDRESS, HOME_AGENT) } else { (HOME_AGENT, HOME_ADDRESS) };
    let header = message.emit_authenticated(source, destination, &authentication).expect("short enough");
    ipv6(source, destination, PROTOCOL, &header)
}

const fn timestamp() -> MobilityOption {
    MobilityOption::ReplayProtection(NtpTimestamp::from_halves(0xe5a1_b2c3, 0x8000_0001))
}

fn updates() -> Samples {
    let home = |address, len, requests_prefix| {
        MobilityOption::Ipv4HomeAddress(
            Ipv4HomeAddress::new(address, len, requests_prefix).expect("1 to 32 bits"),
        )
    };
    let update = |flags: UpdateFlags, homes: &[MobilityOption]| {
        let options = MobilityOptions::new()
            .with(MobilityOption::Ipv4CareOfAddress(IPV4_CARE_OF_ADDRESS))
            .with(timestamp());
        let message = Message::BindingUpdate(BindingUpdate {
            sequence: SequenceNumber(7),
            flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION).with(flags),
            lifetime: Lifetime::from_units(150),
            options: homes.iter().cloned().fold(options, MobilityOptions::with),
        });
        let packet = authenticated(&message, true, IPV4_CARE_OF_ADDRESS.to_ipv6_mapped());
        in_udp(IPV4_CARE_OF_ADDRESS, IPV4_HOME_AGENT, &packet)
    };
    let unspecified = Ipv4Addr::UNSPECIFIED;
    let none = UpdateFlags::default();
    [
        ("update", update(none, &[home(IPV4_HOME_ADDRESS, 32, false)])),
        ("update_asking", update(none, &[home(unspecified, 32, false), home(unspecified, 24, true)])),
        ("update_forcing_udp", update(UpdateFlags::FORCE_UDP_ENCAPSULATION, &[])),
    ]
    .map(|(name, packet)| (name.to_owned(), packet))
    .into()
}

fn acknowledgements() -> Samples {
    let acknowledgement = |answer: Ipv4AddressAcknowledgement, nat: Option<NatDetection>| {
        let options =
            MobilityOptions::new().with(MobilityOption::Ipv4AddressAcknowledgement(answer)).with(timestamp());
        let nat = nat.map(MobilityOption::NatDetection);
        Message::BindingAcknowledgement(BindingAcknowledgement {
            status: BindingStatus::Accepted,
            flags: AcknowledgementFlags::default(),
            sequence: SequenceNumber(7),
            lifetime: Lifetime::from_units(140),
            options: nat.into_iter().fold(options, MobilityOptions::with),
        })
    };
    let statuses = Ipv4AddressStatus::ALL.iter().map(|&status| {
        let answer = Ipv4AddressAcknowledgement::new(status, IPV4_HOME_ADDRESS, 24).expect("at most 32 bits");
        let packet = authenticated(&acknowledgement(answer, None), false, CARE_OF_ADDRESS);
        (format!("acknowledgement_{}", status.number()), packet)
    });
    let detections = [
        ("no_nat", NatDetection { udp_encapsulation_required: false, refresh_time: NatDetection::NO_NAT }),
        ("nat", NatDetection { udp_encapsulation_required: true, refresh_time: 110 }),
    ];
    let detections = detections.map(|(name, nat)| {
        let answer = Ipv4AddressAcknowledgement::of_address(Ipv4AddressStatus::Success, IPV4_HOME_ADDRESS);
        let care_of_address = IPV4_CARE_OF_ADDRESS.to_ipv6_mapped();
        let packet = authenticated(&acknowledgement(answer, Some(nat)), false, care_of_address);
        let packet = in_udp(IPV4_HOME_AGENT, IPV4_CARE_OF_ADDRESS, &packet);
        (format!("acknowledgement_{name}"), packet)
    });
    statuses.chain(detections).collect()
}

/// Datagrams of both versions in tunnels of both.
fn tunnels() -> Samples {
    let payload = b"four";
    let ports = UdpHeader { source_port: 1000, destination_port: 2000, payload_len: payload.len() as u16 };
    let (mut udp4, mut udp6) = (Vec::new(), Vec::new());
    ports.emit(IPV4_HOME_ADDRESS, IPV4_CORRESPONDENT, payload, &mut udp4);
    ports.emit(HOME_ADDRESS, CORRESPONDENT, payload, &mut udp6);
    let inner4 = ipv4(IPV4_HOME_ADDRESS, IPV4_CORRESPONDENT, protocol::UDP, &udp4);
    let inner6 = ipv6(HOME_ADDRESS, CORRESPONDENT, protocol::UDP, &udp6);
    let (entry, exit, ttl) = (IPV4_CARE_OF_ADDRESS, IPV4_HOME_AGENT, TTL);
    let ipv4_in_ipv4 = Tunnel { encapsulation: Encapsulation::IpInIp, entry, exit, ttl };
    let ipv6_in_ipv4 = Ipv6InIpv4Tunnel { entry, exit, ttl };
    let ipv4_in_ipv6 =
        Ipv6Tunnel { entry: CARE_OF_ADDRESS, exit: HOME_AGENT, hop_limit: TTL, encapsulation_limit: None };
    let local = Origin::Local;
    [
        ("ipv6_in_ipv4", ipv6_in_ipv4.encapsulate(&inner6, local, 9, false).ok()),
        ("ipv4_in_ipv4", ipv4_in_ipv4.encapsulate(&inner4, local, 9).ok()),
        ("ipv4_in_ipv6", ipv4_in_ipv6.encapsulate(&inner4, local).ok()),
    ]
    .map(|(name, packet)| (name.to_owned(), packet.expect("a hop and room are left")))
    .into()
}
