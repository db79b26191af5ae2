//! News of a namespace: links that come and go, addresses, default routes, and news that were lost.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::time::Duration;

use crate::support::veth::{connect, host, index_of};
use crate::support::{LEFT, PATIENCE, RIGHT, realm_or_skip, socket};
use careof_lab::{
    Clock, Error, Host, InterfaceConfig, Netlink, NetlinkMonitor, NetworkChange, Route, Rule, Tun, set_sysctl,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A host with the interface `up0`, and who listens to it.
struct Scene {
    host: Host,
    tun: Tun,
    index: u32,
    monitor: NetlinkMonitor,
}

fn scene() -> Option<Scene> {
    let host = realm_or_skip()?.host("watched").unwrap();
    let tun = host.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    let index = ask(&host, |netlink| netlink.index_of("up0"));
    let monitor = host.run(NetlinkMonitor::open).unwrap().unwrap();
    Some(Scene { host, tun, index, monitor })
}

fn ask<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&mut Netlink) -> Result<T, Error> + Send + 'static,
) -> T {
    host.run(|| work(&mut Netlink::open()?)).unwrap().unwrap()
}

impl Scene {
    /// The next change, or `None` when none comes within `patience`.
    fn next_within(&mut self, patience: Duration) -> Option<NetworkChange> {
        let clock = Clock::start();
        loop {
            if let Some(change) = self.monitor.poll_change().unwrap() {
                return Some(change);
            }
            let left = patience.checked_sub(clock.now().since_start())?;
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            poll(&mut [PollFd::new(self.monitor.as_fd(), PollFlags::POLLIN)], timeout).unwrap();
        }
    }

    /// The next change that `wanted` makes something of.
    fn find<T>(&mut self, wanted: impl Fn(NetworkChange) -> Option<T>) -> T {
        loop {
            let change = self.next_within(PATIENCE).expect("the change was not reported");
            if let Some(found) = wanted(change) {
                return found;
            }
        }
    }

    /// Waits until the interface is said to have its carrier, or not.
    fn wait_for_carrier(&mut self, wanted: bool) {
        let index = self.index;
        self.find(|change| match change {
            NetworkChange::Link { state } if state.index == index && state.has_carrier == wanted => Some(()),
            _ => None,
        });
    }
}

#[test]
fn an_interface_comes_up_without_a_carrier_where_that_is_asked_for() {
    let Some(mut scene) = scene() else { return };
    let config = InterfaceConfig::new("up1", RIGHT.into(), 24);
    let tun = scene.host.attach(&InterfaceConfig { has_carrier: false, ..config }).unwrap();
    scene.index = ask(&scene.host, |netlink| netlink.index_of("up1"));
    let index = scene.index;
    let state = ask(&scene.host, move |netlink| netlink.interface(index));
    assert!(state.is_up && !state.has_carrier, "{state:?}");
    tun.set_carrier(true).unwrap();
    scene.wait_for_carrier(true);
}

#[test]
fn nothing_is_reported_while_nothing_changes() {
    let Some(mut scene) = scene() else { return };
    assert_eq!(scene.next_within(crate::support::SILENCE), None);
}

#[test]
fn a_carrier_that_goes_and_comes_back_is_reported() {
    let Some(mut scene) = scene() else { return };
    for _ in 0..3 {
        scene.tun.set_carrier(false).unwrap();
        scene.wait_for_carrier(false);
        scene.tun.set_carrier(true).unwrap();
        scene.wait_for_carrier(true);
    }
}

#[test]
fn a_carrier_that_flaps_is_reported_as_it_is_in_the_end() {
    let Some(mut scene) = scene() else { return };
    for number in 0..101 {
        scene.tun.set_carrier(number % 2 == 1).unwrap();
    }
    scene.wait_for_carrier(false);
    // The kernel held back what came in between.
    assert_eq!(scene.next_within(crate::support::SILENCE), None);
    scene.tun.set_carrier(true).unwrap();
    scene.wait_for_carrier(true);
}

#[test]
fn an_interface_taken_down_and_up_is_reported() {
    let Some(mut scene) = scene() else { return };
    let index = scene.index;
    ask(&scene.host, move |netlink| netlink.set_down(index));
    let state = scene.find(|change| match change {
        NetworkChange::Link { state } => Some(state),
        _ => None,
    });
    assert!(!state.is_up && !state.has_carrier && state.name == "up0");
    ask(&scene.host, move |netlink| netlink.set_up(index));
    scene.wait_for_carrier(true);
}

#[test]
fn addresses_that_come_and_go_are_reported() {
    let Some(mut scene) = scene() else { return };
    let (index, address) = (scene.index, IpAddr::V4(RIGHT));
    ask(&scene.host, move |netlink| {
        netlink.add_address(index, address, 32)?;
        netlink.remove_address(index, address, 32)
    });
    let Some(NetworkChange::AddressAdded { assigned }) = scene.next_within(PATIENCE) else {
        panic!("not told")
    };
    assert_eq!((assigned.interface, assigned.address, assigned.prefix_length), (index, address, 32));
    assert!(assigned.is_usable() && assigned.is_permanent && assigned.valid_for.is_none());
    assert_eq!(
        scene.next_within(PATIENCE),
        Some(NetworkChange::AddressRemoved { index, address, prefix_length: 32 })
    );
}

#[test]
fn default_routes_are_reported_and_others_are_not() {
    let Some(mut scene) = scene() else { return };
    let index = scene.index;
    ask(&scene.host, move |netlink| {
        let default = Route {
            via: Some(RIGHT.into()),
            metric: Some(30),
            ..Route::default_through(index, IpAddr::V4(Ipv4Addr::UNSPECIFIED))
        };
        netlink.add_route(&Route::to("192.0.2.0".parse().unwrap(), 24, index))?;
        netlink.add_rule(&Rule::new(5, 5))?;
        netlink.add_route(&default)?;
        netlink.remove_route(&default)
    });
    match (scene.next_within(PATIENCE), scene.next_within(PATIENCE)) {
        (
            Some(NetworkChange::DefaultRouteAdded { route }),
            Some(NetworkChange::DefaultRouteRemoved { route: removed }),
        ) => {
            assert_eq!(route, removed);
            assert_eq!((route.via, route.interface), (Some(RIGHT.into()), index));
            assert_eq!((route.table, route.metric), (Some(Route::MAIN_TABLE), Some(30)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_interface_that_goes_is_reported_with_its_address() {
    let Some(mut scene) = scene() else { return };
    let index = scene.index;
    ask(&scene.host, move |netlink| netlink.remove_interface(index));
    let mut lost_address = false;
    loop {
        match scene.next_within(PATIENCE).expect("the end was not reported") {
            NetworkChange::AddressRemoved { address, .. } => lost_address |= address == IpAddr::V4(LEFT),
            NetworkChange::LinkRemoved { index: gone, name } => {
                assert_eq!((gone, name.as_str()), (index, "up0"));
                break;
            }
            NetworkChange::Link { state } => assert!(!state.has_carrier),
            other => panic!("{other:?}"),
        }
    }
    assert!(lost_address);
}

#[test]
fn another_namespace_is_not_listened_to() {
    let Some(mut scene) = scene() else { return };
    let Some(other) = self::scene() else { return };
    other.tun.set_carrier(false).unwrap();
    assert_eq!(scene.next_within(crate::support::SILENCE), None);
}

#[test]
fn news_that_nobody_reads_end_in_an_overrun() {
    let Some(mut scene) = scene() else { return };
    let index = scene.index;
    ask(&scene.host, move |netlink| {
        for _ in 0..10_000 {
            netlink.add_address(index, RIGHT.into(), 32)?;
            netlink.remove_address(index, RIGHT.into(), 32)?;
        }
        Ok(())
    });
    scene.find(|change| (change == NetworkChange::Overrun).then_some(()));
    // What was received before is still there; afterwards it goes on as before.
    while scene.monitor.poll_change().unwrap().is_some() {}
    scene.tun.set_carrier(false).unwrap();
    scene.wait_for_carrier(false);
}

/// A table that no byte has room for.
const TABLE: u32 = 43_400;

/// Opens a monitor beside a conversation by which the test changes routes.
fn beside(scene: &Scene) -> (NetlinkMonitor, Netlink) {
    let opened = scene.host.run(|| {
        let own = Netlink::open()?;
        Ok::<_, Error>((NetlinkMonitor::open_beside(&own)?, own))
    });
    opened.unwrap().unwrap()
}

fn route_to(n: u32, index: u32) -> Route {
    Route { table: Some(TABLE), ..Route::to(Ipv4Addr::from_bits(0x0a00_0000 + n).into(), 32, index) }
}

#[test]
fn routes_that_come_by_thousands_overrun_nobody() {
    let Some(scene) = scene() else { return };
    let (mut monitor, mut own) = beside(&scene);
    for n in 0..20_000 {
        own.put_route(&route_to(n, scene.index)).unwrap();
    }
    for n in 0..20_000 {
        own.remove_route(&route_to(n, scene.index)).unwrap();
    }
    // Nor those of others, as a routing daemon's, in whichever table; nor when the monitor knows of no conversation.
    let mut alone = scene.host.run(NetlinkMonitor::open).unwrap().unwrap();
    let index = scene.index;
    ask(&scene.host, move |netlink| {
        for n in 0..20_000 {
            netlink.put_route(&Route { table: None, ..route_to(n, index) })?;
        }
        (0..20_000)
            .try_for_each(|n| netlink.remove_route(&Route { table: None, ..route_to(n, index) }).map(drop))
    });
    assert_eq!((monitor.poll_change().unwrap(), alone.poll_change().unwrap()), (None, None));
}

#[test]
fn a_route_that_others_remove_is_told_and_ones_own_is_not() {
    let Some(scene) = scene() else { return };
    let (mut monitor, mut own) = beside(&scene);
    let (index, default) =
        (scene.index, Route { table: Some(TABLE), ..Route::default_through(scene.index, ANY) });
    for n in 0..3 {
        own.put_route(&route_to(n, index)).unwrap();
    }
    own.remove_route(&route_to(0, index)).unwrap();
    ask(&scene.host, move |netlink| netlink.remove_route(&route_to(2, index)));
    let Some(NetworkChange::RouteRemoved { route }) = monitor.poll_change().unwrap() else {
        panic!("not told")
    };
    assert_eq!(
        (route.destination, route.table, route.interface),
        (route_to(2, index).destination, Some(TABLE), index)
    );
    assert_eq!(monitor.poll_change().unwrap(), None);
    // Default routes are told whoever changes them.
    own.put_route(&default).unwrap();
    own.remove_route(&default).unwrap();
    assert!(matches!(monitor.poll_change().unwrap(), Some(NetworkChange::DefaultRouteAdded { .. })));
    assert!(matches!(monitor.poll_change().unwrap(), Some(NetworkChange::DefaultRouteRemoved { .. })));
    assert_eq!(monitor.poll_change().unwrap(), None);
}

#[test]
fn a_route_that_is_put_takes_the_place_of_whatever_is_there_without_a_list_of_all() {
    let Some(scene) = scene() else { return };
    let index = scene.index;
    ask(&scene.host, move |netlink| {
        netlink.put_route(&Route { mtu: Some(1300), ..route_to(1, index) })?;
        for _ in 0..2 {
            netlink.put_route(&route_to(1, index))?;
        }
        assert_eq!(netlink.dumps(), 0);
        let routes = netlink.routes(TABLE)?;
        assert_eq!((routes.len(), routes[0].mtu), (1, None));
        assert_eq!(netlink.dumps(), 2, "of IPv4 and of IPv6");
        Ok(())
    });
}

#[test]
fn a_neighbour_that_does_not_answer_is_told_to_who_asks_for_that_and_one_that_does_is_not() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = (host(realm, "left"), host(realm, "right"));
    connect("wire", (&left, LEFT), (&right, RIGHT), 1500);
    let (index, nobody) = (index_of(&left, "wire"), Ipv4Addr::new(10, 77, 0, 99));
    let opened = left.run(|| {
        set_sysctl("net.ipv4.neigh.wire.retrans_time_ms", "20")?;
        let mut listens = NetlinkMonitor::open()?;
        listens.listen_to_neighbours()?;
        Ok::<_, Error>((listens, NetlinkMonitor::open()?))
    });
    let (mut listens, mut other) = opened.unwrap().unwrap();
    socket(&left, LEFT, RIGHT).send(b"somebody").unwrap();
    socket(&left, LEFT, nobody).send(b"nobody").unwrap();
    let clock = Clock::start();
    let failed = loop {
        if let Some(NetworkChange::NeighbourFailed { index, address }) = listens.poll_change().unwrap() {
            break (index, address);
        }
        assert!(clock.now().since_start() < PATIENCE, "it was not told");
        std::thread::yield_now();
    };
    assert_eq!(failed, (index, nobody.into()));
    let known = ask(&left, move |netlink| netlink.neighbours(index));
    let has_failed =
        |address: Ipv4Addr| known.iter().find(|one| one.address == address).map(|one| one.has_failed);
    assert_eq!((has_failed(nobody), has_failed(RIGHT)), (Some(true), Some(false)), "{known:?}");
    while let Some(change) = other.poll_change().unwrap() {
        assert!(!matches!(change, NetworkChange::NeighbourFailed { .. }), "{change:?}");
    }
}
