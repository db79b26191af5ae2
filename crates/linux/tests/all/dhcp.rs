//! How long a care-of address takes: Debian's DHCP server and client between two hosts, beside the state machines that the simulator
//! carries. The links of this world are for IP packets, and these daemons ask theirs for Ethernet, so it is a cable of the kernel's.
//!
//! `cargo test -p careof-linux --test all dhcp -- --nocapture` prints what was measured.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use careof_base::{Duration, Instant, RandomStream};
use careof_lab::{Clock, Host, Netlink, NetlinkMonitor, NetworkChange, Realm};
use careof_mobility::dhcp::{
    ClientConfig, ClientEvent, ConflictCheck, Datagram, DhcpClient, DhcpServer, ServerConfig, StartDelay,
};
use careof_mobility::v4::{InterfaceId, Transmit, TransmitPayload};
use careof_wire::dhcp::{DhcpMessage, HardwareAddress, MessageType};
use careof_wire::ipv4::Ipv4Header;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, recvmsg, setsockopt,
    socket, sockopt,
};
use nix::time::{ClockId, clock_gettime};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// The only address there is to lease.
const LEASED: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// Longer than anything here takes on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// What ISC's server waits for an answer to its echo, unless it is told otherwise.
const SERVER_CHECK: Duration = Duration::from_secs(1);

/// Who looks whether the address is free.
#[derive(Clone, Copy, Debug)]
struct Checks {
    server: bool,
    client: bool,
}

/// What an acquisition was like.
#[derive(Clone, Copy, Debug)]
struct Acquired {
    /// From the first DHCPDISCOVER to the DHCPOFFER.
    offer: Duration,
    /// From the DHCPACK to the address.
    address: Duration,
    /// ARP probes for it.
    probes: u32,
    /// Whether the server looked for somebody at the address before it offered it.
    server_looked: bool,
}

/// The state machines of ours, over a link that takes no time.
fn ours(checks: Checks, random: u64) -> Acquired {
    let interface = InterfaceId(0);
    let stream = |of: &str| RandomStream::new(1, random, of);
    let mut client = DhcpClient::new(
        ClientConfig {
            start_delay: StartDelay::NONE,
            conflict_check: checks.client.then_some(ConflictCheck::RFC_5227),
            ..ClientConfig::new(interface, HardwareAddress::ethernet([2, 0, 0, 0, 0, 1]))
        },
        stream("client"),
    )
    .unwrap();
    let config = ServerConfig {
        ping_check: checks.server.then_some(SERVER_CHECK),
        processing: Duration::ZERO,
        ..ServerConfig::new(interface, SERVER, 24, LEASED, LEASED)
    };
    let mut server = DhcpServer::new(config, stream("server")).unwrap();
    let (mut discovered, mut offered, mut acknowledged) = (None, None, None);
    let mut now = Instant::ZERO;
    let mut probes = 0;
    let mut server_looked = false;
    client.handle_link(now, true);
    loop {
        let mut is_quiet = true;
        while let Some(Transmit { source, payload, .. }) = client.poll_transmit() {
            let TransmitPayload::Udp { destination_port, bytes, .. } = payload else { continue };
            if DhcpMessage::parse(&bytes).unwrap().kind == MessageType::Discover {
                discovered.get_or_insert(now);
            }
            server.handle_datagram(now, Datagram { source, destination_port, payload: &bytes });
            is_quiet = false;
        }
        while let Some(Transmit { source, payload, .. }) = server.poll_transmit() {
            // An echo finds nobody.
            let TransmitPayload::Udp { destination_port, bytes, .. } = payload else {
                server_looked |= offered.is_none();
                continue;
            };
            match DhcpMessage::parse(&bytes).unwrap().kind {
                MessageType::Offer => offered = offered.or(Some(now)),
                MessageType::Ack => acknowledged = Some(now),
                other => panic!("{other:?}"),
            }
            client.handle_datagram(now, Datagram { source, destination_port, payload: &bytes });
            is_quiet = false;
        }
        while let Some(event) = client.poll_event() {
            match event {
                ClientEvent::ArpProbe { .. } => probes += 1,
                ClientEvent::Bound { .. } => {
                    return Acquired {
                        offer: offered.unwrap() - discovered.unwrap(),
                        address: now - acknowledged.unwrap(),
                        probes,
                        server_looked,
                    };
                }
                _ => {}
            }
        }
        if is_quiet {
            let timers = [client.next_timeout(), server.next_timeout()];
            now = timers.into_iter().flatten().map(|(at, _)| at).min().unwrap();
            client.handle_timeout(now);
            server.handle_timeout(now);
        }
    }
}

/// The kernel's time of day, which it stamps packets with.
fn wall_clock() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).unwrap().into()
}

/// Every packet that passes a host's interfaces.
struct Sniffer(OwnedFd);

impl Sniffer {
    fn open(host: &Host) -> Self {
        let opened = host.run(|| {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll)
        });
        let opened = opened.unwrap().unwrap();
        setsockopt(&opened, sockopt::ReceiveTimestampns, &true).unwrap();
        Self(opened)
    }

    /// The next packet, and when it passed.
    fn next(&self) -> Option<(Duration, Vec<u8>)> {
        let mut bytes = vec![0; 2048];
        let mut control = nix::cmsg_space!(nix::sys::time::TimeSpec);
        let mut pieces = [std::io::IoSliceMut::new(&mut bytes)];
        let (fd, flags) = (self.0.as_raw_fd(), MsgFlags::empty());
        let message = recvmsg::<()>(fd, &mut pieces, Some(&mut control), flags).ok()?;
        let stamp = message.cmsgs().unwrap().find_map(|control| match control {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let length = message.bytes;
        bytes.truncate(length);
        Some((stamp.unwrap(), bytes))
    }
}

impl Sniffer {
    /// What has passed, for who has waited in vain: when, which DHCP message, whether it was an ARP probe.
    fn messages(&self) -> Vec<(Duration, Option<MessageType>, bool)> {
        let packets = std::iter::from_fn(|| self.next());
        packets
            .map(|(at, packet)| {
                let kind = message_in(&packet).map(|message| message.kind);
                (at, kind, asks(&packet, Ipv4Addr::UNSPECIFIED))
            })
            .collect()
    }
}

/// The DHCP message in an IP packet.
fn message_in(packet: &[u8]) -> Option<DhcpMessage> {
    let (header, payload) = Ipv4Header::parse(packet).ok()?;
    let ports = payload.get(..4).filter(|_| header.protocol == careof_wire::protocol::UDP)?;
    let is_dhcp = matches!(ports, [0, 67, 0, 68] | [0, 68, 0, 67]);
    payload.get(8..).filter(|_| is_dhcp).and_then(|bytes| DhcpMessage::parse(bytes).ok())
}

/// Whether a packet asks by ARP for [`LEASED`] in this name: nobody's is a probe (RFC 5227 section 1.1).
fn asks(packet: &[u8], by: Ipv4Addr) -> bool {
    let ethernet_request = [0, 1, 8, 0, 6, 4, 0, 1];
    packet.starts_with(&ethernet_request)
        && packet.get(14..18) == Some(&by.octets())
        && packet.get(24..28) == Some(&LEASED.octets())
}

/// A program that ends when this does.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(host: &Host, script: &str) -> Daemon {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    Daemon(host.spawn(command).unwrap())
}

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("careof-dhcp-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left is in a place for things that are left.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn interface(host: &Host, name: &'static str, address: Option<Ipv4Addr>) {
    let made = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        if let Some(address) = address {
            netlink.add_address(index, address.into(), 24)?;
        }
        netlink.set_up(index)
    });
    made.unwrap().unwrap();
}

/// ISC's server at one end of a cable, `dhcpcd` at the other.
fn debians(realm: Realm, checks: Checks) -> Acquired {
    let name = format!("{}{}", u8::from(checks.server), u8::from(checks.client));
    let [server, client] = ["server", "client"].map(|end| realm.host(&format!("{end}{name}")).unwrap());
    let there = client.namespace().unwrap();
    server.run(move || Netlink::open()?.add_veth("cable", "cable", there.as_fd())).unwrap().unwrap();
    interface(&server, "cable", Some(SERVER));
    let sniffer = Sniffer::open(&client);
    let mut monitor = client.run(NetlinkMonitor::open).unwrap().unwrap();
    interface(&client, "cable", None);

    let directory = Directory::new(&name);
    let file = |name: &str| directory.0.join(name).display().to_string();
    let check = if checks.server { "ping-check true; ping-timeout 1" } else { "ping-check false" };
    let configuration = format!(
        "authoritative; {check};\nsubnet 10.9.0.0 netmask 255.255.255.0 {{ range {LEASED} {LEASED}; }}\n"
    );
    std::fs::write(file("conf"), configuration).unwrap();
    std::fs::write(file("leases"), "").unwrap();
    // AppArmor's profiles go by path, and that of the server lets it read its own directory only.
    std::fs::copy(careof_testbed::find("dhcpd").unwrap(), file("dhcpd")).unwrap();
    let (program, conf, leases) = (file("dhcpd"), file("conf"), file("leases"));
    let serve = format!("exec {program} -4 -f -q --no-pid -cf {conf} -lf {leases} cable");
    let mut serving = shell(&server, &serve);
    wait_until_it_listens(&server, &mut serving);
    // The client asks for as long as it takes; by itself it gives up after 30 s, which a busy machine may need. What it remembers
    // of the machine's networks is not for here, nor is what it finds out here for them.
    let arp = if checks.client { "" } else { "--noarp" };
    let ask = format!(
        "mount -t tmpfs none /var/lib && mkdir -p /var/lib/dhcpcd && mount -t tmpfs none /run && mkdir -p /run/dhcpcd && \
         exec dhcpcd -4 -1 -B --nodelay -t 0 {arp} -f /dev/null -c /bin/true cable"
    );
    let _asking = shell(&client, &ask);

    let clock = Clock::start();
    let mut usable = None;
    while usable.is_none() {
        assert!(clock.now().since_start() < PATIENCE, "no address came: {:#?}", sniffer.messages());
        let mut fds = [PollFd::new(monitor.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::from(100_u8)).unwrap();
        while let Some(change) = monitor.poll_change().unwrap() {
            if matches!(change, NetworkChange::AddressAdded { assigned, .. } if assigned.address == IpAddr::V4(LEASED))
            {
                usable.get_or_insert(wall_clock());
            }
        }
    }
    let (mut discovered, mut offered, mut acknowledged) = (None, None, None);
    let mut probes = 0;
    let mut server_looked = false;
    while let Some((at, packet)) = sniffer.next() {
        let place = match message_in(&packet).map(|message| message.kind) {
            Some(MessageType::Discover) => &mut discovered,
            Some(MessageType::Offer) => &mut offered,
            Some(MessageType::Ack) => &mut acknowledged,
            _ => {
                probes += u32::from(asks(&packet, Ipv4Addr::UNSPECIFIED) && acknowledged.is_some());
                // For its echo.
                server_looked |= asks(&packet, SERVER) && offered.is_none();
                continue;
            }
        };
        place.get_or_insert(at);
    }
    Acquired {
        offer: offered.unwrap() - discovered.unwrap(),
        address: usable.unwrap() - acknowledged.unwrap(),
        probes,
        server_looked,
    }
}

/// Waits until a process of the host has a packet socket, which the server answers by.
fn wait_until_it_listens(host: &Host, serving: &mut Daemon) {
    let clock = Clock::start();
    let sockets = || {
        let read = || std::fs::read_to_string(Path::new("/proc/thread-self/net/packet"));
        host.run(read).unwrap().unwrap().lines().count() - 1
    };
    while sockets() == 0 {
        assert!(clock.now().since_start() < PATIENCE, "the server does not listen");
        assert_eq!(serving.0.try_wait().unwrap(), None, "the server has ended");
        std::thread::yield_now();
    }
}

#[test]
fn debians_daemons_wait_for_what_the_model_waits_for() {
    let Some(realm) = careof_testbed::realm_or_skip(&["dhcpd", "dhcpcd"]) else { return };
    for checks in [(false, false), (true, false), (false, true), (true, true)]
        .map(|(server, client)| Checks { server, client })
    {
        let models: Vec<Acquired> = (0..200).map(|n| ours(checks, n)).collect();
        let offer = models[0].offer;
        let addresses = || models.iter().map(|model| model.address);
        let (least, most) = (addresses().min().unwrap(), addresses().max().unwrap());
        let measured = debians(realm, checks);
        eprintln!("{checks:?}: the model {offer:?} + {least:?} to {most:?}, Debian's {measured:?}");
        assert_eq!(measured.probes, models[0].probes, "{checks:?}");
        assert_eq!(measured.server_looked, checks.server, "{checks:?}: {measured:?}");
        assert!(models.iter().all(|model| model.server_looked == checks.server), "{checks:?}");
        // How much later a busy machine is, is its own affair.
        assert!(offer.is_zero() != checks.server && measured.offer >= offer, "{checks:?}: {measured:?}");
        let shortest = ConflictCheck::RFC_5227.least * (ConflictCheck::RFC_5227.probes - 1)
            + ConflictCheck::RFC_5227.last;
        if checks.client {
            assert!(least >= shortest && measured.address >= shortest, "{checks:?}: {measured:?}");
        } else {
            assert!(most.is_zero(), "{checks:?}: {measured:?}");
        }
    }
}
