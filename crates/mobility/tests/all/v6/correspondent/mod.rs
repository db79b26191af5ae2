//! The correspondent node, against mobile nodes made by hand: honest ones and others.

mod attacks;
mod duties;
mod hostile_peer;
mod model;
mod peer;
mod together;
