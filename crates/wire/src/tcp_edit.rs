//! Changes to the header of a TCP segment that somebody else has made and that passes: in place, with the checksum mended
//! by what has changed (RFC 1624) instead of made anew, so that a segment that was damaged before stays recognizable as that.
//!
//! Everything takes the payload of an IP datagram of either version, from the TCP header on: whatever addresses the checksum covers, they
//! stay. What is not there is not changed: `false`.

use etherparse::tcp_option::{KIND_END, KIND_MAXIMUM_SEGMENT_SIZE, KIND_NOOP, KIND_SELECTIVE_ACK};

use crate::SeqNumber;

const ACK: usize = 8;
const DATA_OFFSET: usize = 12;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
const OPTIONS: usize = 20;
/// Of the option with the maximum segment size (RFC 9293 section 3.2).
const MSS_LEN: usize = 4;

/// What the checksum field of a segment holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumField {
    /// The checksum.
    Complete,
    /// The sum of the pseudo header only, as long as a network device is to do the rest: it does not depend on the segment.
    Left,
}

/// Sets the window field, as it stands in the header.
pub fn set_window(segment: &mut [u8], window: u16, field: ChecksumField) -> bool {
    replace(segment, WINDOW, &window.to_be_bytes(), field)
}

/// Sets the acknowledgement number.
pub fn set_ack(segment: &mut [u8], ack: SeqNumber, field: ChecksumField) -> bool {
    replace(segment, ACK, &ack.0.to_be_bytes(), field)
}

/// Sets the maximum segment size in the option of a SYN; `false` if there is none.
pub fn set_mss(segment: &mut [u8], mss: u16, field: ChecksumField) -> bool {
    match find_option(segment, KIND_MAXIMUM_SEGMENT_SIZE) {
        Some((at, MSS_LEN)) => replace(segment, at + 2, &mss.to_be_bytes(), field),
        _ => false,
    }
}

/// Overwrites the SACK options by no-operations; `false` if there is none.
pub fn remove_sack(segment: &mut [u8], field: ChecksumField) -> bool {
    let mut removed = false;
    while let Some((at, len)) = find_option(segment, KIND_SELECTIVE_ACK) {
        // The longest option there can be.
        let nothing = [KIND_NOOP; u8::MAX as usize];
        if !replace(segment, at, nothing.get(..len).unwrap_or_default(), field) {
            break;
        }
        removed = true;
    }
    removed
}

/// Where the first option of a kind is, and its length.
fn find_option(segment: &[u8], wanted: u8) -> Option<(usize, usize)> {
    let end = usize::from(segment.get(DATA_OFFSET)? >> 4) * 4;
    let header = segment.get(..end)?;
    let mut at = OPTIONS;
    loop {
        match *header.get(at..)? {
            [] | [KIND_END, ..] | [_] => return None,
            [KIND_NOOP, ..] => at += 1,
            [kind, len, ..] => {
                let len = usize::from(len);
                header.get(at..at + len.max(2))?;
                if kind == wanted {
                    return (len >= 2).then_some((at, len));
                }
                if len < 2 {
                    return None;
                }
                at += len;
            }
        }
    }
}

/// Puts bytes in the place of others and mends the checksum: HC' = ~(~HC + ~m + m') (RFC 1624 section 3).
fn replace(segment: &mut [u8], at: usize, new: &[u8], field: ChecksumField) -> bool {
    // No header is shorter, and the checksum is not behind its end.
    let Some(end) = at.checked_add(new.len()).filter(|end| *end <= segment.len()) else { return false };
    if segment.len() < OPTIONS {
        return false;
    }
    // Sums are of words: an odd start or end takes the neighbour in.
    let (first, last) = (at & !1, (end + 1) & !1);
    let before = sum(segment.get(first..last.min(segment.len())).unwrap_or_default());
    let Some(place) = segment.get_mut(at..end) else { return false };
    place.copy_from_slice(new);
    if field == ChecksumField::Left {
        return true;
    }
    let after = sum(segment.get(first..last.min(segment.len())).unwrap_or_default());
    let Some(&[high, low]) = segment.get(CHECKSUM..CHECKSUM + 2) else { return false };
    let found = u16::from_be_bytes([high, low]);
    let mended = !fold(u32::from(!found) + u32::from(!before) + u32::from(after));
    if let Some(place) = segment.get_mut(CHECKSUM..CHECKSUM + 2) {
        place.copy_from_slice(&mended.to_be_bytes());
    }
    true
}

/// The sum of 16-bit words in ones' complement; the last of an odd number of bytes counts as the first of a word.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        u32::from(u16::from_be_bytes([pair.first().copied().unwrap_or_default(), low]))
    });
    // At most 128 words, see `remove_sack`.
    fold(words.sum())
}

const fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::{Flags, SackBlocks, Segment, Timestamps};

    const A: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const B: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
    const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
    const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 0xfffe);

    fn acknowledgement() -> Segment {
        let mut segment = Segment {
            source_port: 40_000,
            destination_port: 80,
            seq: SeqNumber(7),
            ack: SeqNumber(0xffff_fff0),
            flags: Flags::ACK,
            window: 502,
            timestamps: Some(Timestamps { value: 3, echo: 4 }),
            payload_len: 5,
            ..Segment::default()
        };
        assert!(segment.sack.push(SeqNumber(100), SeqNumber(200)));
        segment
    }

    fn emitted(segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        segment.emit(A, B, b"abcde", &mut bytes);
        bytes
    }

    fn emitted_over_ipv6(segment: &Segment) -> Vec<u8> {
        let mut bytes = Vec::new();
        segment.emit(A6, B6, b"abcde", &mut bytes);
        bytes
    }

    #[test]
    fn a_changed_segment_is_as_if_it_had_been_made_so() {
        let segment = acknowledgement();
        let syn = Segment { flags: Flags::SYN, mss: Some(1_440), payload_len: 5, ..Segment::default() };
        for emitted in [emitted, emitted_over_ipv6] {
            let mut bytes = emitted(&segment);
            assert!(set_window(&mut bytes, 0, ChecksumField::Complete));
            assert_eq!(bytes, emitted(&Segment { window: 0, ..segment }));
            assert!(set_ack(&mut bytes, SeqNumber(16), ChecksumField::Complete));
            assert_eq!(bytes, emitted(&Segment { window: 0, ack: SeqNumber(16), ..segment }));
            let mut bytes = emitted(&syn);
            assert!(set_mss(&mut bytes, 1_220, ChecksumField::Complete));
            assert_eq!(bytes, emitted(&Segment { mss: Some(1_220), ..syn }));
        }
    }

    #[test]
    fn sack_becomes_nothing_and_the_rest_stays() {
        let segment = acknowledgement();
        let mut bytes = emitted(&segment);
        assert!(remove_sack(&mut bytes, ChecksumField::Complete));
        assert_eq!(bytes.len(), emitted(&segment).len());
        let (read, data) = Segment::parse(A, B, &bytes).unwrap();
        assert_eq!((read, data), (Segment { sack: SackBlocks::EMPTY, ..segment }, &b"abcde"[..]));
        assert!(!remove_sack(&mut bytes, ChecksumField::Complete));
        let mut bytes = emitted_over_ipv6(&segment);
        assert!(remove_sack(&mut bytes, ChecksumField::Complete));
        assert_eq!(Segment::parse(A6, B6, &bytes).unwrap().0, read);
    }

    #[test]
    fn a_segment_size_is_changed_where_it_stands_also_at_an_odd_place() {
        let syn = Segment { flags: Flags::SYN, mss: Some(1_460), payload_len: 5, ..Segment::default() };
        let mut bytes = emitted(&syn);
        assert!(set_mss(&mut bytes, 1_340, ChecksumField::Complete));
        assert_eq!(bytes, emitted(&Segment { mss: Some(1_340), ..syn }));
        // Behind a no-operation, in front of which another option may have an odd length.
        let mut odd = emitted(&Segment { mss: None, timestamps: None, ..syn });
        odd.splice(20..20, [1, 2, 4, 0x05, 0xb4, 1, 1, 1]);
        odd[12] = 7 << 4;
        let whole = |bytes: &[u8]| super::sum(bytes);
        let before = whole(&odd);
        assert!(set_mss(&mut odd, 536, ChecksumField::Complete));
        assert_eq!((odd[23], odd[24]), (2, 24));
        assert_eq!(whole(&odd), before, "the checksum makes up for it");
        assert!(!set_mss(&mut emitted(&acknowledgement()), 536, ChecksumField::Complete));
    }

    #[test]
    fn a_checksum_that_is_left_to_a_device_stays() {
        let mut bytes = emitted(&acknowledgement());
        bytes[16..18].copy_from_slice(&[0xab, 0xcd]);
        assert!(set_window(&mut bytes, 9, ChecksumField::Left));
        assert!(remove_sack(&mut bytes, ChecksumField::Left));
        assert_eq!(bytes[14..18], [0, 9, 0xab, 0xcd]);
    }

    #[test]
    fn what_is_no_header_is_left_alone() {
        let mut short = [0; 19];
        assert!(!set_window(&mut short, 1, ChecksumField::Complete));
        assert!(!set_ack(&mut short, SeqNumber(1), ChecksumField::Complete));
        assert_eq!(short, [0; 19]);
        for options in [[5, 1, 1, 1], [5, 9, 1, 1], [9, 0, 5, 2], [0, 5, 2, 1]] {
            let mut bytes = emitted(&Segment { payload_len: 5, ..Segment::default() });
            bytes.splice(20..20, options);
            bytes[12] = 6 << 4;
            let before = bytes.clone();
            assert!(!remove_sack(&mut bytes, ChecksumField::Complete), "{options:?}");
            assert_eq!(bytes, before);
        }
    }
}
