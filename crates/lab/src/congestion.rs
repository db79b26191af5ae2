//! Congestion control of the kernel's TCP.

use std::fmt;

/// Longest name of a congestion control, with the zero behind it (`TCP_CA_NAME_MAX`).
const ROOM: usize = 16;

/// The name of a congestion control, as `cubic`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CongestionControl {
    /// Zeros behind the name.
    name: [u8; ROOM],
}

impl CongestionControl {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        let length = self.name.iter().position(|byte| *byte == 0).unwrap_or(ROOM);
        std::str::from_utf8(self.name.get(..length).unwrap_or_default()).unwrap_or_default()
    }

    /// From a name as the kernel writes it, with or without a zero behind it; `None` for what cannot be one.
    pub(crate) fn from_kernel(bytes: &[u8]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let text = bytes.get(..length).filter(|text| !text.is_empty() && text.is_ascii())?;
        let mut name = [0; ROOM];
        // The last byte stays zero.
        name.get_mut(..ROOM - 1)?.get_mut(..length)?.copy_from_slice(text);
        Some(Self { name })
    }
}

impl fmt::Display for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CongestionControl({})", self.as_str())
    }
}
