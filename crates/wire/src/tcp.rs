//! A TCP segment as bytes (RFC 9293 section 3.1).

use alloc::vec::Vec;

use etherparse::err::tcp::{HeaderError, HeaderSliceError};
use etherparse::tcp_option::{
    KIND_END, KIND_MAXIMUM_SEGMENT_SIZE, KIND_NOOP, KIND_SELECTIVE_ACK, KIND_SELECTIVE_ACK_PERMITTED,
    KIND_TIMESTAMP, KIND_WINDOW_SCALE,
};
use etherparse::{TcpHeader, TcpOptions, TcpSlice};

use crate::{Error, Flags, IpAddress, SackBlocks, Segment, SeqNumber, Timestamps, checksum, protocol};

const DATA_OFFSET: usize = 12;
const FLAGS: usize = 13;
const CHECKSUM: usize = 16;
const OPTIONS: usize = 20;

const BLOCK_LEN: usize = 8;

/// The options of a segment: each is padded in front so that it ends on a 32-bit boundary.
struct OptionBytes {
    bytes: [u8; TcpOptions::MAX_LEN],
    len: usize,
}

impl OptionBytes {
    fn push(&mut self, option: &[u8]) {
        let end = self.len + option.len();
        debug_assert!(end <= self.bytes.len(), "Segment::header_len() leaves out what does not fit");
        if let Some(space) = self.bytes.get_mut(self.len..end) {
            space.copy_from_slice(option);
            self.len = end;
        }
    }

    fn of(segment: &Segment) -> Self {
        let mut options = Self { bytes: [0; TcpOptions::MAX_LEN], len: 0 };
        if let Some(mss) = segment.mss {
            options.push(&[KIND_MAXIMUM_SEGMENT_SIZE, 4]);
            options.push(&mss.to_be_bytes());
        }
        // SACK-permitted takes the place of the padding in front of the timestamps, as from Linux.
        if segment.sack_permitted {
            if segment.timestamps.is_none() {
                options.push(&[KIND_NOOP, KIND_NOOP]);
            }
            options.push(&[KIND_SELECTIVE_ACK_PERMITTED, 2]);
        } else if segment.timestamps.is_some() {
            options.push(&[KIND_NOOP, KIND_NOOP]);
        }
        if let Some(Timestamps { value, echo }) = segment.timestamps {
            options.push(&[KIND_TIMESTAMP, 10]);
            options.push(&value.to_be_bytes());
            options.push(&echo.to_be_bytes());
        }
        if let Some(shift) = segment.window_scale {
            options.push(&[KIND_NOOP, KIND_WINDOW_SCALE, 3, shift]);
        }
        let blocks = segment.sack_blocks_that_fit();
        if !blocks.is_empty() {
            options.push(&[KIND_NOOP, KIND_NOOP, KIND_SELECTIVE_ACK, (2 + BLOCK_LEN * blocks.len()) as u8]);
            for (left, right) in blocks {
                options.push(&left.0.to_be_bytes());
                options.push(&right.0.to_be_bytes());
            }
        }
        options
    }
}

impl Segment {
    /// Appends the header, with its checksum, and `payload`, which has to be [`Segment::payload_len`] bytes.
    ///
    /// The header takes [`Segment::header_len`] bytes; the options stand in the order of Linux.
    pub fn emit<A: IpAddress>(&self, source: A, destination: A, payload: &[u8], bytes: &mut Vec<u8>) {
        debug_assert_eq!(payload.len(), usize::from(self.payload_len), "the segment tells another length");
        let options = OptionBytes::of(self);
        let options = options.bytes.get(..options.len).unwrap_or_default();
        let mut header = TcpHeader {
            source_port: self.source_port,
            destination_port: self.destination_port,
            sequence_number: self.seq.0,
            acknowledgment_number: self.ack.0,
            ns: false,
            fin: self.flags.contains(Flags::FIN),
            syn: self.flags.contains(Flags::SYN),
            rst: self.flags.contains(Flags::RST),
            psh: self.flags.contains(Flags::PSH),
            ack: self.flags.contains(Flags::ACK),
            urg: self.flags.contains(Flags::URG),
            ece: self.flags.contains(Flags::ECE),
            cwr: self.flags.contains(Flags::CWR),
            window_size: self.window,
            checksum: 0,
            urgent_pointer: 0,
            options: TcpOptions::try_from_slice(options).unwrap_or_default(),
        };
        let len = header.header_len() + payload.len();
        let sum = checksum::pseudo_header(source, destination, protocol::TCP, len);
        header.checksum = checksum::finish(&sum.add_slice(&header.to_bytes()).add_slice(payload));
        bytes.extend(header.to_bytes());
        bytes.extend(payload);
    }

    /// Reads the payload of an IP datagram from `source` to `destination`, of either version: the segment and its data. Over IPv6 the
    /// addresses are those of [`Packet::source`](crate::ipv6::Packet::source) and
    /// [`Packet::destination`](crate::ipv6::Packet::destination).
    ///
    /// Options that are not known here are skipped, and so is the urgent pointer.
    ///
    /// # Errors
    ///
    /// A header cut short, a wrong checksum, an option whose length is wrong or leads out of the header.
    pub fn parse<A: IpAddress>(source: A, destination: A, bytes: &[u8]) -> Result<(Self, &[u8]), Error> {
        let slice = slice(bytes)?;
        let sum = checksum::pseudo_header(source, destination, protocol::TCP, bytes.len());
        checksum::verify(&sum.add_slice(bytes), "TCP", CHECKSUM, slice.checksum())?;
        let (segment, _) = Self::of(&slice, bytes)?;
        Ok((segment, slice.payload()))
    }

    /// Reads the header of a segment that passes on its way to somebody else, whose checksum may be left to a network device
    /// and is not looked at. Also whether there are options beyond maximum segment size, window scale, SACK and timestamps.
    ///
    /// # Errors
    ///
    /// As [`Segment::parse`], but for the checksum.
    pub fn peek(bytes: &[u8]) -> Result<(Self, bool), Error> {
        Self::of(&slice(bytes)?, bytes)
    }

    /// The header of `bytes`, and whether there are options that are not known.
    fn of(slice: &TcpSlice<'_>, bytes: &[u8]) -> Result<(Self, bool), Error> {
        let mut segment = Self {
            source_port: slice.source_port(),
            destination_port: slice.destination_port(),
            seq: SeqNumber(slice.sequence_number()),
            ack: SeqNumber(slice.acknowledgment_number()),
            flags: Flags(bytes.get(FLAGS).copied().unwrap_or_default()),
            window: slice.window_size(),
            // The payload of an IPv4 datagram has at most 65,515 bytes.
            payload_len: u16::try_from(slice.payload().len()).unwrap_or(u16::MAX),
            ..Self::default()
        };
        let has_others = segment.take_options(slice.options())?;
        Ok((segment, has_others))
    }

    /// Whether there were options that are not known.
    fn take_options(&mut self, options: &[u8]) -> Result<bool, Error> {
        let mut has_others = false;
        walk(options, |kind, data| {
            has_others |= !self.take_option(kind, data)?;
            Ok(())
        })?;
        Ok(has_others)
    }

    /// Takes one option, if it is known; the error tells the length it should have had.
    fn take_option(&mut self, kind: u8, data: &[u8]) -> Result<bool, &'static str> {
        match kind {
            KIND_MAXIMUM_SEGMENT_SIZE => {
                let data = data.try_into().map_err(|_| "4 for the maximum segment size")?;
                self.mss = Some(u16::from_be_bytes(data));
            }
            KIND_WINDOW_SCALE => {
                let [shift] = data.try_into().map_err(|_| "3 for the window scale")?;
                self.window_scale = Some(shift);
            }
            KIND_SELECTIVE_ACK_PERMITTED => {
                let [] = data.try_into().map_err(|_| "2 for SACK-permitted")?;
                self.sack_permitted = true;
            }
            KIND_TIMESTAMP => {
                let [a, b, c, d, echo @ ..]: [u8; 8] = data.try_into().map_err(|_| "10 for timestamps")?;
                let value = u32::from_be_bytes([a, b, c, d]);
                self.timestamps = Some(Timestamps { value, echo: u32::from_be_bytes(echo) });
            }
            KIND_SELECTIVE_ACK => {
                let (blocks, rest) = data.as_chunks::<BLOCK_LEN>();
                if blocks.is_empty() || !rest.is_empty() {
                    return Err("2 + 8 for each SACK block");
                }
                self.sack = SackBlocks::EMPTY;
                for &[a, b, c, d, right @ ..] in blocks {
                    // Four blocks fill the option space, so all of them find room.
                    self.sack.push(
                        SeqNumber(u32::from_be_bytes([a, b, c, d])),
                        SeqNumber(u32::from_be_bytes(right)),
                    );
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Hands every option of the segment that `bytes` begins with to `each`, by its kind and what follows its length; an error of that tells the
/// length that the option should have had.
pub(crate) fn options_of(
    bytes: &[u8],
    each: impl FnMut(u8, &[u8]) -> Result<(), &'static str>,
) -> Result<(), Error> {
    walk(slice(bytes)?.options(), each)
}

/// As [`options_of`], for the options themselves.
fn walk(options: &[u8], mut each: impl FnMut(u8, &[u8]) -> Result<(), &'static str>) -> Result<(), Error> {
    let mut rest = options;
    loop {
        let offset = OPTIONS + options.len() - rest.len();
        let (kind, len) = match *rest {
            [] | [KIND_END, ..] => return Ok(()),
            [KIND_NOOP, ref after @ ..] => {
                rest = after;
                continue;
            }
            [kind, len, ..] => (kind, len),
            [_] => return Err(Error::Truncated { what: "TCP option", offset, needed: 2, found: 1 }),
        };
        let wrong_length = |expected| Error::Invalid {
            field: "TCP option Length",
            offset: offset + 1,
            found: u32::from(len),
            expected,
        };
        if len < 2 {
            return Err(wrong_length("2 or more"));
        }
        let Some((option, after)) = rest.split_at_checked(usize::from(len)) else {
            let needed = usize::from(len);
            return Err(Error::Truncated { what: "TCP option", offset, needed, found: rest.len() });
        };
        each(kind, option.get(2..).unwrap_or_default()).map_err(wrong_length)?;
        rest = after;
    }
}

fn slice(bytes: &[u8]) -> Result<TcpSlice<'_>, Error> {
    TcpSlice::from_slice(bytes).map_err(|error| match error {
        HeaderSliceError::Len(error) => {
            Error::Truncated { what: "TCP header", offset: 0, needed: error.required_len, found: bytes.len() }
        }
        HeaderSliceError::Content(HeaderError::DataOffsetTooSmall { data_offset }) => Error::Invalid {
            field: "TCP Data Offset",
            offset: DATA_OFFSET,
            found: u32::from(data_offset),
            expected: "5 or more",
        },
    })
}

#[cfg(test)]
mod tests {
    use core::net::Ipv4Addr;

    use super::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

    fn emitted(segment: &Segment, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        segment.emit(A, B, payload, &mut bytes);
        assert_eq!(bytes.len(), usize::from(segment.header_len()) + payload.len());
        assert_eq!(Segment::parse(A, B, &bytes), Ok((*segment, payload)));
        bytes
    }

    /// `segment` with raw options, its checksum made right.
    fn with_options(options: &[u8]) -> Result<Segment, Error> {
        let mut bytes = emitted(&Segment::default(), &[]);
        bytes.extend(options);
        bytes[DATA_OFFSET] = (bytes.len() as u8 / 4) << 4;
        bytes[CHECKSUM..CHECKSUM + 2].fill(0);
        let sum = checksum::pseudo_header(A, B, protocol::TCP, bytes.len()).add_slice(&bytes);
        bytes[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum::finish(&sum).to_be_bytes());
        Segment::parse(A, B, &bytes).map(|(segment, _)| segment)
    }

    #[test]
    fn a_syn_has_its_options_where_linux_has_them() {
        let syn = Segment {
            source_port: 40000,
            destination_port: 80,
            seq: SeqNumber(0x0102_0304),
            flags: Flags::SYN,
            window: 64240,
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some(Timestamps { value: 1, echo: 0 }),
            ..Segment::default()
        };
        let bytes = emitted(&syn, &[]);
        assert_eq!(bytes[..14], [0x9c, 0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 2]);
        assert_eq!(bytes[20..], [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7]);
        let bytes = emitted(&Segment { timestamps: None, ..syn }, &[]);
        assert_eq!(bytes[20..], [2, 4, 5, 180, 1, 1, 4, 2, 1, 3, 3, 7]);
    }

    #[test]
    fn an_ack_has_timestamps_and_sack_blocks() {
        let mut ack = Segment {
            flags: Flags::ACK.with(Flags::PSH).with(Flags::ECE),
            timestamps: Some(Timestamps { value: 2, echo: 1 }),
            payload_len: 3,
            ..Segment::default()
        };
        assert!(ack.sack.push(SeqNumber(5), SeqNumber(9)));
        let bytes = emitted(&ack, &[1, 2, 3]);
        assert_eq!(
            bytes[20..],
            [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 1, 1, 1, 5, 10, 0, 0, 0, 5, 0, 0, 0, 9, 1, 2, 3]
        );
    }

    #[test]
    fn sack_blocks_give_way_to_timestamps() {
        let mut ack =
            Segment { flags: Flags::ACK, timestamps: Some(Timestamps::default()), ..Segment::default() };
        for left in 0..4 {
            assert!(ack.sack.push(SeqNumber(left * 10), SeqNumber(left * 10 + 5)));
        }
        assert_eq!(ack.header_len(), 20 + 12 + 4 + 3 * 8);
        let mut bytes = Vec::new();
        ack.emit(A, B, &[], &mut bytes);
        assert_eq!(bytes.len(), usize::from(ack.header_len()));
        let (received, _) = Segment::parse(A, B, &bytes).unwrap();
        assert_eq!(received.sack.as_slice(), &ack.sack.as_slice()[..3]);
        ack.timestamps = None;
        assert_eq!(ack.header_len(), 20 + 4 + 4 * 8);
        emitted(&ack, &[]);
    }

    #[test]
    fn unknown_options_are_skipped_and_the_end_ends() {
        let segment = with_options(&[254, 4, 9, 9, 2, 4, 5, 180, 1, 0, 3, 99]).unwrap();
        assert_eq!(segment.mss, Some(1460));
        assert_eq!(segment.window_scale, None);
    }

    #[test]
    fn a_look_at_a_header_takes_no_notice_of_the_checksum_and_tells_of_other_options() {
        let segment = Segment { flags: Flags::ACK, window: 7, payload_len: 2, ..Segment::default() };
        let mut bytes = emitted(&segment, &[1, 2]);
        bytes[CHECKSUM] ^= 1;
        assert_eq!(Segment::peek(&bytes), Ok((segment, false)));
        // TCP MD5 (19), TCP-AO (29), Multipath TCP (30), user timeout (28).
        for kind in [19, 29, 30, 28] {
            let mut bytes = emitted(&Segment::default(), &[]);
            bytes.extend([kind, 4, 0, 0]);
            bytes[DATA_OFFSET] = 6 << 4;
            assert_eq!(Segment::peek(&bytes), Ok((Segment::default(), true)), "{kind}");
        }
        assert!(Segment::peek(&bytes[..19]).is_err());
    }

    #[test]
    fn an_option_with_a_wrong_length_is_refused() {
        for (options, expected) in [
            ([2, 3, 1, 0], "4 for the maximum segment size"),
            ([3, 2, 0, 0], "3 for the window scale"),
            ([4, 3, 1, 0], "2 for SACK-permitted"),
            ([8, 2, 0, 0], "10 for timestamps"),
            ([5, 2, 0, 0], "2 + 8 for each SACK block"),
            ([9, 1, 0, 0], "2 or more"),
        ] {
            let found = u32::from(options[1]);
            let error = Error::Invalid { field: "TCP option Length", offset: 21, found, expected };
            assert_eq!(with_options(&options), Err(error));
        }
        assert_eq!(
            with_options(&[1, 1, 8, 10]),
            Err(Error::Truncated { what: "TCP option", offset: 22, needed: 10, found: 2 })
        );
        assert_eq!(
            with_options(&[1, 1, 1, 8]),
            Err(Error::Truncated { what: "TCP option", offset: 23, needed: 2, found: 1 })
        );
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let mut bytes = emitted(&Segment { payload_len: 1, ..Segment::default() }, &[7]);
        bytes[20] = 8;
        assert!(matches!(Segment::parse(A, B, &bytes), Err(Error::Checksum { what: "TCP", offset: 16, .. })));
        bytes[12] = 0x40;
        assert!(matches!(
            Segment::parse(A, B, &bytes),
            Err(Error::Invalid { field: "TCP Data Offset", found: 4, .. })
        ));
    }
}
