//! A mobile node, its home agent and correspondent nodes on networks that lose, repeat and reorder.

use careof_base::{Duration, Instant, Probability, RandomStream};
use careof_mobility::v6::*;
use careof_mobility::{InterfaceId, Notice};
use careof_wire::icmpv6::Icmpv6Message;
use careof_wire::ipv6::home_agents_anycast;
use careof_wire::mip6::Message;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::craft::{HA, HA_IPV4, HOME, HOME_IF, HOME_PREFIX, IPV4_ONLY, care_of, clock, config, prefix};
use super::peer::{Answer, Peer};

pub(crate) const WLAN: InterfaceId = InterfaceId(1);
pub(crate) const GSM: InterfaceId = InterfaceId(2);
pub(crate) const CN: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 9);
/// The home network's number.
pub(crate) const AT_HOME: u16 = 1;

/// What happens to packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    /// Up to so much later.
    pub(crate) jitter: Duration,
}

impl Faults {
    pub(crate) const NONE: Self = Self { loss: 0.0, duplicate: 0.0, jitter: Duration::ZERO };
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Signalling(TransmitPayload),
    Data(u64),
}

#[derive(Clone, Debug)]
struct Packet {
    addresses: Addresses,
    content: Content,
    /// From the home agent straight to who is on the home link.
    on_home_link: bool,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) mobile: MobileNode,
    pub(crate) home: HomeAgent,
    pub(crate) peer: Peer,
    /// The network of each interface of the mobile node.
    pub(crate) networks: BTreeMap<InterfaceId, u16>,
    pub(crate) faults: Faults,
    pub(crate) one_way: Duration,
    flights: BTreeMap<(Instant, u64), Packet>,
    detections: BTreeMap<(Instant, u64), Ipv6Addr>,
    count: u64,
    random: RandomStream,
    /// Addresses that the home agent answers for.
    pub(crate) proxied: BTreeSet<Ipv6Addr>,
    /// Addresses that somebody else on the home link has.
    pub(crate) taken: BTreeSet<Ipv6Addr>,
    pub(crate) mobile_events: Vec<(Instant, Event)>,
    pub(crate) home_events: Vec<(Instant, Event)>,
    /// Every Mobility Header that a node sent, with its addresses.
    pub(crate) sent: Vec<(Instant, Addresses, Message)>,
    /// Every Mobility Header that the mobile node and the home agent sent each other, as it travelled.
    pub(crate) recorded: Vec<(Addresses, Vec<u8>)>,
    /// Every ICMPv6 message that a node sent.
    pub(crate) sent_icmp: Vec<(Instant, Addresses, Icmpv6Message)>,
    /// What the mobile node received at its home address, and whether through the tunnel.
    pub(crate) data: Vec<(u64, bool)>,
    /// Packets that the home agent did not take out of a tunnel.
    pub(crate) rejected: usize,
    /// A home agent that is not there.
    pub(crate) home_is_dead: bool,
    /// The address that a NAT puts in the place of those of IPv4 networks.
    pub(crate) nat: Option<Ipv4Addr>,
    /// A network that carries nothing.
    pub(crate) broken: Option<u16>,
}

impl World {
    pub(crate) fn new(mobile: MobileNodeConfig, home: HomeAgentConfig) -> Self {
        let random = |name| RandomStream::new(7, 0, name);
        let mobile = MobileNodeConfig { clock: clock(), ..mobile };
        Self {
            now: Instant::ZERO,
            mobile: MobileNode::new(Instant::ZERO, mobile, random("mobile node")).unwrap(),
            home: HomeAgent::new(Instant::ZERO, home, random("home agent")).unwrap(),
            peer: Peer::new(CN),
            networks: BTreeMap::new(),
            faults: Faults::NONE,
            one_way: Duration::from_millis(20),
            flights: BTreeMap::new(),
            detections: BTreeMap::new(),
            count: 0,
            random: random("networks"),
            proxied: BTreeSet::new(),
            taken: BTreeSet::new(),
            mobile_events: Vec::new(),
            home_events: Vec::new(),
            sent: Vec::new(),
            recorded: Vec::new(),
            sent_icmp: Vec::new(),
            data: Vec::new(),
            rejected: 0,
            home_is_dead: false,
            nat: None,
            broken: None,
        }
    }

    /// A node with two interfaces under `security`, and its home agent.
    pub(crate) fn simple(security: SecurityAssociation) -> Self {
        Self::new(node(security.clone()), config(security))
    }

    /// The interface comes up on network `number`.
    pub(crate) fn attach(&mut self, interface: InterfaceId, number: u16) {
        self.networks.insert(interface, number);
        let router = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number);
        self.tell(Input::LinkUp { interface });
        if number < IPV4_ONLY {
            self.tell(Input::RouterFound { interface, router, prefixes: &[prefix(number)] });
        }
        if number != AT_HOME {
            let (address, prefix) = (care_of(number), prefix(number));
            let address = InterfaceAddress { address, prefix, valid_for: None };
            self.tell(Input::AddressAdded { interface, address });
        }
    }

    /// The interface loses its link, and with it its address.
    pub(crate) fn detach(&mut self, interface: InterfaceId) {
        let Some(number) = self.networks.remove(&interface) else { return };
        self.tell(Input::LinkDown { interface });
        self.tell(Input::AddressRemoved { interface, address: care_of(number) });
    }

    pub(crate) fn switch_to(&mut self, interface: InterfaceId) {
        self.mobile.switch_to(self.now, interface, Notice::None).unwrap();
        self.drain();
    }

    pub(crate) fn tell(&mut self, input: Input<'_>) {
        self.mobile.handle_input(self.now, input);
        self.drain();
    }

    /// Goes on for `span`.
    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let mut rounds = 0;
        let mut before = self.now;
        loop {
            self.drain();
            let mobile = self.mobile.next_timeout().map(|(at, _)| at);
            let home = self.home.next_timeout().map(|(at, _)| at);
            let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
            let detection = self.detections.first_key_value().map(|((at, _), _)| *at);
            let next = [mobile, home, flight, detection].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            rounds = if self.now == before { rounds + 1 } else { 0 };
            before = self.now;
            assert!(rounds < 10_000, "{:?} {:?}", self.mobile.next_timeout(), self.home.next_timeout());
            if flight.is_some_and(|at| at <= self.now) {
                if let Some((_, packet)) = self.flights.pop_first() {
                    self.arrive(packet);
                }
            } else if detection.is_some_and(|at| at <= self.now) {
                if let Some((_, address)) = self.detections.pop_first() {
                    let unique = !self.taken.contains(&address);
                    let outcome = Input::DuplicateAddressDetection { interface: HOME_IF, address, unique };
                    self.home.handle_input(self.now, outcome);
                }
            } else if mobile.is_some_and(|at| at <= self.now) {
                self.mobile.handle_timeout(self.now);
            } else {
                self.home.handle_timeout(self.now);
            }
        }
        self.now = end;
    }

    fn note(&mut self, transmit: &Transmit) {
        let addresses = transmit.addresses;
        let (source, destination) = (addresses.real_source(), addresses.real_destination());
        match &transmit.payload {
            TransmitPayload::Mobility(bytes) => {
                let message = Message::parse(source, destination, bytes).unwrap();
                self.sent.push((self.now, addresses, message));
                if addresses.source == HA || addresses.destination == HA {
                    self.recorded.push((addresses, bytes.clone()));
                }
            }
            TransmitPayload::Icmp(bytes) => {
                let message = Icmpv6Message::parse(source, destination, bytes).unwrap();
                self.sent_icmp.push((self.now, addresses, message));
            }
        }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.mobile.poll_transmit(self.now) {
            self.note(&transmit);
            let up = transmit.interface.is_some_and(|interface| self.networks.contains_key(&interface));
            let source = transmit.addresses.tunnel.map_or(transmit.addresses.source, |tunnel| tunnel.entry);
            // Ingress filtering: what does not belong to the network does not leave it.
            let network = transmit.interface.and_then(|interface| self.networks.get(&interface).copied());
            let belongs = network.is_some_and(|network| prefix(network).contains(source));
            if up && belongs && (self.broken.is_none() || network != self.broken) {
                self.send(Packet {
                    addresses: self.translated(transmit.addresses),
                    content: Content::Signalling(transmit.payload),
                    on_home_link: false,
                });
            }
        }
        while let Some(transmit) = self.home.poll_transmit(self.now) {
            self.note(&transmit);
            let on_home_link = transmit.interface == Some(HOME_IF);
            let content = Content::Signalling(transmit.payload);
            if !self.home_is_dead {
                self.send(Packet { addresses: transmit.addresses, content, on_home_link });
            }
        }
        while let Some(event) = self.mobile.poll_event() {
            self.mobile_events.push((self.now, event));
        }
        while let Some(event) = self.home.poll_event() {
            match event {
                Event::Neighbor(NeighborEvent::DetectDuplicate { address, wait, .. }) => {
                    self.count += 1;
                    self.detections.insert((self.now + wait, self.count), address);
                }
                Event::Neighbor(NeighborEvent::Proxy { address, on, .. }) => {
                    if on {
                        self.proxied.insert(address);
                    } else {
                        self.proxied.remove(&address);
                    }
                }
                _ => {}
            }
            self.home_events.push((self.now, event));
        }
    }

    /// What a NAT makes of a packet from a network of IPv4.
    fn translated(&self, addresses: Addresses) -> Addresses {
        match (self.nat, addresses.ipv4_tunnel()) {
            (Some(nat), Some((_, exit))) => addresses.through(Tunnel::through_ipv4(nat, exit)),
            _ => addresses,
        }
    }

    fn send(&mut self, packet: Packet) {
        let chance = |p| Probability::new(p).unwrap();
        if self.random.chance(chance(self.faults.loss)) {
            return;
        }
        let copies = 1 + usize::from(self.random.chance(chance(self.faults.duplicate)));
        for _ in 0..copies {
            let at = self.now + self.one_way + self.random.duration_up_to(self.faults.jitter);
            self.count += 1;
            self.flights.insert((at, self.count), packet.clone());
        }
    }

    /// The interface of the mobile node on which `address` is reachable.
    fn interface_of(&self, address: Ipv6Addr) -> Option<InterfaceId> {
        let on = |number: u16| if address == HOME { number == AT_HOME } else { care_of(number) == address };
        self.networks.iter().find(|(_, number)| on(**number)).map(|(interface, _)| *interface)
    }

    fn arrive(&mut self, mut packet: Packet) {
        if let (Some(nat), Some((entry, exit))) = (self.nat, packet.addresses.ipv4_tunnel())
            && exit == nat
            && let Some(number) = self.networks.values().find(|number| **number >= IPV4_ONLY)
        {
            let exit = care_of(*number).to_ipv4_mapped().unwrap();
            packet.addresses = packet.addresses.through(Tunnel::through_ipv4(entry, exit));
        }
        let addresses = packet.addresses;
        let destination = addresses.tunnel.map_or(addresses.destination, |tunnel| tunnel.exit);
        let anycast = home_agents_anycast(HOME_PREFIX.address(), HOME_PREFIX.length());
        if destination == HA || destination == HA_IPV4.to_ipv6_mapped() || destination == anycast {
            if !self.home_is_dead {
                self.arrive_at_home_agent(packet);
            }
        } else if destination == HOME && !packet.on_home_link && self.proxied.contains(&HOME) {
            if let Some(tunnel) = self.home.tunnels(HOME).last().filter(|_| !self.home_is_dead) {
                let addresses = addresses.through(*tunnel);
                self.send(Packet { addresses, ..packet });
            }
        } else if destination == self.peer.address {
            self.peer.now = self.now;
            let answer = match &packet.content {
                Content::Signalling(payload) => self.peer.handle(addresses, payload.bytes()),
                Content::Data(number) => self.peer.receive(addresses, *number),
            };
            self.answer(answer);
        } else if let Some(interface) = self.interface_of(destination) {
            self.arrive_at_mobile(interface, packet);
        }
    }

    fn answer(&mut self, answer: Option<Answer>) {
        if let Some((addresses, payload)) = answer {
            let content = Content::Signalling(payload);
            self.send(Packet { addresses, content, on_home_link: false });
        }
    }

    /// Lets the correspondent node send something.
    pub(crate) fn peer_sends(&mut self, answer: Answer) {
        self.answer(Some(answer));
    }

    fn arrive_at_home_agent(&mut self, packet: Packet) {
        let addresses = packet.addresses;
        if let Some(tunnel) = addresses.tunnel.filter(|_| addresses.udp_port.is_none()) {
            if !self.home.accepts_reverse_tunnel(addresses.source, tunnel.entry) {
                self.rejected += 1;
                return;
            }
            let addresses = Addresses { tunnel: None, ..addresses };
            return self.send(Packet { addresses, ..packet });
        }
        let Content::Signalling(payload) = &packet.content else { return };
        let input = match payload {
            TransmitPayload::Mobility(bytes) => {
                Input::Mobility { interface: HOME_IF, addresses, message: bytes }
            }
            TransmitPayload::Icmp(bytes) => {
                Input::Icmp { interface: HOME_IF, addresses, hop_limit: 64, message: bytes }
            }
        };
        self.home.handle_input(self.now, input);
    }

    fn arrive_at_mobile(&mut self, interface: InterfaceId, packet: Packet) {
        let addresses = packet.addresses;
        if addresses.tunnel.is_some_and(|tunnel| !self.mobile.accepts_tunnel_from(tunnel.entry)) {
            return;
        }
        match &packet.content {
            Content::Data(number) => {
                if self.mobile.listens_on(interface) {
                    self.data.push((*number, addresses.tunnel.is_some()));
                    if addresses.tunnel.is_some() {
                        self.mobile.note_correspondent(self.now, addresses.source);
                    }
                }
            }
            Content::Signalling(TransmitPayload::Mobility(bytes)) => {
                self.mobile.handle_input(self.now, Input::Mobility { interface, addresses, message: bytes });
            }
            Content::Signalling(TransmitPayload::Icmp(bytes)) => {
                let input = Input::Icmp { interface, addresses, hop_limit: 64, message: bytes };
                self.mobile.handle_input(self.now, input);
            }
        }
    }

    /// The correspondent node sends packet `number` to the home address.
    pub(crate) fn send_down(&mut self, number: u64) {
        self.peer.now = self.now;
        let addresses = self.peer.way_to(HOME);
        self.send(Packet { addresses, content: Content::Data(number), on_home_link: false });
    }

    /// The mobile node sends packet `number` to the correspondent node; false when it has no way.
    pub(crate) fn send_up(&mut self, number: u64) -> bool {
        let Some(delivery) = self.mobile.delivery(self.peer.address) else { return false };
        let on = self.networks.get(&delivery.interface).copied();
        let source = delivery.addresses.tunnel.map_or(delivery.addresses.source, |tunnel| tunnel.entry);
        assert!(on.is_some_and(|number| prefix(number).contains(source)), "{delivery:?} on {on:?}");
        let (addresses, content) = (delivery.addresses, Content::Data(number));
        self.send(Packet { addresses, content, on_home_link: false });
        true
    }

    /// Where the home agent sends packets for the mobile node.
    pub(crate) fn tunnelled_to(&self) -> Vec<Ipv6Addr> {
        self.home.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect()
    }

    pub(crate) fn handovers(&self) -> Vec<HandoverEvent> {
        let handover = |(_, event): &(Instant, Event)| match event {
            Event::Handover(event) => Some(*event),
            _ => None,
        };
        self.mobile_events.iter().filter_map(handover).collect()
    }

    /// How many messages of this kind were sent to `destination` since `since`.
    pub(crate) fn count_sent(&self, since: Instant, kind: &str, destination: Ipv6Addr) -> usize {
        let is_kind = |message: &Message| format!("{message:?}").starts_with(kind);
        let sent = self.sent.iter().filter(|(at, addresses, message)| {
            *at >= since && addresses.destination == destination && is_kind(message)
        });
        sent.count()
    }
}

pub(crate) fn node(security: SecurityAssociation) -> MobileNodeConfig {
    let interfaces = vec![InterfaceConfig::new(WLAN), InterfaceConfig::new(GSM)];
    MobileNodeConfig::new(HOME, HOME_PREFIX, HA, security, interfaces)
}
