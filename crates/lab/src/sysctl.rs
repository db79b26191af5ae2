//! Kernel parameters of a host.

use std::fs;

use nix::errno::Errno;

use crate::error::Error;

/// Sets a parameter of the calling thread's network namespace, named as `sysctl` does
/// (`net.ipv4.tcp_congestion_control`). To be called through [`Host::run`](crate::Host::run).
///
/// # Errors
/// [`Error::System`] with `ENOENT` where the kernel has no such parameter, `EACCES` or `EPERM` where it is not
/// for this user to change, `EINVAL` for a value it does not take; `EINVAL` for a name outside `net.`, since
/// any other parameter is the whole machine's.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), Error> {
    let doing = || format!("set {name} to {value:?}");
    if !name.starts_with("net.") || name.contains('/') {
        return Err(Error::system(doing(), "sysctl", Errno::EINVAL));
    }
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(path, value).map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Error::system(doing(), "write(/proc/sys)", errno)
    })
}
