//! Real hosts, real packets. Tests that need a process of one thread, or count what it allocates, are programs of their own.

mod agent_sockets;
mod congestion;
mod hosts;
mod ipv6;
mod links;
mod media;
mod merged_by_the_kernel;
mod monitor;
mod mptcp;
mod netlink;
mod processes;
mod sock_diag;
#[path = "../support/mod.rs"]
mod support;
mod taps;
mod tcp_socket;
mod told_congestion;
mod tunnel_transfer;
mod tunnels;
