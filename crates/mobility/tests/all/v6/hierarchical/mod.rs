//! A hierarchical mobile node with mobility anchor points, its home agent and a correspondent node (RFC 5380).

mod attacks;
mod domains;
mod model;
mod nesting;
mod selection;
mod weather;
mod world;
