//! The hosts of `careof-agent try` and the cables between them.

use std::net::{IpAddr, Ipv4Addr};

use careof_lab::{Error, Host, InterfaceConfig, Netlink, Realm, Route, Tun, set_sysctl};

/// `home` and `mobile`, and `net` between them, which sends the home network to `home`.
pub(super) struct Network {
    pub(super) home: Host,
    pub(super) mobile: Host,
    // Held for as long as packets pass it.
    _net: Host,
}

const WIFI: &str = "careof-wifi";
const LTE: &str = "careof-lte";

impl Network {
    /// The server, where the home agent is.
    pub(super) const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
    /// The mobile node's home address.
    pub(super) const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);

    pub(super) fn make(realm: &Realm) -> Result<Self, Error> {
        let (home, net, mobile) = (realm.host("home")?, realm.host("net")?, realm.host("mobile")?);
        let end = |name: &str, address: [u8; 4]| InterfaceConfig::new(name, IpAddr::from(address), 24);
        home.connect(&end("careof-up", [10, 0, 0, 2]), &net, &end("to-home", [10, 0, 0, 1]))?;
        mobile.connect(&end(WIFI, [198, 51, 100, 2]), &net, &end("to-wifi", [198, 51, 100, 1]))?;
        mobile.connect(&end(LTE, [203, 0, 113, 2]), &net, &end("to-lte", [203, 0, 113, 1]))?;
        net.run(|| {
            set_sysctl("net.ipv4.ip_forward", "1")?;
            route([192, 0, 2, 0], 24, "to-home", [10, 0, 0, 2], None)
        })??;
        home.run(|| {
            let mut netlink = Netlink::open()?;
            let loopback = netlink.index_of("lo")?;
            netlink.add_address(loopback, IpAddr::V4(Self::SERVER), 32)?;
            route([0; 4], 0, "careof-up", [10, 0, 0, 1], None)
        })??;
        // The agents need such a device: where nobody may make one, this says what to do about it.
        mobile.run(|| Tun::open("careof-try").map(drop))??;
        mobile.run(|| {
            route([0; 4], 0, WIFI, [198, 51, 100, 1], Some(10))?;
            route([0; 4], 0, LTE, [203, 0, 113, 1], Some(20))
        })??;
        Ok(Self { home, mobile, _net: net })
    }

    /// Ends the mobile node's first link.
    pub(super) fn take_wifi_down(&self) -> Result<(), Error> {
        self.mobile.run(|| {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(WIFI)?;
            netlink.set_down(index)
        })?
    }
}

/// Adds a route to the host of the calling thread.
fn route(
    destination: [u8; 4],
    prefix_length: u8,
    interface: &str,
    via: [u8; 4],
    metric: Option<u32>,
) -> Result<(), Error> {
    let mut netlink = Netlink::open()?;
    let index = netlink.index_of(interface)?;
    let route =
        Route { via: Some(via.into()), metric, ..Route::to(destination.into(), prefix_length, index) };
    netlink.add_route(&route).map(drop)
}
