//! Flows that are programs: any program of the machine, run inside the hosts.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use careof_base::{Duration, Instant};
use careof_lab::{Clock, Error, Host, set_congestion_control};
use careof_plan::{NodeId, Topology};
use careof_scenario::{Flow, Programs, Scenario, Workload};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::{Signal as UnixSignal, kill};
use nix::unistd::Pid;

use crate::application::{Signal, Worker, answer};
use crate::error::WorldError;
use crate::network::Network;
use crate::report::{ApplicationEvent, Report};
use crate::tcp::KernelChoice;

/// Bytes kept of what a program prints, by stream; what comes behind is read and forgotten.
const KEPT: usize = 1 << 20;
/// How long a program that is told to end may take before it is killed.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often programs are looked after that say nothing.
const LOOK: u8 = 20;

/// What a program of a flow printed, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOutput {
    /// The flow.
    pub flow: String,
    /// `command` or `server`.
    pub which: &'static str,
    /// The words it was started with.
    pub words: Vec<String>,
    /// What it printed, the first MiB.
    pub stdout: Vec<u8>,
    /// What it complained about, the first MiB.
    pub stderr: Vec<u8>,
    /// How it ended: `exit status: 0`, `signal: 9 (SIGKILL)`, as std says it.
    pub ended: String,
    /// Whether it ended by itself with success, or was stopped by the scenario.
    pub is_success: bool,
    /// As a shell has it: its exit status, or 128 and the number of the signal that ended it.
    pub status: i32,
}

/// A program of the run's owner, in the place of the command of a flow: it has the standard streams of this process, and its words are
/// taken as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnProgram {
    /// The flow. Where that has a server, the program starts when the server has printed something.
    pub flow: String,
    /// The program and its arguments.
    pub words: Vec<String>,
    /// What its environment has more than that of this process.
    pub environment: Vec<(String, String)>,
}

/// Packages of Debian that have programs people run here, by program.
const PACKAGES: [(&str, &str); 16] = [
    ("curl", "curl"),
    ("wget", "wget"),
    ("iperf", "iperf"),
    ("iperf3", "iperf3"),
    ("nc", "netcat-openbsd"),
    ("ncat", "ncat"),
    ("netperf", "netperf"),
    ("netserver", "netperf"),
    ("nginx", "nginx-light"),
    ("nuttcp", "nuttcp"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("rsync", "rsync"),
    ("scp", "openssh-client"),
    ("socat", "socat"),
    ("ssh", "openssh-client"),
];

/// Refuses programs that are not there, before anything starts; a command in whose place the owner has a program of their
/// own is not looked for.
pub(crate) fn refuse_missing(scenario: &Scenario, own: Option<&OwnProgram>) -> Result<(), WorldError> {
    for (index, flow) in scenario.flows.iter().enumerate() {
        let Some(programs) = &flow.programs else { continue };
        let command = Some(&programs.command).filter(|_| own.is_none_or(|own| own.flow != flow.name));
        for (key, words) in [("command", command), ("server", programs.server.as_ref())] {
            let Some(program) = words.and_then(|words| words.first()) else { continue };
            look_for(format!("flow.{index}.{key}"), program)?;
        }
    }
    Ok(())
}

/// As [`refuse_missing`], of the owner's program.
pub(crate) fn refuse_missing_own(scenario: &Scenario, own: Option<&OwnProgram>) -> Result<(), WorldError> {
    let Some(own) = own else { return Ok(()) };
    let takes = |flow: &Flow| flow.name == own.flow && flow.workload == Workload::Command;
    if !scenario.flows.iter().any(takes) {
        return Err(WorldError::Unsupported {
            key: "flow".to_owned(),
            found: format!("{:?} as the place of a program", own.flow),
            remedy: "name a flow that has a command".to_owned(),
        });
    }
    own.words.first().map_or(Ok(()), |program| look_for("COMMAND".to_owned(), program))
}

fn look_for(key: String, program: &str) -> Result<(), WorldError> {
    if is_there(program) {
        return Ok(());
    }
    let package = PACKAGES.iter().find(|(name, _)| *name == program).map(|(_, package)| package);
    let remedy = package.map(|package| format!("sudo apt-get install {package}"));
    Err(WorldError::NoProgram { key, program: program.to_owned(), remedy })
}

fn is_there(program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return is_program(Path::new(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| is_program(&directory.join(program)))
}

/// Starts the thread that runs a flow's programs: the server now, the command when it is told.
pub(crate) fn start(
    (scenario, topology, network): (&Scenario, &Topology, &Network),
    (index, own): (usize, Option<&OwnProgram>),
    choice: &KernelChoice,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<Worker, WorldError> {
    let flow = &scenario.flows[index];
    let nodes =
        [flow.from, flow.to].map(|node| topology.find(&scenario.node(node).name).unwrap_or(NodeId(0)));
    for node in nodes {
        let congestion = choice.congestion.clone();
        network.host(node).run(move || set_congestion_control(&congestion))??;
    }
    let address =
        |name: &str| topology.find(name).map(|node| topology.address(topology.address_of(node)).to_string());
    let fill = |words: &[String]| -> Vec<String> {
        // What is in braces was looked up when the scenario was read.
        words.iter().map(|word| Programs::fill(word, address).unwrap_or_else(str::to_owned)).collect()
    };
    let programs = flow.programs.as_ref();
    let runner = Runner {
        index,
        name: flow.name.clone(),
        stop: stop_of(flow),
        command: match own {
            Some(own) => own.words.clone(),
            None => programs.map(|programs| fill(&programs.command)).unwrap_or_default(),
        },
        own: own.map(|own| own.environment.clone()),
        server: programs.and_then(|programs| programs.server.as_deref()).map(fill),
        hosts: Arc::clone(&network.hosts),
        nodes,
        clock,
        reports,
    };
    Ok(Worker::start(format!("programs {index}"), move |bell| {
        if let Err(error) = runner.run(&bell) {
            let _ = runner.reports.send(Report::Failed(error));
        }
    })?)
}

fn stop_of(flow: &Flow) -> Option<Instant> {
    flow.stop.map(|stop| Instant::ZERO + stop)
}

struct Runner {
    index: usize,
    name: String,
    stop: Option<Instant>,
    command: Vec<String>,
    /// The environment of the owner's program, if it is the command.
    own: Option<Vec<(String, String)>>,
    server: Option<Vec<String>>,
    hosts: Arc<Vec<Host>>,
    nodes: [NodeId; 2],
    clock: Clock,
    reports: Sender<Report>,
}

/// A program that runs.
struct Running {
    which: &'static str,
    words: Vec<String>,
    child: Child,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// When it was told to end.
    told: Option<Instant>,
    ended: Option<ExitStatus>,
}

impl Runner {
    fn run(&self, bell: &EventFd) -> Result<(), WorldError> {
        let mut running = Vec::new();
        if let Some(server) = &self.server {
            running.push(self.spawn("server", server, self.nodes[1])?);
        }
        let mut rings = 0;
        let (mut quits, mut is_due) = (false, false);
        while !quits || running.iter().any(|program| program.ended.is_none()) {
            // Once told to end it is rung for ever.
            let rung = wait((!quits).then_some(bell), &running);
            if rung {
                match answer(bell, &mut rings) {
                    Some(Signal::Open) => is_due = true,
                    Some(Signal::Quit) => quits = true,
                    None => {}
                }
            }
            let now = self.clock.now();
            let stops = quits || self.stop.is_some_and(|stop| stop <= now);
            for program in running.iter_mut().filter(|program| program.ended.is_none()) {
                program.read();
                self.look_after(program, now, stops);
            }
            if is_due && !quits && self.is_served(&running) {
                is_due = false;
                let text = self.command.join(" ");
                self.tell(ApplicationEvent::Opening { ends: None, text });
                running.push(self.spawn("command", &self.command, self.nodes[0])?);
            }
            let is_over =
                |which| running.iter().any(|program| program.which == which && program.ended.is_some());
            if is_over("command") {
                // What it was served by has nothing more to do.
                for program in running.iter_mut().filter(|program| program.ended.is_none()) {
                    self.look_after(program, now, true);
                }
            }
        }
        Ok(())
    }

    fn tell(&self, event: ApplicationEvent) {
        let at = self.clock.now();
        let _ = self.reports.send(Report::Application { flow: self.index, at, event });
    }

    /// Whether the command finds the server that it may ask. Programs of scenarios are started without a look at that.
    fn is_served(&self, running: &[Running]) -> bool {
        let has_spoken = |server: &Running| !server.stdout.is_empty() || !server.stderr.is_empty();
        let is_ready = |server: &Running| has_spoken(server) || server.ended.is_some();
        self.own.is_none() || running.iter().filter(|program| program.which == "server").all(is_ready)
    }

    fn spawn(&self, which: &'static str, words: &[String], node: NodeId) -> Result<Running, WorldError> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(WorldError::Flow { flow: self.name.clone(), problem: "no program".to_owned() });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        match self.own.as_ref().filter(|_| which == "command") {
            Some(environment) => {
                command.envs(environment.iter().map(|(name, value)| (name, value)));
            }
            None => {
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            }
        }
        let child = self.hosts[usize::from(node.0)].spawn(command)?;
        let nonblocking = |fd: std::os::fd::BorrowedFd<'_>| {
            fcntl(fd, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(|errno| Error::System {
                doing: "read what a program prints".to_owned(),
                call: "fcntl",
                errno,
            })
        };
        if let Some(stdout) = &child.stdout {
            nonblocking(stdout.as_fd())?;
        }
        if let Some(stderr) = &child.stderr {
            nonblocking(stderr.as_fd())?;
        }
        Ok(Running {
            which,
            words: words.to_vec(),
            child,
            stdout: Vec::new(),
            stderr: Vec::new(),
            told: None,
            ended: None,
        })
    }

    /// Notices that a program has ended, or sees to it when it is to.
    fn look_after(&self, program: &mut Running, now: Instant, stops: bool) {
        match program.child.try_wait() {
            Ok(Some(status)) => {
                program.read();
                program.ended = Some(status);
                self.tell(ApplicationEvent::ProgramEnded { which: program.which, how: status.to_string() });
                let output = ProgramOutput {
                    flow: self.name.clone(),
                    which: program.which,
                    words: program.words.clone(),
                    stdout: std::mem::take(&mut program.stdout),
                    stderr: std::mem::take(&mut program.stderr),
                    ended: status.to_string(),
                    is_success: status.success() || program.told.is_some(),
                    status: status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1),
                };
                let _ = self.reports.send(Report::Output(output));
            }
            Ok(None) if stops => {
                let told = *program.told.get_or_insert_with(|| {
                    let id = i32::try_from(program.child.id()).unwrap_or(i32::MAX);
                    // It may have ended just now.
                    let _ = kill(Pid::from_raw(id), UnixSignal::SIGTERM);
                    now
                });
                if now >= told + PATIENCE {
                    let _ = program.child.kill();
                }
            }
            Ok(None) | Err(_) => {}
        }
    }
}

impl Running {
    /// Reads what it has printed.
    fn read(&mut self) {
        read(&mut self.child.stdout, &mut self.stdout);
        read(&mut self.child.stderr, &mut self.stderr);
    }
}

/// Reads what is there, as much as is kept at most: somebody who prints without end must not keep the others waiting.
/// A stream that has ended is let go, as it would be ready for ever.
fn read(stream: &mut Option<impl Read>, kept: &mut Vec<u8>) {
    let mut buffer = [0; 8192];
    for _ in 0..KEPT / buffer.len() {
        let Some(open) = stream else { return };
        match open.read(&mut buffer) {
            Ok(count @ 1..) => {
                let room = KEPT.saturating_sub(kept.len()).min(count);
                kept.extend(buffer.iter().take(room));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => *stream = None,
        }
    }
}

/// Waits for the bell, where one is given, or for a program to print something, not for long; whether the bell was
/// rung.
fn wait(bell: Option<&EventFd>, running: &[Running]) -> bool {
    let mut fds: Vec<_> = bell.map(|bell| PollFd::new(bell.as_fd(), PollFlags::POLLIN)).into_iter().collect();
    for program in running.iter().filter(|program| program.ended.is_none()) {
        fds.extend(
            program.child.stdout.as_ref().map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)),
        );
        fds.extend(
            program.child.stderr.as_ref().map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)),
        );
    }
    match poll(&mut fds, PollTimeout::from(LOOK)) {
        Ok(_) | Err(Errno::EINTR) => bell.is_some() && fds.first().and_then(PollFd::any).unwrap_or(false),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_has_ended_is_not_waited_for() {
        let mut stream = Some(&b"all there is"[..]);
        let mut kept = Vec::new();
        read(&mut stream, &mut kept);
        assert_eq!((stream, kept.as_slice()), (None, &b"all there is"[..]));
    }

    #[test]
    fn reading_ends_where_printing_does_not() {
        let mut stream = Some(std::io::repeat(b'y'));
        let mut kept = Vec::new();
        for _ in 0..3 {
            read(&mut stream, &mut kept);
        }
        assert!(stream.is_some());
        assert_eq!(kept.len(), KEPT);
    }
}
