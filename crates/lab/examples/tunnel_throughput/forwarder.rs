//! What the agents are measured against: packets copied from one TUN device to the other, one system call each.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use careof_lab::Tun;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const LOOK: u8 = 100;
/// Packets in one direction before the other has its turn.
const ROUNDS: usize = 64;

/// Copies until told to stop.
pub(crate) fn forward(a: &Tun, b: &Tun, stop: &AtomicBool) {
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = [a, b].map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN));
        let _ = poll(&mut waiting, PollTimeout::from(LOOK));
        for (from, to) in [(a, b), (b, a)] {
            for _ in 0..ROUNDS {
                let Ok(len) = from.receive(&mut buffer) else { break };
                let _ = to.send(buffer.get(..len).unwrap_or_default());
            }
        }
    }
}
