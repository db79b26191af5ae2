//! Behaviour of whole connections: packet scripts ([`script`]) and two connections in a loop ([`world`]).

mod analytic;
mod closed_loop;
mod handover;
mod receiving;
mod recovering;
mod robustness;
mod script;
mod sending;
mod starting;
mod timing;
mod world;
