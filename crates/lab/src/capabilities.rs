//! Capabilities: what a process may do, and giving up all that it does not need.

use std::collections::BTreeSet;

use caps::{CapSet, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl::set_no_new_privs;

use crate::error::Error;
use crate::namespace::threads;

/// A capability that somebody here needs (capabilities(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Interfaces, routes, rules, neighbours; TUN devices.
    NetAdmin,
    /// Raw sockets and sockets of packets.
    NetRaw,
    /// Ports below 1024, as 434.
    NetBindService,
    /// Namespaces.
    SysAdmin,
}

impl Capability {
    /// Its name, as `CAP_NET_ADMIN`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetAdmin => "CAP_NET_ADMIN",
            Self::NetRaw => "CAP_NET_RAW",
            Self::NetBindService => "CAP_NET_BIND_SERVICE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
        }
    }

    /// Whether the calling thread has it in effect.
    ///
    /// # Errors
    /// [`Error::System`] naming `capget`.
    pub fn is_effective(self) -> Result<bool, Error> {
        caps::has_cap(None, CapSet::Effective, self.number())
            .map_err(|_| Error::system(format!("look for {}", self.name()), "capget", Errno::last()))
    }

    const fn number(self) -> caps::Capability {
        match self {
            Self::NetAdmin => caps::Capability::CAP_NET_ADMIN,
            Self::NetRaw => caps::Capability::CAP_NET_RAW,
            Self::NetBindService => caps::Capability::CAP_NET_BIND_SERVICE,
            Self::SysAdmin => caps::Capability::CAP_SYS_ADMIN,
        }
    }
}

/// Gives up every capability but `kept`, for good: from the effective, permitted, inheritable, ambient and bounding
/// sets of this process. No program it starts gets any back, set-user-id or not (`PR_SET_NO_NEW_PRIVS`), nor any of
/// `kept` unless the process is root's.
///
/// The kernel does this to one thread. So it is to be called before the first thread is started, and refuses
/// otherwise; threads started later have what this one has. The user stays the same: as root, files that belong
/// to root can be written still.
///
/// # Errors
/// [`Error::CapabilitiesOfThreads`] when there are other threads, [`Error::MissingCapability`] when one of `kept` is
/// not there to keep. Nothing was changed then. [`Error::System`] naming the call that failed.
pub fn keep_only(kept: &[Capability]) -> Result<(), Error> {
    let threads = threads()?;
    if threads != 1 {
        return Err(Error::CapabilitiesOfThreads { threads });
    }
    let failed =
        |call| move |_: caps::errors::CapsError| Error::system("give up capabilities", call, Errno::last());
    let has = |set, capability| caps::has_cap(None, set, capability).map_err(failed("capget"));
    for capability in kept {
        if !has(CapSet::Permitted, capability.number())? {
            return Err(Error::MissingCapability { capability: capability.name() });
        }
    }
    set_no_new_privs()
        .map_err(|errno| Error::system("give up capabilities", "prctl(PR_SET_NO_NEW_PRIVS)", errno))?;

    let kept: BTreeSet<u8> = kept.iter().map(|capability| capability.number().index()).collect();
    let mut wanted = CapsHashSet::default();
    let mut unwanted = Vec::new();
    #[expect(
        clippy::iter_over_hash_type,
        reason = "a set is made of it, and an order does not matter for the rest"
    )]
    for capability in caps::runtime::thread_all_supported() {
        if kept.contains(&capability.index()) {
            wanted.insert(capability);
        } else {
            unwanted.push(capability);
        }
    }
    // Without CAP_SETPCAP the bounding set cannot be touched. What is in it and not in the permitted set could only
    // be had by a program with privileges of its own, which there are none of any more.
    if has(CapSet::Effective, caps::Capability::CAP_SETPCAP)? {
        for capability in unwanted {
            caps::drop(None, CapSet::Bounding, capability).map_err(failed("prctl(PR_CAPBSET_DROP)"))?;
        }
    }
    if caps::runtime::ambient_set_supported().is_ok() {
        caps::clear(None, CapSet::Ambient).map_err(failed("prctl(PR_CAP_AMBIENT)"))?;
    }
    caps::clear(None, CapSet::Inheritable).map_err(failed("capset"))?;
    caps::set(None, CapSet::Effective, &wanted).map_err(failed("capset"))?;
    caps::set(None, CapSet::Permitted, &wanted).map_err(failed("capset"))
}
