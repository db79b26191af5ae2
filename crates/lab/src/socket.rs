//! Sockets of the families and protocols for which the standard library has no type.
//!
//! Names and control messages are made and read as bytes in [`name`] and [`control`]; what is left here is the
//! system calls themselves.

mod control;
mod name;

use std::io::IoSlice;
use std::net::{Ipv6Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use nix::errno::Errno;

pub(crate) use control::{Control, PacketInfo, PacketInfoV6, encode};
pub(crate) use name::{LinkName, NAME_LEN, NAME_V6_LEN, from_ipv4, from_ipv6, to_ipv4, to_ipv6};

use crate::error::Error;

/// A socket that never blocks and is not inherited by other programs.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    /// What it is for, to follow "cannot" in an error.
    doing: &'static str,
}

/// What one `recvmsg` gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedMessage {
    /// Bytes of the message in the buffer.
    pub(crate) len: usize,
    /// Where it came from; for a message of the error queue, where the quoted packet was sent.
    pub(crate) name: Option<SocketAddrV4>,
    /// Bytes of control messages.
    pub(crate) control_len: usize,
}

/// Has the kernel's `program` decide what comes in at a socket.
pub(crate) fn attach_filter(socket: BorrowedFd<'_>, program: &mut [libc::sock_filter]) -> Result<(), Errno> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).unwrap_or(u16::MAX),
        filter: program.as_mut_ptr(),
    };
    let len = size_of::<libc::sock_fprog>() as libc::socklen_t;
    // SAFETY: the program's pointer and length are those of one slice, which the kernel reads and copies.
    #[expect(unsafe_code, reason = "the option is a pointer to a pointer")]
    let done = unsafe {
        let pointer = (&raw const program).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, pointer, len)
    };
    Errno::result(done).map(drop)
}

impl Socket {
    pub(crate) fn open(
        doing: &'static str,
        family: libc::c_int,
        kind: libc::c_int,
        protocol: libc::c_int,
    ) -> Result<Self, Error> {
        let flags = kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: takes three numbers; a descriptor that is not negative is new and nobody else's.
        #[expect(unsafe_code, reason = "nix knows no raw socket of protocol 4, 47 or 55")]
        let fd = unsafe {
            match libc::socket(family, flags, protocol) {
                -1 => return Err(Error::system(doing, "socket", Errno::last())),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        Ok(Self { fd, doing })
    }

    /// The error of `call` on this socket.
    pub(crate) fn failed(&self, call: &'static str, errno: Errno) -> Error {
        Error::system(self.doing, call, errno)
    }

    pub(crate) fn set(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        call: &'static str,
        value: &[u8],
    ) -> Result<(), Error> {
        // SAFETY: the pointer and the length are those of one slice, which the kernel reads.
        #[expect(unsafe_code, reason = "options that nix has no type for")]
        let done = unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                level,
                option,
                value.as_ptr().cast(),
                value.len() as libc::socklen_t,
            )
        };
        Errno::result(done).map(drop).map_err(|errno| self.failed(call, errno))
    }

    pub(crate) fn set_number(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        call: &'static str,
        value: libc::c_int,
    ) -> Result<(), Error> {
        self.set(level, option, call, &value.to_ne_bytes())
    }

    /// Reads an option into `value`; returns the bytes there are.
    pub(crate) fn get(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        call: &'static str,
        value: &mut [u8],
    ) -> Result<usize, Error> {
        let mut len = value.len() as libc::socklen_t;
        // SAFETY: the pointer and the length are those of one slice, which the kernel writes at most.
        #[expect(unsafe_code, reason = "options that nix has no type for")]
        let done = unsafe {
            libc::getsockopt(self.fd.as_raw_fd(), level, option, value.as_mut_ptr().cast(), &raw mut len)
        };
        Errno::result(done).map_err(|errno| self.failed(call, errno))?;
        Ok((len as usize).min(value.len()))
    }

    pub(crate) fn get_number(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        call: &'static str,
    ) -> Result<libc::c_int, Error> {
        let mut value = [0; size_of::<libc::c_int>()];
        self.get(level, option, call, &mut value)?;
        Ok(libc::c_int::from_ne_bytes(value))
    }

    pub(crate) fn bind(&self, to: SocketAddrV4) -> Result<(), Error> {
        self.bind_to(&from_ipv4(to))
    }

    /// Binds it to the bytes of a socket address.
    pub(crate) fn bind_to(&self, name: &[u8]) -> Result<(), Error> {
        // SAFETY: the pointer and the length are those of one array, which the kernel reads.
        #[expect(unsafe_code, reason = "the descriptor is not one of the standard library's types")]
        let done =
            unsafe { libc::bind(self.fd.as_raw_fd(), name.as_ptr().cast(), name.len() as libc::socklen_t) };
        Errno::result(done).map(drop).map_err(|errno| self.failed("bind", errno))
    }

    /// Has nothing come in.
    pub(crate) fn hear_nothing(&self) -> Result<(), Error> {
        let drop_all = (libc::BPF_RET | libc::BPF_K) as u16;
        self.attach_filter(&mut [libc::sock_filter { code: drop_all, jt: 0, jf: 0, k: 0 }])
    }

    /// Has the kernel's `program` decide what comes in.
    pub(crate) fn attach_filter(&self, program: &mut [libc::sock_filter]) -> Result<(), Error> {
        let attached = attach_filter(self.fd.as_fd(), program);
        attached.map_err(|errno| self.failed("setsockopt(SO_ATTACH_FILTER)", errno))
    }

    pub(crate) fn connect(&self, to: SocketAddrV4) -> Result<(), Error> {
        self.connect_to(&from_ipv4(to))
    }

    /// Undoes [`connect`](Self::connect).
    pub(crate) fn disconnect(&self) -> Result<(), Error> {
        // A name of no family is how that is asked for.
        self.connect_to(&[0; NAME_LEN])
    }

    fn connect_to(&self, name: &[u8; NAME_LEN]) -> Result<(), Error> {
        // SAFETY: the pointer and the length are those of one array, which the kernel reads.
        #[expect(unsafe_code, reason = "the descriptor is not one of the standard library's types")]
        let done = unsafe {
            libc::connect(self.fd.as_raw_fd(), name.as_ptr().cast(), name.len() as libc::socklen_t)
        };
        Errno::result(done).map(drop).map_err(|errno| self.failed("connect", errno))
    }

    /// The port it is bound to.
    pub(crate) fn local_port(&self) -> Result<u16, Error> {
        let mut name = [0_u8; NAME_LEN];
        let mut len = name.len() as libc::socklen_t;
        // SAFETY: the pointer and the length are those of one array, which the kernel writes at most.
        #[expect(unsafe_code, reason = "the descriptor is not one of the standard library's types")]
        let done = unsafe { libc::getsockname(self.fd.as_raw_fd(), name.as_mut_ptr().cast(), &raw mut len) };
        Errno::result(done).map_err(|errno| self.failed("getsockname", errno))?;
        Ok(to_ipv4(&name, len as usize).map_or(0, |address| address.port()))
    }

    /// The MTU of an interface of this socket's network namespace.
    pub(crate) fn mtu_of(&self, interface: &str) -> Option<u16> {
        // SAFETY: `ifreq` is numbers and unions of numbers; all zeros is one of its values.
        #[expect(unsafe_code, reason = "an all-zero ifreq, unused parts of the union included")]
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays the zero that ends the name.
        for (place, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(interface.bytes()) {
            *place = libc::c_char::from_ne_bytes([byte]);
        }
        // SAFETY: the descriptor is open and `request` is what this ioctl reads and writes; it puts a number there.
        #[expect(unsafe_code, reason = "the standard library has no ioctl")]
        let mtu = unsafe {
            declaration::interface_mtu(self.fd.as_raw_fd(), &raw mut request).ok()?;
            request.ifr_ifru.ifru_mtu
        };
        u16::try_from(mtu).ok()
    }

    /// Makes a receive buffer as large as this user may, up to `bytes`.
    pub(crate) fn grow_receive_buffer(&self, bytes: libc::c_int) -> Result<(), Error> {
        let call = "setsockopt(SO_RCVBUF)";
        self.set_number(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, call, bytes)
            .or_else(|_| self.set_number(libc::SOL_SOCKET, libc::SO_RCVBUF, call, bytes))
    }

    /// Makes a send buffer as large as this user may, up to `bytes`.
    pub(crate) fn grow_send_buffer(&self, bytes: libc::c_int) -> Result<(), Error> {
        let call = "setsockopt(SO_SNDBUF)";
        self.set_number(libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, call, bytes)
            .or_else(|_| self.set_number(libc::SOL_SOCKET, libc::SO_SNDBUF, call, bytes))
    }

    /// Has every message come with the interface it came in by and the address it was sent to.
    pub(crate) fn ask_for_packet_info(&self) -> Result<(), Error> {
        self.set_number(libc::IPPROTO_IP, libc::IP_PKTINFO, "setsockopt(IP_PKTINFO)", 1)
    }

    /// The same of IPv6, and the hop limit of every message.
    pub(crate) fn ask_for_packet_info_v6(&self) -> Result<(), Error> {
        let level = libc::IPPROTO_IPV6;
        self.set_number(level, libc::IPV6_RECVPKTINFO, "setsockopt(IPV6_RECVPKTINFO)", 1)?;
        self.set_number(level, libc::IPV6_RECVHOPLIMIT, "setsockopt(IPV6_RECVHOPLIMIT)", 1)
    }

    /// Joins or leaves a group of IPv6; to have joined before is no error, nor is to have left.
    pub(crate) fn set_membership_v6(
        &self,
        group: Ipv6Addr,
        interface: u32,
        joined: bool,
    ) -> Result<(), Error> {
        let mut request = [0; 20];
        request[..16].copy_from_slice(&group.octets());
        request[16..].copy_from_slice(&interface.to_ne_bytes());
        let (option, call, already) = if joined {
            (libc::IPV6_ADD_MEMBERSHIP, "setsockopt(IPV6_ADD_MEMBERSHIP)", Errno::EADDRINUSE)
        } else {
            (libc::IPV6_DROP_MEMBERSHIP, "setsockopt(IPV6_DROP_MEMBERSHIP)", Errno::EADDRNOTAVAIL)
        };
        match self.set(libc::IPPROTO_IPV6, option, call, &request) {
            Err(Error::System { errno, .. }) if errno == already => Ok(()),
            other => other,
        }
    }

    /// Joins or leaves a group; to have joined before is no error, nor is to have left.
    pub(crate) fn set_membership(
        &self,
        group: std::net::Ipv4Addr,
        interface: u32,
        joined: bool,
    ) -> Result<(), Error> {
        let mut request = [0; 12];
        request[..4].copy_from_slice(&group.octets());
        request[8..].copy_from_slice(&interface.to_ne_bytes());
        let (option, call, already) = if joined {
            (libc::IP_ADD_MEMBERSHIP, "setsockopt(IP_ADD_MEMBERSHIP)", Errno::EADDRINUSE)
        } else {
            (libc::IP_DROP_MEMBERSHIP, "setsockopt(IP_DROP_MEMBERSHIP)", Errno::EADDRNOTAVAIL)
        };
        match self.set(libc::IPPROTO_IP, option, call, &request) {
            Err(Error::System { errno, .. }) if errno == already => Ok(()),
            other => other,
        }
    }

    /// Receives one message. `control` is filled from its start.
    ///
    /// # Errors
    /// The kernel's answer, `EAGAIN` when there is none.
    pub(crate) fn receive(
        &self,
        buffer: &mut [u8],
        control: &mut Control,
        flags: libc::c_int,
    ) -> Result<ReceivedMessage, Errno> {
        let mut name = [0_u8; NAME_LEN];
        let (len, name_len, control_len) = self.receive_named(buffer, control, flags, &mut name)?;
        Ok(ReceivedMessage { len, name: to_ipv4(&name, name_len), control_len })
    }

    /// Receives one message, and puts the name of its sender into `name`. Returns the bytes of the message, the name and the
    /// control messages.
    ///
    /// # Errors
    /// The kernel's answer, `EAGAIN` when there is none.
    pub(crate) fn receive_named(
        &self,
        buffer: &mut [u8],
        control: &mut Control,
        flags: libc::c_int,
        name: &mut [u8],
    ) -> Result<(usize, usize, usize), Errno> {
        let control = control.bytes_mut();
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut message = empty_message();
        message.msg_name = name.as_mut_ptr().cast();
        message.msg_namelen = name.len() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = control.len();
        // SAFETY: each pointer goes with the length of what it points to, and all of it outlives the call.
        #[expect(unsafe_code, reason = "recvmsg fills what the header points to")]
        let len = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, flags | libc::MSG_DONTWAIT) };
        let len = usize::try_from(Errno::result(len)?).unwrap_or(0).min(buffer.len());
        Ok((len, message.msg_namelen as usize, message.msg_controllen.min(control.len())))
    }

    /// Sends one message to `name` (the bytes of a socket address).
    ///
    /// # Errors
    /// The kernel's answer.
    pub(crate) fn send(&self, name: &[u8], control: &[u8], parts: &[IoSlice<'_>]) -> Result<(), Errno> {
        let mut message = empty_message();
        message.msg_name = name.as_ptr().cast_mut().cast();
        message.msg_namelen = name.len() as libc::socklen_t;
        // An IoSlice is an iovec, which the standard library promises.
        message.msg_iov = parts.as_ptr().cast_mut().cast();
        message.msg_iovlen = parts.len();
        message.msg_control = control.as_ptr().cast_mut().cast();
        message.msg_controllen = control.len();
        // SAFETY: each pointer goes with the length of what it points to; sendmsg only reads it.
        #[expect(unsafe_code, reason = "sendmsg reads what the header points to")]
        let sent = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        Errno::result(sent).map(drop)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Declares `ioctl(SIOCGIFMTU)`.
mod declaration {
    nix::ioctl_read_bad!(interface_mtu, libc::SIOCGIFMTU, libc::ifreq);
}

/// A message header that points to nothing.
pub(crate) fn empty_message() -> libc::msghdr {
    // SAFETY: `msghdr` is numbers and pointers; zeros and null pointers are values of theirs.
    #[expect(unsafe_code, reason = "its padding has no names on some systems")]
    unsafe {
        std::mem::zeroed()
    }
}
