//! What strangers try, between real hosts.

mod segments;
mod visitors;
