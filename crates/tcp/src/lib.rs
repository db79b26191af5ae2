//! TCP endpoint models: a full-duplex connection that exchanges [`careof_wire::Segment`]s - lengths, not
//! bytes - and never touches a clock, a socket or a random source.

#![no_std]

mod config;

pub use config::{
    AckCounting, Config, ConfigError, DelayedAck, IdleRestart, InitialWindow, MAX_WINDOW, MIN_MSS,
    PartialAckTimer, Profile, RtoEstimator, Variant,
};
