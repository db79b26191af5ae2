//! Several links at once: what both ends of the tunnel over them are configured with.

use core::net::IpAddr;

use careof_base::DataRate;
use careof_link::Config as LinkConfig;
use careof_mobility::multipath::alliance::ClusterKey;
use careof_mobility::multipath::{
    BondConfig, BondEvent, DelayReading, DispersionConfig, PathChange, PathConfig, PathId, PathSet,
    RatioReading, ReplayConfig, ResequencerConfig, Rule, Rules, Scheduler, Treatment,
};
use careof_scenario::{Destination, Dispersion, LinkId, Multipath, PathRule, Resequencing, Scenario};
use careof_wire::mip4::Spi;

use crate::agents::told_rate;
use crate::layout::stream;
use crate::locator::Locator;
use crate::relays::RelayPlan;
use crate::topology::{InterfaceIndex, NodeId, OneWayId, Topology, down_of, up_of};

/// The SPI of the key of messages about paths.
const PATH_SPI: Spi = Spi(259);

/// The two ends of the tunnel over several paths.
#[derive(Clone, Debug)]
pub struct MultipathPlan {
    /// The home agent.
    pub home_agent: NodeId,
    /// The mobile node.
    pub mobile: NodeId,
    /// Where packets for it go.
    pub home_address: Locator,
    /// Whether what it sends takes the tunnel, too.
    pub disperses_uplink: bool,
    /// Of the home agent, and of the mobile node.
    pub ends: [BondConfig; 2],
    /// The paths, the mobile node's own in the order of the scenario and then those through relays.
    pub paths: Vec<PlannedPath>,
    /// The relays, in the order of the scenario.
    pub relays: Vec<RelayPlan>,
}

impl MultipathPlan {
    /// What is to be told of an event at the end on `node`: the phase, the one-way link away from there, and a word.
    #[must_use]
    pub fn news(&self, node: NodeId, event: BondEvent) -> (&'static str, Option<OneWayId>, &'static str) {
        let (phase, path) = match event {
            BondEvent::Path { path, change: PathChange::Out } => ("path-out", path),
            BondEvent::Path { path, change: PathChange::Back } => ("path-back", path),
            BondEvent::Proven { path } => ("path-proven", path),
            BondEvent::PeerRestarted => return ("peer-restarted", None, "by messages"),
        };
        let away = if node == self.home_agent { down_of } else { up_of };
        let planned = self.paths.iter().find(|planned| planned.id == path);
        (phase, planned.map(|path| away(path.link)), "of several")
    }
}

/// A path as both ends are told of it.
#[derive(Clone, Copy, Debug)]
pub struct PlannedPath {
    /// What both ends call it: the number of the mobile node's interface, by which registrations name it.
    pub id: PathId,
    /// The access link, or that which a relay lends.
    pub link: LinkId,
    /// The mobile node's interface there, or that towards the relay.
    pub interface: InterfaceIndex,
    /// Its address on the link, or the relay's.
    pub care_of: Locator,
    /// Which of [`MultipathPlan::relays`] it leads through.
    pub relay: Option<usize>,
    /// What the home agent is told, and what the mobile node.
    pub configs: [PathConfig; 2],
}

/// The plan of a scenario with several links at once.
#[must_use]
pub fn multipath(scenario: &Scenario, topology: &Topology, run: u64) -> Option<MultipathPlan> {
    let mobility = scenario.mobility.as_ref()?;
    let multipath = mobility.multipath.as_ref()?;
    let home = topology.homes.first()?;
    let mobile = home.first;
    let relays = crate::relays::relays(scenario, topology, run, multipath, mobile);
    let mut paths: Vec<PlannedPath> = multipath
        .paths
        .iter()
        .filter_map(|path| {
            let link = scenario.link(path.link);
            let place = topology.place(mobile);
            let index = place.interfaces.iter().position(|one| one.out == up_of(path.link))?;
            let told = |config: &LinkConfig| PathConfig {
                rate: told_rate(link, |_| config.rate),
                cost: path.cost,
                weight: path.weight,
                ..PathConfig::default()
            };
            Some(PlannedPath {
                id: PathId::new(u8::try_from(index).ok()?)?,
                link: path.link,
                interface: InterfaceIndex(index as u16),
                care_of: place.interfaces.get(index)?.address,
                relay: None,
                configs: [told(&link.down), told(&link.up)],
            })
        })
        .collect();
    paths.extend(relays.iter().enumerate().filter_map(|(index, relay)| {
        // What a relay says of its rate is its word alone: only the rule of the paper, which measures none, takes it.
        let believed = multipath.dispersion == Dispersion::Dq;
        let told = |rate: Option<DataRate>| PathConfig {
            rate: rate.filter(|_| believed),
            cost: relay.relay.cost,
            weight: 1,
            ..PathConfig::default()
        };
        Some(PlannedPath {
            id: PathId::new(u8::try_from(relay.interface.0).ok()?)?,
            link: relay.link,
            interface: relay.interface,
            care_of: relay.outside,
            relay: Some(index),
            configs: [told(relay.relay.downlink), told(relay.relay.uplink)],
        })
    }));
    let mut random = stream(scenario, run, "multipath.key");
    let key = [random.next_u64().to_be_bytes(), random.next_u64().to_be_bytes()].concat();
    let config = BondConfig {
        dispersion: DispersionConfig { scheduler: scheduler(multipath), ..DispersionConfig::default() },
        resequencer: resequencer(multipath.resequencer),
        rules: rules(scenario, topology, multipath, &paths),
        // Where nothing is put in order, nothing is added to what the paper has.
        replay: match multipath.resequencer {
            Some(_) => ReplayConfig::default(),
            None => ReplayConfig { packets: 0, bytes: 0 },
        },
        key: ClusterKey { spi: PATH_SPI, key },
    };
    Some(MultipathPlan {
        home_agent: home.agent,
        mobile,
        home_address: topology.address_of(mobile),
        disperses_uplink: multipath.uplink == careof_scenario::Uplink::Dispersed,
        ends: [config.clone(), config],
        paths,
        relays,
    })
}

fn scheduler(multipath: &Multipath) -> Scheduler {
    match multipath.dispersion {
        Dispersion::Auto => Scheduler::Auto,
        Dispersion::D => Scheduler::RoundTripRatio(RatioReading::default()),
        Dispersion::Dq => {
            Scheduler::DelayQueue { delay: DelayReading::default(), length: Default::default() }
        }
        Dispersion::PerFlow => Scheduler::PerFlow,
        Dispersion::Duplicate => Scheduler::Duplicate,
        Dispersion::Weighted => Scheduler::Weighted,
        Dispersion::Ecf => Scheduler::Ecf,
        Dispersion::Blest => {
            let held = multipath.resequencer.unwrap_or_default().bytes;
            Scheduler::Blest { window: held }
        }
        Dispersion::Earliest => Scheduler::EarliestArrival,
        Dispersion::Overflow => Scheduler::Overflow,
    }
}

fn resequencer(asked: Option<Resequencing>) -> ResequencerConfig {
    let usual = ResequencerConfig::default();
    match asked {
        Some(asked) => ResequencerConfig {
            packets: asked.packets as usize,
            bytes: asked.bytes,
            longest_wait: asked.longest_wait,
            ..usual
        },
        // What need not wait is passed on as it comes.
        None => ResequencerConfig { longest_wait: core::time::Duration::ZERO, ..usual },
    }
}

fn rules(scenario: &Scenario, topology: &Topology, multipath: &Multipath, planned: &[PlannedPath]) -> Rules {
    let rule = |rule: &PathRule| Rule {
        prefix: match rule.to {
            Destination::Any => None,
            Destination::Node(node) => {
                let node = topology.find(&scenario.node(node).name).unwrap_or(NodeId(0));
                Some((IpAddr::V4(topology.address_of(node).to_ipv4()), 32))
            }
            Destination::Prefix { address, length } => Some((IpAddr::V4(address), length)),
        },
        ports: rule.port.map(|port| (port, port)),
        protocol: None,
        dscp: rule.dscp,
        paths: planned
            .iter()
            .filter(|path| rule.paths.contains(&path.link))
            .map(|path| path.id)
            .collect::<PathSet>(),
        treatment: match rule.treatment {
            careof_scenario::Treatment::Dispersed => Treatment::Dispersed,
            careof_scenario::Treatment::Pinned => Treatment::Pinned,
            careof_scenario::Treatment::Duplicated => Treatment::Duplicated,
        },
    };
    Rules::new(multipath.rules.iter().map(rule).collect())
}
