//! What an access router tells a mobile node of its neighbors (RFC 5568 section 6.1): RtSolPr and PrRtAdv.

use alloc::vec::Vec;

use super::option::NdOption;
use super::{HEADER_LEN, Header};
use crate::Error;

/// The Type of all messages of fast handovers; the Subtype, in the first octet behind the checksum, tells them apart.
pub(super) const FMIPV6: u8 = 154;
pub(super) const RT_SOL_PR: u8 = 2;
pub(super) const PR_RT_ADV: u8 = 3;

crate::numbered::numbered! {
    /// The Code of a Proxy Router Advertisement (RFC 5568 section 6.1.2).
    PrRtAdvCode, unknown: "unknown code";

    /// 0: what is known of the access points that were asked for.
    Solicited = 0, "use the tuple for movement detection and NCoA formulation";
    /// 1: the network wants the mobile node to change to this access router.
    HandoverTrigger = 1, "unsolicited, network-initiated handover";
    /// 2: nothing new is known of any of them; each option says why.
    NoNewRouter = 2, "no new router information";
    /// 3: something is known of some of them.
    SomeNewRouters = 3, "new router information for a subset";
    /// 4: what is known of neighboring access points, without being asked.
    Unsolicited = 4, "unsolicited information, no handover trigger";
    /// 5: an address is to be had by DHCP on the new link.
    UseDhcp = 5, "perform DHCP on the new link";
}

/// A Router Solicitation for Proxy Advertisement (type 154, subtype 2; RFC 5568 section 6.1.1), from a mobile node to its access
/// router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RtSolPr {
    /// Comes back in the advertisement.
    pub identifier: u16,
    /// [`NdOption::HandoverLinkLayerAddress`]: the sender's own, and the access points asked for.
    pub options: Vec<NdOption>,
}

/// A Proxy Router Advertisement (type 154, subtype 3; RFC 5568 section 6.1.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PrRtAdv {
    /// What it is for.
    pub code: PrRtAdvCode,
    /// That of the solicitation; 0 when nobody has asked.
    pub identifier: u16,
    /// For each access point its link-layer address, and then what is known of its router.
    pub options: Vec<NdOption>,
}

impl RtSolPr {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        header.expect_code_0("RtSolPr Code")?;
        Ok(Self { identifier: header.as_halves().1, options: NdOption::parse_all(body, HEADER_LEN)? })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        self.options.iter().for_each(|option| option.emit(bytes));
        Header::halves(FMIPV6, 0, u16::from_be_bytes([RT_SOL_PR, 0]), self.identifier)
    }
}

impl PrRtAdv {
    pub(super) fn decode(header: Header, body: &[u8]) -> Result<Self, Error> {
        Ok(Self {
            code: PrRtAdvCode::from_number(header.code),
            identifier: header.as_halves().1,
            options: NdOption::parse_all(body, HEADER_LEN)?,
        })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        self.options.iter().for_each(|option| option.emit(bytes));
        Header::halves(FMIPV6, self.code.number(), u16::from_be_bytes([PR_RT_ADV, 0]), self.identifier)
    }
}

crate::numbered::numbered! {
    /// The Status of a Neighbor Advertisement Acknowledgment option (RFC 5568 section 6.4.6).
    NaackStatus, unknown: "unknown status";

    /// 1.
    ConfigureAddress = 1, "NCoA is invalid, perform address configuration";
    /// 2: with the address to use.
    UseSuppliedAddress = 2, "NCoA is invalid, use the supplied NCoA";
    /// 3.
    UseRouterAddress = 3, "NCoA is invalid, use NAR's IP address as NCoA in FBU";
    /// 4.
    UsePreviousAddress = 4, "PCoA supplied, do not send FBU";
    /// 128.
    LinkLayerAddressUnrecognized = 128, "Link-Layer Address unrecognized";
}
