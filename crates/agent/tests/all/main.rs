//! The agents: as a library, as processes on real hosts, and as others see them.

mod assists;
mod attacks;
mod configuration;
mod daemons;
mod early_requests;
mod ethernet;
mod faults;
mod flaps;
mod handover;
mod ipv6;
mod many_bindings;
mod moving;
mod multipath;
mod one_host;
mod path_monitor;
mod path_mtu;
mod relays;
mod restart;
mod support;
mod trespass;
