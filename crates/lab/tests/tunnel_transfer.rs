//! A connection of the kernel's TCP through the two agents of the throughput measurement, byte by byte.

#![allow(missing_docs)]

#[path = "../examples/tunnel_throughput/agent.rs"]
mod agent;
#[path = "../examples/tunnel_throughput/forwarder.rs"]
mod forwarder;
mod support;
#[path = "../examples/tunnel_throughput/topology.rs"]
mod topology;

use std::io::{Read, Write};
use std::net::Shutdown;

use support::realm_or_skip;
use topology::Case;

#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type TcpListener = std::net::TcpListener;
#[expect(clippy::disallowed_types, reason = "the real world is what is tested")]
type TcpStream = std::net::TcpStream;

const PORT: u16 = 5001;

/// Bytes that differ from place to place, and from one direction to the other.
fn content(len: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Sends all of `content` while receiving all that the other end sends.
fn exchange(stream: TcpStream, content: Vec<u8>) -> Vec<u8> {
    let mut writing = stream.try_clone().unwrap();
    let writer = std::thread::Builder::new().spawn(move || {
        // In pieces of all sizes, so that segments have them too.
        let mut rest = &content[..];
        let mut size = 1;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            writing.write_all(now).unwrap();
            rest = later;
            size = (size * 7 + 3) % 100_000 + 1;
        }
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    let mut reading = stream;
    reading.set_read_timeout(Some(support::PATIENCE * 6)).unwrap();
    reading.read_to_end(&mut received).unwrap();
    writer.unwrap().join().unwrap();
    received
}

#[test]
fn both_directions_of_a_connection_arrive_as_they_were_sent() {
    let Some(realm) = realm_or_skip() else { return };
    for case in Case::ALL {
        let mut topology = case.build(realm).unwrap();
        let listener = topology.receiver.run(|| TcpListener::bind(("0.0.0.0", PORT))).unwrap().unwrap();
        let to = (topology.address, PORT);
        let ours = topology.sender.run(move || TcpStream::connect(to)).unwrap().unwrap();
        let (theirs, _) = listener.accept().unwrap();
        let (down, up) = (content(12_000_000, 1), content(5_000_000, 2));
        let sent_down = down.clone();
        let other_end = std::thread::Builder::new().spawn(move || exchange(ours, sent_down)).unwrap();
        let received = exchange(theirs, up.clone());
        assert!(received == down, "{}: {} bytes of {}", case.name(), received.len(), down.len());
        assert!(other_end.join().unwrap() == up, "{}", case.name());
        for line in topology.stop().unwrap() {
            println!("{line}");
        }
    }
}
