//! Messages and headers: as bytes, and back.

mod captures;
mod captures_v6;
#[expect(unreachable_pub, reason = "it is a crate of its own to the fuzz targets")]
#[path = "../../../../fuzz/src/lib.rs"]
mod entry;
mod hostile_bytes;
mod mobility_captures;
mod mobility_round_trip;
mod round_trip;
mod round_trip_v6;
#[path = "../samples/mod.rs"]
mod samples;
mod samples_v6;
