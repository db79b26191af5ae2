//! Kernel parameters that an agent needs, and what they were before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use careof_lab::Error;
use nix::errno::Errno;

/// Kernel parameters of the network namespace in which this was opened, whichever thread sets them.
///
/// `/proc/sys/net` is the calling thread's; a directory of it that is open stays that of its namespace.
#[derive(Debug)]
pub(super) struct Parameters {
    /// `/proc/sys/net/ipv4` and `/proc/sys/net/ipv6`; `None` where nothing is to be set.
    roots: Option<(File, Option<File>)>,
    /// What was changed, by path below `/proc/sys/net`, and its value before.
    before: BTreeMap<String, String>,
    /// Parameters that could not be set while the agent ran.
    pub(super) refused: u64,
}

impl Parameters {
    /// Takes hold of the parameters of the calling thread's network namespace. With `set` false nothing is ever
    /// changed.
    pub(super) fn open(set: bool) -> Result<Self, Error> {
        let open = |path: &str| {
            File::open(path).map_err(|error| failed(format!("look into {path}"), "open", &error))
        };
        let roots =
            if set { Some((open("/proc/sys/net/ipv4")?, open("/proc/sys/net/ipv6").ok())) } else { None };
        Ok(Self { roots, before: BTreeMap::new(), refused: 0 })
    }

    fn path(&self, name: &str) -> Option<String> {
        let (ipv4, ipv6) = self.roots.as_ref()?;
        let (root, rest) = match name.split_once('/')? {
            ("ipv4", rest) => (ipv4, rest),
            (_, rest) => (ipv6.as_ref()?, rest),
        };
        Some(format!("/proc/self/fd/{}/{rest}", root.as_raw_fd()))
    }

    /// The value of a parameter, named by its path below `/proc/sys/net`; `None` when there is no such parameter.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)?).ok().map(|value| value.trim().to_owned())
    }

    /// Sets a parameter. One that does not exist - of an interface that is gone, of a kernel without IPv6 - needs no
    /// setting.
    pub(super) fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let Some(path) = self.path(name) else { return Ok(()) };
        let doing = || format!("set net/{name} to {value}");
        let present = match fs::read_to_string(&path) {
            Ok(present) => present.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(doing(), "read(/proc/sys)", &error)),
        };
        if present == value {
            return Ok(());
        }
        fs::write(&path, value).map_err(|error| failed(doing(), "write(/proc/sys)", &error))?;
        self.before.entry(name.to_owned()).or_insert(present);
        Ok(())
    }

    /// Has packets taken from an interface although the way back to their source is by another one: strict reverse
    /// path filtering (RFC 3704) becomes loose, and where there is none it stays so.
    pub(super) fn loosen_reverse_path_filter(&mut self, interface: &str) -> Result<(), Error> {
        let own = format!("ipv4/conf/{interface}/rp_filter");
        // The greater of the two is what counts (ip-sysctl.rst).
        let values = [self.get("ipv4/conf/all/rp_filter"), self.get(&own)];
        let effective = values.into_iter().flatten().filter_map(|value| value.parse::<u8>().ok()).max();
        if effective == Some(1) { self.set(&own, "2") } else { Ok(()) }
    }

    /// Sets a parameter back to what it was before it was set.
    pub(super) fn restore(&mut self, name: &str) -> Result<(), Error> {
        let Some((name, value)) = self.before.remove_entry(name) else { return Ok(()) };
        let Some(path) = self.path(&name) else { return Ok(()) };
        match fs::write(path, &value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(format!("set net/{name} back to {value}"), "write(/proc/sys)", &error))
            }
            _ => Ok(()),
        }
    }

    /// The parameters of an interface that is gone are gone with it.
    pub(super) fn forget_interface(&mut self, interface: &str) {
        let of_it = format!("/{interface}/");
        self.before.retain(|name, _| !name.contains(&of_it));
    }

    /// Sets everything back. The first refusal is returned, and the rest carried out all the same.
    pub(super) fn undo(&mut self) -> Result<(), Error> {
        let names: Vec<String> = self.before.keys().cloned().collect();
        let outcomes: Vec<_> = names.iter().map(|name| self.restore(name)).collect();
        outcomes.into_iter().collect()
    }
}

fn failed(doing: String, call: &'static str, error: &io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    Error::System { doing, call, errno }
}
