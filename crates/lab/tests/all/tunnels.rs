//! Tunnelled packets through the kernel: headers as asked, nothing answered in our name, errors that say what to do.

use std::net::Ipv4Addr;

use crate::support::processes::wait_until;
use crate::support::veth::{connect, eventually, host, index_of, is_silent, route_all, wait_for};
use crate::support::{LEFT, RIGHT, Udp, realm_or_skip};
use careof_lab::{
    Departure, Flushed, Frame, Host, IcmpSocket, Identifier, Ipv4PacketSocket, Netlink, OffloadTun, Outer,
    Proof, ReceiveBatch, Route, SendBatch, SendFailureReason, TunnelSocket, set_sysctl,
};
use careof_wire::icmp::{DestinationUnreachable, IcmpMessage, QuotedDatagram, UnreachableCode};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol::{GRE, IP_IN_IP, IPV6, MINIMAL};
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel, relay_error};
use careof_wire::udp::UdpHeader;
use nix::errno::Errno;
use nix::poll::PollFlags;

const EVERY: [Encapsulation; 3] =
    [Encapsulation::IpInIp, Encapsulation::Minimal, Encapsulation::Gre { key: Some(7), sequence: None }];
/// Whose packets go through the tunnels.
const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);
const HOME: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);

fn pair() -> Option<(Host, Host)> {
    let realm = realm_or_skip()?;
    let (left, right) = (host(realm, "left"), host(realm, "right"));
    connect("link0", (&left, LEFT), (&right, RIGHT), 1500);
    Some((left, right))
}

fn open(host: &Host, protocol: u8) -> TunnelSocket {
    host.run(move || TunnelSocket::open(protocol)).unwrap().unwrap()
}

/// How many raw sockets there are on a host.
fn raw_sockets(host: &Host) -> usize {
    let table = host.run(|| std::fs::read_to_string("/proc/thread-self/net/raw")).unwrap().unwrap();
    // The first line is a heading.
    table.lines().count() - 1
}

fn outer(protocol: u8) -> Outer {
    Outer {
        source: LEFT,
        destination: RIGHT,
        protocol,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        interface: None,
    }
}

/// A datagram of UDP of as many bytes.
fn datagram(len: usize, dont_fragment: bool) -> Vec<u8> {
    let payload: Vec<u8> = (0..len - 28).map(|i| (i % 251) as u8).collect();
    let header = UdpHeader { source_port: 1, destination_port: 2, payload_len: payload.len() as u16 };
    let mut transport = Vec::new();
    header.emit(CORRESPONDENT, HOME, &payload, &mut transport);
    let mut bytes = Vec::new();
    Ipv4Header {
        source: CORRESPONDENT,
        destination: HOME,
        protocol: 17,
        tos: 0x28,
        ttl: 60,
        identification: 99,
        dont_fragment,
        payload_len: transport.len() as u16,
        ..Ipv4Header::default()
    }
    .emit(&mut bytes);
    bytes.extend(transport);
    bytes
}

/// What follows the outer header.
fn wrapped(encapsulation: Encapsulation, inner: &[u8]) -> Vec<u8> {
    let tunnel = Tunnel { encapsulation, entry: LEFT, exit: RIGHT, ttl: 64 };
    tunnel.encapsulate(inner, Origin::Local, 0).unwrap().split_off(20)
}

/// Sends one packet; why it failed, if it did.
fn send(socket: &TunnelSocket, outer: &Outer, payload: &[u8]) -> Option<SendFailureReason> {
    let mut batch = SendBatch::new(1);
    assert!(batch.push(outer, payload));
    let mut reason = None;
    let flushed = socket.send_batch(&mut batch, |failure| reason = Some(failure.reason)).unwrap();
    assert_eq!((flushed, batch.len()), (Flushed::All, 0));
    reason
}

/// The next packets, each with its outer header and the datagram inside.
fn receive(socket: &TunnelSocket) -> Vec<(u32, Ipv4Header, Vec<u8>)> {
    let mut batch = ReceiveBatch::new(64);
    assert!(wait_for(socket, PollFlags::POLLIN), "nothing comes");
    socket.receive_batch(&mut batch).unwrap();
    let packets = batch.packets().map(|packet| {
        let interface = packet.interface;
        let out = packet.decapsulate().unwrap();
        (interface, out.outer, out.datagram.to_vec())
    });
    packets.collect()
}

#[test]
fn the_outer_header_is_as_asked() {
    let Some((left, right)) = pair() else { return };
    for encapsulation in EVERY {
        let protocol = encapsulation.protocol();
        let (sender, receiver) = (open(&left, protocol), open(&right, protocol));
        let inner = datagram(500, true);
        for (tos, ttl, dont_fragment) in [(0, 64, true), (0xb9, 3, false), (2, 255, true)] {
            let asked = Outer { tos, ttl, dont_fragment, ..outer(protocol) };
            assert_eq!(send(&sender, &asked, &wrapped(encapsulation, &inner)), None);
            let [(interface, header, inside)] = &receive(&receiver)[..] else { panic!() };
            assert_eq!(*interface, index_of(&right, "link0"));
            assert_eq!((header.source, header.destination, header.protocol), (LEFT, RIGHT, protocol));
            assert_eq!((header.tos, header.ttl, header.dont_fragment), (tos, ttl, dont_fragment));
            assert_eq!(header.identification == 0, dont_fragment, "only what may be fragmented needs one");
            if encapsulation != Encapsulation::Minimal {
                assert_eq!(inside, &inner);
            }
        }
    }
}

#[test]
fn many_packets_a_call_arrive_in_order() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (open(&left, IP_IN_IP), open(&right, IP_IN_IP));
    // What waits for the first answer to ARP is limited, to a little less than what follows.
    assert_eq!(send(&sender, &outer(IP_IN_IP), &datagram(100, true)), None);
    receive(&receiver);
    let mut batch = SendBatch::new(64);
    let lens: Vec<usize> = (0..300).map(|i| 100 + i).collect();
    let mut calls = 0;
    for &len in &lens {
        let inner = datagram(len, true);
        if !batch.push(&outer(IP_IN_IP), &inner) {
            sender.send_batch(&mut batch, |failure| panic!("{failure:?}")).unwrap();
            calls += 1;
            assert!(batch.is_empty() && batch.push(&outer(IP_IN_IP), &inner));
        }
    }
    sender.send_batch(&mut batch, |failure| panic!("{failure:?}")).unwrap();
    assert_eq!(calls, 4);
    let mut arrived = Vec::new();
    while arrived.len() < lens.len() {
        arrived.extend(receive(&receiver).into_iter().map(|(.., inside)| inside.len()));
    }
    assert_eq!(arrived, lens);
    assert_eq!(receiver.dropped_by_kernel().unwrap(), 0);
}

#[test]
fn an_open_socket_keeps_the_kernel_quiet_and_a_missing_one_is_told_of() {
    let Some((left, right)) = pair() else { return };
    for encapsulation in EVERY {
        let protocol = encapsulation.protocol();
        let sender = open(&left, protocol);
        let errors = left.run(|| IcmpSocket::open(&IcmpSocket::ERRORS)).unwrap().unwrap();
        let payload = wrapped(encapsulation, &datagram(200, true));
        let receiver = open(&right, protocol);
        assert_eq!(send(&sender, &outer(protocol), &payload), None);
        receive(&receiver);
        assert!(is_silent(&errors));
        assert_eq!(sender.next_error().unwrap(), None);

        drop(receiver);
        // A child of another test, until it executes its program, has this socket too.
        assert!(wait_until(|| raw_sockets(&right) == 0));
        assert_eq!(send(&sender, &outer(protocol), &payload), None);
        assert!(wait_for(&sender, PollFlags::POLLERR));
        let error = sender.next_error().unwrap().unwrap();
        assert_eq!((error.entry, error.exit, error.reporter), (LEFT, RIGHT, RIGHT));
        let IcmpMessage::DestinationUnreachable(DestinationUnreachable { code, .. }) = error.message else {
            panic!("{error:?}")
        };
        assert_eq!(code, UnreachableCode::Protocol);
        let relayed = relay_error(&error.message, LEFT, true).unwrap();
        assert_eq!((relayed.to, relayed.message.code), (CORRESPONDENT, UnreachableCode::Host));
        assert_eq!(sender.next_error().unwrap(), None);
        // What came of it is not held against the next one.
        let receiver = open(&right, protocol);
        assert_eq!(send(&sender, &outer(protocol), &payload), None);
        assert_eq!(receive(&receiver).len(), 1);
    }
}

#[test]
fn what_does_not_fit_is_refused_or_fragmented_as_df_says() {
    let Some((left, right)) = pair() else { return };
    for encapsulation in EVERY {
        let protocol = encapsulation.protocol();
        let (sender, receiver) = (open(&left, protocol), open(&right, protocol));
        for len in [1600, 9000] {
            let payload = wrapped(encapsulation, &datagram(len, false));
            let refused = send(&sender, &outer(protocol), &payload);
            assert_eq!(refused, Some(SendFailureReason::TooBig { path_mtu: 1500 }));
            let fragmented = Outer { dont_fragment: false, tos: 0x28, ttl: 60, ..outer(protocol) };
            assert_eq!(send(&sender, &fragmented, &payload), None);
            let [(_, header, inside)] = &receive(&receiver)[..] else { panic!() };
            assert_eq!((header.tos, header.ttl), (0x28, 60));
            assert_eq!(inside.len(), len);
            assert_eq!(inside[28..], datagram(len, false)[28..]);
        }
    }
}

#[test]
fn one_failure_in_a_batch_keeps_no_other_back() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (open(&left, IP_IN_IP), open(&right, IP_IN_IP));
    let mut batch = SendBatch::new(64);
    let unreachable = Outer { destination: Ipv4Addr::new(192, 0, 2, 1), ..outer(IP_IN_IP) };
    let other = Outer { protocol: GRE, ..outer(IP_IN_IP) };
    let gone = Outer { interface: Some(999), ..outer(IP_IN_IP) };
    let plan = [
        (outer(IP_IN_IP), 100),
        (outer(IP_IN_IP), 1600),
        (unreachable, 100),
        (outer(IP_IN_IP), 101),
        (other, 100),
    ];
    for (outer, len) in plan.into_iter().chain([(gone, 100), (outer(IP_IN_IP), 102)]) {
        assert!(batch.push(&outer, &datagram(len, true)));
    }
    let mut reasons = Vec::new();
    let flushed = sender.send_batch(&mut batch, |failure| {
        if failure.outer.protocol == IP_IN_IP {
            assert_eq!(failure.packet[20..], failure.datagram().unwrap()[..]);
        }
        reasons.push(failure.reason);
    });
    assert_eq!(flushed.unwrap(), Flushed::All);
    assert_eq!(reasons[0], SendFailureReason::TooBig { path_mtu: 1500 });
    assert_eq!(reasons[1], SendFailureReason::Unreachable(Errno::ENETUNREACH));
    assert_eq!(reasons[2], SendFailureReason::Refused(Errno::EPROTOTYPE));
    assert!(matches!(reasons[3], SendFailureReason::Unreachable(_) | SendFailureReason::Refused(_)));
    assert_eq!(reasons.len(), 4);
    let mut arrived = Vec::new();
    while arrived.len() < 3 {
        arrived.extend(receive(&receiver).into_iter().map(|(.., inside)| inside.len()));
    }
    assert_eq!(arrived, [100, 101, 102]);
}

#[test]
fn fragments_made_at_the_entry_arrive_as_one_and_the_datagram_inside_keeps_its_bit() {
    let Some((left, right)) = pair() else { return };
    for encapsulation in [Encapsulation::IpInIp, Encapsulation::Gre { key: Some(7), sequence: None }] {
        let protocol = encapsulation.protocol();
        let (sender, receiver) = (open(&left, protocol), open(&right, protocol));
        let mut tunnel = Tunnel { encapsulation, entry: LEFT, exit: RIGHT, ttl: 9 };
        let mut batch = SendBatch::new(64);
        let inner = datagram(1400, true);
        assert!(batch.push_in_fragments(&mut tunnel, None, &inner, Origin::Local, 508).unwrap());
        // 488 bytes of payload at most, a multiple of eight.
        assert_eq!(batch.len(), 3);
        sender.send_batch(&mut batch, |failure| panic!("{:?}", failure.reason)).unwrap();
        let [(_, header, inside)] = &receive(&receiver)[..] else { panic!() };
        assert_eq!((header.dont_fragment, header.ttl, header.is_fragment()), (false, 9, false));
        assert_eq!(inside, &inner);
    }
}

/// Two hosts, behind a router whose further link takes 1300 bytes.
fn behind_a_router() -> Option<(Host, Host, Host)> {
    let realm = realm_or_skip()?;
    let (left, middle, right) = (host(realm, "left"), host(realm, "middle"), host(realm, "right"));
    connect("link0", (&left, LEFT), (&middle, ROUTER), 1500);
    connect("link1", (&middle, FURTHER), (&right, EXIT), 1300);
    route_all(&left, "link0", ROUTER);
    route_all(&right, "link1", FURTHER);
    Some((left, middle, right))
}

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 3);
const FURTHER: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 1);
const EXIT: Ipv4Addr = Ipv4Addr::new(10, 79, 0, 2);

#[test]
fn what_the_path_takes_is_told_from_inside_the_tunnel_and_left_to_the_owner() {
    let Some((left, _middle, right)) = behind_a_router() else { return };
    for encapsulation in EVERY {
        let protocol = encapsulation.protocol();
        let (sender, receiver) = (open(&left, protocol), open(&right, protocol));
        let identifier = Identifier::new();
        let mut tunnel = Tunnel { encapsulation, entry: LEFT, exit: EXIT, ttl: 64 };
        let inner = datagram(1350, true);
        let mut batch = SendBatch::new(64).identified_by(identifier.clone());
        let mut refused = None;
        let mut send = |longest_whole| {
            let departure = Departure { longest_whole, ..Departure::default() };
            assert!(batch.push_one(&mut tunnel, departure, &inner, Origin::Local).unwrap());
            sender.send_batch(&mut batch, |failure| refused = Some(failure.reason)).unwrap();
            assert_eq!(refused, None);
        };
        for _ in 0..2 {
            send(u16::MAX);
            let error = eventually(|| sender.next_error().unwrap()).unwrap();
            assert_eq!((error.entry, error.exit, error.reporter), (LEFT, EXIT, ROUTER));
            let IcmpMessage::DestinationUnreachable(message) = &error.message else { panic!("{error:?}") };
            let outer = QuotedDatagram::parse(&message.quoted).unwrap();
            let known = encapsulation != Encapsulation::Minimal;
            assert_eq!(identifier.proof(&outer), if known { Proof::Sent } else { Proof::Impossible });
            assert_ne!(Identifier::new().proof(&outer), Proof::Sent);
            let relayed = relay_error(&error.message, LEFT, true).unwrap();
            assert_eq!(relayed.to, CORRESPONDENT);
            assert_eq!(relayed.message.code, UnreachableCode::FragmentationNeeded);
            let mtu = Tunnel { encapsulation, entry: LEFT, exit: EXIT, ttl: 64 }.mtu(1300);
            assert_eq!(relayed.message.next_hop_mtu, mtu);
            // The kernel has not learnt from it.
            assert_eq!(sender.first_hop_mtu(LEFT, EXIT, None).unwrap(), 1500);
        }
        // Without DF outside, the router makes fragments, and what comes out has it still.
        send(1300);
        let [(_, outer, inside)] = &receive(&receiver)[..] else { panic!() };
        assert!(!outer.dont_fragment && inside.len() == inner.len());
        let whole = Ipv4Header::parse(inside).unwrap().0;
        assert_eq!(whole.dont_fragment, encapsulation != Encapsulation::Minimal);
        assert_eq!(sender.next_error().unwrap(), None);
    }
}

#[test]
fn the_first_hop_s_mtu_is_the_link_s_or_the_route_s_whatever_errors_have_said_of_the_path() {
    let Some((left, _middle, _right)) = behind_a_router() else { return };
    let sender = open(&left, IP_IN_IP);
    let socket = left.run(|| Udp::bind((LEFT, 0))).unwrap().unwrap();
    socket.connect((EXIT, 9)).unwrap();
    let told = eventually(|| socket.send(&[0; 1400]).err());
    assert_eq!(told.and_then(|error| error.raw_os_error()), Some(libc::EMSGSIZE), "the kernel believes it");
    let link = index_of(&left, "link0");
    for interface in [None, Some(link)] {
        assert_eq!(sender.first_hop_mtu(LEFT, EXIT, interface).unwrap(), 1500);
    }
    assert_eq!(send(&sender, &Outer { destination: EXIT, ..outer(IP_IN_IP) }, &datagram(1400, true)), None);
    left.run(move || {
        let route = Route { via: Some(ROUTER.into()), mtu: Some(1200), ..Route::to(EXIT.into(), 32, link) };
        Netlink::open()?.set_route(&route)
    })
    .unwrap()
    .unwrap();
    assert_eq!(sender.first_hop_mtu(LEFT, EXIT, None).unwrap(), 1200);
}

#[test]
fn a_full_way_out_holds_the_batch_up_and_then_lets_it_go() {
    let Some((left, _right)) = pair() else { return };
    // Nobody has this address: packets wait for an answer to ARP, in room enough for all of them.
    let waiting = left.run(|| {
        set_sysctl("net.ipv4.neigh.link0.unres_qlen_bytes", "100000000")?;
        set_sysctl("net.ipv4.neigh.link0.retrans_time_ms", "100")
    });
    waiting.unwrap().unwrap();
    let sender = open(&left, IP_IN_IP);
    let mut batch = SendBatch::new(64);
    let nobody = Outer { destination: Ipv4Addr::new(10, 77, 0, 99), ..outer(IP_IN_IP) };
    let mut sent = 0;
    let flushed = loop {
        while batch.push(&nobody, &datagram(1400, true)) {}
        let before = batch.len();
        let flushed = sender.send_batch(&mut batch, |_| ()).unwrap();
        sent += before - batch.len();
        if flushed == Flushed::Blocked || sent > 100_000 {
            break flushed;
        }
    };
    assert_eq!(flushed, Flushed::Blocked);
    let left_over = batch.len();
    assert!(left_over > 0, "{sent} packets were on their way");
    // The kernel gives the address up, and with it the packets.
    assert!(wait_for(&sender.sending_fd(), PollFlags::POLLOUT));
    assert_eq!(sender.send_batch(&mut batch, |_| ()).unwrap(), Flushed::All);
    assert!(batch.is_empty());
}

#[test]
fn what_the_kernel_drops_is_counted() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (open(&left, IP_IN_IP), open(&right, IP_IN_IP));
    let mut batch = SendBatch::new(64);
    let dropped = eventually(|| {
        while batch.push(&outer(IP_IN_IP), &datagram(1400, true)) {}
        sender.send_batch(&mut batch, |_| ()).unwrap();
        Some(receiver.dropped_by_kernel().unwrap()).filter(|&dropped| dropped > 0)
    });
    assert!(dropped.is_some());
}

/// A host with a device, up.
fn host_with_device() -> Option<(Host, OffloadTun)> {
    let realm = realm_or_skip()?;
    let host = host(realm, "alone");
    let tun = host.run(|| {
        let tun = OffloadTun::open("tunnel0")?;
        set_sysctl("net.ipv6.conf.tunnel0.disable_ipv6", "1")?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("tunnel0")?;
        netlink.set_mtu(index, 1480)?;
        netlink.add_address(index, HOME.into(), 24)?;
        netlink.set_up(index)?;
        Ok::<_, careof_lab::Error>(tun)
    });
    Some((host, tun.unwrap().unwrap()))
}

#[test]
fn a_device_hands_over_super_packets_of_udp() {
    let Some((host, mut tun)) = host_with_device() else { return };
    if !tun.offloads().udp {
        careof_testbed::skip("this kernel's TUN devices take no super-packets of UDP");
        return;
    }
    let peer = Ipv4Addr::new(203, 0, 113, 9);
    let socket = host.run(move || {
        let socket = Udp::bind((HOME, 0))?;
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::UdpGsoSegment, &600)?;
        socket.send_to(&[7; 5500], (peer, 9))?;
        Ok::<_, std::io::Error>(socket)
    });
    socket.unwrap().unwrap();
    let mut frame = Frame::new();
    assert!(wait_for(&tun, PollFlags::POLLIN));
    assert!(tun.receive(&mut frame).unwrap());
    let mut lens = Vec::new();
    let mut place = [0; 1480];
    while let Some(len) = frame.take(&mut place) {
        let (header, rest) = Ipv4Header::parse(&place[..len]).unwrap();
        let (_, payload) = UdpHeader::parse(header.source, header.destination, rest).unwrap();
        lens.push(payload.len());
    }
    assert_eq!(lens, [600, 600, 600, 600, 600, 600, 600, 600, 600, 100]);
    assert!(!tun.receive(&mut frame).unwrap());
    assert_eq!(tun.counters().frames_received, 1);
}

#[test]
fn a_datagram_reaches_the_host_by_its_device() {
    let Some((host, mut tun)) = host_with_device() else { return };
    let socket = host.run(|| Udp::bind((HOME, 2))).unwrap().unwrap();
    socket.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    let sent = datagram(300, true);
    tun.send(&sent).unwrap();
    tun.flush().unwrap();
    assert_eq!(crate::support::next(&socket).unwrap(), sent[28..]);
    // Neither what is no IP nor a device that is down ends it.
    tun.send(&[0; 40]).unwrap();
    host.run(|| {
        Netlink::open().and_then(|mut netlink| {
            let index = netlink.index_of("tunnel0")?;
            netlink.set_down(index)
        })
    })
    .unwrap()
    .unwrap();
    tun.send(&sent).unwrap();
    assert_eq!((tun.counters().refused, tun.counters().frames_sent), (2, 1));
}

#[test]
fn a_frame_goes_into_every_kind_of_tunnel() {
    let Some((left, right)) = pair() else { return };
    for encapsulation in EVERY {
        let protocol = encapsulation.protocol();
        let (sender, receiver) = (open(&left, protocol), open(&right, protocol));
        let mut tun = attach_device(&left);
        let socket = left.run(|| Udp::bind((LEFT, 0))).unwrap().unwrap();
        let mut tunnel = Tunnel { encapsulation, entry: LEFT, exit: RIGHT, ttl: 9 };
        let mut batch = SendBatch::new(8);
        let mut frame = Frame::new();
        socket.send_to(&[3; 700], (HOME, 5)).unwrap();
        assert!(wait_for(&tun, PollFlags::POLLIN));
        assert!(tun.receive(&mut frame).unwrap());
        let original = frame.first_datagram();
        batch.push_frame(&mut tunnel, Departure::default(), &mut frame).unwrap();
        assert!(frame.is_done());
        assert_eq!(sender.send_batch(&mut batch, |failure| panic!("{failure:?}")).unwrap(), Flushed::All);
        let [(_, header, inside)] = &receive(&receiver)[..] else { panic!() };
        let ttl = if encapsulation == Encapsulation::Minimal { original[8] } else { 9 };
        assert_eq!((header.source, header.ttl), (LEFT, ttl));
        assert_eq!(inside, &original);
    }
}

/// A device that the route to `HOME` leads to.
fn attach_device(host: &Host) -> OffloadTun {
    let tun = host.run(|| {
        let tun = OffloadTun::open("tunnel0")?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("tunnel0")?;
        set_sysctl("net.ipv6.conf.tunnel0.disable_ipv6", "1")?;
        netlink.add_address(index, Ipv4Addr::new(203, 0, 113, 1).into(), 24)?;
        netlink.set_up(index)?;
        Ok::<_, careof_lab::Error>(tun)
    });
    tun.unwrap().unwrap()
}

#[test]
fn a_socket_is_for_one_protocol() {
    let Some((left, _right)) = pair() else { return };
    assert_eq!(open(&left, MINIMAL).protocol(), MINIMAL);
}

#[test]
fn sockets_that_only_send_keep_nothing_that_comes_in() {
    const RAW: u8 = 255;
    let Some((left, right)) = pair() else { return };
    let (sender, witness, other) = (open(&left, RAW), open(&right, RAW), open(&right, IP_IN_IP));
    assert_eq!(send(&sender, &outer(RAW), &[0; 100]), None);
    assert!(wait_for(&witness, PollFlags::POLLIN));
    assert!(is_silent(&other.sending_fd()));
}

/// Any protocol, in both directions: the header is the sender's, and nobody answers that the protocol is unknown.
#[test]
fn whole_packets_of_a_protocol_go_as_they_are() {
    let Some((left, right)) = pair() else { return };
    let open = |host: &Host| host.run(|| Ipv4PacketSocket::open(IPV6)).unwrap().unwrap();
    let (here, there) = (open(&left), open(&right));
    let errors = left.run(|| IcmpSocket::open(&[3])).unwrap().unwrap();
    let packet = |source, destination, len: u16| {
        let header = Ipv4Header {
            source,
            destination,
            protocol: IPV6,
            ttl: 7,
            tos: 0xb8,
            identification: 77,
            payload_len: len,
            ..Ipv4Header::default()
        };
        let mut bytes = Vec::new();
        header.emit(&mut bytes);
        bytes.resize(bytes.len() + usize::from(len), 9);
        bytes
    };
    let sent = packet(LEFT, RIGHT, 100);
    let index = index_of(&left, "link0");
    assert!(here.send(&sent, Some(index)).unwrap());
    assert!(wait_for(&there, PollFlags::POLLIN));
    let mut buffer = [0; 2048];
    let received = there.receive(&mut buffer).unwrap().unwrap();
    assert_eq!((received.bytes, received.interface), (&sent[..], index_of(&right, "link0")));
    assert_eq!(there.receive(&mut buffer).unwrap(), None);
    // The kernel chooses an Identification where there is none, no matter which source it knows.
    assert!(there.send(&packet(RIGHT, LEFT, 0), None).unwrap());
    assert!(wait_for(&here, PollFlags::POLLIN));
    assert_eq!(here.receive(&mut buffer).unwrap().map(|packet| packet.bytes.len()), Some(20));
    assert!(is_silent(&errors), "nobody says that the protocol is unknown");
    let too_long = here.send(&packet(LEFT, RIGHT, 1481), None);
    assert!(
        matches!(too_long, Err(careof_lab::Error::System { errno: Errno::EMSGSIZE, .. })),
        "{too_long:?}"
    );
    let nowhere = here.send(&packet(LEFT, HOME, 8), None);
    assert!(
        matches!(nowhere, Err(careof_lab::Error::System { errno: Errno::ENETUNREACH, .. })),
        "{nowhere:?}"
    );
    let nothing = here.send(&[0x45], None);
    assert!(matches!(nothing, Err(careof_lab::Error::System { errno: Errno::EINVAL, .. })), "{nothing:?}");
}
