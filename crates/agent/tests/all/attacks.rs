//! What strangers try, between real hosts.

mod fragments;
mod tunnels;
mod visitors;
