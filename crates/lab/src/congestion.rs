//! Congestion control of the kernel's TCP: which there are, and choosing one.
//!
//! A network namespace's default may only be one that the administrator allowed for the whole machine
//! (`net.ipv4.tcp_allowed_congestion_control`), even where the namespace's owner is root. A route may name any, and
//! so may a socket whose owner has `CAP_NET_ADMIN` in its namespace.

use std::fmt;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

use crate::error::Error;
use crate::netlink::{Netlink, Route, RouteKind};
use crate::sysctl::{set_sysctl, sysctl};

/// Longest name of a congestion control, with the zero behind it (`TCP_CA_NAME_MAX`).
const ROOM: usize = 16;

/// The name of a congestion control, as `cubic`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CongestionControl {
    /// Zeros behind the name.
    name: [u8; ROOM],
}

impl CongestionControl {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.name.iter().position(|byte| *byte == 0).unwrap_or(ROOM);
        std::str::from_utf8(self.name.get(..length).unwrap_or_default()).unwrap_or_default()
    }

    /// From a name as the kernel writes it, with or without a zero behind it; `None` for what cannot be one.
    pub(crate) fn from_kernel(bytes: &[u8]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text =
            bytes.get(..length).filter(|text| !text.is_empty() && text.iter().all(u8::is_ascii_graphic))?;
        let mut name = [0; ROOM];
        // The last byte stays zero.
        name.get_mut(..ROOM - 1)?.get_mut(..length)?.copy_from_slice(text);
        Some(Self { name })
    }

    /// Chooses it for a TCP socket.
    ///
    /// # Errors
    /// [`Error::NoCongestionControl`], or [`Error::CongestionControlNotAllowed`] without `CAP_NET_ADMIN`.
    pub fn choose_for(&self, socket: &impl AsFd) -> Result<(), Error> {
        setsockopt(socket, sockopt::TcpCongestion, &self.as_str().into())
            .map_err(|errno| refused(self.as_str(), "setsockopt(TCP_CONGESTION)", errno))
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CongestionControl({})", self.as_str())
    }
}

/// The congestion controls of a network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CongestionControls {
    /// Those the kernel has now; it may know more as modules.
    pub available: Vec<CongestionControl>,
    /// Those that everybody may choose, and that may be a namespace's default.
    pub allowed: Vec<CongestionControl>,
    /// The namespace's default.
    pub default: Option<CongestionControl>,
}

/// The congestion controls of the calling thread's network namespace.
///
/// # Errors
/// [`Error::System`] where the kernel has no such parameters.
pub fn congestion_controls() -> Result<CongestionControls, Error> {
    let list = |name: &str| -> Result<Vec<_>, Error> {
        let text = sysctl(&format!("net.ipv4.{name}"))?;
        Ok(text
            .split_whitespace()
            .filter_map(|name| CongestionControl::from_kernel(name.as_bytes()))
            .collect())
    };
    Ok(CongestionControls {
        available: list("tcp_available_congestion_control")?,
        allowed: list("tcp_allowed_congestion_control")?,
        default: list("tcp_congestion_control")?.into_iter().next(),
    })
}

/// Makes sure that sockets of the calling thread may use a congestion control. The kernel loads its module where there
/// is one and the user is the machine's root.
///
/// # Errors
/// [`Error::NoCongestionControl`] or [`Error::CongestionControlNotAllowed`], with what would help.
pub fn ensure_congestion_control(name: &str) -> Result<CongestionControl, Error> {
    let control = CongestionControl::from_kernel(name.as_bytes())
        .ok_or_else(|| refused(name, "setsockopt(TCP_CONGESTION)", Errno::ENOENT))?;
    let probe = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|errno| Error::system(format!("try the congestion control {name:?}"), "socket", errno))?;
    control.choose_for(&probe)?;
    Ok(control)
}

/// How [`set_congestion_control`] did it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// It is the namespace's default.
    Default,
    /// The routes name it, since it may not be the default.
    Routes,
}

/// Chooses the congestion control of all TCP connections that begin in the calling thread's network namespace from
/// now on: as the namespace's default, or where that is not allowed by naming it in the main table's routes for
/// IPv4. Routes made later do not name it then, so do this last. What those routes named before is forgotten. A listening socket does not show it; the
/// connections that come from it have it.
///
/// # Errors
/// [`Error::NoCongestionControl`], [`Error::CongestionControlNotAllowed`] without `CAP_NET_ADMIN`, or what
/// [`Netlink`] says about a route.
pub fn set_congestion_control(name: &str) -> Result<ChosenBy, Error> {
    let control = ensure_congestion_control(name)?;
    let (chosen, named) = match set_sysctl("net.ipv4.tcp_congestion_control", name) {
        Ok(()) => (ChosenBy::Default, None),
        Err(Error::System { errno: Errno::EPERM, .. }) => (ChosenBy::Routes, Some(control)),
        Err(error) => return Err(error),
    };
    let mut netlink = Netlink::open()?;
    for route in netlink.routes(Route::MAIN_TABLE)? {
        let matters = route.kind == RouteKind::Unicast && route.destination.is_ipv4();
        if matters && route.congestion_control != named {
            netlink.set_route(&Route { congestion_control: named, ..route })?;
        }
    }
    Ok(chosen)
}

fn refused(name: &str, call: &'static str, errno: Errno) -> Error {
    let names = |list: fn(CongestionControls) -> Vec<CongestionControl>| {
        let list = congestion_controls().map(list).unwrap_or_default();
        list.iter().map(CongestionControl::as_str).collect::<Vec<_>>().join(", ")
    };
    let name = name.to_owned();
    match errno {
        Errno::ENOENT => Error::NoCongestionControl { name, available: names(|all| all.available) },
        Errno::EPERM => Error::CongestionControlNotAllowed { name, allowed: names(|all| all.allowed) },
        errno => Error::system(format!("choose the congestion control {name:?}"), call, errno),
    }
}
