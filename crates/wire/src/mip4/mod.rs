//! Mobile IPv4 registration (RFC 5944, with the reverse tunnelling of RFC 3024), and route optimisation with smooth hand-off
//! (draft-ietf-mobileip-optim); several care-of addresses at once (RFC 7629, without its Flow-Binding extension).
//!
//! Messages travel in UDP datagrams to and from [`PORT`]. A [`Message`] is a plain value; extensions stay
//! in their order, because the order says what an authenticator covers. Left out, and silently discarded
//! or skipped as the RFC says of extensions it does not define: network access identifiers (RFC 2794),
//! challenges (RFC 4721), critical vendor extensions (RFC 3115), UDP tunnels (RFC 3519), revocation (RFC 3543),
//! regional registration (RFC 4857).

mod authentication;
mod code;
mod extension;
mod flags;
mod message;
mod multipath;
mod path_probe;
mod route_optimization;
mod vendor;

pub use authentication::{Algorithm, append_authentication, verify_authentication};
pub use code::{CodeRange, ReplyCode};
pub use extension::{AuthenticationExtension, AuthenticationKind, Extension, PlacedExtension};
pub use flags::RequestFlags;
pub use message::{Identification, Lifetime, Message, RegistrationReply, RegistrationRequest};
pub use multipath::{MultipathExtension, PathNumber};
pub use path_probe::PathProbe;
pub use route_optimization::{
    BindingAcknowledge, BindingRequest, BindingUpdate, BindingWarning, PreviousForeignAgent,
};
pub use vendor::VendorExtension;

pub use crate::enterprise::ENTERPRISE;
pub use crate::extension::UnknownExtension;
pub use crate::path_probe::{PathCounts, PathProbeKind};
pub use crate::path_report::PathReport;
pub use crate::received_data::{ReceivedData, ReceivedFlow};
pub use crate::spi::Spi;

/// The UDP port mobility agents listen on.
pub const PORT: u16 = 434;
