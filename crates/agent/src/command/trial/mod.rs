//! `careof-agent try`: a home agent and a mobile node with two links, on hosts of this process, and a download that goes on while the
//! mobile node moves from one link to the other. `docs/tutorial-agent.md` explains it, and `examples/try-it.sh` does the same by hand.
//!
//! The agents are this program, started once more on each host: what is tried is what runs on real hosts.

mod download;
mod files;
mod network;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use careof_lab::{Clock, Host, Realm};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use serde_json::Value;

use super::{Failure, status, write};
use download::Download;
use files::Files;
use network::Network;

/// How long an agent has for what takes it a moment; a machine that is busy takes longer than others.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the mobile node stays on its first link.
const BEFORE_THE_HANDOVER: Duration = Duration::from_secs(2);
/// Between two looks.
const TICK: Duration = Duration::from_millis(10);

/// Does it, and says what was waited for.
pub(super) fn run() -> Result<(), Failure> {
    // Before any thread: the right to make hosts takes a process with one.
    let realm = Realm::enter().map_err(|error| of_the_lab(&error))?;
    let signals = Signals::catch()?;
    let files = Files::make()?;
    let logs = files.directory().to_owned();
    let done = carry_out(&realm, &signals, &files);
    drop(files);
    match done {
        Ok(()) => {
            write(&format!("\nThe agents have ended. Their logs and configurations: {}\n", logs.display()))
        }
        Err(failure) if failure.status > INTERRUPTED => Err(failure),
        // Without a log there was no agent, and nothing to be kept.
        Err(failure) if !logs.join("home.log").exists() => {
            let _ = std::fs::remove_dir_all(&logs);
            Err(failure)
        }
        Err(mut failure) => {
            failure.text += &format!("\n  hint: what the agents logged is in {}", logs.display());
            Err(failure)
        }
    }
}

fn carry_out(realm: &Realm, signals: &Signals, files: &Files) -> Result<(), Failure> {
    let network = Network::make(realm).map_err(|error| of_the_lab(&error))?;
    write(
        "Three hosts in namespaces of this process: home, net and mobile, which has two links.\n\n\
         \x20              192.0.2.1 home agent        198.51.100.0/24\n\
         \x20   server ───── home ───────── net ──── careof-wifi ──── mobile node 192.0.2.10\n\
         \x20   192.0.2.1:8080                └───── careof-lte ──────┘\n\
         \x20                                       203.0.113.0/24\n\n",
    )?;
    let mut agents = Agents {
        home: Agent::start(&network.home, files, "home")?,
        mobile: Agent::start(&network.mobile, files, "mobile")?,
    };
    let clock = Clock::start();
    agents
        .wait_for("the registration of the mobile node", signals, |agents| agents.mobile.is_registered())?;
    write(&format!("The mobile node registered {} after the agents were started.\n", seconds(clock)))?;
    write(&agents.mobile.told("is registered"))?;

    let mut download = Download::start(&network).map_err(|error| went_wrong("start the download", &error))?;
    write(&format!(
        "\nA download of {} MB to 192.0.2.10 at {} MB/s; after {} s careof-wifi goes down.\n",
        Download::BYTES / 1_000_000,
        Download::BYTES_A_SECOND / 1_000_000,
        BEFORE_THE_HANDOVER.as_secs()
    ))?;
    let mut has_moved = false;
    while !download.is_done() {
        signals.check()?;
        agents.check()?;
        download.go_on().map_err(|error| went_wrong("carry the download", &error))?;
        if download.silence() > PATIENCE {
            let error = format!("the download stopped: nothing arrived for {} s", PATIENCE.as_secs());
            return Err(Failure::new(1, &error, None));
        }
        if !has_moved && download.age() >= BEFORE_THE_HANDOVER {
            has_moved = true;
            network.take_wifi_down().map_err(|error| of_the_lab(&error))?;
        }
        pause();
    }
    write(&format!(
        "All {} bytes arrived as they were sent, over one TCP connection. The longest wait for new ones was {} ms.\n",
        Download::BYTES,
        download.longest_silence().as_millis()
    ))?;
    for agent in [&agents.mobile, &agents.home] {
        write(&format!("\n{}", status::status(false, Some(&agent.socket))?))?;
    }
    agents.end(signals)
}

/// Both agents.
struct Agents {
    home: Agent,
    mobile: Agent,
}

impl Agents {
    /// Fails when one of them has ended.
    fn check(&mut self) -> Result<(), Failure> {
        self.home.check()?;
        self.mobile.check()
    }

    fn wait_for(
        &mut self,
        what: &str,
        signals: &Signals,
        mut is_done: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), Failure> {
        let clock = Clock::start();
        while !is_done(self) {
            signals.check()?;
            self.check()?;
            if clock.now().since_start() > PATIENCE {
                let error = format!("waited for {what} for {} s", PATIENCE.as_secs());
                return Err(Failure::new(1, &error, None));
            }
            pause();
        }
        Ok(())
    }

    /// Asks both to end, the mobile node first, so that the home agent can let it go, and waits until they have.
    fn end(mut self, signals: &Signals) -> Result<(), Failure> {
        for agent in [&mut self.mobile, &mut self.home] {
            agent.end(signals)?;
        }
        Ok(())
    }
}

/// An agent, which ends with its host.
struct Agent {
    name: &'static str,
    child: Child,
    socket: PathBuf,
}

impl Agent {
    fn start(host: &Host, files: &Files, name: &'static str) -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|error| went_wrong("find this program", &error))?;
        let log = files.log(name)?;
        let and_errors = log.try_clone().map_err(|error| went_wrong("open a log", &error))?;
        let mut command = Command::new(program);
        command.arg(files.configuration(name)).env_remove("NOTIFY_SOCKET");
        command.stdin(Stdio::null()).stdout(log).stderr(and_errors);
        let child = host.spawn(command).map_err(|error| of_the_lab(&error))?;
        Ok(Self { name, child, socket: files.socket(name) })
    }

    fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(Failure::new(1, &format!("the agent {} ended: {status}", self.name), None))
            }
            Err(error) => Err(went_wrong("look after an agent", &error)),
        }
    }

    /// Its status; an agent that is starting has none.
    fn status(&self) -> Value {
        status::read(&self.socket).unwrap_or_default()
    }

    fn is_registered(&self) -> bool {
        self.status()["registration"]["registered"] == true
    }

    /// The lines of its status with `words`.
    fn told(&self, words: &str) -> String {
        let status = status::status(false, Some(&self.socket)).unwrap_or_default();
        status.lines().filter(|line| line.contains(words)).map(|line| format!("{line}\n")).collect()
    }

    fn end(&mut self, signals: &Signals) -> Result<(), Failure> {
        let id = i32::try_from(self.child.id()).map(Pid::from_raw);
        let asked = id.map(|id| kill(id, Signal::SIGTERM));
        if !matches!(asked, Ok(Ok(()))) {
            return Err(Failure::new(1, &format!("cannot ask the agent {} to end", self.name), None));
        }
        let clock = Clock::start();
        loop {
            signals.check()?;
            match self.child.try_wait() {
                Ok(Some(status)) if status.success() => return Ok(()),
                Ok(None) if clock.now().since_start() < PATIENCE => pause(),
                Ok(Some(status)) => {
                    return Err(Failure::new(
                        1,
                        &format!("the agent {} ended with {status}", self.name),
                        None,
                    ));
                }
                Ok(None) => {
                    return Err(Failure::new(1, &format!("the agent {} does not end", self.name), None));
                }
                Err(error) => return Err(went_wrong("wait for an agent", &error)),
            }
        }
    }
}

/// The status of a command that a signal ended is the signal's number more, as shells have it.
const INTERRUPTED: u8 = 128;

/// Signals that ask this process to end: they are waited for, so that nothing is left behind.
struct Signals(SignalFd);

impl Signals {
    fn catch() -> Result<Self, Failure> {
        let wanted: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        wanted
            .thread_block()
            .and_then(|()| SignalFd::with_flags(&wanted, flags))
            .map(Self)
            .map_err(|errno| went_wrong("wait for signals", &errno))
    }

    fn check(&self) -> Result<(), Failure> {
        match self.0.read_signal() {
            Ok(None) => Ok(()),
            Ok(Some(signal)) => {
                let number = u8::try_from(signal.ssi_signo).unwrap_or_default();
                Err(Failure::new(
                    INTERRUPTED.saturating_add(number),
                    "interrupted; both hosts are gone",
                    None,
                ))
            }
            Err(errno) => Err(went_wrong("wait for signals", &errno)),
        }
    }
}

fn seconds(clock: Clock) -> String {
    format!("{:.1} s", clock.now().since_start().as_secs_f64())
}

fn of_the_lab(error: &careof_lab::Error) -> Failure {
    Failure::new(1, &error.to_string(), error.remedy())
}

fn went_wrong(doing: &str, error: &dyn Display) -> Failure {
    Failure::new(1, &format!("cannot {doing}: {error}"), None)
}

#[expect(clippy::disallowed_methods, reason = "a command that waits has nothing else to do")]
fn pause() {
    std::thread::sleep(TICK);
}

/// As an error of writing a file.
fn unwritten(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(1, &format!("cannot write {}: {error}", path.display()), Some("TMPDIR says where else"))
}
