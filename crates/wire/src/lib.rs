//! Bytes to messages and back.
#![no_std]

mod segment;
mod seq;

pub use segment::{Flags, SackBlocks, Segment, Timestamps};
pub use seq::SeqNumber;
