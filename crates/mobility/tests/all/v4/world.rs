//! A tiny world: a mobile node with four interfaces, two foreign agents, a home agent, and links between
//! them with a delay, that can be cut, lose and be listened to.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use careof_base::{Instant, RandomStream};
use careof_mobility::v4::*;
use careof_wire::mip4::{Lifetime, Message, ReplyCode, Spi};

pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);
pub(crate) const HA: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const WLAN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
pub(crate) const GSM: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// The foreign agents' addresses, on both sides, and their care-of addresses.
pub(crate) const FA: [Ipv4Addr; 2] = [Ipv4Addr::new(203, 0, 113, 1), Ipv4Addr::new(203, 0, 113, 129)];
pub(crate) const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 99);

/// The mobile node's interfaces: two with addresses of their own, one towards foreign agents, one at home.
pub(crate) const IF_WLAN: InterfaceId = InterfaceId(0);
pub(crate) const IF_GSM: InterfaceId = InterfaceId(1);
pub(crate) const IF_CELL: InterfaceId = InterfaceId(2);
pub(crate) const IF_HOME: InterfaceId = InterfaceId(3);
/// The agents' interfaces.
pub(crate) const UPSTREAM: InterfaceId = InterfaceId(0);
pub(crate) const DOWNSTREAM: InterfaceId = InterfaceId(1);

pub(crate) const KEY: &[u8] = b"0123456789abcdef";

pub(crate) fn home_network() -> Prefix {
    Prefix::new(HA, 24)
}

pub(crate) fn clock() -> WallClock {
    WallClock::new(NtpTime::from_unix(Duration::from_secs(930_000_000)))
}

pub(crate) fn security() -> SecurityAssociation {
    SecurityAssociation::hmac_md5(Spi(256), KEY).unwrap()
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_millis(millis)
}

pub(crate) fn own(address: Ipv4Addr) -> InterfaceAddress {
    let gateway = Ipv4Addr::from_bits(address.to_bits() & 0xffff_ff00 | 254);
    InterfaceAddress { address, prefix_length: 24, gateway: Some(gateway) }
}

pub(crate) fn mobile_config() -> MobileNodeConfig {
    let interface = |id, care_of, address: Option<Ipv4Addr>| InterfaceConfig {
        care_of,
        up: true,
        address: address.map(own),
        preference: 10 - id as u8,
        ..InterfaceConfig::new(InterfaceId(id))
    };
    let interfaces = vec![
        interface(0, CareOfChoice::CoLocated, Some(WLAN)),
        interface(1, CareOfChoice::CoLocated, Some(GSM)),
        interface(2, CareOfChoice::ForeignAgent, None),
        InterfaceConfig { up: false, ..interface(3, CareOfChoice::CoLocated, Some(HOME)) },
    ];
    MobileNodeConfig {
        clock: clock(),
        ..MobileNodeConfig::new(HOME, home_network(), HA, security(), interfaces)
    }
}

/// With no request that is sent again within a second (RFC 5944 section 3.6.3).
pub(crate) fn to_the_letter(mut config: MobileNodeConfig) -> MobileNodeConfig {
    config.retransmission.early = 0;
    config
}

pub(crate) fn home_config() -> HomeAgentConfig {
    HomeAgentConfig {
        mobile_nodes: vec![ServedMobileNode::new(HOME, security())],
        clock: clock(),
        ..HomeAgentConfig::new(HA, home_network(), DOWNSTREAM)
    }
}

pub(crate) fn foreign_config(which: usize) -> ForeignAgentConfig {
    let advertisements =
        AdvertiserConfig { prefix_length: Some(25), ..AdvertiserConfig::every(Duration::from_secs(1)) };
    let link = ForeignLink { interface: DOWNSTREAM, address: FA[which], advertisements };
    ForeignAgentConfig::new(FA[which], FA[which], link)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    Mobile,
    Home,
    Foreign(usize),
}

#[derive(Clone, Debug)]
struct Arrival {
    to: Who,
    interface: InterfaceId,
    transmit: Transmit,
}

/// Decides whether a packet of somebody is lost.
type Loss = Box<dyn FnMut(Who, &Transmit) -> bool>;

pub(crate) struct World {
    pub(crate) now: Instant,
    pub(crate) mobile: MobileNode,
    pub(crate) home: HomeAgent,
    pub(crate) foreign: Vec<ForeignAgent>,
    /// One-way delay of every link.
    pub(crate) delay: Duration,
    /// Whether a packet is lost.
    pub(crate) lose: Loss,
    /// Which foreign agents the mobile node's third interface reaches.
    pub(crate) cells: Vec<usize>,
    /// Further addresses of the mobile node.
    pub(crate) extra: Vec<(Ipv4Addr, InterfaceId)>,
    pub(crate) events: Vec<(Instant, Who, Event)>,
    pub(crate) sent: Vec<(Instant, Who, Transmit)>,
    queue: BTreeMap<(Instant, u64), Arrival>,
    sequence: u64,
    up: [bool; 4],
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(mobile_config(), home_config(), [foreign_config(0), foreign_config(1)])
    }

    pub(crate) fn with(
        mobile: MobileNodeConfig,
        home: HomeAgentConfig,
        foreign: [ForeignAgentConfig; 2],
    ) -> Self {
        let stream = |name| RandomStream::new(7, 0, name);
        let now = Instant::ZERO;
        let up = [0, 1, 2, 3].map(|id| mobile.interfaces.get(id).is_some_and(|i| i.up));
        let mut world = Self {
            now,
            mobile: MobileNode::new(now, mobile, stream("mobile")).unwrap(),
            home: HomeAgent::new(now, home, stream("home")).unwrap(),
            foreign: foreign
                .into_iter()
                .map(|config| ForeignAgent::new(now, config, stream("foreign")).unwrap())
                .collect(),
            delay: Duration::from_millis(5),
            lose: Box::new(|_, _| false),
            cells: vec![0],
            extra: Vec::new(),
            events: Vec::new(),
            sent: Vec::new(),
            queue: BTreeMap::new(),
            sequence: 0,
            up,
        };
        world.drain();
        world
    }

    /// The mobile node moves to `interface`, on its owner's word.
    pub(crate) fn switch(&mut self, interface: InterfaceId) {
        self.mobile.switch_to(self.now, interface, Notice::Ahead(Duration::ZERO)).unwrap();
        self.drain();
    }

    pub(crate) fn link(&mut self, interface: InterfaceId, up: bool) {
        self.up[usize::from(interface.0)] = up;
        self.input(if up { Input::LinkUp { interface } } else { Input::LinkDown { interface } });
    }

    /// Something happens to the mobile node.
    pub(crate) fn input(&mut self, input: Input<'_>) {
        self.mobile.handle_input(self.now, input);
        self.drain();
    }

    pub(crate) fn command(&mut self, command: impl FnOnce(&mut MobileNode, Instant)) {
        command(&mut self.mobile, self.now);
        self.drain();
    }

    /// A forged or replayed packet reaches `to`.
    pub(crate) fn inject(&mut self, to: Who, interface: InterfaceId, transmit: Transmit) {
        self.arrive(Arrival { to, interface, transmit });
        self.drain();
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    pub(crate) fn run_until(&mut self, end: Instant) {
        let mut idle_turns = 0;
        loop {
            let queued = self.queue.first_key_value().map(|(&(at, _), _)| at);
            let timers = [self.mobile.next_timeout(), self.home.next_timeout()];
            let timers = timers.into_iter().chain(self.foreign.iter().map(ForeignAgent::next_timeout));
            let timer = timers.flatten().map(|(at, _)| at).min();
            let Some(next) = queued.into_iter().chain(timer).min().filter(|&at| at <= end) else { break };
            idle_turns = if next > self.now { 0 } else { idle_turns + 1 };
            assert!(idle_turns < 1000, "no progress at {}: {:?}", self.now, self.mobile.next_timeout());
            self.now = self.now.max(next);
            let now = self.now;
            while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= now) {
                let arrival = entry.remove();
                self.arrive(arrival);
                self.drain();
            }
            let due = |timeout: Option<(Instant, Wake)>| timeout.is_some_and(|(at, _)| at <= now);
            if due(self.mobile.next_timeout()) {
                self.mobile.handle_timeout(now);
            }
            if due(self.home.next_timeout()) {
                self.home.handle_timeout(now);
            }
            for agent in &mut self.foreign {
                if due(agent.next_timeout()) {
                    agent.handle_timeout(now);
                }
            }
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        let now = self.now;
        let mut sent = Vec::new();
        let events = &mut self.events;
        while let Some(transmit) = self.mobile.poll_transmit(now) {
            sent.push((Who::Mobile, transmit));
        }
        events.extend(std::iter::from_fn(|| self.mobile.poll_event()).map(|e| (now, Who::Mobile, e)));
        while let Some(transmit) = self.home.poll_transmit(now) {
            sent.push((Who::Home, transmit));
        }
        events.extend(std::iter::from_fn(|| self.home.poll_event()).map(|e| (now, Who::Home, e)));
        for (index, agent) in self.foreign.iter_mut().enumerate() {
            let who = Who::Foreign(index);
            while let Some(transmit) = agent.poll_transmit(now) {
                sent.push((who, transmit));
            }
            events.extend(std::iter::from_fn(|| agent.poll_event()).map(|e| (now, who, e)));
        }
        for (from, transmit) in sent {
            self.sent.push((now, from, transmit.clone()));
            self.carry(from, transmit);
        }
    }

    /// Routes a packet.
    fn carry(&mut self, from: Who, transmit: Transmit) {
        if (self.lose)(from, &transmit) {
            return;
        }
        let to = transmit.destination;
        let via = transmit.interface;
        if from == Who::Mobile && !via.is_some_and(|via| self.up[usize::from(via.0)]) {
            return;
        }
        let mut receivers = Vec::new();
        let on_link = to.is_multicast() || to == Ipv4Addr::BROADCAST;
        match from {
            Who::Mobile if via == Some(IF_CELL) => {
                let heard = self.cells.iter().filter(|&&cell| on_link || to == FA[cell]);
                receivers.extend(heard.map(|&cell| (Who::Foreign(cell), DOWNSTREAM)));
            }
            Who::Mobile if via == Some(IF_HOME) => receivers.push((Who::Home, DOWNSTREAM)),
            _ if to == HA || Some(to) == home_network().directed_broadcast() => {
                receivers.push((Who::Home, UPSTREAM));
            }
            Who::Foreign(cell) if via == Some(DOWNSTREAM) && self.cells.contains(&cell) => {
                receivers.push((Who::Mobile, IF_CELL));
            }
            Who::Home if via == Some(DOWNSTREAM) => receivers.push((Who::Mobile, IF_HOME)),
            _ if to == WLAN => receivers.push((Who::Mobile, IF_WLAN)),
            _ if to == GSM => receivers.push((Who::Mobile, IF_GSM)),
            _ => {
                let extra = self.extra.iter().filter(|(address, _)| *address == to);
                receivers.extend(extra.map(|&(_, interface)| (Who::Mobile, interface)));
                let agent = FA.iter().position(|&address| address == to);
                receivers.extend(agent.map(|cell| (Who::Foreign(cell), UPSTREAM)));
            }
        }
        for (to, interface) in receivers {
            self.sequence += 1;
            let arrival = Arrival { to, interface, transmit: transmit.clone() };
            self.queue.insert((self.now + self.delay, self.sequence), arrival);
        }
    }

    fn arrive(&mut self, Arrival { to, interface, transmit }: Arrival) {
        if to == Who::Mobile && !self.up[usize::from(interface.0)] {
            return;
        }
        let Transmit { source, destination, ttl, payload, .. } = &transmit;
        let (source, destination, ttl) = (*source, *destination, *ttl);
        let input = match payload {
            TransmitPayload::Udp { source_port, destination_port, bytes } => Input::Udp {
                interface,
                source,
                source_port: *source_port,
                destination,
                destination_port: *destination_port,
                ttl,
                link_address: None,
                payload: bytes,
            },
            TransmitPayload::Icmp { bytes } => {
                Input::Icmp { interface, source, destination, ttl, message: bytes }
            }
        };
        match to {
            Who::Mobile => self.mobile.handle_input(self.now, input),
            Who::Home => self.home.handle_input(self.now, input),
            Who::Foreign(index) => self.foreign[index].handle_input(self.now, input),
        }
    }

    /// Where the home agent sends the mobile node's packets.
    pub(crate) fn exits(&self) -> Vec<Ipv4Addr> {
        self.home.tunnels(HOME).iter().map(|tunnel| tunnel.exit).collect()
    }

    /// Names of the handover phases so far.
    pub(crate) fn phases(&self) -> Vec<&'static str> {
        self.handovers().map(|(_, event)| event.name()).collect()
    }

    pub(crate) fn handovers(&self) -> impl Iterator<Item = (Instant, HandoverEvent)> + '_ {
        self.events.iter().filter_map(|(at, _, event)| match event {
            Event::Handover(event) => Some((*at, *event)),
            _ => None,
        })
    }

    pub(crate) fn arps(&self, who: Who) -> Vec<ArpEvent> {
        let arps = self.events.iter().filter(|(_, from, _)| *from == who);
        arps.filter_map(|(_, _, event)| if let Event::Arp(arp) = event { Some(*arp) } else { None }).collect()
    }

    /// The registration messages `who` has sent.
    pub(crate) fn messages(&self, who: Who) -> Vec<(Instant, Message, Transmit)> {
        let sent = self.sent.iter().filter(|(_, from, _)| *from == who);
        let messages = sent.filter_map(|(at, _, transmit)| match &transmit.payload {
            TransmitPayload::Udp { bytes, .. } => {
                Some((*at, Message::parse(bytes).unwrap(), transmit.clone()))
            }
            TransmitPayload::Icmp { .. } => None,
        });
        messages.collect()
    }

    pub(crate) fn request_times(&self) -> Vec<Instant> {
        self.messages(Who::Mobile).into_iter().map(|(at, ..)| at).collect()
    }

    /// The codes the mobile node has been denied with.
    pub(crate) fn denials(&self) -> Vec<ReplyCode> {
        let steps = self.events.iter().filter(|(_, who, _)| *who == Who::Mobile);
        let codes = steps.filter_map(|(_, _, event)| match event {
            Event::Registration(RegistrationEvent {
                step: RegistrationStep::Denied { code, .. }, ..
            }) => Some(*code),
            _ => None,
        });
        codes.collect()
    }

    pub(crate) fn granted(&self) -> Option<Lifetime> {
        self.home.bindings().map(|binding| binding.lifetime).next()
    }
}
