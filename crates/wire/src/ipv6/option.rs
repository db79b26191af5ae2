//! The options of hop-by-hop and destination options headers (RFC 8200 section 4.2).

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::extensions::{HOME_ADDRESS, home_address};
use crate::Error;

pub(super) const PAD1: u8 = 0;
pub(super) const PADN: u8 = 1;

/// What a node does with a packet that has an option of a type that it does not know: the two highest bits of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownOptionAction {
    /// 00: skip over the option.
    Skip,
    /// 01: discard the packet.
    Discard,
    /// 10: discard the packet and send a Parameter Problem, code 2, even if the destination is a multicast address.
    ParameterProblem,
    /// 11: discard the packet and send a Parameter Problem, code 2, unless the destination is a multicast address.
    ParameterProblemUnlessMulticast,
}

impl UnknownOptionAction {
    /// What the type `kind` says.
    #[must_use]
    pub const fn of(kind: u8) -> Self {
        match kind >> 6 {
            0b00 => Self::Skip,
            0b01 => Self::Discard,
            0b10 => Self::ParameterProblem,
            _ => Self::ParameterProblemUnlessMulticast,
        }
    }
}

/// An option as it stands in a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlacedOption<'a> {
    /// Option Type, with all of its 8 bits.
    pub kind: u8,
    /// Option Data.
    pub data: &'a [u8],
    /// Where the option starts in its extension header, bytes.
    pub offset: usize,
}

impl PlacedOption<'_> {
    /// The home address in it, if it is a sound Home Address option (RFC 6275 section 6.3).
    #[must_use]
    pub fn home_address(&self) -> Option<Ipv6Addr> {
        (self.kind == HOME_ADDRESS).then(|| home_address(self.data, self.offset).ok())?
    }
}

/// The options of an extension header, without padding. It ends with the first error.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    header: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    /// The options of a whole hop-by-hop or destination options header, Next Header and Hdr Ext Len included.
    #[must_use]
    pub const fn new(header: &'a [u8]) -> Self {
        Self { header, at: 2 }
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<PlacedOption<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let rest = self.header.get(self.at..)?;
            let (&kind, after) = rest.split_first()?;
            if kind == PAD1 {
                self.at += 1;
                continue;
            }
            let offset = self.at;
            let needed = after.first().map_or(2, |&len| 2 + usize::from(len));
            let Some(option) = rest.get(..needed) else {
                self.at = self.header.len();
                return Some(Err(Error::Truncated {
                    what: "IPv6 option",
                    offset,
                    needed,
                    found: rest.len(),
                }));
            };
            self.at += needed;
            if kind != PADN {
                return Some(Ok(PlacedOption { kind, data: option.get(2..).unwrap_or_default(), offset }));
            }
        }
    }
}

/// Writes a hop-by-hop or destination options header.
pub(super) struct OptionsWriter<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> OptionsWriter<'a> {
    /// A header at the end of `bytes`, which names `next_header`.
    pub(super) fn new(next_header: u8, bytes: &'a mut Vec<u8>) -> Self {
        let start = bytes.len();
        bytes.extend([next_header, 0]);
        Self { bytes, start }
    }

    /// Appends an option whose type stands at a multiple of `multiple` bytes, and `plus`, from the start of the header (the
    /// notation "8n+6" of RFC 8200 section 4.2).
    pub(super) fn option(&mut self, kind: u8, data: &[u8], multiple: usize, plus: usize) {
        let at = self.bytes.len() - self.start;
        self.pad((multiple + plus % multiple - at % multiple) % multiple);
        debug_assert!(data.len() <= usize::from(u8::MAX), "the Opt Data Len is one octet");
        self.bytes.extend([kind, data.len() as u8]);
        self.bytes.extend(data);
    }

    /// Fills the header up to a multiple of 8 bytes, and writes its length.
    pub(super) fn finish(mut self) {
        let len = self.bytes.len() - self.start;
        self.pad(len.next_multiple_of(8) - len);
        let units = (self.bytes.len() - self.start) / 8 - 1;
        if let Some(place) = self.bytes.get_mut(self.start + 1) {
            *place = units as u8;
        }
    }

    fn pad(&mut self, len: usize) {
        match len {
            0 => {}
            1 => self.bytes.push(PAD1),
            _ => {
                self.bytes.extend([PADN, (len - 2) as u8]);
                self.bytes.resize(self.bytes.len() + len - 2, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_highest_bits_say_what_becomes_of_an_unknown_option() {
        use UnknownOptionAction::{Discard, ParameterProblem, ParameterProblemUnlessMulticast, Skip};
        for (kind, action) in [
            (0x05, Skip),
            (0x3e, Skip),
            (0x40, Discard),
            (0x8a, ParameterProblem),
            (0xc9, ParameterProblemUnlessMulticast),
        ] {
            assert_eq!(UnknownOptionAction::of(kind), action);
        }
    }

    #[test]
    fn options_are_padded_to_their_place_and_the_header_to_a_whole_unit() {
        // The first example of RFC 8200 appendix A: X (4n+2: here 8n+2, then 4 and 8 bytes) in a header of 24 bytes.
        let mut bytes = alloc::vec![0xaa];
        let mut writer = OptionsWriter::new(59, &mut bytes);
        writer.option(0x1e, &[1; 12], 8, 2);
        writer.finish();
        assert_eq!(bytes[1..], [59, 1, 0x1e, 12, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
        // The second: Y is one of 4n+3 with 7 bytes of data.
        let mut bytes = Vec::new();
        let mut writer = OptionsWriter::new(59, &mut bytes);
        writer.option(0x1e, &[1; 7], 4, 3);
        writer.finish();
        assert_eq!(
            bytes,
            [59, 1, 0, 0x1e, 7, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0, 0][..12]
                .to_vec()
                .into_iter()
                .chain([1, 2, 0, 0])
                .collect::<Vec<u8>>()
        );
        let options: Vec<_> = Options::new(&bytes).collect();
        assert_eq!(options, [Ok(PlacedOption { kind: 0x1e, data: &[1; 7], offset: 3 })]);
    }

    #[test]
    fn an_option_that_reaches_beyond_its_header_ends_the_walk() {
        let mut options = Options::new(&[59, 0, 1, 0, 0x1e, 3, 1, 2]);
        let error = Error::Truncated { what: "IPv6 option", offset: 4, needed: 5, found: 4 };
        assert_eq!(options.next(), Some(Err(error)));
        assert_eq!(options.next(), None);
        let mut options = Options::new(&[59, 0, 1, 3, 0, 0, 0, 0x1e]);
        let error = Error::Truncated { what: "IPv6 option", offset: 7, needed: 2, found: 1 };
        assert_eq!(options.next(), Some(Err(error)));
        assert_eq!(options.next(), None);
    }
}
