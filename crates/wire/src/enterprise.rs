//! Whose the extensions are that careof adds to Mobile IP.

/// The Private Enterprise Number under which careof's extensions travel, of Mobile IPv4 (RFC 3115) as of Mobile IPv6 (RFC 5094).
///
/// None is registered for careof. This is the one that RFC 5612 sets aside for examples in documentation, so that no
/// vendor's extension can be taken for ours; somebody else's experiment can.
pub const ENTERPRISE: u32 = 32_473;
