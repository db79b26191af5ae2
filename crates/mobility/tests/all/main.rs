//! The state machines of Mobile IPv4, Mobile IPv6 and DHCP, from outside.

mod dhcp;
mod multipath;
mod v4;
mod v6;
