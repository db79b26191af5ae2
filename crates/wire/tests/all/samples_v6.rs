//! Packets of IPv6 of every kind, for the tests that mutilate them.

use std::net::Ipv6Addr;

use careof_wire::icmpv6::{
    DestinationUnreachable, HomeAgentAddressDiscoveryReply, HomeAgentInformation, Icmpv6Message,
    LinkLayerAddress, MapOption, Milliseconds, MulticastListenerReport, NdOption, NeighborAdvertisement,
    NeighborSolicitation, Nonce, PacketTooBig, PrefixInformation, PrefixLifetime, Redirect,
    RouterAdvertisement, UnreachableCode,
};
use careof_wire::ipv6::{Extensions, Ipv6Header, Packet, fragment};
use careof_wire::protocol;
use careof_wire::tunnel::{Ipv6InIpv4Tunnel, Ipv6Tunnel, Origin};

/// Those that the fuzz entries assume.
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const DESTINATION: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);

fn packet(extensions: &Extensions, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv6Header { source: SOURCE, destination: DESTINATION, ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    Packet::emit(&header, extensions, protocol, payload, &mut bytes).expect("a short packet");
    bytes
}

fn messages() -> Vec<Icmpv6Message> {
    let hardware = LinkLayerAddress([2, 0, 0, 0, 0, 1]);
    let prefix = PrefixInformation {
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: true,
        valid_lifetime: PrefixLifetime::from_secs(600),
        preferred_lifetime: PrefixLifetime::INFINITE,
        prefix: HOME,
    };
    let advertisement = RouterAdvertisement {
        home_agent: true,
        router_lifetime_secs: 30,
        options: vec![
            NdOption::SourceLinkLayerAddress(hardware),
            NdOption::Mtu(1500),
            NdOption::PrefixInformation(prefix),
            NdOption::AdvertisementInterval(Milliseconds(70)),
            NdOption::HomeAgentInformation(HomeAgentInformation { preference: 1, lifetime_secs: 30 }),
            NdOption::Map(MapOption {
                distance: 2,
                preference: 15,
                allocates_address: true,
                valid_lifetime: PrefixLifetime::from_secs(600),
                address: HOME,
            }),
        ],
        ..RouterAdvertisement::default()
    };
    let nonce = NdOption::Nonce(Nonce::new([1, 2, 3, 4, 5, 6]));
    let tunnel = Ipv6Tunnel { entry: SOURCE, exit: HOME, hop_limit: 64, encapsulation_limit: Some(0) };
    let global = Ipv6Header { source: HOME, destination: HOME, ..Ipv6Header::default() };
    let mut inner = Vec::new();
    Packet::emit(&global, &Extensions::NONE, protocol::UDP, &[7; 8], &mut inner).expect("a short packet");
    let quoted = tunnel.encapsulate(&inner, Origin::Forwarded).expect("it enters");
    vec![
        Icmpv6Message::RouterAdvertisement(advertisement),
        Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target: HOME, options: vec![nonce] }),
        Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
            router: true,
            solicited: true,
            override_flag: true,
            target: HOME,
            options: vec![NdOption::TargetLinkLayerAddress(hardware)],
        }),
        Icmpv6Message::Redirect(Redirect {
            target: SOURCE,
            destination: HOME,
            options: vec![NdOption::RedirectedHeader(vec![0x60; 40])],
        }),
        Icmpv6Message::MulticastListenerReport(MulticastListenerReport::join([DESTINATION])),
        Icmpv6Message::HomeAgentAddressDiscoveryReply(HomeAgentAddressDiscoveryReply {
            identifier: 7,
            home_agents: vec![HOME, SOURCE],
        }),
        Icmpv6Message::PacketTooBig(PacketTooBig { mtu: 1280, quoted: quoted.clone() }),
        Icmpv6Message::DestinationUnreachable(DestinationUnreachable {
            code: UnreachableCode::NoRoute,
            quoted,
        }),
    ]
}

/// Messages from their type on, packets from the header on.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let mut samples: Vec<Vec<u8>> = messages()
        .iter()
        .map(|message| {
            let mut bytes = Vec::new();
            message.emit(SOURCE, DESTINATION, &mut bytes);
            bytes
        })
        .collect();
    let all = Extensions {
        router_alert: Some(0),
        type_2_routing: Some(HOME),
        home_address: Some(HOME),
        encapsulation_limit: Some(2),
    };
    let whole = packet(&all, protocol::UDP, &[7; 40]);
    let tunnel = Ipv6Tunnel { entry: HOME, exit: SOURCE, hop_limit: 64, encapsulation_limit: Some(4) };
    let over_ipv4 = Ipv6InIpv4Tunnel { entry: [10, 0, 0, 1].into(), exit: [192, 0, 2, 9].into(), ttl: 64 };
    let plain = packet(&Extensions::NONE, protocol::TCP, &[0x50; 20]);
    samples.extend(fragment(&whole, 160, 7).expect("it can be cut"));
    samples.push(tunnel.encapsulate(&plain, Origin::Local).expect("it enters"));
    samples.push(over_ipv4.encapsulate(&plain, Origin::Local, 1, true).expect("it enters"));
    samples.extend([whole, plain]);
    samples
}
