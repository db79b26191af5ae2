//! The options of a message: gathered from where they stand, and laid out again.

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use super::{LeaseTime, code};
use crate::Error;

/// An option that is not known here, kept whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownOption {
    code: u8,
    data: Vec<u8>,
}

impl UnknownOption {
    /// An option with this code; `None` when [`DhcpMessage`](super::DhcpMessage) has a field for it, or it is a sign between options.
    #[must_use]
    pub fn new(code: u8, data: &[u8]) -> Option<Self> {
        (!is_known(code)).then(|| Self { code, data: data.to_vec() })
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// Its value. Longer than 255 bytes it travels in pieces (RFC 3396).
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }
}

const fn is_known(code: u8) -> bool {
    matches!(
        code,
        code::PAD
            | code::SUBNET_MASK
            | code::ROUTER
            | code::REQUESTED_ADDRESS..=code::PARAMETER_REQUEST_LIST
            | code::MAX_MESSAGE_SIZE..=code::REBINDING_TIME
            | code::CLIENT_IDENTIFIER
            | code::END
    )
}

/// An option put together from all its instances.
#[derive(Debug)]
pub(super) struct Gathered {
    code: u8,
    /// Where its first instance begins in the message.
    offset: usize,
    data: Vec<u8>,
}

impl Gathered {
    fn invalid_length(&self, field: &'static str, expected: &'static str) -> Error {
        Error::Invalid { field, offset: self.offset + 1, found: self.data.len() as u32, expected }
    }

    /// The value, if it has the `N` bytes that it must have.
    fn array<const N: usize>(&self, field: &'static str, expected: &'static str) -> Result<[u8; N], Error> {
        <[u8; N]>::try_from(self.data.as_slice()).map_err(|_| self.invalid_length(field, expected))
    }
}

/// All options of a message, by code, each once.
#[derive(Debug, Default)]
pub(super) struct Options(Vec<Gathered>);

impl Options {
    /// Reads a field of options that begins `offset` bytes into the message, up to its end option.
    pub(super) fn gather(&mut self, field: &[u8], offset: usize) -> Result<(), Error> {
        let mut at = 0;
        loop {
            let start = offset + at;
            let truncated =
                |needed, found| Error::Truncated { what: "DHCP option", offset: start, needed, found };
            // RFC 2132 section 3.2: an end option marks the end, whatever follows it.
            let code = *field.get(at).ok_or(Error::Truncated {
                what: "DHCP options without their end option",
                offset: start,
                needed: 1,
                found: 0,
            })?;
            match code {
                code::PAD => at += 1,
                code::END => return Ok(()),
                _ => {
                    let left = field.len() - at;
                    let len = usize::from(*field.get(at + 1).ok_or(truncated(2, left))?);
                    let data = field.get(at + 2..at + 2 + len).ok_or(truncated(2 + len, left))?;
                    self.add(code, start, data);
                    at += 2 + len;
                }
            }
        }
    }

    /// Several instances of an option are one, in the order in which they come (RFC 3396 section 7).
    fn add(&mut self, code: u8, offset: usize, data: &[u8]) {
        match self.0.iter_mut().find(|option| option.code == code) {
            Some(option) => option.data.extend(data),
            None => self.0.push(Gathered { code, offset, data: data.to_vec() }),
        }
    }

    fn take(&mut self, code: u8) -> Option<Gathered> {
        let at = self.0.iter().position(|option| option.code == code)?;
        Some(self.0.remove(at))
    }

    pub(super) fn address(&mut self, code: u8, field: &'static str) -> Result<Option<Ipv4Addr>, Error> {
        self.take(code).map(|option| option.array::<4>(field, "4 bytes long").map(Ipv4Addr::from)).transpose()
    }

    pub(super) fn time(&mut self, code: u8, field: &'static str) -> Result<Option<LeaseTime>, Error> {
        let read = |option: Gathered| {
            Ok(LeaseTime::from_secs(u32::from_be_bytes(option.array::<4>(field, "4 bytes long")?)))
        };
        self.take(code).map(read).transpose()
    }

    /// An option of one byte, and where it stands.
    pub(super) fn byte(&mut self, code: u8, field: &'static str) -> Result<Option<(u8, usize)>, Error> {
        let read = |option: Gathered| {
            let [byte] = option.array::<1>(field, "1 byte long")?;
            Ok((byte, option.offset + 2))
        };
        self.take(code).map(read).transpose()
    }

    /// RFC 2132 section 9.10.
    pub(super) fn max_message_size(&mut self) -> Result<Option<u16>, Error> {
        let Some(option) = self.take(code::MAX_MESSAGE_SIZE) else { return Ok(None) };
        let size = u16::from_be_bytes(option.array::<2>("Maximum DHCP Message Size length", "2 bytes long")?);
        if size < 576 {
            return Err(Error::Invalid {
                field: "Maximum DHCP Message Size",
                offset: option.offset + 2,
                found: size.into(),
                expected: "576 or more",
            });
        }
        Ok(Some(size))
    }

    /// The prefix length that the subnet mask stands for.
    pub(super) fn prefix_length(&mut self) -> Result<Option<u8>, Error> {
        let Some(option) = self.take(code::SUBNET_MASK) else { return Ok(None) };
        let mask = u32::from_be_bytes(option.array::<4>("Subnet Mask length", "4 bytes long")?);
        if mask.leading_ones() != mask.count_ones() {
            return Err(Error::Invalid {
                field: "Subnet Mask",
                offset: option.offset + 2,
                found: mask,
                expected: "ones and then zeros",
            });
        }
        Ok(Some(mask.leading_ones() as u8))
    }

    /// RFC 2132 section 3.5.
    pub(super) fn routers(&mut self) -> Result<Vec<Ipv4Addr>, Error> {
        let Some(option) = self.take(code::ROUTER) else { return Ok(Vec::new()) };
        let (addresses, rest) = option.data.as_chunks::<4>();
        if addresses.is_empty() || !rest.is_empty() {
            return Err(option.invalid_length("Router length", "a multiple of 4, and not 0"));
        }
        Ok(addresses.iter().copied().map(Ipv4Addr::from).collect())
    }

    /// An option of at least `least` bytes.
    pub(super) fn bytes(
        &mut self,
        code: u8,
        least: usize,
        field: &'static str,
        expected: &'static str,
    ) -> Result<Option<Vec<u8>>, Error> {
        match self.take(code) {
            Some(option) if option.data.len() < least => Err(option.invalid_length(field, expected)),
            Some(option) => Ok(Some(option.data)),
            None => Ok(None),
        }
    }

    /// What has not been taken, in the order in which it came.
    pub(super) fn others(self) -> Vec<UnknownOption> {
        let unknown = |Gathered { code, data, .. }: Gathered| UnknownOption { code, data };
        self.0.into_iter().map(unknown).collect()
    }
}

/// Appends an option, in pieces where it is too long for one.
pub(super) fn emit(code: u8, data: &[u8], bytes: &mut Vec<u8>) {
    let mut emit_piece = |piece: &[u8]| {
        bytes.extend([code, piece.len() as u8]);
        bytes.extend(piece);
    };
    if data.is_empty() {
        emit_piece(data);
    }
    data.chunks(usize::from(u8::MAX)).for_each(emit_piece);
}
