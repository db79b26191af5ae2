//! The datagram an ICMP error is about.

use alloc::vec::Vec;

use etherparse::icmpv4::{
    TYPE_ECHO_REPLY, TYPE_ECHO_REQUEST, TYPE_ROUTER_ADVERTISEMENT, TYPE_ROUTER_SOLICITATION, TYPE_TIMESTAMP,
    TYPE_TIMESTAMP_REPLY,
};

use super::HEADER_LEN;
use crate::ipv4::{Ipv4Header, Received};
use crate::{Error, SeqNumber, protocol};

/// Source and destination port, and the sequence number.
///
/// The 8 bytes of payload every ICMP error quotes hold just these of a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotedPorts {
    /// Source port of the datagram, which is the receiver of the error.
    pub source_port: u16,
    /// Destination port of the datagram.
    pub destination_port: u16,
    /// Sequence number, where it is TCP.
    pub seq: Option<SeqNumber>,
}

impl QuotedPorts {
    /// Those in the quoted `payload` of a packet; `None` of protocols other than TCP and UDP and where too little is quoted.
    pub(crate) fn of(protocol: u8, payload: &[u8]) -> Option<Self> {
        let is_tcp = protocol == protocol::TCP;
        if !is_tcp && protocol != protocol::UDP {
            return None;
        }
        let &[a, b, c, d, rest @ ..] = payload.first_chunk::<8>()?;
        Some(Self {
            source_port: u16::from_be_bytes([a, b]),
            destination_port: u16::from_be_bytes([c, d]),
            seq: is_tcp.then_some(SeqNumber(u32::from_be_bytes(rest))),
        })
    }
}

/// The start of a datagram, as an ICMP error quotes it: the header and at least 8 bytes of payload
/// (RFC 792), more from most routers (RFC 1812 section 4.3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QuotedDatagram<'a> {
    /// Its header, as the router that met the error saw it; the payload length is that of the datagram,
    /// not of the quotation.
    pub header: Ipv4Header,
    /// Bytes its header takes in the quotation, options included.
    pub header_len: usize,
    /// As much of its payload as is quoted.
    pub payload: &'a [u8],
}

impl<'a> QuotedDatagram<'a> {
    /// Reads a quotation. The checksum is not looked at: routers quote headers they had begun to change.
    ///
    /// # Errors
    ///
    /// Bytes that are not the start of an IPv4 datagram.
    pub fn parse(quoted: &'a [u8]) -> Result<Self, Error> {
        let Received { header, header_len, rest, .. } = Received::parse(quoted)?;
        let payload = rest.get(..usize::from(header.payload_len)).unwrap_or(rest);
        Ok(Self { header, header_len, payload })
    }

    /// The ports of a TCP or UDP datagram; `None` of other protocols, of later fragments and where too
    /// little is quoted.
    #[must_use]
    pub fn ports(&self) -> Option<QuotedPorts> {
        if self.header.fragment_offset != 0 {
            return None;
        }
        QuotedPorts::of(self.header.protocol, self.payload)
    }
}

/// What an ICMP error about `datagram` quotes: as much of it as keeps the error, with its own headers,
/// within 576 bytes (RFC 1812 section 4.3.2.3).
#[must_use]
pub fn quote(datagram: &[u8]) -> Vec<u8> {
    const MAX_QUOTED: usize = 576 - Ipv4Header::LEN as usize - HEADER_LEN;
    datagram.get(..MAX_QUOTED).unwrap_or(datagram).to_vec()
}

/// The least that an ICMP error quotes of a TCP segment (RFC 792), for whoever has nothing but what is in it: the header of
/// its datagram, the ports, source first, and the sequence number.
#[must_use]
pub fn quote_segment(
    header: &Ipv4Header,
    (source_port, destination_port): (u16, u16),
    seq: SeqNumber,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::from(Ipv4Header::LEN) + 8);
    header.emit(&mut bytes);
    bytes.extend(source_port.to_be_bytes());
    bytes.extend(destination_port.to_be_bytes());
    bytes.extend(seq.0.to_be_bytes());
    bytes
}

/// Whether an ICMP error may be sent about a datagram with this header and, at least the start of, this
/// payload (RFC 1122 section 3.2.2): not about an ICMP error, a fragment other than the first, a datagram
/// to many, or one from no single host (no, a loopback, a multicast, a broadcast or a Class E address). Of
/// directed and link-layer broadcasts the caller has to know.
#[must_use]
pub fn error_is_allowed(header: &Ipv4Header, payload: &[u8]) -> bool {
    let to_many = header.destination.is_multicast() || header.destination.is_broadcast();
    let Ipv4Header { source, .. } = header;
    // Class E includes the limited broadcast.
    let is_class_e = source.octets()[0] >= 240;
    let from_one = !(source.is_unspecified() || source.is_loopback() || source.is_multicast() || is_class_e);
    let is_icmp_error = header.protocol == protocol::ICMP
        && !matches!(
            payload.first(),
            Some(
                &(TYPE_ECHO_REPLY
                    | TYPE_ECHO_REQUEST
                    | TYPE_ROUTER_ADVERTISEMENT
                    | TYPE_ROUTER_SOLICITATION
                    | TYPE_TIMESTAMP
                    | TYPE_TIMESTAMP_REPLY)
            )
        );
    from_one && !to_many && !is_icmp_error && header.fragment_offset == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    fn quoted(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Ipv4Header { protocol, payload_len: 1000, ..Ipv4Header::default() }.emit(&mut bytes);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn eight_bytes_of_tcp_tell_ports_and_sequence_number() {
        let bytes = quoted(protocol::TCP, &[0, 80, 0x12, 0x34, 1, 2, 3, 4]);
        let datagram = QuotedDatagram::parse(&bytes).unwrap();
        assert_eq!(datagram.header.payload_len, 1000);
        let expected =
            QuotedPorts { source_port: 80, destination_port: 0x1234, seq: Some(SeqNumber(0x0102_0304)) };
        assert_eq!(datagram.ports(), Some(expected));
        let header = Ipv4Header { protocol: protocol::TCP, payload_len: 1000, ..Ipv4Header::default() };
        assert_eq!(quote_segment(&header, (80, 0x1234), SeqNumber(0x0102_0304)), bytes);
    }

    #[test]
    fn too_little_or_something_else_tells_no_ports() {
        assert_eq!(QuotedDatagram::parse(&quoted(protocol::TCP, &[0; 7])).unwrap().ports(), None);
        assert_eq!(QuotedDatagram::parse(&quoted(protocol::ICMP, &[0; 8])).unwrap().ports(), None);
        let udp = quoted(protocol::UDP, &[0, 53, 0, 99, 0, 8, 0, 0]);
        assert_eq!(QuotedDatagram::parse(&udp).unwrap().ports().unwrap().seq, None);
    }

    #[test]
    fn the_checksum_of_a_quoted_header_does_not_matter() {
        let mut bytes = quoted(protocol::TCP, &[]);
        bytes[10] ^= 0xff;
        assert!(QuotedDatagram::parse(&bytes).is_ok());
    }

    #[test]
    fn a_quotation_keeps_the_error_within_576_bytes() {
        assert_eq!(quote(&[7; 2000]).len(), 548);
        assert_eq!(quote(&[7; 28]), [7; 28]);
    }

    #[test]
    fn some_datagrams_no_error_is_sent_about() {
        let one = Ipv4Header {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: protocol::UDP,
            ..Ipv4Header::default()
        };
        let icmp = Ipv4Header { protocol: protocol::ICMP, ..one };
        assert!(error_is_allowed(&one, &[3]));
        assert!(error_is_allowed(&icmp, &[8]));
        assert!(!error_is_allowed(&icmp, &[3]));
        assert!(!error_is_allowed(&icmp, &[]));
        assert!(!error_is_allowed(&Ipv4Header { fragment_offset: 8, ..one }, &[3]));
        for source in [
            Ipv4Addr::UNSPECIFIED,
            Ipv4Addr::LOCALHOST,
            Ipv4Addr::new(239, 255, 255, 255),
            Ipv4Addr::new(240, 0, 0, 1),
            Ipv4Addr::BROADCAST,
        ] {
            assert!(!error_is_allowed(&Ipv4Header { source, ..one }, &[3]), "{source}");
        }
        for destination in [Ipv4Addr::BROADCAST, Ipv4Addr::new(224, 0, 0, 11)] {
            assert!(!error_is_allowed(&Ipv4Header { destination, ..one }, &[3]));
        }
    }
}
