//! A domain of micro-mobility: its routers and the mobile nodes in it.
//!
//! To Mobile IP the domain is one link, the cell of its gateway, which is the foreign agent there. [`data`] has the packets on their way
//! through the domain, [`signalling`] the messages of its routers and what base stations pass on for Mobile IP, [`walk`] the mobile nodes' way
//! from base station to base station.

mod data;
mod signalling;
mod walk;

use careof_base::{Duration, Instant};
use careof_metrics::MicroMobilitySummary;
use careof_mobility::micro::{MobileHost, PacketDrop, Router};
use careof_mobility::{ConfigError, InterfaceId};
use careof_plan::{DomainPlan, InterfaceIndex, Itinerary, Locator, NodeId, OneWayId, sum_of_domain};
use careof_scenario::Round;

use crate::drop_cause::NodeDrop;
use crate::kept::KeptPackets;
use crate::queue::Slot;
use crate::simulation::{Component, Simulation};

pub(crate) use signalling::DomainMessage;
use walk::Walker;

/// A domain.
pub(crate) struct Domain {
    gateway: NodeId,
    /// By node; `None` where a node is none of its routers.
    routers: Vec<Option<Box<DomainRouter>>>,
    /// By the number of the mobile node.
    hosts: Vec<DomainHost>,
    /// The base stations in order.
    stations: Vec<Station>,
    /// How long before a handover it is announced; `None`: it is not.
    lead: Option<Duration>,
    /// Whether that is said to the next base station, over its radio.
    is_semi_soft: bool,
    /// Whether base stations confirm what mobile nodes say; where they do not, data packets say something, too.
    confirms: bool,
    round: Option<Round>,
    /// From one advertisement of a base station to its next; zero where the link layer says who is there.
    advertisement_interval: Duration,
    /// The way down of the first radio of the first mobile node.
    first_radio: OneWayId,
}

/// A router of the domain, and the packets that it keeps.
struct DomainRouter {
    agent: Router,
    slot: Slot,
    /// When that is set to.
    deadline: Option<Instant>,
    kept: KeptPackets,
    /// Its own address.
    address: Locator,
    /// Towards the gateway; of the gateway, out of the domain.
    uplink: Option<InterfaceIndex>,
    downlinks: Vec<InterfaceIndex>,
    cell: Option<InterfaceIndex>,
}

/// A base station.
#[derive(Clone, Copy)]
struct Station {
    node: NodeId,
    address: Locator,
    cell: InterfaceIndex,
    /// When it advertises itself for the first time, behind the beginning of the run.
    first_advertisement: Duration,
}

/// A mobile node in the domain.
struct DomainHost {
    agent: MobileHost,
    /// When it hears where it is, and the address of that base station.
    hears: Option<(Instant, Locator)>,
    slot: Slot,
    walker: Walker,
}

impl DomainRouter {
    fn is_below(&self, interface: InterfaceIndex) -> bool {
        self.cell == Some(interface) || self.downlinks.contains(&interface)
    }
}

impl Domain {
    fn router(&mut self, node: NodeId) -> Option<&mut DomainRouter> {
        self.routers.get_mut(usize::from(node.0))?.as_deref_mut()
    }

    /// Whether a node is one of its routers.
    pub(crate) fn has_router(&self, node: NodeId) -> bool {
        self.routers.get(usize::from(node.0)).is_some_and(Option::is_some)
    }

    /// The way down of a radio of a mobile node, the first (0) or the second (1).
    fn radio(&self, mobile: usize, which: usize) -> OneWayId {
        OneWayId(self.first_radio.0 + 2 * (mobile + which * self.hosts.len()) as u32)
    }

    /// The way down to a mobile node from the base station on `node`, if it is there.
    fn way_to(&self, mobile: usize, node: NodeId) -> Option<OneWayId> {
        let host = self.hosts.get(mobile)?;
        let which = host
            .walker
            .radio_at(|station| self.stations.get(station).is_some_and(|station| station.node == node))?;
        Some(self.radio(mobile, which))
    }

    /// The way up by the radio of a mobile node that it does not send by, where what it says to `station` takes that.
    fn other_way_up(&self, mobile: usize, station: Locator) -> Option<OneWayId> {
        let host = self.hosts.get(mobile)?;
        let walker = &host.walker;
        let is_next = self.is_semi_soft
            && self.stations.get(walker.station_in_use()?)?.address != station
            && self.stations.get(walker.target())?.address == station;
        is_next.then(|| OneWayId(self.radio(mobile, 1 - walker.in_use()).0 + 1))
    }

    /// Packets of the run that its routers keep.
    pub(crate) fn held(&self) -> u64 {
        self.routers.iter().flatten().map(|router| router.kept.held()).sum()
    }

    /// What its routers and mobile nodes have counted.
    pub(crate) fn summary(&self) -> MicroMobilitySummary {
        let of_routers = self.routers.iter().flatten().map(|router| router.agent.counters());
        let of_hosts = self.hosts.iter().map(|host| host.agent.counters());
        let kept = self.routers.iter().flatten().map(|router| router.agent.buffer_counters());
        sum_of_domain(of_routers.chain(of_hosts), kept)
    }
}

impl From<PacketDrop> for NodeDrop {
    fn from(reason: PacketDrop) -> Self {
        match reason {
            PacketDrop::NotOfDomain | PacketDrop::NoRoute => Self::NoRoute,
            PacketDrop::NotAttached => Self::LeftCell,
            PacketDrop::Early => Self::NotThereYet,
            PacketDrop::BufferFull => Self::BufferFull,
            PacketDrop::WrongSource => Self::WrongSource,
        }
    }
}

impl Simulation {
    /// Builds the domain, if there is one.
    pub(crate) fn add_domain(&mut self) -> Result<(), ConfigError> {
        let Some(plan) = careof_plan::domain(&self.scenario, &self.topology, self.run) else { return Ok(()) };
        let Some(fleet) = self.scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.clone()) else {
            return Ok(());
        };
        let DomainPlan { gateway, routers, hosts, stations, lead, is_semi_soft, confirms } = plan?;
        let mut domain = Domain {
            gateway,
            routers: (0..self.nodes.len()).map(|_| None).collect(),
            hosts: Vec::new(),
            stations: Vec::new(),
            lead,
            is_semi_soft,
            confirms,
            round: fleet.round,
            advertisement_interval: self.advertisement_interval(),
            first_radio: careof_plan::down_of(fleet.radio),
        };
        let index = |interface: InterfaceId| InterfaceIndex(interface.0);
        for (node, config) in routers {
            let slot = self.add_component(Component::Domain(node));
            let router = DomainRouter {
                slot,
                deadline: None,
                kept: KeptPackets::default(),
                address: config.address.into(),
                uplink: config.uplink.map(index),
                downlinks: config.downlinks.iter().map(|link| index(link.interface)).collect(),
                cell: config.cell.map(index),
                agent: Router::new(config)?,
            };
            domain.routers[usize::from(node.0)] = Some(Box::new(router));
            // The domain's router forwards in its place, and every packet is shown to it.
            self.node_mut(node).place.forwards = false;
            self.node_mut(node).next_ways = Vec::new();
        }
        domain.stations = stations
            .into_iter()
            .filter_map(|node| {
                let cell = self.topology.place(node).cell?;
                let first_advertisement = self.first_advertisement(node);
                Some(Station { node, address: cell.address, cell: cell.interface, first_advertisement })
            })
            .collect();
        for (n, (node, config)) in hosts.into_iter().enumerate() {
            let name = self.node(node).place.name.clone();
            let path = Itinerary::new(&self.scenario, self.run, &fleet, n, &name);
            domain.hosts.push(DomainHost {
                agent: MobileHost::new(config)?,
                hears: None,
                slot: self.add_component(Component::Domain(node)),
                walker: Walker::new(path),
            });
        }
        self.micro = Some(Box::new(domain));
        for way in 0..self.links.len() {
            // Whichever radio a packet comes by, it is the interface of its mobile node.
            if fleet.is_radio(careof_scenario::LinkId(way / 2)) && way % 2 == 0 {
                self.links[way].to_interface = InterfaceIndex(0);
            }
        }
        Ok(())
    }

    fn advertisement_interval(&self) -> Duration {
        let mobility = self.scenario.mobility.as_ref();
        let domain = mobility.and_then(|mobility| mobility.micro_mobility.as_ref());
        domain.map_or(Duration::ZERO, |domain| domain.advertisement_interval)
    }

    /// When a base station advertises itself for the first time: no two have their instants in common but by chance.
    fn first_advertisement(&self, station: NodeId) -> Duration {
        let interval = u64::try_from(self.advertisement_interval().as_nanos()).unwrap_or(u64::MAX);
        let name = &self.node(station).place.name;
        let draw = || self.stream(&format!("advertisement.{name}")).below(interval);
        Duration::from_nanos(if interval == 0 { 0 } else { draw() })
    }

    /// A deadline of a router of the domain, or of a mobile node in it, has come.
    pub(crate) fn domain_timeout(&mut self, node: NodeId) {
        let now = self.now;
        let mobile = self.topology.homes.index(node);
        let Some(domain) = &mut self.micro else { return };
        match mobile {
            Some(mobile) => {
                if let Some(host) = domain.hosts.get_mut(mobile) {
                    if let Some((_, station)) = host.hears.take_if(|(at, _)| *at <= now) {
                        host.agent.attached(now, station.to_ipv4());
                    }
                    host.agent.handle_timeout(now);
                }
                self.drive_host(mobile);
            }
            None => {
                if let Some(router) = domain.router(node) {
                    router.deadline = None;
                    router.agent.handle_timeout(now);
                }
                self.drive_router(node);
            }
        }
    }
}
