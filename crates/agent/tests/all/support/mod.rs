//! A small world of real hosts: a correspondent, a home agent that is also the router, and a mobile node with two
//! links to it.
//!
//! ```text
//! correspondent 10.9.0.2 --- 10.9.0.1 home agent (10.0.0.1, home network 10.0.0.0/24)
//!                                      | 192.0.2.1     | 198.51.100.1
//!                             wlan0 192.0.2.7     gsm0 198.51.100.7
//!                                      mobile node (10.0.0.7)
//! ```

pub(crate) mod ethernet;
pub(crate) mod registration;

use std::io::Read;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use careof_agent::{
    AnySetup, BindingStore, Carrier, Device, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup,
    MultipathSetup, ParameterChange, ParameterLog, Setup, Status, StoreError,
};
use careof_base::{Instant, RandomStream};
use careof_lab::{
    Change, Clock, Direction, Emulator, Error, Host, InterfaceConfig, LinkId, LinkSpec, Netlink, Options,
    Realm, Route, set_sysctl,
};
use careof_link::{Config, Fate};
use careof_mobility::v4::{
    Event, HomeAgentConfig, InterfaceId, MobileNodeConfig, MobileNodeRecord, Prefix, SecurityAssociation,
    ServedMobileNode,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
pub(crate) type Udp = std::net::UdpSocket;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
pub(crate) type Tcp = std::net::TcpStream;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
pub(crate) type Listener = std::net::TcpListener;

pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
pub(crate) const HA: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
pub(crate) const WLAN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(crate) const GSM: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub(crate) const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Longer than anything here takes on the busiest machine; only waited for where it does not happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// How long to listen for what must not come.
pub(crate) const SILENCE: Duration = Duration::from_millis(500);

/// Starts a thread; the tests are a world.
#[expect(clippy::disallowed_methods, reason = "the real world is what is tested")]
pub(crate) fn start<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::spawn(work)
}

#[expect(clippy::disallowed_methods, reason = "the real world is what is tested")]
pub(crate) fn sleep(span: Duration) {
    std::thread::sleep(span);
}

/// Changes a host, while nobody reads of it, more often than any monitor's buffer holds. It is one address that comes and goes: with
/// thousands beside each other the kernel, and whoever lists them anew, would have nothing else to do for a minute.
pub(crate) fn change_too_often(netlink: &mut Netlink) -> Result<(), Error> {
    let loopback = netlink.index_of("lo")?;
    let address = Ipv4Addr::new(127, 16, 0, 0).into();
    for _ in 0..10_000 {
        netlink.add_address(loopback, address, 32)?;
        netlink.remove_address(loopback, address, 32)?;
    }
    Ok(())
}

/// The right to make hosts; see [`careof_testbed::realm_or_skip`].
pub(crate) fn realm_or_skip() -> Option<Realm> {
    careof_testbed::realm_or_skip(&[])
}

type Command = Box<dyn FnOnce(&mut Carrier) + Send>;

/// A carrier that runs in a thread, and everything it told.
pub(crate) struct Running {
    left: Option<TunnelDevice>,
    commands: Option<Sender<Command>>,
    events: Receiver<(Instant, Event)>,
    pub(crate) told: Vec<(Instant, Event)>,
    thread: Option<JoinHandle<Option<Carrier>>>,
}

impl Running {
    /// Opens a carrier in `host` and drives it.
    pub(crate) fn open(host: &Host, setup: impl Into<AnySetup>, clock: Clock, hooks: Hooks) -> Self {
        Self::try_open(host, setup, clock, hooks).unwrap()
    }

    pub(crate) fn try_open(
        host: &Host,
        setup: impl Into<AnySetup>,
        clock: Clock,
        hooks: Hooks,
    ) -> Result<Self, careof_agent::Error> {
        let setup = setup.into();
        let random = RandomStream::new(clock.now().as_nanos(), 0, host.name());
        let left = TunnelDevice::of(host, &setup);
        let carrier = host.run(move || Carrier::open(setup, clock, random, hooks)).unwrap()?;
        let (commands, inbox) = channel::<Command>();
        let (tell, events) = channel();
        // Not in the host: a carrier may be driven by any thread.
        let thread = start(move || drive(carrier, &inbox, &tell));
        Ok(Self { left, commands: Some(commands), events, told: Vec::new(), thread: Some(thread) })
    }

    /// Does something with the carrier, and returns what came of it.
    pub(crate) fn with<T: Send + 'static>(&self, work: impl FnOnce(&mut Carrier) -> T + Send + 'static) -> T {
        let (reply, answer) = channel();
        let command: Command = Box::new(move |carrier| {
            let _ = reply.send(work(carrier));
        });
        self.commands.as_ref().unwrap().send(command).unwrap();
        answer.recv().unwrap()
    }

    pub(crate) fn status(&self) -> Status {
        self.with(|carrier| carrier.status())
    }

    pub(crate) fn counter(&self, name: &str) -> u64 {
        self.status().counters.get(name).copied().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// Waits until the carrier fulfils a condition.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, condition: impl Fn(&Status) -> bool) -> Status {
        let clock = Clock::start();
        loop {
            let status = self.status();
            if condition(&status) {
                return status;
            }
            assert!(clock.now().since_start() < PATIENCE, "not {what}: {status:#?}");
            sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub(crate) fn wait_registered(&self, interface: &str) -> Status {
        self.wait_until(&format!("registered by {interface}"), |status| {
            let registration = status.registration.as_ref().unwrap();
            registration.registered && registration.interface.as_deref() == Some(interface)
        })
    }

    /// What was told since this was last asked.
    pub(crate) fn news(&mut self) -> Vec<Event> {
        let news: Vec<_> = self.events.try_iter().collect();
        self.told.extend(news.iter().cloned());
        news.into_iter().map(|(_, event)| event).collect()
    }

    /// Ends it, and puts back what it changed.
    pub(crate) fn close(mut self) -> Result<(), careof_agent::Error> {
        let closed = self.stop().unwrap().close();
        self.left.take().into_iter().for_each(TunnelDevice::wait_gone);
        closed
    }

    /// Ends it as a crash does: nothing is put back, as far as a process can help it.
    pub(crate) fn kill(mut self) {
        let carrier = self.stop().unwrap();
        careof_agent::abandon(carrier);
        self.left.take().unwrap().wait_gone();
    }

    fn stop(&mut self) -> Option<Carrier> {
        drop(self.commands.take());
        self.thread.take()?.join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The device of a carrier, seen from outside.
struct TunnelDevice {
    netlink: Netlink,
    name: String,
}

impl TunnelDevice {
    /// A relay has none.
    fn of(host: &Host, setup: &AnySetup) -> Option<Self> {
        let options = match setup {
            AnySetup::V4(setup) => setup.host(),
            AnySetup::V6(setup) => setup.host(),
            AnySetup::Relay(_) => return None,
        };
        let netlink = host.run(Netlink::open).unwrap().unwrap();
        Some(Self { netlink, name: options.tunnel_device.clone() })
    }

    /// It stays for a moment where another test of this process starts a child just then: until that executes its program, it has
    /// every descriptor of this process.
    #[track_caller]
    fn wait_gone(mut self) {
        let clock = Clock::start();
        while self.netlink.index_of(&self.name).is_ok() {
            assert!(clock.now().since_start() < PATIENCE, "the device {:?} stays", self.name);
            sleep(Duration::from_millis(1));
        }
    }
}

fn drive(
    mut carrier: Carrier,
    inbox: &Receiver<Command>,
    tell: &Sender<(Instant, Event)>,
) -> Option<Carrier> {
    loop {
        loop {
            match inbox.try_recv() {
                Ok(command) => command(&mut carrier),
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return Some(carrier),
            }
        }
        {
            let mut fds = [PollFd::new(carrier.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::from(2u8)).unwrap();
        }
        if let Err(error) = carrier.turn() {
            eprintln!("carrier ended: {error}");
            return Some(carrier);
        }
        while let Some(event) = carrier.poll_event() {
            let _ = tell.send(event);
        }
    }
}

/// A store that outlives carriers.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    records: std::sync::Arc<std::sync::Mutex<std::collections::BTreeMap<Ipv4Addr, MobileNodeRecord>>>,
    is_broken: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

impl Memory {
    pub(crate) fn hooks(&self) -> Hooks {
        Hooks { store: Some(Box::new(self.clone())), ..Hooks::default() }
    }

    /// From now on it takes nothing, or everything again.
    pub(crate) fn break_down(&self, is_broken: bool) {
        self.is_broken.store(is_broken, std::sync::atomic::Ordering::Relaxed);
    }

    pub(crate) fn records(&self) -> Vec<MobileNodeRecord> {
        self.records.lock().unwrap().values().cloned().collect()
    }
}

impl BindingStore for Memory {
    fn save(&mut self, record: &MobileNodeRecord) -> Result<(), StoreError> {
        if self.is_broken.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(StoreError("no space".to_owned()));
        }
        self.records.lock().unwrap().insert(record.home_address, record.clone());
        Ok(())
    }

    fn load(&mut self) -> Result<Vec<MobileNodeRecord>, StoreError> {
        Ok(self.records())
    }
}

/// What kernel parameters were, as long as the test runs.
#[derive(Clone, Default)]
pub(crate) struct Parameters(std::sync::Arc<std::sync::Mutex<Vec<ParameterChange>>>);

impl Parameters {
    pub(crate) fn hooks(&self) -> Hooks {
        Hooks { parameters: Some(Box::new(self.clone())), ..Hooks::default() }
    }

    pub(crate) fn changes(&self) -> Vec<ParameterChange> {
        self.0.lock().unwrap().clone()
    }
}

impl ParameterLog for Parameters {
    fn note(&mut self, change: &ParameterChange) -> Result<(), StoreError> {
        self.0.lock().unwrap().push(change.clone());
        Ok(())
    }

    fn load(&mut self) -> Result<Vec<ParameterChange>, StoreError> {
        Ok(self.changes())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.0.lock().unwrap().clear();
        Ok(())
    }
}

pub(crate) fn security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(careof_wire::mip4::Spi(256), b"0123456789abcdef").unwrap()
}

pub(crate) fn home_network() -> Prefix {
    Prefix::new(HA, 24)
}

pub(crate) fn home_setup() -> HomeSetup {
    HomeSetup {
        config: HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security())],
            advertisements: None,
            ..HomeAgentConfig::new(HA, home_network(), InterfaceId(0))
        },
        devices: vec![Device::new(0, "up0")],
        home_network: HomeNetwork::Routed,
        host: HostOptions::default(),
        assist: None,
        multipath: MultipathSetup::default(),
    }
}

pub(crate) fn interface(id: u16) -> careof_mobility::v4::InterfaceConfig {
    careof_mobility::v4::InterfaceConfig {
        preference: 10 - id as u8,
        ..careof_mobility::v4::InterfaceConfig::new(InterfaceId(id))
    }
}

pub(crate) fn mobile_setup() -> MobileSetup {
    MobileSetup {
        config: MobileNodeConfig::new(HOME, home_network(), HA, security(), vec![interface(0), interface(1)]),
        devices: vec![Device::new(0, "wlan0"), Device::new(1, "gsm0")],
        host: HostOptions::default(),
        assist: None,
        multipath: MultipathSetup::default(),
    }
}

/// The hosts and links of the picture above, no agent yet.
pub(crate) struct World {
    pub(crate) clock: Clock,
    pub(crate) emulator: Emulator,
    pub(crate) correspondent: Host,
    pub(crate) home: Host,
    pub(crate) mobile: Host,
    pub(crate) wlan: LinkId,
    pub(crate) gsm: LinkId,
}

/// A link that is the same both ways between two hosts, each with the name of its interface and its address in a /24 there.
pub(crate) fn add_link(
    emulator: &Emulator,
    name: &str,
    config: &Config,
    ends: [(&Host, &str, Ipv4Addr); 2],
) -> LinkId {
    let [a, b] = ends.map(|(host, interface, address)| {
        let mut on = InterfaceConfig::new(interface, IpAddr::from(address), 24);
        on.mtu = config.mtu;
        host.attach(&on).unwrap()
    });
    let (forward, backward) = (config.clone(), config.clone());
    emulator.add_link(LinkSpec { name: name.to_owned(), a, b, forward, backward }).unwrap()
}

impl World {
    pub(crate) fn new(realm: Realm) -> Self {
        let milliseconds = |delay| Config { delay: Duration::from_millis(delay), ..Config::default() };
        Self::with(realm, &milliseconds(2), &milliseconds(20))
    }

    pub(crate) fn with(realm: Realm, wlan: &Config, gsm: &Config) -> Self {
        let clock = Clock::start();
        let emulator = Emulator::start(clock, Options::default()).unwrap();
        let correspondent = realm.host("correspondent").unwrap();
        let home = realm.host("home").unwrap();
        let mobile = realm.host("mobile").unwrap();
        let link = |name: &str, config: &Config, a: (&Host, &str, [u8; 4]), b: (&Host, &str, [u8; 4])| {
            add_link(&emulator, name, config, [(a.0, a.1, a.2.into()), (b.0, b.1, b.2.into())])
        };
        let wire = Config { delay: Duration::from_millis(1), ..Config::default() };
        link("up", &wire, (&correspondent, "up0", [10, 9, 0, 2]), (&home, "up0", [10, 9, 0, 1]));
        let wlan = link("wlan", wlan, (&home, "wlan0", [192, 0, 2, 1]), (&mobile, "wlan0", WLAN.octets()));
        let gsm = link("gsm", gsm, (&home, "gsm0", [198, 51, 100, 1]), (&mobile, "gsm0", GSM.octets()));
        default_route(&correspondent, "up0", None);
        default_route(&mobile, "wlan0", Some(100));
        default_route(&mobile, "gsm0", Some(200));
        home.run(|| {
            set_sysctl("net.ipv4.ip_forward", "1").unwrap();
            let mut netlink = Netlink::open().unwrap();
            let loopback = netlink.index_of("lo").unwrap();
            netlink.add_address(loopback, HA.into(), 32).unwrap();
        })
        .unwrap();
        for host in [&correspondent, &home, &mobile] {
            host.run(|| set_sysctl("net.ipv4.tcp_congestion_control", "reno").unwrap()).unwrap();
        }
        Self { clock, emulator, correspondent, home, mobile, wlan, gsm }
    }

    pub(crate) fn home_agent(&self, setup: HomeSetup, hooks: Hooks) -> Running {
        Running::open(&self.home, Setup::Home(setup), self.clock, hooks)
    }

    pub(crate) fn mobile_node(&self, setup: MobileSetup) -> Running {
        Running::open(&self.mobile, Setup::Mobile(setup), self.clock, Hooks::default())
    }

    /// Cuts a link in both directions: nothing gets through, and no interface notices.
    pub(crate) fn cut(&self, link: LinkId) {
        let (queued, in_flight) = (Fate::Drop, Fate::Drop);
        let changes =
            Direction::ALL.map(|direction| Change::SetDown { link, direction, queued, in_flight }).to_vec();
        self.emulator.apply(changes).unwrap();
    }

    pub(crate) fn mend(&self, link: LinkId) {
        let changes = Direction::ALL.map(|direction| Change::SetUp { link, direction }).to_vec();
        self.emulator.apply(changes).unwrap();
    }
}

pub(crate) fn default_route(host: &Host, interface: &'static str, metric: Option<u32>) {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(interface)?;
        netlink.set_route(&Route { metric, ..Route::default_through(index, ANY) })?;
        Ok::<_, Error>(())
    })
    .unwrap()
    .unwrap();
}

/// Takes an interface of a host up or down.
pub(crate) fn set_interface(host: &Host, interface: &'static str, up: bool) {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(interface)?;
        if up { netlink.set_up(index) } else { netlink.set_down(index) }
    })
    .unwrap()
    .unwrap();
}

/// Everything a carrier may have changed in a host: rules, routes of all its tables, addresses, parameters.
pub(crate) fn state_of(host: &Host) -> Vec<String> {
    host.run(|| {
        let mut netlink = Netlink::open().unwrap();
        let mut state: Vec<String> =
            netlink.rules().unwrap().iter().map(|rule| format!("{rule:?}")).collect();
        for table in (254..=255).chain(43_400..43_464) {
            state.extend(netlink.routes(table).unwrap().iter().map(|route| format!("{route:?}")));
        }
        for interface in netlink.interfaces().unwrap() {
            let addresses = netlink.addresses(interface.index).unwrap();
            state.push(format!("{} {addresses:?}", interface.name));
            for parameter in
                ["rp_filter", "arp_ignore", "arp_announce", "forwarding", "ignore_routes_with_linkdown"]
            {
                let path = format!("/proc/sys/net/ipv4/conf/{}/{parameter}", interface.name);
                state.push(format!("{path} {}", std::fs::read_to_string(&path).unwrap().trim()));
            }
        }
        state.push(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap());
        state
    })
    .unwrap()
}

/// What is in one state and not in the other, told by `-` and `+`. What the kernel does about IPv6 does not count.
pub(crate) fn difference(before: &[String], after: &[String]) -> Vec<String> {
    let missing = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
    let added = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
    missing.chain(added).filter(|line| !line.contains("fe80:") && !line.contains("ff00:")).collect()
}

/// A line of bytes that differs everywhere.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0u64..).flat_map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes()).take(len).collect()
}

/// A socket of `host`.
pub(crate) fn udp(host: &Host, address: Ipv4Addr, port: u16) -> Udp {
    let socket = host.run(move || Udp::bind((address, port))).unwrap().unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Takes the one connection that `listener` gets, and returns everything that comes by it; patience ends the wait.
pub(crate) fn receive_all(listener: Listener) -> JoinHandle<Vec<u8>> {
    start(move || {
        let (mut peer, _) = listener.accept().unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut got = Vec::new();
        if let Err(error) = peer.read_to_end(&mut got) {
            eprintln!("after {} bytes: {error}", got.len());
        }
        got
    })
}

/// A connection from the correspondent to the mobile node's home address.
pub(crate) fn connect_home(world: &World, port: u16) -> Tcp {
    let client = world.correspondent.run(move || Tcp::connect((HOME, port))).unwrap().unwrap();
    client.set_write_timeout(Some(PATIENCE)).unwrap();
    client
}

/// Sends packets as they are, by the routes of an address of its host, whatever source they name.
pub(crate) struct Forger(std::os::fd::OwnedFd);

impl Forger {
    pub(crate) fn at(host: &Host, address: Ipv4Addr) -> Self {
        use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, SockaddrIn, bind, socket};
        let open = || socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw);
        let socket = host.run(open).unwrap().unwrap();
        let own = SockaddrIn::from(std::net::SocketAddrV4::new(address, 0));
        bind(std::os::fd::AsRawFd::as_raw_fd(&socket), &own).unwrap();
        Self(socket)
    }

    pub(crate) fn send(&self, packet: &[u8]) {
        use nix::sys::socket::{MsgFlags, SockaddrIn, sendto};
        let (header, _) = careof_wire::ipv4::Ipv4Header::parse(packet).unwrap();
        let to = SockaddrIn::from(std::net::SocketAddrV4::new(header.destination, 0));
        sendto(std::os::fd::AsRawFd::as_raw_fd(&self.0), packet, &to, MsgFlags::empty()).unwrap();
    }
}

/// A datagram of UDP.
pub(crate) fn udp_datagram(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16), payload: &[u8]) -> Vec<u8> {
    use careof_wire::udp::UdpHeader;
    let mut bytes = Vec::new();
    careof_wire::ipv4::Ipv4Header {
        source: from.0,
        destination: to.0,
        protocol: careof_wire::protocol::UDP,
        ttl: 64,
        payload_len: 8 + payload.len() as u16,
        ..careof_wire::ipv4::Ipv4Header::default()
    }
    .emit(&mut bytes);
    UdpHeader { source_port: from.1, destination_port: to.1, payload_len: payload.len() as u16 }
        .emit(from.0, to.0, payload, &mut bytes);
    bytes
}

/// Counts the ICMP "protocol unreachable" messages that reach a host.
pub(crate) struct ProtocolUnreachable {
    socket: careof_lab::IcmpSocket,
}

impl ProtocolUnreachable {
    pub(crate) fn listen(host: &Host) -> Self {
        Self { socket: host.run(|| careof_lab::IcmpSocket::open(&[3])).unwrap().unwrap() }
    }

    pub(crate) fn heard(&self) -> usize {
        let mut buffer = [0; 2048];
        let mut heard = 0;
        while let Some(message) = self.socket.receive(&mut buffer).unwrap() {
            heard += usize::from(message.message.get(1) == Some(&2));
        }
        heard
    }
}
