//! Sockets of TCP whose buffers are larger than what the machine allows to everybody.

use std::fs;
use std::os::fd::AsFd;

use caps::{CapSet, Capability};
use careof_lab::{Error, IpVersion, TcpOption, sysctl, tcp_socket};
use nix::sys::socket::{getsockopt, sockopt};

use crate::support::realm_or_skip;

/// More than `net.core.rmem_max` or `net.core.wmem_max` allow: sockets have twice of these.
fn more_than(name: &str) -> u32 {
    let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap();
    text.trim().parse::<u32>().unwrap() * 2 + (8 << 20)
}

#[test]
fn buffers_beyond_what_everybody_may_have_take_no_privilege_on_a_host_of_ones_own() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let (receive, send) = (more_than("rmem_max"), more_than("wmem_max"));
    let buffers = [TcpOption::ReceiveBuffer(receive), TcpOption::NoDelay(true), TcpOption::SendBuffer(send)];
    let limits = || Ok::<_, Error>([sysctl("net.ipv4.tcp_rmem")?, sysctl("net.ipv4.tcp_wmem")?]);
    let made = host.run(move || {
        // Of this thread alone, which is the host's.
        let had = caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let before = limits()?;
        let made = [IpVersion::V4, IpVersion::V6].map(|version| tcp_socket(version, &buffers));
        let after = limits()?;
        if had {
            caps::raise(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        }
        Ok::<_, Error>((before, made, after))
    });
    let (before, made, after) = made.unwrap().unwrap();
    assert_eq!(before, after);
    for socket in made {
        let socket = socket.unwrap();
        let socket = socket.as_fd();
        assert_eq!(getsockopt(&socket, sockopt::RcvBuf).unwrap(), receive as usize);
        assert_eq!(getsockopt(&socket, sockopt::SndBuf).unwrap(), send as usize);
        assert!(getsockopt(&socket, sockopt::TcpNoDelay).unwrap());
    }
}
