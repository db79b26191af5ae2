//! Hosts: network namespaces without a name.
//!
//! A network namespace lives while a thread is in it or a descriptor points to it. Here a thread of this process
//! is in it and no name is given to it, so when the process ends the namespace does, with every interface,
//! address and route in it. Nothing has to be cleaned up, and nothing can be forgotten.
//!
//! Making one takes `CAP_SYS_ADMIN`. An ordinary user has that inside a user namespace of its own, which the
//! process enters once ([`Realm::enter`]).

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid};

use crate::capabilities::Capability;
use crate::error::{Barrier, Error};
use crate::netlink::Netlink;
use crate::process::Processes;

/// The right to make hosts.
#[derive(Clone, Copy, Debug)]
pub struct Realm {
    own_users: bool,
}

impl Realm {
    /// Acquires the right to make hosts.
    ///
    /// With `CAP_SYS_ADMIN` there is nothing to do. Without it this process enters a user namespace in which it
    /// is root, for good; that must happen before it starts a thread.
    ///
    /// # Errors
    /// [`Error::SeveralThreads`], [`Error::NoUserNamespace`], or [`Error::System`] for the files of `/proc`.
    pub fn enter() -> Result<Self, Error> {
        let own_users = !Capability::SysAdmin.is_effective()?;
        if own_users {
            enter_user_namespace()?;
        }
        Ok(Self { own_users })
    }

    /// Whether the process entered a user namespace to get here.
    #[must_use]
    pub const fn has_own_users(&self) -> bool {
        self.own_users
    }

    /// Makes a host, its loopback interface up.
    ///
    /// `name` is for people: it is in errors and names the thread.
    ///
    /// # Errors
    /// [`Error::NoNetworkNamespace`], or what [`Netlink`] says about the loopback interface.
    pub fn host(&self, name: &str) -> Result<Host, Error> {
        let (jobs, inbox) = channel();
        let (ready, is_ready) = channel();
        let host = name.to_owned();
        let thread = Builder::new()
            .name(format!("host {name}").chars().take(15).collect())
            .spawn(move || {
                let made = make_network_namespace(host);
                let failed = made.is_err();
                if ready.send(made).is_ok() && !failed {
                    serve(&inbox);
                }
            })
            .map_err(|error| {
                let errno = error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw);
                Error::system(format!("start the thread of the host {name:?}"), "clone", errno)
            })?;
        // From here on an early return drops the host, which waits for the thread.
        let host = Host {
            name: name.to_owned(),
            processes: Mutex::new(None),
            jobs: Some(jobs),
            thread: Some(thread),
        };
        is_ready.recv().unwrap_or_else(|_| Err(host.gone()))?;
        Ok(host)
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A host: a network namespace of its own.
///
/// Dropping it ends the processes started by [`Host::spawn`] and the thread that holds it. The namespace
/// goes when sockets and devices that were opened in it are closed too.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// What [`Host::spawn`] started; `None` until it does.
    processes: Mutex<Option<Processes>>,
    /// `None` only while dropping.
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// The name given to it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` inside the host and returns its result. Sockets it opens belong to the host wherever they are
    /// used later; threads it starts are in the host too.
    ///
    /// Programs are for [`Host::spawn`]: those that `work` starts by itself are in the host, but do not end with it.
    ///
    /// Work is done one at a time: it waits for what other threads gave the host before. A panic in `work` goes
    /// on in the caller.
    ///
    /// # Errors
    /// [`Error::HostGone`].
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
        let (result, outcome) = channel();
        let job: Job = Box::new(move || {
            let done = catch_unwind(AssertUnwindSafe(work));
            // The caller waits below, so somebody listens.
            let _ = result.send(done);
        });
        self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok()).ok_or_else(|| self.gone())?;
        match outcome.recv().map_err(|_| self.gone())? {
            Ok(value) => Ok(value),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// A descriptor of its network namespace, for whom takes one, as [`Netlink::add_veth`]. The namespace lives as long
    /// as the descriptor does.
    ///
    /// # Errors
    /// [`Error::HostGone`], or [`Error::System`] for the file of `/proc`.
    pub fn namespace(&self) -> Result<OwnedFd, Error> {
        self.run(|| {
            let path = "/proc/thread-self/ns/net";
            File::open(path).map(OwnedFd::from).map_err(|error| {
                let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
                Error::system(format!("open {path}"), "open", errno)
            })
        })?
    }

    pub(crate) const fn processes(&self) -> &Mutex<Option<Processes>> {
        &self.processes
    }

    fn gone(&self) -> Error {
        Error::HostGone { host: self.name.clone() }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // First the programs, as long as there is a network for their last words.
        if let Ok(processes) = self.processes.get_mut() {
            drop(processes.take());
        }
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // The thread catches its jobs' panics and has none of its own.
            let _ = thread.join();
        }
    }
}

/// Does what is asked until the host is dropped.
fn serve(inbox: &Receiver<Job>) {
    for job in inbox {
        job();
    }
}

fn make_network_namespace(host: String) -> Result<(), Error> {
    unshare(CloneFlags::CLONE_NEWNET).map_err(|errno| Error::NoNetworkNamespace { host, errno })?;
    let mut netlink = Netlink::open()?;
    let loopback = netlink.index_of("lo")?;
    netlink.set_up(loopback)
}

fn enter_user_namespace() -> Result<(), Error> {
    let threads = threads()?;
    if threads != 1 {
        return Err(Error::SeveralThreads { threads });
    }
    let (user, group) = (Uid::effective(), Gid::effective());
    let refused = |call| move |errno| Error::NoUserNamespace { call, errno, barrier: Barrier::find() };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(refused("unshare(CLONE_NEWUSER)"))?;
    // Root inside, so that programs keep their capabilities when they are started. A group map of an ordinary
    // user is accepted only after giving up setgroups(2) (user_namespaces(7)).
    let errno_of = |error: std::io::Error| error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
    let write = |path, text: String| fs::write(path, text).map_err(errno_of);
    write("/proc/self/setgroups", "deny".to_owned()).map_err(refused("write(/proc/self/setgroups)"))?;
    write("/proc/self/uid_map", format!("0 {user} 1")).map_err(refused("write(/proc/self/uid_map)"))?;
    write("/proc/self/gid_map", format!("0 {group} 1")).map_err(refused("write(/proc/self/gid_map)"))
}

/// Threads of this process.
pub(crate) fn threads() -> Result<usize, Error> {
    Ok(read_proc("/proc/self/status", "Threads:")?.parse().unwrap_or(1))
}

/// The value behind `key` in a file of `/proc` that has one key a line.
fn read_proc(path: &str, key: &str) -> Result<String, Error> {
    let text = fs::read_to_string(path).map_err(|error| {
        let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
        Error::system(format!("read {path}"), "open", errno)
    })?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    Ok(value.trim().to_owned())
}
