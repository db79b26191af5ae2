//! What can be chosen of a connection.

use std::sync::Arc;

use careof_base::Duration;
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

/// The least UDP payload that every path of QUIC carries (RFC 9000 section 14).
pub const MIN_MTU: u16 = 1200;

/// The largest UDP payload over IPv4 and IPv6 (RFC 9000 section 18.2).
pub const MAX_MTU: u16 = 65_527;

/// Congestion control, as `quinn-proto` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Congestion {
    /// RFC 9002 section 7.
    NewReno,
    /// RFC 8312, without HyStart.
    #[default]
    Cubic,
    /// BBR version 1, which the authors call experimental. It draws the phase of its cycles from the operating system's random numbers,
    /// so that no run with it can be repeated.
    Bbr,
}

impl Congestion {
    /// All.
    pub const ALL: &'static [Self] = &[Self::NewReno, Self::Cubic, Self::Bbr];

    /// The name in scenario files and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "new-reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    /// Whether the same seed makes the same connection.
    #[must_use]
    pub const fn is_repeatable(self) -> bool {
        !matches!(self, Self::Bbr)
    }

    fn factory(self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::NewReno => Arc::new(NewRenoConfig::default()),
            Self::Cubic => Arc::new(CubicConfig::default()),
            Self::Bbr => Arc::new(BbrConfig::default()),
        }
    }
}

/// Of a connection, the same at both ends. The defaults are `quinn-proto`'s.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Congestion control.
    pub congestion: Congestion,
    /// UDP payload of the first packets, bytes: [`MIN_MTU`] to [`MAX_MTU`].
    pub initial_mtu: u16,
    /// Whether the path's MTU is searched for with probes up to 1452 bytes (RFC 9000 section 14.3, RFC 8899).
    pub mtu_discovery: bool,
    /// Receive window of the flow's stream, bytes below 2^62.
    pub window: u64,
    /// Whether the server follows its client to another address (RFC 9000 section 9).
    pub migration: bool,
    /// How long an end waits for a sign of life before it drops the connection (RFC 9000 section 10.1); `None` is without end.
    pub idle_timeout: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            congestion: Congestion::default(),
            initial_mtu: MIN_MTU,
            mtu_discovery: true,
            window: 1_250_000,
            migration: true,
            idle_timeout: Some(Duration::from_secs(30)),
        }
    }
}

impl Config {
    /// The same in the terms of `quinn-proto`.
    pub(crate) fn transport(&self) -> TransportConfig {
        let mut transport = TransportConfig::default();
        let idle = self.idle_timeout.map(|span| {
            let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            IdleTimeout::from(VarInt::from_u64(millis).unwrap_or(VarInt::MAX))
        });
        transport
            .congestion_controller_factory(self.congestion.factory())
            .initial_mtu(self.initial_mtu.max(MIN_MTU))
            .mtu_discovery_config(self.mtu_discovery.then(MtuDiscoveryConfig::default))
            .stream_receive_window(VarInt::from_u64(self.window).unwrap_or(VarInt::MAX))
            .max_idle_timeout(idle)
            // Datagrams leave one by one: what a world does with them at once is its own business.
            .enable_segmentation_offload(false);
        transport
    }
}
