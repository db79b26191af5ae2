//! Micro-mobility, from outside: whole domains of routers and mobile hosts.

mod blocks;
mod cellular_ip;
mod equivalence;
mod hawaii;
mod hostile;
mod model;
mod multicast;
mod tree;
