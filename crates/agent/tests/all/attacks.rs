//! What strangers try, between real hosts, and what happens around agents meanwhile.

mod addresses;
mod clocks;
mod denials;
mod memory;
mod stores;
mod storms;
mod visitors;
