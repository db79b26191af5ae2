//! What strangers try, between real hosts, and what happens around agents meanwhile.

mod abroad;
mod addresses;
mod clocks;
mod denials;
mod fragments;
mod identifications;
mod loops;
mod memory;
mod segments;
mod stores;
mod storms;
mod tunnels;
mod visitor_segments;
mod visitors;
