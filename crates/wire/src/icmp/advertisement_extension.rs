//! The extensions of a router advertisement (RFC 5944 sections 2.1.1 to 2.1.3).

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv4Addr;

use crate::extension::{Frame, HEADER_LEN, ONE_BYTE_PADDING};
use crate::fixed::Fixed;
use crate::mip4::Lifetime;
use crate::{Error, UnknownExtension};

const MOBILITY_AGENT_ADVERTISEMENT: u8 = 16;
const PREFIX_LENGTHS: u8 = 19;

/// Offsets in the data of a mobility agent advertisement extension.
mod agent {
    pub(super) const SEQUENCE: usize = 0;
    pub(super) const REGISTRATION_LIFETIME: usize = 2;
    pub(super) const FLAGS: usize = 4;
    pub(super) const LEN: usize = 6;
}

/// The flags of a mobility agent, as they stand in its advertisement.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct AgentFlags(pub u16);

crate::bits::set_of_bits!(AgentFlags);

impl AgentFlags {
    /// `R`: register with this foreign agent, or another on this link, even with a co-located care-of
    /// address.
    pub const REGISTRATION_REQUIRED: Self = Self(0x8000);
    /// `B`: the foreign agent takes no further mobile nodes.
    pub const BUSY: Self = Self(0x4000);
    /// `H`: it is a home agent on this link.
    pub const HOME_AGENT: Self = Self(0x2000);
    /// `F`: it is a foreign agent on this link.
    pub const FOREIGN_AGENT: Self = Self(0x1000);
    /// `M`: it receives minimal encapsulation (RFC 2004).
    pub const MINIMAL_ENCAPSULATION: Self = Self(0x0800);
    /// `G`: it receives GRE encapsulation (RFC 2784).
    pub const GRE: Self = Self(0x0400);
    /// `r`: sent as zero, ignored on reception.
    pub const RESERVED_R: Self = Self(0x0200);
    /// `T`: it supports reverse tunnelling (RFC 3024).
    pub const REVERSE_TUNNELING: Self = Self(0x0100);
    /// `U`: it supports UDP tunnelling (RFC 3519).
    pub const UDP_TUNNELING: Self = Self(0x0080);
    /// `X`: it supports registration revocation (RFC 3543).
    pub const REVOCATION: Self = Self(0x0040);
    /// `I`: it supports regional registration (RFC 4857).
    pub const REGIONAL_REGISTRATION: Self = Self(0x0020);
}

impl fmt::Display for AgentFlags {
    /// The letters of the RFC's diagram, `-` where a bit is clear: `R--F---T---`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (flag, letter) in [
            (Self::REGISTRATION_REQUIRED, "R"),
            (Self::BUSY, "B"),
            (Self::HOME_AGENT, "H"),
            (Self::FOREIGN_AGENT, "F"),
            (Self::MINIMAL_ENCAPSULATION, "M"),
            (Self::GRE, "G"),
            (Self::RESERVED_R, "r"),
            (Self::REVERSE_TUNNELING, "T"),
            (Self::UDP_TUNNELING, "U"),
            (Self::REVOCATION, "X"),
            (Self::REGIONAL_REGISTRATION, "I"),
        ] {
            f.write_str(if self.contains(flag) { letter } else { "-" })?;
        }
        Ok(())
    }
}

/// The Mobility Agent Advertisement Extension (type 16).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MobilityAgentAdvertisement {
    /// Counts advertisements since the agent started; after 0xffff comes 256, so that a mobile node sees a
    /// restart (RFC 5944 section 2.3.2).
    pub sequence: u16,
    /// The longest lifetime the agent accepts in a request.
    pub registration_lifetime: Lifetime,
    /// What the agent is and does.
    pub flags: AgentFlags,
    /// The foreign agent's care-of addresses, [`Self::MAX_CARE_OF_ADDRESSES`] at most.
    pub care_of_addresses: Vec<Ipv4Addr>,
}

impl MobilityAgentAdvertisement {
    /// The most care-of addresses the Length octet can tell.
    pub const MAX_CARE_OF_ADDRESSES: usize = (u8::MAX as usize - agent::LEN) / 4;

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        let wrong_length = || frame.wrong_length("6 + 4 for each care-of address");
        let Ok((fixed, addresses)) =
            Fixed::<{ agent::LEN }>::split(frame.data, "mobility agent advertisement")
        else {
            return Err(wrong_length());
        };
        let (addresses, []) = addresses.as_chunks::<4>() else { return Err(wrong_length()) };
        Ok(Self {
            sequence: fixed.u16::<{ agent::SEQUENCE }>(),
            registration_lifetime: Lifetime::from_secs(fixed.u16::<{ agent::REGISTRATION_LIFETIME }>()),
            flags: AgentFlags(fixed.u16::<{ agent::FLAGS }>()),
            care_of_addresses: addresses.iter().copied().map(Ipv4Addr::from).collect(),
        })
    }

    fn emit(&self, bytes: &mut Vec<u8>) {
        const MAX: usize = MobilityAgentAdvertisement::MAX_CARE_OF_ADDRESSES;
        debug_assert!(self.care_of_addresses.len() <= MAX, "the Length is one octet");
        let addresses = self.care_of_addresses.get(..MAX).unwrap_or(&self.care_of_addresses);
        let mut fixed = Fixed::<{ agent::LEN }>::ZERO;
        fixed.put::<{ agent::SEQUENCE }, 2>(self.sequence.to_be_bytes());
        fixed.put::<{ agent::REGISTRATION_LIFETIME }, 2>(self.registration_lifetime.as_secs().to_be_bytes());
        fixed.put::<{ agent::FLAGS }, 2>(self.flags.0.to_be_bytes());
        bytes.extend([MOBILITY_AGENT_ADVERTISEMENT, (agent::LEN + 4 * addresses.len()) as u8]);
        bytes.extend(fixed.bytes());
        bytes.extend(addresses.iter().flat_map(Ipv4Addr::octets));
    }
}

/// An extension of a router advertisement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum AdvertisementExtension {
    /// Type 0: a single byte without Length, to make the message's length even.
    OneBytePadding,
    /// Type 16.
    MobilityAgent(MobilityAgentAdvertisement),
    /// Type 19: for each router address of the advertisement, in order, the leading bits of its network's
    /// prefix (0 to 32); 255 of them at most. It says nothing of the care-of addresses.
    PrefixLengths(Vec<u8>),
    /// Any other type from 128 on: skipped.
    Unknown(UnknownExtension),
}

impl AdvertisementExtension {
    /// Appends the extension.
    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        let (kind, data) = match self {
            Self::OneBytePadding => return bytes.push(ONE_BYTE_PADDING),
            Self::MobilityAgent(agent) => return agent.emit(bytes),
            Self::PrefixLengths(lengths) => {
                debug_assert!(lengths.len() <= usize::from(u8::MAX), "the Length is one octet");
                (PREFIX_LENGTHS, lengths.get(..usize::from(u8::MAX)).unwrap_or(lengths))
            }
            Self::Unknown(extension) => (extension.kind(), extension.data()),
        };
        bytes.extend([kind, data.len() as u8]);
        bytes.extend(data);
    }

    fn decode(frame: &Frame<'_>) -> Result<Self, Error> {
        match frame.kind {
            MOBILITY_AGENT_ADVERTISEMENT => {
                MobilityAgentAdvertisement::decode(frame).map(Self::MobilityAgent)
            }
            PREFIX_LENGTHS => match frame.data.iter().position(|length| *length > 32) {
                Some(at) => Err(Error::Invalid {
                    field: "Prefix Length",
                    offset: HEADER_LEN + at,
                    found: u32::from(frame.data[at]),
                    expected: "0 to 32",
                }),
                None => Ok(Self::PrefixLengths(frame.data.to_vec())),
            },
            kind => UnknownExtension::received(kind, frame.data).map(Self::Unknown),
        }
    }

    /// The extensions that fill `bytes`, which start `offset` bytes into the message.
    pub(super) fn parse_all(mut bytes: &[u8], mut offset: usize) -> Result<Vec<Self>, Error> {
        let mut extensions = Vec::new();
        while let Some(first) = bytes.first() {
            let (extension, rest) = if *first == ONE_BYTE_PADDING {
                (Self::OneBytePadding, bytes.get(1..).unwrap_or_default())
            } else {
                let (frame, rest) = Frame::split(bytes).map_err(|error| error.shifted(offset))?;
                (Self::decode(&frame).map_err(|error| error.shifted(offset))?, rest)
            };
            offset += bytes.len() - rest.len();
            extensions.push(extension);
            bytes = rest;
        }
        Ok(extensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn flags_print_as_in_the_diagram() {
        assert_eq!(AgentFlags(0xffe0).to_string(), "RBHFMGrTUXI");
        assert_eq!(AgentFlags::FOREIGN_AGENT.with(AgentFlags::REVOCATION).to_string(), "---F-----X-");
    }

    #[test]
    fn an_unknown_type_below_128_condemns_the_advertisement_and_one_above_does_not() {
        assert_eq!(
            AdvertisementExtension::parse_all(&[0, 24, 1, 7], 16),
            Err(Error::UnknownExtension { kind: 24, offset: 17 })
        );
        let unknown = AdvertisementExtension::Unknown(UnknownExtension::new(132, &[7]).unwrap());
        assert_eq!(AdvertisementExtension::parse_all(&[132, 1, 7], 16), Ok(alloc::vec![unknown]));
    }

    #[test]
    fn a_length_that_does_not_divide_into_addresses_is_refused() {
        for (data, found) in [(&[16, 5, 0, 0, 0, 0, 0][..], 5), (&[16, 8, 0, 0, 0, 0, 0, 0, 1, 2], 8)] {
            assert_eq!(
                AdvertisementExtension::parse_all(data, 8),
                Err(Error::Invalid {
                    field: "extension Length",
                    offset: 9,
                    found,
                    expected: "6 + 4 for each care-of address"
                })
            );
        }
    }

    #[test]
    fn a_prefix_longer_than_an_address_is_refused() {
        assert_eq!(
            AdvertisementExtension::parse_all(&[19, 2, 32, 33], 8),
            Err(Error::Invalid { field: "Prefix Length", offset: 11, found: 33, expected: "0 to 32" })
        );
    }
}
