use super::*;
use crate::ipv6::{ALL_NODES, Extensions, FragmentHeader, Ipv6Header, Packet, solicited_node};
use crate::{SeqNumber, icmp::QuotedPorts};
use alloc::string::ToString;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 2);
const GLOBAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, 7);
const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);

fn emitted(message: &Icmpv6Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(ROUTER, ALL_NODES, &mut bytes);
    bytes
}

/// Reads `bytes` after their checksum has been made right.
fn parse(mut bytes: Vec<u8>) -> Result<Icmpv6Message, Error> {
    bytes[2..4].fill(0);
    let sum = crate::ipv6::upper_layer_checksum(ROUTER, ALL_NODES, protocol::ICMPV6, &bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    Icmpv6Message::parse(ROUTER, ALL_NODES, &bytes)
}

fn ip(source: Ipv6Addr, destination: Ipv6Addr) -> IpFields {
    IpFields { source, destination, hop_limit: 255 }
}

fn prefix() -> PrefixInformation {
    PrefixInformation {
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: true,
        valid_lifetime: PrefixLifetime::from_secs(0x0001_0203),
        preferred_lifetime: PrefixLifetime::INFINITE,
        prefix: GLOBAL,
    }
}

fn advertisement() -> RouterAdvertisement {
    RouterAdvertisement {
        cur_hop_limit: 64,
        managed: true,
        other_configuration: true,
        home_agent: true,
        preference: RouterPreference::Low,
        router_lifetime_secs: 1800,
        reachable_time: Milliseconds(30_000),
        retrans_timer: Milliseconds(1_000),
        options: alloc::vec![
            NdOption::SourceLinkLayerAddress(LinkLayerAddress([2, 0, 0, 0, 0, 1])),
            NdOption::PrefixInformation(prefix()),
            NdOption::Mtu(1500),
            NdOption::AdvertisementInterval(Milliseconds(70)),
            NdOption::HomeAgentInformation(HomeAgentInformation { preference: 9, lifetime_secs: 600 }),
        ],
    }
}

/// RFC 5568 section 6.1.1: Type, Code, Checksum, Subtype, Reserved, Identifier; the options of section 6.4.3.
#[test]
fn a_solicitation_for_proxy_advertisement_has_the_layout_of_the_rfc() {
    let access_point = HandoverLinkLayerAddress {
        role: LinkLayerRole::NewAccessPoint,
        address: LinkLayerAddress([2, 0, 0, 0, 0, 9]),
    };
    let message = Icmpv6Message::RtSolPr(RtSolPr {
        identifier: 0x0102,
        options: alloc::vec![NdOption::HandoverLinkLayerAddress(access_point)],
    });
    let bytes = emitted(&message);
    assert_eq!(bytes[..2], [154, 0]);
    assert_eq!(bytes[4..8], [2, 0, 1, 2]);
    assert_eq!(bytes[8..], [19, 2, 1, 2, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(parse(bytes), Ok(message));
}

#[test]
fn a_proxy_advertisement_has_the_layout_of_the_rfc() {
    let address = HandoverAddress::with_prefix_len(AddressRole::NewAccessRouter, GLOBAL, 64).unwrap();
    let message = Icmpv6Message::PrRtAdv(PrRtAdv {
        code: PrRtAdvCode::SomeNewRouters,
        identifier: 0x0102,
        options: alloc::vec![NdOption::HandoverAddress(address)],
    });
    let bytes = emitted(&message);
    assert_eq!(bytes[..2], [154, 3]);
    assert_eq!(bytes[4..8], [3, 0, 1, 2]);
    assert_eq!(bytes[8..16], [17, 3, 3, 64, 0, 0, 0, 0]);
    assert_eq!(bytes[16..], GLOBAL.octets());
    assert_eq!(parse(bytes), Ok(message.clone()));
    let valid = IpFields { source: ROUTER, destination: HOST, hop_limit: 255 };
    assert_eq!(message.check(&valid), Ok(()));
    assert!(message.check(&IpFields { hop_limit: 254, ..valid }).is_err());
    assert!(message.check(&IpFields { source: GLOBAL, ..valid }).is_err(), "it comes from the link");
}

/// RFC 5568 section 6.4.6: the Length is 1, or 3 with an address.
#[test]
fn an_advertisement_is_acknowledged_with_or_without_an_address() {
    let of = |address| {
        Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
            options: alloc::vec![NdOption::Naack(Naack { status: NaackStatus::UseSuppliedAddress, address })],
            ..RouterAdvertisement::default()
        })
    };
    for (address, units) in [(None, 1), (Some(GLOBAL), 3)] {
        let bytes = emitted(&of(address));
        assert_eq!(bytes[16..24], [20, units, 0, 2, 0, 0, 0, 0]);
        assert_eq!(parse(bytes), Ok(of(address)));
    }
    let mut bytes = emitted(&of(None));
    bytes[17] = 2;
    bytes.extend([0; 8]);
    let error = parse(bytes).unwrap_err();
    assert_eq!(error.to_string(), "neighbor discovery option Length at offset 17 is 2, not 1 or 3");
}

#[test]
fn a_link_layer_address_that_is_not_of_ieee_802_is_kept_unknown_and_a_wildcard_needs_none() {
    let first = |option: &[u8]| {
        let header = [154, 0, 0, 0, 2, 0, 0, 1];
        match parse([&header[..], option].concat()) {
            Ok(Icmpv6Message::RtSolPr(message)) => message.options[0].clone(),
            other => panic!("{other:?}"),
        }
    };
    let eui_64 = first(&[19, 2, 1, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0]);
    assert!(matches!(eui_64, NdOption::Unknown(option) if option.kind() == 19));
    let short = first(&[19, 1, 1, 1, 2, 3, 4, 5]);
    assert!(matches!(short, NdOption::Unknown(_)));
    let wildcard = first(&[19, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(wildcard, NdOption::HandoverLinkLayerAddress(HandoverLinkLayerAddress::WILDCARD));
}

/// HI and HAck of RFC 5268, subtypes 4 and 5, may be ignored (RFC 5568 section 1).
#[test]
fn other_subtypes_of_fast_handovers_are_not_interpreted() {
    let bytes = alloc::vec![154, 0, 0, 0, 4, 0, 0, 1];
    assert!(matches!(parse(bytes), Ok(Icmpv6Message::Other(other)) if other.kind == 154));
}

#[test]
fn what_a_filter_of_errors_sees_is_their_type_in_the_outermost_packet() {
    let header = Ipv6Header { source: GLOBAL, destination: HOME, ..Ipv6Header::default() };
    let packet = |extensions: &Extensions, protocol, kind: u8| {
        let mut bytes = Vec::new();
        Packet::emit(&header, extensions, protocol, &[kind, 0, 0, 0, 0, 0, 0, 0], &mut bytes).unwrap();
        bytes
    };
    let options = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    for kind in 0..=u8::MAX {
        for extensions in [&Extensions::NONE, &options] {
            let packet = packet(extensions, protocol::ICMPV6, kind);
            let expected = (kind < 128).then_some(&packet[packet.len() - 8..]);
            assert_eq!(error_in(&packet), expected, "{kind}");
        }
    }
    assert_eq!(error_in(&packet(&Extensions::NONE, protocol::IPV6, 2)), None);
    let whole = packet(&options, protocol::ICMPV6, 2);
    assert!((0..=whole.len() - 8).all(|len| error_in(&whole[..len]).is_none()), "cut short");
    // A later fragment does not show its type, and the first one does.
    for (offset, expected) in [(0, true), (8, false)] {
        let fragment = FragmentHeader { next_header: protocol::ICMPV6, offset, ..FragmentHeader::default() };
        let behind = [&fragment.to_bytes()[..], &[2, 0, 0, 0, 0, 0, 0, 0]].concat();
        let mut bytes = Vec::new();
        Packet::emit(&header, &Extensions::NONE, 44, &behind, &mut bytes).unwrap();
        assert_eq!(error_in(&bytes).is_some(), expected);
    }
}

#[test]
fn an_echo_request_has_the_layout_of_the_rfc() {
    let message =
        Icmpv6Message::EchoRequest(Echo { identifier: 0x0102, sequence: 3, data: alloc::vec![0xff, 0xfe] });
    let mut bytes = Vec::new();
    message.emit(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, &mut bytes);
    // Pseudo header 10 + 58, then 0x8000 + 0x0102 + 0x0003 + 0xfffe = 0x1_8147, folded 0x8148.
    assert_eq!(bytes, [128, 0, 0x7e, 0xb7, 1, 2, 0, 3, 0xff, 0xfe]);
    assert_eq!(Icmpv6Message::parse(Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, &bytes), Ok(message));
}

#[test]
fn the_checksum_covers_the_addresses() {
    let bytes = emitted(&Icmpv6Message::RouterSolicitation(RouterSolicitation::default()));
    assert!(Icmpv6Message::parse(ROUTER, ALL_NODES, &bytes).is_ok());
    assert!(matches!(
        Icmpv6Message::parse(HOST, ALL_NODES, &bytes),
        Err(Error::Checksum { what: "ICMPv6", offset: 2, .. })
    ));
}

#[test]
fn a_router_advertisement_has_the_layout_of_the_rfcs() {
    let message = Icmpv6Message::RouterAdvertisement(advertisement());
    let bytes = emitted(&message);
    assert_eq!(bytes[..2], [134, 0]);
    // M, O, H, preference 11, three reserved bits.
    assert_eq!(bytes[4..16], [64, 0xf8, 7, 8, 0, 0, 0x75, 0x30, 0, 0, 3, 0xe8]);
    assert_eq!(bytes[16..24], [1, 1, 2, 0, 0, 0, 0, 1]);
    assert_eq!(bytes[24..40], [3, 4, 64, 0xe0, 0, 1, 2, 3, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    assert_eq!(bytes[40..56], GLOBAL.octets());
    assert_eq!(bytes[56..64], [5, 1, 0, 0, 0, 0, 5, 0xdc]);
    assert_eq!(bytes[64..72], [7, 1, 0, 0, 0, 0, 0, 70]);
    assert_eq!(bytes[72..], [8, 1, 0, 0, 0, 9, 2, 0x58]);
    assert_eq!(parse(bytes), Ok(message));
}

/// The figure of RFC 5380 section 5.
#[test]
fn a_map_option_has_the_layout_of_the_rfc() {
    let map = MapOption {
        distance: 2,
        preference: 15,
        allocates_address: true,
        valid_lifetime: PrefixLifetime::from_secs(0x0001_0203),
        address: GLOBAL,
    };
    let plain = MapOption { distance: 15, preference: 0, allocates_address: false, ..map };
    let options = alloc::vec![NdOption::Map(map), NdOption::Map(plain)];
    let message = Icmpv6Message::RouterAdvertisement(RouterAdvertisement { options, ..advertisement() });
    let mut bytes = emitted(&message);
    assert_eq!(bytes[16..24], [23, 3, 0x2f, 0x80, 0, 1, 2, 3]);
    assert_eq!(bytes[24..40], GLOBAL.octets());
    assert_eq!(bytes[40..44], [23, 3, 0xf0, 0]);
    // The reserved bits are ignored.
    (bytes[19], bytes[43]) = (0xff, 0x7f);
    assert_eq!(parse(bytes.clone()), Ok(message.clone()));
    let Icmpv6Message::RouterAdvertisement(heard) = &message else { panic!("{message:?}") };
    assert_eq!(heard.maps().copied().collect::<Vec<_>>(), [map, plain]);
    bytes[41] = 2;
    let wrong =
        Error::Invalid { field: "neighbor discovery option Length", offset: 41, found: 2, expected: "3" };
    assert_eq!(parse(bytes), Err(wrong));
}

#[test]
fn a_home_agent_that_says_nothing_of_itself_has_the_defaults() {
    let mut message = advertisement();
    let said = HomeAgentInformation { preference: 9, lifetime_secs: 600 };
    assert_eq!(message.home_agent_information(), Some(said));
    message.options.pop();
    let default = HomeAgentInformation { preference: 0, lifetime_secs: 1800 };
    assert_eq!(message.home_agent_information(), Some(default));
    message.home_agent = false;
    assert_eq!(message.home_agent_information(), None);
    assert_eq!(message.router_addresses().collect::<Vec<_>>(), [GLOBAL]);
    assert_eq!((message.mtu(), message.advertisement_interval()), (Some(1500), Some(Milliseconds(70))));
}

#[test]
fn preferences_are_those_of_rfc_4191() {
    for (bits, expected) in [
        (0, RouterPreference::Medium),
        (1, RouterPreference::High),
        (2, RouterPreference::Medium),
        (3, RouterPreference::Low),
    ] {
        let mut bytes = emitted(&Icmpv6Message::RouterAdvertisement(RouterAdvertisement::default()));
        bytes[5] = bits << 3;
        let Ok(Icmpv6Message::RouterAdvertisement(message)) = parse(bytes) else { panic!() };
        assert_eq!(message.preference, expected);
    }
}

#[test]
fn neighbor_messages_have_the_layout_of_the_rfc() {
    let solicitation = Icmpv6Message::NeighborSolicitation(NeighborSolicitation {
        target: GLOBAL,
        options: alloc::vec![NdOption::Nonce(Nonce::new([1, 2, 3, 4, 5, 6]))],
    });
    let bytes = emitted(&solicitation);
    assert_eq!((&bytes[..2], &bytes[4..8]), (&[135, 0][..], &[0; 4][..]));
    assert_eq!(bytes[8..24], GLOBAL.octets());
    assert_eq!(bytes[24..], [14, 1, 1, 2, 3, 4, 5, 6]);
    assert_eq!(parse(bytes), Ok(solicitation));
    for (flags, router, solicited, override_flag) in
        [(0x80, true, false, false), (0x40, false, true, false), (0x20, false, false, true)]
    {
        let options = alloc::vec![NdOption::TargetLinkLayerAddress(LinkLayerAddress([2, 0, 0, 0, 0, 9]))];
        let target = GLOBAL;
        let message = Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
            router,
            solicited,
            override_flag,
            target,
            options,
        });
        let bytes = emitted(&message);
        assert_eq!((bytes[0], bytes[4], &bytes[24..26]), (136, flags, &[2, 1][..]));
        assert_eq!(parse(bytes), Ok(message));
    }
}

#[test]
fn a_redirect_has_the_layout_of_the_rfc() {
    let message = Icmpv6Message::Redirect(Redirect {
        target: HOST,
        destination: GLOBAL,
        options: alloc::vec![NdOption::RedirectedHeader(alloc::vec![0x60; 40])],
    });
    let bytes = emitted(&message);
    assert_eq!(bytes[0], 137);
    assert_eq!((&bytes[8..24], &bytes[24..40]), (&HOST.octets()[..], &GLOBAL.octets()[..]));
    assert_eq!(bytes[40..48], [4, 6, 0, 0, 0, 0, 0, 0]);
    assert_eq!(parse(bytes), Ok(message));
}

#[test]
fn home_agent_and_prefix_discovery_have_the_layout_of_rfc_6275() {
    let request = HomeAgentAddressDiscoveryRequest { identifier: 0x1234 };
    let message = Icmpv6Message::HomeAgentAddressDiscoveryRequest(request);
    let bytes = emitted(&message);
    assert_eq!((&bytes[..2], &bytes[4..]), (&[144, 0][..], &[0x12, 0x34, 0, 0][..]));
    assert_eq!(parse(bytes), Ok(message));

    let home_agents = alloc::vec![GLOBAL, HOME];
    let reply = HomeAgentAddressDiscoveryReply { identifier: 0x1234, home_agents };
    let message = Icmpv6Message::HomeAgentAddressDiscoveryReply(reply);
    let bytes = emitted(&message);
    assert_eq!((bytes[0], &bytes[24..]), (145, &HOME.octets()[..]));
    assert!(matches!(parse(bytes[..39].to_vec()), Err(Error::Truncated { offset: 24, found: 15, .. })));
    assert_eq!(parse(bytes), Ok(message));

    let solicitation = MobilePrefixSolicitation { identifier: 7, options: Vec::new() };
    let message = Icmpv6Message::MobilePrefixSolicitation(solicitation);
    let bytes = emitted(&message);
    assert_eq!((bytes[0], &bytes[4..]), (146, &[0, 7, 0, 0][..]));
    assert_eq!(parse(bytes), Ok(message));

    let advertisement = MobilePrefixAdvertisement {
        identifier: 7,
        managed: true,
        other_configuration: false,
        options: alloc::vec![NdOption::PrefixInformation(prefix())],
    };
    assert_eq!(advertisement.prefixes().collect::<Vec<_>>(), [&prefix()]);
    let message = Icmpv6Message::MobilePrefixAdvertisement(advertisement);
    let bytes = emitted(&message);
    assert_eq!((bytes[0], &bytes[4..8]), (147, &[0, 7, 0x80, 0][..]));
    assert_eq!(parse(bytes), Ok(message));
}

#[test]
fn reports_of_listeners_have_the_layout_of_their_rfcs() {
    let group = solicited_node(GLOBAL);
    let message = Icmpv6Message::MulticastListenerReport(MulticastListenerReport::join([group]));
    let bytes = emitted(&message);
    assert_eq!((&bytes[..2], &bytes[4..8]), (&[143, 0][..], &[0, 0, 0, 1][..]));
    assert_eq!((&bytes[8..12], &bytes[12..]), (&[4, 0, 0, 0][..], &group.octets()[..]));
    assert_eq!(parse(bytes.clone()), Ok(message));
    // A record with a source and a word of auxiliary data.
    let mut with_more = bytes;
    with_more[9..12].copy_from_slice(&[1, 0, 1]);
    with_more.extend(HOST.octets());
    assert!(matches!(parse(with_more.clone()), Err(Error::Truncated { offset: 8, needed: 40, .. })));
    with_more.extend([0xaa; 4]);
    let Ok(Icmpv6Message::MulticastListenerReport(report)) = parse(with_more) else { panic!() };
    assert_eq!(report.records[0].sources, [HOST]);

    for (kind, message) in [
        (131, Icmpv6Message::MulticastListenerReportV1(MulticastListener { group })),
        (132, Icmpv6Message::MulticastListenerDone(MulticastListener { group })),
    ] {
        let bytes = emitted(&message);
        assert_eq!((bytes[0], &bytes[8..]), (kind, &group.octets()[..]));
        assert_eq!(parse(bytes), Ok(message));
    }
}

#[test]
fn errors_have_the_layout_of_the_rfc() {
    let quoted = alloc::vec![0x60; 48];
    for (message, start) in [
        (
            Icmpv6Message::DestinationUnreachable(DestinationUnreachable {
                code: UnreachableCode::Port,
                quoted: quoted.clone(),
            }),
            [1, 4, 0, 0, 0, 0],
        ),
        (Icmpv6Message::PacketTooBig(PacketTooBig { mtu: 1280, quoted: quoted.clone() }), [2, 0, 0, 0, 5, 0]),
        (
            Icmpv6Message::TimeExceeded(TimeExceeded {
                code: TimeExceededCode::Reassembly,
                quoted: quoted.clone(),
            }),
            [3, 1, 0, 0, 0, 0],
        ),
        (
            Icmpv6Message::ParameterProblem(ParameterProblem {
                code: ParameterProblemCode::Option,
                pointer: 46,
                quoted: quoted.clone(),
            }),
            [4, 2, 0, 0, 0, 46],
        ),
    ] {
        let bytes = emitted(&message);
        assert_eq!((&bytes[..2], &bytes[4..8]), (&start[..2], &start[2..]));
        assert_eq!(bytes[8..], quoted);
        assert_eq!(parse(bytes), Ok(message));
    }
}

#[test]
fn a_code_that_neighbor_discovery_does_not_have_is_refused() {
    for message in [
        Icmpv6Message::RouterSolicitation(RouterSolicitation::default()),
        Icmpv6Message::RouterAdvertisement(RouterAdvertisement::default()),
        Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target: HOST, options: Vec::new() }),
        Icmpv6Message::HomeAgentAddressDiscoveryRequest(HomeAgentAddressDiscoveryRequest::default()),
        Icmpv6Message::MobilePrefixSolicitation(MobilePrefixSolicitation::default()),
    ] {
        let mut bytes = emitted(&message);
        bytes[1] = 1;
        assert!(matches!(parse(bytes), Err(Error::Invalid { offset: 1, found: 1, expected: "0", .. })));
    }
}

#[test]
fn a_message_shorter_than_its_type_demands_is_refused() {
    let minimum = |message: Icmpv6Message, len: usize| {
        let bytes = emitted(&message);
        assert_eq!(bytes.len(), len, "without options");
        for short in 8..len {
            assert!(matches!(parse(bytes[..short].to_vec()), Err(Error::Truncated { .. })), "{short}");
        }
    };
    let (target, options) = (HOST, Vec::new());
    minimum(Icmpv6Message::RouterAdvertisement(RouterAdvertisement::default()), 16);
    minimum(
        Icmpv6Message::NeighborSolicitation(NeighborSolicitation { target, options: options.clone() }),
        24,
    );
    minimum(
        Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
            router: false,
            solicited: false,
            override_flag: false,
            target,
            options: options.clone(),
        }),
        24,
    );
    minimum(Icmpv6Message::Redirect(Redirect { target, destination: GLOBAL, options }), 40);
    assert!(matches!(
        Icmpv6Message::parse(ROUTER, ALL_NODES, &[133, 0, 0, 0, 0, 0, 0]),
        Err(Error::Truncated { what: "ICMPv6 message", needed: 8, found: 7, .. })
    ));
}

#[test]
fn options_of_length_zero_or_beyond_the_end_condemn_the_message_and_unknown_ones_do_not() {
    let with = |options: &[u8]| {
        let mut bytes = emitted(&Icmpv6Message::RouterSolicitation(RouterSolicitation::default()));
        bytes.extend(options);
        parse(bytes)
    };
    assert_eq!(
        with(&[200, 0, 0, 0, 0, 0, 0, 0]),
        Err(Error::Invalid {
            field: "neighbor discovery option Length",
            offset: 9,
            found: 0,
            expected: "1 or more"
        })
    );
    assert!(matches!(with(&[200, 2, 0, 0, 0, 0, 0, 0]), Err(Error::Truncated { offset: 8, needed: 16, .. })));
    assert!(matches!(with(&[200]), Err(Error::Truncated { offset: 8, needed: 8, found: 1, .. })));
    let unknown = UnknownOption::new(200, &[7; 6]).unwrap();
    let Ok(Icmpv6Message::RouterSolicitation(message)) = with(&[200, 1, 7, 7, 7, 7, 7, 7]) else { panic!() };
    assert_eq!(message.options, [NdOption::Unknown(unknown)]);
    assert_eq!(UnknownOption::new(200, &[7; 5]), None);
    // A link-layer address of another kind of link is no address here.
    let mut longer = [0; 16];
    longer[..2].copy_from_slice(&[1, 2]);
    let Ok(Icmpv6Message::RouterSolicitation(message)) = with(&longer) else { panic!() };
    assert_eq!(source_link_layer_address(&message.options), None);
    assert!(matches!(message.options[..], [NdOption::Unknown(_)]));
    // The options that have one length have no other.
    for kind in [3, 5, 7, 8] {
        let mut option = [0; 16];
        option[..2].copy_from_slice(&[kind, 2]);
        assert!(matches!(with(&option), Err(Error::Invalid { offset: 9, found: 2, .. })), "{kind}");
    }
    let mut prefix = [0; 32];
    prefix[..3].copy_from_slice(&[3, 4, 129]);
    assert!(matches!(with(&prefix), Err(Error::Invalid { field: "Prefix Length", offset: 10, .. })));
}

#[test]
fn a_multicast_target_or_redirected_destination_is_refused() {
    let mut bytes = emitted(&Icmpv6Message::NeighborSolicitation(NeighborSolicitation {
        target: HOST,
        options: Vec::new(),
    }));
    bytes[8] = 0xff;
    assert!(matches!(parse(bytes), Err(Error::Invalid { field: "Target Address", offset: 8, .. })));
    let redirect = Redirect { target: HOST, destination: GLOBAL, options: Vec::new() };
    let mut bytes = emitted(&Icmpv6Message::Redirect(redirect));
    bytes[24] = 0xff;
    assert!(matches!(parse(bytes), Err(Error::Invalid { field: "Redirect Destination Address", .. })));
}

#[test]
fn neighbor_discovery_from_another_link_is_not_valid() {
    let solicitation = NeighborSolicitation { target: GLOBAL, options: Vec::new() };
    for message in [
        Icmpv6Message::RouterSolicitation(RouterSolicitation::default()),
        Icmpv6Message::RouterAdvertisement(RouterAdvertisement::default()),
        Icmpv6Message::NeighborSolicitation(solicitation),
        Icmpv6Message::NeighborAdvertisement(NeighborAdvertisement {
            router: false,
            solicited: false,
            override_flag: false,
            target: GLOBAL,
            options: Vec::new(),
        }),
        Icmpv6Message::Redirect(Redirect { target: HOST, destination: GLOBAL, options: Vec::new() }),
    ] {
        assert_eq!(message.check(&ip(ROUTER, HOST)), Ok(()));
        let forwarded = IpFields { hop_limit: 254, ..ip(ROUTER, HOST) };
        assert_eq!(message.check(&forwarded), Err(NotValid::HopLimit { found: 254 }));
    }
    let echo = Icmpv6Message::EchoRequest(Echo::default());
    assert_eq!(echo.check(&IpFields { hop_limit: 3, ..ip(GLOBAL, HOST) }), Ok(()));
}

#[test]
fn routers_speak_from_link_local_addresses() {
    let not = Err(NotValid::SourceNotLinkLocal { found: GLOBAL });
    assert_eq!(RouterAdvertisement::default().check(&ip(GLOBAL, HOST)), not);
    let redirect = Redirect { target: HOST, destination: GLOBAL, options: Vec::new() };
    assert_eq!(redirect.check(&ip(GLOBAL, HOST)), not);
}

#[test]
fn who_has_no_address_yet_tells_no_link_layer_address_and_asks_one_group() {
    let options = alloc::vec![NdOption::SourceLinkLayerAddress(LinkLayerAddress([2; 6]))];
    let nobody = Ipv6Addr::UNSPECIFIED;
    let group = solicited_node(GLOBAL);
    let of_nobody = Err(NotValid::LinkLayerAddressOfNobody);
    assert_eq!(RouterSolicitation { options: options.clone() }.check(&ip(nobody, ALL_NODES)), of_nobody);
    assert_eq!(RouterSolicitation { options: options.clone() }.check(&ip(HOST, ALL_NODES)), Ok(()));
    let solicitation = NeighborSolicitation { target: GLOBAL, options };
    assert_eq!(solicitation.check(&ip(nobody, group)), of_nobody);
    assert_eq!(solicitation.check(&ip(HOST, group)), Ok(()));
    let bare = NeighborSolicitation { target: GLOBAL, options: Vec::new() };
    assert_eq!(bare.check(&ip(nobody, group)), Ok(()));
    assert_eq!(bare.check(&ip(nobody, GLOBAL)), Err(NotValid::NotSolicitedNode { found: GLOBAL }));
}

#[test]
fn an_answer_to_many_is_no_answer() {
    let mut message = NeighborAdvertisement {
        router: false,
        solicited: true,
        override_flag: true,
        target: GLOBAL,
        options: Vec::new(),
    };
    assert_eq!(message.check(&ip(HOST, ALL_NODES)), Err(NotValid::SolicitedToMany { found: ALL_NODES }));
    message.solicited = false;
    assert_eq!(message.check(&ip(HOST, ALL_NODES)), Ok(()));
}

#[test]
fn a_redirect_leads_to_a_router_or_the_destination_itself() {
    let redirect = |target| Redirect { target, destination: GLOBAL, options: Vec::new() };
    assert_eq!(redirect(HOST).check(&ip(ROUTER, HOST)), Ok(()));
    assert_eq!(redirect(GLOBAL).check(&ip(ROUTER, HOST)), Ok(()));
    let wrong = NotValid::RedirectTarget { target: HOME, destination: GLOBAL };
    assert_eq!(redirect(HOME).check(&ip(ROUTER, HOST)), Err(wrong));
}

fn packet(extensions: &Extensions, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let header = Ipv6Header { source: GLOBAL, destination: HOME, ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    Packet::emit(&header, extensions, protocol, payload, &mut bytes).unwrap();
    bytes
}

#[test]
fn the_header_and_eight_bytes_tell_the_flow_and_the_segment() {
    let header = Ipv6Header {
        source: GLOBAL,
        destination: HOME,
        next_header: protocol::TCP,
        payload_len: 1_240,
        ..Ipv6Header::default()
    };
    let bytes = quote_segment(&header, (80, 0x1234), SeqNumber(0x0102_0304));
    assert_eq!(bytes.len(), 48);
    let quoted = QuotedPacket::parse(&bytes).unwrap();
    assert_eq!((quoted.header, quoted.payload), (header, &[0, 80, 0x12, 0x34, 1, 2, 3, 4][..]));
    let ports = QuotedPorts { source_port: 80, destination_port: 0x1234, seq: Some(SeqNumber(0x0102_0304)) };
    assert_eq!(quoted.ports(), Some(ports));
    assert!(error_is_allowed(&bytes, false));
}

#[test]
fn a_quotation_tells_the_flow_behind_what_mobile_ipv6_adds() {
    let tcp = [0, 80, 0x12, 0x34, 1, 2, 3, 4];
    let other = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 5);
    let extensions = Extensions { type_2_routing: Some(other), home_address: Some(HOME), ..Extensions::NONE };
    let bytes = packet(&extensions, protocol::TCP, &tcp);
    let quoted = QuotedPacket::parse(&bytes).unwrap();
    assert_eq!((quoted.source, quoted.destination), (HOME, other));
    assert_eq!(quoted.header.source, GLOBAL);
    let ports = QuotedPorts { source_port: 80, destination_port: 0x1234, seq: Some(SeqNumber(0x0102_0304)) };
    assert_eq!(quoted.ports(), Some(ports));
    assert_eq!(quoted.payload_offset, bytes.len() - 8);
    // One byte less, and another protocol, tell no ports.
    assert_eq!(QuotedPacket::parse(&bytes[..bytes.len() - 1]).unwrap().ports(), None);
    let bytes = packet(&extensions, protocol::ICMPV6, &tcp);
    assert_eq!(QuotedPacket::parse(&bytes).unwrap().ports(), None);
    // Headers that are cut short tell nothing.
    assert!(matches!(QuotedPacket::parse(&bytes[..70]), Err(Error::Truncated { .. })));
}

#[test]
fn a_later_fragment_tells_no_ports() {
    let whole = packet(&Extensions::NONE, protocol::UDP, &[7; 200]);
    let fragments = crate::ipv6::fragment(&whole, 150, 1).unwrap();
    let ports = |bytes: &[u8]| QuotedPacket::parse(bytes).unwrap().ports();
    assert!(ports(&fragments[0]).is_some());
    assert_eq!(ports(&fragments[1]), None);
}

#[test]
fn a_quotation_keeps_the_error_within_1280_bytes() {
    assert_eq!(quote(&[7; 2000]).len(), 1280 - 48);
    assert_eq!(quote(&[7; 90]), [7; 90]);
}

#[test]
fn about_some_packets_no_error_is_sent() {
    let allowed = |bytes: &[u8]| error_is_allowed(bytes, false);
    let udp = packet(&Extensions::NONE, protocol::UDP, &[0; 8]);
    assert!(allowed(&udp));
    for (kind, expected) in [(1, false), (4, false), (127, false), (128, true), (135, true), (137, false)] {
        assert_eq!(allowed(&packet(&Extensions::NONE, protocol::ICMPV6, &[kind; 8])), expected, "{kind}");
    }
    // Also where the error stands behind extension headers, and where its type is not to be seen.
    let extensions = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    assert!(!allowed(&packet(&extensions, protocol::ICMPV6, &[1; 8])));
    assert!(!allowed(&packet(&Extensions::NONE, protocol::ICMPV6, &[])));
    for source in [Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST, ALL_NODES] {
        let mut bytes = udp.clone();
        bytes[8..24].copy_from_slice(&source.octets());
        assert!(!allowed(&bytes) && !error_is_allowed(&bytes, true), "{source}");
    }
    let mut bytes = udp;
    bytes[24..40].copy_from_slice(&ALL_NODES.octets());
    assert!(!allowed(&bytes) && error_is_allowed(&bytes, true));
    assert!(ParameterProblemCode::Option.even_to_many() && !ParameterProblemCode::NextHeader.even_to_many());
    assert!(!allowed(b"no packet"));
}

#[test]
fn a_message_of_another_type_is_kept_whole() {
    let message = Icmpv6Message::Other(OtherMessage {
        kind: 155,
        code: 2,
        rest_of_header: [3, 0, 0, 1],
        body: alloc::vec![1, 2, 3],
    });
    assert_eq!(parse(emitted(&message)), Ok(message));
}

#[test]
fn emitting_appends() {
    let mut bytes = alloc::vec![1, 2, 3];
    Icmpv6Message::RouterSolicitation(RouterSolicitation::default()).emit(ROUTER, ALL_NODES, &mut bytes);
    assert_eq!((&bytes[..5], bytes.len()), (&[1, 2, 3, 133, 0][..], 11));
}
