//! Flows: their numbers, ports, and whose data is measured.

use careof_base::Duration;
use careof_metrics::STALL;
use careof_scenario::{Scenario, Workload as Traffic};

use crate::workload::Side;

/// Index of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u16);

/// The TCP port of an end: the acceptor of flow `n` listens on 5001 + `n`, its opener uses 49,152 + `n`.
#[must_use]
pub const fn port(id: FlowId, side: Side) -> u16 {
    match side {
        Side::Opener => 49_152_u16.wrapping_add(id.0),
        Side::Acceptor => 5001_u16.wrapping_add(id.0),
    }
}

/// Who sends the data that a flow is about: the responses first, where both ends do.
#[must_use]
pub fn measured_senders(workload: &Traffic) -> &'static [Side] {
    match workload {
        Traffic::Bulk { .. } | Traffic::Paced { .. } | Traffic::OnOff(_) | Traffic::Voice(_) => {
            &[Side::Opener]
        }
        Traffic::RequestResponse { .. } | Traffic::Video(_) => &[Side::Acceptor, Side::Opener],
        Traffic::Command | Traffic::Probe { .. } => &[],
    }
}

/// The first direction of data has the flow's name; the requests of a flow that asks are the second.
#[must_use]
pub fn measured_name(flow: &str, rank: usize) -> String {
    if rank == 0 { flow.to_owned() } else { format!("{flow}.requests") }
}

/// The shortest silence that is a stall in this scenario: what it says, or [`STALL`], or twice the time that a full-sized
/// packet takes on its slowest link, so that a slow link does not stall between any two of them.
#[must_use]
pub fn stall_threshold(scenario: &Scenario) -> Duration {
    if let Some(given) = scenario.stall_threshold {
        return given;
    }
    let ways = scenario.links.iter().flat_map(|link| [&link.down, &link.up]);
    let slowest = ways.filter_map(|way| way.rate.time_for_bits(way.framing.bits(way.mtu.into()))).max();
    slowest.map_or(STALL, |slowest| slowest.saturating_mul(2).max(STALL))
}

/// The word of a summary for what a flow carries.
#[must_use]
pub const fn kind(workload: &Traffic) -> &'static str {
    match workload {
        Traffic::Bulk { .. } => "bulk",
        Traffic::RequestResponse { .. } => "request-response",
        Traffic::Paced { .. } => "paced",
        Traffic::OnOff(_) => "on-off",
        Traffic::Voice(_) => "voice",
        Traffic::Video(_) => "video",
        Traffic::Command => "command",
        Traffic::Probe { .. } => "probe",
    }
}

/// The name of the random stream from which the applications of a flow draw, in either world.
#[must_use]
pub fn workload_stream(flow: &str) -> String {
    format!("flow.{flow}.workload")
}
