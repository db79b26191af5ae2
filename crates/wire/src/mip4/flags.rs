//! The flags of a registration request.

use core::fmt;

/// The flags of a Registration Request (RFC 5944 section 3.3), as they stand in the message.
///
/// Of the reserved bits the RFC says two things: they are ignored on reception (section 3.3), and a foreign
/// agent rejects a request that has one set as poorly formed (section 3.7.2.1). So they are kept.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RequestFlags(pub u8);

crate::bits::set_of_bits!(RequestFlags);

impl RequestFlags {
    /// `S`: keep the bindings there are, add this one.
    pub const SIMULTANEOUS_BINDINGS: Self = Self(0x80);
    /// `B`: tunnel the broadcast datagrams of the home network as well.
    pub const BROADCAST: Self = Self(0x40);
    /// `D`: the mobile node decapsulates by itself; its care-of address is co-located.
    pub const DECAPSULATION_BY_MOBILE_NODE: Self = Self(0x20);
    /// `M`: use minimal encapsulation (RFC 2004).
    pub const MINIMAL_ENCAPSULATION: Self = Self(0x10);
    /// `G`: use GRE encapsulation (RFC 2784).
    pub const GRE: Self = Self(0x08);
    /// `r`: sent as zero.
    pub const RESERVED_R: Self = Self(0x04);
    /// `T`: reverse tunnelling requested (RFC 3024 section 3.2).
    pub const REVERSE_TUNNELING: Self = Self(0x02);
    /// `x`: sent as zero.
    pub const RESERVED_X: Self = Self(0x01);
    /// The same bit, as SHAKE has it: the care-of address is a relay's, and packets are dispersed over all care-of addresses instead of
    /// going to each in a copy. The paper says "a reserved bit" of RFC 2002, which had two left; this is the one that later RFCs have
    /// not given a meaning.
    pub const RELAYED: Self = Self::RESERVED_X;
}

impl fmt::Display for RequestFlags {
    /// The letters of the RFC's diagram, `-` where a bit is clear: `S-D---T-`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Self::SIMULTANEOUS_BINDINGS, "S"),
            (Self::BROADCAST, "B"),
            (Self::DECAPSULATION_BY_MOBILE_NODE, "D"),
            (Self::MINIMAL_ENCAPSULATION, "M"),
            (Self::GRE, "G"),
            (Self::RESERVED_R, "r"),
            (Self::REVERSE_TUNNELING, "T"),
            (Self::RESERVED_X, "x"),
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
    fn flags_print_as_in_the_diagram() {
        let flags = RequestFlags::SIMULTANEOUS_BINDINGS
            .with(RequestFlags::DECAPSULATION_BY_MOBILE_NODE)
            .with(RequestFlags::REVERSE_TUNNELING);
        assert_eq!(flags.to_string(), "S-D---T-");
        assert_eq!(flags.without(RequestFlags::SIMULTANEOUS_BINDINGS).to_string(), "--D---T-");
        assert_eq!(RequestFlags(0xff).to_string(), "SBDMGrTx");
    }
}
