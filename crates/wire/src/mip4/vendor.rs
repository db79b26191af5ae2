//! Normal Vendor/Organization Specific Extensions (RFC 3115 section 2.2): what a receiver that does not know the vendor skips.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use super::{ENTERPRISE, Extension, PathNumber, PathReport, ReceivedData};

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
    pub(super) fn ours(kind: u8, value: Vec<u8>) -> Self {
        debug_assert!(value.len() <= Self::MAX_VALUE_LEN, "{} bytes do not fit", value.len());
        Self { reserved: 0, vendor: ENTERPRISE, kind: kind.into(), value }
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
        let peer = |octets: [u8; 4]| IpAddr::from(octets);
        self.value_of(ReceivedData::KIND).map(|value| ReceivedData::decode(value, peer))
    }

    /// The number of a path, if this is how somebody tells it.
    #[must_use]
    pub fn path_number(&self) -> Option<PathNumber> {
        self.value_of(PathNumber::KIND).and_then(<[u8]>::first).copied().map(PathNumber)
    }

    /// The value, if this is the extension `kind` of ours.
    fn value_of(&self, kind: u8) -> Option<&[u8]> {
        (self.vendor == ENTERPRISE && self.kind == kind.into()).then_some(&self.value)
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

impl PathReport {
    /// Bytes of the extension of Mobile IPv4 that carries it, Type and Length included.
    pub const WIRE_LEN: usize = crate::extension::HEADER_LEN + VENDOR_HEADER_LEN + Self::VALUE_LEN;

    /// The extension that carries it.
    #[must_use]
    pub fn extension(&self) -> Extension {
        Extension::Vendor(VendorExtension::ours(Self::KIND, self.encode().to_vec()))
    }
}

impl ReceivedData {
    /// The extension that carries it; `None` when there is nothing to carry. The flows of a home address of IPv4 have no other peers than
    /// such of IPv4.
    #[must_use]
    pub fn extension(&self) -> Option<Extension> {
        let value = self.encode(|peer| match peer {
            IpAddr::V4(peer) => Some(Ipv4Addr::octets(&peer)),
            IpAddr::V6(_) => None,
        });
        (!value.is_empty()).then(|| Extension::Vendor(VendorExtension::ours(Self::KIND, value)))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use careof_base::DataRate;

    use super::*;
    use crate::{ReceivedFlow, SeqNumber};

    #[test]
    fn a_value_too_long_for_the_length_octet_is_refused() {
        assert!(VendorExtension::new(9, 1, &[0; 248]).is_none());
        assert!(VendorExtension::new(9, 1, &[0; 247]).is_some());
    }

    #[test]
    fn a_path_report_has_the_layout_of_rfc_3115() {
        let report = PathReport {
            downlink: Some(DataRate::from_bits_per_second(9_600)),
            uplink: Some(DataRate::from_bits_per_second(14_400)),
            round_trip: Some(Duration::from_millis(700)),
            old_path_lost: Some(true),
            repeated_for: Duration::ZERO,
        };
        let mut bytes = Vec::new();
        report.extension().emit(&mut bytes);
        let (head, value) = bytes.split_at(10);
        // Type, Length, Reserved, Vendor/Org-ID, Vendor-NVSE-Type.
        assert_eq!(head, [134, 22, 0, 0, 0, 0, 0x7e, 0xd9, 0, 1]);
        assert_eq!(value, report.encode());
        assert_eq!(bytes.len(), PathReport::WIRE_LEN);
    }

    #[test]
    fn a_report_is_read_from_our_extension_only() {
        let report = PathReport { old_path_lost: Some(true), ..PathReport::default() };
        let value = report.encode();
        let read = |vendor, kind| VendorExtension::new(vendor, kind, &value).unwrap().path_report();
        assert_eq!(read(ENTERPRISE, 1), Some(report));
        assert_eq!(read(ENTERPRISE, 2), None);
        assert_eq!(read(9, 1), None);
    }

    fn flow(port: u16) -> ReceivedFlow {
        ReceivedFlow {
            peer: IpAddr::from([198, 51, 100, 7]),
            peer_port: 443,
            mobile_port: port,
            ack: SeqNumber(0x0102_0304),
            echo: (port % 2 == 1).then_some(0x0506_0708),
        }
    }

    fn value(extension: Option<Extension>) -> Vec<u8> {
        let Some(Extension::Vendor(vendor)) = extension else { panic!("{extension:?}") };
        assert_eq!((vendor.vendor(), vendor.kind()), (ENTERPRISE, 2));
        vendor.value().to_vec()
    }

    fn read(value: &[u8]) -> ReceivedData {
        VendorExtension::new(ENTERPRISE, 2, value).unwrap().received_data().unwrap()
    }

    #[test]
    fn a_flow_takes_sixteen_bytes_in_network_order() {
        let data: ReceivedData = [flow(0xc001)].into_iter().collect();
        assert_eq!(value(data.extension()), [198, 51, 100, 7, 1, 0xbb, 0xc0, 1, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(ReceivedData::EMPTY.extension(), None);
    }

    #[test]
    fn the_list_is_cut_at_its_capacity_and_at_an_incomplete_entry() {
        let full: ReceivedData = (0..20).map(flow).collect();
        assert_eq!(full.len(), ReceivedData::CAPACITY);
        let mut bytes = value(full.extension());
        assert_eq!(read(&bytes), full);
        bytes.extend([0xab; 100]);
        assert_eq!(read(&bytes), full);
        assert_eq!(read(&bytes[..31]).flows().collect::<Vec<_>>(), [flow(0)]);
        assert!(read(&[]).is_empty());
    }
}
