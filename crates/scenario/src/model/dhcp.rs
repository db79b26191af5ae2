//! How a mobile node comes by its care-of address.

use careof_base::Duration;

/// The `[mobility.dhcp]` table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhcp {
    /// When the client looks whether somebody uses the address.
    pub client_check: ClientCheck,
    /// Probes the client sends, 1 to 20. Without a check there are none.
    pub probes: u32,
    /// How long the server's echo waits for an answer; `None` is no check.
    pub server_check: Option<Duration>,
    /// From the link to the client's first message.
    pub start_delay: StartDelay,
    /// What the server grants, whole seconds, above zero, fewer than 4,294,967,295; `None` is infinity.
    pub lease: Option<Duration>,
    /// What the server takes for each reply.
    pub processing: Duration,
}

/// When a client looks by ARP whether somebody uses its address (RFC 5227).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientCheck {
    /// Before it uses the address.
    #[default]
    BeforeUse,
    /// While it uses the address.
    Background,
    /// Never.
    None,
}

/// How long a client waits before it asks for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StartDelay {
    /// Always as long.
    Fixed(Duration),
    /// A random time from 1 to 10 s (RFC 2131, section 4.4.1).
    Rfc2131,
}

impl StartDelay {
    /// The shortest and the longest.
    #[must_use]
    pub const fn range(self) -> (Duration, Duration) {
        match self {
            Self::Fixed(span) => (span, span),
            Self::Rfc2131 => (Duration::from_secs(1), Duration::from_secs(10)),
        }
    }
}

impl Default for Dhcp {
    fn default() -> Self {
        Self {
            client_check: ClientCheck::default(),
            probes: 3,
            server_check: Some(Duration::from_secs(1)),
            start_delay: StartDelay::Fixed(Duration::ZERO),
            lease: Some(Duration::from_secs(12 * 3_600)),
            processing: Duration::ZERO,
        }
    }
}
