//! The hosts and links of two domains of Hierarchical Mobile IPv6.
//!
//! ```text
//!                                               +--- west: anchor point 2001:db8:51::1 --- wlan0 2001:db8:100::/64
//!  correspondent ------------- home agent ------+                                      \-- gsm0  2001:db8:101::/64    mobile node
//!     ::2     2001:db8:9::/64                   +--- east: anchor point 2001:db8:52::1 --- lte0  2001:db8:200::/64
//! ```
//!
//! The anchor points are access routers as well. The networks of regional care-of addresses and the home network have no link.

use std::net::Ipv6Addr;
use std::time::Duration;

use careof_agent::{
    Device, Hooks, HostOptions, Ipv6AnchorPointSetup, Ipv6CorrespondentSetup, Ipv6HierarchicalMobileSetup,
    Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup,
};
use careof_lab::{Clock, Host, Realm, set_sysctl};
use careof_mobility::v6::{
    CorrespondentNodeConfig, HomeAgentConfig, InterfaceConfig, MapAssociation, MobileNodeConfig,
    MobilityAnchorPointConfig, Prefix, SecurityAssociation, ServedMobileNode,
};
use careof_mobility::{InterfaceId, Selection};
use careof_wire::icmpv6::{MapOption, PrefixLifetime};
use careof_wire::mip6::Spi;

use super::network::*;
use crate::support::{Running, set_interface};

pub(crate) const MAP_WEST: Ipv6Addr = on(0x51, 1);
pub(crate) const MAP_EAST: Ipv6Addr = on(0x52, 1);
pub(crate) const REGIONAL_WEST: Ipv6Addr = on(0x51, 7);
pub(crate) const REGIONAL_EAST: Ipv6Addr = on(0x52, 7);

/// The mobile node's links.
pub(crate) const WLAN0: Prefix = Prefix::new(on(0x100, 0), 64);
pub(crate) const GSM0: Prefix = Prefix::new(on(0x101, 0), 64);
pub(crate) const LTE0: Prefix = Prefix::new(on(0x200, 0), 64);

pub(crate) struct Domains {
    pub(crate) clock: Clock,
    pub(crate) correspondent: Host,
    pub(crate) home: Host,
    pub(crate) west: Host,
    pub(crate) east: Host,
    pub(crate) mobile: Host,
    _advertisers: Vec<Advertising>,
}

/// The security association with an anchor point: not that with the home agent.
fn association(map: Ipv6Addr) -> SecurityAssociation {
    let key = [&map.octets()[..], b"anchor"].concat();
    SecurityAssociation::hmac_sha1(Spi(257), key).unwrap()
}

impl Domains {
    pub(crate) fn new(realm: Realm) -> Self {
        let clock = Clock::start();
        let host = |name: &str| {
            let host = realm.host(name).unwrap();
            skip_detection(&host);
            host
        };
        let router = |name: &str| {
            let host = host(name);
            host.run(|| set_sysctl("net.ipv6.conf.all.forwarding", "1")).unwrap().unwrap();
            host
        };
        let (correspondent, mobile) = (host("correspondent"), host("mobile"));
        let (home, west, east) = (router("home"), router("west"), router("east"));
        cable((&correspondent, "up0", Some(CORRESPONDENT)), (&home, "down0", Some(on(9, 1))));
        cable((&home, "west0", Some(on(0xa1, 1))), (&west, "up0", Some(on(0xa1, 2))));
        cable((&home, "east0", Some(on(0xa2, 1))), (&east, "up0", Some(on(0xa2, 2))));
        cable((&west, "down0", Some(on(0x100, 1))), (&mobile, "wlan0", None));
        cable((&west, "down1", Some(on(0x101, 1))), (&mobile, "gsm0", None));
        cable((&east, "down0", Some(on(0x200, 1))), (&mobile, "lte0", None));
        let everywhere = (Ipv6Addr::UNSPECIFIED, 0);
        route(&correspondent, "up0", everywhere, on(9, 1));
        route(&west, "up0", everywhere, on(0xa1, 1));
        route(&east, "up0", everywhere, on(0xa2, 1));
        for network in [WLAN0.address(), GSM0.address(), on(0x51, 0)] {
            route(&home, "west0", (network, 64), on(0xa1, 2));
        }
        for network in [LTE0.address(), on(0x52, 0)] {
            route(&home, "east0", (network, 64), on(0xa2, 2));
        }
        let option = |address| MapOption {
            distance: 1,
            preference: 10,
            allocates_address: false,
            valid_lifetime: PrefixLifetime::from_secs(1800),
            address,
        };
        let advertisers = [
            (&west, "down0", WLAN0, MAP_WEST),
            (&west, "down1", GSM0, MAP_WEST),
            (&east, "down0", LTE0, MAP_EAST),
        ]
        .map(|(host, name, prefix, map)| {
            Advertising::with_maps(host, name, prefix, vec![option(map)], clock)
        });
        Self { clock, correspondent, home, west, east, mobile, _advertisers: advertisers.into() }
    }

    pub(crate) fn wait_for_addresses(&self) {
        wait_for_addresses_of(&self.mobile, &[WLAN0, GSM0, LTE0]);
    }

    pub(crate) fn hosts(&self) -> [&Host; 5] {
        [&self.correspondent, &self.home, &self.west, &self.east, &self.mobile]
    }

    pub(crate) fn set_link(&self, name: &'static str, up: bool) {
        set_interface(&self.mobile, name, up);
    }

    pub(crate) fn home_agent(&self) -> Running {
        let config = HomeAgentConfig {
            mobile_nodes: vec![ServedMobileNode::new(HOME, security())],
            ..HomeAgentConfig::new(HA, Prefix::new(HA, 64), InterfaceId(0))
        };
        let host = HostOptions::for_ipv6();
        let setup = Ipv6Setup::Home(Ipv6HomeSetup { config, home_link: None, host, assist: None });
        Running::open(&self.home, setup, self.clock, Hooks::default())
    }

    /// The anchor point of west or east.
    pub(crate) fn anchor_point(&self, map: Ipv6Addr, assist: Option<careof_assist::Config>) -> Running {
        let prefix = Prefix::new(map, 64);
        let (host, domain, neighbor) = match map {
            MAP_WEST => (&self.west, vec![WLAN0, GSM0], LTE0),
            _ => (&self.east, vec![LTE0], WLAN0),
        };
        let regional = prefix.with_interface_of(HOME);
        let config = MobilityAnchorPointConfig {
            mobile_nodes: vec![ServedMobileNode::new(regional, association(map))],
            domain,
            neighbors: vec![neighbor],
            duplicate_address_detection: None,
            ..MobilityAnchorPointConfig::new(map, prefix, InterfaceId(0))
        };
        let options = HostOptions::for_ipv6();
        let setup = Ipv6AnchorPointSetup { config, home_link: None, host: options, assist };
        Running::open(host, Ipv6Setup::AnchorPoint(setup), self.clock, Hooks::default())
    }

    pub(crate) fn mobile_setup(&self) -> Ipv6HierarchicalMobileSetup {
        let interfaces = [0, 1, 2].map(|id: u16| InterfaceConfig {
            preference: 10 - id as u8,
            ..InterfaceConfig::new(InterfaceId(id))
        });
        let mut config =
            MobileNodeConfig::new(HOME, Prefix::new(HA, 64), HA, security(), interfaces.to_vec());
        config.selection = Selection::Preferred { hold: Duration::from_millis(100) };
        config.route_optimization = None;
        let devices = [(0, "wlan0"), (1, "gsm0"), (2, "lte0")].map(|(id, name)| Device::new(id, name));
        let mobile = Ipv6MobileSetup {
            config,
            devices: devices.into(),
            optimistic_detection: true,
            host: HostOptions { tunnel_mtu: 1420, ..HostOptions::for_ipv6() },
            assist: None,
            fast_handover: None,
        };
        let maps = [MAP_WEST, MAP_EAST].map(|map| MapAssociation::new(map, association(map)));
        Ipv6HierarchicalMobileSetup::new(mobile, maps.into())
    }

    pub(crate) fn mobile_node(&self, setup: Ipv6HierarchicalMobileSetup) -> Running {
        let setup = Ipv6Setup::HierarchicalMobile(Box::new(setup));
        Running::open(&self.mobile, setup, self.clock, Hooks::default())
    }

    pub(crate) fn correspondent_node(&self) -> Running {
        let config = CorrespondentNodeConfig::new(CORRESPONDENT);
        let host = HostOptions::for_ipv6();
        let setup = Ipv6Setup::Correspondent(Ipv6CorrespondentSetup { config, host });
        Running::open(&self.correspondent, setup, self.clock, Hooks::default())
    }
}

/// Waits until the mobile node has its address of `link` registered with an anchor point, and the regional one with its home agent.
#[track_caller]
pub(crate) fn wait_below(mobile: &Running, (map, regional): (Ipv6Addr, Ipv6Addr), link: Prefix) -> Ipv6Addr {
    let status = wait_until(mobile, &format!("below {map} on {link}"), |status| {
        let registration = status.registration.as_ref().unwrap();
        let is_there = registration.on_link_care_of.is_some_and(|on_link| link.contains(on_link));
        registration.anchor_point == Some(map) && registration.care_of == Some(regional) && is_there
    });
    status.registration.and_then(|registration| registration.on_link_care_of).unwrap()
}
