//! What a Binding Acknowledgement and a Binding Error say.

crate::numbered::numbered! {
    /// The Status of a Binding Acknowledgement (RFC 6275 section 6.1.8; 4, 5 and 164 to 169: RFC 5648 section 4.4; 144 to 146:
    /// RFC 4285 section 8). `Display` gives the RFC's wording.
    BindingStatus, unknown: "unknown status";

    /// 0.
    Accepted = 0, "Binding Update accepted";
    /// 1: the mobile node is to ask for the prefixes of its home network.
    AcceptedPrefixDiscoveryNecessary = 1, "Accepted but prefix discovery necessary";
    /// 4: of several bindings some were refused; the Status of each Binding Identifier option says which.
    McoaNotComplete = 4, "MCOA NOTCOMPLETE";
    /// 5: at home with other bindings left, the mobile node leaves neighbour discovery for its home address to the home agent.
    McoaReturnHomeWithoutNdp = 5, "MCOA RETURNHOME WO/NDP";

    /// 128.
    ReasonUnspecified = 128, "Reason unspecified";
    /// 129.
    AdministrativelyProhibited = 129, "Administratively prohibited";
    /// 130.
    InsufficientResources = 130, "Insufficient resources";
    /// 131: the node is no home agent.
    HomeRegistrationNotSupported = 131, "Home registration not supported";
    /// 132: the home address is of another prefix than the home agent's.
    NotHomeSubnet = 132, "Not home subnet";
    /// 133: there is no home registration to delete.
    NotHomeAgentForThisMobileNode = 133, "Not home agent for this mobile node";
    /// 134.
    DuplicateAddressDetectionFailed = 134, "Duplicate Address Detection failed";
    /// 135: the Sequence # of the acknowledgement is the last one that was accepted (RFC 6275 section 9.5.1).
    SequenceNumberOutOfWindow = 135, "Sequence number out of window";
    /// 136.
    ExpiredHomeNonceIndex = 136, "Expired home nonce index";
    /// 137.
    ExpiredCareOfNonceIndex = 137, "Expired care-of nonce index";
    /// 138: both have expired.
    ExpiredNonces = 138, "Expired nonces";
    /// 139: the home registration flag differs from that of the binding.
    RegistrationTypeChangeDisallowed = 139, "Registration type change disallowed";
    /// 144: the timestamp is not close enough, or not above all earlier ones (RFC 4285 section 6).
    IdMismatch = 144, "MIPV6-ID-MISMATCH";
    /// 145: the Mobility Message Replay Protection option is missing (RFC 4285 section 6).
    MessageIdRequired = 145, "MIPV6-MESG-ID-REQD";
    /// 146: the authenticator is not that of the mobile node (RFC 4285 section 5.1.1).
    AuthenticationFailed = 146, "MIPV6-AUTH-FAIL";
    /// 164: a Binding Identifier option of another length than 4, 8 or 20, or without a usable address.
    McoaMalformed = 164, "MCOA MALFORMED";
    /// 165: there is a binding without identifier, and the update does not overwrite it.
    McoaNonMcoaBindingExists = 165, "MCOA NON-MCOA BINDING EXISTS";
    /// 166.
    McoaProhibited = 166, "MCOA PROHIBITED";
    /// 167: no care-of address is given and none is known of this identifier. (The RFC writes UNKOWN.)
    McoaUnknownCareOfAddress = 167, "MCOA UNKNOWN COA";
    /// 168: one identifier for each update.
    McoaBulkRegistrationProhibited = 168, "MCOA BULK REGISTRATION PROHIBITED";
    /// 169.
    McoaSimultaneousHomeAndForeignProhibited = 169, "MCOA SIMULTANEOUS HOME AND FOREIGN PROHIBITED";
    /// 174: not a unicast routable address.
    InvalidCareOfAddress = 174, "Invalid Care-of Address";
}

impl BindingStatus {
    /// Whether the binding update was accepted: below 128 (RFC 6275 section 6.1.8).
    #[must_use]
    pub const fn is_accepted(self) -> bool {
        self.number() < 128
    }
}

crate::numbered::numbered! {
    /// The Status of a Binding Error (RFC 6275 section 6.1.9). `Display` gives the RFC's wording.
    BindingErrorStatus, unknown: "unknown status";

    /// 1: a packet claimed a home address of which there is no binding.
    UnknownBinding = 1, "Unknown binding for Home Address destination option";
    /// 2: the sender does not know such messages.
    UnrecognizedMhType = 2, "Unrecognized MH Type value";
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn every_number_survives_the_enums_and_none_with_a_meaning_is_unknown() {
        for number in 0..=u8::MAX {
            assert_eq!(BindingStatus::from_number(number).number(), number);
            assert_eq!(BindingErrorStatus::from_number(number).number(), number);
        }
        for status in BindingStatus::ALL {
            assert_eq!(BindingStatus::from_number(status.number()), *status);
        }
    }

    #[test]
    fn what_is_below_128_is_accepted() {
        let accepted: alloc::vec::Vec<_> =
            BindingStatus::ALL.iter().filter(|status| status.is_accepted()).map(|s| s.number()).collect();
        assert_eq!(accepted, [0, 1, 4, 5]);
        assert!(BindingStatus::Unknown(127).is_accepted());
        assert!(!BindingStatus::Unknown(200).is_accepted());
    }

    #[test]
    fn statuses_speak_as_the_rfc_does() {
        assert_eq!(BindingStatus::from_number(135).to_string(), "Sequence number out of window");
        assert_eq!(BindingStatus::from_number(200).to_string(), "unknown status 200");
        assert_eq!(BindingErrorStatus::from_number(2).to_string(), "Unrecognized MH Type value");
    }
}
