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
use careof_lab::{Clock, Host};
use careof_link::{Config, QueueConfig};
use careof_mobility::v4::{DeliveryMethod, HomeAgentConfig, Notice, PolicyTable, ServedMobileNode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::mip4::PathReport;
use careof_wire::{Flags, Segment, SeqNumber, protocol};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, socket,
};

/// A second mobile node.
const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 8);

/// Sends datagrams with any header.
pub(super) struct Forger(OwnedFd);

impl Forger {
    pub(super) fn on(host: &Host) -> Self {
        let opened =
            host.run(|| socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Raw));
        Self(opened.unwrap().unwrap())
    }

    /// As [`Self::on`], by the routes of an address of the host.
    pub(super) fn at(host: &Host, address: Ipv4Addr) -> Self {
        let forger = Self::on(host);
        let own = SockaddrIn::from(std::net::SocketAddrV4::new(address, 0));
        nix::sys::socket::bind(forger.0.as_raw_fd(), &own).unwrap();
        forger
    }

    /// A segment from the correspondent's port to a mobile node's.
    pub(super) fn send(&self, port: u16, to: (Ipv4Addr, u16), segment: &Segment, payload: &[u8]) {
        self.send_from((CORRESPONDENT, port), to, segment, payload);
    }

    /// A segment from any end to any other.
    pub(super) fn send_from(
        &self,
        (source, source_port): (Ipv4Addr, u16),
        (destination, destination_port): (Ipv4Addr, u16),
        segment: &Segment,
        payload: &[u8],
    ) {
        let payload_len = payload.len() as u16;
        let segment = Segment { source_port, destination_port, payload_len, ..*segment };
        let header = Ipv4Header {
            source,
            destination,
            protocol: protocol::TCP,
            ttl: 64,
            payload_len: segment.header_len() + payload_len,
            ..Ipv4Header::default()
        };
        let mut datagram = Vec::new();
        header.emit(&mut datagram);
        segment.emit(source, destination, payload, &mut datagram);
        self.put(destination, &datagram);
    }

    /// As [`Self::send`], with a wrong checksum: the mobile node's host does not answer, be it with a reset.
    pub(super) fn send_broken(&self, port: u16, (mobile, mobile_port): (Ipv4Addr, u16), segment: &Segment) {
        let (source_port, destination_port) = (port, mobile_port);
        let segment = Segment { source_port, destination_port, payload_len: 100, ..*segment };
        let payload_len = segment.header_len() + 100;
        let (source, destination) = (CORRESPONDENT, mobile);
        let mut datagram = Vec::new();
        Ipv4Header { source, destination, protocol: protocol::TCP, payload_len, ..Ipv4Header::default() }
            .emit(&mut datagram);
        segment.emit(source, destination, &[7; 100], &mut datagram);
        // The last byte is the payload's.
        datagram.last_mut().into_iter().for_each(|byte| *byte ^= 0x55);
        self.put(destination, &datagram);
    }

    fn put(&self, destination: Ipv4Addr, datagram: &[u8]) {
        let to = SockaddrIn::from(std::net::SocketAddrV4::new(destination, 0));
        // What finds no room on the way out was sent in vain, as on any link.
        let _ = sendto(self.0.as_raw_fd(), datagram, &to, MsgFlags::empty());
    }
}

/// What a host hears of TCP.
pub(super) struct Overheard(OwnedFd);

impl Overheard {
    pub(super) fn at(host: &Host) -> Self {
        let open = || socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_NONBLOCK, SockProtocol::Tcp);
        Self(host.run(open).unwrap().unwrap())
    }

    fn next(&self, buffer: &mut [u8]) -> Option<(Ipv4Addr, Segment)> {
        let len = recv(self.0.as_raw_fd(), buffer, MsgFlags::empty()).ok()?;
        let (header, payload) = Ipv4Header::parse(buffer.get(..len)?).ok()?;
        Some((header.source, Segment::peek(payload).ok()?.0))
    }

    /// Segments from an address since this was last asked, without those of its port `except`.
    pub(super) fn from(&self, address: Ipv4Addr, except: u16) -> u64 {
        let (mut buffer, mut count) = ([0; 2048], 0);
        while let Some((source, segment)) = self.next(&mut buffer) {
            count += u64::from(source == address && segment.source_port != except);
        }
        count
    }

    /// The numbers of the mobile node's connection by this port: of its own data, and of the other end's.
    pub(super) fn numbers(&self, port: u16) -> [SeqNumber; 2] {
        let (clock, mut buffer) = (Clock::start(), [0; 2048]);
        loop {
            match self.next(&mut buffer) {
                Some((HOME, segment)) if segment.source_port == port && segment.ack.0 != 0 => {
                    return [segment.seq, segment.ack];
                }
                Some(_) => {}
                None => sleep(Duration::from_millis(1)),
            }
            assert!(clock.now().since_start() < PATIENCE, "nothing of port {port} was heard");
        }
    }
}

/// Numbers that no window reaches from one of a connection.
pub(super) fn far_from(number: SeqNumber, n: u32) -> SeqNumber {
    number.plus((1 << 30) + scattered(n) % (1 << 31))
}

/// As long an assist knows a connection of which nothing is acknowledged; afterwards it believes what comes.
pub(super) const KNOWN: Duration = Duration::from_secs(30);

/// Numbers that lead nowhere in particular.
pub(super) fn scattered(n: u32) -> u32 {
    n.wrapping_mul(0x9e37_79b9)
}

pub(super) fn counter(status: &Status, name: &str) -> u64 {
    status.counters.get(name).copied().unwrap_or(0)
}

pub(super) fn flow_of(status: &Status, mobile_port: u16) -> Option<AssistFlowStatus> {
    let flows = status.assist.as_ref().unwrap().flows.iter();
    flows.clone().find(|flow| flow.port == mobile_port && flow.peer_port == 80).cloned()
}

/// A download of the mobile node's, which reads what comes.
pub(super) struct Download {
    pub(super) port: u16,
    server: JoinHandle<()>,
    client: JoinHandle<Vec<u8>>,
    arrived: std::sync::mpsc::Receiver<usize>,
}

fn download(world: &World, bytes: usize) -> Download {
    download_between(&world.correspondent, &world.mobile, bytes)
}

pub(super) fn download_between(correspondent: &Host, mobile: &Host, bytes: usize) -> Download {
    let listener = correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let server = start(move || listener.accept().unwrap().0.write_all(&pattern(bytes)).unwrap());
    let mut client = mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
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
    pub(super) fn wait_for(&self, bytes: usize) {
        while self.arrived.recv_timeout(PATIENCE).unwrap() < bytes {}
    }

    /// Waits for the end.
    pub(super) fn received(self) -> Vec<u8> {
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
        let overheard = Overheard::at(&world.correspondent);
        let transfer = download(&world, BYTES);
        let [own, theirs] = overheard.numbers(transfer.port);
        transfer.wait_for(BYTES / 3);
        let cut = Clock::start();
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
                    let (seq, ack) = (far_from(theirs, n), far_from(own, !n));
                    forger.send(80, (HOME, port), &Segment { flags, seq, ack, ..numbers }, &[]);
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
        let is_known = cut.now().since_start() < KNOWN;
        let is_kept = kept(&status) >= before.min(10);
        assert!(is_kept || !is_known, "{before} before, {:?} now", flow_of(&status, port));
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
