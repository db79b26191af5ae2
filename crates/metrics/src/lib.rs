//! What a run's numbers mean, defined once and fed by either world.
//!
//! - [`FlowMetrics`] counts what one direction of a flow sent, lost, repeated and delivered;
//! - [`HandoverMetrics`] measures what each handover did to the flows that cross it, and [`Journeys`] those of several mobile nodes;
//! - [`Ledger`] checks that everything that was made is accounted for;
//! - [`Summary`] is the document that leaves a run, and [`DEFINITIONS`] says what each of its keys means: the
//!   report shows that text, `docs/metrics.md` is made of it.
//!
//! The accumulators are told what happened and when; they read no clock, and their memory does not grow with
//! simulated time (a handover of a single mobile node leaves one record, those of many none: [`RoamingMetrics`])

#![no_std]

extern crate alloc;

mod black_hole;
mod burst;
mod definitions;
mod delay;
mod flow;
mod handover;
mod journeys;
mod ledger;
mod order;
mod ranges;
mod recovery;
mod roaming;
mod seconds;
mod silence;
mod spread;
mod summary;
mod video;
mod voice;

pub use black_hole::{BlackHoleSummary, BlackHoles, FilteredSummary};
pub use definitions::{DEFINITIONS, Definition, Section, definitions_markdown};
pub use delay::MOST_DELAYS;
pub use flow::{AssistDeed, FlowCounters, FlowMetrics, RttSummary, SegmentRange, Transmission};
pub use handover::{
    Direction, FlowHandoverSummary, Handover, HandoverMetrics, HandoverSummary, NewPath, PathRate, Recovery,
    Resumption,
};
pub use journeys::Journeys;
pub use ledger::Ledger;
pub use ranges::SequenceRanges;
pub use roaming::{RoamingMetrics, RoamingSummary};
pub use silence::{STALL, Silence, SilenceEnd, Silences};
pub use spread::{Bucket, HistogramSummary};
pub use summary::{
    CaptureSummary, FlowSummary, LinkSummary, MicroMobilitySummary, MobilitySummary, MultipathSummary,
    PacketSummary, PathSummary, ProbeSummary, StallSummary, Summary, TcpSummary, World, summary_json,
};
pub use video::{Rebuffering, VideoSummary};
pub use voice::{Call, Impairment, VoiceHandoverSummary, VoiceSummary};
