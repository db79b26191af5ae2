//! What the two sets of Mobile IPv4 extensions share: the Type-Length-Value format and the rule for unknown
//! types (RFC 5944 sections 1.8 and 1.9).

use alloc::vec::Vec;

use crate::Error;

/// Type and Length.
pub(crate) const HEADER_LEN: usize = 2;

/// One-byte padding, of both sets: the Type alone, without Length and Data (RFC 5944 section 1.8).
pub(crate) const ONE_BYTE_PADDING: u8 = 0;

/// The lowest type a receiver skips when it does not know it.
pub(crate) const FIRST_SKIPPABLE: u8 = 128;

/// An extension of a type that is not known here and may be skipped (128 to 255). It is kept so that a
/// message that is passed on stays what it was.
///
/// An extension that has a variant of its own is not made this way: a receiver would see that variant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnknownExtension {
    kind: u8,
    data: Vec<u8>,
}

impl UnknownExtension {
    /// An extension of type `kind`; `None` when the type may not be skipped or `data` exceeds 255 bytes.
    #[must_use]
    pub fn new(kind: u8, data: &[u8]) -> Option<Self> {
        (kind >= FIRST_SKIPPABLE && data.len() <= usize::from(u8::MAX))
            .then(|| Self { kind, data: data.to_vec() })
    }

    /// The Type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// What follows Type and Length.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// The rule for a type that is not known: kept when it may be skipped, else the end of the message.
    pub(crate) fn received(kind: u8, data: &[u8]) -> Result<Self, Error> {
        if kind < FIRST_SKIPPABLE {
            return Err(Error::UnknownExtension { kind, offset: 0 });
        }
        Ok(Self { kind, data: data.to_vec() })
    }
}

/// An extension as it is framed.
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) data: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Splits the first extension off `bytes`.
    pub(crate) fn split(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let truncated =
            |needed| Error::Truncated { what: "extension", offset: 0, needed, found: bytes.len() };
        let Some((&[kind, len], rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
            return Err(truncated(HEADER_LEN));
        };
        match rest.split_at_checked(usize::from(len)) {
            Some((data, rest)) => Ok((Self { kind, data }, rest)),
            None => Err(truncated(HEADER_LEN + usize::from(len))),
        }
    }

    /// The Length is not one that the type can have.
    pub(crate) fn wrong_length(&self, expected: &'static str) -> Error {
        Error::Invalid { field: "extension Length", offset: 1, found: self.data.len() as u32, expected }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_length_octet_cannot_tell_is_refused() {
        assert!(UnknownExtension::new(127, &[]).is_none());
        assert!(UnknownExtension::new(128, &[0; 256]).is_none());
        assert!(UnknownExtension::new(128, &[0; 255]).is_some());
    }
}
