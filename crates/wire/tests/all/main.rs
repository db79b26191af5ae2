//! Messages and headers: as bytes, and back.

mod captures;
#[expect(unreachable_pub, reason = "it is a crate of its own to the fuzz targets")]
#[path = "../../../../fuzz/src/lib.rs"]
mod entry;
mod hostile_bytes;
mod mobility_captures;
mod mobility_round_trip;
mod round_trip;
#[path = "../samples/mod.rs"]
mod samples;
