//! Multicast Listener Discovery, as far as duplicate address detection needs it: that a node tells which solicited-node groups
//! it listens to (RFC 2710, RFC 3810).
//!
//! These messages go out with a Hop Limit of 1, from a link-local address or the unspecified one (RFC 3590), behind a hop-by-hop
//! header with the Router Alert option ([`Extensions::router_alert`](crate::ipv6::Extensions)). Queries are not interpreted.

use alloc::vec::Vec;
use core::net::Ipv6Addr;

use super::{HEADER_LEN, Header};
use crate::Error;
use crate::codes::codes;
use crate::fixed::Fixed;

pub(super) const REPORT_V1: u8 = 131;
pub(super) const DONE: u8 = 132;
pub(super) const REPORT_V2: u8 = 143;

/// A message of MLDv1: Report (type 131) or Done (type 132), of one group (RFC 2710 section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MulticastListener {
    /// Multicast Address: the group that the sender listens to, or no longer.
    pub group: Ipv6Addr,
}

codes! {
    /// What a record of an MLDv2 report says of its group (RFC 3810 section 5.2.12).
    RecordType {
        /// 1.
        ModeIsInclude = 1, "MODE_IS_INCLUDE";
        /// 2.
        ModeIsExclude = 2, "MODE_IS_EXCLUDE";
        /// 3: with no sources, the sender leaves the group.
        ChangeToInclude = 3, "CHANGE_TO_INCLUDE_MODE";
        /// 4: with no sources, the sender joins the group.
        ChangeToExclude = 4, "CHANGE_TO_EXCLUDE_MODE";
        /// 5.
        AllowNewSources = 5, "ALLOW_NEW_SOURCES";
        /// 6.
        BlockOldSources = 6, "BLOCK_OLD_SOURCES";
    }
}

/// A Multicast Address Record. Auxiliary data, which no version defines, is skipped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MulticastAddressRecord {
    /// What it says.
    pub record_type: RecordType,
    /// Of which group.
    pub group: Ipv6Addr,
    /// Of which sources, 65535 at most.
    pub sources: Vec<Ipv6Addr>,
}

/// Version 2 Multicast Listener Report (type 143; RFC 3810 section 5.2).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MulticastListenerReport {
    /// The records, 65535 at most.
    pub records: Vec<MulticastAddressRecord>,
}

impl MulticastListenerReport {
    /// The report of a node that joins `groups`, from any source.
    #[must_use]
    pub fn join(groups: impl IntoIterator<Item = Ipv6Addr>) -> Self {
        Self::all(RecordType::ChangeToExclude, groups)
    }

    /// The report of a node that leaves `groups`.
    #[must_use]
    pub fn leave(groups: impl IntoIterator<Item = Ipv6Addr>) -> Self {
        Self::all(RecordType::ChangeToInclude, groups)
    }

    fn all(record_type: RecordType, groups: impl IntoIterator<Item = Ipv6Addr>) -> Self {
        let record = |group| MulticastAddressRecord { record_type, group, sources: Vec::new() };
        Self { records: groups.into_iter().map(record).collect() }
    }

    /// Record Type, Aux Data Len, Number of Sources and Multicast Address.
    const RECORD_LEN: usize = 20;

    pub(super) fn decode(header: Header, mut body: &[u8]) -> Result<Self, Error> {
        let (_, count) = header.as_halves();
        let whole = body.len();
        let mut records = Vec::new();
        for _ in 0..count {
            let at = HEADER_LEN + whole - body.len();
            let (fixed, rest) = Fixed::<{ Self::RECORD_LEN }>::split(body, "Multicast Address Record")
                .map_err(|e| e.shifted(at))?;
            let (sources_len, auxiliary_len) =
                (usize::from(fixed.u16::<2>()) * 16, usize::from(fixed.u8::<1>()) * 4);
            let Some((data, rest)) = rest.split_at_checked(sources_len + auxiliary_len) else {
                return Err(Error::Truncated {
                    what: "Multicast Address Record",
                    offset: at,
                    needed: Self::RECORD_LEN + sources_len + auxiliary_len,
                    found: body.len(),
                });
            };
            let (sources, _) = data.get(..sources_len).unwrap_or_default().as_chunks::<16>();
            records.push(MulticastAddressRecord {
                record_type: RecordType::from_number(fixed.u8::<0>()),
                group: fixed.ipv6_address::<4>(),
                sources: sources.iter().copied().map(Ipv6Addr::from).collect(),
            });
            body = rest;
        }
        Ok(Self { records })
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) -> Header {
        const MAX: usize = u16::MAX as usize;
        debug_assert!(self.records.len() <= MAX, "the number of records is 16 bits");
        let records = self.records.get(..MAX).unwrap_or(&self.records);
        for record in records {
            debug_assert!(record.sources.len() <= MAX, "the number of sources is 16 bits");
            let sources = record.sources.get(..MAX).unwrap_or(&record.sources);
            bytes.extend([record.record_type.number(), 0]);
            bytes.extend((sources.len() as u16).to_be_bytes());
            bytes.extend(record.group.octets());
            bytes.extend(sources.iter().flat_map(Ipv6Addr::octets));
        }
        Header::halves(REPORT_V2, 0, 0, records.len() as u16)
    }
}

impl MulticastListener {
    pub(super) fn decode(body: &[u8]) -> Result<Self, Error> {
        let (fixed, _) = Fixed::<16>::split(body, "Multicast Listener message")
            .map_err(|error| error.shifted(HEADER_LEN))?;
        Ok(Self { group: fixed.ipv6_address::<0>() })
    }

    pub(super) fn encode(&self, kind: u8, bytes: &mut Vec<u8>) -> Header {
        bytes.extend(self.group.octets());
        Header { kind, code: 0, rest: [0; 4] }
    }
}
