//! The relay of `split` (I-TCP; Bakre and Badrinath 1995): at the home agent two TCP connections are made of one, and
//! neither end knows.
//!
//! Packets of the flows that arrive at the home agent are taken for its own, by rules and a table with one route (the
//! kernel's Documentation/networking/tproxy.rst), so no packet filter is needed: the relay listens at the acceptor's
//! address and port, and speaks to the acceptor from the opener's (`IP_TRANSPARENT`, ip(7), over either version). What it sends itself comes from
//! no interface and goes where packets for that end always go: through the tunnel, or by a link.
//!
//! ICMP errors about what it sends go to the end in whose name it was sent, which knows no such segment and passes them over; so
//! its packets never ask for one by DF.
//!
//! No store of its own: what it has taken from one side and the other has not acknowledged lies in the two sockets, whose
//! buffers are [`Split::buffer`](careof_scenario::Split::buffer) together.

mod pair;
mod plan;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;

use careof_lab::{
    Clock, Error, Host, IpVersion, Netlink, Route, RouteKind, RouteScope, Rule, TcpOption,
    ensure_congestion_control, tcp_socket,
};
use careof_plan::{NodeId, Side};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{Backlog, SockaddrStorage, bind, connect, listen, setsockopt, sockopt};

use crate::application::{Listener, Signal, Worker, answer};
use crate::report::Report;
use pair::{News, Pair};
pub(crate) use plan::Splitter;

/// The table in which everything is the host's own. The agent's tables and rules begin behind these.
const TABLE: u32 = 43_399;
/// Before the rule that sends packets for the home address into the tunnel device.
const PRIORITY: u32 = 4_339;
/// The number of TCP in an IP header.
const TCP: u8 = careof_wire::protocol::TCP;
/// Connections of one flow that wait to be accepted.
const WAITING: i32 = 16;

/// The TCP of the relay's connection with one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HalfTcp {
    pub(crate) options: Vec<TcpOption>,
    pub(crate) congestion: String,
}

/// A flow that is split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayedFlow {
    pub(crate) flow: usize,
    /// What the ends are known by, opener and acceptor.
    pub(crate) ends: [SocketAddr; 2],
    /// The connections with the opener and with the acceptor.
    pub(crate) halves: [HalfTcp; 2],
    /// Bytes of a direction that their buffers hold.
    pub(crate) buffer: u32,
}

/// The relay of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayPlan {
    /// Where it is.
    pub(crate) node: NodeId,
    /// The home address, which is one of the ends of every flow.
    pub(crate) home_address: IpAddr,
    pub(crate) flows: Vec<RelayedFlow>,
}

impl RelayPlan {
    /// Whether the flow with this number is split.
    pub(crate) fn splits(&self, flow: usize) -> bool {
        self.flows.iter().any(|split| split.flow == flow)
    }
}

/// Starts the relay on its host, whose packets come in by `interfaces`. It listens when this returns.
pub(crate) fn start(
    plan: RelayPlan,
    host: &Host,
    interfaces: Vec<String>,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<Worker, Error> {
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let loopback = netlink.index_of("lo")?;
        let everything = match plan.home_address {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        netlink.set_route(&Route {
            table: Some(TABLE),
            kind: RouteKind::Local,
            scope: Some(RouteScope::Host),
            ..Route::to(everything, 0, loopback)
        })?;
        let mut listeners = Vec::new();
        for flow in plan.flows {
            for rule in interfaces.iter().flat_map(|interface| rules(&flow, plan.home_address, interface)) {
                netlink.add_rule(&rule)?;
            }
            listeners.push((listen_for(&flow)?, flow));
        }
        // A thread that is started in the host is in it, and so is whatever it opens.
        Worker::start("relay".to_owned(), move |bell| {
            let teller = Teller { clock, reports };
            if let Err(error) = run(&listeners, &bell, &teller) {
                let _ = teller.reports.send(Report::Failed(error.into()));
            }
        })
    })?
}

/// Tells what the relay does. Nobody listens any more when the run is over.
struct Teller {
    clock: Clock,
    reports: Sender<Report>,
}

impl Teller {
    fn tell(&self, flow: usize, (what, bytes): News) {
        let at = self.clock.now();
        let _ = self.reports.send(Report::Relay { flow, at, what, bytes });
    }
}

/// What takes packets of a flow in that come by an interface: those of the opener, and those of the acceptor.
fn rules(flow: &RelayedFlow, home_address: IpAddr, interface: &str) -> [Rule; 2] {
    let (version, length) = match home_address {
        IpAddr::V4(_) => (IpVersion::V4, 32),
        IpAddr::V6(_) => (IpVersion::V6, 128),
    };
    Side::BOTH.map(|side| {
        let (sender, receiver) = (flow.ends[side.index()], flow.ends[side.peer().index()]);
        let port = |end: SocketAddr| Some((end.port(), end.port()));
        // A host with several addresses may speak from any; the ports are the flow's alone.
        let home = |end: SocketAddr| (end.ip() == home_address).then_some((home_address, length));
        Rule {
            from: home(sender),
            to: home(receiver),
            input: Some(interface.to_owned()),
            protocol: Some(TCP),
            source_port: port(sender),
            destination_port: port(receiver),
            ..Rule::new_for(version, PRIORITY, TABLE)
        }
    })
}

/// A TCP socket at an address that is another host's.
fn foreign_socket(at: SocketAddr, tcp: &HalfTcp) -> Result<OwnedFd, Error> {
    let socket = tcp_socket(IpVersion::of(at.ip()), &tcp.options)?;
    // Sockets of IPv6 have it, too.
    setsockopt(&socket, sockopt::IpTransparent, &true).map_err(failed("setsockopt(IP_TRANSPARENT)"))?;
    setsockopt(&socket, sockopt::ReuseAddr, &true).map_err(failed("setsockopt(SO_REUSEADDR)"))?;
    ensure_congestion_control(&tcp.congestion)?.choose_for(&socket)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(at)).map_err(failed("bind"))?;
    Ok(socket)
}

fn listen_for(flow: &RelayedFlow) -> Result<Listener, Error> {
    let [_, acceptor] = flow.ends;
    let socket = foreign_socket(acceptor, &flow.halves[Side::Opener.index()])?;
    listen(&socket, Backlog::new(WAITING).unwrap_or(Backlog::MAXCONN)).map_err(failed("listen"))?;
    Ok(Listener::from(socket))
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "relay a connection".to_owned(), call, errno }
}

/// The thread: accepts connections and moves their data, until the bell tells it to end.
fn run(listeners: &[(Listener, RelayedFlow)], bell: &EventFd, teller: &Teller) -> Result<(), Error> {
    let mut rings = 0;
    // With the flows' numbers.
    let mut pairs: Vec<(usize, Pair)> = Vec::new();
    // Sockets stay open until the run ends: the kernel gives up one that nobody holds sooner than an end's own.
    let mut finished = Vec::new();
    loop {
        let ready = wait(bell, listeners, &pairs);
        if ready.bell && answer(bell, &mut rings) == Some(Signal::Quit) {
            return Ok(());
        }
        for ((listener, flow), _) in listeners.iter().zip(&ready.listeners).filter(|(_, ready)| **ready) {
            pairs.extend(accept(listener, flow)?.map(|pair| (flow.flow, pair)));
        }
        for ((_, pair), flags) in pairs.iter_mut().zip(&ready.pairs) {
            pair.handle(*flags);
        }
        for (flow, pair) in &mut pairs {
            pair.take_news().into_iter().for_each(|news| teller.tell(*flow, news));
        }
        let (over, open): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|(_, pair)| pair.is_over());
        pairs = open;
        // Closing is how a reset is sent.
        finished.extend(over.into_iter().filter(|(_, pair)| !pair.was_reset()));
    }
}

/// Who is ready.
struct Ready {
    bell: bool,
    listeners: Vec<bool>,
    /// Of each pair the sockets with the opener and with the acceptor.
    pairs: Vec<[PollFlags; 2]>,
}

fn wait(bell: &EventFd, listeners: &[(Listener, RelayedFlow)], pairs: &[(usize, Pair)]) -> Ready {
    let mut fds = vec![PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    fds.extend(listeners.iter().map(|(listener, _)| PollFd::new(listener.as_fd(), PollFlags::POLLIN)));
    let mut places = Vec::new();
    for (index, (_, pair)) in pairs.iter().enumerate() {
        for side in Side::BOTH {
            if let Some(fd) = pair.awaits(side) {
                fds.push(fd);
                places.push((index, side));
            }
        }
    }
    let mut ready = Ready {
        bell: false,
        listeners: vec![false; listeners.len()],
        pairs: vec![[PollFlags::empty(); 2]; pairs.len()],
    };
    // Interrupted or not, the flags tell.
    if poll(&mut fds, PollTimeout::NONE).is_err() {
        return ready;
    }
    let mut flags = fds.iter().map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
    ready.bell = flags.next().is_some_and(|flags| !flags.is_empty());
    for (listener, flags) in ready.listeners.iter_mut().zip(&mut flags) {
        *listener = !flags.is_empty();
    }
    for ((index, side), flags) in places.into_iter().zip(flags) {
        ready.pairs[index][side.index()] = flags;
    }
    ready
}

/// Accepts the opener's connection, and opens the other with the acceptor; `None` where the opener has gone again.
fn accept(listener: &Listener, flow: &RelayedFlow) -> Result<Option<Pair>, Error> {
    use std::io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    let io = |call| {
        move |error: std::io::Error| failed(call)(error.raw_os_error().map_or(Errno::EIO, Errno::from_raw))
    };
    let (accepted, from) = match listener.accept() {
        Ok(accepted) => accepted,
        Err(error) if matches!(error.kind(), WouldBlock | ConnectionAborted | Interrupted) => {
            return Ok(None);
        }
        Err(error) => return Err(io("accept4")(error)),
    };
    accepted.set_nonblocking(true).map_err(io("ioctl(FIONBIO)"))?;
    let [opener_tcp, acceptor_tcp] = &flow.halves;
    let opened = foreign_socket(from, acceptor_tcp)?;
    let mut pair = Pair::new(
        [accepted.into(), opened],
        [opener_tcp, acceptor_tcp].map(|tcp| tcp.options.iter().copied().find(is_clamp)),
        flow.buffer,
    );
    match connect(pair.socket(Side::Acceptor).as_raw_fd(), &SockaddrStorage::from(flow.ends[1])) {
        Ok(()) | Err(Errno::EINPROGRESS) => {}
        // As if the acceptor had refused.
        Err(_) => pair.reset(),
    }
    Ok(Some(pair))
}

const fn is_clamp(option: &TcpOption) -> bool {
    matches!(option, TcpOption::WindowClamp(_))
}
