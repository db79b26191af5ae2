//! The network of the tests.
//!
//! ```text
//! correspondent ---- router ---- home agent      (Ethernet: ARP matters)
//!                     |  | '----- foreign agent - - -.
//!                 wlan0  gsm0    (emulated)     visit0 (Ethernet, on request)
//!                     |  |                           :
//!                     mobile node  - - - - - - - - - '
//! ```

use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::path::Path;

use careof_base::{DataRate, Duration};
use careof_lab::{
    Change, Clock, Direction, Emulator, Host, InterfaceConfig, LinkId, LinkSpec, Netlink, Options, Realm,
    Route, Timing, Tun, set_sysctl,
};
use careof_link::{Config, Fate, QueueConfig, QueueLimit};
use tempfile::TempDir;

use super::{Daemon, WebServer};

pub(crate) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 2);
pub(crate) const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub(crate) const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(crate) const FOREIGN_AGENT: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);
/// The addresses of a neighbour and of the mobile node in their cluster.
pub(crate) const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(172, 16, 9, 1);
pub(crate) const IN_CLUSTER: Ipv4Addr = Ipv4Addr::new(172, 16, 9, 2);
/// The mobile node's interface to the foreign agent.
pub(crate) const VISITED_INTERFACE: &str = "visit0";

const KEY: &str = "8f1c2a77d09be43516a0c7f92e5d3b48";

/// The key of the mobile node, with SPI 256.
pub(crate) fn key() -> [u8; 16] {
    u128::from_str_radix(KEY, 16).unwrap().to_be_bytes()
}

/// A link by which the mobile node is attached, with an address that does not survive a move.
#[derive(Debug)]
pub(crate) struct Access {
    /// The mobile node's interface.
    pub(crate) name: &'static str,
    /// The mobile node's address: the care-of address.
    pub(crate) address: Ipv4Addr,
    router: Ipv4Addr,
    metric: u32,
    link: LinkId,
    /// The mobile node's end.
    tun: Tun,
}

/// A neighbour in the mobile node's cluster.
#[derive(Debug)]
pub(crate) struct Neighbour {
    pub(crate) host: Host,
    /// What it can lend.
    pub(crate) link: Access,
}

/// The hosts and what is between them. All of it goes when it is dropped.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) correspondent: Host,
    pub(crate) router: Host,
    pub(crate) home: Host,
    pub(crate) mobile: Host,
    /// 2 Mbit/s, 20 ms there and back; preferred.
    pub(crate) wlan: Access,
    /// 1 Mbit/s, 120 ms there and back.
    pub(crate) gsm: Access,
    foreign: Option<Host>,
    realm: Realm,
    emulator: Emulator,
    directory: TempDir,
}

impl Network {
    pub(crate) fn new(realm: Realm) -> Self {
        let law = |rate, delay| {
            law(DataRate::from_kilobits_per_second(rate), Duration::from_millis(delay), DEFAULT_QUEUE)
        };
        Self::between(realm, 0, [law(2000, 10), law(1000, 60)])
    }

    /// With other access links, each the same both ways. `seed` is that of their losses and jitter.
    pub(crate) fn between(realm: Realm, seed: u64, laws: [Config; 2]) -> Self {
        let host = |name| {
            let host = realm.host(name).unwrap();
            // Nothing but IPv4, and nothing that the machine at hand decides.
            parameters(
                &host,
                &[
                    ("net.ipv6.conf.all.disable_ipv6", "1"),
                    ("net.ipv6.conf.default.disable_ipv6", "1"),
                    ("net.ipv4.tcp_congestion_control", "reno"),
                ],
            );
            host
        };
        let (correspondent, router) = (host("correspondent"), host("router"));
        let (home, mobile) = (host("home agent"), host("mobile node"));
        cable(
            &correspondent,
            "eth0",
            (CORRESPONDENT, 24),
            &router,
            "cn0",
            (Ipv4Addr::new(203, 0, 113, 1), 24),
        );
        let home_router = Ipv4Addr::new(192, 0, 2, 254);
        cable(&home, "eth0", (HOME_AGENT, 24), &router, "home0", (home_router, 24));
        parameters(&router, &[("net.ipv4.ip_forward", "1")]);
        default_route(&home, "eth0", home_router, 0);
        // No default route there: names that the web server looks up are known at once not to be found.
        for (prefix, length) in [(Ipv4Addr::new(192, 0, 2, 0), 24), (Ipv4Addr::new(10, 0, 0, 0), 8)] {
            route(&correspondent, "eth0", (prefix, length), Ipv4Addr::new(203, 0, 113, 1), 0);
        }
        let options = Options { timing: Timing::Timer, seed, ..Options::default() };
        let emulator = Emulator::start(Clock::start(), options).unwrap();
        let [wlan, gsm] = laws;
        let access = |name, number, law| access((&mobile, &router), &emulator, (name, number), law);
        let (wlan, gsm) = (access("wlan0", 1, wlan), access("gsm0", 2, gsm));
        let network = Self {
            correspondent,
            router,
            home,
            mobile,
            wlan,
            gsm,
            foreign: None,
            realm,
            emulator,
            directory: tempfile::Builder::new().prefix("careof-").tempdir().unwrap(),
        };
        network.restore_default_route(&network.wlan);
        network.restore_default_route(&network.gsm);
        network
    }

    /// A third access link, `lte0`.
    pub(crate) fn attach_third(&self, law: Config) -> Access {
        let third = access((&self.mobile, &self.router), &self.emulator, ("lte0", 3), law);
        self.restore_default_route(&third);
        third
    }

    /// A neighbour with a link of its own, `lent0`, and an Ethernet to the mobile node, `cluster0` at both ends.
    pub(crate) fn add_neighbour(&self, law: Config) -> Neighbour {
        let host = self.realm.host("neighbour").unwrap();
        parameters(
            &host,
            &[("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1")],
        );
        let link = access((&host, &self.router), &self.emulator, ("lent0", 4), law);
        default_route(&host, link.name, link.router, 0);
        wire(&host, "cluster0", &self.mobile, "cluster0");
        address(&host, "cluster0", (NEIGHBOUR, 24));
        address(&self.mobile, "cluster0", (IN_CLUSTER, 24));
        Neighbour { host, link }
    }

    /// `trust` is what the file says of that, and what follows.
    pub(crate) fn start_relay(&self, neighbour: &Neighbour, trust: &str) -> Daemon {
        let text = format!("role = \"relay\"\ncluster = \"cluster0\"\nlink = \"lent0\"\n{trust}");
        Daemon::start(&neighbour.host, self.directory(), "relay", &text)
    }

    /// Where files of this test are.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn web_server(&self) -> WebServer {
        WebServer::start(&self.correspondent, self.directory())
    }

    pub(crate) fn start_home_agent(&self) -> Daemon {
        self.start_home_agent_with("")
    }

    /// A home agent with further keys.
    pub(crate) fn start_home_agent_with(&self, more: &str) -> Daemon {
        Daemon::start(&self.home, self.directory(), "home", &self.home_configuration(more))
    }

    /// `more` are further keys.
    pub(crate) fn home_configuration(&self, more: &str) -> String {
        format!(
            "role = \"home\"\naddress = \"{HOME_AGENT}\"\nhome_network = \"192.0.2.0/24\"\ninterface = \"eth0\"\n\
             {more}\n[store]\ndirectory = \"{}\"\n\
             [[mobile_node]]\nhome_address = \"{HOME_ADDRESS}\"\nspi = 256\nkey = \"{KEY}\"\n",
            self.directory().display()
        )
    }

    /// A mobile node that goes back to the preferred link soon.
    pub(crate) fn start_mobile_node(&self) -> Daemon {
        let interfaces = "[[interface]]\nname = \"wlan0\"\n[[interface]]\nname = \"gsm0\"\n";
        self.start_mobile_node_with(interfaces)
    }

    /// A mobile node with other interfaces, and further keys before them.
    pub(crate) fn start_mobile_node_with(&self, interfaces: &str) -> Daemon {
        Daemon::start(&self.mobile, self.directory(), "mobile", &Self::mobile_configuration(interfaces))
    }

    /// `interfaces` are the tables of these.
    pub(crate) fn mobile_configuration(interfaces: &str) -> String {
        format!(
            "role = \"mobile\"\nhome_address = \"{HOME_ADDRESS}\"\nhome_network = \"192.0.2.0/24\"\n\
             home_agent = \"{HOME_AGENT}\"\nspi = 256\nkey = \"{KEY}\"\nhold = \"200 ms\"\nlifetime = \"60 s\"\n\
             {interfaces}"
        )
    }

    /// Takes a link's carrier away, with all that is on it, or gives it back.
    pub(crate) fn set_carrier(&self, access: &Access, has_carrier: bool) {
        self.set_silent(access, !has_carrier);
        access.tun.set_carrier(has_carrier).unwrap();
    }

    /// Loses everything that is on a link or sent into it, either way, or no longer. No interface notices.
    pub(crate) fn set_silent(&self, access: &Access, is_silent: bool) {
        let changes = Direction::ALL.map(|direction| match is_silent {
            false => Change::SetUp { link: access.link, direction },
            true => {
                Change::SetDown { link: access.link, direction, queued: Fate::Drop, in_flight: Fate::Drop }
            }
        });
        self.emulator.apply(changes.to_vec()).unwrap();
    }

    /// As `ip link set down` and `up`; with it go and come the routes.
    pub(crate) fn set_up(&self, access: &Access, up: bool) {
        let name = access.name;
        let done = self.mobile.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            if up { netlink.set_up(index) } else { netlink.set_down(index) }
        });
        done.unwrap().unwrap();
        if up {
            self.restore_default_route(access);
        }
    }

    /// The care-of address goes, as when a lease ends, or comes back.
    pub(crate) fn set_address(&self, access: &Access, present: bool) {
        let (name, address) = (access.name, access.address);
        let done = self.mobile.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            if present {
                netlink.add_address(index, address.into(), 24)
            } else {
                netlink.remove_address(index, address.into(), 24)
            }
        });
        done.unwrap().unwrap();
        if present {
            self.restore_default_route(access);
        }
    }

    fn restore_default_route(&self, access: &Access) {
        default_route(&self.mobile, access.name, access.router, access.metric);
    }

    /// Both access links become as fast as a cable.
    pub(crate) fn hurry(&self) {
        let config = law(DataRate::from_megabits_per_second(100), Duration::from_millis(1), DEFAULT_QUEUE);
        let changes = [&self.wlan, &self.gsm]
            .into_iter()
            .flat_map(|access| Direction::ALL.map(|direction| (access.link, direction)))
            .map(|(link, direction)| Change::Reconfigure { link, direction, config: config.clone() });
        self.emulator.apply(changes.collect()).unwrap();
    }

    /// Adds the foreign agent's host, with an Ethernet to the mobile node, which has no address there.
    pub(crate) fn add_foreign_agent(&mut self) {
        let foreign = self.realm.host("foreign agent").unwrap();
        parameters(
            &foreign,
            &[("net.ipv6.conf.all.disable_ipv6", "1"), ("net.ipv6.conf.default.disable_ipv6", "1")],
        );
        let router = Ipv4Addr::new(198, 51, 100, 254);
        cable(&foreign, "eth0", (FOREIGN_AGENT, 24), &self.router, "fa0", (router, 24));
        default_route(&foreign, "eth0", router, 0);
        let visited = Ipv4Addr::new(172, 16, 0, 1);
        wire(&foreign, "visit0", &self.mobile, VISITED_INTERFACE);
        address(&foreign, "visit0", (visited, 24));
        self.foreign = Some(foreign);
    }

    pub(crate) fn foreign(&self) -> &Host {
        self.foreign.as_ref().unwrap()
    }

    pub(crate) fn start_foreign_agent(&self) -> Daemon {
        Daemon::start(self.foreign(), self.directory(), "foreign", &foreign_configuration())
    }
}

pub(crate) fn foreign_configuration() -> String {
    format!(
        "role = \"foreign\"\ncare_of = \"{FOREIGN_AGENT}\"\n\
             advertisements = {{ interval = \"500 ms\", above_recommended_rate = true, lifetime = \"2 s\" }}\n\
             [[interface]]\nname = \"visit0\"\naddress = \"172.16.0.1\"\n"
    )
}

/// Lays an access link between the mobile node and the router; its number is in its addresses and its metric.
fn access(
    (mobile, router): (&Host, &Host),
    emulator: &Emulator,
    (name, number): (&'static str, u8),
    law: Config,
) -> Access {
    let (address, gateway) = (Ipv4Addr::new(10, number, 0, 2), Ipv4Addr::new(10, number, 0, 1));
    let config = |name, address: Ipv4Addr| InterfaceConfig::new(name, address.into(), 24);
    let tun = mobile.attach(&config(name, address)).unwrap();
    let other = router.attach(&config(&format!("{name}-r"), gateway)).unwrap();
    let spec = LinkSpec {
        name: name.to_owned(),
        a: other,
        b: tun.try_clone().unwrap(),
        forward: law.clone(),
        backward: law,
    };
    let link = emulator.add_link(spec).unwrap();
    Access { name, address, router: gateway, metric: u32::from(number) * 100, link, tun }
}

/// Packets.
const DEFAULT_QUEUE: u32 = 40;

/// A link with room for so many packets in its queue.
pub(crate) fn law(rate: DataRate, delay: Duration, queue: u32) -> Config {
    let queue = QueueConfig { limit: QueueLimit::Packets(queue), ..QueueConfig::default() };
    Config { rate, delay, queue, ..Config::default() }
}

fn parameters(host: &Host, values: &'static [(&str, &str)]) {
    for (name, value) in values {
        host.run(|| set_sysctl(name, value)).unwrap().unwrap();
    }
}

/// Two hosts connected by Ethernet, both ends up.
fn wire(one: &Host, name: &'static str, other: &Host, other_name: &'static str) {
    let namespace = other.namespace().unwrap();
    one.run(move || Netlink::open()?.add_veth(name, other_name, namespace.as_fd())).unwrap().unwrap();
    for (host, name) in [(one, name), (other, other_name)] {
        let up = host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.set_up(index)
        });
        up.unwrap().unwrap();
    }
}

fn cable(
    one: &Host,
    name: &'static str,
    here: (Ipv4Addr, u8),
    other: &Host,
    other_name: &'static str,
    there: (Ipv4Addr, u8),
) {
    wire(one, name, other, other_name);
    address(one, name, here);
    address(other, other_name, there);
}

fn address(host: &Host, name: &'static str, (address, length): (Ipv4Addr, u8)) {
    let given = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.add_address(index, address.into(), length)
    });
    given.unwrap().unwrap();
}

fn default_route(host: &Host, name: &'static str, via: Ipv4Addr, metric: u32) {
    route(host, name, (Ipv4Addr::UNSPECIFIED, 0), via, metric);
}

fn route(host: &Host, name: &'static str, to: (Ipv4Addr, u8), via: Ipv4Addr, metric: u32) {
    let set = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        let metric = (metric != 0).then_some(metric);
        let route = Route { via: Some(via.into()), metric, ..Route::to(to.0.into(), to.1, index) };
        netlink.set_route(&route)
    });
    set.unwrap().unwrap();
}
