//! The codes of a registration reply.

crate::numbered::numbered! {
    /// The Code of a Registration Reply (RFC 5944 section 3.4; 74 to 76, 79 and 137 to 139: RFC 3024
    /// section 3.4). `Display` gives the RFC's wording. [`ReplyCode::range`] tells whose an unknown number is.
    ReplyCode, unknown: "unknown code";

    /// 0, success.
    Accepted = 0, "registration accepted";
    /// 1, success: the other bindings are gone.
    AcceptedWithoutSimultaneousBindings = 1,
        "registration accepted, but simultaneous mobility bindings unsupported";

    /// 64, denied by the foreign agent.
    ForeignReasonUnspecified = 64, "reason unspecified";
    /// 65, denied by the foreign agent.
    ForeignAdministrativelyProhibited = 65, "administratively prohibited";
    /// 66, denied by the foreign agent.
    ForeignInsufficientResources = 66, "insufficient resources";
    /// 67, denied by the foreign agent.
    ForeignMobileNodeFailedAuthentication = 67, "mobile node failed authentication";
    /// 68, denied by the foreign agent.
    ForeignHomeAgentFailedAuthentication = 68, "home agent failed authentication";
    /// 69, denied by the foreign agent; the reply's Lifetime is the longest it accepts in a request (RFC 5944
    /// section 3.6.2.3).
    ForeignRequestedLifetimeTooLong = 69, "requested Lifetime too long";
    /// 70, denied by the foreign agent.
    ForeignPoorlyFormedRequest = 70, "poorly formed Request";
    /// 71, denied by the foreign agent.
    ForeignPoorlyFormedReply = 71, "poorly formed Reply";
    /// 72, denied by the foreign agent.
    ForeignEncapsulationUnavailable = 72, "requested encapsulation unavailable";
    /// 73, denied by the foreign agent.
    ForeignReservedAndUnavailable = 73, "reserved and unavailable";
    /// 74, denied by the foreign agent (RFC 3024).
    ForeignReverseTunnelUnavailable = 74, "requested reverse tunnel unavailable";
    /// 75, denied by the foreign agent (RFC 3024).
    ForeignReverseTunnelMandatory = 75, "reverse tunnel is mandatory and 'T' bit not set";
    /// 76, denied by the foreign agent (RFC 3024): the request did not arrive with TTL 255.
    ForeignMobileNodeTooDistant = 76, "mobile node too distant";
    /// 77, denied by the foreign agent, which does not offer the address; only without the `D` bit and for a
    /// Lifetime above 0 (RFC 5944 section 3.7.2.1).
    ForeignInvalidCareOfAddress = 77, "invalid care-of address";
    /// 78, denied by the foreign agent.
    ForeignRegistrationTimeout = 78, "registration timeout";
    /// 79, denied by the foreign agent (RFC 3024).
    ForeignDeliveryStyleNotSupported = 79, "delivery style not supported";
    /// 80, denied by the foreign agent.
    ForeignHomeNetworkUnreachable = 80, "home network unreachable (ICMP error received)";
    /// 81, denied by the foreign agent.
    ForeignHomeAgentHostUnreachable = 81, "home agent host unreachable (ICMP error received)";
    /// 82, denied by the foreign agent.
    ForeignHomeAgentPortUnreachable = 82, "home agent port unreachable (ICMP error received)";
    /// 88, denied by the foreign agent.
    ForeignHomeAgentUnreachable = 88, "home agent unreachable (other ICMP error received)";
    /// 194, denied by the foreign agent, although the number lies in the range of the gateway's.
    ForeignInvalidHomeAgentAddress = 194, "Invalid Home Agent Address";

    /// 128, denied by the home agent.
    HomeReasonUnspecified = 128, "reason unspecified";
    /// 129, denied by the home agent.
    HomeAdministrativelyProhibited = 129, "administratively prohibited";
    /// 130, denied by the home agent.
    HomeInsufficientResources = 130, "insufficient resources";
    /// 131, denied by the home agent.
    HomeMobileNodeFailedAuthentication = 131, "mobile node failed authentication";
    /// 132, denied by the home agent.
    HomeForeignAgentFailedAuthentication = 132, "foreign agent failed authentication";
    /// 133, denied by the home agent; the reply's Identification is what to synchronise with (RFC 5944
    /// section 3.6.2.3).
    HomeIdentificationMismatch = 133, "registration Identification mismatch";
    /// 134, denied by the home agent.
    HomePoorlyFormedRequest = 134, "poorly formed Request";
    /// 135, denied by the home agent.
    HomeTooManySimultaneousBindings = 135, "too many simultaneous mobility bindings";
    /// 136, denied by the home agent; the reply's Home Agent field tells its address (RFC 5944 section
    /// 3.6.2.3).
    HomeUnknownHomeAgentAddress = 136, "unknown home agent address";
    /// 137, denied by the home agent (RFC 3024).
    HomeReverseTunnelUnavailable = 137, "requested reverse tunnel unavailable";
    /// 138, denied by the home agent (RFC 3024).
    HomeReverseTunnelMandatory = 138, "reverse tunnel is mandatory and 'T' bit not set";
    /// 139, denied by the home agent (RFC 3024).
    HomeEncapsulationUnavailable = 139, "requested encapsulation unavailable";
}

/// Who speaks with a code (RFC 5944 section 6.4: the ranges numbers are assigned from).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodeRange {
    /// 0 to 8: the registration is accepted.
    Success,
    /// 64 to 127, and 194: the foreign agent denied it.
    ForeignAgent,
    /// 128 to 192: the home agent denied it.
    HomeAgent,
    /// 193 and 195 to 200: the gateway foreign agent (RFC 4857) denied it.
    GatewayForeignAgent,
    /// The rest: nobody's.
    Unassigned,
}

impl ReplyCode {
    /// Whose code it is.
    #[must_use]
    pub const fn range(self) -> CodeRange {
        match self.number() {
            0..=8 => CodeRange::Success,
            64..=127 | 194 => CodeRange::ForeignAgent,
            128..=192 => CodeRange::HomeAgent,
            193..=200 => CodeRange::GatewayForeignAgent,
            _ => CodeRange::Unassigned,
        }
    }

    /// Whether the registration is accepted.
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        matches!(self.range(), CodeRange::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_number_survives_the_enum() {
        for number in 0..=u8::MAX {
            assert_eq!(ReplyCode::from_number(number).number(), number);
        }
    }

    #[test]
    fn a_number_with_a_meaning_is_never_unknown() {
        for code in ReplyCode::ALL {
            assert_eq!(ReplyCode::from_number(code.number()), *code);
            assert!(!matches!(code, ReplyCode::Unknown(_)));
        }
    }

    #[test]
    fn names_agree_with_the_range_of_their_number() {
        for code in ReplyCode::ALL {
            let name = alloc::format!("{code:?}");
            let range = if name.starts_with("Foreign") {
                CodeRange::ForeignAgent
            } else if name.starts_with("Home") {
                CodeRange::HomeAgent
            } else {
                CodeRange::Success
            };
            assert_eq!(code.range(), range, "{name}");
        }
        assert_eq!(ReplyCode::Unknown(193).range(), CodeRange::GatewayForeignAgent);
        assert_eq!(ReplyCode::Unknown(201).range(), CodeRange::Unassigned);
        assert_eq!(ReplyCode::Unknown(9).range(), CodeRange::Unassigned);
    }

    #[test]
    fn codes_speak_as_the_rfc_does() {
        assert_eq!(ReplyCode::from_number(133).to_string(), "registration Identification mismatch");
        assert_eq!(ReplyCode::from_number(200).to_string(), "unknown code 200");
    }
}
