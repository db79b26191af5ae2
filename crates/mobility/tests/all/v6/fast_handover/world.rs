//! Three access routers, a mobile node that goes from one to the other, and somebody who sends it packets.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv6Addr;

use careof_base::{Duration, Instant, Probability, RandomStream};
use careof_mobility::v6::access_router::{
    self, AccessLink, AccessRouter, AccessRouterConfig, Action, MobileNodeKey, NeighborRouter, PacketToken,
    RouterSecurity, Verdict, Way,
};
use careof_mobility::v6::fast_handover::{self, CurrentRouter, FastHandover, FastHandoverConfig};
use careof_mobility::v6::{Addresses, Input, Prefix, SecurityAssociation, Transmit, TransmitPayload, Tunnel};
use careof_mobility::{InterfaceId, NtpTime, WallClock};
use careof_wire::icmpv6::LinkLayerAddress;
use careof_wire::mip6::Spi;

pub(crate) const ROUTERS: usize = 3;
pub(crate) const LINK: InterfaceId = InterfaceId(1);
/// The mobile node's interface.
pub(crate) const RADIO: InterfaceId = InterfaceId(7);
pub(crate) const STATION: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 5]);
pub(crate) const OTHER_STATION: LinkLayerAddress = LinkLayerAddress([2, 0, 0, 0, 0, 0x66]);
pub(crate) const KEY: &[u8] = b"sixteen bytes ok";
pub(crate) const ROUTER_KEY: &[u8] = b"between routers!";
pub(crate) const SPI: Spi = Spi(256);
pub(crate) const ONE_WAY: Duration = Duration::from_millis(5);
/// Bytes of a packet of data, and of the header of a tunnel.
const LEN: u32 = 1000;
const TUNNEL: u32 = 40;

pub(crate) const fn prefix(router: usize) -> Prefix {
    Prefix::new(Ipv6Addr::new(0x2001, 0xdb8, 0x10 + router as u16, 0, 0, 0, 0, 0), 64)
}

pub(crate) const fn address(router: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x10 + router as u16, 0, 0, 0, 0, 1)
}

pub(crate) const fn link_local(router: usize) -> Ipv6Addr {
    prefix_of_links().with_interface_of(address(router))
}

const fn prefix_of_links() -> Prefix {
    Prefix::LINK_LOCAL
}

pub(crate) const fn care_of(router: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0x10 + router as u16, 0, 0, 0, 0, 7)
}

pub(crate) const fn access_point(router: usize) -> LinkLayerAddress {
    LinkLayerAddress([2, 0, 0, 0, 1, router as u8])
}

pub(crate) fn clock() -> WallClock {
    WallClock::new(NtpTime::from_unix(Duration::from_secs(1_000_000_000)))
}

pub(crate) fn key() -> SecurityAssociation {
    SecurityAssociation::hmac_sha1(SPI, KEY).unwrap()
}

pub(crate) fn router_key() -> SecurityAssociation {
    SecurityAssociation::hmac_sha1(SPI, ROUTER_KEY).unwrap()
}

pub(crate) fn router_config(router: usize) -> AccessRouterConfig {
    let link = AccessLink::new(LINK, address(router), prefix(router), access_point(router));
    let neighbors = (0..ROUTERS).filter(|other| *other != router).map(|other| NeighborRouter {
        address: address(other),
        link_layer_address: access_point(other),
        prefix: prefix(other),
        access_points: vec![access_point(other)],
        fast_handover: true,
        security: RouterSecurity::Keyed(router_key()),
    });
    AccessRouterConfig {
        neighbors: neighbors.collect(),
        mobile_nodes: vec![MobileNodeKey { care_of: care_of(router), security: key() }],
        clock: clock(),
        ..AccessRouterConfig::new(vec![link])
    }
}

pub(crate) fn node_config() -> FastHandoverConfig {
    FastHandoverConfig { clock: clock(), ..FastHandoverConfig::new(STATION) }
}

/// What happens to signalling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(crate) loss: f64,
    pub(crate) duplicate: f64,
    pub(crate) jitter: Duration,
}

impl Faults {
    pub(crate) const NONE: Self = Self { loss: 0.0, duplicate: 0.0, jitter: Duration::ZERO };
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Signalling { payload: TransmitPayload, hop_limit: u8 },
    Data(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) addresses: Addresses,
    pub(crate) content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum At {
    /// A router, from anywhere but its link.
    Router(usize),
    /// The same, from its link.
    FromLink(usize),
    /// The link of a router.
    OnLink(usize),
}

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) routers: Vec<AccessRouter>,
    pub(crate) mobile: FastHandover,
    /// The router on whose link the mobile node is.
    pub(crate) place: Option<usize>,
    /// The mobile node's addresses.
    pub(crate) addresses: BTreeSet<Ipv6Addr>,
    pub(crate) faults: Faults,
    flights: BTreeMap<(Instant, u64), (At, Packet)>,
    kept: Vec<BTreeMap<PacketToken, Packet>>,
    count: u64,
    random: RandomStream,
    pub(crate) mobile_events: Vec<fast_handover::Event>,
    pub(crate) router_events: Vec<(usize, access_router::Event)>,
    /// Signalling as it was sent.
    pub(crate) sent: Vec<(Addresses, u8, TransmitPayload)>,
    /// Data that the mobile node has received, and at which router.
    pub(crate) received: Vec<(u64, usize)>,
    /// Data from the mobile node that a previous router has let through.
    pub(crate) sent_back: Vec<u64>,
    /// Data that went to a link where the mobile node was not, or was dropped or discarded.
    pub(crate) lost: Vec<u64>,
    /// Addresses that somebody else has.
    pub(crate) taken: BTreeSet<Ipv6Addr>,
    detections: BTreeMap<(Instant, u64), (usize, Ipv6Addr)>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(router_config, node_config())
    }

    pub(crate) fn with(routers: impl Fn(usize) -> AccessRouterConfig, node: FastHandoverConfig) -> Self {
        let now = Instant::from_secs(1);
        let random = |name: &str| RandomStream::new(1, 0, name);
        let routers = (0..ROUTERS)
            .map(|router| AccessRouter::new(routers(router), random(&format!("router {router}"))).unwrap());
        let mut world = Self {
            now,
            routers: routers.collect(),
            mobile: FastHandover::new(node, random("mobile")).unwrap(),
            place: Some(0),
            addresses: BTreeSet::from([care_of(0)]),
            faults: Faults::NONE,
            flights: BTreeMap::new(),
            kept: vec![BTreeMap::new(); ROUTERS],
            count: 0,
            random: random("world"),
            mobile_events: Vec::new(),
            router_events: Vec::new(),
            sent: Vec::new(),
            received: Vec::new(),
            sent_back: Vec::new(),
            lost: Vec::new(),
            taken: BTreeSet::new(),
            detections: BTreeMap::new(),
        };
        world.mobile.set_current(now, current(0));
        world
    }

    /// The mobile node learns of all access points nearby.
    pub(crate) fn discover(&mut self) {
        self.mobile.discover(self.now, &[]);
        self.run(Duration::from_millis(50));
    }

    /// It has the current router prepare its going to another.
    pub(crate) fn prepare(&mut self, router: usize) -> bool {
        let prepared = self.mobile.prepare(self.now, access_point(router));
        self.drain();
        prepared
    }

    pub(crate) fn leave(&mut self) {
        self.place = None;
    }

    /// It comes to the link of a router.
    pub(crate) fn come_to(&mut self, router: usize) -> bool {
        self.place = Some(router);
        let attached = self.mobile.attached(self.now, RADIO, access_point(router));
        self.drain();
        attached
    }

    /// Home agent and correspondents know: the new router is the current one.
    pub(crate) fn settle_at(&mut self, router: usize) {
        self.mobile.finish(self.now);
        let new = self.addresses.iter().copied().find(|address| prefix(router).contains(*address));
        let care_of = new.unwrap_or(care_of(router));
        assert!(self.routers[router].set_key(care_of, key()));
        self.mobile.set_current(self.now, CurrentRouter { care_of, ..current(router) });
        self.addresses.retain(|address| *address == care_of);
        self.drain();
    }

    /// Somebody sends a packet to an address of the mobile node.
    pub(crate) fn send_data(&mut self, number: u64, destination: Ipv6Addr) {
        let source = Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 9);
        let packet =
            Packet { addresses: Addresses::new(source, destination), content: Content::Data(number) };
        self.route(packet, ONE_WAY);
        self.run(Duration::ZERO);
    }

    /// The mobile node sends one from its previous care-of address.
    pub(crate) fn send_back(&mut self, number: u64, source: Ipv6Addr) {
        let destination = Ipv6Addr::new(0x2001, 0xdb8, 99, 0, 0, 0, 0, 9);
        let Some(place) = self.place else { return };
        let mut addresses = Addresses::new(source, destination);
        if let Some(tunnel) = self.mobile.reverse_tunnel(source) {
            addresses = addresses.through(tunnel);
        }
        let packet = Packet { addresses, content: Content::Data(number) };
        self.fly(At::FromLink(place), packet, ONE_WAY);
    }

    fn fly(&mut self, at: At, packet: Packet, delay: Duration) {
        let when = self.now + delay;
        self.count += 1;
        self.flights.insert((when, self.count), (at, packet));
    }

    /// Puts a packet on its way to where its (outer) destination is.
    fn route(&mut self, packet: Packet, delay: Duration) {
        let to = packet.addresses.tunnel.map_or(packet.addresses.destination, |tunnel| tunnel.exit);
        if let Some(router) = (0..ROUTERS).find(|router| prefix(*router).contains(to)) {
            self.fly(At::Router(router), packet, delay);
        }
    }

    fn is_hit(&mut self, chance: f64) -> bool {
        let chance = Probability::new(chance).unwrap();
        self.random.chance(chance)
    }

    /// Sends signalling, which may be lost, repeated or late.
    fn signal(&mut self, at: Option<At>, packet: Packet) {
        let times = if self.is_hit(self.faults.loss) {
            0
        } else if self.is_hit(self.faults.duplicate) {
            2
        } else {
            1
        };
        for _ in 0..times {
            let jitter = self.faults.jitter.as_nanos() as u64;
            let late = Duration::from_nanos(if jitter == 0 { 0 } else { self.random.below(jitter) });
            match at {
                Some(at) => self.fly(at, packet.clone(), ONE_WAY + late),
                None => self.route(packet.clone(), ONE_WAY + late),
            }
        }
    }

    /// Hands a packet to a router as if it had come from anywhere.
    pub(crate) fn inject(
        &mut self,
        router: usize,
        addresses: Addresses,
        hop_limit: u8,
        payload: TransmitPayload,
    ) {
        self.fly(
            At::Router(router),
            Packet { addresses, content: Content::Signalling { payload, hop_limit } },
            Duration::ZERO,
        );
        self.run(Duration::ZERO);
    }

    /// The same, from somebody on its link.
    pub(crate) fn inject_from_link(
        &mut self,
        router: usize,
        addresses: Addresses,
        hop_limit: u8,
        payload: TransmitPayload,
    ) {
        let packet = Packet { addresses, content: Content::Signalling { payload, hop_limit } };
        self.fly(At::FromLink(router), packet, Duration::ZERO);
        self.run(Duration::ZERO);
    }

    /// Another station on the link of a router announces an address.
    pub(crate) fn occupy(&mut self, router: usize, address: Ipv6Addr) {
        let (addresses, hop_limit, payload) = super::messages::announcement(address, OTHER_STATION);
        self.inject_from_link(router, addresses, hop_limit, payload);
    }

    /// Hands the mobile node a message.
    pub(crate) fn tell_mobile(&mut self, addresses: Addresses, hop_limit: u8, payload: &TransmitPayload) {
        let interface = RADIO;
        let input = match payload {
            TransmitPayload::Mobility(message) => Input::Mobility { interface, addresses, message },
            TransmitPayload::Icmp(message) => Input::Icmp { interface, addresses, hop_limit, message },
        };
        self.mobile.handle_input(self.now, input);
        self.drain();
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            self.drain();
            let timers = self.routers.iter().filter_map(|router| router.next_timeout());
            let timer = timers.map(|(at, _)| at).chain(self.mobile.next_timeout().map(|(at, _)| at)).min();
            let flight = self.flights.first_key_value().map(|((at, _), _)| *at);
            let detection = self.detections.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = [timer, flight, detection].into_iter().flatten().min() else { break };
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            if flight.is_some_and(|at| at <= self.now) {
                let ((_, _), (at, packet)) = self.flights.pop_first().unwrap();
                self.arrive(at, packet);
            } else if detection.is_some_and(|at| at <= self.now) {
                let (_, (router, address)) = self.detections.pop_first().unwrap();
                let unique = !self.taken.contains(&address);
                let input = Input::DuplicateAddressDetection { interface: LINK, address, unique };
                self.routers[router].handle_input(self.now, input);
            } else {
                for router in &mut self.routers {
                    router.handle_timeout(self.now);
                }
                self.mobile.handle_timeout(self.now);
            }
        }
        self.now = end;
        self.drain();
    }

    fn arrive(&mut self, at: At, packet: Packet) {
        match at {
            At::Router(router) => self.at_router(router, packet, false),
            At::FromLink(router) => self.at_router(router, packet, true),
            At::OnLink(router) => self.at_mobile(router, packet),
        }
    }

    fn at_router(&mut self, router: usize, mut packet: Packet, from_link: bool) {
        if let Some(tunnel) = packet.addresses.tunnel
            && tunnel.exit == address(router)
        {
            let inner = packet.addresses;
            packet.addresses.tunnel = None;
            let agent = &self.routers[router];
            if agent.accepts_reverse_tunnel(inner.source, tunnel.entry) {
                if let Content::Data(number) = packet.content {
                    self.sent_back.push(number);
                }
                return;
            }
            if !agent.accepts_tunnel(inner.destination, tunnel.entry) {
                return;
            }
            return self.deliver(router, inner.destination, packet);
        }
        let Addresses { source, destination, tunnel, .. } = packet.addresses;
        let is_for_link = destination == address(router)
            || destination == link_local(router)
            || destination == careof_wire::ipv6::ALL_NODES;
        if tunnel.is_none() && is_for_link {
            let Content::Signalling { payload, hop_limit } = packet.content else { return };
            let (interface, addresses) = (LINK, packet.addresses);
            let input = match &payload {
                TransmitPayload::Mobility(message) => Input::Mobility { interface, addresses, message },
                TransmitPayload::Icmp(message) => {
                    let hop_limit = if from_link { hop_limit } else { hop_limit.saturating_sub(1) };
                    Input::Icmp { interface, addresses, hop_limit, message }
                }
            };
            return self.routers[router].handle_input(self.now, input);
        }
        if from_link {
            // A node that keeps its previous address has the router take it back.
            if let (None, Some(back)) = (tunnel, self.routers[router].reverse_tunnel(source)) {
                packet.addresses = packet.addresses.through(back);
            }
            return self.route(packet, ONE_WAY);
        }
        let to = tunnel.map_or(destination, |tunnel| tunnel.exit);
        self.deliver(router, to, packet);
    }

    /// A packet for the address of a mobile node is at its router.
    fn deliver(&mut self, router: usize, to: Ipv6Addr, packet: Packet) {
        let len = LEN + if packet.addresses.tunnel.is_some() { TUNNEL } else { 0 };
        match self.routers[router].handle_packet(self.now, to, len) {
            Verdict::Pass(way) => self.go(router, packet, way),
            Verdict::PassAndKeep(token) => {
                self.keep(router, token, packet.clone());
                self.go(router, packet, Way::Link);
            }
            Verdict::Hold(token) => self.keep(router, token, packet),
            Verdict::Drop => self.lose(&packet),
        }
    }

    fn keep(&mut self, router: usize, token: PacketToken, packet: Packet) {
        assert!(self.kept[router].insert(token, packet).is_none(), "a token names one packet");
    }

    fn lose(&mut self, packet: &Packet) {
        if let Content::Data(number) = packet.content {
            self.lost.push(number);
        }
    }

    fn go(&mut self, router: usize, packet: Packet, way: Way) {
        match way {
            Way::Link => self.fly(At::OnLink(router), packet, ONE_WAY),
            // Nested tunnels are of no interest here: the outer one replaces that before.
            Way::Tunnel(tunnel) => {
                let packet = Packet { addresses: packet.addresses.through(tunnel), ..packet };
                self.route(packet, ONE_WAY);
            }
        }
    }

    fn at_mobile(&mut self, router: usize, packet: Packet) {
        if self.place != Some(router) {
            return self.lose(&packet);
        }
        let Addresses { destination, tunnel, .. } = packet.addresses;
        if let Some(Tunnel { entry, exit }) = tunnel
            && !(self.addresses.contains(&exit) && self.mobile.accepts_tunnel_from(entry))
        {
            return self.lose(&packet);
        }
        match packet.content {
            Content::Data(number) if self.addresses.contains(&destination) => {
                self.received.push((number, router));
            }
            Content::Data(number) => self.lost.push(number),
            Content::Signalling { payload, hop_limit } => {
                self.tell_mobile(packet.addresses, hop_limit, &payload);
            }
        }
    }

    pub(crate) fn drain(&mut self) {
        loop {
            let mut quiet = true;
            for router in 0..ROUTERS {
                while let Some(transmit) = self.routers[router].poll_transmit(self.now) {
                    quiet = false;
                    let Transmit { interface, addresses, hop_limit, payload } = transmit.packet;
                    self.sent.push((addresses, hop_limit, payload.clone()));
                    let packet = Packet { addresses, content: Content::Signalling { payload, hop_limit } };
                    let at = interface.map(|_| At::OnLink(router));
                    self.signal(at, packet);
                }
                while let Some(action) = self.routers[router].poll_action(self.now) {
                    quiet = false;
                    match action {
                        Action::Release { token, way } => {
                            let packet = self.kept[router].remove(&token).expect("a packet that was kept");
                            self.go(router, packet, way);
                        }
                        Action::Discard { token, reason } => {
                            let packet = self.kept[router].remove(&token).expect("a packet that was kept");
                            if reason != access_router::DiscardReason::CopyNotNeeded {
                                self.lose(&packet);
                            }
                        }
                    }
                }
                while let Some(event) = self.routers[router].poll_event() {
                    quiet = false;
                    if let access_router::Event::DetectDuplicate { address, wait, .. } = event {
                        self.count += 1;
                        self.detections.insert((self.now + wait, self.count), (router, address));
                    }
                    self.router_events.push((router, event));
                }
            }
            while let Some(transmit) = self.mobile.poll_transmit(self.now) {
                quiet = false;
                let Transmit { addresses, hop_limit, payload, .. } = transmit;
                self.sent.push((addresses, hop_limit, payload.clone()));
                if let Some(place) = self.place {
                    let packet = Packet { addresses, content: Content::Signalling { payload, hop_limit } };
                    self.signal(Some(At::FromLink(place)), packet);
                }
            }
            while let Some(event) = self.mobile.poll_event() {
                quiet = false;
                match event {
                    fast_handover::Event::Attached { new, .. } => {
                        self.addresses.insert(new);
                    }
                    fast_handover::Event::AddressReplaced { old, new } => {
                        self.addresses.remove(&old);
                        self.addresses.insert(new);
                    }
                    _ => {}
                }
                self.mobile_events.push(event);
            }
            if quiet {
                break;
            }
        }
        for (router, kept) in self.kept.iter().enumerate() {
            assert_eq!(kept.len(), self.routers[router].buffered().0, "every kept packet is told of");
        }
    }

    /// Whether the mobile node has said this.
    pub(crate) fn mobile_said(&self, wanted: impl Fn(&fast_handover::Event) -> bool) -> bool {
        self.mobile_events.iter().any(wanted)
    }

    pub(crate) fn router_said(&self, router: usize, wanted: impl Fn(&access_router::Event) -> bool) -> bool {
        self.router_events.iter().any(|(at, event)| *at == router && wanted(event))
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.received.iter().map(|(number, _)| *number).collect()
    }
}

pub(crate) fn current(router: usize) -> CurrentRouter {
    CurrentRouter {
        interface: RADIO,
        address: address(router),
        link_local: link_local(router),
        care_of: care_of(router),
        security: key(),
    }
}
