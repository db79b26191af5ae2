//! Assists as JSON: the name, then the parameters.

use careof_assist::Sack;
use careof_assist_file::parameters::{LcdKickTable, ReplayTable};

use super::{Json, queue, tcp};
use crate::model::{Assist, Placed};

pub(super) fn assist(assist: &Assist) -> Json {
    let mut entries = vec![("name", assist.name().into())];
    if let Json::Object(parameters) = parameters(assist) {
        entries.extend(parameters);
    }
    Json::Object(entries)
}

fn parameters(assist: &Assist) -> Json {
    match assist {
        Assist::Replay(Placed { at, parameters: ReplayTable { replay, total, flows } }) => object! {
            "at": at.iter().map(|place| place.name()).collect::<Json>(),
            "bytes": replay.bytes,
            "packets": replay.packets,
            "total_bytes": *total,
            "flows": *flows,
            "age_ns": replay.age,
            "keep": replay.keep.name(),
            "rest": replay.rest.name(),
            "wait_ns": replay.wait,
            "swallow_duplicates": replay.swallow,
            "patience_round_trips": replay.patience,
        },
        Assist::HoldLast(hold) => object! { "packets": hold.packets, "age_ns": hold.age },
        Assist::LcdKick(LcdKickTable { kick, limit }) => object! {
            "during": kick.during,
            "interval_ns": kick.interval,
            "burst": kick.burst,
            "spacing_ns": kick.spacing,
            "limit_per_second": *limit,
        },
        Assist::Freeze(freeze) => object! {
            "warning_ns": freeze.warning,
            "acks": freeze.acks,
            "patience_ns": freeze.patience,
        },
        Assist::FastRetransmit(repeat) => object! {
            "acks": repeat.acks,
            "sack": repeat.sack == Sack::AsLast,
            "longest_outage_ns": repeat.longest_outage,
        },
        Assist::AckHold(hold) => object! {
            "bytes": hold.bytes,
            "always": hold.always,
            "longest_ns": hold.longest,
        },
        Assist::WindowClamp(clamp) => object! {
            "at": clamp.at.iter().map(|place| place.name()).collect::<Json>(),
            "factor": clamp.parameters.factor,
            "plus_segments": clamp.parameters.segments,
            "always": clamp.parameters.always,
        },
        Assist::PathQueue(path) => object! {
            "queue": queue(&path.queue),
            "margin": path.margin,
            "at_handover": path.at_handover.name(),
        },
        Assist::BufferForward(buffer) => object! {
            "limit_packets": buffer.packets,
            "from_notice": buffer.from_notice,
        },
        Assist::Snoop(snoop) => object! {
            "packets": snoop.packets,
            "least_timeout_ns": snoop.least_timeout,
        },
        Assist::Split(split) => object! {
            "at": split.at.name(),
            "buffer_bytes": split.buffer,
            "tcp": split.tcp.as_deref().map(tcp),
        },
        Assist::RtoReset(reset) => object! { "slow_start": reset.slow_start, "by": reset.by.name() },
        Assist::TcpCm(manager) => object! {
            "resend": manager.resend,
            "suspend": manager.suspend,
            "estimator": manager.estimator.name(),
        },
        Assist::RtoFastDecrease(decrease) => object! { "samples": decrease.samples },
        Assist::MssClamp(clamp) => object! {
            "at": clamp.at.iter().map(|place| place.name()).collect::<Json>(),
            "mtu_bytes": clamp.parameters.mtu,
        },
        Assist::BlackHole(hole) => object! {
            "at": hole.at.iter().map(|place| place.name()).collect::<Json>(),
            "repeats": hole.parameters.repeats,
            "lifetime_ns": hole.parameters.lifetime,
        },
        Assist::Bicast
        | Assist::Ebsn
        | Assist::MTcp
        | Assist::MobileTcp
        | Assist::TcpHo
        | Assist::DemoVegas => object! {},
    }
}
