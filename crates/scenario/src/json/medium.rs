//! Media as JSON, and handovers between cells.

use careof_link::{Coding, DcfConfig, MediumConfig, NEVER_RTS, PhaseLength, Scan, WirelessHandover};

use super::{Json, direction, loss};
use crate::model::{Medium, Scenario};

pub(super) fn medium(scenario: &Scenario, medium: &Medium) -> Json {
    let mut json = object! {
        "name": medium.name.as_str(),
        "kind": match &medium.config {
            MediumConfig::Ethernet(_) => "csma-cd",
            MediumConfig::Dcf(_) => "802.11",
        },
        "stations": medium.stations.iter().map(|node| scenario.node_name(*node)).collect::<Json>(),
        // Rate, delay and queue, as those of a link.
        "each": direction(&medium.config.as_link()),
    };
    if let (Json::Object(entries), MediumConfig::Dcf(config)) = (&mut json, &medium.config) {
        entries.push(("channel", channel(config)));
    }
    json
}

/// What a radio channel has besides. Where the physical layer differs, so do these.
fn channel(config: &DcfConfig) -> Json {
    let phy = &config.phy;
    object! {
        "physical_layer": match phy.coding {
            Coding::Serial { .. } => "802.11b",
            Coding::Ofdm { .. } => "802.11g",
        },
        "slot_ns": phy.slot,
        "sifs_ns": phy.sifs,
        "cw_min": phy.cw_min,
        "cw_max": phy.cw_max,
        "preamble_ns": match phy.coding {
            Coding::Serial { preamble } | Coding::Ofdm { preamble, .. } => preamble,
        },
        "control_rate_bps": config.control_rate.bits_per_second(),
        "rts_threshold_bytes": if config.rts_threshold < NEVER_RTS { Some(config.rts_threshold) } else { None },
        "protection": config.protection.is_some(),
        "short_retry_limit": config.short_retry_limit,
        "long_retry_limit": config.long_retry_limit,
        "loss": loss(config.loss),
    }
}

pub(super) fn link_layer(handover: &WirelessHandover) -> Json {
    let mut json = object! {
        "kind": "802.11",
        "lost_beacons": handover.lost_beacons,
        "beacon_interval_ns": handover.beacon_interval,
        "scan": match handover.scan {
            Scan::Known => object! { "kind": "none" },
            Scan::Passive { channels } => object! { "kind": "passive", "channels": channels },
            Scan::Active { channels, answering, min_channel_time, max_channel_time } => object! {
                "kind": "active",
                "channels": channels,
                "answering": answering.get(),
                "min_channel_time_ns": min_channel_time,
                "max_channel_time_ns": max_channel_time,
            },
            Scan::Given(length) => object! { "kind": "given", "length": phase(length) },
        },
        "answer_ns": handover.answer,
    };
    let given = [
        ("detection", handover.detection),
        ("authentication", handover.authentication),
        ("reassociation", handover.reassociation),
    ];
    if let Json::Object(entries) = &mut json {
        entries.extend(given.into_iter().filter_map(|(name, length)| Some((name, phase(length?)))));
    }
    json
}

fn phase(length: PhaseLength) -> Json {
    match length {
        PhaseLength::Uniform { least, most } => object! { "min_ns": least, "max_ns": most },
        PhaseLength::Normal { mean, deviation } => object! { "mean_ns": mean, "deviation_ns": deviation },
    }
}
