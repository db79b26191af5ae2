//! Mobile IPv6: the Mobility Header (RFC 6275 section 6.1), with the authentication of RFC 4285, the mobile node identifier
//! of RFC 4283, several care-of addresses (RFC 5648), the IPv4 addresses of RFC 5555, options of vendors (RFC 5094), probes of paths in
//! experimental messages (RFC 5096) and fast handovers (RFC 5568).
//!
//! The header follows one whose Next Header is [`PROTOCOL`]. A [`Message`] is a plain value; its options stay in their order.
//! Padding is no part of it: `emit` puts every option where its alignment wants it and fills the gaps, `parse` skips
//! what fills them. The care-of address and the home address are no part of it either, where they are in the IPv6 header, a Home
//! Address option or a type 2 routing header around it.
//!
//! Three ways to authenticate are here: Binding Authorization Data, with the key that return routability makes
//! ([`BindingManagementKey`]), the Mobility Message Authentication option, with a key that both ends have
//! ([`MobileHomeAuthentication`]), and the one of fast handovers, with a key of mobile node and access router
//! ([`FastBindingAuthorization`]). All are checked over the bytes as they came in. Left out, and skipped as options of unknown types or
//! kept as [`Message::Unknown`]: proxy registration (RFC 5213), mobile networks (RFC 3963), enhanced route optimisation (RFC 4866), revocation (RFC 5846).

mod authentication;
mod binding_identifier;
mod dual_stack;
mod fast_handover;
mod flags;
mod lifetime;
mod message;
mod option;
mod path_probe;
mod proof;
mod return_routability;
mod sequence;
mod status;
mod vendor;

pub use authentication::{
    Algorithm, BindingAuthorization, BindingManagementKey, FastBindingAuthorization,
    MobileHomeAuthentication, NodeKey, Nonce,
};
pub use binding_identifier::{BindingId, BindingIdentifier};
pub use dual_stack::{
    DSMIPV6_NAT_REFRESH_SECS, DSMIPV6_PORT, Ipv4AddressAcknowledgement, Ipv4AddressStatus, Ipv4HomeAddress,
    NatDetection,
};
pub use fast_handover::{
    FastAuthorizationData, FastBindingAcknowledgement, FastBindingStatus, HandoverAcknowledge, HandoverCode,
    HandoverInitiate, InitiateCode,
};
pub use flags::{AcknowledgementFlags, UpdateFlags};
pub use lifetime::Lifetime;
pub use message::{
    BindingAcknowledgement, BindingError, BindingRefreshRequest, BindingUpdate, Message, TooLong,
    UnknownMessage,
};
pub use option::{MalformedBindingIdentifier, MobilityOption, MobilityOptions, NonceIndices, UnknownOption};
pub use path_probe::PathProbe;
pub use proof::{
    AuthenticationSubtype, Authenticator, MessageAuthentication, MobileNodeIdentifier, NtpTimestamp,
};
pub use return_routability::{
    CareOfTest, CareOfTestInit, HomeTest, HomeTestInit, InitCookie, KeygenToken, NonceIndex,
};
pub use sequence::SequenceNumber;
pub use status::{BindingErrorStatus, BindingStatus};
pub use vendor::{ToldPath, VendorOption};

pub use crate::enterprise::ENTERPRISE;
pub use crate::fast_handover::{AddressRole, HandoverAddress, HandoverLinkLayerAddress, LinkLayerRole};
pub use crate::path_probe::{PathCounts, PathProbeKind};
pub use crate::path_report::PathReport;
pub use crate::received_data::{ReceivedData, ReceivedFlow};
pub use crate::spi::Spi;

/// The Next Header value in front of a Mobility Header (RFC 6275 section 6.1.1).
pub const PROTOCOL: u8 = 135;
