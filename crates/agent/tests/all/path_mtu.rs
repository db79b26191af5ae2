//! Datagrams that are too long for a tunnel (RFC 2003 section 5).

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use crate::support::*;
use careof_agent::{Device, Hooks};
use careof_lab::{Host, InterfaceConfig, LinkSpec, Netlink, Realm, Route, set_sysctl};
use careof_link::Config;
use careof_mobility::v4::{DeliveryMethod, EncapsulationChoice, Notice, PolicyTable};

fn narrow() -> Config {
    Config { mtu: 576, delay: Duration::from_millis(5), ..Config::default() }
}

/// A connection carries `sent` from the correspondent to the mobile node.
fn transfer(world: &World, len: usize) {
    let listener = world.mobile.run(|| Listener::bind((HOME, 80))).unwrap().unwrap();
    let sent = pattern(len);
    let received = receive_all(listener);
    let mut client = connect_home(world, 80);
    client.write_all(&sent).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent);
}

#[test]
fn a_sender_is_told_what_fits_through_a_narrow_link() {
    let Some(realm) = realm_or_skip() else { return };
    for encapsulation in [EncapsulationChoice::IpInIp, EncapsulationChoice::Minimal, EncapsulationChoice::Gre]
    {
        let world = World::with(realm, &Config::default(), &narrow());
        let home = world.home_agent(home_setup(), Hooks::default());
        let mut setup = mobile_setup();
        setup.config.encapsulation = encapsulation;
        setup.config.policy = PolicyTable::new(DeliveryMethod::ReverseTunnel, []);
        let mobile = world.mobile_node(setup);
        mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
        mobile.wait_registered("wlan0");
        // The connection is made while the path is wide.
        let listener = world.mobile.run(|| Listener::bind((HOME, 81))).unwrap().unwrap();
        let sent = pattern(600_000);
        let received = receive_all(listener);
        let mut client = connect_home(&world, 81);
        client.write_all(&sent[..300_000]).unwrap();
        mobile.with(|node| node.switch_to("gsm0", Notice::None)).unwrap();
        mobile.wait_registered("gsm0");
        client.write_all(&sent[300_000..]).unwrap();
        drop(client);
        assert!(received.join().unwrap() == sent);
        let status = home.status();
        assert!(status.counters["packets-too-long"] > 0, "{encapsulation:?} {status:#?}");
        let overhead = encapsulation.encapsulation().max_overhead();
        let tunnel = status.tunnels.iter().find(|tunnel| tunnel.there == GSM).expect("a tunnel to it");
        assert_eq!(tunnel.mtu, Some(576 - overhead), "{encapsulation:?}");
        transfer(&world, 200_000);

        // What may be fragmented is, and comes whole.
        for (from, to) in [(&world.correspondent, &world.mobile), (&world.mobile, &world.correspondent)] {
            let (here, there) =
                if from.name() == "mobile" { (HOME, CORRESPONDENT) } else { (CORRESPONDENT, HOME) };
            let receiver = udp(to, there, 0);
            let target = (there, receiver.local_addr().unwrap().port());
            from.run(|| set_sysctl("net.ipv4.ip_no_pmtu_disc", "1")).unwrap().unwrap();
            let sender = udp(from, here, 0);
            let long = pattern(1300);
            sender.send_to(&long, target).unwrap();
            let mut buffer = [0; 2000];
            let len = receiver.recv(&mut buffer).unwrap_or(0);
            assert!(buffer[..len] == long, "{encapsulation:?} from {}", from.name());
        }
    }
}

/// A third link of the mobile node, far0 of 1000 bytes, behind a router that the home agent knows nothing about; the address there.
pub(crate) fn behind_a_router(world: &World, realm: Realm) -> (Host, Ipv4Addr) {
    let router = realm.host("router").unwrap();
    let attach = |host: &Host, name: &str, address: [u8; 4], mtu: u16| {
        let mut interface = InterfaceConfig::new(name, IpAddr::from(address), 24);
        interface.mtu = mtu;
        host.attach(&interface).unwrap()
    };
    let far = Ipv4Addr::new(203, 0, 113, 7);
    for (name, a, b, mtu) in [
        ("wire", (&world.home, "far0", [172, 16, 0, 1]), (&router, "up0", [172, 16, 0, 2]), 1500),
        ("cell", (&router, "far0", [203, 0, 113, 1]), (&world.mobile, "far0", far.octets()), 1000),
    ] {
        let config = Config { mtu, ..Config::default() };
        let (a, b) = (attach(a.0, a.1, a.2, mtu), attach(b.0, b.1, b.2, mtu));
        let (forward, backward) = (config.clone(), config);
        world.emulator.add_link(LinkSpec { name: name.to_owned(), a, b, forward, backward }).unwrap();
    }
    router.run(|| set_sysctl("net.ipv4.ip_forward", "1")).unwrap().unwrap();
    default_route(&router, "up0", None);
    default_route(&world.mobile, "far0", Some(300));
    world
        .home
        .run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of("far0")?;
            netlink.set_route(&Route::to(far.into(), 24, index))
        })
        .unwrap()
        .unwrap();
    (router, far)
}

#[test]
fn errors_from_inside_a_tunnel_reach_the_sender() {
    let Some(realm) = realm_or_skip() else { return };
    let world = World::new(realm);
    let (router, far) = behind_a_router(&world, realm);
    let home = world.home_agent(home_setup(), Hooks::default());
    let mut setup = mobile_setup();
    setup.devices.push(Device::new(2, "far0"));
    setup.config.interfaces.push(interface(2));
    let mobile = world.mobile_node(setup);
    // Wide to begin with, so that the connection starts with segments for 1500 bytes.
    mobile.with(|node| node.switch_to("wlan0", Notice::None)).unwrap();
    mobile.wait_registered("wlan0");
    let listener = world.mobile.run(|| Listener::bind((HOME, 81))).unwrap().unwrap();
    let sent = pattern(600_000);
    let received = receive_all(listener);
    let mut client = connect_home(&world, 81);
    client.write_all(&sent[..300_000]).unwrap();
    mobile.with(|node| node.switch_to("far0", Notice::None)).unwrap();
    mobile.wait_registered("far0");
    client.write_all(&sent[300_000..]).unwrap();
    drop(client);
    assert!(received.join().unwrap() == sent);
    let tunnels = home.status().tunnels;
    assert_eq!(tunnels[0].mtu, Some(980), "{tunnels:#?}");

    // Host unreachable: the router's way to the mobile node is gone.
    let errors = world.correspondent.run(|| careof_lab::IcmpSocket::open(&[3])).unwrap().unwrap();
    router
        .run(move || {
            let mut netlink = Netlink::open()?;
            let kind = careof_lab::RouteKind::Unreachable;
            netlink.set_route(&Route { kind, ..Route::to(far.into(), 32, 0) })
        })
        .unwrap()
        .unwrap();
    let sender = udp(&world.correspondent, CORRESPONDENT, 0);
    let mut buffer = [0; 1000];
    let clock = careof_lab::Clock::start();
    let told = loop {
        let _ = sender.send_to(b"anybody there?", (HOME, 9));
        sleep(Duration::from_millis(50));
        if let Some(error) = errors.receive(&mut buffer).unwrap() {
            break (error.source, error.message[1]);
        }
        assert!(clock.now().since_start() < PATIENCE);
    };
    assert_eq!(told, (HA, 1), "host unreachable, from the home agent");
}
