//! The messages of fast handovers in a Mobility Header (RFC 5568 section 6.2), and the option that authorizes those of the mobile
//! node (section 6.4.5).
//!
//! A Fast Binding Update is a Binding Update of another MH Type ("identical", section 6.2.2), so [`super::BindingUpdate`] is its value. Two
//! places of the RFC contradict others, and these readings are tshark's as well:
//!
//! - Lifetimes count 4 seconds, as in the messages they are identical to, though sections 6.2.2 and 6.2.3 say "seconds".
//! - The Option Length of BADF counts the SPI, as mobility options do, though section 6.4.5 has it as the length of the
//!   authenticator alone.

use alloc::vec::Vec;
use core::fmt;

use super::{AcknowledgementFlags, Lifetime, MobilityOptions, SequenceNumber, Spi};
use crate::Error;
use crate::fixed::Fixed;

/// Offsets in a Fast Binding Acknowledgment (RFC 5568 section 6.2.3).
mod fast_acknowledgement {
    pub(super) const STATUS: usize = 6;
    pub(super) const FLAGS: usize = 7;
    pub(super) const SEQUENCE: usize = 8;
    pub(super) const LIFETIME: usize = 10;
    pub(super) const LEN: usize = 12;
}

/// Offsets in a Handover Initiate and a Handover Acknowledge (RFC 5568 section 6.2.1).
mod handover {
    pub(super) const SEQUENCE: usize = 6;
    pub(super) const FLAGS: usize = 8;
    pub(super) const CODE: usize = 9;
    pub(super) const LEN: usize = 10;
}

crate::numbered::numbered! {
    /// The Status of a Fast Binding Acknowledgment (RFC 5568 section 6.2.3). `Display` gives the RFC's wording.
    FastBindingStatus, unknown: "unknown status";

    /// 0.
    Accepted = 0, "Fast Binding Update accepted";
    /// 1: the Alternate Care-of Address option holds the address to use.
    AcceptedWithOtherAddress = 1, "Fast Binding Update accepted but NCoA is invalid";

    /// 128.
    ReasonUnspecified = 128, "Reason unspecified";
    /// 129.
    AdministrativelyProhibited = 129, "Administratively prohibited";
    /// 130.
    InsufficientResources = 130, "Insufficient resources";
    /// 131.
    IncorrectInterfaceIdentifierLength = 131, "Incorrect interface identifier length";
}

impl FastBindingStatus {
    /// Whether the update was accepted: below 128.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.number() < 128
    }
}

crate::numbered::numbered! {
    /// The Code of a Handover Initiate (RFC 5568 section 6.2.1.1).
    InitiateCode, unknown: "unknown code";

    /// 0: the mobile node has sent its Fast Binding Update from the previous care-of address.
    FromPreviousLink = 0, "FBU with the PCoA as source";
    /// 1: it has sent it from another address.
    FromNewLink = 1, "FBU whose source is not the PCoA";
}

crate::numbered::numbered! {
    /// The Code of a Handover Acknowledge (RFC 5568 section 6.2.1.2). `Display` gives the RFC's wording.
    HandoverCode, unknown: "unknown code";

    /// 0.
    Accepted = 0, "Handover Accepted, NCoA valid";
    /// 1.
    AcceptedAddressInUse = 1, "Handover Accepted, NCoA not valid or in use";
    /// 2: the New Care-of Address is in the message.
    AcceptedAddressAssigned = 2, "Handover Accepted, NCoA assigned";
    /// 3: packets go on to the new router by the previous care-of address.
    AcceptedUsePreviousAddress = 3, "Handover Accepted, use PCoA";
    /// 4.
    Unsolicited = 4, "Message sent unsolicited";

    /// 128.
    NotAccepted = 128, "Handover Not Accepted, reason unspecified";
    /// 129.
    AdministrativelyProhibited = 129, "Administratively prohibited";
    /// 130.
    InsufficientResources = 130, "Insufficient resources";
}

impl HandoverCode {
    /// Whether the new access router takes part: below 128.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.number() < 128
    }
}

/// A Fast Binding Acknowledgment (MH Type 9; RFC 5568 section 6.2.3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FastBindingAcknowledgement {
    /// The outcome.
    pub status: FastBindingStatus,
    /// `K` only: the others mean nothing here.
    pub flags: AcknowledgementFlags,
    /// That of the update.
    pub sequence: SequenceNumber,
    /// How long the binding is kept. After a rejection it means nothing.
    pub lifetime: Lifetime,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl FastBindingAcknowledgement {
    /// Bytes before the options.
    pub(super) const FIXED_LEN: usize = fast_acknowledgement::LEN;
    const FLAGS: u8 = AcknowledgementFlags::KEY_MANAGEMENT_MOBILITY_CAPABILITY.0;

    pub(super) fn fixed(&self) -> Fixed<{ fast_acknowledgement::LEN }> {
        let mut fixed = Fixed::ZERO;
        fixed.put::<{ fast_acknowledgement::STATUS }, 1>([self.status.number()]);
        fixed.put::<{ fast_acknowledgement::FLAGS }, 1>([self.flags.0 & Self::FLAGS]);
        fixed.put::<{ fast_acknowledgement::SEQUENCE }, 2>(self.sequence.0.to_be_bytes());
        fixed.put::<{ fast_acknowledgement::LIFETIME }, 2>(self.lifetime.as_units().to_be_bytes());
        fixed
    }

    pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) =
            Fixed::<{ fast_acknowledgement::LEN }>::split(header, "Fast Binding Acknowledgment")?;
        let flags = fixed.u8::<{ fast_acknowledgement::FLAGS }>() & Self::FLAGS;
        Ok(Self {
            status: FastBindingStatus::from_number(fixed.u8::<{ fast_acknowledgement::STATUS }>()),
            flags: AcknowledgementFlags(flags),
            sequence: SequenceNumber(fixed.u16::<{ fast_acknowledgement::SEQUENCE }>()),
            lifetime: Lifetime::from_units(fixed.u16::<{ fast_acknowledgement::LIFETIME }>()),
            options: MobilityOptions::parse(options, fast_acknowledgement::LEN)?,
        })
    }
}

/// A Handover Initiate (MH Type 14; RFC 5568 section 6.2.1.1): the previous access router tells the new one of a mobile node that is
/// about to come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandoverInitiate {
    /// Comes back in the acknowledgement.
    pub sequence: SequenceNumber,
    /// `S`: the new access router is asked for an address.
    pub assign_address: bool,
    /// `U`: it is asked to buffer what is for the mobile node.
    pub buffer: bool,
    /// Where the Fast Binding Update came from.
    pub code: InitiateCode,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl HandoverInitiate {
    /// Bytes before the options.
    pub(super) const FIXED_LEN: usize = handover::LEN;
    const ASSIGN_ADDRESS: u8 = 0x80;
    const BUFFER: u8 = 0x40;

    pub(super) fn fixed(&self) -> Fixed<{ handover::LEN }> {
        let flag = |set, flag| if set { flag } else { 0 };
        let flags = flag(self.assign_address, Self::ASSIGN_ADDRESS) | flag(self.buffer, Self::BUFFER);
        handover_fixed(self.sequence, flags, self.code.number())
    }

    pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ handover::LEN }>::split(header, "Handover Initiate")?;
        let flags = fixed.u8::<{ handover::FLAGS }>();
        Ok(Self {
            sequence: SequenceNumber(fixed.u16::<{ handover::SEQUENCE }>()),
            assign_address: flags & Self::ASSIGN_ADDRESS != 0,
            buffer: flags & Self::BUFFER != 0,
            code: InitiateCode::from_number(fixed.u8::<{ handover::CODE }>()),
            options: MobilityOptions::parse(options, handover::LEN)?,
        })
    }
}

/// A Handover Acknowledge (MH Type 15; RFC 5568 section 6.2.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HandoverAcknowledge {
    /// That of the Handover Initiate.
    pub sequence: SequenceNumber,
    /// The outcome.
    pub code: HandoverCode,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl HandoverAcknowledge {
    /// Bytes before the options.
    pub(super) const FIXED_LEN: usize = handover::LEN;

    pub(super) fn fixed(&self) -> Fixed<{ handover::LEN }> {
        handover_fixed(self.sequence, 0, self.code.number())
    }

    pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ handover::LEN }>::split(header, "Handover Acknowledge")?;
        Ok(Self {
            sequence: SequenceNumber(fixed.u16::<{ handover::SEQUENCE }>()),
            code: HandoverCode::from_number(fixed.u8::<{ handover::CODE }>()),
            options: MobilityOptions::parse(options, handover::LEN)?,
        })
    }
}

fn handover_fixed(sequence: SequenceNumber, flags: u8, code: u8) -> Fixed<{ handover::LEN }> {
    let mut fixed = Fixed::ZERO;
    fixed.put::<{ handover::SEQUENCE }, 2>(sequence.0.to_be_bytes());
    fixed.put::<{ handover::FLAGS }, 2>([flags, code]);
    fixed
}

/// A Binding Authorization Data for FMIPv6 option, BADF (RFC 5568 section 6.4.5), as it stands in a message.
///
/// It only carries the authenticator; [`super::FastBindingAuthorization`] makes and checks one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FastAuthorizationData {
    pub(super) spi: Spi,
    pub(super) authenticator: Vec<u8>,
}

impl FastAuthorizationData {
    /// The SPI.
    pub(super) const FIXED_LEN: usize = 4;
    /// The longest authenticator the Option Length can tell, bytes.
    pub const MAX_AUTHENTICATOR_LEN: usize = u8::MAX as usize - Self::FIXED_LEN;

    /// An option with this authenticator; `None` when it is longer than [`Self::MAX_AUTHENTICATOR_LEN`].
    #[must_use]
    pub fn new(spi: Spi, authenticator: &[u8]) -> Option<Self> {
        (authenticator.len() <= Self::MAX_AUTHENTICATOR_LEN)
            .then(|| Self { spi, authenticator: authenticator.to_vec() })
    }

    /// An option with room for an authenticator of `len` bytes.
    pub(super) fn zeroed(spi: Spi, len: usize) -> Self {
        Self { spi, authenticator: alloc::vec![0; len] }
    }

    /// Names the security association; 0 is that of handover keys of SEND (RFC 5269).
    #[must_use]
    pub const fn spi(&self) -> Spi {
        self.spi
    }

    /// The authenticator, of whatever length was received.
    #[must_use]
    pub fn authenticator(&self) -> &[u8] {
        &self.authenticator
    }

    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (spi, authenticator) = data.split_first_chunk::<{ Self::FIXED_LEN }>()?;
        Some(Self { spi: Spi(u32::from_be_bytes(*spi)), authenticator: authenticator.to_vec() })
    }
}

impl fmt::Debug for FastAuthorizationData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FastAuthorizationData(SPI {}, {} bytes)", self.spi, self.authenticator.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_number_survives_the_enums() {
        for number in 0..=u8::MAX {
            assert_eq!(FastBindingStatus::from_number(number).number(), number);
            assert_eq!(InitiateCode::from_number(number).number(), number);
            assert_eq!(HandoverCode::from_number(number).number(), number);
        }
    }

    #[test]
    fn what_is_below_128_is_accepted() {
        assert!(FastBindingStatus::ALL.iter().all(|status| status.is_accepted() == (status.number() < 2)));
        assert!(HandoverCode::ALL.iter().all(|code| code.is_accepted() == (code.number() < 5)));
    }

    /// 131 means something else in a Binding Acknowledgement.
    #[test]
    fn statuses_are_those_of_fast_handovers() {
        assert_eq!(FastBindingStatus::from_number(131).to_string(), "Incorrect interface identifier length");
        assert_eq!(HandoverCode::from_number(3).to_string(), "Handover Accepted, use PCoA");
    }

    #[test]
    fn an_authenticator_fits_the_option() {
        assert!(FastAuthorizationData::new(Spi(256), &[0; 252]).is_none());
        assert!(FastAuthorizationData::new(Spi(256), &[0; 251]).is_some());
        assert!(FastAuthorizationData::decode(&[0; 3]).is_none());
    }
}
