//! The flags of a Binding Update and of a Binding Acknowledgement.

use core::fmt;

/// The flags of a Binding Update (RFC 6275 section 6.1.7; `M` RFC 5380, `R` RFC 3963, `P` RFC 5213, `F` RFC 5555, `T` RFC 5845,
/// `O` RFC 5648), as they stand in the 16 bits between Sequence # and Lifetime.
///
/// The other bits are reserved: ignored on reception, and zero when sent. They are not kept. One of them is used for an experiment,
/// [`UpdateFlags::END_OF_HANDOVER`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct UpdateFlags(pub u16);

crate::bits::set_of_bits!(UpdateFlags);

impl UpdateFlags {
    /// `A`: a Binding Acknowledgement is wanted.
    pub const ACKNOWLEDGE: Self = Self(0x8000);
    /// `H`: the receiver is to be the home agent.
    pub const HOME_REGISTRATION: Self = Self(0x4000);
    /// `L`: the home address has the interface identifier of the mobile node's link-local address.
    pub const LINK_LOCAL_ADDRESS_COMPATIBILITY: Self = Self(0x2000);
    /// `K`: the protocol that keys IPsec survives movements. To the home agent only; a correspondent node ignores it.
    pub const KEY_MANAGEMENT_MOBILITY_CAPABILITY: Self = Self(0x1000);
    /// `M`: a registration with a mobility anchor point (RFC 5380).
    pub const MAP_REGISTRATION: Self = Self(0x0800);
    /// `R`: from a mobile router (RFC 3963).
    pub const MOBILE_ROUTER: Self = Self(0x0400);
    /// `P`: from a mobile access gateway, in place of the mobile node (RFC 5213).
    pub const PROXY_REGISTRATION: Self = Self(0x0200);
    /// `F`: use UDP encapsulation whether there is a NAT or not (RFC 5555).
    pub const FORCE_UDP_ENCAPSULATION: Self = Self(0x0100);
    /// `T`: use the TLV header format in tunnels (RFC 5845).
    pub const TLV_HEADER_FORMAT: Self = Self(0x0080);
    /// `O`: the bindings of this update replace all others of the home address (RFC 5648). With `P`, RFC 6602 calls the bit `B` and
    /// means bulk updates.
    pub const OVERWRITE: Self = Self(0x0040);

    /// The termination of a handover, for the correspondent's TCP: the "ToH bit" of Le, Fu and Hogrefe, "A Cross-Layer Approach for Improving TCP
    /// Performance in Mobile Environments", 2008, section 3.1, who give it no place. No number is assigned; it is the last
    /// of the bits that no RFC has taken, and nobody sets it who is not asked to.
    pub const END_OF_HANDOVER: Self = Self(0x0001);

    /// Every bit with a meaning.
    pub(super) const KNOWN: Self = Self(0xffc1);
    /// Those that a Fast Binding Update has (RFC 5568 section 6.2.2): `A`, `H`, `L`, `K`.
    pub(super) const FAST: Self = Self(0xf000);
}

impl fmt::Display for UpdateFlags {
    /// The letters of the RFCs' diagrams, `-` where a bit is clear: `AH-K------`; `+E` behind them for the end of a handover.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Self::ACKNOWLEDGE, "A"),
            (Self::HOME_REGISTRATION, "H"),
            (Self::LINK_LOCAL_ADDRESS_COMPATIBILITY, "L"),
            (Self::KEY_MANAGEMENT_MOBILITY_CAPABILITY, "K"),
            (Self::MAP_REGISTRATION, "M"),
            (Self::MOBILE_ROUTER, "R"),
            (Self::PROXY_REGISTRATION, "P"),
            (Self::FORCE_UDP_ENCAPSULATION, "F"),
            (Self::TLV_HEADER_FORMAT, "T"),
            (Self::OVERWRITE, "O"),
        ] {
            f.write_str(if self.contains(flag) { letter } else { "-" })?;
        }
        if self.contains(Self::END_OF_HANDOVER) {
            f.write_str("+E")?;
        }
        Ok(())
    }
}

/// The flags of a Binding Acknowledgement (RFC 6275 section 6.1.8; `R` RFC 3963, `P` RFC 5213, `T` RFC 5845), as they stand in
/// the octet behind Status.
///
/// The other bits are reserved and not kept. A correspondent node sets none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AcknowledgementFlags(pub u8);

crate::bits::set_of_bits!(AcknowledgementFlags);

impl AcknowledgementFlags {
    /// `K`: the protocol that keys IPsec survives movements.
    pub const KEY_MANAGEMENT_MOBILITY_CAPABILITY: Self = Self(0x80);
    /// `R`: the home agent supports mobile routers (RFC 3963).
    pub const MOBILE_ROUTER: Self = Self(0x40);
    /// `P`: to a mobile access gateway (RFC 5213).
    pub const PROXY_REGISTRATION: Self = Self(0x20);
    /// `T`: tunnels use the TLV header format (RFC 5845).
    pub const TLV_HEADER_FORMAT: Self = Self(0x10);

    /// Every bit with a meaning.
    pub(super) const KNOWN: Self = Self(0xf0);
}

impl fmt::Display for AcknowledgementFlags {
    /// The letters of the RFCs' diagrams, `-` where a bit is clear: `K---`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Self::KEY_MANAGEMENT_MOBILITY_CAPABILITY, "K"),
            (Self::MOBILE_ROUTER, "R"),
            (Self::PROXY_REGISTRATION, "P"),
            (Self::TLV_HEADER_FORMAT, "T"),
        ] {
            f.write_str(if self.contains(flag) { letter } else { "-" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn flags_print_as_in_the_diagrams() {
        let flags =
            UpdateFlags::ACKNOWLEDGE.with(UpdateFlags::HOME_REGISTRATION).with(UpdateFlags::OVERWRITE);
        assert_eq!(flags.to_string(), "AH-------O");
        assert_eq!(UpdateFlags::KNOWN.to_string(), "AHLKMRPFTO+E");
        assert_eq!(AcknowledgementFlags::KNOWN.to_string(), "KRPT");
        assert_eq!(AcknowledgementFlags(0).to_string(), "----");
    }
}
