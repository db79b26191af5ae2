//! Mobile IPv6 on real hosts: the kernel's TCP, its neighbor discovery and its addresses.

mod assisted;
mod at_home;
pub(crate) mod domains;
mod dual_stack;
mod fast_handovers;
mod hierarchical;
pub(crate) mod network;
mod optimised;
mod silent_paths;
mod simultaneous;
mod solicited;
mod tunnelled;
mod unreachable;
