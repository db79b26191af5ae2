//! What is emitted in a Mobility Header is read as it was: for every message and every option.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use careof_base::DataRate;
use careof_wire::SeqNumber;
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::{
    AcknowledgementFlags, AddressRole, Algorithm, AuthenticationSubtype, Authenticator,
    BindingAcknowledgement, BindingAuthorization, BindingError, BindingErrorStatus, BindingId,
    BindingIdentifier, BindingManagementKey, BindingRefreshRequest, BindingStatus, BindingUpdate, CareOfTest,
    CareOfTestInit, FastAuthorizationData, FastBindingAcknowledgement, FastBindingAuthorization,
    FastBindingStatus, HandoverAcknowledge, HandoverAddress, HandoverCode, HandoverInitiate,
    HandoverLinkLayerAddress, HomeTest, HomeTestInit, InitCookie, InitiateCode, Ipv4AddressAcknowledgement,
    Ipv4AddressStatus, Ipv4HomeAddress, KeygenToken, Lifetime, LinkLayerRole, MalformedBindingIdentifier,
    Message, MessageAuthentication, MobileHomeAuthentication, MobileNodeIdentifier, MobilityOption,
    MobilityOptions, NatDetection, NonceIndex, NonceIndices, NtpTimestamp, PathCounts, PathProbe,
    PathProbeKind, PathReport, ReceivedData, ReceivedFlow, SequenceNumber, Spi, ToldPath, UnknownMessage,
    UnknownOption, UpdateFlags, VendorOption,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn address() -> impl Strategy<Value = Ipv6Addr> {
    any::<u128>().prop_map(Ipv6Addr::from)
}

fn ipv4_address() -> impl Strategy<Value = Ipv4Addr> {
    any::<u32>().prop_map(Ipv4Addr::from)
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=max)
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    any::<u16>().prop_map(Lifetime::from_units)
}

fn nonce_index() -> impl Strategy<Value = NonceIndex> {
    any::<u16>().prop_map(NonceIndex)
}

fn sequence() -> impl Strategy<Value = SequenceNumber> {
    any::<u16>().prop_map(SequenceNumber)
}

prop_compose! {
    fn binding_identifier()(
        id in any::<u16>().prop_map(BindingId),
        status in any::<u8>().prop_map(BindingStatus::from_number),
        simultaneous_home_and_foreign in any::<bool>(),
        care_of_address in option::of(prop_oneof![
            ipv4_address().prop_map(IpAddr::from),
            address().prop_map(IpAddr::from),
        ]),
    ) -> BindingIdentifier {
        BindingIdentifier { id, status, simultaneous_home_and_foreign, care_of_address }
    }
}

fn authentication() -> impl Strategy<Value = MessageAuthentication> {
    let subtype = any::<u8>().prop_map(AuthenticationSubtype::from_number);
    (subtype, any::<u32>(), bytes(MessageAuthentication::MAX_AUTHENTICATOR_LEN)).prop_map(
        |(subtype, spi, authenticator)| {
            MessageAuthentication::new(subtype, Spi(spi), &authenticator).expect("short enough")
        },
    )
}

fn ipv4_acknowledgement() -> impl Strategy<Value = Ipv4AddressAcknowledgement> {
    let status = any::<u8>().prop_map(Ipv4AddressStatus::from_number);
    (status, ipv4_address(), 0..=32_u8).prop_map(|(status, address, prefix_len)| {
        Ipv4AddressAcknowledgement::new(status, address, prefix_len).expect("at most 32")
    })
}

prop_compose! {
    fn told_path()(
        (downlink, uplink, round_trip) in any::<(Option<u32>, Option<u32>, Option<u32>)>(),
        old_path_lost in any::<Option<bool>>(),
        repeated in any::<u8>(),
        first in sequence(),
    ) -> ToldPath {
        let rate = |units: u32| DataRate::from_bits_per_second(u64::from(units) * 100);
        let report = PathReport {
            downlink: downlink.map(rate),
            uplink: uplink.map(rate),
            round_trip: round_trip.map(|micros| Duration::from_micros(micros.into())),
            old_path_lost,
            repeated_for: Duration::from_millis(10) * repeated.into(),
        };
        ToldPath { report, first }
    }
}

prop_compose! {
    fn received_flow()(
        // An IPv4-mapped address is one of IPv4.
        peer in prop_oneof![ipv4_address().prop_map(IpAddr::from), address().prop_map(IpAddr::from)],
        (peer_port, mobile_port) in any::<(u16, u16)>(),
        ack in any::<u32>().prop_map(SeqNumber),
        echo in any::<Option<u32>>(),
    ) -> ReceivedFlow {
        let (peer, echo) = (peer.to_canonical(), echo.filter(|echo| *echo != 0));
        ReceivedFlow { peer, peer_port, mobile_port, ack, echo }
    }
}

fn handover_address() -> impl Strategy<Value = HandoverAddress> {
    (any::<u8>(), address(), 0..=128_u8).prop_map(|(role, address, len)| {
        HandoverAddress::with_prefix_len(AddressRole::from_number(role), address, len).expect("at most 128")
    })
}

/// Every option but the authorization data that comes last.
fn mobility_option() -> impl Strategy<Value = MobilityOption> {
    prop_oneof![
        lifetime().prop_map(MobilityOption::BindingRefreshAdvice),
        address().prop_map(MobilityOption::AlternateCareOfAddress),
        (nonce_index(), nonce_index())
            .prop_map(|(home, care_of)| MobilityOption::NonceIndices(NonceIndices { home, care_of })),
        (any::<u8>(), bytes(MobileNodeIdentifier::MAX_LEN)).prop_map(|(subtype, identifier)| {
            MobilityOption::MobileNodeIdentifier(
                MobileNodeIdentifier::new(subtype, &identifier).expect("short enough"),
            )
        }),
        authentication().prop_map(MobilityOption::MessageAuthentication),
        any::<u64>().prop_map(|time| MobilityOption::ReplayProtection(NtpTimestamp(time))),
        (ipv4_address(), 1..=32_u8, any::<bool>()).prop_map(|(address, prefix_len, requested)| {
            MobilityOption::Ipv4HomeAddress(
                Ipv4HomeAddress::new(address, prefix_len, requested).expect("1 to 32"),
            )
        }),
        ipv4_acknowledgement().prop_map(MobilityOption::Ipv4AddressAcknowledgement),
        any::<(bool, u32)>().prop_map(|(udp_encapsulation_required, refresh_time)| {
            MobilityOption::NatDetection(NatDetection { udp_encapsulation_required, refresh_time })
        }),
        ipv4_address().prop_map(MobilityOption::Ipv4CareOfAddress),
        (any::<u32>(), any::<u8>(), bytes(VendorOption::MAX_DATA_LEN)).prop_map(|(vendor, kind, data)| {
            MobilityOption::Vendor(VendorOption::new(vendor, kind, &data).expect("short enough"))
        }),
        handover_address().prop_map(MobilityOption::HandoverAddress),
        any::<(u8, [u8; 6])>().prop_map(|(role, address)| {
            let (role, address) = (LinkLayerRole::from_number(role), LinkLayerAddress(address));
            MobilityOption::LinkLayerAddress(HandoverLinkLayerAddress { role, address })
        }),
        told_path().prop_map(|told| told.option()),
        binding_identifier().prop_map(MobilityOption::BindingIdentifier),
        bytes(255)
            .prop_filter_map("well-formed", |data| MalformedBindingIdentifier::new(&data))
            .prop_map(MobilityOption::MalformedBindingIdentifier),
        (any::<u8>(), bytes(255))
            .prop_filter_map("known", |(kind, data)| UnknownOption::new(kind, &data))
            .prop_map(MobilityOption::Unknown),
    ]
}

fn options() -> impl Strategy<Value = MobilityOptions> {
    let authorization = option::of(prop_oneof![
        bytes(255).prop_map(|authenticator| {
            let authenticator = Authenticator::new(&authenticator).expect("short enough");
            MobilityOption::BindingAuthorizationData(authenticator)
        }),
        (any::<u32>(), bytes(FastAuthorizationData::MAX_AUTHENTICATOR_LEN)).prop_map(
            |(spi, authenticator)| {
                let data = FastAuthorizationData::new(Spi(spi), &authenticator).expect("short enough");
                MobilityOption::FastAuthorizationData(data)
            }
        ),
    ]);
    (vec(mobility_option(), 0..6), authorization)
        .prop_map(|(options, authorization)| options.into_iter().chain(authorization).collect())
}

fn path_counts() -> impl Strategy<Value = PathCounts> {
    any::<(u32, u32, u64, u64)>().prop_map(|(packets_sent, packets_received, bytes_sent, bytes_received)| {
        PathCounts { packets_sent, packets_received, bytes_sent, bytes_received }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let cookie = || any::<[u8; 8]>().prop_map(InitCookie);
    let token = || any::<[u8; 8]>().prop_map(KeygenToken);
    let test = || (nonce_index(), cookie(), token(), options());
    prop_oneof![
        options().prop_map(|options| Message::BindingRefreshRequest(BindingRefreshRequest { options })),
        (cookie(), options())
            .prop_map(|(cookie, options)| Message::HomeTestInit(HomeTestInit { cookie, options })),
        (cookie(), options())
            .prop_map(|(cookie, options)| Message::CareOfTestInit(CareOfTestInit { cookie, options })),
        test().prop_map(|(nonce_index, cookie, token, options)| {
            Message::HomeTest(HomeTest { nonce_index, cookie, token, options })
        }),
        test().prop_map(|(nonce_index, cookie, token, options)| {
            Message::CareOfTest(CareOfTest { nonce_index, cookie, token, options })
        }),
        (sequence(), any::<u16>(), lifetime(), options()).prop_map(|(sequence, flags, lifetime, options)| {
            // The low six bits are reserved.
            let flags = UpdateFlags(flags & 0xffc0);
            Message::BindingUpdate(BindingUpdate { sequence, flags, lifetime, options })
        }),
        (any::<u8>(), any::<u8>(), sequence(), lifetime(), options()).prop_map(
            |(status, flags, sequence, lifetime, options)| {
                Message::BindingAcknowledgement(BindingAcknowledgement {
                    status: BindingStatus::from_number(status),
                    // The low four bits are reserved.
                    flags: AcknowledgementFlags(flags & 0xf0),
                    sequence,
                    lifetime,
                    options,
                })
            }
        ),
        (any::<u8>(), address(), options()).prop_map(|(status, home_address, options)| {
            let status = BindingErrorStatus::from_number(status);
            Message::BindingError(BindingError { status, home_address, options })
        }),
        (any::<bool>(), address(), any::<u32>(), any::<u64>(), option::of(path_counts()), options())
            .prop_map(|(answers, home_address, sequence, nonce, counts, options)| {
                let kind = if answers { PathProbeKind::Answer } else { PathProbeKind::Probe };
                Message::PathProbe(PathProbe { kind, home_address, sequence, nonce, counts, options })
            }),
        (8..=u8::MAX, 0..100_usize, any::<u8>())
            .prop_filter_map("known", |(kind, units, byte)| {
                UnknownMessage::new(kind, &vec![byte; 2 + units * 8])
            })
            .prop_map(Message::Unknown),
        fast_handover_message(),
    ]
}

fn fast_handover_message() -> impl Strategy<Value = Message> {
    prop_oneof![
        (sequence(), any::<u16>(), lifetime(), options()).prop_map(|(sequence, flags, lifetime, options)| {
            // A, H, L, K.
            let flags = UpdateFlags(flags & 0xf000);
            Message::FastBindingUpdate(BindingUpdate { sequence, flags, lifetime, options })
        }),
        (any::<u8>(), any::<u8>(), sequence(), lifetime(), options()).prop_map(
            |(status, flags, sequence, lifetime, options)| {
                Message::FastBindingAcknowledgement(FastBindingAcknowledgement {
                    status: FastBindingStatus::from_number(status),
                    // K.
                    flags: AcknowledgementFlags(flags & 0x80),
                    sequence,
                    lifetime,
                    options,
                })
            }
        ),
        (sequence(), any::<(bool, bool, u8)>(), options()).prop_map(
            |(sequence, (assign_address, buffer, code), options)| {
                let code = InitiateCode::from_number(code);
                Message::HandoverInitiate(HandoverInitiate {
                    sequence,
                    assign_address,
                    buffer,
                    code,
                    options,
                })
            }
        ),
        (sequence(), any::<u8>(), options()).prop_map(|(sequence, code, options)| {
            let code = HandoverCode::from_number(code);
            Message::HandoverAcknowledge(HandoverAcknowledge { sequence, code, options })
        }),
    ]
}

proptest! {
    #[test]
    fn reports_of_a_mobile_node_come_back(
        told in told_path(),
        flows in vec(received_flow(), 1..=ReceivedData::CAPACITY),
    ) {
        let received: ReceivedData = flows.into_iter().collect();
        let options = MobilityOptions::new().with(told.option()).with(received.option().expect("flows"));
        let update = BindingUpdate {
            sequence: SequenceNumber(1),
            flags: UpdateFlags::HOME_REGISTRATION,
            lifetime: Lifetime::from_units(1),
            options,
        };
        let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
        let bytes = Message::BindingUpdate(update).emit(source, destination).unwrap();
        let Ok(Message::BindingUpdate(parsed)) = Message::parse(source, destination, &bytes) else {
            panic!("no update came back");
        };
        prop_assert_eq!(parsed.options.told_path(), Some(told));
        prop_assert_eq!(parsed.options.received_data(), received);
    }

    #[test]
    fn mobility_messages_come_back((source, destination) in (address(), address()), message in message()) {
        let bytes = message.emit(source, destination).unwrap();
        prop_assert!(bytes.len() % 8 == 0);
        prop_assert_eq!(bytes.len(), (usize::from(bytes[1]) + 1) * 8);
        prop_assert_eq!(Message::parse(source, destination, &bytes), Ok(message));
    }

    #[test]
    fn authorized_messages_come_back_and_prove_it(
        (source, destination, care_of_address) in (address(), address(), address()),
        tokens in any::<([u8; 8], [u8; 8])>(),
        (sequence, lifetime) in (sequence(), lifetime()),
        options in vec(mobility_option(), 0..5),
    ) {
        let key = BindingManagementKey::new(KeygenToken(tokens.0), KeygenToken(tokens.1));
        let authorization = BindingAuthorization { key: &key, care_of_address, correspondent: destination };
        let flags = UpdateFlags::ACKNOWLEDGE;
        let update = BindingUpdate { sequence, flags, lifetime, options: options.into() };
        let message = Message::BindingUpdate(update.clone());
        let bytes = message.emit_authorized(source, destination, &authorization).unwrap();
        prop_assert!(authorization.verify(&bytes));
        let Ok(Message::BindingUpdate(parsed)) = Message::parse(source, destination, &bytes) else {
            panic!("no update came back");
        };
        let Some((MobilityOption::BindingAuthorizationData(_), before)) = parsed.options.split_last() else {
            panic!("the authorization is not the last");
        };
        prop_assert_eq!(before, &update.options[..]);
    }

    #[test]
    fn authorized_fast_updates_come_back_and_prove_it(
        (source, access_router, care_of_address) in (address(), address(), address()),
        (spi, key) in (any::<u32>().prop_map(Spi), bytes(100)),
        algorithm in prop_oneof![Just(Algorithm::HmacSha1), Just(Algorithm::HmacSha256)],
        (sequence, lifetime) in (sequence(), lifetime()),
        options in vec(mobility_option(), 0..5),
    ) {
        let authorization =
            FastBindingAuthorization { spi, algorithm, key: &key, care_of_address, access_router };
        let flags = UpdateFlags::ACKNOWLEDGE;
        let update = BindingUpdate { sequence, flags, lifetime, options: options.into() };
        let message = Message::FastBindingUpdate(update.clone());
        let bytes = message.emit_fast_authorized(source, access_router, &authorization).unwrap();
        prop_assert!(authorization.verify(&bytes));
        let Ok(Message::FastBindingUpdate(parsed)) = Message::parse(source, access_router, &bytes) else {
            panic!("no update came back");
        };
        prop_assert_eq!(parsed.options.fast_authorization_data().map(|data| data.spi()), Some(spi));
        prop_assert_eq!(&parsed.options[..parsed.options.len() - 1], &update.options[..]);
    }

    #[test]
    fn authenticated_messages_come_back_and_prove_it(
        (source, destination, care_of_address) in (address(), address(), address()),
        (spi, key) in (any::<u32>().prop_map(Spi), bytes(100)),
        algorithm in prop_oneof![Just(Algorithm::HmacSha1), Just(Algorithm::HmacSha256)],
        (sequence, lifetime) in (sequence(), lifetime()),
        options in vec(mobility_option(), 0..5).prop_filter("authenticated already", |options| {
            !options.iter().any(|option| matches!(option, MobilityOption::MessageAuthentication(_)))
        }),
    ) {
        let authentication =
            MobileHomeAuthentication { spi, algorithm, key: &key, care_of_address, home_address: source };
        let flags = UpdateFlags::HOME_REGISTRATION;
        let update = BindingUpdate { sequence, flags, lifetime, options: options.into() };
        let message = Message::BindingUpdate(update.clone());
        let bytes = message.emit_authenticated(source, destination, &authentication).unwrap();
        prop_assert!(authentication.verify(&bytes));
        let Ok(Message::BindingUpdate(parsed)) = Message::parse(source, destination, &bytes) else {
            panic!("no update came back");
        };
        prop_assert!(parsed.options.end_with_authentication(AuthenticationSubtype::MobileHome));
        let found = parsed.options.message_authentication(AuthenticationSubtype::MobileHome).unwrap();
        prop_assert_eq!(found.spi(), spi);
        prop_assert_eq!(&parsed.options[..parsed.options.len() - 1], &update.options[..]);
    }
}
