//! `recvmmsg` and `sendmmsg`: headers, vectors and names made once, and pointed at the packets for each call.

use std::net::SocketAddrV4;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;

use crate::socket::{Control, NAME_LEN, PacketInfo, empty_message, encode, from_ipv4};

const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
const EMPTY: libc::mmsghdr = libc::mmsghdr {
    msg_hdr: libc::msghdr {
        msg_name: std::ptr::null_mut(),
        msg_namelen: 0,
        msg_iov: std::ptr::null_mut(),
        msg_iovlen: 0,
        msg_control: std::ptr::null_mut(),
        msg_controllen: 0,
        msg_flags: 0,
    },
    msg_len: 0,
};

/// What the system calls are given. Between calls its pointers point nowhere that matters.
struct Headers {
    messages: Box<[libc::mmsghdr]>,
    parts: Box<[libc::iovec]>,
}

// SAFETY: the pointers are set before each call, in the thread that makes it, and not used after it.
#[expect(unsafe_code, reason = "raw pointers are not Send, whatever is done with them")]
unsafe impl Send for Headers {}

impl Headers {
    fn new(packets: usize) -> Self {
        Self { messages: vec![EMPTY; packets].into(), parts: vec![NOTHING; packets].into() }
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Headers({})", self.messages.len())
    }
}

/// `recvmmsg` into equal pieces of one buffer.
#[derive(Debug)]
pub(super) struct Receiving {
    headers: Headers,
    controls: Box<[Control]>,
}

/// What came in at one place of a receive batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    /// Bytes of the packet.
    pub(super) len: usize,
    /// Index of the interface.
    pub(super) interface: u32,
}

impl Receiving {
    pub(super) fn new(packets: usize) -> Self {
        Self { headers: Headers::new(packets), controls: vec![Control::new(); packets].into() }
    }

    /// Receives as many packets as there are, each into a piece of `size` bytes of `buffer`, and notes each in
    /// `arrived`. Returns their number.
    pub(super) fn receive(
        &mut self,
        socket: &impl AsFd,
        buffer: &mut [u8],
        size: usize,
        arrived: &mut [Arrived],
    ) -> Result<usize, Errno> {
        let headers = &mut self.headers;
        let pieces = buffer.chunks_exact_mut(size);
        let count = pieces.len().min(headers.messages.len()).min(arrived.len());
        let places = headers.messages.iter_mut().zip(&mut headers.parts).zip(&mut self.controls);
        for (((message, part), control), piece) in places.zip(pieces) {
            *part = libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: piece.len() };
            let control = control.bytes_mut();
            let header = &mut message.msg_hdr;
            *header = empty_message();
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = control.len();
        }
        // SAFETY: the first `count` headers have just been pointed at `count` pieces, vectors and control
        // buffers, with their lengths; all of them outlive the call.
        #[expect(unsafe_code, reason = "recvmmsg fills what the headers point to")]
        let received = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                headers.messages.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        let received = usize::try_from(Errno::result(received)?).unwrap_or(0).min(count);
        let places = headers.messages.iter().zip(&self.controls).take(received);
        for ((message, control), arrived) in places.zip(arrived) {
            let info = control.read(message.msg_hdr.msg_controllen).packet_info();
            *arrived = Arrived {
                len: (message.msg_len as usize).min(size),
                interface: info.map_or(0, |info| info.interface),
            };
        }
        Ok(received)
    }
}

/// A packet to be sent: where, with what control message, and its bytes.
pub(super) struct Departing<'a> {
    pub(super) to: SocketAddrV4,
    pub(super) info: PacketInfo,
    pub(super) bytes: &'a [u8],
}

/// `sendmmsg`.
#[derive(Debug)]
pub(super) struct Sending {
    headers: Headers,
    names: Box<[[u8; NAME_LEN]]>,
    controls: Box<[[u8; encode::PACKET_INFO_LEN]]>,
}

impl Sending {
    pub(super) fn new(packets: usize) -> Self {
        Self {
            headers: Headers::new(packets),
            names: vec![[0; NAME_LEN]; packets].into(),
            controls: vec![[0; encode::PACKET_INFO_LEN]; packets].into(),
        }
    }

    /// Sends packets in their order until one fails; returns how many were sent.
    ///
    /// # Errors
    /// What the kernel says to the first of them.
    pub(super) fn send<'a>(
        &mut self,
        socket: &impl AsFd,
        packets: impl Iterator<Item = Departing<'a>>,
    ) -> Result<usize, Errno> {
        let headers = &mut self.headers;
        let places = headers.messages.iter_mut().zip(&mut headers.parts);
        let places = places.zip(&mut self.names).zip(&mut self.controls);
        let mut count = 0;
        for ((((message, part), name), control), packet) in places.zip(packets) {
            *name = from_ipv4(packet.to);
            *control = encode::packet_info(packet.info);
            // The kernel only reads it.
            *part = libc::iovec {
                iov_base: packet.bytes.as_ptr().cast_mut().cast(),
                iov_len: packet.bytes.len(),
            };
            let header = &mut message.msg_hdr;
            *header = empty_message();
            header.msg_name = name.as_mut_ptr().cast();
            header.msg_namelen = name.len() as libc::socklen_t;
            header.msg_iov = part;
            header.msg_iovlen = 1;
            header.msg_control = control.as_mut_ptr().cast();
            header.msg_controllen = control.len();
            count += 1;
        }
        // SAFETY: the first `count` headers have just been pointed at as many names, vectors, control messages
        // and packets, with their lengths; the packets are borrowed for `'a`, the rest lives in `self`.
        #[expect(unsafe_code, reason = "sendmmsg reads what the headers point to")]
        let sent = unsafe {
            libc::sendmmsg(
                socket.as_fd().as_raw_fd(),
                headers.messages.as_mut_ptr(),
                count,
                libc::MSG_NOSIGNAL as _,
            )
        };
        Ok(usize::try_from(Errno::result(sent)?).unwrap_or(0))
    }
}
