//! What every other room measures with: [`Instant`], [`DataRate`], [`Probability`], [`Allowance`], [`Holdings`], [`RandomStream`] and [`Randomness`].
//!
//! Nothing here knows of packets or protocols. The crate is `no_std`: together with the other protocol
//! crates it builds without sockets, clocks and threads, so agents cannot reach for them by mistake.

#![no_std]

extern crate alloc;

mod allowance;
mod holdings;
mod probability;
mod random;
mod randomness;
mod rate;
mod time;

pub use allowance::{Allowance, Used};
pub use core::time::Duration;
pub use holdings::Holdings;
pub use probability::{NotAProbability, Probability};
pub use random::RandomStream;
pub use randomness::{Randomness, SecretStream};
pub use rate::DataRate;
pub use time::Instant;
