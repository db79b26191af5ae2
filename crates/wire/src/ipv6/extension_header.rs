//! The chain of extension headers (RFC 8200 section 4).

use core::net::Ipv6Addr;

use super::extensions::{TUNNEL_ENCAPSULATION_LIMIT, TYPE_2, type_2_routing};
use super::{Ipv6Header, Options};
use crate::Error;
use crate::fixed::Fixed;

/// Next Header values of extension headers.
pub(super) mod kind {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const DESTINATION: u8 = 60;
}

/// The extension headers that are walked through. All others - Authentication, Encapsulating Security Payload, the Mobility
/// Header - are the packet's payload here, as an upper-layer header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtensionHeaderKind {
    /// Hop-by-Hop Options (0).
    HopByHopOptions,
    /// Routing (43).
    Routing,
    /// Fragment (44).
    Fragment,
    /// Destination Options (60).
    DestinationOptions,
}

impl ExtensionHeaderKind {
    const fn from_next_header(next_header: u8) -> Option<Self> {
        match next_header {
            kind::HOP_BY_HOP => Some(Self::HopByHopOptions),
            kind::ROUTING => Some(Self::Routing),
            kind::FRAGMENT => Some(Self::Fragment),
            kind::DESTINATION => Some(Self::DestinationOptions),
            _ => None,
        }
    }
}

/// A Fragment header (RFC 8200 section 4.5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FragmentHeader {
    /// What the fragmentable part of the original packet begins with.
    pub next_header: u8,
    /// Fragment Offset: where the fragment belongs in the fragmentable part, bytes; a multiple of 8.
    pub offset: u16,
    /// M: this is not the last fragment.
    pub more_fragments: bool,
    /// Tells the fragments of one packet from those of another.
    pub identification: u32,
}

impl FragmentHeader {
    /// Bytes of the header.
    pub const LEN: u16 = 8;

    /// Whether the packet is whole although it has a Fragment header: an atomic fragment (RFC 6946).
    #[must_use]
    pub const fn is_atomic(&self) -> bool {
        self.offset == 0 && !self.more_fragments
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let (fixed, _) = Fixed::<{ Self::LEN as usize }>::split(bytes, "Fragment header")?;
        let offset_and_flag = fixed.u16::<2>();
        Ok(Self {
            next_header: fixed.u8::<0>(),
            offset: offset_and_flag & !7,
            more_fragments: offset_and_flag & 1 != 0,
            identification: fixed.u32::<4>(),
        })
    }

    /// The 8 bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LEN as usize] {
        debug_assert!(self.offset.is_multiple_of(8), "the Fragment Offset counts units of 8 bytes");
        let mut fixed = Fixed::<{ Self::LEN as usize }>::ZERO;
        fixed.put::<0, 1>([self.next_header]);
        fixed.put::<2, 2>(((self.offset & !7) | u16::from(self.more_fragments)).to_be_bytes());
        fixed.put::<4, 4>(self.identification.to_be_bytes());
        *fixed.bytes()
    }
}

/// An extension header as it stands in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ExtensionHeader<'a> {
    /// Which.
    pub kind: ExtensionHeaderKind,
    /// Where it starts, bytes from the start of the packet.
    pub offset: usize,
    /// Where the Next Header field stands that names it, bytes from the start of the packet.
    pub named_at: usize,
    /// All of it.
    pub bytes: &'a [u8],
}

impl ExtensionHeader<'_> {
    /// The Fragment header, if it is one.
    #[must_use]
    pub fn fragment(&self) -> Option<FragmentHeader> {
        (self.kind == ExtensionHeaderKind::Fragment).then(|| FragmentHeader::decode(self.bytes).ok())?
    }

    /// The home address in it, if it is a sound type 2 routing header.
    #[must_use]
    pub fn type_2_home_address(&self) -> Option<Ipv6Addr> {
        let is_type_2 = self.kind == ExtensionHeaderKind::Routing && self.bytes.get(2) == Some(&TYPE_2);
        is_type_2.then(|| type_2_routing(self.bytes, self.offset).ok())?
    }

    /// The Tunnel Encapsulation Limit in it, if it is a destination options header with that option, and where its value stands,
    /// bytes from the start of the packet.
    #[must_use]
    pub fn encapsulation_limit(&self) -> Option<(u8, u32)> {
        if self.kind != ExtensionHeaderKind::DestinationOptions {
            return None;
        }
        Options::new(self.bytes).flatten().find_map(|option| match (option.kind, option.data) {
            (TUNNEL_ENCAPSULATION_LIMIT, &[limit]) => Some((limit, (self.offset + option.offset + 2) as u32)),
            _ => None,
        })
    }
}

/// Walks through the extension headers of a packet, in order, without judging what is in them. It ends behind the last one, or
/// with the first error; then [`protocol`](Self::protocol) and [`payload_offset`](Self::payload_offset) say what follows.
///
/// Behind the Fragment header of any fragment but the first there are no headers, so the walk ends there.
#[derive(Clone, Debug)]
pub struct ExtensionHeaders<'a> {
    packet: &'a [u8],
    at: usize,
    next_header: u8,
    named_at: usize,
    left: u8,
    is_fragment: bool,
}

impl<'a> ExtensionHeaders<'a> {
    /// The most extension headers a packet may have. RFC 8504 section 5.3 lets a node limit them; in the recommended order of
    /// RFC 8200 section 4.1, with two routing headers, there are six. The Fragment header of a piece is one more: what may be sent whole
    /// may be cut.
    pub const MAX: u8 = 8;

    /// Those of `packet`, or of the start of one.
    ///
    /// # Errors
    ///
    /// Bytes that do not begin with an IPv6 header.
    pub fn of(packet: &'a [u8]) -> Result<Self, Error> {
        Ipv6Header::parse_start(packet).map(|(header, _)| Self::new(packet, &header))
    }

    /// Those of `packet`, whose header is `header`.
    pub(crate) fn new(packet: &'a [u8], header: &Ipv6Header) -> Self {
        Self {
            packet,
            at: usize::from(Ipv6Header::LEN),
            next_header: header.next_header,
            named_at: Ipv6Header::NEXT_HEADER,
            left: Self::MAX,
            is_fragment: false,
        }
    }

    /// What follows the headers walked through so far: the Next Header value of the last.
    #[must_use]
    pub const fn protocol(&self) -> u8 {
        self.next_header
    }

    /// Where that value stands, bytes from the start of the packet.
    #[must_use]
    pub const fn named_at(&self) -> usize {
        self.named_at
    }

    /// Where what follows the headers walked through so far starts, bytes from the start of the packet.
    #[must_use]
    pub const fn payload_offset(&self) -> usize {
        self.at
    }

    fn end(&mut self) {
        self.packet = &[];
    }

    /// Whether a header is the one by which a packet was cut.
    fn cuts(&self, kind: ExtensionHeaderKind) -> bool {
        kind == ExtensionHeaderKind::Fragment && !self.is_fragment
    }

    fn split(&self, kind: ExtensionHeaderKind) -> Result<&'a [u8], Error> {
        const WHAT: &str = "IPv6 extension header";
        let rest = self.packet.get(self.at..).unwrap_or_default();
        if self.left == 0 && !self.cuts(kind) {
            let field = "IPv6 extension headers";
            let found = u32::from(Self::MAX) + 1;
            return Err(Error::Invalid { field, offset: self.at, found, expected: "8 or fewer" });
        }
        let needed = match (kind, rest.get(1)) {
            (ExtensionHeaderKind::Fragment, _) => usize::from(FragmentHeader::LEN),
            (_, Some(&units)) => 8 + usize::from(units) * 8,
            (_, None) => 8,
        };
        let truncated = Error::Truncated { what: WHAT, offset: self.at, needed, found: rest.len() };
        rest.get(..needed).ok_or(truncated)
    }
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = Result<ExtensionHeader<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.packet.is_empty() {
            return None;
        }
        let kind = ExtensionHeaderKind::from_next_header(self.next_header)?;
        let bytes = match self.split(kind) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.end();
                return Some(Err(error));
            }
        };
        let header = ExtensionHeader { kind, offset: self.at, named_at: self.named_at, bytes };
        self.named_at = self.at;
        self.next_header = bytes.first().copied().unwrap_or_default();
        self.at += bytes.len();
        if self.cuts(kind) {
            self.is_fragment = true;
        } else {
            self.left -= 1;
        }
        if kind == ExtensionHeaderKind::Fragment
            && FragmentHeader::decode(bytes).is_ok_and(|fragment| fragment.offset != 0)
        {
            self.end();
        }
        Some(Ok(header))
    }
}
