//! Multipath TCP of the kernel (RFC 8684): its sockets, and the path manager that opens and closes their subflows.
//!
//! The path manager is told by generic netlink (`linux/mptcp_pm.h`) from which addresses connections of a network namespace may have
//! subflows. Telling it of an address lets every connection open one from there; taking the address back closes it and tells the
//! peer.

use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use netlink_packet_core::{DefaultNla, Emitable as _, NLA_F_NESTED};
use nix::errno::Errno;

use crate::error::Error;
use crate::netlink::{Effect, GenericNetlink, IpVersion};
use crate::sysctl::sysctl;

const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;

/// Commands of the family.
mod command {
    pub(super) const ADD_ADDRESS: u8 = 1;
    pub(super) const REMOVE_ADDRESS: u8 = 2;
    pub(super) const SET_LIMITS: u8 = 5;
}

/// Attributes of a command, and those of an address inside one.
mod attribute {
    pub(super) const ADDRESS: u16 = 1;
    pub(super) const ACCEPTED_ADDRESSES: u16 = 2;
    pub(super) const SUBFLOWS: u16 = 3;

    pub(super) const FAMILY: u16 = 1;
    pub(super) const ID: u16 = 2;
    pub(super) const IPV4: u16 = 3;
    pub(super) const IPV6: u16 = 4;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const INTERFACE: u16 = 7;
}

/// What an address is for.
mod flag {
    pub(super) const SIGNAL: u32 = 1 << 0;
    pub(super) const SUBFLOW: u32 = 1 << 1;
    pub(super) const BACKUP: u32 = 1 << 2;
    pub(super) const FULLMESH: u32 = 1 << 3;
}

/// An address from which connections may have subflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MptcpEndpoint {
    /// Its number in the namespace and towards peers; 0 belongs to the address of a connection's first subflow.
    pub id: u8,
    /// The address.
    pub address: IpAddr,
    /// The interface that its subflows are bound to.
    pub interface: u32,
    /// They carry data only while no other one can.
    pub backup: bool,
    /// There is one to each address of the peer, not only to that which the connection was opened to.
    pub fullmesh: bool,
}

/// A conversation with the path manager of a network namespace: that of the thread which opened it.
#[derive(Debug)]
pub struct MptcpPathManager {
    netlink: GenericNetlink,
}

impl MptcpPathManager {
    /// Opens the conversation.
    ///
    /// # Errors
    /// [`Error::NoMptcp`] where the kernel has no Multipath TCP.
    pub fn open() -> Result<Self, Error> {
        let netlink = GenericNetlink::open(FAMILY, VERSION)?;
        netlink
            .map(|netlink| Self { netlink })
            .ok_or(Error::NoMptcp { call: "mptcp_pm", errno: Errno::ENOENT })
    }

    /// How many subflows a connection may have beside its first, and how many addresses of its peer it takes up.
    ///
    /// # Errors
    /// [`Error::System`]: `EINVAL` for more than 8.
    pub fn set_limits(&mut self, subflows: u8, accepted_addresses: u8) -> Result<(), Error> {
        let number = |kind, value: u8| DefaultNla::new(kind, u32::from(value).to_ne_bytes().to_vec());
        let limits = [
            number(attribute::ACCEPTED_ADDRESSES, accepted_addresses),
            number(attribute::SUBFLOWS, subflows),
        ];
        self.netlink.tell(command::SET_LIMITS, &limits, "MPTCP_PM_CMD_SET_LIMITS", || {
            format!("allow connections of Multipath TCP {subflows} more subflows")
        })
    }

    /// Lets connections have subflows from an address. Those that there are open one at once.
    ///
    /// # Errors
    /// [`Error::System`]: `EEXIST` where the address or its number is taken, `EPERM` without `CAP_NET_ADMIN`.
    pub fn add(&mut self, endpoint: &MptcpEndpoint) -> Result<(), Error> {
        let flags = flag::SUBFLOW
            | if endpoint.backup { flag::BACKUP } else { 0 }
            | if endpoint.fullmesh { flag::FULLMESH } else { 0 };
        let more = [
            DefaultNla::new(attribute::FLAGS, flags.to_ne_bytes().to_vec()),
            DefaultNla::new(attribute::INTERFACE, endpoint.interface.to_ne_bytes().to_vec()),
        ];
        let address = address(endpoint.id, endpoint.address, &more);
        self.netlink.tell(command::ADD_ADDRESS, &[address], "MPTCP_PM_CMD_ADD_ADDR", || {
            format!("let Multipath TCP use the address {}", endpoint.address)
        })
    }

    /// Tells peers of an address of this host, so that they may have subflows to it.
    ///
    /// # Errors
    /// As [`MptcpPathManager::add`].
    pub fn announce(&mut self, id: u8, own: IpAddr) -> Result<(), Error> {
        let flags = DefaultNla::new(attribute::FLAGS, flag::SIGNAL.to_ne_bytes().to_vec());
        self.netlink.tell(
            command::ADD_ADDRESS,
            &[address(id, own, &[flags])],
            "MPTCP_PM_CMD_ADD_ADDR",
            || format!("announce the address {own} to peers of Multipath TCP"),
        )
    }

    /// Takes an address back: its subflows are closed, and peers are told over the other ones.
    ///
    /// # Errors
    /// [`Error::System`].
    pub fn remove(&mut self, id: u8, gone: IpAddr) -> Result<Effect, Error> {
        let address = address(id, gone, &[]);
        let removed = self.netlink.tell(command::REMOVE_ADDRESS, &[address], "MPTCP_PM_CMD_DEL_ADDR", || {
            format!("keep Multipath TCP from the address {gone}")
        });
        match removed {
            Ok(()) => Ok(Effect::Changed),
            // What the kernel says of a number that it does not know.
            Err(Error::System { errno: Errno::EINVAL | Errno::ENOENT, .. }) => Ok(Effect::Unchanged),
            Err(error) => Err(error),
        }
    }
}

/// An address as an attribute.
fn address(id: u8, address: IpAddr, more: &[DefaultNla]) -> DefaultNla {
    let (family, kind, octets) = match address {
        IpAddr::V4(address) => (libc::AF_INET, attribute::IPV4, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, attribute::IPV6, address.octets().to_vec()),
    };
    let mut parts = vec![
        DefaultNla::new(attribute::FAMILY, (family as u16).to_ne_bytes().to_vec()),
        DefaultNla::new(attribute::ID, vec![id]),
        DefaultNla::new(kind, octets),
    ];
    parts.extend_from_slice(more);
    let parts = parts.as_slice();
    let mut inside = vec![0; parts.buffer_len()];
    parts.emit(&mut inside);
    DefaultNla::new(attribute::ADDRESS | NLA_F_NESTED, inside)
}

/// A socket of Multipath TCP, which does not block. Options of the kernel's TCP that are set on it hold for all its subflows, as far as
/// Multipath TCP has them.
///
/// # Errors
/// [`Error::NoMptcp`] where the kernel has none, or it is off in this namespace (`net.mptcp.enabled`).
pub fn mptcp_socket(version: IpVersion) -> Result<OwnedFd, Error> {
    let family = match version {
        IpVersion::V4 => libc::AF_INET,
        IpVersion::V6 => libc::AF_INET6,
    };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes three numbers and touches no memory of ours.
    #[expect(unsafe_code, reason = "a protocol that no safe binding among our crates knows")]
    let made = unsafe { libc::socket(family, kind, libc::IPPROTO_MPTCP) };
    let made = Errno::result(made).map_err(|errno| match errno {
        Errno::EPROTONOSUPPORT | Errno::ENOPROTOOPT | Errno::EINVAL => {
            Error::NoMptcp { call: "socket(IPPROTO_MPTCP)", errno }
        }
        errno => Error::system("open a connection", "socket(IPPROTO_MPTCP)", errno),
    })?;
    // SAFETY: the descriptor was just made, and nobody else has it.
    #[expect(unsafe_code, reason = "the descriptor comes from the call above")]
    let socket = unsafe { OwnedFd::from_raw_fd(made) };
    Ok(socket)
}

/// Whether a connected socket of Multipath TCP, or one that a listening socket of it accepted, carries ordinary TCP after all: the peer, or
/// something on the path, does not take part (RFC 8684, section 3.7).
///
/// # Errors
/// [`Error::System`] naming `getsockopt`.
pub fn mptcp_fell_back(socket: BorrowedFd<'_>) -> Result<bool, Error> {
    /// `SOL_MPTCP` and `MPTCP_INFO` (`linux/mptcp.h`).
    const LEVEL: libc::c_int = 284;
    const INFO: libc::c_int = 1;
    /// Six counters of a byte, padded, and the flags behind them; what comes after is not asked for.
    const ROOM: usize = 12;
    const FLAGS: usize = 8;
    const FALLBACK: u32 = 1;
    let mut info = [0_u8; ROOM];
    let mut length = ROOM as libc::socklen_t;
    // SAFETY: the descriptor is open, and the call writes at most `length` bytes into `info`, which outlives it.
    #[expect(unsafe_code, reason = "an option that no safe binding among our crates knows")]
    let asked = unsafe {
        libc::getsockopt(socket.as_raw_fd(), LEVEL, INFO, info.as_mut_ptr().cast(), &raw mut length)
    };
    match Errno::result(asked) {
        Ok(_) => {
            let flags = info.get(FLAGS..).and_then(|flags| flags.first_chunk());
            Ok(flags.is_some_and(|flags| u32::from_ne_bytes(*flags) & FALLBACK != 0))
        }
        // A socket of TCP has no such level.
        Err(Errno::ENOPROTOOPT | Errno::EOPNOTSUPP) => Ok(true),
        Err(errno) => Err(Error::system("look into Multipath TCP", "getsockopt(MPTCP_INFO)", errno)),
    }
}

/// The schedulers of Multipath TCP that the kernel has now.
///
/// # Errors
/// [`Error::NoMptcp`] where it has no Multipath TCP. A kernel before 6.13 does not list them: then there is only `default`.
pub fn mptcp_schedulers() -> Result<Vec<String>, Error> {
    let enabled = sysctl("net.mptcp.enabled");
    if let Err(Error::System { errno, .. }) = enabled {
        return Err(Error::NoMptcp { call: "net.mptcp.enabled", errno });
    }
    let listed = sysctl("net.mptcp.available_schedulers");
    let listed = listed.as_deref().unwrap_or("default");
    Ok(listed.split_whitespace().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_address_is_laid_out_as_the_kernel_reads_it() {
        let nested = address(3, Ipv4Addr::new(10, 0, 1, 2).into(), &[]);
        let mut bytes = vec![0; nested.buffer_len()];
        nested.emit(&mut bytes);
        let family = (libc::AF_INET as u16).to_ne_bytes();
        let head = |length: u16, kind: u16| [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
        let expected = [
            head(28, 1 | 1 << 15),
            [head(6, 1), family.to_vec(), vec![0, 0]].concat(),
            [head(5, 2), vec![3, 0, 0, 0]].concat(),
            [head(8, 3), vec![10, 0, 1, 2]].concat(),
        ];
        assert_eq!(bytes, expected.concat());
    }
}
