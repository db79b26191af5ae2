//! The state machines of Mobile IPv4, Mobile IPv6, DHCP and micro-mobility, from outside.

mod dhcp;
mod micro;
mod multipath;
mod v4;
mod v6;
