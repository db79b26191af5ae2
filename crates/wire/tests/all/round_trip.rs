//! What is emitted is read as it was: for every message, every extension, every header.

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{DataRate, Instant};
use careof_wire::dhcp::{DhcpMessage, HardwareAddress, LeaseTime, MessageType, UnknownOption};
use careof_wire::icmp::{
    AdvertisementExtension, AgentFlags, DestinationUnreachable, Echo, IcmpMessage,
    MobilityAgentAdvertisement, OtherMessage, RouterAddress, RouterAdvertisement, RouterSolicitation,
    TimeExceeded, TimeExceededCode, UnreachableCode,
};
use careof_wire::ipv4::{Ipv4Header, Reassembler, ReassemblyLimits, fragment};
use careof_wire::mip4::{
    Algorithm, AuthenticationExtension, AuthenticationKind, BindingAcknowledge, BindingRequest,
    BindingUpdate, BindingWarning, Extension, Identification, Lifetime, Message, PathCounts, PathProbe,
    PathProbeKind, PathReport, PreviousForeignAgent, ReceivedData, ReceivedFlow, RegistrationReply,
    RegistrationRequest, ReplyCode, RequestFlags, Spi, VendorExtension, append_authentication,
    verify_authentication,
};
use careof_wire::tcp_edit::{self, ChecksumField};
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel, decapsulate};
use careof_wire::udp::UdpHeader;
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber, Timestamps, UnknownExtension};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=max)
}

fn unknown_extension(kinds: std::ops::RangeInclusive<u8>) -> impl Strategy<Value = UnknownExtension> {
    (kinds, bytes(255)).prop_map(|(kind, data)| UnknownExtension::new(kind, &data).expect("a skippable type"))
}

fn authentication_kind() -> impl Strategy<Value = AuthenticationKind> {
    prop_oneof![
        Just(AuthenticationKind::MobileHome),
        Just(AuthenticationKind::MobileForeign),
        Just(AuthenticationKind::ForeignHome),
        Just(AuthenticationKind::RouteOptimization),
    ]
}

fn vendor_extension() -> impl Strategy<Value = VendorExtension> {
    (any::<u32>(), any::<u16>(), bytes(VendorExtension::MAX_VALUE_LEN))
        .prop_map(|(vendor, kind, value)| VendorExtension::new(vendor, kind, &value).expect("short enough"))
}

prop_compose! {
    /// In the units of the wire.
    fn path_report()(
        (downlink, uplink, round_trip) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        old_path_lost in any::<Option<bool>>(),
        repeated in any::<u8>(),
    ) -> PathReport {
        let rate = |units: u32| DataRate::from_bits_per_second(u64::from(units) * 100);
        PathReport {
            downlink: downlink.map(rate),
            uplink: uplink.map(rate),
            round_trip: round_trip.map(|micros| Duration::from_micros(micros.into())),
            old_path_lost,
            repeated_for: Duration::from_millis(10) * repeated.into(),
        }
    }
}

prop_compose! {
    fn received_flow()(
        (peer, peer_port) in (address().prop_map(std::net::IpAddr::from), any::<u16>()),
        mobile_port in any::<u16>(),
        ack in any::<u32>().prop_map(SeqNumber),
        echo in any::<Option<u32>>(),
    ) -> ReceivedFlow {
        ReceivedFlow { peer, peer_port, mobile_port, ack, echo: echo.filter(|echo| *echo != 0) }
    }
}

prop_compose! {
    fn previous_foreign_agent()(
        lifetime in any::<u16>().prop_map(Lifetime::from_secs),
        (agent, care_of_address) in (address(), address()),
        spi in any::<u32>().prop_map(Spi),
        authenticator in bytes(PreviousForeignAgent::MAX_AUTHENTICATOR_LEN),
    ) -> PreviousForeignAgent {
        PreviousForeignAgent::new(lifetime, agent, care_of_address, spi, &authenticator).expect("short enough")
    }
}

fn extension() -> impl Strategy<Value = Extension> {
    let authentication = (
        authentication_kind(),
        any::<u32>().prop_map(Spi),
        bytes(AuthenticationExtension::MAX_AUTHENTICATOR_LEN),
    );
    prop_oneof![
        authentication.prop_map(|(kind, spi, authenticator)| Extension::Authentication(
            AuthenticationExtension::new(kind, spi, &authenticator).expect("short enough")
        )),
        Just(Extension::OneBytePadding),
        Just(Extension::EncapsulatingDeliveryStyle),
        previous_foreign_agent().prop_map(Extension::PreviousForeignAgent),
        vendor_extension().prop_map(Extension::Vendor),
        path_report().prop_map(|report| report.extension()),
        received_flow().prop_map(|flow| ReceivedData::from_iter([flow]).extension().expect("one flow")),
        // 130 is the encapsulating delivery style, 134 a vendor's extension.
        prop_oneof![unknown_extension(128..=129), unknown_extension(131..=133), unknown_extension(135..=255)]
            .prop_map(Extension::Unknown),
    ]
}

prop_compose! {
    fn request()(
        flags in any::<u8>().prop_map(RequestFlags),
        lifetime in any::<u16>().prop_map(Lifetime::from_secs),
        (home_address, home_agent, care_of_address) in (address(), address(), address()),
        identification in any::<u64>().prop_map(Identification),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::Request(RegistrationRequest {
            flags, lifetime, home_address, home_agent, care_of_address, identification, extensions,
        })
    }
}

prop_compose! {
    fn reply()(
        code in any::<u8>().prop_map(ReplyCode::from_number),
        lifetime in any::<u16>().prop_map(Lifetime::from_secs),
        (home_address, home_agent) in (address(), address()),
        identification in any::<u64>().prop_map(Identification),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::Reply(RegistrationReply {
            code, lifetime, home_address, home_agent, identification, extensions,
        })
    }
}

prop_compose! {
    fn binding_warning()(
        (home_address, target) in (address(), address()),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::BindingWarning(BindingWarning { home_address, target, extensions })
    }
}

prop_compose! {
    fn binding_request()(
        home_address in address(),
        identification in any::<u64>().prop_map(Identification),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::BindingRequest(BindingRequest { home_address, identification, extensions })
    }
}

prop_compose! {
    fn binding_update()(
        (acknowledge, minimal_encapsulation, gre) in any::<(bool, bool, bool)>(),
        lifetime in any::<u16>().prop_map(Lifetime::from_secs),
        (home_address, care_of_address) in (address(), address()),
        identification in option::of(any::<u64>().prop_map(Identification)),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::BindingUpdate(BindingUpdate {
            acknowledge, minimal_encapsulation, gre, lifetime, home_address, care_of_address, identification, extensions,
        })
    }
}

prop_compose! {
    fn binding_acknowledge()(
        negative in any::<bool>(),
        home_address in address(),
        identification in any::<u64>().prop_map(Identification),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        Message::BindingAcknowledge(BindingAcknowledge { negative, home_address, identification, extensions })
    }
}

prop_compose! {
    fn path_probe()(
        answers in any::<bool>(),
        home_address in address(),
        (sequence, nonce) in any::<(u32, u64)>(),
        counts in option::of(any::<(u32, u32, u64, u64)>()),
        extensions in vec(extension(), 0..5),
    ) -> Message {
        let counts = counts.map(|(packets_sent, packets_received, bytes_sent, bytes_received)| PathCounts {
            packets_sent, packets_received, bytes_sent, bytes_received,
        });
        let kind = if answers { PathProbeKind::Answer } else { PathProbeKind::Probe };
        Message::PathProbe(PathProbe { kind, home_address, sequence, nonce, counts, extensions })
    }
}

/// Any message to port 434.
fn message() -> impl Strategy<Value = Message> {
    prop_oneof![
        request(),
        reply(),
        binding_warning(),
        binding_request(),
        binding_update(),
        binding_acknowledge(),
        path_probe(),
    ]
}

fn hardware_address() -> impl Strategy<Value = HardwareAddress> {
    (any::<u8>(), bytes(HardwareAddress::MAX_LEN))
        .prop_map(|(kind, bytes)| HardwareAddress::new(kind, &bytes).expect("short enough"))
}

fn unknown_options() -> impl Strategy<Value = Vec<UnknownOption>> {
    vec((any::<u8>(), bytes(600)), 0..4).prop_map(|options| {
        let mut options: Vec<_> =
            options.iter().filter_map(|(code, data)| UnknownOption::new(*code, data)).collect();
        options.sort_by_key(UnknownOption::code);
        options.dedup_by_key(|option| option.code());
        options
    })
}

prop_compose! {
    fn dhcp_message()(
        kind in prop::sample::select(MessageType::ALL.to_vec()),
        (hops, xid, secs, broadcast) in any::<(u8, u32, u16, bool)>(),
        (ciaddr, yiaddr, siaddr, giaddr) in (address(), address(), address(), address()),
        chaddr in hardware_address(),
        (prefix_length, max_message_size) in (option::of(0_u8..=32), option::of(576_u16..)),
        routers in vec(address(), 0..70),
        (requested_address, server_identifier) in (option::of(address()), option::of(address())),
        times in any::<[Option<u32>; 3]>(),
        parameter_requests in bytes(300),
        client_identifier in option::of(vec(any::<u8>(), 2..300)),
        others in unknown_options(),
    ) -> DhcpMessage {
        let [lease_time, renewal_time, rebinding_time] = times.map(|time| time.map(LeaseTime::from_secs));
        DhcpMessage {
            kind, hops, xid, secs, broadcast, ciaddr, yiaddr, siaddr, giaddr, chaddr, prefix_length, routers,
            requested_address, lease_time, server_identifier, parameter_requests, max_message_size, renewal_time,
            rebinding_time, client_identifier, others,
        }
    }
}

prop_compose! {
    fn mobility_agent()(
        sequence in any::<u16>(),
        registration_lifetime in any::<u16>().prop_map(Lifetime::from_secs),
        flags in any::<u16>().prop_map(AgentFlags),
        care_of_addresses in vec(address(), 0..=MobilityAgentAdvertisement::MAX_CARE_OF_ADDRESSES),
    ) -> MobilityAgentAdvertisement {
        MobilityAgentAdvertisement { sequence, registration_lifetime, flags, care_of_addresses }
    }
}

fn advertisement_extension() -> impl Strategy<Value = AdvertisementExtension> {
    prop_oneof![
        Just(AdvertisementExtension::OneBytePadding),
        mobility_agent().prop_map(AdvertisementExtension::MobilityAgent),
        vec(0_u8..=32, 0..=255).prop_map(AdvertisementExtension::PrefixLengths),
        unknown_extension(128..=255).prop_map(AdvertisementExtension::Unknown),
    ]
}

prop_compose! {
    fn advertisement()(
        no_common_traffic in any::<bool>(),
        lifetime_secs in any::<u16>(),
        routers in vec((address(), any::<i32>()), 0..=RouterAdvertisement::MAX_ROUTERS),
        extensions in vec(advertisement_extension(), 0..5),
    ) -> RouterAdvertisement {
        let routers =
            routers.into_iter().map(|(address, preference)| RouterAddress { address, preference }).collect();
        RouterAdvertisement { no_common_traffic, lifetime_secs, routers, extensions }
    }
}

fn echo() -> impl Strategy<Value = Echo> {
    (any::<u16>(), any::<u16>(), bytes(64)).prop_map(|(identifier, sequence, data)| Echo {
        identifier,
        sequence,
        data,
    })
}

fn icmp_message() -> impl Strategy<Value = IcmpMessage> {
    let unreachable = (any::<u8>(), any::<u16>(), bytes(64)).prop_map(|(code, next_hop_mtu, quoted)| {
        DestinationUnreachable { code: UnreachableCode::from_number(code), next_hop_mtu, quoted }
    });
    let time_exceeded = (any::<u8>(), bytes(64))
        .prop_map(|(code, quoted)| TimeExceeded { code: TimeExceededCode::from_number(code), quoted });
    // Those of RFC 792 that have no variant of their own and no fixed length, and one that nobody knows.
    let kind = prop_oneof![Just(4), Just(5), Just(12), Just(99)];
    let other = (kind, any::<u8>(), any::<[u8; 4]>(), bytes(64))
        .prop_map(|(kind, code, rest_of_header, body)| OtherMessage { kind, code, rest_of_header, body });
    prop_oneof![
        echo().prop_map(IcmpMessage::EchoRequest),
        echo().prop_map(IcmpMessage::EchoReply),
        unreachable.prop_map(IcmpMessage::DestinationUnreachable),
        time_exceeded.prop_map(IcmpMessage::TimeExceeded),
        advertisement().prop_map(IcmpMessage::RouterAdvertisement),
        Just(IcmpMessage::RouterSolicitation(RouterSolicitation)),
        other.prop_map(IcmpMessage::Other),
    ]
}

prop_compose! {
    /// A header of any kind, for a payload of `max` bytes at most.
    fn datagram(max: usize)(
        (source, destination) in (address(), address()),
        (protocol, ttl, tos) in any::<(u8, u8, u8)>(),
        identification in any::<u16>(),
        (dont_fragment, more_fragments) in any::<(bool, bool)>(),
        units in 0_u16..8192,
        payload in bytes(max),
    ) -> (Ipv4Header, Vec<u8>) {
        let payload_len = payload.len() as u16;
        (Ipv4Header {
            source, destination, protocol, ttl, tos, identification, dont_fragment, more_fragments,
            fragment_offset: units * 8, payload_len,
        }, payload)
    }
}

fn emitted((header, payload): &(Ipv4Header, Vec<u8>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    bytes.extend(payload);
    bytes
}

prop_compose! {
    fn segment()(
        (source_port, destination_port, window) in any::<(u16, u16, u16)>(),
        (seq, ack) in any::<(u32, u32)>(),
        flags in any::<u8>().prop_map(Flags),
        (mss, window_scale, sack_permitted) in any::<(Option<u16>, Option<u8>, bool)>(),
        timestamps in option::of(any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo })),
        blocks in vec(any::<(u32, u32)>(), 0..=SackBlocks::CAPACITY),
        payload in bytes(64),
    ) -> (Segment, Vec<u8>) {
        let payload_len = payload.len() as u16;
        let mut segment = Segment {
            source_port, destination_port, seq: SeqNumber(seq), ack: SeqNumber(ack), flags, window, mss,
            window_scale, sack_permitted, timestamps, sack: SackBlocks::EMPTY, payload_len,
        };
        for (left, right) in blocks {
            let before = segment.sack;
            segment.sack.push(SeqNumber(left), SeqNumber(right));
            if segment.sack_blocks_that_fit() != segment.sack.as_slice() {
                segment.sack = before;
                break;
            }
        }
        (segment, payload)
    }
}

fn encapsulation() -> impl Strategy<Value = Encapsulation> {
    prop_oneof![
        Just(Encapsulation::IpInIp),
        Just(Encapsulation::Minimal),
        any::<(Option<u32>, Option<u32>)>().prop_map(|(key, sequence)| Encapsulation::Gre { key, sequence }),
    ]
}

proptest! {
    /// A header changed in place is the one that would have been made so, checksum and all.
    #[test]
    fn changed_tcp_headers(
        (segment, payload) in segment(),
        (source, destination) in (address(), address()),
        (window, ack, without_sack) in any::<(Option<u16>, Option<u32>, bool)>(),
    ) {
        let mut bytes = Vec::new();
        segment.emit(source, destination, &payload, &mut bytes);
        let mut wanted = segment;
        if let Some(window) = window {
            prop_assert!(tcp_edit::set_window(&mut bytes, window, ChecksumField::Complete));
            wanted.window = window;
        }
        if let Some(ack) = ack {
            prop_assert!(tcp_edit::set_ack(&mut bytes, SeqNumber(ack), ChecksumField::Complete));
            wanted.ack = SeqNumber(ack);
        }
        let mut expected = Vec::new();
        wanted.emit(source, destination, &payload, &mut expected);
        prop_assert_eq!(&bytes, &expected);
        if without_sack {
            prop_assert_eq!(tcp_edit::remove_sack(&mut bytes, ChecksumField::Complete), !segment.sack.is_empty());
            wanted.sack = SackBlocks::EMPTY;
            prop_assert_eq!(Segment::parse(source, destination, &bytes), Ok((wanted, &payload[..])));
            prop_assert_eq!(bytes.len(), expected.len());
        }
    }

    /// Whatever the bytes are, a change stays within the header, and a checksum that is wrong stays as wrong as it was.
    #[test]
    fn changes_of_bytes_that_are_no_header(mut bytes in bytes(80), window in any::<u16>(), ack in any::<u32>()) {
        let total = |bytes: &[u8]| {
            let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
            words.sum::<u32>() % 0xffff
        };
        let before = bytes.clone();
        tcp_edit::set_window(&mut bytes, window, ChecksumField::Complete);
        tcp_edit::set_ack(&mut bytes, SeqNumber(ack), ChecksumField::Complete);
        tcp_edit::remove_sack(&mut bytes, ChecksumField::Complete);
        prop_assert_eq!(bytes.len(), before.len());
        prop_assert_eq!(total(&bytes), total(&before));
        let header = before.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4).max(20);
        prop_assert_eq!(bytes.get(header..), before.get(header..));
    }
}

proptest! {
    #[test]
    fn registration_messages(message in message()) {
        let bytes = message.emit();
        prop_assert_eq!(Message::parse(&bytes), Ok(message.clone()));
        for placed in message.placed_extensions() {
            let mut extension = Vec::new();
            placed.extension.emit(&mut extension);
            prop_assert_eq!(&bytes[placed.offset..placed.end()], &extension);
        }
    }

    #[test]
    fn dhcp_messages(message in dhcp_message()) {
        prop_assert_eq!(DhcpMessage::parse(&message.emit()), Ok(message));
    }

    #[test]
    fn authenticators(
        message in message(),
        kind in authentication_kind(),
        spi in any::<u32>().prop_map(Spi),
        algorithm in prop_oneof![Just(Algorithm::HmacMd5), Just(Algorithm::HmacSha256)],
        key in bytes(100),
        bit in any::<prop::sample::Index>(),
    ) {
        let mut bytes = message.emit();
        let offset = bytes.len();
        append_authentication(&mut bytes, kind, spi, algorithm, &key);
        prop_assert!(verify_authentication(&bytes, offset, algorithm, &key));
        let received = Message::parse(&bytes).unwrap();
        let last = received.placed_extensions().last().unwrap();
        prop_assert_eq!((last.offset, last.end()), (offset, bytes.len()));
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(!verify_authentication(&bytes, offset, algorithm, &key));
    }

    #[test]
    fn path_reports(report in path_report()) {
        let Extension::Vendor(extension) = report.extension() else { panic!("{report:?}") };
        prop_assert_eq!(extension.path_report(), Some(report));
    }

    #[test]
    fn received_data(flows in vec(received_flow(), 1..=ReceivedData::CAPACITY)) {
        let data: ReceivedData = flows.into_iter().collect();
        let Some(Extension::Vendor(extension)) = data.extension() else { panic!("{data:?}") };
        prop_assert_eq!(extension.received_data(), Some(data));
    }

    #[test]
    fn icmp_messages(message in icmp_message()) {
        let mut bytes = Vec::new();
        message.emit(&mut bytes);
        prop_assert_eq!(IcmpMessage::parse(&bytes), Ok(message));
    }

    #[test]
    fn ipv4_datagrams(datagram in datagram(64)) {
        let (header, payload) = &datagram;
        let bytes = emitted(&datagram);
        prop_assert_eq!(Ipv4Header::parse(&bytes), Ok((*header, &payload[..])));
    }

    #[test]
    fn udp_datagrams(
        (source, destination) in (address(), address()),
        (source_port, destination_port) in any::<(u16, u16)>(),
        payload in bytes(64),
    ) {
        let header = UdpHeader { source_port, destination_port, payload_len: payload.len() as u16 };
        let mut bytes = Vec::new();
        header.emit(source, destination, &payload, &mut bytes);
        prop_assert_eq!(UdpHeader::parse(source, destination, &bytes), Ok((header, &payload[..])));
    }

    #[test]
    fn tcp_segments((source, destination) in (address(), address()), (segment, payload) in segment()) {
        let mut bytes = Vec::new();
        segment.emit(source, destination, &payload, &mut bytes);
        prop_assert_eq!(bytes.len(), usize::from(segment.header_len()) + payload.len());
        prop_assert_eq!(Segment::parse(source, destination, &bytes), Ok((segment, &payload[..])));
        prop_assert_eq!(Segment::peek(&bytes), Ok((segment, false)));
    }

    #[test]
    fn tunnels(
        encapsulation in encapsulation(),
        (entry, exit) in (address(), address()),
        (mut header, payload) in datagram(64),
        identification in any::<u16>(),
    ) {
        header.ttl = header.ttl.max(1);
        if encapsulation == Encapsulation::Minimal {
            (header.more_fragments, header.fragment_offset) = (false, 0);
        }
        prop_assume!(header.source != exit && header.destination != entry);
        let datagram = emitted(&(header, payload));
        let tunnel = Tunnel { encapsulation, entry, exit, ttl: 64 };
        let bytes = tunnel.encapsulate(&datagram, Origin::Local, identification).unwrap();
        prop_assert_eq!(bytes.len(), datagram.len() + usize::from(tunnel.overhead(header.source)));
        let out = decapsulate(&bytes).unwrap();
        prop_assert_eq!(out.encapsulation, encapsulation);
        prop_assert_eq!((out.outer.source, out.outer.destination), (entry, exit));
        prop_assert_eq!(out.outer.dont_fragment, header.dont_fragment);
        prop_assert_eq!(&out.datagram[..], &datagram);
    }

    #[test]
    fn fragments_in_any_order(
        (header, payload) in datagram(600),
        mtu in 28_u16..400,
        order in any::<u64>(),
        repeated in any::<bool>(),
    ) {
        let whole = Ipv4Header { dont_fragment: false, more_fragments: false, fragment_offset: 0, ..header };
        let bytes = emitted(&(whole, payload));
        let mut fragments = fragment(&bytes, mtu).unwrap();
        prop_assert!(fragments.iter().all(|fragment| fragment.len() <= usize::from(mtu)));
        let shuffled = |fragment: &Vec<u8>| {
            order.rotate_left(u32::from(fragment[7])).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        fragments.sort_by_key(shuffled);
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
