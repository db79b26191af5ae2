//! Link-layer addresses.

use core::fmt;

/// A link-layer address as DHCP carries it: `htype`, `hlen` and `chaddr` (RFC 2131 section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HardwareAddress {
    kind: u8,
    len: u8,
    /// Zero beyond `len`.
    bytes: [u8; Self::MAX_LEN],
}

impl HardwareAddress {
    /// The longest address, bytes.
    pub const MAX_LEN: usize = 16;
    /// The hardware type of Ethernet (RFC 1700, "Number Hardware Type").
    pub const ETHERNET: u8 = 1;

    /// The address `bytes` of hardware type `kind`; `None` when it exceeds [`Self::MAX_LEN`].
    #[must_use]
    pub fn new(kind: u8, bytes: &[u8]) -> Option<Self> {
        let mut padded = [0; Self::MAX_LEN];
        padded.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { kind, len: bytes.len() as u8, bytes: padded })
    }

    /// An Ethernet address.
    #[must_use]
    pub fn ethernet(address: [u8; 6]) -> Self {
        let mut bytes = [0; Self::MAX_LEN];
        for (byte, given) in bytes.iter_mut().zip(address) {
            *byte = given;
        }
        Self { kind: Self::ETHERNET, len: 6, bytes }
    }

    /// The hardware type.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// The address, [`Self::MAX_LEN`] bytes at most.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&self.bytes)
    }

    /// The `chaddr` field.
    pub(super) const fn padded(&self) -> [u8; Self::MAX_LEN] {
        self.bytes
    }
}

impl fmt::Display for HardwareAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.bytes().iter().enumerate() {
            let colon = if at == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02x}")?;
        }
        Ok(())
    }
}
