//! Tunnelled packets that the kernel has put together before anybody could see them (generic receive offload), which
//! network cards have on.

use std::net::Ipv4Addr;
use std::process::{Command, Stdio};

use crate::support::veth::{connect, eventually, host, wait_for};
use crate::support::{LEFT, RIGHT, realm_or_skip};
use careof_lab::{Host, Netlink, OffloadTun, Outer, ReceiveBatch, SendBatch, TunnelSocket};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol::{IP_IN_IP, TCP};
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber};
use nix::poll::PollFlags;

const HOME: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
/// Commands of `ioctl(SIOCETHTOOL)`.
const SET_TSO: u32 = 0x1f;
const SET_GRO: u32 = 0x2c;

mod declaration {
    nix::ioctl_readwrite_bad!(ethtool, 0x8946, libc::ifreq);
}

/// Switches an offload of an interface on or off.
fn set_offload(host: &Host, name: &'static str, command: u32, on: bool) {
    let done = host.run(move || {
        let socket = crate::support::Udp::bind(("0.0.0.0", 0)).unwrap();
        let mut value = [command, u32::from(on)];
        // SAFETY: `ifreq` is numbers and unions of numbers and pointers; the value outlives the call.
        #[expect(unsafe_code, reason = "the kernel takes a pointer")]
        unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
                *place = libc::c_char::from_ne_bytes([byte]);
            }
            request.ifr_ifru.ifru_data = value.as_mut_ptr().cast();
            declaration::ethtool(std::os::fd::AsRawFd::as_raw_fd(&socket), &raw mut request)
        }
    });
    done.unwrap().unwrap();
}

fn segment(number: u32) -> Vec<u8> {
    let payload = [0x5a; 1000];
    let segment = Segment {
        source_port: 1,
        destination_port: 2,
        seq: SeqNumber(number * 1000),
        ack: SeqNumber(1),
        flags: Flags::ACK,
        window: 1000,
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sack: SackBlocks::EMPTY,
        payload_len: 1000,
    };
    let (source, destination) = (Ipv4Addr::new(198, 51, 100, 9), HOME);
    let mut transport = Vec::new();
    segment.emit(source, destination, &payload, &mut transport);
    let mut datagram = Vec::new();
    Ipv4Header {
        source,
        destination,
        protocol: TCP,
        identification: number as u16,
        dont_fragment: true,
        payload_len: transport.len() as u16,
        ..Ipv4Header::default()
    }
    .emit(&mut datagram);
    datagram.extend(transport);
    datagram
}

/// Has the kernel hold packets of `link0` back for a moment, so that it has some to put together; `false` where that
/// cannot be said.
fn hold_back(host: &Host) -> bool {
    let mut command = Command::new("sh");
    let said = "cd /sys/class/net/link0 && echo 20000000 >gro_flush_timeout && echo 2 >napi_defer_hard_irqs";
    command.args(["-c", said]).stderr(Stdio::null());
    host.spawn(command).is_ok_and(|mut child| child.wait().is_ok_and(|status| status.success()))
}

/// A counter of the host's TCP.
fn tcp_counter(host: &Host, name: &str) -> u64 {
    let text = host.run(|| std::fs::read_to_string("/proc/thread-self/net/snmp")).unwrap().unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.find(|(found, _)| *found == name).unwrap().1.parse().unwrap()
}

#[test]
fn what_the_kernel_has_put_together_reaches_the_host_with_a_checksum_that_is_right() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = (host(realm, "left"), host(realm, "right"));
    connect("link0", (&left, LEFT), (&right, RIGHT), 1500);
    set_offload(&left, "link0", SET_TSO, false);
    set_offload(&right, "link0", SET_GRO, true);
    if !hold_back(&right) {
        careof_testbed::skip("/sys cannot be written here");
        return;
    }
    let sender = left.run(|| TunnelSocket::open(IP_IN_IP)).unwrap().unwrap();
    let receiver = right.run(|| TunnelSocket::open(IP_IN_IP)).unwrap().unwrap();
    let device = right.run(|| {
        let tun = OffloadTun::open("tunnel0")?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("tunnel0")?;
        netlink.set_mtu(index, 1480)?;
        netlink.add_address(index, HOME.into(), 24)?;
        netlink.set_up(index)?;
        Ok::<_, careof_lab::Error>(tun)
    });
    let mut tun = device.unwrap().unwrap();
    let outer = Outer {
        source: LEFT,
        destination: RIGHT,
        protocol: IP_IN_IP,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        interface: None,
    };
    let mut batch = SendBatch::new(64);
    for number in 0..40 {
        assert!(batch.push(&outer, &segment(number)));
    }
    sender.send_batch(&mut batch, |failure| panic!("{failure:?}")).unwrap();
    let mut receiving = ReceiveBatch::new(64);
    let (mut payload, mut longest) = (0, 0);
    while payload < 40_000 {
        assert!(wait_for(&receiver, PollFlags::POLLIN), "{payload} bytes came");
        receiver.receive_batch(&mut receiving).unwrap();
        for packet in receiving.packets() {
            let out = packet.decapsulate().unwrap();
            payload += out.datagram.len() - 40;
            longest = longest.max(out.datagram.len());
            tun.send(&out.datagram).unwrap();
        }
        tun.flush().unwrap();
    }
    assert_eq!(payload, 40_000);
    if longest <= 1500 {
        careof_testbed::skip("this kernel does not put tunnelled packets together");
        return;
    }
    // Nobody listens there, so TCP answers what it can read.
    assert!(eventually(|| (tcp_counter(&right, "OutRsts") > 0).then_some(())).is_some());
    assert_eq!(tcp_counter(&right, "InCsumErrors"), 0);
    assert_eq!(tun.counters().refused, 0);
}
