//! Messages between agents: where they come in, where they leave, from whom, to everybody and to groups.

use std::net::Ipv4Addr;

use crate::support::veth::{connect, eventually, host, index_of, is_silent, wait_for};
use crate::support::{LEFT, RIGHT, realm_or_skip};
use careof_lab::{
    AgentSocket, ArpOperation, ArpSender, Error, Host, IcmpSocket, NeighbourWatch, Netlink, OutgoingDatagram,
    OutgoingIcmp, SeenNeighbour, set_sysctl,
};
use careof_wire::icmp::{Echo, IcmpMessage};
use nix::errno::Errno;
use nix::poll::PollFlags;

const AGENTS: u16 = 434;
const ALL_SYSTEMS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
const ALL_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);
const MOBILITY_AGENTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 11);
const SECOND_LEFT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const SECOND_RIGHT: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);

/// Two hosts with two links between them.
fn pair() -> Option<(Host, Host)> {
    let realm = realm_or_skip()?;
    let (left, right) = (host(realm, "left"), host(realm, "right"));
    connect("link0", (&left, LEFT), (&right, RIGHT), 1500);
    connect("link1", (&left, SECOND_LEFT), (&right, SECOND_RIGHT), 1500);
    Some((left, right))
}

fn agent(host: &Host) -> AgentSocket {
    host.run(|| AgentSocket::open(AGENTS)).unwrap().unwrap()
}

fn icmp(host: &Host, types: &'static [u8]) -> IcmpSocket {
    host.run(|| IcmpSocket::open(types)).unwrap().unwrap()
}

fn to(destination: Ipv4Addr) -> OutgoingDatagram<'static> {
    OutgoingDatagram {
        interface: None,
        source: Ipv4Addr::UNSPECIFIED,
        destination,
        destination_port: AGENTS,
        ttl: 64,
        payload: b"request",
    }
}

/// Interface, source, source port, destination, TTL and payload of the next message.
type Heard = (u32, Ipv4Addr, u16, Ipv4Addr, u8, Vec<u8>);

fn heard(socket: &AgentSocket) -> Option<Heard> {
    let mut buffer = [0; 2048];
    if !wait_for(socket, PollFlags::POLLIN) {
        return None;
    }
    let message = socket.receive(&mut buffer).unwrap()?;
    assert_eq!(message.destination_port, AGENTS);
    let payload = message.payload.to_vec();
    let (source, port) = (message.source, message.source_port);
    Some((message.interface, source, port, message.destination, message.ttl, payload))
}

#[test]
fn a_message_says_where_it_came_in_and_what_for() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (agent(&left), agent(&right));
    let (first, second) = (index_of(&right, "link0"), index_of(&right, "link1"));
    assert_eq!(receiver.receive(&mut [0; 100]).unwrap(), None);

    sender.send(&OutgoingDatagram { ttl: 3, ..to(RIGHT) }).unwrap();
    assert_eq!(heard(&receiver), Some((first, LEFT, AGENTS, RIGHT, 3, b"request".to_vec())));
    // By the routes, from the address that is asked for.
    sender.send(&OutgoingDatagram { source: LEFT, ..to(SECOND_RIGHT) }).unwrap();
    assert_eq!(heard(&receiver), Some((second, LEFT, AGENTS, SECOND_RIGHT, 64, b"request".to_vec())));
}

#[test]
fn a_broadcast_leaves_by_the_interface_named() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (agent(&left), agent(&right));
    let broadcast = to(Ipv4Addr::BROADCAST);
    for (link, source) in [("link0", LEFT), ("link1", SECOND_LEFT)] {
        let interface = Some(index_of(&left, link));
        sender.send(&OutgoingDatagram { interface, source, ttl: 1, ..broadcast }).unwrap();
        let at = index_of(&right, link);
        let expected = (at, source, AGENTS, Ipv4Addr::BROADCAST, 1, b"request".to_vec());
        assert_eq!(heard(&receiver), Some(expected));
    }
}

#[test]
fn a_host_without_an_address_sends_from_nowhere() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (agent(&left), agent(&right));
    receiver.join(MOBILITY_AGENTS, index_of(&right, "link1")).unwrap();
    let interface = Some(index_of(&left, "link1"));
    for destination in [Ipv4Addr::BROADCAST, MOBILITY_AGENTS] {
        sender.send(&OutgoingDatagram { interface, ttl: 1, ..to(destination) }).unwrap();
        let (at, source, port, reached, ttl, payload) = heard(&receiver).unwrap();
        assert_eq!((at, source), (index_of(&right, "link1"), Ipv4Addr::UNSPECIFIED));
        assert_eq!((port, reached, ttl, &payload[..]), (AGENTS, destination, 1, &b"request"[..]));
    }
}

#[test]
fn a_group_is_heard_where_it_was_joined() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (agent(&left), agent(&right));
    let there = index_of(&right, "link0");
    let interface = Some(index_of(&left, "link0"));
    let multicast = OutgoingDatagram { interface, source: LEFT, ttl: 1, ..to(MOBILITY_AGENTS) };
    sender.send(&multicast).unwrap();
    assert!(is_silent(&receiver));
    receiver.join(MOBILITY_AGENTS, there).unwrap();
    receiver.join(MOBILITY_AGENTS, there).unwrap();
    sender.send(&multicast).unwrap();
    assert_eq!(heard(&receiver), Some((there, LEFT, AGENTS, MOBILITY_AGENTS, 1, b"request".to_vec())));
    receiver.leave(MOBILITY_AGENTS, there).unwrap();
    receiver.leave(MOBILITY_AGENTS, there).unwrap();
    sender.send(&multicast).unwrap();
    assert!(is_silent(&receiver));
    let refused = receiver.join(RIGHT, there).unwrap_err();
    assert!(matches!(refused, Error::System { call: "setsockopt(IP_ADD_MEMBERSHIP)", .. }), "{refused}");
}

#[test]
fn what_cannot_be_sent_names_the_call() {
    let Some((left, _right)) = pair() else { return };
    let sender = agent(&left);
    let errno = |datagram| match sender.send(&datagram).unwrap_err() {
        Error::System { call, errno, .. } => (call, errno),
        other => panic!("{other}"),
    };
    let far = Ipv4Addr::new(203, 0, 113, 1);
    assert_eq!(errno(to(far)), ("sendmsg", Errno::ENETUNREACH));
    let (call, errno_of_source) = errno(OutgoingDatagram { source: far, ..to(RIGHT) });
    assert_eq!(call, "sendmsg");
    assert!(matches!(errno_of_source, Errno::ENETUNREACH | Errno::EINVAL), "{errno_of_source}");
    let gone = OutgoingDatagram { interface: Some(999), ..to(Ipv4Addr::BROADCAST) };
    assert_eq!(errno(gone), ("sendmsg(AF_PACKET)", Errno::ENXIO));
}

fn echo() -> Vec<u8> {
    let mut bytes = Vec::new();
    IcmpMessage::EchoRequest(Echo::default()).emit(&mut bytes);
    bytes
}

/// A router solicitation, which has nothing in it.
const SOLICITATION: [u8; 8] = [10, 0, 0xf5, 0xff, 0, 0, 0, 0];
/// The smallest advertisement there is: no addresses.
const ADVERTISEMENT: [u8; 8] = [9, 0, 0xf6, 0xfd, 0, 2, 0, 0];

fn message(destination: Ipv4Addr, message: &[u8]) -> OutgoingIcmp<'_> {
    OutgoingIcmp { interface: None, source: Ipv4Addr::UNSPECIFIED, destination, ttl: 1, message }
}

#[test]
fn router_discovery_is_heard_and_nothing_else() {
    let Some((left, right)) = pair() else { return };
    let (sender, receiver) = (icmp(&left, &IcmpSocket::DISCOVERY), icmp(&right, &IcmpSocket::DISCOVERY));
    let (here, there) = (index_of(&left, "link1"), index_of(&right, "link1"));
    let mut buffer = [0; 2048];
    assert_eq!(receiver.receive(&mut buffer).unwrap(), None);
    sender.send(&message(RIGHT, &echo())).unwrap();
    assert!(is_silent(&receiver));

    let on = |destination, bytes| OutgoingIcmp { interface: Some(here), ..message(destination, bytes) };
    let groups = [(ALL_SYSTEMS, SECOND_LEFT), (Ipv4Addr::BROADCAST, SECOND_LEFT)];
    for (destination, source) in groups.into_iter().chain(groups.map(|(to, _)| (to, Ipv4Addr::UNSPECIFIED))) {
        sender.send(&OutgoingIcmp { source, ..on(destination, &ADVERTISEMENT) }).unwrap();
        assert!(wait_for(&receiver, PollFlags::POLLIN), "{destination} from {source}");
        let received = receiver.receive(&mut buffer).unwrap().unwrap();
        assert_eq!((received.interface, received.source, received.ttl), (there, source, 1));
        assert_eq!((received.destination, received.message), (destination, &ADVERTISEMENT[..]));
    }
    // To the routers' group, once it is joined.
    let solicitation = OutgoingIcmp { source: SECOND_LEFT, ..on(ALL_ROUTERS, &SOLICITATION) };
    receiver.join(ALL_ROUTERS, there).unwrap();
    sender.send(&solicitation).unwrap();
    assert!(wait_for(&receiver, PollFlags::POLLIN));
    assert_eq!(receiver.receive(&mut buffer).unwrap().unwrap().message, SOLICITATION);
    receiver.leave(ALL_ROUTERS, there).unwrap();
}

#[test]
fn the_frame_tells_from_which_link_address_a_message_came() {
    let Some((left, right)) = pair() else { return };
    let watch = right.run(|| NeighbourWatch::open(AGENTS)).unwrap().unwrap();
    let (agents, routers) = (agent(&left), icmp(&left, &IcmpSocket::DISCOVERY));
    let others = left.run(|| AgentSocket::open(AGENTS + 1)).unwrap().unwrap();
    let sender = left.run(|| Netlink::open()?.interfaces()).unwrap().unwrap();
    let sender = sender.into_iter().find(|interface| interface.name == "link0").unwrap();
    let seen = |address| SeenNeighbour {
        interface: index_of(&right, "link0"),
        address,
        link_address: sender.link_address.unwrap(),
        request: None,
    };
    // Neither other ports nor other ICMP.
    others.send(&OutgoingDatagram { destination_port: AGENTS + 1, ..to(RIGHT) }).unwrap();
    routers.send(&message(RIGHT, &echo())).unwrap();
    assert!(is_silent(&watch));
    agents.send(&to(RIGHT)).unwrap();
    assert!(wait_for(&watch, PollFlags::POLLIN));
    assert_eq!(watch.receive().unwrap(), Some(seen(LEFT)));
    // A node that has only its home address asks for agents with that.
    let at_home = Ipv4Addr::new(192, 0, 2, 10);
    left.run(move || Netlink::open()?.add_address(1, at_home.into(), 32)).unwrap().unwrap();
    let interface = Some(sender.index);
    let solicitation = message(ALL_ROUTERS, &SOLICITATION);
    routers.send(&OutgoingIcmp { interface, source: at_home, ..solicitation }).unwrap();
    assert!(wait_for(&watch, PollFlags::POLLIN));
    assert_eq!(watch.receive().unwrap(), Some(seen(at_home)));
    assert_eq!(watch.receive().unwrap(), None);
}

#[test]
fn a_frame_is_seen_before_its_message_can_be_read() {
    let Some((left, right)) = pair() else { return };
    let watch = right.run(|| NeighbourWatch::open(AGENTS)).unwrap().unwrap();
    let (sender, receiver) = (agent(&left), agent(&right));
    let rounds = 5_000;
    let mut buffer = [0; 2048];
    std::thread::scope(|scope| {
        let (go, next) = std::sync::mpsc::sync_channel(0);
        scope.spawn(move || {
            while let Ok(()) = next.recv() {
                sender.send(&to(RIGHT)).unwrap();
            }
        });
        for round in 0..rounds {
            go.send(()).unwrap();
            // Without a rest, so that the message is read as soon as there is one.
            let has_come = (0..1_000_000_000).any(|_| receiver.receive(&mut buffer).unwrap().is_some());
            assert!(has_come, "round {round}");
            assert!(watch.receive().unwrap().is_some(), "round {round}");
        }
        drop(go);
    });
}

#[test]
fn errors_come_to_who_asked_for_them() {
    let Some((left, _right)) = pair() else { return };
    let errors = icmp(&left, &IcmpSocket::ERRORS);
    // A port with nobody behind it.
    agent(&left).send(&OutgoingDatagram { destination_port: 1, ..to(RIGHT) }).unwrap();
    assert!(wait_for(&errors, PollFlags::POLLIN));
    let mut buffer = [0; 2048];
    let received = errors.receive(&mut buffer).unwrap().unwrap();
    assert_eq!(received.source, RIGHT);
    let error = IcmpMessage::parse(received.message).unwrap();
    assert!(matches!(error, IcmpMessage::DestinationUnreachable(_)), "{error:?}");
}

#[test]
fn gratuitous_arp_moves_an_address() {
    let Some((left, right)) = pair() else { return };
    // Otherwise an entry is not changed in its first second.
    right.run(|| set_sysctl("net.ipv4.neigh.link0.locktime", "0")).unwrap().unwrap();
    let at = index_of(&right, "link0");
    let known = || {
        let asked = right.run(move || Netlink::open()?.neighbour(at, LEFT)).unwrap().unwrap();
        asked.and_then(|neighbour| neighbour.link_address)
    };
    let (sender, receiver) = (agent(&left), agent(&right));
    // Both ways, so that the right host knows the left one.
    sender.send(&to(RIGHT)).unwrap();
    heard(&receiver).unwrap();
    receiver.send(&to(LEFT)).unwrap();
    heard(&sender).unwrap();
    assert!(known().is_some());

    let arp = left.run(ArpSender::open).unwrap().unwrap();
    let interface = index_of(&left, "link0");
    for (operation, last) in [(ArpOperation::Request, 7), (ArpOperation::Reply, 8)] {
        let moved = [2, 0, 0, 0, 0, last];
        arp.announce(interface, moved, LEFT, operation).unwrap();
        let seen = eventually(|| (known() == Some(moved)).then_some(()));
        assert!(seen.is_some(), "{operation:?}: {:?}", known());
    }
    let gone = arp.announce(999, [2, 0, 0, 0, 0, 9], LEFT, ArpOperation::Reply).unwrap_err();
    assert!(matches!(gone, Error::System { call: "sendmsg(AF_PACKET)", errno: Errno::ENXIO, .. }), "{gone}");
}
