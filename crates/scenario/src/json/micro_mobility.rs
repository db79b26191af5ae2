//! A domain of micro-mobility as JSON.

use super::Json;
use crate::model::{
    CandidateBuffer, CandidateSet, CellularHandover, MicroMobility, MicroProtocol, Scenario, Walk,
};

pub(super) fn micro_mobility(scenario: &Scenario, domain: &MicroMobility) -> Json {
    let mut entries = vec![
        ("gateway", scenario.node_name(domain.gateway).into()),
        ("routers", domain.routers.iter().map(|router| scenario.node_name(*router)).collect::<Json>()),
        ("protocol", domain.protocol.name().into()),
        ("advertisement_interval_ns", domain.advertisement_interval.into()),
    ];
    match &domain.protocol {
        MicroProtocol::BuildingBlocks(blocks) => entries.extend([
            ("car_set", car_set(blocks.candidates)),
            ("trigger", blocks.trigger.name().into()),
            ("lead_ns", blocks.lead.into()),
            ("buffer", blocks.buffer.as_ref().map_or(Json::Null, buffer)),
            ("bicast_ns", blocks.bicast.into()),
            ("forward_ns", blocks.forward.into()),
        ]),
        MicroProtocol::CellularIp(CellularHandover::Hard) => entries.push(("handover", "hard".into())),
        MicroProtocol::CellularIp(CellularHandover::SemiSoft { lead, delay, packets }) => entries.extend([
            ("handover", "semi-soft".into()),
            ("lead_ns", (*lead).into()),
            ("delay_ns", (*delay).into()),
            ("delay_device_packets", u64::from(*packets).into()),
        ]),
        MicroProtocol::Hawaii { scheme, buffer: kept } => entries
            .extend([("scheme", scheme.name().into()), ("buffer", kept.as_ref().map_or(Json::Null, buffer))]),
        MicroProtocol::Multicast { candidates, trigger, lead, buffer: kept, bicast } => entries.extend([
            ("car_set", car_set(*candidates)),
            ("trigger", trigger.name().into()),
            ("lead_ns", (*lead).into()),
            ("buffer", kept.as_ref().map_or(Json::Null, buffer)),
            ("bicast_ns", (*bicast).into()),
        ]),
    }
    Json::Object(entries)
}

fn car_set(candidates: CandidateSet) -> Json {
    match candidates {
        CandidateSet::Empty => 0_u64.into(),
        CandidateSet::Nearest(count) => u64::from(count).into(),
        CandidateSet::All => "all".into(),
    }
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
        Walk::Trace(steps) => {
            steps.iter().map(|(at, station)| object! { "at_ns": *at, "station": name(station) }).collect()
        }
    }
}
