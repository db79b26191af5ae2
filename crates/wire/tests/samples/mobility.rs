//! Mobility Headers of every kind as whole IPv6 packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use careof_wire::icmpv6::{
    HOP_LIMIT, Icmpv6Message, LinkLayerAddress, MapOption, NdOption, PrefixLifetime, RouterAdvertisement,
};
use careof_wire::mip6::{
    AcknowledgementFlags, Algorithm, BindingAcknowledgement, BindingAuthorization, BindingError,
    BindingErrorStatus, BindingId, BindingIdentifier, BindingManagementKey, BindingRefreshRequest,
    BindingStatus, BindingUpdate, CareOfTest, CareOfTestInit, HomeTest, HomeTestInit, InitCookie,
    Ipv4AddressAcknowledgement, Ipv4AddressStatus, Ipv4HomeAddress, KeygenToken, Lifetime, Message,
    MobileHomeAuthentication, MobileNodeIdentifier, MobilityOption, MobilityOptions, NatDetection,
    NonceIndex, NonceIndices, NtpTimestamp, PROTOCOL, PathCounts, PathProbe, PathProbeKind, PathReport,
    SequenceNumber, Spi, ToldPath, UnknownMessage, UnknownOption, UpdateFlags,
};
use careof_wire::protocol;

#[path = "fast_handovers.rs"]
mod fast_handovers;

const HOME_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
const CARE_OF_ADDRESS: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0x77);
/// The regional care-of address, and the mobility anchor point that keeps it.
const REGIONAL: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 5);
const ANCHOR_POINT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 4, 0, 0, 0, 0, 1);
const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7);

const COOKIE: InitCookie = InitCookie([0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
const HOME_TOKEN: KeygenToken = KeygenToken(*b"homekey1");
const CARE_OF_TOKEN: KeygenToken = KeygenToken(*b"carekey1");
const MOBILE_HOME_KEY: &[u8] = b"sixteen bytes ok";

/// Every sample: its name and the packet. All but `router_advertisement` have a Mobility Header.
pub(crate) fn samples() -> Vec<(String, Vec<u8>)> {
    let mut samples = Vec::new();
    return_routability(&mut samples);
    with_correspondent(&mut samples);
    with_home_agent(&mut samples);
    path_probes(&mut samples);
    with_anchor_point(&mut samples);
    fast_handovers::add_all(&mut samples);
    samples
}

type Samples = Vec<(String, Vec<u8>)>;

/// Adds a Mobility Header behind an IPv6 header.
fn add(samples: &mut Samples, name: &str, source: Ipv6Addr, destination: Ipv6Addr, header: &[u8]) {
    let len = (header.len() as u16).to_be_bytes();
    let ipv6 = [0x60, 0, 0, 0, len[0], len[1], PROTOCOL, 64];
    let packet = [&ipv6[..], &source.octets(), &destination.octets(), header].concat();
    samples.push((name.to_owned(), packet));
}

fn plain(samples: &mut Samples, name: &str, source: Ipv6Addr, destination: Ipv6Addr, message: &Message) {
    let header = message.emit(source, destination).expect("short enough");
    add(samples, name, source, destination, &header);
}

fn return_routability(samples: &mut Samples) {
    let none = MobilityOptions::new;
    let init = Message::HomeTestInit(HomeTestInit { cookie: COOKIE, options: none() });
    plain(samples, "home_test_init", HOME_ADDRESS, CORRESPONDENT, &init);
    let init = Message::CareOfTestInit(CareOfTestInit { cookie: COOKIE, options: none() });
    plain(samples, "care_of_test_init", CARE_OF_ADDRESS, CORRESPONDENT, &init);
    let nonce_index = NonceIndex(3);
    let test =
        Message::HomeTest(HomeTest { nonce_index, cookie: COOKIE, token: HOME_TOKEN, options: none() });
    plain(samples, "home_test", CORRESPONDENT, HOME_ADDRESS, &test);
    let nonce_index = NonceIndex(4);
    let test = Message::CareOfTest(CareOfTest {
        nonce_index,
        cookie: COOKIE,
        token: CARE_OF_TOKEN,
        options: none(),
    });
    plain(samples, "care_of_test", CORRESPONDENT, CARE_OF_ADDRESS, &test);
}

fn with_correspondent(samples: &mut Samples) {
    let key = BindingManagementKey::new(HOME_TOKEN, CARE_OF_TOKEN);
    let authorization =
        BindingAuthorization { key: &key, care_of_address: CARE_OF_ADDRESS, correspondent: CORRESPONDENT };
    let indices = NonceIndices { home: NonceIndex(3), care_of: NonceIndex(4) };
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: SequenceNumber(0x0102),
        flags: UpdateFlags::ACKNOWLEDGE,
        lifetime: Lifetime::from_units(105),
        options: MobilityOptions::new()
            .with(MobilityOption::AlternateCareOfAddress(CARE_OF_ADDRESS))
            .with(MobilityOption::NonceIndices(indices)),
    });
    let header = update.emit_authorized(HOME_ADDRESS, CORRESPONDENT, &authorization).expect("short enough");
    add(samples, "update_to_correspondent", HOME_ADDRESS, CORRESPONDENT, &header);
    for status in BindingStatus::ALL {
        let acknowledgement = Message::BindingAcknowledgement(BindingAcknowledgement {
            status: *status,
            flags: AcknowledgementFlags::default(),
            sequence: SequenceNumber(0x0102),
            lifetime: Lifetime::from_units(100),
            options: MobilityOptions::new(),
        });
        let header = acknowledgement
            .emit_authorized(CORRESPONDENT, HOME_ADDRESS, &authorization)
            .expect("short enough");
        let name = format!("acknowledgement_{}", status.number());
        add(samples, &name, CORRESPONDENT, HOME_ADDRESS, &header);
    }
    let request = Message::BindingRefreshRequest(BindingRefreshRequest::default());
    plain(samples, "refresh_request", CORRESPONDENT, HOME_ADDRESS, &request);
    for status in BindingErrorStatus::ALL {
        let error = Message::BindingError(BindingError {
            status: *status,
            home_address: HOME_ADDRESS,
            options: MobilityOptions::new(),
        });
        let name = format!("error_{}", status.number());
        plain(samples, &name, CORRESPONDENT, CARE_OF_ADDRESS, &error);
    }
    let unknown = UnknownMessage::new(200, &[0; 10]).expect("fills the header");
    plain(samples, "unknown", CARE_OF_ADDRESS, CORRESPONDENT, &Message::Unknown(unknown));
}

/// A mobile node asks by its care-of address whether packets get through, and is answered.
fn path_probes(samples: &mut Samples) {
    let authentication = MobileHomeAuthentication {
        spi: Spi(256),
        algorithm: Algorithm::HmacSha1,
        key: MOBILE_HOME_KEY,
        care_of_address: CARE_OF_ADDRESS,
        home_address: HOME_ADDRESS,
    };
    let counts = PathCounts { packets_sent: 7, packets_received: 9, bytes_sent: 700, bytes_received: 9000 };
    let probe = PathProbe {
        kind: PathProbeKind::Probe,
        home_address: HOME_ADDRESS,
        sequence: 3,
        nonce: 0xe5a1_b2c3_8000_0001,
        counts: Some(counts),
        options: MobilityOptions::new(),
    };
    let answer = PathProbe { kind: PathProbeKind::Answer, counts: None, ..probe.clone() };
    for (name, message, (source, destination)) in [
        ("path_probe", probe, (CARE_OF_ADDRESS, HOME_AGENT)),
        ("path_probe_answer", answer, (HOME_AGENT, CARE_OF_ADDRESS)),
    ] {
        let message = Message::PathProbe(message);
        let header = message.emit_authenticated(source, destination, &authentication).expect("short enough");
        add(samples, name, source, destination, &header);
    }
}

fn with_home_agent(samples: &mut Samples) {
    let sha1 = MobileHomeAuthentication {
        spi: Spi(256),
        algorithm: Algorithm::HmacSha1,
        key: MOBILE_HOME_KEY,
        care_of_address: CARE_OF_ADDRESS,
        home_address: HOME_ADDRESS,
    };
    let sha256 = MobileHomeAuthentication { algorithm: Algorithm::HmacSha256, ..sha1 };
    let timestamp = NtpTimestamp::from_halves(0xe5a1_b2c3, 0x8000_0001);
    let identifier = |id, care_of_address| {
        MobilityOption::BindingIdentifier(BindingIdentifier {
            care_of_address,
            simultaneous_home_and_foreign: true,
            ..BindingIdentifier::new(BindingId(id))
        })
    };
    let nai = MobileNodeIdentifier::new(MobileNodeIdentifier::NAI, b"mn@example.org").expect("short enough");
    let ipv4_home_address = Ipv4Addr::new(192, 0, 2, 5);
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: SequenceNumber(7),
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
        lifetime: Lifetime::from_units(150),
        options: MobilityOptions::new()
            .with(MobilityOption::AlternateCareOfAddress(CARE_OF_ADDRESS))
            .with(MobilityOption::MobileNodeIdentifier(nai))
            .with(identifier(1, Some(IpAddr::V6(CARE_OF_ADDRESS))))
            .with(identifier(2, Some(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9)))))
            .with(identifier(3, None))
            .with(MobilityOption::Ipv4HomeAddress(
                Ipv4HomeAddress::new(ipv4_home_address, 32, false).expect("32 bits"),
            ))
            .with(MobilityOption::Ipv4CareOfAddress(Ipv4Addr::new(198, 51, 100, 9)))
            .with(MobilityOption::Unknown(UnknownOption::new(200, &[1, 2, 3]).expect("not known")))
            .with(MobilityOption::ReplayProtection(timestamp)),
    });
    for (name, authentication) in [("update_to_home_agent", &sha1), ("update_with_sha_256", &sha256)] {
        let header =
            update.emit_authenticated(HOME_ADDRESS, HOME_AGENT, authentication).expect("short enough");
        add(samples, name, HOME_ADDRESS, HOME_AGENT, &header);
    }
    let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: SequenceNumber(8),
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION),
        lifetime: Lifetime::from_units(150),
        options: MobilityOptions::new()
            .with(MobilityOption::AlternateCareOfAddress(CARE_OF_ADDRESS))
            .with(MobilityOption::ReplayProtection(timestamp))
            .with(ToldPath { report, first: SequenceNumber(8) }.option()),
    });
    let header = update.emit_authenticated(HOME_ADDRESS, HOME_AGENT, &sha1).expect("short enough");
    add(samples, "update_with_path", HOME_ADDRESS, HOME_AGENT, &header);
    let acknowledgement = Message::BindingAcknowledgement(BindingAcknowledgement {
        status: BindingStatus::AcceptedPrefixDiscoveryNecessary,
        flags: AcknowledgementFlags::KEY_MANAGEMENT_MOBILITY_CAPABILITY,
        sequence: SequenceNumber(7),
        lifetime: Lifetime::from_units(140),
        options: MobilityOptions::new()
            .with(MobilityOption::BindingRefreshAdvice(Lifetime::from_units(70)))
            .with(MobilityOption::Ipv4AddressAcknowledgement(
                Ipv4AddressAcknowledgement::new(Ipv4AddressStatus::Success, ipv4_home_address, 32)
                    .expect("32 bits"),
            ))
            .with(MobilityOption::NatDetection(NatDetection {
                udp_encapsulation_required: true,
                refresh_time: 110,
            }))
            .with(MobilityOption::ReplayProtection(timestamp)),
    });
    let header = acknowledgement.emit_authenticated(HOME_AGENT, HOME_ADDRESS, &sha1).expect("short enough");
    add(samples, "acknowledgement_of_home_agent", HOME_AGENT, HOME_ADDRESS, &header);
}

fn with_anchor_point(samples: &mut Samples) {
    let authentication = MobileHomeAuthentication {
        spi: Spi(256),
        algorithm: Algorithm::HmacSha1,
        key: MOBILE_HOME_KEY,
        care_of_address: CARE_OF_ADDRESS,
        home_address: REGIONAL,
    };
    let update = Message::BindingUpdate(BindingUpdate {
        sequence: SequenceNumber(9),
        flags: UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::MAP_REGISTRATION),
        lifetime: Lifetime::from_units(75),
        options: MobilityOptions::new()
            .with(MobilityOption::ReplayProtection(NtpTimestamp::from_halves(0xe5a1_b2c3, 0x8000_0001))),
    });
    let header = update.emit_authenticated(REGIONAL, ANCHOR_POINT, &authentication).expect("short enough");
    add(samples, "local_update", REGIONAL, ANCHOR_POINT, &header);
    let map = |distance, preference, allocates_address| {
        let valid_lifetime = PrefixLifetime::from_secs(0x0001_5180);
        NdOption::Map(MapOption {
            distance,
            preference,
            allocates_address,
            valid_lifetime,
            address: ANCHOR_POINT,
        })
    };
    let advertisement = Icmpv6Message::RouterAdvertisement(RouterAdvertisement {
        router_lifetime_secs: 30,
        options: vec![
            NdOption::SourceLinkLayerAddress(LinkLayerAddress([2, 0, 0, 0, 0, 1])),
            map(2, 15, true),
            map(1, 0, false),
        ],
        ..RouterAdvertisement::default()
    });
    let (source, destination) =
        (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1));
    let mut message = Vec::new();
    advertisement.emit(source, destination, &mut message);
    let ipv6 = [0x60, 0, 0, 0, 0, message.len() as u8, protocol::ICMPV6, HOP_LIMIT];
    let packet = [&ipv6[..], &source.octets(), &destination.octets(), &message].concat();
    samples.push(("router_advertisement".to_owned(), packet));
}
