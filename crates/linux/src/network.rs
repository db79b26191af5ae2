//! The hosts of a scenario with their interfaces, addresses, routes and links.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use careof_base::{Duration, Instant};
use careof_lab::{
    Change, Clock, Direction, Emulator, Error, Host, InterfaceConfig, LinkId as EmulatedLink, LinkReport,
    LinkSpec, Netlink, Options, Realm, Route as KernelRoute, Tap, TapConfig, Tun, set_sysctl,
};
use careof_link::Fate;
use careof_plan::{NodeId, OneWayId, Place, Route, Subnet, Topology};
use careof_scenario::{LinkId, Role, Scenario};

use crate::director::advertises_on;
use crate::error::WorldError;

/// Between the last preparation and the beginning of the run's time.
const RUN_UP: Duration = Duration::from_millis(150);

/// The names of interfaces, and so of links, have to fit the kernel.
const LONGEST_NAME: usize = 15;

/// Hosts and links, running.
pub(crate) struct Network {
    /// One a place of the topology.
    pub(crate) hosts: Arc<Vec<Host>>,
    pub(crate) emulator: Emulator,
    /// One a link of the scenario.
    links: Vec<EmulatedLink>,
    /// By link: the devices at its ends, for their carrier.
    devices: Vec<[Tun; 2]>,
}

impl Network {
    /// Builds the hosts with everything in them that does not move, and starts the clock.
    pub(crate) fn build(
        scenario: &Scenario,
        topology: &Topology,
        run: u64,
        sysctls: &[Vec<(String, String)>],
    ) -> Result<(Self, Clock, Tap), WorldError> {
        refuse_long_names(scenario)?;
        let realm = Realm::enter()?;
        let hosts: Vec<Host> =
            topology.places.iter().map(|place| realm.host(&place.name)).collect::<Result<_, _>>()?;
        for ((host, place), sysctls) in hosts.iter().zip(&topology.places).zip(sysctls) {
            set_all(host, kernel_parameters(place.forwards))?;
            set_all(host, sysctls.clone())?;
        }
        let mut ends = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            // Access links wait for the mobile node, and whoever there has to know what they do knows that.
            let waits = [link.access && advertises_on(scenario, LinkId(index)), link.access];
            let attach = |end: usize, mtu: u16| {
                let way = OneWayId(2 * index as u32 + end as u32);
                attach(&hosts, topology, way, &link.name, mtu, (waits[end], link.access && end == 1))
            };
            ends.push([attach(0, link.down.mtu)?, attach(1, link.up.mtu)?]);
        }
        let mobile = scenario.node_with_role(Role::Mobile).map(|id| scenario.node(id).name.clone());
        for (host, place) in hosts.iter().zip(&topology.places) {
            if Some(&place.name) != mobile.as_ref() {
                add_routes(host, topology, place)?;
            }
        }

        let clock = Clock::starting_in(RUN_UP);
        let options = Options { seed: scenario.seed, run, ..Options::default() };
        let emulator = Emulator::start(clock, options)?;
        let tap = emulator.tap(TapConfig::default())?;
        let (mut links, mut devices) = (Vec::new(), Vec::new());
        for (link, [a, b]) in scenario.links.iter().zip(ends) {
            devices.push([a.try_clone()?, b.try_clone()?]);
            let (forward, backward) = (link.down.clone(), link.up.clone());
            links.push(emulator.add_link(LinkSpec { name: link.name.clone(), a, b, forward, backward })?);
        }
        Ok((Self { hosts: Arc::new(hosts), emulator, links, devices }, clock, tap))
    }

    /// The host of a node.
    pub(crate) fn host(&self, node: NodeId) -> &Host {
        &self.hosts[usize::from(node.0)]
    }

    /// The link of the emulator that a link of the scenario is.
    pub(crate) fn emulated(&self, link: LinkId) -> EmulatedLink {
        self.links[link.0]
    }

    /// The one-way link of the scenario that a direction of an emulated link is.
    pub(crate) fn way(&self, link: EmulatedLink, direction: Direction) -> OneWayId {
        let index = self.links.iter().position(|own| *own == link).unwrap_or_default();
        OneWayId(2 * index as u32 + u32::from(direction == Direction::Backward))
    }

    /// Takes both directions of a link down.
    pub(crate) fn down(&self, link: LinkId, queued: Fate) -> Vec<Change> {
        let link = self.emulated(link);
        let down = |direction| Change::SetDown { link, direction, queued, in_flight: Fate::Drop };
        Direction::ALL.map(down).to_vec()
    }

    /// Takes both directions of a link up.
    pub(crate) fn up(&self, link: LinkId) -> Vec<Change> {
        let link = self.emulated(link);
        Direction::ALL.map(|direction| Change::SetUp { link, direction }).to_vec()
    }

    /// Gives an end of a link its carrier, or takes it away: what the host there hears about.
    pub(crate) fn set_carrier(&self, link: LinkId, end: usize, on: bool) -> Result<(), Error> {
        self.devices
            .get(link.0)
            .and_then(|ends| ends.get(end))
            .map_or(Ok(()), |device| device.set_carrier(on))
    }

    /// What became of the packets of every link before `at`, as soon as that has come.
    pub(crate) fn report_at(&self, at: Instant) -> Result<Receiver<Vec<LinkReport>>, Error> {
        self.emulator.report_at(at)
    }
}

fn refuse_long_names(scenario: &Scenario) -> Result<(), WorldError> {
    for link in &scenario.links {
        let taken = ["lo", "careof0", "all", "default"].contains(&link.name.as_str());
        if link.name.len() > LONGEST_NAME || taken {
            return Err(WorldError::Unsupported {
                key: format!("links.{}", link.name),
                found: format!("the name {:?}", link.name),
                remedy: format!(
                    "it names an interface, which takes at most {LONGEST_NAME} letters and none of the kernel's own names"
                ),
            });
        }
    }
    Ok(())
}

/// What every host is told, whatever TCP the scenario asks for.
fn kernel_parameters(forwards: bool) -> Vec<(String, String)> {
    let parameter = |name: &str, value: &str| (format!("net.ipv4.{name}"), value.to_owned());
    vec![
        parameter("ip_forward", if forwards { "1" } else { "0" }),
        // Packets of the mobile node come in where its home network does not lie.
        parameter("conf.all.rp_filter", "0"),
        parameter("conf.default.rp_filter", "0"),
        parameter("conf.all.send_redirects", "0"),
        parameter("conf.default.send_redirects", "0"),
        // The simulator's nodes answer each packet that needs an answer.
        parameter("icmp_ratelimit", "0"),
    ]
}

fn set_all(host: &Host, parameters: Vec<(String, String)>) -> Result<(), Error> {
    host.run(move || parameters.iter().try_for_each(|(name, value)| set_sysctl(name, value)))?
}

/// Makes the interface that the one-way link `way` leaves by, without a carrier where it `waits` for one. Where it
/// `comes_and_goes` it gets its address when the link comes up: that is the mobile node's on an access link.
fn attach(
    hosts: &[Host],
    topology: &Topology,
    way: OneWayId,
    name: &str,
    mtu: u16,
    (waits, comes_and_goes): (bool, bool),
) -> Result<Tun, Error> {
    let node = topology.entrance(way);
    let host = &hosts[usize::from(node.0)];
    let address = topology.place(node).interfaces.iter().find(|interface| interface.out == way);
    let address = address.map_or(Ipv4Addr::UNSPECIFIED, |interface| interface.address);
    let mut config = InterfaceConfig::new(name, IpAddr::V4(address), Subnet::PREFIX_LEN);
    config.mtu = mtu;
    config.has_carrier = !waits;
    if comes_and_goes {
        config.addresses.clear();
    }
    let tun = host.attach(&config)?;
    let filter = (format!("net.ipv4.conf.{name}.rp_filter"), "0".to_owned());
    set_all(host, vec![filter])?;
    Ok(tun)
}

/// The static routes of a host, and the address of a home agent whose home network has no link.
fn add_routes(host: &Host, topology: &Topology, place: &Place) -> Result<(), Error> {
    let mut wanted = Vec::new();
    let mut own = None;
    // Links are numbered from 1, and a home network without a link comes behind them.
    let interfaces = topology.places.iter().flat_map(|place| &place.interfaces);
    let last = interfaces.map(|interface| interface.subnet.0).max().unwrap_or(0);
    for subnet in (1..=last + 1).map(Subnet) {
        // Any address of the network that nobody has.
        match place.route(subnet.host(254)) {
            Route::Via(index) if place.interface(index).subnet != subnet => {
                wanted.push((subnet.host(0), place.interface(index).peer_address));
            }
            Route::Home => own = topology.home_agent_address,
            Route::Via(_) | Route::Local | Route::Unreachable => {}
        }
    }
    host.run(move || {
        let mut netlink = Netlink::open()?;
        if let Some(own) = own {
            let loopback = netlink.index_of("lo")?;
            netlink.add_address(loopback, IpAddr::V4(own), 32)?;
        }
        for (to, via) in wanted {
            let to = KernelRoute::to(IpAddr::V4(to), Subnet::PREFIX_LEN, 0);
            netlink.set_route(&KernelRoute { via: Some(IpAddr::V4(via)), ..to })?;
        }
        Ok(())
    })?
}

/// What a DHCP client does when its link comes up: the interface gets an address, and a router that leads everywhere.
pub(crate) fn give_address(
    host: &Host,
    name: &str,
    address: Ipv4Addr,
    gateway: Ipv4Addr,
    metric: u32,
) -> Result<(), Error> {
    let name = name.to_owned();
    host.run(move || {
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(&name)?;
        netlink.add_address(index, IpAddr::V4(address), Subnet::PREFIX_LEN)?;
        let route = KernelRoute::default_through(index, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        netlink.set_route(&KernelRoute { via: Some(IpAddr::V4(gateway)), metric: Some(metric), ..route })?;
        Ok(())
    })?
}
