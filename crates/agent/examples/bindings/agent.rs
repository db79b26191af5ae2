//! The daemon as a process.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use careof_base::Duration;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, SysconfVar, sysconf};

use crate::Options;
use crate::error::Error;
use crate::network::{AGENT, HOME_NETWORK, Network, home_address};
use crate::nodes::key;

/// Longer than any start takes.
const PATIENCE: Duration = Duration::from_secs(300);
pub(crate) const METRICS: (std::net::Ipv4Addr, u16) = (AGENT, 9434);

/// A running daemon. Dropping it kills it.
pub(crate) struct Agent {
    child: Child,
    program: PathBuf,
    notices: UnixDatagram,
    directory: PathBuf,
}

impl Agent {
    /// Starts it in its host, with what its former life has left.
    pub(crate) fn start(network: &Network, options: &Options) -> Result<Self, Error> {
        let directory = network.directory.path();
        let configuration = directory.join("home.toml");
        if !configuration.exists() {
            let file = File::options().write(true).create_new(true).mode(0o600).open(&configuration);
            let text = self::configuration(options);
            file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
                .map_err(Error::system("write the configuration"))?;
        }
        let program = options.agent.clone();
        if !program.is_file() {
            return Err(Error::NoAgent { program });
        }
        let notify = directory.join("notify");
        let _ = fs::remove_file(&notify);
        let notices = UnixDatagram::bind(&notify).map_err(Error::system("listen to the agent"))?;
        notices.set_read_timeout(Some(PATIENCE)).map_err(Error::system("listen to the agent"))?;
        let log = File::options().append(true).create(true).open(directory.join("log"));
        let mut command = Command::new(&program);
        command.arg(&configuration).env("NOTIFY_SOCKET", &notify).env_remove("JOURNAL_STREAM");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.map_err(Error::system("write a log"))?);
        let child = network.agent.spawn(command)?;
        Ok(Self { child, program, notices, directory: directory.to_owned() })
    }

    fn failed(&self, problem: String) -> Error {
        let log = fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.len().saturating_sub(20);
        Error::Agent { problem, log: lines.get(last..).unwrap_or_default().join("\n") }
    }

    /// Waits until it says that it serves.
    pub(crate) fn wait_ready(&self) -> Result<(), Error> {
        let mut buffer = [0; 256];
        loop {
            let length =
                self.notices.recv(&mut buffer).map_err(|_| self.failed("is not ready".to_owned()))?;
            if buffer.get(..length).unwrap_or_default().starts_with(b"READY=1") {
                return Ok(());
            }
        }
    }

    /// What `careof-agent status --json` says.
    pub(crate) fn status(&self) -> Result<Vec<u8>, Error> {
        let mut command = Command::new(&self.program);
        command.args(["status", "--json", "--socket"]).arg(self.directory.join("home.sock"));
        let output = command.output().map_err(Error::system("ask the agent"))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(self.failed(format!("gives no status: {}", String::from_utf8_lossy(&output.stderr))))
        }
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    /// Processor time it has taken.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Error> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.id()));
        let text = text.map_err(Error::system("read its processor time"))?;
        // Behind the name, which may hold spaces: state is the third field, utime the 14th, stime the 15th.
        let behind = text.rsplit_once(')').map(|(_, behind)| behind).unwrap_or_default();
        let ticks: u64 =
            behind.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
        let a_second = sysconf(SysconfVar::CLK_TCK).ok().flatten().unwrap_or(100);
        Ok(ticks as f64 / a_second as f64)
    }

    /// The most memory it had.
    pub(crate) fn peak_mib(&self) -> Result<f64, Error> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.id()));
        let text = text.map_err(Error::system("read its memory"))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kib.unwrap_or(0.0) / 1024.0)
    }

    fn signal(&self, signal: Signal) -> Result<(), Error> {
        let id = Pid::from_raw(i32::try_from(self.id()).unwrap_or_default());
        kill(id, signal).map_err(|errno| Error::System { doing: "end the agent", problem: errno.into() })
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(mut self) -> Result<(), Error> {
        self.signal(Signal::SIGKILL)?;
        self.child.wait().map(drop).map_err(Error::system("wait for the agent's end"))
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn terminate(mut self) -> Result<(), Error> {
        self.signal(Signal::SIGTERM)?;
        let status = self.child.wait().map_err(Error::system("wait for the agent's end"))?;
        if status.success() { Ok(()) } else { Err(self.failed(format!("ended with {status}"))) }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn configuration(options: &Options) -> String {
    let delivery = if options.proxy_arp { "interface = \"lan0\"" } else { "delivery = \"routed\"" };
    let (address, port) = METRICS;
    let mut text = format!(
        "role = \"home\"\naddress = \"{AGENT}\"\nhome_network = \"{HOME_NETWORK}\"\n{delivery}\n\
         max_bindings = {}\ncontrol = {{ socket = \"home.sock\" }}\nstore = {{ directory = \".\" }}\n\
         metrics = {{ listen = \"{address}:{port}\", allow_remote = true }}\n",
        options.nodes.max(1),
    );
    for node in 0..options.nodes {
        let key: String = key(node).iter().map(|byte| format!("{byte:02x}")).collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "[[mobile_node]]\nhome_address = \"{}\"\nspi = 256\nkey = \"{key}\"\n",
            home_address(node)
        );
    }
    text
}
