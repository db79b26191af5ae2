//! A datagram of either version, as an assistant is shown it.

use careof_wire::ipv4::Ipv4Header;
use careof_wire::ipv6::{ExtensionHeader, ExtensionHeaderKind, ExtensionHeaders, Ipv6Header, Options};
use careof_wire::{IpHeader, Segment, protocol};

/// One datagram, out of any tunnel, as it passes.
///
/// Of IPv6 it is shown what its sender's TCP made: between home addresses, and without extension headers. A Home Address option
/// and a type 2 routing header put other addresses into the header of a packet on its way, but TCP's checksum, and so the flow, is about
/// home addresses (RFC 6275 sections 6.3 and 6.4, RFC 8200 section 8.1). What they add belongs to [`Self::overhead`], as a tunnel does.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    /// Its header. [`Ipv6Header::next_header`] is the upper-layer protocol, and [`Ipv6Header::payload_len`] the length of that alone.
    pub header: IpHeader,
    /// TCP header and length; `None` for another protocol, for a fragment and for what cannot be read.
    pub segment: Option<&'a Segment>,
    /// There are IP options, extension headers beyond those of Mobile IPv6, or TCP options beyond maximum segment size, window scale,
    /// SACK and timestamps (TCP MD5, TCP-AO, Multipath TCP): it may be kept and sent again, but not changed, and nothing is made up in its
    /// name.
    pub is_opaque: bool,
    /// How many bytes are added to the datagram on its mobile node's path, by a tunnel, a Home Address option or a routing header; 0
    /// where nothing is.
    pub overhead: u16,
}

/// What an assistant is shown of the bytes of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPacket {
    /// See [`PacketView::header`].
    pub header: IpHeader,
    /// See [`PacketView::segment`].
    pub segment: Option<Segment>,
    /// See [`PacketView::is_opaque`].
    pub is_opaque: bool,
    /// Where the upper-layer header starts, bytes from the start of the datagram.
    pub payload_offset: usize,
}

impl ReadPacket {
    /// Reads a whole datagram, whatever version it is of; `None` for what is no datagram. The checksum of TCP may be left to a network
    /// device, and is not looked at.
    #[must_use]
    pub fn of(datagram: &[u8]) -> Option<Self> {
        match datagram.first()? >> 4 {
            4 => Self::of_ipv4(datagram),
            6 => Self::of_ipv6(datagram),
            _ => None,
        }
    }

    fn of_ipv4(datagram: &[u8]) -> Option<Self> {
        let (header, payload) = Ipv4Header::parse(datagram).ok()?;
        // Options are not part of a header as it is read.
        let payload_offset = usize::from(datagram.first()? & 0x0f) * 4;
        let has_options = payload_offset > usize::from(Ipv4Header::LEN);
        let is_segment = header.protocol == protocol::TCP && !header.is_fragment();
        Some(Self::new(header.into(), is_segment.then_some(payload), has_options, payload_offset))
    }

    fn of_ipv6(datagram: &[u8]) -> Option<Self> {
        let (mut header, payload) = Ipv6Header::parse(datagram).ok()?;
        let packet = datagram.get(..usize::from(Ipv6Header::LEN) + payload.len())?;
        let mut headers = ExtensionHeaders::of(packet).ok()?;
        let mut is_fragment = false;
        let mut is_opaque = false;
        for extension in headers.by_ref() {
            // What breaks off among its headers shows no upper-layer header.
            let extension = extension.ok()?;
            if let Some(fragment) = extension.fragment() {
                is_fragment |= !fragment.is_atomic();
            }
            is_opaque |= !take_home_address(&extension, &mut header);
        }
        let (protocol, payload_offset) = (headers.protocol(), headers.payload_offset());
        let upper_layer = packet.get(payload_offset..)?;
        header.next_header = protocol;
        header.payload_len = u16::try_from(upper_layer.len()).ok()?;
        let is_segment = protocol == protocol::TCP && !is_fragment;
        Some(Self::new(header.into(), is_segment.then_some(upper_layer), is_opaque, payload_offset))
    }

    fn new(header: IpHeader, tcp: Option<&[u8]>, is_opaque: bool, payload_offset: usize) -> Self {
        let segment = tcp.and_then(|tcp| Segment::peek(tcp).ok());
        let has_other_options = segment.is_some_and(|(_, has_other_options)| has_other_options);
        let segment = segment.map(|(segment, _)| segment);
        Self { header, segment, is_opaque: is_opaque || has_other_options, payload_offset }
    }

    /// What an assistant is shown, on a path that adds `overhead` bytes.
    #[must_use]
    pub const fn view(&self, overhead: u16) -> PacketView<'_> {
        let Self { header, segment, is_opaque, payload_offset: _ } = self;
        PacketView { header: *header, segment: segment.as_ref(), is_opaque: *is_opaque, overhead }
    }
}

/// Puts the home address of an extension header of Mobile IPv6 into its place. Whether it is such a header, and has nothing else in it.
fn take_home_address(extension: &ExtensionHeader<'_>, header: &mut Ipv6Header) -> bool {
    match extension.kind {
        ExtensionHeaderKind::Routing => {
            let home_address = extension.type_2_home_address();
            header.destination = home_address.unwrap_or(header.destination);
            home_address.is_some()
        }
        ExtensionHeaderKind::DestinationOptions => {
            let mut is_alone = true;
            for option in Options::new(extension.bytes) {
                let home_address = option.ok().and_then(|option| option.home_address());
                header.source = home_address.unwrap_or(header.source);
                is_alone &= home_address.is_some();
            }
            is_alone
        }
        ExtensionHeaderKind::HopByHopOptions | ExtensionHeaderKind::Fragment => false,
    }
}
