//! What scenarios mean, and what is said of those that mean nothing.

mod assists;
mod errors;
mod hierarchy;
mod many;
mod media;
mod micro_mobility;
mod multipath;
mod nodes;
mod ready_scenarios;
mod repeated;
mod resolution;
mod traces;
