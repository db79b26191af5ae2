//! DHCP messages (RFC 2131) and their options (RFC 2132).
//!
//! The options by which an address is obtained and kept have a field each; every other option is kept whole. Options in
//! the `file` and `sname` fields (option overload, RFC 2131 section 4.1) are read like those behind them, and several
//! instances of an option are one option, cut into pieces (RFC 3396). Left out: `sname` and `file` as what they were in
//! BOOTP, which careof boots nothing from: they are sent as zeros.

mod hardware;
mod lease_time;
mod message;
mod options;

pub use hardware::HardwareAddress;
pub use lease_time::LeaseTime;
pub use message::{DhcpMessage, MessageType};
pub use options::UnknownOption;

/// The UDP port of servers (RFC 2131 section 4.1).
pub const SERVER_PORT: u16 = 67;
/// The UDP port of clients (RFC 2131 section 4.1).
pub const CLIENT_PORT: u16 = 68;

/// The codes of options (RFC 2132) that are known here.
pub mod code {
    /// Fills up, without a length.
    pub const PAD: u8 = 0;
    /// Subnet Mask.
    pub const SUBNET_MASK: u8 = 1;
    /// Router.
    pub const ROUTER: u8 = 3;
    /// Requested IP Address.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// IP Address Lease Time.
    pub const LEASE_TIME: u8 = 51;
    /// Option Overload.
    pub const OVERLOAD: u8 = 52;
    /// DHCP Message Type.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Server Identifier.
    pub const SERVER_IDENTIFIER: u8 = 54;
    /// Parameter Request List.
    pub const PARAMETER_REQUEST_LIST: u8 = 55;
    /// Maximum DHCP Message Size.
    pub const MAX_MESSAGE_SIZE: u8 = 57;
    /// Renewal (T1) Time Value.
    pub const RENEWAL_TIME: u8 = 58;
    /// Rebinding (T2) Time Value.
    pub const REBINDING_TIME: u8 = 59;
    /// Client-identifier.
    pub const CLIENT_IDENTIFIER: u8 = 61;
    /// Ends the options of a field, without a length.
    pub const END: u8 = 255;
}
