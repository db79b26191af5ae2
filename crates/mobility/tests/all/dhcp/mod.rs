//! DHCP as RFC 2131 has it, rule by rule.

mod client;
mod craft;
mod server;
mod together;
