//! A hierarchical mobile node, anchor points, its home agent and a correspondent node on networks that can lose packets.

use careof_base::{Duration, Instant, Probability, RandomStream};
use careof_mobility::v6::*;
use careof_mobility::{InterfaceId, Notice};
use careof_wire::icmpv6::{MapOption, PrefixLifetime};
use careof_wire::ipv6::home_agents_anycast;
use careof_wire::mip6::{Algorithm, BindingUpdate, Message, Spi, UpdateFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use crate::v6::craft::{HA, HOME, HOME_IF, HOME_PREFIX, care_of, clock, config, prefix, timestamps};
use crate::v6::peer::{Answer, Peer};
use crate::v6::world::{AT_HOME, CN, Content, WLAN, node};

pub(crate) const SECOND: Duration = Duration::from_secs(1);
/// The numbers of the networks of anchor points.
pub(crate) const WEST: u16 = 300;
pub(crate) const EAST: u16 = 301;
/// Networks 2 and 3 are below the one anchor point, this below both, and these below the other one and below none.
pub(crate) const BORDER: u16 = 4;
pub(crate) const EAST_LINK: u16 = 5;
pub(crate) const PLAIN_LINK: u16 = 6;

pub(crate) const fn map(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, number, 0, 0, 0, 0, 1)
}

/// The regional care-of address at an anchor point.
pub(crate) const fn regional(number: u16) -> Ipv6Addr {
    care_of(number)
}

pub(crate) const fn router(number: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, number)
}

pub(crate) fn option(number: u16, distance: u8, preference: u8) -> MapOption {
    let valid_lifetime = PrefixLifetime::from_secs(86_400);
    MapOption { distance, preference, allocates_address: false, valid_lifetime, address: map(number) }
}

/// What the router of a network says of anchor points.
pub(crate) fn advertised(network: u16) -> Vec<MapOption> {
    match network {
        2 | 3 => vec![option(WEST, 2, 10)],
        BORDER => vec![option(WEST, 2, 10), option(EAST, 3, 10)],
        EAST_LINK => vec![option(EAST, 2, 10)],
        _ => Vec::new(),
    }
}

/// The security association with an anchor point: not that with the home agent.
pub(crate) fn association(number: u16) -> SecurityAssociation {
    let key = [b"key of anchor ".as_slice(), &number.to_be_bytes()].concat();
    SecurityAssociation::new(Spi(256), Algorithm::HmacSha1, key, ReplayProtection::TIMESTAMPS).unwrap()
}

#[derive(Clone, Debug)]
struct Packet {
    addresses: Addresses,
    content: Content,
    /// From the home agent straight to who is on the home link.
    on_home_link: bool,
}

/// An anchor point and how it behaves.
pub(crate) struct Anchor {
    pub(crate) node: MobilityAnchorPoint,
    /// It hears and says nothing.
    pub(crate) dead: bool,
    /// It answers updates, and forwards nothing.
    pub(crate) black_hole: bool,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) mobile: HierarchicalMobileNode,
    pub(crate) home: HomeAgent,
    pub(crate) anchors: BTreeMap<u16, Anchor>,
    pub(crate) peer: Peer,
    /// The network of each interface of the mobile node.
    pub(crate) networks: BTreeMap<InterfaceId, u16>,
    pub(crate) loss: f64,
    pub(crate) one_way: Duration,
    /// Advertisements that do not tell of anchor points.
    pub(crate) silent_routers: bool,
    flights: BTreeMap<(Instant, u64), Packet>,
    detections: BTreeMap<(Instant, u64), Ipv6Addr>,
    count: u64,
    random: RandomStream,
    proxied: BTreeSet<Ipv6Addr>,
    /// Addresses that somebody else has.
    pub(crate) taken: BTreeSet<Ipv6Addr>,
    pub(crate) events: Vec<(Instant, Event)>,
    /// Every update that the mobile node sent.
    pub(crate) updates: Vec<(Instant, Addresses, BindingUpdate)>,
    /// Every Mobility Header that anybody sent.
    pub(crate) recorded: Vec<(Addresses, Vec<u8>)>,
    /// Packets that the mobile node received, and how.
    pub(crate) data: Vec<(u64, Addresses)>,
    /// Packets that somebody did not take out of a tunnel.
    pub(crate) rejected: usize,
    pub(crate) home_is_dead: bool,
}

pub(crate) fn mobile_config() -> HierarchicalMobileNodeConfig {
    let node = MobileNodeConfig { clock: clock(), ..node(timestamps()) };
    let maps = [WEST, EAST].map(|number| MapAssociation::new(map(number), association(number)));
    HierarchicalMobileNodeConfig::new(node, maps.to_vec())
}

pub(crate) fn anchor_config(number: u16) -> MobilityAnchorPointConfig {
    MobilityAnchorPointConfig {
        mobile_nodes: vec![ServedMobileNode::new(regional(number), association(number))],
        clock: clock(),
        ..MobilityAnchorPointConfig::new(map(number), prefix(number), HOME_IF)
    }
}

impl World {
    pub(crate) fn new(mobile: HierarchicalMobileNodeConfig) -> Self {
        let random = |name| RandomStream::new(7, 0, name);
        let start = Instant::ZERO;
        let anchor = |number| {
            let node = MobilityAnchorPoint::new(start, anchor_config(number), random("anchor")).unwrap();
            (number, Anchor { node, dead: false, black_hole: false })
        };
        Self {
            now: start,
            mobile: HierarchicalMobileNode::new(start, mobile, random("mobile node")).unwrap(),
            home: HomeAgent::new(start, config(timestamps()), random("home agent")).unwrap(),
            anchors: [WEST, EAST].map(anchor).into(),
            peer: Peer::new(CN),
            networks: BTreeMap::new(),
            loss: 0.0,
            one_way: Duration::from_millis(20),
            silent_routers: false,
            flights: BTreeMap::new(),
            detections: BTreeMap::new(),
            count: 0,
            random: random("networks"),
            proxied: BTreeSet::new(),
            taken: BTreeSet::new(),
            events: Vec::new(),
            updates: Vec::new(),
            recorded: Vec::new(),
            data: Vec::new(),
            rejected: 0,
            home_is_dead: false,
        }
    }

    /// A node that is on network `number` by its first interface, and registered.
    pub(crate) fn on(number: u16) -> Self {
        let mut world = Self::new(mobile_config());
        world.attach(WLAN, number);
        world.switch_to(WLAN);
        world.run(SECOND * 4);
        world
    }

    pub(crate) fn anchor(&mut self, number: u16) -> &mut Anchor {
        self.anchors.get_mut(&number).expect("an anchor point")
    }

    /// The interface comes up on network `number`, whose router then advertises itself.
    pub(crate) fn attach(&mut self, interface: InterfaceId, number: u16) {
        self.networks.insert(interface, number);
        self.tell(Input::LinkUp { interface });
        let prefixes = [prefix(number)];
        self.tell(Input::RouterFound { interface, router: router(number), prefixes: &prefixes });
        if !self.silent_routers {
            self.advertise(interface, &advertised(number));
        }
        if number != AT_HOME {
            let (address, prefix) = (care_of(number), prefix(number));
            let address = InterfaceAddress { address, prefix, valid_for: None };
            self.tell(Input::AddressAdded { interface, address });
        }
    }

    /// The router of the network that an interface is on tells of anchor points.
    pub(crate) fn advertise(&mut self, interface: InterfaceId, maps: &[MapOption]) {
        let Some(&number) = self.networks.get(&interface) else { return };
        if !maps.is_empty() {
            self.tell(Input::MapsFound { interface, router: router(number), maps });
        }
    }

    pub(crate) fn detach(&mut self, interface: InterfaceId) {
        let Some(number) = self.networks.remove(&interface) else { return };
        self.tell(Input::LinkDown { interface });
        // For who does not believe the link.
        self.tell(Input::RouterLost { interface, router: router(number) });
        self.tell(Input::AddressRemoved { interface, address: care_of(number) });
    }

    /// Breaks the link and comes up elsewhere.
    pub(crate) fn move_to(&mut self, number: u16) {
        self.detach(WLAN);
        self.attach(WLAN, number);
    }

    pub(crate) fn switch_to(&mut self, interface: InterfaceId) {
        self.mobile.switch_to(self.now, interface, Notice::None).unwrap();
        self.drain();
    }

    pub(crate) fn tell(&mut self, input: Input<'_>) {
        self.mobile.handle_input(self.now, input);
        self.drain();
    }

    /// A Mobility Header that somebody has made reaches the mobile node.
    pub(crate) fn forge(&mut self, addresses: Addresses, message: &[u8]) {
        let Some(interface) = self.networks.keys().next().copied() else { return };
        self.tell(Input::Mobility { interface, addresses, message });
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        let (mut rounds, mut before) = (0, self.now);
        loop {
            self.drain();
            let mobile = self.mobile.next_timeout().map(|(at, _)| at);
            let home = self.home.next_timeout().map(|(at, _)| at);
            let anchors =
                self.anchors.values().filter_map(|anchor| Some(anchor.node.next_timeout()?.0)).min();
            let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
            let detection = self.detections.first_key_value().map(|((at, _), _)| *at);
            let next = [mobile, home, anchors, flight, detection].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else { break };
            self.now = self.now.max(at);
            rounds = if self.now == before { rounds + 1 } else { 0 };
            before = self.now;
            assert!(rounds < 10_000, "{:?}", self.mobile.next_timeout());
            let now = self.now;
            if flight.is_some_and(|at| at <= now) {
                if let Some((_, packet)) = self.flights.pop_first() {
                    self.arrive(packet);
                }
            } else if detection.is_some_and(|at| at <= now) {
                if let Some((_, address)) = self.detections.pop_first() {
                    let unique = !self.taken.contains(&address);
                    let outcome = Input::DuplicateAddressDetection { interface: HOME_IF, address, unique };
                    self.home.handle_input(now, outcome);
                    self.anchors.values_mut().for_each(|anchor| anchor.node.handle_input(now, outcome));
                }
            } else if mobile.is_some_and(|at| at <= now) {
                self.mobile.handle_timeout(now);
            } else {
                self.home.handle_timeout(now);
                self.anchors.values_mut().for_each(|anchor| anchor.node.handle_timeout(now));
            }
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.mobile.poll_transmit(self.now) {
            let addresses = transmit.addresses;
            if let TransmitPayload::Mobility(bytes) = &transmit.payload {
                let ends = (addresses.real_source(), addresses.real_destination());
                if let Message::BindingUpdate(update) = Message::parse(ends.0, ends.1, bytes).unwrap() {
                    self.updates.push((self.now, addresses, update));
                }
            }
            self.leave(transmit.interface, addresses, Content::Signalling(transmit.payload));
        }
        while let Some(event) = self.mobile.poll_event() {
            self.events.push((self.now, event));
        }
        let mut events: Vec<Event> = std::iter::from_fn(|| self.home.poll_event()).collect();
        let mut sent: Vec<(bool, Transmit)> = Vec::new();
        let dead = self.home_is_dead;
        sent.extend(std::iter::from_fn(|| self.home.poll_transmit(self.now)).map(|sent| (dead, sent)));
        for Anchor { node, dead, .. } in self.anchors.values_mut() {
            events.extend(std::iter::from_fn(|| node.poll_event()));
            sent.extend(std::iter::from_fn(|| node.poll_transmit(self.now)).map(|sent| (*dead, sent)));
        }
        for (dead, transmit) in sent {
            if !dead {
                let on_home_link = transmit.interface == Some(HOME_IF);
                let content = Content::Signalling(transmit.payload);
                self.send_packet(Packet { addresses: transmit.addresses, content, on_home_link });
            }
        }
        for event in events {
            match event {
                Event::Neighbor(NeighborEvent::DetectDuplicate { address, wait, .. }) => {
                    self.count += 1;
                    self.detections.insert((self.now + wait, self.count), address);
                }
                Event::Neighbor(NeighborEvent::Proxy { address, on: true, .. }) => {
                    self.proxied.insert(address);
                }
                Event::Neighbor(NeighborEvent::Proxy { address, on: false, .. }) => {
                    self.proxied.remove(&address);
                }
                _ => {}
            }
        }
    }

    /// A packet leaves the mobile node, as far as its network takes it: the outermost source belongs there.
    fn leave(&mut self, interface: Option<InterfaceId>, addresses: Addresses, content: Content) {
        let network = interface.and_then(|interface| self.networks.get(&interface).copied());
        let inner = addresses.tunnel.map_or(addresses.source, |tunnel| tunnel.entry);
        let source = addresses.map_tunnel.map_or(inner, |tunnel| tunnel.entry);
        if network.is_some_and(|network| prefix(network).contains(source)) {
            self.send(addresses, content);
        }
    }

    pub(crate) fn send(&mut self, addresses: Addresses, content: Content) {
        self.send_packet(Packet { addresses, content, on_home_link: false });
    }

    fn send_packet(&mut self, packet: Packet) {
        let Packet { addresses, content, .. } = &packet;
        if let Content::Signalling(TransmitPayload::Mobility(bytes)) = &content {
            self.recorded.push((*addresses, bytes.clone()));
        }
        if self.random.chance(Probability::new(self.loss).unwrap()) {
            return;
        }
        self.count += 1;
        self.flights.insert((self.now + self.one_way, self.count), packet);
    }

    /// Where the outermost header leads.
    fn arrive(&mut self, packet: Packet) {
        let addresses = packet.addresses;
        let inner = addresses.tunnel.map_or(addresses.destination, |tunnel| tunnel.exit);
        let destination = addresses.map_tunnel.map_or(inner, |tunnel| tunnel.exit);
        let anchor = self.anchors.keys().copied().find(|number| map(*number) == destination);
        if let Some(number) = anchor {
            self.arrive_at_anchor(number, packet);
        } else if destination == HA || destination == home_agents_anycast(HOME_PREFIX.address(), 64) {
            self.arrive_at_home_agent(packet);
        } else if self.proxied.contains(&destination) && !packet.on_home_link {
            self.intercept(destination, packet);
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
            self.send(addresses, Content::Signalling(payload));
        }
    }

    fn interface_of(&self, address: Ipv6Addr) -> Option<InterfaceId> {
        let on = |number: u16| if address == HOME { number == AT_HOME } else { care_of(number) == address };
        self.networks.iter().find(|(_, number)| on(**number)).map(|(interface, _)| *interface)
    }

    fn arrive_at_anchor(&mut self, number: u16, packet: Packet) {
        let (now, addresses) = (self.now, packet.addresses);
        let Some(anchor) = self.anchors.get_mut(&number).filter(|anchor| !anchor.dead) else { return };
        let (tunnel, inner) = match (addresses.map_tunnel, addresses.tunnel) {
            (Some(tunnel), _) => (tunnel, Addresses { map_tunnel: None, ..addresses }),
            (None, Some(tunnel)) => (tunnel, Addresses { tunnel: None, ..addresses }),
            (None, None) => {
                if let Content::Signalling(TransmitPayload::Mobility(message)) = &packet.content {
                    let input = Input::Mobility { interface: HOME_IF, addresses, message };
                    anchor.node.handle_input(now, input);
                }
                return;
            }
        };
        let source = inner.tunnel.map_or(inner.source, |tunnel| tunnel.entry);
        if anchor.black_hole {
            return;
        }
        if anchor.node.accepts_reverse_tunnel(source, tunnel.entry) {
            self.send(inner, packet.content);
        } else {
            self.rejected += 1;
        }
    }

    fn arrive_at_home_agent(&mut self, packet: Packet) {
        let addresses = packet.addresses;
        if self.home_is_dead {
            return;
        }
        if let Some(tunnel) = addresses.tunnel {
            if self.home.accepts_reverse_tunnel(addresses.source, tunnel.entry) {
                self.send(Addresses { tunnel: None, ..addresses }, packet.content);
            } else {
                self.rejected += 1;
            }
            return;
        }
        let Content::Signalling(payload) = &packet.content else { return };
        let message = payload.bytes();
        let input = match payload {
            TransmitPayload::Mobility(_) => Input::Mobility { interface: HOME_IF, addresses, message },
            TransmitPayload::Icmp(_) => Input::Icmp { interface: HOME_IF, addresses, hop_limit: 64, message },
        };
        self.home.handle_input(self.now, input);
    }

    /// An agent takes a packet for an address that it has a binding of.
    fn intercept(&mut self, destination: Ipv6Addr, packet: Packet) {
        let addresses = packet.addresses;
        if destination == HOME {
            if let Some(tunnel) = self.home.tunnels(HOME).last().filter(|_| !self.home_is_dead) {
                self.send(addresses.through(*tunnel), packet.content);
            }
            return;
        }
        let serves = |anchor: &&Anchor| anchor.node.serves(destination) && !anchor.dead && !anchor.black_hole;
        let Some(anchor) = self.anchors.values().find(serves) else { return };
        if let Some(tunnel) = anchor.node.tunnels(destination).last().copied() {
            // Of one tunnel alone a receiver cannot tell what it is.
            let addresses = match addresses.tunnel {
                Some(_) => addresses.through_map(tunnel),
                None => addresses.through(tunnel),
            };
            self.send(addresses, packet.content);
        }
    }

    fn arrive_at_mobile(&mut self, interface: InterfaceId, packet: Packet) {
        let addresses = packet.addresses;
        if !self.mobile.accepts_tunnels(&addresses) {
            self.rejected += 1;
            return;
        }
        match &packet.content {
            Content::Data(number) => {
                if self.mobile.listens_on(interface) {
                    self.data.push((*number, addresses));
                    self.mobile.note_correspondent(self.now, addresses.source);
                }
            }
            Content::Signalling(TransmitPayload::Mobility(message)) => {
                self.mobile.handle_input(self.now, Input::Mobility { interface, addresses, message });
            }
            Content::Signalling(TransmitPayload::Icmp(message)) => {
                let input = Input::Icmp { interface, addresses, hop_limit: 64, message };
                self.mobile.handle_input(self.now, input);
            }
        }
    }

    /// The correspondent node sends packet `number` to the home address.
    pub(crate) fn send_down(&mut self, number: u64) {
        self.peer.now = self.now;
        self.send(self.peer.way_to(HOME), Content::Data(number));
    }

    /// The mobile node sends packet `number` to the correspondent node; false when it has no way.
    pub(crate) fn send_up(&mut self, number: u64) -> bool {
        let Some(delivery) = self.mobile.delivery(self.peer.address) else { return false };
        self.leave(Some(delivery.interface), delivery.addresses, Content::Data(number));
        true
    }

    /// Packets arrive both ways.
    pub(crate) fn check_both_ways(&mut self) {
        let (up, down) = (self.peer.data.len(), self.data.len());
        assert!(self.send_up(u64::MAX), "it has a way");
        self.send_down(u64::MAX);
        self.run(SECOND);
        assert_eq!((self.peer.data.len(), self.data.len()), (up + 1, down + 1));
    }

    /// Where the home agent sends packets for the mobile node.
    pub(crate) fn bound_at_home(&self) -> Vec<Ipv6Addr> {
        self.home.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect()
    }

    /// Where an anchor point does.
    pub(crate) fn bound_at(&self, number: u16) -> Vec<Ipv6Addr> {
        self.anchors[&number].node.tunnels(regional(number)).iter().map(|tunnel| tunnel.exit).collect()
    }

    /// To whom updates were sent from the first on, or since, and what they asked for.
    pub(crate) fn asked_since(&self, since: Instant) -> Vec<(Ipv6Addr, UpdateFlags)> {
        let sent = self.updates.iter().filter(|(at, ..)| *at >= since);
        sent.map(|(_, addresses, update)| (addresses.destination, update.flags)).collect()
    }

    pub(crate) fn handovers_since(&self, since: Instant) -> Vec<HandoverEvent> {
        let handover = |(at, event): &(Instant, Event)| match event {
            Event::Handover(event) if *at >= since => Some(*event),
            _ => None,
        };
        self.events.iter().filter_map(handover).collect()
    }
}
