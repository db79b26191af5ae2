//! What Mobile IPv6 needs of a host: addresses, routers, rules and neighbours of IPv6, tunnels, and packets with headers that the kernel
//! does not know.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::AsFd;

use careof_lab::{
    AddressOptions, AssignedAddress, Effect, Error, GuardedPacket, Host, Icmpv6Socket, IpVersion, Ipv6Outer,
    Ipv6PacketSender, Ipv6PacketWatch, Ipv6TunnelSocket, Netlink, NetlinkMonitor, NetworkChange,
    OutgoingIcmpv6, PacketGuard, Realm, Route, Rule, set_sysctl, sysctl,
};
use careof_wire::icmpv6::{
    HOP_LIMIT, Icmpv6Message, Milliseconds, NdOption, PrefixInformation, PrefixLifetime, RouterAdvertisement,
    RouterPreference,
};
use careof_wire::ipv6::{ALL_NODES, Extensions, Ipv6Header, Packet, Understood};
use careof_wire::{mip6, protocol};
use nix::poll::PollFlags;

use crate::support::realm_or_skip;
use crate::support::veth::{eventually, index_of, is_silent, wait_for};

pub(crate) const LEFT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 1);
pub(crate) const RIGHT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 2);
const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 7);
const ANY: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
/// ICMPv6 Parameter Problem (RFC 4443 section 3.4).
const PARAMETER_PROBLEM: u8 = 4;

fn ask<T: Send + 'static>(
    host: &Host,
    work: impl FnOnce(&mut Netlink, u32) -> Result<T, Error> + Send + 'static,
) -> T {
    let done = host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("eth0")?;
        work(&mut netlink, index)
    });
    done.unwrap().unwrap()
}

/// Two hosts with an Ethernet cable between them, whose addresses can be used at once.
pub(crate) fn pair(realm: Realm) -> (Host, Host) {
    let (left, right) = (realm.host("left").unwrap(), realm.host("right").unwrap());
    for host in [&left, &right] {
        let set = host.run(|| {
            ["all", "default"]
                .iter()
                .try_for_each(|of| set_sysctl(&format!("net.ipv6.conf.{of}.accept_dad"), "0"))
        });
        set.unwrap().unwrap();
    }
    let there = right.namespace().unwrap();
    left.run(move || Netlink::open()?.add_veth("eth0", "eth0", there.as_fd())).unwrap().unwrap();
    for (host, address) in [(&left, LEFT), (&right, RIGHT)] {
        ask(host, move |netlink, index| {
            let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
            netlink.add_address_as(options, index, address.into(), 64)?;
            netlink.set_up(index)
        });
    }
    for host in [&left, &right] {
        let up = || ask(host, |netlink, index| netlink.interface(index)).has_carrier.then_some(());
        eventually(up).expect("the cable carries packets");
    }
    (left, right)
}

fn assigned(host: &Host, wanted: impl Fn(&AssignedAddress) -> bool) -> Option<AssignedAddress> {
    let all = ask(host, |netlink, _| netlink.assigned_addresses());
    all.into_iter().find(|on| on.address.is_ipv6() && wanted(on))
}

#[test]
fn rules_routes_and_neighbours_of_ipv6_come_and_go() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, _right) = pair(realm);
    ask(&left, |netlink, index| {
        let before = netlink.rules()?;
        let rule = |number: u32| Rule::new_for(IpVersion::V6, 100 + number, 43_500);
        let rules = [
            Rule { suppress_prefix_length: Some(0), ..rule(0) },
            Rule { from: Some((HOME.into(), 128)), to: Some((RIGHT.into(), 64)), ..rule(1) }.clone(),
            Rule { input: Some("lo".to_owned()), mark: Some(7), ..rule(2) },
        ];
        for rule in &rules {
            assert_eq!(
                [netlink.add_rule(rule)?, netlink.add_rule(rule)?],
                [Effect::Changed, Effect::Unchanged]
            );
        }
        let found = netlink.rules()?;
        // The prefix has no bits behind its length.
        let network = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 0);
        let expected = Rule { to: Some((network.into(), 64)), ..rules[1].clone() };
        assert!(
            found.contains(&rules[0]) && found.contains(&expected) && found.contains(&rules[2]),
            "{found:#?}"
        );
        for rule in &rules {
            let effects = [netlink.remove_rule(rule)?, netlink.remove_rule(rule)?];
            assert_eq!(effects, [Effect::Changed, Effect::Unchanged]);
        }
        assert_eq!(netlink.rules()?, before);

        let route = Route {
            via: Some(RIGHT.into()),
            source: Some(LEFT.into()),
            table: Some(43_500),
            mtu: Some(1460),
            ..Route::default_through(index, ANY)
        };
        netlink.put_route(&route)?;
        let found = netlink.routes(43_500)?;
        assert_eq!(found, [Route { metric: Some(1024), scope: found[0].scope, ..route }]);
        netlink.put_route(&Route { mtu: None, ..route })?;
        assert_eq!(netlink.routes(43_500)?.len(), 1, "one takes the other's place");
        assert_eq!(netlink.remove_route(&Route { mtu: None, ..route })?, Effect::Changed);
        assert_eq!(netlink.routes(43_500)?, []);

        assert_eq!(netlink.set_neighbour(index, RIGHT, [2, 0, 0, 0, 0, 9])?, None);
        let known = netlink.neighbour(index, RIGHT)?.unwrap();
        assert_eq!(
            (known.address, known.link_address, known.is_permanent),
            (RIGHT.into(), Some([2, 0, 0, 0, 0, 9]), true)
        );
        assert!(netlink.neighbours(index)?.contains(&known));
        netlink.learn_neighbour(index, RIGHT, [2, 0, 0, 0, 0, 8])?;
        let known = netlink.neighbour(index, RIGHT)?.unwrap();
        assert_eq!((known.link_address, known.is_permanent), (Some([2, 0, 0, 0, 0, 8]), false));
        assert_eq!(netlink.remove_neighbour(index, RIGHT)?, Effect::Changed);
        assert_eq!([netlink.is_local(LEFT)?, netlink.is_local(RIGHT)?], [true, false]);
        let effects = [netlink.add_proxy_neighbour(index, HOME)?, netlink.add_proxy_neighbour(index, HOME)?];
        assert_eq!(effects, [Effect::Changed, Effect::Unchanged]);
        assert_eq!(netlink.proxy_neighbours(index)?, [IpAddr::from(HOME)]);
        assert_eq!(netlink.remove_proxy_neighbour(index, HOME)?, Effect::Changed);
        Ok(())
    });
}

/// RFC 4861: who has the address of another answers in its place.
#[test]
fn a_host_answers_neighbor_solicitations_in_anothers_place() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = pair(realm);
    right
        .run(|| {
            for parameter in ["forwarding", "proxy_ndp"] {
                set_sysctl(&format!("net.ipv6.conf.eth0.{parameter}"), "1")?;
            }
            set_sysctl("net.ipv6.conf.all.forwarding", "1")
        })
        .unwrap()
        .unwrap();
    let away = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 77);
    ask(&right, move |netlink, index| netlink.add_proxy_neighbour(index, away));
    let proxy = ask(&right, |netlink, index| netlink.interface(index)).link_address;
    let socket = left.run(|| Ipv6PacketSender::open(None)).unwrap().unwrap();
    let resolved = eventually(|| {
        // What has no neighbour yet has one asked for.
        socket.send(&packet(LEFT, away, Extensions::NONE, protocol::UDP, &[0; 8]), None).unwrap();
        ask(&left, move |netlink, index| netlink.neighbour(index, away))?.link_address
    });
    assert_eq!(resolved, proxy);
}

#[test]
fn duplicate_address_detection_is_told_and_can_be_left_out() {
    let Some(realm) = realm_or_skip() else { return };
    let (_left, right) = pair(realm);
    right
        .run(|| {
            set_sysctl("net.ipv6.conf.eth0.accept_dad", "1")?;
            set_sysctl("net.ipv6.conf.eth0.optimistic_dad", "1")?;
            set_sysctl("net.ipv6.conf.eth0.router_solicitation_delay", "0")
        })
        .unwrap()
        .unwrap();
    let monitor = right.run(|| NetlinkMonitor::open_for(IpVersion::V6)).unwrap().unwrap();
    // The left host has this address.
    let index = index_of(&right, "eth0");
    ask(&right, |netlink, index| netlink.add_address(index, LEFT.into(), 64));
    let told = |mut monitor: NetlinkMonitor, address: Ipv6Addr, wanted: fn(&AssignedAddress) -> bool| loop {
        match monitor.poll_change().unwrap() {
            Some(NetworkChange::AddressAdded { assigned })
                if assigned.address == address && wanted(&assigned) =>
            {
                return (monitor, assigned);
            }
            Some(_) => {}
            None => assert!(wait_for(&monitor, PollFlags::POLLIN), "nothing is told of {address}"),
        }
    };
    let (monitor, duplicate) = told(monitor, LEFT, |assigned| assigned.is_duplicate);
    assert!(!duplicate.is_usable() && duplicate.interface == index);

    ask(&right, |netlink, index| {
        let options = AddressOptions { skips_detection: true, ..AddressOptions::default() };
        netlink.add_address_as(options, index, HOME.into(), 128)
    });
    let (_, home) = told(monitor, HOME, |_| true);
    assert!(home.is_usable() && home.is_permanent && !home.is_tentative, "{home:?}");
    let optimistic = Ipv6Addr::new(0x2001, 0xdb8, 7, 0, 0, 0, 0, 9);
    ask(&right, move |netlink, index| {
        let options =
            AddressOptions { is_optimistic: true, without_route: true, ..AddressOptions::default() };
        netlink.add_address_as(options, index, optimistic.into(), 64)
    });
    assert!(assigned(&right, |on| on.address == optimistic).unwrap().is_usable());
}

/// A router advertisement with one prefix.
fn advertisement(lifetime_secs: u16) -> Vec<u8> {
    let prefix = PrefixInformation {
        prefix_length: 64,
        on_link: true,
        autonomous: true,
        router_address: false,
        valid_lifetime: PrefixLifetime::from_secs(3600),
        preferred_lifetime: PrefixLifetime::from_secs(1800),
        prefix: Ipv6Addr::new(0x2001, 0xdb8, 0x100, 0, 0, 0, 0, 0),
    };
    let message = RouterAdvertisement {
        cur_hop_limit: 64,
        managed: false,
        other_configuration: false,
        home_agent: false,
        preference: RouterPreference::Medium,
        router_lifetime_secs: lifetime_secs,
        reachable_time: Milliseconds(0),
        retrans_timer: Milliseconds(0),
        options: vec![NdOption::PrefixInformation(prefix)],
    };
    let mut bytes = Vec::new();
    Icmpv6Message::RouterAdvertisement(message).emit(Ipv6Addr::UNSPECIFIED, ALL_NODES, &mut bytes);
    bytes
}

#[test]
fn the_kernel_learns_a_router_and_forms_an_address_from_its_advertisement() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = pair(realm);
    let mut monitor = right.run(|| NetlinkMonitor::open_for(IpVersion::V6)).unwrap().unwrap();
    let (here, there) = (index_of(&left, "eth0"), index_of(&right, "eth0"));
    let is_link_local = |address| matches!(address, IpAddr::V6(address) if address.is_unicast_link_local());
    let wanted = |on: &AssignedAddress| on.interface == here && is_link_local(on.address) && on.is_usable();
    let router = eventually(|| assigned(&left, wanted));
    let IpAddr::V6(router) = router.unwrap().address else { panic!() };
    let sender = left.run(|| Icmpv6Socket::open(&[])).unwrap().unwrap();
    let hearer = right.run(|| Icmpv6Socket::open(&[134])).unwrap().unwrap();
    let advertise = |lifetime| {
        let message = advertisement(lifetime);
        let outgoing = OutgoingIcmpv6 {
            interface: Some(here),
            source: router,
            destination: ALL_NODES,
            hop_limit: HOP_LIMIT,
            message: &message,
        };
        sender.send(&outgoing).unwrap();
    };
    advertise(900);
    assert!(wait_for(&hearer, PollFlags::POLLIN));
    let mut buffer = [0; 2048];
    let heard = hearer.receive(&mut buffer).unwrap().unwrap();
    assert_eq!(
        (heard.interface, heard.source, heard.destination, heard.hop_limit),
        (there, router, ALL_NODES, HOP_LIMIT)
    );
    // The kernel has made the checksum.
    assert!(Icmpv6Message::parse(router, ALL_NODES, heard.message).is_ok());
    assert!(is_silent(&hearer) || hearer.receive(&mut buffer).unwrap().is_none(), "nothing of other types");

    let learnt = eventually(|| {
        let routes = ask(&right, |netlink, _| netlink.routes(Route::MAIN_TABLE));
        routes.into_iter().find(|route| route.is_default() && route.is_advertised())
    })
    .expect("a default route");
    assert_eq!((learnt.via, learnt.interface), (Some(router.into()), there));
    let lifetime = learnt.lifetime.unwrap().as_secs();
    assert!((1..=900).contains(&lifetime), "{lifetime}");
    let formed = eventually(|| assigned(&right, |on| !on.is_permanent && on.valid_for.is_some())).unwrap();
    assert!(formed.is_usable() && formed.prefix_length == 64 && formed.interface == there, "{formed:?}");
    assert!(formed.valid_for.unwrap().as_secs() <= 3600 && formed.preferred_for.unwrap().as_secs() <= 1800);
    // It is a router no more.
    advertise(0);
    let (mut came, mut went) = (false, false);
    while !went {
        match monitor.poll_change().unwrap() {
            Some(NetworkChange::DefaultRouteAdded { route }) => came |= route.is_advertised(),
            Some(NetworkChange::DefaultRouteRemoved { route }) => went |= route.is_advertised(),
            Some(_) => {}
            None => assert!(wait_for(&monitor, PollFlags::POLLIN), "nothing is told of the default route"),
        }
    }
    assert!(came);
    let all = right.run(|| sysctl("net.ipv6.conf.eth0.accept_ra")).unwrap().unwrap();
    assert_eq!(all, "1");
}

fn packet(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    extensions: Extensions,
    protocol: u8,
    payload: &[u8],
) -> Vec<u8> {
    let header = Ipv6Header { source, destination, ..Ipv6Header::default() };
    let mut bytes = Vec::new();
    Packet::emit(&header, &extensions, protocol, payload, &mut bytes).unwrap();
    bytes
}

/// One packet of each kind that Mobile IPv6 has and the kernel does not know.
fn mobile_packets() -> Vec<Vec<u8>> {
    let home_address = Extensions { home_address: Some(HOME), ..Extensions::NONE };
    let routing = Extensions { type_2_routing: Some(HOME), ..Extensions::NONE };
    // An unknown message of a Mobility Header, and a UDP datagram without a checksum.
    let (mobility, udp) = ([59, 0, 0, 0, 0, 0, 0, 0], [0, 9, 0, 9, 0, 8, 0, 0]);
    vec![
        packet(LEFT, RIGHT, home_address, protocol::UDP, &udp),
        packet(LEFT, RIGHT, routing, protocol::UDP, &udp),
        packet(LEFT, RIGHT, Extensions::NONE, mip6::PROTOCOL, &mobility),
        packet(LEFT, RIGHT, home_address, mip6::PROTOCOL, &mobility),
    ]
}

#[test]
fn packets_of_mobile_ipv6_are_seen_and_kept_from_the_kernel() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = pair(realm);
    right.run(|| set_sysctl("net.ipv6.icmp.ratelimit", "0")).unwrap().unwrap();
    let sender = left.run(|| Ipv6PacketSender::open(Some(7))).unwrap().unwrap();
    let problems = left.run(|| Icmpv6Socket::open(&[PARAMETER_PROBLEM])).unwrap().unwrap();
    let watch = right.run(Ipv6PacketWatch::open).unwrap().unwrap();
    let there = index_of(&right, "eth0");
    let mut buffer = [0; 2048];
    let mut passes = |guard: Option<PacketGuard>| {
        for packet in mobile_packets() {
            assert!(sender.send(&packet, None).unwrap());
            assert!(wait_for(&watch, PollFlags::POLLIN), "not seen");
            let seen = watch.receive(&mut buffer).unwrap().unwrap();
            assert_eq!((seen.interface, seen.packet), (there, &packet[..]));
            assert!(Packet::parse(seen.packet, Understood::MOBILE_IPV6).is_ok());
            if guard.is_none() {
                assert!(wait_for(&problems, PollFlags::POLLIN), "the kernel does not know it");
                assert_eq!(problems.receive(&mut buffer).unwrap().unwrap().source, RIGHT);
            }
        }
        assert_eq!(watch.receive(&mut buffer).unwrap(), None);
        guard
    };
    passes(None);
    let kinds =
        [GuardedPacket::HomeAddressOption, GuardedPacket::Type2Routing, GuardedPacket::MobilityHeader];
    let guard = right.run(move || PacketGuard::open("careof6", &kinds)).unwrap().unwrap();
    let guard = passes(Some(guard));
    assert!(is_silent(&problems), "the kernel has answered");
    assert!(
        right.run(move || PacketGuard::open("careof6", &kinds)).unwrap().is_err(),
        "somebody has the name"
    );
    // With its socket it goes, and what it dropped is the kernel's again.
    drop(guard);
    passes(None);
    drop(right.run(move || PacketGuard::open("careof6", &kinds)).unwrap().unwrap());
}

#[test]
fn a_tunnel_takes_packets_of_any_length_and_the_kernel_answers_none() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = pair(realm);
    let entry = left.run(Ipv6TunnelSocket::open).unwrap().unwrap();
    let exit = right.run(Ipv6TunnelSocket::open).unwrap().unwrap();
    let problems = left.run(|| Icmpv6Socket::open(&[1, PARAMETER_PROBLEM])).unwrap().unwrap();
    let outer =
        Ipv6Outer { source: LEFT, destination: RIGHT, hop_limit: 64, traffic_class: 0xb8, interface: None };
    let mut buffer = vec![0; 66_000];
    for len in [8, 1412, 1413, 40_000] {
        let payload: Vec<u8> = (0..len).map(|n| n as u8).collect();
        let inner = packet(HOME, LEFT, Extensions::NONE, protocol::UDP, &payload);
        assert!(entry.send(&outer, &inner).unwrap());
        assert!(wait_for(&exit, PollFlags::POLLIN), "{len}");
        let got = exit.receive(&mut buffer).unwrap().unwrap();
        assert_eq!((got.source, got.destination), (LEFT, RIGHT));
        assert_eq!(got.interface, index_of(&right, "eth0"));
        assert!(got.packet == inner, "{len}");
    }
    assert_eq!(exit.receive(&mut buffer).unwrap(), None);
    assert!(is_silent(&problems));
    // From an address that the host does not have nothing is sent.
    let foreign = Ipv6Outer { source: HOME, ..outer };
    assert!(entry.send(&foreign, &[0; 40]).is_err());
}

#[test]
fn addresses_of_both_versions_are_told_by_one_monitor() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, _right) = pair(realm);
    let open = || {
        let own = Netlink::open()?;
        let monitor = NetlinkMonitor::open_beside_for_both(&own)?;
        Ok::<_, Error>((own, monitor))
    };
    let (mut own, mut monitor) = left.run(open).unwrap().unwrap();
    let index = own.index_of("eth0").unwrap();
    for (address, length) in [(IpAddr::from([203, 0, 113, 5]), 32), (HOME.into(), 128)] {
        own.add_address(index, address, length).unwrap();
        loop {
            match monitor.poll_change().unwrap() {
                Some(NetworkChange::AddressAdded { assigned }) if assigned.address == address => break,
                Some(_) => {}
                None => assert!(wait_for(&monitor, PollFlags::POLLIN), "nothing is told of {address}"),
            }
        }
    }
}
