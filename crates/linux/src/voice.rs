//! Voice flows: packets of RTP from a UDP socket of one host to one of another, on the clock of the run.
//!
//! A packet is sent when the clock says so, and its arrival is when the receiver's kernel got it, so that delays are those of
//! the network and not of this thread.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use careof_base::{Duration, Instant};
use careof_lab::{Clock, Error, Host, TcpOption};
use careof_plan::{Ask, FlowId, NodeId, RtpFlow, Side, Workload, port};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::socket::{
    MsgFlags, SockFlag, SockType, SockaddrStorage, bind, sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::application::{Signal, Worker, answer, anywhere, family};
use crate::probe::{receive, wall_clock};
use crate::report::{ApplicationEvent, Report, VoiceEvent};

/// No datagram is longer.
const LARGEST: usize = 65_535;

/// The voice flow that a thread drives: its opener talks.
pub(crate) struct VoiceConfig {
    pub(crate) id: FlowId,
    /// The nodes of opener and acceptor.
    pub(crate) nodes: [NodeId; 2],
    /// The addresses they are known by.
    pub(crate) addresses: [IpAddr; 2],
    pub(crate) rtp: RtpFlow,
    /// Bytes of a packet behind its RTP header.
    pub(crate) payload: u16,
    pub(crate) workload: Workload,
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |errno| Error::System { doing: "open a voice flow".to_owned(), call, errno }
}

/// A UDP socket of a host at `here`, whose packets may be fragmented, with the times at which they come.
fn udp_socket(host: &Host, here: SocketAddr) -> Result<OwnedFd, Error> {
    host.run(move || {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(family(here.ip()), SockType::Datagram, flags, None).map_err(failed("socket"))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)
            .map_err(failed("setsockopt(SO_TIMESTAMPNS)"))?;
        // An option of IP, whatever it is set for.
        TcpOption::PathMtuDiscovery(false).set(socket.as_fd())?;
        bind(socket.as_raw_fd(), &SockaddrStorage::from(here)).map_err(failed("bind"))?;
        Ok(socket)
    })?
}

/// Starts the thread of a flow. The listener's socket is there when this returns.
pub(crate) fn start(
    config: VoiceConfig,
    hosts: &Arc<Vec<Host>>,
    clock: Clock,
    reports: Sender<Report>,
) -> Result<Worker, Error> {
    let here = |side: Side| anywhere(config.addresses[side.index()], port(config.id, side));
    let host = |side: Side| &hosts[usize::from(config.nodes[side.index()].0)];
    let [mouth, ear] = Side::BOTH.map(|side| udp_socket(host(side), here(side)));
    let (mouth, ear) = (mouth?, ear?);
    let flow = usize::from(config.id.0);
    Worker::start(format!("flow {flow}"), move |bell| {
        let there = SocketAddr::new(config.addresses[1], port(config.id, Side::Acceptor));
        let mut talk = Talk { config, mouth, ear, there, clock, reports, sent: 0, unsent: 0, opened: false };
        if let Err(error) = talk.run(&bell) {
            // Nobody listens any more when the run is over.
            let _ = talk.reports.send(Report::Failed(error.into()));
        }
    })
}

struct Talk {
    config: VoiceConfig,
    mouth: OwnedFd,
    ear: OwnedFd,
    there: SocketAddr,
    clock: Clock,
    reports: Sender<Report>,
    /// Packets that were to be sent.
    sent: u64,
    /// Packets that no interface took.
    unsent: u64,
    opened: bool,
}

impl Talk {
    fn tell(&self, at: Instant, event: ApplicationEvent) {
        let flow = usize::from(self.config.id.0);
        let _ = self.reports.send(Report::Application { flow, at, event });
    }

    fn run(&mut self, bell: &EventFd) -> Result<(), Error> {
        let mut rings = 0;
        let mut buffer = vec![0; LARGEST];
        loop {
            let [is_rung, has_come] = self.wait(bell);
            if is_rung {
                match answer(bell, &mut rings) {
                    Some(Signal::Quit) => return Ok(()),
                    Some(Signal::Open) => self.open(),
                    None => {}
                }
            }
            if has_come {
                while let Some((length, stamp)) = receive(&self.ear, &mut buffer)? {
                    self.heard(buffer.get(..length).unwrap_or_default(), stamp);
                }
            }
            let now = self.clock.now();
            while self.opened
                && self.config.workload.next_timeout().is_some_and(|due| due <= now)
                && let Some(ask) = self.config.workload.handle_timeout(now)
            {
                self.ask(ask);
            }
        }
    }

    /// Waits for the bell, a packet, or the next time to send; says whether the first two are there.
    fn wait(&self, bell: &EventFd) -> [bool; 2] {
        let mut fds = [bell.as_fd(), self.ear.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
        let due = self.config.workload.next_timeout().filter(|_| self.opened);
        let wait = due.map(|due| TimeSpec::from_duration(self.clock.until(due)));
        // Interrupted or not, the flags tell.
        match ppoll(&mut fds, wait, None) {
            Ok(_) => fds.map(|fd| fd.any().unwrap_or(true)),
            Err(_) => [false; 2],
        }
    }

    fn open(&mut self) {
        let now = self.clock.now();
        self.opened = true;
        let text = format!("{} to {}, RTP", self.config.addresses[0], self.config.addresses[1]);
        self.tell(now, ApplicationEvent::Opening { ends: None, text });
        self.tell(now, ApplicationEvent::Wanted { totals: self.config.workload.wanted() });
        let asks = self.config.workload.connected(now);
        asks.into_iter().flatten().for_each(|ask| self.ask(ask));
    }

    fn ask(&mut self, ask: Ask) {
        let now = self.clock.now();
        match ask {
            Ask::Write(..) => {
                let packet = self.config.rtp.packet(self.sent);
                self.sent += 1;
                self.tell(now, ApplicationEvent::Voice(VoiceEvent::Sent));
                let to = SockaddrStorage::from(self.there);
                // Without a way, or with a full device, it is lost as on a link: the listener misses it.
                let taken = sendto(self.mouth.as_raw_fd(), &packet, &to, MsgFlags::empty());
                self.unsent += u64::from(taken.is_err());
            }
            Ask::Close(_) | Ask::Stop(_) => {
                self.config.workload.cut_short();
                self.tell(now, ApplicationEvent::Stopped);
                let how = match self.unsent {
                    0 => "Stopped".to_owned(),
                    unsent => format!("Stopped; {unsent} packets had no way"),
                };
                self.tell(now, ApplicationEvent::Ended { side: Side::Opener, how });
            }
        }
    }

    /// A packet came, at `stamp` by the kernel's clock.
    fn heard(&self, packet: &[u8], stamp: Duration) {
        let Some(number) = self.config.rtp.number(packet, self.sent) else { return };
        let since = wall_clock().saturating_sub(stamp);
        let at = self.clock.now().saturating_sub(since);
        let payload = self.config.payload;
        self.tell(at, ApplicationEvent::Voice(VoiceEvent::Arrived { number, payload }));
    }
}
