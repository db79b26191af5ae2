//! Messages of every kind as whole IPv4 datagrams: what the tests mutilate, and what `emit_vectors` prints
//! for decoders other people wrote.

#[allow(dead_code, reason = "an example takes it by itself")]
pub(crate) mod dual_stack;
#[allow(dead_code, reason = "an example takes it by itself")]
pub(crate) mod mobility;

use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::DataRate;
use careof_wire::dhcp::{self, DhcpMessage, HardwareAddress, LeaseTime, MessageType, UnknownOption};
use careof_wire::icmp::{
    AdvertisementExtension, AgentFlags, DestinationUnreachable, Echo, IcmpMessage,
    MobilityAgentAdvertisement, RouterAddress, RouterAdvertisement, RouterSolicitation, TimeExceeded,
    TimeExceededCode, UnreachableCode, quote,
};
use careof_wire::ipv4::{Ipv4Header, fragment};
use careof_wire::mip4::{
    self, Algorithm, AuthenticationKind, BindingAcknowledge, BindingRequest, BindingUpdate, BindingWarning,
    Extension, Identification, Lifetime, Message, PathCounts, PathProbe, PathProbeKind, PathReport,
    PreviousForeignAgent, RegistrationReply, RegistrationRequest, ReplyCode, RequestFlags, Spi,
    UnknownExtension, VendorExtension, append_authentication,
};
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel, relay_error};
use careof_wire::udp::UdpHeader;
use careof_wire::{Flags, Segment, SeqNumber, Timestamps, protocol};

const MOBILE_NODE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 5);
const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const FOREIGN_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
/// The foreign agent that the mobile node has left.
const PREVIOUS_AGENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);
const CO_LOCATED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 77);
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// All systems on the link.
const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All mobility agents on the link.
const ALL_AGENTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);

const IDENTIFICATION: Identification = Identification::from_halves(0xe5a1_b2c3, 0x8000_0001);

/// Keys of the security associations, by the parties' initials.
const MOBILE_HOME_KEY: &[u8] = b"mobile-home key!";
const MOBILE_FOREIGN_KEY: &[u8] = b"mobile-foreign k";
const ROUTE_OPTIMIZATION_KEY: &[u8] = b"route-optimizing";
/// Longer than a block of the hash, so that HMAC hashes it first.
const FOREIGN_HOME_KEY: &[u8] = &[0xa5; 80];

/// Every sample: its name and the datagram.
pub(crate) fn samples() -> Vec<(String, Vec<u8>)> {
    let mut samples = Samples::default();
    samples.registration();
    samples.route_optimization();
    samples.path_probes();
    samples.discovery();
    samples.icmp();
    samples.dhcp();
    samples.tcp();
    samples.tunnels();
    samples.all
}

#[derive(Default)]
struct Samples {
    all: Vec<(String, Vec<u8>)>,
}

fn datagram(header: Ipv4Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Ipv4Header { payload_len: payload.len() as u16, ..header }.emit(&mut bytes);
    bytes.extend(payload);
    bytes
}

fn udp(source: Ipv4Addr, destination: Ipv4Addr, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let (source_port, destination_port) = ports;
    let mut bytes = Vec::new();
    UdpHeader { source_port, destination_port, payload_len: payload.len() as u16 }.emit(
        source,
        destination,
        payload,
        &mut bytes,
    );
    let header = Ipv4Header { source, destination, protocol: protocol::UDP, ..Ipv4Header::default() };
    datagram(header, &bytes)
}

fn tcp(segment: Segment, payload: &[u8]) -> Vec<u8> {
    let segment = Segment { payload_len: payload.len() as u16, ..segment };
    let mut bytes = Vec::new();
    segment.emit(CORRESPONDENT, MOBILE_NODE, payload, &mut bytes);
    let header = Ipv4Header {
        source: CORRESPONDENT,
        destination: MOBILE_NODE,
        protocol: protocol::TCP,
        identification: 4711,
        dont_fragment: true,
        ..Ipv4Header::default()
    };
    datagram(header, &bytes)
}

fn icmp(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, message: &IcmpMessage) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.emit(&mut bytes);
    datagram(
        Ipv4Header { source, destination, protocol: protocol::ICMP, ttl, ..Ipv4Header::default() },
        &bytes,
    )
}

fn payload(len: u16) -> Vec<u8> {
    (0..len).map(|i| i as u8).collect()
}

impl Samples {
    fn add(&mut self, name: impl Into<String>, datagram: Vec<u8>) {
        self.all.push((name.into(), datagram));
    }

    fn registration(&mut self) {
        let request = |flags, care_of_address, extensions| {
            Message::Request(RegistrationRequest {
                flags,
                lifetime: Lifetime::from_secs(600),
                home_address: MOBILE_NODE,
                home_agent: HOME_AGENT,
                care_of_address,
                identification: IDENTIFICATION,
                extensions,
            })
        };
        let mobile_home = |bytes: &mut Vec<u8>, algorithm| {
            append_authentication(
                bytes,
                AuthenticationKind::MobileHome,
                Spi(256),
                algorithm,
                MOBILE_HOME_KEY,
            );
        };
        let foreign_home = |bytes: &mut Vec<u8>| {
            let kind = AuthenticationKind::ForeignHome;
            append_authentication(bytes, kind, Spi(0x0001_0000), Algorithm::HmacSha256, FOREIGN_HOME_KEY);
        };
        let ports = (1024, mip4::PORT);

        let co_located = RequestFlags::DECAPSULATION_BY_MOBILE_NODE.with(RequestFlags::REVERSE_TUNNELING);
        let mut bytes = request(co_located, CO_LOCATED, Vec::new()).emit();
        mobile_home(&mut bytes, Algorithm::HmacMd5);
        self.add("request_co_located", udp(CO_LOCATED, HOME_AGENT, ports, &bytes));

        let mut bytes = request(RequestFlags::REVERSE_TUNNELING, FOREIGN_AGENT, Vec::new()).emit();
        mobile_home(&mut bytes, Algorithm::HmacSha256);
        Extension::EncapsulatingDeliveryStyle.emit(&mut bytes);
        let kind = AuthenticationKind::MobileForeign;
        append_authentication(&mut bytes, kind, Spi(300), Algorithm::HmacMd5, MOBILE_FOREIGN_KEY);
        self.add("request_to_foreign_agent", udp(MOBILE_NODE, FOREIGN_AGENT, ports, &bytes));

        let mut bytes = request(RequestFlags::REVERSE_TUNNELING, FOREIGN_AGENT, Vec::new()).emit();
        mobile_home(&mut bytes, Algorithm::HmacSha256);
        foreign_home(&mut bytes);
        self.add("request_relayed", udp(FOREIGN_AGENT, HOME_AGENT, (mip4::PORT, mip4::PORT), &bytes));

        let unknown = UnknownExtension::new(131, b"mn@example.net").map(Extension::Unknown);
        let mut bytes = request(RequestFlags(0xfa), CO_LOCATED, unknown.into_iter().collect()).emit();
        mobile_home(&mut bytes, Algorithm::HmacMd5);
        self.add("request_every_flag_and_nai", udp(MOBILE_NODE, HOME_AGENT, ports, &bytes));

        let report = PathReport {
            downlink: Some(DataRate::from_bits_per_second(9_600)),
            uplink: Some(DataRate::from_bits_per_second(14_400)),
            round_trip: Some(Duration::from_millis(700)),
            old_path_lost: Some(true),
            repeated_for: Duration::ZERO,
        };
        let foreign = VendorExtension::new(9, 0x0102, b"somebody else's").map(Extension::Vendor);
        let extensions = foreign.into_iter().chain([report.extension()]).collect();
        let mut bytes = request(co_located, CO_LOCATED, extensions).emit();
        mobile_home(&mut bytes, Algorithm::HmacMd5);
        self.add("request_with_path", udp(CO_LOCATED, HOME_AGENT, ports, &bytes));

        let deregister = Message::Request(RegistrationRequest {
            flags: RequestFlags::default(),
            lifetime: Lifetime::ZERO,
            home_address: MOBILE_NODE,
            home_agent: HOME_AGENT,
            care_of_address: MOBILE_NODE,
            identification: IDENTIFICATION,
            extensions: Vec::new(),
        });
        let mut bytes = deregister.emit();
        mobile_home(&mut bytes, Algorithm::HmacMd5);
        self.add("request_deregister", udp(MOBILE_NODE, HOME_AGENT, ports, &bytes));

        for code in ReplyCode::ALL {
            let reply = RegistrationReply {
                code: *code,
                lifetime: if code.is_accepted() { Lifetime::INFINITE } else { Lifetime::ZERO },
                home_address: MOBILE_NODE,
                home_agent: HOME_AGENT,
                identification: IDENTIFICATION,
                extensions: Vec::new(),
            };
            let mut bytes = Message::Reply(reply).emit();
            mobile_home(&mut bytes, Algorithm::HmacMd5);
            foreign_home(&mut bytes);
            let ports = (mip4::PORT, mip4::PORT);
            self.add(format!("reply_{}", code.number()), udp(HOME_AGENT, FOREIGN_AGENT, ports, &bytes));
        }
    }

    /// A visitor has moved; a correspondent is told, and asks again.
    fn route_optimization(&mut self) {
        let (kind, spi) = (AuthenticationKind::RouteOptimization, Spi(258));
        let signed = |message: Message| {
            let mut bytes = message.emit();
            append_authentication(&mut bytes, kind, spi, Algorithm::HmacMd5, ROUTE_OPTIMIZATION_KEY);
            bytes
        };
        let ports = (mip4::PORT, mip4::PORT);
        let (home_address, identification) = (MOBILE_NODE, IDENTIFICATION);

        let notification = PreviousForeignAgent::authenticated(
            Lifetime::from_secs(580),
            PREVIOUS_AGENT,
            FOREIGN_AGENT,
            (home_address, identification),
            (spi, Algorithm::HmacMd5, ROUTE_OPTIMIZATION_KEY),
        );
        let mut bytes = Message::Request(RegistrationRequest {
            flags: RequestFlags::default(),
            lifetime: Lifetime::from_secs(600),
            home_address,
            home_agent: HOME_AGENT,
            care_of_address: FOREIGN_AGENT,
            identification,
            extensions: Vec::new(),
        })
        .emit();
        let mobile_home = AuthenticationKind::MobileHome;
        append_authentication(&mut bytes, mobile_home, Spi(256), Algorithm::HmacMd5, MOBILE_HOME_KEY);
        Extension::PreviousForeignAgent(notification.clone()).emit(&mut bytes);
        let mobile_foreign = AuthenticationKind::MobileForeign;
        append_authentication(&mut bytes, mobile_foreign, Spi(300), Algorithm::HmacMd5, MOBILE_FOREIGN_KEY);
        self.add("request_notifying", udp(MOBILE_NODE, FOREIGN_AGENT, ports, &bytes));

        let bytes = Message::BindingUpdate(notification.update(home_address, identification)).emit();
        self.add("binding_update_notified", udp(FOREIGN_AGENT, PREVIOUS_AGENT, ports, &bytes));

        let warning = BindingWarning { home_address, target: CORRESPONDENT, extensions: Vec::new() };
        let bytes = Message::BindingWarning(warning).emit();
        self.add("binding_warning", udp(PREVIOUS_AGENT, HOME_AGENT, ports, &bytes));

        let update = BindingUpdate {
            acknowledge: true,
            minimal_encapsulation: true,
            gre: false,
            lifetime: Lifetime::from_secs(599),
            home_address,
            care_of_address: FOREIGN_AGENT,
            identification: Some(identification),
            extensions: Vec::new(),
        };
        let bytes = signed(Message::BindingUpdate(update.clone()));
        self.add("binding_update", udp(HOME_AGENT, CORRESPONDENT, ports, &bytes));
        let bare = BindingUpdate { acknowledge: false, identification: None, ..update };
        let bytes = signed(Message::BindingUpdate(bare));
        self.add("binding_update_bare", udp(HOME_AGENT, CORRESPONDENT, ports, &bytes));

        let answer =
            BindingAcknowledge { negative: true, home_address, identification, extensions: Vec::new() };
        let bytes = signed(Message::BindingAcknowledge(answer));
        self.add("binding_acknowledge", udp(CORRESPONDENT, HOME_AGENT, ports, &bytes));

        let request = BindingRequest { home_address, identification, extensions: Vec::new() };
        let bytes = signed(Message::BindingRequest(request));
        self.add("binding_request", udp(CORRESPONDENT, HOME_AGENT, ports, &bytes));
    }

    /// A mobile node asks by its own address whether packets get through, and is answered.
    fn path_probes(&mut self) {
        let counts =
            PathCounts { packets_sent: 7, packets_received: 9, bytes_sent: 700, bytes_received: 9000 };
        let probe = PathProbe {
            kind: PathProbeKind::Probe,
            home_address: MOBILE_NODE,
            sequence: 3,
            nonce: 0xe5a1_b2c3_8000_0001,
            counts: Some(counts),
            extensions: Vec::new(),
        };
        let answer = PathProbe { kind: PathProbeKind::Answer, counts: None, ..probe.clone() };
        for (name, message, (source, destination)) in [
            ("path_probe", probe, (CO_LOCATED, HOME_AGENT)),
            ("path_probe_answer", answer, (HOME_AGENT, CO_LOCATED)),
        ] {
            let mut bytes = Message::PathProbe(message).emit();
            let kind = AuthenticationKind::MobileHome;
            append_authentication(&mut bytes, kind, Spi(256), Algorithm::HmacMd5, MOBILE_HOME_KEY);
            self.add(name, udp(source, destination, (mip4::PORT, mip4::PORT), &bytes));
        }
    }

    fn discovery(&mut self) {
        let solicitation = IcmpMessage::RouterSolicitation(RouterSolicitation);
        self.add("solicitation", icmp(MOBILE_NODE, ALL_AGENTS, 1, &solicitation));

        let agent = MobilityAgentAdvertisement {
            sequence: 0xfffe,
            registration_lifetime: Lifetime::from_secs(600),
            flags: AgentFlags(0xfdc0),
            care_of_addresses: vec![FOREIGN_AGENT, CO_LOCATED],
        };
        let mut advertisement = RouterAdvertisement {
            no_common_traffic: false,
            lifetime_secs: 3,
            routers: vec![
                RouterAddress { address: FOREIGN_AGENT, preference: 0 },
                RouterAddress { address: Ipv4Addr::new(192, 0, 2, 10), preference: i32::MIN },
            ],
            extensions: vec![
                AdvertisementExtension::MobilityAgent(agent.clone()),
                AdvertisementExtension::PrefixLengths(vec![24, 16]),
            ],
        };
        let message = IcmpMessage::RouterAdvertisement(advertisement.clone());
        self.add("advertisement", icmp(FOREIGN_AGENT, ALL_SYSTEMS, 1, &message));

        let home = MobilityAgentAdvertisement {
            flags: AgentFlags::HOME_AGENT,
            care_of_addresses: Vec::new(),
            ..agent
        };
        advertisement.no_common_traffic = true;
        advertisement.routers.truncate(1);
        advertisement.extensions = vec![
            AdvertisementExtension::MobilityAgent(home),
            AdvertisementExtension::PrefixLengths(vec![24]),
            AdvertisementExtension::OneBytePadding,
        ];
        let message = IcmpMessage::RouterAdvertisement(advertisement);
        self.add("advertisement_padded", icmp(HOME_AGENT, ALL_SYSTEMS, 1, &message));
    }

    /// An address is looked for, offered, asked for, granted; found in use, refused, asked for again, given back.
    fn dhcp(&mut self) {
        let server = FOREIGN_AGENT;
        let client = HardwareAddress::ethernet([0x02, 0, 0, 0, 0, 0x2a]);
        let message = |kind| DhcpMessage {
            client_identifier: (kind != MessageType::Offer && kind != MessageType::Ack)
                .then(|| vec![1, 0x02, 0, 0, 0, 0, 0x2a]),
            ..DhcpMessage::new(kind, 0xa1a2_a3a4, client)
        };
        let parameters = |kind| DhcpMessage {
            yiaddr: CO_LOCATED,
            prefix_length: Some(24),
            routers: vec![server],
            lease_time: Some(LeaseTime::from_secs(600)),
            server_identifier: Some(server),
            renewal_time: Some(LeaseTime::from_secs(300)),
            rebinding_time: Some(LeaseTime::from_secs(525)),
            ..message(kind)
        };
        let asking = |kind| DhcpMessage {
            parameter_requests: vec![1, 3, 51, 58, 59],
            max_message_size: Some(576),
            ..message(kind)
        };
        let about = |kind| DhcpMessage {
            requested_address: Some(CO_LOCATED),
            server_identifier: Some(server),
            ..message(kind)
        };
        let note = UnknownOption::new(56, b"in use").into_iter().collect();
        let up = [
            ("discover", DhcpMessage { broadcast: true, secs: 3, ..asking(MessageType::Discover) }),
            (
                "request",
                DhcpMessage {
                    requested_address: Some(CO_LOCATED),
                    server_identifier: Some(server),
                    lease_time: Some(LeaseTime::INFINITE),
                    ..asking(MessageType::Request)
                },
            ),
            ("decline", DhcpMessage { others: note, ..about(MessageType::Decline) }),
        ];
        for (name, message) in up {
            let ports = (dhcp::CLIENT_PORT, dhcp::SERVER_PORT);
            let datagram = udp(Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST, ports, &message.emit());
            self.add(format!("dhcp_{name}"), datagram);
        }
        let release =
            DhcpMessage { ciaddr: CO_LOCATED, requested_address: None, ..about(MessageType::Release) };
        let ports = (dhcp::CLIENT_PORT, dhcp::SERVER_PORT);
        self.add("dhcp_release", udp(CO_LOCATED, server, ports, &release.emit()));
        let long = UnknownOption::new(43, &payload(300)).into_iter().collect();
        let down = [
            ("offer", DhcpMessage { broadcast: true, ..parameters(MessageType::Offer) }, Ipv4Addr::BROADCAST),
            ("ack", parameters(MessageType::Ack), CO_LOCATED),
            ("ack_long", DhcpMessage { others: long, ..parameters(MessageType::Ack) }, CO_LOCATED),
            (
                "nak",
                DhcpMessage { server_identifier: Some(server), ..message(MessageType::Nak) },
                Ipv4Addr::BROADCAST,
            ),
        ];
        for (name, message, destination) in down {
            let ports = (dhcp::SERVER_PORT, dhcp::CLIENT_PORT);
            self.add(format!("dhcp_{name}"), udp(server, destination, ports, &message.emit()));
        }
    }

    fn icmp(&mut self) {
        let echo = Echo { identifier: 0x1234, sequence: 7, data: payload(33) };
        let request = IcmpMessage::EchoRequest(echo.clone());
        self.add("echo_request", icmp(CORRESPONDENT, MOBILE_NODE, 64, &request));
        self.add("echo_reply", icmp(MOBILE_NODE, CORRESPONDENT, 64, &IcmpMessage::EchoReply(echo)));

        let quoted = quote(&udp(CORRESPONDENT, MOBILE_NODE, (5000, 6000), &payload(8)));
        let expired = IcmpMessage::TimeExceeded(TimeExceeded {
            code: TimeExceededCode::InTransit,
            quoted: quoted.clone(),
        });
        self.add("time_exceeded", icmp(HOME_AGENT, CORRESPONDENT, 64, &expired));
        for number in 0..=15 {
            let code = UnreachableCode::from_number(number);
            let next_hop_mtu = if code == UnreachableCode::FragmentationNeeded { 1480 } else { 0 };
            let message = DestinationUnreachable { code, next_hop_mtu, quoted: quoted.clone() };
            let message = IcmpMessage::DestinationUnreachable(message);
            self.add(format!("unreachable_{number}"), icmp(HOME_AGENT, CORRESPONDENT, 64, &message));
        }
    }

    fn tcp(&mut self) {
        let base = Segment {
            source_port: 80,
            destination_port: 40000,
            seq: SeqNumber(0xffff_fff0),
            ack: SeqNumber(0x0102_0304),
            window: 0xfaf0,
            ..Segment::default()
        };
        let syn = Segment {
            flags: Flags::SYN.with(Flags::ECE).with(Flags::CWR),
            ack: SeqNumber(0),
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 0x0a0b_0c0d, echo: 0 }),
            ..base
        };
        self.add("tcp_syn", tcp(syn, &[]));
        self.add("tcp_syn_without_timestamps", tcp(Segment { timestamps: None, ..syn }, &[]));
        self.add("tcp_data", tcp(Segment { flags: Flags::ACK.with(Flags::PSH), ..base }, &payload(101)));
        let stamps = Some(Timestamps { value: 1, echo: 0x0a0b_0c0d });
        let mut sack = Segment { flags: Flags::ACK, timestamps: stamps, ..base };
        for block in 1..=3 {
            let left = sack.ack.plus(block * 5000);
            sack.sack.push(left, left.plus(1460));
        }
        self.add("tcp_sack", tcp(sack, &[]));
        self.add("tcp_fin", tcp(Segment { flags: Flags::FIN.with(Flags::ACK), ..base }, &payload(3)));
        self.add("tcp_reset", tcp(Segment { flags: Flags::RST, ack: SeqNumber(0), ..base }, &[]));
    }

    fn tunnels(&mut self) {
        let tunnel =
            |encapsulation| Tunnel { encapsulation, entry: HOME_AGENT, exit: FOREIGN_AGENT, ttl: 64 };
        let inner = udp(CORRESPONDENT, MOBILE_NODE, (5000, 6000), &payload(40));
        let own = udp(HOME_AGENT, MOBILE_NODE, (5000, 6000), &payload(40));
        for (name, encapsulation) in [
            ("ip_in_ip", Encapsulation::IpInIp),
            ("minimal", Encapsulation::Minimal),
            ("gre", Encapsulation::Gre { key: None, sequence: None }),
            ("gre_key", Encapsulation::Gre { key: Some(0xc0ff_ee00), sequence: None }),
            ("gre_sequence", Encapsulation::Gre { key: None, sequence: Some(8) }),
            ("gre_key_sequence", Encapsulation::Gre { key: Some(0xc0ff_ee00), sequence: Some(9) }),
        ] {
            let tunnel = tunnel(encapsulation);
            let forwarded = tunnel.encapsulate(&inner, Origin::Forwarded, 0x0102);
            self.all.extend(forwarded.map(|datagram| (name.to_owned(), datagram)));
            let local = tunnel.encapsulate(&own, Origin::Local, 0x0103);
            self.all.extend(local.map(|datagram| (format!("{name}_local"), datagram)));
        }

        let large = udp(CORRESPONDENT, MOBILE_NODE, (5000, 6000), &payload(1200));
        for (at, datagram) in fragment(&large, 576).unwrap_or_default().into_iter().enumerate() {
            self.add(format!("fragment_{at}"), datagram);
        }

        let whole =
            tcp(Segment { source_port: 80, destination_port: 40000, ..Segment::default() }, &payload(50));
        let quoted = tunnel(Encapsulation::IpInIp).encapsulate(&whole, Origin::Forwarded, 0x0104);
        let too_big = IcmpMessage::DestinationUnreachable(DestinationUnreachable {
            code: UnreachableCode::FragmentationNeeded,
            next_hop_mtu: 100,
            quoted: quote(&quoted.unwrap_or_default()),
        });
        let router = Ipv4Addr::new(203, 0, 113, 1);
        self.add("error_in_tunnel", icmp(router, HOME_AGENT, 64, &too_big));
        if let Ok(relayed) = relay_error(&too_big, HOME_AGENT, true) {
            let message = IcmpMessage::DestinationUnreachable(relayed.message);
            self.add("error_relayed", icmp(HOME_AGENT, relayed.to, 64, &message));
        }
    }
}
