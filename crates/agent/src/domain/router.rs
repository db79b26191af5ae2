//! A router of a domain on this host.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};

use careof_base::Instant;
use careof_lab::{Clock, LinkSocket, Tun};
use careof_mobility::InterfaceId;
use careof_mobility::micro::{
    Action, BufferCounters, Counters, DiscardReason, Event, Forward, PacketDrop, PacketToken, Ports, Role,
    Router, RouterConfig, Transmit,
};
use careof_wire::ipv4::{Ipv4Header, count_down};

use super::waiting::Waiting;
use super::{
    DomainTraffic, LONGEST_PACKET, PACKETS_A_TURN, Told, is_for_all, message_in, open_link, packet_of,
};
use crate::{Device, Error};

/// A link of a router inside the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainLink {
    /// The device, and the number by which the router's configuration speaks of it.
    pub device: Device,
    /// The address of the router at the other end; `None` for a cell.
    pub peer: Option<Ipv4Addr>,
}

/// A router of a domain, with everything it needs.
#[derive(Debug)]
pub struct DomainRouterSetup {
    /// What the router is.
    pub config: RouterConfig,
    /// Its links in the domain, the cell of a base station among them; the uplink of a gateway is none.
    pub links: Vec<DomainLink>,
    /// All addresses of this host.
    pub addresses: BTreeSet<Ipv4Addr>,
    /// Gateway: the device that is the domain to its host.
    pub domain: Option<Tun>,
}

#[derive(Debug)]
struct Link {
    id: InterfaceId,
    socket: LinkSocket,
    peer: Option<Ipv4Addr>,
}

/// A packet that is kept.
#[derive(Debug)]
enum Kept {
    /// It has not gone anywhere.
    Held(Vec<u8>),
    /// A copy of what has gone on.
    Copy(Vec<u8>),
}

/// One router of a domain on this host, in the network namespace of the thread that opened it.
///
/// It is driven as a [`Carrier`](crate::Carrier) is: wait until its descriptor is readable, call [`DomainRouter::turn`], take what
/// [`DomainRouter::poll_event`] has.
#[derive(Debug)]
pub struct DomainRouter {
    agent: Router,
    address: Ipv4Addr,
    addresses: BTreeSet<Ipv4Addr>,
    links: Vec<Link>,
    /// Gateway: the domain's device, and the number of the interface that leads out of the domain.
    outside: Option<(Tun, InterfaceId)>,
    /// Towards the gateway.
    uplink: Option<InterfaceId>,
    cell: Option<InterfaceId>,
    /// The cell and the links that lead down.
    below: Ports,
    kept: BTreeMap<PacketToken, Kept>,
    events: Told<Event>,
    traffic: DomainTraffic,
    waiting: Waiting,
    buffer: Vec<u8>,
    clock: Clock,
}

impl DomainRouter {
    /// Opens the router's links. `clock` is the one that all instants are of.
    ///
    /// # Errors
    /// [`Error::Config`] for a configuration that is none, [`Error::UnnamedInterface`] where an interface of it has no link,
    /// [`Error::System`] for what the kernel refuses.
    pub fn open(setup: DomainRouterSetup, clock: Clock) -> Result<Self, Error> {
        let DomainRouterSetup { config, links, addresses, domain } = setup;
        let (address, cell) = (config.address, config.cell);
        let is_gateway = config.role == Role::Gateway;
        let below: Ports = config.downlinks.iter().map(|link| link.interface).chain(cell).collect();
        let uplink = config.uplink.filter(|_| !is_gateway);
        // One that leads nowhere has a number that no interface has.
        let out = config.uplink.unwrap_or(InterfaceId(u16::MAX));
        let named = |id: InterfaceId| links.iter().any(|link| link.device.id == id);
        if let Some(id) = below.iter().chain(uplink).find(|id| !named(*id)) {
            return Err(Error::UnnamedInterface { number: id.0 });
        }
        let agent = Router::new(config)?;
        let open = |link: DomainLink| {
            let socket = open_link(&link.device.name)?;
            Ok(Link { id: link.device.id, socket, peer: link.peer })
        };
        let links = links.into_iter().map(open).collect::<Result<Vec<_>, Error>>()?;
        let outside = domain.map(|device| (device, out));
        let devices = outside.iter().map(|(device, _)| device.as_fd());
        let waiting = Waiting::new(links.iter().map(|link| link.socket.as_fd()).chain(devices))?;
        Ok(Self {
            agent,
            address,
            addresses,
            links,
            outside,
            uplink,
            cell,
            below,
            kept: BTreeMap::new(),
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
                self.take_from_link(self.links[at].id, packet)?;
            }
        }
        for _ in 0..PACKETS_A_TURN {
            let Some((device, out)) = &self.outside else { break };
            let out = *out;
            // Nothing waits there, or the device is going.
            let Ok(len) = device.receive(buffer) else { break };
            self.take_from_outside(out, &buffer[..len])?;
        }
        Ok(())
    }

    fn arm(&mut self) -> Result<(), Error> {
        let next = self.agent.next_timeout().map(|(at, _)| at);
        self.waiting.arm(self.clock.now(), next)
    }

    /// A packet came in by a link of the domain.
    fn take_from_link(&mut self, from: InterfaceId, packet: &mut [u8]) -> Result<(), Error> {
        let now = self.clock.now();
        let Ok((header, payload)) = Ipv4Header::parse(packet) else {
            self.traffic.taken += 1;
            self.traffic.drop("malformed");
            return Ok(());
        };
        let is_ours = self.addresses.contains(&header.destination);
        if let Some(message) = message_in(&header, payload).filter(|_| is_ours) {
            self.agent.handle_message(now, from, header.source, message);
            return self.drain(now);
        }
        self.traffic.taken += 1;
        let is_for_all = is_for_all(header.destination);
        match &self.outside {
            // What is for the foreign agent, or for its kernel.
            Some((device, _)) if is_ours || is_for_all => {
                match device.send(packet) {
                    Ok(()) => self.traffic.handed_on += 1,
                    Err(_) => self.traffic.drop("not-sent"),
                }
                return Ok(());
            }
            // Its kernel counts down what it passes on.
            Some(_) => {}
            None if is_ours => {
                self.traffic.drop("not-for-us");
                return Ok(());
            }
            // What is for everybody on the link of a mobile node or of its foreign agent passes through the domain.
            None if is_for_all => {
                let is_from_above = self.uplink == Some(from);
                let up = self.uplink.map_or(Ports::NONE, Ports::one);
                return self.send_to(if is_from_above { self.below } else { up }, packet);
            }
            None if !count_down(packet) => {
                self.traffic.drop("ttl-expired");
                return Ok(());
            }
            None => {}
        }
        self.pass_on(now, from, &header, packet)
    }

    /// Gateway: its host sends a packet into the domain.
    fn take_from_outside(&mut self, out: InterfaceId, packet: &[u8]) -> Result<(), Error> {
        self.traffic.taken += 1;
        let Ok((header, _)) = Ipv4Header::parse(packet) else {
            self.traffic.drop("malformed");
            return Ok(());
        };
        if is_for_all(header.destination) {
            return self.send_to(self.below, packet);
        }
        self.pass_on(self.clock.now(), out, &header, packet)
    }

    /// Shows a packet to the agent, and does as it says.
    fn pass_on(
        &mut self,
        now: Instant,
        from: InterfaceId,
        header: &Ipv4Header,
        packet: &[u8],
    ) -> Result<(), Error> {
        let (source, destination) = (header.source, header.destination);
        match self.agent.handle_packet(now, from, source, destination, packet.len() as u32) {
            Forward::To(ports) => self.send_to(ports, packet)?,
            Forward::Hold(token) => {
                self.traffic.held += 1;
                self.kept.insert(token, Kept::Held(packet.to_vec()));
            }
            Forward::ToAndHold(ports, token) => {
                self.kept.insert(token, Kept::Copy(packet.to_vec()));
                self.send_to(ports, packet)?;
            }
            Forward::Drop(reason) => self.traffic.drop(reason.name()),
        }
        self.drain(now)
    }

    /// Sends a packet, and copies of it, by these interfaces.
    fn send_to(&mut self, ports: Ports, packet: &[u8]) -> Result<(), Error> {
        let Some(copies) = ports.len().checked_sub(1) else {
            self.traffic.drop("no-route");
            return Ok(());
        };
        self.traffic.copies += u64::from(copies);
        for port in ports.iter() {
            if self.send_by(port, packet)? {
                self.traffic.handed_on += 1;
            } else {
                self.traffic.drop("not-sent");
            }
        }
        Ok(())
    }

    /// Sends a packet by an interface; `false`: it did not take it.
    fn send_by(&self, port: InterfaceId, packet: &[u8]) -> Result<bool, Error> {
        if let Some(link) = self.links.iter().find(|link| link.id == port) {
            return Ok(link.socket.send(packet)?);
        }
        let outside = self.outside.as_ref().filter(|(_, out)| *out == port);
        Ok(outside.is_some_and(|(device, _)| device.send(packet).is_ok()))
    }

    /// Drains the agent: messages, kept packets, events.
    fn drain(&mut self, now: Instant) -> Result<(), Error> {
        loop {
            if let Some(transmit) = self.agent.poll_transmit(now) {
                self.transmit(&transmit)?;
            } else if let Some(action) = self.agent.poll_action(now) {
                self.act(action)?;
            } else if let Some(event) = self.agent.poll_event() {
                self.events.keep(now, event, &mut self.traffic);
            } else {
                return Ok(());
            }
        }
    }

    fn transmit(&mut self, transmit: &Transmit) -> Result<(), Error> {
        let link = self.links.iter().find(|link| link.id == transmit.interface);
        let sent = match link.and_then(|link| Some((link, transmit.mobile.or(link.peer)?))) {
            Some((link, to)) => link.socket.send(&packet_of(self.address, to, &transmit.payload))?,
            None => false,
        };
        self.traffic.unsent_messages += u64::from(!sent);
        Ok(())
    }

    fn act(&mut self, action: Action) -> Result<(), Error> {
        let (Action::Release { token, .. } | Action::Discard { token, .. }) = action;
        let Some(kept) = self.kept.remove(&token) else { return Ok(()) };
        self.traffic.held -= u64::from(matches!(kept, Kept::Held(_)));
        match (action, kept) {
            (Action::Release { ports, .. }, Kept::Held(packet)) => self.send_to(ports, &packet),
            (Action::Release { ports, .. }, Kept::Copy(packet)) => {
                self.traffic.copies += 1;
                self.send_to(ports, &packet)
            }
            (Action::Discard { reason, .. }, Kept::Held(_)) => {
                self.traffic.drop(cause_of(reason));
                Ok(())
            }
            (Action::Discard { .. }, Kept::Copy(_)) => Ok(()),
        }
    }

    /// Base station: the link layer says that a mobile node is in the cell.
    ///
    /// # Errors
    /// As [`DomainRouter::turn`].
    pub fn note_attached(&mut self, mobile: Ipv4Addr) -> Result<(), Error> {
        let now = self.clock.now();
        self.agent.note_attached(now, mobile);
        self.drain(now)?;
        self.arm()
    }

    /// Base station: the link layer says that a mobile node has left the cell.
    ///
    /// # Errors
    /// As [`DomainRouter::turn`].
    pub fn note_detached(&mut self, mobile: Ipv4Addr) -> Result<(), Error> {
        let now = self.clock.now();
        self.agent.note_detached(now, mobile);
        self.drain(now)?;
        self.arm()
    }

    /// Base station: whether packets for a mobile node go into the cell.
    #[must_use]
    pub fn leads_into_cell(&self, mobile: Ipv4Addr) -> bool {
        let ports = self.agent.route(self.clock.now(), mobile);
        ports.zip(self.cell).is_some_and(|(ports, cell)| ports.contains(cell))
    }

    /// The next thing the router tells, and when it happened.
    pub fn poll_event(&mut self) -> Option<(Instant, Event)> {
        self.events.next()
    }

    /// What the agent has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        self.agent.counters()
    }

    /// What happened to packets that were kept.
    #[must_use]
    pub fn buffer_counters(&self) -> &BufferCounters {
        self.agent.buffer_counters()
    }

    /// What became of packets.
    #[must_use]
    pub const fn traffic(&self) -> &DomainTraffic {
        &self.traffic
    }
}

impl AsFd for DomainRouter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waiting.as_fd()
    }
}

/// What dropping a kept packet is called.
const fn cause_of(reason: DiscardReason) -> &'static str {
    match reason {
        DiscardReason::Full => PacketDrop::BufferFull.name(),
        DiscardReason::Expired | DiscardReason::CopyNotNeeded => "buffer-expired",
    }
}

// It may be opened in one thread and driven by another.
const _: () = {
    const fn is_send<T: Send>() {}
    is_send::<DomainRouter>();
};
