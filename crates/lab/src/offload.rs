//! A TUN device with the offloads that a network card has: the host hands over many segments of a connection at
//! once, and takes them so.
//!
//! With a packet a system call a TUN device carries about 1.5 Gbit/s; with super-packets most of the cost a packet
//! is gone. They are cut into datagrams ([`Frame`]) on the way into a tunnel and put together again on the way
//! out of it.

pub(crate) mod checksum;
mod coalescer;
mod frame;
mod ipv6;
mod layout;
#[cfg(test)]
mod tests;
mod vnet_header;

use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::errno::Errno;

use crate::error::Error;
use crate::socket::Socket;
use crate::tun::Tun;
use coalescer::Coalescer;
pub use frame::Frame;
pub use ipv6::with_left_checksum;
use layout::LeftChecksum;

/// The MTU of an interface that does not tell it.
const FALLBACK_MTU: usize = 1500;

/// A TUN interface whose host leaves checksums and segmentation to the device.
///
/// Where the kernel offers less, it works with less: see [`offloads`](Self::offloads).
#[derive(Debug)]
pub struct OffloadTun {
    tun: Tun,
    offloads: Offloads,
    coalescer: Coalescer,
    counters: TunCounters,
    /// To ask for the interface's MTU by, and what it was last.
    network: Socket,
    mtu: usize,
    /// Where datagrams are finished for a device that cannot be told what is left to do.
    finishing: Option<Box<Frame>>,
}

/// What a device takes from its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads {
    /// Super-packets can be written, and packets come with a header that says what is left to do.
    pub vnet_header: bool,
    /// Checksums are left to the device, and segments of TCP come as super-packets.
    pub tcp: bool,
    /// Datagrams of UDP sent in one call (`UDP_SEGMENT`) come as super-packets.
    pub udp: bool,
}

/// What went through a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunCounters {
    /// Frames read, a super-packet being one.
    pub frames_received: u64,
    /// Frames dropped because their header made no sense.
    pub malformed_frames: u64,
    /// Reads that failed although the interface is there.
    pub failed_reads: u64,
    /// Datagrams given to be written.
    pub datagrams_sent: u64,
    /// Frames written, a super-packet being one.
    pub frames_sent: u64,
    /// Super-packets among them.
    pub super_packets_sent: u64,
    /// Frames that the host did not take: the interface is down, or they are no IP packets.
    pub refused: u64,
}

impl OffloadTun {
    /// Makes the interface `name` in the network namespace of the calling thread. It is down and has no address.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub fn open(name: &str) -> Result<Self, Error> {
        let (tun, offloads) = match Tun::open_with(name, libc::IFF_VNET_HDR) {
            Ok(tun) => {
                let offloads = Offloads { vnet_header: true, ..negotiate(&tun) };
                (tun, offloads)
            }
            // A kernel that does not know the header says so; every other answer is about the interface.
            Err(Error::System { errno: Errno::EINVAL, .. }) => (Tun::open(name)?, Offloads::default()),
            Err(error) => return Err(error),
        };
        Self::over(tun, offloads)
    }

    /// The same without offloads: the host cuts its segments before it hands them over, and packets come in one by one.
    ///
    /// # Errors
    /// Those of [`Tun::open`].
    pub fn open_plain(name: &str) -> Result<Self, Error> {
        Self::over(Tun::open(name)?, Offloads::default())
    }

    fn over(tun: Tun, offloads: Offloads) -> Result<Self, Error> {
        let network = Socket::open("find an interface's MTU", libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let (coalescer, counters) = (Coalescer::new(), TunCounters::default());
        Ok(Self { tun, offloads, coalescer, counters, network, mtu: 0, finishing: None })
    }

    /// The device itself.
    #[must_use]
    pub const fn tun(&self) -> &Tun {
        &self.tun
    }

    /// What it takes from its host.
    #[must_use]
    pub const fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// What went through it so far.
    #[must_use]
    pub const fn counters(&self) -> TunCounters {
        TunCounters { super_packets_sent: self.coalescer.super_packets, ..self.counters }
    }

    /// Reads what the host sends next into `frame`; `false` when there is nothing. What was in the frame is gone.
    /// A frame that makes no sense is counted and passed over; a read that fails is counted and is `false`, too: what
    /// comes afterwards makes the device readable again.
    ///
    /// # Errors
    /// [`Error::System`] naming `read`: the interface is gone (`EBADFD`).
    pub fn receive(&mut self, frame: &mut Frame) -> Result<bool, Error> {
        loop {
            match self.tun.file().read(frame.room()) {
                Ok(len) => {
                    self.counters.frames_received += 1;
                    match frame.load(len, self.offloads.vnet_header) {
                        Ok(()) => return Ok(true),
                        Err(_) => self.counters.malformed_frames += 1,
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.raw_os_error() == Some(libc::EBADFD) => {
                    return Err(self.failed("read", &error));
                }
                Err(_) => {
                    self.counters.failed_reads += 1;
                    return Ok(false);
                }
            }
        }
    }

    /// Hands the host a datagram, as if it came in by the interface. It may be held back for the next ones of its
    /// flow until [`flush`](Self::flush), which is to be called after each burst.
    ///
    /// A raw socket may hand over segments that the kernel has put together already, or whose checksums were left
    /// to a network card that they never came by. They are taken as that.
    ///
    /// # Errors
    /// [`Error::System`] naming `write`: the interface is gone. A datagram that the host does not take, since the
    /// interface is down or it is no IP packet, is counted.
    pub fn send(&mut self, datagram: &[u8]) -> Result<(), Error> {
        self.counters.datagrams_sent += 1;
        let mut outcome = Outcome::default();
        if let Some(left) = LeftChecksum::of(datagram) {
            self.send_left(datagram, left, &mut outcome);
        } else if self.offloads.vnet_header {
            let tun = &self.tun;
            self.coalescer.push(datagram, |vnet, packet| outcome.note(write(tun, &[vnet, packet])));
        } else {
            outcome.note(write(&self.tun, &[datagram]));
        }
        self.settle(outcome)
    }

    /// Hands on a datagram of which something is left to do.
    fn send_left(&mut self, datagram: &[u8], left: LeftChecksum, outcome: &mut Outcome) {
        if datagram.len() > self.mtu {
            // It may have been changed since, which is seldom; but so is a datagram longer than that.
            self.mtu = self.network.mtu_of(self.tun.name()).map_or(FALLBACK_MTU, usize::from);
        }
        let vnet = left.vnet_header(datagram.len(), self.mtu);
        let tun = &self.tun;
        if self.offloads.vnet_header {
            self.coalescer.flush_flow(datagram, |vnet, packet| outcome.note(write(tun, &[vnet, packet])));
            outcome.note(write(tun, &[&vnet.bytes(), datagram]));
            return;
        }
        let frame = self.finishing.get_or_insert_default();
        // A frame has room for any datagram; one that makes no sense is not carried.
        let mut place = [0; FALLBACK_MTU];
        if frame.hold(&vnet, datagram).is_err() {
            outcome.refused += 1;
        }
        while let Some(len) = frame.next_len() {
            if let Some(place) = place.get_mut(..len) {
                frame.take(place);
                outcome.note(write(tun, &[place]));
            } else {
                // Longer than any MTU but not to be cut.
                outcome.note(write(tun, &[&frame.first_datagram()]));
                frame.discard();
            }
        }
    }

    /// Hands the host what is held back.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn flush(&mut self) -> Result<(), Error> {
        let mut outcome = Outcome::default();
        let tun = &self.tun;
        self.coalescer.flush(|vnet, packet| outcome.note(write(tun, &[vnet, packet])));
        self.settle(outcome)
    }

    fn settle(&mut self, outcome: Outcome) -> Result<(), Error> {
        self.counters.frames_sent += outcome.written;
        self.counters.refused += outcome.refused;
        outcome.failure.map_or(Ok(()), |error| Err(self.failed("write", &error)))
    }

    fn failed(&self, call: &'static str, error: &io::Error) -> Error {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Error::system(format!("carry packets by the interface {:?}", self.tun.name()), call, errno)
    }
}

impl AsFd for OffloadTun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}

/// What became of the frames that one call wrote.
#[derive(Default)]
struct Outcome {
    written: u64,
    refused: u64,
    failure: Option<io::Error>,
}

impl Outcome {
    fn note(&mut self, result: io::Result<()>) {
        match result {
            Ok(()) => self.written += 1,
            Err(error) if error.raw_os_error() == Some(libc::EBADFD) => self.failure = Some(error),
            Err(_) => self.refused += 1,
        }
    }
}

fn write<const PARTS: usize>(tun: &Tun, parts: &[&[u8]; PARTS]) -> io::Result<()> {
    tun.file().write_vectored(&parts.map(IoSlice::new)).map(drop)
}

/// Declares `ioctl(TUNSETOFFLOAD)`, whose argument is the flags themselves.
mod declaration {
    nix::ioctl_write_int_bad!(set_offloads, nix::request_code_write!(b'T', 208, size_of::<libc::c_uint>()));
}

/// Asks for as much as the kernel offers.
fn negotiate(tun: &Tun) -> Offloads {
    const CHECKSUM: libc::c_int = 0x01;
    const TCP_OVER_IPV4: libc::c_int = 0x02;
    const TCP_WITH_ECN: libc::c_int = 0x08;
    /// Over IPv4 and IPv6, which the kernel gives only together.
    const UDP: libc::c_int = 0x20 | 0x40;
    let tcp = CHECKSUM | TCP_OVER_IPV4 | TCP_WITH_ECN;
    for (flags, offloads) in [
        (tcp | UDP, Offloads { tcp: true, udp: true, ..Offloads::default() }),
        (tcp, Offloads { tcp: true, ..Offloads::default() }),
    ] {
        // SAFETY: the descriptor is that of a TUN device, and the argument is a number.
        #[expect(unsafe_code, reason = "the standard library has no ioctl")]
        if unsafe { declaration::set_offloads(tun.as_fd().as_raw_fd(), flags) }.is_ok() {
            return offloads;
        }
    }
    Offloads::default()
}
