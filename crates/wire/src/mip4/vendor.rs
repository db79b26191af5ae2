//! Normal Vendor/Organization Specific Extensions (RFC 3115 section 2.2): what a receiver that does not know the vendor skips.

use alloc::vec::Vec;

use super::{PathReport, ReceivedData};

/// The Private Enterprise Number under which careof's extensions travel.
///
/// None is registered for careof. This is the one that RFC 5612 sets aside for examples in documentation, so that no
/// vendor's extension can be taken for ours; somebody else's experiment can.
pub const ENTERPRISE: u32 = 32_473;

/// Reserved, Vendor/Org-ID and Vendor-NVSE-Type.
pub(super) const VENDOR_HEADER_LEN: usize = 8;

/// A Normal Vendor/Organization Specific Extension, type 134.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VendorExtension {
    /// Zero when sent; kept as received, because authenticators cover it.
    reserved: u16,
    vendor: u32,
    kind: u16,
    value: Vec<u8>,
}

impl VendorExtension {
    /// The longest value the Length octet can tell, bytes.
    pub const MAX_VALUE_LEN: usize = u8::MAX as usize - VENDOR_HEADER_LEN;

    /// An extension of the vendor's type `kind`; `None` when `value` is longer than [`Self::MAX_VALUE_LEN`].
    #[must_use]
    pub fn new(vendor: u32, kind: u16, value: &[u8]) -> Option<Self> {
        (value.len() <= Self::MAX_VALUE_LEN).then(|| Self {
            reserved: 0,
            vendor,
            kind,
            value: value.to_vec(),
        })
    }

    /// One of careof's own, whose values are known to fit.
    pub(super) fn ours(kind: u16, value: Vec<u8>) -> Self {
        debug_assert!(value.len() <= Self::MAX_VALUE_LEN, "{} bytes do not fit", value.len());
        Self { reserved: 0, vendor: ENTERPRISE, kind, value }
    }

    /// The Vendor/Org-ID: a Private Enterprise Number.
    #[must_use]
    pub const fn vendor(&self) -> u32 {
        self.vendor
    }

    /// The Vendor-NVSE-Type, which the vendor assigns.
    #[must_use]
    pub const fn kind(&self) -> u16 {
        self.kind
    }

    /// The Vendor-NVSE-Value.
    #[must_use]
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// What a mobile node says of its path, if this is how it says so.
    #[must_use]
    pub fn path_report(&self) -> Option<PathReport> {
        self.value_of(PathReport::KIND).and_then(PathReport::decode)
    }

    /// How far a mobile node has received its flows, if this is how it says so.
    #[must_use]
    pub fn received_data(&self) -> Option<ReceivedData> {
        self.value_of(ReceivedData::KIND).map(ReceivedData::decode)
    }

    /// The value, if this is the extension `kind` of ours.
    fn value_of(&self, kind: u16) -> Option<&[u8]> {
        (self.vendor == ENTERPRISE && self.kind == kind).then_some(&self.value)
    }

    /// What follows Type and Length; `None` when that is too short to name vendor and type.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (reserved, rest) = data.split_first_chunk::<2>()?;
        let (vendor, rest) = rest.split_first_chunk::<4>()?;
        let (kind, value) = rest.split_first_chunk::<2>()?;
        Some(Self {
            reserved: u16::from_be_bytes(*reserved),
            vendor: u32::from_be_bytes(*vendor),
            kind: u16::from_be_bytes(*kind),
            value: value.to_vec(),
        })
    }

    /// Appends what follows Type and Length.
    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.reserved.to_be_bytes());
        bytes.extend(self.vendor.to_be_bytes());
        bytes.extend(self.kind.to_be_bytes());
        bytes.extend(&self.value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_too_long_for_the_length_octet_is_refused() {
        assert!(VendorExtension::new(9, 1, &[0; 248]).is_none());
        assert!(VendorExtension::new(9, 1, &[0; 247]).is_some());
    }

    #[test]
    fn a_report_is_read_from_our_extension_only() {
        let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
        let value = report.encode();
        let read = |vendor, kind| VendorExtension::new(vendor, kind, &value).unwrap().path_report();
        assert_eq!(read(ENTERPRISE, PathReport::KIND), Some(report));
        assert_eq!(read(ENTERPRISE, PathReport::KIND + 1), None);
        assert_eq!(read(9, PathReport::KIND), None);
    }
}
