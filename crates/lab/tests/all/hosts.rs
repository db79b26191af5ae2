//! Hosts: what is inside stays inside, and nothing is left when they are gone.

use std::fs;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::processes::{threads_in, wait_until};
use crate::support::{LEFT, Pair, RIGHT, realm_or_skip};
use careof_lab::{Effect, Error, InterfaceConfig, Netlink, Route, Tun, set_sysctl};
use careof_link::Config;
use nix::errno::Errno;

/// The network namespace of the calling thread.
fn namespace() -> PathBuf {
    fs::read_link("/proc/thread-self/ns/net").unwrap()
}

fn named_namespaces() -> usize {
    fs::read_dir("/run/netns").map_or(0, Iterator::count)
}

#[test]
fn a_host_is_a_network_of_its_own() {
    let Some(realm) = realm_or_skip() else { return };
    let (one, two) = (realm.host("one").unwrap(), realm.host("two").unwrap());
    let _tun = one.attach(&InterfaceConfig::new("only0", LEFT.into(), 24)).unwrap();
    let find = |host: &careof_lab::Host| host.run(|| Netlink::open()?.index_of("only0")).unwrap();
    assert!(find(&one).is_ok());
    assert!(matches!(find(&two), Err(Error::System { errno: Errno::ENODEV, .. })));
    assert!(matches!(Netlink::open().unwrap().index_of("only0"), Err(Error::System { .. })));
    let outside = namespace();
    let (first, second) = (one.run(namespace).unwrap(), two.run(namespace).unwrap());
    assert!(first != second && first != outside && second != outside);
}

#[test]
fn loopback_is_up() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("alone").unwrap();
    let echoed = host.run(|| {
        let socket = crate::support::Udp::bind("127.0.0.1:0")?;
        socket.connect(socket.local_addr()?)?;
        socket.send(b"echo")?;
        let mut buffer = [0; 8];
        socket.recv(&mut buffer)
    });
    assert_eq!(echoed.unwrap().unwrap(), 4);
}

#[test]
fn addresses_and_routes_come_and_go() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("router").unwrap();
    let _tun = host.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    let outcome = host.run(|| {
        let mut netlink = Netlink::open()?;
        let interface = netlink.index_of("up0")?;
        let far = "192.0.2.77".parse().unwrap();
        let route = Route {
            via: Some(RIGHT.into()),
            source: Some(LEFT.into()),
            table: Some(1000),
            metric: Some(5),
            ..Route::to(far, 24, interface)
        };
        netlink.set_route(&route)?;
        netlink.set_route(&route)?;
        let once = netlink.remove_route(&route)?;
        let again = netlink.remove_route(&route)?;
        netlink.set_route(&Route::default_through(interface, "0.0.0.0".parse().unwrap()))?;
        let given = netlink.add_address(interface, far, 32)?;
        let twice = netlink.add_address(interface, far, 32)?;
        netlink.remove_address(interface, far, 32)?;
        let impossible = netlink.add_address(interface, far, 33).unwrap_err();
        netlink.add_address(interface, "fd00::1".parse().unwrap(), 64).ok();
        Ok::<_, Error>(([once, again, given, twice], impossible))
    });
    let (effects, impossible) = outcome.unwrap().unwrap();
    assert_eq!(effects, [Effect::Changed, Effect::Unchanged, Effect::Changed, Effect::Unchanged]);
    assert_eq!(
        impossible.to_string(),
        "cannot give interface 2 the address 192.0.2.77/33: RTM_NEWADDR: Invalid argument"
    );
}

#[test]
fn kernel_parameters_are_the_hosts_own() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("tuned").unwrap();
    let ttl = || fs::read_to_string("/proc/sys/net/ipv4/ip_default_ttl").unwrap();
    let outside = ttl();
    host.run(|| set_sysctl("net.ipv4.ip_default_ttl", "17")).unwrap().unwrap();
    assert_eq!(host.run(ttl).unwrap().trim(), "17");
    assert_eq!(ttl(), outside);
    for name in ["kernel.hostname", "net/ipv4/ip_default_ttl"] {
        assert!(matches!(set_sysctl(name, "1"), Err(Error::System { errno: Errno::EINVAL, .. })));
    }
}

#[test]
fn an_interface_that_exists_is_not_made_twice() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("twice").unwrap();
    let _first = host.run(|| Tun::open("up0")).unwrap().unwrap();
    let second = host.run(|| Tun::open("up0")).unwrap();
    assert!(matches!(second, Err(Error::System { call: "ioctl(TUNSETIFF)", errno: Errno::EBUSY, .. })));
}

#[test]
fn a_panic_inside_is_a_panic_outside_and_the_host_goes_on() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("clumsy").unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| host.run(|| panic!("inside"))));
    assert!(caught.is_err());
    assert_eq!(host.run(|| 7), Ok(7));
}

#[test]
fn a_dropped_lab_leaves_nothing_behind() {
    let Some(realm) = realm_or_skip() else { return };
    let named = named_namespaces();
    let pair = Pair::new(realm, &Config::default());
    let inside = pair.left.run(namespace).unwrap();
    let mut sleeper = Command::new("sleep");
    sleeper.arg("600").stdin(Stdio::null());
    let mut child = pair.left.spawn(sleeper).unwrap();
    let inside = [inside];
    assert!(threads_in(&inside) >= 1);
    assert_eq!(named_namespaces(), named);
    drop(pair);
    assert!(!child.wait().unwrap().success());
    assert!(wait_until(|| threads_in(&inside) == 0));
    assert_eq!(named_namespaces(), named);
}

#[test]
fn a_tun_outside_the_emulator_can_be_read() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("plain").unwrap();
    let tun = host.attach(&InterfaceConfig::new("up0", LEFT.into(), 24)).unwrap();
    assert_eq!(tun.name(), "up0");
    let mut buffer = [0; 2048];
    assert_eq!(tun.receive(&mut buffer).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let socket = host.run(|| crate::support::Udp::bind((LEFT, 0))).unwrap().unwrap();
    socket.send_to(b"out", (RIGHT, 9)).unwrap();
    let epoll = nix::sys::epoll::Epoll::new(nix::sys::epoll::EpollCreateFlags::empty()).unwrap();
    let readable = nix::sys::epoll::EpollEvent::new(nix::sys::epoll::EpollFlags::EPOLLIN, 0);
    epoll.add(tun.as_fd(), readable).unwrap();
    epoll.wait(&mut [readable], 5_000_u16).unwrap();
    assert_eq!(tun.receive(&mut buffer).unwrap(), 20 + 8 + 3);
}
