//! The applications at both ends of a flow, over ordinary sockets.
//!
//! One thread a flow drives both ends by the same [`Workload`] as the simulator. The sockets belong to the hosts they
//! were made in, whoever uses them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{Builder, JoinHandle};

use careof_base::{Duration, Instant};
use careof_lab::{
    Clock, Error, Host, IpVersion, TcpOption, ensure_congestion_control, mptcp_fell_back, mptcp_socket,
    tcp_socket,
};
use careof_plan::{Ask, FlowId, NodeId, Side, Workload, port};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, Shutdown, SockaddrStorage, bind, connect, getsockname, getsockopt,
    listen, recv, send, setsockopt, shutdown, sockopt,
};

use crate::error::WorldError;
use crate::mptcp::Whereabouts;
use crate::pattern::Pattern;
use crate::report::{ApplicationEvent, Report};

#[expect(clippy::disallowed_types, reason = "the real world's sockets; std accepts without a raw descriptor")]
pub(crate) type Listener = std::net::TcpListener;

/// Bytes read and written at a time.
const CHUNK: usize = 64 * 1024;

/// What an application is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Its path is there: open the connection.
    Open,
    /// The run is over.
    Quit,
}

/// The applications of one flow.
pub(crate) struct ApplicationConfig {
    pub(crate) id: FlowId,
    /// The nodes of opener and acceptor.
    pub(crate) nodes: [NodeId; 2],
    /// Who opens the connection, and the address the other one is known by.
    pub(crate) client: Side,
    pub(crate) server: IpAddr,
    /// Over Multipath TCP: where the client is.
    pub(crate) whereabouts: Option<Whereabouts>,
    pub(crate) workload: Workload,
    pub(crate) options: Vec<TcpOption>,
    pub(crate) congestion: String,
    pub(crate) name: String,
}

/// A thread that can be signalled by counting a descriptor up.
pub(crate) struct Worker {
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts `work`, which looks at the bell for [`Signal`]s.
    pub(crate) fn start(
        name: String,
        work: impl FnOnce(Arc<EventFd>) + Send + 'static,
    ) -> Result<Self, Error> {
        let failed =
            |call| move |errno| Error::System { doing: "start a part of the run".to_owned(), call, errno };
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_SEMAPHORE;
        let bell = Arc::new(EventFd::from_flags(flags).map_err(failed("eventfd"))?);
        let its_bell = Arc::clone(&bell);
        let thread = Builder::new()
            .name(name.chars().take(15).collect())
            .spawn(move || work(its_bell))
            .map_err(|error| failed("clone")(error.raw_os_error().map_or(Errno::EAGAIN, Errno::from_raw)))?;
        Ok(Self { bell, thread: Some(thread) })
    }

    /// Rings the bell: the first time it means [`Signal::Open`].
    pub(crate) fn ring(&self) {
        // Fails only when the counter is full.
        let _ = self.bell.write(1);
    }

    /// Tells it to end and waits for that.
    pub(crate) fn quit(&mut self) {
        let _ = self.bell.write(QUIT);
        if let Some(thread) = self.thread.take() {
            // A panic in it has been told by its hook; there is nothing more to do about it here.
            let _ = thread.join();
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.quit();
    }
}

/// So many rings at once mean the end.
const QUIT: u64 = 1 << 20;

/// Takes a ring from a bell: the `taken`th one.
pub(crate) fn answer(bell: &EventFd, taken: &mut u64) -> Option<Signal> {
    bell.read().ok()?;
    *taken += 1;
    if *taken == 1 {
        // A run that ends before this was opened rings many times.
        return Some(if bell.read().is_ok() { Signal::Quit } else { Signal::Open });
    }
    Some(Signal::Quit)
}

/// Starts the applications of a flow. The acceptor listens when this returns.
pub(crate) fn start(
    config: ApplicationConfig,
    hosts: &Arc<Vec<Host>>,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<Worker, Error> {
    let listener = listen_at(&hosts[usize::from(config.nodes[config.client.peer().index()].0)], &config)?;
    let hosts = Arc::clone(hosts);
    let flow = usize::from(config.id.0);
    Worker::start(format!("flow {flow}"), move |bell| {
        let reporter = Reporter { flow, clock, reports };
        let mut application = Application::new(config, listener, reporter);
        if let Err(problem) = application.run(&hosts, &bell) {
            application.reporter.fail(problem);
        }
    })
}

/// Tells what happens, with the time.
struct Reporter {
    flow: usize,
    clock: Clock,
    reports: Sender<Report>,
}

impl Reporter {
    fn tell(&self, event: ApplicationEvent) {
        let at = self.clock.now();
        // Nobody listens any more when the run is over.
        let _ = self.reports.send(Report::Application { flow: self.flow, at, event });
    }

    fn fail(&self, problem: WorldError) {
        let _ = self.reports.send(Report::Failed(problem));
    }
}

/// One end of the connection.
struct End {
    socket: Option<OwnedFd>,
    is_connected: bool,
    /// Bytes to be written in all; `u64::MAX` is without end.
    to_write: u64,
    written: u64,
    pattern_out: Pattern,
    pattern_in: Pattern,
    /// Writing ends when everything is written.
    closing: bool,
    has_closed: bool,
    peer_closed: bool,
    received: u64,
}

impl End {
    fn new(flow: usize, side: Side) -> Self {
        let pattern = |side: Side| Pattern::new(2 * flow as u64 + side.index() as u64);
        Self {
            socket: None,
            is_connected: false,
            to_write: 0,
            written: 0,
            pattern_out: pattern(side),
            pattern_in: pattern(side.peer()),
            closing: false,
            has_closed: false,
            peer_closed: false,
            received: 0,
        }
    }

    /// What to wait for.
    fn events(&self) -> PollFlags {
        let mut events = PollFlags::empty();
        if !self.is_connected || self.written < self.to_write {
            events |= PollFlags::POLLOUT;
        }
        if self.is_connected && !self.peer_closed {
            events |= PollFlags::POLLIN;
        }
        events
    }
}

struct Application {
    config: ApplicationConfig,
    listener: Option<Listener>,
    has_accepted: bool,
    ends: [End; 2],
    reporter: Reporter,
    buffer: Vec<u8>,
    opened: bool,
    /// What it was last said to want.
    wanted: [u64; 2],
    /// The revision of the player that was told last.
    watched: u64,
}

impl Application {
    fn new(config: ApplicationConfig, listener: Listener, reporter: Reporter) -> Self {
        let flow = usize::from(config.id.0);
        Self {
            config,
            listener: Some(listener),
            has_accepted: false,
            ends: Side::BOTH.map(|side| End::new(flow, side)),
            reporter,
            buffer: vec![0; CHUNK],
            opened: false,
            wanted: [0, 0],
            watched: 0,
        }
    }

    fn run(&mut self, hosts: &[Host], bell: &EventFd) -> Result<(), WorldError> {
        let mut rings = 0;
        loop {
            let ready = self.wait(bell);
            if ready[0] {
                match answer(bell, &mut rings) {
                    Some(Signal::Quit) => {
                        return Side::BOTH.into_iter().try_for_each(|side| self.refuse_fallback(side));
                    }
                    Some(Signal::Open) => self.open(hosts)?,
                    None => {}
                }
            }
            if ready[1] {
                self.accept()?;
            }
            for side in Side::BOTH {
                if ready[2 + side.index()] {
                    self.handle(side)?;
                }
            }
            let now = self.now();
            while self.opened
                && self.config.workload.next_timeout().is_some_and(|due| due <= now)
                && let Some(ask) = self.config.workload.handle_timeout(now)
            {
                self.ask(ask)?;
            }
            self.tell_player();
        }
    }

    /// Tells what the viewer of a film sees.
    fn tell_player(&mut self) {
        if let Some(player) = self.config.workload.player()
            && std::mem::replace(&mut self.watched, player.revision()) != player.revision()
        {
            self.reporter.tell(ApplicationEvent::Watched(Box::new(player.clone())));
        }
    }

    fn now(&self) -> Instant {
        self.reporter.clock.now()
    }

    /// Waits for the bell, the listener, the ends of opener and acceptor, or the workload's time; says which are ready.
    fn wait(&self, bell: &EventFd) -> [bool; 4] {
        let mut fds = vec![PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
        let mut places = vec![0];
        if let Some(listener) = self.listener.as_ref().filter(|_| !self.has_accepted) {
            fds.push(PollFd::new(listener.as_fd(), PollFlags::POLLIN));
            places.push(1);
        }
        for side in Side::BOTH {
            let end = &self.ends[side.index()];
            let events = end.events();
            if let Some(socket) = end.socket.as_ref().filter(|_| !events.is_empty()) {
                fds.push(PollFd::new(socket.as_fd(), events));
                places.push(2 + side.index());
            }
        }
        let due = self.config.workload.next_timeout().filter(|_| self.opened);
        let timeout = due.map_or(PollTimeout::NONE, |due| {
            // Rounded up: a message that is due is never asked for twice.
            let wait = self.reporter.clock.until(due) + Duration::from_micros(999);
            PollTimeout::try_from(wait.as_millis()).unwrap_or(PollTimeout::MAX)
        });
        let mut ready = [false; 4];
        // Interrupted or not, the flags tell.
        if poll(&mut fds, timeout).is_ok() {
            for (fd, place) in fds.iter().zip(places) {
                ready[place] = fd.any().unwrap_or(true);
            }
        }
        ready
    }

    fn open(&mut self, hosts: &[Host]) -> Result<(), WorldError> {
        let client = self.config.client;
        let there = SocketAddr::new(self.config.server, port(self.config.id, client.peer()));
        let (options, congestion) = (self.config.options.clone(), self.config.congestion.clone());
        let host = &hosts[usize::from(self.config.nodes[client.index()].0)];
        self.opened = true;
        let is_multipath = self.config.whereabouts.is_some();
        let attached = self.config.whereabouts.as_ref().and_then(Whereabouts::get);
        let mut here = anywhere(self.config.server, port(self.config.id, client));
        if let Some(attached) = &attached {
            here.set_ip(attached.address);
        }
        let opened = host.run(move || {
            let socket = new_socket(is_multipath, here, &options, &congestion)?;
            if let Some(attached) = attached {
                // As the subflows of its path manager are.
                setsockopt(&socket, sockopt::BindToDevice, &attached.device.into())
                    .map_err(failed("open a connection", "setsockopt(SO_BINDTODEVICE)"))?;
            }
            match connect(socket.as_raw_fd(), &SockaddrStorage::from(there)) {
                Ok(()) | Err(Errno::EINPROGRESS) => {}
                Err(errno) => {
                    return Ok((socket, here, Some(errno)));
                }
            }
            let own: SockaddrStorage =
                getsockname(socket.as_raw_fd()).map_err(failed("open a connection", "getsockname"))?;
            Ok::<_, Error>((socket, internet_address(&own).unwrap_or(here), None))
        })?;
        let (socket, own, refused) = opened?;
        let text = format!("{} to {}", own.ip(), there.ip());
        // The subflows of Multipath TCP are looked into when they are seen.
        let ends = (!is_multipath).then_some([own, there]);
        self.reporter.tell(ApplicationEvent::Opening { ends, text });
        self.tell_wanted();
        match refused {
            None => self.ends[client.index()].socket = Some(socket),
            Some(errno) => self.over(client, errno.desc()),
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<(), WorldError> {
        let Some(listener) = &self.listener else { return Ok(()) };
        use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
        let accepted = match listener.accept() {
            Ok((accepted, _)) => accepted,
            Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(failed("accept a connection", "accept4")(errno_of(&error)).into()),
        };
        accepted
            .set_nonblocking(true)
            .map_err(|error| failed("accept a connection", "ioctl(FIONBIO)")(errno_of(&error)))?;
        let server = self.config.client.peer();
        let end = &mut self.ends[server.index()];
        end.socket = Some(accepted.into());
        end.is_connected = true;
        self.has_accepted = true;
        if self.config.whereabouts.is_none() {
            // A flow is one connection. Further subflows of one of Multipath TCP come to its listening socket, too.
            self.listener = None;
        }
        self.refuse_fallback(server)?;
        // What it was asked for before.
        self.write(server);
        Ok(())
    }

    /// Nothing else than Multipath TCP passes for it.
    fn refuse_fallback(&self, side: Side) -> Result<(), WorldError> {
        let end = &self.ends[side.index()];
        let socket = end.socket.as_ref().filter(|_| self.config.whereabouts.is_some() && end.is_connected);
        match socket.map(|socket| mptcp_fell_back(socket.as_fd())).transpose()? {
            Some(true) => Err(WorldError::Flow {
                flow: self.config.name.clone(),
                problem: "the connection became one of ordinary TCP, without other paths".to_owned(),
            }),
            Some(false) | None => Ok(()),
        }
    }

    /// A socket is ready for something.
    fn handle(&mut self, side: Side) -> Result<(), WorldError> {
        if !self.ends[side.index()].is_connected {
            return self.finish_connecting(side);
        }
        self.read(side)?;
        self.write(side);
        Ok(())
    }

    fn finish_connecting(&mut self, side: Side) -> Result<(), WorldError> {
        let Some(socket) = &self.ends[side.index()].socket else { return Ok(()) };
        let error = getsockopt(socket, sockopt::SocketError)
            .map_err(failed("open a connection", "getsockopt(SO_ERROR)"))?;
        if error != 0 {
            self.over(side, Errno::from_raw(error).desc());
            return Ok(());
        }
        self.ends[side.index()].is_connected = true;
        self.refuse_fallback(side)?;
        let asks = self.config.workload.connected(self.now());
        for ask in asks.into_iter().flatten() {
            self.ask(ask)?;
        }
        Ok(())
    }

    fn tell_wanted(&mut self) {
        let totals = self.config.workload.wanted();
        if totals != self.wanted {
            self.wanted = totals;
            self.reporter.tell(ApplicationEvent::Wanted { totals });
        }
    }

    fn ask(&mut self, ask: Ask) -> Result<(), WorldError> {
        match ask {
            Ask::Write(side, bytes) => {
                self.tell_wanted();
                let end = &mut self.ends[side.index()];
                end.to_write = end.to_write.saturating_add(bytes);
                self.write(side);
            }
            Ask::Close(side) => {
                self.ends[side.index()].closing = true;
                self.write(side);
            }
            Ask::Stop(side) => {
                let end = &mut self.ends[side.index()];
                if end.written < end.to_write || self.config.workload.is_endless() {
                    self.config.workload.cut_short();
                }
                end.to_write = end.written;
                end.closing = true;
                self.reporter.tell(ApplicationEvent::Stopped);
                self.write(side);
            }
        }
        Ok(())
    }

    /// Writes as much as TCP takes.
    fn write(&mut self, side: Side) {
        let end = &mut self.ends[side.index()];
        let Some(socket) = end.socket.as_ref().filter(|_| end.is_connected) else { return };
        while end.written < end.to_write {
            let count = (end.to_write - end.written).min(CHUNK as u64) as usize;
            let Some(chunk) = self.buffer.get_mut(..count) else { return };
            end.pattern_out.fill(end.written, chunk);
            match send(socket.as_raw_fd(), chunk, MsgFlags::MSG_NOSIGNAL) {
                Ok(taken) => end.written += taken as u64,
                Err(Errno::EAGAIN) => return,
                Err(Errno::EINTR) => {}
                // Reading tells why.
                Err(_) => {
                    end.to_write = end.written;
                    return;
                }
            }
        }
        if end.closing && !end.has_closed {
            end.has_closed = true;
            // Fails when the connection is gone, which reading tells.
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Write);
            self.end_when_both_closed(side);
        }
    }

    fn read(&mut self, side: Side) -> Result<(), WorldError> {
        loop {
            let end = &mut self.ends[side.index()];
            let Some(socket) = end.socket.as_ref().filter(|_| !end.peer_closed) else { return Ok(()) };
            match recv(socket.as_raw_fd(), &mut self.buffer, MsgFlags::empty()) {
                Ok(0) => {
                    end.peer_closed = true;
                    let cut_short = self.config.workload.was_cut_short();
                    self.reporter.tell(ApplicationEvent::PeerClosed { side, cut_short });
                    self.ask(Ask::Close(side))?;
                    self.end_when_both_closed(side);
                    return Ok(());
                }
                Ok(count) => {
                    let arrived = self.buffer.get(..count).unwrap_or_default();
                    if let Some(at) = end.pattern_in.first_difference(end.received, arrived) {
                        return Err(WorldError::Flow {
                            flow: self.config.name.clone(),
                            problem: format!("byte {at} did not arrive as it was sent"),
                        });
                    }
                    end.received += count as u64;
                    keep_clamp(socket, &self.config.options);
                    let total = end.received;
                    self.reporter.tell(ApplicationEvent::Delivered { side, total });
                    let now = self.now();
                    if let Some(ask) = self.config.workload.received(now, side, total) {
                        self.ask(ask)?;
                    }
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    self.over(side, errno.desc());
                    return Ok(());
                }
            }
        }
    }

    fn end_when_both_closed(&mut self, side: Side) {
        let end = &self.ends[side.index()];
        if end.has_closed && end.peer_closed && end.socket.is_some() {
            self.over(side, "Closed");
        }
    }

    /// The connection is over for this end.
    fn over(&mut self, side: Side, how: &str) {
        let end = &mut self.ends[side.index()];
        end.socket = None;
        end.peer_closed = true;
        self.reporter.tell(ApplicationEvent::Ended { side, how: how.to_owned() });
    }
}

/// Puts the window clamp back: the kernel forgets it when it finds out how much memory packets take.
fn keep_clamp(socket: &OwnedFd, options: &[TcpOption]) {
    for option in options {
        if let TcpOption::WindowClamp(_) = option {
            // It was set before; a connection that is gone is noticed elsewhere.
            let _ = option.set(socket.as_fd());
        }
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn failed(doing: &str, call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: doing.to_owned(), call, errno }
}

/// Whatever address of a host, of the same version as `like`.
pub(crate) fn anywhere(like: IpAddr, port: u16) -> SocketAddr {
    let address = match like {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(address, port)
}

/// The kernel's family of an address.
pub(crate) const fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// The address in a structure of the kernel's, if it is one of IP.
fn internet_address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let ipv4 = storage.as_sockaddr_in().map(|address| SocketAddr::V4((*address).into()));
    ipv4.or_else(|| storage.as_sockaddr_in6().map(|address| SocketAddr::V6((*address).into())))
}

/// A socket of TCP, or of Multipath TCP, of the calling thread's host at `here`.
fn new_socket(
    is_multipath: bool,
    here: SocketAddr,
    options: &[TcpOption],
    congestion: &str,
) -> Result<OwnedFd, Error> {
    let doing = "open a connection";
    let version = IpVersion::of(here.ip());
    let socket = if is_multipath {
        let socket = mptcp_socket(version)?;
        options.iter().try_for_each(|option| option.set(socket.as_fd()))?;
        socket
    } else {
        tcp_socket(version, options)?
    };
    setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(failed(doing, "setsockopt(SO_REUSEADDR)"))?;
    ensure_congestion_control(congestion)?.choose_for(&socket)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(here)).map_err(failed(doing, "bind"))?;
    Ok(socket)
}

fn listen_at(host: &Host, config: &ApplicationConfig) -> Result<Listener, Error> {
    let here = anywhere(config.server, port(config.id, config.client.peer()));
    let is_multipath = config.whereabouts.is_some();
    let (options, congestion) = (config.options.clone(), config.congestion.clone());
    host.run(move || {
        let socket = new_socket(is_multipath, here, &options, &congestion)?;
        let backlog = Backlog::new(1).unwrap_or(Backlog::MAXCONN);
        listen(&socket, backlog).map_err(failed("accept a connection", "listen"))?;
        Ok(Listener::from(socket))
    })?
}
