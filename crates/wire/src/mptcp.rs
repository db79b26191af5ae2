//! Options of Multipath TCP in a segment that passes (RFC 8684): how a subflow is opened, and where its data belongs in the
//! connection's.
//!
//! Only what somebody needs who watches a connection: nothing is emitted, and keys, tokens and acknowledgements of data are passed over.

use crate::Error;
use crate::tcp::options_of;

/// The number of the option (RFC 8684, section 3; IANA).
pub const KIND: u8 = 30;

/// Subtypes (RFC 8684, section 8.2).
mod subtype {
    pub(super) const CAPABLE: u8 = 0;
    pub(super) const JOIN: u8 = 1;
    pub(super) const DATA_SEQUENCE_SIGNAL: u8 = 2;
}

/// Flags of a data sequence signal (RFC 8684, section 3.3).
mod flag {
    pub(super) const ACK: u8 = 0x01;
    pub(super) const LONG_ACK: u8 = 0x02;
    pub(super) const MAPPING: u8 = 0x04;
    pub(super) const LONG_SEQUENCE: u8 = 0x08;
}

/// How a SYN opens a subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opening {
    /// As the first of a new connection (`MP_CAPABLE`).
    Connection,
    /// As a further one of a connection (`MP_JOIN`).
    Join {
        /// It is to carry data only while no other one can.
        backup: bool,
        /// By which the sender calls the address that the subflow comes from.
        address_id: u8,
    },
}

/// Where a stretch of a subflow's data belongs in the data of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DataMapping {
    /// The lower 32 bits of the connection's sequence number of the first byte.
    pub data_seq: u32,
    /// The subflow's sequence number of that byte, counted from its SYN.
    pub subflow_seq: u32,
    /// Bytes in it, with the end of data (`DATA_FIN`) where it is signalled; never zero, which would mean that the connection has
    /// become ordinary TCP.
    pub length: u16,
}

/// What the options of Multipath TCP in one segment say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MptcpOptions {
    /// Of a SYN: how it opens a subflow.
    pub opening: Option<Opening>,
    /// Where its data belongs.
    pub mapping: Option<DataMapping>,
}

impl MptcpOptions {
    /// Reads the options of a segment, from its TCP header on. The checksum is not looked at. Without any of them the value is the
    /// default one.
    ///
    /// # Errors
    /// A header cut short, an option whose length is wrong or leads out of the header.
    pub fn peek(segment: &[u8]) -> Result<Self, Error> {
        let mut found = Self::default();
        options_of(segment, |kind, data| if kind == KIND { found.take(data) } else { Ok(()) })?;
        Ok(found)
    }

    fn take(&mut self, data: &[u8]) -> Result<(), &'static str> {
        let [first, second, ref rest @ ..] = *data else { return Err("4 or more for Multipath TCP") };
        match first >> 4 {
            subtype::CAPABLE => self.opening = Some(Opening::Connection),
            subtype::JOIN => {
                self.opening = Some(Opening::Join { backup: first & 1 != 0, address_id: second });
            }
            subtype::DATA_SEQUENCE_SIGNAL => {
                self.mapping =
                    mapping(second, rest).ok_or("what its flags say for a data sequence signal")?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// The mapping in what follows the flags of a data sequence signal; the outer `None` where it is cut short.
fn mapping(flags: u8, data: &[u8]) -> Option<Option<DataMapping>> {
    let has = |flag| flags & flag != 0;
    let width = |is_long| if is_long { 8 } else { 4 };
    let acknowledged = if has(flag::ACK) { width(has(flag::LONG_ACK)) } else { 0 };
    let rest = data.get(acknowledged..)?;
    if !has(flag::MAPPING) {
        return Some(None);
    }
    // Of a long one the lower half comes last.
    let rest = rest.get(width(has(flag::LONG_SEQUENCE)) - 4..)?;
    let [a, b, c, d, e, f, g, h, i, j, ..] = *rest else { return None };
    let length = u16::from_be_bytes([i, j]);
    let data_seq = u32::from_be_bytes([a, b, c, d]);
    let subflow_seq = u32::from_be_bytes([e, f, g, h]);
    Some((length > 0).then_some(DataMapping { data_seq, subflow_seq, length }))
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use alloc::vec::Vec;

    use super::*;
    use crate::Segment;

    /// A segment with these options.
    fn segment(options: &[u8]) -> Vec<u8> {
        let address = Ipv4Addr::LOCALHOST;
        let mut bytes = Vec::new();
        Segment::default().emit(address, address, &[], &mut bytes);
        bytes.extend(options);
        bytes.resize(bytes.len().next_multiple_of(4), 1);
        bytes[12] = (bytes.len() as u8 / 4) << 4;
        bytes
    }

    fn peek(options: &[u8]) -> MptcpOptions {
        MptcpOptions::peek(&segment(options)).unwrap()
    }

    #[test]
    fn a_syn_says_how_it_opens_a_subflow() {
        // RFC 8684, figures 4 and 5, behind an option of another kind.
        let capable = peek(&[2, 4, 5, 180, 30, 4, 0x01, 0x01]);
        assert_eq!((capable.opening, capable.mapping), (Some(Opening::Connection), None));
        let join = |flags: u8| peek(&[30, 12, 0x10 | flags, 3, 9, 9, 9, 9, 8, 8, 8, 8]).opening;
        assert_eq!(join(0), Some(Opening::Join { backup: false, address_id: 3 }));
        assert_eq!(join(1), Some(Opening::Join { backup: true, address_id: 3 }));
        assert_eq!(peek(&[2, 4, 5, 180]), MptcpOptions::default());
    }

    #[test]
    fn a_mapping_is_read_in_every_width() {
        // RFC 8684, figure 9.
        let expected = Some(DataMapping { data_seq: 0x0102_0304, subflow_seq: 7, length: 1400 });
        let rest = [1, 2, 3, 4, 0, 0, 0, 7, 5, 120];
        for (flags, in_front) in [(0x04, 0), (0x0c, 4), (0x05, 4), (0x07, 8), (0x0f, 12), (0x1f, 12)] {
            for checksum in [0, 2] {
                let mut option = alloc::vec![30, 0, 0x20, flags];
                option.extend(core::iter::repeat_n(0xaa, in_front));
                option.extend(rest);
                option.extend(core::iter::repeat_n(0xbb, checksum));
                option[1] = option.len() as u8;
                assert_eq!(peek(&option).mapping, expected, "{flags:#x} {in_front} {checksum}");
            }
        }
    }

    #[test]
    fn acknowledgements_alone_and_the_end_of_multipath_map_nothing() {
        assert_eq!(peek(&[30, 8, 0x20, 0x01, 1, 2, 3, 4]), MptcpOptions::default());
        let infinite = [30, 14, 0x20, 0x04, 1, 2, 3, 4, 0, 0, 0, 7, 0, 0];
        assert_eq!(peek(&infinite), MptcpOptions::default());
    }

    #[test]
    fn an_option_that_is_cut_short_is_refused() {
        for option in [&[30, 3, 0x20][..], &[30, 8, 0x20, 0x03, 1, 2, 3, 4], &[30, 8, 0x20, 0x04, 1, 2, 3, 4]]
        {
            let error = MptcpOptions::peek(&segment(option)).unwrap_err();
            assert!(
                matches!(error, Error::Invalid { field: "TCP option Length", offset: 21, .. }),
                "{error:?}"
            );
        }
        assert!(MptcpOptions::peek(&[0; 19]).is_err());
    }
}
