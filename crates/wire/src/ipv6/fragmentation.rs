//! Cutting a packet to an MTU, at its source (RFC 8200 section 4.5).

use alloc::vec::Vec;

use super::extension_header::{ExtensionHeader, ExtensionHeaderKind, ExtensionHeaders, FragmentHeader, kind};
use super::{Ipv6Header, Options};
use crate::{Error, protocol};

/// The unit of the Fragment Offset, bytes.
const UNIT: usize = 8;

/// Why a packet cannot be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FragmentationError {
    /// It is no packet.
    #[error(transparent)]
    Malformed(#[from] Error),
    /// It is a fragment already. Only the source cuts a packet, and only once.
    #[error("the packet is a fragment already")]
    AlreadyFragment,
    /// The MTU leaves no room for 8 bytes behind the headers of each fragment.
    #[error("an MTU of {mtu} leaves no room behind headers of {headers_len} bytes")]
    MtuTooSmall {
        /// The MTU, bytes.
        mtu: u16,
        /// Bytes in front of each fragment's part of the payload.
        headers_len: usize,
    },
    /// The first fragment would not hold all headers up to the upper-layer header (RFC 7112 section 5).
    #[error("an MTU of {mtu} does not hold the {chain_len} bytes of the header chain in the first fragment")]
    ChainTooLong {
        /// The MTU, bytes.
        mtu: u16,
        /// Bytes of the first fragment with all headers, that of the fragment included.
        chain_len: usize,
    },
}

/// The headers of a packet, as fragmentation divides them.
pub(super) struct Parts {
    /// Where the Next Header field stands that names what the fragmentable part begins with.
    pub(super) named_at: usize,
    /// What that is.
    pub(super) next_header: u8,
    /// Where the fragmentable part starts.
    pub(super) fragmentable_at: usize,
    /// Where the upper-layer header starts.
    pub(super) upper_layer_at: usize,
    /// What that is.
    pub(super) protocol: u8,
}

impl Parts {
    /// Those of `packet`. The part that goes into each fragment ends with the last of the headers that nodes on the way look at
    /// (RFC 8200 section 4.5) and of the options that hold a Home Address (RFC 6275 section 6.3).
    fn of(packet: &[u8], header: &Ipv6Header) -> Result<Self, FragmentationError> {
        let mut headers = ExtensionHeaders::new(packet, header);
        let mut named_at = Ipv6Header::NEXT_HEADER;
        let mut next_header = header.next_header;
        let mut fragmentable_at = usize::from(Ipv6Header::LEN);
        while let Some(extension) = headers.next() {
            let extension = extension?;
            if extension.kind == ExtensionHeaderKind::Fragment {
                return Err(FragmentationError::AlreadyFragment);
            }
            if goes_into_each_fragment(&extension) {
                named_at = headers.named_at();
                next_header = headers.protocol();
                fragmentable_at = headers.payload_offset();
            }
        }
        let (upper_layer_at, protocol) = (headers.payload_offset(), headers.protocol());
        Ok(Self { named_at, next_header, fragmentable_at, upper_layer_at, protocol })
    }
}

fn goes_into_each_fragment(extension: &ExtensionHeader<'_>) -> bool {
    match extension.kind {
        ExtensionHeaderKind::HopByHopOptions | ExtensionHeaderKind::Routing => true,
        ExtensionHeaderKind::DestinationOptions => {
            Options::new(extension.bytes).flatten().any(|option| option.home_address().is_some())
        }
        ExtensionHeaderKind::Fragment => false,
    }
}

/// Bytes of the upper-layer header at the start of `payload` that the first fragment has to hold (RFC 7112 section 3): all of TCP's
/// with its options, and what others have at least. A second IPv6 header is one too, and ends the chain.
pub(super) fn upper_layer_header_len(protocol: u8, payload: &[u8]) -> usize {
    match protocol {
        protocol::TCP => payload.get(12).map_or(20, |offset| usize::from(offset >> 4).max(5) * 4),
        protocol::UDP | protocol::ICMPV6 => 8,
        protocol::MOBILITY_HEADER => payload.get(1).map_or(8, |&units| 8 + usize::from(units) * 8),
        protocol::IPV6 => usize::from(Ipv6Header::LEN),
        protocol::IP_IN_IP => 20,
        _ => 0,
    }
}

/// Cuts `packet` into fragments of at most `mtu` bytes; one that fits comes back as it is. `identification` must differ from that
/// of any other packet between the two addresses that was cut recently, and not be foreseeable (RFC 7739).
///
/// # Errors
///
/// [`FragmentationError`]; nothing has been cut then.
pub fn fragment(packet: &[u8], mtu: u16, identification: u32) -> Result<Vec<Vec<u8>>, FragmentationError> {
    let (header, payload) = Ipv6Header::parse(packet)?;
    let packet = packet.get(..usize::from(Ipv6Header::LEN) + payload.len()).unwrap_or(packet);
    if packet.len() <= usize::from(mtu) {
        return Ok(alloc::vec![packet.to_vec()]);
    }
    let parts = Parts::of(packet, &header)?;
    let (unfragmentable, mut fragmentable) =
        packet.split_at_checked(parts.fragmentable_at).unwrap_or((packet, &[]));
    let headers_len = unfragmentable.len() + usize::from(FragmentHeader::LEN);
    let room = usize::from(mtu).saturating_sub(headers_len);
    if room < UNIT {
        return Err(FragmentationError::MtuTooSmall { mtu, headers_len });
    }
    let upper_layer = packet.get(parts.upper_layer_at..).unwrap_or_default();
    let chain = parts.upper_layer_at - parts.fragmentable_at
        + upper_layer_header_len(parts.protocol, upper_layer).min(upper_layer.len());
    // All fragments but the last hold a multiple of 8 bytes, and the first is never the last here.
    if chain > room / UNIT * UNIT {
        let chain_len = headers_len + chain;
        return Err(FragmentationError::ChainTooLong { mtu, chain_len });
    }
    let mut fragments = Vec::with_capacity(fragmentable.len() / room + 1);
    let mut offset = 0;
    while !fragmentable.is_empty() {
        let take = if fragmentable.len() <= room { fragmentable.len() } else { room / UNIT * UNIT };
        let (now, later) = fragmentable.split_at(take);
        let fragment = FragmentHeader {
            next_header: parts.next_header,
            // A packet has no more than 65,535 bytes behind its header.
            offset: offset as u16,
            more_fragments: !later.is_empty(),
            identification,
        };
        let mut bytes = Vec::with_capacity(headers_len + take);
        bytes.extend(unfragmentable);
        bytes.extend(fragment.to_bytes());
        bytes.extend(now);
        set_byte(&mut bytes, parts.named_at, kind::FRAGMENT);
        set_payload_len(&mut bytes);
        fragments.push(bytes);
        offset += take;
        fragmentable = later;
    }
    Ok(fragments)
}

pub(super) fn set_byte(packet: &mut [u8], at: usize, value: u8) {
    if let Some(place) = packet.get_mut(at) {
        *place = value;
    }
}

/// Makes the Payload Length that of the packet.
pub(super) fn set_payload_len(packet: &mut [u8]) {
    let len = packet.len().saturating_sub(usize::from(Ipv6Header::LEN));
    let place = packet.get_mut(Ipv6Header::PAYLOAD_LENGTH..Ipv6Header::PAYLOAD_LENGTH + 2);
    if let (Some(place), Ok(len)) = (place, u16::try_from(len)) {
        place.copy_from_slice(&len.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use core::net::Ipv6Addr;

    use super::*;
    use crate::ipv6::{Extensions, Packet, Understood};

    const HEADER: Ipv6Header = Ipv6Header {
        source: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
        destination: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2),
        next_header: 0,
        hop_limit: 63,
        traffic_class: 0,
        flow_label: 7,
        payload_len: 0,
    };

    fn packet(extensions: &Extensions, protocol: u8, len: u16) -> Vec<u8> {
        let mut bytes = Vec::new();
        let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
        Packet::emit(&HEADER, extensions, protocol, &payload, &mut bytes).unwrap();
        bytes
    }

    fn shapes(fragments: &[Vec<u8>]) -> Vec<(u16, usize, bool)> {
        let shape = |bytes: &Vec<u8>| {
            let packet = Packet::parse(bytes, Understood::MOBILE_IPV6).unwrap();
            assert_eq!((packet.header.hop_limit, packet.header.flow_label), (63, 7));
            let fragment = packet.fragment.unwrap();
            assert_eq!(fragment.identification, 0xdead_beef);
            (fragment.offset, packet.payload.len(), fragment.more_fragments)
        };
        fragments.iter().map(shape).collect()
    }

    #[test]
    fn fragments_are_cut_at_multiples_of_eight() {
        let bytes = packet(&Extensions::NONE, protocol::UDP, 100);
        assert_eq!(fragment(&bytes, 140, 1).unwrap(), [&bytes[..]]);
        let fragments = fragment(&bytes, 95, 0xdead_beef).unwrap();
        assert_eq!(shapes(&fragments), [(0, 40, true), (40, 40, true), (80, 20, false)]);
        assert_eq!(fragments[1][6], 44);
        assert_eq!(fragments[1][40], protocol::UDP);
    }

    #[test]
    fn what_nodes_on_the_way_look_at_and_the_home_address_go_into_each_fragment() {
        let (home, visited) = (Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1), HEADER.source);
        let extensions = Extensions {
            router_alert: Some(0),
            type_2_routing: Some(visited),
            home_address: Some(home),
            encapsulation_limit: None,
        };
        let fragments = fragment(&packet(&extensions, protocol::UDP, 100), 160, 0xdead_beef).unwrap();
        assert_eq!(shapes(&fragments).len(), 2);
        for bytes in &fragments {
            let packet = Packet::parse(bytes, Understood::MOBILE_IPV6).unwrap();
            assert_eq!((packet.extensions, packet.protocol), (extensions, protocol::UDP));
        }
        // Options for the destination alone are part of what is cut.
        let extensions = Extensions { encapsulation_limit: Some(4), ..Extensions::NONE };
        let fragments = fragment(&packet(&extensions, protocol::UDP, 100), 96, 0xdead_beef).unwrap();
        assert_eq!(shapes(&fragments), [(0, 48, true), (48, 48, true), (96, 12, false)]);
        assert_eq!(fragments[0][40], 60);
    }

    #[test]
    fn the_first_fragment_holds_the_whole_chain_of_headers() {
        let mut bytes = packet(&Extensions::NONE, protocol::TCP, 100);
        bytes[40 + 12] = 15 << 4;
        assert_eq!(
            fragment(&bytes, 107, 1),
            Err(FragmentationError::ChainTooLong { mtu: 107, chain_len: 108 })
        );
        assert!(matches!(fragment(&bytes, 108, 1), Err(FragmentationError::ChainTooLong { .. })));
        assert_eq!(fragment(&bytes, 112, 1).unwrap().len(), 2);
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let bytes = packet(&Extensions::NONE, 254, 100);
        assert_eq!(
            fragment(&bytes, 55, 1),
            Err(FragmentationError::MtuTooSmall { mtu: 55, headers_len: 48 })
        );
        assert_eq!(fragment(&bytes, 56, 1).unwrap().len(), 13);
        let first = fragment(&bytes, 100, 1).unwrap().remove(0);
        assert_eq!(fragment(&first, 60, 1), Err(FragmentationError::AlreadyFragment));
        assert!(matches!(fragment(&bytes[..139], 60, 1), Err(FragmentationError::Malformed(_))));
    }
}
