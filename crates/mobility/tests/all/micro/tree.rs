//! A domain: a tree of routers, links with a delay each, and mobile hosts that move between its cells.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::Instant;
use careof_mobility::micro::{
    Action, Downlink, Event, Forward, HostConfig, MobileHost, NetworkKey, PacketToken, Ports, Role, Router,
    RouterConfig, RouterLimits, Scheme,
};
use careof_mobility::v4::Prefix;
use careof_mobility::{InterfaceId, NtpTime, WallClock};

pub(crate) const UP: InterfaceId = InterfaceId(0);
pub(crate) const CELL: InterfaceId = InterfaceId(63);
pub(crate) const DOMAIN: Prefix = Prefix::new(Ipv4Addr::new(10, 9, 0, 0), 16);
pub(crate) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Where a router is in the tree: its parent, and the delay of the link to it.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) parent: Option<usize>,
    pub(crate) delay_ms: u64,
}

/// ```text
///         0
///       /   \
///      1     2
///     / \   / \
///    3   4 5   6
/// ```
/// Each link takes 2 ms.
pub(crate) fn even() -> Vec<Place> {
    uneven([2; 7])
}

/// The same tree with these delays of the links above each router.
pub(crate) fn uneven(delays: [u64; 7]) -> Vec<Place> {
    let parents = [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)];
    std::iter::zip(parents, delays).map(|(parent, delay_ms)| Place { parent, delay_ms }).collect()
}

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn router_address(router: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, router as u8 + 1)
}

pub(crate) fn host_address(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, host as u8 + 1)
}

pub(crate) fn network_key() -> NetworkKey {
    NetworkKey::new(*b"the routers know").unwrap()
}

pub(crate) fn clock() -> WallClock {
    WallClock::new(NtpTime::from_unix(ms(1_700_000_000_000)))
}

/// A packet by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    pub(crate) id: u32,
    source: Ipv4Addr,
    destination: Ipv4Addr,
}

const LEN: u32 = 1000;
/// Packets of hosts are numbered from here, those to hosts from 0.
pub(crate) const FROM_HOSTS: u32 = 1_000_000;

#[derive(Debug)]
enum Item {
    Packet { router: usize, from: InterfaceId, packet: Packet },
    Message { router: usize, from: InterfaceId, source: Ipv4Addr, payload: Vec<u8> },
    HostMessage { host: usize, station: usize, payload: Vec<u8> },
    Send { host: usize, id: u32 },
    Announce { host: usize, next: Vec<usize> },
    Attach { host: usize, station: usize },
    Detach { host: usize, station: usize },
}

struct Node {
    router: Router,
    kept: BTreeMap<PacketToken, Packet>,
    links: BTreeMap<InterfaceId, (usize, InterfaceId, Duration)>,
}

struct Host {
    host: MobileHost,
    attached: BTreeSet<usize>,
    delivered: Vec<(Instant, u32)>,
}

/// The whole domain, and what has happened in it.
pub(crate) struct Tree {
    pub(crate) now: Instant,
    order: u64,
    queue: BTreeMap<(Instant, u64), Item>,
    nodes: Vec<Node>,
    hosts: Vec<Host>,
    /// Packets that have left the domain by its gateway.
    pub(crate) outside: Vec<u32>,
    /// Packets that went into the air of a cell whose mobile host was not there.
    pub(crate) lost_in_air: Vec<u32>,
    pub(crate) dropped: Vec<(usize, u32)>,
    pub(crate) discarded: Vec<(usize, u32)>,
    pub(crate) events: Vec<(usize, Event)>,
    /// Every message that went through the air: anybody may have heard it.
    pub(crate) heard: Vec<(usize, Vec<u8>)>,
    next_id: u32,
    from_hosts: u32,
    made: usize,
    ended: usize,
}

impl Tree {
    pub(crate) fn new(places: &[Place], hosts: usize, scheme: Scheme) -> Self {
        Self::with(places, hosts, scheme, |_| {})
    }

    pub(crate) fn with(
        places: &[Place],
        hosts: usize,
        scheme: Scheme,
        change: impl Fn(&mut RouterConfig),
    ) -> Self {
        let children = |router: usize| -> Vec<usize> {
            (0..places.len()).filter(|child| places[*child].parent == Some(router)).collect()
        };
        let stations: Vec<usize> = (0..places.len()).filter(|router| children(*router).is_empty()).collect();
        let is_below = |station: usize, router: usize| {
            std::iter::successors(Some(station), |at| places[*at].parent).any(|at| at == router)
        };
        let port = |router: usize, child: usize| {
            let place = children(router).iter().position(|other| *other == child).unwrap();
            InterfaceId(place as u16 + 1)
        };
        let nodes = (0..places.len()).map(|router| {
            let below = children(router);
            let role = match places[router].parent {
                None => Role::Gateway,
                Some(_) if below.is_empty() => Role::BaseStation,
                Some(_) => Role::Inner,
            };
            let mut config = RouterConfig::new(router_address(router), role, DOMAIN, network_key(), scheme);
            config.uplink = Some(UP);
            config.clock = clock();
            if role == Role::BaseStation {
                config.cell = Some(CELL);
                let others = stations.iter().filter(|station| **station != router);
                config.neighbors = others.map(|station| router_address(*station)).collect();
            }
            let mut links = BTreeMap::new();
            if let Some(parent) = places[router].parent {
                links.insert(UP, (parent, port(parent, router), ms(places[router].delay_ms)));
            }
            for child in below {
                let interface = port(router, child);
                let below = stations.iter().filter(|station| is_below(**station, child));
                let stations = below.map(|station| router_address(*station)).collect();
                config.downlinks.push(Downlink { interface, stations });
                links.insert(interface, (child, UP, ms(places[child].delay_ms)));
            }
            change(&mut config);
            Node { router: Router::new(config).unwrap(), kept: BTreeMap::new(), links }
        });
        let nodes = nodes.collect();
        let hosts = (0..hosts).map(|host| {
            let address = host_address(host);
            let key = network_key().mobile_key(address);
            let config = HostConfig { address, key, clock: clock(), scheme };
            let host = MobileHost::new(config).unwrap();
            Host { host, attached: BTreeSet::new(), delivered: Vec::new() }
        });
        Self {
            now: Instant::ZERO,
            order: 0,
            queue: BTreeMap::new(),
            nodes,
            hosts: hosts.collect(),
            outside: Vec::new(),
            lost_in_air: Vec::new(),
            dropped: Vec::new(),
            discarded: Vec::new(),
            events: Vec::new(),
            heard: Vec::new(),
            next_id: 0,
            from_hosts: 0,
            made: 0,
            ended: 0,
        }
    }

    pub(crate) fn router(&self, router: usize) -> &Router {
        &self.nodes[router].router
    }

    pub(crate) fn router_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn host(&self, host: usize) -> &MobileHost {
        &self.hosts[host].host
    }

    fn put(&mut self, at: Instant, item: Item) {
        self.order += 1;
        self.queue.insert((at.max(self.now), self.order), item);
    }

    /// Sends `count` packets from outside to a host, the first at `from_ms`; their numbers go on.
    pub(crate) fn stream(&mut self, host: usize, from_ms: u64, interval: Duration, count: u32) {
        for n in 0..count {
            let packet = Packet { id: self.next_id, source: OUTSIDE, destination: host_address(host) };
            self.next_id += 1;
            self.made += 1;
            self.put(at(from_ms) + interval * n, Item::Packet { router: 0, from: UP, packet });
        }
    }

    /// A host sends a packet to the outside.
    pub(crate) fn send_at(&mut self, at_ms: u64, host: usize) {
        let id = self.next_id_from_hosts();
        self.put(at(at_ms), Item::Send { host, id });
    }

    fn next_id_from_hosts(&mut self) -> u32 {
        self.from_hosts += 1;
        FROM_HOSTS + self.from_hosts - 1
    }

    /// A host sends a packet to an address now.
    pub(crate) fn send_to(&mut self, host: usize, destination: Ipv4Addr) {
        let packet = Packet { id: self.next_id_from_hosts(), source: host_address(host), destination };
        self.made += 1;
        let router = self.hosts[host].attached.last().copied().expect("it is somewhere");
        self.put(self.now, Item::Packet { router, from: CELL, packet });
    }

    /// Somebody outside sends a packet to an address now.
    pub(crate) fn send_outside_to(&mut self, destination: Ipv4Addr) {
        let packet = Packet { id: self.next_id, source: OUTSIDE, destination };
        (self.next_id, self.made) = (self.next_id + 1, self.made + 1);
        self.put(self.now, Item::Packet { router: 0, from: UP, packet });
    }

    /// A host leaves the domain and says so.
    pub(crate) fn leave(&mut self, host: usize) {
        self.hosts[host].host.leave(self.now);
        self.drain_host(host);
    }

    pub(crate) fn attach_at(&mut self, at: Instant, host: usize, station: usize) {
        self.put(at, Item::Attach { host, station });
    }

    pub(crate) fn detach_at(&mut self, at: Instant, host: usize, station: usize) {
        self.put(at, Item::Detach { host, station });
    }

    pub(crate) fn announce_at(&mut self, at: Instant, host: usize, next: &[usize]) {
        self.put(at, Item::Announce { host, next: next.to_vec() });
    }

    /// A handover with a gap; announced before, if the protocol has a lead.
    pub(crate) fn hard(
        &mut self,
        scheme: &Scheme,
        at: Instant,
        host: usize,
        old: usize,
        new: usize,
        gap: Duration,
    ) {
        if let Some(lead) = scheme.lead() {
            self.announce_at(at.saturating_sub(lead), host, &[new]);
        }
        self.detach_at(at, host, old);
        self.attach_at(at + gap, host, new);
    }

    /// A handover with an overlap; announced before, if the protocol has a lead.
    pub(crate) fn soft(
        &mut self,
        scheme: &Scheme,
        at: Instant,
        host: usize,
        old: usize,
        new: usize,
        overlap: Duration,
    ) {
        if let Some(lead) = scheme.lead() {
            self.announce_at(at.saturating_sub(lead), host, &[new]);
        }
        self.attach_at(at, host, new);
        self.detach_at(at + overlap, host, old);
    }

    /// Hands a message to a router as if it had come by this interface.
    pub(crate) fn inject(&mut self, router: usize, from: InterfaceId, source: Ipv4Addr, payload: &[u8]) {
        self.nodes[router].router.handle_message(self.now, from, source, payload);
        self.drain(router);
    }

    /// Shows a router a packet as if it had come by this interface.
    pub(crate) fn inject_packet(
        &mut self,
        router: usize,
        from: InterfaceId,
        source: Ipv4Addr,
        destination: Ipv4Addr,
    ) {
        let packet = Packet { id: self.next_id_from_hosts(), source, destination };
        self.made += 1;
        self.happen(Item::Packet { router, from, packet });
    }

    /// Lets everything happen that is due by then, in order; then checks the books.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let timeouts = self.nodes.iter().map(|node| node.router.next_timeout().map(|(at, _)| at));
            let host_timeouts = self.hosts.iter().map(|host| host.host.next_timeout().map(|(at, _)| at));
            let timer =
                timeouts.chain(host_timeouts).enumerate().filter_map(|(who, at)| Some((at?, who))).min();
            let item = self.queue.first_key_value().map(|((at, _), _)| *at);
            match (item, timer) {
                (Some(item), timer) if item <= end && timer.is_none_or(|(timer, _)| item <= timer) => {
                    let ((at, _), item) = self.queue.pop_first().unwrap();
                    self.now = at;
                    self.happen(item);
                }
                (_, Some((timer, who))) if timer <= end => {
                    self.now = timer.max(self.now);
                    if who < self.nodes.len() {
                        self.nodes[who].router.handle_timeout(self.now);
                        self.drain(who);
                    } else {
                        self.hosts[who - self.nodes.len()].host.handle_timeout(self.now);
                        self.drain_host(who - self.nodes.len());
                    }
                }
                _ => break,
            }
        }
        self.now = end.max(self.now);
        let flying = self.queue.values().filter(|item| matches!(item, Item::Packet { .. })).count();
        let kept: usize = self.nodes.iter().map(|node| node.kept.len()).sum();
        assert_eq!(self.made, self.ended + flying + kept, "a packet is neither here nor there");
        for node in &self.nodes {
            assert_eq!(node.kept.len(), node.router.buffered().0);
        }
    }

    fn happen(&mut self, item: Item) {
        let now = self.now;
        match item {
            Item::Packet { router, from, packet } => {
                let Packet { source, destination, .. } = packet;
                let forward = self.nodes[router].router.handle_packet(now, from, source, destination, LEN);
                match forward {
                    Forward::To(ports) => self.send(router, ports, packet),
                    Forward::Hold(token) => self.keep(router, token, packet),
                    Forward::ToAndHold(ports, token) => {
                        self.made += 1;
                        self.keep(router, token, packet);
                        self.send(router, ports, packet);
                    }
                    Forward::Drop(_) => {
                        self.ended += 1;
                        self.dropped.push((router, packet.id));
                    }
                }
                self.drain(router);
            }
            Item::Message { router, from, source, payload } => {
                self.nodes[router].router.handle_message(now, from, source, &payload);
                self.drain(router);
            }
            Item::HostMessage { host, station, payload } => {
                if self.hosts[host].attached.contains(&station) {
                    self.hosts[host].host.handle_message(now, router_address(station), &payload);
                    self.drain_host(host);
                }
            }
            Item::Send { host, id } => {
                let packet = Packet { id, source: host_address(host), destination: OUTSIDE };
                self.made += 1;
                self.hosts[host].host.note_sent(now);
                self.drain_host(host);
                match self.hosts[host].attached.last().copied() {
                    Some(router) => self.put(now, Item::Packet { router, from: CELL, packet }),
                    None => self.ended += 1,
                }
            }
            Item::Announce { host, next } => {
                let next: Vec<Ipv4Addr> = next.into_iter().map(router_address).collect();
                self.hosts[host].host.announce(now, &next);
                self.drain_host(host);
            }
            Item::Attach { host, station } => {
                self.hosts[host].attached.insert(station);
                self.nodes[station].router.note_attached(now, host_address(host));
                self.drain(station);
                self.hosts[host].host.attached(now, router_address(station));
                self.drain_host(host);
            }
            Item::Detach { host, station } => {
                self.hosts[host].attached.remove(&station);
                self.nodes[station].router.note_detached(now, host_address(host));
                self.drain(station);
                self.hosts[host].host.detached(now, router_address(station));
                self.drain_host(host);
            }
        }
    }

    fn keep(&mut self, router: usize, token: PacketToken, packet: Packet) {
        let before = self.nodes[router].kept.insert(token, packet);
        assert!(before.is_none(), "a token names two packets");
    }

    fn send(&mut self, router: usize, ports: Ports, packet: Packet) {
        assert!(!ports.is_empty());
        self.made += ports.len() as usize - 1;
        for port in ports.iter() {
            if let Some((to, from, delay)) = self.nodes[router].links.get(&port).copied() {
                self.put(self.now + delay, Item::Packet { router: to, from, packet });
                continue;
            }
            self.ended += 1;
            if port == UP {
                self.outside.push(packet.id);
                continue;
            }
            assert_eq!(port, CELL);
            let addressed = self.hosts.iter().position(|host| {
                host.attached.contains(&router) && packet.destination == host_address(self.index(host))
            });
            match addressed {
                Some(host) => {
                    self.hosts[host].delivered.push((self.now, packet.id));
                    self.hosts[host].host.note_received(self.now);
                    self.drain_host(host);
                }
                None => self.lost_in_air.push(packet.id),
            }
        }
    }

    fn index(&self, host: &Host) -> usize {
        self.hosts.iter().position(|other| std::ptr::eq(other, host)).unwrap()
    }

    fn drain(&mut self, router: usize) {
        let now = self.now;
        while let Some(transmit) = self.nodes[router].router.poll_transmit(now) {
            let payload = transmit.payload;
            match transmit.mobile {
                Some(mobile) => {
                    assert_eq!(transmit.interface, CELL);
                    self.heard.push((router, payload.clone()));
                    if let Some(host) = (0..self.hosts.len()).find(|host| host_address(*host) == mobile) {
                        self.put(now, Item::HostMessage { host, station: router, payload });
                    }
                }
                None => {
                    let (to, from, delay) = self.nodes[router].links[&transmit.interface];
                    let source = router_address(router);
                    self.put(now + delay, Item::Message { router: to, from, source, payload });
                }
            }
        }
        while let Some(action) = self.nodes[router].router.poll_action(now) {
            let (Action::Release { token, .. } | Action::Discard { token, .. }) = action;
            let packet = self.nodes[router].kept.remove(&token).expect("it was kept");
            match action {
                Action::Release { ports, .. } => self.send(router, ports, packet),
                Action::Discard { .. } => {
                    self.ended += 1;
                    self.discarded.push((router, packet.id));
                }
            }
        }
        while let Some(event) = self.nodes[router].router.poll_event() {
            self.events.push((router, event));
        }
    }

    fn drain_host(&mut self, host: usize) {
        while let Some(transmit) = self.hosts[host].host.poll_transmit(self.now) {
            let router = (0..self.nodes.len()).find(|n| router_address(*n) == transmit.station).unwrap();
            self.heard.push((router, transmit.payload.clone()));
            let (source, payload) = (host_address(host), transmit.payload);
            self.put(self.now, Item::Message { router, from: CELL, source, payload });
        }
        while self.hosts[host].host.poll_event().is_some() {}
    }

    /// The numbers of the packets that have come to a host, in the order in which they came.
    pub(crate) fn delivered(&self, host: usize) -> Vec<u32> {
        self.hosts[host].delivered.iter().map(|(_, id)| *id).collect()
    }

    /// Those that have come, each once.
    pub(crate) fn delivered_once(&self, host: usize) -> BTreeSet<u32> {
        self.delivered(host).into_iter().collect()
    }

    /// How many came again.
    pub(crate) fn duplicates(&self, host: usize) -> usize {
        self.delivered(host).len() - self.delivered_once(host).len()
    }

    /// Which of the first `count` packets have not come.
    pub(crate) fn missing(&self, host: usize, count: u32) -> Vec<u32> {
        let delivered = self.delivered_once(host);
        (0..count).filter(|id| !delivered.contains(id)).collect()
    }

    /// The host routes of all routers for a host.
    pub(crate) fn routes(&self, host: usize) -> Vec<Option<Ports>> {
        self.nodes.iter().map(|node| node.router.route(self.now, host_address(host))).collect()
    }
}

/// Limits with room for so few mobile nodes.
pub(crate) fn room_for(mobiles: usize) -> impl Fn(&mut RouterConfig) {
    move |config| config.limits = RouterLimits { mobiles, ..RouterLimits::default() }
}
