//! One direction of a link: queue discipline, serialiser, loss, propagation.
#![no_std]

mod config;

pub use config::{
    Config, ConfigError, Discipline, Framing, Jitter, Loss, MINIMUM_MTU, QueueConfig, QueueLimit, RedConfig,
    UNLIMITED_RATE,
};
