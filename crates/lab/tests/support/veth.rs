//! Hosts connected by the kernel's own cable, and waiting for what comes through it.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;

use careof_lab::{Clock, Host, Netlink, Realm, Route, set_sysctl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{PATIENCE, SILENCE};

/// A host that forwards and takes packets in by any interface.
pub(crate) fn host(realm: Realm, name: &str) -> Host {
    let host = realm.host(name).unwrap();
    let set = host.run(|| {
        for scope in ["all", "default"] {
            set_sysctl(&format!("net.ipv4.conf.{scope}.rp_filter"), "0")?;
        }
        // Errors are counted here, one by one.
        set_sysctl("net.ipv4.icmp_ratelimit", "0")?;
        set_sysctl("net.ipv4.ip_forward", "1")
    });
    set.unwrap().unwrap();
    host
}

/// Connects two hosts by an interface `name` in each, with their addresses of a /24.
pub(crate) fn connect(name: &'static str, a: (&Host, Ipv4Addr), b: (&Host, Ipv4Addr), mtu: u16) {
    let there = b.0.namespace().unwrap();
    a.0.run(move || Netlink::open()?.add_veth(name, name, there.as_fd())).unwrap().unwrap();
    for (host, address) in [a, b] {
        let up = host.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index_of(name)?;
            // Nothing but what a test sends.
            set_sysctl(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1")?;
            netlink.set_mtu(index, mtu)?;
            netlink.add_address(index, address.into(), 24)?;
            netlink.set_up(index)
        });
        up.unwrap().unwrap();
    }
}

/// The index of an interface.
pub(crate) fn index_of(host: &Host, name: &'static str) -> u32 {
    host.run(move || Netlink::open()?.index_of(name)).unwrap().unwrap()
}

/// The default route by a next hop.
pub(crate) fn route_all(host: &Host, name: &'static str, via: Ipv4Addr) {
    let added = host.run(move || {
        let mut netlink = Netlink::open()?;
        let through = Route::default_through(netlink.index_of(name)?, IpAddr::V4(via));
        netlink.set_route(&Route {
            destination: Ipv4Addr::UNSPECIFIED.into(),
            via: Some(via.into()),
            ..through
        })
    });
    added.unwrap().unwrap();
}

/// Waits for an event of a descriptor; `false` when patience ends.
pub(crate) fn wait_for(fd: &impl AsFd, events: PollFlags) -> bool {
    let timeout = PollTimeout::try_from(PATIENCE).unwrap();
    poll(&mut [PollFd::new(fd.as_fd(), events)], timeout).unwrap() > 0
}

/// Whether a descriptor stays unreadable for a while.
pub(crate) fn is_silent(fd: &impl AsFd) -> bool {
    let timeout = PollTimeout::try_from(SILENCE).unwrap();
    poll(&mut [PollFd::new(fd.as_fd(), PollFlags::POLLIN)], timeout).unwrap() == 0
}

/// Asks until there is an answer, or patience ends.
pub(crate) fn eventually<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let clock = Clock::start();
    loop {
        let answer = ask();
        if answer.is_some() || clock.now().since_start() > PATIENCE {
            return answer;
        }
        std::thread::yield_now();
    }
}
