//! The applications at both ends of a flow over QUIC: the endpoints of the simulator over UDP sockets of the hosts, on the clock of the run.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use careof_base::{Duration, Instant, RandomStream};
use careof_lab::{Clock, Error, Host, TcpOption};
use careof_plan::{Ask, FlowId, NodeId, Side, Workload, port};
use careof_quic::{Config, Connection, Datagram, Event, Role, packet_of_data};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::socket::{
    MsgFlags, SockFlag, SockType, SockaddrIn, SockaddrStorage, bind, recvfrom, sendto, setsockopt, socket,
    sockopt,
};

use crate::application::{Signal, Worker, answer, anywhere, family};
use crate::error::WorldError;
use crate::report::{ApplicationEvent, QuicEvent, Report};

/// No datagram is longer.
const LARGEST: usize = 65_535;

/// The flow over QUIC that a thread drives.
pub(crate) struct QuicConfig {
    pub(crate) id: FlowId,
    /// The nodes of opener and acceptor.
    pub(crate) nodes: [NodeId; 2],
    /// The addresses they are known by.
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) client: Side,
    /// Where the client uses its own address on the link that it is on: the first of those.
    pub(crate) own: Option<IpAddr>,
    pub(crate) quic: Config,
    pub(crate) random: [RandomStream; 2],
    pub(crate) workload: Workload,
}

/// Tells a client that migrates which address its node has.
#[derive(Debug)]
pub(crate) struct Mover {
    /// The client's node.
    pub(crate) node: NodeId,
    bell: Arc<EventFd>,
    addresses: Sender<IpAddr>,
}

impl Mover {
    pub(crate) fn move_to(&self, address: IpAddr) {
        // The thread is gone when its flow is; a full counter rings, too.
        if self.addresses.send(address).is_ok() {
            let _ = self.bell.write(1);
        }
    }
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "open a connection of QUIC".to_owned(), call, errno }
}

/// A UDP socket of a host at `here`, whose packets carry DF.
fn udp_socket(host: &Host, here: SocketAddr) -> Result<OwnedFd, Error> {
    host.run(move || {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family(here.ip()), SockType::Datagram, flags, None).map_err(failed("socket"))?;
        setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
        // An option of IP, whatever it is set for.
        TcpOption::PathMtuDiscovery(true).set(socket.as_fd())?;
        bind(socket.as_raw_fd(), &SockaddrStorage::from(here)).map_err(failed("bind"))?;
        Ok(socket)
    })?
}

/// Starts both ends of a flow; where the client migrates there is somebody to tell it where it is.
pub(crate) fn start(
    config: QuicConfig,
    hosts: &Arc<Vec<Host>>,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<(Worker, Option<Mover>), Error> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    let moved = Arc::new(EventFd::from_flags(flags).map_err(failed("eventfd"))?);
    let (addresses, inbox) = channel();
    let mover = config.own.map(|_| Mover {
        node: config.nodes[config.client.index()],
        bell: Arc::clone(&moved),
        addresses,
    });
    let flow = usize::from(config.id.0);
    let hosts = Arc::clone(hosts);
    let worker = Worker::start(format!("flow {flow}"), move |bell| {
        let mut application = Application::new(config, hosts, (moved, inbox), (clock, reports));
        if let Err(problem) = application.run(&bell) {
            // Nobody listens any more when the run is over.
            let _ = application.reports.send(Report::Failed(problem));
        }
    })?;
    Ok((worker, mover))
}

/// One end.
struct End {
    socket: Option<OwnedFd>,
    connection: Connection,
    /// A datagram that the socket had no room for.
    waiting: Option<Datagram>,
    received: u64,
    rtt_samples: u64,
    /// Stream bytes that have left at least once.
    left: u64,
    /// Datagrams that no interface took.
    unsent: u64,
}

struct Application {
    config: QuicConfig,
    hosts: Arc<Vec<Host>>,
    ends: [End; 2],
    moved: (Arc<EventFd>, Receiver<IpAddr>),
    clock: Clock,
    reports: Sender<Report>,
    buffer: Vec<u8>,
    opened: bool,
    wanted: [u64; 2],
    /// The revision of a film's player that was told last.
    watched: u64,
}

impl Application {
    fn new(
        config: QuicConfig,
        hosts: Arc<Vec<Host>>,
        moved: (Arc<EventFd>, Receiver<IpAddr>),
        (clock, reports): (Clock, Sender<Report>),
    ) -> Self {
        let ends = Side::BOTH.map(|side| {
            let role = if side == config.client { Role::Client } else { Role::Server };
            let peer = SocketAddr::new(config.addresses[side.peer().index()], port(config.id, side.peer()));
            let random = config.random[side.index()].clone();
            End {
                socket: None,
                connection: Connection::new(&config.quic, role, peer, random),
                waiting: None,
                received: 0,
                rtt_samples: 0,
                left: 0,
                unsent: 0,
            }
        });
        let buffer = vec![0; LARGEST];
        Self { config, hosts, ends, moved, clock, reports, buffer, opened: false, wanted: [0, 0], watched: 0 }
    }

    fn tell(&self, event: ApplicationEvent) {
        let (flow, at) = (usize::from(self.config.id.0), self.clock.now());
        let _ = self.reports.send(Report::Application { flow, at, event });
    }

    fn run(&mut self, bell: &EventFd) -> Result<(), WorldError> {
        let mut rings = 0;
        loop {
            let ready = self.wait(bell);
            if ready[0] {
                match answer(bell, &mut rings) {
                    Some(Signal::Quit) => return Ok(()),
                    Some(Signal::Open) => self.open()?,
                    None => {}
                }
            }
            if ready[1] {
                self.follow()?;
            }
            let now = self.clock.now();
            for side in Side::BOTH {
                if ready[2 + side.index()] {
                    self.receive(side);
                }
                self.ends[side.index()].connection.handle_timeout(now);
            }
            while self.opened
                && self.config.workload.next_timeout().is_some_and(|due| due <= now)
                && let Some(ask) = self.config.workload.handle_timeout(now)
            {
                self.ask(ask);
            }
            if self.opened {
                Side::BOTH.into_iter().for_each(|side| self.pump(side));
            }
            if let Some(player) = self.config.workload.player()
                && std::mem::replace(&mut self.watched, player.revision()) != player.revision()
            {
                self.tell(ApplicationEvent::Watched(Box::new(player.clone())));
            }
        }
    }

    /// Waits for the bells, the sockets, or the next timer; says which are ready.
    fn wait(&mut self, bell: &EventFd) -> [bool; 4] {
        let timers = self.ends.iter_mut().filter_map(|end| end.connection.next_timeout());
        let due = timers.chain(self.config.workload.next_timeout()).min().filter(|_| self.opened);
        let timeout = due.map_or(PollTimeout::NONE, |due| {
            // Rounded up, as the kernel counts in milliseconds.
            let wait = self.clock.until(due) + Duration::from_micros(999);
            PollTimeout::try_from(wait.as_millis()).unwrap_or(PollTimeout::MAX)
        });
        let mut fds = vec![
            PollFd::new(bell.as_fd(), PollFlags::POLLIN),
            PollFd::new(self.moved.0.as_fd(), PollFlags::POLLIN),
        ];
        let mut places = vec![0, 1];
        for side in Side::BOTH {
            let end = &self.ends[side.index()];
            let more = if end.waiting.is_some() { PollFlags::POLLOUT } else { PollFlags::empty() };
            if let Some(socket) = &end.socket {
                fds.push(PollFd::new(socket.as_fd(), PollFlags::POLLIN | more));
                places.push(2 + side.index());
            }
        }
        let mut ready = [false; 4];
        if poll(&mut fds, timeout).is_ok() {
            for (fd, place) in fds.iter().zip(places) {
                ready[place] = fd.any().unwrap_or(true);
            }
        }
        ready
    }

    fn host(&self, side: Side) -> &Host {
        &self.hosts[usize::from(self.config.nodes[side.index()].0)]
    }

    fn open(&mut self) -> Result<(), WorldError> {
        let (client, now) = (self.config.client, self.clock.now());
        self.follow()?;
        for side in Side::BOTH {
            let own = self.config.own.filter(|_| side == client);
            let port = port(self.config.id, side);
            let here = own.map_or_else(
                || anywhere(self.config.addresses[side.index()], port),
                |own| SocketAddr::new(own, port),
            );
            self.ends[side.index()].socket = Some(udp_socket(self.host(side), here)?);
        }
        self.opened = true;
        let mut shown = self.config.addresses;
        shown[client.index()] = self.config.own.unwrap_or(shown[client.index()]);
        self.tell(ApplicationEvent::Opening {
            ends: None,
            text: format!("{} to {}, QUIC", shown[0], shown[1]),
        });
        self.tell_wanted();
        if let Err(error) = self.ends[client.index()].connection.open(now) {
            self.tell(ApplicationEvent::Ended { side: client, how: error.to_string() });
        }
        Ok(())
    }

    /// The client's node may have another address.
    fn follow(&mut self) -> Result<(), WorldError> {
        // Nothing to read means that somebody else's ring was taken for this one.
        let _ = self.moved.0.read();
        let Some(address) = self.moved.1.try_iter().last() else { return Ok(()) };
        if self.config.own.replace(address) == Some(address) || !self.opened {
            return Ok(());
        }
        let (client, now) = (self.config.client, self.clock.now());
        let here = SocketAddr::new(address, port(self.config.id, client));
        let socket = udp_socket(self.host(client), here)?;
        let end = &mut self.ends[client.index()];
        (end.socket, end.waiting) = (Some(socket), None);
        end.connection.address_changed(now);
        Ok(())
    }

    fn tell_wanted(&mut self) {
        let totals = self.config.workload.wanted();
        if totals != self.wanted {
            self.wanted = totals;
            self.tell(ApplicationEvent::Wanted { totals });
        }
    }

    fn ask(&mut self, ask: Ask) {
        match ask {
            Ask::Write(side, bytes) => {
                self.tell_wanted();
                self.ends[side.index()].connection.write(bytes);
            }
            Ask::Close(side) => self.ends[side.index()].connection.close(),
            Ask::Stop(side) => {
                let connection = &mut self.ends[side.index()].connection;
                if connection.unsent() > 0 || self.config.workload.is_endless() {
                    self.config.workload.cut_short();
                }
                connection.discard_unsent();
                connection.close();
                self.tell(ApplicationEvent::Stopped);
            }
        }
    }

    /// Takes what has come in at a socket.
    fn receive(&mut self, side: Side) {
        loop {
            let Some(socket) = &self.ends[side.index()].socket else { return };
            let (len, source) = match recvfrom::<SockaddrIn>(socket.as_raw_fd(), &mut self.buffer) {
                Ok((len, Some(source))) => (len, SocketAddr::from((source.ip(), source.port()))),
                Ok((_, None)) | Err(Errno::EINTR) => continue,
                // Nothing more, or an ICMP error, which QUIC does not listen to (RFC 9000 section 14.2.1).
                Err(Errno::EAGAIN) => return,
                Err(_) => continue,
            };
            let now = self.clock.now();
            let payload = self.buffer.get(..len).unwrap_or_default();
            if let Some(packet) = packet_of_data(payload)
                && !packet.data.is_empty()
            {
                self.tell(ApplicationEvent::Quic(QuicEvent::Arrived {
                    sender: side.peer(),
                    number: packet.number,
                    data: packet.data,
                }));
            }
            let payload = self.buffer.get(..len).unwrap_or_default();
            self.ends[side.index()].connection.handle_datagram(now, source, 0, payload);
        }
    }

    /// Drains an endpoint.
    fn pump(&mut self, side: Side) {
        loop {
            while let Some(event) = self.ends[side.index()].connection.poll_event() {
                self.event(side, event);
            }
            self.deliver(side);
            while self.send(side) {}
            if !self.ends[side.index()].connection.has_events() {
                break;
            }
        }
        let end = &mut self.ends[side.index()];
        let (samples, rtt) = end.connection.rtt();
        if std::mem::replace(&mut end.rtt_samples, samples) != samples
            && let Some(rtt) = rtt
        {
            self.tell(ApplicationEvent::Quic(QuicEvent::RoundTrip { sender: side, rtt }));
        }
    }

    fn event(&mut self, side: Side, event: Event) {
        match event {
            Event::Connected if side == Side::Opener => {
                let asks = self.config.workload.connected(self.clock.now());
                asks.into_iter().flatten().for_each(|ask| self.ask(ask));
            }
            Event::PeerFinished => {
                self.deliver(side);
                let cut_short = self.config.workload.was_cut_short();
                self.tell(ApplicationEvent::PeerClosed { side, cut_short });
                self.ask(Ask::Close(side));
            }
            Event::Closed(reason) => {
                let unsent = self.ends[side.index()].unsent;
                let how =
                    if unsent == 0 { reason } else { format!("{reason}; {unsent} datagrams had no way") };
                self.tell(ApplicationEvent::Ended { side, how });
            }
            Event::Connected | Event::PeerMoved(_) => {}
        }
    }

    fn deliver(&mut self, side: Side) {
        let end = &mut self.ends[side.index()];
        let total = end.connection.received();
        if std::mem::replace(&mut end.received, total) == total {
            return;
        }
        self.tell(ApplicationEvent::Delivered { side, total });
        if let Some(ask) = self.config.workload.received(self.clock.now(), side, total) {
            self.ask(ask);
        }
    }

    /// Sends the next datagram; `false` when there is none, or no room for it.
    fn send(&mut self, side: Side) -> bool {
        let now: Instant = self.clock.now();
        let end = &mut self.ends[side.index()];
        let Some(datagram) = end.waiting.take().or_else(|| end.connection.poll_transmit(now)) else {
            return false;
        };
        let Some(socket) = &end.socket else { return false };
        let to = SockaddrStorage::from(datagram.destination);
        match sendto(socket.as_raw_fd(), &datagram.bytes, &to, MsgFlags::empty()) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ENOBUFS) => {
                end.waiting = Some(datagram);
                return false;
            }
            // Too long for the link, or no way: lost, as the sender finds out.
            Err(_) => end.unsent += 1,
        }
        if let Some(packet) = packet_of_data(&datagram.bytes)
            && !packet.data.is_empty()
        {
            let left = end.left;
            end.left = packet.data.iter().map(|range| range.end).fold(left, u64::max);
            self.tell(ApplicationEvent::Quic(QuicEvent::Sent {
                sender: side,
                number: packet.number,
                data: packet.data,
                left,
            }));
        }
        true
    }
}
