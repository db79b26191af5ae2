//! What happened in a run: one schema of events for both worlds, and where events go.
//!
//! - [`Event`] is one thing that happened at one instant; [`EventLog`] collects events and hands them out as
//!   [`Columns`], buffers in Arrow's layout that become a Parquet file without anybody knowing the schema twice.
//! - [`PcapngWriter`] writes the packets themselves, with drops and handover phases as comments.
//! - [`MahimahiLog`] writes one link's packets as `mm-link` logs them.
//!
//! The schema is data: [`COLUMNS`] and [`KINDS`] say what each column and each kind of event means, the
//! conversion follows them, and `docs/trace.md` is made of them. Nothing here interprets what happened, reads a
//! clock or opens a file: sinks write to the [`std::io::Write`] they are given.

mod columns;
mod event;
mod log;
mod mahimahi;
mod pcapng;
mod schema;

pub use columns::{Column, ColumnData, Columns, Strings};
pub use event::{
    AssistRecord, Event, EventKind, FlowId, LinkId, MessageRecord, NodeId, PacketRecord, SegmentRecord,
    TcpState,
};
pub use log::{Detail, EventLog, Names};
pub use mahimahi::MahimahiLog;
pub use pcapng::{Capture, Direction, InterfaceId, PcapngWriter, annotate, comment_bytes, packet_bytes};
pub use schema::{COLUMNS, ColumnName, ColumnSpec, ColumnType, KINDS, KindSpec, schema_markdown};
