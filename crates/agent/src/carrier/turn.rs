//! What one turn does, and what the next one waits for.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::{NetlinkMonitor, SeenRequest};
use careof_mobility::v4::{Input, InterfaceId, LinkAddress, Wake, WallClock};
use careof_wire::mip4::{Message, PathCounts, PathProbe, RegistrationRequest};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::agent::Agent;
use super::alarm::{Alarm, failed};
use super::cluster::Membership;
use super::data_plane::{DataPlane, LANES};
use super::decisions::Traffic;
use super::signalling::{LONGEST_MESSAGE, Signalling};
use super::{Error, Ipv4Carrier, hooks};

/// Registration messages taken in one turn. What they change is written down at once: the more of them, the fewer of the waits for
/// the disk, of which each turn has one.
const REGISTRATIONS_A_TURN: usize = 512;
/// And none is begun when those before took so long, whatever one of them costs.
const LONG_TURN: Duration = Duration::from_millis(20);
/// ICMP messages taken in one turn.
const MESSAGES_A_TURN: usize = 128;
/// Announcements that are not of this turn, sent in one.
const ANNOUNCEMENTS_A_TURN: usize = 128;
/// Rounds of an agent that wants to be woken at once; it is woken again in the next turn.
const WAKES_A_TURN: usize = 16;

/// What can be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Timer,
    Monitor,
    Udp,
    Icmp,
    Device,
    /// Messages about paths.
    Paths,
    /// Messages of a cluster.
    Cluster,
    /// Packets, or errors, of a lane.
    Lane(usize),
    /// Room for what a lane has to send.
    Room(usize),
}

impl Source {
    const ALL: [Self; 13] = [
        Self::Timer,
        Self::Monitor,
        Self::Udp,
        Self::Icmp,
        Self::Device,
        Self::Paths,
        Self::Cluster,
        Self::Lane(0),
        Self::Lane(1),
        Self::Lane(2),
        Self::Room(0),
        Self::Room(1),
        Self::Room(2),
    ];
}

/// Everything a carrier waits for, as one descriptor.
#[derive(Debug)]
pub(super) struct Waiting {
    epoll: Epoll,
    alarm: Alarm,
    /// Whether the tunnel device is waited for: not while what was read cannot be sent.
    device: bool,
    /// For which lanes room is waited for.
    room: [bool; LANES.len()],
}

impl Waiting {
    pub(super) fn new(
        monitor: &NetlinkMonitor,
        signalling: &Signalling,
        cluster: Option<&Membership>,
        data: &DataPlane,
    ) -> Result<Self, Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?;
        let alarm = Alarm::new()?;
        for (token, source) in (0u64..).zip(Source::ALL) {
            let (fd, flags) = match source {
                Source::Timer => (alarm.as_fd(), EpollFlags::EPOLLIN),
                Source::Monitor => (monitor.as_fd(), EpollFlags::EPOLLIN),
                Source::Udp => (signalling.udp.as_fd(), EpollFlags::EPOLLIN),
                Source::Icmp => (signalling.icmp.as_fd(), EpollFlags::EPOLLIN),
                Source::Device => (data.device(), EpollFlags::EPOLLIN),
                Source::Paths => match &data.bonds {
                    Some(bonds) => (bonds.socket.as_fd(), EpollFlags::EPOLLIN),
                    None => continue,
                },
                Source::Cluster => match cluster {
                    Some(cluster) => (cluster.as_fd(), EpollFlags::EPOLLIN),
                    None => continue,
                },
                Source::Lane(lane) => (data.lanes[lane].socket.as_fd(), EpollFlags::EPOLLIN),
                Source::Room(lane) => (data.lanes[lane].socket.sending_fd(), EpollFlags::empty()),
            };
            epoll.add(fd, EpollEvent::new(flags, token)).map_err(failed("epoll_ctl"))?;
        }
        Ok(Self { epoll, alarm, device: true, room: [false; LANES.len()] })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// What is ready now, and whether it has an error to tell.
    fn ready(&self) -> Result<([bool; Source::ALL.len()], [bool; LANES.len()]), Error> {
        let mut events = [EpollEvent::empty(); Source::ALL.len()];
        let count = loop {
            match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
                Err(Errno::EINTR) => {}
                outcome => break outcome.map_err(failed("epoll_wait"))?,
            }
        };
        let (mut ready, mut errors) = ([false; Source::ALL.len()], [false; LANES.len()]);
        for event in events.iter().take(count) {
            let token = usize::try_from(event.data()).unwrap_or(usize::MAX);
            if let Some(is_ready) = ready.get_mut(token) {
                *is_ready = true;
            }
            if let Some(Source::Lane(lane)) = Source::ALL.get(token)
                && event.events().contains(EpollFlags::EPOLLERR)
            {
                errors[*lane] = true;
            }
        }
        Ok((ready, errors))
    }

    /// Waits for room where packets wait for it, and for packets where there is room.
    fn adjust(&mut self, data: &DataPlane) -> Result<(), Error> {
        let change = |fd: BorrowedFd<'_>, flags, source| {
            let token = Source::ALL.iter().position(|known| *known == source).unwrap_or(usize::MAX);
            let mut event = EpollEvent::new(flags, token as u64);
            self.epoll.modify(fd, &mut event).map_err(failed("epoll_ctl"))
        };
        let wanted = |on, flag| if on { flag } else { EpollFlags::empty() };
        let device = !data.is_blocked();
        if device != self.device {
            change(data.device(), wanted(device, EpollFlags::EPOLLIN), Source::Device)?;
        }
        for (lane, room) in self.room.iter_mut().enumerate() {
            let is_blocked = data.lanes[lane].is_blocked;
            if is_blocked != *room {
                let fd = data.lanes[lane].socket.sending_fd();
                change(fd, wanted(is_blocked, EpollFlags::EPOLLOUT), Source::Room(lane))?;
                *room = is_blocked;
            }
        }
        self.device = device;
        Ok(())
    }
}

impl Ipv4Carrier {
    pub(super) fn turn(&mut self) -> Result<(), Error> {
        let (ready, errors) = self.waiting.ready()?;
        let now = self.clock.now();
        self.read_clock(now);
        for (source, _) in Source::ALL.iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
            match source {
                Source::Timer => self.waiting.alarm.acknowledge(),
                Source::Monitor => self.take_changes(now)?,
                Source::Udp => self.take_datagrams(now),
                Source::Icmp => self.take_icmp(now),
                Source::Cluster => self.cluster.iter_mut().for_each(|cluster| cluster.take_messages(now)),
                _ => {}
            }
        }
        self.read_again(now)?;
        self.ask_again(now)?;
        self.wake(now);
        self.settle(now)?;
        let has_messages =
            Source::ALL.iter().zip(ready).any(|(source, is_ready)| *source == Source::Paths && is_ready);
        let bonds = self.data.bonds.as_mut().filter(|_| has_messages);
        // Time goes on for whoever has heard of them.
        let now = bonds.and_then(|bonds| bonds.take_messages(&self.clock)).unwrap_or(now);
        self.data.drive_bonds(now, &mut self.decisions)?;
        // The reply has left, and nothing has been read yet that could overtake what is due.
        self.data.drive_assists(now, &mut self.decisions)?;
        for (source, _) in Source::ALL.iter().zip(ready).filter(|(_, is_ready)| *is_ready) {
            let decisions = &mut self.decisions;
            match *source {
                Source::Lane(lane) => {
                    if errors[lane] {
                        self.data.take_errors(now, lane, decisions)?;
                    }
                    self.data.carry_in(now, lane, decisions)?;
                }
                Source::Room(lane) => self.data.resume(now, lane, decisions)?,
                Source::Device => self.data.carry_out(now, decisions)?,
                _ => {}
            }
        }
        // What has come has perhaps to be told of at once.
        self.data.drive_bonds(now, &mut self.decisions)?;
        self.send_reports();
        self.rest(now)
    }

    /// Ends what is not a turn of its own.
    pub(super) fn finish_turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        self.drain(now);
        self.wake(now);
        self.settle(now)?;
        self.data.drive_bonds(now, &mut self.decisions)?;
        self.data.drive_assists(now, &mut self.decisions)?;
        self.send_reports();
        self.rest(now)
    }

    /// Gives the agent the time of day, which may have been set.
    pub(super) fn read_clock(&mut self, now: Instant) -> WallClock {
        let wall_clock = hooks::wall_clock(self.time_of_day.as_ref(), now);
        self.agent.set_clock(wall_clock);
        wall_clock
    }

    fn take_datagrams(&mut self, now: Instant) {
        self.neighbourhood.listen();
        let mut buffer = [0; LONGEST_MESSAGE];
        let begun = self.clock.now();
        for _ in 0..REGISTRATIONS_A_TURN {
            if self.clock.now().saturating_duration_since(begun) > LONG_TURN {
                break;
            }
            match self.signalling.udp.receive(&mut buffer) {
                Ok(Some(datagram)) => {
                    let interface = self.interfaces.id_of(datagram.interface);
                    let link_address = self.requester(interface, datagram.interface, datagram.payload);
                    self.tell_traffic(datagram.source, datagram.payload);
                    self.tell_agent(
                        now,
                        Input::Udp {
                            interface,
                            source: datagram.source,
                            source_port: datagram.source_port,
                            destination: datagram.destination,
                            destination_port: datagram.destination_port,
                            ttl: datagram.ttl,
                            link_address,
                            payload: datagram.payload,
                        },
                    );
                    self.drain(now);
                }
                Ok(None) => break,
                Err(_) => {
                    self.signalling.unreadable += 1;
                    break;
                }
            }
        }
    }

    /// Home agent: has what it answers to a probe tell what has passed there.
    fn tell_traffic(&mut self, source: Ipv4Addr, payload: &[u8]) {
        let Agent::Home(agent) = &mut self.agent else { return };
        let Some(fixed) = payload.first_chunk::<{ PathProbe::FIXED_LEN }>() else { return };
        if payload.first() != Some(&PathProbe::TYPE) {
            return;
        }
        let Ok(Message::PathProbe(probe)) = Message::parse(fixed) else { return };
        if let Some((sent, received)) = self.decisions.traffic(probe.home_address, source) {
            #[expect(clippy::cast_possible_truncation, reason = "the field wraps")]
            let packets = |traffic: Traffic| traffic.packets as u32;
            let counts = PathCounts {
                packets_sent: packets(sent),
                packets_received: packets(received),
                bytes_sent: sent.bytes,
                bytes_received: received.bytes,
            };
            agent.note_traffic(probe.home_address, source, counts);
        }
    }

    /// Mobile node: tells it what has passed by which path.
    fn note_passed(&mut self, now: Instant) {
        let Agent::Mobile(node) = &mut self.agent else { return };
        for (path, sent, received) in self.data.passed() {
            let PathId::Interface(interface) = path else { continue };
            let packets = |traffic: Traffic| u32::try_from(traffic.packets).unwrap_or(u32::MAX);
            // What came can have been answered already; the other way round it takes longer than a turn.
            if received.packets > 0 {
                node.note_received(now, interface, packets(received), received.bytes);
            }
            if sent.packets > 0 {
                node.note_sent(now, interface, packets(sent), sent.bytes);
            }
        }
    }

    /// Foreign agent: from which station of its link a request came.
    fn requester(&mut self, id: InterfaceId, index: u32, payload: &[u8]) -> Option<LinkAddress> {
        let state = self.interfaces.get(id)?.state.as_ref()?;
        if !matches!(self.agent, Agent::Foreign(_)) || state.link_address.is_none() {
            return None;
        }
        let request = payload.first_chunk::<{ RegistrationRequest::FIXED_LEN }>()?;
        let Ok(Message::Request(request)) = Message::parse(request) else { return None };
        let (home_address, identification_low) = (request.home_address, request.identification.low());
        let seen = self.neighbourhood.requester(index, SeenRequest { home_address, identification_low });
        Some(seen.map_or(LinkAddress::UNSEEN, LinkAddress))
    }

    fn take_icmp(&mut self, now: Instant) {
        self.neighbourhood.listen();
        let mut buffer = [0; LONGEST_MESSAGE];
        for _ in 0..MESSAGES_A_TURN {
            match self.signalling.icmp.receive(&mut buffer) {
                Ok(Some(datagram)) => {
                    let interface = self.interfaces.id_of(datagram.interface);
                    self.tell_agent(
                        now,
                        Input::Icmp {
                            interface,
                            source: datagram.source,
                            destination: datagram.destination,
                            ttl: datagram.ttl,
                            message: datagram.message,
                        },
                    );
                    self.drain(now);
                }
                Ok(None) => break,
                Err(_) => {
                    self.signalling.unreadable += 1;
                    break;
                }
            }
        }
    }

    /// Does what is due.
    fn wake(&mut self, now: Instant) {
        self.follow_cluster(now);
        for _ in 0..WAKES_A_TURN {
            let Some((_, wake)) = self.agent.next_timeout().filter(|(at, _)| *at <= now) else { break };
            if wake == Wake::PathProbe {
                // Where nothing comes any longer the carrier may be gone, and the kernel may not have told.
                self.questions.ask(now);
            }
            self.tell_received_data(now);
            self.agent.handle_timeout(now);
            self.drain(now);
        }
        for _ in 0..ANNOUNCEMENTS_A_TURN {
            // Not before packets for who is announced find their way.
            let is_settled = !self.host.is_settling();
            let Some(announcement) = self.announcements.due(now, is_settled) else { break };
            self.announce(announcement);
        }
        if let Some(assists) = &mut self.data.assists {
            assists.wake(now);
        }
    }

    /// Brings the host in line with the agent, writes down what must not be lost, and only then says it.
    fn settle(&mut self, now: Instant) -> Result<(), Error> {
        let save_again = self.persistence.next_timeout().is_some_and(|at| at <= now);
        if std::mem::take(&mut self.stirred) || save_again {
            self.follow_mobile_node();
        }
        self.follow_paths(now);
        self.host.proceed();
        // It knows by itself whether there is something to write down, which may be due to time alone.
        self.save(now);
        let mut outgoing = std::mem::take(&mut self.outgoing);
        for transmit in outgoing.drain(..) {
            let lent = self.lend_neighbour(&transmit);
            self.signalling.send(&transmit, &self.interfaces);
            if let Some((index, address)) = lent {
                self.host.unset_neighbour(index, address);
            }
        }
        self.outgoing = outgoing;
        Ok(())
    }

    fn send_reports(&mut self) {
        for report in self.data.take_reports() {
            let mut message = Vec::new();
            report.message.emit(&mut message);
            self.signalling.send_error(report.source, report.destination, &message);
        }
    }

    /// Says when to come again.
    fn rest(&mut self, now: Instant) -> Result<(), Error> {
        self.note_passed(now);
        let agent = self.agent.next_timeout().map(|(at, _)| at);
        let assists = self.data.assists.as_ref().and_then(|assists| assists.next_timeout());
        let others = [
            self.host.is_settling().then_some(now),
            self.announcements.next_timeout(now),
            self.persistence.next_timeout(),
            self.reading.next_timeout(),
            self.questions.next_timeout(),
            assists,
            self.data.bonds.as_ref().and_then(|bonds| bonds.next_timeout(now)),
            self.cluster.as_ref().and_then(|cluster| cluster.next_timeout()),
        ];
        let next = agent.into_iter().chain(others.into_iter().flatten()).min();
        self.waiting.alarm.arm(now, next)?;
        self.waiting.adjust(&self.data)
    }
}
