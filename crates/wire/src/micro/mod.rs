//! Messages of micro-mobility protocols inside one domain: Cellular IP, HAWAII, multicast-based mobility (M&M) and the building blocks
//! that they are made of.
//!
//! The protocols were specified with formats of their own, none of which authenticates a message the way the rest of careof does. Here all
//! of them share one layout, so that one parser and one authenticator see to every message:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    Version    |     Type      |     Flags     |     Count     |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Mobile node address                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Station address                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        Origin address                         |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                         Timestamp (64)                        |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                     Count addresses (32 each)                 |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      Authenticator (128)                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! - *Version* is 1. What is not exactly of this version is an error.
//! - *Type* and *Flags*: [`Body`]. A flag that a type does not have is an error, and so is a Count that it cannot have.
//! - *Mobile node address*: whom the message is about; the source address of Cellular IP's control packets and the mobile host of a HAWAII
//!   path setup message. In M&M it stands for the group that it is mapped to.
//! - *Station address*: the base station that the message is for or about. HAWAII names it ("new BS"). Cellular IP does not: there the
//!   path that a packet takes says it. Careof signs it, so that a packet recorded in one cell is worth nothing in another.
//! - *Origin address*: who made and signed the message: the mobile node or a router of the domain.
//! - *Timestamp*: NTP format, as in Cellular IP's control information and in Mobile IP's Identification: it orders the messages of one
//!   origin and makes a replay known.
//! - *Authenticator*: [`AUTHENTICATOR_LEN`] bytes, over everything before it.
//!
//! Messages travel in UDP from neighbour to neighbour, to [`PORT`].

mod authentication;
mod message;

pub use authentication::{AUTHENTICATOR_LEN, append_authenticator, verify_authenticator};
pub use message::{Body, MicroMessage, PathScheme};

/// The UDP port, one of the two for experiments (RFC 4727 section 6).
pub const PORT: u16 = 1021;
