//! The cells of a domain of micro-mobility on Linux hosts.
//!
//! A mobile node has a link to each base station, which is up while its radio is there, and behind all of them one interface. In the books of
//! the run they are the scenario's radio.

use careof_lab::{
    Change, Direction, DirectionReport, Emulator, Host, InterfaceConfig, Lateness, LinkId as EmulatedLink,
    LinkReport, LinkSpec, Tun,
};
use careof_link::{Config, Fate};
use careof_plan::{DomainPlan, Locator, NodeId, Subnet, Topology, WalkStep};
use careof_scenario::{LinkId, Scenario};

use crate::error::WorldError;
use crate::network::keep_from_kernel;

/// The device of a gateway that is the domain to its host.
pub(crate) const DOMAIN_DEVICE: &str = "careof-domain";

/// The links of a mobile node to base stations.
pub(crate) struct Cells {
    /// The link of the scenario that all of them are.
    pub(crate) radio: LinkId,
    /// Whether the scenario has the mobile node use two radios in turn.
    has_second: bool,
    /// By base station: its node, its link, and the name of the mobile node's device there.
    stations: Vec<(NodeId, EmulatedLink, String)>,
    /// The device that is the domain to the gateway's host.
    pub(crate) gateway: Tun,
    /// The same to the mobile node's.
    pub(crate) mobile: Tun,
}

impl Cells {
    /// Makes the links, all of them down, and the devices at their ends.
    pub(crate) fn build(
        scenario: &Scenario,
        topology: &Topology,
        hosts: &[Host],
        emulator: &Emulator,
        domain: &DomainPlan,
    ) -> Result<Self, WorldError> {
        let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
        let node = domain.hosts.first().map(|(node, _)| *node);
        let (Some(fleet), Some(mobile)) = (fleet, node) else {
            return Err(WorldError::Agent("a domain needs a mobile node".to_owned()));
        };
        let host = |node: NodeId| &hosts[usize::from(node.0)];
        let link = scenario.link(fleet.radio);
        let device = |name: &str, address: Locator, mtu: u16| {
            let mut config = InterfaceConfig::new(name, topology.address(address), Subnet::PREFIX_LEN);
            config.mtu = mtu;
            if address == Locator::NOWHERE {
                config.addresses.clear();
            }
            config
        };
        let mut stations = Vec::new();
        for (n, station) in (1..).zip(&domain.stations) {
            let own = format!("cell-{n}");
            let a = host(*station).attach(&device(&link.name, Locator::NOWHERE, link.down.mtu))?;
            let b = host(mobile).attach(&device(&own, Locator::NOWHERE, link.up.mtu))?;
            keep_from_kernel(host(*station), &link.name)?;
            keep_from_kernel(host(mobile), &own)?;
            let name = format!("{}.{}", link.name, topology.place(*station).name);
            let (forward, backward): (Config, Config) = (link.down.clone(), link.up.clone());
            stations.push((*station, emulator.add_link(LinkSpec { name, a, b, forward, backward })?, own));
        }
        let cell = topology.place(domain.gateway).cell.map_or(Locator::NOWHERE, |cell| cell.address);
        let gateway = host(domain.gateway).attach(&device(DOMAIN_DEVICE, cell, link.down.mtu))?;
        // It has its carrier from the first base station on.
        let waiting =
            InterfaceConfig { has_carrier: false, ..device(&link.name, Locator::NOWHERE, link.up.mtu) };
        let mobile = host(mobile).attach(&waiting)?;
        let cells =
            Self { radio: fleet.radio, has_second: fleet.has_second_radios, stations, gateway, mobile };
        for station in 0..cells.stations.len() {
            emulator.apply(cells.down(station))?;
        }
        Ok(cells)
    }

    /// The base station at the end of an emulated link, if it is one of these.
    pub(crate) fn station_of(&self, link: EmulatedLink) -> Option<NodeId> {
        self.stations.iter().find(|(_, own, _)| *own == link).map(|(node, ..)| *node)
    }

    /// The mobile node's devices, by base station.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &str> {
        self.stations.iter().map(|(.., device)| device.as_str())
    }

    fn down(&self, station: usize) -> Vec<Change> {
        let down =
            |link, direction| Change::SetDown { link, direction, queued: Fate::Drop, in_flight: Fate::Drop };
        self.changes(station, &Direction::ALL, down)
    }

    fn changes(
        &self,
        station: usize,
        directions: &[Direction],
        change: impl Fn(EmulatedLink, Direction) -> Change,
    ) -> Vec<Change> {
        let link = self.stations.get(station).map(|(_, link, _)| *link);
        link.into_iter()
            .flat_map(|link| directions.iter().map(move |way| (link, *way)))
            .map(|(link, way)| change(link, way))
            .collect()
    }

    /// What a step of the mobile node's walk does to the links. One that is announced over the next base station's radio has the mobile node
    /// send there already, and hear nobody yet.
    pub(crate) fn changes_of(&self, step: WalkStep, is_semi_soft: bool) -> Vec<Change> {
        let up = |link, direction| Change::SetUp { link, direction };
        match step {
            WalkStep::Announce(station) if is_semi_soft => self.changes(station, &[Direction::Backward], up),
            WalkStep::Come(station) => self.changes(station, &Direction::ALL, up),
            WalkStep::Leave(station) => self.down(station),
            WalkStep::Announce(_) | WalkStep::Handover => Vec::new(),
        }
    }

    /// The reports of the emulator by link of the scenario: what all these links did, the first radio did.
    pub(crate) fn by_link(&self, mut reports: Vec<LinkReport>) -> Vec<LinkReport> {
        let radios = reports.split_off(self.radio.0.min(reports.len()));
        let none = LinkReport {
            name: String::new(),
            forward: DirectionReport::default(),
            backward: DirectionReport::default(),
        };
        let sum = radios.iter().fold(none.clone(), |sum, report| LinkReport {
            name: String::new(),
            forward: sum_of(sum.forward, &report.forward),
            backward: sum_of(sum.backward, &report.backward),
        });
        reports.push(sum);
        reports.extend(self.has_second.then_some(none));
        reports
    }
}

/// What two links did together.
fn sum_of(one: DirectionReport, other: &DirectionReport) -> DirectionReport {
    let mut link = one.link;
    let more = &other.link;
    link.offered += more.offered;
    link.offered_bytes += more.offered_bytes;
    link.delivered += more.delivered;
    link.delivered_bytes += more.delivered_bytes;
    link.drained += more.drained;
    link.marked += more.marked;
    link.dropped.iter_mut().zip(more.dropped).for_each(|(sum, more)| *sum += more);
    DirectionReport {
        received: one.received + other.received,
        moved_in: one.moved_in + other.moved_in,
        no_buffer: one.no_buffer + other.no_buffer,
        dropped_from_queue: one.dropped_from_queue + other.dropped_from_queue,
        link,
        longest_queue: (
            one.longest_queue.0.max(other.longest_queue.0),
            one.longest_queue.1.max(other.longest_queue.1),
        ),
        queued: one.queued + other.queued,
        in_flight: one.in_flight + other.in_flight,
        written: one.written + other.written,
        refused: one.refused + other.refused,
        is_up: one.is_up || other.is_up,
        lateness: Lateness {
            deliveries: one.lateness.deliveries + other.lateness.deliveries,
            total: one.lateness.total.saturating_add(other.lateness.total),
            worst: one.lateness.worst.max(other.lateness.worst),
        },
    }
}
