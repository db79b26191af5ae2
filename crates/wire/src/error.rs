//! What can be wrong with received bytes.

/// Why bytes are not the message they were taken for.
///
/// Every offset counts bytes from the start of the slice the failing `parse` was given. Nothing is ever
/// answered on the strength of an error here: the receiver counts it and drops the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// The bytes end before the thing does.
    #[error("{what} at offset {offset} takes {needed} bytes, {found} are left")]
    Truncated {
        /// The header, message or extension that is cut short.
        what: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes it takes, as far as is known by now.
        needed: usize,
        /// Bytes there are.
        found: usize,
    },
    /// A field has a value it cannot have.
    #[error("{field} at offset {offset} is {found}, not {expected}")]
    Invalid {
        /// The field, by the name its specification gives it.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Its value.
        found: u32,
        /// What would have been right.
        expected: &'static str,
    },
    /// The Internet checksum does not cover what it should.
    #[error("{what} checksum at offset {offset} is {found:#06x}, not {expected:#06x}")]
    Checksum {
        /// The header or message.
        what: &'static str,
        /// Where the checksum field is.
        offset: usize,
        /// The value received.
        found: u16,
        /// The value the received bytes call for.
        expected: u16,
    },
    /// An extension of a type below 128 that is not known here: the whole message is silently discarded
    /// (RFC 5944 section 1.8).
    #[error("extension of unknown type {kind} at offset {offset} may not be skipped")]
    UnknownExtension {
        /// The Type of the extension.
        kind: u8,
        /// Where the extension starts.
        offset: usize,
    },
}

impl Error {
    /// The same error of a part that starts `by` bytes into the whole.
    pub(crate) const fn shifted(mut self, by: usize) -> Self {
        match &mut self {
            Self::Truncated { offset, .. }
            | Self::Invalid { offset, .. }
            | Self::Checksum { offset, .. }
            | Self::UnknownExtension { offset, .. } => *offset = offset.saturating_add(by),
        }
        self
    }
}
