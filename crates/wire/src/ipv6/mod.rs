//! IPv6 packets (RFC 8200), with what Mobile IPv6 adds to them (RFC 6275 sections 6.3 and 6.4).
//!
//! [`Ipv6Header`] is the header alone. [`Packet::parse`] reads a packet where it has arrived: it walks through the chain of
//! extension headers, judges what is in them, and says what follows. [`ExtensionHeaders`] walks without judging, for whoever looks
//! at packets of others. [`Packet::emit`] makes a packet, [`fragment()`] cuts it, and the [`Reassembler`] puts it together.
//!
//! Left out: jumbograms (RFC 2675), the Authentication Header and all routing headers but type 2 - a packet with segments left in
//! one of those is answered with a Parameter Problem, as RFC 8200 section 4.4 demands of a type that is not known.

mod address;
mod extension_header;
mod extensions;
mod fragmentation;
mod header;
mod option;
mod packet;
mod reassembly;

use core::net::Ipv6Addr;

use crate::checksum;

pub use address::{
    ALL_MLDV2_ROUTERS, ALL_NODES, ALL_ROUTERS, home_agents_anycast, is_link_local, is_solicited_node,
    is_unicast_routable, solicited_node,
};
pub use extension_header::{ExtensionHeader, ExtensionHeaderKind, ExtensionHeaders, FragmentHeader};
pub use extensions::Extensions;
pub use fragmentation::{FragmentationError, fragment};
pub use header::Ipv6Header;
pub use option::{Options, PlacedOption, UnknownOptionAction};
pub use packet::{Packet, PacketError, TooLong, Understood};
pub use reassembly::Reassembler;

pub use crate::reassembly::{ReassemblyCounters, ReassemblyLimits};

/// The checksum of an upper-layer message of `protocol` over its pseudo header (RFC 8200 section 8.1): what belongs into its
/// checksum field, when the field is zero in `message`; zero, when the right value is in there already.
///
/// `source` and `destination` are the home addresses where the packet has a Home Address option or a type 2 routing header.
#[must_use]
pub fn upper_layer_checksum(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, message: &[u8]) -> u16 {
    checksum::finish(
        &checksum::pseudo_header(source, destination, protocol, message.len()).add_slice(message),
    )
}
