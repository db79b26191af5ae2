//! Sockets of TCP whose buffers are larger than what the machine allows to everybody.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use caps::{CapSet, Capability};
use careof_lab::{Error, Host, IpVersion, TcpOption, sysctl, tcp_socket};
use nix::sys::socket::{getsockopt, sockopt};

use crate::support::realm_or_skip;

/// More than `net.core.rmem_max` or `net.core.wmem_max` allow: sockets have twice of these.
fn more_than(name: &str) -> u32 {
    let text = fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap();
    text.trim().parse::<u32>().unwrap() * 2 + (8 << 20)
}

/// Sockets with these options, made by a thread without CAP_NET_ADMIN. What the host's other sockets get is as before.
fn made_without_privilege(host: &Host, options: Vec<TcpOption>) -> Vec<OwnedFd> {
    let limits = || Ok::<_, Error>([sysctl("net.ipv4.tcp_rmem")?, sysctl("net.ipv4.tcp_wmem")?]);
    let made = host.run(move || {
        // Of this thread alone, which is the host's.
        let had = caps::has_cap(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        caps::drop(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        let before = limits()?;
        let made = [IpVersion::V4, IpVersion::V6].map(|version| tcp_socket(version, &options));
        let after = limits()?;
        if had {
            caps::raise(None, CapSet::Effective, Capability::CAP_NET_ADMIN).unwrap();
        }
        Ok::<_, Error>((before, made, after))
    });
    let (before, made, after) = made.unwrap().unwrap();
    assert_eq!(before, after);
    made.into_iter().map(Result::unwrap).collect()
}

/// Which buffers the kernel leaves alone: 1 is the send buffer, 2 the receive buffer.
fn locks(socket: &OwnedFd) -> u32 {
    let (mut locks, mut len) = (0_u32, 4);
    // SAFETY: the descriptor is open, and the call writes at most the four bytes that `len` says.
    #[expect(unsafe_code, reason = "an option that no safe binding among our crates knows")]
    let result = unsafe {
        let place = (&raw mut locks).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_BUF_LOCK, place, &raw mut len)
    };
    assert_eq!((result, len), (0, 4));
    locks
}

#[test]
fn buffers_beyond_what_everybody_may_have_take_no_privilege_on_a_host_of_ones_own() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    let (receive, send) = (more_than("rmem_max"), more_than("wmem_max"));
    let buffers = [TcpOption::ReceiveBuffer(receive), TcpOption::NoDelay(true), TcpOption::SendBuffer(send)];
    for socket in made_without_privilege(&host, buffers.to_vec()) {
        assert_eq!(getsockopt(&socket, sockopt::RcvBuf).unwrap(), receive as usize);
        assert_eq!(getsockopt(&socket, sockopt::SndBuf).unwrap(), send as usize);
        assert!(getsockopt(&socket, sockopt::TcpNoDelay).unwrap());
        assert_eq!(locks(&socket), 3);
    }
}

#[test]
fn a_buffer_that_nobody_asked_for_goes_on_growing() {
    let Some(realm) = realm_or_skip() else { return };
    let host = realm.host("any").unwrap();
    for (option, lock) in [
        (TcpOption::ReceiveBuffer(more_than("rmem_max")), 2),
        (TcpOption::SendBuffer(more_than("wmem_max")), 1),
    ] {
        for socket in made_without_privilege(&host, vec![option]) {
            assert_eq!(locks(&socket), lock, "{option:?}");
        }
    }
}
