//! Behaviour of whole connections: packet scripts ([`script`]) and two connections in a loop ([`world`]).

mod advice;
pub(crate) mod analytic;
mod averages;
mod bbr;
mod closed_loop;
mod collapsing;
mod congestion_marks;
mod controlling;
mod cross_layer;
mod handover;
mod linux;
mod ordinary;
mod receiving;
mod recovering;
mod reducing;
mod robustness;
mod script;
mod sending;
mod spurious;
mod starting;
mod timed_losses;
mod timing;
mod vegas;
mod world;
