//! What agents and nodes agree on about tunnels.

use careof_wire::tunnel::Encapsulation;

/// The time to live of the outer header: as for any datagram a node sends itself.
pub(crate) const TUNNEL_TTL: u8 = super::io::DEFAULT_TTL;

/// The encapsulations a registration can ask for (M and G bits, RFC 5944 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EncapsulationChoice {
    /// IP within IP (RFC 2003), what everybody must support.
    #[default]
    IpInIp,
    /// Minimal encapsulation (RFC 2004); fragments still travel IP within IP.
    Minimal,
    /// GRE (RFC 2784) without key and sequence number.
    Gre,
}

impl EncapsulationChoice {
    /// The encapsulation chosen.
    #[must_use]
    pub const fn encapsulation(self) -> Encapsulation {
        match self {
            Self::IpInIp => Encapsulation::IpInIp,
            Self::Minimal => Encapsulation::Minimal,
            Self::Gre => Encapsulation::Gre { key: None, sequence: None },
        }
    }

    /// The choice that leads to `encapsulation`.
    #[must_use]
    pub const fn of(encapsulation: Encapsulation) -> Self {
        match encapsulation {
            Encapsulation::IpInIp => Self::IpInIp,
            Encapsulation::Minimal => Self::Minimal,
            Encapsulation::Gre { .. } => Self::Gre,
        }
    }
}

/// An agent's attitude to reverse tunnelling (RFC 3024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ReverseTunnel {
    /// Not offered: requests with the T bit are denied.
    Unavailable,
    /// As the mobile node likes.
    #[default]
    Optional,
    /// Requests without the T bit are denied.
    Required,
}
