//! What strangers try, between real hosts.

mod fragments;
mod segments;
mod tunnels;
mod visitors;
