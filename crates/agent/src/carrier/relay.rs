//! Carries a relay on this host: it lends its link to others of its cluster.
//!
//! It changes nothing in the host: packets come and go by raw sockets, and the kernel forwards none of them.

use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_base::{Instant, Probability, RandomStream, Randomness};
use careof_lab::{
    AgentSocket, Clock, Flushed, Netlink, NetlinkMonitor, Outer, ReceiveBatch, SendBatch, TunnelSocket,
};
use careof_mobility::multipath::alliance::{
    CLUSTER_PORT, Incoming, Onward, Relay, RelayConfig, RelayDrop, Side,
};
use careof_mobility::v4::{InterfaceId, Notice};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::alarm::{Alarm, failed};
use super::assists::Assists;
use super::cluster::{self, ClusterEvent, Unheard, network_on, place_on};
use super::decisions::Traffic;
use super::event_queue::EventQueue;
use super::interfaces::Interfaces;
use super::reading::Reading;
use super::snapshot::left;
use super::status::{AllyStatus, Overview, RelayStatus};
use super::{AgentCounters, Device, Error, InterfaceStatus, Role, Status, StoreError};

/// The interface to the cluster, and the one of the link that is lent.
const CLUSTER: InterfaceId = InterfaceId(0);
const LINK: InterfaceId = InterfaceId(1);
/// Packets received, or sent, by one system call.
const BATCH: usize = 64;
/// Batches received in one turn.
const BATCHES_A_TURN: usize = 8;
/// Errors of the network about packets, read in one turn.
const ERRORS_A_TURN: usize = 64;
/// Changes of the network taken in one turn.
const CHANGES_A_TURN: usize = 256;

/// This host as a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelaySetup {
    /// What it lends, and to whom. Its addresses are read from the kernel; what the configuration says about them is not used.
    pub config: RelayConfig,
    /// The interface to the cluster.
    pub cluster: String,
    /// The interface of the link that it lends. What it relays leaves there by the host's routes.
    pub link: String,
}

impl RelaySetup {
    /// Both interfaces.
    #[must_use]
    pub fn devices(&self) -> [Device; 2] {
        [Device::new(CLUSTER.0, self.cluster.clone()), Device::new(LINK.0, self.link.clone())]
    }
}

/// Whether a setup is one.
pub(super) fn check(setup: &RelaySetup) -> Result<(), Error> {
    super::check_devices(&setup.devices())
}

/// Packets that were not passed on, but for those that the relay itself refuses.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    /// Nothing that can be read, or no packet within a packet.
    malformed: u64,
    /// By another interface than the two.
    elsewhere: u64,
    /// The link or the cluster is not there.
    no_link: u64,
    /// There was no room for them.
    not_queued: u64,
    /// Of those passed on: the kernel refused to send them.
    refused: u64,
    /// Errors that the network told about packets. They are of no use to a relay: the ends of a path find out by themselves whether
    /// anything comes through.
    errors: u64,
}

/// A relay that does not do what it says, for tests and for scenarios with such a one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RelayFaults {
    /// Of what it would pass on, so much is dropped.
    pub drops: Probability,
    /// What it passes on is sent so many times more.
    pub repeats: u8,
    /// It neither says, hears nor passes on anything, as one that is gone.
    pub is_gone: bool,
}

/// What a relay does wrong, and what came of it.
#[derive(Debug)]
struct Wrong {
    faults: RelayFaults,
    random: RandomStream,
    dropped: u64,
    repeated: u64,
}

impl Wrong {
    fn drops(&mut self) -> bool {
        let drops = self.faults.is_gone || self.random.chance(self.faults.drops);
        self.dropped += u64::from(drops);
        drops
    }
}

/// What the carrier waits for.
const ALARM: u64 = 0;
const MONITOR: u64 = 1;
const MESSAGES: u64 = 2;
const PACKETS: u64 = 3;
const ROOM: u64 = 4;
const SOURCES: usize = 5;

/// A relay on this host; see [`Carrier`](super::Carrier).
#[derive(Debug)]
pub(super) struct RelayCarrier {
    setup: RelaySetup,
    relay: Relay,
    clock: Clock,
    opened: Instant,
    interfaces: Interfaces,
    netlink: Netlink,
    monitor: NetlinkMonitor,
    socket: AgentSocket,
    tunnel: TunnelSocket,
    /// `None` only while it is being emptied.
    received: Option<ReceiveBatch>,
    batch: SendBatch,
    is_blocked: bool,
    epoll: Epoll,
    alarm: Alarm,
    reading: Reading,
    pub(super) events: EventQueue<ClusterEvent>,
    lost: Lost,
    unsent: u64,
    unheard: Unheard,
    /// Packets that came, by whichever tunnel.
    came: u64,
    /// To mobile nodes, and from them.
    passed_on: [Traffic; 2],
    wrong: Option<Wrong>,
    closed: bool,
}

impl RelayCarrier {
    pub(super) fn open(setup: RelaySetup, clock: Clock, mut random: Randomness) -> Result<Self, Error> {
        check(&setup)?;
        let now = clock.now();
        let mut relay = Relay::new(now, setup.config.clone(), random.next_u64());
        // Nothing is lent before the host was looked at.
        relay.set_outside(now, None);
        relay.set_cluster(now, None);
        let netlink = Netlink::open()?;
        let mut carrier = Self {
            relay,
            clock,
            opened: now,
            interfaces: Interfaces::new(&setup.devices(), None),
            // Before anything is read, so that no change falls in between.
            monitor: NetlinkMonitor::open()?,
            netlink,
            socket: AgentSocket::open(CLUSTER_PORT)?,
            tunnel: TunnelSocket::open(protocol::IP_IN_IP)?,
            received: Some(ReceiveBatch::new(BATCH)),
            batch: SendBatch::new(BATCH),
            is_blocked: false,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed("epoll_create1"))?,
            alarm: Alarm::new()?,
            reading: Reading::default(),
            events: EventQueue::default(),
            lost: Lost::default(),
            unsent: 0,
            unheard: Unheard::default(),
            came: 0,
            passed_on: [Traffic::default(); 2],
            wrong: None,
            closed: false,
            setup,
        };
        carrier.watch()?;
        carrier.read_network(now);
        if let Some(error) = carrier.reading.take_problem() {
            return Err(error.into());
        }
        carrier.finish_turn()?;
        Ok(carrier)
    }

    fn watch(&self) -> Result<(), Error> {
        let sources = [
            (ALARM, self.alarm.as_fd(), EpollFlags::EPOLLIN),
            (MONITOR, self.monitor.as_fd(), EpollFlags::EPOLLIN),
            (MESSAGES, self.socket.as_fd(), EpollFlags::EPOLLIN),
            (PACKETS, self.tunnel.as_fd(), EpollFlags::EPOLLIN),
            (ROOM, self.tunnel.sending_fd(), EpollFlags::empty()),
        ];
        for (token, fd, flags) in sources {
            self.epoll.add(fd, EpollEvent::new(flags, token)).map_err(failed("epoll_ctl"))?;
        }
        Ok(())
    }

    pub(super) fn turn(&mut self) -> Result<(), Error> {
        let mut events = [EpollEvent::empty(); SOURCES];
        let count = loop {
            match self.epoll.wait(&mut events, EpollTimeout::ZERO) {
                Err(nix::errno::Errno::EINTR) => {}
                outcome => break outcome.map_err(failed("epoll_wait"))?,
            }
        };
        let ready: Vec<u64> = events.iter().take(count).map(EpollEvent::data).collect();
        let now = self.clock.now();
        if ready.contains(&ALARM) {
            self.alarm.acknowledge();
        }
        if ready.contains(&MONITOR) {
            for _ in 0..CHANGES_A_TURN {
                if self.monitor.poll_change()?.is_none() {
                    break;
                }
            }
            self.read_network(now);
        }
        if ready.contains(&MESSAGES) {
            self.take_messages(now);
        }
        if ready.contains(&ROOM) {
            self.flush()?;
        }
        if ready.contains(&PACKETS) {
            self.take_errors()?;
            self.carry(now)?;
        }
        self.finish_turn()
    }

    /// Does what is due, says what there is to say, and when to come again.
    fn finish_turn(&mut self) -> Result<(), Error> {
        let now = self.clock.now();
        if self.reading.next_timeout().is_some_and(|at| at <= now) {
            self.read_network(now);
        }
        if self.relay.next_timeout() <= now {
            self.relay.handle_timeout(now);
        }
        self.speak(now);
        let next = [Some(self.relay.next_timeout()), self.reading.next_timeout()];
        let next = next.into_iter().flatten().min().filter(|at| *at < Instant::MAX);
        Ok(self.alarm.arm(now, next)?)
    }

    /// Sends what the relay has to say, and takes what it tells.
    fn speak(&mut self, now: Instant) {
        while let Some(transmit) = self.relay.poll_transmit() {
            if self.is_gone() {
                continue;
            }
            let place = place_on(&self.interfaces, CLUSTER);
            self.unsent += u64::from(!cluster::send(&self.socket, place, &transmit));
        }
        while let Some(event) = self.relay.poll_event() {
            self.events.push(now, ClusterEvent::Relay(event));
        }
    }

    /// Reads what there is of both links, and lends what can be lent. What cannot be read is left as it was known, and read again soon.
    fn read_network(&mut self, now: Instant) {
        self.reading.begin();
        let outcome =
            self.reading.check().and_then(|()| cluster::read(&mut self.interfaces, &mut self.netlink));
        if self.reading.note(now, outcome).is_none() {
            return;
        }
        self.relay.set_cluster(now, network_on(&self.interfaces, CLUSTER));
        let outside = place_on(&self.interfaces, LINK).map(|(_, address, _)| address);
        if outside != self.relay.outside() {
            self.relay.set_outside(now, outside);
        }
    }

    fn take_messages(&mut self, now: Instant) {
        let index = self.interfaces.index_of(CLUSTER).filter(|_| !self.is_gone());
        cluster::receive(&self.socket, index, &mut self.unheard, |source, ttl, payload| {
            self.relay.handle_message(now, source, ttl, payload);
        });
    }

    /// Takes what the network says about packets: as long as that waits, the socket is ready, and it takes room of what comes in.
    fn take_errors(&mut self) -> Result<(), Error> {
        for _ in 0..ERRORS_A_TURN {
            if self.tunnel.next_error()?.is_none() {
                break;
            }
            self.lost.errors += 1;
        }
        Ok(())
    }

    /// From one side to the other.
    fn carry(&mut self, now: Instant) -> Result<(), Error> {
        let Some(mut received) = self.received.take() else { return Ok(()) };
        let outcome = self.carry_batches(now, &mut received);
        self.received = Some(received);
        outcome
    }

    fn carry_batches(&mut self, now: Instant, received: &mut ReceiveBatch) -> Result<(), Error> {
        for _ in 0..BATCHES_A_TURN {
            if self.is_blocked || self.tunnel.receive_batch(received)? == 0 {
                break;
            }
            for packet in received.packets() {
                self.pass_on(now, packet.interface, packet.bytes);
            }
            self.flush()?;
        }
        Ok(())
    }

    fn pass_on(&mut self, now: Instant, interface: u32, packet: &[u8]) {
        self.came += 1;
        if self.is_gone() && self.wrong.as_mut().is_some_and(Wrong::drops) {
            return;
        }
        let Ok((outer, payload)) = Ipv4Header::parse(packet) else { return self.lost.malformed += 1 };
        let Ok((inner, _)) = Ipv4Header::parse(payload) else { return self.lost.malformed += 1 };
        let side = [(CLUSTER, Side::Cluster), (LINK, Side::Link)];
        let side = side.into_iter().find(|(id, _)| self.interfaces.index_of(*id) == Some(interface));
        let Some((_, side)) = side else { return self.lost.elsewhere += 1 };
        let incoming = Incoming {
            side,
            entry: outer.source,
            source: inner.source,
            destination: inner.destination,
            ttl: outer.ttl,
            len: u32::try_from(payload.len()).unwrap_or(u32::MAX),
        };
        // Why it is refused is counted there.
        let Ok(Onward { side, entry, exit, ttl }) = self.relay.switch(now, &incoming) else { return };
        if self.wrong.as_mut().is_some_and(Wrong::drops) {
            return;
        }
        let out = if side == Side::Link { LINK } else { CLUSTER };
        let Some(index) = self.interfaces.index_of(out) else { return self.lost.no_link += 1 };
        let outer = Outer {
            source: entry,
            destination: exit,
            protocol: protocol::IP_IN_IP,
            tos: outer.tos,
            ttl,
            dont_fragment: false,
            interface: Some(index),
        };
        if self.batch.push(&outer, payload) {
            let passed_on = &mut self.passed_on[usize::from(side == Side::Link)];
            passed_on.note(1, payload.len() as u64);
            if let Some(wrong) = &mut self.wrong {
                let repeats = (0..wrong.faults.repeats).filter(|_| self.batch.push(&outer, payload));
                wrong.repeated += repeats.count() as u64;
            }
        } else {
            // As if the queue of the link were full.
            self.lost.not_queued += 1;
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        let refused = &mut self.lost.refused;
        let was_blocked = self.is_blocked;
        self.is_blocked = self.tunnel.send_batch(&mut self.batch, |_| *refused += 1)? == Flushed::Blocked;
        if self.is_blocked != was_blocked {
            // Until there is room nothing more is taken.
            let flags = |on, flag| if on { flag } else { EpollFlags::empty() };
            let room = EpollEvent::new(flags(self.is_blocked, EpollFlags::EPOLLOUT), ROOM);
            let packets = EpollEvent::new(flags(!self.is_blocked, EpollFlags::EPOLLIN), PACKETS);
            for (fd, mut event) in [(self.tunnel.sending_fd(), room), (self.tunnel.as_fd(), packets)] {
                self.epoll.modify(fd, &mut event).map_err(failed("epoll_ctl"))?;
            }
        }
        Ok(())
    }

    /// Does this wrong from now on.
    pub(super) fn go_wrong(&mut self, faults: RelayFaults, random: RandomStream) {
        let wrong = self.wrong.get_or_insert(Wrong { faults, random, dropped: 0, repeated: 0 });
        wrong.faults = faults;
    }

    fn is_gone(&self) -> bool {
        self.wrong.as_ref().is_some_and(|wrong| wrong.faults.is_gone)
    }

    pub(super) fn reconfigure(&mut self, setup: RelaySetup) -> Result<(), Error> {
        check(&setup)?;
        if setup.devices() != self.setup.devices() {
            return Err(Error::NeedsRestart { what: "the interfaces" });
        }
        let now = self.clock.now();
        self.relay.set_conditions(now, setup.config.clone());
        self.setup = setup;
        self.finish_turn()
    }

    pub(super) fn put_back(&mut self) -> Result<(), Error> {
        if !self.closed {
            self.closed = true;
            let now = self.clock.now();
            self.relay.set_willing(now, false);
            self.relay.handle_timeout(now);
            self.speak(now);
        }
        Ok(())
    }

    pub(super) const fn abandon(&mut self) {
        self.closed = true;
    }

    pub(super) const fn refuse_readings(&mut self, attempts: u32) {
        self.reading.refuse(attempts);
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn relay_status(&self, now: Instant) -> RelayStatus {
        let place = place_on(&self.interfaces, CLUSTER);
        let allies = self.relay.allies().map(|ally| AllyStatus {
            home_address: ally.home_address,
            client: ally.client,
            left_s: left(now, ally.expires).unwrap_or_default(),
            packets_in: ally.inward.0,
            bytes_in: ally.inward.1,
            packets_out: ally.outward.0,
            bytes_out: ally.outward.1,
        });
        RelayStatus {
            lends: self.relay.is_willing(),
            cluster: place.map(|(_, address, _)| address),
            outside: self.relay.outside(),
            most_allies: self.relay.config().clients,
            allies: allies.collect(),
            relayed_packets: self.passed_on.map(|traffic| traffic.packets),
            relayed_bytes: self.passed_on.map(|traffic| traffic.bytes),
        }
    }

    pub(super) fn interface_statuses(&self) -> Vec<InterfaceStatus> {
        self.interfaces.named().iter().map(|interface| interface.status(None)).collect()
    }

    fn counters(&self) -> AgentCounters {
        let mut counters = AgentCounters::new();
        cluster::count_messages(self.relay.counters(), self.unsent, self.unheard, &mut counters);
        let Lost { malformed, elsewhere, no_link, not_queued, refused, errors } = self.lost;
        let mut add = |name: String, value: u64| {
            counters.insert(name, value);
        };
        for reason in RelayDrop::ALL {
            add(format!("dropped-relay-{}", reason.name()), self.relay.dropped(reason));
        }
        add("relay-packets-received".to_owned(), self.came);
        add("packets-malformed".to_owned(), malformed);
        add("packets-not-ours".to_owned(), elsewhere);
        add("packets-no-way".to_owned(), no_link);
        add("packets-not-queued".to_owned(), not_queued);
        add("packets-refused".to_owned(), refused);
        add("errors-received".to_owned(), errors);
        if let Some(wrong) = &self.wrong {
            add("packets-dropped-on-purpose".to_owned(), wrong.dropped);
            add("packets-repeated-on-purpose".to_owned(), wrong.repeated);
        }
        add("packets-overrun".to_owned(), self.tunnel.dropped_by_kernel().map_or(0, u64::from));
        add("events-lost".to_owned(), self.events.lost);
        add("network-unread".to_owned(), self.reading.failed);
        counters
    }

    pub(super) fn status_part(&self, _: Option<IpAddr>, _: usize) -> Status {
        let now = self.clock.now();
        Status {
            role: self.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            tunnel_device: String::new(),
            interfaces: self.interface_statuses(),
            network_problem: self.reading.problem().map(ToString::to_string),
            missing_addresses: Vec::new(),
            host_changes_pending: 0,
            binding_count: 0,
            bindings: Vec::new(),
            store: None,
            visitor_count: 0,
            visitors: Vec::new(),
            registration: None,
            tunnels: Vec::new(),
            multipath: Vec::new(),
            cluster: None,
            relay: Some(self.relay_status(now)),
            assist: None,
            counters: self.counters(),
            handovers: Vec::new(),
            next: None,
        }
    }

    pub(super) fn overview(&self, _: usize) -> Overview {
        let now = self.clock.now();
        Overview {
            role: self.role(),
            uptime_s: now.saturating_duration_since(self.opened).as_secs_f64(),
            interfaces: self.interface_statuses(),
            missing_addresses: 0,
            host_changes_pending: 0,
            bindings: 0,
            store: None,
            visitors: 0,
            registration: None,
            tunnels: Vec::new(),
            multipath: Vec::new(),
            cluster: None,
            relay: Some(self.relay_status(now)),
            put_in: (0, 0),
            taken_out: (0, 0),
            assist: None,
            counters: self.counters(),
        }
    }

    pub(super) const fn role(&self) -> Role {
        Role::Relay
    }

    pub(super) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        self.interfaces.get(id).map(|interface| interface.device.name.as_str())
    }

    /// Why it lends nothing.
    pub(super) fn last_problem(&self) -> Option<String> {
        let without = |id, name: &str| {
            let is_missing = place_on(&self.interfaces, id).is_none();
            is_missing.then(|| format!("{name} is down or has no IPv4 address: nothing is lent"))
        };
        let reading = self.reading.problem().map(ToString::to_string);
        reading.or_else(|| without(CLUSTER, &self.setup.cluster)).or_else(|| without(LINK, &self.setup.link))
    }
}

/// What only other agents can do, and what they have.
impl RelayCarrier {
    fn cannot<T>(&self, what: &'static str) -> Result<T, Error> {
        Err(Error::NotForThisRole { what, role: self.role().name() })
    }

    pub(super) fn switch_to(&self, _: &str, _: Notice) -> Result<(), Error> {
        self.cannot("switch to an interface")
    }

    pub(super) fn release(&self, _: &str) -> Result<(), Error> {
        self.cannot("release an interface")
    }

    pub(super) fn announce_handover(&self, _: &str, _: Duration) -> Result<(), Error> {
        self.cannot("announce a handover")
    }

    pub(super) fn deregister(&self) -> Result<(), Error> {
        self.cannot("deregister")
    }

    pub(super) fn drop_mobile_node(&self) -> Result<usize, Error> {
        self.cannot("drop bindings or visitors")
    }

    pub(super) const fn ask_links(&self) -> Result<(), Error> {
        Ok(())
    }

    pub(super) const fn tell_assists_of(&self, _: &careof_assist::Input<'_>) -> Result<(), Error> {
        Ok(())
    }

    pub(super) const fn assists(&mut self) -> Option<&mut Assists> {
        None
    }

    pub(super) const fn is_registered(&self) -> bool {
        false
    }

    pub(super) const fn is_restoring(&self) -> bool {
        false
    }

    pub(super) const fn store_problem(&self) -> Option<&StoreError> {
        None
    }

    pub(super) const fn missing_addresses(&self) -> &[IpAddr] {
        &[]
    }
}

impl Drop for RelayCarrier {
    fn drop(&mut self) {
        // Nobody can be told here.
        let _ = self.put_back();
    }
}
