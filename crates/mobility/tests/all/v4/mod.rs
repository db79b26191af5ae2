//! Mobile nodes, foreign agents and home agents together.

mod clocks;
mod craft;
mod crowds;
mod denials;
mod discovery;
mod early_requests;
mod foreign_agent;
mod garbage;
mod handover;
mod home_agent;
mod multipath;
mod path_monitor;
mod path_quality;
mod path_report;
mod paths;
mod registration;
mod route_optimization;
mod security;
mod smooth_handoff;
mod world;
