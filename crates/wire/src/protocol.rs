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
/// IPv6 within IP (RFC 2473, RFC 4213).
pub const IPV6: u8 = 41;
/// The fragment header of IPv6 (RFC 8200 section 4.5).
pub const IPV6_FRAGMENT: u8 = 44;
/// Internet Control Message Protocol for IPv6 (RFC 4443).
pub const ICMPV6: u8 = 58;
/// There is nothing behind this header (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;
/// The Mobility Header (RFC 6275 section 6.1).
pub const MOBILITY_HEADER: u8 = 135;
