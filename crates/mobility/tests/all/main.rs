//! The state machines of Mobile IPv4 and DHCP, from outside.

mod dhcp;
mod v4;
