//! Mobile IPv6 on the hosts of a scenario: what its nodes are given, and the routers that the mobile node comes to.

use std::os::fd::AsFd;
use std::sync::mpsc::Sender;

use careof_agent::{
    AccessPointSetup, Device, FastHandoverSetup, HostOptions, Ipv6AccessRouterSetup, Ipv6AnchorPointSetup,
    Ipv6CorrespondentSetup, Ipv6HierarchicalMobileSetup, Ipv6HomeSetup, Ipv6MobileSetup, Ipv6Setup,
    RouterAdvertiser,
};
use careof_lab::{Clock, Error, Host};
use careof_mobility::v6::{HierarchicalMobileNodeConfig, MobileNodeConfig};
use careof_plan::{
    FastHandoverPlan, Ipv6AgentPlan, NodeId, Topology, fast_handover, ipv6_agent, neighbors, stream,
};
use careof_scenario::{DuplicateAddressDetection, Mobility, Scenario};
use careof_wire::ipv6::Ipv6Header;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::application::{Signal, Worker, answer};
use crate::error::WorldError;
use crate::network::Network;
use crate::report::Report;

/// What the agent on `node` needs to be carried on its host; `None` where there is none.
pub(crate) fn setup(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    node: NodeId,
) -> Result<Option<Ipv6Setup>, WorldError> {
    let plan =
        ipv6_agent(scenario, topology, run, node).map_err(|error| WorldError::Agent(error.to_string()))?;
    let host = host_options(scenario);
    let assist = careof_plan::assists(scenario, topology, node);
    let fast = fast_handover(scenario, topology, run, node)
        .map_err(|error| WorldError::Agent(error.to_string()))?
        .map(|plan| fast_handover_setup(scenario, plan));
    let mobile = |config: MobileNodeConfig, host: HostOptions, assist| {
        let devices = devices(scenario, topology, node);
        // Packets for the previous care-of address come in a tunnel more, and some go back in one.
        let inside = if fast.is_some() { one_less(host.tunnel_mtu) } else { host.tunnel_mtu };
        let host = HostOptions { tunnel_mtu: inside, ..host };
        // The scenario says it, with the other parameters of the interfaces.
        let fast_handover = fast.clone();
        Ipv6MobileSetup { config, devices, optimistic_detection: false, host, assist, fast_handover }
    };
    Ok(plan.map(|plan| {
        match plan {
            Ipv6AgentPlan::Home(config) => {
                let id = config.home_interface;
                let on_link = topology.place(node).interfaces.get(usize::from(id.0));
                let home_link = on_link.map(|interface| Device {
                    id,
                    name: scenario.links[interface.out.0 as usize / 2].name.clone(),
                });
                Ipv6Setup::Home(Ipv6HomeSetup { config: *config, home_link, host, assist })
            }
            Ipv6AgentPlan::Mobile(config) => Ipv6Setup::Mobile(mobile(*config, host, assist)),
            Ipv6AgentPlan::HierarchicalMobile(config) => {
                let HierarchicalMobileNodeConfig { node, maps, selection, patience, forwarding } = *config;
                let host = HostOptions { tunnel_mtu: one_less(host.tunnel_mtu), ..host };
                let mobile = mobile(node, host, assist);
                let setup = Ipv6HierarchicalMobileSetup { mobile, maps, selection, patience, forwarding };
                Ipv6Setup::HierarchicalMobile(Box::new(setup))
            }
            // The network of regional addresses has no link.
            Ipv6AgentPlan::AnchorPoint(config) => {
                let config = *config;
                Ipv6Setup::AnchorPoint(Ipv6AnchorPointSetup { config, home_link: None, host, assist })
            }
            Ipv6AgentPlan::AccessRouter(config) => {
                let config = *config;
                let devices = devices(scenario, topology, node);
                Ipv6Setup::AccessRouter(Box::new(Ipv6AccessRouterSetup { config, devices, host }))
            }
            Ipv6AgentPlan::Correspondent(config) => {
                Ipv6Setup::Correspondent(Ipv6CorrespondentSetup { config: *config, host })
            }
        }
    }))
}

/// The interfaces of a node, as its agent counts them.
fn devices(scenario: &Scenario, topology: &Topology, node: NodeId) -> Vec<Device> {
    let interfaces = topology.place(node).interfaces.iter().enumerate();
    let device = |(index, interface): (usize, &careof_plan::Interface)| {
        Device::new(index as u16, scenario.links[interface.out.0 as usize / 2].name.clone())
    };
    interfaces.map(device).collect()
}

/// The MTU inside one tunnel more.
fn one_less(mtu: u16) -> u16 {
    mtu.saturating_sub(Ipv6Header::LEN).max(Ipv6Header::MIN_MTU)
}

fn fast_handover_setup(scenario: &Scenario, plan: FastHandoverPlan) -> Box<FastHandoverSetup> {
    let access_points = plan.access_points.into_iter();
    let mobility = scenario.mobility.as_ref();
    let wanted = mobility.and_then(|mobility| mobility.fast_handover.as_ref());
    Box::new(FastHandoverSetup {
        config: plan.config,
        access_points: access_points
            .map(|point| AccessPointSetup { station: point.station, router: point.router })
            .collect(),
        is_buffered: wanted.is_some_and(|wanted| wanted.buffer_packets > 0),
    })
}

/// As they come, with a tunnel device for the longest packet of the scenario's links.
fn host_options(scenario: &Scenario) -> HostOptions {
    let host = HostOptions::for_ipv6();
    let longest = scenario.links.iter().flat_map(|link| [link.down.mtu, link.up.mtu]).max();
    let inside = longest.map_or(host.tunnel_mtu, |mtu| mtu.saturating_sub(Ipv6Header::LEN));
    HostOptions { tunnel_mtu: inside.max(Ipv6Header::MIN_MTU), ..host }
}

/// What the kernel of a mobile node is told about one of its interfaces.
pub(crate) fn parameters_of_mobile_node(mobility: &Mobility, interface: &str) -> Vec<(String, String)> {
    let detection = mobility.duplicate_address_detection;
    let detects = detection != DuplicateAddressDetection::None;
    let optimistic = detection == DuplicateAddressDetection::Optimistic;
    let bit = |on: bool| if on { "1" } else { "0" };
    let parameters = [
        ("accept_ra", "1"),
        ("accept_dad", bit(detects)),
        ("dad_transmits", bit(detects)),
        ("optimistic_dad", bit(optimistic)),
        ("use_optimistic", bit(optimistic)),
        // Who moves does not wait for others who come at the same time (RFC 6275 section 11.5.1).
        ("router_solicitation_delay", "0"),
    ];
    let named = |(name, value): (&str, &str)| (format!("net.ipv6.conf.{interface}.{name}"), value.to_owned());
    parameters.map(named).to_vec()
}

/// Has the routers of `node` advertise themselves, each in a thread of its own.
pub(crate) fn start_routers(
    scenario: &Scenario,
    topology: &Topology,
    network: &Network,
    (run, clock): (u64, Clock),
    node: NodeId,
    reports: &Sender<Report>,
) -> Result<Vec<Worker>, WorldError> {
    let name = &topology.place(node).name;
    let mut routers = Vec::new();
    for plan in neighbors(scenario, topology, node) {
        let Some(mut config) = plan.router else { continue };
        // A home agent's advertisement has a link-layer address (RFC 6275 section 7.5), which links between TUN devices do not have. The mobile
        // node has been told who is its home agent.
        config.is_home_agent = false;
        let random = stream(scenario, run, &format!("neighbors.router.{name}.{}", plan.interface.0));
        let interface = scenario.link(plan.link).name.clone();
        let host = network.host(node);
        let advertiser = host
            .run(move || RouterAdvertiser::open(&interface, config, clock, random))?
            .map_err(|error| WorldError::agent(name, &error))?;
        routers.push(start_router(host, advertiser, reports.clone())?);
    }
    Ok(routers)
}

fn start_router(
    host: &Host,
    mut advertiser: RouterAdvertiser,
    reports: Sender<Report>,
) -> Result<Worker, Error> {
    let name = host.name().to_owned();
    Worker::start(format!("router {name}"), move |bell| {
        let mut rings = 0;
        loop {
            let mut fds = [
                PollFd::new(advertiser.as_fd(), PollFlags::POLLIN),
                PollFd::new(bell.as_fd(), PollFlags::POLLIN),
            ];
            // Interrupted or not, both are looked at.
            let _ = poll(&mut fds, PollTimeout::NONE);
            if answer(&bell, &mut rings) == Some(Signal::Quit) {
                return;
            }
            if let Err(error) = advertiser.turn() {
                let _ = reports.send(Report::Failed(WorldError::agent(&name, &error)));
                return;
            }
        }
    })
}
