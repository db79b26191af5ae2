//! The smallest agent: everything from its TUN device goes into one tunnel, everything out of that goes to the
//! device. The loop is that of the real agents without their questions.

use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use careof_lab::{Departure, Error, Flushed, Frame, OffloadTun, ReceiveBatch, SendBatch, TunnelSocket};
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, Tunnel};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Packets a system call.
const BATCH: usize = 64;
/// Rounds in one direction before the other has its turn.
const ROUNDS: usize = 16;
/// How often to look whether it is over, milliseconds.
const LOOK: u8 = 100;

pub(crate) struct Agent {
    tun: OffloadTun,
    socket: TunnelSocket,
    tunnel: Tunnel,
    frame: Frame,
    sending: SendBatch,
    receiving: ReceiveBatch,
    is_blocked: bool,
    /// Packets sent into the tunnel, system calls that took, and packets that were not sent.
    sent: u64,
    calls: u64,
    failed: u64,
    /// Packets out of the tunnel, and the calls.
    received: u64,
    receive_calls: u64,
}

impl Agent {
    /// In the network namespace of the calling thread.
    pub(crate) fn open(device: &str, entry: Ipv4Addr, exit: Ipv4Addr) -> Result<Self, Error> {
        Ok(Self {
            tun: OffloadTun::open(device)?,
            socket: TunnelSocket::open(protocol::IP_IN_IP)?,
            tunnel: Tunnel { encapsulation: Encapsulation::IpInIp, entry, exit, ttl: 64 },
            frame: Frame::new(),
            sending: SendBatch::new(BATCH),
            receiving: ReceiveBatch::new(BATCH),
            is_blocked: false,
            sent: 0,
            calls: 0,
            failed: 0,
            received: 0,
            receive_calls: 0,
        })
    }

    /// Carries packets until told to stop; returns what there is to say about it.
    pub(crate) fn run(mut self, stop: &AtomicBool) -> Result<String, Error> {
        while !stop.load(Ordering::Relaxed) {
            let tun_events = if self.is_blocked { PollFlags::empty() } else { PollFlags::POLLIN };
            let out_events = if self.is_blocked { PollFlags::POLLOUT } else { PollFlags::empty() };
            let mut waiting = [
                PollFd::new(self.tun.as_fd(), tun_events),
                PollFd::new(self.socket.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.socket.sending_fd(), out_events),
            ];
            // Interrupted or not, it is looked at again.
            let _ = poll(&mut waiting, PollTimeout::from(LOOK));
            let [tun, socket, out] = waiting.map(|one| one.any().unwrap_or(false));
            if tun || out {
                self.outbound()?;
            }
            if socket {
                self.inbound()?;
                while self.socket.next_error()?.is_some() {}
            }
        }
        let tun = self.tun.counters();
        Ok(format!(
            "{:?}: into the tunnel {} frames, {} packets in {} calls, {} failed; out of it {} packets in {} calls, \
             {} frames; dropped {}",
            self.tun.tun().name(),
            tun.frames_received,
            self.sent,
            self.calls,
            self.failed,
            self.received,
            self.receive_calls,
            tun.frames_sent,
            self.socket.dropped_by_kernel()?,
        ))
    }

    fn outbound(&mut self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            if self.frame.is_done() && !self.tun.receive(&mut self.frame)? {
                break;
            }
            // What must not enter the tunnel, nor what is no IPv4, is not carried here.
            let _ = self.sending.push_frame(&mut self.tunnel, Departure::default(), &mut self.frame);
            if (self.sending.is_full() || !self.frame.is_done()) && self.flush()? == Flushed::Blocked {
                return Ok(());
            }
        }
        self.flush().map(drop)
    }

    fn flush(&mut self) -> Result<Flushed, Error> {
        let waiting = self.sending.len();
        let failed = &mut self.failed;
        let flushed = self.socket.send_batch(&mut self.sending, |_| *failed += 1)?;
        self.is_blocked = flushed == Flushed::Blocked;
        self.sent += (waiting - self.sending.len()) as u64;
        self.calls += 1;
        Ok(flushed)
    }

    fn inbound(&mut self) -> Result<(), Error> {
        for _ in 0..ROUNDS {
            let received = self.socket.receive_batch(&mut self.receiving)?;
            self.received += received as u64;
            self.receive_calls += 1;
            for packet in self.receiving.packets() {
                if let Ok(out) = packet.decapsulate()
                    && out.outer.source == self.tunnel.exit
                {
                    self.tun.send(&out.datagram)?;
                }
            }
            self.tun.flush()?;
            if received < BATCH {
                break;
            }
        }
        Ok(())
    }
}
