//! From a scenario to its nodes and links, and the names that traces and captures have for them.

use careof_base::RandomStream;
use careof_scenario::Scenario;
use careof_trace::Names;

use crate::topology::{Cable, HomeNetwork, Topology};

/// The random stream of a user of chance: the same in both worlds.
#[must_use]
pub fn stream(scenario: &Scenario, run: u64, name: &str) -> RandomStream {
    RandomStream::new(scenario.seed, run, name)
}

/// The nodes of `scenario` with their addresses and routes.
#[must_use]
pub fn lay_out(scenario: &Scenario) -> Topology {
    let cables: Vec<Cable<'_>> = scenario
        .links
        .iter()
        .map(|link| Cable {
            name: &link.name,
            between: link.ends.map(|end| scenario.node(end).name.as_str()),
        })
        .collect();
    let home = scenario.mobility.as_ref().map(|mobility| HomeNetwork {
        home_agent: "home-agent",
        mobile: "mobile",
        link: mobility.home.map(|home| scenario.link(home).name.as_str()),
    });
    Topology::build(&cables, home.as_ref())
}

/// What the identifiers of a trace stand for.
#[must_use]
pub fn names(scenario: &Scenario, topology: &Topology) -> Names {
    Names {
        nodes: topology.places.iter().map(|place| place.name.clone()).collect(),
        links: scenario
            .links
            .iter()
            .flat_map(|link| [format!("{}.down", link.name), format!("{}.up", link.name)])
            .collect(),
        flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
    }
}

/// `gsm@home-agent`, `gsm@mobile`, ...: the capture's interfaces, by link and end.
#[must_use]
pub fn link_ends(scenario: &Scenario) -> Vec<String> {
    scenario
        .links
        .iter()
        .flat_map(|link| link.ends.map(|end| format!("{}@{}", link.name, scenario.node(end).name)))
        .collect()
}
