//! What is emitted is read as it was: for every message, option and header of IPv6.

use std::net::Ipv6Addr;

use careof_base::Instant;
use careof_wire::icmpv6::{
    AddressRole, DestinationUnreachable, Echo, HandoverAddress, HandoverLinkLayerAddress,
    HomeAgentAddressDiscoveryReply, HomeAgentAddressDiscoveryRequest, HomeAgentInformation, Icmpv6Message,
    LinkLayerAddress, LinkLayerRole, MapOption, Milliseconds, MobilePrefixAdvertisement,
    MobilePrefixSolicitation, MulticastAddressRecord, MulticastListener, MulticastListenerReport, Naack,
    NaackStatus, NdOption, NeighborAdvertisement, NeighborSolicitation, Nonce, OtherMessage, PacketTooBig,
    ParameterProblem, ParameterProblemCode, PrRtAdv, PrRtAdvCode, PrefixInformation, PrefixLifetime,
    RecordType, Redirect, RouterAdvertisement, RouterPreference, RouterSolicitation, RtSolPr, TimeExceeded,
    TimeExceededCode, UnknownOption, UnreachableCode,
};
use careof_wire::ipv6::{
    Extensions, Ipv6Header, Packet, Reassembler, ReassemblyLimits, Understood, fragment, is_unicast_routable,
};
use careof_wire::tunnel::{Ipv6Tunnel, Origin, decapsulate_ipv6};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(Ipv6Addr::from)
}

fn unicast() -> impl Strategy<Value = Ipv6Addr> {
    address().prop_filter("no multicast address", |address| !address.is_multicast())
}

fn home_address() -> impl Strategy<Value = Ipv6Addr> {
    address().prop_filter("a unicast routable address", |address| is_unicast_routable(*address))
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=max)
}

fn prefix_information() -> impl Strategy<Value = PrefixInformation> {
    let flags = any::<(bool, bool, bool)>();
    (0..=128_u8, flags, any::<(u32, u32)>(), address()).prop_map(
        |(prefix_length, flags, lifetimes, prefix)| PrefixInformation {
            prefix_length,
            on_link: flags.0,
            autonomous: flags.1,
            router_address: flags.2,
            valid_lifetime: PrefixLifetime::from_secs(lifetimes.0),
            preferred_lifetime: PrefixLifetime::from_secs(lifetimes.1),
            prefix,
        },
    )
}

prop_compose! {
    fn map_option()(
        (distance, preference) in (0..=MapOption::MAX, 0..=MapOption::MAX),
        (allocates_address, lifetime, address) in any::<(bool, u32, u128)>(),
    ) -> MapOption {
        let (valid_lifetime, address) = (PrefixLifetime::from_secs(lifetime), Ipv6Addr::from_bits(address));
        MapOption { distance, preference, allocates_address, valid_lifetime, address }
    }
}

fn nd_option() -> impl Strategy<Value = NdOption> {
    let link_layer = || any::<[u8; 6]>().prop_map(LinkLayerAddress);
    let quoted = (0..20_usize).prop_flat_map(|units| vec(any::<u8>(), units * 8));
    let unknown = (30..=u8::MAX, 0..4_usize)
        .prop_flat_map(|(kind, units)| (Just(kind), vec(any::<u8>(), units * 8 + 6)))
        .prop_map(|(kind, data)| UnknownOption::new(kind, &data).expect("whole units"));
    prop_oneof![
        link_layer().prop_map(NdOption::SourceLinkLayerAddress),
        link_layer().prop_map(NdOption::TargetLinkLayerAddress),
        prefix_information().prop_map(NdOption::PrefixInformation),
        quoted.prop_map(NdOption::RedirectedHeader),
        any::<u32>().prop_map(NdOption::Mtu),
        any::<u32>().prop_map(|millis| NdOption::AdvertisementInterval(Milliseconds(millis))),
        any::<(u16, u16)>().prop_map(|(preference, lifetime_secs)| {
            NdOption::HomeAgentInformation(HomeAgentInformation { preference, lifetime_secs })
        }),
        any::<[u8; 6]>().prop_map(|nonce| NdOption::Nonce(Nonce::new(nonce))),
        map_option().prop_map(NdOption::Map),
        (any::<u8>(), address(), 0..=128_u8).prop_map(|(role, address, len)| {
            let role = AddressRole::from_number(role);
            NdOption::HandoverAddress(
                HandoverAddress::with_prefix_len(role, address, len).expect("at most 128"),
            )
        }),
        (1..=u8::MAX, link_layer()).prop_map(|(role, address)| {
            let role = LinkLayerRole::from_number(role);
            NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress { role, address })
        }),
        Just(NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress::WILDCARD)),
        (any::<u8>(), option::of(address())).prop_map(|(status, address)| {
            NdOption::Naack(Naack { status: NaackStatus::from_number(status), address })
        }),
        unknown.prop_map(NdOption::Unknown),
    ]
}

fn nd_options() -> impl Strategy<Value = Vec<NdOption>> {
    vec(nd_option(), 0..5)
}

prop_compose! {
    fn router_advertisement()(
        (cur_hop_limit, router_lifetime_secs) in any::<(u8, u16)>(),
        (managed, other_configuration, home_agent) in any::<(bool, bool, bool)>(),
        preference in prop_oneof![
            Just(RouterPreference::Low), Just(RouterPreference::Medium), Just(RouterPreference::High)
        ],
        (reachable, retrans) in any::<(u32, u32)>(),
        options in nd_options(),
    ) -> RouterAdvertisement {
        RouterAdvertisement {
            cur_hop_limit,
            managed,
            other_configuration,
            home_agent,
            preference,
            router_lifetime_secs,
            reachable_time: Milliseconds(reachable),
            retrans_timer: Milliseconds(retrans),
            options,
        }
    }
}

fn neighbor_message() -> impl Strategy<Value = Icmpv6Message> {
    let flags = any::<(bool, bool, bool)>();
    prop_oneof![
        nd_options().prop_map(|options| Icmpv6Message::RouterSolicitation(RouterSolicitation { options })),
        router_advertisement().prop_map(Icmpv6Message::RouterAdvertisement),
        (unicast(), nd_options()).prop_map(|(target, options)| {
            Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target, options })
        }),
        (unicast(), flags, nd_options()).prop_map(|(target, (router, solicited, override_flag), options)| {
            Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
                router,
                solicited,
                override_flag,
                target,
                options,
            })
        }),
        (any::<u16>(), nd_options())
            .prop_map(|(identifier, options)| { Icmpv6Message::RtSolPr(RtSolPr { identifier, options }) }),
        (any::<(u8, u16)>(), nd_options()).prop_map(|((code, identifier), options)| {
            let code = PrRtAdvCode::from_number(code);
            Icmpv6Message::PrRtAdv(PrRtAdv { code, identifier, options })
        }),
        (address(), unicast(), nd_options()).prop_map(|(target, destination, options)| {
            Icmpv6Message::Redirect(Redirect { target, destination, options })
        }),
    ]
}

fn error_message() -> impl Strategy<Value = Icmpv6Message> {
    prop_oneof![
        (any::<u8>(), bytes(100)).prop_map(|(code, quoted)| {
            let code = UnreachableCode::from_number(code);
            Icmpv6Message::DestinationUnreachable(DestinationUnreachable { code, quoted })
        }),
        (any::<u32>(), bytes(100))
            .prop_map(|(mtu, quoted)| Icmpv6Message::PacketTooBig(PacketTooBig { mtu, quoted })),
        (any::<u8>(), bytes(100)).prop_map(|(code, quoted)| {
            Icmpv6Message::TimeExceeded(TimeExceeded { code: TimeExceededCode::from_number(code), quoted })
        }),
        (any::<(u8, u32)>(), bytes(100)).prop_map(|((code, pointer), quoted)| {
            let code = ParameterProblemCode::from_number(code);
            Icmpv6Message::ParameterProblem(ParameterProblem { code, pointer, quoted })
        }),
    ]
}

fn listener_message() -> impl Strategy<Value = Icmpv6Message> {
    let record = (any::<u8>(), address(), vec(address(), 0..4)).prop_map(|(number, group, sources)| {
        MulticastAddressRecord { record_type: RecordType::from_number(number), group, sources }
    });
    prop_oneof![
        address().prop_map(|group| Icmpv6Message::MulticastListenerReportV1(MulticastListener { group })),
        address().prop_map(|group| Icmpv6Message::MulticastListenerDone(MulticastListener { group })),
        vec(record, 0..4)
            .prop_map(|records| Icmpv6Message::MulticastListenerReport(MulticastListenerReport { records })),
    ]
}

fn other_message() -> impl Strategy<Value = Icmpv6Message> {
    let echo = || (any::<(u16, u16)>(), bytes(60));
    let echo_of = |((identifier, sequence), data)| Echo { identifier, sequence, data };
    prop_oneof![
        echo().prop_map(move |echo| Icmpv6Message::EchoRequest(echo_of(echo))),
        echo().prop_map(move |echo| Icmpv6Message::EchoReply(echo_of(echo))),
        any::<u16>().prop_map(|identifier| Icmpv6Message::HomeAgentAddressDiscoveryRequest(
            HomeAgentAddressDiscoveryRequest { identifier }
        )),
        (any::<u16>(), vec(address(), 0..5)).prop_map(|(identifier, home_agents)| {
            let reply = HomeAgentAddressDiscoveryReply { identifier, home_agents };
            Icmpv6Message::HomeAgentAddressDiscoveryReply(reply)
        }),
        (any::<u16>(), nd_options()).prop_map(|(identifier, options)| {
            Icmpv6Message::MobilePrefixSolicitation(MobilePrefixSolicitation { identifier, options })
        }),
        (any::<(u16, bool, bool)>(), nd_options()).prop_map(
            |((identifier, managed, other_configuration), options)| {
                Icmpv6Message::MobilePrefixAdvertisement(MobilePrefixAdvertisement {
                    identifier,
                    managed,
                    other_configuration,
                    options,
                })
            }
        ),
        (148..=u8::MAX, any::<(u8, [u8; 4])>(), bytes(60)).prop_map(
            |(kind, (code, rest_of_header), body)| {
                Icmpv6Message::Other(OtherMessage { kind, code, rest_of_header, body })
            }
        ),
    ]
}

fn icmpv6_message() -> impl Strategy<Value = Icmpv6Message> {
    prop_oneof![neighbor_message(), error_message(), listener_message(), other_message()]
}

prop_compose! {
    fn header()(
        (source, destination) in (address(), address()),
        (next_header, hop_limit, traffic_class) in any::<(u8, u8, u8)>(),
        flow_label in 0..=Ipv6Header::MAX_FLOW_LABEL,
    ) -> Ipv6Header {
        Ipv6Header { source, destination, next_header, hop_limit, traffic_class, flow_label, payload_len: 0 }
    }
}

prop_compose! {
    fn extensions()(
        router_alert in option::of(any::<u16>()),
        type_2_routing in option::of(home_address()),
        home_address in option::of(home_address()),
        encapsulation_limit in option::of(any::<u8>()),
    ) -> Extensions {
        Extensions { router_alert, type_2_routing, home_address, encapsulation_limit }
    }
}

/// An upper-layer protocol, of which this crate demands nothing.
fn protocol() -> impl Strategy<Value = u8> {
    150..=u8::MAX
}

fn packet(max: usize) -> impl Strategy<Value = (Ipv6Header, Extensions, u8, Vec<u8>)> {
    (header(), extensions(), protocol(), bytes(max))
}

fn emitted((header, extensions, protocol, payload): &(Ipv6Header, Extensions, u8, Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    Packet::emit(header, extensions, *protocol, payload, &mut bytes).expect("short enough");
    bytes
}

proptest! {
    #[test]
    fn icmpv6_messages((source, destination) in (address(), address()), message in icmpv6_message()) {
        let mut bytes = Vec::new();
        message.emit(source, destination, &mut bytes);
        prop_assert_eq!(Icmpv6Message::parse(source, destination, &bytes), Ok(message));
    }

    #[test]
    fn headers(header in header(), payload in bytes(60)) {
        let header = Ipv6Header { payload_len: payload.len() as u16, ..header };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.extend(&payload);
        prop_assert_eq!(Ipv6Header::parse(&bytes), Ok((header, &payload[..])));
    }

    #[test]
    fn packets(packet in packet(60)) {
        let bytes = emitted(&packet);
        let (header, extensions, protocol, payload) = &packet;
        let parsed = Packet::parse(&bytes, Understood::MOBILE_IPV6).unwrap();
        prop_assert_eq!(parsed.extensions, *extensions);
        prop_assert_eq!((parsed.protocol, parsed.payload), (*protocol, &payload[..]));
        prop_assert_eq!((parsed.header.source, parsed.header.flow_label), (header.source, header.flow_label));
        prop_assert_eq!(bytes.len(), 40 + usize::from(extensions.len()) + payload.len());
    }

    #[test]
    fn tunnels(
        packet in packet(60),
        (entry, exit) in (address(), address()),
        encapsulation_limit in option::of(any::<u8>()),
    ) {
        let (mut header, extensions, protocol, payload) = packet;
        header.hop_limit = header.hop_limit.max(1);
        let bytes = emitted(&(header, extensions, protocol, payload));
        let tunnel = Ipv6Tunnel { entry, exit, hop_limit: 64, encapsulation_limit };
        let Ok(wrapped) = tunnel.encapsulate(&bytes, Origin::Local) else {
            prop_assert_eq!(extensions.encapsulation_limit, Some(0));
            return Ok(());
        };
        let out = decapsulate_ipv6(&wrapped).unwrap();
        prop_assert_eq!(out.datagram, bytes);
        prop_assert_eq!((out.outer.source, out.outer.destination), (entry, exit));
        let left = extensions.encapsulation_limit.map(|limit| limit - 1).or(encapsulation_limit);
        prop_assert_eq!(out.extensions.encapsulation_limit, left);
    }

    #[test]
    fn fragments_in_any_order(
        packet in packet(900),
        mtu in 136_u16..400,
        order in any::<u64>(),
        repeated in any::<bool>(),
    ) {
        let bytes = emitted(&packet);
        let mut fragments = fragment(&bytes, mtu, 9).unwrap();
        prop_assert!(fragments.iter().all(|fragment| fragment.len() <= usize::from(mtu)));
        fragments.sort_by_key(|fragment| {
            let sum: u32 = fragment.iter().map(|byte| u32::from(*byte)).sum();
            order.rotate_left(sum).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        let mut reassembler = Reassembler::new(ReassemblyLimits::default());
        let (last, others) = fragments.split_last().unwrap();
        for fragment in others {
            for _ in 0..=u8::from(repeated) {
                prop_assert_eq!(reassembler.handle_fragment(Instant::ZERO, fragment), Ok(None));
            }
        }
        prop_assert_eq!(reassembler.handle_fragment(Instant::ZERO, last), Ok(Some(bytes)));
    }
}
