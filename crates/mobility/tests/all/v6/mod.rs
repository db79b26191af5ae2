//! Home agents, mobile nodes and correspondent nodes of Mobile IPv6, alone and together.

mod anchor_point;
mod attacks;
mod correspondent;
mod craft;
mod dual_stack;
mod early_updates;
mod fast_handover;
mod hierarchical;
mod home_agent;
mod intruder;
mod intruder_model;
mod path_monitor;
mod path_report;
mod peer;
mod registration;
mod route_optimization;
mod weather;
mod world;
