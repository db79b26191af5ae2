//! Where the headers of a packet end.

use careof_wire::ipv6::{FragmentHeader, Ipv6Header};
use careof_wire::protocol;

/// Headers of tunnels that are looked through.
const DEEPEST: usize = 4;
/// EtherType of IPv4, in a GRE header.
const IPV4: u16 = 0x0800;
/// The extension headers of IPv6 that say how long they are.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION_OPTIONS: u8 = 60;

/// How many bytes the headers of a TCP segment take at the beginning of a datagram: IPv4 or IPv6 with its extension headers, those of
/// tunnels (IP in IP, IPv6 in IPv6, GRE, minimal encapsulation) and TCP, each with its options. Of a later fragment it is the IP
/// header. `None` for other packets and for bytes that are no whole header.
pub(crate) fn headers_len(datagram: &[u8]) -> Option<usize> {
    let byte = |at: usize| datagram.get(at).copied();
    let word = |at: usize| Some(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
    let mut at = 0;
    for _ in 0..DEEPEST {
        let (mut carried, is_later_fragment);
        match byte(at)? >> 4 {
            4 => {
                (carried, is_later_fragment) = (byte(at + 9)?, word(at + 6)? & 0x1fff != 0);
                at += usize::from(byte(at)? & 0xf) * 4;
            }
            6 => (carried, at, is_later_fragment) = ipv6_headers(datagram, at)?,
            _ => return None,
        }
        if is_later_fragment {
            return Some(at);
        }
        if carried == protocol::MINIMAL {
            carried = byte(at)?;
            // With the original source address, or without.
            at += if byte(at + 1)? & 0x80 == 0 { 8 } else { 12 };
        }
        match carried {
            protocol::TCP => return Some(at + usize::from(byte(at + 12)? >> 4) * 4),
            protocol::IP_IN_IP | protocol::IPV6 => {}
            protocol::GRE if word(at + 2)? == IPV4 => {
                // Checksum, key and sequence number are there if their bits are set (RFC 2784, RFC 2890).
                let optional = (word(at)? & 0b1011_0000_0000_0000).count_ones() as usize;
                at += 4 + 4 * optional;
            }
            _ => return None,
        }
    }
    None
}

/// What an IPv6 header at `at` and its extension headers carry, where they end, and whether it is a later fragment.
fn ipv6_headers(datagram: &[u8], at: usize) -> Option<(u8, usize, bool)> {
    let byte = |at: usize| datagram.get(at).copied();
    let (mut carried, mut at) = (byte(at + 6)?, at + usize::from(Ipv6Header::LEN));
    loop {
        let len = match carried {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => (usize::from(byte(at + 1)?) + 1) * 8,
            FRAGMENT => usize::from(FragmentHeader::LEN),
            _ => return Some((carried, at, false)),
        };
        let is_later_fragment = carried == FRAGMENT && (byte(at + 2)? != 0 || byte(at + 3)? & !7 != 0);
        carried = byte(at)?;
        at += len;
        if is_later_fragment {
            return Some((carried, at, true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::headers_len;

    /// An IPv4 header of `len` bytes before `payload`.
    fn ip(protocol: u8, len: u8, offset: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; usize::from(len)];
        bytes[0] = 0x40 | (len / 4);
        bytes[6..8].copy_from_slice(&(offset / 8).to_be_bytes());
        bytes[9] = protocol;
        [&bytes, payload].concat()
    }

    /// A TCP header with 12 bytes of options, and data.
    fn segment() -> Vec<u8> {
        let mut bytes = vec![0xff; 532];
        bytes[12] = 8 << 4;
        bytes
    }

    /// An IPv6 header with extension headers before `payload`; each is a kind and its bytes, the first of which is filled in.
    fn ip6(protocol: u8, extensions: &[(u8, &[u8])], payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 40];
        bytes[0] = 0x60;
        bytes[6] = extensions.first().map_or(protocol, |(kind, _)| *kind);
        for (n, (_, header)) in extensions.iter().enumerate() {
            let next = extensions.get(n + 1).map_or(protocol, |(kind, _)| *kind);
            bytes.push(next);
            bytes.extend_from_slice(&header[1..]);
        }
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn headers_of_ipv6_end_behind_tcp_whatever_stands_between() {
        let option = [0, 2, 1, 2, 0, 0, 201, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let plain = ip6(6, &[], &segment());
        assert_eq!(headers_len(&plain), Some(72));
        assert_eq!(headers_len(&ip6(6, &[(60, &option)], &segment())), Some(96));
        assert_eq!(headers_len(&ip6(6, &[(43, &option), (60, &option)], &segment())), Some(120));
        assert_eq!(headers_len(&ip6(41, &[], &plain)), Some(112));
        assert_eq!(headers_len(&ip6(41, &[(44, &[0, 0, 0, 1, 0, 0, 0, 9])], &plain)), Some(120));
        assert_eq!(headers_len(&ip6(41, &[(44, &[0, 0, 4, 0x51, 0, 0, 0, 9])], &plain)), Some(48));
        for len in 0..73 {
            assert_eq!(headers_len(&ip6(6, &[(60, &option)], &segment())[..len]), None, "{len}");
        }
    }

    #[test]
    fn headers_end_behind_tcp_whatever_the_tunnel() {
        let plain = ip(6, 20, 0, &segment());
        assert_eq!(headers_len(&plain), Some(52));
        assert_eq!(headers_len(&ip(6, 24, 0, &segment())), Some(56));
        assert_eq!(headers_len(&ip(4, 20, 0, &plain)), Some(72));
        assert_eq!(headers_len(&ip(4, 20, 0, &ip(4, 20, 0, &plain))), Some(92));
        let gre = |flags: u8, rest: usize| [&[flags, 0, 8, 0], &*vec![0; rest], &plain].concat();
        assert_eq!(headers_len(&ip(47, 20, 0, &gre(0, 0))), Some(76));
        assert_eq!(headers_len(&ip(47, 20, 0, &gre(0b1010_0000, 8))), Some(84));
        let minimal = |flags: u8, len: usize| [&[6, flags], &*vec![0; len - 2], &segment()].concat();
        assert_eq!(headers_len(&ip(55, 20, 0, &minimal(0, 8))), Some(60));
        assert_eq!(headers_len(&ip(55, 20, 0, &minimal(0x80, 12))), Some(64));
    }

    #[test]
    fn a_later_fragment_has_an_ip_header_and_other_packets_are_not_looked_into() {
        assert_eq!(headers_len(&ip(6, 20, 800, &[0; 100])), Some(20));
        assert_eq!(headers_len(&ip(17, 20, 0, &[0; 100])), None);
        assert_eq!(headers_len(&ip(47, 20, 0, &[0, 0, 0x86, 0xdd, 0x60])), None);
        assert_eq!(headers_len(&ip6(58, &[], &[0; 100])), None);
    }

    #[test]
    fn what_is_cut_off_is_no_header() {
        let tunnelled = ip(4, 20, 0, &ip(6, 20, 0, &segment()));
        for len in 0..53 {
            assert_eq!(headers_len(&tunnelled[..len]), None, "{len}");
        }
    }
}
