//! The hosts of a scenario with their interfaces, addresses, routes and links.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use careof_base::{Duration, Instant};
use careof_lab::{
    Change, Clock, Direction, Emulator, Error, Host, InterfaceAddress, InterfaceConfig,
    LinkId as EmulatedLink, LinkReport, LinkSpec, MediumSpec, Netlink, Options, Realm, Route as KernelRoute,
    SharedLinkSpec, Tap, TapConfig, Tun, set_sysctl,
};
use careof_link::Fate;
use careof_plan::{DomainPlan, Locator, NodeId, OneWayId, Plan, Route, Subnet, Topology, down_of};
use careof_scenario::{LinkId, Mobility, Scenario};

use crate::cells::Cells;
use crate::director::{advertises_on, is_mobile_ipv6};
use crate::error::WorldError;
use crate::mobile_ipv6::parameters_of_mobile_node;

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
    /// By link: the devices at its ends, for their carrier. One between stations of a medium that no link of the file joins has
    /// those by which they receive there.
    devices: Vec<[Tun; 2]>,
    /// By link: whether it is on a medium.
    on_medium: Vec<bool>,
    /// The cells of a domain of micro-mobility.
    pub(crate) cells: Option<Cells>,
}

impl Network {
    /// Builds the hosts with everything in them that does not move, and starts the clock.
    pub(crate) fn build(
        scenario: &Scenario,
        topology: &Topology,
        run: u64,
        sysctls: &[Vec<(String, String)>],
        domain: Option<&DomainPlan>,
    ) -> Result<(Self, Clock, Tap), WorldError> {
        refuse_long_names(scenario)?;
        let realm = Realm::enter()?;
        let hosts: Vec<Host> =
            topology.places.iter().map(|place| realm.host(&place.name)).collect::<Result<_, _>>()?;
        for (((host, place), sysctls), node) in
            hosts.iter().zip(&topology.places).zip(sysctls).zip((0..).map(NodeId))
        {
            // Inside a domain its routers forward, and nobody has an address.
            let forwards = place.forwards && !domain.is_some_and(|domain| domain.is_inner(node));
            set_all(host, kernel_parameters(&topology.plan, forwards))?;
            set_all(host, sysctls.clone())?;
        }
        let mut devices: Vec<[Tun; 2]> = Vec::new();
        for (index, link) in scenario.links.iter().enumerate() {
            let ways = [OneWayId(2 * index as u32), OneWayId(2 * index as u32 + 1)];
            if is_radio(scenario, LinkId(index)) {
                // The last links of all: see `Cells`.
                break;
            }
            let is_inside = domain
                .is_some_and(|domain| ways.iter().all(|way| domain.has_router(topology.entrance(*way))));
            if link.straight {
                let ends = [ways[1], ways[0]].map(|way| receiving_device(&devices, topology, way));
                let [Some(a), Some(b)] = ends else { continue };
                devices.push([a.try_clone()?, b.try_clone()?]);
                continue;
            }
            // Access links wait for the mobile node, and whoever there has to know what they do knows that.
            let waits = [link.access && advertises_on(scenario, LinkId(index)), link.access];
            let attach = |end: usize, mtu: u16| {
                let comes_and_goes = link.access && end == 1;
                let unaddressed = comes_and_goes || is_inside;
                let device = attach(&hosts, topology, ways[end], &link.name, mtu, (waits[end], unaddressed))?;
                if is_inside {
                    keep_from_kernel(&hosts[usize::from(topology.entrance(ways[end]).0)], &link.name)?;
                }
                if let (true, true, Some(mobility)) =
                    (comes_and_goes, is_mobile_ipv6(scenario), &scenario.mobility)
                {
                    let node = topology.entrance(ways[end]);
                    let interface =
                        topology.place(node).interfaces.iter().find(|interface| interface.out == ways[end]);
                    let address = interface.map_or(Locator::NOWHERE, |interface| interface.address);
                    let host = &hosts[usize::from(node.0)];
                    if mobility.home == Some(LinkId(index)) {
                        // There it has its home address, which its agent gives it.
                        set_all(
                            host,
                            vec![(format!("net.ipv6.conf.{}.autoconf", link.name), "0".to_owned())],
                        )?;
                    }
                    have_addresses_formed(host, &link.name, mobility, topology.address(address))?;
                }
                Ok::<_, WorldError>(device)
            };
            devices.push([attach(0, link.down.mtu)?, attach(1, link.up.mtu)?]);
        }
        for (host, node) in hosts.iter().zip((0..).map(NodeId)) {
            let is_inner = domain.is_some_and(|domain| domain.is_inner(node));
            if topology.homes.index(node).is_none() && !is_inner {
                add_routes(host, topology, node, domain)?;
            }
        }

        let clock = Clock::starting_in(RUN_UP);
        let options = Options { seed: scenario.seed, run, ..Options::default() };
        let emulator = Emulator::start(clock, options)?;
        let tap = emulator.tap(TapConfig::default())?;
        let links = add_links(scenario, topology, &emulator, &devices)?;
        let on_medium = scenario.links.iter().map(|link| link.medium.is_some()).collect();
        let cells = domain.map(|domain| Cells::build(scenario, topology, &hosts, &emulator, domain));
        let cells = cells.transpose()?;
        Ok((Self { hosts: Arc::new(hosts), emulator, links, devices, on_medium, cells }, clock, tap))
    }

    /// The host of a node.
    pub(crate) fn host(&self, node: NodeId) -> &Host {
        &self.hosts[usize::from(node.0)]
    }

    /// The link of the emulator that a link of the scenario is.
    pub(crate) fn emulated(&self, link: LinkId) -> EmulatedLink {
        self.links[link.0]
    }

    /// The direction of an emulated link that a one-way link of the scenario is.
    pub(crate) fn direction(&self, way: OneWayId) -> (EmulatedLink, Direction) {
        let direction = if way.0.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
        (self.emulated(LinkId(way.0 as usize / 2)), direction)
    }

    /// The one-way link of the scenario that a direction of an emulated link is.
    pub(crate) fn way(&self, link: EmulatedLink, direction: Direction) -> OneWayId {
        let index = self.links.iter().position(|own| *own == link);
        let radio = || Some(self.cells.as_ref()?.radio.0);
        let index = index.or_else(radio).unwrap_or_default();
        OneWayId(2 * index as u32 + u32::from(direction == Direction::Backward))
    }

    /// Takes both directions of an access link down. On a medium the mobile node leaves the cable, and what others send to it is
    /// lost.
    pub(crate) fn down(&self, link: LinkId, queued: Fate) -> Vec<Change> {
        let directions = match self.on_medium.get(link.0) {
            Some(true) => vec![Direction::Backward],
            _ => Direction::ALL.to_vec(),
        };
        let link = self.emulated(link);
        let down = |direction| Change::SetDown { link, direction, queued, in_flight: Fate::Drop };
        directions.into_iter().map(down).collect()
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

/// Whether a link is the radio of a mobile node that goes round stations.
fn is_radio(scenario: &Scenario, link: LinkId) -> bool {
    let fleet = scenario.mobility.as_ref().and_then(|mobility| mobility.fleet.as_ref());
    fleet.is_some_and(|fleet| fleet.is_radio(link))
}

/// The device by which the node at the end of a one-way link of a medium receives what comes over it.
fn receiving_device<'a>(devices: &'a [[Tun; 2]], topology: &Topology, way: OneWayId) -> Option<&'a Tun> {
    let node = topology.entrance(OneWayId(way.0 ^ 1));
    let out = topology.place(node).interface(topology.receiving_interface(way)?).out;
    devices.get(out.0 as usize / 2)?.get(out.0 as usize % 2)
}

/// Has the emulator carry the links between their devices.
fn add_links(
    scenario: &Scenario,
    topology: &Topology,
    emulator: &Emulator,
    devices: &[[Tun; 2]],
) -> Result<Vec<EmulatedLink>, Error> {
    let mut media = Vec::new();
    for medium in &scenario.media {
        let stations = medium.stations.iter().map(|node| scenario.node(*node).name.clone()).collect();
        let spec = MediumSpec { name: medium.name.clone(), config: medium.config.clone(), stations };
        media.push(emulator.add_medium(spec)?);
    }
    let mut links = Vec::new();
    // Radios have no devices among these.
    for ((index, link), [a, b]) in scenario.links.iter().enumerate().zip(devices) {
        let (name, a, b) = (link.name.clone(), a.try_clone()?, b.try_clone()?);
        let place = topology.media.place(down_of(LinkId(index)));
        links.push(match place.and_then(|place| Some((place, *media.get(usize::from(place.medium))?))) {
            Some((place, medium)) => {
                let (stations, is_read) = ([place.from, place.to], !link.straight);
                emulator.add_shared_link(SharedLinkSpec { name, medium, stations, a, b, is_read })?
            }
            None => {
                let (forward, backward) = (link.down.clone(), link.up.clone());
                emulator.add_link(LinkSpec { name, a, b, forward, backward })?
            }
        });
    }
    Ok(links)
}

fn refuse_long_names(scenario: &Scenario) -> Result<(), WorldError> {
    for link in scenario.links.iter().filter(|link| !link.straight) {
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
fn kernel_parameters(plan: &Plan, forwards: bool) -> Vec<(String, String)> {
    let forwards = if forwards { "1" } else { "0" };
    let of_ipv4 = [
        ("net.ipv4.ip_forward", forwards),
        // Packets of the mobile node come in where its home network does not lie.
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.conf.all.send_redirects", "0"),
        ("net.ipv4.conf.default.send_redirects", "0"),
        // The simulator's nodes answer each packet that needs an answer.
        ("net.ipv4.icmp_ratelimit", "0"),
    ];
    // The interfaces of a host are made later, as `default` says by then; `all` is also for the loopback interface.
    let of_ipv6 = [
        ("net.ipv6.conf.all.disable_ipv6", "0"),
        ("net.ipv6.conf.default.disable_ipv6", "0"),
        ("net.ipv6.conf.all.forwarding", forwards),
        // Addresses and routes are those of the scenario.
        ("net.ipv6.conf.all.accept_ra", "0"),
        ("net.ipv6.conf.default.accept_ra", "0"),
        ("net.ipv6.conf.all.accept_dad", "0"),
        ("net.ipv6.conf.default.accept_dad", "0"),
        ("net.ipv6.conf.all.accept_redirects", "0"),
        ("net.ipv6.conf.default.accept_redirects", "0"),
        ("net.ipv6.icmp.ratelimit", "0"),
    ];
    let parameters = match plan {
        Plan::Ipv4 => of_ipv4.to_vec(),
        Plan::Ipv6(plan) if plan.is_dual_stack() => [&of_ipv4[..], &of_ipv6].concat(),
        Plan::Ipv6(_) => of_ipv6.to_vec(),
    };
    parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
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
    let address = address.map_or(Locator::NOWHERE, |interface| interface.address);
    let own = topology.address(address);
    let mut config = InterfaceConfig::new(name, own, topology.plan.prefix_len_of(own));
    let beside = topology.plan.ipv4_beside(address).map(IpAddr::V4).filter(|beside| *beside != own);
    config.addresses.extend(
        beside
            .map(|address| InterfaceAddress { address, prefix_length: topology.plan.prefix_len_of(address) }),
    );
    config.mtu = mtu;
    config.has_carrier = !waits;
    // The address of a home agent of Mobile IPv6 on its home link is the agent's, and on no interface.
    let is_agents = topology.plan != Plan::Ipv4
        && topology.homes.at(node).is_some_and(|home| home.agent_address == address);
    if comes_and_goes || is_agents {
        config.addresses.clear();
    }
    config.configures_itself = is_agents;
    let tun = host.attach(&config)?;
    // Without an address of its own an interface comes without IPv6, which is to form one here.
    let parameter = match topology.plan {
        Plan::Ipv6(_) if own.is_ipv4() => return Ok(tun),
        Plan::Ipv4 => (format!("net.ipv4.conf.{name}.rp_filter"), "0".to_owned()),
        Plan::Ipv6(_) => (format!("net.ipv6.conf.{name}.disable_ipv6"), "0".to_owned()),
    };
    set_all(host, vec![parameter])?;
    Ok(tun)
}

/// Has the kernel act on nothing that comes in by an interface of a domain: none of its routes lead there, so that its reverse path filter drops
/// everything, what is for an address of the host among it. Packet sockets have it before that.
pub(crate) fn keep_from_kernel(host: &Host, name: &str) -> Result<(), Error> {
    set_all(host, vec![(format!("net.ipv4.conf.{name}.rp_filter"), "1".to_owned())])
}

/// Has an interface of the mobile node form its addresses of what routers advertise, as the plan has them.
fn have_addresses_formed(host: &Host, name: &str, mobility: &Mobility, planned: IpAddr) -> Result<(), Error> {
    let IpAddr::V6(planned) = planned else { return Ok(()) };
    let parameters = parameters_of_mobile_node(mobility, name);
    let name = name.to_owned();
    host.run(move || {
        parameters.iter().try_for_each(|(name, value)| set_sysctl(name, value))?;
        let mut netlink = Netlink::open()?;
        let index = netlink.index_of(&name)?;
        netlink.autoconfigure_as(index, planned)
    })?
}

/// The static routes of a host, and the address of a home agent whose home network has no link.
fn add_routes(
    host: &Host,
    topology: &Topology,
    node: NodeId,
    domain: Option<&DomainPlan>,
) -> Result<(), Error> {
    let place = topology.place(node);
    let mut wanted = Vec::new();
    let mut own = None;
    let leads_inside = |index| domain.is_some_and(|domain| domain.is_inner(place.interface(index).peer));
    let home = topology.homes.at(node);
    // Links are numbered from 1, and home networks without a link come behind them.
    for subnet in (0..).map(Subnet).take(place.routes().count()).skip(1) {
        // Any address of the network that nobody has.
        match place.route(topology.host(subnet, 254)) {
            Route::Via(index) if leads_inside(index) => {}
            Route::Via(index) if place.interface(index).subnet != subnet => {
                let (to, via) = (topology.host(subnet, 0), place.interface(index).peer_address);
                let planned = [to, via].map(|locator| topology.address(locator));
                let beside = [to, via].map(|locator| topology.plan.ipv4_beside(locator).map(IpAddr::V4));
                // Routes to a network of IPv4 lead over routers of both.
                if planned[0].is_ipv4() == planned[1].is_ipv4() {
                    wanted.push(planned);
                }
                if let [Some(to), Some(via)] = beside {
                    wanted.push([to, via]);
                }
            }
            // Of Mobile IPv6 the agent itself has the address.
            Route::Home if topology.plan != Plan::Ipv4 => {}
            Route::Home => own = home.map(|home| topology.address(home.agent_address)),
            Route::Via(_) | Route::Local | Route::Unreachable => {}
        }
    }
    // The home network of mobile nodes in a domain is none of these.
    let mut to_home = None;
    if let (Some(home), Some(_)) = (topology.homes.first(), domain) {
        match place.route(home.home_address) {
            Route::Via(index) => {
                let ends = [home.agent_address, place.interface(index).peer_address];
                to_home = Some((ends.map(|locator| topology.address(locator)), topology.home_prefix_len()));
            }
            Route::Home => own = Some(topology.address(home.agent_address)),
            Route::Local | Route::Unreachable => {}
        }
    }
    let plan = topology.plan.clone();
    host.run(move || {
        let mut netlink = Netlink::open()?;
        if let Some(([to, via], length)) = to_home {
            let to = KernelRoute::to(network_of(to, length), length, 0);
            netlink.set_route(&KernelRoute { via: Some(via), ..to })?;
        }
        if let Some(own) = own {
            let loopback = netlink.index_of("lo")?;
            netlink.add_address(loopback, own, if own.is_ipv4() { 32 } else { 128 })?;
        }
        for [to, via] in wanted {
            let to = KernelRoute::to(to, plan.prefix_len_of(to), 0);
            netlink.set_route(&KernelRoute { via: Some(via), ..to })?;
        }
        Ok(())
    })?
}

/// The network of this length that an address of IPv4 is in.
fn network_of(address: IpAddr, length: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(length.into())).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        address => address,
    }
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
