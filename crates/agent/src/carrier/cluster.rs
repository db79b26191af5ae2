//! A mobile node in a cluster: it uses the links of relays there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use careof_base::{Instant, Randomness};
use careof_lab::{AgentSocket, Error, Netlink, OutgoingDatagram};
use careof_mobility::multipath::PathConfig;
use careof_mobility::multipath::alliance::{
    CLUSTER_PORT, CLUSTER_TTL, Client, ClientConfig, ClientEvent, ClusterCounters, ClusterDrop,
    ClusterTransmit, RelayEvent, RelayInterfaceChange, RelayInterfaces, Trust, client_secret,
};
use careof_mobility::v4::{InterfaceId, MobileNodeConfig, Prefix};

use super::event_queue::EventQueue;
use super::interfaces::Interfaces;
use super::signalling::LONGEST_MESSAGE;
use super::status::{ClusterStatus, RelayInUse};
use super::{AgentCounters, Device};

/// Messages of a cluster taken in one turn.
const MESSAGES_A_TURN: usize = 128;

/// A cluster that a mobile node is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterSetup {
    /// The interface to it, which is none of the mobile node's own paths. It need not exist yet, and may come and go.
    pub interface: String,
    /// The most that a relay's link may cost.
    pub highest_cost: u16,
    /// For how long a relay is asked at once: whole seconds.
    pub lifetime: Duration,
    /// Whom the node believes; keys are by the relays' addresses in the cluster.
    pub trust: Trust,
}

/// Something that happened in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterEvent {
    /// To a relay.
    Relay(RelayEvent),
    /// To a mobile node that uses relays.
    Client(ClientEvent),
}

/// How a packet gets to a relay and from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WayToRelay {
    /// The kernel's number of the interface to the cluster.
    pub(super) interface: u32,
    /// This host's address there.
    pub(super) here: Ipv4Addr,
    /// The relay's.
    pub(super) relay: Ipv4Addr,
    /// What is told of the path.
    pub(super) config: PathConfig,
}

/// What a mobile node has in its cluster.
#[derive(Debug)]
pub(super) struct Membership {
    client: Client,
    pub(super) socket: AgentSocket,
    /// The interface to the cluster, alone.
    interfaces: Interfaces,
    places: RelayInterfaces,
    /// The numbers of these.
    stand_for_relays: Vec<InterfaceId>,
    /// What relays in use say that their links cost.
    costs: BTreeMap<Ipv4Addr, u16>,
    pub(super) events: EventQueue<ClusterEvent>,
    /// Messages that could not be sent.
    unsent: u64,
    unheard: Unheard,
}

/// Messages that came and were not looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unheard {
    /// By another interface than that to the cluster.
    elsewhere: u64,
    /// While there was no interface to the cluster.
    no_cluster: u64,
}

impl Membership {
    /// Opens the socket; no relay is known yet. `counter` is as of [`Client::new`].
    pub(super) fn open(
        setup: &ClusterSetup,
        node: &MobileNodeConfig,
        counter: u64,
        random: Randomness,
    ) -> Result<Self, Error> {
        let relays = node.interfaces.iter().filter(|interface| interface.relay).map(|interface| interface.id);
        let stand_for_relays: Vec<_> = relays.collect();
        let places = RelayInterfaces::new(stand_for_relays.iter().copied());
        let config = ClientConfig {
            home_address: node.home_address,
            home_agent: node.home_agent,
            // None yet.
            cluster: Ipv4Addr::UNSPECIFIED,
            cluster_network: Prefix::ALL,
            relays: stand_for_relays.len(),
            highest_cost: setup.highest_cost,
            lifetime: setup.lifetime,
            trust: setup.trust.clone(),
            secret: client_secret(node.security.key()),
        };
        let device = Device::new(0, setup.interface.clone());
        Ok(Self {
            client: Client::new(config, counter, random),
            socket: AgentSocket::open(CLUSTER_PORT)?,
            interfaces: Interfaces::new(&[device], Some(node.home_address)),
            places,
            stand_for_relays,
            costs: BTreeMap::new(),
            events: EventQueue::default(),
            unsent: 0,
            unheard: Unheard::default(),
        })
    }

    /// Reads what there is of the interface to the cluster, and which addresses are this host's.
    pub(super) fn read(&mut self, now: Instant, netlink: &mut Netlink) -> Result<(), Error> {
        read(&mut self.interfaces, netlink)?;
        self.client.set_cluster(network_on(&self.interfaces, InterfaceId(0)));
        let own = netlink.all_addresses()?.into_iter().filter_map(|(_, own)| match own.address {
            IpAddr::V4(address) => Some(address),
            IpAddr::V6(_) => None,
        });
        let mut own: Vec<_> = own.collect();
        own.sort_unstable();
        self.client.set_own_addresses(now, own);
        Ok(())
    }

    /// Takes messages that have come.
    pub(super) fn take_messages(&mut self, now: Instant) {
        let index = self.interfaces.index_of(InterfaceId(0));
        receive(&self.socket, index, &mut self.unheard, |source, ttl, payload| {
            self.client.handle_message(now, source, ttl, payload);
        });
    }

    /// Does what is due. The mobile node has this home agent, and something comes by one of its own paths or not.
    pub(super) fn wake(&mut self, now: Instant, home_agent: Option<Ipv4Addr>, own_path_works: bool) {
        self.client.set_home_agent(now, home_agent);
        self.client.note_own_path(now, own_path_works);
        if self.client.next_timeout().is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
    }

    /// When to come again.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.client.next_timeout()
    }

    /// Sends what there is to say, and returns what the mobile node is to be told.
    pub(super) fn drive(&mut self, now: Instant) -> Vec<RelayInterfaceChange> {
        while let Some(transmit) = self.client.poll_transmit() {
            let place = place_on(&self.interfaces, InterfaceId(0));
            self.unsent += u64::from(!send(&self.socket, place, &transmit));
        }
        let mut changes = Vec::new();
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::RelayGained { relay, cost, .. } => self.costs.insert(relay, cost),
                ClientEvent::RelayLost { relay, .. } => self.costs.remove(&relay),
            };
            changes.extend(self.places.follow(&event));
            self.events.push(now, ClusterEvent::Client(event));
        }
        changes
    }

    /// What a mobile node is to be told that knows of no relay yet.
    pub(super) fn in_use(&self) -> Vec<RelayInterfaceChange> {
        self.places.in_use().collect()
    }

    /// Whether something comes through the relay that `interface` stands for.
    pub(super) fn note_path(&mut self, now: Instant, interface: InterfaceId, works: bool) {
        if let Some(relay) = self.places.relay_of(interface) {
            self.client.note_path(now, relay, works);
        }
    }

    /// The way through the relay that `interface` stands for.
    pub(super) fn way(&self, interface: InterfaceId) -> Option<WayToRelay> {
        let relay = self.places.relay_of(interface)?;
        let (index, here, _) = place_on(&self.interfaces, InterfaceId(0))?;
        // What a relay says of its rate is its word alone: it is measured.
        let cost = self.costs.get(&relay).copied().unwrap_or_default();
        let config = PathConfig { rate: None, cost, weight: 1, ..PathConfig::default() };
        Some(WayToRelay { interface: index, here, relay, config })
    }

    /// The name of the interface by which relays are reached, where `id` stands for one.
    pub(super) fn interface_name(&self, id: InterfaceId) -> Option<&str> {
        let cluster = self.interfaces.named().first().filter(|_| self.stand_for_relays.contains(&id))?;
        Some(cluster.device.name.as_str())
    }

    /// Gives every relay up, and tells them.
    pub(super) fn leave(&mut self, now: Instant) {
        let relays: Vec<_> = self.client.relays().map(|(relay, _)| relay).collect();
        relays.into_iter().for_each(|relay| self.client.leave(now, relay));
        self.drive(now);
    }

    pub(super) fn status(&self) -> ClusterStatus {
        let named = self.interfaces.named().first();
        let relays = self.client.relays().map(|(relay, care_of)| RelayInUse { relay, care_of });
        ClusterStatus {
            interface: named.map(|interface| interface.device.name.clone()).unwrap_or_default(),
            address: place_on(&self.interfaces, InterfaceId(0)).map(|(_, address, _)| address),
            known: self.client.known(),
            relays: relays.collect(),
        }
    }

    pub(super) fn count(&self, counters: &mut AgentCounters) {
        count_messages(self.client.counters(), self.unsent, self.unheard, counters);
    }
}

/// Where a host is on one of its links: the kernel's number of the interface, its address, and how long its prefix is.
pub(super) type Place = (u32, Ipv4Addr, u8);

/// Where the host is on the link of an interface, while that can carry packets.
pub(super) fn place_on(interfaces: &Interfaces, id: InterfaceId) -> Option<Place> {
    let interface = interfaces.get(id).filter(|interface| interface.is_up())?;
    let own = interface.address?;
    Some((interface.index()?, own.address, own.prefix_length))
}

/// Reads which of the interfaces exist, and their addresses.
pub(super) fn read(interfaces: &mut Interfaces, netlink: &mut Netlink) -> Result<(), Error> {
    interfaces.read(netlink)?;
    interfaces.read_addresses(netlink)?;
    Ok(())
}

/// The host's address on the link of an interface, and the network there.
pub(super) fn network_on(interfaces: &Interfaces, id: InterfaceId) -> Option<(Ipv4Addr, Prefix)> {
    let (_, address, length) = place_on(interfaces, id)?;
    Some((address, Prefix::new(address, length)))
}

/// Hands over messages that have come by the interface `index`, each with its source and what is left of its time to live. Others are
/// none of the cluster's; without an interface none is.
pub(super) fn receive(
    socket: &AgentSocket,
    index: Option<u32>,
    unheard: &mut Unheard,
    mut take: impl FnMut(Ipv4Addr, u8, &[u8]),
) {
    let mut buffer = [0; LONGEST_MESSAGE];
    for _ in 0..MESSAGES_A_TURN {
        let Ok(Some(datagram)) = socket.receive(&mut buffer) else { break };
        match index {
            Some(index) if index == datagram.interface => {
                take(datagram.source, datagram.ttl, datagram.payload);
            }
            Some(_) => unheard.elsewhere += 1,
            None => unheard.no_cluster += 1,
        }
    }
}

/// Sends a message to the cluster; whether it left.
pub(super) fn send(socket: &AgentSocket, place: Option<Place>, transmit: &ClusterTransmit) -> bool {
    let Some((index, source, _)) = place else { return false };
    let message = OutgoingDatagram {
        interface: Some(index),
        source,
        destination: transmit.destination.unwrap_or(Ipv4Addr::BROADCAST),
        destination_port: CLUSTER_PORT,
        ttl: CLUSTER_TTL,
        payload: &transmit.payload,
    };
    socket.send(&message).is_ok()
}

/// What was counted of messages of a cluster.
pub(super) fn count_messages(
    counted: &ClusterCounters,
    unsent: u64,
    unheard: Unheard,
    counters: &mut AgentCounters,
) {
    let mut add = |name: String, value: u64| {
        counters.insert(name, value);
    };
    add("cluster-messages-received".to_owned(), counted.received);
    add("cluster-messages-sent".to_owned(), counted.sent);
    add("cluster-messages-unsent".to_owned(), unsent);
    add("dropped-cluster-other-interface".to_owned(), unheard.elsewhere);
    add("dropped-cluster-no-cluster".to_owned(), unheard.no_cluster);
    for reason in ClusterDrop::ALL {
        add(format!("dropped-cluster-{}", reason.name()), counted.dropped(reason));
    }
}

impl AsFd for Membership {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
