//! The daemon: one agent, served from one event loop.
//!
//! The loop waits for four things: the carrier, signals, the control socket and the metrics. Each is a descriptor of
//! its own; none of them waits for a peer, so none holds up the others.

mod control;
mod http;
mod listeners;
mod log;
mod metrics;
mod parameter_file;
mod report;
mod server;
mod throttle;

use std::fs::File;
use std::io::Read as _;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use careof_base::{Duration, Instant, SecretStream};
use careof_document::error::DocumentErrors;
use careof_lab::Clock;
use careof_lab::capabilities::{self, Capability};
use careof_mobility::Notice;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sd_notify::NotifyState;
use serde::Serialize;
use serde_json::json;

use crate::config::{Configuration, Format};
use crate::store::{self, Ipv6Store, Store};
use crate::{AnySetup, Carrier, Hooks, Role, Status};

pub(crate) use control::{Answer, Request};

use control::Control;
use http::Http;
use listeners::{ControlSocket, ListenError, MetricsSocket};
use log::Log;
use metrics::Tally;
use parameter_file::ParameterFile;
use report::Reporter;
use server::Server;

/// How long a mobile node that ends waits for the home agent to let it go.
const FAREWELL: Duration = Duration::from_secs(5);
/// Mobile nodes whose bindings or visitor entries are in one answer to `status`: a few milliseconds' work.
const STATUS_PART: usize = 1000;
/// Problems of a configuration that are told one by one.
const MOST_PROBLEMS: usize = 20;

/// Why the daemon did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DaemonError {
    /// The configuration is none.
    #[error(transparent)]
    Configuration(#[from] DocumentErrors),
    /// The agent could not be carried, or not any longer.
    #[error(transparent)]
    Carrier(#[from] crate::Error),
    /// The bindings cannot be kept.
    #[error(transparent)]
    Store(#[from] store::OpenError),
    /// Nobody could ask.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// Kernel parameters could not be set back after a crash.
    #[error("cannot write down former kernel parameters in {path}: {problem}", path = .path.display())]
    Parameters {
        /// Where.
        path: PathBuf,
        /// What is in the way.
        problem: std::io::Error,
    },
    /// The operating system refused.
    #[error("cannot {doing}: {errno}")]
    System {
        /// What was asked for.
        doing: &'static str,
        /// What it said.
        errno: Errno,
    },
}

impl DaemonError {
    /// What would help.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Carrier(error) => error.remedy().map(str::to_owned),
            Self::Store(error) => error.remedy.clone(),
            Self::Listen(error) => error.remedy.clone(),
            Self::Parameters { path, .. } => Some(format!("move away {}", path.display())),
            Self::Configuration(_) | Self::System { .. } => None,
        }
    }

    /// Whether starting again would not help before somebody did something.
    pub(crate) const fn is_lasting(&self) -> bool {
        matches!(self, Self::Configuration(_) | Self::Store(_))
    }
}

fn system(doing: &'static str) -> impl FnOnce(Errno) -> DaemonError {
    move |errno| DaemonError::System { doing, errno }
}

fn io(doing: &'static str) -> impl FnOnce(std::io::Error) -> DaemonError {
    move |error| DaemonError::System {
        doing,
        errno: error.raw_os_error().map_or(Errno::EIO, Errno::from_raw),
    }
}

/// How the daemon goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// It was asked to end, and waits for the deregistration to be answered, but not longer than until then.
    Leaving(Instant),
    Over,
}

/// What the descriptors of the loop are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Carrier = 0,
    Signals = 1,
    Control = 2,
    Metrics = 3,
}

const SOURCES: [Source; 4] = [Source::Carrier, Source::Signals, Source::Control, Source::Metrics];

/// One agent with everything around it.
#[derive(Debug)]
struct Daemon {
    file: PathBuf,
    configuration: Configuration,
    clock: Clock,
    epoll: Epoll,
    signals: SignalFd,
    carrier: Carrier,
    control: Server<ControlSocket>,
    metrics: Option<Server<MetricsSocket>>,
    log: Log,
    reporter: Reporter,
    tally: Tally,
    /// What was wrong with the file when it was read last; empty when it is in force.
    rejected: Vec<String>,
    /// What the host refused last, as it was told.
    problem: Option<String>,
    /// Addresses that the host lacks, as it was told.
    missing: Vec<IpAddr>,
    /// Why the store takes nothing, as it was told.
    store_problem: Option<String>,
    /// systemd wants to hear from us that often.
    watchdog: Option<(Duration, Instant)>,
    phase: Phase,
    /// It was told that the agent serves.
    is_ready: bool,
}

/// Runs the agent that the configuration in `file` describes, until it is told to end.
///
/// # Errors
/// [`DaemonError`]; what was changed in the host has been put back.
pub(crate) fn run(file: &Path) -> Result<(), DaemonError> {
    let configuration = Configuration::load(file)?;
    let log = Log::start(configuration.service.level, configuration.service.format);
    let mut daemon = Daemon::start(file, configuration, log)?;
    let outcome = daemon.serve();
    daemon.end(outcome)
}

fn signals() -> Result<SignalFd, DaemonError> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        mask.add(signal);
    }
    mask.thread_block().map_err(system("take signals"))?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
        .map_err(system("take signals"))
}

/// Chance that nobody can foresee: identifications and nonces come from it.
fn chance() -> Result<SecretStream, DaemonError> {
    let mut seed = [0; SecretStream::SEED];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut seed))
        .map_err(io("read /dev/urandom"))?;
    Ok(SecretStream::new(seed))
}

impl Daemon {
    fn start(file: &Path, configuration: Configuration, log: Log) -> Result<Self, DaemonError> {
        let service = &configuration.service;
        let clock = Clock::start();
        let signals = signals()?;
        // First of all, so that an agent that is started twice does not take the host away from itself.
        let control =
            Server::new(ControlSocket::open(&service.control)?).map_err(io("serve the control socket"))?;
        let metrics = match service.metrics {
            Some(address) => Some(Server::new(MetricsSocket::open(address)?).map_err(io("serve metrics"))?),
            None => None,
        };
        let mut hooks = Hooks::default();
        match (configuration.store(), &configuration.setup) {
            (Some(path), AnySetup::V4(_)) => hooks.store = Some(Box::new(Store::open(&path)?)),
            (Some(path), AnySetup::V6(_)) => hooks.ipv6_store = Some(Box::new(Ipv6Store::open(&path)?)),
            (Some(_), AnySetup::Relay(_)) | (None, _) => {}
        }
        let parameters = ParameterFile::beside(&service.control);
        let former = ParameterFile::open(&parameters)
            .map_err(|problem| DaemonError::Parameters { path: parameters, problem })?;
        hooks.parameters = Some(Box::new(former));
        let carrier = Carrier::open(configuration.setup.clone(), clock, chance()?, hooks)?;
        // What is open stays open; from here on this is all that is needed.
        capabilities::keep_only(&[Capability::NetAdmin, Capability::NetRaw]).map_err(crate::Error::from)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system("wait for several things"))?;
        let watchdog = sd_notify::watchdog_enabled().map(|span| (span / 2, clock.now()));
        let mut daemon = Self {
            file: file.to_owned(),
            configuration,
            clock,
            epoll,
            signals,
            carrier,
            control,
            metrics,
            log,
            reporter: Reporter::default(),
            tally: Tally::default(),
            rejected: Vec::new(),
            problem: None,
            missing: Vec::new(),
            store_problem: None,
            watchdog,
            phase: Phase::Running,
            is_ready: false,
        };
        daemon.watch()?;
        let role = daemon.carrier.role().name();
        let metrics = daemon.metrics.as_ref().and_then(|server| server.listener().address());
        tracing::info!(
            role,
            version = env!("CARGO_PKG_VERSION"),
            configuration = %daemon.file.display(),
            control = %daemon.configuration.service.control.display(),
            metrics = metrics.map(tracing::field::display),
            "Agent started"
        );
        match daemon.configuration.setup.missing_interfaces() {
            Ok(names) if names.is_empty() => {}
            Ok(names) => tracing::warn!(
                interfaces = names.join(", "),
                "This host has no such interface: waiting for it"
            ),
            Err(error) => tracing::warn!(%error, "Cannot see which interfaces this host has"),
        }
        daemon.take_problem(clock.now());
        Ok(daemon)
    }

    /// Says once that the agent serves. A home agent answers and tunnels from the beginning; what its former life had is in the
    /// host a little later.
    fn tell_ready(&mut self) {
        if self.is_ready || self.carrier.is_restoring() {
            return;
        }
        self.is_ready = true;
        let restored = self.carrier.restored();
        if restored > 0 {
            tracing::info!(bindings = restored, "Bindings restored");
        }
        notify(&[NotifyState::Ready]);
    }

    fn watch(&self) -> Result<(), DaemonError> {
        let event = |source: Source| EpollEvent::new(EpollFlags::EPOLLIN, source as u64);
        let add = |descriptor: std::os::fd::BorrowedFd<'_>, source| {
            self.epoll.add(descriptor, event(source)).map_err(system("wait for several things"))
        };
        add(self.carrier.as_fd(), Source::Carrier)?;
        add(self.signals.as_fd(), Source::Signals)?;
        add(self.control.as_fd(), Source::Control)?;
        if let Some(metrics) = &self.metrics {
            add(metrics.as_fd(), Source::Metrics)?;
        }
        Ok(())
    }

    /// Serves until it is told to end.
    fn serve(&mut self) -> Result<(), DaemonError> {
        loop {
            self.tell_ready();
            let ready = self.wait()?;
            for source in SOURCES {
                // Others may have something to do by their deadline although nothing came.
                let came = ready.contains(&source);
                match source {
                    Source::Carrier if came => self.carrier.turn()?,
                    Source::Signals if came => self.take_signals(),
                    Source::Control => self.answer_control(),
                    Source::Metrics => self.answer_metrics(),
                    _ => {}
                }
            }
            self.take_events();
            let now = self.clock.now();
            if ready.contains(&Source::Carrier) {
                self.take_problem(now);
            }
            self.reporter.settle(now);
            self.tally.suppressed_lines = self.reporter.suppressed();
            if let Some((every, next)) = &mut self.watchdog
                && *next <= now
            {
                *next = now + *every;
                notify(&[NotifyState::Watchdog]);
            }
            match self.phase {
                Phase::Running => {}
                Phase::Leaving(until) if self.carrier.is_registered() && now < until => {}
                Phase::Leaving(_) => {
                    if self.carrier.is_registered() {
                        tracing::warn!("Deregistration unanswered; the binding ends with its lifetime");
                    }
                    return Ok(());
                }
                Phase::Over => return Ok(()),
            }
        }
    }

    /// Waits for something to do; which sources have it.
    fn wait(&self) -> Result<Vec<Source>, DaemonError> {
        let metrics = self.metrics.as_ref().and_then(Server::next_timeout);
        let leaving = match self.phase {
            Phase::Leaving(until) => Some(until),
            Phase::Running | Phase::Over => None,
        };
        let deadlines = [
            self.control.next_timeout(),
            metrics,
            self.reporter.next_timeout(),
            self.watchdog.map(|(_, next)| next),
            leaving,
        ];
        let timeout = match deadlines.into_iter().flatten().min() {
            None => EpollTimeout::NONE,
            Some(deadline) => {
                // Rounded up: to be early would be to be here again at once.
                let millis = deadline.saturating_duration_since(self.clock.now()).as_millis() + 1;
                EpollTimeout::try_from(millis.min(1_000_000)).unwrap_or(EpollTimeout::ZERO)
            }
        };
        let mut events = [EpollEvent::empty(); SOURCES.len()];
        match self.epoll.wait(&mut events, timeout) {
            Ok(count) => {
                let ready = events.iter().take(count).map(EpollEvent::data);
                let source = |token| SOURCES.into_iter().find(|source| *source as u64 == token);
                Ok(ready.filter_map(source).collect())
            }
            Err(Errno::EINTR) => Ok(Vec::new()),
            Err(errno) => Err(DaemonError::System { doing: "wait for several things", errno }),
        }
    }

    fn take_events(&mut self) {
        // The carrier keeps a bounded number, and what is too much for the log is left out there.
        while let Some((at, event)) = self.carrier.poll_event() {
            self.tally.count(&event);
            self.reporter.event(at, &self.carrier, &event);
        }
        while let Some((at, event)) = self.carrier.poll_multipath_event() {
            self.reporter.multipath(at, &event);
        }
        while let Some((at, event)) = self.carrier.poll_cluster_event() {
            self.reporter.cluster(at, &event);
        }
        while let Some((at, event)) = self.carrier.poll_ipv6_event() {
            self.tally.count_ipv6(&event);
            self.reporter.ipv6_event(at, &self.carrier, &event);
        }
    }

    /// Tells what could be survived, once.
    fn take_problem(&mut self, now: Instant) {
        let problem = self.carrier.last_problem();
        if let Some(problem) = problem.as_deref().filter(|problem| self.problem.as_deref() != Some(problem)) {
            self.reporter.problem(now, problem);
        }
        self.problem = problem;
        let missing = self.carrier.missing_addresses();
        if missing != self.missing {
            self.reporter.missing(now, missing);
            self.missing = missing.to_vec();
        }
        let store = self.carrier.store_problem().map(ToString::to_string);
        if store != self.store_problem {
            self.reporter.store(now, store.as_deref());
            self.store_problem = store;
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let number = i32::try_from(signal.ssi_signo).unwrap_or_default();
            match Signal::try_from(number) {
                Ok(Signal::SIGHUP) => self.reload(),
                Ok(signal) => self.leave(signal),
                Err(_) => {}
            }
        }
    }

    /// Begins to end; told again, ends without waiting.
    fn leave(&mut self, signal: Signal) {
        if self.phase != Phase::Running {
            tracing::info!(signal = signal.as_str(), "Ending at once");
            self.phase = Phase::Over;
            return;
        }
        tracing::info!(signal = signal.as_str(), "Ending");
        notify(&[NotifyState::Stopping]);
        self.phase = Phase::Over;
        if self.carrier.role() != Role::Mobile {
            return;
        }
        // Also where no registration is known to have been accepted: the home agent may have a binding, and its reply
        // or the way here be lost. Only a reply that can come is waited for.
        match self.carrier.deregister() {
            Ok(()) if self.carrier.is_registered() => {
                self.phase = Phase::Leaving(self.clock.now() + FAREWELL)
            }
            Ok(()) => {}
            Err(error) => tracing::error!(%error, "Cannot deregister"),
        }
    }

    /// Reads the configuration again. What is wrong with it leaves the old one in force.
    fn reload(&mut self) {
        notify(&[NotifyState::Reloading]);
        match Configuration::load(&self.file) {
            Ok(configuration) => self.apply(configuration),
            Err(errors) => {
                let mut problems: Vec<String> =
                    errors.0.iter().take(MOST_PROBLEMS).map(ToString::to_string).collect();
                if let Some(more) = errors.0.len().checked_sub(MOST_PROBLEMS).filter(|more| *more > 0) {
                    let file = self.file.display();
                    problems
                        .push(format!("error: {more} more\n  hint: `careof-agent check {file}` lists all"));
                }
                self.reject(problems);
            }
        }
        notify(&[NotifyState::Ready]);
    }

    fn reject(&mut self, problems: Vec<String>) {
        for problem in &problems {
            let problem =
                problem.strip_prefix("error: ").unwrap_or(problem).replace("\n  hint: ", "; hint: ");
            tracing::error!(problem, "Configuration rejected");
        }
        tracing::warn!(configuration = %self.file.display(), "The old configuration stays in force");
        self.tally.rejected_reloads += 1;
        self.rejected = problems;
    }

    fn apply(&mut self, new: Configuration) {
        if self.configuration.setup == new.setup {
            tracing::debug!("The agent's own configuration is as before");
        } else if let Err(error) = self.carrier.reconfigure(new.setup.clone()) {
            let hint = error.remedy().map(|hint| format!("\n  hint: {hint}")).unwrap_or_default();
            return self.reject(vec![format!("{error}{hint}")]);
        }
        let old = &self.configuration.service;
        if old.level != new.service.level {
            self.log.set_level(new.service.level);
        }
        if old.format != new.service.format {
            let format = match new.service.format {
                Format::Text => "text",
                Format::Json => "json",
            };
            tracing::warn!(format, "The format of the log changes when the agent is started again");
        }
        if self.configuration.store() != new.store() {
            tracing::warn!("The place of the store changes when the agent is started again");
        }
        let mut problems = Vec::new();
        let mut service = new.service;
        if old.control != service.control {
            match ControlSocket::open(&service.control).map_err(DaemonError::from).and_then(serve_control) {
                Ok(server) => self.control = server,
                Err(error) => {
                    problems.push(error.to_string());
                    service.control.clone_from(&self.configuration.service.control);
                }
            }
        }
        if self.configuration.service.metrics != service.metrics {
            match service.metrics.map(serve_metrics).transpose() {
                Ok(server) => self.metrics = server,
                Err(error) => {
                    problems.push(error.to_string());
                    service.metrics = self.configuration.service.metrics;
                }
            }
        }
        service.store.clone_from(&self.configuration.service.store);
        self.configuration = Configuration { setup: new.setup, service };
        // Servers that were replaced took themselves out when they were closed.
        self.rewatch();
        if problems.is_empty() {
            tracing::info!(configuration = %self.file.display(), "Configuration read again");
            self.tally.reloads += 1;
            self.rejected.clear();
        } else {
            self.reject(problems);
        }
    }

    fn rewatch(&self) {
        for (descriptor, source) in [
            Some((self.control.as_fd(), Source::Control)),
            self.metrics.as_ref().map(|one| (one.as_fd(), Source::Metrics)),
        ]
        .into_iter()
        .flatten()
        {
            match self.epoll.add(descriptor, EpollEvent::new(EpollFlags::EPOLLIN, source as u64)) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => tracing::error!(error = %errno, "Cannot serve"),
            }
        }
    }

    fn answer_control(&mut self) {
        let now = self.clock.now();
        let Self { control, carrier, metrics, file, rejected, .. } = self;
        let metrics = metrics.as_ref().and_then(|server| server.listener().address());
        control.turn::<Control>(now, &mut |request| {
            match request {
                Request::Status { from } => {
                    return Answer::done_line(&Described {
                        status: carrier.status_part(from, STATUS_PART),
                        version: env!("CARGO_PKG_VERSION"),
                        pid: std::process::id(),
                        configuration: file.display().to_string(),
                        configuration_problems: rejected,
                        metrics: metrics.map(|address| address.to_string()),
                    });
                }
                Request::Switch { interface } => switch(carrier, &interface),
                Request::Drop { address } => drop_mobile_node(carrier, address),
            }
            .line()
        });
        self.tally.refused_control_clients = control.refused();
    }

    fn answer_metrics(&mut self) {
        let now = self.clock.now();
        let Self { metrics: Some(metrics), carrier, tally, configuration, .. } = self else { return };
        let most = configuration.service.tunnels_up_to;
        let mut counted = tally.clone();
        counted.refused_metrics_clients = metrics.refused();
        // Whoever asks in the same turn is told the same.
        let mut told = None;
        metrics.turn::<Http>(now, &mut |request| {
            request.answer(told.get_or_insert_with(|| metrics::exposition(carrier.overview(most), &counted)))
        });
        self.tally.refused_metrics_clients = metrics.refused();
    }

    /// Puts the host back as it was.
    fn end(self, outcome: Result<(), DaemonError>) -> Result<(), DaemonError> {
        if let Err(error) = &outcome {
            tracing::error!(%error, "The agent cannot go on");
        }
        let mut carrier = self.carrier;
        while let Some((_, _)) = carrier.poll_event() {}
        let closed = carrier.close();
        match &closed {
            Ok(()) => tracing::info!("Routes, rules and addresses put back; ended"),
            Err(error) => tracing::error!(%error, "Not everything could be put back"),
        }
        outcome.and(closed.map_err(DaemonError::from))
    }
}

fn serve_control(socket: ControlSocket) -> Result<Server<ControlSocket>, DaemonError> {
    Server::new(socket).map_err(io("serve the control socket"))
}

fn serve_metrics(address: SocketAddr) -> Result<Server<MetricsSocket>, DaemonError> {
    Server::new(MetricsSocket::open(address)?).map_err(io("serve metrics"))
}

fn switch(carrier: &mut Carrier, interface: &str) -> Answer {
    let role = carrier.role();
    if role != Role::Mobile {
        return Answer::failed(
            format!("a {} does not move", role.name()),
            Some("ask a mobile node: --socket PATH"),
        );
    }
    if carrier.interface_statuses().iter().any(|known| known.name == interface && !known.up) {
        let hint = format!("`ip link show {interface}` shows why: it is missing, down or without a carrier");
        return Answer::failed(format!("{interface} is down"), Some(&hint));
    }
    match carrier.switch_to(interface, Notice::Ahead(Duration::ZERO)) {
        Ok(()) => Answer::Done { ok: json!({ "switching_to": interface }) },
        Err(error @ crate::Error::UnknownInterface { .. }) => {
            let names: Vec<_> =
                carrier.interface_statuses().into_iter().map(|interface| interface.name).collect();
            Answer::failed(error.to_string(), Some(&format!("it has {}", names.join(", "))))
        }
        Err(error) => Answer::failed(error.to_string(), error.remedy()),
    }
}

fn drop_mobile_node(carrier: &mut Carrier, address: IpAddr) -> Answer {
    match carrier.drop_mobile_node(address) {
        Ok(0) => Answer::failed(
            format!("nothing is held for {address}"),
            Some("`careof-agent status` lists the home addresses for which there is something"),
        ),
        Ok(count) => Answer::Done { ok: json!({ "dropped": count }) },
        Err(error @ crate::Error::NotForThisRole { .. }) => Answer::failed(
            error.to_string(),
            Some("ask a home or foreign agent, or a mobility anchor point: --socket PATH"),
        ),
        Err(error) => Answer::failed(error.to_string(), error.remedy()),
    }
}

/// The status with what the daemon adds.
#[derive(Serialize)]
struct Described<'a> {
    #[serde(flatten)]
    status: Status,
    version: &'static str,
    pid: u32,
    configuration: String,
    configuration_problems: &'a [String],
    metrics: Option<String>,
}

/// Tells systemd, if it started us and wants to know.
fn notify(states: &[NotifyState<'_>]) {
    // It does not listen, then; that is no reason to end.
    let _ = sd_notify::notify(states);
}
