//! Several links at once as JSON.

use super::{Json, destination};
use crate::model::{LinkId, Multipath, PathLink, PathRule, Resequencing, Scenario};

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
