//! Home agents, mobile nodes and correspondent nodes of Mobile IPv6, alone and together.

mod attacks;
mod correspondent;
mod craft;
mod dual_stack;
mod fast_handover;
mod home_agent;
mod intruder;
mod intruder_model;
mod path_report;
mod peer;
mod registration;
mod route_optimization;
mod weather;
mod world;
