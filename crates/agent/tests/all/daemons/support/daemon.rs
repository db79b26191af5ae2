//! `careof-agent` as a process of its own.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use careof_lab::Host;
use careof_testbed::MemoryGroup;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{wait_for, wait_until};

/// The program.
fn careof_agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_careof-agent"));
    command.stdin(Stdio::null()).env_remove("NOTIFY_SOCKET");
    command
}

/// The program, by a shell that waits for a line before: hosts do not see the cgroups of the machine.
fn careof_agent_on_call() -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "read line && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_careof-agent")]);
    command.stdin(Stdio::piped()).env_remove("NOTIFY_SOCKET");
    command
}

/// A daemon with its configuration. Dropping it kills it and, when a test fails, shows its log.
#[derive(Debug)]
pub(crate) struct Daemon {
    name: String,
    configuration: PathBuf,
    log: PathBuf,
    /// The file with the members of its memory cgroup.
    group: Option<PathBuf>,
    child: Option<Child>,
}

impl Daemon {
    /// Starts the daemon `name` in `host`, with `text` and where it is asked as its configuration, and waits until it
    /// answers.
    pub(crate) fn start(host: &Host, directory: &Path, name: &str, text: &str) -> Self {
        let mut daemon = Self::new(directory, name);
        daemon.configure(text);
        daemon.start_again(host);
        daemon
    }

    /// As [`Self::start`], in a memory cgroup.
    pub(crate) fn start_in(
        group: &MemoryGroup,
        host: &Host,
        directory: &Path,
        name: &str,
        text: &str,
    ) -> Self {
        let mut daemon = Self::new(directory, name);
        daemon.group = Some(group.members());
        daemon.configure(text);
        daemon.start_again(host);
        daemon
    }

    fn new(directory: &Path, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            configuration: directory.join(format!("{name}.toml")),
            log: directory.join(format!("{name}.log")),
            group: None,
            child: None,
        }
    }

    /// Writes another configuration; it counts from the next start, or `SIGHUP`.
    pub(crate) fn configure(&self, text: &str) {
        // It holds keys: the daemon does not take it from a file that everybody can read.
        let _ = fs::remove_file(&self.configuration);
        let file = File::options().write(true).create_new(true).mode(0o600).open(&self.configuration);
        let service = format!(
            "{text}\n[control]\nsocket = \"{}\"\n[log]\nlevel = \"debug\"\n",
            self.socket().display()
        );
        std::io::Write::write_all(&mut file.unwrap(), service.as_bytes()).unwrap();
    }

    /// Starts it again with what is left of its former life, and waits until it answers.
    pub(crate) fn start_again(&mut self, host: &Host) {
        assert!(self.child.is_none(), "{} runs already", self.name);
        let log = File::options().append(true).create(true).open(&self.log).unwrap();
        let mut command = if self.group.is_some() { careof_agent_on_call() } else { careof_agent() };
        command.arg(&self.configuration).stdout(log.try_clone().unwrap()).stderr(log);
        let mut child = host.spawn(command).unwrap();
        if let Some(members) = &self.group {
            fs::write(members, child.id().to_string()).unwrap();
            child.stdin.take().unwrap().write_all(b"\n").unwrap();
        }
        self.child = Some(child);
        wait_until(&format!("the daemon {:?} answers", self.name), || {
            self.assert_running();
            self.asker().output().unwrap().status.success()
        });
    }

    /// Fails when the daemon has ended.
    pub(crate) fn assert_running(&mut self) {
        let child = self.child.as_mut().unwrap();
        if let Some(status) = child.try_wait().unwrap() {
            panic!("the daemon {:?} ended: {status}", self.name);
        }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.id().try_into().unwrap()), signal).unwrap();
    }

    /// Kills it, and what it held is as if its host had lost power.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        let status = self.wait();
        assert_eq!(status.signal(), Some(libc_number(Signal::SIGKILL)), "{status}");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn terminate(&mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.wait();
        assert!(status.success(), "the daemon {:?} ended with {status}", self.name);
    }

    /// Whether it runs still. If not, it can be [started again](Self::start_again).
    pub(crate) fn is_running(&mut self) -> bool {
        let has_ended = self.child.as_mut().is_none_or(|child| child.try_wait().unwrap().is_some());
        if has_ended {
            self.child = None;
        }
        !has_ended
    }

    fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().unwrap();
        wait_for(&format!("the daemon {:?} ends", self.name), || child.try_wait().unwrap())
    }

    /// Its control socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.configuration.with_extension("sock")
    }

    /// `careof-agent status --json`, to be run.
    pub(crate) fn asker(&self) -> Command {
        let mut command = careof_agent();
        command.args(["status", "--json", "--socket"]).arg(self.socket());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// `careof-agent switch`: has a mobile node move to an interface.
    pub(crate) fn switch(&self, interface: &str) {
        let mut command = careof_agent();
        let output = command.args(["switch", interface, "--socket"]).arg(self.socket()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// `careof-agent drop`: has a home agent end the bindings of a mobile node. What it says where it cannot.
    pub(crate) fn drop_mobile_node(&self, home_address: &str) -> Result<(), String> {
        let mut command = careof_agent();
        let output = command.args(["drop", home_address, "--socket"]).arg(self.socket()).output().unwrap();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// What `careof-agent status` says to people.
    pub(crate) fn page(&self) -> String {
        let output = careof_agent().args(["status", "--socket"]).arg(self.socket()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Of a mobile node: waits until the path through an interface is known to work.
    #[track_caller]
    pub(crate) fn wait_for_path(&self, interface: &str) {
        wait_until(&format!("the path through {interface} answers"), || {
            self.path(interface)["state"] == "alive"
        });
    }

    /// Of a mobile node: what is known of the path through an interface.
    pub(crate) fn path(&self, interface: &str) -> Value {
        let status = self.status();
        let interfaces = status["interfaces"].as_array().unwrap().iter();
        interfaces.clone().find(|known| known["name"] == interface).unwrap()["path"].clone()
    }

    /// How many paths of a tunnel over several work, as this end has it.
    pub(crate) fn working_paths(&self) -> usize {
        let status = self.status();
        let paths = status["multipath"][0]["paths"].as_array().cloned().unwrap_or_default();
        paths.iter().filter(|path| path["state"] == "alive").count()
    }

    /// Waits until so many paths of a tunnel over several work.
    #[track_caller]
    pub(crate) fn wait_for_working_paths(&self, count: usize) {
        wait_until(&format!("{:?} has {count} paths", self.name), || self.working_paths() == count);
    }

    /// What `careof-agent status --json` says.
    pub(crate) fn status(&self) -> Value {
        let output = self.asker().output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{:?} gives no status: {told}", self.name);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&output.stdout)))
    }

    /// One of its counters; what was never counted is 0.
    pub(crate) fn counter(&self, name: &str) -> u64 {
        let status = self.status();
        assert!(status["counters"].is_object(), "{status}");
        status["counters"][name].as_u64().unwrap_or(0)
    }

    /// The sum of the counters whose names start so.
    pub(crate) fn counters(&self, start: &str) -> u64 {
        let status = self.status();
        let counters = status["counters"].as_object().unwrap();
        counters
            .iter()
            .filter(|(name, _)| name.starts_with(start))
            .map(|(_, value)| value.as_u64().unwrap())
            .sum()
    }

    /// Of a mobile node: the interface through which it is registered.
    pub(crate) fn registered_on(&self) -> Option<String> {
        let registration = &self.status()["registration"];
        let registered = registration["registered"].as_bool().unwrap();
        registered.then(|| registration["interface"].as_str().unwrap().to_owned())
    }

    /// Waits until a mobile node is registered through an interface.
    #[track_caller]
    pub(crate) fn wait_for_registration(&self, interface: &str) {
        wait_until(&format!("{:?} is registered through {interface}", self.name), || {
            self.registered_on().as_deref() == Some(interface)
        });
    }

    /// Of a home agent: how many bindings it has.
    pub(crate) fn bindings(&self) -> usize {
        self.status()["bindings"].as_array().unwrap().len()
    }

    /// What it has logged in all its lives.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let last = &lines[lines.len().saturating_sub(60)..];
            eprintln!("--- the end of the log of {:?} ---\n{}\n---", self.name, last.join("\n"));
        }
    }
}

const fn libc_number(signal: Signal) -> i32 {
    signal as i32
}
