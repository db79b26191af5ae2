//! Kernel parameters that an agent needs, and what they were before.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use careof_lab::Error;
use nix::errno::Errno;

use super::{ParameterChange, ParameterLog, StoreError};

const IP_FORWARD: &str = "ipv4/ip_forward";
const IPV6_FORWARD: &str = "ipv6/conf/all/forwarding";
const ACCEPT_REDIRECTS: &str = "ipv4/conf/all/accept_redirects";

/// What a parameter was before it was set.
#[derive(Clone, Debug)]
struct Former {
    value: String,
    /// It is this life that needs it set, not only a former one.
    is_needed: bool,
}

/// Kernel parameters of the network namespace in which this was opened, whichever thread sets them.
///
/// `/proc/sys/net` is the calling thread's; a directory of it that is open stays that of its namespace.
pub(super) struct Parameters {
    /// `/proc/sys/net/ipv4` and `/proc/sys/net/ipv6`; `None` where nothing is to be set, nor set back.
    roots: Option<(File, Option<File>)>,
    /// Whether anything is to be set.
    sets: bool,
    /// What was changed, by path below `/proc/sys/net`.
    before: BTreeMap<String, Former>,
    log: Option<Box<dyn ParameterLog + Send>>,
    /// The latest that the log has of each parameter.
    logged: BTreeMap<String, ParameterChange>,
    /// Parameters that could not be set while the agent ran.
    pub(super) refused: u64,
    /// Changes that could not be written down, or read back.
    pub(super) not_logged: u64,
    pub(super) last_failure: Option<StoreError>,
    /// A parameter that is in the way and not the agent's to set, with what would help.
    pub(super) obstacle: Option<String>,
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parameters").field("before", &self.before).field("refused", &self.refused).finish()
    }
}

impl Parameters {
    /// Takes hold of the parameters of the calling thread's network namespace. With `sets` false nothing is ever
    /// changed, except what a former life has set and `log` has kept: that is set back by
    /// [`Parameters::restore_remains`].
    pub(super) fn open(sets: bool, log: Option<Box<dyn ParameterLog + Send>>) -> Result<Self, Error> {
        let mut parameters = Self {
            roots: None,
            sets,
            before: BTreeMap::new(),
            log,
            logged: BTreeMap::new(),
            refused: 0,
            not_logged: 0,
            last_failure: None,
            obstacle: None,
        };
        let remains = parameters.log.as_mut().map_or_else(|| Ok(Vec::new()), |log| log.load());
        let remains = remains.unwrap_or_else(|error| {
            parameters.note_failure(error);
            Vec::new()
        });
        if sets || !remains.is_empty() {
            let open = |path: &str| {
                File::open(path).map_err(|error| failed(format!("look into {path}"), "open", &error))
            };
            parameters.roots = Some((open("/proc/sys/net/ipv4")?, open("/proc/sys/net/ipv6").ok()));
        }
        parameters.logged.extend(remains.into_iter().map(|change| (change.name.clone(), change)));
        for change in parameters.logged.values() {
            // Otherwise somebody has set it since, or it is of another interface of the same name.
            if parameters.get(&change.name).as_ref() == Some(&change.set) {
                let former = Former { value: change.before.clone(), is_needed: false };
                parameters.before.insert(change.name.clone(), former);
            }
        }
        Ok(parameters)
    }

    fn note_failure(&mut self, error: StoreError) {
        self.not_logged += 1;
        self.last_failure = Some(error);
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
        if !self.sets {
            return Ok(());
        }
        let Some(path) = self.path(name) else { return Ok(()) };
        let doing = || format!("set net/{name} to {value}");
        let present = match fs::read_to_string(&path) {
            Ok(present) => present.trim().to_owned(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(doing(), "read(/proc/sys)", &error)),
        };
        if present == value {
            self.need(name);
            return Ok(());
        }
        let former = self.before.get(name).map_or_else(|| present.clone(), |former| former.value.clone());
        // First, or it would be lost if we were killed in between.
        self.note(name, &former, value);
        fs::write(&path, value).map_err(|error| failed(doing(), "write(/proc/sys)", &error))?;
        self.before.insert(name.to_owned(), Former { value: former, is_needed: true });
        Ok(())
    }

    /// What a former life has set is needed in this one, too; whether there was such a thing.
    fn need(&mut self, name: &str) -> bool {
        let former = self.before.get_mut(name).filter(|former| !former.is_needed);
        former.map(|former| former.is_needed = true).is_some()
    }

    /// Writes down a change that is about to be made.
    fn note(&mut self, name: &str, before: &str, set: &str) {
        let change =
            ParameterChange { name: name.to_owned(), before: before.to_owned(), set: set.to_owned() };
        let Some(log) = &mut self.log else { return };
        if self.logged.get(name) == Some(&change) {
            return;
        }
        match log.note(&change) {
            Ok(()) => {
                self.logged.insert(change.name.clone(), change);
            }
            Err(error) => self.note_failure(error),
        }
    }

    /// Has this host forward packets.
    ///
    /// `ip_forward` is a switch with a throw: turned either way it sets `forwarding` of every interface and the
    /// opposite of `accept_redirects` for all. What was not so before is remembered, too.
    pub(super) fn forward(&mut self) -> Result<(), Error> {
        let others = [(ACCEPT_REDIRECTS.to_owned(), "0")];
        self.throw(IP_FORWARD, self.forwarding_below("ipv4/conf").into_iter().chain(others).collect())
    }

    /// Has this host forward packets of IPv6. That is such a switch, too; the kernel then also forgets what routers have told it, where it
    /// is not to listen to them all the same (`accept_ra` is 2).
    pub(super) fn forward_ipv6(&mut self) -> Result<(), Error> {
        self.throw(IPV6_FORWARD, self.forwarding_below("ipv6/conf"))
    }

    /// `forwarding` of every interface.
    fn forwarding_below(&self, conf: &str) -> Vec<(String, &'static str)> {
        fs::read_dir(self.path(conf).unwrap_or_default())
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|interface| interface != "all")
            .map(|interface| (format!("{conf}/{interface}/forwarding"), "1"))
            .collect()
    }

    /// Turns a switch on that sets others as well. Of those, what has the value beside its name is remembered.
    fn throw(&mut self, switch: &str, others: Vec<(String, &'static str)>) -> Result<(), Error> {
        let is_off = self.get(switch).is_some_and(|value| value == "0");
        for (name, odd) in others {
            if !is_off || self.before.contains_key(&name) {
                self.need(&name);
            } else if self.sets && self.get(&name).as_deref() == Some(odd) {
                self.note(&name, odd, odd);
                self.before.insert(name, Former { value: odd.to_owned(), is_needed: true });
            }
        }
        self.set(switch, "1")
    }

    /// Makes a tunnel device one of IPv4: what comes out of a tunnel is from everywhere, and nobody behind it could go another way.
    pub(super) fn prepare_tunnel_device(&mut self, name: &str, forwards: bool) -> Result<(), Error> {
        self.loosen_reverse_path_filter(name)?;
        for redirects in ["send_redirects", "accept_redirects"] {
            self.set(&format!("ipv4/conf/{name}/{redirects}"), "0")?;
        }
        if forwards { self.set(&format!("ipv4/conf/{name}/forwarding"), "1") } else { Ok(()) }
    }

    /// Away from home a mobile node must neither answer ARP for its home address nor ask with it (RFC 5944 section 4.6).
    pub(super) fn keep_home_address_quiet(&mut self, interface: &str, quiet: bool) -> Result<(), Error> {
        let ignore = format!("ipv4/conf/{interface}/arp_ignore");
        let announce = format!("ipv4/conf/{interface}/arp_announce");
        if quiet {
            self.set(&ignore, "1")?;
            self.set(&announce, "2")
        } else {
            self.restore(&ignore)?;
            self.restore(&announce)
        }
    }

    /// Has packets taken from an interface although the way back to their source is by another one: strict reverse
    /// path filtering (RFC 3704) becomes loose, and where there is none it stays so.
    pub(super) fn loosen_reverse_path_filter(&mut self, interface: &str) -> Result<(), Error> {
        let own = format!("ipv4/conf/{interface}/rp_filter");
        if self.sets && self.need(&own) {
            return Ok(());
        }
        // The greater of the two is what counts (ip-sysctl.rst).
        let values = [self.get("ipv4/conf/all/rp_filter"), self.get(&own)];
        let effective = values.into_iter().flatten().filter_map(|value| value.parse::<u8>().ok()).max();
        if effective == Some(1) { self.set(&own, "2") } else { Ok(()) }
    }

    /// Has packets taken from an interface that has no address, as those of a foreign agent on a link where the node
    /// has none of its own. With any reverse path filter, strict or loose, the kernel drops all of them.
    pub(super) fn disable_reverse_path_filter(&mut self, interface: &str) -> Result<(), Error> {
        const ALL: &str = "ipv4/conf/all/rp_filter";
        match self.get(ALL) {
            // The greater of the two is what counts, and this one is not of our interfaces only.
            Some(value) if self.sets && value != "0" => {
                self.obstacle = Some(format!(
                    "net/{ALL} is {value}: foreign agents are not heard on {interface} while it has no address; \
                     sysctl -w net.ipv4.conf.all.rp_filter=0 would change that"
                ));
                self.loosen_reverse_path_filter(interface)
            }
            _ => self.set(&format!("ipv4/conf/{interface}/rp_filter"), "0"),
        }
    }

    /// Sets a parameter back to what it was before it was set.
    pub(super) fn restore(&mut self, name: &str) -> Result<(), Error> {
        self.restore_as(name, name)
    }

    /// The same, of an interface that has another name now.
    fn restore_as(&mut self, name: &str, present_name: &str) -> Result<(), Error> {
        let Some(Former { value, .. }) = self.before.remove(name) else { return Ok(()) };
        let Some(path) = self.path(present_name) else { return Ok(()) };
        match fs::write(path, &value) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(format!("set net/{present_name} back to {value}"), "write(/proc/sys)", &error))
            }
            _ => Ok(()),
        }
    }

    /// Sets back what a killed agent has set and this one does not need.
    pub(super) fn restore_remains(&mut self) {
        let remains = |(name, former): (&String, &Former)| (!former.is_needed).then(|| name.clone());
        let remains: Vec<String> = self.before.iter().filter_map(remains).collect();
        for name in in_order(remains) {
            if self.restore(&name).is_err() {
                self.refused += 1;
            }
        }
    }

    fn names_of(&self, interface: &str) -> Vec<String> {
        let of_it = format!("/{interface}/");
        self.before.keys().filter(|name| name.contains(&of_it)).cloned().collect()
    }

    /// The parameters of an interface that is gone are gone with it.
    pub(super) fn forget_interface(&mut self, interface: &str) {
        for name in self.names_of(interface) {
            self.before.remove(&name);
        }
    }

    /// An interface is called `present_name` now, and its parameters are set back.
    pub(super) fn leave_interface(&mut self, interface: &str, present_name: &str) {
        for name in self.names_of(interface) {
            let present = name.replacen(&format!("/{interface}/"), &format!("/{present_name}/"), 1);
            if self.restore_as(&name, &present).is_err() {
                self.refused += 1;
            }
        }
    }

    /// Sets everything back. The first refusal is returned, and the rest carried out all the same.
    pub(super) fn undo(&mut self) -> Result<(), Error> {
        let names = in_order(self.before.keys().cloned().collect());
        let outcomes: Vec<_> = names.iter().map(|name| self.restore(name)).collect();
        outcomes.into_iter().collect::<Result<(), Error>>()?;
        if let Some(log) = &mut self.log
            && let Err(error) = log.clear()
        {
            self.note_failure(error);
        }
        Ok(())
    }
}

/// In the order in which they can be set back: [`IP_FORWARD`] and [`IPV6_FORWARD`] override others.
fn in_order(mut names: Vec<String>) -> Vec<String> {
    names.sort_by_key(|name| name != IP_FORWARD && name != IPV6_FORWARD);
    names
}

fn failed(doing: String, call: &'static str, error: &io::Error) -> Error {
    let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    Error::System { doing, call, errno }
}
