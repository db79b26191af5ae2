//! Flows that measure a link: echoes over the idle link, then a train that keeps it busy.
//!
//! What is measured is what two hosts see: times are the kernel's time stamps of arrivals at ordinary sockets, not the
//! emulator's.

use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::mpsc::Sender;

use careof_base::{DataRate, Duration, Instant};
use careof_lab::{Clock, Error, Host};
use careof_link::{Config, QueueLimit, UNLIMITED_RATE};
use careof_metrics::ProbeSummary;
use careof_plan::{FlowId, Locator, NodeId, Side, Topology, down_of, port};
use careof_scenario::{LinkId, Scenario};
use careof_wire::icmp::{Echo, IcmpMessage};
use careof_wire::icmpv6::Icmpv6Message;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, connect, recvmsg,
    send, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeVal, TimeValLike};
use nix::time::{ClockId, clock_gettime};

use crate::application::{Signal, Worker, answer, family};
use crate::error::WorldError;
use crate::network::Network;
use crate::report::{ApplicationEvent, Report};

/// ICMP header, 16 bytes of data.
const ECHO_BYTES: u32 = 8 + 16;
/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// The part of the measuring time that is for echoes; the rest is the train's.
const ECHO_SHARE: u32 = 3;
/// More echoes than this say nothing new.
const MOST_ECHOES: u16 = 1000;
/// The shortest time between echoes, and the shortest beyond what an echo keeps a link busy.
const ECHO_PAUSE: Duration = Duration::from_millis(5);
/// So much waits in front of the link, as far as its queue has room, that it is never without a packet however late
/// this thread gets to run; and at least so many packets.
const AHEAD: Duration = Duration::from_millis(100);
const FEWEST_AHEAD: f64 = 8.0;
/// How often the train is filled up.
const REFILL: Duration = Duration::from_micros(500);
/// A train of more packets measures nothing better.
const MOST_PACKETS: u64 = 50_000;
/// The length of a train's packets where the link's MTU allows it and such a packet takes less than that time.
const LONG_PACKET: u32 = 1500;
const LONG_PACKET_TIME: Duration = Duration::from_millis(20);
const SHORT_PACKET: u32 = 120;

/// What is measured.
struct Probe {
    flow: usize,
    name: String,
    link: String,
    nodes: [String; 2],
    hosts: [usize; 2],
    addresses: [IpAddr; 2],
    /// Bytes of an IP header.
    ip_header: u32,
    /// The link in the direction of the train, and back.
    ways: [Config; 2],
    /// When it has to be done.
    until: Instant,
    clock: Clock,
    reports: Sender<Report>,
}

/// Starts the thread that measures a link when it is told.
pub(crate) fn start(
    scenario: &Scenario,
    topology: &Topology,
    network: &Network,
    index: usize,
    link: LinkId,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<Worker, WorldError> {
    let flow = &scenario.flows[index];
    let names = [flow.from, flow.to].map(|node| scenario.node(node).name.clone());
    let nodes = names.each_ref().map(|name| topology.find(name).unwrap_or(NodeId(0)));
    let measured = scenario.link(link);
    let forward = measured.ends[0] == flow.from;
    let ways = [measured.down.clone(), measured.up.clone()];
    let addresses = nodes.map(|node| {
        let is_on_link = |way: u32| way / 2 == down_of(link).0 / 2;
        let interfaces = &topology.place(node).interfaces;
        let own = interfaces.iter().find(|interface| is_on_link(interface.out.0));
        topology.address(own.map_or(Locator::NOWHERE, |interface| interface.address))
    });
    let end = Instant::ZERO + scenario.duration;
    let probe = Probe {
        flow: index,
        name: flow.name.clone(),
        link: measured.name.clone(),
        nodes: names,
        hosts: nodes.map(|node| usize::from(node.0)),
        addresses,
        ip_header: topology.plan.header_len(),
        ways: if forward { ways } else { [ways[1].clone(), ways[0].clone()] },
        until: flow.stop.map_or(end, |stop| (Instant::ZERO + stop).min(end)),
        clock,
        reports,
    };
    let sockets = Sockets::open(&probe, &network.hosts)?;
    Ok(Worker::start(format!("probe {index}"), move |bell| {
        if let Err(error) = probe.run(&sockets, &bell) {
            let _ = probe.reports.send(Report::Failed(error.into()));
        }
    })?)
}

/// The sockets of a probe.
struct Sockets {
    echo: OwnedFd,
    sender: OwnedFd,
    receiver: OwnedFd,
}

impl Sockets {
    fn open(probe: &Probe, hosts: &[Host]) -> Result<Self, Error> {
        let [here, there] = probe.addresses;
        let id = FlowId(probe.flow as u16);
        let [near, far] = Side::BOTH.map(|side| port(id, side));
        let (a, b) = (SocketAddr::new(here, near), SocketAddr::new(there, far));
        Ok(Self {
            echo: hosts[probe.hosts[0]].run(move || echo_socket(here))??,
            sender: hosts[probe.hosts[0]].run(move || datagram_socket(a, b))??,
            receiver: hosts[probe.hosts[1]].run(move || datagram_socket(b, a))??,
        })
    }
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "measure a link".to_owned(), call, errno }
}

/// Gives a socket time stamps, and patience for so long at most.
fn prepare(socket: &OwnedFd) -> Result<(), Error> {
    setsockopt(socket, sockopt::ReceiveTimestampns, &true).map_err(failed("setsockopt(SO_TIMESTAMPNS)"))?;
    setsockopt(socket, sockopt::RcvBuf, &(4 << 20)).map_err(failed("setsockopt(SO_RCVBUF)"))?;
    setsockopt(socket, sockopt::ReceiveTimeout, &TimeVal::milliseconds(100))
        .map_err(failed("setsockopt(SO_RCVTIMEO)"))
}

fn echo_socket(here: IpAddr) -> Result<OwnedFd, Error> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let protocol = if here.is_ipv4() { SockProtocol::Icmp } else { SockProtocol::IcmpV6 };
    let socket = socket(family(here), SockType::Raw, flags, protocol).map_err(failed("socket(SOCK_RAW)"))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(here, 0))).map_err(failed("bind"))?;
    prepare(&socket)?;
    Ok(socket)
}

fn datagram_socket(here: SocketAddr, there: SocketAddr) -> Result<OwnedFd, Error> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(family(here.ip()), SockType::Datagram, flags, None).map_err(failed("socket"))?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(here)).map_err(failed("bind"))?;
    connect(socket.as_raw_fd(), &SockaddrStorage::from(there)).map_err(failed("connect"))?;
    prepare(&socket)?;
    Ok(socket)
}

impl Probe {
    fn run(&self, sockets: &Sockets, bell: &EventFd) -> Result<(), Error> {
        let mut rings = 0;
        loop {
            let mut fds = [PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut fds, PollTimeout::NONE);
            match answer(bell, &mut rings) {
                Some(Signal::Open) => break,
                Some(Signal::Quit) => {
                    self.report(&mut (0, Vec::new()), &Train::default());
                    return Ok(());
                }
                None => {}
            }
        }
        let text = format!("{} to {} over {}", self.addresses[0], self.addresses[1], self.link);
        self.tell(ApplicationEvent::Opening { ends: None, text });
        let begin = self.clock.now();
        let time = self.until.saturating_duration_since(begin);
        let mut round_trips = self.echoes(sockets, time / ECHO_SHARE, bell)?;
        let train = self.train(sockets, bell)?;
        self.report(&mut round_trips, &train);
        self.tell(ApplicationEvent::Ended { side: Side::Opener, how: "measured".to_owned() });
        Ok(())
    }

    fn report(&self, echoes: &mut (u64, Vec<Duration>), train: &Train) {
        let _ = self.reports.send(Report::Probed(Box::new(self.summary(echoes, train))));
    }

    fn tell(&self, event: ApplicationEvent) {
        let at = self.clock.now();
        let _ = self.reports.send(Report::Application { flow: self.flow, at, event });
    }

    /// The round trip of an echo by the law of the link.
    fn configured_round_trip(&self) -> Duration {
        self.ways.iter().map(|way| way.delay + busy(way, self.echo_bytes())).sum()
    }

    /// Bytes of an echo, as links count them.
    const fn echo_bytes(&self) -> u32 {
        self.ip_header + ECHO_BYTES
    }

    /// Sends echoes one after the other for about `time`; how many were sent, and the round trips of those that came
    /// back.
    fn echoes(
        &self,
        sockets: &Sockets,
        time: Duration,
        bell: &EventFd,
    ) -> Result<(u64, Vec<Duration>), Error> {
        let pause =
            self.ways.iter().map(|way| busy(way, self.echo_bytes())).max().unwrap_or_default() + ECHO_PAUSE;
        let fits = time.saturating_sub(self.configured_round_trip()).as_nanos() / pause.as_nanos().max(1);
        let count = u16::try_from(fits).unwrap_or(u16::MAX).clamp(1, MOST_ECHOES);
        let to = SockaddrStorage::from(SocketAddr::new(self.addresses[1], 0));
        let identifier = 0x6370_u16.wrapping_add(self.flow as u16);
        let mut departures = Vec::with_capacity(usize::from(count));
        let mut arrivals = Vec::new();
        let mut bytes = Vec::new();
        let begin = self.clock.now();
        let patience = self.configured_round_trip() * 2 + Duration::from_secs(1);
        let mut due = begin;
        loop {
            let now = self.clock.now();
            if departures.len() < usize::from(count) && now >= due {
                bytes.clear();
                let sequence = departures.len() as u16;
                self.emit_request(Echo { identifier, sequence, data: vec![0; 16] }, &mut bytes);
                departures.push(wall_clock());
                // One that cannot be sent is counted as not answered.
                let _ = sendto(sockets.echo.as_raw_fd(), &bytes, &to, MsgFlags::empty());
                due = now + pause;
            }
            let all_sent = departures.len() == usize::from(count);
            if arrivals.len() == usize::from(count) || (all_sent && now >= due + patience) || is_rung(bell) {
                break;
            }
            let wait = if all_sent { Duration::from_millis(50) } else { self.clock.until(due) };
            if let Some((identity, sequence, arrived)) = self.next_reply(sockets, wait)?
                && identity == identifier
            {
                arrivals.push((sequence, arrived));
            }
        }
        let round_trips = arrivals.into_iter().filter_map(|(sequence, arrived): (u16, Duration)| {
            arrived.checked_sub(*departures.get(usize::from(sequence))?)
        });
        Ok((departures.len() as u64, round_trips.collect()))
    }

    /// The next echo reply within `wait`: identifier, sequence number, arrival.
    fn next_reply(&self, sockets: &Sockets, wait: Duration) -> Result<Option<(u16, u16, Duration)>, Error> {
        if !is_readable(&sockets.echo, wait) {
            return Ok(None);
        }
        let mut buffer = [0; 256];
        let Some((length, arrived)) = receive(&sockets.echo, &mut buffer)? else { return Ok(None) };
        let echo = buffer.get(..length).and_then(|received| self.parse_reply(received));
        Ok(echo.map(|echo| (echo.identifier, echo.sequence, arrived)))
    }

    fn emit_request(&self, echo: Echo, bytes: &mut Vec<u8>) {
        match self.addresses {
            [IpAddr::V6(here), IpAddr::V6(there)] => {
                Icmpv6Message::EchoRequest(echo).emit(here, there, bytes);
            }
            _ => IcmpMessage::EchoRequest(echo).emit(bytes),
        }
    }

    /// What came by the echo socket, if it is the peer's reply.
    fn parse_reply(&self, received: &[u8]) -> Option<Echo> {
        match self.addresses {
            [IpAddr::V6(here), IpAddr::V6(there)] => match Icmpv6Message::parse(there, here, received) {
                Ok(Icmpv6Message::EchoReply(echo)) => Some(echo),
                _ => None,
            },
            // The kernel keeps the IPv4 header in front, which has no options: the sender is a kernel.
            _ => match IcmpMessage::parse(received.get(20..)?) {
                Ok(IcmpMessage::EchoReply(echo)) => Some(echo),
                _ => None,
            },
        }
    }

    /// Keeps the link busy until the probe's time is up; what arrived, and when.
    fn train(&self, sockets: &Sockets, bell: &EventFd) -> Result<Train, Error> {
        let way = &self.ways[0];
        let long = LONG_PACKET.min(way.mtu.into());
        let bytes = if busy(way, long) <= LONG_PACKET_TIME { long } else { SHORT_PACKET.min(way.mtu.into()) };
        let packet = busy(way, bytes);
        // What is under way at the end has to arrive too.
        let ahead = packets_ahead(way, bytes, packet);
        let behind = way.delay + packet.mul_f64(ahead + 2.0) + Duration::from_millis(100);
        let begin = self.clock.now();
        let sending = self.until.saturating_duration_since(begin).saturating_sub(behind);
        let fits = sending.as_nanos().checked_div(packet.as_nanos()).unwrap_or(u128::MAX);
        let count = u64::try_from(fits).unwrap_or(u64::MAX).min(MOST_PACKETS);
        let mut train = Train { bytes, ..Train::default() };
        if way.rate == UNLIMITED_RATE || way.rate == DataRate::ZERO || count < 2 {
            return Ok(train);
        }
        let payload = vec![0; bytes.saturating_sub(self.ip_header + UDP_HEADER) as usize];
        let mut sent = 0;
        let mut buffer = vec![0; 2048];
        loop {
            let elapsed = self.clock.now().saturating_duration_since(begin);
            let due = (elapsed.as_secs_f64() / packet.as_secs_f64() + ahead) as u64;
            while sent < due.min(count) {
                // A packet that cannot be sent is missing among the arrivals.
                let _ = send(sockets.sender.as_raw_fd(), &payload, MsgFlags::MSG_DONTWAIT);
                sent += 1;
            }
            let until = self.until.min(begin + packet.mul_f64(count as f64) + behind);
            if train.packets >= count || self.clock.now() >= until || is_rung(bell) {
                return Ok(train);
            }
            if !is_readable(&sockets.receiver, REFILL) {
                continue;
            }
            while let Some((_, arrived)) = receive(&sockets.receiver, &mut buffer)? {
                train.packets += 1;
                train.first.get_or_insert(arrived);
                train.last = arrived;
                if !is_readable(&sockets.receiver, Duration::ZERO) {
                    break;
                }
            }
        }
    }

    fn summary(&self, (sent, round_trips): &mut (u64, Vec<Duration>), train: &Train) -> ProbeSummary {
        round_trips.sort_unstable();
        let configured = self.configured_round_trip();
        let at = |quantile: f64| {
            let place = round_trips.len().saturating_sub(1) as f64 * quantile;
            round_trips.get(place.round() as usize).copied()
        };
        let error = |round_trip: Duration| round_trip.as_secs_f64() - configured.as_secs_f64();
        let way = &self.ways[0];
        let rate = train.rate(way);
        let configured_rate = way.rate.bits_per_second();
        ProbeSummary {
            name: self.name.clone(),
            link: self.link.clone(),
            from: self.nodes[0].clone(),
            to: self.nodes[1].clone(),
            echoes_sent: *sent,
            echoes_answered: round_trips.len() as u64,
            configured_round_trip: configured,
            round_trip_median: at(0.5),
            round_trip_error_median: at(0.5).map(error),
            round_trip_error_p99: at(0.99).map(error),
            configured_rate_bps: configured_rate,
            packets_received: train.packets,
            rate_bps: rate,
            rate_error: rate.map(|rate| rate / configured_rate as f64 - 1.0),
        }
    }
}

/// Packets that arrived one behind the other.
#[derive(Default)]
struct Train {
    bytes: u32,
    packets: u64,
    first: Option<Duration>,
    last: Duration,
}

impl Train {
    /// Bits of the packets behind the first, by the time between the first and the last.
    fn rate(&self, way: &Config) -> Option<f64> {
        let span = self.last.checked_sub(self.first?).filter(|span| !span.is_zero())?;
        let bits = (self.packets - 1) * way.framing.bits(self.bytes);
        Some(bits as f64 / span.as_secs_f64())
    }
}

/// How many packets of a train wait in front of a link.
fn packets_ahead(way: &Config, bytes: u32, packet: Duration) -> f64 {
    let room = match way.queue.limit {
        QueueLimit::Packets(packets) => f64::from(packets),
        QueueLimit::Bytes(room) => (room / u64::from(bytes.max(1))) as f64,
    };
    let wanted = AHEAD.as_secs_f64() / packet.as_secs_f64();
    wanted.min(room / 2.0).max(FEWEST_AHEAD)
}

/// How long a packet keeps a one-way link busy.
fn busy(way: &Config, bytes: u32) -> Duration {
    if way.rate == UNLIMITED_RATE {
        return Duration::ZERO;
    }
    way.rate.time_for_bits(way.framing.bits(bytes)).unwrap_or_default()
}

/// Whether the run is over.
fn is_rung(bell: &EventFd) -> bool {
    let mut fds = [PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

fn is_readable(socket: &OwnedFd, wait: Duration) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
    let wait = TimeSpec::from_duration(wait);
    ppoll(&mut fds, Some(wait), None).is_ok_and(|ready| ready > 0)
}

/// The next packet: its length, and the kernel's time stamp.
pub(crate) fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Result<Option<(usize, Duration)>, Error> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(buffer)];
    let message =
        match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_DONTWAIT) {
            Ok(message) => message,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(errno) => return Err(failed("recvmsg")(errno)),
        };
    let stamps = message.cmsgs().map_err(failed("recvmsg"))?;
    let arrived = stamps.into_iter().find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    Ok(Some((message.bytes, arrived.unwrap_or_else(wall_clock))))
}

/// The clock of the kernel's time stamps.
pub(crate) fn wall_clock() -> Duration {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(Duration::ZERO, Duration::from)
}
