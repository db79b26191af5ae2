//! The daemon `careof-agent` from outside: real processes in real networks, and what people do with them.
//!
//! Each test has hosts of its own, so they run side by side. Where the machine cannot do it, they say so and pass;
//! with `CAREOF_REQUIRE_LAB` set they fail.

mod acceptance;
mod capture;
mod faults;
mod hierarchical;
mod ipv6;
mod measurements;
mod multipath;
mod relays;
mod service;
pub(crate) mod support;
