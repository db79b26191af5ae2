//! The hosts and links of a small internet of IPv6.
//!
//! ```text
//!                                              2001:db8:a1::/64        2001:db8:100::/64
//!                                            +------------------ west ------------------ wlan0
//!  correspondent ------------------ home ----+                                            mobile node
//!     ::2      2001:db8:9::/64    ::1        +------------------ east ------------------- gsm0
//!                                              2001:db8:a2::/64        2001:db8:200::/64
//! ```
//!
//! With `Links::Ipv4Only` the mobile node's link to east, and the way from there, are of IPv4: 198.51.100.0/24 and 198.18.2.0/24, and so is the correspondent's beside IPv6,
//! 198.18.9.0/24.
//!
//! All are cables of the kernel's, the last two links of the emulator instead where that is said. West and east advertise themselves; the home network, 2001:db8:1::/64, has no link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use careof_agent::{
    Carrier, Device, Hooks, HostOptions, Ipv6CorrespondentSetup, Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup,
    Ipv6Status, RouterAdvertiser,
};
use careof_base::RandomStream;
use careof_lab::{
    AddressOptions, Change, Clock, Direction, Emulator, Host, Icmpv6Socket, InterfaceAddress, LinkId,
    LinkSpec, Netlink, Options, Realm, Route, Tun, set_sysctl,
};
use careof_link::{Config, Fate, QueueConfig, QueueLimit};
use careof_mobility::v6::neighbor_discovery::AdvertisingConfig;
use careof_mobility::v6::{
    CorrespondentNodeConfig, HomeAgentConfig, InterfaceConfig, MobileNodeConfig, Prefix, SecurityAssociation,
    ServedMobileNode,
};
use careof_mobility::{InterfaceId, Selection};
use careof_wire::icmpv6::{LinkLayerAddress, MapOption, PrefixInformation, PrefixLifetime};
use careof_wire::mip6::Spi;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::support::{PATIENCE, Running, set_interface, sleep, start};

pub(crate) const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
pub(crate) const HA: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
pub(crate) const CORRESPONDENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, 2);

/// The IPv4 addresses of mobile node, home agent and correspondent, and that of the mobile node on a network that has no others.
pub(crate) const HOME_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(crate) const HA_IPV4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const CORRESPONDENT_IPV4: Ipv4Addr = Ipv4Addr::new(198, 18, 9, 2);
pub(crate) const CARE_OF_IPV4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// The networks of the mobile node's links.
pub(crate) const WLAN: Prefix = Prefix::new(on(0x100, 0), 64);
pub(crate) const GSM: Prefix = Prefix::new(on(0x200, 0), 64);

pub(crate) const fn on(network: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, network, 0, 0, 0, 0, host)
}

/// What the mobile node's links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    /// Cables of the kernel's, with Ethernet addresses.
    Ethernet,
    /// As `Ethernet`, but that `gsm0` has only IPv4.
    Ipv4Only,
    /// Links of the emulator between TUN devices, with a delay of 5 ms.
    Emulated,
}

pub(crate) struct Network {
    pub(crate) clock: Clock,
    pub(crate) correspondent: Host,
    pub(crate) home: Host,
    pub(crate) mobile: Host,
    /// The emulated links, with the mobile node's ends.
    links: Vec<(LinkId, Tun)>,
    emulator: Option<Emulator>,
    advertisers: Vec<Advertising>,
    /// The router of `wlan0`.
    pub(crate) west: Host,
    /// The router of `gsm0`.
    pub(crate) east: Host,
}

/// Has a host use its addresses without Duplicate Address Detection, which takes seconds and has tests of its own.
pub(crate) fn skip_detection(host: &Host) {
    let set = ["all", "default"]
        .map(|of| host.run(move || set_sysctl(&format!("net.ipv6.conf.{of}.accept_dad"), "0")).unwrap());
    set.into_iter().collect::<Result<(), _>>().unwrap();
}

/// A link between two hosts, both ends up, with the addresses that are given. It carries packets when this returns.
pub(crate) fn cable(a: (&Host, &'static str, Option<Ipv6Addr>), b: (&Host, &'static str, Option<Ipv6Addr>)) {
    let (here, there) = (a.1, b.1);
    let namespace = b.0.namespace().unwrap();
    a.0.run(move || Netlink::open()?.add_veth(here, there, namespace.as_fd())).unwrap().unwrap();
    for (host, name, address) in [a, b] {
        let up = host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            if let Some(address) = address {
                let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
                netlink.add_address_as(options, index, address.into(), 64)?;
            }
            netlink.set_up(index)
        });
        up.unwrap().unwrap();
    }
    for (host, name, _) in [a, b] {
        wait_for_neighbor_discovery(host, name);
    }
}

/// Waits until the kernel does neighbor discovery on an interface. It gives the interface its link-local address when it has
/// seen the carrier, later on a busy machine, and without one it resolves nobody: a router then says that a neighbor is unreachable.
fn wait_for_neighbor_discovery(host: &Host, name: &'static str) {
    let clock = Clock::start();
    let is_ready = || -> Result<bool, careof_lab::Error> {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        let of_link =
            |address: IpAddr| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
        let assigned = netlink.assigned_addresses()?;
        Ok(assigned.iter().any(|on| on.interface == index && of_link(on.address) && !on.is_tentative))
    };
    while !host.run(is_ready).unwrap().unwrap() {
        assert!(clock.now().since_start() < PATIENCE, "{} has no link-local address on {name}", host.name());
        sleep(Duration::from_millis(2));
    }
}

/// An interface at an end of an emulated link.
fn on_link(name: &str, address: Option<Ipv6Addr>) -> careof_lab::InterfaceConfig {
    let mut config = careof_lab::InterfaceConfig::new(name, Ipv6Addr::LOCALHOST.into(), 64);
    config.addresses = address
        .map(|address| InterfaceAddress { address: address.into(), prefix_length: 64 })
        .into_iter()
        .collect();
    config.configures_itself = true;
    config
}

/// A route by a next hop.
pub(crate) fn route(host: &Host, name: &'static str, to: (Ipv6Addr, u8), via: Ipv6Addr) {
    let set = host.run(move || {
        let mut netlink = Netlink::open()?;
        let to = Route::to(to.0.into(), to.1, netlink.index_of(name)?);
        netlink.set_route(&Route { via: Some(via.into()), ..to })
    });
    set.unwrap().unwrap();
}

/// Gives the hosts that have a part in it their addresses and routes of IPv4. Nobody routes IPv6 to `gsm0`, nor forms an address there.
fn add_ipv4([correspondent, home, east, mobile]: [&Host; 4]) {
    let address = |host: &Host, name: &'static str, address: [u8; 4]| {
        let added = host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.add_address(index, Ipv4Addr::from(address).into(), 24).map(drop)
        });
        added.unwrap().unwrap();
    };
    for (host, name, own) in [
        (correspondent, "up0", CORRESPONDENT_IPV4.octets()),
        (home, "down0", [198, 18, 9, 1]),
        (home, "east0", [198, 18, 2, 1]),
        (east, "up0", [198, 18, 2, 2]),
        (east, "down0", [198, 51, 100, 1]),
        (mobile, "gsm0", CARE_OF_IPV4.octets()),
    ] {
        address(host, name, own);
    }
    for (host, name, to, via) in [
        (correspondent, "up0", ([0; 4], 0), [198, 18, 9, 1]),
        (east, "up0", ([0; 4], 0), [198, 18, 2, 1]),
        (home, "east0", ([198, 51, 100, 0], 24), [198, 18, 2, 2]),
        (mobile, "gsm0", ([0; 4], 0), [198, 51, 100, 1]),
    ] {
        let set = host.run(move || {
            let mut netlink = Netlink::open()?;
            let to = Route::to(Ipv4Addr::from(to.0).into(), to.1, netlink.index_of(name)?);
            netlink.set_route(&Route { via: Some(Ipv4Addr::from(via).into()), ..to }).map(drop)
        });
        set.unwrap().unwrap();
    }
    east.run(|| set_sysctl("net.ipv4.ip_forward", "1")).unwrap().unwrap();
}

/// A router that advertises a prefix on one of its links, in a thread.
pub(crate) struct Advertising {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Advertising {
    pub(crate) fn start(host: &Host, interface: &'static str, prefix: Prefix, clock: Clock) -> Self {
        Self::with_maps(host, interface, prefix, Vec::new(), clock)
    }

    /// A router that tells of mobility anchor points as well.
    pub(crate) fn with_maps(
        host: &Host,
        interface: &'static str,
        prefix: Prefix,
        maps: Vec<MapOption>,
        clock: Clock,
    ) -> Self {
        let prefix = PrefixInformation {
            prefix_length: prefix.length(),
            on_link: true,
            autonomous: true,
            router_address: false,
            valid_lifetime: PrefixLifetime::from_secs(3600),
            preferred_lifetime: PrefixLifetime::from_secs(3600),
            prefix: prefix.address(),
        };
        let config = AdvertisingConfig {
            prefixes: vec![prefix],
            maps,
            // Nobody has to be quick: on a busy machine a router must not be taken for lost.
            lifetime_secs: 1800,
            ..AdvertisingConfig::new(Ipv6Addr::UNSPECIFIED, LinkLayerAddress([2, 0, 0, 0, 0, 1]))
                .for_mobile_nodes(Duration::from_millis(500))
        };
        let random = RandomStream::new(clock.now().as_nanos(), 0, host.name());
        let opened = host.run(move || RouterAdvertiser::open(interface, config, clock, random));
        let mut advertiser = opened.unwrap().unwrap();
        let (end, inbox) = channel();
        let thread = start(move || {
            let ended = loop {
                let ended = inbox.try_recv();
                if ended != Err(TryRecvError::Empty) {
                    break ended;
                }
                {
                    let mut fds = [PollFd::new(advertiser.as_fd(), PollFlags::POLLIN)];
                    poll(&mut fds, PollTimeout::from(5u8)).unwrap();
                }
                advertiser.turn().unwrap();
            };
            // One that vanishes does not say so.
            if ended == Err(TryRecvError::Disconnected) {
                advertiser.close();
            }
        });
        Self { end: Some(end), thread: Some(thread) }
    }
}

impl Advertising {
    /// Ends without a word.
    fn vanish(&mut self) {
        if let Some(end) = &self.end {
            end.send(()).unwrap();
        }
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Advertising {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Network {
    pub(crate) fn new(realm: Realm) -> Self {
        Self::with(realm, Links::Ethernet)
    }

    pub(crate) fn with(realm: Realm, links: Links) -> Self {
        let clock = Clock::start();
        let host = |name: &str, forwards: bool| {
            let host = realm.host(name).unwrap();
            skip_detection(&host);
            let set = host.run(move || {
                set_sysctl("net.ipv6.icmp.ratelimit", "0")?;
                set_sysctl("net.ipv4.tcp_congestion_control", "reno")?;
                if forwards { set_sysctl("net.ipv6.conf.all.forwarding", "1") } else { Ok(()) }
            });
            set.unwrap().unwrap();
            host
        };
        // The home agent has its host forward by itself.
        let (correspondent, home, mobile) =
            (host("correspondent", false), host("home", false), host("mobile", false));
        let (west, east) = (host("west", true), host("east", true));
        cable((&correspondent, "up0", Some(CORRESPONDENT)), (&home, "down0", Some(on(9, 1))));
        cable((&home, "west0", Some(on(0xa1, 1))), (&west, "up0", Some(on(0xa1, 2))));
        cable((&home, "east0", Some(on(0xa2, 1))), (&east, "up0", Some(on(0xa2, 2))));
        let access = [(&west, on(0x100, 1), "wlan0"), (&east, on(0x200, 1), "gsm0")];
        let mut emulated = Vec::new();
        let emulator = match links {
            Links::Ipv4Only => {
                cable((&west, "down0", Some(on(0x100, 1))), (&mobile, "wlan0", None));
                cable((&east, "down0", None), (&mobile, "gsm0", None));
                None
            }
            Links::Ethernet => {
                for (router, address, name) in access {
                    cable((router, "down0", Some(address)), (&mobile, name, None));
                }
                None
            }
            Links::Emulated => {
                let emulator = Emulator::start(clock, Options::default()).unwrap();
                for (router, address, name) in access {
                    let a = router.attach(&on_link("down0", Some(address))).unwrap();
                    let b = mobile.attach(&on_link(name, None)).unwrap();
                    let end = b.try_clone().unwrap();
                    // A long queue would make for long timeouts.
                    let queue = QueueConfig { limit: QueueLimit::Packets(50), ..QueueConfig::default() };
                    let config = Config { delay: Duration::from_millis(5), queue, ..Config::default() };
                    let (forward, backward) = (config.clone(), config);
                    let spec = LinkSpec { name: name.to_owned(), a, b, forward, backward };
                    emulated.push((emulator.add_link(spec).unwrap(), end));
                }
                Some(emulator)
            }
        };
        let everywhere = (Ipv6Addr::UNSPECIFIED, 0);
        route(&correspondent, "up0", everywhere, on(9, 1));
        route(&west, "up0", everywhere, on(0xa1, 1));
        route(&east, "up0", everywhere, on(0xa2, 1));
        route(&home, "west0", (WLAN.address(), 64), on(0xa1, 2));
        route(&home, "east0", (GSM.address(), 64), on(0xa2, 2));
        if links == Links::Ipv4Only {
            add_ipv4([&correspondent, &home, &east, &mobile]);
        }
        let routers = [(&west, WLAN), (&east, GSM)].into_iter();
        let routers = routers.filter(|(_, prefix)| links != Links::Ipv4Only || *prefix == WLAN);
        let advertisers =
            routers.map(|(host, prefix)| Advertising::start(host, "down0", prefix, clock)).collect();
        Self { clock, correspondent, home, mobile, links: emulated, emulator, advertisers, west, east }
    }

    /// Whether the mobile node's interfaces have link-layer addresses.
    pub(crate) const fn has_stations(&self) -> bool {
        self.emulator.is_none()
    }

    /// Gives a link of the mobile node its carrier, or takes it away: nothing gets through then, and what was under way is lost.
    pub(crate) fn set_link(&self, name: &'static str, up: bool) {
        let emulated = self.links.iter().find(|(_, end)| end.name() == name);
        let (Some((link, end)), Some(emulator)) = (emulated, &self.emulator) else {
            return set_interface(&self.mobile, name, up);
        };
        let (queued, in_flight) = (Fate::Drop, Fate::Drop);
        let changes = Direction::ALL.map(|direction| match up {
            true => Change::SetUp { link: *link, direction },
            false => Change::SetDown { link: *link, direction, queued, in_flight },
        });
        emulator.apply(changes.to_vec()).unwrap();
        end.set_carrier(up).unwrap();
    }

    /// The router of `wlan0` is gone, without a word: its end of the cable stays where it is.
    pub(crate) fn silence_west(&mut self) {
        self.advertisers[0].vanish();
        let silenced = self.west.run(|| set_sysctl("net.ipv6.conf.down0.disable_ipv6", "1"));
        silenced.unwrap().unwrap();
    }

    /// The router of `wlan0` is there again.
    pub(crate) fn wake_west(&mut self) {
        let woken = self.west.run(|| {
            set_sysctl("net.ipv6.conf.down0.disable_ipv6", "0")?;
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("down0")?;
            let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
            netlink.add_address_as(options, index, on(0x100, 1).into(), 64)
        });
        woken.unwrap().unwrap();
        self.advertisers[0] = Advertising::start(&self.west, "down0", WLAN, self.clock);
    }

    pub(crate) fn home_agent(&self, security: SecurityAssociation) -> Running {
        self.assisted_home_agent(security, None)
    }

    pub(crate) fn assisted_home_agent(
        &self,
        security: SecurityAssociation,
        assist: Option<careof_assist::Config>,
    ) -> Running {
        let prefix = Prefix::new(HA, 64);
        let config = HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security)],
            ..HomeAgentConfig::new(HA, prefix, InterfaceId(0))
        };
        let setup =
            Ipv6Setup::Home(Ipv6HomeSetup { config, home_link: None, host: HostOptions::for_ipv6(), assist });
        Running::open(&self.home, setup, self.clock, Hooks::default())
    }

    /// Gives the mobile node's `gsm0` its IPv4 address and route, or takes them away.
    pub(crate) fn set_mobile_ipv4(&self, on: bool) {
        let set = self.mobile.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("gsm0")?;
            if !on {
                return netlink.remove_address(index, CARE_OF_IPV4.into(), 24).map(drop);
            }
            netlink.add_address(index, CARE_OF_IPV4.into(), 24)?;
            let via = Some(Ipv4Addr::new(198, 51, 100, 1).into());
            let default = Route::default_through(index, Ipv4Addr::UNSPECIFIED.into());
            netlink.set_route(&Route { via, ..default }).map(drop)
        });
        set.unwrap().unwrap();
    }

    /// A home agent with an IPv4 address, and an IPv4 home address for the mobile node.
    pub(crate) fn dual_stack_home_agent(&self) -> Running {
        self.home_agent_with(dual_stack_config())
    }

    pub(crate) fn home_agent_with(&self, config: HomeAgentConfig) -> Running {
        let host = HostOptions::for_ipv6();
        let setup = Ipv6Setup::Home(Ipv6HomeSetup { config, home_link: None, host, assist: None });
        Running::open(&self.home, setup, self.clock, Hooks::default())
    }

    pub(crate) fn dual_stack_mobile_setup(&self) -> Ipv6MobileSetup {
        let mut setup = self.mobile_setup();
        setup.config.home_agent_ipv4 = Some(HA_IPV4);
        setup.config.ipv4_home_address = Some(HOME_IPV4);
        setup
    }

    pub(crate) fn mobile_setup(&self) -> Ipv6MobileSetup {
        let interface =
            |id: u16| InterfaceConfig { preference: 10 - id as u8, ..InterfaceConfig::new(InterfaceId(id)) };
        let mut config = MobileNodeConfig::new(
            HOME,
            Prefix::new(HA, 64),
            HA,
            security(),
            vec![interface(0), interface(1)],
        );
        config.selection = Selection::Preferred { hold: Duration::from_millis(100) };
        config.route_optimization = None;
        let devices = vec![Device::new(0, "wlan0"), Device::new(1, "gsm0")];
        Ipv6MobileSetup {
            config,
            devices,
            optimistic_detection: true,
            host: HostOptions::for_ipv6(),
            assist: None,
            fast_handover: None,
        }
    }

    pub(crate) fn mobile_node(&self, setup: Ipv6MobileSetup) -> Running {
        Running::open(&self.mobile, Ipv6Setup::Mobile(setup), self.clock, Hooks::default())
    }

    /// Why a mobile node is not opened.
    pub(crate) fn refused(&self, setup: Ipv6Setup) -> careof_agent::Error {
        let clock = self.clock;
        let random = RandomStream::new(1, 0, "refused");
        let opened = self.mobile.run(move || Carrier::open(setup, clock, random, Hooks::default()).err());
        opened.unwrap().expect("it is refused")
    }

    pub(crate) fn correspondent_node(&self) -> Running {
        let config = CorrespondentNodeConfig::new(CORRESPONDENT);
        let setup =
            Ipv6Setup::Correspondent(Ipv6CorrespondentSetup { config, host: HostOptions::for_ipv6() });
        Running::open(&self.correspondent, setup, self.clock, Hooks::default())
    }
}

/// What a home agent with an IPv4 address is, and an IPv4 home address for the mobile node.
pub(crate) fn dual_stack_config() -> HomeAgentConfig {
    let node =
        ServedMobileNode { ipv4_home_address: Some(HOME_IPV4), ..ServedMobileNode::new(HOME, security()) };
    HomeAgentConfig {
        mobile_nodes: vec![node],
        ipv4_address: Some(HA_IPV4),
        ..HomeAgentConfig::new(HA, Prefix::new(HA, 64), InterfaceId(0))
    }
}

pub(crate) fn security() -> SecurityAssociation {
    SecurityAssociation::hmac_sha1(Spi(256), b"0123456789abcdef".to_vec()).unwrap()
}

pub(crate) fn status(agent: &Running) -> Ipv6Status {
    agent.with(|carrier| carrier.ipv6_status().unwrap())
}

/// Waits until an agent fulfils a condition.
#[track_caller]
pub(crate) fn wait_until(agent: &Running, what: &str, condition: impl Fn(&Ipv6Status) -> bool) -> Ipv6Status {
    let clock = Clock::start();
    loop {
        let status = status(agent);
        if condition(&status) {
            return status;
        }
        assert!(clock.now().since_start() < PATIENCE, "not {what}: {status:#?}");
        sleep(Duration::from_millis(5));
    }
}

/// Waits until a mobile node is registered by an interface.
#[track_caller]
pub(crate) fn wait_registered(mobile: &Running, interface: &str) -> Ipv6Status {
    wait_until(mobile, &format!("registered by {interface}"), |status| {
        let registration = status.registration.as_ref().unwrap();
        registration.registered && registration.interface.as_deref() == Some(interface)
    })
}

/// The table of routes to addresses of the host itself.
const LOCAL_TABLE: u32 = 255;

/// What agents may set of interfaces.
const PARAMETERS: [&str; 7] = [
    "forwarding",
    "accept_ra",
    "disable_ipv6",
    "ignore_routes_with_linkdown",
    "proxy_ndp",
    "optimistic_dad",
    "use_optimistic",
];

/// The same of IPv4.
const IPV4_PARAMETERS: [&str; 7] = [
    "forwarding",
    "rp_filter",
    "send_redirects",
    "accept_redirects",
    "arp_ignore",
    "arp_announce",
    "ignore_routes_with_linkdown",
];

/// Everything a carrier may have changed in a host: rules, routes of all its tables, addresses, parameters. What comes and goes by itself
/// is left out: link-local addresses, groups, and lifetimes.
pub(crate) fn state_of(host: &Host) -> Vec<String> {
    host.run(|| {
        let mut netlink = Netlink::open().unwrap();
        let mut state: Vec<String> =
            netlink.rules().unwrap().iter().map(|rule| format!("{rule:?}")).collect();
        for table in (254..=LOCAL_TABLE).chain(43_500..43_564) {
            let routes = netlink.routes(table).unwrap().into_iter();
            state.extend(routes.map(|route| format!("{:?}", Route { lifetime: None, ..route })));
        }
        for on in netlink.assigned_addresses().unwrap() {
            state.push(format!("address {} {}/{}", on.interface, on.address, on.prefix_length));
        }
        let mut names: Vec<String> =
            netlink.interfaces().unwrap().into_iter().map(|interface| interface.name).collect();
        names.extend(["all".to_owned(), "default".to_owned()]);
        for name in names {
            for parameter in IPV4_PARAMETERS {
                let path = format!("/proc/sys/net/ipv4/conf/{name}/{parameter}");
                state.push(format!("{path} {}", std::fs::read_to_string(&path).unwrap().trim()));
            }
            for parameter in PARAMETERS {
                let path = format!("/proc/sys/net/ipv6/conf/{name}/{parameter}");
                state.push(format!("{path} {}", std::fs::read_to_string(&path).unwrap().trim()));
            }
        }
        state.retain(|line| !line.contains("fe80:") && !line.contains("ff00:"));
        state.sort();
        state
    })
    .unwrap()
}

/// Whether a host is as it was; what the kernel's own neighbor discovery has to put right may take a moment.
#[track_caller]
pub(crate) fn assert_as_it_was(host: &Host, before: &[String]) {
    assert_as_it_was_but_for(host, before, |_| false);
}

/// The same without the lines that `excused` is true of.
#[track_caller]
pub(crate) fn assert_as_it_was_but_for(host: &Host, before: &[String], excused: impl Fn(&String) -> bool) {
    let before: Vec<&String> = before.iter().filter(|line| !excused(line)).collect();
    let clock = Clock::start();
    loop {
        let mut after = state_of(host);
        after.retain(|line| !excused(line));
        let missing = before.iter().filter(|line| !after.contains(line)).map(|line| format!("- {line}"));
        let added = after.iter().filter(|line| !before.contains(line)).map(|line| format!("+ {line}"));
        let difference: Vec<String> = missing.chain(added).collect();
        if difference.is_empty() {
            return;
        }
        assert!(clock.now().since_start() < PATIENCE, "{}: {difference:#?}", host.name());
        sleep(Duration::from_millis(20));
    }
}

/// Waits until the kernel has formed an address on each link of the mobile node, and has its route: that comes when Duplicate Address
/// Detection is over.
pub(crate) fn wait_for_addresses(host: &Host) {
    wait_for_addresses_of(host, &[WLAN, GSM]);
}

/// The same on these links.
pub(crate) fn wait_for_addresses_of(host: &Host, networks: &[Prefix]) {
    let clock = Clock::start();
    loop {
        let read = || {
            let mut netlink = Netlink::open().unwrap();
            (netlink.assigned_addresses().unwrap(), netlink.routes(LOCAL_TABLE).unwrap())
        };
        let (addresses, routes) = host.run(read).unwrap();
        let has = |network: Prefix| {
            let mut inside = addresses
                .iter()
                .filter(|on| matches!(on.address, IpAddr::V6(address) if network.contains(address)));
            inside.any(|on| {
                let is_routed = routes.iter().any(|route| route.destination == on.address);
                !on.is_tentative && is_routed
            })
        };
        if networks.iter().all(|network| has(*network)) {
            return;
        }
        assert!(clock.now().since_start() < PATIENCE, "{addresses:#?} {routes:#?}");
        sleep(Duration::from_millis(5));
    }
}

/// Counts the Parameter Problems that reach a host: what it sends is not understood.
pub(crate) struct Problems(Icmpv6Socket);

impl Problems {
    pub(crate) fn listen(host: &Host) -> Self {
        Self(host.run(|| Icmpv6Socket::open(&[4])).unwrap().unwrap())
    }

    pub(crate) fn heard(&self) -> usize {
        let mut buffer = [0; 2048];
        let mut heard = 0;
        while self.0.receive(&mut buffer).unwrap().is_some() {
            heard += 1;
        }
        heard
    }
}
