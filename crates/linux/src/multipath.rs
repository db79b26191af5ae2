//! Several links at once: what both ends of the tunnel over them are told, and what became of its packets.

use careof_agent::{
    ClusterSetup, MultipathPathStatus, MultipathSetup, MultipathStatus, RelaySetup, RelayStatus, Role, Status,
};
use careof_base::Duration;
use careof_metrics::{MultipathSummary, PathSummary};
use careof_mobility::multipath::BondConfig;
use careof_plan::{MultipathPlan, NodeId, PlannedPath, RelayPlan, Topology};
use careof_scenario::Scenario;

/// What an end at `node` is told, the same as in the simulator.
pub(crate) fn setup(scenario: &Scenario, topology: &Topology, run: u64, node: NodeId) -> MultipathSetup {
    let Some(plan) = careof_plan::multipath(scenario, topology, run) else {
        return MultipathSetup::default();
    };
    let end = usize::from(node != plan.home_agent);
    // The key is that of the registrations.
    let BondConfig { dispersion, resequencer, rules, replay, .. } = plan.ends[end].clone();
    let told = plan.paths.iter().map(|path| (path.id, path.configs[end])).collect();
    let cluster = plan.relays.first().filter(|_| node == plan.mobile).map(|relay| ClusterSetup {
        interface: scenario.link(relay.cluster).name.clone(),
        highest_cost: relay.client.highest_cost,
        lifetime: relay.client.lifetime,
        trust: relay.client.trust.clone(),
    });
    MultipathSetup { scheduler: dispersion.scheduler, resequencer, rules, replay, told, cluster }
}

/// The relay at `node`, if it is one, and what is planned of it.
pub(crate) fn relay(
    scenario: &Scenario,
    plan: &MultipathPlan,
    node: NodeId,
) -> Option<(RelaySetup, RelayPlan)> {
    let plan = plan.relays.iter().find(|relay| relay.node == node)?.clone();
    let name = |link| scenario.link(link).name.clone();
    let (cluster, link) = (name(plan.cluster), name(plan.link));
    Some((RelaySetup { config: plan.relay.clone(), cluster, link }, plan))
}

/// The end of the tunnel that an agent has told of, if it is one.
fn end_of(status: &Status) -> Option<&MultipathStatus> {
    status.multipath.first()
}

/// What happened at both ends.
pub(crate) fn summaries(
    scenario: &Scenario,
    topology: &Topology,
    run: u64,
    agents: &[Status],
) -> Vec<MultipathSummary> {
    let Some(plan) = careof_plan::multipath(scenario, topology, run) else { return Vec::new() };
    let end = |role: Role, node: NodeId| {
        let status = agents.iter().find(|status| status.role == role).and_then(end_of);
        let paths = plan.paths.iter().map(|path| path_summary(scenario, path, status)).collect();
        let node = topology.place(node).name.clone();
        match status {
            Some(status) => summary(node, status, paths),
            // It was never registered.
            None => MultipathSummary { node, paths, ..MultipathSummary::default() },
        }
    };
    vec![end(Role::Home, plan.home_agent), end(Role::Mobile, plan.mobile)]
}

fn summary(node: String, status: &MultipathStatus, paths: Vec<PathSummary>) -> MultipathSummary {
    MultipathSummary {
        node,
        mode: status.mode.map(str::to_owned),
        offered: status.offered,
        no_path: status.no_path,
        copies: status.copies,
        replayed: status.replayed,
        moves: status.moves,
        messages: status.messages,
        arrived: status.arrived,
        duplicates: status.duplicates,
        waited: status.waited,
        late: status.late,
        given_up: status.given_up,
        longest_wait: milliseconds(status.longest_wait_ms),
        paths,
    }
}

fn milliseconds(count: f64) -> Duration {
    Duration::try_from_secs_f64(count / 1000.0).unwrap_or_default()
}

fn path_summary(scenario: &Scenario, path: &PlannedPath, status: Option<&MultipathStatus>) -> PathSummary {
    let link = scenario.link(path.link).name.clone();
    let known = |status: &MultipathStatus| -> Option<(MultipathPathStatus, u64)> {
        let all = status.paths.iter().map(|path| path.sent_bytes).sum();
        let own = status.paths.iter().find(|known| known.path == path.id.number())?;
        Some((own.clone(), all))
    };
    let Some((own, all)) = status.and_then(known) else {
        let left = status.and_then(|status| status.left.iter().find(|left| left.path == path.id.number()));
        let left = left.map(|left| (left.packets, left.bytes, left.outages, left.out_for));
        let (packets, bytes, outages, out_for) = left.unwrap_or_default();
        return PathSummary { link, packets, bytes, outages, out_for, ..PathSummary::default() };
    };
    PathSummary {
        link,
        packets: own.sent_packets,
        bytes: own.sent_bytes,
        share: (all > 0).then_some(own.share),
        rate: own.rate,
        round_trip: own.round_trip_ms.map(milliseconds),
        variation: own.transit_variation_ms.map(milliseconds),
        loss: own.loss,
        outages: own.outages,
        out_for: Duration::try_from_secs_f64(own.out_for_s).unwrap_or_default(),
    }
}

/// The account of each end: what was to be sent and was sent, and what came and was passed on. By name, the difference.
pub(crate) fn differences<'a>(
    topology: &'a Topology,
    homes: (NodeId, NodeId),
    agents: &'a [Status],
) -> impl Iterator<Item = (String, i64)> + 'a {
    let name = move |role: Role| match role {
        Role::Home => topology.place(homes.0).name.as_str(),
        _ => topology.place(homes.1).name.as_str(),
    };
    let accounts = |status: &MultipathStatus| {
        let first = status.transmitted - status.copies - status.replayed;
        let sent = status.offered as i64 - (status.no_path + first) as i64;
        let passed = status.released + status.duplicates + status.holds as u64;
        sent.abs() + (status.arrived as i64 - passed as i64).abs()
    };
    let one = move |status: &'a Status| {
        if let Some(relay) = &status.relay {
            return Some(("packets at the relay".to_owned(), at_relay(status, relay)));
        }
        let difference = accounts(end_of(status)?);
        Some((format!("paths of {}", name(status.role)), difference))
    };
    agents.iter().filter_map(one)
}

/// What came to a relay and was neither passed on nor dropped for a cause.
fn at_relay(status: &Status, relay: &RelayStatus) -> i64 {
    let dropped =
        |name: &&String| name.starts_with("dropped-relay-") || LOST_AT_RELAY.contains(&name.as_str());
    let dropped = status.counters.iter().filter(|(name, _)| dropped(name)).map(|(_, count)| count);
    let came = status.counters.get("relay-packets-received").copied().unwrap_or_default();
    came as i64 - (dropped.sum::<u64>() + relay.relayed_packets.iter().sum::<u64>()) as i64
}

/// What else a relay counts of packets that it does not pass on.
const LOST_AT_RELAY: [&str; 5] = [
    "packets-malformed",
    "packets-not-ours",
    "packets-no-way",
    "packets-not-queued",
    "packets-dropped-on-purpose",
];

#[cfg(test)]
mod tests {
    use careof_base::DataRate;
    use careof_mobility::multipath::{ReplayConfig, Scheduler};
    use careof_plan::lay_out;

    use super::*;

    const SCENARIO: &str = r#"
duration = "9 s"
[links]
ethernet = "ethernet-100m"
a = { rate = "4 Mbit/s", rate_up = "1 Mbit/s", delay = "20 ms" }
b = { rate = "2 Mbit/s", delay = "40 ms" }
[mobility]
[multipath]
dispersion = "weighted"
resequencer = false
paths = [{ link = "b", weight = 3, cost = 2 }, "a"]
[[flow]]
from = "correspondent"
to = "mobile"
"#;

    #[test]
    fn each_end_is_told_what_the_file_says_of_the_paths_away_from_it() {
        let scenario = Scenario::parse("x.toml", SCENARIO, &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let topology = lay_out(&scenario);
        for (end, rates) in [("home-agent", [4, 2]), ("mobile", [1, 2])] {
            let setup = setup(&scenario, &topology, 0, topology.find(end).unwrap());
            assert_eq!(setup.scheduler, Scheduler::Weighted);
            assert_eq!(setup.replay, ReplayConfig { packets: 0, bytes: 0 });
            // By number: that of the mobile node's interface.
            let told: Vec<_> = setup.told.values().map(|one| (one.rate, one.weight, one.cost)).collect();
            let [a, b] = rates.map(|rate| Some(DataRate::from_megabits_per_second(rate)));
            assert_eq!(told, [(a, 1, 0), (b, 3, 2)], "{end}");
        }
    }
}
