//! Whole worlds in the simulator.

mod addresses;
mod assists;
mod common;
mod cross_layer;
mod dhcp;
mod discovery;
mod fairness;
mod fast_handovers;
mod fleet;
mod hierarchical;
mod media;
mod micro_mobility;
mod mobile_ipv6;
mod multipath;
mod no_harm;
mod path_monitor;
mod path_mtu;
mod path_quality;
mod random_worlds;
mod senders;
mod several_mobile_nodes;
mod shortcuts;
mod split;
mod traces;
mod unreachable_router;
mod worlds;
