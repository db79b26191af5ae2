//! What strangers try, between real hosts, and what happens around agents meanwhile.

mod addresses;
mod clocks;
mod denials;
mod fragments;
mod memory;
mod segments;
mod stores;
mod storms;
mod tunnels;
mod visitors;
