//! The relay between two hosts, over cables.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use careof_lab::{InterfaceConfig, set_sysctl};
use careof_testbed::realm_or_skip;
use nix::libc;
use nix::sys::socket::{SockFlag, SockType, socket};

use super::*;
use crate::application::family;

#[expect(clippy::disallowed_types, reason = "the real world's sockets")]
type Stream = std::net::TcpStream;

/// Opener and acceptor over IPv4.
const IPV4: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 1, 1)), 49_152),
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 77, 2, 1)), 5001),
];
/// And over IPv6.
const IPV6: [SocketAddr; 2] = [
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 1, 0, 0, 0, 1)), 49_152),
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 2, 0, 0, 0, 1)), 5001),
];
const BUFFER: u32 = 64 << 10;
/// Nothing takes as long unless it goes wrong.
const TOO_LONG: Duration = Duration::from_secs(60);

/// An opener and an acceptor with a relay between.
struct Bench {
    ends: [SocketAddr; 2],
    opener: Host,
    acceptor: Host,
    /// Before its host.
    relay: Worker,
    _between: Host,
    reports: Receiver<Report>,
}

fn bench(ends: [SocketAddr; 2]) -> Option<Bench> {
    let realm = realm_or_skip(&[])?;
    let [opener, between, acceptor] = ["opener", "relay", "acceptor"].map(|name| realm.host(name).unwrap());
    let parameters = [
        "ipv4.ip_forward=1",
        "ipv4.conf.all.rp_filter=0",
        "ipv4.conf.default.rp_filter=0",
        "ipv6.conf.all.forwarding=1",
        "ipv6.conf.default.accept_dad=0",
    ];
    between
        .run(move || {
            for (name, value) in parameters.iter().filter_map(|parameter| parameter.split_once('=')) {
                set_sysctl(&format!("net.{name}"), value).unwrap();
            }
        })
        .unwrap();
    for (host, end, name) in [(&opener, ends[0], "left"), (&acceptor, ends[1], "right")] {
        // Beside it in its network.
        let (router, anywhere, length): (IpAddr, IpAddr, u8) = match end.ip() {
            IpAddr::V4(end) => {
                (Ipv4Addr::from_bits(end.to_bits() ^ 3).into(), Ipv4Addr::UNSPECIFIED.into(), 24)
            }
            IpAddr::V6(end) => {
                (Ipv6Addr::from_bits(end.to_bits() ^ 3).into(), Ipv6Addr::UNSPECIFIED.into(), 64)
            }
        };
        if end.is_ipv6() {
            host.run(|| set_sysctl("net.ipv6.conf.default.accept_dad", "0").unwrap()).unwrap();
        }
        let here = InterfaceConfig::new(name, end.ip(), length);
        host.connect(&here, &between, &InterfaceConfig::new(name, router, length)).unwrap();
        let name = name.to_owned();
        host.run(move || {
            let mut netlink = Netlink::open().unwrap();
            let index = netlink.index_of(&name).unwrap();
            let route = Route::default_through(index, anywhere);
            netlink.set_route(&Route { via: Some(router), ..route }).unwrap();
        })
        .unwrap();
    }
    let options = vec![TcpOption::ReceiveBuffer(BUFFER / 2), TcpOption::SendBuffer(BUFFER / 2)];
    let half = HalfTcp { options, congestion: "reno".to_owned() };
    let flow = RelayedFlow { flow: 0, ends, halves: [half.clone(), half], buffer: BUFFER };
    let plan = RelayPlan { node: NodeId(0), home_address: ends[0].ip(), flows: vec![flow] };
    let (sender, reports) = channel();
    let interfaces = ["left", "right"].map(str::to_owned).to_vec();
    let relay = start(plan, &between, interfaces, Clock::starting_in(Duration::ZERO), sender).unwrap();
    Some(Bench { ends, opener, acceptor, relay, _between: between, reports })
}

/// A socket at a host's own address, with little room in it.
fn own_socket(at: SocketAddr) -> OwnedFd {
    let socket = socket(family(at.ip()), SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    setsockopt(&socket, sockopt::ReuseAddr, &true).unwrap();
    for option in [TcpOption::ReceiveBuffer(16 << 10), TcpOption::SendBuffer(16 << 10)] {
        option.set(socket.as_fd()).unwrap();
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(at)).unwrap();
    socket
}

impl Bench {
    fn listen(&self) -> Listener {
        let [_, acceptor] = self.ends;
        self.acceptor
            .run(move || {
                let socket = own_socket(acceptor);
                listen(&socket, Backlog::new(1).unwrap()).unwrap();
                Listener::from(socket)
            })
            .unwrap()
    }

    fn open(&self) -> Stream {
        let [opener, acceptor] = self.ends;
        let open = move || {
            let socket = own_socket(opener);
            connect(socket.as_raw_fd(), &SockaddrStorage::from(acceptor)).unwrap();
            Stream::from(socket)
        };
        let stream = self.opener.run(open).unwrap();
        stream.set_read_timeout(Some(TOO_LONG)).unwrap();
        stream
    }

    /// Both ends of a connection.
    fn connect(&self) -> [Stream; 2] {
        let listener = self.listen();
        let opener = self.open();
        let (acceptor, from) = listener.accept().unwrap();
        acceptor.set_read_timeout(Some(TOO_LONG)).unwrap();
        assert_eq!(from, self.ends[0], "the relay speaks for the opener");
        assert_eq!(opener.peer_addr().unwrap(), self.ends[1], "and for the acceptor");
        [opener, acceptor]
    }

    /// Ends the relay, and says what it has told but for what it held.
    fn told(mut self) -> Vec<News> {
        self.relay.quit();
        let told = self.reports.try_iter().map(|report| match report {
            Report::Relay { what, bytes, .. } => (what, bytes),
            report => panic!("{report:?}"),
        });
        told.filter(|(what, _)| *what != "hold").collect()
    }
}

fn start_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(work).unwrap()
}

fn read_to_end(stream: &mut Stream) -> Vec<u8> {
    let mut read = Vec::new();
    stream.read_to_end(&mut read).unwrap();
    read
}

#[test]
fn a_side_that_has_finished_still_hears_the_other() {
    [IPV4, IPV6].into_iter().filter_map(bench).for_each(hears_the_other);
}

fn hears_the_other(bench: Bench) {
    let [mut opener, mut acceptor] = bench.connect();
    let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let (to_send, received) = (sent.clone(), channel());
    let sending = start_thread(move || {
        opener.write_all(&to_send).unwrap();
        opener.shutdown(Shutdown::Write).unwrap();
        read_to_end(&mut opener)
    });
    received.0.send(read_to_end(&mut acceptor)).unwrap();
    assert!(received.1.recv().unwrap() == sent, "everything arrived in its place, and its end");
    acceptor.write_all(b"thanks").unwrap();
    drop(acceptor);
    assert_eq!(sending.join().unwrap(), b"thanks");
    assert_eq!(bench.told(), [("open", 0), ("close", sent.len() as u64 + 6)]);
}

#[test]
fn a_connection_that_nobody_accepts_is_reset() {
    [IPV4, IPV6].into_iter().filter_map(bench).for_each(is_reset);
}

fn is_reset(bench: Bench) {
    let error = bench.open().read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // And the next one is tried again.
    let [mut opener, acceptor] = bench.connect();
    drop(acceptor);
    assert_eq!(read_to_end(&mut opener), b"");
    assert_eq!(bench.told()[..3], [("open", 0), ("reset", 0), ("open", 0)]);
}

#[test]
fn a_reset_of_either_end_reaches_the_other() {
    [IPV4, IPV6].into_iter().filter_map(bench).for_each(resets_both);
}

fn resets_both(bench: Bench) {
    for whose in [0, 1] {
        let mut ends = bench.connect().map(Some);
        let resets = ends[whose].take().unwrap();
        let at_once = libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&resets, sockopt::Linger, &at_once).unwrap();
        drop(resets);
        let mut other = ends[1 - whose].take().unwrap();
        let error = other.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "of {whose}");
    }
    assert_eq!(bench.told(), [("open", 0), ("reset", 0)].repeat(2));
}

#[test]
fn a_relay_holds_no_more_than_its_buffer() {
    [IPV4, IPV6].into_iter().filter_map(bench).for_each(holds_no_more);
}

fn holds_no_more(bench: Bench) {
    let [mut opener, mut acceptor] = bench.connect();
    opener.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    // The acceptor does not read: at some time nothing more is taken.
    let refused = loop {
        match opener.write(&[7; 4096]) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 10 << 20, "nobody takes so much");
    };
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    // The ends' own sockets hold the rest.
    let most = BUFFER as usize + 2 * (16 << 10);
    assert!(sent <= most, "{sent} of {most}");
    let received = start_thread(move || read_to_end(&mut acceptor));
    drop(opener);
    assert_eq!(received.join().unwrap().len(), sent);
    assert!(bench.told().iter().all(|(what, _)| *what != "reset"));
}
