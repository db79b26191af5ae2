//! Programs inside a host, which end with it: they, their children, and whatever made itself a daemon.
//!
//! No parent can promise that. One killed by `SIGKILL` does nothing any more, and a daemon is nobody's child. So the
//! kernel does it: a host's programs run in a process namespace, and when the first process of one ends, however it
//! ends, all others are killed. That first process is ours (`be_first`). It does nothing but wait for the end of the
//! lab: a connection that closes with our last descriptor of it, and a signal when the thread that made it is gone.
//!
//! A thread whose children go to another process namespace may start no threads, so this one is not the host's own
//! ([`Host::run`] allows threads) but one that does nothing else. The programs are still children of this process, to
//! be waited for as any other.
//!
//! It has a mount namespace of its own too, so that `/proc` shows the host's processes and `/sys` its interfaces, as
//! `ip netns exec` does it.

use std::fmt;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use careof_base::Duration;
use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::{set_name, set_pdeathsig};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, chdir, fork, setsid};

use crate::clock::Clock;
use crate::error::Error;
use crate::namespace::Host;

/// How long a host that is dropped waits for killed processes to be gone. They need it only while the kernel is in
/// the middle of something for them.
const PATIENCE: Duration = Duration::from_secs(5);

/// First processes of hosts that are gone, which can end only when the last of their namespace was waited for by
/// whoever has its [`Child`].
static LEFT: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

impl Host {
    /// Starts a program inside the host. It is killed when the host is dropped or this process ends, in whatever way,
    /// and everything that it started with it.
    ///
    /// Its process numbers are its own: it sees none but the host's. The [`Child`] has the one that this process sees.
    ///
    /// # Errors
    /// [`Error::HostGone`], [`Error::NoProcessNamespace`], or [`Error::System`] when the program cannot be started.
    pub fn spawn(&self, command: Command) -> Result<Child, Error> {
        let doing = format!("start {:?} in {:?}", command.get_program(), self.name());
        let started = {
            let mut processes = lock(self.processes());
            if processes.is_none() {
                let name = self.name().to_owned();
                *processes = Some(self.run(move || Processes::begin(&name))??);
            }
            processes.as_ref().and_then(|processes| processes.start(command))
        };
        let started = started.ok_or_else(|| Error::HostGone { host: self.name().to_owned() })?;
        started.map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            Error::system(doing, "execve", errno)
        })
    }
}

/// A program to be started, and where to say how that went.
type Order = (Command, Sender<io::Result<Child>>);

/// The processes of a host. Dropping it ends them.
pub(crate) struct Processes {
    /// `None` only while dropping.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Processes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Processes").finish_non_exhaustive()
    }
}

impl Processes {
    /// Makes the process namespace of the host whose thread calls.
    fn begin(host: &str) -> Result<Self, Error> {
        let (orders, inbox) = channel();
        let (ready, is_ready) = channel();
        let name = host.to_owned();
        let thread = Builder::new()
            .name(format!("starts {host}").chars().take(15).collect())
            .spawn(move || {
                let made = Nursery::open(&name);
                match made {
                    Ok(nursery) => {
                        let _ = ready.send(Ok(()));
                        nursery.serve(&inbox);
                    }
                    // Whoever asked waits below.
                    Err(error) => drop(ready.send(Err(error))),
                }
            })
            .map_err(|error| {
                let errno = error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw);
                Error::system(format!("start the thread for processes of {host:?}"), "clone", errno)
            })?;
        // From here on an early return waits for the thread.
        let processes = Self { orders: Some(orders), thread: Some(thread) };
        is_ready.recv().unwrap_or_else(|_| Err(Error::HostGone { host: host.to_owned() }))?;
        Ok(processes)
    }

    /// Starts a program; `None` when the thread is gone.
    fn start(&self, command: Command) -> Option<io::Result<Child>> {
        let (answer, outcome) = channel();
        self.orders.as_ref()?.send((command, answer)).ok()?;
        outcome.recv().ok()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's side: a process namespace and what was started in it.
struct Nursery {
    /// The first process of the namespace, as this process sees it.
    first: Pid,
    /// The connection to it; it ends when this is closed.
    connection: UnixStream,
    /// Descriptors of what was started and may still run.
    children: Vec<OwnedFd>,
}

impl Nursery {
    /// Moves the calling thread's future children to a process namespace and starts its first process.
    fn open(host: &str) -> Result<Self, Error> {
        reap_what_was_left();
        let refused = |call| {
            let host = host.to_owned();
            move |errno| Error::NoProcessNamespace { host, call, errno }
        };
        let (connection, other) = UnixStream::pair().map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            Error::system(format!("connect to the first process of {host:?}"), "socketpair", errno)
        })?;
        unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID)
            .map_err(refused("unshare(CLONE_NEWPID | CLONE_NEWNS)"))?;
        // No signal handler of this program may run in the copy of it.
        let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(refused("sigprocmask"))?;
        // SAFETY: the child calls `be_first` alone, which makes system calls only: it takes no lock that another
        // thread may have held at the fork, and allocates nothing.
        #[expect(unsafe_code, reason = "the first process of a namespace is made by fork")]
        let forked = unsafe { fork() };
        if let Ok(ForkResult::Child) = forked {
            be_first(&other);
        }
        let _ = mask.thread_set_mask();
        drop(other);
        let Ok(ForkResult::Parent { child: first }) = forked else {
            return Err(refused("fork")(forked.err().unwrap_or(Errno::EAGAIN)));
        };
        let mut nursery = Self { first, connection, children: Vec::new() };
        // It says when /proc and /sys are in place.
        match nursery.connection.read_exact(&mut [0]) {
            Ok(()) => Ok(nursery),
            Err(_) => Err(refused("fork")(Errno::ECHILD)),
        }
    }

    fn serve(mut self, inbox: &Receiver<Order>) {
        for (mut command, answer) in inbox {
            self.children.retain(|child| state_of(child) != ChildState::WaitedFor);
            let started = command.spawn();
            if let Ok(child) = &started {
                // Nobody can have waited for it yet, so the number is still its own.
                self.children.extend(u32::try_into(child.id()).ok().and_then(descriptor_of));
            }
            let _ = answer.send(started);
        }
        self.end();
    }

    /// Kills what runs and waits until it is gone.
    fn end(self) {
        let Self { first, connection, children } = self;
        drop(connection);
        let _ = kill(first, Signal::SIGKILL);
        let clock = Clock::start();
        for child in &children {
            loop {
                let left = PATIENCE.saturating_sub(clock.now().since_start());
                let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::ZERO);
                let outcome = poll(&mut [PollFd::new(child.as_fd(), PollFlags::POLLIN)], timeout);
                if outcome != Err(Errno::EINTR) {
                    break;
                }
            }
        }
        // The first process is gone when all others are. One that nobody waited for is there until somebody does.
        if children.iter().all(|child| state_of(child) == ChildState::WaitedFor) {
            while waitpid(first, None) == Err(Errno::EINTR) {}
        } else {
            lock(&LEFT).push(first);
        }
        reap_what_was_left();
    }
}

#[derive(PartialEq, Eq)]
enum ChildState {
    /// It runs, or it ended and nobody has waited for it.
    Ours,
    WaitedFor,
}

fn state_of(child: &OwnedFd) -> ChildState {
    let only_look = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    match waitid(Id::PIDFd(child.as_fd()), only_look) {
        Err(Errno::ECHILD) => ChildState::WaitedFor,
        _ => ChildState::Ours,
    }
}

/// A descriptor of a process (`pidfd_open`).
fn descriptor_of(process: libc::pid_t) -> Option<OwnedFd> {
    // SAFETY: the call takes two numbers; what it returns is a new descriptor, or -1.
    #[expect(unsafe_code, reason = "no safe binding among our crates")]
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, process, 0);
        let descriptor = libc::c_int::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
        Some(OwnedFd::from_raw_fd(descriptor))
    }
}

fn reap_what_was_left() {
    use nix::sys::wait::WaitStatus::StillAlive;
    lock(&LEFT).retain(|first| matches!(waitpid(*first, Some(WaitPidFlag::WNOHANG)), Ok(StillAlive)));
}

/// What is behind the lock; no panic can leave it half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The life of the first process: a copy of this one with one thread and its signals blocked. It holds no descriptor
/// but its end of the connection, so that it keeps nothing of the lab alive, and ends when the other end is closed.
///
/// Only what a signal handler may do is done here.
fn be_first(lab: &UnixStream) -> ! {
    // When the lab's thread ended before this, the connection says so.
    let _ = set_pdeathsig(Signal::SIGKILL);
    let _ = set_name(c"careof first");
    // Out of reach of the terminal.
    let _ = setsid();
    let _ = chdir(c"/");
    // SAFETY: ignoring a signal installs no handler.
    #[expect(unsafe_code, reason = "orphans are left to the kernel: nobody here waits for them")]
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    close_all_but(lab.as_raw_fd());
    // Mounts of the system still appear here, those made here appear nowhere else.
    let none: Option<&str> = None;
    if mount(none, c"/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none).is_ok() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        // Refused to an ordinary user in a container that hides parts of them; then the system's stay.
        let _ = mount(Some(c"proc"), c"/proc", Some(c"proc"), flags, none);
        let _ = mount(Some(c"sysfs"), c"/sys", Some(c"sysfs"), flags, none);
    }
    let _ = nix::unistd::write(lab, &[0]);
    while matches!(nix::unistd::read(lab, &mut [0]), Err(Errno::EINTR)) {}
    // SAFETY: the call does not return; nothing of the lab's is run at its end.
    #[expect(unsafe_code, reason = "std's exit would run what the lab registered")]
    unsafe {
        libc::_exit(0)
    }
}

fn close_all_but(kept: libc::c_int) {
    let kept = libc::c_uint::try_from(kept).unwrap_or(0);
    let ranges = [(0, kept.checked_sub(1)), (kept.saturating_add(1), Some(libc::c_uint::MAX))];
    for (first, last) in ranges {
        let Some(last) = last else { continue };
        // SAFETY: no descriptor of this copy but `kept` is used again.
        #[expect(unsafe_code, reason = "no safe binding among our crates")]
        unsafe {
            libc::syscall(libc::SYS_close_range, first, last, 0);
        }
    }
}
