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
    let path = path(name).ok_or_else(|| Error::system(doing(), "sysctl", Errno::EINVAL))?;
    fs::write(path, value).map_err(|error| Error::system(doing(), "write(/proc/sys)", errno_of(&error)))
}

/// The value of a parameter of the calling thread's network namespace, without the line's end.
///
/// # Errors
/// As [`set_sysctl`].
pub fn sysctl(name: &str) -> Result<String, Error> {
    let doing = || format!("read {name}");
    let path = path(name).ok_or_else(|| Error::system(doing(), "sysctl", Errno::EINVAL))?;
    let text = fs::read_to_string(path)
        .map_err(|error| Error::system(doing(), "read(/proc/sys)", errno_of(&error)))?;
    Ok(text.trim_end().to_owned())
}

/// The file of a parameter; `None` outside `net.`. A `/` stands for a dot inside a name, as in
/// `net.ipv4.conf.eth0/100.rp_filter`.
fn path(name: &str) -> Option<String> {
    let valid = name.starts_with("net.") && !name.split(['.', '/']).any(str::is_empty);
    let turn = |letter| match letter {
        '.' => '/',
        '/' => '.',
        letter => letter,
    };
    valid.then(|| format!("/proc/sys/{}", name.chars().map(turn).collect::<String>()))
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_a_network_has_a_path() {
        assert_eq!(path("net.ipv4.ip_forward").as_deref(), Some("/proc/sys/net/ipv4/ip_forward"));
        assert_eq!(
            path("net.ipv4.conf.eth0/100.rp_filter").as_deref(),
            Some("/proc/sys/net/ipv4/conf/eth0.100/rp_filter")
        );
        for name in ["kernel.hostname", "net", "net/ipv4/ip_forward", "net.//.kernel", "net...x", ""] {
            assert_eq!(path(name), None, "{name}");
        }
    }
}
