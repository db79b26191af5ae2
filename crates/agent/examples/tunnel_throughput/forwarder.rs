//! What the agents are measured against: packets copied from one TUN device to the other, one system call each.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use careof_lab::Tun;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::error::Error;

/// How often to look whether it is over, milliseconds.
const LOOK: u8 = 100;
/// Packets in one direction before the other has its turn.
const ROUNDS: usize = 64;

/// A forwarder that runs until it is dropped.
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Forwarder {
    pub(crate) fn start(a: Tun, b: Tun) -> Result<Self, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = Builder::new().name("forwarder".to_owned()).spawn({
            let stop = stop.clone();
            move || forward(&a, &b, &stop)
        });
        Ok(Self { stop, thread: Some(thread.map_err(crate::transfer::failed("clone"))?) })
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Copies until told to stop.
fn forward(a: &Tun, b: &Tun, stop: &AtomicBool) {
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
