//! A foreign agent behind a home agent, on links that can be cut in one direction.
//!
//! ```text
//! correspondent 10.9.0.2 --- 10.9.0.1 home agent 172.16.0.1 --- 172.16.0.2 foreign agent 10.7.0.1 --- 10.7.0.7 wlan0
//!                                     (10.0.0.1) 10.8.0.2 ------------------ 10.8.0.1    10.6.0.1 --- 10.6.0.7 wlan1
//!                                                                                                mobile node (10.0.0.7)
//! ```

use std::net::Ipv4Addr;
use std::time::Duration;

use crate::support::ethernet::FA;
use crate::support::registration::identification;
use crate::support::*;
use careof_agent::{Device, ForeignSetup, Hooks, HostOptions, MobileSetup, Setup};
use careof_base::DataRate;
use careof_lab::{Change, Clock, Direction, Emulator, Host, LinkId, Netlink, Options, Realm, set_sysctl};
use careof_link::{Config, Fate};
use careof_mobility::v4::{
    AdvertiserConfig, CareOfChoice, DeliveryMethod, ForeignAgentConfig, ForeignLink, InterfaceId,
    MobileNodeConfig, PolicyTable,
};
use careof_wire::mip4::{
    Algorithm, AuthenticationKind, Extension, Lifetime, Message, RegistrationRequest, RequestFlags, Spi,
    append_authentication,
};

/// The foreign agent's addresses on its links: the mobile node's, its other one, and one with the home agent's host.
pub(super) const VISITS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 7, 0, 1), Ipv4Addr::new(10, 6, 0, 1), Ipv4Addr::new(10, 8, 0, 1)];
/// The addresses of the mobile node's host there, and of the home agent's.
pub(super) const STATIONS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(10, 7, 0, 7), Ipv4Addr::new(10, 6, 0, 7), Ipv4Addr::new(10, 8, 0, 2)];

pub(super) struct Abroad {
    pub(super) clock: Clock,
    pub(super) correspondent: Host,
    pub(super) home: Host,
    pub(super) foreign: Host,
    pub(super) mobile: Host,
    emulator: Emulator,
    /// From the foreign agent to the mobile node.
    visit: LinkId,
}

impl Abroad {
    pub(super) fn new(realm: Realm) -> Self {
        let clock = Clock::start();
        let emulator = Emulator::start(clock, Options::default()).unwrap();
        let host = |name| realm.host(name).unwrap();
        let (correspondent, home) = (host("correspondent"), host("home"));
        let (foreign, mobile) = (host("foreign"), host("mobile"));
        let link = |name: &str, config: &Config, a: (&Host, &str, Ipv4Addr), b: (&Host, &str, Ipv4Addr)| {
            add_link(&emulator, name, config, [a, b])
        };
        let wire = Config { delay: Duration::from_millis(1), ..Config::default() };
        let rate = DataRate::from_megabits_per_second(10);
        let radio = Config { rate, delay: Duration::from_millis(5), ..Config::default() };
        let backbone = Ipv4Addr::new(172, 16, 0, 1);
        link("up", &wire, (&correspondent, "up0", CORRESPONDENT), (&home, "up0", Ipv4Addr::new(10, 9, 0, 1)));
        link("back", &wire, (&home, "back0", backbone), (&foreign, "up0", FA));
        let visit = link("visit0", &radio, (&foreign, "visit0", VISITS[0]), (&mobile, "wlan0", STATIONS[0]));
        link("visit1", &wire, (&foreign, "visit1", VISITS[1]), (&mobile, "wlan1", STATIONS[1]));
        link("visit2", &wire, (&foreign, "visit2", VISITS[2]), (&home, "back1", STATIONS[2]));
        default_route(&correspondent, "up0", None);
        default_route(&foreign, "up0", None);
        default_route(&mobile, "wlan0", Some(100));
        home.run(|| {
            set_sysctl("net.ipv4.ip_forward", "1").unwrap();
            let mut netlink = Netlink::open().unwrap();
            let loopback = netlink.index_of("lo").unwrap();
            netlink.add_address(loopback, HA.into(), 32).unwrap();
        })
        .unwrap();
        for host in [&correspondent, &mobile] {
            host.run(|| set_sysctl("net.ipv4.tcp_congestion_control", "reno").unwrap()).unwrap();
        }
        Self { clock, correspondent, home, foreign, mobile, emulator, visit }
    }

    pub(super) fn foreign_setup(&self) -> ForeignSetup {
        let advertisements = AdvertiserConfig::every(Duration::from_secs(1));
        let links = [0, 1, 2].map(|n| ForeignLink {
            interface: InterfaceId(n),
            address: VISITS[usize::from(n)],
            advertisements,
        });
        let [first, ..] = links;
        ForeignSetup {
            config: ForeignAgentConfig { links: links.to_vec(), ..ForeignAgentConfig::new(FA, FA, first) },
            devices: [0, 1, 2].map(|n| Device::new(n, format!("visit{n}"))).to_vec(),
            host: HostOptions::default(),
            assist: None,
        }
    }

    pub(super) fn foreign_agent(&self, setup: ForeignSetup) -> Running {
        Running::open(&self.foreign, Setup::Foreign(setup), self.clock, Hooks::default())
    }

    /// One that visits by `wlan0`, with tunnels both ways.
    pub(super) fn mobile_node(&self) -> Running {
        let mut abroad = interface(1);
        abroad.care_of = CareOfChoice::ForeignAgent;
        let mut config = MobileNodeConfig::new(HOME, home_network(), HA, security(), vec![abroad]);
        config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
        config.reverse_tunnel = true;
        let devices = vec![Device::new(1, "wlan0")];
        let setup = MobileSetup {
            config,
            devices,
            host: HostOptions::default(),
            assist: None,
            multipath: careof_agent::MultipathSetup::default(),
        };
        Running::open(&self.mobile, Setup::Mobile(setup), self.clock, Hooks::default())
    }

    /// Nothing reaches the mobile node by `wlan0` any more, and no interface notices; or it does again.
    pub(super) fn cut_to_mobile_node(&self, is_cut: bool) {
        let (link, direction) = (self.visit, Direction::Forward);
        let change = if is_cut {
            Change::SetDown { link, direction, queued: Fate::Drop, in_flight: Fate::Drop }
        } else {
            Change::SetUp { link, direction }
        };
        self.emulator.apply(vec![change]).unwrap();
    }
}

/// Asks the foreign agent whose address on the link is `agent`, with a reverse tunnel, in a mobile node's name and with its key.
pub(super) fn ask_to_visit(
    from: &Udp,
    agent: Ipv4Addr,
    (home_address, home_agent): (Ipv4Addr, Ipv4Addr),
    extensions: Vec<Extension>,
) {
    let request = RegistrationRequest {
        flags: RequestFlags::REVERSE_TUNNELING,
        lifetime: Lifetime::from_secs(600),
        home_address,
        home_agent,
        care_of_address: FA,
        identification: identification(),
        extensions,
    };
    let mut bytes = Message::Request(request).emit();
    let key = b"0123456789abcdef";
    append_authentication(&mut bytes, AuthenticationKind::MobileHome, Spi(256), Algorithm::HmacMd5, key);
    from.set_ttl(255).unwrap();
    from.send_to(&bytes, (agent, 434)).unwrap();
}
