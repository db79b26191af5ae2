//! Who is where: the agents and nodes of Mobile IP as sans-IO state machines.
//!
//! Nothing here touches a socket, a clock or a random source: state machines are handed the time, messages
//! and link events, and are asked what to send, what to tell and when to be woken. A simulator and real
//! hosts drive the same code.

#![no_std]

extern crate alloc;

pub mod dhcp;
pub mod path_mtu;
pub mod v4;
