//! A mobile node of a domain on this host.

use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::Instant;
use careof_lab::{Clock, LinkSocket, Tun};
use careof_mobility::micro::{Counters, HostConfig, HostEvent, MobileHost};
use careof_wire::ipv4::Ipv4Header;

use super::waiting::Waiting;
use super::{DomainTraffic, LONGEST_PACKET, PACKETS_A_TURN, Told, message_in, open_link, packet_of};
use crate::Error;

/// The link of a mobile node to a base station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StationLink {
    /// The address of the base station.
    pub station: Ipv4Addr,
    /// The name of the device.
    pub device: String,
}

/// This host as a mobile node of a domain.
#[derive(Debug)]
pub struct DomainHostSetup {
    /// What the node is.
    pub config: HostConfig,
    /// Its links to all base stations.
    pub links: Vec<StationLink>,
    /// The device that is the domain to this host.
    pub domain: Tun,
}

#[derive(Debug)]
struct Link {
    station: Ipv4Addr,
    socket: LinkSocket,
}

/// A mobile node of a domain on this host, in the network namespace of the thread that opened it. It is driven as a
/// [`DomainRouter`](super::DomainRouter) is.
#[derive(Debug)]
pub struct DomainHost {
    agent: MobileHost,
    address: Ipv4Addr,
    domain: Tun,
    links: Vec<Link>,
    /// The link by which data is sent.
    in_use: Option<usize>,
    events: Told<HostEvent>,
    traffic: DomainTraffic,
    waiting: Waiting,
    buffer: Vec<u8>,
    clock: Clock,
}

impl DomainHost {
    /// Opens the mobile node's links. `clock` is the one that all instants are of.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that is none, [`Error::System`] for what the kernel refuses.
    pub fn open(setup: DomainHostSetup, clock: Clock) -> Result<Self, Error> {
        let DomainHostSetup { config, links, domain } = setup;
        let address = config.address;
        let open = |link: StationLink| {
            let socket = open_link(&link.device)?;
            Ok(Link { station: link.station, socket })
        };
        let links = links.into_iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let sockets = links.iter().map(|link| link.socket.as_fd());
        let waiting = Waiting::new(sockets.chain([domain.as_fd()]))?;
        Ok(Self {
            agent: MobileHost::new(config)?,
            address,
            domain,
            links,
            in_use: None,
            events: Told::new(),
            traffic: DomainTraffic::default(),
            waiting,
            buffer: vec![0; LONGEST_PACKET],
            clock,
        })
    }

    /// Does what there is to do now: a bounded amount of it, and never waits. When there is more, the descriptor stays readable.
    ///
    /// # Errors
    /// A link is gone.
    pub fn turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if self.agent.next_timeout().is_some_and(|(at, _)| at <= now) {
            self.waiting.has_come();
            self.agent.handle_timeout(now);
            self.drain(now)?;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let done = self.take_packets(&mut buffer);
        self.buffer = buffer;
        done?;
        self.arm()
    }

    fn take_packets(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        for at in 0..self.links.len() {
            for _ in 0..PACKETS_A_TURN {
                let Some(packet) = self.links[at].socket.receive(buffer)? else { break };
                self.take_from_link(packet)?;
            }
        }
        for _ in 0..PACKETS_A_TURN {
            // Nothing waits there, or the device is going.
            let Ok(len) = self.domain.receive(buffer) else { break };
            self.send(&buffer[..len])?;
        }
        Ok(())
    }

    fn arm(&mut self) -> Result<(), Error> {
        let next = self.agent.next_timeout().map(|(at, _)| at);
        self.waiting.arm(self.clock.now(), next)
    }

    /// A packet came from a base station.
    fn take_from_link(&mut self, packet: &[u8]) -> Result<(), Error> {
        let now = self.clock.now();
        let parsed = Ipv4Header::parse(packet).ok();
        let message = parsed.as_ref().and_then(|(header, payload)| {
            let message = message_in(header, payload).filter(|_| header.destination == self.address)?;
            Some((header.source, message))
        });
        if let Some((station, message)) = message {
            self.agent.handle_message(now, station, message);
            return self.drain(now);
        }
        self.traffic.taken += 1;
        match parsed.map(|_| self.domain.send(packet)) {
            Some(Ok(())) => self.traffic.handed_on += 1,
            Some(Err(_)) => self.traffic.drop("not-sent"),
            None => self.traffic.drop("malformed"),
        }
        self.agent.note_received(now);
        self.drain(now)
    }

    /// The host sends a packet.
    fn send(&mut self, packet: &[u8]) -> Result<(), Error> {
        let now = self.clock.now();
        self.traffic.taken += 1;
        match self.in_use.and_then(|at| self.links.get(at)) {
            Some(link) if link.socket.send(packet)? => self.traffic.handed_on += 1,
            Some(_) => self.traffic.drop("not-sent"),
            None => self.traffic.drop("no-route"),
        }
        self.agent.note_sent(now);
        self.drain(now)
    }

    /// Drains the agent: messages, events.
    fn drain(&mut self, now: Instant) -> Result<(), Error> {
        loop {
            if let Some(transmit) = self.agent.poll_transmit(now) {
                let link = self.links.iter().find(|link| link.station == transmit.station);
                let packet = || packet_of(self.address, transmit.station, &transmit.payload);
                let sent = match link {
                    Some(link) => link.socket.send(&packet())?,
                    None => false,
                };
                self.traffic.unsent_messages += u64::from(!sent);
            } else if let Some(event) = self.agent.poll_event() {
                self.events.keep(now, event, &mut self.traffic);
            } else {
                return Ok(());
            }
        }
    }

    /// The link layer is at the base station of this address now, and may still be at another; data goes there.
    ///
    /// # Errors
    /// As [`DomainHost::turn`].
    pub fn attached(&mut self, station: Ipv4Addr) -> Result<(), Error> {
        let now = self.clock.now();
        self.in_use = self.links.iter().position(|link| link.station == station);
        self.agent.attached(now, station);
        self.drain(now)?;
        self.arm()
    }

    /// The link layer is no longer at the base station of this address.
    ///
    /// # Errors
    /// As [`DomainHost::turn`].
    pub fn detached(&mut self, station: Ipv4Addr) -> Result<(), Error> {
        let now = self.clock.now();
        self.agent.detached(now, station);
        self.drain(now)?;
        self.arm()
    }

    /// The mobile node will go to one of these base stations, the likeliest first.
    ///
    /// # Errors
    /// As [`DomainHost::turn`].
    pub fn announce(&mut self, next: &[Ipv4Addr]) -> Result<(), Error> {
        let now = self.clock.now();
        self.agent.announce(now, next);
        self.drain(now)?;
        self.arm()
    }

    /// The next thing the mobile node tells, and when it happened.
    pub fn poll_event(&mut self) -> Option<(Instant, HostEvent)> {
        self.events.next()
    }

    /// What the agent has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.agent.counters()
    }

    /// What became of packets.
    #[must_use]
    pub const fn traffic(&self) -> &DomainTraffic {
        &self.traffic
    }
}

impl AsFd for DomainHost {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

// It may be opened in one thread and driven by another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<DomainHost>();
};
