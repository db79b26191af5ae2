//! Real connections over loopback, looked into.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use crate::support::{LEFT, PATIENCE, RIGHT, realm_or_skip};
use careof_lab::{
    Clock, Host, InterfaceConfig, Netlink, RecoveryState, SockDiag, TcpFilter, TcpInfo, TcpState, TcpTimer,
};

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Stream = std::net::TcpStream;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type Listener = std::net::TcpListener;

/// A connection inside a host, from the client's side.
struct Scene {
    host: Host,
    listener: Listener,
    client: Stream,
    server: Stream,
    diag: SockDiag,
}

fn connect(address: &'static str) -> Option<Scene> {
    let host = realm_or_skip()?.host("talker").unwrap();
    let sockets = host.run(move || -> std::io::Result<_> {
        let listener = Listener::bind(address)?;
        let mut to = listener.local_addr()?;
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let client = Stream::connect(to)?;
        let (server, _) = listener.accept()?;
        Ok((listener, client, server))
    });
    let (listener, client, server) = sockets.unwrap().unwrap();
    let diag = host.run(SockDiag::open).unwrap().unwrap();
    Some(Scene { host, listener, client, server, diag })
}

impl Scene {
    fn ends(&self) -> (SocketAddr, SocketAddr) {
        (self.client.local_addr().unwrap(), self.client.peer_addr().unwrap())
    }

    fn client_info(&mut self) -> TcpInfo {
        let (local, remote) = self.ends();
        self.diag.tcp_info(local, remote).unwrap().unwrap()
    }

    fn server_info(&mut self) -> TcpInfo {
        let (local, remote) = self.ends();
        self.diag.tcp_info(remote, local).unwrap().unwrap()
    }
}

/// Looks until `enough`, or until patience ends; returns what was seen last.
fn wait_for(mut look: impl FnMut() -> Option<TcpInfo>, enough: impl Fn(&TcpInfo) -> bool) -> TcpInfo {
    let clock = Clock::start();
    loop {
        let info = look().unwrap();
        if enough(&info) || clock.now().since_start() > PATIENCE {
            return info;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_connection_is_found_and_its_numbers_are_right() {
    const BYTES: usize = 3_000_000;
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let clock = Clock::start();
    let fresh = scene.client_info();
    assert_eq!((fresh.state, fresh.recovery), (TcpState::Established, RecoveryState::Open));
    // The SYN is counted.
    assert_eq!((fresh.bytes_acked, fresh.bytes_sent, fresh.ssthresh_segments), (1, 0, None));

    let mut server = scene.server.try_clone().unwrap();
    let mut received = 0;
    let mut buffer = vec![0; 64 * 1024];
    let chunk = vec![7; 30_000];
    for _ in 0..BYTES / chunk.len() {
        scene.client.write_all(&chunk).unwrap();
        let until = received + chunk.len();
        while received < until {
            received += server.read(&mut buffer).unwrap();
        }
    }
    let (local, remote) = scene.ends();
    let info = wait_for(|| scene.diag.tcp_info(local, remote).unwrap(), |info| info.unacked == 0);
    assert_eq!((info.bytes_acked, info.backoff), (BYTES as u64 + 1, 0));
    // On a machine that stands still for long the kernel's timers run out.
    assert_eq!(info.bytes_sent, BYTES as u64 + info.bytes_retrans);
    assert_eq!(info.bytes_retrans == 0, info.total_retransmissions == 0, "{info:?}");
    // Loopback has an MTU of 65536 bytes, one more than an IP packet can have.
    assert!(info.mss > 16_000 && info.mss < 65_536, "{info:?}");
    assert_eq!(info.path_mtu, 65_535);
    assert!(info.cwnd_segments >= 10);
    // No round trip was longer than all this, whatever the machine did meanwhile: a number in another unit is.
    let longest = clock.now().since_start() + Duration::from_millis(10);
    let srtt = info.srtt.unwrap();
    assert!(srtt > Duration::ZERO && srtt <= longest, "{info:?}");
    assert!(info.min_rtt.unwrap() <= longest && info.rttvar <= longest, "{info:?}");
    // The kernel's least is 200 ms.
    let least = Duration::from_millis(200);
    assert!(info.rto >= least && info.rto <= least + longest * 5, "{info:?}");
    assert!(info.delivery_rate.is_some_and(|rate| rate.bits_per_second() > 0));
    assert!(info.data_segments_out > 0 && info.segments_out >= info.data_segments_out);
    assert!(info.send_window.is_none_or(|window| window > 10_000));
    assert!(info.total_rto.is_none_or(|count| count == 0));
    let server = scene.server_info();
    assert_eq!((server.bytes_received, server.bytes_acked), (BYTES as u64, 0));
}

#[test]
fn the_kernels_own_tool_says_the_same() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    scene.client.write_all(&[1; 5000]).unwrap();
    let mut buffer = [0; 5000];
    scene.server.read_exact(&mut buffer).unwrap();
    let (local, remote) = scene.ends();
    let socket = scene.diag.tcp_socket(local, remote).unwrap().unwrap();
    let info = socket.info.unwrap();
    let mut ss = std::process::Command::new("ss");
    ss.args(["-tinH", "state", "established", "sport", "=", &format!(":{}", local.port())]);
    ss.stdout(std::process::Stdio::piped());
    let Ok(child) = scene.host.spawn(ss) else {
        careof_testbed::skip("there is no ss");
        return;
    };
    let text = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    let find = |key: &str| {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix(key));
        word.unwrap_or_else(|| panic!("no {key} in {text}")).to_owned()
    };
    let milliseconds = |text: &str| Duration::from_secs_f64(text.parse::<f64>().unwrap() / 1000.0);
    assert_eq!(find("cwnd:"), info.cwnd_segments.to_string());
    assert_eq!(find("mss:"), info.mss.to_string());
    assert_eq!(find("pmtu:"), info.path_mtu.to_string());
    assert_eq!(find("bytes_acked:"), info.bytes_acked.to_string());
    assert_eq!(milliseconds(&find("rto:")), info.rto);
    let rtt = find("rtt:");
    let (srtt, rttvar) = rtt.split_once('/').unwrap();
    assert_eq!((Some(milliseconds(srtt)), milliseconds(rttvar)), (info.srtt, info.rttvar));
    assert_eq!(milliseconds(&find("minrtt:")), info.min_rtt.unwrap());
    // Its name stands by itself.
    let congestion = socket.congestion_control.unwrap();
    assert!(text.split_whitespace().any(|word| word == congestion.as_str()), "{congestion:?} {text}");
}

/// Nobody answers any more: timer, back-off and retransmissions show it.
#[test]
fn a_connection_that_is_cut_backs_off() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = (realm.host("left").unwrap(), realm.host("right").unwrap());
    let end = |address: Ipv4Addr| InterfaceConfig::new("up0", address.into(), 24);
    if let Err(error) = left.connect(&end(LEFT), &right, &end(RIGHT)) {
        careof_testbed::skip(&format!("{error}"));
        return;
    }
    let listener = right.run(|| Listener::bind((RIGHT, 0))).unwrap().unwrap();
    let to = listener.local_addr().unwrap();
    let mut client = left.run(move || Stream::connect(to)).unwrap().unwrap();
    let mut server = listener.accept().unwrap().0;
    // Not every congestion control has a threshold.
    nix::sys::socket::setsockopt(&client, nix::sys::socket::sockopt::TcpCongestion, &"reno".into()).unwrap();
    client.write_all(b"heard").unwrap();
    let mut buffer = [0; 5];
    server.read_exact(&mut buffer).unwrap();
    let mut diag = left.run(SockDiag::open).unwrap().unwrap();
    let from = client.local_addr().unwrap();
    let before = wait_for(|| diag.tcp_info(from, to).unwrap(), |info| info.unacked == 0);
    assert_eq!((before.backoff, before.mss, before.path_mtu), (0, 1448, 1500));

    // From now on frames are for somebody who is not there.
    let cut = left.run(|| {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("up0")?;
        netlink.set_neighbour(index, RIGHT, [2, 0, 0, 0, 0, 99])
    });
    cut.unwrap().unwrap();
    client.write_all(b"lost").unwrap();
    let info = wait_for(|| diag.tcp_info(from, to).unwrap(), |info| info.backoff >= 2);
    assert!(info.rto >= before.rto * 3, "{before:?} {info:?}");
    assert_eq!((info.unacked, info.lost, info.recovery), (1, 1, RecoveryState::Loss));
    assert_eq!((info.cwnd_segments, info.mss), (1, 1448));
    assert!(info.ssthresh_segments.is_some() && info.retransmits >= 2 && info.total_retransmissions >= 2);
    assert!(info.bytes_retrans >= 8 && info.bytes_sent == 9 + info.bytes_retrans && info.bytes_acked == 6);
    assert!(info.total_rto.is_none_or(|count| count >= 2));
    let socket = diag.tcp_socket(from, to).unwrap().unwrap();
    assert_eq!(socket.send_queue, 4);
    assert!(socket.timer.is_some_and(|(timer, left)| timer == TcpTimer::Retransmission && left <= info.rto));
}

#[test]
fn a_connection_that_is_not_there_is_not_found() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let (local, remote) = scene.ends();
    let nobody = SocketAddr::new(local.ip(), 1);
    assert_eq!(scene.diag.tcp_info(nobody, remote), Ok(None));
    // Somebody listens there, which is no connection.
    assert_eq!(scene.diag.tcp_socket(remote, nobody), Ok(None));
    assert!(scene.diag.tcp_socket(remote, local).unwrap().is_some());
    // In another namespace there is none of it.
    let mut outside = SockDiag::open().unwrap();
    assert_eq!(outside.tcp_info(local, remote), Ok(None));
    let v6 = SocketAddr::new("::1".parse().unwrap(), 1);
    assert!(!matches!(scene.diag.tcp_info(v6, remote), Ok(Some(_))));
}

#[test]
fn what_is_left_of_a_closed_connection_has_no_numbers() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let (local, remote) = scene.ends();
    scene.client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut buffer = [0; 1];
    assert_eq!(scene.server.read(&mut buffer).unwrap(), 0);
    assert_eq!(scene.server_info().state, TcpState::CloseWait);
    let acknowledged = |info: &TcpInfo| info.state == TcpState::FinWait2;
    let info = wait_for(|| scene.diag.tcp_info(local, remote).unwrap(), acknowledged);
    assert_eq!((info.state, info.bytes_acked), (TcpState::FinWait2, 2));
    scene.server.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(scene.client.read(&mut buffer).unwrap(), 0);
    let left = scene.diag.tcp_socket(local, remote).unwrap().unwrap();
    assert_eq!((left.state, left.info, left.congestion_control), (TcpState::TimeWait, None, None));
    assert!(left.timer.is_some_and(|(timer, _)| timer == TcpTimer::TimeWait));
    assert_eq!(scene.diag.tcp_info(local, remote), Ok(None));
}

#[test]
fn sockets_are_listed_as_the_filter_says() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let (local, remote) = scene.ends();
    let all = scene.diag.all(&TcpFilter::default()).unwrap();
    assert_eq!(all.len(), 3);
    let listening = TcpFilter { state: Some(TcpState::Listen), ..TcpFilter::default() };
    let listeners = scene.diag.all(&listening).unwrap();
    assert_eq!(listeners.len(), 1);
    assert_eq!(listeners[0].local, scene.listener.local_addr().unwrap());
    let client = TcpFilter { local_port: Some(local.port()), ..TcpFilter::default() };
    assert_eq!(scene.diag.all(&client).unwrap().len(), 1);
    let toward = TcpFilter {
        remote_port: Some(remote.port()),
        remote_address: Some(remote.ip()),
        local_address: Some(local.ip()),
        ..TcpFilter::default()
    };
    let found = scene.diag.all(&toward).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].local, found[0].remote), (local, remote));
    let elsewhere = TcpFilter { remote_address: Some("192.0.2.1".parse().unwrap()), ..TcpFilter::default() };
    assert_eq!(scene.diag.all(&elsewhere).unwrap(), []);
}

#[test]
fn many_sockets_take_more_than_one_datagram() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let to = scene.listener.local_addr().unwrap();
    let more: Vec<(Stream, Stream)> = (0..200)
        .map(|_| {
            let client = scene.host.run(move || Stream::connect(to)).unwrap().unwrap();
            (client, scene.listener.accept().unwrap().0)
        })
        .collect();
    let established = TcpFilter { state: Some(TcpState::Established), ..TcpFilter::default() };
    let found = scene.diag.all(&established).unwrap();
    assert_eq!(found.len(), 2 + 2 * more.len());
    assert!(found.iter().all(|socket| socket.info.is_some()));
}

/// A server of IPv6 that also takes IPv4 is found by the IPv4 addresses.
#[test]
fn ipv4_through_an_ipv6_socket_is_found_as_ipv4() {
    let Some(mut scene) = connect("[::]:0") else { return };
    let (local, remote) = scene.ends();
    assert!(scene.server.local_addr().unwrap().is_ipv6());
    let socket = scene.diag.tcp_socket(remote, local).unwrap().unwrap();
    assert_eq!((socket.local, socket.remote), (remote, local));
    let filter = TcpFilter {
        local_address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        local_port: Some(remote.port()),
        ..TcpFilter::default()
    };
    assert_eq!(scene.diag.all(&filter).unwrap().len(), 1);
}

#[test]
fn looking_is_quick() {
    let Some(mut scene) = connect("127.0.0.1:0") else { return };
    let (local, remote) = scene.ends();
    let patience = Clock::start();
    // One sample each 2 ms of a hundred connections is 50,000 a second; the figure itself is the bench's. The fastest
    // stretch counts: who else is busy on this machine is not what is measured.
    let mut fastest = 0.0_f64;
    while fastest <= 10_000.0 {
        assert!(patience.now().since_start() < PATIENCE, "{fastest:.0} look-ups a second");
        let clock = Clock::start();
        for _ in 0..500 {
            assert!(scene.diag.tcp_info(local, remote).unwrap().is_some());
        }
        fastest = fastest.max(500.0 / clock.now().since_start().as_secs_f64());
    }
    println!("{fastest:.0} look-ups a second");
}
