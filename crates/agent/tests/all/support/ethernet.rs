//! A home link with ARP, and a foreign agent.
//!
//! ```text
//!  correspondent 10.0.0.2 --+-- home agent 10.0.0.1 (br0) -- 172.16.0.1 --- 172.16.0.2 foreign agent 10.7.0.1
//!  mobile node eth0 --------+                                                      |
//!              wlan0 --------------------------------------------------------------+
//! ```

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use careof_agent::{
    Device, ForeignSetup, HomeNetwork, HomeSetup, Hooks, HostOptions, MobileSetup, MultipathSetup, Setup,
};
use careof_lab::{Clock, Error, Host, Netlink, Realm, Route, set_sysctl};
use careof_mobility::v4::{
    AdvertiserConfig, CareOfChoice, ForeignAgentConfig, ForeignLink, HomeAgentConfig, InterfaceId,
    MobileNodeConfig, ServedMobileNode,
};

use super::{HA, HOME, Running, home_network, interface, security};

pub(crate) const NEIGHBOUR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
pub(crate) const FA: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const BACKBONE: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
pub(crate) const FA_LINK: Ipv4Addr = Ipv4Addr::new(10, 7, 0, 1);

pub(crate) struct Ethernet {
    pub(crate) clock: Clock,
    pub(crate) correspondent: Host,
    pub(crate) home: Host,
    pub(crate) foreign: Host,
    pub(crate) mobile: Host,
}

/// A link between two hosts, both ends up.
pub(crate) fn cable(a: (&Host, &'static str), b: (&Host, &'static str)) {
    let (here, there) = (a.1, b.1);
    let namespace = b.0.namespace().unwrap();
    a.0.run(move || Netlink::open()?.add_veth(here, there, namespace.as_fd())).unwrap().unwrap();
    for (host, name) in [a, b] {
        let up = host.run(move || {
            set_sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1")?;
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            netlink.set_up(index)
        });
        up.unwrap().unwrap();
    }
}

fn address(host: &Host, name: &'static str, address: Ipv4Addr) {
    let given = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(name)?;
        netlink.add_address(index, address.into(), 24)
    });
    given.unwrap().unwrap();
}

fn default_by(host: &Host, name: &'static str, via: Ipv4Addr) {
    let set = host.run(move || {
        let mut netlink = Netlink::open()?;
        let through = Route::default_through(netlink.index_of(name)?, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        netlink.set_route(&Route { via: Some(via.into()), ..through })?;
        Ok::<_, Error>(())
    });
    set.unwrap().unwrap();
}

/// `ip` with these words in a host; whether it worked.
pub(crate) fn ip(host: &Host, words: &'static str) -> bool {
    let run = host.run(move || Command::new("ip").args(words.split(' ')).status());
    run.unwrap().is_ok_and(|status| status.success())
}

impl Ethernet {
    /// The hosts; `None`, and the reason printed, where there is no program to make a bridge with.
    pub(crate) fn new(realm: Realm) -> Option<Self> {
        let host = |name| realm.host(name).unwrap();
        let (correspondent, home) = (host("correspondent"), host("home"));
        let (foreign, mobile) = (host("foreign"), host("mobile"));
        if !ip(&home, "link add br0 type bridge forward_delay 0") {
            careof_testbed::skip(
                "cannot make a bridge\n  hint: install iproute2, or a kernel with CONFIG_BRIDGE",
            );
            return None;
        }
        cable((&home, "port0"), (&correspondent, "eth0"));
        // By default what it learnt less than a second ago stays.
        correspondent.run(|| set_sysctl("net.ipv4.neigh.eth0.locktime", "0")).unwrap().unwrap();
        cable((&home, "port1"), (&mobile, "eth0"));
        assert!(ip(&home, "link set port0 master br0") && ip(&home, "link set port1 master br0"));
        assert!(ip(&home, "link set br0 up"));
        cable((&home, "back0"), (&foreign, "up0"));
        cable((&foreign, "visit0"), (&mobile, "wlan0"));
        address(&home, "br0", HA);
        address(&home, "back0", BACKBONE);
        address(&correspondent, "eth0", NEIGHBOUR);
        address(&foreign, "up0", FA);
        address(&foreign, "visit0", FA_LINK);
        default_by(&foreign, "up0", BACKBONE);
        default_by(&correspondent, "eth0", HA);
        Some(Self { clock: Clock::start(), correspondent, home, foreign, mobile })
    }

    pub(crate) fn home_agent(&self) -> Running {
        let advertisements = AdvertiserConfig::every(Duration::from_secs(1));
        let setup = HomeSetup {
            config: HomeAgentConfig {
                mobile_nodes: vec![ServedMobileNode::new(HOME, security())],
                advertisements: Some(advertisements),
                ..HomeAgentConfig::new(HA, home_network(), InterfaceId(0))
            },
            devices: vec![Device::new(0, "br0")],
            home_network: HomeNetwork::Link,
            host: HostOptions::default(),
            assist: None,
            multipath: MultipathSetup::default(),
        };
        Running::open(&self.home, Setup::Home(setup), self.clock, Hooks::default())
    }

    pub(crate) fn foreign_setup(&self) -> ForeignSetup {
        let advertisements = AdvertiserConfig::every(Duration::from_secs(1));
        let link = ForeignLink { interface: InterfaceId(1), address: FA_LINK, advertisements };
        ForeignSetup {
            config: ForeignAgentConfig::new(FA, FA, link),
            devices: vec![Device::new(1, "visit0")],
            host: HostOptions::default(),
            assist: None,
        }
    }

    pub(crate) fn foreign_agent(&self, setup: ForeignSetup) -> Running {
        Running::open(&self.foreign, Setup::Foreign(setup), self.clock, Hooks::default())
    }

    pub(crate) fn mobile_setup(&self) -> MobileSetup {
        let mut abroad = interface(1);
        abroad.care_of = CareOfChoice::ForeignAgent;
        MobileSetup {
            config: MobileNodeConfig::new(HOME, home_network(), HA, security(), vec![interface(0), abroad]),
            devices: vec![Device::new(0, "eth0"), Device::new(1, "wlan0")],
            host: HostOptions::default(),
            assist: None,
            multipath: MultipathSetup::default(),
        }
    }

    pub(crate) fn mobile_node(&self, setup: MobileSetup) -> Running {
        Running::open(&self.mobile, Setup::Mobile(setup), self.clock, Hooks::default())
    }
}
