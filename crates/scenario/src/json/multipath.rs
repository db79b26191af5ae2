//! Several links at once as JSON.

use super::{Json, destination};
use careof_base::DataRate;

use crate::model::{LinkId, Multipath, PathLink, PathRule, RelayLink, Resequencing, Scenario};

pub(super) fn multipath(scenario: &Scenario, multipath: &Multipath) -> Json {
    let name = |link: LinkId| scenario.link(link).name.as_str();
    let path = |path: &PathLink| {
        object! {
            "link": name(path.link),
            "cost": u64::from(path.cost),
            "weight": u64::from(path.weight),
        }
    };
    let rule = |rule: &PathRule| {
        object! {
            "to": destination(scenario, rule.to),
            "port": rule.port,
            "dscp": rule.dscp.map(u64::from),
            "paths": rule.paths.iter().map(|link| name(*link)).collect::<Json>(),
            "treatment": rule.treatment.name(),
        }
    };
    object! {
        "dispersion": multipath.dispersion.name(),
        "resequencer": multipath.resequencer.as_ref().map_or(Json::Null, resequencer),
        "uplink": multipath.uplink.name(),
        "paths": multipath.paths.iter().map(path).collect::<Json>(),
        "relays": multipath.relays.iter().map(|relay| lent(scenario, relay)).collect::<Json>(),
        "trust": multipath.trust.name(),
        "rules": multipath.rules.iter().map(rule).collect::<Json>(),
    }
}

fn resequencer(resequencer: &Resequencing) -> Json {
    object! {
        "packets": u64::from(resequencer.packets),
        "bytes": resequencer.bytes,
        "longest_wait_ns": resequencer.longest_wait,
    }
}

fn lent(scenario: &Scenario, relay: &RelayLink) -> Json {
    let name = |link: LinkId| scenario.link(link).name.as_str();
    object! {
        "node": scenario.node(relay.node).name.as_str(),
        "link": name(relay.link),
        "cluster": name(relay.cluster),
        "cost": u64::from(relay.cost),
        "claims_bps": relay.claims.map(DataRate::bits_per_second),
        "client_bps": relay.client_rate.map(DataRate::bits_per_second),
        "client_bytes": relay.client_bytes,
        "longest_ns": relay.longest,
        "drops": relay.drops.get(),
        "vanishes_ns": relay.gone.map(|(vanishes, _)| vanishes),
        "returns_ns": relay.gone.and_then(|(_, returns)| returns),
    }
}
