//! The real world: a scenario on Linux hosts.
