//! Segments in others' names, and mobile nodes that lie about their path, while the home agent assists a transfer.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::registration::{Asked, register};
use crate::support::*;
use careof_agent::{AssistFlowStatus, HomeSetup, Hooks, Status};
use careof_assist::{Config as Assist, Limits, PathQueue, Place, QueueAtHandover, Replay};
use careof_base::DataRate;
use careof_lab::Host;
use careof_link::{Config, QueueConfig};
use careof_mobility::v4::{DeliveryMethod, HomeAgentConfig, Notice, PolicyTable, ServedMobileNode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::PathReport;
use careof_wire::{Flags, Segment, SeqNumber, protocol};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, sendto, socket,
};

/// A second mobile node.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);

/// Sends datagrams with any header.
struct Forger(OwnedFd);

impl Forger {
    fn on(host: &Host) -> Self {
        let opened =
            host.run(|| socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw));
        Self(opened.unwrap().unwrap())
    }

    /// A segment from the correspondent's port to a mobile node's.
    fn send(&self, port: u16, (mobile, mobile_port): (Ipv4Addr, u16), segment: &Segment, payload: &[u8]) {
        let mut segment = *segment;
        (segment.source_port, segment.destination_port) = (port, mobile_port);
        segment.payload_len = payload.len() as u16;
        let header = Ipv4Header {
            source: CORRESPONDENT,
            destination: mobile,
            protocol: protocol::TCP,
            ttl: 64,
            payload_len: segment.header_len() + segment.payload_len,
            ..Ipv4Header::default()
        };
        let mut datagram = Vec::new();
        header.emit(&mut datagram);
        segment.emit(CORRESPONDENT, mobile, payload, &mut datagram);
        let [a, b, c, d] = mobile.octets();
        let to = SockaddrIn::new(a, b, c, d, 0);
        // What finds no room on the way out was sent in vain, as on any link.
        let _ = sendto(self.0.as_raw_fd(), &datagram, &to, MsgFlags::empty());
    }
}

/// Numbers that lead nowhere in particular.
fn scattered(n: u32) -> u32 {
    n.wrapping_mul(0x9e37_79b9)
}

fn counter(status: &Status, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

fn flow_of(status: &Status, mobile_port: u16) -> Option<AssistFlowStatus> {
    let flows = status.assist.as_ref().unwrap().flows.iter();
    flows.clone().find(|flow| flow.port == mobile_port && flow.peer_port == 80).cloned()
}

/// A download of the mobile node's, which reads what comes.
struct Download {
    port: u16,
    server: JoinHandle<()>,
    client: JoinHandle<Vec<u8>>,
    arrived: std::sync::mpsc::Receiver<usize>,
}

fn download(world: &World, bytes: usize) -> Download {
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = start(move || listener.accept().unwrap().0.write_all(&pattern(bytes)).unwrap());
    let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    let port = client.local_addr().unwrap().port();
    let (tell, arrived) = std::sync::mpsc::channel();
    let client = start(move || {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        let (mut got, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        while let Ok(len @ 1..) = client.read(&mut buffer) {
            got.extend_from_slice(&buffer[..len]);
            let _ = tell.send(got.len());
        }
        got
    });
    Download { port, server, client, arrived }
}

impl Download {
    fn wait_for(&self, bytes: usize) {
        while self.arrived.recv_timeout(PATIENCE).unwrap() < bytes {}
    }

    /// Waits for the end.
    fn received(self) -> Vec<u8> {
        self.server.join().unwrap();
        self.client.join().unwrap()
    }
}

#[test]
fn a_transfer_in_an_outage_keeps_what_is_stored_for_it_whatever_others_send() {
    const BYTES: usize = 2_000_000;
    const ROOM: usize = 256;
    let Some(realm) = realm_or_skip() else { return };
    for method in [DeliveryMethod::ReverseTunnel, DeliveryMethod::Triangle] {
        let rate = DataRate::from_megabits_per_second(10);
        let path = Config { rate, delay: Duration::from_millis(5), ..Config::default() };
        let world = World::with(realm, &path, &path);
        // Nothing is old, however slow the machine is.
        let limits = Limits { flows: ROOM, idle: PATIENCE * 10, ..Limits::DEFAULT };
        let replay = Replay { age: PATIENCE * 10, ..Replay::DEFAULT };
        let assist = Assist { replay: Some(replay), limits, ..Assist::none(Place::HomeAgent) };
        let home = world.home_agent(HomeSetup { assist: Some(assist), ..home_setup() }, Hooks::default());
        let mut setup = mobile_setup();
        setup.config.policy = PolicyTable::new(method, []);
        setup.config.reverse_tunnel = method == DeliveryMethod::ReverseTunnel;
        let mobile = world.mobile_node(setup);
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        let transfer = download(&world, BYTES);
        transfer.wait_for(BYTES / 3);
        world.cut(world.wlan);
        // Until nothing comes any more but repetitions.
        let port = transfer.port;
        let kept = |status: &Status| flow_of(status, port).map_or(0, |flow| flow.packets);
        home.wait_until("keeps a flight", |status| kept(status) >= 10);
        sleep(Duration::from_millis(300));
        let before = kept(&home.status());
        let forger = Forger::on(&world.correspondent);
        let seen = counter(&home.status(), "assist-flows");
        for n in 0..20 * ROOM as u32 {
            let numbers = Segment {
                seq: SeqNumber(scattered(n)),
                ack: SeqNumber(scattered(!n)),
                window: 500,
                ..Segment::default()
            };
            let segment = Segment { flags: if n % 2 == 0 { Flags::ACK } else { Flags::SYN }, ..numbers };
            forger.send(1_000 + n as u16, (HOME, 443), &segment, &[]);
            if method == DeliveryMethod::ReverseTunnel && n % 50 == 0 {
                for flags in [Flags::RST, Flags::SYN, Flags::SYN.with(Flags::ACK), Flags::ACK] {
                    forger.send(80, (HOME, port), &Segment { flags, ..numbers }, &[]);
                }
            }
            if n % 100 == 0 {
                sleep(Duration::from_millis(1));
            }
        }
        let status = home
            .wait_until("looked at them", |status| counter(status, "assist-flows") >= seen + 2 * ROOM as u64);
        assert!(counter(&status, "assist-flows-evicted") > 0, "{:#?}", status.counters);
        assert!(status.assist.as_ref().unwrap().flows.len() <= ROOM);
        assert!(kept(&status) >= before.min(10), "{before} before, {:?} now", flow_of(&status, port));
        mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
        mobile.wait_registered("gsm0");
        let received = transfer.received();
        assert!(received == pattern(BYTES), "{} bytes of {BYTES} are what was sent", received.len());
        assert!(counter(&home.status(), "assist-replayed") > 0);
    }
}

#[test]
fn a_mobile_node_that_lies_about_its_path_harms_no_other() {
    const BYTES: usize = 2_000_000;
    let Some(realm) = realm_or_skip() else { return };
    let queue =
        PathQueue { queue: QueueConfig::default(), margin: 0.05, at_handover: QueueAtHandover::ReRoute };
    let queued = Assist { path_queue: Some(queue), ..Assist::none(Place::HomeAgent) };
    for assist in [Assist::default_set(Place::HomeAgent), queued] {
        let path = Config {
            rate: DataRate::from_megabits_per_second(10),
            delay: Duration::from_millis(5),
            ..Config::default()
        };
        let world = World::with(realm, &path, &path);
        let setup = home_setup();
        let limits = Limits { packets: 2_000, ..Limits::DEFAULT };
        let mobile_nodes = [HOME, OTHER].map(|node| ServedMobileNode::new(node, security())).to_vec();
        let config = HomeAgentConfig { mobile_nodes, ..setup.config };
        let home = world.home_agent(
            HomeSetup { assist: Some(Assist { limits, ..assist }), config, ..setup },
            Hooks::default(),
        );
        let mobile = world.mobile_node(mobile_setup());
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        let transfer = download(&world, BYTES);
        let (liar, forger) = (udp(&world.correspondent, CORRESPONDENT, 0), Forger::on(&world.correspondent));
        let rates = [None, Some(0), Some(100), Some(u64::MAX)];
        let times = [None, Some(Duration::ZERO), Some(Duration::MAX)];
        let mut seq = 0u32;
        for (n, (down, time)) in rates.iter().flat_map(|down| times.map(|time| (*down, time))).enumerate() {
            let report = PathReport {
                downlink: down.map(DataRate::from_bits_per_second),
                uplink: rates[n % 4].map(DataRate::from_bits_per_second),
                round_trip: time,
                old_path_lost: [None, Some(true), Some(false)][n % 3],
                repeated_for: Duration::ZERO,
            };
            // The Identification is a time, of which no two may be the same.
            sleep(Duration::from_millis(2));
            let extensions = vec![report.extension()];
            let asked = Asked { extensions, ..Asked::new(OTHER, CORRESPONDENT) };
            assert_eq!(register(&liar, asked), 0, "{report:?}");
            for _ in 0..200 {
                let segment = Segment {
                    flags: Flags::ACK,
                    seq: SeqNumber(seq),
                    ack: SeqNumber(1),
                    window: 500,
                    ..Segment::default()
                };
                forger.send(80, (OTHER, 7), &segment, &[7; 500]);
                seq += 500;
            }
            let stored = home.status().assist.unwrap().stored_packets;
            assert!(stored <= 2_000, "{stored}");
        }
        let received = transfer.received();
        assert!(received == pattern(BYTES), "{} bytes of {BYTES} are what was sent", received.len());
    }
}
