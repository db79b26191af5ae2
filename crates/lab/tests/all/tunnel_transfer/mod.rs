//! A connection of the kernel's TCP through a tunnel between two hosts, byte by byte.

mod agent;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::veth::{connect, host, route_all};
use crate::support::{LEFT, RIGHT, realm_or_skip};
use agent::Agent;
use careof_lab::{Host, Netlink, Route, set_sysctl};

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type TcpStream = std::net::TcpStream;

const PORT: u16 = 5001;

/// Bytes that differ from place to place, and from one direction to the other.
fn content(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Sends all of `content` while receiving all that the other end sends.
fn exchange(stream: TcpStream, content: Vec<u8>) -> Vec<u8> {
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::Builder::new().spawn(move || {
        // In pieces of all sizes, so that segments have them too.
        let mut rest = &content[..];
        let mut size = 1;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            writing.write_all(now).unwrap();
            rest = later;
            size = (size * 7 + 3) % 100_000 + 1;
        }
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    let mut reading = stream;
    reading.set_read_timeout(Some(crate::support::PATIENCE * 6)).unwrap();
    reading.read_to_end(&mut received).unwrap();
    writer.unwrap().join().unwrap();
    received
}

const SENDER: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
const HOME: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);

/// Makes one end of the tunnel, to which a route leads, and has it carry packets.
fn start_agent(
    host: &Host,
    (entry, exit): (Ipv4Addr, Ipv4Addr),
    address: Option<Ipv4Addr>,
    (to, prefix_length): (Ipv4Addr, u8),
    stop: &Arc<AtomicBool>,
) -> JoinHandle<String> {
    let opened = host.run(move || {
        let agent = Agent::open("tunnel0", entry, exit)?;
        set_sysctl("net.ipv6.conf.tunnel0.disable_ipv6", "1")?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("tunnel0")?;
        netlink.set_mtu(index, 1480)?;
        netlink.set_transmit_queue(index, 1000)?;
        if let Some(address) = address {
            netlink.add_address(index, address.into(), 32)?;
        }
        netlink.set_up(index)?;
        let through = Route::default_through(index, to.into());
        netlink.set_route(&Route { destination: to.into(), prefix_length, ..through })?;
        Ok::<_, careof_lab::Error>(agent)
    });
    let (agent, stop) = (opened.unwrap().unwrap(), stop.clone());
    std::thread::Builder::new().spawn(move || agent.run(&stop).unwrap()).unwrap()
}

#[test]
fn both_directions_of_a_connection_arrive_as_they_were_sent() {
    let Some(realm) = realm_or_skip() else { return };
    let (sender, left, right) = (host(realm, "sender"), host(realm, "left"), host(realm, "right"));
    connect("near0", (&sender, SENDER), (&left, NEAR), 1500);
    connect("link0", (&left, LEFT), (&right, RIGHT), 1500);
    route_all(&sender, "near0", NEAR);
    let stop = Arc::new(AtomicBool::new(false));
    let agents = [
        start_agent(&left, (LEFT, RIGHT), None, (HOME, 32), &stop),
        start_agent(&right, (RIGHT, LEFT), Some(HOME), (Ipv4Addr::UNSPECIFIED, 0), &stop),
    ];

    let listener = right.run(|| TcpListener::bind(("0.0.0.0", PORT))).unwrap().unwrap();
    let ours = sender.run(|| TcpStream::connect((HOME, PORT))).unwrap().unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let (down, up) = (content(20_000_000, 1), content(8_000_000, 2));
    let sent_down = down.clone();
    let other_end = std::thread::Builder::new().spawn(move || exchange(ours, sent_down)).unwrap();
    let received = exchange(theirs, up.clone());
    assert!(received == down, "{} bytes of {}", received.len(), down.len());
    assert!(other_end.join().unwrap() == up);
    stop.store(true, Ordering::Relaxed);
    for agent in agents {
        println!("{}", agent.join().unwrap());
    }
}
