//! Programs inside a host.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getpid, getppid};

use crate::error::Error;
use crate::namespace::Host;

impl Host {
    /// Starts a program inside the host. It is killed when the host is dropped or this process ends.
    ///
    /// # Errors
    /// [`Error::HostGone`], or [`Error::System`] when the program cannot be started.
    pub fn spawn(&self, mut command: Command) -> Result<Child, Error> {
        let doing = format!("start {:?} in {:?}", command.get_program(), self.name());
        let parent = getpid();
        // SAFETY: between fork and exec the closure makes three system calls and allocates nothing.
        #[expect(unsafe_code, reason = "std offers no other way to end a child with its parent")]
        unsafe {
            command.pre_exec(move || end_with(parent));
        }
        // The signal is tied to the thread that forks: the host's own, which lives as long as the host.
        self.run(move || command.spawn())?.map_err(|error| {
            let errno = error.raw_os_error().map_or(Errno::EIO, Errno::from_raw);
            Error::system(doing, "execve", errno)
        })
    }
}

/// Asks to be killed with the parent, which may be gone already.
fn end_with(parent: Pid) -> io::Result<()> {
    set_pdeathsig(Signal::SIGKILL)?;
    if getppid() == parent { Ok(()) } else { Err(Errno::ECHILD.into()) }
}
