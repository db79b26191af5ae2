//! Mobile IPv6.

mod correspondent;
