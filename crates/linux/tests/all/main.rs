//! Scenarios on real hosts.
//!
//! Where this machine has no namespaces or no TUN devices for this user the tests say so and pass; with
//! `CAREOF_REQUIRE_LAB` set they fail.

mod assists;
mod common;
mod dhcp;
mod fast_handovers;
mod hierarchical;
mod ipv6;
mod media;
mod micro_mobility;
mod mobile_ipv6;
mod mptcp;
mod multipath;
mod path_mtu;
mod quic;
mod several_mobile_nodes;
mod split;
mod tcp_cm;
mod workloads;
mod worlds;
