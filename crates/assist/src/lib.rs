//! What a handover does for TCP: reactions on the path and at the mobile node, acting on packet headers only.
//!
//! An [`Assistant`] runs beside a mobility agent (home agent, foreign agent, mobile node). It is shown every packet that
//! passes there, out of any tunnel, and told of handovers; it answers with a [`Verdict`] on the packet and with
//! [`Action`]s. It is sans-IO: time, headers and events come in, actions come out; the world that drives it has the
//! packets, the sockets and the clock.
//!
//! - **The assistant keeps numbers, the world keeps packets.** A packet may be *kept* (a copy stays while it goes on) or
//!   *held* (it does not go on). Either way the world stores it under a [`Token`] until an [`Action`] says what becomes of it.
//! - **The order of arrival within a flow is never changed**, neither between originals nor between an original and its
//!   repetition. A repetition carries a younger timestamp: delivered first, it would raise the receiver's `TS.Recent`, and
//!   every original behind it would fail the PAWS test (RFC 7323 section 5.3). The same order lets the sender find out that
//!   its timeout was spurious, for the first acknowledgement then echoes the timestamp of an original (Eifel, RFC 3522).
//! - **Nothing is acknowledged that the receiver did not acknowledge.** What is injected is made from acknowledgements that
//!   were seen to pass, in one place, [`acknowledgement`](crate::Action::Inject).
//! - **What may be made up has no one else forgotten.** A connection counts once each end has acknowledged something of the other's;
//!   segments that its ends would refuse teach nothing, and when there is no room those go first whose ends were not both heard.
//! - **What is not understood passes.** Fragments, protocols but TCP, flows that are excepted or do not fit into the bounds:
//!   all go on untouched.
//!
//! After every `handle_*` the owner applies the verdict, if there is one, then drains [`Assistant::poll_action`], then
//! [`Assistant::poll_report`], and asks for [`Assistant::next_timeout`].
#![no_std]

extern crate alloc;

mod acknowledgement;
mod assist;
mod assistant;
mod assists;
mod config;
mod context;
mod counters;
mod courses;
mod flow;
mod flow_key;
mod flow_table;
mod io;
mod keeping;
mod meter;
mod packet;
mod paths;
mod place;
mod plausible;
mod rate_limit;
mod standing;
mod timers;
mod tunnels;

#[cfg(test)]
mod tests;

pub use assistant::Assistant;
pub use config::{
    AckHold, BlackHole, BufferForward, Config, ConfigError, Exception, FastRetransmit, Freeze, HoldLast,
    LcdKick, Limits, MssClamp, PathQueue, QueueAtHandover, Replay, Rest, Sack, Snoop, Which, WindowClamp,
};
pub use counters::Counters;
pub use flow::FlowStatus;
pub use flow_key::FlowKey;
pub use io::{
    Action, DropReason, Edit, Fate, HoleNews, Input, Kind, PathId, Phase, Report, Token, Told, Verdict, Wake,
};
pub use packet::{PacketView, ReadPacket};
pub use place::{Place, Towards};
