//! Packets out of tunnels.

use careof_wire::tunnel::{Decapsulated, decapsulate_in_place};
use nix::errno::Errno;

use super::TunnelSocket;
use super::batch_io::{Arrived, Receiving};
use crate::error::Error;

/// The longest packet there is, with some room so that pieces start on a cache line. Pages that no packet
/// reaches are never touched, so they take no memory.
const PIECE: usize = 65_536;
/// Attempts at receiving after errors that belong to packets sent, of which the kernel keeps one at a time.
const ATTEMPTS: usize = 4;

/// Room for the packets that one system call receives, made once.
#[derive(Debug)]
pub struct ReceiveBatch {
    buffer: Vec<u8>,
    arrived: Vec<Arrived>,
    count: usize,
    receiving: Receiving,
}

impl ReceiveBatch {
    /// Room for as many packets (64 is a good number).
    #[must_use]
    pub fn new(packets: usize) -> Self {
        let packets = packets.max(1);
        Self {
            buffer: vec![0; packets.saturating_mul(PIECE)],
            arrived: vec![Arrived::default(); packets],
            count: 0,
            receiving: Receiving::new(packets),
        }
    }

    /// The packets received last, in their order.
    pub fn packets(&mut self) -> impl Iterator<Item = TunnelPacket<'_>> {
        let arrived = self.arrived.iter().take(self.count);
        self.buffer.chunks_exact_mut(PIECE).zip(arrived).map(|(piece, arrived)| TunnelPacket {
            interface: arrived.interface,
            bytes: piece.get_mut(..arrived.len).unwrap_or_default(),
        })
    }
}

/// A packet of a tunnel protocol, for this host, whole.
#[derive(Debug, PartialEq, Eq)]
pub struct TunnelPacket<'a> {
    /// Index of the interface it came in by.
    pub interface: u32,
    /// The packet from its outer header on.
    pub bytes: &'a mut [u8],
}

impl<'a> TunnelPacket<'a> {
    /// Takes it out of the tunnel, without a copy. Whether that tunnel is one to take packets from is for the
    /// caller to judge, by the outer header.
    ///
    /// # Errors
    /// Those of [`careof_wire::tunnel::decapsulate`]: the packet is counted and dropped.
    pub fn decapsulate(self) -> Result<Decapsulated<'a>, careof_wire::Error> {
        decapsulate_in_place(self.bytes)
    }
}

impl TunnelSocket {
    /// Receives as many packets as there are and the batch has room for; returns their number, 0 when there is
    /// none.
    ///
    /// # Errors
    /// [`Error::System`] naming `recvmmsg`. An error about a packet sent is none here: it waits in the queue
    /// of [`next_error`](Self::next_error).
    pub fn receive_batch(&self, batch: &mut ReceiveBatch) -> Result<usize, Error> {
        batch.count = 0;
        for _ in 0..ATTEMPTS {
            let ReceiveBatch { buffer, arrived, count, receiving } = &mut *batch;
            match receiving.receive(&self.receiver, buffer, PIECE, arrived) {
                Ok(received) => {
                    *count = received;
                    return Ok(received);
                }
                Err(Errno::EAGAIN) => return Ok(0),
                Err(errno @ (Errno::EBADF | Errno::EFAULT | Errno::ENOMEM | Errno::ENOTSOCK)) => {
                    return Err(self.receiver.failed("recvmmsg", errno));
                }
                // Interrupted, or what the network said to a packet sent: told once, here or to a sender.
                Err(_) => {}
            }
        }
        // Who floods this host with errors must not end it. What has come in stays, and the socket readable.
        Ok(0)
    }
}
