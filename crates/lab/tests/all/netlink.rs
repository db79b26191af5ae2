//! Interfaces, routes, rules and neighbours: made, read back, and undone exactly.

use std::net::{IpAddr, Ipv4Addr};

use crate::support::{LEFT, RIGHT, Udp, next, realm_or_skip};
use careof_lab::{
    Effect, Error, Host, InterfaceAddress, InterfaceConfig, Netlink, Route, RouteKind, RouteScope, Rule, Tun,
};
use nix::errno::Errno;

/// A routing protocol number that nobody else uses.
const OURS: u8 = 77;

/// A host with the TUN interface `up0`, `LEFT`/24.
fn host_with_interface() -> Option<(Host, Tun)> {
    let host = realm_or_skip()?.host("alone").unwrap();
    let tun = host.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    Some((host, tun))
}

/// Runs `work` with a conversation about `host` and the index of its `up0`.
fn ask<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&mut Netlink, u32) -> Result<T, Error> + Send + 'static,
) -> T {
    let done = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("up0")?;
        work(&mut netlink, index)
    });
    done.unwrap().unwrap()
}

fn v4(text: &str) -> Ipv4Addr {
    text.parse().unwrap()
}

#[test]
fn interfaces_are_described() {
    let Some((host, tun)) = host_with_interface() else { return };
    let interfaces = ask(&host, |netlink, _| netlink.interfaces());
    let names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["lo", "up0"]);
    let [loopback, up] = &interfaces[..] else { panic!() };
    assert!(loopback.is_loopback && loopback.is_up && loopback.link_address.is_none());
    assert!(!up.is_loopback && up.is_up && up.has_carrier && up.is_point_to_point);
    assert_eq!((up.mtu, up.link_address), (1500, None));

    tun.set_carrier(false).unwrap();
    let without = ask(&host, |netlink, index| netlink.interface(index));
    assert!(without.is_up && !without.has_carrier);
    tun.set_carrier(true).unwrap();
    ask(&host, |netlink, index| netlink.set_down(index));
    let down = ask(&host, |netlink, index| netlink.interface(index));
    assert!(!down.is_up && !down.has_carrier);
    assert!(matches!(
        host.run(|| Netlink::open()?.interface(99)).unwrap(),
        Err(Error::System { errno: Errno::ENODEV, .. })
    ));
}

#[test]
fn the_addresses_of_an_interface_are_listed() {
    let Some((host, _tun)) = host_with_interface() else { return };
    let addresses = ask(&host, |netlink, index| {
        netlink.add_address(index, RIGHT.into(), 32)?;
        netlink.addresses(index)
    });
    let on = |address: Ipv4Addr, prefix_length| InterfaceAddress { address: address.into(), prefix_length };
    assert_eq!(addresses, [on(LEFT, 24), on(RIGHT, 32)]);
    let gone = ask(&host, |netlink, index| {
        let effects = [
            netlink.remove_address(index, RIGHT.into(), 32)?,
            netlink.remove_address(index, RIGHT.into(), 32)?,
            netlink.remove_address(99, RIGHT.into(), 32)?,
        ];
        Ok((effects, netlink.addresses(index)?))
    });
    assert_eq!(gone, ([Effect::Changed, Effect::Unchanged, Effect::Unchanged], vec![on(LEFT, 24)]));
}

#[test]
fn routes_are_read_back_as_they_were_made() {
    let Some((host, _tun)) = host_with_interface() else { return };
    let (made, found) = ask(&host, |netlink, index| {
        let to = |destination: &str, length| Route {
            table: Some(1000),
            protocol: OURS,
            ..Route::to(IpAddr::V4(v4(destination)), length, index)
        };
        let routes = [
            Route { source: Some(LEFT.into()), metric: Some(5), mtu: Some(1280), ..to("192.0.2.0", 24) },
            Route { via: Some(RIGHT.into()), metric: Some(9), ..to("0.0.0.0", 0) },
            Route { via: Some(v4("203.0.113.9").into()), on_link: true, ..to("198.51.100.0", 24) },
            Route { scope: Some(RouteScope::Universe), ..to("198.51.100.7", 32) },
            Route { kind: RouteKind::Throw, interface: 0, ..to("10.0.0.0", 8) },
            Route { kind: RouteKind::Unreachable, interface: 0, ..to("10.9.0.0", 16) },
        ];
        for route in &routes {
            assert_eq!(netlink.add_route(route)?, Effect::Changed);
        }
        let found = netlink.routes(1000)?;
        for route in &routes {
            assert_eq!(netlink.add_route(route)?, Effect::Unchanged);
            assert_eq!(netlink.remove_route(route)?, Effect::Changed);
            assert_eq!(netlink.remove_route(route)?, Effect::Unchanged);
        }
        assert_eq!(netlink.routes(1000)?, []);
        assert_eq!(netlink.routes(4_000_000_000)?, []);
        Ok((routes, found))
    });
    assert_eq!(found.len(), made.len());
    for route in made {
        let same = found.iter().find(|found| found.destination == route.destination).unwrap();
        let found = Route { scope: route.scope, ..*same };
        assert_eq!(found, route);
    }
}

#[test]
fn what_a_route_replaced_can_be_put_back() {
    let Some((host, _tun)) = host_with_interface() else { return };
    ask(&host, |netlink, index| {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let theirs = Route { via: Some(RIGHT.into()), protocol: 16, ..Route::to(any, 0, index) };
        let ours = Route { source: Some(LEFT.into()), protocol: OURS, ..Route::default_through(index, any) };
        netlink.add_route(&theirs)?;
        let before = netlink.routes(Route::MAIN_TABLE)?;
        assert!(matches!(netlink.add_route(&ours), Err(Error::System { errno: Errno::EEXIST, .. })));

        let replaced = netlink.set_route(&ours)?.unwrap();
        assert_eq!((replaced.via, replaced.protocol), (theirs.via, theirs.protocol));
        assert_ne!(netlink.routes(Route::MAIN_TABLE)?, before);
        assert_eq!(netlink.set_route(&replaced)?.map(|route| route.protocol), Some(OURS));
        assert_eq!(netlink.routes(Route::MAIN_TABLE)?, before);

        // With a metric of its own it stands beside the other one.
        let beside = Route { metric: Some(50), ..ours };
        assert_eq!(netlink.set_route(&beside)?, None);
        assert_eq!(netlink.remove_route(&beside)?, Effect::Changed);
        assert_eq!(netlink.routes(Route::MAIN_TABLE)?, before);
        Ok(())
    });
}

#[test]
fn a_route_that_could_not_be_put_back_is_not_replaced() {
    let Some((host, _tun)) = host_with_interface() else { return };
    let several = "route add 192.0.2.0/24 nexthop dev up0 nexthop via 10.77.0.2 dev up0";
    let Some(true) = crate::support::ip(&host, several) else { return };
    ask(&host, |netlink, index| {
        let to = IpAddr::V4(v4("192.0.2.0"));
        let hops = netlink.routes(Route::MAIN_TABLE)?;
        assert_eq!(hops.iter().filter(|route| route.destination == to).count(), 2);
        let replaced = netlink.set_route(&Route { protocol: OURS, ..Route::to(to, 24, index) });
        assert!(matches!(replaced, Err(Error::System { errno: Errno::EEXIST, .. })));
        assert_eq!(netlink.routes(Route::MAIN_TABLE)?, hops);
        Ok(())
    });
}

#[test]
fn rules_come_and_go() {
    let Some((host, _tun)) = host_with_interface() else { return };
    ask(&host, |netlink, _| {
        let before = netlink.rules()?;
        assert_eq!(before.iter().map(|rule| rule.priority).collect::<Vec<_>>()[..3], [0, 32_766, 32_767]);
        let rules = [
            Rule { suppress_prefix_length: Some(0), maker: OURS, ..Rule::new(100, Route::MAIN_TABLE) },
            Rule {
                from: Some((LEFT.into(), 32)),
                to: Some((v4("192.0.2.0").into(), 24)),
                input: Some("lo".to_owned()),
                mark: Some(7),
                maker: OURS,
                ..Rule::new(101, 1000)
            },
            Rule {
                output: Some("up0".to_owned()),
                protocol: Some(6),
                source_port: Some((1024, 2048)),
                destination_port: Some((80, 80)),
                ..Rule::new(102, 100_000)
            },
        ];
        for rule in &rules {
            assert_eq!(netlink.add_rule(rule)?, Effect::Changed);
            assert_eq!(netlink.add_rule(rule)?, Effect::Unchanged);
        }
        let found = netlink.rules()?;
        assert_eq!(found[1..4], rules);
        for rule in &rules {
            assert_eq!(netlink.remove_rule(rule)?, Effect::Changed);
            assert_eq!(netlink.remove_rule(rule)?, Effect::Unchanged);
        }
        assert_eq!(netlink.rules()?, before);
        Ok(())
    });
}

#[test]
fn a_rule_with_more_conditions_is_not_removed_in_anothers_stead() {
    let Some((host, _tun)) = host_with_interface() else { return };
    ask(&host, |netlink, _| {
        let theirs = Rule { mark: Some(7), ..Rule::new(100, 1000) };
        netlink.add_rule(&theirs)?;
        assert_eq!(netlink.remove_rule(&Rule::new(100, 1000))?, Effect::Unchanged);
        assert!(netlink.rules()?.contains(&theirs));
        Ok(())
    });
}

/// The port decides by which interface a packet leaves: what a mobile node's policy table rests on.
#[test]
fn a_rule_sends_a_port_another_way() {
    let Some((host, _tun)) = host_with_interface() else { return };
    let other = host.attach(&InterfaceConfig::new("up1", v4("10.78.0.1").into(), 24)).unwrap();
    host.run(|| {
        let mut netlink = Netlink::open()?;
        let (first, second) = (netlink.index_of("up0")?, netlink.index_of("up1")?);
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        netlink.add_route(&Route::default_through(first, any))?;
        netlink.add_route(&Route { table: Some(7), ..Route::default_through(second, any) })?;
        netlink.add_rule(&Rule {
            protocol: Some(17),
            destination_port: Some((5000, 5001)),
            ..Rule::new(50, 7)
        })
    })
    .unwrap()
    .unwrap();
    let send = |port: u16| {
        host.run(move || Udp::bind("0.0.0.0:0")?.send_to(b"x", ("192.0.2.1", port))).unwrap().unwrap();
    };
    let mut buffer = [0; 128];
    send(5001);
    assert!(other.receive(&mut buffer).is_ok());
    send(5002);
    assert!(other.receive(&mut buffer).is_err());
}

/// Two hosts with a cable between them.
fn cable() -> Option<(Host, Host)> {
    let realm = realm_or_skip()?;
    let (left, right) = (realm.host("left").unwrap(), realm.host("right").unwrap());
    let end = |address: Ipv4Addr| InterfaceConfig::new("up0", address.into(), 24);
    match left.connect(&end(LEFT), &right, &end(RIGHT)) {
        Err(Error::System { errno: Errno::EOPNOTSUPP, .. }) => {
            careof_testbed::skip("this kernel has no veth");
            None
        }
        made => {
            made.unwrap();
            Some((left, right))
        }
    }
}

#[test]
fn a_cable_connects_two_hosts() {
    let Some((left, right)) = cable() else { return };
    let receiver = right.run(|| Udp::bind((RIGHT, 9))).unwrap().unwrap();
    receiver.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
    left.run(|| Udp::bind((LEFT, 0))?.send_to(b"by cable", (RIGHT, 9))).unwrap().unwrap();
    assert_eq!(next(&receiver).as_deref(), Some(&b"by cable"[..]));
    let state = ask(&left, |netlink, index| netlink.interface(index));
    assert!(state.has_carrier && state.link_address.is_some() && !state.is_point_to_point);
    ask(&right, |netlink, index| netlink.set_down(index));
    assert!(!ask(&left, |netlink, index| netlink.interface(index)).has_carrier);
    ask(&right, |netlink, index| netlink.remove_interface(index));
    let gone = left.run(|| Netlink::open()?.index_of("up0")).unwrap();
    assert!(matches!(gone, Err(Error::System { errno: Errno::ENODEV, .. })));
}

#[test]
fn a_cable_that_cannot_be_addressed_is_not_left_behind() {
    let Some((left, right)) = cable() else { return };
    let impossible = InterfaceConfig::new("up1", RIGHT.into(), 33);
    let fine = InterfaceConfig::new("up1", LEFT.into(), 24);
    assert!(left.connect(&fine, &right, &impossible).is_err());
    let interfaces = |host: &Host| ask(host, |netlink, _| netlink.interfaces()).len();
    assert_eq!((interfaces(&left), interfaces(&right)), (2, 2));
    let taken = InterfaceConfig::new("up0", LEFT.into(), 24);
    let error = left.connect(&taken, &right, &fine).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot make the interfaces \"up0\" and \"up1\": RTM_NEWLINK(veth): File exists"
    );
}

#[test]
fn a_neighbour_that_was_set_is_not_asked_for() {
    let Some((left, right)) = cable() else { return };
    let right_link = ask(&right, |netlink, index| netlink.interface(index)).link_address.unwrap();
    ask(&left, move |netlink, index| {
        assert_eq!(netlink.neighbour(index, RIGHT)?, None);
        assert_eq!(netlink.set_neighbour(index, RIGHT, [2, 0, 0, 0, 0, 9])?, None);
        assert_eq!(netlink.set_neighbour(index, RIGHT, right_link)?, Some([2, 0, 0, 0, 0, 9]));
        let found = netlink.neighbour(index, RIGHT)?.unwrap();
        assert!(found.is_permanent && found.link_address == Some(right_link) && found.address == RIGHT);
        assert!(netlink.neighbours(index)?.contains(&found));
        assert_eq!(netlink.remove_neighbour(index, RIGHT)?, Effect::Changed);
        assert_eq!(netlink.remove_neighbour(index, RIGHT)?, Effect::Unchanged);
        assert_eq!(netlink.neighbour(index, RIGHT)?, None);
        Ok(())
    });
}

#[test]
fn a_host_answers_in_anothers_place() {
    let Some((left, right)) = cable() else { return };
    let away = v4("10.77.0.50");
    let effects = ask(&right, move |netlink, index| {
        careof_lab::set_sysctl("net.ipv4.ip_forward", "1")?;
        careof_lab::set_sysctl("net.ipv4.neigh.up0.proxy_delay", "0")?;
        let effects = [netlink.add_proxy_neighbour(index, away)?, netlink.add_proxy_neighbour(index, away)?];
        assert!(netlink.has_proxy_neighbour(index, away)?);
        assert_eq!(netlink.proxy_neighbours(index)?, [away]);
        assert!(netlink.neighbours(index)?.iter().all(|known| known.address != away));
        // It answers only for what it would send out elsewhere.
        let elsewhere = netlink.index_of("lo")?;
        netlink.add_route(&Route::to(away.into(), 32, elsewhere))?;
        Ok(effects)
    });
    assert_eq!(effects, [Effect::Changed, Effect::Unchanged]);
    let right_link = ask(&right, |netlink, index| netlink.interface(index)).link_address;
    left.run(move || Udp::bind((LEFT, 0))?.send_to(b"who is it?", (away, 9))).unwrap().unwrap();
    let clock = careof_lab::Clock::start();
    let answered = loop {
        let found = ask(&left, move |netlink, index| netlink.neighbour(index, away));
        match found.and_then(|neighbour| neighbour.link_address) {
            None if clock.now().since_start() < crate::support::PATIENCE => std::thread::yield_now(),
            found => break found,
        }
    };
    assert_eq!(answered, right_link);
    let effects = ask(&right, move |netlink, index| {
        Ok([
            netlink.remove_proxy_neighbour(index, away)?,
            netlink.remove_proxy_neighbour(index, away)?,
            netlink.remove_proxy_neighbour(99, away)?,
        ])
    });
    assert_eq!(effects, [Effect::Changed, Effect::Unchanged, Effect::Unchanged]);
    assert!(!ask(&right, move |netlink, index| netlink.has_proxy_neighbour(index, away)));
}
