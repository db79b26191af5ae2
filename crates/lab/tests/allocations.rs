//! Carrying packets takes no memory anew.

#![allow(missing_docs)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::Ipv4Addr;

use careof_lab::{
    Departure, Flushed, Frame, Netlink, OffloadTun, Outer, ReceiveBatch, SendBatch, TunnelSocket, set_sysctl,
};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, Origin, Tunnel};
use careof_wire::{Flags, SackBlocks, Segment, SeqNumber, protocol};
use nix::poll::PollFlags;
use support::veth::{connect, host, wait_for};
use support::{LEFT, RIGHT, Udp, realm_or_skip};

const HOME: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);
const PEER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 9);

/// The system's allocator, counting for each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on to the system's allocator as it is.
#[expect(unsafe_code, reason = "there is no other way to count")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no counter any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A segment of a flow that nobody listens to.
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
    let mut transport = Vec::new();
    segment.emit(PEER, HOME, &payload, &mut transport);
    let mut datagram = Vec::new();
    Ipv4Header {
        source: PEER,
        destination: HOME,
        protocol: protocol::TCP,
        identification: number as u16,
        dont_fragment: true,
        payload_len: transport.len() as u16,
        ..Ipv4Header::default()
    }
    .emit(&mut datagram);
    datagram.extend(transport);
    datagram
}

#[test]
fn carrying_packets_allocates_nothing() {
    let Some(realm) = realm_or_skip() else { return };
    let (left, right) = (host(realm, "left"), host(realm, "right"));
    connect("link0", (&left, LEFT), (&right, RIGHT), 1500);
    let device = || {
        let tun = OffloadTun::open("tunnel0")?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of("tunnel0")?;
        set_sysctl("net.ipv6.conf.tunnel0.disable_ipv6", "1")?;
        netlink.add_address(index, HOME.into(), 24)?;
        netlink.set_up(index)?;
        Ok::<_, careof_lab::Error>(tun)
    };
    let mut entrance = left.run(device).unwrap().unwrap();
    let mut exit = right.run(device).unwrap().unwrap();
    let socket = left.run(|| Udp::bind((HOME, 0))).unwrap().unwrap();
    let segments: Vec<_> = (0..20).map(segment).collect();
    for encapsulation in
        [Encapsulation::IpInIp, Encapsulation::Minimal, Encapsulation::Gre { key: None, sequence: Some(0) }]
    {
        let number = encapsulation.protocol();
        let sender = left.run(move || TunnelSocket::open(number)).unwrap().unwrap();
        let receiver = right.run(move || TunnelSocket::open(number)).unwrap().unwrap();
        let mut tunnel = Tunnel { encapsulation, entry: LEFT, exit: RIGHT, ttl: 64 };
        let outer = Outer {
            source: LEFT,
            destination: RIGHT,
            protocol: number,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            interface: None,
        };
        let wrapped: Vec<_> = segments
            .iter()
            .map(|datagram| tunnel.encapsulate(datagram, Origin::Local, 0).unwrap().split_off(20))
            .collect();
        let mut frame = Frame::new();
        let mut sending = SendBatch::new(64);
        let mut receiving = ReceiveBatch::new(64);
        let mut round = || {
            // From the device, and a run of segments that can be put together.
            socket.send_to(&[1; 900], (PEER, 9)).unwrap();
            assert!(wait_for(&entrance, PollFlags::POLLIN));
            while entrance.receive(&mut frame).unwrap() {
                sending.push_frame(&mut tunnel, Departure::default(), &mut frame).unwrap();
            }
            for payload in &wrapped {
                assert!(sending.push(&outer, payload));
            }
            let expected = sending.len();
            let flushed = sender.send_batch(&mut sending, |failure| panic!("{failure:?}")).unwrap();
            assert_eq!(flushed, Flushed::All);
            let mut received = 0;
            while received < expected {
                assert!(wait_for(&receiver, PollFlags::POLLIN));
                received += receiver.receive_batch(&mut receiving).unwrap();
                for packet in receiving.packets() {
                    exit.send(&packet.decapsulate().unwrap().datagram).unwrap();
                }
                exit.flush().unwrap();
            }
        };
        // The rooms for super-packets are made when they are first needed.
        round();
        let before = ALLOCATIONS.get();
        for _ in 0..50 {
            round();
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{encapsulation:?}");
    }
    assert!(exit.counters().super_packets_sent > 0 || !exit.offloads().vnet_header);
}
