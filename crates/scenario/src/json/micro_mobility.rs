//! A domain of micro-mobility as JSON.

use super::Json;
use crate::model::{CandidateBuffer, CandidateSet, MicroMobility, MicroProtocol, Scenario, Walk};

pub(super) fn micro_mobility(scenario: &Scenario, domain: &MicroMobility) -> Json {
    let mut entries = vec![
        ("gateway", scenario.node_name(domain.gateway).into()),
        ("routers", domain.routers.iter().map(|router| scenario.node_name(*router)).collect::<Json>()),
        ("protocol", domain.protocol.name().into()),
    ];
    match &domain.protocol {
        MicroProtocol::BuildingBlocks(blocks) => entries.extend([
            (
                "car_set",
                match blocks.candidates {
                    CandidateSet::Empty => 0_u64.into(),
                    CandidateSet::Nearest(count) => u64::from(count).into(),
                    CandidateSet::All => "all".into(),
                },
            ),
            ("trigger", blocks.trigger.name().into()),
            ("lead_ns", blocks.lead.into()),
            ("buffer", blocks.buffer.as_ref().map_or(Json::Null, buffer)),
            ("bicast_ns", blocks.bicast.into()),
            ("forward_ns", blocks.forward.into()),
        ]),
    }
    Json::Object(entries)
}

fn buffer(buffer: &CandidateBuffer) -> Json {
    object! {
        "packets": u64::from(buffer.packets),
        "bytes": buffer.bytes,
        "age_ns": buffer.age,
        "when_full": buffer.when_full.name(),
    }
}

/// The walk of a fleet in a domain.
pub(super) fn walk(scenario: &Scenario, stations: &[crate::model::NodeId], walk: &Walk) -> Json {
    let name = |station: &usize| stations.get(*station).map_or("", |station| scenario.node_name(*station));
    match walk {
        Walk::Round => "round".into(),
        Walk::RandomWaypoint => "random-waypoint".into(),
        Walk::Given(given) => given.iter().map(name).collect(),
    }
}
