//! TUN devices: network interfaces whose other side is a file descriptor of ours.
//!
//! Of the crates for this, those with a license and a tree that would do bring address management or another
//! platform's system calls along; on Linux it is one `ioctl`, declared here with `nix`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use nix::errno::Errno;

use crate::error::Error;

const DEVICE: &str = "/dev/net/tun";

/// A TUN interface (IP packets, no extra header). Dropping it and its [clones](Tun::try_clone) removes the interface.
///
/// It belongs to the network namespace of the thread that opened it, and may be read and written by any.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// Makes the interface `name` in the network namespace of the calling thread. It is down and has no
    /// address; [`Host::attach`](crate::Host::attach) does the rest.
    ///
    /// # Errors
    /// [`Error::InterfaceName`], [`Error::NoTunDevice`], [`Error::TunDeviceMode`], or [`Error::System`] naming
    /// `ioctl(TUNSETIFF)`: `EBUSY` when the name is taken, `EPERM` without `CAP_NET_ADMIN`.
    pub fn open(name: &str) -> Result<Self, Error> {
        Self::open_with(name, 0)
    }

    /// Makes the interface with further flags of `TUNSETIFF`.
    pub(crate) fn open_with(name: &str, flags: libc::c_int) -> Result<Self, Error> {
        let mut request = request(name, flags)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .map_err(|error| cannot_open(name, &error))?;
        // SAFETY: the descriptor is open and `request` is the `struct ifreq` this `ioctl` reads and writes.
        #[expect(unsafe_code, reason = "the one call that makes a TUN interface")]
        let made = unsafe { request_interface(file.as_raw_fd(), &raw mut request) };
        made.map_err(|errno| {
            Error::system(format!("make the interface {name:?}"), "ioctl(TUNSETIFF)", errno)
        })?;
        Ok(Self { file, name: name.to_owned() })
    }

    pub(crate) const fn file(&self) -> &File {
        &self.file
    }

    /// The interface's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A second handle, as for whoever takes the carrier away while an emulator has the first. The interface is
    /// removed when the last is dropped.
    ///
    /// # Errors
    /// [`Error::System`] naming `fcntl`, when the process may not open more descriptors.
    pub fn try_clone(&self) -> Result<Self, Error> {
        let file = self.file.try_clone().map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            Error::system(format!("open the interface {:?} once more", self.name), "fcntl", errno)
        })?;
        Ok(Self { file, name: self.name.clone() })
    }

    /// Takes the interface's carrier away or gives it back: what a host sees when its cable is pulled, or its radio
    /// link breaks. Addresses stay, and the interface stays up. A new interface has its carrier.
    ///
    /// Who asks sees it at once. The kernel drops what the host sends, and reports the loss, within 0.1 ms only after
    /// a second in which no carrier was lost on the machine; otherwise up to 1 s later (see
    /// [`NetworkChange::Link`](crate::NetworkChange::Link)). Whoever emulates the link drops packets itself.
    ///
    /// # Errors
    /// [`Error::System`] naming `ioctl(TUNSETCARRIER)`: `EBADFD` when the interface is gone, `EINVAL` before
    /// Linux 5.0.
    pub fn set_carrier(&self, has_carrier: bool) -> Result<(), Error> {
        let value = libc::c_int::from(has_carrier);
        // SAFETY: the descriptor is open and the call reads one `int`, which outlives it.
        #[expect(unsafe_code, reason = "the one call that switches a TUN interface's carrier")]
        let done = unsafe { set_carrier(self.file.as_raw_fd(), &raw const value) };
        done.map(drop).map_err(|errno| {
            let word = if has_carrier { "give the interface" } else { "take from the interface" };
            Error::system(format!("{word} {:?} its carrier", self.name), "ioctl(TUNSETCARRIER)", errno)
        })
    }

    /// Takes the next packet that the host sent through the interface into `buffer`; returns its length.
    ///
    /// # Errors
    /// `WouldBlock` when there is none; anything else means that the interface is gone.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.file).read(buffer)
    }

    /// Hands the host a packet, as if it came in by the interface.
    ///
    /// # Errors
    /// `EIO` while the interface is down, `EINVAL` for what is no IP packet.
    #[inline]
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Declares `ioctl(TUNSETIFF)`, which reads and writes a `struct ifreq` whatever its encoded size says, and
/// `ioctl(TUNSETCARRIER)`, which reads an `int`.
mod declaration {
    nix::ioctl_readwrite_bad!(
        request_interface,
        nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
        libc::ifreq
    );
    nix::ioctl_write_ptr_bad!(
        set_carrier,
        nix::request_code_write!(b'T', 226, size_of::<libc::c_int>()),
        libc::c_int
    );
}
use declaration::{request_interface, set_carrier};

fn request(name: &str, flags: libc::c_int) -> Result<libc::ifreq, Error> {
    // SAFETY: `ifreq` is numbers and unions of numbers; all zeros is one of its values.
    #[expect(unsafe_code, reason = "an all-zero ifreq, unused parts of the union included")]
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let valid = (1..libc::IFNAMSIZ).contains(&name.len())
        && name != "."
        && name != ".."
        && !name.bytes().any(|byte| {
            byte == 0 || byte == b'/' || byte == b':' || byte == b'%' || byte.is_ascii_whitespace()
        });
    if !valid {
        return Err(Error::InterfaceName { name: name.to_owned() });
    }
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | flags) as libc::c_short;
    Ok(request)
}

fn cannot_open(interface: &str, error: &io::Error) -> Error {
    let interface = interface.to_owned();
    match error.raw_os_error().map_or(Errno::EIO, Errno::from_raw) {
        errno @ (Errno::ENOENT | Errno::ENODEV | Errno::ENXIO | Errno::ENOTDIR | Errno::EPERM) => {
            Error::NoTunDevice { interface, errno }
        }
        Errno::EACCES => {
            let mode = fs::metadata(DEVICE).map_or(0, |device| device.permissions().mode() & 0o7777);
            Error::TunDeviceMode { interface, mode }
        }
        errno => Error::system(format!("make the interface {interface:?}"), "open(/dev/net/tun)", errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_name_is_refused_before_the_kernel_is_asked() {
        for name in ["", ".", "..", "a/b", "a b", "tun%d", "sixteen-bytes-xx"] {
            assert_eq!(Tun::open(name).unwrap_err(), Error::InterfaceName { name: name.to_owned() });
        }
    }

    #[test]
    fn a_missing_device_and_a_forbidden_one_are_told_apart() {
        let missing = cannot_open("up0", &io::Error::from_raw_os_error(libc::ENOENT));
        assert!(matches!(missing, Error::NoTunDevice { errno: Errno::ENOENT, .. }));
        assert!(missing.remedy().is_some_and(|remedy| remedy.contains("mknod")));
        let forbidden = cannot_open("up0", &io::Error::from_raw_os_error(libc::EACCES));
        assert!(matches!(forbidden, Error::TunDeviceMode { .. }));
    }
}
