//! Fragments that overlap or are too short for a header (RFC 1858, RFC 3128), outside a tunnel and inside.

use std::io::Write;
use std::net::Ipv4Addr;

use crate::support::*;
use careof_agent::{Hooks, Status};
use careof_assist::{Config as Assist, MssClamp, Place, Replay};
use careof_mobility::v4::{DeliveryMethod, Notice, PolicyTable};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel};

fn away(world: &World, assist: Option<Assist>) -> (Running, Running) {
    let mut setup = home_setup();
    setup.assist = assist;
    let home = world.home_agent(setup, Hooks::default());
    let mut setup = mobile_setup();
    setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
    let mobile = world.mobile_node(setup);
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    (home, mobile)
}

/// Part of the payload of a datagram, as a fragment.
fn fragment(whole: &[u8], range: std::ops::Range<usize>, identification: u16) -> Vec<u8> {
    let (header, payload) = Ipv4Header::parse(whole).unwrap();
    let more_fragments = range.end < payload.len();
    let (fragment_offset, payload_len) = (range.start as u16, range.len() as u16);
    let mut bytes = Vec::new();
    Ipv4Header { identification, more_fragments, fragment_offset, payload_len, ..header }.emit(&mut bytes);
    bytes.extend(&payload[range]);
    bytes
}

fn into_reverse_tunnel(inner: &[u8]) -> Vec<u8> {
    let (encapsulation, entry, exit) = (Encapsulation::IpInIp, WLAN, HA);
    Tunnel { encapsulation, entry, exit, ttl: 64 }.encapsulate(inner, Origin::Local, 1).unwrap()
}

fn packets_in(status: &Status) -> u64 {
    status.tunnels.iter().map(|tunnel| tunnel.packets_in).sum()
}

#[test]
fn overlapping_fragments_of_a_tunnel_s_outside_never_come_out_mixed() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (home, _mobile) = away(&world, None);
    let receiver = udp(&world.correspondent, CORRESPONDENT, 7001);
    let forger = Forger::at(&world.mobile, WLAN);
    let (one, other) = ([b'a'; 200], [b'b'; 200]);
    let [one, other] = [one, other]
        .map(|payload| into_reverse_tunnel(&udp_datagram((HOME, 1), (CORRESPONDENT, 7001), &payload)));
    let len = one.len() - 20;
    for (identification, parts) in (1_u16..).zip([
        // The first fragment ends behind where the last one begins, and the other way round.
        [(&one, 0..120), (&other, 48..len)],
        [(&other, 48..len), (&one, 0..120)],
        // One covers the header of the datagram inside.
        [(&one, 0..len - 8), (&other, 8..len)],
    ]) {
        for (whole, range) in parts {
            forger.send(&fragment(whole, range, identification));
        }
    }
    // A tiny one, with only part of the header inside, and the rest: that is a datagram like any other.
    for range in [0..8, 8..16, 16..len] {
        forger.send(&fragment(&one, range, 99));
    }
    let mut buffer = [0; 500];
    let len = receiver.recv(&mut buffer).unwrap();
    assert!(buffer[..len] == [b'a'; 200], "what came of tiny fragments");
    receiver.set_read_timeout(Some(SILENCE)).unwrap();
    assert!(receiver.recv(&mut buffer).is_err(), "nothing of the others");
    let status = home.status();
    assert_eq!(status.counters["packets-malformed"], 0, "the kernel has dropped them");
}

/// A segment of TCP from the mobile node's port 40000, of as many bytes as are wanted of it.
fn segment(flags: u8, len: usize) -> Vec<u8> {
    let mut tcp =
        vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, flags, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4];
    tcp.resize(tcp.len().max(len), 7);
    let mut bytes = Vec::new();
    let (source, destination) = (HOME, CORRESPONDENT);
    let payload_len = tcp.len() as u16;
    Ipv4Header { source, destination, protocol: protocol::TCP, payload_len, ..Ipv4Header::default() }
        .emit(&mut bytes);
    bytes.extend(tcp);
    bytes
}

#[test]
fn fragments_inside_a_tunnel_pass_the_assists_as_they_are_and_make_no_connection_of_theirs() {
    const SYN: u8 = 2;
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let assist = Assist {
        replay: Some(Replay::DEFAULT),
        mss_clamp: Some(MssClamp::DEFAULT),
        ..Assist::none(Place::HomeAgent)
    };
    let (home, _mobile) = away(&world, Some(assist));
    let forger = Forger::at(&world.mobile, WLAN);
    let before = packets_in(&home.status());
    let syn = segment(SYN, 64);
    let inner = [
        // Too short for a header (RFC 1858 section 3), and the rest of it at offset 8 (RFC 3128).
        fragment(&syn, 0..8, 1),
        fragment(&syn, 8..64, 1),
        // Overlapping, with other ports and flags.
        fragment(&segment(SYN, 64), 0..40, 2),
        fragment(&segment(0, 64), 8..64, 2),
        // A later fragment alone, and one that would end behind the longest datagram.
        fragment(&syn, 16..64, 3),
        {
            let (header, _) = Ipv4Header::parse(&syn).unwrap();
            let mut bytes = Vec::new();
            Ipv4Header { fragment_offset: 65_528, identification: 4, payload_len: 64, ..header }
                .emit(&mut bytes);
            bytes.extend(&syn[20..]);
            bytes
        },
        // Whole datagrams that end within the header, or whose header says that it is longer than they are.
        {
            let (header, payload) = Ipv4Header::parse(&syn).unwrap();
            let mut bytes = Vec::new();
            Ipv4Header { payload_len: 8, ..header }.emit(&mut bytes);
            bytes.extend(&payload[..8]);
            bytes
        },
        {
            let mut bytes = segment(SYN, 24);
            bytes[20 + 12] = 0xf0;
            bytes
        },
    ];
    for inner in &inner {
        forger.send(&into_reverse_tunnel(inner));
    }
    let status = home.wait_until("through", |status| packets_in(status) - before >= inner.len() as u64);
    assert_eq!(status.counters["packets-malformed"], 0);
    let flows = status.assist.unwrap().flows;
    let forged = flows.iter().filter(|flow| (flow.port, flow.peer_port) == (40_000, 80)).count();
    assert_eq!(forged, 0, "{flows:#?}");
    // And connections are followed as before.
    let listener = world.correspondent.run(|| Listener::bind((CORRESPONDENT, 80))).unwrap().unwrap();
    let received = receive_all(listener);
    let sent = pattern(100_000);
    let mut client = world.mobile.run(|| Tcp::connect((CORRESPONDENT, 80))).unwrap().unwrap();
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent);
    let peer: Ipv4Addr = CORRESPONDENT;
    assert!(home.status().assist.unwrap().flows.iter().any(|flow| flow.peer == peer));
}
