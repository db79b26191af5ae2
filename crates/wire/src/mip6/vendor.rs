//! The Vendor Specific mobility option (RFC 5094): what a receiver that does not know the vendor skips.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};

use super::{ENTERPRISE, MobilityOption, PathReport, ReceivedData, SequenceNumber};

/// A Vendor Specific option, type 19 (RFC 5094 section 3).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VendorOption {
    vendor: u32,
    kind: u8,
    data: Vec<u8>,
}

impl VendorOption {
    /// Vendor ID and Sub-Type.
    const FIXED_LEN: usize = 5;
    /// The most data that the Option Length can tell, bytes.
    pub const MAX_DATA_LEN: usize = u8::MAX as usize - Self::FIXED_LEN;

    /// An option of the vendor's Sub-Type `kind`; `None` when `data` is longer than [`Self::MAX_DATA_LEN`].
    #[must_use]
    pub fn new(vendor: u32, kind: u8, data: &[u8]) -> Option<Self> {
        (data.len() <= Self::MAX_DATA_LEN).then(|| Self { vendor, kind, data: data.to_vec() })
    }

    /// One of careof's own, whose data are known to fit.
    fn ours(kind: u8, data: Vec<u8>) -> MobilityOption {
        debug_assert!(data.len() <= Self::MAX_DATA_LEN, "{} bytes do not fit", data.len());
        MobilityOption::Vendor(Self { vendor: ENTERPRISE, kind, data })
    }

    /// The Vendor ID: a Private Enterprise Number.
    #[must_use]
    pub const fn vendor(&self) -> u32 {
        self.vendor
    }

    /// The Sub-Type, which the vendor assigns.
    #[must_use]
    pub const fn kind(&self) -> u8 {
        self.kind
    }

    /// The vendor's data.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// What a mobile node says of its path, if this is how it says so. Data that cannot be read are none, and no reason to refuse the
    /// update that they came with.
    #[must_use]
    pub fn told_path(&self) -> Option<ToldPath> {
        let (report, rest) = self.data_of(PathReport::KIND)?.split_at_checked(PathReport::VALUE_LEN)?;
        let first = rest.first_chunk::<2>()?;
        let report = PathReport::decode(report)?;
        Some(ToldPath { report, first: SequenceNumber(u16::from_be_bytes(*first)) })
    }

    /// How far a mobile node has received its flows, if this is how it says so.
    #[must_use]
    pub fn received_data(&self) -> Option<ReceivedData> {
        let peer = |octets: [u8; 16]| IpAddr::V6(Ipv6Addr::from(octets)).to_canonical();
        self.data_of(ReceivedData::KIND).map(|data| ReceivedData::decode(data, peer))
    }

    /// The data, if this is the option `kind` of ours.
    fn data_of(&self, kind: u8) -> Option<&[u8]> {
        (self.vendor == ENTERPRISE && self.kind == kind).then_some(&self.data)
    }

    pub(super) const fn data_len(&self) -> usize {
        Self::FIXED_LEN + self.data.len()
    }

    /// What follows Option Type and Option Length; `None` when that is too short to name vendor and Sub-Type.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let (&[a, b, c, d, kind], data) = data.split_first_chunk::<{ Self::FIXED_LEN }>()?;
        Some(Self { vendor: u32::from_be_bytes([a, b, c, d]), kind, data: data.to_vec() })
    }

    /// Appends what follows Option Type and Option Length.
    pub(super) fn emit(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.vendor.to_be_bytes());
        bytes.push(self.kind);
        bytes.extend(&self.data);
    }
}

/// What a mobile node says of its path in a Binding Update.
///
/// On the wire the sequence number follows the value of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ToldPath {
    /// The report.
    pub report: PathReport,
    /// The sequence number of the first of the updates that ask for the same as this one, which may be this one itself. Who has
    /// accepted one of them has been told already what this one tells.
    pub first: SequenceNumber,
}

impl ToldPath {
    /// The option that carries it.
    #[must_use]
    pub fn option(&self) -> MobilityOption {
        let mut data = self.report.encode().to_vec();
        data.extend(self.first.0.to_be_bytes());
        VendorOption::ours(PathReport::KIND, data)
    }
}

impl ReceivedData {
    /// The mobility option that carries it; `None` when there is nothing to carry.
    #[must_use]
    pub fn option(&self) -> Option<MobilityOption> {
        let octets = |peer| match peer {
            IpAddr::V4(peer) => Some(peer.to_ipv6_mapped().octets()),
            IpAddr::V6(peer) => Some(Ipv6Addr::octets(&peer)),
        };
        (!self.is_empty()).then(|| VendorOption::ours(Self::KIND, self.encode(octets)))
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use careof_base::DataRate;

    use super::*;
    use crate::mip6::MobilityOptions;
    use crate::{ReceivedFlow, SeqNumber};

    const GSM: ToldPath = ToldPath {
        report: PathReport {
            downlink: Some(DataRate::from_bits_per_second(9_600)),
            uplink: Some(DataRate::from_bits_per_second(14_400)),
            round_trip: Some(Duration::from_millis(700)),
            old_path_lost: Some(true),
            repeated_for: Duration::ZERO,
        },
        first: SequenceNumber(0x0102),
    };

    fn vendor(option: MobilityOption) -> VendorOption {
        let MobilityOption::Vendor(vendor) = option else { panic!("{option:?}") };
        vendor
    }

    fn flow(port: u16) -> ReceivedFlow {
        ReceivedFlow {
            peer: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, 7)),
            peer_port: 443,
            mobile_port: port,
            ack: SeqNumber(0x0102_0304),
            echo: (port % 2 == 1).then_some(0x0506_0708),
        }
    }

    #[test]
    fn a_path_report_has_the_layout_of_rfc_5094() {
        let mut bytes = alloc::vec![0; 12];
        MobilityOptions::new().with(GSM.option()).emit(&mut bytes, None);
        // At 4n + 2, behind padding: Option Type, Option Length, Vendor ID, Sub-Type.
        assert_eq!(bytes[12..21], [1, 0, 19, 21, 0, 0, 0x7e, 0xd9, 1]);
        assert_eq!(bytes[21..35], GSM.report.encode());
        assert_eq!(bytes[35..37], [1, 2]);
    }

    #[test]
    fn what_others_say_under_the_same_number_is_not_ours_and_what_is_cut_short_is_nothing() {
        let option = vendor(GSM.option());
        let told = |vendor, kind, data| VendorOption::new(vendor, kind, data).unwrap().told_path();
        assert_eq!(told(ENTERPRISE, 1, option.data()), Some(GSM));
        assert_eq!(told(ENTERPRISE, 2, option.data()), None);
        assert_eq!(told(9, 1, option.data()), None);
        for len in 0..option.data().len() {
            assert_eq!(told(ENTERPRISE, 1, &option.data()[..len]), None);
        }
        let longer = [option.data(), &[7; 3]].concat();
        assert_eq!(told(ENTERPRISE, 1, &longer), Some(GSM), "a later edition may append fields");
    }

    #[test]
    fn a_flow_takes_28_bytes_in_network_order_and_an_ipv4_peer_is_mapped() {
        let of = |flow: ReceivedFlow| {
            let data = [flow].into_iter().collect::<ReceivedData>();
            let option = vendor(data.option().unwrap());
            assert_eq!(option.received_data(), Some(data));
            option.data().to_vec()
        };
        let rest = [1, 0xbb, 0xc0, 1, 1, 2, 3, 4, 5, 6, 7, 8];
        let peer = [0x20, 1, 0xd, 0xb8, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        assert_eq!(of(flow(0xc001)), [&peer[..], &rest].concat());
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 198, 51, 100, 7];
        let over_ipv4 = ReceivedFlow { peer: IpAddr::from([198, 51, 100, 7]), ..flow(0xc001) };
        assert_eq!(of(over_ipv4), [&mapped[..], &rest].concat());
        assert_eq!(ReceivedData::EMPTY.option(), None);
    }

    #[test]
    fn the_list_is_cut_at_its_capacity_and_at_an_incomplete_entry() {
        let full: ReceivedData = (0..20).map(flow).collect();
        let option = vendor(full.option().unwrap());
        assert_eq!(option.data().len(), 28 * ReceivedData::CAPACITY);
        let read = |data: &[u8]| VendorOption::new(ENTERPRISE, 2, data).unwrap().received_data().unwrap();
        assert_eq!(read(&[option.data(), &[0xab; 26]].concat()), full);
        assert_eq!(read(&option.data()[..55]).flows().collect::<Vec<_>>(), [flow(0)]);
        assert!(read(&[]).is_empty());
    }

    #[test]
    fn more_than_the_length_octet_can_tell_is_refused() {
        assert!(VendorOption::new(9, 1, &[0; 251]).is_none());
        assert!(VendorOption::new(9, 1, &[0; 250]).is_some());
    }
}
