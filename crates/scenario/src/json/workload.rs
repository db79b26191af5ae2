//! What a flow carries.

use super::Json;
use crate::model::{Burst, Codec, Flow, Law, OnOff, Scenario, Video, Voice, Workload};
use crate::words::Word as _;

/// What `flow` of `scenario` carries.
pub(super) fn workload(scenario: &Scenario, flow: &Flow) -> Json {
    let programs = flow.programs.as_ref();
    let words = |words: &[String]| words.iter().map(String::as_str).collect::<Json>();
    match flow.workload {
        Workload::Bulk { size } => object! { "kind": "bulk", "size_bytes": size },
        Workload::RequestResponse { request, response, think, count } => object! {
            "kind": "request-response",
            "request_bytes": request,
            "response_bytes": response,
            "think_ns": think,
            "count": count,
        },
        Workload::Paced { rate, message, size } => object! {
            "kind": "paced",
            "rate_bps": rate.bits_per_second(),
            "message_bytes": message,
            "size_bytes": size,
        },
        Workload::Command => object! {
            "kind": "command",
            "command": programs.map(|programs| words(&programs.command)),
            "server": programs.and_then(|programs| programs.server.as_deref()).map(words),
        },
        Workload::Probe { link } => object! { "kind": "probe", "link": scenario.link_name(link) },
        Workload::Voice(Voice { codec, payload, interval, jitter_buffer, impairment }) => object! {
            "kind": "voice",
            "codec": codec.map(Codec::name),
            "payload_bytes": payload,
            "interval_ns": interval,
            "jitter_buffer_ns": jitter_buffer,
            "ie": impairment.map(|[ie, _]| ie),
            "bpl": impairment.map(|[_, bpl]| bpl),
        },
        Workload::Video(Video { segment, ladder, buffer, startup, adaptation, segments, request }) => {
            object! {
                "kind": "video",
                "segment_ns": segment,
                "rates_bps": Json::List(ladder.rates().iter().map(|rate| rate.bits_per_second().into()).collect()),
                "buffer_ns": buffer,
                "startup_ns": startup,
                "adaptation": adaptation.word(),
                "segments": segments,
                "request_bytes": request,
            }
        }
        Workload::OnOff(OnOff { burst, burst_law, pause, pause_law, size }) => {
            let (bytes, burst) = match burst {
                Burst::Bytes(bytes) => (Some(bytes), None),
                Burst::Time { span, rate, message } => (None, Some((span, rate, message))),
            };
            object! {
                "kind": "on-off",
                "burst_bytes": bytes,
                "on_ns": burst.map(|(span, ..)| span),
                "rate_bps": burst.map(|(_, rate, _)| rate.bits_per_second()),
                "message_bytes": burst.map(|(.., message)| message),
                "burst_law": law(burst_law),
                "pause_ns": pause,
                "pause_law": law(pause_law),
                "size_bytes": size,
            }
        }
    }
}

fn law(law: Law) -> Json {
    match law {
        Law::Fixed => "fixed".into(),
        Law::Exponential => "exponential".into(),
        Law::Pareto(shape) => object! { "kind": "pareto", "shape": shape },
    }
}
