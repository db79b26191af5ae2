//! Tunnels over several paths: the ends that this host has, and the way of their packets and messages.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use careof_assist::PathId as AssistPath;
use careof_base::{Instant, Randomness};
use careof_lab::{AgentSocket, Clock, Error, Outer, OutgoingDatagram};
use careof_mobility::multipath::alliance::ClusterKey;
use careof_mobility::multipath::{
    Bond, BondConfig, BondEvent, DispersionConfig, FlowFields, PATH_PORT, PathAccount, PathChange,
    PathConfig, PathId, ReplayConfig, ResequencerConfig, Rules, Scheduler,
};
use careof_mobility::v4::{HomeAgent, InterfaceId, MobileNode, SecurityAssociation};
use careof_mobility::{PathProperties, PathState};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::protocol;
use careof_wire::tunnel::{MultipathHeader, MultipathPayload};
use careof_wire::udp::UdpHeader;

use super::AgentCounters;
use super::bond_tally::BondTally;
use super::cluster::{ClusterSetup, WayToRelay};
use super::decisions::{path_by, path_to};
use super::event_queue::EventQueue;
use super::interfaces::Interfaces;
use super::signalling::LONGEST_MESSAGE;
use super::status::{LeftPath, MultipathPathStatus, MultipathStatus};

/// Messages about paths taken in one turn.
const MESSAGES_A_TURN: usize = 128;
/// Time to live of what goes over a path, hops.
const TTL: u8 = 64;
/// What a path costs over an interface that is metered; others are free.
const METERED: u16 = 1;

/// How packets are dispersed over the paths of a mobile node, and put in order again.
#[derive(Clone, Debug, PartialEq)]
pub struct MultipathSetup {
    /// How packets choose their path.
    pub scheduler: Scheduler,
    /// What is kept for order.
    pub resequencer: ResequencerConfig,
    /// What certain flows get instead.
    pub rules: Rules,
    /// What is kept for a path that may go out.
    pub replay: ReplayConfig,
    /// What is told of paths beforehand, by their numbers. Of others it is what the mobile node reports, and at the mobile node what its
    /// interface is configured with.
    pub told: BTreeMap<PathId, PathConfig>,
    /// Mobile node: the cluster whose relays it uses, one for each interface of its configuration that stands for a relay.
    pub cluster: Option<ClusterSetup>,
}

impl Default for MultipathSetup {
    fn default() -> Self {
        Self {
            scheduler: Scheduler::Auto,
            resequencer: ResequencerConfig::default(),
            rules: Rules::default(),
            replay: ReplayConfig::default(),
            told: BTreeMap::new(),
            cluster: None,
        }
    }
}

/// Something that happened to a tunnel over several paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultipathEvent {
    /// The mobile node.
    pub home_address: Ipv4Addr,
    /// What.
    pub event: BondEvent,
}

/// More datagrams than this wait for nobody.
const MOST_PASSED_ON: usize = 65_536;

/// A datagram on its way, shared with what is kept of it.
type Datagram = Arc<[u8]>;

/// One path, as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Way {
    path: PathId,
    /// This host's end, and the other one. Through a relay the mobile node's is its home address.
    here: Ipv4Addr,
    there: Ipv4Addr,
    /// The ends, again this host's first, of the tunnel of IP within IP to the relay that it leads through.
    through: Option<(Ipv4Addr, Ipv4Addr)>,
    care_of: Ipv4Addr,
    /// Mobile node: by which interface.
    interface: Option<(InterfaceId, u32)>,
    config: PathConfig,
}

#[derive(Debug)]
struct Tied {
    bond: Bond<Datagram>,
    ways: Vec<Way>,
}

/// Where a packet on a path is to be sent.
#[derive(Debug)]
pub(super) struct OnPath {
    pub(super) outer: Outer,
    pub(super) bytes: Vec<u8>,
}

/// A packet that came over paths, in order.
#[derive(Debug)]
pub(super) struct InOrder {
    pub(super) home_address: Ipv4Addr,
    pub(super) datagram: Datagram,
    /// The path in the words of assists; of a mobile node with several any of them.
    pub(super) path: Option<AssistPath>,
}

/// Every tunnel over several paths that ends here.
#[derive(Debug)]
pub(super) struct Bonds {
    setup: MultipathSetup,
    /// The keys for each mobile node, at least one.
    keys: BTreeMap<Ipv4Addr, Vec<ClusterKey>>,
    pub(super) socket: AgentSocket,
    random: Randomness,
    tied: BTreeMap<Ipv4Addr, Tied>,
    /// Whose path begins or ends at this address of the other end, of those without a relay.
    homes: BTreeMap<Ipv4Addr, Ipv4Addr>,
    /// Mobile nodes whose paths may be others.
    changed: Vec<Ipv4Addr>,
    /// Messages about paths that lead through relays, to be sent as packets.
    relayed: VecDeque<OnPath>,
    /// Mobile node: whether something comes through a relay, by the interface that stands for it.
    relay_news: Vec<(InterfaceId, bool)>,
    is_mobile: bool,
    pub(super) events: EventQueue<MultipathEvent>,
    /// What was passed on and when, where somebody said to fetch it.
    passed_on: Option<VecDeque<(Instant, Datagram)>>,
    /// What nobody fetched in time.
    pub(super) passed_unseen: u64,
    /// Messages that could not be sent, or read.
    pub(super) unsent: u64,
    /// Messages and packets of nobody's path.
    pub(super) not_ours: u64,
    /// Packets for a path that had ended before they were put on it.
    pathless: u64,
    /// What tunnels counted that have ended.
    ended: BondTally,
}

/// The keys of messages about paths, those of the security associations; without any there is nothing to say.
pub(super) fn keys_of(
    home_address: Ipv4Addr,
    security: &[SecurityAssociation],
) -> Option<(Ipv4Addr, Vec<ClusterKey>)> {
    let key = |one: &SecurityAssociation| ClusterKey { spi: one.spi(), key: one.key().to_vec() };
    (!security.is_empty()).then(|| (home_address, security.iter().map(key).collect()))
}

impl Bonds {
    /// Opens the socket for messages; no tunnel yet.
    pub(super) fn open(
        setup: MultipathSetup,
        keys: BTreeMap<Ipv4Addr, Vec<ClusterKey>>,
        is_mobile: bool,
        random: Randomness,
    ) -> Result<Self, Error> {
        Ok(Self {
            setup,
            keys,
            socket: AgentSocket::open(PATH_PORT)?,
            random,
            tied: BTreeMap::new(),
            homes: BTreeMap::new(),
            changed: Vec::new(),
            relayed: VecDeque::new(),
            relay_news: Vec::new(),
            is_mobile,
            events: EventQueue::default(),
            passed_on: None,
            passed_unseen: 0,
            unsent: 0,
            not_ours: 0,
            pathless: 0,
            ended: BondTally::default(),
        })
    }

    /// The mobile nodes and their keys are these now. Tunnels go on with other keys; that of a mobile node that is not served any more ends.
    pub(super) fn set_keys(&mut self, keys: BTreeMap<Ipv4Addr, Vec<ClusterKey>>) {
        let ended = &mut self.ended;
        self.tied.retain(|home_address, tied| {
            let is_served = keys.contains_key(home_address);
            if !is_served {
                ended.end(&tied.bond);
            }
            is_served
        });
        self.homes.retain(|_, home_address| keys.contains_key(home_address));
        for (home_address, tied) in &mut self.tied {
            if let Some(keys) = keys.get(home_address) {
                tied.bond.set_keys(keys.clone());
            }
        }
        self.keys = keys;
    }

    /// The paths of a mobile node may be others; what follows is done by [`Bonds::follow`].
    pub(super) fn note_change(&mut self, home_address: Ipv4Addr) {
        if !self.changed.contains(&home_address) {
            self.changed.push(home_address);
        }
    }

    /// The mobile nodes whose paths may be others.
    pub(super) fn take_changed(&mut self) -> Vec<Ipv4Addr> {
        std::mem::take(&mut self.changed)
    }

    /// Home agent: the paths of a mobile node are these now.
    pub(super) fn follow_home(&mut self, now: Instant, agent: &HomeAgent, home_address: Ipv4Addr) {
        let ways = agent.bindings_of(home_address).iter().filter_map(|binding| {
            let known = binding.path.map(PathProperties::from).unwrap_or_default();
            let config = PathConfig { rate: known.downlink, weight: 1, ..PathConfig::default() };
            let path = binding.path_id?;
            Some(Way {
                path,
                here: binding.tunnel.entry,
                there: if binding.relayed { home_address } else { binding.care_of },
                through: binding.relayed.then_some((binding.tunnel.entry, binding.care_of)),
                care_of: binding.care_of,
                interface: None,
                config: self.told(path, config),
            })
        });
        self.set_ways(now, home_address, ways.collect());
    }

    /// Mobile node: its paths are these now.
    pub(super) fn follow_mobile(
        &mut self,
        now: Instant,
        node: &MobileNode,
        interfaces: &Interfaces,
        is_metered: impl Fn(InterfaceId) -> bool,
        by_relay: impl Fn(InterfaceId) -> Option<WayToRelay>,
        home_address: Ipv4Addr,
    ) {
        let ways = node.paths().filter_map(|path| {
            if path.relayed {
                let WayToRelay { interface, here, relay, config } = by_relay(path.interface)?;
                return Some(Way {
                    path: path.path,
                    here: home_address,
                    there: path.home_agent,
                    through: Some((here, relay)),
                    care_of: path.care_of,
                    interface: Some((path.interface, interface)),
                    config: self.told(path.path, config),
                });
            }
            let index = interfaces.index_of(path.interface)?;
            let cost = if is_metered(path.interface) { METERED } else { 0 };
            let rate = node.path(path.interface).uplink;
            let config = PathConfig { rate, cost, weight: 1, ..PathConfig::default() };
            Some(Way {
                path: path.path,
                here: path.care_of,
                there: path.home_agent,
                through: None,
                care_of: path.care_of,
                interface: Some((path.interface, index)),
                config: self.told(path.path, config),
            })
        });
        self.set_ways(now, home_address, ways.collect());
    }

    /// What is told of a path, or `config` where nothing is.
    fn told(&self, path: PathId, config: PathConfig) -> PathConfig {
        self.setup.told.get(&path).copied().unwrap_or(config)
    }

    fn set_ways(&mut self, now: Instant, home_address: Ipv4Addr, ways: Vec<Way>) {
        let Some(keys) = self.keys.get(&home_address) else { return };
        let Some(key) = keys.first() else { return };
        if ways.is_empty() && !self.tied.contains_key(&home_address) {
            return;
        }
        let (setup, random) = (&self.setup, &mut self.random);
        let tied = self.tied.entry(home_address).or_insert_with(|| {
            let config = BondConfig {
                dispersion: DispersionConfig { scheduler: setup.scheduler, ..DispersionConfig::default() },
                resequencer: setup.resequencer,
                rules: setup.rules.clone(),
                replay: setup.replay,
                key: key.clone(),
            };
            let mut bond = Bond::new(config, random.branch());
            bond.set_keys(keys.clone());
            Tied { bond, ways: Vec::new() }
        });
        if tied.ways == ways {
            return;
        }
        for old in std::mem::take(&mut tied.ways) {
            // Another address is another path, whatever its number.
            let ends = |way: &Way| (way.path, way.here, way.there, way.through);
            if !ways.iter().any(|way| ends(way) == ends(&old)) {
                tied.bond.remove_path(now, old.path);
            }
            if old.through.is_none() {
                self.homes.remove(&old.there);
            }
        }
        for way in &ways {
            if way.through.is_none() {
                tied.bond.set_path(now, way.path, way.config);
                self.homes.insert(way.there, home_address);
            } else {
                tied.bond.set_path_to_prove(now, way.path, way.config);
            }
        }
        tied.ways = ways;
    }

    /// Whether packets to the home address, or on a mobile node from it, go over several paths.
    pub(super) fn takes(&self, header: &Ipv4Header) -> bool {
        self.tied.get(&self.key_address(header)).is_some_and(|tied| !tied.ways.is_empty())
    }

    const fn key_address(&self, header: &Ipv4Header) -> Ipv4Addr {
        if self.is_mobile { header.source } else { header.destination }
    }

    /// Gives a datagram to its tunnel. Whether a path took it.
    pub(super) fn send(&mut self, now: Instant, header: &Ipv4Header, datagram: &[u8]) -> bool {
        let key = self.key_address(header);
        let fields = if self.is_mobile {
            FlowFields::from_mobile_node(datagram)
        } else {
            FlowFields::to_mobile_node(datagram)
        };
        let (Some(tied), Some(fields)) = (self.tied.get_mut(&key), fields) else { return false };
        let len = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
        tied.bond.send(now, &fields, len, MultipathPayload::Ipv4, datagram.into()).is_ok()
    }

    /// The next packet to put on a path.
    pub(super) fn poll_transmit(&mut self) -> Option<OnPath> {
        if let Some(message) = self.relayed.pop_front() {
            return Some(message);
        }
        for tied in self.tied.values_mut() {
            while let Some(sent) = tied.bond.poll_transmit() {
                // Gone meanwhile: what was put there is lost, as on any path that ends.
                let Some(way) = tied.ways.iter().find(|way| way.path == sent.path) else {
                    self.pathless = self.pathless.saturating_add(1);
                    continue;
                };
                let tos = sent.packet.get(1).copied().unwrap_or_default();
                let len = MultipathHeader::LEN + sent.packet.len();
                let on_path = way.packet(protocol::GRE, tos, len, |bytes| {
                    sent.header.emit(bytes);
                    bytes.extend_from_slice(&sent.packet);
                });
                return Some(on_path);
            }
        }
        None
    }

    /// The next packet to pass on.
    pub(super) fn poll_delivery(&mut self) -> Option<InOrder> {
        self.tied.iter_mut().find_map(|(home_address, tied)| {
            let datagram = tied.bond.poll_delivery()?;
            let path = tied.ways.first().map(Way::in_words_of_assists);
            Some(InOrder { home_address: *home_address, datagram, path })
        })
    }

    /// A packet of a tunnel has come in by `interface`; whether it came over a path of ours.
    pub(super) fn receive(&mut self, now: Instant, interface: u32, packet: &[u8]) -> bool {
        let Ok((outer, payload)) = Ipv4Header::parse(packet) else { return false };
        if outer.is_fragment() {
            return false;
        }
        match outer.protocol {
            protocol::GRE => {}
            protocol::IP_IN_IP => return self.receive_relayed(now, interface, &outer, payload),
            _ => return false,
        }
        let Ok((header, datagram)) = MultipathHeader::parse(payload) else { return false };
        let Some(tied) = self.homes.get(&outer.source).and_then(|home| self.tied.get_mut(home)) else {
            self.not_ours = self.not_ours.saturating_add(1);
            return true;
        };
        let number = header.path;
        let is_its = |way: &&Way| {
            way.path.number() == number
                && way.is_between(outer.destination, outer.source)
                && way.interface.is_none_or(|(_, index)| index == interface)
        };
        if header.payload != MultipathPayload::Ipv4 || !tied.ways.iter().any(|way| is_its(&way)) {
            self.not_ours = self.not_ours.saturating_add(1);
            return true;
        }
        let len = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
        tied.bond.receive(now, &header, len, datagram.into());
        true
    }

    /// The same, of what a relay may have passed on: packets, and messages about the path through it.
    fn receive_relayed(&mut self, now: Instant, interface: u32, outer: &Ipv4Header, payload: &[u8]) -> bool {
        let Ok((inner, payload)) = Ipv4Header::parse(payload) else { return false };
        let home_address = if self.is_mobile { inner.destination } else { inner.source };
        let Some(tied) = self.tied.get_mut(&home_address).filter(|_| !inner.is_fragment()) else {
            return false;
        };
        let is_by = |way: &&Way| {
            way.through == Some((outer.destination, outer.source))
                && way.is_between(inner.destination, inner.source)
                && way.interface.is_none_or(|(_, index)| index == interface)
        };
        let Some(path) = tied.ways.iter().find(is_by).map(|way| way.path) else { return false };
        match inner.protocol {
            protocol::GRE => {
                let Ok((header, datagram)) = MultipathHeader::parse(payload) else { return false };
                if header.payload != MultipathPayload::Ipv4 || header.path != path.number() {
                    self.not_ours = self.not_ours.saturating_add(1);
                    return true;
                }
                let len = u32::try_from(datagram.len()).unwrap_or(u32::MAX);
                tied.bond.receive(now, &header, len, datagram.into());
                true
            }
            protocol::UDP => {
                let Ok((udp, message)) = UdpHeader::parse(inner.source, inner.destination, payload) else {
                    return false;
                };
                if udp.destination_port != PATH_PORT {
                    return false;
                }
                // It is counted by the bond.
                let _ = tied.bond.handle_message(now, Some(path), message);
                true
            }
            _ => false,
        }
    }

    /// Takes messages that have come; the time at which the last was read, if any was.
    pub(super) fn take_messages(&mut self, clock: &Clock) -> Option<Instant> {
        let mut read_at = None;
        let mut buffer = [0; LONGEST_MESSAGE];
        for _ in 0..MESSAGES_A_TURN {
            match self.socket.receive(&mut buffer) {
                Ok(Some(datagram)) => {
                    // A time before it came, as that at which the turn began, would make its way look shorter than any; all others would
                    // then look for long as if they had met a queue.
                    let now = clock.now();
                    read_at = Some(now);
                    let tied = self.homes.get(&datagram.source).and_then(|home| self.tied.get_mut(home));
                    let way = tied.as_ref().and_then(|tied| {
                        tied.ways.iter().find(|way| {
                            way.through.is_none()
                                && way.is_between(datagram.destination, datagram.source)
                                && way.interface.is_none_or(|(_, index)| index == datagram.interface)
                        })
                    });
                    let path = way.map(|way| way.path);
                    let (Some(tied), Some(path)) = (tied, path) else {
                        self.not_ours = self.not_ours.saturating_add(1);
                        continue;
                    };
                    // It is counted by the bond.
                    let _ = tied.bond.handle_message(now, Some(path), datagram.payload);
                }
                Ok(None) => break,
                Err(_) => {
                    self.unsent = self.unsent.saturating_add(1);
                    break;
                }
            }
        }
        read_at
    }

    /// Does what is due.
    pub(super) fn wake(&mut self, now: Instant) {
        for tied in self.tied.values_mut() {
            if tied.bond.next_timeout(now).is_some_and(|at| at <= now) {
                tied.bond.handle_timeout(now);
            }
        }
    }

    /// Sends the messages that are due.
    pub(super) fn send_messages(&mut self, now: Instant) {
        let (socket, unsent) = (&self.socket, &mut self.unsent);
        for (home_address, tied) in &mut self.tied {
            while let Some((path, bytes)) = tied.bond.poll_message(now) {
                let Some(way) = tied.ways.iter().find(|way| way.path == path) else {
                    *unsent = unsent.saturating_add(1);
                    continue;
                };
                if way.through.is_some() {
                    self.relayed.push_back(way.message(&bytes));
                    continue;
                }
                let sent = socket.send(&OutgoingDatagram {
                    interface: way.interface.map(|(_, index)| index),
                    source: way.here,
                    destination: way.there,
                    destination_port: PATH_PORT,
                    ttl: TTL,
                    payload: &bytes,
                });
                if sent.is_err() {
                    *unsent = unsent.saturating_add(1);
                }
            }
            while let Some(event) = tied.bond.poll_event() {
                let news = match event {
                    BondEvent::Path { path, change } => Some((path, change == PathChange::Back)),
                    BondEvent::Proven { path } => Some((path, true)),
                    BondEvent::PeerRestarted => None,
                };
                if let Some((path, works)) = news
                    && let Some(way) = tied.ways.iter().find(|way| way.path == path && way.through.is_some())
                    && let Some((interface, _)) = way.interface
                {
                    self.relay_news.push((interface, works));
                }
                self.events.push(now, MultipathEvent { home_address: *home_address, event });
            }
        }
    }

    /// Mobile node: by the interfaces that stand for relays, whether something comes through them since that was last taken.
    pub(super) fn take_relay_news(&mut self) -> Vec<(InterfaceId, bool)> {
        std::mem::take(&mut self.relay_news)
    }

    /// Whether something comes by a path that leads through no relay.
    pub(super) fn has_path_without_relay(&self) -> bool {
        self.tied.values().any(|tied| {
            let mut own = tied.ways.iter().filter(|way| way.through.is_none());
            own.any(|way| {
                let path = tied.bond.dispersion().path(way.path);
                path.is_some_and(|path| path.state() == PathState::Alive)
            })
        })
    }

    /// From now on what is passed on is kept for [`Bonds::poll_passed_on`].
    pub(super) fn watch(&mut self) {
        self.passed_on.get_or_insert_default();
    }

    /// The next datagram that was passed on, and when.
    pub(super) fn poll_passed_on(&mut self) -> Option<(Instant, Datagram)> {
        self.passed_on.as_mut()?.pop_front()
    }

    /// A datagram is passed on.
    pub(super) fn note_passed_on(&mut self, now: Instant, datagram: &Datagram) {
        match &mut self.passed_on {
            Some(waiting) if waiting.len() < MOST_PASSED_ON => {
                waiting.push_back((now, Arc::clone(datagram)));
            }
            Some(_) => self.passed_unseen += 1,
            None => {}
        }
    }

    /// When to come again.
    pub(super) fn next_timeout(&self, now: Instant) -> Option<Instant> {
        self.tied.values().filter_map(|tied| tied.bond.next_timeout(now)).min()
    }

    /// Tells what all tunnels have counted, also those that have ended.
    pub(super) fn count(&self, counters: &mut AgentCounters) {
        let mut tally = self.ended;
        self.tied.values().for_each(|tied| tally.add(&tied.bond));
        tally.count(counters);
        counters.insert("multipath-packets-pathless".to_owned(), self.pathless);
    }

    /// What the tunnels do, with names of interfaces.
    pub(super) fn statuses(
        &self,
        now: Instant,
        name: impl Fn(InterfaceId) -> Option<String>,
    ) -> Vec<MultipathStatus> {
        let status = |(home_address, tied): (&Ipv4Addr, &Tied)| {
            let (sent, came) = (*tied.bond.counters(), *tied.bond.resequencer().counters());
            let all: u64 = PathId::all().map(|path| tied.bond.account(path).bytes).sum();
            let paths = tied.ways.iter().filter_map(|way| {
                let interface = way.interface.and_then(|(id, _)| name(id));
                described(now, way, &tied.bond, interface, all)
            });
            let auto = self.setup.scheduler == Scheduler::Auto;
            MultipathStatus {
                home_address: *home_address,
                mode: auto.then(|| tied.bond.dispersion().auto().mode.name()),
                offered: sent.offered,
                no_path: sent.no_path,
                transmitted: sent.transmitted,
                copies: sent.copies,
                replayed: sent.replayed,
                stranded: sent.stranded,
                moves: tied.bond.dispersion().counters().moves,
                messages: sent.messages_sent,
                arrived: came.arrived,
                released: came.released,
                duplicates: came.duplicates,
                waited: came.held,
                late: came.late,
                given_up: came.given_up(),
                holds: tied.bond.resequencer().holds().0,
                longest_wait_ms: came.longest_wait.as_secs_f64() * 1000.0,
                peer_restarts: sent.restarts,
                paths: paths.collect(),
                left: left(now, tied),
            }
        };
        self.tied.iter().map(status).collect()
    }
}

impl Way {
    fn is_between(&self, here: Ipv4Addr, there: Ipv4Addr) -> bool {
        (self.here, self.there) == (here, there)
    }

    fn in_words_of_assists(&self) -> AssistPath {
        self.interface.map_or_else(|| path_to(self.care_of), |(id, _)| path_by(id))
    }

    /// A packet of `protocol` on it, whose `len` bytes `emit` writes. What is too long for the path goes in fragments outside: the tunnel
    /// device has an MTU that makes that rare.
    fn packet(&self, protocol: u8, tos: u8, len: usize, emit: impl FnOnce(&mut Vec<u8>)) -> OnPath {
        let mut bytes = Vec::with_capacity(usize::from(Ipv4Header::LEN) + len);
        let (source, destination, outermost) = match self.through {
            None => (self.here, self.there, protocol),
            Some((here, there)) => {
                let inner = Ipv4Header {
                    source: self.here,
                    destination: self.there,
                    protocol,
                    ttl: TTL,
                    tos,
                    dont_fragment: true,
                    // What is longer is refused when it is sent.
                    payload_len: u16::try_from(len).unwrap_or(u16::MAX).min(Ipv4Header::MAX_PAYLOAD_LEN),
                    ..Ipv4Header::default()
                };
                inner.emit(&mut bytes);
                (here, there, protocol::IP_IN_IP)
            }
        };
        emit(&mut bytes);
        let interface = self.interface.map(|(_, index)| index);
        let outer = Outer {
            source,
            destination,
            protocol: outermost,
            tos,
            ttl: TTL,
            dont_fragment: false,
            interface,
        };
        OnPath { outer, bytes }
    }

    /// A message about it, as a packet on it.
    fn message(&self, payload: &[u8]) -> OnPath {
        let payload_len = u16::try_from(payload.len()).unwrap_or(u16::MAX);
        let header = UdpHeader { source_port: PATH_PORT, destination_port: PATH_PORT, payload_len };
        self.packet(protocol::UDP, 0, usize::from(UdpHeader::LEN) + payload.len(), |bytes| {
            header.emit(self.here, self.there, payload, bytes);
        })
    }
}

/// The paths of which packets were sent and that are ways no more.
fn left(now: Instant, tied: &Tied) -> Vec<LeftPath> {
    let is_left = |path: &PathId| !tied.ways.iter().any(|way| way.path == *path);
    let one = |path: PathId| {
        let account = tied.bond.account(path);
        let PathAccount { packets, bytes, outages, .. } = account;
        LeftPath { path: path.number(), packets, bytes, outages, out_for: account.out_for(now) }
    };
    PathId::all().filter(is_left).map(one).filter(|left| left.packets > 0 || left.outages > 0).collect()
}

fn described(
    now: Instant,
    way: &Way,
    bond: &Bond<Datagram>,
    interface: Option<String>,
    all: u64,
) -> Option<MultipathPathStatus> {
    let (known, account) = (bond.dispersion().path(way.path)?, bond.account(way.path));
    let (estimate, quality) = (known.estimate(), known.quality());
    let ms = |span: std::time::Duration| span.as_secs_f64() * 1000.0;
    let (received_packets, received_bytes) = known.received();
    #[expect(clippy::cast_precision_loss, reason = "a share is told to a thousandth or so")]
    let share = if all > 0 { account.bytes as f64 / all as f64 } else { 0.0 };
    Some(MultipathPathStatus {
        path: way.path.number(),
        care_of: way.care_of,
        interface,
        relay: way.through.map(|(_, relay)| relay).filter(|_| way.interface.is_some()),
        state: quality.state.name(),
        round_trip_ms: estimate.round_trip.map(ms),
        variation_ms: estimate.variation.map(ms),
        least_round_trip_ms: estimate.least_round_trip.map(ms),
        transit_variation_ms: estimate.transit.map(|_| ms(estimate.transit_variation)),
        rate: estimate.rate.map(careof_base::DataRate::bits_per_second),
        loss: estimate.loss_permille.map(|permille| f64::from(permille) / 1000.0),
        backlog_ms: ms(known.backlog(now)),
        in_flight: estimate.in_flight,
        share,
        sent_packets: account.packets,
        sent_bytes: account.bytes,
        received_packets,
        received_bytes,
        probes_sent: quality.probes_sent,
        probes_answered: quality.probes_answered,
        outages: account.outages,
        out_for_s: account.out_for(now).as_secs_f64(),
    })
}

/// Bytes that a path takes of what its link carries: an outer header, and that of several paths.
const OVERHEAD: u16 = Ipv4Header::LEN + MultipathHeader::LEN as u16;

impl MultipathSetup {
    /// Bytes that a path takes of what its link carries; through a relay it is a second outer header more. A home agent does not know
    /// beforehand whether there will be relays: what is too long for a path goes in fragments.
    pub(super) fn overhead(&self) -> u16 {
        OVERHEAD + self.cluster.as_ref().map_or(0, |_| Ipv4Header::LEN)
    }
}
