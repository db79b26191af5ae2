//! What an address may be used for before it is known to be unique: optimistic duplicate address detection (RFC 4429).

/// How far an address of this node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressState {
    /// Its uniqueness is being verified; it is not used (RFC 4862 section 2).
    Tentative,
    /// Its uniqueness is being verified; it is used all the same, with care (RFC 4429 section 1.3).
    Optimistic,
    /// It is used for everything.
    Preferred,
    /// It is used for what began with it (RFC 4862 section 5.5.4).
    Deprecated,
}

/// A use of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressUse {
    /// As the source of packets that are not neighbor discovery, through a router whose link-layer address is known.
    Packet,
    /// As the source of a router solicitation.
    RouterSolicitation,
    /// With a source link-layer address option in that.
    SourceLinkLayerAddress,
    /// As the source of a neighbor solicitation: address resolution, and unreachability detection.
    NeighborSolicitation,
    /// As the target of an advertisement that answers a solicitation from a unicast address.
    AnswerToUnicast,
    /// With the Override flag in that.
    Override,
    /// As the target of an advertisement that answers a duplicate address detection of another node.
    AnswerToDetection,
    /// As the source of communication that begins.
    NewCommunication,
}

/// Whether an address in `state` may be used like that. The lines of the table are rules of RFC 4862 section 5.4, RFC 4429 section 3
/// and RFC 4861 section 7.2.4.
#[must_use]
pub const fn permits(state: AddressState, what: AddressUse) -> bool {
    use AddressState::{Deprecated, Optimistic, Preferred, Tentative};
    match (what, state) {
        (_, Tentative) => false,
        // RFC 4429 section 3.2 forbids the option and the solicitation, section 3.3 the override flag.
        (
            AddressUse::SourceLinkLayerAddress
            | AddressUse::NeighborSolicitation
            | AddressUse::Override
            | AddressUse::AnswerToDetection,
            Optimistic,
        ) => false,
        (
            AddressUse::Packet
            | AddressUse::RouterSolicitation
            | AddressUse::AnswerToUnicast
            | AddressUse::NewCommunication,
            Optimistic,
        ) => true,
        (AddressUse::NewCommunication, Deprecated) => false,
        (_, Preferred | Deprecated) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [AddressUse; 8] = [
        AddressUse::Packet,
        AddressUse::RouterSolicitation,
        AddressUse::SourceLinkLayerAddress,
        AddressUse::NeighborSolicitation,
        AddressUse::AnswerToUnicast,
        AddressUse::Override,
        AddressUse::AnswerToDetection,
        AddressUse::NewCommunication,
    ];

    fn uses(state: AddressState) -> alloc::vec::Vec<bool> {
        ALL.iter().map(|what| permits(state, *what)).collect()
    }

    #[test]
    fn the_table_of_uses_is_that_of_the_rfcs() {
        let (yes, no) = (true, false);
        assert_eq!(uses(AddressState::Tentative), [no; 8]);
        assert_eq!(uses(AddressState::Optimistic), [yes, yes, no, no, yes, no, no, yes]);
        assert_eq!(uses(AddressState::Preferred), [yes; 8]);
        assert_eq!(uses(AddressState::Deprecated), [yes, yes, yes, yes, yes, yes, yes, no]);
    }
}
