//! The IP protocol numbers careof handles.

/// Internet Control Message Protocol.
pub const ICMP: u8 = 1;
/// IPv4 within IPv4 (RFC 2003).
pub const IP_IN_IP: u8 = 4;
/// Transmission Control Protocol.
pub const TCP: u8 = 6;
/// User Datagram Protocol.
pub const UDP: u8 = 17;
/// Generic Routing Encapsulation (RFC 2784).
pub const GRE: u8 = 47;
/// Minimal encapsulation (RFC 2004).
pub const MINIMAL: u8 = 55;
