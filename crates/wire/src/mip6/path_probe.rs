//! Path probes: a mobile node asks its home agent through one of its interfaces whether packets get through, and how many of
//! those before did. [`crate::mip4::PathProbe`] is the same for Mobile IPv4.
//!
//! They travel as Experimental Mobility Header messages (RFC 5096 section 3), MH Type 11, which a home agent that does not know them
//! discards and answers with a Binding Error. RFC 6275 has nothing that could take their place: a Binding Update changes the binding or is
//! refused, and an update a second would leave no room for those that matter (MAX_UPDATE_RATE); a Home Test is answered through the
//! tunnel, whichever path that is; an ICMPv6 echo proves nothing of who has answered, and carries no counters. What such
//! a message is, the Vendor ID (RFC 5094) at its start says, so that somebody else's experiment stays one. Last comes the Mobility Message
//! Authentication option between mobile node and home agent (RFC 4285 section 5).
//!
//! RFC 5096 section 1 wants experimental messages in no deployment, as RFC 4064 does for those of Mobile IPv4. The nearest message with a
//! number of its own is the Heartbeat of RFC 5847, which is defined between the nodes of Proxy Mobile IPv6 only. Who has other experiments
//! under this number in his network turns the path monitor off.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! | Payload Proto |  Header Len   |  MH Type 11   |   reserved    |
//! |           Checksum            |           reserved            |
//! |                           Vendor ID                           |
//! |   Sub-Type    |    Version    |C|         reserved            |
//! |                                                               |
//! +                         Home address                          +
//! |                             (128)                             |
//! |                        Sequence number                        |
//! |                          Nonce (64)                           |
//! |                         Packets sent                          |
//! |                       Packets received                        |
//! |                        Bytes sent (64)                        |
//! |                      Bytes received (64)                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                       Mobility options ...
//! ```
//!
//! The Sub-Type is 2 in a probe and 3 in its answer, Version is 1, and C says that the counters are known. The home address stands in the
//! message, and not in a Home Address option or a type 2 routing header: a care-of address may be probed before there is a binding
//! for it, and without one both are refused (RFC 6275 sections 9.3.1 and 6.4).

use core::net::Ipv6Addr;

use super::MobilityOptions;
use super::message::common;
use crate::Error;
use crate::enterprise::ENTERPRISE;
use crate::fixed::Fixed;
use crate::path_probe::{Measurement, PathCounts, PathProbeKind, VERSION};

/// Offsets from the start of the Mobility Header.
mod field {
    pub(super) const VENDOR: usize = 8;
    pub(super) const KIND: usize = 12;
    pub(super) const VERSION: usize = 13;
    pub(super) const FLAGS: usize = 14;
    pub(super) const HOME_ADDRESS: usize = 16;
    pub(super) const MEASUREMENT: usize = 32;
    pub(super) const LEN: usize = MEASUREMENT + super::Measurement::LEN;
}

/// A probe of a path, or the answer to one (MH Type 11 of RFC 5096).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathProbe {
    /// Which of both.
    pub kind: PathProbeKind,
    /// The mobile node's home address.
    pub home_address: Ipv6Addr,
    /// Which probe of its sender's on this path; an answer repeats it.
    pub sequence: u32,
    /// What nobody who has not seen the probe can know; an answer repeats it.
    pub nonce: u64,
    /// The counters of whoever sends this message; `None` when it keeps none.
    pub counts: Option<PathCounts>,
    /// What follows, in order.
    pub options: MobilityOptions,
}

impl PathProbe {
    /// The MH Type.
    pub const TYPE: u8 = 11;
    /// Bytes before the options.
    pub const FIXED_LEN: usize = field::LEN;

    /// Whether an experimental message is one of ours; `data` is what follows the checksum.
    pub(super) fn is_ours(data: &[u8]) -> bool {
        let vendor = data.get(field::VENDOR - common::LEN..).and_then(<[u8]>::first_chunk::<4>);
        vendor == Some(&ENTERPRISE.to_be_bytes())
    }

    pub(super) fn fixed(&self) -> Fixed<{ field::LEN }> {
        let Self { sequence, nonce, counts, .. } = *self;
        let measurement = Measurement { sequence, nonce, counts };
        let mut fixed = Fixed::<{ field::LEN }>::ZERO;
        fixed.put::<{ field::VENDOR }, 4>(ENTERPRISE.to_be_bytes());
        fixed.put::<{ field::KIND }, 1>([self.kind.number()]);
        fixed.put::<{ field::VERSION }, 1>([VERSION]);
        fixed.put::<{ field::FLAGS }, 1>([measurement.flags()]);
        fixed.put::<{ field::HOME_ADDRESS }, 16>(self.home_address.octets());
        fixed.put::<{ field::MEASUREMENT }, { Measurement::LEN }>(measurement.encode());
        fixed
    }

    pub(super) fn parse(header: &[u8]) -> Result<Self, Error> {
        let (fixed, options) = Fixed::<{ field::LEN }>::split(header, "path probe")?;
        let invalid = |field, offset, found, expected| Error::Invalid { field, offset, found, expected };
        let number = fixed.u8::<{ field::KIND }>();
        let Some(kind) = PathProbeKind::from_number(u16::from(number)) else {
            return Err(invalid("Sub-Type of a path probe", field::KIND, u32::from(number), "2 or 3"));
        };
        let version = fixed.u8::<{ field::VERSION }>();
        if version != VERSION {
            return Err(invalid("version of a path probe", field::VERSION, u32::from(version), "1"));
        }
        let measurement = fixed.array::<{ field::MEASUREMENT }, { Measurement::LEN }>();
        let Measurement { sequence, nonce, counts } =
            Measurement::decode(fixed.u8::<{ field::FLAGS }>(), measurement);
        Ok(Self {
            kind,
            home_address: fixed.ipv6_address::<{ field::HOME_ADDRESS }>(),
            sequence,
            nonce,
            counts,
            options: MobilityOptions::parse(options, field::LEN)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::mip6::{Message, UnknownMessage};

    const HOME: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 5);
    const CARE_OF: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 5);
    const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);

    fn probe() -> PathProbe {
        PathProbe {
            kind: PathProbeKind::Probe,
            home_address: HOME,
            sequence: 0x0102_0304,
            nonce: 0x1112_1314_1516_1718,
            counts: Some(PathCounts {
                packets_sent: 1,
                packets_received: 2,
                bytes_sent: 3,
                bytes_received: 4,
            }),
            options: MobilityOptions::new(),
        }
    }

    fn emit(probe: &PathProbe) -> Vec<u8> {
        Message::PathProbe(probe.clone()).emit(CARE_OF, HOME_AGENT).expect("fits")
    }

    /// The message with other bytes and the checksum that they need.
    fn altered(changes: &[(usize, u8)]) -> Result<Message, Error> {
        let mut bytes = emit(&probe());
        for &(at, value) in changes {
            bytes[at] = value;
        }
        bytes[common::CHECKSUM..common::LEN].fill(0);
        crate::mip6::message::fill_checksum(CARE_OF, HOME_AGENT, &mut bytes);
        Message::parse(CARE_OF, HOME_AGENT, &bytes)
    }

    #[test]
    fn a_probe_has_the_layout_told_above() {
        let mut bytes = emit(&probe());
        assert_eq!(Message::parse(CARE_OF, HOME_AGENT, &bytes), Ok(Message::PathProbe(probe())));
        bytes[common::CHECKSUM..common::LEN].fill(0);
        let expected = [
            59, 8, 11, 0, 0, 0, 0, 0, 0, 0, 0x7e, 0xd9, 2, 1, 0x80, 0, 0x20, 1, 0x0d, 0xb8, 0, 1, 0, 0, 0, 0,
            0, 0, 0, 0, 0, 5, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0, 0, 0, 1, 0, 0,
            0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 0, 0,
        ];
        assert_eq!(bytes, expected);
    }

    #[test]
    fn counters_that_are_not_known_are_not_made_up() {
        let answer = PathProbe { kind: PathProbeKind::Answer, counts: None, ..probe() };
        let bytes = emit(&answer);
        assert_eq!(bytes[44..68], [0; 24]);
        assert_eq!(altered(&[(12, 3), (14, 0x7f)]), Ok(Message::PathProbe(answer)));
    }

    #[test]
    fn somebody_else_s_experiment_is_no_message_known_here() {
        assert!(matches!(altered(&[(11, 0xda)]), Ok(Message::Unknown(unknown)) if unknown.kind() == 11));
        assert!(UnknownMessage::new(11, &[0; 10]).is_some());
        assert!(UnknownMessage::new(11, &[0, 0, 0, 0, 0x7e, 0xd9, 2, 1, 0, 0]).is_none(), "it would be ours");
    }

    #[test]
    fn what_is_no_probe_of_this_version_is_refused() {
        for (at, value) in [(12, 1), (12, 4), (13, 2)] {
            assert!(matches!(altered(&[(at, value)]), Err(Error::Invalid { .. })), "{at}");
        }
        let mut short = emit(&probe());
        short.truncate(64);
        short[common::HEADER_LEN] = 7;
        short[common::CHECKSUM..common::LEN].fill(0);
        crate::mip6::message::fill_checksum(CARE_OF, HOME_AGENT, &mut short);
        assert!(matches!(Message::parse(CARE_OF, HOME_AGENT, &short), Err(Error::Invalid { .. })));
    }
}
