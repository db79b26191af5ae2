//! Fast handovers (RFC 5568): access routers and mobile nodes, alone and together.

mod attacks;
mod handovers;
mod hostile_peer;
mod messages;
mod model;
mod world;
