//! What strangers try, between real hosts.

mod visitors;
