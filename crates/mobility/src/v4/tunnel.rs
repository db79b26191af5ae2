//! What agents and nodes agree on about tunnels.

use careof_wire::mip4::RequestFlags;
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

/// The encapsulations that come by the tunnels of a registration: what was agreed on and nothing else, in both directions (RFC 5944
/// sections 3.3 and 4.2.2; RFC 3024 section 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encapsulations {
    ip_in_ip: bool,
    minimal: bool,
    gre: bool,
}

impl Encapsulations {
    /// The one that was granted.
    #[must_use]
    pub const fn of(choice: EncapsulationChoice) -> Self {
        Self {
            ip_in_ip: matches!(choice, EncapsulationChoice::IpInIp),
            minimal: matches!(choice, EncapsulationChoice::Minimal),
            gre: matches!(choice, EncapsulationChoice::Gre),
        }
    }

    /// Those that a request asks for: of M and G together the home agent chooses one, and does not say which.
    #[must_use]
    pub const fn asked_for(flags: RequestFlags) -> Self {
        let minimal = flags.contains(RequestFlags::MINIMAL_ENCAPSULATION);
        let gre = flags.contains(RequestFlags::GRE);
        Self { ip_in_ip: !minimal && !gre, minimal, gre }
    }

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self {
            ip_in_ip: self.ip_in_ip || others.ip_in_ip,
            minimal: self.minimal || others.minimal,
            gre: self.gre || others.gre,
        }
    }

    /// Whether a datagram may come wrapped like this. Minimal encapsulation has no room for a fragment, which travels IP within IP
    /// instead (RFC 2004 section 2). No registration agrees on a key of GRE, so that one with a key is for somebody else.
    #[must_use]
    pub const fn allow(self, encapsulation: Encapsulation, is_fragment: bool) -> bool {
        match encapsulation {
            Encapsulation::IpInIp => self.ip_in_ip || (self.minimal && is_fragment),
            Encapsulation::Minimal => self.minimal,
            Encapsulation::Gre { key, .. } => self.gre && key.is_none(),
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

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: [Encapsulation; 4] = [
        Encapsulation::IpInIp,
        Encapsulation::Minimal,
        Encapsulation::Gre { key: None, sequence: Some(3) },
        Encapsulation::Gre { key: Some(1), sequence: None },
    ];

    fn allowed(encapsulations: Encapsulations) -> [[bool; 4]; 2] {
        [false, true].map(|is_fragment| EVERY.map(|one| encapsulations.allow(one, is_fragment)))
    }

    #[test]
    fn a_tunnel_takes_what_was_agreed_on_and_nothing_else() {
        use EncapsulationChoice::{Gre, IpInIp, Minimal};
        let only = |at: usize| [0, 1, 2, 3].map(|n| n == at);
        assert_eq!(allowed(Encapsulations::of(IpInIp)), [only(0); 2]);
        assert_eq!(allowed(Encapsulations::of(Gre)), [only(2); 2]);
        let fragments = [true, true, false, false];
        assert_eq!(allowed(Encapsulations::of(Minimal)), [only(1), fragments]);
        let both = Encapsulations::of(Gre).and(Encapsulations::of(IpInIp));
        assert_eq!(allowed(both), [[true, false, true, false]; 2]);
        assert_eq!(allowed(Encapsulations::default()), [[false; 4]; 2]);
    }

    #[test]
    fn a_request_without_bits_asks_for_ip_in_ip_and_one_with_both_for_either() {
        let (minimal, gre) = (RequestFlags::MINIMAL_ENCAPSULATION, RequestFlags::GRE);
        let asked = Encapsulations::asked_for;
        assert_eq!(asked(RequestFlags::default()), Encapsulations::of(EncapsulationChoice::IpInIp));
        assert_eq!(asked(minimal), Encapsulations::of(EncapsulationChoice::Minimal));
        assert_eq!(asked(gre), Encapsulations::of(EncapsulationChoice::Gre));
        assert_eq!(asked(RequestFlags(minimal.0 | gre.0)), asked(minimal).and(asked(gre)));
    }
}
